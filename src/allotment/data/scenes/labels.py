"""Exact labels of the scenes."""

from __future__ import annotations

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.dataset import VOID, Target
from allotment.data.scenes.arrays import apply, each, find_borders
from allotment.data.scenes.rays import Hits, cast, trace
from allotment.data.scenes.scene import RING, SOLIDS, SURFACES, project
from allotment.data.scenes.stage import Stage

SCENE_TARGETS = (
    Target("classes", "multilabel", SOLIDS),
    Target("segmentation", "segmentation", SURFACES),
    Target("depth", "depth"),
    Target("normals", "normals"),
    Target("edges", "edges"),
    Target("keypoints", "keypoints"),
)
VISIBLE = 1 / 512
"""share of the picture (8 pixels of 64 x 64) below which a kind is not there: 0 in `classes`, VOID
in the mask"""


def find_labels(stage: Stage, hits: Hits, size: int) -> tuple[AnyArray, ...]:
    """Labels of all pictures, in the order of SCENE_TARGETS."""
    shape = (len(stage.scenes), size, size)
    mask = hits.surface.reshape(shape)
    shown = (
        np.stack([np.bincount(one.ravel(), minlength=len(SURFACES)) for one in mask])
        >= VISIBLE * size * size
    )
    shown[:, :3] = True
    return (
        shown[:, 3:].astype(np.float32),
        np.where(shown[np.arange(len(mask))[:, None, None], mask], mask, np.uint8(VOID)),
        hits.distance.reshape(shape),
        apply(each(stage.view.swapaxes(0, 1), hits.counts), hits.normal)
        .reshape(3, *shape)
        .swapaxes(0, 1),
        _find_edges(stage, hits, shape),
        _mark_keypoints(stage, size),
    )


def _find_edges(stage: Stage, hits: Hits, shape: tuple[int, ...]) -> AnyArray:
    """Where one face meets or hides another, and where a torus hides itself; slightly blurred."""
    torus = SURFACES.index("torus")
    jump = np.full(len(hits.face), np.inf, dtype=np.float32)
    mine = np.flatnonzero(hits.surface == torus)
    jump[mine] = np.float32(RING) * stage.stretch[0][hits.paint[mine] - stage.first_solid]
    face, depth, limit = (part.reshape(shape) for part in (hits.face, hits.distance, jump))
    marks = find_borders(
        lambda a, b: (face[a] != face[b]) | (np.abs(depth[a] - depth[b]) > limit[a]), shape
    )
    wide = np.pad(marks.astype(np.float32), ((0, 0), (1, 1), (1, 1)), mode="edge")
    wide = wide[:, :-2] + 6 * wide[:, 1:-1] + wide[:, 2:]
    return np.maximum((wide[..., :-2] + 6 * wide[..., 1:-1] + wide[..., 2:]) / 64, marks)


def _mark_keypoints(stage: Stage, size: int) -> AnyArray:
    """Heat maps with a Gaussian bump at each keypoint that nothing hides."""
    found = [project(scene, scene.keypoints(), size) for scene in stage.scenes]
    counts = np.array([part.shape[1] for part in found])
    rows, columns, away = np.hstack(found)
    seen = trace(stage, cast(stage, size, counts, rows, columns), counts).distance > away - 0.02
    width, pixels = max(1.0, size / 48), np.arange(size)
    squares = (((pixels - part[:, None]) / width) ** 2 for part in (rows, columns))
    down, along = (np.exp(-0.5 * square).astype(np.float32) for square in squares)
    heat = np.zeros((len(found), size, size), dtype=np.float32)
    for scene, kept in enumerate(np.split(np.arange(len(seen)), np.cumsum(counts)[:-1])):
        kept = kept[seen[kept]]
        heat[scene] = (down[kept, :, None] * along[kept, None]).max(0, initial=0)
    return heat
