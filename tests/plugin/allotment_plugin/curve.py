"""A curve as somebody else would write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import allotment as al


@dataclass(frozen=True)
class SquareRoot(al.Curve):
    """g(N) = worth (sqrt(have + N) - sqrt(have))."""

    worth: float
    have: float = 0.0
    family = "sqrt"

    def __post_init__(self) -> None:
        self.check(worth=(0.0, 1e9), have=(0.0, 1e12))

    def total(self, count: Any) -> Any:
        return self.worth * np.sqrt(self.have + count)
