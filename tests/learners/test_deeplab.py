"""DeepLab for several tasks: the learner's contract, each task's own norms, weights kept or drawn,
frozen stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, draw, split
from allotment.errors import InputError
from allotment.learners.backbones import Backbone, Pixels, Stages, mark_untrained, split_backbone
from allotment.learners.conformance import LearnerTests
from allotment.learners.deeplab import DeepLab, DeepLabHead, WholeImageHead, spread_out
from allotment.learners.learner import train
from allotment.learners.mobilenet import MobileNet
from allotment.learners.recipe import Recipe
from allotment.learners.resnet import ResNet
from allotment.learners.squeezenet import SqueezeNet
from allotment.learners.torch_learner import TorchLearner
from allotment.learners.weights import load_weights

SIDE = 24
TARGETS = (
    Target("tags", "multilabel", ("r", "g", "b")),
    Target("mask", "segmentation", ("ground", "r", "g", "b")),
    Target("normals", "normals"),
    Target("share", "regression"),
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def make_data(count: int = 40) -> ArrayData:
    """A square in one of three colours on a dark ground."""
    rng = np.random.default_rng(6)
    images = rng.integers(0, 60, size=(count, 3, SIDE, SIDE)).astype(np.uint8)
    mask = np.zeros((count, SIDE, SIDE), dtype=np.uint8)
    kind = rng.integers(0, 3, size=count)
    for i in range(count):
        y, x = rng.integers(0, SIDE - 10, size=2)
        images[i, kind[i], y : y + 10, x : x + 10] += 180
        mask[i, y : y + 10, x : x + 10] = kind[i] + 1
    up, out = np.array([0, 1.0, 0])[:, None, None], np.array([0, 0, 1.0])[:, None, None]
    labels = {
        "tags": np.eye(3, dtype=np.float32)[kind],
        "mask": mask,
        "normals": np.where(mask[:, None] > 0, out, up).astype(np.float32),
        "share": images.mean(axis=(1, 2, 3)).astype(np.float32),
    }
    return ArrayData("squares", TARGETS, images, labels)


def tiny_backbone() -> Stages:
    """Two strided convolutions with a batch norm each: a user's own, with the weights it happens to
    have."""
    torch.manual_seed(0)
    first = nn.Sequential(
        Pixels([0.3] * 3, [0.3] * 3), nn.Conv2d(3, 12, 3, 2, 1), nn.BatchNorm2d(12), nn.ReLU()
    )
    second = nn.Sequential(
        nn.Conv2d(12, 16, 3, 2, 1), nn.BatchNorm2d(16, eps=0.01, momentum=0.3), nn.ReLU()
    )
    return Stages([first, second], channels=16)


def make(
    backbone: Backbone | None = None, targets: Sequence[Target] = TARGETS, **options: object
) -> DeepLab:
    options = {"width": 16, "rates": (1, 2, 3)} | options
    network = DeepLab(
        mark_untrained(tiny_backbone()) if backbone is None else backbone, targets, **options
    )
    network.reset([torch.Generator().manual_seed(1)])
    return network


def images(count: int = 2, side: int = SIDE) -> Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(4))


def statistics(network: nn.Module, task: str) -> dict[str, Tensor]:
    own = {
        name: part.clone() for name, part in network.state_dict().items() if f"task {task}" in name
    }
    assert any("running_mean" in name for name in own)
    return own


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(part, other[name]) for name, part in one.items())


def weights_of(network: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


# --- the learner's contract ---


def make_learner(**recipe: object) -> TorchLearner:
    data = make_data()
    return TorchLearner(
        data,
        split(data, 0, 0.3, 0.1),
        Recipe(**({"steps": 8, "batch_size": 4} | recipe)),
        network=lambda shape, targets, runs: make(targets=targets),
    )


class TestDeepLab(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        learner = make_learner()
        return learner, draw(
            learner.data, learner.split.train, {"tags": 8, "mask": 7, "share": 6}, 0
        )


class TestFrozen(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        data = make_data()
        frozen, rest = split_backbone(tiny_backbone(), 1)
        learner = TorchLearner(
            data,
            split(data, 0, 0.3, 0.1),
            Recipe(steps=8, batch_size=4),
            network=lambda shape, targets, runs: make(rest, targets, size=(SIDE, SIDE)),
            frozen=frozen,
        )
        return learner, draw(data, learner.split.train, {"tags": 8, "mask": 7}, 0)


def test_it_learns_what_it_is_shown() -> None:
    """Scored on the very images that it is trained on; an answer of ground everywhere has an mIoU
    of 0.2."""
    data = make_data(16)
    every = np.arange(16)
    recipe = Recipe(steps=120, batch_size=8, optimiser="adam", trunk_rate=0.01, head_rate=0.01)
    learner = TorchLearner(
        data, Split(every, every, every), recipe, lambda shape, targets, runs: make(targets=targets)
    )
    state = train(learner, Labels({"tags": every, "mask": every}), seed=0)
    assert learner.score(state, "tags").metric > 0.95
    assert learner.score(state, "mask").metric > 0.6


def test_the_learner_gives_images_from_0_to_1() -> None:
    """What every backbone counts on."""
    seen: list[Tensor] = []

    class Watch(nn.Module):
        def forward(self, batch: Tensor) -> Tensor:
            seen.append(batch)
            return batch

    data = make_data()
    data.features[:, :, 0, 0], data.features[:, :, 0, 1] = 0, 255
    backbone = Stages([Watch(), nn.Conv2d(3, 4, 3)], channels=4)
    learner = TorchLearner(
        data,
        split(data, 0, 0.3, 0.1),
        Recipe(steps=1),
        lambda shape, targets, runs: make(backbone, targets),
    )
    learner.step(learner.start(Labels({"tags": range(8)}), 0), ["tags"])
    assert (float(seen[-1].min()), float(seen[-1].max())) == (0, 1)


# --- norms of each task's own ---


def test_other_tasks_do_not_notice_whose_turn_it_is() -> None:
    network = make(dropout=0.0)
    for task in ("tags", "mask"):
        network.train()(images(4), task)
    network.eval()
    before, answers = statistics(network, "mask"), network(images(), "mask").detach().clone()
    own = statistics(network, "tags")
    network.train()
    for _ in range(3):
        network(images(4) * 0.5, "tags")
    network.eval()
    assert same(before, statistics(network, "mask"))
    assert torch.equal(answers, network(images(), "mask"))
    assert not same(own, statistics(network, "tags"))


def test_a_step_on_one_task_leaves_the_norms_and_heads_of_others() -> None:
    learner = make_learner()
    state = learner.start(Labels({"tags": range(8), "mask": range(8)}), 0)
    state = learner.step(state, ["tags", "mask"])
    others = {task: statistics(state.network, task) for task in ("mask", "normals")}
    shared = state.network.backbone.stages[0][1].weight.detach().clone()
    state = learner.step(state, ["tags"])
    for task, before in others.items():
        parts = {
            name: part
            for name, part in before.items()
            if "running" in name or name.startswith("heads")
        }
        # Momentum still moves what the step before had gradients for: statistics are what a task
        # has to itself.
        kept = {
            name: part for name, part in parts.items() if "running" in name or task == "normals"
        }
        assert same(kept, statistics(state.network, task))
    assert not torch.equal(shared, state.network.backbone.stages[0][1].weight)


def test_norms_keep_all_settings_of_the_backbones() -> None:
    """eps and momentum are no part of a state dict, and MobileNet's eps is not torch's."""
    backbone = MobileNet().eval()
    network = make(mark_untrained(backbone)).eval()
    norms = [module for module in network.backbone.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 25 * len(TARGETS)
    assert {norm.eps for norm in norms} == {1e-3}
    tiny = make(tiny_backbone())
    assert {norm.momentum for norm in tiny.backbone[1][1].norms.values()} == {0.3}


class TwoNames(nn.Module):
    """A user's backbone whose layers are listed as stages and kept by name as well."""

    channels = 8

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8)
        self.stages = nn.ModuleList([self.conv, self.norm])

    def forward(self, batch: Tensor) -> Tensor:
        for stage in self.stages:
            batch = stage(batch)
        return batch


