"""The optimiser of a network and its rates, as a recipe says."""

from __future__ import annotations

import math

import torch
from torch import nn

from allotment.learners.networks import list_adapters
from allotment.learners.recipe import Recipe


def make_optimiser(recipe: Recipe, network: nn.Module) -> torch.optim.Optimizer:
    """Of a network's weights: those of its trunk first, then those of its heads and adapters."""
    heads = list(network.heads.parameters())  # type: ignore[union-attr]
    for adapter in list_adapters(network):
        heads += adapter.parameters()
    ids = {id(weight) for weight in heads}
    trunk = [weight for weight in network.parameters() if id(weight) not in ids]
    groups = [{"params": trunk, "lr": recipe.trunk_rate}, {"params": heads, "lr": recipe.head_rate}]
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(groups, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    kind = torch.optim.Adam if recipe.optimiser == "adam" else torch.optim.AdamW
    # one call for all weights: batch norms for each task make them many and small
    fused = all(weight.device.type in ("cpu", "cuda") for weight in network.parameters())
    return kind(groups, weight_decay=recipe.weight_decay, fused=fused)


def set_rates(recipe: Recipe, optimiser: torch.optim.Optimizer, done: int, steps: int) -> None:
    """The rates of the step after `done` of `steps`: a cosine from the first to the last."""
    turn = (1 + math.cos(math.pi * min(done / max(steps, 1), 1.0))) / 2
    for group, first in zip(
        optimiser.param_groups, (recipe.trunk_rate, recipe.head_rate), strict=True
    ):
        group["lr"] = min(recipe.final_rate, first) + (first - min(recipe.final_rate, first)) * turn
