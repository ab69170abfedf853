"""A planning problem as plain data: what the page's own planner (assets/planner.js) solves.

    {"schema": 1,
     "unit": text,             exact money of one unit, such as "0.01"; all money below is in units
     "budget": int,
     "tasks": [{"name": text, "have": int, "weight": x,
                "pool": int | null, "least": int, "most": int | null, "frozen": int | null,
                "lot": int, "fee": int,
                "prices": [[after, price]],  from label after + 1 on each costs `price`; the first
                                             row is [0, price]
                "implies": [name]}],
     "caps": [{"name": text, "unit": text,   of what it limits, as above
               "limit": int, "use": {task: int}}],
     "count_implied": bool,
     "gains": {task: [term]},                what its labels add, the sum of terms, before weights
     "pairs": {...} | null,                  of estimates: see `_write_pairs`
     "inexact": [text]}                      what it does not hold exactly, in words

A term is one of

    {"curve": "geometric", "size": x, "keep": x}               size (1 - keep^N) / (1 - keep)
    {"curve": "power", "size": x, "have": x, "exponent": x,    size (n^-a - (n + N)^-a), n >= 1
     "ceiling": x | null}                                      at most `ceiling`
    {"curve": "logarithmic", "size": x, "have": x}             size log(1 + N / n), n >= 1
    {"curve": "table", "counts": [int], "worths": [x]}         straight lines between

with `"of": {"shares": {task: int}, "step": x}` where N is not the task's own count but the sum of
share x count, times `step`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np

from allotment.amounts import common_unit, exact
from allotment.errors import InputError, Mistake
from allotment.estimates.estimates import Estimates
from allotment.gains import (
    Coupled,
    Curve,
    Geometric,
    Logarithmic,
    Power,
    Tabulated,
    is_own,
)
from allotment.plan import Evidence, check_gains
from allotment.problem import Problem, Task, show_exact
from allotment.solver.model import split_gains
from allotment.solver.soundness import list_steps

PLAIN_SCHEMA = 1
"""of the form above; it rises when the page must read it in another way"""
BUDGETS = 4
"""a curve of one's own is written down as far as so many budgets would buy labels"""
MOST_UNITS = 10**15
"""that money is counted in, as in the planner"""


