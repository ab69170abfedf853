"""What each column of a table is there for: a task, a feature, the group, the id or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allotment.data.csv_file import Layout
from allotment.data.dates import DATE_FORMS
from allotment.data.table_file import TableFile, open_table_file
from allotment.errors import InputError, make_hints, suggest
from allotment.mistakes import MOST_LISTED, Collected

TARGET_PREFIXES = ("target:", "label:")
"""names of columns that are targets without being named as such"""
TARGET_KINDS = ("classification", "multilabel", "regression")
ID = "id"
"""a column of this name, whatever its case, names the rows unless another is said to"""
NOT_A_COLUMN = "is not a column of the table"
FORMS = ("numeric", "categorical", "text", "image", *DATE_FORMS)
"""what a feature column can hold"""


@dataclass(frozen=True)
class TaskColumns:
    """A task, and the columns that its labels stand in."""

    name: str
    columns: tuple[str, ...]
    prefix: str = ""
    """of its columns, if it is a multilabel task of several"""
    kind: str | None = None
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Roles:
    """Which columns are learned from, which are to be predicted, and what else some are there
    for."""

    tasks: tuple[TaskColumns, ...]
    features: tuple[str, ...]
    group: str | None
    id: str | None
    forms: Mapping[str, str]

    @property
    def wanted(self) -> set[str]:
        named = {name for name in (self.group, self.id) if name is not None}
        return named.union(self.features, *(task.columns for task in self.tasks))

    @property
    def as_text(self) -> set[str]:
        """Columns to be kept as they are written: an id of 007 is not 7."""
        kept = {name for name in (self.group, self.id) if name is not None}
        kept |= {name for name, form in self.forms.items() if form != "numeric"}
        return kept.union(
            *(task.columns for task in self.tasks if task.classes is not None and not task.prefix)
        )


def listed(names: Sequence[str] | str) -> tuple[str, ...]:
    """The names, also if there is one only."""
    return (names,) if isinstance(names, str) else tuple(names)


def assign_roles(
    source: TableFile,
    targets: Sequence[str] | str | None,
    features: Sequence[str] | str | None,
    group: str | None,
    id: str | None,
    drop: tuple[str, ...],
    kinds: dict[str, str],
    classes: dict[str, Sequence[str]],
    told: Mapping[str, str] | None = None,
) -> Roles:
    """What each column is there for; raises InputError with everything that does not fit.

    `told` are forms of features that a campaign's settings name.
    """
    wrong = Collected()
    if targets is None:
        tasks = _default_tasks(source, drop, wrong)
    else:
        known, hint = frozenset(source.names), make_hints(source.names)
        tasks = [
            task
            for each in listed(targets)
            if (task := _named_task(source, known, each, hint, wrong))
        ]
    tasks = [_with_kind(task, kinds, classes, wrong) for task in tasks]
    given = [("target", name) for task in tasks for name in task.columns] + [
        ("drop", name) for name in drop
    ]
    given += [(role, name) for role, name in (("group", group), ("id", id)) if name is not None]
    taken = {name for _, name in given}
    if features is None:
        usual = source.names if source.features is None else source.features
        chosen = tuple(name for name in usual if name not in taken)
    else:
        chosen = listed(features)
    _check_names(source, [*given, *(("feature", name) for name in chosen)], wrong)
    forms = _check_kinds(tasks, chosen, kinds, classes, wrong)
    forms |= _check_told(source, chosen, told or {}, wrong)
    if not wrong.found and not tasks:
        wrong.add("targets", "there is none; name at least one column")
    if not wrong.found and not chosen and source.images is None:
        wrong.add("features", "no column is left to learn from")
    wrong.raise_all()
    return Roles(tuple(tasks), chosen, group, id, forms)


def _named_task(
    source: TableFile,
    known: Collection[str],
    name: str,
    hint: Callable[[str], str],
    wrong: Collected,
) -> TaskColumns | None:
    if name in known:
        return TaskColumns(name, (name,))
    if not name.endswith("*") or name == "*":
        wrong.add(f"target {name!r}", f"{NOT_A_COLUMN}; {hint(name)}")
        return None
    prefix = name[:-1]
    columns = tuple(each for each in source.names if each.startswith(prefix) and each != prefix)
    if not columns:
        wrong.add(f"target {name!r}", f"no column begins with {prefix!r}; {hint(prefix)}")
        return None
    return TaskColumns(prefix.rstrip(":_.-/ ") or prefix, columns, prefix, "multilabel")


def _default_tasks(source: TableFile, drop: tuple[str, ...], wrong: Collected) -> list[TaskColumns]:
    if source.targets is not None:
        return [TaskColumns(name, (name,)) for name in source.targets if name not in drop]
    pairs = [
        (name, prefix)
        for name in source.names
        for prefix in TARGET_PREFIXES
        if name.startswith(prefix)
    ]
    tasks = [
        TaskColumns(name.removeprefix(prefix) or name, (name,))
        for name, prefix in pairs
        if name not in drop
    ]
    if not tasks:
        shown = ", ".join(map(repr, source.names[:20])) + (
            ", ..." if len(source.names) > 20 else ""
        )
        what = (
            "none is named; name columns (--target NAME, targets=[...]) or call them"
            f" {TARGET_PREFIXES[0]}NAME. "
        )
        wrong.add("targets", f"{what}Columns: {shown}")
    return tasks


def _with_kind(
    task: TaskColumns, kinds: dict[str, str], classes: dict[str, Sequence[str]], wrong: Collected
) -> TaskColumns:
    kind = kinds.get(task.name, task.kind)
    own = tuple(map(str, classes[task.name])) if task.name in classes else None
    if kind is not None and kind not in TARGET_KINDS:
        wrong.add(
            f"kind of {task.name!r}",
            f"a target of a table can't be {kind!r}; {suggest(kind, TARGET_KINDS)}",
        )
        kind = None
    if task.prefix and (kind != "multilabel" or own is not None):
        wrong.add(
            f"target {task.prefix + '*'!r}",
            "several columns are one multilabel task, with a class for each",
        )
    if own is not None and (not own or len(set(own)) < len(own) or not all(map(str.strip, own))):
        wrong.add(f"classes of {task.name!r}", "each class needs a name of its own")
    if own is not None and kind == "regression":
        wrong.add(f"classes of {task.name!r}", "a regression has none")
    return TaskColumns(task.name, task.columns, task.prefix, kind, own)


def _check_names(source: TableFile, given: list[tuple[str, str]], wrong: Collected) -> None:
    """That every column is there, has a name and is there for one thing."""
    known, hint = set(source.names), make_hints(source.names)
    roles: dict[str, list[str]] = {}
    for role, name in given:
        roles.setdefault(name, []).append(role)
        if name not in known and role != "target":
            wrong.add(f"{role} {name!r}", f"{NOT_A_COLUMN}; {hint(name)}")
    for name, several in roles.items():
        if len(set(several)) > 1:
            wrong.add(
                f"column {name!r}",
                f"is both {' and '.join(dict.fromkeys(several))}; it can be one of them",
            )
        elif len(several) > 1 and name.strip():
            wrong.add(f"{several[0]} {name!r}", "is named twice")
    unnamed = [
        place + 1
        for place, name in enumerate(source.names)
        if not name.strip() and "feature" in roles.get(name, ())
    ]
    for place in unnamed[:MOST_LISTED]:
        remedy = (
            "give it a name, or leave it out (--drop '', drop=''): it may be the row numbers that"
            " pandas writes"
        )
        wrong.add(f"column {place}", f"has no name; {remedy}")


def _check_kinds(
    tasks: list[TaskColumns],
    chosen: tuple[str, ...],
    kinds: dict[str, str],
    classes: Iterable[str],
    wrong: Collected,
) -> dict[str, str]:
    """The forms of features that were said, after a check that all names and forms are known."""
    names = {task.name: None for task in tasks}
    hint = make_hints(names)
    for name, count in Counter(task.name for task in tasks).items():
        if count > 1 and len({task.columns for task in tasks if task.name == name}) > 1:
            wrong.add(f"task {name!r}", "two targets would have this name; rename a column")
    for role, strange in (
        ("kind", set(kinds).difference(names, chosen)),
        ("classes", set(classes).difference(names)),
    ):
        for name in sorted(strange):
            wrong.add(f"{role} of {name!r}", f"there is no such target; {hint(name)}")
    features = set(chosen)
    forms = {name: form for name, form in kinds.items() if name in features and name not in names}
    for name, form in forms.items():
        if form not in FORMS:
            wrong.add(
                f"kind of {name!r}", f"unknown form {form!r} of a feature; {suggest(form, FORMS)}"
            )
    return forms


def _check_told(
    source: TableFile, chosen: tuple[str, ...], told: Mapping[str, str], wrong: Collected
) -> dict[str, str]:
    """The forms that are said of features, after a check that there are such columns and forms."""
    features, known, hint = set(chosen), set(source.names), make_hints(source.names)
    for name, form in told.items():
        where = f"column {name!r}"
        if name not in known:
            wrong.add(where, f"{NOT_A_COLUMN}; {hint(name)}")
        elif form not in FORMS:
            wrong.add(where, f"can't be {form!r}; {suggest(form, FORMS)}")
        elif name not in features:
            wrong.add(where, f"is said to be {form}, but is not learned from; say one of the two")
    return dict(told)


def find_id(
    table: Any, taken: Collection[str | None], layout: Layout | None = None
) -> tuple[str | None, tuple[str, ...]]:
    """The column of a table that names its rows, if one is called so and can; what is to be said
    about it."""
    try:
        source = open_table_file(table, layout)
        called = [
            name for name in source.names if name.strip().casefold() == ID and name not in taken
        ]
        columns = source.read(called, called)
    except InputError:  # which is said when the data are read
        return None, ()
    notes = []
    for name in called:
        fault = _find_repeat(columns[name].texts)
        if not fault:
            return name, (
                f"column {name!r} names the rows, in orders and deliveries; it is not learned from",
            )
        choice = f"--drop {name}, if there is nothing in it to learn from"
        notes.append(
            f"column {name!r} does not name the rows, since {fault}; their numbers do. Perhaps"
            f" {choice}"
        )
    return None, tuple(notes)


def _find_repeat(ids: Sequence[str]) -> str:
    """Why these are no names; "" if they are."""
    seen: dict[str, int] = {}
    for row, text in enumerate(ids, 1):
        if not text.strip():
            return f"row {row} has none"
        if text in seen:
            return f"rows {seen[text]} and {row} are both {text[:40]!r}"
        seen[text] = row
    return ""
