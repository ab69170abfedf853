"""The memory of a campaign: one SQLite file to which rows are added and in which none is ever
changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from allotment.amounts import short
from allotment.errors import InputError, Mistake, suggest
from allotment.job import JSON, Job, canonical, parse
from allotment.ledger.journal import TABLE as JOURNAL
from allotment.ledger.journal import find_damage
from allotment.ledger.schema import (
    JSON_KINDS,
    LARGEST_BODY,
    MIGRATIONS,
    TABLE_COLUMNS,
    Ledger,
    damaged,
    list_row_tables,
    translate,
)
from allotment.orders.order import LONGEST_NAME
from allotment.renames import Renames

VALUE_KINDS = ("estimates", "plan", "evaluation", "diagnosis")
"""what is put on record as a value: what was found or decided"""
CONFLICT_RULES = ("first", "last", "majority")
"""which of several labels of one item counts where annotators disagree"""
LABEL_COLUMNS = {"labels": ("value",), "held": ("value",), "corrections": ("was", "value")}
"""where labels are kept, in whatever state: their masks belong to the campaign"""
MOST_FAULTS = 20
"""mistakes in rows or archives that are listed at once; the others are like them"""


@dataclass(frozen=True)
class Value:
    """Something that was found or decided, numbered from 1 within its kind; `at` says when and is
    never compared."""

    number: int
    kind: str
    key: str
    body: JSON
    at: str


@dataclass(frozen=True)
class Delivery:
    """What came of a file with labels: how many are new, known already, and in conflict with one at
    hand."""

    number: int
    name: str
    digest: str
    new: int
    duplicates: int
    conflicts: int
    rejected: tuple[tuple[str, str], ...]
    at: str
    again: bool = False
    """it had been delivered before, and nothing was changed"""


@dataclass(frozen=True)
class Conflict:
    """Different labels of one instance, as they came in, each with the numbers of the deliveries
    that hold it."""

    task: str
    instance: str
    values: tuple[tuple[JSON, tuple[int, ...]], ...]


@dataclass(frozen=True)
class DeliveredLabel:
    """A label as it was delivered, whether it counts or not."""

    task: str
    instance: str
    value: JSON
    delivery: int


@dataclass(frozen=True)
class _Said:
    """What counts for a corrected label: a value, or whatever else comes after it was withdrawn."""

    value: JSON
    after: int
    refused: frozenset[str]
    """what was withdrawn: the same answer once more does not bring it back"""

    def admits(self, value: JSON, delivery: int) -> bool:
        later = self.value is None and delivery > self.after
        return later and tell_sense(value) not in self.refused


@dataclass(frozen=True)
class HeldLabel:
    """A label that came and waits for somebody's word, since something about it is odd."""

    number: int
    delivery: int
    task: str
    instance: str
    value: JSON
    place: str
    """where in the delivery it stood"""
    reason: str


@dataclass(frozen=True)
class Correction:
    """What somebody said of a label at hand: that it is another, or none."""

    number: int
    task: str
    instance: str
    was: JSON
    """what counted until then; None if nothing did"""
    value: JSON
    """what counts from then on; None if it was withdrawn"""
    after: int
    """the last delivery that had come by then, 0 if none had"""
    why: str
    at: str


