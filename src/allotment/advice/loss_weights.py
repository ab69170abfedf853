"""Which loss weights (the paper's lambda, Eq. 8) suit the labels at hand: a small sweep before
anything is estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.amounts import short
from allotment.arrays import Array
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake
from allotment.estimates.request import FOLDS, Request
from allotment.formatting import several
from allotment.learners.learner import Learner, Measure, train
from allotment.machine import settled
from allotment.progress import Progress

LOSS_FACTORS = (0.3, 3.0)
"""times a task's loss weight, one task at a time: about half an order of magnitude each way"""
CLEAR_ERRORS = 2.0
"""standard errors by which other weights must lead before they are advised"""

Weights = Mapping[str, float]
"""loss weights, by task"""


@dataclass(frozen=True, eq=False)
class WeightSweep:
    """What other loss weights would have brought, on labels that were kept from training."""

    tasks: tuple[str, ...]
    trials: tuple[Weights, ...]
    """the first are those that there are"""
    gains: Array
    """[trial, part, task]: over the first trial, in % of its score; the same labels and seeds for
    all trials"""
    importance: tuple[float, ...]
    """of each task in the mean"""

    @property
    def means(self) -> Array:
        """[trial]: over tasks and parts."""
        return np.asarray(self._totals.mean(axis=1))

    @property
    def errors(self) -> Array:
        """[trial]: the standard error of each mean; not a number where one part scores."""
        parts = self.gains.shape[1]
        if parts < 2:
            return np.full(len(self.trials), math.nan)
        return np.asarray(self._totals.std(axis=1, ddof=1) / math.sqrt(parts))

    @property
    def _totals(self) -> Array:
        """[trial, part]: D_T."""
        shares = np.array(self.importance) / sum(self.importance)
        return np.asarray(self.gains @ shares)

    @property
    def best(self) -> int:
        """The trial to follow: the one that leads, if its lead is clear; else the first."""
        top = int(np.argmax(self.means))
        return top if self.means[top] > CLEAR_ERRORS * self.errors[top] else 0

    @property
    def advised(self) -> Weights:
        return self.trials[self.best]

    @property
    def changed(self) -> dict[str, float]:
        """The loss weights that are advised and are others now."""
        now = self.trials[0]
        return {task: each for task, each in self.advised.items() if each != now[task]}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = []
        for trial, gains, mean, error in zip(
            self.trials, self.gains, self.means, self.errors, strict=True
        ):
            each = dict(zip(self.tasks, gains.mean(axis=0).tolist(), strict=True))
            known = None if math.isnan(error) else float(error)
            rows.append(
                {"loss_weights": dict(trial), "gains": each, "mean": float(mean), "error": known}
            )
        return {"trials": rows, "best": self.best, "advised": dict(self.advised)}


def list_weights(now: Weights, factors: Sequence[float] = LOSS_FACTORS) -> list[Weights]:
    """The weights as they are, and with one of them changed at a time.

    >>> list_weights({"a": 1.0, "b": 2.0}, (3,))
    [{'a': 1.0, 'b': 2.0}, {'a': 3.0, 'b': 2.0}, {'a': 1.0, 'b': 6.0}]
    """
    trials: list[Weights] = [dict(now)]
    for task in now:
        trials += [{**now, task: float(f"{now[task] * factor:.6g}")} for factor in factors]
    return trials


@settled(load=False)
def sweep_loss_weights(
    make: Callable[[Weights], Learner],
    labels: Labels,
    now: Weights,
    *,
    factors: Sequence[float] = LOSS_FACTORS,
    folds: int = FOLDS,
    seed: int = 0,
    importance: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> WeightSweep:
    """Train with each task's loss weight changed in turn, on the same labels and seeds, and score
    on the part of the labels that was left out."""
    if mistakes := _check(now, factors):
        raise InputError(mistakes)
    trials = list_weights(now, factors)
    tasks, rows = tuple(now), []
    for number, trial in enumerate(trials):
        learner = make(trial)
        request = Request(lambda learner=learner: (learner, labels), seed, folds, folds)  # type: ignore[misc]
        row = []
        for part, (scored, rest) in enumerate(request.parts):
            state = train(scored, rest, seed + part)
            row.append([scored.score(state, task) for task in tasks])
            if progress is not None:
                progress(number * folds + part + 1, len(trials) * folds)
        rows.append(row)
    weights = tuple(1.0 if importance is None else float(importance[task]) for task in tasks)
    return WeightSweep(tasks, tuple(trials), _compare(rows), weights)


def _check(now: Weights, factors: Sequence[float]) -> list[Mistake]:
    mistakes = []
    if len(now) < 2:
        what = f"{several(len(now), 'task')} need none; they weigh the losses of tasks that share"
        mistakes.append(Mistake("loss weights", what))
    if not factors:
        mistakes.append(Mistake("factors", "there is none; give some, such as 0.3 and 3"))
    for factor in factors:
        if not (math.isfinite(factor) and factor >= 0) or factor == 1:
            what = f"{short(factor)} is not a number of 0 or more other than 1"
            mistakes.append(Mistake("factors", what))
    return mistakes


def _compare(rows: Sequence[Sequence[Sequence[Measure]]]) -> Array:
    """[trial, part, task]: relative gains over the first trial; 0 where a part can't score a
    task."""
    found = np.array(
        [
            [
                [each.gain_over(first) for each, first in zip(scores, base, strict=True)]
                for scores, base in zip(row, rows[0], strict=True)
            ]
            for row in rows
        ]
    )
    return np.where(np.isfinite(found), found, 0.0)
