"""Cross-validation on the labels at hand: parts, answers, scores and intervals."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.learners import make_images, make_table
from sklearn import metrics as sk
from sklearn.dummy import DummyClassifier, DummyRegressor

from allotment.data.dataset import PIXEL_KINDS, ArrayData, Target
from allotment.data.labels import Labels, Split, draw, split
from allotment.errors import InputError
from allotment.learners.learner import train
from allotment.learners.metrics import METRICS, Running
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner
from allotment.learners.validation import (
    Scoreboard,
    add_up,
    answer_parts,
    check_scorable,
    deal,
    find_constants,
)

COUNTS = {"yes": 60, "many": 30, "number": 45}
METRICS_OF_TABLE = {
    "yes": ("accuracy", "roc_auc", "log_loss"),
    "many": ("jaccard", "f1"),
    "number": ("r2", "mae", "rmse", "loss"),
}


def make_learner(data: ArrayData, **recipe: object) -> TorchLearner:
    everyone = np.arange(data.size, dtype=np.int64)
    parts = Split(everyone, everyone[:0], everyone[:0])
    return TorchLearner(data, parts, Recipe(**{"steps": 20, "batch_size": 16} | recipe))


def test_parts_are_even_for_every_task_and_class_and_keep_groups_together() -> None:
    data = make_table()
    labels = draw(data, np.arange(400), COUNTS, 1)
    part_of = deal(data, labels, 5, 0)
    assert (deal(data, labels, 5, 0) == part_of).all()
    assert (deal(data, labels, 5, 1) != part_of).any()
    everyone = np.unique(np.concatenate([labels[task].instances for task in labels]))
    assert (np.flatnonzero(part_of >= 0) == everyone).all()
    for task in COUNTS:
        sizes = np.bincount(part_of[labels[task].instances], minlength=5)
        assert sizes.max() - sizes.min() <= 2, (task, sizes)
    mine = labels["yes"].instances
    for place in (0, 1):
        chosen = mine[data.values("yes", mine) == place]
        sizes = np.bincount(part_of[chosen], minlength=5)
        assert sizes.max() - sizes.min() <= 2
    grouped = replace(data, groups=np.arange(400) // 8)
    part_of = deal(grouped, labels, 5, 0)
    for group in range(50):
        found = set(part_of[group * 8 : group * 8 + 8].tolist()) - {-1}
        assert len(found) <= 1


def test_scores_are_those_of_models_that_never_saw_the_label() -> None:
    data = make_table()
    labels = draw(data, np.arange(400), COUNTS, 1)
    learner = make_learner(data)
    whole = answer_parts(learner, data, labels, parts=5, chosen=range(5), seed=7)
    apart = [
        part
        for chosen in ([0, 1], [2], [3, 4])
        for part in answer_parts(learner, data, labels, parts=5, chosen=chosen, seed=7)
    ]
    assert apart == whole  # however they are cut into jobs
    board = add_up(data, METRICS_OF_TABLE, json.loads(json.dumps(whole)))
    assert [(each.task, each.metric) for each in board.scores] == [
        (task, metric) for task, names in METRICS_OF_TABLE.items() for metric in names
    ]
    # the same by hand, scored by scikit-learn
    part_of = deal(data, labels, 5, 7)
    said, true = [], []
    for part in range(5):
        rest = {task: mine.keep(part_of[mine.instances] != part) for task, mine in labels.items()}
        state = train(learner, Labels(rest), 7 + part)
        mine = labels["number"].instances
        asked = np.sort(mine[part_of[mine] == part])
        said += learner.predict(state, "number", asked).tolist()
        true += data.values("number", asked).tolist()
    assert board["number"].mean == pytest.approx(sk.r2_score(true, said), abs=1e-5)
    assert board["number"].labels == 45
    for score in board.scores:
        assert score.low <= score.mean <= score.high, score
        assert score.is_known
    assert Scoreboard.from_dict(json.loads(json.dumps(board.to_dict()))) == board
    assert str(board["number"]).startswith("number R2 ")


def test_the_best_constant_answer_is_that_of_the_library() -> None:
    data = make_table()
    labels = draw(data, np.arange(400), COUNTS, 1)
    answers = answer_parts(
        make_learner(data, steps=1), data, labels, parts=3, chosen=range(3), seed=0
    )
    board = add_up(data, METRICS_OF_TABLE, answers)
    found = {(each.task, each.metric): each.constant for each in board.scores}
    numbers = data.values("number", labels["number"].instances)
    blank = np.zeros((len(numbers), 1))
    for name, strategy, oracle in (
        ("mae", "median", sk.mean_absolute_error),
        ("rmse", "mean", sk.root_mean_squared_error),
        ("r2", "mean", sk.r2_score),
    ):
        said = DummyRegressor(strategy=strategy).fit(blank, numbers).predict(blank)
        assert found["number", name] == pytest.approx(oracle(numbers, said), abs=1e-5)
    yes = data.values("yes", labels["yes"].instances)
    dummy = DummyClassifier(strategy="prior").fit(np.zeros((60, 1)), yes)
    shares = dummy.predict_proba(np.zeros((60, 1)))
    assert found["yes", "accuracy"] == pytest.approx(max(yes.mean(), 1 - yes.mean()))
    assert found["yes", "roc_auc"] == 0.5
    assert found["yes", "log_loss"] == pytest.approx(sk.log_loss(yes, shares), abs=1e-6)


def test_models_of_different_parts_are_ranked_each_by_itself() -> None:
    rng = np.random.default_rng(3)
    data = ArrayData(
        "rows",
        (Target("yes", "classification", ("no", "yes")),),
        np.zeros((100, 2), dtype=np.float32),
        {"yes": rng.integers(0, 2, 100)},
    )
    found = []
    for part in range(5):  # each orders its own labels without fault, at a level of its own
        asked = np.arange(part, 100, 5)
        chance = 0.15 * part + 0.1 * data.labels["yes"][asked]
        said = np.stack([1 - chance, chance], axis=1).tolist()
        found.append({"yes": {"instances": asked.tolist(), "said": said}})
    assert add_up(data, {"yes": ("roc_auc",)}, found)["yes"].mean == 1.0


@pytest.mark.parametrize("kind", [*PIXEL_KINDS, "classification"])
def test_pictures_are_scored_by_what_their_metrics_are_made_of(kind: str) -> None:
    images = make_images(12, 16, 6)
    target = next(each for each in images.targets if each.kind == kind)
    data = ArrayData("one", (target,), images.features, {target.name: images.labels[target.name]})
    names = [name for name in METRICS if kind in METRICS[name].kinds]
    labels = Labels({target.name: range(12)})
    learner = make_learner(data, steps=2, batch_size=4)
    answers = answer_parts(learner, data, labels, parts=3, chosen=range(3), seed=0)
    board = add_up(data, {target.name: (*names, "loss")}, json.loads(json.dumps(answers)))
    assert all(math.isfinite(each.constant) for each in board.scores), board
    part_of = deal(data, labels, 3, 0)
    by_hand = {name: Running(METRICS[name], kind) for name in names}
    in_parts: dict[str, list[tuple[float, int]]] = {}
    for part in range(3):
        asked = np.flatnonzero(part_of == part)
        rest = Labels({target.name: np.flatnonzero(part_of != part)})
        state = train(learner, rest, part)
        said, true = learner.predict(state, target.name, asked), data.values(target.name, asked)
        for name, running in by_hand.items():
            running.add(said, true)
            in_parts.setdefault(name, []).append((METRICS[name](said, true), len(asked)))
    for name, score in zip(names, board.scores, strict=False):
        wanted = by_hand[name].result()
        if METRICS[name].ranks:  # the order of one model's answers, part by part
            values, counts = zip(*in_parts[name], strict=True)
            wanted = float(np.average(values, weights=counts))
        assert score.mean == pytest.approx(wanted, rel=1e-4, abs=1e-6), name


def test_an_interval_holds_the_score_on_other_instances() -> None:
    """With answers that are as good for all: of 40 intervals of 90 % about 36 hold the truth."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(40):
        truth = rng.normal(size=80).astype(np.float32)
        said = truth + rng.normal(size=80)
        data = ArrayData(
            "x", (Target("y", "regression"),), np.zeros((80, 1), np.float32), {"y": truth}
        )
        answers = [{"y": {"instances": list(range(80)), "said": said.tolist()}}]
        score = add_up(data, {"y": ("mae",)}, answers)["y"]
        held += score.low <= math.sqrt(2 / math.pi) <= score.high
    assert 31 <= held <= 40


