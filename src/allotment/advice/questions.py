"""What a reader may ask of a plan without the campaign at hand: other budgets, prices and limits,
what a score costs, where the gains come from. All of it as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from allotment.advice.plain_problem import write_plain_problem
from allotment.arrays import Array
from allotment.errors import Infeasible, InputError
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import find_score_level
from allotment.learners.metrics import title_metric
from allotment.plan import Plan, allocate, floors_of
from allotment.problem import Problem, show_exact

BUDGETS_SHOWN = 24
"""budgets at which the best plan is sought, from nothing to twice the budget"""
LEVEL_SHOWN = 0.9
"""of intervals"""
REACH_CHANCES = (0.5, 0.9)
"""with which a score is to be reached"""
REACH_POINTS = 24
"""numbers of labels at which scores are told"""
MOST_MORE = 20
"""times the labels at hand up to which scores are told"""


def ask_what_if(plan: Plan) -> dict[str, Any] | None:
    """The problem as the page solves it again; None where the page cannot."""
    try:
        return write_plain_problem(
            plan.problem, plan.gains if plan.evidence is None else plan.evidence
        )
    except InputError:
        return None


def trace_frontier(plan: Plan) -> dict[str, Any] | None:
    """What every budget up to twice this one brings: [money, mean, low, high], in the mean over
    tasks; low and high are None without draws. None where there is no money."""
    problem, evidence = plan.problem, plan.evidence
    if problem.budget <= 0:
        return None
    source = plan.gains if evidence is None else evidence
    points: list[list[float | None]] = []
    whole = 2 * problem.budget
    if not problem.price(floors_of(problem)):
        nothing = None if not isinstance(evidence, Estimates) else 0.0
        points.append([0.0, 0.0, nothing, nothing])
    for place in range(1, BUDGETS_SHOWN + 1):
        budget = whole * place / BUDGETS_SHOWN
        try:
            best = allocate(problem.with_budget(budget), source)
        except Infeasible:
            continue  # it buys less than what must be bought
        points.append([float(budget), *_find_gain(problem, best, evidence)])
    if len(points) < 3:
        return None
    return {"points": points, "budget": show_exact(problem.budget), "level": LEVEL_SHOWN,
            "knee": find_knee(points)} | _step_aside(plan)  # fmt: skip


def _step_aside(plan: Plan) -> dict[str, Any]:
    """What a tenth of the money more would bring, and a tenth less would cost."""
    problem, evidence = plan.problem, plan.evidence
    now, _, _ = _find_gain(problem, plan, evidence)
    step = problem.budget / 10
    found: dict[str, Any] = {"step": show_exact(step)}
    for key, budget in (("less", problem.budget - step), ("more", problem.budget + step)):
        source = plan.gains if evidence is None else evidence
        with suppress(Infeasible):  # what must be bought may cost more
            gain, _, _ = _find_gain(
                problem, allocate(problem.with_budget(budget), source), evidence
            )
            found[key] = gain - now
    return found


def _find_gain(
    problem: Problem, plan: Plan, evidence: object
) -> tuple[float, float | None, float | None]:
    """Mean, low and high of D_T; the value alone where nothing was measured."""
    if not isinstance(evidence, Estimates):
        return plan.value, None, None
    weights = np.array([problem[task].weight for task in evidence.tasks])
    gains = evidence.gains_of(plan.counts) @ weights / max(weights.sum(), 1e-300)
    low, high = np.quantile(gains, [(1 - LEVEL_SHOWN) / 2, (1 + LEVEL_SHOWN) / 2])
    return float(gains.mean()), float(low), float(high)


def find_knee(points: Sequence[Sequence[float | None]]) -> float:
    """The budget that lies farthest above the straight line between the ends: from there on money
    brings less than on the whole."""
    money = np.array([each[0] for each in points], dtype=float)
    gains = np.array([each[1] for each in points], dtype=float)
    line = gains[0] + (gains[-1] - gains[0]) * (money - money[0]) / (money[-1] - money[0])
    return float(money[int(np.argmax(gains - line))])


def list_worths(plan: Plan) -> list[dict[str, Any]]:
    """Of each task, what the plan's labels of its own bring it, and those of others."""
    evidence = plan.evidence
    if not isinstance(evidence, Estimates):
        return []
    own, everything = _find_own(evidence, plan.counts), evidence.gains_of(plan.counts).mean(axis=0)
    rows = zip(evidence.tasks, own.tolist(), (everything - own).tolist(), strict=True)
    return [{"task": task, "own": mine, "others": others} for task, mine, others in rows]


def _find_own(estimates: Estimates, counts: Mapping[str, int]) -> Array:
    """[task]: what its own labels of a plan bring it."""
    nothing = dict.fromkeys(estimates.tasks, 0)
    return np.array(
        [
            estimates.gains_of(nothing | {task: counts[task]})[:, place].mean()
            for place, task in enumerate(estimates.tasks)
        ]
    )


def list_reach(estimates: Estimates, metrics: Mapping[str, str]) -> list[dict[str, Any]]:
    """Of each task that was scored, what it scores by the number of its labels, with some
    chances."""
    found = []
    have = dict(zip(estimates.tasks, estimates.have, strict=True))
    for task in estimates.tasks:
        level = find_score_level(estimates, task)
        if level is None:
            continue
        at_hand = max(have[task], 1)
        grid = np.unique(np.round(np.geomspace(at_hand, MOST_MORE * at_hand, REACH_POINTS)))
        levels = [
            {
                "chance": chance,
                "points": [
                    [int(count), level.find_reached(have | {task: int(count)}, chance)]
                    for count in grid
                ],
            }
            for chance in REACH_CHANCES
        ]
        found.append(
            {
                "task": task,
                "metric": title_metric(metrics.get(task, "score")),
                "rises": level.higher_is_better,
                "have": have[task],
                "now": level.find_span(have).middle,
                "levels": levels,
            }
        )
    return found
