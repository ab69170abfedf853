"""A learner whose scores follow from numbers of labels, by slopes that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import allotment as al
from allotment.data.labels import Labels
from allotment.learners.learner import Measure

TASKS = ("a", "b", "c")
LABELS = Labels({"a": range(0, 80), "b": range(40, 120), "c": range(100, 140)})
SLOPES = np.array([[6.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.5, 0.0, 9.0]])
"""[gaining, labelled]: what an e-fold of labels adds, in % of a score of 1"""


@dataclass
class Planted:
    """A learner whose scores are logarithms of counts, after a training of `length` steps; it
    counts what it does."""

    noise: float = 0.0
    slopes: np.ndarray = field(default_factory=lambda: SLOPES)
    length: int = 40
    validation: Sequence[int] | None = None
    """instances that score; None is labels that nobody trains on"""
    mute: tuple[str, ...] = ()
    """tasks without validation labels of their own"""
    seen: list[Labels] = field(default_factory=list)
    higher: bool = True

    tasks = TASKS

    def steps(self, labels: Labels) -> int:
        return self.length

    def start(self, labels: Labels, seed: int) -> tuple[Labels, int, int]:
        if self.validation is not None:
            for task in TASKS:
                assert not set(labels[task].instances) & set(self.validation), (
                    "trained on what scores"
                )
        return labels, seed, 0

    def step(self, state: tuple[Labels, int, int], tasks: Sequence[str]) -> tuple[Labels, int, int]:
        if state[2] == 0:
            self.seen.append(state[0])
        return state[0], state[1], state[2] + 1

    def fork(self, state: tuple[Labels, int, int]) -> tuple[Labels, int, int]:
        return state

    def score(self, state: tuple[Labels, int, int], task: str) -> Measure:
        labels, seed, done = state
        if task in self.mute and self.validation is None:
            return Measure(math.nan, math.nan, self.higher)
        at = TASKS.index(task)
        key = [
            seed % 2**32,
            done,
            at,
            len(self.validation or ()),
            *(len(labels[each]) for each in TASKS),
        ]
        value = 0.2 if done == 0 else 1.0
        if done:
            shares = [max(len(labels[each]), 1) / len(LABELS[each]) for each in TASKS]
            value += float(self.slopes[at] @ np.log(shares)) / 100
        value += self.noise * np.random.default_rng(key).normal()
        return Measure(value if self.higher else 2 - value, 1 - value, self.higher)

    def predict(self, state: object, task: str, instances: np.ndarray) -> np.ndarray:
        return np.tile([0.7, 0.3], (len(instances), 1))


class Folding(Planted):
    """The same, and it can be scored on a part of the labels."""

    def with_validation(self, instances: np.ndarray | Labels) -> Folding:
        if isinstance(instances, Labels):
            instances = np.concatenate([mine.instances for mine in instances.values()])
        return replace(self, validation=instances.tolist())


PROBLEM = al.Problem([al.Task(task, cost=1, have=len(LABELS[task])) for task in TASKS], budget=200)
