"""The paper's own way to estimates (Algorithm 1): transfer by Eq. 5 and reduction rates by Eq. 7, put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.curves import FEWEST_SIZES, Fit, Points, fit_exact, resample
from allotment.estimates.estimates import Estimates
from allotment.estimates.probes import AHEAD, Probes, check_tasks, join, make_arms, probe_training
from allotment.estimates.reduction import (
    Price,
    Unscored,
    ensemble_curve,
    price_ensemble,
    price_subsets,
    spread_sizes,
    subset_curve,
)
from allotment.estimates.stopping import Allowance, Known
from allotment.estimates.transfer import Transfer
from allotment.estimates.verdict import Verdict, judge
from allotment.learners.learner import Learner, count_gradients, count_scoring, labelled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS = 240
USUAL_REACH = 1.2
"""-1 / log b in units of the labels at hand, where no curve tells; evidence: b = 0.9973 with 300 labels"""
SIZES = 4
"""of a curve, from an eighth to all"""
MOST_REPETITIONS = 16
"""of a curve; more cannot tell what is unusual about the labels at hand"""


@dataclass(frozen=True, eq=False)
class Rates:
    """The reduction rate of every task, and where it comes from."""

    tasks: tuple[str, ...]
    point: Array
    """[task]"""
    draws: Array
    """[draw, task]"""
    verdicts: dict[str, Verdict]
    fallbacks: tuple[str, ...]
    """tasks whose own curve says nothing"""


def combine(
    transfer: Transfer,
    curves: Mapping[str, Points],
    have: Mapping[str, int],
    *,
    own_gain: bool = False,
    subsets: Mapping[str, Points] | None = None,
    letter: bool = False,
    fallback: bool = True,
    fit: Callable[[Points], Fit] = fit_exact,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimates:
    """Algorithm 1: N labels of task i are worth the sum over j of I_(i -> j), times (1 - b_i^N) / (1 - b_i).

    Worths count in labels of the gaining task's own, as the paper's do. With `own_gain` they become % of its score: the
    next label of task j adds what `subsets` (or `curves`, where these are of subsets) show, and I_(i -> j) of that is
    what a label of i adds. A curve that carries no signal gets the mean reach of the others, unless `fallback` is off.
    With `letter` the curve of every task is the paper's own, I_i (1 - b_i^N) / (1 - b_i) with I_i of Eq. 3: what labels
    of i do for others counts as theirs, and draws differ in the transfer alone.
    """
    tasks = tuple(have)
    measured = curves if subsets is None else subsets
    mistakes = _check(transfer, curves, measured if own_gain else {}, tasks, draws)
    if mistakes:
        raise InputError(mistakes)
    rng = np.random.default_rng([abs(seed), 11])
    rates = find_rates(curves, have, fallback=fallback, fit=fit, draws=draws, rng=rng)
    worths = _draw_transfer(transfer, tasks, draws, seed, letter)
    shapes = np.broadcast_to(rates.point, (draws, len(tasks))) if letter else rates.draws
    if own_gain:
        own = find_rates(measured, have, fallback=fallback, fit=fit_exact, draws=draws, rng=rng)
        worths = worths * _draw_first(measured, own, have, rng)[:, :, None]
    if letter:
        worths = worths.sum(axis=1)[:, :, None] * np.eye(len(tasks))
    about = {
        "estimator": transfer.estimator,
        "unit": "%" if own_gain else "labels",
        "letter": letter,
        "rates": dict(zip(tasks, rates.point.tolist(), strict=True)),
        "verdicts": {task: verdict.grade for task, verdict in rates.verdicts.items()},
        "fallbacks": list(rates.fallbacks),
    }
    counts = tuple(have[task] for task in tasks)
    return Estimates(tasks, counts, worths=worths, shapes=shapes, law="geometric", about=about)


def _check(
    transfer: Transfer, curves: Mapping[str, Points], measured: Mapping[str, Points], tasks: tuple[str, ...], draws: int
) -> list[Mistake]:
    mistakes = [Mistake("draws", f"{draws} is below 1")] if draws < 1 else []
    for where, names in (("transfer", transfer.tasks), ("curves", tuple(curves)), ("subsets", tuple(measured))):
        for name in names:
            if name not in tasks:
                mistakes.append(Mistake(where, f"task {name!r} is not in `have`; {suggest(name, tasks)}"))
    for task, points in measured.items():
        if "pseudo" in points.source:
            what = f"{points.source} do not show what a real label adds; give the curve on subsets in `subsets`"
            mistakes.append(Mistake(f"own_gain of {task!r}", what))
    return mistakes


def find_rates(
    curves: Mapping[str, Points],
    have: Mapping[str, int],
    *,
    fallback: bool,
    fit: Callable[[Points], Fit],
    draws: int,
    rng: np.random.Generator,
) -> Rates:
    """b of every task. Where its own curve says nothing: the others' mean, which may be any one of theirs."""
    fits = {task: fit(points) for task, points in curves.items()}
    verdicts = {task: judge(points, fits[task]) for task, points in curves.items()}
    usable = [task for task in curves if verdicts[task].grade != "unusable" or not fallback]
    reaches = {task: _draw_reach(fits[task], draws, rng) for task in usable}
    middle = {task: _reach(fits[task].shape) for task in usable}
    point, drawn = [], []
    for task in have:
        if task in usable:
            point.append(middle[task])
            drawn.append(reaches[task])
        elif usable:
            point.append(float(np.mean(list(middle.values()))))
            drawn.append(np.stack(list(reaches.values()))[rng.integers(len(usable), size=draws), np.arange(draws)])
        else:
            point.append(math.log(USUAL_REACH * max(have[task], 1)))
            drawn.append(np.full(draws, point[-1]))
    rest = tuple(task for task in have if task not in usable)
    return Rates(tuple(have), _rate(np.array(point)), _rate(np.stack(drawn, axis=1)), verdicts, rest)


