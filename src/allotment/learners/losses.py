"""Losses, one for each kind of task; unknown labels and pixels count nothing.

Each gives one number for each run of a stack: outputs are (runs, batch, ...), labels as well.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from allotment.data.dataset import VOID, Target

LEAST_SHARE = 0.001
"""of positives, so that an answer to what never was seen is finite"""


def loss_of(target: Target, outputs: Tensor, values: Tensor) -> Tensor:
    """Mean loss of each run (runs,)."""
    each, counts = _each(target, outputs, values)
    each, counts = each.flatten(1), counts.flatten(1)
    return (each * counts).sum(dim=1) / counts.sum(dim=1).clamp_min(1.0)


def thin_out(maps: Tensor, every: int, axes: int = 2) -> Tensor:
    """Every so many-th pixel down and across, the middle one of each square of them."""
    for axis in range(1, axes + 1):
        maps = maps.movedim(-axis, -1)[..., every // 2 :: every].movedim(-1, -axis)
    return maps


def _each(target: Target, outputs: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of each label or pixel, and 1 where it counts."""
    kind = target.kind
    if kind in ("classification", "segmentation"):
        if values.is_floating_point():  # probabilities: a soft pseudo-label
            each = -(values * functional.log_softmax(outputs, dim=2)).sum(dim=2)
            # a crop's border has no probabilities
            return each, (values.sum(dim=2) > 0).to(outputs.dtype)
        counts = (
            values != VOID if kind == "segmentation" else torch.ones_like(values, dtype=torch.bool)
        )
        safe = torch.where(counts, values, 0)
        each = functional.cross_entropy(outputs.flatten(0, 1), safe.flatten(0, 1), reduction="none")
        return each.view_as(values), counts.to(outputs.dtype)
    known = ~torch.isnan(values)
    safe = torch.nan_to_num(values)
    if kind == "multilabel":
        each = functional.binary_cross_entropy_with_logits(outputs, safe, reduction="none")
        return each, known.to(outputs.dtype)
    if kind == "normals":
        if target.loss == "l1":
            each = (outputs - safe).abs().mean(dim=2)
        else:
            each = 1 - functional.cosine_similarity(outputs, safe, dim=2)
        return each, known.all(dim=2).to(outputs.dtype)
    outputs = outputs.squeeze(2)
    if target.loss == "l1":
        each = (outputs - safe).abs()
    elif kind in ("edges", "keypoints"):
        each = functional.binary_cross_entropy_with_logits(
            outputs, safe.clamp(0, 1), reduction="none"
        )
    else:
        each = functional.smooth_l1_loss(outputs, safe, reduction="none", beta=0.5)
    return each, known.to(outputs.dtype)


def answer_of(target: Target, outputs: Tensor) -> Tensor:
    """What outputs mean: probabilities of classes, unit vectors, strengths or (standardised)
    values."""
    kind = target.kind
    if kind in ("classification", "segmentation"):
        return torch.softmax(outputs, dim=2)
    if kind == "multilabel":
        return torch.sigmoid(outputs)
    if kind == "normals":
        return functional.normalize(outputs, dim=2)
    outputs = outputs.squeeze(2)
    return (
        torch.sigmoid(outputs)
        if kind in ("edges", "keypoints") and target.loss != "l1"
        else outputs
    )


def constant_of(target: Target, values: Tensor) -> Tensor:
    """The outputs, the same everywhere, that lose least on labels (n, ...): what there is to know
    without looking."""
    kind = target.kind
    if kind in ("classification", "segmentation"):
        if values.is_floating_point():  # probabilities
            shares = values.movedim(1, -1).flatten(0, -2).sum(dim=0)
        else:
            counts = values[values != VOID] if kind == "segmentation" else values
            shares = torch.bincount(counts.flatten(), minlength=len(target.classes)).float()
        return torch.log((shares + 0.5) / (shares + 0.5).sum())
    if kind == "multilabel":
        return torch.logit(torch.nanmean(values, dim=0).nan_to_num(0.5), eps=LEAST_SHARE)
    if kind == "normals":
        return torch.nanmean(values, dim=(0, *range(2, values.ndim))).nan_to_num(0.0)
    known = values[~torch.isnan(values)]
    if kind in ("edges", "keypoints") and target.loss != "l1":
        return torch.logit(known.clamp(0, 1).mean().nan_to_num(0.5), eps=LEAST_SHARE)[None]
    return (known.median() if len(known) else torch.zeros(()))[None]
