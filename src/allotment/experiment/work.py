"""What a job of an experiment does, in whichever process: train out a purchase and score it on the
test part, or measure a piece of what a method asks for."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from allotment.data.labels import Labels
from allotment.estimates.estimates import Estimates
from allotment.estimates.letter import (
    CURVE_OPTIONS,
    PROBE_OPTIONS,
    RATES_OPTION,
    TRIPLES_OPTION,
    ToTheLetter,
)
from allotment.estimates.method import METHODS, mark_conclusion
from allotment.estimates.outline import BETWEEN_PIECE, CURVE_PIECE, PROBES_PIECE, TRIPLES_PIECE
from allotment.estimates.request import FOLDS, Request
from allotment.estimates.scoring import TEST_PART
from allotment.experiment.case import Case
from allotment.experiment.ground import Ground
from allotment.job import JSON, Job, canonical, parse
from allotment.learners.learner import Learner, train
from allotment.learners.setups import Setup, find_setup
from allotment.machine import describe_cpu
from allotment.runs.runner import name_runner
from allotment.runs.trees import Tree, take_all

PERFORM_EXPERIMENT = "allotment.experiment.work:perform"
TRAINING_JOB, MEASURING_JOB = "training", "measuring"
"""kinds of jobs"""
ESTIMATES, POOL = "estimates", "pool"
"""kinds of what else is on record: what measurements add up to, and how many labels can be had"""
MACHINE_KIND = "machine"
"""likewise: what jobs were done on"""
PLACE_KIND = "place"
"""likewise: the machine of a cluster on which a job was done"""
CURVES_ALONE, LOOKS_ALONE = "taba-alone", "taba-b1"
"""the paper's method with one of its two measurements and without the other"""
WHOLE_LETTER = "taba"
"""the paper's method, which alone has options of its future work"""
ON_VALIDATION, ON_TEST = "validation", "test"
"""the part that scores what a method measures; the paper takes the test part"""


@dataclass(frozen=True)
class Site:
    """A case, and where its files lie on this machine."""

    case: Case
    root: str
    weights: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"case": self.case.to_dict(), "root": self.root, "weights": self.weights}


def list_trees(site: Site) -> dict[str, Tree]:
    """The files that jobs read, by the keys of the context that name them."""
    trees = {"root": take_all(site.root)}
    return trees | ({} if site.weights is None else {"weights": take_all(site.weights)})


def make_site(case: Case, root: str | Path, weights: str | Path | None) -> Site:
    """The site of files that are given as paths."""
    return Site(case, os.path.abspath(root), None if weights is None else os.path.abspath(weights))


@lru_cache(maxsize=1)
def _open(text: str) -> Ground:
    plain = parse(text)
    weights = None if plain["weights"] is None else Path(plain["weights"])
    return Ground(Case.from_dict(plain["case"]), Path(plain["root"]), weights)


def open_ground(site: Site) -> Ground:
    """The ground of a site, opened once."""
    return _open(canonical(site.to_dict()))


@dataclass(frozen=True)
class Purchase:
    """A plan of one seed set that is bought and trained out."""

    seed_set: int
    purchase: int
    counts: Mapping[str, int]
    same: bool = False
    """all tasks on the same instances"""
    tasks: tuple[str, ...] = ()
    """that are trained; all if empty. A task that is trained alone gets no labels that come with
    those of another"""


@dataclass(frozen=True)
class Question:
    """What a method is asked about one seed set."""

    method: str
    seed_set: int
    trainings: int | None = None
    """the method's own number if None"""
    options: Mapping[str, JSON] = field(default_factory=dict)
    score_on: str = ""
    """VALIDATION or ON_TEST; "" for methods that score on folds of the labels at hand"""


def name_setup(case: Case) -> str:
    """The set-up of a case, told apart from others that had the same name."""
    return f"{case.setup} {_digest(find_setup(case.setup))}"


@cache  # every job has it in its name
def _digest(setup: Setup) -> str:
    return hashlib.sha256(canonical(asdict(setup)).encode()).hexdigest()[:8]


def name_training(case: Case, bought: Purchase) -> Job:
    """The job that trains out a purchase."""
    counts = {task: int(bought.counts.get(task, 0)) for task in case.tasks}
    needs = _share(case) | asdict(replace(bought, counts=counts))
    if not any(counts.values()):
        needs["same"] = False
    return Job(TRAINING_JOB, needs | {"tasks": list(bought.tasks or case.tasks)})


def _share(case: Case) -> dict[str, JSON]:
    return {"data": case.data, "setup": name_setup(case), "have": case.have}


def name_estimates(case: Case, asked: Question) -> Job:
    """What the measurements of a question add up to."""
    how = mark_conclusion(METHODS.load(asked.method))
    return Job(ESTIMATES, _describe(case, asked) | how)


def name_pool(case: Case) -> Job:
    """How many labels of a task can be bought."""
    return Job(POOL, _share(case))


def name_machine(case: Case, on: str | None = None) -> Job:
    """What this machine, or the runner that stands for others, is as far as figures depend on
    it."""
    device = find_setup(case.setup).recipe.settled().device
    cpu = describe_cpu() if on is None else name_runner(on)
    return Job(MACHINE_KIND, {"cpu": cpu, "device": device})