def find_known(
    curves: Mapping[str, Points],
    have: Mapping[str, int],
    *,
    own_gain: bool = False,
    letter: bool = False,
    fallback: bool = True,
    fit: Callable[[Points], Fit] = fit_exact,
) -> Known:
    """What `combine` with the same options has of curves, in the middle of its draws: probes will not change it."""
    rng = np.random.default_rng(11)
    rates = find_rates(curves, have, fallback=fallback, fit=fit, draws=DRAWS, rng=rng)
    first = None
    if own_gain:
        middle = replace(rates, draws=np.broadcast_to(rates.point, rates.draws.shape))
        first = dict(zip(have, _draw_first(curves, middle, have, rng).mean(axis=0).tolist(), strict=True))
    return Known(dict(zip(have, rates.point.tolist(), strict=True)), first, letter)


def _reach(rate: Any) -> Any:
    """Of a reduction rate: the logarithm of -1 / log b, on which rates lie evenly and can be averaged."""
    return -np.log(-np.log(np.clip(rate, 1e-300, 1 - 1e-12)))


def _rate(reach: Array) -> Array:
    return np.asarray(np.exp(-np.exp(-reach)))


def _draw_reach(fit: Fit, draws: int, rng: np.random.Generator) -> Array:
    if not fit.draws:
        return np.full(draws, _reach(fit.shape))
    return np.asarray(_reach(np.array([shape for shape, _ in fit.draws])[rng.integers(len(fit.draws), size=draws)]))


def _draw_transfer(transfer: Transfer, tasks: tuple[str, ...], draws: int, seed: int, letter: bool) -> Array:
    """[draw, gaining task, labelled task]; a task that was not probed neither helps nor is helped."""
    found = np.broadcast_to(transfer.matrix, (draws, *transfer.matrix.shape))
    if draws > 1:
        found = transfer.draws(draws, seed)
        if letter:  # every other draw mirrors the one before, so that the mean is the paper's figure
            found[1::2] = 2 * transfer.matrix - found[: draws - 1 : 2]
            found[draws - draws % 2 :] = transfer.matrix
    worths = np.broadcast_to(np.eye(len(tasks)), (draws, len(tasks), len(tasks))).copy()
    places = [tasks.index(task) for task in transfer.tasks]
    worths[np.ix_(range(draws), places, places)] = found.transpose(0, 2, 1)
    return worths


