"""The points of a single-task learning curve: on pseudo-labels (Alg. 1, part 2), or on subsets of
the labels at hand.

Scores are those of the learner's validation part; the paper takes the test set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import Instances
from allotment.data.labels import Labels, TaskLabels, shuffle
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.curves import FEWEST_SIZES, Points
from allotment.learners.batches import hash_of
from allotment.learners.learner import Learner, State, train_many
from allotment.progress import Progress

MODES = {
    "hard": "the class that the ensemble finds likeliest",
    "soft": "the ensemble's probabilities",
    "confidence": "hard, and only of instances of which the ensemble is sure",
}
"""what a pseudo-label is; numbers and maps have no classes, so that hard and soft are the
ensemble's mean for them"""
SCORES = ("metric", "loss")
ASKED_AT_ONCE = 256
"""instances whose answers are held in memory while they are averaged"""


@dataclass(frozen=True)
class CurvePrice:
    """What a curve takes, before it is begun."""

    trainings: int
    steps: int
    """of training, each on one mini-batch of one task"""


def spread_sizes(smallest: int, largest: int, count: int = 6) -> tuple[int, ...]:
    """Sizes at even ratios, fewer where whole numbers run out.

    >>> spread_sizes(75, 600, 4)
    (75, 150, 300, 600)
    """
    if not 1 <= smallest <= largest or count < 2:
        what = (
            f"{count} from {smallest} to {largest}: from at least 1 upwards, and at least 2, are"
            " possible"
        )
        raise InputError([Mistake("sizes", what)])
    return tuple(sorted({round(size) for size in np.geomspace(smallest, largest, count).tolist()}))


def ensemble_curve(
    learner: Learner,
    labels: Labels,
    task: str,
    pool: Iterable[int],
    sizes: Sequence[int],
    *,
    ensemble: int = 3,
    mode: str = "hard",
    sure: float = 0.5,
    repetitions: int = 8,
    score: str = "metric",
    seed: int = 0,
    progress: Progress | None = None,
    gaining: str | None = None,
) -> Points:
    """Scores of single-task trainings on the labels at hand and 0, a_1, .. a_p pseudo-labels from
    the pool.

    A repetition has its own draw of the pool, of which larger sizes hold the smaller, and its own
    seed, the same at all sizes. With mode "confidence" only the share `sure` of each predicted
    class is drawn from.

    With another task that is `gaining`, both are trained together and that one is scored, so that
    the curve is what labels of one task do for another (the paper's Fig. 4 a).
    """
    real = _real(labels, task)
    free = np.setdiff1d(np.asarray(list(pool), dtype=np.int64), real.instances)
    sizes = with_zero(sizes)
    mistakes = _check(learner, labels, task, sizes, repetitions, score)
    mistakes += _check_ensemble(task, len(free), sizes, ensemble, mode, sure)
    if gaining is not None and (gaining not in learner.tasks or gaining == task):
        others = [each for each in learner.tasks if each != task]
        mistakes.append(Mistake("gaining", f"{gaining!r} is none; {suggest(gaining, others)}"))
    if mistakes:
        raise InputError(mistakes)
    count = _CountedTrainings(
        price_ensemble(learner, labels, task, free, sizes, ensemble, repetitions).trainings,
        progress,
    )
    alone = Labels({task: real})
    teachers = count.train(
        learner, [(alone, hash_of("ensemble", seed, number)) for number in range(ensemble)]
    )
    if mode == "confidence":
        free = _surest(learner, teachers, task, free, sure)
    draws = [
        shuffle(free, "pseudo", seed, task, number)[: sizes[-1]] for number in range(repetitions)
    ]
    asked = np.unique(np.concatenate(draws))
    values = _answer(learner, teachers, task, asked, soft=mode == "soft")

    base = alone if gaining is None else Labels({task: real, gaining: labels[gaining]})

    def labels_of(size: int, repetition: int) -> Labels:
        drawn = draws[repetition][:size]
        return (
            base.with_pseudo(task, drawn, values[np.searchsorted(asked, drawn)]) if size else base
        )

    scored, of = (task, "") if gaining is None else (gaining, f" of {task}")
    rows = _measure(learner, scored, sizes, repetitions, labels_of, score, seed, count)
    source = f"{mode} pseudo-labels{of}"
    return _points(sizes, rows, score, have=len(real), task=scored, source=source)


