"""Draws that leave as little to chance as they can."""

from __future__ import annotations

import functools
from statistics import NormalDist

import numpy as np

from allotment.arrays import Array, Ints


def pick(weights: Array, rng: np.random.Generator) -> Ints:
    """One place of each row, with the row's weights."""
    edges = np.cumsum(weights, axis=-1)
    points = rng.random(len(weights))[:, None] * edges[:, -1:]
    return np.asarray(np.minimum(np.sum(edges <= points, axis=1), weights.shape[1] - 1))


def spread_evenly(weights: Array, draws: int, rng: np.random.Generator) -> Ints:
    """Places with these weights; spread evenly, they leave less to chance than single picks."""
    points = (np.arange(draws) + rng.random()) / draws
    return np.minimum(np.searchsorted(np.cumsum(weights), points, side="right"), len(weights) - 1)


def draw_normals(draws: int, spread: float, rng: np.random.Generator) -> Array:
    """A normal distribution's quantiles in random order: their mean is 0 whatever the order."""
    return rng.permutation(_quantiles(draws)) * spread


@functools.cache
def _quantiles(count: int) -> Array:
    return np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)])
