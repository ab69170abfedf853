"""Entrants side by side: what they plan, what that comes to, and how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from allotment.arrays import Array
from allotment.corpus.plans import EQUAL_BUDGET, NEUTRAL_PLAN
from allotment.experiment.case import Case, Prices
from allotment.experiment.casebook import Casebook
from allotment.experiment.entrants import (
    GRID_BEST,
    Entrant,
    find_best,
    list_baselines,
    list_ours,
    list_taba,
    spread_budget,
)
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean, spell_mean
from allotment.experiment.outcomes import Plans, find_mean
from allotment.experiment.work import Question
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
        return self.tabulate(self.compare(book))

    def tabulate(self, found: Mapping[str, PriceComparison]) -> Shown:
        tables = tuple(each.show(f"Prices {name}") for name, each in found.items())
        values = {name: each.to_dict() for name, each in found.items()}
        return Shown(self.title, tables, values=values)
