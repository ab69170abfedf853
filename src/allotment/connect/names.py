"""The names of tasks and instances, found however a spreadsheet, a frame or a file system has
written them."""

from __future__ import annotations

import bisect
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from allotment.cells import unprotect
from allotment.connect.guard import Refused, show_value
from allotment.data.columns import plain


def compose(text: str) -> str:
    """The text in the one form that all ways to write the same letters share: some systems take an
    ü apart."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def find_alike(names: Iterable[str]) -> dict[str, str]:
    """Names by their composed form; none that could be two."""
    names = list(names)
    counts = Counter(map(compose, names))
    return {key: name for name in names if counts[key := compose(name)] == 1}


class Names:
    """Finds tasks and instances, and counts how often it did."""

    def __init__(
        self,
        tasks: Collection[str],
        known: Collection[str],
        usual: str | None,
        refused: Refused,
        aliases: Mapping[str, str] | None = None,
    ):
        """`aliases` are names that tasks had before: sheets may be out under them."""
        self.tasks, self.known, self.refused = tasks, known, refused
        self.usual = usual
        """the task that is meant where none is named"""
        self.meant = {name: name for name in tasks} | dict(aliases or {})
        """tasks by all of their names"""
        alike = find_alike(self.meant)
        self.alike = {composed: self.meant[name] for composed, name in alike.items()}
        self.met = 0
        """names of instances that are known"""
        self.strangers = 0

    def find_task(self, given: Any) -> str:
        """The task that is meant; raises ValueError with the reason if there is none."""
        if (given is None or given == "") and self.usual is not None:
            return self.usual
        if isinstance(given, str):
            for each in (unprotect(given), given, given.strip()):
                if each in self.meant:
                    return self.meant[each]
            if (alike := self.alike.get(compose(given.strip()))) is not None:
                return alike
        name = given if isinstance(given, str) else ""
        raise ValueError(
            f"there is no task {show_value(given)}; {self.refused.hint(name, self.tasks)}"
        )

    def find_instance(self, given: Any) -> str:
        """The instance that is meant; raises ValueError with the reason if there is none."""
        if isinstance(given, int | float) and not isinstance(given, bool):
            given = plain(given) if isinstance(given, float) else str(given)
        if not isinstance(given, str) or not given.strip():
            raise ValueError("names no instance; each label needs one")
        name = self.look_up(given)
        if name is not None:
            self.met += 1
            return name
        self.strangers += 1
        raise ValueError(f"there is no instance {show_value(given)}; {self._hint(given)}")

    def look_up(self, given: str) -> str | None:
        """The instance that is meant, if there is one."""
        for each in (unprotect(given), given, given.strip()):
            if each in self.known:
                return each
        if (alike := self.numbered.get(_bare_number(given))) is not None:
            return alike
        return (
            None if given.isascii() and self.is_ascii else self.composed.get(compose(given.strip()))
        )

    def _hint(self, given: str) -> str:
        if self.are_rows:
            return self.tell_rows()
        hint = self.refused.hint(given, self._around(given))
        return hint if hint.startswith("did you mean") else "write it as the order does"

    def tell_rows(self) -> str:
        return f"rows are numbered 1 to {len(self.known)}"

    def describe(self) -> str:
        """What instances are called here."""
        if self.are_rows:
            return self.tell_rows()
        return f"they are called {', '.join(map(show_value, self.sorted[:3]))} and so on"

    def _around(self, name: str) -> list[str]:
        """The known instances next to a name in alphabetical order, where most misspelt ones
        belong."""
        at = bisect.bisect_left(self.sorted, name)
        return self.sorted[max(0, at - 200) : at + 200]

    @cached_property
    def sorted(self) -> list[str]:
        return sorted(self.known)

    @cached_property
    def are_rows(self) -> bool:
        """Whether instances go by the numbers of rows: then one that is far off is no
        misspelling."""
        return bool(self.known) and all(
            str(number) in self.known for number in range(1, len(self.known) + 1)
        )

    @cached_property
    def is_ascii(self) -> bool:
        return all(map(str.isascii, self.known))

    @cached_property
    def composed(self) -> dict[str, str]:
        return find_alike(self.known)

    @cached_property
    def numbered(self) -> dict[str, str]:
        """Instances by their number, for those who write 7 for 007, as spreadsheets do; none that
        could be two."""
        counts = Counter(bare for each in self.known if (bare := _bare_number(each)))
        return {
            bare: each for each in self.known if (bare := _bare_number(each)) and counts[bare] == 1
        }


def _bare_number(name: str) -> str:
    """A whole number without what spreadsheets and frames add or take away; "" if it is none."""
    digits = name.strip().removesuffix(".0")
    return digits.lstrip("0") or "0" if digits.isascii() and digits.isdecimal() else ""