def test_answers_that_are_all_right_are_not_certain_to_stay_so() -> None:
    truth = np.arange(30) % 2
    target = Target("y", "classification", ("a", "b"))
    data = ArrayData("x", (target,), np.zeros((30, 1), np.float32), {"y": truth})
    answers = [{"y": {"instances": list(range(30)), "said": np.eye(2)[truth].tolist()}}]
    score = add_up(data, {"y": ("accuracy",)}, answers)["y"]
    assert (score.low, score.mean, score.high) == (pytest.approx(0.9), 1, 1)


def test_few_labels_are_refused_or_said_to_be_few() -> None:
    with pytest.raises(InputError, match="yes 3, many 0: too few to tell how good a model is"):
        check_scorable({"yes": 3, "many": 0})
    data = make_table()
    labels = Labels({"yes": range(20), "many": range(4), "number": []})
    answers = answer_parts(
        make_learner(data, steps=1), data, labels, parts=5, chosen=range(5), seed=0
    )
    board = add_up(data, {task: names[:1] for task, names in METRICS_OF_TABLE.items()}, answers)
    assert board["yes"].is_known
    assert not board["many"].is_known
    assert str(board["many"]) == "many Jaccard unknown with 4 labels"
    assert board["number"].labels == 0
    with pytest.raises(KeyError):
        board["other"]


def test_constants_of_labels_that_say_nothing() -> None:
    nothing = np.full((2, 3, 2, 2), np.nan)
    assert find_constants(Target("n", "normals"), nothing)[0].tolist() == [0, 0, 0]
    assert find_constants(Target("d", "depth"), nothing[:, 0])[0] == 0
    void = np.full((1, 2, 2), 255, dtype=np.uint8)
    assert find_constants(Target("s", "segmentation", ("a", "b")), void)[0].tolist() == [0, 0]


def test_a_learner_without_validation_of_its_own_is_scored_as_well() -> None:
    data = make_table()

    class Plain:
        """Only the verbs that every learner has."""

        def __init__(self) -> None:
            inner = make_learner(data, steps=2)
            for verb in ("tasks", "steps", "start", "step", "fork", "score", "predict"):
                setattr(self, verb, getattr(inner, verb))

    labels = draw(data, split(data, 0).train, COUNTS, 1)
    answers = answer_parts(Plain(), data, labels, parts=2, chosen=[0, 1], seed=0)  # type: ignore[arg-type]
    board = add_up(data, {"yes": ("accuracy",), "many": ("f1",), "number": ("loss",)}, answers)
    assert board["yes"].is_known
    assert not board["number"].is_known  # its loss is nobody's business
