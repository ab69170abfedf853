"""Where a campaign stands: its settings, labels, money, estimates and plan, all from the folder, changing nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from allotment.amounts import show
from allotment.campaign.labels import Stock, open_stock
from allotment.campaign.rounds import Account, Tranche, price_of, propose, rebase, take_rest
from allotment.campaign.settings import Settings, read_settings
from allotment.campaign.store import Store, Value
from allotment.errors import InputError, Mistake
from allotment.estimates.estimates import Estimates
from allotment.estimates.methods import METHODS
from allotment.figures import several
from allotment.job import JSON, Job
from allotment.plan import Outlook, Plan, allocate, neutral_gains
from allotment.problem import Problem

CHANGES = {
    "data": "the data have changed",
    "recipe": "[training] or a task's metric has changed",
    "method": "the method is another",
    "trainings": "the number of trainings is another",
    "seed": "the seed is another",
}
"""what makes estimates useless; more labels do not, since a curve goes on"""


@dataclass(frozen=True)
class Found:
    """Estimates that fit the settings, and whether they know all labels at hand."""

    value: Value
    estimates: Estimates
    fresh: bool


@dataclass(frozen=True)
class Proposal:
    """A plan for the money that is left, and how much of it to order now."""

    plan: Plan
    tranche: Tranche
    found: Found | None
    """what it rests on; None for the neutral plan"""

    @cached_property
    def job(self) -> Job:
        """Names the plan by all that it follows from."""
        basis = None if self.found is None else self.found.value.key
        needs = {"problem": self.plan.problem.to_dict(), "estimates": basis, "tranche": self.tranche.counts}
        return Job("plan", needs)

    def to_dict(self) -> dict[str, JSON]:
        number = None if self.found is None else self.found.value.number
        return {"plan": self.plan.to_dict(), "tranche": self.tranche.to_dict(), "estimates": number}


@dataclass(frozen=True, eq=False)
class State:
    """One look at a campaign."""

    folder: Path
    settings: Settings
    text: str
    stock: Stock = field(repr=False)
    ordered: Mapping[str, tuple[str, ...]] = field(repr=False)
    """of each task, every instance that was ever ordered and not cancelled"""
    open: tuple[tuple[int, str, str], ...] = field(repr=False)
    """(order, task, instance) that did not come back yet"""
    estimates: tuple[Value, ...] = field(repr=False)
    """all there are, the oldest first"""
    outlooks: Mapping[str, JSON] = field(default_factory=dict, repr=False)
    """of plans, by the names of their diagnoses"""

    @cached_property
    def account(self) -> Account:
        waiting = Counter(task for _, task, _ in self.open)
        came = {name: len(self.ordered[name]) - waiting[name] for name in self.settings.names}
        return Account(came, {name: waiting[name] for name in self.settings.names})

    @cached_property
    def money(self) -> tuple[Fraction, Fraction, Fraction]:
        """(spent, on order, left)"""
        spent, on_order = price_of(self.settings.problem(), self.account)
        return spent, on_order, self.settings.budget - spent - on_order

    def rest(self, budget: Any = None) -> Problem:
        """The problem that is left; `budget` is another one for the campaign as a whole."""
        whole = self.settings.problem() if budget is None else self.settings.problem().with_budget(budget)
        pool = {name: len(self.stock.candidates(name, self.ordered[name])) for name in self.settings.names}
        return take_rest(whole, self.account, self.stock.have, pool)

    @property
    def is_affordable(self) -> bool:
        """Whether the money that is left buys any label at all."""
        rest = self.rest()
        first = [task.price(task.lot) for task in rest.tasks if task.ceiling is None or task.ceiling >= task.lot]
        return any(price <= rest.budget for price in first)

    @cached_property
    def needs(self) -> dict[str, JSON]:
        """What estimates depend on beside the labels and the learner; no data that take minutes to read through."""
        settings = self.settings
        trainings = METHODS[settings.method].trainings if settings.trainings is None else settings.trainings
        needs = {"recipe": settings.recipe, "method": settings.method, "trainings": trainings, "seed": settings.seed}
        if not hasattr(self.stock.data, "image_files"):
            needs["data"] = self.stock.data.fingerprint
        return needs

    @cached_property
    def found(self) -> Found | None:
        """The newest estimates that fit the settings; those that know all labels at hand come first."""
        fitting = [value for value in self.estimates if not self.changes(value.body["needs"])]
        exact = [value for value in fitting if value.body["needs"]["labels"] == self.stock.fingerprint]
        for value in [*fitting, *exact][-1:]:
            estimates = Estimates.from_dict(value.body["estimates"])
            return Found(value, estimates, bool(exact))
        return None

    def changes(self, needs: Mapping[str, JSON]) -> list[str]:
        """Why something that was measured does not fit the settings any more."""
        return [why for key, why in CHANGES.items() if key in self.needs and needs.get(key) != self.needs[key]]

    def propose(self, budget: Any = None) -> Proposal:
        """The best plan for the money that is left; raises InputError if nothing was measured that it could rest on."""
        problem = self.rest(budget)
        if self.settings.method == "neutral":
            plan = allocate(problem, neutral_gains(problem))
            return Proposal(plan, propose(plan, None, self.settings.budget, learns=False), None)
        if self.found is None:
            raise InputError([Mistake("", self._why_unmeasured())])
        have = {task.name: task.have for task in problem.tasks}
        plan = allocate(problem, rebase(self.found.estimates, have))
        known = self.outlooks.get(name_diagnosis(self.found.value.key, problem))
        if known is not None:  # which takes seconds to find out
            outlook = Outlook.from_dict(known)
            vars(plan).update(outlook=outlook, plateau=outlook.plateau)
        whole = self.settings.budget if budget is None else problem.budget
        return Proposal(plan, propose(plan, plan.outlook, whole), self.found)

    @property
    def is_looked_through(self) -> bool:
        """Whether what a plan for the money that is left promises is on record."""
        neutral = self.settings.method == "neutral"
        known = self.found is not None and name_diagnosis(self.found.value.key, self.rest()) in self.outlooks
        return neutral or known

    def _why_unmeasured(self) -> str:
        name = self.folder.name or self.folder
        if not self.estimates:
            return f'nothing is measured yet; type: allot estimate {name}   (or set method = "neutral")'
        reasons = min((self.changes(value.body["needs"]) for value in reversed(self.estimates)), key=len)
        kept = several(len(self.estimates), "set") + " of estimates"
        return f"{' and '.join(reasons)} since ({kept} kept, but not used); type: allot estimate {name}"

    def tell_money(self) -> str:
        """Spent, on order and left, in one line."""
        spent, on_order, left = map(show, self.money)
        return f"{show(self.settings.budget)}: {spent} spent, {on_order} on order, {left} left"


def look(folder: Path, store: Store) -> State:
    """Read everything once."""
    settings, text = read_settings(folder)
    given = {name: store.delivered(name, settings.conflicts) for name in settings.names}
    stock = open_stock(settings, folder, given)
    return State(
        folder=folder,
        settings=settings,
        text=text,
        stock=stock,
        ordered={name: tuple(store.ordered(name)) for name in settings.names},
        # what somebody filled into the table itself has come back, too
        open=tuple(item for item in store.open_items() if not stock.has(*item[1:])),
        estimates=tuple(store.values("estimates")),
        outlooks={value.key: value.body["outlook"] for value in store.values("diagnosis")},
    )


def name_diagnosis(estimates: str, problem: Problem) -> str:
    """The key of what was found out about a plan from these estimates."""
    return Job("diagnosis", {"of": estimates, "for": problem.to_dict()}).key
