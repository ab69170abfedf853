"""Sums of many numbers that no order of adding shows in: exact, and rounded once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LARGEST = 2.0**900
"""below which numbers can be added without a look at overflow"""
ADDED_AT_ONCE = 2**14
"""numbers, as many as a processor has near it"""


def add_exactly(values: NDArray[np.float64]) -> float:
    """What `math.fsum` gives of finite numbers, to the last bit; of many of them far faster.

    >>> add_exactly(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    peak = float(np.abs(values).max(initial=0.0))
    if not peak < LARGEST:
        return math.fsum(values.tolist())
    sums: list[float] = []
    for at in range(0, len(values), ADDED_AT_ONCE):
        sums += _add_some(values[at : at + ADDED_AT_ONCE])
    return math.fsum(sums)


def _add_some(values: NDArray[np.float64]) -> list[float]:
    """A few numbers that have the same sum, exactly.

    All are cut at one place into upper and lower parts (Rump, Ogita and Oishi, 2008). Upper parts
    have so few digits that their sum is exact in any order; then come those of what is left, until
    nothing is.
    """
    rest, upper, sums = values.astype(np.float64), np.empty(len(values)), []
    room = (len(rest) + 2).bit_length()
    while peak := float(np.abs(rest, out=upper).max()):
        cut = math.ldexp(1.0, math.frexp(peak)[1] + room)
        np.add(rest, cut, out=upper)
        upper -= cut
        rest -= upper
        sums.append(float(upper.sum()))
    return sums
