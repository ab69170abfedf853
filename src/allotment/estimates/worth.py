"""From what trainings on fewer labels scored to draws of what more labels are worth.

The score of task i, in % of its score with all n_i labels at hand, after a training on m_j labels
of each task j:

    c_i + S_i (1 - (m_i / n_i)^-p_i) / p_i + sum over j of T_ij (1 - (m_j / n_j)^-a)
        + seed set + training

S_i is the slope at n_i labels: what an e-fold of them would bring. From there the gain goes on as
S_i (1 - (1 + N_i / n_i)^-a_i) / a_i, and headroom limits where that ends; how a curve bent so far
(p_i) says little about how it will bend (a_i). All tasks share a slope V at the typical number of
labels n_0: S_i = V rho_i (n_i / n_0)^-a. A task is live (rho around 1), saturated (rho near 0),
dead (rho is 0, and nothing was learnt so far) or late (little or nothing was learnt so far, but
from now on it is as live as the others); how far its answers are above chance tells these apart.
Whatever is not linear lies on a grid, so that the posterior is a sum; the rest is Gaussian. Without
any training every task has the same prior, and the mean is the neutral plan's curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.arrays import Array, Ints
from allotment.estimates.estimates import DRAWS, Estimates
from allotment.estimates.priors import Prior
from allotment.estimates.response import Response, find_scale
from allotment.estimates.sampling import draw_normals, draw_surprise, pick, spread_evenly

LIVE, SATURATED, DEAD, LATE = range(4)
"""states, in the order of Prior.states"""
UNKNOWN_LEVEL = 1e6
"""variance of c_i, in % squared: nothing is known of it"""


def fit(
    response: Response,
    draws: int = DRAWS,
    seed: int = 0,
    best: float | None = 1.0,
    prior: Prior | None = None,
) -> Estimates:
    """Posterior draws of every task's worth, exponent and transfer.

    `best` is the highest value of a metric that is better when higher (None if it has none); one
    that is better when lower ends at 0.
    """
    prior = prior or Prior()
    rng = np.random.default_rng([abs(seed), 5])
    have = np.maximum(np.array(response.have, dtype=float), 1.0)
    about = {
        "method": "response",
        "trainings": len(response.scores),
        "folds": len(np.unique(response.fold)) or 1,
    }
    about["seed"] = seed
    if not np.isfinite(response.scores).any():
        worths, exponents = _draw_prior(have, prior, draws, rng)
    else:
        views = [_look_at(response, task, best) for task in range(len(have))]
        worths, exponents = _draw(
            [_fit_task(view, have, prior) for view in views], prior, draws, rng
        )
    return Estimates(
        response.tasks,
        response.have,
        worths * (have**exponents)[:, None, :],
        exponents,
        about=about,
    )


@dataclass(frozen=True)
class TaskScores:
    """One task's scores in % of its score with all labels, better being higher."""

    task: int
    seen: Array
    """[training]"""
    logs: Array
    """[training, task]: of the share of labels kept"""
    fold: Ints
    """[training]: which part of the labels scored it"""
    start: Array
    """[state]: before any training"""
    room: float
    """the most that can still be gained"""
    skill: Array
    """[training]: how far its answers are above chance, whatever the metric"""
    skill_error: Array
    """[training]: of answers by chance"""


def _look_at(response: Response, task: int, best: float | None) -> TaskScores:
    there = np.isfinite(response.scores[:, task])
    scores, start = response.scores[there, task], response.untrained[:, task]
    counts = np.maximum(response.counts[there], 1)
    own = counts[:, task]
    scale = find_scale(scores, own)
    higher = response.higher_is_better[task]
    room = 100.0
    if higher:
        room = (best - scale) / scale * 100 if best is not None and best > scale else np.inf
    factor = (1.0 if higher else -1.0) * 100 / scale
    logs = np.log(counts / np.maximum(np.array(response.have), 1))
    return TaskScores(
        task=task,
        seen=factor * scores,
        logs=logs,
        fold=response.fold[there],
        start=factor * start[np.isfinite(start)],
        room=room,
        skill=response.skill[there, task],
        skill_error=response.skill_error[there, task],
    )


