"""A page of text: titles, paragraphs and tables, on a terminal or where there is none."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import click
from rich.cells import cell_len
from rich.console import Console
from rich.control import strip_control_codes
from rich.text import Text

from allotment.errors import visible

COLUMN_GAP = 2
"""spaces between columns"""
UNCUT_CELLS = 1000
"""cells of a name that is not cut; names have at most 100 letters"""
MOST_SIDE_BY_SIDE = 12
"""tasks or columns; more are not given a place each"""
HEAD_CELLS = 16
"""cells of a task's name above its column, where columns go into several tables"""
TIED = "\N{NO-BREAK SPACE}"
MOST_ROWS = 30
"""of a table; the rest is summed up"""
MOST_LIST_LINES = 8
"""lines of a list; the rest is counted"""


@dataclass(frozen=True)
class TextColumn:
    """A column of finished text; those of tasks may be cut in their head, those of names in every
    cell, words never."""

    head: str
    cells: Sequence[str]
    kind: str = "number"

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.head, *self.cells)))

    def cut_to(self, width: int) -> TextColumn:
        if self.kind == "name":
            return replace(self, cells=[shorten(cell, width) for cell in self.cells])
        return replace(self, head=shorten(self.head, max([width, *map(cell_len, self.cells)])))


class Page:
    """Where it is written: no wider than the terminal if it can be; as wide as needed where there
    is none."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self.width = shutil.get_terminal_size().columns if terminal else None
        plain = bool(os.environ.get("NO_COLOR")) or not terminal
        # Columns are fitted here, not by rich, which would cut numbers.
        self._console = Console(
            width=100_000, color_system=None if plain else "auto", highlight=False
        )
        # Without Unicode rich would draw bars between the columns.
        self._ruled = self._console.encoding.startswith("utf")

    def _echo(self, lines: Sequence[str]) -> None:
        """Plain lines, without rich, which takes a millisecond for each."""
        click.echo("\n".join(strip_control_codes(line).rstrip() for line in lines))

    def title(self, text: str) -> None:
        with self._console.capture() as captured:
            self._console.print(Text(visible(text), style="bold"))
        click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)

    def text(self, text: str = "", indent: str = "") -> None:
        """A paragraph; an empty one is an empty line."""
        width = self.width or 10**9
        # no line begins with a sign of what stands at the end of the one before
        whole = visible(text, "\n").replace(" %", f"{TIED}%")
        lines = textwrap.wrap(
            whole, max(width, 20), subsequent_indent=indent, break_on_hyphens=False
        )
        self._echo([line.replace(TIED, " ") for line in lines])

    def table(self, columns: Sequence[TextColumn], elsewhere: str = "") -> None:
        """The columns side by side; if they are too wide, without those of single tasks, which are
        `elsewhere`."""
        columns = [
            replace(each, head=visible(each.head), cells=list(map(visible, each.cells)))
            for each in columns
        ]
        fitted = fit(columns, self.width)
        head, *rows = map((" " * COLUMN_GAP).join, zip(*map(_align, fitted), strict=True))
        self.title(head)
        if body := [*(["─" * _width(fitted)] if self._ruled else []), *rows]:
            self._echo(body)
        if len(fitted) < len(columns):
            self.text(
                f"(The columns of single tasks do not fit in here{elsewhere and '; '}{elsewhere}.)"
            )

    def fits(self, columns: Sequence[TextColumn]) -> bool:
        """Whether a table of these leaves none out."""
        return len(fit(columns, self.width)) == len(columns)

    def tables(self, lead: TextColumn, columns: Sequence[TextColumn]) -> None:
        """The columns in as few tables as it takes, each with the lead at its left and an empty
        line below."""
        room = None
        if self.width is not None:
            lead = lead.cut_to(max(self.width // 3, 20)) if lead.kind == "name" else lead
            room = self.width - lead.width
        for part in split(
            [column.cut_to(HEAD_CELLS) if column.kind == "task" else column for column in columns],
            room,
        ):
            self.table([lead, *part])
            self.text()


def fit(columns: Sequence[TextColumn], width: int | None) -> list[TextColumn]:
    """The columns within a width: heads of tasks and names cut, or tasks left out; never a number
    cut."""
    sizes = (
        [(head, UNCUT_CELLS) for head in range(24, 7, -1)]
        + [(8, name) for name in range(60, 19, -4)]
        + [(6, 20)]
    )
    for head, name in sizes:
        fitted = [
            column.cut_to({"task": head, "name": name}.get(column.kind, UNCUT_CELLS))
            for column in columns
        ]
        if width is None or _width(fitted) <= width:
            return fitted
    rest = [column for column in columns if column.kind != "task"]
    over = max(0, _width(rest) - (width or 0))
    return [
        column.cut_to(max(column.width - over, 12)) if column.kind == "name" else column
        for column in rest
    ]


def split(columns: Sequence[TextColumn], width: int | None) -> list[list[TextColumn]]:
    """The columns in as few parts as are no wider than that with the gap before them, of about the
    same number."""
    parts: list[list[TextColumn]] = [[]]
    for column in columns:
        if width is not None and parts[-1] and _width([*parts[-1], column]) + COLUMN_GAP > width:
            parts.append([])
        parts[-1].append(column)
    each = max(math.ceil(len(columns) / len(parts)), 1)
    even = [list(columns[at : at + each]) for at in range(0, len(columns), each)]
    return (
        even if width is None or all(_width(part) + COLUMN_GAP <= width for part in even) else parts
    )


def _align(column: TextColumn) -> list[str]:
    """Head and cells, all as wide as the widest of them."""
    texts, width = [column.head, *column.cells], column.width
    if column.kind in ("name", "word"):
        return [text + " " * (width - cell_len(text)) for text in texts]
    return [" " * (width - cell_len(text)) + text for text in texts]


def _width(columns: Sequence[TextColumn]) -> int:
    return sum(column.width + COLUMN_GAP for column in columns) - COLUMN_GAP


def shorten(text: str, width: int) -> str:
    """The text in so many cells of a terminal, cut in its middle, since names often differ at their
    end.

    >>> shorten("segmentation of roads", 12)
    'segmen…roads'
    """
    if cell_len(text) <= width:
        return text
    head, tail = "", ""
    while text:
        rest = text[1:] if len(head) <= len(tail) else text[:-1]
        one = text[0] if len(head) <= len(tail) else text[-1]
        if cell_len(head + one + tail) > width - 1:
            break
        head, tail = (head + one, tail) if len(head) <= len(tail) else (head, one + tail)
        text = rest
    return f"{head}…{tail}"
