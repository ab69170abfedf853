"""What a new campaign finds in its table: how the file is written, which columns are dates, which
are not worth reading, and which give a label away."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allotment.data.columns import Column, has_commas
from allotment.data.csv_file import Layout
from allotment.data.dates import DATE, guess_order
from allotment.data.embedding import (
    BY_FEATURES,
    BY_NETWORK,
    BY_PIXELS,
    LARGEST_SEEN,
    SMALLEST_SEEN,
)
from allotment.data.features import guess_form
from allotment.data.leaks import find_leaks
from allotment.data.pictures import list_sizes
from allotment.data.roles import TARGET_PREFIXES, find_id
from allotment.data.table_file import TableFile, find_layout_of, open_source, open_table_file
from allotment.formatting import several

IGNORE = "ignore"
"""what a column is said to be that is left out"""
NEARLY_EMPTY = 100
"""a column with a value in fewer than one of so many rows is left out"""
MOST_NAMES = 8
"""columns that are named in one line"""


@dataclass(frozen=True)
class Inspection:
    """A table as it was found: the keys that say so in campaign.toml, and a word on each."""

    table: TableFile
    options: Mapping[str, Any]
    notes: tuple[str, ...]


def inspect_table(source: Any, options: Mapping[str, Any], tasks: Collection[str]) -> Inspection:
    """What there is to say of a table beyond what the options say; raises InputError if it can't be
    opened."""
    given, source = layout_of(options), open_source(source)
    layout, notes = find_layout_of(source, given)
    table = open_table_file(source, layout)
    targets = _list_targets(table, tasks)
    said = {name for name, _ in split_forms(options.get("columns", ()))}
    taken = {*targets, *options.get("drop", ()), options.get("group"), options.get("id")}
    names = [name for name in table.names if name.strip() and name not in taken]
    columns = table.read([*names, *targets], ())
    if given.decimal is None and any(has_commas(column) for column in columns.values()):
        layout = replace(layout, decimal=",")
        table = open_table_file(source, layout)
        columns = table.read([*names, *targets], ())
        notes.append("numbers have decimal commas, and points only between thousands (--decimal)")
    found = {key: value for key, value in vars(layout).items() if value is not None}
    if "id" not in options:
        id_, words = find_id(table, taken)
        notes += words
        found |= {} if id_ is None else {"id": id_}
        names = [name for name in names if name != id_]
    free = [columns[name] for name in names if name not in said]
    if table.features is None:
        idle = _find_idle(free, len(names))
        dated, open_ = _find_dates([column for column in free if column.name not in idle])
        notes += [*open_, *_tell_idle(idle)]
        if idle:
            found["drop"] = [*options.get("drop", ()), *idle]
        if dated:
            found["columns"] = [*options.get("columns", ()), *dated]
        kept = {name: columns[name] for name in names if name not in idle}
        seen, told = _find_pictures(table, [columns[name] for name in names], options)
        found |= seen
        notes += told
        notes += _tell_leaks(find_leaks(kept, {name: columns[name] for name in targets}))
    return Inspection(table, found, tuple(notes))


def layout_of(options: Mapping[str, Any]) -> Layout:
    """How the settings say that the file is written."""
    keys = ("delimiter", "encoding", "decimal", "sheet")
    return Layout(*(options.get(key) for key in keys))


def split_forms(texts: Sequence[str]) -> list[tuple[str, str]]:
    """`NAME=FORM` in parts; a name may hold an equals sign itself."""
    return [(name, form) for name, _, form in (each.rpartition("=") for each in texts)]


def _list_targets(table: TableFile, tasks: Collection[str]) -> list[str]:
    """The columns of the tasks, as far as they are there; those that are called so if none is
    named."""
    if not tasks:
        return [name for name in table.names if name.startswith(TARGET_PREFIXES)]
    known = set(table.names)
    prefixes = tuple(name[:-1] for name in tasks if name.endswith("*") and name not in known)
    own = [name for name in tasks if name in known]
    return own + [name for name in table.names if prefixes and name.startswith(prefixes)]


def _find_idle(columns: Sequence[Column], total: int) -> dict[str, str]:
    """Columns with nothing to learn from, and why; none if nothing else would be left."""
    found = {}
    for column in columns:
        known = int((~column.missing).sum())
        rows = len(column.missing)
        if not known:
            found[column.name] = "empty"
        elif rows > 1 and known <= max(1, rows // NEARLY_EMPTY):
            found[column.name] = f"empty but for {several(known, 'row')}"
        elif rows > 1 and known == rows and _is_one_value(column):
            found[column.name] = f"always {column.pick([0]).texts[0][:20]!r}"
    return {} if len(found) == total else found


def _is_one_value(column: Column) -> bool:
    if column.numbers is not None:
        first, last = column.numbers[[0, -1]]
        return first == last and bool(np.all(column.numbers == first))
    return len(column.counts) == 1


def _tell_idle(idle: Mapping[str, str]) -> list[str]:
    """Columns that are left out, those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in idle.items():
        by_reason.setdefault(why, []).append(name)
    parts = [f"{name_some(names)} ({why})" for why, names in by_reason.items()]
    if len(parts) > MOST_NAMES:
        parts = [f"{name_some(list(idle))} (empty or always the same)"]
    ways = "to learn from one all the same, say what it is: --column NAME=numeric"
    return [f"left out: {', '.join(parts)}; {ways}"] if parts else []


