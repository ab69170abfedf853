"""Scenes drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import atan2, cos, hypot, pi, sin, sqrt
from typing import Any

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import colours, square
from allotment.data.scenes.scene import FREQUENCY, RING, Decal, Paint, Scene, Solid

Range = tuple[float, float]

_LOTS = tuple(kind for kind, share in FREQUENCY.items() for _ in range(share))
_PAINT_COLOURS = colours(
    "c8553d e07a5f f2a65a eec643 a3b18a 588157 2a9d8f 1d7874 77b6d9 3d6fb6 1d3557"
    " 7d5ba6 b56576 e5989b 8d6346 c9a27c 6c757d 343a40 dad7cd b23a48"
)


_KINDS = dict(zip(FREQUENCY, colours("c1121f 1d5fbf f2b705 2f9e44 8e44ad f46fb0"), strict=True))


class _Dice:
    """Draws from a block of uniform numbers: asking numpy for each would take longer than
    rendering."""

    def __init__(self, *seed: int):
        self.source = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self.block: list[float] = []

    def __call__(self, low: float = 0.0, high: float = 1.0) -> float:
        if not self.block:
            self.block = self.source.random(256).tolist()
        return low + (high - low) * self.block.pop()

    def point(self, low: Sequence[float], high: Sequence[float]) -> AnyArray:
        return np.array([self(*ends) for ends in zip(low, high, strict=True)])

    def pick(self, choices: Sequence[Any] | AnyArray) -> Any:
        return choices[int(self(0, len(choices)))]


def draw_scene(seed: int, index: int, by_colour: bool = False) -> Scene:
    """The scene behind a picture; it depends on these numbers only. `by_colour` paints solids alike
    by their kind."""
    dice = _Dice(seed, index)
    room = dice.point((4.0, 4.8, 2.6), (6.2, 7.0, 3.4))
    eye = room * dice.point((0.2, 0.04, 0.36), (0.8, 0.1, 0.68))
    view = _look(
        eye, aim=room * dice.point((0.25, 0.6, 0.05), (0.75, 0.8, 0.3)), roll=dice(-0.08, 0.08)
    )
    spread = dice(0.46, 0.68)
    return Scene(
        room=room,
        eye=eye,
        view=view,
        spread=spread,
        lights=(
            _draw_light(dice, room, dice(0.8, 1.2)),
            _draw_light(dice, room, max(0.0, dice(-0.4, 0.5))),
        ),
        paints=(
            _draw_paint(
                dice, "plain plain plain stripes clouds tiles dots", (0.3, 0.85), (0.35, 0.9)
            ),
            _draw_paint(dice, "planks planks checker tiles clouds plain", (0.05, 0.6), (0.35, 0.8)),
            _draw_paint(dice, "plain", (0.85, 1.0), (1, 1)),
        ),
        decals=tuple(_draw_decal(dice, room) for _ in range(dice.pick((0, 1, 2, 3)))),
        solids=_place_solids(dice, room, eye, view, spread, by_colour),
        ambient=dice(0.16, 0.32),
        exposure=dice(0.28, 0.5),
        grain=dice(0.002, 0.012),
    )


def _look(eye: AnyArray, aim: AnyArray, roll: float) -> AnyArray:
    """The axes of a camera that looks from the eye at the aim."""
    back = (eye - aim) / sqrt(square(eye - aim))
    right = np.array([-back[1], back[0], 0]) / hypot(back[0], back[1])
    up = np.array(
        [-back[2] * right[1], back[2] * right[0], back[0] * right[1] - back[1] * right[0]]
    )
    return np.stack(
        [cos(roll) * right + sin(roll) * up, cos(roll) * up - sin(roll) * right, back], axis=1
    )


def _draw_light(dice: _Dice, room: AnyArray, power: float) -> tuple[AnyArray, AnyArray]:
    warmth = dice(-0.1, 0.16)
    place = room * dice.point((0.12, 0.12, 0.8), (0.88, 0.8, 0.96))
    return place, power * np.array([1 + warmth, 1, 1 - warmth])


def _draw_paint(dice: _Dice, patterns: str, pale: Range, cell: Range, gloss: float = 0.0) -> Paint:
    """Colours from the palette, more or less pale; the second is another one or a shade of the
    first."""
    first, second = dice.pick(_PAINT_COLOURS), dice.pick(_PAINT_COLOURS)
    if dice() < 0.5:
        second = first * dice(0.45, 0.8) if first[1] > 0.45 else 1 - (1 - first) * dice(0.45, 0.8)
    white, jitter = dice(*pale), dice.point((-0.06,) * 3, (0.06,) * 3)
    mixed = np.array([first, second]) * (1 - white) + (0.93 * white + jitter)
    linear = np.minimum(np.maximum(mixed, 0.04), 0.96) ** 2
    return Paint(
        linear, dice.pick(patterns.split()), dice(*cell), dice.point((-9,) * 3, (9,) * 3), gloss
    )


def _draw_decal(dice: _Dice, room: AnyArray) -> Decal:
    axis = dice.pick((0, 1, 1, 2))
    middle, half = room * dice.point((0.25,) * 3, (0.75,) * 3), dice.point((0.25,) * 3, (0.7,) * 3)
    middle[axis] = room[axis] * (dice.pick((0, 1)), 1, 0)[axis]
    half *= 2 if axis == 2 else 1
    half[axis] = 0.05
    paint = _draw_paint(dice, "plain stripes clouds checker dots", (0.0, 0.4), (0.15, 0.5))
    return Decal(middle, half, dice() < 0.4, paint)


def _place_solids(
    dice: _Dice, room: AnyArray, eye: AnyArray, view: AnyArray, spread: float, by_colour: bool
) -> tuple[Solid, ...]:
    """Solids before the camera that do not touch: on the floor, on one another or in the air."""
    placed: list[Solid] = []
    wanted = dice.pick((2, 3, 4, 5, 6))
    while wanted > 0 or not placed:
        wanted -= 1
        solid = _draw_solid(dice, dice.pick(_LOTS))
        for _ in range(8):
            spot = _find_spot(dice, eye, view, spread, placed)
            spot[2] -= solid.low[2]
            low, high = solid.low + spot, solid.high + spot
            inside = low.min() > -1e-6 and (high < room).all() and high[2] < 0.76 * room[2]
            near = square(spot - eye) < (solid.radius + 0.7) ** 2
            if inside and not near and all(other.apart(low, high) for other in placed):
                placed.append(replace(solid, centre=spot, low=low, high=high))
                break
    return tuple(map(_repaint, placed)) if by_colour else tuple(placed)


def _repaint(solid: Solid) -> Solid:
    """In the colour of its kind and a darker one, in the pattern that it has."""
    colour = _KINDS[solid.kind]
    return replace(
        solid, paint=replace(solid.paint, colours=np.array([colour, 0.75 * colour]) ** 2)
    )


def _find_spot(
    dice: _Dice, eye: AnyArray, view: AnyArray, spread: float, placed: list[Solid]
) -> AnyArray:
    """What a solid may stand on: the floor before the camera, a flat top or, at times, nothing."""
    flat = [
        solid
        for solid in placed
        if solid.kind in ("box", "cylinder") and abs(solid.turn[2, 2]) > 0.999
    ]
    if flat and dice() < 0.35:
        base = dice.pick(flat)
        return np.array([base.centre[0], base.centre[1], base.high[2]])
    ahead, aside = dice(1.4, 5.5), dice(-0.9, 0.9) * spread
    x, y = -view[:2, 2] * (ahead / hypot(view[0, 2], view[1, 2]))
    return np.array(
        [eye[0] + x + aside * y, eye[1] + y - aside * x, dice(0.2, 1.2) if dice() < 0.15 else 0]
    )


def _draw_solid(dice: _Dice, kind: str) -> Solid:
    size = dice(0.24, 0.62)
    x, y, z = (size * dice(0.6, 1.2) for _ in range(3))
    shape = {
        "box": (x, y, z),
        "pyramid": (x, y, 1.3 * z),
        "cone": (x, x, 1.3 * z),
        "cylinder": (0.8 * x, 0.8 * x, z),
    }
    x, y, z = shape.get(kind, (size, size, size))
    pose, yaw, spin, tilt = dice(), dice(0, 2 * pi), 0.0, 0.0
    if pose > 0.75:
        spin, tilt = dice(0, 2 * pi), dice(0, pi)
    elif pose > 0.5:  # lying on its side, which slopes if it is pointed
        tilt = pi / 2 + (atan2(y, 2 * z) if kind in ("cone", "pyramid") else 0)
    stretch, turn = np.array([x, y, z]), _turn(yaw, tilt, spin)
    patterns = "plain plain plain stripes checker clouds dots tiles planks"
    paint = _draw_paint(dice, patterns, (0.0, 0.4), (0.12, 0.4), dice(0, 0.5))
    ends = _reach(kind, stretch, np.hstack([-turn.T, turn.T]))
    radius = {"sphere": x, "torus": x * (1 + RING), "cylinder": hypot(x, z), "cone": hypot(x, z)}
    return Solid(
        kind,
        stretch,
        turn,
        paint,
        np.zeros(3),
        -ends[:3],
        ends[3:],
        radius.get(kind, sqrt(square(stretch))),
    )


def _turn(yaw: float, tilt: float, spin: float) -> AnyArray:
    """About the upright axis after tilting about x after spinning about its own."""
    a, b, c, d, e, f = cos(yaw), sin(yaw), cos(tilt), sin(tilt), cos(spin), sin(spin)
    x = (a * e - b * c * f, -a * f - b * c * e, b * d)
    y = (b * e + a * c * f, a * c * e - b * f, -a * d)
    return np.array([x, y, (d * f, d * e, c)])


def _reach(kind: str, stretch: AnyArray, directions: AnyArray) -> AnyArray:
    """How far a solid extends from its centre in each direction (columns, along its own axes)."""
    local = stretch[:, None] * directions
    up, across, along = local[2], np.hypot(local[0], local[1]), np.abs(local[0]) + np.abs(local[1])
    if kind in ("cone", "pyramid"):
        return np.asarray(np.maximum(up, (across if kind == "cone" else along) - up))
    if kind in ("box", "cylinder"):
        return np.asarray((across if kind == "cylinder" else along) + np.abs(up))
    return np.asarray(
        np.hypot(across, up) if kind == "sphere" else across + RING * np.hypot(across, up)
    )
