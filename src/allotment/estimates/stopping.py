"""How much to probe: at most what is allowed, and no more once it cannot move the plan out of its
plateau."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.amounts import short
from allotment.arrays import Array
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.probes import Probes, join, make_arms, time_probe
from allotment.estimates.transfer import Transfer, affinity
from allotment.formatting import several
from allotment.gains import Curve, Geometric
from allotment.learners.learner import Learner, labelled
from allotment.plan import Plan, allocate, score
from allotment.problem import Problem

WITHIN = 0.01
"""plans that lose at most this share of the value are as good as the best: a plan's plateau"""
AGREEING_SHARE = 0.9
"""share of the draws whose plans must agree for probing to end"""
STOPPING_DRAWS = 60
"""draws of estimates whose plans are compared; few are enough to see whether they agree"""
STEPS_BETWEEN_PROBES = 10
"""steps between probes: the paper's"""
FEWEST_LOOKS = 6
"""probes that a training has room for, about, however little it may take; fewer where these would
be closer than STEPS_BETWEEN_PROBES, or where the user set a limit"""
PROBING_LIMITS = ("steps", "minutes")
"""in which the budget for probing can be set"""


@dataclass(frozen=True)
class KnownReductions:
    """What is known of each task without any probe, and how it is put together with what probes
    tell."""

    reductions: Mapping[str, float]
    """b of Eq. 4"""
    first: Mapping[str, float] | None = None
    """what the next label adds to its own task, in one unit for all; left out, gains count in
    labels"""
    letter: bool = False
    """what a label does for others counts by the weight of its own task, as in the paper's Eq. 3"""

    def curves(self, matrix: Array, tasks: Sequence[str], problem: Problem) -> dict[str, Curve]:
        """Eq. 4 of each task, by what its labels are worth to all tasks; those that were not probed
        help themselves."""
        sizes = {name: 1.0 if self.first is None else self.first[name] for name in problem.names}
        if not self.letter:
            sizes = {name: size * problem[name].weight for name, size in sizes.items()}
        worth = sizes | dict(
            zip(tasks, (matrix @ [sizes[task] for task in tasks]).tolist(), strict=True)
        )
        return {name: Geometric(worth[name], self.reductions[name]) for name in problem.names}

    def adapt(self, problem: Problem) -> Problem:
        """The problem that goes with the curves: where these have the weights in them already, all
        of its are 1."""
        if self.letter:
            return problem
        tasks = [task.with_weight(1.0) for task in problem.tasks]
        return Problem(tasks, problem.budget, problem.caps, problem.count_implied)


def plateau_reached(
    transfer: Transfer,
    known: KnownReductions,
    problem: Problem,
    *,
    within: float = WITHIN,
    nearly: float = AGREEING_SHARE,
    draws: int = STOPPING_DRAWS,
    seed: int = 0,
) -> bool:
    """Whether nearly every plan that more probing could lead to is as good as the present one.

    Probing to the end would tell which of the draws is true. Its plan is judged by what is thought
    now.
    """
    return plateau_share(transfer, known, problem, within=within, draws=draws, seed=seed) >= nearly


def plateau_share(
    transfer: Transfer,
    known: KnownReductions,
    problem: Problem,
    *,
    within: float = WITHIN,
    draws: int = STOPPING_DRAWS,
    seed: int = 0,
) -> float:
    """The share of the draws whose best plans lie in the plateau of the mean's plan."""
    _check(transfer, known, problem, within)
    if transfer.is_plain and np.isinf(transfer.error).any():
        # a cell without an error does not vary between draws, but nothing is known of it
        return 0.0
    weighed = known.adapt(problem)
    gains = known.curves(transfer.matrix, transfer.tasks, problem)
    best = allocate(weighed, gains)
    enough = best.value - within * abs(best.value)
    inside: dict[tuple[int, ...], bool] = {}
    hits = 0
    for matrix in transfer.draws(draws, seed):
        plan = allocate(weighed, known.curves(matrix, transfer.tasks, problem))
        key = tuple(plan.counts.values())
        if key not in inside:
            inside[key] = _value_of(plan, gains) >= enough
        hits += inside[key]
    return hits / draws


def enough_for(
    problem: Problem,
    known: KnownReductions,
    *,
    estimator: str = "pooled",
    metric: str = "metric",
    fewest: int = 12,
    between: int = 4,
    before: Probes | None = None,
    within: float = WITHIN,
    nearly: float = AGREEING_SHARE,
    seed: int = 0,
) -> Callable[[Probes], bool]:
    """The rule as `probe_training(enough=...)` takes it; `before` are probes of earlier trainings.

    It is asked after every `between` probes, from `fewest` on: of fewer nobody can tell how much
    they vary.
    """

    def enough(probes: Probes) -> bool:
        if len(probes) % between:
            return False
        seen = probes if before is None else join([before, probes])
        if len(seen) < fewest:
            return False
        transfer = affinity(seen, estimator, metric)
        return plateau_reached(transfer, known, problem, within=within, nearly=nearly, seed=seed)

    return enough


