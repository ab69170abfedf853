"""Deliveries: all that is good goes in, all else is named, and nothing untrusted does any harm."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.pictures import png
from helpers.sheets import write_csv, write_jsonl
from numpy.typing import NDArray
from PIL import Image

from allotment.connect import delivery, guard
from allotment.connect.delivery import Parts, read_delivery, write_rejected
from allotment.connect.masks import to_array
from allotment.data.dataset import ArrayData, Target
from allotment.data.folder import FolderData
from allotment.data.scenes import draw_scene, make_scenes, project
from allotment.data.voc import read_voc
from allotment.errors import InputError
from allotment.orders.order import Order, choose

DATA = os.environ.get("ALLOT_TEST_DATA")
TARGETS = {
    target.name: target
    for target in (
        Target("species", "classification", ("cat", "dog", "guinea pig")),
        Target("stars", "classification", ("1", "2", "3")),
        Target("tags", "multilabel", ("big", "wild", "a|b")),
        Target("age", "regression"),
        Target("seg", "segmentation", ("ground", "animal")),
        Target("depth", "depth"),
        Target("normals", "normals"),
        Target("edges", "edges"),
        Target("points", "keypoints"),
    )
}
IDS = ("a", "b", "007", "=1+1", "deep/er", "Käse", "100")
SIZE = (6, 8)


def take(path: Path, content: str | bytes | None = None, **options: Any) -> Parts:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    tasks = options.pop("tasks", TARGETS)
    if not isinstance(tasks, Mapping):
        tasks = {name: TARGETS[name] for name in tasks}
    return read_delivery(path, tasks, options.pop("ids", IDS), **options)


def reasons(parts: Parts) -> str:
    return "\n".join(f"{where} | {reason}" for where, reason in parts.rejected)


# --- what is written, and what it means ---


def test_decimal_commas_are_read_as_spreadsheets_write_them(tmp_path: Path) -> None:
    written = ["2,5", "-0,125", "1.234,5", "1,234", "7", "+12,5e2"]
    ids = list("abcdef")
    text = "instance;task;label\r\n"
    text += "".join(f"{name};age;{each}\r\n" for name, each in zip(ids, written, strict=True))
    parts = take(tmp_path / "x.csv", text, ids=ids)
    values = {instance: value for _, instance, value in parts.accepted}
    assert values == {"a": 2.5, "b": -0.125, "c": 1234.5, "d": 1.234, "e": 7.0, "f": 1250.0}
    assert parts.notes == ("numbers with a decimal comma: 5",)
    # and with commas between cells, in quotes
    quoted = 'instance,task,label\na,age,"2,5"\n'
    assert take(tmp_path / "y.csv", quoted, ids=ids).accepted == (("age", "a", 2.5),)


@pytest.mark.parametrize(
    ("written", "said", "kept"),
    [
        (["1,234"], None, [None]),
        (["1,234"], ",", [1.234]),
        (["1,234", "2,5"], None, [1.234, 2.5]),
        (["1,234", "2.5"], ",", [None, 2.5]),
        (["1.234"], None, [1.234]),
        (["1.234", "2.5"], ",", [1.234, 2.5]),
        (["1.234"], ",", [None]),
        (["1.234", "2,5"], None, [None, 2.5]),
        (["1.234", "2,5"], ",", [1234.0, 2.5]),
        (["2,5", "3.5", "1.500", "9,125"], None, [2.5, 3.5, None, None]),
        (["0,125", "0.125"], None, [0.125, 0.125]),
    ],
)
def test_a_number_that_may_mean_two_things_goes_by_the_others_or_is_refused(
    tmp_path: Path, written: list[str], said: str | None, kept: list[float | None]
) -> None:
    ids = [f"i{place}" for place in range(len(written))]
    rows = "".join(f'{name},"{each}"\n' for name, each in zip(ids, written, strict=True))
    parts = take(tmp_path / "x.csv", "id,age\n" + rows, ids=ids, decimal=said)
    values = {instance: value for _, instance, value in parts.accepted}
    assert [values.get(name) for name in ids] == kept
    assert len(parts.places) == len(parts.accepted)
    assert len(parts.rejected) == kept.count(None)
    assert all("may be" in reason for _, reason in parts.rejected)
    doubtful = [each for each, value in zip(written, kept, strict=True) if value is None]
    assert sorted(row[2] for row in parts.rows if row is not None) == sorted(doubtful)


def test_letters_of_windows_are_read_where_semicolons_are_between_cells(tmp_path: Path) -> None:
    ids = ["Köln", "Zürich"]
    text = "instance;task;label\r\nKöln;age;2,5\r\nZürich;age;3,5\r\n"
    parts = take(tmp_path / "x.csv", text.encode("cp1252"), ids=ids)
    assert parts.accepted == (("age", "Köln", 2.5), ("age", "Zürich", 3.5))
    bad = take(tmp_path / "y.csv", b"instance;task;label\r\na\x81;age;2\r\na;age;3\r\n")
    assert bad.accepted == (("age", "a", 3.0),)
    assert "0x81 is not UTF-8" in reasons(bad)


@pytest.mark.parametrize(
    ("task", "written", "kept"),
    [
        ("species", "cat", "cat"),
        ("species", " Cat ", "cat"),
        ("species", "GUINEA PIG", "guinea pig"),
        ("species", None, None),
        ("species", "", None),
        ("species", "NaN", None),
        ("stars", "1", "1"),
        ("stars", "2.0", "2"),
        ("stars", 3, "3"),
        ("stars", 3.0, "3"),
        ("tags", "wild|big", ["big", "wild"]),
        ("tags", " wild ", ["wild"]),
        ("tags", "a|b", ["a|b"]),
        ("tags", "|", []),
        ("tags", "", None),
        ("tags", '["a|b", "WILD"]', ["wild", "a|b"]),
        ("tags", ["wild", "Big"], ["big", "wild"]),
        ("tags", [], []),
        ("tags", {"big": 1, "wild": False, "a|b": 0}, ["big"]),
        ("tags", {"big": True, "wild": None}, {"big": 1}),
        ("tags", {}, None),
        ("age", "3.5", 3.5),
        ("age", " -4 ", -4.0),
        ("age", "'-4", -4.0),
        ("age", "1e3", 1000.0),
        ("age", -0.0, 0.0),
        ("age", 7, 7.0),
        ("age", "n/a", None),
        ("points", "[[1, 2], [0.5, 5]]", {"points": [[0.5, 5.0], [1.0, 2.0]], "size": [6, 8]}),
        ("points", [[8, 6], [-0.5, -0.5]], {"points": [[-0.5, -0.5], [8.0, 6.0]], "size": [6, 8]}),
        ("points", [], {"points": [], "size": [6, 8]}),
        ("points", "null", None),
    ],
)
def test_labels_that_are_good(tmp_path: Path, task: str, written: Any, kept: Any) -> None:
    row = json.dumps({"task": task, "instance": "a", "label": written})
    forms = {"x.jsonl": row}
    if isinstance(written, str):
        sheet = io.StringIO()
        csv.writer(sheet).writerows([["task", "instance", "label"], [task, "a", written]])
        wide = io.StringIO()
        csv.writer(wide).writerows([["id", task], ["a", written]])
        forms |= {"x.csv": sheet.getvalue(), "y.csv": wide.getvalue()}
    for name, content in forms.items():
        parts = take(tmp_path / name, content, size_of=lambda instance: SIZE)
        assert parts.rejected == ()
        assert parts.accepted == (() if kept is None else ((task, "a", kept),))
        assert (kept is None) == ("no label yet: 1" in parts.notes)


@pytest.mark.parametrize(
    ("task", "written", "reason"),
    [
        ("species", "catt", "'catt' is none of the classes; did you mean 'cat'?"),
        (
            "species",
            "0",
            "'0' is none of the classes, which go by their names; known: cat, dog, guinea pig",
        ),
        ("species", "1.0", "'1.0' is none of the classes"),
        ("species", 0, "0 is none of the classes"),
        ("species", 1.5, "1.5 is none of the classes"),
        ("species", True, "true is none of the classes"),
        ("species", ["cat"], "a list of 1 is not a class"),
        ("species", {"cat": 1}, "an object of 1 is not a class"),
        ("species", "\x1b[31m", "'\\x1b[31m' is none"),
        ("stars", "0", "'0' is none of the classes"),
        ("stars", 4, "4 is none of the classes"),
        ("tags", "big|wid", "'wid' is none of the classes; did you mean 'wild'?"),
        ("tags", "0", "'0' is none of the classes, which go by their names"),
        ("tags", "0|0|1", "'0' is none of the classes"),
        ("tags", ["wild", 0], "0 is none of the classes"),
        ("tags", "none", "may mean two things; write | for none"),
        ("tags", "[big]", "is not JSON"),
        ("tags", {"big": 2}, "2 for class 'big' is neither 0, 1 nor empty"),
        ("tags", {"big": 1, "BIG": 0}, "'big' is both there and not there"),
        ("tags", [["big"]], "a list of 1 is not a class"),
        ("age", "three", "'three' is not a number"),
        ("age", "3,5 m", "write a decimal point, as in 3.5"),
        ("age", "1,234", "'1,234' may be 1.234 or 1234; write 1234, or 1,2340 if it is a fraction"),
        ("age", "1,234.5", "without a thousands separator, as in 1234.5"),
        ("age", "-1,234,567", "without a thousands separator, as in -1234567"),
        ("age", "inf", "not a finite number"),
        ("age", "1e39", "is too large"),
        ("age", "1_000", "is not a number"),
        ("age", 10**200, "is too large"),
        ("age", True, "true is not a number"),
        ("age", [3], "a list of 1 is not a number"),
        ("points", "[[1, 2, 3]]", "a list of 3 is not a point"),
        ("points", [[1, None]], "a point is two numbers"),
        ("points", [["1", "2"]], "a point is two numbers"),
        ("points", [[9, 2]], "point [9, 2] is outside its picture of 8 x 6 pixels"),
        ("points", [[0, 0]] * 2001, "2001 points are more"),
        ("points", "here", "is not JSON"),
        ("points", 5, "5 is not a list of points"),
        ("seg", "yes", "'yes' is not the name of a PNG file"),
        ("seg", "../x.png", "is not a path below"),
        ("seg", "/etc/x.png", "is not a path below"),
        ("seg", "C:\\x.png", "is not a path below"),
        ("seg", "not-there.png", "is not there"),
        ("seg", 5, "5 is not the name of a PNG file"),
        ("specis", "cat", "there is no task 'specis'; did you mean 'species'?"),
        (None, "cat", "there is no task null"),
        (5, "cat", "there is no task 5"),
    ],
)
def test_labels_that_are_not(tmp_path: Path, task: Any, written: Any, reason: str) -> None:
    good = json.dumps({"task": "species", "instance": "b", "label": "dog"})
    row = json.dumps({"task": task, "instance": "a", "label": written})
    parts = take(tmp_path / "x.jsonl", f"{row}\n{good}\n", size_of=lambda instance: SIZE)
    assert parts.accepted == (("species", "b", "dog"),)
    ((where, why),) = parts.rejected
    assert where == "x.jsonl: line 1"
    assert reason in why
    assert why.isprintable()


@pytest.mark.parametrize(
    ("written", "instance"),
    [
        ("007", "007"), ("7", "007"), ("7.0", "007"), (7, "007"), (7.0, "007"), (" 007 ", "007"),
        (100, "100"),
        ("'=1+1", "=1+1"), ("=1+1", "=1+1"), ("deep/er", "deep/er"), ("Käse", "Käse"),
    ],
)  # fmt: skip
def test_instances_are_found_as_spreadsheets_write_them(
    tmp_path: Path, written: Any, instance: str
) -> None:
    parts = take(tmp_path / "x.jsonl", json.dumps({"id": written, "label": 1}), tasks=["age"])
    assert parts.accepted == (("age", instance, 1.0),)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("Kase", "there is no instance 'Kase'; did you mean 'Käse'?"),
        ("", "names no instance"), (None, "names no instance"), (True, "names no instance"), ([],
        "names no instance"),
        ("8", "there is no instance '8'"), ("-7", "there is no instance '-7'"),
    ],
)  # fmt: skip
def test_instances_that_are_not_there(tmp_path: Path, written: Any, reason: str) -> None:
    parts = take(tmp_path / "x.jsonl", json.dumps({"id": written, "label": 1}), tasks=["age"])
    assert parts.accepted == ()
    assert reason in reasons(parts)


def test_numbers_that_could_be_two_instances_are_neither(tmp_path: Path) -> None:
    parts = take(tmp_path / "x.csv", "id,label\n7,1\n", tasks=["age"], ids=["07", "007"])
    assert "there is no instance '7'; did you mean '07'?" in reasons(parts)


# --- tables ---


def test_wide_tables(tmp_path: Path) -> None:
    content = (
        "id,species,label:age,tags_big,tags:wild,tags"
        " a|b,weight\na,cat,3,1,0,,5\nb,,4,,,,\n007,dgo,,1,0,true,5\n"
    )
    parts = take(tmp_path / "x.csv", content)
    assert parts.accepted == (
        ("species", "a", "cat"),
        ("age", "a", 3.0),
        ("tags", "a", {"big": 1, "wild": 0}),
        ("age", "b", 4.0),
        ("tags", "007", ["big", "a|b"]),
    )
    assert (
        reasons(parts)
        == "x.csv: line 4 | task 'species': 'dgo' is none of the classes; did you mean 'dog'?"
    )
    assert parts.notes == ("no label yet: 3",)
    only = take(tmp_path / "x.csv", task="age")
    assert only.accepted == (("age", "a", 3.0), ("age", "b", 4.0))


@pytest.mark.parametrize(
    ("head", "options", "taken"),
    [
        ("instance,age", {}, ["a"]),
        ("ID,age", {}, ["a"]),
        ("Instance,age", {}, ["a"]),
        ("name,age", {"own_id": "name"}, ["a"]),
        ("name,age,id", {"own_id": "name"}, ["a"]),  # the data's own name for it comes first
        ("id,age", {"own_id": "name"}, ["a"]),
        ("name,age,instance", {}, ["b"]),
        ("name,age,instance", {"own_id": "name", "id_column": "instance"}, ["b"]),
        ("Age,id,age", {"tasks": ("age",)}, []),  # 1 is not an instance, and a task is not an id
    ],
)
def test_the_column_that_names_the_instance(
    tmp_path: Path, head: str, options: dict[str, Any], taken: list[str]
) -> None:
    cells = ("a", "1", "b")[: head.count(",") + 1]
    parts = take(tmp_path / "wide.csv", f"{head}\n{','.join(cells)}\n", **options)
    assert [name for _, name, _ in parts.accepted] == taken


def test_a_table_of_other_instances_is_told_from_one_with_mistakes(tmp_path: Path) -> None:
    none = take(tmp_path / "other.csv", "id,age\nx,1\ny,2\n")
    assert none.notes == (
        "none of its instances is known here, where they are called '007', '100', '=1+1' and so on",
    )
    assert len(none.rejected) == 2
    assert take(tmp_path / "some.csv", "id,age\nx,1\na,2\n").notes == ()


def test_a_column_for_each_class(tmp_path: Path) -> None:
    parts = take(tmp_path / "x.csv", "id,big,wild,a|b,dog\na,1,0,0,x\nb,,1,\n", task="tags")
    assert parts.accepted == (("tags", "a", ["big"]), ("tags", "b", {"wild": 1}))
    with pytest.raises(InputError, match="nothing is called 'label', or like a task"):
        take(tmp_path / "x.csv")


def test_a_column_with_nearly_the_name_of_a_task_is_noticed(tmp_path: Path) -> None:
    parts = take(tmp_path / "x.csv", "id,age,speices\na,1,cat\n")
    assert "no column is called 'species', did you mean 'speices'?" in parts.notes


@pytest.mark.parametrize(
    "content", ["id;age\na;3.5\n", "id\tage\na\t3.5\n", "\ufeffid,age\na,3.5\n", "id,age\r\na,3.5"]
)
def test_tables_as_various_programs_save_them(tmp_path: Path, content: str) -> None:
    assert take(tmp_path / "x.csv", content).accepted == (("age", "a", 3.5),)


def test_rows_that_are_too_short_or_too_long(tmp_path: Path) -> None:
    """Spreadsheets leave out empty cells at the end, and add some."""
    parts = take(tmp_path / "x.csv", "id,age,species\na,1\nb,2,cat,,\n007,3,dog,x\n\n,,\n100\n")
    assert parts.accepted == (("age", "a", 1.0), ("age", "b", 2.0), ("species", "b", "cat"))
    assert (
        reasons(parts)
        == "x.csv: line 4 | has 4 cells where the first line has 3; is a comma not in quotes?"
    )


def test_a_task_may_be_called_like_a_column_of_the_sheet(tmp_path: Path) -> None:
    tasks = {"label": Target("label", "regression"), "task": Target("task", "regression")}
    parts = take(tmp_path / "x.csv", "id,label,task\na,1,2\n", tasks=tasks)
    assert parts.accepted == (("label", "a", 1.0), ("task", "a", 2.0))
    path = write_csv(Order((("label", "a"), ("task", "b")), 0), tmp_path / "order.csv")
    path.write_text(
        "\n".join(f"{line}{at or ''}" for at, line in enumerate(path.read_text().splitlines()))
    )
    assert take(path, tasks=tasks).accepted == (("label", "a", 1.0), ("task", "b", 2.0))


def test_duplicates_and_contradictions(tmp_path: Path) -> None:
    rows = "\n".join(f"a,{label}" for label in ("1", "1.0", "2", *map(str, range(3, 20))))
    parts = take(tmp_path / "x.csv", f"id,age\n{rows}\n")
    assert [value for _, _, value in parts.accepted] == [float(number) for number in range(1, 11)]
    assert "the same label once more: 1" in parts.notes
    # whoever keeps the answers counts what contradicts
    assert parts.notes == ("the same label once more: 1",)
    assert len(parts.rejected) == 9
    assert "is one more of many answers for 'a'" in reasons(parts)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.csv", "", "is empty"),
        ("x.csv", "\n\n", "is empty"),
        ("x.csv", "instanse,label\na,1\n", "to name the instance; did you mean 'instanse'"),
        ("x.csv", "id,lable\na,1\n",
        "nothing is called 'label', or like a task .'species', .*did you mean 'lable'"),
        ("x.csv", "id,label\na,1\n", "none says which task the labels are for .*--task NAME"),
        ("x.csv", "id,age,age\na,1,2\n", "line 1: .*column 'age' is there more than once"),
        ("x.csv", b"\xff\xfei\0d\0", "is UTF-16 text; save it as UTF-8"),
        ("x.csv", b"id,age\xff\na,1\n", "byte 0xff is not UTF-8"),
        ("x.csv", "a" * (1 << 21), "has more than 1 MB in one line"),
        ("x.csv", "id,\x1b[31m" + "x" * 500 + "\n", r"known: id, '\\x1b\[31mx{35}'$"),
        ("x.csv", 'id,"age\na,1\n', "a quote .* is opened here and never closed"),
        ("x.jsonl", b"\xfe\xff\0{", "is UTF-16"),
        ("x.json", "[]", "is no text with a label in each line; .* write JSON as .jsonl"),
        ("x.xlsx", b"PK\3\4", "save a spreadsheet as .csv"),
        ("x.pdf", "%PDF-1.7", "is no text with a label in each line"),
        ("x.doc", b"\xd0\xcf\x11\xe0\0\0", "is no text with a label in each line"),
        ("x.txt", b"\xff\xfei\0d\0", "is UTF-16 text; save it as UTF-8"),
        ("x.txt", "", "is empty"),
        ("x.jsonl", "\n\n", "is empty"),
        ("x.zip", "PK", "is not a zip archive, or its end is missing"),
        ("x.zip", b"PK\5\6" + b"\0" * 8 + b"\xff\xff\xff\x7f" + b"\0" * 6, "far too many files"),
        ("x.zip", b"PK\5\6" + b"\1" * 18, "is not a whole zip archive|far too many"),
        ("x.csv", None, "there is no such file"),
        ("x.png", None, "there is no such file"),
        ("x" * 300 + ".csv", None, "can't be read"),
        ("x\0.csv", None, "can't be read"),
        ("x\0.doc", None, "can't be read"),
    ],
)  # fmt: skip
def test_what_is_no_delivery_at_all(
    tmp_path: Path, name: str, content: str | bytes | None, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        take(tmp_path / name, content)
    assert str(caught.value).replace("\n", "").isprintable()
    assert len(str(caught.value)) < 1000


def test_options_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        take(tmp_path / "x.csv", "id,age\n", task="agee", separator=" ")
    assert "task: there is no 'agee'; did you mean 'age'?" in str(caught.value)
    assert "separator" in str(caught.value)
    with pytest.raises(InputError, match="there is none"):
        take(tmp_path / "x.csv", tasks={})


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(InputError, match="is not a plain file"):
        take(tmp_path / "x.csv")


def test_bad_lines_cost_only_themselves(tmp_path: Path) -> None:
    lines = [
        b"id,age",
        b"a,1",
        b"b,\xff",
        b"b,2\0",
        b'b,"3',
        b"007,4",
        b'100,"5"x',
        b'"Kas"e",1',
        b'"deep/er",6',
    ]
    parts = take(tmp_path / "x.csv", b"\n".join(lines))
    assert parts.accepted == (("age", "a", 1.0), ("age", "007", 4.0), ("age", "deep/er", 6.0))
    where = [place.removeprefix("x.csv: line ") for place, _ in parts.rejected]
    assert where == ["3", "4", "5", "7", "8"]
    for reason in (
        "0xff is not UTF-8",
        "NUL byte",
        "is opened here and never closed",
        "expected after",
    ):
        assert reason in reasons(parts)


def test_bad_json_lines_cost_only_themselves(tmp_path: Path) -> None:
    bad = {
        b"{": "is not JSON",
        b"[1]": "is a list of 1",
        b"7": "is 7; each line holds an object",
        b'{"id": "a", "label": NaN}': "NaN is not a finite number",
        b'{"id": "a", "label": 1e999}': "'1e999' is not a finite number",
        b'{"id": "a", "label": 1' + b"0" * 5000 + b"}": "a number of 5001 digits",
        b'{"id": "a", "id": "b", "label": 1}': "has the key 'id' twice",
        b"[" * 100_000: "nested too deeply",
        b'{"id": "a", "label": ' + b"[" * 900 + b"]" * 900 + b"}": "a list of 1 is not a number",
        b'{"id": "a", "label": "\xff"}': "is not UTF-8",
        b'{"label": 1}': "nothing is called 'instance' or 'id'",
        b'{"id": "a"}': "nothing is called 'label'",
    }
    content = b"\n\n".join([*bad, b'{"id": "b", "label": 2}'])
    parts = take(tmp_path / "x.jsonl", content, tasks=["age"])
    assert parts.accepted == (("age", "b", 2.0),)
    assert [place for place, _ in parts.rejected] == [
        f"x.jsonl: line {2 * at + 1}" for at in range(len(bad))
    ]
    for (_, why), expected in zip(parts.rejected, bad.values(), strict=True):
        assert expected in why


def test_the_digest_is_of_the_content_and_of_what_came_of_it(tmp_path: Path) -> None:
    first = take(tmp_path / "x.csv", "id,age\na,1\nc,2\n")
    assert take(tmp_path / "y.csv", "id,age\na,1\nc,2\n").digest == first.digest
    assert take(tmp_path / "x.csv", "id,age\na,1\nd,2\n").digest != first.digest
    # once its instance is known the same file is worth reading again
    assert take(tmp_path / "y.csv", ids=[*IDS, "c"]).digest != first.digest


def test_messages_do_not_depend_on_the_order_of_a_set(tmp_path: Path) -> None:
    code = (
        "import sys; from allotment.connect.delivery import read_delivery; from"
        " allotment.data.dataset import Target\nids = {f'scene-{k:05d}' for k in"
        " range(5000)}\nprint(read_delivery(sys.argv[1], {'age': Target('age', 'regression')},"
        " ids))"
    )
    (tmp_path / "x.csv").write_text(
        "id,age\n" + "".join(f"scen-{k:05d},1\n" for k in range(0, 5000, 50))
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "x.csv")],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert "did you mean 'scene-00050'?" in said.pop()


# --- round trips ---


def fill(frame: list[dict[str, str]]) -> None:
    answers = {"species": "dog", "tags": "big|wild", "age": "-3.5", "points": "[[1, 2]]"}
    for number, row in enumerate(frame):
        if number % 4:
            row["label"] = answers[row["task"]]


def ordered() -> tuple[Order, list[tuple[str, str, Any]]]:
    tasks = ("species", "tags", "age", "points")
    order = choose(dict.fromkeys(tasks, IDS), dict.fromkeys(tasks, 5), seed=1)
    kept = {
        "species": "dog",
        "tags": ["big", "wild"],
        "age": -3.5,
        "points": {"points": [[1.0, 2.0]]},
    }
    return order, [
        (task, name, kept[task]) for number, (task, name) in enumerate(order.items) if number % 4
    ]


def test_an_order_filled_in_with_csv_comes_back(tmp_path: Path) -> None:
    order, expected = ordered()
    show = {"file": {name: f"-{name}.jpg" for name in IDS}}
    path = write_csv(order, tmp_path / "order.csv", show=show, targets=TARGETS)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    fill(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    parts = take(path)
    assert (list(parts.accepted), parts.rejected) == (expected, ())
    assert parts.notes == (f"no label yet: {len(order) - len(expected)}",)


@pytest.mark.parametrize("text", [True, False])
def test_an_order_filled_in_with_pandas_comes_back(tmp_path: Path, text: bool) -> None:
    """Also where pandas takes the instance 007 for a number."""
    order, expected = ordered()
    assert "007" in {name for _, name in order.items}
    path = write_csv(order, tmp_path / "order.csv")
    frame = pd.read_csv(path, dtype=str if text else None)
    frame["label"] = frame["label"].astype(object)
    rows = frame.to_dict("records")
    fill(rows)
    pd.DataFrame(rows).to_csv(path, index=False)
    parts = take(path)
    assert (list(parts.accepted), parts.rejected) == (expected, ())


def test_whole_numbers_that_pandas_made_floats_come_back(tmp_path: Path) -> None:
    path = write_csv(
        Order(tuple(("stars", name) for name in ("007", "100")), 0), tmp_path / "order.csv"
    )
    frame = pd.read_csv(path)
    frame.loc[0, "label"] = 2
    frame.to_csv(path, index=False)
    assert ",2.0" in path.read_text()
    assert take(path).accepted == (("stars", "007", "2"),)


def test_an_order_filled_in_as_jsonl_comes_back(tmp_path: Path) -> None:
    order, expected = ordered()
    path = write_jsonl(order, tmp_path / "order.jsonl", targets=TARGETS)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    fill(rows)
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert list(take(path).accepted) == expected


def test_an_untouched_order_is_an_empty_delivery(tmp_path: Path) -> None:
    order, _ = ordered()
    for path in (write_csv(order, tmp_path / "a.csv"), write_jsonl(order, tmp_path / "a.jsonl")):
        parts = take(path)
        assert (parts.accepted, parts.rejected, parts.notes) == (
            (),
            (),
            (f"no label yet: {len(order)}",),
        )


def test_the_list_of_what_was_rejected_is_a_safe_sheet(tmp_path: Path) -> None:
    parts = take(tmp_path / "=x.csv", 'id,age\n"=HYPERLINK(""x"")",1\na,=1+1\n')
    path = write_rejected(parts, tmp_path / "rejected.csv")
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    assert rows[0] == ["task", "instance", "label", "reason", "where"]
    assert [row[:3] for row in rows[1:]] == [
        ["age", '\'=HYPERLINK("x")', "1"],
        ["age", "a", "'=1+1"],
    ]
    assert [row[-1] for row in rows[1:]] == ["'=x.csv: line 2", "'=x.csv: line 3"]


# --- masks ---


def write_masks(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_zip(path: Path, files: Mapping[str, bytes], **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def normals(size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    """Towards the viewer, leaning a little; one pixel unknown."""
    vectors = np.zeros((*size, 3))
    vectors[..., :] = (0.6, 0, 0.8)
    colours = np.round((vectors + 1) * 127.5).astype(np.uint8)
    colours[0, 0] = 0
    return colours


def good_masks() -> dict[str, tuple[bytes, NDArray[Any]]]:
    """Of each kind a file, and the label that it holds by the words of the manual."""
    seg = np.arange(48).reshape(SIZE) % 2
    seg[0, 0] = 255
    depth = np.arange(48).reshape(SIZE) * 100
    edges = np.arange(48).reshape(SIZE) * 5
    metres = depth / 1000
    metres[0, 0] = np.nan
    vectors = np.tile(np.array([0.6, 0, 0.8])[:, None, None], (1, *SIZE))
    vectors[:, 0, 0] = np.nan
    return {
        "seg": (png(seg), seg),
        "depth": (png(depth, np.uint16), metres),
        "normals": (png(normals()), vectors),
        "edges": (png(edges), edges / 255),
        "points": (png(edges * 200, np.uint16), edges * 200 / 65535),
    }


@pytest.mark.parametrize("packed", [False, True])
def test_masks_of_every_kind_come_back_as_labels(tmp_path: Path, packed: bool) -> None:
    masks = good_masks()
    files = {
        f"{task}/{name}.png": content
        for task, (content, _) in masks.items()
        for name in ("a", "deep/er")
    }
    files["__MACOSX/seg/._a.png"] = files["seg/.DS_Store"] = b"clutter"
    source = write_zip(tmp_path / "m.zip", files) if packed else write_masks(tmp_path / "m", files)
    parts = take(source, size_of=lambda instance: SIZE, keep=tmp_path / "labels")
    assert parts.rejected == ()
    assert {(task, name) for task, name, _ in parts.accepted} == {
        (task, n) for task in masks for n in ("a", "deep/er")
    }
    for task, _, value in parts.accepted:
        label = to_array(TARGETS[task], value, folder=tmp_path / "labels", size=SIZE)
        np.testing.assert_allclose(label, masks[task][1], atol=0.005)
        assert label.dtype == (np.uint8 if task == "seg" else np.float32)
    assert len(os.listdir(tmp_path / "labels")) == len(masks)


def test_what_is_kept_of_a_mask_is_its_pixels(tmp_path: Path) -> None:
    """However it was saved, the same mask is the same label, and nothing else of the file is
    kept."""
    mask = np.arange(48).reshape(SIZE) % 2
    image = Image.fromarray(mask.astype(np.uint8))
    made = io.BytesIO()
    image.save(made, format="PNG", compress_level=0, exif=b"secret place")
    files = {
        "seg/a.png": png(mask),
        "seg/b.png": png(mask, palette=True),
        "seg/007.png": made.getvalue(),
    }
    assert b"secret" in files["seg/007.png"]
    parts = take(write_masks(tmp_path / "m", files), keep=tmp_path / "labels")
    assert len({json.dumps(value) for _, _, value in parts.accepted}) == 1
    (kept,) = (tmp_path / "labels").iterdir()
    assert b"secret" not in kept.read_bytes()
    assert kept.name == f"{parts.accepted[0][2]['png']}.png"
    assert take(tmp_path / "m").digest == parts.digest  # nothing is written without a place for it
    assert sorted(os.listdir(tmp_path)) == ["labels", "m"]


def test_a_sheet_may_name_masks(tmp_path: Path) -> None:
    write_masks(tmp_path, {"masks/one.png": good_masks()["seg"][0]})
    parts = take(
        tmp_path / "x.csv", "task,instance,label\nseg,a,masks/one.png\nage,a,masks/one.png\n"
    )
    assert [(task, name) for task, name, _ in parts.accepted] == [("seg", "a")]
    assert "'masks/one.png' is not a number" in reasons(parts)


def test_folders_around_masks(tmp_path: Path) -> None:
    seg = good_masks()["seg"][0]
    files = {
        "seg/a.png": seg,
        "export/seg/b.png": seg,
        "export/seg/deep/er.PNG": seg,
        "007.png": seg,
        "x/100.png": seg,
    }
    parts = take(write_masks(tmp_path / "m", files), tasks=["seg", "age"])
    assert {name for _, name, _ in parts.accepted} == {"a", "b", "deep/er", "007", "100"}
    assert "is in no folder of a task" in reasons(take(tmp_path / "m"))
    by_name = take(tmp_path / "m", task="depth")
    assert "depth" not in {task for task, _, _ in by_name.accepted}


BAD_MASKS: dict[str, tuple[bytes, str]] = {
    "seg/c.png": (png(np.zeros(SIZE)), "there is no instance 'c'"),
    "seg/a.jpg": (b"", "is not a PNG file by its name"),
    "seg/a.png": (b"\x89PNG\r\n\x1a\n", "is not a PNG image, whatever its name says"),
    "seg/b.png": (png(np.zeros((6, 9))), "has 9 x 6 pixels, and its picture 8 x 6"),
    "seg/007.png": (png(np.full(SIZE, 2)), "holds 2, and classes are numbered 0 to 1"),
    "seg/100.png": (png(np.full(SIZE, 255)), "255 everywhere, so nothing in it counts"),
    "seg/Käse.png": (
        png(np.zeros((*SIZE, 3))),
        "is 8-bit RGB; a PNG of segmentation holds class numbers",
    ),
    "depth/a.png": (
        png(np.ones(SIZE)),
        "is 8-bit grey; a PNG of depth holds millimetres as 16-bit grey",
    ),
    "depth/b.png": (png(np.zeros(SIZE), np.uint16), "no depth in it"),
    "normals/a.png": (png(np.zeros((*SIZE, 3))), "black everywhere"),
    "normals/b.png": (png(np.full((*SIZE, 3), 250)), "few directions of length 1"),
    "normals/007.png": (
        png(np.tile(np.array([128, 128, 0], dtype=np.uint8), (*SIZE, 1))),
        "away from the viewer",
    ),
    "edges/a.png": (png(np.arange(48).reshape(SIZE) % 2), "holds only 0 and 1; write 255"),
    "edges/b.png": (png(np.zeros(SIZE), palette=True), "is 8-bit palette; a PNG of edges"),
    "edges/007.png": (png(np.arange(48).reshape(SIZE))[:-30], "damaged"),
    "age/a.png": (png(np.zeros(SIZE)), "a label of kind regression is no picture"),
    "sog/a.png": (png(np.zeros(SIZE)), "is in no folder of a task"),
}


@pytest.mark.parametrize("packed", [False, True])
def test_masks_that_are_no_labels(tmp_path: Path, packed: bool) -> None:
    files = {name: content for name, (content, _) in BAD_MASKS.items()} | {
        "seg/deep/er.png": good_masks()["seg"][0]
    }
    source = write_zip(tmp_path / "m.zip", files) if packed else write_masks(tmp_path / "m", files)
    parts = take(source, size_of=lambda instance: SIZE, keep=tmp_path / "labels")
    assert [(task, name) for task, name, _ in parts.accepted] == [("seg", "deep/er")]
    said = dict(parts.rejected)
    assert set(said) == {f"{source.name}: {name}" for name in BAD_MASKS}
    for name, (_, reason) in BAD_MASKS.items():
        assert reason in said[f"{source.name}: {name}"]
    assert len(os.listdir(tmp_path / "labels")) == 1


def test_black_and_white_masks_are_remarked_upon(tmp_path: Path) -> None:
    mask = np.where(np.arange(48).reshape(SIZE) % 2, 255, 0)
    parts = take(write_masks(tmp_path / "m", {"seg/a.png": png(mask)}))
    assert len(parts.accepted) == 1
    assert (
        "masks of 'seg' with only 0 and 255, which does not count: if it stands for 'animal'"
        in parts.notes[0]
    )


def test_a_picture_that_can_not_be_read_is_a_reason(tmp_path: Path) -> None:
    def missing(instance: str) -> tuple[int, int]:
        raise InputError([])

    parts = take(
        write_masks(tmp_path / "m", {"seg/a.png": good_masks()["seg"][0]}), size_of=missing
    )
    assert "its picture can't be read" in reasons(parts)


def chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">L", len(content))
        + name
        + content
        + struct.pack(">L", zlib.crc32(name + content))
    )


def bomb(width: int, height: int, extra: bytes = b"") -> bytes:
    """A small file that says it holds many pixels, and does."""
    rows = zlib.compressobj(9)
    packed = (
        b"".join(rows.compress(bytes(1 << 20)) for _ in range(min(width * height >> 20, 50)))
        + rows.flush()
    )
    head = chunk(b"IHDR", struct.pack(">LLBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + extra + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def peak(step: Callable[[], object]) -> int:
    """Bytes of Python's memory, numpy's included, that a step takes at most."""
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_pictures_that_explode_are_not_decoded(tmp_path: Path) -> None:
    text = zlib.compress(bytes(30 << 20), 9)
    files = {
        "seg/a.png": bomb(30_000, 30_000),
        "seg/b.png": bomb(4_000_000_000, 4_000_000_000),
        "seg/007.png": bomb(0, 5),
        "seg/100.png": bomb(8, 6, chunk(b"zTXt", b"x\0\0" + text)),
        "depth/a.png": bomb(5000, 5000),
    }
    folder = write_masks(tmp_path / "m", files)
    parts: list[Parts] = []
    assert peak(lambda: parts.append(take(folder))) < 60 << 20
    assert parts[0].accepted == () or [name for _, name, _ in parts[0].accepted] == ["100"]
    for reason in (
        "30000 x 30000 pixels, and at most 50 million",
        "0 x 5 pixels",
        "is 8-bit grey; a PNG of depth",
    ):
        assert reason in reasons(parts[0])
    sized = take(folder, size_of=lambda instance: SIZE)
    assert "has 5000 x 5000 pixels, and its picture 8 x 6" in reasons(sized)


# --- archives and folders that mean harm ---


def test_names_in_archives_that_lead_elsewhere(tmp_path: Path) -> None:
    seg = good_masks()["seg"][0]
    names = [
        "/seg/a.png", "../seg/a.png", "seg/../../a.png", "C:/seg/a.png", "C:seg/a.png",
        "seg\\a.png", "seg\\..\\a.png",
        "\\\\host\\seg\\a.png", "//host/seg/a.png",
    ]  # fmt: skip
    (tmp_path / "inner").mkdir()
    path = write_zip(tmp_path / "inner" / "m.zip", dict.fromkeys(names, seg) | {"seg/b.png": seg})
    before = {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*")}
    parts = take(path, ids=[*IDS, *(name.removesuffix(".png") for name in names)])
    assert [(task, name) for task, name, _ in parts.accepted] == [("seg", "b")]
    assert len(parts.rejected) == len(names)
    assert reasons(parts).count("is not a plain path below the archive") == len(names)
    assert {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*")} == before


def test_archives_that_are_not_as_they_should_be(tmp_path: Path) -> None:
    seg = good_masks()["seg"][0]
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("seg/a.png")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("seg/b.png", bytes(30 << 20), zipfile.ZIP_DEFLATED)
        archive.writestr("seg/007.png", bytes(65 << 20), zipfile.ZIP_DEFLATED)
        archive.writestr("seg/100.png", seg, zipfile.ZIP_BZIP2)
        archive.writestr("seg/deep/er.png", seg)
        archive.writestr("seg/Käse.png", seg)
    content = bytearray(path.read_bytes())
    start = content.find(seg, content.find(b"seg/deep/er.png"))
    content[start + 50] ^= 1  # its checksum is wrong now
    content[content.rfind(b"PK\1\2") + 8] |= 1  # and the last one has a password
    path.write_bytes(bytes(content))
    parts: list[Parts] = []
    assert peak(lambda: parts.append(take(path))) < 20 << 20
    assert parts[0].accepted == ()
    for name, reason in {
        "a": "is a link", "b": "more than 200 times", "007": "unpacks to 68157440 bytes",
        "100": "unusual way",
        "deep/er": "is damaged (BadZipFile)", "Käse": "has a password",
    }.items():  # fmt: skip
        assert reason in dict(parts[0].rejected)[f"m.zip: seg/{name}.png"]


def test_archives_that_explode_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zip(
        tmp_path / "m.zip", {f"seg/{number}.png": bytes(1000) for number in range(100)}
    )
    monkeypatch.setattr(guard, "MOST_UNPACKED", 99_999)
    with pytest.raises(InputError, match="unpacks to more than"):
        take(path)
    monkeypatch.setattr(guard, "LARGEST_DELIVERY_LIST", 5000)
    with pytest.raises(InputError, match="far too many files"):
        take(path)


def test_a_file_that_lies_about_its_size_is_not_unpacked_further(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "m.zip", {"seg/a.png": bytes(200 << 20)}, compression=zipfile.ZIP_DEFLATED
    )
    content = bytearray(path.read_bytes())
    struct.pack_into("<L", content, content.rfind(b"PK\1\2") + 24, 1000)
    path.write_bytes(bytes(content))
    parts: list[Parts] = []
    assert peak(lambda: parts.append(take(path))) < 20 << 20
    assert parts[0].accepted == ()
    assert len(parts[0].rejected) == 1


def test_links_in_folders_are_not_followed(tmp_path: Path) -> None:
    seg = good_masks()["seg"][0]
    write_masks(tmp_path / "outside", {"a.png": seg, "seg/b.png": seg})
    folder = write_masks(tmp_path / "m", {"seg/007.png": seg})
    (folder / "seg" / "a.png").symlink_to(tmp_path / "outside" / "a.png")
    (folder / "more").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "seg" / "b.png")
    parts = take(folder)
    assert [name for _, name, _ in parts.accepted] == ["007"]
    assert {where.removeprefix("m: ") for where, _ in parts.rejected} == {
        "loop",
        "more",
        "seg/a.png",
        "seg/b.png",
    }
    parts = take(
        folder / "x.csv",
        "task,instance,label\nseg,a,seg/a.png\nseg,b,seg/b.png\nseg,007,seg/007.png\n",
    )
    assert [name for _, name, _ in parts.accepted] == ["007"]
    assert "is a link that leads out of" in reasons(parts)


def test_folders_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "m" / "/".join("x" * 40)
    deep.mkdir(parents=True)
    assert "is more than 30 folders deep" in reasons(take(tmp_path / "m"))
    write_masks(tmp_path / "n", {f"{number}.png": b"" for number in range(20)})
    monkeypatch.setattr(guard, "MOST_DELIVERED_FILES", 10)
    with pytest.raises(InputError, match="holds more than 10 files"):
        take(tmp_path / "n")


# --- large files ---


class Endless(io.RawIOBase):
    """A file of one gigabyte and more that takes no space: some beginning, one line without end,
    some lines after."""

    def __init__(self, first: bytes, fill: bytes, size: int, last: bytes):
        self.parts = [first, fill, last]
        self.ends = [len(first), len(first) + size, len(first) + size + len(last)]
        self.at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        place = next((k for k, end in enumerate(self.ends) if self.at < end), None)
        if place is None:
            return 0
        count = min(len(buffer), self.ends[place] - self.at)
        start = self.at - (self.ends[place - 1] if place else 0)
        part = self.parts[place]
        buffer[:count] = part * count if place == 1 else part[start : start + count]
        self.at += count
        return count


@pytest.mark.parametrize(("fill", "size"), [(b"x", 1 << 30), (b'"', 1 << 26), (b",", 1 << 26)])
def test_a_line_of_a_gigabyte_costs_a_megabyte(fill: bytes, size: int) -> None:
    found: list[Any] = []

    def read() -> None:
        file = io.BufferedReader(Endless(b"id,age\na,1\n", fill, size, b"\nb,2\n"), 1 << 16)
        found.extend(guard.read_records(file, ","))

    assert peak(read) < 8 << 20
    assert found[:2] == [(1, ["id", "age"]), (2, ["a", "1"])]
    assert found[2][0] == 3
    assert "more than 1 MB in one line" in found[2][1]
    assert found[3:] == [(4, ["b", "2"])]


def test_a_quote_that_is_never_closed_costs_one_row_however_long_the_file(tmp_path: Path) -> None:
    rows = 40_000  # more than a record may have lines
    content = 'id,age\na,"1\n' + "".join(f"{number},1\n" for number in range(rows))
    parts = take(tmp_path / "x.csv", content, ids=[str(number) for number in range(rows)])
    assert len(parts.accepted) == rows
    assert [where for where, _ in parts.rejected] == ["x.csv: line 2"]


def test_what_is_rejected_is_counted_where_it_is_too_much_to_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_REFUSALS", 5)
    monkeypatch.setattr(delivery, "MOST_LABELS", 3)
    rows = "".join(f"{name},1\n" for name in IDS[:4] if name != "=1+1") + "nobody,1\n" * 10
    parts = take(tmp_path / "x.csv", f"id,age\n{rows}")
    assert len(parts.accepted) == 3
    assert len(parts.rejected) == 6
    assert parts.rejected[-1] == ("x.csv", "and 5 more that are not listed; mend these first")


def test_very_many_columns(tmp_path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(100_000))
    parts = take(tmp_path / "x.csv", f"id,age,{names}\na,1,{',' * 99_998}\nb,2\n")
    assert parts.accepted == (("age", "a", 1.0), ("age", "b", 2.0))


# --- values as labels ---


@pytest.mark.parametrize(
    ("task", "value", "label"),
    [
        ("species", "guinea pig", 2),
        ("tags", ["wild"], [0, 1, 0]),
        ("tags", [], [0, 0, 0]),
        ("tags", {"big": 1, "a|b": 0}, [1, np.nan, 0]),
        ("age", 2.5, 2.5),
    ],
)
def test_kept_values_are_labels(task: str, value: Any, label: Any) -> None:
    np.testing.assert_array_equal(to_array(TARGETS[task], value), label)


@pytest.mark.parametrize(
    ("task", "value", "reason"),
    [
        ("species", "horse", "'horse' is none of the classes"),
        ("species", 1, "is not a list of classes"),
        ("tags", {"big": 3}, "neither there nor not there"),
        ("tags", 7, "7 is not a list of classes"),
        ("age", "x", "'x' is not a number"),
        ("age", float("nan"), "is not a number"),
        ("seg", {"png": "../../etc/passwd"}, "is not the hash of a mask"),
        ("seg", "cat", "is not the hash of a mask"),
        ("seg", {"png": "0" * 64}, "is not there"),
        ("points", {"points": [[1, 2]]}, "size of its picture is not known"),
        ("points", {"points": [[1, 2]], "size": [10**9, 10**9]}, "is not the size of a picture"),
        ("points", {"points": [[1]], "size": [5, 5]}, "is not a point"),
    ],
)
def test_values_for_other_data(tmp_path: Path, task: str, value: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        to_array(TARGETS[task], value, folder=tmp_path)


def test_keypoints_are_drawn_as_the_scenes_do() -> None:
    """From the scenes' own points, the same maps."""
    size = 96
    data = make_scenes(count=6, size=size)
    target = next(target for target in data.targets if target.kind == "keypoints")
    drawn = 0
    for index, heat in enumerate(data.labels[target.name]):
        scene = draw_scene(0, index)
        rows, columns, _ = project(scene, scene.keypoints(), size)
        points = [
            [float(x), float(y)]
            for x, y in zip(columns, rows, strict=True)
            if is_marked(heat, x, y)
        ]
        made = to_array(target, {"points": points}, size=(size, size))
        assert np.abs(made - heat).max() < 1e-5
        drawn += len(points)
    assert drawn > 20


