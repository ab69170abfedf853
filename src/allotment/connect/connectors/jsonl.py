"""JSON objects, one in each line. For programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from allotment.connect.connector import Expected, Piece, Refusal, Row, find_suffix
from allotment.connect.guard import (
    decode,
    find_start,
    open_plain,
    parse_json,
    read_lines,
    refuse,
    show_value,
)
from allotment.errors import InputError, Mistake
from allotment.files import check_free, place_file
from allotment.orders.sheet import Sheet

EACH_LINE = "each line holds an object with an instance and a label"


class Jsonl:
    """An object for each label, or for each instance, with null where there is no label yet."""

    suffix = ".jsonl"

    def recognises(self, place: str) -> bool:
        return find_suffix(place) in (".jsonl", ".ndjson")

    def check(self, place: str) -> None:
        check_free(Path(place))

    def write(self, sheet: Sheet, place: str) -> None:
        lines = []
        try:
            for row in sheet.rows():
                cells = dict(zip(sheet.columns, [*row[:-1], None], strict=True))
                text = json.dumps(cells, ensure_ascii=False, allow_nan=False, default=str)
                lines.append(f"{text}\n")
        except ValueError:
            what = "holds a number that is not finite; leave it out"
            raise InputError([Mistake("show", what)]) from None
        place_file(Path(place), "".join(lines).encode(errors="replace"))

    def read(self, place: str, expected: Expected) -> Iterator[Piece]:
        path = Path(place)
        is_blank = True
        with open_plain(path) as file:
            file.seek(find_start(path, file))
            for number, line in read_lines(file):
                if line is not None and not line.strip():
                    continue
                is_blank = False
                yield _read_object(f"line {number}", line)
        if is_blank:
            raise refuse(path, f"is empty; {EACH_LINE}")


def _read_object(where: str, line: bytes | None) -> Piece:
    try:
        cells = parse_json(decode(line))
    except ValueError as error:
        return Refusal(where, str(error))
    if isinstance(cells, dict):
        return Row(where, cells)
    return Refusal(where, f"is {show_value(cells)}; {EACH_LINE}")


CONNECTOR = Jsonl()
