"""Rounds: what is spent and on order, and what is left to plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from allotment.errors import Infeasible
from allotment.estimates.estimates import Estimates
from allotment.limits import explain_idle_budget, find_clashes
from allotment.problem import Cap, Problem, Task, show_exact


@dataclass(frozen=True)
class Account:
    """Labels paid for so far: those that came back, and those on order."""

    came: Mapping[str, int]
    open: Mapping[str, int]
    paid: tuple[Fraction, Fraction] | None = None
    """(spent, on order) at the prices that were agreed; None where these are the problem's own"""

    def bought(self, task: str) -> int:
        return self.came.get(task, 0) + self.open.get(task, 0)


def price_of(problem: Problem, account: Account) -> tuple[Fraction, Fraction]:
    """(spent, on order): what came back costs, and what the labels on order cost beyond it."""
    if account.paid is not None:
        return account.paid
    spent = problem.price({task.name: account.came.get(task.name, 0) for task in problem.tasks})
    total = problem.price({task.name: account.bought(task.name) for task in problem.tasks})
    return spent, total - spent


@dataclass(frozen=True)
class Bill:
    """One task's labels of an order, at the prices of the day on which it was placed."""

    order: int
    task: Task
    """with fee and tiers as they were left by then"""
    came: int
    open: int
    """those that were given up are in neither"""


def settle(bills: Sequence[Bill]) -> dict[int, tuple[Fraction, Fraction]]:
    """(spent, on order) of each order. `bills` are in the order in which they were placed."""
    paid: dict[int, tuple[Fraction, Fraction]] = {}
    for bill, (now, later) in zip(bills, settle_each(bills), strict=True):
        spent, on_order = paid.get(bill.order, (Fraction(0), Fraction(0)))
        paid[bill.order] = spent + now, on_order + later
    return paid


def settle_each(bills: Sequence[Bill]) -> list[tuple[Fraction, Fraction]]:
    """(spent, on order) of each bill."""
    paid = []
    owed: dict[str, Fraction] = {}
    settled: set[str] = set()
    for bill in bills:
        task, kept = bill.task, bill.came + bill.open
        spent, on_order = Fraction(0), Fraction(0)
        # a fee is paid once; where its order is given up as a whole, the next one that relied on it
        # pays
        fee = Fraction(0) if task.name in settled else task.fee or owed.get(task.name, Fraction(0))
        if not kept:
            owed[task.name] = max(owed.get(task.name, Fraction(0)), task.fee)
        else:
            spent = task.price(bill.came) + (fee - task.fee if bill.came else 0)
            on_order = task.price(kept) + fee - task.fee - spent
            settled |= {task.name} if fee else set()
        paid.append((spent, on_order))
    return paid


def take_rest(
    problem: Problem,
    account: Account,
    have: Mapping[str, int],
    pool: Mapping[str, int],
    remedy: str = "raise the budget in campaign.toml",
) -> Problem:
    """The problem that is left: labels on order count as labels at hand, prices go on where they
    stood."""
    spent, on_order = price_of(problem, account)
    left = problem.budget - spent - on_order
    if left < 0:
        what = (
            f"budget: {show_exact(spent + on_order)} is spent or on order, more than the budget of "
            f"{show_exact(problem.budget)}; {remedy}"
        )
        raise Infeasible([what])
    bought = {task.name: account.bought(task.name) for task in problem.tasks}
    tasks = []
    for task in problem.tasks:
        there = have[task.name] + account.open.get(task.name, 0)
        tasks.append(_shift(task, bought[task.name], there, pool[task.name]))
    caps = [
        Cap(cap.name, max(Fraction(0), cap.limit - cap.used(bought)), cap.use)
        for cap in problem.caps
    ]
    return Problem(tasks, left, caps, problem.count_implied)


