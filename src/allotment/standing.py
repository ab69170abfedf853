"""How a plan stands beside another: the one value that every page and every sentence goes by."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

LIKELY = 0.8
"""The least chance of being ahead with which a plan is likely better although its interval holds 0;
below it the difference is called noise."""
LEAST = 0.1
"""The smallest mean lead, in % of D_T, that is worth another plan: nobody will notice less. A lead
that is counted in labels has no such limit, since nobody knows how much score a label is."""
PERCENT = "%"
"""What leads are counted in unless a method says otherwise."""
UNITS = {PERCENT: "% of score"}
"""What leads are counted in, where a method's own word is not enough."""


class Standing(StrEnum):
    """How a plan stands beside another one, which is equal budget unless another is named.

    `of_outlook` decides it from what estimates expect, `of_span` from what was measured of both.
    """

    BETTER = "better"
    """the whole interval lies above 0"""
    LIKELY_BETTER = "likely better"
    """the interval holds 0, but the chance to be ahead is `LIKELY` or more"""
    EQUAL = "equal"
    """the difference cannot be told from noise"""
    TOO_LITTLE = "too little to win"
    """it is, or is likely, ahead, but by less than `LEAST`"""
    WORSE = "worse"
    """the whole interval lies below 0"""
    UNKNOWN = "unknown"
    """nothing was measured that would say"""

    @property
    def is_ahead(self) -> bool:
        """Whether the plan is to be preferred."""
        return self in (Standing.BETTER, Standing.LIKELY_BETTER)

    @classmethod
    def of_outlook(
        cls, mean: float, low: float, high: float, chance: float, unit: str = PERCENT
    ) -> Standing:
        """What draws of the lead say, of which `low` and `high` are the interval.

        >>> Standing.of_outlook(0.3, low=-0.5, high=0.7, chance=0.85).value
        'likely better'
        >>> Standing.of_outlook(0.05, low=-0.5, high=0.7, chance=0.85).value
        'too little to win'
        """
        if high < 0:
            return cls.WORSE
        if mean <= 0 or (low <= 0 and chance < LIKELY):
            return cls.EQUAL
        if unit == PERCENT and mean < LEAST:
            return cls.TOO_LITTLE
        return cls.BETTER if low > 0 else cls.LIKELY_BETTER

    @classmethod
    def of_span(cls, span: Sequence[float] | None) -> Standing:
        """What retrainings showed: (mean, low, high) of the lead; None where it is not known."""
        if span is None:
            return cls.UNKNOWN
        _, low, high = span
        if low > 0:
            return cls.BETTER
        return cls.WORSE if high < 0 else cls.EQUAL
