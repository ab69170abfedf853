"""A whole campaign as one .zip of plain JSON and png files; nothing in one that comes from
elsewhere is trusted.

campaign.json              format, version and the names of all other members
TABLE.jsonl                one row a line, for each table of the store
campaign.toml              the settings, if there are any
labels/HASH.png            delivered masks
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sqlite3
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from allotment import __version__
from allotment.amounts import short
from allotment.errors import InputError, Mistake
from allotment.files import beside, clear_halves_of, plainly, sign
from allotment.job import JSON, SHA256, Job, canonical, parse
from allotment.ledger import schema
from allotment.ledger.copies import keep_copy
from allotment.ledger.disk import (
    MASK_FOLDER,
    check_local,
    judge_content,
    judge_path,
    sync_tree,
)
from allotment.ledger.journal import find_damage
from allotment.ledger.schema import (
    JSON_KINDS,
    LARGEST_BODY,
    MIGRATIONS,
    TABLE_COLUMNS,
    judge_row,
    list_row_tables,
)
from allotment.ledger.store import LABEL_COLUMNS, MOST_FAULTS, Store
from allotment.machine import sync_file, sync_folder

FORMAT = "allotment campaign"
HEAD_FILE = "campaign.json"
"""of an archive: its format, the version that wrote it, and its members"""
SETTINGS = "campaign.toml"
LARGEST_SETTINGS = 10_000_000  # bytes
LARGEST_HEAD = 100_000_000
LONGEST_ARCHIVE_LINE = 3 * LARGEST_BODY
"""bytes of a row of the store, escaped as JSON"""
MOST_ARCHIVED_FILES = 200_000
"""files of a campaign in one archive"""
LARGEST_MEMBER_LIST = 300 * MOST_ARCHIVED_FILES
"""bytes of the list of members at the end of an archive"""
RATIO = 100
"""how many times larger than in the archive a member may be, beyond its first megabyte"""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MASK_MEMBER = re.compile(rf"{MASK_FOLDER}/[0-9a-f]{{64}}\.png")
_BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, NotImplementedError,
    RuntimeError, EOFError,
    ValueError, OverflowError, LookupError, OSError,
)  # fmt: skip
"""what reading a damaged archive may raise"""


def pack(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write a campaign into a new archive: the same bytes for the same campaign."""
    folder, path = Path(folder), Path(path)
    if path.exists():
        raise InputError(
            [Mistake(repr(str(path)), "is there already; choose another name, or remove it")]
        )
    with Store.open(folder, write=False) as store, plainly(path):
        files = _list_files(store)
        clear_halves_of(path)
        with beside(path) as half:
            with half.open("xb") as file:
                _write_archive(file, store, files)
                file.flush()
                sync_file(file.fileno())
            os.rename(half, path)
            sync_folder(path.parent)
    return path


def _write_archive(file: BinaryIO, store: Store, files: Mapping[str, Path]) -> None:
    archive = zipfile.ZipFile(file, "w")
    try:
        _write_members(archive, store, files)
        archive.close()
    except BaseException:
        # with a member half written it cannot be closed, and would say so in place of the cause
        archive.fp = None
        raise


def _list_files(store: Store) -> dict[str, Path]:
    """The files that the rows speak of, by the names of their members; raises InputError if any is
    missing."""
    names = {_find_mask(value) for value in store.list_label_values()} - {""}
    files = {name: store.folder / name for name in sorted(names)}
    missing = [path for path in files.values() if not path.is_file()]
    wrong = [
        Mistake(repr(str(path)), "is missing; put it back from a copy of the campaign")
        for path in missing
    ]
    if len(files) > MOST_ARCHIVED_FILES:
        wrong.append(
            Mistake(
                repr(str(store.folder)),
                f"has {len(files)} files, an archive holds {MOST_ARCHIVED_FILES}",
            )
        )
    if wrong:
        raise InputError(wrong[:MOST_FAULTS])
    if (store.folder / SETTINGS).is_file():
        files[SETTINGS] = store.folder / SETTINGS
    return files


def _find_mask(value: JSON) -> str:
    """The member with the mask that a label speaks of; nothing if it speaks of none."""
    png = value.get("png") if isinstance(value, dict) else None
    if isinstance(png, str) and SHA256.fullmatch(png):
        return f"{MASK_FOLDER}/{png}.png"
    return ""


