"""Feature columns as one array of numbers, or as images.

The same file gives the same arrays on every machine: sums are exact, hashes are blake2, orders are
sorted.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import Column, check_commas, finite_numbers
from allotment.data.pictures import PICTURE_SUFFIXES, load_images
from allotment.data.roles import Roles
from allotment.data.table_file import TableFile
from allotment.errors import InputError, Mistake
from allotment.mistakes import MOST_LISTED, Collected

CATEGORIES = 50
"""of a column that get a feature each; rarer ones share one"""
BUCKETS = 256
"""features of a text column"""

Features = NDArray[np.float32]


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
class RowInputs:
    """What a learner sees of each row, which columns it came from, and what was noticed about
    them."""

    array: NDArray[Any]
    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...] = ()


def encode_inputs(
    source: TableFile,
    roles: Roles,
    columns: dict[str, Column],
    folder: str | Path | None,
    size: int,
    standardise: bool,
) -> RowInputs:
    """All feature columns side by side; images are learned from alone."""
    if source.images is not None:
        return RowInputs(source.images, (FeatureColumn("X", "image", 1, 0),))
    held = [columns[name] for name in roles.features]
    forms = {column.name: roles.forms.get(column.name) or guess_form(column) for column in held}
    pictures = [column for column in held if forms[column.name] == "image"]
    if pictures:
        _check_alone(pictures, held)
        root = Path(folder) if folder is not None else source.folder
        array = load_images(pictures[0], root, size)
        return RowInputs(array, (FeatureColumn(pictures[0].name, "image", 1, 0),))
    wrong = Collected()
    for column in held:
        if column.name not in roles.forms:
            wrong.attempt(check_commas, column)
    tried = [wrong.attempt(_encode, column, forms[column.name], standardise) for column in held]
    wrong.raise_all()
    blocks = [each for each in tried if each is not None]
    listed = [
        FeatureColumn(
            column.name,
            forms[column.name],
            block.shape[1],
            int(column.missing.sum()),
            _is_constant(column),
        )
        for column, block in zip(held, blocks, strict=True)
    ]
    notes = [note for column in held if (note := _id_like(column, forms[column.name]))]
    return RowInputs(np.concatenate(blocks, axis=1), tuple(listed), tuple(notes))


def guess_form(column: Column) -> str:
    """What a feature column holds: numeric, categorical, text or image."""
    if column.numbers is not None:
        return "numeric"
    known = [each for each in column.texts if each]
    distinct = list(dict.fromkeys(known))
    if known and all(each.lower().endswith(PICTURE_SUFFIXES) for each in distinct):
        return "image"
    words = sum(len(_words(each)) for each in distinct[:1000]) / max(1, len(distinct[:1000]))
    return "text" if words >= 3 and 2 * len(distinct) > len(known) else "categorical"


def _check_alone(pictures: list[Column], held: list[Column]) -> None:
    others = [column.name for column in held if column is not pictures[0]]
    if others:
        shown = ", ".join(map(repr, others[:MOST_LISTED])) + (
            ", ..." if len(others) > MOST_LISTED else ""
        )
        what = (
            "holds images, which are learned from alone; leave the other features out (drop):"
            f" {shown}"
        )
        raise InputError([Mistake(f"column {pictures[0].name!r}", what)])


def _encode(column: Column, form: str, standardise: bool) -> Features:
    if form == "numeric":
        return encode_numbers(column, standardise)
    return encode_text(column) if form == "text" else encode_categories(column)


def encode_numbers(column: Column, standardise: bool = True) -> Features:
    """Mean 0 and spread 1 over all rows; a missing value is the mean, and marked in a second
    feature."""
    values = finite_numbers(column, "feature")
    missing = np.isnan(values)
    known = values[~missing]
    if standardise:
        known = _standardised(known)
    elif len(known) and np.abs(known).max() > np.finfo(np.float32).max:
        rows = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max).tolist()
        raise InputError(
            column.mistakes(
                rows, lambda row: f"{values[row]} is too large unless it is standardised"
            )
        )
    filled = np.zeros((len(values), 2 if missing.any() else 1), dtype=np.float32)
    filled[~missing, 0] = known
    if missing.any():
        filled[:, 1] = missing
    return filled


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact sums (fsum), so that no machine's order of adding shows; scaled first, so that none
    overflows."""
    peak = float(np.abs(values).max()) if len(values) else 0.0
    if not peak or values.min() == values.max():
        return np.zeros_like(values)
    values = np.ldexp(values, -math.frexp(peak)[1])
    centred = values - math.fsum(values.tolist()) / len(values)
    return np.asarray(centred / math.sqrt(math.fsum((centred * centred).tolist()) / len(values)))


def encode_categories(column: Column) -> Features:
    """One feature for each of the most frequent categories, one for all others, one for none."""
    counts = Counter(each for each in column.texts if each)
    frequent = sorted(counts, key=lambda each: (-counts[each], each))[:CATEGORIES]
    place = {each: at for at, each in enumerate(sorted(frequent))}
    width = len(place)
    if len(counts) > len(place):
        place |= dict.fromkeys(counts.keys() - place.keys(), width)
        width += 1
    if column.missing.any():
        place[""] = width
        width += 1
    encoded = np.zeros((len(column.texts), width), dtype=np.float32)
    encoded[np.arange(len(encoded)), [place[each] for each in column.texts]] = 1
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
        return len(set(column.texts)) == 1
    values = column.numbers[~column.missing]
    return not len(values) or (
        len(values) == len(column.numbers) and bool(values.min() == values.max())
    )


def _id_like(column: Column, form: str) -> str:
    distinct = set(column.texts) if form == "categorical" else set()
    if len(distinct) <= CATEGORIES or 2 * len(distinct) <= len(column.texts):
        return ""
    hint = "if it names the instances, say so (id) or leave it out (drop)"
    return (
        f"feature {column.name!r} has {len(distinct)} different values in {len(column.texts)} rows:"
        f" {hint}"
    )
