"""The exact optimum: branch and bound whose nodes are mostly solved outright.

A plan falls short of the dual bound by the sum of its losses (see `dual`). So all plans within `width` of the bound are
made of counts whose own loss is at most `width`: few, because curves bend. They are listed task by task, two partial
plans that used the same keeping only the better one. If the list holds a complete plan, the best of it is the optimum;
if not, `width` grows. Where the list would become too long (a fee that may or may not be paid opens a gap), the region
is split and each part has its own, closer prices.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np

from allotment.solver.dual import Answer, Region, region, respond, solve, whole
from allotment.solver.model import Array, Ints, Model

LONGEST_LIST = 300_000
"""partial plans looked at in one step before a region is split instead"""
WIDEST_WINDOW = 20_000
"""counts of one task looked at on either side"""
MOST_REGIONS = 500
MOST_WORK = 15_000_000
"""partial plans looked at in all before the search ends with a bound"""
SETTLED = 1e-10
"""a gap of this share of the value is exact enough; more is only proved where that is cheap"""
SHORT_LIST = 100_000
CLOSE = 1e-12
"""a plan within this share of its bound is called best without listing the others"""
GRAIN = 2.0**-46
"""values closer than this share of the plan's value are equal"""


@dataclass(frozen=True)
class Solution:
    """The best counts, and by how much a better plan could exceed them (0 when they are proved best)."""

    counts: Ints
    gap: float
    prices: Array
    """worth of one more unit of money, of each cap and of each link, at the optimum of the relaxation"""


def maximise(model: Model, root: Region | None = None) -> Solution:
    """The counts of greatest worth; among equals those of least money, then those that favour earlier tasks."""
    root = whole(model) if root is None else root
    answer, feasible = solve(model, root)
    if model.rows == 1 and answer.slack[0] >= 0 and answer.prices[0] * model.limits[0] <= CLOSE * abs(answer.bound):
        return Solution(answer.choice, 0.0, np.zeros(1))  # everything worth having is affordable
    best = _Best(model, fill(model, root, answer, feasible), answer.bound)
    order = itertools.count()
    queue = [(-answer.bound, next(order), root, answer)]
    regions = 0
    while queue and -queue[0][0] >= best.worth - best.noise and regions < MOST_REGIONS and best.work < MOST_WORK:
        if regions and -queue[0][0] - best.worth <= SETTLED * abs(best.worth):
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
            if not _fits(model, half.low[: model.tasks]):
                continue
            after = respond(model, half, found.prices)
            if after.bound >= best.worth - best.noise:
                heapq.heappush(queue, (-min(after.bound, found.bound), next(order), half, after))
    left = max((-bound for bound, *_ in queue), default=-np.inf)
    gap = max(0.0, left - best.worth)
    return Solution(best.counts, 0.0 if gap <= 1e-9 * abs(best.worth) else gap, answer.prices)


class _Best:
    """The best plan so far, by worth, then least money, then task order."""

    def __init__(self, model: Model, counts: Ints, bound: float):
        self.model = model
        self.counts = counts
        self.worth = model.worth(counts)
        self.work = 0
        lots = model.arm_rise(model.low.astype(float), model.lot.astype(float))
        scale = max(abs(self.worth), abs(bound), float(np.abs(lots).max()), 1e-200)
        # a power of two, in which worths that are whole numbers stay exact and their ties stay ties
        self.grain = 2.0 ** math.floor(math.log2(GRAIN * scale))
        self.noise = self.grain * (2 + model.variables)

    def offer(self, counts: Ints) -> None:
        worth = self.model.worth(counts)
        if worth < self.worth - self.noise:
            return
        if worth <= self.worth + self.noise:
            new, old = self.model.used(counts)[0], self.model.used(self.counts)[0]
            if (new, *-counts) >= (old, *-self.counts):
                return
        self.counts, self.worth = counts, worth


def fill(model: Model, part: Region, answer: Answer, feasible: Answer) -> Ints:
    """A good plan to begin with: what everyone takes at prices just high enough to fit, then the best buys that do."""
    counts = _shrink(model, part, feasible)
    wanted = answer.choice[: model.tasks]
    for task in np.flatnonzero(wanted > counts):  # slopes that are equal: earlier tasks first
        counts[task] = _afford(model, counts, int(task), int(wanted[task]))
        if model.rows > 1:
            break  # what one task takes of several limits may be better left to others
    return _grow(model, part, counts, answer.prices)


