"""Dates and times as numbers: how long ago, and where in the year, the week and the day."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import NO_VALUE, Column
from allotment.errors import InputError

DATE = "date"
DATE_FORMS = {DATE: "", "date:ymd": "ymd", "date:dmy": "dmy", "date:mdy": "mdy"}
"""forms of a feature that is a date or a time, with the order of year, month and day; whichever
fits if none is said"""
PERIODS = ("year", "week", "day")
"""in which a moment has a place that comes again"""
DAY = 86_400
"""seconds"""
CENTURY_ENDS = 69
"""years of two digits from this one on are of the last century"""
FIRST_LOOK = 20
"""cells that show whether the others are worth a look"""
CIRCLE_DIGITS = 6
"""of sines and cosines, whose last ones differ between machines"""

_ISO_MARKS = {4: "-", 7: "-", 10: " T", 13: ":", 16: ":"}
"""what stands between the digits of 2024-12-31 23:59:59, by its place"""
_ISO_SIZES = (10, 16, 19)
"""letters of a date, with hours and minutes, and with seconds"""

_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?(?: ?([AaPp])\.?[Mm]\.?)?"
    r"(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?",
    re.ASCII,
)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})", re.ASCII)
_DATE_LIKE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?!\d)", re.ASCII)
_DIGITS_ALONE = re.compile(r"(\d{4})(\d{2})(\d{2})", re.ASCII)


@dataclass(frozen=True)
class Moments:
    """A column of dates or times: days and seconds, NaN where there is nothing."""

    days: NDArray[np.float64]
    seconds: NDArray[np.float64]
    dated: bool
    """whether there are days, or times of a day only"""

    @property
    def since(self) -> NDArray[np.float64]:
        """Days, with their parts."""
        return np.asarray(self.days + self.seconds / DAY)


def guess_order(texts: Collection[str]) -> tuple[str, bool]:
    """In which order the parts of dates are written if all cells hold dates or times, else "";
    and whether the other order of day and month would do as well.

    >>> guess_order(["31.12.2024", "", "1.2.2025 14:30"])
    ('dmy', False)
    >>> guess_order(["01/02/2024"])
    ('dmy', True)
    >>> guess_order(["2024-02-30"])
    ('', False)
    """
    if not _are_dates(islice(texts, FIRST_LOOK)):
        return "", False
    if _read_iso([each for each in texts if each]) is not None:
        return "ymd", False
    distinct = set(texts)
    if not _are_dates(islice(distinct, FIRST_LOOK)):
        return "", False
    days, clocks = set(), set()
    for each in distinct:
        if not is_nothing(each):
            day, clock = _split(each)
            days.add(day)
            clocks.add(clock)
    if not days or any(_read_clock(each) is None for each in clocks):
        return "", False
    if days == {""}:
        return "ymd", False
    if "" in days or any(_is_bare(each) for each in days):
        return "", False
    fitting = [
        order
        for order in ("ymd", "dmy", "mdy")
        if all(_read_day(each, order) is not None for each in days)
    ]
    # with points the day comes first everywhere
    is_open = len(fitting) == 2 and not any("." in each for each in days)
    return (fitting[0], is_open) if fitting else ("", False)


def _are_dates(texts: Iterable[str]) -> bool:
    """Whether each of them may be a date or a time, in whatever order."""
    return all(
        is_nothing(each) or _CLOCK.fullmatch(each.strip()) or _DATE_LIKE.match(each.strip())
        for each in texts
    )


def is_nothing(text: str) -> bool:
    """Whether a cell holds no value."""
    return text.strip().lower() in NO_VALUE


def _split(text: str) -> tuple[str, str]:
    """The day and the time in a cell: many cells share one of them, so that few are to be read."""
    cell = text.strip()
    day, _, clock = cell.partition("T" if "T" in cell[:11] else " ")
    return ("", cell) if ":" in day else (day.removesuffix(","), clock.strip())


def _read_iso(cells: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Days and seconds of cells that are all written like 2024-12-31 23:59:59, as most long columns
    are: all at once. None if one of them is not.

    >>> _read_iso(["2024-03-01 00:00:05"]), _read_iso(["2024-02-30"])
    ((array([738946]), array([5])), None)
    """
    size = len(cells[0]) if cells else 0
    if size not in _ISO_SIZES or any(len(each) != size for each in cells):
        return None
    letters = np.array(cells).view(np.uint32).reshape(-1, size)
    marks = {place: list(map(ord, mark)) for place, mark in _ISO_MARKS.items() if place < size}
    if not all(np.isin(letters[:, place], codes).all() for place, codes in marks.items()):
        return None
    digits = letters.astype(np.int64) - ord("0")
    numeric = [place for place in range(size) if place not in marks]
    if digits[:, numeric].min() < 0 or digits[:, numeric].max() > 9:
        return None

    def read(first: int, last: int) -> NDArray[np.int64]:
        if first >= size:
            return np.zeros(len(cells), dtype=np.int64)
        return np.asarray(digits[:, first:last] @ 10 ** np.arange(last - first)[::-1])

    year, month, day = read(0, 4), read(5, 7), read(8, 10)
    clock = read(11, 13), read(14, 16), read(17, 19)
    if year.min() < 1 or month.min() < 1 or month.max() > 12 or day.min() < 1:
        return None
    if any(part.max() > most for part, most in zip(clock, (23, 59, 59), strict=True)):
        return None
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    begins, ends = (each.astype("datetime64[D]").astype(np.int64) for each in (months, months + 1))
    if (day > ends - begins).any():
        return None
    days = begins + day - 1 + date(1970, 1, 1).toordinal()
    return days, 3600 * clock[0] + 60 * clock[1] + clock[2]