class Store(Ledger):
    """Open until the end of a `with`. Whoever reads sees one moment; whoever writes is the only one
    who does."""

    names = Renames()
    """tasks that are called otherwise by now: rows are kept under their first names, and whoever
    asks and is answered need not know these"""

    # Settings

    def add_settings(self, text: str) -> int:
        """Note the settings as they are now; those that are in force already keep their number."""
        with self._adding():
            last = self._rows("SELECT number, text FROM settings ORDER BY number DESC LIMIT 1")
            if last and last[0][1] == text:
                return int(last[0][0])
            return self._insert("settings", text=_check_text(text, "settings", None), at=_now())

    def settings(self) -> str | None:
        """The text that was noted last."""
        rows = self._rows("SELECT text FROM settings ORDER BY number DESC LIMIT 1")
        return str(rows[0][0]) if rows else None

    def list_settings(self) -> list[str]:
        """All texts that were ever noted, the oldest first."""
        return [str(text) for (text,) in self._rows("SELECT text FROM settings ORDER BY number")]

    def list_labelled(self) -> set[str]:
        """The names under which labels are on record, ordered or delivered."""
        sql = "SELECT task FROM items UNION SELECT task FROM labels UNION SELECT task FROM held"
        return {str(task) for (task,) in self._rows(f"{sql} UNION SELECT task FROM corrections")}

    # Jobs

    def put_result(self, job: Job, body: JSON) -> None:
        """Keep what a job gave. The same again changes nothing; anything else is refused."""
        text = _write(body, f"result of {job}")
        with self._adding():
            if rows := self._rows("SELECT body FROM results WHERE key = ?", job.key):
                if rows[0][0] != text:
                    what = (
                        "gave another result before, and results are never overwritten; is it"
                        " random? Seed it"
                    )
                    raise InputError([Mistake(str(job), what)])
                return
            self._insert("results", **_describe(job), body=text, at=_now())

    def result(self, key: str) -> JSON | None:
        """What the job of this key gave; None if it was not done."""
        rows = self._rows("SELECT body FROM results WHERE key = ?", key)
        return self._parse(rows[0][0]) if rows else None

    def results(self, kind: str) -> list[tuple[str, JSON, JSON]]:
        """(key, needs, body) of every job of a kind, as they were done."""
        rows = self._rows(
            "SELECT key, needs, body FROM results WHERE kind = ? ORDER BY number", kind
        )
        return [(key, self._parse(needs), self._parse(body)) for key, needs, body in rows]

    def list_needs(self, kind: str) -> list[JSON]:
        """What every job of a kind that was done needed."""
        rows = self._rows("SELECT needs FROM results WHERE kind = ? ORDER BY number", kind)
        return [self._parse(needs) for (needs,) in rows]

    def list_kinds(self) -> list[str]:
        """Of jobs that were done, each once."""
        return [kind for (kind,) in self._rows("SELECT DISTINCT kind FROM results ORDER BY kind")]

    def last_result(self, kind: str) -> tuple[str, JSON, JSON] | None:
        """(key, needs, body) of the job of a kind that was done last."""
        sql = "SELECT key, needs, body FROM results WHERE kind = ? ORDER BY number DESC LIMIT 1"
        for key, needs, body in self._rows(sql, kind):
            return key, self._parse(needs), self._parse(body)
        return None

    # Values

    def add_value(self, kind: str, body: JSON, key: str) -> Value:
        """Note something found or decided; if this key was noted before, that is given back
        instead."""
        if kind not in VALUE_KINDS:
            raise InputError(
                [Mistake("kind of a value", f"unknown {short(kind)}; {suggest(kind, VALUE_KINDS)}")]
            )
        with self._adding():
            return self.find_value(kind, key) or self._note(kind, body, key)

    def values(self, kind: str) -> list[Value]:
        """All of a kind, from the first to the last."""
        sql = "SELECT number, kind, key, body, at FROM records WHERE kind = ? ORDER BY number"
        return [self._value(row) for row in self._rows(sql, kind)]

    def latest(self, kind: str) -> Value | None:
        sql = (
            "SELECT number, kind, key, body, at FROM records WHERE kind = ? ORDER BY number DESC"
            " LIMIT 1"
        )
        return next(map(self._value, self._rows(sql, kind)), None)

    def find_value(self, kind: str, key: str) -> Value | None:
        """The one of this key."""
        sql = "SELECT number, kind, key, body, at FROM records WHERE kind = ? AND key = ?"
        return next(map(self._value, self._rows(sql, kind, key)), None)

    def _note(self, kind: str, body: JSON, key: str) -> Value:
        text = _write(body, kind)
        (last,) = self._rows("SELECT MAX(number) FROM records WHERE kind = ?", kind)[0]
        value = Value(
            (last or 0) + 1, kind, _check_text(key, f"key of {kind}"), parse(text), _now()
        )
        self._insert("records", kind=kind, number=value.number, key=key, body=text, at=value.at)
        return value

    def _value(self, row: Sequence[Any]) -> Value:
        number, kind, key, body, at = row
        return Value(number, kind, key, self._parse(body), at)

    # Orders

    def add_order(self, body: JSON, items: Sequence[tuple[str, str]], key: str) -> Value:
        """Order labels of (task, instance) pairs, none of which is on order; the same key again
        orders nothing."""
        with self._adding():
            if known := self.find_value("order", key):
                return known
            self._check_items(items)
            value = self._note("order", body, key)
            (order,) = self._rows(
                "SELECT id FROM records WHERE kind = 'order' AND number = ?", value.number
            )[0]
            keep = self.names.keep
            rows = ((order, at, keep(task), instance) for at, (task, instance) in enumerate(items))
            self._insert_all("items", ("order_id", "position", "task", "instance"), rows)
            return value

    def _check_items(self, items: Sequence[tuple[str, str]]) -> None:
        wrong = []
        ordered = {
            task: set(self.ordered(task)) for task in dict.fromkeys(task for task, _ in items)
        }
        for position, (task, instance) in enumerate(items):
            _check_text(task, f"item {position + 1}: task")
            _check_text(instance, f"item {position + 1}: instance")
            if instance in ordered[task]:
                what = "is on order already; leave it out, or cancel the order it is in"
                wrong.append(Mistake(f"task {task!r}, instance {instance!r}", what))
            ordered[task].add(instance)
        if wrong:
            more = (
                [Mistake("", f"and {len(wrong) - MOST_FAULTS} more")]
                if len(wrong) > MOST_FAULTS
                else []
            )
            raise InputError(wrong[:MOST_FAULTS] + more)

    def items(self) -> list[tuple[int, str, str]]:
        """(number of the order, task, instance) of everything that was ever ordered."""
        sql = (
            "SELECT records.number, task, instance FROM items JOIN records ON records.id = order_id"
            " ORDER BY order_id, position"
        )
        return self._list_items(sql)

    def _list_items(self, sql: str) -> list[tuple[int, str, str]]:
        call = self.names.call
        return [(number, call(task), instance) for number, task, instance in self._rows(sql)]

    def orders(self) -> list[Value]:
        """All orders, cancelled ones too, from the first to the last."""
        return self.values("order")

    def ordered(self, task: str) -> list[str]:
        """The instances that labels of a task were ordered for, but for what was cancelled before
        it was delivered."""
        sql = (
            "SELECT instance FROM items WHERE task = ? AND (order_id NOT IN (SELECT order_id FROM"
            " cancellations) OR EXISTS (SELECT 1 FROM labels WHERE labels.task = items.task AND"
            " labels.instance = items.instance)) ORDER BY order_id, position"
        )
        kept = self.names.keep(task)
        return list(dict.fromkeys(instance for (instance,) in self._rows(sql, kept)))

    def open_items(self) -> list[tuple[int, str, str]]:
        """(number of the order, task, instance) of everything that was ordered and has not come
        yet."""
        sql = (
            "SELECT records.number, task, instance FROM items JOIN records ON records.id = order_id"
            " WHERE order_id NOT IN (SELECT order_id FROM cancellations) AND NOT EXISTS (SELECT 1"
            " FROM labels WHERE labels.task = items.task AND labels.instance = items.instance)"
            " ORDER BY order_id, position"
        )
        return self._list_items(sql)

    def kept_items(self, has: Callable[[str, str], bool]) -> list[tuple[int, str, str]]:
        """(number of the order, task, instance) of all that is to be paid: what came, and what is
        on order, once.

        Of a cancelled order that is what was delivered, and what is at hand otherwise, as `has`
        says of (task, name).
        """
        sql = (
            "SELECT records.number, task, instance, order_id IN (SELECT order_id FROM"
            " cancellations) AND NOT EXISTS (SELECT 1 FROM labels WHERE labels.task = items.task"
            " AND labels.instance = items.instance) FROM items JOIN records ON records.id ="
            " order_id ORDER BY order_id IN (SELECT order_id FROM cancellations), order_id,"
            " position"
        )
        owner: dict[tuple[str, str], int] = {}
        for number, kept, instance, given_up in self._rows(sql):
            task = self.names.call(kept)
            if not given_up or has(task, instance):
                # that of an order in force, if it was ordered again
                owner.setdefault((task, instance), number)
        return [(number, task, instance) for (task, instance), number in owner.items()]

    def cancel(self, number: int) -> None:
        """Take back what is open of an order; what came of it stays."""
        with self._adding():
            known = dict(
                self._rows("SELECT number, id FROM records WHERE kind = 'order' ORDER BY number")
            )
            if number not in known:
                hint = suggest(number, map(str, known))
                raise InputError(
                    [Mistake(f"order {short(number)}", f"there is no such order; {hint}")]
                )
            if number not in self.cancelled():
                self._insert("cancellations", order_id=known[number], at=_now())

    def cancelled(self) -> list[int]:
        """The numbers of the orders that were cancelled."""
        sql = "SELECT number FROM records JOIN cancellations ON order_id = id ORDER BY number"
        return [number for (number,) in self._rows(sql)]

    # Deliveries

    def add_delivery(
        self,
        name: str,
        digest: str,
        accepted: Sequence[tuple[str, str, JSON]],
        rejected: Sequence[tuple[str, str]] = (),
        held: Sequence[tuple[str, str, JSON, str, str]] = (),
    ) -> Delivery:
        """Take labels in; the same digest again changes nothing. No label takes the place of
        another: both are kept. Those that are `held` back, as (task, instance, value, place,
        reason), count for nothing until they are confirmed.
        """
        with self._adding():
            if rows := self._rows("SELECT number FROM deliveries WHERE digest = ?", digest):
                return replace(self._delivery(rows[0][0]), again=True)
            kept, tally = self._sort(accepted)
            number = self._insert(
                "deliveries",
                name=_check_text(name, "name of a delivery"),
                digest=_check_text(digest, "digest of a delivery"),
                new=tally["new"],
                duplicates=tally["duplicate"],
                conflicts=tally["conflict"],
                at=_now(),
            )
            self._insert_all(
                "labels",
                ("delivery", "task", "instance", "value"),
                ((number, *row) for row in kept),
            )
            reasons = [
                [_check_text(text, "a rejected label", None) for text in row] for row in rejected
            ]
            self._insert_all(
                "rejections", ("delivery", "place", "reason"), ((number, *row) for row in reasons)
            )
            self._insert_all(
                "held",
                ("delivery", "task", "instance", "value", "place", "reason"),
                (
                    (number, *_write_held(place, (self.names.keep(task), *rest)))
                    for place, (task, *rest) in enumerate(held)
                ),
            )
            return self._delivery(number)

    def _sort(
        self, accepted: Sequence[tuple[str, str, JSON]]
    ) -> tuple[list[tuple[str, str, str]], Counter[str]]:
        """The labels to keep, as text, and how many of all are new, duplicates or in conflict."""
        kept: list[tuple[str, str, str]] = []
        tally: Counter[str] = Counter()
        known: dict[tuple[str, str], set[str]] = {}
        here: set[tuple[str, str, str]] = set()
        for place, (task, instance, value) in enumerate(accepted):
            pair = (
                self.names.keep(_check_text(task, f"label {place + 1}: task")),
                _check_text(instance, f"label {place + 1}: instance"),
            )
            if pair not in known:
                rows = self._rows("SELECT value FROM labels WHERE task = ? AND instance = ?", *pair)
                known[pair] = {tell_sense(self._parse(text)) for (text,) in rows}
            text, sense = _write(value, f"label {place + 1}"), tell_sense(value)
            if not known[pair]:
                tally["new"] += 1
            else:
                tally["duplicate" if sense in known[pair] else "conflict"] += 1
            known[pair].add(sense)
            if (*pair, sense) not in here:  # a line that a file repeats is no second opinion
                here.add((*pair, sense))
                kept.append((*pair, text))
        return kept, tally

    def _delivery(self, number: int) -> Delivery:
        return next(each for each in self.deliveries() if each.number == number)

    def deliveries(self) -> list[Delivery]:
        """All that came, from the first to the last."""
        rejected: dict[int, list[tuple[str, str]]] = {}
        for number, place, reason in self._rows(
            "SELECT delivery, place, reason FROM rejections ORDER BY id"
        ):
            rejected.setdefault(number, []).append((place, reason))
        sql = (
            "SELECT number, name, digest, new, duplicates, conflicts, at FROM deliveries ORDER BY"
            " number"
        )
        return [
            Delivery(
                number,
                name,
                digest,
                new,
                duplicates,
                conflicts,
                tuple(rejected.get(number, ())),
                at,
            )
            for number, name, digest, new, duplicates, conflicts, at in self._rows(sql)
        ]

    def count_fresh(self) -> dict[int, int]:
        """Of each delivery with any, how many labels it was the first to bring."""
        sql = (
            "SELECT first, COUNT(*) FROM (SELECT MIN(delivery) AS first FROM labels GROUP BY task,"
            " instance) GROUP BY first"
        )
        return dict(self._rows(sql))

    def delivered(self, task: str, rule: str = "first") -> dict[str, JSON]:
        """The label of each instance of a task; where there are several, the first, the last or the
        most frequent."""
        if rule not in CONFLICT_RULES:
            raise InputError(
                [
                    Mistake(
                        "rule for conflicts",
                        f"unknown {short(rule)}; {suggest(rule, CONFLICT_RULES)}",
                    )
                ]
            )
        found: dict[str, list[JSON]] = {}
        void = self._void(task)
        for instance, text, delivery in self._rows(
            "SELECT instance, value, delivery FROM labels WHERE task = ? ORDER BY id",
            self.names.keep(task),
        ):
            value = self._parse(text)
            if instance not in void or void[instance].admits(value, delivery):
                found.setdefault(instance, []).append(value)
        labels = {instance: _choose(values, rule) for instance, values in found.items()}
        said = {instance: each.value for instance, each in void.items() if each.value is not None}
        return labels | said

    def _void(self, task: str) -> dict[str, _Said]:
        """Of each instance whose label of the task was corrected, what was said of it last."""
        last = {each.instance: each for each in self.corrections() if each.task == task}
        found = {}
        for instance, each in last.items():
            rows = self._rows(
                "SELECT value FROM labels WHERE task = ? AND instance = ? AND delivery <= ?",
                *(self.names.keep(task), instance, each.after),
            )
            refused = {tell_sense(self._parse(text)) for (text,) in rows} | {tell_sense(each.was)}
            found[instance] = _Said(each.value, each.after, frozenset(refused))
        return found

    def conflicts(self) -> list[Conflict]:
        """Every pair that has different labels and was not corrected since, in the order in which
        the pairs came."""
        found: dict[tuple[str, str], dict[str, tuple[JSON, list[int]]]] = {}
        sql = (
            "SELECT task, instance, value, delivery FROM labels WHERE (task, instance) IN (SELECT"
            " task, instance FROM labels GROUP BY task, instance HAVING COUNT(DISTINCT value) > 1)"
            " AND (task, instance) NOT IN (SELECT task, instance FROM corrections) ORDER BY id"
        )
        for kept, instance, text, number in self._rows(sql):
            task, value = self.names.call(kept), self._parse(text)
            held = found.setdefault((task, instance), {}).setdefault(tell_sense(value), (value, []))
            held[1].append(number)
        return [
            Conflict(*pair, tuple((value, tuple(numbers)) for value, numbers in held.values()))
            for pair, held in found.items()
            if len(held) > 1
        ]

    def answers(self) -> list[DeliveredLabel]:
        """Every label that was ever delivered, from the first to the last."""
        sql = "SELECT task, instance, value, delivery FROM labels ORDER BY id"
        return [
            DeliveredLabel(self.names.call(task), instance, self._parse(text), delivery)
            for task, instance, text, delivery in self._rows(sql)
        ]

    # Doubts

    def held(self) -> list[HeldLabel]:
        """Labels that wait for a word: they were not taken all the same, no other label of the same
        item came since, and none was corrected."""
        sql = (
            "SELECT id, delivery, task, instance, value, place, reason FROM held WHERE NOT EXISTS"
            " (SELECT 1 FROM labels WHERE labels.task = held.task AND labels.instance ="
            " held.instance AND (labels.delivery > held.delivery OR (labels.delivery ="
            " held.delivery AND labels.value = held.value))) AND NOT EXISTS (SELECT 1 FROM"
            " corrections WHERE corrections.task = held.task AND corrections.instance ="
            " held.instance AND corrections.after >= held.delivery) ORDER BY id"
        )
        found: dict[tuple[str, str, str], HeldLabel] = {}
        for number, delivery, kept, instance, text, place, reason in self._rows(sql):
            task, value = self.names.call(kept), self._parse(text)
            one = HeldLabel(number, delivery, task, instance, value, place, reason)
            found[task, instance, tell_sense(value)] = one  # of the same answer twice the last
        return list(found.values())

    def correct(self, said: Sequence[tuple[str, str, JSON, JSON]], why: str = "") -> int:
        """Note what labels are from now on, as (task, instance, what it was, what it is): all of
        them or none. A value of None withdraws. How many these are."""
        with self._adding():
            (after,) = self._rows("SELECT COALESCE(MAX(number), 0) FROM deliveries")[0]
            rows = []
            for place, (task, instance, was, value) in enumerate(said):
                where = f"correction {place + 1}"
                names = [_check_text(name, where) for name in (self.names.keep(task), instance)]
                texts = [_write(each, where) for each in (was, value)]
                rows.append((*names, *texts, after, _check_text(why, "reason", None), _now()))
            self._insert_all(
                "corrections", ("task", "instance", "was", "value", "after", "why", "at"), rows
            )
            return len(rows)

    def corrections(self) -> list[Correction]:
        """All that were made, from the first to the last."""
        sql = "SELECT id, task, instance, was, value, after, why, at FROM corrections ORDER BY id"
        found = []
        for number, kept, instance, was, value, after, why, at in self._rows(sql):
            task, before, now = self.names.call(kept), self._parse(was), self._parse(value)
            found.append(Correction(number, task, instance, before, now, after, why, at))
        return found

    def find_outdated(self, is_own: Callable[[str, str], bool]) -> frozenset[str]:
        """The keys of estimates that were made with a label which was corrected since; `is_own`
        says of (task, instance) whether the data had a label from the start.

        The journal says what came before what. Of rows from before there was one it does not, and
        then the times of day do.
        """
        corrections = self._rows("SELECT id, task, instance, after FROM corrections ORDER BY id")
        if not corrections:
            return frozenset()
        lines = self._find_lines(("corrections", "records", "deliveries"))
        made = self._rows("SELECT id, key, at FROM records WHERE kind = 'estimates'")
        found, begun = set(), dict[tuple[str, str], int]()
        for number, task, instance, after in corrections:
            sql = (
                "SELECT MIN(number), MIN(at) FROM deliveries WHERE number IN (SELECT delivery FROM"
                " labels WHERE task = ? AND instance = ? AND delivery <= ?)"
            )
            first, came = self._rows(sql, task, instance, after)[0]
            own, now = is_own(self.names.call(task), instance), lines["corrections", number]
            # of a label that was held back, the first correction is where it begins
            since = begun.setdefault((task, instance), now)
            for record, key, at in made:
                line = lines["records", record]
                came_before = first is not None and (lines["deliveries", first] < line or came < at)
                if line < now and (own or came_before or since < line):
                    found.add(key)
        return frozenset(found)

    def _find_lines(self, tables: Sequence[str]) -> dict[tuple[str, int], int]:
        """Of each row of these tables, the number of its line in the journal."""
        marks = ", ".join("?" * len(tables))
        sql = f"SELECT part, place, number FROM {JOURNAL} WHERE part IN ({marks})"
        return {(part, place): number for part, place, number in self._rows(sql, *tables)}

    def list_label_values(self) -> Iterator[JSON]:
        """Every label that is kept, whether it counts or not."""
        for table, columns in LABEL_COLUMNS.items():
            for row in self._rows(f"SELECT {', '.join(columns)} FROM {table}"):
                yield from map(self._parse, row)

    # The whole

    def check(self) -> None:
        """Look at every page and row; raises InputError with all that is wrong."""
        if wrong := self.find_damage():
            raise damaged(self.path, "; ".join(wrong))

    def find_damage(self) -> list[str]:
        """What is wrong with the file, its pages and its rows."""
        wrong = [f"{text}" for (text,) in self._rows("PRAGMA integrity_check(20)") if text != "ok"]
        wrong += [
            f"a row of {row[0]} without its {row[2]}"
            for row in self._rows("PRAGMA foreign_key_check")
        ]
        with translate(self.path):
            return wrong + find_damage(self._connection, list_row_tables())

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self._rows(f"SELECT COUNT(*) FROM {table}")[0][0])

    def table(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a table as plain values, for an archive."""
        columns = TABLE_COLUMNS[len(MIGRATIONS)][name]
        for row in self._rows(f"SELECT {', '.join(columns)} FROM {name} ORDER BY rowid"):
            pairs = zip(columns.items(), row, strict=True)
            yield {
                column: self._parse(cell) if kind in JSON_KINDS else cell
                for (column, kind), cell in pairs
            }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _describe(job: Job) -> dict[str, str]:
    return {
        "key": job.key,
        "kind": job.kind,
        "needs": canonical(job.needs),
        "versions": canonical(job.versions),
    }


def _write(value: JSON, where: str) -> str:
    """The text of a body, if it is one that a row can hold."""
    try:
        text = canonical(value)
    except InputError as error:
        raise InputError(mistake.under(where) for mistake in error.mistakes) from None
    if len(text) > LARGEST_BODY:
        size, limit = len(text) / 10**6, LARGEST_BODY // 10**6
        what = f"has {size:.1f} MB, the limit is {limit} MB; keep less, or round it"
        raise InputError([Mistake(where, what)])
    return text


def _write_held(place: int, row: Sequence[Any]) -> tuple[str, ...]:
    """The cells of a label that is held back."""
    task, instance, value, where, reason = row
    names = [_check_text(each, f"held label {place + 1}") for each in (task, instance)]
    texts = [_check_text(each, f"held label {place + 1}", None) for each in (where, reason)]
    return (*names, _write(value, f"held label {place + 1}"), *texts)


def _check_text(text: object, where: str, most: int | None = LONGEST_NAME) -> str:
    """A text that SQLite and every file system of an archive take; `most` is None for prose."""
    if not isinstance(text, str) or (most is not None and not 0 < len(text) <= most):
        raise InputError(
            [Mistake(where, f"{short(text)} is not a name of 1 to {LONGEST_NAME} characters")]
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            [Mistake(where, f"{short(text)} is not valid Unicode; rename it")]
        ) from None
    if "\0" in text:
        raise InputError([Mistake(where, f"{short(text)} has a NUL character in it; rename it")])
    return text


def tell_sense(value: JSON) -> str:
    """A text that is the same for labels that mean the same: 1 and 1.0 do."""

    def simplify(part: JSON) -> JSON:
        if isinstance(part, float) and part.is_integer():
            return int(part)
        if isinstance(part, Mapping):
            return {key: simplify(each) for key, each in part.items()}
        return [simplify(each) for each in part] if isinstance(part, list | tuple) else part

    return canonical(simplify(value))


def _choose(values: Sequence[JSON], rule: str) -> JSON:
    if rule == "last":
        return values[-1]
    if rule == "majority" and len(values) > 2:
        votes = Counter(map(tell_sense, values))
        most = max(votes.values())
        # of equals the one that came first
        return next(value for value in values if votes[tell_sense(value)] == most)
    return values[0]
