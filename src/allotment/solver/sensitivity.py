"""How firm a plan is: the range of each count that costs little, and whether a task pays at some
price."""

from __future__ import annotations

from collections.abc import Callable

from allotment.solver.dual import Region, region, solve, whole
from allotment.solver.greedy import fill, fits
from allotment.solver.model import Model
from allotment.solver.search import maximise

EFFORT = 0.02
"""of each of the many searches behind one answer"""
ROUGHLY = 1e-6
"""how close a bound has to be to tell a count that is far too many"""


def plateau_range(model: Model, task: int, count: int, enough: float) -> tuple[int, int]:
    """The least and the most of one task over all plans worth at least `enough`; `count` is one
    such plan's."""
    part = whole(model)
    return (
        _furthest(model, part, task, count, int(part.low[task]), enough),
        _furthest(model, part, task, count, int(part.high[task]), enough),
    )


def _furthest(model: Model, part: Region, task: int, count: int, far: int, enough: float) -> int:
    """The count nearest to `far` that a good enough plan can have."""
    lot = int(model.lot[model.starts[task]])
    # The worth of a plan can rise again behind a dip only at the ends of arms, so these are tried
    # from the far side.
    ends = {
        int(end) for arm in model.arms_of(task) for end in (model.low[arm], model.high[arm])
    } | {count}
    between = sorted(
        (end for end in ends if min(far, count) <= end <= max(far, count)),
        key=lambda e: abs(e - far),
    )
    for exact in (False, True):

        def reaches(at: int, exact: bool = exact) -> bool:
            return at == count or _reaches(model, part, task, at, enough, exact)

        place = next(i for i, end in enumerate(between) if reaches(end))
        good = between[place]
        if place:
            good = _bisect(reaches, good, between[place - 1], lot)
        if exact or reaches(good, exact=True):
            return good
    return count


def _bisect(reaches: Callable[[int], bool], good: int, bad: int, lot: int) -> int:
    while abs(bad - good) > lot:
        middle = (
            good + (bad - good) // lot // 2 * lot
            if bad > good
            else good - (good - bad) // lot // 2 * lot
        )
        if reaches(middle):
            good = middle
        else:
            bad = middle
    return good


def _reaches(model: Model, part: Region, task: int, count: int, enough: float, exact: bool) -> bool:
    """Whether some plan with exactly `count` of the task is worth enough; by its bound alone unless
    `exact`."""
    low, high = part.low.copy(), part.high.copy()
    low[task] = high[task] = count
    if not fits(model, low[: model.tasks]):
        return False
    fixed = region(model, low, high)
    if solve(model, fixed, close=ROUGHLY)[0].bound < enough:
        return False
    return not exact or model.worth(maximise(model, fixed, EFFORT).counts) >= enough - 1e-12 * abs(
        enough
    )


def worth_without(model: Model, task: int) -> float:
    """The best worth when no more of a task is bought than must be."""
    part = whole(model)
    high = part.high.copy()
    high[task] = part.low[task]
    return model.worth(maximise(model, region(model, part.low, high), EFFORT).counts)


def pays(model: Model, task: int, without: float) -> bool:
    """Whether buying some of a task beats the best plan without; mostly told by bounds alone."""
    part = whole(model)
    low = part.low.copy()
    low[task] += model.lot[model.starts[task]]
    if low[task] > part.high[task] or not fits(model, low[: model.tasks]):
        return False
    inside = region(model, low, part.high)
    answer, feasible = solve(model, inside, close=ROUGHLY)
    if answer.bound <= without:
        return False
    if model.worth(fill(model, inside, answer, feasible)) > without:
        return True
    return model.worth(maximise(model, inside, EFFORT).counts) > without
