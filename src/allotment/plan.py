"""The plan: how many labels of each task to buy, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from allotment.amounts import short, show, to_decimal, whole
from allotment.errors import (
    Infeasible,
    InputError,
    Mistake,
    load_library,
    make_hints,
    suggest,
)
from allotment.formatting import amounts, numbers, percent
from allotment.gains import Coupled, Curve, Power, curve_from_dict, find_strange
from allotment.limits import explain_idle_budget, explain_rest, find_broken, find_clashes
from allotment.problem import Problem, Task, show_exact
from allotment.solver import baselines as fixed
from allotment.solver.model import Model, build
from allotment.solver.search import maximise
from allotment.solver.sensitivity import pays, plateau_range, worth_without
from allotment.solver.soundness import examine
from allotment.standing import PERCENT, Standing

NEUTRAL_EXPONENT = 0.4
"""of the neutral plan's power law; see docs/method.md"""


@dataclass(frozen=True)
class Outlook:
    """How a plan compares with another one over all draws; D_T is the weighted mean of the tasks'
    gains in %."""

    mean: float
    """of D_T(plan) - D_T(other)"""
    low: float
    high: float
    level: float
    """the probability that it lies between `low` and `high`"""
    chance: float
    """that the plan beats the other"""
    plateau: dict[str, tuple[int, int]]
    """of each task: the range of its count over plans within 1 % of this one's mean gain"""
    counts: dict[str, tuple[int, int]]
    """of each task: the range of its count, at the same level, over the draws' own best plans"""
    knowing_more: float | None = None
    """by how much D_T of each draw's own best plan is above this one's, in the mean over draws: the
    most that it can bring to measure more; None in files of before it was told"""

    def standing(self, unit: str = PERCENT) -> Standing:
        """Whether the plan is better; `unit` is what the estimates count gains in."""
        return Standing.of_outlook(self.mean, self.low, self.high, self.chance, unit)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        ranges = {
            key: {name: list(ends) for name, ends in getattr(self, key).items()}
            for key in ("plateau", "counts")
        }
        numbers = ("mean", "low", "high", "level", "chance")
        plain = {key: getattr(self, key) for key in numbers} | ranges
        if self.knowing_more is None:
            return plain
        return plain | {"knowing_more": self.knowing_more}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Outlook:
        """The outlook that `to_dict` wrote."""
        numbers, ranges = ("mean", "low", "high", "level", "chance"), ("plateau", "counts")
        if missing := [
            Mistake(f"outlook.{key}", "is missing")
            for key in (*numbers, *ranges)
            if key not in plain
        ]:
            raise InputError(missing)
        plateau, counts = (
            {name: (int(a), int(b)) for name, (a, b) in plain[key].items()} for key in ranges
        )
        known = [key for key in (*numbers, "knowing_more") if key in plain]
        found = {key: _number(f"outlook.{key}", plain[key]) for key in known}
        return cls(**found, plateau=plateau, counts=counts)


@runtime_checkable
class Evidence(Protocol):
    """What was measured, in place of curves that are known: it gives curves for a problem, and how
    sure they are."""

    def gains_for(self, problem: Problem) -> dict[str, Curve]:
        """The curves to plan with."""

    def outlook(self, problem: Problem, plan: Plan) -> Outlook:
        """How the plan compares with equal budget."""


def unit_of(evidence: object) -> str:
    """What estimates count gains in: % of a score unless they say something else."""
    about = getattr(evidence, "about", None)
    return str(about.get("unit", PERCENT)) if isinstance(about, Mapping) else PERCENT


@dataclass(frozen=True)
class Score:
    """What a plan costs and is worth, and the limits that it breaks."""

    name: str
    counts: dict[str, int]
    spent: Decimal
    value: float
    """sum over tasks of weight x gain"""
    gains: dict[str, float]
    """each task's own gain"""
    broken: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool:
        return not self.broken

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "counts": self.counts,
            "spent": str(self.spent),
            "value": self.value,
            "gains": self.gains,
            "broken": list(self.broken),
        }


