"""The transfer matrix as a table: every cell says in words what its colour says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allotment.reports import words
from allotment.reports.blocks import HtmlColumn, Note, PageBlock, PageTable
from allotment.reports.markup import NARROW, Content, fill, join, name, small


def show_matrix(transfer: Mapping[str, Any]) -> list[PageBlock]:
    """The table, a row for each task whose labels they are and a column for each that is scored."""
    tasks = transfer["tasks"]
    if not tasks:
        return [Note(words.NOT_MEASURED)]
    diagonal = [_find_figures(transfer, place, place) for place in range(len(tasks))]
    settled = transfer.get("unit") != "%" and all(
        value == 1 and low == high for value, low, high, _ in diagonal
    )
    strongest = max(
        (abs(value) for line in transfer["cells"] for value in line if value is not None),
        default=0.0,
    )
    columns = [HtmlColumn(words.HEADS["from"], [name(task) for task in tasks], "name")]
    for to, task in enumerate(tasks):
        shown = [
            (
                (join(["1", small(words.BY_DEFINITION)]), "set")
                if source == to and settled
                else _show_cell(*_find_figures(transfer, source, to), strongest)
            )
            for source in range(len(tasks))
        ]
        head = fill("{to} {task}", to=words.TO, task=name(task, NARROW))
        columns.append(
            HtmlColumn(head, [cell for cell, _ in shown], classes=[kind for _, kind in shown])
        )
    return [
        PageTable(words.HEADINGS["transfer"], columns),
        Note(words.explain_transfer(transfer, settled)),
    ]


def _find_figures(
    transfer: Mapping[str, Any], source: int, to: int
) -> tuple[float | None, float | None, float | None, int | None]:
    """A cell's value, the ends of its interval and its sign if it has been called, as far as they
    are known."""
    value, low, high, called = (
        figures[source][to] if (figures := transfer.get(key)) else None
        for key in ("cells", "low", "high", "called")
    )
    if called is None and low is not None and high is not None:
        called = (low > 0) - (high < 0)
    return value, low, high, called


def _show_cell(
    value: float | None, low: float | None, high: float | None, called: int | None, strongest: float
) -> tuple[Content, str]:
    """A cell's text and its colour."""
    if value is None:
        return words.NOT_KNOWN, ""
    parts: list[Content] = [words.say_number(value, 2)]
    if low is not None and high is not None:
        parts.append(small(words.say_range(low, high, 2)))
    if called is not None:
        parts.append(small(words.CALLS[(called > 0) - (called < 0)]))
    return join(parts), _find_colour(abs(value) / (strongest or 1.0), called) if called else ""


def _find_colour(share: float, called: int) -> str:
    """Three steps, since more are not told apart; the share is that of the strongest cell."""
    step = 1 + (share >= 0.25) + (share >= 0.6)
    return f"{'help' if called > 0 else 'harm'}-{step}"
