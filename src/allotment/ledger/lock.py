"""One writer at a time: a lock that says who holds it, and that ends with the process that took
it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allotment.errors import InputError, Mistake, visible
from allotment.files import plainly
from allotment.meter import spell

LOCK_FILE = "campaign.lock"
"""in a campaign's folder"""
LARGEST_LOCK = 10_000
"""bytes of what a lock says of its holder"""
LONGEST_WORD = 200
"""letters of what a lock says of its holder"""
MOST_PROCESSES = 2**31
FIELDS = {"pid": int, "host": str, "command": str, "since": str}
MOST_COUNTED = 10**15
"""trainings or seconds that a lock may speak of"""
LINE_OF_TRAININGS = "{done} of {total} trainings"


class Busy(InputError):
    """Somebody else writes just now."""


@dataclass(frozen=True)
class Headway:
    """How far the trainings of whoever writes have come."""

    done: int
    total: int
    left: float | None
    """seconds that the rest will take; None while that is not known"""
    at: float
    """when that was noted, in seconds since 1970"""

    def find_left(self) -> float | None:
        """Seconds from now on."""
        if self.left is None:
            return None
        return max(0.0, self.left - max(0.0, time.time() - self.at))


@dataclass(frozen=True)
class Holder:
    """Who writes: which process, where, doing what, since when, and how far it is."""

    pid: int
    host: str
    command: str
    since: str
    headway: Headway | None = None
    """None where it does not train, or not yet"""

    def __str__(self) -> str:
        host, command, since = (
            visible(_cut(text)) for text in (self.host, self.command, self.since)
        )
        return f"process {self.pid} on {host} ({command}), since {since}"

    @property
    def here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether there is such a process here still, as one that was killed could not say."""
        if not self.here:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # somebody else's
            return True
        return True

    def write(self) -> bytes:
        """As it stands in the file of a lock."""
        said = asdict(self)
        if self.headway is None:
            del said["headway"]
        return json.dumps(said).encode()[:LARGEST_LOCK]


class Lock:
    """Held from `take` until `release`, or until the process ends, however it does."""

    def __init__(self, handle: int, holder: Holder):
        self._handle: int | None = handle
        self._holder = holder
        self._size = 0

    def note(self, headway: Headway | None) -> None:
        """Say how far it is, for those who look on."""
        if self._handle is None:
            return
        text = replace(self._holder, headway=headway).write()
        self._size = max(self._size, len(text))
        with contextlib.suppress(OSError):  # on a full disk the lock is still a lock
            # in one piece, so that nobody reads half of it
            os.pwrite(self._handle, text.ljust(self._size), 0)

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
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
    lock = Lock(handle, _describe(why))
    lock.note(None)
    return lock


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
    if not isinstance(said, dict):
        return None
    headway = _read_headway(said.pop("headway", None))
    if {key: type(value) for key, value in said.items()} != FIELDS:
        return None
    return Holder(**said, headway=headway) if 0 < said["pid"] < MOST_PROCESSES else None


def find_writer(folder: Path) -> Holder | None:
    """Who writes to a campaign just now, as far as that can be told without touching its lock."""
    holder = read_holder(folder / LOCK_FILE)
    return holder if holder is not None and holder.is_alive else None


def tell_run(run: Holder) -> str:
    """What is under way and how far it is: `allot estimate homes: 12 of 30 trainings, about 2 min
    left`."""
    headway, what = run.headway, visible(run.command)
    if headway is None:
        return f"{what} is under way"
    said = LINE_OF_TRAININGS.format(done=headway.done, total=headway.total)
    if headway.done == headway.total:
        return f"{what}: {said}, adding up"
    left = headway.find_left()
    return f"{what}: {said}" if left is None else f"{what}: {said}, {spell(left)} left"


def _read_headway(said: Any) -> Headway | None:
    if not isinstance(said, dict) or said.keys() != {"done", "total", "left", "at"}:
        return None
    done, total, left, at = (said[key] for key in ("done", "total", "left", "at"))
    if type(done) is not int or type(total) is not int or not 0 <= done <= total <= MOST_COUNTED:
        return None
    times = [at] if left is None else [left, at]
    if not all(type(each) in (int, float) and 0 <= each <= MOST_COUNTED for each in times):
        return None
    return Headway(done, total, left, at)


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
