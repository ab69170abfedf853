"""Trainings by a design, in chunks that can be done anywhere, and the response that they add up
to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from allotment.data.labels import Labels
from allotment.estimates.design import Design, design
from allotment.estimates.method import Method, Plain
from allotment.estimates.request import Request, Work
from allotment.estimates.response import UNTRAINED, Response, run


@dataclass(frozen=True, eq=False)
class Chunk(Design):
    """Some trainings of a design, with the seeds that they have in it."""

    first: int = 0

    @property
    def seeds(self) -> list[int]:
        return [self.seed + self.first + number for number in range(len(self))]


def cut(whole: Design, first: int, last: int) -> Chunk:
    """The trainings from `first` up to `last`."""
    return Chunk(
        whole.tasks,
        whole.counts[first:last],
        whole.fold[first:last],
        whole.seed,
        whole.folds,
        first,
    )


class InChunks(Method):
    """A method that trains by a design; how it concludes from the response is its own."""

    kind = "response"

    def weigh(self, request: Request) -> Work:
        chosen = request.once(design_for)
        steps = mini_batches = 0
        for counts in chosen.counts.tolist():
            few = {
                task: request.labels[task].instances[:count]
                for task, count in zip(chosen.tasks, counts, strict=True)
            }
            here = request.learner.steps(Labels(few))
            steps += here
            mini_batches += here * sum(count > 0 for count in counts)
        scores = (len(chosen) + UNTRAINED) * len(chosen.tasks)
        return Work(len(chosen), steps, mini_batches, scores)

    def jobs(self, request: Request) -> list[Plain]:
        total = request.trainings
        size = request.per_job or max(total, 1)
        firsts = range(0, max(total, 1), size)
        return [{"chunk": [first, min(first + size, total)]} for first in firsts]

    def do(self, request: Request, job: Plain) -> Plain:
        first, last = job["chunk"]
        chunk = cut(request.once(design_for), first, last)
        stack = {key: request.options[key] for key in ("together",) if key in request.options}
        return run(
            request.learner,
            request.labels,
            chunk,
            lambda done, total: request.tell(done, total, "response"),
            untrained=0 if first else UNTRAINED,  # once for all chunks of a design
            **stack,
        ).to_dict()


def design_for(request: Request) -> Design:
    """The trainings of all chunks."""
    return design(request.labels, request.trainings, request.seed, request.folds)


def join_chunks(results: Sequence[Plain]) -> Response:
    """The response of a whole design from those of its chunks, in their order."""
    parts = [Response.from_dict(each) for each in results]
    first = parts[0]
    arrays = [
        each.name for each in fields(Response) if isinstance(getattr(first, each.name), np.ndarray)
    ]
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in arrays
        if name not in ("untrained", "constant")  # which the first chunk has for all
    }
    # a chunk whose folds have no label of a task can't say which way its metric points, and says
    # higher
    higher = tuple(map(all, zip(*(part.higher_is_better for part in parts), strict=True)))
    return replace(first, **joined, higher_is_better=higher)  # type: ignore[arg-type]
