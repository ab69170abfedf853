"""Tables as text: CSV and TSV, packed or not, in whatever way their letters and numbers are
written."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import sys
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import MOST_CELLS, Column, read_numbers, text_column
from allotment.data.encodings import UTF_8, check_encoding, find_encoding
from allotment.data.open_file import LARGE, OpenFile, Read, check_steepness, check_width, refuse
from allotment.data.plain_csv import PlainBatch, PlainReader, find_plain_reader
from allotment.errors import InputError, Mistake
from allotment.mistakes import MOST_LISTED

LONGEST_TABLE_LINE = 2**24
"""bytes of a line"""
CELLS_AT_ONCE = 2**20
"""cells of a CSV file that are held as text at a time"""
PIECES_AT_ONCE = 4
"""of a plain file, so that some are parsed while the one before is taken over"""
MORE_ROWS = 1.05
"""times the rows of a file by its first ones, for which memory is set aside"""
MOST_GROWTH = 4
"""times the numbers that are there, for which memory is set aside at most"""
UNPACK = "if it is the right file, unpack it first (gunzip)"
SEPARATORS = ";\t|,"
"""what may stand between cells in place of what the file's name says"""
DECIMALS = (".", ",")
"""signs that a number may have before its fraction"""


@dataclass(frozen=True)
class Layout:
    """How a table is written, as far as somebody says so."""

    delimiter: str | None = None
    """between cells; what the file's name says if None"""
    encoding: str | None = None
    """of its letters; UTF-8 if None"""
    decimal: str | None = None
    """before the fraction of a number; a point if None"""
    sheet: str | None = None
    """of a workbook; its first one if None"""


class RowBatch(Protocol):
    """Some rows of a file, and the lines on which they begin."""

    @property
    def lines(self) -> Sequence[int]: ...

    def texts(self, place: int) -> Sequence[str]:
        """The cells of a column as they are written."""

    def numbers(self, place: int) -> NDArray[np.float64] | None:
        """The same as numbers, NaN where there is none; None if one of them is something else."""


class GrowingArray:
    """Numbers of which parts come one after the other; each is free once it is here."""

    def __init__(self) -> None:
        self._held, self._count = np.empty(0), 0

    def add(self, part: NDArray[np.float64], expected: int) -> None:
        """A part, after which there may be as many as expected."""
        count = self._count + len(part)
        if count > len(self._held):
            grown = np.empty(max(count, min(expected, MOST_GROWTH * count)))
            grown[: self._count] = self._held[: self._count]
            self._held = grown
        self._held[self._count : count] = part
        self._count = count

    @property
    def values(self) -> NDArray[np.float64]:
        return self._held[: self._count]


@dataclass(frozen=True)
class _TextBatch:
    """Rows as the csv module reads them."""

    lines: Sequence[int]
    cells: list[tuple[str, ...]]
    decimal: str

    def texts(self, place: int) -> Sequence[str]:
        return self.cells[place]

    def numbers(self, place: int) -> NDArray[np.float64] | None:
        return read_numbers(self.cells[place], self.decimal)


@dataclass(frozen=True)
class TextFile:
    """A text file that is open, and how it is to be read."""

    file: OpenFile
    delimiter: str
    encoding: str
    decimal: str

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def is_packed(self) -> bool:
        return self.path.name.lower().endswith(".gz")

    def begin(self) -> IO[bytes]:
        """The bytes of the file, or what is unpacked from it, from the first on."""
        packed = self.file.begin()
        return gzip.GzipFile(fileobj=packed) if self.is_packed else packed  # type: ignore[return-value]


def open_text(file: OpenFile, usual: str, layout: Layout) -> TextFile:
    """The file with what is said of how it is written; `usual` stands between its cells unless
    something else is said."""
    delimiter = layout.delimiter or usual
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(
            [Mistake("delimiter", f"{delimiter!r} is not a single character between cells")]
        )
    decimal = layout.decimal or "."
    if decimal not in DECIMALS:
        raise InputError([Mistake("decimal", f"{decimal!r} is neither '.' nor ','")])
    encoding = UTF_8 if layout.encoding is None else check_encoding(layout.encoding)
    return TextFile(file, delimiter, encoding, decimal)