def write_plain_problem(
    problem: Problem, gains: Mapping[str, Curve] | Evidence, finest: Any = None
) -> dict[str, Any]:
    """The problem and its gains as JSON holds them; money is counted so finely that it is exact,
    and that `finest` is a whole number of units where it is given (the step of a slider).

    >>> from allotment import Geometric, Problem, Task
    >>> problem = Problem([Task("cls", cost=1), Task("seg", cost=20)], budget=6300)
    >>> curves = {"cls": Geometric(1.13, 0.999), "seg": Geometric(2.03, 0.997)}
    >>> found = write_plain_problem(problem, curves)
    >>> found["unit"], found["budget"], found["tasks"][1]["prices"]
    ('1', 6300, [[0, 20]])
    """
    curves = check_gains(problem, gains)
    split_gains(problem, curves)  # says what cannot be planned with
    unit = _find_unit(problem, finest)
    inexact: list[str] = []
    return {
        "schema": PLAIN_SCHEMA,
        "unit": show_exact(unit),
        "budget": int(problem.budget // unit),
        "tasks": [_write_task(task, unit) for task in problem.tasks],
        "caps": [_write_cap(cap.name, cap.limit, cap.use) for cap in problem.caps],
        "count_implied": problem.count_implied,
        "gains": {
            name: _write_curve(problem, name, curve, inexact) for name, curve in curves.items()
        },
        "pairs": _write_pairs(problem, gains) if _is_folded(gains) else None,
        "inexact": inexact,
    }


def _find_unit(problem: Problem, finest: Any) -> Fraction:
    """The largest amount of which prices, budget and `finest` are whole multiples; the budget's
    last digits are left out where they would be too many."""
    wanted = [problem.unit]
    if finest is not None:
        try:
            wanted.append(exact(finest))
        except ValueError as error:
            raise InputError([Mistake("finest", str(error))]) from None
    unit = common_unit([*wanted, problem.budget])
    if problem.budget / unit > MOST_UNITS:
        unit = common_unit(wanted)
    if problem.budget / unit > MOST_UNITS:
        what = f"{finest} is too fine for a budget of {show_exact(problem.budget)}; give more"
        raise InputError([Mistake("finest", what)])
    return unit


def _write_task(task: Task, unit: Fraction) -> dict[str, Any]:
    return {
        "name": task.name,
        "have": task.have,
        "weight": task.weight,
        "pool": task.pool,
        "least": task.least,
        "most": task.most,
        "frozen": task.frozen,
        "lot": task.lot,
        "fee": int(task.fee / unit),
        "prices": [[after, int(price / unit)] for after, _, price in task.prices],
        "implies": list(task.implies),
    }


def _write_cap(name: str, limit: Fraction, use: Mapping[str, Fraction]) -> dict[str, Any]:
    unit = common_unit(use.values())
    return {
        "name": name,
        "unit": show_exact(unit),
        "limit": int(limit // unit),
        "use": {task: int(each / unit) for task, each in use.items()},
    }


def _write_curve(
    problem: Problem, name: str, curve: Curve, inexact: list[str]
) -> list[dict[str, Any]]:
    """The terms of one task's curve."""
    found = []
    for term in curve.terms:
        if isinstance(term, Coupled):
            step = common_unit(term.weights.values())
            shares = {task: int(share / step) for task, share in term.weights.items()}
            most = sum(
                share * _most_labels(problem[task], problem.budget)
                for task, share in shares.items()
            )
            of = {"of": {"shares": shares, "step": float(step)}}
            for inner in term.inner.terms:
                found.append(_write_term(name, inner, most, float(step), inexact) | of)
        else:
            givers = [problem[name]]
            if problem.count_implied:
                givers += [task for task in problem.tasks if name in task.implies]
            most = sum(_most_labels(giver, problem.budget) for giver in givers)
            found.append(_write_term(name, term, most, 1.0, inexact))
    return found


def _write_term(
    name: str, term: Curve, most: int, step: float, inexact: list[str]
) -> dict[str, Any]:
    if is_own(term):
        return _write_table(name, term, most, step, inexact)
    if isinstance(term, Geometric):
        return {"curve": "geometric", "size": term.informativeness, "keep": term.reduction}
    if isinstance(term, Power):
        plain = {"curve": "power", "size": term.worth, "have": term.have}
        ceiling = None if math.isinf(term.ceiling) else term.ceiling
        return plain | {"exponent": term.exponent, "ceiling": ceiling}
    if isinstance(term, Logarithmic):
        return {"curve": "logarithmic", "size": term.worth, "have": term.have}
    assert isinstance(term, Tabulated), term
    return {"curve": "table", "counts": list(term.counts), "worths": list(term.worths)}


def _write_table(
    name: str, term: Curve, most: int, step: float, inexact: list[str]
) -> dict[str, Any]:
    """A curve of one's own, whose formula the page does not know: its worths."""
    steps = list_steps(most)
    worths = np.asarray(term.rise(np.zeros(len(steps)), steps * step), dtype=float)
    # beyond what can be bought a curve of one's own may say anything
    known = np.flatnonzero(~np.isfinite(worths) | (np.diff(worths, prepend=0.0) < 0))
    steps = steps[: known[0]] if len(known) else steps
    if len(steps) <= steps[-1]:
        inexact.append(
            f"the gain of {name}: the page knows {len(steps):,} of its {int(steps[-1]) + 1:,}"
            " worths, with straight lines between"
        )
    return {
        "curve": "table",
        "counts": [int(count) if step == 1.0 else float(count) for count in steps * step],
        "worths": worths[: len(steps)].tolist(),
    }


def _most_labels(task: Task, budget: Fraction) -> int:
    """The most labels of a task that the page's reader can ask for: all that there are, or what
    some budgets more would buy."""
    cheapest = min(price for _, _, price in task.prices)
    affordable = int(BUDGETS * budget / cheapest)
    return affordable if task.ceiling is None else min(affordable, task.ceiling)


def _is_folded(gains: object) -> TypeGuard[Estimates]:
    """Whether harm is taken off by weights; where pairs have rates of their own it is not."""
    return isinstance(gains, Estimates) and not gains.by_pairs


def _write_pairs(problem: Problem, estimates: Estimates) -> dict[str, Any]:
    """What labels of one task are worth to another, before harm is taken off the labels that do it:
    that depends on weights, which a reader may change.

    {"law": "power" | "geometric", "worths": [gaining task][labelled task], "shapes": [labelled
    task]}, tasks in their order.
    """
    worths, shapes = estimates.mean_pairs()
    order = [estimates.tasks.index(name) for name in problem.names]
    return {
        "law": estimates.law,
        "worths": worths[np.ix_(order, order)].tolist(),
        "shapes": shapes[order].tolist(),
    }
