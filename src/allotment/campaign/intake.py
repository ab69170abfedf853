"""What became of labels that came back: new, known, in the data already, or different from what is
there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from allotment.campaign.state import CampaignState
from allotment.connect.delivery import HeldBack, Label, Parts
from allotment.job import JSON
from allotment.ledger.store import Delivery
from allotment.settings.settings import Settings
from allotment.stock.stock import Stock

ENOUGH_FOR_CLASSES = 20
"""labels that are taken to show all classes; fewer may well be without one"""
MOST_CLASSES_SHOWN = 10
"""classes that a note lists"""


@dataclass(frozen=True)
class Intake:
    """What became of a delivery."""

    parts: Parts
    delivery: Delivery
    rejected: Path | None
    """the file that lists what could not be taken"""
    same: int = 0
    """of the labels that no delivery had before, those that the data have"""
    differ: int = 0
    """and those of which the data have another"""
    rule: str = "first"
    """which of several labels of one item counts"""
    odd: Path | None = None
    """the file that lists labels that look wrong"""
    holds: bool = True
    """whether these are held back; otherwise they are only listed"""

    @property
    def new(self) -> int:
        """Labels that were not known at all; the same file again brings none."""
        return 0 if self.delivery.again else self.delivery.new - self.same - self.differ

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing in it, good or bad."""
        return not (self.parts.accepted or self.parts.rejected or self.parts.held)

    @property
    def is_useless(self) -> bool:
        """Whether nothing in it can be used, though there is something."""
        return not (self.parts.accepted or self.parts.held) and bool(self.parts.rejected)

    def to_dict(self) -> dict[str, JSON]:
        known = (
            len(self.parts.accepted)
            if self.delivery.again
            else self.delivery.duplicates + self.same
        )
        return {
            "number": self.delivery.number,
            "name": self.delivery.name,
            "new": self.new,
            "duplicates": known,
            "conflicts": 0 if self.delivery.again else self.delivery.conflicts + self.differ,
            "again": self.delivery.again,
            "rejected": [list(each) for each in self.parts.rejected],
            "listed_in": None if self.rejected is None else str(self.rejected),
            "notes": list(self.parts.notes),
            "odd": [_describe(each) for each in self.parts.held],
            "odd_listed_in": None if self.odd is None else str(self.odd),
            "held_back": len(self.parts.held) if self.holds else 0,
        }


def _describe(held: HeldBack) -> dict[str, JSON]:
    task, instance, value = held.label
    about = {"task": task, "instance": instance, "value": value}
    return about | {"where": held.where, "reason": held.reason}


def note_strange(parts: Parts, state: CampaignState, ever: Collection[tuple[str, str]]) -> Parts:
    """The same with a word on labels that nobody ordered: perhaps it is another table, or another
    campaign's sheet.

    `ever` are all (task, instance) that were ordered at some time, given up or not.
    """
    asked = {name: set(ordered) for name, ordered in state.ordered.items()}
    own = {
        task: {state.stock.ids[at] for at in mine.instances.tolist()}
        for task, mine in state.stock.start.items()
    }
    strange = {
        (task, name)
        for task, name, _ in parts.accepted
        if name not in own[task] and name not in asked[task]
    }
    late, unasked = len(strange & {*ever}), len(strange - {*ever})
    notes = [f"labels of an order that was given up, which are paid now: {late}"] if late else []
    notes += [f"labels that no order asked for: {unasked}"] if unasked else []
    return replace(parts, notes=(*parts.notes, *notes))


def compare_with_data(
    accepted: Collection[Label], stock: Stock, before: Collection[tuple[str, str]]
) -> list[bool]:
    """Of each label that the data have and no delivery had `before`, whether it is the same to
    whoever learns it."""
    own = {task: set(mine.instances.tolist()) for task, mine in stock.start.items()}
    first: dict[str, dict[str, JSON]] = {task: {} for task in own}
    for task, name, value in accepted:
        if stock.place[name] in own[task] and (task, name) not in before:
            first[task].setdefault(name, value)
    if not any(first.values()):
        return []
    whole, delivered = stock.whole(), replace(stock, given=first).open()
    found = []
    for task, values in first.items():
        for name in values:
            place = np.array([stock.place[name]], dtype=np.int64)
            had, came = (
                np.asarray(data.values(task, place), dtype=np.float64)
                for data in (whole, delivered)
            )
            found.append(np.array_equal(had, came, equal_nan=True))
    return found


def list_guessed(settings: Settings, stock: Stock) -> list[str]:
    """Tasks whose classes nobody named, so that they are those of the labels in the data."""
    if settings.source.tasks:
        return []
    with_classes = [name for name, target in stock.targets.items() if target.classes]
    return [name for name in with_classes if "classes" not in settings.targets.get(name, {})]


def tell_guessed(state: CampaignState) -> list[str]:
    """What is to be said of classes that few labels show."""
    notes = []
    for name in list_guessed(state.settings, state.stock):
        classes, count = state.stock.targets[name].classes, int(state.stock.data.known(name).sum())
        if len(classes) > 1 and count >= ENOUGH_FOR_CLASSES:
            continue
        shown = ", ".join(each[:40] for each in classes[:MOST_CLASSES_SHOWN]) + (
            ", ..." if len(classes) > MOST_CLASSES_SHOWN else ""
        )
        labels = "label" if count == 1 else f"{count} labels"
        more = (
            'If there are more, name all of them under the task in campaign.toml: classes = ["...",'
            ' "..."]'
        )
        notes.append(f"Classes of {name!r}, as read from its {labels}: {shown}. {more}.")
    return notes
