"""Named set-ups: data, network and recipe together. The paper's own, and ones for two cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from allotment.data.dataset import Dataset, Target
from allotment.data.labels import Split
from allotment.data.source import SOURCES, DataSettings
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.backbones import (
    Backbone,
    Stages,
    check_left,
    first_stages,
    narrow_down,
    reduce_channels,
    split_backbone,
)
from allotment.learners.deeplab import RATES, DeepLab
from allotment.learners.editions import FIRST, check_edition
from allotment.learners.feed import to_float
from allotment.learners.layers import PointConv
from allotment.learners.mobilenet import MobileNet
from allotment.learners.recipe import Recipe
from allotment.learners.resnet import ResNet
from allotment.learners.sharing import SHARED_TRUNK
from allotment.learners.squeezenet import SqueezeNet
from allotment.learners.torch_learner import TorchLearner
from allotment.learners.weights import load_weights
from allotment.machine import settled

BACKBONES: dict[str, Callable[[], nn.Module]] = {
    "resnet18": lambda: ResNet(18),
    "resnet34": lambda: ResNet(34),
    "resnet50": lambda: ResNet(50),
    "resnet101": lambda: ResNet(101),
    "mobilenet": lambda: MobileNet(output_stride=8),
    "squeezenet": lambda: SqueezeNet(output_stride=8),
}
"""backbones by name, as a set-up makes them: an eighth of the image's size"""
SHOWN = 100
"""pictures by which it is found in what the channels of frozen stages differ"""


@dataclass(frozen=True)
class Setup:
    """A data set, a network for it and a recipe."""

    data: str
    """the name of a source whose pictures can have any `side`"""
    side: int
    """of the squares that images are scored on, and trained on unless the recipe crops"""
    backbone: str
    recipe: Recipe
    stages: int = 0
    """how many of the backbone's stages are used; all if 0"""
    frozen_stages: int = 0
    """first stages of the backbone that keep their weights; what they give is computed once"""
    reduced: int = 0
    """channels that are left of what the frozen stages give, where these are all stages: those
    mixtures in which pictures differ most; less to keep and to learn from"""
    narrow: int = 0
    """channels that a last layer of its own leaves of the backbone's, so that heads on a CPU have
    less to do"""
    width: int = 256
    """of the heads"""
    rates: tuple[int, ...] = RATES
    """of the heads' dilated convolutions"""
    dropout: float = 0.5
    every: int = 1
    """of the pixels of dense labels, down and across, which one a step is trained on; scores count
    all of them"""
    validation: float = 0.15
    have: int = 0
    """labels of each task that a campaign begins with; as many as are usual for the data if 0"""
    budget: int = 0
    """likewise of money"""


