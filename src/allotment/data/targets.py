"""Target columns as labels: what each asks for, its classes, and where a label is missing."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import MOST_CELLS, NO_VALUE, Column, check_commas, finite_numbers, plain
from allotment.data.dataset import Target
from allotment.data.roles import TaskColumns
from allotment.errors import InputError, Mistake
from allotment.mistakes import Collected

FEW_VALUES = 20
"""whole numbers of at most so many values are classes"""
MOST_CLASSES = 10_000


@dataclass(frozen=True)
class EncodedTask:
    """The labels of one task in the form of its kind, and what was noticed about them."""

    target: Target
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    notes: tuple[str, ...] = ()


def encode_task(task: TaskColumns, columns: dict[str, Column], separator: str) -> EncodedTask:
    """The labels in a task's columns; raises InputError with every cell that is none."""
    if task.prefix:
        return _several_columns(task, [columns[name] for name in task.columns])
    column = columns[task.columns[0]]
    if task.kind is None and task.classes is None:
        check_commas(column)
    kind = task.kind or guess_kind(column, separator, task.classes)
    if kind == "regression":
        return _regression(task, column)
    if kind == "multilabel":
        return _multilabel(task, column, separator)
    return _classification(task, column)


def guess_kind(column: Column, separator: str = "|", classes: Sequence[str] | None = None) -> str:
    """What a target column asks for: text, true or false and whole numbers of few values are
    classes.

    >>> guess_kind(Column("price", numbers=np.array([0.5, 2.0])))
    'regression'
    >>> guess_kind(Column("pets", words=["cat|dog", "", "dog"]))
    'multilabel'
    """
    if classes is not None and set(column.texts) <= {"", *classes}:
        return "classification"
    if column.numbers is None and any(separator in each for each in set(column.texts)):
        return "multilabel"
    if classes is not None or column.boolean:
        return "classification"
    if column.numbers is None:
        return "classification" if any(column.texts) else "regression"
    known = column.numbers[~column.missing]
    if not len(known) or not np.isfinite(known).all() or (known != np.floor(known)).any():
        return "regression"
    distinct = len(np.unique(known))
    few = distinct <= 2 or (distinct <= FEW_VALUES and 2 * distinct <= len(known))
    return "classification" if few else "regression"


def _regression(task: TaskColumns, column: Column) -> EncodedTask:
    values = finite_numbers(column, "target")
    if large := np.flatnonzero(np.abs(values) > np.finfo(np.float32).max).tolist():
        raise InputError(
            column.mistakes(large, lambda row: f"{values[row]} is too large (the limit is 3.4e38)")
        )
    unlabelled = (
        f"task {task.name!r}: its kind can't be guessed without a label; taken for a regression"
    )
    notes = (unlabelled,) if task.kind is None and np.isnan(values).all() else ()
    return EncodedTask(
        Target(task.name, "regression"), values.astype(np.float32), np.isnan(values), notes
    )


def _classification(task: TaskColumns, column: Column) -> EncodedTask:
    classes = task.classes or _classes(column)
    _check_classes(task, classes)
    # far faster than by their texts
    if task.classes is None and column.numbers is not None and not column.boolean:
        values = np.full(len(column.numbers), -1, dtype=np.int64)
        values[~column.missing] = np.unique(column.numbers[~column.missing], return_inverse=True)[1]
        return _as_classes(task, classes, values)
    place = {each: at for at, each in enumerate(classes)} | {"": -1}
    _check_outside(
        column,
        classes,
        [row for row, each in enumerate(column.texts) if each not in place],
        column.texts,
    )
    values = np.array([place[each] for each in column.texts], dtype=np.int64)
    return _as_classes(task, classes, values)


def _as_classes(
    task: TaskColumns, classes: tuple[str, ...], values: NDArray[np.int64]
) -> EncodedTask:
    target = Target(task.name, "classification", classes)
    return EncodedTask(
        target, values, values < 0, (*_odd_classes(task, classes), *_lonely_class(task, classes))
    )


def _classes(column: Column) -> tuple[str, ...]:
    if column.boolean:
        return ("false", "true")
    if column.numbers is not None:
        return tuple(plain(each) for each in np.unique(column.numbers[~column.missing]).tolist())
    return tuple(sorted({each for each in column.texts if each}))


