"""What an engine costs: jobs of a campaign on Ray, on local processes and bare, in one run.

A job is a training of two seconds or so, or next to nothing. Bare is the same jobs in this process,
one after the other. What the engine adds is told twice: by the time of a run less that which its
jobs say they took, since other programs slow both down alike, and by a run with one worker beside
the bare one, which has all that Ray does to jobs in it as well. The best of some rounds counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from allotment.campaign.campaign import Campaign
from allotment.campaign.starting import settle_machine
from allotment.campaign.work import PERFORM, make_context
from allotment.job import JSON, Job
from allotment.runs import flights
from allotment.runs.runner import Runner, find_runner, run_jobs
from allotment.settings.template import write_template

TINY_WORK = "allotment.runs.conformance:count"
TINY_JOBS = 10_000
FEW_JOBS, ROUNDS = 4, 3
STEPS = 100
MOST_OVERHEAD = 0.05
"""of a training of 2 s and more"""


class Bench:
    """Trainings of a campaign, and how long so many of them take on a runner."""

    def __init__(self, folder: Path):
        data = {"name": "scenes", "count": 400, "size": 32, "seed": 0, "by_colour": True}
        tasks = {name: {"cost": 1, "have": 60} for name in ("classes", "depth", "normals", "edges")}
        training = {"network": "usual", "steps": STEPS, **settle_machine()}
        text = write_template(data, tasks, "100", "response", training, 12)
        campaign = Campaign.create(folder / "campaign", text)
        state = campaign.look()
        kept = state.as_kept
        self.context = make_context(kept.settings, kept.stock, kept.settings.learner)
        self.jobs = campaign.list_jobs(state)

    def time_overhead(self, runner: Runner) -> float:
        """What the engine adds to each second of jobs that are done one after the other."""
        took: list[float] = []
        read = flights.read_done

        def listen(text: str) -> tuple[str, float, JSON]:
            found = read(text)
            took.append(found[1])
            return found

        flights.read_done = listen
        try:
            wall = self.time(runner, 1)
        finally:
            flights.read_done = read
        return wall / sum(took) - 1

    def time(self, runner: Runner, workers: int, jobs: list[Job] | None = None) -> float:
        seen: list[JSON] = []
        jobs = self.jobs[:FEW_JOBS] if jobs is None else jobs
        begun = time.perf_counter()
        run_jobs(
            jobs,
            PERFORM,
            self.context,
            runner=runner,
            workers=workers,
            done=lambda _, body: seen.append(body),
        )
        assert len(seen) == len(jobs)
        return time.perf_counter() - begun


def time_tiny(runner: Runner) -> float:
    jobs = [Job("count", {"n": n}) for n in range(TINY_JOBS)]
    seen: list[JSON] = []
    begun = time.perf_counter()
    run_jobs(
        jobs, TINY_WORK, None, runner=runner, workers=2, done=lambda _, body: seen.append(body)
    )
    assert seen == list(range(TINY_JOBS))
    return time.perf_counter() - begun


def main() -> None:
    names = ("here", "processes", "ray")
    runners: dict[str, Any] = {name: find_runner(name) for name in names}
    begun = time.perf_counter()
    runners["ray"].count_workers()
    print(f"Ray starts in {time.perf_counter() - begun:.1f} s.")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for name in names:  # workers load torch and open the data
            bench.time(runners[name], 2, bench.jobs[:2])
        bench.time(runners["here"], 1, bench.jobs[:1])
        rounds = [
            {
                "bare": bench.time(runners["here"], 1),
                "ray, 1 worker": bench.time(runners["ray"], 1),
                "ray, 2 workers": bench.time(runners["ray"], 2),
            }
            for _ in range(ROUNDS)
        ]
        overhead = min(bench.time_overhead(runners["ray"]) for _ in range(ROUNDS))
    best = {key: min(each[key] for each in rounds) for key in rounds[0]}
    speedup = best["ray, 1 worker"] / best["ray, 2 workers"]
    for key, seconds in best.items():
        print(f"{key}: {FEW_JOBS} trainings in {seconds:.1f} s, {seconds / FEW_JOBS:.2f} s each")
    beside_bare = best["ray, 1 worker"] / best["bare"] - 1
    print(f"overhead of Ray: {overhead:.1%} of a training, at most {MOST_OVERHEAD:.0%}")
    print(f"one of its workers beside none: {beside_bare:+.1%}, at most {MOST_OVERHEAD:.0%}")
    print(f"two workers are {speedup:.2f} times as fast as one")
    tiny = {name: time_tiny(runners[name]) for name in names}
    for name, seconds in tiny.items():
        rate = TINY_JOBS / seconds
        print(f"{TINY_JOBS:,} tiny jobs on {name}: {seconds:.1f} s, {rate:,.0f} a second")
    sys.exit(max(overhead, beside_bare) > MOST_OVERHEAD)


if __name__ == "__main__":
    main()
