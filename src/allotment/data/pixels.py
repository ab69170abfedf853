"""Images that somebody else made: opened below a folder and nowhere else, and only if they are what
was expected.

Nothing is decoded before its header has been looked at. Every refusal is an InputError that names
the file.
"""

from __future__ import annotations

import os
import stat
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.errors import InputError, Mistake
from allotment.machine import is_trouble

MOST_PIXELS = 50_000_000
MOST_BYTES = 1 << 28
"""of any one file"""
MOST_DEFLATED = 1032
"""bytes that come out of one byte of a PNG at most, by the way it is packed"""
MOST_PNG_CHUNKS = 100_000
"""chunks of a PNG; programs write some thousand pixels into each"""
_BEGINNINGS = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff"}
_MODE_WORDS = {
    "1": "black and white only",
    "L": "shades of grey",
    "LA": "shades of grey with transparency",
    "P": "palette colours",
    "RGB": "RGB colours",
    "RGBA": "RGB colours with transparency",
    "CMYK": "CMYK colours, as for print",
}


class Unread(InputError):
    """The disk failed, or memory did: nothing is known of the file."""

    def __init__(self, path: str, error: OSError):
        what = f"can't be read ({error.strerror}); check the disk, then run the same command again"
        super().__init__([Mistake(shown(path), what)])


def read_rgb(root: Path, path: str) -> NDArray[np.uint8]:
    """A JPEG or PNG of 8-bit RGB as (3, height, width)."""
    with _decoded(root, path, ("JPEG", "PNG")) as (image, bits):
        _expect(path, image, bits, ("RGB",), 8, "save it as RGB with 8 bits for each colour")
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def read_palette(root: Path, path: str) -> NDArray[np.uint8]:
    """The numbers, not the colours, of a palette PNG (height, width); 8-bit grey, another habit for
    masks, will do."""
    with _decoded(root, path, ("PNG",)) as (image, bits):
        remedy = "save the class numbers themselves as a palette PNG or an 8-bit grey one"
        # fewer bits of a palette are numbers all the same, but those of grey are stretched to 0 -
        # 255
        _expect(path, image, 8 if image.mode == "P" else bits, ("P", "L"), 8, remedy)
        return np.array(image, dtype=np.uint8)


def read_uint16(root: Path, path: str) -> NDArray[np.uint16]:
    """A PNG of 16-bit grey as (height, width)."""
    with _decoded(root, path, ("PNG",)) as (image, bits):
        _expect(path, image, bits, ("I;16", "I;16B", "I"), 16, "save it as a grey PNG with 16 bits")
        return np.asarray(image).astype(np.uint16)


def read_size(root: Path, path: str) -> tuple[int, int]:
    """Height and width of a JPEG or PNG, as its header has them."""
    with _opened(root, path, ("JPEG", "PNG")) as (image, _):
        return image.height, image.width


def _expect(
    path: str, image: Any, bits: int, modes: tuple[str, ...], depth: int, remedy: str
) -> None:
    if image.mode in modes and bits == depth:
        return
    form = _MODE_WORDS.get(
        image.mode, "shades of grey" if image.mode.startswith("I") else f"the mode {image.mode}"
    )
    raise InputError([Mistake(shown(path), f"holds {form} with {bits} bits each; {remedy}")])


@contextmanager
def _decoded(root: Path, path: str, formats: tuple[str, ...]) -> Iterator[tuple[Any, int]]:
    """The image with its pixels, and the bits of each of its numbers."""
    with _opened(root, path, formats) as (image, bits):
        try:
            if image.format == "PNG" and not _has_all_parts(image.fp):
                raise SyntaxError("a part goes on past the end of the file")
            if image.format == "PNG" and not _can_hold(image, bits):
                raise SyntaxError("most pixels are missing")
            image.load()
        except MemoryError:
            raise
        except Exception as error:  # decoders of damaged files raise almost anything
            if isinstance(error, OSError) and is_trouble(error):
                raise Unread(path, error) from None
            raise InputError([Mistake(shown(path), _damaged(type(error).__name__))]) from None
        yield image, bits


