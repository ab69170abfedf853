"""What estimating costs, before it starts: trainings, time on this machine, money, and that beside
the label budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from allotment.amounts import exact, short
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, reading
from allotment.estimates.estimating import prepare
from allotment.estimates.method import DEFAULT, METHODS
from allotment.estimates.request import Request
from allotment.formatting import number, percent, several
from allotment.learners.learner import Learner, State, labelled, train, train_many
from allotment.machine import settled
from allotment.problem import Problem

WARM, TIMED = 2, 5
"""steps before the clock runs (the first ones are slow), and steps that it times"""
TIMED_TOGETHER = 20
"""steps of a stack that it times: nearly all of an estimate is such steps"""
QUICK = 0.5
"""seconds: where a stack can't be stepped on, a training that is over in less is rehearsed whole,
since stacked ones take far less than their steps say"""
STACKED_TRAININGS = 8
"""trainings in one stack, as methods run them"""


@dataclass(frozen=True)
class Price:
    """What a method takes."""

    method: str
    trainings: int
    steps: int
    """of training, probes included"""
    seconds: float
    """on this machine, as it is now"""
    hourly: float | None = None
    """money for an hour of such a machine"""
    budget: float | None = None
    """for labels"""

    @property
    def money(self) -> float | None:
        """What the machine costs for that time."""
        return None if self.hourly is None else self.seconds / 3600 * self.hourly

    @property
    def share(self) -> float | None:
        """Of the label budget, that the machine costs."""
        return None if self.money is None or not self.budget else self.money / self.budget

    def __str__(self) -> str:
        if not self.trainings:
            return f"Method {self.method} trains nothing and costs nothing."
        message = (
            f"Method {self.method}: {several(self.trainings, 'training')},"
            f" {several(self.steps, 'step')}, "
        )
        message += f"about {_duration(self.seconds)} on this machine."
        if self.money is not None:
            money = _or_less(self.money, 0.01, f"{self.money:.2f}")
            message += f" At {number(self.hourly or 0.0)} an hour that is {money}"
            if self.share is not None:
                share = _or_less(self.share * 100, 0.001, percent(self.share), " %")
                message += f", {share} of the {number(self.budget or 0.0)} for labels"
            message += "."
        return message

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return asdict(self)

    @classmethod
    @reading("the price")
    def from_dict(cls, plain: Mapping[str, Any]) -> Price:
        """The price that `to_dict` wrote."""
        known = [item.name for item in fields(cls)]
        if missing := [Mistake(key, "is missing") for key in known if key not in plain]:
            raise InputError(missing)
        return cls(**{key: plain[key] for key in known})


def _or_less(value: float, least: float, message: str, unit: str = "") -> str:
    """What was told, unless it is so little that the figure would have a power of ten."""
    return f"less than {least}{unit}" if 0 < value < least else message


def _duration(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return several(round(seconds / size), unit)
    return several(max(1, round(seconds)), "second")


@settled(load=False)
def price(
    learner: Learner,
    labels: Labels,
    problem: Problem | None = None,
    method: str = DEFAULT,
    trainings: int | None = None,
    *,
    hourly: Any = None,
    folds: int | None = None,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> Price:
    """What `estimate` with the same arguments takes; a few steps and one scoring of a real state
    are timed for it.

    `hourly` is the price of this machine, in the currency of the problem; with both, the price is
    set against the label budget.
    """
    rate = read_rate(hourly)
    request = prepare(
        learner, labels, seed, method=method, trainings=trainings, folds=folds, **options
    )
    work = METHODS.load(method).weigh(request)
    seconds = 0.0
    if work.trainings:
        alone, stacked, score = _time(request, clock)
        seconds = (
            work.probing * alone
            + (work.mini_batches - work.probing) * stacked
            + work.scores * score
        )
    budget = None if problem is None else float(problem.budget)
    return Price(method, work.trainings, work.steps, seconds, rate, budget)


def time_training(
    learner: Learner,
    labels: Labels,
    *,
    folds: int,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Seconds of a whole training among several of a stack; a few steps are timed for it."""
    request = Request(lambda: (learner, labels), seed, folds, folds)
    _, stacked, score = _time(request, clock)
    tasks = len(labelled(learner, labels))
    return learner.steps(labels) * tasks * stacked + tasks * score


