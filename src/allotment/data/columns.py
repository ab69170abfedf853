"""Columns of a table, whatever it is kept in: numbers or texts, with a mark where there is
nothing."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.errors import InputError, Mistake
from allotment.mistakes import MOST_LISTED

MOST_CELLS = 10**9
"""more would not fit into the memory of a laptop"""
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
"""a number as it is written where the comma is the decimal sign"""
COMMA_NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?", re.ASCII)
"""the same, with or without a fraction"""
NO_VALUE = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "?"))
"""what stands for no value among numbers and classes"""


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column: numbers with NaN where there is none, or texts with "" where there
    is none."""

    name: str
    numbers: NDArray[np.float64] | None = None
    words: Sequence[str] | None = None
    boolean: bool = False
    """its numbers are 0 for false and 1 for true"""
    lines: Sequence[int] | None = None
    """of the file, on which its rows begin"""

    @cached_property
    def texts(self) -> Sequence[str]:
        """The cells as they are shown: whole numbers without a point, "" where there is nothing."""
        if self.numbers is None:
            return self.words or ()
        if self.boolean:
            return [
                ("false", "true")[int(each)] if each == each else ""
                for each in self.numbers.tolist()
            ]
        return [plain(each) for each in self.numbers.tolist()]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How often each text is there, in the order in which they are first."""
        return Counter(self.texts)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        if self.numbers is not None:
            return np.isnan(self.numbers)
        lengths = np.fromiter(map(len, self.texts), dtype=np.int64, count=len(self.texts))
        return np.equal(lengths, 0)

    def pick(self, rows: Sequence[int] | NDArray[np.int64]) -> Column:
        """The cells in these rows."""
        places = np.asarray(rows, dtype=np.int64)
        if self.numbers is not None:
            return replace(self, numbers=self.numbers[places], lines=None)
        return replace(self, words=[self.texts[row] for row in places.tolist()], lines=None)

    def mistakes(self, rows: Iterable[int], what: Callable[[int], str]) -> list[Mistake]:
        """What is wrong in these rows: the first few in full, the others counted."""
        rows = list(rows)
        found = [
            Mistake(
                f"row {row + 1}, column {self.name!r}",
                what(row),
                None if self.lines is None else self.lines[row],
            )
            for row in rows[:MOST_LISTED]
        ]
        if len(rows) > MOST_LISTED:
            found.append(
                Mistake(f"column {self.name!r}", f"the same in {len(rows) - MOST_LISTED} more rows")
            )
        return found


def plain(value: float) -> str:
    """A number as text, the same whichever file it came from: `1`, `0.5`, "" for NaN."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def finite_numbers(column: Column, role: str) -> NDArray[np.float64]:
    """The cells as finite numbers or NaN; raises InputError with the rows where they are not."""
    values = column.numbers
    if values is None:
        parsed = [_number(each) for each in column.texts]
        if bad := [row for row, each in enumerate(parsed) if each is None]:
            hint = (
                "; write a decimal point, as in 3.5"
                if _COMMA.fullmatch(column.texts[bad[0]].strip())
                else ""
            )
            raise InputError(
                column.mistakes(
                    bad, lambda row: f"{column.texts[row][:40]!r} is not a number{hint}"
                )
            )
        values = np.array(parsed, dtype=np.float64)
    if infinite := np.flatnonzero(np.isinf(values)).tolist():
        what = f"is not a finite number; leave the cell of a {role} empty where it is unknown"
        raise InputError(column.mistakes(infinite, lambda row: f"{values[row]} {what}"))
    return values


def has_commas(column: Column) -> bool:
    """Whether it holds numbers with decimal commas, which were taken for words."""
    if column.numbers is not None:
        return False
    written = False
    for each in column.counts:
        text = each.strip()
        if _COMMA.fullmatch(text):
            written = True
        elif text and _number(text) is None:
            return False
    return written


def check_commas(column: Column) -> None:
    """Raises InputError for a column of numbers with decimal commas, which would be taken for
    words."""
    if not has_commas(column):
        return
    text = next(text for each in column.texts if _COMMA.fullmatch(text := each.strip()))
    what = (
        f"its numbers have decimal commas ({text[:40]!r}); write decimal points, as in 3.5, and"
        ' nothing between thousands, or say so (decimal = ",")'
    )
    raise InputError([Mistake(f"column {column.name!r}", what)])


