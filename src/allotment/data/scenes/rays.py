"""Rays from the eye or from a light, and what they meet first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import apply, dot, each, put
from allotment.data.scenes.scene import SOLIDS
from allotment.data.scenes.solids import ENTER, FACES, PROFILE
from allotment.data.scenes.stage import Stage


@dataclass(frozen=True)
class Hits:
    """Where rays from the eye first meet something."""

    rays: AnyArray
    counts: AnyArray
    """how many of the rays belong to each scene"""
    distance: AnyArray
    surface: AnyArray
    """one of SURFACES"""
    face: AnyArray
    """differs on the two sides of every crease and silhouette"""
    paint: AnyArray
    """as the stage numbers them"""
    point: AnyArray
    normal: AnyArray


def cast(stage: Stage, size: int, counts: AnyArray, rows: AnyArray, columns: AnyArray) -> AnyArray:
    """Unit vectors through places of the picture; the middles of pixels are at whole numbers."""
    scale = each(stage.spread / np.float32(size), counts)
    x, y = (
        (2 * columns + 1 - size).astype(np.float32) * scale,
        (size - 1 - 2 * rows).astype(np.float32) * scale,
    )
    rays = apply(each(stage.view, counts), np.stack([x, y, np.full_like(x, -1)]))
    return np.asarray(rays / np.sqrt(dot(rays, rays)))


def trace(stage: Stage, rays: AnyArray, counts: AnyArray) -> Hits:
    """What the rays meet: a side of the room, unless a solid is before it."""
    ahead, eye = (rays > 0).astype(np.uint8), each(stage.eye, counts)
    x, y, z = (each(stage.room, counts) * ahead - eye) / rays
    distance = np.minimum(x, y)
    level = z < distance
    face = np.where(level, 4 + ahead[2], np.where(y < x, 2 + ahead[1], ahead[0])).astype(np.int32)
    surface = level * (1 + ahead[2])
    distance, paint = np.minimum(distance, z), each(3 * np.arange(len(counts)), counts) + surface
    normal = -FACES["box"].T.take(face, axis=1)
    ray, solid, when, side = meet(stage, stage.eye, rays, counts, np.ones_like(distance))
    np.minimum.at(distance, ray, when)
    first = np.flatnonzero(when == distance[ray])
    ray, solid, side = ray[first], solid[first], side[first]
    face[ray], surface[ray], paint[ray] = (
        8 * solid + 8 + side,
        3 + stage.kind[solid],
        stage.first_solid + solid,
    )
    point = eye + distance * rays
    put(normal, ray, _find_normals(stage, solid, side, point.take(ray, axis=1)))
    return Hits(rays, counts, distance, surface, face, paint, point, normal)


def meet(
    stage: Stage, origin: AnyArray, rays: AnyArray, counts: AnyArray, length: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Rays, solids near them, at which multiple of the ray it enters the solid (inf: never) and
    through which face."""
    gap = stage.centre - origin.take(stage.owner, axis=1)
    tangent = np.sqrt(np.maximum(dot(gap, gap) - stage.radius * stage.radius, 0))
    near = []
    for solid, part in enumerate(stage.parts(counts)):
        close = dot(rays[:, part], gap[:, solid]) > tangent[solid] * length[part]
        near.append(np.flatnonzero(close) + part.start)
    ray, pairs = np.concatenate(near), [len(part) for part in near]
    start = each(-apply(stage.inward, gap), pairs)
    local = apply(each(stage.inward, pairs), rays.take(ray, axis=1))
    when, side = np.empty(len(ray), dtype=np.float32), np.zeros(len(ray), dtype=np.int64)
    kind = each(stage.kind, pairs)
    for index, enter in enumerate(ENTER):
        mine = np.flatnonzero(kind == index)
        when[mine], side[mine] = enter(start.take(mine, axis=1), local.take(mine, axis=1))
    return ray, each(np.arange(len(near)), pairs), when, side


def _find_normals(stage: Stage, solid: AnyArray, side: AnyArray, point: AnyArray) -> AnyArray:
    """Unit vectors that point out of the solids."""
    inward, kind = stage.inward.take(solid, axis=2), stage.kind[solid]
    local = apply(inward, point - stage.centre.take(solid, axis=1))
    for name, faces in FACES.items():
        mine = np.flatnonzero(kind == SOLIDS.index(name))
        put(local, mine, faces.T.take(side[mine], axis=1))
    for name, (radius, slope) in PROFILE.items():
        mine = np.flatnonzero(kind == SOLIDS.index(name))
        local[2][mine] = -slope * (radius + slope * local[2][mine])
        ends = mine[side[mine] > 0]
        put(local, ends, [0, 0, 2 * side[ends] - 3])
    mine = np.flatnonzero(kind == SOLIDS.index("torus"))
    x, y, _ = local.take(mine, axis=1)
    inner = 1 - 1 / np.sqrt(x * x + y * y)
    put(local[:2], mine, (x * inner, y * inner))
    normal = apply(inward.swapaxes(0, 1), local)
    return np.asarray(normal / np.sqrt(dot(normal, normal)))
