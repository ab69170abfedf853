"""Metrics against scikit-learn and torchmetrics, on random and on awkward predictions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.learners import make_images, make_table
from scipy import stats
from sklearn import metrics as sk

from allotment.data.dataset import KINDS, PIXEL_KINDS, VOID, Target
from allotment.data.labels import Labels, split
from allotment.learners.learner import Measure
from allotment.learners.metric_conformance import MetricTests
from allotment.learners.metrics import (
    CHANCE_ERROR,
    METRICS,
    SKILLS,
    USUAL_METRICS,
    Running,
    chance_error,
    find_metric_name,
    metric_of,
    rank_correlation,
    title_metric,
)
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torchmetrics warns of its own optional parts
    import torchmetrics.functional as tm

SEEDS = range(5)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def classes(seed: int, count: int = 200, kinds: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.random((count, kinds)) + 0.2
    return scores / scores.sum(axis=1, keepdims=True), rng.integers(0, kinds, count)


def many(seed: int, count: int = 200, kinds: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    # ties on purpose
    return rng.random((count, kinds)).round(2), (rng.random((count, kinds)) < 0.4).astype(float)


def numbers(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.normal(size=300) * 7 + 3
    return true + rng.normal(size=300), true


CHECKS: list[
    tuple[
        str,
        Callable[[int], tuple[np.ndarray, np.ndarray]],
        Callable[[np.ndarray, np.ndarray], float],
    ]
] = [
    ("accuracy", classes, lambda p, y: sk.accuracy_score(y, p.argmax(1))),
    ("f1", classes, lambda p, y: sk.f1_score(y, p.argmax(1), average="macro")),
    ("miou", classes, lambda p, y: sk.jaccard_score(y, p.argmax(1), average="macro")),
    ("roc_auc", classes, lambda p, y: sk.roc_auc_score(y, p, multi_class="ovr", average="macro")),
    (
        "average_precision",
        classes,
        lambda p, y: sk.average_precision_score(np.eye(4)[y], p, average="macro"),
    ),
    ("roc_auc", lambda s: classes(s, kinds=2), lambda p, y: sk.roc_auc_score(y, p[:, 1])),
    (
        "average_precision",
        lambda s: classes(s, kinds=2),
        lambda p, y: sk.average_precision_score(y, p[:, 1]),
    ),
    (
        "jaccard",
        many,
        lambda p, y: sk.jaccard_score(y, p > 0.5, average="samples", zero_division=1.0),
    ),
    ("accuracy", many, lambda p, y: float(np.mean((p > 0.5) == y))),
    ("f1", many, lambda p, y: sk.f1_score(y, p > 0.5, average="macro")),
    ("roc_auc", many, lambda p, y: sk.roc_auc_score(y, p, average="macro")),
    ("average_precision", many, lambda p, y: sk.average_precision_score(y, p, average="macro")),
    ("balanced_accuracy", classes, lambda p, y: sk.balanced_accuracy_score(y, p.argmax(1))),
    (
        "balanced_accuracy",
        lambda s: classes(s, count=9, kinds=6),  # some of them never occur
        lambda p, y: (
            tm.recall(t(p.argmax(1)), t(y), "multiclass", num_classes=6).item()
            if len(set(y)) == 6
            else float(np.mean([np.mean(p.argmax(1)[y == c] == c) for c in set(y)]))
        ),
    ),
    ("log_loss", classes, lambda p, y: sk.log_loss(y, p)),
    ("log_loss", lambda s: classes(s, kinds=2), lambda p, y: sk.log_loss(y, p[:, 1])),
    (
        "log_loss",
        many,
        lambda p, y: float(np.mean([sk.log_loss(y[:, c], p[:, c]) for c in range(5)])),
    ),
    ("mae", numbers, lambda p, y: sk.mean_absolute_error(y, p)),
    ("rmse", numbers, lambda p, y: sk.root_mean_squared_error(y, p)),
    ("r2", numbers, lambda p, y: sk.r2_score(y, p)),
    (
        "accuracy",
        classes,
        lambda p, y: tm.accuracy(t(p), t(y), "multiclass", num_classes=4, average="micro").item(),
    ),
    (
        "f1",
        classes,
        lambda p, y: tm.f1_score(t(p), t(y), "multiclass", num_classes=4, average="macro").item(),
    ),
    ("roc_auc", classes, lambda p, y: tm.auroc(t(p), t(y), "multiclass", num_classes=4).item()),
    ("r2", numbers, lambda p, y: tm.r2_score(t(p), t(y)).item()),
]


def t(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "make", "oracle"), CHECKS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CHECKS)]
)
def test_metrics_agree_with_the_libraries(
    name: str, make: Callable, oracle: Callable, seed: int
) -> None:
    predictions, values = make(seed)
    assert METRICS[name](predictions, values) == pytest.approx(
        oracle(predictions, values), abs=1e-6
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_iou_of_masks_agrees_with_torchmetrics(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, masks = rng.random((6, 5, 16, 16)), rng.integers(0, 5, (6, 16, 16))
    masks[:, :3] = VOID
    wanted = tm.jaccard_index(
        t(scores).argmax(1), t(masks), "multiclass", num_classes=5, ignore_index=VOID
    )
    assert METRICS["miou"](scores, masks) == pytest.approx(wanted.item(), abs=1e-6)
    right = tm.accuracy(
        t(scores), t(masks), "multiclass", num_classes=5, average="micro", ignore_index=VOID
    )
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
    poor = {
        "classification": np.eye(4)[::-1],
        "multilabel": 1 - np.eye(4),
        "regression": np.arange(4.0)[::-1] * 3,
    }
    for metric in map(METRICS.load, METRICS):
        for kind in set(metric.kinds) & set(perfect):
            best, worst = metric(perfect[kind], values[kind]), metric(poor[kind], values[kind])
            assert (best > worst) == metric.higher_is_better, (metric.name, kind)
            gain = Measure(best, 0, metric.higher_is_better).gain_over(
                Measure(worst, 0, metric.higher_is_better)
            )
            assert np.isnan(gain) or gain > 0


def test_every_kind_has_a_usual_metric() -> None:
    for kind, name in USUAL_METRICS.items():
        classes_of = ("a", "b") if kind in ("classification", "multilabel", "segmentation") else ()
        found = metric_of(Target("x", kind, classes_of))
        assert (found.name if found else "loss") == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (metric.name, kind)
        for metric in map(METRICS.load, METRICS)
        for kind in metric.kinds
        if kind in PIXEL_KINDS
    ],
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


# --- skill: how far answers are above chance ---

SEPARATION, RANKS = SKILLS["classification"], SKILLS["regression"]


def count_pairs(score: np.ndarray, true: np.ndarray) -> float:
    """Of all pairs of a positive and a negative, those in the right order less those in the wrong
    one."""
    return float(
        np.mean(
            [np.sign(p - n) for p, n in itertools.product(score[true > 0.5], score[true < 0.5])]
        )
    )


def two(score: np.ndarray) -> np.ndarray:
    """Answers of two classes, as a learner gives them."""
    return np.stack([1 - score, score], axis=1)


@pytest.mark.parametrize("decimals", [1, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_separation_counts_pairs(seed: int, decimals: int) -> None:
    """With one decimal nearly every answer has its equal."""
    rng = np.random.default_rng(seed)
    true = (rng.random(60) < 0.2).astype(np.int64)
    score = np.clip(0.3 + 0.2 * true + rng.normal(0, 0.2, 60), 0, 1).round(decimals)
    found = SEPARATION(two(score), true)
    assert found == pytest.approx(count_pairs(score, true), abs=1e-12)
    assert found == pytest.approx(2 * sk.roc_auc_score(true, score) - 1, abs=1e-12)
    assert SEPARATION(two(1 - score), true) == pytest.approx(-found, abs=1e-12)
    said, values = classes(seed)
    assert SEPARATION(said, values) == pytest.approx(
        np.mean([count_pairs(said[:, kind], (values == kind).astype(float)) for kind in range(4)]),
        abs=1e-12,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_separation_of_several_labels_leaves_out_what_is_unknown(seed: int) -> None:
    said, values = many(seed)
    values[np.random.default_rng(seed).random(values.shape) < 0.3] = np.nan
    # one class only: nothing can be told of it
    values[:, 4] = np.where(np.isnan(values[:, 4]), np.nan, 1.0)
    wanted = [
        2 * sk.roc_auc_score(values[known, kind], said[known, kind]) - 1
        for kind, known in enumerate(~np.isnan(values[:, :4].T))
    ]
    assert SKILLS["multilabel"](said, values) == pytest.approx(np.mean(wanted), abs=1e-12)
    counts = [(np.nansum(column), np.sum(column == 0)) for column in values[:, :4].T]
    errors = [2 * np.sqrt((ones + zeros + 1) / (12 * ones * zeros)) for ones, zeros in counts]
    assert CHANCE_ERROR(said, values) == pytest.approx(np.mean(errors), rel=1e-12)


@pytest.mark.parametrize("decimals", [0, 9])
@pytest.mark.parametrize("seed", SEEDS)
def test_rank_correlation_is_spearman_s(seed: int, decimals: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 2, 80).round(decimals)
    said = (true + rng.normal(0, 3, 80)).round(decimals)
    found = RANKS(said, true)
    assert found == pytest.approx(stats.spearmanr(said, true).statistic, abs=1e-12)
    # the order is all that counts
    assert RANKS(np.exp(said), true) == pytest.approx(found, abs=1e-12)
    assert RANKS(-said, true) == pytest.approx(-found, abs=1e-12)
    assert RANKS(true**3, true) == pytest.approx(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_skill_of_numbers_leaves_out_what_is_unknown(seed: int) -> None:
    said, true = numbers(seed)
    known = np.random.default_rng(seed).random(len(true)) < 0.6
    partly = np.where(known, true, np.nan)
    for function, wanted in ((rank_correlation, RANKS), (chance_error, CHANCE_ERROR)):
        assert function(said, partly) == pytest.approx(wanted(said[known], true[known]), abs=1e-12)
        assert np.isnan(function(said, np.full(len(true), np.nan)))
    assert rank_correlation(said, partly) == pytest.approx(
        stats.spearmanr(said[known], true[known])[0], abs=1e-12
    )
    assert chance_error(said, partly) == pytest.approx((known.sum() - 1) ** -0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_skill_of_classes_leaves_out_what_is_unknown(seed: int) -> None:
    said, true = classes(seed)
    known = np.random.default_rng(seed).random(len(true)) < 0.6
    partly = np.where(known, true, np.nan)
    wanted = sk.roc_auc_score(
        true[known], said[known] / said[known].sum(1, keepdims=True), multi_class="ovr"
    )
    assert METRICS["roc_auc"](said, partly) == pytest.approx(wanted, abs=1e-12)
    ones = [np.sum(true[known] == kind) for kind in range(4)]
    errors = [2 * np.sqrt((known.sum() + 1) / (12 * one * (known.sum() - one))) for one in ones]
    assert chance_error(said, partly) == pytest.approx(np.mean(errors), rel=1e-12)


def test_answers_that_are_all_alike_have_no_skill() -> None:
    true = np.arange(10) % 2
    assert SEPARATION(two(np.full(10, 0.3)), true) == 0
    assert SKILLS["multilabel"](np.full((10, 1), 0.3), true[:, None].astype(float)) == 0
    assert RANKS(np.full(10, 4.2), np.arange(10.0)) == 0
    assert RANKS(np.arange(10.0), np.full(10, 4.2)) == 0


def test_labels_of_one_class_have_neither_skill_nor_chance() -> None:
    said = two(np.linspace(0, 1, 9))
    for true in (np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.int64)):
        assert np.isnan(SEPARATION(said, true))
        assert np.isnan(CHANCE_ERROR(said, true))
    for metric, empty in (
        (SEPARATION, said[:0]),
        (RANKS, np.zeros(0)),
        (CHANCE_ERROR, said[:0]),
        (CHANCE_ERROR, np.zeros(0)),
    ):
        assert np.isnan(metric(empty, np.zeros(0)))


# --- answers by chance ---


@pytest.mark.parametrize(("ones", "zeros"), [(1, 4), (3, 3), (2, 6)])
def test_the_error_by_chance_is_that_of_all_orders_of_two_classes(ones: int, zeros: int) -> None:
    size = ones + zeros
    found = []
    for chosen in itertools.combinations(range(size), ones):
        true = np.isin(np.arange(size), chosen).astype(np.int64)
        found.append(SEPARATION(two(np.linspace(0, 1, size)), true))
    assert np.mean(found) == pytest.approx(0, abs=1e-12)
    assert CHANCE_ERROR(two(np.linspace(0, 1, size)), true) == pytest.approx(
        np.std(found), rel=1e-12
    )


@pytest.mark.parametrize("true", [[1.0, 2, 3, 4, 5, 6], [1.0, 1, 1, 2, 2, 7]])
def test_the_error_by_chance_is_that_of_all_orders_of_numbers(true: list[float]) -> None:
    said = [np.array(order, dtype=float) for order in itertools.permutations(range(6))]
    found = [RANKS(each, np.array(true)) for each in said]
    assert np.mean(found) == pytest.approx(0, abs=1e-12)
    assert CHANCE_ERROR(said[0], np.array(true)) == pytest.approx(np.std(found), rel=1e-12)


def simulate(
    skill: Callable[[np.ndarray, np.ndarray], float], shape: tuple[int, ...], values: np.ndarray
) -> float:
    """Standard deviation of the skill of 2000 random answers, which is itself known to within 1.6
    %."""
    rng = np.random.default_rng(1)
    return float(np.std([skill(rng.random(shape), values) for _ in range(2000)]))


@pytest.mark.parametrize("positives", [2, 30, 100])
def test_the_error_by_chance_is_that_of_simulated_answers(positives: int) -> None:
    true = (np.arange(200) < positives).astype(float)[:, None]
    wanted = CHANCE_ERROR(np.zeros((200, 1)), true)
    assert simulate(SKILLS["multilabel"], (200, 1), true) == pytest.approx(wanted, rel=0.06)
    # equal answers vary less: there the error is on the safe side
    coarse = simulate(
        lambda said, values: SKILLS["multilabel"](said.round(), values), (200, 1), true
    )
    assert 0.8 * wanted < coarse < wanted
    numbers_ = np.random.default_rng(0).normal(size=60)
    assert simulate(RANKS, (60,), numbers_) == pytest.approx(
        CHANCE_ERROR(numbers_, numbers_), rel=0.06
    )


def test_of_several_classes_the_error_by_chance_is_an_upper_end() -> None:
    """It is that of classes whose answers are all alike; where they are independent, their mean
    varies less."""
    rng = np.random.default_rng(2)
    values = (rng.random((120, 5)) < 0.3).astype(float)
    wanted = CHANCE_ERROR(np.zeros((120, 5)), values)
    apart = simulate(SKILLS["multilabel"], (120, 5), values)
    assert apart == pytest.approx(wanted / np.sqrt(5), rel=0.1)
    same = np.repeat(values[:, :1], 5, axis=1)
    alike = simulate(
        lambda said, true: SKILLS["multilabel"](np.repeat(said, 5, axis=1), true), (120, 1), same
    )
    assert alike == pytest.approx(CHANCE_ERROR(same, same), rel=0.06)
    kinds = rng.integers(0, 4, 120)
    assert simulate(SEPARATION, (120, 4), kinds) < CHANCE_ERROR(np.zeros((120, 4)), kinds)


# --- as a learner tells it ---


def test_a_learner_tells_the_skill_of_labels_that_it_has() -> None:
    """From a state that has learnt nothing: answers of some order are all that is needed."""
    data = make_table()
    rng = np.random.default_rng(3)
    missing = {name: rng.random(data.size) < 0.4 for name in ("yes", "number")}
    numbers_ = np.where(missing["number"], np.nan, data.labels["number"]).astype(np.float32)
    several = np.where(rng.random((data.size, 4)) < 0.3, np.nan, data.labels["many"]).astype(
        np.float32
    )
    data = replace(
        data, missing=missing, labels={**data.labels, "number": numbers_, "many": several}
    )
    parts = split(data, 0, 0.4, 0.1)
    learner = TorchLearner(data, parts, Recipe(steps=5, device="cpu"))
    state = learner.start(Labels({}), 0)
    for task in ("yes", "number"):
        known = parts.validation[~missing[task][parts.validation]]
        said, true = learner.predict(state, task, known), data.labels[task][known]
        if task == "yes":
            wanted, error = count_pairs(said[:, 1], true), CHANCE_ERROR(said, true)
        else:
            wanted, error = stats.spearmanr(said, true).statistic, (len(known) - 1) ** -0.5
        assert learner.score(state, task).skill == pytest.approx(wanted, abs=1e-6)
        assert learner.score(state, task).skill_error == pytest.approx(error, rel=1e-6)
    said = learner.predict(state, "many", parts.validation)
    wanted = SKILLS["multilabel"](said, several[parts.validation])
    assert learner.score(state, "many").skill == pytest.approx(wanted, abs=1e-6)


def test_every_kind_of_task_has_a_skill() -> None:
    assert {*SKILLS} | {*PIXEL_KINDS} == {*KINDS}
    data = make_images(count=12, size=16, side=7)
    learner = TorchLearner(
        data, split(data, 0, 0.5, 0.1), Recipe(steps=5, batch_size=4, device="cpu")
    )
    state = learner.start(Labels({}), 0)
    for target in data.targets:
        found = learner.score(state, target.name)
        assert np.isfinite([found.metric, found.skill]).all(), target.name
        assert 0 < found.skill_error < 1, target.name


def test_of_many_classes_number_255_is_a_class_but_of_pixels_it_is_none() -> None:
    answers = np.eye(300)[[255, 255, 7, 8]]
    assert METRICS["accuracy"](answers, np.array([255, 3, 255, 255])) == 0.25
    pixels = np.moveaxis(np.eye(3)[np.array([[[0, 1], [2, 2]]])], -1, 1)
    assert METRICS["accuracy"](pixels, np.array([[[0, 255], [1, 255]]])) == 0.5


@pytest.mark.parametrize("name", list(METRICS))
class TestContract(MetricTests):
    """Every metric that is built in keeps the contract of the seam."""

    @pytest.fixture(autouse=True)
    def _choose(self, name: str) -> None:
        self.metric = METRICS[name]


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_over_parts_agree_with_the_library(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depth = rng.random((6, 8, 8)) * 3 + 50
    depth[:, :2] = np.nan
    said = depth + rng.normal(size=depth.shape)
    known = ~np.isnan(depth)
    running = Running(METRICS["r2"], "depth")
    for part in range(6):
        running.add(said[part : part + 1], depth[part : part + 1])
    assert running.result() == pytest.approx(sk.r2_score(depth[known], said[known]), abs=1e-9)
    scores, masks = rng.random((6, 5, 8, 8)), rng.integers(0, 4, (6, 8, 8))
    running = Running(METRICS["balanced_accuracy"], "segmentation")
    for part in range(6):
        running.add(scores[part : part + 1], masks[part : part + 1])
    said_class = scores.argmax(1)
    found = [np.mean(said_class[masks == place] == place) for place in range(4)]
    assert running.result() == pytest.approx(np.mean(found))


def test_metrics_have_the_names_that_people_use() -> None:
    names = {"MAE": "mae", "R2": "r2", "mIoU": "miou", "AUC": "roc_auc", "F1": "f1"}
    assert {given: find_metric_name(given) for given in names} == names
    assert find_metric_name("balanced-accuracy") == "balanced_accuracy"
    assert find_metric_name("Loss") == "loss"
    assert find_metric_name("R 3") == "R 3"
    titles = [title_metric(name) for name in ("mae", "roc_auc", "accuracy", "loss")]
    assert titles == ["MAE", "AUC", "accuracy", "loss"]
