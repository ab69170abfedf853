"""Pictures of solids in a room, rendered here, so that every label is exact and nothing has to be downloaded.

Room units are about a metre: x to the right, y into the room, z up. Camera coordinates: x right, y up, z backwards.
Per pixel there are only sums, products, quotients and square roots, which are rounded alike everywhere (no BLAS, no
sines): the bytes are the same on every machine but for the last bit of an angle drawn for a scene.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import atan2, cos, hypot, pi, sin, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import VOID, ArrayData, Target
from allotment.errors import InputError, Mistake

Array = NDArray[Any]


def _colours(codes: str) -> Array:
    return np.array([list(bytes.fromhex(code)) for code in codes.split()]) / 255


FREQUENCY = {"box": 21, "sphere": 20, "cylinder": 20, "cone": 18, "pyramid": 16, "torus": 5}
"""of the kinds in a hundred solids: unequal, as in real data"""
SOLIDS = tuple(FREQUENCY)
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
SMALLEST = 16
_BATCH = 16 * 64 * 64
"""rays at a time: fewer are slowed down by Python, more by the cache"""
RING = 0.36
"""thickness of a torus, as a share of its radius"""

# Every solid is a unit solid (radius or half width 1, z from -1 to 1), stretched and turned.
_UNIT = np.array([[x, y, z] for z in (-1.0, 1.0) for x in (-1, 1) for y in (-1, 1)])
_TOP = _UNIT[-1:] * (0, 0, 1)
_POINTS = {"box": _UNIT, "pyramid": np.vstack([_UNIT[:4], _TOP]), "cone": _TOP, "cylinder": np.vstack([_TOP, -_TOP])}
"""keypoints: corners, apexes, middles of round ends; a sphere's is where it faces the camera, a torus has none"""
_FACES = {
    "box": np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]], dtype=np.float32),
    "pyramid": np.array([[-2, 0, 1], [2, 0, 1], [0, -2, 1], [0, 2, 1], [0, 0, -1]], dtype=np.float32),
}
"""normals of the flat faces, of such lengths that normal . point = 1 on the face"""
_PROFILE = {"cylinder": (1.0, 0.0), "cone": (0.5, -0.5)}
"""radius at height z: first + second * z"""
_LOTS = tuple(kind for kind, share in FREQUENCY.items() for _ in range(share))
_PALETTE = _colours(
    "c8553d e07a5f f2a65a eec643 a3b18a 588157 2a9d8f 1d7874 77b6d9 3d6fb6 1d3557"
    " 7d5ba6 b56576 e5989b 8d6346 c9a27c 6c757d 343a40 dad7cd b23a48"
)
PATTERNS = ("plain", "stripes", "checker", "dots", "tiles", "clouds", "planks")


# Drawing a scene


@dataclass(frozen=True)
class Paint:
    """Two colours and the pattern that mixes them."""

    colours: Array
    pattern: str
    cell: float
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
    paint: Paint
    centre: Array
    low: Array
    high: Array
    """opposite corners of the upright box around it"""
    radius: float
    """of the ball around it"""

    def apart(self, low: Array, high: Array) -> bool:
        return bool((self.low > high - 1e-6).any() or (self.high < low + 1e-6).any())

    def keypoints(self, eye: Array) -> Array:
        if self.kind == "sphere":
            toward = eye - self.centre
            return np.asarray([self.centre + toward * (self.radius / sqrt(_square(toward)))])
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
    """place and colour of the main one and of a weaker one"""
    paints: tuple[Paint, ...]
    """of walls, floor and ceiling"""
    decals: tuple[Decal, ...]
    solids: tuple[Solid, ...]
    ambient: float
    exposure: float
    grain: float

    def keypoints(self) -> Array:
        """Corners of the room and points of the solids, visible or not."""
        return np.vstack([(_UNIT + 1) / 2 * self.room, *(solid.keypoints(self.eye) for solid in self.solids)])


class _Dice:
    """Draws from a block of uniform numbers: asking numpy for each would take longer than rendering."""

    def __init__(self, *seed: int):
        self.source = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self.block: list[float] = []

    def __call__(self, low: float = 0.0, high: float = 1.0) -> float:
        if not self.block:
            self.block = self.source.random(256).tolist()
        return low + (high - low) * self.block.pop()

    def point(self, low: Sequence[float], high: Sequence[float]) -> Array:
        return np.array([self(*ends) for ends in zip(low, high, strict=True)])

    def pick(self, choices: Sequence[Any] | Array) -> Any:
        return choices[int(self(0, len(choices)))]


