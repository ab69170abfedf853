"""The seam of connectors: where orders go, and where labels come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from allotment.connect.guard import Picture as Picture
from allotment.connect.guard import Refusal as Refusal
from allotment.connect.guard import open_plain, refuse
from allotment.connect.rows import Form
from allotment.data.dataset import Target
from allotment.errors import InputError
from allotment.orders.sheet import SHEET_SUFFIXES, Sheet
from allotment.plugins import Registry, find_modules

CSV, JSONL = "csv", "jsonl"
"""the connectors of text; the first is that of an order that nobody names a place for"""


@dataclass(frozen=True)
class Row:
    """A row or an object of a delivery, where it stands, and its cells by the names of their
    columns.

    A sheet's columns are `order`, `task`, `instance` and `label`; a table has a column for the
    instance and one for each task. Columns that nobody knows (who made a label, how long it took)
    are passed over.
    """

    where: str
    cells: Mapping[str, Any]
    form: Form | None = None
    """what the columns are there for, if that was found out for all rows at once"""


Piece = Row | Picture | Refusal
"""of a delivery, as a connector finds it"""


@dataclass(frozen=True)
class Expected:
    """What a delivery may hold."""

    tasks: Mapping[str, Target]
    find_form: Callable[[Sequence[str]], Form]
    """what columns with these names are there for, of a table that names them once; raises
    ValueError with the reason if they are not a delivery's"""


@runtime_checkable
class Connector(Protocol):
    """Orders out, labels in: what knows the form of one kind of place.

    A place is a text: the path of a file or a folder, the address of a project. `recognises` says
    whether a place is of this kind, by its name alone; it may not exist yet.

    `check` raises InputError where no new order can be put, before one is placed; `write` puts a
    sheet there, whole or not at all, and never over anything that may hold labels: the same sheet
    once more changes nothing, anything else is refused.

    `read` yields what is there, a `Row`, a `Picture` or a `Refusal` at a time, with bounded memory
    and in the same order every time. It judges nothing: whether there are such tasks, instances and
    labels, what stands there twice, and how much of it is taken is settled by those who asked, in
    the same way for all connectors. What can't be read at all it refuses with InputError. A place
    is not to be trusted; `allotment.connect.guard` opens and takes apart files that others made.
    """

    suffix: str
    """of the file of a new order, as in ".csv"; "" where a place must be named"""

    def recognises(self, place: str) -> bool: ...

    def check(self, place: str) -> None: ...

    def write(self, sheet: Sheet, place: str) -> None: ...

    def read(self, place: str, expected: Expected) -> Iterable[Piece]: ...


CONNECTORS: Registry[Connector] = Registry(
    "connectors",
    "connector",
    ("suffix", "recognises", "check", "write", "read"),
    find_modules("allotment.connect.connectors", "CONNECTOR"),
)


def find_writer(place: str | None, named: str | None = None) -> str:
    """The connector for an order: the named one, or the one that knows the place by its name."""
    if named is not None or place is None:
        name = named or CSV
        CONNECTORS.load(name)
        return name
    if (known := recognise(place)) is not None:
        return known
    if find_suffix(place) in SHEET_SUFFIXES:
        return CSV
    raise refuse_sheet(place)


def find_reader(place: str, named: str | None = None) -> str:
    """The connector for a delivery: the named one, the one that knows the place by its name or,
    where that says nothing, one of text by how the file begins."""
    if named is not None:
        CONNECTORS.load(named)
        return named
    return recognise(place) or _guess(Path(place))


def recognise(place: str) -> str | None:
    """The first connector that knows the place by its name."""
    for name in CONNECTORS:
        connector = CONNECTORS.load(name)
        with CONNECTORS.calling(name):
            if connector.recognises(place):
                return name
    return None


def find_suffix(place: str) -> str:
    """How the name of a file ends, in small letters."""
    return Path(place).suffix.lower()


def refuse_sheet(place: str) -> InputError:
    """That nobody could tell by its name what a sheet is."""
    ends = f"{', '.join(SHEET_SUFFIXES[:-1])} or {SHEET_SUFFIXES[-1]}"
    return refuse(Path(place), f"a sheet is text: give it a name that ends in {ends}")


def _guess(path: Path) -> str:
    with open_plain(path) as file:
        head = file.read(1 << 10)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return JSONL
    # UTF-16, about which there is something better to say
    wide = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    if text.startswith((b"PK", b"%PDF", b"[")) or (b"\0" in head and not wide):
        what = (
            "is no text with a label in each line; save a spreadsheet as .csv, write JSON as .jsonl"
            " with an object"
        )
        raise refuse(path, f"{what} in each line, and put masks into a folder or a .zip")
    return CSV