def test_a_norm_with_two_names_is_still_each_tasks_own() -> None:
    network = make(TwoNames())
    assert network.backbone.norm is network.backbone.stages[1]
    before = statistics(network, "mask")
    network.train()(images(4), "tags")
    assert same(before, statistics(network, "mask"))
    assert not any("stages.1.running" in name for name in network.state_dict())


@pytest.mark.parametrize("backbone", [lambda: ResNet(18), MobileNet, SqueezeNet, tiny_backbone])
def test_untrained_norms_change_nothing(backbone) -> None:
    """With the statistics it came with, the backbone in the network is the backbone."""
    given = backbone().eval()
    for layer in given.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-0.5, 0.5)
            layer.running_var.uniform_(0.5, 2)
        vars(layer)["untrained"] = False
    network = make(given).eval()
    wanted = given(images(1, 96)).mean(dim=(2, 3)).detach()
    assert torch.allclose(
        network.features(images(1, 96), "mask"), wanted, atol=1e-5 * float(wanted.abs().max())
    )
    assert torch.equal(
        network.features(images(1, 96), "mask"), network.features(images(1, 96), "tags")
    )


# --- shapes ---


@pytest.mark.parametrize("side", [17, 24, 40])
def test_answers_have_the_form_of_the_labels(side: int) -> None:
    network = make()
    wanted = {
        "tags": (2, 3),
        "mask": (2, 4, side, side),
        "normals": (2, 3, side, side),
        "share": (2, 1),
    }
    assert {task: tuple(network(images(2, side), task).shape) for task in wanted} == wanted
    assert network.features(images(2, side), "mask").shape == (2, 16)


