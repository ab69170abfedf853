"""What looks odd about labels that came, beside those that are known.

A number, a class or a mask is judged by the labels at hand of its task. Nothing is judged by fewer
than 20: then the delivery's own labels join in, if that makes 20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.connect.delivery import HeldBack, Label, Parts
from allotment.connect.guard import show_value
from allotment.connect.masks import is_plain, to_array
from allotment.data.columns import plain
from allotment.data.dataset import PIXEL_KINDS, Dataset, Target
from allotment.formatting import several
from allotment.ledger.disk import MASK_FOLDER
from allotment.ledger.store import HeldLabel, Store
from allotment.stock.stock import OWN, Stock

ENOUGH_TO_JUDGE = 20
"""labels by which another one can be called odd"""
FAR_OUT = 4.0
"""interquartile ranges beyond the quartiles from which on a number is far outside: 6 standard
deviations where values are normal"""
MOST_LOOKED_AT = 60
"""masks at hand that a mask of one colour is held against; more would take long to read"""
RARELY_PLAIN = 0.05
"""share of masks of one colour up to which another one is odd"""
MOST_EXAMPLES = 5
"""labels that are listed of a task, unless most of it is odd: then one stands for all"""


def find_odd(parts: Parts, stock: Stock, named: Collection[str] = ()) -> dict[int, str]:
    """The places of accepted labels that look wrong, and why.

    `named` are tasks whose classes the user has listed: none of them is a surprise.
    """
    found: dict[int, str] = {}
    for task, places in _group(parts.accepted).items():
        labels = [parts.accepted[place] for place in places]
        target = stock.targets[task]
        if task in named and target.kind in ("classification", "multilabel"):
            continue
        for at, reason in _judge(stock, target, labels).items():
            found[places[at]] = reason
    return dict(sorted(found.items()))


def set_apart(parts: Parts, odd: Mapping[int, str], hold: bool) -> Parts:
    """The same with its odd labels listed and, if they are to be held back, not accepted."""
    listed = tuple(
        HeldBack(parts.accepted[at], parts.places[at], reason) for at, reason in odd.items()
    )
    if not hold:
        return replace(parts, held=listed)
    kept = [at for at in range(len(parts.accepted)) if at not in odd]
    return replace(
        parts,
        accepted=tuple(parts.accepted[at] for at in kept),
        places=tuple(parts.places[at] for at in kept),
        held=listed,
    )


def tell_odd(held: Iterable[HeldBack], labels: Iterable[Label]) -> list[str]:
    """What is odd of these labels, a line for each, or one for a task of which most is."""
    totals = Counter(task for task, _, _ in labels)
    of_task: dict[str, list[HeldBack]] = {}
    for each in held:
        of_task.setdefault(each.label[0], []).append(each)
    lines = []
    for task, odd in of_task.items():
        first, total = odd[0], totals[task]
        if len(odd) > MOST_EXAMPLES and 2 * len(odd) > total:
            lines.append(
                f"{len(odd)} of {several(total, 'label')} of {show_value(task)} look odd, such as"
                f" {_tell(first)}. Is it the right column, and the same unit as before?"
            )
            continue
        lines += [_tell(each) for each in odd[:MOST_EXAMPLES]]
        if len(odd) > MOST_EXAMPLES:
            lines.append(f"and {len(odd) - MOST_EXAMPLES} more of {show_value(task)}")
    return lines


def find_waiting(store: Store, digest: str) -> list[HeldLabel]:
    """What is held back of the delivery with this digest."""
    numbers = {each.number for each in store.deliveries() if each.digest == digest}
    return [each for each in store.held() if each.delivery in numbers]


def _tell(held: HeldBack) -> str:
    task, instance, _ = held.label
    where = f"{held.where}: " if held.where else ""
    return f"{where}{show_value(task)} of {show_value(instance)}: {held.reason}"


def _group(labels: Sequence[Label]) -> dict[str, list[int]]:
    """The places of the labels of each task; those that the data themselves gave are not judged."""
    found: dict[str, list[int]] = {}
    for place, (task, _, value) in enumerate(labels):
        if value != OWN:
            found.setdefault(task, []).append(place)
    return found


def _judge(stock: Stock, target: Target, labels: Sequence[Label]) -> dict[int, str]:
    places = stock.labels[target.name].instances
    if target.kind == "regression":
        known = np.asarray(stock.open().values(target.name, places), dtype=np.float64)
        return _judge_numbers(known[np.isfinite(known)], labels)
    if target.kind in ("classification", "multilabel"):
        return _judge_classes(_count_classes(stock.open(), target, places), len(places), labels)
    if target.kind in PIXEL_KINDS:
        return _judge_masks(stock, target, labels)
    return {}


# Numbers


@dataclass(frozen=True)
class Fence:
    """How far numbers may lie: beyond it on the plain scale, and on that of logarithms where all
    have one sign, so that a long tail is no surprise."""

    low: float
    high: float

    @classmethod
    def around(cls, values: NDArray[np.float64]) -> Fence:
        low, high = _find_limits(values)
        if (values > 0).all():
            below, above = np.exp(_find_limits(np.log(values)))
            return cls(min(low, float(below)), max(high, float(above)))
        if (values < 0).all():
            above, below = -np.exp(_find_limits(np.log(-values)))
            return cls(min(low, float(below)), max(high, float(above)))
        return cls(low, high)

    def is_within(self, value: float) -> bool:
        return self.low <= value <= self.high


def _find_limits(values: NDArray[np.float64]) -> tuple[float, float]:
    first, third = np.quantile(values, [0.25, 0.75])
    spread = third - first or values.max() - values.min()
    return float(first - FAR_OUT * spread), float(third + FAR_OUT * spread)


def _judge_numbers(known: NDArray[np.float64], labels: Sequence[Label]) -> dict[int, str]:
    """Those far outside the quartiles of what is known, and of all that is."""
    came = np.array([value for _, _, value in labels], dtype=np.float64)
    basis = known if len(known) >= ENOUGH_TO_JUDGE else np.concatenate([known, came])
    if len(basis) < ENOUGH_TO_JUDGE or basis.min() == basis.max():
        return {}
    with np.errstate(over="ignore"):
        fence = Fence.around(basis)
    inside = basis[(basis >= fence.low) & (basis <= fence.high)]
    low, high = (plain(float(f"{edge:.6g}")) for edge in (inside.min(), inside.max()))
    what = f"is far outside what is known ({low} to {high}, {several(len(basis), 'label')})"
    found = {}
    for at, value in enumerate(came.tolist()):
        is_known = len(known) > 0 and known.min() <= value <= known.max()
        if not is_known and not fence.is_within(value):
            found[at] = f"{plain(value)} {what}"
    return found


# Classes


def _count_classes(data: Dataset, target: Target, places: NDArray[np.int64]) -> Mapping[str, int]:
    """Of each class, how many labels at hand have it."""
    values = np.asarray(data.values(target.name, places))
    if target.kind == "multilabel":
        counts = np.nansum(values, axis=0) if len(values) else np.zeros(len(target.classes))
    else:
        counts = np.bincount(values.astype(np.int64), minlength=len(target.classes))
    return dict(zip(target.classes, counts.astype(int).tolist(), strict=False))


def _judge_classes(
    counts: Mapping[str, int], total: int, labels: Sequence[Label]
) -> dict[int, str]:
    """Those with a class that no label has, where every class that there is was met twice or more:
    as long as some were met once, another one is to be expected (Good and Turing)."""
    if total < ENOUGH_TO_JUDGE or 1 in counts.values():
        return {}
    found = {}
    for at, (_, _, value) in enumerate(labels):
        strange = [name for name in _list_names(value) if not counts.get(name)]
        if strange:
            found[at] = f"{show_value(strange[0])} is a class that none of {total} labels has yet"
    return found


def _list_names(value: Any) -> list[str]:
    """The classes that a label says are there."""
    if isinstance(value, str):
        return [value]
    return [name for name, mark in value.items() if mark] if isinstance(value, dict) else value


# Masks


def _judge_masks(stock: Stock, target: Target, labels: Sequence[Label]) -> dict[int, str]:
    """Those of one colour, where hardly any of the others is."""
    folder = stock.folder / MASK_FOLDER
    came = [
        is_plain(target.kind, to_array(target, value, folder=folder, size=stock.size_of(name)))
        for _, name, value in labels
    ]
    if not any(came):
        return {}
    known = stock.labels[target.name].instances
    step = -(-len(known) // MOST_LOOKED_AT) or 1
    data = stock.open()
    basis = [
        is_plain(target.kind, np.asarray(data.values(target.name, known[at : at + 1]))[0])
        for at in range(0, len(known), step)
    ]
    basis += came if len(basis) < ENOUGH_TO_JUDGE else []
    if len(basis) < ENOUGH_TO_JUDGE or sum(basis) > RARELY_PLAIN * len(basis):
        return {}
    what = f"is of one colour, as hardly any other is ({sum(basis)} of {len(basis)})"
    return {at: what for at, is_odd in enumerate(came) if is_odd}
