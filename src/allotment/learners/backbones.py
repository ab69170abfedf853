"""What a backbone is, what it is built of, and how its first stages are frozen.

A backbone turns images (n, 3, height, width) with values from 0 to 1 into a map (n, channels, h,
w). Everything that it does to pixels first (their order, mean and scale) belongs to it, because its
weights were trained that way.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from allotment.errors import InputError, Mistake
from allotment.learners.layers import PointConv, SafeNorm

IMAGENET_MEAN, IMAGENET_SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Kind = TypeVar("Kind", bound=nn.Module)


@runtime_checkable
class Backbone(Protocol):
    """A module that does one stage after the other; `channels` is how many it ends with.

    Its answer is what its stages make of a batch in order, so that the first of them can be frozen.
    """

    @property
    def channels(self) -> int: ...

    @property
    def stages(self) -> Iterable[nn.Module]: ...

    def __call__(self, batch: Tensor) -> Tensor: ...


class Stages(nn.Sequential):
    """A backbone made of modules in order: yours, or what is left of another one.

    >>> backbone = Stages([nn.Conv2d(3, 8, 3, stride=2), nn.ReLU()], channels=8)
    >>> backbone(torch.zeros(1, 3, 9, 9)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(
        self,
        stages: Iterable[nn.Module],
        channels: int,
        takes_images: bool = True,
        channels_last: bool = True,
    ):
        super().__init__(*stages)
        self.channels = channels
        self.takes_images = takes_images
        self.channels_last = channels_last

    @property
    def stages(self) -> list[nn.Module]:
        return list(self)


class Pixels(nn.Module):
    """Images from 0 .. 1 to what weights were trained on: (value - mean) / spread of each channel.

    With `bgr`, blue comes first in what it gives and in `mean` and `spread`; images given have red
    first.
    """

    def __init__(self, mean: Sequence[float], spread: Sequence[float], bgr: bool = False):
        super().__init__()
        self.mean: Tensor
        self.spread: Tensor
        # Not persistent: they are no part of a weights file, whose names must fit as they are.
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(spread).view(-1, 1, 1), persistent=False)
        self.bgr = bgr

    def forward(self, batch: Tensor) -> Tensor:
        return ((batch.flip(-3) if self.bgr else batch) - self.mean) / self.spread


def check_backbone(backbone: object) -> None:
    """Say everything in which a module falls short of a backbone."""
    if not isinstance(backbone, nn.Module):
        what = (
            f"a {type(backbone).__name__} is not a torch module; give one with `channels` and"
            " `stages`"
        )
        raise InputError([Mistake("backbone", what)])
    mistakes = []
    channels = getattr(backbone, "channels", None)
    if not isinstance(channels, int) or channels < 1:
        mistakes.append(
            Mistake("backbone: channels", "must be a whole number: how many its answer has")
        )
    stages = getattr(backbone, "stages", None)
    if not isinstance(stages, Iterable) or not all(
        isinstance(stage, nn.Module) for stage in stages
    ):
        mistakes.append(
            Mistake(
                "backbone: stages", "must list its modules in order; `Stages([...], channels)` does"
            )
        )
    if mistakes:
        raise InputError(mistakes)


def split_backbone(backbone: Backbone, frozen_stages: int) -> tuple[nn.Module, Stages]:
    """(the first stages, for `TorchLearner(frozen=...)`; the rest, for a network on what those
    give), both copies."""
    check_backbone(backbone)
    stages = list(backbone.stages)
    if not 0 <= frozen_stages <= len(stages):
        what = f"{frozen_stages} of {len(stages)} stages; give a number from 0 to {len(stages)}"
        raise InputError([Mistake("frozen_stages", what)])
    blank = [
        at
        for at, stage in enumerate(stages[:frozen_stages])
        if any(map(is_untrained, stage.modules()))
    ]
    if blank:
        what = (
            f"stages {blank} hold weights that nobody has trained; `load_weights` before freezing"
            " them"
        )
        raise InputError([Mistake("frozen_stages", what)])
    frozen = nn.Sequential(*copy.deepcopy(stages[:frozen_stages])).eval().requires_grad_(False)
    images = getattr(backbone, "takes_images", True) and frozen_stages == 0
    return frozen, Stages(
        copy.deepcopy(stages[frozen_stages:]), backbone.channels, images, _layout(backbone)
    )


