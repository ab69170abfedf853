"""The problem as the solver sees it: whole numbers, arrays and curves.

Maximise the sum of g_v(x_v) over variables v, with `use @ x + fixed <= limits`. A variable is a
task's count or the argument of a coupled curve. Each has one or more arms: ranges of x on which its
money is a straight line (a price tier; nothing bought, before a fee). A coupled curve takes at most
what its tasks put in, so its link is one more row of `use`.

Everything is counted from the floors: x is what is bought beyond what must be, a limit is what the
floors leave of it, and worth is what is added to theirs. So what no decision can change, however
much it is worth or costs, takes no part in any comparison, and every share of a worth is a share of
what is decided.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeGuard

import numpy as np

from allotment.amounts import common_unit
from allotment.arrays import Array, Ints
from allotment.errors import InputError, Mistake
from allotment.gains import Coupled, Curve, Family, Power, find_strange, is_own, multiply
from allotment.problem import Problem, Task
from allotment.solver.bank import Bank
from allotment.solver.soundness import examine


@dataclass(frozen=True)
class Model:
    """Row 0 of `use` is money; then the caps, then a link for each coupled curve."""

    tasks: int
    base: Ints
    """of each variable: the count that it is counted from"""
    spent: int
    """what the floors cost, in units of money"""
    curves: tuple[tuple[Curve, ...], ...]
    """what each variable's curve is the sum of"""
    scale: Array
    """one step of a variable is so much of its curve's argument"""
    variable: Ints
    """of each arm; arms are sorted by variable, then by range"""
    low: Ints
    high: Ints
    lot: Ints
    use: Ints
    """(rows, arms): what one step takes"""
    fixed: Ints
    """money that an arm takes besides"""
    limits: Ints
    rounding: float
    """what worths may be off by: 0 unless there are curves of one's own"""
    bank: Bank = field(repr=False)

    @cached_property
    def starts(self) -> Ints:
        """The first arm of each variable."""
        return np.searchsorted(self.variable, np.arange(self.variables)).astype(np.int64)

    @cached_property
    def arm_base(self) -> Array:
        return self.base[self.variable].astype(float)

    @cached_property
    def arm_scale(self) -> Array:
        return self.scale[self.variable]

    @property
    def variables(self) -> int:
        return len(self.curves)

    @property
    def rows(self) -> int:
        return len(self.limits)

    @property
    def links(self) -> int:
        """How many coupled curves there are."""
        return self.variables - self.tasks

    def rise(self, variable: int, count: Array, more: Array) -> Array:
        """What `more` steps add to one variable's curve."""
        scale = self.scale[variable]
        start = (self.base[variable] + count) * scale
        total = np.zeros(np.broadcast(count, more).shape)
        for curve in self.curves[variable] if total.size else ():
            total = total + curve.rise(start, more * scale)
        return total

    def arm_rise(self, count: Array, more: Array) -> Array:
        """The same for every arm at once."""
        if not self.links:  # a step of a task is a label
            return self.bank.rise(self.arm_base + count, more)
        scale = self.arm_scale
        return self.bank.rise((self.arm_base + count) * scale, more * scale)

    def arm_reach(self, slope: Array, low: Array, high: Array) -> Array:
        """Of every arm: about how many steps (`low` to `high`) are worth more than `slope` each, to
        within a label."""
        scale, base = self.arm_scale, self.arm_base
        return (
            self.bank.reach(slope / scale, (base + low) * scale, (base + high) * scale) / scale
            - base
        )

    def worth(self, counts: Ints) -> float:
        """What a plan adds to the floors' worth: coupled curves get all that their tasks put in."""
        steps = self.complete(counts)
        worths = self.arm_rise(np.zeros(len(self.variable)), steps[self.variable].astype(float))
        return math.fsum(worths[self.starts])

    def complete(self, counts: Ints) -> Ints:
        """Task counts followed by the arguments of the coupled curves."""
        if not self.links:
            return counts
        given = (
            self.limits[-self.links :] - self.use[-self.links :, self.starts[: self.tasks]] @ counts
        )
        return np.append(counts, np.minimum(given, self.high[self.starts[self.tasks :]]))

    def arms_of(self, variable: int) -> range:
        """The arms of one variable."""
        after = variable + 1
        return range(
            self.starts[variable], self.starts[after] if after < self.variables else len(self.low)
        )

    def arms_at(self, counts: Ints) -> Ints:
        """The arm that each task's count lies in."""
        begun = (
            self.low[: len(self.low) - self.links]
            <= counts[self.variable[: len(self.low) - self.links]]
        )
        return self.starts[: self.tasks] + np.add.reduceat(begun, self.starts[: self.tasks]) - 1

    def used(self, counts: Ints) -> Ints:
        """What the counts take of money and caps."""
        arms = self.arms_at(counts)
        used = self.use[: self.rows - self.links, arms] @ counts
        used[0] += self.fixed[arms].sum()
        return used


