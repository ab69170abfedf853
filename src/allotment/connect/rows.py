"""Labels as they are written in rows and in JSON, and the one form in which each is kept.

| kind           | kept as                                                                     |
|----------------|-----------------------------------------------------------------------------|
| classification | the class's name                                                            |
| multilabel     | the names of the classes that are there; {name: 0 or 1} of the known ones   |
|                | where some are not                                                          |
| regression     | a number                                                                    |
| keypoints      | {"points": [[x, y], ...], "size": [height, width]}, sorted, in pixels from  |
|                | the middle of the upper left one; the size of the picture where it is known |
| maps of pixels | {"png": HASH}, see `masks`                                                  |

Names rather than numbers, so that a class that is added later moves no label.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from allotment.cells import unprotect
from allotment.connect.guard import Refused, parse_json, show_value
from allotment.connect.names import compose, find_alike
from allotment.data.columns import NO_VALUE, plain
from allotment.data.dataset import Size, Target
from allotment.data.roles import TARGET_PREFIXES
from allotment.orders.sheet import LABEL

LabelValue: TypeAlias = Any
"""a label in the form in which it is kept; None is none"""
TASK_COLUMN, ORDER_COLUMN = "task", "order"
ID_COLUMNS = ("instance", "id")
"""the first that is there, whatever its case, names the instance, unless another column is said
to"""
BETWEEN = ":_.-/ "
"""what may stand between a task and its class in the name of a column"""
MOST_FORMS = 200
"""sets of keys of objects that are remembered, and keys of one"""
MOST_POINTS = 2000
MOST_UNKNOWN, MOST_TALLIED = 3, 1000
"""texts that are none of the classes: those that are named, and those that are counted"""
SURE = 3
"""times that what looks like a misspelt class stands there until it may be another one"""
LARGEST_FLOAT32 = 3.4e38
"""learners compute in 32 bits"""


@dataclass(frozen=True)
class Form:
    """Which columns or keys of a row hold what."""

    id: str
    task: str | None = None
    label: str | None = None
    order: str | None = None
    """of a sheet: the column that says which order asked for the row"""
    columns: Mapping[str, str] = field(default_factory=dict)
    """of a wide row: the task of each column"""
    classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """of a wide row: the columns of tasks that have one for each class, and which class"""

    @cached_property
    def needed(self) -> set[str]:
        """The columns that are read."""
        spread = [given for columns in self.classes.values() for given in columns]
        whole = (self.id, self.task, self.label, self.order, *self.columns, *spread)
        return {each for each in whole if each is not None}

    def labels(self, row: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """What a row says: tasks, and what is written for each."""
        if self.label is not None:
            yield (None if self.task is None else row.get(self.task)), row.get(self.label)
            return
        for given, task in self.columns.items():
            yield task, row.get(given)
        for task, columns in self.classes.items():
            marks = {
                each: row[given] for given, each in columns.items() if not is_empty(row.get(given))
            }
            yield task, marks or None


class Forms:
    """Finds out what the columns of a delivery, or the keys of an object, are there for."""

    def __init__(
        self,
        tasks: Mapping[str, Target],
        id_column: str | None,
        task: str | None,
        refused: Refused,
        own_id: str | None = None,
        aliases: Mapping[str, str] | None = None,
    ):
        """`own_id` is what the data themselves call the column that names the instance, in a table
        that comes back; `aliases` are names that tasks had before."""
        self.tasks, self.refused = tasks, refused
        own = () if own_id is None or own_id in ID_COLUMNS else (own_id,)
        self.ids = (*own, *ID_COLUMNS) if id_column is None else (id_column,)
        self.only = task
        self.has_usual = task is not None or len(tasks) == 1
        self.found: dict[tuple[str, ...], Form] = {}
        meant = {name: name for name in tasks} | dict(aliases or {})
        self.places = meant | {
            f"{each}{called}": name for each in TARGET_PREFIXES for called, name in meant.items()
        }
        several = [
            (called, name, tasks[name].classes)
            for called, name in meant.items()
            if tasks[name].kind == "multilabel"
        ]
        self.spread = {
            f"{called}{sign}{each}": (name, each)
            for called, name, classes in several
            for sign in BETWEEN
            for each in classes
        }
        if self.has_usual:  # then a class alone says enough
            usual = task or next(iter(tasks))
            self.spread |= {
                each: (name, each)
                for _, name, classes in several
                if name == usual
                for each in classes
            }

    def find(self, names: Collection[str]) -> Form:
        """The form of rows with these columns; raises ValueError with the reason if they are not a
        delivery's."""
        key = tuple(names)
        if key not in self.found:
            meant: dict[str, str] = {}
            for name in key:
                meant.setdefault(self._call(unprotect(name).strip()), name)
            form = self._make(meant)
            if len(self.found) >= MOST_FORMS or len(key) > MOST_FORMS:
                return form
            self.found[key] = form
        return self.found[key]

    def _call(self, name: str) -> str:
        """A column as the tasks are called, however its letters are put together."""
        return name if name.isascii() else self.composed.get(compose(name), name)

    @cached_property
    def composed(self) -> dict[str, str]:
        return find_alike([*self.places, *self.spread])

    def _make(self, names: dict[str, str]) -> Form:
        alike = {
            name.casefold(): given
            for name, given in reversed(names.items())
            if name not in self.places
        }
        id = next(
            (
                names.get(each, alike.get(each))
                for each in self.ids
                if each in names or each in alike
            ),
            None,
        )
        if id is None:
            hint = self.refused.hint(self.ids[0], names)
            called = " or ".join(map(show_value, self.ids))
            raise ValueError(
                f"nothing is called {called}, to name the instance; {hint}. Another column? Give"
                " its --id"
            )
        # even if a task is called like one of its columns
        is_sheet = {TASK_COLUMN, ID_COLUMNS[0], LABEL} <= names.keys()
        has_task = is_sheet or (TASK_COLUMN in names and TASK_COLUMN not in self.tasks)
        if LABEL in names and (has_task or (self.has_usual and LABEL not in self.tasks)):
            return Form(
                id,
                names[TASK_COLUMN] if has_task else None,
                names[LABEL],
                names.get(ORDER_COLUMN) if is_sheet else None,
            )
        columns: dict[str, str] = {}
        classes: dict[str, dict[str, str]] = {}
        for name, given in names.items():
            if given != id and name in self.places and self.only in (None, self.places[name]):
                columns[given] = self.places[name]
            elif given != id and name in self.spread and self.only in (None, self.spread[name][0]):
                classes.setdefault(self.spread[name][0], {})[given] = self.spread[name][1]
        if columns or classes:
            return Form(id, columns=columns, classes=classes)
        tasks = ", ".join(map(show_value, list(self.tasks)[:10]))
        if LABEL in names and not self.has_usual:
            what = (
                f"it has a column {LABEL!r}, but none says which task the labels are for ({tasks})"
            )
            raise ValueError(f"{what}; say so with --task NAME, or add a column {TASK_COLUMN!r}")
        hint = self.refused.hint(LABEL, names)
        raise ValueError(f"nothing is called {LABEL!r}, or like a task ({tasks}); {hint}")