@pytest.mark.parametrize("task", [target.name for target in TARGETS])
@pytest.mark.parametrize("side", [4, SIDE])
def test_a_single_image_can_be_trained_on(task: str, side: int) -> None:
    """The image's mean has one value for each channel, and so has the whole map where the image is
    small."""
    network = make(mark_untrained(MobileNet(32))).train()
    network(images(1, side), task).square().sum().backward()
    head = [
        weight.grad for name, weight in network.heads.named_parameters() if f"task {task}" in name
    ]
    assert all(grad is not None and torch.isfinite(grad).all() for grad in head)


def test_names_with_dots_are_fine() -> None:
    network = make(
        targets=(Target("v1.mask", "segmentation", ("a", "b")), Target("heads", "regression"))
    )
    assert network(images(), "v1.mask").shape == (2, 2, SIDE, SIDE)
    assert network(images(), "heads").shape == (2, 1)


# --- weights ---


def test_first_weights_depend_on_the_seed_alone() -> None:
    found = []
    for seed, luck in ((1, 5), (1, 6), (2, 5)):
        torch.manual_seed(luck)
        network = make(ResNet(18), TARGETS[:2])
        network.reset([torch.Generator().manual_seed(seed)])
        found.append(weights_of(network))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_the_given_backbone_keeps_its_weights_and_is_not_touched() -> None:
    given = tiny_backbone()
    before = weights_of(given)
    learner = TorchLearner(
        make_data(),
        split(make_data(), 0, 0.3, 0.1),
        Recipe(steps=2),
        lambda s, targets, r: make(given, targets),
    )
    state = learner.start(Labels({"tags": range(8)}), 0)
    assert torch.equal(state.network.backbone[0][1].weight, given[0][1].weight)
    state = learner.step(state, ["tags"])
    assert not torch.equal(state.network.backbone[0][1].weight, given[0][1].weight)
    assert torch.equal(weights_of(given), before)
    assert isinstance(given[0][2], nn.BatchNorm2d)


def save_checkpoint(path: Path, classes: int) -> tuple[ResNet, DeepLabHead]:
    """A file with the parts that torchvision's DeepLab files have."""
    backbone, head = ResNet(18), DeepLabHead(512, classes, width=16, rates=(1, 2, 3))
    parts = {f"backbone.{name}": part for name, part in backbone.state_dict().items()}
    parts |= {f"classifier.{name}": part for name, part in head.state_dict().items()}
    parts |= {"aux_classifier.0.weight": torch.zeros(2), "aux_classifier.4.bias": torch.zeros(2)}
    save_file(parts, path)
    return backbone, head


def test_backbone_and_head_of_a_deeplab_file_are_used_as_they_are(tmp_path: Path) -> None:
    given = save_checkpoint(tmp_path / "a.safetensors", classes=4)
    backbone, head = ResNet(18), DeepLabHead(512, 4, width=16, rates=(1, 2, 3))
    said = [load_weights(module, tmp_path / "a.safetensors") for module in (backbone, head)]
    assert all("aux_classifier.4.bias" in each.left for each in said)
    network = make(backbone, TARGETS[:2], heads={"mask": head}).eval()
    batch = images(1, 65)
    plain = nn.Sequential(given[0], given[1]).eval()(batch)
    wanted = nn.functional.interpolate(plain, size=(65, 65), mode="bilinear")
    assert torch.allclose(network(batch, "mask"), wanted, atol=1e-5)


def test_a_head_for_other_classes_has_its_last_layer_drawn(tmp_path: Path) -> None:
    _, given = save_checkpoint(tmp_path / "a.safetensors", classes=21)
    head = DeepLabHead(512, 4, width=16, rates=(1, 2, 3))
    said = load_weights(head, tmp_path / "a.safetensors", skip_other_classes=True)
    assert said.skipped == ("4.bias", "4.weight")
    made = []
    for seed in (1, 1, 2):
        network = make(tiny_like(512), TARGETS[1:2], heads={"mask": head})
        network.reset([torch.Generator().manual_seed(seed)])
        made.append(network.heads["task mask"])
    assert torch.equal(made[0][1].weight, given[1].weight)
    assert torch.equal(made[0][4].weight, made[1][4].weight)
    assert not torch.equal(made[0][4].weight, made[2][4].weight)


def tiny_like(channels: int) -> Stages:
    return Stages([nn.Conv2d(3, channels, 3, 4)], channels=channels)


# --- training on some of the pixels ---


