"""What a label of each task is worth, as a set of draws: each is one way that the truth may be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from allotment.arrays import Array
from allotment.errors import InputError, Mistake, load_library, reading, suggest
from allotment.gains import Coupled, Curve, Geometric, Power
from allotment.plan import Outlook, Plan, check_counts, solve_within
from allotment.problem import Problem
from allotment.renames import rename_keys
from allotment.solver.baselines import equal_budget

SCHEMA = 1
"""of `Estimates.to_dict`; it rises when files of before can no longer be read as they are"""
LAWS = ("power", "geometric")
NEGLIGIBLE = 0.05
"""transfer below this share of the tasks' mean own worth is left out of the mean gains, which keeps
planning quick"""
OWN_PLANS = 40
"""draws that are planned by themselves, to see how far their best plans lie apart"""

DRAWS = 240
"""joint draws of all curves that estimates hold, unless another number is asked for"""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Draws of the gains' parameters. In draw r the gain of task i, in % of its score, is the sum
    over j of

        worths[r, i, j] (n_j^-a - (n_j + N_j)^-a),    a = shapes[r, j]    (law "power")
        worths[r, i, j] (1 - b^N_j) / (1 - b),   b = shapes[r, j]   (law "geometric", the paper's).

    Where pairs of tasks have rates of their own, b = shapes[r, i, j], what labels of j do for all
    tasks counts as j's, as in the paper's Eq. 3: the gain of j is the sum over i.

    >>> some = Estimates(("cls",), (100,), worths=[[[10.0]], [[30.0]]], shapes=[[0.5], [0.5]])
    >>> some.mean_gains()["cls"]
    Power(worth=20.0, have=100.0, exponent=0.5, ceiling=inf)
    """

    tasks: tuple[str, ...]
    have: tuple[int, ...]
    """labels at hand"""
    worths: Array
    """[draw, gaining task, labelled task]"""
    shapes: Array
    """[draw, labelled task]: exponents, or what each label leaves of the worth of the next; [draw,
    gaining task, labelled task] where pairs of tasks have rates of their own"""
    law: str = "power"
    about: Mapping[str, Any] = field(default_factory=dict)
    """where they come from, for people: method, trainings, folds, seed"""

    def __post_init__(self) -> None:
        size = len(self.tasks)
        mistakes = [] if size else [Mistake("tasks", "there is none; give at least one")]
        if len(set(self.tasks)) < size:
            mistakes.append(Mistake("tasks", "one is there twice; every task needs its own name"))
        if len(self.have) != size or any(have < 0 for have in self.have):
            mistakes.append(
                Mistake(
                    "have", f"{list(self.have)} is not a number of labels for each of {size} tasks"
                )
            )
        if self.law not in LAWS:
            mistakes.append(Mistake("law", f"no law {self.law!r}; {suggest(self.law, LAWS)}"))
        for key, shape in (("worths", (size, size)), ("shapes", (size,))):
            values = np.asarray(getattr(self, key), dtype=np.float64)
            object.__setattr__(self, key, values)
            is_paired = key == "shapes" and values.shape[1:] == (size, size)
            if (values.shape[1:] != shape and not is_paired) or not len(values):
                wanted = ", ".join(map(str, shape))
                mistakes.append(
                    Mistake(key, f"has the shape {values.shape}; it must be (draws, {wanted})")
                )
            elif not np.isfinite(values).all():
                mistakes.append(
                    Mistake(
                        key, "not all are finite numbers; leave out the draws where they are not"
                    )
                )
        raise_any(mistakes or self._check_shapes())

    def _check_shapes(self) -> list[Mistake]:
        if len(self.worths) != len(self.shapes):
            return [
                Mistake(
                    "shapes",
                    f"{len(self.shapes)} draws, but worths have {len(self.worths)}; give as many",
                )
            ]
        if self.law == "power" and self.by_pairs:
            what = f"has the shape {self.shapes.shape}; pairs have rates of the geometric law alone"
            return [Mistake("shapes", what)]
        if self.law == "power" and self.shapes.min() <= 0:
            return [Mistake("shapes", "some are 0 or less; an exponent is above 0")]
        if self.law == "geometric" and not ((self.shapes >= 0) & (self.shapes <= 1)).all():
            return [
                Mistake(
                    "shapes",
                    "some are not between 0 and 1, as what a label leaves of the next one's"
                    " worth is",
                )
            ]
        return []

    def __repr__(self) -> str:
        have = ", ".join(
            f"{task} {count}" for task, count in zip(self.tasks, self.have, strict=True)
        )
        by = self.about.get("method", "unknown")
        return f"Estimates(by {by}, {self.draws} draws, labels at hand: {have})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page of it."""
        return str(load_library("allotment.reports.notebook").draw(self))

    @property
    def draws(self) -> int:
        """How many there are."""
        return len(self.worths)

    @property
    def by_pairs(self) -> bool:
        """Whether pairs of tasks have rates of their own."""
        return self.shapes.ndim == 3

    @property
    def pair_shapes(self) -> Array:
        """[draw, gaining task or 1, labelled task]: the shapes, to go with the worths."""
        return self.shapes if self.by_pairs else self.shapes[:, None, :]

    def rename(self, names: Mapping[str, str]) -> Estimates:
        """The same with other names for some tasks, also in what was measured."""
        if not names:
            return self
        tasks = tuple(names.get(task, task) for task in self.tasks)
        return replace(self, tasks=tasks, about=_rename_about(self.about, names))

    def gains(self, draw: int, weights: Mapping[str, float] | None = None) -> dict[str, Curve]:
        """The curves of one draw; see `mean_gains` for `weights`."""
        return self._curves(self.worths[draw], self.shapes[draw], weights)

    def mean_gains(self, weights: Mapping[str, float] | None = None) -> dict[str, Curve]:
        """One curve of the law for each pair of tasks that stands for the mean over draws.

        Its shape is the draws' middle one; as many labels more as are typically there are worth the
        draws' mean. Help from another task's labels is a coupled term. Harm to another task cannot
        be one, since it would not be concave; it is taken off the worth of the labels that do it,
        for tasks of these `weights` (1 if not given).
        """
        return self._curves(*self.mean_pairs(), weights)

    def mean_pairs(self) -> tuple[Array, Array]:
        """The worths [gaining task, labelled task] and shapes [labelled task], or [gaining task,
        labelled task] where pairs have rates of their own, that stand for the mean over draws,
        before harm is taken off anything; see `mean_gains`."""
        size, usual = len(self.tasks), math.exp(np.mean(np.log(self._start)))
        pairs = self.pair_shapes
        middle = np.apply_along_axis(self._middle, 0, pairs)
        here, there = (
            np.broadcast_to(
                self._gather(each, np.full(size, usual), np.full(size, usual)),
                (len(each), size, size),
            )
            for each in (pairs, middle[None])
        )
        worths = np.zeros((size, size))
        for i in range(size):
            for j in range(size):
                # sums that do not depend on the order of draws: tasks of which nothing is known
                # come out the same
                mean = math.fsum(self.worths[:, i, j] * here[:, i, j]) / self.draws
                worths[i, j] = _rounded(mean / there[0, i, j])
        if self.by_pairs:  # each task has one curve then, however many parts it has
            return worths, middle
        small = NEGLIGIBLE * np.mean(np.abs(np.diag(worths)))
        worths[(np.abs(worths) < small) & ~np.eye(size, dtype=bool)] = 0.0
        return worths, middle[0]

    def gains_for(self, problem: Problem) -> dict[str, Curve]:
        """The mean gains for a problem with the same tasks, by its weights."""
        self._check_tasks(problem)
        return self.mean_gains({task.name: task.weight for task in problem.tasks})

    def gains_of(self, counts: Mapping[str, int]) -> Array:
        """[draw, task]: the gain of each task from buying these numbers of labels, in % of its
        score."""
        new = np.array([counts[task] for task in self.tasks], dtype=float)
        rise = self._gather(self.shapes, self._start, new)
        if self.by_pairs:
            return np.asarray((self.worths * rise).sum(axis=1))
        return np.asarray(np.einsum("rij,rj->ri", self.worths, rise))

    def first_gains(self) -> Array:
        """[draw, task]: what the next label adds to its own task, in % of the task's score."""
        if self.by_pairs:
            return np.asarray(self.worths.sum(axis=1))
        own = np.diagonal(self.worths, axis1=1, axis2=2)
        if self.law == "geometric":
            return np.asarray(own)
        return np.asarray(self.shapes * own * self._start ** (-self.shapes - 1))

    def gain_over(
        self, problem: Problem, plan: Plan | Mapping[str, int], other: Mapping[str, int]
    ) -> Array:
        """[draw]: D_T(plan) - D_T(other)."""
        self._check_tasks(problem)
        weights = np.array([problem[task].weight for task in self.tasks])
        counts = plan.counts if isinstance(plan, Plan) else check_counts(problem, plan)
        more = self.gains_of(counts) - self.gains_of(check_counts(problem, other))
        return np.asarray(more @ weights / max(weights.sum(), 1e-300))

    def outlook(
        self,
        problem: Problem,
        plan: Plan,
        baseline: Mapping[str, int] | None = None,
        level: float = 0.9,
    ) -> Outlook:
        """What the draws say about a plan against a baseline (equal budget unless given)."""
        if not 0 < level < 1:
            raise InputError(
                [Mistake("level", f"{level} is not between 0 and 1; 0.9 means nine of ten")]
            )
        more = self.gain_over(
            problem, plan, equal_budget(problem) if baseline is None else baseline
        )
        edges = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(more, edges)
        draws, plans = self.list_own_plans(problem)
        own = [[counts[name] for name in problem.names] for counts in plans]
        best = np.quantile(np.array(own, dtype=float), edges, axis=0)
        lost = [
            self.gain_over(problem, counts, plan.counts)[draw]
            for draw, counts in zip(draws, plans, strict=True)
        ]
        return Outlook(
            mean=float(more.mean()),
            low=float(low),
            high=float(high),
            level=level,
            chance=float(np.mean(more > 0)),
            plateau=plan.plateau,
            counts={
                name: (round(a), round(b))
                for name, (a, b) in zip(problem.names, best.T, strict=True)
            },
            # below 0 where labels that imply others are counted, which draws do not
            knowing_more=max(0.0, float(np.mean(lost))),
        )

    def list_own_plans(self, problem: Problem) -> tuple[list[int], list[dict[str, int]]]:
        """Some draws, and the best plan of each as if it were the truth."""
        weights = np.array([problem[task].weight for task in self.tasks])
        tasks = [task.with_weight(1.0) for task in problem.tasks]
        flat = Problem(tasks, problem.budget, problem.caps, problem.count_implied)
        found, chosen = [], np.unique(np.linspace(0, self.draws - 1, OWN_PLANS).astype(int))
        for draw in chosen:
            # transfer is additive, so what counts for the plan is what a label does for all tasks
            # together
            worths = self.worths[draw]
            together = worths * weights if self.by_pairs else np.diag(weights @ worths)
            # which also plans for no money at all, where a goal is reached already
            plan = solve_within(flat, self._curves(together, self.shapes[draw], None))
            found.append(plan.counts)
        return chosen.tolist(), found

    @property
    def _start(self) -> Array:
        """Labels at hand, at least 1: n^-a has no value at 0."""
        return np.asarray(np.maximum(np.array(self.have, dtype=float), 1.0))

    def _gather(self, shapes: Array, have: Array, new: Array) -> Array:
        """[draw, labelled task], or as shapes are: what so many new labels add, of a worth of
        1."""
        if self.law == "power":
            return np.asarray(have**-shapes * -np.expm1(-shapes * np.log1p(new / have)))
        return np.asarray(
            Geometric.rise_of(
                (1.0, shapes), np.zeros_like(shapes), np.broadcast_to(new, shapes.shape)
            )
        )

    def _middle(self, shapes: Array) -> float:
        """The geometric mean of exponents, or of how many labels a geometric curve reaches."""
        if self.law == "power":
            return _rounded(math.exp(math.fsum(np.log(shapes)) / self.draws))
        return 1 - math.exp(math.fsum(np.log(np.maximum(1 - shapes, 1e-12))) / self.draws)

    def _check_tasks(self, problem: Problem) -> None:
        mistakes = [
            Mistake("estimates", f"nothing is known of task {name!r}; {suggest(name, self.tasks)}")
            for name in problem.names
            if name not in self.tasks
        ]
        mistakes += [
            Mistake(
                "problem", f"no task {name!r}, which was estimated; {suggest(name, problem.names)}"
            )
            for name in self.tasks
            if name not in problem.names
        ]
        raise_any(mistakes)

    def _curves(
        self, worths: Array, shapes: Array, weights: Mapping[str, float] | None
    ) -> dict[str, Curve]:
        if self.by_pairs:
            return gather_cross(self.tasks, worths.T, shapes.T)
        given = weights or {}
        worths = _fold_harm(worths, np.array([given.get(task, 1.0) for task in self.tasks]))

        def curve(i: int, j: int) -> Curve:
            worth, shape = float(worths[i, j]), float(shapes[j])
            return (
                Power(worth, self.have[j], shape)
                if self.law == "power"
                else Geometric(worth, shape)
            )

        found: dict[str, Curve] = {}
        for i, task in enumerate(self.tasks):
            found[task] = curve(i, i)
            for j, other in enumerate(self.tasks):
                if j != i and worths[i, j] > 0:
                    found[task] += Coupled(curve(i, j), {other: 1})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {
            "schema": SCHEMA,
            "tasks": list(self.tasks),
            "have": list(self.have),
            "law": self.law,
            "worths": self.worths.tolist(),
            "shapes": self.shapes.tolist(),
            "about": dict(self.about),
        }

    @classmethod
    @reading("the estimates")
    def from_dict(cls, plain: Mapping[str, Any]) -> Estimates:
        """The estimates that `to_dict` wrote."""
        keys = ("schema", "tasks", "have", "law", "worths", "shapes", "about")
        raise_any([Mistake(key, "is missing") for key in keys if key not in plain])
        if plain["schema"] != SCHEMA:
            what = (
                f"{plain['schema']!r} is not {SCHEMA}; estimate again, or use the version that"
                " wrote it"
            )
            raise InputError([Mistake("schema", what)])
        arrays = {}
        mistakes = []
        for key in ("worths", "shapes"):
            try:
                arrays[key] = np.array(plain[key], dtype=np.float64)
            except (TypeError, ValueError):
                mistakes.append(Mistake(key, "is not a table of numbers with rows of one length"))
        if not isinstance(plain["about"], Mapping):
            mistakes.append(Mistake("about", "must be a table, such as {method = 'response'}"))
        elif not isinstance(plain["about"].get("measured", {}), Mapping):
            mistakes.append(Mistake("about.measured", "must be a table of what was measured"))
        raise_any(mistakes)
        return cls(
            tuple(plain["tasks"]),
            tuple(plain["have"]),
            **arrays,
            law=plain["law"],
            about=dict(plain["about"]),
        )


