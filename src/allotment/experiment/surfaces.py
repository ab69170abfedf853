"""What is on record of experiments as surfaces beside those of the corpus, one for each set of
prices, so that any way to plan is judged on them, too."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from allotment.arrays import Array
from allotment.corpus.plans import (
    Counts,
    list_baselines,
    make_problem,
    order_counts,
)
from allotment.corpus.setting import Setting
from allotment.corpus.surface import Surface
from allotment.corpus.ways import Choice, Knowledge, tell
from allotment.errors import InputError, Mistake
from allotment.estimates.response import Response
from allotment.experiment.case import CASES, Case, Prices
from allotment.experiment.casebook import Casebook
from allotment.experiment.entrants import (
    USUAL_AHEAD,
    MeasuredPlan,
    list_ablations,
    list_ours,
    list_taba,
    spread_budget,
)
from allotment.experiment.record import Record, name_record
from allotment.experiment.work import Question, name_estimates, name_pool
from allotment.formatting import several
from allotment.plan import allocate

FEWEST_PLANS = 3
"""of a surface: fewer say nothing of what lies between them"""


@dataclass(frozen=True)
class RecordedSurface(Surface):
    """A surface of an experiment, from the seed sets that are on record. Each is a campaign; where
    there is one seed set, each of its purchases is."""

    book: Casebook
    seed_sets: tuple[int, ...]
    trained: tuple[Counts, ...]
    wanted: int
    """plans that there will be"""

    @property
    def plans(self) -> tuple[Counts, ...]:
        return self.trained

    def gain(self, campaign: int, plan: Counts) -> float:
        rows = self._find_totals(plan)
        if len(self.seed_sets) == 1:
            return float(rows[self.seed_sets[0], campaign])
        return float(rows[campaign].mean())

    def _find_totals(self, plan: Counts) -> Array:
        """[seed set, purchase]"""
        if plan not in self._totals:
            self._totals[plan] = find_totals(self.book, plan)
        return self._totals[plan]

    @cached_property
    def _totals(self) -> dict[Counts, Array]:
        return {}

    @cached_property
    def error_of_lead(self) -> float:
        rows = np.array([self._find_totals(plan)[list(self.seed_sets)] for plan in self.plans])
        bought = rows.shape[2]
        if bought == 1:
            return 0.0
        meant = 1 if len(self.seed_sets) == 1 else bought
        return float(np.sqrt(2 * rows.var(axis=2, ddof=1).mean() / meant))

    @cached_property
    def kept_ways(self) -> Collection[str]:
        case, record = self.book.case, self.book.record
        return [
            name
            for name, each in list_measured(case).items()
            if any(record.has(name_estimates(case, asked)) for asked in each.list_questions(case))
        ]

    def recall(self, campaign: int, way: str) -> Choice | None:
        method = list_measured(self.book.case).get(way)
        estimates = None
        if method is not None:
            estimates = self.book.find_estimates(self._ask(method, campaign))
        if estimates is None:
            return None
        problem, begin = make_problem(self.setting), time.process_time()
        plan = allocate(problem, estimates)
        return tell(self.setting, problem, plan, estimates, time.process_time() - begin)

    def know(self, campaign: int) -> Knowledge | None:
        (default,) = list_ours()
        asked = self._ask(default, campaign)
        estimates = self.book.find_estimates(asked)
        plain = {} if estimates is None else estimates.about.get("measured", {})
        if "response" not in plain:
            return None
        response = Response.from_dict(plain["response"])
        return Knowledge(self.setting, asked.seed_set, make_problem(self.setting), response)

    def _ask(self, method: MeasuredPlan, campaign: int) -> Question:
        seed_set = self.seed_sets[0] if len(self.seed_sets) == 1 else campaign
        return method.list_questions(self.book.case)[seed_set]

    def __str__(self) -> str:
        case = self.book.case
        parts = [
            f"{len(self.seed_sets)} of {several(case.seed_sets, 'seed set')}, each with"
            f" {several(case.purchases, 'purchase')} of a plan",
            f"{len(self.plans)} of {self.wanted} plans of the grid and baselines",
        ]
        if np.isfinite(self.range):
            parts.append(f"range {self.range:.2f} points")
        return "; ".join([*parts, f"plans between them are read to within {self.error:.2f}"])


def list_measured(case: Case) -> Mapping[str, MeasuredPlan]:
    """The paper's method and its ablations by the names of their methods, with m where it is not
    the usual one."""
    found = {}
    for each in (*list_taba(case), *list_ablations(case)):
        ahead = each.options.get("ahead", USUAL_AHEAD)
        name = each.method if ahead == USUAL_AHEAD else f"{each.method}, m = {ahead}"
        found[name] = each
    return found


def find_totals(book: Casebook, plan: Counts) -> Array:
    """[seed set, purchase]: D_T of a plan that is the same in every seed set."""
    counts = dict(zip(book.case.tasks, plan, strict=True))
    return book.outcomes.find_totals(book.outcomes.repeat(counts))


def make_setting(book: Casebook, size: str, prices: Prices) -> Setting:
    """What is planned, as the corpus has it."""
    case, count = book.case, len(book.case.tasks)
    return Setting(
        f"{case.data}-{size} {prices.name}",
        case.data,
        case.tasks,
        tuple(prices.costs[task] for task in case.tasks),
        (case.have,) * count,
        (book.pool,) * count,
        prices.budget,
        cluster=case.data,
        higher_is_better=all(book.outcomes.points_up(task) for task in case.tasks),
    )


def open_prices(book: Casebook, size: str, prices: Prices) -> RecordedSurface | None:
    """The surface of one set of prices; None if too little of it is on record."""
    setting = make_setting(book, size, prices)
    grid = [order_counts(setting, counts) for _, counts in spread_budget(book.case, prices)]
    wanted = list(dict.fromkeys([*grid, *list_baselines(setting).values()]))
    there = np.array([np.isfinite(find_totals(book, plan)).all(axis=1) for plan in wanted])
    seed_sets, places = find_whole(there.T)
    if len(places) < FEWEST_PLANS:
        return None
    campaigns = tuple(range(book.case.purchases)) if len(seed_sets) == 1 else seed_sets
    plans = tuple(wanted[place] for place in places)
    return RecordedSurface(setting, campaigns, book, seed_sets, plans, len(wanted))


def find_whole(there: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The most seed sets times plans of which nothing is missing.

    >>> find_whole(np.array([[True, True, False], [True, True, True], [False, False, True]]))
    ((0, 1), (0, 1))
    """
    order = np.argsort(-there.sum(axis=1), kind="stable")
    best: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    for count in range(1, len(order) + 1):
        rows = sorted(order[:count].tolist())
        plans = np.flatnonzero(there[rows].all(axis=0)).tolist()
        if count * len(plans) >= len(best[0]) * len(best[1]) and plans:
            best = tuple(rows), tuple(plans)
    return best


