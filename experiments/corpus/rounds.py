"""Plans of ways that need trainings of their own: the paper's, and several rounds."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from allotment.campaign.rounds import propose
from allotment.corpus.kept import Kept
from allotment.corpus.plans import Counts, make_problem, order_counts
from allotment.corpus.ways import TABA_TRAININGS, WAYS_IN_ROUNDS, dump, tell
from allotment.errors import InputError
from allotment.estimates.estimating import estimate
from allotment.estimates.priors import Prior
from allotment.estimates.request import FOLDS
from allotment.estimates.response import Response, join
from allotment.estimates.worth import fit
from allotment.plan import allocate
from allotment.problem import Problem
from corpus.campaigns import ALONE, Campaign

CAMPAIGNS_OF_ROUNDS, CAMPAIGNS_OF_TABA = 2, 1
"""campaigns of a setting in which what takes longest is done"""


def measure_long(kept: Kept, campaign: Campaign) -> None:
    """Plans of ways that need trainings of their own, in the first campaigns."""
    number = campaign.number
    if number < CAMPAIGNS_OF_TABA:
        for name in TABA_TRAININGS:
            if kept.get(number, name) is None:
                kept.put(number, name, _plan_by_taba(campaign, name))
    if number < CAMPAIGNS_OF_ROUNDS and kept.get(number, "three rounds") is None:
        for name, rounds in WAYS_IN_ROUNDS.items():
            kept.put(number, name, _plan_in_rounds(kept, campaign, rounds))


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
        tasks = []
        for task in problem.tasks:
            pool = None if task.pool is None else task.pool - now[task.name]
            tasks.append(replace(task, have=task.have + now[task.name], pool=pool))
        if not any(task.pool != 0 and task.cost <= rest for task in tasks):
            break
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
