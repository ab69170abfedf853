"""From how far tasks have come, and how steeply they still rise, to draws of what more labels are
worth.

The score of task i, in % of its score with all n_i labels at hand, after a training on m_j labels
of each task j:

    level of the fold + s_i x_i + sum over j of T_ij x_j + noise,    x_j = (1 - (m_j / n_j)^-a) / a

From now on it gains W_i (1 - (1 + N_i / n_i)^-a) / a by its own labels. Of W_i,

    W_i = V (n_i / n_0)^-a h_i r_i    for a task that learns, and 0 for one that is flat:

V is shared by all tasks, h_i is larger where much is missing to the best score, and r_i is what
tasks differ by; on top of that all tasks may go on at once as more or as less than so far. Slopes
so far say little of slopes to come, s_i = W_i times a factor that may be 2 or a half; mostly they
tell a flat task from one that learns. So does how far its answers are above chance, which for a
task that learns depends on how many labels it had. What looks flat may be late where labels are
few. V and r_i lie on grids, so that the posterior is a sum; T_ij is none, or Gaussian. Without any
training every task has the same prior, and the mean is the neutral plan's curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from allotment.arrays import Array
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.estimates import DRAWS, Estimates
from allotment.estimates.response import Response, find_scale, find_scored, find_skill, mean_full
from allotment.estimates.sampling import draw_normals, pick, spread_evenly

SHARED_SLOPE = 6.0
"""%, what an e-fold of labels brings a typical task: the middle of a wide prior"""
SHARED_SPREAD = 1.2
LOG_SHARED = np.log(SHARED_SLOPE) + np.linspace(-3.6, 3.6, 37)
"""grid of V"""
LOG_OWN = np.linspace(-2.0, 2.0, 27)
"""grid of r_i"""
BENDS = np.linspace(-2.5, 2.5, 21)
"""grid of what slopes so far are, beside those to come, in standard deviations of the logarithm"""
SKILL_GRID = np.linspace(0.0, 1.0, 41)
"""grid of how far answers are above chance: 0 is chance, 1 the best"""
FLAT = 1
"""the second state of a task, between learning and late"""
REACH = 2.0
"""times what is missing to the best score that a curve may end at: five times the labels at hand
follow it half of the way"""
LEAST_ROOM = 0.01
"""of a metric that cannot be above 1"""
FARTHEST_APART = 8.5
"""standard errors beyond which nothing becomes less likely"""
USUAL_NOISE = 4.0
"""%, of one training, before its residuals are seen; it counts as so many of them:"""
USUAL_STRENGTH = 4.0
UNKNOWN_SPREAD = 1e4
"""%, standard deviation of what nothing is known of"""


@dataclass(frozen=True)
class Signs:
    """What the trainings say of each task."""

    slope: Array
    """[task]: s_i"""
    slope_error: Array
    cells: Array
    """[gaining task, labelled task]: T_ij if it is not none"""
    cell_errors: Array
    cell_chances: Array
    """[gaining task, labelled task]: that it is not none"""
    room: Array
    """[task]: the most that can still be gained, in %"""
    missing: Array
    """[task]: to the best score, as a share of it; not a number where there is none"""
    skill: Array
    """[task]: how far answers are above chance; not a number where that is not known"""
    skill_error: Array


def fit(
    response: Response,
    draws: int = DRAWS,
    seed: int = 0,
    best: float | None = 1.0,
    beliefs: Beliefs | None = None,
) -> Estimates:
    """Posterior draws of every task's worth and transfer.

    `best` is the highest value of a metric that is better when higher (None if it has none); one
    that is better when lower ends at 0.
    """
    beliefs, rng = beliefs or Beliefs(), np.random.default_rng([abs(seed), 7])
    have = np.maximum(np.array(response.have, dtype=float), 1.0)
    typical = np.exp(np.log(have).mean())
    sizes = (have / typical) ** -beliefs.exponent
    signs = read_signs(response, sizes, best, beliefs)
    is_blank = not np.isfinite(response.scores).any()
    count = -(-draws // len(have)) if is_blank else draws
    rise = np.exp(draw_normals(count, beliefs.shared_bend, rng))
    own = draw_own(signs, have, sizes, rise, beliefs, rng)
    if is_blank:
        own = take_turns(own / sizes) * sizes
    left = draw_cells(signs, len(own), rng) * np.resize(rise, len(own))[:, None, None]
    left /= beliefs.exponent
    own /= beliefs.exponent
    if not is_blank:  # what is missing to the best is read off scores
        own = np.minimum(own, signs.room)
    left[:, range(len(have)), range(len(have))] = own
    about = {
        "method": "response",
        "trainings": len(response.scores),
        "folds": len(np.unique(response.fold)) or 1,
        "seed": seed,
    }
    exponents = np.full(own.shape, beliefs.exponent)
    worths = left * have**beliefs.exponent
    return Estimates(response.tasks, response.have, worths, exponents, about=about)


def read_signs(response: Response, sizes: Array, best: float | None, beliefs: Beliefs) -> Signs:
    """Slopes and transfer by least squares, levels by trainings with all labels."""
    tasks = range(len(sizes))
    steps = _find_steps(response, beliefs.exponent)
    views = [_View.of(response, task, steps) for task in tasks]
    typical = _find_typical(views, sizes)
    found = [_regress(view, typical, sizes, beliefs) for view in views]
    skills = [find_skill(response, task) for task in response.tasks]
    levels = [_find_level(response, task, best, skills[task][1]) for task in tasks]
    slope, slope_error, cells, cell_errors, cell_chances = (
        np.array(each) for each in zip(*found, strict=True)
    )
    return Signs(
        slope=slope,
        slope_error=slope_error,
        cells=cells,
        cell_errors=cell_errors,
        cell_chances=cell_chances,
        room=np.array([room for room, _ in levels]),
        missing=np.array([missing for _, missing in levels]),
        skill=np.array([skill for skill, _ in skills]),
        skill_error=np.array([error for _, error in skills]),
    )


def _find_steps(response: Response, exponent: float) -> Array:
    """[training, task]: x_j."""
    shares = np.maximum(response.counts, 1) / np.maximum(np.array(response.have), 1)
    return np.asarray((1 - shares**-exponent) / exponent)


@dataclass(frozen=True)
class _View:
    """Trainings that scored one task, its scores in %, better being higher."""

    task: int
    seen: Array
    """[training]: around their mean"""
    steps: Array
    """[training, task]"""
    folds: Array
    """[training, fold]: 1 where it is the training's"""

    @classmethod
    def of(cls, response: Response, task: int, steps: Array) -> _View:
        there = find_scored(response, response.tasks[task])
        scores, fold = response.scores[there, task], response.fold[there]
        scale = find_scale(scores, response.counts[there, task])
        sign = 1 if response.higher_is_better[task] else -1
        seen = sign * scores / scale * 100
        folds = (fold[:, None] == np.unique(fold)).astype(float)
        return cls(task, seen - (seen.mean() if len(seen) else 0.0), steps[there], folds)

    def measure_noise(self, columns: Array) -> float:
        """How much one training differs from the next, by what least squares leave over; beside it
        counts what the task's own labels leave over, the more so the fewer trainings there are."""
        own, few = self._find_rest(np.concatenate([self.folds, self.steps[:, [self.task]]], axis=1))
        usual = max(USUAL_NOISE**2, own / max(few, 1))
        rest, spare = self._find_rest(columns)
        return float(np.sqrt((USUAL_STRENGTH * usual + rest) / (USUAL_STRENGTH + spare)))

    def _find_rest(self, columns: Array) -> tuple[float, int]:
        """The sum of squares that is left, and how many of them are free."""
        weights, _, rank, _ = np.linalg.lstsq(columns, self.seen, rcond=None)
        spare = max(len(self.seen) - int(rank), 0)
        return (float(np.sum((self.seen - columns @ weights) ** 2)) if spare else 0.0), spare


