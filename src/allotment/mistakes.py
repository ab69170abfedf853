"""Mistakes that are gathered on the way, so that all are said at once: of several steps, or of a
file with the line of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ParamSpec, TypeAlias, TypeVar

from allotment.errors import InputError, Mistake, cut, shorten

MOST_LISTED = 5
"""mistakes of one kind that are listed; the others are counted"""
MOST_COLLECTED = 20
"""mistakes of several steps that are said at once"""
MOST_STEPS = 6
"""parts that are read of the name of a key, as in `gain: parts[1].reduction`"""

Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")
Place: TypeAlias = tuple[str | int, ...]
"""the way to a key: ("task", 1, "gain", "reduction") is in the second task"""


class Collected:
    """Mistakes of several steps, so that all are said at once."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    def attempt(
        self, step: Callable[Arguments, Returned], *given: Arguments.args, **named: Arguments.kwargs
    ) -> Returned | None:
        try:
            return step(*given, **named)
        except InputError as error:
            self.found += error.mistakes
            return None

    def add(self, where: str, what: str) -> None:
        self.found.append(Mistake(where, what))

    def raise_all(self) -> None:
        if self.found:
            raise InputError(shorten(self.found, MOST_COLLECTED))


class Placed:
    """What is wrong so far in a file, each mistake with the place that it gets its line from."""

    def __init__(self) -> None:
        self.found: list[tuple[Place, Mistake]] = []

    def add(self, place: Place, where: str, what: str) -> None:
        self.found.append((place, Mistake(where, what)))

    def adopt(self, mistakes: Iterable[Mistake], place: Place, label: str) -> None:
        """Mistakes of one table, which name keys within it."""
        for mistake in mistakes:
            way = (*place, *find_way(mistake.where))
            self.found.append((way, replace(mistake, where=cut(mistake.where, 60)).under(label)))

    def adopt_named(self, mistakes: Iterable[Mistake], tables: Iterable[tuple[str, Place]]) -> None:
        """Mistakes of the whole, which name a table in it as `task 'seg'` or a key of one that
        refers to others."""
        places: dict[str, list[Place]] = defaultdict(list)
        for label, place in tables:
            places[label].append((*place, "name"))
            for key in ("implies", "use"):
                places[f"{label}: {key}"].append((*place, key))
        for mistake in mistakes:
            spots = places.get(mistake.where, [(mistake.where,)])
            # of a name that is there twice, the second is the one too many
            self.found.append((spots.pop(1) if len(spots) > 1 else spots[0], mistake))

    def located(self, lines: Mapping[Place, int]) -> list[Mistake]:
        """All of them with their lines, from the top of the file to its end."""
        located = [replace(mistake, line=_find_line(place, lines)) for place, mistake in self.found]
        return shorten(sorted(located, key=lambda mistake: mistake.line or 0))


def _find_line(place: Place, lines: Mapping[Place, int]) -> int:
    """The line of a place; of the first entry of a list where it does not say which, and of the
    nearest table around it where it is missing."""
    found: Place = ()
    for part in place:
        ways = [(*found, part), (*found, 0, part)]
        there = [way for way in ways if way in lines]
        if not there:
            break
        found = there[0]
    return lines[found]


def find_way(where: str) -> Place:
    """The way to a key from its table, as a mistake names it.

    >>> find_way("gain: part 2: reduction"), find_way("tiers[0].cost")
    (('gain', 'parts', 1, 'reduction'), ('tiers', 0, 'cost'))
    """
    way: list[str | int] = []
    for step in re.split(r": |\.|\[", where, maxsplit=MOST_STEPS - 1):
        if part := re.fullmatch(r"part (\d{1,9})", step):
            way += ["parts", int(part[1]) - 1]
        elif entry := re.fullmatch(r"(\d{1,9})\]", step):
            way.append(int(entry[1]))
        else:
            way.append(step)
    return tuple(way)
