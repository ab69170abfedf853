"""Connectors: the built-in ones keep the contract, and what breaks it is found and named."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import begin, fine, refused, sheet
from helpers.packages import offer
from PIL import Image

from allotment.cells import unprotect
from allotment.connect.conformance import ConnectorTests
from allotment.connect.connector import (
    CONNECTORS,
    Connector,
    Expected,
    Piece,
    Refusal,
    Row,
    find_reader,
    find_writer,
)
from allotment.connect.delivery import read_delivery
from allotment.data.dataset import Target
from allotment.errors import InputError
from allotment.files import check_free, place_file
from allotment.orders.order import Order
from allotment.orders.sheet import Sheet

TASKS, IDS = ConnectorTests.tasks, ConnectorTests.names


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class TestCsv(ConnectorTests):
    between = ","

    def make(self) -> Connector:
        return CONNECTORS.load("csv")

    def fill(self, place: str, labels: Mapping[tuple[str, str], str]) -> None:
        with open(place, encoding="utf-8-sig", newline="") as file:
            names, *rows = csv.reader(file, delimiter=self.between)
        for row in rows:
            row[-1] = labels.get((row[1], unprotect(row[2])), row[-1])
        with open(place, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=self.between).writerows([names, *rows])


class TestTabs(TestCsv):
    between = "\t"

    def place(self, folder: Path) -> str:
        return str(folder / "order.TSV")


class TestJsonl(ConnectorTests):
    def make(self) -> Connector:
        return CONNECTORS.load("jsonl")

    def fill(self, place: str, labels: Mapping[tuple[str, str], str]) -> None:
        rows = [json.loads(line) for line in Path(place).read_text().splitlines()]
        for row in rows:
            row["label"] = labels.get((row["task"], row["instance"]), row["label"])
        Path(place).write_text("".join(json.dumps(row) + "\n" for row in rows))


class TestMasks(ConnectorTests):
    writes = False

    def make(self) -> Connector:
        return CONNECTORS.load("masks")

    def place(self, folder: Path) -> str:
        return str(folder / "labels.zip")


class TestOfAnotherPackage(ConnectorTests):
    def make(self) -> Connector:
        home = str(Path(__file__).parents[1] / "plugin")
        if home not in sys.path:
            sys.path.append(home)
        from allotment_plugin.connector import CONNECTOR

        return CONNECTOR

    def fill(self, place: str, labels: Mapping[tuple[str, str], str]) -> None:
        from allotment_plugin.connector import _cells, _line

        names, dashes, *rows = map(_cells, Path(place).read_text().splitlines())
        for row in rows:
            row[-1] = labels.get((row[1], row[2]), row[-1])
        Path(place).write_text("".join(map(_line, [names, dashes, *rows])))


# --- what breaks the contract ---


class Broken:
    """JSON in one piece, with a fault that each of the others below has another one of."""

    suffix = ".json"

    def recognises(self, place: str) -> bool:
        return place.endswith(".json")

    def check(self, place: str) -> None:
        check_free(Path(place))

    def write(self, sheet: Sheet, place: str) -> None:
        rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows()]
        place_file(Path(place), json.dumps(rows).encode())

    def read(self, place: str, expected: Expected) -> Iterable[Any]:
        try:
            rows = json.loads(Path(place).read_bytes())
            assert isinstance(rows, list)
        except (OSError, ValueError, AssertionError):
            raise InputError([]) from None
        for number, row in enumerate(rows):
            yield Row(f"row {number}", row) if isinstance(row, dict) else Refusal("", str(row))


class Overwrites(Broken):
    def write(self, sheet: Sheet, place: str) -> None:
        Path(place).unlink(missing_ok=True)
        if Path(place).parent.is_dir():
            super().write(sheet, place)


class Unchecked(Broken):
    def check(self, place: str) -> None:
        pass


class TakesAll(Broken):
    def recognises(self, place: str) -> bool:
        return True


class Strips(Broken):
    def read(self, place: str, expected: Expected) -> Iterable[Any]:
        for row in super().read(place, expected):
            yield Row(row.where, {key: str(cell)[:100] for key, cell in row.cells.items()})


class Forgets(Broken):
    def read(self, place: str, expected: Expected) -> Iterable[Any]:
        for row in super().read(place, expected):
            yield Row(row.where, {key: row.cells[key] for key in ("task", "instance", "label")})


def run_all(connector: Any) -> list[str]:
    class Mine(TestJsonl):
        def make(self) -> Connector:
            return connector

        def fill(self, place: str, labels: Mapping[tuple[str, str], str]) -> None:
            rows = json.loads(Path(place).read_text())
            for row in rows:
                row["label"] = labels.get((row["task"], row["instance"]), row["label"])
            Path(place).write_text(json.dumps(rows))

    found, mine = [], Mine()
    for test in [each for each in dir(mine) if each.startswith("test_")]:
        try:
            getattr(mine, test)()
        except AssertionError as error:
            found.append(str(error))
        except AttributeError:
            continue
    return found


def test_a_connector_that_is_whole_passes() -> None:
    assert run_all(Broken()) == []


@pytest.mark.parametrize(
    ("connector", "said"),
    [
        (Overwrites(), "an order takes the place of labels"),
        (Unchecked(), "check does not see"),
        (TakesAll(), "it takes any name"),
        (Strips(), "refused"),
        (Forgets(), "rows lose their order"),
        (object(), "a verb of the protocol"),
    ],
)
def test_the_public_tests_find_what_is_broken(connector: Any, said: str) -> None:
    assert any(said in each for each in run_all(connector))


# --- which one it is ---


def test_there_are_three() -> None:
    assert list(CONNECTORS)[:3] == ["csv", "jsonl", "masks"]


def test_a_place_is_known_by_its_name_and_a_file_by_how_it_begins() -> None:
    Path("folder").mkdir()
    Path("text").write_text("instance,age\n")
    Path("objects.txt").write_text(' {"instance": "a"}\n')
    known = {"a.csv": "csv", "A.TSV": "csv", "b.ndjson": "jsonl", "c.zip": "masks"}
    known |= {"folder": "masks", "text": "csv", "objects.txt": "jsonl"}
    assert {place: find_reader(place) for place in known} == known
    assert find_reader("c.zip", "csv") == "csv"
    written = {"a.csv": "csv", "objects.txt": "csv", "x.jsonl": "jsonl"}
    assert {place: find_writer(place) for place in written} == written
    assert (find_writer(None), find_writer("x.any", "jsonl")) == ("csv", "jsonl")
    with pytest.raises(InputError, match=r"x\.any: a sheet is text"):
        find_writer("x.any")
    with pytest.raises(InputError, match="unknown 'jsnol'; did you mean 'jsonl'"):
        find_reader("x.csv", "jsnol")


def test_the_same_sheet_says_the_same_whatever_it_is_written_as() -> None:
    order = Order(tuple((task, name) for task in TASKS for name in IDS), seed=0)
    for place in ("a.csv", "a.tsv", "a.jsonl"):
        connector = CONNECTORS.load(find_writer(place))
        connector.write(Sheet(order, "x", {}, TASKS), place)
    found = [read_delivery(place, TASKS, IDS).asked for place in ("a.csv", "a.tsv", "a.jsonl")]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(order)


# --- what a connector yields is judged in one place ---


class Talks:
    """Yields what it is made with."""

    suffix = ".talk"

    def __init__(self, *found: Any):
        self.found = found

    def recognises(self, place: str) -> bool:
        return place.startswith("talk://")

    def check(self, place: str) -> None:
        pass

    def write(self, sheet: Sheet, place: str) -> None:
        raise NotImplementedError

    def read(self, place: str, expected: Expected) -> Iterator[Piece]:
        assert set(expected.tasks) == set(TASKS)
        yield from self.found
        if not self.found:
            raise RuntimeError("nobody \x1b[31m there")


ROW = {"order": "1", "task": "age", "instance": "a", "label": "3"}


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Installs a package that yields these."""

    def install(*found: Any) -> None:
        module = type(sys)("talking")
        module.__dict__["CONNECTOR"] = Talks(*found)
        monkeypatch.setitem(sys.modules, "talking", module)

    offer(tmp_path / "others", "connectors", "others", talk="talking:CONNECTOR")
    monkeypatch.syspath_prepend(tmp_path / "others")
    CONNECTORS.__dict__.pop("_offered", None)
    yield install
    CONNECTORS.__dict__.pop("_offered", None)