def first_stages(backbone: Backbone, count: int) -> Stages:
    """A copy of the backbone's first stages alone: finer maps of plainer things, for less work."""
    check_backbone(backbone)
    stages = copy.deepcopy(list(backbone.stages))
    if not 1 <= count <= len(stages):
        raise InputError(
            [
                Mistake(
                    "stages",
                    f"{count} of {len(stages)} stages; give a number from 1 to {len(stages)}",
                )
            ]
        )
    cut = Stages(stages[:count], 1, channels_last=_layout(backbone))
    with torch.no_grad():
        cut.channels = int(cut.eval()(torch.zeros(1, 3, 64, 64)).shape[1])
    return cut.train()


def narrow_down(backbone: Backbone, channels: int) -> Stages:
    """The backbone with one more stage, yet to be trained, that leaves so many channels."""
    last = nn.Sequential(
        PointConv(backbone.channels, channels, bias=False), SafeNorm(channels), nn.ReLU()
    )
    images = getattr(backbone, "takes_images", True)
    return Stages(
        [*copy.deepcopy(list(backbone.stages)), mark_untrained(last)],
        channels,
        images,
        _layout(backbone),
    )


def reduce_channels(maps: Tensor, left: int) -> PointConv:
    """A layer that never changes and leaves so many channels of maps like these: the mixtures in
    which they differ most (principal components). Less to keep, and to learn from."""
    check_left(int(maps.shape[1]), left)
    places = maps.movedim(1, -1).flatten(0, -2).double()
    mean = places.mean(dim=0)
    _, mixtures = torch.linalg.eigh((places - mean).mT @ (places - mean))
    chosen = mixtures.flip(1)[:, :left].mT  # eigh begins with what varies least
    layer = PointConv(int(maps.shape[1]), left)
    with torch.no_grad():
        layer.weight.copy_(chosen[:, :, None, None])
        layer.bias.copy_(-(chosen @ mean))  # type: ignore[union-attr]
    return layer.eval().requires_grad_(False)


def check_left(channels: int, left: int) -> None:
    """That so many of the channels can be left."""
    if not 1 <= left <= channels:
        what = f"{left} of {channels} channels; give a number from 1 to {channels}"
        raise InputError([Mistake("reduced", what)])


def _layout(backbone: Backbone) -> bool:
    return bool(getattr(backbone, "channels_last", True))


def mark_untrained(module: Kind) -> Kind:
    """Have every layer's weights drawn anew by seed at the start of each training; without the mark
    they are kept."""
    for layer in module.modules():
        vars(layer)["untrained"] = bool(layer._parameters)
    return module


def mark_trained(layer: nn.Module) -> None:
    """Keep this layer's weights as they are."""
    vars(layer)["untrained"] = False


def is_untrained(layer: nn.Module) -> bool:
    """Whether the layer itself, not those inside it, waits for weights."""
    return bool(vars(layer).get("untrained", False))


def draw_weights(module: nn.Module, generator: torch.Generator) -> None:
    """New weights for every layer that is marked as untrained."""
    for layer in module.modules():
        if not is_untrained(layer):
            continue
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif hasattr(layer, "reset_parameters"):
            _reset_own_way(layer, generator)


def _reset_own_way(layer: nn.Module, generator: torch.Generator) -> None:
    """Layers reset themselves from torch's global stream: give them one of their own for that
    time."""
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer.reset_parameters()  # type: ignore[operator]
