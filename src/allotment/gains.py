"""What N labels are worth: concave curves, one for each task.

Every curve says what `more` labels add after `count` of them (`rise`), which stays exact where the
difference of two totals would lose its digits. A family's formulas take parameters that are numbers
or arrays, so that the solver can ask a thousand tasks at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import exact, short
from allotment.errors import InputError, Mistake, cut, make_hints, suggest
from allotment.problem import show_exact

Array: TypeAlias = NDArray[np.float64]

MOST_PARTS = 1_000
"""curves in one sum"""
Floats: TypeAlias = float | Array


class Curve:
    """The worth of 0, 1, 2, ... labels. Curves add (`a + b`) and scale (`2 * a`).

    Plans are made of the curves of this module alone; a function of one's own becomes a table of
    its values (`Tabulated`).
    """

    family: ClassVar[str]

    def __call__(self, count: Any) -> Any:
        """Worth of `count` labels; a number or an array."""
        counts = np.asarray(count, dtype=float)
        total = np.asarray(self.rise(np.zeros_like(counts), counts))
        return float(total) if total.ndim == 0 else total

    def rise(self, count: Floats, more: Floats) -> Any:
        """What `more` labels add when `count` are there."""
        raise NotImplementedError

    @property
    def terms(self) -> tuple[Curve, ...]:
        """The curves that this one is the sum of."""
        return (self,)

    @property
    def sign(self) -> int:
        """1 if more labels can be worth something, 0 if they never are, -1 if they only harm."""
        raise NotImplementedError

    def __add__(self, other: Curve) -> Curve:
        if not isinstance(other, Curve):
            return NotImplemented
        return Sum((*self.terms, *other.terms))

    def __radd__(self, other: object) -> Curve:
        return self if other == 0 else NotImplemented  # so that sum(curves) works

    def __mul__(self, factor: float) -> Curve:
        raise NotImplementedError

    def __rmul__(self, factor: float) -> Curve:
        return self * factor

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON or TOML."""
        raise NotImplementedError


class Family(Curve):
    """A curve given by a few numbers, of which the first is its size."""

    parameters: ClassVar[tuple[str, ...]]

    @classmethod
    def of_values(cls, *values: float) -> Family:
        """The curve whose `values()` these are."""
        return cls(*values)

    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, key) for key in self.parameters)

    @staticmethod
    def rise_of(values: Sequence[Any], count: Floats, more: Floats) -> Any:
        """`rise` for parameters that may be arrays."""
        raise NotImplementedError

    @staticmethod
    def reach_of(values: Sequence[Any], slope: Floats) -> Any:
        """About how many labels are worth more than `slope` each, to within one."""
        raise NotImplementedError

    def rise(self, count: Floats, more: Floats) -> Any:
        return self.rise_of(self.values(), count, more)

    @property
    def sign(self) -> int:
        return int(np.sign(self.values()[0]))

    def __mul__(self, factor: float) -> Curve:
        size, *shape = self.values()
        return self.of_values(size * _number("factor", factor), *shape)

    def to_dict(self) -> dict[str, Any]:
        return {"curve": self.family} | dict(zip(self.parameters, self.values(), strict=True))


@dataclass(frozen=True)
class Geometric(Family):
    """The paper's gathering (Eq. 4): g(N) = I (1 - b^N) / (1 - b).

    >>> round(Geometric(1.13, 0.999)(2920), 3)
    1069.144
    """

    informativeness: float
    reduction: float
    family: ClassVar[str] = "geometric"
    parameters: ClassVar[tuple[str, ...]] = ("informativeness", "reduction")

    def __post_init__(self) -> None:
        _check(self, informativeness=None, reduction=(0.0, 1.0))

    @staticmethod
    def rise_of(values: Sequence[Any], count: Floats, more: Floats) -> Any:
        size, keep = values
        with np.errstate(all="ignore"):
            log = np.log(keep)
            gathered = np.where(keep < 1, -np.expm1(more * log) / (1 - keep), more)
            # b = 0: the first label is worth everything and the others nothing
            single = np.minimum(count + more, 1.0) - np.minimum(count, 1.0)
            return np.where(keep > 0, size * np.exp(count * log) * gathered, size * single)

    @staticmethod
    def reach_of(values: Sequence[Any], slope: Floats) -> Any:
        size, keep = values
        with np.errstate(all="ignore"):
            steps = 1 + np.log(slope / size) / np.log(keep)
            steps = np.where((keep >= 1) | (slope <= 0), np.inf, steps)
        return np.where(size > slope, np.where(keep > 0, steps, 1.0), 0.0)


