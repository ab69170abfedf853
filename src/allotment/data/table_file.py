"""Where tables are kept: CSV, Parquet, npz or a frame, all read into the same columns."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import math
import os
import stat
import sys
import tokenize
import weakref
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import short
from allotment.data.columns import MOST_CELLS, NO_VALUE, Column, columns_of, text_column
from allotment.errors import InputError, Mistake
from allotment.files import MOST_UNPACKING
from allotment.mistakes import MOST_LISTED

LONGEST_TABLE_LINE = 2**24
"""bytes of a line"""
MOST_COLUMNS = 50_000
LARGE = 2**26
"""bytes: a table that unpacks to less may be packed as tightly as it likes"""
LARGEST_FOOTER = 2**25
"""bytes in which a Parquet file describes its columns, each of which takes ten times as much in
memory"""
CELLS_AT_ONCE = 2**20
"""cells of a CSV file that are held as text at a time"""
BUFFER = 2**16
"""bytes of a file that are read at a time"""
NPZ_DAMAGE = (
    ValueError,
    EOFError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    SyntaxError,
)
"""what numpy says of broken archives; a RuntimeError is one with a password or an unknown way of
packing, a TokenError one of an array whose head has no end, a SyntaxError one of a type of values
that cannot be read"""
UNPACK = "if it is the right file, unpack it first (gunzip)"
TABLE_SUFFIXES = {
    ".csv": ",",
    ".csv.gz": ",",
    ".tsv": "\t",
    ".tsv.gz": "\t",
    ".parquet": "",
    ".npz": "",
}
"""of tables, with what separates their cells; none where the format has its own"""


Read = Callable[[Collection[str], Collection[str]], dict[str, Column]]


@dataclass(frozen=True)
class TableFile:
    """A table that is open: the names of its columns, and a way to read some of them."""

    name: str
    names: tuple[str, ...]
    read: Read
    """the columns that are wanted, and which of them are to stay as they are written"""
    digest: Callable[[], str] = str
    """of the file: where it is the same, its rows need not be compared; "" for a frame"""
    folder: Path | None = None
    """where images are looked for"""
    features: tuple[str, ...] | None = None
    targets: tuple[str, ...] | None = None
    """if the file itself says which they are"""
    images: NDArray[np.uint8] | None = None


class OpenFile:
    """A file that is opened once, gone through as often as is needed, and hashed on the way.

    Whatever takes its name meanwhile, all that is read comes from the same file.
    """

    def __init__(self, path: Path):
        self.path = path
        self._raw = _Hashed(path)
        self._stream = io.BufferedReader(self._raw, BUFFER)
        weakref.finalize(self, self._stream.close)

    def begin(self) -> BinaryIO:
        """All of it, from the first byte on."""
        self._stream.seek(0)
        return self._stream

    @property
    def size(self) -> int:
        return os.fstat(self._raw.fileno()).st_size

    def digest(self) -> str:
        """Its SHA-256; what was not read yet is read now."""
        try:
            self._stream.seek(self._raw.reached)
            while self._stream.read(CELLS_AT_ONCE):
                pass
        except OSError as error:
            remedy = "check the disk, then run the same command again"
            raise _refuse(self.path, f"can't be read ({error.strerror}); {remedy}") from None
        return self._raw.hash.hexdigest()


class _Hashed(io.FileIO):
    """A file whose bytes are hashed when they are read for the first time."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.hash, self.reached = hashlib.sha256(), 0

    def readinto(self, buffer: Any) -> int:
        at = self.tell()
        count = super().readinto(buffer) or 0
        if at <= self.reached:
            self.hash.update(memoryview(buffer)[self.reached - at : count])
            self.reached = max(self.reached, at + count)
        return count


def open_table_file(source: Any, delimiter: str | None = None) -> TableFile:
    """The table in a file or a frame, or one that is open already; raises InputError if there is
    none or if its names won't do."""
    if isinstance(source, TableFile):
        return source
    if isinstance(source, str | os.PathLike):
        return _checked(_open_file(Path(source), delimiter))
    return _checked(_open_frame(source))