@dataclass(frozen=True)
class Allowance:
    """What probing may take in all, and what its parts take, in one unit: gradients, steps or
    minutes."""

    whole: float
    length: int
    """steps of a training"""
    step: float
    """what one of them takes"""
    look: float
    """what one probe takes, its scores included"""
    limit: str = ""
    """one of PROBING_LIMITS where the user set it: then nothing may exceed it"""

    def takes(self, trainings: int, looks: int) -> float:
        """What so many trainings take, each with so many probes."""
        return trainings * (self.length * self.step + looks * self.look)

    def settle(
        self, ahead: int, runs: int | None = None, every: int | None = None
    ) -> tuple[int, int]:
        """How many trainings are probed, and after every how many steps; what is given stays as it
        is."""
        given = {"ahead": ahead, "runs": runs, "every": every}
        wrong = [key for key, value in given.items() if value is not None and value < 1]
        if wrong:
            raise InputError(
                [Mistake(key, f"{given[key]} is below 1; take a whole number") for key in wrong]
            )
        if every is None:
            room = self.whole / (runs or 1) - self.takes(1, 0)
            most = max(room / max(self.look, 1e-12), 1 if self.limit else FEWEST_LOOKS)
            every = max(
                1,
                min(max(STEPS_BETWEEN_PROBES, math.ceil(self.length / most)), self.length - ahead),
            )
        looks = max(self.length - ahead, 0) // every
        if looks < 1:
            what = (
                f"a training takes {self.length} steps, its first probe ends at {every + ahead}; "
            )
            raise InputError([Mistake("every", what + "lower `every` or `ahead`")])
        if runs is None:
            runs = max(1, int(self.whole / self.takes(1, looks) + 1e-9))
        if self.limit and self.takes(runs, looks) > self.whole * (1 + 1e-9):
            what = f"{several(runs, 'training')} with {several(looks, 'probe')} each would take "
            what += (
                f"{self.takes(runs, looks):.4g} of {self.whole:.4g}; allow more, or take fewer"
                " probes"
            )
            raise InputError([Mistake(f"probing: {self.limit}", what)])
        return runs, every


def check_probing(probing: Any, problem: Any, tasks: Sequence[str]) -> list[Mistake]:
    """What is wrong with a budget for probing, and with the problem whose plan ends it."""
    mistakes = []
    if probing is not None and (not isinstance(probing, Mapping) or len(probing) != 1):
        mistakes.append(
            Mistake("probing", f'{short(probing)} is not one limit, such as {{"steps": 5000}}')
        )
    elif probing is not None:
        ((key, value),) = probing.items()
        if key not in PROBING_LIMITS:
            mistakes.append(Mistake("probing", f"no limit {key!r}; {suggest(key, PROBING_LIMITS)}"))
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.integer)
            or not 0 < value < math.inf
        ):
            mistakes.append(Mistake(f"probing: {key}", f"{short(value)} is not a number above 0"))
    if problem is not None and not isinstance(problem, Problem):
        mistakes.append(
            Mistake("problem", f"{short(problem)} is not a Problem; it says prices and budget")
        )
    elif problem is not None:
        for name in sorted({*tasks} ^ {*problem.names}):
            where, known = ("problem", problem.names) if name in tasks else ("learner", tasks)
            mistakes.append(
                Mistake(f"task {name!r}", f"the {where} does not have it; {suggest(name, known)}")
            )
    return mistakes


def allow(
    probing: Mapping[str, float], parts: Sequence[tuple[Learner, Labels]], ahead: int, seed: int
) -> Allowance:
    """A budget that the user set. One in minutes is turned into steps before the start, by timing a
    probe here."""
    ((limit, whole),) = probing.items()
    length, learner, labels = max(
        ((on.steps(some), on, some) for on, some in parts), key=lambda part: part[0]
    )
    if limit == "steps":
        return Allowance(
            whole, length, 1.0, float(ahead * len(make_arms(labelled(learner, labels)))), limit
        )
    timing = time_probe(learner, labels, seed, ahead)
    return Allowance(whole, length, timing.step / 60, timing.probe / 60, limit)


def _value_of(plan: Plan, gains: Mapping[str, Curve]) -> float:
    return score(plan.problem, gains, plan.counts).value


def _check(transfer: Transfer, known: KnownReductions, problem: Problem, within: float) -> None:
    mistakes = [
        Mistake(
            f"task {name!r}",
            f"is in the problem, but not in the transfer; {suggest(name, transfer.tasks)}",
        )
        for name in problem.names
        if name not in transfer.tasks and name not in known.reductions
    ]
    for name in transfer.tasks:
        if name not in problem.names:
            what = f"is in the transfer, but not in the problem; {suggest(name, problem.names)}"
            mistakes.append(Mistake(f"task {name!r}", what))
        if name not in known.reductions:
            mistakes.append(Mistake("reductions", f"there is none for task {name!r}"))
    for name in known.reductions:
        if known.first is not None and name not in known.first:
            mistakes.append(Mistake("first", f"there is none for task {name!r}"))
    if not 0 < within < 1:
        mistakes.append(
            Mistake("within", f"{within} is not between 0 and 1; 0.01 is one in a hundred")
        )
    if mistakes:
        raise InputError(mistakes)
