"""Estimates from the simplest comparison there is: all labels at hand, or half of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.data.labels import Labels, shuffle
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import Method
from allotment.estimates.request import Request, Work
from allotment.learners.learner import labelled, train

EXPONENT = 0.4
DRAWS = 200


class Halves(Method):
    """Pairs of trainings: what half of the labels cost a task is the drop of a power law."""

    about = "what half of the labels would cost each task, as a power law"
    trainings = 12
    options = ("exponent",)

    def least(self, tasks: int, folds: int) -> int:
        return 4  # two pairs, to see how much they differ

    def weigh(self, request: Request) -> Work:
        steps = mini_batches = scores = 0
        for pair in range(request.trainings // 2):
            learner, labels = request.parts[pair % request.folds]
            for mine in (labels, halve(labels, request.seed + pair)):
                here = learner.steps(mine)
                steps += here
                mini_batches += here * len(labelled(learner, mine))
            scores += 2 * len(learner.tasks)
        return Work(request.trainings // 2 * 2, steps, mini_batches, scores)

    def jobs(self, request: Request) -> list[dict[str, Any]]:
        return [{"pair": pair, "takes": 2} for pair in range(request.trainings // 2)]

    def do(self, request: Request, job: dict[str, Any]) -> dict[str, Any]:
        pair, seed = job["pair"], request.seed + job["pair"]
        learner, labels = request.parts[pair % request.folds]
        gaps: dict[str, float | None] = {}
        whole = train(learner, labels, seed)
        half = train(learner, halve(labels, seed), seed)
        for task in labels:
            before, after = (learner.score(state, task) for state in (half, whole))
            gap = after.gain_over(before) if len(labels[task]) > 1 else math.nan
            gaps[task] = gap if math.isfinite(gap) else None
        return {"gaps": gaps}

    def conclude(
        self,
        request: Request,
        results: Sequence[dict[str, Any]],
        earlier: Sequence[Estimates] = (),
    ) -> Estimates:
        gaps = {task: [each["gaps"][task] for each in results] for task in results[0]["gaps"]}
        have = [max(len(request.labels[task]), 1) for task in gaps]
        exponent = float(request.options.get("exponent", EXPONENT))
        rng = np.random.default_rng(request.seed)
        worths = np.zeros((DRAWS, len(have), len(have)))
        for at, known in enumerate(gaps.values()):
            there = [gap for gap in known if gap is not None]
            if len(there) > 1:
                error = float(np.std(there, ddof=1)) / math.sqrt(len(there))
                drop = (have[at] / 2) ** -exponent - have[at] ** -exponent
                worths[:, at, at] = rng.normal(float(np.mean(there)), error, DRAWS) / drop
        return Estimates(
            tuple(gaps),
            tuple(len(request.labels[task]) for task in gaps),
            worths,
            np.full((DRAWS, len(have)), exponent),
            about={"trainings": 2 * len(results), "measured": {"gaps": gaps}},
        )


def halve(labels: Labels, seed: int) -> Labels:
    """Half of each task's labels, rounded up."""
    kept = {}
    for task, mine in labels.items():
        chosen = shuffle(mine.instances, "halves", seed, task)[: (len(mine) + 1) // 2]
        kept[task] = mine.keep(np.isin(mine.instances, chosen))
    return Labels(kept)


METHOD = Halves()