def _remember(read: Read, guess: Callable[[Column], Column] | None = None) -> Read:
    """The same, but it reads each column once; `guess` makes what one is of how it is written."""
    known: dict[tuple[str, bool], Column] = {}

    def read_once(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        keys = {name: (name, name in as_text) for name in wanted}
        for name in wanted:
            if guess is not None and keys[name] not in known and (name, True) in known:
                known[name, False] = guess(known[name, True])
        if fresh := [name for name in wanted if keys[name] not in known]:
            found = read(fresh, [name for name in fresh if name in as_text])
            known.update({keys[name]: column for name, column in found.items()})
        return {name: known[key] for name, key in keys.items()}

    return read_once


def _checked(source: TableFile) -> TableFile:
    twice = [name for name, count in Counter(source.names).items() if count > 1 and name.strip()]
    mistakes = []
    for name in twice[:MOST_LISTED]:
        at = ", ".join(str(k + 1) for k, each in enumerate(source.names) if each == name)
        mistakes.append(
            Mistake(
                f"column {name!r}", f"is there more than once (columns {at}); rename all but one"
            )
        )
    if len(twice) > MOST_LISTED:
        mistakes.append(
            Mistake("", f"{len(twice) - MOST_LISTED} more names are there more than once")
        )
    if mistakes:
        raise InputError(mistakes)
    return source


def _refuse(path: Path, what: str, line: int | None = None) -> InputError:
    return InputError([Mistake(repr(str(path)), what, line)])


def _check_width(path: Path, count: int) -> None:
    if count > MOST_COLUMNS:
        what = (
            f"has {count:,} columns, the limit is {MOST_COLUMNS:,}; leave some out, or put them"
            " into fewer"
        )
        raise _refuse(path, what)


def _check_steepness(path: Path, packed: int, unpacked: int, remedy: str) -> None:
    """Raise InputError for a small file that would fill the memory, as no table of measurements
    does."""
    if unpacked > max(LARGE, MOST_UNPACKING * packed):
        size = f"{unpacked / 10**6:,.0f} MB or more from {packed / 10**6:,.1f} MB"
        raise _refuse(
            path, f"unpacks to {size}, the limit is {MOST_UNPACKING} times its size; {remedy}"
        )


def _open_file(path: Path, delimiter: str | None) -> TableFile:
    suffix = next((each for each in TABLE_SUFFIXES if path.name.lower().endswith(each)), "")
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = (
            "there is no such file"
            if missing
            else f"cannot be read ({getattr(error, 'strerror', None) or error})"
        )
        raise _refuse(path, f"{reason}; check the path") from None
    if stat.S_ISDIR(mode):
        raise _refuse(path, "is a directory; give the table in it")
    if not suffix:
        raise _refuse(
            path, f"is not a table by its name; a table ends in {', '.join(TABLE_SUFFIXES)}"
        )
    if not stat.S_ISREG(mode):  # reading a pipe or a device could wait forever
        raise _refuse(path, "is a pipe or a device; save the table to a file first")
    name = path.name[: -len(suffix)]
    try:
        file = OpenFile(path)
        if suffix == ".parquet":
            table = _open_parquet(file, name)
        elif suffix == ".npz":
            table = _open_npz(file, name)
        else:
            table = _open_csv(file, name, delimiter or TABLE_SUFFIXES[suffix])
        return replace(table, digest=file.digest, folder=path.parent)
    except OSError as error:
        raise _refuse(
            path, f"cannot be read ({error.strerror or error}); check its permissions"
        ) from None


def _open_csv(file: OpenFile, name: str, delimiter: str) -> TableFile:
    path = file.path
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(
            [Mistake("delimiter", f"{delimiter!r} is not a single character between cells")]
        )
    if _is_packed(path):
        _check_start(file)
    header = next(_records(file, delimiter), None)
    if header is None:
        raise _refuse(path, "is empty; a table begins with a line that names its columns")
    names = header[1]
    _check_width(path, len(names))
    if len(names) == 1 and (other := next((each for each in ";\t|," if each in names[0]), "")):
        raise _refuse(
            path,
            f"has one column only, {names[0][:80]!r}; are its cells separated by {other!r}?"
            " (delimiter)",
        )

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        texts = set(as_text)
        while True:  # a second time only if numbers turned into texts after the first chunk
            columns, late = _gather(file, delimiter, names, wanted, texts)
            if not late:
                return columns
            texts |= late

    return TableFile(name, tuple(names), _remember(read, _guess))


def _records(file: OpenFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, each with the line that it begins on."""
    path, packed = file.path, file.begin()
    stream = gzip.GzipFile(fileobj=packed) if _is_packed(path) else packed
    reader = csv.reader(_lines(path, packed, stream), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise _refuse(path, _csv_reason(str(error)), line) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _refuse(path, f"is not a whole gzip file ({error}); compress it again") from None


def _is_packed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _check_start(file: OpenFile) -> None:
    """That the first part of a packed file unpacks to no more than it may: as lines it would take
    far longer."""
    try:
        packed, size = file.begin(), 0
        with gzip.GzipFile(fileobj=packed) as stream:
            while size <= LARGE and (piece := stream.read(CELLS_AT_ONCE)):
                size += len(piece)
            _check_steepness(file.path, packed.tell(), size, UNPACK)
    except (EOFError, zlib.error, gzip.BadGzipFile):  # which is said when its rows are read
        return


def _lines(path: Path, file: IO[bytes], stream: IO[bytes] | gzip.GzipFile) -> Iterator[str]:
    """The lines of a stream, which is the file or what is unpacked from it."""
    number = size = 0
    while piece := stream.readline(LONGEST_TABLE_LINE + 1):
        number += 1
        size += len(piece)
        if size > LARGE and stream is not file:
            _check_steepness(path, file.tell(), size, UNPACK)
        if number == 1 and piece.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise _refuse(path, "is UTF-16 text; save it as UTF-8")
        if len(piece) > LONGEST_TABLE_LINE:
            raise _refuse(
                path,
                f"has a line of more than {LONGEST_TABLE_LINE >> 20} MB; is it the right file?",
                number,
            )
        if b"\0" in piece:
            raise _refuse(
                path, "holds a NUL byte, so it is not text; save it as UTF-8 text", number
            )
        try:
            yield piece.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = f"byte 0x{piece[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
            raise _refuse(path, what, number) from None


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
    file: OpenFile,
    delimiter: str,
    names: list[str],
    wanted: Collection[str],
    as_text: Collection[str],
) -> tuple[dict[str, Column], set[str]]:
    """The columns, and those that began as numbers but are texts further down."""
    at = {name: place for place, name in enumerate(names)}
    floats = {name: array("d") for name in wanted if name not in as_text}
    texts: dict[str, list[str]] = {name: [] for name in wanted if name in as_text}
    late: set[str] = set()
    lines = array("q")
    for chunk_lines, rows in _chunks(file, delimiter, len(names), len(wanted)):
        cells = list(zip(*rows, strict=True))
        for name in list(floats):
            values = _floats(cells[at[name]])
            if values is not None:
                floats[name].extend(values)
            else:
                del floats[name]
                if lines:
                    late.add(name)
                else:
                    texts[name] = []
        for name, held in texts.items():
            held.extend(map(sys.intern, cells[at[name]]))  # categories repeat: keep one of each
        lines.extend(chunk_lines)
    if not lines:
        raise _refuse(file.path, "has a header but no rows below it")
    columns = {
        name: Column(name, np.frombuffer(values), lines=lines) for name, values in floats.items()
    }
    columns |= {
        name: text_column(name, held, lines, keep=name in as_text) for name, held in texts.items()
    }
    return columns, late


def _chunks(
    file: OpenFile, delimiter: str, width: int, wanted: int
) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Rows with their lines, some at a time; raises InputError for those of another width."""
    path, records = file.path, itertools.islice(_records(file, delimiter), 1, None)
    ragged: list[Mistake] = []
    bad = 0
    lines: list[int] = []
    chunk: list[list[str]] = []
    for rows, (line, row) in enumerate(records, 1):
        if rows * wanted > MOST_CELLS:
            raise _refuse(path, f"has more than {MOST_CELLS:,} cells; leave columns or rows out")
        if len(row) != width:
            bad += 1
            what = f"has {len(row)} cells where the header has {width}"
            ragged += [Mistake(f"row {rows}", what, line)] if bad <= MOST_LISTED else []
        elif not bad:  # else nobody looks at them any more
            lines.append(line)
            chunk.append(row)
        if len(chunk) * width >= CELLS_AT_ONCE:
            yield lines, chunk
            lines, chunk = [], []
    if chunk and not bad:
        yield lines, chunk
    if bad > MOST_LISTED:
        ragged.append(
            Mistake(
                "", f"{bad - MOST_LISTED} more rows have another number of cells than the header"
            )
        )
    if ragged:
        raise InputError(ragged)


def _floats(cells: Sequence[str]) -> array[float] | None:
    """The cells as numbers, NaN where there is none; None if one of them is something else."""
    if "_" in "".join(cells):  # float() takes 1_000 for a number
        return None
    try:
        return array("d", map(float, cells))
    except ValueError:
        pass
    try:
        return array(
            "d", (math.nan if each.strip().lower() in NO_VALUE else float(each) for each in cells)
        )
    except ValueError:
        return None


def _guess(column: Column) -> Column:
    """A column that was kept as it is written, as numbers or truths if it holds these alone."""
    numbers = _floats(column.texts)
    if numbers is not None:
        return Column(column.name, np.frombuffer(numbers), lines=column.lines)
    return text_column(column.name, column.texts, column.lines, keep=False)


def _open_parquet(file: OpenFile, name: str) -> TableFile:
    path = file.path
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        raise _refuse(
            path, "reading Parquet needs pyarrow: pip install 'allotment[data]'"
        ) from None
    damage = (pa.ArrowException, OSError, UnicodeDecodeError)
    try:
        _check_footer(file)
        with pq.ParquetFile(file.begin()) as opened:
            _check_width(path, opened.metadata.num_columns)
            names, rows = tuple(opened.schema_arrow.names), opened.metadata.num_rows
    except damage as error:
        raise _refuse(path, f"is not a whole Parquet file ({str(error)[:200]!r})") from None
    if not rows:
        raise _refuse(path, "has columns but no rows")

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        if rows * len(wanted) > MOST_CELLS:
            raise _refuse(path, f"has more than {MOST_CELLS:,} cells; leave columns or rows out")
        remedy = "leave columns out, or, if it is the right file, save it as .csv"
        _check_steepness(path, file.size, 8 * rows * len(wanted), remedy)
        try:
            with pq.ParquetFile(file.begin()) as opened:
                table = opened.read(columns=list(wanted))
            if table.num_rows != rows:
                message = f"says that it has {rows:,} rows, and has {table.num_rows:,}"
                raise _refuse(path, f"is not a whole Parquet file ({message})")
            # As an array, a dictionary with nulls would get values in their place.
            plainly = {
                each: (
                    column.cast(column.type.value_type)
                    if pa.types.is_dictionary(column.type)
                    else column
                )
                for each, column in zip(table.column_names, table.columns, strict=True)
            }
            return columns_of(plainly, as_text)
        except damage as error:
            raise _refuse(path, f"is not a whole Parquet file ({str(error)[:200]!r})") from None

    return TableFile(name, names, _remember(read))


def _check_footer(file: OpenFile) -> None:
    stream = file.begin()
    stream.seek(max(0, file.size - 8))
    length = int.from_bytes(stream.read(4), "little")
    if length > LARGEST_FOOTER and stream.read(4) == b"PAR1":
        what = (
            f"describes its columns in {length / 10**6:,.0f} MB, the limit is"
            f" {LARGEST_FOOTER / 10**6:.0f} MB"
        )
        raise _refuse(file.path, f"{what}; save fewer columns, in fewer groups of rows")


def _open_npz(file: OpenFile, name: str) -> TableFile:
    path, held = file.path, _load_npz(file)
    if missing := [key for key in ("X", "Y") if key not in held]:
        here = ", ".join(map(repr, held)) or "nothing"
        raise _refuse(path, f"has no array {' and no array '.join(missing)}; it holds {here}")
    x, y = held["X"], held["Y"][:, None] if held["Y"].ndim == 1 else held["Y"]
    images = x.ndim == 4 and x.dtype == np.uint8 and x.shape[1] == 3
    mistakes = []
    if not images and (x.ndim != 2 or x.dtype.kind not in "iufb"):
        forms = "numbers (instances, features) or images (instances, 3, height, width) as uint8"
        mistakes.append(Mistake("array X", f"is {x.shape} of {x.dtype}; it must be {forms}"))
    if y.ndim != 2 or len(y) != len(x):
        mistakes.append(
            Mistake(
                "array Y", f"is {y.shape}; it must be ({len(x)}, tasks), a row for each one of X"
            )
        )
    if mistakes:
        raise InputError([mistake.under(repr(str(path))) for mistake in mistakes])
    if not len(x):
        raise _refuse(path, "has no rows in X")
    _check_width(path, y.shape[1] + (0 if images else x.shape[1]))
    features = () if images else _names(path, held, "features", "x", x.shape[1])
    tasks = _names(path, held, "tasks", "y", y.shape[1])
    found = dict(zip(tasks, y.T, strict=True)) | (
        {} if images else dict(zip(features, x.T, strict=True))
    )
    named = ("X", "Y", "features", "tasks", *found)
    more = {key: each for key, each in held.items() if key not in named and each.shape == (len(x),)}

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        return columns_of(
            {key: each for key, each in (found | more).items() if key in wanted}, as_text
        )

    names = (*features, *tasks, *more)
    shown = x if images else None
    return TableFile(name, names, read, features=features, targets=tasks, images=shown)


def _load_npz(file: OpenFile) -> dict[str, NDArray[Any]]:
    path = file.path
    try:
        with zipfile.ZipFile(file.begin()) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
            if unpacked > 8 * MOST_CELLS:
                raise _refuse(path, f"unpacks to more than {8 * MOST_CELLS >> 30} GB")
            remedy = "if it is the right file, save it unpacked (numpy.savez)"
            _check_steepness(path, file.size, unpacked, remedy)
            for entry in archive.infolist():
                _check_array(path, archive, entry)
        with np.load(file.begin(), allow_pickle=False) as archive:
            held = {key: archive[key] for key in archive.files}
    except InputError:
        raise
    except NPZ_DAMAGE as error:
        pickled = "object arrays" in str(error).lower()
        hint = (
            "an array of Python objects, which is never unpickled; save numbers or text"
            if pickled
            else None
        )
        raise _refuse(
            path, f"is not a whole npz file of arrays ({hint or repr(str(error)[:200])})"
        ) from None
    for key, each in held.items():
        if each.dtype.kind == "U" and not _is_text(each):
            raise _refuse(
                path, f"array {short(key)} holds characters that there are not; save it again"
            )
    return held


def _is_text(held: NDArray[Any]) -> bool:
    """Whether all that an array of text holds are characters: Python fails on others without saying
    where."""
    native = np.ascontiguousarray(held.astype(held.dtype.newbyteorder("=")))
    return (
        not native.size
        or not native.itemsize
        or int(native.reshape(-1).view(np.uint32).max()) <= sys.maxunicode
    )


def _check_array(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """That an array is as large as it says: its memory is taken before it is read."""
    with archive.open(entry) as file:
        if np.lib.format.read_magic(file) == (1, 0):
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, kind = np.lib.format.read_array_header_2_0(file)
    if not kind.hasobject and math.prod(shape) * kind.itemsize > entry.file_size:
        what = (
            f"says that it is {shape} of {kind}, but has {entry.file_size:,} bytes; save it again"
        )
        raise InputError(
            [Mistake(f"{str(path)!r}: array {entry.filename.removesuffix('.npy')[:40]}", what)]
        )


def _names(
    path: Path, held: dict[str, NDArray[Any]], key: str, letter: str, count: int
) -> tuple[str, ...]:
    if key not in held:
        return tuple(f"{letter}{k}" for k in range(count))
    if held[key].shape != (count,) or held[key].dtype.kind != "U":
        given = f"is {held[key].shape} of {held[key].dtype}"
        raise InputError(
            [Mistake(f"{str(path)!r}: array {key}", f"{given}; it must be {count} names")]
        )
    return tuple(held[key].tolist())


def _open_frame(frame: Any) -> TableFile:
    if not (hasattr(frame, "iloc") or hasattr(frame, "to_series")) or not hasattr(frame, "columns"):
        what = f"is a {type(frame).__name__}" + (
            "; pass frame.collect()" if hasattr(frame, "collect") else ""
        )
        raise InputError(
            [Mistake("source", f"{what}; a table is a path or a pandas or polars frame")]
        )
    names = tuple(map(str, frame.columns))
    if not len(frame):
        raise InputError([Mistake("source", "the frame has no rows")])

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        at = {name: place for place, name in enumerate(names) if name in wanted}
        column = (
            frame.to_series if hasattr(frame, "to_series") else lambda place: frame.iloc[:, place]
        )
        return columns_of({name: column(place) for name, place in at.items()}, as_text)

    return TableFile("table", names, read)
