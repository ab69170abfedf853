"""What is harmed is noticed: rows that were changed, books that disagree, stores that went back;
and put right."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzzing.mutators import signed
from helpers.archives import rows_of, zipped
from helpers.campaigns import allot, begin, fill, fine, refused, sheet
from helpers.stores import FIXTURES

from allotment.campaign.campaign import Campaign
from allotment.connect.masks import take_mask
from allotment.data.dataset import Target
from allotment.errors import InputError
from allotment.ledger import copies, journal, schema
from allotment.ledger.books import balance, is_own, name_campaign
from allotment.ledger.store import Store

ANSWERS = {"size": 3, "look": "old"}
COMMANDS = (["status"], ["plan"], ["order"], ["report"], ["check"], ["pack"])


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder() -> Path:
    """A campaign with an order that came back, one that was given up, and one that is open."""
    made = begin("camp", "--method", "neutral", budget=60)
    fine("order", made)
    fine("ingest", made, fill(made / "order-1.csv", Path("first.csv"), ANSWERS, most=12))
    fine("order", made, "--cancel", 1)
    fine("order", made)
    return made


def edit(folder: Path, *statements: str) -> None:
    """Change a store as a careless hand would, and leave no trace in its declarations."""
    connection = sqlite3.connect(folder / schema.STORE_FILE, isolation_level=None)
    declared = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for name, _ in declared:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in declared:
        connection.execute(sql)
    connection.close()


def sign_again(folder: Path) -> None:
    """Write the journal anew, as a forger would."""
    edit(folder, f"DELETE FROM {journal.TABLE}")
    connection = sqlite3.connect(folder / schema.STORE_FILE)
    journal.enter_all(connection, schema.list_row_tables())
    connection.commit()
    connection.close()
    shutil.rmtree(folder / copies.FOLDER, ignore_errors=True)


def tables_of(folder: Path) -> dict[str, list[Any]]:
    with Store.open(folder, write=False) as store:
        return {table: list(store.table(table)) for table in schema.TABLE_COLUMNS[3]}


# --- rows that are not as they were written ---


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE labels SET value = '920.3' WHERE id = 2",
            r"1 label is not as it was written \(2: task '\w+', inst",
        ),
        ("DELETE FROM items WHERE position % 4 = 0", r"\d+ ordered items are missing \(1, 5, "),
        ("DELETE FROM labels WHERE id = 12", r"1 label is missing \(12\)"),
        ("DELETE FROM cancellations", r"1 cancellation is missing"),
        (
            "INSERT INTO labels VALUES (900, 1, 'size', '70', '5')",
            "1 label was never written by allotment",
        ),
        (
            "INSERT INTO artifacts VALUES (1, 'a', 'weights', '{}', '{}', '{}', '2026')",
            "1 row of artifacts was never written by allotment",
        ),
        (
            "UPDATE settings SET text = text || '#'",
            "1 version of the settings is not as it was written",
        ),
        (
            "UPDATE records SET body = '{}' WHERE kind = 'plan' AND number = 1",
            r"1 record is not .*kind 'plan'",
        ),
        (
            "UPDATE records SET at = '2020-01-01T00:00:00+00:00' WHERE id = 1",
            "1 record is not as it was written",
        ),
        ("UPDATE deliveries SET new = 11", "1 delivery is not as it was written"),
        ("DELETE FROM journal WHERE number = 3", r"1 line of the journal is missing \(3\)"),
        ("UPDATE journal SET hash = 'x' WHERE number = 3", "not as (it was|they were) written"),
        (
            "UPDATE journal SET part = 'nonsense' WHERE number = 3",
            "1 line of the journal was never written",
        ),
    ],
)
def test_what_was_changed_is_named_by_every_command_and_can_be_put_back(
    folder: Path, statement: str, said: str
) -> None:
    whole, before = tables_of(folder), fine("status", folder)
    edit(folder, statement)
    harmed = (folder / schema.STORE_FILE).read_bytes()
    for command in COMMANDS:
        result = allot(command[0], folder)
        assert result.exit_code == 2, command
        told = result.stderr or result.stdout
        assert re.search(said, told), told
        assert "allot verify camp" in told
    assert not Path("camp.zip").exists()
    told = allot("verify", folder)
    assert told.exit_code == 2
    assert re.search(said, told.stdout)
    assert "allot restore camp" in told.stdout
    assert (folder / schema.STORE_FILE).read_bytes() == harmed
    told = fine("restore", folder)
    assert "What was there is kept as camp/harmed-1.sqlite." in told
    assert "may not be in the copy" not in told
    assert tables_of(folder) == whole
    assert fine("status", folder) == before
    assert (folder / "harmed-1.sqlite").read_bytes() == harmed


def test_every_cell_of_every_table_is_under_the_hash(folder: Path) -> None:
    whole = (folder / schema.STORE_FILE).read_bytes()
    seen = 0
    for table, columns in schema.TABLE_COLUMNS[3].items():
        for column, kind in columns.items():
            if not list(tables_of(folder)[table]) or (table, column) in KEYS:
                continue
            value = "7001" if kind in ("number", "count") else f"substr({column}, 2) || 'x'"
            value = "'evaluation'" if (table, column) == ("records", "kind") else value
            edit(
                folder,
                f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT MAX(rowid) FROM"
                f" {table})",
            )
            with pytest.raises(InputError, match="is damaged"):
                Store.open(folder, write=False)
            with pytest.raises(InputError, match="is damaged"):
                Store.open(folder, write=True)
            (folder / schema.STORE_FILE).write_bytes(whole)
            seen += 1
    assert seen > 25


KEYS = {(table, name) for table in schema.TABLE_COLUMNS[3] for name in ("order_id",)}
"""columns that point at rows, which SQLite itself guards"""


def test_a_sound_campaign_is_called_so(folder: Path) -> None:
    told = fine("verify", folder)
    assert "Everything is as it was written, and agrees." in told
    found = json.loads(fine("verify", folder, "--json"))
    assert found["sound"] is True
    assert found["faults"] == []
    assert [each["lacks"] for each in found["copies"]][-1] == 0
    assert "nothing to restore" in refused(2, "restore", folder)


def test_a_view_in_the_place_of_a_table_is_refused_before_it_is_asked(folder: Path) -> None:
    endless = (
        "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT a AS id, 1, 1, 1, 1"
        " FROM n"
    )
    connection = sqlite3.connect(folder / schema.STORE_FILE, isolation_level=None)
    connection.execute("ALTER TABLE labels RENAME TO other")
    connection.execute(f"CREATE VIEW labels AS {endless}")
    connection.close()
    limited = [
        sys.executable,
        "-c",
        "from allotment.cli import main; main()",
        "status",
        str(folder),
    ]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = subprocess.run(limited, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2, done.stderr
    assert "is damaged (it has a " in done.stderr


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE VIEW v AS SELECT 1",
        (
            "CREATE TRIGGER t AFTER INSERT ON labels BEGIN INSERT INTO rejections VALUES (NULL, 1,"
            " 'a', 'b'); END"
        ),
        "CREATE TABLE notes (text TEXT)",
        "DROP TRIGGER items_once",
        "DROP INDEX labels_by_pair",
    ],
)
def test_declarations_that_are_not_ours(folder: Path, declared: str) -> None:
    connection = sqlite3.connect(folder / schema.STORE_FILE, isolation_level=None)
    connection.execute(declared)
    connection.close()
    assert re.search(
        r"is damaged \(it has (a \w+ '\w+' that is none of allotment's|no \w+ '\w+')",
        refused(2, "status", folder),
    )


# --- books that disagree, in a store whose hashes fit ---


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "DELETE FROM items WHERE position = 1",
            r"order 1 asks for \d+ labels, and \d+ are listed",
        ),
        (
            "UPDATE items SET instance = '80' WHERE position = 1 AND order_id = 2",
            r"but other ones are listed",
        ),
        (
            (
                'UPDATE records SET body = replace(body, \'"size":"\', \'"size":"1\') WHERE kind'
                " = 'order'"
            ),
            "says it costs",
        ),
        (
            "UPDATE deliveries SET new = 11",
            "delivery 1 brought 11 new labels, and 12 of them are there",
        ),
        (
            "UPDATE records SET body = 'null' WHERE kind = 'order' AND number = 2",
            "order 2 cannot be read",
        ),
        (
            "UPDATE records SET body = '[]' WHERE kind = 'plan' AND number = 1",
            "plan 1 on record cannot be read",
        ),
        (
            "UPDATE records SET number = 'x' WHERE kind = 'plan' AND number = 1",
            "1 record is not as it was written",
        ),
        ("UPDATE labels SET value = x'00' WHERE id = 2", "1 label is not as it was written"),
    ],
)
def test_items_orders_and_money_agree_or_nothing_goes_on(
    folder: Path, statement: str, said: str
) -> None:
    edit(folder, statement)
    sign_again(folder)
    for command in (["status"], ["plan"], ["order"], ["pack"]):
        assert re.search(said, refused(2, command[0], folder)), command
    assert re.search(said, allot("verify", folder).stdout)


# --- copies ---


def test_copies_are_the_last_three_and_the_newest_has_everything(folder: Path) -> None:
    kept = copies.list_copies(folder)
    with Store.open(folder, write=False) as store:
        position = store.position
    assert len(kept) == copies.MOST_COPIES
    assert kept[-1].number == position.number
    assert copies.find_position_of(kept[-1].path) == position


@pytest.mark.parametrize("content", [b"", b"garbage" * 3000, b"SQLite format 3\0" + b"\0" * 9000])
def test_a_file_that_is_no_store_any_more_can_be_put_right(folder: Path, content: bytes) -> None:
    whole = tables_of(folder)
    (folder / schema.STORE_FILE).write_bytes(content)
    told = allot("verify", folder)
    assert told.exit_code == 2, told.output
    assert "allot restore camp" in told.output
    fine("restore", folder)
    assert tables_of(folder) == whole


def test_copies_of_another_history_are_in_nobodys_way(folder: Path) -> None:
    """As where the store of another campaign was put in this one's place on purpose."""
    other = begin("other", "--method", "neutral", budget=40)
    for path in folder.glob("campaign.*"):
        path.unlink()
    for path in other.glob("campaign.*"):
        shutil.copy(path, folder)
    fine("order", folder, "-o", "own.csv")
    with Store.open(folder, write=False) as store:
        position = store.position
    assert position in [copies.find_position_of(copy.path) for copy in copies.list_copies(folder)]


