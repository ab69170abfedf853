"""One seed set of a setting: what a method may see of it, and what plans really score."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from allotment.campaign.starting import TEMPERED_STEPS
from allotment.corpus.kept import Kept
from allotment.corpus.plans import (
    AGAIN,
    BEFORE,
    PURCHASE,
    Counts,
    list_baselines,
    list_surface,
    name_run,
)
from allotment.corpus.setting import Setting
from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, shuffle, split
from allotment.estimates.design import design
from allotment.estimates.request import FOLDS
from allotment.estimates.response import Response, run
from allotment.learners.learner import train_many
from allotment.learners.networks import Perceptron
from allotment.learners.perceptrons import PerceptronsLearner
from allotment.learners.recipe import Recipe
from allotment.learners.tempering import MEMBERS
from allotment.learners.torch_learner import TorchLearner
from allotment.machine import settled
from corpus.settings import CAMPAIGNS, TESTED
from corpus.tables import make_data

TRAININGS = 60
"""that the default method runs"""
MOST_TESTED = 1500
TOGETHER = 8
RECIPE = Recipe(steps=TEMPERED_STEPS, members=MEMBERS, device="cpu")
"""what `allot init` writes for tables"""
ALONE = replace(RECIPE, members=1)
"""for methods that look into trainings, as `allot init` writes for these"""
LIGHT_PLANS = ("neutral", "equal budget")
"""that are trained out in campaigns without a surface"""
HIDDEN = (64, 32)
"""half as wide as the usual perceptron: three times as many trainings in the same time"""


def make_network(inputs: tuple[int, ...], targets: Sequence[Target], runs: int) -> Perceptron:
    return Perceptron(inputs[0], targets, runs, HIDDEN)


@dataclass(frozen=True)
class Campaign:
    """One seed set, and the pool that it was drawn from."""

    setting: Setting
    number: int

    @cached_property
    def data(self) -> ArrayData:
        mine = self.setting
        return make_data(mine.table, mine.tasks, mine.odd, mine.source)

    @cached_property
    def parts(self) -> Split:
        return split(self.data, 1 + self.number, validation=0.0, test=TESTED)

    @cached_property
    def queues(self) -> dict[str, NDArray[np.int64]]:
        """Of each task: instances with a label, in the order in which the seed set takes them."""
        train = self.parts.train
        return {
            task: shuffle(train[self.data.known(task)[train]], "seed set", self.number, task)
            for task in self.setting.tasks
        }

    @cached_property
    def labels(self) -> Labels:
        """The labels at hand."""
        rows = zip(self.setting.tasks, self.setting.have, strict=True)
        return Labels({task: self.queues[task][:have] for task, have in rows})

    @cached_property
    def tested(self) -> PerceptronsLearner:
        """Scored on test instances: no method gets it."""
        test = self.parts.test[:MOST_TESTED]
        parts = Split(self.parts.train, test, test)
        return PerceptronsLearner(self.data, parts, RECIPE, make_network)

    def make_learner(self, labels: Labels, recipe: Recipe) -> PerceptronsLearner | TorchLearner:
        """What a method may use: it knows these labels and no others."""
        size = np.arange(self.data.size)
        missing = {task: ~np.isin(size, labels[task].instances) for task in self.setting.tasks}
        hidden, nothing = replace(self.data, missing=missing), np.zeros(0, dtype=np.int64)
        kind = PerceptronsLearner if recipe.members > 1 else TorchLearner
        return kind(hidden, Split(self.parts.train, nothing, nothing), recipe, make_network)

    def buy(self, counts: Counts, purchase: int) -> Labels:
        """The labels at hand and as many more; two plans of one purchase share what both buy."""
        found = {}
        for task, have, count in zip(self.setting.tasks, self.setting.have, counts, strict=True):
            rest = self._shuffle_rest(task, have, purchase)
            found[task] = np.concatenate([self.queues[task][:have], rest[:count]])
        return Labels(found)

    @cache  # noqa: B019  a campaign lives as long as its trainings
    def _shuffle_rest(self, task: str, have: int, purchase: int) -> NDArray[np.int64]:
        """What can be bought of a task, in the order in which this purchase takes it."""
        return shuffle(self.queues[task][have:], "purchase", self.number, purchase, task)

    def respond(self, labels: Labels, seed: int, trainings: int = TRAININGS) -> Response:
        """The trainings of the default method."""
        learner = self.make_learner(labels, RECIPE)
        chosen = design(labels, trainings, seed, folds=FOLDS)
        with settled():
            return run(learner, labels, chosen, together=TOGETHER)

    def train_out(self, runs: Sequence[tuple[Counts, int]]) -> list[list[float]]:
        """What models score on test instances after purchases of plans."""
        found = []
        for first in range(0, len(runs), TOGETHER):
            part = runs[first : first + TOGETHER]
            with settled():
                states = train_many(self.tested, [(self.buy(*each), each[1]) for each in part])
                for state in states:
                    scores = [self.tested.score(state, task) for task in self.setting.tasks]
                    found.append([score.metric for score in scores])
        return found


def train_missing(kept: Kept, campaign: Campaign, runs: Iterable[tuple[Counts, int]]) -> None:
    """Train what is not kept yet."""
    there = kept.get(campaign.number, "plans") or {}
    missing = [each for each in dict.fromkeys(runs) if name_run(*each) not in there]
    if missing:
        scores = campaign.train_out(missing)
        named = {name_run(*each): score for each, score in zip(missing, scores, strict=True)}
        kept.put(campaign.number, "plans", named)


def measure(kept: Kept, campaign: Campaign) -> None:
    """All that a judge needs of one campaign, whatever is judged; beyond the first eight, what
    tells whether chances and intervals hold."""
    setting, number = campaign.setting, campaign.number
    if kept.get(number, "response") is None:
        begin = time.process_time()
        kept.put(number, "response", campaign.respond(campaign.labels, number).to_dict())
        kept.put(number, "seconds of response", time.process_time() - begin)
    nothing = (0,) * len(setting.tasks)
    runs = [(nothing, purchase) for purchase in range(BEFORE)]
    baselines = list_baselines(setting)
    is_whole = number < CAMPAIGNS
    chosen = list_surface(setting) if is_whole else [baselines[name] for name in LIGHT_PLANS]
    runs += [(plan, PURCHASE) for plan in chosen]
    runs.append((baselines["neutral"], AGAIN))
    train_missing(kept, campaign, runs)
