"""What N labels are worth: concave curves, one for each task.

Every curve says what `more` labels add after `count` of them (`rise`), which stays exact where the
difference of two totals would lose its digits. A family's formulas take parameters that are numbers
or arrays, so that the solver can ask a thousand tasks at once. A curve of one's own only says what
`count` labels are worth (`total`); all else follows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import exact, short
from allotment.arrays import Array
from allotment.errors import InputError, Mistake, cut, make_hints, suggest
from allotment.plugins import Registry
from allotment.problem import show_exact

MOST_CURVES = 1_000
"""curves in one sum"""
LOOKS = 129
"""places that are looked at together where the best count is searched for"""
LAST_DIGITS = 16
"""a total is taken to be right to so many units in its last place"""
Floats: TypeAlias = float | Array


class Curve:
    """The worth of 0, 1, 2, ... labels. Curves add (`a + b`) and scale (`2 * a`).

    A curve of one's own is a frozen dataclass that builds on this class. Its fields are its
    parameters, and `total` says what `count` labels are worth: finite, never falling, and concave,
    which is to say that no label is worth more than one before it. Fields of type float must be
    finite numbers; a `__post_init__` of its own may say more (see `check`). Two more methods can be
    given: `rise`, where the difference of two totals would lose digits, and `reach`, to save a
    search. `family` is its name in files, the class's own in small letters unless it is given.

    >>> @dataclass(frozen=True)
    ... class Root(Curve):
    ...     size: float
    ...
    ...     def total(self, count):
    ...         return self.size * np.sqrt(count)
    >>> Root(5)(100), Root(5).reach(slope=0.5, most=1000), Root(5).to_dict()
    (50.0, 25, {'curve': 'root', 'size': 5.0})
    """

    family: ClassVar[str]
    """how files name it"""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "family" not in vars(cls):  # one that it inherits would be another curve's
            cls.family = cls.__name__.lower()

    def __post_init__(self) -> None:
        self.check(**{each.name: None for each in _list_fields(type(self)) if _is_float(each)})

    def __call__(self, count: Any) -> Any:
        """Worth of `count` labels; a number or an array."""
        counts = np.asarray(count, dtype=float)
        total = np.asarray(self.rise(np.zeros_like(counts), counts))
        return float(total) if total.ndim == 0 else total

    def total(self, count: Any) -> Any:
        """What `count` labels are worth in all; of a number a number, of an array an array."""
        raise NotImplementedError(f"{type(self).__name__} does not say what labels are worth")

    def rise(self, count: Floats, more: Floats) -> Any:
        """What `more` labels add when `count` are there."""
        return self.total(np.add(count, more)) - self.total(np.asarray(count, dtype=float))

    def reach(self, slope: float, most: int) -> float:
        """How many labels, of up to `most`, are worth more than `slope` each, to within one."""
        return climb(lambda steps: self.rise(np.zeros(len(steps)), steps), most, slope)

    @property
    def knows_reach(self) -> bool:
        """Whether its reach is known without a search."""
        return type(self).reach is not Curve.reach

    def rounding(self, low: Floats, high: Floats) -> Any:
        """What a rise between two counts may be off by: nothing where it keeps its digits, else the
        last ones of the totals."""
        if type(self).rise is not Curve.rise:
            return np.zeros(np.broadcast(low, high).shape)
        size = np.maximum(np.abs(self.total(low)), np.abs(self.total(high)))
        return LAST_DIGITS * np.spacing(size)

    @property
    def terms(self) -> tuple[Curve, ...]:
        """The curves that this one is the sum of."""
        return (self,)

    @property
    def sign(self) -> int:
        """1 if more labels can be worth something, 0 if they never are, -1 if they only harm."""
        return int(np.sign(self.rise(0.0, 1.0)))

    def check(self, **ranges: tuple[float, float] | None) -> None:
        """Turn parameters into numbers within their ranges (None: any finite number), or say
        everything that is wrong with them."""
        mistakes: list[Mistake] = []
        for key, bounds in ranges.items():
            try:
                number = _number(key, getattr(self, key))
            except InputError as error:
                mistakes += error.mistakes
                continue
            if bounds is not None and not bounds[0] <= number <= bounds[1]:
                what = f"{number:g} is not between {bounds[0]:g} and {bounds[1]:g}"
                mistakes.append(Mistake(key, what))
            object.__setattr__(self, key, number)
        if mistakes:
            raise InputError(mistakes)

    def __add__(self, other: Curve) -> Curve:
        if not isinstance(other, Curve):
            return NotImplemented
        return Sum((*self.terms, *other.terms))

    def __radd__(self, other: object) -> Curve:
        return self if other == 0 else NotImplemented  # so that sum(curves) works

    def __mul__(self, factor: float) -> Curve:
        return Scaled(self, factor)

    def __rmul__(self, factor: float) -> Curve:
        return self * factor

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON or TOML; parameters at their default are left out."""
        plain: dict[str, Any] = {"curve": self.family}
        for each in _list_fields(type(self)):
            value, default = getattr(self, each.name), _default_of(each)
            if default is MISSING or value != default:
                plain[each.name] = _to_plain(value)
        return plain

    @classmethod
    def from_dict(cls, plain: Any) -> Curve:
        """The curve that `to_dict` wrote, also where no package offers this class."""
        return curve_from_dict(plain, own=() if cls is Curve else (cls,))

    @classmethod
    def keys(cls) -> dict[str, bool]:
        """The keys of its table in a file, and whether each must be there."""
        return {each.name: _default_of(each) is MISSING for each in _list_fields(cls)}

    @classmethod
    def of_table(cls, values: dict[str, Any], reading: Reading) -> Curve:
        """The curve whose table holds these values; curves within it are read in the same way."""
        return cls(**{key: _from_plain(value) for key, value in values.items()})


