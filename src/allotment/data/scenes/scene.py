"""What a scene is: a room with solids, paints, lights and a camera."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import square

FREQUENCY = {"box": 21, "sphere": 20, "cylinder": 20, "cone": 18, "pyramid": 16, "torus": 5}
"""of the kinds in a hundred solids: unequal, as in real data"""
SOLIDS = tuple(FREQUENCY)
SURFACES = ("wall", "floor", "ceiling", *SOLIDS)
PATTERNS = ("plain", "stripes", "checker", "dots", "tiles", "clouds", "planks")
RING = 0.36
"""thickness of a torus, as a share of its radius"""

# Every solid is a unit solid (radius or half width 1, z from -1 to 1), stretched and turned.
CORNERS = np.array([[x, y, z] for z in (-1.0, 1.0) for x in (-1, 1) for y in (-1, 1)])
_TOP = CORNERS[-1:] * (0, 0, 1)
_POINTS = {
    "box": CORNERS,
    "pyramid": np.vstack([CORNERS[:4], _TOP]),
    "cone": _TOP,
    "cylinder": np.vstack([_TOP, -_TOP]),
}
"""keypoints: corners, apexes, middles of round ends; a sphere's is where it faces the camera, a
torus has none"""


@dataclass(frozen=True)
class Paint:
    """Two colours and the pattern that mixes them."""

    colours: AnyArray
    pattern: str
    cell: float
    origin: AnyArray
    gloss: float = 0.0


@dataclass(frozen=True)
class Decal:
    """A rug or a poster: it changes colours only."""

    middle: AnyArray
    half: AnyArray
    round: bool
    paint: Paint


@dataclass(frozen=True)
class Solid:
    """A unit solid that is stretched, turned and moved to its place."""

    kind: str
    stretch: AnyArray
    turn: AnyArray
    """columns are its axes in the room"""
    paint: Paint
    centre: AnyArray
    low: AnyArray
    high: AnyArray
    """opposite corners of the upright box around it"""
    radius: float
    """of the ball around it"""

    def apart(self, low: AnyArray, high: AnyArray) -> bool:
        """Whether it is clear of an upright box."""
        return bool((self.low > high - 1e-6).any() or (self.high < low + 1e-6).any())

    def keypoints(self, eye: AnyArray) -> AnyArray:
        """Its points in the room, one in each row."""
        if self.kind == "sphere":
            toward = eye - self.centre
            return np.asarray([self.centre + toward * (self.radius / sqrt(square(toward)))])
        points = _POINTS.get(self.kind, np.zeros((0, 3)))
        return np.asarray(self.centre + (points * self.stretch) @ self.turn.T)


@dataclass(frozen=True)
class Scene:
    """All that a picture shows."""

    room: AnyArray
    eye: AnyArray
    view: AnyArray
    """columns are the camera's axes in the room"""
    spread: float
    """tangent of half the field of view"""
    lights: tuple[tuple[AnyArray, AnyArray], ...]
    """place and colour of the main one and of a weaker one"""
    paints: tuple[Paint, ...]
    """of walls, floor and ceiling"""
    decals: tuple[Decal, ...]
    solids: tuple[Solid, ...]
    ambient: float
    exposure: float
    grain: float

    def keypoints(self) -> AnyArray:
        """Corners of the room and points of the solids, visible or not."""
        return np.vstack(
            [(CORNERS + 1) / 2 * self.room, *(solid.keypoints(self.eye) for solid in self.solids)]
        )


def project(scene: Scene, points: AnyArray, size: int) -> AnyArray:
    """Row, column and distance of those points of the room that lie within the picture, if nothing
    hides them."""
    gap = points - scene.eye
    x, y, z = (gap @ scene.view).T
    scale = size / (2 * scene.spread * np.where(z < -0.05, -z, np.nan))
    middle = (size - 1) / 2
    places = np.stack([middle - y * scale, middle + x * scale, np.sqrt((gap**2).sum(1))])
    return places[:, (np.abs(places[:2] - middle) < size / 2).all(0)]
