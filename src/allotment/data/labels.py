"""Which (instance, task) pairs are labelled: the one thing that a plan changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import Dataset, Instances
from allotment.errors import InputError, Mistake


@dataclass(frozen=True, eq=False)
class TaskLabels:
    """The labelled instances of one task. `values` are given for pseudo-labels only: real ones are
    the data's own."""

    instances: Instances
    values: NDArray[Any] | None = None
    """of each instance, in the form of the task's kind; None where all are the data's own"""
    pseudo: NDArray[np.bool_] | None = None
    """where `values` stands for the label; everywhere if `values` is given and this is not"""
    implied: NDArray[np.bool_] | None = None
    """which were not bought but follow from another task's label; none if left out"""

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(key, f"{len(given)} for {len(self.instances)} instances")
            for key in ("values", "pseudo", "implied")
            if (given := getattr(self, key)) is not None and len(given) != len(self.instances)
        ]
        if not mistakes and (self.is_implied & self.is_pseudo).any():
            mistakes.append(
                Mistake(
                    "implied",
                    "a label is implied and pseudo too; `pseudo` says which are predicted",
                )
            )
        if mistakes:
            raise InputError(mistakes)

    def __len__(self) -> int:
        return len(self.instances)

    def fill(self, own: Callable[[Instances], NDArray[Any]]) -> NDArray[Any]:
        """The values to train on: the data's `own`, and where they are pseudo the given ones.

        Given probabilities of classes make the data's own classes certain ones.
        """
        if self.values is None:
            return own(self.instances)
        filled = self.values.copy()
        real = ~self.is_pseudo
        if real.any():
            values = own(self.instances[real])
            if filled.ndim > values.ndim:  # one class each, beside probabilities of all
                classes = filled.shape[1]
                # void pixels are no class
                certain = np.vstack([np.eye(classes), np.zeros(classes)])
                values = np.moveaxis(certain[np.minimum(values.astype(np.int64), classes)], -1, 1)
            filled[real] = values
        return filled

    @property
    def is_pseudo(self) -> NDArray[np.bool_]:
        if self.values is None:
            return np.zeros(len(self.instances), dtype=bool)
        return np.ones(len(self.instances), dtype=bool) if self.pseudo is None else self.pseudo

    @property
    def is_implied(self) -> NDArray[np.bool_]:
        return np.zeros(len(self.instances), dtype=bool) if self.implied is None else self.implied

    @property
    def is_bought(self) -> NDArray[np.bool_]:
        return ~self.is_pseudo & ~self.is_implied

    def keep(self, chosen: NDArray[np.bool_]) -> TaskLabels:
        """The labels of the chosen instances, with their values and marks as far as these still say
        something."""
        if chosen.all():
            return self
        pseudo, implied = self.is_pseudo[chosen], self.is_implied[chosen]
        marks = implied if implied.any() else None
        if self.values is None or not pseudo.any():
            return TaskLabels(self.instances[chosen], implied=marks)
        return TaskLabels(self.instances[chosen], self.values[chosen], pseudo, marks)

    def join(self, other: TaskLabels) -> TaskLabels:
        """These labels and then the others, each with its values and marks."""
        instances = np.concatenate([self.instances, other.instances])
        implied = np.concatenate([self.is_implied, other.is_implied])
        marks = implied if implied.any() else None
        if self.values is None and other.values is None:
            return TaskLabels(instances, implied=marks)
        pseudo = np.concatenate([self.is_pseudo, other.is_pseudo])
        return TaskLabels(
            instances, np.concatenate([self._beside(other), other._beside(self)]), pseudo, marks
        )

    def _beside(self, other: TaskLabels) -> NDArray[Any]:
        """The values; zeros in the form of the other's, which nobody reads, where all are the
        data's own."""
        if self.values is not None:
            return self.values
        assert other.values is not None
        return np.zeros((len(self), *other.values.shape[1:]), other.values.dtype)


