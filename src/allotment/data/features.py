"""Feature columns as one array of numbers, or as images; an embedding makes numbers of images, too.

The same file gives the same arrays on every machine: sums are exact, hashes are blake2, orders are
sorted.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import Column, check_commas, finite_numbers
from allotment.data.dates import DATE_FORMS, circle, find_phase, list_varying, read_moments
from allotment.data.embedded import embed_column
from allotment.data.embedding import Embedding, SeenPictures
from allotment.data.pictures import PICTURE_SUFFIXES, load_images, read_picture
from allotment.data.roles import Roles
from allotment.data.sums import add_exactly
from allotment.data.table_file import TableFile
from allotment.errors import InputError, Mistake
from allotment.mistakes import MOST_LISTED, Collected

CATEGORIES = 50
"""of a column that get a feature each; rarer ones share one"""
BUCKETS = 256
"""features of a text column"""

Features = NDArray[np.float32]
Told = TypeVar("Told")


@dataclass(frozen=True)
class FeatureColumn:
    """What became of one feature column: its form, how many numbers it is, and in how many rows it
    is empty."""

    name: str
    form: str
    width: int
    missing: int
    constant: bool = False


@dataclass(frozen=True)
class Survey:
    """What the feature columns are, before any of them is encoded."""

    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...] = ()


class TableInputs:
    """What a learner sees of each row of a table: looked at and encoded when it is asked for, since
    most commands do without."""

    def __init__(
        self,
        source: TableFile,
        roles: Roles,
        folder: str | Path | None,
        size: int,
        standardise: bool,
        tell: Callable[[Mistake], Mistake] | None = None,
        seen: SeenPictures | None = None,
    ):
        """Without `seen`, pictures are learned from as they are, and alone."""
        self._source, self._roles, self._folder = source, roles, folder
        self._size, self._standardise, self._tell = size, standardise, tell
        self._seen = seen

    @cached_property
    def survey(self) -> Survey:
        """What each column is; raises InputError with everything that can't be learned from."""
        return self._told(self._look)

    @property
    def are_pictures(self) -> bool:
        """Whether a learner sees pictures as they are rather than numbers."""
        return self._seen is None and self.survey.columns[0].form == "image"

    def read_picture(self, row: int) -> NDArray[np.uint8] | None:
        """What people see of a row (3, height, width): the picture that its first column of images
        names; None where there is no such column, or the file can't be read."""
        if self._source.images is not None:
            return np.asarray(self._source.images[row])
        column = self._picture_column
        return None if column is None else read_picture(column.texts[row], self._root)

    @cached_property
    def _picture_column(self) -> Column | None:
        roles = self._roles
        said = {name for name in roles.features if roles.forms.get(name) == "image"}
        # else a wide table would be read for pictures that it can't have: they are learned from
        # alone unless it is said how they are seen
        if not said and self._seen is None and len(roles.features) > 1:
            return None
        return next((column for column in self._read() if self._form(column) == "image"), None)

    @property
    def _root(self) -> Path | None:
        return Path(self._folder) if self._folder is not None else self._source.folder

    @cached_property
    def array(self) -> NDArray[Any]:
        """All feature columns side by side; images that are not embedded are learned from alone."""
        return self._told(self._encode)

    def list_pictures(self) -> list[str]:
        """The paths of all pictures that the table names, as it does."""
        if self._source.images is not None:
            return []
        columns = [column for column in self._read() if self._form(column) == "image"]
        return list(dict.fromkeys(text for column in columns for text in column.texts if text))

    def _told(self, make: Callable[[], Told]) -> Told:
        try:
            return make()
        except InputError as error:
            if self._tell is None:
                raise
            raise InputError(map(self._tell, error.mistakes)) from None

    @cached_property
    def _embedding(self) -> Embedding | None:
        return None if self._seen is None else self._seen.open()

    def _read(self) -> list[Column]:
        roles = self._roles
        kept = {name for name in roles.features if name in roles.as_text}
        columns = self._source.read(roles.features, kept)
        return [columns[name] for name in roles.features]

    def _form(self, column: Column) -> str:
        return self._roles.forms.get(column.name) or guess_form(column)

    def _look(self) -> Survey:
        if self._source.images is not None:
            return Survey((FeatureColumn("X", "image", 1, 0),))
        held = self._read()
        forms = {column.name: self._form(column) for column in held}
        pictures = [column for column in held if forms[column.name] == "image"]
        if pictures and self._seen is None:
            _check_alone(pictures, held)
            return Survey((FeatureColumn(pictures[0].name, "image", 1, 0),))
        wrong = Collected()
        for column in held:
            if column.name not in self._roles.forms:
                wrong.attempt(check_commas, column)
        tried = [wrong.attempt(self._survey, column, forms[column.name]) for column in held]
        wrong.raise_all()
        listed = tuple(each for each in tried if each is not None)
        notes = tuple(note for column in held if (note := _id_like(column, forms[column.name])))
        return Survey(listed, notes)

    def _survey(self, column: Column, form: str) -> FeatureColumn:
        if form == "image" and self._embedding is not None:
            return FeatureColumn(column.name, form, self._embedding.width, 0)
        return _survey(column, form, self._standardise)

    def _encode(self) -> NDArray[Any]:
        if self._source.images is not None:
            return self._source.images
        survey, held = self.survey, {column.name: column for column in self._read()}
        self._source.forget(self._roles.features)  # so that each is free once it is encoded
        root = self._root
        if self.are_pictures:
            return load_images(held[survey.columns[0].name], root, self._size)
        rows = len(next(iter(held.values())).missing)
        encoded = np.zeros((rows, sum(column.width for column in survey.columns)), np.float32)
        at = 0
        for column in survey.columns:
            if column.form == "image":
                part = self._embed(held.pop(column.name), root)
            else:
                part = _encode(held.pop(column.name), column.form, self._standardise)
            encoded[:, at : at + column.width] = part
            at += column.width
        return encoded

    def _embed(self, column: Column, root: Path | None) -> Features:
        assert self._seen is not None
        assert self._embedding is not None
        found = embed_column(column, root, self._seen.side, self._embedding, self._seen.keep)
        return standardise_each(found) if self._standardise else found


