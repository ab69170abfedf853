"""What plans of a setting were worth when they were trained out, and what those between them would
be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from allotment.arrays import Array
from allotment.corpus.kept import Kept
from allotment.corpus.plans import (
    AGAIN,
    BEFORE,
    PURCHASE,
    Counts,
    list_baselines,
    list_surface,
    make_problem,
    name_run,
)
from allotment.corpus.setting import Setting, load_settings
from allotment.corpus.ways import KEPT_WAYS, Choice, Knowledge, load
from allotment.estimates.response import Response

POWERS = (0.15, 0.5, 1.5)
"""of labels, in which each task's own curve is a sum"""
RIDGE = 0.003
NEAR = 0.15
"""distance in shares of money within which what the curves leave of a trained plan counts for
another"""
MOST_CAMPAIGNS = 100
"""of a setting"""
HALVES = 2
"""of the campaigns, each with its own purchase: one picks, the other scores"""


@dataclass(frozen=True)
class Surface(ABC):
    """D_T of the plans of one setting, in points: gains in % of the score before, meant over
    tasks."""

    setting: Setting
    campaigns: tuple[int, ...]
    """that are trained out"""

    @property
    @abstractmethod
    def plans(self) -> tuple[Counts, ...]:
        """That every campaign trained out."""

    @abstractmethod
    def gain(self, campaign: int, plan: Counts) -> float:
        """D_T of one plan in one campaign; not a number if it was not trained."""

    @property
    @abstractmethod
    def error_of_lead(self) -> float:
        """Standard deviation, in points, of what one plan scores beside itself when it is bought
        again in the same campaign."""

    @property
    @abstractmethod
    def kept_ways(self) -> Collection[str]:
        """Ways with trainings of their own, whose plans `recall` knows."""

    @abstractmethod
    def recall(self, campaign: int, way: str) -> Choice | None:
        """What such a way planned; None if that is not known."""

    @abstractmethod
    def know(self, campaign: int) -> Knowledge | None:
        """What any other way may look at; None if its trainings are not there."""

    @cached_property
    def values(self) -> Array:
        """[campaign, plan]"""
        return np.array(
            [[self.gain(number, plan) for plan in self.plans] for number in self.campaigns]
        )

    @cached_property
    def means(self) -> Array:
        """[plan]: over campaigns."""
        return np.asarray(self.values.mean(axis=0))

    @cached_property
    def best(self) -> tuple[float, float]:
        """(best, worst) plan of the surface, picked by one half of the campaigns and scored in the
        other, as many points above and below all plans' mean there; not numbers with one campaign.

        It is picked by the curves through all plans, since of many plans that are trained once the
        best is so by luck.
        """
        if len(self.campaigns) < HALVES:
            return float("nan"), float("nan")
        centred = self.values - self.values.mean(axis=1, keepdims=True)
        halves = [centred[half::HALVES].mean(axis=0) for half in range(HALVES)]
        best, worst = [], []
        for half in range(HALVES):
            others = self._read_from(halves[1 - half], self.plans, range(len(self.plans)))
            best.append(halves[half][others.argmax()])
            worst.append(halves[half][others.argmin()])
        level = float(self.values.mean())
        return level + float(np.mean(best)), level + float(np.mean(worst))

    @property
    def range(self) -> float:
        """From the worst way to spend to the best."""
        return self.best[0] - self.best[1]

    def read(self, plan: Counts, without: int | None = None) -> float:
        """D_T of any plan, meant over campaigns, by curves for each task that are fitted to all
        plans, and what they leave of those nearby: plans of the surface are read as well, so that
        two plans can be compared without the luck of either.

        `without` leaves out one plan of the surface, to see how far off that is.
        """
        kept = [place for place in range(len(self.plans)) if place != without]
        return float(self._read_from(self.means, [plan], kept)[0])

    def _read_from(self, values: Array, plans: Sequence[Counts], kept: Sequence[int]) -> Array:
        """What these plans are worth by values of the surface's, of which some are kept."""
        rows, money = self._rows(self.plans)[kept], self._money(self.plans)[kept]
        weights = self._fit(rows, values[kept])
        left = values[kept] - rows @ weights
        apart = np.abs(money - self._money(plans)[:, None]).sum(axis=2) / 2
        near = np.exp(-((apart / NEAR) ** 2))
        return np.asarray(self._rows(plans) @ weights + near @ left / (near.sum(axis=1) + 1.0))

    @staticmethod
    def _fit(rows: Array, values: Array) -> Array:
        size = RIDGE * np.eye(rows.shape[1]) * len(rows)
        size[0, 0] = 0.0
        return np.asarray(np.linalg.solve(rows.T @ rows + size, rows.T @ values))

    def _rows(self, plans: Iterable[Counts]) -> Array:
        more = np.array(list(plans), dtype=float) / np.array(self.setting.have)
        curves = [1 - (1 + more) ** -power for power in POWERS]
        return np.concatenate([np.ones((len(more), 1)), *curves], axis=1)

    def _money(self, plans: Iterable[Counts]) -> Array:
        money = np.array(list(plans)) * np.array(self.setting.costs)
        return np.asarray(money / self.setting.budget)

    @cached_property
    def error(self) -> float:
        """How far off `read` is for plans that it was not fitted to (root mean square, in points),
        the noise of their own trainings included."""
        off = [
            self.read(plan, without=place) - self.means[place]
            for place, plan in enumerate(self.plans)
        ]
        return float(np.sqrt(np.mean(np.square(off))))

    @cached_property
    def noise(self) -> float:
        """Standard error of a trained plan's mean beside that of another of the same campaigns."""
        if len(self.campaigns) < HALVES:
            return float("nan")
        centred = self.values - self.values.mean(axis=1, keepdims=True)
        return float(np.sqrt((centred.var(axis=0, ddof=1) / len(centred)).mean()))


