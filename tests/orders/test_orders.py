"""Orders: random, disjoint as far as can be, and sheets that come back as they went out."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.sheets import write_csv, write_jsonl
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from allotment.cells import protect, unprotect
from allotment.connect.delivery import read_delivery
from allotment.data.dataset import Target
from allotment.errors import InputError
from allotment.files import place_file
from allotment.orders.order import Order, choose
from allotment.orders.sheet import explain_answer

NAMES = [f"i{number}" for number in range(20)]


def most_apart(candidates: dict[str, list[str]], counts: dict[str, int]) -> int:
    """How many different instances an order can have at most, by a matching of labels to
    instances."""
    names = sorted(set().union(*candidates.values()))
    rows = [
        [name in candidates[task] for name in names] for task in counts for _ in range(counts[task])
    ]
    if not rows or not names:
        return 0
    matched = maximum_bipartite_matching(
        csr_array(np.array(rows, dtype=np.int8)), perm_type="column"
    )
    return int((matched >= 0).sum())


@st.composite
def wishes(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, int]]:
    tasks = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=5, unique=True))
    candidates = {
        task: draw(st.lists(st.sampled_from(NAMES), max_size=12, unique=True)) for task in tasks
    }
    return candidates, {task: draw(st.integers(0, len(candidates[task]))) for task in tasks}


@given(wishes(), st.integers(0, 5), st.booleans())
@settings(max_examples=400, deadline=None)
def test_an_order_has_what_was_asked_for_and_shares_no_more_than_it_must(
    wish: tuple[dict[str, list[str]], dict[str, int]], seed: int, together: bool
) -> None:
    candidates, counts = wish
    order = choose(candidates, counts, seed, together)
    assert order.counts == {task: count for task, count in sorted(counts.items()) if count}
    for task in candidates:
        own = order.of(task)
        assert len(set(own)) == len(own)
        assert set(own) <= set(candidates[task])
    different = len({instance for _, instance in order.items})
    assert together or different == most_apart(candidates, counts)
    backwards = {task: candidates[task][::-1] for task in reversed(candidates)}
    assert choose(backwards, dict(reversed(counts.items())), seed, together) == order
    assert Order.from_dict(json.loads(json.dumps(order.to_dict()))) == order


def test_chains_of_tasks_make_room_for_each_other() -> None:
    """c can only have what b took, and b only what a took: taking in turn would share, moving along
    does not."""
    candidates = {"a": ["1", "2", "3"], "b": ["1", "2"], "c": ["1"]}
    for seed in range(20):
        order = choose(candidates, {"a": 1, "b": 1, "c": 1}, seed)
        assert sorted(order.items) == [("a", "3"), ("b", "2"), ("c", "1")]


def test_together_is_the_same_instances_and_for_smaller_counts_some_of_them() -> None:
    candidates = {"a": NAMES, "b": NAMES, "c": NAMES[:10]}
    order = choose(candidates, {"a": 8, "b": 3, "c": 5}, seed=1, together=True)
    assert set(order.of("b")) < set(order.of("c")) < set(order.of("a"))


def test_every_instance_is_as_likely_for_every_task() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    rounds = 2000
    for seed in range(rounds):
        seen.update(choose({"a": NAMES[:10], "b": NAMES[:10]}, {"a": 3, "b": 4}, seed).items)
    for task, count in (("a", 3), ("b", 4)):
        share = count / 10
        spread = (rounds * share * (1 - share)) ** 0.5
        assert all(abs(seen[task, name] - rounds * share) < 5 * spread for name in NAMES[:10])


def test_the_beginning_of_an_order_is_random_too() -> None:
    """So that half a delivery is a random half."""
    first = Counter(choose({"a": NAMES[:5]}, {"a": 5}, seed).items[0][1] for seed in range(1000))
    assert min(first[name] for name in NAMES[:5]) > 200 - 5 * (1000 * 0.2 * 0.8) ** 0.5


def test_more_candidates_leave_the_others_in_their_order() -> None:
    few, many = (
        choose({"a": names}, {"a": len(names)}, seed=3).of("a") for names in (NAMES[:12], NAMES)
    )
    assert [name for name in many if name in few] == few


def test_an_order_is_the_same_everywhere() -> None:
    order = choose({"a": NAMES, "b": NAMES}, {"a": 3, "b": 2}, seed=0)
    assert order.items == (("a", "i14"), ("a", "i6"), ("a", "i4"), ("b", "i1"), ("b", "i10"))


def test_costs_are_exact() -> None:
    order = choose({"a": NAMES, "b": NAMES}, {"a": 3, "b": 0}, seed=0, costs={"a": "0.3", "b": 7})
    assert order.costs == {"a": Fraction(3, 10)}
    assert choose({"a": NAMES}, {"a": 1}, 0, costs={"a": Fraction(1, 3)}).to_dict()["costs"] == {
        "a": "1/3"
    }
    assert order.total == Fraction(3, 10)


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (
            lambda: choose({"a": NAMES}, {"a": 21, "b": 1}, 0),
            ("'a': 21 labels wanted, 20 instances left", "'b': has no"),
        ),
        (lambda: choose({"a": NAMES}, {"a": -1}, 0), ("-1 is not a number of labels",)),
        (lambda: choose({"a": NAMES}, {"a": True}, 0), ("True is not a number of labels",)),
        (lambda: choose({"a": ["x", "x"]}, {"a": 1}, 0), ("'x' is there more than once",)),
        (lambda: choose({"a": ["x"]}, {"a": 1}, "0"), ("seed: '0' is not a whole number",)),
        (lambda: choose({"a": ["x\0"]}, {"a": 1}, 0), ("item 1: instance", "NUL", "rename")),
        (lambda: choose({"a": ["x\ud800"]}, {"a": 1}, 0), ("half a letter",)),
        (lambda: choose({"a": [" "]}, {"a": 1}, 0), ("is not a name",)),
        (lambda: choose({"a": ["x" * 1001]}, {"a": 1}, 0), ("1001 letters",)),
        (lambda: Order((("a", "x"), ("a", "x")), 0), ("'a': instance 'x' is there 2 times",)),
        (
            lambda: Order((("a",), "ab", ("a", 1)), 0),
            ("item 1: ", "item 2: 'ab'", "item 3: instance"),
        ),
        (
            lambda: Order((("a", "x"),), 0, costs={"b": 1, "a": "x"}),
            ("cost of 'b': nothing", "cost of 'a': 'x' is not"),
        ),
        (lambda: Order((("a", "x"),), 0, costs={"a": -1}), ("below zero",)),
        (lambda: Order.from_dict([]), ("not a table",)),
        (
            lambda: Order.from_dict({"item": []}),
            ("item: unknown key; did you mean 'items'", "seed: is missing"),
        ),
        (
            lambda: Order.from_dict({"items": 1, "seed": 0, "together": False, "costs": {}}),
            ("items: 1 is not a list of tasks",),
        ),
        (
            lambda: Order.from_dict({"items": [], "seed": 0, "together": 1, "costs": []}),
            ("together: 1 is neither", "costs: []"),
        ),
    ],
)
def test_everything_that_is_wrong_is_said_at_once(make: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert all(part in str(caught.value) for part in parts), str(caught.value)


# --- sheets ---

NASTY = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''=1", "'tis", "'", "a,b",
    'say "hi"', "two\nlines",
    "a\rb", "a\r\nb", "-1.50", "'-1", "-1e-3", "-1+1", "-007", "-٣", "-1\n", "-.5", "-inf",
    "x;=1+1;y", "x;'=1", "a, -b", 'x|"@c"', " =1",
    "Käse", "日本", "＝1", "<script>alert(1)</script>", "007", " padded ", "a|b", "#N/A", "x=1",
]  # fmt: skip


def items(*names: str, task: str = "cls") -> Order:
    return Order(tuple((task, name) for name in names), seed=0)


def read_back(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def test_every_name_comes_back_from_a_sheet(tmp_path: Path) -> None:
    order = Order(tuple((task, name) for task in NASTY for name in NASTY), seed=0)
    path = write_csv(
        order, tmp_path / "order.csv", number=7, show={"file": {"007": "=cmd", "a,b": None}}
    )
    rows = read_back(path)
    assert [(unprotect(row["task"]), unprotect(row["instance"])) for row in rows] == list(
        order.items
    )
    assert {row["order"] for row in rows} == {"7"}
    assert {row["label"] for row in rows} == {""}
    assert {unprotect(row["file"]) for row in rows} == {"", "=cmd"}


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    order = Order(tuple((task, name) for task in NASTY for name in NASTY), seed=0)
    path = write_csv(order, tmp_path / "order.csv", show={"=1+1": {name: name for name in NASTY}})
    cells = [
        cell
        for row in csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
        for cell in row
    ]
    assert len(cells) == 5 * (len(NASTY) ** 2 + 1)
    suspect = {cell for cell in cells if cell[:1] in set("=+-@\t\r\n＝＋－＠") and cell}
    assert suspect == {"-1", "-1.50", "-1e-3"}


FORMULA = "=+-@＝＋－＠"
TEXTS = (
    st.text() | st.text("'-+=@0123456789.eE\n") | st.text("'\"=-＝;,|\t\r\n\x0b\x85\u2028 \xa0x1")
)


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_protecting_can_always_be_undone(text: str) -> None:
    assert unprotect(protect(text)) == text
    assert unprotect(protect(protect(text))) == protect(text)


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_no_part_of_a_cell_is_a_formula_wherever_it_is_split(text: str) -> None:
    """Where decimals have commas a spreadsheet splits a CSV at semicolons, and others split at what
    they are told."""
    kept = protect(text)
    pieces = [piece for line in kept.splitlines() for piece in re.split(r"[;,|\t]", line)]
    if kept != text or not re.fullmatch(r"-[0-9.eE+-]+", text):
        assert not [
            piece for piece in pieces if piece.lstrip().lstrip('" \xa0').startswith(tuple(FORMULA))
        ]


def test_protecting_long_cells_takes_time_by_their_length() -> None:
    """In a process of its own, which has 10 seconds of a processor; steps by the square would be
    minutes."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (10, 10)); from"
        " allotment.cells import protect, unprotect; [unprotect(protect(each * 100_000)) for"
        " each in (';', ' ', '\\'', ';\\'', ' \\t', '\"', '=', ';=', ' -')]"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=200).returncode
        == 0
    )