def build(problem: Problem, gains: Mapping[str, Curve]) -> Model:
    """The model of a problem whose limits do not clash."""
    own, coupled = split_gains(problem, gains)
    linked = {name for _, shares, _ in coupled for name in shares}
    floors = np.array([task.floor for task in problem.tasks], dtype=np.int64)
    spent = [int(task.price(task.floor) / problem.unit) for task in problem.tasks]

    # a falling curve need not be concave, but then its least is best
    harmful = [
        task.name not in linked and any(map(_is_harmful, terms))
        for task, terms in zip(problem.tasks, own, strict=True)
    ]
    variable, low, high, lot, price, fixed = _list_arms(problem, spent, harmful)

    rows, limits = [price], [int(problem.budget // problem.unit) - sum(spent)]
    for cap in problem.caps:
        unit = common_unit(cap.use.values())
        each = _count_shares(problem, cap.use, unit)
        rows.append(each[variable])
        limits.append(int(cap.limit // unit) - int(each @ floors))

    tops = floors.copy()
    np.maximum.at(tops, variable, floors[variable] + high)
    rounding = examine(problem, gains, *(_by_name(problem, each) for each in (floors, tops)))

    tasks, base, scale = len(floors), floors, np.ones(len(floors) + len(coupled))
    for link, (_, shares, room) in enumerate(coupled, tasks):
        step = common_unit(shares.values())
        each = _count_shares(problem, shares, step)
        given = sum(
            int(share) * task.floor for share, task in zip(each, problem.tasks, strict=True)
        )
        start = given if room is None else min(given, int(room / step))
        reach = given + sum(int(each[v]) * int(high[variable == v].max()) for v in range(tasks))
        if room is not None:
            reach = min(reach, int(room / step))
        rows = [np.append(row, 0) for row in rows]
        rows.append(
            np.append(-each[variable[variable < tasks]], np.zeros(link - tasks + 1, dtype=np.int64))
        )
        rows[-1][-1] = 1
        limits.append(given - start)
        scale[link], base = float(step), np.append(base, start)
        variable, lot, fixed = np.append(variable, link), np.append(lot, 1), np.append(fixed, 0)
        low, high = np.append(low, 0), np.append(high, reach - start)

    curves = [*own, *(terms for terms, _, _ in coupled)]
    ends = base.copy()
    np.maximum.at(ends, variable, base[variable] + high)
    return Model(
        tasks=tasks,
        base=base,
        spent=sum(spent),
        curves=tuple(tuple(terms) for terms in curves),
        scale=scale,
        variable=variable,
        low=low,
        high=high,
        lot=lot,
        use=np.array(rows, dtype=np.int64),
        fixed=fixed,
        limits=np.array(limits, dtype=np.int64),
        rounding=rounding,
        bank=Bank(
            [curves[v] for v in variable],
            steps=scale[variable],
            tops=(ends * scale)[variable],
        ),
    )


def _list_arms(problem: Problem, spent: Sequence[int], harmful: Sequence[bool]) -> Ints:
    """The arms of all tasks, a column each: variable, first and last count above the floor, lot,
    price, and what is paid before the first label."""
    arms = []
    for index, (task, (spare, most)) in enumerate(zip(problem.tasks, _reach(problem), strict=True)):
        for start, stop, lots, cost, money in _arms(
            task, problem.unit, spare, most, harmful[index]
        ):
            above = money + cost * task.floor - spent[index]
            arms.append((index, start - task.floor, stop - task.floor, lots, cost, above))
    return np.array(arms, dtype=np.int64).T


def _count_shares(problem: Problem, shares: Mapping[str, Fraction], unit: Fraction) -> Ints:
    """[task]: how many units a label of it takes."""
    counts = [int(shares.get(name, Fraction(0)) / unit) for name in problem.names]
    return np.array(counts, dtype=np.int64)


def _by_name(problem: Problem, counts: Ints) -> dict[str, int]:
    return dict(zip(problem.names, counts.tolist(), strict=True))


def _reach(problem: Problem) -> list[tuple[int, int]]:
    """Of each task: the money in units, and the most labels by the caps, if all others take only
    their least."""
    floors = sum(task.price(task.floor) for task in problem.tasks)
    taken = [
        sum(cap.use.get(task.name, 0) * task.floor for task in problem.tasks)
        for cap in problem.caps
    ]
    found = []
    for task in problem.tasks:
        money = int((problem.budget - floors + task.price(task.floor)) // problem.unit)
        most = sys.maxsize
        for cap, total in zip(problem.caps, taken, strict=True):
            if use := cap.use.get(task.name):
                most = min(most, int((cap.limit - total) // use) + task.floor)
        found.append((money, most))
    return found


def _arms(
    task: Task, unit: Fraction, spare: int, most: int, harmful: bool
) -> list[tuple[int, int, int, int, int]]:
    """(low, high, lot, price, fixed) for every range of counts whose money is a straight line."""
    low, ceiling = task.floor, task.ceiling
    if harmful or ceiling == low:
        money = int(task.price(low) / unit)
        return [(low, low, task.lot, 0, money)]
    arms = []
    if low == 0 and task.fee:
        arms.append((0, 0, task.lot, 0, 0))
    fixed = task.fee
    for after, end, cost in task.prices:
        price = int(cost / unit)
        money = int((fixed - cost * after) / unit)
        start = max(low, (after // task.lot + 1) * task.lot if after or task.fee else 0)
        stop = min((spare - money) // price, most)
        # One lot more than can be had, so that the limit itself sets the price of money; but not
        # where even the first one is out of reach: it would hide what all others are worth.
        if stop >= (start if start > low else start + task.lot):
            stop += task.lot
        stop = min(each for each in (stop, end, ceiling) if each is not None) // task.lot * task.lot
        if start <= stop:
            arms.append((start, stop, task.lot, price, money))
        if end is not None:
            fixed += cost * (end - after)
    return arms or [(low, low, task.lot, 0, int(task.price(low) / unit))]


Link = tuple[list[Curve], dict[str, Fraction], Fraction | None]


def split_gains(
    problem: Problem, gains: Mapping[str, Curve]
) -> tuple[list[list[Curve]], list[Link]]:
    """Weighted curves of single tasks, and (curves, shares, most) of the coupled ones."""
    own: list[list[Curve]] = []
    elsewhere: dict[str, list[Curve]] = {}
    links: dict[tuple[tuple[str, Fraction], ...], Link] = {}
    mistakes = []
    for task in problem.tasks:
        if strange := find_strange(gains[task.name]):
            raise InputError([Mistake(f"gain of {task.name!r}", strange)])
        terms = list(gains[task.name].terms) if task.weight else []
        if task.weight != 1:
            terms = [multiply(term, task.weight) for term in terms]
        implied = [other.name for other in problem.tasks if task.name in other.implies]
        alone = [term for term in terms if not isinstance(term, Coupled)]
        if problem.count_implied and implied and alone:
            shares = {name: Fraction(1) for name in (task.name, *implied)}
            most = None if task.pool is None else Fraction(task.pool)
            links[(*shares.items(), ("", Fraction(len(own))))] = (alone, shares, most)
            alone = []
        for term in terms:
            if not isinstance(term, Coupled):
                continue
            key = tuple(term.weights.items())
            (first, share), *more = key
            if share == 1 and not more:  # what labels of one task do for another is theirs alone
                elsewhere.setdefault(first, []).extend(term.inner.terms)
            else:
                links.setdefault(key, ([], dict(term.weights), None))[0].extend(term.inner.terms)
        own.append(alone)
    own = [
        _merge([*terms, *elsewhere.get(task.name, ())])
        for task, terms in zip(problem.tasks, own, strict=True)
    ]
    linked = {name for _, shares, _ in links.values() for name in shares}
    for task, terms in zip(problem.tasks, own, strict=True):
        mistakes += _check_terms(task.name, terms, task.name in linked)
    for terms, shares, _ in links.values():
        merged = _merge(terms)
        mistakes += _check_terms(" + ".join(shares), merged, linked=True)
        terms[:] = merged
    if mistakes:
        raise InputError(mistakes)
    return own, list(links.values())


def _merge(terms: Sequence[Curve]) -> list[Curve]:
    """Add up curves of the same shape, so that a rising and a falling one of it make one that is
    concave again."""
    merged: dict[object, Curve] = {}
    for term in terms:
        if _is_family(term) and not (isinstance(term, Power) and np.isfinite(term.ceiling)):
            size, *shape = term.values()
            key = (type(term), *shape)
            if key in merged:
                size += merged[key].values()[0]  # type: ignore[attr-defined]
            merged[key] = term.of_values(size, *shape)
        else:
            merged[len(merged), id(term)] = term
    return list(merged.values())


def _is_family(curve: Curve) -> TypeGuard[Family]:
    return isinstance(curve, Family) and not is_own(curve)


def _is_harmful(curve: Curve) -> bool:
    """Whether it falls from the start and may bend either way; no curve of one's own does."""
    return _is_family(curve) and curve.sign < 0


def _check_terms(name: str, terms: Sequence[Curve], linked: bool) -> list[Mistake]:
    falling = any(map(_is_harmful, terms))
    if falling and (linked or any(is_own(term) or term.sign > 0 for term in terms)):
        what = (
            "a falling curve is added to a rising one, so the sum is not concave; give their sum as"
            " one curve"
        )
        return [Mistake(f"gain of {name!r}", what)]
    return []
