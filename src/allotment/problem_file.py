"""A problem and its gains from a TOML file, or everything that is wrong with it, each with its
line."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import InvalidOperation
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from allotment.amounts import short
from allotment.errors import InputError, Mistake, make_hints, shorten
from allotment.gains import Coupled, Curve, curve_from_dict
from allotment.problem import Cap, Problem, Task
from allotment.toml import LARGEST_FILE, load_toml

TOP_KEYS = ("budget", "count_implied", "task", "cap")
HINTS = {
    "budget": "is missing; write budget = 6300 (all there is to spend) above the first [[task]]",
    "name": 'is missing; write name = "seg"',
    "cost": "is missing; write cost = 20, the price of one label",
    "limit": "is missing; write limit = 120",
    "use": "is missing; write use = { seg = 0.25 }, how much one label of each task takes",
    "tasks": "unknown key; write [[task]] above each task",
    "caps": "unknown key; write [[cap]] above each cap",
    "gain": "belongs to a task; write [task.gain] below the keys of its [[task]]",
    "gains": "unknown key; write [task.gain] below the keys of its [[task]]",
}

Made = TypeVar("Made", Task, Cap)
Place: TypeAlias = tuple[str | int, ...]
"""the way to a key: ("task", 1, "gain", "reduction") is in the second task"""


@dataclass(frozen=True)
class Document:
    """What a file holds; `gains` is None if it gives none."""

    problem: Problem
    gains: dict[str, Curve] | None
    path: Path | None = None


def read_problem(path: str | os.PathLike[str]) -> Document:
    """The problem in a TOML file; raises InputError with all of its mistakes."""
    return replace(parse_problem(_text(Path(path))), path=Path(path))


def parse_problem(text: str) -> Document:
    """The problem in a TOML text; raises InputError with all of its mistakes.

    >>> parse_problem('budget = 6300\\n[[task]]\\nname = "seg"\\ncost = "0.84"').problem.names
    ('seg',)
    """
    wrong = _Mistakes()
    try:
        document = _document(_toml(text), wrong)
    except RecursionError:
        rows = text.split("\n")
        line = max(range(len(rows)), key=lambda row: sum(map(rows[row].count, "[{."))) + 1
        raise InputError(
            [Mistake("", "nested too deeply; a task is a few levels deep", line)]
        ) from None
    if wrong.found or document is None:
        raise InputError(wrong.located(text))
    return document


def _text(path: Path) -> str:
    line = None
    try:
        what = _unfit(path.stat())
        if not what:
            return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        what = "there is no such file; check the path"
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = f"cannot be read ({reason}); check the path and its permissions"
    raise InputError([Mistake(repr(str(path)), what, line)])


def _unfit(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "is a directory; give the problem file in it"
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device could wait forever
        return (
            "is a pipe or a device; save the problem to a file first, or give - to read standard"
            " input"
        )
    if status.st_size > LARGEST_FILE:
        size, limit = status.st_size / 10**6, LARGEST_FILE // 10**6
        return f"has {size:.1f} MB, the limit is {limit} MB; is it the right file?"
    return ""


def _toml(text: str) -> dict[str, Any]:
    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        at = re.search(r"line (\d+)", place)
        line = int(at[1]) if at else text.rstrip("\n").count("\n") + 1
        single = re.match(r"\s*\[\s*(task|cap)\s*\]", text.split("\n")[line - 1])
        if single:
            advice = f"write [[{single[1]}]], in double brackets, above each {single[1]}"
        else:
            advice = "text goes in quotes, numbers have a decimal point, each key stands once"
        raise InputError([Mistake("", f"not valid TOML: {what}; {advice}", line)]) from None
    except InputError:
        raise
    except (ValueError, InvalidOperation):
        # more digits than int, or a longer exponent than Decimal, is willing to read
        number = re.search(r"(?<![\d_])[\d_]{4000}|[eE][+-]?[\d_]{18}", text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        what = "a number has far too many digits (the limits are 10^15 and 12 decimal places)"
        raise InputError([Mistake("", what, line)]) from None


class _Mistakes:
    """What is wrong so far, each mistake with the place that it gets its line from."""

    def __init__(self) -> None:
        self.found: list[tuple[Place, Mistake]] = []

    def add(self, place: Place, where: str, what: str) -> None:
        self.found.append((place, Mistake(where, what)))

    def adopt(self, mistakes: Iterable[Mistake], place: Place, label: str) -> None:
        """Mistakes of one table, which name keys within it."""
        for mistake in mistakes:
            if mistake.what == "is missing" and mistake.where in HINTS:
                mistake = replace(mistake, what=HINTS[mistake.where])
            self.found.append(
                (
                    (*place, *_keys(mistake.where)),
                    replace(mistake, where=_cut(mistake.where)).under(label),
                )
            )

    def adopt_named(self, mistakes: Iterable[Mistake], entries: Iterable[_Entry]) -> None:
        """Mistakes of the whole problem, which name a task or cap."""
        places: dict[str, list[Place]] = defaultdict(list)
        for entry in entries:
            places[entry.label].append((*entry.place, "name"))
            for key in ("implies", "use"):
                places[f"{entry.label}: {key}"].append((*entry.place, key))
        for mistake in mistakes:
            spots = places.get(mistake.where, [(mistake.where,)])
            # of a name that is there twice, the second is the one too many
            self.found.append((spots.pop(1) if len(spots) > 1 else spots[0], mistake))

    def located(self, text: str) -> list[Mistake]:
        """All of them with their lines, from the top of the file to its end."""
        lines = _lines(text)
        located = []
        for place, mistake in self.found:
            while place not in lines:  # in an inline table, or missing: the nearest table around it
                place = place[:-1]
            located.append(replace(mistake, line=lines[place]))
        return shorten(sorted(located, key=lambda mistake: mistake.line or 0))


@dataclass(frozen=True)
class _Entry:
    """One [[task]] or [[cap]] as it was written."""

    kind: str
    index: int
    table: dict[str, Any]

    @property
    def place(self) -> Place:
        return (self.kind, self.index)

    @property
    def label(self) -> str:
        name = self.table.get("name")
        named = (
            isinstance(name, str)
            and name.isprintable()
            and 0 < len(name.strip()) <= len(name) <= 100
        )
        return f"{self.kind} {name!r}" if named else f"{self.kind} {self.index + 1}"


def _document(plain: dict[str, Any], wrong: _Mistakes) -> Document | None:
    hint = make_hints(TOP_KEYS)
    for key in plain:
        if key not in TOP_KEYS:
            wrong.add((key,), _cut(key), HINTS.get(key) or f"unknown key; {hint(key)}")
    if plain.get("task", []) == [] and "tasks" not in plain:
        wrong.add(
            ("task",), "task", "there is no task; write [[task]] and below it a name and a cost"
        )
    entries = {kind: _entries(plain.get(kind, []), kind, wrong) for kind in ("task", "cap")}
    tasks = [task for entry in entries["task"] if (task := _made(entry, Task.from_dict, wrong))]
    caps = [cap for entry in entries["cap"] if (cap := _made(entry, Cap.from_dict, wrong))]
    gains = _gains(entries["task"], dict.fromkeys(task.name for task in tasks), wrong)
    budget = _budget(plain, wrong)
    try:  # a cap's tasks cannot be judged where there are none
        problem = Problem(
            tasks or [Task("?", 1)],
            budget,
            caps if tasks else (),
            plain.get("count_implied", False),
        )
    except InputError as error:
        wrong.adopt_named(error.mistakes, [*entries["task"], *entries["cap"]])
        return None
    return Document(problem, gains)


def _entries(given: Any, kind: str, wrong: _Mistakes) -> list[_Entry]:
    advice = f"write [[{kind}]], in double brackets, above each {kind}"
    if not isinstance(given, list):
        form = "one table" if isinstance(given, dict) else short(given)
        wrong.add((kind,), kind, f"{form} is not a list of tables; {advice}")
        return []
    for index, table in enumerate(given):
        if not isinstance(table, dict):
            what = f"{short(table)} is not a table; {advice}"
            wrong.add((kind, index), f"{kind} {index + 1}", what)
    return [
        _Entry(kind, index, table) for index, table in enumerate(given) if isinstance(table, dict)
    ]


def _made(entry: _Entry, make: Callable[[dict[str, Any]], Made], wrong: _Mistakes) -> Made | None:
    """What the table says; if part of that is wrong, a stand-in, since others may refer to its
    name."""
    table = {
        key: value for key, value in entry.table.items() if (entry.kind, key) != ("task", "gain")
    }
    for key in {"budget", "count_implied"} & set(table):
        del table[key]
        what = (
            f"belongs to the whole problem, not to one {entry.kind}; move it above the first"
            " [[task]]"
        )
        wrong.add((*entry.place, key), f"{entry.label}: {key}", what)
    try:
        return make(table)
    except InputError as error:
        wrong.adopt(error.mistakes, entry.place, entry.label)
        bad = {_keys(mistake.where)[0] for mistake in error.mistakes}
    use = table.get("use")
    spare = {"limit": 0, "use": dict.fromkeys(use, 0) if isinstance(use, dict) else {}}
    if entry.kind == "task":
        spare = {"cost": 1}
    try:
        return make(spare | {key: value for key, value in table.items() if key not in bad})
    except InputError:  # it has no name
        return None


def _budget(plain: dict[str, Any], wrong: _Mistakes) -> Any:
    if "budget" not in plain:
        wrong.add((), "budget", HINTS["budget"])
    elif isinstance(plain["budget"], dict | list):
        wrong.add(
            ("budget",),
            "budget",
            "must be one number; write budget = 6300 above the first [[task]]",
        )
    else:
        return plain["budget"]
    return 0


def _gains(
    entries: list[_Entry], names: dict[str, None], wrong: _Mistakes
) -> dict[str, Curve] | None:
    gains: dict[str, Curve] = {}
    if not any("gain" in entry.table for entry in entries):
        return None
    hint = make_hints(names)
    for entry in entries:
        place, label = (*entry.place, "gain"), f"{entry.label}: gain"
        if "gain" not in entry.table:
            wrong.add(
                place,
                label,
                "is missing, but other tasks have one; give every task a gain, or none",
            )
            continue
        try:
            curve = curve_from_dict(entry.table["gain"], have=entry.table.get("have", 0))
        except InputError as error:
            wrong.adopt(error.mistakes, place, label)
            continue
        for term in curve.terms:
            for other in term.weights if isinstance(term, Coupled) else ():
                if other not in names:
                    what = f"no task {short(other)}; {hint(other)}"
                    wrong.add((*place, "weights", other), f"{label}: weights", what)
        if isinstance(name := entry.table.get("name"), str):
            gains[name] = curve
    return gains


_NOT_STRUCTURE = re.compile(
    r'''"""(?:[^"\\]+|\\.|"{1,2}(?!"))*+"{3,5}|"(?:[^"\\\n]+|\\.)*+"'''  # strings with escapes
    r"""|'''(?:[^']+|'{1,2}(?!'))*+'{3,5}|'[^'\n]*'|#[^\n]*""",  # strings without, comments
    re.DOTALL,
)
_STATEMENT = re.compile(r"\s*+(?P<open>\[\[?)?\s*(?P<key>[\w-]+(?:[ \t]*\.[ \t]*[\w-]+)*)\s*[\]=]")


