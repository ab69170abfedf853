"""Columns of pictures as numbers: computed once, and kept in a file beside a campaign's store.

The file is named after all that it follows from, so that it never is another's, and ends with a
hash of itself. It can be removed at any time: then it is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import MOST_CELLS, Column
from allotment.data.embedding import LARGEST_EMBEDDED_SIDE, Embedding
from allotment.data.pictures import find_folder, hash_images, read_images
from allotment.errors import AllotmentError, InputError, Mistake
from allotment.files import HALF, remove_halves, replace_file

EMBEDDED_FOLDER = "pictures"
"""of a campaign, in which numbers of its pictures are kept"""
MOST_EMBEDDED_FILES = 8
"""files that are kept there; older ones are removed"""
MOST_PIXELS_AT_ONCE = 1 << 22
"""pixels of the pictures that are embedded at a time"""
_HASH_SIZE = 32

EmbeddedArray = NDArray[np.float32]


def embed_column(
    column: Column, root: Path | None, size: int, embedding: Embedding, folder: Path | None = None
) -> EmbeddedArray:
    """The numbers (n, width) of the pictures that a column names; `folder` keeps them."""
    if not embedding.least_side <= size <= LARGEST_EMBEDDED_SIDE:
        allowed = f"{embedding.least_side} to {LARGEST_EMBEDDED_SIDE}"
        raise InputError([Mistake("image_size", f"{size} pixels are not {allowed}")])
    if len(column.texts) * embedding.width > MOST_CELLS:
        what = f"its pictures would be more than {MOST_CELLS:,} numbers"
        raise InputError([Mistake(f"column {column.name!r}", what)])
    place = find_folder(column, root)
    if folder is None:
        return _compute(column, place, size, embedding)
    pictures = hash_images(column, place)
    path = folder / _name_file(pictures, size, embedding)
    shape = (len(column.texts), embedding.width)
    kept = _read(path, shape) if pictures else None
    if kept is not None:
        return kept
    found = _compute(column, place, size, embedding)
    if pictures and hash_images(column, place) == pictures:
        _keep(path, found)
    return found


def _compute(column: Column, root: Path, size: int, embedding: Embedding) -> EmbeddedArray:
    found = np.zeros((len(column.texts), embedding.width), dtype=np.float32)
    rows: list[int] = []
    held: list[NDArray[np.uint8]] = []
    at_once = max(1, MOST_PIXELS_AT_ONCE // (size * size))
    for row, picture in read_images(column, root, size):
        rows.append(row)
        held.append(picture)
        if len(held) == at_once:
            found[rows] = embedding.embed(np.stack(held))
            rows, held = [], []
    if held:
        found[rows] = embedding.embed(np.stack(held))
    return found


def _name_file(pictures: str, size: int, embedding: Embedding) -> str:
    words = f"{pictures} {size} {embedding.name}".encode()
    return f"{hashlib.sha256(words).hexdigest()[:32]}.bin"


def _read(path: Path, shape: tuple[int, int]) -> EmbeddedArray | None:
    """What is kept there; None where nothing is, or something else."""
    length = 4 * shape[0] * shape[1] + _HASH_SIZE
    try:
        if path.is_symlink() or path.stat().st_size != length:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    body, seal = content[:-_HASH_SIZE], content[-_HASH_SIZE:]
    if hashlib.sha256(body).digest() != seal:
        return None
    found = np.frombuffer(body, dtype="<f4").astype(np.float32).reshape(shape)
    return found if bool(np.isfinite(found).all()) else None


def _keep(path: Path, found: EmbeddedArray) -> None:
    """Where that can't be done, a later command computes it again."""
    body = found.astype("<f4").tobytes()
    with contextlib.suppress(OSError, AllotmentError):
        path.parent.mkdir(exist_ok=True)
        remove_halves(path.parent.glob(f"{HALF}*"))
        replace_file(path, body + hashlib.sha256(body).digest())
        others = sorted(path.parent.glob("*.bin"), key=lambda each: each.stat().st_mtime)
        for each in others[:-MOST_EMBEDDED_FILES]:
            each.unlink(missing_ok=True)
