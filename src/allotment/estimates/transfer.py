"""Transfer between tasks: I_ij of Eq. 5 from probes, as the paper averages it and as it holds
up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array
from allotment.errors import InputError, Mistake, reading, suggest
from allotment.estimates.posterior import Posterior, Sums, sum_up, weigh
from allotment.estimates.probes import Probes, to_array, to_plain

ESTIMATORS = ("pooled", "paper", "tag")
"""of probes with a mini-batch of the target's own in every arm"""
BY_SOURCES = "tag-sources"
"""TAG itself, of probes that step on the source alone"""
PLAIN_ESTIMATORS = ("paper", BY_SOURCES)
"""those that shrink nothing: figures as the papers have them"""
FEWEST_RUNS = 6
"""trainings from which on their spread is the measure of noise; of fewer, blocks of consecutive
probes are"""
SAMPLE = 8000
"""draws from which intervals are read"""


@dataclass(frozen=True, eq=False)
class Transfer:
    """What a label of one task is worth to another, in labels of that other task's own.

    In every matrix the row is the source i, whose label it is, and the column the target j, which
    is scored: [i, j] is the paper's I_(i -> j). The diagonal, I_ii, is set to 1 and not measured.
    Sums are kept for each unit of noise (a training, or a block of consecutive probes); all else
    follows from them.
    """

    tasks: tuple[str, ...]
    estimator: str
    score: str
    """metric or loss"""
    unit: str
    """what is taken to be independent: "training" or "block"; with blocks, noise that a training
    shares is not seen, and with trainings on the same labels, what another set of labels would have
    shown is not"""
    sums: Array
    """[unit, i, j]: of numerators, with denominators on the diagonal; of their ratios for the
    paper's estimator"""
    counts: Array
    """[unit, j]: probes that were used"""

    def __post_init__(self) -> None:
        size = len(self.tasks)
        wrong = [Mistake("tasks", "one is there twice; every task needs its own name")] * (
            len(set(self.tasks)) < size
        )
        for key, shape in (("sums", (size, size)), ("counts", (size,))):
            given = getattr(self, key).shape
            if given[1:] != shape or given[0] != len(self.counts):
                wanted = ", ".join(map(str, shape))
                wrong.append(
                    Mistake(
                        key,
                        f"have the shape {given}; they must be (units, {wanted}), as many for both",
                    )
                )
        if wrong:
            raise InputError(wrong)

    @cached_property
    def _sums(self) -> Sums:
        return sum_up(self.sums, self.counts)

    @cached_property
    def _posterior(self) -> Posterior:
        return weigh(self._sums)

    @cached_property
    def matrix(self) -> Array:
        """I_ij: each cell shrunk to the mean of all by its own uncertainty; plain estimators shrink
        nothing."""
        return self.plain if self.is_plain else self._posterior.mean

    @property
    def is_plain(self) -> bool:
        """Whether it is as the paper divides, with no care for noise."""
        return self.estimator in PLAIN_ESTIMATORS

    @property
    def plain(self) -> Array:
        """I_ij as divided, before any shrinkage; 0 where no probe had anything to divide by."""
        return self._sums.plain

    @property
    def error(self) -> Array:
        """Standard error of each cell of `plain`; infinite where there is nothing to tell it
        from."""
        return self._sums.error

    @property
    def firmness(self) -> dict[str, float]:
        """Standard errors by which each target's denominator lies above 0; below 2 its column is
        hardly measured."""
        return dict(zip(self.tasks, self._sums.firmness.tolist(), strict=True))

    @property
    def informativeness(self) -> dict[str, float]:
        """I_i of Eq. 3: what a label of each task is worth to all tasks together, the sum of its
        row."""
        return dict(zip(self.tasks, self.matrix.sum(axis=1).tolist(), strict=True))

    @cached_property
    def _sample(self) -> Array:
        return self.draws(SAMPLE, 0)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Low and high end of where each cell lies with this probability; infinite where nothing is
        known."""
        if not 0 < level < 1:
            raise InputError(
                [Mistake("level", f"{level} is not between 0 and 1; 0.9 means nine of ten")]
            )
        low, high = np.quantile(self._sample, [(1 - level) / 2, (1 + level) / 2], axis=0)
        unknown = np.isinf(self.error) & self.is_plain
        return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)

    def called(self, level: float = 0.95) -> NDArray[np.int64]:
        """The signs of cells that are told from 0, such that at most 1 - level of them are wrong; 0
        elsewhere.

        A called cell's interval leaves out 0, its denominator is clearly positive, and its
        numerator is so far from 0 that it passes Benjamini and Hochberg's test beside all others;
        without the latter, calling 20 cells that are all 0 would find one. The paper's estimator,
        which knows no such care, calls by its interval.
        """
        low, high = self.interval(level)
        signs = np.where(low > 0, 1, np.where(high < 0, -1, 0))
        np.fill_diagonal(signs, 0)  # set, not measured
        if not self.is_plain:
            signs *= self._sums.apart(1 - level) & (
                self._sums.firmness > NormalDist().inv_cdf(level)
            )
        return np.asarray(signs, dtype=np.int64)

    def draws(self, count: int, seed: int) -> Array:
        """[draw, i, j]: matrices that could be the true one; of the paper's estimator by Student's
        t."""
        if count < 1:
            raise InputError([Mistake("count", f"{count} is below 1")])
        rng = np.random.default_rng(seed)
        if not self.is_plain:
            return self._posterior.draw(count, rng)
        noise = rng.standard_t(np.maximum(self._sums.units - 1, 1), (count, *self.plain.shape))
        return np.asarray(self.plain + noise * np.where(np.isinf(self.error), 0.0, self.error))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what `from_dict` reads, and beside it the figures that people look
        for."""
        low, high = self.interval()
        return {
            "tasks": list(self.tasks),
            "estimator": self.estimator,
            "score": self.score,
            "unit": self.unit,
            "sums": to_plain(self.sums),
            "counts": to_plain(self.counts),
            "matrix": to_plain(self.matrix),
            "low": to_plain(np.where(np.isfinite(low), low, np.nan)),
            "high": to_plain(np.where(np.isfinite(high), high, np.nan)),
            "informativeness": self.informativeness,
        }

    @classmethod
    @reading("the transfer")
    def from_dict(cls, plain: Mapping[str, Any]) -> Transfer:
        """The transfer that `to_dict` wrote."""
        needs = ("tasks", "estimator", "score", "unit", "sums", "counts")
        if missing := [Mistake(key, "is missing") for key in needs if key not in plain]:
            raise InputError(missing)
        estimator, score, unit = (str(plain[key]) for key in needs[1:4])
        return cls(
            tuple(plain["tasks"]),
            estimator,
            score,
            unit,
            to_array(plain["sums"]),
            to_array(plain["counts"]),
        )