def draw_scene(seed: int, index: int) -> Scene:
    """The scene behind a picture; it depends on (seed, index) only."""
    dice = _Dice(seed, index)
    room = dice.point((4.0, 4.8, 2.6), (6.2, 7.0, 3.4))
    eye = room * dice.point((0.2, 0.04, 0.36), (0.8, 0.1, 0.68))
    view = _look(eye, aim=room * dice.point((0.25, 0.6, 0.05), (0.75, 0.8, 0.3)), roll=dice(-0.08, 0.08))
    spread = dice(0.46, 0.68)
    return Scene(
        room=room,
        eye=eye,
        view=view,
        spread=spread,
        lights=(_light(dice, room, dice(0.8, 1.2)), _light(dice, room, max(0.0, dice(-0.4, 0.5)))),
        paints=(
            _paint(dice, "plain plain plain stripes clouds tiles dots", (0.3, 0.85), (0.35, 0.9)),
            _paint(dice, "planks planks checker tiles clouds plain", (0.05, 0.6), (0.35, 0.8)),
            _paint(dice, "plain", (0.85, 1.0), (1, 1)),
        ),
        decals=tuple(_decal(dice, room) for _ in range(dice.pick((0, 1, 2, 3)))),
        solids=_solids(dice, room, eye, view, spread),
        ambient=dice(0.16, 0.32),
        exposure=dice(0.28, 0.5),
        grain=dice(0.002, 0.012),
    )


def _look(eye: Array, aim: Array, roll: float) -> Array:
    back = (eye - aim) / sqrt(_square(eye - aim))
    right = np.array([-back[1], back[0], 0]) / hypot(back[0], back[1])
    up = np.array([-back[2] * right[1], back[2] * right[0], back[0] * right[1] - back[1] * right[0]])
    return np.stack([cos(roll) * right + sin(roll) * up, cos(roll) * up - sin(roll) * right, back], axis=1)


def _light(dice: _Dice, room: Array, power: float) -> tuple[Array, Array]:
    warmth = dice(-0.1, 0.16)
    place = room * dice.point((0.12, 0.12, 0.8), (0.88, 0.8, 0.96))
    return place, power * np.array([1 + warmth, 1, 1 - warmth])


Range = tuple[float, float]


def _paint(dice: _Dice, patterns: str, pale: Range, cell: Range, gloss: float = 0.0) -> Paint:
    """Colours from the palette, more or less pale; the second is another one or a shade of the first."""
    first, second = dice.pick(_PALETTE), dice.pick(_PALETTE)
    if dice() < 0.5:
        second = first * dice(0.45, 0.8) if first[1] > 0.45 else 1 - (1 - first) * dice(0.45, 0.8)
    white, jitter = dice(*pale), dice.point((-0.06,) * 3, (0.06,) * 3)
    colours = np.array([first, second]) * (1 - white) + (0.93 * white + jitter)
    linear = np.minimum(np.maximum(colours, 0.04), 0.96) ** 2
    return Paint(linear, dice.pick(patterns.split()), dice(*cell), dice.point((-9,) * 3, (9,) * 3), gloss)


def _decal(dice: _Dice, room: Array) -> Decal:
    axis = dice.pick((0, 1, 1, 2))
    middle, half = room * dice.point((0.25,) * 3, (0.75,) * 3), dice.point((0.25,) * 3, (0.7,) * 3)
    middle[axis] = room[axis] * (dice.pick((0, 1)), 1, 0)[axis]
    half *= 2 if axis == 2 else 1
    half[axis] = 0.05
    paint = _paint(dice, "plain stripes clouds checker dots", (0.0, 0.4), (0.15, 0.5))
    return Decal(middle, half, dice() < 0.4, paint)


def _solids(dice: _Dice, room: Array, eye: Array, view: Array, spread: float) -> tuple[Solid, ...]:
    """Solids before the camera that do not touch: on the floor, on one another or in the air."""
    placed: list[Solid] = []
    wanted = dice.pick((2, 3, 4, 5, 6))
    while wanted > 0 or not placed:
        wanted -= 1
        solid = _solid(dice, dice.pick(_LOTS))
        for _ in range(8):
            spot = _spot(dice, eye, view, spread, placed)
            spot[2] -= solid.low[2]
            low, high = solid.low + spot, solid.high + spot
            inside = low.min() > -1e-6 and (high < room).all() and high[2] < 0.76 * room[2]
            near = _square(spot - eye) < (solid.radius + 0.7) ** 2
            if inside and not near and all(other.apart(low, high) for other in placed):
                placed.append(replace(solid, centre=spot, low=low, high=high))
                break
    return tuple(placed)


