"""Files of tables that are open: hashed on the way, refused in a sentence, held to limits."""

from __future__ import annotations

import hashlib
import io
import os
import weakref
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, BinaryIO

from allotment.data.columns import Column
from allotment.errors import InputError, Mistake
from allotment.files import MOST_UNPACKING

MOST_COLUMNS = 50_000
LARGE = 2**26
"""bytes: a table that unpacks to less may be packed as tightly as it likes"""
BUFFER = 2**16
"""bytes of a file that are read at a time"""
AT_ONCE = 2**20
"""bytes that are read at a time where nobody looks at them"""

Read = Callable[[Collection[str], Collection[str]], dict[str, Column]]
"""reads the columns that are wanted; the second are to stay as they are written"""


class OpenFile:
    """A file that is opened once, gone through as often as is needed, and hashed on the way.

    Whatever takes its name meanwhile, all that is read comes from the same file.
    """

    def __init__(self, path: Path):
        self.path = path
        self._raw = _Hashed(path)
        self._stream = io.BufferedReader(self._raw, BUFFER)
        weakref.finalize(self, self._stream.close)

    def begin(self) -> BinaryIO:
        """All of it, from the first byte on."""
        self._stream.seek(0)
        return self._stream

    @property
    def position(self) -> int:
        """How far it is read."""
        return self._stream.tell()

    @property
    def size(self) -> int:
        return os.fstat(self._raw.fileno()).st_size

    def digest(self) -> str:
        """Its SHA-256; what was not read yet is read now."""
        try:
            self._stream.seek(self._raw.reached)
            while self._stream.read(AT_ONCE):
                pass
        except OSError as error:
            remedy = "check the disk, then run the same command again"
            raise refuse(self.path, f"can't be read ({error.strerror}); {remedy}") from None
        return self._raw.hash.hexdigest()


class _Hashed(io.FileIO):
    """A file whose bytes are hashed when they are read for the first time."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.hash, self.reached = hashlib.sha256(), 0

    def readinto(self, buffer: Any) -> int:
        at = self.tell()
        count = super().readinto(buffer) or 0
        if at <= self.reached:
            self.hash.update(memoryview(buffer)[self.reached - at : count])
            self.reached = max(self.reached, at + count)
        return count


def refuse(path: Path, what: str, line: int | None = None) -> InputError:
    """What is wrong with a file, to be raised."""
    return InputError([Mistake(repr(str(path)), what, line)])


def check_width(path: Path, count: int) -> None:
    """Raise InputError for more columns than any table of measurements has."""
    if count > MOST_COLUMNS:
        what = (
            f"has {count:,} columns, the limit is {MOST_COLUMNS:,}; leave some out, or put them"
            " into fewer"
        )
        raise refuse(path, what)


def check_steepness(path: Path, packed: int, unpacked: int, remedy: str) -> None:
    """Raise InputError for a small file that would fill the memory, as no table of measurements
    does."""
    if unpacked > max(LARGE, MOST_UNPACKING * packed):
        size = f"{unpacked / 10**6:,.0f} MB or more from {packed / 10**6:,.1f} MB"
        raise refuse(
            path, f"unpacks to {size}, the limit is {MOST_UNPACKING} times its size; {remedy}"
        )
