"""The paper's way for one request: what to measure, when that is enough, and the estimates that it
comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates import taba
from allotment.estimates.curves import Fit, Points, fit_exact, fit_paper
from allotment.estimates.estimates import Estimates
from allotment.estimates.outline import (
    Outline,
    Part,
    Piece,
    join_curves,
    measure_curve,
    measure_probes,
    settle,
    tell_probing,
    weigh,
)
from allotment.estimates.probes import AHEAD, Probes, join, make_arms
from allotment.estimates.reduction import Unscored
from allotment.estimates.request import Progress, Request, Work
from allotment.estimates.stopping import allow, enough_for
from allotment.estimates.transfer import ESTIMATORS, affinity
from allotment.learners.learner import Learner, labelled

Ints = NDArray[np.int64]

OUTLINE = ("every", "ahead", "runs", "sizes", "repetitions")
"""options that say what is trained"""

Found: TypeAlias = Points | Unscored | Probes
"""what a piece gave"""


@dataclass(frozen=True, eq=False)
class Paper:
    """Algorithm 1, to the letter or mended."""

    request: Request
    estimator: str
    fit: Callable[[Points], Fit]
    how: Mapping[str, Any]
    """options of `taba.combine`"""
    pool: Ints | None = None
    """whose pseudo-labels curves are measured on; None: on subsets of the labels at hand"""
    mode: str = ""

    @cached_property
    def parts(self) -> list[Part]:
        return self.request.parts

    @cached_property
    def outline(self) -> Outline:
        request = self.request
        given = {
            key: value for key, value in request.options.items() if key in (*OUTLINE, "ensemble")
        }
        if request.probing is not None:
            given["allowance"] = allow(
                request.probing, self.parts, given.get("ahead", AHEAD), request.seed
            )
        learner, labels = self._smallest
        return settle(
            learner, labels, request.trainings, pool=self.pool, parts=request.folds, **given
        )

    @cached_property
    def pieces(self) -> list[Piece]:
        return self.outline.pieces

    @cached_property
    def _smallest(self) -> Part:
        """As many labels of each task as every part has."""
        learner, first = self.parts[0]
        least = {task: min(len(labels[task]) for _, labels in self.parts) for task in first}
        return learner, Labels(
            {task: mine.keep(np.arange(len(mine)) < least[task]) for task, mine in first.items()}
        )

    @property
    def _have(self) -> dict[str, int]:
        return {task: len(labels) for task, labels in self.request.labels.items()}

    def weigh(self) -> Work:
        """What all pieces take."""
        outline, (learner, labels) = self.outline, self._smallest
        tasks = labelled(learner, labels)
        both, probing = (
            weigh(learner, labels, each, self.pool)
            for each in (outline, replace(outline, sizes={}))
        )
        looks = outline.runs * outline.looks(learner, labels)
        teachers = outline.ensemble * min(outline.parts, outline.repetitions) * len(outline.sizes)
        scores = looks * len(tasks) * (len(tasks) + 1) + both.trainings - outline.runs - teachers
        probes = outline.runs * learner.steps(labels) + looks * outline.ahead * len(
            make_arms(tasks)
        )
        return Work(
            both.trainings, probes + both.steps - probing.steps, both.steps, scores, probing.steps
        )

    def measure(self, piece: Piece, progress: Callable[[int, int], None] | None = None) -> Found:
        """One piece; it depends on nothing that another gave."""
        seed = self.request.seed
        if piece.kind == "probes":
            return measure_probes(piece, self.parts, self.outline, seed)
        try:
            return measure_curve(
                piece, self.parts, self.outline, seed, progress, self.pool, self.mode
            )
        except Unscored as error:
            return error

    def is_enough(self, found: Sequence[Found]) -> bool:
        """Whether the plan could not be moved out of its plateau by more pieces than these, the
        first ones."""
        problem, probes = self.request.problem, _probes_of(found)
        if problem is None or not probes or len(found) == len(self.pieces):
            return False
        known = taba.find_known(self._curves_of(found), self._have, fit=self.fit, **self.how)
        rule = enough_for(
            problem, known, estimator=self.estimator, between=1, seed=self.request.seed
        )
        return rule(join(probes))

    def _curves_of(self, found: Sequence[Found]) -> dict[str, Points]:
        pairs = zip(self.pieces, found, strict=False)
        return join_curves(
            (piece.task, each) for piece, each in pairs if not isinstance(each, Probes)
        )

    def conclude(self, found: Sequence[Found]) -> Estimates:
        """The estimates that the first pieces come to, all curves among them."""
        request, curves, probes = self.request, self._curves_of(found), join(_probes_of(found))
        transfer = affinity(probes, self.estimator)
        draws = int(request.options.get("draws", taba.DRAWS))
        made = taba.combine(
            transfer, curves, self._have, fit=self.fit, draws=draws, seed=request.seed, **self.how
        )
        points = {task: each.to_dict() for task, each in curves.items()}
        probing = tell_probing(probes, self.parts, self.outline)
        about = {
            "trainings": sum(piece.trainings for piece in self.pieces[: len(found)]),
            "probing": (
                probing | ({} if request.probing is None else {"limit": dict(request.probing)})
            ),
            "measured": {"transfer": transfer.to_dict(), "points": points},
        }
        return replace(made, about=dict(made.about) | about)

    def run(self) -> Estimates:
        """All of it, one piece after the other."""
        count, found = _Count(self.weigh().trainings, self.request.progress), list[Found]()
        for piece in self.pieces:
            found.append(self.measure(piece, count.follow(f"curve of {piece.task}")))
            stops = self.is_enough(found)
            if piece.kind == "probes":
                count.tell(1, "transfer", last=stops)
            if stops:
                break
        return self.conclude(found)


def _probes_of(found: Sequence[Found]) -> list[Probes]:
    return [each for each in found if isinstance(each, Probes)]


class _Count:
    """How many trainings are done, of how many."""

    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self.progress = 0, total, progress

    def tell(self, more: int, what: str, last: bool = False) -> None:
        self.done += more
        self.total = self.done if last else self.total
        if self.progress is not None:
            self.progress(self.done, self.total, what)

    def follow(self, what: str) -> Callable[[int, int], None]:
        """Tells on from here what is told of a piece."""
        before = 0

        def report(done: int, total: int) -> None:
            nonlocal before
            self.tell(done - before, what)
            before = done

        return report


def to_plain(found: Found) -> dict[str, Any]:
    """What a piece gave, as plain values for JSON; `from_plain` reads them back."""
    if isinstance(found, Unscored):
        return {"unscored": [[mistake.where, mistake.what] for mistake in found.mistakes]}
    return found.to_dict()


def from_plain(piece: Piece, plain: Mapping[str, Any]) -> Found:
    if piece.kind == "probes":
        return Probes.from_dict(plain)
    if "unscored" in plain:
        return Unscored([Mistake(where, what) for where, what in plain["unscored"]])
    return Points.from_dict(plain)


def follow_letter(request: Request) -> Paper:
    """The paper's to the letter."""
    # it plans with one rate: the fit's draws only tell whether the curve carries a signal
    fit = cache(partial(fit_paper, draws=50))
    how = {"letter": True, "fallback": request.options.get("fallback", True)}
    return Paper(request, "paper", fit, how, _pool_of(request), request.options.get("mode", "hard"))


def follow_mended(request: Request) -> Paper:
    """The paper's with pooled transfer, curves on subsets, and every task's own first gain."""
    options = request.options
    estimator = options.get("estimator", "pooled")
    if estimator not in ESTIMATORS:
        raise InputError(
            [Mistake("estimator", f"unknown {estimator!r}; {suggest(estimator, ESTIMATORS)}")]
        )
    how = {
        "own_gain": bool(options.get("own_gain", True)),
        "fallback": options.get("fallback", True),
    }
    return Paper(request, estimator, cache(fit_exact), how)


def _pool_of(request: Request) -> Ints:
    """The unlabelled instances, from the learner's own split unless given."""
    learner: Learner | Any = request.learner
    pool = request.options.get("pool")
    if pool is None and hasattr(learner, "split"):
        pool = learner.split.train
    if pool is None:
        raise InputError(
            [
                Mistake(
                    "pool",
                    "an ensemble labels it; give the instances without labels: pool=range(...)",
                )
            ]
        )
    free = np.asarray(list(pool), dtype=np.int64)
    # a fold is scored on: not even its inputs are learnt from
    taken = [labels.instances for labels in request.labels.values()] if request.folds > 1 else []
    return np.setdiff1d(free, np.concatenate(taken)) if taken else free
