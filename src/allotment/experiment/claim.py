"""What the paper claims, held against what was measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceComparison
from allotment.experiment.entrants import USUAL_AHEAD, find_best, list_taba
from allotment.experiment.exhibit import ResultTable, dump_mean
from allotment.experiment.outcomes import Mean, find_mean
from allotment.job import JSON

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
USUAL_TABA = f"TABA, m = {USUAL_AHEAD}"
"""the one that is meant where TABA is claimed to do something"""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper as a number that would be above 0 if it were true."""

    text: str
    paper: str
    """the paper's figure"""
    ours: Mean
    unit: str = "points"
    digits: int = 2

    @property
    def verdict(self) -> str:
        """By whether the interval lies above 0, below it, or around it."""
        if not np.isfinite(self.ours.value) or not np.isfinite(self.ours.reach):
            return OPEN
        if self.ours.low > 0:
            return HOLDS
        return FAILS if self.ours.high < 0 else OPEN

    def to_row(self) -> tuple[str, ...]:
        if not np.isfinite(self.ours.value):
            return self.text, self.paper, "-", "-", OPEN
        seen = self.ours.smallest_seen
        least = f"{seen:.{self.digits}f} {self.unit}".strip() if np.isfinite(seen) else "-"
        here = f"{self.ours.spell(self.digits)} {self.unit}".strip()
        return self.text, self.paper, here, least, self.verdict

    def to_dict(self) -> dict[str, JSON]:
        return {"paper": self.paper, "verdict": self.verdict} | dump_mean(self.ours)


@dataclass(frozen=True)
class PrintedNumber(Claim):
    """A number that the paper prints: ours may be told apart from it, and never be told to be the
    same."""

    unit: str = ""

    @property
    def verdict(self) -> str:
        """By whether the interval leaves the printed number out."""
        gap = abs(self.ours.value - float(self.paper))
        return FAILS if np.isfinite(self.ours.reach) and gap > self.ours.reach else OPEN


def show_claims(claims: Sequence[Claim], title: str = "") -> ResultTable:
    heads = ("claim", "paper", "here (95 %)", "smallest difference seen in 4 of 5", "verdict")
    return ResultTable(title, heads, tuple(each.to_row() for each in claims))


def list_numbers(
    book: Casebook, published: Mapping[str, tuple[float, float]]
) -> list[PrintedNumber]:
    """I and b of each task beside those that the paper prints: in it a curve is I (1 - b^N) / (1 -
    b)."""
    found = []
    for task, (worth, rate) in published.items():
        worths, rates = _find_numbers(book, task)
        found.append(PrintedNumber(f"I of {task}", f"{worth}", worths))
        found.append(PrintedNumber(f"b of {task}", f"{rate}", rates, digits=4))
    return found


def _find_numbers(book: Casebook, task: str) -> tuple[Mean, Mean]:
    """I and b of TABA over seed sets."""
    found = []
    (taba,) = list_taba(book.case, (USUAL_AHEAD,))
    for asked in taba.list_questions(book.case):
        estimates = book.find_estimates(asked)
        if estimates is not None:
            place = estimates.tasks.index(task)
            worth = float(estimates.worths[:, place, place].mean())
            found.append((worth, float(estimates.about["rates"][task])))
    rows = np.array(found).reshape(-1, 2)
    return find_mean(rows[:, :1]), find_mean(rows[:, 1:])


def lead(comparison: PriceComparison, first: str, second: str) -> Mean:
    """How far one entrant is ahead of another, in the same purchases."""
    entries = comparison.entries
    return find_mean(entries[first].totals - entries[second].totals)


def pick_best(comparison: PriceComparison, names: Sequence[str]) -> Array:
    """What the best of some entrants comes to, picked in other seed sets than it is scored in."""
    return find_best(np.stack([comparison.entries[name].totals for name in names]))


def lead_over_best(comparison: PriceComparison, first: str, others: Sequence[str]) -> Mean:
    """How far one entrant is ahead of the best of others."""
    return find_mean(comparison.entries[first].totals - pick_best(comparison, others))
