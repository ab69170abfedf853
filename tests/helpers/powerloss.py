"""A disk whose power goes: from the trace of a command, what may be left of its files at any
moment.

What was synced is there. Of what was not, any part may be: writes whole, torn at sectors or none of
them; names as a journal keeps them, or each folder for itself. A file that has its name may still
be without its bytes.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HEAD = struct.Struct("<IIIIqq")
WROTE, CUT, SYNCED, MADE, MADE_FOLDER, RENAMED, LINKED, UNLINKED, REMOVED_FOLDER, MARKED = range(
    1, 11
)
"""words of the trace, as in tests/fixtures/shim.c"""
SECTOR = 512
MANNERS = ("synced", "all", "names", "bytes", "holes", "journal", "folders")
"""what stays of what was not synced: nothing; all; names without bytes; bytes without names; names,
with zeros for bytes; names up to a moment and sectors at random; names up to a moment in each
folder and a torn write"""


@dataclass(frozen=True)
class Event:
    """One thing that a command did to the disk; `node` is a number of the file, which names come
    and go around."""

    word: int
    node: int
    place: int
    first: bytes
    second: bytes


def read_trace(path: Path) -> list[Event]:
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        word, a, b, _, node, place = HEAD.unpack_from(data, at)
        at += HEAD.size
        found.append(Event(word, node, place, data[at : at + a], data[at + a : at + a + b]))
        at += a + b
    return found


@dataclass(eq=False)
class File:
    """Bytes that are safe, and changes that are not: (place, bytes), or (size, None) where it was
    cut."""

    safe: bytes = b""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        self.safe, self.changes = self.read("all", random.Random()), []

    def read(self, manner: str, rng: random.Random) -> bytes:
        changes = self.changes
        if manner in ("synced", "names"):
            changes = []
        elif manner == "folders":
            changes = changes[: rng.randint(0, len(changes))]
        content = bytearray(self.safe)
        for number, (place, data) in enumerate(changes):
            if data is None:
                if manner != "journal" or rng.random() < 0.5:
                    content[place:] = bytes(max(0, place - len(content)))
            elif manner == "holes":
                if place >= len(self.safe):
                    _put(content, place, bytes(len(data)))
            elif manner == "journal":
                for start in range(0, len(data), SECTOR):
                    if rng.random() < 0.5:
                        _put(content, place + start, data[start : start + SECTOR])
            elif manner == "folders" and number == len(changes) - 1:
                _put(content, place, data[: rng.randint(0, len(data) // SECTOR + 1) * SECTOR])
            else:
                _put(content, place, data)
        return bytes(content)


def _put(content: bytearray, place: int, data: bytes) -> None:
    if data:
        content.extend(bytes(max(0, place - len(content))))
        content[place : place + len(data)] = data


@dataclass(eq=False)
class Folder:
    names: dict[str, Node] = field(default_factory=dict)


Node = File | Folder


@dataclass(eq=False)
class Change:
    """Names that come or go together."""

    edits: list[tuple[Folder, str, Node | None]]
    is_safe: bool = False


class Disk:
    """A folder as it was, all of it safe, and what a command did since."""

    def __init__(self, root: Path):
        self.root = Folder()
        self.nodes: dict[int, Node] = {}
        self.changes: list[Change] = []
        self.journal = 0
        """changes of names that a journal keeps, as every sync writes it"""
        self.start = self._load(root, self.root)

    def _load(self, path: Path, folder: Folder) -> list[tuple[Folder, str, Node]]:
        self.nodes[path.stat().st_ino] = folder
        found: list[tuple[Folder, str, Node]] = []
        for each in sorted(path.iterdir()):
            node: Node = Folder() if each.is_dir() else File(each.read_bytes())
            folder.names[each.name] = self.nodes[each.stat().st_ino] = node
            found.append((folder, each.name, node))
            found += self._load(each, node) if isinstance(node, Folder) else []
        return found

    def apply(self, event: Event, root: Path) -> None:
        if event.word in (WROTE, CUT):
            node = self.nodes[event.node]
            assert isinstance(node, File)
            node.changes.append((event.place, event.first if event.word == WROTE else None))
        elif event.word == SYNCED:
            self._sync(self.nodes[event.node])
        elif event.word != MARKED:
            self._rename(event, root)

    def _sync(self, node: Node) -> None:
        self.journal = len(self.changes)
        if isinstance(node, File):
            node.sync()
            return
        for change in self.changes:
            change.is_safe = change.is_safe or any(folder is node for folder, _, _ in change.edits)

    def _rename(self, event: Event, root: Path) -> None:
        folder, name = self._find(event.first, root)
        edits: list[tuple[Folder, str, Node | None]] = []
        if event.word in (MADE, MADE_FOLDER):
            node: Node = File() if event.word == MADE else Folder()
            self.nodes[event.node] = node
            edits.append((folder, name, node))
        elif event.word in (UNLINKED, REMOVED_FOLDER):
            edits.append((folder, name, None))
        else:
            node = folder.names[name]
            edits += [(folder, name, None)] if event.word == RENAMED else []
            edits.append((*self._find(event.second, root), node))
        for place, called, held in edits:
            _edit(place.names, called, held)
        self.changes.append(Change(edits))

    def _find(self, path: bytes, root: Path) -> tuple[Folder, str]:
        parts = os.path.relpath(os.path.normpath(os.fsdecode(path)), root).split("/")
        folder = self.root
        for part in parts[:-1]:
            inner = folder.names[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, parts[-1]

    def crash(self, manner: str, rng: random.Random) -> dict[str, bytes | None]:
        """What is found when the power is back: files with their bytes, folders with None."""
        names: dict[Folder, dict[str, Node]] = {}
        for folder, name, node in self.start:
            names.setdefault(folder, {})[name] = node
        for change in self._keep(manner, rng):
            for folder, name, held in change.edits:
                _edit(names.setdefault(folder, {}), name, held)
        return dict(self._list(self.root, "", names, manner, rng))

    def _keep(self, manner: str, rng: random.Random) -> Iterator[Change]:
        cut = rng.randint(self.journal, len(self.changes))
        ends = {
            folder: rng.randint(0, len(self.changes))
            for change in self.changes
            for folder, _, _ in change.edits
        }
        for number, change in enumerate(self.changes):
            stays = change.is_safe or manner in ("all", "names", "holes")
            stays = stays or (manner == "journal" and number < cut)
            if stays or (
                manner == "folders" and any(number < ends[folder] for folder, _, _ in change.edits)
            ):
                yield change

    def _list(
        self,
        folder: Folder,
        path: str,
        names: dict[Folder, dict[str, Node]],
        manner: str,
        rng: random.Random,
    ) -> Iterator[tuple[str, bytes | None]]:
        for name, node in names.get(folder, {}).items():
            if isinstance(node, File):
                yield path + name, node.read(manner, rng)
            else:
                yield path + name, None
                yield from self._list(node, f"{path}{name}/", names, manner, rng)


def _edit(names: dict[str, Node], name: str, held: Node | None) -> None:
    if held is None:
        names.pop(name, None)
    else:
        names[name] = held


def write(found: dict[str, bytes | None], at: Path) -> None:
    """A folder of these files."""
    at.mkdir()
    for name, data in found.items():
        if data is None:
            (at / name).mkdir(exist_ok=True)
        else:
            (at / name).write_bytes(data)
