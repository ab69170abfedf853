"""What trainings on subsets of the labels at hand scored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array, Ints
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, reading
from allotment.estimates.design import Design, folds_of
from allotment.learners.learner import Learner, Measure, State, train_many
from allotment.progress import Progress

FEWEST_TRAININGS = 3
"""trainings: of fewer nobody can tell how much they vary"""
WHOLE = 0.6
"""of the labels that the fold with most leaves: a fold whose trainings had fewer had no training
with all of them"""
UNTRAINED = 8
"""states that are scored before any step, to see what chance scores; they cost no training"""


@dataclass(frozen=True, eq=False)
class Response:
    """The scores of all tasks after trainings on fewer labels, and before any training."""

    tasks: tuple[str, ...]
    have: tuple[int, ...]
    """labels at hand"""
    counts: Ints
    """[training, task]: labels that it saw"""
    scores: Array
    """[training, task]: the metric on the validation labels; not a number where there was none"""
    untrained: Array
    """[state, task]: the metric before the first step"""
    higher_is_better: tuple[bool, ...]
    fold: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """[training]: which part of the labels scored it; all the same if left out"""
    skill: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """[training, task]: `Measure.skill`; not a number where there is none, or if left out"""
    skill_error: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """[training, task]: likewise"""
    constant: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """[fold, task]: the metric of the best answer that is the same everywhere; no rows if it is not
    known"""

    def __post_init__(self) -> None:
        size, mistakes = len(self.tasks), []
        for key in ("have", "higher_is_better"):
            if len(getattr(self, key)) != size:
                mistakes.append(
                    Mistake(key, f"{len(getattr(self, key))} for {size} tasks; give one for each")
                )
        kinds = {
            "counts": np.int64,
            "scores": np.float64,
            "untrained": np.float64,
            "constant": np.float64,
        }
        for key, kind in kinds.items():
            rows = np.asarray(getattr(self, key), dtype=kind)
            if rows.size and rows.shape[1:] != (size,):
                mistakes.append(
                    Mistake(
                        key, f"has the shape {rows.shape}; give a row of {size} for each training"
                    )
                )
            else:
                object.__setattr__(self, key, rows.reshape(-1, size))
        if not mistakes and len(self.counts) != len(self.scores):
            mistakes.append(
                Mistake("scores", f"{len(self.scores)} rows for {len(self.counts)} trainings")
            )
        for key in ("skill", "skill_error"):
            found = np.asarray(getattr(self, key), dtype=np.float64)
            found = found if found.size else np.full(self.scores.shape, np.nan)
            object.__setattr__(self, key, found)
            if not mistakes and found.shape != self.scores.shape:
                mistakes.append(
                    Mistake(key, f"has the shape {found.shape}; scores have {self.scores.shape}")
                )
        fold = np.asarray(self.fold, dtype=np.int64)
        fold = fold if fold.size else np.zeros(len(self.counts), dtype=np.int64)
        object.__setattr__(self, "fold", fold)
        if not mistakes and fold.shape != (len(self.counts),):
            mistakes.append(
                Mistake("fold", f"has the shape {fold.shape}; give one number for each training")
            )
        if mistakes:
            raise InputError(mistakes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a score that is not a number becomes null."""
        return {
            "tasks": list(self.tasks),
            "have": list(self.have),
            "counts": self.counts.tolist(),
            "scores": _plain(self.scores),
            "untrained": _plain(self.untrained),
            "higher_is_better": list(self.higher_is_better),
            "fold": self.fold.tolist(),
            "skill": _plain(self.skill),
            "skill_error": _plain(self.skill_error),
            "constant": _plain(self.constant),
        }

    @classmethod
    @reading("the response")
    def from_dict(cls, plain: Mapping[str, Any]) -> Response:
        """The response that `to_dict` wrote."""
        keys = ("tasks", "have", "counts", "scores", "untrained", "higher_is_better", "fold")
        if missing := [Mistake(key, "is missing") for key in keys if key not in plain]:
            raise InputError(missing)
        values = {key: plain[key] for key in keys}
        values |= {key: plain.get(key, ()) for key in ("skill", "skill_error", "constant")}
        for key in ("tasks", "have", "higher_is_better"):
            values[key] = tuple(values[key])
        for key in ("scores", "untrained", "skill", "skill_error", "constant"):
            values[key] = np.array(values[key], dtype=np.float64)  # null becomes nan
        return cls(**values)


def _plain(rows: Array) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in rows.tolist()]


def adapt(response: Response, like: Response) -> Response:
    """The same trainings as told of the tasks of another response.

    Of a task that was not there nothing was scored. Counted as one without labels it would seem to
    tell what its labels do for others, although all else differs as well; so it is counted as one
    with all of them, which tells nothing.
    """
    if response.tasks == like.tasks:
        return response
    counts, columns = [], dict[str, list[Array]]()
    keys = ("scores", "untrained", "skill", "skill_error", "constant")
    for place, task in enumerate(like.tasks):
        known = task in response.tasks
        at = response.tasks.index(task) if known else 0
        everything = np.full(len(response.counts), like.have[place])
        counts.append(response.counts[:, at] if known else everything)
        for key in keys:
            rows = getattr(response, key)
            columns.setdefault(key, []).append(rows[:, at] if known else np.full(len(rows), np.nan))
    return Response(
        tasks=like.tasks,
        have=like.have,
        counts=np.stack(counts, axis=1),
        higher_is_better=like.higher_is_better,
        fold=response.fold,
        **{key: np.stack(each, axis=1) for key, each in columns.items()},
    )


