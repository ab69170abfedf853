"""SqueezeNet 1.0: small and without batch norm, for CPUs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from allotment.errors import InputError, Mistake
from allotment.learners.backbones import Pixels, mark_untrained
from allotment.learners.layers import PointConv

BGR_MEAN = (104 / 255, 117 / 255, 123 / 255)
FIRE_CHANNELS = {
    2: (16, 64),
    3: (16, 64),
    4: (32, 128),
    5: (32, 128),
    6: (48, 192),
    7: (48, 192),
    8: (64, 256),
    9: (64, 256),
}
"""of each fire module, channels of its narrow part and of each of its two wide ones"""


class Fire(nn.Module):
    """A narrow 1 x 1 convolution, then 1 x 1 and 3 x 3 ones side by side."""

    def __init__(self, inputs: int, narrow: int, wide: int, dilation: int = 1):
        super().__init__()
        self.squeeze = PointConv(inputs, narrow)
        self.expand1x1 = PointConv(narrow, wide)
        self.expand3x3 = nn.Conv2d(narrow, wide, 3, padding=dilation, dilation=dilation)

    def forward(self, batch: Tensor) -> Tensor:
        batch = functional.relu(self.squeeze(batch))
        return functional.relu(torch.cat([self.expand1x1(batch), self.expand3x3(batch)], dim=1))


class DensePool(nn.Module):
    """The maximum of 3 x 3 at every place, where a pool of stride 2 (rounded up) takes every
    second."""

    def forward(self, batch: Tensor) -> Tensor:
        height, width = batch.shape[-2:]
        # One more row or column where the strided pool's last window hangs over the edge.
        padded = functional.pad(batch, (0, (width + 1) % 2, 0, (height + 1) % 2), value=-torch.inf)
        return functional.max_pool2d(padded, 3, 1)


class SqueezeNet(nn.Module):
    """A backbone that ends after fire9, at 1/16 of the image's size or 1/8 of it.

    Its weights were trained on pixels from 0 to 255, blue first, less 104, 117, 123.
    """

    no_use_for = ("conv10.",)
    channels = 512

    def __init__(self, output_stride: int = 16):
        super().__init__()
        if output_stride not in (8, 16):
            raise InputError(
                [Mistake("squeezenet: output_stride", f"{output_stride} is neither 8 nor 16")]
            )
        self.pixels = Pixels(BGR_MEAN, [1 / 255] * 3, bgr=True)
        self.conv1 = nn.Conv2d(3, 96, 7, 2)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.last_pool = DensePool() if output_stride == 8 else self.pool
        inputs = 96
        for number, (narrow, wide) in FIRE_CHANNELS.items():
            dilation = 2 if number == 9 and output_stride == 8 else 1
            self.add_module(f"fire{number}", Fire(inputs, narrow, wide, dilation))
            inputs = 2 * wide
        mark_untrained(self)

    @property
    def stages(self) -> list[nn.Module]:
        fire = {number: self.get_submodule(f"fire{number}") for number in FIRE_CHANNELS}
        return [
            nn.Sequential(self.pixels, self.conv1, self.relu, self.pool),
            nn.Sequential(fire[2], fire[3], fire[4], self.pool),
            nn.Sequential(fire[5], fire[6]),
            nn.Sequential(fire[7], fire[8], self.last_pool),
            fire[9],
        ]

    def forward(self, batch: Tensor) -> Tensor:
        for stage in self.stages:
            batch = stage(batch)
        return batch
