"""A good plan at once: what everyone takes at prices high enough to fit, then the best buys that
still do."""

from __future__ import annotations

import numpy as np

from allotment.arrays import Array, Ints
from allotment.solver.dual import Answer, Region, respond
from allotment.solver.model import Model

MOST_BUYS = 120


def fill(model: Model, part: Region, answer: Answer, feasible: Answer) -> Ints:
    """A good plan to begin with: what everyone takes at prices just high enough to fit, then the
    best buys that do."""
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
    while not fits(model, found) and high < 1e6:
        low, high = high, high * 2
        factors[:plain] = high  # a link's price only says how tasks share its worth
        found = respond(model, part, feasible.prices * factors).choice[: model.tasks]
    if not fits(model, found):
        return part.low[: model.tasks].copy()
    for _ in range(20 if high > 1 else 0):
        factors[:plain] = middle = (low + high) / 2
        trial = respond(model, part, feasible.prices * factors).choice[: model.tasks]
        if fits(model, trial):
            high, found = middle, trial
        else:
            low = middle
    return found.copy()


def _grow(model: Model, part: Region, counts: Ints, prices: Array) -> Ints:
    """Buy what is worth most for what it takes, a quarter of what is left at a time and then single
    lots."""
    plain = model.rows - model.links
    lots = model.lot[model.starts[: model.tasks]]
    high = part.high[: model.tasks]
    # a limit without a price still counts a little, so that of two equal buys the smaller one wins
    rates = (
        np.maximum(prices[:plain], 1e-9 * prices[:plain].max())
        if prices[:plain].any()
        else np.ones(plain)
    )
    for _ in range(MOST_BUYS):
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


def fits(model: Model, counts: Ints) -> bool:
    return bool(np.all(model.used(counts) <= model.limits[: model.rows - model.links]))


def _afford(model: Model, counts: Ints, task: int, wanted: int) -> int:
    """The most of one task, up to `wanted`, that fits beside the other counts."""
    lot = int(model.lot[model.starts[task]])
    low, high = int(counts[task]) // lot, wanted // lot
    trial = counts.copy()
    while low < high:
        middle = (low + high + 1) // 2
        trial[task] = middle * lot
        if fits(model, trial):
            low = middle
        else:
            high = middle - 1
    return max(low * lot, int(counts[task]))
