"""MobileNet v1: depthwise and pointwise convolutions in turn, for CPUs."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from allotment.errors import InputError, Mistake
from allotment.learners.backbones import Pixels, mark_untrained
from allotment.learners.layers import PointConv, SafeNorm

BLOCK_CHANNELS = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024)
"""channels after each block; a stride of 2 where they double, but for the first"""
STRIDED = (2, 4, 6, 12)
STAGES = ((1,), (2, 3), (4, 5), (6, 7, 8), (9, 10, 11), (12,))
"""which blocks belong together; the first convolution goes with the first"""


class EdgePad(nn.Module):
    """Zeros around a map so that a strided 3 x 3 step halves it, rounded up; an even side gets them
    at its end only.

    That is where the weights were trained to have them.
    """

    def forward(self, batch: Tensor) -> Tensor:
        height, width = batch.shape[-2:]
        return functional.pad(batch, (width % 2, 1, height % 2, 1))


class MobileNet(nn.Module):
    """A backbone that ends after block 12, at 1/32, 1/16 or 1/8 of the image's size.

    The names are Keras's. Its weights were trained on pixels from -1 to 1, red first.
    """

    no_use_for = ("conv_dw_13", "conv_pw_13", "conv_preds")
    channels = BLOCK_CHANNELS[-1]

    def __init__(self, output_stride: int = 16):
        super().__init__()
        if output_stride not in (8, 16, 32):
            raise InputError(
                [Mistake("mobilenet: output_stride", f"{output_stride} is none of 8, 16, 32")]
            )
        self.pixels = Pixels([0.5] * 3, [0.5] * 3)
        self.pad, self.relu = EdgePad(), nn.ReLU6()
        self.conv1 = nn.Conv2d(3, 32, 3, 2, bias=False)
        self.conv1_bn = SafeNorm(32, eps=1e-3)
        self.strided = set()
        inputs, reached, dilation = 32, 2, 1
        for number, outputs in enumerate(BLOCK_CHANNELS, start=1):
            before = dilation
            if number in STRIDED and reached < output_stride:
                self.strided.add(number)
                reached *= 2
            elif number in STRIDED:
                dilation *= 2
            self._add_block(number, inputs, outputs, before)
            inputs = outputs
        mark_untrained(self)

    def _add_block(self, number: int, inputs: int, outputs: int, dilation: int) -> None:
        stride, padding = (2, 0) if number in self.strided else (1, dilation)
        deep = nn.Conv2d(inputs, inputs, 3, stride, padding, dilation, groups=inputs, bias=False)
        self.add_module(f"conv_dw_{number}", deep)
        self.add_module(f"conv_dw_{number}_bn", SafeNorm(inputs, eps=1e-3))
        self.add_module(f"conv_pw_{number}", PointConv(inputs, outputs, bias=False))
        self.add_module(f"conv_pw_{number}_bn", SafeNorm(outputs, eps=1e-3))

    def _block(self, number: int) -> list[nn.Module]:
        names = (
            f"conv_dw_{number}",
            f"conv_dw_{number}_bn",
            f"conv_pw_{number}",
            f"conv_pw_{number}_bn",
        )
        deep, deep_norm, point, point_norm = map(self.get_submodule, names)
        pad = [self.pad] if number in self.strided else []
        return [*pad, deep, deep_norm, self.relu, point, point_norm, self.relu]

    @property
    def stages(self) -> list[nn.Module]:
        first = [self.pixels, self.pad, self.conv1, self.conv1_bn, self.relu]
        found: list[nn.Module] = []
        for numbers in STAGES:
            layers = [layer for number in numbers for layer in self._block(number)]
            found.append(nn.Sequential(*(first if numbers == (1,) else []), *layers))
        return found

    def forward(self, batch: Tensor) -> Tensor:
        for stage in self.stages:
            batch = stage(batch)
        return batch