def climb(worth: Callable[[Array], Any], most: int, slope: float, hint: float | None = None) -> int:
    """The number of steps, of up to `most`, whose worth exceeds `slope` for each by most; of equals
    the fewest. A hint says where to look first.

    Worths are compared over wider and wider distances, not only a step with the next: where steps
    are worth less than the last digit of the whole, it still comes as near as the digits allow.
    """
    low, high = 0, most
    steps = _spread(most) if hint is None else _surround(hint, most)
    while True:
        at = int(np.argmax(worth(steps) - slope * steps))
        if high - low < LOOKS:
            return int(steps[at])
        # a concave worth is greatest between the neighbours of the best
        low, high = int(steps[max(at - 1, 0)]), int(steps[min(at + 1, len(steps) - 1)])
        steps = low + _spread(high - low)


def _spread(most: int) -> Array:
    """Whole numbers from 0 to `most`, all of them if they are few."""
    return np.arange(most + 1.0) if most < LOOKS else np.floor(np.linspace(0, most, LOOKS))


def _surround(hint: float, most: int) -> Array:
    """Whole numbers from 0 to `most`, close together near a hint and further apart far from it."""
    if most < LOOKS or not 0 <= hint <= most:
        return _spread(most)
    apart = 2.0 ** np.arange(math.ceil(math.log2(most)))
    near = np.floor(hint) + np.concatenate([-apart, [0.0], apart])
    return np.unique(np.concatenate([[0.0], near[(near > 0) & (near < most)], [float(most)]]))


def _list_fields(cls: type[Curve]) -> tuple[Field[Any], ...]:
    """The parameters of a class of curves."""
    return tuple(each for each in fields(cls) if each.init) if is_dataclass(cls) else ()


def _is_float(parameter: Field[Any]) -> bool:
    return parameter.type in (float, "float")  # a text where annotations are not evaluated


def _default_of(parameter: Field[Any]) -> Any:
    if parameter.default_factory is not MISSING:
        return parameter.default_factory()
    return parameter.default