def test_cells_of_a_sheet_are_no_formulas_to_programs_that_split_at_semicolons(
    tmp_path: Path,
) -> None:
    names = ["x;=1+1;y", 'x;"=1+1";y', "x|@a", "x\t+1", "x,\n-1+1", " =1", "＝1;＝2", "a;'=b", "-1"]
    path = write_csv(
        items(*names), tmp_path / "order.csv", show={"file": {name: name for name in names}}
    )
    text = path.read_bytes().decode("utf-8-sig")
    for between in ";|\t":
        cells = [
            cell.strip()
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=between)
            for cell in row
        ]
        assert not [cell for cell in cells if cell.startswith(tuple(FORMULA)) and cell != "-1"]
    assert [unprotect(row["instance"]) for row in read_back(path)] == names


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers().map(float))
@settings(deadline=None)
def test_plain_numbers_are_left_alone(number: float) -> None:
    for text in (repr(number), str(int(number)), f"{number:.3f}", f"{number:.4e}"):
        assert protect(text) == text


@given(st.text("-+=@'0123456789.eExy_ \t", min_size=1))
@settings(max_examples=1000, deadline=None)
def test_what_is_left_alone_despite_its_minus_is_a_number(text: str) -> None:
    """To Python, and to JSON's grammar, which has neither a plus nor leading zeros nor names of
    infinities."""
    kept = protect(text)
    if kept == text and text[0] in "-+=@\t":
        assert isinstance(json.loads(text), int | float)
        assert float(text) <= 0
    elif text[0] in "-+=@\t":
        assert kept[0] == "'"


