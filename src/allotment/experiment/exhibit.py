"""A table or figure of the paper: what must be computed for it, and what it shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.outcomes import Mean
from allotment.experiment.work import Question
from allotment.job import JSON, Job
from allotment.plugins import find_modules


@dataclass(frozen=True)
class ResultTable:
    """Rows of cells under heads."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        lines = [self.heads, ("---",) * len(self.heads), *self.rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in lines)


@dataclass(frozen=True)
class Shown:
    """An exhibit as it is written: tables, sentences, plain values, and a picture."""

    title: str
    tables: tuple[ResultTable, ...]
    notes: tuple[str, ...] = ()
    values: Mapping[str, JSON] = field(default_factory=dict)
    draw: Callable[[Any], None] | None = None
    """puts the picture on a figure of matplotlib"""
    size: tuple[float, float] = (8.0, 4.0)

    def to_markdown(self, picture: str = "") -> str:
        parts = [f"## {self.title}"]
        if picture:
            parts.append(f"![{self.title}]({picture})")
        for table in self.tables:
            if table.title:
                parts.append(f"**{table.title}**")
            parts.append(table.to_markdown())
        parts += list(self.notes)
        return "\n\n".join(parts) + "\n"


class Exhibit(ABC):
    """One table or figure, by name."""

    about: ClassVar[str]
    """in half a line"""
    data: ClassVar[str]
    """the data set of its case"""

    def list_questions(self, case: Case) -> list[Question]:
        """What methods are asked for it."""
        return []

    def list_planned(self, case: Case) -> list[tuple[Question, str]]:
        """Of questions whose plans it trains out, each with the name of prices at which it does."""
        return []

    @abstractmethod
    def list_trainings(self, book: Casebook) -> list[Job]:
        """The trainings that it shows, of all plans that are known: those of a method that is still
        asked are not."""

    @abstractmethod
    def show(self, book: Casebook) -> Shown:
        """What it comes to, of what is on record."""


def spell_mean(mean: Mean) -> str:
    """A mean with its interval and, in brackets, the deviation that the paper prints."""
    if mean.value != mean.value:
        return "-"
    text = f"{mean.value:+.1f}"
    if mean.reach < float("inf"):
        text += f" ± {mean.reach:.1f}"
    return text if mean.spread != mean.spread else f"{text} ({mean.spread:.1f})"


def dump_mean(mean: Mean) -> dict[str, float | None]:
    """Plain values; None for what is not known."""
    parts = {"mean": mean.value, "low": mean.low, "high": mean.high, "deviation": mean.spread}
    return {
        key: round(value, 4) if abs(value) < float("inf") else None for key, value in parts.items()
    }


def list_exhibits() -> dict[str, Exhibit]:
    """All exhibits by name."""
    found = find_modules("allotment.experiment.exhibits", "EXHIBIT")
    return {name: found[name]() for name in sorted(found)}
