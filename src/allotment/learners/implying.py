"""Trainings that have, beside the labels that they are given, those that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from allotment.data.labels import Labels
from allotment.learners.learner import Learner, State

Implies = Mapping[str, Sequence[str]]
"""of tasks, the others of which a label comes along with one of theirs"""


class ImplyingLearner:
    """Any learner, with labels that imply others: those who draw labels, count and buy them need
    not know. It can whatever the other can; a task that labels do not name is not trained."""

    def __init__(self, learner: Learner, implies: Implies):
        self._learner, self._implies = learner, implies

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        found = getattr(self._learner, name)
        if name == "with_validation":
            return lambda instances: ImplyingLearner(found(instances), self._implies)
        if name in ("stack", "start_many", "are_alike"):
            return lambda runs: found([(self.imply(labels), seed) for labels, seed in runs])
        if name == "find_patience":
            return lambda labels: found(self.imply(labels))
        return found

    def imply(self, labels: Labels) -> Labels:
        """The labels, and what follows from them."""
        return imply(labels, self._implies)

    def steps(self, labels: Labels) -> int:
        return self._learner.steps(self.imply(labels))

    def start(self, labels: Labels, seed: int) -> State:
        return self._learner.start(self.imply(labels), seed)


def imply(labels: Labels, implies: Implies) -> Labels:
    """The labels with those that follow, of tasks that they name."""
    named = {by: [task for task in tasks if task in labels] for by, tasks in implies.items()}
    return labels.with_implied(named)


def add_implied(learner: Learner, implies: Implies) -> Learner:
    """The learner with labels that imply others, if any do."""
    return cast(Learner, ImplyingLearner(learner, implies)) if implies else learner
