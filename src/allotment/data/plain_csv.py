"""Plain CSV, fast: pieces of a file without quotes or oddities, read by pyarrow if it is there.

What comes out is what the csv module and float() make of the same rows; a piece of which that is
not sure is left to these.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import NO_VALUE, read_numbers

LEAST_SIZE = 2**22
"""bytes of a file below which loading pyarrow takes longer than it saves"""
FIRST_PIECE = 2**19
"""bytes that show which columns are numbers"""
PIECE = 2**24
"""bytes that are parsed at a time"""
_ODD = re.compile(rb'["\0]|\r(?!\n)|\n\r?\n')
"""a quote, a NUL, a bare carriage return, a blank line"""


def _spell(word: str) -> list[str]:
    """The word with every choice of capitals."""
    choices = [sorted({letter.lower(), letter.upper()}) for letter in word]
    return ["".join(letters) for letters in itertools.product(*choices)]


EMPTY_CELLS = tuple(spelt for word in sorted(NO_VALUE) for spelt in _spell(word))
"""cells without a value among numbers, in all spellings"""


@dataclass(frozen=True)
class _PlainBatch:
    """Rows of a piece as Arrow has them."""

    lines: range
    columns: dict[int, Any]

    def texts(self, place: int) -> Sequence[str]:
        coded = self.columns[place].combine_chunks().dictionary_encode()
        words = coded.dictionary.to_pylist()
        return [words[code] for code in coded.indices.to_pylist()]

    def numbers(self, place: int) -> NDArray[np.float64] | None:
        import pyarrow as pa  # type: ignore[import-untyped]

        column = self.columns[place]
        if not pa.types.is_floating(column.type):
            return read_numbers(self.texts(place))
        values: NDArray[np.float64] = column.to_numpy()
        return values


class PlainReader:
    """Parses pieces of one file; columns that were numbers in one are expected to be so in the
    next, but for those that are to stay texts."""

    def __init__(self, texts: Collection[int]) -> None:
        self._texts = texts
        self._numeric: set[int] | None = None

    def take(self, stream: IO[bytes], longest: int) -> bytes:
        """The next piece, which ends where a line does; nothing if that is too far away."""
        piece = stream.read(FIRST_PIECE if self._numeric is None else PIECE)
        rest = stream.readline(longest)
        return b"" if len(rest) == longest else piece + rest

    def parse(
        self, piece: bytes, delimiter: str, width: int, wanted: Collection[int], before: int
    ) -> _PlainBatch | None:
        """Its rows, after so many lines; None unless it is plain."""
        if delimiter not in ",;\t|" or _is_odd(piece):
            return None
        numeric = () if self._numeric is None else self._numeric
        columns = _parse(piece, delimiter, width, wanted, numeric)
        if columns is None and numeric:
            columns = _parse(piece, delimiter, width, wanted, ())
        if columns is None:
            return None
        count = len(next(iter(columns.values())))
        batch = _PlainBatch(range(before + 1, before + 1 + count), columns)
        if self._numeric is None:
            free = [place for place in wanted if place not in self._texts]
            self._numeric = {place for place in free if batch.numbers(place) is not None}
        return batch


def find_plain_reader(size: int, texts: Collection[int]) -> PlainReader | None:
    """What reads plain pieces of a file of this size, some columns as texts; None where it does not
    pay or is not installed."""
    if size < LEAST_SIZE:
        return None
    try:
        import pyarrow.csv  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        return None
    return PlainReader(texts)


def _is_odd(piece: bytes) -> bool:
    """Whether something is in it that parsers may take in different ways."""
    if any(each in piece for each in (b'"', b"\0", b"\n\n")) or piece[:1] in b"\r\n":
        return True
    return b"\r" in piece and _ODD.search(piece) is not None


def _parse(
    piece: bytes, delimiter: str, width: int, wanted: Collection[int], numeric: Collection[int]
) -> dict[int, Any] | None:
    """The wanted columns, some of them as numbers; None if a row or a cell does not fit."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    names = [str(place) for place in range(width)]
    chosen = [names[place] for place in sorted(wanted)] or names[:1]
    kinds = {name: pa.float64() if int(name) in numeric else pa.string() for name in chosen}
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(piece),
            arrow_csv.ReadOptions(column_names=names),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            arrow_csv.ConvertOptions(
                include_columns=chosen,
                column_types=kinds,
                null_values=EMPTY_CELLS,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    columns = {int(name): table.column(name) for name in chosen}
    sound = all(_is_sound(column, pa.types.is_floating(column.type)) for column in columns.values())
    return columns if sound else None


def _is_sound(column: Any, is_number: bool) -> bool:
    """Whether Python would make the same of its cells: it knows no numbers like nan(0), and its
    csv module no cell without end."""
    import pyarrow.compute as compute  # type: ignore[import-untyped]

    if is_number:
        return not compute.any(compute.is_nan(column)).as_py()
    longest = compute.max(compute.binary_length(column)).as_py()
    return longest is not None and longest <= csv.field_size_limit()
