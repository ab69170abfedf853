"""How far our networks' answers are from torchvision's with the same weights; run where torchvision
is installed.

Prints one JSON object: of each network the largest difference and the largest answer.
`tests/learners/test_backbones.py` makes the environment and judges the numbers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from allotment.data.dataset import Target
from allotment.learners.backbones import IMAGENET_MEAN, IMAGENET_SPREAD
from allotment.learners.deeplab import DeepLab, DeepLabHead
from allotment.learners.resnet import ResNet
from allotment.learners.weights import load_weights

# torchvision's compiled part does not go with every build of torch; none is used here
for operator in ("nms", "qnms"):
    torch.library.define(
        f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    )

import torchvision  # noqa: E402 (only once its operators are there)

SIDES = (65, 96)
CLASSES = tuple(map(str, range(21)))


def shake(network: nn.Module) -> nn.Module:
    """Weights, biases and statistics of batch norms away from 1, 0, 0 and 1, so that each of them
    matters."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.2, 0.2)
    network.train()
    with torch.no_grad():
        for _ in range(30):  # statistics that keep the answers of this network near 1
            network(torch.randn(2, 3, 65, 65))
    return network.eval()


def normalise(images: Tensor) -> Tensor:
    mean, spread = (torch.tensor(each).view(3, 1, 1) for each in (IMAGENET_MEAN, IMAGENET_SPREAD))
    return (images - mean) / spread


def features_of(network: nn.Module, batch: Tensor) -> Tensor:
    for name in ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4"):
        batch = network.get_submodule(name)(batch)
    return batch


def compare(ours: list[Tensor], theirs: list[Tensor]) -> dict[str, float]:
    pairs = list(zip(ours, theirs, strict=True))
    assert all(one.shape == other.shape for one, other in pairs), [
        (a.shape, b.shape) for a, b in pairs
    ]
    difference = max(float((one - other).abs().max()) for one, other in pairs)
    return {
        "difference": difference,
        "largest": max(float(other.abs().max()) for _, other in pairs),
    }


def compare_resnet(
    depth: int, dilated: bool, images: list[Tensor], folder: Path
) -> dict[str, float]:
    options = {"replace_stride_with_dilation": [False, True, True]} if dilated else {}
    theirs = shake(getattr(torchvision.models, f"resnet{depth}")(**options))
    ours = ResNet(depth, 8 if dilated else 32).eval()
    path = folder / "resnet.safetensors"
    save_file(theirs.state_dict(), path)
    load_weights(ours, path)
    return compare(
        [ours(each) for each in images], [features_of(theirs, normalise(each)) for each in images]
    )


def compare_deeplab(images: list[Tensor], folder: Path) -> dict[str, float]:
    """Our multi-task network as a whole, from a checkpoint with all that torchvision's COCO files
    hold."""
    make = torchvision.models.segmentation.deeplabv3_resnet50
    theirs = shake(
        make(weights=None, weights_backbone=None, num_classes=len(CLASSES), aux_loss=True)
    )
    path = folder / "deeplab.pth"
    torch.save(theirs.state_dict(), path)
    backbone, head = ResNet(50), DeepLabHead(2048, len(CLASSES))
    for module in (backbone, head):
        load_weights(module, path)
    targets = [Target("tags", "multilabel", CLASSES), Target("seg", "segmentation", CLASSES)]
    ours = DeepLab(backbone, targets, heads={"seg": head}).eval()
    ours.reset([torch.Generator().manual_seed(0)])
    return compare(
        [ours(each, "seg") for each in images], [theirs(normalise(each))["out"] for each in images]
    )


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = [torch.rand(2, 3, side, side + 8) for side in SIDES]
    found = {"versions": f"torch {torch.__version__}, torchvision {torchvision.__version__}"}
    with torch.no_grad(), tempfile.TemporaryDirectory() as name:
        for depth in (18, 34, 50, 101):
            found[f"resnet{depth}"] = compare_resnet(depth, False, images, Path(name))
        for depth in (50, 101):  # torchvision has no dilation in 18 and 34
            found[f"resnet{depth} at 1/8"] = compare_resnet(depth, True, images, Path(name))
        found["deeplabv3_resnet50"] = compare_deeplab(images, Path(name))
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
