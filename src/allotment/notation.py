"""How a report writes money and numbers: the currency beside them and the decimal mark in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allotment.amounts import short
from allotment.errors import cut, make_hints, suggest
from allotment.mistakes import Placed

NOTATION_KEYS = ("currency", "decimal")
DECIMAL_MARKS = ("point", "comma")
LONGEST_CURRENCY = 12
"""letters of a currency, such as EUR or credits"""


def read_notation(given: Any, wrong: Placed) -> dict[str, str]:
    """The table [report] of a file of settings; what is wrong with it goes to `wrong`."""
    if not isinstance(given, Mapping):
        wrong.add(("report",), "report", "is not a table; write [report]")
        return {}
    hint = make_hints(NOTATION_KEYS)
    for key, value in given.items():
        if key not in NOTATION_KEYS:
            wrong.add(("report", key), f"report: {cut(key, 60)}", f"unknown key; {hint(key)}")
        elif key == "decimal" and value not in DECIMAL_MARKS:
            what = f"unknown {short(value)}; {suggest(value, DECIMAL_MARKS)}"
            wrong.add(("report", key), "report: decimal", what)
        elif key == "currency" and not _is_currency(value):
            what = f"{short(value)} is not a text of up to {LONGEST_CURRENCY} letters, such as EUR"
            wrong.add(("report", key), "report: currency", what)
    return {key: value for key, value in given.items() if isinstance(value, str)}


def _is_currency(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= LONGEST_CURRENCY
