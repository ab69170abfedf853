"""What was trained, in one small file for each setting: nothing is trained twice, and whoever has
the files needs neither the data nor the hours."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KEPT_FOLDER = "kept"
"""of a corpus, with a file for each setting"""
KEPT_DIGITS = 5
"""of a score that are kept: the noise of a training is in the third"""


class Kept:
    """Values by campaign and name. A file is JSON lines in gzip; each `put` adds a piece to it, so
    that a run which is cut off loses one piece at most."""

    def __init__(self, setting: str, folder: Path):
        """`folder` is that of the corpus."""
        self.path = folder / KEPT_FOLDER / f"{setting}.jsonl.gz"
        self.found: dict[tuple[int, str], Any] = {}
        self._broken_at: int | None = None
        for campaign, name, value in self._read():
            self._take(campaign, name, value)

    def _read(self) -> Iterator[list[Any]]:
        data = self.path.read_bytes() if self.path.exists() else b""
        while data:
            piece = zlib.decompressobj(wbits=31)
            try:
                text = piece.decompress(data)
            except zlib.error:
                text = b""
            if not piece.eof:  # cut off: what is whole before it counts
                self._broken_at = self.path.stat().st_size - len(data)
                return
            for line in text.splitlines():
                yield json.loads(line)
            data = piece.unused_data

    def _take(self, campaign: int, name: str, value: Any) -> None:
        before = self.found.get((campaign, name))
        if isinstance(before, dict) and isinstance(value, dict):
            value = before | value
        self.found[campaign, name] = value

    def get(self, campaign: int, name: str) -> Any:
        """A value, or None."""
        return self.found.get((campaign, name))

    def put(self, campaign: int, name: str, value: Any) -> None:
        """Keep a value; a table is joined with the one that is there."""
        plain = shorten(value)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps([campaign, name, plain], separators=(",", ":")) + "\n"
        with self.path.open("ab") as file:
            if self._broken_at is not None:
                file.truncate(self._broken_at)
                self._broken_at = None
            file.write(gzip.compress(line.encode(), mtime=0))
        self._take(campaign, name, plain)


def shorten(value: Any) -> Any:
    """Plain values with as many digits as count.

    >>> shorten({"a": [0.123456789, 3]})
    {'a': [0.12346, 3]}
    """
    if isinstance(value, float):
        return float(f"{value:.{KEPT_DIGITS}g}")
    if isinstance(value, dict):
        return {key: shorten(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [shorten(each) for each in value]
    return value
