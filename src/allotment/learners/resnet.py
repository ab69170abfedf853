"""ResNet with torchvision's names, so that its weights load as they are, and with dilation instead
of strides."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from allotment.errors import InputError, Mistake
from allotment.learners.backbones import IMAGENET_MEAN, IMAGENET_SPREAD, Pixels, mark_untrained
from allotment.learners.layers import SafeNorm

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""of each depth, how many blocks each of the four layers has"""
OUTPUT_STRIDES = (8, 16, 32)


def _conv(inputs: int, outputs: int, side: int, stride: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, side, stride, dilation * (side // 2), dilation, bias=False)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, of ResNet-18 and 34. `before` is the dilation of what comes before
    the block."""

    widening = 1

    def __init__(
        self,
        inputs: int,
        width: int,
        stride: int,
        before: int,
        dilation: int,
        around: nn.Module | None,
    ):
        super().__init__()
        self.conv1 = _conv(inputs, width, 3, stride, before)
        self.bn1 = SafeNorm(width)
        self.conv2 = _conv(width, width, 3, 1, dilation)
        self.bn2 = SafeNorm(width)
        self.downsample = around

    def forward(self, batch: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(batch)))
        out = self.bn2(self.conv2(out))
        return functional.relu(out + (batch if self.downsample is None else self.downsample(batch)))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, of ResNet-50 and 101. Its one wide step takes the
    dilation `before`."""

    widening = 4

    def __init__(
        self,
        inputs: int,
        width: int,
        stride: int,
        before: int,
        dilation: int,
        around: nn.Module | None,
    ):
        super().__init__()
        self.conv1 = _conv(inputs, width, 1)
        self.bn1 = SafeNorm(width)
        self.conv2 = _conv(width, width, 3, stride, before)
        self.bn2 = SafeNorm(width)
        self.conv3 = _conv(width, width * self.widening, 1)
        self.bn3 = SafeNorm(width * self.widening)
        self.downsample = around

    def forward(self, batch: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(batch)))
        out = functional.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return functional.relu(out + (batch if self.downsample is None else self.downsample(batch)))


class ResNet(nn.Module):
    """A backbone of depth 18, 34, 50 or 101 that ends at 1/8 (the paper's), 1/16 or 1/32 of the
    image's size.

    Where a stride is given up, later convolutions reach further apart instead, so that each still
    sees what its weights were trained on: at 1/8 the four layers have strides 1, 2, 1, 1 and
    dilations 1, 1, 2, 4.
    """

    no_use_for = ("fc.", "classifier.", "aux_classifier.")
    """what weights files may hold besides"""

    channels_last = False
    """on a CPU its many 3 x 3 convolutions are faster the other way round"""

    def __init__(self, depth: int = 50, output_stride: int = 8):
        super().__init__()
        mistakes = []
        if depth not in BLOCKS:
            mistakes.append(Mistake("depth", f"{depth} is none of {', '.join(map(str, BLOCKS))}"))
        if output_stride not in OUTPUT_STRIDES:
            mistakes.append(Mistake("output_stride", f"{output_stride} is none of 8, 16, 32"))
        if mistakes:
            raise InputError([mistake.under("resnet") for mistake in mistakes])
        self.pixels = Pixels(IMAGENET_MEAN, IMAGENET_SPREAD)
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = SafeNorm(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        block = BasicBlock if depth < 50 else Bottleneck
        channels, reached, dilation = 64, 4, 1
        layers = []
        for place, count in enumerate(BLOCKS[depth]):
            before, stride = dilation, 1 if place == 0 else 2
            if stride == 2 and reached == output_stride:
                stride, dilation = 1, dilation * 2
            reached *= stride
            layers.append(_layer(block, channels, 64 * 2**place, count, stride, before, dilation))
            channels = 64 * 2**place * block.widening
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.channels = channels
        mark_untrained(self)

    @property
    def stages(self) -> list[nn.Module]:
        stem = nn.Sequential(self.pixels, self.conv1, self.bn1, self.relu, self.maxpool)
        return [stem, self.layer1, self.layer2, self.layer3, self.layer4]

    def forward(self, batch: Tensor) -> Tensor:
        for stage in self.stages:
            batch = stage(batch)
        return batch


def _layer(
    block: type[BasicBlock] | type[Bottleneck],
    inputs: int,
    width: int,
    count: int,
    stride: int,
    before: int,
    dilation: int,
) -> nn.Sequential:
    """Blocks of one size; the first changes it, and still stands on a grid with the dilation
    before."""
    outputs = width * block.widening
    around = None
    if stride != 1 or inputs != outputs:
        around = nn.Sequential(_conv(inputs, outputs, 1, stride), SafeNorm(outputs))
    first = block(inputs, width, stride, before, dilation, around)
    others = (block(outputs, width, 1, dilation, dilation, None) for _ in range(count - 1))
    return nn.Sequential(first, *others)
