"""Where tables are kept: CSV, xlsx, Parquet, npz or a frame, all read into the same columns."""

from __future__ import annotations

import math
import os
import stat
import sys
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import short
from allotment.data.columns import MOST_CELLS, Column, columns_of
from allotment.data.csv_file import Layout, find_layout, open_csv, open_text
from allotment.data.open_file import (
    OpenFile,
    Read,
    check_steepness,
    check_width,
    refuse,
)
from allotment.data.workbook import list_sheets, open_workbook
from allotment.errors import InputError, Mistake
from allotment.mistakes import MOST_LISTED

LARGEST_FOOTER = 2**25
"""bytes in which a Parquet file describes its columns, each of which takes ten times as much in
memory"""
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
TABLE_SUFFIXES = {
    ".csv": ",",
    ".csv.gz": ",",
    ".tsv": "\t",
    ".tsv.gz": "\t",
    ".xlsx": "",
    ".parquet": "",
    ".npz": "",
}
"""of tables, with what separates their cells; none where the format has its own"""
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".xlsm", ".numbers")
"""workbooks that are not read"""


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
    known: dict[tuple[str, bool], Column] = field(default_factory=dict, repr=False)
    """what was read so far, by name and whether as it is written"""

    def forget(self, names: Collection[str]) -> None:
        """Hold these columns no longer; who asks for them again has them read again."""
        for name in names:
            self.known.pop((name, True), None)
            self.known.pop((name, False), None)


def open_table_file(source: Any, layout: Layout | None = None) -> TableFile:
    """The table in a file or a frame, or one that is open already; raises InputError if there is
    none or if its names won't do."""
    if isinstance(source, TableFile):
        return source
    file = open_source(source)
    if isinstance(file, OpenFile):
        return _checked(_open_file(file, layout or Layout()))
    return _checked(_open_frame(file))


def open_source(source: Any) -> Any:
    """The file of a table, so that all that is read comes from the same one, and is hashed once; a
    frame, or what is open already, is as it is."""
    return _open_path(Path(source)) if isinstance(source, str | os.PathLike) else source


def find_layout_of(source: Any, given: Layout) -> tuple[Layout, list[str]]:
    """How a table is written, as far as that shows and nobody said it, and a word on what is not as
    usual; a file that is no text is as it is."""
    file = open_source(source)
    if not isinstance(file, OpenFile):
        return given, []
    suffix = _find_suffix(file.path)
    usual = TABLE_SUFFIXES[suffix]
    try:
        if suffix == ".xlsx" and given.sheet is None:
            return _find_sheet(file, given)
        return find_layout(file, usual, given) if usual else (given, [])
    except OSError as error:
        raise _tell_unread(file.path, error) from None


def _find_sheet(file: OpenFile, given: Layout) -> tuple[Layout, list[str]]:
    """The first sheet of a workbook, and a word on the others."""
    first, *others = list_sheets(file)
    if not others:
        return given, []
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    note = f"sheet {first!r} is read, and not {', '.join(map(repr, others[:3]))}{more} (--sheet)"
    return replace(given, sheet=first), [note]


