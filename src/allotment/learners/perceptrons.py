"""The built-in learner for small tables: several perceptrons in one training, whose answers are
drawn towards the best constant as far as labels that they did not see advise it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from allotment.arrays import AnyArray
from allotment.data.dataset import Dataset, Instances
from allotment.data.labels import Labels, Split
from allotment.learners.batches import hash_of
from allotment.learners.learner import labelled, train
from allotment.learners.recipe import Recipe
from allotment.learners.tempering import TemperedLearner, TemperedState, deal
from allotment.learners.torch_learner import MakeNetwork, TorchLearner, Training


@dataclass(eq=False)
class PerceptronsState(TemperedState):
    """Its members are the runs of one stack."""

    training: Training = field(kw_only=True)


class PerceptronsLearner(TemperedLearner):
    """Multi-task perceptrons behind the `Learner` protocol; `recipe.members` says how many.
    `network` makes them, as for `TorchLearner`."""

    def __init__(
        self, data: Dataset, split: Split, recipe: Recipe, network: MakeNetwork | None = None
    ):
        super().__init__(data, split, recipe.members)
        self._networks = TorchLearner(data, split, recipe, network)
        self.recipe = self._networks.recipe

    def steps(self, labels: Labels) -> int:
        return self._networks.steps(labels)

    def start(self, labels: Labels, seed: int) -> PerceptronsState:
        (state,) = self._start([(labels, seed)])[1]
        return state

    def _start(self, runs: Sequence[tuple[Labels, int]]) -> tuple[Training, list[PerceptronsState]]:
        """All members of all runs as one stack, and the states that are still to be trained."""
        dealt = [deal(self.data, labels, self.members, seed) for labels, seed in runs]
        parts, seeds = [], []
        for each, (labels, seed) in zip(dealt, runs, strict=True):
            self.check_labels(labels)
            parts += [each.part(labels, member) for member in range(self.members)]
            seeds += [hash_of("member", seed, member) for member in range(self.members)]
        training = self._networks.start_stack(parts, seeds, self.steps(runs[0][0]))
        none: frozenset[str] = frozenset()
        states = [
            PerceptronsState(labels, seed, each, none, training=training)
            for each, (labels, seed) in zip(dealt, runs, strict=True)
        ]
        return training, states

    def step(self, state: PerceptronsState, tasks: Sequence[str]) -> PerceptronsState:
        training = self._networks.step(state.training, tasks)
        return replace(
            state, training=training, trained=state.trained | frozenset(tasks), trusts={}
        )

    def fork(self, state: PerceptronsState) -> PerceptronsState:
        training = self._networks.fork(state.training)
        return replace(state, training=training, trusts=dict(state.trusts))

    def answer_each(self, state: PerceptronsState, task: str, instances: Instances) -> AnyArray:
        return self._networks.predict_runs(state.training, task, instances)

    def start_many(self, runs: Sequence[tuple[Labels, int]]) -> PerceptronsState | None:
        """The beginning of a stack of trainings, which are stepped on as one; None if they are no
        stack."""
        if not runs or not self._networks.are_alike(runs):
            return None
        return self._start(runs)[1][0]

    def stack(self, runs: Sequence[tuple[Labels, int]]) -> list[PerceptronsState]:
        """Many whole trainings as one; one by one where their labels do not lie side by side."""
        if not runs or not self._networks.are_alike(runs):
            return [train(self, labels, seed) for labels, seed in runs]
        training, states = self._start(runs)
        tasks = labelled(self, runs[0][0])
        for _ in range(training.steps if tasks else 0):
            training = self._networks.step(training, tasks)
        parts = self._networks.unstack(training, self.members)
        return [
            replace(state, training=part, trained=frozenset(tasks))
            for state, part in zip(states, parts, strict=True)
        ]

    def save(self, state: PerceptronsState, folder: Path) -> None:
        """The weights of all members, and how far these are trusted."""
        self._networks.save(state.training, folder)
        self.save_trusts(state, folder)

    def load(self, folder: Path) -> PerceptronsState:
        """A state as it was saved, ready to predict; raises InputError unless everything fits."""
        training = self._networks.load(folder, self.members)
        trusts, constants = self.read_trusts(folder)
        nothing = Labels({})
        nobody = deal(self.data, nothing, self.members, 0)
        return PerceptronsState(
            nothing, 0, nobody, frozenset(self.tasks), trusts, constants, training=training
        )
