"""A learner: a linear model for each task, with numpy alone."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import Dataset
from allotment.data.labels import Labels, Split
from allotment.learners.batches import mini_batches
from allotment.learners.learner import Learner, Measure

BATCH, RATE, STEPS = 8, 0.1, 30


class Linear:
    """Numbers and classes, from whatever the inputs are, laid out in a row."""

    def __init__(self, data: Dataset, seen: Any):
        self.data, self.seen = data, seen
        self.targets = {target.name: target for target in data.targets}
        self.tasks = tuple(self.targets)
        rows = np.asarray(data.inputs(np.arange(data.size)), dtype=np.float64)
        rows = rows.reshape(data.size, -1)
        rows = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)
        self.rows = np.column_stack([rows, np.ones(data.size)])

    def steps(self, labels: Labels) -> int:
        return STEPS

    def start(self, labels: Labels, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        weights = {}
        for task, target in self.targets.items():
            weights[task] = 0.1 * rng.normal(size=(self.rows.shape[1], len(target.classes) or 1))
        return {"weights": weights, "labels": labels, "seed": seed, "done": 0}

    def step(self, state: dict[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
        number, seed = state["done"], state["seed"]
        for task, batch in mini_batches(state["labels"], tasks, BATCH, number, seed):
            truth = self._shape(
                task, batch.fill(lambda chosen, task=task: self._look(task, chosen))
            )
            answers = self._shape(task, self.predict(state, task, batch.instances))
            slope = self.rows[batch.instances].T @ (answers - truth)
            state["weights"][task] -= RATE * slope / len(batch)
        state["done"] += 1
        return state

    def fork(self, state: dict[str, Any]) -> dict[str, Any]:
        return copy.deepcopy(state)

    def predict(self, state: dict[str, Any], task: str, instances: Any) -> NDArray[Any]:
        found: NDArray[Any] = self.rows[instances] @ state["weights"][task]
        if not self.targets[task].classes:
            return found[:, 0]
        likely: NDArray[Any] = np.exp(found - found.max(axis=1, keepdims=True))
        return likely / likely.sum(axis=1, keepdims=True)

    def score(self, state: dict[str, Any], task: str) -> Measure:
        seen = self.seen[task].instances if isinstance(self.seen, Labels) else self.seen
        known = seen[self.data.known(task)[seen]]
        if not len(known):
            return Measure(float("nan"), float("nan"), False)
        apart = self._shape(task, self.predict(state, task, known))
        apart = apart - self._shape(task, self._look(task, known))
        return Measure(float(np.abs(apart).mean()), float(np.square(apart).mean()), False)

    def with_validation(self, instances: Any) -> Linear:
        other = copy.copy(self)
        other.seen = instances
        return other

    @property
    def validation(self) -> Any:
        return self.seen

    def _look(self, task: str, chosen: Any) -> NDArray[Any]:
        return np.asarray(self.data.values(task, chosen))

    def _shape(self, task: str, values: NDArray[Any]) -> NDArray[Any]:
        """A column for each class, or one."""
        if values.ndim == 2:
            return values
        classes = len(self.targets[task].classes)
        return np.eye(classes)[values.astype(int)] if classes else values[:, None]


def make(data: Dataset, split: Split) -> Learner:
    return Linear(data, split.validation)
