"""Labels that are taken away: the table with all of them, and where each came from."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import begin, fill, fine, refused, rows, sheet, shorten, write

import allotment as al
from allotment import files
from allotment.campaign.campaign import Campaign


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def play(*more: object, table: list[dict[str, str]] | None = None) -> Path:
    """Two rounds, with a part that never came, a contradiction, a correction and a withdrawal."""
    folder = begin("camp", "--method", "neutral", *more, table=table, budget=60)
    answers = {"size": "3.25", "look": "old"}
    fine("order", folder)
    filled = fill(folder / "order-1.csv", Path("first.csv"), answers, most=8)
    fine("ingest", folder, filled)
    fine("order", folder, "--cancel", 1)
    fine("order", folder, "--all", "-o", "second-order.csv")
    fine("ingest", folder, fill(Path("second-order.csv"), Path("second.csv"), answers))
    come = [row for row in sheet(filled) if row["task"] == "size" and row["label"]]
    write(Path("again.csv"), [come[0] | {"label": "4.5"}])
    fine("ingest", folder, "again.csv")
    pair = ("--task", "size", "--instance")
    fine("correct", folder, *pair, come[1]["instance"], "--value", "4.75")
    fine("correct", folder, *pair, come[2]["instance"], "--withdraw")
    return folder


def read(path: Path) -> list[dict[str, str]]:
    return sheet(path)


def same_labels(one: Any, other: Any) -> None:
    assert one.ids == other.ids
    for task in one.targets:
        places = one.labels[task].instances
        np.testing.assert_array_equal(places, other.labels[task].instances)
        np.testing.assert_array_equal(
            one.open().values(task, places), other.open().values(task, places)
        )


@pytest.mark.parametrize("name", ["all.csv", "all.tsv", "all.parquet"])
@pytest.mark.parametrize("with_id", [True, False])
def test_what_was_exported_is_a_table_to_begin_with(name: str, with_id: bool) -> None:
    options = ("--id", "name") if with_id else ()
    folder = play(*options, table=rows(id_=with_id))
    told = fine("export", folder, "-o", name)
    stock = Campaign(folder).look().stock
    counts = ", ".join(f"{count} {task}" for task, count in stock.have.items())
    assert f"{name} is written: 90 rows with all labels at hand ({counts})." in " ".join(
        told.split()
    )
    costs = ("--cost", "size=1", "--cost", "look=5", "--budget", 5)
    fine("init", "other", "--root", name, "--targets", "size,look", *options, *costs)
    again = Campaign("other").look().stock
    same_labels(stock, again)
    np.testing.assert_array_equal(
        stock.inputs(stock.ids), again.inputs(again.ids)
    )  # and nothing else was learned from


def test_cells_that_nobody_labelled_stay_as_they_are_written() -> None:
    table = rows()
    for number, row in enumerate(table):
        row["code"] = f"{number % 3:03d}"
    table[0]["size"] = "3.50"
    folder = begin("camp", "--method", "neutral", table=table)
    fine("export", folder, "-o", "all.csv", "--origins", "none")
    assert read(Path("all.csv")) == table
    assert not Path("all.labels.csv").exists()


def test_every_label_says_where_it_came_from() -> None:
    folder = play()
    fine("export", folder, "-o", "all.csv")
    listed = read(Path("all.labels.csv"))
    status = json.loads(fine("status", folder, "--json"))
    assert sum(Fraction(row["price"] or 0) for row in listed) == Fraction(status["spent"])
    state = Campaign(folder).look()
    for task, count in state.stock.have.items():
        assert sum(row["counts"] == "yes" for row in listed if row["task"] == task) == count
    sources = {row["source"] for row in listed}
    assert sources == {"at the start", "order 1", "order 2", "correction"}
    assert all(row["when"] for row in listed)
    come = [row["instance"] for row in sheet(Path("first.csv")) if row["task"] == "size"]
    of = {
        name: [(row["label"], row["counts"], row["delivery"], row["settled"]) for row in listed
               if (row["task"], row["instance"]) == ("size", name)]
        for name in come[:3]
    }  # fmt: skip
    first, second = of[come[0]]
    assert first[1:] == ("yes", "first.csv", "the first of 2 answers")
    assert second == ("4.5", "no", "again.csv", "overruled")
    assert [each[1:] for each in of[come[1]]] == [
        ("no", "first.csv", "corrected"),
        ("yes", "", "corrected"),
    ]
    assert [each[1:] for each in of[come[2]]] == [
        ("no", "first.csv", "withdrawn"),
        ("no", "", "withdrawn"),
    ]


def test_prices_share_fees_and_tiers() -> None:
    folder = begin("camp", "--method", "neutral", budget=60)
    text = (folder / "campaign.toml").read_text()
    more = "cost = 1\nfee = 7\ntiers = [{ after = 3, cost = 0.5 }]\n"
    (folder / "campaign.toml").write_text(text.replace("cost = 1\n", more, 1))
    fine("order", folder, "--all")
    answers = {"size": 3.5, "look": "old"}
    fine("ingest", folder, fill(folder / "order-1.csv", Path("b.csv"), answers, most=9))
    spent = Fraction(json.loads(fine("status", folder, "--json"))["spent"])
    assert sum(each.price or 0 for each in Campaign(folder).history()) == spent


@pytest.mark.parametrize(
    ("rule", "value", "settled"),
    [
        ("first", "3", "the first of 3 answers"),
        ("last", "4", "the last of 3 answers"),
        ("majority", "4", "2 of 3 answers"),
    ],
)
def test_it_says_how_conflicts_were_settled(rule: str, value: str, settled: str) -> None:
    folder = begin("camp", "--method", "neutral")
    shorten(folder, conflicts=f'"{rule}"')
    for number, label in enumerate((3, 4, 4)):
        Path(f"{number}.csv").write_text(f"instance,size\n2,{label}\n{number + 30},3\n")
        fine("ingest", folder, f"{number}.csv")
    fine("export", folder, "-o", "all.csv", "--origins", "columns")
    row = read(Path("all.csv"))[1]
    assert (row["size"], row["size.settled"], row["size.source"]) == (value, settled, "not ordered")
    assert row["size.price"] == ""
    assert row["look.source"] == ""
    assert not Path("all.labels.csv").exists()


def test_a_label_of_the_data_that_was_contradicted() -> None:
    folder = begin("camp", "--method", "neutral")
    Path("b.csv").write_text("instance,size\n1,4.5\n")
    fine("ingest", folder, "b.csv")
    for rule, source in (("first", "at the start"), ("last", "not ordered")):
        shorten(folder, conflicts=f'"{rule}"')
        (one,) = [each for each in Campaign(folder).history("size", "1") if each.counts]
        assert (one.source, one.settled) == (source, f"the {rule} of 2 answers")


def test_the_same_bytes_again_and_nothing_else_is_overwritten() -> None:
    folder = play()
    names = ("all.csv", "all.labels.csv")
    fine("export", folder, "-o", "all.csv")
    before = [Path(name).read_bytes() for name in names]
    fine("export", folder, "-o", "all.csv")
    assert [Path(name).read_bytes() for name in names] == before
    fine("correct", folder, "--task", "size", "--instance", 1, "--value", 4)
    said = refused(2, "export", folder, "-o", "all.csv")
    assert said.count("holds something else; --force writes over it") == 2
    assert [Path(name).read_bytes() for name in names] == before
    fine("export", folder, "-o", "all.csv", "--force")
    assert read(Path("all.csv"))[0]["size"] == "4"
    for name in ("p", "q"):
        fine("export", folder, "-o", f"{name}.parquet")
    assert Path("p.parquet").read_bytes() == Path("q.parquet").read_bytes()


def test_no_spreadsheet_computes_what_is_in_it() -> None:
    table = rows()
    table[0] |= {"look": "=1+1"}
    for row in table:
        row["note"] = "@x"
    folder = begin("camp", "--method", "neutral", table=table)
    fine("export", folder, "-o", "all.csv")
    assert read(Path("all.csv"))[0]["look"] == "'=1+1"
    assert "'@x" in Path("all.csv").read_text()
    fine("export", folder, "-o", "all.jsonl")  # where nothing computes
    assert json.loads(Path("all.jsonl").read_text().splitlines()[0])["look"] == "=1+1"


def test_programs_get_numbers_and_nothing_for_nothing() -> None:
    folder = begin("camp", "--method", "neutral")
    done = al.Campaign(folder).export("all.jsonl")
    assert (done.rows, done.counts, done.masks) == (90, {"size": 45, "look": 30}, None)
    first, second = map(json.loads, Path("all.jsonl").read_text().splitlines()[:2])
    table = rows()
    assert first == {
        "width": float(table[0]["width"]), "age": float(table[0]["age"]),
        "size": float(table[0]["size"]), "look": table[0]["look"],
    }  # fmt: skip
    assert second["size"] is None
    import pyarrow.parquet as pq

    al.Campaign(folder).export("all.parquet")
    held = pq.read_table("all.parquet")
    assert str(held.schema.field("size").type) == "double"
    assert held.column("look").null_count == 60


def test_a_task_of_several_classes() -> None:
    lines = [f"{n},{'p|q' if n % 2 else '|'}" for n in range(1, 21)]
    Path("t.csv").write_text("\n".join(["x,kinds", *lines, *(f"{n}," for n in range(21, 31))]))
    costs = ("--cost", "kinds=1", "--budget", 9, "--method", "neutral")
    fine("init", "camp", "--root", "t.csv", "--targets", "kinds", *costs)
    Path("b.csv").write_text("instance,kinds\n21,q\n22,|\n23,p|q\n")
    fine("ingest", "camp", "b.csv")
    fine("export", "camp", "-o", "all.csv")
    found = [row["kinds"] for row in read(Path("all.csv"))]
    assert found[20:24] == ["q", "|", "p|q", ""]
    assert found[:20] == [row["kinds"] for row in read(Path("t.csv"))[:20]]
    fine("init", "other", "--root", "all.csv", "--targets", "kinds", *costs)
    same_labels(Campaign("camp").look().stock, Campaign("other").look().stock)


def test_masks_go_into_a_folder_that_is_a_delivery() -> None:
    data = ("--data", "scenes", "--set", "count=24", "--set", "size=16")
    names = ("segmentation", "depth", "normals", "edges")
    have = [part for name in names for part in ("--have", f"{name}=4")]
    targets = ("--targets", ",".join(names))
    fine("init", "camp", *data, *targets, *have, "--budget", 40, "--method", "neutral")
    fine("order", "camp", "--all")
    fine("ingest", "camp", "--oracle")
    told = fine("export", "camp", "-o", "all.csv")
    assert "all.masks holds the masks, each as TASK/INSTANCE.png." in told
    stock = Campaign("camp").look().stock
    assert len(list(Path("all.masks").rglob("*.png"))) == sum(stock.have.values())
    for row in read(Path("all.csv")):
        for name in names:
            assert not row[name] or Path(row[name]).is_file()
    rest = [part for name in names for part in ("--have", f"{name}=1")]
    fine("init", "other", *data, *targets, *rest, "--budget", 40, "--method", "neutral")
    fine("ingest", "other", "all.masks")
    other = Campaign("other").look().stock
    for name, slack in zip(names, (0, 0.001, 0.01, 0.001), strict=True):
        places = stock.labels[name].instances
        assert set(places.tolist()) <= set(other.labels[name].instances.tolist())
        one, two = (each.open().values(name, places) for each in (stock, other))
        np.testing.assert_allclose(one, two, atol=slack)
    before = {path: path.read_bytes() for path in Path("all.masks").rglob("*.png")}
    fine("export", "camp", "-o", "all.csv")
    assert {path: path.read_bytes() for path in Path("all.masks").rglob("*.png")} == before


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("all.txt", (), "has no ending that says what it is"),
        ("nowhere/all.csv", (), "see that its folder is there"),
        ("camp", (), "has no ending"),
    ],
)
def test_a_place_that_will_not_do(name: str, more: tuple[str, ...], said: str) -> None:
    begin("camp", "--method", "neutral")
    assert said in refused(2, "export", "camp", "-o", name, *more)
    fine("export", "camp", "-o", "all.txt", "--format", "csv")
    assert read(Path("all.txt"))[0]["width"] == rows()[0]["width"]


def test_an_export_that_is_stopped_leaves_nothing_half_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = play()
    fine("export", folder, "-o", "whole.csv")
    fill_file, count = files.fill, 0

    for stop_at in range(2):
        count = 0

        def stopping(path: Path, content: bytes, at: int = stop_at) -> None:
            nonlocal count
            fill_file(path, content[: len(content) // 2] if count == at else content)
            count += 1
            if count == at + 1:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(files, "fill", stopping)
            with pytest.raises(KeyboardInterrupt):
                Campaign(folder).export("all.csv")
        assert not Path("all.csv").exists()  # the table comes last
        assert list(Path().glob(".half-*")) == []
    Campaign(folder).export("all.csv")
    for end in ("csv", "labels.csv"):
        assert Path(f"all.{end}").read_bytes() == Path(f"whole.{end}").read_bytes()


def test_what_was_not_bought_stays_hidden() -> None:
    table = rows(every=(1, 1))
    have = ("--have", "size=10", "--have", "look=10")
    folder = begin("camp", "--method", "neutral", *have, table=table)
    fine("export", folder, "-o", "all.csv")
    with Path("all.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert sum(bool(row["size"]) for row in found) == 10