def test_a_place_need_not_be_a_file_and_labels_may_say_who_made_them(talk: Any) -> None:
    talk(Row("item 1", ROW | {"annotator": "ada", "seconds": 7.5}))
    parts = read_delivery("talk://project/3", TASKS, IDS)
    assert parts.accepted == (("age", "a", 3.0),)
    assert parts.asked == (("1", "age", "a"),)
    again = read_delivery("talk://project/3", TASKS, IDS, connector="talk")
    assert again.digest == parts.digest


def test_what_it_yields_is_judged_like_anything_else(talk: Any) -> None:
    talk(
        *(Row("1", ROW), Row("2", ROW), Row("3", ROW | {"instance": "nobody"})),
        *(Row("4", ROW | {"label": "old"}), Row("5\x1b", {"x": 1}), Row("6", [1])),  # type: ignore
        Refusal("7", "can't be \x1b[31m read" + "!" * 9999),
    )
    parts = read_delivery("talk://x", TASKS, IDS)
    assert len(parts.accepted) == 1
    assert parts.notes == ("the same label once more: 1",)
    assert [where.partition(": ")[2][:1] for where, _ in parts.rejected] == [*"34", "'", *"67"]
    assert all(where.isprintable() and reason.isprintable() for where, reason in parts.rejected)
    assert len(parts.rejected[-1][1]) < 5000


