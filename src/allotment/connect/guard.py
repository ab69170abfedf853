"""Files that somebody else made, taken apart with bounded memory: lines, CSV records, JSON, folders
and archives.

A reason is a sentence without the place, raised as ValueError; who catches it knows the place.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import stat
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import IO, Any

from allotment.amounts import short
from allotment.data.encodings import WESTERN
from allotment.data.pixels import Unread, shown
from allotment.errors import MOST_HINTS, InputError, Mistake, cut, suggest
from allotment.files import MOST_UNPACKING
from allotment.machine import is_trouble

LONGEST_DELIVERY_LINE = 1 << 20
"""bytes of a line, and of a CSV record of several lines"""
MOST_RECORD_LINES = 10_000
"""lines of one record of a CSV file"""
MOST_REFUSALS = 100_000
"""refusals that are listed; more are only counted"""
MOST_REFUSED_LETTERS = 1 << 25
"""letters of refused rows that are kept to be mended, in all, and a thousandth of that in one
row"""
LONGEST_TOLD = 4000
"""letters of a place or a reason"""
MOST_DIGITS = 300
"""of a whole number, which as a float can have 308"""
MOST_DELIVERED_FILES = 1_000_000
"""files of a folder that is delivered"""
DEEPEST_FOLDER = 30
"""folders within folders of a delivery"""
LARGEST_MASK = 1 << 26
"""bytes of one mask"""
LARGEST_DELIVERY_LIST = 1 << 23
"""bytes of an archive's list of files, since each of its entries takes ten times as much in
memory"""
MOST_UNPACKED = 1 << 34
"""bytes of all files of an archive"""

Fetch = Callable[[], tuple[Path, str]]
"""puts a file where it can be read: a root and the path below it"""


Written = tuple[str, str, str]
"""a task, an instance and a label as they were written"""


@dataclass(frozen=True)
class Picture:
    """A file that is a label, by its name TASK/INSTANCE.png; fetched when it is looked at."""

    name: str
    fetch: Fetch


@dataclass(frozen=True)
class Refusal:
    """Something that can't be read, where it stands, and why."""

    where: str
    reason: str


class Refused:
    """What could not be taken, each with its place and a reason; a bounded list."""

    def __init__(self) -> None:
        self.listed: list[tuple[str, str]] = []
        self.rows: list[Written | None] = []
        """of each that is listed what can be mended and given again; None where it can't be read,
        or is too long"""
        self.more = 0
        self._hints = 0
        self._kept = 0

    def add(self, where: str, reason: str, row: Written | None = None) -> None:
        if len(self.listed) >= MOST_REFUSALS:
            self.more += 1
            return
        size = 0 if row is None else sum(map(len, row))
        fits = size <= MOST_REFUSED_LETTERS >> 10 and self._kept + size <= MOST_REFUSED_LETTERS
        self._kept += size if fits else 0
        self.listed.append((cut(where, LONGEST_TOLD), cut(reason, LONGEST_TOLD)))
        self.rows.append(row if fits else None)

    def hint(self, name: object, known: Iterable[str]) -> str:
        """A near miss while there are few to look for, and then only what is known."""
        self._hints += 1
        if self._hints <= MOST_HINTS:
            return suggest(name, map(_cut, known))
        first = [_cut(name) for name in itertools.islice(known, 6)]
        return f"known: {', '.join(first[:5])}{', ...' if first[5:] else ''}"

    def all(self) -> list[tuple[str, str]]:
        """Everything, the last of it a count of what is not listed."""
        rest = (
            [("", f"and {self.more} more that are not listed; mend these first")]
            if self.more
            else []
        )
        return self.listed + rest


def _cut(name: str) -> str:
    """A name that is safe to print: it may be a column of a megabyte."""
    return shown(name[:40])


def show_value(value: object) -> str:
    """Any value of JSON, short and safe to print."""
    if isinstance(value, dict | list):  # the text of what is nested deeply would need a deep stack
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    return json.dumps(value) if value is None or isinstance(value, bool) else short(value)