def open_csv(text: TextFile) -> tuple[tuple[str, ...], Read, Callable[[Column], Column]]:
    """The names of the columns, what reads some of these, and what makes numbers of texts."""
    path = text.path
    if text.is_packed:
        _check_start(text.file)
    header, names = _read_header(text)
    check_width(path, len(names))
    if len(names) == 1 and (other := next((each for each in SEPARATORS if each in names[0]), "")):
        raise refuse(
            path,
            f"has one column only, {names[0][:80]!r}; are its cells separated by {other!r}?"
            " (delimiter)",
        )

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        columns, late = _gather(text, header, names, wanted, as_text)
        if late:  # what began as numbers and turned into texts after the first rows
            columns |= _gather(text, header, names, late, late)[0]
        return columns

    def guess(column: Column) -> Column:
        return guess_column(column, text.decimal)

    return tuple(names), read, guess


def find_layout(file: OpenFile, usual: str, given: Layout) -> tuple[Layout, list[str]]:
    """How a text file is written as far as nobody said so, but for its decimal sign; and a word on
    whatever is not as usual."""
    found, notes = given, []
    if given.encoding is None:
        text = TextFile(file, usual, UTF_8, ".")

        def watch(size: int) -> None:
            if size > LARGE and text.is_packed:
                check_steepness(file.path, file.position, size, UNPACK)

        with _unpacking(file.path):
            encoding, word = find_encoding(text.begin, watch)
        if encoding is None:
            what = (
                "is neither UTF-8 nor Western European text (cp1252); say how it is written, such"
                " as --encoding cp850, cp1250, cp1251 or shift_jis"
            )
            raise refuse(file.path, what)
        if encoding != UTF_8:
            found = replace(found, encoding=encoding)
            shown = f", as in {word!r}; if that is misspelt, say another" if word else ""
            notes.append(f"the file is not UTF-8; it is read as {encoding} (--encoding){shown}")
    if given.delimiter is None:
        names = _read_header(open_text(file, usual, found))[1]
        others = {each: names[0].count(each) for each in SEPARATORS if each in names[0]}
        if len(names) == 1 and others:
            other = max(others, key=lambda each: others[each])
            found = replace(found, delimiter=other)
            notes.append(f"cells are separated by {other!r} (--delimiter)")
    return found, notes


def _read_header(text: TextFile) -> tuple[int, list[str]]:
    """How many lines the names of the columns take, and these names."""
    with _unpacking(text.path):
        found = next(_records(text, _lines(text, text.begin())), None)
    if found is None:
        raise refuse(text.path, "is empty; a table begins with a line that names its columns")
    return found[1], found[2]


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Around whatever reads a file that may be packed."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = f"is not a whole gzip file ({error}); compress it again"
        raise refuse(path, what) from None


def _records(
    text: TextFile, lines: Iterator[str], before: int = 0
) -> Iterator[tuple[int, int, list[str]]]:
    """The rows that are not blank, each with the lines that it begins and ends on."""
    reader = csv.reader(lines, delimiter=text.delimiter, strict=True)
    line = before + 1
    try:
        for row in reader:
            if row:
                yield line, before + reader.line_num, row
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise refuse(text.path, _csv_reason(str(error)), line) from None


def _check_start(file: OpenFile) -> None:
    """That the first part of a packed file unpacks to no more than it may: as lines it would take
    far longer."""
    try:
        packed, size = file.begin(), 0
        with gzip.GzipFile(fileobj=packed) as stream:
            while size <= LARGE and (piece := stream.read(CELLS_AT_ONCE)):
                size += len(piece)
            check_steepness(file.path, packed.tell(), size, UNPACK)
    except (EOFError, zlib.error, gzip.BadGzipFile):  # which is said when its rows are read
        return


