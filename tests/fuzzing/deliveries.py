"""Labels that come back: CSV, JSONL, a folder or a zip archive of masks."""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
from helpers.sheets import write_csv, write_jsonl
from PIL import Image

from allotment.connect.delivery import read_delivery, write_rejected
from allotment.connect.masks import to_array
from allotment.data.dataset import Target as Task
from allotment.orders.order import Order
from fuzzing.mutators import jsonl_mutator, read_zip, write_zip, zip_mutator
from fuzzing.target import Target

SIZE = (5, 7)
TASKS = {
    task.name: task
    for task in (
        Task("species", "classification", ("cat", "dog", "guinea pig")),
        Task("tags", "multilabel", ("big", "wild", "old")),
        Task("age", "regression"),
        Task("seg", "segmentation", ("ground", "animal")),
        Task("depth", "depth"),
        Task("normals", "normals"),
        Task("edges", "edges"),
        Task("points", "keypoints"),
    )
}
IDS = ("a", "b", "007", "=1+1", "deep/er", "Käse", "100", "x" * 50)
AXES = {"regression": 0, "classification": 0, "multilabel": 1, "normals": 3}
LABELS = {
    "species": "cat", "tags": ["big", "old"], "age": 3.5, "points": [[1, 2], [3.5, 4]],
    "seg": "masks/a.png",
}  # fmt: skip
MODULES = (
    "connect/delivery", "connect/connector", "connect/guard", "connect/rows", "connect/names",
    "connect/masks", "connect/connectors/csv", "connect/connectors/jsonl",
    "connect/connectors/masks",
)  # fmt: skip
WORDS = (
    "order", "task", "instance", "label", "id", "species", "tags", "age", "seg", "depth", "points",
    "guinea pig",
    "cat|dog", "nan", "none", "null", "TRUE", "tags:big", "tags[big]", "\ufeff", "\0", "\r\n",
    "masks/a.png", "../a.png", "[[1,2]]", '{"big":1}', "'=", "1_000", "3,5", ";", "\t", '""',
)  # fmt: skip


def _read(path: Path, place: Path) -> None:
    """What is accepted are labels, what is told can be shown to people, and nothing is touched
    elsewhere."""
    keep, before = place / "keep", _snapshot(place)
    (place / "temporary").mkdir()
    usual, tempfile.tempdir = tempfile.tempdir, str(place / "temporary")
    try:
        parts = read_delivery(
            path, TASKS, IDS, size_of=lambda instance: SIZE, keep=keep, guessed=("species",)
        )
    finally:
        tempfile.tempdir = usual
        assert not os.listdir(place / "temporary")
        assert [each for each in _snapshot(place) if not each[0].startswith(str(keep))] == before
    for task, instance, value in parts.accepted:
        assert instance in IDS
        label = to_array(TASKS[task], json.loads(json.dumps(value)), folder=keep, size=SIZE)
        assert label.ndim == AXES.get(TASKS[task].kind, 2)
    for where, reason in parts.rejected:
        assert where.isprintable(), repr(where)
        assert reason.isprintable(), repr(reason)
        assert 0 < len(reason) < 1000, reason
    assert all(len(note) < 1000 and note.isprintable() for note in parts.notes), parts.notes
    write_rejected(parts, place / "rejected.csv")
    if any(parts.rows):  # once it is mended it is a delivery: it can at least be read as one
        read_delivery(place / "rejected.csv", TASKS, IDS, size_of=lambda instance: SIZE)