def _is_bare(day: str) -> bool:
    """Whether it is a date only if somebody says so: eight digits, or a year of two."""
    if _DIGITS_ALONE.fullmatch(day):
        return True
    found = _YEAR_LAST.fullmatch(day)
    return found is not None and len(found[4]) == 2


def _read_day(day: str, order: str) -> int | None:
    """A day, counted from the first of year 1; None if it is none in this order.

    >>> _read_day("1.3.2024", "dmy"), _read_day("2024-03-01", "ymd")
    (738946, 738946)
    """
    try:
        if found := _YEAR_FIRST.fullmatch(day):
            return date(int(found[1]), int(found[3]), int(found[4])).toordinal()
        if found := _DIGITS_ALONE.fullmatch(day):
            return date(int(found[1]), int(found[2]), int(found[3])).toordinal()
        found = _YEAR_LAST.fullmatch(day)
        if found is None or order == "ymd":
            return None
        year, first, second = int(found[4]), int(found[1]), int(found[3])
        if len(found[4]) == 2:
            year += 1900 if year >= CENTURY_ENDS else 2000
        month, number = (first, second) if order == "mdy" else (second, first)
        return date(year, month, number).toordinal()
    except ValueError:
        return None


def _read_clock(clock: str) -> int | None:
    """Seconds since midnight, as they are written: an offset from universal time is not counted.
    None if no clock shows that.

    >>> _read_clock("2:30 PM"), _read_clock("25:00")
    (52200, None)
    """
    if not clock:
        return 0
    found = _CLOCK.fullmatch(clock)
    if found is None:
        return None
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    if half := found[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in "pP" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return 3600 * hour + 60 * minute + second


def find_order(column: Column, form: str) -> str:
    """In which year, month and day are read: as the form says, or else as the cells show."""
    return DATE_FORMS[form] or guess_order(column.texts)[0] or "dmy"


def read_moments(column: Column, form: str) -> Moments:
    """The cells as days and seconds; raises InputError with those that are no dates."""
    if (found := _read_iso([each for each in column.texts if each])) is not None:
        known = np.array([bool(each) for each in column.texts])
        return Moments(_spread(known, found[0]), _spread(known, found[1]), dated=True)
    order = find_order(column, form)
    pairs = [_split(each) for each in column.texts]
    days = {each: _read_day(each, order) for each in {day for day, _ in pairs}}
    clocks = {each: _read_clock(each) for each in {clock for _, clock in pairs}}
    dated = any(day is not None for day in days.values())
    if not dated:  # times of a day, all of which may be one
        days[""] = 0
    # None becomes NaN
    values = np.array([days[day] for day, _ in pairs], dtype=np.float64)
    seconds = np.array([clocks[clock] for _, clock in pairs], dtype=np.float64)
    is_none = np.isnan(values) | np.isnan(seconds)
    wrong = [row for row in np.flatnonzero(is_none).tolist() if not is_nothing(column.texts[row])]
    if wrong:
        what = f"is not a date or a time ({form}); mend it, or say what the column holds"
        raise InputError(column.mistakes(wrong, lambda row: f"{column.texts[row][:40]!r} {what}"))
    if not dated:
        is_none |= np.array([is_nothing(each) for each in column.texts], dtype=bool)
    values[is_none] = seconds[is_none] = np.nan
    return Moments(values, seconds, dated)


def list_varying(moments: Moments) -> list[str]:
    """Of year, week and day those in which the moments are at different places."""
    known = ~np.isnan(moments.days)
    if not known.any():
        return []
    found = []
    if moments.dated:
        days = moments.days[known].astype(np.int64)
        months = _as_dates(days).astype("datetime64[M]").astype(np.int64)
        found += ["year"] if len(np.unique(months % 12)) > 1 else []
        found += ["week"] if len(np.unique(days % 7)) > 1 else []
    return found + (["day"] if len(np.unique(moments.seconds[known])) > 1 else [])


def find_phase(moments: Moments, period: str) -> NDArray[np.float64]:
    """Where in year, week or day each moment is, from 0 to 1."""
    known = ~np.isnan(moments.days)
    ordinals = moments.days[known].astype(np.int64)
    if period == "year":
        days = _as_dates(ordinals)
        in_year = (days - days.astype("datetime64[Y]")).astype(np.float64)
        return _spread(known, in_year / 365.25)
    if period == "week":
        return _spread(known, (ordinals % 7) / 7)
    return _spread(known, moments.seconds[known] / DAY)


def _as_dates(ordinals: NDArray[np.int64]) -> NDArray[np.datetime64]:
    return (ordinals - date(1970, 1, 1).toordinal()).astype("datetime64[D]")


def _spread(known: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[np.float64]:
    held = np.full(len(known), np.nan)
    held[known] = values
    return held


def circle(phase: NDArray[np.float64]) -> NDArray[np.float32]:
    """A phase as a point on a circle, so that its end is near its beginning; 0 where there is
    none."""
    angles = 2 * np.pi * phase
    points = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    return np.nan_to_num(np.round(points, CIRCLE_DIGITS)).astype(np.float32)
