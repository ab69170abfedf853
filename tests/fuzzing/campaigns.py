"""Campaigns from elsewhere: an archive, a store, and what a whole folder says when it is asked."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from allotment.campaign.campaign import Campaign
from allotment.errors import AllotmentError, InputError
from allotment.job import Job
from allotment.ledger import schema, store
from allotment.ledger.archive import pack, unpack
from allotment.ledger.store import Store
from allotment.settings.template import write_template
from fuzzing.deliveries import _png
from fuzzing.mutators import archive_mutator, store_mutator
from fuzzing.target import Target

FIXTURES = Path(__file__).parents[1] / "fixtures"
HASH = "5" * 64
SETTINGS = write_template({"name": "scenes", "count": 200, "size": 16, "seed": 0},
                          {"classes": {"cost": 1, "have": 10}, "depth": {"cost": 6, "have": 5}},
                          "100", "neutral",
                          {"network": "usual", "steps": 5})  # fmt: skip


def _fill(held: Store) -> None:
    """A row in every table that is used."""
    held.add_settings("budget = 10\n")
    job = Job("probe", {"task": "seg", "size": 3}, {"allotment": "1"})
    held.put_result(job, {"score": 0.5})
    held.add_value("plan", {"counts": {"seg": 3}}, "first")
    held.add_order({"counts": {"seg": 2}}, [("seg", "1"), ("seg", "2"), ("cls", "1")], "one")
    held.add_order({}, [("cls", "2")], "two")
    held.cancel(2)
    (held.folder / "labels").mkdir(exist_ok=True)
    (held.folder / "labels" / f"{HASH}.png").write_bytes(_mask())
    held.add_delivery(
        "masks.zip",
        "digest",
        [("seg", "1", {"png": HASH}), ("cls", "1", "cat")],
        [("line 1", "odd")],
    )
    held.add_delivery(
        "more.csv", "digest 2", [("cls", "1", "dog"), ("cls", "1", ["a", {"b": 1.5}])]
    )


def _mask() -> bytes:
    return _png(np.zeros((2, 3), np.uint8))


def _make_campaign(folder: Path) -> None:
    with Store.create(folder) as held:
        _fill(held)
    (folder / "campaign.toml").write_text("budget = 10\n")


def _read_archive(data: bytes, place: Path) -> None:
    """What comes in can be worked with and packed again; of what does not, nothing stays."""
    path, cage = place / "x.zip", place / "cage"
    path.write_bytes(data)
    cage.mkdir()
    try:
        unpack(path, cage / "new")
    except InputError:
        assert sorted(each.name for each in place.rglob("*")) == ["cage", "x.zip"]
        raise
    _use(cage / "new")
    pack(cage / "new", place / "y.zip")
    unpack(place / "y.zip", cage / "again")


def _use(folder: Path) -> None:
    _look(folder)
    with Store.open(folder, write=True) as held:
        held.check()
        held.put_result(Job("new", {}), 1)
        held.add_order({}, [("new", "new")], "new")
        held.add_delivery("new", "new", [("new", "new", 1)])
        held.correct([("new", "new", 1, 2)])


def _look(folder: Path) -> None:
    """Everything that can be asked of a store."""
    with Store.open(folder, write=False) as held:
        for table in schema.TABLE_COLUMNS[len(schema.MIGRATIONS)]:
            list(held.table(table))
        for kind in ("plan", "estimates", "evaluation", "diagnosis", "rows"):
            held.values(kind)
            held.latest(kind)
        for rule in ("first", "last", "majority"):
            held.delivered("cls", rule)
        (
            held.orders(),
            held.open_items(),
            held.ordered("seg"),
            held.cancelled(),
            held.deliveries(),
            held.conflicts(),
            held.held(),
            held.corrections(),
            held.answers(),
            held.find_outdated(lambda task, name: False),
        )
        held.kept_items(lambda task, name: False)


def _read_store(data: bytes, place: Path) -> None:
    (place / "campaign").mkdir()
    (place / "campaign" / schema.STORE_FILE).write_bytes(data)
    told: list[InputError] = []
    for step in (_look, _use):
        try:
            step(place / "campaign")
        except InputError as error:
            told.append(error)
    if told:
        raise told[0]


def _read_campaign(data: bytes, place: Path) -> None:
    """What `allot status`, `plan` and `report` say of a folder with somebody's store."""
    folder = place / "campaign"
    folder.mkdir()
    (folder / schema.STORE_FILE).write_bytes(data)
    (folder / "campaign.toml").write_text(SETTINGS.replace("budget = 100", "budget = 400"))
    campaign, told = Campaign(folder), list[AllotmentError]()
    for step in (campaign.summarise, campaign.report, campaign.plan):
        try:
            step()
        except AllotmentError as error:
            told.append(error)
    if told:
        raise told[0]


def _plain_store(folder: Path) -> bytes:
    """A store in one file, without a log beside it."""
    with closing(sqlite3.connect(folder / schema.STORE_FILE)) as held:
        held.execute("PRAGMA journal_mode = DELETE")
        held.execute("VACUUM")
    return (folder / schema.STORE_FILE).read_bytes()


def _make_archives() -> Iterable[bytes]:
    store._now = lambda: "2026-07-01T12:00:00+00:00"
    with tempfile.TemporaryDirectory() as top:
        _make_campaign(Path(top) / "campaign")
        yield pack(Path(top) / "campaign", Path(top) / "x.zip").read_bytes()
    yield (FIXTURES / "campaign-v1.zip").read_bytes()


def _make_stores() -> Iterable[bytes]:
    store._now = lambda: "2026-07-01T12:00:00+00:00"
    with tempfile.TemporaryDirectory() as top:
        _make_campaign(Path(top) / "campaign")
        yield _plain_store(Path(top) / "campaign")
        shutil.rmtree(Path(top) / "campaign")
        (Path(top) / "campaign").mkdir()
        old = gzip.decompress((FIXTURES / "campaign-v1.sqlite.gz").read_bytes())
        (Path(top) / "campaign" / schema.STORE_FILE).write_bytes(old)
        yield _plain_store(Path(top) / "campaign")


def _make_worked() -> Iterable[bytes]:
    """The store of a campaign in its second round."""
    store._now = lambda: "2026-07-01T12:00:00+00:00"
    with tempfile.TemporaryDirectory() as top:
        campaign = Campaign.create(Path(top) / "campaign", SETTINGS)
        yield _plain_store(Path(top) / "campaign")
        campaign.record(campaign.plan()[1])
        campaign.order()
        campaign.buy()
        (Path(top) / "campaign" / "campaign.toml").write_text(
            SETTINGS.replace("budget = 100", "budget = 400")
        )
        campaign.record(campaign.plan()[1])
        campaign.order()
        yield _plain_store(Path(top) / "campaign")


STORE = ("ledger/schema", "ledger/store")

TARGETS = (
    Target("archive", _read_archive, _make_archives, ("ledger/archive", "ledger/disk", *STORE),
    archive_mutator,
           (), 1 << 14),
    Target("store", _read_store, _make_stores, STORE, store_mutator, (), 1 << 18),
    Target("campaign", _read_campaign, _make_worked,
           ("campaign/state", "campaign/summary", "campaign/campaign", *STORE), store_mutator, (),
           1 << 18),
)  # fmt: skip