def _snapshot(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            status = os.lstat(os.path.join(place, name))
            if not stat.S_ISDIR(status.st_mode):
                found.append((os.path.join(place, name), status.st_mtime_ns, status.st_size))
    return sorted(found)


def _lay_masks(place: Path) -> None:
    (place / "masks").mkdir()
    (place / "masks" / "a.png").write_bytes(_draw_masks()["seg/a.png"])
    (place / "masks" / "b.png").write_bytes(_draw_masks()["depth/b.png"])


def _read_csv(data: bytes, place: Path) -> None:
    _lay_masks(place)
    (place / "delivery.csv").write_bytes(data)
    _read(place / "delivery.csv", place)


def _read_jsonl(data: bytes, place: Path) -> None:
    _lay_masks(place)
    (place / "delivery.jsonl").write_bytes(data)
    _read(place / "delivery.jsonl", place)


def _read_zip(data: bytes, place: Path) -> None:
    (place / "delivery.zip").write_bytes(data)
    _read(place / "delivery.zip", place)


def _read_folder(data: bytes, place: Path) -> None:
    """The members of a zip archive as a folder: links, pipes and odd names as it has them."""
    try:
        members = read_zip(data)
    except Exception:  # what is no archive makes no folder
        return
    (place / "delivery").mkdir()
    (place / "secret.png").write_bytes(_draw_masks()["seg/a.png"])
    for info, content in members[:50]:
        parts = [
            part
            for part in info.filename.split("/")
            if part not in ("", ".", "..") and len(part) < 100
        ][:12]
        path = (place / "delivery").joinpath(*parts)
        try:
            if os.path.lexists(path):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind == stat.S_IFLNK:
                path.symlink_to(place / "secret.png")
            elif kind == stat.S_IFIFO:
                os.mkfifo(path)
            else:
                path.write_bytes(content)
        except (OSError, ValueError):
            continue
    _read(place / "delivery", place)


def _png(array: np.ndarray) -> bytes:
    made = io.BytesIO()
    Image.fromarray(array).save(made, format="PNG")
    return made.getvalue()


@cache
def _draw_masks() -> dict[str, bytes]:
    return {
        "seg/a.png": _png(np.arange(35, dtype=np.uint8).reshape(SIZE) % 2),
        "depth/b.png": _png(np.arange(35, dtype=np.uint16).reshape(SIZE) * 1000),
        "normals/007.png": _png(np.full((*SIZE, 3), (128, 128, 255), np.uint8)),
        "edges/deep/er.png": _png(np.arange(35, dtype=np.uint8).reshape(SIZE)),
        "points/100.png": _png(np.arange(35, dtype=np.uint16).reshape(SIZE)),
    }


def _make_csv() -> Iterable[bytes]:
    path = Path(os.devnull).parent / "shm" if os.path.isdir("/dev/shm") else Path("/tmp")
    sheet = path / f"fuzz-{os.getpid()}.csv"
    order = Order(tuple((task, name) for task in LABELS for name in IDS[:3]), seed=0)
    for write in (write_csv, write_jsonl):
        try:
            write(order, sheet, targets=TASKS)
            yield sheet.read_bytes()
        finally:
            sheet.unlink(missing_ok=True)
    rows = [f"1,{task},{name},{_cell(label)}" for task, label in LABELS.items() for name in IDS[:3]]
    yield "\r\n".join(["order,task,instance,label", *rows]).encode()
    yield b"id;species;tags;age;points\na;cat;big|old;3,5;[[1,2]]\nb;dog;|;4;[]\n007;;;;\n"
    yield "id\ttags:big\ttags:wild\ttags:old\n'=1+1\t1\t0\t\nKäse\ttrue\tfalse\t1\n".encode()


def _cell(label: object) -> str:
    if isinstance(label, list) and isinstance(label[0], str):
        return "|".join(label)
    return (
        '"' + json.dumps(label).replace('"', '""') + '"' if isinstance(label, list) else str(label)
    )


def _make_jsonl() -> Iterable[bytes]:
    rows = [{"order": 1, "task": task, "instance": name, "label": label} for task,
    label in LABELS.items()
            for name in IDS[:3]]  # fmt: skip
    yield "".join(json.dumps(row) + "\n" for row in rows).encode()
    yield (
        b'{"id": "a", "species": "cat", "tags": {"big": 1}, "age": 3}\n{"id": 7, "species": null,'
        b' "points": []}\n'
    )


def _make_zip() -> Iterable[bytes]:
    masks = [(zipfile.ZipInfo(name), content) for name, content in _draw_masks().items()]
    for info, _ in masks:
        info.external_attr, info.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
    yield write_zip(masks)
    for info, content in masks:
        yield write_zip([(info, content)])
    link = zipfile.ZipInfo("seg/b.png")
    link.external_attr = 0o120777 << 16
    yield write_zip([(link, b"../secret.png"), masks[0]])


TARGETS = (
    Target("delivery-csv", _read_csv, _make_csv, MODULES, None, WORDS),
    Target("delivery-jsonl", _read_jsonl, _make_jsonl, MODULES, jsonl_mutator, WORDS),
    Target("delivery-zip", _read_zip, _make_zip, MODULES, zip_mutator),
    Target("delivery-folder", _read_folder, _make_zip, MODULES, zip_mutator),
)
