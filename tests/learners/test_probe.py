"""The built-in learner's look-ahead against forks that take the same steps, and its scores on other
instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.learners import Forgetful, make_images, make_table

from allotment.data.dataset import Target
from allotment.data.labels import Labels, draw, split
from allotment.errors import InputError
from allotment.estimates.probes import make_arms, probe_once, probe_training, score_on_some
from allotment.learners.learner import follow, train
from allotment.learners.lookahead import Stack, move_statistics, push_all, turns_of
from allotment.learners.metrics import mean_iou, roc_auc
from allotment.learners.networks import ImageNetwork, Perceptron, SmallTrunk
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner, Training

COUNTS = {
    "table": {"yes": 60, "many": 50, "number": 70},
    "images": {"kind": 8, "mask": 8, "normals": 6},
}
RATES: dict[str, dict[str, float]] = {
    "sgd": {},
    "adam": {"trunk_rate": 0.003, "head_rate": 0.003},
    "adamw": {"trunk_rate": 0.003, "head_rate": 0.003, "weight_decay": 0.01},
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def make_learner(what: str, network: Any = None, **recipe: Any) -> tuple[TorchLearner, Labels]:
    data = make_table() if what == "table" else make_images(size=16, side=7)
    data = replace(
        data, targets=tuple(target for target in data.targets if target.name in COUNTS[what])
    )
    settings: dict[str, Any] = {"steps": 60, "batch_size": 16 if what == "table" else 4}
    learner = TorchLearner(data, split(data, 0, 0.3, 0.1), Recipe(**settings | recipe), network)
    return learner, draw(data, learner.split.train, COUNTS[what], 0)


def trained(learner: TorchLearner, labels: Labels, steps: int = 5) -> Training:
    return follow(learner, learner.start(labels, 0), tuple(labels), steps)


def parts_of(state: Training) -> dict[str, torch.Tensor]:
    """All that training changes, by name."""
    found = dict(state.network.state_dict())
    for number, kept in state.optimiser.state_dict()["state"].items():
        found |= {f"{number} {key}": value for key, value in kept.items() if value is not None}
    rates = [group["lr"] for group in state.optimiser.param_groups]
    return found | {"rates": torch.tensor(rates), "done": torch.tensor(state.done)}


def bytes_of(state: Training) -> dict[str, bytes]:
    return {name: part.contiguous().numpy().tobytes() for name, part in parts_of(state).items()}


def apart(one: Training, other: Training, leave_out: Sequence[str] = ()) -> float:
    """How far anything differs at most, by the size of the largest number in it."""
    first, second = parts_of(one), parts_of(other)
    assert first.keys() == second.keys()
    return max(
        float((first[name] - second[name]).abs().max() / second[name].abs().max().clamp_min(1e-3))
        for name in first
        if not any(part in name for part in leave_out)
    )


def arms_for(labels: Labels) -> dict[str, Sequence[str]]:
    """Those of a probe, and one that repeats a task with another between."""
    first, second, *_ = labels
    return {**make_arms(tuple(labels)), "mixed": (second, first, second, second)}


# --- where arms lead ---


class Table64(Perceptron):
    """In double precision, so that nothing but a mistake can lead arms elsewhere than forks:
    rounding does not grow."""

    def _trunk(self, batch: torch.Tensor, tasks: Sequence[str]) -> torch.Tensor:
        return super()._trunk(batch.double(), tasks)


class Images64(ImageNetwork):
    def _see(self, batch: torch.Tensor, tasks: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        return super()._see(batch.double(), tasks)


NETWORKS = {
    "table": lambda shape, targets, runs: Table64(shape[0], targets, runs).double(),
    "images": (
        lambda shape, targets, runs: Images64(
            SmallTrunk([each.name for each in targets]), targets
        ).double()
    ),
}


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("optimiser", list(RATES))
@pytest.mark.parametrize("what", list(NETWORKS))
def test_every_arm_ends_where_a_fork_ends_that_takes_its_steps(
    what: str, optimiser: str, steps: int
) -> None:
    learner, labels = make_learner(what, NETWORKS[what], optimiser=optimiser, **RATES[optimiser])
    state, arms = trained(learner, labels), arms_for(labels)
    for name, end in learner.probe(state, arms, steps).items():
        plain = follow(learner, learner.fork(state), arms[name], steps)
        assert apart(end, plain) < 1e-5 < 1e-2 < apart(plain, state, ["rates", "done"]), name
        again, wanted = (follow(learner, each, arms[name], 2) for each in (end, plain))
        assert apart(again, wanted) < 1e-5, name


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("what", list(NETWORKS))
def test_the_usual_networks_are_scored_alike(what: str, optimiser: str) -> None:
    learner, labels = make_learner(what, optimiser=optimiser, **RATES[optimiser])
    state, arms = trained(learner, labels), arms_for(labels)
    for name, end in learner.probe(state, arms, 2).items():
        plain = follow(learner, learner.fork(state), arms[name], 2)
        for task in labels:
            assert learner.score(end, task).loss == pytest.approx(
                learner.score(plain, task).loss, rel=1e-3
            ), name


@pytest.mark.parametrize(
    ("what", "network", "recipe"),
    [
        ("table", Forgetful, {}),
        (
            "table",
            lambda shape, targets, runs: Perceptron(shape[0], targets, runs, hidden=(16,)),
            {},
        ),
        ("table", None, {"accumulate": 4}),
        ("table", None, {"momentum": 0.0, "weight_decay": 0.01}),
        ("images", None, {"accumulate": 2}),
        ("images", None, {"crop": 12, "workers": 0}),
        ("images", None, {"crop": 12, "workers": 2}),
    ],
)
def test_other_networks_and_recipes_end_there_too(
    what: str, network: Any, recipe: Mapping[str, Any]
) -> None:
    learner, labels = make_learner(what, network, **recipe)
    state, arms = trained(learner, labels, 3), arms_for(labels)
    for name, end in learner.probe(state, arms, 2).items():
        plain = follow(learner, learner.fork(state), arms[name], 2)
        assert apart(end, plain) < 1e-3 < apart(plain, state, ["rates", "done"]), name


def test_a_state_of_which_nothing_has_been_learnt_can_be_probed() -> None:
    for what in ("table", "images"):
        learner, labels = make_learner(what)
        state, arms = learner.start(labels, 3), arms_for(labels)
        for name, end in learner.probe(state, arms, 2).items():
            assert apart(end, follow(learner, learner.fork(state), arms[name], 2)) < 1e-3, name


@pytest.mark.parametrize("what", ["table", "images"])
def test_statistics_of_tasks_outside_an_arm_stay_as_they_are(what: str) -> None:
    learner, labels = make_learner(what)
    state, task = trained(learner, labels), next(iter(labels))
    before, statistics = bytes_of(state), {name for name, _ in state.network.named_buffers()}
    end = learner.probe(state, make_arms(tuple(labels)), 1)["0"]
    same = {name for name, part in bytes_of(end).items() if part == before[name]}
    if what == "images":
        assert statistics - same == {
            name for name in statistics if f"norms.task {task}." in name and "trunk" in name
        }
    else:
        mine = learner.tasks.index(task)
        for name in statistics:
            moved = (parts_of(end)[name] != parts_of(state)[name]).flatten(2).any(dim=2)[0]
            assert moved.tolist() == [place == mine for place in range(len(learner.tasks))]


class Shared(torch.nn.Module):
    """Batch norm that all tasks share: what it keeps depends on the order of the tasks."""

    def __init__(self, shape: tuple[int, ...], targets: Sequence[Target], runs: int):
        super().__init__()
        self.trunk = torch.nn.Sequential(
            torch.nn.Linear(shape[0], 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU()
        )
        sizes = {target.name: max(len(target.classes), 1) for target in targets}
        self.heads = torch.nn.ModuleDict(
            {name: torch.nn.Linear(16, size) for name, size in sizes.items()}
        )

    def reset(self, generators: Sequence[torch.Generator]) -> None:
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -0.1, 0.1, generator=generators[0])

    def forward(self, batch: torch.Tensor, task: str) -> torch.Tensor:
        return self.heads[task](self.trunk(batch[0]))[None]


def test_where_tasks_share_statistics_arms_are_stepped_one_by_one() -> None:
    learner, labels = make_learner("table", Shared)
    state, arms = trained(learner, labels), arms_for(labels)
    pushes = push_all(learner, state, turns_of(arms))
    assert move_statistics(pushes, ["yes", "many"]) is None
    assert move_statistics(pushes, ["yes", "yes"]) is not None
    for name, end in learner.probe(state, arms, 2).items():
        plain = follow(learner, learner.fork(state), arms[name], 2)
        assert apart(end, plain) < 1e-4, name
        if len(set(arms[name])) > 1:
            assert bytes_of(end) == bytes_of(plain)


# --- what a probe does not touch ---


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("what", ["table", "images"])
def test_the_probed_state_keeps_its_bytes_and_goes_on_as_it_would(what: str, steps: int) -> None:
    learner, labels = make_learner(what)
    state = trained(learner, labels)
    unprobed = learner.fork(state)
    before = bytes_of(state)
    ends = dict(learner.probe(state, arms_for(labels), steps))
    assert bytes_of(state) == before
    if not steps:
        assert all(bytes_of(end) == before for end in ends.values())
    after, wanted = (follow(learner, each, tuple(labels), 3) for each in (state, unprobed))
    assert bytes_of(after) == bytes_of(wanted)


@pytest.mark.parametrize("what", ["table", "images"])
def test_ends_are_apart_from_each_other_and_from_what_comes_later(what: str) -> None:
    learner, labels = make_learner(what)
    state, arms = trained(learner, labels), make_arms(tuple(labels))
    ends = learner.probe(state, arms, 2)
    first = {name: bytes_of(end) for name, end in ends.items()}
    follow(learner, ends["0 1"], tuple(labels), 3)
    follow(learner, state, tuple(labels), 3)
    assert {name: bytes_of(end) for name, end in ends.items()} == first
    assert list(ends) == list(arms)
    with pytest.raises(KeyError):
        ends["0 9"]


# --- what it costs ---


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("what", ["table", "images"])
def test_gradients_are_as_many_as_it_says(
    what: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, labels = make_learner(what)
    state, arms, seen = trained(learner, labels), make_arms(tuple(labels)), 0
    good = TorchLearner._loss

    def count(
        self: TorchLearner, task: str, output: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        nonlocal seen
        seen += len(output)
        return good(self, task, output, values)

    monkeypatch.setattr(TorchLearner, "_loss", count)
    dict(learner.probe(state, arms, steps))
    assert seen == learner.probe_gradients(arms, steps) == 2 * 3 + (steps - 1) * 3 * 5
    expected = seen
    assert (
        probe_once(learner, state, tuple(labels), steps=steps).cost.probing
        == expected
        == seen - expected
    )


def test_arms_of_a_table_are_one_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, labels = make_learner("table")
    state, stepped, stacked = trained(learner, labels), [], []
    monkeypatch.setattr(TorchLearner, "step", lambda *given: stepped.append(given))
    good = Stack.step
    monkeypatch.setattr(Stack, "step", lambda self: (stacked.append(self), good(self)))
    dict(learner.probe(state, make_arms(tuple(labels)), 4))
    assert not stepped
    assert len(stacked) == 3


# --- scores on other instances ---


def test_scores_are_those_of_the_instances_named() -> None:
    learner, labels = make_learner("table")
    state, some = trained(learner, labels), learner.split.test[::2]
    twin = learner.with_validation(some)
    wanted = roc_auc(learner.predict(state, "yes", some), learner.data.values("yes", some))
    assert twin.score(state, "yes").metric == pytest.approx(wanted, abs=1e-9)
    assert twin.score(state, "yes") != learner.score(state, "yes")
    assert twin._feed is learner._feed
    assert twin.validation.tolist() == sorted(some.tolist())
    assert bytes_of(trained(twin, labels)) == bytes_of(state)


def test_labels_name_the_instances_of_each_task() -> None:
    learner, labels = make_learner("images")
    state = trained(learner, labels)
    twin = learner.with_validation(
        Labels({"mask": labels["mask"].instances, "kind": labels["kind"].instances})
    )
    wanted = mean_iou(
        learner.predict(state, "mask", labels["mask"].instances),
        learner.data.values("mask", labels["mask"].instances),
    )
    assert twin.score(state, "mask").metric == pytest.approx(wanted, abs=1e-6)
    assert twin.score(state, "kind") == learner.with_validation(labels["kind"].instances).score(
        state, "kind"
    )
    assert np.isnan(twin.score(state, "normals").loss)


def test_labels_that_the_data_does_not_have_are_not_scored() -> None:
    data = make_table()
    parts = split(data, 0, 0.3, 0.1)
    data = replace(data, missing={"many": np.isin(np.arange(data.size), parts.test[3:])})
    learner = TorchLearner(data, parts, Recipe(steps=60, batch_size=16))
    state = trained(learner, draw(data, parts.train, COUNTS["table"], 0))
    wide, narrow = (
        learner.with_validation(part) for part in (learner.split.test, learner.split.test[:3])
    )
    assert wide.score(state, "many") == narrow.score(state, "many")
    assert wide.score_gradients("many") == pytest.approx(3 / 16 / 2)
    assert wide.score_gradients("yes") == pytest.approx(len(learner.split.test) / 16 / 2)


@pytest.mark.parametrize(
    ("instances", "words"), [([], "nothing"), ([-1, 3], "-1 to 3"), ([400], "400 to 400")]
)
def test_instances_to_score_on_are_in_the_data(instances: list[int], words: str) -> None:
    learner, _ = make_learner("table")
    with pytest.raises(
        InputError, match=f"instances: {words} can't be scored on; name some of 0 to 399"
    ):
        learner.with_validation(np.array(instances, dtype=np.int64))


def test_probes_are_scored_on_a_fixed_part_of_the_validation_instances() -> None:
    learner, labels = make_learner("table")
    probes, state = probe_training(learner, labels, 3, probes=3, scored=24)
    some = score_on_some(learner, 24, 3)
    assert len(some.validation) == 24
    assert set(some.validation) < set(learner.validation)
    assert set(some.validation) != set(score_on_some(learner, 24, 4).validation)
    assert bytes_of(state) == bytes_of(train(learner, labels, 3))
    now = learner.start(labels, 3)
    for step in range(1, 60):
        now = learner.step(now, learner.tasks)
        if step in probes.at:
            place = probes.at.tolist().index(step)
            found = probe_once(some, now, learner.tasks)
            assert found.loss.joint[0].tolist() == probes.loss.joint[place].tolist()
            assert found.metric.alone[0].tolist() == probes.metric.alone[place].tolist()
    assert probes.cost.scoring == pytest.approx(3 * 12 * 24 / 16 / 2)
