"""What is compared in the paper's tables: its baselines, its method, ours, and the best of a
grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from allotment.arrays import Array
from allotment.corpus.plans import EQUAL_BUDGET, EQUAL_IMAGES, NEUTRAL_PLAN
from allotment.estimates.letter import RATES_OPTION, TRIPLES_OPTION
from allotment.estimates.method import DEFAULT
from allotment.estimates.options import RATES_BETWEEN
from allotment.estimates.triples import FEWEST_TASKS
from allotment.experiment.case import Case, Prices
from allotment.experiment.casebook import Casebook
from allotment.experiment.outcomes import Plans
from allotment.experiment.work import ON_VALIDATION, WHOLE_LETTER, Question
from allotment.job import JSON
from allotment.plan import allocate, baselines
from allotment.problem import Problem, Task

BUDGET_SHARES = tuple(range(0, 101, 10))
"""of the budget on the first of two tasks, in %"""
STAR = "*"
"""after the name of a plan: labels of all tasks are of the same instances"""
GRID_BEST = "grid's best"


def make_problem(case: Case, prices: Prices, pool: int) -> Problem:
    """What is planned: the same in every seed set."""
    tasks = [Task(name, cost=prices.costs[name], have=case.have, pool=pool) for name in case.tasks]
    return Problem(tasks, budget=prices.budget)


class Entrant(Protocol):
    """A row of a table."""

    @property
    def name(self) -> str: ...

    @property
    def same(self) -> bool:
        """Whether all tasks are labelled on the same instances."""

    def list_questions(self, case: Case) -> list[Question]:
        """What must be measured before it can plan, for each seed set."""

    def plan(self, book: Casebook, prices: Prices) -> Plans:
        """The labels to buy in each seed set, as far as that is known."""


@dataclass(frozen=True)
class FixedPlan:
    """A plan that trains nothing."""

    name: str
    base: str = ""
    """its name among baselines, if that is another"""
    same: bool = False

    def list_questions(self, case: Case) -> list[Question]:
        return []

    def plan(self, book: Casebook, prices: Prices) -> Plans:
        problem = make_problem(book.case, prices, book.pool)
        return book.outcomes.repeat(baselines(problem)[self.base or self.name])


@dataclass(frozen=True)
class MeasuredPlan:
    """A plan from what a method measures in each seed set."""

    name: str
    method: str
    options: Mapping[str, JSON] = field(default_factory=dict)
    trainings: int | None = None
    score_on: str = ""
    same: bool = False

    def list_questions(self, case: Case) -> list[Question]:
        return [
            Question(self.method, seed_set, self.trainings, self.options, self.score_on)
            for seed_set in range(case.seed_sets)
        ]

    def plan(self, book: Casebook, prices: Prices) -> Plans:
        problem = make_problem(book.case, prices, book.pool)
        found = {}
        for asked in self.list_questions(book.case):
            estimates = book.find_estimates(asked)
            if estimates is not None:
                found[asked.seed_set] = allocate(problem, estimates).counts
        return found


def list_singles(case: Case) -> list[FixedPlan]:
    """All of the budget on one task; labels of one that bring those of another with them are of the
    same instances."""
    return [
        FixedPlan(f"100 % {task}" + (STAR if task in case.implies else ""), f"all on {task}")
        for task in case.tasks
    ]


def list_baselines(case: Case) -> list[FixedPlan]:
    """The paper's, and the neutral plan (P15)."""
    return [
        FixedPlan(EQUAL_IMAGES),
        FixedPlan(EQUAL_IMAGES + STAR, EQUAL_IMAGES, same=True),
        *list_singles(case),
        FixedPlan(EQUAL_BUDGET),
        FixedPlan(NEUTRAL_PLAN),
    ]


TRIED_AHEAD = (1, 5, 10)
"""the paper's m, which it leaves open"""
USUAL_AHEAD = 5
"""m where only one is shown"""


