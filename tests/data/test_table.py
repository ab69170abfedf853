"""Tables: the same arrays from every kind of file, and a clear error for every kind of mistake."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import os
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.bounded import check_refused, run_bounded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from allotment.data import csv_file, open_file, table_file
from allotment.data.columns import Column
from allotment.data.features import encode_text
from allotment.data.labels import Labels, Split, draw, split
from allotment.data.summary import describe
from allotment.data.table import TableData, read_table
from allotment.data.targets import guess_kind
from allotment.errors import InputError
from allotment.mistakes import MOST_COLLECTED

Try = Callable[[Path], object]
PETS = """name,species,weight,age,colour,notes,indoor
Tom,cat,4.25,3,black,"sleeps all day, on the sofa",true
Rex,dog,,7,brown,"loves long walks
in the rain",false
Ada,cat,3.5,,white,very shy with strangers,
Bo,dog,12.5,2,brown,barks at the postman,true
Kit,,,1,,found last week,true
"""


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def same(one: TableData, other: TableData) -> None:
    """Equal in all that a learner sees."""
    assert one.targets == other.targets
    np.testing.assert_array_equal(one.features, other.features)
    assert one.features.dtype == other.features.dtype
    for target in one.targets:
        np.testing.assert_array_equal(one.labels[target.name], other.labels[target.name])
        np.testing.assert_array_equal(one.missing[target.name], other.missing[target.name])
    assert one.ids == other.ids
    assert (one.groups is None) == (other.groups is None)
    assert one.groups is None or one.groups.tolist() == other.groups.tolist()
    assert one.columns == other.columns


# --- the right result ---


def test_a_small_table(tmp_path: Path) -> None:
    data = read_table(write(tmp_path, PETS), ["species", "weight"], id="name")
    assert (data.name, data.size, data.features.dtype) == ("data", 5, np.float32)
    assert data.ids == ("Tom", "Rex", "Ada", "Bo", "Kit")
    species, weight = data.targets
    assert (species.kind, species.classes, weight.kind) == (
        "classification",
        ("cat", "dog"),
        "regression",
    )
    assert data.labels["species"].tolist() == [0, 1, 0, 1, -1]
    assert data.missing["species"].tolist() == [False] * 4 + [True]
    assert data.labels["weight"][[0, 2, 3]].tolist() == [4.25, 3.5, 12.5]
    assert data.known("weight").tolist() == [True, False, True, True, False]
    assert [(each.name, each.form, each.width, each.missing) for each in data.columns] == [
        ("age", "numeric", 2, 1),
        ("colour", "categorical", 4, 1),
        ("notes", "text", 256, 0),
        ("indoor", "numeric", 2, 1),
    ]
    assert data.features.shape == (5, 264)


def frame_columns() -> dict[str, list[Any]]:
    return {
        "who": ["a1", "a2", "a3", "a4", "a5", "a6"],
        "fold": [1, 1, 2, 2, 3, 3],
        "size": [1.5, None, -2.25, 1e-3, 7.0, 0.1],
        "count": [3, 4, 5, None, 7, 8],
        "colour": ["red", "green", None, "red", "blue", "é\n=1+1"],
        "story": [
            "one two three",
            "four five six seven",
            "x y z",
            "a, b, c",
            'say "hello you"',
            "the end of it",
        ],
        "flag": [True, False, None, True, True, False],
        "grade": [1, 2, None, 1, 2, 1],
        "kind": ["cat", None, "dog", "cat", "[red]x[/red]", "cat"],
        "price": [0.5, 1.25, None, 3.0, 2.5, 0.1],
        "good": [True, None, False, True, True, False],
        "tags": ["a|b", "b", None, "|", "c|a", "a"],
    }


def test_the_same_from_csv_parquet_pandas_and_polars(tmp_path: Path) -> None:
    cells = frame_columns()
    pandas, polars = pd.DataFrame(cells), pl.DataFrame(cells)
    pandas.to_csv(tmp_path / "pandas.csv", index=False)
    polars.write_csv(tmp_path / "polars.csv")
    polars.write_csv(tmp_path / "tabs.tsv", separator="\t")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress((tmp_path / "polars.csv").read_bytes()))
    pq.write_table(pa.table(cells), tmp_path / "arrow.parquet")
    coded = pa.table({**cells, "kind": pa.array(cells["kind"]).dictionary_encode()})
    pq.write_table(coded, tmp_path / "coded.parquet")
    objects = pandas.astype(object)
    nullable = pandas.convert_dtypes()
    files = [
        tmp_path / name
        for name in ("polars.csv", "tabs.tsv", "packed.csv.gz", "arrow.parquet", "coded.parquet")
    ]
    targets = ["grade", "kind", "price", "good", "tags"]
    first = read_table(tmp_path / "pandas.csv", targets, id="who", group="fold")
    assert [target.kind for target in first.targets] == [
        "classification", "classification", "regression", "classification", "multilabel",
    ]  # fmt: skip
    assert first.targets[0].classes == ("1", "2")
    assert first.targets[3].classes == ("false", "true")
    for source in [*files, pandas, polars, objects, nullable, str(files[0])]:
        same(read_table(source, targets, id="who", group="fold"), first)


def test_the_same_from_npz(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).round(3)
    x[3, 1] = np.nan
    y = np.column_stack(
        [rng.integers(0, 2, 40).astype(float), rng.normal(size=40).astype(np.float32)]
    )
    y[::4, 0] = np.nan
    names = np.array([f"i{k}" for k in range(40)])
    np.savez(tmp_path / "data.npz", X=x, Y=y, tasks=np.array(["toxic", "energy"]), smiles=names)
    frame = pd.DataFrame(
        {"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 2], "toxic": y[:, 0], "energy": y[:, 1]}
    )
    frame["smiles"] = names
    frame.to_csv(tmp_path / "data.csv", index=False)
    first = read_table(tmp_path / "data.npz", id="smiles")
    assert [(target.name, target.kind) for target in first.targets] == [
        ("toxic", "classification"),
        ("energy", "regression"),
    ]
    same(first, read_table(tmp_path / "data.csv", ["toxic", "energy"], id="smiles"))
    same(first, read_table(frame, ["toxic", "energy"], id="smiles"))
    assert (
        first.fingerprint
        == read_table(tmp_path / "data.csv", ["toxic", "energy"], id="smiles").fingerprint
    )
    only = read_table(tmp_path / "data.npz", "energy", features=["x0", "x2"])
    assert (len(only.targets), only.features.shape) == (1, (40, 2))


def test_npz_with_images(tmp_path: Path) -> None:
    x = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
    np.savez(tmp_path / "data.npz", X=x, Y=np.array([0.5, np.nan]))
    data = read_table(tmp_path / "data.npz")
    np.testing.assert_array_equal(data.features, x)
    assert [target.name for target in data.targets] == ["y0"]
    assert describe(data).input == "images of 3 x 4 x 4"


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0|"), max_size=12)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cells=st.lists(st.tuples(TEXT, st.floats(-1e6, 1e6)), min_size=1, max_size=12))
def test_quotes_line_ends_and_letters_survive(
    tmp_path: Path, cells: list[tuple[str, float]]
) -> None:
    labels = [f"{word}w{word}" for word, _ in cells]  # neither a number nor true or false
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(
        [("label", "x"), *((label, x) for label, (_, x) in zip(labels, cells, strict=True))]
    )
    path = write(tmp_path, text.getvalue())
    data = read_table(path, "label")
    assert [data.targets[0].classes[value] for value in data.labels["label"]] == labels
    same(data, read_table(path, "label"))
    same(data, read_table(pd.DataFrame({"label": labels, "x": [x for _, x in cells]}), "label"))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.one_of(
        st.binary(max_size=60), st.text('xy,"\n\r;1.-|aeinf ', max_size=60).map(str.encode)
    ),
    start=st.sampled_from([b"", b"x,y\n", b"x,y,tags\n1,2,a|b\n"]),
)
def test_any_bytes_are_a_table_or_an_error(tmp_path: Path, content: bytes, start: bytes) -> None:
    path = write(tmp_path, start + content)
    try:
        data = read_table(path, "y")
    except InputError:
        return
    assert np.isfinite(data.features).all()
    assert len(data.labels["y"]) == data.size == len(data.missing["y"])
    assert describe(data).instances == data.size


def test_byte_order_mark_crlf_and_blank_lines(tmp_path: Path) -> None:
    plain = read_table(write(tmp_path, "a,y\n1,cat\n2,dog\n"), "y")
    marked = read_table(write(tmp_path, b"\xef\xbb\xbfa,y\r\n1,cat\r\n\r\n2,dog\r\n"), "y")
    same(plain, marked)
    quoted = read_table(write(tmp_path, b'\xef\xbb\xbf"a","y"\n1,cat\n2,dog'), "y")
    same(plain, quoted)


def test_ten_thousand_columns(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(10_000)]
    rows = [
        [*(str((k * 7 + row) % 13) for k in range(9_999)), "a" if row % 2 else "b"]
        for row in range(20)
    ]
    path = write(tmp_path, "\n".join(",".join(row) for row in [names, *rows]))
    data = read_table(path, "c9999")
    assert data.features.shape == (20, 9_999)
    assert data.targets[0].classes == ("a", "b")
    assert data.labels["c9999"].tolist() == [1, 0] * 10


def test_a_column_that_turns_into_text_far_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(
        tmp_path,
        "a,b,y\n" + "".join(f"{k},{'007' if k < 90 else 'x'},{k % 2}\n" for k in range(100)),
    )
    whole = read_table(path, "y")
    monkeypatch.setattr(csv_file, "CELLS_AT_ONCE", 30)
    same(read_table(path, "y"), whole)
    assert whole.columns[1].form == "categorical"


def test_what_stands_for_nothing_between_numbers(tmp_path: Path) -> None:
    data = read_table(write(tmp_path, "a,b,y\n1,NA,1.5\n ,2_0,NaN\nnull,3,?\n"), "y")
    assert data.missing["y"].tolist() == [False, True, True]
    assert [(each.form, each.missing) for each in data.columns] == [
        ("numeric", 2),
        ("categorical", 0),
    ]


def test_targets_by_prefix_and_several_columns_as_one(tmp_path: Path) -> None:
    path = write(tmp_path, "x,target:a,label:b,tox:n,tox:s\n1,0.5,u,1,0\n2,,v,,\n3,1.5,u,0,\n")
    data = read_table(path, drop=["tox:n", "tox:s"])
    assert [target.name for target in data.targets] == ["a", "b"]
    several = read_table(path, ["tox:*", "target:a"], drop="label:b")
    assert several.targets[0].name == "tox"
    assert several.targets[0].classes == ("n", "s")
    np.testing.assert_array_equal(several.labels["tox"], [[1, 0], [np.nan, np.nan], [0, np.nan]])
    assert several.missing["tox"].tolist() == [False, True, False]
    assert several.guessed == ("target:a",)


def test_cells_with_several_classes(tmp_path: Path) -> None:
    path = write(tmp_path, "x,y\n1,cat|dog\n2,\n3,dog\n4,|\n")
    data = read_table(path, "y")
    assert data.targets[0].classes == ("cat", "dog")
    np.testing.assert_array_equal(data.labels["y"], [[1, 1], [np.nan] * 2, [0, 1], [0, 0]])
    assert data.missing["y"].tolist() == [False, True, False, False]
    given = read_table(path, "y", classes={"y": ["dog", "cat", "bird"]})
    np.testing.assert_array_equal(given.labels["y"][0], [1, 1, 0])
    forced = read_table(path, "y", kinds={"y": "classification"})
    assert forced.targets[0].classes == ("cat|dog", "dog", "|")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["cat", "dog", ""], "classification"),
        (["cat", "cat|dog"], "multilabel"),
        ([0.0, 1.0, np.nan], "classification"),
        ([0.0, 0.5], "regression"),
        ([1.0, 2.0, 3.0, 4.0], "regression"),
        ([1.0, 2.0, 3.0] * 4, "classification"),
        (list(range(30)) * 10, "regression"),
        ([np.nan, np.nan], "regression"),
        (["", ""], "regression"),
    ],
)
def test_kinds_are_guessed(cells: list[Any], kind: str) -> None:
    text = isinstance(cells[0], str)
    column = Column("y", words=cells) if text else Column("y", numbers=np.array(cells, dtype=float))
    assert guess_kind(column) == kind


def test_kinds_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, "zip,n,y\n01234,1,0\n1234,2,1\n01234,3,0\n")
    kinds = {"y": "regression", "zip": "categorical"}
    data = read_table(path, "y", kinds=kinds)
    assert (data.targets[0].kind, data.guessed) == ("regression", ())
    assert data.features[:, :2].tolist() == [[1, 0], [0, 1], [1, 0]]
    floats = read_table(path, "n", kinds={"n": "classification"}, drop="zip")
    assert floats.targets[0].classes == ("1", "2", "3")


def test_classes_that_are_given_keep_their_order_and_spelling(tmp_path: Path) -> None:
    data = read_table(write(tmp_path, "x,y\n1,01\n2,00\n"), "y", classes={"y": ["02", "01", "00"]})
    assert data.targets[0].classes == ("02", "01", "00")
    assert data.labels["y"].tolist() == [1, 2]


def test_ids_and_groups_are_kept_as_they_are_written(tmp_path: Path) -> None:
    path = write(tmp_path, "i,g,x,y\n007,01,1,0\n9007199254740993,1,2,1\n")
    data = read_table(path, "y", id="i", group="g")
    assert data.ids == ("007", "9007199254740993")
    assert data.groups is not None
    assert data.groups.tolist() == ["01", "1"]
    frame = pd.DataFrame(
        {"i": pd.array([9007199254740993, None], dtype="Int64"), "x": [1, 2], "y": [0, 1]}
    )
    assert read_table(frame, "y", id="i").ids == ("9007199254740993", "")


def test_a_task_without_a_label_is_allowed_and_said(tmp_path: Path) -> None:
    path = write(tmp_path, "x,y,z\n" + "".join(f"{k},{k % 2},\n" for k in range(40)))
    data = read_table(path, ["y", "z"], classes={})
    assert not data.known("z").any()
    notes = "\n".join(describe(data).notes)
    assert "task 'z' has no label yet" in notes
    assert "kind can't be guessed" in notes
    known = read_table(path, ["y", "z"], kinds={"z": "classification"}, classes={"z": ["a", "b"]})
    assert known.targets[1].classes == ("a", "b")
    assert describe(known).tasks[1].classes == {"a": 0, "b": 0}


# --- features ---


def test_numbers_are_standardised(tmp_path: Path) -> None:
    data = read_table(
        write(tmp_path, "a,b,c,d,y\n1,1e308,5,,0\n2,-1e308,5,,1\n4,1e308,5,,0\n,0,5,,1\n"), "y"
    )
    a = data.features[:, 0]
    assert a[:3] == pytest.approx((np.array([1, 2, 4]) - 7 / 3) / np.std([1, 2, 4]))
    assert data.features[:, :2].tolist()[3] == [0, 1]
    assert np.isfinite(data.features).all()
    assert np.std(data.features[:, 2]) == pytest.approx(1)
    assert [each.constant for each in data.columns] == [False, False, True, True]
    plain = read_table(write(tmp_path, "a,y\n1,0\n250,1\n"), "y", standardise=False)
    assert plain.features.tolist() == [[1], [250]]


def test_categories_are_capped(tmp_path: Path) -> None:
    names = [f"v{k:03d}" for k in range(60) for _ in range(3 if k < 50 else 2)]
    data = read_table(
        write(tmp_path, "a,y\n" + "".join(f"{name},{k % 2}\n" for k, name in enumerate(names))), "y"
    )
    assert data.features.shape == (170, 51)
    assert data.features.sum(axis=1).tolist() == [1] * 170
    assert data.features[:, 50].sum() == 20


def test_text_is_hashed_the_same_everywhere() -> None:
    encoded = encode_text(Column("a", words=["The cat, the CAT", "", "ÄRGER über dog", "!?"]))
    assert encoded.shape == (4, 256)
    assert np.linalg.norm(encoded, axis=1) == pytest.approx([1, 0, 1, 0])
    assert np.abs(encoded[0][encoded[0] != 0]).tolist() == pytest.approx([math.sqrt(0.5)] * 2)
    assert np.flatnonzero(encoded[0]).tolist() == [51, 94]


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, PETS)
    data = read_table(path, ["species", "weight"], id="name")
    assert data.fingerprint == read_table(path, ["species", "weight"], id="name").fingerprint
    assert hashlib.sha256(data.features.tobytes()).hexdigest()[:16] == "f8051795162d50d0"
    changed = read_table(
        write(tmp_path, PETS.replace("4.25", "4.5")), ["species", "weight"], id="name"
    )
    assert changed.fingerprint != data.fingerprint


# --- images ---


def claiming(side: int, png: bytes) -> bytes:
    """The PNG with another width and height in its header."""
    head = b"IHDR" + side.to_bytes(4, "big") * 2 + png[24:29]
    return png[:12] + head + zlib.crc32(head).to_bytes(4, "big") + png[33:]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    (folder / "img").mkdir(parents=True)
    Image.new("RGB", (40, 20), (255, 0, 0)).save(folder / "img" / "red.png")
    Image.new("L", (300, 300), 128).save(folder / "img" / "grey.JPG", "JPEG")
    deep = np.full((8, 8), 0x8000, dtype=np.uint16)
    Image.fromarray(deep).save(folder / "img" / "deep.png")
    turned = Image.new("RGB", (2, 1))
    turned.putpixel((0, 0), (255, 255, 255))
    exif = turned.getexif()
    exif[0x0112] = 6  # to be turned clockwise: left becomes top
    turned.save(folder / "img" / "turned.png", exif=exif)
    (folder / "img" / "not.png").write_text("hello")
    (folder / "img" / "cut.png").write_bytes((folder / "img" / "red.png").read_bytes()[:60])
    # Pillow: silent, warns, refuses
    for name, side in (("bomb", 9_000), ("bigger", 11_000), ("biggest", 60_000)):
        (folder / "img" / f"{name}.png").write_bytes(
            claiming(side, (folder / "img" / "red.png").read_bytes())
        )
    Image.new("RGB", (4, 4)).save(tmp_path / "outside.png")
    (folder / "img" / "link.png").symlink_to(tmp_path / "outside.png")
    (folder / "img" / "loop.png").symlink_to(folder / "img" / "loop.png")
    (folder / "img" / "dir.png").mkdir()
    os.mkfifo(folder / "img" / "pipe.png")
    return folder


def images_of(folder: Path, *names: str, **more: Any) -> TableData:
    rows = "".join(f"{name},{k % 2}\n" for k, name in enumerate(names))
    return read_table(write(folder, f"path,y\n{rows}"), "y", **more)


def test_images_are_loaded(pictures: Path) -> None:
    names = ("img/red.png", "img/grey.JPG", "./img/deep.png", "img/../img/red.png")
    data = images_of(pictures, *names[:3], image_size=16)
    assert (data.features.shape, data.features.dtype) == ((3, 3, 16, 16), np.uint8)
    assert data.features[0, :, 5, 5].tolist() == [255, 0, 0]
    assert np.abs(data.features[1].astype(int) - 128).max() <= 2
    assert data.features[2].tolist() == np.full((3, 16, 16), 128).tolist()
    assert data.columns[0].form == "image"
    turned = images_of(pictures, "img/turned.png", "img/red.png", image_size=2).features[0, 0]
    assert turned.tolist() == [[255, 255], [0, 0]]
    frame = pd.DataFrame({"path": ["red.png"], "y": [1]})
    assert read_table(frame, "y", folder=pictures / "img").features.shape == (1, 3, 64, 64)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("img/none.png", "'img/none.png' is not there"),
        ("img/not.png", "is not an image that can be read"),
        ("img/cut.png", "is not an image that can be read"),
        ("img/bomb.png", "more than 50 million pixels"),
        ("img/bigger.png", "more than 50 million pixels"),
        ("img/biggest.png", "more than 50 million pixels"),
        ("../outside.png", "not a path below the table's folder"),
        ("/etc/x.png", "not a path below the table's folder"),
        ("C:/x.png", "not a path below the table's folder"),
        ("..\\\\x.png", "not a path below the table's folder"),
        ("img/link.png", "a link that leads out of the table's folder"),
        ("img/loop.png", "is not there"),
        ("img/dir.png", "is not there"),
        ("img/pipe.png", "is not there"),
        (f"{'x' * 5000}.png", "is not there"),
        ("", "names no image"),
    ],
)
def test_images_that_will_not_do(pictures: Path, name: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        images_of(pictures, "img/red.png", name, "img/red.png")
    assert words in str(caught.value)
    assert "line 3: row 2, column 'path'" in str(caught.value)
    assert len(caught.value.mistakes) == 1


def test_images_are_learned_from_alone(pictures: Path) -> None:
    path = write(pictures, "path,back,age,y\nimg/red.png,img/red.png,3,0\n")
    with pytest.raises(
        InputError, match=r"'path'.*alone; leave the other features out .*'back', 'age'"
    ):
        read_table(path, "y")
    assert read_table(path, "y", drop=["age", "back"]).features.shape == (1, 3, 64, 64)
    with pytest.raises(InputError, match="say in which folder"):
        read_table(pd.DataFrame({"path": ["red.png"], "y": [1]}), "y")


def test_without_pillow_the_pip_line_is_said(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'allotment\[train\]'"):
        images_of(pictures, "img/red.png")


def write_squares(folder: Path, count: int = 40, size: int = 16) -> NDArray[np.uint8]:
    """Pictures of a red, green or blue square, and a table of their colours and sizes with some
    cells empty."""
    rng = np.random.default_rng(8)
    (folder / "img").mkdir()
    pictures, rows = [], []
    for k in range(count):
        colour, side = k % 3, int(rng.integers(5, 14))
        y, x = rng.integers(0, size - side + 1, size=2)
        pixels = rng.integers(0, 60, size=(size, size, 3)).astype(np.uint8)
        pixels[y : y + side, x : x + side, colour] += 190
        Image.fromarray(pixels).save(folder / "img" / f"{k:03d}.png")
        pictures.append(pixels.transpose(2, 0, 1))
        name = "" if k % 5 == 4 else ("red", "green", "blue")[colour]
        rows.append(f"img/{k:03d}.png,{name},{side if k % 4 else ''}\n")
    write(folder, "path,colour,side\n" + "".join(rows), "squares.csv")
    return np.stack(pictures)


def read_squares(folder: Path) -> TableData:
    return read_table(
        folder / "squares.csv", ["colour", "side"], kinds={"side": "regression"}, image_size=16
    )


def test_a_table_of_image_paths_is_trained_on(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from allotment.learners.learner import measure, train
    from allotment.learners.recipe import Recipe
    from allotment.learners.torch_learner import TorchLearner

    torch.set_num_threads(1)
    pictures = write_squares(tmp_path)
    data = read_squares(tmp_path)
    np.testing.assert_array_equal(data.features, pictures)
    assert [(target.kind, target.classes) for target in data.targets] == [
        ("classification", ("blue", "green", "red")),
        ("regression", ()),
    ]
    assert [int(data.known(task).sum()) for task in ("colour", "side")] == [32, 30]
    parts = split(data, seed=0, validation=0.3)
    learner = TorchLearner(data, parts, Recipe(steps=4, batch_size=4))
    labels = draw(data, parts.train, {"colour": 10, "side": 10}, seed=0)
    state = train(learner, labels, seed=0)
    for found in measure(learner, state).values():
        assert np.isfinite([found.metric, found.loss]).all()
    everything = np.arange(data.size)
    colours, sides = (learner.predict(state, task, everything) for task in ("colour", "side"))
    assert (colours.shape, sides.shape) == ((40, 3), (40,))
    assert colours.sum(axis=1) == pytest.approx(np.ones(40), abs=1e-5)
    assert np.isfinite(sides).all()


def test_eight_image_paths_are_learnt_by_heart(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from allotment.learners.learner import train
    from allotment.learners.recipe import Recipe
    from allotment.learners.torch_learner import TorchLearner

    torch.set_num_threads(1)
    write_squares(tmp_path)
    data = read_squares(tmp_path)
    eight = np.flatnonzero(data.known("colour") & data.known("side"))[:8]
    recipe = Recipe(steps=120, batch_size=8, optimiser="adam", trunk_rate=0.01, head_rate=0.01)
    learner = TorchLearner(data, Split(eight, eight, np.setdiff1d(np.arange(40), eight)), recipe)
    state = train(learner, Labels({"colour": eight, "side": eight}), seed=0)
    assert (
        learner.predict(state, "colour", eight).argmax(axis=1).tolist()
        == data.labels["colour"][eight].tolist()
    )
    assert learner.predict(state, "side", eight) == pytest.approx(
        data.labels["side"][eight], abs=0.5
    )
    assert learner.score(state, "colour").loss < 0.05


# --- bad input ---


def text(content: str | bytes, *targets: str, name: str = "data.csv", **more: Any) -> Try:
    return lambda folder: read_table(write(folder, content, name), targets or "y", **more)


def frame(cells: dict[str, Any], **more: Any) -> Try:
    return lambda folder: read_table(pd.DataFrame(cells), "y", **more)


def npz(**arrays: Any) -> Try:
    def read(folder: Path) -> object:
        np.savez(folder / "data.npz", **arrays)
        return read_table(folder / "data.npz")

    return read


def zipped(**files: bytes) -> Try:
    def read(folder: Path) -> object:
        with zipfile.ZipFile(folder / "data.npz", "w") as archive:
            for name, content in files.items():
                archive.writestr(f"{name}.npy", content)
        return read_table(folder / "data.npz")

    return read


def header(shape: str) -> bytes:
    line = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line.encode()


def doubled_parquet(folder: Path) -> object:
    names = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["y", "y"])
    pq.write_table(names, folder / "data.parquet")
    return read_table(folder / "data.parquet", "y")


def parquet(cells: dict[str, Any]) -> Try:
    def read(folder: Path) -> object:
        pq.write_table(pa.table(cells), folder / "data.parquet")
        return read_table(folder / "data.parquet", "y")

    return read


def directory(folder: Path) -> object:
    return read_table(folder, "y")


def pipe(folder: Path) -> object:
    os.mkfifo(folder / "data.csv")
    return read_table(folder / "data.csv", "y")


ONE = "x,y\n1,cat\n"
X = np.zeros((3, 2))

BAD: list[tuple[str, Try, tuple[str, ...]]] = [
    ("missing file", lambda folder: read_table(folder / "no.csv", "y"), ("no.csv", "no such file")),
    ("NUL in the path", lambda folder: read_table("a\0.csv", "y"), ("cannot be read",)),
    ("directory", directory, ("is a directory",)),
    ("pipe", pipe, ("is a pipe",)),
    ("another suffix", text(ONE, name="data.ods"), ("not a table by its name", ".parquet")),
    ("no table at all", lambda folder: read_table(np.zeros((2, 2)), "y"), ("ndarray",
    "pandas or polars")),
    ("lazy frame", lambda folder: read_table(pl.LazyFrame({"y": [1]}), "y"), ("collect()",)),
    ("frame without rows", frame({"x": [], "y": []}), ("no rows",)),
    ("empty", text(""), ("is empty",)),
    ("blank", text("\n\n"), ("is empty",)),
    ("header only", text("x,y\n"), ("a header but no rows",)),
    ("invalid UTF-8", text(b"x,y\n1,2\n\xff,3\n"), ("line 3", "byte 0xff is not UTF-8")),
    ("UTF-16", text("x,y\n1,2\n".encode("utf-16")), ("UTF-16", "UTF-8")),
    ("NUL", text(b"x,y\n1,\0\n"), ("line 2", "NUL byte")),
    ("ragged", text("x,y\n1\n1,2\n1,2,3\n"), ("line 2: row 1: has 1 cells",
    "line 4: row 3: has 3 cells")),
    ("very ragged", text("x,y\n" + "1\n" * 50), ("row 5", "45 more rows")),
    ("open quote", text('x,y\n1,"2\n3,4\n'), ("line 2", "never closed")),
    ("text after a quote", text('x,y\n1,"2"3\n'), ("line 2", "quote")),
    ("long field", text(f"x,y\n1,2\n{'a' * 200_000},2\n"), ("line 3", "131072 characters",
    "field_size_limit")),
    ("carriage returns", text("x,y\r1,2\r3,4\r"), ("carriage return",)),
    ("semicolons", text("x;y\n1;2\n"), ("one column only", "';'")),
    ("long delimiter", text(ONE, delimiter=",,"), ("delimiter",)),
    ("not gzip", text("x,y\n1,2\n", name="data.csv.gz"), ("gzip",)),
    ("cut gzip", text(gzip.compress(os.urandom(999).hex().encode())[:-20], name="data.csv.gz"),
    ("gzip",)),
    ("doubled name", text("x,y,x,x\n1,2,3,4\n"), ("column 'x'", "more than once", "1, 3, 4")),
    ("doubled name in Parquet", doubled_parquet, ("column 'y'", "more than once")),
    ("no name", text(",x,y\n0,1,2\n1,1,2\n"), ("column 1", "has no name", "drop")),
    ("unknown target", text(ONE, "yy"), ("target 'yy'", "did you mean 'y'")),
    ("unknown group", text(ONE, group="g"), ("group 'g'", "known: x, y")),
    ("unknown id", text(ONE, id="xx"), ("id 'xx'",)),
    ("unknown drop", text(ONE, drop="z"), ("drop 'z'",)),
    ("unknown feature", text(ONE, features=["z"]), ("feature 'z'",)),
    ("unknown kind", text(ONE, kinds={"y": "clasification"}), ("kind of 'y'",
    "did you mean 'classification'")),
    ("kind of pixels", text(ONE, kinds={"y": "depth"}), ("can't be 'depth'",)),
    ("kind of nothing", text(ONE, kinds={"z": "regression"}), ("kind of 'z'", "no such target")),
    ("unknown form", text(ONE, kinds={"x": "numbers"}), ("unknown form 'numbers'",)),
    ("classes of nothing", text(ONE, classes={"z": ["a"]}), ("classes of 'z'",)),
    ("classes twice", text(ONE, classes={"y": ["a", "a"]}), ("classes of 'y'", "name of its own")),
    ("classes of numbers", text(ONE, classes={"y": ["a"]}, kinds={"y": "regression"}),
    ("a regression has none",)),
    ("target as feature", text(ONE, features=["x", "y"]), ("column 'y'", "target and feature")),
    ("target as group", text("x,y\n1,2\n", group="y"), ("target and group",)),
    ("target twice", text(ONE, "y", "y"), ("target 'y'", "twice")),
    ("no feature", text(ONE, drop=["x"]), ("no column is left to learn from",)),
    ("no target", lambda folder: read_table(write(folder, ONE)), ("'x', 'y'", "--target",
    "target:")),
    ("empty targets", lambda folder: read_table(write(folder, ONE), []), ("targets",
    "at least one")),
    ("two of a name", text("x,target:a,label:a\n1,2,3\n", "target:a", "target:b"),
    ("target 'target:b'",)),
    ("no such prefix", text(ONE, "tox:*"), ("no column begins with 'tox:'",)),
    ("not 0 or 1", text("x,t:a,t:b\n1,0,1\n2,1,2\n", "t:*"), ("line 3: row 2, column 't:b'",
    "2 is neither")),
    ("prefix of numbers", text("x,t:a\n1,1\n", "t:*", kinds={"t": "regression"}),
    ("one multilabel task",)),
    ("infinite feature", text("x,y\n1,0\ninf,1\n-Infinity,1\n"), ("line 3: row 2, column 'x'",
    "row 3", "finite")),
    ("infinite target", text("x,y\n1,0.5\n2,inf\n"), ("row 2, column 'y'", "finite")),
    ("large target", text("x,y\n1,0.5\n2,1e39\n"), ("row 2, column 'y'", "too large")),
    ("large feature", text("x,y\n1e39,0\n", standardise=False), ("row 1, column 'x'", "too large")),
    ("text as number", text("x,y\n1,a\n2,1\n", kinds={"y": "regression"}), ("row 1, column 'y'",
    "'a' is not")),
    ("word as feature", text("x,y\na,0\n2,1\n", kinds={"x": "numeric"}), ("row 1, column 'x'",
    "'a' is not a number")),
    (
        "label outside its classes",
        text("x,y\n1,cat\n\n2,bird\n", classes={"y": ["cat", "dog"]}),
        ("line 4: row 2, column 'y'", "label 'bird'", "cat, dog"),
    ),
    (
        "one of several outside",
        text("x,y\n1,cat|owl\n", classes={"y": ["cat", "dog"]}),
        ("row 1, column 'y'", "label 'owl'"),
    ),
    (
        "many outside",
        text("x,y\n" + "1,bird\n" * 30, classes={"y": ["cat"]}),
        ("row 5", "the same in 25 more rows"),
    ),
    ("classes of none", text("x,y\n1,\n", kinds={"y": "classification"}), ("task 'y'",
    "classes must be given")),
    ("empty group", text("x,y,g\n1,2,a\n1,2,\n", group="g"), ("row 2, column 'g'",
    "needs its group")),
    ("no separator", text(ONE, separator=""), ("separator",)),
    ("no image size", text(ONE, image_size=0), ("image_size",)),
    ("lists in a frame", frame({"x": [[1], [2]], "y": [1, 2]}), ("column 'x'", "list")),
    ("bytes in a frame", frame({"x": [b"a", b"b"], "y": [1, 2]}), ("column 'x'", "bytes")),
    ("complex", frame({"x": [1j, 2j], "y": [1, 2]}), ("column 'x'", "complex")),
    ("huge number", frame({"x": [10**400, 2], "y": [1, 2]}), ("column 'x'", "308 digits")),
    ("infinite in a frame", frame({"x": [math.inf, 2], "y": [1, 2]}), ("row 1, column 'x'",
    "finite")),
    ("not Parquet", text("hello", name="data.parquet"), ("not a whole Parquet file",)),
    ("Parquet without rows", parquet({"x": [], "y": []}), ("no rows",)),
    ("lists in Parquet", parquet({"x": [[1], [2]], "y": [1, 2]}), ("column 'x'", "list")),
    ("not npz", text("hello", name="data.npz"), ("not a whole npz file",)),
    ("npz without Y", npz(X=X, Z=X), ("no array Y", "'X', 'Z'")),
    ("npz of other lengths", npz(X=X, Y=np.zeros((2, 1))), ("array Y", "(3, tasks)")),
    ("npz of text", npz(X=np.array([["a"]]), Y=np.zeros(1)), ("array X", "numbers")),
    ("npz with few names", npz(X=X, Y=X, tasks=np.array(["a"])), ("array tasks", "2 names")),
    ("npz of objects", npz(X=np.array([[None]]), Y=np.zeros(1)), ("never unpickled",)),
    ("npz of nothing", npz(X=np.zeros((0, 2)), Y=np.zeros((0, 1))), ("no rows",)),
    ("npz that is cut", zipped(X=header("(3, 2)"), Y=header("(3, 1)")), ("not a whole npz file",)),
    ("npz that lies", zipped(X=header(f"({10**9}, {10**9})"), Y=header("(3, 1)")),
    ("array X: says that it", "save")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("attempt", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_input(attempt: Try, words: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        attempt(tmp_path)
    for word in words:
        assert word in str(caught.value)
    assert len(caught.value.mistakes) <= MOST_COLLECTED + 1


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_table(write(tmp_path, ONE), ["yy"], group="g", id="i", kinds={"x": "no"}, drop="z")
    assert len(caught.value.mistakes) == 5
    content = "a,b,y,g\n" + "inf,inf,no,\n" * 9
    with pytest.raises(InputError) as caught:
        read_table(write(tmp_path, content), "y", group="g", kinds={"y": "regression"})
    assert {
        mistake.where.split("column ")[1] for mistake in caught.value.mistakes if mistake.where
    } >= {"'a'", "'b'"}
    assert "and 4 more mistakes" in str(caught.value)


def test_lines_and_files_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "x,y\n" + "1,2\n" * 50)
    monkeypatch.setattr(csv_file, "MOST_CELLS", 60)
    with pytest.raises(InputError, match="more than 60 cells"):
        read_table(path, "y")
    monkeypatch.setattr(csv_file, "LONGEST_TABLE_LINE", 100)
    with pytest.raises(InputError, match=r"line 1: .*line of more than"):
        read_table(write(tmp_path, "x," * 100 + "y\n"), "y")


def test_without_pyarrow_the_pip_line_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'allotment\[data\]'"):
        read_table(write(tmp_path, b"PAR1", "data.parquet"), "y")


def test_csv_needs_none_of_the_optional_libraries(tmp_path: Path) -> None:
    path = write(tmp_path, PETS)
    code = (
        f"import sys\nfrom allotment.data.table import read_table\nread_table({str(path)!r},"
        " 'species')\n"
    )
    code += (
        "print({'pandas', 'polars', 'pyarrow', 'PIL', 'torch', 'rich', 'click'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- what is there ---


def many(rows: int, cell: Callable[[int], str], head: str = "x,y") -> str:
    return f"{head}\n" + "".join(f"{cell(k)}\n" for k in range(rows))


def test_what_is_there_in_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path, many(100, lambda k: f"{k},{'' if k % 4 == 0 else 'ab'[k % 2]},{k / 7}", "x,y,z")
    )
    data = read_table(path, ["y", "z"])
    summary = describe(data, seed=3)
    assert (summary.instances, summary.input, summary.seed) == (100, "1 number", 3)
    assert summary.splits == {"train": 70, "validation": 15, "test": 15}
    y, z = summary.tasks
    assert (y.kind, y.guessed, y.labelled, y.missing, y.share) == (
        "classification",
        True,
        75,
        25,
        0.75,
    )
    assert y.classes == {"a": 25, "b": 50}
    assert sum(y.splits.values()) == 75
    parts = split(data, 3)
    assert y.splits["validation"] == data.known("y")[parts.validation].sum()
    assert (z.kind, z.classes, z.splits["test"]) == ("regression", {}, 15)
    assert summary.notes == ()
    assert summary.to_dict()["tasks"][0]["classes"] == {"a": 25, "b": 50}
    assert draw(data, parts.train, {"y": 5, "z": 5}, seed=0).counts == {"y": 5, "z": 5}


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (
            many(50, lambda k: f"{k},{'b' if k == 1 else 'a'}"),
            {},
            "one class only in the validation split ('a')",
        ),
        (many(50, lambda k: f"{k},{'b' if k == 1 else 'a'}"), {}, "fewer than 5 labels of 'b' (1)"),
        (many(50, lambda k: f"{k},a"), {}, "one class only, 'a': there is nothing to learn"),
        (
            many(50, lambda k: f"{k},{'a' if k == 1 else ''}"),
            {},
            "no label in the validation split",
        ),
        (many(50, lambda k: f"{k},0.5"), {}, "one value only in the validation split (0.5)"),
        (many(50, lambda k: f"{k},{'b|a' if k == 1 else 'a'}"), {}, "all or none have 'a', 'b'"),
        (many(50, lambda k: f"5,{k % 2}"), {}, "1 of the features is constant: 'x'"),
        (
            many(50, lambda k: f"{k},{k % 2},{k // 2}", "x,y,i"),
            {"id": "i"},
            "25 ids are there more than once: '0'",
        ),
        (many(50, lambda k: f"{k},{k % 2},", "x,y,i"), {"id": "i"}, "50 instances have no id"),
        (
            many(50, lambda k: f"{k},{k % 2},{k % 2}", "x,y,g"),
            {"group": "g"},
            "validation split is empty",
        ),
        (
            many(60, lambda k: f"id{k},{k % 2}"),
            {},
            "feature 'x' has 60 different values in 60 rows",
        ),
        (many(50, lambda k: f"{k},{('NA', 'cat', 'dog')[k % 3]}"), {}, "'NA' counts as a class"),
        (
            many(50, lambda k: f"{k},{('Cat ', 'cat', 'dog')[k % 3]}"),
            {},
            "'Cat ' and 'cat' differ only",
        ),
    ],
)
def test_what_is_worth_knowing(
    content: str, more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    notes = describe(read_table(write(tmp_path, content), "y", **more)).notes
    assert words in "\n".join(notes)


# --- real data ---

DATA = os.environ.get("ALLOT_TEST_DATA")


@pytest.mark.skipif(not DATA, reason="ALLOT_TEST_DATA does not name a folder with molecules/")
@pytest.mark.parametrize(
    ("name", "rows", "kind", "known"),
    [("tox21", 8006, "classification", 0.83), ("qm8", 21786, "regression", 1.0)],
)
def test_molecules(name: str, rows: int, kind: str, known: float) -> None:
    data = read_table(Path(DATA or "") / "molecules" / f"{name}_morgan1024.npz", id="smiles")
    assert data.features.shape == (rows, 1024)
    assert len(data.targets) == 12
    assert {target.kind for target in data.targets} == {kind}
    share = np.mean([data.known(target.name).mean() for target in data.targets])
    assert round(float(share), 2) == known
    assert len(data.ids) == rows


# --- small files that are large inside ---

NUMBERS = b"x,y\n" + b"1,2\n" * 50_000


def packed(folder: Path, content: bytes) -> Path:
    (folder / "t.csv.gz").write_bytes(gzip.compress(content))
    return folder / "t.csv.gz"


@pytest.mark.parametrize("name", ["wide.csv", "wide.tsv"])
def test_a_million_columns_are_refused_at_once(name: str, tmp_path: Path) -> None:
    path, between = tmp_path / name, "," if name.endswith("csv") else "\t"
    path.write_text(
        between.join(f"c{k}" for k in range(10**6)) + "\n" + between.join("1" * 10**6) + "\n"
    )
    words = "has 1,000,000 columns, the limit is 50,000; leave some out"
    check_refused(run_bounded("data", "table", path, "--target", "c1"), words)


def test_many_columns_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        ",".join(f"c{k}" for k in range(9000)) + "\n" + 2 * (",".join("1" * 9000) + "\n")
    )
    assert len(table_file.open_table_file(tmp_path / "t.csv").names) == 9000


@pytest.mark.parametrize("content", [NUMBERS, b"x,y\n1,2\n" + b"\n" * 10**6, b"a" * 10**6])
def test_a_table_that_is_packed_too_tightly(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path, content)
    monkeypatch.setattr(open_file, "LARGE", 2**16)
    monkeypatch.setattr(csv_file, "LARGE", 2**16)
    with pytest.raises(
        InputError, match=r"unpacks to .* from 0.0 MB, the limit is 200 times its size; .*gunzip"
    ):
        read_table(path, "y")


def test_a_bomb_behind_a_plain_beginning_is_found_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = np.random.default_rng(0).integers(0, 10**9, (400, 2))
    head = b"x,y\n" + b"".join(b"%d,%d\n" % (x, y) for x, y in dice.tolist())
    path = packed(tmp_path, head + b"1,%s\n" % (b"2" * 300) * 20_000)
    monkeypatch.setattr(open_file, "LARGE", 2**12)
    monkeypatch.setattr(csv_file, "LARGE", 2**12)
    monkeypatch.setattr(csv_file, "CELLS_AT_ONCE", 2**10)
    assert table_file.open_table_file(path).names == ("x", "y")  # as much as the beginning shows
    with pytest.raises(InputError, match="the limit is 200 times its size"):
        read_table(path, "y")


def test_a_table_that_is_packed_as_tables_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_file, "LARGE", 2**12)
    monkeypatch.setattr(csv_file, "LARGE", 2**12)
    rows = b"".join(b"%d,%d\n" % (k, k % 7) for k in range(5000))
    assert read_table(packed(tmp_path, b"x,y\n" + rows), "y").size == 5000


@pytest.mark.long
def test_two_gigabytes_in_two_megabytes(tmp_path: Path) -> None:
    path, piece = tmp_path / "t.csv.gz", b"1,2\n" * 2**18
    with gzip.open(path, "wb") as file:
        file.write(b"x,y\n")
        for _ in range(2000):
            file.write(piece)
    check_refused(
        run_bounded("data", "table", path, "--target", "y"), "the limit is 200 times its size"
    )


def test_a_small_npz_of_a_large_array(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((10**5, 150)), Y=np.zeros((10**5, 1)))
    ended = run_bounded("data", "table", tmp_path / "t.npz", "--target", "y0")
    check_refused(ended, "unpacks to 121 MB", "the limit is 200 times its size", "numpy.savez")


def test_an_npz_of_very_many_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.zeros((1, 10**6), dtype=np.uint8), Y=np.zeros((1, 1)))
    with pytest.raises(InputError, match="has 1,000,001 columns, the limit is 50,000"):
        table_file.open_table_file(tmp_path / "t.npz")


def test_a_small_parquet_file_of_very_many_rows(tmp_path: Path) -> None:
    zeros = pa.array(np.zeros(10**7, dtype=np.int8))
    pq.write_table(pa.table({"x": zeros, "y": zeros}), tmp_path / "t.parquet")
    ended = run_bounded("data", "table", tmp_path / "t.parquet", "--target", "y")
    check_refused(ended, "unpacks to 160 MB", "the limit is 200 times its size", ".csv")


def test_a_parquet_file_of_very_many_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pa.array([1])
    pq.write_table(
        pa.table([one] * 3000, names=[f"c{k}" for k in range(3000)]), tmp_path / "t.parquet"
    )
    monkeypatch.setattr(open_file, "MOST_COLUMNS", 2000)
    with pytest.raises(InputError, match="has 3,000 columns, the limit is 2,000"):
        table_file.open_table_file(tmp_path / "t.parquet")
    monkeypatch.setattr(table_file, "LARGEST_FOOTER", 10_000)
    with pytest.raises(InputError, match=r"describes its columns in .* the limit is"):
        table_file.open_table_file(tmp_path / "t.parquet")


def test_rows_of_another_width_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + ("1" + ",22" * 10**4 + "\n") * 100)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="95 more rows have another number of cells"):
            read_table(tmp_path / "t.csv", "y")
        assert tracemalloc.get_traced_memory()[1] < 10**7  # all of them take six times as much
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.npz"])
def test_a_file_is_hashed_on_the_way_whatever_was_read_of_it(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(30_000) / 7, "y": np.arange(30_000) % 2})
    path = tmp_path / name
    if name.endswith("npz"):
        np.savez(path, X=frame[["x"]].to_numpy(), Y=frame["y"].to_numpy())
    elif name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert table_file.open_table_file(path).digest() == digest
    table = table_file.open_table_file(path)
    table.read(table.names[:1], ())
    assert (table.digest(), table.digest()) == (digest, digest)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_table_stays_the_file_that_was_opened_when_another_takes_its_name(
    name: str, tmp_path: Path
) -> None:
    path, other = tmp_path / name, tmp_path / f"other-{name}"
    for value, place in ((1, path), (2, other)):
        frame = pd.DataFrame({"x": [value] * 5, "y": [value] * 5})
        if name.endswith("parquet"):
            frame.to_parquet(place)
        else:
            frame.to_csv(place, index=False)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    table = table_file.open_table_file(path)
    os.replace(other, path)
    assert table.read(["x"], ())["x"].texts == ["1"] * 5
    assert table.digest() == digest
    assert table.read(["y"], ["y"])["y"].texts == ["1"] * 5


CELL = st.sampled_from(["", " ", "1", "01", " 2.50", "1_0", "na", "NaN", "?", "True", "false", "x"])


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cells=st.lists(CELL, min_size=1, max_size=6))
def test_a_column_is_the_same_whether_or_not_it_was_kept_as_written_before(
    tmp_path: Path, cells: list[str]
) -> None:
    path = write(tmp_path, "a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    first, second = table_file.open_table_file(path), table_file.open_table_file(path)
    second.read(["a", "b"], ["a"])
    for one, other in zip(
        first.read(["a", "b"], ()).values(), second.read(["a", "b"], ()).values(), strict=True
    ):
        assert (one.name, one.boolean) == (other.name, other.boolean)
        assert (one.numbers is None) == (other.numbers is None)
        assert list(one.texts) == list(other.texts)
        assert list(one.lines or ()) == list(other.lines or ())
