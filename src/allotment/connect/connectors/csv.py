"""Tables of text: CSV, or with tabs between cells. For people and their spreadsheets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from allotment.cells import encode_table
from allotment.connect.connector import Expected, Piece, Refusal, Row, find_suffix
from allotment.connect.guard import find_start, open_plain, read_records, refuse, show_value
from allotment.connect.rows import Form
from allotment.files import check_free, place_file
from allotment.orders.sheet import Sheet

DELIMITERS = ",;\t|"
"""that are tried in turn, until the first line names columns of a delivery"""


class Csv:
    """A line for each row, below one with the names of the columns."""

    suffix = ".csv"

    def recognises(self, place: str) -> bool:
        return find_suffix(place) in (".csv", ".tsv")

    def check(self, place: str) -> None:
        check_free(Path(place))

    def write(self, sheet: Sheet, place: str) -> None:
        delimiter = "\t" if find_suffix(place) == ".tsv" else ","
        place_file(Path(place), encode_table([sheet.columns, *sheet.rows()], delimiter))

    def read(self, place: str, expected: Expected) -> Iterator[Piece]:
        path = Path(place)
        delimiters = "\t" if find_suffix(place) == ".tsv" else DELIMITERS
        with open_plain(path) as file:
            names, rows, form = _read_names(path, file, expected, delimiters)
            wide = len(names)
            used = {at for at, name in enumerate(names) if name in form.needed}
            for line, cells in rows:
                where = f"line {line}"
                if isinstance(cells, str):
                    yield Refusal(where, cells)
                elif len(cells) > wide and any(cells[wide:]):
                    yield Refusal(where, _tell_many(len(cells), wide))
                else:  # spreadsheets may leave out empty cells at the end of a row
                    there = {names[at]: cells[at] for at in used if at < len(cells)}
                    yield Row(where, there, form)


def _tell_many(cells: int, wide: int) -> str:
    return f"has {cells} cells where the first line has {wide}; is a comma not in quotes?"


def _read_names(
    path: Path, file: IO[bytes], expected: Expected, delimiters: str
) -> tuple[list[str], Iterator[tuple[int, list[str] | str]], Form]:
    """The names of the columns, the rows below them and what the columns are for."""
    reasons = []
    start = find_start(path, file)
    for delimiter in delimiters:
        file.seek(start)
        records = read_records(file, delimiter)
        line, names = next(records, (1, "is empty; it begins with a line that names its columns"))
        try:
            if isinstance(names, str):
                raise ValueError(names)
            form = expected.find_form(names)
        except ValueError as error:
            reasons.append((line, str(error)))
            continue
        counts = Counter(names)
        if twice := [name for name in form.needed if counts[name] > 1]:
            first = min(twice, key=names.index)
            what = f"column {show_value(first)} is there more than once; rename all but one"
            raise refuse(path, what, line)
        return names, records, form
    raise refuse(path, reasons[0][1], reasons[0][0])


CONNECTOR = Csv()
