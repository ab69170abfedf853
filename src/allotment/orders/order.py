"""Which instances are to be labelled for which task, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from allotment.amounts import exact, short
from allotment.errors import InputError, Mistake, cut, reading, suggest
from allotment.mistakes import Collected
from allotment.orders.strategy import (
    RANDOM,
    SHARING,
    Demand,
    Inputs,
    Labelled,
    know_nothing,
    select,
)
from allotment.problem import show_exact
from allotment.renames import rename_keys

LONGEST_NAME = 1000
"""letters of an instance's id or a task's name"""

Item = tuple[str, str]
"""a task, and the instance that is to be labelled for it"""


@dataclass(frozen=True)
class Order:
    """Labels to be made, in the order in which its strategy would have them: of a random one,
    whatever part comes back first is a random part.

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

    def rename(self, names: Mapping[str, str]) -> Order:
        """The same with other names for some tasks."""
        items = tuple((names.get(task, task), instance) for task, instance in self.items)
        return replace(self, items=items, costs=rename_keys(self.costs, names))

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
    strategy: str | None = None,
    inputs: Inputs = know_nothing,
    labelled: Labelled = know_nothing,
) -> Order:
    """The order of these counts among the candidates of each task, as a strategy chooses them.

    Without a name that is `random`, on different instances as far as possible (the paper's way),
    or with `together` on the same ones. `inputs` and `labelled` are for strategies that ask
    for the data, see `Demand`.

    >>> choose({"cls": ["a", "b"], "seg": ["a", "b"]}, {"cls": 1, "seg": 1}, seed=0).counts
    {'cls': 1, 'seg': 1}
    """
    _check(candidates, counts, seed)
    name = strategy or (SHARING if together else RANDOM)
    tasks = sorted(task for task, count in counts.items() if count)
    wanted = {task: counts[task] for task in tasks}
    among = {task: candidates[task] for task in tasks}
    chosen = select(name, Demand(among, wanted, seed, inputs, labelled))
    items = [(task, instance) for task in tasks for instance in chosen[task]]
    paid = {task: cost for task, cost in (costs or {}).items() if task in tasks}
    return Order(tuple(items), seed, name == SHARING, paid)


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
