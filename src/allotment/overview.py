"""A plan for those who decide on it, as plain values: what each task gets, and what else one might
do."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from allotment.plan import Comparison, Plan, Score, baselines, neutral_gains
from allotment.problem import Problem, show_exact

FEW_TASKS = 12
"""tasks up to which each has its place: a baseline of its own, ranges, a column"""


def describe_plan(plan: Plan, ranges: bool | None = None) -> dict[str, Any]:
    """All that is to be told of a plan; `Plan.from_dict` reads it back."""
    comparison = compare_few(plan)
    return plan.to_dict() | {
        "why_unspent": plan.why_unspent,
        "tasks": list_tasks(plan, ranges),
        "comparison": [describe_score(row, plan.value) for row in comparison.rows],
    }


def list_tasks(plan: Plan, ranges: bool | None = None) -> list[dict[str, Any]]:
    """What each task costs, has, gets and gains; with `ranges`, which are for few tasks unless
    wanted, also how far its count and its price can move."""
    own, total = plan.own_gains, plan.problem.price(plan.counts)
    wanted = shows_ranges(plan, ranges)
    rows = []
    for task in plan.problem.tasks:
        money = task.price(plan.counts[task.name])
        row: dict[str, Any] = {
            "task": task.name,
            "price": task.cost,
            "have": task.have,
            "buy": plan.counts[task.name],
            "money": money,
            "share": float(money / total) if total else None,
            "gain": own[task.name],
        }
        if wanted:
            row["range_low"], row["range_high"] = plan.plateau[task.name]
            row["bought_up_to"] = plan.break_even[task.name]
        rows.append(row)
    return rows


def list_caps(plan: Plan) -> list[dict[str, str]]:
    """How much of each limit on several tasks the plan takes."""
    counts = plan.counts
    return [
        {
            "name": cap.name,
            "limit": show_exact(cap.limit),
            "used": show_exact(
                sum((cap.use[task] * counts[task] for task in cap.use), Fraction(0))
            ),
        }
        for cap in plan.problem.caps
    ]


def shows_ranges(plan: Plan, wanted: bool | None) -> bool:
    """Whether to say how far counts and prices can move, which takes a while for many tasks."""
    return len(plan.counts) <= FEW_TASKS if wanted is None else wanted


def compare_few(plan: Plan, yours: Mapping[str, int] | None = None) -> Comparison:
    """The plan beside `yours` and the baselines, as many as people read, and none that is the plan
    itself."""
    others: dict[str, Mapping[str, int]] = {} if yours is None else {"yours": yours}
    others |= few_baselines(plan.problem)
    if plan.gains == neutral_gains(plan.problem):
        del others["neutral"]
    return plan.compare(others)


def few_baselines(problem: Problem) -> dict[str, dict[str, int]]:
    """The baselines, of which there is one for each task only while these are few."""
    return baselines(problem, each_task=len(problem.tasks) <= FEW_TASKS)


def describe_score(score: Score, best: float) -> dict[str, Any]:
    """A plan's score with its share of the best value."""
    return score.to_dict() | {"of_best": score.value / best if best > 0 else None}
