"""Feature columns of another table, as numbers in the way that those of the first were made.

An encoder is what a column was encoded with: a mean and a spread, or a list of categories. On the
table that it was fitted to it gives what the learner trained on, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import Column, finite_numbers
from allotment.data.dates import (
    DATE_FORMS,
    PERIODS,
    Moments,
    circle,
    find_order,
    find_phase,
    list_varying,
    read_moments,
)
from allotment.data.embedded import embed_column
from allotment.data.embedding import LARGEST_EMBEDDED_SIDE, Embedding, OwnFeatures, SeenPictures
from allotment.data.features import BUCKETS, CATEGORIES, Features, encode_text
from allotment.data.sums import add_exactly
from allotment.errors import InputError, Mistake

FARTHEST = 1e6
"""spreads from the mean of what a model was trained on; an answer to more says nothing"""
LONGEST_CATEGORY = 100_000
"""letters of a category"""
MOST_PICTURE_NUMBERS = 100_000
"""numbers of one picture"""


@dataclass(frozen=True)
class NumberEncoder:
    """A number as spreads from the mean; where some were missing, a second feature marks them."""

    exponent: int
    """of two, by which numbers are made smaller first, so that no sum overflows"""
    mean: float
    spread: float
    """0 where all numbers are the same"""
    is_marked: bool
    form = "numeric"

    def __post_init__(self) -> None:
        fits = math.isfinite(self.mean) and 0 <= self.spread < math.inf
        if not fits or abs(self.exponent) > 1100:
            raise InputError([Mistake("scale", "is not a finite mean and spread")])

    @property
    def width(self) -> int:
        return 2 if self.is_marked else 1

    def encode(self, column: Column) -> Features:
        values = finite_numbers(column, "feature")
        missing = np.isnan(values)
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.ldexp(values, -self.exponent) - self.mean
            scaled = near / self.spread if self.spread else np.zeros_like(values)
        far = ~missing & ~(np.abs(scaled) <= FARTHEST)
        if rows := np.flatnonzero(far).tolist():
            what = "is over a million spreads from what the model knows; is its unit right?"
            raise InputError(column.mistakes(rows, lambda row: f"{values[row]} {what}"))
        filled = np.zeros((len(values), self.width), dtype=np.float32)
        filled[~missing, 0] = scaled[~missing]
        if self.is_marked:
            filled[:, 1] = missing
        return filled

    def count_new(self, column: Column) -> int:
        """Cells of a kind that the model was never trained on: empty ones, where none were."""
        return 0 if self.is_marked else int(np.isnan(finite_numbers(column, "feature")).sum())


@dataclass(frozen=True)
class CategoryEncoder:
    """A feature for each of some categories, one for all others and one for none, where there
    were any."""

    categories: tuple[str, ...]
    has_others: bool
    has_empty: bool
    form = "categorical"

    def __post_init__(self) -> None:
        if not self.categories and not self.has_empty:
            raise InputError([Mistake("categories", "there are none")])
        if len(set(self.categories)) < len(self.categories) or len(self.categories) > CATEGORIES:
            what = f"are more than {CATEGORIES}, or one of them is named twice"
            raise InputError([Mistake("categories", what)])

    @property
    def width(self) -> int:
        return len(self.categories) + self.has_others + self.has_empty

    def _places(self, column: Column) -> NDArray[np.int64]:
        """The feature of each cell; -1 for what has none."""
        known = {each: place for place, each in enumerate(self.categories)}
        other = len(self.categories) if self.has_others else -1
        known[""] = len(self.categories) + self.has_others if self.has_empty else -1
        return np.array([known.get(each, other) for each in column.texts], dtype=np.int64)

    def encode(self, column: Column) -> Features:
        places = self._places(column)
        encoded = np.zeros((len(places), self.width), dtype=np.float32)
        has = np.flatnonzero(places >= 0)
        encoded[has, places[has]] = 1
        return encoded

    def count_new(self, column: Column) -> int:
        """Cells of a kind that the model was never trained on."""
        return int((self._places(column) < 0).sum())


@dataclass(frozen=True)
class TextEncoder:
    """Words fall into features by their hashes, whatever the table."""

    form = "text"
    width = BUCKETS

    def encode(self, column: Column) -> Features:
        return encode_text(column)

    def count_new(self, column: Column) -> int:
        """None: any word has its place."""
        return 0


@dataclass(frozen=True)
class DateEncoder:
    """How long ago as a number, and points on circles for what varied of year, week and day."""

    order: str
    """in which year, month and day are written, where that is not clear"""
    since: NumberEncoder
    periods: tuple[str, ...]
    form = "date"

    def __post_init__(self) -> None:
        if f"date:{self.order}" not in DATE_FORMS or not set(self.periods) <= set(PERIODS):
            raise InputError([Mistake("date", f"is not in one of {', '.join(DATE_FORMS)}")])
        if len(set(self.periods)) < len(self.periods):
            raise InputError([Mistake("periods", "name one twice")])

    @property
    def width(self) -> int:
        return self.since.width + 2 * len(self.periods)

    def encode(self, column: Column) -> Features:
        moments = read_moments(column, f"date:{self.order}")
        circles = [circle(find_phase(moments, period)) for period in self.periods]
        return np.concatenate([self.since.encode(_list_since(column, moments)), *circles], axis=1)

    def count_new(self, column: Column) -> int:
        """Cells of a kind that the model was never trained on: empty ones, where none were."""
        moments = read_moments(column, f"date:{self.order}")
        return self.since.count_new(_list_since(column, moments))


@dataclass(frozen=True)
class PictureEncoder:
    """The numbers of the picture that a cell names, each as spreads from its mean."""

    side: int
    """pixels that pictures are brought to"""
    scales: tuple[tuple[int, float, float], ...] = field(repr=False)
    """of each number its exponent, mean and spread, as of a column of numbers"""
    network: str = ""
    """the trained network that sees the pictures; features of our own if there is none"""
    embedding: Embedding = field(default_factory=OwnFeatures, repr=False, compare=False)
    root: Path | None = field(default=None, repr=False, compare=False)
    """the folder that paths begin in"""
    keep: Path | None = field(default=None, repr=False, compare=False)
    """a folder that may hold the numbers already"""
    form = "image"

    def __post_init__(self) -> None:
        if not 1 <= self.side <= LARGEST_EMBEDDED_SIDE:
            raise InputError([Mistake("side", f"is not 1 to {LARGEST_EMBEDDED_SIDE} pixels")])
        if not 1 <= len(self.scales) <= MOST_PICTURE_NUMBERS:
            raise InputError([Mistake("scales", f"are not 1 to {MOST_PICTURE_NUMBERS}")])
        for scale in self.scales:
            NumberEncoder(*scale, is_marked=False)  # which says what is wrong with it

    @property
    def width(self) -> int:
        return len(self.scales)

    def encode(self, column: Column) -> Features:
        if self.embedding.width != self.width:
            what = "this version of allotment makes other numbers of pictures; train it again"
            raise InputError([Mistake(f"column {column.name!r}", what)])
        found = embed_column(column, self.root, self.side, self.embedding, self.keep)
        exponents, means, spreads = (np.array(each) for each in zip(*self.scales, strict=True))
        near = np.ldexp(found.astype(np.float64), -exponents) - means
        scaled = np.divide(near, spreads, out=np.zeros_like(near), where=spreads > 0)
        return np.asarray(np.clip(scaled, -FARTHEST, FARTHEST), dtype=np.float32)

    def count_new(self, column: Column) -> int:
        """None: every picture is new."""
        return 0


def _list_since(column: Column, moments: Moments) -> Column:
    return Column(column.name, moments.since, lines=column.lines)


Encoder: TypeAlias = NumberEncoder | CategoryEncoder | TextEncoder | DateEncoder | PictureEncoder


def fit_encoder(column: Column, form: str) -> Encoder:
    """What a column is encoded with; raises InputError for a form that only its own table has."""
    if form == "numeric":
        return _fit_numbers(column)
    if form == "categorical":
        counts = {each: count for each, count in column.counts.items() if each}
        frequent = sorted(counts, key=lambda each: (-counts[each], each))[:CATEGORIES]
        others = len(counts) > len(frequent)
        return CategoryEncoder(tuple(sorted(frequent)), others, bool(column.missing.any()))
    if form == "text":
        return TextEncoder()
    if form in DATE_FORMS:
        moments = read_moments(column, form)
        order = find_order(column, form)
        since = _fit_numbers(_list_since(column, moments))
        return DateEncoder(order, since, tuple(list_varying(moments)))
    what = (
        f"is encoded as {form}, which a model can't do for another table yet; leave it out (drop)"
    )
    raise InputError([Mistake(f"column {column.name!r}", what)])


def fit_pictures(column: Column, root: Path | None, seen: SeenPictures) -> PictureEncoder:
    """What a column of pictures is encoded with."""
    embedding = seen.open()
    found = embed_column(column, root, seen.side, embedding, seen.keep)
    numbers = [_fit_numbers(Column(column.name, part.astype(np.float64))) for part in found.T]
    scales = tuple((each.exponent, each.mean, each.spread) for each in numbers)
    network = "" if isinstance(embedding, OwnFeatures) else embedding.kind
    return PictureEncoder(seen.side, scales, network, embedding, root, seen.keep)


def _fit_numbers(column: Column) -> NumberEncoder:
    """The same sums as those by which a table is standardised."""
    values = finite_numbers(column, "feature")
    missing = np.isnan(values)
    known = values[~missing]
    peak = float(np.abs(known).max()) if len(known) else 0.0
    if not peak or known.min() == known.max():
        return NumberEncoder(0, 0.0, 0.0, bool(missing.any()))
    exponent = math.frexp(peak)[1]
    small = np.ldexp(known, -exponent)
    mean = add_exactly(small) / len(small)
    centred = small - mean
    spread = math.sqrt(add_exactly(centred * centred) / len(small))
    return NumberEncoder(exponent, mean, spread, bool(missing.any()))


def write_encoder(encoder: Encoder) -> dict[str, Any]:
    """Plain values for JSON; `read_encoder` reads them back."""
    own = {
        key: list(each) if isinstance(each, tuple) else each for key, each in vars(encoder).items()
    }
    if isinstance(encoder, DateEncoder):
        own["since"] = vars(encoder.since)
    if isinstance(encoder, PictureEncoder):
        scales = [list(scale) for scale in encoder.scales]
        own = {"side": encoder.side, "network": encoder.network, "scales": scales}
    return {"form": encoder.form} | own


def read_encoder(plain: Any) -> Encoder:
    """The encoder that `write_encoder` wrote; raises InputError for anything else."""
    if not isinstance(plain, Mapping):
        raise InputError([Mistake("encoder", "is not an object")])
    own = {key: value for key, value in plain.items() if key != "form"}
    match plain.get("form"):
        case "numeric":
            kinds: dict[str, type] = {"exponent": int, "mean": float, "spread": float}
            _expect(own, kinds | {"is_marked": bool})
            return NumberEncoder(**own)
        case "categorical":
            _expect(own, {"categories": list, "has_others": bool, "has_empty": bool})
            words = own["categories"]
            if not all(isinstance(each, str) and len(each) <= LONGEST_CATEGORY for each in words):
                raise InputError([Mistake("categories", "are not texts")])
            return CategoryEncoder(tuple(words), own["has_others"], own["has_empty"])
        case "text":
            _expect(own, {})
            return TextEncoder()
        case "date":
            _expect(own, {"order": str, "since": dict, "periods": list})
            since = read_encoder({"form": "numeric"} | own["since"])
            if not isinstance(since, NumberEncoder):
                raise InputError([Mistake("since", "is no number")])
            if not all(isinstance(each, str) for each in own["periods"]):
                raise InputError([Mistake("periods", "are not texts")])
            return DateEncoder(own["order"], since, tuple(own["periods"]))
        case "image":
            _expect(own, {"side": int, "network": str, "scales": list})
            scales = tuple(map(_read_scale, own["scales"]))
            return PictureEncoder(own["side"], scales, own["network"])
    raise InputError([Mistake("form", "is none that this version of allotment knows")])


def _read_scale(plain: Any) -> tuple[int, float, float]:
    kinds = (int, float, float)
    if not isinstance(plain, list) or len(plain) != len(kinds):
        raise InputError([Mistake("scales", "are not an exponent, a mean and a spread each")])
    fits = [type(each) is kind for each, kind in zip(plain, kinds, strict=True)]
    if not all(fits):
        raise InputError([Mistake("scales", "are not an exponent, a mean and a spread each")])
    return plain[0], plain[1], plain[2]


def _expect(given: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """That these keys are there, each of its type, and no others."""
    if given.keys() != kinds.keys():
        raise InputError([Mistake("encoder", f"has not exactly the keys {', '.join(kinds)}")])
    for key, kind in kinds.items():
        fits = type(given[key]) is kind or (kind is float and type(given[key]) is int)
        if not fits:
            raise InputError([Mistake(key, f"is not of type {kind.__name__}")])
