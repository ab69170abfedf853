"""Where a campaign stands: its settings, labels, money, estimates and plan, all from the folder,
changing nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from allotment.amounts import show
from allotment.campaign.beginning import check_begun, tell_unbegun
from allotment.campaign.prospect import Prospect, find_prospect
from allotment.campaign.renaming import check_renames, hint_renamed, tell_unsaid
from allotment.campaign.rounds import (
    Account,
    Bill,
    price_of,
    rebase,
    settle,
    take_rest,
    tell_clashes,
    tell_idle,
)
from allotment.campaign.tranche import Tranche, propose_tranche
from allotment.data.source import DataSettings
from allotment.errors import Infeasible, InputError, Mistake, cut
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import Forecast, ScoreLevel, find_score_level, forecast
from allotment.estimates.method import CONCLUSION, METHODS, UNSAID, Method, mark_conclusion
from allotment.estimates.options import check_options
from allotment.formatting import several
from allotment.frontiers import Stop, find_stop
from allotment.job import JSON, Job
from allotment.learners.metrics import name_metric
from allotment.ledger.books import find_terms, list_lost
from allotment.ledger.journal import Position
from allotment.ledger.store import Correction, Store, Value
from allotment.plan import Outlook, Plan, allocate, unit_of
from allotment.problem import Problem
from allotment.settings.settings import SETTINGS_FILE, Settings, quote, read_settings
from allotment.standing import PERCENT
from allotment.stock.fingerprints import check_rows, find_fingerprint
from allotment.stock.stock import Stock, open_stock

CHANGES = {
    "data": "the data have changed",
    "recipe": "[training] or a task's metric has changed",
    "method": "the method is another",
    "edition": "the method is not what it was",
    "options": "[estimates] has changed",
    "trainings": "the number of trainings is another",
    "seed": "the seed is another",
}
"""what makes estimates useless; more labels do not, since a curve goes on"""

CORRECTED = "labels that were trained on were corrected"
"""likewise: what was measured on a label that is another now says nothing of it"""

Files = tuple[Settings, DataSettings]
"""settings, and what they say of the data, which remembers what was read"""


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
    """what it rests on; None where nothing is measured"""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """of each task with any, the labels on order, which the plan counts as at hand"""
    orders: tuple[int, ...] = ()
    """that these are in"""
    basis: str = ""
    """in words, where nothing is measured"""
    forecasts: Mapping[str, Forecast] = field(default_factory=dict)
    """of each task, as far as it was scored: its score now and with the plan"""
    prospect: Prospect | None = None
    """of ordering the tranche, where something was measured"""
    stop: Stop | None = None
    """up to where labels bring what they cost, where that can be said"""

    @property
    def is_stopped(self) -> bool:
        """Whether the plan ends there, and leaves the rest unspent."""
        return self.stop is not None and self.plan is self.stop.plan

    @property
    def can_stop(self) -> bool:
        """Whether there is an end that the plan goes beyond."""
        stop = self.stop
        return not (stop is None or self.is_stopped or stop.is_end or stop.is_start)

    @property
    def is_empty(self) -> bool:
        return not any(self.plan.counts.values())

    @cached_property
    def job(self) -> Job:
        """Names the plan by all that it follows from."""
        basis = None if self.found is None else self.found.value.key
        needs = {
            "problem": self.plan.problem.to_dict(),
            "estimates": basis,
            "tranche": self.tranche.counts,
        }
        return Job("plan", needs)

    def to_dict(self) -> dict[str, JSON]:
        number = None if self.found is None else self.found.value.number
        return {"plan": self.plan.to_dict(), "tranche": self.tranche.to_dict(), "estimates": number}


@dataclass(frozen=True, eq=False)
class CampaignState:
    """One look at a campaign."""

    folder: Path
    settings: Settings
    said: DataSettings = field(repr=False)
    """what these say of the data, with what was read of them"""
    position: Position
    """how far the store had come"""
    stock: Stock = field(repr=False)
    ordered: Mapping[str, tuple[str, ...]] = field(repr=False)
    """of each task, every instance that was ever ordered and not cancelled"""
    open: tuple[tuple[int, str, str], ...] = field(repr=False)
    """(order, task, instance) that did not come back yet"""
    estimates: tuple[Value, ...] = field(repr=False)
    """all there are, the oldest first"""
    outlooks: Mapping[str, JSON] = field(default_factory=dict, repr=False)
    """of plans, by the names of their diagnoses"""
    bills: tuple[Bill, ...] | None = field(default=None, repr=False)
    """of all orders; None where one does not say what it cost"""
    kept: tuple[tuple[int, str, str], ...] = field(default=(), repr=False)
    """(order, task, instance) of all that is to be paid: what came, and what is on order"""
    fingerprint: str = field(default="", repr=False)
    """of the data, if it is on record; else these are asked"""
    lost: tuple[Path, ...] = field(default=(), repr=False)
    """sheets of orders that are not on record any more"""
    outdated: frozenset[str] = field(default=frozenset(), repr=False)
    """keys of estimates that were made with labels which were corrected since"""
    held: int = 0
    """labels that came and wait for somebody's word"""
    unsaid: str = ""
    """that a task is gone and another is new, which may be the same one renamed"""
    unbegun: str = ""
    """that it is not said with which weights a network begins, which a training has to know"""

    def check_begun(self) -> None:
        """Raises InputError unless it is said with which weights the network begins."""
        check_begun(self.unbegun, self.settings, self.folder)

    def check_lost(self) -> None:
        """Raises InputError where orders were sent that are not on record: the same would be bought
        twice."""
        if self.lost:
            raise InputError([Mistake(repr(str(self.lost[0])), self.tell_lost())])

    def tell_lost(self) -> str:
        """What is to be said of the first such sheet."""
        typed = f"allot ingest {quote(self.folder)} {quote(self.lost[0])}"
        what = (
            "is the sheet of an order that is not on record: the campaign was put back to an"
            " earlier state"
        )
        return f"{what}. To put the order on record again, with what it has of labels: {typed}"

    @cached_property
    def paid(self) -> Mapping[int, tuple[Fraction, Fraction]] | None:
        """(spent, on order) of each order; None where an order does not say what it cost."""
        return None if self.bills is None else settle(self.bills)

    @property
    def text(self) -> str:
        """Of the settings."""
        return self.settings.text

    @property
    def files(self) -> Files:
        """What was read, for another look."""
        return self.settings, self.said

    @cached_property
    def account(self) -> Account:
        waiting = Counter(task for _, task, _ in self.open)
        came = {name: len(self.ordered[name]) - waiting[name] for name in self.settings.names}
        paid = None
        if self.paid is not None:
            spent, on_order = ([each[at] for each in self.paid.values()] for at in (0, 1))
            paid = sum(spent, Fraction(0)), sum(on_order, Fraction(0))
        return Account(came, {name: waiting[name] for name in self.settings.names}, paid)

    @cached_property
    def money(self) -> tuple[Fraction, Fraction, Fraction]:
        """(spent, on order, left)"""
        spent, on_order = price_of(self.settings.problem(), self.account)
        return spent, on_order, self.settings.budget - spent - on_order

    def _whole(self, budget: Any = None) -> Problem:
        problem = self.settings.problem()
        return problem if budget is None else problem.with_budget(budget)

    def rest(self, budget: Any = None) -> Problem:
        """The problem that is left; `budget` is another one for the campaign as a whole."""
        if budget is None:
            return self._rest
        return take_rest(
            self._whole(budget), self.account, self.have, self.pool, "give a larger --budget"
        )

    @cached_property
    def _rest(self) -> Problem:
        return take_rest(self._whole(), self.account, self.have, self.pool)

    @cached_property
    def have(self) -> dict[str, int]:
        """Of each task, the labels at hand as plans count them."""
        return self.stock.trained.counts if self.settings.count_implied else self.stock.have

    @cached_property
    def pool(self) -> dict[str, int]:
        """Of each task, how many instances could still be labelled."""
        return {
            name: self.stock.count_candidates(name, self.ordered[name])
            for name in self.settings.names
        }

    @cached_property
    def clashes(self) -> tuple[str, ...]:
        """Why no plan for the money that is left can meet the settings; those who only look get on
        without one."""
        try:
            return tuple(self._tell_clashes(self._whole(), self.rest()))
        except Infeasible as error:
            return error.clashes

    def _tell_clashes(self, whole: Problem, rest: Problem) -> list[str]:
        return tell_clashes(whole, rest, {name: self.account.bought(name) for name in whole.names})

    @property
    def is_affordable(self) -> bool:
        """Whether the money that is left buys any label at all; raises Infeasible where limits
        clash."""
        if self.clashes:
            raise Infeasible(self.clashes)
        return any(not obstacle for obstacle, _ in self._obstacles.values())

    @property
    def can_buy(self) -> bool:
        """The same for those who only look, and take a clash for no."""
        return not self.clashes and self.is_affordable

    @property
    def buys_something(self) -> bool:
        """Whether any plan that takes every task to be worth something surely buys a label."""
        weighty = {task.name for task in self.settings.tasks if task.weight > 0}
        return self.can_buy and any(
            not why for name, (why, _) in self._obstacles.items() if name in weighty
        )

    @cached_property
    def _obstacles(self) -> dict[str, tuple[str, str]]:
        """Of each task, what keeps the money that is left from buying the least of it, and the key
        that would help."""
        rest, found = self.rest(), {}
        for own, task in zip(self.settings.tasks, rest.tasks, strict=True):
            lot = "a label" if task.lot == 1 else f"a lot of {task.lot}"
            used = [
                cap.name for cap in rest.caps if cap.use.get(task.name, 0) * task.lot > cap.limit
            ]
            obstacle = "", ""
            if task.frozen is not None and task.frozen < task.lot:
                obstacle = f"it is frozen at {own.frozen}, and these are bought", "frozen"
            elif task.pool is not None and task.pool < task.lot:
                obstacle = "nothing is left to label", ""
            elif task.most is not None and task.most < task.lot:
                obstacle = f"most is {own.most}", "most"
            elif used:
                obstacle = f"{lot} takes more than is left of {used[0]!r}", "cap"
            elif task.price(task.lot) > rest.budget:
                obstacle = f"{lot} costs {show(task.price(task.lot))}", "budget"
            found[task.name] = obstacle
        return found

    def tell_obstacles(self) -> str:
        """Why nothing more can be bought, and what in the settings would change that."""
        if self.money[2] < 0:
            return "that is more than there is: raise the budget"
        if self.clashes:
            return "; ".join(self.clashes)
        found = self._obstacles
        keys = list(dict.fromkeys(key for _, key in found.values() if key))
        if keys == ["budget"] and all(key for _, key in found.values()):
            return "that buys nothing more: raise the budget"
        why = "; ".join(f"{name}: {obstacle}" for name, (obstacle, _) in found.items())
        return (
            f"that buys nothing more ({why}):"
            f" {'raise the ' + ' or the '.join(keys) if keys else ''}".rstrip(": ")
        )

    @cached_property
    def method(self) -> Method:
        """How worth is measured."""
        return METHODS.load(self.settings.method)

    @property
    def measures(self) -> bool:
        """Whether anything is, so that a plan waits for estimates."""
        return self.method.trainings > 0

    def with_options(self, options: Mapping[str, Any]) -> CampaignState:
        """The same with other options of its method, as if the settings said so; raises InputError
        for what these could not say."""
        if not options:
            return self
        known = self.method.options
        if mistakes := check_options(self.settings.method, known, options, is_plain=True):
            raise InputError(mistakes)
        said = {**self.settings.estimates, **options}
        return replace(self, settings=replace(self.settings, estimates=said))

    @cached_property
    def as_kept(self) -> CampaignState:
        """The same with tasks called as they are on record: by these names trainings are found, and
        done."""
        if not self.settings.renames:
            return self
        stock = self.stock.rename(self.settings.renames.was)
        return replace(self, settings=self.settings.kept, stock=stock)

    @property
    def needs(self) -> dict[str, JSON]:
        """What estimates depend on beside the labels and the learner; no data that take minutes to
        read through."""
        return self.as_kept._needs

    @cached_property
    def _needs(self) -> dict[str, JSON]:
        settings, given = self.settings, self.settings.trainings
        needs = {
            "recipe": settings.recipe,
            "method": settings.method,
            "trainings": self.method.trainings if given is None else given,
            "seed": settings.seed,
        }
        if home := METHODS.version_of(settings.method):
            needs["package"] = home
        if settings.estimates:
            needs["options"] = dict(settings.estimates)
        if self.method.edition != 1:
            needs["edition"] = self.method.edition
        if not self.stock.data.is_slow_to_hash:
            needs["data"] = self.fingerprint or self.stock.data.fingerprint
        return needs

    @cached_property
    def found(self) -> Found | None:
        """The newest estimates that fit the settings; those that know all labels at hand come
        first."""
        fitting = [value for value in self.estimates if not self._judge(value)]
        exact = [
            value
            for value in fitting
            if value.body["needs"]["labels"] == self.as_kept.stock.fingerprint
        ]
        for value in [*fitting, *exact][-1:]:
            return Found(value, self.read_estimates(value), bool(exact))
        return None

    def read_estimates(self, value: Value) -> Estimates:
        """Estimates on record, with tasks called as they are now."""
        return Estimates.from_dict(value.body["estimates"]).rename(self.settings.renames.now)

    @property
    def stale(self) -> str:
        """That labels came in since the last estimate, whose plan is still shown, or that the
        method concludes otherwise since; else nothing."""
        if self.found is None:
            return ""
        if self.found.fresh:
            return self._tell_old_conclusion(self.found)
        before = dict(zip(self.found.estimates.tasks, self.found.estimates.have, strict=True))
        came = sum(abs(self.have[name] - before.get(name, 0)) for name in self.have)
        what = f"{several(came, 'label')} came in" if came else "labels were changed"
        return (
            f"{what} since this was measured; to measure again: allot estimate {quote(self.folder)}"
        )

    def _tell_old_conclusion(self, found: Found) -> str:
        told = {key: found.value.body[key] for key in (CONCLUSION,) if key in found.value.body}
        if told == mark_conclusion(self.method):
            return ""
        return (
            f"{self.settings.method} concludes otherwise since; to conclude anew from the same"
            f" trainings: allot estimate {quote(self.folder)}"
        )

    def changes(self, needs: Mapping[str, JSON]) -> list[str]:
        """Why something that was measured does not fit the settings any more."""
        found = {
            key: why
            for key, why in CHANGES.items()
            if (key in self.needs or key in UNSAID) and needs.get(key) != self.needs.get(key)
        }
        if "method" in found:  # of which everything else may be another, too
            found = {key: why for key, why in found.items() if key not in UNSAID}
        return [*found.values()]

    def _judge(self, value: Value) -> list[str]:
        """Why estimates do not fit any more; those of the labels at hand know all corrections."""
        needs = value.body["needs"]
        reasons = self.changes(needs)
        if value.key in self.outdated and needs["labels"] != self.as_kept.stock.fingerprint:
            reasons.append(CORRECTED)
        return reasons

    def propose(self, budget: Any = None, stop: bool = False) -> Proposal:
        """The best plan for the money that is left, or with `stop` for the part of it for which
        labels bring what they cost; raises InputError if nothing was measured that it could rest
        on."""
        whole, problem = self._whole(budget), self.rest(budget)
        if clashes := self._tell_clashes(whole, problem) or [
            each for each in [tell_idle(whole, problem)] if each
        ]:
            raise Infeasible(clashes)
        if stop and (why := self._tell_worthless()):
            raise InputError([Mistake("--stop", why)])
        if not self.measures:
            plan = allocate(problem, self.method.assume(problem))
            tranche = propose_tranche(plan, learns=False)
            basis = f'method = "{self.settings.method}": {self.method.about}'
            return Proposal(plan, tranche, None, *self._waiting, basis)
        if self.found is None:
            raise InputError([Mistake("", self._why_unmeasured())])
        have = {task.name: task.have for task in problem.tasks}
        estimates = rebase(self.found.estimates, have)
        plan, stopped = allocate(problem, estimates), self._stop(problem, estimates)
        if stop and stopped is not None:
            stopped.check()
            plan = stopped.plan
        known = self.outlooks.get(name_diagnosis(self.found.value.key, plan.problem))
        if known is not None:  # which takes seconds to find out
            outlook = Outlook.from_dict(known)
            vars(plan).update(outlook=outlook, plateau=outlook.plateau)
        money = self.settings.budget if budget is None else problem.budget
        is_first = not any(map(self.account.bought, self.settings.names))
        tranche = propose_tranche(plan, money, is_first=is_first)
        return Proposal(
            plan,
            tranche,
            self.found,
            *self._waiting,
            forecasts=self.forecast(plan.counts),
            prospect=find_prospect(plan, tranche.counts, problem.budget),
            stop=stopped,
        )

    def _stop(self, problem: Problem, estimates: Estimates) -> Stop | None:
        """Up to where labels bring what they cost; None where nothing says it."""
        if self._tell_worthless():
            return None
        return find_stop(problem, estimates, self.settings.point_worth)

    def _tell_worthless(self) -> str:
        """Why nothing says what labels bring in money, if that is so."""
        if not self.measures:
            return f'method = "{self.settings.method}" measures nothing that could be worth money'
        file = quote(self.folder / SETTINGS_FILE)
        if self.settings.point_worth is None:
            return (
                "nothing says what a gain is worth in money; write point_worth = 250, what a gain"
                f" of 1 % of the score in the mean over tasks is worth to you, into {file}"
            )
        if self.found is not None and unit_of(self.found.estimates) != PERCENT:
            return (
                f"the method {self.settings.method} counts gains in"
                f" {unit_of(self.found.estimates)}, and point_worth in % of the score"
            )
        return ""

    def forecast(self, counts: Mapping[str, int]) -> dict[str, Forecast]:
        """What each task scores now, and with so many more labels beside those on order; nothing
        where nothing was measured."""
        if self.found is None:
            return {}
        return forecast(self.found.estimates, self.have, self.add_open(counts), self.metrics)

    def find_level(self, task: str) -> ScoreLevel:
        """What a task scores with any number of labels; raises InputError where nothing is known of
        it."""
        level = None if self.found is None else find_score_level(self.found.estimates, task)
        if level is None:
            what = "nothing is known of its score; allot evaluate tells it"
            raise InputError([Mistake(task, what)])
        return level

    def add_open(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The labels at hand with those on order, and with so many more."""
        now, waiting = self.have, self.account.open
        return {name: now[name] + waiting[name] + counts[name] for name in now}

    @cached_property
    def metrics(self) -> dict[str, str]:
        """The name of each task's metric."""
        return {name: name_metric(target) for name, target in self.stock.targets.items()}

    @property
    def _waiting(self) -> tuple[dict[str, int], tuple[int, ...]]:
        counts = {name: count for name, count in self.account.open.items() if count}
        return counts, tuple(sorted({number for number, _, _ in self.open}))

    @property
    def is_looked_through(self) -> bool:
        """Whether what a plan for the money that is left promises is on record."""
        if not self.measures:
            return True
        return (
            self.found is not None
            and name_diagnosis(self.found.value.key, self.rest()) in self.outlooks
        )

    def _why_unmeasured(self) -> str:
        name = quote(self.folder)
        if not self.estimates:
            return (
                f"nothing is measured yet; type: allot estimate {name}   (or set method ="
                ' "neutral")'
            )
        reasons = min(map(self._judge, reversed(self.estimates)), key=len)
        kept = several(len(self.estimates), "set") + " of estimates"
        return (
            f"{' and '.join(reasons)} since ({kept} kept, but not used); type: allot estimate"
            f" {name}"
        )

    def tell_money(self) -> str:
        """Spent, on order and left, in one line."""
        spent, on_order, left = self.money
        rest = f"{show(left)} left" if left >= 0 else f"{show(-left)} too much"
        return (
            f"{show(self.settings.budget)}: {show(spent)} spent, {show(on_order)} on order, {rest}"
        )


def look(folder: Path, store: Store, read: Files | None = None) -> CampaignState:
    """Where a campaign stands; `read` are its settings and data, if they were read a moment ago."""
    try:
        settings, said = read_settings(folder) if read is None else read
    except InputError as error:
        hints = hint_renamed(store, folder)
        raise InputError([*error.mistakes, *list_missing(store), *hints]) from None
    check_renames(store, settings, folder)
    store.names = settings.renames
    given = {name: store.delivered(name, settings.conflicts) for name in settings.names}
    corrections = store.corrections()
    corrected = {name: _list_corrected(corrections, name) for name in settings.names}
    stock = open_stock(settings, folder, given, said, corrected)
    check_rows(store, stock)
    # what was corrected or withdrawn had come, and is paid
    touched = {(each.task, each.instance) for each in corrections if each.was is not None}

    def has(task: str, name: str) -> bool:
        return stock.has(task, name) or (task, name) in touched

    kept = store.kept_items(has)
    ordered = {
        name: tuple(each for _, task, each in kept if task == name) for name in settings.names
    }
    # what somebody filled into the table itself has come back, too
    waiting = tuple(item for item in store.open_items() if not has(*item[1:]))
    return CampaignState(
        folder=folder,
        settings=settings,
        said=said,
        position=store.position,
        stock=stock,
        ordered=ordered,
        open=waiting,
        estimates=tuple(store.values("estimates")),
        outlooks={value.key: value.body["outlook"] for value in store.values("diagnosis")},
        bills=_find_bills(store, kept, waiting),
        kept=tuple(kept),
        fingerprint=find_fingerprint(store, settings.kept, stock),
        lost=_find_lost(folder, store),
        outdated=store.find_outdated(stock.was_there),
        held=len(store.held()),
        unsaid=tell_unsaid(store, settings),
        unbegun=tell_unbegun(store, settings),
    )


def _list_corrected(corrections: Sequence[Correction], task: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.instance for each in corrections if each.task == task))


