"""What the user decides: campaign.toml, read with every mistake at once, written with a comment on every key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from allotment.amounts import short
from allotment.errors import InputError, Mistake, suggest
from allotment.problem import Cap, Problem, Task

FILE = "campaign.toml"
LARGEST_FILE = 10_000_000
"""bytes"""
METHODS = {
    "response": "trainings on parts of the labels at hand, with an interval for everything",
    "taba": "the paper's method to the letter",
    "taba-pooled": "the paper's method with pooled transfer and each task's own first gain",
    "slopes": "the plain slope of each task's score",
    "neutral": "no training at all: every task is taken to be worth the same",
}
DATA: dict[str, dict[str, type]] = {
    "table": {"root": str, "id": str, "group": str, "drop": list, "delimiter": str, "image_size": int},
    "scenes": {"count": int, "size": int, "seed": int},
    "voc": {"root": str, "side": int},
    "taskonomy": {"root": str, "side": int},
}
"""kinds of data and the keys of each"""
ROOTED = ("table", "voc", "taskonomy")
COMPLETE = ("scenes", "voc", "taskonomy")
"""data that come with all their labels: a campaign begins with some of them, and can be judged by the others"""
NETWORKS = {"usual": "", "voc-small": "voc", "voc-paper": "voc", "taskonomy-small": "taskonomy"} | {
    "taskonomy-paper": "taskonomy"
}
"""networks by name, and the data that each is for; `usual` is for any"""
TRAINING: dict[str, type] = {
    "network": str,
    "weights": str,
    "steps": int,
    "epochs": int,
    "batch_size": int,
    "optimiser": str,
    "trunk_rate": float,
    "head_rate": float,
    "weight_decay": float,
    "device": str,
    "precision": str,
}
TARGET: dict[str, type] = {"kind": str, "classes": list, "metric": str, "loss_weight": float}
"""keys of a task that say what it predicts, beside those that say what it costs"""
TOP = ("budget", "method", "trainings", "seed", "conflicts", "data", "training", "task", "cap")
RULES = ("first", "last", "majority")
"""which of several answers for one label counts"""
NAMES = {str: "a text in quotes", int: "a whole number", float: "a number", list: "a list of texts"}
HINTS = {
    "pool": "is counted from the data: leave it out",
    "gain": "is measured: leave it out, or plan with a problem file (allot example)",
    "implies": "is not part of a campaign yet: leave it out",
    "learner": "is code, which no file may name: give it with --learner or in ALLOT_LEARNER",
    "tasks": "unknown key; write [[task]] above each task",
}


@dataclass(frozen=True)
class Settings:
    """What campaign.toml says. `starts` are the labels that complete data begin with, by task."""

    tasks: tuple[Task, ...]
    budget: Fraction
    data: Mapping[str, Any]
    training: Mapping[str, Any] = field(default_factory=dict)
    method: str = "response"
    trainings: int | None = None
    """how many; the method's own number if None"""
    seed: int = 0
    conflicts: str = "first"
    """which of several answers for one label counts"""
    caps: tuple[Cap, ...] = ()
    starts: Mapping[str, int] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """of each task, what it says of its labels: kind, classes, metric, loss_weight"""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(task.name for task in self.tasks)

    @property
    def recipe(self) -> dict[str, Any]:
        """All that a training depends on beside data, labels and seed."""
        return {"training": dict(self.training), "targets": {k: dict(v) for k, v in self.targets.items()}}

    def problem(self) -> Problem:
        """The whole of it as a problem, with nothing at hand yet."""
        return Problem(self.tasks, self.budget, self.caps)


def read_settings(folder: Path) -> tuple[Settings, str]:
    """The settings of a campaign's folder, and their text; raises InputError with every mistake, its file and line."""
    text = _read_text(folder / FILE)
    try:
        return parse_settings(text), text
    except InputError as error:
        found = [(f"{folder / FILE}:{each.line}", each) for each in error.mistakes]
        raise InputError(
            Mistake(f"{at}: {each.where}" if each.where else at, each.what) for at, each in found
        ) from None


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            what = f"there is none; begin with: allot init {path.parent}"
        elif path.stat().st_size > LARGEST_FILE:
            what = f"has more than {LARGEST_FILE // 10**6} MB; is it the right file?"
        else:
            return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
    except OSError as error:
        what = f"cannot be read ({error.strerror or error}); check its permissions"
    raise InputError([Mistake(FILE, what)])


