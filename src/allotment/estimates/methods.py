"""The ways from labels at hand to estimates, and the one verb that takes any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import short
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates import worth
from allotment.estimates.design import Design, design
from allotment.estimates.estimates import Estimates
from allotment.estimates.paper import OUTLINE, Paper, follow_letter, follow_mended
from allotment.estimates.request import Progress, Request, Work
from allotment.estimates.response import UNTRAINED, Response, run
from allotment.estimates.stopping import check_probing
from allotment.learners.learner import Learner
from allotment.machine import settled
from allotment.problem import Problem

Array = NDArray[np.float64]

FOLDS = 4
"""parts of the labels at hand that score in turn, where there are no validation labels"""
LOGARITHMIC = 0.001
"""exponent at which a power law is a logarithm to within a thousandth"""


@dataclass(frozen=True)
class Method:
    """One way to estimates."""

    about: str
    trainings: int
    """unless told otherwise"""
    options: tuple[str, ...]
    measure: Callable[[Request], Estimates]
    weigh: Callable[[Request], Work]
    paper: Callable[[Request], Paper] | None = None
    """where it is the paper's, whose pieces can be measured anywhere; it probes trainings, which
    may end early"""


@settled(load=False)
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

    `method` is one of METHODS. `trainings` is how many it may run, or what these would take where
    its own are shorter. `folds` above 1 score on parts of the labels at hand in turn; left out,
    that is done where the learner has no validation labels for some task. `progress` is told (done,
    total, what). Methods that probe take at most `probing`, {"steps": 5000} or {"minutes": 10}, and
    with a `problem` they stop once more of it could not move that problem's plan out of its
    plateau. Other `options` are the method's own.
    """
    options |= {"progress": progress, "problem": problem, "probing": probing}
    request = prepare(
        learner, labels, seed, method=method, trainings=trainings, folds=folds, **options
    )
    return label(METHODS[method].measure(request), method, request)


def label(found: Estimates, method: str, request: Request) -> Estimates:
    """The estimates with a note of where they come from."""
    about = {
        "method": method,
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
    method: str = "response",
    trainings: int | None = None,
    folds: int | None = None,
    progress: Progress | None = None,
    problem: Problem | None = None,
    probing: Mapping[str, float] | None = None,
    **options: Any,
) -> Request:
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
        if probing is not None and METHODS[method].paper is None:
            which = ", ".join(name for name, each in METHODS.items() if each.paper)
            mistakes.append(
                Mistake("probing", f"method {method!r} probes nothing; these do: {which}")
            )
    mistakes += check_probing(probing, problem, learner.tasks)
    for name in labels:
        if name not in learner.tasks:
            mistakes.append(
                Mistake(
                    f"task {name!r}", f"is not one of the learner's; {suggest(name, learner.tasks)}"
                )
            )
    for key, number, least in (("trainings", trainings, 0), ("folds", folds, 1)):
        if number is not None and (not isinstance(number, int | np.integer) or number < least):
            mistakes.append(
                Mistake(key, f"{short(number)} is not a whole number of {least} or more")
            )
    if not mistakes and folds is not None and folds > 1 and not hasattr(learner, "with_validation"):
        what = (
            f"{folds}: the learner cannot be scored on a part of the labels; give it a"
            " `with_validation`, or 1 fold"
        )
        mistakes.append(Mistake("folds", what))
    if mistakes:
        raise InputError(mistakes)
    count = (
        METHODS[method].trainings if trainings is None or method == "neutral" else int(trainings)
    )
    everything = Labels({task: labels[task] for task in learner.tasks})
    if folds is None:
        folds = _choose_folds(learner, everything, seed) if count else 1
    return Request(learner, everything, seed, count, folds, options, progress, problem, probing)


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


# --- response, slopes, neutral ---


def _respond(request: Request) -> Response:
    def report(done: int, total: int) -> None:
        if request.progress is not None:
            request.progress(done, total, "response")

    chosen = design(request.labels, request.trainings, request.seed, request.folds)
    together = {"together": request.options["together"]} if "together" in request.options else {}
    return run(request.learner, request.labels, chosen, report, **together)


