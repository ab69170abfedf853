"""From labels at hand to estimates, in this process: the one verb that takes any method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from allotment.amounts import short
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import (
    DEFAULT,
    METHODS,
    PROBING,
    Method,
    count_trainings,
    list_methods,
    tell_stepless,
)
from allotment.estimates.options import check_options
from allotment.estimates.request import FOLDS, Request
from allotment.estimates.stopping import check_probing
from allotment.learners.learner import Learner
from allotment.machine import settled
from allotment.meter import showing
from allotment.problem import Problem
from allotment.progress import NamedProgress


@settled(load=False)
def estimate(
    learner: Learner,
    labels: Labels,
    seed: int = 0,
    *,
    method: str = DEFAULT,
    trainings: int | None = None,
    folds: int | None = None,
    progress: NamedProgress | bool | None = None,
    problem: Problem | None = None,
    probing: Mapping[str, float] | None = None,
    **options: Any,
) -> Estimates:
    """What one more label of each task is worth, measured by training on the labels at hand.

    `method` is one of METHODS. `trainings` is how many it may run, or what these would take where
    its own are shorter. `folds` above 1 score on parts of the labels at hand in turn; left out,
    that is done where the learner has no validation labels for some task. `progress` is told (done,
    total, what); True shows a bar. Methods that probe take at most `probing`, {"steps": 5000} or
    {"minutes": 10}, and with a `problem` they stop once more of it could not move that problem's
    plan out of its plateau. Other `options` are the method's own.
    """
    with showing(progress) as told:
        options |= {"progress": told, "problem": problem, "probing": probing}
        request = prepare(
            learner, labels, seed, method=method, trainings=trainings, folds=folds, **options
        )
        return _measure(method, request)


def _measure(name: str, request: Request) -> Estimates:
    """Do all jobs of a method, or enough of them, one after the other, and conclude."""
    method, count = METHODS.load(name), _TrainingsDone(request.progress)
    request = replace(request, progress=count.tell)
    jobs = method.jobs(request)
    count.total = sum(map(count_trainings, jobs))
    results = []
    for job in jobs:
        count.begin(count_trainings(job), name)
        results.append(method.do(request, job))
        stops = method.ends_early and method.is_enough(request, results)
        count.end(stops)
        if stops:
            break
    return label(method.conclude(request, results), name, request, tuple(request.labels))


class _TrainingsDone:
    """How many trainings are done, of how many.

    The last one of a job is told when the job is over: only then it is known whether more follow.
    """

    def __init__(self, progress: NamedProgress | None):
        self.done = self.size = self.total = 0
        self.what, self.progress = "", progress

    def begin(self, size: int, what: str) -> None:
        self.size, self.what = size, what

    def tell(self, done: int, _: int, what: str) -> None:
        self.what = what
        if done < self.size and self.progress is not None:
            self.progress(self.done + done, self.total, what)

    def end(self, is_last: bool) -> None:
        self.done += self.size
        self.total = self.done if is_last else self.total
        if self.size and self.progress is not None:
            self.progress(self.done, self.total, self.what)


def label(found: Estimates, name: str, request: Request, tasks: Sequence[str]) -> Estimates:
    """The estimates with a note of where they come from; raises InputError where a method gave no
    such thing."""
    where, home = f"method {name!r}", METHODS.version_of(name) or "it"
    if not isinstance(found, Estimates):
        what = f"{home} concluded {short(found)}, which is no Estimates"
        raise InputError([Mistake(where, what)])
    if missing := [task for task in tasks if task not in found.tasks]:
        what = f"{home} concluded nothing of {', '.join(missing)}; every task is to be estimated"
        raise InputError([Mistake(where, what)])
    about = {
        "method": name,
        "trainings": request.trainings,
        "folds": request.folds,
        "seed": request.seed,
    }
    return replace(found, about=about | dict(found.about))


def prepare(
    learner: Learner,
    labels: Labels,
    seed: int = 0,
    *,
    method: str = DEFAULT,
    trainings: int | None = None,
    folds: int | None = None,
    progress: NamedProgress | None = None,
    problem: Problem | None = None,
    probing: Mapping[str, float] | None = None,
    **options: Any,
) -> Request:
    """The same arguments as `estimate`, checked and completed; nothing is trained."""
    mistakes: list[Mistake] = []
    try:
        chosen = METHODS.load(method)
        mistakes += _check_options(method, chosen, options, probing)
    except InputError as error:
        mistakes += error.mistakes
    mistakes += check_probing(probing, problem, learner.tasks)
    mistakes += _check_tasks(learner, labels)
    mistakes += _check_numbers(trainings, folds)
    if not mistakes and (what := tell_stepless(method, chosen)):
        mistakes += [Mistake("method", what)] if getattr(learner, "trains_whole", False) else []
    if not mistakes and folds is not None and folds > 1 and not hasattr(learner, "with_validation"):
        what = (
            f"{folds}: the learner cannot be scored on a part of the labels; give it a"
            " `with_validation`, or 1 fold"
        )
        mistakes.append(Mistake("folds", what))
    if mistakes:
        raise InputError(mistakes)
    count = chosen.trainings if trainings is None or not chosen.trainings else int(trainings)
    everything = Labels({task: labels[task] for task in learner.tasks})
    if folds is None:
        folds = _choose_folds(learner, everything, seed) if count else 1
    return Request(
        lambda: (learner, everything), seed, count, folds, options, progress, problem, probing
    )


def _check_options(
    name: str, method: Method, options: Mapping[str, Any], probing: object
) -> Iterator[Mistake]:
    yield from check_options(name, method.options, options)
    if probing is not None and PROBING not in method.options:
        which = [each for each, other in list_methods().items() if PROBING in other.options]
        yield Mistake(PROBING, f"method {name!r} probes nothing; these do: {', '.join(which)}")


def _check_tasks(learner: Learner, labels: Labels) -> Iterator[Mistake]:
    for name in labels:
        if name not in learner.tasks:
            what = f"is not one of the learner's; {suggest(name, learner.tasks)}"
            yield Mistake(f"task {name!r}", what)


def _check_numbers(trainings: object, folds: object) -> Iterator[Mistake]:
    for key, number, least in (("trainings", trainings, 0), ("folds", folds, 1)):
        if number is not None and (not isinstance(number, int | np.integer) or number < least):
            what = f"{short(number)} is not a whole number of {least} or more"
            yield Mistake(key, what)


def _choose_folds(learner: Learner, labels: Labels, seed: int) -> int:
    """1 where the learner's own validation labels score every task."""
    state = learner.start(labels, seed)
    mute = [task for task in learner.tasks if not math.isfinite(learner.score(state, task).metric)]
    if not mute:
        return 1
    if hasattr(learner, "with_validation"):
        return FOLDS
    what = (
        "no validation label scores it; give the learner some, or a `with_validation` that scores"
        " on labels at hand"
    )
    raise InputError([Mistake(f"task {task!r}", what) for task in mute])
