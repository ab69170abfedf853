"""Simulated learners: scores from a known truth, with the noise of trainings and of seed sets, and
campaigns on them.

The truths' families and their parameters are fixed in simulated_truths.toml; none of them is the
law that is fitted. A campaign has one seed set: it estimates, plans, and is judged on the truth.
Seeds below 1000 are for tuning, the others for reporting. `python tests/simulated.py 80` runs 80
campaigns of each family, as many in each setting, and `python tests/simulated.py rounds 80` holds
three rounds against one with the same money.
"""

from __future__ import annotations

import itertools
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.campaign.tranche import propose_tranche
from allotment.data.labels import Labels
from allotment.estimates.design import Design, design
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.estimates.response import UNTRAINED, Response, join
from allotment.learners.learner import Measure
from allotment.plan import allocate, baselines
from allotment.problem import Problem, Task

Array = NDArray[np.float64]

TRUTHS = tomllib.loads((Path(__file__).parent / "simulated_truths.toml").read_text())
FAMILIES = tuple(TRUTHS["family"])
SETTINGS = tuple(TRUTHS["settings"])
CHANCE = TRUTHS["chance"]
REFERENCE = 300.0
"""labels at which the file gives levels and noise"""
TRAININGS = 60


@dataclass(frozen=True)
class Truth:
    """The score of every task for any numbers of labels, averaged over seed sets and trainings."""

    family: str
    names: tuple[str, ...]
    costs: tuple[int, ...]
    have: tuple[int, ...]
    times: float
    level: Array
    room: Array
    shape: Array
    steepness: float
    reach: Array
    """[i, j]: how many labels of i one of j counts as"""
    harm: Array
    dead: int | None = None
    saturated: int | None = None

    @property
    def problem(self) -> Problem:
        rows = zip(self.names, self.costs, self.have, strict=True)
        tasks = [Task(name, cost=cost, have=have) for name, cost, have in rows]
        money = round(
            self.times * sum(cost * have for cost, have in zip(self.costs, self.have, strict=True))
        )
        return Problem(tasks, budget=money)

    def scores(self, counts: Any) -> Array:
        """Scores (..., tasks) for numbers of labels (..., tasks); a task without labels knows
        nothing."""
        counts = np.asarray(counts, dtype=float)
        curve = getattr(self, f"_{self.family}")
        found = np.clip(curve(np.maximum(counts, 1e-9)), CHANCE, 0.999)
        if self.saturated is not None:
            found[..., self.saturated] = self._saturated(counts[..., self.saturated])
        if self.dead is not None:
            found[..., self.dead] = CHANCE
        return np.where(counts > 0, found, CHANCE)

    def _effective(self, counts: Array) -> Array:
        fade = TRUTHS["family"][self.family].get("fade", np.inf)
        return counts + counts @ self.reach.T / (1 + counts / fade)

    def _asymptotic(self, counts: Array) -> Array:
        usual = self._effective(np.full(len(self.names), REFERENCE))
        return self.level + self.room - self.room * (self._effective(counts) / usual) ** -self.shape

    def _mixed(self, counts: Array) -> Array:
        return self._asymptotic(counts) - (np.log1p(counts / REFERENCE) - np.log(2)) @ self.harm.T

    def _geometric(self, counts: Array) -> Array:
        return (
            self.level
            + self.room
            - self.room * np.exp(np.log1p(-self.shape) * (counts - REFERENCE))
        )

    def _late(self, counts: Array) -> Array:
        usual = self._effective(np.full(len(self.names), REFERENCE))
        risen = self._effective(counts) / usual * REFERENCE / self.shape
        return CHANCE + self.room / (1 + risen**-self.steepness)

    def _replayed(self, counts: Array) -> Array:
        table = TRUTHS["family"]["replayed"]
        at, gains = np.log(table["counts"]), np.array(table["gains"])
        where = np.log(REFERENCE) + np.log(counts / REFERENCE) * self.shape
        before = (gains[1] - gains[0]) / (at[1] - at[0]) * np.minimum(where - at[0], 0.0)
        return self.level + self.room * (np.interp(where, at, gains) + before)

    def _saturated(self, counts: Array) -> Array:
        level, share = self.level[self.saturated], TRUTHS["saturated"]["share"]
        room = min(share * 0.15, 0.6 * (1 - level))
        have = self.have[self.saturated]
        rise = room - room * (np.maximum(counts, 1.0) / have) ** -TRUTHS["saturated"]["exponent"]
        return np.clip(level + rise, CHANCE, 0.999)

    def gain(self, new: Any) -> Array:
        """D_T of buying these numbers of labels: the mean over tasks of the relative gain in %."""
        have = np.array(self.have, dtype=float)
        before = self.scores(have)
        return (
            np.mean((self.scores(have + np.asarray(new, dtype=float)) - before) / before, axis=-1)
            * 100
        )

    def best(self, others: Sequence[Sequence[float]] = ()) -> tuple[float, float]:
        """D_T of the best plan, and by how much it beats the worst of spending all on one task."""
        size, money = len(self.names), self.times * np.dot(self.costs, self.have)
        steps = 16
        cuts = np.array(list(itertools.combinations(range(steps + size - 1), size - 1)))
        bars = np.concatenate(
            [np.full((len(cuts), 1), -1), cuts, np.full((len(cuts), 1), steps + size - 1)], axis=1
        )
        shares = (np.diff(bars, axis=1) - 1) / steps
        gains = self.gain(shares * money / self.costs)
        alone = self.gain(np.eye(size) * money / self.costs)
        here, top = shares[gains.argmax()], gains.max()
        moves = np.array(
            [np.eye(size)[i] - np.eye(size)[j] for i, j in itertools.permutations(range(size), 2)]
        )
        step = 1 / 32
        while step > 1 / 1024:
            near = here + step * moves
            near = near[(near >= 0).all(axis=1)]
            gains = self.gain(near * money / self.costs)
            if len(near) and gains.max() > top:
                here, top = near[gains.argmax()], gains.max()
            else:
                step /= 2
        top = max([top, *(float(self.gain(other)) for other in others)])
        return float(top), float(top - alone.min())