def test_a_sheet_of_numbers_comes_back_through_the_reader(tmp_path: Path) -> None:
    """Names and features below zero: as they are in the file, and back to the same instances by an
    ingest."""
    names = ["-1", "-2.50", "-1e5", "'-3", "-4-4", "+5", "7"]
    show = {"height": dict(zip(names, ["-0.5", "-12", "3", "-1e-05", "=1", "-", ""], strict=True))}
    path = write_csv(items(*names, task="size"), tmp_path / "order.csv", show=show)
    rows = read_back(path)
    assert [row["instance"] for row in rows] == ["-1", "-2.50", "-1e5", "''-3", "'-4-4", "'+5", "7"]
    assert [row["height"] for row in rows] == ["-0.5", "-12", "3", "-1e-05", "'=1", "'-", ""]
    for number, row in enumerate(rows):
        row["label"] = f"-{number}.25"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    target = Target("size", "regression")
    parts = read_delivery(path, {"size": target}, {name: place for place, name in enumerate(names)})
    assert parts.rejected == ()
    assert [(task, name, float(value)) for task, name, value in parts.accepted] == [
        ("size", name, -(number + 0.25)) for number, name in enumerate(names)
    ]


def test_jsonl_says_the_same(tmp_path: Path) -> None:
    order = items(*NASTY)
    show = {"weight": {"007": 1.5}, "file": {"a,b": "a.png"}}
    path = write_jsonl(order, tmp_path / "order.jsonl", number=2, show=show)
    rows = [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]
    assert [row["instance"] for row in rows] == NASTY
    assert {row["label"] for row in rows} == {None}
    assert rows[NASTY.index("007")] == {
        "order": 2, "task": "cls", "instance": "007", "weight": 1.5, "file": "", "label": None,
    }  # fmt: skip