@dataclass(frozen=True)
class Power(Family):
    """A power law in labels at hand plus new ones: g(N) = worth (n^-a - (n + N)^-a), at most
    `ceiling`.

    `have` below 1 counts as 1, since n^-a has no value at 0.

    >>> round(Power(10, have=100, exponent=0.5)(300), 3)
    0.5
    """

    worth: float
    have: float
    exponent: float
    ceiling: float = math.inf
    family: ClassVar[str] = "power"
    parameters: ClassVar[tuple[str, ...]] = ("worth", "have", "exponent", "ceiling")

    def __post_init__(self) -> None:
        endless = self.ceiling == math.inf
        limits = {} if endless else {"ceiling": (1e-100, 1e100)}
        _check(self, worth=None, have=(0.0, 1e15), exponent=(1e-6, 100.0), **limits)
        if endless:  # of any type, such as the Decimal of a file
            object.__setattr__(self, "ceiling", math.inf)

    def __mul__(self, factor: float) -> Curve:
        factor = _number("factor", factor)
        ceiling = self.ceiling if math.isinf(self.ceiling) or factor <= 0 else self.ceiling * factor
        return Power(self.worth * factor, self.have, self.exponent, ceiling)

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        if math.isinf(self.ceiling):
            del plain["ceiling"]
        return plain

    @staticmethod
    def rise_of(values: Sequence[Any], count: Floats, more: Floats) -> Any:
        worth, have, exponent, ceiling = values
        start = np.maximum(have, 1.0)
        before = start + count
        free = worth * before**-exponent * -np.expm1(-exponent * np.log1p(more / before))
        if np.all(np.isinf(ceiling)):
            return free
        so_far = worth * start**-exponent * -np.expm1(-exponent * np.log1p(count / start))
        return np.clip(ceiling - so_far, np.minimum(0.0, free), free)

    @staticmethod
    def reach_of(values: Sequence[Any], slope: Floats) -> Any:
        worth, have, exponent, ceiling = values
        start = np.maximum(have, 1.0)
        with np.errstate(all="ignore"):
            reach = (worth * exponent / slope) ** (1 / (exponent + 1)) - start
            left = 1 - ceiling / worth * start**exponent
            full = np.where(left > 0, start * (left ** (-1 / exponent) - 1), np.inf)
        reach = np.where(worth > 0, np.where(slope > 0, reach, np.inf), 0.0)
        return np.minimum(np.maximum(reach, 0.0), full)


@dataclass(frozen=True)
class Logarithmic(Family):
    """g(N) = worth log(1 + N / n). `have` below 1 counts as 1, since the first label of all has no
    finite ratio.

    >>> round(Logarithmic(2, have=100)(100), 3)
    1.386
    """

    worth: float
    have: float
    family: ClassVar[str] = "logarithmic"
    parameters: ClassVar[tuple[str, ...]] = ("worth", "have")

    def __post_init__(self) -> None:
        _check(self, worth=None, have=(0.0, 1e15))

    @staticmethod
    def rise_of(values: Sequence[Any], count: Floats, more: Floats) -> Any:
        worth, have = values
        return worth * np.log1p(more / (np.maximum(have, 1.0) + count))

    @staticmethod
    def reach_of(values: Sequence[Any], slope: Floats) -> Any:
        worth, have = values
        with np.errstate(all="ignore"):
            reach = np.where(slope > 0, worth / slope - np.maximum(have, 1.0), np.inf)
        return np.where(worth > 0, np.maximum(reach, 0.0), 0.0)


