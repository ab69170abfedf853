"""The paper's way to the letter."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.errors import InputError, Mistake
from allotment.estimates.curves import fit_paper
from allotment.estimates.paper import OUTLINE, InPieces, Paper
from allotment.estimates.request import Request
from allotment.learners.learner import Learner


class ByTaba(InPieces):
    about = "the paper's to the letter: mean of ratios, curves on pseudo-labels of an ensemble"
    options = (*OUTLINE, "ensemble", "mode", "pool", "fallback", "draws", "probing")

    def follow(self, request: Request) -> Paper:
        # it plans with one rate: the fit's draws only tell whether the curve carries a signal
        fit = cache(partial(fit_paper, draws=50))
        how = {"letter": True, "fallback": request.options.get("fallback", True)}
        mode = request.options.get("mode", "hard")
        return Paper(request, "paper", fit, how, _find_pool(request), mode)


def _find_pool(request: Request) -> NDArray[np.int64]:
    """The unlabelled instances, from the learner's own split unless given."""
    learner: Learner | Any = request.learner
    pool = request.options.get("pool")
    if pool is None and hasattr(learner, "split"):
        pool = learner.split.train
    if pool is None:
        what = "an ensemble labels it; give the instances without labels: pool=range(...)"
        raise InputError([Mistake("pool", what)])
    free = np.asarray(list(pool), dtype=np.int64)
    # a fold is scored on: not even its inputs are learnt from
    taken = [labels.instances for labels in request.labels.values()] if request.folds > 1 else []
    return np.setdiff1d(free, np.concatenate(taken)) if taken else free


METHOD = ByTaba()