PAPER = Recipe(
    batch_size=8,
    trunk_rate=0.001,
    head_rate=0.01,
    final_rate=0.0001,
    momentum=0.9,
    weight_decay=0.0001,
)
"""rates and cosine are the paper's (P12); it does not state batch size, momentum, weight decay and
crops, nor what "until the loss has converged" means on Taskonomy"""
SMALL_RECIPE = Recipe(batch_size=8, optimiser="adam", trunk_rate=0.003, head_rate=0.003)
"""how the small networks are trained"""
EARLIER_EDITIONS: dict[str, tuple[Setup, ...]] = {
    "voc-small": (
        Setup(
            "voc",
            128,
            "mobilenet",
            replace(SMALL_RECIPE, steps=600),
            frozen_stages=6,
            narrow=256,
            width=64,
            rates=(2, 4, 6),
            dropout=0.1,
        ),
        Setup(
            "voc",
            128,
            "mobilenet",
            replace(SMALL_RECIPE, steps=400, trunk_rate=0.007, head_rate=0.007),
            frozen_stages=6,
            reduced=256,
            narrow=64,
            width=32,
            rates=(2, 4),
            dropout=0.1,
            every=4,
        ),
    ),
    "taskonomy-small": (
        Setup(
            "taskonomy",
            128,
            "mobilenet",
            replace(SMALL_RECIPE, steps=300),
            stages=3,
            frozen_stages=3,
            narrow=128,
            width=64,
            rates=(2, 4, 6),
            dropout=0.1,
        ),
        Setup(
            "taskonomy",
            128,
            "mobilenet",
            replace(SMALL_RECIPE, steps=280, batch_size=4, trunk_rate=0.01, head_rate=0.01),
            stages=3,
            frozen_stages=3,
            narrow=48,
            width=24,
            rates=(2, 4),
            dropout=0.1,
            every=4,
        ),
    ),
}
"""set-ups as they were before a set-up of the same name took their place, the first one first: what
was begun with them goes on with them"""
SETUPS: dict[str, Setup] = {
    "voc-paper": Setup("voc", 513, "resnet50", replace(PAPER, epochs=100, crop=321)),
    "taskonomy-paper": Setup(
        "taskonomy",
        256,
        "resnet50",
        replace(PAPER, epochs=30, patience=5),
        have=10_000,
        budget=210_000,
    ),
    "voc-small": Setup(
        "voc",
        128,
        "mobilenet",
        replace(SMALL_RECIPE, steps=400, batch_size=4, trunk_rate=0.005, head_rate=0.005),
        frozen_stages=6,
        reduced=256,
        narrow=128,
        width=48,
        rates=(),
        dropout=0.1,
        every=8,
    ),
    "taskonomy-small": Setup(
        "taskonomy",
        128,
        "mobilenet",
        replace(SMALL_RECIPE, steps=380, batch_size=4, trunk_rate=0.012, head_rate=0.012),
        stages=3,
        frozen_stages=3,
        narrow=64,
        width=32,
        rates=(2, 4, 6),
        dropout=0.3,
        every=4,
    ),
}


def check_weights(name: str, weights: Path | None, from_scratch: bool) -> None:
    """Raises InputError unless a set-up's backbone is given weights that fit, or is said to start
    from nothing where it can."""
    setup = find_setup(name)
    if weights is not None and not from_scratch:
        _make_backbone(setup, weights)
        return
    file = (
        f"Give a file of its weights (.safetensors, .npz or .pth), such as --weights"
        f" {setup.backbone}.safetensors; docs/vision.md says what is in it"
    )
    keeps = f"{name} keeps the first layers of a {setup.backbone} that was trained on ImageNet"
    if weights is not None:
        raise InputError([Mistake("--from-scratch", "beside --weights; leave one of them out")])
    if setup.frozen_stages and from_scratch:
        raise InputError([Mistake("--from-scratch", f"{keeps}. {file}")])
    if setup.frozen_stages:
        raise InputError([Mistake("--weights", f"is missing: {keeps}. {file}")])
    if not from_scratch:
        begins = f"{name} begins with a {setup.backbone} that was trained on ImageNet"
        what = f"is missing: {begins}. {file}. To have it start from nothing: --from-scratch"
        raise InputError([Mistake("--weights", what)])


def find_setup(name: str, edition: int | None = None) -> Setup:
    """A set-up by its name: the newest of that name, or an earlier edition."""
    if name not in SETUPS:
        raise InputError([Mistake("setup", f"there is no {name!r}; {suggest(name, SETUPS)}")])
    if edition is None:
        return SETUPS[name]
    if what := check_edition(name, edition):
        raise InputError([Mistake("setup", what)])
    return (*EARLIER_EDITIONS.get(name, ()), SETUPS[name])[edition - FIRST]