def list_taba(case: Case, ahead: Sequence[int] = TRIED_AHEAD) -> list[MeasuredPlan]:
    """Algorithm 1 to the letter, for each m."""
    return [
        MeasuredPlan(f"TABA, m = {steps}", "taba", _settle(case, steps), score_on=ON_VALIDATION)
        for steps in ahead
    ]


def _settle(case: Case, ahead: int) -> dict[str, JSON]:
    """Options of Algorithm 1 in a case."""
    runs = {} if not case.looked_at else {"runs": case.looked_at}
    return {"ahead": ahead, **runs}


ALONE_METHOD = "taba-alone"
"""the paper's method without transfer"""
ABLATIONS = {
    "I = 1": ALONE_METHOD,
    "TAG": "taba-tag",
    "b = 1": "taba-b1",
    "b = 0.999": "taba-b0999",
    "b = 0.99": "taba-b099",
    "TABA": "taba",
}
"""the paper's Table 3: what it calls them, and the methods"""


def list_ablations(case: Case) -> list[MeasuredPlan]:
    """Parts of Algorithm 1 taken out or replaced (P18)."""
    return [
        MeasuredPlan(
            name,
            method,
            {} if method == ALONE_METHOD else _settle(case, USUAL_AHEAD),
            score_on=ON_VALIDATION,
        )
        for name, method in ABLATIONS.items()
    ]


PLAIN_TABA, PAIR_RATES, THREE_TASKS = "TABA", "TABA, rates between tasks", "TABA, three tasks"


def list_future(case: Case) -> list[MeasuredPlan]:
    """Algorithm 1 and what the paper leaves for later: rates between tasks and, where there are
    three, transfer of three tasks (P22)."""
    options: dict[str, dict[str, JSON]] = {
        PLAIN_TABA: {},
        PAIR_RATES: {RATES_OPTION: RATES_BETWEEN},
    }
    if len(case.tasks) >= FEWEST_TASKS:
        options[THREE_TASKS] = {TRIPLES_OPTION: True}
    return [
        MeasuredPlan(name, WHOLE_LETTER, _settle(case, USUAL_AHEAD) | more, score_on=ON_VALIDATION)
        for name, more in options.items()
    ]


def list_ours() -> list[MeasuredPlan]:
    return [MeasuredPlan("allotment", DEFAULT)]


def spread_budget(case: Case, prices: Prices) -> Iterator[tuple[str, dict[str, int]]]:
    """A grid over the shares of the budget: tenths for two tasks; for more of them all on one,
    halves on two, and the same money for all."""
    size = len(case.tasks)
    rows: list[tuple[float, ...]]
    if size == 2:
        rows = [(share / 100, 1 - share / 100) for share in BUDGET_SHARES]
    else:
        rows = [tuple(map(float, row)) for row in np.eye(size)]
        rows += [
            tuple(float(place in pair) / 2 for place in range(size))
            for pair in itertools.combinations(range(size), 2)
        ]
        rows.append((1 / size,) * size)
    for shares in rows:
        counts = {
            task: int(share * prices.budget / prices.costs[task] + 1e-9)
            for task, share in zip(case.tasks, shares, strict=True)
        }
        yield " : ".join(f"{share:.0%}" for share in shares), counts


def find_best(totals: Array) -> Array:
    """[seed set, purchase]: what the best plan of a grid comes to, picked in the other seed sets
    (or purchases, where there is one seed set) than those in which it is scored.

    `totals` are by plan, seed set and purchase.
    """
    plans, seed_sets, purchases = totals.shape
    rows = totals.reshape(plans, -1)
    unit = np.repeat(np.arange(seed_sets), purchases)
    if seed_sets == 1:
        unit = np.arange(purchases)
    found = np.full(rows.shape[1], np.nan)
    for each in np.unique(unit):
        others = rows[:, unit != each]
        known = np.isfinite(others).all(axis=1)
        if others.size and known.any():
            best = np.flatnonzero(known)[others[known].mean(axis=1).argmax()]
            found[unit == each] = rows[best, unit == each]
    return found.reshape(seed_sets, purchases)
