"""Scores of trainings on parts of the labels, of tasks of which is known what they are."""

from __future__ import annotations

import numpy as np

from allotment.data.labels import Labels
from allotment.estimates.design import design
from allotment.estimates.response import Response

PLANTED = ("live", "live too", "dead", "saturated")


def planted(noise: float, seed: int, higher: bool = True, trainings: int = 40) -> Response:
    """Scores of power laws with exponent 0.4 and no transfer: two live tasks, a dead and a
    saturated one."""
    labels = Labels(dict.fromkeys(PLANTED, range(400)))
    chosen, rng = design(labels, trainings, seed), np.random.default_rng(seed)
    level, room = np.array([0.7, 0.7, 0.5, 0.95]), np.array([0.14, 0.14, 0.0, 0.005])
    scores = (
        level
        + room * (1 - (chosen.counts / 400) ** -0.4)
        + noise * rng.normal(size=chosen.counts.shape)
    )
    start = 0.5 + noise * rng.normal(size=(8, 4))
    skill, error = (scores - 0.5) / 0.5, np.full(scores.shape, 0.05 + noise)
    if not higher:
        scores, start = 1.2 - scores, 1.2 - start
    up = (higher,) * 4
    return Response(
        PLANTED, (400,) * 4, chosen.counts, scores, start, up, skill=skill, skill_error=error
    )
