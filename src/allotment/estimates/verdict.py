"""Whether a learning curve says anything about the reduction rate, why not, and what would mend
it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from allotment.arrays import Array
from allotment.errors import InputError, Mistake, reading
from allotment.estimates.curves import (
    FEWEST_SIZES,
    Fit,
    Points,
    check_keys,
    fit_exact,
    law_of,
    resample,
    search,
)
from allotment.quantiles import student

FALSE_ALARM = 0.05
"""how often a good curve may be called falling or late, each, over all pairs of sizes that are
compared"""
WORTH = 0.02
"""a rise below this share of the first score, over all sizes, is flat: plans hardly differ by less
than 2 %"""
SHARPEST = 4.0
"""b is sharp if its reach is known within this factor: half or double the reach already moves a
plan by a third"""
FIRMEST = 1 / 3
"""and if the half-width of the rise's interval is at most this share of the rise"""
FEWEST_REPETITIONS = 3
"""two cannot tell a lucky pair from a quiet curve"""
MOST_REPETITIONS_ADVISED = 1000
"""repetitions of a curve; more are not worth advising"""
NOISE_DRAWS = 200
"""draws of noise, to see how far from the law it alone puts the points"""
UNUSABLE = {"flat", "falls", "turns", "late", "no signal"}
"""flags with which b means nothing: a geometric law only rises, and most steeply at first"""

_KEYS = {"remedy": "mend"}
"""fields that go by another name in files"""


@dataclass(frozen=True)
class Verdict:
    """Whether a curve can be planned on, why not, and what would mend it.

    It is about the points alone: a sound curve of pseudo-labels can still have another b than real
    labels have.
    """

    grade: str
    """sound, weak or unusable"""
    flags: tuple[str, ...]
    """of flat, falls, turns (rises, then falls), late, no signal, misfit, noisy, straight, few"""
    why: tuple[str, ...]
    remedy: tuple[str, ...]
    rise: float
    """from the smallest size to the largest, with its interval at level 1 - 2 `FALSE_ALARM`"""
    rise_low: float
    rise_high: float
    fit: Fit | None
    """none where the curve is unusable"""
    nearer: str
    """the law that lies nearer to the points: geometric or power"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for an end of the rise's interval that is infinite."""
        plain: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        plain |= {key: list(plain[key]) for key in ("flags", "why", "remedy")}
        plain |= {key: None for key in ("rise_low", "rise_high") if not math.isfinite(plain[key])}
        plain |= {"fit": None if self.fit is None else self.fit.to_dict()}
        return {_KEYS.get(key, key): value for key, value in plain.items()}

    @classmethod
    @reading("the verdict")
    def from_dict(cls, plain: Any) -> Verdict:
        """The verdict that `to_dict` wrote."""
        known = tuple(_KEYS.get(item.name, item.name) for item in fields(cls))
        if mistakes := check_keys(plain, known, known, "a verdict"):
            raise InputError(mistakes)
        given = {item.name: plain[key] for item, key in zip(fields(cls), known, strict=True)}
        given |= {key: tuple(given[key]) for key in ("flags", "why", "remedy")}
        ends = {"rise_low": -math.inf, "rise_high": math.inf}
        given |= {key: end for key, end in ends.items() if given[key] is None}
        given |= {key: float(given[key]) for key in ("rise", *ends)}
        return cls(**given | {"fit": None if plain["fit"] is None else Fit.from_dict(plain["fit"])})


def judge(points: Points, fit: Fit | None = None) -> Verdict:
    """What the points can carry. Without a geometric `fit` of them, the exact one is made."""
    if fit is None:
        fit = fit_exact(points)
    elif fit.law != "geometric":
        raise InputError(
            [Mistake("fit", f"is of the law {fit.law!r}; a reduction rate needs the geometric one")]
        )
    nearer = min(fit, fit_exact(points, law="power", draws=1), key=lambda each: each.loss)
    noise = _noise_of(points, fit)
    low, middle, high = _rise(points, noise)
    found = _find_shape(points, noise, low, high)
    if not found:
        found = _find_misfit(points, nearer) + _find_blur(points, fit, (high - low) / 2 / middle)
    if points.repetitions < FEWEST_REPETITIONS:
        what = (
            f"{points.repetitions} of at least {FEWEST_REPETITIONS} repetitions: noise itself is"
            " hardly known"
        )
        found.append(("few", what, f"repeat it {FEWEST_REPETITIONS} times or more"))
    flags, why, remedy = (tuple(part[at] for part in found) for at in range(3))
    grade = "weak" if flags else "sound"
    if UNUSABLE & set(flags):
        grade = "unusable"
    return Verdict(
        grade,
        flags,
        why,
        remedy,
        middle,
        low,
        high,
        None if grade == "unusable" else fit,
        nearer.law,
    )