def check_gains(problem: Problem, gains: Mapping[str, Curve] | Evidence) -> dict[str, Curve]:
    """The gains in task order, or everything that is wrong with them."""
    if isinstance(gains, Evidence):
        gains = gains.gains_for(problem)
    if not isinstance(gains, Mapping):
        raise InputError([Mistake("gains", "must be a dict from task name to curve")])
    names = dict.fromkeys(problem.names)
    hint = make_hints(names)
    mistakes = [mistake for name in names for mistake in _judge_gain(name, gains)]
    mistakes += [
        Mistake("gains", f"no task {name!r}; {hint(name)}") for name in gains if name not in names
    ]
    for name, curve in gains.items():
        for other in _list_coupled(curve):
            if other not in names:
                what = f"coupled to task {other!r}, which is not there; {hint(other)}"
                mistakes.append(Mistake(f"gain of {name!r}", what))
    if mistakes:
        raise InputError(mistakes)
    return {name: gains[name] for name in problem.names}


def _judge_gain(name: str, gains: Mapping[str, Curve]) -> Iterator[Mistake]:
    """What is wrong with the curve of one task."""
    if name not in gains:
        yield Mistake("gains", f"no curve for task {name!r}")
    elif not isinstance(gains[name], Curve):
        what = f"{gains[name]!r} is not a curve such as al.Geometric(1, 0.99)"
        yield Mistake(f"gain of {name!r}", what)
    elif strange := find_strange(gains[name]):
        yield Mistake(f"gain of {name!r}", strange)


def _list_coupled(curve: Curve) -> Iterator[str]:
    """The tasks whose counts a curve takes as well."""
    if isinstance(curve, Curve) and not find_strange(curve):
        for term in curve.terms:
            if isinstance(term, Coupled):
                yield from term.weights


def check_counts(problem: Problem, counts: Mapping[str, Any]) -> dict[str, int]:
    """Counts in task order, a missing task being 0, or everything that is wrong with them."""
    if not isinstance(counts, Mapping):
        raise InputError([Mistake("counts", "must be a dict from task name to a whole number")])
    mistakes, numbers = [], {}
    for name, count in counts.items():
        if name not in problem.names:
            mistakes.append(Mistake("counts", f"no task {name!r}; {suggest(name, problem.names)}"))
            continue
        try:
            numbers[name] = whole(count)
        except ValueError as error:
            mistakes.append(Mistake(f"count of {name!r}", str(error)))
            continue
        if numbers[name] < 0:
            mistakes.append(Mistake(f"count of {name!r}", f"{numbers[name]} is below 0"))
    if mistakes:
        raise InputError(mistakes)
    return {name: numbers.get(name, 0) for name in problem.names}


def score(
    problem: Problem,
    gains: Mapping[str, Curve] | Evidence,
    counts: Mapping[str, Any],
    name: str = "yours",
) -> Score:
    """What a plan of the user's own costs and is worth, and which limits it breaks."""
    gains = check_gains(problem, gains)
    counts = check_counts(problem, counts)
    examine(problem, gains, dict.fromkeys(problem.names, 0), counts)
    return Score(
        name=name,
        counts=counts,
        spent=to_decimal(problem.price(counts)),
        value=value_of(problem, gains, counts),
        gains=own_gains(problem, gains, counts),
        broken=tuple(find_broken(problem, counts)),
    )


def own_gains(
    problem: Problem, gains: Mapping[str, Curve], counts: Mapping[str, int]
) -> dict[str, float]:
    """Each task's own gain from these counts, before weights."""
    return _own_rises(problem, gains, dict.fromkeys(problem.names, 0), counts)


def _own_rises(
    problem: Problem,
    gains: Mapping[str, Curve],
    before: Mapping[str, int],
    after: Mapping[str, int],
) -> dict[str, float]:
    """What each task gains from one plan to another: what is the same in both takes no digit of
    what is not."""
    found = {}
    for task in problem.tasks:
        given = [float(problem.count_labels(task, counts)) for counts in (before, after)]
        rises = []
        for term in gains[task.name].terms:
            low, high = (term.mix(before), term.mix(after)) if isinstance(term, Coupled) else given
            curve = term.inner if isinstance(term, Coupled) else term
            if low < high:
                rises.append(float(curve.rise(low, high - low)))
            elif low > high:
                rises.append(-float(curve.rise(high, low - high)))
        found[task.name] = math.fsum(rises)
    return found


