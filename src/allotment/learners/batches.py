"""Mini-batches that depend on nothing but seed, task and number, for any training code; no torch is
needed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

import numpy as np

from allotment.data.dataset import Instances
from allotment.data.labels import Labels, TaskLabels
from allotment.errors import InputError, Mistake


def mini_batches(
    labels: Labels, tasks: Sequence[str], size: int, number: int, seed: int
) -> list[tuple[str, TaskLabels]]:
    """Step `number` of a training: each task named with the labels of its mini-batch; named twice,
    it has two.

    Neither the other tasks nor the order in which labels are listed change a mini-batch. Of what
    comes back, `instances` says whom to open and `fill` gives the values to train on.
    """
    bare = [
        Mistake(f"task {task!r}", "has no labels; leave it out of the step")
        for task in tasks
        if not labels[task]
    ]
    if bare:
        raise InputError(bare)
    found = []
    for at, task in enumerate(tasks):
        mine, occasion = labels[task], list(tasks[:at]).count(task)
        places = np.argsort(mine.instances)[
            batch_places(len(mine), size, number, seed, task, occasion)
        ]
        values, pseudo = (
            None if part is None else part[places] for part in (mine.values, mine.pseudo)
        )
        found.append((task, TaskLabels(mine.instances[places], values, pseudo)))
    return found


def batch_places(
    count: int, size: int, number: int, seed: int, task: str, occasion: int = 0
) -> Instances:
    """Which of `count` labels are in mini-batch `number`: one epoch after another, each in its own
    order.

    `occasion` is how often the task was named before in the same step. Fewer labels than `size`
    come round again.

    >>> batches = [batch_places(6, 2, number, seed=1, task="age") for number in (0, 1, 2)]
    >>> sorted(int(place) for batch in batches for place in batch)
    [0, 1, 2, 3, 4, 5]
    """
    mistakes = [
        Mistake(name, f"{value} is below {least}")
        for name, value, least in (("count", count, 1), ("size", size, 1), ("number", number, 0))
        if value < least
    ]
    if mistakes:
        raise InputError(mistakes)
    block, place = divmod(number, BLOCK)
    found: Instances = _list_block(count, size, block, seed, task, occasion)[place]
    return found


BLOCK = 32
"""mini-batches of a task that are found at once: one by one, finding them took a third of a small
training"""


# a stack of runs has as many blocks open as it has runs and tasks
@functools.lru_cache(maxsize=1024)
def _list_block(
    count: int, size: int, block: int, seed: int, task: str, occasion: int
) -> Instances:
    """[mini-batch, place]"""
    first, length = block * BLOCK * size, BLOCK * size
    epochs = range(first // count, (first + length - 1) // count + 1)
    order = np.concatenate([_shuffle_epoch(count, seed, task, occasion, each) for each in epochs])
    start = first - epochs[0] * count
    return order[start : start + length].reshape(BLOCK, size)


# the last epoch of a block is the first of the next one
@functools.lru_cache(maxsize=1024)
def _shuffle_epoch(count: int, seed: int, task: str, occasion: int, epoch: int) -> Instances:
    rng = np.random.Generator(np.random.PCG64(hash_of("batches", seed, task, occasion, epoch)))
    return rng.permutation(count).astype(np.int64)


def hash_of(*key: object) -> int:
    """A seed for a random stream that is told apart by `key`."""
    return (
        int.from_bytes(hashlib.sha256("\0".join(map(str, key)).encode()).digest()[:8], "little")
        >> 1
    )
