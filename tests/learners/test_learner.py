"""The built-in learner: the contract, that it learns, that stacks are single runs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.learners import Forgetful, make_images, make_table, table_learner
from safetensors.torch import load_file, save_file

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, TaskLabels, draw, split
from allotment.errors import InputError
from allotment.learners.batches import batch_places
from allotment.learners.conformance import LearnerTests
from allotment.learners.learner import (
    Measure,
    Patience,
    hold_back,
    measure,
    probe,
    train,
    train_many,
)
from allotment.learners.networks import ImageNetwork
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


class TestTable(LearnerTests):
    def make(self) -> tuple[TorchLearner, Labels]:
        learner = table_learner()
        return learner, draw(
            learner.data, learner.split.train, {"yes": 60, "many": 50, "number": 70}, 0
        )


class TestImages(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        data = make_images()
        learner = TorchLearner(data, split(data, 0, 0.3, 0.1), Recipe(steps=8, batch_size=4))
        return learner, draw(data, learner.split.train, {"kind": 8, "mask": 8, "normals": 6}, 0)


class TestBfloat16(LearnerTests):
    def make(self) -> tuple[TorchLearner, Labels]:
        learner = table_learner(
            precision="bfloat16", optimiser="adam", trunk_rate=0.003, head_rate=0.003
        )
        return learner, draw(
            learner.data, learner.split.train, {"yes": 60, "many": 50, "number": 70}, 0
        )


class TestRandomLayers(LearnerTests):
    def make(self) -> tuple[TorchLearner, Labels]:
        data = make_table()
        learner = TorchLearner(
            data, split(data, 0, 0.25, 0.1), Recipe(epochs=5, batch_size=16), network=Forgetful
        )
        return learner, draw(data, learner.split.train, {"yes": 60, "many": 50, "number": 70}, 0)


@pytest.mark.parametrize("task", [target.name for target in make_images().targets])
def test_every_kind_of_task_overfits_eight_images(task: str) -> None:
    data = make_images()
    eight = np.arange(8)
    # scored on the very images that it is trained on
    learner = TorchLearner(
        data,
        _scored_on(data, eight),
        Recipe(steps=120, batch_size=8, optimiser="adam", trunk_rate=0.01, head_rate=0.01),
    )
    labels = Labels({task: eight})
    before = learner.score(learner.start(labels, 0), task).loss
    after = learner.score(train(learner, labels, 0), task)
    # a heat map of 0.9 keeps its own entropy
    floor = {"points": 0.62, "edges": 0.3}.get(task, 0.15)
    assert after.loss < floor * before, (before, after)


@pytest.mark.parametrize("task", ["depth", "normals", "edges"])
def test_absolute_errors_are_lowered(task: str) -> None:
    data = make_images()
    data = replace(
        data, targets=tuple(replace(t, loss="l1") if t.name == task else t for t in data.targets)
    )
    eight = np.arange(8)
    recipe = Recipe(steps=120, batch_size=8, optimiser="adam", trunk_rate=0.01, head_rate=0.01)
    learner = TorchLearner(data, _scored_on(data, eight), recipe)
    state = train(learner, Labels({task: eight}), 0)
    answers, values = learner.predict(state, task, eight), data.values(task, eight)
    if task == "depth":
        assert np.nanmean(np.abs(answers - values)) < 0.3
    if task == "edges":
        assert learner.score(state, task).loss == pytest.approx(
            np.abs(answers - values).mean(), rel=1e-4
        )
    assert learner.score(state, task).loss < 0.25


def _scored_on(data: ArrayData, instances: np.ndarray) -> Split:
    rest = np.setdiff1d(np.arange(data.size), instances)
    return Split(train=instances, validation=instances, test=rest)


@pytest.mark.parametrize("task", ["yes", "many", "number"])
def test_every_kind_of_table_task_overfits_eight_rows(task: str) -> None:
    data = make_table()
    eight = np.arange(8)
    learner = TorchLearner(data, _scored_on(data, eight), Recipe(steps=200, batch_size=8))
    labels = Labels({task: eight})
    before = learner.score(learner.start(labels, 0), task).loss
    assert learner.score(train(learner, labels, 0), task).loss < 0.1 * before


@pytest.mark.long
def test_more_labels_are_better() -> None:
    learner = table_learner()
    found = []
    for count in (10, 40, 160):
        runs = [
            (draw(learner.data, learner.split.train, dict.fromkeys(learner.tasks, count), s), s)
            for s in range(4)
        ]
        states = [train(learner, *run) for run in runs]
        found.append(
            [
                np.mean([learner.score(state, task).metric for state in states])
                for task in learner.tasks
            ]
        )
    assert all(a < b < c for a, b, c in zip(*found, strict=True)), found


def test_sixteen_stacked_runs_are_sixteen_single_runs() -> None:
    learner = table_learner(epochs=5)
    counts = {"yes": 40, "many": 30, "number": 50}
    runs = [(draw(learner.data, learner.split.train, counts, seed), seed) for seed in range(16)]
    stacked = train_many(learner, runs)
    for (labels, seed), state in zip(runs, stacked, strict=True):
        single = train(learner, labels, seed)
        for task in learner.tasks:
            assert np.allclose(
                learner.predict(single, task, learner.split.test), learner.predict(state, task,
                learner.split.test),
                atol=1e-5,
            )  # fmt: skip
            a, b = learner.score(single, task), learner.score(state, task)
            assert abs(a.metric - b.metric) < 1e-5
            assert abs(a.loss - b.loss) < 1e-5


@pytest.mark.long
def test_same_bytes_in_another_process() -> None:
    paths = [str(folder) for folder in Path(__file__).parents[:2]]
    script = (
        f"import sys; sys.path[:0] = {paths}; import torch, hashlib; torch.set_num_threads(1);"
        "from test_learner import *; learner, labels = TestTable().make(); state = train(learner,"
        " labels, 3);"
        "parts = [p.numpy().tobytes() for p in state.network.state_dict().values()];"
        "print(hashlib.sha256(b''.join(parts)).hexdigest())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1]


def test_probing_and_scoring_leave_the_weights_as_they_would_be() -> None:
    learner, labels = TestTable().make()
    plain = train(learner, labels, 0)
    state = learner.start(labels, 0)
    for step in range(learner.steps(labels)):
        if step % 10 == 0:
            ends = probe(
                learner,
                state,
                {"yes": ["yes"], "both": ["yes", "number"], "twice": ["yes", "yes"]},
                2,
            )
            assert {name: learner.score(end, "yes") for name, end in ends.items()}
        state = learner.step(state, learner.tasks)
    for a, b in zip(
        plain.network.state_dict().values(), state.network.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)


def test_mini_batches_depend_on_seed_task_and_number_only() -> None:
    assert batch_places(50, 16, 7, 1, "a").tolist() == batch_places(50, 16, 7, 1, "a").tolist()
    assert batch_places(50, 16, 7, 1, "a").tolist() != batch_places(50, 16, 7, 1, "b").tolist()
    assert (
        batch_places(50, 16, 7, 1, "a").tolist()
        != batch_places(50, 16, 7, 1, "a", occasion=1).tolist()
    )
    epoch = np.concatenate([batch_places(48, 16, number, 1, "a") for number in range(3)])
    assert sorted(epoch.tolist()) == list(range(48))
    assert len(batch_places(3, 16, 0, 1, "a")) == 16


@pytest.mark.parametrize("count", [1, 3, 7, 48, 1000])
def test_one_epoch_of_mini_batches_follows_another(count: int) -> None:
    stream = np.concatenate([batch_places(count, 5, number, 1, "a") for number in range(420)])
    whole = len(stream) // count * count
    for epoch in stream[:whole].reshape(-1, count):
        assert sorted(epoch.tolist()) == list(range(count))
    first = [batch_places(count, 5, number, 1, "a").tolist() for number in (419, 33, 0)]
    assert first == [stream[5 * number :][:5].tolist() for number in (419, 33, 0)]


def test_batch_norm_of_one_task_does_not_touch_another() -> None:
    learner, labels = TestTable().make()
    state = learner.start(labels, 0)
    places = state.network.places
    before = state.network.norms[0].mean.clone()
    state = learner.step(state, ["yes"])
    moved = (state.network.norms[0].mean != before).any(dim=3).squeeze()
    assert moved.tolist() == [place == places["yes"] for place in sorted(places.values())]


def test_patience_stops_early() -> None:
    learner, labels = TestTable().make()
    seen = []
    train(
        learner,
        labels,
        0,
        patience=Patience(every=2, looks=2, least=0.9),
        watch=lambda step, _: seen.append(step),
    )
    assert seen[-1] == 6 < learner.steps(labels)


class Slow:
    """Its loss falls until a step; a state is how many it made."""

    tasks = ("a",)

    def __init__(self, until: int):
        self.until = until

    def steps(self, labels: Labels) -> int:
        return 4

    def start(self, labels: Labels, seed: int) -> int:
        assert labels.counts == {"a": 18}
        return 0

    def step(self, state: int, tasks: object) -> int:
        return state + 1

    def score(self, state: int, task: str) -> Measure:
        return Measure(0.0, 100.0 - min(state, self.until), False)

    def with_validation(self, held: Labels) -> Slow:
        assert held.counts == {"a": 2}
        return self

    def find_patience(self, labels: Labels) -> Patience:
        return Patience(every=2, looks=3, after=3, longer=26)


@pytest.mark.parametrize(("until", "end"), [(0, 10), (4, 10), (5, 12), (9, 16), (99, 30)])
def test_a_training_goes_on_until_it_has_converged(until: int, end: int) -> None:
    """It never ends before its schedule: the first look is after its last step."""
    assert train(Slow(until), Labels({"a": range(20)}), 0) == end


def test_a_recipe_may_have_patience() -> None:
    data = make_table()
    parts = split(data, 0, 0.25, 0.1)
    labels = draw(data, parts.train, {"yes": 60, "many": 50, "number": 70}, 0)
    plain = TorchLearner(data, parts, Recipe(epochs=2, batch_size=16))
    patient = TorchLearner(data, parts, Recipe(epochs=2, batch_size=16, patience=1))
    assert plain.find_patience(labels) is None
    assert patient.find_patience(labels) == Patience(every=5, looks=1, after=9, longer=90)
    assert train(plain, labels, 0).done == 10
    assert train(patient, labels, 0).done > 8
    assert not patient.are_alike([(labels, 0), (labels, 1)])


def test_labels_that_tell_when_to_stop_are_neither_trained_on_nor_scored() -> None:
    labels = Labels({"a": range(30), "b": range(40, 49)})
    predicted = labels.with_pseudo("a", np.arange(50, 90), np.zeros(40))
    kept, held = hold_back(predicted, 3)
    assert held.counts == {"a": 3, "b": 0}
    assert set(held["a"].instances) < set(range(30))
    assert not set(held["a"].instances) & set(kept["a"].instances)
    assert kept.counts == {"a": 67, "b": 9}
    assert hold_back(predicted, 3)[1].fingerprint == held.fingerprint
    assert hold_back(predicted, 4)[1].fingerprint != held.fingerprint


def test_weights_are_saved_and_read_back(tmp_path: Path) -> None:
    learner, labels = TestTable().make()
    state = train(learner, labels, 0)
    learner.save(state, tmp_path)
    again = learner.load(tmp_path)
    assert measure(learner, again) == measure(learner, state)
    other = TorchLearner(make_images(), split(make_images(), 0))
    with pytest.raises(InputError, match="does not fit the network"):
        other.load(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        learner.load(tmp_path / "nowhere")


@pytest.mark.parametrize("runs", [1, 3])
def test_nothing_is_loaded_that_does_not_fit(tmp_path: Path, runs: int) -> None:
    learner, labels = TestTable().make()
    stack = learner.start_stack([labels] * runs, range(runs), learner.steps(labels))
    learner.save(stack, tmp_path)
    path = tmp_path / "weights.safetensors"
    whole = load_file(path)
    learner.load(tmp_path, runs)
    with pytest.raises(InputError, match=r"is .* for "):
        learner.load(tmp_path, runs + 1)
    name = next(key for key, part in whole.items() if part.is_floating_point())
    for change, told in (
        ({name: whole[name].double()}, r"of torch.float64 for .* of torch.float32"),
        ({name: whole[name] * np.nan}, "holds something that is no finite number"),
        ({name: whole[name][..., :1].contiguous()}, " for "),
        ({"network.more": torch.zeros(2)}, "'network.more' has no place in it"),
    ):
        save_file(whole | change, path)
        with pytest.raises(InputError, match=told):
            learner.load(tmp_path, runs)
    save_file({key: part for key, part in whole.items() if key != name}, path)
    with pytest.raises(InputError, match="is missing"):
        learner.load(tmp_path, runs)


def test_frozen_layers_are_computed_once() -> None:
    data = make_images()
    calls = []

    class Frozen(torch.nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            calls.append(len(batch))
            return torch.nn.functional.avg_pool2d(batch, 2).flatten(1)

    tasks = tuple(target for target in data.targets if target.name in ("kind", "area"))
    small = ArrayData("squares", tasks, data.features, {t.name: data.labels[t.name] for t in tasks})
    learner = TorchLearner(small, split(small, 0), Recipe(epochs=3), frozen=Frozen())
    labels = draw(small, learner.split.train, {"kind": 8, "area": 8}, 0)
    state = train(learner, labels, 0)
    assert sum(calls) <= 17  # those of either task, and one to see the shape
    learner.predict(state, "kind", np.arange(data.size))
    measure(learner, state)
    assert sum(calls) == data.size


def test_soft_pseudo_labels_train() -> None:
    learner, labels = TestTable().make()
    state = train(learner, labels, 0)
    pool = np.setdiff1d(learner.split.train, labels["yes"].instances)[:50]
    soft = learner.predict(state, "yes", pool)
    hard = soft.argmax(axis=1)
    for values in (soft, hard):
        more = Labels({"yes": TaskLabels(pool, values)})
        assert learner.score(train(learner, more, 0), "yes").metric > 0.6


def test_gain_follows_the_direction() -> None:
    assert Measure(0.6, 1, True).gain_over(Measure(0.5, 1, True)) == pytest.approx(20)
    assert Measure(0.4, 1, False).gain_over(Measure(0.5, 1, False)) == pytest.approx(20)


BAD = [
    ("unknown optimiser", lambda: Recipe(optimiser="sdg"), "did you mean 'sgd'"),
    ("no batch", lambda: Recipe(batch_size=0), "batch_size: 0 is below 1"),
    ("precision", lambda: Recipe(precision="float8"), "did you mean 'float32'"),
    ("unknown task", lambda: table_learner().start(Labels({"yess": [1]}), 0), "did you mean 'yes'"),
    ("unknown metric", lambda: _with_metric("rocauc"), "did you mean 'roc_auc'"),
    (
        "metric of another kind",
        lambda: _with_metric("miou2"),
        "does not score a task of kind classification",
    ),
    ("labelled twice", lambda: Labels({"yes": [1, 1]}), "labelled twice"),
    ("kind", lambda: Target("a", "classify", ("x",)), "did you mean 'classification'"),
    ("classes missing", lambda: Target("a", "segmentation"), "needs its classes"),
    ("classes too many", lambda: Target("a", "regression", ("x",)), "has no classes"),
    (
        "more than there are",
        lambda: draw(make_table(), np.arange(5), {"yes": 9}, 0),
        "9 labels wanted, 5 instances",
    ),
    ("splits", lambda: split(make_table(), 0, 0.6, 0.5), "leave nothing to train on"),
]


def _with_metric(metric: str) -> TorchLearner:
    data = make_table()
    wrong = ArrayData(
        "t",
        (Target("yes", "classification", ("n", "y"), metric=metric),),
        data.features,
        {"yes": data.labels["yes"]},
    )
    return TorchLearner(wrong, split(wrong, 0))


@pytest.mark.parametrize(("make", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_is_named(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()  # type: ignore[operator]


def test_a_label_that_the_data_does_not_have() -> None:
    data = make_table()
    missing = {"yes": np.arange(data.size) > 10}
    partial = ArrayData("t", data.targets, data.features, data.labels, missing)
    learner = TorchLearner(partial, split(partial, 0))
    with pytest.raises(InputError, match="does not have"):
        learner.start(Labels({"yes": [50]}), 0)


def test_only_values_marked_as_pseudo_are_used() -> None:
    learner, labels = TestTable().make()
    have = labels["number"].instances
    nonsense = np.full(len(have), 1e6, dtype=np.float32)
    real = TaskLabels(np.sort(have), nonsense, pseudo=np.zeros(len(have), dtype=bool))
    plain, masked = (train(learner, each, 0) for each in (labels, labels.with_task("number", real)))
    assert measure(learner, masked) == measure(learner, plain)


def test_a_stack_of_runs_with_and_without_pseudo_labels() -> None:
    learner, labels = TestTable().make()
    have = labels["number"].instances
    odd = labels.with_task(
        "number", TaskLabels(have, np.linspace(-50, 50, len(have), dtype=np.float32))
    )
    runs = [(labels, 0), (odd, 1)]
    for (each, seed), state in zip(runs, train_many(learner, runs), strict=True):
        single = train(learner, each, seed)
        for task in learner.tasks:
            assert learner.score(state, task).loss == pytest.approx(
                learner.score(single, task).loss, abs=1e-5
            )


def test_runs_of_unequal_length_are_trained_one_by_one() -> None:
    learner = table_learner(epochs=2)
    train_part = learner.split.train
    runs = [
        (draw(learner.data, train_part, dict.fromkeys(learner.tasks, count), 0), 0)
        for count in (20, 90)
    ]
    states = train_many(learner, runs)
    assert [state.done for state in states] == [learner.steps(labels) for labels, _ in runs]


def test_tasks_side_by_side_take_the_step_of_tasks_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they share is done once for all their images; statistics and gradients are as if it were
    not."""
    data = make_images()
    learner = TorchLearner(data, split(data, 0), Recipe(steps=2, batch_size=4))
    labels = draw(data, learner.split.train, {"kind": 8, "mask": 8, "depth": 8}, 0)
    tasks = ["kind", "mask", "kind", "depth"]
    together = learner.step(learner.start(labels, 0), tasks).network.state_dict()
    monkeypatch.delattr(ImageNetwork, "share")
    apart = learner.step(learner.start(labels, 0), tasks).network.state_dict()
    start = learner.start(labels, 0).network.state_dict()
    assert any(not torch.equal(start[key], apart[key]) for key in start)
    for key, part in apart.items():
        torch.testing.assert_close(together[key], part, rtol=1e-4, atol=1e-6, msg=key)


