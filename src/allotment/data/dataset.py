"""Instances, what each task wants to know of them, and where that is known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from allotment.errors import InputError, Mistake, suggest

if TYPE_CHECKING:
    from allotment.data.features import FeatureColumn
    from allotment.data.labels import Split

Instances = NDArray[np.int64]
Size = tuple[int, int]
"""of a picture: height, width"""
Frame = tuple[slice, slice]
"""rows and columns of a picture"""
Known = Mapping[str, NDArray[np.bool_]]
"""of each task, which instances have a label"""
LabelArrays = Mapping[str, Mapping[int, NDArray[Any]]]
"""of each task, labels by instance, as large as the instance's own picture"""
Same = TypeVar("Same", bound="BaseData")

KINDS: dict[str, str] = {
    "classification": "one class of several: whole numbers (n,)",
    "multilabel": "any of several classes: 0, 1 or NaN for unknown (n, classes)",
    "regression": "numbers (n,)",
    "segmentation": "a class for each pixel, 255 where it does not count (n, height, width)",
    "depth": "a distance for each pixel, NaN where there is none (n, height, width)",
    "normals": "a unit vector for each pixel, NaN where there is none (n, 3, height, width)",
    "edges": "strength of an edge at each pixel, 0 to 1, NaN where unknown (n, height, width)",
    "keypoints": (
        "strength of a keypoint at each pixel, 0 to 1, NaN where unknown (n, height, width)"
    ),
}
"""what a task can predict, and the form of its labels"""
WITH_CLASSES = ("classification", "multilabel", "segmentation")
PIXEL_KINDS = ("segmentation", "depth", "normals", "edges", "keypoints")
"""kinds with a label for each pixel; the others say something of the whole instance"""
NORMAL_SLACK = 0.25
"""how far from 1 the length of a normal may be: blends of neighbours are shorter, blends with
nothing far shorter"""
VOID = 255
"""a pixel of a segmentation mask that does not count"""


@dataclass(frozen=True)
class Target:
    """What one task predicts: its kind, its classes, how it is scored and how much its loss counts.

    >>> Target("species", "classification", classes=("cat", "dog")).kind
    'classification'
    """

    name: str
    kind: str
    classes: tuple[str, ...] = ()
    metric: str = ""
    """how it is scored; the kind's usual one if empty"""
    loss: str = ""
    """what training lowers: "l1" for numbers and maps, the kind's usual one if empty"""
    loss_weight: float = 1.0
    """the paper's lambda (Eq. 8): the same in probing and in retraining because it lives here
    only"""

    def __post_init__(self) -> None:
        mistakes = []
        if not isinstance(self.name, str) or not self.name.strip():
            mistakes.append(Mistake("name", f"{self.name!r} is not a name"))
        if self.kind not in KINDS:
            mistakes.append(
                Mistake("kind", f"unknown kind {self.kind!r}; {suggest(self.kind, KINDS)}")
            )
        elif (self.kind in WITH_CLASSES) != bool(self.classes):
            what = "needs its classes" if self.kind in WITH_CLASSES else "has no classes"
            mistakes.append(Mistake("classes", f"a task of kind {self.kind} {what}"))
        if self.kind == "segmentation" and len(self.classes) > VOID:
            mistakes.append(
                Mistake("classes", f"{len(self.classes)} classes; a mask holds at most {VOID}")
            )
        if self.loss not in ("", "l1") or (self.loss and self.kind in WITH_CLASSES):
            mistakes.append(Mistake("loss", f"{self.loss!r} is not a loss of the kind {self.kind}"))
        if not 0 <= self.loss_weight < float("inf"):
            mistakes.append(
                Mistake("loss_weight", f"{self.loss_weight} is not a finite number of 0 or more")
            )
        if mistakes:
            raise InputError(
                [mistake.under(f"task {str(self.name)[:40]!r}") for mistake in mistakes]
            )
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))


