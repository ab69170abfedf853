"""The reported run on locked data sets: the tables and the pictures of docs/results/locked.md.

Every question of its protocol is a function here, so that what is said and how it is found were
settled before anything was looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from allotment.arrays import Array
from allotment.corpus.judge import Difference, compare
from allotment.corpus.kept import Kept
from allotment.corpus.plans import (
    BEFORE,
    EQUAL_BUDGET,
    EQUAL_IMAGES,
    NEUTRAL_PLAN,
    Counts,
    list_baselines,
    name_run,
)
from allotment.corpus.replay import WITHIN_90, find_planner, list_choices
from allotment.corpus.report import CHANCES, SETTING_KINDS
from allotment.corpus.setting import Setting
from allotment.corpus.surface import KeptSurface, open_surface
from allotment.corpus.ways import (
    BASES,
    DEFAULT_WAY,
    FIRST_EDITION,
    WAYS_BY_TRAININGS,
    WAYS_IN_TRANCHES,
    Choice,
)
from allotment.errors import InputError, Mistake
from allotment.quantiles import student
from corpus.campaigns import TRAININGS
from corpus.rounds import LOCKED_CAMPAIGNS_OF_ROUNDS, LOCKED_CAMPAIGNS_OF_TRAININGS
from corpus.settings import CAMPAIGNS

LOCKED_CAMPAIGNS = 14
"""of each setting: eight with the whole surface, and six more for chances and intervals"""
ONE_ORDER = DEFAULT_WAY
TWO, THREE = WAYS_IN_TRANCHES
PROPOSED = THREE
"""`allot` goes on proposing orders until all is bought; of what was measured this is nearest"""
LOCKED_WAYS = (ONE_ORDER, FIRST_EDITION, *WAYS_IN_TRANCHES, *WAYS_BY_TRAININGS)
"""that are judged, beside what trains nothing"""
ASKED_IN = {
    ONE_ORDER: LOCKED_CAMPAIGNS,
    FIRST_EDITION: LOCKED_CAMPAIGNS,
    NEUTRAL_PLAN: LOCKED_CAMPAIGNS,
    EQUAL_BUDGET: LOCKED_CAMPAIGNS,
    EQUAL_IMAGES: CAMPAIGNS,
    **dict.fromkeys(WAYS_IN_TRANCHES, LOCKED_CAMPAIGNS_OF_ROUNDS),
    **dict.fromkeys(WAYS_BY_TRAININGS, LOCKED_CAMPAIGNS_OF_TRAININGS),
}
"""in how many campaigns of a setting a way is judged"""
LEAST_TO_WIN = 1.0
"""points by which the cross-fitted best is ahead of neutral where a share of that is asked for"""
(HALF_AS_MANY,) = (name for name, count in WAYS_BY_TRAININGS.items() if 2 * count == TRAININGS)
"""trainings, with which the default is held to its first edition"""
LEAST_MEASURED = 1e-6
"""of what a task usually scores with the labels at hand: below it there is nothing to measure, as
where all labels of the test part are the same, and gains in % of it are any number"""
FEWEST_OF_BIN = 30
LEAST_SPREAD = 1e-9
HOLM_LEVEL = 0.05
"""of all data sets together, one-sided"""
BEHIND = -0.3
"""points over neutral, below which no data set may be for sure"""
WON_SHARE = 0.4
HELD = (85, 95)
"""%, of intervals that are to hold 90"""
APART = 5.0
"""points, between chances stated and shares won"""
KINDS: dict[str, Callable[[Setting], bool]] = {
    "ordinary": lambda each: not each.odd,
    "with an odd task": lambda each: bool(each.odd),
}
ROUND_KINDS = KINDS | {name: SETTING_KINDS[name] for name in ("useless", "solved", "noisy", "copy")}
BEGIN = "<!-- below: python -m corpus report --locked -->"
"""in the document, where figures begin"""


@dataclass(frozen=True)
class Tried:
    """A setting with all of its campaigns, of which the first have the whole surface."""

    setting: Setting
    kept: Kept
    campaigns: tuple[int, ...]

    @cached_property
    def whole(self) -> KeptSurface:
        found = open_surface(self.setting, CAMPAIGNS, self.kept)
        assert found is not None
        return found

    @cached_property
    def light(self) -> KeptSurface:
        """All campaigns, whether or not they have the surface."""
        return KeptSurface(self.setting, self.campaigns, self.kept)

    @cached_property
    def choices(self) -> Mapping[str, Mapping[int, Choice]]:
        """Of each way and campaign."""
        surfaces = [self.light]
        return {
            name: list_choices(self.light, name, find_planner(name, surfaces))
            for name in (*LOCKED_WAYS, *BASES)
        }

    def gain(self, way: str, campaign: int) -> float:
        """D_T of what a way plans; not a number where it was not asked, or not trained out."""
        choice = self.choices[way].get(campaign)
        return math.nan if choice is None else self.light.gain(campaign, choice.counts)

    def lead(self, way: str, other: str) -> float:
        """By how many points, meant over the campaigns that have both."""
        apart = [self.gain(way, each) - self.gain(other, each) for each in self.campaigns]
        known = [each for each in apart if math.isfinite(each)]
        return float(np.mean(known)) if known else math.nan

    def narrow(self, ways: Iterable[str]) -> Tried:
        """The same in the campaigns that have a trained plan of each of these ways."""
        names = list(ways)
        there = [
            each
            for each in self.campaigns
            if all(math.isfinite(self.gain(name, each)) for name in names)
        ]
        return replace(self, campaigns=tuple(there))

    @property
    def best_lead(self) -> float:
        """Of the cross-fitted best over neutral."""
        neutral: Counts = list_baselines(self.setting)[NEUTRAL_PLAN]
        return self.whole.best[0] - self.whole.read(neutral)


def open_tried(settings: Sequence[Setting], folder: Path) -> list[Tried]:
    """Settings of which something is kept."""
    found = []
    for setting in settings:
        kept, nothing = Kept(setting.name, folder), (0,) * len(setting.tasks)
        wanted = name_run(nothing, BEFORE - 1)
        there = [
            number
            for number in range(LOCKED_CAMPAIGNS)
            if wanted in (kept.get(number, "plans") or {})
        ]
        if there and open_surface(setting, CAMPAIGNS, kept) is not None:
            found.append(Tried(setting, kept, tuple(there)))
    return found


def leave_out_empty(tried: Sequence[Tried]) -> list[Tried]:
    """The same without campaigns in which an error was 0 with the labels at hand already."""
    found = []
    for each in tried:
        before = each.light.before
        usual = np.median(list(before.values()), axis=0)
        there = [
            number for number in each.campaigns if (before[number] > LEAST_MEASURED * usual).all()
        ]
        found.append(replace(each, campaigns=tuple(there)))
    return found


def compare_ways(
    tried: Sequence[Tried], way: str, other: str, in_range: bool = False
) -> Difference:
    """Over data sets; with `in_range` in % of each setting's range."""
    leads = {each.setting.name: each.lead(way, other) for each in tried}
    return compare_leads(tried, leads, in_range)


