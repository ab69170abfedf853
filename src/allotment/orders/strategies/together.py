"""The same instances for all tasks, as far as they have the same candidates, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allotment.orders.strategies._places import Places, draw_rank, lay_out
from allotment.orders.strategy import Demand


class Together:
    """One random order for all tasks, of which each takes the beginning."""

    def select(self, demand: Demand) -> dict[str, list[str]]:
        board = lay_out(demand)
        first = draw_rank(board.names, demand.seed, "")
        return board.answer(_share(board.able, board.wanted, first))


def _share(able: NDArray[np.bool_], wanted: Sequence[int], rank: Places) -> list[Places]:
    """For each task the first of one order, in which instances that serve more tasks come first."""
    serves = able.sum(axis=0)
    order = rank[np.argsort(-serves[rank], kind="stable")]
    return [order[able[task, order]][:count] for task, count in enumerate(wanted)]


STRATEGY = Together()
