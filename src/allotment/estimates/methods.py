"""The ways from labels at hand to estimates, and the one verb that takes any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import short
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates import taba, worth
from allotment.estimates.curves import Fit, Points, fit_exact, fit_paper
from allotment.estimates.design import Design, design, folds_of
from allotment.estimates.estimates import Estimates
from allotment.estimates.probes import AHEAD, Probes, make_arms
from allotment.estimates.response import UNTRAINED, Response, run
from allotment.estimates.stopping import allow, check_probing, enough_for
from allotment.estimates.transfer import ESTIMATORS, affinity
from allotment.learners.learner import Learner, labelled
from allotment.problem import Problem

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 4
"""parts of the labels at hand that score in turn, where there are no validation labels"""
LOGARITHMIC = 0.001
"""exponent at which a power law is a logarithm to within a thousandth"""

Progress = Callable[[int, int, str], None]
"""told how many trainings are done, of how many, and of what"""


@dataclass(frozen=True)
class Work:
    """What a method takes, before it is begun."""

    trainings: int
    steps: int
    """of all trainings and probes; a step on several tasks counts once"""
    mini_batches: int
    scores: int
    """how often a task is scored"""
    probing: int = 0
    """of the mini-batches, those of trainings that are probed: these never run as one stack"""


@dataclass(frozen=True)
class Job:
    """What a method is given: labels of every task, and options that are checked already."""

    learner: Learner
    labels: Labels
    seed: int
    trainings: int
    folds: int
    options: Mapping[str, Any]
    progress: Progress | None = None
    problem: Problem | None = None
    """whose plan ends probing early, once more of it could not move that out of its plateau"""
    probing: Mapping[str, float] | None = None
    """the most that probing may take, by one of LIMITS"""

    @property
    def parts(self) -> list[tuple[Learner, Labels]]:
        """The learner scored on each fold, with the labels outside it; with one fold, both as they are."""
        if self.folds == 1:
            return [(self.learner, self.labels)]
        return [self.keep_out(number) for number in range(self.folds)]

    def keep_out(self, number: int) -> tuple[Learner, Labels]:
        """The learner scored on the labels of one fold, and the labels of the others."""
        kept, rest = {}, {}
        for task, mine in self.labels.items():
            inside = folds_of(mine.instances, self.folds, self.seed) == number
            kept[task], rest[task] = mine.keep(inside), mine.keep(~inside)
        return self.learner.with_validation(Labels(kept)), Labels(rest)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Method:
    """One way to estimates."""

    about: str
    trainings: int
    """unless told otherwise"""
    options: tuple[str, ...]
    measure: Callable[[Job], Estimates]
    weigh: Callable[[Job], Work]
    probes: bool = False
    """whether it probes trainings, which can be limited and ended early"""


def estimate(
    learner: Learner,
    labels: Labels,
    seed: int = 0,
    *,
    method: str = "response",
    trainings: int | None = None,
    folds: int | None = None,
    progress: Progress | None = None,
    problem: Problem | None = None,
    probing: Mapping[str, float] | None = None,
    **options: Any,
) -> Estimates:
    """What one more label of each task is worth, measured by training on the labels at hand.

    `method` is one of METHODS. `trainings` is how many it may run, or what these would take where its own are shorter.
    `folds` above 1 score on parts of the labels at hand in turn; left out, that is done where the learner has no
    validation labels for some task. `progress` is told (done, total, what). Methods that probe take at most
    `probing`, {"steps": 5000} or {"minutes": 10}, and with a `problem` they stop once more of it could not move that
    problem's plan out of its plateau. Other `options` are the method's own.
    """
    options |= {"progress": progress, "problem": problem, "probing": probing}
    job = prepare(learner, labels, seed, method=method, trainings=trainings, folds=folds, **options)
    found = METHODS[method].measure(job)
    about = {"method": method, "trainings": job.trainings, "folds": job.folds, "seed": seed}
    return replace(found, about=about | dict(found.about))


def prepare(
    learner: Learner,
    labels: Labels,
    seed: int = 0,
    *,
    method: str = "response",
    trainings: int | None = None,
    folds: int | None = None,
    progress: Progress | None = None,
    problem: Problem | None = None,
    probing: Mapping[str, float] | None = None,
    **options: Any,
) -> Job:
    """The same arguments as `estimate`, checked and completed; nothing is trained."""
    mistakes = []
    if method not in METHODS:
        mistakes.append(Mistake("method", f"unknown {method!r}; {suggest(method, METHODS)}"))
    else:
        known = METHODS[method].options
        mistakes += [
            Mistake(key, f"is no option of method {method!r}; {suggest(key, known)}")
            for key in options
            if key not in known
        ]
        if probing is not None and not METHODS[method].probes:
            which = ", ".join(name for name, each in METHODS.items() if each.probes)
            mistakes.append(Mistake("probing", f"method {method!r} probes nothing; these do: {which}"))
    mistakes += check_probing(probing, problem, learner.tasks)
    for name in labels:
        if name not in learner.tasks:
            mistakes.append(Mistake(f"task {name!r}", f"is not one of the learner's; {suggest(name, learner.tasks)}"))
    for key, number, least in (("trainings", trainings, 0), ("folds", folds, 1)):
        if number is not None and (not isinstance(number, int | np.integer) or number < least):
            mistakes.append(Mistake(key, f"{short(number)} is not a whole number of {least} or more"))
    if not mistakes and folds is not None and folds > 1 and not hasattr(learner, "with_validation"):
        what = f"{folds}: the learner cannot be scored on a part of the labels; give it a `with_validation`, or 1 fold"
        mistakes.append(Mistake("folds", what))
    if mistakes:
        raise InputError(mistakes)
    count = METHODS[method].trainings if trainings is None or method == "neutral" else int(trainings)
    everything = Labels({task: labels[task] for task in learner.tasks})
    if folds is None:
        folds = _choose_folds(learner, everything, seed) if count else 1
    return Job(learner, everything, seed, count, folds, options, progress, problem, probing)


def _choose_folds(learner: Learner, labels: Labels, seed: int) -> int:
    """1 where the learner's own validation labels score every task."""
    state = learner.start(labels, seed)
    mute = [task for task in learner.tasks if not math.isfinite(learner.score(state, task).metric)]
    if not mute:
        return 1
    if hasattr(learner, "with_validation"):
        return FOLDS
    what = "no validation label scores it; give the learner some, or a `with_validation` that scores on labels at hand"
    raise InputError([Mistake(f"task {task!r}", what) for task in mute])


