"""The store of a campaign: nothing is lost, overwritten or ordered twice, whoever is killed and
whatever is full."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.masks import check_masks
from helpers.stores import FIXTURES, add_unused, check_sample, fill, probe

from allotment.errors import InputError
from allotment.ledger import copies, disk, journal, lock, recovery, schema, store
from allotment.ledger.archive import pack, unpack
from allotment.ledger.store import Conflict, Store

FROM_TESTS = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})"
"""how programs begin that use the helpers of the tests"""
NEVER_WRITTEN = "1 row of artifacts was never written by allotment"
"""what is told of a store that `add_unused` was at"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Store.create(tmp_path / "campaign").close()
    return tmp_path / "campaign"


@pytest.fixture
def held(folder: Path) -> Iterator[Store]:
    with Store.open(folder, write=True) as opened:
        yield opened


# What goes in comes out


def test_settings_are_kept_one_after_the_other(held: Store) -> None:
    assert held.settings() is None
    assert [held.add_settings(text) for text in ("a", "a", "b", "b", "a")] == [1, 1, 2, 2, 3]
    assert held.settings() == "a"


def test_a_result_is_kept_once(held: Store) -> None:
    assert held.result(probe(1).key) is None
    held.put_result(probe(1), {"b": (1, 2.0), "a": None})
    held.put_result(probe(1), {"a": None, "b": [1, 2.0]})
    held.put_result(probe(2, "curve"), [])
    held.put_result(probe(0), 0)
    assert held.result(probe(1).key) == {"a": None, "b": [1, 2.0]}
    assert held.results("probe") == [
        (probe(1).key, {"size": 1, "task": "seg"}, {"a": None, "b": [1, 2.0]}),
        (probe(0).key, {"size": 0, "task": "seg"}, 0),
    ]
    with pytest.raises(InputError, match="never overwritten"):
        held.put_result(probe(1), {"a": None, "b": [1, 3.0]})
    assert held.result(probe(1).key) == {"a": None, "b": [1, 2.0]}