class ClassNames:
    """The classes of a task, found by name; a number is one only where it is a class's name."""

    def __init__(self, target: Target, refused: Refused):
        self.names = target.classes
        self.place = {name: at for at, name in enumerate(self.names)}
        self.refused = refused
        self.tally: Counter[str] = Counter()
        """texts that are no class: the more often, the less likely it is that they are misspelt"""
        self.folded: dict[str, str | None] = {}
        for name in self.names:
            key = _fold(name)
            self.folded[key] = None if key in self.folded else name

    def find(self, given: Any) -> str:
        """The class that is meant; raises ValueError with the reason if there is none."""
        text = _text(given)
        if text is None:
            raise ValueError(f"{show_value(given)} is not a class; give its name")
        for each in (unprotect(text), text, text.strip()):
            if each in self.place:
                return each
        number = _number(text)
        if number is not None and plain(number) in self.place:
            return plain(number)
        alike = self.folded.get(_fold(text))
        if alike is not None:
            return alike
        hint = self.refused.hint(text, self.names)
        self._count(text.strip(), number, hint.startswith("did you mean"))
        by_name = "" if number is None else ", which go by their names"
        raise ValueError(f"{show_value(given)} is none of the classes{by_name}; {hint}")

    def _count(self, text: str, number: float | None, is_near: bool) -> None:
        """Remember what may be a class; a number is one only among numbers, and one of these with a
        comma is not."""
        if len(self.tally) >= MOST_TALLIED:
            return
        written = _number(text.replace(",", "."))
        if number is None and (written is None or plain(written) not in self.place):
            self.tally[text] += 1 if is_near else SURE
        elif number is not None and all(_number(name) is not None for name in self.names):
            self.tally[plain(number)] += SURE

    @property
    def unknown(self) -> list[str]:
        """The first few that may be classes of which nobody has said so."""
        return [text for text, count in self.tally.items() if count >= SURE][:MOST_UNKNOWN]


def _fold(name: str) -> str:
    return compose(name.strip()).casefold()


def _text(given: Any) -> str | None:
    """A name or a number as a name; None if it is neither."""
    if isinstance(given, str):
        return given
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int):
        return str(given)
    return plain(given) if isinstance(given, float) else None


def _number(text: str) -> float | None:
    """The finite number that a text is; None if it is none."""
    if len(text) > 400 or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_empty(given: Any) -> bool:
    """Whether nothing is written in a cell."""
    return given is None or (isinstance(given, str) and not given.strip())


def is_nothing(given: Any) -> bool:
    """Whether a cell says that there is no label: empty, or one of the words for it."""
    return given is None or (isinstance(given, str) and given.strip().lower() in NO_VALUE)


ValueReader = Callable[[Any, Size | None], LabelValue]
"""from what is written, and the size of the picture where it matters, to the value to keep; None
where there is no label. Raises ValueError with the reason."""


