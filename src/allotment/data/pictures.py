"""Images that a column names by their paths, read only from below one folder."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import MOST_CELLS, Column
from allotment.data.pixels import MOST_BYTES, MOST_PIXELS
from allotment.errors import InputError, Mistake

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
"""of files that a column may name as pictures"""
PICTURE_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
PICTURE_SIDE = 128
"""pixels along the longer side of a picture that is shown to people"""
MOST_MEASURED = 50
"""images of a column whose size is looked at before all of them are read"""


def load_images(column: Column, root: Path | None, size: int) -> NDArray[np.uint8]:
    """The images that a column names, as (n, 3, size, size); raises InputError with every file that
    won't do."""
    if len(column.texts) * 3 * size * size > 8 * MOST_CELLS:
        raise InputError(
            [Mistake(f"column {column.name!r}", f"its images would fill {8 * MOST_CELLS >> 30} GB")]
        )
    images = np.zeros((len(column.texts), 3, size, size), dtype=np.uint8)
    for row, image in read_images(column, root, size):
        images[row] = image
    return images


def read_images(
    column: Column, root: Path | None, size: int
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """One row after the other, the image that it names as (3, size, size); raises InputError in the
    end with every file that won't do."""
    place = find_folder(column, root)
    try:
        from PIL import Image
    except ImportError:
        what = "holds images, and reading them needs Pillow: pip install 'allotment[train]'"
        raise InputError([Mistake(f"column {column.name!r}", what)]) from None
    wrong: dict[int, str] = {}
    for row, text in enumerate(column.texts):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd palettes and the like
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                image = _load_image(_inside(place, text), size)
        except InputError as error:
            wrong[row] = f"{text[:200]!r} {error.mistakes[0].what}" if text else "names no image"
        else:
            yield row, image
    if wrong:
        raise InputError(column.mistakes(wrong, wrong.__getitem__))


def read_picture(text: str, root: Path | None) -> NDArray[np.uint8] | None:
    """One image as people see it (3, height, width), at most PICTURE_SIDE along a side; None where
    it can't be read, which is explained where it is learned from."""
    if root is None:
        return None
    try:
        with warnings.catch_warnings(), _opened(_inside(root, text), PICTURE_SIDE) as image:
            warnings.simplefilter("ignore")
            image.thumbnail((PICTURE_SIDE, PICTURE_SIDE))
            return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))
    except (InputError, ImportError):
        return None


def find_folder(column: Column, root: Path | None) -> Path:
    """The folder that the column's paths begin in."""
    if root is None:
        what = "holds images; say in which folder they are (folder)"
        raise InputError([Mistake(f"column {column.name!r}", what)])
    return root


def hash_images(column: Column, root: Path) -> str:
    """Of the bytes of all files that a column names, in their order; "" if some can't be read."""
    digest = hashlib.sha256()
    for text in column.texts:
        try:
            path = _inside(root, text)
            if path.stat().st_size > MOST_BYTES:
                return ""
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except (InputError, OSError):  # which is explained where it is read
            return ""
    return digest.hexdigest()


def list_sizes(column: Column, root: Path | None) -> list[tuple[int, int]]:
    """Width and height of the first images of a column, as far as they can be read."""
    try:
        from PIL import Image
    except ImportError:
        return []
    found = []
    for text in column.texts[:MOST_MEASURED]:
        try:
            path = _inside(find_folder(column, root), text)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Image.open(path, formats=PICTURE_FORMATS) as image:
                    found.append((image.width, image.height))
        except Exception:  # whatever a damaged file raises is explained when it is read
            continue
    return found


def _inside(root: Path, text: str) -> Path:
    """The file of that name below the root; raises InputError if it leads out of it or is not
    there."""
    given = PureWindowsPath(text)  # which knows both slashes and drive letters
    if given.is_absolute() or given.drive or given.root or ".." in given.parts or "\0" in text:
        raise InputError([Mistake("", "is not a path below the table's folder")])
    try:
        path = (root / text).resolve()
        if not path.is_relative_to(root.resolve()):
            raise InputError([Mistake("", "is a link that leads out of the table's folder")])
        if path.is_file():
            return path
    except (OSError, RuntimeError):  # a name that is too long, links in a circle
        pass
    raise InputError([Mistake("", "is not there")])


def _load_image(path: Path, size: int) -> NDArray[np.uint8]:
    from PIL import Image

    with _opened(path, size) as image:
        small = image.resize((size, size), Image.Resampling.BILINEAR)
        return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))


@contextmanager
def _opened(path: Path, size: int) -> Iterator[Any]:
    """The image upright and in colours, not much larger than needed; raises InputError if it can't
    be read."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path, formats=PICTURE_FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Image.DecompressionBombError
            # decodes a large JPEG at a fraction of its size
            image.draft("RGB", (2 * size, 2 * size))
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith("I;16"):
                upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
            yield upright.convert("RGB")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise InputError(
            [Mistake("", f"has more than {MOST_PIXELS // 10**6} million pixels; make it smaller")]
        ) from None
    except Exception as error:  # decoders of damaged files raise almost anything
        reason = "" if isinstance(error, UnidentifiedImageError) else f" ({type(error).__name__})"
        raise InputError([Mistake("", f"is not an image that can be read{reason}")]) from None
