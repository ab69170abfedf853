"""Data whose tasks go by other names than those that the data give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import ArrayData, BaseData, Dataset, Frame, Instances, Size, Target
from allotment.data.labels import Split
from allotment.data.table import TableData
from allotment.renames import rename_keys


def rename_targets(data: Dataset, names: Mapping[str, str]) -> Dataset:
    """The same with other names for some tasks. In memory that is as if they had always been called
    so, fingerprint and all; other data keep theirs."""
    if not names.keys() & {target.name for target in data.targets}:
        return data
    targets = tuple(_rename(target, names) for target in data.targets)
    if not isinstance(data, ArrayData | TableData):
        return Renamed(data, targets)
    labels, missing = rename_keys(data.labels, names), rename_keys(data.missing, names)
    found = replace(data, targets=targets, labels=labels, missing=missing)
    if isinstance(found, TableData):
        guessed = tuple(names.get(name, name) for name in data.guessed)
        return replace(found, guessed=guessed)
    return found


def _rename(target: Target, names: Mapping[str, str]) -> Target:
    return replace(target, name=names.get(target.name, target.name))


def find_base(data: Dataset) -> Dataset:
    """The data themselves, whatever their tasks are called."""
    return data.base if isinstance(data, Renamed) else data


class Renamed(BaseData):
    """Data that are read from files, asked by the names that they give their tasks."""

    def __init__(self, base: Dataset, targets: tuple[Target, ...]):
        """`targets` are those of the base, in its order, under other names."""
        self.base, self.targets = base, targets
        self._own = {
            target.name: own.name for target, own in zip(targets, base.targets, strict=True)
        }
        self.name, self.size = base.name, base.size
        self.groups, self.ids, self.files = base.groups, base.ids, base.files
        self.columns, self.notes = base.columns, base.notes
        self.guessed = tuple(name for name, own in self._own.items() if own in base.guessed)
        self.is_in_memory, self.is_slow_to_hash = base.is_in_memory, base.is_slow_to_hash

    @property
    def fingerprint(self) -> str:
        return self.base.fingerprint

    def known(self, task: str) -> NDArray[np.bool_]:
        return self.base.known(self._own[task])

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return self.base.inputs(instances)

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        return self.base.values(self._own[task], instances)

    def split(self, seed: int, validation: float = 0.15, test: float = 0.15) -> Split:
        return self.base.split(seed, validation, test)

    def picture_size(self, instance: int) -> Size | None:
        return self.base.picture_size(instance)

    def image(self, instance: int) -> NDArray[Any]:
        return self.base.image(instance)

    def picture(self, instance: int) -> NDArray[Any] | None:
        return self.base.picture(instance)

    def label(self, task: str, instance: int) -> NDArray[Any]:
        return self.base.label(self._own[task], instance)

    def fit(self, task: str, label: NDArray[Any]) -> NDArray[Any]:
        return self.base.fit(self._own[task], label)

    def frame(self, instance: int) -> Frame:
        return self.base.frame(instance)

    def loaded(self) -> Dataset:
        return Renamed(self.base.loaded(), self.targets)

    def with_targets(self, targets: tuple[Target, ...]) -> Renamed:
        own = tuple(replace(target, name=self._own[target.name]) for target in targets)
        return Renamed(self.base.with_targets(own), targets)