# --- response, slopes, neutral ---


def _respond(job: Job) -> Response:
    def report(done: int, total: int) -> None:
        if job.progress is not None:
            job.progress(done, total, "response")

    chosen = design(job.labels, job.trainings, job.seed, job.folds)
    together = {"together": job.options["together"]} if "together" in job.options else {}
    return run(job.learner, job.labels, chosen, report, **together)


def _measure_response(job: Job) -> Estimates:
    response = _respond(job)
    options = {key: value for key, value in job.options.items() if key != "together"}
    found = worth.fit(response, seed=job.seed, **options)
    return replace(found, about=dict(found.about) | {"unit": "%", "measured": {"response": response.to_dict()}})


def _weigh_response(job: Job) -> Work:
    chosen: Design = design(job.labels, job.trainings, job.seed, job.folds)
    steps = mini_batches = 0
    for counts in chosen.counts.tolist():
        few = {task: job.labels[task].instances[:count] for task, count in zip(chosen.tasks, counts, strict=True)}
        here = job.learner.steps(Labels(few))
        steps, mini_batches = steps + here, mini_batches + here * sum(count > 0 for count in counts)
    return Work(len(chosen), steps, mini_batches, (len(chosen) + UNTRAINED) * len(chosen.tasks))


def _measure_neutral(job: Job) -> Estimates:
    nothing = np.zeros((0, len(job.labels)))
    have = tuple(len(labels) for labels in job.labels.values())
    blank = Response(tuple(job.labels), have, nothing.astype(np.int64), nothing, nothing, (True,) * len(have))
    return replace(worth.fit(blank, seed=job.seed, **job.options), about={"unit": "%"})


def _weigh_neutral(job: Job) -> Work:
    return Work(0, 0, 0, 0)


def _measure_slopes(job: Job) -> Estimates:
    response = _respond(job)
    found = fit_slopes(response, int(job.options.get("draws", worth.DRAWS)), job.seed)
    return replace(found, about={"unit": "%", "measured": {"response": response.to_dict()}})


