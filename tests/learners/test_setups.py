"""Named set-ups: the paper's network and recipe, and small ones, on a folder like VOC's or on the
real data."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.folders import by_building, flat, make_taskonomy
from PIL import Image

from allotment.data.labels import draw
from allotment.data.source import SOURCES, DataSettings
from allotment.data.voc import VOC_CLASSES
from allotment.errors import InputError
from allotment.learners.backbones import Stages, mark_trained, reduce_channels
from allotment.learners.deeplab import DeepLab
from allotment.learners.editions import FIRST, KEEPING_FIRST, newest_edition
from allotment.learners.learner import train
from allotment.learners.recipe import Recipe
from allotment.learners.setups import (
    BACKBONES,
    EARLIER_EDITIONS,
    SETUPS,
    Setup,
    _pick_pictures,
    draw_parts,
    find_setup,
    make_learner,
    read_data,
)
from allotment.learners.torch_learner import TorchLearner

DATA = Path(os.environ.get("ALLOT_TEST_DATA", "nowhere"))
MOBILENET = DATA / "weights" / "mobilenetv1_1.0_imagenet_no_pw13_fp16.npz"
real = pytest.mark.skipif(not DATA.is_dir(), reason="ALLOT_TEST_DATA is not set")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images in VOC's layout: a square of a class on grey."""
    root = tmp_path_factory.mktemp("voc")
    for part in ("JPEGImages", "SegmentationClassAug", "ImageSets/Segmentation"):
        (root / part).mkdir(parents=True)
    rng = np.random.default_rng(0)
    names = [f"image{i}" for i in range(12)]
    for i, name in enumerate(names):
        height, width = int(rng.integers(40, 60)), int(rng.integers(40, 60))
        image = np.full((height, width, 3), 100, dtype=np.uint8)
        mask = np.zeros((height, width), dtype=np.uint8)
        image[10:30, 12:34] = (20 * (i % 3), 200, 250 - 60 * (i % 3))
        mask[10:30, 12:34] = 1 + i % 3
        Image.fromarray(image).save(root / f"JPEGImages/{name}.jpg", quality=95)
        Image.fromarray(mask, "P").save(root / f"SegmentationClassAug/{name}.png")
    for part, listed in (("train_aug", names[:9]), ("val", names[9:])):
        (root / f"ImageSets/Segmentation/{part}.txt").write_text("\n".join(listed))
    return root


def test_the_papers_set_ups_are_the_papers() -> None:
    voc, taskonomy = find_setup("voc-paper"), find_setup("taskonomy-paper")
    for setup, epochs in ((voc, 100), (taskonomy, 30)):
        recipe = setup.recipe
        assert (recipe.trunk_rate, recipe.head_rate, recipe.final_rate) == (0.001, 0.01, 0.0001)
        assert (recipe.optimiser, recipe.epochs, recipe.steps) == ("sgd", epochs, None)
        assert (setup.backbone, setup.frozen_stages, setup.narrow) == ("resnet50", 0, 0)


def test_the_papers_network_has_its_strides_and_dilations() -> None:
    """Output stride 8; strides 1, 2, 1, 1 and dilations 1, 1, 2, 4, the last of each layer."""
    backbone = BACKBONES["resnet50"]()
    layers = [backbone.layer1, backbone.layer2, backbone.layer3, backbone.layer4]
    assert [layer[0].conv2.stride[0] for layer in layers] == [1, 2, 1, 1]
    assert [layer[-1].conv2.dilation[0] for layer in layers] == [1, 1, 2, 4]
    with torch.no_grad():
        assert backbone.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 2048, 8, 8)


@pytest.mark.parametrize("name", SETUPS)
def test_a_set_up_has_as_many_editions_as_are_counted(name: str) -> None:
    """Settings are checked without torch, by a list of its own."""
    earlier = EARLIER_EDITIONS.get(name, ())
    assert len(earlier) == newest_edition(name) - FIRST
    assert find_setup(name) == find_setup(name, newest_edition(name)) == SETUPS[name]
    for number, setup in enumerate(earlier, start=FIRST):
        assert find_setup(name, number) == setup != SETUPS[name]
    with pytest.raises(InputError, match=f"no edition 9 of '{name}'"):
        find_setup(name, 9)


def test_set_ups_that_keep_first_layers_are_listed() -> None:
    """Settings are checked without torch, by a list of its own."""
    assert {*KEEPING_FIRST} == {name for name, setup in SETUPS.items() if setup.frozen_stages}
    frozen = {name for name, all_ in EARLIER_EDITIONS.items() if any(s.frozen_stages for s in all_)}
    assert {*KEEPING_FIRST} >= frozen


