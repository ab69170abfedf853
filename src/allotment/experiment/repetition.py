"""Trainings on record, done once more: whether the same figures come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allotment.experiment.casebook import Casebook
from allotment.experiment.exhibit import Exhibit
from allotment.experiment.outcomes import Outcomes
from allotment.experiment.record import Record
from allotment.experiment.work import (
    MACHINE_KIND,
    PERFORM_EXPERIMENT,
    TRAINING_JOB,
    Site,
    list_trees,
    name_machine,
)
from allotment.formatting import several
from allotment.job import JSON, Job
from allotment.progress import Progress
from allotment.runs.portion import Portion
from allotment.runs.runner import find_runner, run_jobs

CAME_SAME, CAME_CLOSE, CAME_DIFFERENT = "same", "close", "different"
SEEDS_APART = 3.0
"""standard deviations between two trainings with different seeds that count as close"""


@dataclass(frozen=True)
class Repetition:
    """A training beside what is on record of it."""

    job: Job
    before: JSON
    after: JSON
    tolerance: Mapping[str, float]
    """of each task's metric: what another seed makes of it, where that is known"""
    is_promised: bool
    """whether it was done on this kind of CPU, with the same versions: then no digit may differ"""

    @property
    def verdict(self) -> str:
        if all(self.before[key] == self.after[key] for key in ("metrics", "losses")):
            return CAME_SAME
        metrics = self.before["metrics"]
        near = [
            self._is_near(task, value, self.after["metrics"][task])
            for task, value in metrics.items()
        ]
        return CAME_CLOSE if all(near) else CAME_DIFFERENT

    def _is_near(self, task: str, before: float | None, after: float | None) -> bool:
        if before is None or after is None:
            return before == after
        return abs(before - after) <= self.tolerance.get(task, 0.0)

    @property
    def is_right(self) -> bool:
        """Whether it came out as promised: on another kind of CPU sums are rounded in another
        order, and trainings make more of that."""
        return self.verdict == CAME_SAME or (self.verdict == CAME_CLOSE and not self.is_promised)

    def __str__(self) -> str:
        needs = self.job.needs
        where = f"seed set {needs['seed_set']}, purchase {needs['purchase']}"
        labels = ", ".join(f"{count} {task}" for task, count in needs["counts"].items())
        after = "; ".join(
            f"{task} {self.after['metrics'][task]}"
            + ("" if value == self.after["metrics"][task] else f", on record {value}")
            for task, value in self.before["metrics"].items()
        )
        return f"{self.verdict:<9}  {where}, {labels}: {after}"


def draw_trainings(exhibits: Sequence[Exhibit], book: Casebook, count: int) -> list[Job]:
    """Some of the trainings that exhibits show and that are on record, by chance."""
    jobs = dict.fromkeys(job for each in exhibits for job in each.list_trainings(book))
    known = [job for job in jobs if job.kind == TRAINING_JOB and book.record.has(job)]
    order = np.random.default_rng().permutation(len(known))
    return [known[place] for place in order[:count]]


def repeat(
    jobs: Sequence[Job],
    site: Site,
    record: Record,
    *,
    workers: int | None = None,
    on: str | None = None,
    portion: Portion | None = None,
    progress: Progress | None = None,
) -> list[Repetition]:
    """Do trainings once more, and put nothing on record."""
    after: dict[Job, JSON] = {}
    run_jobs(
        jobs, PERFORM_EXPERIMENT, site.to_dict(), runner=find_runner(on, portion), workers=workers,
        done=after.__setitem__, progress=progress, trees=list_trees(site),
    )  # fmt: skip
    tolerance = find_tolerance(Outcomes(site.case, record))
    machines = [needs for needs, _ in record.list_results(MACHINE_KIND)]
    here = name_machine(site.case, on)
    is_known = machines == [here.needs] and here.needs["device"] == "cpu" and on is None
    return [
        Repetition(
            job,
            record.get(job.kind, job.needs),
            after[job],
            tolerance,
            is_promised=is_known and record.find_versions(job) == job.versions,
        )
        for job in jobs
    ]


def find_tolerance(outcomes: Outcomes) -> dict[str, float]:
    """How far apart trainings on the labels at hand are that differ in nothing but their seed, of
    each task whose metric is known."""
    scores = outcomes.find_scores(outcomes.nothing)
    rows = scores[np.isfinite(scores).all(axis=(1, 2))]
    if not len(rows) or rows.shape[1] == 1:
        return {}
    apart = np.sqrt(2 * rows.var(axis=1, ddof=1).mean(axis=0))
    reach = (SEEDS_APART * apart).tolist()
    return dict(zip(outcomes.case.tasks, reach, strict=True))


def judge_all(found: Sequence[Repetition]) -> str:
    """In a sentence: how many came out as they were, and what may be the cause of the others."""
    counts = {
        kind: sum(each.verdict == kind for each in found)
        for kind in (CAME_SAME, CAME_CLOSE, CAME_DIFFERENT)
    }
    told = [f"{counts[CAME_SAME]} of {several(len(found), 'training')} came out the same"]
    if counts[CAME_CLOSE]:
        told.append(f"{counts[CAME_CLOSE]} no further off than with another seed")
    if counts[CAME_DIFFERENT]:
        told.append(f"{counts[CAME_DIFFERENT]} different")
    if counts[CAME_SAME] == len(found):
        return f"{told[0]}, to the last digit on record."
    why = "the record is of another kind of CPU, of several, or of other versions"
    if any(each.is_promised and each.verdict != CAME_SAME for each in found):
        why = "the record is of this kind of CPU and these versions, so that no digit should differ"
    return f"{', '.join(told)}; {why}."
