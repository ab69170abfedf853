"""Entrants side by side: what they plan, what that comes to, and how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from allotment.arrays import Array
from allotment.corpus.plans import EQUAL_BUDGET, NEUTRAL_PLAN
from allotment.estimates.method import DEFAULT
from allotment.experiment.case import Case, Prices
from allotment.experiment.casebook import Casebook
from allotment.experiment.drawings import draw_bars
from allotment.experiment.entrants import (
    GRID_BEST,
    Entrant,
    MeasuredPlan,
    find_best,
    list_baselines,
    list_ours,
    list_taba,
    spread_budget,
)
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean, spell_mean
from allotment.experiment.outcomes import Plans, find_mean
from allotment.experiment.work import ON_VALIDATION, Question
from allotment.job import JSON, Job


@dataclass(frozen=True, eq=False)
class Entry:
    """What one entrant planned and reached."""

    name: str
    plans: Plans
    gains: Array
    """[seed set, purchase, task]; nothing of the best of a grid, which is another plan in each seed
    set"""
    totals: Array
    """[seed set, purchase]"""


class PriceComparison:
    """Entrants at one set of prices."""

    def __init__(
        self, book: Casebook, prices: Prices, entrants: Sequence[Entrant], has_grid: bool = True
    ):
        self.book, self.prices, self.entrants = book, prices, entrants
        self.has_grid = has_grid

    @cached_property
    def grid(self) -> list[tuple[str, Plans]]:
        rows = spread_budget(self.book.case, self.prices)
        return [(name, self.book.outcomes.repeat(counts)) for name, counts in rows]

    def list_trainings(self) -> list[Job]:
        """Of all that is compared, as far as it is planned."""
        jobs = self.book.train_out(self.book.outcomes.nothing)
        for each in self.entrants:
            jobs += self.book.train_out(each.plan(self.book, self.prices), each.same)
        for _, plans in self.grid if self.has_grid else ():
            jobs += self.book.train_out(plans)
        return jobs

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """By name, as far as they are on record."""
        outcomes, found = self.book.outcomes, {}
        for each in self.entrants:
            plans = each.plan(self.book, self.prices)
            gains = outcomes.find_gains(plans, each.same)
            found[each.name] = Entry(each.name, plans, gains, gains.mean(axis=2))
        if self.has_grid:
            totals = np.stack([outcomes.find_totals(plans) for _, plans in self.grid])
            found[GRID_BEST] = Entry(
                GRID_BEST, {}, totals[0][..., None] * np.nan, find_best(totals)
            )
        return found

    def show(self, title: str = "") -> ResultTable:
        """A row for each: gains of the tasks and of all, and how far it is ahead of equal budget
        and of neutral, in the same purchases."""
        tasks = self.book.case.tasks
        heads = (
            "plan", "labels", *(f"D {task}, %" for task in tasks), "D_T, %",
            "over equal budget", "over neutral",
        )  # fmt: skip
        rows = []
        for entry in self.entries.values():
            own = [
                spell_mean(find_mean(entry.gains[..., place])) if entry.plans else ""
                for place in range(len(tasks))
            ]
            over = [self._lead(entry, base) for base in (EQUAL_BUDGET, NEUTRAL_PLAN)]
            row = (entry.name, self._spell(entry.plans), *own, spell_mean(find_mean(entry.totals)))
            rows.append((*row, *over))
        return ResultTable(title, heads, tuple(rows))

    def _lead(self, entry: Entry, base: str) -> str:
        if base not in self.entries or entry.name == base:
            return ""
        lead = find_mean(entry.totals - self.entries[base].totals)
        return "-" if lead.value != lead.value else f"{lead.value:+.2f} ± {lead.reach:.2f}"

    def _spell(self, plans: Plans) -> str:
        """Labels of each task, from the least to the most of all seed sets."""
        if not plans:
            return ""
        found = []
        for task in self.book.case.tasks:
            counts = sorted(counts[task] for counts in plans.values())
            low, high = counts[0], counts[-1]
            found.append(str(low) if low == high else f"{low}-{high}")
        return ", ".join(found)

    def to_dict(self) -> dict[str, JSON]:
        found = {}
        for entry in self.entries.values():
            found[entry.name] = {
                "plans": {str(at): dict(counts) for at, counts in entry.plans.items()},
                "total": dump_mean(find_mean(entry.totals)),
                "gains": {
                    task: dump_mean(find_mean(entry.gains[..., place]))
                    for place, task in enumerate(self.book.case.tasks)
                    if entry.plans
                },
                "totals": _plain(entry.totals),
            }
        return found


def _plain(values: Array) -> list[list[float | None]]:
    return [
        [round(each, 4) if np.isfinite(each) else None for each in row] for row in values.tolist()
    ]


class PriceTables(Exhibit):
    """Entrants side by side, a table for each set of prices."""

    title: ClassVar[str]
    prices: ClassVar[tuple[str, ...]]
    has_grid: ClassVar[bool] = True

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_baselines(case), *list_taba(case), *list_ours()]

    def list_questions(self, case: Case) -> list[Question]:
        return [asked for each in self.list_entrants(case) for asked in each.list_questions(case)]

    def list_planned(self, case: Case) -> list[tuple[Question, str]]:
        return [(asked, name) for asked in self.list_questions(case) for name in self.prices]

    def compare(self, book: Casebook) -> dict[str, PriceComparison]:
        """By the name of prices."""
        entrants = self.list_entrants(book.case)
        return {
            name: PriceComparison(book, book.case.find_prices(name), entrants, self.has_grid)
            for name in self.prices
        }

    def list_trainings(self, book: Casebook) -> list[Job]:
        return [job for each in self.compare(book).values() for job in each.list_trainings()]

    def show(self, book: Casebook) -> Shown:
        return self.tabulate(book.case, self.compare(book))

    def tabulate(self, case: Case, found: Mapping[str, PriceComparison]) -> Shown:
        tables = tuple(each.show(f"Prices {name}") for name, each in found.items())
        values: dict[str, JSON] = {name: each.to_dict() for name, each in found.items()}
        notes: tuple[str, ...] = ()
        if any(asked.score_on == ON_VALIDATION for asked in self.list_questions(case)):
            extra = {name: price_validation(case, each.prices) for name, each in found.items()}
            notes = (_tell_validation(case, found, extra),)
            values[VALIDATION_COST] = {"of each task": case.validation, "cost": extra}
        size = (3.2 + 2.6 * len(found), 4.6)
        return Shown(self.title, tables, notes, values, partial(_draw, found), size)


VALIDATION_COST = "validation labels"
"""in values, beside the names of prices"""


def price_validation(case: Case, prices: Prices) -> int:
    """What the validation labels of a seed set cost."""
    return case.validation * sum(prices.costs.values())


def _tell_validation(
    case: Case, found: Mapping[str, PriceComparison], extra: Mapping[str, int]
) -> str:
    costs = "; ".join(
        f"{extra[name]:,} beside a budget of {each.prices.budget:,} at {name}"
        for name, each in found.items()
    )
    return (
        f"Methods to the paper's letter score on {case.validation} validation labels of each task"
        f" beyond those at hand, which no budget here pays for. They would cost {costs}."
    )


def _draw(found: Mapping[str, PriceComparison], figure: Any) -> None:
    """Bars of D_T at each set of prices; what is measured has a colour, our own another."""
    axes = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
    for each, (name, comparison) in zip(axes, found.items(), strict=True):
        bars = {one.name: find_mean(one.totals) for one in comparison.entries.values()}
        marked = {
            one.name: int(one.method == DEFAULT)
            for one in comparison.entrants
            if isinstance(one, MeasuredPlan)
        }
        draw_bars(each, bars, marked)
        each.set_title(f"prices {name}", fontsize=10)
        each.set_xlabel("D_T, %")