@dataclass(frozen=True)
class TaskLikelihood:
    """One task's likelihoods on the grid of the prior, and its transfer given any place on it."""

    sizes: Array
    """[task]: how large slopes are at its number of labels, beside the typical number"""
    likelihood: Array
    """[slope, transfer, past, ratio]: of the trainings if it learns, up to a factor"""
    learnt: Array
    """[learnt]: of what it has learnt so far, if it learns; up to the same factor"""
    idle: float
    """of both, if it has not learnt anything so far"""
    skill: Array
    """[state]: of its answers being so far above chance"""
    room: float
    """the most that can still be gained"""
    task: int
    others: Ints
    pull: Array
    """[slope, transfer, other, 1 + past]: the mean of T_ij is pull[0] - S_i pull[1 + past]"""
    spread: Array
    """[slope, transfer, other, other]: a root of the covariance of T_ij"""


def _fit_task(view: TaskScores, have: Array, prior: Prior) -> TaskLikelihood:
    typical = np.exp(np.mean(np.log(have)))
    sizes = (have / typical) ** -prior.exponent
    others = np.flatnonzero(np.arange(len(have)) != view.task)
    steps = -np.expm1(-prior.exponent * view.logs)[:, others] * sizes[others] / prior.exponent
    noise = _find_noise(view, steps, prior)
    chance = noise**2 * _noise_shape(view, others, prior) + _fold_noise(view, prior)
    inverse = np.linalg.inv(chance + UNKNOWN_LEVEL)
    pasts = np.where(np.abs(prior.pasts) < 1e-6, 1e-6, prior.pasts)
    own = -np.expm1(-np.outer(view.logs[:, view.task], pasts)) / pasts
    features = np.concatenate([view.seen[:, None], own, steps], axis=1)
    products = features.T @ inverse @ features
    known = 1 + len(pasts)
    # T_ij has a standard deviation of a share of V, and few of them are there: Woodbury's formula
    scales = np.multiply.outer(prior.slopes, [share for share, _ in prior.transfers])[
        :, :, None, None
    ]
    # [slope, transfer, other, other]
    rest = np.linalg.inv(products[known:, known:] + np.eye(len(others)) / scales**2)
    pull = rest @ products[known:, :known]
    inner = products[:known, :known] - products[:known, known:] @ pull
    flat = 0.5 * (
        np.linalg.slogdet(rest)[1] - 2 * len(others) * np.log(scales[..., 0, 0]) - inner[..., 0, 0]
    )
    flat = (
        flat
        + np.log([chance for _, chance in prior.transfers])
        + 0.5 * np.linalg.slogdet(inverse)[1]
    )
    slopes = (sizes[view.task] * prior.slopes[:, None] * prior.ratios)[:, None, None]
    across, square = inner[..., 0, 1:, None], np.diagonal(inner, axis1=2, axis2=3)[..., 1:, None]
    learns, idle = _weigh_learnt(view, have, chance, noise, prior)
    logs = flat[..., None, None] + slopes * across - 0.5 * slopes**2 * square
    top = max(float(logs.max() + np.log(learns.max())), idle)
    return TaskLikelihood(
        sizes=sizes,
        likelihood=np.exp(logs - top),
        learnt=learns,
        idle=float(np.exp(idle - top)),
        skill=_weigh_skill(view, prior),
        room=view.room,
        task=view.task,
        others=others,
        pull=pull,
        spread=_roots(rest),
    )


def _find_noise(view: TaskScores, steps: Array, prior: Prior) -> float:
    """How much one training differs from the next, from what a least-squares fit leaves over."""
    levels = view.fold[:, None] == np.unique(view.fold)
    columns = np.concatenate([levels, view.logs[:, [view.task]], steps], axis=1)
    found, _, rank, _ = np.linalg.lstsq(columns, view.seen, rcond=None)
    spare = max(len(view.seen) - int(rank), 0)
    rest = float(np.sum((view.seen - columns @ found) ** 2)) if spare else 0.0
    return float(
        np.sqrt((prior.noise_strength * prior.noise**2 + rest) / (prior.noise_strength + spare))
    )


def _noise_shape(view: TaskScores, others: Ints, prior: Prior) -> Array:
    """[training, training]: covariance of the scores by chance, in units of one training's
    variance."""
    own, rest = view.logs[:, view.task], view.logs[:, others]
    seed_set = prior.seed_set if len(np.unique(view.fold)) == 1 else prior.seed_set_folds
    drift = seed_set**2 * np.outer(own, own) + prior.seed_set_others**2 * rest @ rest.T
    return np.asarray(np.diag(np.exp(-prior.noise_growth * own)) + drift)


def _fold_noise(view: TaskScores, prior: Prior) -> Array:
    """[training, training]: covariance of the levels of folds, of which there are none with one
    fold only."""
    alike = view.fold[:, None] == view.fold
    return np.asarray(
        prior.fold**2 * (alike if len(np.unique(view.fold)) > 1 else np.zeros_like(alike))
    )


