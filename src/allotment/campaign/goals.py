"""Scores to reach, and the least money that is expected to reach them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from allotment.campaign.state import CampaignState, Proposal
from allotment.errors import Infeasible, InputError, Mistake, suggest
from allotment.learners.metrics import find_metric_name, title_metric
from allotment.plan import Plan, cheapest
from allotment.problem import Problem, Task

MOST_TURNS = 12
"""in which each of several goals is met: where labels of each harm the other a little, every turn
leaves less to do for the next"""
MOST_TRIES = 12
"""plans that are made for one goal, each nearer to its score"""
LOWEST_CHANCE, HIGHEST_CHANCE = 0.5, 0.99
"""with which a score can be asked for: below it is a hope, and draws know nothing above it"""
TENTHS = {5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


@dataclass(frozen=True)
class Goal:
    """A score that a task is to have, in its own metric."""

    task: str
    score: float
    chance: float | None = None
    """with which it is to be reached; None asks for the middle of what is expected"""

    def __post_init__(self) -> None:
        if self.chance is not None:
            _check_chance(self.chance, "chance", str(self.chance))

    def find_reached(self, state: CampaignState, counts: Mapping[str, int]) -> float:
        """What the task scores with a plan: in the middle, or at least with the chance."""
        level, after = state.find_level(self.task), state.add_open(counts)
        if self.chance is None:
            return level.find_span(after).middle
        return level.find_reached(after, self.chance)

    def find_lack(self, state: CampaignState, counts: Mapping[str, int]) -> float:
        """How much of the score is missing with a plan; 0 or less where it is reached."""
        lack = self.score - self.find_reached(state, counts)
        return lack if state.find_level(self.task).higher_is_better else -lack

    def is_met(self, state: CampaignState, counts: Mapping[str, int]) -> bool:
        """Whether a plan reaches it."""
        return self.find_lack(state, counts) <= 0

    def describe(self, state: CampaignState, counts: Mapping[str, int]) -> dict[str, Any]:
        """Plain values for JSON, with what a plan reaches."""
        return asdict(self) | {"reached": self.find_reached(state, counts)}


def parse_chance(text: str) -> float:
    """`0.9`, `90%` or `90 %` as a share; raises InputError for what is none."""
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    return _check_chance(math.nan if rest else share, "--chance", text)


def _check_chance(share: float, where: str, given: str) -> float:
    if not LOWEST_CHANCE <= share <= HIGHEST_CHANCE:
        allowed = f"{LOWEST_CHANCE:g} to {HIGHEST_CHANCE:g}"
        what = f"{given!r} is not a share from {allowed}; nine of ten is 0.9, or 90%"
        raise InputError([Mistake(where, what)])
    return share


def parse_goals(
    state: CampaignState, texts: Sequence[str], chance: float | None = None
) -> list[Goal]:
    """`heating=1.5` or `heating:mae=1.5` in parts, each to be reached with the chance; raises
    InputError with all that is wrong."""
    goals, mistakes = dict[str, Goal](), list[Mistake]()
    for text in texts:
        try:
            goal = _parse_goal(state, text)
        except InputError as error:
            mistakes += error.mistakes
            continue
        if goal.task in goals:
            mistakes.append(Mistake(f"--reach {text}", f"{goal.task} has a goal already"))
        goals[goal.task] = replace(goal, chance=chance)
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
    """The goals in a sentence; a chance is that of each of them."""
    said = " and ".join(_tell_score(state, goal) for goal in goals)
    if not goals or goals[0].chance is None:
        return said
    each = ", each of them" if len(goals) > 1 else ""
    return f"{said}{each} {tell_chance(goals[0].chance)}"


def _tell_score(state: CampaignState, goal: Goal) -> str:
    return f"{goal.task} {title_metric(state.metrics[goal.task])} {goal.score:g}"


def tell_chance(share: float) -> str:
    """How often something comes true.

    >>> tell_chance(0.9), tell_chance(0.95)
    ('in nine of ten cases', 'in 95 of 100 cases')
    """
    percent = float(f"{100 * share:.6g}")
    if percent / 10 in TENTHS:
        return f"in {TENTHS[int(percent / 10)]} of ten cases"
    return f"in {percent:g} of 100 cases"


def reach(state: CampaignState, proposal: Proposal, goals: Sequence[Goal]) -> Plan:
    """The plan of least money that reaches them, in the middle of what is stated or each with its
    chance.

    Of all plans for the same money it looks at the one that brings the task most in the mean. With
    several goals each is met in turn, beside what those before it have bought, so that a little
    less might do; and once more where labels of a later one harm an earlier one. Raises Infeasible
    with what is reachable where one is not.
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
    missed = list(goals)
    for _ in range(MOST_TURNS):
        for goal in missed:
            plan = _reach_one(state, replace(plan, problem=problem), goal)
            problem = _keep(problem, plan.counts)
        missed = [goal for goal in goals if not goal.is_met(state, plan.counts)]
    if missed:
        what = "labels of one goal harm the score of another; ask for a bit less"
        raise Infeasible([f"{_tell_score(state, goal)}: {what}" for goal in missed])
    return replace(plan, problem=proposal.plan.problem.with_budget(plan.problem.budget))


def _reach_one(state: CampaignState, basis: Plan, goal: Goal) -> Plan:
    """By the gain that curves say is missing, again and again: what is expected of a plan, draw by
    draw, is not quite what mean curves say."""
    wanted = missed = 0.0
    # a hundredth more than is missing, so that it does not come nearer and nearer for ever
    stride, beyond = 101.0, math.inf
    for _ in range(MOST_TRIES):
        try:
            plan = cheapest(basis.problem, basis.evidence or basis.gains, wanted, goal.task)
        except Infeasible:  # by mean curves, which are a little below what draws expect
            beyond, wanted = wanted, (missed + wanted) / 2
            continue
        lack = goal.find_lack(state, plan.counts)
        if lack <= 0:
            return _tighten(state, basis, goal, plan, (missed, wanted))
        now = state.forecast(plan.counts)[goal.task].now.middle
        more = plan.own_gains[goal.task] + stride * lack / max(abs(now), 1e-300)
        missed, wanted = wanted, min(more, (wanted + beyond) / 2)
        stride *= 2  # what is reached with a chance rises more slowly than the mean
    what = f"{_tell_score(state, goal)} takes nearly all there is, and no plan for less was found"
    raise Infeasible([f"{what}; ask for a bit less"])


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
        elif goal.is_met(state, tried.counts):
            plan, met = tried, middle
        else:
            missed = middle
    return plan


def _tell_unreachable(state: CampaignState, problem: Problem, goal: Goal) -> str:
    """What is reachable, where the goal is not; else nothing."""
    own = {task.name: task.floor for task in problem.tasks}
    own[goal.task] = _find_most(problem, goal.task)
    everything = {name: _find_most(problem, name) for name in own}
    tried = [everything, own]
    if any(goal.is_met(state, counts) for counts in tried):
        return ""
    best = min(tried, key=lambda counts: goal.find_lack(state, counts))
    found = state.forecast(best)[goal.task]
    often, most = "", found.after.say(found.places)
    if goal.chance is not None:
        often = f" {tell_chance(goal.chance)}"
        most = f"{goal.find_reached(state, best):.{found.places}f}{often}"
    return (
        f"{goal.task}: {title_metric(found.metric)} {goal.score:g}{often} is out of reach: it is"
        f" {found.now.say(found.places)} now and, with all that could be bought, {most}"
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
