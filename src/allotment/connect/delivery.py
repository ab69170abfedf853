"""Labels as they are delivered, whatever the connector that finds them. All that is good goes in,
and all else is listed with its place and a reason.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allotment.cells import encode_table, unprotect
from allotment.connect.connector import (
    CONNECTORS,
    Expected,
    Picture,
    Piece,
    Refusal,
    Row,
    find_reader,
)
from allotment.connect.decimals import COMMA, POINT, Decimals, WrittenNumber, look_at
from allotment.connect.guard import Refused, Written, open_plain, refuse, show_value
from allotment.connect.masks import take_mask
from allotment.connect.names import Names, compose, find_alike
from allotment.connect.rows import (
    ID_COLUMNS,
    TASK_COLUMN,
    ClassNames,
    Form,
    Forms,
    LabelValue,
    is_empty,
    make_reader,
)
from allotment.data.columns import plain
from allotment.data.dataset import PIXEL_KINDS, Size, Target
from allotment.data.pixels import shown
from allotment.errors import InputError, Mistake, suggest
from allotment.files import place_file
from allotment.machine import sync_folder
from allotment.mistakes import Collected
from allotment.orders.sheet import LABEL

INSTANCE = ID_COLUMNS[0]
SEPARATOR = "|"
"""between classes in a cell; alone it means none of them"""
MOST_LABELS = 1_000_000
MOST_CLASSES_ADVISED = 20
"""known classes in the line that is to be written into the settings"""
COMMAS_NOTE = "numbers with a decimal comma"
"""in the notes on a delivery"""
MOST_VALUES = 10
"""different ones for one label that are kept, for people to decide"""

Label = tuple[str, str, LabelValue]
"""a task, an instance and the value to keep"""
SizeOf = Callable[[str], Size | None]
"""the height and width of an instance's picture, if it has one"""


@dataclass(frozen=True)
class HeldBack:
    """A label that can be read and looks wrong all the same: where it stood, and why."""

    label: Label
    where: str
    reason: str

    @property
    def row(self) -> tuple[str, str, LabelValue, str, str]:
        """As the store keeps it."""
        return (*self.label, self.where, self.reason)


@dataclass(frozen=True)
class Parts:
    """What was in a delivery."""

    name: str
    digest: str
    """of what was read and of what came of it: the same again changes nothing"""
    accepted: tuple[Label, ...]
    """one for each item, and where a delivery contradicts itself several, in its order"""
    rejected: tuple[tuple[str, str], ...]
    """what could not be taken: where, and why"""
    notes: tuple[str, ...] = ()
    """what is worth knowing besides"""
    rows: tuple[Written | None, ...] = ()
    """of each that was rejected its task, instance and label as they were written, if they can be
    mended"""
    asked: tuple[tuple[str, str, str], ...] = ()
    """of a sheet's rows, with a label or without: what they call their order, the task and the
    instance"""
    places: tuple[str, ...] = ()
    """of each label that was accepted, where it stood"""
    held: tuple[HeldBack, ...] = ()
    """labels that are odd beside those that are known"""
    bare: tuple[tuple[str, str], ...] = ()
    """(task, instance) of rows without a label"""


