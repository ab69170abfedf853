"""Several scenes at a time, because numpy is slow at short arrays.

Rays are columns of (3, n) arrays, scene after scene; `counts` says how many belong to each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import table
from allotment.data.scenes.scene import PATTERNS, SOLIDS, Paint, Scene, Solid


class Stage:
    """Scenes side by side, in float32 arrays whose last axis is over scenes, solids or paints.

    Paints are numbered: three of each scene (walls, floor, ceiling), then one of each solid, then
    one of each decal.
    """

    def __init__(self, scenes: Sequence[Scene]):
        self.scenes = scenes
        self.room, self.eye, self.view = (
            table([getattr(s, k) for s in scenes]) for k in ("room", "eye", "view")
        )
        self.spread, self.ambient, self.exposure = table(
            [(s.spread, s.ambient, s.exposure) for s in scenes]
        )
        self.places, self.tints = table([s.lights for s in scenes]).swapaxes(0, 1)
        self.owner = np.repeat(np.arange(len(scenes)), [len(scene.solids) for scene in scenes])
        self.decals = [
            (index, decal) for index, scene in enumerate(scenes) for decal in scene.decals
        ]
        self.first_solid = 3 * len(scenes)
        self.first_decal = self.first_solid + len(self.owner)
        solids = [solid for scene in scenes for solid in scene.solids]
        paints = [paint for scene in scenes for paint in scene.paints]
        self._set_solids(solids)
        self._set_paints(
            [
                *paints,
                *(solid.paint for solid in solids),
                *(decal.paint for _, decal in self.decals),
            ]
        )

    def _set_solids(self, solids: Sequence[Solid]) -> None:
        self.kind = np.array([SOLIDS.index(solid.kind) for solid in solids], dtype=np.uint8)
        self.centre = table([solid.centre for solid in solids])
        self.stretch = table([solid.stretch for solid in solids])
        self.turn = table([solid.turn for solid in solids])
        self.inward = self.turn.swapaxes(0, 1) / self.stretch[:, None]
        self.radius = table([solid.radius for solid in solids])

    def _set_paints(self, paints: Sequence[Paint]) -> None:
        self.base, self.other = table([paint.colours for paint in paints])
        self.origin = table([paint.origin for paint in paints])
        self.cell, self.gloss = table([(paint.cell, paint.gloss) for paint in paints])
        self.pattern = np.array([PATTERNS.index(paint.pattern) for paint in paints], dtype=np.uint8)

    def parts(self, counts: AnyArray) -> list[slice]:
        """Which rays belong to each solid's scene."""
        parts = [slice(*pair) for pair in pairwise([0, *np.cumsum(counts).tolist()])]
        return [parts[owner] for owner in self.owner.tolist()]
