"""Mistakes of several steps, so that all are said at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from allotment.errors import InputError, Mistake, shorten

SHOWN = 5
"""mistakes of one kind that are listed; the others are counted"""
MOST_MISTAKES = 20

Found = TypeVar("Found")
Given = ParamSpec("Given")


class Collected:
    """Mistakes of several steps, so that all are said at once."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    def attempt(
        self, step: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found | None:
        try:
            return step(*given, **named)
        except InputError as error:
            self.found += error.mistakes
            return None

    def add(self, where: str, what: str) -> None:
        self.found.append(Mistake(where, what))

    def raise_all(self) -> None:
        if self.found:
            raise InputError(shorten(self.found, MOST_MISTAKES))


class Placed:
    """What is wrong so far in a TOML text, each with the way to its key."""

    def __init__(self) -> None:
        self.found: list[tuple[tuple[str | int, ...], Mistake]] = []

    def add(self, place: tuple[str | int, ...], where: str, what: str) -> None:
        self.found.append((place, Mistake(where, what)))

    def located(self, text: str) -> list[Mistake]:
        lines = find_lines(text)
        found = []
        for place, mistake in self.found:
            while place not in lines:
                place = place[:-1]
            found.append(Mistake(mistake.where, mistake.what, lines[place]))
        return shorten(sorted(found, key=lambda mistake: mistake.line or 0))


def find_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """On which line each table begins and each key stands; a text over several lines may mislead
    it."""
    lines: dict[tuple[str | int, ...], int] = {(): 1}
    table: tuple[str | int, ...] = ()
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r"\s*(\[\[?)\s*([\w-]+)", line):
            name = match[2]
            if match[1] == "[[":
                seen[name] = seen.get(name, -1) + 1
                table = (name, seen[name])
            else:
                table = (name,)
            lines.setdefault(table, number)
        elif match := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]", line):
            lines.setdefault((*table, match[1]), number)
    return lines