def draw_truth(family: str, setting: str, seed: int) -> Truth:
    """The truth of one campaign: its own centre for every parameter, and tasks around it as the
    setting says."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), SETTINGS.index(setting)])
    given, spread = TRUTHS["family"][family], TRUTHS["heterogeneity"][setting]
    purse = TRUTHS["purse"][0 if setting == "none" else rng.integers(len(TRUTHS["purse"]))]
    size = len(purse["costs"])

    def around(limits: list[float]) -> Array:
        return rng.uniform(*limits) * np.exp(spread * rng.normal(size=size))

    level = np.full(size, rng.uniform(*TRUTHS["level"]["centre"]))
    if spread:
        level = rng.uniform(*TRUTHS["level"]["centre"], size=size)
    room = np.minimum(
        around(given["room"]), 0.95 * (0.999 - level) / (0.1 if family == "replayed" else 1.0)
    )
    if family == "late":
        room = np.minimum(around(given["room"]), 0.49)
    reach = np.full((size, size), rng.uniform(*given["reach"]))
    if spread:
        reach = rng.uniform(*given["reach"], size=(size, size))
    if spread and "strong" in given:
        strong = rng.random((size, size)) < given["strong"]
        reach = np.where(strong, rng.uniform(*given["strong_reach"], size=(size, size)), reach)
    harm = np.zeros((size, size))
    if spread and "harm" in given:
        harm = given["harm"] * (rng.random((size, size)) < given["harmful"])
    for matrix in (reach, harm):
        np.fill_diagonal(matrix, 0.0)
    truth = Truth(
        family=family,
        names=tuple(f"task {number}" for number in range(1, size + 1)),
        costs=tuple(purse["costs"]),
        have=tuple(purse["have"]),
        times=TRUTHS["budget"]["times"][rng.integers(len(TRUTHS["budget"]["times"]))],
        level=level,
        room=room,
        shape=around(given["shape"]),
        steepness=rng.uniform(*given.get("steepness", [1.0, 1.0])),
        reach=reach,
        harm=harm,
    )
    odd = int(rng.integers(size))
    if setting == "dead":
        reach[:, odd] = harm[:, odd] = 0.0
        return replace(truth, dead=odd)
    if setting == "saturated":
        level[odd] = TRUTHS["saturated"]["level"][rng.integers(2)]
        return replace(truth, saturated=odd)
    return truth


@dataclass(frozen=True)
class Campaign:
    """A truth seen through one seed set."""

    truth: Truth
    seed: int
    loudness: Array
    """of each task: how much one training differs from the next"""
    offset: Array
    walk: Array
    """[task, step]: the seed set's own deviation at falling counts"""

    @property
    def labels(self) -> Labels:
        return Labels(
            {
                name: range(have)
                for name, have in zip(self.truth.names, self.truth.have, strict=True)
            }
        )

    def scores(self, counts: Any, seed: int) -> Array:
        """What one training on these numbers of labels scores; the same counts and seed score the
        same."""
        counts, noise = np.asarray(counts, dtype=float), TRUTHS["noise"]
        rng = np.random.default_rng([self.seed, seed % 2**32, *counts.astype(int)])
        each = rng.normal(size=len(counts))
        expected = self.truth.scores(counts)
        shrink = np.sqrt(expected * (1 - expected) / 0.1875)
        some = np.maximum(counts, 1.0)
        loud = np.where(
            counts > 0, self.loudness * (REFERENCE / some) ** noise["growth"], noise["untrained"]
        )
        behind = np.clip(np.log(self.truth.have / some) / WALK_STEP, 0, self.walk.shape[1] - 1)
        walked = [
            np.interp(at, np.arange(len(walk)), walk)
            for at, walk in zip(behind, self.walk, strict=True)
        ]
        drift = np.where(counts > 0, self.loudness * np.array(walked), 0.0)
        return np.clip(expected + shrink * (self.offset + drift + loud * each), 0.0, 1.0)

    def respond(self, chosen: Design) -> Response:
        """What the learner's trainings would measure, without stepping through them."""
        nothing = np.zeros(len(self.truth.names))
        scores = [self.scores(c, s) for c, s in zip(chosen.counts, chosen.seeds, strict=True)]
        found = np.array(scores).reshape(chosen.counts.shape)
        seeds = [chosen.seed + number for number in range(UNTRAINED)]
        return Response(
            tasks=self.truth.names,
            have=self.truth.have,
            counts=chosen.counts,
            scores=found,
            untrained=np.array([self.scores(nothing, seed) for seed in seeds]),
            higher_is_better=(True,) * len(self.truth.names),
            skill=_skill(found),
            skill_error=np.full(found.shape, SKILL_ERROR),
        )


