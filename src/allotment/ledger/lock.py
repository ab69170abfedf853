"""One writer at a time: a lock that says who holds it, and that ends with the process that took
it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from allotment.errors import InputError, Mistake, visible
from allotment.files import plainly

LOCK_FILE = "campaign.lock"
"""in a campaign's folder"""
LARGEST_LOCK = 10_000
"""bytes of what a lock says of its holder"""
LONGEST_WORD = 200
"""letters of what a lock says of its holder"""
MOST_PROCESSES = 2**31
FIELDS = {"pid": int, "host": str, "command": str, "since": str}


class Busy(InputError):
    """Somebody else writes just now."""


@dataclass(frozen=True)
class Holder:
    """Who writes: which process, where, doing what, since when."""

    pid: int
    host: str
    command: str
    since: str

    def __str__(self) -> str:
        host, command, since = (
            visible(_cut(text)) for text in (self.host, self.command, self.since)
        )
        return f"process {self.pid} on {host} ({command}), since {since}"

    @property
    def here(self) -> bool:
        return self.host == socket.gethostname()


class Lock:
    """Held from `take` until `release`, or until the process ends, however it does."""

    def __init__(self, handle: int):
        self._handle: int | None = handle

    def release(self) -> None:
        if self._handle is None:
            return
        import fcntl

        handle, self._handle = self._handle, None
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)  # nobody holds it
        with contextlib.suppress(OSError):  # nothing was written that anybody needs
            # also where a forked process has the file open still
            fcntl.flock(handle, fcntl.LOCK_UN)
        with contextlib.suppress(OSError):
            os.close(handle)


def take(folder: Path, why: str = "") -> Lock:
    """Be the one who writes; raises Held with the name of whoever does already."""
    path = folder / LOCK_FILE
    try:
        import fcntl
    except ImportError:  # Windows
        what = (
            "cannot be locked on this system; work on Linux or macOS, or in the Linux part of"
            " Windows (WSL)"
        )
        raise InputError([Mistake(repr(str(path)), what)]) from None
    with plainly(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        with plainly(path):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except InputError as error:
        os.close(handle)
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in (
            errno.EWOULDBLOCK,
            errno.EACCES,
        ):
            raise Busy([Mistake(repr(str(folder)), _say_who(read_holder(path)))]) from None
        raise
    with contextlib.suppress(OSError):  # on a full disk the lock is still a lock
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(asdict(_describe(why))).encode()[:LARGEST_LOCK])
    return Lock(handle)


def _describe(why: str) -> Holder:
    command = why or " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(os.getpid(), socket.gethostname(), command[:LONGEST_WORD], since)


def read_holder(path: Path) -> Holder | None:
    """Who writes, as the file says, which may have come from elsewhere: be it a link, a pipe, or no
    process's number."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            said = json.loads(file.read(LARGEST_LOCK) or b"")
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or {key: type(value) for key, value in said.items()} != FIELDS:
        return None
    return Holder(**said) if 0 < said["pid"] < MOST_PROCESSES else None


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WORD else f"{text[: LONGEST_WORD - 3]}..."


def _say_who(holder: Holder | None) -> str:
    if holder is None:  # it took the lock a moment ago
        return (
            "another process writes to this campaign; wait until it ends, then run the same command"
            " again"
        )
    end = f" or end it with `kill {holder.pid}`" if holder.here else ""
    return (
        f"{holder} writes to this campaign; wait until it ends{end}, then run the same command"
        " again"
    )
