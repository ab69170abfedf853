"""Labels as they are delivered: CSV, JSONL, a folder or a zip archive of masks. All that is good goes in, and all else
is listed with its place and a reason.
"""

from __future__ import annotations

import bisect
import csv
import hashlib
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from allotment.connect.guard import (
    Fetch,
    Refused,
    decode,
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
from allotment.connect.rows import Form, Forms, Size, Value, is_empty, make_reader
from allotment.data.augment import MAPS
from allotment.data.columns import plain
from allotment.data.dataset import Target
from allotment.data.mistakes import Collected
from allotment.data.pixels import shown
from allotment.errors import InputError, suggest
from allotment.orders.sheet import place_file, protect, settle_folder, unprotect

DELIMITERS = ",;\t|"
MOST_LABELS = 1_000_000
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
    """one for each label, and where a delivery contradicts itself one for each of its answers, in its order"""
    rejected: tuple[tuple[str, str], ...]
    """what could not be taken: where, and why"""
    notes: tuple[str, ...] = ()
    """what is worth knowing besides"""


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
) -> Parts:
    """The labels in a CSV or JSONL file, or in a folder or zip archive of masks called TASK/INSTANCE.png.

    Rows have a task, an instance and a label, or an instance and a column for each task. `task` is meant where none is
    named. The instance stands in `id_column`, or, if that is not said, in `own_id` (as the data call it), `instance` or
    `id`. `size_of` gives the size that a mask must have; `keep` is the folder that accepted masks are put into, and
    nothing is written anywhere else. Raises InputError only for what can't be read as a delivery at all.
    """
    path = Path(path)
    columns = (id_column, own_id)
    reading = _Reading(tasks, known_ids, columns, task, separator, size_of, None if keep is None else Path(keep))
    suffix = path.suffix.lower()
    if os.path.isdir(path):  # unlike Path's own it never raises
        reading.take_files(walk_folder(path, reading.refused))
        return reading.finish(path, "folder")
    if suffix not in (".csv", ".tsv", ".jsonl", ".ndjson", ".zip"):
        what = "can't be told by its name; give a .csv or .jsonl file, or masks in a folder or a .zip"
        raise refuse(path, what if os.path.exists(path) else "there is no such file; check the path")
    with open_plain(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        file.seek(0)
        reading.beside = path.parent
        if suffix in (".csv", ".tsv"):
            _take_csv(path, file, reading, "\t" if suffix == ".tsv" else "")
        elif suffix == ".zip":
            with tempfile.TemporaryDirectory(prefix="allot-") as scratch:
                reading.take_files(walk_archive(path, Path(scratch), reading.refused))
        else:
            _take_jsonl(path, file, reading)
    return reading.finish(path, digest)


def write_rejected(parts: Parts, path: str | os.PathLike[str]) -> Path:
    """The list of what could not be taken, as CSV without formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([[protect(cell) for cell in row] for row in (("where", "reason"), *parts.rejected)])
    return place_file(Path(path), text.getvalue().encode(errors="replace"))


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
            wrong.add("task", f"there is no {task!r}; {suggest(task, tasks)}")
        if not separator or separator.isspace():
            wrong.add("separator", f"{separator!r} can't stand between classes")
        wrong.raise_all()
        self.tasks, self.known = tasks, known_ids if isinstance(known_ids, set | frozenset | dict) else set(known_ids)
        self.keep, self.size_of = keep, size_of
        self.usual = task or (next(iter(tasks)) if len(tasks) == 1 else None)
        """the task that is meant where none is named"""
        self.refused = Refused()
        self.readers = {name: make_reader(target, separator, self.refused) for name, target in tasks.items()}
        self.beside: Path | None = None
        """where a label that names a file is looked for"""
        self.accepted: list[Label] = []
        self.values: dict[tuple[str, str], list[Value]] = {}
        self.notes: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.strangers = 0
        """names of instances that are not known"""
        self.forms = Forms(tasks, columns[0], task, self.refused, columns[1])

    def find_task(self, given: Any) -> str:
        """The task that is meant; raises ValueError with the reason if there is none."""
        if (given is None or given == "") and self.usual is not None:
            return self.usual
        if isinstance(given, str):
            for each in (unprotect(given), given, given.strip()):
                if each in self.tasks:
                    return each
        raise ValueError(f"there is no task {told(given)}; {self.refused.hint(_brief(given), self.tasks)}")

    def find_instance(self, given: Any) -> str:
        """The instance that is meant; raises ValueError with the reason if there is none."""
        if isinstance(given, int | float) and not isinstance(given, bool):
            given = plain(given) if isinstance(given, float) else str(given)
        if not isinstance(given, str) or not given.strip():
            raise ValueError("names no instance; each label needs one")
        for each in (unprotect(given), given, given.strip()):
            if each in self.known:
                return each
        if (alike := self.numbered.get(_bare_number(given))) is not None:
            return alike
        self.strangers += 1
        hint = self.refused.hint(given, self._around(given))
        known = hint if hint.startswith("did you mean") else "write it as the order does"
        raise ValueError(f"there is no instance {told(given)}; {known}")

    def _around(self, name: str) -> list[str]:
        """The known instances next to a name in alphabetical order, where most misspelt ones belong."""
        at = bisect.bisect_left(self.sorted, name)
        return self.sorted[max(0, at - 200) : at + 200]

    @cached_property
    def sorted(self) -> list[str]:
        return sorted(self.known)

    @cached_property
    def numbered(self) -> dict[str, str]:
        """Instances by their number, for those who write 7 for 007, as spreadsheets do; none that could be two."""
        counts = Counter(bare for each in self.known if (bare := _bare_number(each)))
        return {bare: each for each in self.known if (bare := _bare_number(each)) and counts[bare] == 1}

    def take_row(self, where: str, row: Mapping[str, Any], form: Form) -> None:
        """The labels in one row or object."""
        for task, given in form.labels(row):
            try:
                name = self.find_task(task)
                if is_empty(given):
                    self.notes["no label yet"] += 1
                    continue
                instance = self.find_instance(row.get(form.id))
                self._take(name, instance, self._read(name, instance, given), where)
            except InputError:
                raise
            except ValueError as error:
                self.refused.add(where, str(error) if form.label else f"task {told(task)}: {error}")

    def _read(self, task: str, instance: str, given: Any) -> Value:
        target = self.tasks[task]
        if target.kind in MAPS and self.beside is not None and _is_file(given):
            return self._read_mask(task, instance, self.beside, unprotect(given).strip())
        return self.readers[task](given, self._size(instance) if target.kind == "keypoints" else None)

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
            self.refused.add(where, f"is one more of many answers for {told(instance)}; decide on one")
        elif len(self.accepted) >= MOST_LABELS:
            raise ValueError(f"more than {MOST_LABELS:,} labels in one delivery; give it in parts")
        else:
            if held:
                self.notes["another answer than an earlier one of the same delivery"] += 1
            held.append(value)
            self.accepted.append((task, instance, value))

    def take_files(self, files: Iterable[tuple[str, Fetch]]) -> None:
        """The masks among the files."""
        for name, fetch in files:
            try:
                task, instance = self._of_file(name)
                self._take(task, instance, self._read_mask(task, instance, *fetch()), shown(name))
            except InputError:
                raise
            except ValueError as error:
                self.refused.add(shown(name), str(error))

    def _of_file(self, name: str) -> tuple[str, str]:
        """The task and the instance that a file is for, by its path; one folder around all is nothing unusual."""
        stem, dot, suffix = name.rpartition(".")
        if not dot or suffix.lower() != "png":
            raise ValueError("is not a PNG file by its name; masks are called TASK/INSTANCE.png")
        paths = [stem, stem.partition("/")[2]]
        for path in paths:
            for task in sorted(self.tasks, key=len, reverse=True):
                if path.startswith(f"{task}/"):
                    return task, self.find_instance(path[len(task) + 1 :])
        usual = self.usual or self._only_map()
        for path in paths if usual is not None else ():
            if path in self.known:
                return usual or "", path
        if usual is not None and "/" not in stem:
            return usual, self.find_instance(stem)
        tasks = ", ".join(map(told, list(self.tasks)[:10]))
        raise ValueError(f"is in no folder of a task; masks are called TASK/INSTANCE.png, with one of {tasks}")

    def _only_map(self) -> str | None:
        maps = [name for name, target in self.tasks.items() if target.kind in MAPS]
        return maps[0] if len(maps) == 1 else None

    def finish(self, path: Path, content: str) -> Parts:
        """What it all comes to, once kept masks are safe."""
        if self.keep is not None and self.keep.is_dir():
            settle_folder(self.keep)
        if self.strangers and not self.accepted:
            names = ", ".join(map(told, self.sorted[:3]))
            self.remarks.append(f"none of its instances is known here, where they are called {names} and so on")
        rejected = self.refused.all()
        outcome = hashlib.sha256(content.encode())
        for each in (*self.accepted, "", *rejected):
            outcome.update(json.dumps(each, sort_keys=True).encode())
        name = shown(path.name or str(path))
        return Parts(
            name=name,
            digest=outcome.hexdigest(),
            accepted=tuple(self.accepted),
            rejected=tuple((f"{name}: {where}" if where else name, reason) for where, reason in rejected),
            notes=(*self.remarks, *(f"{what}: {count}" for what, count in self.notes.items())),
        )


def _brief(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _is_file(given: Any) -> bool:
    return isinstance(given, str) and given.strip().lower().endswith(".png")


def _bare_number(name: str) -> str:
    """A whole number without what spreadsheets and frames add or take away; "" if it is none."""
    digits = name.strip().removesuffix(".0")
    return digits.lstrip("0") or "0" if digits.isascii() and digits.isdecimal() else ""


def _take_csv(path: Path, file: IO[bytes], reading: _Reading, delimiter: str) -> None:
    names, rows, form = _read_names(path, file, reading, delimiter or DELIMITERS)
    wide = len(names)
    used = {at for at, name in enumerate(names) if name in form.needed}
    for line, cells in rows:
        where = f"line {line}"
        if isinstance(cells, str):
            reading.refused.add(where, cells)
        elif len(cells) > wide and any(cells[wide:]):
            what = f"has {len(cells)} cells where the first line has {wide}; is a comma not in quotes?"
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
        twice = [name for name, count in Counter(names).items() if count > 1 and name in form.needed]
        if twice:
            raise refuse(path, f"column {told(twice[0])} is there more than once; rename all but one", line)
        reading.remarks += _near_misses(reading.tasks, names, form)
        return names, records, form
    raise refuse(path, reasons[0][1], reasons[0][0])


def _near_misses(tasks: Mapping[str, Target], names: list[str], form: Form) -> list[str]:
    """Tasks without a column in a wide table, where another has nearly their name."""
    if form.label is not None:
        return []
    rest = [shown(name[:40]) for name in names[:1000] if name not in form.needed]
    lacking = [each for each in tasks if each not in form.columns.values() and each not in form.classes]
    hints = ((each, suggest(each, rest)) for each in lacking[:20])
    return [f"no column is called {told(each)}, {hint}" for each, hint in hints if hint.startswith("did you mean")]


def _find_start(path: Path, file: IO[bytes]) -> int:
    """Where the text begins, after the mark that some programs put before it."""
    file.seek(0)
    head = file.read(3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise refuse(path, "is UTF-16 text; save it as UTF-8")
    return 3 if head == b"\xef\xbb\xbf" else 0


def _take_jsonl(path: Path, file: IO[bytes], reading: _Reading) -> None:
    file.seek(_find_start(path, file))
    for line, piece in read_lines(file):
        where = f"line {line}"
        if piece is not None and not piece.strip():
            continue
        try:
            row = parse_json(decode(piece))
            if not isinstance(row, dict):
                raise ValueError(f"is {told(row)}; each line holds an object with an instance and a label")
            form = reading.forms.find(row)
        except ValueError as error:
            reading.refused.add(where, str(error))
            continue
        reading.take_row(where, row, form)
