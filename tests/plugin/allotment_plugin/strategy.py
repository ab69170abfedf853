"""A strategy: the first instances in alphabetical order."""

from __future__ import annotations

from allotment.orders.strategy import Demand


class Alphabetical:
    """Takes what comes first, for every task."""

    def select(self, demand: Demand) -> dict[str, list[str]]:
        chosen = {}
        for task, count in demand.counts.items():
            chosen[task] = sorted(demand.candidates[task])[:count]
        return chosen


STRATEGY = Alphabetical()
