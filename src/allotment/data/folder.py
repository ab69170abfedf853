"""Data sets of images that lie in folders: decoded when they are asked for, and kept as small as
they come while there is room."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray
from allotment.data.augment import LARGEST_CROP, fit_image, fit_label, frame_of
from allotment.data.dataset import (
    PIXEL_KINDS,
    VOID,
    BaseData,
    Dataset,
    Frame,
    Instances,
    Size,
    Target,
)
from allotment.data.pixels import open_inside, read_rgb, read_size, shown
from allotment.errors import InputError, Mistake, suggest

LabelReader = Callable[[Path, str], AnyArray]
"""from the root and a path below it to a label in the form of its kind, in the image's own size"""
MOST_OF_A_SORT = 10
"""mistakes of one sort that are listed; the others are counted"""
LARGEST_ARRAY = 1 << 36
"""bytes of one array in memory"""
KEPT_BYTES = 1 << 31
"""of a data set's images and labels that stay decoded; others are decoded each time"""
_IMAGES = ""
"""stands for the images where others are tasks"""


class MistakeTally:
    """Mistakes by sort: the first few of each, and how many there are."""

    def __init__(self) -> None:
        self._first: dict[str, list[Mistake]] = {}
        self._count: dict[str, int] = {}
        self._seen: set[tuple[str, str]] = set()

    def add(self, sort: str, where: str, what: str, line: int | None = None) -> None:
        self._count[sort] = self._count.get(sort, 0) + 1
        first = self._first.setdefault(sort, [])
        if len(first) < MOST_OF_A_SORT:
            first.append(Mistake(where, what, line))

    def attempt(self, step: Callable[..., Any], *given: Any) -> Any:
        """What a step gives, or None and its mistakes in the tally; a mistake that is there already
        counts once."""
        try:
            return step(*given)
        except InputError as error:
            for mistake in error.mistakes:
                if (mistake.where, mistake.what) not in self._seen:
                    self._seen.add((mistake.where, mistake.what))
                    self.add(
                        re.sub(r"\d+", "0", mistake.what), mistake.where, mistake.what, mistake.line
                    )
            return None

    def raise_all(self) -> None:
        found = []
        for sort, first in self._first.items():
            found += first
            if more := self._count[sort] - len(first):
                found.append(Mistake("", f"and {more} more like the last"))
        if found:
            raise InputError(found)


class KeptSquares:
    """Decoded images and labels: the first ones that were wanted, as many as there is room for.

    None makes room for another. Trainings go round and round, and whatever is always thrown out
    for the next would never be found again.
    """

    def __init__(self, room: int):
        self._left = room
        self._squares: dict[tuple[str, int], AnyArray] = {}

    def get(self, key: str, instance: int) -> AnyArray | None:
        return self._squares.get((key, instance))

    def add(self, key: str, instance: int, square: AnyArray) -> None:
        """Keep it, if there is room."""
        if square.nbytes <= self._left:
            self._left -= square.nbytes
            self._squares[key, instance] = square


