"""How much there is to win, how far the figures behind a plan can be trusted, and what would mend
them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from allotment.arrays import Array
from allotment.errors import InputError, Mistake, reading, suggest
from allotment.estimates.curves import Fit, Points
from allotment.estimates.estimates import Estimates
from allotment.estimates.response import Level, Response, find_level, find_scored, find_skill
from allotment.estimates.taba import PairRates, read_pairs
from allotment.estimates.transfer import PLAIN_ESTIMATORS, Transfer
from allotment.estimates.verdict import judge
from allotment.formatting import chance, percent, several
from allotment.plan import Outlook, Plan, allocate, unit_of
from allotment.problem import Problem
from allotment.solver.baselines import equal_budget
from allotment.standing import PERCENT, Standing

NO_DIFFERENCE = 0.01
"""% or labels: less than this no sentence should call more or less"""
IDLE = 0.25
"""a task that gains less than this share of the mean over tasks is dead or saturated"""
SURE_FROM = 0.9
"""how likely something must be to count as known"""
SEEN = 2.0
"""errors of answers by chance above 0 from which a skill is one: of forty dead tasks one has it"""
FIRM = 1.645
"""standard errors by which a denominator must lie above 0"""
WIDE = 0.6
"""width of a cell's interval that still tells a third of a label from none"""
MOST_MORE_TRAININGS = 4.0
"""times as many trainings as were run: the labels at hand are one sample, and beyond that trainings
repeat its accidents"""
MOST_TIMES_MORE = 100
"""times as much of something as there is; more is not worth advising"""
SMALL_SHARE = 0.01
"""of the budget: findings on which less hangs are counted, not listed"""


GRADES = ("sound", "weak", "unusable")
GRADE_WORDS = {"sound": "known", "weak": "not sure", "unusable": "not known"}
"""grades as people read them"""
MOST_FINDINGS = 4
"""that are told in words; the rest are counted"""


