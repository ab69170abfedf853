"""Purchases to plan, drawn by seed from stated distributions; no number here was chosen by
looking at what plans score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from allotment.corpus.report import ODD
from allotment.corpus.setting import Setting
from corpus.tables import CLASSES, NAMES, TABLES, find_cluster, open_columns

FOLDER = Path(__file__).parent
"""of the corpus"""
SEED = 20261117
SETTINGS_OF_OPEN, SETTINGS_OF_LOCKED = 4, 5
"""of each table"""
CAMPAIGNS = 8
"""seed sets of a setting"""
TESTED = 0.25
"""of the rows, in each campaign others"""
MOST_TASKS = 8
FEWEST_AT_HAND = 60
MOST_AT_HAND = 0.25
"""of a task's labels in the training rows"""
DEAREST = 30
"""times the cheapest"""
BUYS = (0.5, 4.0)
"""times the labels at hand that the budget pays for"""
POOL = 0.95
"""of the labels that are there can be had: the same in all campaigns, whatever the split"""
MOST_SPENT = 0.7
"""of what the whole pool costs"""


def list_settings(tables: Sequence[str] | None = None) -> list[Setting]:
    """All settings of these tables, or of all; those of locked ones as well: what is asked there
    is no secret, only what plans score is."""
    found = []
    for place, (name, table) in enumerate(TABLES.items()):
        count = SETTINGS_OF_LOCKED if table.is_locked else SETTINGS_OF_OPEN
        if tables is None or name in tables:
            found += [draw_setting(name, place, number) for number in range(count)]
    return found


@cache
def draw_setting(table: str, place: int, number: int) -> Setting:
    """One setting: half of them have an odd task, of each kind in turn, and about half have as many
    labels of all tasks."""
    rng = np.random.default_rng([SEED, place, number])
    columns = open_columns(table)
    known = {
        task: int(np.isfinite(column).sum() * (1 - TESTED) * POOL)
        for task, column in columns.labels.items()
    }
    is_odd = number % 2 == 1 or (number == 4 and place % 2 == 0)
    odd = ODD[(place + number // 2) % len(ODD)] if is_odd else ""
    most = min(MOST_TASKS - bool(odd), len(known))
    fewest = min(2, most)
    real = sorted(
        rng.choice(sorted(known), size=int(rng.integers(fewest, most + 1)), replace=False).tolist()
    )
    source = str(rng.choice(real)) if odd else ""
    tasks = (*real, NAMES[odd]) if odd else tuple(real)
    there = [known.get(task, known.get(source, 0)) for task in tasks]
    have = _draw_have(rng, there, is_equal=number % 4 < 2)
    costs = _draw_costs(rng, len(tasks))
    if odd == "copy":  # cheap beside a dear one
        costs[tasks.index(source)] = max(max(costs), 4)
        costs[-1] = max(1, costs[tasks.index(source)] // int(rng.integers(4, 17)))
    pool = [each - mine for each, mine in zip(there, have, strict=True)]
    times = math.exp(rng.uniform(*np.log(BUYS)))
    spent = sum(cost * mine for cost, mine in zip(costs, have, strict=True))
    whole = sum(cost * each for cost, each in zip(costs, pool, strict=True))
    budget = int(min(times * spent, MOST_SPENT * whole))
    return Setting(
        f"{table}-{number}", table, tasks, tuple(costs), tuple(have), tuple(pool), budget, odd,
        source, find_cluster(table), TABLES[table].is_locked, TABLES[table].kind == CLASSES,
    )  # fmt: skip


def _draw_have(rng: np.random.Generator, there: Sequence[int], is_equal: bool) -> list[int]:
    """Labels at hand, uniform in their logarithm."""
    most = [max(FEWEST_AT_HAND, int(MOST_AT_HAND * each)) for each in there]
    if is_equal:
        return [_draw_log(rng, FEWEST_AT_HAND, min(most))] * len(there)
    return [_draw_log(rng, FEWEST_AT_HAND, each) for each in most]


def _draw_costs(rng: np.random.Generator, count: int) -> list[int]:
    """One in four settings has the same price for all."""
    if rng.random() < 0.25:
        return [1] * count
    dearest = math.exp(rng.uniform(0, math.log(DEAREST)))
    places = rng.uniform(size=count)
    places = (places - places.min()) / max(float(np.ptp(places)), 1e-9)
    return [max(1, round(dearest**place)) for place in places]


def _draw_log(rng: np.random.Generator, low: int, high: int) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))
