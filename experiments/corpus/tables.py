"""The data sets, cut to one size so that many trainings are quick, and the odd tasks that are made
of theirs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allotment.corpus.report import ODD
from allotment.data.dataset import ArrayData, Target

COMPONENTS = 64
"""principal components of a table's features that networks see"""
MOST_ROWS = 8000
RAREST = 0.03
"""share of the rarer class below which a task is left out"""
FEWEST_KNOWN = 400
"""labels of a task"""
CLASSES, NUMBERS = ("classification", "roc_auc"), ("regression", "mae")
"""kinds of tasks, each with its metric"""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A file of features and of the labels of several tasks."""

    file: str
    kind: tuple[str, str]
    is_locked: bool = False
    """neither trained on nor looked at before the one reported run of the next edition"""
    cluster: str = ""
    """tables of one cluster count once in statistics"""


TABLES = {
    "tox21": Table("molecules/tox21_morgan1024", CLASSES),
    "qm8": Table("molecules/qm8_morgan1024", NUMBERS, cluster="quantum"),
    "qm9": Table("tables/qm9", NUMBERS, cluster="quantum"),
    "chembl": Table("tables/chembl", NUMBERS),
    "delicious": Table("tables/delicious", CLASSES),
    "enron": Table("tables/enron", CLASSES),
    "emotions": Table("tables/emotions", CLASSES),
    "enb": Table("tables/enb", NUMBERS),
    "bibtex": Table("tables/bibtex", CLASSES, is_locked=True),
    "corel5k": Table("tables/corel5k", CLASSES, is_locked=True),
    "tmc2007": Table("tables/tmc2007", CLASSES, is_locked=True),
    "osales": Table("tables/osales", NUMBERS, is_locked=True),
    "scpf": Table("tables/scpf", NUMBERS, is_locked=True),
    "sf2": Table("tables/sf2", NUMBERS, is_locked=True),
}
OPEN = tuple(name for name, table in TABLES.items() if not table.is_locked)


def find_cluster(name: str) -> str:
    """What a table counts as in statistics."""
    return TABLES[name].cluster or name


@dataclass(frozen=True, eq=False)
class Columns:
    """A table as networks see it."""

    features: NDArray[np.float32]
    labels: Mapping[str, Array]
    """of each task with labels enough; not a number where a label is unknown"""


@cache
def open_columns(name: str) -> Columns:
    """A table's rows, or some of very many, with its principal components as features."""
    root = Path(os.environ["ALLOT_TEST_DATA"])
    with np.load(root / f"{TABLES[name].file}.npz", allow_pickle=False) as held:
        features, labels = held["X"].astype(np.float64), held["Y"].astype(np.float64)
        tasks = [str(each) for each in held["tasks"]]
    rows = np.sort(np.random.default_rng(0).permutation(len(features))[:MOST_ROWS])
    features, labels = features[rows], labels[rows]
    kept = {
        task: column
        for task, column in zip(tasks, labels.T, strict=True)
        if _has_enough(column, TABLES[name].kind)
    }
    return Columns(_find_components(features), kept)


def _has_enough(column: Array, kind: tuple[str, str]) -> bool:
    known = column[np.isfinite(column)]
    if len(known) < FEWEST_KNOWN:
        return False
    if kind == CLASSES:
        return bool(RAREST <= known.mean() <= 1 - RAREST)
    return bool(known.std() > 0)


def _find_components(features: Array) -> NDArray[np.float32]:
    """Principal components of standardised columns, scaled alike to a mean variance of 1."""
    spread = np.nanstd(features, axis=0)
    with np.errstate(invalid="ignore"):
        plain = np.nan_to_num((features - np.nanmean(features, axis=0)) / spread)[:, spread > 0]
    values, vectors = np.linalg.eigh(plain.T @ plain / len(plain))
    order = np.argsort(values)[::-1][:COMPONENTS]
    found = plain @ vectors[:, order]
    return np.asarray(found / np.sqrt((found**2).mean()), dtype=np.float32)


NAMES = {kind: f"{kind}!" for kind in ODD}
"""what an odd task is called beside real ones"""


def make_odd(columns: Columns, kind: str, source: str, is_class: bool) -> Array:
    """The labels of an odd task, made of those of a real one:

    - useless: in an order by chance
    - solved: what the first components say of the instance, which few labels teach
    - noisy: with three in ten classes drawn by chance, or noise of twice a number's spread
    - copy: with one in ten classes drawn by chance, or noise of a third of a number's spread
    """
    rng = np.random.default_rng([len(columns.features), len(source), ODD.index(kind)])
    real = columns.labels[source]
    known = np.isfinite(real)
    found = real.copy()
    if kind == "useless":
        found[known] = rng.permutation(real[known])
    elif kind == "solved":
        found = columns.features[:, 0].astype(np.float64) + 0.5 * columns.features[:, 1]
        if is_class:
            found = (found > np.quantile(found, 0.6)).astype(np.float64)
        else:  # an error near 0 would make any gain a large one, in % of it
            found = found + 0.3 * found.std() * rng.normal(size=len(found))
    elif is_class:
        drawn = known & (rng.random(len(real)) < (0.3 if kind == "noisy" else 0.1))
        found[drawn] = rng.permutation(real[known])[: int(drawn.sum())]
    else:
        size = 2.0 if kind == "noisy" else 1 / 3
        found = real + size * np.nanstd(real) * rng.normal(size=len(real))
    return found


def make_data(name: str, tasks: Sequence[str], odd: str, source: str) -> ArrayData:
    """The data of a setting: real tasks by their names, the odd one among them made."""
    columns, (kind, metric) = open_columns(name), TABLES[name].kind
    labels, missing, targets = {}, {}, []
    for task in tasks:
        values = columns.labels.get(task)
        if values is None:
            values = make_odd(columns, odd, source, kind == "classification")
        missing[task] = ~np.isfinite(values)
        plain = np.nan_to_num(values)
        labels[task] = plain.astype(np.int64 if kind == "classification" else np.float32)
        classes = ("no", "yes") if kind == "classification" else ()
        targets.append(Target(task, kind, classes, metric=metric))
    return ArrayData(name, tuple(targets), columns.features, labels, missing)
