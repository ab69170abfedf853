"""The tables and the picture of docs/results/corpus.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from allotment.corpus.judge import Difference, compare, compare_settings
from allotment.corpus.plans import EQUAL_BUDGET, NEUTRAL_PLAN, list_baselines
from allotment.corpus.replay import (
    JudgedCampaign,
    JudgedWay,
    judge,
    judge_itself,
    summarise,
)
from allotment.corpus.setting import Setting
from allotment.corpus.surface import KeptSurface, Surface
from allotment.corpus.ways import KEPT_WAYS, WAYS

ODD = ("useless", "solved", "noisy", "copy")
"""kinds of odd tasks"""
PLANTED = 0.5
"""points by which a way is made worse than neutral, to see whether the judge finds it"""
SETTING_KINDS: dict[str, Callable[[Setting], bool]] = {
    "all": lambda _: True,
    "no odd task": lambda each: not each.odd,
    **{kind: lambda each, kind=kind: each.odd == kind for kind in ODD},  # type: ignore[misc]
    "as many labels of each": lambda each: each.is_equal,
    "unequal labels": lambda each: not each.is_equal,
    "one price": lambda each: len(set(each.costs)) == 1,
    "several prices": lambda each: len(set(each.costs)) > 1,
    "classes": lambda each: each.higher_is_better,
    "numbers": lambda each: not each.higher_is_better,
}
"""of settings"""


BY_KIND = (
    "default", "slopes", "band, else neutral", "half-way to neutral", "default, no odd states",
    "default, no transfer", "two rounds", "two tranches", "three tranches",
)  # fmt: skip
"""ways that are shown by kind of setting"""
CHANCES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WITHIN_95 = 1.96
"""standard deviations that 95 % lie within"""
FEWEST_STATED = 10
"""campaigns of a row"""

SPENT = {
    "response": "the trainings of the default method",
    "surfaces": "these, and plans of the surfaces",
    "long": "`taba`, `taba-mended`, `taba-pooled` and rounds",
    "plans": "plans of all ways",
}
"""parts of what was measured"""


def order_ways() -> list[str]:
    return [*WAYS, *KEPT_WAYS]


def show_ways(found: Sequence[JudgedWay], surfaces: Sequence[Surface]) -> str:
    """A row for each way: how far it is ahead, what it misses, and what it said."""
    lines = [
        "| way | over neutral | by curves | over equal budget | regret, % of range | chance stated,"
        " won | span held, widened | CPU s beside trainings | settings | trained, read |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        if not each.values:
            continue
        over = {
            base: compare_settings(each.values, each.beside[base], surfaces)
            for base in (NEUTRAL_PLAN, EQUAL_BUDGET)
        }
        regret, by_curves = (
            _mean_over(values, surfaces) for values in (each.regrets, each.by_curves)
        )
        figures = summarise(each)
        stated = "-"
        if figures["chance"] is not None:
            stated = f"{figures['chance']:.0%}, {figures['won']:.0%}"
        held = "-"
        if figures["held"] is not None:
            held = f"{figures['held']:.0%}, {figures['held, widened']:.0%}"
        lines.append(
            f"| {each.name} | {_mark(over[NEUTRAL_PLAN])} | {_mark(by_curves)} |"
            f" {_mark(over[EQUAL_BUDGET])} | {_round(regret)} | {stated} | {held} |"
            f" {figures['seconds']:.1f} | {len(each.values)} | {each.trained}, {each.read} |"
        )
    return "\n".join(lines)


def _mean_over(values: Mapping[str, float], surfaces: Sequence[Surface]) -> Difference:
    """Of a value of each setting."""
    return compare(
        {
            each.setting.name: (each.setting.cluster, values[each.setting.name])
            for each in surfaces
            if each.setting.name in values
        }
    )


def show_setting(found: Sequence[JudgedWay], surface: Surface) -> str:
    """A row for each way in one setting; intervals are over its campaigns, in which plans are
    paired, and wider where plans are read."""
    name = surface.setting.name
    lines = [
        f"| way | labels ({', '.join(surface.setting.tasks)}) | D_T, % | over neutral |"
        " over equal budget | regret, % of range | campaigns | trained, read |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        rows = each.rows.get(name, ())
        if not rows:
            continue
        over = [_lead(rows, base, surface.error) for base in (NEUTRAL_PLAN, EQUAL_BUDGET)]
        labels = ", ".join(
            _span(counts) for counts in zip(*(row.counts for row in rows), strict=True)
        )
        regret = f"{each.regrets[name]:.0f}" if name in each.regrets else "-"
        trained = sum(row.is_trained for row in rows)
        lines.append(
            f"| {each.name} | {labels} | {each.values[name]:+.2f} | {_mark(over[0])} |"
            f" {_mark(over[1])} | {regret} | {len(rows)} | {trained}, {len(rows) - trained} |"
        )
    return "\n".join(lines)


def _lead(rows: Sequence[JudgedCampaign], base: str, error: float) -> Difference:
    """Over a base plan in the same campaigns."""
    apart = {str(each.number): (str(each.number), each.value - each.beside[base]) for each in rows}
    found = compare(apart)
    read = sum(not each.is_trained for each in rows) / len(rows)
    return replace(found, reach=math.hypot(found.reach, WITHIN_95 * read * error))


def _round(difference: Difference) -> str:
    return f"{difference.mean:.0f} ± {difference.reach:.0f}" if difference.by_cluster else "-"


def _mark(difference: Difference) -> str:
    """In bold where the interval allows to say which is better."""
    return str(difference) if difference.verdict == "open" else f"**{difference}**"


def show_clusters(found: Sequence[JudgedWay], surfaces: Sequence[Surface], base: str) -> str:
    """A row for each way, a column for each data set."""
    differences = [compare_settings(each.values, each.beside[base], surfaces) for each in found]
    names = sorted({name for each in differences for name in each.by_cluster})
    lines = ["| way | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for each, difference in zip(found, differences, strict=True):
        cells = [
            f"{difference.by_cluster[name]:+.2f}" if name in difference.by_cluster else "-"
            for name in names
        ]
        lines.append(f"| {each.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def show_kinds(found: Sequence[JudgedWay], surfaces: Sequence[Surface], base: str) -> str:
    """A row for each kind of setting, a column for each way."""
    lines = [
        "| settings | how many | " + " | ".join(each.name for each in found) + " |",
        "|---" * (2 + len(found)) + "|",
    ]
    for kind, belongs in SETTING_KINDS.items():
        some = [each for each in surfaces if belongs(each.setting)]
        if not some:
            continue
        cells = [str(compare_settings(each.values, each.beside[base], some)) for each in found]
        lines.append(f"| {kind} | {len(some)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def show_calibration(found: Sequence[JudgedWay]) -> str:
    """How often ways beat equal budget that stated a chance of this."""
    lines = [
        "| way | chance stated | campaigns | mean of these | won | lead stated, measured |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        stated, won = np.array(each.chances), np.array(each.won)
        told, leads = np.array(each.told), np.array(each.leads)
        for low, high in pairwise(CHANCES):
            chosen = (stated >= low) & ((stated < high) | (high == 1.0))
            if chosen.sum() >= FEWEST_STATED:
                lines.append(
                    f"| {each.name} | {low:.0%} to {high:.0%} | {chosen.sum()} |"
                    f" {stated[chosen].mean():.0%} | {won[chosen].mean():.0%} |"
                    f" {told[chosen].mean():+.2f}, {leads[chosen].mean():+.2f} |"
                )
    return "\n".join(lines)


def show_room(surfaces: Sequence[Surface]) -> str:
    """How much there is to win: the cross-fitted best over what trains nothing."""
    lines = [
        "| settings | how many | best over neutral | best over equal budget | range |",
        "|---|---|---|---|---|",
    ]
    for kind, belongs in SETTING_KINDS.items():
        some = [each for each in surfaces if belongs(each.setting)]
        if not some:
            continue
        cells = []
        for base in (NEUTRAL_PLAN, EQUAL_BUDGET):
            more = {
                each.setting.name: (
                    each.setting.cluster,
                    each.best[0] - _value(each, base),
                )
                for each in some
            }
            cells.append(str(compare(more)))
        known = [each.range for each in some if np.isfinite(each.range)]
        span = float(np.mean(known)) if known else float("nan")
        lines.append(f"| {kind} | {len(some)} | " + " | ".join(cells) + f" | {span:.1f} |")
    return "\n".join(lines)


def _value(surface: Surface, base: str) -> float:
    return surface.read(list_baselines(surface.setting)[base])


def show_planted(surfaces: Sequence[KeptSurface]) -> str:
    """What the judge says of ways of which is known how they compare."""
    lines = []
    for name, less in (("neutral, bought again", 0.0), (f"the same less {PLANTED}", PLANTED)):
        found = judge_itself(surfaces, less)
        difference = compare_settings(found.values, found.beside[NEUTRAL_PLAN], surfaces)
        lines.append(f"- {name}: {difference} over neutral, called {difference.verdict}")
    return "\n".join(lines)


def show_surfaces(surfaces: Sequence[Surface]) -> str:
    """What is asked in each setting, and how well it is known."""
    lines = [
        "| setting | tasks | prices | labels at hand | odd task | campaigns | range | best over"
        " neutral | error between plans | noise of a plan |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in surfaces:
        mine = each.setting
        more = each.best[0] - _value(each, NEUTRAL_PLAN)
        lines.append(
            f"| {mine.name} | {len(mine.tasks)} | {_span(mine.costs)} | {_span(mine.have)} |"
            f" {mine.odd or '-'} | {len(each.campaigns)} | {each.range:.1f} | {more:+.2f} |"
            f" {each.error:.2f} | {each.noise:.2f} |"
        )
    return "\n".join(lines)


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def show_cost(surfaces: Sequence[KeptSurface]) -> str:
    """What it took, and what is kept."""
    lines = []
    for part, what in SPENT.items():
        name = f"seconds of {part}"
        spent = [each.kept.get(number, name) for each in surfaces for number in each.campaigns]
        known = [float(each) for each in spent if each is not None]
        if known:
            lines.append(f"- {what}: {sum(known) / 3600:.1f} hours of CPU ({len(known)} campaigns)")
    size = sum(each.kept.path.stat().st_size for each in surfaces)
    lines.append(f"- kept: {size / 1e6:.1f} MB in {len(surfaces)} files")
    return "\n".join(lines)


def draw(found: Sequence[JudgedWay], surfaces: Sequence[Surface], path: Path) -> None:
    """Each way beside neutral: its interval, and a dot for each data set."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "corpus"
    from matplotlib import pyplot as plots

    rows = []
    for each in found:
        if each.values and each.name != NEUTRAL_PLAN:
            rows.append(
                (each.name, compare_settings(each.values, each.beside[NEUTRAL_PLAN], surfaces))
            )
    rows.sort(key=lambda row: row[1].mean)
    figure, axes = plots.subplots(figsize=(8, 0.42 * len(rows) + 1.6))
    axes.axvline(0, color="0.4", linewidth=1)
    colours = {"better": "#1a7f4b", "worse": "#b3261e", "open": "#5b6b7b"}
    for place, (_, difference) in enumerate(rows):
        colour = colours[difference.verdict]
        dots = list(difference.by_cluster.values())
        axes.scatter(dots, [place] * len(dots), s=14, color=colour, alpha=0.35, linewidths=0)
        axes.errorbar(
            difference.mean, place, xerr=difference.reach, fmt="o", color=colour, capsize=3
        )
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_xlabel("points of D_T ahead of the neutral plan, which trains nothing")
    axes.set_title("left of 0: worse than training nothing", loc="left", fontsize=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.patch.set_facecolor("white")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plots.close(figure)


def make_report(surfaces: Sequence[KeptSurface], picture: Path) -> Mapping[str, str]:
    """The parts of the document that figures are in, by their heading; the picture is drawn into a
    file."""
    found = [judge(name, surfaces) for name in order_ways()]
    found = [each for each in found if each.values]
    main = [each for each in found if each.name in BY_KIND]
    draw(found, surfaces, picture)
    return {
        "All ways": show_ways(found, surfaces),
        "What was stated, and what came": show_calibration(found),
        "By data set, over neutral": show_clusters(found, surfaces, NEUTRAL_PLAN),
        "By data set, over equal budget": show_clusters(found, surfaces, EQUAL_BUDGET),
        "By kind of setting, over neutral": show_kinds(main, surfaces, NEUTRAL_PLAN),
        "By kind of setting, over equal budget": show_kinds(main, surfaces, EQUAL_BUDGET),
        "How much there is to win": show_room(surfaces),
        "Planted differences": show_planted(surfaces),
        "What it took": show_cost(surfaces),
        "Settings": show_surfaces(surfaces),
    }


def write_report(surfaces: Sequence[KeptSurface], path: Path) -> None:
    """Put the figures into a document, below what is written by hand, with a picture beside it."""
    by_hand = path.read_text(encoding="utf-8").split(BEGIN)[0]
    picture = path.with_suffix(".svg")
    parts = [f"![Ways to plan, beside neutral]({picture.name})\n"]
    report = make_report(surfaces, picture)
    parts += [f"## {head}\n\n{body}\n" for head, body in report.items()]
    path.write_text(by_hand + BEGIN + "\n\n" + "\n".join(parts), encoding="utf-8")


BEGIN = "<!-- below: python -m corpus report -->"
"""in the document, where figures begin"""