def _lines(text: str) -> dict[Place, int]:
    """On which line each table begins and each key stands, which tomllib does not tell."""
    lines: dict[Place, int] = {(): 1}
    table: Place = ()
    seen: Counter[str] = Counter()
    depth = 0  # of brackets that are open since an earlier line
    for number, line in enumerate(_NOT_STRUCTURE.sub(_blank, text).split("\n"), 1):
        if depth == 0 and (statement := _STATEMENT.match(line)):
            head, *rest = (part.strip() for part in statement["key"].split(".", maxsplit=5))
            if statement["open"]:
                seen[head] += statement["open"] == "[[" and not rest
                table = place = (head, seen[head] - 1, *rest) if seen[head] else (head, *rest)
            else:
                place = (*table, head, *rest)
            for size in range(1, len(place) + 1):
                lines.setdefault(place[:size], number)
        depth += sum(map(line.count, "[{")) - sum(map(line.count, "]}"))
    return lines


def _blank(match: re.Match[str]) -> str:
    """A string or comment without what could be taken for structure; quoted keys stay."""
    plain = match[0].strip("\"'")
    return plain if re.fullmatch(r"[\w-]+", plain) else '""' + "\n" * match[0].count("\n")


def _keys(where: str) -> list[str]:
    return re.split(r": |[.\[]", where, maxsplit=5)


def _cut(text: str) -> str:
    """Any text as one short printable line."""
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 60 else text[:57] + "..."
