"""Stores with something in every table that is used, and those that earlier releases wrote."""

from __future__ import annotations

from pathlib import Path

from allotment.job import Job, canonical
from allotment.ledger.journal import UNUSED_TABLE
from allotment.ledger.store import Conflict, Store

FIXTURES = Path(__file__).parents[1] / "fixtures"
AT = "2026-07-01T12:00:00+00:00"
VERSIONS = {"allotment": "0.1.0", "torch": "2.13.0+cpu"}


def probe(size: int, kind: str = "probe") -> Job:
    return Job(kind, {"task": "seg", "size": size}, VERSIONS)


def fill(held: Store) -> None:
    """Something in every table that is used."""
    held.add_settings("budget = 10\n")
    held.put_result(probe(1), {"score": 0.5})
    held.put_result(probe(2), {"score": 0.75})
    held.add_value("estimates", {"worth": [1, 2]}, probe(4).key)
    held.add_value("plan", {"seg": 2, "cls": 1}, "plan 1")
    held.add_order({"form": {"same": False}}, [("seg", "1"), ("seg", "2"), ("cls", "é")], "order 1")
    held.add_order({"form": {"same": False}}, [("seg", "3")], "order 2")
    held.cancel(2)
    held.add_delivery(
        "a.csv",
        "digest 1",
        [("seg", "1", 5), ("cls", "é", "cat")],
        [("line 4", "no such instance")],
    )
    odd = ("seg", "2", 600, "line 3", "600 is far outside what is known")
    held.add_delivery("b.csv", "digest 2", [("seg", "1", 6)], held=[odd])
    held.correct([("old", "7", 1, None)], "the wrong picture")


def check_sample(held: Store) -> None:
    """What `fill` puts in, in literal values: the fixture was written by the first release of this
    format."""
    assert held.settings() == "budget = 10\n"
    key = "abf86cf0ff653550271d1ee0e888465722017d12c4f80e38159be32828f59fbf"
    assert held.result(key) == {"score": 0.5}
    assert [(needs, body) for _, needs, body in held.results("probe")] == [
        ({"size": 1, "task": "seg"}, {"score": 0.5}),
        ({"size": 2, "task": "seg"}, {"score": 0.75}),
    ]
    assert list(held.table(UNUSED_TABLE)) == []
    plan = held.latest("plan")
    assert plan is not None
    assert (plan.number, plan.key, plan.body) == (1, "plan 1", {"cls": 1, "seg": 2})
    assert held.ordered("seg") == ["1", "2"]
    assert held.ordered("cls") == ["é"]
    assert held.cancelled() == [2]
    assert held.open_items() == [(1, "seg", "2")]
    assert held.delivered("seg", "last") == {"1": 6}
    assert held.delivered("cls") == {"é": "cat"}
    assert held.conflicts() == [Conflict("seg", "1", ((5, (1,)), (6, (2,))))]
    first, second = held.deliveries()
    assert (first.name, first.new, first.rejected) == (
        "a.csv",
        2,
        (("line 4", "no such instance"),),
    )
    assert (second.name, second.conflicts) == ("b.csv", 1)
    held.check()


def add_unused(held: Store, in_journal: bool = True) -> None:
    """A row of the table that no version writes to, mostly with a line of the journal that fits."""
    job = probe(3, "weights")
    cells = (job.key, job.kind, canonical(job.needs), canonical(job.versions), "{}", AT)
    names = ("key", "kind", "needs", "versions", "files", "at")
    if in_journal:
        with held._adding():
            held._insert(UNUSED_TABLE, **dict(zip(names, cells, strict=True)))
    else:
        sql = f"INSERT INTO {UNUSED_TABLE} ({', '.join(names)}) VALUES (?, ?, ?, ?, ?, ?)"
        held._connection.execute(sql, cells)
