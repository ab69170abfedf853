"""Tables and lists of images: CSV, gzip, Parquet, npz, the lists of VOC and the names of
Taskonomy."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from allotment.data.inspection import inspect_table, split_forms
from allotment.data.roles import find_id
from allotment.data.summary import describe
from allotment.data.table import read_table
from allotment.data.taskonomy import DOMAINS, read_taskonomy
from allotment.data.voc import read_voc
from fuzzing.mutators import gzip_mutator, lines_mutator, mutate_plain, within, zip_mutator
from fuzzing.pictures import draw_png
from fuzzing.target import Target

TABLES = (
    "id,x,colour,target:y,label:z\n1,0.5,red,p,cat|dog\n2,1.5,blue,q,|\n3,2.5,red,p,cat\n4,3.5,blue,,dog\n",
    "id,g,target:price,target:style\n"
    + "".join(f"{k},{k // 3},{k * 1.5},{'ab'[k % 2]}\n" for k in range(20)),
    (
        'name,picture,text,target:t\na,"x, ""y""",long words here,1\nb,x/y.png,more'
        " words,0\nc,,nothing,NaN\n"
    ),
    "\ufeffa,tox:1,tox:2,target:b\n1,0,1,3\n2,1,,4\n3,,0,5\n",
)
WORDS = (
    "id", "target:", "label:", "tox:*", "nan", "NaN", "inf", "1e999", "1_000", "null", "True",
    "\ufeff", "\0", "\r",
    "|", '"', "2020-01-01", ".png", "-0.0", "é",
)  # fmt: skip
MODULES = (
    "data/table_file",
    "data/columns",
    "data/roles",
    "data/table",
    "data/features",
    "data/targets",
    "data/csv_file",
    "data/encodings",
    "data/dates",
    "data/inspection",
    "data/leaks",
    "data/workbook",
)


def _read(path: Path) -> None:
    name, _ = find_id(str(path), set(), None)
    data = read_table(path, id=name)
    assert all(len(data.labels[target.name]) == data.size for target in data.targets)
    str(describe(data))


def _reads(ending: str):  # type: ignore[no-untyped-def]
    def read(data: bytes, place: Path) -> None:
        (place / f"table{ending}").write_bytes(data)
        _read(place / f"table{ending}")

    return read


def _reads_found(ending: str):  # type: ignore[no-untyped-def]
    """As `allot init` reads a table: with what is found out about its file and its columns."""

    def read(data: bytes, place: Path) -> None:
        path = place / f"table{ending}"
        path.write_bytes(data)
        found = inspect_table(path, {}, ())
        options = dict(found.options)
        forms = dict(split_forms(options.pop("columns", ())))
        read = read_table(path, kinds=forms, **options)
        assert not read.features.size or np.isfinite(read.features).all()
        assert "\n" not in "".join(found.notes)

    return read


def _make_found() -> Iterable[bytes]:
    rows = "".join(f"{k};{k},5;{k % 28 + 1}.{k % 12 + 1}.2024;Zürich;{k % 3}\n" for k in range(24))
    for encoding in ("cp1252", "utf-16", "utf-8"):
        yield f"id;größe;wann;ort;target:y\n{rows}".encode(encoding)
    yield b"when,clock,target:y\n2024-01-31T10:00Z,2:30 PM,1\n2024-02-01T11:30Z,12:00 am,0\n"


def _make_workbooks() -> Iterable[bytes]:
    book = openpyxl.Workbook()
    for row in (["id", "x", "when", "target:y"], ["a", 1.5, datetime(2024, 1, 31), 1]):
        book.active.append(row)
    book.active.append(["b", "#N/A", None, True])
    book.create_sheet("more")
    made = io.BytesIO()
    book.save(made)
    yield made.getvalue()


def _make_parquet() -> Iterable[bytes]:
    columns = {
        "id": [1, 2, 3, 4], "x": [0.5, None, 2.5, 3.5],
        "colour": pa.array(["red", "blue", None, "red"]).dictionary_encode(),
        "flag": [True, False, None, True], "target:y": ["p", "q", "p", None], "target:n": [1, 2, 3,
        None],
    }  # fmt: skip
    odd = {"day": pa.array([1, 2, 3, 4], pa.date32()), "list": [[1], [2, 3], [], None],
    "raw": [b"a", b"b", None, b""],
           "deep": [{"a": 1}] * 4, "target:d": pa.array([1, 2, 3, 4], pa.decimal128(5,
           2))}  # fmt: skip
    for held, packed in (
        (columns, "none"),
        (columns, "snappy"),
        (columns | odd, "none"),
        (odd, "none"),
    ):
        made = io.BytesIO()
        pq.write_table(
            pa.table(held),
            made,
            compression=packed,
            write_statistics=False,
            store_schema=packed != "none",
        )
        yield made.getvalue()


