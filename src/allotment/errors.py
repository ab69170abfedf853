"""What can go wrong, and how it is said.

AllotmentError
├── InputError       something given is wrong: every mistake at once, with its key (exit code 2)
│   ├── Damaged      a campaign's store says what no store can say
│   ├── Busy         somebody else writes to the campaign just now
│   ├── Unread       a file could not be read, so that nothing is known of it
│   ├── Undecided    targets that may be classes or amounts: which is for the user to say
│   └── Unscored     validation labels that cannot score a task
├── Infeasible       all of it is valid, but no plan meets it: which limits clash (exit code 1)
└── WorkFailed       some trainings gave no result; the others are kept (exit code 2)
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

MOST_MISTAKES = 200
"""that are said at once; of more than that nobody mends all before the next try"""
MOST_HINTS = 50
"""near misses that are looked for at once, since each takes up to some milliseconds"""


class AllotmentError(Exception):
    """The root of everything that allotment raises on purpose."""


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong: where (`task 'seg': cost`), what and, if it comes from a file, on
    which line."""

    where: str
    what: str
    line: int | None = None

    def __str__(self) -> str:
        line = f"line {self.line}: " if self.line is not None else ""
        where = f"{self.where}: " if self.where else ""
        return visible(f"{line}{where}{self.what}")

    def under(self, prefix: str) -> Mistake:
        """The same mistake seen from one level further up."""
        return replace(self, where=f"{prefix}: {self.where}" if self.where else prefix)


class InputError(AllotmentError, ValueError):
    """Something given is wrong; `mistakes` lists all of it."""

    def __init__(self, mistakes: Iterable[Mistake]):
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class Undecided(InputError):
    """Targets that may be classes or amounts, each with its question in `mistakes`; `tasks` names
    them."""

    def __init__(self, questions: Mapping[str, Mistake]):
        super().__init__(questions.values())
        self.tasks = tuple(questions)


class Infeasible(AllotmentError):
    """No plan meets the limits; `clashes` names the limits and what would resolve each clash."""

    def __init__(self, clashes: Iterable[str]):
        self.clashes = tuple(clashes)
        super().__init__("\n".join(map(visible, self.clashes)))


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Around what builds a value from plain ones: of these anything may be wrong that nobody has
    thought of."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        if isinstance(error, AllotmentError):
            raise
        message = (
            f"is not in the form that to_dict writes ({cut(f'{type(error).__name__}: {error}')});"
            " write it again"
        )
        raise InputError([Mistake(what, message)]) from None


def cut(text: object, most: int = 100) -> str:
    """Any text as one short line that is safe to print."""
    line = str(text)[: most + 1]
    line = line if len(line) <= most else f"{line[: most - 3]}..."
    return line if line.isprintable() else repr(line)


def suggest(name: object, known: Iterable[str]) -> str:
    """A hint after an unknown name: the nearest known one, or all of them."""
    choices = list(known)
    # more would take seconds
    near = difflib.get_close_matches(str(name)[:200], choices[:1000], n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return _list(choices)


def _list(choices: Sequence[str]) -> str:
    more = ", ..." if len(choices) > 20 else ""
    return f"known: {', '.join(choices[:20])}{more}" if choices else "none are known"


def visible(text: str, keep: str = "") -> str:
    """The text with escapes for what a terminal would act on rather than show, but for letters to
    `keep`.

    >>> visible("a\\x1b[31m\\n")
    'a\\\\x1b[31m\\\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text
    )


def make_hints(known: Iterable[str]) -> Callable[[object], str]:
    """`suggest` for names of which there may be very many: after the first few it says only what is
    known."""
    choices = list(known)
    count = 0

    def hint(name: object) -> str:
        nonlocal count
        count += 1
        return suggest(name, choices) if count <= MOST_HINTS else _list(choices)

    return hint


def shorten(mistakes: Sequence[Mistake], most: int = MOST_MISTAKES) -> list[Mistake]:
    """The first of them, the others counted."""
    rest = len(mistakes) - most
    return (
        [*mistakes[:most], Mistake("", f"and {rest:,} more mistakes")]
        if rest > 0
        else list(mistakes)
    )


def load_library(name: str) -> Any:
    """A library that not everybody has; raises InputError with how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        what = f"is not installed, and this needs it: pip install {package}"
        raise InputError([Mistake(package, what)]) from None
