"""The tables of a store: how they are made, brought up to date, opened, and what is said when they
cannot be."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from allotment.amounts import short
from allotment.errors import InputError, Mistake
from allotment.files import HALF, KEEP, explain, plainly
from allotment.job import JSON, SHA256, canonical, parse
from allotment.ledger import copies, journal, lock
from allotment.ledger.disk import check_local, clear_halves
from allotment.ledger.journal import Position
from allotment.machine import make_folder, sync_folder
from allotment.orders.order import LONGEST_NAME

STORE_FILE = "campaign.sqlite"
"""in a campaign's folder"""
MARK = 0x616C6C6F
"""says in the header of the file whose it is"""
PATIENCE = 30.0  # seconds, for the moments in which another process tidies up
LARGEST_ROW_NUMBER = 2**53
"""of a row: JSON keeps whole numbers exact up to this; SQLite itself counts on to 2^63"""
LARGEST_BODY = 16_000_000  # characters

TABLE_COLUMNS: dict[int, dict[str, dict[str, str]]] = {
    1: {
        "settings": {"number": "number", "text": "text", "at": "at"},
        "results": {
            "number": "number",
            "key": "key",
            "kind": "name",
            "needs": "object",
            "versions": "object",
            "body": "value",
            "at": "at",
        },
        journal.UNUSED_TABLE: {
            "number": "number",
            "key": "key",
            "kind": "name",
            "needs": "object",
            "versions": "object",
            "files": "object",
            "at": "at",
        },
        "records": {
            "id": "number",
            "kind": "name",
            "number": "number",
            "key": "name",
            "body": "value",
            "at": "at",
        },
        "cancellations": {"order_id": "number", "at": "at"},
        "items": {"order_id": "number", "position": "count", "task": "name", "instance": "name"},
        "deliveries": {
            "number": "number",
            "name": "name",
            "digest": "name",
            "new": "count",
            "duplicates": "count",
            "conflicts": "count",
            "at": "at",
        },
        "labels": {
            "id": "number",
            "delivery": "number",
            "task": "name",
            "instance": "name",
            "value": "value",
        },
        "rejections": {"id": "number", "delivery": "number", "place": "text", "reason": "text"},
    }
}
"""of each version of the format, the columns of each table and what kind of value they hold"""
TABLE_COLUMNS[2] = TABLE_COLUMNS[1] | {journal.TABLE: journal.JOURNAL_COLUMNS}
TABLE_COLUMNS[3] = TABLE_COLUMNS[2] | {
    "held": {
        "id": "number",
        "delivery": "number",
        "task": "name",
        "instance": "name",
        "value": "value",
        "place": "text",
        "reason": "text",
    },
    "corrections": {
        "id": "number",
        "task": "name",
        "instance": "name",
        "was": "value",
        "value": "value",
        "after": "count",
        "why": "text",
        "at": "at",
    },
}
"""of each version: its tables, in an order in which they can be filled, and what their columns
hold"""

_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)