def _rename_about(about: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """What is told by task, where methods of this package tell it."""

    def rename(tasks: Sequence[str]) -> list[str]:
        return [names.get(task, task) for task in tasks]

    found = dict(about)
    for key in {"rates", "verdicts", "fits"} & found.keys():
        found[key] = rename_keys(found[key], names)
    if "between" in found:
        found["between"] = found["between"] | {"tasks": rename(found["between"]["tasks"])}
    for key, parts in _TOLD_BY_TASK.items():
        if isinstance(told := found.get(key), Mapping):
            by_task = {part: rename_keys(told[part], names) for part in parts if part in told}
            found[key] = {**told, **by_task}
    if "fallbacks" in found:
        found["fallbacks"] = rename(found["fallbacks"])
    measured = dict(found.get("measured", {}))
    for key in {"response", "transfer", "between", "triples"} & measured.keys():
        measured[key] = measured[key] | {"tasks": rename(measured[key]["tasks"])}
    if "informativeness" in measured.get("transfer", {}):
        worth = rename_keys(measured["transfer"]["informativeness"], names)
        measured["transfer"] = measured["transfer"] | {"informativeness": worth}
    if "points" in measured:
        measured["points"] = rename_keys(measured["points"], names)
    return found | ({"measured": measured} if measured else {})


_TOLD_BY_TASK = {
    "scored": ("labels", "trained"),
    "settled": ("sizes",),
    "probing": ("left_out",),
}
"""parts of what is told that are told of each task"""


def raise_any(mistakes: list[Mistake]) -> None:
    """All of them at once, if there are any."""
    if mistakes:
        raise InputError(mistakes)


def _rounded(value: float) -> float:
    """Without the last digits, in which sums of the same numbers may differ."""
    return float(f"{value:.10g}")


def gather_cross(tasks: Sequence[str], matrix: Array, rates: Array) -> dict[str, Curve]:
    """Of the paper's future work: with a reduction rate for each pair of tasks N labels of i are
    worth the sum over j of I_(i -> j) (1 - b_ij^N) / (1 - b_ij).

    `matrix` and `rates` are [i, j]. Harm to another task would not be concave; it is taken off what
    the labels do for their own task and, where that does not last, off what they do for others.
    """
    found: dict[str, Curve] = {}
    folded = _fold_harm(matrix.T, np.ones(len(tasks))).T
    for i, task in enumerate(tasks):
        curve: Curve = Geometric(float(folded[i, i]), float(rates[i, i]))
        for j in range(len(tasks)):
            if j != i and folded[i, j] > 0:
                curve += Geometric(float(folded[i, j]), float(rates[i, j]))
        found[task] = curve
    return found


def _fold_harm(worths: Array, weights: Array) -> Array:
    """The same worth of each task's labels for all tasks together, with no cell below 0 off the
    diagonal."""
    folded = worths.copy()
    for j, weight in enumerate(weights):
        column = folded[:, j].copy()
        column[j] = 0.0
        harm = float(weights @ np.minimum(column, 0.0)) / weight if weight > 0 else 0.0
        help_ = np.maximum(column, 0.0)
        own = folded[j, j] + harm
        if own < 0 and help_.any():  # what the own worth cannot bear comes off the help
            total = float(weights @ help_) / weight if weight > 0 else 0.0
            left = max(0.0, total + own)
            help_, own = help_ * (left / total if total > 0 else 0.0), min(0.0, total + own)
        folded[:, j] = help_
        folded[j, j] = own
    return folded
