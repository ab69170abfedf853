"""Of the paper's future work: what two tasks together do for a third, beyond the sum of what each
does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, reading
from allotment.estimates.probes import (
    AHEAD,
    Probes,
    Scores,
    join,
    probe_once,
    to_array,
    to_plain,
)
from allotment.estimates.stopping import STEPS_BETWEEN_PROBES
from allotment.learners.learner import Learner, State, labelled, probe, train

FEWEST_TASKS = 3


@dataclass(frozen=True, eq=False)
class TripleLooks:
    """Scores of looks at three tasks at a time, of one or more trainings."""

    tasks: tuple[str, ...]
    ahead: int
    """steps of each look"""
    runs: tuple[str, ...]
    """of each look, the training it belongs to"""
    at: NDArray[np.int64]
    """of each look, after which step of its training it was taken"""
    metric: Array
    """[look, i, k, j]: of task j, trained with mini-batches of i and k beside its own; not a number
    where two of the three are one"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for what is not a number."""
        return {
            "tasks": list(self.tasks),
            "ahead": self.ahead,
            "runs": list(self.runs),
            "at": self.at.tolist(),
            "metric": to_plain(self.metric),
        }

    @classmethod
    @reading("the looks at three tasks")
    def from_dict(cls, plain: Mapping[str, Any]) -> TripleLooks:
        """The looks that `to_dict` wrote."""
        needs = ("tasks", "ahead", "runs", "at", "metric")
        if missing := [Mistake(key, "is missing") for key in needs if key not in plain]:
            raise InputError(missing)
        count, size = len(plain["runs"]), len(plain["tasks"])
        return cls(
            tuple(plain["tasks"]),
            int(plain["ahead"]),
            tuple(plain["runs"]),
            np.array(plain["at"], dtype=np.int64),
            to_array(plain["metric"], count, size, size, size),
        )


@dataclass(frozen=True, eq=False)
class Triples:
    """What two tasks do for a third beyond the sum of what each of them does."""

    tasks: tuple[str, ...]
    excess: Array
    """[look, i, k, j]: by how much j is better with i and k beside it than the sum of what each of
    them adds; not a number where two of the three are one"""
    own: Array
    """[look, j]: what a second mini-batch of its own adds, the denominator of Eq. 5"""

    @property
    def matrix(self) -> Array:
        """[i, k, j]: the excess in labels of j's own; 0 is what pairs alone foretell."""
        return np.asarray(self.excess.sum(axis=0) / self.own.sum(axis=0))

    @property
    def error(self) -> Array:
        """[i, k, j]: its standard error between looks, which are taken to be independent."""
        looks = len(self.own)
        rest = self.excess - self.matrix * self.own[:, None, None, :]
        spread = np.sqrt((rest**2).sum(axis=0) * looks / max(looks - 1, 1))
        return np.asarray(spread / np.abs(self.own.sum(axis=0)))

    def find_mean(self) -> tuple[Array, Array]:
        """[i, k, j] of the excess as the paper averages Eq. 5: the mean over looks of its ratio to
        what an own mini-batch adds, where that is not 0, and its standard error between looks."""
        size = len(self.tasks)
        mean, error = (np.full((size, size, size), np.nan) for _ in range(2))
        for j in range(size):
            used = self.own[:, j] != 0
            ratios = self.excess[used, :, :, j] / self.own[used, j][:, None, None]
            if len(ratios):
                mean[:, :, j] = ratios.mean(axis=0)
            if len(ratios) > 1:
                error[:, :, j] = ratios.std(axis=0, ddof=1) / np.sqrt(len(ratios))
        return mean, error

    def to_dict(self) -> dict[str, Any]:
        """The figures that people look for, as plain values for JSON."""
        mean, error = self.find_mean()
        told = {"tasks": list(self.tasks), "looks": len(self.own)}
        return told | {"excess": to_plain(mean), "error": to_plain(error)}


def check_triples(tasks: Sequence[str]) -> list[Mistake]:
    """Whether there are three tasks with labels."""
    if len(tasks) >= FEWEST_TASKS:
        return []
    what = f"{len(tasks)} have labels; three are needed for what two do for a third"
    return [Mistake("tasks", what)]


