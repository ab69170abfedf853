"""How good predictions are; every metric knows which way is better.

Predictions come as a learner's `predict` gives them: probabilities of classes, or values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import AnyArray
from allotment.data.dataset import PIXEL_KINDS, VOID, WITH_CLASSES, Target
from allotment.errors import InputError, Mistake, suggest
from allotment.plugins import Registry


@dataclass(frozen=True)
class Metric:
    """A function of predictions and labels, and its direction."""

    name: str
    higher_is_better: bool
    kinds: tuple[str, ...]
    compute: Callable[[AnyArray, AnyArray], float]
    tally: Callable[[AnyArray, AnyArray], AnyArray] | None = None
    """of PIXEL_KINDS: numbers that add up over parts of the data, so that predictions need not all
    be kept"""
    finish: Callable[[AnyArray], float] | None = None
    """the metric of added tallies"""
    title: str = ""
    """as people write it; its name if empty"""
    ranks: bool = False
    """whether it looks at the order of answers alone: those of one model cannot be put in a row
    with those of another"""

    def __call__(self, predictions: AnyArray, values: AnyArray) -> float:
        if not len(values):
            return float("nan")
        return float(self.compute(predictions, values))


class Running:
    """A metric over parts of the data that come one after the other."""

    def __init__(self, metric: Metric, kind: str):
        self._metric = metric
        self._by_parts = kind in PIXEL_KINDS
        self._tally: AnyArray | None = None
        self._parts: list[tuple[AnyArray, AnyArray]] = []

    def add(self, predictions: AnyArray, values: AnyArray) -> None:
        if self._metric.tally is None or not self._by_parts:
            self._parts.append((predictions, values))
            return
        tally = self._metric.tally(predictions, values)
        self._tally = tally if self._tally is None else self._tally + tally

    def result(self) -> float:
        if self._tally is not None and self._metric.finish is not None:
            return self._metric.finish(self._tally)
        if not self._parts:
            return float("nan")
        predictions, values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        return self._metric(predictions, values)


def jaccard(predictions: AnyArray, values: AnyArray) -> float:
    """Mean over instances of |predicted and true| / |predicted or true|; 1 where both are empty."""
    known = ~np.isnan(values)
    said, true = (predictions > 0.5) & known, (np.nan_to_num(values) > 0.5) & known
    both, either = (said & true).sum(axis=1), (said | true).sum(axis=1)
    return float(np.mean(np.where(either > 0, both / np.maximum(either, 1), 1.0)))


def confusion(predictions: AnyArray, values: AnyArray) -> NDArray[np.int64]:
    """Counts of (true class, predicted class), void left out."""
    classes = predictions.shape[1]
    said = _likeliest(predictions).ravel()
    true = values.astype(np.int64).ravel()
    # a class of a whole may be that one
    counts = true != VOID if values.ndim > 1 else np.ones_like(true, dtype=bool)
    return np.bincount(true[counts] * classes + said[counts], minlength=classes**2).reshape(
        classes, classes
    )


def _likeliest(predictions: AnyArray) -> AnyArray:
    """argmax over axis 1, a class at a time: for maps several times as fast as numpy's."""
    best, said = predictions[:, 0].copy(), np.zeros(predictions[:, 0].shape, dtype=np.int64)
    for place in range(1, predictions.shape[1]):
        better = predictions[:, place] > best
        np.copyto(best, predictions[:, place], where=better)
        said[better] = place
    return said


def mean_iou(predictions: AnyArray, values: AnyArray) -> float:
    """Mean over classes of the intersection over the union of pixels; classes seen in neither do
    not count."""
    return _iou_of(confusion(predictions, values))


def _iou_of(table: AnyArray) -> float:
    both = np.diag(table)
    either = table.sum(axis=0) + table.sum(axis=1) - both
    return (
        float(np.mean(both[either > 0] / either[either > 0]))
        if _is_question(table)
        else float("nan")
    )


def accuracy(predictions: AnyArray, values: AnyArray) -> float:
    """Share of right classes: of instances, of pixels, or of (instance, class) pairs for
    multilabel."""
    if predictions.shape == values.shape:
        known = ~np.isnan(values)
        return float(np.mean((predictions > 0.5)[known] == (values > 0.5)[known]))
    return _accuracy_of(confusion(predictions, values))


def _accuracy_of(table: AnyArray) -> float:
    return float(np.trace(table) / table.sum()) if _is_question(table) else float("nan")