def is_marked(heat: NDArray[np.float32], x: float, y: float) -> bool:
    """Whether a point that nothing hides is on the map: then it is as high there as a bump of its
    own."""
    row, column = (int(np.clip(np.round(at), 0, len(heat) - 1)) for at in (y, x))
    width = len(heat) / 48
    return bool(
        heat[row, column] >= np.exp(-0.5 * ((row - y) ** 2 + (column - x) ** 2) / width**2) - 1e-5
    )


def test_labels_for_pictures_of_another_size(tmp_path: Path) -> None:
    parts = take(
        write_masks(tmp_path / "m", {"seg/a.png": png(np.zeros((40, 60)))}),
        keep=tmp_path / "labels",
    )
    with pytest.raises(InputError, match="it has 60 x 40 pixels, not 8 x 6"):
        to_array(TARGETS["seg"], parts.accepted[0][2], folder=tmp_path / "labels", size=SIZE)
    with pytest.raises(InputError, match="it has 60 x 40 pixels, not 8 x 6"):
        to_array(TARGETS["points"], {"points": [[30.0, 20.0]], "size": [40, 60]}, size=SIZE)


def test_sizes_of_pictures(tmp_path: Path) -> None:
    table = ArrayData("t", (Target("y", "regression"),), np.zeros((3, 2)), {"y": np.zeros(3)})
    assert table.picture_size(0) is None
    assert make_scenes(2, 16).picture_size(1) == (16, 16)
    write_masks(tmp_path, {"a.png": png(np.zeros((5, 9, 3))), "b.png": png(np.zeros((7, 4, 3)))})
    data = FolderData("f", tmp_path, 32, (), ("a.png", "b.png"), {}, {}, ("a", "b"))
    assert (data.picture_size(0), data.picture_size(1)) == ((5, 9), (7, 4))