Reasons = list[tuple[str, str, str]]
"""flag, why, and what would be a remedy"""


@dataclass(frozen=True)
class _Noise:
    """What is known of the noise of one training."""

    own: Array | None
    """values with the mean of each size taken off; None for one repetition"""
    variance: float
    """of one training, with what a repetition has in common taken off"""
    free: float
    """degrees of freedom of a contrast"""


def _noise_of(points: Points, fit: Fit) -> _Noise:
    values, (count, sizes) = points.values, points.values.shape
    if count == 1:
        free = sizes - FEWEST_SIZES
        return _Noise(None, fit.residual**2 if free else math.inf, max(free, 1))
    own = values - values.mean(axis=0)
    rest = own - own.mean(axis=1, keepdims=True)
    variance = float(np.sum(rest**2)) / ((count - 1) * (sizes - 1))
    # A contrast's variance is half its own, half what equal noise of all sizes makes it: steadier
    # than the former alone
    return _Noise(own, variance, 4 * (count - 1) * (sizes - 1) / sizes)


def _compare(points: Points, noise: _Noise, contrasts: Array) -> tuple[Array, Array]:
    """Each contrast (row) of the mean scores, and its standard error."""
    variance = noise.variance * np.sum(contrasts**2, axis=1)
    if noise.own is not None:
        own = np.sum((noise.own @ contrasts.T) ** 2, axis=0) / (points.repetitions - 1)
        variance = (variance + own) / 2
    return contrasts @ points.values.mean(axis=0), np.sqrt(variance / points.repetitions)


def _rise(points: Points, noise: _Noise) -> tuple[float, float, float]:
    """The rise over all sizes and its interval: a line in the log of labels, so that every size has
    a say."""
    line = np.log1p(np.concatenate([[0.0], points.more]) / points.more[0])
    centred = line - line.mean()
    (rise,), (error,) = _compare(points, noise, (line[-1] * centred / (centred @ centred))[None])
    half = max(student(FALSE_ALARM, noise.free) * error, _rounding(points))
    return float(rise - half), float(rise), float(rise + half)


def _rounding(points: Points) -> float:
    """Scores that repeat exactly have no noise, but they are rounded."""
    return 1e-9 * float(np.abs(points.values).max())


def _find_shape(points: Points, noise: _Noise, low: float, high: float) -> Reasons:
    """Everything that no concave rising curve does."""
    worth = WORTH * abs(float(points.values[:, 0].mean()))
    if high < 0:
        return [("falls", "scores fall as labels are added", _MEND_TEACHER)]
    if low <= 0 and high <= worth:
        what = (
            f"flat: at most {high:.2g} is gained from {points.sizes[0]} to {points.sizes[-1]}"
            " labels"
        )
        return [("flat", what, _MEND_TEACHER)]
    if low <= 0:
        wanted = max((low + high) / 2, worth)
        times = ((high - low) / 2 / wanted) ** 2 if wanted > 0 else math.inf
        more = math.ceil(min(points.repetitions * (1 + times), MOST_REPETITIONS_ADVISED))
        what = f"no signal: the gain over all sizes lies anywhere from {low:.2g} to {high:.2g}"
        return [("no signal", what, f"about {more} repetitions, or more validation labels")]
    found: Reasons = []
    if place := _worst(points, noise, _drops(len(points.sizes))):
        first, last = (points.sizes[at] for at in place)
        found.append(("turns", f"rises, but falls from {first} to {last} labels", _MEND_TEACHER))
    if place := _worst(points, noise, _bends(points.sizes)):
        flat, last = (points.sizes[at] for at in place)
        what = f"rises late: the labels up to {flat} gain less each than those up to {last}"
        found.append(
            ("late", what, "plan on larger sizes, or buy a small tranche before giving the task up")
        )
    return found