def _shrink(model: Model, part: Region, feasible: Answer) -> Ints:
    """The answer to the lowest multiple of the prices whose answer fits."""
    plain = model.rows - model.links
    factors = np.ones(model.rows)
    low, high, found = 1.0, 1.0, feasible.choice[: model.tasks]
    while not _fits(model, found) and high < 1e6:
        low, high = high, high * 2
        factors[:plain] = high  # a link's price only says how tasks share its worth
        found = respond(model, part, feasible.prices * factors).choice[: model.tasks]
    if not _fits(model, found):
        return part.low[: model.tasks].copy()
    for _ in range(20 if high > 1 else 0):
        factors[:plain] = middle = (low + high) / 2
        trial = respond(model, part, feasible.prices * factors).choice[: model.tasks]
        if _fits(model, trial):
            high, found = middle, trial
        else:
            low = middle
    return found.copy()


def _grow(model: Model, part: Region, counts: Ints, prices: Array) -> Ints:
    """Buy what is worth most for what it takes, a quarter of what is left at a time and then single lots."""
    plain = model.rows - model.links
    lots = model.lot[model.starts[: model.tasks]]
    high = part.high[: model.tasks]
    rates = np.maximum(prices[:plain], 1e-300)
    for _ in range(100 + 2 * FEW * plain):
        arms, more = model.arms_at(counts), np.minimum(counts + lots, high)
        after = model.arms_at(more)
        slack = model.limits[:plain] - model.used(counts)
        step = model.use[:plain, after] * more - model.use[:plain, arms] * counts
        step[0] += model.fixed[after] - model.fixed[arms]
        gain = model.arm_rise(_spread(model, counts), model.lot.astype(float))
        worth = gain[arms]
        if model.links:
            worth = worth + gain[model.starts[model.tasks :]] @ -model.use[plain:, arms] * lots
        fits = (more > counts) & np.all(step <= slack[:, None], axis=0)
        density = np.where(fits, worth, 0.0) / np.maximum(rates @ step, 1e-300)
        task = int(np.argmax(density))
        if not density[task] > 0:
            break
        times = int(np.min(slack / np.maximum(step[:, task], 1)) / 4)
        counts = counts.copy()
        bulk = min(int(counts[task]) + max(times, 1) * int(lots[task]), int(high[task]))
        counts[task] = _afford(model, counts, task, bulk)
    return counts


def _spread(model: Model, counts: Ints) -> Array:
    """Task counts as an array over arms."""
    return model.complete(counts)[model.variable].astype(float)


def _fits(model: Model, counts: Ints) -> bool:
    return bool(np.all(model.used(counts) <= model.limits[: model.rows - model.links]))


def _afford(model: Model, counts: Ints, task: int, wanted: int) -> int:
    """The most of one task, up to `wanted`, that fits beside the other counts."""
    lot = int(model.lot[model.starts[task]])
    low, high = int(counts[task]) // lot, wanted // lot
    trial = counts.copy()
    while low < high:
        middle = (low + high + 1) // 2
        trial[task] = middle * lot
        if _fits(model, trial):
            low = middle
        else:
            high = middle - 1
    return max(low * lot, int(counts[task]))


@dataclass(frozen=True)
class _Window:
    """The counts of one task that a plan near the bound can have."""

    task: int
    counts: Ints
    use: Ints
    """(counts, rows)"""
    value: Ints
    """worth in grains, against the centre"""
    loss: Array
    whole: bool
    """nothing was cut off"""


