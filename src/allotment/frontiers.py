"""What every budget would buy, and up to which one labels bring what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import exact, show
from allotment.errors import Infeasible, InputError, Mistake, load_library
from allotment.gains import Curve, Geometric
from allotment.plan import (
    Evidence,
    Plan,
    as_evidence,
    check_gains,
    check_limits,
    floors_of,
    solve_within,
    value_of,
)
from allotment.problem import Problem, Task, read_point_worth, show_exact
from allotment.solver.dual import highest_prices, respond, whole
from allotment.solver.model import Model, build
from allotment.solver.search import maximise
from allotment.solver.sweep import sweep

DENSEST = 10_000_000
"""up to so many units of budget times tasks every budget is solved; beyond it breakpoints are"""
BREAKPOINTS = 512
SAMPLES = 49


@dataclass(frozen=True)
class Frontier:
    """The best value and counts for budgets from nothing to the problem's own.

    `every_budget` tells whether the arrays hold every budget that differs in money at all; if not
    they hold breakpoints, each of them exact, and `at` still solves any budget exactly.
    """

    problem: Problem
    gains: dict[str, Curve]
    budgets: NDArray[np.float64]
    values: NDArray[np.float64]
    counts: dict[str, NDArray[np.int64]] = field(repr=False)
    every_budget: bool
    evidence: Evidence | None = field(default=None, repr=False)

    def at(self, budget: Any) -> Plan:
        """The exact plan for one budget, up to the problem's own."""
        try:
            amount = exact(budget)
        except ValueError as error:
            raise InputError([Mistake("budget", str(error))]) from None
        if not 0 <= amount <= self.problem.budget:
            what = f"{show(amount)} is not between 0 and the problem's {show(self.problem.budget)}"
            raise InputError([Mistake("budget", what)])
        return solve_within(self.problem.with_budget(amount), self.gains, self.evidence)

    def to_frame(self) -> Any:
        """A row for each budget, as a frame of pandas: its value and the labels of each task."""
        columns = {"value": self.values} | self.counts
        index = load_library("pandas").Index(self._exact_budgets, name="budget")
        return load_library("pandas").DataFrame(columns, index=index)

    def plot(self, axes: Any = None) -> Any:
        """Value and labels by budget, drawn by matplotlib; the axes, to go on with."""
        plots = load_library("matplotlib.pyplot")
        if axes is None:
            _, axes = plots.subplots(2, 1, sharex=True, figsize=(7, 6))
        top, bottom = axes
        top.plot(self.budgets, self.values)
        top.set_ylabel("value")
        for name, each in self.counts.items():
            bottom.plot(self.budgets, each, label=name)
        bottom.set_xlabel("budget")
        bottom.set_ylabel("labels")
        bottom.legend()
        return axes

    def __repr__(self) -> str:
        low, high = (show(exact(each)) for each in (self.budgets[0], self.budgets[-1]))
        return f"Frontier({len(self.budgets)} budgets from {low} to {high})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page of it."""
        return str(load_library("allotment.reports.notebook").draw(self))

    def to_dict(self, points: int | None = None) -> dict[str, Any]:
        """Plain values for JSON: all budgets, or so many, as evenly spread as there are any."""
        at = slice(None) if points is None else self._spread(points)
        return {
            "budgets": self._exact_budgets[at].tolist(),
            "values": self.values[at].tolist(),
            "counts": {name: each[at].tolist() for name, each in self.counts.items()},
            "every_budget": self.every_budget,
        }

    def _spread(self, points: int) -> NDArray[np.int64]:
        low, high = self.budgets[0], self.budgets[-1]
        wanted = low + (high - low) * np.arange(1, points + 1) / points
        return np.unique(np.searchsorted(self.budgets, wanted * (1 + 1e-12), side="right") - 1)

    @property
    def _exact_budgets(self) -> NDArray[Any]:
        """Without the rounding of floats: whole numbers, or as many decimals as prices have."""
        whole_ones = self.problem.unit.denominator == 1
        return self.budgets.round().astype(np.int64) if whole_ones else self.budgets.round(12)


def frontier(problem: Problem, gains: Mapping[str, Curve] | Evidence) -> Frontier:
    """The best plan for every budget up to the problem's own, by given curves or by what was
    measured.

    >>> from allotment import Geometric, Problem, Task, frontier
    >>> problem = Problem([Task("cls", cost=1), Task("seg", cost=20)], budget=6300)
    >>> curve = frontier(problem, {"cls": Geometric(1.13, 0.999), "seg": Geometric(2.03, 0.997)})
    >>> len(curve.budgets), curve.at(3000).counts
    (6301, {'cls': 2480, 'seg': 26})
    """
    evidence, gains = as_evidence(gains), check_gains(problem, gains)
    check_limits(problem)
    model = build(problem, gains)
    dense = model.rows == 1 and int(model.limits[0]) * model.tasks <= DENSEST
    if model.rows == 1:
        units, values, counts = _every_budget(model) if dense else _corners(model)
        units, counts = model.spent + units, model.base[:, None] + counts
        values = value_of(problem, gains, floors_of(problem)) + values
    else:
        units, values, counts = _samples(problem, gains)
    by_name = {name: counts[index] for index, name in enumerate(problem.names)}
    budgets = units.astype(np.float64) * float(problem.unit)
    return Frontier(problem, gains, budgets, values, by_name, dense, evidence)