_FIRST_TABLES = """
CREATE TABLE settings (number INTEGER PRIMARY KEY, text TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE results (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, needs TEXT NOT NULL,
    versions TEXT NOT NULL, body TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX results_by_kind ON results (kind);
CREATE TABLE artifacts (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, needs TEXT NOT NULL,
    versions TEXT NOT NULL, files TEXT NOT NULL, at TEXT NOT NULL
);
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('estimates', 'plan', 'evaluation', 'diagnosis', 'order')),
    number INTEGER NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, at TEXT NOT NULL,
    UNIQUE (kind, number), UNIQUE (kind, key)
);
CREATE TABLE cancellations (order_id INTEGER PRIMARY KEY REFERENCES records (id), at TEXT NOT NULL);
CREATE TABLE items (
    order_id INTEGER NOT NULL REFERENCES records (id), position INTEGER NOT NULL,
    task TEXT NOT NULL, instance TEXT NOT NULL,
    PRIMARY KEY (order_id, position), UNIQUE (order_id, task, instance)
);
CREATE INDEX items_by_pair ON items (task, instance);
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE,
    new INTEGER NOT NULL, duplicates INTEGER NOT NULL, conflicts INTEGER NOT NULL, at TEXT NOT NULL
);
CREATE TABLE labels (
    id INTEGER PRIMARY KEY, delivery INTEGER NOT NULL REFERENCES deliveries (number),
    task TEXT NOT NULL, instance TEXT NOT NULL, value TEXT NOT NULL,
    UNIQUE (delivery, task, instance, value)
);
CREATE INDEX labels_by_pair ON labels (task, instance);
CREATE TABLE rejections (
    id INTEGER PRIMARY KEY, delivery INTEGER NOT NULL REFERENCES deliveries (number),
    place TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE TRIGGER items_of_orders BEFORE INSERT ON items
WHEN NOT EXISTS (SELECT 1 FROM records WHERE id = NEW.order_id AND kind = 'order')
BEGIN SELECT RAISE(ABORT, 'items belong to an order'); END;
CREATE TRIGGER items_once BEFORE INSERT ON items
WHEN EXISTS (
    SELECT 1 FROM items WHERE task = NEW.task AND instance = NEW.instance
    AND order_id NOT IN (SELECT order_id FROM cancellations)
) AND NEW.order_id NOT IN (SELECT order_id FROM cancellations)
BEGIN SELECT RAISE(ABORT, 'nothing is ordered twice'); END;
CREATE TRIGGER cancellations_of_orders BEFORE INSERT ON cancellations
WHEN NOT EXISTS (SELECT 1 FROM records WHERE id = NEW.order_id AND kind = 'order')
BEGIN SELECT RAISE(ABORT, 'only an order can be cancelled'); END;
"""


_TABLES_OF_DOUBT = """
CREATE TABLE held (
    id INTEGER PRIMARY KEY, delivery INTEGER NOT NULL REFERENCES deliveries (number),
    task TEXT NOT NULL, instance TEXT NOT NULL, value TEXT NOT NULL,
    place TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX held_by_pair ON held (task, instance);
CREATE TABLE corrections (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, instance TEXT NOT NULL, was TEXT NOT NULL,
    value TEXT NOT NULL, after INTEGER NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX corrections_by_pair ON corrections (task, instance);
"""
"""labels that wait for somebody's word, and the words of those who corrected one; a value of null
is a label that was withdrawn, and `after` the last delivery that it was said after"""


def _forbid(table: str) -> str:
    """Triggers by which no row of a table is ever overwritten."""
    return "".join(
        f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table}: nothing is ever overwritten'); END;\n"
        for verb in ("UPDATE", "DELETE")
    )


MIGRATIONS = (
    _FIRST_TABLES + "".join(map(_forbid, TABLE_COLUMNS[1])),
    f"{journal.SQL};\n{_forbid(journal.TABLE)}",
    _TABLES_OF_DOUBT + "".join(map(_forbid, ("held", "corrections"))),
)
"""the n-th leads from version n to n + 1; none is ever changed once it was released"""


def list_row_tables(version: int | None = None) -> dict[str, dict[str, str]]:
    """The tables whose rows the journal of a store has lines for, in the newest version or an older
    one."""
    tables = TABLE_COLUMNS[max(TABLE_COLUMNS) if version is None else version]
    return {name: columns for name, columns in tables.items() if name != journal.TABLE}


def judge_row(row: JSON, columns: Mapping[str, str]) -> str:
    """What is wrong with a row that comes from elsewhere; nothing is the empty text."""
    if not isinstance(row, dict) or set(row) != set(columns):
        return f"has not exactly these keys: {', '.join(columns)}"
    for name, kind in columns.items():
        if not _COLUMN_CHECKS[kind](row[name]):
            return f"{name}: {short(row[name])} is no {kind}"
    return ""


def _is_count(value: JSON) -> bool:
    return type(value) is int and 0 <= value < LARGEST_ROW_NUMBER


def _is_text(value: JSON) -> bool:
    try:
        return isinstance(value, str) and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _is_value(value: JSON) -> bool:
    try:
        return len(canonical(value)) <= LARGEST_BODY
    except InputError:
        return False