@runtime_checkable
class Dataset(Protocol):
    """Instances, what is known of them, and what they look like.

    Instances are the whole numbers from 0 to `size` - 1. A data set of your own inherits
    `BaseData`, which has the usual answers to all that comes after `values`.
    """

    @property
    def name(self) -> str: ...

    @property
    def targets(self) -> tuple[Target, ...]: ...

    @property
    def size(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """Changes when anything in the data does."""

    def known(self, task: str) -> NDArray[np.bool_]:
        """Which instances have a label of the task."""

    def inputs(self, instances: Instances) -> NDArray[Any]:
        """Features (n, features) as float32, or images (n, 3, height, width) as uint8."""

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        """Labels of the task, in the form of its kind."""

    @property
    def groups(self) -> NDArray[Any] | None:
        """Of each instance; those of one group never fall into two splits."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the instances, for orders and deliveries; none where they go by their
        numbers."""

    @property
    def files(self) -> tuple[str, ...]:
        """Of each instance, the file that shows people what to label; none if there are none."""

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """What became of the columns of a table; none for anything else."""

    @property
    def guessed(self) -> tuple[str, ...]:
        """Tasks whose kind nobody said."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed while it was read, for people."""

    @property
    def is_in_memory(self) -> bool:
        """Whether all inputs and labels are there at once, so that any part costs nothing."""

    @property
    def is_slow_to_hash(self) -> bool:
        """Whether the fingerprint takes minutes, as that of many files: campaigns go without."""

    def split(self, seed: int, validation: float = 0.15, test: float = 0.15) -> Split:
        """The parts, by seed; data with a test part of their own do not ask for the share."""

    def picture_size(self, instance: int) -> Size | None:
        """Of the instance's own picture, which may be larger than its input; None if it has
        none."""

    def image(self, instance: int) -> NDArray[Any]:
        """One input in its own size."""

    def picture(self, instance: int) -> NDArray[Any] | None:
        """What people see of it (3, height, width), as bytes; None where there is no picture."""

    def label(self, task: str, instance: int) -> NDArray[Any]:
        """One label in the form of its kind, as large as the instance's own picture."""

    def fit(self, task: str, label: NDArray[Any]) -> NDArray[Any]:
        """A label as large as the instance's own picture, in the size that `values` has."""

    def frame(self, instance: int) -> Frame:
        """The part of its input that its own picture takes up; all of it unless it was padded."""

    def loaded(self) -> Dataset:
        """The same in memory, if it is small enough to be there."""

    def with_targets(self, targets: tuple[Target, ...]) -> Dataset:
        """The same with some of its tasks, which may be scored in another way."""

    def with_labels(self, known: Known, given: LabelArrays, fingerprint: str) -> Dataset:
        """The same with no labels but the known ones, some of which are given here."""


class BaseData:
    """The usual answers of a data set: no groups, names or files, and inputs as they are."""

    groups: NDArray[Any] | None = None
    ids: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    columns: tuple[FeatureColumn, ...] = ()
    guessed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_in_memory: bool = False
    is_slow_to_hash: bool = False

    def split(self: Dataset, seed: int, validation: float = 0.15, test: float = 0.15) -> Split:
        from allotment.data.labels import split  # which is about data sets

        return split(self, seed, validation, test)

    def picture_size(self: Dataset, instance: int) -> Size | None:
        shape = self.inputs(np.array([instance])).shape
        return (shape[2], shape[3]) if len(shape) == 4 else None

    def image(self: Dataset, instance: int) -> NDArray[Any]:
        return np.asarray(self.inputs(np.array([instance]))[0])

    def picture(self: Dataset, instance: int) -> NDArray[Any] | None:
        return None if self.picture_size(instance) is None else self.image(instance)

    def label(self: Dataset, task: str, instance: int) -> NDArray[Any]:
        return np.asarray(self.values(task, np.array([instance]))[0])

    def fit(self, task: str, label: NDArray[Any]) -> NDArray[Any]:
        return label

    def frame(self, instance: int) -> Frame:
        return slice(None), slice(None)

    def loaded(self: Dataset) -> Dataset:
        return self

    def with_targets(self: Same, targets: tuple[Target, ...]) -> Same:
        changed: Same = replace(self, targets=targets)  # type: ignore[type-var]
        return changed

    def with_labels(self: Dataset, known: Known, given: LabelArrays, fingerprint: str) -> Dataset:
        return Overlaid(self, known, given, fingerprint)


class Overlaid(BaseData):
    """Data with only some labels known, given ones in the place of their own."""

    def __init__(self, base: Dataset, known: Known, given: LabelArrays, fingerprint: str):
        self._base, self._known, self._given = base, known, given
        self.fingerprint = fingerprint
        self.name, self.targets, self.size = base.name, base.targets, base.size
        self.groups, self.ids, self.files = base.groups, base.ids, base.files
        self.columns, self.guessed, self.notes = base.columns, base.guessed, base.notes
        self.is_slow_to_hash = base.is_slow_to_hash

    def known(self, task: str) -> NDArray[np.bool_]:
        return self._known[task]

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return np.asarray(self._base.inputs(instances))

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        values = np.array(self._base.values(task, instances))
        given = self._given.get(task, {})
        for place, instance in enumerate(np.asarray(instances).tolist()):
            if instance in given:
                values[place] = self.fit(task, given[instance])
        return values

    def split(self, seed: int, validation: float = 0.15, test: float = 0.15) -> Split:
        return self._base.split(seed, validation, test)

    def picture_size(self, instance: int) -> Size | None:
        return self._base.picture_size(instance)

    def image(self, instance: int) -> NDArray[Any]:
        return self._base.image(instance)

    def picture(self, instance: int) -> NDArray[Any] | None:
        return self._base.picture(instance)

    def label(self, task: str, instance: int) -> NDArray[Any]:
        given = self._given.get(task, {})
        return given[instance] if instance in given else self._base.label(task, instance)

    def fit(self, task: str, label: NDArray[Any]) -> NDArray[Any]:
        return self._base.fit(task, label)

    def frame(self, instance: int) -> Frame:
        return self._base.frame(instance)

    def with_targets(self, targets: tuple[Target, ...]) -> Overlaid:
        # what trains is told apart by the labels, which are the same
        base = self._base.with_targets(targets)
        return Overlaid(base, self._known, self._given, self.fingerprint)


@dataclass(frozen=True, eq=False)
class ArrayData(BaseData):
    """A data set held in memory."""

    name: str
    targets: tuple[Target, ...]
    features: NDArray[Any] = field(repr=False)
    labels: Mapping[str, NDArray[Any]] = field(repr=False)
    missing: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)
    """of each task, where there is no label; nowhere if left out"""
    groups: NDArray[Any] | None = field(default=None, repr=False)
    ids: tuple[str, ...] = field(default=(), repr=False)
    """names of the instances, for people"""
    is_in_memory = True

    def __post_init__(self) -> None:
        mistakes = []
        for target in self.targets:
            if target.name not in self.labels:
                mistakes.append(Mistake(f"task {target.name!r}", "has no labels"))
            elif len(self.labels[target.name]) != self.size:
                found = len(self.labels[target.name])
                mistakes.append(
                    Mistake(f"task {target.name!r}", f"{found} labels for {self.size} instances")
                )
        if self.groups is not None and len(self.groups) != self.size:
            mistakes.append(Mistake("groups", f"{len(self.groups)} for {self.size} instances"))
        if mistakes:
            raise InputError(mistakes)

    @property
    def size(self) -> int:
        return len(self.features)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.name, self.targets)).encode())
        arrays = [self.features, *(self.labels[t.name] for t in self.targets)]
        arrays += [self.missing[t.name] for t in self.targets if t.name in self.missing]
        for array in arrays if self.groups is None else [*arrays, self.groups.astype(str)]:
            digest.update(repr((array.shape, array.dtype.str)).encode())
            whole = np.ascontiguousarray(array)
            # without a copy, which of a wide table takes as much memory again
            has_bytes = whole.size > 0 and whole.ndim > 0
            digest.update(whole.view(np.uint8).data if has_bytes else whole.tobytes())
        return digest.hexdigest()

    def known(self, task: str) -> NDArray[np.bool_]:
        missing = self.missing.get(task)
        return np.ones(self.size, dtype=bool) if missing is None else ~missing

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.features[instances])

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.labels[task][instances])

    def picture_size(self, instance: int) -> Size | None:
        shape = self.features.shape
        return (shape[2], shape[3]) if len(shape) == 4 else None

    def with_labels(self, known: Known, given: LabelArrays, fingerprint: str) -> ArrayData:
        labels = {task: lay_over(self.labels[task], given.get(task, {})) for task in known}
        missing = {task: ~there for task, there in known.items()}
        return replace(self, labels=labels, missing=missing)


def lay_over(labels: NDArray[Any], given: Mapping[int, NDArray[Any]]) -> NDArray[Any]:
    """The labels, with given ones in the place of some."""
    laid = np.array(labels)
    for place, value in given.items():
        laid[place] = value
    return laid
