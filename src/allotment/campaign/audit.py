"""A campaign held against itself: whether everything on record can be read, and agrees with
everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allotment.advice.doctor import Diagnosis
from allotment.campaign.evaluation import Evaluation
from allotment.campaign.state import list_missing
from allotment.errors import InputError, Mistake, cut
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import CONCLUSION, SHARED, UNSAID, Method, count_trainings
from allotment.estimates.response import Response
from allotment.estimates.scoring import tell_scoring
from allotment.estimates.taba import PairRates, read_pairs
from allotment.estimates.transfer import Transfer
from allotment.files import plainly
from allotment.formatting import several
from allotment.job import JSON
from allotment.ledger import copies
from allotment.ledger.books import balance
from allotment.ledger.disk import MASK_FOLDER
from allotment.ledger.journal import Position
from allotment.ledger.schema import Damaged, damaged, list_row_tables
from allotment.ledger.store import Store
from allotment.plan import Outlook, Plan
from allotment.settings.settings import SETTINGS_FILE, parse_settings

NEEDS = tuple(key for key in SHARED if key not in UNSAID)
"""that all estimates say; those of built-in methods come from no package"""


@dataclass(frozen=True)
class Audit:
    """What was looked at, and what is wrong with it."""

    lines: tuple[tuple[str, str], ...]
    """what, and what was found, in words"""
    faults: tuple[str, ...]
    copies: tuple[tuple[str, str, int], ...]
    """of each copy: its file, when it was made, and how many entries it lacks; below 0 where it has
    more"""

    def to_dict(self) -> dict[str, JSON]:
        keys = ("file", "made", "lacks")
        kept = [dict(zip(keys, each, strict=True)) for each in self.copies]
        return {
            "sound": not self.faults,
            "found": dict(self.lines),
            "faults": list(self.faults),
            "copies": kept,
        }


def check(store: Store) -> None:
    """Raises InputError unless items, orders and money agree and everything on record can be
    read."""
    seen = (store.path.resolve(), store.position)
    if seen in _SOUND:
        return
    if faults := list_faults(store):
        raise damaged(store.path, "; ".join(faults[:3]) + (" and more" if faults[3:] else ""))
    _SOUND.add(seen)


_SOUND: set[tuple[Path, Position]] = set()
"""what this process has checked; that its rows are the same still is checked whenever it is
opened"""


def audit(folder: Path) -> Audit:
    """Look at everything: pages, rows, books, bodies, files, settings and copies.

    What is wrong is looked at twice, and raises InputError where the disk says something else the
    second time: then nothing is harmed that could be put right here.
    """
    with plainly(folder):
        first = _look_at_all(folder)
        second = _look_at_all(folder) if first.faults else first
    if first.faults != second.faults:
        seen = next((each for each in first.faults if each not in second.faults), "more")
        what = f"was read otherwise at a second look, without this: {cut(seen)}; does its disk"
        what += " fail? Run the same command again"
        raise InputError([Mistake(repr(str(folder)), what)])
    return first


def _look_at_all(folder: Path) -> Audit:
    lines: list[tuple[str, str]] = []
    faults: list[str] = []
    position = Position(0, "")
    try:
        with Store.open(folder, write=False, check=False) as store:
            position = store.position
            for line, wrong in _look_through(store):
                lines.append(line)
                faults += wrong
            if newer := copies.find_newer(copies.list_copies(folder), position):
                what = "an earlier one was put in its place"
                faults.append(f"the store is older than its copy {newer.path.name}: {what}")
    except Damaged as error:  # such that the rest of it cannot be relied on
        lines = lines or [("rows", "cannot be read")]
        faults.append(error.how)
    faults += judge_settings(folder)
    kept = tuple(_describe(copy, position) for copy in copies.list_copies(folder))
    return Audit(tuple(lines), tuple(dict.fromkeys(faults)), kept)


def _look_through(store: Store) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Of each part of a store: its line, and what is wrong with it."""
    damage = store.find_damage()
    yield ("rows", _tell_rows(store, harmed=bool(damage))), damage
    books = balance(store)
    agree = "items, orders and money disagree" if books.faults else "items, orders and money agree"
    what = f"{several(books.orders, 'order')} of {several(books.items, 'label')}; "
    deliveries = f"{books.deliveries} deliver{'y' if books.deliveries == 1 else 'ies'}"
    yield ("books", f"{what}{deliveries}; {agree}"), [*books.faults, *judge_bodies(store)]
    masks, count = _judge_masks(store)
    state = "changed or missing" if masks else "as they were written"
    yield ("files", f"{several(count, 'mask')}, {state}"), masks