def compare_leads(
    tried: Sequence[Tried], leads: Mapping[str, float], in_range: bool = False
) -> Difference:
    """Likewise, of leads of each setting."""
    found = {}
    for each in tried:
        lead = leads[each.setting.name]
        if in_range:
            lead = 100 * lead / each.whole.range if each.whole.range > 0 else math.nan
        found[each.setting.name] = (each.setting.cluster, lead)
    return compare(found)


def find_regret(tried: Sequence[Tried], way: str) -> Difference:
    """By how much the cross-fitted best is ahead, in % of each setting's range."""
    leads = {each.setting.name: each.best_lead - each.lead(way, NEUTRAL_PLAN) for each in tried}
    return compare_leads(tried, leads, in_range=True)


def find_upper_bounds(tried: Sequence[Tried], way: str, other: str) -> dict[str, float]:
    """Of each data set, t over its settings at the level of Holm's first step: none is below a
    number where Holm's method finds no data set below it."""
    by_cluster: dict[str, list[float]] = {}
    for each in tried:
        lead, known = each.lead(way, other), by_cluster.setdefault(each.setting.cluster, [])
        known += [lead] if math.isfinite(lead) else []
    found = {}
    for cluster, leads in sorted(by_cluster.items()):
        if len(leads) < 2:
            found[cluster] = math.inf
            continue
        edge = student(HOLM_LEVEL / len(by_cluster), len(leads) - 1)
        found[cluster] = float(
            np.mean(leads) + edge * np.std(leads, ddof=1) / math.sqrt(len(leads))
        )
    return found


def find_share(tried: Sequence[Tried], way: str) -> tuple[float, int]:
    """What a way wins over neutral of what the cross-fitted best does, as a ratio of sums; and of
    how many settings, those with something to win."""
    some = [each for each in tried if each.best_lead >= LEAST_TO_WIN]
    if not some:
        return math.nan, 0
    won = sum(each.lead(way, NEUTRAL_PLAN) for each in some)
    return won / sum(each.best_lead for each in some), len(some)