def refuse(path: Path, what: str, line: int | None = None) -> InputError:
    """That a file as a whole is no use."""
    return InputError([Mistake(shown(str(path)), what, line)])


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Which file it is that the disk will not give."""
    try:
        yield
    except OSError as error:
        if not is_trouble(error):
            raise
        raise Unread(str(path), error) from None


@contextmanager
def open_plain(path: Path) -> Iterator[IO[bytes]]:
    """The file, for reading; raises InputError for anything but a plain one."""
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = (
            "there is no such file"
            if missing
            else f"can't be read ({getattr(error, 'strerror', None) or error})"
        )
        raise refuse(path, f"{reason}; check the path") from None
    with _telling(path), os.fdopen(handle, "rb") as file:
        # reading a pipe or a device could wait forever
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise refuse(path, "is not a plain file; save the labels to one first")
        yield file


# Lines, records, JSON


def find_start(path: Path, file: IO[bytes]) -> int:
    """Where the text begins, after the mark that some programs put before it."""
    file.seek(0)
    head = file.read(3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise refuse(path, "is UTF-16 text; save it as UTF-8")
    return 3 if head == b"\xef\xbb\xbf" else 0


def read_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers; None stands for one that is too long to be looked at."""
    number = 0
    while piece := file.readline(LONGEST_DELIVERY_LINE + 1):
        number += 1
        if len(piece) <= LONGEST_DELIVERY_LINE:
            yield number, piece
            continue
        while piece and not piece.endswith(b"\n"):
            piece = file.readline(LONGEST_DELIVERY_LINE)
        yield number, None


def read_records(file: IO[bytes], delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """The rows of a CSV file that are not blank, each with its first line; a text is the reason why
    one can't be read.

    After a record of several lines that is none, reading goes on at its second line: a quote too
    many costs one row.
    """
    source, ahead = read_lines(file), deque[tuple[int, bytes | None]]()
    while (first := ahead.popleft() if ahead else next(source, None)) is not None:
        number, piece = first
        pieces, more = [piece or b""], []
        size, is_open = len(pieces[0]), pieces[0].count(b'"') % 2
        while is_open and (line := ahead.popleft() if ahead else next(source, None)) is not None:
            more.append(line)
            if (
                line[1] is None
                or size + len(line[1]) > LONGEST_DELIVERY_LINE
                or len(more) > MOST_RECORD_LINES
            ):
                break
            pieces.append(line[1])
            size += len(line[1])
            is_open ^= line[1].count(b'"') % 2
        try:
            cells = parse_record(None if piece is None else b"".join(pieces), delimiter)
        except ValueError as error:
            ahead.extendleft(reversed(more))
            yield number, str(error)
        else:
            if any(cells):
                yield number, cells


def parse_record(record: bytes | None, delimiter: str) -> list[str]:
    """The cells of one CSV record; raises ValueError with the reason."""
    text = _decode_spreadsheet(record) if delimiter == ";" else decode(record)
    if text.count('"') % 2:
        raise ValueError(
            'a quote (") is opened here and never closed; close it, or double it if it belongs to'
            " the text"
        )
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        if "field limit" in str(error):
            raise ValueError(
                f"a cell has more than {csv.field_size_limit()} characters; is a quote missing?"
            ) from None
        if "new-line" in str(error):
            raise ValueError(
                "a carriage return stands alone in it; save it with line feeds"
            ) from None
        reason = shown(str(error))  # which may hold a tab
        raise ValueError(
            f"{reason}; a cell that holds a quote is put between quotes, its own quotes doubled"
        ) from None


def _decode_spreadsheet(line: bytes | None) -> str:
    """A line with semicolons, which is what spreadsheets write where the comma is the decimal sign,
    often in the letters of Windows."""
    try:
        return decode(line)
    except ValueError:
        if line is None or b"\0" in line:
            raise
        try:
            return line.decode(WESTERN)
        except UnicodeDecodeError:
            pass
        raise


def decode(line: bytes | None) -> str:
    """A line as text; raises ValueError with the reason why it is none."""
    if line is None:
        raise ValueError(
            f"has more than {LONGEST_DELIVERY_LINE >> 20} MB in one line; is it the right file?"
        )
    if b"\0" in line:
        raise ValueError("holds a NUL byte, so it is not text; save it as UTF-8 text")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"byte 0x{line[error.start]:02x} is not UTF-8; save it as UTF-8 text"
        ) from None