def affinity(probes: Probes, estimator: str = "pooled", score: str = "metric") -> Transfer:
    """Transfer between the tasks of some probes.

    - "paper": Eq. 5 to the letter, the mean over all probes of numerator / denominator. Where a
      denominator is exactly 0 the ratio is not defined, and the probe is left out of that target's
      mean. No shrinkage.
    - "pooled": the sum of numerators over all probes by the sum of denominators; that is the mean
      of Eq. 5's ratios weighted by their denominators. Every cell has an interval and is shrunk by
      it.
    - "tag": pooled, of how much smaller j's loss is with i beside it, relative to its loss alone (1
      - L_j|ij / L_j|j). Each column is then divided by its own task's figure, so that I_ii = 1 as
      in Eq. 3. TAG itself steps on i alone.
    - "tag-sources": TAG itself, the mean over all probes of 1 - L_j(after steps on i) /
      L_j(before); each column is then divided by its own task's mean. No shrinkage. It takes
      probes of sources.

    A probe in which a task has no score after one of its arms does not count for that target.
    """
    mistakes = []
    if estimator not in (known := (*ESTIMATORS, BY_SOURCES)):
        mistakes.append(Mistake("estimator", f"unknown {estimator!r}; {suggest(estimator, known)}"))
    elif (estimator == BY_SOURCES) != probes.sources:
        what = f"{estimator!r} is not for probes that step on {_ARMS[probes.sources]}"
        mistakes.append(Mistake("estimator", what))
    if not len(probes):
        mistakes.append(Mistake("probes", "there are none; probe at least one step of a training"))
    if mistakes:
        raise InputError(mistakes)
    by_loss = estimator in ("tag", BY_SOURCES)
    if by_loss:
        score = "loss"
    gains = probes.gains(score)
    if by_loss:
        gains = gains / np.where(probes.loss.alone > 0, probes.loss.alone, np.nan)[:, None, :]
    used = np.asarray(np.isfinite(gains).all(axis=1))
    if estimator == "paper":
        own = np.diagonal(gains, axis1=1, axis2=2)
        used &= own != 0
        gains = gains / np.where(used, own, 1.0)[:, None, :]
    unit, groups = _units(probes)
    parts = np.where(used[:, None, :], gains, 0.0)
    sums, counts = (
        np.stack([each[group].sum(axis=0) for group in groups])
        for each in (parts, used.astype(float))
    )
    return Transfer(probes.tasks, estimator, score, unit, sums, counts)


_ARMS = {True: "the source alone", False: "the target, too"}


def count_left_out(transfer: Transfer, probes: Probes) -> dict[str, int]:
    """Of each target that has any, the probes that do not count: their denominator is 0, or a
    score is no number."""
    left = len(probes) - transfer.counts.sum(axis=0)
    pairs = zip(transfer.tasks, left.tolist(), strict=True)
    return {task: int(count) for task, count in pairs if count}


def _units(probes: Probes) -> tuple[str, list[NDArray[np.intp]]]:
    """Which probes belong together because their noise does; different units are taken to be
    independent."""
    names = np.array(probes.runs)
    runs = [np.flatnonzero(names == run) for run in dict.fromkeys(probes.runs)]
    if len(runs) >= FEWEST_RUNS:
        return "training", runs
    blocks = []
    for run in runs:
        run = run[np.argsort(probes.at[run], kind="stable")]
        # as many blocks as probes in each: both ought to be many
        blocks += np.array_split(run, max(int(np.sqrt(len(run))), min(2, len(run))))
    return "block", blocks
