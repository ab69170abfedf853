"""Instances, what each task wants to know of them, and where that is known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from allotment.errors import InputError, Mistake, suggest

Instances = NDArray[np.int64]

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
    """What a built-in learner reads. Instances are the whole numbers from 0 to `size` - 1."""

    @property
    def name(self) -> str: ...

    @property
    def targets(self) -> tuple[Target, ...]: ...

    @property
    def size(self) -> int: ...

    @property
    def groups(self) -> NDArray[Any] | None:
        """Of each instance; those of one group never fall into two splits."""

    @property
    def fingerprint(self) -> str:
        """Changes when anything in the data does."""

    def known(self, task: str) -> NDArray[np.bool_]:
        """Which instances have a label of the task."""

    def inputs(self, instances: Instances) -> NDArray[Any]:
        """Features (n, features) as float32, or images (n, 3, height, width) as uint8."""

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        """Labels of the task, in the form of its kind."""


@dataclass(frozen=True, eq=False)
class ArrayData:
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
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def known(self, task: str) -> NDArray[np.bool_]:
        missing = self.missing.get(task)
        return np.ones(self.size, dtype=bool) if missing is None else ~missing

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.features[instances])

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.labels[task][instances])