def _spot(dice: _Dice, eye: Array, view: Array, spread: float, placed: list[Solid]) -> Array:
    """What a solid may stand on: the floor before the camera, a flat top or, at times, nothing."""
    flat = [solid for solid in placed if solid.kind in ("box", "cylinder") and abs(solid.turn[2, 2]) > 0.999]
    if flat and dice() < 0.35:
        base = dice.pick(flat)
        return np.array([base.centre[0], base.centre[1], base.high[2]])
    ahead, aside = dice(1.4, 5.5), dice(-0.9, 0.9) * spread
    x, y = -view[:2, 2] * (ahead / hypot(view[0, 2], view[1, 2]))
    return np.array([eye[0] + x + aside * y, eye[1] + y - aside * x, dice(0.2, 1.2) if dice() < 0.15 else 0])


def _solid(dice: _Dice, kind: str) -> Solid:
    size = dice(0.24, 0.62)
    x, y, z = (size * dice(0.6, 1.2) for _ in range(3))
    shape = {"box": (x, y, z), "pyramid": (x, y, 1.3 * z), "cone": (x, x, 1.3 * z), "cylinder": (0.8 * x, 0.8 * x, z)}
    x, y, z = shape.get(kind, (size, size, size))
    pose, yaw, spin, tilt = dice(), dice(0, 2 * pi), 0.0, 0.0
    if pose > 0.75:
        spin, tilt = dice(0, 2 * pi), dice(0, pi)
    elif pose > 0.5:  # lying on its side, which slopes if it is pointed
        tilt = pi / 2 + (atan2(y, 2 * z) if kind in ("cone", "pyramid") else 0)
    stretch, turn = np.array([x, y, z]), _turn(yaw, tilt, spin)
    patterns = "plain plain plain stripes checker clouds dots tiles planks"
    paint = _paint(dice, patterns, (0.0, 0.4), (0.12, 0.4), dice(0, 0.5))
    ends = _reach(kind, stretch, np.hstack([-turn.T, turn.T]))
    radius = {"sphere": x, "torus": x * (1 + RING), "cylinder": hypot(x, z), "cone": hypot(x, z)}
    return Solid(kind, stretch, turn, paint, np.zeros(3), -ends[:3], ends[3:], radius.get(kind, sqrt(_square(stretch))))


def _turn(yaw: float, tilt: float, spin: float) -> Array:
    """About the upright axis after tilting about x after spinning about its own."""
    a, b, c, d, e, f = cos(yaw), sin(yaw), cos(tilt), sin(tilt), cos(spin), sin(spin)
    x = (a * e - b * c * f, -a * f - b * c * e, b * d)
    y = (b * e + a * c * f, a * c * e - b * f, -a * d)
    return np.array([x, y, (d * f, d * e, c)])


def _square(vector: Array) -> float:
    x, y, z = vector.tolist()
    return float(x * x + y * y + z * z)


def _reach(kind: str, stretch: Array, directions: Array) -> Array:
    """How far a solid extends from its centre in each direction (columns, along its own axes)."""
    local = stretch[:, None] * directions
    up, across, square = local[2], np.hypot(local[0], local[1]), np.abs(local[0]) + np.abs(local[1])
    if kind in ("cone", "pyramid"):
        return np.asarray(np.maximum(up, (across if kind == "cone" else square) - up))
    if kind in ("box", "cylinder"):
        return np.asarray((across if kind == "cylinder" else square) + np.abs(up))
    return np.asarray(np.hypot(across, up) if kind == "sphere" else across + RING * np.hypot(across, up))


# Following rays. Scenes are rendered several at a time, because numpy is slow at short arrays. Vectors are columns of
# (3, n) arrays, scene after scene; `counts` says how many belong to each.


class _Stage:
    """Scenes side by side, in float32 arrays whose last axis is over scenes, solids or paints."""

    def __init__(self, scenes: Sequence[Scene]):
        self.scenes = scenes
        self.room, self.eye, self.view = (_table([getattr(s, k) for s in scenes]) for k in ("room", "eye", "view"))
        self.spread, self.ambient, self.exposure = _table([(s.spread, s.ambient, s.exposure) for s in scenes])
        self.places, self.tints = _table([s.lights for s in scenes]).swapaxes(0, 1)
        solids = [solid for scene in scenes for solid in scene.solids]
        self.owner = np.repeat(np.arange(len(scenes)), [len(scene.solids) for scene in scenes])
        self.kind = np.array([SOLIDS.index(solid.kind) for solid in solids], dtype=np.uint8)
        self.centre = _table([solid.centre for solid in solids])
        self.stretch = _table([solid.stretch for solid in solids])
        self.turn = _table([solid.turn for solid in solids])
        self.inward = self.turn.swapaxes(0, 1) / self.stretch[:, None]
        self.radius = _table([solid.radius for solid in solids])
        paints = [paint for scene in scenes for paint in scene.paints] + [solid.paint for solid in solids]
        self.decals = [(index, decal) for index, scene in enumerate(scenes) for decal in scene.decals]
        paints += [decal.paint for _, decal in self.decals]
        self.base, self.other = _table([paint.colours for paint in paints])
        self.origin = _table([paint.origin for paint in paints])
        self.cell, self.gloss = _table([(paint.cell, paint.gloss) for paint in paints])
        self.pattern = np.array([PATTERNS.index(paint.pattern) for paint in paints], dtype=np.uint8)

    def parts(self, counts: Array) -> list[slice]:
        """Which rays belong to each solid's scene."""
        parts = [slice(*pair) for pair in pairwise([0, *np.cumsum(counts).tolist()])]
        return [parts[owner] for owner in self.owner.tolist()]


