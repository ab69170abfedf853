"""Candidates as places in one list of names, in orders that a seed draws."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allotment.orders.strategy import Demand

Places = NDArray[np.int64]
"""of instances, among all that are candidates for anything"""


@dataclass(frozen=True, eq=False)
class Board:
    """A demand in numbers; neither tasks nor candidates depend on the order they were given in."""

    tasks: list[str]
    names: list[str]
    able: NDArray[np.bool_]
    """of each task, which instances are candidates for it"""
    wanted: list[int]

    def answer(self, chosen: Sequence[Places]) -> dict[str, list[str]]:
        """The names at the places that were chosen for each task."""
        pairs = zip(self.tasks, chosen, strict=True)
        return {task: [self.names[at] for at in own.tolist()] for task, own in pairs}


def lay_out(demand: Demand) -> Board:
    """The demand as a board."""
    tasks = sorted(demand.counts)
    names = sorted(set().union(*(demand.candidates[task] for task in tasks)))
    place = {name: at for at, name in enumerate(names)}
    able = np.zeros((len(tasks), len(names)), dtype=bool)
    for row, task in enumerate(tasks):
        able[row, [place[name] for name in demand.candidates[task]]] = True
    return Board(tasks, names, able, [demand.counts[task] for task in tasks])


def draw_rank(names: Sequence[str], seed: int, task: str) -> Places:
    """The places in an order that depends on the seed, the task and each name alone: the same on
    every machine."""
    key = hashlib.sha256(f"order\0{seed}\0{task}".encode()).digest()
    ranks = [
        hashlib.blake2b(name.encode(errors="replace"), key=key, digest_size=8).digest()
        for name in names
    ]
    return np.argsort(np.array(ranks, dtype="S8"), kind="stable")