def check_place(folder: Path) -> None:
    """That a campaign's folder can be made where it is wanted."""
    there = next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
    if not there.is_dir():
        raise InputError([Mistake(str(there), "is a file; a campaign is a folder of its own: choose another name")])
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError([Mistake(str(there), "may not be written to; choose a folder that is yours")])


def parse_settings(text: str) -> Settings:
    """The settings in a TOML text; raises InputError with all of its mistakes."""
    try:
        plain = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError, ArithmeticError) as error:
        at = re.search(r"line (\d+)", str(error))
        what = f"not valid TOML: {str(error).partition(' (at ')[0][:200]}; text goes in quotes, each key stands once"
        raise InputError([Mistake("", what, int(at[1]) if at else 1)]) from None
    wrong = _Mistakes()
    settings = _build(plain, wrong)
    if wrong.found or settings is None:
        raise InputError(wrong.located(text))
    return settings


class _Mistakes:
    """What is wrong so far, each with the way to its key."""

    def __init__(self) -> None:
        self.found: list[tuple[tuple[str | int, ...], Mistake]] = []

    def add(self, place: tuple[str | int, ...], where: str, what: str) -> None:
        self.found.append((place, Mistake(where, what)))

    def located(self, text: str) -> list[Mistake]:
        lines = _find_lines(text)
        found = []
        for place, mistake in self.found:
            while place not in lines:
                place = place[:-1]
            found.append(Mistake(mistake.where, mistake.what, lines[place]))
        return sorted(found, key=lambda mistake: mistake.line or 0)


def _find_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """On which line each table begins and each key stands; a text over several lines may mislead it."""
    lines: dict[tuple[str | int, ...], int] = {(): 1}
    table: tuple[str | int, ...] = ()
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"\s*(\[\[?)\s*([\w-]+)", line):
            name = match[2]
            if match[1] == "[[":
                seen[name] = seen.get(name, -1) + 1
                table = (name, seen[name])
            else:
                table = (name,)
            lines.setdefault(table, number)
        elif match := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]", line):
            lines.setdefault((*table, match[1]), number)
    return lines


def _build(plain: Mapping[str, Any], wrong: _Mistakes) -> Settings | None:
    for key in plain:
        if key not in TOP:
            wrong.add((key,), _shown(key), HINTS.get(key) or f"unknown key; {suggest(key, TOP)}")
    data = _read_data(plain.get("data"), wrong)
    training = _read_training(plain.get("training", {}), data, wrong)
    tasks, starts, targets = _read_tasks(plain.get("task", []), data, wrong)
    caps = _read_caps(plain.get("cap", []), wrong)
    method = plain.get("method", "response")
    if method not in METHODS:
        wrong.add(("method",), "method", f"unknown {short(method)}; {suggest(method, METHODS)}")
    for key, least in (("trainings", 0), ("seed", 0)):
        value = plain.get(key, least)
        if type(value) is not int or value < least:
            wrong.add((key,), key, f"{short(value)} is not a whole number of {least} or more")
    if plain.get("conflicts", "first") not in RULES:
        what = f"unknown {short(plain['conflicts'])}; {suggest(plain['conflicts'], RULES)}"
        wrong.add(("conflicts",), "conflicts", what)
    if "budget" not in plain:
        wrong.add((), "budget", "is missing; write budget = 500 (all there is to spend) above the first table")
    try:
        problem = Problem(tasks or [Task("?", 1)], plain.get("budget", 0), caps if tasks else ())
    except InputError as error:
        for mistake in error.mistakes:
            wrong.add((mistake.where.partition(":")[0],), mistake.where, mistake.what)
        return None
    return Settings(
        tasks=tuple(tasks),
        budget=problem.budget,
        data=data,
        training=training,
        method=str(method),
        trainings=plain.get("trainings"),
        seed=plain.get("seed", 0),
        conflicts=plain.get("conflicts", "first"),
        caps=problem.caps,
        starts=starts,
        targets=targets,
    )


def _read_data(given: Any, wrong: _Mistakes) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        wrong.add(("data",), "data", 'is missing; write [data] and below it name = "table"')
        return {}
    name = given.get("name")
    if name not in DATA:
        what = "is missing" if name is None else f"unknown {short(name)}"
        wrong.add(("data", "name"), "data: name", f"{what}; {suggest(name or '', DATA)}")
        return {}
    found = _read_keys(given, {"name": str} | DATA[name], "data", wrong)
    if name in ROOTED and "root" not in given:
        wrong.add(("data",), "data: root", "is missing; write where the data lie")
    return found


