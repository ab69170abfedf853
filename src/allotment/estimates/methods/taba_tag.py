"""The paper's way with TAG's affinities in place of its own transfer (Table 3 a)."""

from __future__ import annotations

from allotment.estimates.letter import ToTheLetter
from allotment.estimates.transfer import BY_SOURCES


class ByTag(ToTheLetter):
    about = (
        "the paper's with TAG's affinities, for comparison: losses, after steps on the source alone"
    )
    ablates = "taba"
    estimator = BY_SOURCES


METHOD = ByTag()
