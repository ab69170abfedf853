"""One seed set of a setting: what a method may see of it, and what plans really score."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from allotment.campaign.starting import TEMPERED_STEPS
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
from allotment.plan import baselines
from allotment.problem import Problem, Task
from corpus.kept import Kept
from corpus.settings import TESTED, Setting
from corpus.tables import make_data

Counts = tuple[int, ...]
"""labels to buy, in the order of a setting's tasks"""
TRAININGS = 60
"""that the default method runs"""
BEFORE = 4
"""trainings on the labels at hand alone, whose mean is what gains are counted from"""
PURCHASE = 0
"""in which a plan is trained out, another one in each campaign"""
AGAIN = 1
"""the purchase in which the neutral plan is trained once more, for a comparison of a plan with
itself"""
PLANS = 36
"""of a surface"""
MOST_TESTED = 1500
TOGETHER = 8
RECIPE = Recipe(steps=TEMPERED_STEPS, members=MEMBERS, device="cpu")
"""what `allot init` writes for tables"""
ALONE = replace(RECIPE, members=1)
"""for methods that look into trainings, as `allot init` writes for these"""
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

    def respond(self, labels: Labels, seed: int) -> Response:
        """The trainings of the default method."""
        learner = self.make_learner(labels, RECIPE)
        chosen = design(labels, TRAININGS, seed, folds=FOLDS)
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


def make_problem(setting: Setting) -> Problem:
    """What is to be planned, the same in all campaigns of a setting."""
    rows = zip(setting.tasks, setting.costs, setting.have, setting.pool, strict=True)
    tasks = [Task(name, cost=cost, have=have, pool=pool) for name, cost, have, pool in rows]
    return Problem(tasks, budget=setting.budget)


def order_counts(setting: Setting, counts: Mapping[str, int]) -> Counts:
    return tuple(int(counts[task]) for task in setting.tasks)


@cache
def list_baselines(setting: Setting) -> dict[str, Counts]:
    """Plans that train nothing, by name."""
    found = baselines(make_problem(setting))
    return {name: order_counts(setting, counts) for name, counts in found.items()}


@cache
def list_surface(setting: Setting) -> list[Counts]:
    """The plans that every campaign trains out: baselines, single tasks, halves of the money on
    two tasks, neutral without one task, and mixtures by chance."""
    found = dict.fromkeys(list_baselines(setting).values())
    size = len(setting.tasks)
    neutral = list_baselines(setting)["neutral"]
    money = np.array(neutral) * np.array(setting.costs)
    shares = []
    for task in range(size):
        rest = np.where(np.arange(size) == task, 0, money + 1e-9)
        shares.append(rest / rest.sum())
    shares += [
        np.isin(np.arange(size), pair) / 2 for pair in itertools.combinations(range(size), 2)
    ][: max(0, PLANS // 2 - len(found) - size)]
    rng = np.random.default_rng([size, setting.budget])
    for each in shares:
        found[spend(setting, each)] = None
    while len(found) < PLANS:
        wide = rng.dirichlet(np.full(size, 0.7))
        near = rng.dirichlet(np.maximum(money / money.sum(), 0.02) * 4 * size)
        found[spend(setting, wide if rng.random() < 0.5 else near)] = None
    return list(found)[:PLANS]


def spend(setting: Setting, shares: NDArray[np.float64]) -> Counts:
    """Labels for these shares of the money; what a task has no labels for goes to the others."""
    costs, pool = np.array(setting.costs), np.array(setting.pool)
    counts, money, open_ = np.zeros(len(costs), dtype=int), float(setting.budget), shares > 0
    for _ in range(len(costs)):
        if not open_.any():
            break
        given = np.where(open_, shares, 0)
        wanted = np.floor(money * given / given.sum() / costs).astype(int)
        counts += np.minimum(wanted, pool - counts)
        money = setting.budget - float(counts @ costs)
        open_ &= counts < pool
        if money < costs.min():
            break
    return tuple(counts.tolist())


def name_run(counts: Counts, purchase: int) -> str:
    """A plan of a purchase, as a key."""
    return f"{purchase} " + " ".join(map(str, counts))


def train_missing(kept: Kept, campaign: Campaign, runs: Iterable[tuple[Counts, int]]) -> None:
    """Train what is not kept yet."""
    there = kept.get(campaign.number, "plans") or {}
    missing = [each for each in dict.fromkeys(runs) if name_run(*each) not in there]
    if missing:
        scores = campaign.train_out(missing)
        named = {name_run(*each): score for each, score in zip(missing, scores, strict=True)}
        kept.put(campaign.number, "plans", named)


def measure(kept: Kept, campaign: Campaign) -> None:
    """All that a judge needs of one campaign, whatever is judged."""
    setting, number = campaign.setting, campaign.number
    if kept.get(number, "response") is None:
        begin = time.process_time()
        kept.put(number, "response", campaign.respond(campaign.labels, number).to_dict())
        kept.put(number, "seconds of response", time.process_time() - begin)
    nothing = (0,) * len(setting.tasks)
    runs = [(nothing, purchase) for purchase in range(BEFORE)]
    runs += [(plan, PURCHASE) for plan in list_surface(setting)]
    runs.append((list_baselines(setting)["neutral"], AGAIN))
    train_missing(kept, campaign, runs)