def _rise(
    problem: Problem,
    gains: Mapping[str, Curve],
    before: Mapping[str, int],
    after: Mapping[str, int],
) -> float:
    """By how much one plan is worth more than another."""
    own = _own_rises(problem, gains, before, after)
    return math.fsum(task.weight * own[task.name] for task in problem.tasks)


def _decided(problem: Problem, gains: Mapping[str, Curve], counts: Mapping[str, int]) -> float:
    """What a plan adds to the worth of what must be bought: the part of its value that was to be
    decided."""
    return _rise(problem, gains, floors_of(problem), counts)


def value_of(problem: Problem, gains: Mapping[str, Curve], counts: Mapping[str, int]) -> float:
    """The sum of weight x gain; of two plans the one that adds more to the floors' worth never has
    the lower value."""
    return _rise(problem, gains, dict.fromkeys(counts, 0), floors_of(problem)) + _decided(
        problem, gains, counts
    )


def floors_of(problem: Problem) -> dict[str, int]:
    """The counts that must be bought."""
    return {task.name: task.floor for task in problem.tasks}


@dataclass(frozen=True)
class Plan:
    """How many labels of each task to buy; `allocate` makes it.

    `spent` and `unspent` are exact; `value` is the sum of weight x gain; `gap` is by how much a
    better plan could exceed it: 0 when this one is proved best.
    """

    problem: Problem
    gains: dict[str, Curve]
    counts: dict[str, int]
    value: float
    gap: float = 0.0
    money_worth: float = 0.0
    """worth of the next unit of money (the price of money at the optimum)"""
    name: str = field(default="plan", compare=False)
    evidence: Evidence | None = field(default=None, compare=False, repr=False)
    """what the gains were measured by; None where they were given as curves"""

    def __post_init__(self) -> None:
        strange = {name: find_strange(curve) for name, curve in self.gains.items()}
        if mistakes := [
            Mistake(f"gain of {name!r}", what) for name, what in strange.items() if what
        ]:
            raise InputError(mistakes)

    @cached_property
    def outlook(self) -> Outlook | None:
        """How sure it is that the plan beats equal budget; None where its gains were given as
        curves."""
        return None if self.evidence is None else self.evidence.outlook(self.problem, self)

    @property
    def standing(self) -> Standing:
        """Whether the plan is better than equal budget, by its outlook."""
        if self.outlook is None:
            return Standing.UNKNOWN
        return self.outlook.standing(unit_of(self.evidence))

    @property
    def spent(self) -> Decimal:
        return to_decimal(self.problem.price(self.counts))

    @property
    def unspent(self) -> Decimal:
        return to_decimal(self.problem.budget - self.problem.price(self.counts))

    @property
    def exact(self) -> bool:
        """Whether the plan is proved best."""
        return self.gap == 0.0

    @property
    def own_gains(self) -> dict[str, float]:
        """Each task's own gain, before weights."""
        return own_gains(self.problem, self.gains, self.counts)

    @cached_property
    def why_unspent(self) -> tuple[str, ...]:
        """For each task, what keeps the rest of the money from buying more of it; empty when
        nothing is left."""
        tiny = 1e-12 * max(abs(_decided(self.problem, self.gains, self.counts)), 1e-300)
        worth_more = {
            task.name: _adds(self.problem, self.gains, self.counts, task) > tiny
            for task in self.problem.tasks
        }
        return tuple(explain_rest(self.problem, self.counts, worth_more))

    @cached_property
    def plateau(self) -> dict[str, tuple[int, int]]:
        """The range of each count over all plans within 1 % of this one's value."""
        return self.plateau_within(0.01)

    def plateau_within(self, share: float) -> dict[str, tuple[int, int]]:
        """The range of each count over all plans worth at least (1 - share) of this one."""
        enough = _decided(self.problem, self.gains, self.counts) - share * abs(self.value)
        found = {}
        for index, task in enumerate(self.problem.tasks):
            low, high = plateau_range(
                self._model, index, self.counts[task.name] - task.floor, enough
            )
            found[task.name] = (task.floor + low, task.floor + high)
        return found

    @cached_property
    def break_even(self) -> dict[str, float | None]:
        """The price of a label up to which each task is bought beyond its least, to three digits;
        None if at no price.

        Tiers rise and fall with it in proportion; a fee stays as it is.
        """
        return {
            task.name: self._find_break_even(index) for index, task in enumerate(self.problem.tasks)
        }

    def _find_break_even(self, index: int) -> float | None:
        task, arms = self.problem.tasks[index], self._model.arms_of(index)
        if self._model.low[arms.start] == self._model.high[arms.stop - 1]:
            return None  # nothing to decide, or nothing worth having
        without = worth_without(self._model, index)

        def bought_at(price: float) -> bool:
            try:
                problem = self.problem.with_task(task.with_cost(f"{price:.4g}"))
            except ValueError:  # finer or larger than prices are counted in
                return False
            if find_clashes(problem):
                return False
            model = build(problem, self.gains)
            # what must be bought costs more as well
            return pays(model, index, worth_without(model, index) if task.floor else without)

        inside = outside = float(task.cost)
        if bought_at(inside):
            while bought_at(outside := outside * 2):
                inside = outside
        else:
            while not bought_at(inside := inside / 2):
                outside = inside
                if inside < 1e-9 * float(task.cost):
                    return None
        while outside / inside > 1.001:
            middle = math.sqrt(inside * outside)
            inside, outside = (middle, outside) if bought_at(middle) else (inside, middle)
        return float(f"{inside:.3g}")

    @cached_property
    def _model(self) -> Model:
        return build(self.problem, self.gains)

    def score(self) -> Score:
        """The plan as one row of a comparison."""
        return score(self.problem, self.gains, self.counts, self.name)

    def compare(self, others: Mapping[str, Mapping[str, Any]] | None = None) -> Comparison:
        """This plan beside others (the paper's baselines unless given), best first."""
        others = baselines(self.problem) if others is None else others
        rows = [score(self.problem, self.gains, counts, name) for name, counts in others.items()]
        rows.sort(key=lambda row: -_decided(self.problem, self.gains, row.counts))
        return Comparison((self.score(), *rows))

    def to_frame(self) -> Any:
        """A row for each task, as a frame of pandas: what it costs, has, gets and gains."""
        own, total = self.own_gains, self.problem.price(self.counts)
        rows = []
        for task in self.problem.tasks:
            money = task.price(self.counts[task.name])
            row = {"task": task.name, "price": float(task.cost), "have": task.have}
            row |= {"buy": self.counts[task.name], "money": float(money)}
            row["share"] = float(money / total) if total else 0.0
            rows.append(row | {"gain": own[task.name]})
        return load_library("pandas").DataFrame(rows).set_index("task")

    def __repr__(self) -> str:
        return f"Plan({self})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page of it."""
        return str(load_library("allotment.reports.notebook").draw(self))

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        off = "" if self.exact else f" (a better plan is worth at most {self.gap:.3g} more)"
        return (
            f"{counts}: {show(self.problem.price(self.counts))} of {show(self.problem.budget)}{off}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        plain = {
            "problem": self.problem.to_dict(),
            "gains": {name: curve.to_dict() for name, curve in self.gains.items()},
            "counts": self.counts,
            "spent": show_exact(self.problem.price(self.counts)),
            "unspent": show_exact(self.problem.budget - self.problem.price(self.counts)),
            "value": self.value,
            "gap": self.gap,
            "money_worth": self.money_worth,
        }
        return plain if self.outlook is None else plain | {"outlook": self.outlook.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], curves: Iterable[type[Curve]] = ()) -> Plan:
        """The plan that `to_dict` wrote; `curves` are classes of its curves that no package
        offers."""
        if not isinstance(plain, Mapping):
            raise InputError([Mistake("plan", "must be a table of what `to_dict` writes")])
        needed = ("problem", "gains", "counts", "gap", "money_worth")
        if missing := [Mistake(key, "is missing") for key in needed if key not in plain]:
            raise InputError(missing)
        if not isinstance(plain["gains"], Mapping):
            raise InputError([Mistake("gains", "must be a table from task name to curve")])
        problem, own = Problem.from_dict(plain["problem"]), tuple(curves)
        gains = check_gains(
            problem,
            {name: curve_from_dict(curve, own=own) for name, curve in plain["gains"].items()},
        )
        counts = check_counts(problem, plain["counts"])
        examine(problem, gains, dict.fromkeys(problem.names, 0), counts)
        gap, money_worth = (_number(key, plain[key]) for key in ("gap", "money_worth"))
        plan = cls(problem, gains, counts, value_of(problem, gains, counts), gap, money_worth)
        if "outlook" in plain:  # the evidence stays behind; what it said does not
            vars(plan)["outlook"] = Outlook.from_dict(plain["outlook"])
        return plan


