"""Labels as they are delivered: CSV, JSONL, a folder or a zip archive of masks. All that is good
goes in, and all else is listed with its place and a reason.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from allotment.connect.guard import (
    Fetch,
    Refused,
    Row,
    decode,
    find_form,
    open_plain,
    parse_json,
    read_lines,
    read_records,
    refuse,
    told,
    walk_archive,
    walk_folder,
)
from allotment.connect.masks import take_mask
from allotment.connect.names import Names, compose, find_alike
from allotment.connect.rows import (
    ID_COLUMNS,
    TASK,
    ClassNames,
    Form,
    Forms,
    Size,
    Value,
    is_empty,
    make_reader,
)
from allotment.data.augment import MAPS
from allotment.data.dataset import Target
from allotment.data.pixels import shown
from allotment.errors import InputError, suggest
from allotment.machine import sync_folder
from allotment.mistakes import Collected
from allotment.orders.sheet import LABEL, place_file, protect, unprotect

INSTANCE = ID_COLUMNS[0]
DELIMITERS = ",;\t|"
MOST_LABELS = 1_000_000
MOST_NAMED = 20
"""classes that are told"""
MOST_VALUES = 10
"""different ones for one label that are kept, for people to decide"""

Label = tuple[str, str, Value]
"""a task, an instance and the value to keep"""
SizeOf = Callable[[str], Size | None]
"""the height and width of an instance's picture, if it has one"""


@dataclass(frozen=True)
class Parts:
    """What was in a delivery."""

    name: str
    digest: str
    """of what was read and of what came of it: the same again changes nothing"""
    accepted: tuple[Label, ...]
    """one for each label, and where a delivery contradicts itself one for each of its answers, in
    its order"""
    rejected: tuple[tuple[str, str], ...]
    """what could not be taken: where, and why"""
    notes: tuple[str, ...] = ()
    """what is worth knowing besides"""
    rows: tuple[Row | None, ...] = ()
    """of each that was rejected its task, instance and label as they were written, if they can be
    mended"""
    asked: tuple[tuple[str, str, str], ...] = ()
    """of a sheet's rows, with a label or without: what they call their order, the task and the
    instance"""


def read_delivery(
    path: str | os.PathLike[str],
    tasks: Mapping[str, Target],
    known_ids: Collection[str],
    *,
    id_column: str | None = None,
    own_id: str | None = None,
    task: str | None = None,
    separator: str = "|",
    size_of: SizeOf | None = None,
    keep: str | os.PathLike[str] | None = None,
    guessed: Collection[str] = (),
) -> Parts:
    """The labels in a CSV or JSONL file, or in a folder or zip archive of masks called
    TASK/INSTANCE.png.

    Rows have a task, an instance and a label, or an instance and a column for each task. `task` is
    meant where none is named. The instance stands in `id_column`, or, if that is not said, in
    `own_id` (as the data call it), `instance` or `id`. `size_of` gives the size that a mask must
    have; `keep` is the folder that accepted masks are put into, and nothing is written anywhere
    else. The classes of `guessed` tasks are those of the labels at hand, so there may be more.
    Raises InputError only for what can't be read as a delivery at all.
    """
    path = Path(path)
    columns = (id_column, own_id)
    reading = _Reading(
        tasks, known_ids, columns, task, separator, size_of, None if keep is None else Path(keep)
    )
    reading.guessed = guessed
    if os.path.isdir(path):  # unlike Path's own it never raises
        reading.take_files(path, walk_folder(path, reading.refused))
        return reading.finish(path, "folder")
    with open_plain(path) as file:
        suffix = find_form(path, file)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        file.seek(0)
        reading.beside = path.parent
        if suffix in (".csv", ".tsv"):
            _take_csv(path, file, reading, "\t" if suffix == ".tsv" else "")
        elif suffix == ".zip":
            with tempfile.TemporaryDirectory(prefix="allot-") as scratch:
                reading.take_files(path, walk_archive(path, Path(scratch), reading.refused))
        else:
            _take_jsonl(path, file, reading)
    return reading.finish(path, digest)