def read_numbers(cells: Sequence[str], decimal: str = ".") -> NDArray[np.float64] | None:
    """The cells as numbers, NaN where there is none; None if one of them is something else.

    Where the comma is the decimal sign, a point stands between thousands; a column with other
    points than that is taken to have decimal points all the same.

    >>> read_numbers(["1.234,5", "7", ""], ",").tolist()
    [1234.5, 7.0, nan]
    """
    if "_" in "".join(cells):  # float() takes 1_000 for a number
        return None
    if decimal == "," and (found := _read_commas(cells)) is not None:
        return found
    try:
        return np.frombuffer(array("d", map(float, cells)))
    except ValueError:
        pass
    try:
        return np.frombuffer(
            array(
                "d",
                (math.nan if each.strip().lower() in NO_VALUE else float(each) for each in cells),
            )
        )
    except ValueError:
        return None


def _read_commas(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Numbers with decimal commas; None if one of the cells is something else."""
    values = array("d")
    for cell in cells:
        text = cell.strip()
        if COMMA_NUMBER.fullmatch(text):
            values.append(float(text.replace(".", "").replace(",", ".")))
        elif text.lower() in NO_VALUE:
            values.append(math.nan)
        else:
            return None
    return np.frombuffer(values)


def _number(text: str) -> float | None:
    if text.strip().lower() in NO_VALUE:
        return math.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def text_column(name: str, cells: Iterable[str], lines: Sequence[int] | None, keep: bool) -> Column:
    """The cells as words or, unless they are to be kept as they are, as true and false."""
    words = list(cells)
    distinct = set(words)
    if blanks := {each for each in distinct if each.isspace()}:
        words = ["" if each in blanks else each for each in words]
        distinct -= blanks
    if not keep and any(words) and {each.lower() for each in distinct} <= {"", "true", "false"}:
        truth = {"": np.nan, "true": 1.0, "false": 0.0}
        return Column(
            name, np.array([truth[each.lower()] for each in words]), boolean=True, lines=lines
        )
    return Column(name, words=words, lines=lines)


def columns_of(cells: dict[str, Any], as_text: Collection[str] = ()) -> dict[str, Column]:
    """Columns from arrays and from series of pandas, polars and Arrow."""
    columns: dict[str, Column] = {}
    mistakes: list[Mistake] = []
    for name, values in cells.items():
        try:
            columns[name] = _column(name, values, name in as_text)
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)
    return columns


def _column(name: str, values: Any, as_text: bool) -> Column:
    held = np.asarray(values)
    if held.ndim == 1 and held.dtype.kind in "iuf" and not as_text:
        return Column(name, held.astype(np.float64))
    if held.dtype.kind in "mM":
        return Column(
            name, words=["" if each == "NaT" else each for each in held.astype(str).tolist()]
        )
    # A whole number beside a missing one has become a float in the array, so lists are asked of the
    # series.
    to_list = getattr(values, "to_pylist", None) or getattr(values, "to_list", None) or held.tolist
    objects = [None if _is_nothing(each) else each for each in to_list()]
    types = {type(each) for each in objects} - {type(None)}
    if types and all(issubclass(each, bool | np.bool_) for each in types):
        return Column(
            name,
            np.array([np.nan if each is None else float(each) for each in objects]),
            boolean=True,
        )
    numeric = all(
        issubclass(each, int | float | Decimal | np.integer | np.floating) for each in types
    )
    if numeric and not as_text:
        return Column(name, _numbers(name, objects))
    allowed = (str, int, float, Decimal, np.integer, np.floating, np.bool_, date, time, timedelta)
    if strange := [each for each in types if not issubclass(each, allowed)]:
        what = (
            f"holds cells of type {strange[0].__name__}; numbers, text, dates and true or false can"
            " be read"
        )
        raise InputError([Mistake(f"column {name!r}", what)])
    return text_column(name, map(word, objects), None, keep=True)


def _numbers(name: str, objects: Sequence[Any]) -> NDArray[np.float64]:
    try:
        return np.array(
            [np.nan if each is None else float(each) for each in objects], dtype=np.float64
        )
    except OverflowError:
        raise InputError(
            [Mistake(f"column {name!r}", "holds a whole number of more than 308 digits")]
        ) from None


def _is_nothing(cell: Any) -> bool:
    if isinstance(cell, float | np.floating | Decimal):
        return cell != cell
    # those of pandas, without importing it
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def word(cell: Any) -> str:
    """A cell as text; "" where there is nothing."""
    if cell is None:
        return ""
    return plain(float(cell)) if isinstance(cell, float | np.floating) else str(cell)
