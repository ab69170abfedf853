"""Features that tell a label before it is bought: named like a target, equal to it or deciding
it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from allotment.data.columns import Column

ENOUGH_LABELS = 20
"""labels below which a likeness may be chance"""
MOST_COMPARED = 2_000
"""labelled rows that are looked at"""
NEARLY_EQUAL = 0.95
"""share of the rows from which on two columns are called equal"""
DETERMINED = 0.99
"""share of the rows whose class a feature's value gives away, from which on it is said to decide
it; and how closely the ranks of two numbers must agree"""
VALUES_FOR_A_ROW = 0.2
"""values of a feature for each row: where there are more, each of them has its class by chance"""


def find_leaks(
    features: Mapping[str, Column], targets: Mapping[str, Column]
) -> dict[str, tuple[str, str]]:
    """Of each suspicious feature the target that it may give away, and why."""
    found: dict[str, tuple[str, str]] = {}
    for target, labels in targets.items():
        rows = np.flatnonzero(~labels.missing)
        rows = rows[:: max(1, len(rows) // MOST_COMPARED)][:MOST_COMPARED]
        few = labels.pick(rows)
        classes = _number_classes(few.texts)
        for name, column in features.items():
            if name in found:
                continue
            why = _is_named_alike(name, target)
            if len(rows) >= ENOUGH_LABELS:
                why = _compare(column.pick(rows), few, classes) or why
            if why:
                found[name] = target, why
    return found


def _is_named_alike(name: str, target: str) -> str:
    """Whether all words of the target's name are in the feature's."""
    parts, wanted = (re.findall(r"[^\W_]+", each.casefold()) for each in (_cut(name), _cut(target)))
    return "its name has the target's in it" if wanted and set(wanted) <= set(parts) else ""


def _cut(name: str) -> str:
    """With a space where small letters end and a capital begins."""
    return re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])", " ", name)


def _number_classes(texts: Sequence[str]) -> NDArray[np.int64]:
    """Of each row the number of its class."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(each, len(known)) for each in texts], dtype=np.int64)


def _compare(feature: Column, target: Column, classes: NDArray[np.int64]) -> str:
    if feature.numbers is not None and target.numbers is not None and not target.boolean:
        return _compare_numbers(feature.numbers, target.numbers)
    if feature.numbers is not None and target.numbers is None:
        return _find_thresholds(feature.numbers, classes)
    return _compare_texts(list(feature.texts), list(target.texts))


def _compare_numbers(feature: NDArray[np.float64], target: NDArray[np.float64]) -> str:
    known = np.isfinite(feature) & np.isfinite(target)
    if known.sum() < max(ENOUGH_LABELS, len(known) / 2):
        return ""
    left, right = feature[known], target[known]
    if np.mean(left == right) >= NEARLY_EQUAL and np.any(right != right[0]):
        return "nearly all its values are the target's"
    ranks = _rank(left), _rank(right)
    if min(each.std() for each in ranks) == 0:
        return ""
    alike = abs(float(np.corrcoef(*ranks)[0, 1]))
    return f"it orders the rows as the target does (rank correlation {alike:.3f})" if (
        alike >= DETERMINED
    ) else ""  # fmt: skip


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each value among the others; equal ones share theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[place]


def _find_thresholds(feature: NDArray[np.float64], classes: NDArray[np.int64]) -> str:
    """Whether each class is one stretch of the feature's values."""
    known = np.flatnonzero(np.isfinite(feature))
    counts = np.bincount(classes[known])
    counts = counts[counts > 0]
    if len(known) < ENOUGH_LABELS or len(counts) < 2 or counts.min() < 3:
        return ""
    order = known[np.argsort(feature[known], kind="stable")]
    changes = np.count_nonzero(np.diff(classes[order]))
    ties = len(np.unique(feature[known])) < len(counts)
    return "its value alone tells the class" if changes == len(counts) - 1 and not ties else ""


def _compare_texts(feature: Sequence[str], classes: Sequence[str]) -> str:
    known = [row for row, each in enumerate(feature) if each]
    counts = Counter(classes[row] for row in known)
    if len(known) < max(ENOUGH_LABELS, len(feature) / 2) or len(counts) < 2:
        return ""
    if sum(feature[row] == classes[row] for row in known) >= NEARLY_EQUAL * len(known):
        return "nearly all its values are the target's"
    by_value: dict[str, Counter[str]] = {}
    for row in known:
        by_value.setdefault(feature[row], Counter())[classes[row]] += 1
    told = sum(max(each.values()) for each in by_value.values())
    are_few = len(by_value) <= VALUES_FOR_A_ROW * len(known)
    is_plain = max(counts.values()) >= DETERMINED * len(known)
    return "its value alone tells the class" if (
        told >= DETERMINED * len(known) and are_few and not is_plain
    ) else ""  # fmt: skip
