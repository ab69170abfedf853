"""What can be planned with where nothing is measured: every task is alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from allotment.estimates import levels
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import Method, Plain
from allotment.estimates.request import Request, Work
from allotment.estimates.response import Response
from allotment.gains import Curve
from allotment.plan import neutral_gains
from allotment.problem import Problem


class Neutral(Method):
    about = (
        "no training: every task is worth the same, and a label the less the more there are of its"
        " kind"
    )
    trainings = 0
    options = ("draws",)

    def weigh(self, request: Request) -> Work:
        return Work(0, 0, 0, 0)

    def jobs(self, request: Request) -> list[Plain]:
        return []

    def do(self, request: Request, job: Plain) -> Plain:
        raise NotImplementedError("it has no jobs")

    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        have = tuple(len(labels) for labels in request.labels.values())
        nothing = np.zeros((0, len(have)))
        blank = Response(
            tuple(request.labels),
            have,
            nothing.astype(np.int64),
            nothing,
            nothing,
            (True,) * len(have),
        )
        found = levels.fit(blank, seed=request.seed, **request.options)
        return replace(found, about={"unit": "%"})

    def assume(self, problem: Problem) -> Mapping[str, Curve]:
        return neutral_gains(problem)


METHOD = Neutral()