@dataclass(frozen=True)
class Finding:
    """One figure that the plan may rest on: whether it can, why, and what would mend it."""

    kind: str
    """method, task, curve or cell"""
    name: str
    grade: str
    """sound, weak or unusable"""
    why: str
    share: float
    """of the budget that would be spent elsewhere without it"""
    remedy: str = ""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Finding:
        """The finding that was written by its fields."""
        found = cls(**{"remedy" if key == "mend" else key: plain[key] for key in plain})
        texts = (found.name, found.why, found.remedy)
        if found.kind not in _TITLES or found.grade not in GRADES:
            known = f"kinds are {', '.join(_TITLES)}; grades are {', '.join(GRADES)}"
            raise InputError([Mistake("findings", f"{found.kind!r}, {found.grade!r}: {known}")])
        if not all(isinstance(each, str) for each in texts) or not 0 <= found.share < math.inf:
            raise InputError([Mistake("findings", "need texts, and a share of 0 or more")])
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, where the remedy is called `mend`."""
        return {"mend" if key == "remedy" else key: value for key, value in asdict(self).items()}

    def __str__(self) -> str:
        remedy = f" What helps: {self.remedy}." if self.remedy else ""
        grade = GRADE_WORDS[self.grade]
        return f"{self.title}: {grade}. {_sentence(self.why)} {tell_share(self.share)}{remedy}"

    @property
    def title(self) -> str:
        """What it is about, in words."""
        if self.kind != "cell":
            return _TITLES[self.kind].format(self.name)
        source, _, target = self.name.partition(" to ")
        return f"What labels of {source} bring to {target}"


def tell_share(share: float) -> str:
    """What a figure matters to the plan."""
    if not share:
        return "The plan would be the same without it."
    return f"Without this figure, {percent(share)} of the money would go elsewhere."


_TITLES = {"method": "Method {}", "task": "Task {}", "curve": "Curve of {}", "cell": ""}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


@dataclass(frozen=True)
class Diagnosis:
    """What a plan can win over equal budget, and what is known about the figures behind it."""

    counts: dict[str, int]
    """the plan"""
    equal: dict[str, int]
    """equal budget"""
    outlook: Outlook
    """of the plan over equal budget"""
    unit: str
    """of the outlook: %, or labels of the gaining tasks' own"""
    findings: tuple[Finding, ...]

    @property
    def standing(self) -> Standing:
        """Whether the plan is better than equal budget."""
        return self.outlook.standing(self.unit)

    @property
    def equal_is_fine(self) -> bool:
        """Whether nothing speaks for the plan that would be missed with equal budget."""
        return not self.standing.is_ahead

    def graded(self, *grades: str) -> tuple[Finding, ...]:
        """The findings of these grades, those first on which most of the budget hangs."""
        return tuple(
            sorted(
                (each for each in self.findings if each.grade in grades),
                key=lambda each: -each.share,
            )
        )

    def __str__(self) -> str:
        lines = [
            _headline(self),
            f"  plan          {_list(self.counts)}",
            f"  equal budget  {_list(self.equal)}",
        ]
        bad = self.graded("weak", "unusable")
        large = [each for each in bad if each.share >= SMALL_SHARE or each.kind == "method"]
        large = large[:MOST_FINDINGS]
        if bad:
            lines += ["", "What to be careful about:", *(f"- {each}" for each in large)]
        if rest := bad[len(large) :]:
            figures = several(len(rest), "other figure" if large else "figure")
            most = max(each.share for each in rest)
            less = percent(max(most, SMALL_SHARE))
            on = "it moves" if len(rest) == 1 else "each moves"
            lines.append(f"- {figures} not known well; {on} at most {less} of the money.")
        if good := self.graded("sound"):
            kinds = [sum(each.kind == kind for each in good) for kind in _TITLES]
            titles = [
                several(count, kind) for kind, count in zip(_TITLES, kinds, strict=True) if count
            ]
            lines += ["", f"Known well: {', '.join(titles)}."]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        plain = {key: getattr(self, key) for key in ("counts", "equal", "unit")}
        return plain | {
            "outlook": self.outlook.to_dict(),
            "findings": [each.to_dict() for each in self.findings],
        }

    @classmethod
    @reading("the diagnosis")
    def from_dict(cls, plain: Mapping[str, Any]) -> Diagnosis:
        """The diagnosis that `to_dict` wrote."""
        known = tuple(item.name for item in fields(cls))
        if mistakes := [Mistake(key, "is missing") for key in known if key not in plain]:
            raise InputError(mistakes)
        findings = tuple(Finding.from_dict(each) for each in plain["findings"])
        counts, equal = (
            {name: int(count) for name, count in plain[key].items()} for key in ("counts", "equal")
        )
        return cls(counts, equal, Outlook.from_dict(plain["outlook"]), str(plain["unit"]), findings)


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _headline(found: Diagnosis) -> str:
    look = found.outlook
    unit = (
        " % of the score"
        if found.unit == PERCENT
        else " (in labels; this method does not say how much score that is)"
    )
    if found.counts == found.equal:
        range_ = "it is equal budget itself"
    elif math.isclose(look.low, look.high):
        range_ = "one estimate, so that nothing says how sure that is"
    else:
        range_ = (
            f"{look.level:.0%} sure to lie between {_two(look.low)} and {_two(look.high)}".replace(
                "%", " %"
            )
        )
        range_ += f", better than equal budget with a chance of {chance(look.chance)}"
    if abs(look.mean) < NO_DIFFERENCE:
        message = f"The plan promises as much as equal budget: {range_}."
    else:
        how = "more" if look.mean > 0 else "less"
        message = (
            f"The plan promises {_two(abs(look.mean))}{unit} {how} than equal budget: {range_}."
        )
    if any(each.kind == "method" for each in found.graded("unusable")):
        return (
            "The plan cannot be relied on: its method found nothing to go by (see below)."
            f" {message}"
        )
    return _HEADLINES[found.standing].format(message)


_HEADLINES = {
    Standing.BETTER: "The plan is worth following. {}",
    Standing.LIKELY_BETTER: "The plan is probably better. {}",
    Standing.EQUAL: "Equal budget is fine. {} That is within the noise.",
    Standing.TOO_LITTLE: "Equal budget is fine. {} That is too little to win.",
    Standing.WORSE: "Take equal budget. {}",
}


def _two(value: float) -> str:
    """Two digits that count, without powers of ten."""
    return f"{float(f'{value:.2g}') or 0.0:,.15g}".replace(",", "") if abs(value) >= 1e-4 else "0"