@contextmanager
def _opened(root: Path, path: str, formats: tuple[str, ...]) -> Iterator[tuple[Any, int]]:
    """The image without its pixels: only the header has been read."""
    Image = load_pillow()
    with open_inside(root, path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd palettes and the like
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            head = file.read(26)
            file.seek(0)
        except OSError as error:
            raise Unread(path, error) from None
        try:
            image = Image.open(file, formats=formats)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise InputError([Mistake(shown(path), _too_large("far"))]) from None
        except Exception as error:
            if isinstance(error, OSError) and is_trouble(error):
                raise Unread(path, error) from None
            if any(head.startswith(_BEGINNINGS[each]) for each in formats):
                raise InputError([Mistake(shown(path), _damaged("header"))]) from None
            what = (
                f"is not a {' or '.join(formats)} image, whatever its name says; put a real one"
                " there"
            )
            raise InputError([Mistake(shown(path), what)]) from None
        if image.width * image.height > MOST_PIXELS:
            raise InputError(
                [Mistake(shown(path), _too_large(f"{image.width} x {image.height} pixels,"))]
            )
        with image:
            yield image, head[24] if head.startswith(_BEGINNINGS["PNG"]) else 8


def load_pillow() -> Any:
    """Pillow's module for images; raises InputError with the remedy where there is none."""
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            [Mistake("", "images need Pillow: pip install 'allotment[train]'")]
        ) from None
    return Image


def _has_all_parts(file: BufferedReader) -> bool:
    """Whether no part of a PNG says that it goes on past the end of the file.

    Pillow would take the memory for such a part, gigabytes of it, before it reads what is there.
    """
    before, size = file.tell(), file.seek(0, os.SEEK_END)
    at, kind = len(_BEGINNINGS["PNG"]), b""
    for _ in range(MOST_PNG_CHUNKS):
        if kind == b"IEND" or at + 8 > size:
            break
        file.seek(at)
        length, kind = struct.unpack(">I4s", file.read(8))
        at += 12 + length  # its length, its kind and a checksum around it
    else:
        at = size + 1
    file.seek(before)
    return at <= size


def _can_hold(image: Any, bits: int) -> bool:
    """Whether a PNG has bytes enough for its pixels. Pillow makes up those that are missing: of
    two hundred bytes half a gigabyte."""
    numbers = image.width * image.height * len(image.getbands())
    return bool(numbers * bits <= 8 * MOST_DEFLATED * os.fstat(image.fp.fileno()).st_size)


def _damaged(how: str) -> str:
    return f"is cut short or damaged ({how}); copy it again from where it came from"


def _too_large(how: str) -> str:
    return (
        f"has {how} more than the {MOST_PIXELS // 10**6} million pixels that are read; make it"
        " smaller"
    )


@contextmanager
def open_inside(root: Path, path: str, most: int = MOST_BYTES) -> Iterator[BufferedReader]:
    """The file at a path below the root, for reading; raises InputError for anything but a plain
    file of fair size."""
    found = find_inside(root, path)
    # some systems lack some
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        handle = os.open(found, os.O_RDONLY | sum(flags))
    except OSError as error:
        if is_trouble(error):
            raise Unread(path, error) from None
        what = f"can't be opened ({error.strerror}); see that it is there and may be read"
        raise InputError([Mistake(shown(path), what)]) from None
    try:
        status = os.fstat(handle)
    except OSError as error:
        os.close(handle)
        raise Unread(path, error) from None
    what = ""
    if not stat.S_ISREG(status.st_mode):
        what = "is not a plain file; put one there"
    elif status.st_size > most:
        what = f"has {status.st_size} bytes, more than the {most} that are read; make it smaller"
    if what:
        os.close(handle)
        raise InputError([Mistake(shown(path), what)])
    with os.fdopen(handle, "rb") as file:
        yield file


def find_inside(root: Path, path: str) -> Path:
    """Where a path below the root leads; raises InputError if that is out of the root, or
    nowhere."""
    given = PureWindowsPath(path)  # which knows both slashes and drive letters
    if given.is_absolute() or given.drive or given.root or ".." in given.parts or "\0" in path:
        what = f"is not a path below {shown(str(root))}; name it from there on, without '..'"
        raise InputError([Mistake(shown(path), what)])
    try:
        found = (root / path).resolve()
        if not found.is_relative_to(root.resolve()):
            what = (
                f"is a link that leads out of {shown(str(root))}; put what it leads to in its place"
            )
            raise InputError([Mistake(shown(path), what)])
        if found.exists():
            return found
    except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
        if isinstance(error, OSError) and is_trouble(error):
            raise Unread(path, error) from None
    raise InputError([Mistake(shown(path), f"is not there; it should be in {shown(str(root))}")])


def list_folder(root: Path, folder: str) -> tuple[dict[str, bool], list[str]]:
    """Names of the files in a folder below the root, each with whether it is a link, and names of
    its folders."""
    place = find_inside(root, folder)
    files, folders = {}, []
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.name)
                else:
                    files[entry.name] = entry.is_symlink()
    except OSError as error:
        what = f"can't be listed ({error.strerror}); it should be a folder that may be read"
        raise InputError([Mistake(shown(folder or str(root)), what)]) from None
    return files, sorted(folders)


def shown(path: str) -> str:
    """A path that is safe to print: short, and without codes that a terminal would obey."""
    cut = path if len(path) <= 200 else f"{path[:197]}..."
    return cut if cut.isprintable() else repr(cut)
