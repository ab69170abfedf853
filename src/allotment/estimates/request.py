"""What a method is asked for, and what that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from allotment.data.labels import Labels
from allotment.estimates.design import folds_of
from allotment.learners.learner import Learner
from allotment.problem import Problem
from allotment.progress import NamedProgress

FOLDS = 4
"""parts of the labels at hand that score in turn, where there are no validation labels"""

Prepared = TypeVar("Prepared")


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


@dataclass(frozen=True, eq=False)
class Request:
    """What a method is given: labels of every task, and options that are checked already."""

    open: Callable[[], tuple[Learner, Labels]] = field(repr=False)
    """makes the learner and its labels, which are not needed to list the jobs of most methods"""
    seed: int
    trainings: int
    folds: int
    """parts of the labels at hand that score in turn; 1: the learner has validation labels"""
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: NamedProgress | None = None
    """of the job that is being done"""
    problem: Problem | None = None
    """whose plan ends probing early, once more of it could not move that out of its plateau"""
    probing: Mapping[str, float] | None = None
    """the most that probing may take, by one of LIMITS"""
    per_job: int | None = None
    """how many trainings one job is to be, where a method has the choice; None: all of them"""

    @property
    def learner(self) -> Learner:
        return self._opened[0]

    @property
    def labels(self) -> Labels:
        return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Learner, Labels]:
        return self.open()

    def tell(self, done: int, total: int, what: str) -> None:
        """That so many trainings of the job are done, for whoever waits for it."""
        if self.progress is not None:
            self.progress(done, total, what)

    def once(self, make: Callable[[Request], Prepared]) -> Prepared:
        """What `make` makes of this request, made when it is first asked for."""
        made: dict[Any, Any] = vars(self).setdefault("_made", {})
        if make not in made:
            made[make] = make(self)
        found: Prepared = made[make]
        return found

    @cached_property
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
