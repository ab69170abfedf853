"""The exact optimum: branch and bound whose nodes are mostly solved outright.

A plan falls short of the dual bound by the sum of its losses (see `dual`). So all plans within
`width` of the bound are made of counts whose own loss is at most `width`: few, because curves bend.
They are listed task by task, two partial plans that used the same keeping only the better one. If
the list holds a complete plan, the best of it is the optimum; if not, `width` grows. Where the list
would become too long (a fee that may or may not be paid opens a gap), the region is split and each
part has its own, closer prices.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from allotment.arrays import Array, Ints
from allotment.solver.dual import Answer, Region, region, respond, solve, whole
from allotment.solver.greedy import fill, fits
from allotment.solver.listing import Lister, States, Window
from allotment.solver.model import Model

LONGEST_LIST = 300_000
"""partial plans looked at in one step before a region is split instead"""
WIDEST_WINDOW = 20_000
"""counts of one task looked at on either side"""
MOST_REGIONS = 500
MOST_WORK = 15_000_000
"""partial plans looked at in all before the search ends with a bound"""
EXACT_GAP = 1e-10
"""a gap of this share of the value is exact enough; more is only proved where that is cheap"""
PROVED = 1e-9
"""a gap of at most this share of the value is called none"""
SHORT_LIST = 100_000
CLOSE = 1e-12
"""a plan within this share of its bound is called best without listing the others"""
GRAIN = 2.0**-46
"""values closer than this share of the plan's value are equal"""


@dataclass(frozen=True)
class Solution:
    """The best counts, and by how much a better plan could exceed them (0 when they are proved
    best)."""

    counts: Ints
    gap: float
    prices: Array
    """worth of one more unit of money, of each cap and of each link, at the optimum of the
    relaxation"""


def maximise(model: Model, root: Region | None = None, effort: float = 1.0) -> Solution:
    """The counts of greatest worth; among equals those of least money, then those that favour
    earlier tasks.

    `effort` is a share of what is spent before the search ends with a bound.
    """
    root = whole(model) if root is None else root
    solution = _search(model, root, effort)
    if model.rows > 1 and solution.prices[0] * model.limits[0] <= CLOSE * abs(
        model.worth(solution.counts)
    ):
        return replace(solution, counts=_save(model, root, solution.counts, effort / 10))
    return solution


def _search(model: Model, root: Region, effort: float) -> Solution:
    answer, feasible = solve(model, root)
    if (
        model.rows == 1
        and answer.slack[0] >= 0
        and answer.prices[0] * model.limits[0] <= CLOSE * abs(answer.bound)
    ):
        # everything worth having is affordable
        return Solution(answer.choice, _state_gap(model, 0.0, answer.bound), np.zeros(1))
    best = _Best(model, fill(model, root, answer, feasible), answer.bound)
    order = itertools.count()
    queue = [(-answer.bound, next(order), root, answer)]
    regions = 0
    while (
        queue
        and -queue[0][0] >= best.worth - best.noise
        and regions < effort * MOST_REGIONS
        and best.work < effort * MOST_WORK
    ):
        if regions and -queue[0][0] - best.worth <= EXACT_GAP * abs(best.worth):
            break
        _, _, part, found = heapq.heappop(queue)
        if regions:
            found, feasible = solve(model, part, found.prices)
            if found.bound < best.worth - best.noise:
                continue
            best.offer(fill(model, part, found, feasible))
        regions += 1
        if _list_plans(model, part, found, best):
            continue
        for half in _split(model, part, found, best):
            if not fits(model, half.low[: model.tasks]):
                continue
            after = respond(model, half, found.prices)
            if after.bound >= best.worth - best.noise:
                heapq.heappush(queue, (-min(after.bound, found.bound), next(order), half, after))
    left = max((-bound for bound, *_ in queue), default=-np.inf)
    counts = _trim(model, root, best) if model.rows > 1 else best.counts
    gap = _state_gap(model, max(0.0, left - best.worth), best.worth)
    return Solution(counts, gap, answer.prices)


def _state_gap(model: Model, gap: float, worth: float) -> float:
    """What a better plan could add, by what was searched and by the digits of the curves; 0 where
    that is too little to count."""
    whole_gap = gap + model.rounding
    return 0.0 if whole_gap <= PROVED * max(abs(worth), _measure_lot(model)) else whole_gap