@dataclass(frozen=True)
class Comparison:
    """Plans side by side; the first is the one that the others are held against."""

    rows: tuple[Score, ...]

    def __str__(self) -> str:
        rows, top = self.rows, self.rows[0].value
        columns = [
            ["plan", *("this plan" if row.name == "plan" else row.name for row in rows)],
            *([name, *(str(row.counts[name]) for row in rows)] for name in rows[0].counts),
            ["spent", *amounts([Fraction(row.spent).limit_denominator(10**12) for row in rows])],
            ["value", *numbers([row.value for row in rows])],
            ["of plan", *(percent(row.value / top) if top > 0 else "-" for row in rows)],
        ]
        name, *figures = (max(map(len, column)) for column in columns)
        lines = [
            "  ".join([first.ljust(name), *map(str.rjust, rest, figures)])
            for first, *rest in zip(*columns, strict=True)
        ]
        notes = [f"{row.name} breaks {limit}" for row in rows for limit in row.broken]
        return "\n".join([*lines, *notes])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}


def check_limits(problem: Problem) -> None:
    """Raise Infeasible if no plan can meet the limits, or if the budget buys nothing."""
    clashes = find_clashes(problem)
    idle = None if clashes else explain_idle_budget(problem)
    if clashes or idle:
        raise Infeasible(clashes or [idle or ""])


