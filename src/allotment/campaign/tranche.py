"""Tranches: how much of a plan to order before looking again.

Every draw has a best plan of its own, o. What nearly all of these buy, a, can be ordered without
regret. Of the rest of the plan p a share s may be ordered, too: whoever has a + s (p - a) can still
come to (1 - s) o + s p for the same money, and gains are concave, so that a draw loses at most s
times what o is ahead of p. In the mean over draws that is s times what knowing more is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from allotment.campaign.rounds import is_groundless
from allotment.formatting import briefly
from allotment.limits import find_broken
from allotment.plan import Outlook, Plan, floors_of, neutral_gains, solve_within, unit_of
from allotment.problem import Problem, Task
from allotment.standing import LEAST, PERCENT, UNITS

SMALLEST_ROUND = Fraction(1, 4)
"""of the whole budget: a round takes weeks, so that its share is not made smaller"""
LAST_ROUND_SHARE = Fraction(4, 5)
"""from this share of what is left on, another round would not pay"""
DOUBTED_SHARE = Fraction(1, 2)
"""of what a task would get by the neutral plan: what looks useless on few labels often is not, and
some more tell"""

TOO_LITTLE = "a smaller order would not pay for a fee or a lot"


@dataclass(frozen=True)
class Tranche:
    """What to order now, and why not more."""

    counts: dict[str, int]
    share: float
    """of the money that the plan spends"""
    why: str
    knowing_more: float | None = None
    """what it can bring at most to know more before the rest is ordered, in D_T; None where that is
    not known"""

    @property
    def is_all(self) -> bool:
        return self.share >= 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "counts": self.counts,
            "share": self.share,
            "why": self.why,
            "knowing_more": self.knowing_more,
        }


def propose_tranche(
    plan: Plan, budget: Fraction | int | None = None, learns: bool = True, is_first: bool = True
) -> Tranche:
    """What to order now: what nearly all draws' own best plans buy, and as much more of the plan
    as leaves a later round nearly all that knowing more is worth.

    `budget` is that of all rounds together, the plan's own unless it is given; an order takes about
    a quarter of it at the least. `learns` is False where no later estimate will know more. With
    `is_first` no task gets less than half of what it would get of the money by the neutral plan,
    unless nearly all draws agree that it should.

    >>> from allotment import Estimates, Problem, Task, allocate
    >>> either = [[[200.0, 0.0], [0.0, 0.0]], [[200.0, 0.0], [0.0, 400.0]]]
    >>> some = Estimates(("cls", "seg"), (100, 100), worths=either, shapes=[[0.4, 0.4]] * 2)
    >>> tasks = [Task("cls", cost=1, have=100), Task("seg", cost=2, have=100)]
    >>> plan = allocate(Problem(tasks, budget=600), some)
    >>> plan.counts, propose_tranche(plan).counts
    ({'cls': 306, 'seg': 147}, {'cls': 203, 'seg': 34})
    """
    outlook = plan.outlook if learns else None
    total = plan.problem.price(plan.counts)
    if not total:
        return _take_all(plan, "it buys nothing")
    if outlook is None:
        return _take_all(
            plan, "nothing will be measured in between, so there is nothing to wait for"
        )
    least = SMALLEST_ROUND * (plan.problem.budget if budget is None else budget)
    if is_groundless(plan.evidence):
        return _grope(plan, min(least, total))
    agreed = _find_agreed(plan, outlook)
    firm = plan.problem.price(agreed)
    money = max(firm + _find_spare(plan, outlook) * (total - firm), least)
    if money >= LAST_ROUND_SHARE * total:
        why = _explain_all(outlook, firm >= LAST_ROUND_SHARE * total, money == least)
        return _take_all(plan, why, outlook.knowing_more)
    counts = _order_part(plan, outlook, agreed, money, is_first)
    if not any(counts.values()):
        return _take_all(plan, TOO_LITTLE, outlook.knowing_more)
    why = _explain(plan, outlook, counts, firm / total, money == least)
    return Tranche(counts, float(plan.problem.price(counts) / total), why, outlook.knowing_more)


def _take_all(plan: Plan, why: str, knowing_more: float | None = None) -> Tranche:
    return Tranche(dict(plan.counts), 1.0, why, knowing_more)


def _grope(plan: Plan, money: Fraction) -> Tranche:
    """A part of the neutral plan: draws of a method that found nothing to go by agree for want of
    knowledge."""
    total = plan.problem.price(plan.counts)
    if money >= LAST_ROUND_SHARE * total:
        return _take_all(plan, "what is left is a round's worth")
    part = _limit(plan.problem, money)
    counts = _fill(part, floors_of(part), _plan_neutral(plan.problem))
    if not any(counts.values()):
        return _take_all(plan, TOO_LITTLE)
    why = "the method found nothing to go by; a second round will know more"
    return Tranche(counts, float(plan.problem.price(counts) / total), why)


def _find_spare(plan: Plan, outlook: Outlook) -> Fraction:
    """The share of what draws do not agree on that can be ordered all the same: it takes less off
    the worth of knowing more than anybody would notice."""
    worth = outlook.knowing_more
    if worth is None or unit_of(plan.evidence) != PERCENT:
        return Fraction(0)
    return Fraction(1) if worth <= LEAST else Fraction(LEAST / worth)


def _find_agreed(plan: Plan, outlook: Outlook) -> dict[str, int]:
    """Of each task what the plan and nearly all draws' own best plans buy."""
    return {
        task.name: _fit(task, min(outlook.counts[task.name][0], plan.counts[task.name]))
        for task in plan.problem.tasks
    }