# The best answer that does not look


def test_a_constant_answer_scores_what_it_should() -> None:
    from allotment.data.scenes import make_scenes
    from allotment.learners.losses import constant_of, loss_of

    data = make_scenes(60, 16, 0)
    parts = split(data, 0, 0.3, 0.0)
    learner = TorchLearner(data, parts, Recipe(steps=1, batch_size=4))
    labels = draw(data, parts.train, dict.fromkeys(learner.tasks, 30), 0)
    state = learner.start(labels, 0)
    found = {task: learner.score_constant(state, task) for task in learner.tasks}
    seen = {task: data.labels[task][labels[task].instances] for task in learner.tasks}
    scored = {task: data.labels[task][parts.validation] for task in learner.tasks}
    share = seen["edges"].mean()
    wanted = -(scored["edges"] * np.log(share) + (1 - scored["edges"]) * np.log(1 - share)).mean()
    assert found["edges"].metric == pytest.approx(wanted, rel=1e-4)
    assert found["depth"].metric == pytest.approx(
        np.abs(scored["depth"] - np.median(seen["depth"])).mean(), rel=1e-3
    )
    masks = scored["segmentation"]
    often = np.bincount(seen["segmentation"][seen["segmentation"] != 255]).argmax()
    there = np.unique(masks[masks != 255])
    hit = (masks == often).sum() / (masks != 255).sum()
    assert found["segmentation"].metric == pytest.approx(hit / len(there), rel=1e-6)
    mean = seen["normals"].mean(axis=(0, 2, 3))
    angles = np.degrees(
        np.arccos(
            np.clip(
                (scored["normals"] * (mean / np.linalg.norm(mean))[:, None, None]).sum(1), -1, 1
            )
        )
    )
    assert found["normals"].metric == pytest.approx(angles.mean(), rel=1e-4)
    # and no constant near by loses less on the labels that it was made from
    for task in ("classes", "edges", "keypoints"):
        values = torch.tensor(np.asarray(seen[task], dtype=np.float32))
        best = constant_of(learner.targets[task], values)
        pixels = values.shape[1:] if task != "classes" else ()

        def lose(
            outputs: torch.Tensor,
            task: str = task,
            values: torch.Tensor = values,
            pixels: Any = pixels,
        ) -> float:
            every = outputs.view(1, 1, -1, *(1,) * len(pixels)).expand(1, len(values), -1, *pixels)
            return float(loss_of(learner.targets[task], every, values[None]))

        assert all(lose(best) < lose(best + step) for step in (0.1, -0.1))
