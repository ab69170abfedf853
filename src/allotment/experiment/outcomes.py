"""What plans came to: gains over the labels at hand, paired, with intervals over seed sets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array
from allotment.corpus.judge import INTERVAL_LEVEL
from allotment.experiment.case import Case
from allotment.experiment.record import Record
from allotment.experiment.work import Purchase, name_training
from allotment.quantiles import student

POWER = 0.8
"""with which a difference is seen that is as large as the smallest one that can be told"""

Plans = Mapping[int, Mapping[str, int]]
"""of each seed set, the labels to buy: a plan that was measured differs between them"""


@dataclass(frozen=True)
class Mean:
    """A mean over seed sets and how far it may be off."""

    value: float
    reach: float
    """half of the interval: Student's t over seed sets, or over purchases where there is one seed
    set; not finite where there is too little"""
    spread: float
    """standard deviation over all purchases, as the paper prints it"""

    @property
    def low(self) -> float:
        return self.value - self.reach

    @property
    def high(self) -> float:
        return self.value + self.reach

    @property
    def smallest_seen(self) -> float:
        """The difference that would have been told from 0 in four of five repetitions."""
        return self.reach * (1 + POWER_SHARE)

    def spell(self, digits: int) -> str:
        if not math.isfinite(self.reach):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} ± {self.reach:.{digits}f}"

    def __str__(self) -> str:
        return self.spell(2)


POWER_SHARE = 0.43
"""of an interval's half that must lie between it and a true difference, for a power of 0.8: 0.84
over 1.96"""


def find_mean(values: Array) -> Mean:
    """Of values by seed set and purchase; what is missing is left out with its seed set."""
    values = np.asarray(values, dtype=float)
    rows = values[np.isfinite(values).all(axis=1)]
    if not len(rows):
        return Mean(math.nan, math.inf, math.nan)
    units = rows.mean(axis=1) if len(rows) > 1 else rows[0]
    spread = float(rows.std(ddof=1)) if rows.size > 1 else math.nan
    reach = math.inf
    if len(units) > 1:
        edge = student((1 - INTERVAL_LEVEL) / 2, len(units) - 1)
        reach = abs(edge) * float(units.std(ddof=1)) / math.sqrt(len(units))
    return Mean(float(units.mean()), reach, spread)


class Outcomes:
    """Scores of the trained purchases of a case."""

    def __init__(self, case: Case, record: Record):
        self.case, self.record = case, record

    def list_purchases(
        self, plans: Plans, same: bool = False, tasks: tuple[str, ...] = ()
    ) -> list[Purchase]:
        """Every purchase of a plan."""
        return [
            Purchase(seed_set, purchase, counts, same, tasks)
            for seed_set, counts in sorted(plans.items())
            for purchase in range(self.case.purchases)
        ]

    def repeat(self, counts: Mapping[str, int]) -> dict[int, Mapping[str, int]]:
        """The same labels in every seed set."""
        return dict.fromkeys(range(self.case.seed_sets), counts)

    @property
    def nothing(self) -> dict[int, Mapping[str, int]]:
        """The labels at hand alone; its purchases differ in the seed of their training."""
        return self.repeat(dict.fromkeys(self.case.tasks, 0))

    def find_scores(self, plans: Plans, same: bool = False, tasks: tuple[str, ...] = ()) -> Array:
        """[seed set, purchase, task]; not a number where something was not trained."""
        wanted = tasks or self.case.tasks
        shape = self.case.seed_sets, self.case.purchases, len(wanted)
        found = np.full(shape, np.nan)
        for each in self.list_purchases(plans, same, tasks):
            job = name_training(self.case, each)
            result = self.record.get(job.kind, job.needs)
            if result is not None:
                row = [result["metrics"][task] for task in wanted]
                found[each.seed_set, each.purchase] = [
                    np.nan if value is None else value for value in row
                ]
        return found

    def points_up(self, task: str) -> bool:
        """Whether a higher score of the task is better."""
        for _, result in self.record.list_results("training"):
            if task in result["higher"]:
                return bool(result["higher"][task])
        return True

    def find_gains(self, plans: Plans, same: bool = False, tasks: tuple[str, ...] = ()) -> Array:
        """[seed set, purchase, task]: D_i in %, over the mean score that training all tasks on the
        labels at hand of the same seed set gives (P17)."""
        wanted = tasks or self.case.tasks
        places = [self.case.tasks.index(task) for task in wanted]
        before = self.find_scores(self.nothing).mean(axis=1, keepdims=True)[:, :, places]
        signs = np.array([1.0 if self.points_up(task) else -1.0 for task in wanted])
        scores = self.find_scores(plans, same, tasks)
        before = np.where(before == 0, np.nan, before)  # over a score of 0 there is no share
        return np.asarray(100 * signs * (scores - before) / np.abs(before))

    def find_totals(self, plans: Plans, same: bool = False) -> Array:
        """[seed set, purchase]: D_T in %, the mean over tasks."""
        return np.asarray(self.find_gains(plans, same).mean(axis=2))