def judge_folder(folder: Path) -> list[str]:
    """Why a campaign that came from elsewhere is none that every command can work with."""
    with Store.open(folder, write=False) as store:
        faults = list_faults(store)
        wrong = judge_settings(folder) if (folder / SETTINGS_FILE).exists() else []
        missing = [str(mistake) for mistake in list_missing(store)] if wrong and not faults else []
    return faults + wrong + missing


def list_faults(store: Store) -> list[str]:
    """Where the books disagree, and what cannot be read."""
    return [*balance(store).faults, *judge_bodies(store)]


def judge_settings(folder: Path) -> list[str]:
    """What is wrong with the settings themselves; their data may be elsewhere."""
    try:
        parse_settings((folder / SETTINGS_FILE).read_text("utf-8-sig"))
    except InputError as error:
        return [f"{SETTINGS_FILE}: {mistake}" for mistake in error.mistakes]
    except FileNotFoundError:
        return [f"{SETTINGS_FILE} is gone"]
    except ValueError as error:
        return [f"{SETTINGS_FILE} cannot be read ({error})"]
    return []


def _tell_rows(store: Store, harmed: bool) -> str:
    total = sum(store.count(table) for table in list_row_tables())
    state = "harmed" if harmed else f"all as they were written (hash {store.position.hash})"
    return f"{several(total, 'row')}, {state}"


def _describe(copy: copies.Copy, position: Position) -> tuple[str, str, int]:
    made = datetime.fromtimestamp(copy.path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return f"{copies.FOLDER}/{copy.path.name}", made, position.number - copy.number


def judge_bodies(store: Store) -> list[str]:
    """Values on record that nothing can be made of; those who use them can then rely on their
    form."""
    found = []
    for kind, read in _READ.items():
        for value in store.values(kind):
            if error := _attempt(read, value.body):
                found.append(f"{value.kind} {value.number} on record cannot be read ({error})")
    for kind, read_result in _READ_RESULT.items():
        for _, needs, body in store.results(kind):
            if error := _attempt(read_result, needs, body):
                found.append(f"the result of a {kind} on record cannot be read ({error})")
    return found


def _attempt(read: Callable[..., object], *given: Any) -> str:
    """What is wrong, if reading says so. Of a body that somebody else wrote it can be any error."""
    try:
        read(*given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:100]
    return ""


def _read_estimates(body: Any) -> None:
    found = Estimates.from_dict(body["estimates"])
    needs = body["needs"]
    if missing := [key for key in NEEDS if key not in needs]:
        raise ValueError(f"without {', '.join(missing)}")
    _expect(isinstance(needs["recipe"]["training"], dict), "recipe")
    _expect(isinstance(needs["method"], str), "method")
    _expect(type(needs["trainings"]) is int and type(needs["seed"]) is int, "trainings and seed")
    _expect(all(isinstance(each, str) for each in body.get("earlier", [])), "earlier")
    _expect(type(body.get(CONCLUSION, 1)) is int, CONCLUSION)
    parts = body.get("parts", {})
    _expect(isinstance(parts, dict) and all(type(each) is str for each in parts.values()), "parts")
    measured = found.about.get("measured", {})
    if "response" in measured:
        _expect(Response.from_dict(measured["response"]).tasks == found.tasks, "measured")
    if "transfer" in measured:
        # a task without labels is not probed
        _expect({*Transfer.from_dict(measured["transfer"]).tasks} <= {*found.tasks}, "measured")
    if "triples" in measured:
        _expect({*measured["triples"]["tasks"]} <= {*found.tasks}, "measured")
    if "between" in found.about:
        _expect(PairRates.from_dict(found.about["between"]).tasks == found.tasks, "between")
        _expect({*sum(read_pairs(measured), ())} <= {*found.tasks}, "measured")
    tell_scoring(found.about)


def _read_plan(body: Any) -> None:
    Plan.from_dict(body["plan"])
    _expect(body["estimates"] is None or type(body["estimates"]) is int, "estimates")


def _read_diagnosis(body: Any) -> None:
    Diagnosis.from_dict(body)
    Outlook.from_dict(body["outlook"])


def _read_order(body: Any) -> None:
    _expect(body["plan"] is None or isinstance(body["plan"], str), "plan")
    _expect(isinstance(body["form"], dict), "form")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} is not what it should be")


