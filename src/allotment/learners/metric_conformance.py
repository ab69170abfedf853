"""Does a metric keep the contract? Inherit, say which it is, and let pytest run it:

class TestMine(MetricTests):
    metric = MINE
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import KINDS, PIXEL_KINDS, Target
from allotment.learners.metrics import Metric, Running, metric_of

SHAPES: dict[str, tuple[int, ...]] = dict.fromkeys(PIXEL_KINDS, (20, 6, 6))
SHAPES |= {"classification": (20,), "regression": (20,), "normals": (20, 3, 6, 6)}
"""of the labels of twenty instances"""
EXAMPLE_CLASSES = dict.fromkeys(("classification", "multilabel", "segmentation"), ("a", "b", "c"))
ALIKE = 1e-9
"""how far a metric over parts may be from the one over all of them"""


class MetricTests:
    """Every test that a metric must pass: what it is, and what it does with predictions that are
    right, wrong or missing."""

    metric: Metric

    def test_it_says_what_it_is(self) -> None:
        assert self.metric.name.isidentifier()
        assert isinstance(self.metric.higher_is_better, bool)
        assert self.metric.kinds
        assert set(self.metric.kinds) <= set(KINDS)

    def test_right_predictions_score_better_than_predictions_by_chance(self) -> None:
        for kind in self.metric.kinds:
            right, guessed, values = draw_predictions(kind)
            best, other = self.metric(right, values), self.metric(guessed, values)
            better = best > other if self.metric.higher_is_better else best < other
            assert better, f"{kind}: {best} for right predictions, {other} for guesses"

    def test_it_is_the_same_each_time_and_changes_nothing(self) -> None:
        for kind in self.metric.kinds:
            _, guessed, values = draw_predictions(kind)
            before = guessed.tobytes(), values.tobytes()
            assert self.metric(guessed, values) == self.metric(guessed, values)
            assert (guessed.tobytes(), values.tobytes()) == before

    def test_nothing_to_score_is_no_number(self) -> None:
        for kind in self.metric.kinds:
            right, _, values = draw_predictions(kind)
            assert np.isnan(self.metric(right[:0], values[:0]))

    def test_parts_add_up(self) -> None:
        for kind in self.metric.kinds:
            _, guessed, values = draw_predictions(kind)
            running = Running(self.metric, kind)
            for part in (slice(0, 7), slice(7, None)):
                running.add(guessed[part], values[part])
            whole = self.metric(guessed, values)
            assert abs(running.result() - whole) <= ALIKE * max(1.0, abs(whole))

    def test_a_task_can_name_it(self) -> None:
        """Through the registry: a package that offers it must be installed."""
        kind = self.metric.kinds[0]
        target = Target("mine", kind, EXAMPLE_CLASSES.get(kind, ()), metric=self.metric.name)
        assert metric_of(target) is self.metric


Predictions = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""right predictions, predictions by chance, and labels"""


def draw_predictions(kind: str) -> Predictions:
    """Of twenty instances, in the form in which learners answer a task of the kind."""
    rng = np.random.default_rng(0)
    if kind in ("classification", "segmentation"):
        return _draw_classes(rng, SHAPES[kind])
    if kind == "multilabel":
        values = rng.integers(2, size=(20, 3)).astype(np.float64)
        return values.copy(), rng.random((20, 3)), values
    values, guessed = rng.normal(size=SHAPES[kind]), rng.normal(size=SHAPES[kind])
    return values.copy(), guessed, values


def _draw_classes(rng: np.random.Generator, shape: tuple[int, ...]) -> Predictions:
    values = rng.integers(3, size=shape)
    guessed = rng.dirichlet(np.ones(3), size=shape)
    return np.moveaxis(np.eye(3)[values], -1, 1), np.moveaxis(guessed, -1, 1), values
