"""Scenes that are rendered when a picture or a label is first asked for: planning needs none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import ArrayData, BaseData, Instances, Size, Target
from allotment.data.scenes.album import make_scenes, name_scenes
from allotment.data.scenes.labels import SCENE_TARGETS


@dataclass(frozen=True, eq=False)
class UnrenderedScenes(BaseData):
    """The built-in scenes before there is any picture of them."""

    count: int = 2000
    side: int = 48
    seed: int = 0
    by_colour: bool = False
    targets: tuple[Target, ...] = SCENE_TARGETS
    name: str = "scenes"
    _drawn: dict[int, ArrayData] = field(default_factory=dict, init=False, repr=False)

    @property
    def size(self) -> int:
        return self.count

    @cached_property
    def ids(self) -> tuple[str, ...]:  # type: ignore[override]
        return name_scenes(self.count)

    @property
    def fingerprint(self) -> str:
        """The pictures depend on nothing else."""
        new = ("by colour",) if self.by_colour else ()  # campaigns from before it keep their name
        given = ("scenes", self.count, (self.side, self.side), self.seed, self.targets, *new)
        return hashlib.sha256(repr(given).encode()).hexdigest()

    def known(self, task: str) -> NDArray[np.bool_]:
        return np.ones(self.count, dtype=bool)

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return self.loaded().inputs(instances)

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        return self.loaded().values(task, instances)

    def picture_size(self, instance: int) -> Size:
        return self.side, self.side

    def image(self, instance: int) -> NDArray[Any]:
        return np.asarray(self._draw(instance).features[0])

    def label(self, task: str, instance: int) -> NDArray[Any]:
        return np.asarray(self._draw(instance).labels[task][0])

    def _draw(self, instance: int) -> ArrayData:
        """One scene alone: whoever looks at a few does not wait for all."""
        if instance not in self._drawn:
            given = (self.side, self.seed, self.by_colour)
            self._drawn[instance] = make_scenes(1, *given, first=instance)
        return self._drawn[instance]

    def loaded(self) -> ArrayData:
        return self._rendered

    @cached_property
    def _rendered(self) -> ArrayData:
        made = make_scenes(self.count, self.side, self.seed, self.by_colour)
        return replace(made, targets=self.targets)
