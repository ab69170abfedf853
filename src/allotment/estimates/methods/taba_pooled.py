"""The paper's way with what can be mended in it."""

from __future__ import annotations

from functools import cache

from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.curves import fit_exact
from allotment.estimates.paper import OUTLINE, InPieces, Paper
from allotment.estimates.request import Request
from allotment.estimates.transfer import ESTIMATORS


class ByPooledTaba(InPieces):
    about = "the paper's, mended: pooled transfer, curves on subsets, every task's own first gain"
    options = (*OUTLINE, "estimator", "own_gain", "fallback", "draws", "probing")

    def follow(self, request: Request) -> Paper:
        options = request.options
        estimator = options.get("estimator", "pooled")
        if estimator not in ESTIMATORS:
            what = f"unknown {estimator!r}; {suggest(estimator, ESTIMATORS)}"
            raise InputError([Mistake("estimator", what)])
        how = {
            "own_gain": bool(options.get("own_gain", True)),
            "fallback": options.get("fallback", True),
        }
        return Paper(request, estimator, cache(fit_exact), how)


METHOD = ByPooledTaba()