def _weigh_learnt(
    view: TaskScores, have: Array, chance: Array, noise: float, prior: Prior
) -> tuple[Array, float]:
    """How likely it is to be so far above the untrained state: if it learns [learnt], if it has not
    begun (a log)."""
    if np.isfinite(view.skill).any() or not len(view.start) or not len(view.seen):
        return np.ones(len(prior.amounts)), _log_normal(view.seen, chance + UNKNOWN_LEVEL)
    unsure = noise**2 * (prior.learnt_noise**2 + 1 / len(view.start))
    idle = _log_normal(view.seen - view.start.mean(), chance + unsure)
    columns = np.stack([np.ones(len(view.seen)), view.logs[:, view.task]], axis=1)
    weights = np.linalg.inv(chance)
    precision = columns.T @ weights @ columns + 1e-12 * np.eye(2)
    learnt = float(
        np.linalg.solve(precision, columns.T @ weights @ view.seen)[0] - view.start.mean()
    )
    unsure = unsure + float(np.linalg.inv(precision)[0, 0])
    amounts = (
        prior.amounts * (have[view.task] / np.exp(np.mean(np.log(have)))) ** prior.learnt_growth
    )
    gaps = np.minimum((learnt - amounts) ** 2 / unsure, 36.0)  # beyond 6 sd only rounding differs
    density = prior.own_learnt_chances @ np.exp(-0.5 * gaps) / np.sqrt(2 * np.pi * unsure)
    return np.asarray(density * np.sqrt(2 * np.pi * UNKNOWN_LEVEL)), idle


def _weigh_skill(view: TaskScores, prior: Prior) -> Array:
    """[state]: how likely answers so far above chance are, for a live, saturated, dead and late
    task."""
    there = np.isfinite(view.skill) & np.isfinite(view.skill_error)
    if not there.any():
        return np.ones(len(prior.states))
    folds = [there & (view.fold == fold) for fold in np.unique(view.fold[there])]
    found = np.mean([view.skill[fold].mean() for fold in folds])
    error = prior.skill_noise * np.sqrt(
        np.mean([view.skill_error[fold].mean() ** 2 for fold in folds]) / len(folds)
    )
    near = np.exp(-0.5 * np.minimum(((found - prior.skills) / error) ** 2, 72.0))
    return np.asarray(prior.skill_chances @ near)


def _log_normal(values: Array, covariance: Array) -> float:
    """The logarithm of a normal density, but for a constant of the number of values."""
    return float(
        -0.5 * (values @ np.linalg.solve(covariance, values) + np.linalg.slogdet(covariance)[1])
    )