def _to_plain(value: Any) -> Any:
    """A parameter as JSON holds it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return [_to_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _from_plain(value: Any) -> Any:
    """A parameter as a frozen value that can be reckoned with: files hold decimals and lists."""
    if isinstance(value, Decimal):
        return float(value)
    return tuple(map(_from_plain, value)) if isinstance(value, list) else value


class Family(Curve):
    """A curve given by a few numbers, of which the first is its size."""

    __match_args__: ClassVar[tuple[str, ...]]
    """the names of its numbers, which dataclasses write"""

    @classmethod
    def of_values(cls, *values: float) -> Family:
        """The curve whose `values()` these are."""
        return cls(*values)

    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, key) for key in self.__match_args__)

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


@dataclass(frozen=True)
class Geometric(Family):
    """The paper's gathering (Eq. 4): g(N) = I (1 - b^N) / (1 - b).

    >>> round(Geometric(1.13, 0.999)(2920), 3)
    1069.144
    """

    informativeness: float
    reduction: float

    def __post_init__(self) -> None:
        self.check(informativeness=None, reduction=(0.0, 1.0))

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

    def __post_init__(self) -> None:
        endless = self.ceiling == math.inf
        limits = {} if endless else {"ceiling": (1e-100, 1e100)}
        self.check(worth=None, have=(0.0, 1e15), exponent=(1e-6, 100.0), **limits)
        if endless:  # of any type, such as the Decimal of a file
            object.__setattr__(self, "ceiling", math.inf)

    def __mul__(self, factor: float) -> Curve:
        factor = _number("factor", factor)
        ceiling = self.ceiling if math.isinf(self.ceiling) or factor <= 0 else self.ceiling * factor
        return Power(self.worth * factor, self.have, self.exponent, ceiling)

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

    def __post_init__(self) -> None:
        self.check(worth=None, have=(0.0, 1e15))

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

    @classmethod
    def keys(cls) -> dict[str, bool]:
        return {"values": True, "counts": False}

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"curve": self.family, "values": list(self.worths)}
        if self.counts != tuple(range(len(self.counts))):
            plain["counts"] = list(self.counts)
        return plain


@dataclass(frozen=True)
class Sum(Curve):
    """Several curves added up."""

    parts: tuple[Curve, ...]

    def rise(self, count: Floats, more: Floats) -> Any:
        return sum(part.rise(count, more) for part in self.parts)

    def rounding(self, low: Floats, high: Floats) -> Any:
        return sum(part.rounding(low, high) for part in self.parts)

    @property
    def terms(self) -> tuple[Curve, ...]:
        return self.parts

    @property
    def sign(self) -> int:
        return max((part.sign for part in self.parts), default=0)

    def __mul__(self, factor: float) -> Curve:
        return Sum(tuple(multiply(part, factor) for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        return {"curve": self.family, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def of_table(cls, values: dict[str, Any], reading: Reading) -> Curve:
        given = values["parts"]
        if not isinstance(given, list) or not given:
            raise InputError([Mistake("parts", "must be a list of curves")])
        if (count := len(given)) > MOST_CURVES:
            what = f"there are {count:,}, the limit is {MOST_CURVES:,}; leave some out"
            raise InputError([Mistake("parts", what)])
        parts: list[Curve] = []
        mistakes: list[Mistake] = []
        for number, part in enumerate(given, 1):
            try:
                parts.append(reading.read(part))
            except InputError as error:
                mistakes += [mistake.under(f"part {number}") for mistake in error.mistakes]
        if mistakes:
            raise InputError(mistakes)
        return sum(parts[1:], parts[0])


@dataclass(frozen=True)
class Scaled(Curve):
    """A curve of one's own, times a number."""

    inner: Curve
    factor: float

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Curve) or isinstance(self.inner, Sum | Coupled):
            raise InputError([Mistake("inner", "must be one curve of one count")])
        factor = _number("factor", self.factor)
        if factor < 0:
            what = "a curve times a negative number is no longer concave"
            raise InputError([Mistake("factor", what)])
        object.__setattr__(self, "factor", factor)

    def rise(self, count: Floats, more: Floats) -> Any:
        return self.factor * self.inner.rise(count, more)

    def reach(self, slope: float, most: int) -> float:
        if self.factor == 0:
            return 0.0 if slope >= 0 else most
        return self.inner.reach(slope / self.factor, most)

    @property
    def knows_reach(self) -> bool:
        return self.inner.knows_reach

    def rounding(self, low: Floats, high: Floats) -> Any:
        return self.factor * self.inner.rounding(low, high)

    @property
    def sign(self) -> int:
        return self.inner.sign if self.factor else 0

    def __mul__(self, factor: float) -> Curve:
        return Scaled(self.inner, self.factor * _number("factor", factor))

    def to_dict(self) -> dict[str, Any]:
        return {"curve": self.family, "inner": self.inner.to_dict(), "factor": self.factor}

    @classmethod
    def of_table(cls, values: dict[str, Any], reading: Reading) -> Curve:
        return multiply(reading.read(values["inner"]), values["factor"])


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

    def __init__(self, curve: Curve, weights: Mapping[str, Any]):
        mistakes = []
        if strange := find_strange(curve):
            mistakes.append(Mistake("curve", strange))
        elif not isinstance(curve, Curve) or any(isinstance(term, Coupled) for term in curve.terms):
            mistakes.append(Mistake("curve", "must be a curve of one count"))
        elif not any(map(is_own, curve.terms)) and curve.sign < 0:
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
        return Coupled(multiply(self.inner, factor), self.weights)

    def to_dict(self) -> dict[str, Any]:
        weights = {name: show_exact(weight) for name, weight in self.weights.items()}
        return {"curve": self.family, "inner": self.inner.to_dict(), "weights": weights}

    @classmethod
    def of_table(cls, values: dict[str, Any], reading: Reading) -> Curve:
        # it counts labels of several tasks, so that those at hand of one of them say nothing
        inner = replace(reading, have=None).read(values["inner"])
        return Coupled(inner, values["weights"])


FAMILIES: dict[str, type[Curve]] = {
    cls.family: cls for cls in (Geometric, Power, Logarithmic, Tabulated, Scaled, Sum, Coupled)
}
"""what is built in, by its name in files"""


def _load(cls: type[Curve]) -> Callable[[], type[Curve]]:
    return lambda: cls


CURVES: Registry[type[Curve]] = Registry(
    "curves",
    "curve",
    ("family", "total", "rise", "reach", "keys", "of_table"),
    {name: _load(cls) for name, cls in FAMILIES.items()},
)
"""what files can name: a family, or the class that an installed package offers"""


