"""How far a measured plan goes from the neutral one, which trains nothing, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from allotment.campaign.rounds import is_groundless
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import SPAN_LEVEL, Span
from allotment.plan import Plan, neutral_gains, solve_within, unit_of
from allotment.problem import Problem


@dataclass(frozen=True)
class Departure:
    """A plan beside the neutral one."""

    share: float
    """of the plan's money, what the neutral plan spends on other tasks"""
    moved: Mapping[str, int]
    """of each task: labels beyond those of the neutral plan; the task first of which most money is
    moved"""
    worths: Mapping[str, float]
    """of each task that counts: what the next label is taken to be worth, in what the neutral plan
    takes it for; 1 in the mean over tasks"""
    lead: Span
    """what the plan gains beyond the neutral one, by the draws"""
    chance: float
    """that it gains more"""
    unit: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "share": self.share,
            "moved": dict(self.moved),
            "worths": dict(self.worths),
            "mean": self.lead.middle,
            "low": self.lead.low,
            "high": self.lead.high,
            "level": SPAN_LEVEL,
            "chance": self.chance,
            "unit": self.unit,
        }


def find_departure(plan: Plan) -> Departure | None:
    """None where nothing was measured that could have moved it."""
    estimates, problem = plan.evidence, plan.problem
    if not isinstance(estimates, Estimates) or is_groundless(estimates):
        return None
    neutral = solve_within(problem, neutral_gains(problem)).counts
    money = {
        name: problem.price({name: plan.counts[name]}) - problem.price({name: neutral[name]})
        for name in problem.names
    }
    spent = problem.price(plan.counts)
    lead = estimates.gain_over(problem, plan, neutral)
    low, high = np.quantile(lead, [(1 - SPAN_LEVEL) / 2, (1 + SPAN_LEVEL) / 2])
    farthest = sorted(problem.names, key=lambda name: -abs(money[name]))
    elsewhere = sum((each for each in money.values() if each > 0), Fraction(0))
    return Departure(
        share=float(elsewhere / spent) if spent else 0.0,
        moved={name: plan.counts[name] - neutral[name] for name in farthest},
        worths=_weigh_labels(estimates, problem),
        lead=Span(float(lead.mean()), float(low), float(high)),
        chance=float(np.mean(lead > 0)),
        unit=unit_of(estimates),
    )


def _weigh_labels(estimates: Estimates, problem: Problem) -> dict[str, float]:
    weights = np.array([problem[task].weight for task in estimates.tasks])
    nothing, neutral, found = dict.fromkeys(problem.names, 0), neutral_gains(problem), {}
    for task in problem.tasks:
        if task.weight > 0:  # else the neutral plan takes its labels to be worth nothing
            more = estimates.gains_of(nothing | {task.name: 1}).mean(axis=0)
            found[task.name] = float(more @ weights / (task.weight * neutral[task.name](1)))
    typical = float(np.mean(list(found.values()))) if found else 0.0
    return {name: each / typical if typical > 0 else 1.0 for name, each in found.items()}