def diagnose(
    problem: Problem,
    estimates: Estimates,
    *,
    transfer: Transfer | None = None,
    points: Mapping[str, Points] | None = None,
    fits: Mapping[str, Fit] | None = None,
    response: Response | None = None,
) -> Diagnosis:
    """How much the plan from these estimates can win, and how sound each figure behind it is.

    What `al.estimate` measured on the way is looked up in the estimates where it is not given.
    `fits` are the geometric fits that were planned with; left out, the points are fitted anew.
    """
    measured = estimates.about.get("measured", {})
    if transfer is None and "transfer" in measured:
        transfer = Transfer.from_dict(measured["transfer"])
    if points is None:
        points = {task: Points.from_dict(each) for task, each in measured.get("points", {}).items()}
    if response is None and "response" in measured:
        response = Response.from_dict(measured["response"])
    _check(estimates, transfer, points, fits or {}, response)
    plan = allocate(problem, estimates)
    look, bench = estimates.outlook(problem, plan), _Bench(problem, estimates)
    findings = [_judge_method(plan, look, bench, transfer, points)]
    findings += [_judge_task(task, bench, response, plan.counts) for task in estimates.tasks]
    findings += [
        _judge_curve(task, each, (fits or {}).get(task), bench) for task, each in points.items()
    ]
    findings += _judge_pairs(bench)
    if transfer is not None:
        findings += _judge_cells(transfer, bench)
    equal = equal_budget(problem)
    return Diagnosis(plan.counts, equal, look, unit_of(estimates), tuple(findings))


def _check(
    estimates: Estimates,
    transfer: Transfer | None,
    points: Mapping[str, Points],
    fits: Mapping[str, Fit],
    response: Response | None,
) -> None:
    named = {"points": tuple(points), "fits": tuple(fits)}
    named |= {} if transfer is None else {"transfer": transfer.tasks}
    named |= {} if response is None else {"response": response.tasks}
    mistakes = [
        Mistake(where, f"task {name!r} was not estimated; {suggest(name, estimates.tasks)}")
        for where, names in named.items()
        for name in names
        if name not in estimates.tasks
    ]
    if mistakes:
        raise InputError(mistakes)


class _Bench:
    """Plans again with one figure changed, to see how much of the budget hangs on it."""

    def __init__(self, problem: Problem, estimates: Estimates):
        self.problem, self.estimates = problem, estimates
        tasks = [task.with_weight(1.0) for task in problem.tasks]
        self._flat = Problem(tasks, problem.budget, problem.caps, problem.count_implied)
        self.weights = np.array([problem[task].weight for task in estimates.tasks])
        self._before = self._spend(estimates.worths, estimates.shapes)

    def _spend(self, worths: Array, shapes: Array) -> Array:
        """Money for each task. Transfer is additive: what counts is what a label does for all tasks
        together."""
        together = (self.weights @ worths)[:, None, :] * np.eye(len(self.weights))
        if self.estimates.by_pairs:  # there it counts as the label's own already
            together = worths * self.weights
        curves = replace(self.estimates, worths=together, shapes=shapes).mean_gains()
        counts = allocate(self._flat, curves).counts
        return np.array(
            [float(self.problem[task].price(counts[task])) for task in self.estimates.tasks]
        )

    def moved(self, worths: Array | None = None, shapes: Array | None = None) -> float:
        """The share of the budget that is spent elsewhere with other worths or shapes."""
        given = self.estimates
        after = self._spend(
            given.worths if worths is None else worths, given.shapes if shapes is None else shapes
        )
        return self.apart(self._before, after)

    def apart(self, one: Array, other: Array) -> float:
        return float(np.abs(one - other).sum()) / 2 / max(float(self.problem.budget), 1e-300)

    def spent(self, counts: Mapping[str, int]) -> Array:
        return np.array(
            [float(self.problem[task].price(counts[task])) for task in self.estimates.tasks]
        )


# --- the method as a whole ---

_MEASURE_FIRST = "measure (allot estimate; in Python al.estimate)"