def test_labels_of_one_delivery_are_limited(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allotment.connect.delivery.MOST_LABELS", 3)
    talk(*(Row(str(at), ROW | {"instance": name}) for at, name in enumerate(IDS[:5])))
    parts = read_delivery("talk://x", TASKS, IDS)
    assert len(parts.accepted) == 3
    assert "more than 3 labels in one delivery" in parts.rejected[0][1]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((), "connector 'talk' of others 1.0: failed ('RuntimeError: nobody"),
        ((("age", "a", 3),), "connector 'talk' of others 1.0: yields ('age', 'a', 3), which is no"),
    ],
)
def test_a_broken_one_is_named_with_its_package(talk: Any, found: Any, said: str) -> None:
    talk(*found)
    with pytest.raises(InputError) as caught:
        read_delivery("talk://x", TASKS, IDS)
    assert str(caught.value).startswith(said)


# --- in a campaign ---


def test_a_connector_is_chosen_on_the_command_line() -> None:
    folder = begin("camp", "--method", "neutral", budget=10)
    said = fine("order", folder, "--to", "jsonl")
    assert "Next: allot ingest camp camp/order-1.jsonl --from jsonl" in said
    rows = [json.loads(line) for line in Path("camp/order-1.jsonl").read_text().splitlines()]
    fine("order", folder, "--to", "csv", "-o", "sheet.any")
    assert [row["instance"] for row in sheet(Path("sheet.any"))] == [
        row["instance"] for row in rows
    ]
    answers = {"size": "3.5", "look": "old"}
    lines = [json.dumps(row | {"label": answers[row["task"]]}) + "\n" for row in rows]
    Path("labels.csv").write_text("".join(lines))  # which its name does not say
    assert f"{len(rows)} new labels" in fine("ingest", folder, "labels.csv", "--from", "jsonl")


def test_what_cannot_take_an_order_gets_none() -> None:
    folder = begin("camp", "--method", "neutral", budget=10)
    for to in (("--to", "masks", "-o", "x"), ("-o", "x.zip"), ("-o", str(folder))):
        assert "a sheet is text" in refused(2, "order", folder, *to)
    assert "-o: is missing; connector 'masks'" in refused(2, "order", folder, "--to", "masks")
    assert "connector: unknown 'cvs'; did you mean 'csv'?" in refused(
        2, "order", folder, "--to", "cvs"
    )
    assert "connector: unknown 'cvs'" in refused(2, "ingest", folder, "x", "--from", "cvs")
    assert "0 on order" in fine("status", folder)


def test_masks_are_read_by_name_too() -> None:
    Path("drawn/seg").mkdir(parents=True)
    Image.fromarray(np.eye(4, dtype=np.uint8)).save("drawn/seg/a.png")
    target = Target("seg", "segmentation", ("no", "yes"))
    parts = read_delivery("drawn", {"seg": target}, ["a"], connector="masks", keep="kept")
    assert [label[:2] for label in parts.accepted] == [("seg", "a")]
