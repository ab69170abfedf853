"""Plans of a setting: baselines, and those that every campaign trains out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from allotment.corpus.setting import Setting
from allotment.plan import baselines
from allotment.problem import Problem, Task

Counts = tuple[int, ...]
"""labels to buy, in the order of a setting's tasks"""
NEUTRAL_PLAN, EQUAL_BUDGET, EQUAL_IMAGES = "neutral", "equal budget", "equal images"
"""baselines by name"""
BEFORE = 4
"""trainings on the labels at hand alone, whose mean is what gains are counted from"""
PURCHASE = 0
"""in which a plan is trained out, another one in each campaign"""
AGAIN = 1
"""the purchase in which the neutral plan is trained once more, for a comparison of a plan with
itself"""
PLANS = 36
"""of a surface"""


def make_problem(setting: Setting) -> Problem:
    """What is to be planned, the same in all campaigns of a setting."""
    rows = zip(setting.tasks, setting.costs, setting.have, setting.pool, strict=True)
    tasks = [Task(name, cost=cost, have=have, pool=pool) for name, cost, have, pool in rows]
    return Problem(tasks, budget=setting.budget)


def order_counts(setting: Setting, counts: Mapping[str, int]) -> Counts:
    return tuple(int(counts[task]) for task in setting.tasks)


@cache
def list_baselines(setting: Setting) -> dict[str, Counts]:
    """Plans that train nothing, by name."""
    found = baselines(make_problem(setting))
    return {name: order_counts(setting, counts) for name, counts in found.items()}


@cache
def list_surface(setting: Setting) -> list[Counts]:
    """The plans that every campaign trains out: baselines, single tasks, halves of the money on
    two tasks, neutral without one task, and mixtures by chance."""
    found = dict.fromkeys(list_baselines(setting).values())
    size = len(setting.tasks)
    neutral = list_baselines(setting)[NEUTRAL_PLAN]
    money = np.array(neutral) * np.array(setting.costs)
    shares = []
    for task in range(size):
        rest = np.where(np.arange(size) == task, 0, money + 1e-9)
        shares.append(rest / rest.sum())
    shares += [
        np.isin(np.arange(size), pair) / 2 for pair in itertools.combinations(range(size), 2)
    ][: max(0, PLANS // 2 - len(found) - size)]
    rng = np.random.default_rng([size, setting.budget])
    for each in shares:
        found[spend(setting, each)] = None
    while len(found) < PLANS:
        wide = rng.dirichlet(np.full(size, 0.7))
        near = rng.dirichlet(np.maximum(money / money.sum(), 0.02) * 4 * size)
        found[spend(setting, wide if rng.random() < 0.5 else near)] = None
    return list(found)[:PLANS]


def spend(setting: Setting, shares: NDArray[np.float64]) -> Counts:
    """Labels for these shares of the money; what a task has no labels for goes to the others."""
    costs, pool = np.array(setting.costs), np.array(setting.pool)
    counts, money, open_ = np.zeros(len(costs), dtype=int), float(setting.budget), shares > 0
    for _ in range(len(costs)):
        if not open_.any():
            break
        given = np.where(open_, shares, 0)
        wanted = np.floor(money * given / given.sum() / costs).astype(int)
        counts += np.minimum(wanted, pool - counts)
        money = setting.budget - float(counts @ costs)
        open_ &= counts < pool
        if money < costs.min():
            break
    return tuple(counts.tolist())


def name_run(counts: Counts, purchase: int) -> str:
    """A plan of a purchase, as a key."""
    return f"{purchase} " + " ".join(map(str, counts))