def _measure_lot(model: Model) -> float:
    """What the first lot of a task adds where it adds most: beside it a plan that adds nothing can
    be held, too. What is fixed does not count."""
    tops = np.maximum.reduceat(model.high, model.starts)
    choice = (tops > model.low[model.starts])[model.variable]
    lots = model.arm_rise(model.low.astype(float), model.lot.astype(float))[choice]
    return float(lots.max(initial=0.0))


class _Best:
    """The best plan so far, by worth, then least money, then task order."""

    def __init__(self, model: Model, counts: Ints, bound: float):
        self.model = model
        self.counts = counts
        self.worth = model.worth(counts)
        self.work = 0
        scale = max(abs(self.worth), abs(bound), _measure_lot(model), 1e-200)
        # a power of two, in which worths that are whole numbers stay exact and their ties stay ties
        self.grain = 2.0 ** math.floor(math.log2(GRAIN * scale))
        self.noise = max(self.grain * (2 + model.variables), model.rounding)

    def offer(self, counts: Ints) -> None:
        worth = self.model.worth(counts)
        if worth < self.worth - self.noise:
            return
        if worth <= self.worth + self.noise:
            new, old = self.model.used(counts)[0], self.model.used(self.counts)[0]
            if (new, *-counts) >= (old, *-self.counts):
                return
        self.counts, self.worth = counts, worth


def _trim(model: Model, root: Region, best: _Best) -> Ints:
    """The best plan without labels that add nothing: where money is not scarce, the listing may
    keep some."""
    counts = best.counts.copy()
    # ties favour earlier tasks, so later ones give first
    for task in range(model.tasks - 1, -1, -1):
        lot = int(model.lot[model.starts[task]])
        low, high = int(root.low[task]) // lot, int(counts[task]) // lot
        trial = counts.copy()
        while low < high:
            middle = (low + high) // 2
            trial[task] = middle * lot
            if model.worth(trial) >= best.worth - best.noise:
                high = middle
            else:
                low = middle + 1
        counts[task] = high * lot
    return counts


def _save(model: Model, root: Region, counts: Ints, effort: float) -> Ints:
    """Of plans of equal worth the one of least money, where money is not scarce and so has no price
    to find it by."""
    enough = _Best(model, counts, 0.0)
    low, high = int(model.used(root.low[: model.tasks])[0]), int(model.used(counts)[0])
    middle = high - 1  # mostly there is none
    while low < high:
        less = replace(model, limits=np.append(middle, model.limits[1:]))
        trial = _search(less, root, effort).counts
        if fits(less, trial) and model.worth(trial) >= enough.worth - enough.noise:
            counts, high = trial, int(model.used(trial)[0])
        else:
            low = middle + 1
        middle = (low + high) // 2
    return counts


def _list_plans(model: Model, part: Region, answer: Answer, best: _Best) -> bool:
    """Look for the best plan of a region; True if there is provably none better in it than `best`
    is afterwards."""
    lister = Lister(model, part, answer, _inside(part, best.counts), best.grain)
    equal = max(best.noise, CLOSE * abs(answer.bound))
    if answer.bound - best.worth > equal:
        _improve(lister, best, widest=2)
    width = max((answer.bound - best.worth) / 4096, best.noise)
    while (gap := answer.bound - best.worth) > equal:
        settled = gap <= EXACT_GAP * abs(answer.bound)
        found, complete = _enumerate(
            lister, width, best, longest=SHORT_LIST if settled else LONGEST_LIST
        )
        if not complete:
            if not settled:
                _improve(lister, best, widest=8)
            return answer.bound - best.worth <= EXACT_GAP * abs(answer.bound)
        if (found is not None and found <= width) or width >= gap + best.noise:
            return True
        width = min(width * 4, gap + 2 * best.noise)
    _enumerate(lister, max(gap, 0.0) + best.noise, best, widest=32, longest=20_000)  # nearby ties
    return True


def _inside(part: Region, counts: Ints) -> Ints:
    return np.clip(counts, part.low[: len(counts)], part.high[: len(counts)])


