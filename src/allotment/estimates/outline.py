"""What the paper's way trains: settled and weighed before the first training, and measured piece by
piece."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from allotment.arrays import Ints
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake
from allotment.estimates.curves import FEWEST_SIZES, Points
from allotment.estimates.probes import AHEAD, Probes, check_tasks, make_arms, probe_training
from allotment.estimates.reduction import (
    CurvePrice,
    Unscored,
    ensemble_curve,
    price_ensemble,
    price_subsets,
    spread_sizes,
    subset_curve,
    with_zero,
)
from allotment.estimates.stopping import Allowance
from allotment.estimates.triples import (
    TripleLooks,
    check_triples,
    look_at_triples,
    make_triple_arms,
)
from allotment.formatting import several
from allotment.learners.learner import Learner, count_gradients, count_scoring, labelled
from allotment.progress import Progress

CURVE_SIZES = 4
"""sizes of a curve, from an eighth of the labels to all of them"""
MOST_REPETITIONS = 16
"""of a curve; more cannot tell what is unusual about the labels at hand"""
CURVE_PIECE, BETWEEN_PIECE, PROBES_PIECE, TRIPLES_PIECE = "curve", "between", "probes", "triples"
"""kinds of pieces"""
PIECE_WORDS = {PROBES_PIECE: "transfer", TRIPLES_PIECE: "transfer of three tasks"}

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class OutlinePiece:
    """What can be measured by itself, in whichever process."""

    kind: str
    """curve, of a task on one part of the labels, or between tasks; probes, of one training, or
    looks at triples"""
    number: int
    """of the part, or of the training"""
    task: str = ""
    trainings: int = 1
    """that it takes"""
    gaining: str = ""
    """the task that is scored while another gets labels"""

    @property
    def words(self) -> str:
        """What it is, for whoever waits for it."""
        if self.kind in PIECE_WORDS:
            return PIECE_WORDS[self.kind]
        return f"curve of {self.task}" + (f" to {self.gaining}" if self.gaining else "")


@dataclass(frozen=True)
class Outline:
    """Which trainings are run, settled before the first."""

    runs: int
    """trainings that are probed"""
    every: int
    ahead: int
    """steps of each look ahead: the paper's m"""
    sizes: dict[str, tuple[int, ...]]
    repetitions: int
    ensemble: int
    """0: curves on subsets of the labels at hand"""
    parts: int = 1
    """of the labels at hand that score in turn; every part that has a curve has an ensemble of its
    own"""
    sources: bool = False
    """whether probes step on the source alone, as TAG's do"""
    pairs: tuple[tuple[str, str], ...] = ()
    """source and target of curves between tasks"""
    triples: bool = False
    """whether there are looks at three tasks at a time, too"""

    def arms(self, tasks: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """What each probe trains on."""
        return make_arms(tasks, self.sources)

    def looks(self, learner: Learner, labels: Labels) -> int:
        """Probes of one training."""
        return max(learner.steps(labels) - self.ahead, 0) // self.every

    def repeats(self, part: int) -> int:
        """How many repetitions of a curve are scored by one part: they take turns."""
        return len(range(part, self.repetitions, self.parts))

    @property
    def pieces(self) -> list[OutlinePiece]:
        """All there is to measure. Curves come first: they say what a plan hangs on, and so when to
        stop probing."""
        found = []
        curves = [(CURVE_PIECE, task, "") for task in self.sizes]
        curves += [(BETWEEN_PIECE, *pair) for pair in self.pairs]
        for kind, task, gaining in curves:
            sizes = self.sizes[task]
            points = len(with_zero(sizes) if self.ensemble else sizes)
            for part in range(self.parts):
                if count := self.repeats(part):
                    takes = self.ensemble + count * points
                    found.append(OutlinePiece(kind, part, task, takes, gaining))
        for kind in (PROBES_PIECE, TRIPLES_PIECE) if self.triples else (PROBES_PIECE,):
            found += [OutlinePiece(kind, number) for number in range(self.runs)]
        return found


def settle(
    learner: Learner,
    labels: Labels,
    trainings: int,
    *,
    pool: Ints | None = None,
    every: int | None = None,
    ahead: int = AHEAD,
    runs: int | None = None,
    sizes: Sequence[int] | None = None,
    repetitions: int | None = None,
    ensemble: int = 3,
    parts: int = 1,
    allowance: Allowance | None = None,
    most_runs: int | None = None,
    by_repetition: bool = False,
    probes: bool = True,
    curves: bool = True,
    sources: bool = False,
    between: bool = False,
    triples: bool = False,
) -> Outline:
    """Half of what so many trainings on all labels take goes to probing, half to curves; at least
    one of each, unless one of them is not wanted.

    With an `allowance` probing takes at most that. With a `pool` curves are those of pseudo-labels.
    What is given stays as it is given. Pieces of curves are those of the parts that score or, where
    one scores all of them, `by_repetition`: each then has an ensemble of its own. With `between`
    there are curves of what pseudo-labels of each task do for each other one, and with `triples`
    every training that is probed is trained again, with looks at three tasks at a time.
    """
    tasks = labelled(learner, labels)
    mistakes = check_tasks(tasks) if probes else []
    if triples and check_triples(tasks):
        has = several(len(tasks), "task") + (" has" if len(tasks) == 1 else " have")
        what = f"{has} labels, and what two do for a third takes three; leave the option out"
        mistakes.append(Mistake(TRIPLES_PIECE, what))
    if mistakes:
        raise InputError(mistakes)
    worth = trainings * learner.steps(labels) * len(tasks) / 2
    if not probes:
        runs, every = 0, 1
    else:
        if allowance is None:
            look = _weigh_look(learner, labels, ahead, sources, triples)
            step = len(tasks) * (2 if triples else 1)
            allowance = Allowance(worth, learner.steps(labels), step, look)
        settled, every = allowance.settle(ahead, runs, every)
        runs = settled if runs is not None else min(settled, most_runs or settled)
    ensemble = 0 if pool is None else ensemble
    chosen = {task: _sizes_of(labels, task, sizes, pool) for task in tasks if curves}
    # the others borrow their rate
    chosen = {task: each for task, each in chosen.items() if len(each) >= FEWEST_SIZES}
    outline = Outline(runs, every, ahead, chosen, repetitions or 1, ensemble, parts, sources)
    if between:
        pairs = itertools.permutations(tasks, 2)
        outline = replace(outline, pairs=tuple(pair for pair in pairs if pair[0] in chosen))
    outline = replace(outline, triples=triples)
    if repetitions is None and chosen:
        with_teachers = _weigh_curves(learner, labels, outline, pool).steps
        alone = _weigh_curves(learner, labels, replace(outline, ensemble=0), pool).steps
        once = with_teachers if by_repetition else alone
        count = int((worth - with_teachers + once) // max(once, 1))
        outline = replace(outline, repetitions=max(1, min(count, MOST_REPETITIONS)))
    return replace(outline, parts=outline.repetitions) if by_repetition else outline


def weigh(
    learner: Learner, labels: Labels, outline: Outline, pool: Ints | None = None
) -> CurvePrice:
    """All trainings of an outline, and the mini-batches that they and their probes take."""
    curves, tasks = _weigh_curves(learner, labels, outline, pool), labelled(learner, labels)
    probes = outline.looks(learner, labels) * count_gradients(
        learner, outline.arms(tasks), outline.ahead
    )
    each, runs = learner.steps(labels) * len(tasks) + probes, outline.runs
    if outline.triples:  # the same trainings again
        arms = make_triple_arms(tasks)
        looks = outline.looks(learner, labels) * count_gradients(learner, arms, outline.ahead)
        each, runs = each + learner.steps(labels) * len(tasks) + looks, 2 * runs
    return CurvePrice(runs + curves.trainings, outline.runs * each + curves.steps)


def _weigh_look(
    learner: Learner, labels: Labels, ahead: int, sources: bool = False, triples: bool = False
) -> float:
    """The work of one probe, its scores included, in gradients of one mini-batch."""
    tasks = labelled(learner, labels)
    # both kinds of probes score every task once more than there are tasks
    work = count_scoring(learner, make_arms(tasks))
    work += count_gradients(learner, make_arms(tasks, sources), ahead)
    if triples:
        arms = make_triple_arms(tasks)
        work += count_gradients(learner, arms, ahead) + count_scoring(learner, arms)
    return work


def _weigh_curves(
    learner: Learner, labels: Labels, outline: Outline, pool: Ints | None
) -> CurvePrice:
    prices = []
    teachers = outline.ensemble * min(outline.parts, outline.repetitions)
    for task, sizes in outline.sizes.items():
        if pool is None:
            prices.append(price_subsets(learner, labels, task, sizes, outline.repetitions))
        else:
            prices.append(
                price_ensemble(learner, labels, task, pool, sizes, teachers, outline.repetitions)
            )
    if pool is not None:
        for source, target in outline.pairs:
            given = (outline.sizes[source], teachers, outline.repetitions)
            prices.append(price_ensemble(learner, labels, source, pool, *given, gaining=target))
    return CurvePrice(sum(each.trainings for each in prices), sum(each.steps for each in prices))


def _sizes_of(
    labels: Labels, task: str, sizes: Sequence[int] | None, pool: Ints | None
) -> tuple[int, ...]:
    if sizes is not None:
        if pool is not None and max(sizes) > (free := _count_free(labels, task, pool)):
            what = (
                f"{max(sizes)} is more than the {free} instances of the pool without a label of"
                f" task {task!r}; take smaller ones"
            )
            raise InputError([Mistake("sizes", what)])
        return tuple(sizes)
    have = int((~labels[task].is_pseudo).sum())
    if pool is None:
        return spread_sizes(max(1, have // 8), have, CURVE_SIZES) if have else ()
    most = min(_count_free(labels, task, pool), 4 * have)
    return (0, *spread_sizes(max(1, most // 8), most, CURVE_SIZES)) if most else ()


def _count_free(labels: Labels, task: str, pool: Ints) -> int:
    """Instances of a pool that could get a pseudo-label of a task."""
    return len(np.setdiff1d(pool, labels[task].instances))


Part = tuple[Learner, Labels]


def measure_curve(
    piece: OutlinePiece,
    parts: Sequence[Part],
    outline: Outline,
    seed: int,
    progress: Progress | None = None,
    pool: Ints | None = None,
    mode: str = "hard",
) -> Points:
    """The curve of a task as one part scores it; raises Unscored where that part lacks labels of
    some class."""
    learner, labels = parts[piece.number % len(parts)]
    given: dict[str, Any] = {
        "repetitions": outline.repeats(piece.number),
        "seed": seed + piece.number,
    }
    sizes = outline.sizes[piece.task]
    if pool is None:
        return subset_curve(learner, labels, piece.task, sizes, progress=progress, **given)
    given |= {"ensemble": outline.ensemble, "mode": mode, "gaining": piece.gaining or None}
    return ensemble_curve(learner, labels, piece.task, pool, sizes, progress=progress, **given)


def join_curves(found: Iterable[tuple[Name, Points | Unscored]]) -> dict[Name, Points]:
    """The curve of every task from its parts; where no part can score a task it has none, and
    borrows its rate."""
    curves: dict[Name, Points] = {}
    unscored = None
    for task, points in found:
        if isinstance(points, Unscored):
            unscored = points
        elif task in curves:
            curves[task] = replace(curves[task], scores=curves[task].scores + points.scores)
        else:
            curves[task] = points
    if unscored is not None and not curves:
        raise unscored
    return curves


def measure_probes(
    piece: OutlinePiece, parts: Sequence[Part], outline: Outline, seed: int
) -> Probes:
    """The probes of one training; trainings take turns over the parts."""
    learner, labels = parts[piece.number % len(parts)]
    given = _name_looks(piece, outline) | {"sources": outline.sources}
    probes, _ = probe_training(learner, labels, seed + piece.number, **given)
    return probes


def measure_triples(
    piece: OutlinePiece, parts: Sequence[Part], outline: Outline, seed: int
) -> TripleLooks:
    """The looks at three tasks in the training whose probes have the same number."""
    learner, labels = parts[piece.number % len(parts)]
    return look_at_triples(learner, labels, seed + piece.number, **_name_looks(piece, outline))


def _name_looks(piece: OutlinePiece, outline: Outline) -> dict[str, Any]:
    run = f"run {piece.number}"
    return {"every": outline.every, "steps": outline.ahead, "run": run}


def tell_probing(probes: Probes, parts: Sequence[Part], outline: Outline) -> dict[str, Any]:
    """How much was probed, how much might have been, and why there was no more."""
    taken = len(set(probes.runs))
    allowed = sum(outline.looks(*parts[number % len(parts)]) for number in range(outline.runs))
    why = (
        "more could not move the plan out of its plateau"
        if taken < outline.runs
        else "all that was allowed is done"
    )
    probed = {
        "trainings": taken,
        "trainings_allowed": outline.runs,
        "probes": len(probes),
        "probes_allowed": allowed,
    }
    return probed | {"every": outline.every, "stopped": why}