class _Lister:
    """Lists the plans of a region within some width of its bound."""

    def __init__(self, model: Model, part: Region, answer: Answer, centre: Ints, grain: float):
        self.model, self.part, self.answer = model, part, answer
        self.centre = model.complete(centre)
        self.grain = grain
        lot = model.lot.astype(float)
        at = answer.counts.astype(float)
        up = np.minimum(at + lot, part.arm_high) - at
        down = at - np.maximum(at - lot, part.arm_low)
        short = answer.best_profit[model.variable] - answer.profit
        with np.errstate(invalid="ignore"):
            rise = short + answer.slope * up - model.arm_rise(at, up)
            fall = short + model.arm_rise(at - down, down) - answer.slope * down
        # the least loss of any count but the best one, so that most tasks need no closer look
        rise = np.where(part.open & (up > 0), rise, np.inf)
        fall = np.where(part.open & (down > 0), fall, np.inf)
        other = np.where(np.arange(len(short)) == answer.best[model.variable], np.inf, short)
        self.second = np.minimum.reduceat(np.minimum(np.minimum(rise, fall), other), model.starts)

    def window(self, task: int, width: float, widest: int) -> _Window:
        model, part, answer = self.model, self.part, self.answer
        counts, losses, complete = [], [], True
        arms = model.arms_of(task)
        for arm in arms:
            short = answer.best_profit[task] - answer.profit[arm]
            if not part.open[arm] or short > width:
                continue
            near, lost, whole_arm = self._arm_window(task, arm, float(short), width, widest)
            complete &= whole_arm
            counts.append(near)
            losses.append(lost)
        count, loss = np.concatenate(counts), np.concatenate(losses)
        arm_of = arms.start + np.searchsorted(model.low[arms.start : arms.stop], count, side="right") - 1
        use = model.use[:, arm_of].T * count[:, None]
        use[:, 0] += model.fixed[arm_of]
        base = float(self.centre[task])
        more = count - base
        value = model.rise(task, np.minimum(base, count), np.abs(more)) * np.sign(more)
        return _Window(task, count, use, np.rint(value / self.grain).astype(np.int64), loss, complete)

    def _arm_window(self, task: int, arm: int, short: float, width: float, widest: int) -> tuple[Ints, Array, bool]:
        """Counts of one arm whose loss is at most `width`, nearest to the centre first if there are too many."""
        model, part, answer = self.model, self.part, self.answer
        best, lot = int(answer.counts[arm]), int(model.lot[arm])
        low, high = int(part.arm_low[arm]), int(part.arm_high[arm])
        centre = min(max(int(self.centre[task]), low), high)
        slope = float(answer.slope[arm])

        def loss(count: Ints) -> Array:
            more = (count - best).astype(float)
            rise = model.rise(task, np.minimum(best, count).astype(float), np.abs(more)) * np.sign(more)
            return np.asarray(np.maximum(short + slope * more - rise, 0.0))

        if float(loss(np.array([centre]))[0]) > width:
            centre = best
        sides, complete = [np.array([centre], dtype=np.int64)], True
        for sign, room in ((1, (high - centre) // lot), (-1, (centre - low) // lot)):
            reach = min(room, 16, widest)
            while True:
                steps = centre + sign * lot * np.arange(1, reach + 1, dtype=np.int64)
                good = loss(steps) <= width
                if reach == room or reach >= widest or not (good[-1] if reach else False):
                    break
                reach = min(room, reach * 4, widest)
            complete &= not (reach < room and reach and bool(good[-1]))
            sides.append(steps[good])
        counts = np.sort(np.concatenate(sides))
        return counts, loss(counts), complete


def _list_plans(model: Model, part: Region, answer: Answer, best: _Best) -> bool:
    """Look for the best plan of a region; True if there is provably none better in it than `best` is afterwards."""
    lister = _Lister(model, part, answer, _inside(part, best.counts), best.grain)
    equal = max(best.noise, CLOSE * abs(answer.bound))
    if answer.bound - best.worth > equal:
        _improve(lister, best, widest=2)
    width = max((answer.bound - best.worth) / 4096, best.noise)
    while (gap := answer.bound - best.worth) > equal:
        settled = gap <= SETTLED * abs(answer.bound)
        found, complete = _enumerate(lister, width, best, longest=SHORT_LIST if settled else LONGEST_LIST)
        if not complete:
            if not settled:
                _improve(lister, best, widest=8)
            return answer.bound - best.worth <= SETTLED * abs(answer.bound)
        if (found is not None and found <= width) or width >= gap + best.noise:
            return True
        width = min(width * 4, gap + 2 * best.noise)
    _enumerate(lister, max(gap, 0.0) + best.noise, best, widest=32, longest=20_000)  # nearby ties
    return True


def _inside(part: Region, counts: Ints) -> Ints:
    return np.clip(counts, part.low[: len(counts)], part.high[: len(counts)])


FEW = 5


def _improve(lister: _Lister, best: _Best, widest: int) -> None:
    """Change a few counts of the centre, those that lose least by it: often enough to meet the bound."""
    model = lister.model
    gap = lister.answer.bound - best.worth
    movable = np.flatnonzero(lister.second[: model.tasks] <= gap)
    movable = movable[np.argsort(lister.second[movable], kind="stable")]
    ties = int(np.sum(lister.second[movable] <= best.noise))
    if ties > FEW:  # some that can only rise and some that can only fall
        movable = movable[np.linspace(0, ties - 1, FEW).astype(np.int64)]
    core = np.sort(movable[:FEW])
    _enumerate(lister, gap, best, core=core, widest=widest)


def _enumerate(
    lister: _Lister,
    width: float,
    best: _Best,
    core: Ints | None = None,
    widest: int = WIDEST_WINDOW,
    longest: int = LONGEST_LIST,
) -> tuple[float | None, bool]:
    """List plans within `width` of the bound and offer the best to `best`: its loss, and whether the list was whole.

    With a `core` only these tasks vary and the others keep the count of the centre; the list is then not whole.
    """
    model, answer = lister.model, lister.answer
    complete = core is None
    if core is None:
        core = np.flatnonzero(lister.second[: model.tasks] <= width)
        counts = answer.choice[: model.tasks].copy()
    else:
        counts = lister.centre[: model.tasks].copy()
    windows: list[_Window] = []
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
    states = _States(lister, used[None, :], width)
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


class _States:
    """Partial plans: what each used, its value in grains, its loss, and its rank in task order."""

    def __init__(self, lister: _Lister, used: Ints, width: float):
        self.lister, self.width = lister, width
        self.used = used
        self.value = np.zeros(1, dtype=np.int64)
        self.loss = np.zeros(1)
        self.rank = np.zeros(1, dtype=np.int64)
        self.trail: list[tuple[Ints, Ints]] = []

    def extend(self, window: _Window, least: Ints, most: Ints) -> None:
        """Every state with every count of the window, less what can no longer fit or come near the bound."""
        model, prices = self.lister.model, self.lister.answer.prices
        plain = model.rows - model.links
        loss = (self.loss[:, None] + window.loss[None, :]).ravel()
        keep = np.flatnonzero(loss <= self.width)
        state, pick = np.divmod(keep, len(window.counts))
        used = self.used[state] + window.use[pick]
        slack = model.limits[:plain] - used[:, :plain]
        idle = np.maximum(slack - most, 0) @ prices[:plain]
        good = np.all(slack >= least, axis=1) & (loss[keep] + idle <= self.width)
        keep, state, pick, used = keep[good], state[good], pick[good], used[good]
        value = self.value[state] + window.value[pick]
        # earlier tasks first: more of an earlier task ranks before; then drop all but the best of equal use
        rank = self.rank[state] * len(window.counts) + (len(window.counts) - 1 - pick)
        columns = [rank, -value, *used.T[::-1]]
        order = np.lexsort(columns)
        if model.rows == 1:
            ahead = np.maximum.accumulate(value[order])
            fresh = np.append(True, ahead[1:] > ahead[:-1]) if len(order) else np.zeros(0, dtype=bool)
        else:
            ordered = used[order]
            fresh = np.append(True, np.any(ordered[1:] != ordered[:-1], axis=1)) if len(order) else np.zeros(0, bool)
        order = order[fresh]
        self.used, self.value, self.loss = used[order], value[order], loss[keep][order]
        self.rank = np.argsort(np.argsort(rank[order]))
        self.trail.append((state[order], pick[order]))

    def finish(self) -> tuple[float, list[int]] | None:
        """The best complete plan: its loss and the picks that led to it."""
        model, answer, grain = self.lister.model, self.lister.answer, self.lister.grain
        plain = model.rows - model.links
        slack = model.limits[:plain] - self.used[:, :plain]
        value = self.value.copy()
        loss = self.loss + slack @ answer.prices[:plain]
        for link in range(model.links):
            variable, row = model.tasks + link, plain + link
            arm = model.starts[variable]
            given = -self.used[:, row]
            taken = np.minimum(given, model.high[arm])
            best, base = float(answer.counts[arm]), float(self.lister.centre[variable])
            for origin, is_value in ((best, False), (base, True)):
                more = taken - origin
                rise = model.rise(variable, np.minimum(origin, taken), np.abs(more)) * np.sign(more)
                if is_value:
                    value = value + np.rint(rise / grain).astype(np.int64)
                else:
                    loss = loss + np.maximum(answer.slope[arm] * more - rise, 0.0)
            loss = loss + answer.prices[row] * (given - taken)
        good = np.flatnonzero(np.all(slack >= 0, axis=1) & (loss <= self.width))
        if not len(good):
            return None
        good = good[value[good] >= value[good].max() - model.variables]
        top = good[np.lexsort((self.rank[good], self.used[good, 0]))[0]]
        picks, index = [], int(top)
        for state, pick in reversed(self.trail):
            picks.append(int(pick[index]))
            index = int(state[index])
        return float(loss[top]), picks[::-1]


def _split(model: Model, part: Region, answer: Answer, best: _Best) -> list[Region]:
    """Two halves of a region: between arms of which a task would take either, else through its widest window."""
    lister = _Lister(model, part, answer, _inside(part, best.counts), best.grain)
    width = max(answer.bound - best.worth, best.noise)
    task, cut, score = -1, 0, -1.0
    for index in np.flatnonzero((part.low < part.high) & (lister.second <= width))[: 4 * FEW]:
        if index >= model.tasks:
            break
        window = lister.window(int(index), width, WIDEST_WINDOW)
        lot = int(model.lot[model.starts[index]])
        size = float(window.counts[-1] - window.counts[0]) / lot
        arms = model.arms_of(int(index))
        borders = [int(model.low[arm]) for arm in arms if window.counts[0] < model.low[arm] <= window.counts[-1]]
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
