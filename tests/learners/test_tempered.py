"""Learners for tables whose trainings have members: the contract, and never clearly worse than the
best constant."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import allotment as al
from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, TaskLabels, draw, split
from allotment.errors import InputError
from allotment.estimates.design import Design, folds_of
from allotment.estimates.response import find_level, run
from allotment.learners.answers import find_constant, list_errors, measure_answers
from allotment.learners.conformance import LearnerTests
from allotment.learners.contest import Contest, compare_learners
from allotment.learners.estimators import NAMED_ESTIMATORS, make_estimator
from allotment.learners.learner import Learner, train, train_many
from allotment.learners.perceptrons import PerceptronsLearner
from allotment.learners.plain_arrays import read_arrays, save_arrays
from allotment.learners.recipe import Recipe
from allotment.learners.sklearn_learner import SklearnLearner
from allotment.learners.tempering import FEWEST_TRUSTED, LEAST_TRUST, deal, find_trust, grade
from allotment.learners.torch_learner import TorchLearner

KIND, SIZE, BOTH = (
    Target("kind", "classification", classes=("a", "b", "c")),
    Target("size", "regression"),
    Target("both", "multilabel", classes=("p", "q")),
)


@cache
def make_data(noise: float = 0.3) -> tuple[ArrayData, Split]:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    y = x[:, :3].sum(axis=1) + noise * rng.normal(size=300)
    labels = {
        "kind": (x[:, :3] + noise * rng.normal(size=(300, 3))).argmax(axis=1),
        "size": y.astype(np.float32),
        "both": (x[:, 2:4] > 0).astype(np.float32),
    }
    data = ArrayData("rows", (KIND, SIZE, BOTH), x, labels)
    return data, split(data, 0, validation=0.3, test=0.3)


def draw_labels(count: int, seed: int = 0) -> Labels:
    data, parts = make_data()
    return draw(data, parts.train, dict.fromkeys(("kind", "size", "both"), count), seed)


class TestPerceptrons(LearnerTests):
    steps = 2
    swaps = 3

    def make(self) -> tuple[Learner, Labels]:
        data, parts = make_data()
        recipe = Recipe(steps=20, batch_size=16, members=2)
        return PerceptronsLearner(data, parts, recipe), draw_labels(40)


class TestEstimators(LearnerTests):
    steps = 1

    def make(self) -> tuple[Learner, Labels]:
        data, parts = make_data()
        models = {
            "kind": DecisionTreeClassifier(max_depth=3, max_features=2),
            "size": make_pipeline(StandardScaler(), DecisionTreeRegressor(max_features=2)),
            "both": LogisticRegression(),
        }
        return SklearnLearner(data, parts, models, members=2), draw_labels(40)


def test_a_noisy_table_of_few_labels_is_answered_no_worse_than_by_a_constant() -> None:
    # the regression of issue 16: one network had 1.67 where the best constant has 1.10
    rng = np.random.default_rng(4)
    x = rng.normal(size=(700, 12)).astype(np.float32)
    y = 0.4 * x[:, 0] + 1.3 * rng.normal(size=700)
    data = ArrayData("noisy", (Target("y", "regression"),), x, {"y": y.astype(np.float32)})
    parts = split(data, 0, validation=0.7, test=0.0)
    worse, errors = [], []
    members = PerceptronsLearner(data, parts, Recipe(steps=100, members=4))
    alone = TorchLearner(data, parts, Recipe(steps=300))
    for seed in range(2):
        labels = draw(data, parts.train, {"y": 60}, seed)
        state = train(members, labels, seed)
        constant = members.score_constant(state, "y").metric
        errors.append(members.score(state, "y").metric / constant)
        worse.append(alone.score(train(alone, labels, seed), "y").metric / constant)
    assert np.mean(worse) > 1.1
    assert np.mean(errors) < 1.02


@pytest.mark.parametrize("count", [1, 3, FEWEST_TRUSTED - 1])
def test_fewer_labels_than_can_be_trusted_are_answered_by_a_constant(count: int) -> None:
    data, parts = make_data()
    labels = draw_labels(count)
    for learner in (
        PerceptronsLearner(data, parts, Recipe(steps=5, members=4)),
        SklearnLearner(data, parts, "Ridge"),
    ):
        state = train(learner, labels, 0)
        for task in learner.tasks:
            said = learner.predict(state, task, parts.test)
            values = data.values(task, labels[task].instances)
            constant = find_constant(learner.targets[task], values)
            np.testing.assert_allclose(said, np.broadcast_to(constant, said.shape))
            assert learner.score(state, task) == learner.score_constant(state, task)


def test_trust_is_the_share_that_loses_least_and_hardly_any_for_noise() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=400)
    constants = np.zeros(400)
    assert find_trust(SIZE, values, constants, values) > 0.95
    assert 0.4 < find_trust(SIZE, 2 * values, constants, values) < 0.6
    assert find_trust(SIZE, -values, constants, values) == LEAST_TRUST
    trusts = [find_trust(SIZE, rng.normal(size=400), constants, values) for _ in range(50)]
    assert np.mean(trusts) < 0.02


def test_probabilities_are_not_trusted_beyond_the_classes_that_they_get_right() -> None:
    rng = np.random.default_rng(1)
    target = Target("rare", "classification", classes=("no", "yes"))
    for _ in range(30):
        values = (rng.random(40) < 0.2).astype(np.int64)
        chance = np.clip(0.3 + 0.4 * rng.normal(size=40) + 0.2 * values, 0.01, 0.99)
        said = np.stack([1 - chance, chance], axis=1)
        constants = np.tile([0.8, 0.2], (40, 1))
        trust = find_trust(target, said, constants, values)
        likeliest = (constants + trust * (said - constants)).argmax(axis=1)
        assert (likeliest == values).sum() >= (values == 0).sum()


def test_answers_that_win_nothing_keep_the_order_that_ranks_are_about() -> None:
    rng = np.random.default_rng(2)
    target = Target("rare", "classification", classes=("no", "yes"), metric="roc_auc")
    values = (rng.random(200) < 0.05).astype(np.int64)
    # in the right order, but so far from the true shares that the constant loses less
    chance = np.clip(0.5 + 0.1 * rng.normal(size=200) + 0.2 * values, 0.01, 0.99)
    said = np.stack([1 - chance, chance], axis=1)
    constants = np.tile([0.95, 0.05], (200, 1))
    trust = find_trust(target, said, constants, values)
    tempered = constants + trust * (said - constants)
    assert trust == LEAST_TRUST
    assert measure_answers(target, tempered, values).metric > 0.85
    assert (tempered.argmax(axis=1) == 0).all()


def test_instances_of_one_group_are_left_out_by_one_member() -> None:
    data, _ = make_data()
    groups = np.arange(300) // 5
    grouped = ArrayData("rows", data.targets, data.features, data.labels, groups=groups)
    dealt = deal(grouped, Labels({"size": range(100), "kind": range(50, 150)}), 4, seed=1)
    assert len(dealt.instances) == 150
    for group in range(30):
        assert len(set(dealt.left_out[dealt.instances // 5 == group])) == 1
    assert set(np.bincount(dealt.left_out) // 5) <= {7, 8}


def test_a_stack_of_trainings_ends_as_one_after_the_other() -> None:
    data, parts = make_data()
    learner = PerceptronsLearner(data, parts, Recipe(steps=20, members=3))
    runs = [(draw_labels(30, seed), seed) for seed in range(3)]
    for (labels, seed), state in zip(runs, train_many(learner, runs), strict=True):
        alone = train(learner, labels, seed)
        for task in learner.tasks:
            first, second = (learner.predict(each, task, parts.test) for each in (state, alone))
            np.testing.assert_allclose(first, second, atol=1e-5)


SLOW = ("RandomForest", "ExtraTrees", "AdaBoost", "MLP", "GradientBoosting")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in SLOW else [])
        for name in NAMED_ESTIMATORS
        if name != "HistGradientBoosting"
    ],
)
def test_every_named_estimator_learns_classes_and_numbers(name: str) -> None:
    data, parts = make_data()
    learner = SklearnLearner(
        data, parts, {**dict.fromkeys(("kind", "size"), name), "both": "Ridge"}
    )
    labels = draw_labels(60).only("kind", "size")
    state = train(learner, labels, 0)
    assert grade(learner, state)["size"] > 0.05
    assert learner.score(state, "kind").metric > learner.score_constant(state, "kind").metric


def test_boosting_grows_trees_of_thirty_labels() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    model = make_estimator("HistGradientBoosting", "regression", 30, 1).fit(x, x[:, 0])
    assert np.ptp(model.predict(x)) > 1


def test_tasks_help_each_other() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=(600, 6)).astype(np.float32)
    hidden = np.sin(4 * x[:, 0]) * x[:, 1]
    labels = {
        "much": hidden.astype(np.float32),
        "few": (3 * hidden + 0.2 * rng.normal(size=600)).astype(np.float32),
    }
    data = ArrayData("two", tuple(Target(task, "regression") for task in labels), x, labels)
    parts = split(data, 0, validation=0.3, test=0.0)
    learner = SklearnLearner(data, parts, "HistGradientBoosting")
    have = draw(data, parts.train, {"much": 300, "few": 40}, 0)
    beside, alone = train(learner, have, 0), train(learner, have.only("few"), 0)
    assert beside.helpers["few"] == ("much",)
    assert not alone.helpers
    assert learner.score(beside, "few").metric < 0.8 * learner.score(alone, "few").metric


def test_threads_change_no_byte() -> None:
    data, parts = make_data()
    learner = SklearnLearner(data, parts, "HistGradientBoosting", members=2)
    found = set()
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            state = train(learner, draw_labels(40).only("size"), 0)
            found.add(learner.predict(state, "size", parts.test).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        ("HistGradientBosting", "did you mean 'HistGradientBoosting'"),
        ("os.system", "there is no 'os.system'; known: HistGradientBoosting"),
        (Ridge(), "tells numbers, and the task has classes; give a classifier"),
        (LogisticRegression(), "tells classes, and the task is a number; give a regressor"),
        (Ridge, "is a class; give an object of it"),
        (object(), "object has no fit, predict, get_params"),
        ({"kind": LogisticRegression(), "size": Ridge()}, "'both': is missing"),
    ],
)
def test_what_is_no_estimator_is_told(estimator: Any, words: str) -> None:
    data, parts = make_data()
    with pytest.raises(InputError, match=words):
        al.SklearnLearner(data, parts, estimator=estimator)


def test_an_estimator_that_can_not_be_fitted_is_named() -> None:
    class Broken(DummyRegressor):  # type: ignore[misc]
        def fit(self, x: Any, y: Any) -> None:
            raise ValueError("no such thing")

    data, parts = make_data()
    data = data.with_targets((SIZE,))
    learner = SklearnLearner(data, parts, Broken())
    with pytest.raises(InputError, match=r"Broken can't be fitted to .* labels: no such thing"):
        train(learner, draw_labels(20).only("size"), 0)


def test_images_are_refused() -> None:
    pictures = np.zeros((4, 3, 8, 8), dtype=np.uint8)
    data = ArrayData("p", (SIZE,), pictures, {"size": np.zeros(4, dtype=np.float32)})
    with pytest.raises(InputError, match="are images, and this is for tables"):
        SklearnLearner(data, split(data, 0))


def test_a_method_that_looks_ahead_wants_steps() -> None:
    data, parts = make_data()
    learner = SklearnLearner(data, parts, "Ridge")
    with pytest.raises(InputError, match="looks a few steps ahead, and this learner has none"):
        al.estimate(learner, draw_labels(30), method="taba")


def test_estimates_come_from_whole_trainings() -> None:
    data, parts = make_data()
    learner = SklearnLearner(data, parts, "Ridge", members=2)
    found = al.estimate(learner, draw_labels(40), trainings=12, folds=4)
    assert found.tasks == ("kind", "size", "both")
    assert np.isfinite(found.about["measured"]["response"]["scores"]).all()


def test_the_best_learner_is_the_first_unless_another_is_clearly_better() -> None:
    seconds, labels = {"built-in": 1.0, "sklearn:Ridge": 0.1}, {"size": 40}
    near = Contest({"built-in": {"size": 0.5}, "sklearn:Ridge": {"size": 0.505}}, seconds, labels)
    far = Contest({"built-in": {"size": 0.5}, "sklearn:Ridge": {"size": 0.6}}, seconds, labels)
    none = Contest({"built-in": {}, "sklearn:Ridge": {}}, seconds, {})
    assert [each.best for each in (near, far, none)] == ["built-in", "sklearn:Ridge", "built-in"]
    assert "remove 60.0 % of the best constant answer's error on 40 labels" in str(far)
    assert "no task has 8 labels to compare learners on" in str(none)


def test_learners_are_compared_on_labels_that_they_did_not_see() -> None:
    data, parts = make_data()
    makers = {
        name: (lambda model=model: SklearnLearner(data, parts, model))
        for name, model in {"built-in": "DecisionTree", "sklearn:Ridge": "Ridge"}.items()
    }
    found = compare_learners(makers, draw_labels(40).only("size"), 0)
    assert found.best == "sklearn:Ridge"
    assert set(found.labels) == {"size"}
    assert found.to_dict()["skills"]["sklearn:Ridge"]["size"] > 0.6


def test_scores_in_numpy_are_those_of_the_torch_learner() -> None:
    data, parts = make_data()
    learner = TorchLearner(data, parts, Recipe(steps=10))
    labels = draw_labels(40)
    state = train(learner, labels, 0)
    for task, target in learner.targets.items():
        said = learner.predict(state, task, parts.validation)
        spread = float(np.std(data.values("size", labels["size"].instances)))
        found = measure_answers(target, said, data.values(task, parts.validation), spread)
        wanted = learner.score(state, task)
        assert found.metric == pytest.approx(wanted.metric, abs=1e-6)
        assert found.loss == pytest.approx(wanted.loss, rel=1e-4)
        assert (found.skill, found.skill_error) == pytest.approx(
            (wanted.skill, wanted.skill_error), abs=1e-6
        )


def test_a_number_scored_by_squares_has_its_mean_for_a_constant() -> None:
    values = np.array([0.0, 0.0, 0.0, 8.0])
    assert find_constant(SIZE, values) == 0
    squared = Target("size", "regression", metric="r2")
    assert find_constant(squared, values) == 2
    np.testing.assert_allclose(list_errors(squared, np.full(4, 2.0), values), [4, 4, 4, 36])


def test_given_probabilities_teach_the_likeliest_class() -> None:
    data, parts = make_data()
    learner = SklearnLearner(data, parts, "Ridge")
    labels = draw_labels(40).only("kind")
    soft = np.eye(3)[data.values("kind", labels["kind"].instances)] * 0.4 + 0.2
    given = Labels({"kind": TaskLabels(labels["kind"].instances, soft)})
    first, second = (train(learner, each, 0).first["kind"] for each in (labels, given))
    inputs = data.inputs(parts.test).astype(np.float64)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one.answer(inputs), other.answer(inputs))


def test_the_constant_to_compare_with_is_made_of_labels_that_do_not_score_it() -> None:
    data, parts = make_data()
    learner = SklearnLearner(data, parts, "Ridge", members=2).with_validation(np.arange(1))
    labels = Labels({"size": range(8)})
    fold = folds_of(np.arange(8), 4, 0)
    left = np.array([[0, (fold != each).sum(), 0] for each in (0, 1, 2, 3)])
    plan = Design(learner.tasks, np.tile(left, (2, 1)), np.arange(8) % 4, 0, 4)
    found = run(learner, labels, plan)
    values = data.values("size", np.arange(8))
    for each in np.unique(fold):
        off = np.abs(values[fold == each] - np.median(values[fold != each]))
        assert found.constant[each, 1] == pytest.approx(off.mean(), rel=1e-5)
    # so few labels are answered by just that
    level = find_level(found, "size")
    assert level is not None
    assert level.is_constant
    assert level.near_chance
    assert level.score == pytest.approx(level.chance)


# Saved and asked elsewhere


def make_both(data: ArrayData, members: int = 2) -> list[Any]:
    nobody = np.arange(0)
    parts = Split(np.arange(data.size), nobody, nobody)
    return [
        PerceptronsLearner(data, parts, Recipe(steps=10, members=members)),
        SklearnLearner(data, parts, "DecisionTree", members),
    ]


def hide_labels(data: ArrayData, count: int = 20) -> ArrayData:
    """Rows of which a model may be asked, with no label."""
    missing = {task: np.ones(count, dtype=bool) for task in data.labels}
    labels = {task: each[:count] * 0 for task, each in data.labels.items()}
    return ArrayData("asked", data.targets, data.features[-count:], labels, missing)


@pytest.mark.parametrize("counts", [(40, 40, 40), (40, 5, 0), (0, 0, 3)])
def test_what_is_saved_answers_the_same_of_other_data(
    tmp_path: Path, counts: tuple[int, ...]
) -> None:
    data, parts = make_data()
    have = dict(zip(("kind", "size", "both"), counts, strict=True))
    labels = draw(data, parts.train, have, 0)
    for number, (learner, other) in enumerate(
        zip(make_both(data), make_both(hide_labels(data)), strict=True)
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        state = train(learner, labels, 3)
        learner.save(state, folder)
        loaded = other.load(folder)
        for task in learner.tasks:
            wanted = learner.predict(state, task, np.arange(280, 300))
            found = other.predict(loaded, task, np.arange(20))
            assert found.tobytes() == wanted.tobytes()


def save_both(folder: Path) -> list[tuple[Any, Path]]:
    """Learners that know no label, and where one like them was saved."""
    data, _ = make_data()
    found = []
    for learner, other in zip(make_both(data), make_both(hide_labels(data)), strict=True):
        place = folder / type(learner).__name__
        place.mkdir()
        learner.save(train(learner, draw_labels(30), 0), place)
        found.append((other, place))
    return found


def test_every_wrong_number_of_a_saved_training_is_refused(tmp_path: Path) -> None:
    (perceptrons, first), (trees, second) = save_both(tmp_path)

    def refuse(learner: Any, path: Path, words: str, about: dict[str, str], **change: Any) -> None:
        arrays, _ = read_arrays(path)
        whole = path.read_bytes()
        save_arrays(
            path, {key: each for key, each in (arrays | change).items() if each is not None}, about
        )
        with pytest.raises(InputError, match=f"{path.name}: .*{words}.*was it changed"):
            learner.load(path.parent)
        path.write_bytes(whole)

    trusts, rows = first / "trusts.safetensors", second / "rows.safetensors"
    kept = read_arrays(rows)[0]
    for key, value, words in (
        ("trust.0", np.array(1.5), "no share between 0 and 1"),
        ("trust.0", np.array(np.nan), "no finite number"),
        ("trust.0", np.zeros(3), r"is \(3,\) of float64"),
        ("trust.0", None, "is missing"),
        ("more", np.zeros(1), "'more' has no place in it"),
        ("constant.0", np.array([0.5, -0.1, 0.6]), "no share between 0 and 1"),
    ):
        refuse(perceptrons, trusts, words, {}, **{key: value})
    about = {"seed": "0", "version": "1"}
    for key, value, words in (
        ("inputs", kept["inputs"][:, 1:], "rows of 5 features, not of 6"),
        ("inputs", kept["inputs"][1:], "which member leaves out which row"),
        ("inputs", kept["inputs"] * np.float32(np.inf), "no finite number"),
        ("inputs", None, "the rows are not in it"),
        ("left_out", kept["left_out"] + 1, "another than the 2 members"),
        ("rows.0", kept["rows.0"][::-1].copy(), "are of other rows"),
        ("rows.0", kept["rows.0"] + 1000, "are of other rows"),
        ("rows.0", None, "no labels of 'kind' are in it"),
        ("values.0", kept["values.0"] + 3, "is no class"),
        ("values.0", kept["values.0"] - 3, "is no class"),
        ("values.1", np.zeros((30, 2)), "not of the form that a regression has"),
        ("values.1", np.full(30, np.inf), "no finite number"),
        ("values.1", np.array(1.0), "the labels of 'size' are of no rows"),
        ("left_out", np.array(1), "which member leaves out which row"),
        ("values.7", np.zeros(1), "'values.7' has no place in it"),
    ):
        refuse(trees, rows, words, about, **{key: value})
    refuse(trees, rows, "does not say how it was fitted", {"seed": "0", "version": "\x1b[2J"})
    refuse(trees, rows, "does not say how it was fitted", {"seed": "-1", "version": "1"})
    for learner, path in ((perceptrons, trusts), (trees, rows)):
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError, match="can't be read as plain arrays"):
            learner.load(path.parent)
        path.unlink()
        with pytest.raises(InputError, match="can't be read as plain arrays"):
            learner.load(path.parent)


def test_rows_are_fitted_by_the_version_that_fitted_them_before(tmp_path: Path) -> None:
    _, (trees, folder) = save_both(tmp_path)
    arrays, about = read_arrays(folder / "rows.safetensors")
    save_arrays(folder / "rows.safetensors", arrays, about | {"version": "1.4.0"})
    with pytest.raises(InputError, match=r"otherwise: pip install scikit-learn==1\.4\.0"):
        trees.load(folder)


def test_more_rows_than_can_be_fitted_again_are_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allotment.learners.training_rows.MOST_FITTED_ROWS", 20)
    with pytest.raises(InputError, match=r"rows of 6 numbers are too many .* take the built-in"):
        save_both(tmp_path)
