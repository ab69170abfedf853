"""The one place that writes files: whole or not at all, whenever the process or the power ends."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from allotment.errors import InputError, Mistake, cut
from allotment.machine import is_alive, sync_file, sync_folder

HALF = ".half-"
"""how names of files begin while they are being written; the number of the process that does comes
next"""
MOST_UNPACKING = 200
"""times that a large file may be larger when unpacked: what is steeper is made to fill memory"""
KEEP = "everything that was finished is kept"
LONGEST_PATH = 200
"""letters of a path in a message"""
_SIGNED = re.compile(re.escape(HALF) + "([0-9]{1,9})-")


# Writing


def place_file(path: Path, content: bytes, *, settle: bool = True) -> Path:
    """Put a new file in its place; one that may hold labels by now is never overwritten.

    For many files in one folder it can be settled once, after all of them.
    """
    try:
        if settle:
            clear_halves_of(path)
        if path.exists():
            if _holds(path, content):
                return path
            what = (
                "is there already and may hold labels by now; choose another name, or move it away"
            )
            raise InputError([Mistake(_show(path), what)])
        with beside(path) as half:
            fill(half, content)
            _place(half, path)
            if settle:
                sync_folder(path.parent)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = (
            f"can't be written ({reason}); see that its folder is there, may be written to and has"
            " space"
        )
        raise InputError([Mistake(_show(path), what)]) from None
    return path


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in its place, and in that of an earlier one."""
    with plainly(path), beside(path) as half:
        fill(half, content)
        os.replace(half, path)
        sync_folder(path.parent)


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A name beside a file, to write it under until it is whole; what is left there in the end is
    removed."""
    half = path.with_name(f"{sign(path.name)}-{secrets.token_hex(4)}")
    try:
        yield half
    finally:
        with contextlib.suppress(OSError):  # the next who writes it removes it
            half.unlink(missing_ok=True)


def fill(path: Path, content: bytes) -> None:
    """Write a new file, and return once it is on the disk."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        sync_file(file.fileno())


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
        what = "is there already; choose another name, or move it away"
        raise InputError([Mistake(_show(path), what)])
    if reason:
        raise InputError(
            [Mistake(_show(path), f"can't be written ({reason}); choose another place")]
        )


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content."""
    same = path.is_file() and path.stat().st_size == len(content)
    return same and path.read_bytes() == content


def _place(half: Path, path: Path) -> None:
    try:
        # unlike a rename it does not replace what somebody has put there meanwhile
        os.link(half, path)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        os.replace(half, path)


def _show(path: Path) -> str:
    return cut(path, LONGEST_PATH)


# What killed processes leave


def sign(name: str = "") -> str:
    """How the name of a file begins while this process writes it, and for which name."""
    return f"{HALF}{os.getpid()}-{name[:100]}"


def clear_halves_of(path: Path) -> None:
    """Remove what killed processes left half-written of this file or folder."""
    remove_halves(path.parent.glob(f"{HALF}[0-9]*-{glob.escape(path.name[:100])}-*"))


def remove_halves(halves: Iterable[Path]) -> None:
    """Remove those of them that nobody writes; what can't be removed now is met by the next who
    writes."""
    for half in list(halves):
        if _is_being_written(half):
            continue
        with contextlib.suppress(OSError):
            if half.is_dir() and not half.is_symlink():
                shutil.rmtree(half, ignore_errors=True)
            else:
                half.unlink()


def _is_being_written(half: Path) -> bool:
    """Whether the process that signed it lives; this one has not begun."""
    signed = _SIGNED.match(half.name)
    if signed is None or int(signed[1]) == os.getpid():
        return False
    return is_alive(int(signed[1]))


# What the system says


@contextlib.contextmanager
def plainly(path: Path) -> Iterator[None]:
    """What the system says about a file, as a mistake with its remedy."""
    try:
        yield
    except OSError as error:
        raise InputError([Mistake(repr(str(path)), explain(error))]) from error


def explain(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"the disk is full; make room and run the same command again: {KEEP}"
        case errno.EFBIG:
            return (
                "a file grew over this process's limit (ulimit -f); raise it and run the same"
                f" command again: {KEEP}"
            )
        case errno.EROFS:
            return "is on a read-only disk; copy the campaign to a disk that can be written"
        case errno.ENOENT | errno.ENOTDIR:
            return "there is no such folder; check the path"
        case errno.EACCES | errno.EPERM:
            return (
                "may not be written by this user; change its permissions, or copy the campaign to a"
                " folder of yours"
            )
    return f"{error.strerror or error}; check the disk, then run the same command again: {KEEP}"
