"""The rows that a model was fitted to, on disk. Models of scikit-learn have no form without code in
it; to be asked elsewhere they are fitted to these rows again, which gives the same model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from allotment.arrays import AnyArray, Ints
from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, TaskLabels
from allotment.errors import InputError, Mistake
from allotment.learners.plain_arrays import LARGEST_ARRAYS, MAYBE_CHANGED, read_arrays, save_arrays

ROWS_FILE = "rows.safetensors"
"""in the folder that a state is saved to"""
MOST_FITTED_ROWS = 1_000_000
"""to which a model is fitted again: more take too long each time that it is asked"""
SEED_FORM, VERSION_FORM = re.compile(r"[0-9]{1,40}"), re.compile(r"[0-9A-Za-z.+]{1,40}")
"""what the words about the rows may be"""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Features and labels of one training, and what else decides how it ends."""

    inputs: AnyArray
    """(rows, features)"""
    left_out: Ints
    """of each row, the member that does not see it"""
    labels: Mapping[str, TaskLabels]
    """of each task the rows that have one, sorted, and what it is"""
    seed: int
    version: str
    """of the library that fitted it"""

    def open(self, targets: Sequence[Target]) -> ArrayData:
        """As data to train on, which know no label of their own."""
        unknown = np.zeros(len(self.inputs))
        return ArrayData(
            "rows", tuple(targets), self.inputs, {each.name: unknown for each in targets}
        )

    def save(self, folder: Path) -> None:
        """Write them as plain numbers; raises InputError for too many."""
        if len(self.inputs) > MOST_FITTED_ROWS or self.inputs.nbytes > LARGEST_ARRAYS // 2:
            what = (
                f"{len(self.inputs)} rows of {self.inputs.shape[1]} numbers are too many to fit a"
                " model to each time that it is asked; take the built-in learner"
            )
            raise InputError([Mistake("learner", what)])
        arrays: dict[str, AnyArray] = {"inputs": self.inputs, "left_out": self.left_out}
        for place, mine in enumerate(self.labels.values()):
            assert mine.values is not None
            arrays |= {f"rows.{place}": mine.instances, f"values.{place}": mine.values}
        about = {"seed": str(self.seed), "version": self.version}
        save_arrays(folder / ROWS_FILE, arrays, about)


def read_training_rows(
    folder: Path, targets: Sequence[Target], features: int, members: int
) -> TrainingRows:
    """The rows that a training with so many members was saved with; raises InputError unless every
    number of them fits."""
    path = folder / ROWS_FILE
    arrays, about = read_arrays(path)
    what = _find_wrong_rows(arrays, features, members)
    labels = {}
    for place, target in enumerate(targets):
        rows, values = arrays.pop(f"rows.{place}", None), arrays.pop(f"values.{place}", None)
        if rows is None or values is None:
            what = what or f"no labels of {target.name!r} are in it"
            continue
        what = what or _find_wrong_labels(target, rows, values, len(arrays["inputs"]))
        if not what:
            labels[target.name] = TaskLabels(rows, values)
    if not what and (strange := sorted(arrays.keys() - {"inputs", "left_out"})):
        what = f"{strange[0][:100]!r} has no place in it"
    seed, version = about.get("seed", ""), about.get("version", "")
    if not SEED_FORM.fullmatch(seed) or not VERSION_FORM.fullmatch(version):
        what = what or "it does not say how it was fitted"
    if what:
        raise InputError([Mistake(str(path), f"{what}; {MAYBE_CHANGED}")])
    return TrainingRows(arrays["inputs"], arrays["left_out"], Labels(labels), int(seed), version)


def _find_wrong_rows(arrays: Mapping[str, AnyArray], features: int, members: int) -> str:
    inputs, left_out = arrays.get("inputs"), arrays.get("left_out")
    if inputs is None or left_out is None:
        return "the rows are not in it"
    if inputs.dtype not in (np.float32, np.float64) or inputs.ndim != 2:
        return "the features are not numbers in rows"
    if inputs.shape[1] != features or len(inputs) > MOST_FITTED_ROWS:
        return f"it has {len(inputs)} rows of {inputs.shape[1]} features, not of {features}"
    if not np.isfinite(inputs).all():
        return "a feature is no finite number"
    if left_out.dtype != np.int64 or left_out.shape != inputs.shape[:1]:
        return "it does not say which member leaves out which row"
    if len(left_out) and not 0 <= left_out.min() <= left_out.max() < members:
        return f"a row is left out by another than the {members} members"
    return ""


def _find_wrong_labels(target: Target, rows: AnyArray, values: AnyArray, count: int) -> str:
    where, classes = f"labels of {target.name!r}", len(target.classes)
    if rows.dtype != np.int64 or rows.ndim != 1 or rows.shape != values.shape[:1]:
        return f"the {where} are of no rows"
    if len(rows) and (not 0 <= rows[0] <= rows[-1] < count or not (np.diff(rows) > 0).all()):
        return f"the {where} are of other rows than those"
    shapes: dict[str, list[tuple[int, ...]]] = {
        "regression": [(len(rows),)],
        "classification": [(len(rows),), (len(rows), classes)],
        "multilabel": [(len(rows), classes)],
    }
    if values.shape not in shapes[target.kind] or values.dtype.kind not in "fiu":
        return f"the {where} are not of the form that a {target.kind} has"
    if np.isinf(values).any():
        return f"one of the {where} is no finite number"
    if target.kind == "classification" and len(rows):
        highest = classes if values.ndim == 1 else 2
        if not (values >= 0).all() or not (values < highest).all():
            return f"one of the {where} is no class"
    return ""
