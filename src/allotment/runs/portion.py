"""What one job gets of a cluster: CPUs, GPUs, memory and time, as the settings say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from allotment.amounts import short
from allotment.errors import InputError, Mistake, suggest

MOST_OF_A_KIND = 10_000.0
"""CPUs, GPUs or gigabytes of one job; more is a slip of the pen"""
LONGEST_JOB = 60.0 * 24 * 30
"""minutes"""
PORTION_TYPES: Mapping[str, type] = {
    "cpus": float,
    "gpus": float,
    "memory": float,
    "minutes": float,
    "shared": bool,
}


@dataclass(frozen=True)
class Portion:
    """One job's share of a cluster. Local processes take no notice of it."""

    cpus: float = 1.0
    """cores; a training uses one thread, but data may be read by others"""
    gpus: float = 0.0
    """a fraction where several jobs share one"""
    memory: float | None = None
    """gigabytes; not asked for if None"""
    minutes: float | None = None
    """after which a job counts as hung; never if None"""
    shared: bool = False
    """whether every machine sees the same files at the same paths, so that none are copied"""

    def __post_init__(self) -> None:
        if mistakes := list(check_portion(vars(self))):
            raise InputError(mistakes)

    @property
    def seconds(self) -> float | None:
        return None if self.minutes is None else 60 * self.minutes

    def __str__(self) -> str:
        parts = [f"{self.cpus:g} CPU"]
        parts += [f"{self.gpus:g} GPU"] if self.gpus else []
        parts += [f"{self.memory:g} GB"] if self.memory else []
        return ", ".join(parts)


def check_portion(given: Mapping[str, Any]) -> Iterator[Mistake]:
    """What is wrong with keys that say what a job gets."""
    for key, value in given.items():
        if key not in PORTION_TYPES:
            yield Mistake(key, f"unknown key; {suggest(key, PORTION_TYPES)}")
        elif value is None and key in ("memory", "minutes"):
            continue
        elif key == "shared":
            if not isinstance(value, bool):
                yield Mistake(key, f"{short(value)} is neither true nor false")
        elif what := _check_number(key, value):
            yield Mistake(key, what)


def _check_number(key: str, value: Any) -> str:
    most = LONGEST_JOB if key == "minutes" else MOST_OF_A_KIND
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= most:
        return f"{short(value)} is not a number from 0 to {most:g}"
    if not value and key != "gpus":
        return "is 0, with which no job can be done; leave it out"
    if key == "gpus" and value > 1 and value != int(value):
        return f"{value:g}: of more than one GPU a job gets whole ones"
    return ""


def read_portion(texts: Mapping[str, str]) -> Portion:
    """The portion that `KEY=VALUE` on a command line says; raises InputError with every mistake."""
    found: dict[str, Any] = {}
    for key, text in texts.items():
        if key == "shared":
            found[key] = {"true": True, "false": False}.get(text, text)
            continue
        try:
            found[key] = float(text)
        except ValueError:
            found[key] = text
    if mistakes := [each.under("--cluster") for each in check_portion(found)]:
        raise InputError(mistakes)
    return Portion(**found)
