"""Pictures: of users, of data sets, and the masks that are labels."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from allotment.connect.masks import take_mask, to_array
from allotment.data import taskonomy, voc
from allotment.data.columns import text_column
from allotment.data.dataset import Target as Task
from allotment.data.pictures import load_images
from allotment.data.pixels import read_palette, read_rgb, read_size, read_uint16
from allotment.data.sbd import read_sbd_mask
from allotment.errors import InputError
from fuzzing.mutators import png_mutator
from fuzzing.target import Target, check_told

KINDS = {
    "segmentation": ("ground", "animal"),
    "depth": (),
    "normals": (),
    "edges": (),
    "keypoints": (),
}


def draw_png(form: str) -> bytes:
    array = np.arange(35, dtype=np.uint8).reshape(5, 7)
    image = {
        "grey": lambda: Image.fromarray(array),
        "deep": lambda: Image.fromarray(array.astype(np.uint16) * 1000),
        "rgb": lambda: Image.fromarray(np.full((5, 7, 3), (128, 128, 255), np.uint8)),
        "palette": (
            lambda: Image.fromarray(array % 2).convert(
                "P", palette=Image.Palette.ADAPTIVE, colors=4
            )
        ),
        "clear": lambda: Image.fromarray(array).convert("RGBA"),
        "two": lambda: Image.fromarray(array * 7).convert("1"),
    }[form]()
    return _save(image, "PNG")


def _save(image: Image.Image, form: str) -> bytes:
    made = io.BytesIO()
    image.save(made, format=form)
    return made.getvalue()


def _make_png() -> Iterable[bytes]:
    for form in ("grey", "deep", "rgb", "palette", "clear", "two"):
        yield draw_png(form)


def _make_any() -> Iterable[bytes]:
    yield from _make_png()
    image = Image.open(io.BytesIO(draw_png("rgb")))
    for form in ("JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM"):
        yield _save(image, form)
    exif = Image.Exif()
    exif[0x0112] = 6
    made = io.BytesIO()
    image.save(made, format="JPEG", exif=exif)
    yield made.getvalue()


def _all(*steps) -> None:  # type: ignore[no-untyped-def]
    """Each of them; the first error is that of all."""
    told = []
    for step, *given in steps:
        try:
            step(*given)
        except InputError as error:
            told.append(error)
    if told:
        raise told[0]


def _read_pixels(data: bytes, place: Path) -> None:
    (place / "x.png").write_bytes(data)
    steps = (
        read_rgb,
        read_palette,
        read_uint16,
        read_size,
        voc.read_mask,
        voc.read_classes,
        *taskonomy.READERS.values(),
    )
    _all(*((step, place, "x.png") for step in steps))


def _make_matlab() -> Iterable[bytes]:
    mask = np.arange(35, dtype=np.uint8).reshape(5, 7) % 3
    for packed in (False, True):
        made = io.BytesIO()
        about = {"Boundaries": [0], "Segmentation": mask, "CategoriesPresent": [1, 2]}
        savemat(made, {"GTcls": about}, do_compression=packed)
        yield made.getvalue()


def _read_matlab(data: bytes, place: Path) -> None:
    (place / "x.mat").write_bytes(data)
    mask = read_sbd_mask(place, "x.mat")
    assert mask.ndim == 2
    assert mask.dtype == np.uint8


def _read_picture(data: bytes, place: Path) -> None:
    (place / "x.png").write_bytes(data)
    images = load_images(text_column("picture", ["x.png"], None, keep=True), place, 8)
    assert images.shape == (1, 3, 8, 8)


def _read_mask(data: bytes, place: Path) -> None:
    (place / "x.png").write_bytes(data)
    for kind, classes in KINDS.items():
        for size in (None, (5, 7)):
            try:
                value, _ = take_mask(place, "x.png", Task("t", kind, classes), size, place / "keep")
            except InputError:
                raise
            except ValueError as error:  # as documented
                check_told(str(error))
                continue
            to_array(Task("t", kind, classes), value, folder=place / "keep", size=size)


TARGETS = (
    Target("pixels", _read_pixels, _make_any, ("data/pixels", "data/voc", "data/taskonomy"),
    png_mutator, (), 1 << 12,
           10.0, 1000),
    Target("sbd", _read_matlab, _make_matlab, ("data/sbd",), None, ("GTcls", "Segmentation"),
    1 << 12, 5.0, 200),
    Target("picture", _read_picture, _make_any, ("data/pictures",), png_mutator, (), 1 << 12, 10.0,
    1000),
    Target("mask", _read_mask, _make_png, ("connect/masks", "data/pixels"), png_mutator, (),
    1 << 12, 10.0, 1000),
)  # fmt: skip