def _judge_method(
    plan: Plan,
    look: Outlook,
    bench: _Bench,
    transfer: Transfer | None,
    points: Mapping[str, Points],
) -> Finding:
    about = bench.estimates.about
    name, trainings = str(about.get("method", "unknown")), int(about.get("trainings", 0))
    share = bench.apart(bench.spent(plan.counts), bench.spent(equal_budget(bench.problem)))
    if fallbacks := about.get("fallbacks"):
        given = (
            f"{len(fallbacks)} of {several(len(bench.estimates.tasks), 'task')} have no reduction"
            " rate of their own"
        )
        grade = "unusable" if len(fallbacks) == len(bench.estimates.tasks) else "weak"
        remedy = f"more labels of {', '.join(fallbacks)}, or " if grade == "weak" else ""
        return Finding(
            "method",
            name,
            grade,
            given,
            share,
            f"{remedy}method 'response', which needs no rate of each task",
        )
    if thoughts := _judge_letter(about):
        rest = "method 'taba-mended', which replaces such rates, or 'response', which needs none"
        grades = [*about.get("verdicts", {}).values()]
        grade = "unusable" if grades and {*grades} == {"unusable"} else "weak"
        return Finding("method", name, grade, "; ".join(thoughts), share, rest)
    if transfer is not None and (
        vague := [each for each in transfer.tasks if transfer.firmness[each] < FIRM]
    ):
        why = f"transfer to {', '.join(vague)} is divided by what may be nothing"
        return Finding("method", name, "weak", why, share, "more trainings, or method 'response'")
    if not trainings and not points:
        why = "nothing was measured: the plan follows prices and labels at hand alone"
        return Finding("method", name, "weak", why, share, _MEASURE_FIRST)
    if look.low > 0 or look.chance >= SURE_FROM:
        return Finding(
            "method", name, "sound", f"{percent(look.chance)} of its draws beat equal budget", share
        )
    why = f"its draws disagree: {_two(look.low)} to {_two(look.high)} over equal budget"
    if max(abs(look.low), abs(look.high)) < NO_DIFFERENCE:
        why = "it can't tell its plan from equal budget"
    times = ((look.high - look.low) / 2 / look.mean) ** 2 if look.mean > 0 else math.inf
    if times <= MOST_MORE_TRAININGS:
        remedy = (
            f"about {max(math.ceil(trainings * times), trainings + 1)} trainings in place of"
            f" {trainings}"
        )
        return Finding("method", name, "weak", why, share, remedy)
    remedy = (
        "no number of trainings on these labels would tell; order a first part of the plan, and"
        " estimate again when it is back"
    )
    return Finding("method", name, "weak", why, share, remedy)


def _judge_letter(about: Mapping[str, Any]) -> list[str]:
    """What is to be thought of figures that are the paper's to the letter, and were taken as they
    came."""
    if not about.get("letter") or "scored" not in about:
        return []
    thoughts = []
    bad = [task for task, grade in about.get("verdicts", {}).items() if grade == "unusable"]
    if bad:
        curves = "the curve" if len(bad) == 1 else "the curves"
        carry = (
            "carries no signal; its rate was" if len(bad) == 1 else "carry no signal; rates were"
        )
        thoughts.append(f"{curves} of {', '.join(bad)} {carry} taken as fitted, to the letter")
    probing = about.get("probing", {})
    if left := probing.get("left_out"):
        listed = ", ".join(f"{task} {count}" for task, count in left.items())
        thoughts.append(
            f"of {several(probing.get('probes', 0), 'look')} some had nothing to divide by, or no"
            f" score, and were left out ({listed})"
        )
    return thoughts


# --- tasks ---


def _judge_task(
    task: str, bench: _Bench, response: Response | None, counts: Mapping[str, int]
) -> Finding:
    given, at = bench.estimates, bench.estimates.tasks.index(task)
    share = (
        bench.moved(worths=_like_others(given, bench.weights, at)) if len(given.tasks) > 1 else 0.0
    )

    def find(grade: str, why: str, remedy: str = "") -> Finding:
        return Finding("task", task, grade, why, share, remedy)

    tranche = _tell_tranche(bench, task, counts[task])
    if not given.have[at]:
        return find("unusable", "it has no label yet, so that nothing is known of it", tranche)
    if not given.about.get("trainings", 1):
        return find("unusable", "nothing was measured of it", _MEASURE_FIRST)
    if response is not None and task in response.tasks and not find_scored(response, task).any():
        few = "one label can't be both trained on and scored on"
        many = "no training on its labels could be scored: they are too few, or all alike"
        return find(
            "unusable",
            f"{few if given.have[at] == 1 else many}, so that nothing is known of it",
            tranche,
        )
    level, skill = find_level(response, task), find_skill(response, task)
    if level is not None and level.near_chance:
        grade, why = _judge_chance(level, skill, given.have[at])
        return find(grade, why, tranche)
    count, gains = _own_gains(given)
    idle = float(np.mean(gains[:, at] < IDLE * gains.mean())) if gains.mean() > 0 else 1.0
    low, middle, high = np.quantile(gains[:, at], [(1 - SURE_FROM) / 2, 0.5, (1 + SURE_FROM) / 2])
    known = unit_of(given) == PERCENT
    if not known and task in given.about.get("fallbacks", ()):
        why = "its own curve says nothing, so that how soon its labels are worth less is not known"
        return find("unusable", why, " or ".join(filter(None, ["method 'response'", tranche])))
    message = (
        f": with {several(count, 'more label')} it gains {_two(low)} to {_two(high)} %"
        if known
        else ""
    )
    unseen = ""
    if skill[0] <= SEEN * skill[1]:
        unseen = f"; its answers go with the labels no better than chance ({_tell_skill(skill)})"
    if idle >= SURE_FROM:
        return find("sound", f"more labels bring it little{message}{unseen}")
    if idle > 1 - SURE_FROM:
        why = f"more labels may bring it nothing (a chance of {percent(idle)}){message}{unseen}"
        return find("weak", why, tranche)
    if low < middle / 3:
        trainings = int(given.about.get("trainings", 0))
        times = min(((middle - low) / (middle * 2 / 3)) ** 2, MOST_MORE_TRAININGS)
        remedy = (
            f"about {max(math.ceil(trainings * times), trainings + 1)} trainings in place of"
            f" {trainings}"
        )
        return find(
            "weak",
            f"it learns, but how fast is not known{message}",
            f"{remedy}, or more labels at hand",
        )
    return find("sound", f"it learns{message}")


