"""Tables in workbooks (xlsx), one sheet of them, read by openpyxl if it is there."""

from __future__ import annotations

import errno
import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from allotment.data.columns import Column, columns_of, text_column, word
from allotment.data.csv_file import guess_column
from allotment.data.open_file import OpenFile, Read, check_steepness, check_width, refuse
from allotment.errors import InputError, suggest

MOST_SHEET_ROWS = 2**20
"""of a sheet, as spreadsheets have them"""
SHEET_ERRORS = frozenset(
    ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!")
)
"""what a formula leaves that has no value"""
NEEDS_OPENPYXL = "reading a workbook needs openpyxl: pip install 'allotment[xlsx]'"


def open_workbook(file: OpenFile, sheet: str | None) -> tuple[tuple[str, ...], Read]:
    """The names of the columns of a sheet, the first one unless another is named, and what reads
    some of them."""
    path = file.path
    with _reading(path):
        names = _name_columns(_read_rows(file, sheet, 1))
    check_width(path, len(names))

    @cache
    def read_cells() -> list[list[Any]]:
        with _reading(path):
            return _gather(file, sheet, len(names))

    def read(wanted: Collection[str], as_text: Collection[str]) -> dict[str, Column]:
        cells = read_cells()
        at = {name: place for place, name in enumerate(names) if name in wanted}
        return {name: _column(name, cells[place], name in as_text) for name, place in at.items()}

    return names, read


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Around whatever openpyxl does, which of a broken file may raise anything."""
    try:
        import openpyxl  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise refuse(path, NEEDS_OPENPYXL) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and rules, which no table needs
            yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        # a place before the beginning of the file is the file's fault, other failures are not
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        hint = " without a password" if isinstance(error, zipfile.BadZipFile) else ""
        what = f"is not a workbook that can be read ({str(error)[:100]!r}); save it again{hint}"
        raise refuse(path, what) from None


def _read_rows(
    file: OpenFile, sheet: str | None, most: int | None = None
) -> Iterator[Sequence[Any]]:
    """The rows of the sheet that are not empty, each as long as it is filled."""
    path = file.path
    chosen = _choose_sheet(path, _open_book(file), sheet)
    chosen.reset_dimensions()  # which a file may say anything of
    rows = 0
    for number, row in enumerate(chosen.iter_rows(values_only=True), 1):
        if number > MOST_SHEET_ROWS:
            raise refuse(path, f"has more than {MOST_SHEET_ROWS:,} rows; save it as .csv")
        if any(cell is not None for cell in row):
            rows += 1
            yield row
        if rows == most:
            return


def _open_book(file: OpenFile) -> Any:
    """The workbook, unless it would fill the memory."""
    from openpyxl import load_workbook

    with zipfile.ZipFile(file.begin()) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    check_steepness(file.path, file.size, unpacked, "if it is the right file, save it as .csv")
    return load_workbook(file.begin(), read_only=True, data_only=True)


def _choose_sheet(path: Path, book: Any, sheet: str | None) -> Any:
    tables = {each.title: each for each in book.worksheets}
    if not tables:
        raise refuse(path, "has no sheet with cells")
    if sheet is None:
        return next(iter(tables.values()))
    if sheet not in tables:
        raise refuse(path, f"has no sheet {sheet[:40]!r} (sheet); {suggest(sheet, tables)}")
    return tables[sheet]


def list_sheets(file: OpenFile) -> list[str]:
    """The names of all its sheets."""
    with _reading(file.path):
        return [each.title for each in _open_book(file).worksheets] or [""]


def _name_columns(rows: Iterator[Sequence[Any]]) -> tuple[str, ...]:
    header = next(rows, ())
    names = ["" if cell is None else word(cell) for cell in header]
    while names and not names[-1].strip():
        names.pop()
    return tuple(names)


def _gather(file: OpenFile, sheet: str | None, width: int) -> list[list[Any]]:
    """The cells below the names, by column."""
    path = file.path
    columns: list[list[Any]] = [[] for _ in range(width)]
    if not width:
        raise refuse(path, "is empty; a table begins with a line that names its columns")
    for number, row in enumerate(islice(_read_rows(file, sheet), 1, None), 1):
        check_steepness(path, file.size, 8 * number * width, "save it as .csv")
        if len(row) > width and any(cell is not None for cell in row[width:]):
            what = f"row {number} has cells to the right of the last column that has a name"
            raise refuse(path, f"{what}; name it, or empty them")
        for column, cell in zip(columns, row, strict=False):
            column.append(None if isinstance(cell, str) and cell in SHEET_ERRORS else cell)
        for column in columns[len(row) :]:
            column.append(None)
    if not columns[0]:
        raise refuse(path, "has a header but no rows below it")
    return columns


def _column(name: str, cells: Sequence[Any], as_text: bool) -> Column:
    """Cells as those of a CSV file would be read: numbers may stand there as texts."""
    if not any(isinstance(cell, str) for cell in cells):
        return columns_of({name: cells}, [name] if as_text else [])[name]
    written = text_column(name, map(word, cells), None, keep=True)
    return written if as_text else guess_column(written)
