"""Ways to plan, each from what one campaign may know."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from allotment.corpus.plans import (
    EQUAL_BUDGET,
    EQUAL_IMAGES,
    NEUTRAL_PLAN,
    Counts,
    list_baselines,
    order_counts,
    spend,
)
from allotment.corpus.setting import Setting
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.estimates.methods.slopes import fit_slopes
from allotment.estimates.response import Response, find_level
from allotment.limits import find_broken
from allotment.plan import Plan, allocate, check_counts, neutral_gains
from allotment.problem import Problem

BASES = (NEUTRAL_PLAN, EQUAL_BUDGET, EQUAL_IMAGES)
"""that train nothing"""
DEFAULT_WAY = "default"
TABA_TRAININGS = {"taba": 30, "taba-mended": 30, "taba-pooled": 30}
"""methods that look into trainings, and how many trainings they are given: about as many seconds as
the default takes"""
FIRST_ROUNDS = ("two rounds", "three rounds")
"""of the first edition, which sized orders otherwise: what it planned is kept, and not made anew"""
WAYS_IN_TRANCHES = {"two tranches": 2, "three tranches": 3}
"""the default in so many orders at most, each as large as a campaign proposes"""
WAYS_BY_TRAININGS = {f"default, {count} trainings": count for count in (5, 10, 30, 100)}
"""the default with fewer trainings than its own, and with more"""
FIRST_EDITION = "default, first edition"
"""which is in the history of the repository alone: what it planned is kept"""
KEPT_WAYS = (
    *TABA_TRAININGS,
    *FIRST_ROUNDS,
    *WAYS_IN_TRANCHES,
    *WAYS_BY_TRAININGS,
    FIRST_EDITION,
)
"""that need trainings or code of their own, so that their plans are kept"""
SOLVED_FROM = 0.97
"""area under the curve from which on a task counts as solved"""
SOLVED_BELOW = 0.1
"""of the best constant's error, likewise"""


@dataclass(frozen=True)
class Knowledge:
    """What a way to plan may look at."""

    setting: Setting
    campaign: int
    problem: Problem
    response: Response
    """the trainings of the default method"""


@dataclass(frozen=True)
class Choice:
    """A plan, and what its maker says of it."""

    counts: Counts
    seconds: float = 0.0
    """of CPU, beyond the trainings"""
    chance: float | None = None
    """that it beats equal budget"""
    span: tuple[float, float, float] | None = None
    """by how many points: low, mean, high"""


Way = Callable[[Knowledge], Choice]


def choose(known: Knowledge, find: Callable[[], Estimates]) -> Choice:
    """The best plan for estimates, with what these say of it."""
    begin = time.process_time()
    estimates = find()
    plan = allocate(known.problem, estimates)
    seconds = time.process_time() - begin
    return tell(known.setting, known.problem, plan, estimates, seconds)


def tell(
    setting: Setting, problem: Problem, plan: Plan, estimates: Estimates, seconds: float
) -> Choice:
    """A plan of estimates as a choice."""
    equal = dict(zip(setting.tasks, list_baselines(setting)["equal budget"], strict=True))
    more = estimates.gain_over(problem, plan, equal)
    low, high = np.quantile(more, [0.05, 0.95])
    return Choice(
        order_counts(setting, plan.counts),
        seconds,
        float(np.mean(more > 0)),
        (float(low), float(more.mean()), float(high)),
    )


def _fit(beliefs: Beliefs, without_skill: bool = False) -> Way:
    def way(known: Knowledge) -> Choice:
        response = known.response
        if without_skill:
            blank = np.full(response.scores.shape, np.nan)
            response = replace(response, skill=blank, skill_error=blank)
        return choose(known, lambda: fit(response, beliefs=beliefs, seed=known.campaign))

    return way


def _by_slopes(known: Knowledge) -> Choice:
    return choose(known, lambda: fit_slopes(known.response, seed=known.campaign))


def _base(name: str) -> Way:
    return lambda known: Choice(list_baselines(known.setting)[name])