def _judge_chance(level: Level, skill: tuple[float, float], have: int) -> tuple[str, str]:
    """Grade and reason of a task that scores like chance. Few labels often score worse than the
    best constant answer although much was learnt: the skill tells."""
    chance = "an untrained network"
    if level.is_constant:
        chance = "the best answer that is the same everywhere"
    scores = (
        f"with {several(have, 'label')} it scores {level.score:.3g}, {chance} {level.chance:.3g}"
    )
    if math.isnan(skill[0]):
        return "unusable", f"near chance: {scores}"
    told = _tell_skill(skill)
    if skill[0] <= SEEN * skill[1]:
        return "unusable", f"near chance: {scores} ({told})"
    return "weak", f"its answers go with the labels ({told}), but {scores}: it begins to learn"


def _tell_skill(skill: tuple[float, float]) -> str:
    return f"skill {skill[0]:.2f}, by chance 0 ± {skill[1]:.2f}"


def _own_gains(given: Estimates) -> tuple[int, Array]:
    """A typical number of labels, and [draw, task] what so many more bring to their own task."""
    usual = max(1, round(math.exp(np.mean(np.log(np.maximum(given.have, 1))))))
    own = given
    if not given.by_pairs:
        own = replace(given, worths=given.worths * np.eye(len(given.tasks)))
    return usual, own.gains_of(dict.fromkeys(given.tasks, usual))


def _like_others(given: Estimates, weights: Array, at: int) -> Array:
    """Worths in which one task's labels bring what the mean of the others' do."""
    usual = dict.fromkeys(given.tasks, max(1, round(float(np.mean(given.have)))))
    gains = replace(
        given, worths=np.broadcast_to(np.eye(len(given.tasks)), given.worths.shape)
    ).gains_of(usual)
    total = weights @ given.worths  # for all tasks together
    if given.by_pairs:  # in labels that lose their worth as the task's own do
        total = weights * given.gains_of(usual) / np.maximum(gains, 1e-300)
    wanted = np.delete(total * gains, at, axis=1).mean(axis=1) / np.maximum(gains[:, at], 1e-300)
    worths = given.worths.copy()
    worths[:, at, at] += (wanted - total[:, at]) / weights[at] if weights[at] else 0.0
    return worths


def _tell_tranche(bench: _Bench, task: str, count: int) -> str:
    """What to buy of a task of which little is known, beside what the plan buys of it; nothing
    where none can be bought.

    That is a tenth of the task's equal share of the budget, or a tenth of its labels at hand if
    that is more.
    """
    bought, given = bench.problem[task], bench.estimates
    if bought.ceiling is not None and bought.ceiling <= bought.floor:
        return ""
    fair = float(bench.problem.budget) / len(given.tasks) / float(bought.cost)
    most = fair if bought.ceiling is None else min(fair, bought.ceiling)
    least = max(1, round(min(max(fair, given.have[given.tasks.index(task)]) / 10, most)))
    if count >= least:
        return (
            f"estimate again when the {several(count, 'label')} of it that the plan buys are back"
        )
    return (
        f"the plan buys {count or 'none'}; before it is given up, have {least} labelled"
        f" (least = {least}) and estimate again"
    )


# --- curves and cells ---


