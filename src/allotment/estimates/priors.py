"""What is believed about learning curves before any of this campaign's trainings, with where each
number comes from.

"Evidence" are the project's own measurements on four Tox21 assays with 300 labels each
(docs/method.md); what that does not settle was chosen on simulated learners (tests/simulated.py,
seeds below 1000) and judged on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from allotment.arrays import Array
from allotment.plan import NEUTRAL_EXPONENT


@dataclass(frozen=True)
class Prior:
    """Spreads are standard deviations of logarithms; gains are in % of a task's score."""

    exponent: float = NEUTRAL_EXPONENT
    """from now on, shared by all tasks; evidence: 0.4 is near the best of two surfaces"""
    exponent_spread: float = 0.3
    own_exponent_spread: float = 0.3
    """of a task's own exponent around the shared one"""
    past: float = 0.0
    """exponent of the curves so far, shared by all tasks; below 0 a curve still gathers speed over
    log(labels)"""
    past_spread: float = 0.6
    """a standard deviation, as the exponent may be negative"""
    own_past_spread: float = 0.2
    slope: float = 8.0
    """what an e-fold of labels brings at the typical number of labels; evidence: 8.8 for NR-AhR"""
    slope_spread: float = 0.8
    spread: float = 0.1
    """of live tasks around the shared slope; evidence: 10 to 25 % did best"""
    bend: float = 0.6
    """how much more, or less, a task gains from now on than its curve so far says"""
    live: float = 0.70
    saturated: float = 0.12
    dead: float = 0.12
    """evidence: 5 % costs little and finds some, 15 % finds more and costs more"""
    late: float = 0.03
    """nothing learnt yet, but as live as the others from now on; evidence: SR-HSE rises only after
    300 labels"""
    saturated_share: float = 0.25
    """a saturated task gains up to this share of what a live one does"""
    saturated_past: float = 0.8
    """exponent of its curve so far: it has slowed down"""
    saturated_past_spread: float = 0.4
    surprise: float = 0.2
    """how much more, or less, a task gains from now on for reasons that no curve so far can show"""
    gathering: float = 1.6
    """how much more (a logarithm) all tasks gain from now on for each unit that the past exponent
    lies below 0"""
    shared_surprise: float = 0.4
    """how much more, or less, all tasks gain at once"""
    headroom: float = 2.0
    """how far beyond the headroom a curve may end: five times the labels at hand follow it half of
    the way"""
    transfers: tuple[tuple[float, float], ...] = ((0.02, 0.9), (0.1, 0.1))
    """standard deviations of what labels of others bring, as a share of what a live task's own do,
    and how likely each of them is; with wider ones, plans followed the noise of transfer on every
    family of simulated learners"""
    seed_set: float = 0.55
    """standard deviation of the slope over log(labels) from one seed set to another, in units of
    the noise of one training; evidence: intervals blind to it cover 71 to 79 % instead of 90, so it
    doubles the variance"""
    seed_set_folds: float = 0.3
    """the same where folds take turns: measured on tuning campaigns of Tox21 (0.15) and QM8
    (0.27)"""
    seed_set_others: float = 0.2
    """the same over the counts of other tasks"""
    noise: float = 4.0
    """of one training, in %, before its residuals are seen; it counts as `noise_strength` of
    them"""
    noise_strength: float = 4.0
    noise_growth: float = 0.5
    """the variance of a training on m of n labels goes with n / m to this power"""
    fold: float = 10.0
    """standard deviation of the levels of folds, in %"""
    learnt: float = 30.0
    """what a live task has gained since the untrained state"""
    learnt_spread: float = 0.7
    own_learnt_spread: float = 0.3
    learnt_growth: float = 0.3
    """it is larger where there are more labels than the typical number, by this power of them"""
    learnt_noise: float = 0.6
    """of that gain, from one seed set to another, in units of the noise of one training"""

    skill: float = 0.4
    """how far above chance the answers of a live task are: rank correlation, or 2 AUC - 1"""
    skill_spread: float = 0.8
    solved: float = 4.0
    """a saturated task is nearly solved: the chance of its skill rises with this power of it"""
    late_skill: float = 0.25
    """a late task may not be above chance at all, or a little"""
    skill_noise: float = 1.1
    """standard deviation of a skill, in units of that of answers by chance"""

    @property
    def later(self) -> Prior:
        """For rounds after the first. Some of what was future has been seen by now, and less is
        left to buy: how a curve went so far says more about how it goes on, and tasks may differ
        more. Chosen on simulated learners.
        """
        return replace(self, bend=self.bend / 2, spread=max(self.spread, 0.3))

    @cached_property
    def skills(self) -> Array:
        """The grid of how far answers are above chance: 0 is chance, 1 the best."""
        return np.linspace(0.0, 1.0, 51)

    @cached_property
    def skill_chances(self) -> Array:
        """[state, skill]"""
        some = np.maximum(self.skills, 1e-3)
        live = np.where(
            self.skills > 0,
            bell(np.log(some), float(np.log(self.skill)), self.skill_spread) / some,
            0.0,
        )
        saturated = self.skills**self.solved
        dead = (self.skills == 0).astype(float)
        late = np.exp(-0.5 * (self.skills / self.late_skill) ** 2)
        return np.array([each / each.sum() for each in (live, saturated, dead, late)])

    @cached_property
    def pasts(self) -> Array:
        """The grid of exponents so far."""
        return np.asarray(np.arange(-1.05, 1.51, 0.25))

    @cached_property
    def slopes(self) -> Array:
        """The grid of the shared slope."""
        return np.asarray(self.slope * np.exp(np.linspace(-2.4, 2.4, 13)))

    @cached_property
    def ratios(self) -> Array:
        """The grid of a task's own slope, relative to the shared one."""
        return np.asarray(np.exp(np.arange(-3.6, 1.81, 0.15)))

    @cached_property
    def states(self) -> Array:
        """How likely a task is live, saturated, dead or late."""
        chances = np.array([self.live, self.saturated, self.dead, self.late])
        return np.asarray(chances / chances.sum())

    @cached_property
    def past_chances(self) -> Array:
        """[past] of the shared one."""
        return bell(self.pasts, self.past, self.past_spread)

    @cached_property
    def own_past_chances(self) -> Array:
        """[shared past, own past]"""
        return np.array([bell(self.pasts, centre, self.own_past_spread) for centre in self.pasts])

    @cached_property
    def saturated_past_chances(self) -> Array:
        """[own past] of a saturated task, whatever the shared one."""
        return bell(self.pasts, self.saturated_past, self.saturated_past_spread)

    @cached_property
    def slope_chances(self) -> Array:
        """[slope]"""
        return bell(np.log(self.slopes), float(np.log(self.slope)), self.slope_spread)

    @cached_property
    def amounts(self) -> Array:
        """The grid of what was learnt so far."""
        return np.asarray(self.learnt * np.exp(np.linspace(-3, 2, 26)))

    @cached_property
    def learnt_chances(self) -> Array:
        """[learnt] of the shared one."""
        return bell(np.log(self.amounts), float(np.log(self.learnt)), self.learnt_spread)

    @cached_property
    def own_learnt_chances(self) -> Array:
        """[shared, own]"""
        logs = np.log(self.amounts)
        return np.array([bell(logs, centre, self.own_learnt_spread) for centre in logs])

    @cached_property
    def live_chances(self) -> Array:
        """[ratio]; the mean ratio is 1."""
        return bell(np.log(self.ratios), -(self.spread**2) / 2, self.spread)

    @cached_property
    def saturated_chances(self) -> Array:
        """[ratio]: all up to the share are equally likely; the grid is even over the logarithm."""
        low = np.where(self.ratios <= self.saturated_share, self.ratios, 0.0)
        return np.asarray(low / low.sum())

    @cached_property
    def bends(self) -> Array:
        """[ratio so far, ratio from now on]: how likely the first is, given the second."""
        logs = np.log(self.ratios)
        return np.array([bell(logs, centre, self.bend) for centre in logs]).T


