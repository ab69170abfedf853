"""Which instances are to be labelled for which task: drawn at random (the paper's P9), by seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import exact, short
from allotment.errors import InputError, Mistake, cut, reading, suggest
from allotment.mistakes import Collected
from allotment.problem import show_exact

LONGEST_NAME = 1000
"""letters of an instance's id or a task's name"""
_NOBODY = -1

Item = tuple[str, str]
"""a task, and the instance that is to be labelled for it"""


@dataclass(frozen=True)
class Order:
    """Labels to be made, in random order: whatever part of them comes back first is a random part.

    >>> Order((("cls", "a"), ("seg", "b")), seed=0).counts
    {'cls': 1, 'seg': 1}
    """

    items: tuple[Item, ...]
    seed: int
    together: bool = False
    """whether the tasks share instances as far as they can, or none as far as they can"""
    costs: Mapping[str, Fraction] = field(default_factory=dict)
    """what the labels of each task cost in all, where that is known"""

    def __post_init__(self) -> None:
        wrong = Collected()
        items = [wrong.attempt(_read_item, place, item) for place, item in enumerate(self.items)]
        kept = tuple(item for item in items if item is not None)
        for (task, instance), count in Counter(kept).items():
            if count > 1:
                wrong.add(
                    f"task {task!r}",
                    f"instance {short(instance)} is there {count} times; order it once",
                )
        if not _is_whole(self.seed):
            wrong.add("seed", f"{short(self.seed)} is not a whole number")
        if not isinstance(self.together, bool):
            wrong.add("together", f"{short(self.together)} is neither true nor false")
        costs = _read_costs(self.costs, {task for task, _ in kept}, wrong)
        wrong.raise_all()
        object.__setattr__(self, "items", kept)
        object.__setattr__(self, "costs", costs)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def counts(self) -> dict[str, int]:
        """How many labels of each task it asks for."""
        return dict(Counter(task for task, _ in self.items))

    @property
    def total(self) -> Fraction:
        """What it costs, as far as that is known."""
        return sum(self.costs.values(), Fraction(0))

    def of(self, task: str) -> list[str]:
        """The instances to be labelled for one task."""
        return [instance for named, instance in self.items if named == task]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        costs = {task: show_exact(cost) for task, cost in self.costs.items()}
        return {
            "items": list(map(list, self.items)),
            "seed": self.seed,
            "together": self.together,
            "costs": costs,
        }

    @classmethod
    @reading("the order")
    def from_dict(cls, plain: Any) -> Order:
        """The order that `to_dict` wrote."""
        if not isinstance(plain, Mapping):
            raise InputError(
                [Mistake("order", f"{short(plain)} is not a table with items and a seed")]
            )
        keys = ("items", "seed", "together", "costs")
        wrong = [
            Mistake(cut(key), f"unknown key; {suggest(key, keys)}")
            for key in plain
            if key not in keys
        ]
        wrong += [Mistake(key, "is missing") for key in keys if key not in plain]
        if not wrong and not isinstance(plain["items"], Sequence):
            wrong.append(
                Mistake("items", f"{short(plain['items'])} is not a list of tasks with instances")
            )
        if wrong:
            raise InputError(wrong)
        return cls(**plain)


def _read_item(place: int, item: Any) -> Item:
    if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
        raise InputError(
            [Mistake(f"item {place + 1}", f"{short(item)} is not a task and an instance")]
        )
    wrong = [
        Mistake(f"item {place + 1}: {what}", reason)
        for what, name in zip(("task", "instance"), item, strict=True)
        if (reason := find_fault(name))
    ]
    if wrong:
        raise InputError(wrong)
    return item[0], item[1]


def find_fault(name: Any) -> str:
    """Why a name can't stand in a sheet and come back unchanged; "" if it can."""
    if not isinstance(name, str) or not name.strip():
        return f"{short(name)} is not a name; give it one that is text"
    if len(name) > LONGEST_NAME:
        return f"{short(name)} has {len(name)} letters; at most {LONGEST_NAME} can be handled"
    try:
        broken = b"\0" in name.encode()
    except UnicodeEncodeError:
        broken = True
    return (
        f"{short(name)} holds a NUL or half a letter, which no text file can; rename it"
        if broken
        else ""
    )


