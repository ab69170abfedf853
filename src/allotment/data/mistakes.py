"""Mistakes of several steps, so that all are said at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from allotment.errors import InputError, Mistake

SHOWN = 5
"""mistakes of one kind that are listed; the others are counted"""
MOST_MISTAKES = 20

Found = TypeVar("Found")
Given = ParamSpec("Given")


class Collected:
    """Mistakes of several steps, so that all are said at once."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    def attempt(self, step: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found | None:
        try:
            return step(*given, **named)
        except InputError as error:
            self.found += error.mistakes
            return None

    def add(self, where: str, what: str) -> None:
        self.found.append(Mistake(where, what))

    def raise_all(self) -> None:
        if len(self.found) > MOST_MISTAKES:
            more = Mistake("", f"and {len(self.found) - MOST_MISTAKES} more mistakes")
            raise InputError([*self.found[:MOST_MISTAKES], more])
        if self.found:
            raise InputError(self.found)
