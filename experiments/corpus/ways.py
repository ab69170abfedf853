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

from allotment.campaign.rounds import propose
from allotment.errors import InputError
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import estimate
from allotment.estimates.methods.slopes import fit_slopes
from allotment.estimates.priors import Prior
from allotment.estimates.request import FOLDS
from allotment.estimates.response import Response, find_level, join
from allotment.estimates.worth import fit
from allotment.plan import Plan, allocate, neutral_gains
from allotment.problem import Problem
from corpus.campaigns import (
    ALONE,
    Campaign,
    Counts,
    list_baselines,
    make_problem,
    order_counts,
    spend,
)
from corpus.kept import Kept
from corpus.settings import Setting

BASES = ("neutral", "equal budget", "equal images")
"""that train nothing"""
TABA = {"taba": 30, "taba-pooled": 30}
"""methods that look into trainings, and how many trainings they are given: about as many seconds as
the default takes"""
ROUNDS = {"two rounds": 2, "three rounds": 3}
CAMPAIGNS_OF_ROUNDS = CAMPAIGNS_OF_TABA = 2
"""campaigns of a setting in which what takes longest is done"""
SOLVED_FROM = 0.97
"""area under the curve from which on a task counts as solved"""
SOLVED_BELOW = 0.1
"""of the best constant's error, likewise"""


@dataclass(frozen=True)
class Known:
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


Way = Callable[[Known], Choice]


def know(kept: Kept, setting: Setting, campaign: int) -> Known | None:
    """What is kept of a campaign; None if its trainings are not there."""
    plain = kept.get(campaign, "response")
    if plain is None:
        return None
    return Known(setting, campaign, make_problem(setting), Response.from_dict(plain))


def choose(known: Known, find: Callable[[], Estimates]) -> Choice:
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


def _fit(prior: Prior, without_skill: bool = False) -> Way:
    def way(known: Known) -> Choice:
        response = known.response
        if without_skill:
            blank = np.full(response.scores.shape, np.nan)
            response = replace(response, skill=blank, skill_error=blank)
        return choose(known, lambda: fit(response, prior=prior, seed=known.campaign))

    return way


def _by_slopes(known: Known) -> Choice:
    return choose(known, lambda: fit_slopes(known.response, seed=known.campaign))


def _base(name: str) -> Way:
    return lambda known: Choice(list_baselines(known.setting)[name])


def _half_way(known: Known) -> Choice:
    """Between the default and neutral, in money."""
    mine = np.array(WAYS["default"](known).counts)
    money = (mine + list_baselines(known.setting)["neutral"]) * np.array(known.setting.costs)
    return Choice(spend(known.setting, money / money.sum()))


def _by_band(known: Known) -> Choice:
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


DEFAULT_PRIOR = Prior()
NO_TRANSFER = replace(DEFAULT_PRIOR, transfers=((1e-6, 1.0),))
NO_ODD = replace(DEFAULT_PRIOR, live=1.0, saturated=1e-9, dead=1e-9, late=1e-9)

WAYS: dict[str, Way] = {
    "default": _fit(DEFAULT_PRIOR),
    "slopes": _by_slopes,
    "band, else neutral": _by_band,
    **{name: _base(name) for name in BASES},
    "default, no transfer": _fit(NO_TRANSFER),
    "default, no odd states": _fit(NO_ODD),
    "default, no skill": _fit(DEFAULT_PRIOR, without_skill=True),
    "half-way to neutral": _half_way,
}
"""by name; all but those that need trainings of their own"""


def find_way(name: str) -> Way:
    """One of WAYS, or FILE.py:FUNCTION, which gets a `Known` and gives counts of labels by task."""
    if name in WAYS:
        return WAYS[name]
    path, _, function = name.partition(":")
    spec = importlib.util.spec_from_file_location("way", Path(path))
    if not function or spec is None or spec.loader is None:
        raise SystemExit(f"no way {name!r}; there are {', '.join(WAYS)}, or FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    sys.modules["way"] = module
    spec.loader.exec_module(module)
    plan: Callable[[Known], Mapping[str, int]] = getattr(module, function)
    return lambda known: Choice(order_counts(known.setting, plan(known)))


def list_kept_ways() -> tuple[str, ...]:
    """Those that need trainings of their own, whose plans are kept."""
    return (*TABA, *ROUNDS)


def measure_long(kept: Kept, campaign: Campaign) -> None:
    """Plans of ways that need trainings of their own, in the first campaigns."""
    number = campaign.number
    if number < CAMPAIGNS_OF_TABA:
        for name in TABA:
            if kept.get(number, name) is None:
                kept.put(number, name, _plan_by_taba(campaign, name))
    if number < CAMPAIGNS_OF_ROUNDS and kept.get(number, "three rounds") is None:
        for name, rounds in ROUNDS.items():
            kept.put(number, name, _plan_in_rounds(kept, campaign, rounds))


def _plan_by_taba(campaign: Campaign, name: str) -> dict[str, Any]:
    problem, begin = make_problem(campaign.setting), time.process_time()
    learner = campaign.make_learner(campaign.labels, ALONE)
    try:
        found = estimate(
            learner, campaign.labels, campaign.number, method=name, trainings=TABA[name],
            folds=FOLDS,
        )  # fmt: skip
    except InputError as error:
        return {"counts": None, "why": str(error)}
    plan = allocate(problem, found)
    seconds = time.process_time() - begin
    return dump(tell(campaign.setting, problem, plan, found, seconds))


def _plan_in_rounds(kept: Kept, campaign: Campaign, rounds: int) -> dict[str, Any]:
    """What is bought in all when so many orders are made at most, each as large as a campaign would
    propose, with labels of the first purchase."""
    setting = campaign.setting
    problem = whole = make_problem(setting)
    bought, seen = dict.fromkeys(setting.tasks, 0), []
    for left in range(rounds, 0, -1):
        done = rounds - left
        seen.append(_respond(kept, campaign, order_counts(setting, bought), done))
        prior = Prior().later if len(seen) > 1 else Prior()
        plan = allocate(problem, fit(join(seen), prior=prior, seed=campaign.number))
        now = plan.counts if left == 1 else propose(plan, plan.outlook, whole.budget).counts
        bought = {name: bought[name] + now[name] for name in bought}
        rest = problem.budget - problem.price(now)
        if rest < min(setting.costs):
            break
        tasks = []
        for task in problem.tasks:
            pool = None if task.pool is None else task.pool - now[task.name]
            tasks.append(replace(task, have=task.have + now[task.name], pool=pool))
        problem = Problem(tasks, budget=rest)
    return {"counts": list(order_counts(setting, bought))}


def _respond(kept: Kept, campaign: Campaign, bought: Counts, done: int) -> Response:
    if not done:
        return Response.from_dict(kept.get(campaign.number, "response"))
    name = f"response after {' '.join(map(str, bought))}"
    if kept.get(campaign.number, name) is None:
        labels = campaign.buy(bought, 0)
        seed = campaign.number + 1000 * done
        kept.put(campaign.number, name, campaign.respond(labels, seed).to_dict())
    return Response.from_dict(kept.get(campaign.number, name))


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
