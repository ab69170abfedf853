"""Prices for money, caps and links: the Lagrangian dual, a bound on every plan and the place where
good ones lie.

For prices y >= 0 no plan is worth more than D(y) = y . limits + sum_v max_x (g_v(x) - y . use_v x),
and a plan falls short of D(y) by exactly the sum of its losses: each variable's distance from its
own best answer to y, and y times what is left of each limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array, Ints
from allotment.solver.model import Model


@dataclass(frozen=True)
class Region:
    """A part of the model: every variable between `low` and `high`, as its arms allow."""

    low: Ints
    high: Ints
    arm_low: Ints
    arm_high: Ints
    open: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """arms with at least one count in the region"""


def region(model: Model, low: Ints, high: Ints) -> Region:
    """The arms cut to the given range of each variable; `low` and `high` lie on whole lots."""
    arm_low = np.maximum(model.low, low[model.variable])
    arm_high = np.minimum(model.high, high[model.variable])
    return Region(low, high, arm_low, arm_high, arm_low <= arm_high)


def whole(model: Model) -> Region:
    """All of the model."""
    starts = model.starts
    return region(
        model, np.minimum.reduceat(model.low, starts), np.maximum.reduceat(model.high, starts)
    )


@dataclass(frozen=True)
class Answer:
    """What each variable would choose at prices y."""

    prices: Array
    slope: Array
    """of each arm: what a step costs at these prices"""
    counts: Ints
    """of each arm: its best count"""
    profit: Array
    """of each arm: worth less costs at its best count; -inf where the arm is closed"""
    best: Ints
    """of each variable: its best arm"""
    bound: float
    """no plan in the region is worth more"""
    slack: Array
    """of each limit, if every variable took its best: the dual's slope"""

    @property
    def choice(self) -> Ints:
        """Best count of each variable."""
        return self.counts[self.best]

    @property
    def best_profit(self) -> Array:
        return self.profit[self.best]


def respond(model: Model, part: Region, prices: Array) -> Answer:
    """Every variable's best answer to the prices; ties go to the fewer labels."""
    slope = prices @ model.use
    counts = _best_counts(model, part, slope)
    worth = model.arm_rise(np.zeros(len(counts)), counts)
    profit = np.where(part.open, worth - slope * counts - prices[0] * model.fixed, -np.inf)
    starts = model.starts
    if len(starts) == len(profit):
        best = starts
    else:
        top = np.maximum.reduceat(profit, starts)
        first = np.where(profit >= top[model.variable], np.arange(len(profit)), len(profit))
        best = np.minimum.reduceat(first, starts)
    chosen = counts[best].astype(np.int64)
    used = model.use[:, best] @ chosen
    used[0] += model.fixed[best].sum()
    slack = (model.limits - used).astype(float)
    bound = float(profit[best].sum() + prices @ model.limits)
    return Answer(prices, slope, counts.astype(np.int64), profit, best, bound, slack)


def _best_counts(model: Model, part: Region, slope: Array) -> Array:
    low, high, lot = (
        part.arm_low.astype(float),
        part.arm_high.astype(float),
        model.lot.astype(float),
    )
    high = np.maximum(low, high)  # closed arms answer something; their profit is -inf
    reach = model.arm_reach(slope, low, high)
    near = np.clip(low + np.floor((reach - low) / lot) * lot, low, high)
    if model.links:
        near = _look_closer(model, slope, near, low, high)
    # `reach` is good to one label: look one lot to either side
    below, above = np.maximum(near - lot, low), np.minimum(near + lot, high)
    up = model.arm_rise(near, above - near) > slope * (above - near)
    down = model.arm_rise(below, near - below) <= slope * (near - below)
    return np.asarray(np.where(up, above, np.where(down, below, near)))


def _look_closer(model: Model, slope: Array, near: Array, low: Array, high: Array) -> Array:
    """Halve to single steps where a step is only a part of a label."""
    margin = np.where(model.scale < 1, np.ceil(2 / model.scale), 0.0)[model.variable]
    margin[model.bank.own] = 0.0  # their reach is told in steps
    below, above = np.maximum(near - margin, low), np.minimum(near + margin, high)
    while np.any(above - below > 1):
        middle = np.floor((below + above) / 2)
        worth_it = model.arm_rise(middle, np.ones(len(middle))) > slope
        below, above = np.where(worth_it, middle, below), np.where(worth_it, above, middle)
    return np.asarray(np.where(margin > 0, below, near))


def solve(
    model: Model, part: Region, start: Array | None = None, close: float = 1e-13
) -> tuple[Answer, Answer]:
    """Prices that make the bound small; and, where money is the only limit, the answer just on its
    feasible side.

    With several limits the bound comes within `close` (a share of it) of the best.
    """
    if model.rows == 1:
        return _bisect(model, part)
    return _ellipsoid(model, part, start, close)


def highest_prices(model: Model, part: Region) -> Array:
    """A price of each limit above which no variable wants any more of it."""
    lot = model.lot.astype(float)
    choice = part.open & (part.low < part.high)[model.variable]
    slopes = np.where(
        choice, np.maximum(model.arm_rise(part.arm_low.astype(float), lot), 0.0) / lot, 0.0
    )
    first = np.maximum.reduceat(slopes, model.starts)[model.variable]
    links = model.links
    prices = np.zeros(model.rows)
    # a link's price is at most its curve's first slope; that is worth something to the tasks
    if links:
        prices[-links:] = first[-links:]
        first = first + prices[-links:] @ np.maximum(-model.use[-links:], 0)
    for row in range(model.rows - links):
        use = model.use[row]
        prices[row] = np.max(first[use > 0] / use[use > 0], initial=0.0)
    return prices


