"""Rows of a table that go by their numbers: a fingerprint of each is kept, so that none takes the
place of another unseen."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment import __version__
from allotment.data.columns import Column
from allotment.data.source import Rows
from allotment.errors import InputError, Mistake
from allotment.formatting import several
from allotment.job import JSON, Job
from allotment.ledger.store import Store
from allotment.settings.settings import SETTINGS_FILE, Settings
from allotment.stock.stock import Stock

KIND = "rows"
"""of the results that hold fingerprints; the last one counts"""
KIND_OF_DATA = "data"
"""of the results that hold the fingerprint of all features and labels; the last one counts"""
FINGERPRINT_BYTES = 6
"""bytes of a fingerprint"""
MOST_FINGERPRINTED = 1_900_000
"""rows whose fingerprints fit into one result; a longer table goes without"""
SHORT = 8
"""letters of a file's digest by which a user vouches for it"""

Fingerprints = NDArray[np.uint64]
"""one for each row, made of its features alone: the targets are filled in by and by"""


def check_rows(store: Store, stock: Stock) -> None:
    """Raises InputError if rows that labels were ever ordered or delivered for go by another name
    or stand elsewhere.

    That holds for cancelled orders and for tasks that were taken out, too: their labels are taken,
    if they come.
    """
    table = stock.rows
    last = None if table is None else _find_last(store)
    if table is None or last is None:
        return
    if last.id != table.id:
        if _list_names(store):
            raise InputError([_tell_renamed(stock.folder, last.id)])
    elif (
        last.columns
        and last.digest != (digest := table.open().digest())
        and table.vouched != digest[:SHORT]
    ):
        numbers = sorted({int(name) - 1 for name in _list_names(store) if name.isdecimal()})
        rows = [number for number in numbers if 0 <= number < len(last.fingerprints)]
        if rows:
            _compare(last, rows, table, _tell_way_out(stock.folder, table, digest))


def _compare(last: _Kept, rows: Sequence[int], table: Rows, way_out: str) -> None:
    """Raises InputError if the rows moved, or if too little is as it was to tell."""
    root, known = table.path, table.open().names
    if gone := [name for name in last.columns if name not in known]:
        more = f" and {several(len(gone) - 1, 'other column')}" if len(gone) > 1 else ""
        what = f"gone or renamed, and rows were told apart by what stood there. {way_out}"
        raise InputError([Mistake(f"{str(root)!r}, column {gone[0]!r}{more}", what)])
    now = _fingerprint_rows(table, last.columns)
    changed = np.array(rows)[_find_changed(last.fingerprints, now)[rows]]
    are_many = 2 * len(changed) > len(rows)
    # where a column was rewritten, a few rows look like others by accident, but most like none that
    # was there
    are_new = are_many and 2 * int(np.isin(last.fingerprints[changed], now).sum()) < len(changed)
    moved = find_moved(last.fingerprints, now, rows)
    if moved and not are_new:
        raise InputError(
            [_tell_moved(root, moved, np.flatnonzero(now == last.fingerprints[moved[0]]))]
        )
    if are_many:
        of = (
            f"{len(changed)} of the {several(len(rows), 'row')} that labels were ordered or"
            " delivered for"
        )
        raise InputError([Mistake(repr(str(root)), f"{of} have changed or are gone. {way_out}")])


def keep_rows(store: Store, settings: Settings, stock: Stock) -> None:
    """Put on record which column names the rows and, where none does, the fingerprints,
    unless they are."""
    table = stock.rows
    if table is None:
        return
    last, id_ = _find_last(store), table.id
    digest, columns = "", list[str]()
    if id_ is None and stock.data.size <= MOST_FINGERPRINTED:
        digest = table.open().digest()
        columns = _list_features([*settings.names, *stock.called.values()], table)
    if (
        last is not None
        and last.id == id_
        and (not columns or (last.digest, last.columns) == (digest, columns))
    ):
        return
    needs = {
        "file": digest,
        "columns": columns,
        "id": id_,
        "after": None if last is None else last.key,
    }
    store.put_result(Job(KIND, needs), _fold(_fingerprint_rows(table, columns)))


def find_fingerprint(store: Store, settings: Settings, stock: Stock) -> str:
    """The data's fingerprint as it was found when features were last read of the same file under
    the same settings; "" if that is not on record. Trainings never rely on it."""
    last = None if stock.rows is None else store.last_result(KIND_OF_DATA)
    if last is None or stock.rows is None:
        return ""
    _, needs, body = last
    is_same = isinstance(body, str) and needs.get("read") == _list_read(settings, stock.rows)
    return body if is_same else ""


