"""Layers that torch has in a slower or a more brittle form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class PointConv(nn.Conv2d):
    """A 1 x 1 convolution done as a matrix product: on one thread torch has only a slow way for
    small batches."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, bias: bool = True):
        super().__init__(inputs, outputs, 1, stride, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        down, across = self.stride
        pixels = input[:, :, ::down, ::across].permute(0, 2, 3, 1)
        return functional.linear(pixels, self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)


class SafeNorm(nn.BatchNorm2d):
    """Batch norm that also trains on a single value for each channel: it then goes by its
    statistics."""

    def forward(self, input: Tensor) -> Tensor:
        if self.training and input.numel() == input.shape[1]:
            return functional.batch_norm(
                input,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                False,
                0.0,
                self.eps,
            )
        return super().forward(input)


class SafeConvolutions(TorchFunctionMode):
    """While it is entered, no 1 x 1 convolution with a stride goes to oneDNN where that may end the
    process.

    oneDNN 3.12, which torch 2.13 carries, computes the gradient of such a convolution's weights
    past the end of its buffer, on a CPU without AVX-512, if its input lies channels last and has
    not a multiple of 8 of them: the heap is destroyed and the process dies, soon or later. Taking
    the pixels first and then convolving them without a stride is the same sum. It is done on every
    CPU, so that all of them compute the same.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return (_convolve if func is torch.conv2d else func)(*args, **(kwargs or {}))


def _convolve(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    down, across = _pair(stride)
    is_point = tuple(weight.shape[2:]) == (1, 1) and (down, across) != (1, 1)
    if not is_point or input.shape[-3] % 8 == 0 or input.device.type != "cpu":
        return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
    if not isinstance(padding, str):  # which, with a stride, can only be none at all
        above, beside = _pair(padding)
        input = functional.pad(input, (beside, beside, above, above))
    return torch.conv2d(input[..., ::down, ::across], weight, bias, groups=groups)


def _pair(given: int | Sequence[int]) -> tuple[int, int]:
    """Down and across, as torch reads a number, or a list of one or two."""
    first, *rest = (given,) if isinstance(given, int) else given
    return first, rest[0] if rest else first