def guess_form(column: Column) -> str:
    """What a feature column holds: numeric, categorical, text or image."""
    if column.numbers is not None:
        return "numeric"
    known = len(column.texts) - column.counts.get("", 0)
    distinct = [each for each in column.counts if each]
    if known and all(each.lower().endswith(PICTURE_SUFFIXES) for each in distinct):
        return "image"
    words = sum(len(_words(each)) for each in distinct[:1000]) / max(1, len(distinct[:1000]))
    return "text" if words >= 3 and 2 * len(distinct) > known else "categorical"


def _check_alone(pictures: list[Column], held: list[Column]) -> None:
    others = [column.name for column in held if column is not pictures[0]]
    if others:
        shown = ", ".join(map(repr, others[:MOST_LISTED])) + (
            ", ..." if len(others) > MOST_LISTED else ""
        )
        what = (
            "holds images, which are learned from alone; leave the other features out (drop), or"
            f' see the images through features beside them (pictures = "features"): {shown}'
        )
        raise InputError([Mistake(f"column {pictures[0].name!r}", what)])


def _survey(column: Column, form: str, standardise: bool) -> FeatureColumn:
    """What one column becomes; raises InputError with its cells that are none of that form."""
    missing = int(column.missing.sum())
    if form == "numeric":
        missing = int(np.isnan(_check_numbers(column, standardise)).sum())
        width = 2 if missing else 1
    elif form in DATE_FORMS:
        moments = read_moments(column, form)
        since = 2 if np.isnan(moments.since).any() else 1
        width = since + 2 * len(list_varying(moments))
    elif form == "text":
        width = BUCKETS
    else:
        width = sum(map(len, _list_categories(column)))
    return FeatureColumn(column.name, form, width, missing, _is_constant(column))


def _encode(column: Column, form: str, standardise: bool) -> Features:
    if form == "numeric":
        return encode_numbers(column, standardise)
    if form in DATE_FORMS:
        return _encode_dates(column, form, standardise)
    return encode_text(column) if form == "text" else encode_categories(column)


def _encode_dates(column: Column, form: str, standardise: bool) -> Features:
    """How long ago as a number, and points on circles for the year, the week and the day."""
    moments = read_moments(column, form)
    since = Column(column.name, moments.since, lines=column.lines)
    circles = [circle(find_phase(moments, period)) for period in list_varying(moments)]
    return np.concatenate([encode_numbers(since, standardise), *circles], axis=1)


