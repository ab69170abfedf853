"""Trees of files that jobs read, known by a hash of all that is in them: a machine that has a tree
once never gets it again.

Whoever begins jobs says which values of their context are paths. On a machine that does not see
these paths, the files are put into a folder that is named after their hash, and the context that
jobs get there names that folder.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from allotment.errors import InputError, Mistake
from allotment.files import plainly
from allotment.job import canonical

PACK = 64 * 2**20
"""bytes that travel at a time: a machine has room for a few such packs beside its jobs"""
CACHE_VARIABLE = "ALLOT_CACHE"
PLACED = "placed"
"""the folder within the cache in which trees lie, each below its hash"""


@dataclass(frozen=True)
class Tree:
    """Files below a folder of this machine; `value` is what the context says of them."""

    root: str
    value: str
    """the root itself, or a file in it"""
    parts: tuple[str, ...] | None = None
    """files and folders below the root that belong to it; all if None"""

    @cached_property
    def listing(self) -> Listing:
        """What is in it now, with every file read once."""
        with plainly(Path(self.root)):
            files = [(path, *_digest(Path(self.root) / path)) for path in sorted(self._list())]
        return Listing(os.path.relpath(self.value, self.root), tuple(files))

    def _list(self) -> set[str]:
        root = Path(self.root)
        begins = [root] if self.parts is None else [root / part for part in self.parts]
        found = set()
        for begin in begins:
            found |= {path.relative_to(root).as_posix() for path in _walk(begin, set())}
        return found

    def read(self, start: int, size: int = PACK) -> bytes:
        """A pack: so many bytes of all files in a row, from there on."""
        found, at = [], 0
        for path, length, _ in self.listing.files:
            begin, end = max(start - at, 0), min(start + size - at, length)
            if begin < end:
                with (Path(self.root) / path).open("rb") as file:
                    file.seek(begin)
                    found.append(file.read(end - begin))
            at += length
        return b"".join(found)


def take_all(path: str | Path) -> Tree:
    """A folder with all that is in it, or a single file."""
    whole = os.path.abspath(path)
    if os.path.isdir(whole):
        return Tree(whole, whole)
    return Tree(os.path.dirname(whole), whole, (os.path.basename(whole),))


@dataclass(frozen=True)
class Listing:
    """What is in a tree: enough to know it again, and to put it together elsewhere."""

    value: str
    """relative to its root"""
    files: tuple[tuple[str, int, str], ...]
    """path, bytes and SHA-256 of each, in order"""

    @classmethod
    def from_plain(cls, plain: Any) -> Listing:
        value, files = plain
        for path, _, _ in files:
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise InputError([Mistake(path, "leads out of its folder")])
        return cls(value, tuple((path, size, digest) for path, size, digest in files))

    def to_plain(self) -> list[Any]:
        return [self.value, [list(each) for each in self.files]]

    @property
    def size(self) -> int:
        return sum(size for _, size, _ in self.files)

    @property
    def packs(self) -> range:
        """Where each pack begins."""
        return range(0, self.size, PACK)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(canonical(self.to_plain()).encode()).hexdigest()

    def find(self, folder: Path) -> str | None:
        """What the context is to say on a machine that has it; None where it has to be put
        together first."""
        place = self._name(folder)
        return os.path.normpath(place / self.value) if place.is_dir() else None

    def put(self, folder: Path, packs: Iterable[bytes]) -> str:
        """Put it together, unless another process was faster; what the context is to say."""
        place = self._name(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place.with_suffix(".lock")):
            if not place.is_dir():
                half = place.with_suffix(".half")
                shutil.rmtree(half, ignore_errors=True)
                half.mkdir()
                self._write(half, packs)
                half.rename(place)
        return os.path.normpath(place / self.value)

    def _name(self, folder: Path) -> Path:
        return folder / PLACED / self.digest[:32]

    def _write(self, half: Path, packs: Iterable[bytes]) -> None:
        """All files from their bytes in a row; raises InputError where a file is not what was
        listed, since it changed meanwhile."""
        source = _Stream(packs)
        for path, size, digest in self.files:
            file = half / path
            file.parent.mkdir(parents=True, exist_ok=True)
            seen = hashlib.sha256()
            with file.open("wb") as written:
                for part in source.take(size):
                    written.write(part)
                    seen.update(part)
            if seen.hexdigest() != digest:
                what = "has changed since this began; type the command again"
                raise InputError([Mistake(path, what)])


class _Stream:
    """Bytes from packs, in portions of another size."""

    def __init__(self, packs: Iterable[bytes]):
        self._packs, self._rest = iter(packs), memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        while size:
            if not self._rest:
                self._rest = memoryview(next(self._packs, b""))
                if not self._rest:
                    return
            part, self._rest = self._rest[:size], self._rest[size:]
            size -= len(part)
            yield part


def find_cache() -> Path:
    """Where this machine keeps trees."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "allotment"
    return Path(os.environ.get(CACHE_VARIABLE) or usual)


def relocate(common: str, values: Mapping[str, str]) -> str:
    """What all jobs share, with other paths: {"data": "/cache/..."}."""
    return _relocate(common, tuple(sorted(values.items()))) if values else common


@functools.lru_cache(maxsize=1)  # labels are in it, and a worker does many jobs
def _relocate(common: str, values: Sequence[tuple[str, str]]) -> str:
    plain = json.loads(common)
    for key, path in values:
        *outer, last = key.split(".")
        inner = plain["context"]
        for each in outer:
            inner = inner[each]
        inner[last] = path
    return canonical(plain)


def place_here(trees: Mapping[str, Tree], folder: Path) -> dict[str, str]:
    """Trees of this machine in a folder that others see, too; what the context is to say."""
    found = {}
    for key, tree in trees.items():
        listing = tree.listing
        packs = map(tree.read, listing.packs)
        found[key] = listing.find(folder) or listing.put(folder, packs)
    return found


def _walk(begin: Path, seen: set[str]) -> Iterator[Path]:
    """Every file below a path, those that links lead to as well, but no folder twice."""
    if begin.is_file():
        yield begin
    if not begin.is_dir() or (real := os.path.realpath(begin)) in seen:
        return
    seen.add(real)
    for path in sorted(begin.iterdir()):
        yield from _walk(path, seen)


def _digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process of this machine at a time."""
    import fcntl  # which Windows does not have

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