def join(responses: Sequence[Response]) -> Response:
    """Trainings of several rounds as one response; the last round's labels are those at hand.

    Folds of the labels at hand are others in each round and keep levels of their own; validation
    labels are the same. Skill is that of the last round: its folds hold the labels of earlier ones
    as well, which would count again as if others had been scored.
    """
    last = responses[-1]
    if any(
        (each.tasks, each.higher_is_better) != (last.tasks, last.higher_is_better)
        for each in responses
    ):
        raise InputError(
            [Mistake("responses", "are of different tasks; join rounds of one campaign")]
        )
    folds, begin = [], 0
    constant = np.full(
        (sum(int(each.fold.max(initial=0)) + 1 for each in responses), len(last.tasks)), np.nan
    )
    for each in responses:
        folds.append(each.fold + begin)
        known = each.constant[: int(each.fold.max(initial=0)) + 1]
        constant[begin : begin + len(known)] = known
        highest = int(each.fold.max(initial=0))
        begin += highest + 1 if highest else 0
    keys = ("counts", "scores", "untrained", "skill", "skill_error")
    rows: dict[str, Any] = {
        key: np.concatenate([getattr(each, key) for each in responses]) for key in keys
    }
    for key in ("skill", "skill_error"):
        rows[key][: -len(last.scores) or None] = np.nan
    return replace(last, **rows, fold=np.concatenate(folds), constant=constant)


def run(
    learner: Learner,
    labels: Labels,
    design: Design,
    progress: Progress | None = None,
    together: int = 8,
    untrained: int = UNTRAINED,
) -> Response:
    """Train as designed, `together` at a time, and score every task on the validation labels or on
    its fold."""
    runs = design.runs(labels)
    scorers = _scorers(learner, labels, design)
    found: list[list[Measure | None]] = [[] for _ in runs]
    done = 0
    for places in _batches(learner, runs, max(together, 1)):
        for place, state in zip(
            places, train_many(learner, [runs[place] for place in places]), strict=True
        ):
            found[place] = _score(scorers[int(design.fold[place])], state)
        done += len(places)
        if progress is not None:
            progress(done, len(runs))
    starts = [learner.start(labels, design.seed + number) for number in range(untrained)]
    before = [_score(scorers[number % len(scorers)], state) for number, state in enumerate(starts)]
    return Response(
        tasks=design.tasks,
        have=tuple(len(labels[task]) for task in design.tasks),
        counts=design.counts,
        scores=_each(found, "metric"),
        untrained=_each(before, "metric"),
        higher_is_better=tuple(
            _is_higher_better(column) for column in zip(*before, *found, strict=True)
        ),
        fold=design.fold,
        skill=_each(found, "skill"),
        skill_error=_each(found, "skill_error"),
        constant=_score_constants(learner, labels, design, scorers if starts else []),
    )


Scorer = dict[str, Learner | None]
"""of each task: the learner that scores it; None where there is no label to score on"""


def _scorers(learner: Learner, labels: Labels, design: Design) -> list[Scorer]:
    """One for each fold. A task is scored on its own labels in the fold: labels of others there
    were not paid for."""
    if design.folds == 1:
        return [dict.fromkeys(design.tasks, learner)]
    if not hasattr(learner, "with_validation"):
        what = (
            "has no `with_validation`; give it one, or take folds = 1 and its own validation labels"
        )
        raise InputError([Mistake("learner", what)])
    found: list[Scorer] = []
    for fold in range(design.folds):
        scorer: Scorer = {}
        for task in design.tasks:
            mine = labels[task].instances
            inside = mine[folds_of(mine, design.folds, design.seed) == fold]
            scorer[task] = learner.with_validation(inside) if len(inside) else None
        found.append(scorer)
    return found


def _batches(
    learner: Learner, runs: list[tuple[Labels, int]], together: int
) -> Iterator[list[int]]:
    """Places of trainings to run at once: stacks are of one length, so those that take as many
    steps go together."""
    steps = [learner.steps(labels) for labels, _ in runs]
    order = sorted(range(len(runs)), key=lambda place: (steps[place], place))
    for _, group in itertools.groupby(order, key=lambda place: steps[place]):
        places = list(group)
        for first in range(0, len(places), together):
            yield places[first : first + together]


def _score(scorer: Scorer, state: State) -> list[Measure | None]:
    return [
        None if learner is None else learner.score(state, task) for task, learner in scorer.items()
    ]


