"""What plans were really worth: gains on the test part over repeated draws and trainings (P15 -
P17)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allotment.amounts import show
from allotment.arrays import Array
from allotment.campaign.state import CampaignState
from allotment.data.source import list_complete
from allotment.errors import InputError, Mistake, reading
from allotment.learners.implying import imply
from allotment.problem import Problem
from allotment.quantiles import student
from allotment.renames import rename_keys

BASE = "labels at hand"
"""the training on what there was before anything was bought: all gains are over it"""
SAME_IMAGES = "equal images*"
"""the paper's baseline of equal numbers of new labels, all tasks on the same instances"""
LEVEL = 0.9


@dataclass(frozen=True)
class Trial:
    """A plan to be tried."""

    name: str
    counts: Mapping[str, int]
    same: bool = False
    """all tasks on the same instances, as far as possible"""

    def rename(self, names: Mapping[str, str]) -> Trial:
        return replace(self, counts=rename_keys(self.counts, names))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores on the test part of several plans, the first being the one that the others are
    compared with."""

    tasks: tuple[str, ...]
    weights: tuple[float, ...]
    higher_is_better: tuple[bool, ...]
    trials: tuple[Trial, ...]
    base: Array
    """[repeat, task]: with the labels at hand alone"""
    scores: Array
    """[trial, repeat, task]; repeat r of every plan draws and trains with the same seeds"""

    def __post_init__(self) -> None:
        base = np.asarray(self.base, dtype=np.float64).reshape(-1, len(self.tasks))
        scores = np.asarray(self.scores, dtype=np.float64)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "scores", scores)
        if not len(self.tasks) == len(self.weights) == len(self.higher_is_better):
            raise InputError(
                [
                    Mistake(
                        "weights", f"are not one for each of {len(self.tasks)} tasks; give as many"
                    )
                ]
            )
        if scores.shape != (len(self.trials), *base.shape):
            what = f"have the shape {scores.shape}; they must be {(len(self.trials), *base.shape)}"
            raise InputError([Mistake("scores", what)])

    @property
    def repeats(self) -> int:
        return len(self.base)

    def rename(self, names: Mapping[str, str]) -> Evaluation:
        """The same with other names for some tasks."""
        tasks = tuple(names.get(task, task) for task in self.tasks)
        return replace(self, tasks=tasks, trials=tuple(each.rename(names) for each in self.trials))

    @property
    def gains(self) -> Array:
        """[trial, repeat, task]: D_i in %, positive where better; over the mean score with the
        labels at hand."""
        start = self.base.mean(axis=0)
        signs = np.where(self.higher_is_better, 100.0, -100.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = signs * (self.scores - start) / np.abs(start)
        return np.where(np.isfinite(gains), gains, np.nan)

    @property
    def totals(self) -> Array:
        """[trial, repeat]: D_T, the weighted mean of the tasks' gains."""
        weights = np.array(self.weights)
        return np.asarray(self.gains @ weights / weights.sum())

    def rows(self) -> list[dict[str, Any]]:
        """Of each plan: D_i and D_T as (mean, standard deviation), and how far the first one is
        ahead, paired."""
        gains, totals = self.gains, self.totals
        found = []
        for number, trial in enumerate(self.trials):
            own = {
                task: [_plain(gains[number, :, i].mean()), _deviation(gains[number, :, i])]
                for i, task in enumerate(self.tasks)
            }
            found.append(
                {
                    "name": trial.name,
                    "counts": dict(trial.counts),
                    "gains": own,
                    "total": [_plain(totals[number].mean()), _deviation(totals[number])],
                    "ahead": None if number == 0 else _interval(totals[0] - totals[number]),
                }
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {
            "tasks": list(self.tasks),
            "weights": list(self.weights),
            "higher_is_better": list(self.higher_is_better),
            "trials": [
                {"name": t.name, "counts": dict(t.counts), "same": t.same} for t in self.trials
            ],
            "base": _table(self.base),
            "scores": [_table(each) for each in self.scores],
        }

    @classmethod
    @reading("the evaluation")
    def from_dict(cls, plain: Mapping[str, Any]) -> Evaluation:
        """The evaluation that `to_dict` wrote."""
        return cls(
            tasks=tuple(plain["tasks"]),
            weights=tuple(plain["weights"]),
            higher_is_better=tuple(plain["higher_is_better"]),
            trials=tuple(Trial(**each) for each in plain["trials"]),
            base=np.array(plain["base"], dtype=np.float64),
            scores=np.array(plain["scores"], dtype=np.float64),
        )


def _interval(differences: Array) -> list[float | None] | None:
    """Mean, and where it lies with a probability of 90 %; None where there are too few to tell."""
    if len(differences) < 2 or not np.isfinite(differences).all():
        return None
    reach = (
        student(0.05, len(differences) - 1)
        * float(differences.std(ddof=1))
        / math.sqrt(len(differences))
    )
    mean = float(differences.mean())
    return [mean, mean - reach, mean + reach]


def _deviation(values: Array) -> float | None:
    return _plain(values.std(ddof=1)) if len(values) > 1 else None


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _table(rows: Array) -> list[list[float | None]]:
    return [[_plain(value) for value in row] for row in rows.tolist()]


def list_trials(
    own: Mapping[str, int],
    baselines: Mapping[str, Mapping[str, int]],
    yours: Sequence[Mapping[str, int]] = (),
) -> list[Trial]:
    """The plan, those of the user's own, and the baselines; not those with the same counts as an
    earlier one."""
    trials = [Trial("this plan", dict(own))]
    trials += [
        Trial(name, dict(counts))
        for name, counts in zip(_name_yours(len(yours)), yours, strict=True)
    ]
    for name, counts in baselines.items():
        if all(counts != trial.counts for trial in trials):
            trials.append(Trial(name, dict(counts)))
        if name == "equal images":
            trials.append(Trial(SAME_IMAGES, dict(counts), same=True))
    return trials


def tell_dear(problem: Problem, yours: Sequence[Mapping[str, int]]) -> list[str]:
    """A warning for each plan of the user's own that costs more than there is."""
    found = []
    for name, counts in zip(_name_yours(len(yours)), yours, strict=True):
        if (cost := problem.price(counts)) > problem.budget:
            over = f"{name} costs {show(cost)}, more than the budget of {show(problem.budget)}"
            found.append(f"{over}: no fair comparison with plans that keep to it")
    return found


def _name_yours(count: int) -> list[str]:
    return [f"yours {number}" if number > 1 else "yours" for number in range(1, count + 1)]


def check_oracle(state: CampaignState) -> None:
    """Raises InputError unless plans can be tried out: somebody must have the labels that would be
    bought."""
    if not state.stock.oracle:
        what = (
            "the data hold no labels but those at hand, so that no plan can be tried out. These"
            f" hold them all: {', '.join(list_complete())}; so does a fully labelled table once"
            " each [[task]] says have = N, the labels to begin with"
        )
        raise InputError([Mistake("", what)])


def whole_problem(state: CampaignState) -> Problem:
    """The problem as it was when nothing had been bought."""
    stock = replace(state.stock, given={})
    plain = state.settings.problem().to_dict()
    start = imply(stock.start, stock.implies) if state.settings.count_implied else stock.start
    for task in plain["tasks"]:
        task["have"] = len(start[task["name"]])
        task["pool"] = stock.count_candidates(task["name"])
    return Problem.from_dict(plain)
