"""What is in a data set, and what is worth knowing of it before learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import short
from allotment.data.dataset import Dataset, Target
from allotment.data.features import FeatureColumn
from allotment.mistakes import MOST_LISTED

RARE_BELOW = 5
"""labels of a class; one with fewer is called rare"""


@dataclass(frozen=True)
class TaskSummary:
    """Labels of one task: how many, of which classes, in which split."""

    name: str
    kind: str
    guessed: bool
    labelled: int
    missing: int
    share: float
    classes: Mapping[str, int]
    """labels of each; for multilabel, instances that have it"""
    splits: Mapping[str, int]


@dataclass(frozen=True)
class Summary:
    """What is in a data set, and what is worth knowing before learning from it."""

    name: str
    instances: int
    input: str
    seed: int
    splits: Mapping[str, int]
    tasks: tuple[TaskSummary, ...]
    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...]
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def describe(data: Dataset, seed: int = 0) -> Summary:
    """What is in a data set, with the splits that the seed draws: the data's own way where it has
    one."""
    drawn = data.split(seed)
    parts = {"train": drawn.train, "validation": drawn.validation, "test": drawn.test}
    tasks, notes = [], list(data.notes)
    for target in data.targets:
        known = data.known(target.name)
        labelled = int(known.sum())
        tasks.append(
            TaskSummary(
                name=target.name,
                kind=target.kind,
                guessed=target.name in data.guessed,
                labelled=labelled,
                missing=data.size - labelled,
                share=labelled / data.size,
                classes=_class_counts(data, target, np.flatnonzero(known)),
                splits={part: int(known[rows].sum()) for part, rows in parts.items()},
            )
        )
        notes += _task_notes(tasks[-1])
        if labelled and len(drawn.validation):
            notes += _validation_notes(tasks[-1], data, drawn.validation[known[drawn.validation]])
    notes += [*_column_notes(data.columns), *_id_notes(data.ids)]
    sizes = {part: len(rows) for part, rows in parts.items()}
    notes += [f"the {part} split is empty" for part, size in sizes.items() if not size]
    shape = data.inputs(np.zeros(1, dtype=np.int64)).shape[1:]
    numbers = "1 number" if shape == (1,) else f"{shape[0]} numbers"
    form = numbers if len(shape) == 1 else f"images of {' x '.join(map(str, shape))}"
    return Summary(
        data.name,
        data.size,
        form,
        seed,
        sizes,
        tuple(tasks),
        data.columns,
        tuple(notes),
        data.fingerprint,
    )


def _class_counts(data: Dataset, target: Target, known: NDArray[np.int64]) -> dict[str, int]:
    if target.kind not in ("classification", "multilabel"):
        return {}
    values = data.values(target.name, known)
    if target.kind == "multilabel":
        counts = (values == 1).sum(axis=0)
    else:
        counts = np.bincount(values, minlength=len(target.classes))
    return dict(zip(target.classes, counts.tolist(), strict=True))


def _task_notes(task: TaskSummary) -> list[str]:
    name = f"task {task.name!r}"
    if not task.labelled:
        return [f"{name} has no label yet, which is allowed: it can't be scored until it has some"]
    notes = []
    if len(task.classes) == 1 and task.kind == "classification":
        notes.append(
            f"{name} has one class only, {next(iter(task.classes))!r}: there is nothing to learn"
        )
    if rare := [
        f"{each!r} ({count})" for each, count in task.classes.items() if count < RARE_BELOW
    ]:
        notes.append(f"{name} has fewer than {RARE_BELOW} labels of {_few(rare)}")
    return notes


def _validation_notes(task: TaskSummary, data: Dataset, validation: NDArray[np.int64]) -> list[str]:
    name = f"task {task.name!r}"
    if not len(validation):
        return [f"{name} has no label in the validation split, so it can't be scored"]
    values = data.values(task.name, validation)
    if task.kind == "multilabel":
        same = [len(np.unique(column[~np.isnan(column)])) < 2 for column in values.T]
        alike = [repr(each) for each, flag in zip(task.classes, same, strict=True) if flag]
        return [f"{name}: in the validation split all or none have {_few(alike)}"] if alike else []
    if task.kind not in ("classification", "regression") or len(np.unique(values)) > 1:
        return []
    if task.kind == "regression":
        return [f"{name} has one value only in the validation split ({values[0]:g})"]
    only = list(task.classes)[int(values[0])]
    return [f"{name} has one class only in the validation split ({only!r}): some metrics need two"]


def _column_notes(columns: Iterable[FeatureColumn]) -> list[str]:
    constant = [repr(column.name) for column in columns if column.constant]
    if not constant:
        return []
    return [
        f"{len(constant)} of the features {'is' if len(constant) == 1 else 'are'} constant:"
        f" {_few(constant)}"
    ]


def _id_notes(ids: Sequence[str]) -> list[str]:
    counts = Counter(ids)
    blank = counts.pop("", 0)
    notes = [f"{blank} instances have no id"] if blank else []
    if twice := [short(each) for each, count in counts.items() if count > 1]:
        notes.append(f"{len(twice)} ids are there more than once: {_few(twice)}")
    return notes


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED + 1 else ""
    return ", ".join(listed[:MOST_LISTED] if more else listed) + more