@dataclass(frozen=True)
class Hits:
    """Where rays first meet something."""

    distance: Array
    surface: Array
    """one of SURFACES"""
    face: Array
    """differs on the two sides of every crease and silhouette"""
    paint: Array
    point: Array
    normal: Array


def _table(values: Sequence[Any]) -> Array:
    return np.ascontiguousarray(np.moveaxis(np.array(values, dtype=np.float32), 0, -1))


def _dot(a: Array, b: Array) -> Array:
    total = a[0] * b[0]
    total += a[1] * b[1]
    total += a[2] * b[2]
    return np.asarray(total)


def _apply(matrix: Array, vectors: Array) -> Array:
    return _dot(matrix.swapaxes(0, 1), vectors)


def _each(table: Array, counts: Array | Sequence[int]) -> Array:
    return np.repeat(table, counts, axis=-1)


def _put(target: Array, where: Array, values: Array | Sequence[Any]) -> None:
    for row, part in zip(target, values, strict=True):  # many times faster than target[:, where] = values
        row[where] = part


def _trace(stage: _Stage, rays: Array, counts: Array) -> Hits:
    ahead, eye = (rays > 0).astype(np.uint8), _each(stage.eye, counts)
    x, y, z = (_each(stage.room, counts) * ahead - eye) / rays
    distance = np.minimum(x, y)
    level = z < distance
    face = np.where(level, 4 + ahead[2], np.where(y < x, 2 + ahead[1], ahead[0])).astype(np.int32)
    surface = level * (1 + ahead[2])
    distance, paint = np.minimum(distance, z), _each(3 * np.arange(len(counts)), counts) + surface
    normal = -_FACES["box"].T.take(face, axis=1)
    ray, solid, when, side = _meet(stage, stage.eye, rays, counts, np.ones_like(distance))
    np.minimum.at(distance, ray, when)
    first = np.flatnonzero(when == distance[ray])
    ray, solid, side = ray[first], solid[first], side[first]
    face[ray], surface[ray], paint[ray] = 8 * solid + 8 + side, 3 + stage.kind[solid], 3 * len(stage.scenes) + solid
    point = eye + distance * rays
    _put(normal, ray, _normal(stage, solid, side, point.take(ray, axis=1)))
    return Hits(distance, surface, face, paint, point, normal)


def _meet(stage: _Stage, origin: Array, rays: Array, counts: Array, length: Array) -> tuple[Array, Array, Array, Array]:
    """Rays, solids near them, at which multiple of the ray it enters the solid (inf: never) and through which face."""
    gap = stage.centre - origin.take(stage.owner, axis=1)
    tangent = np.sqrt(np.maximum(_dot(gap, gap) - stage.radius * stage.radius, 0))
    near = []
    for solid, part in enumerate(stage.parts(counts)):
        close = _dot(rays[:, part], gap[:, solid]) > tangent[solid] * length[part]
        near.append(np.flatnonzero(close) + part.start)
    ray, pairs = np.concatenate(near), [len(part) for part in near]
    start = _each(-_apply(stage.inward, gap), pairs)
    local = _apply(_each(stage.inward, pairs), rays.take(ray, axis=1))
    when, side, kind = (
        np.empty(len(ray), dtype=np.float32),
        np.zeros(len(ray), dtype=np.int64),
        _each(stage.kind, pairs),
    )
    for index, enter in enumerate(_ENTER):
        mine = np.flatnonzero(kind == index)
        when[mine], side[mine] = enter(start.take(mine, axis=1), local.take(mine, axis=1))
    return ray, _each(np.arange(len(near)), pairs), when, side


def _enter_flat(faces: Array, start: Array, rays: Array) -> tuple[Array, Array]:
    leave, side = np.full(rays.shape[1], np.inf, dtype=np.float32), np.zeros(rays.shape[1], dtype=np.int64)
    enter = -leave
    for index, face in enumerate(faces):
        speed = _dot(face, rays)
        when = (1 - _dot(face, start)) / speed
        into = speed < 0
        side[into & (when > enter)] = index
        np.maximum(enter, when, out=enter, where=into)
        np.minimum(leave, when, out=leave, where=~into)
    return np.where((enter > 0) & (enter < leave), enter, np.float32(np.inf)), side


