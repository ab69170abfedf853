"""Decimal signs of delivered numbers: a point or, as spreadsheets write it in half of the world, a
comma."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from allotment.cells import unprotect
from allotment.data.columns import COMMA_NUMBER

POINT, COMMA = ".", ","
"""the signs that a fraction may begin with"""
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)


@dataclass(frozen=True)
class WrittenNumber:
    """A number as it is written in a cell: its sign, and whether that is beyond doubt."""

    text: str
    sign: str
    """before its fraction, or perhaps between its thousands; nothing where there is neither"""
    is_doubtful: bool = False

    @property
    def fraction(self) -> str:
        """The number if the sign is the decimal one, with a point."""
        return (
            self.text.replace(POINT, "").replace(COMMA, POINT) if self.sign == COMMA else self.text
        )

    @property
    def thousands(self) -> str:
        """The number if the sign stands between thousands."""
        return self.text.replace(self.sign, "")

    def tell_doubt(self) -> str:
        """Why it can't be taken, and what to write."""
        return (
            f"{self.text!r} may be {self.fraction} or {self.thousands}; write {self.thousands}, or"
            f" {self.text}0 if it is a fraction"
        )


def look_at(given: Any) -> WrittenNumber | None:
    """A text as a number with a sign; None if it is something else, or has none.

    >>> look_at("1.234,5").fraction, look_at("1,234").is_doubtful, look_at("0,234").is_doubtful
    ('1234.5', True, False)
    """
    if not isinstance(given, str):
        return None
    text = unprotect(given).strip()
    if _GROUPED.fullmatch(text):
        return WrittenNumber(text, COMMA if COMMA in text else POINT, is_doubtful=True)
    if COMMA in text:
        return WrittenNumber(text, COMMA) if COMMA_NUMBER.fullmatch(text) else None
    return WrittenNumber(text, POINT) if POINT in text else None


@dataclass
class Decimals:
    """How the numbers of a delivery are written, as far as they show it."""

    said: str | None = None
    """the decimal sign of the data, if somebody said it"""
    seen: dict[str, set[str]] = field(default_factory=dict)
    """of each task, the signs that are beyond doubt"""

    def note(self, task: str, written: WrittenNumber) -> None:
        if not written.is_doubtful:
            self.seen.setdefault(task, set()).add(written.sign)

    def read(self, task: str, written: WrittenNumber) -> str:
        """A number that may mean two things, as the others of its task are written or, if these do
        not tell, as the data are; raises ValueError where it still may mean two."""
        seen = self.seen.get(task, set())
        if written.sign == COMMA and (seen == {COMMA} or (not seen and self.said == COMMA)):
            return written.fraction
        if written.sign == POINT and (seen == {POINT} or (not seen and self.said != COMMA)):
            return written.fraction
        if written.sign == POINT and seen == {COMMA} and self.said == COMMA:
            return written.thousands
        raise ValueError(written.tell_doubt())