def is_own(curve: Curve) -> bool:
    """Whether all that is known of a curve is what it answers: the solver has no formulas for it,
    and nobody has proved that it is concave. A subclass of a family may answer anything as well."""
    return type(curve) is Scaled or type(curve) not in FAMILIES.values()


def multiply(curve: Curve, factor: float) -> Curve:
    """A curve times a number, whatever a class of one's own makes of `*`."""
    return Scaled(curve, factor) if is_own(curve) else curve * factor


def find_strange(curve: Any) -> str | None:
    """Why no plan can be made with a curve that is, or holds, one of a class that is not complete;
    whether its worths are right is another question."""
    if not isinstance(curve, Curve):
        return None
    if isinstance(curve, Sum):
        return next((strange for part in curve.parts if (strange := find_strange(part))), None)
    if isinstance(curve, Scaled | Coupled):
        return find_strange(curve.inner)
    return find_lacking(type(curve))


def find_lacking(cls: Any) -> str | None:
    """What a class of curves lacks, in words."""
    if not isinstance(cls, type) or not issubclass(cls, Curve):
        return f"{cut(cls)} is not a class that builds on al.Curve"
    if FAMILIES.get(cls.family) is cls:
        return None
    name = cls.__name__
    if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:
        return f"{name} is not a frozen dataclass; write @dataclass(frozen=True) above it"
    if cls.total is Curve.total and cls.rise is Curve.rise:
        return (
            f"{name} does not say what labels are worth; give it a method total(self, count) that"
            " takes a number or an array"
        )
    if not isinstance(cls.family, str) or cls.family in FAMILIES:
        return (
            f"{name} has the family {cut(repr(cls.family))}; give it a name that is no built-in"
            f" curve's ({', '.join(FAMILIES)})"
        )
    return None


@dataclass(frozen=True)
class Reading:
    """How tables of curves are read."""

    have: Any = None
    """the labels at hand of a curve that counts them and does not say how many"""
    own: Mapping[str, type[Curve]] = field(default_factory=dict)
    """classes that no package needs to offer"""

    def read(self, plain: Any) -> Curve:
        """The curve that a table holds; raises InputError with all of its mistakes."""
        if not isinstance(plain, Mapping):
            what = "a curve is a table such as { curve = 'geometric', ... }"
            raise InputError([Mistake("", what)])
        cls = self._find(plain.get("curve"))
        values = {key: value for key, value in plain.items() if key != "curve"}
        keys = cls.keys()
        if self.have is not None and "have" in keys:
            values.setdefault("have", self.have)
        hint = make_hints(keys)
        mistakes = [
            Mistake(cut(key, 60), f"unknown key; {hint(key)}") for key in values if key not in keys
        ]
        needed = [key for key, must in keys.items() if must]
        mistakes += [Mistake(key, "is missing") for key in needed if key not in values]
        if mistakes:
            raise InputError(mistakes)
        try:
            return cls.of_table(values, self)
        except (InputError, RecursionError):
            raise
        except Exception as error:
            if cls in FAMILIES.values():
                raise
            message = cut(f"{type(error).__name__}: {error}", 200)  # it is somebody else's code
            what = f"{cls.__name__} cannot be made of these values ({message})"
            raise InputError([Mistake("", what)]) from error

    def _find(self, name: Any) -> type[Curve]:
        """The class of this name."""
        if isinstance(name, str) and name in self.own:
            found = self.own[name]
        elif name in CURVES:
            found = CURVES.load(name)
        else:
            raise InputError([Mistake("curve", _explain_unknown(name))])
        if lacking := find_lacking(found):
            raise InputError([Mistake("curve", lacking)])
        if found.family != name:
            what = f"{found.__name__} is offered as {name!r}, but its family is {found.family!r}"
            raise InputError([Mistake("curve", f"{what}; give it one name")])
        return found


def _explain_unknown(name: Any) -> str:
    what = "is missing" if name is None else f"unknown curve {short(name)}"
    hint = suggest(short(name or ""), CURVES)
    if name is None or hint.startswith("did you mean"):
        return f"{what}; {hint}"
    return f"{what}; {hint}; one that a package offers must be installed first"


def curve_from_dict(plain: Any, have: Any = None, own: Iterable[type[Curve]] = ()) -> Curve:
    """The curve that `to_dict` wrote, or that a file holds: of a family, of a class that an
    installed package offers, or of one of the classes in `own`.

    >>> curve_from_dict({"curve": "geometric", "informativeness": 1.13, "reduction": 0.999})
    Geometric(informativeness=1.13, reduction=0.999)
    """
    return Reading(have, {cls.family: cls for cls in own}).read(plain)


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