def _measure_response(request: Request) -> Estimates:
    response = _respond(request)
    options = {key: value for key, value in request.options.items() if key != "together"}
    found = worth.fit(response, seed=request.seed, **options)
    return replace(
        found, about=dict(found.about) | {"unit": "%", "measured": {"response": response.to_dict()}}
    )


def _weigh_response(request: Request) -> Work:
    chosen: Design = design(request.labels, request.trainings, request.seed, request.folds)
    steps = mini_batches = 0
    for counts in chosen.counts.tolist():
        few = {
            task: request.labels[task].instances[:count]
            for task, count in zip(chosen.tasks, counts, strict=True)
        }
        here = request.learner.steps(Labels(few))
        steps, mini_batches = steps + here, mini_batches + here * sum(count > 0 for count in counts)
    return Work(len(chosen), steps, mini_batches, (len(chosen) + UNTRAINED) * len(chosen.tasks))


def _measure_neutral(request: Request) -> Estimates:
    nothing = np.zeros((0, len(request.labels)))
    have = tuple(len(labels) for labels in request.labels.values())
    blank = Response(
        tuple(request.labels), have, nothing.astype(np.int64), nothing, nothing, (True,) * len(have)
    )
    return replace(worth.fit(blank, seed=request.seed, **request.options), about={"unit": "%"})


def _weigh_neutral(request: Request) -> Work:
    return Work(0, 0, 0, 0)


def _measure_slopes(request: Request) -> Estimates:
    response = _respond(request)
    found = fit_slopes(response, int(request.options.get("draws", worth.DRAWS)), request.seed)
    return replace(found, about={"unit": "%", "measured": {"response": response.to_dict()}})


def fit_slopes(response: Response, draws: int = worth.DRAWS, seed: int = 0) -> Estimates:
    """w_ij log(1 + N_j / n_j) with w by least squares, as it comes: no prior, no shrinkage."""
    rng = np.random.default_rng([abs(seed), 13])
    have = np.maximum(np.array(response.have, dtype=float), 1.0)
    rows = [_fit_slopes(response, task, draws, rng) for task in range(len(have))]
    worths = np.stack(rows, axis=1) / LOGARITHMIC * have**LOGARITHMIC
    return Estimates(
        response.tasks, response.have, worths, np.full((draws, len(have)), LOGARITHMIC)
    )


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
    columns = np.concatenate(
        [fold[:, None] == np.unique(fold), np.log(counts[:, known] / have[known])], axis=1
    )
    spare = len(seen) - columns.shape[1]
    if spare < 1:
        what = (
            f"{len(seen)} cannot tell {columns.shape[1]} numbers apart; slopes need"
            f" {columns.shape[1] + 1} or more"
        )
        raise InputError([Mistake("trainings", what)])
    inverse = np.linalg.pinv(columns.T @ columns)
    found = inverse @ columns.T @ seen
    spread = math.sqrt(float(np.sum((seen - columns @ found) ** 2)) / spare)
    root = np.linalg.cholesky(inverse + 1e-12 * np.trace(inverse) * np.eye(len(inverse)))
    noise = (
        rng.normal(size=(draws, len(found)))
        @ root.T
        * spread
        / np.sqrt(rng.chisquare(spare, draws) / spare)[:, None]
    )
    noise -= noise.mean(axis=0) if draws > 1 else noise
    slopes[:, known] = (found + noise)[:, -int(known.sum()) :]
    return slopes


def _in_pieces(follow: Callable[[Request], Paper]) -> tuple[Any, Any, Any]:
    """How a way of the paper's is measured and weighed, and its pieces."""
    return lambda request: follow(request).run(), lambda request: follow(request).weigh(), follow


METHODS = {
    "response": Method(
        "multi-task trainings on subsets of the labels at hand, and a prior over learning curves",
        60,
        ("draws", "best", "prior", "together"),
        _measure_response,
        _weigh_response,
    ),
    "taba": Method(
        "the paper's to the letter: mean of ratios, pseudo-labels of an ensemble, one curve for"
        " each task",
        30,
        (*OUTLINE, "ensemble", "mode", "pool", "fallback", "draws"),
        *_in_pieces(follow_letter),
    ),
    "taba-pooled": Method(
        "the paper's, mended: pooled transfer, curves on subsets, every task's own first gain",
        30,
        (*OUTLINE, "estimator", "own_gain", "fallback", "draws"),
        *_in_pieces(follow_mended),
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