_MARK = re.compile(f"[0-9a-f]{{{2 * journal.ROW_HASH_BYTES}}}")

_COLUMN_CHECKS: dict[str, Callable[[JSON], bool]] = {
    "number": lambda value: _is_count(value) and value > 0,
    "count": _is_count,
    "key": lambda value: isinstance(value, str) and SHA256.fullmatch(value) is not None,
    "text": _is_text,
    "name": lambda value: _is_text(value) and 0 < len(value) <= LONGEST_NAME,
    "value": _is_value,
    "object": lambda value: isinstance(value, dict) and _is_value(value),
    "at": lambda value: isinstance(value, str) and _AT.fullmatch(value) is not None,
    "mark": lambda value: isinstance(value, str) and _MARK.fullmatch(value) is not None,
}
JSON_KINDS = ("value", "object")


def build(path: Path, version: int | None = None) -> None:
    """A new store, empty, of the newest version or an older one."""
    with translate(path):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute(f"PRAGMA application_id = {MARK}")
            migrate(connection, len(MIGRATIONS) if version is None else version)
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a store up to a version: each step wholly or not at all."""
    (at,) = connection.execute("PRAGMA user_version").fetchone()
    for step in range(at, version):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {MIGRATIONS[step]} PRAGMA user_version = {step + 1};"
            )
            if step == 1:
                journal.enter_all(connection, TABLE_COLUMNS[1])
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def connect(path: Path, write: bool) -> sqlite3.Connection:
    """An open store of any version up to this program's; what is no store, or a newer one, is
    refused."""
    if not path.is_file():
        what = (
            "is not a campaign: it has no campaign.sqlite; make one with `allot init`, or check the"
            " path"
        )
        if copies.has_copy(path.parent):
            what = (
                "its campaign.sqlite is gone; put back its last copy: allot restore"
                f" {shlex.quote(str(path.parent))}"
            )
        raise InputError([Mistake(repr(str(path.parent)), what)])
    with translate(path):
        try:
            connection = _open(path, "mode=rw" if write else "mode=ro")
        except sqlite3.OperationalError:
            # On a disk that cannot be written a store that was closed well can be read as it is.
            if write or _size(path.with_name(STORE_FILE + "-wal")):
                raise
            connection = _open(path, "immutable=1")
        try:
            _check(connection, path)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA recursive_triggers = ON")
        except BaseException:
            connection.close()
            raise
        return connection


def _open(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None, timeout=PATIENCE
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    if mark != MARK and copies.has_copy(path.parent):
        raise damaged(path, "it is another SQLite file")
    if mark != MARK:
        what = "is not the store of a campaign but another SQLite file; check the path"
        raise InputError([Mistake(repr(str(path)), what)])
    version = find_version(connection)
    if version < 1:
        raise damaged(path, f"its format is {version}")
    if version > len(MIGRATIONS):
        what = (
            f"was written by a newer allotment (its format is {version}, this program knows"
            f" {len(MIGRATIONS)}); upgrade allotment; nothing was changed"
        )
        raise InputError([Mistake(repr(str(path)), what)])
    _check_outline(connection, path, MIGRATIONS[:version])


def _check_outline(connection: sqlite3.Connection, path: Path, steps: tuple[str, ...]) -> None:
    """Its tables and triggers are those of its version: a view in place of a table, say, may never
    end."""
    there, expected = _read_outline(connection), _outline(steps)
    for kind, name, _ in sorted(there - expected, key=str):
        raise damaged(path, f"it has a {kind} {short(name)} that is none of allotment's")
    for kind, name, _ in sorted(expected - there):
        raise damaged(path, f"it has no {kind} {name!r}")


@functools.cache
def _outline(steps: tuple[str, ...]) -> frozenset[tuple[str, str, str]]:
    """What a store has that is made in these steps."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for step in steps:
            connection.executescript(step)
        return _read_outline(connection)
    finally:
        connection.close()


