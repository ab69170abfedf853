"""Pictures of solids in a room, rendered here, so that every label is exact and none has to be downloaded.

Room units are about a metre: x to the right, y into the room, z up. Camera coordinates: x right, y up, z backwards.
Per pixel there are only sums, products, quotients and square roots, which are rounded alike everywhere (no BLAS, no
sines): the bytes are the same on every machine but for the last bit of an angle drawn for a scene.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import atan2, cos, pi, sin, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import VOID, ArrayData, Target
from allotment.errors import InputError, Mistake

Array = NDArray[Any]

SOLIDS = ("box", "sphere", "cylinder", "cone", "pyramid", "torus")
FREQUENCY = (0.24, 0.22, 0.19, 0.16, 0.13, 0.06)
"""of the kinds among the solids: unequal, as in real data"""
SURFACES = ("wall", "floor", "ceiling", *SOLIDS)
TARGETS = (
    Target("classes", "multilabel", SOLIDS),
    Target("segmentation", "segmentation", SURFACES),
    Target("depth", "depth"),
    Target("normals", "normals"),
    Target("edges", "edges"),
    Target("keypoints", "keypoints"),
)
VISIBLE = 1 / 512
"""share of the picture (8 pixels of 64 x 64) below which a kind is not there: 0 in `classes`, VOID in the mask"""
RING = 0.36
"""thickness of a torus, as a share of its radius"""
SMALLEST = 16

# Every solid is a unit solid (radius or half width 1, z from -1 to 1), stretched and turned.
_UNIT = np.array([[x, y, z] for z in (-1, 1) for x in (-1, 1) for y in (-1, 1)], dtype=float)
_TOP = np.array([[0.0, 0, 1]])
_POINTS = {"box": _UNIT, "pyramid": np.vstack([_UNIT[:4], _TOP]), "cone": _TOP, "cylinder": np.vstack([_TOP, -_TOP])}
"""keypoints: corners, apexes, middles of round ends; a sphere's is where it faces the camera, a torus has none"""
_FACES = {
    "box": np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=np.float32),
    "pyramid": np.array([[2, 0, 1], [-2, 0, 1], [0, 2, 1], [0, -2, 1], [0, 0, -1]], dtype=np.float32),
}
"""normals of flat faces, each at a distance for which normal . point = 1"""
_PROFILE = {"cylinder": (1.0, 0.0), "cone": (0.5, -0.5)}
"""radius at height z: first + second * z"""


@dataclass(frozen=True)
class Paint:
    """Two colours and the pattern that mixes them."""

    colours: Array
    pattern: str
    cell: float
    frame: Array
    origin: Array
    gloss: float = 0.0


@dataclass(frozen=True)
class Decal:
    """A rug or a poster: it changes colours only."""

    middle: Array
    half: Array
    round: bool
    paint: Paint


@dataclass(frozen=True)
class Solid:
    kind: str
    stretch: Array
    turn: Array
    """columns are its axes in the room"""
    centre: Array
    paint: Paint

    def reach(self, directions: Array) -> Array:
        """How far it extends from its centre in each direction (columns)."""
        local = self.stretch[:, None] * (self.turn.T @ directions)
        across, up, size = np.hypot(local[0], local[1]), local[2], np.sqrt((local**2).sum(0))
        square = np.abs(local[:2]).sum(0)
        return np.asarray(
            {
                "box": square + np.abs(up),
                "sphere": size,
                "cylinder": across + np.abs(up),
                "cone": np.maximum(up, across - up),
                "pyramid": np.maximum(up, square - up),
                "torus": across + RING * size,
            }[self.kind]
        )

    @property
    def radius(self) -> float:
        """Of a sphere around it."""
        x, y, z = map(float, self.stretch)
        if self.kind in _FACES:
            return sqrt(x * x + y * y + z * z)
        return {"sphere": x, "torus": x * (1 + RING)}.get(self.kind, sqrt(x * x + z * z))

    def keypoints(self, eye: Array) -> Array:
        if self.kind == "sphere":
            toward = eye - self.centre
            return np.asarray([self.centre + toward * (self.stretch[0] / np.sqrt((toward**2).sum()))])
        points = _POINTS.get(self.kind, np.zeros((0, 3)))
        return np.asarray(self.centre + (points * self.stretch) @ self.turn.T)