def _write_members(archive: zipfile.ZipFile, store: Store, files: Mapping[str, Path]) -> None:
    tables = list(TABLE_COLUMNS[len(MIGRATIONS)])
    names = sorted([*(f"{table}.jsonl" for table in tables), *files])
    head = {
        "format": FORMAT,
        "version": len(MIGRATIONS),
        "allotment": __version__,
        "members": names,
    }
    _write_text(archive, HEAD_FILE, canonical(head) + "\n")
    for table in tables:
        _write_text(
            archive, f"{table}.jsonl", "".join(canonical(row) + "\n" for row in store.table(table))
        )
    for name in sorted(files):
        with files[name].open("rb") as file:
            info = _member(name, os.fstat(file.fileno()).st_size)
            with archive.open(info, "w") as member:
                shutil.copyfileobj(file, member, 1 << 20)


def _write_text(archive: zipfile.ZipFile, name: str, text: str) -> None:
    """A text, smaller where that helps but never so much smaller that it looks like a bomb."""
    data = text.encode()
    info = _member(name, len(data))
    if len(zlib.compress(data)) * RATIO > 2 * len(data):
        info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def _member(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system, info.external_attr, info.file_size = 3, 0o100644 << 16, size
    return info


def unpack(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    judge: Callable[[Path], Sequence[str]] | None = None,
) -> Path:
    """Make a campaign from an archive, in a new folder. All of it is right, or nothing is made.

    `judge` looks at the folder before anybody else sees it, and says what is wrong with it.
    """
    path, folder = Path(path), Path(folder)
    if os.path.lexists(folder):
        raise InputError(
            [Mistake(repr(str(folder)), "is there already; give the name of a new folder")]
        )
    check_local(folder)
    with _open(path) as archive:
        members = _check_members(archive, path)
        with plainly(folder):
            clear_halves_of(folder)
            half = Path(tempfile.mkdtemp(prefix=f"{sign(folder.name)}-", dir=folder.parent))
        try:
            with schema.translate(half / schema.STORE_FILE):
                _Import(archive, members, path, half).run()
                if faults := [] if judge is None else judge(half):
                    message = "; ".join(faults[:3]) + (" and more" if faults[3:] else "")
                    raise InputError(
                        [Mistake(repr(str(path)), f"is not a sound campaign: {message}")]
                    )
                half.chmod(0o755)
                sync_tree(half)
                half.rename(folder)
                sync_folder(folder.parent)
        except schema.Damaged as error:  # what was written a moment ago cannot be read
            shutil.rmtree(half, ignore_errors=True)
            what = (
                f"could not be unpacked ({error.how}); check the disk, then run the same command"
                " again"
            )
            raise InputError([Mistake(repr(str(path)), what)]) from error
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
    return folder


@contextlib.contextmanager
def _open(path: Path) -> Iterator[zipfile.ZipFile]:
    with contextlib.ExitStack() as stack:
        try:
            # reading a pipe or a device could wait for ever
            if not stat.S_ISREG(path.stat().st_mode):
                raise InputError(
                    [
                        Mistake(
                            repr(str(path)), "is not a file; give an archive made by `allot pack`"
                        )
                    ]
                )
            file = stack.enter_context(path.open("rb"))
        except OSError as error:
            what = f"cannot be read ({error.strerror}); check the path and its permissions"
            raise InputError([Mistake(repr(str(path)), what)]) from None
        with _reading(path):
            if _listing_size(file) > LARGEST_MEMBER_LIST:
                raise InputError(
                    [
                        Mistake(
                            repr(str(path)),
                            f"lists more than {MOST_ARCHIVED_FILES} files; is it the right one?",
                        )
                    ]
                )
            archive = stack.enter_context(zipfile.ZipFile(file))
        yield archive


@contextlib.contextmanager
def _reading(path: Path, member: str = "") -> Iterator[None]:
    """Whatever goes wrong within is the archive's fault."""
    try:
        yield
    except InputError:
        raise
    except _BROKEN as error:
        where = f"{str(path)!r}: {member}" if member else repr(str(path))
        what = f"is not a whole archive ({short(str(error))}); pack or copy it again"
        raise InputError([Mistake(where, what)]) from None


def _listing_size(file: BinaryIO) -> int:
    """Of the list of members, which zipfile reads at once however long it is; an archive of ours
    has no comment."""
    size = file.seek(0, io.SEEK_END)
    file.seek(-min(98, size), io.SEEK_END)
    end = file.read(98)
    if end[-22:-18] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise zipfile.BadZipFile("it does not end as an archive does")
    large = int.from_bytes(end[-58:-50], "little") if end[-42:-38] == b"PK\6\7" else 0
    return max(large, int.from_bytes(end[-10:-6], "little") % 0xFFFFFFFF)


def _check_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The members by name; raises InputError with all that are not what an archive of a campaign
    has."""
    wrong: list[Mistake] = []
    seen: dict[str, zipfile.ZipInfo] = {}
    infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if len(infos) > MOST_ARCHIVED_FILES + 100:
        wrong.append(Mistake("", f"has {len(infos)} members, the limit is {MOST_ARCHIVED_FILES}"))
    end = 0
    for info in infos:
        what = _judge_member(info)
        if not what and info.filename in seen:
            what = "is there twice; pack the campaign again"
        if not what and info.header_offset < end:
            what = "overlaps another member; pack the campaign again"
        end = info.header_offset + 30 + info.compress_size
        seen[info.filename] = info
        if what and len(wrong) < MOST_FAULTS:
            wrong.append(Mistake(_show(info.orig_filename), what))
    if wrong:
        raise InputError(mistake.under(repr(str(path))) for mistake in wrong)
    return seen


def _judge_member(info: zipfile.ZipInfo) -> str:
    name = info.orig_filename
    if what := judge_path(name) or _judge_place(name):
        return what
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG) or info.external_attr & 0x10:
        return "is a link, a folder or a device; an archive holds plain files only"
    if info.flag_bits & 0x41:
        return "is encrypted; pack the campaign again without a password"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in an unusual way; pack the campaign again"
    if info.file_size > 10**6 + RATIO * info.compress_size:
        return (
            f"would grow from {info.compress_size} to {info.file_size} bytes; such archives fill"
            " disks"
        )
    return ""


def _judge_place(name: str) -> str:
    if name in {
        HEAD_FILE,
        SETTINGS,
        *(f"{table}.jsonl" for version in TABLE_COLUMNS.values() for table in version),
    }:
        return ""
    if _MASK_MEMBER.fullmatch(name):
        return ""
    return "is unknown; an archive of a campaign has nothing but its own files"


def _show(name: str) -> str:
    return name if name.isprintable() and len(name) <= 100 else short(name)


class _Import:
    """An archive on its way into a folder that nobody sees yet."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        members: Mapping[str, zipfile.ZipInfo],
        path: Path,
        folder: Path,
    ):
        self.archive, self.members, self.path, self.folder = archive, members, path, folder
        self.named: set[str] = set()  # files that the rows speak of
        self.wrong: list[Mistake] = []

    def run(self) -> None:
        version = self._read_head()
        self._check_space()
        schema.build(self.folder / schema.STORE_FILE, version)
        connection = schema.connect(self.folder / schema.STORE_FILE, write=True)
        try:
            connection.execute("BEGIN")
            for table, columns in TABLE_COLUMNS[version].items():
                self._fill(connection, table, columns)
            self._check_numbers(connection)
            self._raise()
            connection.execute("COMMIT")
            schema.migrate(connection, len(MIGRATIONS))
            self.wrong += [
                self._mistake("", f"{what}; pack it again")
                for what in find_damage(connection, list_row_tables())
            ]
            self._raise()
            keep_copy(connection, self.folder)
        finally:
            connection.close()
        self._extract()
        self._raise()

    def _mistake(self, member: str, what: str, line: int | None = None) -> Mistake:
        return Mistake(f"{str(self.path)!r}{': ' if member else ''}{member}", what, line)

    def _raise(self) -> None:
        if self.wrong:
            raise InputError(self.wrong[:MOST_FAULTS])

    def _read_head(self) -> int:
        """The version; the members are exactly those that the head lists."""
        if HEAD_FILE not in self.members or self.members[HEAD_FILE].file_size > LARGEST_HEAD:
            raise InputError(
                [self._mistake("", f"has no {HEAD_FILE}: it was not made by `allot pack`")]
            )
        with _reading(self.path, HEAD_FILE):
            head = parse(self.archive.read(self.members[HEAD_FILE]))
        match head:
            case {
                "format": str(name),
                "version": int(version),
                "allotment": str(),
                "members": list(members),
                **rest,
            }:
                good = name == FORMAT and not rest and not isinstance(version, bool)
            case _:
                good = False
        if not good or not all(isinstance(member, str) for member in members):
            raise InputError(
                [self._mistake(HEAD_FILE, "is not the head of a campaign's archive; pack it again")]
            )
        if version not in TABLE_COLUMNS:
            what = (
                f"is of version {short(version)}, this program knows {max(TABLE_COLUMNS)}; upgrade"
                " allotment"
            )
            raise InputError([self._mistake(HEAD_FILE, what)])
        tables = {f"{table}.jsonl" for table in TABLE_COLUMNS[version]}
        there = set(self.members) - {HEAD_FILE}
        if there != set(members) or len(set(members)) < len(members) or not tables <= there:
            odd = sorted((set(members) | tables) ^ there)
            what = (
                f"members are missing or too many ({', '.join(map(_show, odd[:5]))}); pack it again"
            )
            raise InputError([self._mistake("", what)])
        return int(version)

    def _check_space(self) -> None:
        total = sum(info.file_size for info in self.members.values())
        with plainly(self.folder):
            free = shutil.disk_usage(self.folder).free
        if total > free:
            what = f"needs {total / 10**6:.0f} MB and the disk has {free / 10**6:.0f} MB; make room"
            raise InputError([self._mistake("", what)])

    def _fill(self, connection: sqlite3.Connection, table: str, columns: Mapping[str, str]) -> None:
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        for line, row in self._lines(table, columns):
            if "needs" in columns and _key(row) != row["key"]:
                self._note(table, "the key is not that of the job", line)
            for name in LABEL_COLUMNS.get(table, ()):
                self.named |= {_find_mask(row[name])} - {""}
            cells = [
                canonical(row[name]) if kind in JSON_KINDS else row[name]
                for name, kind in columns.items()
            ]
            try:
                connection.execute(sql, cells)
            except sqlite3.IntegrityError as error:
                self._note(table, f"contradicts another row ({error})", line)

    def _note(self, table: str, what: str, line: int) -> None:
        self.wrong.append(self._mistake(f"{table}.jsonl", f"{what}; pack it again", line))
        if len(self.wrong) >= MOST_FAULTS:
            self._raise()

    def _lines(
        self, table: str, columns: Mapping[str, str]
    ) -> Iterator[tuple[int, dict[str, JSON]]]:
        """The rows of a table that have the right columns, each with a value of its kind."""
        member = f"{table}.jsonl"
        with _reading(self.path, member), self.archive.open(self.members[member]) as file:
            lines = iter(partial(file.readline, LONGEST_ARCHIVE_LINE), b"")
            for number, text in enumerate(lines, 1):
                try:
                    row = parse(text)
                except ValueError as error:
                    self._note(table, f"is not JSON ({short(str(error))})", number)
                    continue
                if what := judge_row(row, columns):
                    self._note(table, what, number)
                    continue
                yield number, row

    def _check_numbers(self, connection: sqlite3.Connection) -> None:
        """What is numbered begins at 1 and has no gaps: whoever adds the next relies on it."""
        for table, column, group in (
            ("settings", "number", "''"), ("results", "number", "''"), ("deliveries", "number",
            "''"),
            ("records", "number", "kind"), ("items", "position + 1", "order_id"),
        ):  # fmt: skip
            sql = (
                f"SELECT 1 FROM {table} GROUP BY {group} HAVING COUNT(*) != MAX({column}) OR"
                f" MIN({column}) != 1"
            )
            if connection.execute(sql).fetchone():
                self.wrong.append(
                    self._mistake(f"{table}.jsonl", "has gaps in its numbers; pack it again")
                )

    def _extract(self) -> None:
        """The files, each of which the rows must speak of."""
        there = {name for name in self.members if "/" in name}
        for name in sorted(there ^ self.named)[:MOST_FAULTS]:
            what = "is missing" if name in self.named else "belongs to nothing in the store"
            self.wrong.append(self._mistake(_show(name), f"{what}; pack the campaign again"))
        self._raise()
        for name in sorted(there | ({SETTINGS} & set(self.members))):
            with plainly(self.folder):
                what = self._extract_one(name)
            if what:
                self.wrong.append(self._mistake(name, what))
                if len(self.wrong) >= MOST_FAULTS:
                    break

    def _extract_one(self, name: str) -> str:
        """Write a file; what is wrong with it."""
        size, target = self.members[name].file_size, self.folder / name
        if name == SETTINGS and size > LARGEST_SETTINGS:
            return "is too large for settings; is it the right file?"
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            for part in self._parts(name):
                out.write(part)
            out.flush()
            sync_file(out.fileno())
        with target.open("rb") as written:
            return judge_content(name, written, size)

    def _parts(self, name: str) -> Iterator[bytes]:
        """Apart from the writing, whose errors are not the archive's fault."""
        with _reading(self.path, name), self.archive.open(self.members[name]) as file:
            while part := file.read(1 << 20):
                yield part


def _key(row: Mapping[str, JSON]) -> str:
    try:
        return Job(row["kind"], row["needs"], row["versions"]).key
    except InputError:
        return ""
