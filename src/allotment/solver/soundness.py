"""Whether curves of one's own are what a plan needs, and how many digits they give.

Nobody has proved anything about such a curve. So it is asked for its worth on a grid over all that
can be bought, every count of a short range, and refused in words where it is not finite, falls, is
not concave, or answers a number otherwise than an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.amounts import common_unit
from allotment.arrays import Array
from allotment.errors import InputError, Mistake, cut
from allotment.gains import LAST_DIGITS, Coupled, Curve, is_own
from allotment.problem import Problem, Task

MOST_COUNTS = 4096
"""up to so many counts of labels a curve is checked at every one"""
FIRST_COUNTS = 1024
"""of more, it is checked at so many at the start, where curves bend most"""
FAR = 1024
"""and about so many further on, each with the next one"""
ROUNDING_SHARE = 1e-13
"""a bend the wrong way by this share of all that a curve can add is taken for rounding"""
ALONE = 5
"""counts that are asked for one by one as well"""


class Unfit(Exception):
    """Why a curve cannot be planned with, in words."""


@dataclass(frozen=True)
class Stretch:
    """A part of what can be bought: the counts of one curve from `low` to `high`, in steps."""

    curve: Curve
    low: float
    high: float
    step: float = 1.0

    @property
    def counts(self) -> Array:
        """The grid, from `low` on."""
        steps = round((self.high - self.low) / self.step)
        return self.low + self.step * list_steps(steps)


def list_steps(most: int) -> Array:
    """Whole numbers from 0 to `most`: all if they are few, else the first ones and then ever
    fewer."""
    if most <= MOST_COUNTS:
        return np.arange(most + 1.0)
    far = np.append(
        np.geomspace(FIRST_COUNTS, most - 1, FAR // 2),
        np.linspace(FIRST_COUNTS, most - 1, FAR // 2),
    )
    far = np.floor(far)
    return np.unique(np.concatenate([np.arange(FIRST_COUNTS + 1.0), far, far + 1, [float(most)]]))


def examine(
    problem: Problem,
    gains: Mapping[str, Curve],
    least: Mapping[str, int],
    most: Mapping[str, int],
) -> float:
    """What the value of plans between two may be off by; raises InputError with every curve of
    one's own that no plan can be made with."""
    mistakes: list[Mistake] = []
    rounding = 0.0
    for task in problem.tasks:
        for decided in _list_stretches(problem, task, gains[task.name], least, most):
            before = Stretch(decided.curve, 0.0, decided.low, decided.step)
            try:
                check_stretch(before)
                rounding += task.weight * check_stretch(decided)
            except Unfit as error:
                mistakes.append(Mistake(f"gain of {task.name!r}", str(error)))
    if mistakes:
        raise InputError(mistakes)
    return rounding


def _list_stretches(
    problem: Problem,
    task: Task,
    curve: Curve,
    least: Mapping[str, int],
    most: Mapping[str, int],
) -> Iterator[Stretch]:
    """What a task's curves of one's own are asked for between two plans."""
    for term in curve.terms:
        if isinstance(term, Coupled):
            step = float(common_unit(term.weights.values()))
            for inner in filter(is_own, term.inner.terms):
                yield Stretch(inner, term.mix(least), term.mix(most), step)
        elif is_own(term):
            low, high = (float(problem.count_labels(task, each)) for each in (least, most))
            yield Stretch(term, low, high)


def check_stretch(stretch: Stretch) -> float:
    """What worths may be off by on a stretch; raises Unfit where the curve is not what it must
    be."""
    curve, counts = stretch.curve, stretch.counts
    name = type(getattr(curve, "inner", curve)).__name__
    worths = _ask(name, curve.rise, np.full(len(counts), stretch.low), counts - stretch.low)
    if not np.all(np.isfinite(worths)):
        at = int(np.flatnonzero(~np.isfinite(worths))[0])
        raise Unfit(
            f"{name} is worth {worths[at]} from {stretch.low:g} to {counts[at]:g} labels; every"
            " count that can be bought needs a finite worth"
        )
    if len(counts) == 1:
        _check_numbers(name, stretch, counts, worths, 0.0)
        return 0.0
    rises = _ask(name, curve.rise, counts[:-1], np.diff(counts))
    lost = _ask(name, curve.rounding, counts[:-1], counts[1:])
    added = float(worths[-1])
    digits = lost + LAST_DIGITS * np.spacing(np.abs(worths[1:])) + ROUNDING_SHARE * abs(added)
    _check_numbers(name, stretch, counts, worths, float(digits.max()))
    _check_sums(name, counts, np.diff(worths), rises, digits)
    _check_rising(name, counts, rises, digits)
    bent = _check_concave(name, counts, rises, digits)
    if added <= 0:  # it never falls, so it is level
        return 0.0
    return float(lost.max()) + bent * ROUNDING_SHARE * added