def _draw_first(
    measured: Mapping[str, Points], rates: Rates, have: Mapping[str, int], rng: np.random.Generator
) -> Array:
    """[draw, task]: what the next label adds to its own task, in % of its score; without a curve, the others' mean."""
    found = {}
    for at, task in enumerate(rates.tasks):
        if task in measured:
            found[task] = _first_of(measured[task], rates.draws[:, at], have[task], rng)
    if not found:
        raise InputError([Mistake("own_gain", "no task has a curve on subsets; measure one, or leave `own_gain` off")])
    usual: Array = np.mean(list(found.values()), axis=0)
    rows: list[Array] = [found.get(task, usual) for task in rates.tasks]
    return np.stack(rows, axis=1)


def _first_of(points: Points, shapes: Array, have: int, rng: np.random.Generator) -> Array:
    """[draw]: the size of a geometric curve of these shapes through the points, where the labels at hand end."""
    unit = -np.expm1(points.more * np.log(shapes)[:, None]) / (1 - shapes[:, None])
    errors = points.gains - unit[0] * float(points.gains @ unit[0] / (unit[0] @ unit[0]))
    again = resample(points, errors, len(shapes), 0.9, rng)
    gains = np.broadcast_to(points.gains, unit.shape) if again is None else again
    first = np.sum(gains * unit, axis=1) / np.sum(unit**2, axis=1)
    scale = abs(float(points.values[:, -1].mean())) or 1.0
    return np.asarray(first * shapes ** (have - points.start) / scale * 100)


# --- measuring ---


@dataclass(frozen=True)
class Outline:
    """Which trainings are run, settled before the first."""

    runs: int
    """trainings that are probed"""
    every: int
    ahead: int
    """steps of each look ahead: the paper's m"""
    sizes: dict[str, tuple[int, ...]]
    repetitions: int
    ensemble: int
    """0: curves on subsets of the labels at hand"""
    parts: int = 1
    """of the labels at hand that score in turn; every part that has a curve has an ensemble of its own"""

    def looks(self, learner: Learner, labels: Labels) -> int:
        """Probes of one training."""
        return max(learner.steps(labels) - self.ahead, 0) // self.every


