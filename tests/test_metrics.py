"""Metrics against scikit-learn and torchmetrics, on random and on awkward predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from allotment.data.dataset import VOID, Target
from allotment.learners.learner import Measure
from allotment.learners.metrics import MAPS, METRICS, USUAL, Running, metric_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torchmetrics warns of its own optional parts
    import torchmetrics.functional as tm

SEEDS = range(5)


def classes(seed: int, count: int = 200, kinds: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random((count, kinds)) + 0.2
    return scores / scores.sum(axis=1, keepdims=True), rng.integers(0, kinds, count)


def many(seed: int, count: int = 200, kinds: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((count, kinds)).round(2), (rng.random((count, kinds)) < 0.4).astype(float)  # ties on purpose


def numbers(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.normal(size=300) * 7 + 3
    return true + rng.normal(size=300), true


CHECKS: list[tuple[str, Callable[[int], tuple[np.ndarray, np.ndarray]], Callable[[np.ndarray, np.ndarray], float]]] = [
    ("accuracy", classes, lambda p, y: sk.accuracy_score(y, p.argmax(1))),
    ("f1", classes, lambda p, y: sk.f1_score(y, p.argmax(1), average="macro")),
    ("miou", classes, lambda p, y: sk.jaccard_score(y, p.argmax(1), average="macro")),
    ("roc_auc", classes, lambda p, y: sk.roc_auc_score(y, p, multi_class="ovr", average="macro")),
    ("average_precision", classes, lambda p, y: sk.average_precision_score(np.eye(4)[y], p, average="macro")),
    ("roc_auc", lambda s: classes(s, kinds=2), lambda p, y: sk.roc_auc_score(y, p[:, 1])),
    ("average_precision", lambda s: classes(s, kinds=2), lambda p, y: sk.average_precision_score(y, p[:, 1])),
    ("jaccard", many, lambda p, y: sk.jaccard_score(y, p > 0.5, average="samples", zero_division=1.0)),
    ("accuracy", many, lambda p, y: float(np.mean((p > 0.5) == y))),
    ("f1", many, lambda p, y: sk.f1_score(y, p > 0.5, average="macro")),
    ("roc_auc", many, lambda p, y: sk.roc_auc_score(y, p, average="macro")),
    ("average_precision", many, lambda p, y: sk.average_precision_score(y, p, average="macro")),
    ("mae", numbers, lambda p, y: sk.mean_absolute_error(y, p)),
    ("rmse", numbers, lambda p, y: sk.root_mean_squared_error(y, p)),
    ("r2", numbers, lambda p, y: sk.r2_score(y, p)),
    ("accuracy", classes, lambda p, y: tm.accuracy(t(p), t(y), "multiclass", num_classes=4, average="micro").item()),
    ("f1", classes, lambda p, y: tm.f1_score(t(p), t(y), "multiclass", num_classes=4, average="macro").item()),
    ("roc_auc", classes, lambda p, y: tm.auroc(t(p), t(y), "multiclass", num_classes=4).item()),
    ("r2", numbers, lambda p, y: tm.r2_score(t(p), t(y)).item()),
]


def t(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "make", "oracle"), CHECKS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CHECKS)])
def test_metrics_agree_with_the_libraries(name: str, make: Callable, oracle: Callable, seed: int) -> None:
    predictions, values = make(seed)
    assert METRICS[name](predictions, values) == pytest.approx(oracle(predictions, values), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_iou_of_masks_agrees_with_torchmetrics(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, masks = rng.random((6, 5, 16, 16)), rng.integers(0, 5, (6, 16, 16))
    masks[:, :3] = VOID
    wanted = tm.jaccard_index(t(scores).argmax(1), t(masks), "multiclass", num_classes=5, ignore_index=VOID)
    assert METRICS["miou"](scores, masks) == pytest.approx(wanted.item(), abs=1e-6)
    right = tm.accuracy(t(scores), t(masks), "multiclass", num_classes=5, average="micro", ignore_index=VOID)
    assert METRICS["accuracy"](scores, masks) == pytest.approx(right.item(), abs=1e-6)


def test_unknown_labels_do_not_count() -> None:
    predictions, values = many(0)
    holes = values.copy()
    holes[::3, 1] = np.nan
    for name in ("roc_auc", "average_precision", "f1"):
        known = ~np.isnan(holes[:, 1])
        alone = METRICS[name](predictions[known][:, [1]], values[known][:, [1]])
        rest = METRICS[name](np.delete(predictions, 1, 1), np.delete(values, 1, 1))
        assert METRICS[name](predictions, holes) == pytest.approx((alone + 4 * rest) / 5)
    said, true = numbers(0)
    true[:10] = np.nan
    assert METRICS["mae"](said, true) == pytest.approx(np.abs(said - true)[10:].mean())


def test_angles_by_hand() -> None:
    said = np.zeros((1, 3, 1, 3))
    said[0, :, 0, 0], said[0, :, 0, 1], said[0, :, 0, 2] = (1, 0, 0), (0, 2, 0), (0, 0, 1)
    true = np.zeros((1, 3, 1, 3))
    true[0, :, 0, 0], true[0, :, 0, 1], true[0, :, 0, 2] = (1, 0, 0), (0, 0, 1), (np.nan, 0, 0)
    assert METRICS["angular_error"](said, true) == pytest.approx(45)


def test_a_validation_split_with_one_class_gives_no_number() -> None:
    predictions, values = classes(0, kinds=2)
    assert np.isnan(METRICS["roc_auc"](predictions, np.zeros_like(values)))
    assert np.isnan(METRICS["average_precision"](predictions, np.zeros_like(values)))
    assert np.isnan(METRICS["accuracy"](predictions[:0], values[:0]))


def test_every_metric_points_the_right_way() -> None:
    """A perfect answer scores better than a poor one, in the direction that the metric names."""
    perfect = {"classification": np.eye(4), "multilabel": np.eye(4), "regression": np.arange(4.0)}
    values = {"classification": np.arange(4), "multilabel": np.eye(4), "regression": np.arange(4.0)}
    poor = {"classification": np.eye(4)[::-1], "multilabel": 1 - np.eye(4), "regression": np.arange(4.0)[::-1] * 3}
    for metric in METRICS.values():
        for kind in set(metric.kinds) & set(perfect):
            best, worst = metric(perfect[kind], values[kind]), metric(poor[kind], values[kind])
            assert (best > worst) == metric.higher_is_better, (metric.name, kind)
            gain = Measure(best, 0, metric.higher_is_better).gain_over(Measure(worst, 0, metric.higher_is_better))
            assert np.isnan(gain) or gain > 0


def test_every_kind_has_a_usual_metric() -> None:
    for kind, name in USUAL.items():
        classes_of = ("a", "b") if kind in ("classification", "multilabel", "segmentation") else ()
        found = metric_of(Target("x", kind, classes_of))
        assert (found.name if found else "loss") == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [(metric.name, kind) for metric in METRICS.values() for kind in metric.kinds if kind in MAPS],
)
def test_a_metric_over_parts_is_the_metric_of_the_whole(name: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    shape = (12, 5, 6)
    if kind == "segmentation":
        predictions, values = rng.random((12, 4, 5, 6)), rng.integers(0, 4, size=shape)
        values[rng.random(shape) < 0.2] = VOID
    elif kind == "normals":
        predictions, values = rng.normal(size=(2, 12, 3, 5, 6))
        values[3, :, 2, 2] = np.nan
    else:
        predictions, values = rng.random((2, *shape))
        values[rng.random(shape) < 0.2] = np.nan
    metric, running = METRICS[name], Running(METRICS[name], kind)
    for part in (slice(0, 5), slice(5, 6), slice(6, 12)):
        running.add(predictions[part], values[part])
    assert running.result() == pytest.approx(metric(predictions, values), rel=1e-12)
    assert np.isnan(Running(metric, kind).result())