@dataclass(frozen=True, init=False)
class Tabulated(Curve):
    """The worth of N labels from a table: of 0, 1, 2, ... labels, or of the given `counts` with
    straight lines between.

    It must be concave (no label worth more than one before it). Past its end nothing more is
    gained; a table that falls at its end goes on falling.

    >>> Tabulated([0, 5, 8, 9])(2)
    8.0
    >>> Tabulated([0, 5, 8], counts=[0, 100, 400])(250)
    6.5
    """

    worths: tuple[float, ...]
    counts: tuple[int, ...]
    family: ClassVar[str] = "tabulated"

    def __init__(self, values: Iterable[float], counts: Iterable[int] | None = None):
        worths = _numbers("values", values)
        places = tuple(range(len(worths))) if counts is None else _numbers("counts", counts)
        mistakes = []
        if not worths:
            mistakes.append(Mistake("values", "the table is empty"))
        elif len(places) != len(worths):
            mistakes.append(Mistake("counts", f"{len(places)} counts for {len(worths)} values"))
        elif places[0] != 0:
            mistakes.append(
                Mistake(
                    "counts", f"begin at {places[0]:g}; the first row says what 0 labels are worth"
                )
            )
        elif any(b <= a or b != int(b) or b > 1e15 for a, b in itertools.pairwise(places)):
            mistakes.append(Mistake("counts", "must be whole numbers in rising order"))
        else:
            mistakes += _check_concave(worths, tuple(int(place) for place in places))
        if mistakes:
            raise InputError(mistakes)
        object.__setattr__(self, "worths", worths)
        object.__setattr__(self, "counts", tuple(int(place) for place in places))

    def rise(self, count: Floats, more: Floats) -> Any:
        row, past = self._place(np.asarray(count))
        end, beyond = self._place(np.add(count, more))
        worths = np.asarray(self.worths)
        return worths[end] - worths[row] + (beyond - past)

    def _place(self, count: Array) -> tuple[NDArray[np.int64], Array]:
        """The last row up to `count`, and what is gained past it: apart, so that a rise keeps the
        digits of a total."""
        row = np.searchsorted(self.counts, count, side="right") - 1
        return row, np.append(self.slopes, self.last_slope)[row] * (
            count - np.asarray(self.counts)[row]
        )

    @property
    def last_slope(self) -> float:
        """What a label adds past the end: concave means that it can't be more than the last one
        did."""
        return min(0.0, float(self.slopes[-1])) if len(self.slopes) else 0.0

    @cached_property
    def slopes(self) -> Array:
        """What a label adds, between each count and the next."""
        return np.diff(self.worths) / np.diff(self.counts)

    @property
    def sign(self) -> int:
        return int(np.sign(self.worths[1] - self.worths[0])) if len(self.worths) > 1 else 0

    def __mul__(self, factor: float) -> Curve:
        factor = _number("factor", factor)
        if factor < 0 and self.sign:
            raise InputError(
                [Mistake("factor", "a table times a negative number is no longer concave")]
            )
        return Tabulated([worth * factor for worth in self.worths], self.counts)

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"curve": self.family, "values": list(self.worths)}
        if self.counts != tuple(range(len(self.counts))):
            plain["counts"] = list(self.counts)
        return plain