def _enter_turned(radius: float, slope: float, start: Array, rays: Array) -> tuple[Array, Array]:
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
        good = (across * across + along * along <= limit * limit) & (crossing > 0) & (crossing < when)
        when, side = np.where(good, crossing, when), np.where(good, index, side)
    return when, side


def _enter_sphere(start: Array, rays: Array, radius: float = 1.0) -> tuple[Array, int]:
    a, b = _dot(rays, rays), _dot(rays, start)
    when = (-b - np.sqrt(b * b - a * (_dot(start, start) - np.float32(radius * radius)))) / a
    return np.where(when > 0, when, np.float32(np.inf)), 0


def _enter_torus(start: Array, rays: Array) -> tuple[Array, int]:
    """By steps from where the ray enters the ball and the slab around the torus."""
    ball, _ = _enter_sphere(start, rays, 1 + RING)
    steps = np.maximum(ball, (-np.sign(rays[2]) * np.float32(RING) - start[2]) / rays[2])
    x, y, z = start + steps * rays
    left = np.flatnonzero((x * x + y * y + z * z < (1 + RING) ** 2 + 0.01) & (np.abs(z) < RING + 0.01))
    when = np.full(len(ball), np.inf, dtype=np.float32)
    for count in (12, 30):  # few rays need the second turn
        way = start.take(left, axis=1), rays.take(left, axis=1)
        steps[left], gap, slope = _approach_torus(*way, steps[left], count)
        there = (gap < 0.0005) & (slope > 0)
        when[left[there]] = steps[left[there]]
        left = left[~there & (gap < 0.7)]
    return when, 0


def _approach_torus(start: Array, rays: Array, when: Array, count: int) -> tuple[Array, Array, Array]:
    """Steps as long as the distance to the surface cannot pass through it; close to it, Newton's are faster."""
    pace = 1 / np.sqrt(_dot(rays, rays))
    for _ in range(count):
        x, y, z = start + when * rays
        around = np.sqrt(x * x + y * y)
        out = around - 1
        thick = np.sqrt(out * out + z * z)
        gap = thick - np.float32(RING)
        slope = -((x * rays[0] + y * rays[1]) * out / around + z * rays[2]) * pace / thick
        when = when + gap * pace / np.where((gap < 0.03) & (slope > 0), np.maximum(slope, np.float32(0.12)), 1)
    return when, gap, slope


_ENTER: tuple[Callable[[Array, Array], tuple[Array, Array | int]], ...] = (
    partial(_enter_flat, _FACES["box"]),
    _enter_sphere,
    partial(_enter_turned, *_PROFILE["cylinder"]),
    partial(_enter_turned, *_PROFILE["cone"]),
    partial(_enter_flat, _FACES["pyramid"]),
    _enter_torus,
)


def _normal(stage: _Stage, solid: Array, side: Array, point: Array) -> Array:
    inward, kind = stage.inward.take(solid, axis=2), stage.kind[solid]
    local = _apply(inward, point - stage.centre.take(solid, axis=1))
    for name, faces in _FACES.items():
        mine = np.flatnonzero(kind == SOLIDS.index(name))
        _put(local, mine, faces.T.take(side[mine], axis=1))
    for name, (radius, slope) in _PROFILE.items():
        mine = np.flatnonzero(kind == SOLIDS.index(name))
        local[2][mine] = -slope * (radius + slope * local[2][mine])
        ends = mine[side[mine] > 0]
        _put(local, ends, [0, 0, 2 * side[ends] - 3])
    mine = np.flatnonzero(kind == SOLIDS.index("torus"))
    x, y, _ = local.take(mine, axis=1)
    inner = 1 - 1 / np.sqrt(x * x + y * y)
    _put(local[:2], mine, (x * inner, y * inner))
    normal = _apply(inward.swapaxes(0, 1), local)
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
    return np.where(line, np.float32(1), 0.7 * (tone - np.floor(tone)))


_MIX: dict[str, Callable[[Array], Array]] = {
    "stripes": lambda q: q[0] - np.floor(q[0]) < 0.5,
    "checker": lambda q: (np.floor(q[0]) + np.floor(q[1]) + np.floor(q[2])) % 2,
    "dots": lambda q: _dot(*[q - np.floor(q) - np.float32(0.5)] * 2) < 0.15,
    "tiles": lambda q: np.abs(q * np.float32(0.6) - np.floor(q * np.float32(0.6)) - np.float32(0.5)).max(0) > 0.44,
    "clouds": _clouds,
    "planks": _planks,
}


