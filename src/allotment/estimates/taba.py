"""The paper's own way to estimates (Algorithm 1): transfer by Eq. 5 and reduction rates by Eq. 7,
put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array
from allotment.errors import InputError, Mistake, reading, suggest
from allotment.estimates.curves import Fit, Points, fit_exact, resample
from allotment.estimates.estimates import DRAWS, Estimates
from allotment.estimates.probes import to_array, to_plain
from allotment.estimates.stopping import KnownReductions
from allotment.estimates.transfer import Transfer
from allotment.estimates.verdict import Verdict, judge

WITHOUT_TRANSFER = "none"
"""the estimator of who measures no transfer"""
USUAL_REACH = 1.2
"""-1 / log b in units of the labels at hand, where no curve tells; evidence: b = 0.9973 with 300
labels"""


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


@dataclass(frozen=True, eq=False)
class PairRates:
    """Reduction rates between tasks: of what labels of the source i do for the target j."""

    tasks: tuple[str, ...]
    rates: Array
    """[i, j]: b_ij; the source's own b_i on the diagonal, and where no curve of the pair shows
    another"""
    first: Array
    """[i, j]: what the first label adds to j's score, as the curve of the pair was fitted; not a
    number where there is none"""
    grades: tuple[tuple[str, ...], ...]
    """[i][j]: of the curve of the pair; "" where there is none"""
    shown: NDArray[np.bool_]
    """[i, j]: whether the rate is what the curve of the pair shows"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for what is not a number."""
        return {
            "tasks": list(self.tasks),
            "rates": self.rates.tolist(),
            "first": to_plain(self.first),
            "grades": [list(row) for row in self.grades],
            "shown": self.shown.tolist(),
        }

    @classmethod
    @reading("the rates between tasks")
    def from_dict(cls, plain: Mapping[str, Any]) -> PairRates:
        """The rates that `to_dict` wrote."""
        tasks = tuple(plain["tasks"])
        square = (len(tasks), len(tasks))
        grades = tuple(tuple(map(str, row)) for row in plain["grades"])
        return cls(
            tasks,
            to_array(plain["rates"]).reshape(square),
            to_array(plain["first"]).reshape(square),
            tuple(map(tuple, np.array(grades, dtype=object).reshape(square).tolist())),
            np.array(plain["shown"], dtype=bool).reshape(square),
        )