def _check_classes(task: TaskColumns, classes: Sequence[str]) -> None:
    if not classes:
        what = (
            f"has no label, so its classes must be given (--classes {task.name}=A|B,"
            " classes={...})"
        )
        raise InputError([Mistake(f"task {task.name!r}", what)])
    if len(classes) > MOST_CLASSES:
        what = (
            f"has {len(classes)} classes (the limit is {MOST_CLASSES}); is it a regression, or the"
            " wrong column?"
        )
        raise InputError([Mistake(f"task {task.name!r}", what)])


def _check_outside(
    column: Column, classes: Sequence[str], rows: list[int], labels: Sequence[str]
) -> None:
    if rows:
        shown = ", ".join(classes[:8]) + (", ..." if len(classes) > 8 else "")
        raise InputError(
            column.mistakes(
                rows, lambda row: f"label {labels[row][:40]!r} is none of its classes: {shown}"
            )
        )


def _odd_classes(task: TaskColumns, classes: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if empty := [each for each in classes if each.strip().lower() in NO_VALUE]:
        what = "counts as a class; leave the cell empty where there is no label"
        notes.append(f"task {task.name!r}: {empty[0]!r} {what}")
    alike = Counter(each.strip().casefold() for each in classes)
    if twins := [each for each in classes if alike[each.strip().casefold()] > 1]:
        shown = " and ".join(map(repr, twins[:2]))
        notes.append(f"task {task.name!r}: classes {shown} differ only in spaces or capitals")
    return tuple(notes)


def _lonely_class(task: TaskColumns, classes: Sequence[str]) -> tuple[str, ...]:
    """A word on a task with nothing to tell apart, so that it can't be scored."""
    if len(classes) > 1:
        return ()
    message = f"has one class so far, {classes[0][:40]!r}, so that there is nothing to tell apart"
    ways = (
        f"--classes {shlex.quote(f'{task.name}={classes[0][:40]}|OTHER')}; in campaign.toml classes"
        " = [...]"
    )
    return (f"task {task.name!r}: {message}; name all its classes ({ways})",)


def _multilabel(task: TaskColumns, column: Column, separator: str) -> EncodedTask:
    cut = [{part.strip() for part in each.split(separator)} - {""} for each in column.texts]
    classes = task.classes or tuple(sorted(set().union(*cut)))
    _check_classes(task, classes)
    if len(cut) * len(classes) > MOST_CELLS:
        raise InputError(
            [
                Mistake(
                    f"task {task.name!r}",
                    f"{len(classes)} classes are too many for {len(cut)} rows",
                )
            ]
        )
    place = {each: at for at, each in enumerate(classes)}
    strange = {
        row: min(parts - place.keys()) for row, parts in enumerate(cut) if not parts <= place.keys()
    }
    _check_outside(column, classes, list(strange), strange)  # type: ignore[arg-type]
    values = np.zeros((len(cut), len(classes)), dtype=np.float32)
    for row, parts in enumerate(cut):
        values[row, [place[each] for each in parts]] = 1
    values[column.missing] = np.nan
    target = Target(task.name, "multilabel", classes)
    return EncodedTask(target, values, column.missing, _odd_classes(task, classes))


def _several_columns(task: TaskColumns, columns: list[Column]) -> EncodedTask:
    classes = tuple(column.name.removeprefix(task.prefix) for column in columns)
    _check_classes(task, classes)
    wrong = Collected()
    held = [wrong.attempt(_zero_or_one, column) for column in columns]
    wrong.raise_all()
    values = np.stack([each for each in held if each is not None], axis=1).astype(np.float32)
    return EncodedTask(
        Target(task.name, "multilabel", classes), values, np.asarray(np.isnan(values).all(axis=1))
    )


def _zero_or_one(column: Column) -> NDArray[np.float64]:
    values = finite_numbers(column, "target")
    if bad := np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1)).tolist():
        raise InputError(
            column.mistakes(bad, lambda row: f"{column.texts[row]} is neither 0, 1 nor empty")
        )
    return values