def _albedo(stage: _Stage, hits: Hits, counts: Array, footprint: Array) -> Array:
    """Colours of the paints; a pattern finer than a pixel fades to its mean, which avoids moire."""
    count, paint, place = len(stage.scenes), hits.paint.copy(), hits.point.copy()
    mine = np.flatnonzero(paint >= 3 * count)
    solid = paint[mine] - 3 * count
    local = hits.point.take(mine, axis=1) - stage.centre.take(solid, axis=1)
    _put(place, mine, _apply(stage.turn.swapaxes(0, 1).take(solid, axis=2), local))
    ends = np.cumsum(counts)
    for index, (scene, decal) in enumerate(stage.decals, 3 * count + len(stage.owner)):
        part = slice(ends[scene] - counts[scene], ends[scene])
        offset = (hits.point[:, part] - _column(decal.middle)) / _column(decal.half)
        inside = _dot(offset, offset) if decal.round else np.abs(offset).max(0)
        paint[part][(inside < 1) & (hits.surface[part] < 3)] = index
    mix, pattern = np.zeros(len(paint), dtype=np.float32), stage.pattern[paint]
    for index, name in enumerate(PATTERNS[1:], 1):
        mine = np.flatnonzero(pattern == index)
        which = paint[mine]
        cell = stage.cell[which]
        raw = _MIX[name](place.take(mine, axis=1) / cell + stage.origin.take(which, axis=1))
        sharp = np.clip(np.float32(0.8) * cell / footprint[mine] - np.float32(0.6), 0, 1)
        mix[mine] = (raw - np.float32(0.5)) * sharp + np.float32(0.5)
    return np.asarray(stage.base.take(paint, axis=1) + (stage.other - stage.base).take(paint, axis=1) * mix)


def _column(vector: Array) -> Array:
    return np.asarray(vector, dtype=np.float32)[:, None]


def _open(stage: _Stage, hits: Hits, counts: Array) -> Array:
    """How much of the light from all around arrives: less in corners and beside solids."""
    wall = np.minimum(hits.point, _each(stage.room, counts) - hits.point)
    shut = (1 - np.abs(hits.normal)) * np.float32(0.08) / (wall + np.float32(0.25))
    light = 1 - shut[0] - shut[1] - shut[2]
    for solid, (part, radius) in enumerate(zip(stage.parts(counts), stage.radius, strict=True)):
        gap = stage.centre[:, solid, None] - hits.point[:, part]
        square = _dot(gap, gap)
        near = np.flatnonzero(square < 9 * radius * radius)
        square = square[near]
        facing = np.maximum(_dot(gap.take(near, axis=1), hits.normal[:, part].take(near, axis=1)), 0)
        hidden = facing * (np.float32(0.5) * radius * radius) / (square * np.sqrt(square))
        light[part][near] *= 1 - np.minimum(hidden, np.float32(0.7))
    return np.asarray(light)


def _shade(stage: _Stage, rays: Array, counts: Array, hits: Hits, size: int) -> Array:
    """Linear colours by Lambert's and Blinn's laws; the lights are points, so shadows are hard."""
    facing = np.maximum(-_dot(hits.normal, rays), np.float32(0.05))
    albedo = _albedo(stage, hits, counts, hits.distance * _each(stage.spread * np.float32(2 / size), counts) / facing)
    gloss = stage.gloss[hits.paint]
    shiny = np.flatnonzero(gloss)
    normal, mirror = hits.normal.take(shiny, axis=1), rays.take(shiny, axis=1)
    around = _each(stage.ambient, counts) * (1 + np.float32(0.3) * hits.normal[2]) * _open(stage, hits, counts)
    total, shine = np.stack([around] * 3), np.zeros((3, len(shiny)), dtype=np.float32)
    for which, (places, tints) in enumerate(zip(stage.places, stage.tints, strict=True)):
        away, tint = hits.point - _each(places, counts), _each(tints, counts)
        length = np.sqrt(_dot(away, away))
        light = np.maximum(-_dot(hits.normal, away), 0) / (length * (1 + length * length * np.float32(0.125)))
        if which == 0:  # the other is too weak for its shadows to be worth the time
            ray, _, when, _ = _meet(stage, places, away, counts, np.where(light > 0, length, np.float32(np.inf)))
            light[ray[when < 0.997]] = 0
        total += light * tint
        half = away.take(shiny, axis=1) / length[shiny] + mirror
        glint = np.minimum(_dot(half, normal), 0) ** 2 / _dot(half, half)
        for _ in range(4):
            glint = glint * glint
        shine += gloss[shiny] * glint * (light[shiny] > 0) * tint.take(shiny, axis=1)
    colour = albedo * total
    _put(colour, shiny, colour.take(shiny, axis=1) + shine)
    return np.asarray(colour)


