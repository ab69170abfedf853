"""Ratios of noisy sums that share a denominator: what can be known of them, and a prior learnt from
all of them.

One target j: its denominator's sum D is d and noise, the numerators' sums N_i are I_i d and noise,
and all this noise varies together, as it does between units. Given d, the ratios I_i follow from N
like weights in a linear model. What d may be is gone through on a grid, above 0 only (a mini-batch
of a task's own helps it). Where D is mostly noise, d may be near 0, nothing follows from N, and the
ratios fall back to the prior.

The prior of all ratios is normal; its mean and spread are gone through on a grid, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array

# Before anything is seen: a label of another task is seldom worth more than one of a task's own.
MEANS = np.linspace(-1.5, 1.5, 13)
SPREADS = np.geomspace(0.05, 1.6, 7)
USUAL_MEAN, USUAL_SPREAD = 0.5, 0.5
DENOMINATOR_SIZES = 60
"""places in the grid of a denominator's size"""
SMALL_DENOMINATOR = 0.3
"""a denominator's size may be of any order of magnitude above so many of its standard errors"""
BORROWED = 5
"""as many units as the noise of other numerators of a target counts for, in what is known of one
numerator's noise"""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of numerators [i, j] over units, with denominators on the diagonal, and how much they
    vary."""

    total: Array
    rests: Array
    """[unit, i, j]: by how much the sums of a unit miss its share of the total"""
    units: Array
    """[j]: how many units have any part in a target's sums"""

    @property
    def plain(self) -> Array:
        """The ratios as they are; 0 where there is nothing to divide by, and 1 on the diagonal."""
        below = np.broadcast_to(np.diagonal(self.total), self.total.shape)
        found: Array = np.divide(self.total, below, out=np.zeros_like(self.total), where=below != 0)
        np.fill_diagonal(found, 1.0)
        return found

    @property
    def error(self) -> Array:
        """Their standard errors by the delta method; infinite where nothing tells them, and 0 on
        the diagonal."""
        below = np.abs(np.diagonal(self.total))
        rests = self.rests - self.plain * np.diagonal(self.rests, axis1=1, axis2=2)[:, None, :]
        spread = np.sqrt(self._factor * (rests**2).sum(axis=0))
        known = np.broadcast_to((below > 0) & (self.units > 1), spread.shape)
        found: Array = np.divide(spread, below, out=np.full_like(spread, np.inf), where=known)
        np.fill_diagonal(found, 0.0)
        return found

    @property
    def firmness(self) -> Array:
        """[j]: how many standard errors a target's denominator lies above 0."""
        below = np.diagonal(self.total)
        error = np.sqrt(self._factor * (np.diagonal(self.rests, axis1=1, axis2=2) ** 2).sum(axis=0))
        firm = np.where(below > 0, np.inf, np.where(below < 0, -np.inf, 0.0))
        return np.asarray(
            np.where(self.units > 1, np.divide(below, error, out=firm, where=error > 0), 0.0)
        )

    def apart(self, share: float) -> NDArray[np.bool_]:
        """Numerators that differ from 0, with at most this share of false ones among them
        (Benjamini, Hochberg)."""
        size = len(self.total)
        off = ~np.eye(size, dtype=bool)
        error = np.sqrt([np.diagonal(self.noise(target)) for target in range(size)]).T
        chance = np.vectorize(math.erfc, otypes=[float])(np.abs(self.total / error) / math.sqrt(2))
        chance = np.where(off & (self.units > 1), chance, 1.0)
        rising = np.sort(chance[off])
        passed = rising[rising <= share * np.arange(1, len(rising) + 1) / len(rising)]
        return np.asarray(chance <= passed.max(initial=-1.0))

    @property
    def _factor(self) -> Array:
        return self.units / np.maximum(self.units - 1, 1)

    def noise(self, target: int) -> Array:
        """How a target's sums [i] vary together, cautiously.

        A few units tell this badly. So it is mixed with what a mean variance and a mean covariance
        of them all would make it, and enlarged as Student's t is wider than a normal distribution.
        """
        rests, more = self.rests[:, :, target], max(float(self.units[target]) - 1, 1.0)
        own = self._factor[target] * rests.T @ rests
        size = len(own)
        variance = np.trace(own) / size
        alike = np.full((size, size), (own.sum() - np.trace(own)) / (size * (size - 1)))
        np.fill_diagonal(alike, variance)
        borrowed = min(more, BORROWED)
        mixed = (more * own + borrowed * alike) / (more + borrowed)
        freedom = more + borrowed
        # a floor far below any noise that matters, so that sums without noise can be weighed too
        floor = 1e-18 * np.square(self.total[:, target]).sum() + 1e-200
        return np.asarray(mixed * freedom / max(freedom - 2, 0.5) + floor * np.eye(size))


def sum_up(parts: Array, counts: Array) -> Sums:
    """Sums over units [unit, i, j] that are independent of each other, each of so many probes
    [unit, j]."""
    total = parts.sum(axis=0)
    share = counts / np.maximum(counts.sum(axis=0), 1)
    return Sums(total, parts - share[:, None, :] * total, (counts > 0).sum(axis=0).astype(float))


