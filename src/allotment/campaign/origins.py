"""Where every label came from: at the start, by an order or by a correction, when, at what price,
and which of several counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from allotment.campaign.rounds import settle_each
from allotment.campaign.state import CampaignState
from allotment.formatting import several
from allotment.job import JSON
from allotment.ledger.store import Correction, Delivery, Store, tell_sense
from allotment.problem import show_exact
from allotment.stock.stock import OWN

AT_START, UNASKED, BY_CORRECTION = "at the start", "not ordered", "correction"
"""where a label can come from beside an order"""
ORIGIN_COLUMNS = (
    *("task", "instance", "label", "counts", "source", "delivery", "when", "price", "settled"),
)
"""of the list of all labels"""


@dataclass(frozen=True)
class Origin:
    """One thing that was said of a label: an answer, or a correction of it."""

    task: str
    instance: str
    value: JSON
    """in the form in which labels are kept; None where a label was withdrawn"""
    source: str
    when: str = ""
    delivery: str = ""
    """the file that it came in"""
    price: Fraction | None = None
    """of the label, beside the first that came of what was ordered"""
    counts: bool = False
    settled: str = ""
    """why it counts or does not, where there is something to say"""

    def to_dict(self) -> dict[str, JSON]:
        about = {"task": self.task, "instance": self.instance, "value": self.value}
        about |= {"counts": self.counts, "source": self.source, "delivery": self.delivery}
        price = None if self.price is None else show_exact(self.price)
        return about | {"when": self.when, "price": price, "settled": self.settled}


def trace(state: CampaignState, store: Store) -> list[Origin]:
    """All that was ever said of the labels of a campaign: by task, by instance, as it came."""
    records = _Records(state, store)
    found = []
    for task in state.settings.names:
        for instance in records.list_instances(task):
            found += records.tell(task, instance)
    return found


def choose_eventful(origins: Sequence[Origin]) -> list[Origin]:
    """Those of labels of which more than one thing was said, or one that does not count."""
    found = _gather(origins)
    return [
        each
        for events in found.values()
        for each in events
        if len(events) > 1 or not events[0].counts
    ]


class _Records:
    """What is on record of labels, by task and instance."""

    def __init__(self, state: CampaignState, store: Store):
        self.stock, self.rule = state.stock, state.settings.conflicts
        self.deliveries: dict[int, Delivery] = {each.number: each for each in store.deliveries()}
        self.answers = _gather(store.answers())
        self.corrections: dict[tuple[str, str], list[Correction]] = _gather(store.corrections())
        self.waiting = _gather(store.held())
        self.odd = {}
        for row in store.table("held"):
            pair = store.names.call(row["task"]), row["instance"]
            self.odd[row["delivery"], *pair, tell_sense(row["value"])] = row["reason"]
        self.begun = next(iter(store.table("settings")), {"at": ""})["at"]
        self.owner = {(task, name): number for number, task, name in state.kept}
        self.on_order = {(task, name) for _, task, name in state.open}
        self.prices = _list_prices(state)
        self.own = {task: self._read_start(task) for task in state.settings.names}

    def _read_start(self, task: str) -> dict[str, JSON]:
        places = self.stock.start[task].instances
        values = self.stock.read_own(task, places)
        names = [self.stock.ids[place] for place in places.tolist()]
        return dict(zip(names, values, strict=True))

    def list_instances(self, task: str) -> list[str]:
        """Those of which anything was ever said, as they stand in the data; then those that are not
        in them any more."""
        named = [*self.own[task]]
        for held in (self.answers, self.corrections, self.waiting):
            named += [instance for each, instance in held if each == task]
        last = len(self.stock.place)
        return sorted(set(named), key=lambda name: (self.stock.place.get(name, last), name))

    def tell(self, task: str, instance: str) -> list[Origin]:
        """All that was said of one label."""
        pair = task, instance
        said = self.corrections.get(pair, [])
        events = list(self._list_answers(pair, said[-1] if said else None))
        events += [
            Origin(*pair, each.value, BY_CORRECTION, each.at, settled=_tell_correction(each))
            for each in said
        ]
        events = self._settle(pair, events, said[-1] if said else None)
        for each in self.waiting.get(pair, ()):
            delivery = self.deliveries[each.delivery]
            source, why = self._name_source(pair), f"held back: {each.reason}"
            events.append(
                Origin(*pair, each.value, source, delivery.at, delivery.name, settled=why)
            )
        return self._add_price(pair, events)

    def _list_answers(self, pair: tuple[str, str], said: Correction | None) -> Iterator[Origin]:
        """What the data said, and what was delivered, with why it does not count if it was
        corrected."""
        task, instance = pair
        over = "" if said is None else ("withdrawn" if said.value is None else "corrected")
        if instance in self.own[task]:
            in_table = pair in self.owner and pair not in self.answers
            source, when = (self._name_source(pair), "") if in_table else (AT_START, self.begun)
            yield Origin(*pair, self.own[task][instance], source, when, settled=over)
        refused = set() if said is None else {tell_sense(said.was)}
        for each in self.answers.get(pair, ()):
            delivery, sense = self.deliveries[each.delivery], tell_sense(each.value)
            is_void = said is not None and (
                said.value is not None or each.delivery <= said.after or sense in refused
            )
            refused |= {sense} if is_void else set()
            value = self._resolve(pair, each.value)
            about = Origin(*pair, value, self._name_source(pair), delivery.at, delivery.name)
            yield replace(about, settled=over if is_void else self._tell_odd(each))

    def _tell_odd(self, answer: Any) -> str:
        key = (answer.delivery, answer.task, answer.instance, tell_sense(answer.value))
        return f"taken though odd: {self.odd[key]}" if key in self.odd else ""

    def _resolve(self, pair: tuple[str, str], value: JSON) -> JSON:
        """A label that was bought from the data set, as the data have it."""
        if value != OWN or pair[1] not in self.stock.place:
            return value
        place = np.array([self.stock.place[pair[1]]], dtype=np.int64)
        return self.stock.read_own(pair[0], place)[0]

    def _settle(
        self, pair: tuple[str, str], events: list[Origin], said: Correction | None
    ) -> list[Origin]:
        """The same with the one that counts, and why the others do not."""
        task, instance = pair
        if said is not None and said.value is not None:
            return [*events[:-1], replace(events[-1], counts=True)]
        admitted = [at for at, each in enumerate(events) if _is_open(each)]
        if not admitted or not self.stock.has(task, instance):
            return events
        given = self.stock.given.get(task, {}).get(instance)
        if given is not None:
            senses = [at for at in admitted if _is_same(events[at], self._resolve(pair, given))]
            delivered = [at for at in senses if events[at].source != AT_START]
            chosen = (delivered or senses or admitted)[-1 if self.rule == "last" else 0]
        else:
            chosen = admitted[0]  # the data's own
        return _tell_rest(events, admitted, chosen, self.rule)

    def _name_source(self, pair: tuple[str, str]) -> str:
        return f"order {self.owner[pair]}" if pair in self.owner else UNASKED

    def _add_price(self, pair: tuple[str, str], events: list[Origin]) -> list[Origin]:
        """The same with what the label cost, beside the first that was not there from the start."""
        price = self.prices.get((self.owner.get(pair, 0), pair[0]))
        if price is None or pair not in self.owner:
            return events
        paid = [at for at, each in enumerate(events) if each.source != AT_START]
        if pair in self.on_order or not paid:
            return events
        at = paid[0]
        return [*events[:at], replace(events[at], price=price), *events[at + 1 :]]


def _is_open(event: Origin) -> bool:
    """Whether it may count: what was corrected, and corrections themselves, may not."""
    is_void = event.settled in ("withdrawn", "corrected")
    return event.source != BY_CORRECTION and not is_void


def _is_same(event: Origin, value: JSON) -> bool:
    return tell_sense(event.value) == tell_sense(value)


def _tell_rest(
    events: Sequence[Origin], admitted: Sequence[int], chosen: int, rule: str
) -> list[Origin]:
    found = list(events)
    same = [at for at in admitted if _is_same(events[at], events[chosen].value)]
    total = len(admitted)
    for at in admitted:
        why = "the same" if at in same else "overruled"
        if at == chosen and len(same) == total:
            why = f"{several(total, 'answer')} agree" if total > 1 else ""
        elif at == chosen:
            why = f"the {rule} of {total} answers"
            if rule == "majority":
                why = f"{len(same)} of {total} answers"
        settled = "; ".join(filter(None, (why, events[at].settled)))
        found[at] = replace(events[at], counts=at == chosen, settled=settled)
    return found


def _tell_correction(said: Correction) -> str:
    what = "withdrawn" if said.value is None else "corrected"
    return f"{what}: {said.why}" if said.why else what


def _gather(rows: Sequence[Any]) -> dict[tuple[str, str], list[Any]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for each in rows:
        found.setdefault((each.task, each.instance), []).append(each)
    return found


def _list_prices(state: CampaignState) -> Mapping[tuple[int, str], Fraction]:
    """Of each order and task, what a label that came cost, with its share of fees and tiers."""
    if state.bills is None:
        return {}
    return {
        (bill.order, bill.task.name): spent / bill.came
        for bill, (spent, _) in zip(state.bills, settle_each(state.bills), strict=True)
        if bill.came
    }