def combine(
    transfer: Transfer | None,
    curves: Mapping[str, Points],
    have: Mapping[str, int],
    *,
    own_gain: bool = False,
    subsets: Mapping[str, Points] | None = None,
    letter: bool = False,
    fallback: bool = True,
    rate: float | None = None,
    between: Mapping[tuple[str, str], Points] | None = None,
    fit: Callable[[Points], Fit] = fit_exact,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimates:
    """Algorithm 1: N labels of task i are worth the sum over j of I_(i -> j), times (1 - b_i^N) /
    (1 - b_i).

    Worths count in labels of the gaining task's own, as the paper's do. With `own_gain` they become
    % of its score: the next label of task j adds what `subsets` (or `curves`, where these are of
    subsets) show, and I_(i -> j) of that is what a label of i adds. A curve that carries no signal
    gets the mean reach of the others, unless `fallback` is off. With `letter` the curve of every
    task is the paper's own, I_i (1 - b_i^N) / (1 - b_i) with I_i of Eq. 3: what labels of i do for
    others counts as theirs, draws differ in the transfer alone, and some task must have a curve.
    Without a transfer a label helps its own task alone (I = 1); with a `rate` that is b of every
    task (the paper's Table 3), and no curve is needed. With curves `between` tasks, by source and
    target, the letter's curve is the sum over j of I_(i -> j) (1 - b_ij^N) / (1 - b_ij).
    """
    tasks = tuple(have)
    measured = curves if subsets is None else subsets
    mistakes = _check(transfer, curves, measured if own_gain else {}, tasks, draws)
    if letter and rate is None and tasks and not curves:
        what = (
            "no task has one, and to the paper's letter no usual rate takes the place of a fit;"
            " have labels of a task that train and others that score, or take method ="
            ' "taba-mended"'
        )
        mistakes.append(Mistake("curves", what))
    if mistakes:
        raise InputError(mistakes)
    rng = np.random.default_rng([abs(seed), 11])
    rates = (
        find_rates(curves, have, fallback=fallback, fit=fit, draws=draws, rng=rng)
        if rate is None
        else fix_rates(rate, tasks, draws)
    )
    worths = _draw_transfer(transfer, tasks, draws, seed, letter or between is not None)
    pairs = None if between is None else find_pair_rates(between, rates, transfer, fit)
    shapes = np.broadcast_to(rates.point, (draws, len(tasks))) if letter else rates.draws
    if own_gain:
        own = find_rates(measured, have, fallback=fallback, fit=fit_exact, draws=draws, rng=rng)
        worths = worths * _draw_first(measured, own, have, rng)[:, :, None]
    if pairs is not None:
        shapes = np.broadcast_to(pairs.rates.T, worths.shape)
    elif letter:
        worths = worths.sum(axis=1)[:, :, None] * np.eye(len(tasks))
    about: dict[str, Any] = {
        "estimator": WITHOUT_TRANSFER if transfer is None else transfer.estimator,
        "unit": "%" if own_gain else "labels",
        "letter": letter,
        "rates": dict(zip(tasks, rates.point.tolist(), strict=True)),
        "verdicts": {task: verdict.grade for task, verdict in rates.verdicts.items()},
        "fallbacks": list(rates.fallbacks),
    }
    if pairs is not None:
        about["between"] = pairs.to_dict()
    counts = tuple(have[task] for task in tasks)
    return Estimates(tasks, counts, worths=worths, shapes=shapes, law="geometric", about=about)


def _check(
    transfer: Transfer | None,
    curves: Mapping[str, Points],
    measured: Mapping[str, Points],
    tasks: tuple[str, ...],
    draws: int,
) -> list[Mistake]:
    mistakes = [Mistake("draws", f"{draws} is below 1")] if draws < 1 else []
    for where, names in (
        ("transfer", () if transfer is None else transfer.tasks),
        ("curves", tuple(curves)),
        ("subsets", tuple(measured)),
    ):
        for name in names:
            if name not in tasks:
                mistakes.append(
                    Mistake(where, f"task {name!r} is not in `have`; {suggest(name, tasks)}")
                )
    for task, points in measured.items():
        if "pseudo" in points.source:
            what = (
                f"{points.source} do not show what a real label adds; give the curve on subsets in"
                " `subsets`"
            )
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
    """b of every task. Where its own curve says nothing: the others' mean, which may be any one of
    theirs."""
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
            drawn.append(
                np.stack(list(reaches.values()))[
                    rng.integers(len(usable), size=draws), np.arange(draws)
                ]
            )
        else:
            point.append(math.log(USUAL_REACH * max(have[task], 1)))
            drawn.append(np.full(draws, point[-1]))
    rest = tuple(task for task in have if task not in usable)
    return Rates(
        tuple(have), _rate(np.array(point)), _rate(np.stack(drawn, axis=1)), verdicts, rest
    )


def find_pair_rates(
    curves: Mapping[tuple[str, str], Points],
    own: Rates,
    transfer: Transfer | None,
    fit: Callable[[Points], Fit],
) -> PairRates:
    """b_ij of every pair. It is the source's own b_i where the pair's curve says nothing, and where
    labels of i do harm to j: that is taken off what they do for their own task."""
    tasks, size = own.tasks, len(own.tasks)
    rates = np.repeat(own.point[:, None], size, axis=1)
    first, shown = np.full((size, size), np.nan), np.zeros((size, size), dtype=bool)
    grades = [[""] * size for _ in tasks]
    worth = _draw_transfer(transfer, tasks, 1, 0, True)[0].T
    for (source, target), points in curves.items():
        i, j = tasks.index(source), tasks.index(target)
        found = fit(points)
        first[i, j], grades[i][j] = found.size, judge(points, found).grade
        shown[i, j] = grades[i][j] != "unusable" and worth[i, j] > 0
        if shown[i, j]:
            rates[i, j] = found.shape
    return PairRates(tasks, rates, first, tuple(map(tuple, grades)), shown)


def list_pairs(tasks: Sequence[str], curves: Mapping[tuple[str, str], Points]) -> dict[str, Any]:
    """Points by the places of source and target; None where there are none."""
    rows: list[list[Any]] = [
        [curves[i, j].to_dict() if (i, j) in curves else None for j in tasks] for i in tasks
    ]
    return {"tasks": list(tasks), "points": rows}


@reading("the curves between tasks")
def read_pairs(measured: Mapping[str, Any]) -> dict[tuple[str, str], Points]:
    """Curves by source and target, of what estimates have measured."""
    plain = measured.get("between", {"tasks": [], "points": []})
    tasks = plain["tasks"]
    return {
        (tasks[i], tasks[j]): Points.from_dict(each)
        for i, row in enumerate(plain["points"])
        for j, each in enumerate(row)
        if each is not None
    }


def fix_rates(rate: float, tasks: tuple[str, ...], draws: int) -> Rates:
    """The same b for every task, whatever curves say."""
    if not 0 <= rate <= 1:
        raise InputError([Mistake("rate", f"{rate} is not between 0 and 1")])
    drawn = np.full((draws, len(tasks)), float(rate))
    return Rates(tasks, np.full(len(tasks), float(rate)), drawn, {}, ())


def find_known(
    curves: Mapping[str, Points],
    have: Mapping[str, int],
    *,
    own_gain: bool = False,
    letter: bool = False,
    fallback: bool = True,
    fit: Callable[[Points], Fit] = fit_exact,
) -> KnownReductions:
    """What `combine` with the same options has of curves, in the middle of its draws: probes will
    not change it."""
    rng = np.random.default_rng(11)
    rates = find_rates(curves, have, fallback=fallback, fit=fit, draws=DRAWS, rng=rng)
    first = None
    if own_gain:
        middle = replace(rates, draws=np.broadcast_to(rates.point, rates.draws.shape))
        first = dict(
            zip(have, _draw_first(curves, middle, have, rng).mean(axis=0).tolist(), strict=True)
        )
    return KnownReductions(dict(zip(have, rates.point.tolist(), strict=True)), first, letter)


def _reach(rate: Any) -> Any:
    """Of a reduction rate: the logarithm of -1 / log b, on which rates lie evenly and can be
    averaged."""
    return -np.log(-np.log(np.clip(rate, 1e-300, 1 - 1e-12)))


def _rate(reach: Array) -> Array:
    return np.asarray(np.exp(-np.exp(-reach)))


def _draw_reach(fit: Fit, draws: int, rng: np.random.Generator) -> Array:
    if not fit.draws:
        return np.full(draws, _reach(fit.shape))
    return np.asarray(
        _reach(
            np.array([shape for shape, _ in fit.draws])[rng.integers(len(fit.draws), size=draws)]
        )
    )


def _draw_transfer(
    transfer: Transfer | None, tasks: tuple[str, ...], draws: int, seed: int, letter: bool
) -> Array:
    """[draw, gaining task, labelled task]; a task that was not probed neither helps nor is
    helped."""
    worths = np.broadcast_to(np.eye(len(tasks)), (draws, len(tasks), len(tasks))).copy()
    if transfer is None:
        return worths
    found = np.broadcast_to(transfer.matrix, (draws, *transfer.matrix.shape))
    if draws > 1:
        found = transfer.draws(draws, seed)
        # every other draw mirrors the one before, so that the mean is the paper's figure
        if letter:
            found[1::2] = 2 * transfer.matrix - found[: draws - 1 : 2]
            found[draws - draws % 2 :] = transfer.matrix
    places = [tasks.index(task) for task in transfer.tasks]
    worths[np.ix_(range(draws), places, places)] = found.transpose(0, 2, 1)
    return worths


def _draw_first(
    measured: Mapping[str, Points], rates: Rates, have: Mapping[str, int], rng: np.random.Generator
) -> Array:
    """[draw, task]: what the next label adds to its own task, in % of its score; without a curve,
    the others' mean."""
    found = {}
    for at, task in enumerate(rates.tasks):
        if task in measured:
            found[task] = _first_of(measured[task], rates.draws[:, at], have[task], rng)
    if not found:
        raise InputError(
            [
                Mistake(
                    "own_gain",
                    "no task has a curve on subsets; measure one, or leave `own_gain` off",
                )
            ]
        )
    usual: Array = np.mean(list(found.values()), axis=0)
    rows: list[Array] = [found.get(task, usual) for task in rates.tasks]
    return np.stack(rows, axis=1)


def _first_of(points: Points, shapes: Array, have: int, rng: np.random.Generator) -> Array:
    """[draw]: the size of a geometric curve of these shapes through the points, where the labels at
    hand end."""
    unit = -np.expm1(points.more * np.log(shapes)[:, None]) / (1 - shapes[:, None])
    errors = points.gains - unit[0] * float(points.gains @ unit[0] / (unit[0] @ unit[0]))
    again = resample(points, errors, len(shapes), 0.9, rng)
    gains = np.broadcast_to(points.gains, unit.shape) if again is None else again
    first = np.sum(gains * unit, axis=1) / np.sum(unit**2, axis=1)
    scale = abs(float(points.values[:, -1].mean())) or 1.0
    return np.asarray(first * shapes ** (have - points.start) / scale * 100)
