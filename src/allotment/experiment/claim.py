"""What the paper claims, held against what was measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array
from allotment.experiment.comparison import PriceComparison
from allotment.experiment.entrants import find_best
from allotment.experiment.exhibit import ResultTable, dump_mean
from allotment.experiment.outcomes import Mean, find_mean
from allotment.job import JSON

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper as a number that would be above 0 if it were true."""

    text: str
    paper: str
    """the paper's figure"""
    ours: Mean
    unit: str = "points"

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
        least = f"{seen:.2f} {self.unit}" if np.isfinite(seen) else "-"
        return self.text, self.paper, f"{self.ours} {self.unit}", least, self.verdict

    def to_dict(self) -> dict[str, JSON]:
        return {"paper": self.paper, "verdict": self.verdict} | dump_mean(self.ours)


def show_claims(claims: Sequence[Claim]) -> ResultTable:
    heads = ("claim", "paper", "here (95 %)", "smallest difference seen in 4 of 5", "verdict")
    return ResultTable("", heads, tuple(each.to_row() for each in claims))


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
