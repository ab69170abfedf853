"""What a method would have brought already: it plans from a quarter of the labels at hand and buys
from the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from allotment.data.labels import Labels, shuffle
from allotment.errors import InputError, Mistake, reading
from allotment.estimates.estimating import estimate, prepare
from allotment.formatting import several
from allotment.learners.learner import Learner, train_many
from allotment.machine import settled
from allotment.plan import allocate, baselines
from allotment.problem import Problem, Task
from allotment.progress import NamedProgress

ALWAYS = ("equal budget", "neutral")
"""plans that every method is held against"""
ONE_IN = 4
"""one label in so many is taken as the labels at hand"""
FEWEST = 8
"""labels of some task: below this a quarter of them teaches nothing"""


@dataclass(frozen=True)
class Backtest:
    """What plans from a quarter of the labels brought when they were trained on; gains are D_T in
    %."""

    names: tuple[str, ...]
    """equal budget and neutral, then methods"""
    gains: tuple[tuple[float, ...], ...]
    """[repeat][name]"""
    counts: tuple[tuple[dict[str, int], ...], ...]
    """[repeat][name]: what was bought"""
    have: dict[str, int]
    """labels that plans were made from"""
    budget: str
    """in the problem's money"""

    @property
    def repeats(self) -> int:
        return len(self.gains)

    def gain(self, name: str) -> tuple[float, float]:
        """Mean D_T of a plan, and its standard error."""
        return _mean([row[self._at(name)] for row in self.gains])

    def lead(self, name: str, over: str = "equal budget") -> tuple[float, float]:
        """By how much a plan beats another in the same repeats, and the standard error of that."""
        return _mean([row[self._at(name)] - row[self._at(over)] for row in self.gains])

    @property
    def best(self) -> str:
        """The plan with the greatest mean gain; of equal ones the first."""
        return max(self.names, key=lambda name: self.gain(name)[0])

    def _at(self, name: str) -> int:
        if name not in self.names:
            raise InputError(
                [Mistake("name", f"no plan {name!r}; there are {', '.join(self.names)}")]
            )
        return self.names.index(name)

    def __str__(self) -> str:
        rows = [["plan", "gain in %", *(f"over {name}" for name in ALWAYS), "better"]]
        for name in self.names:
            wins = sum(row[self._at(name)] > row[0] for row in self.gains)
            leads = [
                "-" if name == other else _show(*self.lead(name, other), sign=True)
                for other in ALWAYS
            ]
            better = "-" if name == self.names[0] else f"{wins} of {self.repeats}"
            rows.append([name, _show(*self.gain(name)), *leads, better])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        have = ", ".join(f"{task} {count}" for task, count in self.have.items())
        message = (
            f"{several(self.repeats, 'repeat')}; each plans from {have} and spends {self.budget}."
        )
        return "\n".join([*lines, message, self._verdict()])

    def _verdict(self) -> str:
        if all(each == row[0] for row in self.counts for each in row):
            return (
                "All plans bought the same, so that nothing can be compared: there are too few"
                " labels."
            )
        if self.best == self.names[0]:
            return "Nothing beats equal budget here."
        lead, error = self.lead(self.best)
        if math.isfinite(error) and lead > 2 * error:
            return f"{self.best} is clearly better than equal budget."
        return f"{self.best} leads, but by less than two standard errors: chance may do that."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {
            "names": list(self.names),
            "gains": [list(row) for row in self.gains],
            "counts": [list(row) for row in self.counts],
            "have": self.have,
            "budget": self.budget,
        }

    @classmethod
    @reading("the backtest")
    def from_dict(cls, plain: Mapping[str, Any]) -> Backtest:
        """The backtest that `to_dict` wrote."""
        if missing := [
            Mistake(item.name, "is missing") for item in fields(cls) if item.name not in plain
        ]:
            raise InputError(missing)
        gains = tuple(tuple(map(float, row)) for row in plain["gains"])
        counts = tuple(tuple(dict(each) for each in row) for row in plain["counts"])
        return cls(tuple(plain["names"]), gains, counts, dict(plain["have"]), str(plain["budget"]))


def _mean(values: Sequence[float]) -> tuple[float, float]:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), error


def _show(mean: float, error: float, sign: bool = False) -> str:
    message = f"{mean:+.2f}" if sign else f"{mean:.2f}"
    return message if math.isnan(error) else f"{message} ± {error:.2f}"


