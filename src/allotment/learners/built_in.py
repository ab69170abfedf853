"""The built-in learner as settings describe it, on any data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from allotment.data.dataset import Dataset
from allotment.data.labels import Split
from allotment.errors import InputError, Mistake
from allotment.learners.editions import FIRST
from allotment.learners.learner import Learner
from allotment.learners.sharing import SHARED_TRUNK
from allotment.learners.tempering import tell_pictures

USUAL_NETWORK = "usual"
"""the network that is for any data"""


def make_built_in(
    training: Mapping[str, Any],
    data: Dataset,
    split: Split,
    weights: Path | None = None,
    *,
    is_blank: bool = False,
) -> Learner:
    """The learner that `training` (keys of a Recipe, `network`, `edition`, `sharing`) describes. A
    blank one is not to be trained: its weights are loaded, all of them."""
    try:
        from allotment.learners.perceptrons import PerceptronsLearner
        from allotment.learners.recipe import Recipe
        from allotment.learners.torch_learner import TorchLearner
    except ImportError:
        what = "training needs torch: pip install 'allotment[train]', or set method = \"neutral\""
        raise InputError([Mistake("training", what)]) from None
    keys = {field.name for field in fields(Recipe)}
    given = {key: value for key, value in training.items() if key in keys}
    network = training.get("network", USUAL_NETWORK)
    sharing = training.get("sharing", SHARED_TRUNK)
    if given.get("members", 1) > 1:
        if what := tell_unfit(data, network):
            raise InputError([Mistake("training: members", f"{what}; leave the line out")])
        return PerceptronsLearner(data, split, Recipe(**given))
    if network == USUAL_NETWORK:
        return TorchLearner(data, split, Recipe(**given), sharing=sharing)
    from allotment.learners.setups import BACKBONES, find_setup, make_learner

    setup = find_setup(network, training.get("edition", FIRST))
    side = data.inputs(np.zeros(1, dtype=np.int64)).shape[-1]
    setup = replace(setup, side=side, recipe=replace(setup.recipe, **given))
    blank: Any = None
    if is_blank:
        from allotment.learners.backbones import mark_trained

        blank = BACKBONES[setup.backbone]()
        for module in blank.modules():
            mark_trained(module)  # which it will be once it is loaded
    return make_learner(
        setup, weights=weights, parts=split, data=data, backbone=blank, is_blank=is_blank,
        sharing=sharing,
    )  # fmt: skip


def tell_unfit(data: Dataset, network: str) -> str:
    """Why trainings on these data can't have members; "" if they can."""
    if network != USUAL_NETWORK:
        return f"network {network!r} is trained alone"
    return tell_pictures(data)