SKILL_ERROR = 0.08
"""of the skill that a simulated validation set would show by chance: about 600 labels, a third of
them positive"""


def _skill(scores: Array) -> Array:
    """Scores are like ROC AUC."""
    return (scores - CHANCE) / (1 - CHANCE)


WALK_STEP = 0.1
"""of the logarithm of the count"""


def start_campaign(family: str, setting: str, seed: int) -> Campaign:
    """A truth and one seed set of it."""
    truth = draw_truth(family, setting, seed)
    rng, noise, size = np.random.default_rng([seed, 77]), TRUTHS["noise"], len(truth.names)
    steps = rng.normal(size=(size, 60)) * noise["seed_walk"] * np.sqrt(WALK_STEP)
    walk = np.concatenate([np.zeros((size, 1)), np.cumsum(steps, axis=1)], axis=1)
    loudness = rng.uniform(*noise["training"], size=size)
    return Campaign(truth, seed, loudness, noise["seed_offset"] * rng.normal(size=size), walk)


@dataclass
class SimulatedState:
    """How far a simulated training has come."""

    counts: Array
    seed: int
    done: int = 0


class SimulatedLearner:
    """Keeps the verbs of the Learner protocol; what it scores after a whole training comes from a
    campaign.

    It has no instances and so nothing to predict: `predict` answers its score for all of them.
    """

    def __init__(self, campaign: Campaign):
        self.campaign = campaign
        self.trained = 0
        """steps taken so far, by all trainings"""

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.campaign.truth.names

    def steps(self, labels: Labels) -> int:
        return 3

    def start(self, labels: Labels, seed: int) -> SimulatedState:
        return SimulatedState(
            np.array([len(labels[task]) for task in self.tasks], dtype=float), seed
        )

    def step(self, state: SimulatedState, tasks: Sequence[str]) -> SimulatedState:
        self.trained += 1
        return SimulatedState(state.counts, state.seed, state.done + 1)

    def fork(self, state: SimulatedState) -> SimulatedState:
        return replace(state)

    def score(self, state: SimulatedState, task: str) -> Measure:
        at = self.tasks.index(task)
        begin = self.campaign.scores(np.zeros(len(self.tasks)), state.seed)[at]
        end = self.campaign.scores(state.counts, state.seed)[at]
        metric = float(begin + min(state.done / 3, 1.0) * (end - begin))
        skill = float(_skill(np.array(end)))
        return Measure(
            metric, 1 - metric, higher_is_better=True, skill=skill, skill_error=SKILL_ERROR
        )

    def predict(
        self, state: SimulatedState, task: str, instances: NDArray[np.int64]
    ) -> NDArray[Any]:
        return np.full(len(instances), self.score(state, task).metric)