def read_delivery(
    path: str | os.PathLike[str],
    tasks: Mapping[str, Target],
    known_ids: Collection[str],
    *,
    id_column: str | None = None,
    own_id: str | None = None,
    task: str | None = None,
    separator: str = SEPARATOR,
    size_of: SizeOf | None = None,
    keep: str | os.PathLike[str] | None = None,
    guessed: Collection[str] = (),
    connector: str | None = None,
    aliases: Mapping[str, str] | None = None,
    decimal: str | None = None,
) -> Parts:
    """The labels in a CSV or JSONL file, in a folder or zip archive of masks called
    TASK/INSTANCE.png, or wherever the named connector finds them.

    Rows have a task, an instance and a label, or an instance and a column for each task. `task` is
    meant where none is named. The instance stands in `id_column`, or, if that is not said, in
    `own_id` (as the data call it), `instance` or `id`. `size_of` gives the size that a mask must
    have; `keep` is the folder that accepted masks are put into, and nothing is written anywhere
    else. The classes of `guessed` tasks are those of the labels at hand, so there may be more.
    `aliases` are names that tasks had before, by which they are known as well. Numbers may have
    decimal commas; `decimal` is the sign that the data have, for numbers that may mean two things.
    Raises InputError only for what can't be read as a delivery at all.
    """
    place = os.fspath(path)
    columns = id_column, own_id
    reading = _Reading(tasks, known_ids, columns, task, separator, size_of, keep, aliases)
    name = find_reader(place, connector)
    reading.guessed, reading.decimals.said = guessed, decimal
    content = _digest(place)
    reading.beside = Path(place).parent if os.path.isfile(place) else None
    with closing(_read(name, place, reading.expected)) as all_of_it:
        for found in all_of_it:
            reading.take(found)
    return reading.finish(Path(place), content)