def _is_question(table: AnyArray) -> bool:
    """Whether there was anything to be said, and more than one thing that could be: one class alone
    is always right."""
    return len(table) > 1 and bool(table.any())


def balanced_accuracy(predictions: AnyArray, values: AnyArray) -> float:
    """Mean over the classes that occur of the share of them that is found."""
    return _balanced_of(confusion(predictions, values))


def _balanced_of(table: AnyArray) -> float:
    sizes = table.sum(axis=1)
    if not _is_question(table):
        return float("nan")
    return float(np.mean(np.diag(table)[sizes > 0] / sizes[sizes > 0]))


def log_loss(predictions: AnyArray, values: AnyArray) -> float:
    """Mean of -log of the probability that was given to what is true."""
    least = np.finfo(predictions.dtype).eps
    chances = np.clip(predictions, least, 1 - least).astype(np.float64)
    if predictions.shape == values.shape:
        known = ~np.isnan(values)
        right = np.where(values > 0.5, chances, 1 - chances)[known]
        return float(-np.log(right).mean()) if known.any() else float("nan")
    chances /= chances.sum(axis=1, keepdims=True)
    return float(-np.log(chances[np.arange(len(values)), values.astype(np.int64)]).mean())


def f1(predictions: AnyArray, values: AnyArray) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN); a class seen in neither counts as 0."""
    if predictions.shape == values.shape:
        known = ~np.isnan(values)
        said, true = (predictions > 0.5) & known, (np.nan_to_num(values) > 0.5) & known
        hits, sizes = (said & true).sum(axis=0), said.sum(axis=0) + true.sum(axis=0)
        return float(np.mean(2 * hits / np.maximum(sizes, 1)))
    return _f1_of(confusion(predictions, values))


def _f1_of(table: AnyArray) -> float:
    scores = 2 * np.diag(table) / np.maximum(table.sum(axis=0) + table.sum(axis=1), 1)
    return float(np.mean(scores)) if len(table) > 1 else float("nan")


def roc_auc(predictions: AnyArray, values: AnyArray) -> float:
    """Chance that a positive ranks above a negative, ties counting half; mean over classes that
    have both."""
    return _mean_over_classes(_auc, predictions, values)


def average_precision(predictions: AnyArray, values: AnyArray) -> float:
    """Precision averaged over the positives in falling order; mean over classes that have both."""
    return _mean_over_classes(_precision, predictions, values)


def _mean_over_classes(
    rank: Callable[[AnyArray, AnyArray], float], predictions: AnyArray, values: AnyArray
) -> float:
    if predictions.shape == values.shape:
        pairs = [(predictions[:, c], values[:, c]) for c in range(values.shape[1])]
    else:
        classes = predictions.shape[1]
        # of two classes the second is the positive one: both together would count it twice; of one
        # there is none
        chosen = range(classes) if classes > 2 else range(1, classes)
        pairs = [
            (predictions[:, c], np.where(np.isnan(values), np.nan, values == c)) for c in chosen
        ]
    found = []
    for score, true in pairs:
        known = ~np.isnan(true)
        positives = int((true[known] > 0.5).sum())
        if 0 < positives < known.sum():
            found.append(rank(score[known], true[known] > 0.5))
    return float(np.mean(found)) if found else float("nan")


def _auc(score: AnyArray, true: AnyArray) -> float:
    ranks, positives = rank_values(score), int(true.sum())
    return float(
        (ranks[true].sum() - positives * (positives + 1) / 2)
        / (positives * (len(true) - positives))
    )


def rank_values(values: AnyArray, among: AnyArray | None = None) -> AnyArray:
    """Places from 1 in rising order, in a row of their own or of others; equal ones share
    theirs."""
    order = np.sort(values if among is None else among)
    return np.asarray(
        (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") + 1) / 2
    )


def separation(predictions: AnyArray, values: AnyArray) -> float:
    """2 AUC - 1: 0 is chance, 1 the best."""
    return 2 * roc_auc(predictions, values) - 1


def rank_correlation(predictions: AnyArray, values: AnyArray) -> float:
    """Of answers with labels: 0 is chance, 1 the best; 0 where all answers are alike."""
    said, true = (rank_values(each) for each in _known(predictions, values))
    if not len(true):
        return float("nan")
    spread = float(said.std() * true.std())
    return float(np.mean((said - said.mean()) * (true - true.mean())) / spread) if spread else 0.0


def chance_error(predictions: AnyArray, values: AnyArray) -> float:
    """Standard deviation of `separation` or `rank_correlation` of answers by chance, on labels like
    these."""
    if np.issubdtype(values.dtype, np.floating) and predictions.ndim == 1:
        known = int((~np.isnan(values)).sum())
        return float(max(known - 1, 1) ** -0.5) if known else float("nan")
    return _mean_over_classes(_auc_error, predictions, values)


def _auc_error(score: AnyArray, true: AnyArray) -> float:
    """The variance of a rank sum without ties (Mann and Whitney), twice."""
    positives = int(true.sum())
    return float(2 * np.sqrt((len(true) + 1) / (12 * positives * (len(true) - positives))))


def _precision(score: AnyArray, true: AnyArray) -> float:
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(true[order])
    last = np.append(np.diff(score[order]) != 0, True)  # equal scores are one threshold
    hits, seen = hits[last], np.flatnonzero(last) + 1
    return float(np.sum(np.diff(hits, prepend=0) * hits / seen) / hits[-1])


def _known(predictions: AnyArray, values: AnyArray) -> tuple[AnyArray, AnyArray]:
    good = ~np.isnan(values)
    return predictions[good], values[good]


def _mean_of(table: AnyArray) -> float:
    """Of (sum, count)."""
    return float(table[0] / table[1]) if table[1] else float("nan")


def _absolute(predictions: AnyArray, values: AnyArray) -> AnyArray:
    said, true = _known(predictions, values)
    return np.array([np.abs(said - true).sum(dtype=np.float64), len(true)])


def _squared(predictions: AnyArray, values: AnyArray) -> AnyArray:
    said, true = _known(predictions, values)
    return np.array([((said - true) ** 2).sum(dtype=np.float64), len(true)])


def mae(predictions: AnyArray, values: AnyArray) -> float:
    """Mean absolute error."""
    return _mean_of(_absolute(predictions, values))


def rmse(predictions: AnyArray, values: AnyArray) -> float:
    """Root of the mean squared error."""
    return _root_of(_squared(predictions, values))


def _root_of(table: AnyArray) -> float:
    return float(np.sqrt(_mean_of(table)))


def r2(predictions: AnyArray, values: AnyArray) -> float:
    """Share of the variance explained."""
    said, true = _known(predictions, values)
    total = float(np.sum((true - true.mean()) ** 2))
    return 1 - float(np.sum((said - true) ** 2)) / total if total else float("nan")


def _moments(predictions: AnyArray, values: AnyArray) -> AnyArray:
    """Squared errors, labels, squared labels and how many there are, added up."""
    said, true = (each.astype(np.float64) for each in _known(predictions, values))
    return np.array([((said - true) ** 2).sum(), true.sum(), (true**2).sum(), len(true)])


def _r2_of(table: AnyArray) -> float:
    errors, total, squares, count = table.tolist()
    spread = squares - total**2 / count if count else 0.0
    return 1 - errors / spread if spread > 0 else float("nan")


def angular_error(predictions: AnyArray, values: AnyArray) -> float:
    """Mean angle between predicted and true vectors, in degrees."""
    return _mean_of(_angles(predictions, values))


def _angles(predictions: AnyArray, values: AnyArray) -> AnyArray:
    known = ~np.isnan(values).any(axis=1)
    lengths = np.linalg.norm(predictions, axis=1) * np.linalg.norm(values, axis=1)
    cosine = (predictions * values).sum(axis=1)[known] / np.maximum(lengths[known], 1e-12)
    return np.array(
        [np.degrees(np.arccos(np.clip(cosine, -1, 1))).sum(dtype=np.float64), known.sum()]
    )


PIXELS = ("depth", "edges", "keypoints")


def _same(metric: Metric) -> Metric:
    return metric


_BUILT_IN_METRICS = (
    Metric("jaccard", True, ("multilabel",), jaccard, title="Jaccard"),
    Metric("miou", True, ("segmentation", "classification"), mean_iou, confusion, _iou_of, "mIoU"),
    Metric("accuracy", True, WITH_CLASSES, accuracy, confusion, _accuracy_of),
    Metric(
        "balanced_accuracy",
        True,
        ("classification", "segmentation"),
        balanced_accuracy,
        confusion,
        _balanced_of,
        "balanced accuracy",
    ),
    Metric("f1", True, WITH_CLASSES, f1, confusion, _f1_of, "F1"),
    Metric("roc_auc", True, ("classification", "multilabel"), roc_auc, title="AUC", ranks=True),
    Metric(
        "average_precision",
        True,
        ("classification", "multilabel"),
        average_precision,
        title="average precision",
        ranks=True,
    ),
    Metric("log_loss", False, ("classification", "multilabel"), log_loss, title="log loss"),
    Metric("mae", False, ("regression", *PIXELS), mae, _absolute, _mean_of, "MAE"),
    Metric("rmse", False, ("regression", *PIXELS), rmse, _squared, _root_of, "RMSE"),
    Metric("r2", True, ("regression", *PIXELS), r2, _moments, _r2_of, "R2"),
    Metric("angular_error", False, ("normals",), angular_error, _angles, _mean_of, "angular error"),
)
_OTHER_NAMES = {"auc": "roc_auc", "auroc": "roc_auc", "ap": "average_precision"}
"""what people also call metrics"""
METRICS: Registry[Metric] = Registry(
    "metrics",
    "metric",
    ("name", "higher_is_better", "kinds", "compute", "tally", "finish"),
    {metric.name: partial(_same, metric) for metric in _BUILT_IN_METRICS},
)
"""by name, built in or offered by an installed package"""
CHANCE_ERROR = Metric(
    "chance_error", False, ("classification", "multilabel", "regression"), chance_error
)
"""how far the scores of predictions by chance spread, on labels like these"""
SKILLS = {
    "classification": Metric("separation", True, ("classification",), separation),
    "multilabel": Metric("separation", True, ("multilabel",), separation),
    "regression": Metric("rank_correlation", True, ("regression",), rank_correlation),
}
"""of kinds that say one thing of a whole instance: how far answers are above chance, whatever the
metric; that of pixels is `allotment.learners.map_skill`"""
LOSS = "loss"
"""in the place of a metric's name: the task's own loss"""
USUAL_METRICS = {
    "classification": "accuracy",
    "multilabel": "jaccard",
    "regression": "mae",
    "segmentation": "miou",
    "depth": "mae",
    "normals": "angular_error",
    "edges": LOSS,
    "keypoints": LOSS,
}
"""the metric of each kind unless the task names another; `loss` is the task's own loss, as in the
paper's Taskonomy"""