def _find_typical(views: list[_View], sizes: Array) -> float:
    """The slope of a typical task by its own labels alone, in %: the scale of transfer."""
    slopes = []
    for view in views:
        if len(view.seen):
            columns = np.concatenate([view.folds, view.steps[:, [view.task]]], axis=1)
            weights = np.linalg.lstsq(columns, view.seen, rcond=None)[0]
            slopes.append(weights[-1] / sizes[view.task])
    return max(float(np.median(slopes)), 1.0) if slopes else SHARED_SLOPE


def _regress(
    view: _View, typical: float, sizes: Array, beliefs: Beliefs
) -> tuple[float, float, Array, Array, Array]:
    """Slope, its error, and transfer from each other task: size, error and chance to be real."""
    others = np.flatnonzero(np.arange(len(sizes)) != view.task)
    cells, errors, chances = np.zeros(len(sizes)), np.zeros(len(sizes)), np.zeros(len(sizes))
    if not len(view.seen):
        return 0.0, UNKNOWN_SPREAD, cells, errors, chances
    columns = np.concatenate(
        [view.folds, view.steps[:, [view.task]], view.steps[:, others]], axis=1
    )
    noise = beliefs.noise * view.measure_noise(columns)
    known = view.folds.shape[1] + 1
    widths = beliefs.transfer * typical * sizes[others]
    prior = np.concatenate([np.full(known, UNKNOWN_SPREAD**-2.0), widths**-2.0])
    spread = np.linalg.inv(columns.T @ columns / noise**2 + np.diag(prior))
    weights, error = spread @ columns.T @ view.seen / noise**2, np.sqrt(np.diag(spread))
    cells[others], errors[others] = weights[known:], error[known:]
    chances[others] = _weigh_real(cells[others], errors[others], widths, beliefs.no_transfer)
    return float(weights[known - 1]), float(error[known - 1]), cells, errors, chances