def _shift(task: Task, bought: int, have: int, pool: int) -> Task:
    """The same task after some labels were bought."""
    (_, _, cost), *later = [each for each in task.prices if each[1] is None or each[1] > bought]
    plain: dict[str, Any] = {"name": task.name, "cost": cost, "have": have, "pool": pool}
    plain |= {"least": max(0, task.least - bought), "weight": task.weight, "lot": task.lot}
    plain["most"] = None if task.most is None else max(0, task.most - bought)
    plain["frozen"] = None if task.frozen is None else max(0, task.frozen - bought)
    plain["fee"] = Fraction(0) if bought else task.fee
    plain["tiers"] = [(after - bought, price) for after, _, price in later]
    plain["implies"] = task.implies
    return Task(**plain)


def tell_clashes(problem: Problem, rest: Problem, bought: Mapping[str, int]) -> list[str]:
    """Limits that no plan for what is left can meet, in the amounts of the campaign as a whole."""
    if not (clashes := find_clashes(rest)):
        return []
    if messages := [
        clash
        for task in rest.tasks
        for clash in _tell_clash(problem[task.name], task, bought[task.name])
    ]:
        return messages
    floors = {task.name: task.floor for task in rest.tasks}
    who = [
        f"{'least' if task.frozen is None else 'frozen'} of {task.name}"
        for task in rest.tasks
        if task.floor
    ]
    names, cost = " and ".join(who), rest.price(floors)
    if cost > rest.budget:
        left = f"{show_exact(rest.budget)} of the budget of {show_exact(problem.budget)} is left"
        whole = show_exact(problem.budget - rest.budget + cost)
        messages.append(
            f"{names} takes {show_exact(cost)}, but {left}: raise the budget to {whole} or lower"
            f" {names}"
        )
    for cap, now in zip(problem.caps, rest.caps, strict=True):
        if now.used(floors) > now.limit:
            whole = show_exact(cap.used(bought) + now.used(floors))
            needs = (
                f"{names} takes {whole} of {cap.name!r} with what is bought, its limit is"
                f" {show_exact(cap.limit)}"
            )
            messages.append(f"{needs}: raise the limit to {whole} or lower {names}")
    return messages or clashes


def _tell_clash(own: Task, task: Task, bought: int) -> list[str]:
    """The same of one task alone; a campaign counts the pool from the data, so that nobody can
    raise it."""
    if not (clashes := find_clashes(_alone(task))):
        return []
    pool = None if task.pool is None else task.pool + bought
    messages = find_clashes(_alone(Task.from_dict(own.to_dict() | {"pool": pool}))) or clashes
    return [
        each.replace(", pool is ", ", what can be labelled is ").replace(" or raise pool", "")
        for each in messages
    ]


def _alone(task: Task) -> Problem:
    alone = Task.from_dict(task.to_dict() | {"implies": []})
    return Problem([alone], task.price(task.floor))


def tell_idle(problem: Problem, rest: Problem) -> str:
    """Why what is left buys nothing and what the budget should be, if that is so although some task
    has room."""
    if not explain_idle_budget(rest):
        return ""
    cheapest = min(
        task.price(task.lot) for task in rest.tasks if task.ceiling is None or task.ceiling
    )
    left = (
        f"budget {show_exact(problem.budget)}, of which {show_exact(rest.budget)} is left, buys"
        " nothing more"
    )
    return (
        f"{left}: raise the budget to at least"
        f" {show_exact(problem.budget - rest.budget + cheapest)}"
    )


def rebase(estimates: Estimates, have: Mapping[str, int]) -> Estimates:
    """The same estimates seen from more labels at hand: each curve goes on from where it has come
    to."""
    now = np.array([have[task] for task in estimates.tasks])
    if estimates.law == "power":
        return replace(estimates, have=tuple(now.tolist()))
    more = np.maximum(now - np.array(estimates.have), 0)
    worths = estimates.worths * estimates.pair_shapes**more
    return replace(estimates, have=tuple(now.tolist()), worths=worths)


def is_groundless(evidence: object) -> bool:
    """Whether estimates rest on no curve of any task that says something, so that their draws agree
    for want of knowledge."""
    if not isinstance(evidence, Estimates):
        return False
    mute = {*evidence.about.get("fallbacks", ())}
    verdicts = evidence.about.get("verdicts", {})
    mute |= {task for task, grade in verdicts.items() if grade == "unusable"}
    return mute >= {*evidence.tasks}
