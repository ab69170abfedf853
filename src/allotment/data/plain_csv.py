"""Plain CSV, fast: pieces of a file without oddities, read by pyarrow if it is there.

What comes out is what the csv module and float() make of the same rows; a piece of which that is
not sure is left to these.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import NO_VALUE, read_numbers

LEAST_SIZE = 2**22
"""bytes of a file below which loading pyarrow takes longer than it saves"""
FIRST_PIECE = 2**19
"""bytes that show which columns are numbers"""
PIECE = 2**22
"""bytes that are parsed at a time"""
_COLUMN = re.compile(r"CSV column #(\d+)")
"""how pyarrow says which column holds something else than numbers"""


def _spell(word: str) -> list[str]:
    """The word with every choice of capitals."""
    choices = [sorted({letter.lower(), letter.upper()}) for letter in word]
    return ["".join(letters) for letters in itertools.product(*choices)]


EMPTY_CELLS = tuple(spelt for word in sorted(NO_VALUE) for spelt in _spell(word))
"""cells without a value among numbers, in all spellings"""


Chunks = Mapping[int, Sequence[Any]]
"""of each column, its arrays"""


@dataclass(frozen=True)
class PlainBatch:
    """Rows of a piece as Arrow has them."""

    lines: range
    columns: Chunks
    numeric: Collection[int]
    """columns that were parsed as numbers"""

    def texts(self, place: int) -> Sequence[str]:
        return [text for chunk in self.columns[place] for text in _list_texts(chunk)]

    def numbers(self, place: int) -> NDArray[np.float64] | None:
        if place not in self.numeric:
            return read_numbers(self.texts(place))
        parts = [_fill_numbers(chunk) for chunk in self.columns[place]]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class PlainReader:
    """Parses pieces of one file; columns that were numbers in one are expected to be so in the
    next, but for those that are to stay texts."""

    def __init__(self, texts: Collection[int]) -> None:
        self._texts = texts
        self._numeric: frozenset[int] | None = None

    @property
    def knows_numbers(self) -> bool:
        """Whether it has parsed a piece, so that others may be parsed side by side."""
        return self._numeric is not None

    def take(self, stream: IO[bytes], longest: int) -> bytes:
        """The next piece, which ends where a line does; nothing if that is too far away."""
        piece = stream.read(FIRST_PIECE if self._numeric is None else PIECE)
        rest = stream.readline(longest)
        return b"" if len(rest) == longest else piece + rest

    def parse(
        self, piece: bytes, delimiter: str, width: int, wanted: Collection[int]
    ) -> PlainBatch | None:
        """Its rows, counted from its first line on; None unless it is plain and not empty."""
        if not piece or delimiter not in ",;\t|" or _is_odd(piece, delimiter):
            return None
        numeric = set(self._numeric or ())
        columns = _parse(piece, delimiter, width, wanted, numeric)
        if columns is None:
            return None
        count = sum(len(chunk) for chunk in next(iter(columns.values())))
        # a blank line is no row, and a cell in quotes may go on in the next line
        if count != _count_lines(piece):
            return None
        batch = PlainBatch(range(1, 1 + count), columns, frozenset(numeric))
        if self._numeric is None:
            free = [place for place in wanted if place not in self._texts]
            self._numeric = frozenset(place for place in free if batch.numbers(place) is not None)
        else:
            self._numeric &= numeric  # if two threads do so at once, one column is tried again
        return batch


def _count_lines(piece: bytes) -> int:
    """By numpy, beside which other threads go on."""
    ends = np.count_nonzero(np.frombuffer(piece, dtype=np.uint8) == ord("\n"))
    return int(ends) + (not piece.endswith(b"\n"))


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


def _is_odd(piece: bytes, delimiter: str) -> bool:
    """Whether something is in it that parsers may take in different ways."""
    if b"\0" in piece or piece[:1] in b"\r\n":
        return True
    if b"\r" in piece and piece.count(b"\r") != piece.count(b"\r\n"):
        return True
    return b'"' in piece and _has_odd_quotes(piece, delimiter)


def _has_odd_quotes(piece: bytes, delimiter: str) -> bool:
    """Whether a quote is neither at an end of its cell nor one of two within it.

    >>> _has_odd_quotes(b'1,"a ""b"", c",""', ","), _has_odd_quotes(b'1,a "b"', ",")
    (False, True)
    """
    letters = np.frombuffer(piece, dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    if len(quotes) % 2:
        return True
    # a quote within a cell is two, of which one closes and the other one opens again
    opening, closing = quotes[::2], quotes[1::2]
    may_stand = np.zeros(256, dtype=bool)
    may_stand[list(f'{delimiter}\r\n"'.encode())] = True
    before, after = opening[opening > 0] - 1, closing[closing < len(piece) - 1] + 1
    return not (may_stand[letters[before]].all() and may_stand[letters[after]].all())


def _parse(
    piece: bytes, delimiter: str, width: int, wanted: Collection[int], numeric: set[int]
) -> Chunks | None:
    """The wanted columns, some of them as numbers; None if a row or a cell does not fit. A column
    that turns out to hold something else is taken out of the numeric ones."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    names = [str(place) for place in range(width)]
    chosen = [names[place] for place in sorted(wanted)] or names[:1]
    quote = '"' if b'"' in piece else False
    words = pa.dictionary(pa.int32(), pa.string())  # each word once, since categories repeat
    while True:
        kinds = {name: pa.float64() if int(name) in numeric else words for name in chosen}
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(piece),
                arrow_csv.ReadOptions(column_names=names, block_size=len(piece), use_threads=False),
                arrow_csv.ParseOptions(delimiter=delimiter, quote_char=quote),
                arrow_csv.ConvertOptions(
                    include_columns=chosen,
                    column_types=kinds,
                    null_values=EMPTY_CELLS,
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowException as error:
            found = _COLUMN.search(str(error))
            strange = {int(found[1])} & numeric if found else set(numeric)
        else:
            columns = {int(name): _list_chunks(table.column(name)) for name in chosen}
            if not _are_short(columns[place] for place in columns if place not in numeric):
                return None
            strange = {place for place in numeric if _has_nan(columns[place])}
            if not strange:
                return columns
        if not strange:
            return None
        numeric -= strange


def _list_chunks(column: Any) -> list[Any]:
    return [chunk for chunk in column.chunks if len(chunk)]


def _are_short(columns: Iterable[Sequence[Any]]) -> bool:
    """Whether the csv module would read their cells: it knows none without end."""
    chunks = itertools.chain.from_iterable(columns)
    lengths = (np.diff(_list_ends(chunk.dictionary)) for chunk in chunks)
    return max((int(each.max()) for each in lengths), default=0) <= csv.field_size_limit()


def _has_nan(column: Sequence[Any]) -> bool:
    """Whether it holds numbers like nan(0), which Python does not know."""
    return any(bool(np.isnan(_view_numbers(chunk)).any()) for chunk in column)


def _view_numbers(chunk: Any) -> NDArray[np.float64]:
    """The numbers as they are in memory, something else where there is none."""
    values = np.frombuffer(chunk.buffers()[1], dtype=np.float64)
    return values[chunk.offset : chunk.offset + len(chunk)]


def _fill_numbers(chunk: Any) -> NDArray[np.float64]:
    """The numbers, NaN where there is none. Arrow's own way there loads pandas, which takes longer
    than all the rest."""
    values, marks = _view_numbers(chunk), chunk.buffers()[0]
    if not chunk.null_count:
        return values
    bits = np.unpackbits(np.frombuffer(marks, dtype=np.uint8), bitorder="little")
    is_there = bits[chunk.offset : chunk.offset + len(chunk)].astype(bool)
    return np.where(is_there, values, np.nan)


def _list_texts(chunk: Any) -> list[str]:
    words = np.array(_cut_words(chunk.dictionary), dtype=object)
    places = np.frombuffer(chunk.indices.buffers()[1], dtype=np.int32)
    return list(words[places[chunk.offset : chunk.offset + len(chunk)]])


def _list_ends(words: Any) -> NDArray[np.int32]:
    """Where each of the words begins among all letters, and where the last one ends."""
    places = np.frombuffer(words.buffers()[1], dtype=np.int32)
    return places[words.offset : words.offset + len(words) + 1]


def _cut_words(words: Any) -> list[str]:
    ends, letters = _list_ends(words).tolist(), words.buffers()[2]
    held = b"" if letters is None else letters.slice(0, ends[-1]).to_pybytes()
    if not held.isascii():
        return [held[one:other].decode() for one, other in itertools.pairwise(ends)]
    text = held.decode("ascii")  # cutting this is faster
    return [text[one:other] for one, other in itertools.pairwise(ends)]