def test_a_store_that_is_gone_comes_back(folder: Path) -> None:
    whole = tables_of(folder)
    for path in folder.glob("campaign.sqlite*"):
        path.unlink()
    assert "campaign.sqlite is gone; put back its last copy: allot restore camp" in refused(
        2, "status", folder
    )
    assert "kept as" not in fine("restore", folder)
    assert tables_of(folder) == whole


def test_a_copy_that_is_harmed_itself_is_passed_over(folder: Path) -> None:
    oldest, *newest = (copy.path for copy in copies.list_copies(folder))
    for path in newest:
        path.write_bytes(path.read_bytes()[:-5000] + b"x" * 5000)
    edit(folder, "UPDATE labels SET value = '7'")
    told = fine("restore", folder)
    assert oldest.name in told
    assert "may not be in the copy. If an order was sent since, take its sheet in:" in told
    assert "is the sheet of an order that is not on record" in fine("status", folder)
    assert all(path.with_name(f"{path.name}.harmed").exists() for path in newest)
    fine("ingest", folder, folder / "order-2.csv")
    assert "Everything is as it was written" in fine("verify", folder)


def test_without_a_copy_it_says_what_else_there_is(folder: Path) -> None:
    shutil.rmtree(folder / copies.FOLDER)
    edit(folder, "UPDATE labels SET value = '7'")
    assert "put back a copy or an archive of `allot pack`" in refused(2, "status", folder)
    assert "no copy of its store is there" in refused(2, "restore", folder)