@dataclass(frozen=True)
class Scene:
    room: Array
    eye: Array
    view: Array
    """columns are the camera's axes in the room"""
    spread: float
    """tangent of half the field of view"""
    lights: tuple[tuple[Array, Array], ...]
    """places and colours"""
    paints: tuple[Paint, ...]
    """of walls, floor and ceiling"""
    decals: tuple[Decal, ...]
    solids: tuple[Solid, ...]
    ambient: float
    exposure: float
    grain: float

    def keypoints(self) -> Array:
        """Corners of the room and points of the solids, whether visible or not."""
        return np.vstack([(_UNIT + 1) / 2 * self.room, *(solid.keypoints(self.eye) for solid in self.solids)])


# Drawing a scene


def draw_scene(seed: int, index: int) -> Scene:
    """The scene behind a picture; it depends on (seed, index) only."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, index])))
    room = rng.uniform((4.0, 4.8, 2.6), (6.2, 7.0, 3.4))
    eye = room * rng.uniform((0.2, 0.04, 0.36), (0.8, 0.1, 0.68))
    aim = room * rng.uniform((0.25, 0.6, 0.05), (0.75, 0.8, 0.3))
    view = _look(eye, aim, roll=rng.uniform(-0.08, 0.08))
    spread = rng.uniform(0.46, 0.68)
    lights = [_light(rng, room, rng.uniform(0.8, 1.2))]
    if rng.random() < 0.5:
        lights.append(_light(rng, room, rng.uniform(0.25, 0.6)))
    flat = np.eye(3)
    paints = (
        _paint(rng, "plain plain plain stripes clouds tiles dots", (0.04, 0.4), (0.6, 0.97), (0.3, 0.9), flat),
        _paint(rng, "planks planks checker tiles clouds plain", (0.05, 0.55), (0.35, 0.9), (0.35, 0.8), flat),
        _paint(rng, "plain", (0.0, 0.08), (0.85, 1.0), (1, 1), flat),
    )
    return Scene(
        room=room,
        eye=eye,
        view=view,
        spread=spread,
        lights=tuple(lights),
        paints=paints,
        decals=tuple(_decal(rng, room) for _ in range(rng.integers(0, 4))),
        solids=_solids(rng, room, eye, view, spread, lights),
        ambient=rng.uniform(0.22, 0.42),
        exposure=rng.uniform(0.22, 0.42),
        grain=rng.uniform(0.003, 0.016),
    )


def _look(eye: Array, aim: Array, roll: float) -> Array:
    back = (eye - aim) / np.sqrt(((eye - aim) ** 2).sum())
    right = np.array([-back[1], back[0], 0]) / np.hypot(back[0], back[1])
    up = np.cross(back, right)
    return np.stack([cos(roll) * right + sin(roll) * up, cos(roll) * up - sin(roll) * right, back], axis=1)


def _light(rng: np.random.Generator, room: Array, power: float) -> tuple[Array, Array]:
    warmth = rng.uniform(-0.1, 0.16)
    return room * rng.uniform((0.12, 0.12, 0.8), (0.88, 0.8, 0.96)), power * np.array([1 + warmth, 1, 1 - warmth])


def _paint(
    rng: np.random.Generator,
    patterns: str,
    saturation: tuple[float, float],
    value: tuple[float, float],
    cell: tuple[float, float],
    frame: Array,
    gloss: float = 0.0,
) -> Paint:
    hue, vivid, bright = rng.random(), rng.uniform(*saturation), rng.uniform(*value)
    drift, fade, shift = rng.uniform(-0.1, 0.1), rng.uniform(0.6, 1.0), rng.uniform(0.62, 0.85)
    other = bright * shift if bright > 0.6 else 1 - (1 - bright) * shift
    if rng.random() < 0.25:
        drift += 0.5
    colours = [colorsys.hsv_to_rgb(hue, vivid, bright), colorsys.hsv_to_rgb(hue + drift, vivid * fade, other)]
    pattern = str(rng.choice(patterns.split()))
    return Paint(np.array(colours) ** 2, pattern, rng.uniform(*cell), frame, rng.uniform(-9, 9, 3), gloss)


def _decal(rng: np.random.Generator, room: Array) -> Decal:
    axis = int(rng.choice([0, 1, 1, 2]))
    middle, half = room * rng.uniform(0.25, 0.75, 3), rng.uniform(0.25, 0.7, 3) * (2 if axis == 2 else 1)
    middle[axis] = {0: room[0] * rng.integers(0, 2), 1: room[1], 2: 0}[axis]
    half[axis] = 0.05
    paint = _paint(rng, "plain stripes clouds checker dots", (0.1, 0.8), (0.3, 0.95), (0.15, 0.5), np.eye(3))
    return Decal(middle, half, bool(rng.random() < 0.4), paint)


def _solids(rng: np.random.Generator, room: Array, eye: Array, view: Array, spread: float) -> tuple[Solid, ...]:
    """Solids in front of the camera that do not touch: on the floor, on one another or in the air."""
    placed: list[Solid] = []
    for kind in rng.choice(SOLIDS, size=rng.integers(2, 8), p=FREQUENCY):
        solid = _solid(rng, str(kind))
        flat = [other for other in placed if other.flat]
        for _ in range(8):
            spot = _spot(rng, eye, view, spread)
            if flat and rng.random() < 0.35:
                spot = flat[int(rng.integers(len(flat)))].top
            elif rng.random() < 0.15:
                spot[2] = rng.uniform(0.2, 1.2)
            moved = replace(solid, centre=spot - solid.low * (0, 0, 1))
            inside = (moved.low >= 0).all() and (moved.high <= room * (1, 1, 0.75)).all()
            near = ((moved.centre - eye) ** 2).sum() < (moved.radius + 0.7) ** 2
            if inside and not near and all(moved.apart(other) for other in placed):
                placed.append(moved)
                break
    return tuple(placed)


def _solid(rng: np.random.Generator, kind: str) -> Solid:
    size = rng.uniform(0.24, 0.62)
    x, y, z = size * rng.uniform(0.6, 1.2, 3)
    stretch = {"box": (x, y, z), "pyramid": (x, y, 1.3 * z), "cone": (x, x, 1.3 * z), "cylinder": (0.8 * x, 0.8 * x, z)}
    ready = np.array(stretch.get(kind, (size, size, size)))
    pose, yaw, spin, tilt = rng.random(), rng.uniform(0, 2 * pi), 0.0, 0.0
    if pose > 0.75:
        spin, tilt = rng.uniform(0, 2 * pi), rng.uniform(0, pi)
    elif pose > 0.5:  # lying: on its side, or on the slope of its side
        tilt = pi / 2 + (atan2(ready[1], 2 * ready[2]) if kind in ("cone", "pyramid") else 0)
    turn = _about_z(yaw) @ _about_z(tilt)[np.ix_([2, 0, 1], [2, 0, 1])] @ _about_z(spin)
    patterns = "plain plain plain stripes checker clouds dots tiles planks"
    paint = _paint(rng, patterns, (0.15, 0.9), (0.35, 0.97), (0.12, 0.4), turn.T, rng.uniform(0, 0.5))
    return Solid(kind, ready, turn, np.zeros(3), paint)


def _about_z(angle: float) -> Array:
    return np.array([[cos(angle), -sin(angle), 0], [sin(angle), cos(angle), 0], [0, 0, 1]])


def _spot(rng: np.random.Generator, eye: Array, view: Array, spread: float) -> Array:
    """A place on the floor before the camera."""
    ahead, aside = rng.uniform(1.4, 5.5), rng.uniform(-0.9, 0.9) * spread
    x, y = -view[0, 2], -view[1, 2]
    across = sqrt(x * x + y * y)
    return np.array([eye[0] + ahead * (x + aside * y) / across, eye[1] + ahead * (y - aside * x) / across, 0])


# Following rays


@dataclass(frozen=True)
class Hits:
    """Where rays first meet something."""

    distance: Array
    surface: Array
    """0, 1, 2 for wall, floor and ceiling, from 3 on for the solids"""
    face: Array
    """differs between any two surfaces that meet at an edge"""
    point: Array
    normal: Array


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def _apply(matrix: Array, vectors: Array) -> Array:
    m = matrix.astype(np.float32)[:, :, None]
    return np.asarray(m[:, 0] * vectors[0] + m[:, 1] * vectors[1] + m[:, 2] * vectors[2])


def _trace(scene: Scene, rays: Array) -> Hits:
    eye, room = scene.eye.astype(np.float32)[:, None], scene.room.astype(np.float32)[:, None]
    ahead = rays > 0
    walls = (np.where(ahead, room, 0) - eye) / rays
    axis = walls.argmin(0)
    one = np.arange(rays.shape[1])
    distance, positive = walls[axis, one], ahead[axis, one]
    face = 2 * axis + positive
    surface = np.where(axis == 2, 1 + positive, 0)
    normal = np.zeros_like(rays)
    normal[axis, one] = np.where(positive, -1, 1)
    length = _dot(rays, rays)
    for index, solid in enumerate(scene.solids):
        near, reached, side = _meet(solid, scene.eye, rays, length)
        first = reached < distance[near]
        near = near[first]
        distance[near], surface[near], face[near] = reached[first], index + 3, 8 * index + 8 + side[first]
    point = eye + distance * rays
    for index, solid in enumerate(scene.solids):
        mine = np.flatnonzero(surface == index + 3)
        normal[:, mine] = _normal(solid, point[:, mine], face[mine] & 7)
    return Hits(distance, surface, face, point, normal)


def _meet(solid: Solid, origin: Array, rays: Array, length: Array) -> tuple[Array, Array, Array]:
    """Which rays come near the solid, at which multiple of the ray they enter it (inf: never), through which face."""
    gap = solid.centre - origin
    along = _dot(rays, gap.astype(np.float32))
    near = np.flatnonzero((along > 0) & (along * along > length * np.float32((gap**2).sum() - solid.radius**2)))
    start, local = -(solid.inward @ gap).astype(np.float32), _apply(solid.inward, rays[:, near])
    if solid.kind in _FACES:
        return near, *_enter_flat(_FACES[solid.kind], start, local)
    if solid.kind in _PROFILE:
        return near, *_enter_turned(*_PROFILE[solid.kind], start, local)
    enter = _enter_sphere if solid.kind == "sphere" else _enter_torus
    return near, enter(start, local), np.zeros(len(near), dtype=int)


def _enter_flat(faces: Array, start: Array, rays: Array) -> tuple[Array, Array]:
    speed = _apply(faces, rays)
    when = (1 - (faces * start).sum(1))[:, None] / speed
    enter = np.where(speed < 0, when, -np.inf)
    side, first = enter.argmax(0), enter.max(0)
    inside = (first > 0) & (first < np.where(speed > 0, when, np.inf).min(0))
    return np.where(inside, first, np.inf), side


def _enter_turned(radius: float, slope: float, start: Array, rays: Array) -> tuple[Array, Array]:
    """Candidates are both crossings of the side and those of the two ends."""
    wide = np.float32(radius + slope * start[2])
    a = rays[0] * rays[0] + rays[1] * rays[1] - slope * slope * rays[2] * rays[2]
    b = start[0] * rays[0] + start[1] * rays[1] - wide * slope * rays[2]
    root = np.sqrt(b * b - a * (start[0] * start[0] + start[1] * start[1] - wide * wide))
    when = np.stack([(-b - root) / a, (root - b) / a, (-1 - start[2]) / rays[2], (1 - start[2]) / rays[2]])
    x, y, z = (start[k] + when * rays[k] for k in range(3))
    limit = radius + slope * z[2:]
    good = np.vstack([np.abs(z[:2]) <= 1, x[2:] * x[2:] + y[2:] * y[2:] <= limit * limit]) & (when > 0)
    when = np.where(good, when, np.inf)
    return when.min(0), np.maximum(when.argmin(0) - 1, 0)


def _enter_sphere(start: Array, rays: Array, radius: float = 1.0) -> Array:
    a, b = _dot(rays, rays), _dot(rays, start)
    when = (-b - np.sqrt(b * b - a * (_dot(start, start) - np.float32(radius * radius)))) / a
    return np.where(when > 0, when, np.inf)


def _enter_torus(start: Array, rays: Array) -> Array:
    """Steps as long as the distance to the surface, which is exact for a torus, cannot pass through it."""
    speed = np.sqrt(_dot(rays, rays))
    when = _enter_sphere(start, rays, 1 + RING)
    when = np.where(np.isfinite(when), when, 0)
    for _ in range(40):
        gap = _to_ring(start[:, None] + when * rays)
        when += gap / speed
    return np.where(gap < 0.004, when, np.inf)


def _to_ring(point: Array) -> Array:
    out = np.sqrt(point[0] * point[0] + point[1] * point[1]) - 1
    return np.asarray(np.sqrt(out * out + point[2] * point[2]) - np.float32(RING))


def _normal(solid: Solid, point: Array, side: Array) -> Array:
    local = _apply(solid.inward, point - solid.centre.astype(np.float32)[:, None])
    if solid.kind in _FACES:
        local = _FACES[solid.kind][side].T
    elif solid.kind in _PROFILE:
        radius, slope = _PROFILE[solid.kind]
        end = np.where(side == 2, 1, -1)
        local = np.where(side > 0, end * _TOP.T, [local[0], local[1], -slope * (radius + slope * local[2])])
    elif solid.kind == "torus":
        local[:2] *= 1 - 1 / np.sqrt(local[0] * local[0] + local[1] * local[1])
    normal = _apply(solid.inward.T, local.astype(np.float32))
    return np.asarray(normal / np.sqrt(_dot(normal, normal)))


# Colours


def _wave(x: Array) -> Array:
    """Nearly a sine of period 1."""
    x = 2 * (x - np.floor(x)) - 1
    return np.asarray(4 * x * (1 - np.abs(x)))


def _clouds(q: Array) -> Array:
    x, y, z = q * np.float32(0.6)
    bent = _wave(0.9 * x + 0.4 * y + 0.3 * z) * 0.35
    return np.asarray(0.5 + 0.25 * (_wave(y - 0.5 * z + bent) + _wave(0.7 * z + 0.8 * x - 0.6 * y + 1.7 * bent)))


def _planks(q: Array) -> Array:
    row = np.floor(2 * q[0])
    tone = row * 0.618 + np.floor(0.5 * q[1] + row * 0.37) * 0.414 + np.floor(0.5 * q[2]) * 0.27
    line = np.abs(2 * q[0] - row - 0.5) > 0.45
    return np.where(line, 1, 0.7 * (tone - np.floor(tone)))


_PATTERNS: dict[str, Callable[[Array], Array]] = {
    "plain": lambda q: np.zeros(q.shape[1], dtype=np.float32),
    "stripes": lambda q: (q[0] - np.floor(q[0]) < 0.5) * 1.0,
    "checker": lambda q: np.floor(q).sum(0) % 2,
    "dots": lambda q: (((q - np.floor(q) - 0.5) ** 2).sum(0) < 0.15) * 1.0,
    "tiles": lambda q: (np.abs(q - np.floor(q) - 0.5).max(0) > 0.46) * 1.0,
    "clouds": _clouds,
    "planks": _planks,
}


def _painted(paint: Paint, point: Array, footprint: Array) -> Array:
    """The paint's colour at each point; patterns finer than a pixel fade to their mean, which avoids moire."""
    q = _apply(paint.frame / paint.cell, point) + paint.origin.astype(np.float32)[:, None]
    mix = _PATTERNS[paint.pattern](q).astype(np.float32)
    if paint.pattern != "plain":
        mix = 0.5 + (mix - 0.5) * np.clip(np.float32(0.8 * paint.cell) / footprint - 0.6, 0, 1)
    first, second = paint.colours.astype(np.float32)[:, :, None]
    return np.asarray(first + (second - first) * mix)