def test_sheets_say_what_may_be_filled_in(tmp_path: Path) -> None:
    targets = {
        "cls": Target("cls", "classification", ("cat", "dog")),
        "age": Target("age", "regression"),
    }
    path = write_csv(
        Order((("cls", "a"), ("age", "b")), 0), tmp_path / "order.csv", targets=targets
    )
    assert [row["answer"] for row in read_back(path)] == [
        "one of: cat, dog",
        "a number, with a decimal point",
    ]
    many = Target("many", "multilabel", tuple(f"class {number}" for number in range(1000)))
    assert len(explain_answer(many)) == 300


def test_the_same_order_makes_the_same_bytes_and_writing_it_again_is_nothing(
    tmp_path: Path,
) -> None:
    order = items(*NAMES)
    first = write_csv(order, tmp_path / "a.csv").read_bytes()
    assert write_csv(order, tmp_path / "b.csv").read_bytes() == first
    assert write_csv(order, tmp_path / "a.csv").read_bytes() == first
    assert first.startswith(b"order,task,instance,label\r\n1,cls,i0,\r\n")
    assert (
        write_csv(items("Käse"), tmp_path / "c.csv").read_bytes().startswith(b"\xef\xbb\xbforder")
    )
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv", "c.csv"]


def test_labels_that_were_filled_in_are_not_overwritten(tmp_path: Path) -> None:
    path = write_csv(items("a"), tmp_path / "order.csv")
    path.write_text(path.read_text().replace("a,", "a,cat"))
    with pytest.raises(InputError, match="is there already and may hold labels"):
        write_csv(items("a"), path)
    assert "cat" in path.read_text()


def test_a_sheet_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"No space left on device.*has space"):
        place_file(tmp_path / "order.csv", b"x" * 10)
    assert os.listdir(tmp_path) == []


def test_a_file_that_turns_up_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, path: Path) -> None:
        path.write_text("mine")
        link(source, path)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InputError, match="File exists"):
        place_file(tmp_path / "order.csv", b"yours")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"order.csv": "mine"}


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (
            lambda folder: write_csv(items("a"), folder / "no" / "order.csv"),
            "No such file or directory",
        ),
        (lambda folder: write_csv(items("a"), folder), "is there already"),
        (lambda folder: write_csv(items("a"), folder / ("x" * 300)), "can't be written"),
        (lambda folder: write_csv(items("a"), folder / "a\0b"), "can't be written"),
        (
            lambda folder: write_csv(items("a"), folder / "a.csv", show={"label": {}}),
            "a name of the sheet's own",
        ),
        (lambda folder: write_csv(items("a"), folder / "a.csv", show={" ": {}}), "needs a name"),
        (
            lambda folder: write_jsonl(items("a"), folder / "a", show={"x": {"a": float("nan")}}),
            "not finite",
        ),
    ],
)
def test_what_can_not_be_written(tmp_path: Path, make: Any, part: str) -> None:
    with pytest.raises(InputError, match=part):
        make(tmp_path)
    assert os.listdir(tmp_path) == []


def test_pandas_reads_a_sheet(tmp_path: Path) -> None:
    path = write_csv(items(*itertools.chain(NAMES, ["Käse"])), tmp_path / "order.csv")
    frame = pd.read_csv(path)
    assert list(frame.columns) == ["order", "task", "instance", "label"]
    assert frame["instance"].tolist() == [*NAMES, "Käse"]