@dataclass(frozen=True, eq=False)
class TargetRatios:
    """What is known of the ratios of one target, in directions in which their noise is
    independent."""

    others: NDArray[np.intp]
    """the sources, without the target itself"""
    sizes: Array
    """[size]: what the denominator may be"""
    turn: Array
    """[i, direction]"""
    seen: Array
    """[size, direction]: the numerators, less what the denominator's noise says of theirs"""
    variance: Array
    """[direction]: of their noise"""
    weight: Array
    """[prior, size]: logarithm of how well this explains the sums"""

    def ratios(self, prior: Array, spread: Array, size: Array) -> tuple[Array, Array]:
        """Mean and standard deviation [..., direction] given the prior and the denominator's place
        in the grid."""
        own = self.sizes[size][..., None]
        precision = own**2 / self.variance + 1 / spread[..., None] ** 2
        towards = own * self.seen[size] / self.variance + (prior / spread**2)[
            ..., None
        ] * self.turn.sum(axis=0)
        return towards / precision, 1 / np.sqrt(precision)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Where ratios may lie: a mixture over priors and sizes of denominators."""

    columns: tuple[TargetRatios, ...]
    prior: Array
    """[prior]: mean of each prior"""
    spread: Array
    belief: Array
    """[prior]: its probability"""

    @property
    def mean(self) -> Array:
        """[i, j], with 1 on the diagonal."""
        found = np.ones((len(self.columns), len(self.columns)))
        for j, column in enumerate(self.columns):
            chance = self.belief[:, None] * np.exp(_normal(column.weight))
            prior, spread = (
                np.broadcast_to(part[:, None], chance.shape) for part in (self.prior, self.spread)
            )
            ratios, _ = column.ratios(
                prior, spread, np.broadcast_to(np.arange(DENOMINATOR_SIZES), chance.shape)
            )
            found[column.others, j] = column.turn @ np.einsum("hs,hsi->i", chance, ratios)
        return found

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """[draw, i, j]: all that is shared, such as a denominator, is drawn once for all cells that
        share it."""
        found = np.ones((count, len(self.columns), len(self.columns)))
        chosen = rng.choice(len(self.belief), count, p=self.belief)
        for j, column in enumerate(self.columns):
            below = np.cumsum(np.exp(_normal(column.weight)), axis=1)
            size = (rng.random((count, 1)) * below[chosen, -1:] > below[chosen]).sum(axis=1)
            mean, spread = column.ratios(self.prior[chosen], self.spread[chosen], size)
            found[:, column.others, j] = (
                mean + spread * rng.standard_normal(mean.shape)
            ) @ column.turn.T
        return found


def weigh(sums: Sums) -> Posterior:
    """All that the sums say of the ratios."""
    prior, spread = (part.ravel() for part in np.meshgrid(MEANS, SPREADS))
    columns = tuple(_weigh_column(sums, target, prior, spread) for target in range(len(sums.total)))
    # spreads lie evenly in their logarithm: the last term makes them count evenly themselves
    belief = -((prior / USUAL_MEAN) ** 2 + (spread / USUAL_SPREAD) ** 2) / 2 + np.log(spread)
    belief = belief + sum(np.logaddexp.reduce(column.weight, axis=1) for column in columns)
    return Posterior(columns, prior, spread, np.exp(_normal(belief)))


def _weigh_column(sums: Sums, target: int, prior: Array, spread: Array) -> TargetRatios:
    others = np.flatnonzero(np.arange(len(sums.total)) != target)
    if sums.units[target] < 2:  # anything is possible
        sizes, seen = (
            np.linspace(0, 1, DENOMINATOR_SIZES),
            np.zeros((DENOMINATOR_SIZES, len(others))),
        )
        flat = np.zeros((len(prior), DENOMINATOR_SIZES))
        return TargetRatios(
            others, sizes, np.eye(len(others)), seen, np.full(len(others), 1e30), flat
        )
    noise, bottom = sums.noise(target), sums.total[target, target]
    error = np.sqrt(noise[target, target])
    low, high = max(bottom - 5 * error, 0.0), max(bottom + 5 * error, 2 * error)
    sizes = low + (high - low) * (np.arange(DENOMINATOR_SIZES) + 0.5) / DENOMINATOR_SIZES
    # what the denominator's noise says of the numerators', and what remains
    slope = noise[others, target] / noise[target, target]
    rest = noise[np.ix_(others, others)] - np.outer(slope, noise[others, target])
    variance, turn = np.linalg.eigh(rest)
    variance = np.maximum(variance, 1e-12 * max(variance.max(), 1e-200))
    seen = (sums.total[others, target] - slope * (bottom - sizes[:, None])) @ turn
    expected = prior[:, None, None] * sizes[:, None] * turn.sum(axis=0)
    wide = variance + (spread[:, None, None] * sizes[:, None]) ** 2
    weight = (-((seen - expected) ** 2) / wide - np.log(wide)).sum(axis=2) / 2
    weight += -(((bottom - sizes) / error) ** 2) / 2 - np.log(sizes / error + SMALL_DENOMINATOR)
    return TargetRatios(others, sizes, turn, seen, variance, weight)


def _normal(logarithms: Array) -> Array:
    """Logarithms of probabilities that sum to 1 along the last axis."""
    return np.asarray(logarithms - np.logaddexp.reduce(logarithms, axis=-1, keepdims=True))