def _find_dates(columns: Sequence[Column]) -> tuple[list[str], list[str]]:
    """Columns of dates as the settings name them, and what is to be said of those that may be read
    in two ways."""
    found, notes = [], []
    for column in columns:
        if column.numbers is not None or guess_form(column) == "image":
            continue
        order, is_open = guess_order(column.texts)
        if order:
            found.append(f"{column.name}={DATE}:{order}")
        if is_open:
            first = next(each for each in column.texts if each)
            notes.append(
                f"dates such as {first[:20]!r} in {column.name!r} are read with the day first; if"
                f" the month is first: --column {column.name}={DATE}:mdy"
            )
    return found, notes


def _find_pictures(
    table: TableFile, columns: Sequence[Column], options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What is to be seen of pictures, if there are any, and at which size."""
    forms = dict(split_forms(options.get("columns", ())))
    named = [each for each in columns if (forms.get(each.name) or guess_form(each)) == "image"]
    if not named:
        return {}, []
    usual = BY_NETWORK if "weights" in options else BY_FEATURES
    found: dict[str, Any] = {} if "pictures" in options else {"pictures": usual}
    way = options.get("pictures", usual)
    sizes = [each for column in named for each in list_sizes(column, table.folder)]
    if "image_size" not in options and sizes and way in LARGEST_SEEN:
        own = int(np.median([max(each) for each in sizes]))
        found["image_size"] = max(SMALLEST_SEEN[way], min(own, LARGEST_SEEN[way]))
    side = options.get("image_size", found.get("image_size"))
    what = several(sum(len(each.texts) for each in named), "picture")
    size = f" of {sizes[0][0]} x {sizes[0][1]}" if len(set(sizes)) == 1 else ""
    if side is not None and set(sizes) != {(side, side)}:
        size += f", brought to {side} x {side}"
    return found, [f"{what}{size}, {_PICTURE_WORDS.get(way, 'seen in an unknown way')}"]


_PICTURE_WORDS = {
    BY_FEATURES: (
        "seen through small features of our own; with --weights FILE at init through a trained"
        " network; with --set pictures=pixels one is trained on them, which takes far longer"
    ),
    BY_NETWORK: "seen through the trained network of --weights, whose answers are computed once",
    BY_PIXELS: "on which a network is trained, which takes long; --set pictures=features does not",
}
"""what is said of each way to see pictures"""


def _tell_leaks(leaks: Mapping[str, tuple[str, str]]) -> list[str]:
    """A warning for each, those with the same reason together."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, leak in leaks.items():
        by_reason.setdefault(leak, []).append(name)
    notes = []
    for (target, why), names in by_reason.items():
        what = f"{name_some(names)} may give {target!r} away: {why}"
        remedy = f"if it is known only with the label, leave it out: --column {names[0]}={IGNORE}"
        notes.append(f"{what}; {remedy}")
    return notes


def name_some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES + 1 else ""
    return ", ".join(map(repr, names[:MOST_NAMES] if more else names)) + more
