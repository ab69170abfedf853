"""Single-task curves on pseudo-labels and on subsets: they run, they rise, and nothing but their
seed decides them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, TaskLabels, draw, split
from allotment.errors import InputError
from allotment.estimates.curves import Points
from allotment.estimates.reduction import (
    CurvePrice,
    ensemble_curve,
    price_ensemble,
    price_subsets,
    spread_sizes,
    subset_curve,
)
from allotment.learners.learner import Measure
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def make_table(count: int = 700) -> ArrayData:
    """Three tasks on 20 features: one class of two, several classes at once, and a number."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(count, 20)).astype(np.float32)
    hidden = np.tanh(inputs @ rng.normal(size=(20, 4)))
    targets = (
        Target("yes", "classification", ("no", "yes"), metric="roc_auc"),
        Target("many", "multilabel", ("a", "b", "c", "d")),
        Target("number", "regression", metric="mae"),
    )
    labels = {
        "yes": (hidden[:, 0] + 0.3 * hidden[:, 1] > 0).astype(np.int64),
        "many": (hidden > 0.2).astype(np.float32),
        "number": (10 + 5 * hidden[:, 0] - 2 * hidden[:, 2]).astype(np.float32),
    }
    return ArrayData("table", targets, inputs, labels)


def make_learner(**recipe: Any) -> tuple[TorchLearner, Labels]:
    data = make_table()
    usual = {"steps": 60, "batch_size": 16}
    learner = TorchLearner(data, split(data, 0, 0.25, 0.1), Recipe(**usual | recipe))
    return learner, draw(
        data, learner.split.train, {"yes": 160, "many": 160, "number": 160}, 0, same=True
    )


class Scripted:
    """A learner without a network: it notes what it is trained on, and answers and scores as it is
    told to."""

    tasks = ("a", "b")

    def __init__(self, answers: Sequence[np.ndarray] = (), higher_is_better: bool = True):
        self.answers, self.higher_is_better = answers, higher_is_better
        self.runs: list[tuple[Labels, int]] = []

    def steps(self, labels: Labels) -> int:
        return sum(labels.counts.values())

    def start(self, labels: Labels, seed: int) -> int:
        self.runs.append((labels, seed))
        return len(self.runs) - 1

    def step(self, state: int, tasks: Sequence[str]) -> int:
        return state

    def fork(self, state: int) -> int:
        return state

    def score(self, state: int, task: str) -> Measure:
        count = len(self.runs[state][0][task])
        return Measure(count / 1000, 1 / count, self.higher_is_better)

    def predict(self, state: int, task: str, instances: np.ndarray) -> np.ndarray:
        return self.answers[state][instances]


@pytest.mark.parametrize("task", ["yes", "many", "number"])
def test_subsets_of_real_labels_teach_more_the_larger_they_are(task: str) -> None:
    learner, labels = make_learner()
    points = subset_curve(learner, labels, task, (10, 40, 160), repetitions=4)
    assert points.sizes == (10, 40, 160)
    assert (points.repetitions, points.have, points.start, points.source) == (4, 0, 10, "subsets")
    assert points.higher_is_better == (task != "number")
    assert (np.diff([0.0, *points.gains]) > 0).all()
    assert Points.from_dict(json.loads(json.dumps(points.to_dict()))) == points


@pytest.mark.parametrize("task", ["yes", "many", "number"])
@pytest.mark.parametrize("mode", ["hard", "soft", "confidence"])
def test_pseudo_labels_of_every_mode_train(task: str, mode: str) -> None:
    learner, labels = make_learner()
    points = ensemble_curve(
        learner, labels, task, learner.split.train, (40, 120), mode=mode, repetitions=2
    )
    assert points.sizes == (0, 40, 120)
    assert (points.repetitions, points.have, points.source) == (2, 160, f"{mode} pseudo-labels")
    assert len(np.unique(points.scores)) == 6  # every training is another one