def test_one_who_was_killed_leaves_no_store_without_a_copy(folder: Path) -> None:
    shutil.rmtree(folder / copies.FOLDER)
    fine("order", folder, "-o", "again.csv")
    assert [copy.number for copy in copies.list_copies(folder)] == [
        Store.open(folder, write=False).position.number
    ]


def test_a_copy_takes_no_room_that_is_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / copies.FOLDER)
    monkeypatch.setattr(copies, "ROOM", 10**12)
    fine("order", folder, "-o", "again.csv")
    assert copies.list_copies(folder) == []


@pytest.mark.parametrize("stopped", ["rename", "copyfile"])
def test_a_restore_that_was_stopped_can_be_begun_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    whole = tables_of(folder)
    edit(folder, "UPDATE labels SET value = '7'")
    module = os if stopped == "rename" else shutil

    def stop(*given: Any) -> None:
        if stopped == "rename" and not str(given[0]).endswith(schema.STORE_FILE):
            return os.replace(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, stopped, stop)
        with pytest.raises(KeyboardInterrupt):
            Campaign(folder).restore()
    Campaign(folder).restore()
    assert tables_of(folder) == whole
    assert not list(folder.glob(".half-*"))


# --- going back ---


@pytest.fixture
def early(tmp_path: Path) -> Path:
    """A campaign as it was before its first order."""
    made = begin("camp", "--method", "neutral", budget=60)
    fine("plan", made)
    shutil.copytree(made, "early")
    return made


