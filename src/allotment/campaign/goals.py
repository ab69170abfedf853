"""Scores to reach, and the least money that is expected to reach them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from allotment.campaign.state import CampaignState, Proposal
from allotment.errors import Infeasible, InputError, Mistake, suggest
from allotment.estimates.forecast import Forecast
from allotment.learners.metrics import find_metric_name, title_metric
from allotment.plan import Plan, cheapest
from allotment.problem import Problem, Task

MOST_TRIES = 12
"""plans that are made for one goal, each nearer to its score"""


@dataclass(frozen=True)
class Goal:
    """A score that a task is to have, in its own metric."""

    task: str
    score: float

    def is_met(self, found: Forecast) -> bool:
        """Whether that is what is expected, or more."""
        if found.higher_is_better:
            return found.after.middle >= self.score
        return found.after.middle <= self.score


def parse_goals(state: CampaignState, texts: Sequence[str]) -> list[Goal]:
    """`heating=1.5` or `heating:mae=1.5` in parts; raises InputError with all that is wrong."""
    goals, mistakes = dict[str, Goal](), list[Mistake]()
    for text in texts:
        try:
            goal = _parse_goal(state, text)
        except InputError as error:
            mistakes += error.mistakes
            continue
        if goal.task in goals:
            mistakes.append(Mistake(f"--reach {text}", f"{goal.task} has a goal already"))
        goals[goal.task] = goal
    if mistakes:
        raise InputError(mistakes)
    return list(goals.values())


def _parse_goal(state: CampaignState, text: str) -> Goal:
    where, names = f"--reach {text}", state.settings.names
    task, equals, wanted = text.rpartition("=")
    example = f"{names[0]}={'0.8' if state.metrics[names[0]] != 'mae' else '1.5'}"
    if not equals:
        raise InputError([Mistake(where, f"is not TASK=SCORE, such as {example}")])
    metric = ""
    if task not in names and ":" in task:
        task, _, metric = task.rpartition(":")
        metric = find_metric_name(metric)
    if task not in names:
        raise InputError([Mistake(where, f"no task {task!r}; {suggest(task, names)}")])
    own = state.metrics[task]
    if metric and metric != own:
        what = (
            f"{task} is planned by its {own}, so that only {own} can be asked for; to plan by"
            f" {metric}, set it in campaign.toml and estimate again"
        )
        raise InputError([Mistake(where, what)])
    try:
        score = float(wanted)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError([Mistake(where, f"{wanted!r} is not a score, such as in {example}")])
    return Goal(task, score)


def tell_goals(state: CampaignState, goals: Sequence[Goal]) -> str:
    """The goals in a sentence."""
    return " and ".join(
        f"{goal.task} {title_metric(state.metrics[goal.task])} {goal.score:g}" for goal in goals
    )


def reach(state: CampaignState, proposal: Proposal, goals: Sequence[Goal]) -> Plan:
    """The plan of least money that is expected to reach them, in the middle of what is stated.

    With several goals each is met in turn, beside what those before it have bought, so that a
    little less might do. Raises Infeasible with what is reachable where one is not.
    """
    plan = proposal.plan
    problem = plan.problem
    mistakes = [
        Mistake(f"--reach {goal.task}", "nothing is known of its score; allot evaluate tells it")
        for goal in goals
        if goal.task not in proposal.forecasts
    ]
    if mistakes:
        raise InputError(mistakes)
    if clashes := list(filter(None, (_tell_unreachable(state, problem, goal) for goal in goals))):
        raise Infeasible(clashes)
    for goal in goals:
        plan = _reach_one(state, replace(plan, problem=problem), goal)
        problem = _keep(problem, plan.counts)
    return replace(plan, problem=proposal.plan.problem.with_budget(plan.problem.budget))


def _reach_one(state: CampaignState, basis: Plan, goal: Goal) -> Plan:
    """By the gain that curves say is missing, again and again: what is expected of a plan, draw by
    draw, is not quite what mean curves say."""
    wanted = missed = 0.0
    for _ in range(MOST_TRIES):
        try:
            plan = cheapest(basis.problem, basis.evidence or basis.gains, wanted, goal.task)
        except Infeasible:  # by mean curves, which are a little below what draws expect
            break
        found = state.forecast(plan.counts)[goal.task]
        if goal.is_met(found):
            return _tighten(state, basis, goal, plan, (missed, wanted))
        missing = abs(goal.score - found.after.middle) / max(abs(found.now.middle), 1e-300)
        # a hundredth more, so that it does not come nearer and nearer for ever
        missed, wanted = wanted, plan.own_gains[goal.task] + 101 * missing
    what = f"{title_metric(state.metrics[goal.task])} {goal.score:g} takes nearly all there is"
    raise Infeasible([f"{goal.task}: {what}, and no plan for less was found; ask for a bit less"])


def _tighten(
    state: CampaignState, basis: Plan, goal: Goal, plan: Plan, between: tuple[float, float]
) -> Plan:
    """The plan of least money that still reaches the goal: a gain `between` one that did not and
    one that did."""
    missed, met = between
    for _ in range(MOST_TRIES):
        middle = (missed + met) / 2
        tried = cheapest(basis.problem, basis.evidence or basis.gains, middle, goal.task)
        if tried.counts == plan.counts:
            met = middle
        elif goal.is_met(state.forecast(tried.counts)[goal.task]):
            plan, met = tried, middle
        else:
            missed = middle
    return plan


def _tell_unreachable(state: CampaignState, problem: Problem, goal: Goal) -> str:
    """What is reachable, where the goal is not; else nothing."""
    own = {task.name: task.floor for task in problem.tasks}
    own[goal.task] = _find_most(problem, goal.task)
    everything = {name: _find_most(problem, name) for name in own}
    tried = [state.forecast(counts)[goal.task] for counts in (everything, own)]
    if any(map(goal.is_met, tried)):
        return ""
    sign = 1 if tried[0].higher_is_better else -1
    best = max(tried, key=lambda each: sign * each.after.middle)
    return (
        f"{goal.task}: {title_metric(best.metric)} {goal.score:g} is out of reach: it is"
        f" {best.now.say(best.places)} now and, with all that could be bought,"
        f" {best.after.say(best.places)}"
    )


def _find_most(problem: Problem, name: str) -> int:
    """Labels of a task that could be bought if money were no matter."""
    task = problem[name]
    return task.floor if task.ceiling is None else task.ceiling


def _keep(problem: Problem, counts: Mapping[str, int]) -> Problem:
    """The same problem, in which so many are bought at least."""
    tasks = [
        Task.from_dict(task.to_dict() | {"least": max(task.least, counts[task.name])})
        for task in problem.tasks
    ]
    return Problem(tasks, problem.budget, problem.caps, problem.count_implied)
