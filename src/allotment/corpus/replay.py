"""Any way to plan, judged by what is kept: in seconds, and without the data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allotment.corpus.plans import (
    AGAIN,
    EQUAL_BUDGET,
    NEUTRAL_PLAN,
    Counts,
    list_baselines,
)
from allotment.corpus.surface import KeptSurface, Surface
from allotment.corpus.ways import BASES, KEPT_WAYS, Choice, Knowledge, Way, find_way

WITHIN_90 = 1.645
"""standard deviations that 90 % lie within"""


@dataclass(frozen=True)
class JudgedCampaign:
    """What one way to plan reached in one campaign."""

    number: int
    counts: Counts
    value: float
    """D_T"""
    is_trained: bool
    """else it is read between trained plans"""
    beside: Mapping[str, float]
    """D_T of the base plans"""


@dataclass
class JudgedWay:
    """What one way to plan reached in every setting."""

    name: str
    values: dict[str, float] = field(default_factory=dict)
    """of each setting, D_T meant over its campaigns"""
    beside: dict[str, dict[str, float]] = field(default_factory=dict)
    """of each base plan and setting, that base's D_T in the same campaigns"""
    by_curves: dict[str, float] = field(default_factory=dict)
    """of each setting, the lead over neutral with both read from curves through all plans"""
    regrets: dict[str, float] = field(default_factory=dict)
    """in % of the range, against the best that is picked in one half of the purchases"""
    chances: list[float] = field(default_factory=list)
    """stated, of beating equal budget, campaign by campaign"""
    won: list[float] = field(default_factory=list)
    """whether it did"""
    held: list[float] = field(default_factory=list)
    """whether the stated span holds the measured lead over equal budget"""
    held_widened: list[float] = field(default_factory=list)
    """the same, with the error of the measurement added to the span"""
    told: list[float] = field(default_factory=list)
    """the stated lead"""
    leads: list[float] = field(default_factory=list)
    """the measured one"""
    seconds: list[float] = field(default_factory=list)
    rows: dict[str, tuple[JudgedCampaign, ...]] = field(default_factory=dict)
    """of each setting"""

    @property
    def trained(self) -> int:
        """Plans that were really trained."""
        return sum(each.is_trained for rows in self.rows.values() for each in rows)

    @property
    def read(self) -> int:
        """Plans whose worth is read between trained ones."""
        return sum(map(len, self.rows.values())) - self.trained


def find_planner(name: str, surfaces: Sequence[Surface]) -> Way | None:
    """How a way plans; None if it has trainings of its own, so that its plans are recalled."""
    if name in KEPT_WAYS or any(name in each.kept_ways for each in surfaces):
        return None
    return find_way(name)


def list_choices(surface: Surface, name: str, way: Way | None) -> dict[int, Choice]:
    """What a way plans in each campaign, as far as what it looks at is there."""
    found = {}
    for number in surface.campaigns:
        if way is None:
            choice = surface.recall(number, name)
        elif name in BASES:  # which look at nothing
            choice = Choice(list_baselines(surface.setting)[name])
        else:
            known = surface.know(number)
            choice = None if known is None else _time(way, known)
        if choice is not None:
            found[number] = choice
    return found


def _time(way: Callable[[Knowledge], Choice], known: Knowledge) -> Choice:
    begin = time.process_time()
    choice = way(known)
    return Choice(choice.counts, time.process_time() - begin, choice.chance, choice.span)


def find_value(surface: Surface, campaign: int, plan: Counts) -> tuple[float, bool]:
    """D_T of a plan in a campaign, and whether it was really trained there."""
    found = surface.gain(campaign, plan)
    if np.isfinite(found):
        return found, True
    return read_value(surface, campaign, plan), False


def read_value(surface: Surface, campaign: int, plan: Counts) -> float:
    """D_T of a plan in a campaign, read between trained ones.

    What is read is a mean over campaigns, so the campaign's own level comes on top.
    """
    place = surface.campaigns.index(campaign)
    return surface.read(plan) + float(surface.values[place].mean() - surface.values.mean())


