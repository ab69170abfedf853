"""What experiments would take, told before anything is trained and without the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allotment.estimates.letter import PAPER_RUNS, RATES_OPTION, TRIPLES_OPTION, ToTheLetter
from allotment.estimates.method import METHODS
from allotment.estimates.options import RATES_BETWEEN
from allotment.estimates.taba import WITHOUT_TRANSFER
from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.exhibit import Exhibit
from allotment.experiment.record import Record
from allotment.experiment.running import list_questions
from allotment.experiment.work import TRAINING_JOB, Question, name_estimates, name_pool
from allotment.job import JSON, canonical
from allotment.learners.setups import find_setup


@dataclass(frozen=True)
class Speed:
    """How fast a machine is at a set-up: taken, not measured, unless a document says otherwise."""

    trained: float
    """images of mini-batches in a second"""
    scored: float
    """images in a second"""
    memory: float
    """GB"""
    price: float
    """dollars for an hour"""
    machine: str


A40 = "a GPU like the paper's A40"
CORE = "one core"
SPEEDS: Mapping[str, Speed] = {
    "voc-paper": Speed(40, 120, 14, 2.0, A40),
    "taskonomy-paper": Speed(60, 180, 10, 2.0, A40),
    "voc-small": Speed(200, 250, 3, 0.05, CORE),
    "taskonomy-small": Speed(270, 1300, 2, 0.05, CORE),
}
"""small ones as in docs/results/vision.md; 2 dollars: the paper rents its 25 hours for less than
50"""
POOLS = {"voc": round(0.85 * 10_582), "taskonomy": 250_000}
"""instances to train on and to buy labels of in the whole data sets"""
TESTED = {
    "voc-paper": 1449,
    "taskonomy-paper": 50_000,
    "voc-small": 669,
    "taskonomy-small": 108,
}
"""instances of the test part, of the small ones in the copies that they were tried on"""
WORK_OF_LOOKS = 3.0
"""times the work of a training that one takes which is looked into"""
CURVE_TRAININGS = 24
"""of each task alone, for a curve of the paper's method: ensembles, sizes and repetitions"""


@dataclass(frozen=True)
class Outlay:
    """What is still to be done, and what it takes."""

    trainings: int
    """purchases that are trained out, those of plans that are measured included"""
    measured: int
    """trainings of methods"""
    hours: float
    speed: Speed

    @property
    def dollars(self) -> float:
        return self.hours * self.speed.price

    def __str__(self) -> str:
        speed, digits = self.speed, 0 if self.dollars >= 10 else 2
        return (
            f"{self.trainings} trainings of plans and {self.measured} of methods: about"
            f" {self.hours:,.0f} hours of {speed.machine} with {speed.memory:g} GB,"
            f" ${self.dollars:,.{digits}f} at ${speed.price:g} an hour (taken: {speed.trained:g}"
            f" images a second trained, {speed.scored:g} scored)"
        )


@dataclass(frozen=True)
class Toil:
    """Seconds of each training that is still to be done."""

    measured: tuple[float, ...]
    """of methods; plans wait for them"""
    trained: tuple[float, ...]
    """of plans, those that are measured included"""


def weigh(exhibits: Sequence[Exhibit], case: Case, record: Record) -> Outlay:
    """What exhibits take beyond what is on record."""
    toil = list_seconds(exhibits, case, record)
    hours = (sum(toil.measured) + sum(toil.trained)) / 3600
    return Outlay(len(toil.trained), len(toil.measured), hours, SPEEDS[case.setup])


def list_seconds(exhibits: Sequence[Exhibit], case: Case, record: Record) -> Toil:
    """What each training takes that exhibits need beyond what is on record."""
    book = Casebook(case, _assume_pool(case, record))
    jobs = dict.fromkeys(job for each in exhibits for job in each.list_trainings(book))
    missing = [job for job in jobs if job.kind == TRAINING_JOB and not record.has(job)]
    speed = SPEEDS[case.setup]
    trained = [_time(case, speed, job.needs["counts"]) for job in missing]
    open_ = [
        asked
        for asked in list_questions(exhibits, case)
        if not record.has(name_estimates(case, asked))
    ]
    once, measured = _time(case, speed, {}), list[float]()
    for takes, count in _list_measured(open_, case):
        measured += [takes * once] * count
    # each plan that is measured is trained out in every purchase
    plans = _count_planned(exhibits, case, open_) * case.purchases
    even = dict.fromkeys(case.tasks, case.have)
    trained += [_time(case, speed, even)] * plans
    return Toil(tuple(measured), tuple(trained))


def _count_planned(exhibits: Sequence[Exhibit], case: Case, open_: Sequence[Question]) -> int:
    """Plans that nobody knows yet: two exhibits that train out the same one share it."""
    waited = {canonical(vars(asked)) for asked in open_}
    planned = {
        (canonical(vars(asked)), prices)
        for each in exhibits
        for asked, prices in each.list_planned(case)
    }
    return sum(asked in waited for asked, _ in planned)


def _list_measured(asked: Sequence[Question], case: Case) -> list[tuple[float, int]]:
    """What methods train: how much of a training on all tasks each is, and how many there are.
    Methods to the paper's letter share their curves and looks."""
    found: dict[tuple[Any, ...], tuple[float, int]] = {}
    for each in asked:
        method, where = METHODS.load(each.method), (each.seed_set, each.score_on)
        if not isinstance(method, ToTheLetter):
            count = each.trainings or method.trainings
            found[*where, each.method, str(each.options)] = 1.0, count
            continue
        size = len(case.tasks)
        if method.rate is None:
            found[*where, "curves"] = 1 / size, CURVE_TRAININGS * size
        if each.options.get(RATES_OPTION) == RATES_BETWEEN:
            found[*where, RATES_BETWEEN] = 2 / size, CURVE_TRAININGS * size * (size - 1)
        if method.estimator != WITHOUT_TRANSFER:
            look = (*where, method.estimator, each.options.get("ahead"))
            found[look] = WORK_OF_LOOKS, int(each.options.get("runs", PAPER_RUNS))
            if each.options.get(TRIPLES_OPTION):
                found[*look, TRIPLES_OPTION] = found[look]
    return list(found.values())


def _assume_pool(case: Case, record: Record) -> Record:
    """A record that nobody writes to, with the pool of the whole data set where it is not known."""
    found = Record("")
    job = name_pool(case)
    known = record.get(job.kind, job.needs)
    if known is None:
        known = {"instances": POOLS[case.data] - case.have * len(case.tasks)}
    found.take(job, known)
    return found


def _time(case: Case, speed: Speed, counts: Mapping[str, JSON]) -> float:
    """Seconds of one training with its scores."""
    recipe = find_setup(case.setup).recipe
    most = case.have + max((int(each) for each in counts.values()), default=0)
    steps = recipe.steps or recipe.epochs * math.ceil(most / recipe.batch_size)
    trained = steps * recipe.batch_size * len(case.tasks)
    return trained / speed.trained + TESTED[case.setup] * len(case.tasks) / speed.scored