def settle(
    learner: Learner,
    labels: Labels,
    trainings: int,
    *,
    pool: Ints | None = None,
    every: int | None = None,
    ahead: int = AHEAD,
    runs: int | None = None,
    sizes: Sequence[int] | None = None,
    repetitions: int | None = None,
    ensemble: int = 3,
    parts: int = 1,
    allowance: Allowance | None = None,
) -> Outline:
    """Half of what so many trainings on all labels take goes to probing, half to curves; at least one of each.

    With an `allowance` probing takes at most that. With a `pool` curves are those of pseudo-labels. What is given stays
    as it is given.
    """
    tasks = labelled(learner, labels)
    if mistakes := check_tasks(tasks):
        raise InputError(mistakes)
    worth = trainings * learner.steps(labels) * len(tasks) / 2
    if allowance is None:
        allowance = Allowance(worth, learner.steps(labels), len(tasks), _weigh_look(learner, labels, ahead))
    runs, every = allowance.settle(ahead, runs, every)
    ensemble = 0 if pool is None else ensemble
    chosen = {task: _sizes_of(labels, task, sizes, pool) for task in tasks}
    chosen = {task: each for task, each in chosen.items() if len(each) >= FEWEST_SIZES}  # the others borrow their rate
    outline = Outline(runs, every, ahead, chosen, repetitions or 1, ensemble, parts)
    if repetitions is None:
        once = _weigh_curves(learner, labels, replace(outline, ensemble=0), pool).steps
        left = worth - _weigh_curves(learner, labels, outline, pool).steps + once
        outline = replace(outline, repetitions=max(1, min(int(left // max(once, 1)), MOST_REPETITIONS)))
    return outline


def weigh(learner: Learner, labels: Labels, outline: Outline, pool: Ints | None = None) -> Price:
    """All trainings of an outline, and the mini-batches that they and their probes take."""
    curves, tasks = _weigh_curves(learner, labels, outline, pool), labelled(learner, labels)
    probes = outline.looks(learner, labels) * count_gradients(learner, make_arms(tasks), outline.ahead)
    each = learner.steps(labels) * len(tasks) + probes
    return Price(outline.runs + curves.trainings, outline.runs * each + curves.steps)


def _weigh_look(learner: Learner, labels: Labels, ahead: int) -> float:
    """The work of one probe, its scores included, in gradients of one mini-batch."""
    arms = make_arms(labelled(learner, labels))
    return count_gradients(learner, arms, ahead) + count_scoring(learner, arms)


def _weigh_curves(learner: Learner, labels: Labels, outline: Outline, pool: Ints | None) -> Price:
    prices = []
    for task, sizes in outline.sizes.items():
        if pool is None:
            prices.append(price_subsets(learner, labels, task, sizes, outline.repetitions))
        else:
            teachers = outline.ensemble * min(outline.parts, outline.repetitions)
            prices.append(price_ensemble(learner, labels, task, pool, sizes, teachers, outline.repetitions))
    return Price(sum(each.trainings for each in prices), sum(each.steps for each in prices))


def _sizes_of(labels: Labels, task: str, sizes: Sequence[int] | None, pool: Ints | None) -> tuple[int, ...]:
    if sizes is not None:
        return tuple(sizes)
    have = int((~labels[task].is_pseudo).sum())
    if pool is None:
        return spread_sizes(max(1, have // 8), have, SIZES) if have else ()
    most = min(len(np.setdiff1d(pool, labels[task].instances)), 4 * have)
    return (0, *spread_sizes(max(1, most // 8), most, SIZES)) if most else ()


Part = tuple[Learner, Labels]
Tell = Callable[[int, str], None]
"""told how many more trainings are done, and of what"""


def measure_probes(
    parts: Sequence[Part], outline: Outline, seed: int, tell: Tell, enough: Callable[[Probes], bool] | None = None
) -> Probes:
    """Probes of as many trainings as the outline says, in turn on each part; of fewer once they are `enough`."""
    every, ahead, found = outline.every, outline.ahead, []
    for number in range(outline.runs):
        learner, labels = parts[number % len(parts)]
        probes, _ = probe_training(learner, labels, seed + number, every=every, steps=ahead, run=f"run {number}")
        found.append(probes)
        # nothing is left to stop after the last
        stops = enough is not None and number + 1 < outline.runs and enough(join(found))
        tell(1, "transfer")
        if stops:
            break
    return join(found)


def tell_probing(probes: Probes, parts: Sequence[Part], outline: Outline) -> dict[str, Any]:
    """How much was probed, how much might have been, and why there was no more."""
    taken = len(set(probes.runs))
    allowed = sum(outline.looks(*parts[number % len(parts)]) for number in range(outline.runs))
    why = "more could not move the plan out of its plateau" if taken < outline.runs else "all that was allowed is done"
    probed = {"trainings": taken, "trainings_allowed": outline.runs, "probes": len(probes), "probes_allowed": allowed}
    return probed | {"every": outline.every, "stopped": why}


def measure_curves(
    parts: Sequence[Part], outline: Outline, seed: int, tell: Tell, pool: Ints | None = None, mode: str = "hard"
) -> dict[str, Points]:
    """The curve of every labelled task, its repetitions in turn on each part that can score it."""
    found, unscored = {}, None
    for task, sizes in outline.sizes.items():
        points = []
        for number, (learner, labels) in enumerate(parts):
            count = len(range(number, outline.repetitions, len(parts)))
            given: dict[str, Any] = {"repetitions": count, "seed": seed + number}
            given["progress"] = _report(tell, f"curve of {task}")
            try:
                if count and pool is None:
                    points.append(subset_curve(learner, labels, task, sizes, **given))
                elif count and pool is not None:
                    given |= {"ensemble": outline.ensemble, "mode": mode}
                    points.append(ensemble_curve(learner, labels, task, pool, sizes, **given))
            except Unscored as error:  # a fold without a label of some class; without any curve it borrows its rate
                unscored = error
        if points:
            found[task] = replace(points[0], scores=tuple(row for curve in points for row in curve.scores))
    if unscored is not None and not found:
        raise unscored
    return found


def _report(tell: Tell, what: str) -> Callable[[int, int], None]:
    """Turns trainings done so far into how many more there are."""
    before = 0

    def report(done: int, total: int) -> None:
        nonlocal before
        tell(done - before, what)
        before = done

    return report
