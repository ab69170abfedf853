"""A purchase to plan: tasks, prices, labels at hand and money."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allotment.errors import InputError, Mistake, reading

CORPUS_FILE = "settings.json"
"""of a corpus: all settings, so that nobody needs the data to judge"""
LISTED = ("tasks", "costs", "have", "pool")


@dataclass(frozen=True)
class Setting:
    """A purchase to plan."""

    name: str
    table: str
    tasks: tuple[str, ...]
    costs: tuple[int, ...]
    have: tuple[int, ...]
    pool: tuple[int, ...]
    budget: int
    odd: str = ""
    """the kind of the last task, if that is odd"""
    source: str = ""
    """the real task that it is made of"""
    cluster: str = ""
    """what its data set counts as in statistics"""
    is_locked: bool = False
    """neither trained on nor looked at before the one reported run of the next edition"""
    higher_is_better: bool = True

    @property
    def is_equal(self) -> bool:
        """Whether there are as many labels of each task at hand."""
        return len(set(self.have)) == 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    @reading("the setting")
    def from_dict(cls, plain: Mapping[str, Any]) -> Setting:
        return cls(**{**plain, **{key: tuple(plain[key]) for key in LISTED}})


def save_settings(settings: Iterable[Setting], folder: Path) -> None:
    rows = [json.dumps(each.to_dict()) for each in settings]
    (folder / CORPUS_FILE).write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def load_settings(folder: Path) -> list[Setting]:
    """The settings that `save_settings` wrote."""
    path = folder / CORPUS_FILE
    if not path.is_file():
        what = "is not there; give the folder of a corpus, experiments/corpus of the repository"
        raise InputError([Mistake(str(path), what)])
    return [Setting.from_dict(row) for row in json.loads(path.read_text(encoding="utf-8"))]
