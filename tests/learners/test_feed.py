"""Data on its way into training: decoded once, cropped at random but repeatably, labels in step
with their images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from allotment.data.augment import Augment
from allotment.data.dataset import ArrayData, BaseData, Target
from allotment.data.labels import Labels, draw, split
from allotment.errors import InputError
from allotment.learners.conformance import LearnerTests
from allotment.learners.feed import Cropped, Decoded, TensorStore, Wanted
from allotment.learners.learner import train
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner


def make_images(count: int = 40, size: int = 24) -> ArrayData:
    """Bright columns of a random place; the mask is where they are, the class how bright."""
    rng = np.random.default_rng(3)
    images = rng.integers(0, 40, size=(count, 3, size, size)).astype(np.uint8)
    masks = np.zeros((count, size, size), dtype=np.uint8)
    kinds = rng.integers(0, 2, size=count)
    for i in range(count):
        at = rng.integers(0, size - 8)
        images[i, :, :, at : at + 8] = 120 + 100 * kinds[i]
        masks[i, :, at : at + 8] = 1
    targets = (
        Target("kind", "classification", ("dim", "bright")),
        Target("mask", "segmentation", ("ground", "column")),
        Target("height", "depth"),
    )
    labels = {"kind": kinds, "mask": masks, "height": masks.astype(np.float32) * 2 + 1}
    return ArrayData("columns", targets, images, labels)


class Folder(BaseData):
    """The same images, opened one by one."""

    def __init__(self, data: ArrayData):
        self.data, self.opened = data, []
        self.name, self.targets, self.size = data.name, data.targets, data.size
        self.groups, self.fingerprint, self.known = None, data.fingerprint, data.known

    def inputs(self, instances):
        self.opened += instances.tolist()
        return self.data.inputs(instances)

    def values(self, task, instances):
        return self.data.values(task, instances)

    def image(self, instance):
        return self.data.features[instance]

    def label(self, task, instance):
        return self.data.labels[task][instance]


class TestCrops(LearnerTests):
    steps = 3

    def make(self) -> tuple[TorchLearner, Labels]:
        data = make_images()
        learner = TorchLearner(
            data, split(data, 0, 0.3, 0.1), Recipe(steps=6, batch_size=4, crop=16, workers=1)
        )
        return learner, draw(data, learner.split.train, {"kind": 12, "mask": 14, "height": 13}, 0)


def wanted(task: str, *instances: int, number: int = 0) -> Wanted:
    return Wanted(task, np.array([instances]), None, (0, task, number, 0))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_crop_and_its_mask_stay_together(workers: int) -> None:
    feed = Cropped(
        Folder(make_images()), torch.device("cpu"), Augment(16, scales=(0.8, 1.5)), workers
    )
    ask = [wanted("mask", *range(20))]
    feed.expect(ask)
    images, (masks,) = feed.load(ask)
    assert images.shape == (1, 20, 3, 16, 16)
    assert masks.shape == (1, 20, 16, 16)
    bright = images[0].mean(dim=1) > 0.35
    counted = masks[0] != 255
    agree = (bright == (masks[0] == 1))[counted].float().mean()
    assert agree > 0.93  # all but the pixels on a border, which a zoom blends


def test_crops_do_not_depend_on_who_made_them() -> None:
    threads = Cropped(make_images(), torch.device("cpu"), Augment(16), 2)
    alone = Cropped(make_images(), torch.device("cpu"), Augment(16), 0)
    ask = [wanted("mask", 3, 1, 2), wanted("kind", 5, 6, 7)]
    threads.expect(ask)
    threads.expect([wanted("kind", 1, 2, 3, number=1)])  # another arm: what was coming is dropped
    for a, b in zip(threads.load(ask), alone.load(ask), strict=True):
        for left, right in zip(a, b, strict=True):
            assert torch.equal(left, right)


def test_nothing_has_the_form_of_something() -> None:
    """A fold may have no label of a task, whose masks are whole numbers all the same."""
    feed = Decoded(Folder(make_images()), torch.device("cpu"))
    nobody = np.zeros(0, dtype=np.int64)
    assert feed.values("mask", nobody).dtype == torch.int64
    assert feed.values("mask", nobody).shape == (0, 24, 24)
    assert feed.inputs(nobody).shape == (0, 3, 24, 24)


def test_there_is_memory_for_what_was_wanted_alone() -> None:
    made: list[int] = []

    def make(instances: np.ndarray) -> torch.Tensor:
        made.extend(instances.tolist())
        return torch.from_numpy(instances)[:, None] * 10

    store = TensorStore(1000, make, at_once=False)
    for wanted in ([7, 3, 7], [999], [3, 500, 7], [0]):
        found = store.take(np.array(wanted))
        assert found[:, 0].tolist() == [10 * each for each in wanted]
    assert sorted(made) == [0, 3, 7, 500, 999]
    assert len(store._held) < 10


@pytest.mark.parametrize("room", [0, 8, 40, 10_000])
def test_what_has_no_room_is_made_whenever_it_is_wanted(room: int) -> None:
    made: list[int] = []

    def make(instances: np.ndarray) -> torch.Tensor:
        made.extend(instances.tolist())
        return torch.from_numpy(instances)[:, None] * 10

    store = TensorStore(1000, make, at_once=False, room=room)
    for wanted in ([[7, 3], [7, 9]], [[3, 500], [999, 3]], [[7, 3], [9, 999]]):
        found = store.take(np.array(wanted))
        assert found.shape == (2, 2, 1)
        assert found[..., 0].tolist() == [[10 * each for each in row] for row in wanted]
    held = max(1, min(5, room // 8))
    assert store._count == held
    assert len(store._held) <= max(1, room // 8)
    if held == 5:
        assert sorted(made) == [3, 7, 9, 500, 999]
    assert store.take(np.zeros(0, dtype=np.int64)).shape == (0, 1)


def test_another_step_has_another_crop() -> None:
    feed = Cropped(make_images(), torch.device("cpu"), Augment(16), 0)
    first, later = (feed.load([wanted("mask", 3, number=number)])[0] for number in (0, 1))
    assert not torch.equal(first, later)


def test_every_image_is_decoded_once() -> None:
    folder = Folder(make_images())
    feed = Decoded(folder, torch.device("cpu"))
    first = feed.inputs(np.array([3, 4, 3]))
    again = feed.inputs(np.array([4, 5]))
    assert torch.equal(first[1], again[0])
    assert torch.equal(first[0], torch.from_numpy(folder.data.features[3]) / 255)
    assert sorted(folder.opened) == [3, 4, 5]


def test_a_store_keeps_the_shape_that_it_is_asked_in() -> None:
    store = TensorStore(
        10,
        lambda instances: torch.from_numpy(instances).float()[:, None] * torch.ones(2),
        at_once=False,
    )
    assert store.shape == (2,)
    assert store.take(np.array([[7, 1], [2, 7]]))[..., 0].tolist() == [[7, 1], [2, 7]]


def test_maps_keep_the_layout_in_which_they_were_made() -> None:
    made = torch.rand(10, 3, 4, 5)
    for layout in (torch.channels_last, torch.contiguous_format):
        store = TensorStore(
            10,
            lambda instances, to=layout: made[instances].contiguous(memory_format=to),
            at_once=False,
        )
        found = store.take(np.array([[7, 1], [2, 7]]))
        assert torch.equal(found, made[torch.tensor([[7, 1], [2, 7]])])
        assert found[0].is_contiguous(memory_format=layout)


def test_a_mini_batch_in_parts_gives_the_same_step_without_batch_norm() -> None:
    data = make_images()

    class Plain(torch.nn.Module):
        def __init__(self, shape, targets, runs):
            super().__init__()
            self.trunk = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.heads = torch.nn.ModuleDict({"mask": torch.nn.Conv2d(8, 2, 1)})

        def reset(self, generators):
            for weight in self.parameters():
                torch.nn.init.uniform_(weight, -0.2, 0.2, generator=generators[0])

        def forward(self, batch, task):
            return self.heads[task](torch.relu(self.trunk(batch)))

    small = replace(data, targets=(data.targets[1],))
    ends = []
    for parts in (1, 4):
        recipe = Recipe(steps=3, batch_size=8, accumulate=parts)
        learner = TorchLearner(small, split(small, 0), recipe, network=Plain)
        ends.append(
            train(
                learner, draw(small, learner.split.train, {"mask": 10}, 0), 0
            ).network.state_dict()
        )
    for one, four in zip(ends[0].values(), ends[1].values(), strict=True):
        torch.testing.assert_close(one, four, rtol=1e-4, atol=1e-6)


def test_too_little_memory_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_images()
    learner = TorchLearner(data, split(data, 0), Recipe(steps=1, batch_size=8, crop=16))
    state = learner.start(draw(data, learner.split.train, {"mask": 8}, 0), 0)

    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(state.network, "forward", fail)
    with pytest.raises(InputError, match="try accumulate=2, batch_size=4, a smaller crop") as told:
        learner.step(state, ["mask"])
    assert "recipe" in str(told.value)


def test_frozen_layers_and_crops_exclude_each_other() -> None:
    data = make_images()
    with pytest.raises(InputError, match="can't be cached"):
        TorchLearner(data, split(data, 0), Recipe(crop=16), frozen=torch.nn.Identity())