def _find_lost(folder: Path, store: Store) -> tuple[Path, ...]:
    """Sheets of orders that are not on record.

    One that is new was perhaps written since this store was opened, after its order was put on
    record: a store that is opened now knows it.
    """
    if not list_lost(store):
        return ()
    with Store.open(folder, write=False) as newer:
        return tuple(list_lost(newer))


def list_missing(store: Store) -> list[Mistake]:
    """Methods that something on record was measured with and that are not installed here."""
    homes = {}
    for value in store.values("estimates"):
        needs = value.body["needs"]
        homes[str(needs["method"])] = needs.get("package")
    for _, needs, _ in store.results(Method.kind):
        homes[str(needs["method"])] = needs.get("package")
    return [
        Mistake(f"method {cut(name, 60)!r}", f"comes with {cut(home, 60)}; install that first")
        for name, home in homes.items()
        if home is not None and name not in METHODS
    ]


def _find_bills(
    store: Store, items: Sequence[tuple[int, str, str]], waiting: Sequence[tuple[int, str, str]]
) -> tuple[Bill, ...] | None:
    """What each order cost when it was placed, as far as it was not given up; None if one does not
    say."""
    kept, still = (Counter((number, task) for number, task, _ in each) for each in (items, waiting))
    bills = []
    for value in store.orders():
        terms = find_terms(store, value)
        if terms is None:
            return None
        for name, task in terms.items():
            pair = value.number, name
            bills.append(Bill(value.number, task, kept[pair] - still[pair], still[pair]))
    return tuple(bills)


def tell_spent(state: CampaignState) -> str:
    """Why nothing can be planned any more, and what to do then."""
    why = state.tell_obstacles()
    where = f" in {state.folder / SETTINGS_FILE}, or" if "raise" in why else ";"
    return (
        f"budget {state.tell_money()}; {why}{where} look back with: allot report"
        f" {quote(state.folder)}"
    )


def name_diagnosis(estimates: str, problem: Problem) -> str:
    """The key of what was found out about a plan from these estimates."""
    return Job("diagnosis", {"of": estimates, "for": problem.to_dict()}).key