def make_reader(target: Target, separator: str, names: ClassNames | None) -> ValueReader:
    """What reads the labels of a task that are not pictures; `names` are the classes where a label
    is one of them."""
    if target.kind == "regression":
        return lambda given, _: _read_number(given)
    if target.kind == "keypoints":
        return _read_points
    if names is None:
        return _no_picture
    if target.kind == "classification":
        return lambda given, _: _read_class(names, given)
    return lambda given, _: _read_classes(names, given, separator)


def _no_picture(given: Any, size: Size | None) -> LabelValue:
    if is_nothing(given):
        return None
    raise ValueError(
        f"{show_value(given)} is not the name of a PNG file; a label of this task is one"
    )


def _read_class(names: ClassNames, given: Any) -> LabelValue:
    if given is None:
        return None
    try:
        return names.find(given)
    except ValueError:
        if is_nothing(given):
            return None
        raise


def _read_classes(names: ClassNames, given: Any, separator: str) -> LabelValue:
    if isinstance(given, str):
        given = _cut(names, unprotect(given), separator)
    if isinstance(given, Mapping):
        return _known_classes(names, given)
    if given is None:
        return None
    found = {names.find(each) for each in (given if isinstance(given, list) else [given])}
    return sorted(found, key=names.place.__getitem__)


def _cut(names: ClassNames, text: str, separator: str) -> Any:
    """The classes in a cell: `cat|dog`, or JSON; none of them if the separator stands alone, None
    if nothing does."""
    if text.strip() in names.place:
        return [text.strip()]
    if text.strip().lower() == "none":
        raise ValueError(
            f"{show_value(text)} may mean two things; write {separator} for none of the classes,"
            " nothing if unknown"
        )
    if is_nothing(text):
        return None
    if text.lstrip().startswith(("[", "{")):
        return parse_json(text)
    return [part for part in map(str.strip, text.split(separator)) if part]


def _known_classes(names: ClassNames, given: Mapping[str, Any]) -> LabelValue:
    marks: dict[str, int] = {}
    for name, mark in given.items():
        if is_nothing(mark):
            continue
        if isinstance(mark, str):
            mark = {"true": 1.0, "false": 0.0}.get(mark.strip().lower(), _number(mark))
        found = names.find(name)
        if mark not in (0, 1):
            raise ValueError(
                f"{show_value(given[name])} for class {show_value(name)} is neither 0, 1 nor empty"
            )
        if marks.setdefault(found, int(mark)) != mark:
            raise ValueError(f"class {show_value(found)} is both there and not there")
    if len(marks) == len(names.names):
        return [name for name in names.names if marks[name]]
    return {name: marks[name] for name in names.names if name in marks} or None


def _read_number(given: Any) -> LabelValue:
    if is_nothing(given):
        return None
    if isinstance(given, str):
        text = unprotect(given).strip()
        number = _number(text)
        if number is None:
            raise ValueError(f"{show_value(given)} is not a {_what_number(text)}")
    elif isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError(f"{show_value(given)} is not a number")
    else:
        number = _float(given)
    if not abs(number) <= LARGEST_FLOAT32:
        raise ValueError(f"{show_value(given)} is too large (the limit is 3.4e38)")
    return number + 0.0  # of two zeros one


def _float(given: int | float) -> float:
    try:
        return float(given)
    except OverflowError:
        return math.inf


def _what_number(text: str) -> str:
    if text.lstrip("+-").lower() in ("inf", "infinity"):
        return "finite number; leave it empty where it is unknown"
    if "," not in text:
        return "number"
    bare = text.replace(",", "")
    if _number(bare) is not None:
        return f"number; write it without a thousands separator, as in {bare[:40]}"
    return "number; write a decimal point, as in 3.5, and nothing between thousands"


def _read_points(given: Any, size: Size | None) -> LabelValue:
    if isinstance(given, str) and not is_nothing(given):
        given = parse_json(unprotect(given))
    if is_nothing(given):
        return None
    if not isinstance(given, list):
        raise ValueError(f"{show_value(given)} is not a list of points [[x, y], ...]")
    if len(given) > MOST_POINTS:
        raise ValueError(f"{len(given)} points are more than the {MOST_POINTS} that are read")
    points = sorted([_read_point(point, size) for point in given])
    return {"points": points} if size is None else {"points": points, "size": list(size)}


def _read_point(point: Any, size: Size | None) -> list[float]:
    if not isinstance(point, list) or len(point) != 2:
        raise ValueError(f"{show_value(point)} is not a point [x, y]")
    x, y = (_read_number(each) if not isinstance(each, str) else None for each in point)
    if x is None or y is None:
        raise ValueError("a point is two numbers [x, y], and both are needed")
    if size is not None and not (-0.5 <= x <= size[1] and -0.5 <= y <= size[0]):
        raise ValueError(
            f"point [{x:g}, {y:g}] is outside its picture of {size[1]} x {size[0]} pixels"
        )
    return [x, y]