def allocate(problem: Problem, gains: Mapping[str, Curve] | Evidence) -> Plan:
    """The plan of greatest value that the budget and every limit allow, by given curves or by what
    was measured.

    Exact: no other plan is worth more (`plan.gap` is 0, or says by how much one could be). Of equal
    plans it is the one of least money, then the one that buys more of earlier tasks.

    >>> from allotment import Geometric, Problem, Task, allocate
    >>> problem = Problem([Task("cls", cost=1), Task("seg", cost=20)], budget=6300)
    >>> print(allocate(problem, {"cls": Geometric(1.13, 0.999), "seg": Geometric(2.03, 0.997)}))
    cls 2920, seg 169: 6300 of 6300
    """
    curves = check_gains(problem, gains)
    check_limits(problem)
    return solve_within(problem, curves, as_evidence(gains))


def as_evidence(gains: Mapping[str, Curve] | Evidence) -> Evidence | None:
    """The gains themselves if they were measured."""
    return gains if isinstance(gains, Evidence) else None


def solve_within(
    problem: Problem, gains: dict[str, Curve], evidence: Evidence | None = None
) -> Plan:
    solution = maximise(build(problem, gains))
    counts = {
        task.name: task.floor + int(more)
        for task, more in zip(problem.tasks, solution.counts, strict=True)
    }
    money_worth = float(solution.prices[0]) / float(problem.unit)
    if problem.caps and _is_idle(problem, gains, counts):
        money_worth = 0.0  # the search for several prices at once leaves a little
    return Plan(
        problem,
        gains,
        counts,
        value_of(problem, gains, counts),
        solution.gap,
        money_worth,
        evidence=evidence,
    )


def _is_idle(problem: Problem, gains: dict[str, Curve], counts: dict[str, int]) -> bool:
    """Whether the rest of the money would pay for a lot that is worth something: then another limit
    is scarce."""
    tiny = 1e-12 * abs(_decided(problem, gains, counts))
    return any(_adds(problem, gains, counts, task) > tiny for task in problem.tasks)


