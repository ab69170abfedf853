"""Numbers of `estimates.beliefs`, learnt by what plans brought in campaigns of open data sets.

Of each campaign the method states, from its trainings, how far each plan of the surface would be
ahead of neutral. Numbers are the better the likelier the measured leads are by that (the logarithm
of Student's t with five degrees of freedom, around the stated mean and as wide as the draws and the
measurement's error together; meant over plans, campaigns and settings, then over data sets). One
number after the other is moved by a factor, and stays moved where that is better by more than its
standard error over data sets: what data sets do not agree on is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from allotment.arrays import Array
from allotment.corpus.judge import Difference, compare
from allotment.corpus.plans import (
    NEUTRAL_PLAN,
    list_baselines,
    make_problem,
    order_counts,
)
from allotment.corpus.surface import KeptSurface, open_surfaces
from allotment.corpus.ways import Knowledge
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.plan import allocate, neutral_gains
from corpus.settings import FOLDER

FACTORS = (0.5, 2**-0.5, 2**0.5, 2.0)
"""by which a number is moved; of chances, their odds"""
CHANCES = ("flat", "no_transfer")
SWEEPS = 3
"""over all numbers, at most"""
EXPONENTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""of the neutral plan that are compared"""
FREEDOM = 5.0
"""of Student's t: a lead that is far off counts for less than under a normal distribution"""
LEAST_ERROR = 0.05
"""points, of a measured lead"""
BELOW = "<!-- below: python -m corpus learn -->\n"
NUMBERS = tuple(each.name for each in fields(Beliefs) if each.name != "exponent")
"""the exponent is neutral's, and learnt by what neutral plans bring"""
Likelihoods = Mapping[str, float]
"""of each data set"""


@dataclass(frozen=True)
class Leads:
    """How far plans of one campaign are ahead of neutral, as measured."""

    cluster: str
    setting: str
    known: Knowledge
    plans: Array
    """[plan, task]"""
    neutral: Array
    points: Array
    """[plan]"""
    error: float
    """standard deviation"""


@cache
def list_leads() -> tuple[Leads, ...]:
    """Of all campaigns of open settings."""
    found = []
    for surface in open_surfaces(FOLDER):
        neutral = list_baselines(surface.setting)[NEUTRAL_PLAN]
        plans = [plan for plan in surface.plans if plan != neutral]
        for number in surface.campaigns:
            known = surface.know(number)
            assert known is not None
            points = [surface.gain(number, plan) for plan in plans]
            found.append(
                Leads(
                    surface.setting.cluster,
                    surface.setting.name,
                    known,
                    np.array(plans, dtype=float),
                    np.array(neutral, dtype=float),
                    np.array(points) - surface.gain(number, neutral),
                    max(surface.error_of_lead, LEAST_ERROR),
                )
            )
    return tuple(found)


def weigh(beliefs: Beliefs) -> Likelihoods:
    """How likely the measured leads are with these numbers."""
    by_setting: dict[tuple[str, str], list[float]] = {}
    for leads in list_leads():
        found = fit(leads.known.response, seed=leads.known.campaign, beliefs=beliefs)
        stated = _gain(found, leads.plans) - _gain(found, leads.neutral[None])
        width = np.hypot(stated.std(axis=1), leads.error)
        apart = (leads.points - stated.mean(axis=1)) / width
        logs = -(FREEDOM + 1) / 2 * np.log1p(apart**2 / FREEDOM) - np.log(width)
        by_setting.setdefault((leads.cluster, leads.setting), []).append(float(logs.mean()))
    by_cluster: dict[str, list[float]] = {}
    for (cluster, _), values in by_setting.items():
        by_cluster.setdefault(cluster, []).append(float(np.mean(values)))
    return {cluster: float(np.mean(values)) for cluster, values in by_cluster.items()}


def _gain(found: Estimates, plans: Array) -> Array:
    """[plan, draw]: D_T."""
    have = np.maximum(np.array(found.have, dtype=float), 1.0)
    rise = have**-found.shapes * -np.expm1(-found.shapes * np.log1p(plans[:, None, :] / have))
    return np.asarray(np.einsum("rij,prj->pr", found.worths, rise) / len(have))


def move(beliefs: Beliefs, number: str, factor: float) -> Beliefs:
    """The same with one number larger or smaller."""
    value = getattr(beliefs, number)
    if number in CHANCES:
        odds = factor * value / (1 - value)
        return replace(beliefs, **{number: odds / (1 + odds)})
    return replace(beliefs, **{number: value * factor})


@dataclass(frozen=True)
class Learnt:
    """What the likelihood says of numbers, and what plans say of those that are shipped."""

    shipped: Beliefs
    likeliest: Beliefs
    without: Mapping[str, Beliefs]
    """of each data set: the numbers that all others say"""
    halved: Mapping[str, Difference]
    """of each number: by how many points plans are ahead of neutral with half of what is shipped"""
    doubled: Mapping[str, Difference]
    lead: Difference
    """with what is shipped"""
    lead_likeliest: Difference
    lead_left_out: Difference
    """in each data set with the numbers that the others say"""