def _read_chunk(needs: Any, body: Any) -> None:
    count_trainings(needs)
    Response.from_dict(body)


def _read_training(needs: Any, body: Any) -> None:
    _expect(isinstance(needs["method"], str), "method")
    count_trainings(needs)


def _read_scores(needs: Any, body: Any) -> None:
    tasks = list(body["tasks"])
    _expect(
        len(body["scores"]) == len(needs["seeds"]) and len(body["higher"]) == len(tasks), "scores"
    )
    _expect(all(len(row) == len(tasks) for row in body["scores"]), "scores")
    for shown in body.get("shown", {}).values():
        _read_shown(shown)


def _read_answers(needs: Any, body: Any) -> None:
    _expect(len(body) == len(needs["chosen"]), "answers")
    for part in body:
        for answers in part.values():
            count = len(answers["instances"])
            _expect(all(type(each) is int for each in answers["instances"]), "instances")
            kept = [answers["said"]] if "said" in answers else list(answers["tallies"].values())
            _expect(all(len(each) == count for each in kept), "answers")
            if "shown" in answers:
                _read_shown(answers["shown"])


def _read_shown(shown: Any) -> None:
    """Answers that are kept for people to look at."""
    _expect(len(shown["instances"]) == len(shown["said"]), "shown answers")
    _expect(all(type(each) in (int, str) for each in shown["instances"]), "shown instances")


def _read_evaluation(body: Any) -> None:
    Evaluation.from_dict(body).rows()
    for tasks in body.get("shown", {}).values():
        for shown in tasks.values():
            _read_shown(shown)


_READ: dict[str, Callable[[Any], object]] = {
    "estimates": _read_estimates,
    "plan": _read_plan,
    "diagnosis": _read_diagnosis,
    "evaluation": _read_evaluation,
    "order": _read_order,
}
_READ_RESULT: dict[str, Callable[[Any, Any], object]] = {
    "response": _read_chunk,
    "piece": lambda needs, body: count_trainings(needs),
    Method.kind: _read_training,
    "evaluation": _read_scores,
    "validation": _read_answers,
    "machine": lambda needs, body: _expect(isinstance(needs["cpu"], str), "cpu"),
}


def _judge_masks(store: Store) -> tuple[list[str], int]:
    """Kept masks that are gone or not what they were, and how many there are to be."""
    from allotment.connect.masks import is_sound

    names = {
        value["png"]
        for value in store.list_label_values()
        if isinstance(value, dict) and isinstance(value.get("png"), str)
    }
    harmed = [name for name in sorted(names) if not is_sound(store.folder / MASK_FOLDER, name)]
    remedy = "put it back from a copy, or ingest its delivery again"
    return [
        f"{MASK_FOLDER}/{name}.png is gone or not what it was; {remedy}" for name in harmed
    ], len(names)