def _half_way(known: Knowledge) -> Choice:
    """Between the default and neutral, in money."""
    mine = np.array(WAYS[DEFAULT_WAY](known).counts)
    money = (mine + list_baselines(known.setting)["neutral"]) * np.array(known.setting.costs)
    return Choice(spend(known.setting, money / money.sum()))


def _by_band(known: Knowledge) -> Choice:
    """Neutral without tasks whose score is near chance or near the best possible."""
    dropped = []
    for task in known.setting.tasks:
        level = find_level(known.response, task)
        if level is None:
            continue
        at = known.response.tasks.index(task)
        if known.response.higher_is_better[at]:
            solved = level.score > SOLVED_FROM
        else:
            solved = level.score < SOLVED_BELOW * level.chance
        if level.near_chance or solved:
            dropped.append(task)
    if len(dropped) == len(known.setting.tasks):
        dropped = []
    tasks = [
        replace(task, pool=0) if task.name in dropped else task for task in known.problem.tasks
    ]
    fewer = Problem(tasks, budget=known.problem.budget)
    plan = allocate(fewer, neutral_gains(fewer))
    return Choice(order_counts(known.setting, plan.counts))


UNLIKELY = 1e-9
"""a chance that no evidence makes up for"""
SHIPPED_BELIEFS = Beliefs()
BELIEFS_WITHOUT_TRANSFER = replace(SHIPPED_BELIEFS, no_transfer=1 - UNLIKELY)
BELIEFS_WITHOUT_ODD = replace(SHIPPED_BELIEFS, flat=UNLIKELY)

WAYS: dict[str, Way] = {
    DEFAULT_WAY: _fit(SHIPPED_BELIEFS),
    "slopes": _by_slopes,
    "band, else neutral": _by_band,
    **{name: _base(name) for name in BASES},
    "default, no transfer": _fit(BELIEFS_WITHOUT_TRANSFER),
    "default, no odd states": _fit(BELIEFS_WITHOUT_ODD),
    "default, no skill": _fit(SHIPPED_BELIEFS, without_skill=True),
    "half-way to neutral": _half_way,
}
"""by name; all but those that need trainings of their own"""


def find_way(name: str) -> Way:
    """One of WAYS, or FILE.py:FUNCTION, which gets `Knowledge` and gives labels by task."""
    if name in WAYS:
        return WAYS[name]
    path, _, function = name.partition(":")
    spec = importlib.util.spec_from_file_location("way", Path(path))
    if not function or spec is None or spec.loader is None or not Path(path).is_file():
        known = [*WAYS, *KEPT_WAYS]
        what = f"unknown; {suggest(name, known)}, or code of your own: FILE.py:FUNCTION"
        raise InputError([Mistake(f"method {name!r}", what)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["way"] = module
    spec.loader.exec_module(module)
    plan: Callable[[Knowledge], Mapping[str, int]] | None = getattr(module, function, None)
    if not callable(plan):
        what = f"{path} has no function of this name; write one, def {function}(known)"
        raise InputError([Mistake(f"method {name!r}", what)])
    return lambda known: Choice(_check(name, known, plan(known)))


def _check(name: str, known: Knowledge, given: Mapping[str, int]) -> Counts:
    """Labels that somebody's own code plans: what cannot be bought would be judged too well."""
    where = f"method {name!r} in {known.setting.name}"
    try:
        counts = check_counts(known.problem, given)
    except InputError as error:
        raise InputError(each.under(where) for each in error.mistakes) from None
    if broken := find_broken(known.problem, counts):
        raise InputError(Mistake(where, each) for each in broken)
    return order_counts(known.setting, counts)


def dump(choice: Choice) -> dict[str, Any]:
    return {
        "counts": list(choice.counts),
        "seconds": choice.seconds,
        "chance": choice.chance,
        "span": None if choice.span is None else list(choice.span),
    }


def load(plain: Mapping[str, Any] | None) -> Choice | None:
    """The choice that `dump` wrote; None where there is none."""
    if plain is None or plain.get("counts") is None:
        return None
    span = plain.get("span")
    return Choice(
        tuple(plain["counts"]),
        float(plain.get("seconds") or 0.0),
        plain.get("chance"),
        None if span is None else (span[0], span[1], span[2]),
    )