def _change_parquet(data: bytes, most: int, dice: random.Random) -> bytes:
    """The list at the end, of which the length holds, or the pages before it."""
    size = int.from_bytes(data[-8:-4], "little")
    pages, foot = data[: -8 - size], data[-8 - size : -8]
    if dice.random() < 0.7:
        foot = mutate_plain(foot, len(foot) + 50, dice)
    else:
        pages = pages[:4] + mutate_plain(pages[4:], most, dice)
    return pages + foot + len(foot).to_bytes(4, "little") + b"PAR1"


def _make_npz() -> Iterable[bytes]:
    rng = np.random.default_rng(0)
    for arrays in (
        {"X": rng.normal(size=(6, 2)), "Y": np.array([[0.0, 1.0]] * 6)},
        {"X": rng.integers(0, 255, (4, 3, 2, 2)).astype(np.uint8), "Y": np.arange(4.0),
        "tasks": np.array(["t"])},
        {"X": np.eye(4, dtype=np.float32), "Y": np.arange(8).reshape(4, 2),
        "features": np.array(["a", "b", "c", "d"]),
         "tasks": np.array(["t", "u"]), "id": np.array(["p", "q", "r", "s"])},
    ):  # fmt: skip
        made = io.BytesIO()
        np.savez(made, **arrays)
        yield made.getvalue()


# Folders of images


def _read_voc(data: bytes, place: Path) -> None:
    """A list of images; those that it may name are there."""
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (place / folder).mkdir(parents=True)
    for name in ("2007_000032", "a", "b"):
        (place / "JPEGImages" / f"{name}.jpg").write_bytes(b"")
        (place / "SegmentationClass" / f"{name}.png").write_bytes(b"")
    (place / "ImageSets" / "Segmentation" / "train_aug.txt").write_bytes(data)
    (place / "ImageSets" / "Segmentation" / "val.txt").write_text("b\n")
    read_voc(place)


def _read_taskonomy(data: bytes, place: Path) -> None:
    """Names of files, one in each line; the folders are made as they say."""
    for line in data.decode(errors="replace").splitlines()[:60]:
        parts = [
            part for part in line.split("/") if part not in ("", ".", "..") and len(part) < 100
        ][:6]
        try:
            path = place.joinpath("root", *parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw_png("grey"))
        except (OSError, ValueError):
            continue
    read_taskonomy(place / "root", side=4, thorough=True)


def _make_names() -> Iterable[bytes]:
    flat = [
        f"{names[0]}/point_0_view_{k}_domain_{names[0]}.png"
        for names in DOMAINS.values()
        for k in range(2)
    ]
    yield "\n".join(flat).encode()
    full = [
        f"house/{names[-1]}/point_7_view_1_domain_{names[-1]}.png" for names in DOMAINS.values()
    ]
    yield "\n".join(full).encode()
    yield "\n".join(
        f"{names[0]}/a/b/point_0_view_0_domain_{names[0]}.png" for names in DOMAINS.values()
    ).encode()


TARGETS = (
    Target("table-csv", _reads(".csv"), lambda: [each.encode() for each in TABLES], MODULES, None,
    WORDS),
    Target("table-tsv-gz", _reads(".tsv.gz"), lambda: [gzip.compress(each.replace(",",
    "\t").encode(), mtime=0)
           for each in TABLES], MODULES, gzip_mutator, WORDS),
    Target("table-parquet", _reads(".parquet"), _make_parquet, MODULES, within(_change_parquet,
    0.9)),
    Target("table-found", _reads_found(".csv"), _make_found, MODULES, None, (*WORDS, ";", "3,5",
    "31.12.2024", "12:30")),
    Target("table-xlsx", _reads_found(".xlsx"), _make_workbooks, MODULES, zip_mutator),
    Target("table-npz", _reads(".npz"), _make_npz, MODULES, zip_mutator),
    Target("voc-list", _read_voc, lambda: [b"a\nb\n", b"2007_000032\na\n\n a \n../x\n"],
    ("data/voc",), lines_mutator),
    Target("taskonomy-names", _read_taskonomy, _make_names, ("data/taskonomy", "data/folder"),
    lines_mutator,
           ("point_", "_view_", "_domain_", "rgb", "depth_zbuffer", ".png", "house/")),
)  # fmt: skip