@dataclass(frozen=True, eq=False)
class FolderData(BaseData):
    """Images and labels below a folder, as squares of `side` pixels: whole pictures, padded where
    they are not square.

    `image` and `label` give one of them in its own size, for training on random crops.
    """

    name: str
    root: Path
    side: int
    targets: tuple[Target, ...]
    image_files: tuple[str, ...] = field(repr=False)
    label_files: Mapping[str, tuple[str, ...]] = field(repr=False)
    """of each task and instance; empty where there is no label"""
    readers: Mapping[str, LabelReader] = field(repr=False)
    """of each task"""
    ids: tuple[str, ...] = field(repr=False)
    groups: NDArray[Any] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    """what is worth knowing, for people"""
    _kept: KeptSquares = field(
        default_factory=lambda: KeptSquares(KEPT_BYTES), init=False, repr=False
    )

    def __post_init__(self) -> None:
        check_side(self.side)

    is_slow_to_hash = True

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.image_files

    @property
    def size(self) -> int:
        return len(self.image_files)

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' bytes, so it takes as long as reading all of them."""
        digest = hashlib.sha256(repr(self._identity).encode())
        for files in (
            self.image_files,
            *(self.label_files[target.name] for target in self.targets),
        ):
            for path in files:
                digest.update(f"{path}\0".encode())
                if path:
                    with open_inside(self.root, path) as file:
                        digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    @property
    def _identity(self) -> tuple[Any, ...]:
        """What is not in the files, but belongs to the data."""
        groups = None if self.groups is None else tuple(map(str, self.groups))
        return (self.name, self.targets, self.side, self.ids, groups)

    def known(self, task: str) -> NDArray[np.bool_]:
        return np.array(
            [bool(path) for path in self.label_files[self._target(task).name]], dtype=bool
        )

    def inputs(self, instances: Instances) -> NDArray[np.uint8]:
        return self._take(_IMAGES, instances)

    def values(self, task: str, instances: Instances) -> AnyArray:
        taken = self._take(self._target(task).name, instances)
        return taken.astype(np.float32) if taken.dtype == np.float16 else taken

    def image(self, instance: int) -> NDArray[np.uint8]:
        """One image (3, height, width) in its own size."""
        return read_rgb(self.root, self.image_files[instance])

    def label(self, task: str, instance: int) -> AnyArray:
        """One label in the form of its kind, in the image's own size; nothing in it counts if it is
        not known."""
        target, path = self._target(task), self.label_files[task][instance]
        size = read_size(self.root, self.image_files[instance])
        if not path:
            return _unknown(target, size)
        label = self.readers[task](self.root, path)
        if target.kind in PIXEL_KINDS and label.shape[-2:] != size:
            height, width = label.shape[-2:]
            what = (
                f"has {width} x {height} pixels, and its image {size[1]} x {size[0]}; it should be"
                " made for the image"
            )
            raise InputError([Mistake(shown(path), what)])
        return label

    def picture_size(self, instance: int) -> Size:
        return read_size(self.root, self.image_files[instance])

    def fit(self, task: str, label: AnyArray) -> AnyArray:
        return fit_label(self._target(task).kind, label, self.side)

    def frame(self, instance: int) -> Frame:
        return frame_of(*self.picture_size(instance), self.side)

    def check(self) -> None:
        """Decode everything; raises InputError with all that is wrong."""
        wrong = MistakeTally()
        for key in (_IMAGES, *(target.name for target in self.targets)):
            for instance in range(self.size):
                wrong.attempt(self._find_square, key, instance)
        wrong.raise_all()

    def _target(self, task: str) -> Target:
        for target in self.targets:
            if target.name == task:
                return target
        names = [target.name for target in self.targets]
        raise InputError(
            [Mistake(f"task {task!r}", f"is not in {self.name}; {suggest(task, names)}")]
        )

    def _take(self, key: str, instances: Instances) -> AnyArray:
        """The images or a task's labels of these instances, in one array."""
        places = np.asarray(instances, dtype=np.int64)
        taken = self._reserve(key, places.size)
        wrong = MistakeTally()
        for at, instance in enumerate(places.ravel().tolist()):
            square = wrong.attempt(self._find_square, key, instance)
            if square is not None:
                taken[at] = square
        wrong.raise_all()
        return taken.reshape(*places.shape, *taken.shape[1:])

    def _find_square(self, key: str, instance: int) -> AnyArray:
        """An image or a label as a square, as it is kept."""
        found = self._kept.get(key, instance)
        if found is None:
            # a copy, since it may be a part of something larger that would be kept with it
            found = np.array(self._square(key, instance), self._forms[key][1], order="C")
            self._kept.add(key, instance, found)
        return found

    def _square(self, key: str, instance: int) -> AnyArray:
        if key == _IMAGES:
            return fit_image(self.image(instance), self.side)
        return self.fit(key, self.label(key, instance))

    @cached_property
    def _forms(self) -> dict[str, tuple[tuple[int, ...], type]]:
        """Shape and numbers of the images and of each task's labels, as they are kept."""
        found: dict[str, tuple[tuple[int, ...], type]] = {
            _IMAGES: ((3, self.side, self.side), np.uint8)
        }
        for target in self.targets:
            empty = _unknown(target, (self.side, self.side))
            is_map = target.kind in PIXEL_KINDS and empty.dtype.kind == "f"
            found[target.name] = empty.shape, np.float16 if is_map else empty.dtype.type
        return found

    def _reserve(self, key: str, count: int) -> AnyArray:
        """Memory for so many images or labels of a task."""
        shape, dtype = self._forms[key]
        if count * int(np.prod(shape)) * np.dtype(dtype).itemsize > LARGEST_ARRAY:
            what = (
                f"{self.side} pixels make {count} images larger than {LARGEST_ARRAY >> 30} GB;"
                " choose a smaller one"
            )
            raise InputError([Mistake("side", what)])
        return np.empty((count, *shape), dtype=dtype)


