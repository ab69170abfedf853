"""A folder in VOC's layout with squares of three classes on grey, and a set-up that trains on it in
a moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from allotment.learners.backbones import Stages
from allotment.learners.recipe import Recipe
from allotment.learners.setups import Setup


def write_voc(root: Path, train: int, test: int) -> Path:
    """So many images of each list."""
    for part in ("JPEGImages", "SegmentationClassAug", "ImageSets/Segmentation"):
        (root / part).mkdir(parents=True)
    rng = np.random.default_rng(0)
    names = [f"image{number}" for number in range(train + test)]
    for number, name in enumerate(names):
        image = rng.integers(80, 120, (24, 24, 3)).astype(np.uint8)
        mask = np.zeros((24, 24), dtype=np.uint8)
        top, left = rng.integers(0, 10, 2)
        image[top : top + 12, left : left + 12] = (20 * (number % 3), 200, 250 - 60 * (number % 3))
        mask[top : top + 12, left : left + 12] = 1 + number % 3
        Image.fromarray(image).save(root / f"JPEGImages/{name}.jpg", quality=95)
        Image.fromarray(mask).save(root / f"SegmentationClassAug/{name}.png")
    for part, listed in (("train_aug", names[:train]), ("val", names[train:])):
        (root / f"ImageSets/Segmentation/{part}.txt").write_text("\n".join(listed))
    return root


def make_tiny_backbone() -> Stages:
    layers = [torch.nn.Conv2d(3, 8, 5, stride=4, padding=2), torch.nn.ReLU()]
    return Stages(layers, channels=8)


TINY = Setup(
    "voc",
    24,
    "tiny",
    Recipe(steps=12, batch_size=4, optimiser="adam", trunk_rate=0.01, head_rate=0.01, device="cpu"),
    width=8,
    rates=(1,),
    dropout=0.0,
    validation=0.2,
)
