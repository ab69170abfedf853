"""What every budget would buy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import exact, show
from allotment.errors import InputError, Mistake
from allotment.gains import Curve
from allotment.plan import Plan, check_gains, check_limits, solve_within
from allotment.problem import Problem
from allotment.solver.dual import highest_prices, respond, whole
from allotment.solver.model import Model, build
from allotment.solver.sweep import sweep

DENSEST = 2_000_000
"""budgets of at most so many units are swept one by one; larger ones are shown at breakpoints"""
BREAKPOINTS = 512


@dataclass(frozen=True)
class Frontier:
    """The best value and counts for budgets from nothing to the problem's own.

    `every_budget` tells whether the arrays hold every budget that differs in money at all; if not they hold
    breakpoints, each of them exact, and `at` still solves any budget exactly.
    """

    problem: Problem
    gains: dict[str, Curve]
    budgets: NDArray[np.float64]
    values: NDArray[np.float64]
    counts: dict[str, NDArray[np.int64]] = field(repr=False)
    every_budget: bool

    def at(self, budget: Any) -> Plan:
        """The exact plan for one budget, up to the problem's own."""
        try:
            amount = exact(budget)
        except ValueError as error:
            raise InputError([Mistake("budget", str(error))]) from None
        if not 0 <= amount <= self.problem.budget:
            what = f"{show(amount)} is not between 0 and the problem's {show(self.problem.budget)}"
            raise InputError([Mistake("budget", what)])
        return solve_within(self.problem.with_budget(amount), self.gains)


def frontier(problem: Problem, gains: Mapping[str, Curve]) -> Frontier:
    """The best plan for every budget up to the problem's own.

    >>> from allotment import Geometric, Problem, Task, frontier
    >>> problem = Problem([Task("cls", cost=1), Task("seg", cost=20)], budget=6300)
    >>> curve = frontier(problem, {"cls": Geometric(1.13, 0.999), "seg": Geometric(2.03, 0.997)})
    >>> len(curve.budgets), curve.at(3000).counts
    (6301, {'cls': 2480, 'seg': 26})
    """
    gains = check_gains(problem, gains)
    check_limits(problem)
    model = build(problem, gains)
    if model.rows == 1 and model.limits[0] <= DENSEST:
        values, counts = sweep(model)
        reached = values > -np.inf
        budgets = np.arange(len(values))[reached] * float(problem.unit)
        by_name = {name: counts[index][reached] for index, name in enumerate(problem.names)}
        return Frontier(problem, gains, budgets, values[reached], by_name, every_budget=True)
    plans = _at_breakpoints(problem, gains, model)
    return Frontier(
        problem,
        gains,
        np.array([float(plan.problem.budget) for plan in plans]),
        np.array([plan.value for plan in plans]),
        {name: np.array([plan.counts[name] for plan in plans]) for name in problem.names},
        every_budget=False,
    )


def _at_breakpoints(problem: Problem, gains: dict[str, Curve], model: Model) -> list[Plan]:
    """Exact plans at budgets spread over the whole range."""
    floor = problem.price({task.name: task.floor for task in problem.tasks})
    if model.rows > 1:
        steps = 48
        budgets = {floor + (problem.budget - floor) * step / steps for step in range(steps + 1)}
    else:
        budgets = {floor, problem.budget, *_corner_budgets(problem, model)}
    units = sorted({int(budget // problem.unit) for budget in budgets if floor <= budget <= problem.budget})
    return [solve_within(problem.with_budget(unit * problem.unit), gains) for unit in units]


def _corner_budgets(problem: Problem, model: Model) -> list[Fraction]:
    """Budgets that are spent to the last unit at one price of money: corners of the frontier's hull."""
    part = whole(model)
    top = float(highest_prices(model, part)[0])
    found = []
    for price in np.geomspace(top, max(top * 1e-12, 1e-300), BREAKPOINTS):
        answer = respond(model, part, np.array([price]))
        found.append(Fraction(int(model.limits[0] - answer.slack[0])) * problem.unit)
    return found
