"""What a plan is worth, in the unit of what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from allotment.formatting import number, numbers
from allotment.plan import unit_of
from allotment.problem import Problem
from allotment.standing import PERCENT

IN_THE_MEAN = "in the mean over tasks"


@dataclass(frozen=True)
class Worth:
    """In what the value of a plan is told."""

    head: str
    """of a column; nothing where no value is told at all"""
    unit: str = ""
    """behind a number"""
    what: str = "a value of {}"
    """in a sentence"""
    divisor: float = 1.0
    """of the sum of weight x gain"""

    def list_cells(self, values: Sequence[float]) -> list[str]:
        """The values as a column."""
        if not self.unit:
            return numbers(values)
        return [f"{self._round(value)}{self.unit}" for value in values]

    def say(self, value: float) -> str:
        """A value in a sentence."""
        if not self.unit:
            return self.what.format(number(value))
        return self.what.format(f"{self._round(value)}{self.unit}")

    def _round(self, value: float) -> str:
        return f"{float(f'{value / self.divisor:.3g}'):.10g}"


GIVEN_WORTH = Worth("value")
"""by gains that somebody wrote down, whose unit is theirs"""
UNKNOWN_WORTH = Worth("")
"""where nothing was measured"""


def find_worth(problem: Problem, evidence: object) -> Worth:
    """In what plans are told that rest on estimates."""
    total = sum(task.weight for task in problem.tasks) or 1.0
    if unit_of(evidence) == PERCENT:
        what = f"a gain of {{}} of the score, {IN_THE_MEAN}"
        return Worth("mean gain", " %", what, total)
    what = f"a gain worth {{}} of each task's own, {IN_THE_MEAN}"
    return Worth("mean gain", " labels", what, total)