def test_an_older_store_is_noticed_and_gives_way_to_the_newest_copy(early: Path) -> None:
    fine("order", early)
    filled = fill(early / "order-1.csv", Path("filled.csv"), ANSWERS)
    fine("ingest", early, filled)
    before = fine("status", early)
    for path in early.glob("campaign.sqlite*"):
        path.unlink()
    shutil.copy(Path("early", schema.STORE_FILE), early)
    for command in (
        ["status"],
        ["plan"],
        ["order", "-o", "twice.csv"],
        ["ingest", filled],
        ["report"],
    ):
        told = refused(2, command[0], early, *command[1:])
        assert re.search(
            r"is older than its own copy copies/\d+.sqlite, which has \d+ more entries", told
        )
        assert "allot restore camp" in told
    assert "older than its copy" in allot("verify", early).stdout
    fine("restore", early)
    assert fine("status", early) == before


@pytest.mark.parametrize("form", ["order-1.csv", "order-1.jsonl"])
def test_orders_that_a_folder_from_a_backup_does_not_know_are_put_on_record_again(
    early: Path, form: str
) -> None:
    fine("order", early, "-o", early / form)
    filled = (
        early / form
        if form.endswith("l")
        else fill(early / form, Path("filled.csv"), ANSWERS, most=20)
    )
    if form.endswith("l"):
        lines = [json.loads(line) for line in filled.read_text().splitlines()]
        for line in lines[:20]:
            line["label"] = ANSWERS[line["task"]]
        Path("filled.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        filled = Path("filled.jsonl")
    sent = (early / form).read_bytes()
    fine("ingest", early, filled)
    before = fine("status", early, "--json")
    shutil.rmtree(early)
    shutil.copytree("early", early)
    (early / form).write_bytes(sent)
    assert json.loads(fine("status", early, "--json"))["next"] == f"allot ingest camp camp/{form}"
    assert "is the sheet of an order that is not on record" in fine("status", early)
    for command in (["plan"], ["order"], ["order", "-o", "twice.csv", "--more"]):
        told = refused(2, command[0], early, *command[1:])
        assert (
            "To put the order on record again, with what it has of labels: allot ingest camp"
            f" camp/{form}" in told
        )
    told = fine("ingest", early, filled)
    assert "20 new labels" in told
    assert re.search(
        r"Order 1-\w{6}-\w{6} was not on record.* It is on record again as order 1, \d+ labels for",
        told,
    )
    assert "no order asked for" not in told
    after = json.loads(fine("status", early, "--json"))
    assert {key: after[key] for key in ("spent", "on_order", "left", "tasks")} == {
        key: json.loads(before)[key] for key in ("spent", "on_order", "left", "tasks")
    }
    fine("verify", early)
    assert "taken in before" in fine("ingest", early, filled)


def test_a_sheet_in_two_parts_is_two_orders_of_the_same_money(early: Path) -> None:
    fine("order", early)
    filled = fill(early / "order-1.csv", Path("filled.csv"), ANSWERS)
    fine("ingest", early, filled)
    before = json.loads(fine("status", early, "--json"))
    shutil.rmtree(early)
    shutil.copytree("early", early)
    first, *lines = filled.read_text().splitlines(keepends=True)
    for number, part in enumerate((lines[::2], lines[1::2])):
        Path(f"{number}.csv").write_text("".join([first, *part]))
        fine("ingest", early, f"{number}.csv")
    after = json.loads(fine("status", early, "--json"))
    assert (after["spent"], after["left"]) == (before["spent"], before["left"])


def test_the_same_order_placed_again_takes_the_paid_sheet(early: Path) -> None:
    """Where nothing else has changed it is the same order, so that nothing is bought twice."""
    fine("order", early)
    filled = fill(early / "order-1.csv", Path("filled.csv"), ANSWERS)
    shutil.rmtree(early)
    shutil.copytree("early", early)
    fine("order", early)
    assert "on record" not in fine("ingest", early, filled)
    assert json.loads(fine("status", early, "--json"))["spent"] == "60"


def test_labels_of_two_orders_that_overlap_are_told(early: Path) -> None:
    fine("order", early)
    filled = fill(early / "order-1.csv", Path("filled.csv"), ANSWERS)
    shutil.rmtree(early)
    shutil.copytree("early", early)
    text = (early / "campaign.toml").read_text()
    (early / "campaign.toml").write_text(text.replace("budget = 60", "budget = 30"))
    fine("order", early)
    told = fine("ingest", early, filled)
    assert "was not on record" in told
    assert re.search(r"that another order asks for as well, to be cancelled there: \d+", told)
    fine("verify", early)


def test_a_sheet_of_another_campaign_is_no_lost_order(early: Path) -> None:
    other = begin("other", "--method", "neutral", budget=40)
    fine("order", other)
    told = fine("ingest", early, fill(other / "order-1.csv", Path("filled.csv"), ANSWERS))
    assert "labels that no order asked for" in told.lower()
    assert json.loads(fine("status", early, "--json"))["spent"] == "0"


def test_names_of_orders(early: Path) -> None:
    fine("order", early)
    (name,) = {row["order"] for row in sheet(early / "order-1.csv")}
    with Store.open(early, write=False) as store:
        own = name_campaign(store)
    assert is_own(name, own)
    assert not any(
        is_own(each, own) for each in ("1", "", f"1-{'0' * 6}-{'0' * 6}", f"{name}\n", f"x{name}")
    )


def test_sheets_that_are_none_trouble_nobody(early: Path) -> None:
    os.mkfifo(early / "order-7.csv")
    (early / "order-8.csv").mkdir()
    (early / "order-9.csv").symlink_to("nowhere")
    (early / "order-10.csv").write_bytes(b"\xff\xfe" + b"," * 200_000)
    (early / "order-11.jsonl").write_text("[1]\n")
    (early / "order-12.jsonl").write_text('{"order": 5}\n')
    assert "not on record" not in fine("status", early)


# --- archives ---


@pytest.fixture
def members(folder: Path) -> dict[str, bytes]:
    fine("pack", folder)
    with zipfile.ZipFile("camp.zip") as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in parts:
        if not isinstance(key, int) or key < 2:
            yield from leaves(part, (*way, key))


def put(value: Any, way: tuple[Any, ...], other: Any) -> Any:
    if not way:
        return other
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[way[0]] = put(value[way[0]], way[1:], other)
    return changed


def try_archive(members: dict[str, bytes], use: Callable[[Path], None]) -> str:
    """What unpacking says; where it says nothing, the campaign can be used."""
    path = zipped(signed(members), Path("forged.zip"))
    before = sorted(os.listdir("."))
    result = allot("unpack", path, "forged")
    if result.exit_code:
        assert result.exit_code == 2
        assert sorted(os.listdir(".")) == before
        return result.stderr
    use(Path("forged"))
    shutil.rmtree("forged")
    return ""


def use(folder: Path) -> None:
    for command in (
        ["status"],
        ["plan"],
        ["order", "-o", "forged.csv", "--more"],
        ["report"],
        ["verify"],
        ["check"],
    ):
        assert allot(command[0], folder, *command[1:]).exit_code in (0, 2, 3), command
        Path("forged.csv").unlink(missing_ok=True)


def test_a_body_that_is_nothing_is_refused(members: dict[str, bytes]) -> None:
    records = rows_of(members, "records")
    for at, row in enumerate(records):
        changed = [*records[:at], row | {"body": None}, *records[at + 1 :]]
        text = b"".join(json.dumps(each).encode() + b"\n" for each in changed)
        told = try_archive({**members, "records.jsonl": text}, use)
        assert "is not a sound campaign" in told
        assert "cannot be read" in told


def test_broken_settings_leave_no_folder(members: dict[str, bytes]) -> None:
    for text in (b"budget = [", b"nonsense = 1\n", b"budget = 60\n", b""):
        told = try_archive({**members, "campaign.toml": text}, use)
        assert "is not a sound campaign: campaign.toml" in told


FORGED = [None, True, -1, 1.5, "x", [], {}, [[]], 10**18]


@pytest.mark.parametrize("kind", ["estimates", "plan", "diagnosis", "evaluation", "order"])
def test_whatever_stands_in_a_body_no_command_stumbles(kind: str) -> None:
    """Of a campaign of the first edition, which has all kinds of records."""
    try_bodies("records", kind, every=60)


@pytest.mark.parametrize("kind", ["response", "evaluation", "machine"])
def test_whatever_stands_in_a_result_no_command_stumbles(kind: str) -> None:
    try_bodies("results", kind, every=60)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["estimates", "plan", "diagnosis", "evaluation", "order"])
