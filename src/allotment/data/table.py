"""Tables as data: a file or a frame, read into the arrays that a learner trains on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import Column
from allotment.data.dataset import ArrayData
from allotment.data.features import FeatureColumn, encode_inputs
from allotment.data.roles import assign_roles, listed
from allotment.data.table_file import open_table_file
from allotment.data.targets import encode_task
from allotment.errors import InputError, Mistake
from allotment.mistakes import Collected


@dataclass(frozen=True, eq=False)
class TableData(ArrayData):
    """A table in memory, with what was noticed while it was read."""

    columns: tuple[FeatureColumn, ...] = ()
    guessed: tuple[str, ...] = ()
    """tasks whose kind nobody said"""
    notes: tuple[str, ...] = field(default=(), repr=False)


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
    folder: str | Path | None = None,
    image_size: int = 64,
    standardise: bool = True,
) -> TableData:
    """A data set from CSV, Parquet, npz or a frame of pandas or polars; an empty target cell is a
    missing label.

    `targets` are columns, or `tox:*` for all columns with that prefix as one multilabel task; left
    out, those that begin with `target:` or `label:`. `features` are all other columns if left out.
    `kinds` says what a target is (classification, multilabel, regression) or a feature (numeric,
    categorical, text, image) where the guess is wrong. A multilabel cell such as `cat|dog` is cut
    at the `separator`; the separator alone means none of the classes. Images are looked for in
    `folder`, by default the table's own, and never outside it.
    """
    opened = open_table_file(source, delimiter)
    roles = assign_roles(
        opened, targets, features, group, id, listed(drop), dict(kinds or {}), dict(classes or {})
    )
    if image_size < 1 or not separator:
        raise InputError(
            [
                Mistake(
                    "image_size, separator",
                    f"{image_size} and {separator!r}: both must be something",
                )
            ]
        )
    columns = opened.read(roles.wanted, roles.as_text)
    wrong = Collected()
    held = wrong.attempt(encode_inputs, opened, roles, columns, folder, image_size, standardise)
    labels = [wrong.attempt(encode_task, task, columns, separator) for task in roles.tasks]
    groups = None if group is None else wrong.attempt(_groups, columns[group])
    wrong.raise_all()
    assert held is not None
    done = [each for each in labels if each is not None]
    return TableData(
        name=opened.name,
        targets=tuple(each.target for each in done),
        features=held.array,
        labels={each.target.name: each.values for each in done},
        missing={each.target.name: each.missing for each in done},
        groups=groups,
        ids=() if id is None else tuple(columns[id].texts),
        columns=held.columns,
        guessed=tuple(task.name for task in roles.tasks if task.kind is None and not task.prefix),
        notes=(*held.notes, *(note for each in done for note in each.notes)),
    )


def _groups(column: Column) -> NDArray[Any]:
    if bad := np.flatnonzero(column.missing).tolist():
        raise InputError(column.mistakes(bad, lambda row: "is empty; each row needs its group"))
    return np.array(list(column.texts))
