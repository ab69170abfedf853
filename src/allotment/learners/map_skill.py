"""How far answers for pixels are above those that nobody has to look at a picture for.

Answers a and labels y of n pictures at the same places become numbers: shares of classes, vectors,
or ranks among all numbers. The mean picture is taken off both, which leaves what sets pictures
apart, and of that

    skill = sum over i of a_i y_i / (|a| |y|),    error^2 = sum over i, j of (a_i y_j)^2 / (n - 1)

over (|a| |y|)^2, where a_i y_j is a sum over places and |a| goes over all pictures and places. The
error is the standard deviation of the skill when the same answers are dealt to pictures at random,
over all n! ways (Hoeffding's combinatorial variance); their mean is 0. With one place and ranks
these are Spearman's rank correlation and (n - 1)^-1/2, as for a number of the whole instance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allotment.arrays import AnyArray, Array
from allotment.data.dataset import VOID, Target
from allotment.learners.metrics import rank_values

PLACES = 8192
"""of all pictures together that are looked at: neighbours say nearly the same, and pictures are
what counts"""
MOST_ACROSS = 16
"""places of one picture, across and down"""
FEWEST_ACROSS = 2
FEWEST_PICTURES = 3
"""with two there are two ways to deal answers, which tell nothing of each other"""
SAME_BELOW = 1e-20
"""mean square, of numbers that are 1 at most, below which they differ by rounding alone"""


class MapSkill:
    """The skill of answers for pixels, which come a part of the pictures after the other."""

    def __init__(self, target: Target, pictures: int):
        self._target = target
        across = math.isqrt(PLACES // max(pictures, 1))
        self._across = min(max(across, FEWEST_ACROSS), MOST_ACROSS)
        self._parts: list[tuple[AnyArray, AnyArray]] = []

    def thin(self, maps: Any) -> Any:
        """The places of maps (..., height, width) that are looked at, in an array or a tensor."""
        rows, columns = (_spread(side, self._across) for side in maps.shape[-2:])
        return maps[..., rows, :][..., columns]

    def add(self, answers: AnyArray, values: AnyArray) -> None:
        """Answers, as probabilities or values, and labels of some pictures, both thinned."""
        self._parts.append((answers, values))

    def result(self) -> tuple[float, float]:
        """Skill and error; neither is a number where labels do not set pictures apart."""
        if not self._parts:
            return math.nan, math.nan
        answers, values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        return correlate_maps(self._target, answers, values)


def _spread(side: int, across: int) -> list[int]:
    """The middles of so many equal parts of a side."""
    across = min(across, side)
    return [(2 * place + 1) * side // (2 * across) for place in range(across)]


def correlate_maps(target: Target, answers: AnyArray, values: AnyArray) -> tuple[float, float]:
    """Skill and error of answers and labels (pictures, ..., height, width)."""
    said, true, known = _to_numbers(target, answers, values)
    seen = known.any(axis=(1, 2))
    if seen.sum() < FEWEST_PICTURES:
        return math.nan, math.nan
    said, true, known = said[seen], true[seen], known[seen]
    own, true = _tell_apart(said, known), _tell_apart(true, known)
    if _are_alike(true):
        return math.nan, math.nan
    if _are_alike(own):  # without skill, but not surely so: others might as well have none
        return 0.0, _find_spread(true, true) / _find_size(true, true)
    # dealt to another picture, an answer counts where that one is known
    dealt = _tell_apart(said, np.ones_like(known))
    size = _find_size(own, true)
    return float(np.sum(own * true)) / size, _find_spread(dealt, true) / size


def _to_numbers(
    target: Target, answers: AnyArray, values: AnyArray
) -> tuple[Array, Array, AnyArray]:
    """Answers and labels as (pictures, parts, places), and whether a place is known (pictures, 1,
    places)."""
    if target.kind == "segmentation":
        classes, true = np.arange(len(target.classes))[:, None], _flatten(values, 1)
        return _flatten(answers, len(classes)), np.equal(true, classes).astype(float), true != VOID
    if target.kind == "normals":
        true = _flatten(values, 3)
        unknown = np.asarray(np.isnan(true).any(axis=1, keepdims=True))
        return _flatten(answers, 3), true, ~unknown
    said, true = _flatten(answers, 1), _flatten(values, 1)
    known = ~np.isnan(true)
    return _rank_known(said, known), _rank_known(true, known), known


def _flatten(maps: AnyArray, parts: int) -> Array:
    places = math.prod(maps.shape[-2:])
    return maps.reshape(len(maps), parts, places).astype(np.float64)


def _rank_known(numbers: Array, known: AnyArray) -> Array:
    """Places in the rising order of all that are known, as shares of their count."""
    return np.asarray(rank_values(numbers, numbers[known]) / max(int(known.sum()), 1))


def _tell_apart(numbers: Array, known: AnyArray) -> Array:
    """(pictures, numbers): what sets each apart from the mean picture; 0 where it is unknown."""
    counts = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, numbers, 0.0).sum(axis=0) / counts
    return np.where(known, numbers - mean, 0.0).reshape(len(numbers), -1)


def _are_alike(rows: Array) -> bool:
    return float(np.mean(np.square(rows))) < SAME_BELOW


def _find_size(said: Array, true: Array) -> float:
    return float(np.sqrt(np.sum(np.square(said)) * np.sum(np.square(true))))


def _find_spread(said: Array, true: Array) -> float:
    """Standard deviation of the sum of a_i y_i over all ways to deal answers to pictures."""
    pictures, numbers = true.shape
    # the sum of (a_i y_j)^2 over pictures is one over pairs of numbers too: whichever are fewer
    if pictures <= numbers:
        squares = float(np.sum(np.square(_multiply(said, true))))
    else:
        squares = float(np.sum(_multiply(said.T, said.T) * _multiply(true.T, true.T)))
    return math.sqrt(squares / (pictures - 1))


def _multiply(left: Array, right: Array) -> Array:
    """Each row with each, by one thread: sums of several round differently, and wait for each
    other where cores are busy."""
    rows = (np.ascontiguousarray(each) for each in (left, right))
    return np.asarray(np.einsum("ik,jk->ij", *rows))
