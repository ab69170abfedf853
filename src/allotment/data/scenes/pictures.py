"""What the camera takes of the scenes: smooth edges, exposure, grain, bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import each, find_borders, put
from allotment.data.scenes.rays import Hits, cast, trace
from allotment.data.scenes.shading import shade
from allotment.data.scenes.stage import Stage


def take_pictures(
    stage: Stage, hits: Hits, size: int, seed: int, indices: Sequence[int]
) -> AnyArray:
    """Pictures (n, 3, size, size) in bytes; the grain depends on the seed and on each picture's
    index."""
    pictures = _develop(stage, hits, size)
    for picture, scene, index in zip(pictures, stage.scenes, indices, strict=True):
        grain = np.random.default_rng([seed, index, size]).standard_normal(
            picture.shape, dtype=np.float32
        )
        picture += np.float32(scene.grain) * grain
    return np.asarray((np.clip(pictures, 0, 1) * 255 + np.float32(0.5)).astype(np.uint8))


def _develop(stage: Stage, hits: Hits, size: int) -> AnyArray:
    """Colours from 0 to 1."""
    colour, count = shade(stage, hits, size), len(hits.counts)
    shape = (3, count, size, size)
    gain = each(stage.exposure / np.median(colour[1].reshape(count, -1), axis=1), hits.counts)
    _smooth(stage, colour, np.sqrt(gain * colour).reshape(shape), size)
    colour *= gain
    bright = np.sqrt(colour / np.sqrt(1 + np.float32(0.6) * colour * colour))
    return np.ascontiguousarray(bright.reshape(shape).swapaxes(0, 1))


def _smooth(stage: Stage, colour: AnyArray, tone: AnyArray, size: int) -> None:
    """Mix in the colours of two more rays for each pixel whose tone differs from a neighbour's."""
    shape = tone.shape[1:]
    rough = np.flatnonzero(
        find_borders(lambda a, b: (np.abs(tone[:, *a] - tone[:, *b]) > 0.16).any(0), shape)
    )
    of, rows, columns = np.unravel_index(rough, shape)
    counts, aside = 2 * np.bincount(of, minlength=shape[0]), np.tile([-0.3, 0.3], len(rough))
    rays = cast(stage, size, counts, rows.repeat(2) + aside, columns.repeat(2) - aside / 2)
    more = shade(stage, trace(stage, rays, counts), size)
    put(colour, rough, (colour.take(rough, axis=1) + more[:, ::2] + more[:, 1::2]) / 3)