@dataclass(frozen=True)
class Stated:
    """What the default said of a campaign, and what came."""

    cluster: str
    chance: float
    chance_measured: float
    """the same where the lead is measured: by one training of either plan, with its luck"""
    lead: float
    is_held: bool
    """by the stated span, widened by the measurement's error"""

    @property
    def is_won(self) -> bool:
        return self.lead > 0


def list_stated(tried: Sequence[Tried]) -> list[Stated]:
    """Of every campaign whose plan was trained out."""
    found = []
    for each in tried:
        error = WITHIN_90 * each.light.error_of_lead
        for number, choice in each.choices[ONE_ORDER].items():
            lead = each.gain(ONE_ORDER, number) - each.gain(EQUAL_BUDGET, number)
            if choice.span is None or choice.chance is None or not math.isfinite(lead):
                continue
            low, mean, high = choice.span
            is_held = (
                mean - math.hypot(mean - low, error)
                <= lead
                <= mean + math.hypot(high - mean, error)
            )
            spread = math.hypot((high - low) / (2 * WITHIN_90), each.light.error_of_lead)
            measured = 0.5 * (1 + math.erf(mean / max(spread, LEAST_SPREAD) / math.sqrt(2)))
            found.append(Stated(each.setting.cluster, choice.chance, measured, lead, is_held))
    return found


def compare_shares(stated: Sequence[Stated], values: Sequence[float]) -> Difference:
    """The mean over data sets of a value of each campaign."""
    rows = zip(stated, values, strict=True)
    return compare({str(at): (each.cluster, value) for at, (each, value) in enumerate(rows)})


def cut_bins(chances: Array) -> list[Array]:
    """Which campaigns belong together: by what they stated, none fewer than FEWEST_OF_BIN."""
    edges = list(CHANCES)
    while len(edges) > 2:
        sizes = [int(_within(chances, *ends).sum()) for ends in pairwise(edges)]
        least = int(np.argmin(sizes))
        if sizes[least] >= FEWEST_OF_BIN:
            break
        # with the smaller neighbour
        left = sizes[least - 1] if least else math.inf
        right = sizes[least + 1] if least + 1 < len(sizes) else math.inf
        del edges[least if left <= right else least + 1]
    return [_within(chances, *ends) for ends in pairwise(edges)]


def _within(chances: Array, low: float, high: float) -> Array:
    return np.asarray((chances >= low) & ((chances < high) | (high == CHANCES[-1])))


# --- the document ---


@dataclass(frozen=True)
class Answer:
    """A question of the protocol, what was found, and whether that passes."""

    question: str
    found: str
    wanted: str
    passes: bool


def show_questions(tried: Sequence[Tried]) -> str:
    """The table of the protocol, with figures and verdicts."""
    lines = ["| question | figure (95 %) | passes where | |", "|---|---|---|---|"]
    for each in list_answers(tried):
        verdict = "passes" if each.passes else "**does not pass**"
        lines.append(f"| {each.question} | {each.found} | {each.wanted} | {verdict} |")
    return "\n".join(lines)


def list_answers(tried: Sequence[Tried]) -> list[Answer]:
    ordinary, odd = ([each for each in tried if kind(each.setting)] for kind in KINDS.values())
    usual, strange = "ordinary settings", "settings with an odd task"
    return [
        _ask_lead(ordinary, f"{usual}: default over neutral", ONE_ORDER, NEUTRAL_PLAN, -0.2),
        _ask_lead(ordinary, f"{usual}: default over equal budget", ONE_ORDER, EQUAL_BUDGET, 0.0),
        _ask_data_sets(ordinary, f"{usual}: default over neutral in each data set (Holm)"),
        _ask_lead(odd, f"{strange}: {PROPOSED} over neutral", PROPOSED, NEUTRAL_PLAN, 0.0),
        _ask_share(odd, "the same as a share of what the best wins"),
        *(_ask_rounds(tried, name) for name in WAYS_IN_TRANCHES),
        _ask_trainings(tried),
        _ask_spans(ordinary, f"intervals (90 %) of the gain over equal budget, {usual}"),
        _ask_spans(odd, f"intervals (90 %) of the gain over equal budget, {strange}"),
        _ask_chances(tried, "chance to beat equal budget: stated less won"),
    ]