NONE = TaskLabels(np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Labels(Mapping[str, TaskLabels]):
    """Labels at hand, by task. A task that is not there has none yet, which is allowed.

    >>> labels = Labels({"cls": [0, 1, 2], "seg": [5]})
    >>> labels.counts
    {'cls': 3, 'seg': 1}
    """

    by_task: dict[str, TaskLabels] = field(default_factory=dict)

    def __init__(self, by_task: Mapping[str, TaskLabels | Iterable[int]]):
        made = {}
        for task, labels in by_task.items():
            if not isinstance(labels, TaskLabels):
                labels = TaskLabels(np.asarray(list(labels), dtype=np.int64))
            if len(np.unique(labels.instances)) < len(labels.instances):
                raise InputError([Mistake(f"task {task!r}", "an instance is labelled twice")])
            made[task] = labels
        object.__setattr__(self, "by_task", made)

    def __getitem__(self, task: str) -> TaskLabels:
        return self.by_task.get(task, NONE)

    def __contains__(self, task: object) -> bool:
        return task in self.by_task

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_task)

    def __len__(self) -> int:
        return len(self.by_task)

    @property
    def counts(self) -> dict[str, int]:
        """How many labels each task has."""
        return {task: len(labels) for task, labels in self.by_task.items()}

    def only(self, *tasks: str) -> Labels:
        """The same labels of these tasks alone."""
        return Labels({task: labels for task, labels in self.by_task.items() if task in tasks})

    def with_task(self, task: str, labels: TaskLabels | Iterable[int]) -> Labels:
        """The same labels but for one task."""
        return Labels({**self.by_task, task: labels})

    def with_pseudo(self, task: str, instances: Instances, values: NDArray[Any]) -> Labels:
        """The same labels and, for one task, predicted ones for other instances."""
        return self.with_task(task, self[task].join(TaskLabels(instances, values)))

    def with_implied(self, implies: Mapping[str, str | Sequence[str]]) -> Labels:
        """The same labels and, marked, those that follow from them: {"segmentation": ("classes",)}.

        A real label takes the place of a predicted one. Predicted and implied labels imply nothing
        themselves.
        """
        named = {
            by: (tasks,) if isinstance(tasks, str) else tuple(tasks)
            for by, tasks in implies.items()
        }
        if circular := [by for by, tasks in named.items() if by in tasks]:
            raise InputError(
                [Mistake("implies", f"{by!r} implies itself; name another task") for by in circular]
            )
        made = dict(self.by_task)
        for by, tasks in named.items():
            bought = self[by].instances[self[by].is_bought]
            for task in tasks:
                have = made.get(task, NONE)
                new = np.setdiff1d(bought, have.instances[~have.is_pseudo])
                if len(new):
                    rest = have.keep(~np.isin(have.instances, new))
                    made[task] = rest.join(TaskLabels(new, implied=np.ones(len(new), dtype=bool)))
        return Labels(made)

    def without_implied(self) -> Labels:
        """The labels as if none had been implied; a task that has no others stays, with none."""
        return Labels(
            {task: labels.keep(~labels.is_implied) for task, labels in self.by_task.items()}
        )

    @property
    def bought(self) -> Labels:
        """Only the labels that were bought: neither implied nor predicted."""
        return Labels(
            {task: labels.keep(labels.is_bought) for task, labels in self.by_task.items()}
        )

    @property
    def fingerprint(self) -> str:
        """Changes when any label does, whatever the order they are listed in."""
        digest = hashlib.sha256()
        for task in sorted(self.by_task):
            labels = self.by_task[task]
            order = np.argsort(labels.instances, kind="stable")
            digest.update(f"{task}\0{len(labels)}\0".encode())
            digest.update(np.ascontiguousarray(labels.instances[order]).tobytes())
            if labels.values is not None:
                digest.update(np.ascontiguousarray(labels.values[order]).tobytes())
                digest.update(labels.is_pseudo[order].tobytes())
            if labels.is_implied.any():
                digest.update(b"implied\0" + labels.is_implied[order].tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Split:
    """Which instances may be trained on, which score estimates, and which are opened only at the
    very end."""

    train: Instances
    """labels at hand come from here, and so do the ones that can be bought: the pool"""
    validation: Instances
    test: Instances


def shuffle(items: Instances, *seed: object) -> Instances:
    """The instances in an order that depends on the seed and on each instance alone: the same on
    every machine.

    An instance keeps its place among the others when more are added.
    """
    key = "\0".join(map(str, seed)).encode()
    ranks = [
        hashlib.blake2b(item.tobytes(), key=hashlib.sha256(key).digest(), digest_size=8).digest()
        for item in items
    ]
    return items[np.argsort(np.array(ranks, dtype="S8"), kind="stable")] if len(items) else items


def split(data: Dataset, seed: int, validation: float = 0.15, test: float = 0.15) -> Split:
    """Draw the splits by seed; instances of one group stay together."""
    if not (0 <= validation < 1 and 0 <= test < 1 and validation + test < 1):
        raise InputError(
            [Mistake("validation, test", f"{validation} and {test} leave nothing to train on")]
        )
    everything = np.arange(data.size, dtype=np.int64)
    if data.groups is None:
        order = shuffle(everything, "split", seed)
        return _cut(order, round(test * len(order)), round(validation * len(order)))
    names, group = np.unique(data.groups, return_inverse=True)
    order = shuffle(np.arange(len(names), dtype=np.int64), "split", seed)
    parts = _cut(order, round(test * len(order)), round(validation * len(order)))
    member = {
        key: everything[np.isin(group, getattr(parts, key))]
        for key in ("train", "validation", "test")
    }
    return Split(**member)


def _cut(order: Instances, test: int, validation: int) -> Split:
    return Split(
        train=np.sort(order[test + validation :]),
        validation=np.sort(order[test : test + validation]),
        test=np.sort(order[:test]),
    )


def draw(
    data: Dataset,
    instances: Instances,
    counts: Mapping[str, int],
    seed: int,
    *,
    same: bool = False,
    taken: Labels | None = None,
    apart: bool = False,
) -> Labels:
    """Random labels for each task among `instances`, beyond those `taken`: on different ones by
    default (the paper's way), on the `same` for all tasks on request.

    Different means that no instance is drawn for two tasks while there are instances enough; then
    they are shared. With `apart`, instances that are taken for another task come last, too.
    """
    taken = Labels({}) if taken is None else taken
    drawn: dict[str, TaskLabels | Iterable[int]] = {}
    used: set[int] = set()
    if apart:
        used.update(item for mine in taken.values() for item in mine.instances.tolist())
    short = []
    for task, count in counts.items():
        known = instances[data.known(task)[instances]]
        free = np.setdiff1d(known, taken[task].instances)
        if count > len(free):
            left = _count_left(data.size, len(instances), len(known), len(free))
            short.append(Mistake(f"task {task!r}", f"{count} labels wanted, {left}; ask for fewer"))
            continue
        order = shuffle(free, "draw", seed, "" if same else task)
        if apart or not same:
            fresh = np.array([item not in used for item in order.tolist()], dtype=bool)
            order = np.concatenate([order[fresh], order[~fresh]])
        chosen = order[:count]
        if not same:
            used.update(chosen.tolist())
        drawn[task] = chosen
    if short:
        raise InputError(short)
    return Labels(drawn)


def _count_left(size: int, among: int, known: int, free: int) -> str:
    """How many can be drawn, and where the others are: the data have more rows than that."""
    others = {
        "kept apart (for testing, say)": size - among,
        "with no label to give": among - known,
        "labelled already": known - free,
    }
    reasons = ", ".join(f"{count} {what}" for what, count in others.items() if count)
    return f"{free} instances left: {size} in the data{', without ' if reasons else ''}{reasons}"
