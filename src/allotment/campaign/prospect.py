"""What an order is expected to bring, beside what two trainings on the same labels differ by: below
that, nobody will see a difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from allotment.campaign.rounds import is_groundless
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import SPAN_LEVEL, Span, find_noise
from allotment.plan import Plan, unit_of
from allotment.problem import show_exact


@dataclass(frozen=True)
class Prospect:
    """What the labels of an order add to D_T, the weighted mean of the tasks' gains."""

    gain: Span
    whole: float
    """what all of the plan adds, in the mean over draws"""
    noise: float | None
    """by how much D_T differs between two trainings on the same labels; None where that is not
    known"""
    unit: str
    left: Fraction
    """money that stays unspent where nothing more is ordered"""

    @property
    def is_below_noise(self) -> bool:
        """Whether stopping here is reasonable."""
        return self.noise is not None and self.gain.middle < self.noise

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        gain = {"mean": self.gain.middle, "low": self.gain.low, "high": self.gain.high}
        return gain | {
            "level": SPAN_LEVEL,
            "whole": self.whole,
            "noise": self.noise,
            "unit": self.unit,
            "below_noise": self.is_below_noise,
            "left": show_exact(self.left),
        }


def find_prospect(plan: Plan, counts: Mapping[str, int], left: Fraction) -> Prospect | None:
    """Of ordering these labels of a plan, where so much money is left; None where nothing was
    measured that says it."""
    estimates = plan.evidence
    if not isinstance(estimates, Estimates) or is_groundless(estimates) or not any(counts.values()):
        return None
    nothing = dict.fromkeys(counts, 0)
    more = estimates.gain_over(plan.problem, counts, nothing)
    low, high = np.quantile(more, [(1 - SPAN_LEVEL) / 2, (1 + SPAN_LEVEL) / 2])
    return Prospect(
        gain=Span(float(more.mean()), float(low), float(high)),
        whole=float(estimates.gain_over(plan.problem, plan, nothing).mean()),
        noise=find_noise(estimates, {task.name: task.weight for task in plan.problem.tasks}),
        unit=unit_of(estimates),
        left=left,
    )
