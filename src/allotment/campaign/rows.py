"""Rows of a table that go by their numbers: a print of each is kept, so that none takes the place of another unseen."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.campaign.labels import Stock, find_root
from allotment.campaign.settings import Settings
from allotment.campaign.store import Store
from allotment.data.columns import Column
from allotment.data.sources import open_source
from allotment.errors import InputError, Mistake
from allotment.figures import several
from allotment.job import JSON, Job

KIND = "rows"
"""of the results that hold prints; the last one counts"""
WIDTH = 6
"""bytes of a print"""
MOST = 1_900_000
"""rows whose prints fit into one result; a longer table goes without"""

Prints = NDArray[np.uint64]
"""one for each row, made of its features alone: the targets are filled in by and by"""


def check_rows(store: Store, settings: Settings, folder: Path, stock: Stock, names: Iterable[str]) -> None:
    """Raises InputError if rows that labels were ordered or delivered for, by these names, stand elsewhere now."""
    last = _find_last(store) if _goes_by_number(settings, stock) else None
    numbers = sorted({int(name) - 1 for name in names if name.isdecimal()})
    if last is None or not numbers:
        return
    root = find_root(settings, folder)
    if last.digest == _digest(root):
        return
    now = _print_rows(settings, root, last.columns)
    if now is None:  # a column is gone, so that nothing can be compared
        return
    old = last.prints
    if moved := find_moved(old, now, [number for number in numbers if 0 <= number < len(old)]):
        raise InputError([_tell(root, moved, np.flatnonzero(now == old[moved[0]]))])


def keep_rows(store: Store, settings: Settings, folder: Path, stock: Stock) -> None:
    """Put the prints on record, unless they are."""
    if not _goes_by_number(settings, stock) or stock.data.size > MOST:
        return
    root, last = find_root(settings, folder), _find_last(store)
    digest, columns = _digest(root), _list_features(settings, root)
    if last is not None and (last.digest, last.columns) == (digest, columns):
        return
    prints = _print_rows(settings, root, columns)
    if prints is not None:
        needs = {"file": digest, "columns": columns, "after": None if last is None else last.key}
        store.put_result(Job(KIND, needs), _fold(prints))


@dataclass(frozen=True)
class _Kept:
    """What is on record of a table as it was."""

    key: str
    digest: str
    columns: list[str]
    prints: Prints


def _find_last(store: Store) -> _Kept | None:
    """None where there is none, or none that makes sense: an archive may hold anything."""
    last = store.last_result(KIND)
    try:
        return None if last is None else _Kept(last[0], last[1]["file"], list(last[1]["columns"]), _unfold(last[2]))
    except (KeyError, TypeError, ValueError):
        return None


def find_moved(old: Prints, now: Prints, rows: Sequence[int]) -> list[int]:
    """Those of the rows that gave way to others; a value that was corrected in its place is no such thing.

    >>> find_moved(np.array([7, 8, 9]), np.array([9, 7, 8]), [1])
    [1]
    >>> find_moved(np.array([7, 8, 9]), np.array([7, 5, 9]), [1])
    []
    """
    there = min(len(old), len(now))
    changed = np.ones(len(old), dtype=bool)
    changed[:there] = old[:there] != now[:there]
    suspects = [row for row in rows if changed[row]]
    return suspects if suspects and _are_moved(old, now) else [row for row in suspects if row >= len(now)]


def _are_moved(old: Prints, now: Prints) -> bool:
    """Whether a row that has no equal stands elsewhere, or one table is the other in another order, perhaps with more.

    Other rows prove nothing: where many look alike, a corrected one may look like one that was added or taken away.
    """
    (before, first, times), (after, second, again) = (
        np.unique(each, return_index=True, return_counts=True) for each in (old, now)
    )
    _, a, b = np.intersect1d(before, after, assume_unique=True, return_indices=True)
    alone = (times[a] == 1) & (again[b] == 1)
    if (first[a] != second[b])[alone].any():
        return True
    there, kept = min(len(old), len(now)), int(np.minimum(times[a], again[b]).sum())
    changed = int(np.sum(old[:there] != now[:there]))
    return kept == there and changed > abs(len(old) - len(now))


def _tell(root: Path, moved: Sequence[int], places: NDArray[np.int64]) -> Mistake:
    """Of the first of the rows, with where it stands now."""
    gone = f"is row {places[0] + 1} now" if len(places) else "is not there any more"
    more = f", and {several(len(moved) - 1, 'other row')} likewise" if len(moved) > 1 else ""
    what = (
        f"the row of this number that a label was ordered or delivered for {gone}{more}. Labels are filed under the "
        "numbers of rows, so that they would go to other rows. Nothing is lost: put the rows back into their old order "
        "(new ones go to the end) and type it again. In a campaign to come let a column called id name the rows"
    )
    return Mistake(f"{str(root)!r}, row {moved[0] + 1}", what)


def _goes_by_number(settings: Settings, stock: Stock) -> bool:
    return settings.data["name"] == "table" and not getattr(stock.data, "ids", ())


def _digest(path: Path) -> str:
    """Of the file: where it is the same, its rows need not be read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _list_features(settings: Settings, root: Path) -> list[str]:
    source = open_source(root, settings.data.get("delimiter"))
    left_out = {*settings.names, *settings.data.get("drop", ())}
    several_columns = tuple(name[:-1] for name in settings.names if name.endswith(":*"))
    names = [name for name in source.names if name.strip() and name not in left_out]
    return [name for name in names if not several_columns or not name.startswith(several_columns)]


def _print_rows(settings: Settings, root: Path, names: Sequence[str]) -> Prints | None:
    """None where a column is not there, or where there is none at all."""
    source = open_source(root, settings.data.get("delimiter"))
    if not names or not set(names) <= set(source.names):
        return None
    columns = source.read(names, ())
    prints = np.zeros(len(columns[names[0]].missing), dtype=np.uint64)
    for name in names:
        prints = _mix(prints ^ _print_cells(columns[name]))
    return prints & np.uint64(2 ** (8 * WIDTH) - 1)


def _print_cells(column: Column) -> Prints:
    """The same for numbers that are equal, however they are written and whatever else the column holds."""
    if column.numbers is not None and not column.boolean:
        cells = np.where(np.isnan(column.numbers), np.nan, column.numbers + 0.0)  # one kind of NaN, and no -0
        return _mix(cells.view(np.uint64))
    known = {text: _print_text(text) for text in set(column.texts)}
    return np.fromiter((known[text] for text in column.texts), dtype=np.uint64, count=len(column.texts))


def _print_text(text: str) -> int:
    try:
        number = np.array([float(text) if text else np.nan])
    except ValueError:
        return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little")
    return int(_print_cells(Column("", number))[0])


def _mix(values: Prints) -> Prints:
    """Every bit of each value spread over all the others, by odd factors and shifts, which undo nothing."""
    for factor, shift in ((0x9E3779B97F4A7C15, 29), (0xC2B2AE3D27D4EB4F, 31), (0x165667B19E3779F9, 32)):
        values = (values + np.uint64(1)) * np.uint64(factor)
        values = values ^ (values >> np.uint64(shift))
    return values


def _fold(prints: Prints) -> JSON:
    low = prints.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :WIDTH]
    return base64.b64encode(low.tobytes()).decode()


def _unfold(body: Any) -> Prints:
    low = np.frombuffer(base64.b64decode(body), dtype=np.uint8).reshape(-1, WIDTH)
    whole = np.zeros((len(low), 8), dtype=np.uint8)
    whole[:, :WIDTH] = low
    return whole.reshape(-1).view("<u8").astype(np.uint64)