def _score_constants(
    learner: Learner, labels: Labels, design: Design, scorers: list[Scorer]
) -> Array:
    """[fold, task]: of the best answer that is the same everywhere, by the labels that the fold
    leaves to trainings; nothing where no learner can tell, or nobody asks."""
    if not hasattr(learner, "score_constant"):
        return np.zeros((0, len(design.tasks)))
    rows: list[list[Measure | None]] = []
    for fold, scorer in enumerate(scorers):
        left = design.leave_out(labels, fold)
        state = learner.start(left, design.seed)
        row: list[Measure | None] = []
        for task, each in scorer.items():
            if each is None or not len(left[task]):
                row.append(None)
            else:
                row.append(each.score_constant(state, task))  # type: ignore[attr-defined]
        rows.append(row)
    return _each(rows, "metric").reshape(-1, len(design.tasks))


def _each(rows: list[list[Measure | None]], key: str) -> Array:
    return np.array(
        [[np.nan if one is None else getattr(one, key) for one in row] for row in rows],
        dtype=np.float64,
    )


def _is_higher_better(measures: tuple[Measure | None, ...]) -> bool:
    return next((each.higher_is_better for each in measures if each is not None), True)


@dataclass(frozen=True)
class Level:
    """How a task scores, and whether that is more than chance."""

    score: float
    """with all its labels"""
    chance: float
    """of the best answer that is the same everywhere or, where that is not known, before any
    step"""
    is_constant: bool
    """which of these it is"""
    near_chance: bool


def find_scored(response: Response, task: str) -> NDArray[np.bool_]:
    """[training]: whether it had labels of the task, and others to score on."""
    at = response.tasks.index(task)
    return np.isfinite(response.scores[:, at]) & (response.counts[:, at] > 0)


def find_level(response: Response | None, task: str) -> Level | None:
    """What a task scores with all its labels and by chance, where both are known."""
    if response is None or task not in response.tasks:
        return None
    at = response.tasks.index(task)
    known, full = find_scored(response, task), find_full(response, task)
    if known.sum() < 2:
        return None
    # where hardly any had all labels, the others too: what fewer lose is small beside what was
    # learnt at all
    taken = full if full.sum() >= FEWEST_TRAININGS else known
    score = float(response.scores[full, at].mean())
    scores, sign = response.scores[taken, at], 1 if response.higher_is_better[at] else -1
    fold = response.fold[taken]
    constant = (
        response.constant[fold, at]
        if fold.max() < len(response.constant)
        else np.full(len(fold), np.nan)
    )
    if np.isfinite(constant).all():
        # each over chance in its own fold: some folds are easier than others
        gaps = sign * (scores - constant)
        # trainings that are scored on the same labels share their accidents
        if len(np.unique(fold)) > 1:
            gaps = np.array([gaps[fold == each].mean() for each in np.unique(fold)])
        noise = math.sqrt(float(gaps.var(ddof=1)) / len(gaps))
        return Level(score, float(constant.mean()), True, float(gaps.mean()) <= 2 * noise)
    start = response.untrained[:, at]
    start = start[np.isfinite(start)]
    if not len(start):
        return None
    gap = sign * float(scores.mean() - start.mean())
    noise = math.sqrt(
        sum(float(each.var(ddof=1)) / len(each) for each in (scores, start) if len(each) > 1)
    )
    return Level(score, float(start.mean()), False, gap <= 2 * noise)


def find_skill(response: Response | None, task: str) -> tuple[float, float]:
    """Skill of a task with all its labels, each fold counted once, and the error of answers by
    chance; neither is a number where it is not known."""
    if response is None or task not in response.tasks or not len(response.scores):
        return math.nan, math.nan
    at, full = response.tasks.index(task), find_full(response, task)
    skill, error = response.skill[full, at], response.skill_error[full, at]
    known = np.isfinite(skill) & np.isfinite(error)
    if not known.any():
        return math.nan, math.nan
    fold = response.fold[full][known]
    folds = [fold == each for each in np.unique(fold)]
    # trainings that are scored on the same labels share their accidents
    means = [skill[known][each].mean() for each in folds]
    squares = [np.square(error[known][each]).mean() for each in folds]
    return float(np.mean(means)), float(np.sqrt(np.mean(squares) / len(folds)))


def find_scale(scores: Array, counts: Ints) -> float:
    """What 100 % of a task's score are: what trainings with nearly as many labels of it as any had
    score."""
    return abs(mean_full(scores, counts)) or 1.0 if len(scores) else 1.0


def mean_full(scores: Array, counts: Ints) -> float:
    """What trainings with nearly as many labels of a task as any had score."""
    return float(np.mean(scores[counts >= 0.9 * counts.max()]))


def find_full(response: Response, task: str) -> NDArray[np.bool_]:
    """[training]: whether it had all labels of the task that its fold leaves, or as many as any
    had; one at least has.

    A task's labels do not fall evenly into folds, so that one fold leaves 28 of 40 and another 33.
    """
    at = response.tasks.index(task)
    known, counts = find_scored(response, task), response.counts[:, at]
    full = np.zeros(len(counts), dtype=bool)
    for fold in np.unique(response.fold[known]):
        here = known & (response.fold == fold)
        full |= here & (counts > 0.95 * counts[here].max())
    return np.asarray(full & (counts >= WHOLE * counts[known].max(initial=0)))
