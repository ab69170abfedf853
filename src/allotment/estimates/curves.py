"""Learning-curve points and the laws fitted to them: the paper's (Eqs. 6 and 7) and a power law.

All laws have one parameter of shape and one of size, and count gains from the smallest size
measured:

    geometric   first (1 - b^N) / (1 - b)        N labels more than at the smallest size
    power       worth (n^-a - (n + N)^-a)        n labels at the smallest size
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from allotment.amounts import short
from allotment.arrays import Array
from allotment.errors import InputError, Mistake, cut, reading, suggest
from allotment.gains import Curve, Geometric, Power
from allotment.quantiles import student

FEWEST_SIZES = 3
"""two laws of two parameters each pass through any two gains, and fewer show no bend at all"""


@dataclass(frozen=True)
class Points:
    """Scores of one task at rising numbers of labels, the same sizes in every repetition.

    >>> scores = ((0.70, 0.74, 0.75),)
    >>> Points((0, 100, 200), scores, higher_is_better=True, have=300).repetitions
    1
    """

    sizes: tuple[int, ...]
    """labels added to `have`; gains are counted from the first of them"""
    scores: tuple[tuple[float, ...], ...]
    """(repetitions, sizes)"""
    higher_is_better: bool
    have: int = 0
    """labels below all sizes"""
    task: str = ""
    source: str = ""
    """what was added, such as "subset" or "hard pseudo-labels"; for people"""

    def __post_init__(self) -> None:
        sizes, scores = np.asarray(self.sizes), _rectangle(self.scores)
        mistakes = []
        if (
            sizes.ndim != 1
            or sizes.dtype.kind not in "iu"
            or (np.diff(sizes) <= 0).any()
            or (sizes < 0).any()
        ):
            mistakes.append(
                Mistake(
                    "sizes",
                    f"{short(self.sizes)} are not whole numbers of 0 or more in rising order",
                )
            )
        elif len(sizes) < FEWEST_SIZES:
            mistakes.append(
                Mistake("sizes", f"{len(sizes)} show no bend; give at least {FEWEST_SIZES}")
            )
        if scores is None or not len(scores):
            mistakes.append(
                Mistake(
                    "scores", "must be numbers: a row for each repetition, a column for each size"
                )
            )
        elif not mistakes and scores.shape[1] != len(sizes):
            mistakes.append(
                Mistake("scores", f"{scores.shape[1]} in a repetition for {len(sizes)} sizes")
            )
        elif not np.isfinite(scores).all():
            what = (
                "some are no finite numbers; does the validation part hold labels of every class?"
            )
            mistakes.append(Mistake("scores", what))
        if not isinstance(self.have, int | np.integer) or self.have < 0:
            mistakes.append(
                Mistake("have", f"{short(self.have)} is not a whole number of 0 or more")
            )
        if mistakes:
            raise InputError(mistakes)
        assert scores is not None
        object.__setattr__(self, "sizes", tuple(map(int, sizes)))
        object.__setattr__(self, "scores", tuple(tuple(map(float, row)) for row in scores))
        object.__setattr__(self, "have", int(self.have))

    @property
    def repetitions(self) -> int:
        return len(self.scores)

    @property
    def start(self) -> int:
        """Labels at the smallest size."""
        return self.have + self.sizes[0]

    @cached_property
    def more(self) -> Array:
        """Labels beyond the smallest size, of all sizes but that one."""
        return np.asarray(self.sizes[1:], dtype=float) - self.sizes[0]

    @cached_property
    def values(self) -> Array:
        """The scores with their sign turned where lower is better."""
        return np.asarray(self.scores) * (1.0 if self.higher_is_better else -1.0)

    @property
    def gains(self) -> Array:
        """Mean gain of every size but the first over the first: the paper's Delta S."""
        means = self.values.mean(axis=0)
        return np.asarray(means[1:] - means[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return asdict(self) | {
            "sizes": list(self.sizes),
            "scores": [list(row) for row in self.scores],
        }

    @classmethod
    @reading("the points")
    def from_dict(cls, plain: Any) -> Points:
        """The points that `to_dict` wrote."""
        needed = ("sizes", "scores", "higher_is_better")
        if mistakes := check_keys(plain, needed, (*needed, "have", "task", "source"), "points"):
            raise InputError(mistakes)
        return cls(**plain)


def check_keys(plain: Any, needed: Sequence[str], known: Sequence[str], what: str) -> list[Mistake]:
    """What is wrong with the keys of something read from JSON."""
    if not isinstance(plain, Mapping):
        return [Mistake("", f"{what}: not a table with {', '.join(needed)}")]
    mistakes = [
        Mistake(cut(key), f"unknown key; {suggest(key, known)}")
        for key in plain
        if key not in known
    ]
    return mistakes + [Mistake(key, "is missing") for key in needed if key not in plain]


def _rectangle(rows: Any) -> Array | None:
    try:
        array = np.asarray(rows, dtype=float)
    except (TypeError, ValueError):
        return None
    return array if array.ndim == 2 else None


# --- laws and fits ---


@dataclass(frozen=True)
class Fit:
    """A law fitted to points, with an interval for its shape.

    The interval covers other draws and other trainings from the labels at hand. It does not cover
    other labels at hand or other validation labels, which move all sizes together.
    """

    law: str
    method: str
    shape: float
    """the reduction rate b of the geometric law, the exponent of the power law"""
    low: float
    high: float
    size: float
    """what the first label adds (the paper's Delta s), the worth of the power law: in units of the
    score, up is good"""
    loss: float
    """mean absolute difference between law and points: what Eq. 7 makes small"""
    residual: float
    """standard deviation of the points around the law, corrected for two fitted numbers; NaN where
    none are left"""
    level: float
    draws: tuple[tuple[float, float], ...]
    """(shape, size) fitted to resampled points"""
    start: int
    """labels at which gains begin to count"""

    def curve(self, have: int) -> Curve:
        """What labels are worth to someone who has so many."""
        if self.law == "power":
            return Power(self.size, have, self.shape)
        return Geometric(self.size * self.shape ** (have - self.start), self.shape)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for what is not a finite number."""
        plain = asdict(self) | {"draws": [list(pair) for pair in self.draws]}
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in plain.items()
        }

    @classmethod
    @reading("the fit")
    def from_dict(cls, plain: Any) -> Fit:
        """The fit that `to_dict` wrote."""
        known = tuple(item.name for item in fields(cls))
        if mistakes := check_keys(plain, known, known, "a fit"):
            raise InputError(mistakes)
        try:
            draws = tuple((float(shape), float(size)) for shape, size in plain["draws"])
        except (TypeError, ValueError):
            raise InputError(
                [Mistake("draws", "are not pairs of numbers: a shape and a size each")]
            ) from None
        # of a power law the upper end may be infinite, and a residual may not be a number; nothing
        # else ever is
        ends = {
            key: end
            for key, end in (("high", math.inf), ("residual", math.nan))
            if plain[key] is None
        }
        return cls(**{**plain, **ends, "draws": draws})


@dataclass(frozen=True)
class Law:
    """One family: its gains for size 1, and the range of its shape on an even scale `u`."""

    shape: Callable[[Any], Any]
    """of u"""
    place: Callable[[float], float]
    """u of a shape"""
    gains: Callable[[Any, Array], Any]
    """of u and numbers of labels, for size 1"""
    low: float
    high: float
    ends: tuple[float, float]
    """shapes that the ends of the range stand for"""


def law_of(name: str, points: Points) -> Law:
    more = points.more
    # u is the log of the reach -1 / log b: after so many labels a label is worth 1/e
    if name == "geometric":
        return Law(
            shape=lambda u: np.exp(-np.exp(-u)),
            place=lambda b: -math.log(-math.log(b)),
            gains=lambda u, x: np.expm1(-x * np.exp(-u)) / np.expm1(-np.exp(-u)),
            # shorter is a step, longer is a straight line, as far as these sizes can tell
            low=math.log(max(more[0] / 10, 0.1)),
            high=math.log(more[-1] * 100),
            ends=(0.0, 1.0),
        )
    start = max(points.start, 1)
    return Law(
        shape=np.exp,
        place=math.log,
        gains=lambda u, x: start ** -np.exp(u) * -np.expm1(-np.exp(u) * np.log1p(x / start)),
        low=math.log(0.01),
        high=math.log(10.0),
        ends=(0.0, math.inf),
    )


def fit_paper(
    points: Points,
    *,
    steps: int = 1500,
    rate: float = 0.3,
    restarts: int = 8,
    draws: int = 200,
    level: float = 0.9,
    seed: int = 0,
) -> Fit:
    """The paper's fit (Eq. 7): the L1 difference between Eq. 6 and the mean gains, by gradient
    descent from several b.

    It descends in log(-1 / log b) and in the gain at the largest size rather than in b and Delta s,
    whose slopes differ by a factor of a million: the same valley, and b can't leave (0, 1). `rate`
    is the first step; the last is 10^-4 of it.
    """
    law = law_of("geometric", points)

    def solve(gains: Array) -> tuple[Array, Array]:
        return _descend(
            points.more, gains, np.linspace(law.low, law.high, restarts + 2)[1:-1], law, steps, rate
        )

    return _finish(points, "geometric", "descent", law, solve, solve, draws, level, seed)


def fit_exact(
    points: Points, *, law: str = "geometric", draws: int = 200, level: float = 0.9, seed: int = 0
) -> Fit:
    """The same objective, solved: for each shape the best size is a weighted median; shapes by grid
    and zoom.

    `law` is "geometric" (the paper's) or "power" (in labels at hand plus new ones).
    """
    if law not in ("geometric", "power"):
        raise InputError(
            [Mistake("law", f"unknown {law!r}; {suggest(law, ('geometric', 'power'))}")]
        )
    family = law_of(law, points)

    def solve(gains: Array) -> tuple[Array, Array]:
        return search(points.more, gains, family, grid=600, best=6, zooms=8)

    def solve_quickly(gains: Array) -> tuple[Array, Array]:
        return search(points.more, gains, family, grid=60, best=1, zooms=1)

    return _finish(points, law, "exact", family, solve, solve_quickly, draws, level, seed)


def _finish(
    points: Points,
    name: str,
    method: str,
    law: Law,
    solve: Callable[[Array], tuple[Array, Array]],
    solve_many: Callable[[Array], tuple[Array, Array]],
    draws: int,
    level: float,
    seed: int,
) -> Fit:
    mistakes = [Mistake("draws", f"{draws} is below 1")] if draws < 1 else []
    if not 0 < level < 1:
        mistakes.append(Mistake("level", f"{level} is not between 0 and 1"))
    if mistakes:
        raise InputError(mistakes)
    gains = points.gains
    (u,), (size,) = solve(gains[None])
    errors = gains - size * law.gains(u, points.more)
    left = len(gains) - 2
    residual = float(np.sqrt(np.sum(errors**2) / left)) if left > 0 else math.nan
    again = resample(points, errors, draws, level, np.random.default_rng(seed))
    # nothing to judge noise by, or a flat line that any shape fits
    if again is None or size == 0.0:
        ends, found = law.ends, []
    else:
        shapes, sizes = solve_many(again)
        ends = _ends(law, shapes, level)
        found = list(zip(law.shape(shapes).tolist(), sizes.tolist(), strict=True))
    loss = float(np.abs(errors).mean())
    return Fit(
        name,
        method,
        float(law.shape(u)),
        *ends,
        float(size),
        loss,
        residual,
        level,
        tuple(found),
        points.start,
    )


def _ends(law: Law, shapes: Array, level: float) -> tuple[float, float]:
    """The middle `level` of the shapes; an end that is at the end of the range is none."""
    low, high = np.quantile(shapes, [(1 - level) / 2, (1 + level) / 2]).tolist()
    margin = 0.01 * (law.high - law.low)
    return (
        law.ends[0] if low < law.low + margin else float(law.shape(low)),
        law.ends[1] if high > law.high - margin else float(law.shape(high)),
    )


def resample(
    points: Points, errors: Array, draws: int, level: float, rng: np.random.Generator
) -> Array | None:
    """Gains that other repetitions might have given (draws, sizes - 1): whole repetitions drawn
    again.

    A few repetitions vary less than what they come from, and their spread is itself uncertain: both
    are made good, the second by Student's t. One repetition alone is judged by its distances from
    the law.
    """
    gains, values = points.gains, points.values
    count = len(values)
    if count == 1:
        if len(errors) <= 2:
            return None
        wide = math.sqrt(len(errors) / (len(errors) - 2)) * _widen(level, len(errors) - 2)
        noise = errors[rng.integers(len(errors), size=(draws, len(errors) + 1))] * wide
        return np.asarray(gains + noise[:, 1:] - noise[:, :1])
    apart = values - values.mean(axis=0)
    apart = apart[:, 1:] - apart[:, :1]
    wide = math.sqrt(count / (count - 1)) * _widen(level, count - 1)
    return np.asarray(gains + wide * apart[rng.integers(count, size=(draws, count))].mean(axis=1))


def _widen(level: float, free: float) -> float:
    tail = (1 - level) / 2
    return student(tail, free) / NormalDist().inv_cdf(1 - tail)


def _size(gains: Array, unit: Array) -> tuple[Array, Array]:
    """The size that makes the sum of |gains - size * unit| smallest, and that sum; along the last
    axis."""
    ratio = gains / unit
    order = np.argsort(ratio, axis=-1)
    weight = np.cumsum(np.take_along_axis(np.broadcast_to(unit, ratio.shape), order, -1), axis=-1)
    middle = np.argmax(weight >= weight[..., -1:] / 2, axis=-1)[..., None]
    size = np.take_along_axis(ratio, np.take_along_axis(order, middle, -1), -1)
    return size[..., 0], np.abs(gains - size * unit).sum(axis=-1)


def search(
    more: Array, gains: Array, law: Law, grid: int, best: int, zooms: int
) -> tuple[Array, Array]:
    """The best u and size for each row of gains: a grid, then finer ones around its `best`
    places."""
    places = np.broadcast_to(np.linspace(law.low, law.high, grid), (len(gains), grid))
    width = (law.high - law.low) / (grid - 1)
    for zoom in range(zooms + 1):
        sizes, losses = _size(gains[:, None, :], law.gains(places[..., None], more))
        if zoom == zooms:
            break
        tops = np.take_along_axis(places, np.argsort(losses, axis=1)[:, :best], axis=1)
        places = (tops[:, :, None] + width * np.linspace(-1, 1, 11)).reshape(len(gains), -1)
        places, width = np.clip(places, law.low, law.high), width / 5
    at = np.argmin(losses, axis=1)[:, None]
    return np.take_along_axis(places, at, 1)[:, 0], np.take_along_axis(sizes, at, 1)[:, 0]


def _descend(
    more: Array, gains: Array, starts: Array, law: Law, steps: int, rate: float
) -> tuple[Array, Array]:
    """Subgradient descent on (u, gain at the largest size) for each row of gains, from every start
    at once."""
    scale = np.maximum(np.abs(gains).max(axis=1, keepdims=True), 1e-300)
    wanted = (gains / scale)[:, None, :]
    u = np.broadcast_to(starts, (len(gains), len(starts))).copy()
    top = np.broadcast_to(wanted[..., -1], u.shape).copy()
    best, best_u, best_top = np.full(u.shape, np.inf), u.copy(), top.copy()
    for step in range(steps):
        used = more * np.exp(-u)[..., None]
        rest = np.exp(-used)
        whole = -np.expm1(-used[..., -1:])
        share = -np.expm1(-used) / whole
        error = top[..., None] * share - wanted
        loss = np.abs(error).sum(axis=-1)
        better = loss < best
        best, best_u, best_top = (
            np.where(better, loss, best),
            np.where(better, u, best_u),
            np.where(better, top, best_top),
        )
        side = np.sign(error)
        by_top = (side * share).sum(axis=-1)
        by_u = top * (side * (share * rest[..., -1:] * used[..., -1:] - rest * used) / whole).sum(
            axis=-1
        )
        stride = rate * 1e-4 ** (step / steps) / np.maximum(np.hypot(by_top, by_u), 1e-12)
        u, top = np.clip(u - stride * by_u, law.low, law.high), top - stride * by_top
    at = np.argmin(best, axis=1)[:, None]
    u = np.take_along_axis(best_u, at, 1)[:, 0]
    top = np.take_along_axis(best_top, at, 1)[:, 0] * scale[:, 0]
    return u, top / law.gains(u, more[-1:])
