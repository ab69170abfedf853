"""What tasks share of a network: all of its trunk, or that with adapters of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.folders import make_voc
from torch import Tensor, nn

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, draw, split
from allotment.data.scenes.album import make_scenes
from allotment.errors import InputError
from allotment.learners.backbones import Stages, mark_trained, mark_untrained
from allotment.learners.built_in import make_built_in
from allotment.learners.conformance import LearnerTests
from allotment.learners.deeplab import DeepLab
from allotment.learners.learner import probe, train
from allotment.learners.networks import TaskAdapter, list_adapters
from allotment.learners.recipe import Recipe
from allotment.learners.setups import BACKBONES, SETUPS, make_learner
from allotment.learners.sharing import SHARINGS, WITH_ADAPTERS
from allotment.learners.torch_learner import TorchLearner

RECIPE = Recipe(steps=6, batch_size=4, trunk_rate=0.01, head_rate=0.01)


def make_data() -> ArrayData:
    """Scenes with a task of the whole picture and two of its pixels."""
    scenes = make_scenes(40, 24, 0)
    wanted = ("segmentation", "classes", "depth")
    named = {target.name: target for target in scenes.targets}
    return scenes.with_targets(tuple(named[name] for name in wanted))


def make_usual(sharing: str = WITH_ADAPTERS) -> TorchLearner:
    data = make_data()
    return TorchLearner(data, split(data, 0, 0.3, 0.1), RECIPE, sharing=sharing)


def make_deeplab(sharing: str = WITH_ADAPTERS) -> TorchLearner:
    """With a backbone whose second stage has no weights."""
    data = make_data()

    def network(shape: tuple[int, ...], targets: tuple[Target, ...], runs: int) -> nn.Module:
        first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8))
        last = nn.Sequential(nn.Conv2d(8, 12, 3, 1, 1), nn.BatchNorm2d(12), nn.ReLU())
        own = mark_untrained(Stages([first, nn.ReLU(), last], channels=12))
        return DeepLab(own, targets, width=8, rates=(1, 2), sharing=sharing, inputs=shape[0])

    return TorchLearner(data, split(data, 0, 0.3, 0.1), RECIPE, network)


MAKERS = {"usual": make_usual, "deeplab": make_deeplab}
each_network = pytest.mark.parametrize("network", MAKERS)


def draw_some(learner: TorchLearner) -> Labels:
    return draw(learner.data, learner.split.train, dict.fromkeys(learner.tasks, 8), 0)


class TestAdapters(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        learner = make_usual()
        return learner, draw_some(learner)


class TestDeepLabAdapters(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        learner = make_deeplab()
        return learner, draw_some(learner)


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in network.named_parameters()}


def list_moved(before: Mapping[str, Tensor], network: nn.Module) -> set[str]:
    return {
        name for name, weight in network.named_parameters() if not torch.equal(weight, before[name])
    }


def names_in(network: nn.Module) -> set[str]:
    """Of all weights of adapters."""
    own = {id(weight) for adapter in list_adapters(network) for weight in adapter.parameters()}
    return {name for name, weight in network.named_parameters() if id(weight) in own}


@each_network
def test_a_step_on_a_task_moves_its_own_adapters_and_what_is_shared(network: str) -> None:
    learner = MAKERS[network]()
    tasks = learner.tasks
    state = learner.start(draw_some(learner), 0)
    state = learner.step(state, tasks)  # while an adapter adds nothing, half of it has no gradient
    adapters = names_in(state.network)
    mine = {name for name in adapters if f"task {tasks[0]}" in name}
    assert mine
    assert mine < adapters
    before = weights_of(state.network)
    state = learner.step(state, tasks[:1])
    moved = list_moved(before, state.network)
    assert moved & adapters == mine
    shared = {name for name in before if "task " not in name}
    assert shared
    assert shared <= moved


@each_network
def test_steps_on_other_tasks_change_nothing_of_a_tasks_adapters(network: str) -> None:
    """Also with momentum and what an optimiser keeps."""
    learner = MAKERS[network]()
    last = learner.tasks[-1]
    state = learner.start(draw_some(learner), 0)
    state = learner.step(state, learner.tasks)
    before = weights_of(state.network)
    for _ in range(3):
        state = learner.step(state, learner.tasks[:-1])
    moved = list_moved(before, state.network) & names_in(state.network)
    assert moved
    assert not [name for name in moved if f"task {last}" in name]


@each_network
def test_before_the_first_step_adapters_add_nothing(network: str) -> None:
    """Everything else is drawn as without them, so that the two ways begin alike."""
    plain, adapted = (MAKERS[network](sharing) for sharing in SHARINGS)
    labels, some = draw_some(plain), np.arange(6)
    one, other = (learner.start(labels, 3) for learner in (plain, adapted))
    for task in plain.tasks:
        first, second = plain.predict(one, task, some), adapted.predict(other, task, some)
        assert np.array_equal(first, second)
    one, other = (train(learner, labels, 3) for learner in (plain, adapted))
    task = plain.tasks[0]
    assert not np.array_equal(plain.predict(one, task, some), adapted.predict(other, task, some))


@each_network
def test_without_adapters_a_network_is_what_it_was(network: str) -> None:
    learner = MAKERS[network]("all")
    state = learner.start(draw_some(learner), 0)
    assert not list_adapters(state.network)
    assert not [name for name in state.network.state_dict() if "adapter" in name]


@each_network
def test_adapters_learn_at_the_rate_of_heads(network: str) -> None:
    learner = MAKERS[network]()
    state = learner.start(draw_some(learner), 0)
    trunk, own = ({id(w) for w in group["params"]} for group in state.optimiser.param_groups)
    adapters = {id(w) for each in list_adapters(state.network) for w in each.parameters()}
    assert adapters
    assert adapters <= own
    assert not adapters & trunk
    assert len(trunk | own) == len(list(state.network.parameters()))


@each_network
def test_tasks_together_see_what_each_would_alone(network: str) -> None:
    learner = MAKERS[network]()
    state = train(learner, draw_some(learner), 0)
    tasks, net = learner.tasks, state.network.eval()
    batch = torch.rand(6, 3, 24, 24, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        shared = net.share(batch, tasks)
        for place, task in enumerate(tasks):
            wanted = net(batch[2 * place : 2 * place + 2], task)
            found = net.finish(shared[place], task, (24, 24))
            assert torch.allclose(found, wanted, atol=1e-5)


def test_looks_ahead_are_those_of_forks() -> None:
    learner = make_usual()
    labels, (a, b, *_) = draw_some(learner), learner.tasks
    state = learner.step(learner.start(labels, 0), learner.tasks)
    ends = probe(learner, state, {"alone": [a], "both": [a, b]}, 2)
    for name, tasks in (("alone", [a]), ("both", [a, b])):
        walked = learner.fork(state)
        for _ in range(2):
            walked = learner.step(walked, tasks)
        found = dict(ends[name].network.named_parameters())
        for key, weight in walked.network.named_parameters():
            assert torch.allclose(found[key], weight, atol=1e-5), key


@pytest.mark.parametrize("network", ["voc-small", "taskonomy-small", "voc-paper"])
def test_every_set_up_takes_adapters(network: str, tmp_path: Path) -> None:
    """One behind each stage that is trained: small set-ups have one such stage, a ResNet five."""
    make_voc(tmp_path / "data")
    recipe = replace(SETUPS[network].recipe, crop=0, batch_size=2, steps=1)
    setup = replace(SETUPS[network], data="voc", side=48, recipe=recipe, width=8)
    paper = network.endswith("paper")
    own = BACKBONES["resnet18" if paper else "mobilenet"]()
    for module in own.modules():
        mark_trained(module)
    made = [
        make_learner(setup, tmp_path / "data", backbone=own, sharing=sharing)
        for sharing in SHARINGS
    ]
    labels = draw(made[0].data, made[0].split.train, {"classes": 2, "segmentation": 2}, 0)
    plain, adapted = (learner.start(labels, 0) for learner in made)
    channels = [each.down["task classes"].shape[1] for each in list_adapters(adapted.network)]
    assert channels == ([64, 64, 128, 256, 512] if paper else [setup.narrow])
    there = np.arange(2)
    for task in ("classes", "segmentation"):
        first, second = made[0].predict(plain, task, there), made[1].predict(adapted, task, there)
        assert np.array_equal(first, second)
    adapted = made[1].step(adapted, ["classes", "segmentation"])
    assert all(each.up["task classes"].any() for each in list_adapters(adapted.network))


def test_a_saved_network_with_adapters_answers_as_before(tmp_path: Path) -> None:
    learner = make_deeplab()
    state = train(learner, draw_some(learner), 0)
    learner.save(state, tmp_path)
    again = make_deeplab()
    loaded = again.load(tmp_path)
    for task in learner.tasks:
        some = np.arange(5)
        found = again.predict(loaded, task, some)
        assert np.array_equal(found, learner.predict(state, task, some))
    with pytest.raises(InputError, match="does not fit the network"):
        make_deeplab("all").load(tmp_path)


def make_table() -> ArrayData:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 3)).astype(np.float32)
    labels = {"size": features[:, 0]}
    return ArrayData("table", (Target("size", "regression"),), features, labels)


def test_what_can_have_no_adapters_says_so() -> None:
    table, scenes = make_table(), make_scenes(8, 24, 0)
    everyone = split(table, 0), split(scenes, 0)
    with pytest.raises(InputError, match="'adapters' is for images"):
        TorchLearner(table, everyone[0], RECIPE, sharing="adapters")
    with pytest.raises(InputError, match="did you mean 'adapters'"):
        make_built_in({"sharing": "adapter"}, scenes, everyone[1])
    own = make_deeplab()
    with pytest.raises(InputError, match="is for the usual network"):
        TorchLearner(scenes, everyone[1], RECIPE, own._make, sharing="adapters")
    nothing = Stages([nn.ReLU()], channels=3)
    with pytest.raises(InputError, match="behind stages that are trained"):
        DeepLab(nothing, scenes.targets, sharing="adapters")
    with pytest.raises(InputError, match="sharing: unknown 'none'"):
        DeepLab(Stages([nn.Conv2d(3, 8, 3)], channels=8), scenes.targets, sharing="none")


def test_an_adapter_is_narrower_than_what_it_sees() -> None:
    wide, thin = TaskAdapter(["a", "b.c"], 512), TaskAdapter(["a"], 24)
    assert wide.down["task a"].shape == (64, 512)
    assert thin.down["task a"].shape == (8, 24)
