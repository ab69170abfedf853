"""Members of one training that each leave out other labels: what they say of these tells how far
they are to be trusted beyond the best answer that is the same for all.

A model of few labels can be worse than that constant. Its answers are therefore drawn towards it:
answer = constant + trust (mean of the members - constant), with the trust between 0 and 1 that
would have been best on labels which members did not see, less what may be chance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray, Array, Ints
from allotment.data.dataset import Dataset, Instances, Target
from allotment.data.labels import Labels, Split, TaskLabels, shuffle
from allotment.errors import InputError, Mistake
from allotment.learners.answers import (
    ANSWERED_KINDS,
    find_constant,
    list_errors,
    measure_answers,
)
from allotment.learners.learner import Measure
from allotment.learners.plain_arrays import MAYBE_CHANGED, find_strange, read_arrays, save_arrays
from allotment.learners.recipe import MOST_MEMBERS
from allotment.learners.scored import ScoredOnData

MEMBERS = 4
"""of one training, each without a fourth of the labels"""
FEWEST_TRUSTED = 8
"""labels of a task from which on its members are trusted at all"""
TRUSTS_FILE = "trusts.safetensors"
"""in the folder that a state is saved to"""
LEAST_TRUST = 0.01
"""of members that were trained: it moves no answer by much, and keeps them in their order, which is
what metrics of ranks are about, such as the area under the ROC curve"""
TRUSTS = np.linspace(0.0, 1.0, 21)
"""among which the best is looked for"""
DOUBT_OF_NUMBERS, DOUBT_OF_CLASSES = 0.5, 2.0
"""how many times its own noise must be won for half of the trust: less for numbers, whose errors
are what trust is found by, than for classes, where better probabilities may still be wrong"""


@dataclass(frozen=True, eq=False)
class Deal:
    """Which member leaves out which labelled instance."""

    instances: Instances
    """labelled for any task, sorted"""
    left_out: Ints
    """of each of them, the member that does not see it"""
    members: int

    def find_member(self, instances: Instances) -> Ints:
        """Of each labelled instance, the member that does not see it."""
        return self.left_out[np.searchsorted(self.instances, instances)]

    def part(self, labels: Labels, member: int) -> Labels:
        """The labels that a member sees; of tasks with too few to trust, all of them."""
        seen = {}
        for task, mine in labels.items():
            kept = self.find_member(mine.instances) != member
            seen[task] = _take(mine, kept) if len(mine) >= FEWEST_TRUSTED else mine
        return Labels(seen)


def _take(labels: TaskLabels, kept: NDArray[np.bool_]) -> TaskLabels:
    """Some of the labels with their values in the form that they have: members lie side by side."""
    values, pseudo = (
        None if each is None else each[kept] for each in (labels.values, labels.pseudo)
    )
    return TaskLabels(labels.instances[kept], values, pseudo)


def deal(data: Dataset, labels: Labels, members: int, seed: int) -> Deal:
    """Every labelled instance to the member that leaves it out; those of one group to the same."""
    everyone = [np.zeros(0, dtype=np.int64), *(mine.instances for mine in labels.values())]
    instances = np.unique(np.concatenate(everyone))
    group = instances
    if data.groups is not None and len(instances):
        group = np.unique(data.groups[instances], return_inverse=True)[1].astype(np.int64)
    order = shuffle(np.unique(group), "members", seed)
    place = np.empty(len(order), dtype=np.int64)
    place[np.argsort(order)] = np.arange(len(order)) % members
    return Deal(instances, place[np.searchsorted(np.sort(order), group)], members)


def find_trust(target: Target, answers: AnyArray, constants: AnyArray, values: AnyArray) -> float:
    """How far answers to labels that they were not made from are to be trusted beyond constants:
    the share with the least error, less the more what it wins may be noise."""
    errors = np.stack(
        [list_errors(target, constants + each * (answers - constants), values) for each in TRUSTS]
    )
    best = int(errors.mean(axis=1).argmin())
    won = errors[0] - errors[best]
    gain, noise = float(won.mean()), float(won.var(ddof=1)) / len(won)
    if gain <= 0:
        return LEAST_TRUST
    doubt = DOUBT_OF_NUMBERS if target.kind == "regression" else DOUBT_OF_CLASSES
    trust = float(TRUSTS[best]) * gain**2 / (gain**2 + doubt * noise)
    if target.kind == "classification":
        trust = _keep_right(trust, answers, constants, values)
    return max(trust, LEAST_TRUST)


def _keep_right(trust: float, answers: AnyArray, constants: AnyArray, values: AnyArray) -> float:
    """The trust, or as much of it as makes no fewer classes right: probabilities can be better
    while the likeliest class is not."""
    true = values.argmax(axis=1) if values.ndim == 2 else values
    right = (constants.argmax(axis=1) == true).sum()
    for part in np.linspace(1.0, 0.0, len(TRUSTS)):
        likeliest = (constants + part * trust * (answers - constants)).argmax(axis=1)
        if (likeliest == true).sum() >= right:
            return float(part * trust)
    return 0.0


@dataclass(eq=False)
class TemperedState:
    """A training of several members, and what it knows of its own labels."""

    labels: Labels
    seed: int
    deal: Deal
    trained: frozenset[str]
    """tasks that were stepped on"""
    trusts: dict[str, float] = field(default_factory=dict)
    """of tasks that were asked for since the last step"""
    constants: dict[str, Array] = field(default_factory=dict)
    """of tasks that were asked for, the best answer that is the same for all, by the labels"""


class TemperedLearner(ScoredOnData, ABC):
    """A learner whose trainings have members; how these are trained is left to those who
    inherit."""

    def __init__(self, data: Dataset, split: Split, members: int = MEMBERS):
        super().__init__(data, split)
        self.members = members
        wrong = [Mistake("data", what)] if (what := tell_pictures(data)) else []
        if not 2 <= members <= MOST_MEMBERS:
            wrong.append(Mistake("members", f"{members} is not between 2 and {MOST_MEMBERS}"))
        if wrong:
            raise InputError(wrong)

    @abstractmethod
    def steps(self, labels: Labels) -> int:
        """How many steps a training on these labels takes."""

    @abstractmethod
    def start(self, labels: Labels, seed: int) -> Any:
        """A state from which nothing has been learnt yet."""

    @abstractmethod
    def step(self, state: Any, tasks: Sequence[str]) -> Any:
        """One step on each of these tasks."""

    @abstractmethod
    def fork(self, state: Any) -> Any:
        """A copy that goes its own way."""

    @abstractmethod
    def answer_each(self, state: Any, task: str, instances: Instances) -> AnyArray:
        """What every member says (members, n, ...)."""

    def answer_unseen(self, state: Any, task: str, instances: Instances) -> AnyArray:
        """What is said of each labelled instance by the member that did not see it."""
        said = self.answer_each(state, task, instances)
        return np.asarray(said[state.deal.find_member(instances), np.arange(len(instances))])

    def predict(self, state: Any, task: str, instances: Instances) -> NDArray[Any]:
        constant, trust = self.find_constant(state, task), self.find_trust(state, task)
        said = np.zeros((len(instances), *constant.shape))
        if trust:
            said = self.answer_each(state, task, instances).mean(axis=0) - constant
        return np.asarray(constant + trust * said)

    def score(self, state: Any, task: str) -> Measure:
        return self._measure(state, task, self.predict(state, task, self.list_scored(task)))

    def score_constant(self, state: Any, task: str) -> Measure:
        """The score of the best answer that is the same everywhere, by the labels of a state."""
        constant = self.find_constant(state, task)
        count = len(self.list_scored(task))
        return self._measure(state, task, np.broadcast_to(constant, (count, *constant.shape)))

    def find_trust(self, state: Any, task: str) -> float:
        """How far the members are trusted, by the labels that each of them left out."""
        if task not in state.trusts:
            state.trusts[task] = self._weigh(state, task)
        return float(state.trusts[task])

    def _weigh(self, state: Any, task: str) -> float:
        if task not in state.trained or len(state.labels[task]) < FEWEST_TRUSTED:
            return 0.0
        said, constants, values = self.cross_validate(state, task)
        return find_trust(self.targets[task], said, constants, values)

    def cross_validate(self, state: Any, task: str) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Of each label of a task: the answer and the constant of the member that did not see it,
        and the label itself."""
        mine = state.labels[task]
        order = np.argsort(mine.instances)
        instances, values = mine.instances[order], self.open_values(mine, task)[order]
        out = state.deal.find_member(instances)
        target = self.targets[task]
        each = [find_constant(target, values[out != member]) for member in range(self.members)]
        return self.answer_unseen(state, task, instances), np.stack(each)[out], values

    def open_values(self, labels: TaskLabels, task: str) -> AnyArray:
        """The labels to train on, in the order of their instances' list."""
        return labels.fill(lambda instances: self.data.values(task, instances))

    def find_constant(self, state: Any, task: str) -> Array:
        """The best answer that is the same everywhere, by the labels of a state."""
        if task not in state.constants:
            values = self.open_values(state.labels[task], task)
            state.constants[task] = find_constant(self.targets[task], values)
        return np.asarray(state.constants[task])

    def save_trusts(self, state: Any, folder: Path) -> None:
        """Write how far each task's answers are drawn to which constant."""
        arrays = {}
        for place, task in enumerate(self.tasks):
            arrays[f"constant.{place}"] = self.find_constant(state, task)
            arrays[f"trust.{place}"] = np.array(self.find_trust(state, task))
        save_arrays(folder / TRUSTS_FILE, arrays)

    def read_trusts(self, folder: Path) -> tuple[dict[str, float], dict[str, Array]]:
        """Trusts and constants of all tasks, as `save_trusts` wrote them; raises InputError for
        anything else."""
        found, _ = read_arrays(folder / TRUSTS_FILE)
        wanted: dict[str, tuple[int, ...]] = {}
        for place, target in enumerate(self.targets.values()):
            shape = () if target.kind == "regression" else (len(target.classes),)
            wanted |= {f"constant.{place}": shape, f"trust.{place}": ()}
        what = find_strange(found, wanted)
        for place, target in enumerate(self.targets.values()):
            if what:
                break
            shares = [found[f"trust.{place}"]]
            if target.kind != "regression":
                shares.append(found[f"constant.{place}"])
            if any((each < 0).any() or (each > 1).any() for each in shares):
                what = f"what it says of {target.name!r} is no share between 0 and 1"
        if what:
            raise InputError([Mistake(str(folder / TRUSTS_FILE), f"{what}; {MAYBE_CHANGED}")])
        trusts = {task: float(found[f"trust.{place}"]) for place, task in enumerate(self.tasks)}
        return trusts, {task: found[f"constant.{place}"] for place, task in enumerate(self.tasks)}

    def _measure(self, state: Any, task: str, answers: AnyArray) -> Measure:
        target, spread = self.targets[task], 1.0
        if target.kind == "regression" and len(state.labels[task]):
            spread = max(float(np.nanstd(self.open_values(state.labels[task], task))), 1e-6)
        values = self.data.values(task, self.list_scored(task))
        return measure_answers(target, answers, values, spread)


def tell_pictures(data: Dataset) -> str:
    """Why these data are none that answers can be tempered for; "" if they are."""
    if pixels := [each for each in data.targets if each.kind not in ANSWERED_KINDS]:
        return f"task {pixels[0].name!r} has a label for each pixel, and this is for tables"
    if data.size and data.picture_size(0) is not None:
        return "the data are images, and this is for tables"
    return ""


def grade(learner: TemperedLearner, state: Any) -> Mapping[str, float]:
    """Of each task with labels enough, the share of the best constant's error that is removed, by
    cross-validation on the labels of a training."""
    found = {}
    for task in learner.tasks:
        if len(state.labels[task]) < FEWEST_TRUSTED or task not in state.trained:
            continue
        said, constants, values = learner.cross_validate(state, task)
        trust, target = learner.find_trust(state, task), learner.targets[task]
        tempered = list_errors(target, constants + trust * (said - constants), values).mean()
        plain = list_errors(target, constants, values).mean()
        found[task] = float(1 - tempered / plain) if plain > 0 else 0.0
    return found
