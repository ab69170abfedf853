"""The books of a campaign: its orders, by what they ask for and cost, and whether items, orders and
money agree."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import stat
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from allotment.job import JSON
from allotment.ledger.schema import damaged
from allotment.ledger.store import Store, Value
from allotment.orders.order import Order
from allotment.orders.sheet import SHEET_SUFFIXES
from allotment.problem import Task, show_exact

NAME_LETTERS = 6
"""letters of a hash in the name of an order"""
MOST_SHEETS = 1000
"""of a folder that are looked at"""
LONGEST_SHEET_LINE = 100_000
"""bytes of a line of a sheet that are looked at"""
_SHEET = re.compile(rf"[0-9]{{1,9}}-([0-9a-f]{{{NAME_LETTERS}}})-[0-9a-f]{{{NAME_LETTERS}}}")


def name_campaign(store: Store) -> str:
    """A short name of a campaign that every copy of it has: it is made of the settings that it
    began with."""
    first = next(store.table("settings"), {"text": ""})
    return hashlib.sha256(first["text"].encode()).hexdigest()[:NAME_LETTERS]


def name_order(store: Store, value: Value) -> str:
    """What an order is called on its sheet: its number, the campaign's name, and a hash of what it
    is."""
    name = value.body.get("sheet")
    return (
        str(name) if name else f"{value.number}-{name_campaign(store)}-{value.key[:NAME_LETTERS]}"
    )


def is_own(name: str, campaign: str) -> bool:
    """Whether an order that a sheet names is one of this campaign, known to it or not."""
    match = _SHEET.fullmatch(name)
    return match is not None and match[1] == campaign


def find_unknown(store: Store, asked: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Of what sheets ask for, as (name of the order, task, instance), that of this campaign's
    orders which are not on record. Of one that was put on record again, that is what was not in the
    part of its sheet that came back then.
    """
    campaign, orders = name_campaign(store), store.orders()
    parts = {value.number for value in orders if "sheet" in value.body}
    names = {value.number: name_order(store, value) for value in orders}
    whole = {name for number, name in names.items() if number not in parts}
    known = {
        (names[number], task, instance)
        for number, task, instance in store.items()
        if number in parts
    }
    return [
        each
        for each in asked
        if is_own(each[0], campaign) and each[0] not in whole and each not in known
    ]


def list_lost(store: Store) -> list[Path]:
    """Sheets in the campaign's folder of its own orders that are not on record: then the store is
    older than they."""
    campaign, known = name_campaign(store), {name_order(store, value) for value in store.orders()}
    found = []
    for path in sorted(store.folder.glob("order-*"))[:MOST_SHEETS]:
        name = _read_name(path) if path.suffix.lower() in SHEET_SUFFIXES else ""
        if is_own(name, campaign) and name not in known:
            found.append(path)
    return found


def _read_name(path: Path) -> str:
    """What the first row of a sheet calls its order; nothing if it is no sheet."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            lines = [file.readline(LONGEST_SHEET_LINE).decode("utf-8-sig") for _ in range(2)]
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            row = json.loads(lines[0])
        else:
            names, cells = csv.reader(lines, delimiter=_find_delimiter(path, lines[0]))
            row = dict(zip(names, cells, strict=False))
        return str(row.get("order", ""))
    except (OSError, ValueError, AttributeError, RecursionError, csv.Error):
        return ""


def _find_delimiter(path: Path, head: str) -> str:
    """Between the cells of a sheet, which a spreadsheet may have saved since with a semicolon."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return ";" if head.count(";") > head.count(",") else ","


def read_order(store: Store, value: Value) -> Order:
    """What an order on record asks for; raises InputError if that makes no sense."""
    try:
        return Order.from_dict(value.body["order"]).rename(store.names.now)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(store.path, f"order {value.number} cannot be read: {error}") from None


def write_order(store: Store, order: Order, terms: Iterable[Task]) -> dict[str, JSON]:
    """An order as it is put on record. Where tasks were renamed it says its prices itself, since
    its plan calls them otherwise than the record."""
    names = store.names
    body: dict[str, JSON] = {"order": order.rename(names.was).to_dict()}
    asked = {task for task, _ in order.items}
    if asked & names.was.keys():
        plain = [task.to_dict() for task in terms if task.name in asked]
        body["terms"] = [each | {"name": names.keep(each["name"])} for each in plain]
    return body


def find_terms(store: Store, value: Value) -> dict[str, Task] | None:
    """The tasks of an order at the prices of its day: as its plan knew them, or as it says itself.
    None where that is not on record.
    """
    try:
        asked = {task for task, _ in value.body["order"]["items"]}
        key = value.body["plan"]
        plan = store.find_value("plan", key) if isinstance(key, str) else None
        tasks = value.body.get("terms") or (
            [] if plan is None else plan.body["plan"]["problem"]["tasks"]
        )
        terms = {task["name"]: task for task in tasks if task["name"] in asked}
        if set(terms) != asked:
            return None
        named = [task | {"name": store.names.call(name)} for name, task in terms.items()]
        return {task["name"]: Task.from_dict(task) for task in named}
    except (AttributeError, KeyError, TypeError, ValueError):  # an archive may hold anything
        return None


class Balance(NamedTuple):
    """What the books come to."""

    orders: int
    items: int
    deliveries: int
    faults: tuple[str, ...]
    """where they disagree"""


def balance(store: Store) -> Balance:
    """Hold items against orders, orders against money, and labels against deliveries."""
    orders, deliveries = store.orders(), store.deliveries()
    items: dict[int, list[tuple[str, str]]] = {}
    for number, task, instance in store.items():
        items.setdefault(number, []).append((task, instance))
    faults = [
        fault
        for value in orders
        for fault in _judge_order(store, value, items.get(value.number, []))
    ]
    fresh = store.count_fresh()
    for each in deliveries:
        if fresh.get(each.number, 0) != each.new:
            there = fresh.get(each.number, 0)
            faults.append(
                f"delivery {each.number} brought {each.new} new labels, and {there} of them are"
                " there"
            )
    return Balance(len(orders), sum(map(len, items.values())), len(deliveries), tuple(faults))


def _judge_order(store: Store, value: Value, items: list[tuple[str, str]]) -> Iterator[str]:
    try:
        order = Order.from_dict(value.body["order"]).rename(store.names.now)
    except (KeyError, TypeError, ValueError) as error:
        yield f"order {value.number} cannot be read ({type(error).__name__}: {error})"[:200]
        return
    if list(order.items) != items:
        same = len(order.items) == len(items)
        which = "but other ones are" if same else f"and {len(items)} are"
        yield f"order {value.number} asks for {len(order.items)} labels, {which} listed"
    terms = find_terms(store, value)
    if terms is None:
        return
    price = {name: task.price(order.counts[name]) for name, task in terms.items()}
    if price != order.costs:
        total, says = show_exact(sum(price.values(), Fraction(0))), show_exact(order.total)
        yield f"order {value.number} says it costs {says}, and its prices come to {total}"
