"""Plans of ways that need trainings of their own: the paper's, several rounds, and the default with
fewer trainings or more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from allotment.campaign.tranche import propose_tranche
from allotment.corpus.kept import Kept
from allotment.corpus.plans import Counts, make_problem, order_counts
from allotment.corpus.ways import (
    DEFAULT_WAY,
    TABA_TRAININGS,
    WAYS,
    WAYS_BY_TRAININGS,
    WAYS_IN_TRANCHES,
    Knowledge,
    dump,
    tell,
)
from allotment.data.labels import Labels
from allotment.errors import InputError
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import estimate
from allotment.estimates.method import DEFAULT, METHODS
from allotment.estimates.request import FOLDS, Request
from allotment.estimates.response import Response
from allotment.learners.learner import Learner
from allotment.plan import allocate
from allotment.problem import Problem
from corpus.campaigns import ALONE, RECIPE, Campaign

CAMPAIGNS_OF_ROUNDS, CAMPAIGNS_OF_TABA = 2, 1
"""campaigns of a setting in which what takes longest is done"""
LOCKED_CAMPAIGNS_OF_ROUNDS, LOCKED_CAMPAIGNS_OF_TRAININGS = 4, 2
"""likewise where data sets are locked, on which the paper's methods are not asked, and the default
with fewer trainings and more is (docs/results/locked.md)"""


def measure_long(kept: Kept, campaign: Campaign) -> None:
    """Plans of ways that need trainings of their own, in the first campaigns."""
    number, is_locked = campaign.number, campaign.setting.is_locked
    if number < CAMPAIGNS_OF_TABA and not is_locked:
        for name in TABA_TRAININGS:
            if kept.get(number, name) is None:
                kept.put(number, name, _plan_by_taba(campaign, name))
    if number < (LOCKED_CAMPAIGNS_OF_ROUNDS if is_locked else CAMPAIGNS_OF_ROUNDS):
        for name, rounds in WAYS_IN_TRANCHES.items():
            if kept.get(number, name) is None:
                kept.put(number, name, _plan_in_rounds(kept, campaign, rounds))
    if is_locked and number < LOCKED_CAMPAIGNS_OF_TRAININGS:
        for name, trainings in WAYS_BY_TRAININGS.items():
            if kept.get(number, name) is None:
                kept.put(number, name, _plan_with(campaign, trainings))


def _plan_by_taba(campaign: Campaign, name: str) -> dict[str, Any]:
    problem, begin = make_problem(campaign.setting), time.process_time()
    learner = campaign.make_learner(campaign.labels, ALONE)
    try:
        found = estimate(
            learner, campaign.labels, campaign.number, method=name, trainings=TABA_TRAININGS[name],
            folds=FOLDS,
        )  # fmt: skip
    except InputError as error:
        return {"counts": None, "why": str(error)}
    plan = allocate(problem, found)
    seconds = time.process_time() - begin
    return dump(tell(campaign.setting, problem, plan, found, seconds))


def _plan_with(campaign: Campaign, trainings: int) -> dict[str, Any]:
    """What the default plans after so many trainings."""
    setting, number = campaign.setting, campaign.number
    response = campaign.respond(campaign.labels, number, trainings)
    return dump(WAYS[DEFAULT_WAY](Knowledge(setting, number, make_problem(setting), response)))


def _plan_in_rounds(kept: Kept, campaign: Campaign, rounds: int) -> dict[str, Any]:
    """What is bought in all when so many orders are made at most, each as large as a campaign would
    propose, with labels of the first purchase."""
    setting = campaign.setting
    problem = whole = make_problem(setting)
    bought, earlier = dict.fromkeys(setting.tasks, 0), list[Estimates]()
    for done in range(rounds):
        counts = order_counts(setting, bought)
        response = _respond(kept, campaign, counts, done)
        earlier.append(_conclude(campaign, counts, response, earlier))
        plan = allocate(problem, earlier[-1])
        now = plan.counts
        if done < rounds - 1:
            now = propose_tranche(plan, whole.budget, is_first=not done).counts
        bought = {name: bought[name] + now[name] for name in bought}
        problem = _take_off(problem, now)
        if not any(task.pool != 0 and task.cost <= problem.budget for task in problem.tasks):
            break
    return {"counts": list(order_counts(setting, bought))}


def _conclude(
    campaign: Campaign, bought: Counts, response: Response, earlier: Sequence[Estimates]
) -> Estimates:
    """What the default method says of trainings, as campaigns are told it."""

    def open_labels() -> tuple[Learner, Labels]:
        labels = campaign.buy(bought, 0)
        return campaign.make_learner(labels, RECIPE), labels

    request = Request(open_labels, campaign.number, trainings=len(response.scores), folds=FOLDS)
    return METHODS.load(DEFAULT).conclude(request, [response.to_dict()], earlier)


def _take_off(problem: Problem, counts: Mapping[str, int]) -> Problem:
    """The problem that is left when so much is bought."""
    tasks = []
    for task in problem.tasks:
        count = counts[task.name]
        pool = None if task.pool is None else task.pool - count
        tasks.append(replace(task, have=task.have + count, pool=pool))
    return Problem(tasks, budget=problem.budget - problem.price(counts))


def _respond(kept: Kept, campaign: Campaign, bought: Counts, done: int) -> Response:
    if not done:
        return Response.from_dict(kept.get(campaign.number, "response"))
    name = f"response after {' '.join(map(str, bought))}"
    if kept.get(campaign.number, name) is None:
        labels = campaign.buy(bought, 0)
        seed = campaign.number + 1000 * done
        kept.put(campaign.number, name, campaign.respond(labels, seed).to_dict())
    return Response.from_dict(kept.get(campaign.number, name))
