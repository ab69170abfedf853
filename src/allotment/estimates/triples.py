"""Experimental, of the paper's future work: what two tasks together do for a third, beyond the sum
of what each does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake
from allotment.estimates.probes import AHEAD, make_arms
from allotment.estimates.stopping import STEPS_BETWEEN_PROBES
from allotment.learners.learner import Learner, State, labelled, probe, train


@dataclass(frozen=True, eq=False)
class Triples:
    """Looks at three tasks at a time, of one training."""

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


def probe_triples(
    learner: Learner,
    labels: Labels,
    seed: int,
    *,
    every: int = STEPS_BETWEEN_PROBES,
    steps: int = AHEAD,
) -> Triples:
    """A training on all labelled tasks with looks at every three of them on its way."""
    tasks = labelled(learner, labels)
    if len(tasks) < 3:
        what = f"{len(tasks)} have labels; three are needed for what two do for a third"
        raise InputError([Mistake("tasks", what)])
    last, looks = learner.steps(labels) - steps, []
    if last < every:
        what = f"{every} leaves no look within {learner.steps(labels)} steps; lower it"
        raise InputError([Mistake("every", what)])

    def watch(step: int, state: State) -> None:
        if step % every == 0 and step <= last:
            looks.append(_look(learner, state, tasks, steps))

    train(learner, labels, seed, watch=watch)
    excess, own = (np.stack(each) for each in zip(*looks, strict=True))
    return Triples(tasks, excess, own)


def _look(learner: Learner, state: State, tasks: Sequence[str], steps: int) -> tuple[Array, Array]:
    """[i, k, j] and [j] of one state."""
    size = len(tasks)
    arms = make_arms(tasks)
    for some in itertools.combinations(range(size), 3):
        arms[" ".join(map(str, some))] = tuple(tasks[place] for place in some)
    found = _score(learner, state, arms, tasks, steps)
    excess, own = np.full((size, size, size), np.nan), np.zeros(size)
    for j in range(size):
        alone = found[str(j), j]
        own[j] = found[f"{j} {j}", j] - alone
        for i, k in itertools.permutations([each for each in range(size) if each != j], 2):
            pairs = [found[_name(i, j), j], found[_name(k, j), j]]
            excess[i, k, j] = found[_name(i, k, j), j] + alone - math.fsum(pairs)
    return excess, own


def _name(*places: int) -> str:
    return " ".join(map(str, sorted(places)))


def _score(
    learner: Learner,
    state: State,
    arms: Mapping[str, tuple[str, ...]],
    tasks: Sequence[str],
    steps: int,
) -> dict[tuple[str, int], float]:
    """Of each arm and each of its tasks the metric, up is good."""
    found = {}
    for name, end in probe(learner, state, arms, steps).items():
        for place in {int(each) for each in name.split()}:
            each = learner.score(end, tasks[place])
            found[name, place] = each.metric if each.higher_is_better else -each.metric
    return found
