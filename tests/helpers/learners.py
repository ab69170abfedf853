"""Small data sets and learners that the tests of several things train."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import split
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner


def make_table(count: int = 400) -> ArrayData:
    """Three related tasks on 20 features: two classes, several classes at once, and a number."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(count, 20)).astype(np.float32)
    hidden = np.tanh(inputs @ rng.normal(size=(20, 4)))
    yes = (hidden[:, 0] + 0.3 * hidden[:, 1] > 0).astype(np.int64)
    many = (hidden > 0.2).astype(np.float32)
    number = (10 + 5 * hidden[:, 0] - 2 * hidden[:, 2]).astype(np.float32)
    targets = (
        Target("yes", "classification", ("no", "yes"), metric="roc_auc"),
        Target("many", "multilabel", ("a", "b", "c", "d")),
        Target("number", "regression", metric="r2"),
    )
    return ArrayData("table", targets, inputs, {"yes": yes, "many": many, "number": number})


def make_images(count: int = 48, size: int = 32, side: int = 14) -> ArrayData:
    """A bright square on a dark ground: its class by its colour, and every kind of label for each
    pixel."""
    rng = np.random.default_rng(6)
    images = rng.integers(0, 60, size=(count, 3, size, size)).astype(np.uint8)
    mask = np.zeros((count, size, size), dtype=np.int64)
    kind = rng.integers(0, 3, size=count)
    for i in range(count):
        y, x = rng.integers(1, size - side - 1, size=2)
        images[i, kind[i], y : y + side, x : x + side] += 180
        mask[i, y : y + side, x : x + side] = kind[i] + 1
    inside = mask > 0
    normals = np.where(
        inside[:, None], np.array([0, 0, 1.0])[:, None, None], np.array([0, 1.0, 0])[:, None, None]
    )
    depth = np.where(inside, 2.0, 5.0).astype(np.float32)
    depth[:, 0, 0] = np.nan
    border = (inside != np.roll(inside, 1, axis=1)) | (inside != np.roll(inside, 1, axis=2))
    targets = (
        Target("kind", "classification", ("r", "g", "b")),
        Target("there", "multilabel", ("r", "g", "b")),
        Target("area", "regression"),
        Target("mask", "segmentation", ("ground", "r", "g", "b")),
        Target("depth", "depth"),
        Target("normals", "normals"),
        Target("edges", "edges"),
        Target("points", "keypoints"),
    )
    labels = {
        "kind": kind,
        "there": np.eye(3, dtype=np.float32)[kind],
        "area": images.mean(axis=(1, 2, 3)).astype(np.float32),
        "mask": mask.astype(np.uint8),
        "depth": depth,
        "normals": normals.astype(np.float32),
        "edges": border.astype(np.float32),
        "points": border.astype(np.float32) * 0.9,
    }
    return ArrayData("squares", targets, images, labels)


def table_learner(**recipe: object) -> TorchLearner:
    data = make_table()
    return TorchLearner(
        data, split(data, 0, 0.25, 0.1), Recipe(**{"epochs": 20, "batch_size": 16} | recipe)
    )


class Forgetful(torch.nn.Module):
    """A user's network with a random layer."""

    def __init__(self, shape: tuple[int, ...], targets: Sequence[Target], runs: int):
        super().__init__()
        sizes = {target.name: max(len(target.classes), 1) for target in targets}
        self.trunk = torch.nn.Linear(shape[0], 32)
        self.dropout = torch.nn.Dropout(0.5)
        self.heads = torch.nn.ModuleDict(
            {name: torch.nn.Linear(32, size) for name, size in sizes.items()}
        )

    def reset(self, generators: Sequence[torch.Generator]) -> None:
        for weight in self.parameters():
            torch.nn.init.uniform_(weight, -0.1, 0.1, generator=generators[0])

    def forward(self, batch: torch.Tensor, task: str) -> torch.Tensor:
        return self.heads[task](self.dropout(torch.relu(self.trunk(batch))))
