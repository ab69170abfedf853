"""Cells that no spreadsheet computes, and the tables that are made of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

_BETWEEN = r";,|\t\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""at which some spreadsheet, in some country, begins a new cell or line, quotes or not"""
_FORMULA = re.compile(
    rf"(?:\A|(?<![\s\"{_BETWEEN}])(?=[\s\"{_BETWEEN}]))([\s\"{_BETWEEN}]*+)('*+)(?=[=+\-@＝＋－＠])"
)
"""blanks, quotes and any apostrophes before what it would compute instead of showing it"""
_BLANK = re.compile(r"'*+[\t\r\n]")
"""at the beginning of a cell, since some leave it out"""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""which it shows as it is: a minus before digits computes nothing. A plus would be lost, so it is
not one of these"""


def encode_table(rows: Iterable[Iterable[object]], delimiter: str = ",") -> bytes:
    """Rows as CSV. Cells that would be formulas get an apostrophe, which `unprotect` takes off."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    for row in rows:
        writer.writerow([protect(clean(cell)) for cell in row])
    # Excel takes UTF-8 for what it is only by this mark, which is in the way of simple programs.
    encoding = "utf-8" if text.getvalue().isascii() else "utf-8-sig"
    return text.getvalue().encode(encoding)


def clean(value: object) -> str:
    """Any value as text that a file can hold."""
    if value is None:
        return ""
    text = str(value)
    if text.isascii() and "\0" not in text:  # nearly all, and a table has millions
        return text
    return text.replace("\0", "").encode(errors="replace").decode()


def protect(cell: str) -> str:
    """The cell such that no spreadsheet takes it for a formula, nor a part of it; plain numbers
    stay numbers.

    A program that separates cells by semicolons finds some within cells that hold them, so what
    comes after one gets an apostrophe too.

    >>> protect("=1+1"), protect("cat"), protect("-1.5"), protect("-1+1"), protect("x;=1+1")
    ("'=1+1", 'cat', '-1.5', "'-1+1", "x;'=1+1")
    """
    if _NUMBER.fullmatch(cell):
        return cell
    cell = _FORMULA.sub(
        lambda found: f"{found[1]}'{found[2]}" if _begins(found) else found[0], cell
    )
    return f"'{cell}" if _BLANK.match(cell) else cell


def unprotect(cell: str) -> str:
    """The cell as it was before `protect`; an apostrophe that somebody put before a number goes,
    too.

    >>> unprotect("'=1+1"), unprotect("'tis"), unprotect("'-1"), unprotect("x;'=1+1")
    ('=1+1', "'tis", '-1', 'x;=1+1')
    """
    if cell.startswith("'") and _BLANK.match(cell):
        cell = cell[1:]
    return _FORMULA.sub(
        lambda found: f"{found[1]}{found[2][1:]}" if _begins(found) else found[0], cell
    )


def _begins(found: re.Match[str]) -> bool:
    """Whether a cell may begin here."""
    return found.start() == 0 or re.search(f"[{_BETWEEN}]", found[1]) is not None
