"""Everything that trains, in small: run as a script, it prints what came of each kind as JSON.

`python tests/helpers/trainings.py [KIND ...]`. What it is run with (instruction sets, threads) is
the environment's business; tests/machine/test_machine.py compares.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import allotment as al
from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, draw, split
from allotment.data.scenes import make_scenes
from allotment.learners.deeplab import DeepLab
from allotment.learners.learner import measure, train
from allotment.learners.mobilenet import MobileNet
from allotment.learners.networks import ImageNetwork
from allotment.learners.recipe import Recipe
from allotment.learners.resnet import ResNet
from allotment.learners.squeezenet import SqueezeNet
from allotment.learners.torch_learner import TorchLearner

STEPS = 3

Found: TypeAlias = tuple[list[float], list[float]]
"""what agrees closely on all kinds of CPU, and what only has to be the same bytes on the same
kind"""


def table() -> tuple[TorchLearner, Labels]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 10)).astype(np.float32)
    size = (x @ rng.normal(size=10)).astype(np.float32)
    look = (size + 0.5 * rng.normal(size=240) > 0).astype(np.int64)
    targets = (
        Target("size", "regression"),
        Target("look", "classification", ("old", "new"), metric="roc_auc"),
    )
    data = ArrayData("rows", targets, x, {"size": size, "look": look})
    parts = split(data, 0, 0.25, 0.0)
    labels = draw(data, parts.train, {"size": 60, "look": 60}, 0)
    return TorchLearner(data, parts, Recipe(steps=40)), labels


def estimate(method: str) -> Found:
    learner, labels = table()
    found = al.estimate(learner, labels, method=method, trainings=16)
    return [*found.worths.mean(axis=0).ravel(), *found.shapes.mean(axis=0)], []


def scenes(
    make: Callable[..., nn.Module] | None = None, side: int = 24, deep: bool = False
) -> Found:
    """The losses of all six tasks before and after a few steps."""
    data = make_scenes(48, side, 0)
    parts = Split(np.arange(36), np.arange(36, 48), np.arange(0))
    # not adam: its first steps follow the sign of gradients, also of those that are nothing but
    # rounding
    recipe = Recipe(steps=STEPS, batch_size=4, optimiser="sgd", trunk_rate=0.003, head_rate=0.003)
    learner = TorchLearner(data, parts, recipe, make)
    labels = draw(data, parts.train, dict.fromkeys(learner.tasks, 12), 0)
    before, after = (
        [each.loss for each in measure(learner, state).values()]
        for state in (learner.start(labels, 0), train(learner, labels, 0))
    )
    # a deep network without trained weights, on batches this small, makes of rounding what it likes
    return (before, after) if deep else (before + after, [])


def deeplab(backbone: Callable[[], Any]) -> Callable[..., nn.Module]:
    def make(shape: tuple[int, ...], targets: Sequence[Target], runs: int) -> nn.Module:
        return DeepLab(backbone(), targets, width=16, rates=(1, 2), dropout=0.1)

    return make


class Risky(nn.Module):
    """A user's trunk with strided 1 x 1 convolutions of three channels, as a layer and as a
    function."""

    channels = pooled_channels = 24
    has_random_layers = False

    def __init__(self) -> None:
        super().__init__()
        self.around = nn.Conv2d(3, 24, 1, 2, bias=False)
        self.weight = nn.Parameter(torch.zeros(24, 3, 1, 1))
        self.main = nn.Conv2d(3, 24, 3, 2, 1)
        self.norm = nn.BatchNorm2d(24)

    def forward(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        beside = functional.conv2d(batch, self.weight, stride=2)
        out = functional.relu(self.norm(self.main(batch) + self.around(batch) + beside))
        return out, out


def risky(shape: tuple[int, ...], targets: Sequence[Target], runs: int) -> nn.Module:
    return ImageNetwork(Risky(), targets)


KINDS: dict[str, Callable[[], Found]] = {
    "response": lambda: estimate("response"),
    "slopes": lambda: estimate("slopes"),
    "taba": lambda: estimate("taba"),
    "taba-pooled": lambda: estimate("taba-pooled"),
    "scenes": scenes,
    "own backbone": lambda: scenes(risky),
    "resnet": lambda: scenes(deeplab(lambda: ResNet(18)), 32, deep=True),
    "mobilenet": lambda: scenes(deeplab(lambda: MobileNet(output_stride=8)), 32, deep=True),
    "squeezenet": lambda: scenes(deeplab(lambda: SqueezeNet(output_stride=8)), 32, deep=True),
}


def main(names: Sequence[str]) -> None:
    if count := os.environ.get("TRAINING_THREADS"):
        torch.set_num_threads(int(count))
    found = {name: KINDS[name]() for name in names or KINDS}
    assert all(np.isfinite(before + after).all() for before, after in found.values())
    digests = {
        name: hashlib.sha256(np.array([*each[0], *each[1]]).tobytes()).hexdigest()
        for name, each in found.items()
    }
    values = {name: [float(value) for value in each[0]] for name, each in found.items()}
    print(json.dumps({"values": values, "digests": digests, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main(sys.argv[1:])