def keep_fingerprint(store: Store, settings: Settings, stock: Stock) -> None:
    """Put the data's fingerprint on record, so that commands that train nothing need not read the
    features of a table for it."""
    if stock.rows is None or any(column.form == "image" for column in stock.data.columns):
        return  # pictures may change while the table does not
    found = stock.data.fingerprint
    if found == find_fingerprint(store, settings, stock):
        return
    last = store.last_result(KIND_OF_DATA)
    needs = {"read": _list_read(settings, stock.rows), "after": None if last is None else last[0]}
    store.put_result(Job(KIND_OF_DATA, needs), found)


def _list_read(settings: Settings, table: Rows) -> JSON:
    """All that the features and labels of a table follow from."""
    return {
        "file": table.open().digest(),
        "name": table.path.name,
        "data": {key: value for key, value in settings.data.items() if key not in ("root", "rows")},
        "tasks": list(settings.names),
        "targets": {name: dict(said) for name, said in settings.targets.items()},
        "version": __version__,
    }


@dataclass(frozen=True)
class _Kept:
    """What is on record of a table as it was."""

    key: str
    digest: str
    columns: list[str]
    """that the fingerprints are made of; none where there are none"""
    fingerprints: Fingerprints
    id: str | None
    """the column that names the rows"""


def _find_last(store: Store) -> _Kept | None:
    """None where there is none, or none that makes sense: an archive may hold anything."""
    last = store.last_result(KIND)
    if last is None:
        return None
    key, needs, body = last
    try:
        return _Kept(
            key, needs["file"], list(map(str, needs["columns"])), _unfold(body), needs.get("id")
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _list_names(store: Store) -> set[str]:
    """Of all that was ever ordered or delivered."""
    return {row["instance"] for table in ("items", "labels") for row in store.table(table)}


def find_moved(old: Fingerprints, now: Fingerprints, rows: Sequence[int]) -> list[int]:
    """Those of the rows that gave way to others; a value that was corrected in its place is no such
    thing.

    >>> find_moved(np.array([7, 8, 9]), np.array([9, 7, 8]), [1])
    [1]
    >>> find_moved(np.array([7, 8, 9]), np.array([7, 5, 9]), [1])
    []
    """
    changed = _find_changed(old, now)
    suspects = [row for row in rows if changed[row]]
    return (
        suspects
        if suspects and _are_moved(old, now)
        else [row for row in suspects if row >= len(now)]
    )


def _find_changed(old: Fingerprints, now: Fingerprints) -> NDArray[np.bool_]:
    """Of each row that was there, whether it is gone or not what it was."""
    there = min(len(old), len(now))
    changed = np.ones(len(old), dtype=bool)
    changed[:there] = old[:there] != now[:there]
    return changed


def _are_moved(old: Fingerprints, now: Fingerprints) -> bool:
    """Whether a row that has no equal stands elsewhere, or one table is the other in another order,
    perhaps with more.

    Other rows prove nothing: where many look alike, a corrected one may look like one that was
    added or taken away.
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


def _tell_moved(root: Path, moved: Sequence[int], places: NDArray[np.int64]) -> Mistake:
    """Of the first of the rows, with where it stands now."""
    gone = f"is row {places[0] + 1} now" if len(places) else "is not there any more"
    more = f", and {several(len(moved) - 1, 'other row')} likewise" if len(moved) > 1 else ""
    what = (
        f"the row of this number that a label was ordered or delivered for {gone}{more}. Labels are"
        " filed under the numbers of rows, so that they would go to other rows. Nothing is lost:"
        " put the rows back into their old order (new ones go to the end) and type it again. In a"
        " campaign to come let a column called id name the rows"
    )
    return Mistake(f"{str(root)!r}, row {moved[0] + 1}", what)


def _tell_renamed(folder: Path, id_: str | None) -> Mistake:
    before = "rows went by their numbers" if id_ is None else f"the column {id_!r} named the rows"
    remedy = (
        "take id out of"
        if id_ is None
        else f"write id = {json.dumps(id_, ensure_ascii=False)} under"
    )
    what = (
        f"has changed, but {before} when labels were ordered or delivered, and these are filed"
        " under such names, so that they would be lost or go to other rows. Nothing is lost yet:"
        f" {remedy} [data] and type it again"
    )
    return Mistake(f"{folder / SETTINGS_FILE}: data: id", what)


def _tell_way_out(folder: Path, table: Rows, digest: str) -> str:
    """What to do where nobody can tell from the table whether rows moved; only the user can."""
    again = f" (rows = {table.vouched!r} is for another state of the file)" if table.vouched else ""
    return (
        "So it can't be told whether rows stand where they stood, and labels are filed under their"
        " numbers. Nothing is "
        "lost: put the table back as it was and type it again. Only if you changed it on purpose"
        " and know that every "
        f'row stands where it stood, vouch for it as it is now: write rows = "{digest[:SHORT]}"'
        " under [data] in "
        f"{folder / SETTINGS_FILE}{again}"
    )


def _list_features(tasks: Sequence[str], table: Rows) -> list[str]:
    left_out = {*tasks, *table.left_out}
    several_columns = tuple(name[:-1] for name in tasks if name.endswith(":*"))
    names = [name for name in table.open().names if name.strip() and name not in left_out]
    return [name for name in names if not several_columns or not name.startswith(several_columns)]


def _fingerprint_rows(table: Rows, names: Sequence[str]) -> Fingerprints:
    """Of the columns of these names; none at all where there are no names."""
    if not names:
        return np.zeros(0, dtype=np.uint64)
    columns = table.open().read(names, ())
    cells = [_fingerprint_words(columns[name]) for name in names]
    fingerprints = np.zeros(len(columns[names[0]].missing), dtype=np.uint64)

    def mix_rows(rows: slice) -> None:
        part = fingerprints[rows]
        for name, words in zip(names, cells, strict=True):
            numbers = columns[name].numbers
            if words is not None:
                part ^= words[rows]
            elif numbers is not None:
                part ^= _fingerprint_numbers(numbers[rows])
            _mix(part)

    middle = len(fingerprints) // 2
    with ThreadPoolExecutor() as threads:  # numpy lets another thread go on beside it
        list(threads.map(mix_rows, (slice(None, middle), slice(middle, None))))
    return fingerprints & np.uint64(2 ** (8 * FINGERPRINT_BYTES) - 1)


def _fingerprint_words(column: Column) -> Fingerprints | None:
    """The same for numbers that are equal, however they are written and whatever else the column
    holds; None if it holds nothing but numbers."""
    if column.numbers is not None and not column.boolean:
        return None
    known = _fingerprint_texts(column.counts)
    found = map(known.__getitem__, column.texts)
    return np.fromiter(found, dtype=np.uint64, count=len(column.texts))


def _fingerprint_numbers(numbers: NDArray[np.float64]) -> Fingerprints:
    cells = numbers + 0.0  # no -0
    cells[np.isnan(cells)] = np.nan  # of which there is one kind only
    return _mix(cells.view(np.uint64))


def _fingerprint_texts(texts: Collection[str]) -> dict[str, int]:
    numbers = {text: number for text in texts if (number := _read_number(text)) is not None}
    words = [text for text in texts if text not in numbers]
    letters = (text.encode(errors="replace") for text in words)
    digests = b"".join([hashlib.blake2b(each, digest_size=8).digest() for each in letters])
    cells = _fingerprint_numbers(np.array(list(numbers.values()), dtype=np.float64))
    hashes = np.frombuffer(digests, dtype="<u8")
    found = dict(zip(numbers, cells.tolist(), strict=True))
    return found | dict(zip(words, hashes.tolist(), strict=True))


def _read_number(text: str) -> float | None:
    if ":" in text:  # a time is none, and trying takes long
        return None
    try:
        return float(text) if text else np.nan
    except ValueError:
        return None


def _mix(values: Fingerprints) -> Fingerprints:
    """Every bit of each value spread over all the others in its place, by odd factors and shifts,
    which undo nothing."""
    for factor, shift in (
        (0x9E3779B97F4A7C15, 29),
        (0xC2B2AE3D27D4EB4F, 31),
        (0x165667B19E3779F9, 32),
    ):
        values += np.uint64(1)
        values *= np.uint64(factor)
        values ^= values >> np.uint64(shift)
    return values


def _fold(fingerprints: Fingerprints) -> JSON:
    low = fingerprints.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :FINGERPRINT_BYTES]
    return base64.b64encode(low.tobytes()).decode()


def _unfold(body: Any) -> Fingerprints:
    low = np.frombuffer(base64.b64decode(body), dtype=np.uint8).reshape(-1, FINGERPRINT_BYTES)
    whole = np.zeros((len(low), 8), dtype=np.uint8)
    whole[:, :FINGERPRINT_BYTES] = low
    return whole.reshape(-1).view("<u8").astype(np.uint64)
