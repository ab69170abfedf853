"""What is asked of all labels of a task together: their mean and spread, or what they look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import Instances
from allotment.data.labels import TaskLabels

VALUES_TOGETHER = 1 << 27
"""numbers of labels that are in memory together, where all are asked for"""
LABELS_AT_ONCE = 64
LEAST_SPREAD = 1e-6

ReadOwn = Callable[[Instances], NDArray[Any]]
"""the data's own labels of instances"""


def find_scale(labels: TaskLabels, read: ReadOwn) -> tuple[float, float]:
    """Mean and spread of all known numbers in a task's labels, in any order they are listed."""
    if _count_values(labels, read) > VALUES_TOGETHER:
        return _sum_up(labels, read)
    values = labels.fill(read)
    # sorted: sums depend on the order
    good = np.sort(values[~np.isnan(values)].astype(np.float64))
    if not len(good):
        return 0.0, 1.0
    return float(good.mean()), max(float(good.std()), LEAST_SPREAD)


def read_some(labels: TaskLabels, read: ReadOwn) -> NDArray[Any]:
    """All labels; of maps that are too many to be in memory together, pixels on a coarser grid."""
    there = _count_values(labels, read)
    is_held = labels.values is not None or there <= VALUES_TOGETHER
    if is_held or read(labels.instances[:1]).ndim < 3:
        return labels.fill(read)
    every = math.ceil(math.sqrt(there / VALUES_TOGETHER))
    parts = (part[..., every // 2 :: every, every // 2 :: every] for part in _cut(labels, read))
    return np.concatenate([np.ascontiguousarray(part) for part in parts])


def _count_values(labels: TaskLabels, read: ReadOwn) -> int:
    if not len(labels):
        return 0
    shape = (
        read(labels.instances[:1]).shape[1:] if labels.values is None else labels.values.shape[1:]
    )
    return len(labels) * math.prod(shape)


def _cut(labels: TaskLabels, read: ReadOwn) -> Iterator[NDArray[Any]]:
    """All labels by the numbers of their instances, some at a time."""
    order = np.argsort(labels.instances)
    for start in range(0, len(order), LABELS_AT_ONCE):
        chosen = np.zeros(len(labels), dtype=bool)
        chosen[order[start : start + LABELS_AT_ONCE]] = True
        yield labels.keep(chosen).fill(read)


def _sum_up(labels: TaskLabels, read: ReadOwn) -> tuple[float, float]:
    """The same by sums over parts, of what numbers are beyond a first guess at their mean: else
    the squares of large ones would drown the spread."""
    guess: float | None = None
    counts, sums, squares = [0], [0.0], [0.0]
    for part in _cut(labels, read):
        good = np.sort(part[~np.isnan(part)].astype(np.float64))
        if not len(good):
            continue
        guess = float(good.mean()) if guess is None else guess
        good -= guess
        counts.append(len(good))
        sums.append(float(good.sum()))
        squares.append(float(np.square(good).sum()))
    count = sum(counts)
    if guess is None:
        return 0.0, 1.0
    beyond = math.fsum(sums) / count
    variance = max(math.fsum(squares) / count - beyond**2, 0.0)
    return guess + beyond, max(math.sqrt(variance), LEAST_SPREAD)
