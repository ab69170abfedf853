"""Slopes of scores over the logarithm of labels, by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from allotment.arrays import Array
from allotment.errors import InputError, Mistake
from allotment.estimates.chunks import InChunks, join_chunks
from allotment.estimates.estimates import DRAWS, Estimates
from allotment.estimates.method import Plain
from allotment.estimates.request import Request
from allotment.estimates.response import Response

LOGARITHMIC = 0.001
"""exponent at which a power law is a logarithm to within a thousandth"""


class BySlopes(InChunks):
    about = "raw least-squares slopes over the logarithm of labels, for comparison"
    trainings = 30
    options = ("draws", "together")

    def least(self, tasks: int, folds: int) -> int:
        """One more than a level of each fold and a slope of each task, so that noise can be
        seen."""
        return folds + tasks + 1

    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        response = join_chunks(results)
        found = fit_slopes(response, int(request.options.get("draws", DRAWS)), request.seed)
        return replace(found, about={"unit": "%", "measured": {"response": response.to_dict()}})


def fit_slopes(response: Response, draws: int = DRAWS, seed: int = 0) -> Estimates:
    """w_ij log(1 + N_j / n_j) with w by least squares, as it comes: no prior, no shrinkage."""
    rng = np.random.default_rng([abs(seed), 13])
    have = np.maximum(np.array(response.have, dtype=float), 1.0)
    rows = [_fit_slopes(response, task, draws, rng) for task in range(len(have))]
    worths = np.stack(rows, axis=1) / LOGARITHMIC * have**LOGARITHMIC
    return Estimates(
        response.tasks, response.have, worths, np.full((draws, len(have)), LOGARITHMIC)
    )


def _fit_slopes(response: Response, task: int, draws: int, rng: np.random.Generator) -> Array:
    """[draw, labelled task]: what an e-fold of labels brings to the task, in % of its score."""
    there = np.isfinite(response.scores[:, task])
    counts, scores = np.maximum(response.counts[there], 1), response.scores[there, task]
    have, fold = np.array(response.have), response.fold[there]
    slopes = np.zeros((draws, len(have)))
    if not there.any() or not have[task]:
        return slopes
    scale = abs(float(scores[counts[:, task] == counts[:, task].max()].mean())) or 1.0
    seen = scores / scale * (100 if response.higher_is_better[task] else -100)
    known = have > 0
    columns = np.concatenate(
        [fold[:, None] == np.unique(fold), np.log(counts[:, known] / have[known])], axis=1
    )
    spare = len(seen) - columns.shape[1]
    if spare < 1:
        what = (
            f"{len(seen)} cannot tell {columns.shape[1]} numbers apart; slopes need"
            f" {columns.shape[1] + 1} or more"
        )
        raise InputError([Mistake("trainings", what)])
    inverse = np.linalg.pinv(columns.T @ columns)
    found = inverse @ columns.T @ seen
    spread = math.sqrt(float(np.sum((seen - columns @ found) ** 2)) / spare)
    root = np.linalg.cholesky(inverse + 1e-12 * np.trace(inverse) * np.eye(len(inverse)))
    noise = (
        rng.normal(size=(draws, len(found)))
        @ root.T
        * spread
        / np.sqrt(rng.chisquare(spare, draws) / spare)[:, None]
    )
    noise -= noise.mean(axis=0) if draws > 1 else noise
    slopes[:, known] = (found + noise)[:, -int(known.sum()) :]
    return slopes


METHOD = BySlopes()