def _roots(covariances: Array) -> Array:
    values, vectors = np.linalg.eigh((covariances + covariances.swapaxes(-1, -2)) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def _weigh_ratios(each: TaskLikelihood, prior: Prior) -> tuple[Array, Array]:
    """[shared past, slope, ratio from now on]: how well a live task goes with all of that, and a
    saturated one."""
    learns = (each.likelihood.sum(axis=1) @ prior.bends).transpose(1, 0, 2)  # [past, slope, ratio]
    live = np.tensordot(prior.own_past_chances, learns, axes=1) * prior.live_chances
    saturated = np.tensordot(prior.saturated_past_chances, learns, axes=1) * prior.saturated_chances
    return live, np.broadcast_to(saturated, live.shape)


def _draw(
    fits: list[TaskLikelihood], prior: Prior, draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """What is left to gain at the labels at hand [draw, task, task], and exponents [draw, task]."""
    tables = [_weigh_ratios(each, prior) for each in fits]
    total = np.log(prior.past_chances)[:, None, None] + np.log(prior.slope_chances)[:, None]
    total = total + np.log(prior.learnt_chances)
    chances = [_weigh_states(each, *table, prior) for each, table in zip(fits, tables, strict=True)]
    for weight in chances:
        total = total + np.log(np.maximum(weight.sum(axis=0), 1e-300))
    weights = np.exp(total - total.max()).ravel()
    shared: tuple[Any, ...] = np.unravel_index(
        spread_evenly(weights / weights.sum(), draws, rng), total.shape
    )
    exponents = _draw_exponents(draws, len(fits), prior, rng)
    rise = draw_surprise(draws, prior.shared_surprise, rng)
    # curves that still gather speed go on to rise more than those that slow down
    rise = rise * np.exp(-prior.gathering * prior.pasts[shared[0]])
    left = np.zeros((draws, len(fits), len(fits)))
    for each, table, chance in zip(fits, tables, chances, strict=True):
        state = pick(chance[(slice(None), *shared)].T, rng)
        slopes, transfer = _draw_task(each, table, state, shared[:2], prior, rng)
        slopes = slopes * draw_surprise(draws, prior.surprise, rng) * rise
        left[:, each.task, each.task] = np.minimum(
            slopes / exponents[:, each.task], prior.headroom * each.room
        )
        left[:, each.task, each.others] = (
            transfer * each.sizes[each.others] / prior.exponent * rise[:, None]
        )
    return left, exponents


def _weigh_states(each: TaskLikelihood, live: Array, saturated: Array, prior: Prior) -> Array:
    """[state, shared past, slope, learnt]"""
    learns = [np.multiply.outer(ratios.sum(axis=2), each.learnt) for ratios in (live, saturated)]
    idle = np.full(learns[0].shape, each.idle)
    return np.stack([*learns, idle, idle]) * (prior.states * each.skill)[:, None, None, None]


def _draw_task(
    each: TaskLikelihood,
    tables: tuple[Array, Array],
    state: Ints,
    shared: tuple[Ints, ...],
    prior: Prior,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Of each draw of what is shared: S_i from now on, and T_ij."""
    past, slope = shared
    low, learns = (state == SATURATED)[:, None], (state == LIVE) | (state == SATURATED)
    ratios = np.where(low, tables[1][shared], tables[0][shared])
    ratio = pick(np.where(learns[:, None], ratios, prior.live_chances), rng)
    # then what the curve was so far, one after the other, so that no table is large
    pasts = np.where(low, prior.saturated_past_chances, prior.own_past_chances[past])
    cells = (
        np.einsum("dtpr,dr->dtp", each.likelihood[slope], prior.bends[:, ratio].T)
        * pasts[:, None, :]
    )
    size, own = np.unravel_index(pick(cells.reshape(len(cells), -1), rng), cells.shape[1:])
    before = pick(each.likelihood[slope, size, own] * prior.bends[:, ratio].T, rng)
    usual = each.sizes[each.task] * prior.slopes[slope]
    future = np.where(state == DEAD, 0.0, prior.ratios[ratio])
    chance = np.einsum(
        "dop,dp->do", each.spread[slope, size], rng.normal(size=(len(slope), len(each.others)))
    )
    so_far = (usual * prior.ratios[before])[:, None]
    transfer = each.pull[slope, size, :, 0] - so_far * each.pull[slope, size, :, 1 + own] + chance
    return usual * future, np.where(learns[:, None], transfer, 0.0)


def _draw_exponents(draws: int, tasks: int, prior: Prior, rng: np.random.Generator) -> Array:
    """[draw, task]: around the shared one of each draw; every task's geometric mean is the neutral
    exponent."""
    shared = draw_normals(draws, prior.exponent_spread, rng)[:, None]
    own = np.stack(
        [draw_normals(draws, prior.own_exponent_spread, rng) for _ in range(tasks)], axis=1
    )
    return np.asarray(prior.exponent * np.exp(shared + own))


def _draw_prior(
    have: Array, prior: Prior, draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draws without evidence, in which every task has every other's turn, so that none differs from
    another."""
    size, typical = len(have), np.exp(np.mean(np.log(have)))
    rounds = -(-draws // size)

    def pick_all(chances: Array) -> Ints:
        rows = np.broadcast_to(chances, (rounds * size, chances.shape[-1]))
        return pick(rows, rng).reshape(rounds, size)

    state = pick_all(prior.states)
    low, usual = pick_all(prior.saturated_chances), pick_all(prior.live_chances)
    ratio = np.where(state == SATURATED, low, usual)
    slopes = (
        prior.slopes[spread_evenly(prior.slope_chances, rounds, rng)][:, None] * prior.ratios[ratio]
    )
    slopes = (
        slopes
        * draw_surprise(rounds * size, prior.surprise, rng).reshape(rounds, size)
        * (state != DEAD)
    )
    exponents = _draw_exponents(rounds, size, prior, rng)
    turns = [
        (np.roll(slopes, turn, axis=1), np.roll(exponents, turn, axis=1)) for turn in range(size)
    ]
    slopes, exponents = (np.concatenate(each) for each in zip(*turns, strict=True))
    left = slopes / exponents * (have / typical) ** -exponents
    return left[:, :, None] * np.eye(size), exponents
