"""Layers that torch has in a slower or a more brittle form."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class PointConv(nn.Conv2d):
    """A 1 x 1 convolution done as a matrix product: on one thread torch has only a slow way for small batches."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True):
        super().__init__(inputs, outputs, 1, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        pixels = input.permute(0, 2, 3, 1)
        return functional.linear(pixels, self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)


class SafeNorm(nn.BatchNorm2d):
    """Batch norm that also trains on a single value for each channel: it then goes by its statistics."""

    def forward(self, input: Tensor) -> Tensor:
        if self.training and input.numel() == input.shape[1]:
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        return super().forward(input)