@dataclass(frozen=True)
class KeptSurface(Surface):
    """A surface of the corpus, from what is kept of its setting."""

    kept: Kept

    @cached_property
    def plans(self) -> tuple[Counts, ...]:
        return tuple(list_surface(self.setting))

    def gain(self, campaign: int, plan: Counts, purchase: int = PURCHASE) -> float:
        scores = self.kept.get(campaign, "plans").get(name_run(plan, purchase))
        if scores is None:
            return float("nan")
        before, sign = self.before[campaign], 1 if self.setting.higher_is_better else -1
        return float(np.mean(sign * (np.array(scores) - before) / before * 100))

    @cached_property
    def before(self) -> dict[int, Array]:
        """What each task scores with the labels at hand."""
        nothing = (0,) * len(self.setting.tasks)
        return {
            number: np.mean(
                [self.kept.get(number, "plans")[name_run(nothing, each)] for each in range(BEFORE)],
                axis=0,
            )
            for number in self.campaigns
        }

    @cached_property
    def error_of_lead(self) -> float:
        neutral = list_baselines(self.setting)["neutral"]
        apart = [
            self.gain(number, neutral, AGAIN) - self.gain(number, neutral)
            for number in self.campaigns
        ]
        known = [each for each in apart if np.isfinite(each)]
        return float(np.sqrt(np.mean(np.square(known)))) if known else 0.0

    @property
    def kept_ways(self) -> Collection[str]:
        return KEPT_WAYS

    def recall(self, campaign: int, way: str) -> Choice | None:
        return load(self.kept.get(campaign, way))

    def know(self, campaign: int) -> Knowledge | None:
        plain = self.kept.get(campaign, "response")
        if plain is None:
            return None
        response = Response.from_dict(plain)
        return Knowledge(self.setting, campaign, make_problem(self.setting), response)


def open_surface(setting: Setting, campaigns: int, kept: Kept) -> KeptSurface | None:
    """What is kept of a setting; None if no campaign is whole."""
    nothing = (0,) * len(setting.tasks)
    wanted = [name_run(nothing, each) for each in range(BEFORE)]
    wanted += [name_run(plan, PURCHASE) for plan in list_surface(setting)]
    whole = []
    for number in range(campaigns):
        there = kept.get(number, "plans") or {}
        if kept.get(number, "response") is not None and all(each in there for each in wanted):
            whole.append(number)
    return KeptSurface(setting, tuple(whole), kept) if whole else None


def open_surfaces(folder: Path, campaigns: int = MOST_CAMPAIGNS) -> list[KeptSurface]:
    """All that is kept of a corpus but for what is locked."""
    found = []
    for setting in load_settings(folder):
        if not setting.is_locked:
            surface = open_surface(setting, campaigns, Kept(setting.name, folder))
            found += [] if surface is None else [surface]
    return found