def _read_costs(costs: Any, tasks: set[str], wrong: Collected) -> dict[str, Fraction]:
    read = {}
    if not isinstance(costs, Mapping):
        wrong.add("costs", f"{short(costs)} is not a table from task to cost")
        return {}
    for task, cost in costs.items():
        try:
            read[task] = exact(cost)
        except ValueError as error:
            wrong.add(f"cost of {short(task)}", str(error))
            continue
        if read[task] < 0:
            wrong.add(f"cost of {short(task)}", f"{short(cost)} is below zero")
        if task not in tasks:
            wrong.add(
                f"cost of {short(task)}",
                f"nothing is ordered for it; {suggest(task, sorted(tasks))}",
            )
    return read


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def choose(
    candidates: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    seed: int,
    together: bool = False,
    *,
    costs: Mapping[str, Any] | None = None,
) -> Order:
    """Random instances among the candidates of each task: on different ones as far as possible (the
    paper's way), or with `together` on the same ones.

    As far as possible is exact: no other choice shares fewer instances. Where tasks have the same
    candidates, and enough of them, every one of these is as likely as any other.

    >>> choose({"cls": ["a", "b"], "seg": ["a", "b"]}, {"cls": 1, "seg": 1}, seed=0).counts
    {'cls': 1, 'seg': 1}
    """
    _check(candidates, counts, seed)
    tasks = sorted(task for task, count in counts.items() if count)
    names = sorted(set().union(*(candidates[task] for task in tasks)))
    place = {name: at for at, name in enumerate(names)}
    able = np.zeros((len(tasks), len(names)), dtype=bool)
    for row, task in enumerate(tasks):
        able[row, [place[name] for name in candidates[task]]] = True
    wanted = [counts[task] for task in tasks]
    if together:
        chosen = _share(able, wanted, _rank(names, seed, ""))
    else:
        ranks = [_rank(names, seed, task) for task in tasks]
        chosen = _fill(able, wanted, ranks, _part(able, wanted, ranks))
    items = [
        (task, names[at]) for task, own in zip(tasks, chosen, strict=True) for at in own.tolist()
    ]
    paid = {task: cost for task, cost in (costs or {}).items() if task in tasks}
    return Order(tuple(items), seed, together, paid)


def _check(candidates: Mapping[str, Sequence[str]], counts: Mapping[str, int], seed: int) -> None:
    wrong = Collected()
    for task, count in counts.items():
        where = f"task {short(task)}"
        if task not in candidates:
            wrong.add(where, f"has no candidates; {suggest(task, candidates)}")
        elif not _is_whole(count) or count < 0:
            wrong.add(where, f"{short(count)} is not a number of labels")
        elif count > len(candidates[task]):
            wrong.add(
                where, f"{count} labels wanted, {len(candidates[task])} instances left to label"
            )
        elif count and (
            twice := [name for name, times in Counter(candidates[task]).items() if times > 1]
        ):
            wrong.add(where, f"candidate {short(twice[0])} is there more than once")
    if not _is_whole(seed):
        wrong.add("seed", f"{short(seed)} is not a whole number")
    wrong.raise_all()


Places = NDArray[np.int64]
"""of instances, among all that are candidates for anything"""


def _rank(names: Sequence[str], seed: int, task: str) -> Places:
    """The places in an order that depends on the seed, the task and each name alone: the same on
    every machine."""
    key = hashlib.sha256(f"order\0{seed}\0{task}".encode()).digest()
    ranks = [
        hashlib.blake2b(name.encode(errors="replace"), key=key, digest_size=8).digest()
        for name in names
    ]
    return np.argsort(np.array(ranks, dtype="S8"), kind="stable")


def _share(able: NDArray[np.bool_], wanted: Sequence[int], rank: Places) -> list[Places]:
    """For each task the first of one order, in which instances that serve more tasks come first."""
    serves = able.sum(axis=0)
    order = rank[np.argsort(-serves[rank], kind="stable")]
    return [order[able[task, order]][:count] for task, count in enumerate(wanted)]


def _part(able: NDArray[np.bool_], wanted: Sequence[int], ranks: Sequence[Places]) -> Places:
    """The task that owns each instance, or nobody, such that as many as possible of the wanted ones
    are owned.

    Tasks take what is free in turn; one that finds too little takes over from another, which can
    find more elsewhere.
    """
    owner = np.full(able.shape[1], _NOBODY, dtype=np.int64)
    for task, count in enumerate(wanted):
        rank = ranks[task]
        free = rank[able[task, rank] & (owner[rank] == _NOBODY)]
        owner[free[:count]] = task
        while (lacking := count - int((owner == task).sum())) and (
            steps := _find_way(able, owner, task)
        ):
            amount = min(lacking, *(len(step) for step in steps.values()))
            for taker, places in steps.items():
                there = ranks[taker][np.isin(ranks[taker], places)]
                owner[there[:amount]] = taker
    return owner


def _find_way(able: NDArray[np.bool_], owner: Places, task: int) -> dict[int, Places]:
    """The shortest chain from a task to free instances: each taker, and what it could take from the
    next or for free.

    The steps don't overlap, since each takes from another owner.
    """
    came: dict[int, int] = {task: task}
    queue = [task]
    for taker in queue:
        free = np.flatnonzero(able[taker] & (owner == _NOBODY))
        if len(free):
            steps = {taker: free}
            while taker != task:
                taker, giver = came[taker], taker
                steps[taker] = np.flatnonzero(able[taker] & (owner == giver))
            return steps
        for giver in np.unique(owner[able[taker]]).tolist():
            if giver not in came:
                came[giver] = taker
                queue.append(giver)
    return {}


def _fill(
    able: NDArray[np.bool_], wanted: Sequence[int], ranks: Sequence[Places], owner: Places
) -> list[Places]:
    """What each task owns and, where that is too little, others that it must share, in the task's
    random order."""
    chosen = []
    for task, count in enumerate(wanted):
        rank = ranks[task][able[task, ranks[task]]]
        own = owner[rank] == task
        picked = np.concatenate([rank[own], rank[~own]])[:count]
        chosen.append(rank[np.isin(rank, picked)])
    return chosen
