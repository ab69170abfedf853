"""Quantiles of distributions that intervals are made of."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=256)
def student(tail: float, free: float) -> float:
    """The value that Student's t with `free` degrees of freedom exceeds with chance `tail`.

    >>> round(student(0.05, 1), 2), round(student(0.05, 9), 2), round(student(0.05, 60), 2)
    (6.31, 1.83, 1.67)
    """
    angle = np.linspace(0.0, math.pi / 2, 20_001)  # t = sqrt(free) tan(angle)
    density = np.cos(angle) ** (free - 1)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(free) * math.tan(float(np.interp((1 - 2 * tail) * below[-1], below, angle)))
