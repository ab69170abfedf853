"""Trainings on subsets of the labels at hand, weighed against what is known of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from allotment.errors import reading
from allotment.estimates import worth
from allotment.estimates.chunks import InChunks, join_chunks
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import Plain
from allotment.estimates.priors import Prior
from allotment.estimates.request import Request
from allotment.estimates.response import Response, adapt, join


class ByResponse(InChunks):
    about = "trainings on parts of the labels at hand, and a prior over learning curves"
    trainings = 60
    options = ("draws", "best", "prior", "together")
    joins_rounds = True

    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        response = join_chunks(results)
        options = {key: each for key, each in request.options.items() if key != "together"}
        rounds = [*(adapt(_find_response(each), response) for each in earlier), response]
        found = self.fit(join(rounds), bool(earlier), seed=request.seed, **options)
        about = dict(found.about) | {"trainings": request.trainings, "folds": request.folds}
        about |= {"unit": "%", "measured": {"response": response.to_dict()}}
        return replace(found, about=about)

    def fit(self, response: Response, is_later: bool, **options: Any) -> Estimates:
        """What all trainings say, of this round and of those before it."""
        if is_later:
            options["prior"] = (options.get("prior") or Prior()).later
        return worth.fit(response, **options)


@reading("the estimates of an earlier round")
def _find_response(estimates: Estimates) -> Response:
    return Response.from_dict(estimates.about["measured"]["response"])


METHOD = ByResponse()
