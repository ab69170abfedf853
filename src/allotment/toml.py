"""TOML that somebody else wrote: what would keep the parser busy for minutes is refused before it
begins, and every mistake gets its line."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from allotment.errors import InputError, Mistake
from allotment.mistakes import Place
from allotment.problem import MOST_CAPS, MOST_TASKS

LARGEST_TOML = 5_000_000
"""bytes of a file"""
MOST_SIGNS = 150_000
"""line ends, equals signs, commas and dots of a text: each takes the parser some microseconds"""
MOST_KEY_PARTS = 30
"""parts of a dotted key: the parser's work grows with their square"""
DEEPEST_PLACE = 8
"""parts of a place that has a line of its own; what lies deeper has the line of what it is in"""

_PART = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*')[ \t]*+\.[ \t]*+"""
_DEEP = re.compile(rf"(?:^|[\[{{,])[ \t]*+((?:{_PART}){{{MOST_KEY_PARTS}}})", re.MULTILINE)
_TABLES = {
    kind: (re.compile(rf"^[ \t]*+\[\[[ \t]*+{kind}[ \t]*+\]\]", re.MULTILINE), most)
    for kind, most in (("task", MOST_TASKS), ("cap", MOST_CAPS))
}


def read_text(path: Path, label: str) -> str:
    """The text of a file, or InputError with what is wrong with it, under the file's label."""
    line = None
    try:
        what = _find_unfit(path.stat())
        if not what:
            return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        what = "there is no such file; check the path"
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = f"cannot be read ({reason}); check the path and its permissions"
    raise InputError([Mistake(label, what, line)])


