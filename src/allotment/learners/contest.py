"""Which learner suits a table: each is trained once on the labels at hand, and those labels that
its members left out say how good it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.data.labels import Labels, shuffle
from allotment.errors import InputError, Mistake
from allotment.formatting import percent, several
from allotment.learners.learner import BUILT_IN, train
from allotment.learners.tempering import FEWEST_TRUSTED, TemperedLearner, grade
from allotment.machine import settled
from allotment.progress import Progress

CANDIDATES = (BUILT_IN, "sklearn:HistGradientBoosting", "sklearn:Ridge")
"""learners that are compared; the first stays unless another is better"""
MOST_LABELS_COMPARED = 1000
"""labels of a task that learners are compared on, so that it takes seconds whatever the table"""
CLEARLY = 0.01
"""of the best constant's error that another learner must remove beyond the first"""
CALLED = {
    BUILT_IN: "the built-in perceptrons",
    "sklearn:HistGradientBoosting": "gradient boosting",
    "sklearn:Ridge": "straight lines (ridge and logistic regression)",
}
"""in words"""


@dataclass(frozen=True)
class Contest:
    """How learners did on the same labels."""

    skills: Mapping[str, Mapping[str, float]]
    """of each learner and task, the share of the best constant's error that it removes"""
    seconds: Mapping[str, float]
    """that one training of each took"""
    labels: Mapping[str, int]
    """of each task that it was compared on"""

    def __post_init__(self) -> None:
        if not self.skills:
            raise InputError([Mistake("learner", "there is none to compare")])

    @property
    def means(self) -> dict[str, float]:
        """Over tasks; 0 where no task had labels enough."""
        return {
            name: float(np.mean(list(each.values()))) if each else 0.0
            for name, each in self.skills.items()
        }

    @property
    def best(self) -> str:
        """The one that removes most, the first unless another is clearly better."""
        means = self.means
        first, top = next(iter(means)), max(means, key=lambda name: means[name])
        return top if means[top] > means[first] + CLEARLY else first

    def __str__(self) -> str:
        if not any(self.skills.values()):
            few = f"no task has {FEWEST_TRUSTED} labels to compare learners on"
            return f"{few}, so {CALLED[self.best]} train until you ask again (allot learners)"
        best, means = self.best, self.means
        others = [name for name in means if name != best]
        beside = ", ".join(f"{CALLED[name]}: {percent(means[name])}" for name in others)
        count = several(sum(self.labels.values()), "label")
        message = (
            f"{CALLED[best]} train, which remove {percent(means[best])} of the best constant"
            f" answer's error on {count} kept from them in turn"
        )
        return f"{message} ({beside})" if others else message

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        skills = {name: dict(each) for name, each in self.skills.items()}
        about = {"skills": skills, "seconds": dict(self.seconds), "labels": dict(self.labels)}
        return {"best": self.best} | about


@settled(load=False)
def compare_learners(
    makers: Mapping[str, Callable[[], TemperedLearner]],
    labels: Labels,
    seed: int,
    progress: Progress | None = None,
) -> Contest:
    """Train each learner once on the labels, or on some of very many; one whose library is not
    installed is left out."""
    some = Labels(
        {
            task: mine.keep(
                np.isin(
                    mine.instances, shuffle(mine.instances, "contest", seed)[:MOST_LABELS_COMPARED]
                )
            )
            for task, mine in labels.items()
        }
    )
    skills, seconds = {}, {}
    for done, (name, make) in enumerate(makers.items()):
        if progress is not None:
            progress(done, len(makers))
        learner = make()
        begin = time.perf_counter()
        skills[name] = dict(grade(learner, train(learner, some, seed)))
        seconds[name] = time.perf_counter() - begin
    if progress is not None:
        progress(len(makers), len(makers))
    counts = {task: count for task, count in some.counts.items() if count >= FEWEST_TRUSTED}
    return Contest(skills, seconds, counts)
