"""What a case is tried out on: its data, whose labels are at hand in each seed set, and what each
purchase would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from allotment.data.dataset import Dataset, Instances
from allotment.data.labels import Labels, Split, shuffle
from allotment.errors import InputError, Mistake
from allotment.experiment.case import Case
from allotment.learners.implying import add_implied
from allotment.learners.learner import Learner
from allotment.learners.setups import draw_parts, find_setup, make_learner, read_data
from allotment.learners.torch_learner import TorchLearner

PARTS_SEED = 0
"""of the split into training, validation and test part, the same in all seed sets"""


class Ground:
    """The data of a case. Only `tested` looks at the test part."""

    def __init__(self, case: Case, root: Path, weights: Path | None):
        self.case, self._root, self._weights = case, root, weights
        self._setup = find_setup(case.setup)

    @cached_property
    def data(self) -> Dataset:
        return read_data(self._setup, self._root)

    @cached_property
    def parts(self) -> Split:
        return draw_parts(self._setup, self.data, PARTS_SEED)

    @cached_property
    def tested(self) -> TorchLearner:
        """Scored on the test part."""
        return self._make(Split(self.parts.train, self.parts.test, self.parts.validation))

    @cached_property
    def untested(self) -> TorchLearner:
        """What a method may use: of the test part it knows nothing."""
        nobody = self.parts.test[:0]
        return self._make(Split(self.parts.train, self.parts.validation, nobody))

    @cached_property
    def whole(self) -> TorchLearner:
        """That knows the test part: for methods that score there, as the paper's does."""
        return self._make(self.parts)

    def lay_bench(self, seed_set: int) -> tuple[Learner, Labels]:
        """What a campaign gives to methods that cross-validate: labels as they were bought, and a
        learner that adds what comes with them to each training, so that fewer bring fewer."""
        learner = add_implied(self.untested, self.case.implies)
        return learner, self.draw_seed_set(seed_set)

    def draw_validation(self, seed_set: int) -> Labels:
        """The labels that score what a method measures, beyond those of the seed set."""
        found: dict[str, Instances] = {}
        for task in self.case.tasks:
            order = shuffle(self.parts.validation, "validation", seed_set, task)
            known = order[self.data.known(task)[order]]
            if len(known) < self.case.validation:
                what = f"the validation part has {len(known)}"
                raise InputError([Mistake(f"{self.case.validation} labels of {task!r}", what)])
            found[task] = known[: self.case.validation]
        return Labels(found)

    def _make(self, parts: Split) -> TorchLearner:
        return make_learner(self._setup, weights=self._weights, parts=parts, data=self.data)

    @property
    def pool(self) -> int:
        """Instances whose labels can be bought, in every seed set."""
        return len(self.parts.train) - self.case.have * len(self.case.tasks)

    @cache  # noqa: B019  a ground lives as long as the process
    def draw_seed_set(self, number: int) -> Labels:
        """The labels at hand: as many of each task, on different instances (P2)."""
        found: dict[str, Instances] = {}
        left = shuffle(self.parts.train, "seed set", number)
        for task in self.case.tasks:
            known = left[self.data.known(task)[left]]
            if len(known) < self.case.have:
                what = f"{len(known)} instances are left of {len(self.parts.train)}"
                raise InputError([Mistake(f"{self.case.have} labels of {task!r}", what)])
            found[task] = known[: self.case.have]
            left = left[~np.isin(left, found[task])]
        return Labels(found)

    @cache  # noqa: B019
    def line_up(self, seed_set: int, purchase: int, same: bool) -> Mapping[str, Instances]:
        """Of each task, the instances that a purchase takes, the first ones first.

        Each task has a part of the pool for itself and takes what it needs beyond that from the far
        ends of the others' parts: tasks get different instances as long as there are enough, and
        more labels of a task hold all that fewer would.
        """
        taken = [each.instances for each in self.draw_seed_set(seed_set).values()]
        rest = np.setdiff1d(self.parts.train, np.concatenate(taken))
        order = shuffle(rest, "purchase", seed_set, purchase)
        tasks = self.case.tasks
        if same:
            return dict.fromkeys(tasks, order)
        own = [order[place :: len(tasks)] for place in range(len(tasks))]
        found = {}
        for place, task in enumerate(tasks):
            others = [part[::-1] for at, part in enumerate(own) if at != place]
            found[task] = np.concatenate([own[place], interleave(others)])
        return found

    def buy(
        self, seed_set: int, purchase: int, counts: Mapping[str, int], same: bool = False
    ) -> Labels:
        """The labels at hand and as many more as a plan says."""
        start, lines = self.draw_seed_set(seed_set), self.line_up(seed_set, purchase, same)
        found: dict[str, Instances] = {}
        used = np.zeros(self.data.size, dtype=bool)
        for task in self.case.tasks:
            line = lines[task][self.data.known(task)[lines[task]]]
            if not same:  # those of other tasks last, where there are no others left
                line = np.concatenate([line[~used[line]], line[used[line]]])
            count = int(counts.get(task, 0))
            if count > len(line):
                what = f"{count} are wanted, and the pool has {len(line)}"
                raise InputError([Mistake(f"labels of {task!r}", what)])
            found[task] = np.concatenate([start[task].instances, line[:count]])
            used[line[:count]] = True
        return Labels(found)

    def complete(self, labels: Labels) -> Labels:
        """The labels to train on: those that were bought and those that come with them."""
        return labels.with_implied(self.case.implies)


def interleave(parts: Sequence[Instances]) -> Instances:
    """One of each in turn.

    >>> interleave([np.array([1, 2]), np.array([5, 6, 7])]).tolist()
    [1, 5, 2, 6, 7]
    """
    ranks = np.concatenate([np.arange(len(part)) for part in parts])
    return np.concatenate(list(parts))[np.argsort(ranks, kind="stable")]
