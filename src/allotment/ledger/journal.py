"""The journal of a store: a line for every row that was added, with a hash of the row and of the
line before it.

A row that was changed, lost or slipped in by other means than the program's own does not fit its
line. That finds accidents and careless hands, not forgers: whoever can write the file can write its
hashes, too.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

TABLE = "journal"
SQL = (
    f"CREATE TABLE {TABLE} (number INTEGER PRIMARY KEY, part TEXT NOT NULL, place INTEGER NOT NULL,"
    " hash TEXT NOT NULL)"
)
JOURNAL_COLUMNS = {"number": "number", "part": "name", "place": "number", "hash": "mark"}
"""the columns of the journal itself, and what kind of value they hold"""
UNUSED_TABLE = "artifacts"
"""of every store and archive; no version has ever written a row of it"""
ROW_HASH_BYTES = 16
"""bytes of the hash of a row"""
MOST_ROWS_NAMED = 5
"""rows that are named, of each kind of harm"""
MISSING, CHANGED, UNKNOWN = (
    "{is_} missing",
    "{is_} not as {it} {was} written",
    "{was} never written by allotment",
)
"""what can be wrong with rows"""
_SINGULAR, _PLURAL = (
    {"is_": "is", "it": "it", "was": "was"},
    {
        "is_": "are",
        "it": "they",
        "was": "were",
    },
)
NOUNS = {
    "settings": ("version of the settings", "versions of the settings"), "results": ("result",
    "results"),
    UNUSED_TABLE: ("row of artifacts", "rows of artifacts"), "records": ("record", "records"),
    "cancellations": ("cancellation", "cancellations"), "items": ("ordered item", "ordered items"),
    "deliveries": ("delivery", "deliveries"), "labels": ("label", "labels"),
    "rejections": ("rejected row", "rejected rows"), "held": ("label held back",
    "labels held back"),
    "corrections": ("correction", "corrections"), TABLE: ("line of the journal",
    "lines of the journal"),
}  # fmt: skip
"""what a row of each table is called, and several"""

Tables = Mapping[str, Mapping[str, str]]
"""of a store, each with its columns"""


class Position(NamedTuple):
    """How far a store has come: its lines so far, and the hash of the last one, which all of them
    are in."""

    number: int
    hash: str


def find_position(connection: sqlite3.Connection) -> Position:
    row = connection.execute(
        f"SELECT number, hash FROM {TABLE} ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return Position(0, "") if row is None else Position(*row)


def enter(
    connection: sqlite3.Connection, table: str, columns: Mapping[str, str], first: int, last: int
) -> None:
    """Add a line for each row of a table from one place to another, as they stand in it now."""
    number, before = find_position(connection)
    lines = []
    for place, *row in connection.execute(
        f"{_select(table, columns)} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", (first, last)
    ):
        number, before = number + 1, sign(before, table, place, row)
        lines.append((number, table, place, before))
    connection.executemany(
        f"INSERT INTO {TABLE} (number, part, place, hash) VALUES (?, ?, ?, ?)", lines
    )


def enter_all(connection: sqlite3.Connection, tables: Tables) -> None:
    """A line for everything that is there, for a store from before there were journals."""
    for table, columns in tables.items():
        enter(connection, table, columns, -(2**63), 2**63 - 1)


def sign(before: str, table: str, place: int, row: Sequence[Any]) -> str:
    """The hash of a row that comes after the line with the hash `before`."""
    text = "\0".join(map(str, (before, table, place, *row)))
    return hashlib.blake2b(text.encode(), digest_size=ROW_HASH_BYTES).hexdigest()


def find_damage(connection: sqlite3.Connection, tables: Tables) -> list[str]:
    """What is not as it was written, in words: a sentence for each kind of harm to each table."""
    found: dict[tuple[str, str], list[str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for table, what, name in _compare(connection, tables):
        counts[table, what] += 1
        if counts[table, what] <= MOST_ROWS_NAMED:
            found.setdefault((table, what), []).append(name)
    return [_tell(*key, counts[key], names) for key, names in found.items()]


def _tell(table: str, what: str, count: int, names: list[str]) -> str:
    one, many = NOUNS.get(table, ("row", "rows"))
    said = what.format(**_SINGULAR if count == 1 else _PLURAL)
    return (
        f"{count} {one if count == 1 else many} {said}"
        f" ({', '.join(names)}{', ...' if count > MOST_ROWS_NAMED else ''})"
    )


def _compare(connection: sqlite3.Connection, tables: Tables) -> Iterator[tuple[str, str, str]]:
    """Of everything that is wrong: the table, what is wrong with it, and which row it is."""
    rows = {table: _Rows(connection, _select(table, columns)) for table, columns in tables.items()}
    types = {table: tuple(map(_type_of, columns.values())) for table, columns in tables.items()}
    last, before = 0, ""
    sql = f"SELECT number, part, place, hash FROM {TABLE} ORDER BY number"
    for number, part, place, mark in connection.execute(sql):
        if number != last + 1:
            yield TABLE, MISSING, str(last + 1)
        if part not in rows:
            yield TABLE, UNKNOWN, str(number)
        elif (row := rows[part].take(place)) is None:
            yield part, MISSING, str(place)
        elif sign(before, part, place, row[1:]) != mark or tuple(map(type, row[1:])) != types[part]:
            yield part, CHANGED, name_row(place, dict(zip(tables[part], row[1:], strict=True)))
        last, before = number, mark
    for table, held in rows.items():
        (there,) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        known = 0 if table == UNUSED_TABLE else held.taken
        if there > known:
            yield table, UNKNOWN, f"{there} in place of {known}"


def _type_of(kind: str) -> type:
    """What a cell is when it comes from SQLite, which would put text into a column of numbers if it
    were told to."""
    return int if kind in ("number", "count") else str


class _Rows:
    """The rows of a table, which are mostly asked for in the order in which they stand."""

    def __init__(self, connection: sqlite3.Connection, select: str):
        self._connection, self._lookup = connection, f"{select} WHERE rowid = ?"
        self._cursor = connection.execute(f"{select} ORDER BY rowid")
        self._next = self._cursor.fetchone()
        self.taken = 0
        """that were asked for and are there"""

    def take(self, place: int) -> Any:
        """The row of this place: the rowid, then its cells; None if there is none."""
        row = self._next
        if row is not None and row[0] == place:
            self._next = self._cursor.fetchone()
        else:
            row = self._connection.execute(self._lookup, (place,)).fetchone()
        self.taken += row is not None
        return row


def _select(table: str, columns: Mapping[str, str]) -> str:
    return f"SELECT rowid, {', '.join(columns)} FROM {table}"


def name_row(place: int, row: Mapping[str, Any]) -> str:
    """A row by its number and what helps to find it."""
    details = [
        f"{key} {str(row[key])[:40]!r}" for key in ("kind", "task", "instance") if key in row
    ]
    return f"{place}: {', '.join(details)}" if details else str(place)