def _remember(
    name: str,
    names: tuple[str, ...],
    read: Read,
    guess: Callable[[Column], Column] | None = None,
) -> TableFile:
    """A table of which each column is read once; `guess` makes what one is of how it is
    written."""
    known: dict[tuple[str, bool], Column] = {}

    def read_once(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        keys = {name: (name, name in as_text) for name in wanted}
        for name in wanted:
            if guess is None or keys[name] in known:
                continue
            if (name, True) in known:
                known[name, False] = guess(known[name, True])
            elif (held := known.get((name, False))) is not None and held.numbers is None:
                known[name, True] = held
        if fresh := [name for name in wanted if keys[name] not in known]:
            found = read(fresh, [name for name in fresh if name in as_text])
            known.update({keys[name]: column for name, column in found.items()})
        return {name: known[key] for name, key in keys.items()}

    return TableFile(name, names, read_once, known=known)


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


def _open_file(file: OpenFile, layout: Layout) -> TableFile:
    path, suffix = file.path, _find_suffix(file.path)
    name = path.name[: -len(suffix)]
    try:
        if suffix == ".parquet":
            table = _open_parquet(file, name)
        elif suffix == ".npz":
            table = _open_npz(file, name)
        elif suffix == ".xlsx":
            table = TableFile(name, *open_workbook(file, layout.sheet))
        else:
            names, read, guess = open_csv(open_text(file, TABLE_SUFFIXES[suffix], layout))
            table = _remember(name, names, read, guess)
        return replace(table, digest=file.digest, folder=path.parent)
    except OSError as error:
        raise _tell_unread(path, error) from None


def _find_suffix(path: Path) -> str:
    """What a table's name ends in; "" if it is none."""
    return next((each for each in TABLE_SUFFIXES if path.name.lower().endswith(each)), "")


def _open_path(path: Path) -> OpenFile:
    """The file of a table; raises InputError if it is none."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = (
            "there is no such file"
            if missing
            else f"cannot be read ({getattr(error, 'strerror', None) or error})"
        )
        raise refuse(path, f"{reason}; check the path") from None
    if stat.S_ISDIR(mode):
        raise refuse(path, "is a directory; give the table in it")
    if not _find_suffix(path):
        old = "; save it as .xlsx or .csv" if path.suffix.lower() in OTHER_SHEETS else ""
        what = f"is not a table by its name; a table ends in {', '.join(TABLE_SUFFIXES)}{old}"
        raise refuse(path, what)
    if not stat.S_ISREG(mode):  # reading a pipe or a device could wait forever
        raise refuse(path, "is a pipe or a device; save the table to a file first")
    try:
        return OpenFile(path)
    except OSError as error:
        raise _tell_unread(path, error) from None


def _tell_unread(path: Path, error: OSError) -> InputError:
    return refuse(path, f"cannot be read ({error.strerror or error}); check its permissions")


def _open_parquet(file: OpenFile, name: str) -> TableFile:
    path = file.path
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        raise refuse(path, "reading Parquet needs pyarrow: pip install 'allotment[data]'") from None
    damage = (pa.ArrowException, OSError, UnicodeDecodeError)
    try:
        _check_footer(file)
        with pq.ParquetFile(file.begin()) as opened:
            check_width(path, opened.metadata.num_columns)
            names, rows = tuple(opened.schema_arrow.names), opened.metadata.num_rows
    except damage as error:
        raise refuse(path, f"is not a whole Parquet file ({str(error)[:200]!r})") from None
    if not rows:
        raise refuse(path, "has columns but no rows")

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        if rows * len(wanted) > MOST_CELLS:
            raise refuse(path, f"has more than {MOST_CELLS:,} cells; leave columns or rows out")
        remedy = "leave columns out, or, if it is the right file, save it as .csv"
        check_steepness(path, file.size, 8 * rows * len(wanted), remedy)
        try:
            with pq.ParquetFile(file.begin()) as opened:
                table = opened.read(columns=list(wanted))
            if table.num_rows != rows:
                message = f"says that it has {rows:,} rows, and has {table.num_rows:,}"
                raise refuse(path, f"is not a whole Parquet file ({message})")
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
            raise refuse(path, f"is not a whole Parquet file ({str(error)[:200]!r})") from None

    return _remember(name, names, read)


def _check_footer(file: OpenFile) -> None:
    stream = file.begin()
    stream.seek(max(0, file.size - 8))
    length = int.from_bytes(stream.read(4), "little")
    if length > LARGEST_FOOTER and stream.read(4) == b"PAR1":
        what = (
            f"describes its columns in {length / 10**6:,.0f} MB, the limit is"
            f" {LARGEST_FOOTER / 10**6:.0f} MB"
        )
        raise refuse(file.path, f"{what}; save fewer columns, in fewer groups of rows")


def _open_npz(file: OpenFile, name: str) -> TableFile:
    path, held = file.path, _load_npz(file)
    if missing := [key for key in ("X", "Y") if key not in held]:
        here = ", ".join(map(repr, held)) or "nothing"
        raise refuse(path, f"has no array {' and no array '.join(missing)}; it holds {here}")
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
        raise refuse(path, "has no rows in X")
    check_width(path, y.shape[1] + (0 if images else x.shape[1]))
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
                raise refuse(path, f"unpacks to more than {8 * MOST_CELLS >> 30} GB")
            remedy = "if it is the right file, save it unpacked (numpy.savez)"
            check_steepness(path, file.size, unpacked, remedy)
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
        raise refuse(
            path, f"is not a whole npz file of arrays ({hint or repr(str(error)[:200])})"
        ) from None
    for key, each in held.items():
        if each.dtype.kind == "U" and not _is_text(each):
            raise refuse(
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