def _albedo(scene: Scene, hits: Hits, footprint: Array) -> Array:
    colour = np.empty_like(hits.point)
    for index, paint in enumerate([*scene.paints, *(solid.paint for solid in scene.solids)]):
        mine = np.flatnonzero(hits.surface == index)
        origin = scene.solids[index - 3].centre if index > 2 else np.zeros(3)
        if len(mine):
            local = hits.point[:, mine] - origin.astype(np.float32)[:, None]
            colour[:, mine] = _painted(paint, local, footprint[mine])
    for decal in scene.decals:
        offset = (hits.point - decal.middle.astype(np.float32)[:, None]) / decal.half.astype(np.float32)[:, None]
        inside = _dot(offset, offset) < 1 if decal.round else np.abs(offset).max(0) < 1
        mine = np.flatnonzero(inside & (hits.surface < 3))
        colour[:, mine] = _painted(decal.paint, hits.point[:, mine], footprint[mine])
    return colour


def _open(scene: Scene, hits: Hits) -> Array:
    """How much of the surroundings' light arrives: less in corners and beside solids."""
    room = scene.room.astype(np.float32)[:, None]
    wall = np.minimum(hits.point, room - hits.point)
    shut = (1 - np.abs(hits.normal)) * np.float32(0.08) / (wall + np.float32(0.25))
    light = 1 - shut[0] - shut[1] - shut[2]
    for index, solid in enumerate(scene.solids):
        gap = solid.centre.astype(np.float32)[:, None] - hits.point
        square = _dot(gap, gap)
        near = np.flatnonzero((square < np.float32(9 * solid.radius**2)) & (hits.surface != index + 3))
        square = square[near]
        facing = np.maximum(_dot(gap[:, near], hits.normal[:, near]), 0)
        light[near] *= 1 - np.minimum(facing * np.float32(0.5 * solid.radius**2) / (square * np.sqrt(square)), 0.7)
    return light