def _adds(problem: Problem, gains: dict[str, Curve], counts: dict[str, int], task: Task) -> float:
    """What one more lot of a task adds to a plan; 0 where its pool or the money is at an end."""
    more = counts[task.name] + task.lot
    cost = task.price(more) - task.price(counts[task.name])
    spent = problem.price(counts) + cost > problem.budget
    if spent or (task.ceiling is not None and more > task.ceiling):
        return 0.0
    return _rise(problem, gains, counts, counts | {task.name: more})


def cheapest(
    problem: Problem, gains: Mapping[str, Curve] | Evidence, target: float, task: str | None = None
) -> Plan:
    """The plan of least money whose value is at least `target`, or whose gain for one `task` is.

    The problem's own budget plays no part; the plan's budget is the money that it needs.
    """
    evidence, gains = as_evidence(gains), check_gains(problem, gains)
    wanted = _number("target", target)
    aim = problem if task is None else _only(problem, task)
    if clashes := find_clashes(_unlimited(problem)):
        raise Infeasible(clashes)
    floors = floors_of(problem)
    enough = wanted - 1e-12 * abs(wanted - value_of(aim, gains, floors))

    def reaches(units: int) -> Plan | None:
        plan = solve_within(aim.with_budget(units * problem.unit), gains)
        return plan if plan.value >= enough else None

    low = math.ceil(problem.price(floors) / problem.unit)
    if (found := reaches(low)) is None:
        most = int(_unlimited(problem).budget / problem.unit)
        step = 1
        while (found := reaches(min(low + step, most))) is None:
            if low + step >= most:
                _fail_target(aim, gains, most, wanted, task)
            low, step = low + step, step * 2
        high = min(low + step, most)
        while high - low > 1:
            middle = (low + high) // 2
            plan = reaches(middle)
            low, high, found = (middle, high, found) if plan is None else (low, middle, plan)
    counts = found.counts
    final = problem.with_budget(problem.price(counts))
    value = value_of(problem, gains, counts)
    return Plan(final, gains, counts, value, found.gap, found.money_worth, "cheapest", evidence)


def _number(key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError([Mistake(key, f"{short(value)} is not a finite number")])
    return number


def _only(problem: Problem, name: str) -> Problem:
    """The same purchase, judged by one task's gain alone."""
    if name not in problem.names:
        raise InputError([Mistake("task", f"no task {name!r}; {suggest(name, problem.names)}")])
    tasks = [each.with_weight(1.0 if each.name == name else 0.0) for each in problem.tasks]
    return Problem(tasks, problem.budget, problem.caps, problem.count_implied)


def _unlimited(problem: Problem) -> Problem:
    """The same problem with money for everything that can be bought, or for as much as can be
    counted."""
    ceilings = {task.name: task.ceiling for task in problem.tasks}
    most = Fraction(10**15) * problem.unit
    if None not in ceilings.values():
        most = min(most, problem.price({name: ceiling or 0 for name, ceiling in ceilings.items()}))
    return problem.with_budget(min(most, Fraction(10**15)))


def _fail_target(
    aim: Problem, gains: dict[str, Curve], units: int, wanted: float, task: str | None
) -> None:
    best = solve_within(aim.with_budget(units * aim.unit), gains)
    what = "value" if task is None else f"gain of {task}"
    raise Infeasible(
        [
            f"no plan reaches a {what} of {wanted:g}: with all that can be bought it is"
            f" {best.value:.6g}; lower the target"
        ]
    )


def neutral_gains(problem: Problem, exponent: float = NEUTRAL_EXPONENT) -> dict[str, Curve]:
    """Gains for when nothing is measured yet: every task worth the same, a power law in labels at
    hand plus new ones."""
    return {task.name: Power(1.0, task.have, exponent) for task in problem.tasks}


def baselines(problem: Problem, each_task: bool = True) -> dict[str, dict[str, int]]:
    """What a team would do anyway, under the same limits: the paper's baselines and the neutral
    plan, by name; `each_task` is whether to spend all on one of them, too."""
    check_limits(problem)
    plans = {
        "equal images": fixed.equal_images(problem),
        "equal budget": fixed.equal_budget(problem),
    }
    plans["neutral"] = solve_within(problem, neutral_gains(problem)).counts
    for name in problem.names if each_task else ():
        plans[f"all on {name}"] = fixed.one_task(problem, name)
    return plans
