"""Labels and predictions in pixels, laid over their pictures in colours, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray
from allotment.data.dataset import VOID, Target
from allotment.data.folder import palette
from allotment.formatting import number

Colours = NDArray[np.uint8]
"""(..., 3): red, green and blue"""

MOST_COLOURS = 12
"""classes that are named beside their colours"""
_DISTINCT = "4e79a7 f28e2b 59a14f e15759 edc948 76b7b2 b07aa1 9c755f ff9da7 1b9e77 a6761d 7570b3"
"""colours of the first classes, told apart by most eyes; later ones are those of PASCAL VOC"""
_FROM_NEAR_TO_FAR = "fff3c9 f9b45c dd5f55 8a2f73 33205c 0d0d26"
"""from near to far"""
_STRONG = "ff3b1f"
"""of edges and keypoints"""
_OPACITY = {"segmentation": 0.62, "depth": 0.9, "normals": 0.9, "edges": 1.0, "keypoints": 1.0}
"""of the colours over the picture; those of edges and keypoints fade where these are weak"""


def _read_colours(text: str) -> Colours:
    return np.array([list(bytes.fromhex(each)) for each in text.split()], dtype=np.uint8)


@dataclass(frozen=True)
class Overlay:
    """How values of a task are coloured, the same for all of its pictures."""

    target: Target
    low: float = 0.0
    high: float = 1.0
    """what the first and the last colour stand for; of edges and keypoints, none and the full
    one"""

    def lay(self, value: AnyArray, picture: AnyArray) -> Colours:
        """A value over its picture (3, height, width), of the same size: (height, width, 3)."""
        grey = picture.astype(np.float64).mean(axis=0)
        dim = np.repeat(grey[..., None], 3, axis=-1)
        colours, opacity = self._colour(value)
        if self.target.kind in ("edges", "keypoints"):
            dim = 0.6 * dim  # so that thin lines stand out
        mixed = dim + opacity[..., None] * (colours - dim)
        return np.asarray(np.clip(np.round(mixed), 0, 255).astype(np.uint8))

    def _colour(self, value: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Of each pixel the colour, and how much of it there is: none where nothing is known."""
        kind = self.target.kind
        known: AnyArray
        colours: AnyArray
        if kind == "segmentation":
            known = np.asarray(value != VOID)
            colours = class_colours(len(self.target.classes))[np.where(known, value, 0)]
        elif kind == "normals":
            known = np.asarray(~np.isnan(value).any(axis=0))
            colours = np.moveaxis((np.nan_to_num(value) + 1) / 2 * 255, 0, -1)
        else:
            known = ~np.isnan(value)
            shares = (np.nan_to_num(value) - self.low) / max(self.high - self.low, 1e-12)
            shares = np.clip(shares, 0, 1)
            if kind != "depth":
                strong = np.broadcast_to(_read_colours(_STRONG)[0], (*value.shape, 3))
                return strong.astype(np.float64), known * shares
            steps = _read_colours(_FROM_NEAR_TO_FAR).astype(np.float64)
            places = shares * (len(steps) - 1)
            channels = [np.interp(places, np.arange(len(steps)), each) for each in steps.T]
            colours = np.stack(channels, axis=-1)
        return colours.astype(np.float64), known * _OPACITY[kind]

    def list_colours(self, values: Sequence[AnyArray]) -> list[tuple[str, str]]:
        """What colours mean, as far as these values have them: words, and #rrggbb."""
        kind = self.target.kind
        if kind == "segmentation":
            counts = np.zeros(VOID + 1, dtype=np.int64)
            for value in values:
                counts += np.bincount(value.ravel().astype(np.int64), minlength=VOID + 1)
            classes = range(len(self.target.classes))
            seen = sorted((place for place in classes if counts[place]), key=lambda at: -counts[at])
            colours = class_colours(len(self.target.classes))
            return [
                (self.target.classes[place], _write(colours[place]))
                for place in seen[:MOST_COLOURS]
            ]
        if kind == "depth":
            steps = _read_colours(_FROM_NEAR_TO_FAR)
            near, far = number(float(f"{self.low:.2g}")), number(float(f"{self.high:.2g}"))
            return [(f"near ({near})", _write(steps[0])), (f"far ({far})", _write(steps[-1]))]
        if kind == "normals":
            words = ("x", "y", "z")
            lights = np.array([[255, 128, 128], [128, 255, 128], [128, 128, 255]], dtype=np.uint8)
            return [(each, _write(light)) for each, light in zip(words, lights, strict=True)]
        return [("strong", f"#{_STRONG}")]


def find_overlay(target: Target, values: Sequence[AnyArray]) -> Overlay:
    """The colours that show these labels well."""
    if target.kind in ("segmentation", "normals"):
        return Overlay(target)
    known = [value[~np.isnan(value)] for value in values]
    all_known = np.concatenate([np.zeros(0), *known])
    if not len(all_known):
        return Overlay(target)
    low, high = np.percentile(all_known, (1, 99))
    if target.kind != "depth":  # what is weak everywhere is to be seen all the same
        low = 0.0
    return Overlay(target, float(low), float(high) or 1.0)


def class_colours(count: int) -> Colours:
    """A colour for each of so many classes (count, 3)."""
    colours = palette().copy()
    first = _read_colours(_DISTINCT)
    colours[: len(first)] = first
    return np.asarray(colours[:count])


def _write(colour: AnyArray) -> str:
    return "#" + bytes(colour.tolist()).hex()
