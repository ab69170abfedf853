"""Tasks that were renamed in mid-campaign: whether what the settings say of it can be, and what is
to be said where they say nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from allotment.errors import InputError, Mistake, cut, suggest
from allotment.job import JSON
from allotment.ledger.store import Store
from allotment.renames import rename_keys
from allotment.settings.settings import SETTINGS_FILE, WAS, Settings, parse_settings
from allotment.toml import parse_toml, read_text, refuse_nesting

MOST_TEXTS = 200
"""settings on record that are read through, the last ones"""


def check_renames(store: Store, settings: Settings, folder: Path) -> None:
    """Raises InputError where a task is said to have had a name that no task had, or has one by now
    under which another is on record."""
    if not settings.renames:
        return
    known, labelled = _list_known(store), store.list_labelled()
    first = {name for tasks in known for name, old in tasks.items() if name == old} | labelled
    later = {name: old for tasks in known for name, old in tasks.items() if name != old}
    wrong = []
    for name, old in settings.renames.was.items():
        what = ""
        if old not in first and old in later:
            what = (
                f"{old!r} is what {_show(later[old])} was called for a while; write its first name:"
                f" {_write(later[old])}"
            )
        elif old not in first:
            what = f"{old!r} was never a task of this campaign; {suggest(old, sorted(first))}"
        elif name in labelled:
            what = (
                f"labels are on record under {name!r} already, as of a task of its own, and can't"
                f" be told from those of {old!r} then; choose another name"
            )
        if what:
            wrong.append(Mistake(settings.locate(folder, name, WAS), what))
    if wrong:
        raise InputError(wrong)


def tell_unsaid(store: Store, settings: Settings) -> str:
    """That a task with something on record is gone while another is new, which may be the same;
    nothing where that is not so, or where it was seen since that they are two."""
    kept = {settings.renames.keep(name) for name in settings.names}
    known = _list_known(store)
    gone = {old: None for tasks in known for old in tasks.values() if old not in kept}
    if not gone:
        return ""
    labelled, measured = store.list_labelled(), _list_measured(store)
    for old in reversed(gone):
        beside = {each for tasks in known if old in tasks.values() for each in tasks.values()}
        new = [name for name in settings.names if name in kept - beside - labelled]
        if old not in labelled:  # then there are only trainings to lose
            new = [name for name in new if name not in measured] if measured else []
        if new:
            names = " or ".join(map(_show, new))
            lost = "its labels and trainings count" if old in labelled else "its trainings count"
            return (
                f"{_show(old)} is gone and {names} is new: if it was renamed, write {_write(old)}"
                f" below the new name in {SETTINGS_FILE}, and {lost} again"
            )
    return ""


def hint_renamed(store: Store, folder: Path) -> list[Mistake]:
    """What is to be said of names where settings do not fit the data, perhaps for that reason."""
    try:
        settings = parse_settings(read_text(folder / SETTINGS_FILE, SETTINGS_FILE))
    except InputError:
        return []
    try:
        check_renames(store, settings, folder)
    except InputError as error:
        return list(error.mistakes)
    what = tell_unsaid(store, settings)
    return [Mistake("", what)] if what else []


def _show(name: str) -> str:
    return cut(repr(name), 60)


def _write(old: str) -> str:
    return cut(f"{WAS} = {json.dumps(old, ensure_ascii=not old.isprintable())}", 200)


def _list_measured(store: Store) -> set[str]:
    """The tasks of the last estimates."""
    last = store.latest("estimates")
    return set() if last is None else set(map(str, last.body["estimates"]["tasks"]))


def _list_known(store: Store) -> list[Mapping[str, str]]:
    """Of each text of settings on record its tasks, with the first name of each."""
    return [_read_tasks(text) for text in store.list_settings()[-MOST_TEXTS:]]


@lru_cache(maxsize=MOST_TEXTS)
def _read_tasks(text: str) -> Mapping[str, str]:
    """Nothing of a text that can't be read: an archive may hold anything."""
    try:
        with refuse_nesting(text):
            rows = parse_toml(text).get("task", [])
    except InputError:
        return {}
    found: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else ():
        name = row.get("name") if isinstance(row, Mapping) else None
        if isinstance(name, str):
            old = row.get(WAS)
            found[name] = old if isinstance(old, str) else name
    return found


def rename_plan(plain: JSON, names: Mapping[str, str]) -> JSON:
    """A plan on record, as plain values, with other names for some tasks."""
    if not names:
        return plain
    problem = plain["problem"]
    tasks = [task | {"name": names.get(task["name"], task["name"])} for task in problem["tasks"]]
    caps = [cap | {"use": rename_keys(cap["use"], names)} for cap in problem.get("caps", ())]
    gains = {name: _rename_curve(curve, names) for name, curve in plain["gains"].items()}
    found = plain | {
        "problem": problem | {"tasks": tasks, "caps": caps},
        "gains": rename_keys(gains, names),
        "counts": rename_keys(plain["counts"], names),
    }
    if "outlook" in plain:
        ranges = {key: rename_keys(plain["outlook"][key], names) for key in ("plateau", "counts")}
        found["outlook"] = plain["outlook"] | ranges
    return found


def _rename_curve(curve: JSON, names: Mapping[str, str]) -> JSON:
    """A curve may count labels of several tasks, by their names."""
    if isinstance(curve, list):
        return [_rename_curve(each, names) for each in curve]
    if not isinstance(curve, Mapping):
        return curve
    found = {key: _rename_curve(each, names) for key, each in curve.items()}
    if isinstance(weights := found.get("weights"), Mapping):
        found["weights"] = rename_keys(weights, names)
    return found
