"""Whether one way to plan is better than another, over data sets that nobody tuned on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allotment.corpus.surface import Surface
from allotment.quantiles import student

INTERVAL_LEVEL = 0.95
"""of intervals"""


@dataclass(frozen=True)
class Difference:
    """By how many points one way is ahead of another."""

    mean: float
    """over data sets, each of which counts once"""
    reach: float
    """half of the interval: Student's t over the means of data sets"""
    by_cluster: Mapping[str, float]

    @property
    def verdict(self) -> str:
        """better, worse, or open: what the interval allows to say."""
        if not math.isfinite(self.reach) or abs(self.mean) <= self.reach:
            return "open"
        return "better" if self.mean > 0 else "worse"

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.reach:.2f}" if self.by_cluster else "-"


def compare(differences: Mapping[str, tuple[str, float]]) -> Difference:
    """From the difference in each setting, with its data set, to one of all.

    Settings of one data set share their tasks and rows, so that it is data sets that are counted.
    """
    clusters: dict[str, list[float]] = {}
    for cluster, value in differences.values():
        if math.isfinite(value):  # else too little of the setting is trained out
            clusters.setdefault(cluster, []).append(value)
    if not clusters:
        return Difference(math.nan, math.inf, {})
    means = {name: float(np.mean(each)) for name, each in sorted(clusters.items())}
    values = np.array(list(means.values()))
    reach = math.inf
    if len(values) > 1:
        edge = student((1 - INTERVAL_LEVEL) / 2, len(values) - 1)
        reach = edge * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Difference(float(values.mean()), reach, means)


def compare_settings(
    mine: Mapping[str, float], others: Mapping[str, float], surfaces: Sequence[Surface]
) -> Difference:
    """Of the settings that both have a value of."""
    found = {}
    for surface in surfaces:
        name = surface.setting.name
        if name in mine and name in others:
            found[name] = (surface.setting.cluster, mine[name] - others[name])
    return compare(found)