# Pictures and labels


def _rays(stage: _Stage, size: int, counts: Array, rows: Array, columns: Array) -> Array:
    """Unit vectors through places of the picture; the middles of pixels are at whole numbers."""
    scale = _each(stage.spread / np.float32(size), counts)
    x, y = (2 * columns + 1 - size).astype(np.float32) * scale, (size - 1 - 2 * rows).astype(np.float32) * scale
    rays = _apply(_each(stage.view, counts), np.stack([x, y, np.full_like(x, -1)]))
    return np.asarray(rays / np.sqrt(_dot(rays, rays)))


def project(scene: Scene, points: Array, size: int) -> Array:
    """Row, column and distance of those points of the room that lie within the picture, if nothing hides them."""
    gap = points - scene.eye
    x, y, z = (gap @ scene.view).T
    scale = size / (2 * scene.spread * np.where(z < -0.05, -z, np.nan))
    middle = (size - 1) / 2
    places = np.stack([middle - y * scale, middle + x * scale, np.sqrt((gap**2).sum(1))])
    return places[:, (np.abs(places[:2] - middle) < size / 2).all(0)]


def _render(seed: int, indices: Sequence[int], size: int) -> tuple[Array, ...]:
    """Pictures and their labels, in the order of TARGETS."""
    scenes = [draw_scene(seed, index) for index in indices]
    stage, shape = _Stage(scenes), (len(scenes), size, size)
    of, rows, columns = np.indices(shape).reshape(3, -1)
    counts = np.full(len(scenes), size * size)
    with np.errstate(divide="ignore", invalid="ignore"):
        rays = _rays(stage, size, counts, rows, columns)
        hits = _trace(stage, rays, counts)
        pictures = _pictures(stage, rays, counts, hits, size)
        bumps = _bumps(stage, size)
    for picture, scene, index in zip(pictures, scenes, indices, strict=True):
        grain = np.random.default_rng([seed, index, size]).standard_normal(picture.shape, dtype=np.float32)
        picture += np.float32(scene.grain) * grain
    mask = hits.surface.reshape(shape)
    shown = np.stack([np.bincount(one.ravel(), minlength=len(SURFACES)) for one in mask]) >= VISIBLE * size * size
    shown[:, :3] = True
    return (
        (np.clip(pictures, 0, 1) * 255 + np.float32(0.5)).astype(np.uint8),
        shown[:, 3:].astype(np.float32),
        np.where(shown[of, mask.ravel()].reshape(shape), mask, np.uint8(VOID)),
        hits.distance.reshape(shape),
        _apply(_each(stage.view.swapaxes(0, 1), counts), hits.normal).reshape(3, *shape).swapaxes(0, 1),
        _edges(stage, hits, shape),
        bumps,
    )


def _pictures(stage: _Stage, rays: Array, counts: Array, hits: Hits, size: int) -> Array:
    """Colours from 0 to 1, with two more rays for each pixel that differs from a neighbour."""
    colour = _shade(stage, rays, counts, hits, size)
    shape = (3, len(counts), size, size)
    gain = _each(stage.exposure / np.median(colour[1].reshape(len(counts), -1), axis=1), counts)
    tone = np.sqrt(gain * colour).reshape(shape)
    rough = np.flatnonzero(_borders(lambda a, b: (np.abs(tone[:, *a] - tone[:, *b]) > 0.16).any(0), shape[1:]))
    of, rows, columns = np.unravel_index(rough, shape[1:])
    counts, aside = 2 * np.bincount(of, minlength=len(counts)), np.tile([-0.3, 0.3], len(rough))
    rays = _rays(stage, size, counts, rows.repeat(2) + aside, columns.repeat(2) - aside / 2)
    more = _shade(stage, rays, counts, _trace(stage, rays, counts), size)
    _put(colour, rough, (colour.take(rough, axis=1) + more[:, ::2] + more[:, 1::2]) / 3)
    colour *= gain
    bright = np.sqrt(colour / np.sqrt(1 + np.float32(0.6) * colour * colour))
    return np.ascontiguousarray(bright.reshape(shape).swapaxes(0, 1))


def _borders(differ: Callable[[Any, Any], Array], shape: tuple[int, ...]) -> Array:
    """Pixels that differ from the one beside, above or below."""
    marks = np.zeros(shape, dtype=bool)
    here, later, before = slice(None), slice(1, None), slice(None, -1)
    for a, b in (((here, here, later), (here, here, before)), ((here, later), (here, before))):
        found = differ(a, b)
        marks[a] |= found
        marks[b] |= found
    return marks


