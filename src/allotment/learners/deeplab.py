"""DeepLabv3 for several tasks: one backbone, batch norm for each task, a head for each task (paper,
5.2 and App. B)."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from allotment.data.dataset import Target
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.backbones import (
    Backbone,
    Stages,
    check_backbone,
    draw_weights,
    mark_untrained,
)
from allotment.learners.layers import PointConv, SafeNorm
from allotment.learners.losses import thin_out
from allotment.learners.networks import (
    TaskAdapter,
    _by_task,
    _key,
    list_adapters,
    list_turning,
    norm_per_task,
    outputs_of,
)
from allotment.learners.sharing import SHARED_TRUNK, WITH_ADAPTERS, check_sharing

WHOLE_IMAGE = ("classification", "multilabel", "regression")
RATES = (12, 24, 36)
"""how far apart the three dilated convolutions look, as in torchvision"""
SHOWN_SIDE = 64
"""pixels on each side of a picture by which it is found how many channels stages give"""


class Pooling(nn.Sequential):
    """What the image as a whole says, put at each place of its map."""

    def __init__(self, channels: int, width: int):
        super().__init__(
            nn.AdaptiveAvgPool2d(1),
            PointConv(channels, width, bias=False),
            SafeNorm(width),
            nn.ReLU(),
        )

    def forward(self, input: Tensor) -> Tensor:
        pooled = input
        for layer in self:
            pooled = layer(pooled)
        return pooled.expand(-1, -1, *input.shape[-2:])


class Aspp(nn.Module):
    """Atrous spatial pyramid pooling: one place, three widths around it and the whole image,
    joined."""

    def __init__(self, channels: int, width: int, rates: Sequence[int], dropout: float):
        super().__init__()
        near = _conv_norm(channels, width, 1)
        around = [_conv_norm(channels, width, 3, rate) for rate in rates]
        self.convs = nn.ModuleList([near, *around, Pooling(channels, width)])
        self.project = _conv_norm((2 + len(rates)) * width, width, 1).append(nn.Dropout(dropout))

    def forward(self, batch: Tensor) -> Tensor:
        out: Tensor = self.project(torch.cat([conv(batch) for conv in self.convs], dim=1))
        return out


class DeepLabHead(nn.Sequential):
    """Numbers for each place of a map, with torchvision's names."""

    def __init__(
        self,
        channels: int,
        outputs: int,
        width: int = 256,
        rates: Sequence[int] = RATES,
        dropout: float = 0.5,
    ):
        smooth = nn.Conv2d(width, width, 3, padding=1, bias=False)
        last = PointConv(width, outputs)
        super().__init__(
            Aspp(channels, width, rates, dropout), smooth, SafeNorm(width), nn.ReLU(), last
        )
        self.outputs = outputs
        mark_untrained(self)


class WholeImageHead(nn.Sequential):
    """Numbers for the image as a whole: a convolution, its mean over the map, a fully connected
    layer."""

    def __init__(self, channels: int, outputs: int, width: int = 256):
        conv = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        pool = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
        super().__init__(conv, SafeNorm(width), nn.ReLU(), *pool, nn.Linear(width, outputs))
        self.outputs = outputs
        mark_untrained(self)


class DeepLab(nn.Module):
    """A network for `TorchLearner`: the backbone with batch norm for each task, and a head for each
    task.

    The backbone is copied. It keeps the weights it comes with, except for layers marked as
    untrained: those are drawn by seed, as the heads are. `heads` are given for tasks that have
    trained ones. `size` is the height and width of dense labels, needed where the backbone does not
    see the images because its first stages are frozen. With `every`, training sees that pixel of
    dense labels only, down and across; answers have all of them. With `sharing="adapters"` each
    task has small layers of its own after every stage of the backbone, which `inputs` channels go
    into.
    """

    def __init__(
        self,
        backbone: Backbone,
        targets: Sequence[Target],
        *,
        heads: Mapping[str, nn.Module] | None = None,
        size: tuple[int, int] | None = None,
        width: int = 256,
        rates: Sequence[int] = RATES,
        dropout: float = 0.5,
        every: int = 1,
        sharing: str = SHARED_TRUNK,
        inputs: int = 3,
    ):
        super().__init__()
        heads = heads or {}
        _check(backbone, targets, heads, size, sharing)
        tasks = [target.name for target in targets]
        self.size = size
        self.every = every
        self.channels_last = bool(getattr(backbone, "channels_last", True))
        self.backbone = norm_per_task(cast(nn.Module, copy.deepcopy(backbone)), tasks)
        if sharing == WITH_ADAPTERS:
            self.backbone = add_adapters(cast(Backbone, self.backbone), tasks, inputs)

        def head(target: Target) -> nn.Module:
            if target.name in heads:
                return copy.deepcopy(heads[target.name])
            if target.kind in WHOLE_IMAGE:
                return WholeImageHead(backbone.channels, outputs_of(target), width)
            return DeepLabHead(backbone.channels, outputs_of(target), width, rates, dropout)

        self.heads = _by_task(targets, head)
        self._turning = list_turning(self.backbone)

    def reset(self, generators: Sequence[torch.Generator]) -> None:
        """Draw whatever did not come with weights."""
        (generator,) = generators
        draw_weights(self, generator)
        for adapter in list_adapters(self):  # last, so that all else is as without them
            adapter.reset(generator)

    def features(self, batch: Tensor, task: str) -> Tensor:
        """(n, channels): the backbone's map in the mean."""
        return self._map(batch, [task]).mean(dim=(2, 3))

    def forward(self, batch: Tensor, task: str) -> Tensor:
        return self.finish(self._map(batch, [task]), task, (batch.shape[-2], batch.shape[-1]))

    def share(self, batch: Tensor, tasks: Sequence[str]) -> list[Tensor]:
        """The maps of the tasks' mini-batches, which lie one after the other, for each of them."""
        return list(self._map(batch, tasks).chunk(len(tasks)))

    def finish(self, seen: Tensor, task: str, size: tuple[int, int]) -> Tensor:
        """The answer of a task's head, at the size of the images unless the network was given
        another."""
        out: Tensor = self.heads[_key(task)](seen)
        if out.ndim == 2:
            return out
        if self.every == 1:
            return functional.interpolate(out, size=self.size or size, mode="bilinear")
        return spread_out(out, self.size or size, self.every if self.training else 1)

    def _map(self, batch: Tensor, tasks: Sequence[str]) -> Tensor:
        for module in self._turning:
            module.turn = tasks
        found: Tensor = self.backbone(batch)
        return found