def subset_curve(
    learner: Learner,
    labels: Labels,
    task: str,
    sizes: Sequence[int],
    repetitions: int = 8,
    seed: int = 0,
    *,
    score: str = "metric",
    progress: Progress | None = None,
) -> Points:
    """Scores of single-task trainings on random subsets of the task's labels at hand; no
    pseudo-labels are needed.

    In a repetition larger subsets hold the smaller. All of them share the labels at hand, so what
    is unusual about these is not in the spread between repetitions.
    """
    real, sizes = _real(labels, task), tuple(sizes)
    mistakes = _check(learner, labels, task, sizes, repetitions, score)
    if not mistakes and sizes[-1] > len(real):
        mistakes = [
            Mistake(
                "sizes", f"{sizes[-1]} is more than the {len(real)} labels at hand of task {task!r}"
            )
        ]
    if not mistakes and sizes[0] < 1:
        mistakes = [Mistake("sizes", "a subset has at least 1 label")]
    if mistakes:
        raise InputError(mistakes)
    orders = [
        shuffle(real.instances, "subset", seed, task, number) for number in range(repetitions)
    ]

    def labels_of(size: int, repetition: int) -> Labels:
        return Labels({task: real.keep(np.isin(real.instances, orders[repetition][:size]))})

    count = _CountedTrainings(
        price_subsets(learner, labels, task, sizes, repetitions).trainings, progress
    )
    rows = _measure(learner, task, sizes, repetitions, labels_of, score, seed, count)
    return _points(sizes, rows, score, have=0, task=task, source="subsets")


def price_ensemble(
    learner: Learner,
    labels: Labels,
    task: str,
    pool: Iterable[int],
    sizes: Sequence[int],
    ensemble: int = 3,
    repetitions: int = 8,
    gaining: str | None = None,
) -> CurvePrice:
    """What `ensemble_curve` takes."""
    real = _real(labels, task).instances
    free = np.setdiff1d(np.asarray(list(pool), dtype=np.int64), real)
    beside = {} if gaining is None else {gaining: labels[gaining]}
    steps = [
        learner.steps(Labels({task: np.concatenate([real, free[:size]]), **beside}))
        for size in with_zero(sizes)
    ]
    teacher = learner.steps(Labels({task: real}))
    # a step has a mini-batch of each task
    trained = repetitions * sum(steps) * (1 + len(beside))
    return CurvePrice(ensemble + repetitions * len(steps), ensemble * teacher + trained)


def price_subsets(
    learner: Learner, labels: Labels, task: str, sizes: Sequence[int], repetitions: int = 8
) -> CurvePrice:
    """What `subset_curve` takes."""
    real = _real(labels, task).instances
    steps = [learner.steps(Labels({task: real[:size]})) for size in sizes]
    return CurvePrice(repetitions * len(sizes), repetitions * sum(steps))


# --- what both do ---


def _real(labels: Labels, task: str) -> TaskLabels:
    mine = labels[task]
    return mine.keep(~mine.is_pseudo)


def with_zero(sizes: Sequence[int]) -> tuple[int, ...]:
    """Gains are counted from no pseudo-labels at all."""
    return tuple(sizes) if len(sizes) and sizes[0] == 0 else (0, *sizes)


def _check(
    learner: Learner,
    labels: Labels,
    task: str,
    sizes: tuple[int, ...],
    repetitions: int,
    score: str,
) -> list[Mistake]:
    mistakes = []
    if task not in learner.tasks:
        mistakes.append(Mistake("task", f"unknown {task!r}; {suggest(task, learner.tasks)}"))
    elif not len(_real(labels, task)):
        mistakes.append(
            Mistake(
                f"task {task!r}", "has no labels at hand; buy a few before its curve is measured"
            )
        )
    if len(sizes) < FEWEST_SIZES:
        mistakes.append(
            Mistake("sizes", f"{len(sizes)} show no bend; give at least {FEWEST_SIZES}, 0 included")
        )
    if any(size < 0 or size != int(size) for size in sizes) or list(sizes) != sorted(set(sizes)):
        mistakes.append(
            Mistake("sizes", f"{list(sizes)} are not whole numbers of 0 or more in rising order")
        )
    if repetitions < 1:
        mistakes.append(Mistake("repetitions", f"{repetitions} is below 1"))
    if score not in SCORES:
        mistakes.append(Mistake("score", f"unknown {score!r}; {suggest(score, SCORES)}"))
    return mistakes


def _check_ensemble(
    task: str, pool: int, sizes: tuple[int, ...], ensemble: int, mode: str, sure: float
) -> list[Mistake]:
    mistakes = []
    if mode not in MODES:
        mistakes.append(Mistake("mode", f"unknown {mode!r}; {suggest(mode, MODES)}"))
    if ensemble < 1:
        mistakes.append(Mistake("ensemble", f"{ensemble} is below 1"))
    if not 0 < sure <= 1:
        mistakes.append(Mistake("sure", f"{sure} is not a share above 0 and up to 1"))
    elif max(sizes) > (left := math.ceil(sure * pool) if mode == "confidence" else pool):
        share = f" (a share of {sure:g} of it)" if mode == "confidence" else ""
        what = (
            f"{max(sizes)} is more than the {left} instances of the pool{share} without a label of"
            f" task {task!r}"
        )
        mistakes.append(Mistake("sizes", what))
    return mistakes


class _CountedTrainings:
    """Trains, and tells how far that is."""

    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self.progress = 0, total, progress

    def train(self, learner: Learner, runs: Sequence[tuple[Labels, int]]) -> list[State]:
        # one by one unless they become one stack, so that progress is seen
        groups = [list(runs)] if hasattr(learner, "stack") else [[run] for run in runs]
        states = []
        for group in groups:
            states += train_many(learner, group)
            self.done += len(group)
            if self.progress is not None:
                self.progress(self.done, self.total)
        return states


