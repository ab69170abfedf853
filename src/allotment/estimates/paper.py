"""The paper's way for one request: what to measure, when that is enough, and the estimates that it
comes to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from allotment.arrays import Ints
from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake
from allotment.estimates import taba
from allotment.estimates.curves import Fit, Points, fit_paper
from allotment.estimates.estimates import DRAWS, Estimates
from allotment.estimates.method import Method, Plain
from allotment.estimates.outline import (
    BETWEEN_PIECE,
    CURVE_PIECE,
    PROBES_PIECE,
    TRIPLES_PIECE,
    Outline,
    OutlinePiece,
    Part,
    join_curves,
    measure_curve,
    measure_probes,
    measure_triples,
    settle,
    tell_probing,
    weigh,
)
from allotment.estimates.probes import AHEAD, Probes, join
from allotment.estimates.reduction import Unscored, price_ensemble
from allotment.estimates.request import Request, Work
from allotment.estimates.scoring import Scoring
from allotment.estimates.stopping import allow, enough_for
from allotment.estimates.transfer import BY_SOURCES, Transfer, affinity, count_left_out
from allotment.estimates.triples import (
    TripleLooks,
    find_excess,
    join_looks,
    make_triple_arms,
    share_excess,
)
from allotment.learners.learner import labelled

OUTLINE = ("every", "ahead", "runs", "sizes", "repetitions")
"""options that say what is trained"""

PieceResult: TypeAlias = Points | Unscored | Probes | TripleLooks
"""what measuring a piece gave"""


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
    scoring: Scoring | None = None
    """what trains and what scores, where folds do not take turns"""
    usual: Mapping[str, Any] = field(default_factory=dict)
    """what is settled unless options say otherwise"""
    between: bool = False
    """whether rates between tasks are measured, too"""
    triples: bool = False
    """whether transfer is that of three tasks at a time"""

    @cached_property
    def parts(self) -> list[Part]:
        if self.scoring is not None:
            return [(self.scoring.learner, self.scoring.labels)]
        return self.request.parts

    @cached_property
    def outline(self) -> Outline:
        request, options = self.request, self.request.options
        said = {key: options[key] for key in (*OUTLINE, "ensemble") if options.get(key) is not None}
        given = {**self.usual, **said}
        if request.probing is not None:
            given["allowance"] = allow(
                request.probing, self.parts, given.get("ahead", AHEAD), request.seed
            )
        learner, labels = self._smallest
        given |= {"pool": self.pool, "parts": len(self.parts)}
        given |= {
            "probes": self.estimator != taba.WITHOUT_TRANSFER,
            "curves": self.how.get("rate") is None,
        }
        given["sources"] = self.estimator == BY_SOURCES
        given |= {"between": self.between, "triples": self.triples}
        return settle(learner, labels, request.trainings, **given)

    @cached_property
    def pieces(self) -> list[OutlinePiece]:
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
        learner, labels = self.request.learner, self.request.labels
        return {task: len(labels[task]) for task in learner.tasks}

    def weigh(self) -> Work:
        """What all pieces take."""
        outline, (learner, labels) = self.outline, self._smallest
        tasks = labelled(learner, labels)
        both, probing = (
            weigh(learner, labels, each, self.pool)
            for each in (outline, replace(outline, sizes={}, pairs=()))
        )
        looks = outline.runs * outline.looks(learner, labels)
        teachers = outline.ensemble * min(outline.parts, outline.repetitions)
        teachers *= len(outline.sizes) + len(outline.pairs)
        scores = looks * len(tasks) * (len(tasks) + 1) + both.trainings - probing.trainings
        probes = probing.trainings * learner.steps(labels) + looks * outline.ahead * len(
            outline.arms(tasks)
        )
        if outline.triples:
            arms = make_triple_arms(tasks)
            probes += looks * outline.ahead * len(arms)
            scores += looks * sum(map(len, arms.values()))
        steps = probes + both.steps - probing.steps - self._count_second()
        return Work(both.trainings, steps, both.steps, scores - teachers, probing.steps)

    def _count_second(self) -> int:
        """Mini-batches of curves between tasks that share a step with another."""
        if self.pool is None:
            return 0
        (learner, labels), sizes = self._smallest, self.outline.sizes
        each = (
            price_ensemble(learner, labels, source, self.pool, sizes[source], 0, 1, gaining=target)
            for source, target in self.outline.pairs
        )
        return self.outline.repetitions * sum(price.steps // 2 for price in each)

    def measure(
        self, piece: OutlinePiece, progress: Callable[[int, int], None] | None = None
    ) -> PieceResult:
        """One piece; it depends on nothing that another gave."""
        seed = self.request.seed
        if piece.kind in _MEASURED_BESIDE:
            return _MEASURED_BESIDE[piece.kind](piece, self.parts, self.outline, seed)
        try:
            return measure_curve(
                piece, self.parts, self.outline, seed, progress, self.pool, self.mode
            )
        except Unscored as error:
            return error

    def is_enough(self, found: Sequence[PieceResult]) -> bool:
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

    def _curves_of(self, found: Sequence[PieceResult]) -> dict[str, Points]:
        pairs = zip(self.pieces, found, strict=False)
        return join_curves(
            (piece.task, each)
            for piece, each in pairs
            if piece.kind == CURVE_PIECE and isinstance(each, Points | Unscored)
        )

    def _pairs_of(self, found: Sequence[PieceResult]) -> dict[tuple[str, str], Points] | None:
        """Curves by source and target, where they could be scored; None if none were asked for."""
        if not self.between:
            return None
        pairs = zip(self.pieces, found, strict=False)
        return join_curves(
            ((piece.task, piece.gaining), each)
            for piece, each in pairs
            if piece.kind == BETWEEN_PIECE and isinstance(each, Points)
        )

    def read(self, results: Sequence[Plain]) -> list[PieceResult]:
        """What the first pieces gave, from the plain values of it."""
        pairs = zip(self.pieces, results, strict=False)
        return [from_plain(piece, plain) for piece, plain in pairs]

    def conclude(self, found: Sequence[PieceResult]) -> Estimates:
        """The estimates that the first pieces come to, all curves among them."""
        request, curves, pairs = self.request, self._curves_of(found), self._pairs_of(found)
        looked = _probes_of(found)
        probes = join(looked) if looked else None
        measured: dict[str, Any] = {}
        if probes is not None and self.triples:
            looks = join_looks(each for each in found if isinstance(each, TripleLooks))
            excess = find_excess(probes, looks)
            plain = affinity(probes, self.estimator).matrix
            measured["triples"] = excess.to_dict() | {"pairs": plain.tolist()}
            probes = share_excess(probes, excess)
        transfer = None if probes is None else affinity(probes, self.estimator)
        draws = int(request.options.get("draws", DRAWS))
        how = {**self.how, "between": pairs, "fit": self.fit, "draws": draws}
        made = taba.combine(transfer, curves, self._have, seed=request.seed, **how)
        points = {task: each.to_dict() for task, each in curves.items()}
        about: dict[str, Any] = {
            "trainings": sum(piece.trainings for piece in self.pieces[: len(found)])
        }
        if transfer is not None and probes is not None:
            about["probing"] = self._tell_probing(probes, transfer)
            measured["transfer"] = transfer.to_dict()
        measured["points"] = points
        if pairs is not None:
            measured["between"] = taba.list_pairs(tuple(self._have), pairs)
        about["measured"] = measured
        if self.scoring is not None:
            about |= {"scored": self.scoring.to_dict(), "folds": 1}
            about["settled"] = self._tell_settled()
            fits = {task: self.fit(each) for task, each in curves.items()}
            about["fits"] = {
                task: {"rate": each.shape, "first": each.size} for task, each in fits.items()
            }
        return replace(made, about=dict(made.about) | about)

    def _tell_probing(self, probes: Probes, transfer: Transfer) -> dict[str, Any]:
        told, limit = tell_probing(probes, self.parts, self.outline), self.request.probing
        told |= {} if limit is None else {"limit": dict(limit)}
        if self.scoring is not None:
            told["left_out"] = count_left_out(transfer, probes)
        return told

    def _tell_settled(self) -> dict[str, Any]:
        """What the paper leaves open, as it was settled here."""
        outline = self.outline
        told: dict[str, Any] = {}
        if outline.runs:
            told |= {"runs": outline.runs, "every": outline.every, "ahead": outline.ahead}
        if outline.sizes:
            sizes = {task: list(each) for task, each in outline.sizes.items()}
            told |= {"sizes": sizes, "repetitions": outline.repetitions}
            told |= {"ensemble": outline.ensemble, "mode": self.mode}
        return told


def find_pool(request: Request, taken: Ints) -> Ints:
    """The unlabelled instances, from the learner's own split unless given, without those that are
    taken."""
    learner: Any = request.learner
    pool = request.options.get("pool")
    if pool is None and getattr(learner, "split", None) is not None:
        pool = learner.split.train
    if pool is None:
        what = "an ensemble labels it; give the instances without labels: pool=range(...)"
        raise InputError([Mistake("pool", what)])
    return np.setdiff1d(np.asarray(list(pool), dtype=np.int64), taken)


@lru_cache(maxsize=64)  # it takes a second, and the same points are fitted whenever they are read
def descend(points: Points) -> Fit:
    """The paper's fit. Plans take one rate of it: its draws only tell whether the curve carries a
    signal."""
    return fit_paper(points, draws=50)


_MEASURED_BESIDE: dict[str, Callable[..., Probes | TripleLooks]] = {
    PROBES_PIECE: measure_probes,
    TRIPLES_PIECE: measure_triples,
}
"""pieces that are looks into trainings, by their kind"""


def _probes_of(found: Sequence[PieceResult]) -> list[Probes]:
    return [each for each in found if isinstance(each, Probes)]


def to_plain(found: PieceResult) -> dict[str, Any]:
    """What a piece gave, as plain values for JSON; `from_plain` reads them back."""
    if isinstance(found, Unscored):
        return {"unscored": [[mistake.where, mistake.what] for mistake in found.mistakes]}
    return found.to_dict()


def from_plain(piece: OutlinePiece, plain: Mapping[str, Any]) -> PieceResult:
    if piece.kind in (PROBES_PIECE, TRIPLES_PIECE):
        return (Probes if piece.kind == PROBES_PIECE else TripleLooks).from_dict(plain)
    if "unscored" in plain:
        return Unscored([Mistake(where, what) for where, what in plain["unscored"]])
    return Points.from_dict(plain)


class InPieces(Method):
    """The paper's way as a method: its jobs are the curves, and then the trainings that are
    probed."""

    trainings = 30
    kind = "piece"
    ends_early = True
    conclusion = 2

    @abstractmethod
    def follow(self, request: Request) -> Paper:
        """How it is followed."""

    def weigh(self, request: Request) -> Work:
        return request.once(self.follow).weigh()

    def jobs(self, request: Request) -> list[Plain]:
        pieces = request.once(self.follow).pieces
        return [{"piece": _name(piece), "takes": piece.trainings} for piece in pieces]

    def do(self, request: Request, job: Plain) -> Plain:
        paper = request.once(self.follow)
        piece = next(each for each in paper.pieces if _name(each) == job["piece"])
        found = paper.measure(piece, lambda done, total: request.tell(done, total, piece.words))
        request.tell(piece.trainings, piece.trainings, piece.words)
        return to_plain(found)

    def is_enough(self, request: Request, results: Sequence[Plain]) -> bool:
        paper = request.once(self.follow)
        return paper.is_enough(paper.read(results))

    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        paper = request.once(self.follow)
        return paper.conclude(paper.read(results))


def _name(piece: OutlinePiece) -> list[Any]:
    """What tells a piece from the others of its request."""
    return [piece.kind, piece.number, piece.task, *([piece.gaining] if piece.gaining else [])]