def parse_json(text: str) -> Any:
    """A JSON value; raises ValueError with the reason. No key may stand twice, and every number is
    finite."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("is JSON nested too deeply; a label is a few levels deep") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"has the key {short(name)} twice; keep one")
        made[name] = value
    return made


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a finite number; write null where there is none")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _constant(short(text))


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"holds a number of {len(text)} digits; is it the right column?")
    return int(text)


# Folders and archives


def walk_folder(root: Path) -> Iterator[Picture | Refusal]:
    """The files below a folder in the order of their names; links are refused, never followed."""
    waiting, count = [""], 0
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                found = sorted(
                    itertools.islice(entries, MOST_DELIVERED_FILES + 1),
                    key=lambda entry: entry.name,
                )
        except OSError as error:
            if is_trouble(error):
                raise Unread(str(root / folder), error) from None
            what = f"can't be listed ({error.strerror}); see that it may be read"
            yield Refusal(shown(folder) or "the folder", what)
            continue
        inner = []
        for entry in found:
            name = f"{folder}/{entry.name}" if folder else entry.name
            count += 1
            if count > MOST_DELIVERED_FILES:
                raise refuse(
                    root, f"holds more than {MOST_DELIVERED_FILES:,} files; give it in parts"
                )
            if is_clutter(entry.name):
                continue
            if entry.is_symlink():
                yield Refusal(
                    shown(name), "is a link, which is not followed; put the file itself there"
                )
            elif entry.is_dir(follow_symlinks=False):
                if name.count("/") < DEEPEST_FOLDER:
                    inner.append(name)
                else:
                    yield Refusal(
                        shown(name),
                        f"is more than {DEEPEST_FOLDER} folders deep; put it further up",
                    )
            elif not entry.is_file(follow_symlinks=False):
                yield Refusal(shown(name), "is a pipe or a device; put a file there")
            else:
                yield Picture(name, _where(root, name))
        waiting += reversed(inner)


def _where(root: Path, name: str) -> Fetch:
    return lambda: (root, name)


def is_clutter(name: str) -> bool:
    """Whether a file is what systems leave lying about."""
    return (name.startswith(".") and name not in (".", "..")) or name in (
        "__MACOSX",
        "Thumbs.db",
        "desktop.ini",
    )


def walk_archive(path: Path, scratch: Path) -> Iterator[Picture | Refusal]:
    """The files of a zip archive, each unpacked alone into the scratch folder, under a name of
    ours."""
    with open_plain(path) as file:
        _check_listing(path, file)
        try:
            archive = zipfile.ZipFile(file)
        except MemoryError:
            raise
        except Exception as error:  # of a damaged list it raises almost anything
            raise refuse(
                path, f"is not a whole zip archive ({type(error).__name__}); pack it again"
            ) from None
        members = archive.infolist()
        if sum(member.file_size for member in members) > MOST_UNPACKED:
            raise refuse(path, f"unpacks to more than {MOST_UNPACKED >> 30} GB; give it in parts")
        for member in members:
            name = member.filename
            if name.endswith("/") or any(map(is_clutter, name.split("/"))):
                continue
            if reason := _unfit(member):
                yield Refusal(shown(name), reason)
            else:
                yield Picture(name, _unpacked(archive, member, scratch))


def _check_listing(path: Path, file: IO[bytes]) -> None:
    """Raise InputError unless the archive's list of files is short enough to be read into
    memory."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    at = len(tail) - 22
    if at < 0 or tail[at : at + 4] != b"PK\5\6" or tail[-2:] != b"\0\0":
        at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) < at + 22:
        raise refuse(path, "is not a zip archive, or its end is missing; pack it again")
    large = tail[max(0, at - 20) : max(0, at - 16)] == b"PK\6\7"
    if large or struct.unpack_from("<L", tail, at + 12)[0] > LARGEST_DELIVERY_LIST:
        raise refuse(
            path,
            "is an archive of far too many files; unpack it and give the folder, or give it in"
            " parts",
        )


def _unfit(member: zipfile.ZipInfo) -> str:
    """Why a file of an archive is not unpacked; "" if it can be."""
    given = PureWindowsPath(member.filename)  # which knows both slashes and drive letters
    parts = member.filename.replace("\\", "/").split("/")
    if (
        given.is_absolute()
        or given.drive
        or given.root
        or ".." in parts
        or "\\" in member.orig_filename
    ):
        return "is not a plain path below the archive; pack it with paths such as TASK/INSTANCE.png"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a link, which is not followed; pack the file itself"
    if member.flag_bits & 1:
        return "has a password; pack it without"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way; pack it with the usual one (deflate)"
    if member.file_size > LARGEST_MASK:
        return (
            f"unpacks to {member.file_size} bytes, more than the {LARGEST_MASK} that are read; make"
            " it smaller"
        )
    if member.file_size > max(1 << 20, MOST_UNPACKING * member.compress_size):
        return f"unpacks to more than {MOST_UNPACKING} times its size; save it as a usual PNG"
    return ""


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, scratch: Path) -> Fetch:
    def fetch() -> tuple[Path, str]:
        try:
            # in pieces, since one large one would be unpacked before it is cut
            with archive.open(member) as file:
                content = b"".join(iter(lambda: file.read(1 << 16), b""))
        except MemoryError:
            raise
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            ValueError,
            RuntimeError,
            struct.error,
        ) as error:
            if isinstance(error, OSError) and is_trouble(error):
                raise Unread(member.filename, error) from None
            raise ValueError(f"is damaged ({type(error).__name__}); pack it again") from None
        try:
            (scratch / "mask.png").write_bytes(content)
        except OSError as error:
            raise refuse(
                scratch, f"can't be written to ({error.strerror}); make space there"
            ) from None
        return scratch, "mask.png"

    return fetch
