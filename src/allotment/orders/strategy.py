"""The seam of strategies: how many labels of each task are wanted, and which instances get them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from allotment.amounts import short
from allotment.errors import InputError, Mistake
from allotment.plugins import Registry, find_modules

RANDOM, SHARING = "random", "together"
"""the built-in strategies that orders have known since there were any: an order records any other
one by its name"""

Inputs = Callable[[Sequence[str]], NDArray[Any]]
"""what a model would see of these instances, one row for each"""
Labelled = Callable[[str], tuple[Sequence[str], NDArray[Any]]]
"""the instances that have a label of a task already, and these labels, in the form of its kind"""


def know_nothing(*given: object) -> Any:
    """In the place of data that nobody gave."""
    raise InputError([Mistake("strategy", "asks for the data, which nobody gave to `choose`")])


@dataclass(frozen=True)
class Demand:
    """What is to be chosen: so many instances for each task, among its candidates."""

    candidates: Mapping[str, Sequence[str]]
    """of each task that wants any: the names of the instances that could be labelled for it"""
    counts: Mapping[str, int]
    """of the same tasks: how many of them, at least one and no more than there are"""
    seed: int
    """whatever is random is drawn by it, and by nothing else"""
    inputs: Inputs = know_nothing
    labelled: Labelled = know_nothing


@runtime_checkable
class Strategy(Protocol):
    """Which instances are to be labelled: candidates in, names out.

    `select` gets a demand and returns, for each of its tasks, as many of the task's candidates as
    it wants, none of them twice, in the order in which they are to be labelled: people may stop
    halfway. The same demand has the same answer, on every machine: what is random comes from the
    demand's seed. `demand.inputs` and `demand.labelled` open the data only if they are called, so
    that a strategy that needs neither costs nothing.

    What it returns is checked. Where something is wrong, nothing is ordered, and the message names
    the package that the strategy comes from.
    """

    def select(self, demand: Demand) -> Mapping[str, Sequence[str]]: ...


STRATEGIES: Registry[Strategy] = Registry(
    "strategies", "strategy", ("select",), find_modules("allotment.orders.strategies", "STRATEGY")
)


def select(name: str, demand: Demand) -> dict[str, list[str]]:
    """What a strategy chooses, if it keeps the contract; raises InputError with all that is
    wrong."""
    strategy = STRATEGIES.load(name)
    with STRATEGIES.calling(name):
        answer = strategy.select(demand)
    if wrong := list(find_faults(demand, answer)):
        message = "; ".join(wrong[:5])
        what = f"{message}. Nothing is ordered; choose another strategy"
        raise InputError([Mistake(STRATEGIES.describe(name), what)])
    return {task: list(answer[task]) for task in demand.counts}


def find_faults(demand: Demand, answer: Any) -> Iterator[str]:
    """What is wrong with the answer to a demand: nothing, if it keeps the contract."""
    if not isinstance(answer, Mapping):
        yield f"gives {short(answer)}, and no table from task to names"
        return
    for task in answer:
        if task not in demand.counts:
            yield f"chooses for {short(task)}, of which nothing is wanted"
    for task, count in demand.counts.items():
        yield from _find_faults_of(task, count, answer.get(task, ()), demand.candidates[task])


def _find_faults_of(task: str, count: int, chosen: Any, candidates: Sequence[str]) -> Iterator[str]:
    if isinstance(chosen, str) or not isinstance(chosen, Sequence):
        yield f"gives {short(chosen)} for {short(task)}, and no list of names"
        return
    if strange := [name for name in chosen if not isinstance(name, str)]:
        yield f"gives {short(strange[0])} for {short(task)}, and no name"
        return
    if len(chosen) != count:
        yield f"chooses {len(chosen)} for {short(task)} where {count} are wanted"
    if twice := [name for name, times in Counter(chosen).items() if times > 1]:
        yield f"chooses {short(twice[0])} for {short(task)} more than once"
    known = set(candidates)
    if strange := [name for name in chosen if name not in known]:
        yield f"chooses {short(strange[0])} for {short(task)}, which is no candidate"
