"""How far plans may leave neutral: other rules than the shipped one, on the open data sets.

All of them see the same draws of the same trainings, and all plans are read from curves through
the trained ones, so that what is compared is the rule and not the luck of a training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from allotment.corpus.judge import compare
from allotment.corpus.plans import NEUTRAL_PLAN, Counts, list_baselines, order_counts
from allotment.corpus.surface import KeptSurface, open_surfaces
from allotment.corpus.ways import FIRST_EDITION, Knowledge, find_way
from allotment.estimates import levels
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.plan import allocate, neutral_gains
from allotment.problem import Problem
from corpus.settings import FOLDER

BEGIN, END = "<!-- begin: python -m corpus rules -->\n", "<!-- end: python -m corpus rules -->\n"
"""in the document, around the table"""
CHANCES = (0.6, 0.75, 0.9)
"""to be ahead of neutral, that are asked for before neutral is left"""
SURE = (0.5, 0.8)
"""chances to be flat from which on a task is dropped"""
REACHES = (1.0, 4.0)
"""in place of `levels.REACH`"""


@dataclass(frozen=True)
class Seen:
    """A campaign, what the method makes of it, and the plans that rules choose between."""

    known: Knowledge
    found: Estimates
    mine: Counts
    neutral: Counts


Rule = Callable[[Seen], Counts]


def _follow(seen: Seen) -> Counts:
    return seen.mine


def _ask_chance(least: float) -> Rule:
    """The measured plan where it is ahead of neutral with such a chance."""

    def rule(seen: Seen) -> Counts:
        mine, neutral = (
            dict(zip(seen.known.setting.tasks, counts, strict=True))
            for counts in (seen.mine, seen.neutral)
        )
        more = seen.found.gain_over(seen.known.problem, mine, neutral)
        return seen.mine if float(np.mean(more > 0)) >= least else seen.neutral

    return rule


def _drop_sure(least: float) -> Rule:
    """Neutral among the tasks that are not flat with such a chance."""

    def rule(seen: Seen) -> Counts:
        problem, setting = seen.known.problem, seen.known.setting
        own = seen.found.worths[:, range(len(setting.tasks)), range(len(setting.tasks))]
        flat = np.mean(own == 0, axis=0) >= least
        if flat.all():
            return seen.neutral
        tasks = [
            replace(task, pool=0) if out else task
            for task, out in zip(problem.tasks, flat, strict=True)
        ]
        fewer = Problem(tasks, budget=problem.budget)
        return order_counts(setting, allocate(fewer, neutral_gains(fewer)).counts)

    return rule


def _go_way(name: str) -> Rule:
    """A way to plan of the judge."""
    return lambda seen: find_way(name)(seen.known).counts


def _reach(times: float) -> Rule:
    """The shipped rule where curves end at so many times what is missing to the best score."""

    def rule(seen: Seen) -> Counts:
        shipped = levels.REACH
        levels.REACH = times  # type: ignore[misc]
        try:
            found = fit(seen.known.response, seed=seen.known.campaign)
        finally:
            levels.REACH = shipped  # type: ignore[misc]
        return order_counts(seen.known.setting, allocate(seen.known.problem, found).counts)

    return rule


RULES: Mapping[str, Rule] = {
    "the best in the mean over draws (shipped)": _follow,
    **{
        f"the same where its chance to be ahead of neutral is {chance:.0%} or more": _ask_chance(
            chance
        )
        for chance in CHANCES
    },
    "half-way to neutral": _go_way("half-way to neutral"),
    **{f"neutral without tasks that are flat with {sure:.0%} or more": _drop_sure(sure)
       for sure in SURE},
    **{f"shipped, curves end at {times:g} times what is missing": _reach(times)
       for times in REACHES},
    "shipped, no transfer": _go_way("default, no transfer"),
    "shipped, no flat tasks": _go_way("default, no odd states"),
    "shipped, no skill": _go_way("default, no skill"),
}  # fmt: skip
KINDS: Mapping[str, Callable[[str], bool]] = {
    "all": lambda _: True,
    "ordinary": lambda odd: not odd,
    "with an odd task": bool,
    "useless": lambda odd: odd == "useless",
}


def compare_rules(workers: int) -> dict[str, dict[str, tuple[str, str, float]]]:
    """Of each rule and setting: its data set, what is odd, and how far it is ahead of neutral."""
    names = [each.setting.name for each in open_surfaces(FOLDER)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(_compare_in, names))
    rules = (*RULES, FIRST_EDITION)
    return {
        rule: {name: row[rule] for name, row in zip(names, rows, strict=True)} for rule in rules
    }


def _compare_in(name: str) -> dict[str, tuple[str, str, float]]:
    (surface,) = [each for each in open_surfaces(FOLDER) if each.setting.name == name]
    setting, neutral = surface.setting, list_baselines(surface.setting)[NEUTRAL_PLAN]
    leads: dict[str, list[float]] = {rule: [] for rule in (*RULES, FIRST_EDITION)}
    for number in surface.campaigns:
        for rule, counts in _plan(surface, number, neutral).items():
            leads[rule].append(surface.read(counts) - surface.read(neutral))
    return {
        rule: (setting.cluster, setting.odd, float(np.mean(each))) for rule, each in leads.items()
    }


def _plan(surface: KeptSurface, number: int, neutral: Counts) -> dict[str, Counts]:
    known = surface.know(number)
    assert known is not None
    found = fit(known.response, seed=number)
    mine = order_counts(surface.setting, allocate(known.problem, found).counts)
    seen = Seen(known, found, mine, neutral)
    plans = {name: rule(seen) for name, rule in RULES.items()}
    then = surface.recall(number, FIRST_EDITION)
    assert then is not None, "python -m corpus recall keeps it"
    return plans | {FIRST_EDITION: then.counts}


def write_rules(workers: int, path: Path) -> None:
    """The table, between the lines that say where it begins and ends."""
    rows = [f"| rule | {' | '.join(KINDS)} |", "|---" * (1 + len(KINDS)) + "|"]
    for rule, found in compare_rules(workers).items():
        cells = []
        for belongs in KINDS.values():
            some = {
                name: (cluster, lead)
                for name, (cluster, odd, lead) in found.items()
                if belongs(odd)
            }
            cells.append(str(compare(some)))
        rows.append(f"| {rule} | {' | '.join(cells)} |")
    text = path.read_text(encoding="utf-8")
    above, rest = text.split(BEGIN)
    table = "\n".join(rows)
    path.write_text(f"{above}{BEGIN}\n{table}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