def judge(name: str, surfaces: Sequence[Surface]) -> JudgedWay:
    """What a way reaches in all settings. A plan that was not trained out is held against base
    plans that are read as it is."""
    found, way = JudgedWay(name), find_planner(name, surfaces)
    for surface in surfaces:
        bases = {each: list_baselines(surface.setting)[each] for each in BASES}
        rows: list[JudgedCampaign] = []
        for number, choice in list_choices(surface, name, way).items():
            value, is_trained = find_value(surface, number, choice.counts)
            beside = {
                each: find_value(surface, number, plan)[0]
                if is_trained
                else read_value(surface, number, plan)
                for each, plan in bases.items()
            }
            rows.append(JudgedCampaign(number, choice.counts, value, is_trained, beside))
            found.seconds.append(choice.seconds)
            _hold(found, choice, value - beside[EQUAL_BUDGET], surface.error_of_lead)
        if rows:
            _add(found, surface, rows)
    return found


def _hold(found: JudgedWay, choice: Choice, lead: float, error: float) -> None:
    """What was stated against what came."""
    if choice.chance is None or choice.span is None:
        return
    low, mean, high = choice.span
    found.chances.append(choice.chance)
    found.won.append(float(lead > 0))
    found.held.append(float(low <= lead <= high))
    wider = [
        mean - math.hypot(mean - low, WITHIN_90 * error),
        mean + math.hypot(high - mean, WITHIN_90 * error),
    ]
    found.held_widened.append(float(wider[0] <= lead <= wider[1]))
    found.told.append(mean)
    found.leads.append(lead)


def _add(found: JudgedWay, surface: Surface, rows: Sequence[JudgedCampaign]) -> None:
    name = surface.setting.name
    found.rows[name] = tuple(rows)
    found.values[name] = float(np.mean([each.value for each in rows]))
    for base in BASES:
        mean = float(np.mean([each.beside[base] for each in rows]))
        found.beside.setdefault(base, {})[name] = mean
    neutral = surface.read(list_baselines(surface.setting)[NEUTRAL_PLAN])
    read = {each.counts: surface.read(each.counts) - neutral for each in rows}
    found.by_curves[name] = float(np.mean([read[each.counts] for each in rows]))
    # neutral is in every campaign, so that a way which is judged in some of them is held against
    # the best at their level
    level = found.beside[NEUTRAL_PLAN][name] - neutral
    best = surface.best[0] + level
    if surface.range > 0:
        found.regrets[name] = (best - found.values[name]) / surface.range * 100


def judge_itself(surfaces: Sequence[KeptSurface], less: float = 0.0) -> JudgedWay:
    """The neutral plan in other purchases, less some points: a way of which is known how it
    compares."""
    found = JudgedWay("neutral again")
    for surface in surfaces:
        neutral = list_baselines(surface.setting)[NEUTRAL_PLAN]
        rows = []
        for number in surface.campaigns:
            again = surface.gain(number, neutral, AGAIN)
            if np.isfinite(again):
                beside = {NEUTRAL_PLAN: find_value(surface, number, neutral)[0]}
                rows.append((again - less, beside))
        if rows:
            name = surface.setting.name
            found.values[name] = float(np.mean([value for value, _ in rows]))
            mean = float(np.mean([beside[NEUTRAL_PLAN] for _, beside in rows]))
            found.beside.setdefault(NEUTRAL_PLAN, {})[name] = mean
    return found


def summarise(found: JudgedWay) -> Mapping[str, Any]:
    """Figures over all campaigns."""

    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if len(values) else None

    correlation = None
    if len(found.told) > 2 and np.std(found.told) > 0 and np.std(found.leads) > 0:
        correlation = float(np.corrcoef(found.told, found.leads)[0, 1])
    return {
        "chance": mean(found.chances),
        "won": mean(found.won),
        "held": mean(found.held),
        "held, widened": mean(found.held_widened),
        "correlation": correlation,
        "seconds": mean(found.seconds),
        "trained": found.trained,
        "read": found.read,
    }
