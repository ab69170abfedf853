"""Copies of a store from when it was last seen to be sound, kept beside it: for the day on which it
is harmed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from allotment.files import beside
from allotment.ledger import journal
from allotment.ledger.disk import clear_halves
from allotment.ledger.journal import Position
from allotment.machine import sync_file, sync_folder

FOLDER = "copies"
MOST_COPIES = 3
"""copies of a store that are kept"""
ROOM = 10
"""times the size of a copy that must be free for it"""
_COPY_NAME = re.compile(r"([0-9]{1,15})\.sqlite", re.ASCII)


class Copy(NamedTuple):
    """A copy, by how many lines its journal has."""

    number: int
    path: Path


def list_copies(folder: Path) -> list[Copy]:
    """Those of a campaign, the newest last; raises OSError where the disk does not tell."""
    try:
        names = os.listdir(folder / FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = [(int(match[1]), name) for name in names if (match := _COPY_NAME.fullmatch(name))]
    return [Copy(number, folder / FOLDER / name) for number, name in sorted(found)]


def has_copy(folder: Path) -> bool:
    """Whether there is one, as far as the disk tells: for those who say what could be done."""
    try:
        return bool(list_copies(folder))
    except OSError:
        return False


def keep_copy(connection: sqlite3.Connection, folder: Path) -> None:
    """Copy what is committed, unless that is done. A disk that has no room for it does not undo
    what is."""
    with contextlib.suppress(OSError, sqlite3.Error):
        position = journal.find_position(connection)
        # those that are ahead are of another history, since the store was not refused for being
        # older
        known = [copy for copy in list_copies(folder) if copy.number <= position.number]
        if not position.number or (known and find_position_of(known[-1].path) == position):
            return
        if _measure(connection) * ROOM > shutil.disk_usage(folder).free:
            return  # what is to be bought next needs it more
        (folder / FOLDER).mkdir(exist_ok=True)
        clear_halves(folder / FOLDER)
        _write(connection, folder / FOLDER / f"{position.number:06d}.sqlite")
        for old in [copy for copy in known if copy.number < position.number][: 1 - MOST_COPIES]:
            old.path.unlink()


def _measure(connection: sqlite3.Connection) -> int:
    """How many bytes a copy takes."""
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    return int(pages) * int(size)


def _write(connection: sqlite3.Connection, path: Path) -> None:
    with beside(path) as half:
        target = sqlite3.connect(half, isolation_level=None)
        try:
            target.execute("PRAGMA synchronous = OFF")  # it is synced as a whole
            connection.backup(target)
            # so that it is one file that can be read where it lies
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()
        with open(half, "rb+") as file:
            sync_file(file.fileno())
        os.replace(half, path)
        sync_folder(path.parent)


def find_position_of(path: Path, upto: int | None = None) -> Position | None:
    """How far a copy has come, or the line of this number in it; None if it cannot be read or has
    no such line."""
    sql = f"SELECT number, hash FROM {journal.TABLE} WHERE number = ?"
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
        try:
            if upto is None:
                return journal.find_position(connection)
            row = connection.execute(sql, (upto,)).fetchone()
        finally:
            connection.close()
    except (sqlite3.Error, OSError, TypeError):
        return None
    return None if row is None else Position(*row)


def find_newer(copies: Sequence[Copy], position: Position) -> Copy | None:
    """A copy that knows all that a store at this position does, and more: then the store is an
    older one."""
    for copy in reversed(copies):
        if copy.number <= position.number:
            break
        if not position.number or find_position_of(copy.path, position.number) == position:
            return copy
    return None
