"""Named set-ups: data, network and recipe together. The paper's own, and ones for two cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from allotment.data.dataset import Dataset, Target
from allotment.data.labels import Split
from allotment.data.source import SOURCES, DataSettings
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.backbones import Backbone, first_stages, narrow_down, split_backbone
from allotment.learners.deeplab import RATES, DeepLab
from allotment.learners.editions import check_edition, newest_edition
from allotment.learners.mobilenet import MobileNet
from allotment.learners.recipe import Recipe
from allotment.learners.resnet import ResNet
from allotment.learners.squeezenet import SqueezeNet
from allotment.learners.torch_learner import TorchLearner
from allotment.learners.weights import load_weights

BACKBONES: dict[str, Callable[[], nn.Module]] = {
    "resnet18": lambda: ResNet(18),
    "resnet34": lambda: ResNet(34),
    "resnet50": lambda: ResNet(50),
    "resnet101": lambda: ResNet(101),
    "mobilenet": lambda: MobileNet(output_stride=8),
    "squeezenet": lambda: SqueezeNet(output_stride=8),
}
"""backbones by name, as a set-up makes them: an eighth of the image's size"""


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


PAPER = Recipe(
    batch_size=8,
    trunk_rate=0.001,
    head_rate=0.01,
    final_rate=0.0001,
    momentum=0.9,
    weight_decay=0.0001,
)
"""rates and cosine are the paper's (P12); it does not state batch size, momentum, weight decay and
crops"""
SMALL_RECIPE = Recipe(batch_size=8, optimiser="adam", trunk_rate=0.003, head_rate=0.003)
"""how the small networks are trained"""
FIRST_EDITIONS: dict[str, Setup] = {
    "voc-small": Setup(
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
    "taskonomy-small": Setup(
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
}
"""set-ups as they were before a set-up of the same name took their place: what was begun with them
goes on with them"""
SETUPS: dict[str, Setup] = {
    "voc-paper": Setup("voc", 513, "resnet50", replace(PAPER, epochs=100, crop=321)),
    "taskonomy-paper": Setup("taskonomy", 256, "resnet50", replace(PAPER, epochs=30)),
    "voc-small": Setup(
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
    "taskonomy-small": Setup(
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
}


def find_setup(name: str, edition: int | None = None) -> Setup:
    """A set-up by its name: the newest of that name, or an earlier edition."""
    if name not in SETUPS:
        raise InputError([Mistake("setup", f"there is no {name!r}; {suggest(name, SETUPS)}")])
    if edition is None:
        return SETUPS[name]
    if what := check_edition(name, edition):
        raise InputError([Mistake("setup", what)])
    return SETUPS[name] if edition == newest_edition(name) else FIRST_EDITIONS[name]


def make_learner(
    setup: Setup | str,
    root: str | Path | None = None,
    weights: str | Path | None = None,
    *,
    seed: int = 0,
    parts: Split | None = None,
    backbone: Backbone | None = None,
    data: Dataset | None = None,
) -> TorchLearner:
    """A learner on the data below `root`; `weights` is a file for the backbone, which starts from
    nothing without.

    `seed` draws the splits unless `parts` gives them. A `backbone` of your own takes the place of
    the named one, and `data` that of what is read from `root`.
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
        )

    return TorchLearner(data, parts or draw_parts(setup, data, seed), setup.recipe, network, frozen)


def read_data(setup: Setup, root: str | Path | None) -> Dataset:
    """The set-up's data below a folder."""
    if root is None:
        raise InputError([Mistake("root", f"is missing; give the folder of {setup.data}")])
    return SOURCES.load(setup.data).open(DataSettings({"side": setup.side}, Path(root)))


def draw_parts(setup: Setup, data: Dataset, seed: int) -> Split:
    """VOC's own test list, or Taskonomy's points apart, and a validation part by seed."""
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