def add_adapters(backbone: Backbone, tasks: Sequence[str], inputs: int) -> Stages:
    """The stages of a backbone, each with adapters behind it; those without weights have none."""
    modules = cast(nn.Module, backbone).eval()
    own = next(modules.parameters(), None)
    if own is None:
        what = '"adapters" go behind stages that are trained, and the backbone has none left'
        raise InputError([Mistake("sharing", f"{what}; freeze fewer of them")])
    batch = torch.zeros(1, inputs, SHOWN_SIDE, SHOWN_SIDE, device=own.device)
    parts: list[nn.Module] = []
    with torch.no_grad():
        for stage in backbone.stages:
            batch = stage(batch)
            parts.append(stage)
            if any(True for _ in stage.parameters()):
                parts.append(TaskAdapter(tasks, batch.shape[1]))
    images, layout = (getattr(backbone, each, True) for each in ("takes_images", "channels_last"))
    found = Stages(parts, backbone.channels, bool(images), bool(layout))
    return found.train()


def spread_out(batch: Tensor, size: tuple[int, int], every: int = 1) -> Tensor:
    """Maps at another size, as `interpolate` makes them but for rounding, and of that the pixels
    that `thin_out` leaves: two products are quicker than a loop, above all backwards."""
    down, across = (
        thin_out(_weigh(there, wanted).to(batch), every, axes=1)
        for there, wanted in zip(batch.shape[-2:], size, strict=True)
    )
    tall = functional.linear(batch.mT.contiguous(), down.mT).mT
    return functional.linear(tall.contiguous(), across.mT)


@functools.lru_cache(maxsize=32)
def _weigh(there: int, wanted: int) -> Tensor:
    """(there, wanted): what each place counts for each of those wanted, along one axis."""
    return functional.interpolate(torch.eye(there)[None], size=wanted, mode="linear")[0]


def _conv_norm(inputs: int, outputs: int, side: int, rate: int = 1) -> nn.Sequential:
    conv: nn.Module
    if side == 1:
        conv = PointConv(inputs, outputs, bias=False)
    else:
        conv = nn.Conv2d(
            inputs, outputs, side, padding=rate * (side // 2), dilation=rate, bias=False
        )
    return nn.Sequential(conv, SafeNorm(outputs), nn.ReLU())


def _check(
    backbone: object,
    targets: Sequence[Target],
    heads: Mapping[str, nn.Module],
    size: tuple[int, int] | None,
    sharing: str,
) -> None:
    check_backbone(backbone)
    by_name = {target.name: target for target in targets}
    mistakes = []
    if what := check_sharing(sharing):
        mistakes.append(Mistake("sharing", what))
    if not by_name:
        mistakes.append(Mistake("targets", "there are none; give one for each task"))
    for name, head in heads.items():
        if name not in by_name:
            mistakes.append(Mistake(f"heads: {name!r}", f"is not a task; {suggest(name, by_name)}"))
        elif (found := getattr(head, "outputs", None)) not in (None, outputs_of(by_name[name])):
            what = f"gives {found} numbers and the task wants {outputs_of(by_name[name])}"
            mistakes.append(Mistake(f"heads: {name!r}", what))
    dense = [target.name for target in targets if target.kind not in WHOLE_IMAGE]
    if dense and size is None and not getattr(backbone, "takes_images", True):
        what = (
            "the backbone's first stages are frozen: give the height and width of the labels of"
            f" {', '.join(dense)}"
        )
        mistakes.append(Mistake("size", what))
    if mistakes:
        raise InputError(mistakes)