def make_triple_arms(tasks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What a look trains on, named by the places of its tasks: every three of them."""
    some = itertools.combinations(range(len(tasks)), FEWEST_TASKS)
    return {" ".join(map(str, each)): tuple(tasks[place] for place in each) for each in some}


def probe_triples(
    learner: Learner,
    labels: Labels,
    seed: int,
    *,
    every: int = STEPS_BETWEEN_PROBES,
    steps: int = AHEAD,
) -> Triples:
    """A training on all labelled tasks with looks at every two and every three of them on its
    way."""
    pairs: list[Probes] = []

    def look(state: State, tasks: Sequence[str], at: int) -> None:
        pairs.append(probe_once(learner, state, tasks, steps=steps, at=at))

    looks = look_at_triples(learner, labels, seed, every=every, steps=steps, beside=look)
    return find_excess(join(pairs), looks)


def look_at_triples(
    learner: Learner,
    labels: Labels,
    seed: int,
    *,
    every: int = STEPS_BETWEEN_PROBES,
    steps: int = AHEAD,
    run: str = "",
    beside: Callable[[State, Sequence[str], int], None] | None = None,
) -> TripleLooks:
    """A training on all labelled tasks with looks at every three of them on its way, at the steps
    at which `probe_training` looks at pairs; `beside` is called with each state, too."""
    tasks = labelled(learner, labels)
    mistakes = check_triples(tasks)
    last = learner.steps(labels) - steps
    if not mistakes and last < every:
        what = f"{every} leaves no look within {learner.steps(labels)} steps; lower it"
        mistakes = [Mistake("every", what)]
    if mistakes:
        raise InputError(mistakes)
    looks, places = [], []

    def watch(step: int, state: State) -> None:
        if step % every == 0 and step <= last:
            looks.append(_look(learner, state, tasks, steps))
            places.append(step)
            if beside is not None:
                beside(state, tasks, step)

    train(learner, labels, seed, watch=watch)
    at = np.array(places, dtype=np.int64)
    return TripleLooks(tasks, steps, (run,) * len(looks), at, np.stack(looks))


def _look(learner: Learner, state: State, tasks: Sequence[str], steps: int) -> Array:
    """[i, k, j] of one state."""
    size, arms = len(tasks), make_triple_arms(tasks)
    found = np.full((size, size, size), np.nan)
    # at once where the learner may share gradients between arms, as in `probe_once`
    for part in (
        [arms] if hasattr(learner, "probe") else [{name: arm} for name, arm in arms.items()]
    ):
        for name, end in probe(learner, state, part, steps).items():
            members = [int(place) for place in name.split()]
            for j in members:
                i, k = (place for place in members if place != j)
                score = learner.score(end, tasks[j]).metric
                found[i, k, j] = found[k, i, j] = score if np.isfinite(score) else np.nan
    return found


def join_looks(parts: Iterable[TripleLooks]) -> TripleLooks:
    """Looks of several trainings as one."""
    given = list(parts)
    return replace(
        given[0],
        runs=tuple(run for each in given for run in each.runs),
        at=np.concatenate([each.at for each in given]),
        metric=np.concatenate([each.metric for each in given]),
    )


def find_excess(probes: Probes, looks: TripleLooks) -> Triples:
    """What looks at three tasks show beyond looks at two, which were taken at the same steps of the
    same trainings."""
    if (
        (probes.tasks, probes.ahead, probes.runs) != (looks.tasks, looks.ahead, looks.runs)
        or not np.array_equal(probes.at, looks.at)
    ):  # fmt: skip
        what = "are not of the same tasks and steps as the probes; take both of the same trainings"
        raise InputError([Mistake("looks", what)])
    up = _find_signs(probes)
    alone, joint = up * probes.metric.alone, up * probes.metric.joint
    excess = up * looks.metric + alone[:, None, None, :]
    excess = excess - joint[:, :, None, :] - joint[:, None, :, :]
    own = np.diagonal(probes.gains(), axis1=1, axis2=2)  # 0 where rounding is all that it is
    return Triples(probes.tasks, excess, own)


def share_excess(probes: Probes, triples: Triples) -> Probes:
    """The probes of pairs with what is beyond them shared out: of what i and k do for j together,
    beyond what each does, half is i's.

    That is what i adds in the mean over all orders in which the tasks could join (Shapley's value),
    as far as three tasks at a time tell. So what all sources do for j is the sum over them again.
    """
    size = len(probes.tasks)
    i, k, j = np.ogrid[:size, :size, :size]
    apart = (i != k) & (k != j) & (i != j)
    more = np.where(apart, triples.excess, 0.0).sum(axis=2) / 2
    joint = probes.metric.joint + _find_signs(probes) * more
    return replace(probes, metric=Scores(probes.metric.alone, joint))


def _find_signs(probes: Probes) -> Array:
    return np.where(probes.higher_is_better, 1.0, -1.0)