def _bisect(model: Model, part: Region) -> tuple[Answer, Answer]:
    """Money only: the price of money at which spending crosses the budget."""
    top = float(highest_prices(model, part)[0])
    free = respond(model, part, np.zeros(1))
    if top <= 0.0:
        return free, free
    # A price so low that the whole budget is worth less than rounding: what is not bought at it
    # adds nothing.
    least = max(free.bound, 0.0) * 1e-13 / max(1, int(model.limits[0]))
    least = min(max(least, top * 1e-60), top)
    cheap = respond(model, part, np.array([least]))
    if cheap.slack[0] >= 0:
        return cheap, cheap
    top *= 1 + 1e-9
    dear = respond(model, part, np.array([top]))
    low, high = math.log(least), math.log(top)
    below, above = float(cheap.slack[0]), float(dear.slack[0])
    slow = 0
    while (
        high - low > 4e-16 * max(1.0, abs(high))
        and cheap.slack[0] < 0
        and not _one_lot_apart(model, cheap, dear)
    ):
        # false position, and every third step a plain half: few steps where spending is smooth,
        # never many
        share = (
            0.5
            if slow == 2 or above <= below
            else min(max(below / (below - above), 1e-3), 1 - 1e-3)
        )
        slow = (slow + 1) % 3
        middle = low + share * (high - low)
        if not low < middle < high:
            break
        answer = respond(model, part, np.array([math.exp(middle)]))
        if answer.slack[0] >= 0:
            high, dear, above = middle, answer, float(answer.slack[0])
            if above == 0:
                cheap = answer
        else:
            low, cheap, below = middle, answer, float(answer.slack[0])
    if _one_lot_apart(model, cheap, dear):  # the price at which that lot pays is the best one
        at = int(np.flatnonzero(cheap.choice != dear.choice)[0])
        arm, lot = dear.best[at], float(cheap.choice[at] - dear.choice[at])
        gain = float(model.rise(at, np.asarray(float(dear.choice[at])), np.asarray(lot)))
        exact = respond(model, part, np.array([gain / (lot * float(model.use[0, arm]))]))
        if exact.bound <= min(cheap.bound, dear.bound):
            return exact, dear
    return (cheap if cheap.bound <= dear.bound else dear), dear


def _one_lot_apart(model: Model, cheap: Answer, dear: Answer) -> bool:
    """Whether two answers differ by one lot of one task, bought at one price."""
    apart = np.flatnonzero(cheap.choice != dear.choice)
    if len(apart) != 1 or cheap.best[apart[0]] != dear.best[apart[0]]:
        return False
    return bool(cheap.choice[apart[0]] - dear.choice[apart[0]] == model.lot[cheap.best[apart[0]]])


ELLIPSOID_STEPS = 2000


def _ellipsoid(
    model: Model, part: Region, start: Array | None, close: float
) -> tuple[Answer, Answer]:
    """Several limits: the ellipsoid method, which also tells how far from the best prices it can
    still be."""
    scale = highest_prices(model, part)
    free = [row for row in range(model.rows) if scale[row] > 0]
    prices = np.zeros(model.rows)
    best = respond(model, part, prices)
    if not free:
        return best, best
    scale = scale[free]
    size = len(free)
    centre = np.full(size, 0.5)
    shape = np.eye(size) * size  # a ball around the box [0, 1]^size
    if start is not None:
        centre = np.clip(start[free] / scale, 0.0, 1.0)
        shape = shape / 100
    for _ in range(ELLIPSOID_STEPS):
        outside = np.flatnonzero(centre < 0)
        if len(outside):
            slope = np.zeros(size)
            slope[outside[0]] = -1.0
            depth = -centre[outside[0]]
        else:
            prices = np.zeros(model.rows)
            prices[free] = centre * scale
            answer = respond(model, part, prices)
            if answer.bound < best.bound:
                best = answer
            slope = answer.slack[free] * scale
            depth = answer.bound - best.bound
        length = math.sqrt(max(float(slope @ shape @ slope), 0.0))
        if length <= close * max(abs(best.bound), 1e-300):
            break
        centre, shape = _cut(centre, shape, slope / length, depth / length)
    return best, best


def _cut(centre: Array, shape: Array, slope: Array, depth: float) -> tuple[Array, Array]:
    """The smallest ellipsoid around the part of this one that lies below the cut."""
    size = len(centre)
    depth = min(depth, 0.999)
    step = shape @ slope
    if size == 1:
        half = float(np.sqrt(shape[0, 0]))
        sign = np.sign(step[0])
        return centre - sign * half * (1 + depth) / 2, shape * ((1 - depth) / 2) ** 2
    centre = centre - (1 + size * depth) / (size + 1) * step
    shrink = 2 * (1 + size * depth) / ((size + 1) * (1 + depth))
    shape = size**2 * (1 - depth**2) / (size**2 - 1) * (shape - shrink * np.outer(step, step))
    return centre, (shape + shape.T) / 2