def fit_slopes(response: Response, draws: int = worth.DRAWS, seed: int = 0) -> Estimates:
    """w_ij log(1 + N_j / n_j) with w by least squares, as it comes: no prior, no shrinkage."""
    rng = np.random.default_rng([abs(seed), 13])
    have = np.maximum(np.array(response.have, dtype=float), 1.0)
    rows = [_fit_slopes(response, task, draws, rng) for task in range(len(have))]
    worths = np.stack(rows, axis=1) / LOGARITHMIC * have**LOGARITHMIC
    return Estimates(response.tasks, response.have, worths, np.full((draws, len(have)), LOGARITHMIC))


def _fit_slopes(response: Response, task: int, draws: int, rng: np.random.Generator) -> Array:
    """[draw, labelled task]: what an e-fold of labels brings to the task, in % of its score."""
    there = np.isfinite(response.scores[:, task])
    counts, scores = np.maximum(response.counts[there], 1), response.scores[there, task]
    have, fold = np.array(response.have), response.fold[there]
    slopes = np.zeros((draws, len(have)))
    if not there.any() or not have[task]:
        return slopes
    scale = abs(float(scores[counts[:, task] == counts[:, task].max()].mean())) or 1.0
    seen = scores / scale * (100 if response.higher_is_better[task] else -100)
    known = have > 0
    columns = np.concatenate([fold[:, None] == np.unique(fold), np.log(counts[:, known] / have[known])], axis=1)
    spare = len(seen) - columns.shape[1]
    if spare < 1:
        what = f"{len(seen)} cannot tell {columns.shape[1]} numbers apart; slopes need {columns.shape[1] + 1} or more"
        raise InputError([Mistake("trainings", what)])
    inverse = np.linalg.pinv(columns.T @ columns)
    found = inverse @ columns.T @ seen
    spread = math.sqrt(float(np.sum((seen - columns @ found) ** 2)) / spare)
    root = np.linalg.cholesky(inverse + 1e-12 * np.trace(inverse) * np.eye(len(inverse)))
    noise = (
        rng.normal(size=(draws, len(found))) @ root.T * spread / np.sqrt(rng.chisquare(spare, draws) / spare)[:, None]
    )
    noise -= noise.mean(axis=0) if draws > 1 else noise
    slopes[:, known] = (found + noise)[:, -int(known.sum()) :]
    return slopes


# --- the paper's way ---

_OUTLINE = ("every", "ahead", "runs", "sizes", "repetitions")


def _outline(job: Job, pool: Ints | None) -> taba.Outline:
    learner, labels = _smallest(job)
    given = {key: value for key, value in job.options.items() if key in (*_OUTLINE, "ensemble")}
    if job.probing is not None:
        given["allowance"] = allow(job.probing, job.parts, given.get("ahead", AHEAD), job.seed)
    return taba.settle(learner, labels, job.trainings, pool=pool, parts=job.folds, **given)


def _smallest(job: Job) -> tuple[Learner, Labels]:
    """As many labels of each task as every part has."""
    parts = job.parts
    learner, first = parts[0]
    least = {task: min(len(labels[task]) for _, labels in parts) for task in first}
    return learner, Labels({task: mine.keep(np.arange(len(mine)) < least[task]) for task, mine in first.items()})


def _pool_of(job: Job) -> Ints:
    """The unlabelled instances, from the learner's own split unless given."""
    pool = job.options.get("pool")
    if pool is None and hasattr(job.learner, "split"):
        pool = job.learner.split.train
    if pool is None:
        raise InputError([Mistake("pool", "an ensemble labels it; give the instances without labels: pool=range(...)")])
    free = np.asarray(list(pool), dtype=np.int64)
    # a fold is scored on: not even its inputs are learnt from
    taken = [labels.instances for labels in job.labels.values()] if job.folds > 1 else []
    return np.setdiff1d(free, np.concatenate(taken)) if taken else free


def _measure_taba(job: Job) -> Estimates:
    pool, mode = _pool_of(job), job.options.get("mode", "hard")
    # the letter plans with one rate: its draws only tell whether the curve carries a signal
    return _measure_both(job, pool, mode, estimator="paper", fit=partial(fit_paper, draws=50), letter=True)


def _measure_pooled(job: Job) -> Estimates:
    own_gain = bool(job.options.get("own_gain", True))
    estimator = job.options.get("estimator", "pooled")
    if estimator not in ESTIMATORS:
        raise InputError([Mistake("estimator", f"unknown {estimator!r}; {suggest(estimator, ESTIMATORS)}")])
    return _measure_both(job, None, "", estimator=estimator, fit=fit_exact, own_gain=own_gain)


