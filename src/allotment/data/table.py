"""Tables as data: a file or a frame, read into the arrays that a learner trains on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import Column
from allotment.data.csv_file import Layout
from allotment.data.dataset import (
    ArrayData,
    BaseData,
    Instances,
    Known,
    LabelArrays,
    Size,
    Target,
    lay_over,
)
from allotment.data.embedding import BY_FEATURES, BY_PIXELS, Embedding, OwnFeatures, SeenPictures
from allotment.data.features import FeatureColumn, TableInputs
from allotment.data.roles import Roles, assign_roles, listed
from allotment.data.table_file import TableFile, open_table_file
from allotment.data.targets import encode_task
from allotment.errors import InputError, Mistake
from allotment.mistakes import Collected


@dataclass(frozen=True, eq=False)
class TableData(BaseData):
    """A table whose labels are in memory; its features are read when something asks for them."""

    name: str
    targets: tuple[Target, ...]
    table: TableInputs = field(repr=False)
    labels: Mapping[str, NDArray[Any]] = field(repr=False)
    missing: Mapping[str, NDArray[np.bool_]] = field(repr=False)
    """of each task, where there is no label"""
    groups: NDArray[Any] | None = field(default=None, repr=False)
    ids: tuple[str, ...] = field(default=(), repr=False)
    """names of the instances, for people"""
    guessed: tuple[str, ...] = ()
    """tasks whose kind nobody said"""
    label_notes: tuple[str, ...] = field(default=(), repr=False)
    """what was noticed of the labels"""
    is_in_memory = True

    @cached_property
    def arrays(self) -> ArrayData:
        """The same with its features."""
        labels, missing = self.labels, self.missing
        features = self.table.array
        return ArrayData(self.name, self.targets, features, labels, missing, self.groups, self.ids)

    @property
    def size(self) -> int:
        return len(self.missing[self.targets[0].name])

    @property
    def features(self) -> NDArray[Any]:
        return self.table.array

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:  # type: ignore[override]
        return self.table.survey.columns

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.table.survey.notes, *self.label_notes)

    @property
    def fingerprint(self) -> str:
        return self.arrays.fingerprint

    def known(self, task: str) -> NDArray[np.bool_]:
        return ~self.missing[task]

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return self.arrays.inputs(instances)

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.labels[task][instances])

    def picture_size(self, instance: int) -> Size | None:
        return self.arrays.picture_size(instance) if self.table.are_pictures else None

    def picture(self, instance: int) -> NDArray[Any] | None:
        return self.table.read_picture(instance)

    def with_labels(self, known: Known, given: LabelArrays, fingerprint: str) -> TableData:
        labels = {task: lay_over(self.labels[task], given.get(task, {})) for task in known}
        missing = {task: ~there for task, there in known.items()}
        return replace(self, labels=labels, missing=missing)


def read_table(
    source: Any,
    targets: Sequence[str] | str | None = None,
    features: Sequence[str] | str | None = None,
    group: str | None = None,
    id: str | None = None,
    kinds: Mapping[str, str] | None = None,
    *,
    classes: Mapping[str, Sequence[str]] | None = None,
    drop: Sequence[str] | str = (),
    separator: str = "|",
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    folder: str | Path | None = None,
    image_size: int = 64,
    pictures: str | Embedding = BY_PIXELS,
    standardise: bool = True,
) -> TableData:
    """A data set from CSV, a workbook (xlsx), Parquet, npz or a frame of pandas or polars; an empty
    target cell is a missing label.

    `targets` are columns, or `tox:*` for all columns with that prefix as one multilabel task; left
    out, those that begin with `target:` or `label:`. `features` are all other columns if left out.
    `kinds` says what a target is (classification, multilabel, regression) or a feature (numeric,
    categorical, text, image, date) where the guess is wrong. A multilabel cell such as `cat|dog` is
    cut at the `separator`; the separator alone means none of the classes. Images are looked for in
    `folder`, by default the table's own, and never outside it. `encoding` is that of a CSV file
    that is not UTF-8, `decimal` its decimal sign, `sheet` the one to read of a workbook.
    `pictures` is what is seen of images: their `pixels`, alone, or small `features` of our own, or
    what an embedding gives, beside all other columns.
    """
    layout = Layout(delimiter, encoding, decimal, sheet)
    opened = open_table_file(source, layout)
    said = (dict(kinds or {}), dict(classes or {}))
    roles = assign_roles(opened, targets, features, group, id, listed(drop), *said)
    if image_size < 1 or not separator:
        raise InputError(
            [
                Mistake(
                    "image_size, separator",
                    f"{image_size} and {separator!r}: both must be something",
                )
            ]
        )
    embedding = None if pictures == BY_PIXELS else _find_embedding(pictures)
    seen = None if embedding is None else SeenPictures(lambda: embedding, image_size)
    opened.read(roles.wanted, roles.as_text)  # at once, rather than in two goes
    inputs = TableInputs(opened, roles, folder, image_size, standardise, seen=seen)
    wrong = Collected()
    wrong.attempt(lambda: inputs.array)
    data = wrong.attempt(read_labels, opened, roles, inputs, separator)
    wrong.raise_all()
    assert data is not None
    return data


def _find_embedding(pictures: str | Embedding) -> Embedding:
    if not isinstance(pictures, str):
        return pictures
    if pictures != BY_FEATURES:
        what = f"{pictures!r} is neither an embedding nor {BY_PIXELS!r} or {BY_FEATURES!r}"
        raise InputError([Mistake("pictures", what)])
    return OwnFeatures()


def read_labels(
    opened: TableFile, roles: Roles, inputs: TableInputs, separator: str = "|"
) -> TableData:
    """A table of which nothing but the labels and names of the rows is read yet."""
    wanted = roles.wanted.difference(roles.features)
    columns = opened.read(wanted, roles.as_text & wanted)
    wrong = Collected()
    labels = [wrong.attempt(encode_task, task, columns, separator) for task in roles.tasks]
    group = roles.group
    groups = None if group is None else wrong.attempt(_groups, columns[group])
    wrong.raise_all()
    done = [each for each in labels if each is not None]
    return TableData(
        name=opened.name,
        targets=tuple(each.target for each in done),
        table=inputs,
        labels={each.target.name: each.values for each in done},
        missing={each.target.name: each.missing for each in done},
        groups=groups,
        ids=() if roles.id is None else tuple(columns[roles.id].texts),
        guessed=tuple(task.name for task in roles.tasks if task.kind is None and not task.prefix),
        label_notes=tuple(note for each in done for note in each.notes),
    )


def _groups(column: Column) -> NDArray[Any]:
    if bad := np.flatnonzero(column.missing).tolist():
        raise InputError(column.mistakes(bad, lambda row: "is empty; each row needs its group"))
    return np.array(list(column.texts))