def test_a_result_too_large_for_a_row_is_refused(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGEST_BODY", 100)
    with pytest.raises(InputError, match=r"the limit is 0 MB; keep less"):
        held.put_result(probe(1), "x" * 101)
    with pytest.raises(InputError, match=r"result of job 'probe'.*: a: nan"):
        held.put_result(probe(1), {"a": float("nan")})
    assert held.results("probe") == []


def test_values_are_numbered_within_their_kind(held: Store) -> None:
    first = held.add_value("plan", {"n": 1}, "a")
    assert (first.number, first.kind, first.key, first.body) == (1, "plan", "a", {"n": 1})
    assert held.add_value("estimates", {"n": 2}, "a").number == 1
    assert held.add_value("plan", {"n": 3}, "b").number == 2
    assert held.add_value("plan", {"n": 4}, "a") == first
    assert [value.body["n"] for value in held.values("plan")] == [1, 3]
    latest = held.latest("plan")
    assert latest is not None
    assert latest.body == {"n": 3}
    assert held.latest("diagnosis") is None
    with pytest.raises(InputError, match="did you mean 'plan'"):
        held.add_value("plans", {}, "c")
    with pytest.raises(InputError, match="unknown 'order'"):
        held.add_value("order", {}, "c")


# Orders


def test_nothing_is_ordered_twice(held: Store) -> None:
    first = held.add_order({"round": 1}, [("seg", "1"), ("seg", "2"), ("cls", "1")], "a")
    assert held.add_order({"round": 9}, [("seg", "7")], "a") == first
    assert held.ordered("seg") == ["1", "2"]
    with pytest.raises(InputError) as caught:
        held.add_order({}, [("seg", "3"), ("seg", "2"), ("cls", "1"), ("seg", "3")], "b")
    assert [mistake.where for mistake in caught.value.mistakes] == [
        "task 'seg', instance '2'", "task 'cls', instance '1'", "task 'seg', instance '3'",
    ]  # fmt: skip
    assert held.ordered("seg") == ["1", "2"]
    assert held.add_order({}, [("seg", "3")], "b").number == 2
    assert held.open_items() == [(1, "seg", "1"), (1, "seg", "2"), (1, "cls", "1"), (2, "seg", "3")]
    assert [value.body for value in held.orders()] == [{"round": 1}, {}]


def test_the_tables_themselves_refuse_a_second_order(held: Store) -> None:
    held.add_order({}, [("seg", "1")], "a")
    held.add_value("plan", {}, "p")
    add = held._connection.execute
    add("INSERT INTO records VALUES (9, 'order', 2, 'b', '{}', '')")
    for sql, said in (
        ("INSERT INTO items VALUES (9, 0, 'seg', '1')", "ordered twice"),
        ("INSERT INTO items VALUES (2, 0, 'seg', '7')", "belong to an order"),
        ("INSERT INTO cancellations VALUES (2, '')", "only an order"),
        ("INSERT INTO labels VALUES (1, 5, 'seg', '1', '1')", "FOREIGN KEY"),
    ):
        with pytest.raises(sqlite3.IntegrityError, match=said):
            add(sql)


def test_what_is_cancelled_can_be_ordered_again_unless_it_came(held: Store) -> None:
    held.add_order({}, [("seg", "1"), ("seg", "2")], "a")
    held.add_delivery("x", "x", [("seg", "1", 5)])
    held.cancel(1)
    held.cancel(1)
    assert held.cancelled() == [1]
    assert held.ordered("seg") == ["1"]
    assert held.open_items() == []
    with pytest.raises(InputError, match="instance '1'"):
        held.add_order({}, [("seg", "1")], "b")
    held.add_order({}, [("seg", "2")], "c")
    held.add_delivery("y", "y", [("seg", "2", 5)])
    assert held.ordered("seg") == ["1", "2"]
    for number in (3, 0, 10**30, None):
        with pytest.raises(InputError, match="no such order"):
            held.cancel(number)  # type: ignore[arg-type]


# Deliveries


def test_a_delivery_is_sorted_into_new_known_and_contradicting(held: Store) -> None:
    held.add_order({}, [("seg", "1"), ("seg", "2"), ("cls", "1")], "a")
    first = held.add_delivery(
        "a.csv", "d1", [("seg", "1", {"png": "x"}), ("cls", "1", "cat")], [("line 4", "no such id")]
    )
    assert (first.number, first.new, first.duplicates, first.conflicts, first.again) == (
        1,
        2,
        0,
        0,
        False,
    )
    assert first.rejected == (("line 4", "no such id"),)
    assert held.open_items() == [(1, "seg", "2")]
    second = held.add_delivery(
        "b.csv", "d2", [("cls", "1", "cat"), ("seg", "1", {"png": "y"}), ("seg", "9", 1)]
    )
    assert (second.new, second.duplicates, second.conflicts) == (1, 1, 1)
    again = held.add_delivery("renamed.csv", "d1", [("cls", "1", "dog")], [])
    assert again.again
    assert (again.number, again.name, again.new, again.rejected) == (1, "a.csv", 2, first.rejected)
    assert held.deliveries() == [first, second]
    assert held.delivered("cls") == {"1": "cat"}
    assert held.conflicts() == [Conflict("seg", "1", (({"png": "x"}, (1,)), ({"png": "y"}, (2,))))]


@pytest.mark.parametrize(
    ("votes", "first", "last", "majority"),
    [
        ("a", "a", "a", "a"), ("ab", "a", "b", "a"), ("abb", "a", "b", "b"), ("aba", "a", "a", "a"),
        ("abcbc", "a", "c", "b"), ("abccb", "a", "b", "b"), ("abcc", "a", "c", "c"),
    ],
)  # fmt: skip
def test_conflicts_are_resolved_by_rule(
    held: Store, votes: str, first: str, last: str, majority: str
) -> None:
    for number, vote in enumerate(votes):
        held.add_delivery(
            "x", f"digest {number}", [("seg", "1", vote), ("seg", f"other {number}", 0)]
        )
    for rule, winner in (("first", first), ("last", last), ("majority", majority)):
        assert held.delivered("seg", rule)["1"] == winner
    with pytest.raises(InputError, match="did you mean 'majority'"):
        held.delivered("seg", "mayority")
    expected = [
        (value, tuple(at + 1 for at, vote in enumerate(votes) if vote == value))
        for value in dict.fromkeys(votes)
    ]
    assert [conflict.values for conflict in held.conflicts()] == (
        [tuple(expected)] if len(expected) > 1 else []
    )


def test_the_same_number_in_another_form_is_no_conflict(held: Store) -> None:
    held.add_delivery(
        "x", "1", [("a", "1", 1), ("b", "1", {"points": [[1, 2.0]]}), ("c", "1", 0.1)]
    )
    second = held.add_delivery(
        "y", "2", [("a", "1", 1.0), ("b", "1", {"points": [[1.0, 2]]}), ("c", "1", 0.2)]
    )
    assert (second.duplicates, second.conflicts) == (2, 1)
    assert [conflict.task for conflict in held.conflicts()] == ["c"]
    third = held.add_delivery("z", "3", [("d", "1", True), ("d", "1", 1), ("d", "1", "1")])
    assert (third.new, third.conflicts) == (1, 2)


def test_a_line_repeated_in_a_file_is_no_second_vote(held: Store) -> None:
    first = held.add_delivery("x", "1", [("seg", "1", "a"), ("seg", "1", "a"), ("seg", "1", "a")])
    assert (first.new, first.duplicates) == (1, 2)
    held.add_delivery("y", "2", [("seg", "1", "b")])
    held.add_delivery("z", "3", [("seg", "1", "b")])
    assert held.delivered("seg", "majority") == {"1": "b"}


def test_a_delivery_goes_in_whole_or_not_at_all(held: Store) -> None:
    good = [("seg", str(number), number) for number in range(50)]
    for bad in (
        (("seg", "", 1)),
        ("seg", "a\0b", 1),
        ("seg", "\ud800", 1),
        ("", "1", 1),
        ("seg", "1", float("nan")),
    ):
        with pytest.raises(InputError):
            held.add_delivery("x", "1", [*good, bad])
    assert held.deliveries() == []
    assert held.delivered("seg") == {}
    assert held.add_delivery("x", "1", good).new == 50


@pytest.mark.parametrize(
    "name",
    ["é", "'; DROP TABLE labels; --", "<script>", "=1+1", "a b", "../..", "\U0001f600", "\n"],
)
def test_names_are_only_names(held: Store, name: str) -> None:
    held.add_order({name: name}, [(name, name)], name)
    held.add_delivery(name, name, [(name, name, name)], [(name, name)])
    assert held.ordered(name) == [name]
    assert held.delivered(name) == {name: name}
    assert held.deliveries()[0].rejected == ((name, name),)


def test_times_are_noted_but_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    for place, at in enumerate(("2020-01-01T00:00:00+00:00", "2030-01-01T00:00:00+00:00")):
        monkeypatch.setattr(store, "_now", lambda at=at: at)
        with Store.create(tmp_path / str(place)) as held:
            held.put_result(probe(1), 1)
            value = held.add_value("plan", {}, "a")
            assert value.at == at
            rows = [
                {k: v for k, v in row.items() if k != "at"}
                for t in schema.list_row_tables()
                for row in held.table(t)
            ]
        kept.append(rows)
    assert kept[0] == kept[1]


# Nothing is ever overwritten


def test_no_row_can_be_changed_or_removed(held: Store) -> None:
    fill(held)
    add_unused(held)
    for table, columns in schema.list_row_tables().items():
        assert list(held.table(table)), table
        for sql in (f"UPDATE {table} SET {next(iter(columns))} = 7", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="ever overwritten"):
                held._connection.execute(sql)
        row = next(held._connection.execute(f"SELECT * FROM {table}"))
        with pytest.raises(sqlite3.IntegrityError):
            held._connection.execute(
                f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row
            )
    assert held.find_damage() == [f"{NEVER_WRITTEN} (1 in place of 0)"]


def test_the_settings_of_the_file(held: Store) -> None:
    pragmas = {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2, "user_version": 3}
    for name, expected in pragmas.items():
        assert held._connection.execute(f"PRAGMA {name}").fetchone() == (expected,)


def test_whoever_reads_cannot_write(folder: Path) -> None:
    with Store.open(folder, write=False) as reader:
        with pytest.raises(InputError, match="open for reading"):
            reader.put_result(probe(1), 1)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._connection.execute("INSERT INTO settings (text, at) VALUES ('a', 'b')")


def test_an_error_half_way_leaves_nothing(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Store._insert_all

    def fail(self: Store, table: str, names: Any, rows: Any) -> None:
        whole(self, table, names, list(rows)[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "_insert_all", fail)
    with pytest.raises(KeyboardInterrupt):
        held.add_order({}, [("seg", str(number)) for number in range(5)], "a")
    monkeypatch.undo()
    assert held.orders() == []
    assert held.add_order({}, [("seg", "0")], "a").number == 1


# One moment


def test_a_reader_sees_the_moment_it_was_opened(folder: Path) -> None:
    with Store.open(folder, write=True) as writer:
        writer.put_result(probe(1), 1)
        with Store.open(folder, write=False) as reader:
            writer.put_result(probe(2), 2)
            assert reader.result(probe(2).key) is None
            assert reader.results("probe") == [(probe(1).key, dict(probe(1).needs), 1)]
        with Store.open(folder, write=False) as reader:
            assert len(reader.results("probe")) == 2


READER = """
import sys
from allotment.ledger.store import Store
seen = set()
while True:
    with Store.open(sys.argv[1], write=False) as store:
        results, orders = store.results("probe"), store.orders()
        ordered, given = store.ordered("seg"), store.delivered("seg")
        plan = store.latest("plan")
        assert [body for _, _, body in results] == list(range(len(results))), results
        assert len(results) - 1 <= len(orders) <= len(results)
        assert len(ordered) == 5 * len(orders), (len(ordered), len(orders))
        assert len(given) % 5 == 0 and len(orders) - 1 <= len(given) / 5 <= len(orders)
        count = len(ordered) - len(given)
        assert [number for number, _, _ in store.open_items()] == [len(orders)] * count
        assert plan is None or plan.body == {"n": plan.number}
        assert store.settings() == "text"
        again = store.results("probe"), store.orders()
        assert again == (results, orders)
    if not seen:
        print("ready", flush=True)
    seen.add((len(results), len(orders), len(given)))
    if len(given) == 5 * int(sys.argv[2]):
        break
print(len(seen), flush=True)
"""


def test_eight_readers_see_consistent_states_while_one_writes(folder: Path) -> None:
    rounds = 20
    with Store.open(folder, write=True) as writer:
        writer.add_settings("text")
        command = [sys.executable, "-c", READER, str(folder), str(rounds)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        readers = [subprocess.Popen(command, **pipes) for _ in range(8)]  # type: ignore[call-overload]
        try:
            for reader in readers:
                assert reader.stdout.readline() == "ready\n", reader.stderr.read()
            for number in range(rounds):
                writer.put_result(probe(number), number)
                items = [("seg", f"{number}-{each}") for each in range(5)]
                writer.add_order({}, items, str(number))
                writer.add_value("plan", {"n": number + 1}, str(number))
                writer.add_delivery("x", str(number), [(*item, 0) for item in items])
            for reader in readers:
                out, err = reader.communicate()
                assert reader.returncode == 0, err
                assert int(out) >= 2
        finally:
            for reader in readers:
                reader.kill()
                reader.communicate()


# One writer


HOLDER = """
import sys
from allotment.ledger.store import Store
with Store.open(sys.argv[1], write=True, why=sys.argv[2]) as store:
    store.add_settings("mine")
    print("held", flush=True)
    sys.stdin.read()
"""


def start_holder(folder: Path, why: str = "allot estimate") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), why],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_writer_is_told_who_the_first_is(folder: Path) -> None:
    holder = start_holder(folder)
    with pytest.raises(InputError) as caught:
        Store.open(folder, write=True)
    said = str(caught.value)
    assert f"process {holder.pid} on " in said
    assert "(allot estimate), since 20" in said
    assert f"kill {holder.pid}" in said
    found = lock.read_holder(folder / lock.LOCK_FILE)
    assert found is not None
    assert found.pid == holder.pid
    with Store.open(folder, write=False) as reader:
        assert reader.settings() == "mine"
    holder.communicate("")
    assert lock.read_holder(folder / lock.LOCK_FILE) is None
    Store.open(folder, write=True).close()


def test_a_dead_process_holds_nothing(folder: Path) -> None:
    holder = start_holder(folder)
    holder.kill()
    holder.communicate()
    assert json.loads((folder / lock.LOCK_FILE).read_text())["pid"] == holder.pid
    with Store.open(folder, write=True, why="mine") as held:
        assert held.settings() == "mine"
        found = lock.read_holder(folder / lock.LOCK_FILE)
        assert found is not None
        assert (found.pid, found.command) == (os.getpid(), "mine")


def test_a_writer_says_how_far_it_is(folder: Path) -> None:
    path = folder / lock.LOCK_FILE
    assert lock.find_writer(folder) is None
    with Store.open(folder, write=True, why="mine") as held:
        found = lock.find_writer(folder)
        assert found is not None
        assert (found.command, found.headway) == ("mine", None)
        for done, left in ((999_999, 12345.678), (1, 1.0), (2, None)):  # each is shorter
            held.note_headway(done, 1_000_000, left)
            found = lock.find_writer(folder)
            assert found is not None
            assert found.headway is not None
            assert (found.headway.done, found.headway.left) == (done, left)
        with pytest.raises(InputError, match=r"\(mine\), since 20"):
            Store.open(folder, write=True)
        # whoever only reads is no writer and says nothing
        with Store.open(folder, write=False) as reader:
            reader.note_headway(7, 7, None)
        assert json.loads(path.read_text())["headway"]["done"] == 2
    assert path.read_bytes() == b""
    held.note_headway(3, 4, None)  # it holds nothing any more
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "changed",
    [{"done": 5}, {"done": -1}, {"done": True}, {"total": 1.0}, {"left": -1},
     {"left": float("inf")},
     {"left": float("nan")}, {"left": "9"}, {"at": None}, {"more": 1}, {"total": 10**400}],
)  # fmt: skip
def test_a_lock_that_says_odd_things_of_itself_is_one_that_says_nothing(
    folder: Path, changed: dict[str, object]
) -> None:
    path, holder = folder / lock.LOCK_FILE, lock.Holder(1, "here", "mine", "2026")
    good: dict[str, Any] = {"done": 3, "total": 4, "left": 2.5, "at": 1.8e9}
    said = json.loads(holder.write())
    path.write_text(json.dumps(said | {"headway": good}))
    assert lock.read_holder(path) == replace(holder, headway=lock.Headway(**good))
    path.write_text(json.dumps(said | {"headway": good | changed}))
    assert lock.read_holder(path) == holder


def test_one_process_does_not_write_twice_at_once(folder: Path) -> None:
    with Store.open(folder, write=True) as held:
        with pytest.raises(InputError, match=f"process {os.getpid()}"):
            Store.open(folder, write=True)
        with pytest.raises(InputError, match="writes to this campaign"):
            Store.create(folder)
        held.put_result(probe(1), 1)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pid": "x"}', "\xff", "[" * 20000, '{"pid": 1}', "null"]
)
def test_a_lock_file_may_hold_anything(folder: Path, text: str) -> None:
    (folder / lock.LOCK_FILE).write_text(text)
    assert lock.read_holder(folder / lock.LOCK_FILE) is None
    with Store.open(folder, write=True):
        (folder / lock.LOCK_FILE).write_text(text)
        with pytest.raises(InputError, match="another process writes"):
            Store.open(folder, write=True)


def test_a_lock_is_no_link_to_elsewhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (folder / lock.LOCK_FILE).unlink()
    (folder / lock.LOCK_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError):
        Store.open(folder, write=True)
    assert (tmp_path / "elsewhere").read_text() == "mine"


# Folders that are no campaigns, or not any more


def test_a_folder_without_a_store(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        for write in (True, False):
            with pytest.raises(InputError, match=r"is not a campaign.*allot init"):
                Store.open(path, write=write)
    assert list(tmp_path.iterdir()) == []


def test_a_campaign_is_created_once(folder: Path) -> None:
    with pytest.raises(InputError, match="is a campaign already"):
        Store.create(folder)
    Store.open(folder, write=True).close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        Store.create(tmp_path / "file")
    with pytest.raises(InputError):
        Store.create(tmp_path / "file" / "below")


def test_a_newer_store_is_refused_and_left_alone(folder: Path) -> None:
    path = folder / schema.STORE_FILE
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    before = path.read_bytes()
    for write in (True, False):
        with pytest.raises(InputError, match=r"newer allotment \(its format is 7.*upgrade"):
            Store.open(folder, write=write)
    assert path.read_bytes() == before


def test_another_sqlite_file_is_no_store(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / schema.STORE_FILE)
    connection.execute("CREATE TABLE a (b)")
    connection.close()
    with pytest.raises(InputError, match="another SQLite file"):
        Store.open(tmp_path, write=True)


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\0" * 5000])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / schema.STORE_FILE).write_bytes(content)
    for write in (True, False):
        with pytest.raises(InputError, match=r"damaged|another SQLite file"):
            Store.open(tmp_path, write=write)


def read_everything(folder: Path) -> None:
    with Store.open(folder, write=False) as held:
        held.settings()
        for kind in ("probe", "weights"):
            held.results(kind)
        held.result(probe(1).key)
        for kind in (*store.VALUE_KINDS, "order"):
            held.values(kind)
            held.latest(kind)
        for task in ("seg", "cls"):
            held.ordered(task)
            for rule in store.CONFLICT_RULES:
                held.delivered(task, rule)
        held.open_items()
        held.cancelled()
        held.conflicts()
        held.deliveries()
        held.check()


def test_a_damaged_file_gives_a_clear_error_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    with Store.open(folder, write=True) as held:
        fill(held)
    read_everything(folder)
    whole = (folder / schema.STORE_FILE).read_bytes()
    damaged = 0
    draw = random.Random(5)
    for _ in range(300):
        content = bytearray(whole)
        if draw.random() < 0.2:
            del content[draw.randrange(len(content)) :]
        for _ in range(draw.choice((1, 3, 30))):
            if content:
                start = draw.randrange(len(content))
                content[start : start + draw.choice((1, 1, 8, 200))] = draw.randbytes(
                    draw.choice((1, 1, 8, 200))
                )
        other = tmp_path / "other"
        shutil.rmtree(other, ignore_errors=True)
        other.mkdir()
        (other / schema.STORE_FILE).write_bytes(content)
        try:
            read_everything(other)
            with Store.open(other, write=True) as opened:
                opened.put_result(probe(77), 1)
                opened.add_value("plan", {}, "one more")
        except InputError:
            damaged += 1
    assert damaged > 150


@pytest.mark.parametrize("slipped_in", [False, True])
def test_a_row_that_no_version_writes_is_told_as_such(
    folder: Path, tmp_path: Path, slipped_in: bool
) -> None:
    with Store.open(folder, write=True) as held:
        add_unused(held, in_journal=not slipped_in)
        with pytest.raises(InputError, match=NEVER_WRITTEN):
            held.check()
    for write in (True, False):
        with pytest.raises(InputError, match=rf"{NEVER_WRITTEN}.*allot verify"):
            Store.open(folder, write=write)
    with pytest.raises(InputError, match=NEVER_WRITTEN):
        pack(folder, tmp_path / "x.zip")


# Network and read-only disks


@pytest.mark.parametrize(
    ("mounts", "refused"),
    [
        ("server:/x {here} nfs4 rw 0 0", "nfs4"),
        ("//nas/x {up} cifs rw 0 0", "cifs"),
        ("sshfs#x {up} fuse.sshfs rw 0 0", "fuse.sshfs"),
        ("C:\\134 {up} 9p rw 0 0", "9p"),
        ("/dev/sda1 {here} ext4 rw 0 0", ""),
        ("server:/x {up} nfs rw 0 0\n/dev/sdb1 {here} ext4 rw 0 0", ""),
        ("/dev/sdb1 {here} ext4 rw 0 0\nserver:/x {up} nfs rw 0 0", ""),
        ("auto {here} autofs rw 0 0\nserver:/x {here} nfs rw 0 0", "nfs"),
        ("server:/x {here}-not nfs rw 0 0", ""),
        ("server:/x {here}/labels nfs rw 0 0", ""),
        ("nonsense\n\n  \nserver:/x", ""),
    ],
)
def test_a_network_disk_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, refused: str
) -> None:
    here = tmp_path / "a campaign\twith spaces"
    escaped = str(here).replace(" ", "\\040").replace("\t", "\\011")
    Store.create(here).close()
    table = tmp_path / "mounts"
    table.write_text(
        "/dev/root / ext4 rw 0 0\n" + mounts.format(here=escaped, up=str(tmp_path)) + "\n"
    )
    monkeypatch.setattr(disk, "MOUNTS", table)
    link = tmp_path / "link"
    link.symlink_to(here)
    for path in (here, link):
        for write in (True, False):
            if not refused:
                Store.open(path, write=write).close()
                continue
            with pytest.raises(
                InputError, match=rf"network disk \({re.escape(refused)} at .*allot pack"
            ):
                Store.open(path, write=write)
    if refused:
        with pytest.raises(InputError, match="network disk"):
            Store.create(here / "new")


def test_where_mounts_are_not_told_nothing_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MOUNTS", Path("/nonexistent/mounts"))
    Store.open(folder, write=True).close()


def in_own_mounts(tmp_path: Path, prepare: str, code: str, *given: str) -> str:
    """Run code where mounts of its own do not trouble the rest of the machine; skips where that is
    not allowed."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode
    ):
        pytest.skip("no mounts of one's own here")
    script = f'{prepare} || exit 99; exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", code, *given]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    if done.returncode == 99:
        pytest.skip(f"no mounts of one's own here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return done.stdout


READ_ONLY = """
import sys
from allotment.ledger.store import Store
from allotment.errors import InputError
with Store.open(sys.argv[1], write=False) as store:
    print(store.settings())
old, new = sys.argv[1], sys.argv[1] + "/new"
for make in (lambda: Store.open(old, write=True), lambda: Store.create(new)):
    try:
        make()
    except InputError as error:
        print(error)
"""


def test_on_a_read_only_disk_a_campaign_can_be_read(folder: Path, tmp_path: Path) -> None:
    with Store.open(folder, write=True) as held:
        held.add_settings("budget = 1")
    prepare = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    lines = in_own_mounts(tmp_path, prepare, READ_ONLY, str(folder)).splitlines()
    assert lines[0] == "budget = 1"
    assert len(lines) == 3
    for line in lines[1:]:
        assert "read-only disk; copy the campaign" in line


# Full disks


FULL = """
import os
from helpers.masks import check_masks, deliver_mask
from allotment.ledger.store import Store
from allotment.errors import InputError
from allotment.job import Job
folder = sys.argv[1]
done = []
with Store.create(folder) as store:
    open(folder + "/ballast", "wb").write(bytes(300_000))
    try:
        for n in range(100_000):
            deliver_mask(store, n)
            store.put_result(Job("probe", {"n": n}), {"n": n, "text": "x" * 3000})
            done.append(n)
    except InputError as error:
        print(error)
    assert 5 < len(done) < 10_000, len(done)
    halves = [name for name in os.listdir(folder + "/labels") if name.startswith(".")]
    assert not halves, halves
def look():
    with Store.open(folder, write=False) as store:
        rows = [body["n"] for _, _, body in store.results("probe")]
        assert rows[: len(done)] == done
        assert check_masks(store)[: len(rows)] == rows
        store.check()
os.unlink(folder + "/ballast")
look()
with Store.open(folder, write=True) as store:
    for n in (*done[-1:], len(done), len(done) + 1):
        deliver_mask(store, n)
        store.put_result(Job("probe", {"n": n}), {"n": n, "text": "x" * 3000})
        done.append(n) if n not in done else None
look()
print("went on")
"""


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    prepare = f"mount -t tmpfs -o size=2m none {tmp_path}"
    first, *_, last = in_own_mounts(
        tmp_path, prepare, FROM_TESTS + FULL, str(tmp_path / "campaign")
    ).splitlines()
    assert "disk is full" in first
    assert "everything that was finished is kept" in first
    assert last == "went on"


def test_a_limit_on_the_size_of_files_is_no_disaster(tmp_path: Path) -> None:
    code = FULL.replace(
        'with Store.create(folder) as store:\n    open(folder + "/ballast",'
        ' "wb").write(bytes(300_000))',
        "import resource\nwith Store.create(folder) as store:\n"
        '    open(folder + "/ballast", "wb").write(b"")\n'
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))",
    ).replace(
        "os.unlink(",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2); os.unlink(",
    )
    done = subprocess.run(
        [sys.executable, "-c", FROM_TESTS + code, str(tmp_path / "campaign")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert "SQLITE_IOERR_WRITE" in first or "ulimit" in first
    assert last == "went on"


def test_a_store_that_may_not_grow_says_so(folder: Path) -> None:
    with Store.open(folder, write=True) as held:
        held._connection.execute("PRAGMA max_page_count = 60")
        for kept in range(1000):
            try:
                held.put_result(probe(kept), "x" * 3000)
            except InputError as error:
                said = str(error)
                break
        assert "disk is full" in said
        assert len(held.results("probe")) == kept
        held._connection.execute("PRAGMA max_page_count = 100000")
        held.put_result(probe(kept), "x" * 3000)
    with Store.open(folder, write=False) as reader:
        assert len(reader.results("probe")) == kept + 1
        reader.check()


# Killed


NURSERY = """
import os
from helpers.masks import deliver_mask
from allotment.ledger.store import Store
from allotment.job import Job
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def write(folder, n):
    while True:
        with Store.open(folder, write=True) as store:
            for _ in range(3):
                store.put_result(Job("probe", {"n": n}), {"n": n})
                say("result", n)
                deliver_mask(store, n)
                say("mask", n)
                store.add_value("plan", {"n": n}, str(n))
                say("plan", n)
                store.add_order({"n": n}, [("seg", f"{n}-{k}") for k in range(20)], str(n))
                say("order", n)
                store.add_delivery("x", str(n), [("seg", f"{n}-{k}", k) for k in range(15)])
                say("delivery", n)
                n += 1
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        say("pid", os.getpid())
        write(sys.argv[1], int(line))
    say("gone", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
"""starts writers, without the second that loading everything takes for each of them"""


def check_after_kill(folder: Path, said: list[tuple[str, int]]) -> None:
    with Store.open(folder, write=False) as reader:
        reader.check()
        results = [body["n"] for _, _, body in reader.results("probe")]
        plans = [value.body["n"] for value in reader.values("plan")]
        orders = [value.body["n"] for value in reader.orders()]
        deliveries = [int(each.digest) for each in reader.deliveries() if each.name == "x"]
        ordered, delivered = reader.ordered("seg"), reader.delivered("seg")
        found = {
            "result": results,
            "mask": check_masks(reader),
            "plan": plans,
            "order": orders,
            "delivery": deliveries,
        }
        for what, number in said:
            assert number in found[what], (what, number)
        for numbers in found.values():
            assert len(set(numbers)) == len(numbers)
        assert ordered == [f"{n}-{k}" for n in orders for k in range(20)]
        assert delivered == {f"{n}-{k}": k for n in deliveries for k in range(15)}


def test_killed_at_any_moment_nothing_that_was_said_is_lost(folder: Path) -> None:
    draw = random.Random(3)
    said: list[tuple[str, int]] = []
    start = 0
    command = [sys.executable, "-c", FROM_TESTS + NURSERY, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        for _ in range(40):
            nursery.stdin.write(f"{start}\n")
            _, pid = heard(nursery.stdout.readline())
            for _ in range(draw.randrange(1, 14)):
                said.append(heard(nursery.stdout.readline()))
            # before a mask, which takes longest
            while draw.random() < 0.8 and said[-1][0] != "result":
                said.append(heard(nursery.stdout.readline()))
            # some moment between two lines
            for _ in range(draw.randrange(10 ** draw.randrange(2, 7))):
                pass
            os.kill(pid, signal.SIGKILL)
            while (last := heard(nursery.stdout.readline()))[0] != "gone":
                said.append(last)
            assert last == ("gone", -signal.SIGKILL)
            check_after_kill(folder, said)
            start = max(number for _, number in said)
        nursery.stdin.close()
    with Store.open(folder, write=True):
        assert not list(folder.rglob(disk.HALF + "*"))


STEPS = """
import os, signal
from pathlib import Path
import allotment.files
from helpers.masks import check_masks, deliver_mask
from allotment.ledger.store import Store
from allotment.job import Job
folder = sys.argv[1]
def die_before(left):
    # every call that touches the disk is a step, and so is every row
    def count(call):
        def counted(*given, **named):
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return call(*given, **named)
        return counted
    os.fsync, os.link, Path.mkdir = count(os.fsync), count(os.link), count(Path.mkdir)
    allotment.files.open, Store._rows = count(open), count(Store._rows)
    Store._insert, Store._insert_all = count(Store._insert), count(Store._insert_all)
for steps in range(100):
    job = Job("weights", {"n": steps})
    pid = os.fork()
    if not pid:
        die_before(steps)
        with Store.open(folder, write=True) as store:
            deliver_mask(store, steps)
            store.put_result(job, steps)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with Store.open(folder, write=False) as store:
        store.check()
        known = steps in check_masks(store)
        assert store.result(job.key) is None or known
    with Store.open(folder, write=True) as store:
        assert not list(Path(folder).rglob(".half-*"))
        deliver_mask(store, steps)
        assert check_masks(store) == list(range(steps + 1))
    print(code, known, flush=True)
    if not code:
        break
"""


def test_killed_at_every_step_of_a_mask(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FROM_TESTS + STEPS, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen = [line.split() for line in done.stdout.splitlines()]
    assert [code for code, _ in seen] == [str(-signal.SIGKILL)] * (len(seen) - 1) + ["0"]
    known = [answer == "True" for _, answer in seen]
    assert known == sorted(known)  # once a step later it is known, it stays so
    assert len(seen) > 12
    assert known.count(False) > 8


def heard(line: str) -> tuple[str, int]:
    what, number = line.split()
    return what, int(number)


DIE = """
import os, signal, sys
from pathlib import Path
from allotment.ledger.archive import pack, unpack
from allotment.files import place_file
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
verb, folder, path = sys.argv[1:]
os.link = os.rename = Path.rename = die
if verb == "place":
    place_file(Path(path), b"x")
else:
    {"pack": pack, "unpack": unpack}[verb](folder, path)
"""
"""is killed when its file or folder is written but has not got its name yet"""


def die(verb: str, folder: Path, path: Path) -> list[Path]:
    """What it leaves behind."""
    done = subprocess.run(
        [sys.executable, "-c", DIE, verb, str(folder), str(path)], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not path.exists()
    left = list(path.parent.glob(disk.HALF + "*"))
    assert len(left) == 1
    return left


def test_a_file_that_was_being_placed_is_cleared_by_the_next_who_writes(folder: Path) -> None:
    (folder / disk.MASK_FOLDER).mkdir()
    left = [
        half
        for at in (folder, folder / disk.MASK_FOLDER)
        for half in die("place", folder, at / "order-1.csv")
    ]
    Store.open(folder, write=False).close()
    assert all(half.exists() for half in left)
    Store.open(folder, write=True).close()
    assert not any(half.exists() for half in left)


def test_a_killed_pack_or_unpack_is_cleared_by_the_next(folder: Path, tmp_path: Path) -> None:
    path, copy = tmp_path / "camp [1].zip", tmp_path / "copy"
    for _ in range(2):
        (left,) = die("pack", folder, path)
    pack(folder, tmp_path / "other.zip")
    assert left.exists()  # which says nothing of this one
    pack(folder, path)
    assert not left.exists()
    for _ in range(2):
        (left,) = die("unpack", path, copy)
    unpack(path, copy)
    assert sorted(os.listdir(tmp_path)) == ["camp [1].zip", "campaign", "copy", "other.zip"]


def test_what_a_living_process_writes_stays(folder: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = {pid: folder / f"{disk.HALF}{pid}-abc" for pid in (gone.pid, os.getpid(), os.getppid())}
    for path in names.values():
        path.write_bytes(b"half")
    Store.open(folder, write=True).close()
    assert [pid for pid, path in names.items() if path.exists()] == [os.getppid()]


def test_killed_while_it_was_created(tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    (folder / f"{disk.HALF}abc").mkdir(parents=True)
    (folder / f"{disk.HALF}abc" / schema.STORE_FILE).write_bytes(b"half a store")
    with pytest.raises(InputError, match="is not a campaign"):
        Store.open(folder, write=False)
    with Store.create(folder) as held:
        held.add_settings("a")
    assert sorted(os.listdir(folder)) == [lock.LOCK_FILE, schema.STORE_FILE, copies.FOLDER]


# Other versions


NEXT = "CREATE TABLE notes (text TEXT); INSERT INTO notes SELECT text FROM settings;"


@pytest.mark.parametrize("write", [True, False])
def test_an_older_store_is_brought_up_to_date(
    folder: Path, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    with Store.open(folder, write=True) as held:
        fill(held)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, NEXT))
    with Store.open(folder, write=write) as held:
        assert held._rows("PRAGMA user_version") == [(4,)]
        assert held._rows("SELECT text FROM notes") == [("budget = 10\n",)]
        assert held.settings() == "budget = 10\n"
    monkeypatch.undo()
    with pytest.raises(InputError, match="newer allotment"):
        Store.open(folder, write=write)


def test_a_step_that_fails_leaves_the_store_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        schema, "MIGRATIONS", (*schema.MIGRATIONS, NEXT + "CREATE TABLE settings (a);")
    )
    with pytest.raises(InputError):
        Store.open(folder, write=True)
    monkeypatch.undo()
    with Store.open(folder, write=True) as held:
        assert held._rows("PRAGMA user_version") == [(3,)]
        assert held._rows("SELECT name FROM sqlite_master WHERE name = 'notes'") == []


def test_bringing_up_to_date_waits_for_no_writer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(folder, write=True):
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, NEXT))
        with pytest.raises(InputError, match="writes to this campaign"):
            Store.open(folder, write=False)


def test_a_store_from_before_corrections_gets_them_and_so_does_its_copy(folder: Path) -> None:
    path = folder / schema.STORE_FILE
    path.unlink()
    schema.build(path, 2)
    connection = schema.connect(path, write=True)
    connection.execute("INSERT INTO settings (number, text, at) VALUES (1, 'budget = 10', '')")
    journal.enter_all(connection, schema.list_row_tables(2))
    copies.keep_copy(connection, folder)
    connection.close()
    path.unlink()
    assert recovery.restore(folder).lost is None
    with Store.open(folder, write=True) as held:
        assert held.settings() == "budget = 10"
        assert (held.held(), held.corrections()) == ([], [])
        assert held.correct([("seg", "1", 5, None)]) == 1
        held.check()


# Doubts and corrections


def test_what_was_corrected_counts_until_somebody_says_otherwise(held: Store) -> None:
    held.add_delivery("a", "a", [("seg", "1", 5), ("seg", "2", 6)])
    held.correct([("seg", "1", 5, 7)], "a typo")
    held.add_delivery("b", "b", [("seg", "1", 8)])
    for rule in ("first", "last", "majority"):
        assert held.delivered("seg", rule) == {"1": 7, "2": 6}
    assert held.conflicts() == []
    held.correct([("seg", "1", 7, None)])
    held.add_delivery("c", "c", [("seg", "1", 5.0), ("seg", "1", 7), ("seg", "1", 8)])
    assert held.delivered("seg") == {"2": 6}  # all of them were refused
    held.add_delivery("d", "d", [("seg", "1", 9)])
    assert held.delivered("seg") == {"1": 9, "2": 6}
    assert [(each.was, each.value, each.after) for each in held.corrections()] == [
        (5, 7, 1),
        (7, None, 2),
    ]


def test_a_label_waits_until_it_is_settled(held: Store) -> None:
    odd = [("seg", name, 900, "line 2", "far outside") for name in ("1", "2", "3", "4")]
    taken = [("seg", "4", 900)]
    held.add_delivery("a", "a", [("seg", "5", 1), *taken], held=odd)
    assert [each.instance for each in held.held()] == ["1", "2", "3"]  # 4 was taken all the same
    held.add_delivery("b", "b", [("seg", "1", 900)])
    held.correct([("seg", "2", None, 9)])
    assert [each.instance for each in held.held()] == ["3"]
    held.add_delivery("c", "c", [], held=[("seg", "3", 900.0, "line 9", "again")])
    assert [(each.instance, each.place) for each in held.held()] == [("3", "line 9")]
    assert held.delivered("seg") == {"1": 900, "2": 9, "4": 900, "5": 1}


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_the_first_format_opens_for_ever(tmp_path: Path, write: bool) -> None:
    (tmp_path / schema.STORE_FILE).write_bytes(
        gzip.decompress((FIXTURES / "campaign-v1.sqlite.gz").read_bytes())
    )
    with Store.open(tmp_path, write=write) as held:
        check_sample(held)
        if write:
            held.put_result(probe(9), 1)
            assert held.add_order({}, [("seg", "3")], "again").number == 3
