"""Tasks that were renamed: what each is called now, and the name under which it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

Each = TypeVar("Each")


@dataclass(frozen=True)
class Renames:
    """New names and old ones. What was bought and trained stays under the name of its day, so that
    nothing on record is ever rewritten.

    >>> renames = Renames({"heat": "heating"})
    >>> renames.keep("heat"), renames.call("heating"), renames.call("cooling")
    ('heating', 'heat', 'cooling')
    """

    was: Mapping[str, str] = field(default_factory=dict)
    """of each task that was renamed, its first name"""

    def __bool__(self) -> bool:
        return bool(self.was)

    @property
    def now(self) -> dict[str, str]:
        """Of each first name, that of today."""
        return {old: new for new, old in self.was.items()}

    def keep(self, name: str) -> str:
        """The name under which a task is on record."""
        return self.was.get(name, name)

    def call(self, name: str) -> str:
        """What a task on record is called now."""
        return self.now.get(name, name)


def rename_keys(found: Mapping[str, Each], names: Mapping[str, str]) -> dict[str, Each]:
    """The same by other names of tasks, in the same order."""
    return {names.get(name, name): each for name, each in found.items()}
