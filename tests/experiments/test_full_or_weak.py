"""A surface that others trained out: IoU of masks after training on shares of class labels and of
masks (the code of the CVPR 2023 paper 'Full or Weak annotations?'), one training for each row."""

from __future__ import annotations

import csv
import itertools
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pytest

from allotment.arrays import Array
from allotment.corpus.plans import Counts
from allotment.corpus.setting import Setting
from allotment.corpus.surface import Surface
from allotment.corpus.ways import Choice, Knowledge
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.estimates.methods.slopes import fit_slopes
from allotment.estimates.response import Response
from allotment.plan import allocate, baselines
from allotment.problem import Problem, Task

PATH = Path(os.environ.get("ALLOT_TEST_DATA", "nowhere"), "curves", "full-or-weak.csv")
pytestmark = pytest.mark.skipif(not PATH.is_file(), reason="ALLOT_TEST_DATA has no curves")

TASKS = ("classes", "masks")
PER_SHARE = 10
"""labels that 1 % of the images are taken for"""
LEAST, WHOLE = 4 * PER_SHARE, 100 * PER_SHARE
RATIOS = (1, 3, 10, 20, 30, 50, 100)
"""of prices"""
BUDGETS = (300, 1200, 4800)
"""in class labels"""


@cache
def read_rows() -> dict[Counts, float]:
    """IoU by labels."""
    with PATH.open(newline="", encoding="utf-8") as file:
        return {
            (PER_SHARE * int(row["class_share"]), PER_SHARE * int(row["mask_share"])): float(
                row["iou"]
            )
            for row in csv.DictReader(file)
        }


@dataclass(frozen=True)
class OthersSurface(Surface):
    """Rows with at least as many labels as are at hand, in % of the lowest IoU."""

    @cached_property
    def plans(self) -> tuple[Counts, ...]:
        least = self.setting.have
        return tuple(
            (classes - least[0], masks - least[1])
            for classes, masks in read_rows()
            if classes >= least[0] and masks >= least[1]
        )

    def gain(self, campaign: int, plan: Counts) -> float:
        least, rows = self.setting.have, read_rows()
        found = rows.get((least[0] + plan[0], least[1] + plan[1]), math.nan)
        return 100 * (found / min(rows.values()) - 1)

    error_of_lead = 0.0
    kept_ways: Collection[str] = ()

    def recall(self, campaign: int, way: str) -> Choice | None:
        return None

    def know(self, campaign: int) -> Knowledge | None:
        return None


@cache
def open_surface(have: int) -> OthersSurface:
    rest = (WHOLE - have,) * 2
    setting = Setting("others", "others", TASKS, (1, 1), (have, have), rest, 2 * WHOLE)
    return OthersSurface(setting, (0,))


def measure(have: int, most: int = WHOLE) -> Response:
    """Rows with at most so many labels, as trainings; classes have no score of their own."""
    rows = {labels: value for labels, value in read_rows().items() if max(labels) <= most}
    scores = [[np.nan, value] for value in rows.values()]
    untrained = np.full((1, 2), np.nan)
    return Response(
        TASKS, (have, have), np.array(list(rows)), np.array(scores), untrained, (True, True)
    )


def make_problem(have: int, ratio: int, budget: int) -> Problem:
    """What is planned: masks alone count."""
    rest = WHOLE - have
    classes = Task("classes", cost=1, have=have, pool=rest, weight=0)
    return Problem([classes, Task("masks", cost=ratio, have=have, pool=rest)], budget=budget)


def find_best_row(surface: OthersSurface, problem: Problem) -> Counts:
    """Of all rows that the budget can buy."""
    can = [plan for plan in surface.plans if problem.price(name(plan)) <= problem.budget]
    return max(can, key=lambda plan: surface.gain(0, plan))


def name(plan: Counts) -> dict[str, int]:
    return dict(zip(TASKS, plan, strict=True))


def order(counts: Mapping[str, int]) -> Counts:
    return tuple(counts[task] for task in TASKS)


def lead(estimates: Estimates, have: int) -> dict[str, Array]:
    """By how many % of IoU the plan is ahead of the best row and of each baseline, for all prices
    and budgets."""
    surface, found = open_surface(have), dict[str, list[float]]()
    for ratio, budget in itertools.product(RATIOS, BUDGETS):
        problem = make_problem(have, ratio, budget)
        mine = 100 + surface.read(order(allocate(problem, estimates).counts))
        others = {each: order(counts) for each, counts in baselines(problem).items()}
        others["best row"] = find_best_row(surface, problem)
        for each, plan in others.items():
            found.setdefault(each, []).append(100 * (mine / (100 + surface.read(plan)) - 1))
    return {each: np.array(values) for each, values in found.items()}


def test_rows_are_read_from_the_others() -> None:
    surface = open_surface(LEAST)
    assert len(surface.plans) == 100
    assert surface.error < 0.07 * np.ptp(surface.means)


def test_the_best_mix_changes_with_the_price() -> None:
    surface, curves = open_surface(LEAST), fit_slopes(measure(LEAST))
    mixes = []
    for ratio in RATIOS:
        problem = make_problem(LEAST, ratio, 1200)
        classes, masks = find_best_row(surface, problem)
        assert (classes > masks) == (ratio > 3)
        planned = allocate(problem, curves).counts
        mixes.append(planned["classes"] / planned["masks"])
    assert mixes[1:] == sorted(mixes[1:])  # at 1:1 there are no more masks to buy
    assert mixes[1] < 0.2 < 5 < mixes[-1]


def test_fitted_curves_plan_nearly_as_well_as_the_best_row() -> None:
    found = lead(fit_slopes(measure(LEAST)), LEAST)
    assert found["best row"].mean() > -1
    assert found["best row"].min() > -6
    assert found["all on masks"].mean() > 0.5
    assert found["all on classes"].mean() > 15
    assert found["equal budget"].mean() > 1


def test_few_labels_tell_what_more_of_them_will_do() -> None:
    """A tenth of the labels, a sixth of the rows: what somebody could know beforehand."""
    tenth = WHOLE // 10
    found = lead(fit(measure(tenth, tenth)), tenth)
    assert found["best row"].mean() > -1
    assert found["best row"].min() > -6.5
    assert found["all on masks"].mean() > -0.1
    assert found["all on classes"].mean() > 8
    assert found["equal budget"].mean() > 1