def _weigh_real(cells: Array, errors: Array, widths: Array, none: float) -> Array:
    """How likely a cell is not none, by how much likelier 0 became (Savage and Dickey's ratio)."""
    likelier = np.log(widths / errors) - 0.5 * (cells / errors) ** 2
    return np.asarray(1 / (1 + none / (1 - none) * np.exp(np.minimum(likelier, 50.0))))


def _find_level(
    response: Response, task: int, best: float | None, skill_error: float
) -> tuple[float, float]:
    """The most that can still be gained, and what is missing to the best score. Where answers by
    chance would score as well now and then, more may be missing than seems."""
    there = find_scored(response, response.tasks[task])
    if not response.higher_is_better[task]:
        return REACH * 100.0, np.nan
    if best is None or not there.any():
        return np.inf, np.nan
    scores, counts = response.scores[there, task], response.counts[there, task]
    score, scale = mean_full(scores, counts), find_scale(scores, counts)
    if score > best:  # which then is not the best
        return np.inf, np.nan
    if best <= 0:  # such as an error with its sign turned
        return REACH * (best - score) / scale * 100, np.nan
    seems = max((best - score) / best, LEAST_ROOM)
    missing = float(np.hypot(seems, np.nan_to_num(skill_error) / 2))
    return REACH * missing * best / scale * 100, missing


def draw_own(
    signs: Signs,
    have: Array,
    sizes: Array,
    rise: Array,
    beliefs: Beliefs,
    rng: np.random.Generator,
) -> Array:
    """[draw, task]: W_i, all of them as much larger or smaller in a draw as `rise` says. Draws of
    a task have the mean of its posterior, which is a sum, so that no plan hangs on how they
    fell."""
    usual = sizes * weigh_room(signs, beliefs)
    states, own = _weigh_states(signs, have, usual, beliefs)
    shared = -0.5 * ((LOG_SHARED - np.log(SHARED_SLOPE)) / SHARED_SPREAD) ** 2
    shared = shared + np.log(np.maximum(states.sum(axis=1), 1e-300)).sum(axis=0)
    shared = np.exp(shared - shared.max())
    shared /= shared.sum()
    places = spread_evenly(shared, len(rise), rng)
    found = np.zeros((len(rise), len(have)))
    for task in range(len(have)):
        chances = states[task] / states[task].sum(axis=0)  # [state, V]
        live = own[task] / own[task].sum(axis=1, keepdims=True)  # [V, r]
        blank = np.broadcast_to(_weigh_own(beliefs), live.shape)
        rows = np.stack([live, np.zeros_like(live), blank])  # [state, V, r]
        state = pick(chances[:, places].T, rng)
        ratio = pick(np.where((state == FLAT)[:, None], blank[places], rows[state, places]), rng)
        gains = np.exp(LOG_SHARED[places] + LOG_OWN[ratio]) * usual[task] * rise
        found[:, task] = np.where(state == FLAT, 0.0, gains)
        means = np.exp(LOG_SHARED) * np.sum(chances * (rows @ np.exp(LOG_OWN)), axis=0)
        exact, drawn = float(shared @ means) * usual[task] * rise.mean(), found[:, task].mean()
        found[:, task] = found[:, task] * (exact / drawn) if drawn > 0 else exact
    return found


