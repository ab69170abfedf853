"""Where rays enter the unit solids (radius or half width 1, z from -1 to 1), and through which of
their faces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import dot
from allotment.data.scenes.scene import RING

FACES = {
    "box": np.array(
        [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]], dtype=np.float32
    ),
    "pyramid": np.array(
        [[-2, 0, 1], [2, 0, 1], [0, -2, 1], [0, 2, 1], [0, 0, -1]], dtype=np.float32
    ),
}
"""normals of the flat faces, of such lengths that normal . point = 1 on the face"""
PROFILE = {"cylinder": (1.0, 0.0), "cone": (0.5, -0.5)}
"""radius at height z: first + second * z"""


def _enter_flat(faces: AnyArray, start: AnyArray, rays: AnyArray) -> tuple[AnyArray, AnyArray]:
    leave, side = (
        np.full(rays.shape[1], np.inf, dtype=np.float32),
        np.zeros(rays.shape[1], dtype=np.int64),
    )
    enter = -leave
    for index, face in enumerate(faces):
        speed = dot(face, rays)
        when = (1 - dot(face, start)) / speed
        into = speed < 0
        side[into & (when > enter)] = index
        np.maximum(enter, when, out=enter, where=into)
        np.minimum(leave, when, out=leave, where=~into)
    return np.where((enter > 0) & (enter < leave), enter, np.float32(np.inf)), side


def _enter_turned(
    radius: float, slope: float, start: AnyArray, rays: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """The nearest of both crossings of the side and those of the two ends."""
    (x, y, z), (dx, dy, dz) = start, rays
    wide = radius + slope * z
    a, b = dx * dx + dy * dy - slope * slope * dz * dz, x * dx + y * dy - wide * slope * dz
    root = np.sqrt(b * b - a * (x * x + y * y - wide * wide))
    when, side = np.full(len(a), np.inf, dtype=np.float32), np.zeros(len(a), dtype=np.int64)
    for crossing in ((-b - root) / a, (root - b) / a):
        good = (np.abs(z + crossing * dz) <= 1) & (crossing > 0) & (crossing < when)
        when = np.where(good, crossing, when)
    for index, end in ((1, -1), (2, 1)):
        crossing = (end - z) / dz
        across, along, limit = x + crossing * dx, y + crossing * dy, radius + slope * end
        good = (
            (across * across + along * along <= limit * limit) & (crossing > 0) & (crossing < when)
        )
        when, side = np.where(good, crossing, when), np.where(good, index, side)
    return when, side


def _enter_sphere(start: AnyArray, rays: AnyArray, radius: float = 1.0) -> tuple[AnyArray, int]:
    a, b = dot(rays, rays), dot(rays, start)
    when = (-b - np.sqrt(b * b - a * (dot(start, start) - np.float32(radius * radius)))) / a
    return np.where(when > 0, when, np.float32(np.inf)), 0


def _enter_torus(start: AnyArray, rays: AnyArray) -> tuple[AnyArray, int]:
    """By steps from where the ray enters the ball and the slab around the torus."""
    ball, _ = _enter_sphere(start, rays, 1 + RING)
    steps = np.maximum(ball, (-np.sign(rays[2]) * np.float32(RING) - start[2]) / rays[2])
    x, y, z = start + steps * rays
    left = np.flatnonzero(
        (x * x + y * y + z * z < (1 + RING) ** 2 + 0.01) & (np.abs(z) < RING + 0.01)
    )
    when = np.full(len(ball), np.inf, dtype=np.float32)
    for count in (12, 30):  # few rays need the second turn
        way = start.take(left, axis=1), rays.take(left, axis=1)
        steps[left], gap, slope = _approach_torus(*way, steps[left], count)
        there = (gap < 0.0005) & (slope > 0)
        when[left[there]] = steps[left[there]]
        left = left[~there & (gap < 0.7)]
    return when, 0


def _approach_torus(
    start: AnyArray, rays: AnyArray, when: AnyArray, count: int
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Steps as long as the distance to the surface cannot pass through it; close to it, Newton's
    are faster."""
    pace = 1 / np.sqrt(dot(rays, rays))
    for _ in range(count):
        x, y, z = start + when * rays
        around = np.sqrt(x * x + y * y)
        out = around - 1
        thick = np.sqrt(out * out + z * z)
        gap = thick - np.float32(RING)
        slope = -((x * rays[0] + y * rays[1]) * out / around + z * rays[2]) * pace / thick
        when = when + gap * pace / np.where(
            (gap < 0.03) & (slope > 0), np.maximum(slope, np.float32(0.12)), 1
        )
    return when, gap, slope


ENTER: tuple[Callable[[AnyArray, AnyArray], tuple[AnyArray, AnyArray | int]], ...] = (
    partial(_enter_flat, FACES["box"]),
    _enter_sphere,
    partial(_enter_turned, *PROFILE["cylinder"]),
    partial(_enter_turned, *PROFILE["cone"]),
    partial(_enter_flat, FACES["pyramid"]),
    _enter_torus,
)
"""in the order of SOLIDS"""