def test_pseudo_labels_of_a_good_ensemble_improve_a_small_set() -> None:
    """The ensemble is told the truth; then its labels are as good as bought ones."""
    learner, labels = make_learner()
    truth = learner.data.values("yes", np.arange(learner.data.size))
    learner.predict = lambda state, task, instances: np.eye(2)[truth[instances]]  # type: ignore[method-assign]
    few = Labels({"yes": labels["yes"].instances[:12]})
    points = ensemble_curve(learner, few, "yes", learner.split.train, (40, 160), repetitions=4)
    assert (np.diff([0.0, *points.gains]) > 0).all()


def test_the_seed_decides_and_nothing_else_does() -> None:
    learner, labels = make_learner(steps=10)
    pool = learner.split.train
    curves = [
        lambda given, seed: subset_curve(learner, given, "yes", (10, 20, 40), 2, seed),
        lambda given, seed: ensemble_curve(
            learner, given, "yes", pool, (10, 20), ensemble=2, repetitions=2, seed=seed
        ),
    ]
    listed_otherwise = labels.only("yes").with_task("yes", labels["yes"].instances[::-1])
    for curve in curves:
        first = curve(labels, 0)
        assert curve(labels, 0) == first
        assert curve(listed_otherwise, 0) == first
        assert curve(labels, 1) != first


def test_stacked_trainings_score_like_single_ones() -> None:
    class OneByOne(TorchLearner):
        def __getattribute__(self, name: str) -> Any:
            if name == "stack":
                raise AttributeError(name)
            return super().__getattribute__(name)

    learner, labels = make_learner(steps=None, epochs=3)  # sizes differ in their number of steps
    single = OneByOne(learner.data, learner.split, learner.recipe)
    assert not hasattr(single, "stack")
    for curve in (
        lambda each: subset_curve(each, labels, "yes", (20, 40, 80), 2),
        lambda each: ensemble_curve(
            each, labels, "yes", each.split.train, (20, 40), ensemble=2, repetitions=2
        ),
    ):
        assert np.asarray(curve(learner).scores) == pytest.approx(
            np.asarray(curve(single).scores), abs=1e-3
        )


# --- which labels are trained on ---


def test_subsets_are_nested_and_of_one_task() -> None:
    learner = Scripted()
    pseudo = TaskLabels(np.arange(50), np.zeros(50), pseudo=np.arange(50) >= 40)
    points = subset_curve(learner, Labels({"a": pseudo, "b": range(9)}), "a", (10, 20, 40), 3)
    assert points.scores == ((0.01, 0.02, 0.04),) * 3
    by_seed: dict[int, list[set[int]]] = {}
    for labels, seed in learner.runs:
        assert tuple(labels) == ("a",)
        assert labels["a"].values is None  # what is left are real ones
        by_seed.setdefault(seed, []).append(set(labels["a"].instances.tolist()))
    assert len(by_seed) == 3
    for ten, twenty, forty in by_seed.values():
        assert ten < twenty < forty == set(range(40))
    assert len({frozenset(sets[0]) for sets in by_seed.values()}) == 3


def test_pseudo_labels_are_what_the_ensemble_says() -> None:
    """The mean of 3 members, which is not the vote of most of them."""
    first, others = np.array([0.1, 0.9]), np.array([0.55, 0.45])
    member = [np.tile(each, (100, 1)) for each in (first, others, others)]
    for mode, wanted in (("hard", 1), ("soft", [0.4, 0.6])):
        learner = Scripted(member)
        labels = Labels({"a": range(20), "b": [30]})
        points = ensemble_curve(
            learner, labels, "a", range(100), (10, 80), mode=mode, repetitions=2
        )
        assert points.scores == ((0.02, 0.03, 0.1),) * 2
        assert [len(each["a"]) for each, _ in learner.runs] == [20] * 3 + [20] * 2 + [30] * 2 + [
            100
        ] * 2
        # no member has the seed of a repetition
        assert len({seed for _, seed in learner.runs}) == 5
        small, large = (learner.runs[at][0]["a"] for at in (5, 7))
        assert set(small.instances) < set(large.instances)
        assert set(small.instances[~small.is_pseudo]) == set(range(20))
        assert not set(small.instances[small.is_pseudo]) & set(range(20))
        values = small.values[small.is_pseudo]
        assert np.allclose(values, wanted)
        assert values.dtype.kind == ("i" if mode == "hard" else "f")