@dataclass(frozen=True)
class Outcome:
    """One campaign on its truth; regrets are in % of the range of the true surface."""

    family: str
    setting: str
    seed: int
    default: float
    neutral: float
    equal: float
    covered: bool
    above: bool
    """whether the truth lies above the interval"""
    width: float
    """of the interval of D_T(plan) - D_T(equal budget), in % of the range"""
    chance: float
    beats: bool
    counts: dict[str, int]


Method = Callable[[Response], Estimates]
PLANS = ("default", "neutral", "equal")


def run_campaign(
    family: str,
    setting: str,
    seed: int,
    trainings: int = TRAININGS,
    method: Method = fit,
    level: float = 0.9,
) -> Outcome:
    """Estimate from one seed set, plan, and look the plan up in the truth."""
    campaign = start_campaign(family, setting, seed)
    truth, problem = campaign.truth, campaign.truth.problem
    estimates = method(campaign.respond(design(campaign.labels, trainings, seed)))
    plan = allocate(problem, estimates.mean_gains())
    fixed = baselines(problem)
    plans = [
        list(counts.values()) for counts in (plan.counts, fixed["neutral"], fixed["equal budget"])
    ]
    best, span = truth.best(plans)
    gains = truth.gain(np.array(plans))
    draws = estimates.gain_over(problem, plan, fixed["equal budget"])
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    true = float(gains[0] - gains[2])
    slack = 1e-9 + 0.001 * span
    return Outcome(
        family,
        setting,
        seed,
        *((best - gains) / span * 100).tolist(),
        covered=bool(low - slack <= true <= high + slack),
        above=bool(true > high + slack),
        width=float(high - low) / span * 100,
        chance=float(np.mean(draws > 0)),
        beats=true > 0,
        counts=plan.counts,
    )


def run_campaigns(
    seeds: Sequence[int],
    families: Sequence[str] = FAMILIES,
    settings: Sequence[str] = SETTINGS,
    **options: Any,
) -> list[Outcome]:
    """One campaign for each family, setting and seed."""
    cells = itertools.product(families, settings, seeds)
    return [run_campaign(family, setting, seed, **options) for family, setting, seed in cells]


def buy(campaign: Campaign, counts: Mapping[str, int], number: int) -> Campaign:
    """The same truth with more labels at hand; what is peculiar about the seed set fades as new
    labels join it."""
    truth, rng = campaign.truth, np.random.default_rng([campaign.seed, 78, number])
    have = tuple(have + counts[name] for name, have in zip(truth.names, truth.have, strict=True))
    kept = np.array(truth.have) / np.array(have)
    steps = (
        rng.normal(size=campaign.walk[:, 1:].shape)
        * TRUTHS["noise"]["seed_walk"]
        * np.sqrt(WALK_STEP)
    )
    walk = np.concatenate([np.zeros((len(kept), 1)), np.cumsum(steps, axis=1)], axis=1)
    offset = TRUTHS["noise"]["seed_offset"] * rng.normal(size=len(kept))
    rest = np.sqrt(1 - kept**2)
    return replace(
        campaign,
        truth=replace(truth, have=have),
        seed=campaign.seed + 100_000,
        offset=rest * offset + kept * campaign.offset,
        walk=rest[:, None] * walk + kept[:, None] * campaign.walk,
    )


