"""Which trainings to run on subsets of the labels at hand, decided before the first of them
starts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array, Ints
from allotment.data.labels import Labels, shuffle
from allotment.errors import InputError, Mistake

LEVELS = (1.0, 0.5, 0.25)
"""of its labels at hand that a task keeps: evidence came from n, n/2 and n/4"""
TRIES = 64
"""arrangements of the levels that are compared"""


@dataclass(frozen=True, eq=False)
class Design:
    """Trainings on fewer labels: how many of each task, which fold is kept from them, and the seed
    of each."""

    tasks: tuple[str, ...]
    counts: Ints
    """[training, task]"""
    fold: Ints
    """[training]: the part of the labels at hand that scores it and that it does not see; 0 where
    there are none"""
    seed: int
    folds: int = 1
    """1: a learner's own validation labels score every training"""

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def seeds(self) -> list[int]:
        """One for each training."""
        return [self.seed + number for number in range(len(self))]

    @property
    def work(self) -> float:
        """How many labels all trainings see together, in units of one training on all of them."""
        full = self.counts.max(axis=0, initial=0).sum()
        return float(self.counts.sum() / full) if full else 0.0

    def leave_out(self, labels: Labels, fold: int) -> Labels:
        """The labels that trainings may see which a fold scores."""
        if self.folds == 1:
            return labels
        seen = {}
        for task in self.tasks:
            mine = labels[task]
            seen[task] = mine.keep(folds_of(mine.instances, self.folds, self.seed) != fold)
        return Labels(seen)

    def runs(self, labels: Labels) -> list[tuple[Labels, int]]:
        """The labels and the seed of every training; subsets of different trainings are drawn
        independently."""
        left = [self.leave_out(labels, fold) for fold in range(self.folds)]
        found = []
        for counts, fold, seed in zip(
            self.counts.tolist(), self.fold.tolist(), self.seeds, strict=True
        ):
            fewer, seen = {}, left[fold]
            for task, count in zip(self.tasks, counts, strict=True):
                chosen = shuffle(seen[task].instances, "response", seed, task)[:count]
                fewer[task] = labels[task].keep(np.isin(labels[task].instances, chosen))
            found.append((Labels(fewer), seed))
        return found


def folds_of(instances: Ints, folds: int, seed: int) -> Ints:
    """The fold of each instance, which depends on the instance and the seed alone: the same for
    every task."""
    key = f"fold\0{seed}".encode()
    digests = [
        hashlib.blake2b(np.int64(item).tobytes(), key=key, digest_size=8).digest()
        for item in instances
    ]
    return np.array(
        [int.from_bytes(digest, "little") % folds for digest in digests], dtype=np.int64
    )


def design(labels: Labels, trainings: int, seed: int, folds: int = 1) -> Design:
    """`trainings` trainings that tell every task's own labels and the other tasks' labels apart.

    One in eight sees everything. In the others every task keeps each share of its labels equally
    often, and which tasks have fewer together is arranged so that the counts correlate as little as
    possible. That takes about half the trainings that one task at a time would. With `folds` above
    1 the labels at hand are cut by instance, training r sees none of fold r % folds, and that fold
    scores it.

    >>> len(design(Labels({"cls": range(40), "seg": range(40)}), trainings=12, seed=0))
    12
    """
    mistakes = []
    if trainings < 0:
        mistakes.append(Mistake("trainings", f"{trainings} is below 0; 0 rests on the prior alone"))
    if folds < 1:
        mistakes.append(
            Mistake("folds", f"{folds} is below 1; 1 scores on the learner's own validation labels")
        )
    if not len(labels):
        mistakes.append(
            Mistake(
                "labels", "there is no task; name every task, with no labels where there are none"
            )
        )
    if mistakes:
        raise InputError(mistakes)
    fold = np.arange(trainings, dtype=np.int64) % folds
    rng = np.random.default_rng([0 if seed < 0 else 1, abs(seed)])
    tried = [_arrange(trainings, len(labels), rng) for _ in range(TRIES)]
    shares = max(tried, key=lambda shares: _tell_apart(shares, fold))
    there = _count_others(labels, folds, seed)[fold]
    counts = np.where(there > 0, np.maximum(np.round(shares * there), 1), 0).astype(np.int64)
    return Design(tuple(labels), counts, fold, seed, folds)


def _count_others(labels: Labels, folds: int, seed: int) -> Ints:
    """[fold, task]: how many labels lie outside each fold."""
    if folds == 1:
        return np.array([[len(labels[task]) for task in labels]])
    outside = []
    for task in labels:
        inside = np.bincount(folds_of(labels[task].instances, folds, seed), minlength=folds)
        outside.append(len(labels[task]) - inside)
    return np.array(outside).T


def _arrange(trainings: int, tasks: int, rng: np.random.Generator) -> Array:
    """[training, task]: one in eight with everything; of the rest every level equally often in
    every column."""
    full = -(-trainings // 8)
    column = np.resize(LEVELS, trainings - full)
    rest = np.array([rng.permutation(column) for _ in range(tasks)]).T.reshape(
        trainings - full, tasks
    )
    return np.concatenate([np.ones((full, tasks)), rest])


def _tell_apart(shares: Array, fold: Ints) -> float:
    """The log determinant of what these trainings say about all slopes at once; each fold has a
    level of its own."""
    logs = np.log(shares)
    for number in np.unique(fold):
        logs[fold == number] -= logs[fold == number].mean(axis=0)
    return float(np.linalg.slogdet(logs.T @ logs + 1e-6 * np.eye(logs.shape[1]))[1])
