"""The plans near a bound: the counts of each task that one can have, and how they are put
together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array, Ints
from allotment.solver.dual import Answer, Region
from allotment.solver.model import Model

MOST_GRAINS = 2.0**52
"""so that a thousand of them still add up"""


@dataclass(frozen=True)
class Window:
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


class Lister:
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

    def window(self, task: int, width: float, widest: int) -> Window:
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
        arm_of = (
            arms.start + np.searchsorted(model.low[arms.start : arms.stop], count, side="right") - 1
        )
        use = model.use[:, arm_of].T * count[:, None]
        use[:, 0] += model.fixed[arm_of]
        base = float(self.centre[task])
        more = count - base
        value = model.rise(task, np.minimum(base, count), np.abs(more)) * np.sign(more)
        return Window(task, count, use, self.grains(value), loss, complete)

    def grains(self, value: Array) -> Ints:
        """Worth as a whole number of grains; what is worth less than nothing by far needs no exact
        one."""
        return np.rint(np.clip(value / self.grain, -MOST_GRAINS, MOST_GRAINS)).astype(np.int64)

    def _arm_window(
        self, task: int, arm: int, short: float, width: float, widest: int
    ) -> tuple[Ints, Array, bool]:
        """Counts of one arm whose loss is at most `width`, nearest to the centre first if there are
        too many."""
        model, part, answer = self.model, self.part, self.answer
        best, lot = int(answer.counts[arm]), int(model.lot[arm])
        low, high = int(part.arm_low[arm]), int(part.arm_high[arm])
        centre = min(max(int(self.centre[task]), low), high)
        slope = float(answer.slope[arm])

        def loss(count: Ints) -> Array:
            more = (count - best).astype(float)
            rise = model.rise(task, np.minimum(best, count).astype(float), np.abs(more)) * np.sign(
                more
            )
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


class States:
    """Partial plans: what each used, its value in grains, its loss, and its rank in task order."""

    def __init__(self, lister: Lister, used: Ints, width: float):
        self.lister, self.width = lister, width
        self.used = used
        self.value = np.zeros(1, dtype=np.int64)
        self.loss = np.zeros(1)
        self.rank = np.zeros(1, dtype=np.int64)
        self.trail: list[tuple[Ints, Ints]] = []

    def extend(self, window: Window, least: Ints, most: Ints) -> None:
        """Every state with every count of the window, less what can no longer fit or come near the
        bound."""
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
        # earlier tasks first: more of an earlier task ranks before; then drop all but the best of
        # equal use
        rank = self.rank[state] * len(window.counts) + (len(window.counts) - 1 - pick)
        columns = [rank, -value, *used.T[::-1]]
        order = np.lexsort(columns)
        if model.rows == 1:
            ahead = np.maximum.accumulate(value[order])
            fresh = (
                np.append(True, ahead[1:] > ahead[:-1]) if len(order) else np.zeros(0, dtype=bool)
            )
        else:
            ordered = used[order]
            fresh = (
                np.append(True, np.any(ordered[1:] != ordered[:-1], axis=1))
                if len(order)
                else np.zeros(0, bool)
            )
        order = order[fresh]
        self.used, self.value, self.loss = used[order], value[order], loss[keep][order]
        self.rank = np.argsort(np.argsort(rank[order]))
        self.trail.append((state[order], pick[order]))

    def finish(self) -> tuple[float, list[int]] | None:
        """The best complete plan: its loss and the picks that led to it."""
        model, answer = self.lister.model, self.lister.answer
        plain = model.rows - model.links
        slack = model.limits[:plain] - self.used[:, :plain]
        value = self.value.copy()
        loss = self.loss + slack @ answer.prices[:plain]
        for link in range(model.links):
            variable, row = model.tasks + link, plain + link
            arm = model.starts[variable]
            given = model.limits[row] - self.used[:, row]
            taken = np.minimum(given, model.high[arm])
            best, base = float(answer.counts[arm]), float(self.lister.centre[variable])
            for origin, is_value in ((best, False), (base, True)):
                more = taken - origin
                rise = model.rise(variable, np.minimum(origin, taken), np.abs(more)) * np.sign(more)
                if is_value:
                    value = value + self.lister.grains(rise)
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