def _fit(task: Task, count: int) -> int:
    """So many labels in whole lots, no fewer than must be bought."""
    return max(count // task.lot * task.lot, task.floor)


def _order_part(
    plan: Plan, outlook: Outlook, agreed: Mapping[str, int], money: Fraction, is_first: bool
) -> dict[str, int]:
    """First what doubted tasks get, then what is agreed on, then more of the plan."""
    part = _limit(plan.problem, money)
    start = floors_of(part)
    if is_first:
        start = _fill(part, start, _list_doubted(plan, outlook, money))
    base = {name: max(start[name], agreed[name]) for name in start}
    if find_broken(part, base):
        return _fill(part, start, base)
    return _fill(part, base, {name: max(base[name], plan.counts[name]) for name in base})


def _list_doubted(plan: Plan, outlook: Outlook, money: Fraction) -> dict[str, int]:
    """Of each task a half of what it would get of the money if all were spent by the neutral plan,
    but no more than nearly any draw's own best plan buys, and nothing for a fee that the plan does
    not pay."""
    problem, neutral = plan.problem, _plan_neutral(plan.problem)
    # which may buy nothing, where labels that are not scored themselves help the only task that is
    share = DOUBTED_SHARE * money / max(problem.price(neutral), problem.unit)
    found = {}
    for task in problem.tasks:
        if task.fee and not plan.counts[task.name]:
            found[task.name] = task.floor
            continue
        lots = -(-neutral[task.name] * share // task.lot)
        found[task.name] = _fit(task, min(int(lots) * task.lot, outlook.counts[task.name][1]))
    return found


def _plan_neutral(problem: Problem) -> dict[str, int]:
    """The plan that knows nothing, for all of the money."""
    return solve_within(problem, neutral_gains(problem)).counts


def _limit(problem: Problem, money: Fraction) -> Problem:
    """The problem with a part of its money, rounded to what prices are counted in, and no less than
    must be spent."""
    enough = max(money, problem.price(floors_of(problem)))
    return problem.with_budget(enough // problem.unit * problem.unit)


def _fill(problem: Problem, low: Mapping[str, int], high: Mapping[str, int]) -> dict[str, int]:
    """From some counts as far towards higher ones as every limit allows, all tasks in step, in
    whole lots."""

    def at(share: float) -> dict[str, int]:
        return {
            task.name: low[task.name]
            + int(share * (high[task.name] - low[task.name])) // task.lot * task.lot
            for task in problem.tasks
        }

    if not find_broken(problem, high):
        return dict(high)
    reached, beyond = 0.0, 1.0
    for _ in range(40):
        middle = (reached + beyond) / 2
        if find_broken(problem, at(middle)):
            beyond = middle
        else:
            reached = middle
    return at(reached)


def _explain_all(outlook: Outlook, is_agreed: bool, is_least: bool) -> str:
    """Why nothing is left for a later round."""
    if is_agreed:
        return "the estimates agree on nearly all of it"
    if is_least:
        return "what is left is a round's worth"
    more = _tell_worth(outlook.knowing_more or 0.0, PERCENT)
    return f"to know more first would bring {more} at most"


def _explain(
    plan: Plan, outlook: Outlook, counts: Mapping[str, int], firm: Fraction, is_least: bool
) -> str:
    """Why this much and not more."""
    unit = unit_of(plan.evidence)
    why = f"the estimates agree on {100 * float(firm):.0f} % of the money"
    if is_least:
        why += ", and an order is about a quarter of the budget at the least"
    if doubted := [name for name in counts if counts[name] > plan.counts[name]]:
        why += f"; more of {' and '.join(doubted)} than in the plan, to make sure of the doubts"
    why += "; what comes back may move the rest"
    if outlook.knowing_more is None:
        return why
    return f"{why}, worth up to {_tell_worth(outlook.knowing_more, unit)}"


def _tell_worth(knowing_more: float, unit: str) -> str:
    """What knowing more is worth at most."""
    return f"{briefly(knowing_more)} {UNITS.get(unit, unit)}"
