"""Labels at hand that turn out to be wrong: what they are instead, or that they are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from allotment.campaign.state import CampaignState
from allotment.connect.delivery import Parts
from allotment.errors import InputError, Mistake
from allotment.formatting import several
from allotment.job import JSON
from allotment.ledger.store import Store
from allotment.mistakes import MOST_LISTED

Said = tuple[str, str, JSON, JSON]
"""a task, an instance, what its label was, and what it is; None is none"""


@dataclass(frozen=True)
class Corrected:
    """What became of corrections."""

    said: tuple[Said, ...]
    """those that changed something"""
    same: int = 0
    """labels that were so already"""

    def to_dict(self) -> dict[str, JSON]:
        keys = ("task", "instance", "was", "value")
        changed = [dict(zip(keys, each, strict=True)) for each in self.said]
        return {"corrected": changed, "same": self.same}


def list_wanted(parts: Parts, withdraw: bool) -> list[tuple[str, str, JSON]]:
    """What a file of corrections asks for; raises InputError if any of it can't be used, since half
    of them would be hard to tell from the other."""
    wrong = [Mistake(where, reason) for where, reason in parts.rejected]
    wanted: dict[tuple[str, str], JSON] = {}
    for at, (task, instance, value) in enumerate(parts.accepted):
        if (task, instance) in wanted and not withdraw:
            what = f"says something else of {task} of {instance} than a row above; decide on one"
            wrong.append(Mistake(parts.places[at], what))
        wanted[task, instance] = None if withdraw else value
    for pair in parts.bare:
        if withdraw:
            wanted[pair] = None
        elif pair not in wanted:
            what = f"has no label for {pair[0]} of {pair[1]}; to withdraw labels, add --withdraw"
            wrong.append(Mistake(parts.name, what))
    if not wanted and not wrong:
        wrong.append(Mistake(parts.name, "has no row with a task and an instance"))
    _raise_all(wrong)
    return [(*pair, value) for pair, value in wanted.items()]


def judge_corrections(
    state: CampaignState, store: Store, wanted: Sequence[tuple[str, str, JSON]]
) -> Corrected:
    """What changes; raises InputError where there is no label that could be corrected."""
    held = {(each.task, each.instance) for each in store.held()}
    gone = {(each.task, each.instance): each.value is None for each in store.corrections()}
    wrong, said, same = [], list[Said](), 0
    for task, instance, value in wanted:
        was = find_label(state, task, instance)
        if was is None and value is None and gone.get((task, instance)):
            same += 1
        elif was is None and not gone.get((task, instance)) and (task, instance) not in held:
            what = "has no label at hand that could be corrected; what is new goes in with: allot"
            wrong.append(Mistake(f"{task} of {instance}", f"{what} ingest"))
        elif was == value and was is not None:
            same += 1
        else:
            said.append((task, instance, was, value))
    _raise_all(wrong)
    return Corrected(tuple(said), same)


def find_label(state: CampaignState, task: str, instance: str) -> JSON:
    """The label that counts, in the form in which labels are kept; None if there is none."""
    stock = state.stock
    if not stock.has(task, instance):
        return None
    if instance in stock.given.get(task, {}):
        return stock.given[task][instance]
    return stock.read_own(task, np.array([stock.place[instance]], dtype=np.int64))[0]


def _raise_all(wrong: Sequence[Mistake]) -> None:
    if wrong:
        more = len(wrong) - MOST_LISTED
        rest = [Mistake("", f"and {several(more, 'more such row')}")] if more > 0 else []
        nothing = Mistake("", "nothing was changed")
        raise InputError([*wrong[:MOST_LISTED], *rest, nothing])
