"""The masks of SBD (Semantic Boundaries Dataset) as they are downloaded: files of MATLAB 5.

Of such a file no more is read than the one matrix that is wanted, here and not by scipy, which a
damaged file can bring down.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allotment.data.pixels import MOST_PIXELS, open_inside, shown
from allotment.errors import InputError, Mistake

SBD_FOLDERS = ("benchmark_RELEASE/dataset", "SBD/dataset", "sbd/dataset", "SBD", "sbd")
"""where its archive puts it, or people do, beside VOCdevkit"""
SBD_MASKS = "cls"
"""the folder of its masks"""
SBD_LISTS = ("train", "val")
LARGEST_MAT = 1 << 20
"""bytes of a file of SBD, which are some thousands"""
LARGEST_MATRIX = 1 << 26
"""bytes of what is unpacked of it"""
_HEADER = 128
_UINT8, _INT32, _UINT32, _MATRIX, _PACKED = 2, 5, 6, 14, 15
"""kinds of elements of a file"""
_STRUCT_CLASS, _UINT8_CLASS = 2, 9
"""kinds of matrices"""

Element = tuple[int, bytes]
"""its kind and what it holds"""


class _Broken(Exception):
    """A file that is not what it should be."""


def find_sbd(root: Path) -> str:
    """The folder of SBD below a root; "" if there is none."""
    return next((each for each in SBD_FOLDERS if (root / each / SBD_MASKS).is_dir()), "")


def read_sbd_mask(root: Path, path: str) -> NDArray[np.uint8]:
    """The class of each pixel: 0 background, 1 to 20 the classes of VOC."""
    with open_inside(root, path, LARGEST_MAT) as file:
        content = file.read()
    try:
        return _find_mask(content)
    except (_Broken, struct.error, zlib.error):
        what = "holds no GTcls.Segmentation of 8 bits; is it of SBD's folder cls? Download it again"
        raise InputError([Mistake(shown(path), what)]) from None


def _find_mask(content: bytes) -> NDArray[np.uint8]:
    if content[126:_HEADER] != b"IM":  # little-endian, as SBD is
        raise _Broken
    for kind, data in _split(content[_HEADER:]):
        if kind == _PACKED:
            data = zlib.decompressobj().decompress(data, LARGEST_MATRIX)
            kind, data = next(_split(data), (0, b""))
        if kind == _MATRIX:
            parts = list(_split(data))
            if len(parts) < 3:
                raise _Broken
            flags, _, name, *rest = parts
            if name[1] == b"GTcls" and flags[1][:1] == bytes([_STRUCT_CLASS]):
                return _read_pixels(_find_field(rest, b"Segmentation"))
    raise _Broken


def _find_field(rest: list[Element], wanted: bytes) -> bytes:
    """The matrix of a field of a struct, of which there is one."""
    if len(rest) < 2:
        raise _Broken
    (_, length), (_, names), *fields = rest
    (width,) = struct.unpack("<i", length)
    if not 0 < width <= len(names):
        raise _Broken
    known = [names[at : at + width].rstrip(b"\0") for at in range(0, len(names), width)]
    for name, (kind, data) in zip(known, fields, strict=False):
        if name == wanted and kind == _MATRIX:
            return data
    raise _Broken


def _read_pixels(matrix: bytes) -> NDArray[np.uint8]:
    parts = list(_split(matrix))
    if len(parts) < 4 or [kind for kind, _ in parts[:2]] != [_UINT32, _INT32]:
        raise _Broken
    (_, flags), (_, sizes), _, (kind, pixels) = parts[:4]
    if flags[:1] != bytes([_UINT8_CLASS]) or kind != _UINT8 or len(sizes) != 8:
        raise _Broken
    height, width = struct.unpack("<ii", sizes)
    if height < 1 or width < 1 or not height * width == len(pixels) <= MOST_PIXELS:
        raise _Broken
    columns = np.frombuffer(pixels, dtype=np.uint8).reshape(width, height)
    return np.ascontiguousarray(columns.T)


def _split(data: bytes) -> Iterator[Element]:
    """The elements that lie one after the other."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind >> 16:  # a small one, that holds its data beside its kind
            kind, size, start, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if size > 4:
                raise _Broken
        else:
            start = at + 8
            after = start + size if kind == _PACKED else start + -(-size // 8) * 8
        if start + size > len(data):
            raise _Broken
        yield kind, data[start : start + size]
        at = after
