"""What a method is asked for, and what that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from allotment.data.labels import Labels
from allotment.estimates.design import folds_of
from allotment.learners.learner import Learner
from allotment.problem import Problem

Progress = Callable[[int, int, str], None]
"""told how many trainings are done, of how many, and of what"""


@dataclass(frozen=True)
class Work:
    """What a method takes, before it is begun."""

    trainings: int
    steps: int
    """of all trainings and probes; a step on several tasks counts once"""
    mini_batches: int
    scores: int
    """how often a task is scored"""
    probing: int = 0
    """of the mini-batches, those of trainings that are probed: these never run as one stack"""


@dataclass(frozen=True)
class Request:
    """What a method is given: labels of every task, and options that are checked already."""

    learner: Learner
    labels: Labels
    seed: int
    trainings: int
    folds: int
    options: Mapping[str, Any]
    progress: Progress | None = None
    problem: Problem | None = None
    """whose plan ends probing early, once more of it could not move that out of its plateau"""
    probing: Mapping[str, float] | None = None
    """the most that probing may take, by one of LIMITS"""

    @property
    def parts(self) -> list[tuple[Learner, Labels]]:
        """The learner scored on each fold, with the labels outside it; with one fold, both as they
        are."""
        if self.folds == 1:
            return [(self.learner, self.labels)]
        return [self.keep_out(number) for number in range(self.folds)]

    def keep_out(self, number: int) -> tuple[Learner, Labels]:
        """The learner scored on the labels of one fold, and the labels of the others."""
        kept, rest = {}, {}
        for task, mine in self.labels.items():
            inside = folds_of(mine.instances, self.folds, self.seed) == number
            kept[task], rest[task] = mine.keep(inside), mine.keep(~inside)
        return self.learner.with_validation(Labels(kept)), Labels(rest)  # type: ignore[attr-defined]