@settled(load=False)
def backtest(
    learner: Learner,
    labels: Labels,
    problem: Problem,
    methods: Iterable[str] = ("response",),
    seed: int = 0,
    repeats: int = 4,
    *,
    trainings: int | None = None,
    retrainings: int = 2,
    options: Mapping[str, Any] | None = None,
    progress: NamedProgress | None = None,
) -> Backtest:
    """Plans by each method, equal budget and neutral, from a quarter of the labels, trained out on
    the other three.

    In every repeat another quarter is drawn, all plans buy from the rest in the same order, and are
    trained with the same `retrainings` seeds, so that they differ in their counts alone. Prices and
    weights are the problem's. The budget stands to the quarter as the problem's stands to all
    labels, but is at most half of what the rest costs; other limits are left out. Scores are those
    of the learner's validation labels, or of a part kept out for it. `options` go to every method
    but equal budget and neutral.
    """
    chosen = tuple(dict.fromkeys(methods))
    options = options or {}
    _check(learner, labels, problem, chosen, repeats, retrainings, options)
    names = (*ALWAYS, *(name for name in chosen if name not in ALWAYS))
    everything = Labels({task: labels[task] for task in learner.tasks})
    job = prepare(learner, everything, seed)
    gains, counts, small = [], [], problem
    for repeat in range(repeats):
        if progress is not None:
            progress(repeat, repeats, "backtest")
        scorer, known = job.parts[repeat % job.folds]
        orders = {
            task: shuffle(known[task].instances, "backtest", seed, repeat, task)
            for task in learner.tasks
        }
        quarter, rest = _cut(orders)
        small = _shrink(problem, quarter, rest)
        given = {"trainings": trainings, **options}
        plans = _plan(learner, quarter, small, names, seed + repeat, given)
        bought = [_buy(quarter, rest, plan) for plan in plans]
        gains.append(_train_out(scorer, quarter, bought, problem, seed + repeat, retrainings))
        counts.append(tuple(plans))
    if progress is not None:
        progress(repeats, repeats, "backtest")
    have = {task.name: task.have for task in small.tasks}
    return Backtest(names, tuple(gains), tuple(counts), have, f"{float(small.budget):.6g}")


def _check(
    learner: Learner,
    labels: Labels,
    problem: Problem,
    methods: Sequence[str],
    repeats: int,
    retrainings: int,
    options: Mapping[str, Any],
) -> None:
    mistakes = [
        Mistake(key, f"{value} is below 1")
        for key, value in (("repeats", repeats), ("retrainings", retrainings))
        if value < 1
    ]
    if set(problem.names) != set(learner.tasks):
        what = (
            f"has the tasks {', '.join(problem.names)}, the learner {', '.join(learner.tasks)};"
            " they must be the same"
        )
        mistakes.append(Mistake("problem", what))
    if max((len(labels[task]) for task in learner.tasks), default=0) < FEWEST:
        mistakes.append(
            Mistake("labels", f"no task has {FEWEST} of them; a quarter would teach nothing")
        )
    for name in methods:
        if name not in ALWAYS:
            try:
                prepare(learner, labels, method=name, folds=1, **options)
            except InputError as error:
                mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)


Orders = Mapping[str, Any]


def _cut(orders: Orders) -> tuple[Orders, Orders]:
    """The quarter that is taken to be at hand, and what can be bought."""
    sizes = {task: math.ceil(len(order) / ONE_IN) for task, order in orders.items()}
    quarter = {task: order[: sizes[task]] for task, order in orders.items()}
    return quarter, {task: order[sizes[task] :] for task, order in orders.items()}


def _shrink(problem: Problem, quarter: Orders, rest: Orders) -> Problem:
    """The same prices and weights, with a budget in proportion."""
    tasks = [
        Task(
            each.name,
            each.cost,
            len(quarter[each.name]),
            pool=len(rest[each.name]),
            weight=each.weight,
        )
        for each in problem.tasks
    ]
    here, there = (
        sum((each.cost * len(part[each.name]) for each in tasks), Fraction(0))
        for part in (quarter, rest)
    )
    budget = min(problem.budget * here / (here + there), there / 2)
    return Problem(tasks, max(math.floor(budget / problem.unit), 1) * problem.unit)


def _plan(
    learner: Learner,
    quarter: Orders,
    small: Problem,
    names: Sequence[str],
    seed: int,
    given: Mapping[str, Any],
) -> list[dict[str, int]]:
    fixed = baselines(small)
    plans = []
    for name in names:
        if name in ALWAYS:
            plans.append(fixed[name])
        else:
            found = estimate(learner, Labels(quarter), seed, method=name, **given)
            plans.append(allocate(small, found).counts)
    return plans


def _buy(quarter: Orders, rest: Orders, counts: Mapping[str, int]) -> Labels:
    return Labels(
        {task: np.concatenate([mine, rest[task][: counts[task]]]) for task, mine in quarter.items()}
    )


def _train_out(
    scorer: Learner,
    quarter: Orders,
    bought: Sequence[Labels],
    problem: Problem,
    seed: int,
    retrainings: int,
) -> tuple[float, ...]:
    """D_T of each purchase over the quarter alone; equal purchases are trained once."""
    sets = {labels.fingerprint: labels for labels in (Labels(quarter), *bought)}
    scores, sign = {}, np.ones(len(problem.tasks))
    for key, labels in sets.items():
        states = train_many(scorer, [(labels, seed + number) for number in range(retrainings)])
        found = [[scorer.score(state, name) for name in problem.names] for state in states]
        scores[key] = np.mean([[each.metric for each in row] for row in found], axis=0)
        sign = np.array([1.0 if each.higher_is_better else -1.0 for each in found[0]])
    before = scores[Labels(quarter).fingerprint]
    weights = np.array([task.weight for task in problem.tasks])
    gains = []
    for labels in bought:
        relative = (
            sign * (scores[labels.fingerprint] - before) / np.maximum(np.abs(before), 1e-12) * 100
        )
        gains.append(float(relative @ weights / max(weights.sum(), 1e-300)))
    return tuple(gains)
