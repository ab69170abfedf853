"""A learner for the paper's algorithm whose transfer, affinities, reduction rates and gains are
known; commands take it as --learner FILE:make.

A mini-batch of task i does for task j's metric what TRANSFER[i, j] mini-batches of j's own do, and
takes the share AFFINITY[i, j] * STEP of j's loss away; `a` pseudo-labels add first (1 - b^a) / (1 -
b) to the metric. NOISE is that of every score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from allotment.data.labels import Labels
from allotment.learners.learner import Measure

PLANTED_TASKS = ("size", "look")
"""of the tables in helpers.campaigns: a number with a metric that is better when lower, a class"""
TRANSFER = np.array([[1.0, 0.13], [1.03, 1.0]])
AFFINITY = np.array([[1.0, -0.25], [0.5, 1.0]])
RATES = {"size": 0.99, "look": 0.97}
THIRD_RATE = 0.98
FIRST = {"size": 0.002, "look": 0.004}
STEP = 0.01
LENGTH = 62


@dataclass
class PlantedState:
    pseudo: dict[str, int]
    seed: int
    skill: np.ndarray
    loss: np.ndarray
    done: int = 0
    arm: tuple[str, ...] = ()


@dataclass
class PlantedLearner:
    noise: float = 0.0
    blind_until: int = 0
    """up to this step no mini-batch changes any metric, so that Eq. 5 divides by 0"""
    first: dict[str, float] = field(default_factory=lambda: dict(FIRST))
    validation: Labels | None = None
    trained: list[dict[str, frozenset[int]]] = field(default_factory=list)
    """of each training, the instances with labels that are no pseudo-labels"""
    split: Any = None
    tasks: tuple[str, ...] = PLANTED_TASKS

    def steps(self, labels: Labels) -> int:
        return LENGTH

    def start(self, labels: Labels, seed: int) -> PlantedState:
        seen = {}
        for task in self.tasks:
            mine = labels[task]
            seen[task] = frozenset(mine.instances[~mine.is_pseudo].tolist())
            if self.validation is not None:
                scores = {*self.validation[task].instances.tolist()}
                assert not scores & {*mine.instances.tolist()}, "trained on what scores"
        self.trained.append(seen)
        pseudo = {task: int(labels[task].is_pseudo.sum()) for task in self.tasks}
        count = len(self.tasks)
        return PlantedState(pseudo, seed, np.zeros(count), np.ones(count))

    def step(self, state: PlantedState, tasks: Sequence[str]) -> PlantedState:
        places = [self.tasks.index(task) for task in tasks]
        gain = STEP * (1.7 - 1.4 * state.done / LENGTH) * (state.done >= self.blind_until)
        skill = state.skill + gain * TRANSFER[places].sum(axis=0)
        loss = state.loss * np.prod(1 - STEP * AFFINITY[places], axis=0)
        arm = tuple(sorted(tasks))
        return replace(state, skill=skill, loss=loss, done=state.done + 1, arm=arm)

    def fork(self, state: PlantedState) -> PlantedState:
        return state

    def score(self, state: PlantedState, task: str) -> Measure:
        at, b = self.tasks.index(task), RATES.get(task, THIRD_RATE)
        more = self.first[task] * (1 - b ** state.pseudo[task]) / (1 - b)
        metric = float(state.skill[at]) + more
        if self.noise:
            words = "".join(state.arm).encode()
            key = [state.seed % 2**32, state.done, at, *state.pseudo.values(), *words]
            metric += self.noise * float(np.random.default_rng(key).normal())
        higher = task != "size"
        value = 0.2 + metric if higher else 3.0 - metric
        return Measure(value, float(state.loss[at]), higher)

    def predict(self, state: PlantedState, task: str, instances: np.ndarray) -> np.ndarray:
        if task == "size":
            return np.full(len(instances), 3.0)
        return np.tile([0.7, 0.3], (len(instances), 1))

    def with_validation(self, instances: np.ndarray | Labels) -> PlantedLearner:
        if not isinstance(instances, Labels):
            instances = Labels(dict.fromkeys(self.tasks, instances.tolist()))
        return replace(self, validation=instances)


def make(data: Any, split: Any) -> PlantedLearner:
    return PlantedLearner(split=split)


def make_noisy(data: Any, split: Any) -> PlantedLearner:
    return PlantedLearner(split=split, noise=0.0005)


def make_mute(data: Any, split: Any) -> PlantedLearner:
    """No pseudo-label teaches anything."""
    return PlantedLearner(split=split, noise=0.01, first=dict.fromkeys(FIRST, 0.0))


def find_reach(rate: float) -> float:
    """Labels after which one more is worth 1/e of the first."""
    return -1 / math.log(rate)


@dataclass
class WeighedLearner(PlantedLearner):
    """The class is learnt best where the number's loss counts three times."""

    weights: dict[str, float] = field(default_factory=dict)

    def score(self, state: PlantedState, task: str) -> Measure:
        found = super().score(state, task)
        if task != "look":
            return found
        away = abs(math.log(self.weights["size"] / 3) - math.log(self.weights["look"]))
        noise = float(np.random.default_rng([state.seed, 5]).normal())
        return replace(found, metric=found.metric + 0.5 - 0.1 * away + 0.001 * noise * away)


