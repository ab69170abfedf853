"""Trainings on subsets of the labels at hand, which tell tasks that learn from those that do
not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from allotment.errors import reading
from allotment.estimates import levels
from allotment.estimates.chunks import InChunks, join_chunks
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import Plain
from allotment.estimates.request import Request
from allotment.estimates.response import Response, adapt, join


class ByResponse(InChunks):
    about = "trainings on parts of the labels at hand: how far tasks have come, and rise"
    trainings = 60
    # the first one weighed slopes by a prior of two data sets; its trainings are the same
    conclusion = 2
    options = ("draws", "best", "beliefs", "together")
    joins_rounds = True

    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        response = join_chunks(results)
        options = {key: each for key, each in request.options.items() if key != "together"}
        rounds = [*(adapt(_find_response(each), response) for each in earlier), response]
        found = levels.fit(join(rounds), seed=request.seed, **options)
        about = dict(found.about) | {"trainings": request.trainings, "folds": request.folds}
        about |= {"unit": "%", "measured": {"response": response.to_dict()}}
        return replace(found, about=about)


@reading("the estimates of an earlier round")
def _find_response(estimates: Estimates) -> Response:
    return Response.from_dict(estimates.about["measured"]["response"])


METHOD = ByResponse()