def test_every_map_of_the_scenes_can_be_delivered(tmp_path: Path) -> None:
    """Written as the manual says, each comes back as the label that it was, but for the steps
    between its numbers."""
    data = make_scenes(count=3, size=32)
    targets = {target.name: target for target in data.targets if target.name != "classes"}
    written: dict[str, Callable[[NDArray[Any]], bytes]] = {
        "segmentation": png,
        "depth": lambda label: png(np.round(label * 1000), np.uint16),
        "normals": lambda label: png(np.round((label.transpose(1, 2, 0) + 1) * 127.5)),
        "edges": lambda label: png(np.round(label * 255)),
        "keypoints": lambda label: png(np.round(label * 65535), np.uint16),
    }
    files = {
        f"{task}/{name}.png": written[task](label)
        for task in targets
        for name, label in zip(data.ids, data.labels[task], strict=True)
    }
    places = {name: place for place, name in enumerate(data.ids)}

    def sizes(name: str) -> tuple[int, int] | None:
        return data.picture_size(places[name])

    folder = write_masks(tmp_path / "m", files)
    parts = take(folder, tasks=targets, ids=data.ids, size_of=sizes, keep=tmp_path / "labels")
    assert (len(parts.accepted), parts.rejected) == (15, ())
    for task, name, value in parts.accepted:
        label = to_array(targets[task], value, folder=tmp_path / "labels", size=sizes(name))
        step = {
            "segmentation": 0,
            "depth": 0.0006,
            "normals": 0.012,
            "edges": 0.002,
            "keypoints": 1e-5,
        }[task]
        np.testing.assert_allclose(label, data.labels[task][places[name]], atol=step)


