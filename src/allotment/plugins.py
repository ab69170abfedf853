"""The seams of allotment: what there is of a kind, by name, built in or from installed packages.

A seam is a place where others add something: a curve, a method, a source of data. What is built
in and what an installed package offers, through an entry point of the group `allotment.<seam>`, is
found in the same way, under one name each. A file may name what is installed, and never code.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from allotment.errors import AllotmentError, InputError, Mistake, cut, suggest

T = TypeVar("T")
GROUP = "allotment"


@dataclass(frozen=True, eq=False)
class Registry(Generic[T]):
    """All that there is of one kind, by name; nothing is imported before it is asked for."""

    seam: str
    """plural, as in `allotment.methods`, the group of entry points"""
    noun: str
    """as in messages: method"""
    verbs: Sequence[str]
    """what each of them must have; a package that offers something else is named"""
    own: Mapping[str, Callable[[], T]] = field(repr=False)
    """what is built in: a name, and what loads it"""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.own or name in self._offered)

    def __iter__(self) -> Iterator[str]:
        """Every name, the built-in ones first."""
        yield from self.own
        yield from (name for name in self._offered if name not in self.own)

    def load(self, name: object) -> T:
        """What goes by this name; raises InputError where nothing does, or where it is broken."""
        if isinstance(name, str) and name in self.own:
            return self.own[name]()
        offers = self._offered.get(name, ()) if isinstance(name, str) else ()
        if not offers:
            raise InputError([Mistake(self.noun, self.tell_unknown(name))])
        if len(offers) > 1:
            homes = " and ".join(sorted(_name_home(each) for each in offers))
            what = f"{name!r} is offered by {homes}; uninstall all but one of them"
            raise InputError([Mistake(self.noun, what)])
        return self._open(offers[0])

    def __getitem__(self, name: str) -> T:
        return self.load(name)

    def tell_unknown(self, name: object) -> str:
        """That nothing goes by this name, and what does."""
        hint = suggest(name, self)
        stop = "" if hint.endswith("?") else "."
        what = f"unknown {cut(repr(name), 60)}; {hint}{stop}"
        return f"{what} One that a package offers must be installed first"

    def version_of(self, name: str) -> str | None:
        """The package that offers this, with its version; None of what is built in."""
        offers = () if name in self.own else self._offered.get(name, ())
        return _name_home(offers[0]) if offers else None

    def describe(self, name: str) -> str:
        """What goes by this name, with the package that offers it, for messages."""
        package = self.version_of(name)
        return f"{self.noun} {name!r}" + ("" if package is None else f" of {package}")

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Around a call of what goes by this name: where a package's own code fails, the package is
        named."""
        try:
            yield
        except (AllotmentError, MemoryError):
            raise
        except Exception as error:
            if self.version_of(name) is None:
                raise
            message = cut(f"{type(error).__name__}: {error}", 200)
            what = f"failed ({message}); mend or uninstall it"
            raise InputError([Mistake(self.describe(name), what)]) from error

    @cached_property
    def _offered(self) -> dict[str, tuple[EntryPoint, ...]]:
        found: dict[str, tuple[EntryPoint, ...]] = {}
        for point in entry_points(group=f"{GROUP}.{self.seam}"):
            found[point.name] = (*found.get(point.name, ()), point)
        return found

    def _open(self, point: EntryPoint) -> T:
        where = f"{self.noun} {point.name!r}"
        try:
            loaded: T = point.load()
        except Exception as error:  # it is somebody else's code
            message = cut(f"{type(error).__name__}: {error}", 200)
            what = f"cannot be loaded from {_name_home(point)} ({message}); mend or uninstall it"
            raise InputError([Mistake(where, what)]) from error
        if lacking := [verb for verb in self.verbs if not hasattr(loaded, verb)]:
            what = f"{_name_home(point)} offers one without {', '.join(lacking)}"
            raise InputError([Mistake(where, f"{what}; docs/extending.md says what it takes")])
        return loaded


def find_modules(package: str, constant: str) -> dict[str, Callable[[], Any]]:
    """What the modules of a package define under one name: a new file there is all that it takes.

    A module's name, with dashes for underscores, is the name; those that begin with an underscore
    are passed over.
    """
    path = importlib.import_module(package).__path__
    names = [each.name for each in pkgutil.iter_modules(path) if not each.name.startswith("_")]

    def loader(module: str) -> Callable[[], Any]:
        return lambda: getattr(importlib.import_module(f"{package}.{module}"), constant)

    return {name.replace("_", "-"): loader(name) for name in names}


def _name_home(point: EntryPoint) -> str:
    """The package that an entry point comes from, with its version."""
    return "a package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