@dataclass(frozen=True)
class Stop:
    """Up to where labels bring what they cost, where a point of gain is worth money."""

    plan: Plan
    """the one of greatest value x point_worth less money; its budget is the money that it takes"""
    budget: Fraction
    """all there is"""
    point_worth: Fraction
    is_end: bool
    """whether it is the best plan for all there is: every label of that which need not be bought
    brings what it costs"""

    @property
    def unspent(self) -> Fraction:
        """What the plan leaves of all there is."""
        return self.budget - self.plan.problem.budget

    @property
    def is_start(self) -> bool:
        """Whether no label pays beyond those that must be bought."""
        return self.plan.counts == floors_of(self.plan.problem)

    def check(self) -> None:
        """Raise Infeasible where it leaves nothing to buy."""
        if not any(self.plan.counts.values()):
            raise Infeasible([f"{self}: to plan all the same, leave out --stop"])

    def __str__(self) -> str:
        point = f"If a point is worth {show(self.point_worth)}"
        beyond = ""
        if any(floors_of(self.plan.problem).values()):
            beyond = " beyond those that must be bought"
        if self.is_start:
            return f"{point}, no label{beyond} brings what it costs"
        if self.is_end:
            return f"{point}, every label of the plan{beyond} brings what it costs"
        spent = show(self.plan.problem.budget)
        return f"{point}, labels beyond {spent} of {show(self.budget)} cost more than they bring"

    def say(self, is_taken: bool) -> str:
        """The same with what becomes of the rest, which is left if the plan `is_taken`."""
        if self.is_end:
            return str(self)
        return f"{self}: {show(self.unspent)} {'stays' if is_taken else 'could stay'} unspent"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "point_worth": show_exact(self.point_worth),
            "counts": self.plan.counts,
            "spent": show_exact(self.plan.problem.budget),
            "unspent": show_exact(self.unspent),
            "value": self.plan.value,
        }


def find_stop(problem: Problem, gains: Mapping[str, Curve] | Evidence, point_worth: Any) -> Stop:
    """Up to where labels bring what they cost: the plan of greatest value x point_worth less money
    that the budget and every limit allow, of equal ones that of least money.

    `point_worth` is what a value of 1 is worth in money; of measured gains, what one point of
    D_T is, their mean over tasks by weight.

    >>> from allotment import Geometric, Problem, Task, find_stop
    >>> problem = Problem([Task("cls", cost=1), Task("seg", cost=20)], budget=6300)
    >>> gains = {"cls": Geometric(1.13, 0.999), "seg": Geometric(2.03, 0.997)}
    >>> print(find_stop(problem, gains, point_worth=12).plan)
    cls 2606, seg 66: 3926 of 3926
    """
    evidence, curves = as_evidence(gains), check_gains(problem, gains)
    check_limits(problem)
    worth = read_point_worth(point_worth)
    per_point = 1.0 if evidence is None else sum(task.weight for task in problem.tasks) or 1.0
    whole = solve_within(problem, curves)
    # money that is kept is like a task of which every label is worth what it costs
    kept = Task(_find_free_name(problem), cost=problem.unit)
    each = Geometric(float(problem.unit / worth) * per_point, 1.0)
    most = _find_most(problem, whole, float(worth) / per_point)
    both = Problem([kept, *problem.tasks], most, problem.caps, problem.count_implied)
    found = solve_within(both, {kept.name: each, **curves})
    money = problem.price({name: found.counts[name] for name in problem.names})
    plan = solve_within(problem.with_budget(money), curves, evidence)
    plan = replace(plan, gap=max(plan.gap, found.gap))
    return Stop(plan, problem.budget, worth, is_end=plan.counts == whole.counts)


def _find_most(problem: Problem, whole: Plan, worth: float) -> Fraction:
    """Money beyond which no plan brings what it costs, not even one that brings all there is to
    gain. Beside much more of it the worth of single labels would be lost in the last digits."""
    floors = floors_of(problem)
    gain = whole.value + whole.gap - value_of(problem, whole.gains, floors)
    units = math.ceil(gain * worth * (1 + 1e-9) / float(problem.unit))
    return min(problem.budget, problem.price(floors) + units * problem.unit)


def _find_free_name(problem: Problem) -> str:
    taken, name = set(problem.names), "kept"
    while name in taken:
        name += "'"
    return name


FrontierPoints = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]
"""budgets in units, values, counts (tasks, budgets); beyond the floors where they come from a
model"""


def _every_budget(model: Model) -> FrontierPoints:
    values, counts = sweep(model)
    return np.arange(len(values)), values, counts


def _corners(model: Model) -> FrontierPoints:
    """Budgets at which one price of money leaves nothing over: there the answer to that price is
    the exact plan."""
    part = whole(model)
    top = float(highest_prices(model, part)[0]) * (1 + 1e-9)
    plans = {}
    for price in np.geomspace(top, max(top * 1e-12, 1e-300), BREAKPOINTS):
        answer = respond(model, part, np.array([price]))
        if answer.slack[0] >= 0:
            plans[int(model.limits[0] - answer.slack[0])] = answer.choice
    best = maximise(model).counts
    plans[int(model.limits[0])] = best
    units = np.array(sorted(plans))
    counts = np.array([plans[int(unit)] for unit in units]).T
    return units, np.array([model.worth(plans[int(unit)]) for unit in units]), counts


def _samples(problem: Problem, gains: dict[str, Curve]) -> FrontierPoints:
    """Exact plans at budgets spread evenly, where several limits leave no such corners."""
    low, high = (
        math.ceil(problem.price(floors_of(problem)) / problem.unit),
        int(problem.budget // problem.unit),
    )
    units = np.unique(np.linspace(low, high, SAMPLES).astype(np.int64))
    plans = [solve_within(problem.with_budget(int(unit) * problem.unit), gains) for unit in units]
    counts = np.array([[plan.counts[name] for plan in plans] for name in problem.names])
    return units, np.array([plan.value for plan in plans]), counts
