"""What learners on a data set share: their tasks, and the labels that they are scored on."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np

from allotment.data.dataset import Dataset, Instances
from allotment.data.labels import Labels, Split
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.metrics import metric_of

Twin = TypeVar("Twin", bound="ScoredOnData")


class ScoredOnData:
    """A learner that opens its labels in a data set and is scored on those of some instances."""

    def __init__(self, data: Dataset, split: Split):
        self.data, self.split = data, split
        self.targets = {target.name: target for target in data.targets}
        self.metrics = {name: metric_of(target) for name, target in self.targets.items()}
        self._scored: dict[str, Instances] = {}
        """of each task the instances that it is scored on, where they are not the same for all"""

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.targets)

    @property
    def validation(self) -> Instances:
        """The instances that it is scored on."""
        return self.split.validation

    def with_validation(self: Twin, instances: Instances | Labels) -> Twin:
        """The same learner on the same data, scored on these instances' known labels only; their
        states are the same.

        Labels name the instances of each task, so that no task is scored on a label which is not
        among them.
        """
        twin = copy.copy(self)
        if isinstance(instances, Labels):
            self.check_labels(instances)
            twin._scored = {task: np.sort(instances[task].instances) for task in self.tasks}
            # a fold may have no label of any task: then nothing is scored, which is no mistake of
            # anybody
            chosen = np.unique(
                np.concatenate([*twin._scored.values(), np.zeros(0, dtype=np.int64)])
            )
        else:
            twin._scored = {}
            chosen = _check_instances(instances, self.data.size)
        twin.split = replace(self.split, validation=chosen)
        return twin

    def list_scored(self, task: str) -> Instances:
        """Instances to score a task on."""
        mine = self._scored.get(task, self.split.validation)
        return mine[self.data.known(task)[mine]]

    def check_labels(self, labels: Labels) -> None:
        """That all of them are of tasks that it has, and known to the data."""
        mistakes = [
            Mistake(f"task {name!r}", f"is not one of the learner's; {suggest(name, self.tasks)}")
            for name in labels
            if name not in self.targets
        ]
        for name in self.tasks:
            unknown = labels[name].instances[~labels[name].is_pseudo]
            if len(unknown) and not self.data.known(name)[unknown].all():
                mistakes.append(
                    Mistake(f"task {name!r}", "a label is used that the data does not have")
                )
        if mistakes:
            raise InputError(mistakes)


def _check_instances(instances: Instances, size: int) -> Instances:
    found = np.unique(np.asarray(instances))
    if len(found) and found.dtype.kind in "iu" and found[0] >= 0 and found[-1] < size:
        return found.astype(np.int64)
    shown = f"{found[0]} to {found[-1]}" if len(found) else "nothing"
    raise InputError(
        [Mistake("instances", f"{shown} can't be scored on; name some of 0 to {size - 1}")]
    )
