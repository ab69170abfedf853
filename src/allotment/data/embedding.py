"""What there is to be seen in a picture as a row of numbers, so that pictures are learned from like
tables: an embedding computes them once, and no training changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

BY_PIXELS, BY_FEATURES, BY_NETWORK = "pixels", "features", "network"
"""what a learner may see of pictures: themselves, small features of our own, or what a trained
network answers"""
PICTURE_WAYS = (BY_PIXELS, BY_FEATURES, BY_NETWORK)
LARGEST_SEEN = {BY_PIXELS: 128, BY_FEATURES: 64, BY_NETWORK: 224}
"""pixels of a side that pictures are brought to at most, unless said"""
SMALLEST_SEEN = {BY_PIXELS: 1, BY_FEATURES: 1, BY_NETWORK: 32}
"""and at least"""
LARGEST_EMBEDDED_SIDE = 2048
"""pixels of a side that an embedding looks at: more takes memory and shows nothing new"""
PICTURE_GRID = 4
"""fields across and down, each with its own colours and edges"""
COLOUR_LEVELS = 4
"""of each colour in the histogram"""
EMBEDDED_DIGITS = 4
"""of an embedding's numbers, so that no machine's way of adding shows"""
_TURNS = (
    *((981, 195), (831, 556), (556, 831), (195, 981)),
    *((-195, 981), (-556, 831), (-831, 556), (-981, 195)),
)
"""directions at which one sort of edge ends and the next begins, times 1000: a sixteenth of a turn
apart"""

PictureBatch: TypeAlias = NDArray[np.uint8]
"""(n, 3, side, side)"""


class Embedding(Protocol):
    """Turns pictures into numbers, each picture for itself."""

    @property
    def name(self) -> str:
        """What tells it from others: one with other answers has another name."""

    @property
    def kind(self) -> str:
        """What it is, in a word."""

    @property
    def width(self) -> int:
        """Numbers of a picture."""

    @property
    def least_side(self) -> int:
        """Pixels on each side that it needs at least."""

    def embed(self, pictures: PictureBatch) -> NDArray[np.float32]:
        """(n, width), finite."""


OpenNetwork: TypeAlias = Callable[[Path], Embedding]
"""from a file of trained weights to what the network sees"""


@dataclass(frozen=True)
class SeenPictures:
    """How a campaign sees its pictures."""

    open: Callable[[], Embedding]
    side: int
    """pixels that they are brought to"""
    keep: Path | None = None
    """a folder for what was computed"""


class OwnFeatures:
    """Colours on a grid, how much they vary, a histogram of colours, and edges by their direction.

    All sums are of whole numbers, so that they are the same on every machine.
    """

    kind = "features"
    name = "features 1"
    least_side = 1
    width = PICTURE_GRID * PICTURE_GRID * (3 + 1 + len(_TURNS)) + COLOUR_LEVELS**3 + len(_TURNS)

    def embed(self, pictures: PictureBatch) -> NDArray[np.float32]:
        found = np.empty((len(pictures), self.width), dtype=np.float32)
        for place, picture in enumerate(pictures):
            found[place] = _describe(picture.astype(np.int64))
        return found


def _describe(picture: NDArray[np.int64]) -> NDArray[np.float64]:
    """The numbers of one picture (3, side, side), from 0 to 1 each."""
    grey = picture.sum(axis=0)
    pixels = _add_fields(np.ones_like(grey)[None])
    # fields that hold no pixel, of a tiny picture, are 0
    counts = np.maximum(pixels, 1)
    colours = _add_fields(picture) / (255 * counts)
    shades, squares = _add_fields(np.stack([grey, grey * grey]))
    spread = np.sqrt(np.maximum(squares * counts - shades * shades, 0)) / (765 * counts)
    edges = _add_fields(_find_edges(grey))
    strongest = max(1, int(edges.sum(axis=0).max()))
    whole = edges.sum(axis=(1, 2))
    parts = [
        colours,
        spread,
        np.sqrt(_count_colours(picture) / grey.size),
        np.sqrt(edges / strongest),
        whole / max(1, int(whole.sum())),
    ]
    return np.round(np.concatenate([part.ravel() for part in parts]), EMBEDDED_DIGITS)


def _add_fields(maps: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each field of the grid, of maps (n, height, width)."""
    height, width = maps.shape[1:]
    return np.asarray(_mark_fields(height).T @ maps @ _mark_fields(width))


def _mark_fields(side: int) -> NDArray[np.int64]:
    """(side, fields): 1 where a row or column of pixels is in the field."""
    fields = np.arange(side) * PICTURE_GRID // side
    return np.asarray(fields[:, None] == np.arange(PICTURE_GRID), dtype=np.int64)


def _find_edges(grey: NDArray[np.int64]) -> NDArray[np.int64]:
    """How strong the edge at each pixel is, in a map for each sort of direction."""
    down, right = np.zeros_like(grey), np.zeros_like(grey)
    down[1:-1] = grey[2:] - grey[:-2]
    right[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    strength = np.rint(np.sqrt(down * down + right * right)).astype(np.int64)
    # an edge from dark to light is one from light to dark seen from the other side
    turned = (down < 0) | ((down == 0) & (right < 0))
    down, right = np.where(turned, -down, down), np.where(turned, -right, right)
    # left of a direction is where the cross product with it is positive
    passed = np.zeros_like(grey)
    for x, y in _TURNS:
        passed += x * down - y * right > 0
    sort = passed % len(_TURNS)
    return np.stack([np.where(sort == each, strength, 0) for each in range(len(_TURNS))])


def _count_colours(picture: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pixels of each colour, when every channel has a few levels only."""
    red, green, blue = picture * COLOUR_LEVELS // 256
    places = (red * COLOUR_LEVELS + green) * COLOUR_LEVELS + blue
    return np.bincount(places.ravel(), minlength=COLOUR_LEVELS**3)