def test_first_editions_stay_as_they_were() -> None:
    """Whatever was begun with them goes on with them: none of this may ever change."""
    voc, taskonomy = find_setup("voc-small", 1), find_setup("taskonomy-small", 1)
    for setup, steps, stages, narrow in ((voc, 600, 0, 256), (taskonomy, 300, 3, 128)):
        assert (setup.side, setup.backbone, setup.width) == (128, "mobilenet", 64)
        assert (setup.stages, setup.frozen_stages) == (stages, stages or 6)
        assert (setup.narrow, setup.rates, setup.dropout) == (narrow, (2, 4, 6), 0.1)
        assert (setup.reduced, setup.every, setup.validation) == (0, 1, 0.15)
        wanted = Recipe(
            steps=steps, batch_size=8, optimiser="adam", trunk_rate=0.003, head_rate=0.003
        )
        assert setup.recipe == wanted


def test_the_second_edition_for_voc_stays_as_it_was() -> None:
    setup = find_setup("voc-small", 2)
    assert (setup.frozen_stages, setup.reduced, setup.narrow, setup.width) == (6, 256, 64, 32)
    assert (setup.rates, setup.dropout, setup.every) == ((2, 4), 0.1, 4)
    wanted = Recipe(steps=400, batch_size=8, optimiser="adam", trunk_rate=0.007, head_rate=0.007)
    assert setup.recipe == wanted


def test_the_second_edition_for_taskonomy_stays_as_it_was() -> None:
    setup = find_setup("taskonomy-small", 2)
    assert (setup.stages, setup.frozen_stages, setup.narrow, setup.width) == (3, 3, 48, 24)
    assert (setup.rates, setup.dropout, setup.every) == ((2, 4), 0.1, 4)
    wanted = Recipe(steps=280, batch_size=4, optimiser="adam", trunk_rate=0.01, head_rate=0.01)
    assert setup.recipe == wanted


@pytest.mark.parametrize("name", ["voc-small", "taskonomy-small"])
def test_small_set_ups_share_a_layer_that_is_trained(name: str, folder: Path) -> None:
    """Tasks can only help each other through weights that they share: a step on either changes the
    same ones."""
    setup = replace(SETUPS[name], side=48, data="voc")
    network = BACKBONES["mobilenet"]()
    for module in network.modules():
        mark_trained(module)
    learner = make_learner(setup, folder, backbone=network)
    labels = draw(learner.data, learner.split.train, {"classes": 3, "segmentation": 3}, 0)
    state = learner.start(labels, 0)
    for task in learner.tasks:
        before = [layer.weight.clone() for layer in shared_layers(state.network)]
        state = learner.step(state, [task])
        after = [layer.weight for layer in shared_layers(state.network)]
        assert before
        assert not any(map(torch.equal, before, after))


def shared_layers(network: DeepLab) -> list[torch.nn.Conv2d]:
    """Those that are there once for all tasks."""
    return [layer for layer in network.backbone.modules() if isinstance(layer, torch.nn.Conv2d)]


def test_fewer_channels_are_those_mixtures_that_differ_most() -> None:
    rng = torch.Generator().manual_seed(3)
    turned, _ = torch.linalg.qr(torch.randn(6, 6, generator=rng))
    few = torch.randn(200, 2, 4, 4, generator=rng) * 5
    rest = torch.randn(200, 4, 4, 4, generator=rng) * 0.1
    maps = torch.einsum("ij,njyx->niyx", turned, torch.cat([few, rest], dim=1)) + 7
    layer = reduce_channels(maps, 2)
    assert not any(weight.requires_grad for weight in layer.parameters())
    found = layer(maps)
    assert found.mean(dim=(0, 2, 3)).abs().max() < 1e-3
    assert float(found.var()) == pytest.approx(float(few.var()), rel=0.05)
    with pytest.raises(InputError, match="from 1 to 6"):
        reduce_channels(maps, 7)


def test_pictures_for_training_alone_decide_which_channels_are_kept(folder: Path) -> None:
    """Whatever a learner is scored on: measuring and retraining see the same features."""
    setup = replace(SETUPS["voc-small"], side=48)
    data = read_data(setup, folder)
    parts = draw_parts(setup, data, 0)
    wanted = torch.from_numpy(data.inputs(np.sort(parts.train))) / 255
    assert torch.equal(_pick_pictures(data, parts), wanted)
    swapped = replace(parts, validation=parts.test, test=parts.test[:0])
    assert torch.equal(_pick_pictures(data, swapped), wanted)