def check_side(side: int) -> None:
    """Raises InputError unless it is a number of pixels."""
    if not isinstance(side, int) or not 1 <= side <= LARGEST_CROP:
        raise InputError(
            [Mistake("side", f"{side!r} is not a number of pixels from 1 to {LARGEST_CROP}")]
        )


def _unknown(target: Target, size: tuple[int, int]) -> AnyArray:
    """A label in which nothing counts."""
    if target.kind == "segmentation":
        return np.full(size, VOID, dtype=np.uint8)
    if target.kind in PIXEL_KINDS:
        return np.full((3, *size) if target.kind == "normals" else size, np.nan, dtype=np.float32)
    return np.full(len(target.classes) or (), np.nan, dtype=np.float32)


# What is there, for the eye

_UNSEEN = (96, 0, 64)
"""the colour of pixels that count nothing"""


def montage(data: Dataset, instances: Iterable[int]) -> NDArray[np.uint8]:
    """A row for each instance: its image, then each label as a picture (height, width, 3).

    Classes are a field each, coloured where they are there. Near is light; normals show x as red, y
    as green and z as blue; edges and keypoints are dark where they are strong.
    """
    places = np.asarray(list(instances), dtype=np.int64)
    images = data.inputs(places)
    columns = [images.transpose(0, 2, 3, 1)]
    for target in data.targets:
        values = data.values(target.name, places)
        columns.append(np.stack([_paint(target, value, images.shape[-1]) for value in values]))
    tiles = np.pad(
        np.stack(columns, axis=1), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=255
    )
    rows, count, height, width, _ = tiles.shape
    return np.ascontiguousarray(
        tiles.transpose(0, 2, 1, 3, 4).reshape(rows * height, count * width, 3)
    )


def _paint(target: Target, value: AnyArray, side: int) -> NDArray[np.uint8]:
    if target.kind == "segmentation":
        return palette()[value]
    if target.kind == "multilabel":
        return _fields(value, side)
    if target.kind == "normals":
        shade, known = np.moveaxis((value + 1) / 2, 0, -1), np.asarray(~np.isnan(value).any(axis=0))
    else:
        known = ~np.isnan(value)
        low, high = np.percentile(value[known], (1, 99)) if known.any() else (0, 1)
        grey = 1 - (value - (low if target.kind == "depth" else 0)) / max(high - low, 1e-6)
        shade = np.stack([grey] * 3, axis=-1)
    painted = np.clip(np.nan_to_num(shade), 0, 1) * 255
    return np.where(known[..., None], painted, _UNSEEN).astype(np.uint8)


def _fields(value: AnyArray, side: int) -> NDArray[np.uint8]:
    """Fields of a grid, row by row, in the classes' colours."""
    across = int(np.ceil(np.sqrt(len(value))))
    place = np.arange(side) * across // side
    classes = place[:, None] * across + place
    inner = np.minimum(classes, len(value) - 1)
    here = (classes < len(value)) & (value[inner] == 1)
    return np.where(here[..., None], palette()[inner + 1], 32).astype(np.uint8)


def palette() -> NDArray[np.uint8]:
    """The colours of PASCAL VOC (256, 3): the bits of a number, dealt in turn to red, green and
    blue."""
    numbers = np.arange(256)
    colours = np.zeros((256, 3), dtype=np.uint8)
    for bit in range(8):
        colours[:, bit % 3] |= ((numbers >> bit & 1) << (7 - bit // 3)).astype(np.uint8)
    return colours