def _check_numbers(column: Column, standardise: bool) -> NDArray[np.float64]:
    """The cells as numbers that fit into a feature, or NaN."""
    values = finite_numbers(column, "feature")
    if not standardise:
        rows = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max).tolist()
        if rows:
            what = "is too large unless it is standardised"
            raise InputError(column.mistakes(rows, lambda row: f"{values[row]} {what}"))
    return values


def encode_numbers(column: Column, standardise: bool = True) -> Features:
    """Mean 0 and spread 1 over all rows; a missing value is the mean, and marked in a second
    feature."""
    values = _check_numbers(column, standardise)
    missing = np.isnan(values)
    known = values[~missing]
    if standardise:
        known = _standardised(known)
    filled = np.zeros((len(values), 2 if missing.any() else 1), dtype=np.float32)
    filled[~missing, 0] = known
    if missing.any():
        filled[:, 1] = missing
    return filled


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact sums, so that no machine's order of adding shows; scaled first, so that none
    overflows."""
    peak = float(np.abs(values).max()) if len(values) else 0.0
    if not peak or values.min() == values.max():
        return np.zeros_like(values)
    values = np.ldexp(values, -math.frexp(peak)[1])
    centred = values - add_exactly(values) / len(values)
    return np.asarray(centred / math.sqrt(add_exactly(centred * centred) / len(values)))


def standardise_each(values: Features) -> Features:
    """Mean 0 and spread 1 of every column of numbers."""
    found = np.empty_like(values)
    for place in range(values.shape[1]):
        found[:, place] = _standardised(values[:, place].astype(np.float64))
    return found


def _list_categories(column: Column) -> tuple[dict[str, int], list[str]]:
    """The feature of each category, and what else has one: all the others, and nothing."""
    counts = {each: count for each, count in column.counts.items() if each}
    frequent = sorted(counts, key=lambda each: (-counts[each], each))[:CATEGORIES]
    place = {each: at for at, each in enumerate(sorted(frequent))}
    more = ["others"] if len(counts) > len(place) else []
    return place, [*more, "nothing"] if column.missing.any() else more


def encode_categories(column: Column) -> Features:
    """One feature for each of the most frequent categories, one for all others, one for none."""
    place, more = _list_categories(column)
    width = len(place) + len(more)
    others = len(place)
    encoded = np.zeros((len(column.texts), width), dtype=np.float32)
    at = [place.get(each, others) if each else width - 1 for each in column.texts]
    encoded[np.arange(len(encoded)), at] = 1
    return encoded


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def encode_text(column: Column) -> Features:
    """A hashed bag of words of length 1: each word falls into one of a few features, with a sign of
    its own."""
    encoded = np.zeros((len(column.texts), BUCKETS), dtype=np.float32)
    places: dict[str, tuple[int, int]] = {}
    for row, text in enumerate(column.texts):
        held: dict[int, float] = {}
        for word, count in Counter(_words(text)).items():
            if word not in places:
                digest = hashlib.blake2b(
                    word.encode("utf-8", "surrogatepass"), digest_size=8
                ).digest()
                places[word] = (
                    int.from_bytes(digest[:4], "little") % BUCKETS,
                    1 - 2 * (digest[4] & 1),
                )
            bucket, sign = places[word]
            # Logarithms differ between machines in their last digit.
            held[bucket] = held.get(bucket, 0.0) + sign * round(1 + math.log(count), 6)
        length = math.sqrt(math.fsum(each * each for each in held.values()))
        if length:
            encoded[row, list(held)] = [each / length for each in held.values()]
    return encoded


def _is_constant(column: Column) -> bool:
    if column.numbers is None:
        return len(column.counts) == 1
    values = column.numbers[~column.missing]
    return not len(values) or (
        len(values) == len(column.numbers) and bool(values.min() == values.max())
    )


def _id_like(column: Column, form: str) -> str:
    distinct = column.counts if form == "categorical" else {}
    if len(distinct) <= CATEGORIES or 2 * len(distinct) <= len(column.texts):
        return ""
    hint = "if it names the instances, say so (id) or leave it out (drop)"
    return (
        f"feature {column.name!r} has {len(distinct)} different values in {len(column.texts)} rows:"
        f" {hint}"
    )