def test_forms_of_answers() -> None:
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(60, 3, 2, 2))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    maps = rng.random((60, 4, 2, 2))
    forms = {
        "flags": (rng.random((60, 4)), (60, 4), {0.0, 1.0}),
        "masks": (maps / maps.sum(axis=1, keepdims=True), (60, 2, 2), {0, 1, 2, 3}),
        "directions": (unit, (60, 3, 2, 2), None),
        "numbers": (rng.normal(size=60), (60,), None),
        "edges": (rng.random((60, 2, 2)), (60, 2, 2), None),
    }
    for name, (answers, shape, only) in forms.items():
        learner = Scripted([answers, answers])
        ensemble_curve(
            learner, Labels({"a": [0]}), "a", range(60), (10, 59), ensemble=2, repetitions=1
        )
        last = learner.runs[-1][0]["a"]
        assert last.values.shape == shape, name
        if only is None:
            real = last.is_pseudo
            assert np.allclose(last.values[real], answers[last.instances[real]]), name
        else:
            assert set(np.unique(last.values)) == only, name
    opposite = [unit, np.roll(unit, 1, axis=1)]
    learner = Scripted(opposite)
    ensemble_curve(learner, Labels({"a": [0]}), "a", range(60), (10, 59), ensemble=2, repetitions=1)
    last = learner.runs[-1][0]["a"]
    # their mean is shorter than that
    assert np.allclose(np.linalg.norm(last.values[last.is_pseudo], axis=1), 1)


def test_confidence_keeps_the_surest_of_each_class() -> None:
    sure = np.linspace(0.51, 0.99, 100)
    rare = np.arange(100) % 10 == 0  # the second class
    answers = np.where(rare[:, None], np.stack([1 - sure, sure], 1), np.stack([sure, 1 - sure], 1))
    learner = Scripted([answers] * 3)
    labels = Labels({"a": [100, 101]})
    ensemble_curve(learner, labels, "a", range(100), (10, 25, 50), mode="confidence", repetitions=1)
    drawn = learner.runs[-1][0]["a"]
    kept = set(drawn.instances[drawn.is_pseudo].tolist())
    common = [each for each in range(100) if not rare[each]]
    assert kept == {50, 60, 70, 80, 90} | set(common[45:])
    numbers = np.zeros(100)
    agree = Scripted([numbers, numbers + np.arange(100)])
    ensemble_curve(
        agree,
        labels,
        "a",
        range(100),
        (5, 20),
        ensemble=2,
        mode="confidence",
        sure=0.2,
        repetitions=1,
    )
    drawn = agree.runs[-1][0]["a"]
    assert set(drawn.instances[drawn.is_pseudo].tolist()) == set(range(20))
    with pytest.raises(InputError, match="needs at least 2"):
        ensemble_curve(
            Scripted([numbers]), labels, "a", range(100), (5, 20), ensemble=1, mode="confidence"
        )


# --- price and progress ---


def test_the_price_is_what_is_done() -> None:
    labels = Labels({"a": range(40), "b": [1]})
    told: list[tuple[int, int]] = []
    for price, curve, total in (
        (
            lambda each: price_subsets(each, labels, "a", (10, 20, 40), 3),
            lambda each: subset_curve(
                each, labels, "a", (10, 20, 40), 3, progress=lambda *now: told.append(now)
            ),
            CurvePrice(9, 3 * (10 + 20 + 40)),
        ),
        (
            lambda each: price_ensemble(
                each, labels, "a", range(99), (5, 50), ensemble=4, repetitions=3
            ),
            lambda each: ensemble_curve(
                each,
                labels,
                "a",
                range(99),
                (5, 50),
                ensemble=4,
                repetitions=3,
                progress=lambda *now: told.append(now),
            ),
            CurvePrice(4 + 9, 4 * 40 + 3 * (40 + 45 + 90)),
        ),
    ):
        learner = Scripted([np.zeros(99)] * 4)
        assert price(learner) == total
        assert not learner.runs
        curve(learner)
        assert len(learner.runs) == total.trainings
        assert sum(learner.steps(each) for each, _ in learner.runs) == total.steps
        assert told == [(done, total.trainings) for done in range(1, total.trainings + 1)]
        told.clear()