def _judge_curve(task: str, points: Points, fit: Fit | None, bench: _Bench) -> Finding:
    verdict = judge(points, fit)
    given, share = bench.estimates, 0.0
    at = given.tasks.index(task)
    if given.law == "geometric" and len(given.tasks) > 1:
        shapes = given.shapes.copy()
        own = np.diagonal(shapes, axis1=1, axis2=2) if given.by_pairs else shapes
        others = 1 - np.exp(
            np.mean(np.log(np.maximum(1 - np.delete(own, at, axis=1), 1e-12)), axis=1)
        )
        if given.by_pairs:
            shapes[:, at, at] = others
        else:
            shapes[:, at] = others
        share = bench.moved(shapes=shapes)
    why = "; ".join(verdict.why) or f"it rises by {verdict.rise:.2g} and bends as the law says"
    remedy = "; ".join(verdict.remedy)
    if task in (borrowed := given.about.get("fallbacks", ())):
        rate = "a usual rate" if len(borrowed) == len(given.tasks) else "the others' mean rate"
        why += f"; {rate} stands in for its own"
    return Finding("curve", task, verdict.grade, why, share, remedy)


def _judge_pairs(bench: _Bench) -> list[Finding]:
    """Curves between tasks, where pairs have rates of their own."""
    given, found = bench.estimates, []
    if not given.by_pairs or "between" not in given.about:
        return []
    rates = PairRates.from_dict(given.about["between"])
    for (source, target), points in read_pairs(given.about.get("measured", {})).items():
        i, j = rates.tasks.index(source), rates.tasks.index(target)
        verdict, grade = judge(points), rates.grades[i][j]
        why = "; ".join(verdict.why) or f"it rises by {verdict.rise:.2g} and bends as the law says"
        shapes, places = given.shapes.copy(), [given.tasks.index(each) for each in (source, target)]
        shapes[:, places[1], places[0]] = shapes[:, places[0], places[0]]
        if not rates.shown[i, j]:
            harm = "" if grade == "unusable" else f"labels of {source} do not help {target}; "
            why += f"; {harm}the rate of {source} stands in for it"
        remedy = "; ".join(verdict.remedy)
        share = bench.moved(shapes=shapes)
        found.append(Finding("curve", f"{source} to {target}", grade, why, share, remedy))
    return found


def _judge_cells(transfer: Transfer, bench: _Bench) -> list[Finding]:
    low, high = transfer.interval(SURE_FROM)
    called, probes = transfer.called(), transfer.counts.sum(axis=0)
    found = []
    for i, source in enumerate(transfer.tasks):
        for j, target in enumerate(transfer.tasks):
            if i == j:
                continue
            firm, width = transfer.firmness[target], float(high[i, j] - low[i, j])
            share = _hangs_on(transfer, bench, i, j)
            interval = f"{low[i, j]:.2g} to {high[i, j]:.2g} of its own"
            if firm < FIRM or not math.isfinite(width):
                grade, why = (
                    "unusable",
                    f"an own mini-batch of {target} helps it by {firm:.1f} standard errors only",
                )
                times = (2 * FIRM / max(firm, 0.1)) ** 2
            elif called[i, j] or width <= WIDE:
                grade, why, times = "sound", f"a label is worth {interval}", 0.0
            else:
                grade, why, times = (
                    "weak",
                    f"a label is worth anything from {interval}",
                    (width / WIDE) ** 2,
                )
            remedy = "" if not times else _more_probes(times, float(probes[j]), transfer.estimator)
            found.append(Finding("cell", f"{source} to {target}", grade, why, share, remedy))
    return found


def _hangs_on(transfer: Transfer, bench: _Bench, i: int, j: int) -> float:
    """The share of the budget that moves if labels of i brought nothing to j."""
    given = bench.estimates
    source, target = (given.tasks.index(transfer.tasks[place]) for place in (i, j))
    worths = given.worths.copy()
    # to the letter the whole row lies on the diagonal, unless it has several rates
    if given.about.get("letter") and not given.by_pairs:
        worths[:, source, source] -= transfer.matrix[i, j]
    else:
        worths[:, target, source] = 0.0
    return bench.moved(worths=worths)


def _more_probes(times: float, probes: float, estimator: str) -> str:
    other = ", or method 'taba-pooled'" if estimator in PLAIN_ESTIMATORS else ""
    if probes < 1:
        return f"more trainings, since none was probed for it{other}"
    if times > MOST_TIMES_MORE:
        return f"more than {MOST_TIMES_MORE * probes:.0f} probes; plan without it{other}"
    return f"about {math.ceil(times * max(probes, 1))} probes in place of {probes:.0f}{other}"