class Unscored(InputError):
    """The validation labels can't score the task: those of some class are missing."""


def _measure(
    learner: Learner,
    task: str,
    sizes: tuple[int, ...],
    repetitions: int,
    labels_of: Callable[[int, int], Labels],
    score: str,
    seed: int,
    count: _CountedTrainings,
) -> list[list[tuple[float, bool]]]:
    """(score, whether higher is better) of each size and repetition; those of one size are as long:
    they stack."""
    seeds = [hash_of("repetition", seed, number) for number in range(repetitions)]
    rows = []
    for size in sizes:
        runs = [(labels_of(size, number), each) for number, each in enumerate(seeds)]
        found = [learner.score(state, task) for state in count.train(learner, runs)]
        rows.append(
            [(getattr(each, score), each.higher_is_better and score == "metric") for each in found]
        )
    return rows


def _points(
    sizes: tuple[int, ...], rows: list[list[tuple[float, bool]]], score: str, **about: Any
) -> Points:
    scores = np.array([[each for each, _ in row] for row in rows]).T
    if not np.isfinite(scores).all():
        what = (
            f"the {score} of task {about['task']!r} is not a number; are there validation labels of"
            " every class?"
        )
        raise Unscored([Mistake("validation", what)])
    return Points(sizes, tuple(map(tuple, scores.tolist())), rows[0][0][1], **about)


# --- pseudo-labels ---


def _answer(
    learner: Learner, teachers: Sequence[State], task: str, instances: Instances, soft: bool
) -> NDArray[Any]:
    """The ensemble's pseudo-labels for instances."""
    form, parts = "", []
    for start in range(0, len(instances), ASKED_AT_ONCE):
        answers = _ask(learner, teachers, task, instances[start : start + ASKED_AT_ONCE])
        form = form or _form(answers)
        parts.append(_harden(_mean(answers, form), form, soft))
    return np.concatenate(parts)


def _ask(
    learner: Learner, teachers: Sequence[State], task: str, instances: Instances
) -> NDArray[Any]:
    """(teachers, instances, ...)"""
    return np.stack([np.asarray(learner.predict(state, task, instances)) for state in teachers])


def _form(answers: NDArray[Any]) -> str:
    """What answers are, by the form that the learners' contract gives them: classes, flags,
    directions or numbers."""
    inside = bool(((answers >= 0) & (answers <= 1)).all())
    if answers.ndim >= 3 and inside and np.allclose(answers.sum(axis=2), 1, atol=1e-3):
        return "classes"
    if answers.ndim == 3 and inside:
        return "flags"
    if (
        answers.ndim == 5
        and answers.shape[2] == 3
        and np.allclose(np.square(answers).sum(axis=2), 1, atol=1e-2)
    ):
        return "directions"
    return "numbers"


def _mean(answers: NDArray[Any], form: str) -> NDArray[Any]:
    mean = answers.mean(axis=0)
    if form == "directions":
        mean = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
    return np.asarray(mean.astype(answers.dtype))


def _harden(mean: NDArray[Any], form: str, soft: bool) -> NDArray[Any]:
    if soft or form not in ("classes", "flags"):
        return mean
    return mean.argmax(axis=1) if form == "classes" else (mean >= 0.5).astype(mean.dtype)


def _surest(
    learner: Learner, teachers: Sequence[State], task: str, pool: Instances, share: float
) -> Instances:
    """The share of each predicted class of which the ensemble is surest: over all classes, the rare
    ones would go."""
    form, trust, group = "", [], []
    for start in range(0, len(pool), ASKED_AT_ONCE):
        answers = _ask(learner, teachers, task, pool[start : start + ASKED_AT_ONCE])
        form = form or _form(answers)
        if form not in ("classes", "flags") and len(teachers) < 2:
            what = (
                f"1 can't agree or disagree about task {task!r}; confidence in numbers needs at"
                " least 2"
            )
            raise InputError([Mistake("ensemble", what)])
        mean = _mean(answers, form)
        trust.append(_trust(answers, mean, form))
        group.append(
            mean.argmax(axis=1)
            if form == "classes" and mean.ndim == 2
            else np.zeros(len(mean), np.int64)
        )
    sure, kind = np.concatenate(trust), np.concatenate(group)
    kept = []
    for each in np.unique(kind):
        mine = np.flatnonzero(kind == each)
        kept.append(mine[np.argsort(-sure[mine], kind="stable")[: math.ceil(share * len(mine))]])
    return pool[np.sort(np.concatenate(kept))]


def _trust(answers: NDArray[Any], mean: NDArray[Any], form: str) -> NDArray[np.float64]:
    """How sure the ensemble is of each instance: of its class, or how well its members agree."""
    if form == "classes":
        each = mean.max(axis=1)
    elif form == "flags":
        each = np.abs(mean - 0.5)
    else:
        each = -answers.std(axis=0)
    return np.asarray(each.reshape(len(mean), -1).mean(axis=1), dtype=np.float64)