def read_label(
    label: tuple[str, str, Any],
    tasks: Mapping[str, Target],
    known_ids: Collection[str],
    *,
    size_of: SizeOf | None = None,
    keep: str | os.PathLike[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    decimal: str | None = None,
) -> Label:
    """A label that somebody typed: its task, its instance and what it is, as in a row of a sheet. A
    mask is the name of a PNG file. Raises InputError with the reason if it can't be one."""
    reading = _Reading(tasks, known_ids, (None, None), None, SEPARATOR, size_of, keep, aliases)
    reading.beside, reading.decimals.said = Path(), decimal
    names = (TASK_COLUMN, INSTANCE, LABEL)
    reading.take(Row("", dict(zip(names, label, strict=True))))
    found = reading.finish(Path("label"), "")
    if found.accepted:
        return found.accepted[0]
    reason = found.rejected[0][1] if found.rejected else f"{show_value(label[2])} is no label"
    raise InputError([Mistake(f"{label[0]} of {label[1]}", reason)])


def find_names(
    task: str, instance: str, tasks: Mapping[str, Target], known_ids: Collection[str]
) -> tuple[str, str]:
    """A task and an instance that somebody typed, as they are called here; raises InputError if
    there are none of these names."""
    names = Names(tasks, set(known_ids), None, Refused())
    try:
        return names.find_task(task), names.find_instance(instance)
    except ValueError as error:
        raise InputError([Mistake(f"{task} of {instance}", str(error))]) from None


def _digest(place: str) -> str:
    """Of the content of a file, whatever it is called."""
    if not os.path.isfile(place):
        return "folder" if os.path.isdir(place) else "elsewhere"
    with open_plain(Path(place)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _read(name: str, place: str, expected: Expected) -> Generator[Piece, None, None]:
    """What a connector finds there; what is not of its making never fails in here."""
    connector = CONNECTORS.load(name)
    with CONNECTORS.calling(name):
        for found in connector.read(place, expected):
            if not isinstance(found, Row | Picture | Refusal):
                what = f"yields {show_value(found)}, which is no Row, Picture or Refusal"
                raise InputError([Mistake(CONNECTORS.describe(name), what)])
            yield found


def write_held(parts: Parts, path: str | os.PathLike[str], masks: str) -> Path:
    """The list of what looks odd, as CSV without formulas; it is a delivery itself, to be confirmed
    or mended. `masks` is the folder beside it in which these are kept."""
    rows: list[tuple[str, ...]] = [(TASK_COLUMN, INSTANCE, LABEL, "reason", "where")]
    for each in parts.held:
        task, instance, value = each.label
        rows.append((task, instance, write_value(value, masks), each.reason, each.where))
    return place_file(Path(path), encode_table(rows))


def write_value(value: LabelValue, masks: str = "") -> str:
    """A label as a cell from which it is read back: a name, names with `|` between, a number, or
    the file of a mask in the folder of masks."""
    if isinstance(value, dict) and isinstance(value.get("png"), str):
        return f"{masks}/{value['png']}.png"
    if isinstance(value, dict) and "points" in value:
        return json.dumps(value["points"])
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return SEPARATOR.join(value) or SEPARATOR
    return plain(value) if isinstance(value, float) else str(value)


def write_rejected(parts: Parts, path: str | os.PathLike[str]) -> Path:
    """The list of what could not be taken, as CSV without formulas; once its rows are mended it is
    a delivery."""
    names: tuple[str, ...] = ("where", "reason")
    rows: list[tuple[str, ...]] = list(parts.rejected)
    if any(parts.rows):
        names = (TASK_COLUMN, INSTANCE, LABEL, "reason", "where")
        pairs = zip(parts.rows, parts.rejected, strict=True)
        rows = [(*(row or ("", "", "")), reason, where) for row, (where, reason) in pairs]
    return place_file(Path(path), encode_table([names, *rows]))


class _Reading:
    """What is expected of a delivery, and what has been found in it so far."""

    def __init__(
        self,
        tasks: Mapping[str, Target],
        known_ids: Collection[str],
        columns: tuple[str | None, str | None],
        task: str | None,
        separator: str,
        size_of: SizeOf | None,
        keep: str | os.PathLike[str] | None,
        aliases: Mapping[str, str] | None = None,
    ):
        self.aliases = dict(aliases or {})
        """names that tasks had before"""
        task = None if task is None else self.aliases.get(task, task)
        wrong = Collected()
        if not tasks:
            wrong.add("tasks", "there is none to take labels for")
        if task is not None and task not in tasks:
            alike = find_alike(tasks).get(compose(task))
            if alike is None:
                wrong.add("task", f"there is no {task!r}; {suggest(task, tasks)}")
            task = alike
        if not separator or separator.isspace():
            wrong.add("separator", f"{separator!r} can't stand between classes")
        wrong.raise_all()
        known = known_ids if isinstance(known_ids, set | frozenset | dict) else set(known_ids)
        self.tasks, self.size_of = tasks, size_of
        self.keep = None if keep is None else Path(keep)
        self.refused = Refused()
        usual = task or (next(iter(tasks)) if len(tasks) == 1 else None)
        self.names = Names(tasks, known, usual, self.refused, self.aliases)
        listed = {
            name: each
            for name, each in tasks.items()
            if each.kind in ("classification", "multilabel")
        }
        self.classes = {name: ClassNames(target, self.refused) for name, target in listed.items()}
        self.readers = {
            name: make_reader(each, separator, self.classes.get(name))
            for name, each in tasks.items()
        }
        self.guessed: Collection[str] = ()
        """tasks of which more classes may turn up"""
        self.beside: Path | None = None
        """where a label that names a file is looked for"""
        self.decimals = Decimals()
        self.waiting: list[tuple[str, str, WrittenNumber, str]] = []
        """numbers that may mean two things, to be read once all others are"""
        self.doubtful: list[int] = []
        """places of those that were accepted all the same"""
        self.accepted: list[Label] = []
        self.places: list[str] = []
        self.bare: dict[tuple[str, str], None] = {}
        self.values: dict[tuple[str, str], list[LabelValue]] = {}
        self.notes: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.asked: dict[tuple[str, str, str], None] = {}
        self.forms = Forms(tasks, columns[0], task, self.refused, columns[1], self.aliases)

    @property
    def expected(self) -> Expected:
        return Expected(self.tasks, self._find_form)

    def _find_form(self, names: Sequence[str]) -> Form:
        """What the columns of a table are there for, with a word on those that nearly are."""
        form = self.forms.find(names)
        self.remarks += _near_misses(self.tasks, names, form)
        return form

    def take(self, found: Piece) -> None:
        """What a connector has found, if it can be used."""
        if isinstance(found, Picture):
            self._take_picture(found)
        elif isinstance(found, Refusal):
            self.refused.add(found.where, found.reason)
        else:
            try:
                form = found.form or self.forms.find(_check_cells(found.cells))
            except ValueError as error:
                self.refused.add(found.where, str(error))
            else:
                self._take_row(found.where, found.cells, form)

    def _take_row(self, where: str, row: Mapping[str, Any], form: Form) -> None:
        """The labels in one row or object."""
        for task, given in form.labels(row):
            try:
                if is_empty(given):
                    self.notes["no label yet"] += 1
                    self._ask(row, form, task)
                    continue
                name = self.names.find_task(task)
                instance = self.names.find_instance(row.get(form.id))
                self._note_order(row, form, name, instance)
                if self.tasks[name].kind == "regression":
                    self._take_number(name, instance, given, where)
                else:
                    self._take(name, instance, self._read(name, instance, given), where)
            except InputError:
                raise
            except ValueError as error:
                reason = str(error) if form.label else f"task {show_value(task)}: {error}"
                self.refused.add(where, reason, _as_written(task, row.get(form.id), given))

    def _take_number(self, task: str, instance: str, given: Any, where: str) -> None:
        """A number as it is written; one that may mean two things waits for what the others
        show."""
        written = look_at(given)
        if written is None:
            self._take(task, instance, self._read(task, instance, given), where)
            return
        self.decimals.note(task, written)
        if written.is_doubtful and written.sign == COMMA:
            if len(self.waiting) >= MOST_LABELS:
                raise ValueError(
                    f"more than {MOST_LABELS:,} labels in one delivery; give it in parts"
                )
            self.waiting.append((task, instance, written, where))
            return
        before = len(self.accepted)
        self._take(
            task, instance, self._read_number(task, instance, written.fraction, written), where
        )
        if written.is_doubtful and len(self.accepted) > before:
            self.doubtful.append(before)

    def _read_number(
        self, task: str, instance: str, text: str, written: WrittenNumber
    ) -> LabelValue:
        if written.sign == COMMA:
            self.notes[COMMAS_NOTE] += 1
        return self._read(task, instance, text)

    def _settle_numbers(self) -> None:
        """Read what waits, and look again at numbers such as 1.234, which are taken at once: almost
        always they mean what they say."""
        taken = [(at, *self._recall(at)) for at in self.doubtful]
        dropped = set()
        for at, task, instance, written, where in taken:
            try:
                if self.decimals.read(task, written) == written.fraction:
                    continue
            except ValueError:
                pass
            dropped.add(at)
            self.values[task, instance].remove(self.accepted[at][2])
            self.waiting.append((task, instance, written, where))
        if dropped:
            kept = [at for at in range(len(self.accepted)) if at not in dropped]
            self.accepted = [self.accepted[at] for at in kept]
            self.places = [self.places[at] for at in kept]
        for task, instance, written, where in self.waiting:
            try:
                text = self.decimals.read(task, written)
                value = self._read_number(task, instance, text, written)
                self._take(task, instance, value, where)
            except ValueError as error:
                self.refused.add(where, str(error), (task, instance, written.text))

    def _recall(self, at: int) -> tuple[str, str, WrittenNumber, str]:
        """What was accepted at this place, as it was written: three digits after a point."""
        task, instance, value = self.accepted[at]
        return (
            task,
            instance,
            WrittenNumber(f"{value:.3f}", POINT, is_doubtful=True),
            self.places[at],
        )

    def _ask(self, row: Mapping[str, Any], form: Form, task: Any) -> None:
        """Note what a row without a label asks for; whether it makes sense matters once it has
        one."""
        instance = row.get(form.id)
        if form.order is None and form.label is None:  # a table, most of whose cells are empty
            return
        task = self.names.usual if task is None else task
        if isinstance(task, str) and isinstance(instance, str):
            name, found = (
                self.names.alike.get(compose(unprotect(task))),
                self.names.look_up(instance),
            )
            if name is not None and found is not None:
                self._note_order(row, form, name, found)
                if form.label is not None and len(self.bare) < MOST_LABELS:
                    self.bare[name, found] = None

    def _note_order(self, row: Mapping[str, Any], form: Form, task: str, instance: str) -> None:
        order = row.get(form.order) if form.order is not None else None
        if isinstance(order, str) and len(self.asked) < MOST_LABELS:
            self.asked[unprotect(order).strip(), task, instance] = None

    def _read(self, task: str, instance: str, given: Any) -> LabelValue:
        target = self.tasks[task]
        if target.kind in PIXEL_KINDS and self.beside is not None and _is_file(given):
            return self._read_mask(task, instance, self.beside, unprotect(given).strip())
        return self.readers[task](
            given, self._size(instance) if target.kind == "keypoints" else None
        )

    def _read_mask(self, task: str, instance: str, root: Path, path: str) -> LabelValue:
        value, note = take_mask(root, path, self.tasks[task], self._size(instance), self.keep)
        if note:
            self.notes[f"masks of {show_value(task)} with {note}"] += 1
        return value

    def _size(self, instance: str) -> Size | None:
        if self.size_of is None:
            return None
        try:
            return self.size_of(instance)
        except InputError as error:
            raise ValueError(f"its picture can't be read: {error}") from None

    def _take(self, task: str, instance: str, value: LabelValue, where: str) -> None:
        if value is None:
            self.notes["no label yet"] += 1
            return
        held = self.values.setdefault((task, instance), [])
        if value in held:
            self.notes["the same label once more"] += 1
        elif len(held) >= MOST_VALUES:
            self.refused.add(
                where, f"is one more of many answers for {show_value(instance)}; decide on one"
            )
        elif len(self.accepted) >= MOST_LABELS:
            raise ValueError(f"more than {MOST_LABELS:,} labels in one delivery; give it in parts")
        else:
            held.append(value)
            self.accepted.append((task, instance, value))
            self.places.append(where)

    def _take_picture(self, picture: Picture) -> None:
        where = shown(picture.name)
        try:
            task, instance = self._of_file(picture.name)
            self._take(task, instance, self._read_mask(task, instance, *picture.fetch()), where)
        except InputError:
            raise
        except ValueError as error:
            self.refused.add(where, str(error))

    def _of_file(self, name: str) -> tuple[str, str]:
        """The task and the instance that a file is for, by its path; one folder around all is
        nothing unusual."""
        stem, dot, suffix = name.rpartition(".")
        if not dot or suffix.lower() != "png":
            raise ValueError("is not a PNG file by its name; masks are called TASK/INSTANCE.png")
        paths = [stem, stem.partition("/")[2]]
        for path in paths:
            for called in sorted(self.names.meant, key=len, reverse=True):
                for folder, inside in ((called, path), (compose(called), compose(path))):
                    if inside.startswith(f"{folder}/"):
                        name = self.names.find_instance(inside[len(folder) + 1 :])
                        return self.names.meant[called], name
        usual = self.names.usual or self._only_map()
        for path in paths if usual is not None else ():
            if path in self.names.known:
                return usual or "", path
        if usual is not None and "/" not in stem:
            return usual, self.names.find_instance(stem)
        tasks = ", ".join(map(show_value, list(self.tasks)[:10]))
        raise ValueError(
            f"is in no folder of a task; masks are called TASK/INSTANCE.png, with one of {tasks}"
        )

    def _only_map(self) -> str | None:
        maps = [name for name, target in self.tasks.items() if target.kind in PIXEL_KINDS]
        return maps[0] if len(maps) == 1 else None

    def finish(self, path: Path, content: str) -> Parts:
        """What it all comes to, once kept masks are safe."""
        self._settle_numbers()
        if self.keep is not None and self.keep.is_dir():
            try:
                sync_folder(self.keep)
            except OSError as error:
                raise refuse(
                    self.keep, f"can't be written ({error.strerror}); check the disk and its space"
                ) from None
        if self.names.strangers and not self.names.met:
            self.remarks.append(
                f"none of its instances is known here, where {self.names.describe()}"
            )
        self.remarks += [
            _name_more(task, self.classes[task])
            for task in self.guessed
            if self._lacks_classes(task)
        ]
        rejected = self.refused.all()
        outcome = hashlib.sha256(content.encode())
        first = {name: old for old, name in self.aliases.items()}
        # by their first names, so that a file is known again after a task was renamed
        accepted = ((first.get(task, task), *rest) for task, *rest in self.accepted)
        for each in (*accepted, "", *rejected):
            outcome.update(json.dumps(each, sort_keys=True).encode())
        name = shown(path.name or str(path))
        return Parts(
            name=name,
            digest=outcome.hexdigest(),
            accepted=tuple(self.accepted),
            rejected=tuple(
                (f"{name}: {where}" if where else name, reason) for where, reason in rejected
            ),
            notes=(*self.remarks, *(f"{what}: {count}" for what, count in self.notes.items())),
            rows=(*self.refused.rows, *[None] * (len(rejected) - len(self.refused.rows))),
            asked=tuple(self.asked),
            places=tuple(f"{name}: {where}" if where else name for where in self.places),
            bare=tuple(self.bare),
        )

    def _lacks_classes(self, task: str) -> bool:
        return task in self.classes and bool(self.classes[task].unknown)


def _check_cells(cells: Any) -> Mapping[str, Any]:
    if isinstance(cells, Mapping) and all(isinstance(name, str) for name in cells):
        return cells
    raise ValueError("holds no cells that go by names")


def _name_more(task: str, classes: ClassNames) -> str:
    """How to add classes that no label at hand has."""
    known = [
        *classes.names[:MOST_CLASSES_ADVISED],
        *(["..."] if len(classes.names) > MOST_CLASSES_ADVISED else []),
        *classes.unknown,
    ]
    unknown = ", ".join(map(show_value, classes.unknown))
    names = ", ".join(_quoted(each[:40]) for each in known)
    many = "are classes" if len(classes.unknown) > 1 else "is a class"
    what = (
        f"the classes of {show_value(task)} were read from the labels at hand; if {unknown}"
        f" {many}, too, name all of them"
    )
    return (
        f"{what} under the task in campaign.toml, classes = [{names}], and ingest the same file"
        " again"
    )


def _quoted(name: str) -> str:
    """A name as TOML has it, with escapes for what a terminal would obey or not show."""
    letters = json.dumps(name, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in letters)


def _as_written(task: Any, instance: Any, label: Any) -> Written | None:
    """What a row says, to be mended; None for one that names a file, which is looked for beside the
    delivery alone."""
    return None if _is_file(label) else (_cell(task), _cell(instance), _cell(label))


def _cell(given: Any) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    try:
        return json.dumps(given, ensure_ascii=False)
    except RecursionError:  # which nobody mends in a cell
        return ""


def _is_file(given: Any) -> bool:
    return isinstance(given, str) and given.strip().lower().endswith(".png")


def _near_misses(tasks: Mapping[str, Target], names: Sequence[str], form: Form) -> list[str]:
    """Tasks without a column in a wide table, where another has nearly their name."""
    if form.label is not None:
        return []
    rest = [shown(name[:40]) for name in names[:1000] if name not in form.needed]
    lacking = [
        each for each in tasks if each not in form.columns.values() and each not in form.classes
    ]
    hints = ((each, suggest(each, rest)) for each in lacking[:20])
    return [
        f"no column is called {show_value(each)}, {hint}"
        for each, hint in hints
        if hint.startswith("did you mean")
    ]