def write_rejected(parts: Parts, path: str | os.PathLike[str]) -> Path:
    """The list of what could not be taken, as CSV without formulas; once its rows are mended it is
    a delivery."""
    names: tuple[str, ...] = ("where", "reason")
    rows: list[tuple[str, ...]] = list(parts.rejected)
    if any(parts.rows):
        names = (TASK, INSTANCE, LABEL, "reason", "where")
        pairs = zip(parts.rows, parts.rejected, strict=True)
        rows = [(*(row or ("", "", "")), reason, where) for row, (where, reason) in pairs]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([[protect(cell.replace("\0", "")) for cell in row] for row in (names, *rows)])
    # as an order's sheet, for the same spreadsheets
    encoding = "utf-8" if text.getvalue().isascii() else "utf-8-sig"
    return place_file(Path(path), text.getvalue().encode(encoding, errors="replace"))


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
        keep: Path | None,
    ):
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
        self.tasks, self.keep, self.size_of = tasks, keep, size_of
        self.refused = Refused()
        usual = task or (next(iter(tasks)) if len(tasks) == 1 else None)
        self.names = Names(tasks, known, usual, self.refused)
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
        self.accepted: list[Label] = []
        self.values: dict[tuple[str, str], list[Value]] = {}
        self.notes: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.asked: dict[tuple[str, str, str], None] = {}
        self.forms = Forms(tasks, columns[0], task, self.refused, columns[1])

    def take_row(self, where: str, row: Mapping[str, Any], form: Form) -> None:
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
                self._take(name, instance, self._read(name, instance, given), where)
            except InputError:
                raise
            except ValueError as error:
                reason = str(error) if form.label else f"task {told(task)}: {error}"
                self.refused.add(where, reason, _as_written(task, row.get(form.id), given))

    def _ask(self, row: Mapping[str, Any], form: Form, task: Any) -> None:
        """Note what a row without a label asks for; whether it makes sense matters once it has
        one."""
        instance = row.get(form.id)
        if form.order is not None and isinstance(task, str) and isinstance(instance, str):
            name, found = (
                self.names.alike.get(compose(unprotect(task))),
                self.names.look_up(instance),
            )
            if name is not None and found is not None:
                self._note_order(row, form, name, found)

    def _note_order(self, row: Mapping[str, Any], form: Form, task: str, instance: str) -> None:
        order = row.get(form.order) if form.order is not None else None
        if isinstance(order, str) and len(self.asked) < MOST_LABELS:
            self.asked[unprotect(order).strip(), task, instance] = None

    def _read(self, task: str, instance: str, given: Any) -> Value:
        target = self.tasks[task]
        if target.kind in MAPS and self.beside is not None and _is_file(given):
            return self._read_mask(task, instance, self.beside, unprotect(given).strip())
        return self.readers[task](
            given, self._size(instance) if target.kind == "keypoints" else None
        )

    def _read_mask(self, task: str, instance: str, root: Path, path: str) -> Value:
        value, note = take_mask(root, path, self.tasks[task], self._size(instance), self.keep)
        if note:
            self.notes[f"masks of {told(task)} with {note}"] += 1
        return value

    def _size(self, instance: str) -> Size | None:
        if self.size_of is None:
            return None
        try:
            return self.size_of(instance)
        except InputError as error:
            raise ValueError(f"its picture can't be read: {error}") from None

    def _take(self, task: str, instance: str, value: Value, where: str) -> None:
        if value is None:
            self.notes["no label yet"] += 1
            return
        held = self.values.setdefault((task, instance), [])
        if value in held:
            self.notes["the same label once more"] += 1
        elif len(held) >= MOST_VALUES:
            self.refused.add(
                where, f"is one more of many answers for {told(instance)}; decide on one"
            )
        elif len(self.accepted) >= MOST_LABELS:
            raise ValueError(f"more than {MOST_LABELS:,} labels in one delivery; give it in parts")
        else:
            held.append(value)
            self.accepted.append((task, instance, value))

    def take_files(self, path: Path, files: Iterable[tuple[str, Fetch]]) -> None:
        """The masks among the files of a folder or archive."""
        count = 0
        for count, (name, fetch) in enumerate(files, 1):  # noqa: B007
            try:
                task, instance = self._of_file(name)
                self._take(task, instance, self._read_mask(task, instance, *fetch()), shown(name))
            except InputError:
                raise
            except ValueError as error:
                self.refused.add(shown(name), str(error))
        if not count and not self.refused.listed:
            raise refuse(
                path,
                "there is no file in it; give the folder with the masks, called TASK/INSTANCE.png",
            )

    def _of_file(self, name: str) -> tuple[str, str]:
        """The task and the instance that a file is for, by its path; one folder around all is
        nothing unusual."""
        stem, dot, suffix = name.rpartition(".")
        if not dot or suffix.lower() != "png":
            raise ValueError("is not a PNG file by its name; masks are called TASK/INSTANCE.png")
        paths = [stem, stem.partition("/")[2]]
        for path in paths:
            for task in sorted(self.tasks, key=len, reverse=True):
                for folder, inside in ((task, path), (compose(task), compose(path))):
                    if inside.startswith(f"{folder}/"):
                        return task, self.names.find_instance(inside[len(folder) + 1 :])
        usual = self.names.usual or self._only_map()
        for path in paths if usual is not None else ():
            if path in self.names.known:
                return usual or "", path
        if usual is not None and "/" not in stem:
            return usual, self.names.find_instance(stem)
        tasks = ", ".join(map(told, list(self.tasks)[:10]))
        raise ValueError(
            f"is in no folder of a task; masks are called TASK/INSTANCE.png, with one of {tasks}"
        )

    def _only_map(self) -> str | None:
        maps = [name for name, target in self.tasks.items() if target.kind in MAPS]
        return maps[0] if len(maps) == 1 else None

    def finish(self, path: Path, content: str) -> Parts:
        """What it all comes to, once kept masks are safe."""
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
        for each in (*self.accepted, "", *rejected):
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
        )

    def _lacks_classes(self, task: str) -> bool:
        return task in self.classes and bool(self.classes[task].unknown)


