"""The paper's way without transfer: I = 1 for every task (Table 3 a)."""

from __future__ import annotations

from allotment.estimates.letter import CURVE_OPTIONS, SCORE_OPTIONS, ToTheLetter
from allotment.estimates.taba import WITHOUT_TRANSFER


class ByTabaAlone(ToTheLetter):
    about = (
        "the paper's without transfer, for comparison: every label helps its own task alone (I = 1)"
    )
    ablates = "taba"
    options = (*CURVE_OPTIONS, *SCORE_OPTIONS)
    estimator = WITHOUT_TRANSFER


METHOD = ByTabaAlone()
