"""Random instances, on different ones for each task as far as possible: the paper's way (P9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allotment.orders.strategies._places import Places, draw_rank, lay_out
from allotment.orders.strategy import Demand

_NOBODY = -1


class Random:
    """As far as possible is exact: no other choice shares fewer instances. Where tasks have the
    same candidates, and enough of them, every one of these is as likely as any other.
    """

    def select(self, demand: Demand) -> dict[str, list[str]]:
        board = lay_out(demand)
        ranks = [draw_rank(board.names, demand.seed, task) for task in board.tasks]
        owner = _part(board.able, board.wanted, ranks)
        return board.answer(_fill(board.able, board.wanted, ranks, owner))


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


STRATEGY = Random()