def _shade(scene: Scene, rays: Array, hits: Hits, pixel: float) -> Array:
    """Linear colours (3, n) by Lambert's and Blinn's laws; point lights, so shadows are hard."""
    facing = np.maximum(-_dot(hits.normal, rays), np.float32(0.05))
    albedo = _albedo(scene, hits, hits.distance * np.float32(2 * scene.spread * pixel) / facing)
    glosses = np.array([0, 0, 0] + [solid.paint.gloss for solid in scene.solids], dtype=np.float32)
    gloss = glosses[hits.surface]
    shiny = np.flatnonzero(gloss)
    colour = albedo * (np.float32(scene.ambient) * (1 + 0.3 * hits.normal[2]) * _open(scene, hits))
    for place, tint in scene.lights:
        power = tint.astype(np.float32)[:, None]
        away = hits.point - place.astype(np.float32)[:, None]
        square = _dot(away, away)
        away /= np.sqrt(square)
        light = np.maximum(-_dot(hits.normal, away), 0) * (8 / (8 + square))
        light[_shadowed(scene, place, hits.point, light)] = 0
        colour += albedo * (light * power)
        half = -away[:, shiny] - rays[:, shiny]
        shine = np.maximum(_dot(half, hits.normal[:, shiny]), 0) ** 2 / _dot(half, half)
        for _ in range(4):
            shine = shine * shine
        colour[:, shiny] += gloss[shiny] * shine * (light[shiny] > 0) * power
    return np.asarray(colour)


