"""A learner whose transfer between tasks is known, and what is measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from allotment.data.labels import Labels
from allotment.estimates.probes import Probes, Scores, join, probe_training
from allotment.estimates.transfer import Transfer
from allotment.learners.learner import Learner, Measure

TASKS = ("a", "b", "c", "d")
LABELS = Labels({task: range(10) for task in TASKS})


@dataclass
class Skills:
    """A state: how good each task is, and what tells apart the noise of its scores."""

    skill: np.ndarray
    moves: np.ndarray
    """[i, j]: what a mini-batch of i does for j in this training"""
    noise: np.ndarray
    """[step, arm, task, metric or loss]"""
    done: int = 0
    arm: int = 0


@dataclass
class Planted:
    """A learner in which a mini-batch of i helps j as much as truth[i, j] mini-batches of j's own.

    Gains shrink from 1.7 to 0.3 times their mean over a training; scores have noise, most of it new
    at every step.
    """

    truth: np.ndarray
    size: float = 0.01
    """mean gain of a task's own mini-batch"""
    noise: float = 0.0
    """standard deviation of a difference of two scores"""
    wander: float = 0.0
    """spread of the transfer itself between trainings"""
    length: int = 202
    up: Mapping[str, bool] = field(default_factory=dict)
    """tasks whose metric is better when lower: {"a": False}"""

    @property
    def tasks(self) -> tuple[str, ...]:
        return TASKS[: len(self.truth)]

    def steps(self, labels: Labels) -> int:
        return self.length

    def start(self, labels: Labels, seed: int) -> Skills:
        rng, count = np.random.default_rng([seed, 77]), len(self.tasks)
        moves = self.truth + self.wander * rng.standard_normal((count, count)) * (1 - np.eye(count))
        shape = ((self.length + 10) // 10, (count + 1) ** 2, count, 2)
        noise = np.sqrt([0.9, 0.1])[:, None, None, None, None] * rng.standard_normal((2, *shape))
        # this part stays for four probes
        noise[1] = np.repeat(noise[1, ::4], 4, axis=0)[: shape[0]]
        return Skills(
            np.zeros(count), moves * self.size, noise.sum(axis=0) * self.noise / np.sqrt(2)
        )

    def step(self, state: Skills, tasks: Sequence[str]) -> Skills:
        places = sorted(TASKS.index(task) for task in tasks)
        state.skill += state.moves[places].sum(axis=0) * (1.7 - 1.4 * state.done / self.length)
        state.arm = 0
        for place in places[:2] if len(places) < 3 else ():
            state.arm = state.arm * (len(self.tasks) + 1) + place + 1
        state.done += 1
        return state

    def fork(self, state: Skills) -> Skills:
        return replace(state, skill=state.skill.copy())

    def score(self, state: Skills, task: str) -> Measure:
        place = TASKS.index(task)
        metric, loss = state.skill[place] + state.noise[state.done // 10, state.arm, place]
        up = self.up.get(task, True)
        return Measure(float(metric if up else 3 - metric), float(2 - 0.2 * loss), up)

    def predict(self, state: Skills, task: str, instances: np.ndarray) -> np.ndarray:
        return np.full(len(instances), state.skill[TASKS.index(task)])


def plant(rng: np.random.Generator, size: int = 4) -> np.ndarray:
    """A truth: a third of the cells are 0, the others of either sign."""
    truth = np.where(rng.random((size, size)) < 1 / 3, 0.0, rng.normal(0.25, 0.5, (size, size)))
    np.fill_diagonal(truth, 1.0)
    return truth


def measure_all(learner: Learner, runs: int, first: int = 0, **settings: Any) -> Probes:
    labels = Labels({task: range(10) for task in learner.tasks})
    return join(
        probe_training(learner, labels, first + run, **({"every": 10, "steps": 2} | settings))[0]
        for run in range(runs)
    )


def probes_of(gains: np.ndarray, runs: int = 1) -> Probes:
    """Probes with these gains of the metric, of equally long trainings."""
    count, size = gains.shape[:2]
    scores = Scores(np.ones((count, size)), 1 + gains)
    names = tuple(str(number * runs // count) for number in range(count))
    return Probes(TASKS[:size], (True,) * size, 5, names, np.arange(count), scores, scores)


def known(
    matrix: Sequence[Sequence[float]], estimator: str = "paper", units: int = 8, noise: float = 0.0
) -> Transfer:
    """Transfer that was measured without noise, or with some."""
    truth = np.array(matrix)
    rng = np.random.default_rng(0)
    sums = truth + noise * rng.standard_normal((units, *truth.shape))
    tasks = ("cls", "seg", "kp")[: len(truth)]
    return Transfer(tasks, estimator, "metric", "training", sums, np.ones((units, len(truth))))