def _ask_lead(tried: Sequence[Tried], question: str, way: str, other: str, above: float) -> Answer:
    found = compare_ways(tried, way, other)
    share = compare_ways(tried, way, other, in_range=True)
    passes = found.mean - found.reach > above
    figure = f"{found} points; {share} % of range"
    return Answer(question, figure, f"lower bound above {above:g}", passes)


def _ask_data_sets(tried: Sequence[Tried], question: str) -> Answer:
    bounds = find_upper_bounds(tried, ONE_ORDER, NEUTRAL_PLAN)
    lowest = min(bounds, key=lambda name: bounds[name])
    figure = f"lowest upper bound: {lowest}, {bounds[lowest]:+.2f}"
    return Answer(question, figure, f"none below {BEHIND:g}", bounds[lowest] >= BEHIND)


def _ask_share(tried: Sequence[Tried], question: str) -> Answer:
    share, count = find_share(tried, PROPOSED)
    figure = f"{share:.0%} of {count} settings" if count else "no setting has as much to win"
    return Answer(question, figure, f"{WON_SHARE:.0%} or more", share >= WON_SHARE)


def _ask_rounds(tried: Sequence[Tried], name: str) -> Answer:
    behind = []
    for kind, belongs in ROUND_KINDS.items():
        some = [each for each in tried if belongs(each.setting)]
        found = compare_ways(some, name, ONE_ORDER)
        if found.mean + found.reach < 0:
            behind.append(kind)
    figure = f"clearly behind: {', '.join(behind) or 'nowhere'}"
    question = f"rounds: {name} less one order, by kind of setting"
    return Answer(question, figure, "nowhere", not behind)


def _ask_trainings(tried: Sequence[Tried]) -> Answer:
    some = [each.narrow([HALF_AS_MANY, FIRST_EDITION]) for each in tried]
    found = compare_ways(some, HALF_AS_MANY, FIRST_EDITION)
    share = compare_ways(some, HALF_AS_MANY, FIRST_EDITION, in_range=True)
    question = f"{HALF_AS_MANY}, less the first edition's plans of {TRAININGS}"
    return Answer(question, f"{found} points; {share} % of range", "0 or more", found.mean >= 0)


def _ask_spans(tried: Sequence[Tried], question: str) -> Answer:
    stated = list_stated(tried)
    held = compare_shares(stated, [100.0 * each.is_held for each in stated])
    figure = f"hold in {held.mean:.0f} ± {held.reach:.0f} % ({len(stated)} campaigns)"
    low, high = HELD
    return Answer(question, figure, f"{low} to {high} %", low <= held.mean <= high)


def _ask_chances(tried: Sequence[Tried], question: str) -> Answer:
    stated = list_stated(tried)
    apart = compare_shares(stated, [100 * (each.chance - each.is_won) for each in stated])
    gaps = [_find_gap(stated, belongs) for belongs in cut_bins(_list_chances(stated))]
    bins = ", ".join(f"{each:+.0f}" for each in gaps)
    figure = f"{apart.mean:+.0f} ± {apart.reach:.0f} points; in bins {bins}"
    passes = max(map(abs, gaps), default=math.inf) <= APART
    return Answer(question, figure, f"every bin within {APART:g} points", passes)


def _list_chances(stated: Sequence[Stated]) -> Array:
    return np.array([each.chance for each in stated])


def _find_gap(stated: Sequence[Stated], belongs: Array) -> float:
    some = [each for each, mine in zip(stated, belongs, strict=True) if mine]
    return 100 * float(np.mean([each.chance - each.is_won for each in some]))


def show_bins(stated: Sequence[Stated]) -> str:
    lines = ["| chance stated | campaigns | mean of these | with the luck of a training | won |"
             " lead, points |", "|---|---|---|---|---|---|"]  # fmt: skip
    for belongs in cut_bins(_list_chances(stated)):
        some = [each for each, mine in zip(stated, belongs, strict=True) if mine]
        chances = [each.chance for each in some]
        lines.append(
            f"| {min(chances):.0%} to {max(chances):.0%} | {len(some)} | {np.mean(chances):.0%} |"
            f" {np.mean([each.chance_measured for each in some]):.0%} |"
            f" {np.mean([each.is_won for each in some]):.0%} |"
            f" {np.mean([each.lead for each in some]):+.2f} |"
        )
    return "\n".join(lines)


def _say_lead(tried: Sequence[Tried], way: str, other: str) -> str:
    """In points, and in % of the range."""
    in_range = compare_ways(tried, way, other, in_range=True)
    return f"{compare_ways(tried, way, other)} ({_round(in_range)} %)"


