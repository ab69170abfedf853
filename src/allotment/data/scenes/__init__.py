"""Pictures of solids in a room, rendered here, so that every label is exact and nothing has to be
downloaded.

Room units are about a metre: x to the right, y into the room, z up. Camera coordinates: x right, y
up, z backwards. Per pixel there are only sums, products, quotients and square roots, which are
rounded alike everywhere (no BLAS, no sines): the bytes are the same on every machine but for the
last bit of an angle drawn for a scene.
"""

from allotment.data.scenes.album import SMALLEST_PICTURE, make_scenes, montage
from allotment.data.scenes.drawing import draw_scene
from allotment.data.scenes.labels import SCENE_TARGETS, VISIBLE
from allotment.data.scenes.scene import (
    FREQUENCY,
    PATTERNS,
    RING,
    SOLIDS,
    SURFACES,
    Decal,
    Paint,
    Scene,
    Solid,
    project,
)

__all__ = [
    "FREQUENCY",
    "PATTERNS",
    "RING",
    "SCENE_TARGETS",
    "SMALLEST_PICTURE",
    "SOLIDS",
    "SURFACES",
    "VISIBLE",
    "Decal",
    "Paint",
    "Scene",
    "Solid",
    "draw_scene",
    "make_scenes",
    "montage",
    "project",
]
