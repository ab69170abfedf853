"""What a page shows of a plan that is of no campaign: of a problem file, or in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from allotment.advice.questions import ask_what_if, list_reach, list_worths, trace_frontier
from allotment.campaign.summary import (
    CURVE_POINTS,
    compare_plans,
    describe_outlook,
)
from allotment.estimates.estimates import Estimates
from allotment.gains import Coupled
from allotment.overview import FEW_TASKS, compare_few, list_caps
from allotment.plan import Plan, unit_of
from allotment.problem import show_exact
from allotment.standing import UNITS

GIVEN_UNIT = "points"
"""of gains that somebody wrote down, whose unit is theirs"""
GAIN_AXIS = "gain"
GIVEN_BASIS, NEUTRAL_BASIS = "given", "neutral"
"""what a plan rests on where nothing was measured: gains that somebody wrote down, or nothing"""


def collect_problem(plan: Plan, title: str, is_neutral: bool) -> dict[str, Any]:
    """A plan by gains that somebody wrote down, with all that can be told of it."""
    basis = NEUTRAL_BASIS if is_neutral else GIVEN_BASIS
    values = collect_plan(plan) | {"title": title, "basis": basis}
    if len(plan.counts) > FEW_TASKS:  # of many tasks ranges take long, and curves are a wall
        return values
    plateau, limits = plan.plateau, plan.break_even
    for row in values["plan"]["tasks"]:
        row["plateau"] = list(plateau[row["name"]])
        row["break_even"] = limits.get(row["name"])
    return values | {"curves": _trace_gains(plan)}


def collect_plan(plan: Plan) -> dict[str, Any]:
    """Nothing that takes long to find out."""
    evidence = plan.evidence
    values: dict[str, Any] = {"plan": _describe_plan(plan), "worths": list_worths(plan)}
    if plan.outlook is not None:
        values["outlook"] = describe_outlook(plan.outlook, unit_of(evidence))
    if isinstance(evidence, Estimates):
        values["comparison"] = compare_plans(plan, evidence)
        values["reach"] = list_reach(evidence, {})
    else:
        values["comparison"] = [row.to_dict() for row in compare_few(plan).rows]
    if (instance := ask_what_if(plan)) is not None:
        values["what_if"] = {"instance": instance, "unit": find_unit(evidence)}
    is_quick = len(plan.counts) <= FEW_TASKS
    if is_quick and (found := trace_frontier(plan)) is not None:
        values["frontier"] = found | {"unit": find_unit(evidence)}
    return values


def find_unit(evidence: object) -> str:
    """What gains are counted in."""
    unit = unit_of(evidence)
    return UNITS.get(unit, unit) if isinstance(evidence, Estimates) else GIVEN_UNIT


def _describe_plan(plan: Plan) -> dict[str, Any]:
    look, rows = plan.outlook, []
    plateau = vars(plan).get("plateau") if look is None else look.plateau  # if it is known already
    for task in plan.problem.tasks:
        count = plan.counts[task.name]
        row: dict[str, Any] = {"name": task.name, "cost": show_exact(task.cost), "have": task.have}
        row |= {"count": count, "spend": show_exact(task.price(count))}
        if plateau is not None:
            row["plateau"] = list(plateau[task.name])
        if look is not None:
            row["low"], row["high"] = look.counts[task.name]
        rows.append(row)
    spent, budget = plan.problem.price(plan.counts), plan.problem.budget
    money = {"spent": show_exact(spent), "budget": show_exact(budget)}
    return {"tasks": rows, "caps": list_caps(plan)} | money


def _trace_gains(plan: Plan) -> list[dict[str, Any]]:
    """What each task gains by labels of its own, as it was written down."""
    found = []
    for task in plan.problem.tasks:
        terms = [each for each in plan.gains[task.name].terms if not isinstance(each, Coupled)]
        if not terms:  # it hangs on labels of others as well
            continue
        top = max(2 * plan.counts[task.name], 2 * task.have, 20)
        top = top if task.pool is None else max(1, min(top, task.pool))
        counts = np.unique(np.linspace(0, top, CURVE_POINTS).round())
        gains = sum(np.asarray(term(counts), dtype=np.float64) for term in terms)
        points = [
            [float(task.have + count), float(gain), None, None]
            for count, gain in zip(counts, np.asarray(gains), strict=True)
        ]
        found.append({"task": task.name, "unit": GAIN_AXIS, "points": points})
    return found