def bell(values: Array, centre: float, spread: float) -> Array:
    """A normal distribution on a grid."""
    weight = np.exp(-0.5 * ((values - centre) / max(spread, 1e-9)) ** 2)
    return np.asarray(weight / weight.sum())


FEWEST_CURVES = 4
"""of a data set, from which on its curves say something about curves in general"""
FEWEST_SETS = 4
"""from which on what data sets differ by can be told"""
GIVEN = 3
"""sets that the given prior counts as: one data set's exponent alone planned worse than the neutral
one on tuning campaigns of another"""


def learn_prior(sets: Sequence[tuple[Sequence[int], Array]], given: Prior | None = None) -> Prior:
    """The prior with exponent, slope and their spreads from learning curves of other data sets.

    Each set is (numbers of labels, gains[number, task]): gains in % of the score with the first
    number of labels. A set with too few curves is left out, and so is a curve that doesn't rise or
    isn't finite. The given prior counts as three more sets, so that no single one decides.

    >>> counts, steps = [300, 600, 1200, 2400], 1 - np.array([1.0, 2, 4, 8])[:, None] ** -0.9
    >>> round(learn_prior([(counts, steps * [20.0, 25, 30, 20])]).exponent, 2)
    0.49
    """
    given = given or Prior()
    found = [
        _learn(np.asarray(counts, dtype=float), np.asarray(gains, dtype=float))
        for counts, gains in sets
    ]
    known = [each for each in found if each is not None]
    if not known:
        return given
    known.append(_Shape(given.exponent, given.slope, given.own_exponent_spread, given.spread))
    shared = np.log([[each.exponent, each.slope] for each in known])
    wider = shared.std(axis=0, ddof=1) if len(known) > FEWEST_SETS else np.zeros(2)
    weights = [1] * (len(known) - 1) + [GIVEN]
    centre = np.average(shared, axis=0, weights=weights)
    squares = [np.square([each.own_exponent_spread, each.spread]) for each in known]
    own = np.sqrt(np.average(squares, axis=0, weights=weights))
    # what few sets have in common is no proof that all sets do
    return replace(
        given,
        exponent=float(np.exp(centre[0])),
        exponent_spread=max(float(wider[0]), given.exponent_spread),
        own_exponent_spread=float(own[0]),
        slope=float(np.exp(centre[1])),
        slope_spread=max(float(wider[1]), given.slope_spread),
        spread=float(own[1]),
    )


