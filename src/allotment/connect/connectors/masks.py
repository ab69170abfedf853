"""Labels that are pictures: PNG files called TASK/INSTANCE.png, in a folder or a zip archive."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from allotment.connect.connector import Expected, Piece, find_suffix, refuse_sheet
from allotment.connect.guard import refuse, walk_archive, walk_folder
from allotment.orders.sheet import Sheet


class Masks:
    """Only ever read: who is to draw them gets the order as a sheet."""

    suffix = ""

    def recognises(self, place: str) -> bool:
        return find_suffix(place) == ".zip" or os.path.isdir(place)

    def check(self, place: str) -> None:
        raise refuse_sheet(place)

    def write(self, sheet: Sheet, place: str) -> None:
        raise refuse_sheet(place)

    def read(self, place: str, expected: Expected) -> Iterator[Piece]:
        is_empty = True
        for found in _walk(Path(place)):
            is_empty = False
            yield found
        if is_empty:
            what = "there is no file in it; give the folder with the masks"
            raise refuse(Path(place), f"{what}, called TASK/INSTANCE.png")


def _walk(path: Path) -> Iterator[Piece]:
    if os.path.isdir(path):  # unlike Path's own it never raises
        yield from walk_folder(path)
        return
    with tempfile.TemporaryDirectory(prefix="allot-") as scratch:
        yield from walk_archive(path, Path(scratch))


CONNECTOR = Masks()