def test_whatever_stands_almost_anywhere_in_a_body_no_command_stumbles(kind: str) -> None:
    """Long lists of alike numbers are most places: of three neighbours one stands for all."""
    try_bodies("records", kind, every=3)


def try_bodies(table: str, kind: str, every: int) -> None:
    """Put other values everywhere into a body, and use what unpacks; of so many places one."""
    shutil.copy(FIXTURES / "campaign-first-edition.csv", "homes.csv")
    fine("unpack", FIXTURES / "campaign-first-edition.zip", "real")
    fine("pack", "real", "-o", "real.zip")
    with zipfile.ZipFile("real.zip") as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    whole = rows_of(members, table)
    at = next(at for at, row in enumerate(whole) if row["kind"] == kind)
    ways = list(leaves(whole[at]["body"]))
    tried = 0
    for number, way in enumerate(ways):
        if number % every and len(way) > 1:
            continue
        other = (
            FORGED[number % len(FORGED)]
            if every > 1 and len(way) > 1
            else FORGED[tried % len(FORGED)]
        )
        changed = [
            *whole[:at],
            whole[at] | {"body": put(whole[at]["body"], way, other)},
            *whole[at + 1 :],
        ]
        text = b"".join(json.dumps(each).encode() + b"\n" for each in changed)
        try_archive({**members, f"{table}.jsonl": text}, use)
        tried += 1
    assert tried >= 1