def _find_unfit(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "is a directory; give the problem file in it"
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device could wait forever
        return (
            "is a pipe or a device; save the problem to a file first, or give - to read standard"
            " input"
        )
    if status.st_size > LARGEST_TOML:
        size, limit = status.st_size / 10**6, LARGEST_TOML // 10**6
        return f"has {size:.1f} MB, the limit is {limit} MB; is it the right file?"
    return ""


@contextmanager
def refuse_nesting(text: str) -> Iterator[None]:
    """Around all that reads a text: what is nested too deeply for it is a mistake of the text."""
    try:
        yield
    except RecursionError:
        rows = text.split("\n")
        line = max(range(len(rows)), key=lambda row: sum(map(rows[row].count, "[{."))) + 1
        what = "nested too deeply; a task is a few levels deep"
        raise InputError([Mistake("", what, line)]) from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a text holds, with exact decimals; raises InputError where it is no TOML, or far too
    much."""
    _refuse_much(text)
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        at = re.search(r"line (\d+)", place)
        line = int(at[1]) if at else text.rstrip("\n").count("\n") + 1
        single = re.match(r"\s*\[\s*(task|cap)\s*\]", text.split("\n")[line - 1])
        if single:
            advice = f"write [[{single[1]}]], in double brackets, above each {single[1]}"
        else:
            advice = "text goes in quotes, numbers have a decimal point, each key stands once"
        raise InputError([Mistake("", f"not valid TOML: {what}; {advice}", line)]) from None
    except (ValueError, InvalidOperation):
        # more digits than int, or a longer exponent than Decimal, is willing to read
        number = re.search(r"(?<![\d_])[\d_]{4000}|[eE][+-]?[\d_]{18}", text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        what = "a number has far too many digits (the limits are 10^15 and 12 decimal places)"
        raise InputError([Mistake("", what, line)]) from None


def _refuse_much(text: str) -> None:
    for kind, (table, most) in _TABLES.items():
        if (count := sum(1 for _ in table.finditer(text))) > most:
            raise InputError(
                [Mistake(kind, f"there are {count:,}, the limit is {most:,}; leave some out")]
            )
    if (count := sum(map(text.count, "\n=,."))) > MOST_SIGNS:
        what = (
            f"has {count:,} line ends, equals signs, commas and dots, the limit is {MOST_SIGNS:,}"
        )
        raise InputError([Mistake("", f"{what}; is it the right file?")])
    if text.count(".") >= MOST_KEY_PARTS and (deep := _DEEP.search(text)):
        line = text.count("\n", 0, deep.start(1)) + 1
        what = (
            f"a key has more than {MOST_KEY_PARTS} parts between dots, the limit; a task is a few"
            " levels deep"
        )
        raise InputError([Mistake("", what, line)])


# Lines of keys, which tomllib does not tell


def find_lines(text: str) -> dict[Place, int]:
    """On which line of a valid text each table begins and each key or entry of a list stands.

    >>> find_lines("[[task]]\\ntiers = [\\n  { after = 5, cost = 1 },\\n]")["task", 0, "tiers", 0]
    3
    """
    walk = _Walk()
    for token, line in _split(text):
        walk.take(token, line)
    return walk.lines


_TOKEN = re.compile(
    r'"""(?:[^"\\]+|\\.|"{1,2}(?!"))*+"{3,5}|"(?:[^"\\\n]+|\\.)*+"'  # texts with escapes
    r"|'''(?:[^']+|'{1,2}(?!'))*+'{3,5}|'[^'\n]*'"  # texts without
    r"|#[^\n]*|\s+|[\[\]{},=.]|[^\s\[\]{},=.#\"']+",
    re.DOTALL,
)


def _split(text: str) -> Iterator[tuple[str, int]]:
    """Texts, words, marks and ends of lines, each with the line on which it begins."""
    line = 1
    for match in _TOKEN.finditer(text):
        token = match[0]
        ends = token.count("\n")
        if token.isspace():
            if ends:
                yield "\n", line
        elif not token.startswith("#"):
            yield token, line
        line += ends


@dataclass
class _Container:
    """A table, or a list that is open; a list counts its entries."""

    place: Place
    is_list: bool = False
    entries: int = 0


class _Walk:
    """The way through a text, one token after the other, and the lines of all that it passed."""

    def __init__(self) -> None:
        self.lines: dict[Place, int] = {(): 1}
        self._open = [_Container(())]
        """the table that statements belong to, and what is open within a value"""
        self._arrays: dict[Place, int] = {}
        """of each array of tables, how many of its headers came by"""
        self._parts: list[str] = []
        """of a key, as far as it was read; or rests of a value, which nobody asks for"""
        self._brackets = 0
        """that began a header"""
        self._value: Place | None = None
        """where the value belongs that comes next; None where none does"""

    def take(self, token: str, line: int) -> None:
        if self._value is not None:
            if token != "\n":
                self._begin_value(self._value, token, line)
        elif token in _MARKS:
            _MARKS[token](self, line)
        else:
            self._parts.append(_read_key(token))

    def _begin_value(self, place: Place, token: str, line: int) -> None:
        self._value = None
        inner = self._open[-1]
        if inner.is_list:
            if token == "]":  # it is empty, or ends with a comma
                self._open.pop()
                return
            self.lines.setdefault(place, line)
            inner.entries += 1
        if token in ("[", "{"):
            self._open.append(_Container(place, is_list=token == "["))
            self._parts = []
            if token == "[":
                self._await_entry()

    def _await_entry(self) -> None:
        inner = self._open[-1]
        self._value = _go(inner.place, inner.entries)

    def _separate(self, line: int) -> None:
        self._parts = []
        if self._open[-1].is_list:
            self._await_entry()

    def _end_line(self, line: int) -> None:
        if len(self._open) == 1:
            self._parts, self._brackets = [], 0

    def _end_key(self, line: int) -> None:
        place = self._open[-1].place
        for part in self._parts:
            place = _go(place, part)
            self.lines.setdefault(place, line)
        self._value = place

    def _open_bracket(self, line: int) -> None:
        self._brackets += 1

    def _close_bracket(self, line: int) -> None:
        if len(self._open) > 1:
            self._open.pop()
        elif self._parts:
            self._enter_table(line)

    def _enter_table(self, line: int) -> None:
        """At the end of a header, of which a second bracket may still come."""
        *above, name = self._parts
        place: Place = ()
        for part in above:
            place = _go(place, part)
            self.lines.setdefault(place, line)
            if place in self._arrays:
                place = _go(place, self._arrays[place] - 1)
        place = _go(place, name)
        if self._brackets > 1:
            self.lines.setdefault(place, line)
            self._arrays[place] = self._arrays.get(place, 0) + 1
            place = _go(place, self._arrays[place] - 1)
        if len(place) < DEEPEST_PLACE:
            self.lines[place] = line  # tables within it may have stood above
        self._open, self._parts = [_Container(place)], []

    def _pass(self, line: int) -> None:
        """A dot stands between parts of a key, or in a number."""


_MARKS = {
    "\n": _Walk._end_line,
    ",": _Walk._separate,
    "=": _Walk._end_key,
    ".": _Walk._pass,
    "[": _Walk._open_bracket,
    "]": _Walk._close_bracket,
    "}": _Walk._close_bracket,
}


def _go(place: Place, part: str | int) -> Place:
    """One step further in, unless that is too deep: then everything stays where it is."""
    return (*place, part)[:DEEPEST_PLACE]


def _read_key(token: str) -> str:
    """A part of a key without its quotes."""
    if token.startswith('"') and "\\" in token:
        return str(tomllib.loads(f"key = {token}")["key"])
    return token[1:-1] if token[0] in "\"'" else token
