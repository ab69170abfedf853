"""Surfaces of the corpus whose truth is known."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from corpus.settings import CAMPAIGNS
from corpus.tables import CLASSES, OPEN, TABLES, find_cluster

from allotment.corpus.kept import Kept
from allotment.corpus.plans import (
    AGAIN,
    BEFORE,
    PURCHASE,
    list_baselines,
    list_surface,
    name_run,
)
from allotment.corpus.setting import Setting
from allotment.corpus.surface import Surface, open_surface

NAMES = ("a", "b", "c")


def make_setting(table: str = "tox21", number: int = 0) -> Setting:
    return Setting(
        f"{table}-{number}",
        table,
        NAMES,
        (1, 2, 4),
        (100, 150, 100),
        (900, 900, 900),
        1200,
        cluster=find_cluster(table),
        higher_is_better=TABLES[table].kind == CLASSES,
    )


def find_truth(
    counts: Sequence[int], worths: Sequence[float], is_class: bool = True
) -> list[float]:
    """Scores of the tasks: a power law in all labels, and some help of the first task's."""
    have = np.array([100, 150, 100])
    gains = have**-0.4 - (have + np.array(counts)) ** -0.4
    more = np.array(worths) * gains + 0.1 * gains[0]
    return list(0.6 * (1 + more if is_class else 1 - more))


def fill(folder: Path, setting: Setting, noise: float, seed: int) -> Kept:
    """What would be kept of a setting whose truth is known."""
    rng = np.random.default_rng(seed)
    worths = rng.uniform(0.3, 1.5, 3)
    kept = Kept(setting.name, folder)
    neutral = list_baselines(setting)["neutral"]
    runs = [((0, 0, 0), each) for each in range(BEFORE)]
    runs += [(plan, PURCHASE) for plan in list_surface(setting)]
    runs.append((neutral, AGAIN))
    for number in range(CAMPAIGNS):
        level, plans = 1 + 0.02 * rng.normal(size=3), {}
        for run in runs:
            true = level * find_truth(run[0], worths, setting.higher_is_better)
            plans[name_run(*run)] = (true * (1 + noise * rng.normal(size=3))).tolist()
        kept.put(number, "plans", plans)
        kept.put(number, "response", make_response())
    return kept


def make_response() -> dict[str, Any]:
    blank = [[None] * 3] * 2
    return {
        "tasks": list(NAMES),
        "have": [100, 150, 100],
        "counts": [[75, 110, 75]] * 2,
        "scores": [[0.6, 0.6, 0.6]] * 2,
        "untrained": blank,
        "higher_is_better": [True] * 3,
        "fold": [0, 1],
        "skill": blank,
        "skill_error": blank,
        "constant": [],
    }


def fill_all(folder: Path, noise: float) -> list[Surface]:
    found = []
    for place, table in enumerate(OPEN):
        for number in range(2):
            setting = make_setting(table, number)
            kept = fill(folder, setting, noise, 10 * place + number)
            surface = open_surface(setting, CAMPAIGNS, kept)
            assert surface is not None
            found.append(surface)
    return found