def name_place(job: Job) -> Job:
    """Where a job was done, as something that is on record beside its result."""
    return Job(PLACE_KIND, {"job": job.key}, job.versions)


def _describe(case: Case, asked: Question) -> dict[str, JSON]:
    method, trainings = METHODS.load(asked.method), asked.trainings
    if trainings is None:
        trainings = method.trainings
    shared = _share(case) | asdict(replace(asked, trainings=trainings))
    shared |= {"edition": method.edition}
    if asked.score_on == ON_VALIDATION:
        return shared | {"validation": case.validation}
    if not asked.score_on and case.implies:  # no longer counted as labels of their own
        return shared | {"implied": "in training"}
    return shared


def make_request(ground: Ground, asked: Question) -> Request:
    """The request that a method gets: the labels at hand of a seed set, and what scores them."""
    method = METHODS.load(asked.method)

    def open_bench() -> tuple[Learner, Labels]:
        if not asked.score_on:
            return ground.lay_bench(asked.seed_set)
        labels = ground.complete(ground.draw_seed_set(asked.seed_set))
        return ground.untested if asked.score_on != ON_TEST else ground.whole, labels

    scored: dict[str, Any] = {}
    if asked.score_on == ON_TEST:
        scored = {"score_on": TEST_PART}
    elif asked.score_on == ON_VALIDATION:
        scored = {"score_on": ground.draw_validation(asked.seed_set)}
    return Request(
        open_bench,
        seed=asked.seed_set,
        trainings=method.trainings if asked.trainings is None else asked.trainings,
        folds=1 if asked.score_on else FOLDS,
        options={**asked.options, **scored},
        per_job=1,
    )


def list_measurings(ground: Ground, asked: Question) -> list[Job]:
    """The jobs of a question, in their order."""
    method, request = METHODS.load(asked.method), make_request(ground, asked)
    with METHODS.calling(asked.method):
        found = method.jobs(request)
    return [
        Job(MEASURING_JOB, _describe(ground.case, narrow(asked, job)) | {"job": job})
        for job in found
    ]


def narrow(asked: Question, job: Mapping[str, JSON]) -> Question:
    """The question that asks for no more than one of its jobs: the paper's method, its ablations
    and other numbers of steps ahead share their curves and looks."""
    method, piece = METHODS.load(asked.method), job.get("piece", [""])[0]
    if not isinstance(method, ToTheLetter) or asked.trainings is not None:
        return asked  # fewer trainings are shared out otherwise in each of them
    if piece == CURVE_PIECE:
        return _keep(asked, CURVES_ALONE, CURVE_OPTIONS)
    if piece == BETWEEN_PIECE:
        return _keep(asked, WHOLE_LETTER, (*CURVE_OPTIONS, RATES_OPTION))
    if piece == PROBES_PIECE and method.estimator == ToTheLetter.estimator:
        return _keep(asked, LOOKS_ALONE, PROBE_OPTIONS)
    if piece == TRIPLES_PIECE:
        return _keep(asked, WHOLE_LETTER, (*PROBE_OPTIONS, TRIPLES_OPTION))
    return asked


def _keep(asked: Question, method: str, options: Sequence[str]) -> Question:
    kept = {key: value for key, value in asked.options.items() if key in options}
    return replace(asked, method=method, options=kept)


def conclude(ground: Ground, asked: Question, results: Sequence[JSON]) -> Estimates:
    """The estimates that finished jobs of a question add up to."""
    with METHODS.calling(asked.method):
        return METHODS.load(asked.method).conclude(make_request(ground, asked), results)


def perform(context: JSON, kind: str, needs: JSON) -> JSON:
    """One job: a pure function of its needs and of the files that the context names."""
    ground = _open(canonical(context))
    begin = time.process_time()
    if kind == TRAINING_JOB:
        found = _train(ground, needs)
    else:
        keys = ("method", "seed_set", "trainings", "options", "score_on")
        asked = Question(**{key: needs[key] for key in keys})
        method = METHODS.load(asked.method)
        found = {"plain": method.do(make_request(ground, asked), needs["job"])}
    return found | {"seconds": round(time.process_time() - begin, 2)}


def _train(ground: Ground, needs: JSON) -> dict[str, JSON]:
    """Scores on the test part after a purchase."""
    bought = ground.buy(needs["seed_set"], needs["purchase"], needs["counts"], needs["same"])
    tasks = needs["tasks"]
    # a task that is trained alone shows what it learns from labels of its own
    alone = len(tasks) < len(ground.case.tasks)
    labels = bought.only(*tasks) if alone else ground.complete(bought)
    learner = ground.tested
    state = train(learner, labels, seed=1000 * needs["seed_set"] + needs["purchase"])
    scores = {task: learner.score(state, task) for task in tasks}
    return {
        "metrics": {task: _plain(each.metric) for task, each in scores.items()},
        "losses": {task: _plain(each.loss) for task, each in scores.items()},
        "higher": {task: each.higher_is_better for task, each in scores.items()},
    }


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
