"""Many curves at once, so that a thousand tasks are a few calls of numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array
from allotment.gains import Curve, Family, Tabulated, climb, is_own


class Bank:
    """Many curves evaluated at once: row r is the sum of the curves in `rows[r]`, in steps of
    `steps[r]` labels up to `tops[r]`."""

    def __init__(self, rows: Sequence[Sequence[Curve]], steps: Array, tops: Array):
        self.size = len(rows)
        self.own = np.array([any(map(is_own, terms)) for terms in rows], dtype=bool)
        """rows with a curve of one's own, which are asked one by one"""
        self._own = [(row, terms) for row, terms in enumerate(rows) if self.own[row]]
        self._steps, self._tops = steps, tops
        groups: dict[type[Family], list[tuple[int, Family]]] = {}
        tables: list[tuple[int, Tabulated]] = []
        for row, terms in enumerate(rows):
            for term in () if self.own[row] else terms:
                if isinstance(term, Family):
                    groups.setdefault(type(term), []).append((row, term))
                else:
                    # nothing is left out: it would be worth nothing
                    assert isinstance(term, Tabulated), term
                    tables.append((row, term))
        self._groups = [
            (
                cls,
                np.array([row for row, _ in members]),
                tuple(np.array([term.values() for _, term in members]).T),
            )
            for cls, members in groups.items()
        ]
        self._tables = (
            (np.array([row for row, _ in tables]), _Tables([t for _, t in tables]))
            if tables
            else None
        )
        self._mixed = np.array([len(terms) > 1 for terms in rows], dtype=bool) & ~self.own

    def rise(self, count: Array, more: Array) -> Array:
        """`Curve.rise`, a row each."""
        if len(self._groups) == 1 and self._tables is None and not self._mixed.any():
            cls, rows, values = self._groups[0]
            if len(rows) == self.size:  # one family for all: no gathering, no scattering
                return np.asarray(cls.rise_of(values, count, more))
        total = np.zeros(self.size)
        for cls, rows, values in self._groups:
            np.add.at(total, rows, cls.rise_of(values, count[rows], more[rows]))
        if self._tables is not None:
            rows, tables = self._tables
            np.add.at(total, rows, tables.rise(count[rows], more[rows]))
        for row, terms in self._own:
            # past the top such a curve need not have a worth, and nobody can buy anything
            room = min(more[row], max(self._tops[row] - count[row], 0.0))
            total[row] = sum(float(term.rise(count[row], room)) for term in terms)
        return total

    def reach(self, slope: Array, low: Array, high: Array) -> Array:
        """About how many labels (`low` to `high`) are worth more than `slope` each, to within
        one."""
        # a negative price is a reward for every label, whether or not it adds anything here
        found = np.where(slope < 0, np.inf, 0.0)
        for cls, rows, values in self._groups:
            found[rows] = np.where(slope[rows] < 0, np.inf, cls.reach_of(values, slope[rows]))
        if self._tables is not None:
            rows, tables = self._tables
            found[rows] = tables.reach(slope[rows])
        for row, terms in self._own:
            step = float(self._steps[row])
            steps = _reach_own(terms, slope[row], low[row], high[row], step)
            found[row] = low[row] + steps * step
        if self._mixed.any():
            found = np.where(self._mixed, self._bisect(slope, low, high), found)
        return np.clip(found, low, high)

    def _bisect(self, slope: Array, low: Array, high: Array) -> Array:
        ones = np.ones(self.size)
        low, high = np.floor(low), np.ceil(high)
        while np.any((high - low > 1) & self._mixed):
            middle = np.floor((low + high) / 2)
            worth_it = self.rise(middle, ones) > slope
            low, high = np.where(worth_it, middle, low), np.where(worth_it, high, middle)
        return low


def _reach_own(terms: Sequence[Curve], slope: float, low: float, high: float, step: float) -> int:
    """How many steps from `low` to `high` pay at a slope. What a curve says of its own reach is
    only a hint where to look first."""
    most = round((high - low) / step)

    def worth(steps: Array) -> Array:
        counts = np.full(len(steps), low)
        return np.asarray(sum(term.rise(counts, steps * step) for term in terms))

    hint = None
    if len(terms) == 1 and terms[0].knows_reach and slope > 0:
        hint = (float(terms[0].reach(slope, math.ceil(high))) - low) / step
    return climb(worth, most, slope * step, hint)


class _Tables:
    """Many tables laid end to end, each looked up at its own place."""

    def __init__(self, tables: Sequence[Tabulated]):
        sizes = np.array([len(table.counts) for table in tables])
        self.stop = np.cumsum(sizes) - 1
        self.start = self.stop + 1 - sizes
        self.counts = np.concatenate([np.array(table.counts, dtype=float) for table in tables])
        self.worths = np.concatenate([np.array(table.worths) for table in tables])
        self.slopes = np.concatenate(
            [np.append(table.slopes, table.last_slope) for table in tables]
        )

    def rise(self, count: Array, more: Array) -> Array:
        row, past = self._place(count)
        end, beyond = self._place(count + more)
        return np.asarray(self.worths[end] - self.worths[row] + (beyond - past))

    def _place(self, count: Array) -> tuple[NDArray[np.int64], Array]:
        """As `Tabulated`: the last row up to a count, and what is gained past it."""
        at = self._last(lambda place: self.counts[place] <= count)
        return at, self.slopes[at] * (count - self.counts[at])

    def reach(self, slope: Array) -> Array:
        """The count up to which every label is worth more than `slope`."""
        at = self._last(lambda place: self.slopes[np.maximum(place - 1, self.start)] > slope)
        over = (at == self.start) & (self.slopes[at] <= slope)
        endless = (at == self.stop) & (self.slopes[self.stop] > slope)
        return np.where(endless, np.inf, np.where(over, 0.0, self.counts[at]))

    def _last(self, holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> NDArray[np.int64]:
        """The last place of each table up to which something holds (it holds at the first)."""
        low, high = self.start.copy(), self.stop.copy()
        while np.any(low < high):
            middle = (low + high + 1) // 2
            good = holds(middle)
            low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
        return np.asarray(low)
