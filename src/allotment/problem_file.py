"""A problem and its gains from a TOML file, or everything that is wrong with it, each with its
line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from allotment.amounts import short
from allotment.errors import InputError, Mistake, cut, make_hints
from allotment.gains import Coupled, Curve, curve_from_dict
from allotment.mistakes import Place, Placed, find_way
from allotment.notation import read_notation
from allotment.problem import Cap, Problem, Task, read_point_worth
from allotment.toml import find_lines, parse_toml, read_text, refuse_nesting

TOP_KEYS = ("budget", "point_worth", "count_implied", "task", "cap", "report")
PROBLEM_HINTS = {
    "budget": "is missing; write budget = 6300 (all there is to spend) above the first [[task]]",
    "name": 'is missing; write name = "seg"',
    "cost": "is missing; write cost = 20, the price of one label",
    "limit": "is missing; write limit = 120",
    "use": "is missing; write use = { seg = 0.25 }, how much one label of each task takes",
    "tasks": "unknown key; write [[task]] above each task",
    "caps": "unknown key; write [[cap]] above each cap",
    "currency": 'belongs to the report; write [report] and below it currency = "EUR"',
    "decimal": 'belongs to the report; write [report] and below it decimal = "comma"',
    "gain": "belongs to a task; write [task.gain] below the keys of its [[task]]",
    "gains": "unknown key; write [task.gain] below the keys of its [[task]]",
}
"""what to write for a key that is missing or not allowed in a problem file"""

Made = TypeVar("Made", Task, Cap)


@dataclass(frozen=True)
class Document:
    """What a file holds; `gains` is None if it gives none."""

    problem: Problem
    gains: dict[str, Curve] | None
    path: Path | None = None
    point_worth: Fraction | None = None
    """money that a value of 1 is worth to whoever pays, if the file says so"""
    report: Mapping[str, str] = field(default_factory=dict)
    """how its report writes money and numbers: currency, decimal"""


def read_problem(path: str | os.PathLike[str]) -> Document:
    """The problem in a TOML file; raises InputError with all of its mistakes."""
    text = read_text(Path(path), repr(str(Path(path))))
    return replace(parse_problem(text), path=Path(path))


def parse_problem(text: str) -> Document:
    """The problem in a TOML text; raises InputError with all of its mistakes.

    >>> parse_problem('budget = 6300\\n[[task]]\\nname = "seg"\\ncost = "0.84"').problem.names
    ('seg',)
    """
    wrong = Placed()
    with refuse_nesting(text):
        document = _document(parse_toml(text), wrong)
    if wrong.found or document is None:
        raise InputError(wrong.located(find_lines(text)))
    return document


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


def _document(plain: dict[str, Any], wrong: Placed) -> Document | None:
    hint = make_hints(TOP_KEYS)
    for key in plain:
        if key not in TOP_KEYS:
            wrong.add((key,), cut(key, 60), PROBLEM_HINTS.get(key) or f"unknown key; {hint(key)}")
    if plain.get("task", []) == [] and "tasks" not in plain:
        wrong.add(
            ("task",), "task", "there is no task; write [[task]] and below it a name and a cost"
        )
    entries = {kind: _entries(plain.get(kind, []), kind, wrong) for kind in ("task", "cap")}
    tasks = [task for entry in entries["task"] if (task := _made(entry, Task.from_dict, wrong))]
    caps = [cap for entry in entries["cap"] if (cap := _made(entry, Cap.from_dict, wrong))]
    gains = _gains(entries["task"], dict.fromkeys(task.name for task in tasks), wrong)
    budget = _budget(plain, wrong)
    point_worth = _point_worth(plain, gains, wrong)
    report = read_notation(plain.get("report", {}), wrong)
    try:  # a cap's tasks cannot be judged where there are none
        problem = Problem(
            tasks or [Task("?", 1)],
            budget,
            caps if tasks else (),
            plain.get("count_implied", False),
        )
    except InputError as error:
        named = [*entries["task"], *entries["cap"]]
        wrong.adopt_named(error.mistakes, [(entry.label, entry.place) for entry in named])
        return None
    return Document(problem, gains, point_worth=point_worth, report=report)


def _entries(given: Any, kind: str, wrong: Placed) -> list[_Entry]:
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


def _made(entry: _Entry, make: Callable[[dict[str, Any]], Made], wrong: Placed) -> Made | None:
    """What the table says; if part of that is wrong, a stand-in, since others may refer to its
    name."""
    table = {
        key: value for key, value in entry.table.items() if (entry.kind, key) != ("task", "gain")
    }
    for key in {"budget", "point_worth", "count_implied"} & set(table):
        del table[key]
        what = (
            f"belongs to the whole problem, not to one {entry.kind}; move it above the first"
            " [[task]]"
        )
        wrong.add((*entry.place, key), f"{entry.label}: {key}", what)
    try:
        return make(table)
    except InputError as error:
        wrong.adopt(_give_hints(error.mistakes), entry.place, entry.label)
        bad = {find_way(mistake.where)[0] for mistake in error.mistakes}
    use = table.get("use")
    spare = {"limit": 0, "use": dict.fromkeys(use, 0) if isinstance(use, dict) else {}}
    if entry.kind == "task":
        spare = {"cost": 1}
    try:
        return make(spare | {key: value for key, value in table.items() if key not in bad})
    except InputError:  # it has no name
        return None


def _give_hints(mistakes: Iterable[Mistake]) -> Iterator[Mistake]:
    """The same mistakes, with what to write for a key that is missing."""
    for mistake in mistakes:
        missing = mistake.what == "is missing" and mistake.where in PROBLEM_HINTS
        yield replace(mistake, what=PROBLEM_HINTS[mistake.where]) if missing else mistake


def _budget(plain: dict[str, Any], wrong: Placed) -> Any:
    if "budget" not in plain:
        wrong.add((), "budget", PROBLEM_HINTS["budget"])
    elif isinstance(plain["budget"], dict | list):
        wrong.add(
            ("budget",),
            "budget",
            "must be one number; write budget = 6300 above the first [[task]]",
        )
    else:
        return plain["budget"]
    return 0


def _point_worth(
    plain: dict[str, Any], gains: dict[str, Curve] | None, wrong: Placed
) -> Fraction | None:
    if "point_worth" not in plain:
        return None
    place = ("point_worth",)
    if gains is None:
        what = (
            "says nothing without gains; write a [task.gain] below each [[task]], or leave it out"
        )
        wrong.add(place, "point_worth", what)
        return None
    try:
        return read_point_worth(plain["point_worth"])
    except InputError as error:
        wrong.found += [(place, mistake) for mistake in error.mistakes]
        return None


def _gains(entries: list[_Entry], names: dict[str, None], wrong: Placed) -> dict[str, Curve] | None:
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
            wrong.adopt(_give_hints(error.mistakes), place, label)
            continue
        for term in curve.terms:
            for other in term.weights if isinstance(term, Coupled) else ():
                if other not in names:
                    what = f"no task {short(other)}; {hint(other)}"
                    wrong.add((*place, "weights", other), f"{label}: weights", what)
        if isinstance(name := entry.table.get("name"), str):
            gains[name] = curve
    return gains
