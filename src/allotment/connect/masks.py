"""Labels that are pictures: PNG files, looked at before they are decoded, and kept under a hash of
their pixels.

What the numbers in a file mean:
- segmentation: 8-bit grey or palette; the class's number from 0, and 255 where it does not count
- depth: 16-bit grey; millimetres, and 0 where there is none
- normals: 8-bit RGB; 0 is -1 and 255 is +1, red to the right, green up, blue to the viewer; black
  where there is none
- edges, keypoints: 8-bit or 16-bit grey; black is 0 and white is 1
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray
from allotment.connect.guard import LARGEST_MASK, show_value
from allotment.connect.rows import LARGEST_FLOAT32, LabelValue, make_reader
from allotment.data.dataset import NORMAL_SLACK, PIXEL_KINDS, VOID, Size, Target
from allotment.data.pixels import (
    MOST_PIXELS,
    Unread,
    load_pillow,
    open_inside,
    read_palette,
    read_rgb,
    read_uint16,
    shown,
)
from allotment.errors import InputError, Mistake
from allotment.files import place_file
from allotment.job import SHA256
from allotment.machine import make_folder

MILLIMETRES = 1000
"""in the unit of depth, a metre"""
AWAY = -0.1
"""the z of a normal, from which on it points away from the viewer"""
MOST_NORMALS = 1_000_000
"""normals that are looked at in one file"""
_GREY, _RGB, _PALETTE = 0, 2, 3
_PNG_FORMS: Mapping[str, tuple[tuple[tuple[int, int], ...], str]] = {
    "segmentation": (
        ((_GREY, 8), *((_PALETTE, bits) for bits in (1, 2, 4, 8))),
        "class numbers as 8-bit grey or palette",
    ),
    "depth": (((_GREY, 16),), "millimetres as 16-bit grey"),
    "normals": (((_RGB, 8),), "directions as 8-bit RGB"),
    "edges": (((_GREY, 8), (_GREY, 16)), "strengths as 8-bit or 16-bit grey"),
    "keypoints": (((_GREY, 8), (_GREY, 16)), "strengths as 8-bit or 16-bit grey"),
}
"""of each kind, the colours and bits that its files may have, and these in words"""
_COLOURS = {
    0: "grey",
    2: "RGB",
    3: "palette",
    4: "grey with transparency",
    6: "RGB with transparency",
}


@dataclass(frozen=True)
class Header:
    """What the first bytes of a PNG say."""

    size: Size
    bits: int
    colour: int


def take_mask(
    root: Path, path: str, target: Target, size: Size | None, keep: Path | None
) -> tuple[LabelValue, str]:
    """The value to keep for a PNG below the root and, where something about it looks odd, a note.

    The pixels go into the folder `keep`, if there is one, as HASH.png: without anything else that
    was in the file. The folder is to be settled after the last of them. Raises ValueError with the
    reason if it is no label of the task.
    """
    if target.kind not in PIXEL_KINDS:
        raise ValueError(
            f"a label of kind {target.kind} is no picture; give it in a CSV or JSONL file"
        )
    try:
        raw = _read_raw(root, path, target.kind, size)
    except Unread:
        raise
    except InputError as error:  # whoever asks knows a better name for the file
        raise ValueError(error.mistakes[0].what) from None
    note = _MASK_CHECKS[target.kind](target, raw)
    digest = _hash_pixels(raw)
    if keep is not None and not (keep / f"{digest}.png").exists():
        _make_folder(keep)
        place_file(keep / f"{digest}.png", _png(raw), settle=False)
    return {"png": digest}, note


def is_sound(folder: Path, digest: str) -> bool:
    """Whether a kept mask is there and has the pixels that it was kept with."""
    try:
        header = read_header(folder, f"{digest}.png")
        return (
            header.size[0] * header.size[1] <= MOST_PIXELS
            and _hash_pixels(_decode(folder, f"{digest}.png", header)) == digest
        )
    except InputError:
        return False


def _hash_pixels(raw: AnyArray) -> str:
    """A hash of the pixels alone, whatever the file around them is like."""
    found = hashlib.sha256(f"{raw.dtype.str} {raw.shape}\0".encode())
    found.update(np.ascontiguousarray(raw).data)
    return found.hexdigest()


def to_array(
    target: Target, value: LabelValue, *, folder: Path | None = None, size: Size | None = None
) -> AnyArray:
    """Any kept value in the form of its kind (see `KINDS`), for one instance; raises InputError if
    it does not fit.

    `folder` is where masks are kept, and `size` that of the instance's picture.

    >>> to_array(Target("pets", "multilabel", ("cat", "dog")), {"dog": 1}).tolist()
    [nan, 1.0]
    """
    try:
        if target.kind == "classification":
            return np.asarray(_places(target, [value])[0], dtype=np.int64)
        if target.kind == "multilabel":
            return _fill_classes(target, value)
        if target.kind == "regression":
            return np.asarray(_float(value), dtype=np.float32)
        return _fill_map(target, value, folder, size)
    except InputError as error:
        raise InputError(
            [mistake.under(f"task {target.name!r}") for mistake in error.mistakes]
        ) from None
    except ValueError as error:
        raise InputError(
            [Mistake(f"task {target.name!r}", f"a label does not fit the data: {error}")]
        ) from None


def _places(target: Target, names: Any) -> list[int]:
    """Where classes stand among those of the task."""
    place = {name: at for at, name in enumerate(target.classes)}
    if not isinstance(names, list | dict) or any(not isinstance(each, str) for each in names):
        raise ValueError(f"{show_value(names)} is not a list of classes")
    if strange := [each for each in names if each not in place]:
        raise ValueError(f"{show_value(strange[0])} is none of the classes")
    return [place[each] for each in names]


def _fill_classes(target: Target, value: LabelValue) -> NDArray[np.float32]:
    filled = np.full(
        len(target.classes), np.nan if isinstance(value, dict) else 0, dtype=np.float32
    )
    places = _places(target, value)
    marks = list(value.values()) if isinstance(value, dict) else [1] * len(places)
    if any(mark not in (0, 1) for mark in marks):
        raise ValueError("a class is neither there nor not there")
    filled[places] = marks
    return filled


def _float(value: LabelValue) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= LARGEST_FLOAT32
    ):
        raise ValueError(f"{show_value(value)} is not a number that can be learned")
    return float(value)


def _fill_map(
    target: Target, value: LabelValue, folder: Path | None, size: Size | None
) -> AnyArray:
    held = value if isinstance(value, dict) else {}
    if target.kind == "keypoints" and "points" in held:
        own = held.get("size", size)
        checked = make_reader(target, "|", None)(held["points"], None)
        if own is None or checked is None:
            raise ValueError("the size of its picture is not known")
        _check_size(_size(own), size)
        return draw_points(checked["points"], _size(own))
    digest = held.get("png")
    if not isinstance(digest, str) or not SHA256.fullmatch(digest):
        raise ValueError(f"{show_value(value)} is not the hash of a mask")
    if folder is None:
        raise ValueError("the folder of its masks is not known")
    name = f"{digest}.png"
    _check_size(read_header(folder, name).size, size)  # before its pixels, which may be millions
    return interpret(target.kind, _read_raw(folder, name, target.kind, None))


def _check_size(found: Size, size: Size | None) -> None:
    if size is not None and found != size:
        raise ValueError(f"it has {found[1]} x {found[0]} pixels, not {size[1]} x {size[0]}")


def _size(given: Any) -> Size:
    whole = (
        isinstance(given, list | tuple)
        and len(given) == 2
        and all(type(each) is int for each in given)
    )
    if not whole or min(given) < 1 or given[0] * given[1] > MOST_PIXELS:
        raise ValueError(f"{show_value(given)} is not the size of a picture")
    return given[0], given[1]


def draw_points(points: Sequence[Sequence[float]], size: Size) -> NDArray[np.float32]:
    """A map of keypoints (height, width) with a bump at each, as wide as those of the built-in
    scenes."""
    width = max(1.0, size[1] / 48)
    heat = np.zeros(size, dtype=np.float32)
    for x, y in points:
        rows, columns = (_near(at, 6 * width, most) for at, most in ((y, size[0]), (x, size[1])))
        down, along = (
            np.exp(-0.5 * ((places - at) / width) ** 2) for places, at in ((rows, y), (columns, x))
        )
        part = heat[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        np.maximum(part, np.outer(down, along).astype(np.float32), out=part)
    return heat


def _near(at: float, reach: float, most: int) -> NDArray[np.int64]:
    """Places up to so far away; a bump is nothing further out, and a thousand of them are drawn
    sooner."""
    low, high = (min(max(round(at + way * reach), 0), most - 1) for way in (-1, 1))
    return np.arange(low, high + 1)


def interpret(kind: str, raw: AnyArray) -> AnyArray:
    """The numbers of a file in the form of their kind."""
    if kind == "segmentation":
        return raw
    if kind == "depth":
        return np.where(raw == 0, np.float32(np.nan), raw.astype(np.float32) / MILLIMETRES)
    if kind == "normals":
        vectors, lengths = _vectors(raw)
        return np.where(
            np.abs(lengths - 1) <= NORMAL_SLACK,
            vectors / np.maximum(lengths, 1e-6),
            np.float32(np.nan),
        )
    return raw.astype(np.float32) / np.iinfo(raw.dtype).max


def read_header(root: Path, path: str) -> Header:
    """What the file says of itself, without any of its pixels; raises InputError if it is no
    PNG."""
    with open_inside(root, path, LARGEST_MASK) as file:
        try:
            head = file.read(29)
        except OSError as error:
            raise Unread(path, error) from None
    if len(head) < 29 or head[:8] != b"\x89PNG\r\n\x1a\n" or head[12:16] != b"IHDR":
        raise InputError(
            [Mistake(path, "is not a PNG image, whatever its name says; save it as PNG")]
        )
    width, height, bits, colour = struct.unpack(">LLBB", head[16:26])
    return Header((height, width), bits, colour)


def _read_raw(root: Path, path: str, kind: str, size: Size | None) -> AnyArray:
    """The numbers of a file, decoded only if its header is right for the task and the picture."""
    header = read_header(root, path)
    height, width = header.size
    what = ""
    if size is not None and header.size != size:
        what = (
            f"has {width} x {height} pixels, and its picture {size[1]} x {size[0]}; make it for the"
            " picture"
        )
    elif not 0 < width * height <= MOST_PIXELS:
        what = (
            f"has {width} x {height} pixels, and at most {MOST_PIXELS // 10**6} million are read;"
            " make it smaller"
        )
    elif (header.colour, header.bits) not in _PNG_FORMS[kind][0]:
        form = f"{header.bits}-bit {_COLOURS.get(header.colour, 'unknown')}"
        what = f"is {form}; a PNG of {kind} holds {_PNG_FORMS[kind][1]}"
    if what:
        raise InputError([Mistake(path, what)])
    return _decode(root, path, header)


def _decode(root: Path, path: str, header: Header) -> AnyArray:
    if header.colour == _RGB:
        return read_rgb(root, path)
    return read_uint16(root, path) if header.bits == 16 else read_palette(root, path)


def _make_folder(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as error:
        what = (
            f"can't be made ({error.strerror}); see that the folder around it is there and may be"
            " written to"
        )
        raise InputError([Mistake(shown(str(folder)), what)]) from None


def _png(raw: AnyArray) -> bytes:
    """The numbers alone as a PNG."""
    image = load_pillow().fromarray(raw.transpose(1, 2, 0) if raw.ndim == 3 else raw)
    made = io.BytesIO()
    image.save(made, format="PNG")
    return made.getvalue()


def encode_map(kind: str, label: AnyArray) -> bytes:
    """A label in the form of its kind as the PNG that a delivery would hold; `interpret` reads it
    back."""
    if kind == "segmentation":
        return _png(np.asarray(label).astype(np.uint8))
    known = np.nan_to_num(np.asarray(label, dtype=np.float64))
    if kind == "depth":
        return _png(np.clip(np.rint(known * MILLIMETRES), 0, 65535).astype(np.uint16))
    if kind == "normals":
        colours = np.clip(np.rint((known + 1) * 127.5), 0, 255)
        return _png(np.where(np.isnan(label), 0, colours).astype(np.uint8))
    return _png(np.rint(np.clip(known, 0, 1) * 65535).astype(np.uint16))


def is_plain(kind: str, label: AnyArray) -> bool:
    """Whether all of a label that counts has one colour."""
    for channel in label.reshape(-1, *label.shape[-2:]):
        counts = channel[channel != VOID] if kind == "segmentation" else channel
        counts = counts[np.isfinite(counts)]
        if counts.size and counts.min() != counts.max():
            return False
    return True


# What is wrong with numbers, or odd about them


def _check_classes(target: Target, raw: AnyArray) -> str:
    used = np.unique(raw).tolist()
    known = [each for each in used if each != VOID]
    count = len(target.classes)
    if not known:
        raise ValueError(
            f"has {VOID} everywhere, so nothing in it counts; leave it out if it is not"
            " labelled yet"
        )
    if known[-1] >= count:
        raise ValueError(
            f"holds {known[-1]}, and classes are numbered 0 to {count - 1} ({VOID} does not count)"
        )
    if count == 2 and used == [0, VOID]:
        return (
            f"only 0 and {VOID}, which does not count: if it stands for {target.classes[1]!r},"
            " write 1 there"
        )
    return ""


def _check_depth(target: Target, raw: AnyArray) -> str:
    if not raw.any():
        raise ValueError(
            "is 0 everywhere, so there is no depth in it; leave it out if it is not labelled yet"
        )
    return ""


def _check_strengths(target: Target, raw: AnyArray) -> str:
    if raw.max() == 1:
        raise ValueError(f"holds only 0 and 1; write {np.iinfo(raw.dtype).max} for the strongest")
    return ""


def _check_normals(target: Target, raw: AnyArray) -> str:
    colours = raw[:, raw.any(axis=0)]
    if not colours.size:
        raise ValueError(
            "is black everywhere, so there is no direction in it; leave it out if it is not"
            " labelled yet"
        )
    vectors, lengths = _vectors(colours[:, :: 1 + colours.shape[1] // MOST_NORMALS])
    if (np.abs(lengths - 1) <= NORMAL_SLACK).mean() < 0.5:
        raise ValueError(
            "holds few directions of length 1; in each of its colours, 0 is -1 and 255 is +1"
        )
    if (vectors[2] < AWAY).mean() > 0.5:
        raise ValueError(
            "points away from the viewer; red is to the right, green up, blue towards the viewer"
        )
    return ""


def _vectors(raw: AnyArray) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Directions and their lengths from colours."""
    vectors = raw.astype(np.float32) / np.float32(127.5) - 1
    return vectors, np.sqrt((vectors * vectors).sum(axis=0))


_MASK_CHECKS: Mapping[str, Callable[[Target, AnyArray], str]] = {
    "segmentation": _check_classes,
    "depth": _check_depth,
    "normals": _check_normals,
    "edges": _check_strengths,
    "keypoints": _check_strengths,
}