@dataclass(frozen=True)
class Sum(Curve):
    """Several curves added up."""

    parts: tuple[Curve, ...]
    family: ClassVar[str] = "sum"

    def rise(self, count: Floats, more: Floats) -> Any:
        return sum(part.rise(count, more) for part in self.parts)

    @property
    def terms(self) -> tuple[Curve, ...]:
        return self.parts

    @property
    def sign(self) -> int:
        return max((part.sign for part in self.parts), default=0)

    def __mul__(self, factor: float) -> Curve:
        return Sum(tuple(part * factor for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        return {"curve": self.family, "parts": [part.to_dict() for part in self.parts]}


@dataclass(frozen=True, init=False)
class Coupled(Curve):
    """A curve of a weighted sum of several tasks' counts: labels of one task that count in part for
    another.

    >>> classes = Coupled(Geometric(1.13, 0.999), {"cls": 1, "seg": 1})  # masks are class labels
    >>> round(classes.of({"cls": 2000, "seg": 200}), 3)
    1004.93
    """

    inner: Curve
    weights: Mapping[str, Fraction]
    family: ClassVar[str] = "coupled"

    def __init__(self, curve: Curve, weights: Mapping[str, Any]):
        mistakes = []
        if strange := find_strange(curve):
            mistakes.append(Mistake("curve", strange))
        elif not isinstance(curve, Curve) or any(isinstance(term, Coupled) for term in curve.terms):
            mistakes.append(Mistake("curve", "must be a curve of one count"))
        elif curve.sign < 0:
            mistakes.append(
                Mistake(
                    "curve", "is worth less with every label; only a rising curve can be coupled"
                )
            )
        shares: dict[str, Fraction] = {}
        if not isinstance(weights, Mapping) or not weights:
            mistakes.append(
                Mistake("weights", "name at least one task and how much one of its labels counts")
            )
            weights = {}
        for name, weight in weights.items():
            try:
                shares[name] = exact(weight)
            except ValueError as error:
                mistakes.append(Mistake(f"weights.{name}", str(error)))
                continue
            if shares[name] <= 0:
                mistakes.append(Mistake(f"weights.{name}", f"{weight} is not above zero"))
        if mistakes:
            raise InputError(mistakes)
        object.__setattr__(self, "inner", curve)
        object.__setattr__(self, "weights", shares)

    def rise(self, count: Floats, more: Floats) -> Any:
        raise TypeError("a coupled curve needs the counts of all its tasks: use .of(counts)")

    def of(self, counts: Mapping[str, int]) -> float:
        """Worth of these counts."""
        return float(self.inner(self.mix(counts)))

    def mix(self, counts: Mapping[str, int]) -> float:
        """The weighted sum of these counts: what the inner curve is taken at."""
        return float(sum(weight * counts.get(name, 0) for name, weight in self.weights.items()))

    @property
    def sign(self) -> int:
        return self.inner.sign

    def __mul__(self, factor: float) -> Curve:
        return Coupled(self.inner * factor, self.weights)

    def to_dict(self) -> dict[str, Any]:
        weights = {name: show_exact(weight) for name, weight in self.weights.items()}
        return {"curve": self.family, "inner": self.inner.to_dict(), "weights": weights}


FAMILIES: dict[str, tuple[type[Curve], tuple[str, ...], tuple[str, ...]]] = {
    "geometric": (Geometric, ("informativeness", "reduction"), ()),
    "power": (Power, ("worth", "have", "exponent"), ("ceiling",)),
    "logarithmic": (Logarithmic, ("worth", "have"), ()),
    "tabulated": (Tabulated, ("values",), ("counts",)),
    "sum": (Sum, ("parts",), ()),
    "coupled": (Coupled, ("inner", "weights"), ()),
}
"""name in files -> class, keys that must be there, keys that may be"""


def find_strange(curve: Any) -> str | None:
    """Why no plan can be made with a curve that is, or holds, one of another class; a subclass is
    another class too."""
    if not isinstance(curve, Curve):
        return None
    cls = type(curve)
    if not any(cls is known for known, *_ in FAMILIES.values()):
        return (
            f"{cls.__name__} is not a curve that plans are made with; give a table of its values"
            " instead: al.Tabulated([curve(n) for n in counts], counts), where counts are 0 and as"
            " many more as you like, in rising order up to the most that could be bought"
        )
    inside: Iterable[Curve] = ()
    if isinstance(curve, Sum):
        inside = curve.parts
    elif isinstance(curve, Coupled):
        inside = (curve.inner,)
    return next((strange for part in inside if (strange := find_strange(part))), None)


def curve_from_dict(plain: Any) -> Curve:
    """The curve that `to_dict` wrote, or that a file holds.

    >>> curve_from_dict({"curve": "geometric", "informativeness": 1.13, "reduction": 0.999})
    Geometric(informativeness=1.13, reduction=0.999)
    """
    if not isinstance(plain, Mapping):
        raise InputError([Mistake("", "a curve is a table such as { curve = 'geometric', ... }")])
    name = plain.get("curve")
    if not isinstance(name, str) or name not in FAMILIES:
        what = "is missing" if name is None else f"unknown curve {short(name)}"
        raise InputError([Mistake("curve", f"{what}; {suggest(short(name or ''), FAMILIES)}")])
    cls, needed, optional = FAMILIES[name]
    known = (*needed, *optional)
    values = {key: value for key, value in plain.items() if key != "curve"}
    hint = make_hints(known)
    mistakes = [
        Mistake(cut(key, 60), f"unknown key; {hint(key)}") for key in values if key not in known
    ]
    mistakes += [Mistake(key, "is missing") for key in needed if key not in values]
    if mistakes:
        raise InputError(mistakes)
    if cls is Sum:
        if not isinstance(values["parts"], list) or not values["parts"]:
            raise InputError([Mistake("parts", "must be a list of curves")])
        if (count := len(values["parts"])) > MOST_PARTS:
            raise InputError(
                [
                    Mistake(
                        "parts", f"there are {count:,}, the limit is {MOST_PARTS:,}; leave some out"
                    )
                ]
            )
        parts: list[Curve] = []
        for number, part in enumerate(values["parts"], 1):
            try:
                parts.append(curve_from_dict(part))
            except InputError as error:
                mistakes += [mistake.under(f"part {number}") for mistake in error.mistakes]
        if mistakes:
            raise InputError(mistakes)
        return sum(parts[1:], parts[0])
    if cls is Coupled:
        return Coupled(curve_from_dict(values["inner"]), values["weights"])
    return cls(**values)


def _number(key: str, value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except OverflowError:
        raise InputError(
            [Mistake(key, f"{short(value)} is too large (the limit is 10^100)")]
        ) from None
    except (TypeError, ValueError):
        raise InputError([Mistake(key, f"{short(value)} is not a number")]) from None
    if not math.isfinite(number):
        raise InputError([Mistake(key, f"{number} is not a finite number")])
    if abs(number) > 1e100:
        raise InputError([Mistake(key, f"{number:.3g} is too large (the limit is 10^100)")])
    return number


def _numbers(key: str, values: Any) -> tuple[float, ...]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InputError([Mistake(key, "must be a list of numbers")])
    return tuple(_number(key, value) for value in values)


def _check(curve: Family, **ranges: tuple[float, float] | None) -> None:
    """Turn a curve's parameters into numbers within their ranges, or say everything that is wrong
    with them."""
    mistakes: list[Mistake] = []
    for key, bounds in ranges.items():
        try:
            number = _number(key, getattr(curve, key))
        except InputError as error:
            mistakes += error.mistakes
            continue
        if bounds is not None and not bounds[0] <= number <= bounds[1]:
            mistakes.append(
                Mistake(key, f"{number:g} is not between {bounds[0]:g} and {bounds[1]:g}")
            )
        object.__setattr__(curve, key, number)
    if mistakes:
        raise InputError(mistakes)


def _rounding(worths: Array) -> Array:
    """For each three rows: what their slopes may differ by. A share of what is gained from there
    on, since what came before may be fixed and far larger, and the last digits of the rows
    themselves."""
    highest = np.maximum.accumulate(worths[::-1])[::-1]
    lowest = np.minimum.accumulate(worths[::-1])[::-1]
    size = np.abs(worths)
    last_digits = np.spacing(np.maximum(np.maximum(size[:-2], size[1:-1]), size[2:]))
    return np.asarray(1e-12 * np.maximum(highest - worths, worths - lowest)[:-2] + 16 * last_digits)


def _check_concave(worths: tuple[float, ...], counts: tuple[int, ...]) -> list[Mistake]:
    if len(worths) < 3:
        return []
    slopes = np.diff(worths) / np.diff(counts)
    rising = np.flatnonzero(np.diff(slopes) > _rounding(np.array(worths)))
    if not len(rising):
        return []
    at = int(rising[0]) + 1
    what = (
        f"not concave: a label after {counts[at]} adds {slopes[at]:.6g}, more than one before it "
        f"({slopes[at - 1]:.6g}); smooth the table, or keep only its upper hull"
    )
    return [Mistake("values", what)]