# --- a campaign of the first edition ---


def test_a_campaign_of_the_first_edition_goes_on() -> None:
    shutil.copy(FIXTURES / "campaign-first-edition.csv", "homes.csv")
    fine("unpack", FIXTURES / "campaign-first-edition.zip", "camp")
    assert "Budget 60: 20 spent, 0 on order, 40 left." in fine("status", "camp")
    assert "Everything is as it was written, and agrees." in fine("verify", "camp")
    with Store.open("camp", write=False) as store:
        books = balance(store)
    assert (books.orders, books.faults) == (1, ())
    fine("report", "camp")
    fine("order", "camp")
    fine("ingest", "camp", "--oracle")
    fine("verify", "camp")


def test_verify_looks_at_masks_too(tmp_path: Path) -> None:
    from helpers.pictures import png

    folder = begin("camp", "--method", "neutral", budget=60)
    (folder / "labels").mkdir()
    (tmp_path / "mask.png").write_bytes(png([[0, 1], [1, 0]]))
    value, _ = take_mask(
        tmp_path, "mask.png", Target("seg", "segmentation", ("a", "b")), None, folder / "labels"
    )
    with Store.open(folder, write=True) as store:
        store.add_delivery("masks", "digest", [("size", "1", value)])
    assert "1 mask, as they were written" in fine("verify", folder)
    kept = folder / "labels" / f"{value['png']}.png"
    kept.write_bytes(png([[0, 1], [1, 1]]))
    assert f"labels/{kept.name} is gone or not what it was" in allot("verify", folder).stdout
    kept.unlink()
    assert f"labels/{kept.name} is gone or not what it was" in allot("verify", folder).stdout
