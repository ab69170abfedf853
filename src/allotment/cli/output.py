"""What commands print for machines: JSON and CSV."""

from __future__ import annotations

import csv
import functools
import json
import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import click

from allotment.cells import protect
from allotment.cli.inputs import Command

READING, TIMING = "reading the campaign", "timing a few steps"
"""what is said while nothing trains yet"""


def formats(command: Command) -> Command:
    """Adds --json and --csv; the command gets `form`: json, csv or table."""

    @click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
    @click.option("--csv", "as_csv", is_flag=True, help="CSV, for spreadsheets.")
    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, as_csv: bool, **kwargs: Any) -> Any:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv exclude each other.")
        forms = {as_json: "json", as_csv: "csv"}
        return command(*args, form=forms.get(True, "table"), **kwargs)

    return wrapped  # type: ignore[return-value]


def print_json(plain: Mapping[str, Any], indent: int | None = 2) -> None:
    """One JSON object."""
    click.echo(json.dumps(_clean(plain), indent=indent, allow_nan=False))


def _clean(value: Any) -> Any:
    """Only what JSON has: exact money as text, null for a number that is not finite."""
    from allotment.problem import show_exact

    if isinstance(value, Mapping):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if all(type(each) is int for each in value):  # a frontier has a million of them
            return value
        return [_clean(each) for each in value]
    if isinstance(value, Fraction | Decimal):
        return show_exact(Fraction(value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_csv(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """A line of heads and a line for each row."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(protect, heads))
    writer.writerows(
        [protect(each) if isinstance(each, str) else _plain(each) for each in row] for row in rows
    )


def _plain(value: Any) -> Any:
    """A number as a spreadsheet reads it."""
    if isinstance(value, Fraction):
        value = Decimal(value.numerator) / value.denominator
    return f"{value:f}" if isinstance(value, Decimal) else value
