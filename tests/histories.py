"""The ledger against a simple model: random histories of orders, deliveries, corrections, price
changes, kills and backups, after each step of which bought, paid, open and delivered are what the
model says.

    python tests/histories.py --count 200 --length 40 --report docs/results/ledger.md
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import platform
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import begin

from allotment.campaign.campaign import Campaign
from allotment.errors import Infeasible, InputError
from allotment.ledger.books import name_order
from allotment.ledger.schema import STORE_FILE
from allotment.ledger.store import Store

TASKS = ("size", "look")
VALUES = {"size": [1.5, 2, 3.25], "look": ["old", "new"]}
Item = tuple[str, str]


@dataclass
class Order:
    """Labels that were ordered, at the prices of that day."""

    sheet: str
    items: list[Item]
    prices: dict[str, Fraction]
    is_cancelled: bool = False


@dataclass
class Model:
    """What was bought, paid and delivered: all that there is to a ledger."""

    budget: Fraction
    prices: dict[str, Fraction]
    start: dict[str, set[str]]
    rule: str = "first"
    orders: list[Order] = field(default_factory=list)
    answers: dict[Item, list[Any]] = field(default_factory=dict)
    files: set[bytes] = field(default_factory=set)

    @property
    def owners(self) -> dict[Item, Order]:
        """Of every label that is to be paid, the order that it is paid in: one that is in force, if
        there is one."""
        found: dict[Item, Order] = {}
        for order in sorted(self.orders, key=lambda order: order.is_cancelled):
            for item in order.items:
                if not order.is_cancelled or item in self.answers:
                    found.setdefault(item, order)
        return found

    @property
    def money(self) -> tuple[Fraction, Fraction, Fraction]:
        """(spent, on order, left)"""
        spent = on_order = Fraction(0)
        for item, order in self.owners.items():
            price = order.prices[item[0]]
            spent, on_order = (
                (spent + price, on_order) if item in self.answers else (spent, on_order + price)
            )
        return spent, on_order, self.budget - spent - on_order

    @property
    def open(self) -> set[Item]:
        return {
            item
            for item, order in self.owners.items()
            if item not in self.answers and not order.is_cancelled
        }

    @property
    def labels(self) -> dict[Item, Any]:
        """What counts of several answers."""
        return {
            item: values[-1 if self.rule == "last" else 0] for item, values in self.answers.items()
        }


class History:
    """A campaign and its model, side by side."""

    def __init__(self, seed: int, folder: str = "camp"):
        self.draw = random.Random(seed)
        self.folder = begin(folder, "--method", "neutral", budget=60)
        self.campaign = Campaign(self.folder)
        state = self.campaign.look()
        prices = {task.name: task.cost for task in state.settings.tasks}
        self.start = {
            name: {state.stock.ids[at] for at in mine.instances.tolist()}
            for name, mine in state.stock.start.items()
        }
        self.names = set(state.stock.ids)
        self.model = Model(state.settings.budget, prices, self.start)
        self.backup: Model | None = None
        self.sheets: dict[str, list[Item]] = {}
        """all that were ever sent, by what their orders are called; a backup takes none back"""
        self.number = 0
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        """One command, drawn at random, and everything is as the model has it."""
        verbs: list[Callable[[], str]] = [
            self.order, self.order, self.order_more, self.ingest, self.ingest, self.ingest,
            self.ingest_again,
            self.correct, self.cancel, self.change_price, self.change_budget, self.change_rule,
            self.back_up,
            self.go_back, self.go_back_with_the_store_alone, self.carry, self.plan,
        ]  # fmt: skip
        self.done[self.draw.choice(verbs)()] += 1
        self.compare()

    def compare(self) -> None:
        state, model = self.campaign.look(), self.model
        assert state.money == model.money
        assert {(task, name) for _, task, name in state.open} == model.open
        for task in TASKS:
            came = {name for each, name in model.answers if each == task}
            assert state.stock.have[task] == len(model.start[task] | came)
            assert state.account.bought(task) == sum(item[0] == task for item in model.owners)
            with Store.open(self.folder, write=False) as store:
                held = store.delivered(task, model.rule)
            assert held == {
                name: value for (each, name), value in model.labels.items() if each == task
            }
        in_force = [
            item for order in model.orders if not order.is_cancelled for item in order.items
        ]
        assert len(set(in_force)) == len(in_force), "ordered twice"
        assert self.campaign.verify().faults == ()

    def do(self, verb: Callable[[], Any]) -> Any:
        """Do it, after having been killed at it now and then; what it gives, or the error."""
        while self.draw.random() < 0.3:
            self.done[
                "killed" if kill_at(verb, self.draw.randrange(60_000)) else "not killed in time"
            ] += 1
        try:
            return verb()
        except (InputError, Infeasible) as error:
            return error

    def count_tries(self) -> int:
        """How often a verb was begun in another process."""
        return self.done["killed"] + self.done["not killed in time"]

    # The verbs, each with what it does to the model

    def plan(self) -> str:
        self.do(lambda: self.campaign.record(self.campaign.plan()[1]))
        return "plan"

    def order(self, more: bool = False) -> str:
        path = self.folder / f"sheet-{self.number}.csv"
        self.number += 1
        (_, _, left), before = self.model.money, self.count_tries()
        done = self.do(lambda: self.campaign.order(path, more=more))
        placed = self.take_note(left)
        # with --more, one for each time that the command may have come to its end
        assert placed <= 1 + (self.count_tries() - before if more else 0)
        if isinstance(done, InputError | Infeasible):
            short = left < min(self.model.prices.values()) or self.is_short(done)
            told = ("not on record", *(["is there already"] if more else []))  # its own sheet
            assert short or any(each in str(done) for each in told), done
            return "order refused"
        self.compare_sheet(path, done.value.number)
        return "order" if placed else "sheet again"

    def take_note(self, left: Fraction) -> int:
        """Take orders into the model that it does not have yet; how many there are."""
        with Store.open(self.folder, write=False) as store:
            new = store.orders()[len(self.model.orders) :]
            listed = store.items()
            names = {value.number: name_order(store, value) for value in new}
        for number, name in names.items():
            items = [(task, each) for at, task, each in listed if at == number]
            self.check_new(items)
            left -= sum(self.model.prices[task] for task, _ in items)
            assert left >= 0
            self.sheets[name] = items
            self.model.orders.append(Order(name, items, dict(self.model.prices)))
        return len(new)

    def check_new(self, items: list[Item]) -> None:
        """That nothing is ordered which is on order, or at hand."""
        for order in self.model.orders:
            assert order.is_cancelled or not set(order.items) & set(items)
        for task, name in items:
            assert (task, name) not in self.model.answers
            assert name not in self.start[task]

    def compare_sheet(self, path: Path, number: int) -> None:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        items = {(row["task"], row["instance"]) for row in rows}
        assert {row["order"] for row in rows} <= set(self.sheets)
        still = [(task, each) for at, task, each in self.campaign.look().open if at == number]
        assert items >= set(still)

    def is_short(self, error: Exception) -> bool:
        """Nothing is left to label, or to buy it with."""
        return (
            "nothing is left to label" in str(error)
            or "buys nothing" in str(error)
            or "more than" in str(error)
        )

    def order_more(self) -> str:
        return self.order(more=True)

    def ingest(self) -> str:
        """A part of any sheet that was ever sent comes back, now and then with mistakes in it."""
        if not self.sheets:
            return "nothing to ingest"
        name = self.draw.choice(list(self.sheets))
        items = self.draw.sample(self.sheets[name], self.draw.randint(1, len(self.sheets[name])))
        given = [
            (name, *item, self.draw.choice(VALUES[item[0]]))
            for item in items
            if self.draw.random() < 0.9
        ]
        blank = [
            (name, *item, "") for item in items if (name, *item) not in {each[:3] for each in given}
        ]
        self.take(given, blank)
        return "ingest"

    def take(
        self, given: list[tuple[str, str, str, Any]], blank: list[tuple[str, str, str, str]]
    ) -> None:
        wrong = [
            ("", "size", "no such row", 1),
            ("", "size", "1", "much"),
            ("", "look", "1", "a class of no kind"),
        ]
        lines = [*given, *blank, *(wrong if self.draw.random() < 0.3 else [])]
        self.draw.shuffle(lines)
        path = Path(f"back-{self.number}.csv")
        self.number += 1
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("order", "task", "instance", "label"))
            writer.writerows(lines)
        content = path.read_bytes()
        if content not in self.model.files:  # byte for byte the same file changes nothing
            self.take_up([line[:3] for line in lines if line in given or line in blank])
            for _, task, name, value in (line for line in lines if line in given):
                self.model.answers.setdefault((task, name), []).append(value)
            self.model.files.add(content)
        done = self.do(lambda: self.campaign.ingest(path))
        assert not isinstance(done, Exception), done

    def take_up(self, asked: list[tuple[Any, ...]]) -> None:
        """What a sheet asks for that is not on record was sent by a campaign that was put back
        since."""
        known = {order.sheet for order in self.model.orders if not order.sheet.startswith("again ")}
        again = {
            (order.sheet.removeprefix("again "), item)
            for order in self.model.orders
            for item in order.items
        }
        for name in dict.fromkeys(line[0] for line in asked):
            if name in known:
                continue
            open_ = {
                item
                for order in self.model.orders
                if not order.is_cancelled
                for item in order.items
            }
            kept = open_ | set(self.model.owners)
            items = [(task, each) for given, task, each in asked if given == name]
            missing = [
                item
                for item in dict.fromkeys(items)
                if item not in kept and (name, item) not in again
            ]
            if missing:
                self.model.orders.append(Order(f"again {name}", missing, dict(self.model.prices)))

    def ingest_again(self) -> str:
        """The same file a second time changes nothing."""
        files = sorted(
            path for path in Path().glob("back-*.csv") if path.read_bytes() in self.model.files
        )
        if files:
            done = self.do(lambda: self.campaign.ingest(files[0]))
            assert done.delivery.again or not done.parts.accepted
        return "the same file again"

    def correct(self) -> str:
        """Another answer for labels that came."""
        if self.model.answers:
            known = sorted(self.model.answers)
            items = self.draw.sample(known, min(len(known), self.draw.randint(1, 5)))
            self.take([("", *item, self.draw.choice(VALUES[item[0]])) for item in items], [])
        return "correct"

    def cancel(self) -> str:
        if not self.model.orders:
            return "nothing to cancel"
        number = self.draw.randint(1, len(self.model.orders))
        self.do(lambda: self.campaign.cancel(number))
        self.model.orders[number - 1].is_cancelled = True
        return "cancel"

    def edit(self, pattern: str, new: str) -> None:
        text = (self.folder / "campaign.toml").read_text()
        changed, count = re.subn(pattern, new, text, count=1, flags=re.M)
        assert count == 1
        (self.folder / "campaign.toml").write_text(changed)

    def change_price(self) -> str:
        task, price = self.draw.choice(TASKS), self.draw.choice((1, 2, 3, 5))
        self.edit(rf'(name = "{task}"\n(?:#.*\n)*)cost = \S+', rf"\g<1>cost = {price}")
        self.model.prices = self.model.prices | {task: Fraction(price)}
        return "price"

    def change_budget(self) -> str:
        budget = self.draw.choice((30, 60, 90, 120))
        self.edit(r"^budget = \S+", f"budget = {budget}")
        self.model.budget = Fraction(budget)
        return "budget"

    def change_rule(self) -> str:
        rule = self.draw.choice(("first", "last"))
        text = (self.folder / "campaign.toml").read_text()
        text = re.sub(r"^conflicts = .*\n", "", text, flags=re.M)
        (self.folder / "campaign.toml").write_text(f'conflicts = "{rule}"\n{text}')
        self.model.rule = rule
        return "rule"

    def back_up(self) -> str:
        shutil.rmtree("backup", ignore_errors=True)
        shutil.copytree(self.folder, "backup")
        self.backup = deepcopy(self.model)
        return "backup"

    def go_back(self) -> str:
        """The whole folder from a backup: what was sent since is known to its sheets alone, which
        lie elsewhere."""
        if self.backup is None:
            return "no backup"
        shutil.rmtree(self.folder)
        shutil.copytree("backup", self.folder)
        self.model = deepcopy(self.backup)
        return "whole folder from a backup"

    def go_back_with_the_store_alone(self) -> str:
        """An older store is refused, unless it is the same, until the newest copy is put back."""
        if self.backup is None:
            return "no backup"
        now = (self.folder / "campaign.toml").read_text()
        old = Store.open("backup", write=False)
        newer = Store.open(self.folder, write=False)
        same, longer = old.position == newer.position, newer.position.number > old.position.number
        old.close()
        newer.close()
        if same or not longer:
            return "no older store"
        for path in self.folder.glob(f"{STORE_FILE}*"):
            path.unlink()
        shutil.copy(Path("backup", STORE_FILE), self.folder)
        with pytest.raises(InputError, match="is older than its own copy"):
            self.campaign.look()
        self.campaign.restore()
        assert (self.folder / "campaign.toml").read_text() == now
        return "older store"

    def carry(self) -> str:
        """Into an archive and out of it, to another folder."""
        path = Path(f"carried-{self.number}.zip")
        self.number += 1
        self.do(lambda: None if path.exists() else self.campaign.pack(path))
        shutil.rmtree(self.folder)
        Campaign.unpack(path, self.folder)
        return "pack and unpack"


def kill_at(verb: Callable[[], Any], event: int) -> bool:
    """Do something in another process that is killed before its n-th call of a function; whether it
    was."""
    with warnings.catch_warnings():
        # of threads, which the child has none of
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        left = event

        def count(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count)
            verb()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def play(seed: int, length: int) -> Counter[str]:
    """A history in the current folder; how often each verb was done. Raises AssertionError where
    the model differs."""
    history = History(seed)
    for _ in range(length):
        history.step()
    return history.done


# The report


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first history")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    done: Counter[str] = Counter()
    wrong: list[str] = []
    begin = time.monotonic()
    for seed in range(given.first, given.first + given.count):
        with tempfile.TemporaryDirectory() as top, contextlib.chdir(top):
            try:
                done += play(seed, given.length)
            except Exception as error:
                wrong.append(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}")
                print(wrong[-1], file=sys.stderr)
    text = _write(given, done, wrong, time.monotonic() - begin)
    print(text)
    if given.report:
        given.report.write_text(text)
    return int(bool(wrong))


def _write(given: argparse.Namespace, done: Counter[str], wrong: list[str], seconds: float) -> str:
    asides = ("killed", "not killed in time")
    verbs = [name for name in sorted(done) if name not in asides]
    table = "\n".join(f"| {name} | {done[name]:,} |" for name in verbs)
    faults = "\n".join(f"- {line}" for line in wrong) or "None."
    machine = f"{os.cpu_count()} cores of a shared {platform.system()} {platform.machine()} machine"
    return REPORT.format(
        command=(
            f"python tests/histories.py --count {given.count} --length {given.length} --first"
            f" {given.first}"
        ),
        date=date.today().isoformat(),
        machine=machine,
        python=platform.python_version(),
        minutes=seconds / 60,
        count=given.count,
        length=given.length,
        steps=sum(done[name] for name in verbs),
        killed=done["killed"],
        late=done["not killed in time"],
        table=table,
        faults=faults,
    )


REPORT = """# The ledger against a simple model

`{command}`, {date};
{machine}, Python {python}; {minutes:.0f} minutes.

{count} histories of {length} steps each, {steps:,} steps in all. Each step is a verb drawn by the
history's seed, done to a campaign and to a model of thirty lines that knows orders, prices and
answers. Before a third of the verbs the same verb was begun in another process and killed at a
random call of a function: {killed:,} times, and {late:,} times it was done before its end came.

| verb | times |
|---|---:|
{table}

After each step all of these hold:

- what is spent, on order and left is what the model says, to the unit, each order at the prices of
  its day;
- the items that are open are the model's, and so are the numbers of labels at hand and bought of
  each task;
- the label of each instance is the one that the rule for conflicts chooses of all that came;
- nothing is on order twice, and nothing is ordered that is at hand;
- a file that was taken in before changes nothing, also when it was killed on its way;
- after the whole folder came from a backup, sheets that were sent since are taken in and paid once;
- a store alone that came from a backup is refused until the newest copy is put back, and then
  nothing is lost;
- a campaign that was packed and unpacked is the same;
- `allot verify` finds nothing.

## Where the model was not met

{faults}
"""

if __name__ == "__main__":
    sys.exit(main())