def run_rounds(
    family: str, setting: str, seed: int, rounds: int, trainings: int = TRAININGS
) -> float:
    """Regret in % of the range when at most so many orders are made, each as large as the campaign
    would propose."""
    first = campaign = start_campaign(family, setting, seed)
    problem = whole = first.truth.problem
    bought = dict.fromkeys(first.truth.names, 0)
    seen: list[Response] = []
    for left in range(rounds, 0, -1):
        seen.append(campaign.respond(design(campaign.labels, trainings, campaign.seed)))
        plan = allocate(problem, fit(join(seen)))
        now = plan.counts
        if left > 1:
            now = propose_tranche(plan, whole.budget, is_first=left == rounds).counts
        bought = {name: bought[name] + now[name] for name in bought}
        rest = problem.budget - problem.price(now)
        if rest < min(first.truth.costs):
            break
        problem = Problem(
            [replace(task, have=task.have + now[task.name]) for task in problem.tasks], budget=rest
        )
        campaign = buy(campaign, now, rounds - left + 1)
    best, span = first.truth.best([list(bought.values())])
    return (best - float(first.truth.gain(list(bought.values())))) / span * 100


def compare_rounds(seeds: Sequence[int], rounds: int = 3) -> str:
    """Mean regret of one round and of several, by family and setting, and the paired difference."""
    cells = list(itertools.product(FAMILIES, SETTINGS, seeds))
    one, many = (np.array([run_rounds(*cell, number) for cell in cells]) for number in (1, rounds))
    lines = [f"{'':<11} {'n':>4} {'one':>6} {'rounds':>6} {'less by':>14}"]
    for kind in (*FAMILIES, *SETTINGS, "all"):
        rows = np.array([kind in (*cell[:2], "all") for cell in cells])
        less = one[rows] - many[rows]
        error = less.std(ddof=1) / np.sqrt(len(less))
        means = f"{one[rows].mean():6.2f} {many[rows].mean():6.2f}"
        lines.append(f"{kind:<11} {len(less):>4} {means} {less.mean():+6.2f} +- {error:.2f}")
    return "\n".join(lines)


def tabulate(outcomes: Sequence[Outcome]) -> str:
    """Mean (and 90th percentile) regret by family and setting, coverage, and the same over all of a
    kind."""
    heads = [
        f"{head:>{size}}"
        for head, size in zip(("n", *PLANS, "cover", "width"), (4, 13, 13, 13, 6, 6), strict=True)
    ]
    lines = [f"{'family':<11} {'setting':<10} {' '.join(heads)}"]
    families = list(dict.fromkeys(each.family for each in outcomes))
    settings = list(dict.fromkeys(each.setting for each in outcomes))
    cells = [
        *itertools.product(families, settings),
        *(("all", s) for s in settings),
        *((f, "all") for f in families),
    ]
    for family, setting in cells:
        rows = [
            e for e in outcomes if family in (e.family, "all") and setting in (e.setting, "all")
        ]
        figures = []
        for key in PLANS:
            regrets = [getattr(row, key) for row in rows]
            figures.append(f"{np.mean(regrets):6.2f} {np.quantile(regrets, 0.9):6.1f}")
        cover, width = (
            np.mean([row.covered for row in rows]) * 100,
            np.mean([row.width for row in rows]),
        )
        lines.append(
            f"{family:<11} {setting:<10} {len(rows):>4} {' '.join(figures)} {cover:6.0f}"
            f" {width:6.1f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word != "rounds"]
    each, first = [*numbers, *(80, 1000)[len(numbers) :]]
    chosen = range(first, first + -(-each // len(SETTINGS)))
    print(compare_rounds(chosen) if "rounds" in sys.argv else tabulate(run_campaigns(chosen)))
