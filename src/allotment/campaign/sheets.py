"""What an order sheet shows of an instance, so that people know what to label."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from allotment.campaign.state import CampaignState
from allotment.orders.sheet import ANSWER, LABEL, SHEET_COLUMNS

MOST_SHOWN = 12
"""columns of a table; more would hide the one to be filled in"""
GONE = "not in the data any more; leave it empty"
"""in place of what would be shown"""


def show_columns(state: CampaignState, names: Collection[str]) -> dict[str, dict[str, object]]:
    """Columns by name, and in each a cell for every instance: a file, or the first columns of the
    table."""
    stock, files = state.stock, state.stock.data.files
    # rows with ids may have been taken out of the data since they were ordered
    there = [name for name in names if name in stock.place]
    rows = [stock.place[name] for name in there]
    shown = {"file": [files[row] for row in rows]} if files else _read_cells(state, rows)
    gone: dict[str, object] = dict.fromkeys(names, GONE)
    return {column: gone | dict(zip(there, cells, strict=True)) for column, cells in shown.items()}


def _read_cells(state: CampaignState, rows: Sequence[int]) -> dict[str, Sequence[str]]:
    """Of the first columns of the table, the cells in these rows; none of what is no table."""
    table = state.stock.rows
    if table is None:
        return {}
    opened = table.open()
    tasks = {*state.settings.names, *state.stock.called.values()}
    left_out = {*tasks, table.id, *table.left_out}
    chosen = [name for name in opened.names if name.strip() and name not in left_out][:MOST_SHOWN]
    columns = opened.read(chosen, ())
    cells = {}
    for name in chosen:
        is_taken = name in (*SHEET_COLUMNS, ANSWER, LABEL)
        cells[f"{name} (data)" if is_taken else name] = columns[name].pick(rows).texts
    return cells