@dataclass(frozen=True)
class _Shape:
    exponent: float
    slope: float
    own_exponent_spread: float
    spread: float


def _learn(counts: Array, gains: Array) -> _Shape | None:
    """What curves S (1 - (n / n_0)^-a) / a of one data set have in common, by least squares over
    a."""
    rising = gains[:, np.isfinite(gains).all(axis=0) & (gains[-1] > 0)]
    if rising.shape[1] < FEWEST_CURVES or len(counts) < 3:
        return None
    grid = np.exp(np.linspace(np.log(0.05), np.log(3.0), 83))
    steps = (1 - (counts / counts[0])[:, None] ** -grid) / grid  # [number, exponent]
    scaled = rising / rising[-1]
    sizes = steps.T @ scaled / np.sum(steps**2, axis=0)[:, None]  # [exponent, task]
    misfit = np.sum((scaled[:, None, :] - steps[:, :, None] * sizes) ** 2, axis=0)
    best, own = int(misfit.sum(axis=1).argmin()), misfit.argmin(axis=0)
    slopes = np.maximum(sizes[best] * rising[-1], 1e-9)
    return _Shape(
        exponent=float(grid[best]),
        slope=float(np.exp(np.log(slopes).mean())),
        own_exponent_spread=float(np.log(grid[own]).std(ddof=1)),
        spread=float(np.log(slopes).std(ddof=1)),
    )
