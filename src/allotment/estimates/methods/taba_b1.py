"""The paper's way with b = 1 for every task (Table 3 b)."""

from __future__ import annotations

from allotment.estimates.letter import PROBE_OPTIONS, SCORE_OPTIONS, ToTheLetter


class ByRate1(ToTheLetter):
    about = "the paper's without curves, for comparison: b = 1 for every task"
    ablates = "taba"
    options = (*PROBE_OPTIONS, *SCORE_OPTIONS)
    rate = 1.0


METHOD = ByRate1()