def _read_outline(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """(type, name, sql) of all that is declared in it, but for SQLite's own."""
    sql = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite|_%' ESCAPE '|'"
    return frozenset(connection.execute(sql))


def find_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def translate(path: Path) -> Iterator[None]:
    """What SQLite or the system says about a store, as a mistake with its remedy."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # not the file's fault
    except sqlite3.Error as error:
        if what := _explain(error):
            raise InputError([Mistake(repr(str(path)), what)]) from error
        raise damaged(path, error) from error
    except UnicodeDecodeError as error:  # SQLite quotes from a file that is not even text
        raise damaged(path, "not UTF-8") from error
    except OSError as error:
        raise InputError([Mistake(repr(str(path)), explain(error))]) from error


class Damaged(InputError):
    """A store says what no store can say; `how` in few words."""

    def __init__(self, path: Path, how: object, what: str):
        self.how = str(how)
        super().__init__([Mistake(repr(str(path)), what)])


def damaged(path: Path, how: object) -> Damaged:
    """What is wrong with a store, and what to do about it."""
    home = path.parent
    kept = f"put back the last sound copy: allot restore {shlex.quote(str(home))}"
    if not copies.has_copy(home):
        kept = "put back a copy or an archive of `allot pack`"
    look = f"see all of it with: allot verify {shlex.quote(str(home))}; {kept}"
    what = (
        f"is damaged ({how}), or its disk fails; run the same command again. If that says the same,"
        f" {look}"
    )
    return Damaged(path, how, what)


def _explain(error: sqlite3.Error) -> str:
    """What is the matter beside the store itself; nothing if it is damaged."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return f"the disk is full; make room and run the same command again: {KEEP}"
    if name.startswith("SQLITE_READONLY"):
        return (
            "cannot be written: the file or its disk is read-only; change that, or copy the"
            " campaign elsewhere"
        )
    if name.startswith("SQLITE_CANTOPEN"):
        return (
            "cannot be opened; check the permissions of the folder and its files, and that the disk"
            " is not full"
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
        return (
            "is kept busy by another program; close it (a database browser?) and run the same"
            " command again"
        )
    if name.startswith("SQLITE_IOERR"):
        return (
            f"cannot be read or written ({name}); is the disk full or failing? {KEEP.capitalize()}"
        )
    return ""


_SEEN: dict[Path, tuple[Any, ...]] = {}
"""each store as it was when this process found it sound: a command opens it several times"""


def _check_rows(connection: sqlite3.Connection, path: Path, known: Sequence[copies.Copy]) -> None:
    """Raises InputError where a row is not as it was written, or where the store is older than its
    own copy."""
    position, whole = journal.find_position(connection), path.resolve()
    if newer := copies.find_newer(known, position):
        raise InputError([Mistake(repr(str(path)), _tell_older(newer, position))])
    now = (position, *map(_stamp, (whole, whole.with_name(STORE_FILE + "-wal"))))
    if _SEEN.get(whole) == now:
        return
    if found := journal.find_damage(connection, list_row_tables()):
        raise damaged(path, "; ".join(found[:3]) + (" and more" if found[3:] else ""))
    _SEEN[whole] = now


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


def _tell_older(newer: copies.Copy, position: Position) -> str:
    home, lines = shlex.quote(str(newer.path.parent.parent)), newer.number - position.number
    return (
        f"is older than its own copy {newer.path.parent.name}/{newer.path.name}, which has {lines}"
        " more entries: an earlier store was put in its place, and orders that were sent are not"
        f" in it. Nothing was changed; go on from the newer one with: allot restore {home} (or, if"
        " going back is meant, move that copy away)"
    )


def _columns(table: str) -> Mapping[str, str]:
    return TABLE_COLUMNS[len(MIGRATIONS)][table]


class Ledger:
    """An open store and what all of its tables share."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, held: lock.Lock | None):
        self.folder = folder
        self.path = folder / STORE_FILE
        self._connection = connection
        self._lock = held

    @property
    def is_writable(self) -> bool:
        return self._lock is not None

    @property
    def position(self) -> Position:
        """How far it has come."""
        with translate(self.path):
            return journal.find_position(self._connection)

    @classmethod
    def create(cls, folder: str | os.PathLike[str], why: str = "") -> Self:
        """A new store, empty and open for writing, in a folder that has none."""
        folder = Path(folder)
        check_local(folder)
        with plainly(folder):
            make_folder(folder)
        held = lock.take(folder, why)
        try:
            path = folder / STORE_FILE
            if path.exists():
                what = "is a campaign already; go on with it, or choose another folder"
                raise InputError([Mistake(repr(str(folder)), what)])
            clear_halves(folder)
            with plainly(folder), tempfile.TemporaryDirectory(prefix=HALF, dir=folder) as half:
                build(Path(half) / STORE_FILE)
                os.rename(Path(half) / STORE_FILE, path)
                sync_folder(folder)
            return cls(folder, connect(path, write=True), held)
        except BaseException:
            held.release()
            raise

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], write: bool, why: str = "", *, check: bool = True
    ) -> Self:
        """A store that exists: alone for writing, beside all others for reading. Without `check` it
        may be harmed."""
        folder = Path(folder)
        path = folder / STORE_FILE
        check_local(folder)
        if write:
            return cls._open_alone(folder, why)
        connection = connect(path, write=False)
        try:
            with translate(path):
                if find_version(connection) < len(MIGRATIONS):
                    connection.close()
                    cls._open_alone(folder, why or "bringing the store up to date").close()
                    connection = connect(path, write=False)
                # before that moment: a writer may make another any time
                known = copies.list_copies(folder)
                connection.execute("BEGIN")
                # from here on it is this moment
                connection.execute("SELECT COUNT(*) FROM settings").fetchone()
                if check:
                    _check_rows(connection, path, known)
        except BaseException:
            connection.close()
            raise
        return cls(folder, connection, None)

    @classmethod
    def _open_alone(cls, folder: Path, why: str) -> Self:
        path = folder / STORE_FILE
        connect(path, write=False).close()  # no lock file in a folder that is no campaign
        held = lock.take(folder, why)
        try:
            connection = connect(path, write=True)
            try:
                with translate(path):
                    migrate(connection, len(MIGRATIONS))
                    _check_rows(connection, path, copies.list_copies(folder))
                clear_halves(folder)
                copies.keep_copy(connection, folder)  # of one who was killed before it could
            except BaseException:
                connection.close()
                raise
        except BaseException:
            held.release()
            raise
        return cls(folder, connection, held)

    def note_headway(self, done: int, total: int, left: float | None) -> None:
        """Say how far the trainings are, for those who look on while it is being written."""
        if self._lock is not None:
            self._lock.note(lock.Headway(done, total, left, time.time()))

    def keep_copy(self) -> None:
        """Copy what it holds now, for the day on which it is harmed."""
        copies.keep_copy(self._connection, self.folder)

    def close(self) -> None:
        try:
            if self._lock is not None:
                self.keep_copy()
            self._connection.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _adding(self) -> Iterator[None]:
        """All that is added within goes in together, or nothing does."""
        if self._lock is None:
            raise InputError(
                [Mistake(repr(str(self.folder)), "is open for reading; open it with write=True")]
            )
        with translate(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _insert(self, table: str, **row: Any) -> int:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        cursor = self._connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values())
        )
        place = cursor.lastrowid or 0
        journal.enter(self._connection, table, _columns(table), place, place)
        return place

    def _insert_all(self, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(names))
        (last,) = self._connection.execute(
            f"SELECT COALESCE(MAX(rowid), 0) FROM {table}"
        ).fetchone()
        if last > LARGEST_ROW_NUMBER:
            raise damaged(self.path, f"row {last} of {table} has a number that none gets")
        self._connection.executemany(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows
        )
        journal.enter(self._connection, table, _columns(table), last + 1, 2**63 - 1)

    def _rows(self, sql: str, *given: Any) -> list[Any]:
        with translate(self.path):
            return self._connection.execute(sql, given).fetchall()

    def _parse(self, text: str) -> JSON:
        try:
            return parse(text)
        except (ValueError, TypeError) as error:
            raise damaged(self.path, error) from None