def _ask(name: str, method: Callable[..., Any], low: Array, more: Array) -> Array:
    """What a curve answers to arrays."""
    try:
        answer = np.asarray(method(low, more), dtype=float)
    except Exception as error:  # it is somebody else's code
        message = cut(f"{type(error).__name__}: {error}", 200)
        raise Unfit(
            f"{name} fails when it is asked for {len(low)} counts at once ({message}); it must take"
            " arrays as well as numbers: np.sqrt in place of math.sqrt, np.where in place of if"
        ) from error
    if answer.shape != low.shape:
        raise Unfit(
            f"{name} answers {answer.size} numbers where it is asked for {len(low)} counts at once;"
            " it must give one for each"
        )
    return answer


def _check_numbers(
    name: str, stretch: Stretch, counts: Array, worths: Array, rounding: float
) -> None:
    """That numbers get the same answers as arrays."""
    for at in np.unique(np.linspace(0, len(counts) - 1, ALONE).astype(int)):
        try:
            alone = float(stretch.curve.rise(stretch.low, float(counts[at] - stretch.low)))
        except Exception as error:  # it is somebody else's code
            message = cut(f"{type(error).__name__}: {error}", 200)
            raise Unfit(
                f"{name} fails when it is asked for {counts[at]:g} labels ({message}); it must take"
                " numbers as well as arrays"
            ) from error
        if not abs(alone - worths[at]) <= rounding:
            raise Unfit(
                f"{name} says that {counts[at]:g} labels are worth {alone:.9g} when it is asked for"
                f" them alone, and {worths[at]:.9g} among others; it must always answer the same"
            )


def _check_sums(name: str, counts: Array, steps: Array, rises: Array, digits: Array) -> None:
    """That what labels add is the difference of what is there before and after."""
    if np.all(np.abs(steps - rises) <= 2 * digits):
        return
    at = int(np.flatnonzero(~(np.abs(steps - rises) <= 2 * digits))[0])
    raise Unfit(
        f"{name} says that labels {counts[at] + 1:g} to {counts[at + 1]:g} add {rises[at]:.9g}, but"
        f" its worths differ by {steps[at]:.9g}; rise(count, more) must be the difference of what"
        " count + more and count labels are worth"
    )


def _check_rising(name: str, counts: Array, rises: Array, digits: Array) -> None:
    falling = np.flatnonzero(rises < -digits)
    if not len(falling):
        return
    at = int(falling[0])
    raise Unfit(
        f"{name} falls: {counts[at + 1]:g} labels are worth {-rises[at]:.6g} less than"
        f" {counts[at]:g}; a curve of your own may level off, but labels that do harm are only left"
        " out by families and tables (al.Tabulated)"
    )


def _check_concave(name: str, counts: Array, rises: Array, digits: Array) -> bool:
    """That no label adds more than any before it, each being known to its digits only; whether one
    does within them."""
    wide = np.diff(counts)
    slopes = rises / wide
    least = np.minimum.accumulate(slopes)
    highest = np.minimum.accumulate((rises + digits) / wide)
    steeper = np.flatnonzero((rises - digits)[1:] / wide[1:] > highest[:-1])
    if not len(steeper):
        return bool(np.any(slopes > least))
    at = int(steeper[0]) + 1
    raise Unfit(
        f"{name} is not concave: a label after {counts[at]:g} adds {slopes[at]:.6g}, more than one"
        f" before it ({least[at - 1]:.6g}); if that is rounding, give a `rise` that keeps its"
        " digits (np.log1p, np.expm1), else keep the upper hull of your curve in a table"
        " (al.Tabulated)"
    )