def _name_more(task: str, classes: ClassNames) -> str:
    """How to add classes that no label at hand has."""
    known = [
        *classes.names[:MOST_NAMED],
        *(["..."] if len(classes.names) > MOST_NAMED else []),
        *classes.unknown,
    ]
    told_ = ", ".join(map(told, classes.unknown))
    names = ", ".join(_quoted(each[:40]) for each in known)
    many = "are classes" if len(classes.unknown) > 1 else "is a class"
    what = (
        f"the classes of {told(task)} were read from the labels at hand; if {told_} {many}, too,"
        " name all of them"
    )
    return (
        f"{what} under the task in campaign.toml, classes = [{names}], and ingest the same file"
        " again"
    )


def _quoted(name: str) -> str:
    """A name as TOML has it, with escapes for what a terminal would obey or not show."""
    letters = json.dumps(name, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in letters)


def _as_written(task: Any, instance: Any, label: Any) -> Row | None:
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


def _take_csv(path: Path, file: IO[bytes], reading: _Reading, delimiter: str) -> None:
    names, rows, form = _read_names(path, file, reading, delimiter or DELIMITERS)
    wide = len(names)
    used = {at for at, name in enumerate(names) if name in form.needed}
    for line, cells in rows:
        where = f"line {line}"
        if isinstance(cells, str):
            reading.refused.add(where, cells)
        elif len(cells) > wide and any(cells[wide:]):
            what = (
                f"has {len(cells)} cells where the first line has {wide}; is a comma not in quotes?"
            )
            reading.refused.add(where, what)
        else:  # spreadsheets may leave out empty cells at the end of a row
            reading.take_row(where, {names[at]: cells[at] for at in used if at < len(cells)}, form)


def _read_names(
    path: Path, file: IO[bytes], reading: _Reading, delimiters: str
) -> tuple[list[str], Iterator[tuple[int, list[str] | str]], Form]:
    """The names of the columns, the rows below them and what the columns are for."""
    reasons = []
    start = _find_start(path, file)
    for delimiter in delimiters:
        file.seek(start)
        records = read_records(file, delimiter)
        line, names = next(records, (1, "is empty; it begins with a line that names its columns"))
        try:
            if isinstance(names, str):
                raise ValueError(names)
            form = reading.forms.find(names)
        except ValueError as error:
            reasons.append((line, str(error)))
            continue
        twice = [
            name for name, count in Counter(names).items() if count > 1 and name in form.needed
        ]
        if twice:
            raise refuse(
                path, f"column {told(twice[0])} is there more than once; rename all but one", line
            )
        reading.remarks += _near_misses(reading.tasks, names, form)
        return names, records, form
    raise refuse(path, reasons[0][1], reasons[0][0])


def _near_misses(tasks: Mapping[str, Target], names: list[str], form: Form) -> list[str]:
    """Tasks without a column in a wide table, where another has nearly their name."""
    if form.label is not None:
        return []
    rest = [shown(name[:40]) for name in names[:1000] if name not in form.needed]
    lacking = [
        each for each in tasks if each not in form.columns.values() and each not in form.classes
    ]
    hints = ((each, suggest(each, rest)) for each in lacking[:20])
    return [
        f"no column is called {told(each)}, {hint}"
        for each, hint in hints
        if hint.startswith("did you mean")
    ]


def _find_start(path: Path, file: IO[bytes]) -> int:
    """Where the text begins, after the mark that some programs put before it."""
    file.seek(0)
    head = file.read(3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise refuse(path, "is UTF-16 text; save it as UTF-8")
    return 3 if head == b"\xef\xbb\xbf" else 0


def _take_jsonl(path: Path, file: IO[bytes], reading: _Reading) -> None:
    file.seek(_find_start(path, file))
    is_blank = True
    for line, piece in read_lines(file):
        where = f"line {line}"
        if piece is not None and not piece.strip():
            continue
        is_blank = False
        try:
            row = parse_json(decode(piece))
            if not isinstance(row, dict):
                raise ValueError(
                    f"is {told(row)}; each line holds an object with an instance and a label"
                )
            form = reading.forms.find(row)
        except ValueError as error:
            reading.refused.add(where, str(error))
            continue
        reading.take_row(where, row, form)
    if is_blank:
        raise refuse(path, "is empty; each line holds an object with an instance and a label")