def make_learner(
    setup: Setup | str,
    root: str | Path | None = None,
    weights: str | Path | None = None,
    *,
    seed: int = 0,
    parts: Split | None = None,
    backbone: Backbone | None = None,
    data: Dataset | None = None,
    is_blank: bool = False,
    sharing: str = SHARED_TRUNK,
) -> TorchLearner:
    """A learner on the data below `root`; `weights` is a file for the backbone, which starts from
    nothing without.

    `seed` draws the splits unless `parts` gives them. A `backbone` of your own takes the place of
    the named one, and `data` that of what is read from `root`. A blank learner is not to be
    trained: all its weights, frozen ones too, are loaded. With `sharing="adapters"` each task has
    small layers of its own after every stage that is trained.
    """
    setup = find_setup(setup) if isinstance(setup, str) else setup
    if data is None:
        data = read_data(setup, root)
    found: Backbone = _make_backbone(setup, weights) if backbone is None else backbone
    frozen: nn.Module | None = None
    if setup.stages:
        found = first_stages(found, setup.stages)
    if setup.frozen_stages:
        frozen, found = split_backbone(found, setup.frozen_stages)
    parts = parts or draw_parts(setup, data, seed)
    if setup.reduced:
        shown = None if is_blank else _pick_pictures(data, parts)
        frozen, found = _reduce(frozen, found, setup.reduced, shown)
    if setup.narrow:
        found = narrow_down(found, setup.narrow)

    def network(shape: tuple[int, ...], targets: Sequence[Target], runs: int) -> nn.Module:
        size = (setup.side, setup.side) if frozen is not None else None
        return DeepLab(
            found,
            targets,
            size=size,
            width=setup.width,
            rates=setup.rates,
            dropout=setup.dropout,
            every=setup.every,
            sharing=sharing,
            inputs=shape[0],
        )

    return TorchLearner(data, parts, setup.recipe, network, frozen)


def _reduce(
    frozen: nn.Module | None, rest: Backbone, left: int, shown: Tensor | None
) -> tuple[nn.Module, Stages]:
    """Frozen stages that end with fewer channels, by what they make of pictures that are shown."""
    if frozen is None or list(rest.stages):
        what = "is for backbones whose stages are all frozen; freeze them, or leave it out"
        raise InputError([Mistake("setup: reduced", what)])
    check_left(rest.channels, left)
    last = PointConv(rest.channels, left)
    if shown is not None:
        with settled(), torch.no_grad():
            maps = torch.cat([frozen(part)[:, :, ::2, ::2] for part in torch.split(shown, 20)])
            last = reduce_channels(maps, left)
    return nn.Sequential(frozen, last), Stages([], left, takes_images=False)


def _pick_pictures(data: Dataset, parts: Split) -> Tensor:
    """Some pictures of the training part, which is the same for measuring and for retraining."""
    there = np.sort(parts.train) if len(parts.train) else np.arange(data.size, dtype=np.int64)
    chosen = there[np.linspace(0, len(there) - 1, min(SHOWN, len(there))).astype(np.int64)]
    pictures = to_float(torch.from_numpy(np.ascontiguousarray(data.inputs(chosen))))
    return pictures.contiguous(memory_format=torch.channels_last)


def read_data(setup: Setup, root: str | Path | None) -> Dataset:
    """The set-up's data below a folder, with the keys that a new campaign would have."""
    if root is None:
        raise InputError([Mistake("root", f"is missing; give the folder of {setup.data}")])
    source, given = SOURCES.load(setup.data), DataSettings({"side": setup.side}, Path(root))
    settled, _ = source.settle(given)
    return source.open(replace(given, options={**given.options, **settled}))


def draw_parts(setup: Setup, data: Dataset, seed: int) -> Split:
    """VOC's own test list, or groups of Taskonomy's views apart, and a validation part by seed."""
    return data.split(seed, setup.validation, test=0.2)


def _make_backbone(setup: Setup, weights: str | Path | None) -> Backbone:
    if setup.backbone not in BACKBONES:
        raise InputError(
            [
                Mistake(
                    "setup: backbone",
                    f"unknown {setup.backbone!r}; {suggest(setup.backbone, BACKBONES)}",
                )
            ]
        )
    made = BACKBONES[setup.backbone]()
    if weights is not None:
        load_weights(made, weights)
    elif setup.frozen_stages:
        what = (
            f"the first {setup.frozen_stages} stages of {setup.backbone} are frozen: give a file of"
            " trained weights"
        )
        raise InputError([Mistake("weights", what)])
    return made  # type: ignore[return-value]
