"""All budgets at once: f(b) is the most worth that b units of money buy.

A task is added by f'(b) = max_k f(b - cost k) + g(k). For a concave g the budget b - cost k that is
built on never falls from one b to the next of the same remainder by cost, so the rows between two
solved ones search only between their answers: halving, level by level, for all remainders together.
"""

from __future__ import annotations

import numpy as np

from allotment.arrays import Array, Ints
from allotment.solver.model import Model


def sweep(model: Model) -> tuple[Array, Ints]:
    """Best worth, and the counts that reach it (tasks, budgets), for every whole budget from 0 to
    the model's."""
    budget = int(model.limits[0])
    best: Array | None = None
    picks = []
    for task in range(model.tasks):
        after, pick = np.full(budget + 1, -np.inf), np.zeros(budget + 1, dtype=np.int64)
        for arm in model.arms_of(task):
            _add_arm(model, task, arm, best, after, pick)
        best = after
        picks.append(pick)
    assert best is not None
    # money may be left over: the best of all smaller budgets, at the least of them
    order = np.arange(budget + 1)
    top = np.maximum.accumulate(best)
    order = np.maximum.accumulate(np.where(np.append(True, best[1:] > top[:-1]), order, 0))
    counts = np.zeros((model.tasks, budget + 1), dtype=np.int64)
    at = order.copy()
    for task in range(model.tasks - 1, -1, -1):
        counts[task] = picks[task][at]
        arms = model.arms_of(task)
        arm = (
            arms.start
            + np.searchsorted(model.low[arms.start : arms.stop], counts[task], side="right")
            - 1
        )
        arm = np.maximum(arm, arms.start)
        at = np.maximum(at - model.use[0, arm] * counts[task] - model.fixed[arm], 0)
    return top, counts


def _add_arm(
    model: Model, task: int, arm: int, best: Array | None, after: Array, pick: Ints
) -> None:
    """Raise `after` where buying on this arm is better, and note how many in `pick`."""
    low, lot = int(model.low[arm]), int(model.lot[arm])
    price, budget = int(model.use[0, arm]), len(after) - 1
    start = int(model.fixed[arm]) + price * low
    if start > budget:
        return
    lots = (int(model.high[arm]) - low) // lot
    counts = low + lot * np.arange(lots + 1)
    gains = model.rise(task, np.zeros(len(counts)), counts.astype(float))
    if best is None:  # the first task: as many as the money buys, or as many as are worth it
        top = np.maximum.accumulate(gains)
        chosen = np.searchsorted(top, top, side="left")
        chosen = chosen[np.minimum(np.arange(budget + 1 - start) // max(price * lot, 1), lots)]
        value = gains[chosen]
    elif lots == 0:
        value, chosen = (
            best[: budget + 1 - start] + gains[0],
            np.zeros(budget + 1 - start, dtype=np.int64),
        )
    else:
        value, chosen = convolve(best[: budget + 1 - start], gains, price * lot)
    here = after[start:]
    better = value > here
    here[better] = value[better]
    pick[start:][better] = counts[chosen[better]]


def convolve(base: Array, gains: Array, cost: int) -> tuple[Array, Ints]:
    """max over k of base[b - cost k] + gains[k] for every b, and the k that attains it; `gains` is
    concave."""
    size = len(base)
    rows = -(-size // cost)
    # row r, column c stands for b = r cost + c: one column is one remainder
    grid = np.full(rows * cost, -np.inf)
    grid[:size] = base
    flat = np.ascontiguousarray(grid.reshape(rows, cost).T).ravel()
    value = np.full(cost * rows, -np.inf)
    # `source` is the row that is built on; it never falls along a column
    source = np.zeros((cost, rows), dtype=np.int64)
    top = len(gains) - 1
    step = 1 << max(rows - 1, 1).bit_length()
    columns = np.arange(cost, dtype=np.int64)[:, None]
    while step >= 1:
        row = np.arange(step - 1, rows, 2 * step, dtype=np.int64)
        step_half = step
        if len(row):
            least = np.where(row >= step_half, source[:, np.maximum(row - step_half, 0)], 0)
            ahead = row + step_half
            most = np.where(ahead < rows, source[:, np.minimum(ahead, rows - 1)], row)
            least = np.maximum(np.broadcast_to(least, (cost, len(row))), row - top)
            most = np.maximum(np.minimum(most, row), least)
            _search(flat, gains, value, source, rows, columns, row, least, most)
        step //= 2
    value = value.reshape(cost, rows).T.ravel()[:size]
    chosen = (np.arange(rows)[None, :] - source).T.ravel()[:size]
    return value, chosen


def _search(
    flat: Array,
    gains: Array,
    value: Array,
    source: Ints,
    rows: int,
    columns: Ints,
    row: Ints,
    least: Ints,
    most: Ints,
) -> None:
    """The best source of each (column, row) between `least` and `most`, all ranges laid end to
    end."""
    widths = (most - least + 1).ravel()
    ends = np.cumsum(widths)
    starts = ends - widths
    where = np.repeat(least.ravel() - starts, widths) + np.arange(ends[-1])
    offset = np.repeat((columns * rows + 0 * row).ravel(), widths)
    target = np.repeat(np.broadcast_to(row, least.shape).ravel(), widths)
    worth = flat[offset + where] + gains[target - where]
    best = np.maximum.reduceat(worth, starts)
    # of equal worths the one that is built on the higher row: fewer labels of this task
    place = np.where(worth == np.repeat(best, widths), where, -1)
    found = np.maximum.reduceat(place, starts)
    value[(columns * rows + row).ravel()] = best
    source[:, row] = found.reshape(least.shape)
