"""Pictures in other sizes, cut out and mirrored, with labels that stay right.

Labels are in the form of their kind (see `KINDS`) for one picture: a mask is (height, width),
normals are (3, height, width), with x to the right. What a picture does not cover counts nothing:
VOID in masks, NaN in maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray
from allotment.data.dataset import KINDS, PIXEL_KINDS, VOID
from allotment.data.pixels import load_pillow
from allotment.errors import InputError, Mistake, suggest

FILL = (124, 116, 104)
"""the colour around a picture: about the mean of photographs, so that it is near 0 once inputs are
centred"""
LARGEST_CROP = 4096
"""pixels along a side"""
GREATEST = 16
"""zoom"""


@dataclass(frozen=True)
class Augment:
    """Random zooms, crops and mirror images, drawn anew at each call.

    >>> image = np.zeros((3, 40, 60), dtype=np.uint8)
    >>> stream = np.random.default_rng(0)
    >>> image, labels = Augment(crop=32).apply(image, {"depth": np.ones((40, 60))}, stream)
    >>> image.shape, labels["depth"].shape
    ((3, 32, 32), (32, 32))
    """

    crop: int
    """height and width of what comes out"""
    scales: tuple[float, float] = (0.5, 2.0)
    """the least and the greatest zoom"""
    flip: bool = True
    """whether half of the pictures are mirrored, left to right"""

    def __post_init__(self) -> None:
        wrong = []
        if not 1 <= self.crop <= LARGEST_CROP:
            wrong.append(
                Mistake("crop", f"{self.crop} is not a number of pixels from 1 to {LARGEST_CROP}")
            )
        if len(self.scales) != 2 or not 0 < self.scales[0] <= self.scales[1] <= GREATEST:
            what = f"{self.scales} is not a least and a greatest zoom, above 0 and up to {GREATEST}"
            wrong.append(Mistake("scales", what))
        if wrong:
            raise InputError(wrong)

    def apply(
        self, image: NDArray[np.uint8], labels: Mapping[str, AnyArray], rng: np.random.Generator
    ) -> tuple[NDArray[np.uint8], dict[str, AnyArray]]:
        """One random view of a picture (3, height, width) and of its labels, which are named by
        kind.

        Zooming in brings things closer, so depth is divided by the zoom; mirrored normals point the
        other way in x.
        """
        height, width = _check(image, labels)
        zoom = float(rng.uniform(*self.scales))
        size = [max(1, round(side * zoom)) for side in (height, width)]
        mirror = self.flip and bool(rng.random() < 0.5)
        starts = [
            int(rng.integers(min(0, side - self.crop), max(0, side - self.crop) + 1))
            for side in size
        ]
        rows, columns = (
            _source(np.arange(start, start + self.crop), new, old)
            for start, new, old in zip(starts, size, (height, width), strict=True)
        )
        seen = _look(image, size, starts, self.crop)
        if mirror:
            columns, seen = columns[::-1], np.ascontiguousarray(seen[:, :, ::-1])
        made = {
            kind: _view(kind, label, rows, columns, zoom, mirror) for kind, label in labels.items()
        }
        return seen, made


def _check(image: AnyArray, labels: Mapping[str, AnyArray]) -> tuple[int, int]:
    """The height and width that the picture and all labels have."""
    if image.ndim != 3 or image.shape[0] != 3 or image.dtype != np.uint8 or not image.size:
        what = f"{image.dtype} of the shape {image.shape}; uint8 of (3, height, width) is wanted"
        raise InputError([Mistake("image", what)])
    wrong = []
    size = image.shape[1:]
    for kind, label in labels.items():
        soft = kind == "segmentation" and np.ndim(label) == 3  # probabilities of classes
        wanted = (len(label), *size) if soft else size
        if kind == "normals":
            wanted = (3, *size)
        if kind not in KINDS:
            wrong.append(
                Mistake(f"labels {kind!r}", f"is not a kind of label; {suggest(kind, KINDS)}")
            )
        elif kind in PIXEL_KINDS and np.shape(label) != wanted:
            what = f"have the shape {np.shape(label)}; {wanted} fits the image"
            wrong.append(Mistake(f"labels {kind!r}", what))
        elif kind in PIXEL_KINDS and (kind == "segmentation" and not soft) != (
            label.dtype.kind in "iu"
        ):
            what = f"are {label.dtype}; masks are whole numbers, other maps are floats"
            wrong.append(Mistake(f"labels {kind!r}", what))
    if wrong:
        raise InputError(wrong)
    return size[0], size[1]


def _source(pixels: NDArray[np.int64], size: int, before: int) -> NDArray[np.int64]:
    """The pixel that lay, before the zoom, where each pixel of a side has its middle; -1 where
    there is none."""
    found = (2 * pixels + 1) * before // (2 * size)
    return np.where((pixels < 0) | (pixels >= size), -1, found)


def _pick(
    array: AnyArray, rows: NDArray[np.int64], columns: NDArray[np.int64], fill: Any
) -> AnyArray:
    picked = array[..., rows[:, None], columns]
    covered = (rows >= 0)[:, None] & (columns >= 0)
    return np.where(covered, picked, fill).astype(array.dtype, copy=False)


def _look(
    image: NDArray[np.uint8], size: list[int], starts: list[int], crop: int
) -> NDArray[np.uint8]:
    """The part of a zoomed picture that a crop covers; the rest is never made."""
    edges = [
        (max(0, start), min(start + crop, side)) for start, side in zip(starts, size, strict=True)
    ]
    (top, bottom), (left, right) = edges
    down, across = (
        [edge * old / new for edge in pair]
        for pair, old, new in zip(edges, image.shape[1:], size, strict=True)
    )
    part = resize(image, bottom - top, right - left, (across[0], down[0], across[1], down[1]))
    seen = _blank(crop)
    seen[:, top - starts[0] : bottom - starts[0], left - starts[1] : right - starts[1]] = part
    return seen


def _blank(side: int) -> NDArray[np.uint8]:
    return np.broadcast_to(np.array(FILL, dtype=np.uint8)[:, None, None], (3, side, side)).copy()


def nothing_of(kind: str, dtype: np.dtype[Any]) -> Any:
    """What a pixel of a label holds that counts nothing: classes may be given as probabilities, of
    which none is above 0 then."""
    if kind != "segmentation":
        return np.nan
    return VOID if dtype.kind in "iu" else 0


def _view(
    kind: str,
    label: AnyArray,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    zoom: float,
    mirror: bool,
) -> AnyArray:
    if kind not in PIXEL_KINDS:
        return label
    seen = _pick(label, rows, columns, nothing_of(kind, label.dtype))
    if kind == "segmentation":
        return seen
    if kind == "normals" and mirror:
        seen[0] *= -1
    return seen / zoom if kind == "depth" else seen


# Fixed squares: all of a picture, its longer side as long as the square


def fit_image(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """All of a picture in the middle of a square (3, side, side)."""
    rows, columns = frame_of(image.shape[1], image.shape[2], side)
    square = _blank(side)
    square[:, rows, columns] = resize(image, rows.stop - rows.start, columns.stop - columns.start)
    return square


def fit_label(kind: str, label: AnyArray, side: int) -> AnyArray:
    """The label of a picture after `fit_image`: the nearest pixel's class, or the mean of what is
    known of an area."""
    if kind not in PIXEL_KINDS:
        return label
    rows, columns = frame_of(label.shape[-2], label.shape[-1], side)
    square = np.full(
        (*label.shape[:-2], side, side), nothing_of(kind, label.dtype), dtype=label.dtype
    )
    size = (rows.stop - rows.start, columns.stop - columns.start)
    if size == label.shape[-2:]:
        square[..., rows, columns] = label
    elif kind == "segmentation":
        down, across = (
            _source(np.arange(new), new, old) for new, old in zip(size, label.shape, strict=True)
        )
        square[rows, columns] = label[down[:, None], across]
    else:
        square[..., rows, columns] = _average(kind, label, size)
    return square


def frame_of(height: int, width: int, side: int) -> tuple[slice, slice]:
    """The rows and columns of a square that a picture takes up."""
    longer = max(height, width)
    sizes = [max(1, round(length * side / longer)) for length in (height, width)]
    starts = [(side - size) // 2 for size in sizes]
    return slice(starts[0], starts[0] + sizes[0]), slice(starts[1], starts[1] + sizes[1])


def _average(kind: str, label: AnyArray, size: tuple[int, int]) -> AnyArray:
    """Mean over the known part of each new pixel's area; unknown where that is less than half."""
    channels = label.reshape(-1, *label.shape[-2:])
    known = np.asarray(~np.isnan(channels).any(axis=0))
    share = _shrink(known.astype(np.float32), size)
    filled = np.where(known, channels, 0).astype(np.float32)
    sums = np.stack([_shrink(each, size) for each in filled])
    if kind == "normals":
        lengths = np.sqrt((sums * sums).sum(axis=0))
        share = np.where(lengths > 0.25 * share, share, 0)  # directions that cancel out are none
        means = sums / np.maximum(lengths, 1e-6)
    else:
        means = sums / np.maximum(share, 1e-6)
    return np.where(share >= 0.5, means, np.nan).reshape(*label.shape[:-2], *size)


def _shrink(values: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    Image = load_pillow()
    return np.asarray(Image.fromarray(values).resize((size[1], size[0]), Image.Resampling.BOX))


def resize(
    image: NDArray[np.uint8],
    height: int,
    width: int,
    box: tuple[float, float, float, float] | None = None,
) -> NDArray[np.uint8]:
    """A picture (3, height, width), or the box (left, top, right, bottom) of it, smoothly in
    another size."""
    if image.shape[1:] == (height, width) and box in (None, (0, 0, width, height)):
        return image
    Image = load_pillow()
    flat = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
    return np.asarray(flat.resize((width, height), Image.Resampling.BILINEAR, box)).transpose(
        2, 0, 1
    )