def test_losses_are_scores_too() -> None:
    points = subset_curve(Scripted(), Labels({"a": range(40)}), "a", (10, 20, 40), 2, score="loss")
    assert not points.higher_is_better
    assert points.gains.tolist() == pytest.approx([0.05, 0.075])
    lower = subset_curve(
        Scripted(higher_is_better=False), Labels({"a": range(40)}), "a", (10, 20, 40), 2
    )
    assert (lower.gains < 0).all()


def test_sizes_at_even_ratios() -> None:
    assert spread_sizes(100, 3200) == (100, 200, 400, 800, 1600, 3200)
    assert spread_sizes(1, 3, 6) == (1, 2, 3)
    with pytest.raises(InputError, match="from 5 to 4"):
        spread_sizes(5, 4)


# --- bad input ---

GIVEN = Labels({"a": range(40)})
BAD = [
    (
        lambda each: subset_curve(each, GIVEN, "aa", (1, 2, 3)),
        "task: unknown 'aa'; did you mean 'a'",
    ),
    (lambda each: subset_curve(each, GIVEN, "b", (1, 2, 3)), "task 'b': has no labels at hand"),
    (
        lambda each: subset_curve(each, GIVEN, "a", (10, 20, 41)),
        "sizes: 41 is more than the 40 labels at hand",
    ),
    (lambda each: subset_curve(each, GIVEN, "a", (0, 20, 40)), "sizes: a subset has at least 1"),
    (lambda each: subset_curve(each, GIVEN, "a", (20, 40)), "sizes: 2 show no bend"),
    (lambda each: subset_curve(each, GIVEN, "a", (20, 10, 40)), "sizes: .* rising order"),
    (lambda each: subset_curve(each, GIVEN, "a", (10, 20, 40), 0), "repetitions: 0 is below 1"),
    (
        lambda each: subset_curve(each, GIVEN, "a", (10, 20, 40), score="los"),
        "score: unknown 'los'; did you mean",
    ),
    (
        lambda each: ensemble_curve(each, GIVEN, "a", range(99), (10, 60)),
        "60 is more than the 59 instances of the pool",
    ),
    (
        lambda each: ensemble_curve(each, GIVEN, "a", [], (10, 60)),
        "60 is more than the 0 instances of the pool",
    ),
    (
        lambda each: ensemble_curve(each, GIVEN, "a", range(100), (10, 31), mode="confidence"),
        r"31 is more than the 30 instances of the pool \(a share of 0.5",
    ),
    (
        lambda each: ensemble_curve(each, GIVEN, "a", range(99), (5, 9), mode="softly"),
        "mode: unknown 'softly'; did you",
    ),
    (
        lambda each: ensemble_curve(each, GIVEN, "a", range(99), (5, 9), ensemble=0),
        "ensemble: 0 is below 1",
    ),
    (
        lambda each: ensemble_curve(each, GIVEN, "a", range(99), (5, 9), sure=0.0),
        "sure: 0.0 is not a share",
    ),
    (lambda each: ensemble_curve(each, GIVEN, "a", range(99), ()), "sizes: 1 show no bend"),
]


@pytest.mark.parametrize(("curve", "said"), BAD)
def test_bad_input_is_named_before_anything_is_trained(curve, said: str) -> None:
    learner = Scripted()
    with pytest.raises(InputError, match=said):
        curve(learner)
    assert not learner.runs


def test_all_mistakes_at_once() -> None:
    with pytest.raises(InputError) as caught:
        ensemble_curve(
            Scripted(),
            GIVEN,
            "c",
            range(9),
            (3, 2, 9),
            ensemble=0,
            mode="x",
            repetitions=0,
            score="y",
        )
    assert len(caught.value.mistakes) >= 6


def test_a_score_that_is_no_number_says_what_is_missing() -> None:
    learner, labels = make_learner(steps=2)
    learner.data.labels["yes"][learner.split.validation] = 0  # no positive to rank
    learner = TorchLearner(learner.data, learner.split, learner.recipe)
    with pytest.raises(InputError, match=r"validation: the metric of task 'yes' .* every class"):
        subset_curve(learner, labels, "yes", (10, 20, 40), 2)
