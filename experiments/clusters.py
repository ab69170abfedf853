"""How much of the work a bigger cluster can share: jobs of a campaign are done and timed here,
those of the paper's experiments are reckoned, and both are dealt out to 1, 8, 64 and 512 workers.

A worker takes the longest job that is left, as the runners do; nobody begins to train plans before
methods have measured. Seconds are those of the CPU, so that other programs do not count. It writes
the tables of docs/cluster.md.
"""

from __future__ import annotations

import heapq
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from allotment.campaign.campaign import Campaign
from allotment.campaign.starting import settle_machine
from allotment.campaign.work import PERFORM, make_context
from allotment.experiment.case import find_case
from allotment.experiment.exhibit import list_exhibits
from allotment.experiment.outlay import SPEEDS, list_seconds, weigh
from allotment.experiment.record import Record
from allotment.runs.execution import execute, write_common, write_job
from allotment.settings.template import write_template

WORKERS = (1, 8, 64, 512)
ROUND_TRIP = 0.005
"""seconds that a job takes on its way, as benchmarks/clusters.py measures on Ray"""
TASKS = ("classes", "segmentation", "depth", "normals", "edges", "keypoints")
STEPS, TRAININGS = 15, 12


def simulate(seconds: Sequence[float], workers: int) -> float:
    """When the last job is done, where each worker takes the longest that is left."""
    free = [0.0] * workers
    for each in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + each + ROUND_TRIP)
    return max(free)


def time_jobs(tasks: Sequence[str], have: int, trainings: int) -> list[float]:
    """CPU seconds of each job of an estimate on the built-in scenes."""
    data = {"name": "scenes", "count": 600, "size": 32, "seed": 0, "by_colour": True}
    listed = {name: {"cost": 1, "have": have} for name in tasks}
    training = {"network": "usual", "steps": STEPS, **settle_machine()}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "campaign"
        text = write_template(data, listed, "100", "response", training, trainings)
        campaign = Campaign.create(place, text)
        state = campaign.look()
        kept = state.as_kept
        context = make_context(kept.settings, kept.stock, kept.settings.learner)
        jobs, common = campaign.list_jobs(state), write_common(PERFORM, context)
        execute(common, write_job(jobs[0]))  # whatever is read and loaded once
        found = []
        for job in jobs:
            begun = time.process_time()
            reply = execute(common, write_job(job))
            found.append(time.process_time() - begun)
            assert reply.startswith('{"body"'), reply
    return found


def show_growth() -> list[float]:
    """How the work grows; the seconds of the largest one's jobs."""
    print("| tasks | labels of each | trainings | jobs | CPU seconds | of a job |")
    print("|---|---|---|---|---|---|")
    found: list[float] = []
    for count, have, trainings in (
        (2, 40, TRAININGS),
        (6, 40, TRAININGS),
        (6, 120, TRAININGS),
        (6, 40, 2 * TRAININGS),
    ):
        found = time_jobs(TASKS[:count], have, trainings)
        each = f"{min(found):.2f} to {max(found):.2f}"
        print(f"| {count} | {have} | {trainings} | {len(found)} | {sum(found):.1f} | {each} |")
    return found


def show_shares(rows: dict[str, tuple[Sequence[float], ...]]) -> None:
    """Hours, and how many times as fast as one worker."""
    print("| work | " + " | ".join(f"{each} workers" for each in WORKERS) + " |")
    print("|---|" + "---|" * len(WORKERS))
    for name, stages in rows.items():
        alone = sum(simulate(stage, 1) for stage in stages)
        cells = []
        for count in WORKERS:
            takes = sum(simulate(stage, count) for stage in stages if stage)
            cells.append(f"{_spell(takes)} ({alone / takes:.0f}x)")
        print(f"| {name} | {' | '.join(cells)} |")


def _spell(seconds: float) -> str:
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 3600:,.0f} h"


def main() -> None:
    timed = show_growth()
    sixty = [timed[place % len(timed)] for place in range(60)]
    rows: dict[str, tuple[Sequence[float], ...]] = {"an estimate of 60 such trainings": (sixty,)}
    print()
    for data, title in (("voc", "VOC"), ("taskonomy", "Taskonomy")):
        case = find_case(data, "full")
        exhibits = [each for each in list_exhibits().values() if each.data == data]
        toil = list_seconds(exhibits, case, Record(""))
        outlay = weigh(exhibits, case, Record(""))
        print(f"{title}: {outlay}.", file=sys.stderr)
        hours = f"{outlay.hours:,.0f} GPU-hours, ${outlay.dollars:,.0f}"
        rows[f"all of the paper's {title} ({hours})"] = toil.measured, toil.trained
        assert SPEEDS[case.setup] == outlay.speed
    show_shares(rows)


if __name__ == "__main__":
    main()