def learn(start: Beliefs, workers: int) -> Learnt:
    """Numbers by all open data sets, and by all but each of them; what they are worth beside those
    to start from, which are the shipped ones."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        weighed = Weighed(pool)
        likeliest = climb(start, weighed)
        clusters = sorted({each.cluster for each in list_leads()})
        without = {cluster: climb(start, weighed, without=cluster) for cluster in clusters}
        halves, doubles = (
            [move(start, number, factor) for number in NUMBERS] for factor in (0.5, 2.0)
        )
        tried = [start, likeliest, *without.values(), *halves, *doubles]
        found = dict(zip(tried, pool.map(find_leads, tried), strict=True))
    left_out = {name: found[without[cluster]][name] for name, (cluster, _) in found[start].items()}
    return Learnt(
        start,
        likeliest,
        without,
        {number: compare(found[each]) for number, each in zip(NUMBERS, halves, strict=True)},
        {number: compare(found[each]) for number, each in zip(NUMBERS, doubles, strict=True)},
        compare(found[start]),
        compare(found[likeliest]),
        compare(left_out),
    )


Weigh = Callable[[Sequence[Beliefs]], Sequence[Likelihoods]]


def climb(start: Beliefs, weigh_all: Weigh, without: str = "") -> Beliefs:
    """The likeliest numbers by all data sets but one."""
    beliefs = start
    for _ in range(SWEEPS):
        before = beliefs
        for number in NUMBERS:
            tried = [beliefs, *(move(beliefs, number, factor) for factor in FACTORS)]
            found = [_drop(each, without) for each in weigh_all(tried)]
            beliefs = tried[pick_likeliest(found)]
        if beliefs == before:
            break
    return beliefs


class Weighed:
    """What was weighed once, so that searches that leave a data set out share it."""

    def __init__(self, pool: ProcessPoolExecutor):
        self._pool, self._known = pool, dict[Beliefs, Likelihoods]()

    def __call__(self, tried: Sequence[Beliefs]) -> list[Likelihoods]:
        new = [each for each in dict.fromkeys(tried) if each not in self._known]
        self._known.update(zip(new, self._pool.map(weigh, new), strict=True))
        return [self._known[each] for each in tried]


def _drop(found: Likelihoods, cluster: str) -> Likelihoods:
    return {name: value for name, value in found.items() if name != cluster}


def _compare(mine: Likelihoods, other: Likelihoods) -> Difference:
    return compare({name: (name, mine[name] - other[name]) for name in mine})


def pick_likeliest(found: Sequence[Likelihoods]) -> int:
    """The place of the best, which is the first unless another is better by more than its standard
    error over data sets."""
    gains = []
    for each in found:
        values = np.array(list(_compare(each, found[0]).by_cluster.values()))
        error = values.std(ddof=1) / math.sqrt(len(values))
        gains.append(float(values.mean()) if values.mean() > error else 0.0)
    return int(np.argmax(gains))


def compare_exponents() -> dict[float, Difference]:
    """What neutral plans of other exponents are ahead of the shipped one's, by curves."""
    surfaces, found = open_surfaces(FOLDER), {}
    for exponent in EXPONENTS:
        leads = {}
        for surface in surfaces:
            setting, problem = surface.setting, make_problem(surface.setting)
            counts = allocate(problem, neutral_gains(problem, exponent)).counts
            shipped = surface.read(list_baselines(setting)[NEUTRAL_PLAN])
            lead = surface.read(order_counts(setting, counts)) - shipped
            leads[setting.name] = setting.cluster, lead
        found[exponent] = compare(leads)
    return found


def find_leads(beliefs: Beliefs) -> dict[str, tuple[str, float]]:
    """Of each setting its data set, and how far plans are ahead of neutral, by curves."""
    return {
        surface.setting.name: (surface.setting.cluster, _find_lead(surface, beliefs))
        for surface in open_surfaces(FOLDER)
    }


def _find_lead(surface: KeptSurface, beliefs: Beliefs) -> float:
    neutral = surface.read(list_baselines(surface.setting)[NEUTRAL_PLAN])
    leads = []
    for number in surface.campaigns:
        known = surface.know(number)
        assert known is not None
        estimates = fit(known.response, seed=number, beliefs=beliefs)
        plan = allocate(known.problem, estimates)
        leads.append(surface.read(order_counts(surface.setting, plan.counts)) - neutral)
    return float(np.mean(leads))


def write_learnt(learnt: Learnt, path: Path) -> None:
    """The table of numbers, behind the line that says where it begins."""
    text = path.read_text(encoding="utf-8")
    above = text[: text.index(BELOW) + len(BELOW)]
    rows = [
        "",
        f"Plans with the shipped numbers are {learnt.lead} points ahead of neutral on open data",
        f"sets, with the likeliest {learnt.lead_likeliest}, with the likeliest by all but the data",
        f"set that is planned for {learnt.lead_left_out}.",
        "",
        "| number | shipped | likeliest | without one data set | lead with half | with twice |",
        "|---|---|---|---|---|---|",
    ]
    for number in NUMBERS:
        values = sorted({getattr(each, number) for each in learnt.without.values()})
        without = ", ".join(dict.fromkeys(map(_show, values)))
        rows.append(
            f"| `{number}` | {_show(getattr(learnt.shipped, number))} |"
            f" {_show(getattr(learnt.likeliest, number))} | {without} |"
            f" {learnt.halved[number]} | {learnt.doubled[number]} |"
        )
    rows += ["", "| exponent of neutral | lead over 0.4 |", "|---|---|"]
    rows += [f"| {exponent} | {lead} |" for exponent, lead in compare_exponents().items()]
    path.write_text(above + "\n".join([*rows, ""]), encoding="utf-8")


def _show(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"
