"""Scenes as a data set, and a montage of it for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray
from allotment.data.dataset import VOID, ArrayData
from allotment.data.scenes.arrays import colours
from allotment.data.scenes.drawing import draw_scene
from allotment.data.scenes.labels import SCENE_TARGETS, find_labels
from allotment.data.scenes.pictures import take_pictures
from allotment.data.scenes.rays import cast, trace
from allotment.data.scenes.stage import Stage
from allotment.errors import InputError, Mistake

SMALLEST_PICTURE = 16
"""pixels along a side; in fewer no shape can be made out"""
_BATCH = 16 * 64 * 64
"""rays at a time: fewer are slowed down by Python, more by the cache"""
_CLASSES = colours(
    "d9d4c7 8c7b6b f4f1ea e4572e 2e86ab f2b134 5fad56 8e5aa8 e88fb4" + " 000000" * (VOID - 8)
)
_DEPTHS = colours("fff3c9 f9b45c dd5f55 8a2f73 33205c 0d0d26")


def make_scenes(
    count: int = 2000, size: int = 64, seed: int = 0, by_colour: bool = False, first: int = 0
) -> ArrayData:
    """Pictures of `size` x `size` pixels with all labels, beginning with the `first`; picture i
    depends on i and on the arguments after `count`.

    With `by_colour` every kind of solid has a colour of its own, which a small network learns
    within minutes; without, kinds differ in their shape alone.

    >>> make_scenes(count=2, size=16).ids
    ('scene-000000', 'scene-000001')
    """
    limits = {"count": (count, 1), "size": (size, SMALLEST_PICTURE), "seed": (seed, 0)}
    mistakes = [
        Mistake(name, f"{given!r} is not a whole number of {least} or more")
        for name, (given, least) in limits.items()
        if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < least
    ]
    if mistakes:
        raise InputError(mistakes)
    step = max(1, _BATCH // (size * size))
    end = first + count
    batches = [range(start, min(start + step, end)) for start in range(first, end, step)]
    rendered = [_render(seed, batch, size, by_colour) for batch in batches]
    pictures, *labels = (np.concatenate(part) for part in zip(*rendered, strict=True))
    return ArrayData(
        name="scenes",
        targets=SCENE_TARGETS,
        features=pictures,
        labels={target.name: part for target, part in zip(SCENE_TARGETS, labels, strict=True)},
        ids=name_scenes(end)[first:],
    )


def name_scenes(count: int) -> tuple[str, ...]:
    """The names of so many pictures."""
    return tuple(f"scene-{index:06d}" for index in range(count))


def _render(seed: int, indices: Sequence[int], size: int, by_colour: bool) -> tuple[AnyArray, ...]:
    """Pictures and their labels, in the order of SCENE_TARGETS."""
    stage = Stage([draw_scene(seed, index, by_colour) for index in indices])
    counts = np.full(len(indices), size * size)
    _, rows, columns = np.indices((len(indices), size, size)).reshape(3, -1)
    with np.errstate(divide="ignore", invalid="ignore"):  # of rays that meet a surface nowhere
        hits = trace(stage, cast(stage, size, counts, rows, columns), counts)
        return take_pictures(stage, hits, size, seed, indices), *find_labels(stage, hits, size)


def montage(data: ArrayData, instances: Sequence[int], zoom: int = 2) -> NDArray[np.uint8]:
    """A row for each instance: picture, segmentation, depth, normals, edges, keypoints (height,
    width, 3)."""
    tiles = (
        np.stack([_draw_tiles(data, index) for index in instances]).repeat(zoom, 3).repeat(zoom, 4)
    )
    framed = np.pad(tiles, ((0, 0), (0, 0), (0, 0), (zoom, zoom), (zoom, zoom)), constant_values=1)
    rows, columns, _, height, width = framed.shape
    whole = framed.transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, 3)
    return np.asarray(np.clip(whole, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _draw_tiles(data: ArrayData, index: int) -> AnyArray:
    """The picture and its labels side by side (6, 3, height, width)."""
    mask, depth, normals, edges, points = (
        data.labels[target.name][index] for target in SCENE_TARGETS[1:]
    )
    picture, steps = data.features[index] / 255, np.arange(len(_DEPTHS))
    depths = np.stack([np.interp(depth / 8 * steps[-1], steps, channel) for channel in _DEPTHS.T])
    dim = np.stack([0.35 * picture.mean(0)] * 3)
    glow = dim + points * (np.array([1, 0.82, 0.24])[:, None, None] - dim)
    return np.stack(
        [picture, _CLASSES.T[:, mask], depths, (normals + 1) / 2, np.stack([1 - edges] * 3), glow]
    )