# --- the real thing ---


@pytest.mark.skipif(not DATA, reason="ALLOT_TEST_DATA does not name a folder with VOC2012/")
def test_real_voc_comes_back(tmp_path: Path) -> None:
    where = Path(str(DATA)) / "VOC2012"
    data = read_voc(where)
    targets = {target.name: target for target in data.targets}
    places = {name: place for place, name in enumerate(data.ids)}
    told = read_delivery(
        where / "class_labels_from_masks.csv", targets, places, id_column="image", task="classes"
    )
    assert (len(told.accepted), told.rejected, told.notes) == (data.size, (), ())
    some = told.accepted[::400]
    own = data.values("classes", np.array([places[name] for _, name, _ in some]))
    assert [to_array(targets[task], value).tolist() for task, _, value in some] == own.tolist()
    masks = {
        f"segmentation/{name}.png": data.root / data.label_files["segmentation"][places[name]]
        for _, name, _ in some
    }
    packed = write_zip(
        tmp_path / "m.zip", {name: path.read_bytes() for name, path in masks.items()}
    )
    parts = take(
        packed,
        tasks=targets,
        ids=places,
        size_of=lambda name: data.picture_size(places[name]),
        keep=tmp_path / "labels",
    )
    assert (len(parts.accepted), parts.rejected) == (len(some), ())
    for task, name, value in parts.accepted:
        label = to_array(targets[task], value, folder=tmp_path / "labels")
        np.testing.assert_array_equal(label, data.label(task, places[name]))
