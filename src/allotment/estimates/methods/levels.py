"""Trainings on subsets of the labels at hand, by which tasks are told apart that learn and that do
not."""

from __future__ import annotations

from typing import Any

from allotment.estimates import levels
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.estimates import Estimates
from allotment.estimates.methods.response import ByResponse
from allotment.estimates.response import Response


class ByLevels(ByResponse):
    about = "the trainings of response; how far tasks have come counts for more than their slopes"
    options = ("draws", "best", "beliefs", "together")

    def fit(self, response: Response, is_later: bool, **options: Any) -> Estimates:
        if is_later:
            options["beliefs"] = (options.get("beliefs") or Beliefs()).later
        return levels.fit(response, **options)


METHOD = ByLevels()