MOST_TIES = 5
"""tasks, of those whose count may as well be another, that are tried in all combinations"""


def _improve(lister: Lister, best: _Best, widest: int) -> None:
    """Change a few counts of the centre, those that lose least by it: often enough to meet the
    bound."""
    model = lister.model
    gap = lister.answer.bound - best.worth
    movable = np.flatnonzero(lister.second[: model.tasks] <= gap)
    movable = movable[np.argsort(lister.second[movable], kind="stable")]
    ties = int(np.sum(lister.second[movable] <= best.noise))
    if ties > MOST_TIES:  # some that can only rise and some that can only fall
        movable = movable[np.linspace(0, ties - 1, MOST_TIES).astype(np.int64)]
    core = np.sort(movable[:MOST_TIES])
    _enumerate(lister, gap, best, core=core, widest=widest)


def _enumerate(
    lister: Lister,
    width: float,
    best: _Best,
    core: Ints | None = None,
    widest: int = WIDEST_WINDOW,
    longest: int = LONGEST_LIST,
) -> tuple[float | None, bool]:
    """List plans within `width` of the bound and offer the best to `best`: its loss, and whether
    the list was whole.

    With a `core` only these tasks vary and the others keep the count of the centre; the list is
    then not whole.
    """
    model, answer = lister.model, lister.answer
    complete = core is None
    if core is None:
        core = np.flatnonzero(lister.second[: model.tasks] <= width)
        counts = answer.choice[: model.tasks].copy()
    else:
        counts = lister.centre[: model.tasks].copy()
    windows: list[Window] = []
    for task in core:
        window = lister.window(int(task), width, widest)
        complete &= window.whole
        windows.append(window)
        if sum(len(each.counts) for each in windows) > longest // 8:
            return None, False
    rest = np.setdiff1d(np.arange(model.tasks), core)
    arms = model.arms_at(counts)[rest]
    used = (model.use[:, arms] @ counts[rest]).astype(np.int64)
    used[0] += model.fixed[arms].sum()
    states = States(lister, used[None, :], width)
    plain = model.rows - model.links
    least = np.array([window.use[:, :plain].min(axis=0) for window in windows]).reshape(-1, plain)
    most = np.array([window.use[:, :plain].max(axis=0) for window in windows]).reshape(-1, plain)
    for step, window in enumerate(windows):
        size = len(states.value) * len(window.counts)
        if size > longest:
            return None, False
        best.work += size
        states.extend(window, least[step + 1 :].sum(axis=0), most[step + 1 :].sum(axis=0))
        if not len(states.value):
            return None, complete
    chosen = states.finish()
    if chosen is None:
        return None, complete
    found, picks = chosen
    for window, pick in zip(windows, picks, strict=True):
        counts[window.task] = window.counts[pick]
    best.offer(counts)
    return found, complete


def _split(model: Model, part: Region, answer: Answer, best: _Best) -> list[Region]:
    """Two halves of a region: between arms of which a task would take either, else through its
    widest window."""
    lister = Lister(model, part, answer, _inside(part, best.counts), best.grain)
    width = max(answer.bound - best.worth, best.noise)
    task, cut, score = -1, 0, -1.0
    for index in np.flatnonzero((part.low < part.high) & (lister.second <= width))[: 4 * MOST_TIES]:
        if index >= model.tasks:
            break
        window = lister.window(int(index), width, WIDEST_WINDOW)
        lot = int(model.lot[model.starts[index]])
        size = float(window.counts[-1] - window.counts[0]) / lot
        arms = model.arms_of(int(index))
        borders = [
            int(model.low[arm])
            for arm in arms
            if window.counts[0] < model.low[arm] <= window.counts[-1]
        ]
        if borders:
            border, size = borders[-1], size + 1e18
        else:
            border = max(int(window.counts[len(window.counts) // 2]), int(part.low[index]) + lot)
        if size > score:
            task, cut, score = int(index), border, size
    if task < 0:
        return []
    low, high = part.low.copy(), part.high.copy()
    lot = int(model.lot[model.starts[task]])
    high[task], low[task] = cut - lot, cut
    return [region(model, part.low, high), region(model, low, part.high)]