def find_metric_name(given: str) -> str:
    """A metric's name, however people write it: `R2`, `mIoU`, `AUC`, `balanced accuracy`.

    >>> find_metric_name("Balanced accuracy"), find_metric_name("AUC")
    ('balanced_accuracy', 'roc_auc')
    """
    if given in METRICS:
        return given
    plain = given.strip().lower().replace(" ", "_").replace("-", "_")
    found = _OTHER_NAMES.get(plain, plain)
    return found if found in METRICS or found == LOSS else given


def name_metric(target: Target) -> str:
    """Of the metric that a task is scored by, unless somebody asks for another."""
    return target.metric or USUAL_METRICS[target.kind]


def title_metric(name: str) -> str:
    """A metric as people write it: MAE, R2, accuracy."""
    if name not in METRICS:  # the loss, or what a package offered that is gone
        return name
    return getattr(METRICS[name], "title", "") or name


def check_metric(name: str, *kinds: str) -> str:
    """Why it can't score a task of any of these kinds; "" if it can."""
    if name == LOSS:
        return ""
    try:
        if name in METRICS and set(kinds) & set(METRICS.load(name).kinds):
            return ""
    except InputError as error:  # of a package that is broken
        return "; ".join(mistake.what for mistake in error.mistakes)
    fitting = [*(each.name for each in _BUILT_IN_METRICS if set(kinds) & set(each.kinds)), LOSS]
    message = f"of kind {kinds[0]}" if len(kinds) == 1 else "of a table"
    hint = "" if name in METRICS else ", or what an installed package offers"
    return f"{name!r} does not score a task {message}; {suggest(name, fitting)}{hint}"


def metric_of(target: Target) -> Metric | None:
    """How a task is scored; None if by its loss."""
    name = name_metric(target)
    if name == LOSS:
        return None
    if what := check_metric(name, target.kind):
        raise InputError([Mistake(f"task {target.name!r}: metric", what)])
    return METRICS[name]