def _lines(text: TextFile, stream: IO[bytes], before: int = 0) -> Iterator[str]:
    """The lines of a stream, of which some may have been read before."""
    if text.encoding != UTF_8:
        yield from _other_lines(text, stream)
        return
    path, number, size = text.path, before, 0
    while piece := stream.readline(LONGEST_TABLE_LINE + 1):
        number += 1
        size += len(piece)
        _check_line(text, piece, number, size)
        if number == 1 and piece.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise refuse(path, 'is UTF-16 text; save it as UTF-8, or say so (encoding = "utf-16")')
        if b"\0" in piece:
            raise refuse(path, "holds a NUL byte, so it is not text; save it as UTF-8 text", number)
        try:
            yield piece.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = (
                f"byte 0x{piece[error.start]:02x} is not UTF-8; save the file as UTF-8 text, or say"
                ' how it is written (encoding = "cp1252")'
            )
            raise refuse(path, what, number) from None


def _other_lines(text: TextFile, stream: IO[bytes]) -> Iterator[str]:
    """The lines of a file that is written in another way than UTF-8."""
    wrapped = io.TextIOWrapper(stream, text.encoding, newline="\n")
    number = size = 0
    try:
        while piece := wrapped.readline(LONGEST_TABLE_LINE + 1):
            number += 1
            size += len(piece)
            _check_line(text, piece, number, size)
            if "\0" in piece:
                what = f"holds a NUL character, so it is not {text.encoding} text (encoding)"
                raise refuse(text.path, what, number)
            yield piece.removeprefix("\ufeff") if number == 1 else piece
    except UnicodeError:
        what = f"is not {text.encoding} text throughout; say how it is written (encoding)"
        raise refuse(text.path, what, number + 1) from None
    finally:
        wrapped.detach()


def _check_line(text: TextFile, piece: Sequence[object], number: int, size: int) -> None:
    if size > LARGE and text.is_packed:
        check_steepness(text.path, text.file.position, size, UNPACK)
    if len(piece) > LONGEST_TABLE_LINE:
        what = f"has a line of more than {LONGEST_TABLE_LINE >> 20} MB; is it the right file?"
        raise refuse(text.path, what, number)


def _csv_reason(error: str) -> str:
    if "field limit" in error:
        limit = csv.field_size_limit()
        return (
            f"a cell has more than {limit} characters; is a quote not closed? "
            "(csv.field_size_limit sets how many it may have)"
        )
    if "unexpected end" in error:
        return 'a quote (") is opened here and never closed'
    if "new-line" in error:
        return "a line ends in a bare carriage return; save it with line feeds"
    return (
        f"{error}; a cell that holds a quote is written between quotes, with each quote of its own"
        " doubled"
    )


def _gather(
    text: TextFile,
    header: int,
    names: Sequence[str],
    wanted: Collection[str],
    as_text: Collection[str],
) -> tuple[dict[str, Column], set[str]]:
    """The columns, and those that began as numbers but are texts further down."""
    at = {name: place for place, name in enumerate(names)}
    floats = {name: GrowingArray() for name in wanted if name not in as_text}
    texts: dict[str, list[str]] = {name: [] for name in wanted if name in as_text}
    late: set[str] = set()
    lines = array("q")
    places = {at[name] for name in wanted}
    for batch, end in _batches(text, header, len(names), places, {at[name] for name in texts}):
        expected = _guess_rows(text, len(lines) + len(batch.lines), end)
        for name in list(floats):
            values = batch.numbers(at[name])
            if values is not None:
                floats[name].add(values, expected)
            else:
                del floats[name]
                if lines:
                    late.add(name)
                else:
                    texts[name] = []
        for name, held in texts.items():
            held.extend(map(sys.intern, batch.texts(at[name])))  # categories repeat: keep one
        lines.extend(batch.lines)
    if not lines:
        raise refuse(text.path, "has a header but no rows below it")
    columns = {name: Column(name, held.values, lines=lines) for name, held in floats.items()}
    for name, held in texts.items():
        columns[name] = text_column(name, held, lines, keep=name in as_text)
    return columns, late


def _guess_rows(text: TextFile, read: int, end: int) -> int:
    """How many rows there will be if the others are as long as those that were read up to there,
    and a few more."""
    return int(MORE_ROWS * read * text.file.size / max(1, end))