def _shadowed(scene: Scene, place: Array, point: Array, light: Array) -> Array:
    lit = np.flatnonzero(light > 0)
    rays = point[:, lit] - place.astype(np.float32)[:, None]
    length = _dot(rays, rays)
    dark = np.zeros(len(lit), dtype=bool)
    for solid in scene.solids:
        near, reached, _ = _meet(solid, place, rays, length)
        dark[near[reached < 0.997]] = True
    return lit[dark]


# Pictures and labels


def _rays(scene: Scene, size: int, rows: Array, columns: Array) -> Array:
    """Unit vectors through places of the picture, whose pixels' middles are at whole numbers."""
    scale = scene.spread / size
    x, y = (2 * columns + 1 - size) * scale, (size - 1 - 2 * rows) * scale
    rays = _apply(scene.view, np.stack([x, y, -np.ones_like(x)]).astype(np.float32))
    return np.asarray(rays / np.sqrt(_dot(rays, rays)))


def project(scene: Scene, points: Array, size: int) -> tuple[Array, Array, Array]:
    """Rows, columns and distances of points of the room; NaN behind the camera."""
    x, y, z = ((points - scene.eye) @ scene.view).T
    z = np.where(z < -0.05, -z, np.nan)
    scale = size / (2 * scene.spread * z)
    return (size - 1) / 2 - y * scale, (size - 1) / 2 + x * scale, np.sqrt(((points - scene.eye) ** 2).sum(1))