def time_alone(
    learner: Learner,
    labels: Labels,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Seconds of a training by itself, of which a few steps are timed; 0 where one step is all of
    it."""
    tasks, steps = labelled(learner, labels), learner.steps(labels)
    if getattr(learner, "trains_whole", False) or steps <= WARM + TIMED:
        return 0.0
    each, _ = _time_steps(learner, learner.start(labels, seed), tasks, TIMED, clock)
    return each * len(tasks) * steps


def read_rate(hourly: Any) -> float | None:
    """The money that an hour of a machine costs; raises InputError for what is none."""
    if hourly is None:
        return None
    try:
        rate = float(exact(hourly))
    except ValueError as error:
        raise InputError([Mistake("hourly", str(error))]) from None
    if rate < 0:
        raise InputError(
            [Mistake("hourly", f"{short(hourly)} is below 0; give the money that an hour costs")]
        )
    return rate


def _time(request: Request, clock: Callable[[], float]) -> tuple[float, float, float]:
    """Seconds for one mini-batch of one task, by itself and in a stack, and for one score of one
    task."""
    learner, labels = _choose_part(request)
    tasks = labelled(learner, labels)
    if not tasks:
        raise InputError(
            [Mistake("labels", "no task has any; buy a few of each before estimating")]
        )
    if getattr(learner, "trains_whole", False):
        return _time_whole(request, tasks, clock)
    begun = learner.start(labels, request.seed)
    alone, state = _time_steps(learner, begun, tasks, TIMED, clock)
    trained = clock()
    for task in tasks:
        learner.score(state, task)
    score = (clock() - trained) / len(tasks)
    return alone, _time_stack(learner, labels, request.seed, alone, clock), score


def _time_steps(
    learner: Learner, state: State, tasks: Sequence[str], count: int, clock: Callable[[], float]
) -> tuple[float, State]:
    """Seconds for one mini-batch of one task, and the state after so many that were timed."""
    for _ in range(WARM):
        state = learner.step(state, tasks)
    begin = clock()
    for _ in range(count):
        state = learner.step(state, tasks)
    return (clock() - begin) / count / len(tasks), state


def _time_stack(
    learner: Learner, labels: Labels, seed: int, alone: float, clock: Callable[[], float]
) -> float:
    """Seconds for one mini-batch of one task among those of a stack: less than by itself."""
    runs = [(labels, seed + place) for place in range(STACKED_TRAININGS)]
    tasks = labelled(learner, labels)
    if hasattr(learner, "start_many") and (state := learner.start_many(runs)) is not None:
        seconds, _ = _time_steps(learner, state, tasks, TIMED_TOGETHER, clock)
        return seconds / STACKED_TRAININGS
    size = learner.steps(labels) * len(tasks)
    if not hasattr(learner, "stack") or not 0 < size < QUICK / max(alone, 1e-9):
        return alone
    begin = clock()
    train_many(learner, runs)
    return (clock() - begin) / STACKED_TRAININGS / size


def _time_whole(
    request: Request, tasks: Sequence[str], clock: Callable[[], float]
) -> tuple[float, float, float]:
    """The same for a learner whose only step is a whole training."""
    learner, labels = _choose_part(request)
    train(learner, labels, request.seed)  # the first one loads what it needs
    begin = clock()
    state = train(learner, labels, request.seed + 1)
    trained = clock()
    for task in tasks:
        learner.score(state, task)
    each = (trained - begin) / len(tasks)
    return each, each, (clock() - trained) / len(tasks)


def _choose_part(request: Request) -> tuple[Learner, Labels]:
    """One with most labels to train on: few labels may all lie in one fold."""
    return max(
        request.parts, key=lambda part: sum(part[1].counts.values()) if request.folds > 1 else 0
    )