_MEND_TEACHER = (
    "take real labels (a curve on subsets) in place of pseudo-labels, or plan without this curve"
)


def _drops(count: int) -> dict[tuple[int, ...], Array]:
    """For each two sizes, how far the later lies below the earlier."""
    unit = np.eye(count)
    return {(i, j): unit[i] - unit[j] for i, j in itertools.combinations(range(count), 2)}


def _bends(sizes: tuple[int, ...]) -> dict[tuple[int, ...], Array]:
    """For each two sizes after the first, how far the earlier lies below the straight line to the
    later."""
    unit = np.eye(len(sizes))
    found: dict[tuple[int, ...], Array] = {}
    for j, k in itertools.combinations(range(1, len(sizes)), 2):
        share = (sizes[j] - sizes[0]) / (sizes[k] - sizes[0])
        found[j, k] = (1 - share) * unit[0] + share * unit[k] - unit[j]
    return found


def _worst(
    points: Points, noise: _Noise, contrasts: dict[tuple[int, ...], Array]
) -> tuple[int, ...]:
    """The places of the contrast furthest above what chance explains; none if chance explains all
    of them."""
    found, errors = _compare(points, noise, np.array(list(contrasts.values())))
    bar = student(FALSE_ALARM / len(contrasts), noise.free) * errors
    excess = found - np.maximum(bar, _rounding(points))
    at = int(np.argmax(excess))
    return list(contrasts)[at] if excess[at] > 0 else ()


def _find_misfit(points: Points, fit: Fit) -> Reasons:
    """Whether the points lie further from the law than noise alone puts them; `fit` is that of the
    nearer law."""
    law = law_of(fit.law, points)
    on_law = fit.size * law.gains(law.place(fit.shape), points.more)
    again = resample(
        points, on_law - points.gains, NOISE_DRAWS, 1 - 2 * FALSE_ALARM, np.random.default_rng(0)
    )
    if again is None or points.repetitions == 1:  # all distance from the law counts as noise then
        return []
    again = again - points.gains + on_law
    u, sizes = search(points.more, again, law, grid=60, best=1, zooms=1)
    losses = np.abs(again - sizes[:, None] * law.gains(u[:, None], points.more)).mean(axis=1)
    if fit.loss <= np.quantile(losses, 1 - FALSE_ALARM):
        return []
    what = (
        f"no law fits: the {fit.law} one misses the points by {fit.loss:.2g}, which is more than"
        " their noise"
    )
    return [
        ("misfit", what, "sizes closer together where the curve jumps, and a look at the points")
    ]


def _find_reach(reduction: float) -> float:
    """After how many labels one more is worth 1/e of the first."""
    if reduction <= 0:
        return 0.0
    return math.inf if reduction >= 1 else -1 / math.log(reduction)


def _find_blur(points: Points, fit: Fit, unsure: float) -> Reasons:
    """A curve of the right shape whose rise (`unsure` is the share of it that is noise) or b is not
    sharp."""
    shortest, longest = _find_reach(fit.low), _find_reach(fit.high)
    factor = longest / shortest if shortest else math.inf
    if factor <= SHARPEST and unsure <= FIRMEST:
        return []
    span = points.sizes[-1] - points.sizes[0]
    if shortest > span / 2 and unsure <= FIRMEST:
        what = (
            f"nearly straight up to {points.sizes[-1]} labels: b is above {fit.low:.6g}, how far is"
            " not seen"
        )
        return [("straight", what, f"sizes up to {4 * span + points.sizes[0]} labels")]
    what = (
        f"noisy: b lies anywhere from {fit.low:.6g} to {fit.high:.6g}, the rise is known to"
        f" {unsure:.0%}"
    )
    times = max(math.log(min(factor, 1e3)) / math.log(SHARPEST), unsure / FIRMEST) ** 2
    more = math.ceil(min(points.repetitions * times, MOST_REPETITIONS_ADVISED))
    return [
        (
            "noisy",
            what,
            f"about {more} repetitions in place of {points.repetitions}, or more validation labels",
        )
    ]
