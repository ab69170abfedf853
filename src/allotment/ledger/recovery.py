"""What puts a harmed store right: the last sound copy takes its place, and nothing is thrown
away."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import NamedTuple

from allotment.errors import InputError, Mistake
from allotment.files import beside, plainly
from allotment.ledger import journal, lock
from allotment.ledger.copies import FOLDER, Copy, find_newer, list_copies
from allotment.ledger.disk import check_local
from allotment.ledger.journal import Position
from allotment.ledger.schema import STORE_FILE, connect, find_version, list_row_tables
from allotment.machine import sync_file, sync_folder

SQLITE_COMPANIONS = ("-wal", "-shm")
"""what SQLite keeps beside a file"""


class Restored(NamedTuple):
    """What became of it."""

    copy: Path
    aside: Path | None
    """where the harmed store is now; None if there was none"""
    lost: int | None
    """entries of the harmed one that the copy does not have; None if it can't be told"""


def restore(folder: Path) -> Restored:
    """Put the newest sound copy in the place of a store that is harmed, gone or older than it."""
    check_local(folder)
    with plainly(folder / FOLDER):
        known = list_copies(folder)
    if not known:
        what = (
            "no copy of its store is there; unpack an archive of `allot pack` instead: allot unpack"
            " FILE.zip FOLDER"
        )
        raise InputError([Mistake(repr(str(folder)), what)])
    held = lock.take(folder)
    try:
        now = _examine(folder / STORE_FILE)
        if now.sound and find_newer(known, now.position) is None:
            what = "is sound and has all that its copies have; there is nothing to restore"
            raise InputError([Mistake(repr(str(folder / STORE_FILE)), what)])
        chosen = _choose(known)
        with plainly(folder):
            for harmed in known[known.index(chosen) + 1 :]:
                os.rename(harmed.path, f"{harmed.path}.harmed")
            aside = _put_aside(folder)
            _put_in_place(chosen.path, folder / STORE_FILE)
    finally:
        held.release()
    lost = max(0, now.position.number - chosen.number) if now.position.number else None
    return Restored(chosen.path, aside, 0 if now.sound else lost)


class _Examined(NamedTuple):
    sound: bool
    position: Position
    """as far as it can be told"""


def _examine(path: Path) -> _Examined:
    """Whether each row of a store, or of a copy of one, is as it was written.

    What is not is looked at once more: a disk may fail to read what is there.
    """
    first = _examine_once(path)
    return first if first.sound else _examine_once(path)


def _examine_once(path: Path) -> _Examined:
    try:
        connection = connect(path, write=False)
    except InputError:
        return _Examined(False, Position(0, ""))
    try:
        position = journal.find_position(connection)
        pages = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        tables = list_row_tables(find_version(connection))
        return _Examined(pages and not journal.find_damage(connection, tables), position)
    except (sqlite3.Error, UnicodeDecodeError):
        return _Examined(False, Position(0, ""))
    finally:
        connection.close()


def _choose(known: list[Copy]) -> Copy:
    for copy in reversed(known):
        if _examine(copy.path).sound:
            return copy
    what = "is harmed as well, and so are all copies; unpack an archive of `allot pack` instead"
    raise InputError([Mistake(repr(str(known[-1].path)), what)])


def _put_aside(folder: Path) -> Path | None:
    """Give the store and what belongs to it another name. Whoever is stopped here can begin
    again."""
    path, number = folder / STORE_FILE, 1
    while (aside := folder / f"harmed-{number}.sqlite").exists():
        number += 1
    # the file last: without what is beside it, it is an older store
    for end in (*SQLITE_COMPANIONS, ""):
        part = Path(f"{path}{end}")
        if part.exists():
            os.rename(part, f"{aside}{end}")
    return aside if aside.exists() else None


def _put_in_place(copy: Path, path: Path) -> None:
    with beside(path) as half:
        shutil.copyfile(copy, half)
        connection = sqlite3.connect(half)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        with open(half, "rb+") as file:
            sync_file(file.fileno())
        os.rename(half, path)
        sync_folder(path.parent)