@pytest.mark.parametrize("every", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(24, 24), (21, 30)])
def test_maps_are_spread_out_as_torch_does_it(size: tuple[int, int], every: int) -> None:
    maps = torch.rand(2, 5, 6, 7).contiguous(memory_format=torch.channels_last)
    whole = nn.functional.interpolate(maps, size=size, mode="bilinear")
    wanted = whole[..., every // 2 :: every, every // 2 :: every]
    assert torch.allclose(spread_out(maps, size, every), wanted, atol=1e-6)


def test_a_step_sees_some_pixels_and_a_score_all_of_them() -> None:
    """What other pixels are labelled as changes no step, and every score."""
    data = make_data()
    other = data.labels["mask"].copy()
    seen = np.zeros((SIDE, SIDE), dtype=bool)
    seen[2::4, 2::4] = True
    other[:, ~seen] = 0
    found = []
    for mask in (data.labels["mask"], other):
        mine = replace(data, labels=data.labels | {"mask": mask})
        learner = TorchLearner(
            mine,
            split(data, 0, 0.3, 0.1),
            Recipe(steps=3, batch_size=4),
            network=lambda shape, targets, runs: make(targets=targets, every=4),
        )
        state = train(learner, Labels({"mask": range(8), "normals": range(8)}), 0)
        found.append((weights_of(state.network), learner.score(state, "mask").loss))
        assert learner.predict(state, "mask", np.arange(2)).shape == (2, 4, SIDE, SIDE)
    (weights, loss), (again, otherwise) = found
    assert torch.equal(weights, again)
    assert loss != otherwise


def test_a_probe_sees_the_pixels_that_a_step_sees() -> None:
    learner = make_learner()
    learner._make = lambda shape, targets, runs: make(targets=targets, every=4, dropout=0.0)
    state = learner.start(Labels({"mask": range(8), "normals": range(8)}), 0)
    arms = {"one": ("mask",), "both": ("mask", "normals")}
    ends = learner.probe(state, arms, 2)
    for name, tasks in arms.items():
        walked = learner.fork(state)
        for _ in range(2):
            walked = learner.step(walked, tasks)
        assert torch.allclose(weights_of(ends[name].network), weights_of(walked.network), atol=1e-5)


class TestThinned(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        data = make_data()
        learner = TorchLearner(
            data,
            split(data, 0, 0.3, 0.1),
            Recipe(steps=8, batch_size=4),
            network=lambda shape, targets, runs: make(targets=targets, every=3),
        )
        return learner, draw(data, learner.split.train, {"tags": 8, "mask": 7, "normals": 6}, 0)


# --- frozen stages ---


@pytest.mark.parametrize("count", [1, 2])
def test_frozen_stages_are_computed_once_and_change_no_answer(count: int) -> None:
    data, backbone = make_data(), tiny_backbone()
    parts, labels = split(data, 0, 0.3, 0.1), Labels({"mask": range(8)})
    calls: list[int] = []
    frozen, rest = split_backbone(backbone, count)
    frozen.register_forward_hook(lambda module, given, out: calls.append(len(out)))
    size = (SIDE, SIDE)
    cached = TorchLearner(
        data, parts, Recipe(steps=3), lambda s, t, r: make(rest, t, size=size), frozen
    )
    plain = TorchLearner(data, parts, Recipe(steps=3), lambda s, t, r: make(backbone, t))
    state, other = cached.start(labels, 0), plain.start(labels, 0)
    answers = cached.predict(state, "mask", parts.test), plain.predict(other, "mask", parts.test)
    assert np.allclose(*answers, atol=1e-5)
    for _ in range(3):
        state = cached.step(state, ["mask"])
    cached.predict(state, "mask", np.arange(data.size))
    cached.predict(state, "mask", np.arange(data.size))
    assert sum(calls) <= data.size + 1  # each image once, and perhaps one to learn the shape


# --- what is refused ---


def test_every_mistake_is_named_at_once() -> None:
    _, rest = split_backbone(tiny_backbone(), 1)
    heads = {"maks": DeepLabHead(16, 4), "tags": WholeImageHead(16, 9)}
    with pytest.raises(InputError) as caught:
        DeepLab(rest, TARGETS, heads=heads)
    said = list(map(str, caught.value.mistakes))
    assert said == [
        "heads: 'maks': is not a task; did you mean 'mask'?",
        "heads: 'tags': gives 9 numbers and the task wants 3",
        (
            "size: the backbone's first stages are frozen: give the height and width of the labels"
            " of mask, normals"
        ),
    ]


def test_what_is_no_backbone_is_refused() -> None:
    with pytest.raises(InputError, match="a int is not a torch module"):
        DeepLab(3, TARGETS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="channels"):
        DeepLab(nn.Sequential(), TARGETS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="there are none"):
        DeepLab(tiny_backbone(), ())
