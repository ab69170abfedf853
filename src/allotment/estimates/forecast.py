"""What tasks score in their own metric: now, and with the labels of a plan.

Estimates know gains in % of a score. What that score is, trainings on all labels at hand say, each
scored on a fold that it did not see; every draw of the estimates then carries it to other numbers
of labels. A span holds the score of one model that is trained on so many labels, on instances like
those at hand: it covers the curve, the labels that it was scored on, and the luck of a training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array
from allotment.estimates.estimates import Estimates
from allotment.estimates.response import Response, find_full, find_scale
from allotment.formatting import find_places
from allotment.plan import unit_of
from allotment.standing import PERCENT

SPAN_LEVEL = 0.9
"""the share of spans that hold the score"""
BEST = 1.0
"""the highest value of metrics that are better when higher, unless a score is above it already"""
SAMPLING = 0.75
"""relative error of a score on some labels, beside the error of a rank correlation by chance on
them: of a mean absolute error it is the spread of |x| by its mean, if x is normal"""
SHARED_LUCK = 1.4
"""times that a score is as far off as its folds alone say: trainings of all folds share most of
their labels, and so their luck; by tuning tables (benchmarks/forecasts.py)"""
FEWEST_SPARE = 4
"""trainings beyond the first of each fold that must have seen the same labels, so that it can be
told how much they differ; of 60 trainings there are as many"""
SAMPLING_WEIGHT = 3
"""folds that this counts for, beside those that were measured"""


@dataclass(frozen=True)
class Span:
    """A figure, and where it lies with a probability of SPAN_LEVEL."""

    middle: float
    low: float
    high: float

    def say(self, places: int) -> str:
        """With so many decimals.

        >>> Span(1.9042, 1.6833, 2.1791).say(2)
        '1.90 (1.68 to 2.18)'
        """
        figures = (self.middle, self.low, self.high)
        middle, low, high = (f"{round(each, places) + 0.0:.{places}f}" for each in figures)
        return f"{middle} ({low} to {high})"


@dataclass(frozen=True)
class Forecast:
    """What a task scores in its own metric."""

    metric: str
    higher_is_better: bool
    now: Span
    """of a model trained on the labels at hand"""
    after: Span
    """of one trained on those of the plan as well"""

    @property
    def places(self) -> int:
        """Decimals by which both spans keep two digits."""
        return find_places(min(each.high - each.low for each in (self.now, self.after)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"level": SPAN_LEVEL}


def forecast(
    estimates: Estimates,
    now: Mapping[str, int],
    after: Mapping[str, int],
    metrics: Mapping[str, str] | None = None,
) -> dict[str, Forecast]:
    """Of each task what it scores with so many labels of every task `now` and `after` a purchase.

    A task that was never scored is left out; so are all where estimates do not count in % of a
    score. `metrics` are the names of the tasks' metrics.
    """
    found = {}
    for task in estimates.tasks:
        level = find_score_level(estimates, task)
        if level is not None:
            spans = level.find_span(now), level.find_span(after)
            metric = (metrics or {}).get(task, "score")
            found[task] = Forecast(metric, level.higher_is_better, *spans)
    return found


def describe_forecasts(found: Mapping[str, Forecast]) -> dict[str, Any]:
    """Plain values for JSON, by task."""
    return {task: each.to_dict() for task, each in found.items()}


def find_response(estimates: Estimates) -> Response | None:
    """What was measured, if gains are in % of these scores and go on from them by a power law."""
    measured = estimates.about.get("measured", {}).get("response")
    if measured is None or estimates.law != "power" or unit_of(estimates) != PERCENT:
        return None
    return Response.from_dict(measured)


@dataclass(frozen=True, eq=False)
class ScoreLevel:
    """What trainings with all labels of a task scored, and how far that may be off."""

    estimates: Estimates
    task: str
    higher_is_better: bool
    score: float
    """mean over folds"""
    scale: float
    """what gains are in % of"""
    counts: Array
    """[training, task]: labels that these had"""
    weight: Array
    """[training]: of each in the mean"""
    error: float
    """standard error of the score, by the labels that scored it"""
    luck: float
    """standard deviation of one training"""

    def find_span(self, counts: Mapping[str, int]) -> Span:
        """Where the score lies with so many labels of each task."""
        points = self._list_points(counts)
        low, high = np.quantile(points, [(1 - SPAN_LEVEL) / 2, (1 + SPAN_LEVEL) / 2])
        return Span(float(points.mean()), float(low), float(high))

    def find_reached(self, counts: Mapping[str, int], chance: float) -> float:
        """The score that is reached, or passed, with this chance."""
        share = 1 - chance if self.higher_is_better else chance
        return float(np.quantile(self._list_points(counts), share))

    def _list_points(self, counts: Mapping[str, int]) -> Array:
        """What models may score with so many labels of each task."""
        given = self.estimates
        total = np.maximum([counts[task] for task in given.tasks], 1.0)
        logs = np.log(np.maximum(self.counts, 1.0) / total)
        # [draw, labelled task]: (m^-a - n^-a) n^a, in the mean over the trainings
        rise = np.expm1(-given.shapes[:, None, :] * logs).transpose(0, 2, 1) @ self.weight
        worths = given.worths[:, given.tasks.index(self.task), :]
        gains = (worths * total**-given.shapes * rise).sum(axis=1)
        sign = 1 if self.higher_is_better else -1
        draws = self.score + sign * self.scale * gains / 100
        points = (draws[:, None] + np.hypot(self.error, self.luck) * NOISE).ravel()
        if not self.higher_is_better:
            points = np.maximum(points, 0.0)
        elif self.score <= BEST:
            points = np.minimum(points, BEST)
        return np.asarray(points)


NOISE = np.array([NormalDist().inv_cdf((place + 0.5) / 41) for place in range(41)])
"""quantiles that stand for the noise, so that a span has no chance in it"""


def find_score_level(estimates: Estimates, task: str) -> ScoreLevel | None:
    """None where the task was not scored, or estimates do not count in % of scores."""
    response = find_response(estimates)
    if response is None or task not in response.tasks:
        return None
    at, full = response.tasks.index(task), find_full(response, task)
    if full.sum() < 2:
        return None
    scores, fold = response.scores[full, at], response.fold[full]
    _, group = np.unique(fold, return_inverse=True)
    sizes = np.bincount(group)
    means = np.bincount(group, scores) / sizes
    known = np.isfinite(response.scores[:, at])
    scale = find_scale(response.scores[known, at], np.maximum(response.counts[known, at], 1))
    rest = scores - means[group]
    places = [response.tasks.index(each) for each in estimates.tasks]
    return ScoreLevel(
        estimates=estimates,
        task=task,
        higher_is_better=response.higher_is_better[at],
        score=float(means.mean()),
        scale=scale,
        counts=response.counts[full][:, places].astype(float),
        weight=1 / sizes[group] / len(means),
        error=_find_error(means, SAMPLING * scale * response.skill_error[full, at]),
        luck=float(np.sqrt(rest @ rest / max(len(scores) - len(means), 1))),
    )


def find_noise(estimates: Estimates, weights: Mapping[str, float]) -> float | None:
    """By how much D_T, the weighted mean of the tasks' scores in %, differs between two trainings
    on the same labels: the standard deviation of the difference. None where too few trainings saw
    the same to tell, or a task that counts was not scored.

    The luck of score levels is more than that: it holds what labels of other tasks bring.
    """
    response = find_response(estimates)
    levels = {task: find_score_level(estimates, task) for task in estimates.tasks if weights[task]}
    if response is None or not levels:
        return None
    totals = np.zeros(len(response.fold))
    for task, level in levels.items():
        if level is None:
            return None
        sign = 1 if level.higher_is_better else -1
        scores = response.scores[:, response.tasks.index(task)]
        totals += sign * weights[task] * 100 * scores / level.scale
    totals /= sum(weights[task] for task in levels)
    same = _find_alike(response) & np.isfinite(totals)
    if not same.any():
        return None
    _, group = np.unique(response.fold[same], return_inverse=True)
    sizes = np.bincount(group)
    rest = totals[same] - (np.bincount(group, totals[same]) / sizes)[group]
    spare = len(rest) - len(sizes)
    return math.sqrt(2 * float(rest @ rest) / spare) if spare >= FEWEST_SPARE else None


def _find_alike(response: Response) -> NDArray[np.bool_]:
    """[training]: whether it saw every label of every task that its fold leaves, as those beside it
    that did."""
    alike = np.zeros(len(response.fold), dtype=bool)
    for fold in np.unique(response.fold):
        here = response.fold == fold
        alike[here] = (response.counts[here] == response.counts[here].max(axis=0)).all(axis=1)
    return alike


def _find_error(means: Array, sampling: Array) -> float:
    """Standard error of the mean over folds: from how these differ, and from how much scores on so
    few labels usually do."""
    spare = len(means) - 1
    between = float(means.var(ddof=1)) if spare else 0.0
    known = sampling[np.isfinite(sampling)]
    if len(known):
        usual = float(np.mean(known**2))
        between = (spare * between + SAMPLING_WEIGHT * usual) / (spare + SAMPLING_WEIGHT)
    return SHARED_LUCK * float(np.sqrt(between / len(means)))
