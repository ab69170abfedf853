"""What answers to whole instances are worth, in numpy alone: their losses, their scores, and the
best answer that is the same for all."""

from __future__ import annotations

import numpy as np

from allotment.arrays import AnyArray, Array
from allotment.data.dataset import Target
from allotment.learners.learner import Measure
from allotment.learners.metrics import CHANCE_ERROR, SKILLS, USUAL_METRICS, metric_of

ANSWERED_KINDS = ("classification", "multilabel", "regression")
"""kinds of tasks that say one thing of a whole instance"""
LEAST_CHANCE = 1e-6
"""that a class is given, so that no answer loses without end"""
BEND = 0.5
"""of the smooth absolute error, in standard deviations of the labels, where a line takes over from
a square, as in the losses of networks"""


def find_constant(target: Target, values: AnyArray) -> Array:
    """The best answer that is the same for every instance, by labels (n, ...): a number, or a
    probability for each class."""
    if target.kind == "regression":
        known = np.sort(values[~np.isnan(values)].astype(np.float64))
        if not len(known):
            return np.zeros(())
        return np.asarray(known.mean() if _is_squared(target) else np.median(known))
    if target.kind == "multilabel":
        known = ~np.isnan(values)
        return np.asarray((np.nansum(values, axis=0) + 0.5) / (known.sum(axis=0) + 1.0))
    counts = spread_classes(target, values).sum(axis=0) + 0.5
    return np.asarray(counts / counts.sum())


def spread_classes(target: Target, values: AnyArray) -> Array:
    """Classes as probabilities of 1 (n, classes); probabilities as they are."""
    if values.ndim == 2:
        return values.astype(np.float64)
    return np.eye(len(target.classes))[values.astype(np.int64)]


def list_errors(target: Target, answers: AnyArray, values: AnyArray) -> Array:
    """How far each answer is off (n,), by what the task's metric is about; 0 where the label is
    unknown."""
    if target.kind == "regression":
        off = np.abs(np.nan_to_num(answers - values))
        return np.asarray(off**2 if _is_squared(target) else off)
    return _list_log_losses(target, answers, values)


def _is_squared(target: Target) -> bool:
    """Whether it is scored by squares of errors, so that the mean and not the median is best."""
    return (target.metric or USUAL_METRICS[target.kind]) not in ("mae", "loss")


def _list_log_losses(target: Target, answers: AnyArray, values: AnyArray) -> Array:
    chances = np.clip(answers, LEAST_CHANCE, 1 - LEAST_CHANCE)
    if target.kind == "classification":
        return np.asarray(-(spread_classes(target, values) * np.log(chances)).sum(axis=1))
    known = ~np.isnan(values)
    yes = np.nan_to_num(values)
    each = -(yes * np.log(chances) + (1 - yes) * np.log(1 - chances))
    return np.asarray((each * known).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def measure_answers(
    target: Target, answers: AnyArray, values: AnyArray, spread: float = 1.0
) -> Measure:
    """The score of answers; `spread` is the standard deviation of a number's labels, by which its
    loss is counted."""
    metric = metric_of(target)
    loss = _mean_loss(target, answers, values, spread)
    score = loss if metric is None else metric(answers, values)
    skilled = SKILLS[target.kind](answers, values), CHANCE_ERROR(answers, values)
    return Measure(score, loss, metric is not None and metric.higher_is_better, *skilled)


def _mean_loss(target: Target, answers: AnyArray, values: AnyArray, spread: float) -> float:
    if not len(values):
        return float("nan")
    if target.kind != "regression":
        return float(_list_log_losses(target, answers, values).mean())
    off = np.abs(answers - values)[~np.isnan(values)] / spread
    if not len(off):
        return 0.0
    if target.loss == "l1":
        return float(off.mean())
    return float(np.where(off < BEND, off**2 / (2 * BEND), off - BEND / 2).mean())