def _batches(
    text: TextFile, header: int, width: int, wanted: Collection[int], texts: Collection[int]
) -> Iterator[tuple[RowBatch, int]]:
    """All rows below the names of the columns, each batch with where it ends in the file: fast as
    long as they are plain, with care from the first place on where they are not."""
    rows, line = 0, header
    with _unpacking(text.path):
        stream = text.begin()
        reader = find_plain_reader(text.file.size, texts) if _may_be_plain(text) else None
        if reader is not None:
            for _ in range(header):
                stream.readline(LONGEST_TABLE_LINE + 1)
            for batch, end in _plain_batches(reader, text, stream, line, width, wanted):
                rows, line = rows + len(batch.lines), line + len(batch.lines)
                _check_cells(text.path, rows * len(wanted))
                yield batch, end
            lines = _lines(text, stream, line)
            records = _records(text, lines, line)
        else:
            records = itertools.islice(_records(text, _lines(text, stream)), 1, None)
        for batch in _careful_batches(text, records, rows, width, len(wanted)):
            yield batch, text.file.position


def _may_be_plain(text: TextFile) -> bool:
    return text.encoding == UTF_8 and text.decimal == "." and not text.is_packed


def _plain_batches(
    reader: PlainReader,
    text: TextFile,
    stream: IO[bytes],
    line: int,
    width: int,
    wanted: Collection[int],
) -> Iterator[tuple[RowBatch, int]]:
    """As many rows as are plain, each batch with where it ends; the stream then stands where the
    others begin."""
    parsed: deque[tuple[int, int, Future[PlainBatch | None]]] = deque()
    with ThreadPoolExecutor(PIECES_AT_ONCE) as threads:
        while True:
            # the first piece shows which columns are numbers, so nothing is begun beside it
            ahead = PIECES_AT_ONCE if reader.knows_numbers else 1
            while len(parsed) < ahead:
                at = stream.tell()
                piece = reader.take(stream, LONGEST_TABLE_LINE)
                begun = threads.submit(reader.parse, piece, text.delimiter, width, wanted)
                parsed.append((at, at + len(piece), begun))
            at, end, begun = parsed.popleft()
            batch = begun.result()
            if batch is None:
                stream.seek(at)
                return
            yield replace(batch, lines=range(line + 1, line + 1 + len(batch.lines))), end
            line += len(batch.lines)


def _check_cells(path: Path, count: int) -> None:
    if count > MOST_CELLS:
        raise refuse(path, f"has more than {MOST_CELLS:,} cells; leave columns or rows out")


def _careful_batches(
    text: TextFile,
    records: Iterator[tuple[int, int, list[str]]],
    before: int,
    width: int,
    wanted: int,
) -> Iterator[RowBatch]:
    """Rows with their lines, some at a time; raises InputError for those of another width."""
    ragged: list[Mistake] = []
    bad = 0
    lines: list[int] = []
    chunk: list[list[str]] = []
    for rows, (line, _, row) in enumerate(records, before + 1):
        _check_cells(text.path, rows * wanted)
        if len(row) != width:
            bad += 1
            what = f"has {len(row)} cells where the header has {width}"
            ragged += [Mistake(f"row {rows}", what, line)] if bad <= MOST_LISTED else []
        elif not bad:  # else nobody looks at them any more
            lines.append(line)
            chunk.append(row)
        if len(chunk) * width >= CELLS_AT_ONCE:
            yield _TextBatch(lines, list(zip(*chunk, strict=True)), text.decimal)
            lines, chunk = [], []
    if chunk and not bad:
        yield _TextBatch(lines, list(zip(*chunk, strict=True)), text.decimal)
    if bad > MOST_LISTED:
        ragged.append(
            Mistake(
                "", f"{bad - MOST_LISTED} more rows have another number of cells than the header"
            )
        )
    if ragged:
        raise InputError(ragged)


def guess_column(column: Column, decimal: str = ".") -> Column:
    """A column that was kept as it is written, as numbers or truths if it holds these alone."""
    numbers = read_numbers(column.texts, decimal)
    if numbers is not None:
        return Column(column.name, numbers, lines=column.lines)
    return text_column(column.name, column.texts, column.lines, keep=False)