def _read_training(given: Any, data: Mapping[str, Any], wrong: _Mistakes) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        wrong.add(("training",), "training", "is not a table; write [training]")
        return {}
    found = _read_keys(given, TRAINING, "training", wrong)
    network = found.get("network", "usual")
    if network not in NETWORKS:
        wrong.add(("training", "network"), "training: network", f"unknown {network!r}; {suggest(network, NETWORKS)}")
    elif NETWORKS[network] and data and NETWORKS[network] != data.get("name"):
        what = f"{network!r} is for {NETWORKS[network]}, and the data are {data.get('name')}; take 'usual'"
        wrong.add(("training", "network"), "training: network", what)
    return found


def _read_keys(given: Mapping[str, Any], known: Mapping[str, type], table: str, wrong: _Mistakes) -> dict[str, Any]:
    """The known keys of a table, with their types checked."""
    found = {}
    for key, value in given.items():
        if key not in known:
            what = HINTS.get(key) or f"unknown key; {suggest(key, known)}"
            wrong.add((table, key), f"{table}: {_shown(key)}", what)
        elif (kept := _typed(value, known[key])) is None:
            wrong.add((table, key), f"{table}: {key}", f"{short(value)} is not {NAMES[known[key]]}")
        else:
            found[key] = kept
    return found


def _typed(value: Any, kind: type) -> Any:
    """The value if it is of the kind (a whole number is a number, too); None if not."""
    if kind is float and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    if kind is list:
        return list(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else None
    return value if type(value) is kind else None


def _read_tasks(
    given: Any, data: Mapping[str, Any], wrong: _Mistakes
) -> tuple[list[Task], dict[str, int], dict[str, dict[str, Any]]]:
    tasks: list[Task] = []
    starts: dict[str, int] = {}
    targets: dict[str, dict[str, Any]] = {}
    rows = _tables(given, "task", wrong)
    if not rows and not wrong.found:
        wrong.add(("task",), "task", "there is none; write [[task]] and below it a name and a cost")
    for number, row in rows:
        label = f"task {row['name']!r}" if isinstance(row.get("name"), str) else f"task {number + 1}"
        own = {key: value for key, value in row.items() if key in TARGET}
        said = {key: _typed(value, TARGET[key]) for key, value in own.items()}
        for key in [key for key, value in said.items() if value is None]:
            wrong.add(("task", number, key), f"{label}: {key}", f"{short(own[key])} is not {NAMES[TARGET[key]]}")
        if hinted := [key for key in row if key in HINTS]:
            for key in hinted:
                wrong.add(("task", number, key), f"{label}: {key}", HINTS[key])
        rest = {key: value for key, value in row.items() if key not in TARGET and key not in HINTS}
        try:
            task = Task.from_dict(rest)
        except InputError as error:
            for mistake in error.mistakes:
                wrong.add(("task", number, mistake.where), f"{label}: {mistake.where}", mistake.what)
            continue
        tasks.append(task)
        if said:
            targets[task.name] = said
        if "have" in row:
            starts[task.name] = task.have
    _check_starts([task.name for task in tasks], starts, data.get("name", ""), wrong)
    return tasks, starts, targets


def _check_starts(names: Iterable[str], starts: Mapping[str, int], data: str, wrong: _Mistakes) -> None:
    """Complete data need a number of labels to begin with; a table may have one, for every task or for none."""
    if not starts and data not in COMPLETE:
        return
    for number, name in enumerate(names):
        if name not in starts:
            what = f"is missing; write have = 50, the number of labels that {name!r} begins with"
            if data not in COMPLETE:
                what += ", or leave it out of the other tasks too: then all filled cells are at hand"
            wrong.add(("task", number), f"task {name!r}: have", what)


def _read_caps(given: Any, wrong: _Mistakes) -> list[Cap]:
    caps = []
    for number, row in _tables(given, "cap", wrong):
        try:
            caps.append(Cap.from_dict(row))
        except InputError as error:
            for mistake in error.mistakes:
                wrong.add(("cap", number, mistake.where), f"cap {number + 1}: {mistake.where}", mistake.what)
    return caps


def _tables(given: Any, kind: str, wrong: _Mistakes) -> list[tuple[int, Mapping[str, Any]]]:
    if not isinstance(given, list) or not all(isinstance(row, Mapping) for row in given):
        wrong.add((kind,), kind, f"write [[{kind}]], in double brackets, above each {kind}")
        return []
    return list(enumerate(given))


def _shown(key: str) -> str:
    return key[:60] if key.isprintable() else repr(key[:60])