def test_buildings_to_test_on_are_not_trained_on(tmp_path: Path) -> None:
    setup = replace(SETUPS["taskonomy-paper"], side=16)
    data = read_data(setup, make_taskonomy(tmp_path / "several", by_building))
    parts = draw_parts(setup, data, 0)
    trained, tested = (
        {data.ids[at].partition("/")[0] for at in part} for part in (parts.train, parts.test)
    )
    assert sorted([*trained, *tested]) == ["Allen", "Baker"]
    # of one building points are apart, as they were
    single = read_data(setup, make_taskonomy(tmp_path / "single", flat))
    given = DataSettings({"side": 16}, tmp_path / "single")
    assert np.array_equal(single.groups, SOURCES.load("taskonomy").open(given).groups)
    assert len(np.unique(single.groups)) == 3


def tiny(setup: str, **recipe: object) -> Setup:
    """A set-up cut down so that a test can run it."""
    found = SETUPS[setup]
    return replace(
        found, side=48, backbone="resnet18", width=16, recipe=replace(found.recipe, **recipe)
    )


def test_crops_of_any_size_train_the_papers_recipe(folder: Path) -> None:
    learner = make_learner(tiny("voc-paper", steps=3, batch_size=2, crop=33), folder)
    assert learner.tasks == ("classes", "segmentation")
    assert len(learner.split.test) == 3
    labels = draw(learner.data, learner.split.train, {"classes": 3, "segmentation": 3}, 0)
    state = train(learner, labels, 0)
    again = train(learner, labels, 0)
    for a, b in zip(
        state.network.state_dict().values(), again.network.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    assert learner.predict(state, "segmentation", learner.split.test).shape == (3, 21, 48, 48)
    assert learner.predict(state, "classes", learner.split.test).shape == (3, len(VOC_CLASSES))
    rates = [group["lr"] for group in state.optimiser.param_groups]
    assert rates[1] > rates[0] > 0.0001


def test_a_backbone_of_your_own(folder: Path) -> None:
    mine = Stages(
        [torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU()],
        channels=8,
    )
    setup = tiny("voc-paper", steps=2, batch_size=2, crop=33)
    learner = make_learner(setup, folder, backbone=mine)
    train(learner, draw(learner.data, learner.split.train, {"classes": 3, "segmentation": 3}, 0), 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: make_learner("voc-smal", folder), "did you mean 'voc-small'"),
        (lambda folder: make_learner("voc-small", folder), "give a file of trained weights"),
        (lambda folder: make_learner("voc-paper", folder / "nowhere"), "is not a folder"),
        (lambda folder: make_learner("voc-paper", folder, folder / "w.pth"), "no such file"),
        (lambda folder: make_learner("voc-paper", folder, folder / "w.txt"), "unknown kind"),
        (
            lambda folder: make_learner(replace(SETUPS["voc-paper"], backbone="vgg"), folder),
            "unknown 'vgg'",
        ),
        (
            lambda folder: make_learner(replace(SETUPS["voc-paper"], reduced=8), folder),
            "whose stages are all frozen",
        ),
    ],
)
def test_bad_input_is_named(make: object, words: str, folder: Path) -> None:
    with pytest.raises(InputError, match=words):
        make(folder)  # type: ignore[operator]


@real
@pytest.mark.long
def test_voc_paper_runs_on_a_cpu() -> None:
    setup = SETUPS["voc-paper"]
    setup = replace(setup, recipe=replace(setup.recipe, steps=20, crop=65, batch_size=2))
    learner = make_learner(setup, DATA / "VOC2012")
    labels = draw(learner.data, learner.split.train, {"classes": 30, "segmentation": 30}, 0)
    state = learner.start(labels, 0)
    assert sum(weight.numel() for weight in state.network.backbone.parameters()) > 23e6
    for _ in range(learner.steps(labels)):
        state = learner.step(state, learner.tasks)
    assert state.done == 20
    assert all(torch.isfinite(weight).all() for weight in state.network.parameters())


def mean_scores(learner: TorchLearner, count: int, draws: int) -> np.ndarray:
    found = []
    for seed in range(draws):
        labels = draw(learner.data, learner.split.train, dict.fromkeys(learner.tasks, count), seed)
        state = train(learner, labels, seed)
        found.append([learner.score(state, task).metric for task in learner.tasks])
    return np.mean(found, axis=0)


@real
@pytest.mark.long
def test_trained_weights_see_more_than_the_commonest_answer() -> None:
    """A short training of voc-small on real images beats what can be said without looking."""
    setup = SETUPS["voc-small"]
    setup = replace(setup, recipe=replace(setup.recipe, steps=120))
    learner = make_learner(setup, DATA / "VOC2012", MOBILENET)
    few = learner.split.validation[:150]
    learner.split = replace(learner.split, validation=few)
    jaccard, miou = mean_scores(learner, 200, draws=1)
    classes = learner.data.values("classes", few)
    commonest = np.mean(classes[:, classes.sum(axis=0).argmax()] / classes.sum(axis=1))
    assert jaccard > commonest + 0.05
    assert miou > 2 / 21