def weigh_room(signs: Signs, beliefs: Beliefs) -> Array:
    """[task]: h_i, 1 in the mean over tasks whose metrics have a best score, and where there is
    none: 20 % of an area under a curve and 20 % of an error are not the same room."""
    logs = np.log(signs.missing)
    known = np.isfinite(logs)
    logs -= logs[known].mean() if known.any() else 0.0
    return np.asarray(np.exp(beliefs.room * np.where(known, logs, 0.0)))


def _weigh_own(beliefs: Beliefs) -> Array:
    """[r]: of tasks that learn; the mean of r is 1."""
    weights = np.exp(-0.5 * (LOG_OWN / beliefs.spread + beliefs.spread / 2) ** 2)
    weights /= weights.sum()
    return np.asarray(weights)


def _weigh_states(signs: Signs, have: Array, usual: Array, beliefs: Beliefs) -> tuple[Array, Array]:
    """[task, state, V]: how well a task that learns, is flat or is late goes with its signs; and
    [task, V, r] if it learns."""
    learnt, nothing = _weigh_skill(signs, have, beliefs)
    late = beliefs.flat * np.exp(-have / beliefs.late)
    bends = np.exp(-0.5 * BENDS**2) / np.exp(-0.5 * BENDS**2).sum()
    grid = LOG_SHARED[:, None, None] + LOG_OWN[:, None] + beliefs.bend * BENDS
    cell = LOG_OWN[1] - LOG_OWN[0]
    states, own = [], []
    for task in range(len(have)):
        slopes = np.exp(grid) * usual[task]
        # a slope anywhere between two places of the grid belongs to both
        error = np.hypot(signs.slope_error[task], cell * slopes)
        near = _weigh_gap((signs.slope[task] - slopes) / error) / error
        learns = (near @ bends) * _weigh_own(beliefs)
        still = _weigh_gap(signs.slope[task] / signs.slope_error[task]) / signs.slope_error[task]
        alive = (1 - beliefs.flat - late[task]) * learnt[task] * learns.sum(axis=1)
        flat = beliefs.flat * (nothing[task] + learnt[task]) / 2 * still
        begins = late[task] * nothing[task] * still
        states.append(np.stack([alive, np.full(len(alive), flat), np.full(len(alive), begins)]))
        own.append(np.maximum(learns, 1e-300))
    return np.array(states), np.array(own)


def _weigh_skill(signs: Signs, have: Array, beliefs: Beliefs) -> tuple[Array, Array]:
    """[task]: how likely answers so far above chance are for a task that learns, and for one that
    has learnt nothing."""
    middle = have / (have + beliefs.learnt)
    usual = np.exp(-0.5 * ((SKILL_GRID - middle[:, None]) / beliefs.learnt_spread) ** 2)
    usual /= usual.sum(axis=1, keepdims=True)
    least = SKILL_GRID[1]  # between two places of the grid nothing can be told
    error = np.maximum(np.nan_to_num(signs.skill_error, nan=1.0), least)[:, None]
    near = _weigh_gap((np.nan_to_num(signs.skill)[:, None] - SKILL_GRID) / error)
    near[np.isnan(signs.skill)] = 1.0
    return np.asarray((usual * near).sum(axis=1)), np.asarray(near[:, 0])


def _weigh_gap(errors: Array) -> Array:
    """How likely it is to be so many standard errors apart; far off all is alike, so that what fits
    no state leaves them nearly as they were."""
    return np.asarray(np.exp(-0.5 * np.minimum(np.square(errors), FARTHEST_APART**2)))


def take_turns(columns: Array) -> Array:
    """Draws [draw, task] in which every task has every other's turn, so that none differs from
    another where nothing is known of any."""
    return np.concatenate([np.roll(columns, turn, axis=1) for turn in range(columns.shape[1])])


def draw_cells(signs: Signs, draws: int, rng: np.random.Generator) -> Array:
    """[draw, gaining task, labelled task]: T_ij, with its mean; none stays none."""
    shape = (draws, *signs.cells.shape)
    real = rng.random(shape) < signs.cell_chances
    found = np.where(real, signs.cells + signs.cell_errors * rng.normal(size=shape), 0.0)
    missing = signs.cells * signs.cell_chances - found.mean(axis=0)
    return np.asarray(found + real * missing / np.maximum(real.mean(axis=0), 1 / draws))
