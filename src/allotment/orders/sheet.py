"""An order as a sheet to be filled in: CSV for people and spreadsheets, JSONL for programs."""

from __future__ import annotations

import contextlib
import csv
import glob
import io
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from allotment.data.dataset import Target
from allotment.data.pixels import shown
from allotment.errors import InputError, Mistake
from allotment.machine import is_alive, sync_file, sync_folder
from allotment.orders.order import Order

COLUMNS = ("order", "task", "instance")
"""before what is shown"""
ANSWER, LABEL = "answer", "label"
"""after it: what may be filled in, and where"""
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
"""of sheets"""
LONGEST_ANSWER = 300
"""letters"""
HALF = ".half-"
"""how names of files begin while they are being written; the number of the process that does comes
next"""
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

ANSWERS = {
    "classification": "one of: {classes}",
    "multilabel": "any of, with | between: {classes}; | alone for none",
    "regression": "a number, with a decimal point",
    "segmentation": "a PNG of class numbers, 255 where it does not count: {numbers}",
    "depth": "a 16-bit grey PNG in millimetres, 0 where there is none",
    "normals": (
        "an RGB PNG: 255 is +1 and 0 is -1; red to the right, green up, blue to the viewer; black"
        " for none"
    ),
    "edges": "a grey PNG, 0 for no edge up to white for a strong one",
    "keypoints": "[[x, y], ...] in pixels from the upper left; [] for none",
}
"""what a label is, in words for those who make it"""

Show = Mapping[str, Mapping[str, object]]
"""columns that help to find and know an instance, such as its file: by name, and then by
instance"""


def write_csv(
    order: Order,
    path: str | os.PathLike[str],
    *,
    number: int | str = 1,
    show: Show | None = None,
    targets: Mapping[str, Target] | None = None,
) -> Path:
    """The order as CSV with an empty column for labels. Cells that would be formulas get an
    apostrophe, which `unprotect` takes off. With `targets` a column says what may be filled in.
    """
    rows = list(_rows(order, number, show or {}, targets))
    text = io.StringIO()
    between = "\t" if Path(path).suffix.lower() == ".tsv" else ","
    writer = csv.writer(text, delimiter=between, lineterminator="\r\n")
    for row in rows:
        writer.writerow([protect(_cell(each)) for each in row])
    # Excel takes UTF-8 for what it is only by this mark, which is in the way of simple programs.
    encoding = "utf-8" if text.getvalue().isascii() else "utf-8-sig"
    return place_file(Path(path), text.getvalue().encode(encoding))


def write_jsonl(
    order: Order,
    path: str | os.PathLike[str],
    *,
    number: int | str = 1,
    show: Show | None = None,
    targets: Mapping[str, Target] | None = None,
) -> Path:
    """The order as JSON objects, one in each line, with null for the label."""
    names, *rows = _rows(order, number, show or {}, targets)
    objects = (dict(zip(names, [*row[:-1], None], strict=True)) for row in rows)
    try:
        lines = [
            json.dumps(each, ensure_ascii=False, allow_nan=False, default=str) + "\n"
            for each in objects
        ]
    except ValueError:
        raise InputError(
            [Mistake("show", "holds a number that is not finite; leave it out")]
        ) from None
    return place_file(Path(path), "".join(lines).encode(errors="replace"))


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


def explain_answer(target: Target) -> str:
    """What a label of the task is, in one line for those who make it."""
    classes = ", ".join(target.classes)
    numbers = ", ".join(f"{number} {name}" for number, name in enumerate(target.classes))
    text = ANSWERS[target.kind].format(classes=classes, numbers=numbers)
    return text if len(text) <= LONGEST_ANSWER else f"{text[: LONGEST_ANSWER - 3]}..."


def _rows(
    order: Order, number: int | str, show: Show, targets: Mapping[str, Target] | None
) -> Iterator[list[Any]]:
    """The names of the columns, and then their cells."""
    taken = (*COLUMNS, ANSWER, LABEL)
    if wrong := [name for name in show if name in taken or not str(name).strip()]:
        what = (
            "is a name of the sheet's own; call it something else"
            if str(wrong[0]).strip()
            else "needs a name"
        )
        raise InputError([Mistake(f"show {wrong[0]!r}", what)])
    answers = {task: explain_answer(target) for task, target in (targets or {}).items()}
    extra = [] if targets is None else [ANSWER]
    yield [*COLUMNS, *show, *extra, LABEL]
    for task, instance in order.items:
        help_ = [answers.get(task, "")] if extra else []
        yield [
            number,
            task,
            instance,
            *(cells.get(instance, "") for cells in show.values()),
            *help_,
            "",
        ]


def _cell(value: object) -> str:
    """Any value as text that a file can hold."""
    return "" if value is None else str(value).replace("\0", "").encode(errors="replace").decode()


def place_file(path: Path, content: bytes, *, settle: bool = True) -> Path:
    """Put the file in its place whole or not at all; one that may hold labels by now is never
    overwritten.

    For many files in one folder it can be settled once, after all of them.
    """
    beside = path.with_name(f"{HALF}{os.getpid()}-{path.name[:100]}-{secrets.token_hex(4)}")
    try:
        if settle:
            _clear_halves(path)
        if path.exists():
            if (
                path.is_file()
                and path.stat().st_size == len(content)
                and path.read_bytes() == content
            ):
                return path
            what = (
                "is there already and may hold labels by now; choose another name, or move it away"
            )
            raise InputError([Mistake(shown(str(path)), what)])
        try:
            _fill(beside, content)
            _place(beside, path)
            if settle:
                sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):  # the next who writes it removes it
                beside.unlink(missing_ok=True)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = (
            f"can't be written ({reason}); see that its folder is there, may be written to and has"
            " space"
        )
        raise InputError([Mistake(shown(str(path)), what)]) from None
    return path


def check_name(path: Path) -> None:
    """Raises InputError for a name by which nobody could tell what the sheet is."""
    if path.suffix.lower() not in SUFFIXES:
        what = (
            f"a sheet is text: give it a name that ends in {', '.join(SUFFIXES[:-1])} or"
            f" {SUFFIXES[-1]}"
        )
        raise InputError([Mistake(shown(str(path)), what)])


def check_free(path: Path) -> None:
    """Raises InputError where a new file could not be put, before anything is done that needs
    it."""
    try:
        taken = path.exists() or path.is_symlink()
        reason = "" if path.parent.is_dir() else "there is no such folder"
        if not reason and not os.access(path.parent, os.W_OK):
            reason = "its folder may not be written to"
    except (OSError, ValueError) as error:
        taken, reason = False, str(getattr(error, "strerror", None) or error)
    if taken:
        raise InputError(
            [Mistake(shown(str(path)), "is there already; choose another name, or move it away")]
        )
    if reason:
        raise InputError(
            [Mistake(shown(str(path)), f"can't be written ({reason}); choose another place")]
        )


def _clear_halves(path: Path) -> None:
    """Remove what killed processes left half-written of this file."""
    for half in list(path.parent.glob(f"{HALF}[0-9]*-{glob.escape(path.name[:100])}-*")):
        process = half.name.removeprefix(HALF).partition("-")[0]
        if process.isdecimal() and not is_alive(int(process)):
            with contextlib.suppress(OSError):
                half.unlink()


def _fill(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        sync_file(file.fileno())


def _place(beside: Path, path: Path) -> None:
    try:
        # unlike a rename it does not replace what somebody has put there meanwhile
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        os.replace(beside, path)