class _Count:
    """How many trainings are done, of how many."""

    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self.progress = 0, total, progress

    def tell(self, more: int, what: str) -> None:
        self.done += more
        if self.progress is not None:
            self.progress(self.done, self.total, what)

    def until(self, rule: Callable[[Probes], bool]) -> Callable[[Probes], bool]:
        """The rule, asked before a training is told, with no more to do from the moment that it says yes."""

        def enough(probes: Probes) -> bool:
            stops = rule(probes)
            self.total = self.done + 1 if stops else self.total
            return stops

        return enough


def _measure_both(
    job: Job, pool: Ints | None, mode: str, *, estimator: str, fit: Callable[[Points], Fit], **how: Any
) -> Estimates:
    """Curves first: they say what a plan hangs on, and so when to stop probing."""
    outline, parts = _outline(job, pool), job.parts
    count = _Count(_weigh_outline(job, outline, pool).trainings, job.progress)
    curves = taba.measure_curves(parts, outline, job.seed, count.tell, pool, mode)
    have = {task: len(labels) for task, labels in job.labels.items()}
    how["fallback"] = job.options.get("fallback", True)
    fit = cache(fit)  # the rule and the estimates need the same fits
    enough = None
    if job.problem is not None:
        known = taba.find_known(curves, have, fit=fit, **how)
        enough = count.until(enough_for(job.problem, known, estimator=estimator, between=1, seed=job.seed))
    probes = taba.measure_probes(parts, outline, job.seed, count.tell, enough)
    transfer = affinity(probes, estimator)
    draws = int(job.options.get("draws", taba.DRAWS))
    found = taba.combine(transfer, curves, have, fit=fit, draws=draws, seed=job.seed, **how)
    measured = {"transfer": transfer.to_dict(), "points": {task: points.to_dict() for task, points in curves.items()}}
    probing = taba.tell_probing(probes, parts, outline) | ({} if job.probing is None else {"limit": dict(job.probing)})
    about = {"trainings": count.done, "probing": probing, "measured": measured}
    return replace(found, about=dict(found.about) | about)


def _weigh_outline(job: Job, outline: taba.Outline, pool: Ints | None) -> Work:
    learner, labels = _smallest(job)
    tasks = labelled(learner, labels)
    both, probing = (taba.weigh(learner, labels, each, pool) for each in (outline, replace(outline, sizes={})))
    looks = outline.runs * outline.looks(learner, labels)
    teachers = outline.ensemble * min(outline.parts, outline.repetitions) * len(outline.sizes)
    scores = looks * len(tasks) * (len(tasks) + 1) + both.trainings - outline.runs - teachers
    probes = outline.runs * learner.steps(labels) + looks * outline.ahead * len(make_arms(tasks))
    return Work(both.trainings, probes + both.steps - probing.steps, both.steps, scores, probing.steps)


def _weigh_taba(job: Job) -> Work:
    pool = _pool_of(job)
    return _weigh_outline(job, _outline(job, pool), pool)


def _weigh_pooled(job: Job) -> Work:
    return _weigh_outline(job, _outline(job, None), None)


METHODS = {
    "response": Method(
        "multi-task trainings on subsets of the labels at hand, and a prior over learning curves",
        60,
        ("draws", "best", "prior", "together"),
        _measure_response,
        _weigh_response,
    ),
    "taba": Method(
        "the paper's to the letter: mean of ratios, pseudo-labels of an ensemble, one curve for each task",
        30,
        (*_OUTLINE, "ensemble", "mode", "pool", "fallback", "draws"),
        _measure_taba,
        _weigh_taba,
        probes=True,
    ),
    "taba-pooled": Method(
        "the paper's, mended: pooled transfer, curves on subsets, every task's own first gain",
        30,
        (*_OUTLINE, "estimator", "own_gain", "fallback", "draws"),
        _measure_pooled,
        _weigh_pooled,
        probes=True,
    ),
    "neutral": Method(
        "no training at all: every task alike but for its labels at hand",
        0,
        ("draws",),
        _measure_neutral,
        _weigh_neutral,
    ),
    "slopes": Method(
        "raw least-squares slopes over the logarithm of labels, for comparison",
        30,
        ("draws", "together"),
        _measure_slopes,
        _weigh_response,
    ),
}
"""by name, the default first"""
