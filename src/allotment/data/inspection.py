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
from allotment.data.features import guess_form
from allotment.data.leaks import find_leaks
from allotment.data.roles import TARGET_PREFIXES, find_id
from allotment.data.table_file import TableFile, find_layout_of, open_table_file
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
    given = layout_of(options)
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
        return bool(np.all(column.numbers == column.numbers[0]))
    return len(set(column.texts)) == 1


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
