"""The paper's Algorithm 1 to the letter, and what is left of it where a part is taken out (Table
3)."""

from __future__ import annotations

from typing import Any, ClassVar

from allotment.estimates.options import RATES_BETWEEN
from allotment.estimates.paper import InPieces, Paper, descend, find_pool
from allotment.estimates.probes import AHEAD
from allotment.estimates.request import Request
from allotment.estimates.scoring import Scoring, find_scoring
from allotment.estimates.stopping import STEPS_BETWEEN_PROBES
from allotment.estimates.taba import WITHOUT_TRANSFER

PAPER_RUNS = 10
"""trainings whose transfer is averaged: the paper's on VOC"""
RUNS_BY_NETWORK = {"taskonomy-paper": 5}
"""likewise, where the paper has another number"""
USUAL_REPETITIONS = 3
"""trainings at each size of a curve; the paper does not say. Fewer could not be judged"""
RUNS_OPTION = "runs"
PROBE_OPTIONS = ("every", "ahead", RUNS_OPTION)
CURVE_OPTIONS = ("sizes", "repetitions", "ensemble", "mode", "pool")
SCORE_OPTIONS = ("validation", "score_on", "draws")
RATES_OPTION, TRIPLES_OPTION = "rates", "triples"
"""of the paper's future work"""


class ToTheLetter(InPieces):
    """All seed labels train, others score; transfer is the mean of the ratios of Eq. 5, and rates
    are what the L1 descent of Eq. 7 finds, whatever that is."""

    trainings = 100
    """which stand for the paper's own numbers; fewer are shared as those of other methods are"""
    ends_early = False
    options: ClassVar[tuple[str, ...]] = (*PROBE_OPTIONS, *CURVE_OPTIONS, *SCORE_OPTIONS)
    estimator: ClassVar[str] = "paper"
    """of the transfer"""
    rate: ClassVar[float | None] = None
    """b of every task, where none is measured"""

    def follow(self, request: Request) -> Paper:
        scoring = find_scoring(request)
        how = {"letter": True, "fallback": False, "rate": self.rate}
        pool = find_pool(request, scoring.instances) if self.rate is None else None
        mode = request.options.get("mode") or "hard"
        usual = self._settle(request, scoring)
        between = request.options.get(RATES_OPTION) == RATES_BETWEEN
        triples = bool(request.options.get(TRIPLES_OPTION))
        what = (pool, mode, scoring, usual, between, triples)
        return Paper(request, self.estimator, descend, how, *what)

    def _settle(self, request: Request, scoring: Scoring) -> dict[str, Any]:
        """The paper's numbers where it has any; with fewer trainings at most these."""
        usual: dict[str, Any] = {"most_runs": PAPER_RUNS, "by_repetition": True}
        if self.estimator != WITHOUT_TRANSFER:
            ahead = request.options.get("ahead") or AHEAD
            room = scoring.learner.steps(scoring.labels) - ahead
            usual["every"] = max(1, min(STEPS_BETWEEN_PROBES, room))
        if request.trainings >= self.trainings:
            usual |= {"runs": PAPER_RUNS, "repetitions": USUAL_REPETITIONS}
        return usual
