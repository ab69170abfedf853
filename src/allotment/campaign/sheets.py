"""What an order sheet shows of an instance, so that people know what to label."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from allotment.campaign.state import State
from allotment.orders.sheet import ANSWER, COLUMNS, LABEL
from allotment.stock.stock import find_rows

MOST = 12
"""columns of a table; more would hide the one to be filled in"""
GONE = "not in the data any more; leave it empty"
"""in place of what would be shown"""


def show_columns(state: State, names: Collection[str]) -> dict[str, dict[str, object]]:
    """Columns by name, and in each a cell for every instance: a file, or the first columns of the
    table."""
    stock, data = state.stock, state.stock.data
    if data.files:
        return {"file": _fill(names, stock.place, data.files)}
    table = find_rows(state.settings, state.folder)
    if table is None:
        return {}
    opened = table.open()
    left_out = {*state.settings.names, table.id, *table.left_out}
    chosen = [name for name in opened.names if name.strip() and name not in left_out][:MOST]
    columns = opened.read(chosen, ())
    return {
        (f"{column} (data)" if column in (*COLUMNS, ANSWER, LABEL) else column): _fill(
            names, stock.place, columns[column].texts
        )
        for column in chosen
    }


def _fill(
    names: Collection[str], place: Mapping[str, int], cells: Sequence[object]
) -> dict[str, object]:
    """Rows with ids may have been taken out of the data since they were ordered."""
    return {name: cells[place[name]] if name in place else GONE for name in names}
