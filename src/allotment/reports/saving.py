"""Reports as files: each takes the place of an earlier one, but of nothing else."""

from __future__ import annotations

from pathlib import Path

from allotment.errors import InputError, Mistake
from allotment.files import plainly, replace_file

BEGINNING = 2000
"""bytes of a file in which the mark stands by which a report is known"""


def save_report(text: str, path: Path, mark: str) -> Path:
    """Write a report that holds this mark near its beginning."""
    with plainly(path):
        if path.is_symlink():
            what = "is a link, which is not followed; name another file with -o, or remove the link"
        elif path.exists() and not path.is_file():
            what = "is a folder, a pipe or a device; name another file with -o"
        elif path.is_file() and not _is_report(path, mark):
            what = "is there already and is no report; name another file with -o, or move it away"
        else:
            what = ""
    if what:
        raise InputError([Mistake(str(path), what)])
    replace_file(path, text.encode())
    return path


def _is_report(path: Path, mark: str) -> bool:
    with path.open("rb") as file:
        return mark.encode() in file.read(BEGINNING)
