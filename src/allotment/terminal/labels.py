"""Labels that are there, as text: what was written, what was corrected, and their history."""

from __future__ import annotations

from collections.abc import Sequence

from allotment.amounts import show
from allotment.campaign.corrections import Corrected
from allotment.campaign.export import Exported
from allotment.campaign.origins import Origin
from allotment.campaign.summary import Status
from allotment.connect.delivery import write_value
from allotment.errors import cut
from allotment.formatting import several
from allotment.job import JSON
from allotment.terminal.page import MOST_LIST_LINES, Page, TextColumn

LONGEST_SHOWN = 40
"""letters of a label in a line"""


def show_export(page: Page, done: Exported) -> None:
    """What was written, and how to begin with it."""
    counts = ", ".join(f"{count} {task}" for task, count in done.counts.items())
    page.text(
        f"{done.table} is written: {several(done.rows, 'row')} with all labels at hand ({counts})."
    )
    if done.labels is not None:
        page.text(f"{done.labels} says where each label came from, when, and at what price.")
    if done.masks is not None:
        page.text(f"{done.masks} holds the masks, each as TASK/INSTANCE.png.")


def show_corrected(page: Page, done: Corrected, status: Status, folder: str) -> None:
    """What is another label now, and what follows."""
    for task, instance, was, value in done.said[:MOST_LIST_LINES]:
        old = "was held back" if was is None else f"was {_show(was)}"
        what = "is withdrawn" if value is None else f"is {_show(value)} now"
        page.text(f"{task} of {instance} {what} ({old}).")
    if len(done.said) > MOST_LIST_LINES:
        page.text(f"and {len(done.said) - MOST_LIST_LINES} more")
    if done.same:
        page.text(f"{several(done.same, 'label')} as known already; nothing was changed there.")
    if done.said:
        page.text(f"What was said before is kept: allot history {folder}")
    page.text(f"Budget {status.money}.")
    page.text(f"Next: {status.next}")


def show_history(page: Page, found: Sequence[Origin]) -> None:
    """A line for each thing that was said of a label."""
    cells = {
        "task": [each.task for each in found],
        "instance": [each.instance for each in found],
        "label": ["-" if each.value is None else _show(each.value) for each in found],
        "counts": ["yes" if each.counts else "" for each in found],
        "source": [each.source for each in found],
        "when": [each.when[:16].replace("T", " ") for each in found],
        "price": ["" if each.price is None else show(each.price) for each in found],
        "settled": [each.settled for each in found],
    }
    page.table([TextColumn(name, column) for name, column in cells.items()])


def _show(value: JSON) -> str:
    return cut(write_value(value, "labels"), LONGEST_SHOWN)
