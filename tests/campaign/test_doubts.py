"""Labels that look odd: which do, what becomes of them, and how somebody says that they are
right."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import allot, begin, fine, refused, sheet, shorten, write

from allotment.campaign.campaign import Campaign
from allotment.campaign.doubts import _judge_classes, _judge_numbers, find_odd
from allotment.connect.delivery import Parts
from allotment.connect.masks import encode_map, is_plain


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def open_order() -> tuple[Path, list[Any]]:
    """A campaign with an order, and its sheet filled in with plausible answers."""
    folder = begin("camp", "--method", "neutral", budget=60)
    fine("order", folder, "--all")
    filled = sheet(folder / "order-1.csv")
    for number, row in enumerate(filled):
        row["label"] = f"{3 + number / 100}" if row["task"] == "size" else "old"
    return folder, filled


def send(filled: list[Any], name: str = "back.csv") -> Path:
    return write(Path(name), filled)


def money(folder: Path) -> tuple[str, str, str]:
    status = json.loads(fine("status", folder, "--json"))
    return status["spent"], status["on_order"], status["left"]


def read_size(folder: Path, instance: str) -> float | None:
    stock = Campaign(folder).look().stock
    if not stock.has("size", instance):
        return None
    return float(stock.open().values("size", np.array([stock.place[instance]]))[0])


# --- which look odd ---

SHAPES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, n: rng.normal(300, 80, n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "exponential": lambda rng, n: rng.exponential(5, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(0, 1, n)),
    "wide lognormal": lambda rng, n: np.exp(rng.normal(0, 2, n)),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, 1000.0) + rng.normal(0, 0.1, n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.exponential(5, n)),
    "grades": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "student": lambda rng, n: rng.standard_t(3, n),
}


def judge(known: Any, *came: float) -> dict[int, str]:
    labels = [("size", str(at), value) for at, value in enumerate(came)]
    return _judge_numbers(np.asarray(known, dtype=np.float64), labels)


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_of_the_same_kind_are_hardly_ever_odd(shape: str) -> None:
    rng, count = np.random.default_rng(0), 0
    for _ in range(40):
        known = SHAPES[shape](rng, 60)
        count += len(judge(known, *SHAPES[shape](rng, 100)))
    assert count <= 0.006 * 4000


@pytest.mark.parametrize("shape", ["normal", "uniform", "grades", "exponential", "lognormal"])
@pytest.mark.parametrize("slip", [1000, -1000])
def test_another_unit_is_odd(shape: str, slip: int) -> None:
    rng = np.random.default_rng(1)
    known, came = SHAPES[shape](rng, 60), SHAPES[shape](rng, 40)
    large = came[np.abs(came) > np.median(np.abs(came))]
    assert len(judge(known, *(slip * large))) >= 0.9 * len(large)


def test_a_wrong_label_at_hand_does_not_hide_another() -> None:
    known = [*np.linspace(100, 500, 59), -1e6]
    assert list(judge(known, 300.0, 1e6)) == [1]


def test_few_labels_are_judged_by_those_that_come_with_them() -> None:
    came = [*np.linspace(100, 500, 30), 98_000.0]
    found = judge([], *came)
    assert list(found) == [30]
    assert found[30] == "98000 is far outside what is known (100 to 500, 31 labels)"
    assert judge([], 1.0, 2.0, 98_000.0) == {}
    assert judge([7.0] * 50, 8.0) == {}  # nothing is known of how far they spread


def test_a_new_class_is_odd_only_where_it_was_not_to_be_expected() -> None:
    labels = [("look", "1", "old"), ("look", "2", "loft"), ("look", "3", ["old", "loft"])]
    assert list(_judge_classes({"old": 20, "new": 9, "loft": 0}, 29, labels)) == [1, 2]
    assert _judge_classes({"old": 28, "new": 1, "loft": 0}, 29, labels) == {}  # one was met once
    assert _judge_classes({"old": 9, "new": 9, "loft": 0}, 18, labels) == {}


def test_a_mask_of_one_colour() -> None:
    plain = np.zeros((4, 4), dtype=np.uint8)
    assert is_plain("segmentation", np.where(np.eye(4) > 0, 255, plain))  # which does not count
    assert not is_plain("segmentation", np.eye(4, dtype=np.uint8))
    assert is_plain("normals", np.ones((3, 4, 4)) * np.array([0.0, 0.0, 1.0])[:, None, None])


# --- what becomes of them ---


def test_what_looks_odd_waits_is_listed_and_stays_on_order() -> None:
    folder, filled = open_order()
    wrong = [row for row in filled if row["task"] == "size"][:2]
    wrong[0]["label"], wrong[1]["label"] = "98000", "-4000"
    total = len(filled)
    told = fine("ingest", folder, send(filled))
    assert f"{total - 2} new labels from back.csv." in told
    assert "2 labels look odd and are held back:" in told
    line = filled.index(wrong[0]) + 2
    where = f"back.csv: line {line}: 'size' of '{wrong[0]['instance']}'"
    assert f"{where}: 98000 is far outside what is known" in " ".join(told.split())
    assert money(folder) == ("58", "2", "0")
    assert read_size(folder, wrong[0]["instance"]) is None
    status = fine("status", folder)
    assert "2 labels that looked odd wait to be confirmed" in " ".join(status.split())
    assert "Next: allot history camp" in status
    assert "held back: 98000 is far outside" in fine("history", folder)
    assert "was taken in before" in fine("ingest", folder, "back.csv")
    fine("verify", folder)

    told = fine("ingest", folder, "--confirm")
    assert "2 new labels from those that were held back." in told
    assert money(folder) == ("60", "0", "0")
    assert read_size(folder, wrong[0]["instance"]) == 98_000
    assert "nothing is held back" in refused(2, "ingest", folder, "--confirm")
    assert "was taken in before" in fine("ingest", folder, "back.csv")
    fine("verify", folder)


def test_only_some_are_confirmed_and_others_are_mended() -> None:
    folder, filled = open_order()
    first, second = [row for row in filled if row["task"] == "size"][:2]
    first["label"], second["label"] = "98000", "4000"
    found = json.loads(fine("ingest", folder, send(filled), "--json"))
    assert found["held_back"] == 2
    assert [each["value"] for each in found["odd"]] == [98_000, 4000]
    listed = Path(found["odd_listed_in"])
    with listed.open(newline="") as file:
        kept = list(csv.DictReader(file))
    write(Path("right.csv"), kept[:1])
    assert "1 new label from right.csv." in fine("ingest", folder, "right.csv", "--confirm")
    kept[1]["label"] = "4.0"
    assert "1 new label" in fine("ingest", folder, write(Path("mended.csv"), kept[1:]))
    assert read_size(folder, first["instance"]) == 98_000
    assert read_size(folder, second["instance"]) == 4
    assert Campaign(folder).look().held == 0
    assert money(folder) == ("60", "0", "0")


def test_a_delivery_is_confirmed_with_its_file_before_and_after() -> None:
    folder, filled = open_order()
    row = next(row for row in filled if row["task"] == "size")
    row["label"] = "98000"
    fine("ingest", folder, send(filled))
    assert "1 new label" in fine("ingest", folder, "back.csv", "--confirm")
    assert "was taken in before" in fine("ingest", folder, "back.csv", "--confirm")
    row["label"] = "99000"
    assert "look" not in fine("ingest", folder, send([row], "more.csv"), "--confirm")


@pytest.mark.parametrize(("rule", "said"), [("mark", True), ("take", False)])
def test_the_settings_say_that_nothing_waits(rule: str, said: bool) -> None:
    folder, filled = open_order()
    shorten(folder, odd_labels=f'"{rule}"')
    row = next(row for row in filled if row["task"] == "size")
    row["label"] = "98000"
    told = fine("ingest", folder, send(filled))
    assert ("1 label looks odd and is taken all the same" in told) is said
    assert f"{len(filled)} new labels" in told
    assert money(folder) == ("60", "0", "0")
    assert Campaign(folder).look().held == 0
    history = fine("history", folder, "--task", "size", "--instance", row["instance"])
    assert ("taken though odd: 98000" in history) is said


def test_an_unknown_rule_is_named() -> None:
    folder = begin("camp", "--method", "neutral")
    shorten(folder, odd_labels='"hide"')
    assert re.search(
        r"odd_labels: unknown 'hide'; known: hold, mark, take", allot("check", folder).stdout
    )


def test_where_most_is_odd_one_line_says_so() -> None:
    folder, filled = open_order()
    for row in filled:
        if row["task"] == "size":
            row["label"] = str(float(row["label"]) * 1000)
    told = fine("ingest", folder, send(filled))
    assert told.count("far outside") == 1
    count = sum(row["task"] == "size" for row in filled)
    assert f"{count} of {count} labels of 'size' look odd, such as" in told
    assert "the same unit as before?" in " ".join(told.split())


def test_a_class_that_the_user_named_is_no_surprise() -> None:
    folder = begin("camp", "--method", "neutral", "--classes", "look=old|new|loft")
    Path("back.csv").write_text("instance,look\n2,loft\n3,new\n")
    assert "2 new labels" in fine("ingest", folder, "back.csv")


def test_a_class_of_the_data_set_that_nobody_saw_waits() -> None:
    folder = begin("camp", "--method", "neutral")
    stock = Campaign(folder).look().stock
    (look,) = [target for target in stock.data.targets if target.name == "look"]
    more = replace(look, classes=(*look.classes, "loft"))
    stock = replace(stock, data=replace(stock.data, targets=(stock.data.targets[0], more)))
    parts = Parts("x", "x", (("look", "2", "loft"), ("look", "3", "new")), (), places=("", ""))
    assert find_odd(parts, stock) == {0: "'loft' is a class that none of 30 labels has yet"}
    assert find_odd(parts, stock, ["look"]) == {}


def test_a_mask_of_one_colour_waits_and_is_carried_along(tmp_path: Path) -> None:
    data = ("--data", "scenes", "--set", "count=80", "--set", "size=16")
    fine("init", "camp", *data, "--targets", "segmentation", "--have", "segmentation=25",
         "--cost", "segmentation=1", "--budget", "4", "--method", "neutral")  # fmt: skip
    fine("order", "camp", "--all")
    stock = Campaign("camp").look().stock
    names = [row["instance"] for row in sheet(Path("camp/order-1.csv"))]
    Path("back/segmentation").mkdir(parents=True)
    for name in names:
        mask = stock.whole().values("segmentation", np.array([stock.place[name]]))[0]
        mask = np.zeros_like(mask) if name == names[0] else mask
        Path(f"back/segmentation/{name}.png").write_bytes(encode_map("segmentation", mask))
    told = " ".join(fine("ingest", "camp", "back").split())
    assert f"'segmentation' of '{names[0]}': is of one colour" in told
    fine("verify", "camp")
    fine("pack", "camp", "-o", "camp.zip")
    fine("unpack", "camp.zip", "other")
    assert "1 new label" in fine("ingest", "other", "--confirm")
    (listed,) = Path("camp").glob("held-*.csv")
    assert "1 new label" in fine("ingest", "camp", listed, "--confirm")
    assert Campaign("camp").look().stock.fingerprint == Campaign("other").look().stock.fingerprint
