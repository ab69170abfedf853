"""When to stop probing: more of it is of no use once it can no longer move the plan out of its plateau."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.probes import Array, Probes, join
from allotment.estimates.transfer import Transfer, affinity
from allotment.gains import Curve, Geometric
from allotment.plan import Plan, allocate, score
from allotment.problem import Problem

WITHIN = 0.01
"""plans that lose at most this share of the value are as good as the best: a plan's plateau"""
NEARLY = 0.9
"""share of the draws whose plans must lie there"""


def plateau_reached(
    transfer: Transfer,
    reductions: Mapping[str, float],
    problem: Problem,
    *,
    within: float = WITHIN,
    nearly: float = NEARLY,
    draws: int = 60,
    seed: int = 0,
) -> bool:
    """Whether nearly every plan that more probing could lead to is as good as the present one.

    Probing to the end would tell which of the draws is true. Its plan is judged by what is thought now; `reductions`
    are the b of the tasks, about which probing says nothing.
    """
    return plateau_share(transfer, reductions, problem, within=within, draws=draws, seed=seed) >= nearly


def plateau_share(
    transfer: Transfer,
    reductions: Mapping[str, float],
    problem: Problem,
    *,
    within: float = WITHIN,
    draws: int = 60,
    seed: int = 0,
) -> float:
    """The share of the draws whose best plans lie in the plateau of the mean's plan."""
    _check(transfer, reductions, problem, within)
    # weights are in the curves already: what a label does for each task counts by that task's
    even = Problem(
        [task.with_weight(1.0) for task in problem.tasks], problem.budget, problem.caps, problem.count_implied
    )
    gains = curves_of(transfer.matrix, transfer.tasks, reductions, problem)
    best = allocate(even, gains)
    enough = best.value - within * abs(best.value)
    inside: dict[tuple[int, ...], bool] = {}
    hits = 0
    for matrix in transfer.draws(draws, seed):
        plan = allocate(even, curves_of(matrix, transfer.tasks, reductions, problem))
        key = tuple(plan.counts.values())
        if key not in inside:
            inside[key] = _value_of(plan, gains) >= enough
        hits += inside[key]
    return hits / draws


def curves_of(
    matrix: Array, tasks: tuple[str, ...], reductions: Mapping[str, float], problem: Problem
) -> dict[str, Curve]:
    """The paper's gathering of each task, with what its labels are worth to all tasks, each by its weight."""
    weights = np.array([problem[task].weight for task in tasks])
    return {task: Geometric(float(row @ weights), reductions[task]) for task, row in zip(tasks, matrix, strict=True)}


def enough_for(
    problem: Problem,
    reductions: Mapping[str, float],
    *,
    estimator: str = "pooled",
    metric: str = "metric",
    fewest: int = 12,
    between: int = 4,
    before: Probes | None = None,
    within: float = WITHIN,
    nearly: float = NEARLY,
) -> Callable[[Probes], bool]:
    """The rule as `probe_training(enough=...)` takes it; `before` are probes of earlier trainings.

    It is asked after every `between` probes, from `fewest` on: of fewer nobody can tell how much they vary.
    """

    def enough(probes: Probes) -> bool:
        if len(probes) % between:
            return False
        known = probes if before is None else join([before, probes])
        if len(known) < fewest:
            return False
        transfer = affinity(known, estimator, metric)
        return plateau_reached(transfer, reductions, problem, within=within, nearly=nearly)

    return enough


def _value_of(plan: Plan, gains: Mapping[str, Curve]) -> float:
    return score(plan.problem, gains, plan.counts).value


def _check(transfer: Transfer, reductions: Mapping[str, float], problem: Problem, within: float) -> None:
    mistakes = [
        Mistake(f"task {name!r}", f"is in the problem, but not in the transfer; {suggest(name, transfer.tasks)}")
        for name in problem.names
        if name not in transfer.tasks
    ]
    for name in transfer.tasks:
        if name not in problem.names:
            what = f"is in the transfer, but not in the problem; {suggest(name, problem.names)}"
            mistakes.append(Mistake(f"task {name!r}", what))
        if name not in reductions:
            mistakes.append(Mistake("reductions", f"there is none for task {name!r}"))
    if not 0 < within < 1:
        mistakes.append(Mistake("within", f"{within} is not between 0 and 1; 0.01 is one in a hundred"))
    if mistakes:
        raise InputError(mistakes)