def _render(seed: int, index: int, size: int) -> tuple[Array, ...]:
    """A picture and its labels, in the order of TARGETS."""
    scene, count = draw_scene(seed, index), size * size
    rows, columns = np.indices((size, size)).reshape(2, count)
    down, along, away = project(scene, scene.keypoints(), size)
    with np.errstate(divide="ignore", invalid="ignore"):
        rays = _rays(scene, size, np.append(rows, down), np.append(columns, along))
        traced = _trace(scene, rays)
        seen = traced.distance[count:] > away - 0.02
        hits = Hits(*(getattr(traced, part.name)[..., :count] for part in fields(Hits)))
        picture = _picture(scene, rays[:, :count], hits, size)
    grain = np.random.default_rng([seed, index, size]).standard_normal(picture.shape, dtype=np.float32)
    picture += np.float32(scene.grain) * grain
    kinds = [0, 1, 2, *(3 + SOLIDS.index(solid.kind) for solid in scene.solids)]
    mask = np.array(kinds, dtype=np.uint8)[hits.surface]
    shown = np.bincount(mask, minlength=len(SURFACES)) >= VISIBLE * count
    shown[:3] = True
    return (
        (picture.clip(0, 1) * 255 + np.float32(0.5)).astype(np.uint8),
        shown[3:].astype(np.float32),
        np.where(shown[mask], mask, VOID).astype(np.uint8).reshape(size, size),
        hits.distance.reshape(size, size),
        _apply(scene.view.T, hits.normal).reshape(3, size, size),
        _edges(scene, hits, size),
        _bumps(down[seen], along[seen], size),
    )


def _picture(scene: Scene, rays: Array, hits: Hits, size: int) -> Array:
    """Colours from 0 to 1, with four rays for each pixel that differs from a neighbour."""
    colour = _shade(scene, rays, hits, 1 / size)
    colour *= np.float32(scene.exposure) / np.median(colour[1])
    tones = np.sqrt(colour).reshape(3, size, size)
    rough = np.flatnonzero(_borders(lambda a, b: (np.abs(a - b) > 0.04).any(0), tones))
    rows, columns = np.divmod(rough, size)