def make_weighed(data: Any, split: Any) -> WeighedLearner:
    weights = {target.name: target.loss_weight for target in data.targets}
    return WeighedLearner(split=split, weights=weights)


# --- of the paper's future work ---

CROSS_RATES = {("size", "look"): 0.95, ("look", "size"): 0.995}
CROSS_FIRST = {("size", "look"): 0.003, ("look", "size"): 0.001}


@dataclass
class PairedLearner(PlantedLearner):
    """Pseudo-labels of one task help the other, too, by rates of their own."""

    cross: dict[tuple[str, str], float] = field(default_factory=lambda: dict(CROSS_FIRST))
    """what the first one adds"""

    def score(self, state: PlantedState, task: str) -> Measure:
        found, more = super().score(state, task), 0.0
        for (source, target), first in self.cross.items():
            b = CROSS_RATES[source, target]
            if target == task:
                more += first * (1 - b ** state.pseudo[source]) / (1 - b)
        more = more if found.higher_is_better else -more
        return replace(found, metric=found.metric + more)


THREE_TASKS = ("size", "look", "form")
TRANSFER_OF_THREE = np.array([[1.0, 0.13, 0.4], [1.03, 1.0, -0.2], [0.2, 0.5, 1.0]])
EXCESS = {"size": -0.24, "look": 0.0, "form": 0.5}
"""what the two others do together for each, beyond the sum of what they do"""


@dataclass
class ThreefoldLearner(PlantedLearner):
    """Three tasks, of which two do more for the third than the sum, or less."""

    tasks: tuple[str, ...] = THREE_TASKS
    first: dict[str, float] = field(default_factory=lambda: dict.fromkeys(THREE_TASKS, 0.002))

    def step(self, state: PlantedState, tasks: Sequence[str]) -> PlantedState:
        places = [self.tasks.index(task) for task in tasks]
        gain = STEP * (1.7 - 1.4 * state.done / LENGTH)
        skill = state.skill + gain * TRANSFER_OF_THREE[places].sum(axis=0)
        if {*tasks} == {*THREE_TASKS}:
            skill = skill + gain * np.array([EXCESS[task] for task in self.tasks])
        return replace(state, skill=skill, done=state.done + 1, arm=tuple(sorted(tasks)))


def make_paired(data: Any, split: Any) -> PairedLearner:
    return PairedLearner(split=split)


def make_paired_noisy(data: Any, split: Any) -> PairedLearner:
    return PairedLearner(split=split, noise=0.0005)


def make_threefold(data: Any, split: Any) -> ThreefoldLearner:
    return ThreefoldLearner(split=split)
