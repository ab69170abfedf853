"""A connector: orders as a table in Markdown, to be filled in with any editor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from allotment.connect.connector import Expected, Piece, Refusal, Row
from allotment.connect.guard import decode, open_plain, read_lines, refuse
from allotment.files import check_free, place_file
from allotment.orders.sheet import Sheet


class Markdown:
    """A line for each row, with | around the cells."""

    suffix = ".md"

    def recognises(self, place: str) -> bool:
        return place.endswith(self.suffix)

    def check(self, place: str) -> None:
        check_free(Path(place))

    def write(self, sheet: Sheet, place: str) -> None:
        names = sheet.columns
        lines = [_line(names), _line(["---"] * len(names)), *map(_line, sheet.rows())]
        place_file(Path(place), "".join(lines).encode())

    def read(self, place: str, expected: Expected) -> Iterator[Piece]:
        names: list[str] = []
        with open_plain(Path(place)) as file:
            for number, line in read_lines(file):
                where = f"line {number}"
                try:
                    cells = _cells(decode(line))
                except ValueError as error:
                    yield Refusal(where, str(error))
                    continue
                if not names:
                    names = cells
                elif len(cells) != len(names):
                    yield Refusal(where, f"has {len(cells)} cells, not {len(names)}")
                elif set(cells) != {"---"}:
                    yield Row(where, dict(zip(names, cells, strict=True)))
        if not names:
            raise refuse(Path(place), "is empty; it begins with the names of its columns")


def _line(cells: list[object] | list[str]) -> str:
    """Letters that would end a cell or a line are escaped, as in JSON."""
    texts = [json.dumps(str(cell))[1:-1].replace("|", "\\u007c") for cell in cells]
    return f"| {' | '.join(texts)} |\n"


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|").split("|")
    try:
        return [json.loads(f'"{cell[1:-1]}"') for cell in inner]
    except ValueError:
        raise ValueError("has an escape that is none; write \\\\ for a backslash") from None


CONNECTOR = Markdown()