def _edges(stage: _Stage, hits: Hits, shape: tuple[int, ...]) -> Array:
    """Where one face meets or hides another, and where a torus hides itself; slightly blurred."""
    torus = SURFACES.index("torus")
    jump = np.full(len(hits.face), np.inf, dtype=np.float32)
    mine = np.flatnonzero(hits.surface == torus)
    jump[mine] = np.float32(RING) * stage.stretch[0][hits.paint[mine] - 3 * len(stage.scenes)]
    face, depth, limit = (part.reshape(shape) for part in (hits.face, hits.distance, jump))
    marks = _borders(lambda a, b: (face[a] != face[b]) | (np.abs(depth[a] - depth[b]) > limit[a]), shape)
    wide = np.pad(marks.astype(np.float32), ((0, 0), (1, 1), (1, 1)), mode="edge")
    wide = wide[:, :-2] + 6 * wide[:, 1:-1] + wide[:, 2:]
    return np.maximum((wide[..., :-2] + 6 * wide[..., 1:-1] + wide[..., 2:]) / 64, marks)


def _bumps(stage: _Stage, size: int) -> Array:
    """Heat maps with a Gaussian bump at each keypoint that nothing hides."""
    found = [project(scene, scene.keypoints(), size) for scene in stage.scenes]
    counts = np.array([part.shape[1] for part in found])
    rows, columns, away = np.hstack(found)
    seen = _trace(stage, _rays(stage, size, counts, rows, columns), counts).distance > away - 0.02
    width, pixels = max(1.0, size / 48), np.arange(size)
    squares = (((pixels - part[:, None]) / width) ** 2 for part in (rows, columns))
    down, along = (np.exp(-0.5 * square).astype(np.float32) for square in squares)
    heat = np.zeros((len(found), size, size), dtype=np.float32)
    for scene, kept in enumerate(np.split(np.arange(len(seen)), np.cumsum(counts)[:-1])):
        kept = kept[seen[kept]]
        heat[scene] = (down[kept, :, None] * along[kept, None]).max(0, initial=0)
    return heat


def make_scenes(count: int = 2000, size: int = 64, seed: int = 0) -> ArrayData:
    """Pictures of `size` x `size` pixels with all labels; picture i depends on seed, i and size only.

    >>> make_scenes(count=2, size=16).ids
    ('scene-000000', 'scene-000001')
    """
    limits = {"count": (count, 1), "size": (size, SMALLEST), "seed": (seed, 0)}
    mistakes = [
        Mistake(name, f"{given!r} is not a whole number of {least} or more")
        for name, (given, least) in limits.items()
        if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < least
    ]
    if mistakes:
        raise InputError(mistakes)
    step = max(1, _BATCH // (size * size))
    batches = [range(start, min(start + step, count)) for start in range(0, count, step)]
    with ThreadPoolExecutor(2) as pool:
        rendered = pool.map(lambda batch: _render(seed, batch, size), batches)
        pictures, *labels = (np.concatenate(part) for part in zip(*rendered, strict=True))
    return ArrayData(
        name="scenes",
        targets=TARGETS,
        features=pictures,
        labels={target.name: part for target, part in zip(TARGETS, labels, strict=True)},
        ids=tuple(f"scene-{index:06d}" for index in range(count)),
    )


_CLASSES = _colours("d9d4c7 8c7b6b f4f1ea e4572e 2e86ab f2b134 5fad56 8e5aa8 e88fb4" + " 000000" * (VOID - 8))
_DEPTHS = _colours("fff3c9 f9b45c dd5f55 8a2f73 33205c 0d0d26")


def montage(data: ArrayData, instances: Sequence[int], zoom: int = 2) -> NDArray[np.uint8]:
    """A row for each instance: picture, segmentation, depth, normals, edges, keypoints (height, width, 3)."""
    tiles = np.stack([_tiles(data, index) for index in instances]).repeat(zoom, 3).repeat(zoom, 4)
    framed = np.pad(tiles, ((0, 0), (0, 0), (0, 0), (zoom, zoom), (zoom, zoom)), constant_values=1)
    rows, columns, _, height, width = framed.shape
    whole = framed.transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, 3)
    return np.asarray(np.clip(whole, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _tiles(data: ArrayData, index: int) -> Array:
    mask, depth, normals, edges, points = (data.labels[target.name][index] for target in TARGETS[1:])
    picture, steps = data.features[index] / 255, np.arange(len(_DEPTHS))
    depths = np.stack([np.interp(depth / 8 * steps[-1], steps, channel) for channel in _DEPTHS.T])
    dim = np.stack([0.35 * picture.mean(0)] * 3)
    glow = dim + points * (np.array([1, 0.82, 0.24])[:, None, None] - dim)
    return np.stack([picture, _CLASSES.T[:, mask], depths, (normals + 1) / 2, np.stack([1 - edges] * 3), glow])