@dataclass(frozen=True)
class RecordedCase:
    """The surfaces of one file of records, and what is missing to more."""

    path: Path
    surfaces: tuple[RecordedSurface, ...]
    missing: tuple[str, ...]
    """prices of which too little is on record"""


def open_records(folder: Path) -> list[RecordedCase]:
    """All that `allot experiment run` put on record in a folder."""
    return list(_open_all(folder))


def _open_all(folder: Path) -> Iterator[RecordedCase]:
    for (data, size), case in CASES.items():
        path = name_record(folder, data, size)
        if path.is_file():
            yield open_case(case, size, path)


def open_case(case: Case, size: str, path: Path) -> RecordedCase:
    """What is on record of a case."""
    book, found, missing = Casebook(case, Record(path)), [], []
    has_pool = book.record.has(name_pool(case))
    for prices in case.prices:
        surface = open_prices(book, size, prices) if has_pool else None
        if surface is None:
            missing.append(prices.name)
        else:
            found.append(surface)
    return RecordedCase(path, tuple(found), tuple(missing))


def check_records(folder: Path, found: Collection[RecordedCase]) -> None:
    """That a folder somebody named has records; raises InputError if not."""
    if not found:
        names = ", ".join(name_record(folder, *each).name for each in CASES)
        what = f"has no records ({names}); give the folder that allot experiment run wrote to"
        raise InputError([Mistake(str(folder), what)])