def _round(found: Difference) -> str:
    return f"{found.mean:+.0f} ± {found.reach:.0f}"


def show_rounds(tried: Sequence[Tried]) -> str:
    """Over neutral, and more orders less one, by kind of setting."""
    heads = ["settings", "how many", "one order", *WAYS_IN_TRANCHES]
    heads += [*(f"{name} less one" for name in WAYS_IN_TRANCHES), "the best"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind, belongs in {"all": lambda _: True, **ROUND_KINDS}.items():
        some = [each for each in tried if belongs(each.setting)]
        if not some:
            continue
        cells = [_say_lead(some, name, NEUTRAL_PLAN) for name in (ONE_ORDER, *WAYS_IN_TRANCHES)]
        cells += [_say_lead(some, name, ONE_ORDER) for name in WAYS_IN_TRANCHES]
        best = {each.setting.name: each.best_lead for each in some}
        best_of_range = compare_leads(some, best, in_range=True)
        cells.append(f"{compare_leads(some, best)} ({_round(best_of_range)} %)")
        lines.append(f"| {kind} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def show_trainings(tried: Sequence[Tried]) -> str:
    """The default with fewer trainings and more, and its first edition, in the campaigns that have
    all of them."""
    by_count = {count: name for name, count in WAYS_BY_TRAININGS.items()} | {TRAININGS: ONE_ORDER}
    lines = ["| trainings | over neutral | over equal budget | over the default's own 60 |"
             " regret, % of range |", "|---|---|---|---|---|"]  # fmt: skip
    some = [each.narrow([*by_count.values(), FIRST_EDITION]) for each in tried]
    ways = {str(count): name for count, name in sorted(by_count.items())}
    for label, name in (ways | {f"{TRAININGS}, first edition": FIRST_EDITION}).items():
        cells = [_say_lead(some, name, other) for other in (NEUTRAL_PLAN, EQUAL_BUDGET)]
        cells.append("-" if name == ONE_ORDER else _say_lead(some, name, ONE_ORDER))
        lines.append(f"| {label} | {' | '.join(cells)} | {_round(find_regret(some, name))} |")
    return "\n".join(lines)


def show_data_sets(tried: Sequence[Tried]) -> str:
    """Leads of each data set."""
    asked = {
        "default over neutral, ordinary": (0, ONE_ORDER, NEUTRAL_PLAN),
        "default over equal budget, ordinary": (0, ONE_ORDER, EQUAL_BUDGET),
        "default over neutral, odd": (1, ONE_ORDER, NEUTRAL_PLAN),
        "default over equal budget, odd": (1, ONE_ORDER, EQUAL_BUDGET),
        "default over its first edition, all": (None, ONE_ORDER, FIRST_EDITION),
        f"{PROPOSED} over neutral, odd": (1, PROPOSED, NEUTRAL_PLAN),
        "equal images over neutral, all": (None, EQUAL_IMAGES, NEUTRAL_PLAN),
    }
    names = sorted({each.setting.cluster for each in tried})
    lines = ["| | " + " | ".join(names) + " | all |", "|---" * (2 + len(names)) + "|"]
    for what, (odd, way, other) in asked.items():
        some = [each for each in tried if odd is None or bool(each.setting.odd) == bool(odd)]
        found = compare_ways(some, way, other)
        cells = [
            f"{found.by_cluster[name]:+.2f}" if name in found.by_cluster else "-" for name in names
        ]
        lines.append(f"| {what} | {' | '.join(cells)} | {_say_lead(some, way, other)} |")
    return "\n".join(lines)


def show_settings(tried: Sequence[Tried]) -> str:
    lines = ["| setting | tasks | labels at hand | odd task | range | best over neutral | default"
             " over neutral | default over equal budget | two, three orders over neutral |"
             " noise of a lead |", "|---" * 10 + "|"]  # fmt: skip
    for each in tried:
        mine = each.setting
        orders = ", ".join(f"{each.lead(name, NEUTRAL_PLAN):+.2f}" for name in WAYS_IN_TRANCHES)
        lines.append(
            f"| {mine.name} | {len(mine.tasks)} | {min(mine.have)} to {max(mine.have)} |"
            f" {mine.odd or '-'} | {each.whole.range:.1f} | {each.best_lead:+.2f} |"
            f" {each.lead(ONE_ORDER, NEUTRAL_PLAN):+.2f} |"
            f" {each.lead(ONE_ORDER, EQUAL_BUDGET):+.2f} | {orders} |"
            f" {each.light.error_of_lead / math.sqrt(len(each.campaigns)):.2f} |"
        )
    return "\n".join(lines)


def show_spent(tried: Sequence[Tried]) -> str:
    """What it took, and what is kept."""
    spent = 0.0
    for each in tried:
        for part in ("surfaces", "long", "plans"):
            for number in each.campaigns:
                spent += float(each.kept.get(number, f"seconds of {part}") or 0.0)
    size = sum(each.kept.path.stat().st_size for each in tried)
    count = sum(len(each.campaigns) for each in tried)
    return (
        f"{count} campaigns of {len(tried)} settings; {spent / 3600:.1f} hours of CPU at least"
        f" (what was cut off is not counted); kept: {size / 1e6:.1f} MB."
    )


def _tell_empty(tried: Sequence[Tried], measured: Sequence[Tried]) -> str:
    """Which campaigns the tables below do without, and why."""
    names = [
        f"{each.setting.name} ({', '.join(str(number) for number in out)})"
        for each, rest in zip(tried, measured, strict=True)
        if (out := sorted(set(each.campaigns) - set(rest.campaigns)))
    ]
    return (
        "Decided after the run, so that the tables above stand. A task whose error is 0 with the"
        " labels at hand, since its test labels are all the same, makes a gain in % of that any"
        f" number. Left out here, with the number of the campaign: {', '.join(names) or 'none'}."
        "\n\n"
    )


def draw_stated(stated: Sequence[Stated], path: Path) -> None:
    """Chances beside shares won."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "locked"
    from matplotlib import pyplot as plots

    figure, axes = plots.subplots(figsize=(5.2, 4.6))
    axes.plot([0, 100], [0, 100], color="0.6", linewidth=1)
    for belongs in cut_bins(_list_chances(stated)):
        some = [each for each, mine in zip(stated, belongs, strict=True) if mine]
        chance, won = (
            100 * float(np.mean(values))
            for values in ([each.chance for each in some], [each.is_won for each in some])
        )
        reach = 196 * math.sqrt(won / 100 * (1 - won / 100) / len(some))
        axes.errorbar(chance, won, yerr=reach, fmt="o", color="#1a5fb4", capsize=3)
        axes.annotate(f" {len(some)}", (chance, won), fontsize=8, color="0.35")
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 102)
    axes.set_xlabel("chance to beat equal budget, as stated, %")
    axes.set_ylabel("campaigns in which it was beaten, %")
    axes.set_title("on the line: what is said is what comes", loc="left", fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.patch.set_facecolor("white")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plots.close(figure)


def check_complete(tried: Sequence[Tried]) -> None:
    """Raises InputError unless every plan that the protocol asks for is trained out: those that
    happen to be would be a selection."""
    mistakes = []
    for each in tried:
        where, count = each.setting.name, len(each.campaigns)
        if count < LOCKED_CAMPAIGNS:
            mistakes.append(Mistake(where, f"{count} of {LOCKED_CAMPAIGNS} campaigns are there"))
        for name, most in ASKED_IN.items():
            there = sum(math.isfinite(each.gain(name, number)) for number in range(most))
            if there < most:
                mistakes.append(Mistake(where, f"{name}: {there} of {most} plans are trained out"))
    if mistakes:
        raise InputError(mistakes)


def write_locked(tried: Sequence[Tried], path: Path) -> None:
    """Put the figures into the document, below what is written by hand."""
    check_complete(tried)
    by_hand = path.read_text(encoding="utf-8").split(BEGIN)[0]
    picture, stated = path.with_suffix(".svg"), list_stated(tried)
    draw_stated(stated, picture)
    measured = leave_out_empty(tried)
    parts = {
        "The questions": show_questions(tried),
        "By data set": show_data_sets(tried),
        "One order, and more with the same money": show_rounds(tried),
        "With fewer trainings, and with more": show_trainings(tried),
        "What was stated, and what came": f"![Chances stated and shares won]({picture.name})\n\n"
        + show_bins(stated),
        "Settings": show_settings(tried),
        "What it took": show_spent(tried),
        "Without campaigns that measure nothing": _tell_empty(tried, measured)
        + "\n\n".join(show(measured) for show in (show_questions, show_data_sets, show_rounds)),
    }
    text = "\n".join(f"## {head}\n\n{body}\n" for head, body in parts.items())
    path.write_text(f"{by_hand}{BEGIN}\n\n{text}", encoding="utf-8")
