"""What a kill costs, as a ratio within one run: `allot estimate` killed somewhere and resumed, beside one left alone.

Every process is started from nothing, as a user would, and the CPU seconds of all of them are counted, workers too:
loading everything again is part of the price. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from allotment.campaign.campaign import Campaign
from allotment.campaign.jobs import CHUNK, size_of
from allotment.campaign.store import Store
from allotment.campaign.work import cut, one_thread
from allotment.estimates.design import design
from allotment.estimates.response import run
from allotment.job import JSON

ALLOT = [sys.executable, "-m", "allotment.cli"]
ROWS = 300
SUBREAPER = 36
"""prctl's number for: orphans of this process's children are its own children"""


def write_table(path: Path) -> None:
    """Three features and two targets that follow from them, most of them not labelled yet."""
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["width", "age", "floors", "price", "style"])
        for number in range(ROWS):
            width, age, floors = rng.random(), rng.random(), rng.randint(1, 4)
            price = f"{width * floors - age + rng.gauss(0, 0.2):.3f}" if number % 2 else ""
            style = ("old", "new", "odd")[int(3 * min(0.99, age * rng.uniform(0.8, 1.2)))] if number % 3 else ""
            writer.writerow([f"{width:.3f}", f"{age:.3f}", floors, price, style])


def begin(name: str, trainings: int, steps: int) -> Path:
    costs = ["--targets", "price,style", "--cost", "price=1", "--cost", "style=5", "--budget", "200"]
    command = [*ALLOT, "init", name, "--root", "table.csv", *costs, "--steps", str(steps)]
    subprocess.run(command, check=True, capture_output=True)
    path = Path(name, "campaign.toml")
    path.write_text(f"trainings = {trainings}\n{path.read_text()}")
    return Path(name)


def use(command: list[str], until: float | None = None) -> tuple[float, float]:
    """CPU seconds and seconds of a command and all of its processes; it is killed when its time is over."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(until)
        except subprocess.TimeoutExpired:
            process.kill()
    seconds = time.perf_counter() - began
    with contextlib.suppress(ChildProcessError):  # workers that outlived it by a moment
        while True:
            os.waitpid(-1, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


def estimate(folder: Path, workers: int, until: float | None = None) -> tuple[float, float]:
    return use([*ALLOT, "estimate", str(folder), "--workers", str(workers)], until)


def look(folder: Path) -> tuple[int, JSON]:
    """How many trainings are on record, and the estimates, if there are any."""
    with Store.open(folder, write=False) as store:
        latest = store.latest("estimates")
        kept = sum(last - first for _, needs, _ in store.results("response") for first, last in [needs["chunk"]])
        return kept, None if latest is None else latest.body


def measure(workers: int, trainings: int, steps: int, kills: int, start: float) -> bool:
    """Kills in campaigns of their own, between two that are left alone; whether all came to the same."""
    rng, extra, same = random.Random(workers), [], True
    first = begin(f"first-{workers}", trainings, steps)
    alone, seconds = estimate(first, workers)
    killed = []
    for number in range(kills):
        folder = begin(f"killed-{workers}-{number}", trainings, steps)
        before, _ = estimate(folder, workers, until=rng.uniform(0.2, 0.8) * seconds)
        kept, _ = look(folder)
        after, _ = estimate(folder, workers)
        killed.append((kept, before + after))
        same = same and look(folder) == look(first)
    last = begin(f"last-{workers}", trainings, steps)
    whole = (alone + estimate(last, workers)[0]) / 2
    same = same and look(last) == look(first)
    campaign = Campaign(first)
    job = max(map(size_of, campaign.list_jobs(campaign.look())))
    print(f"\n{workers} worker(s), {trainings} trainings in jobs of {job}: {whole:.0f} CPU s undisturbed")
    for kept, used in killed:
        extra.append(used / whole - 1)
        print(f"  killed with {kept:3} trainings on record: {used - whole:+.1f} CPU s, {extra[-1]:+.1%}")
    spread = statistics.stdev(extra) if len(extra) > 1 else float("nan")
    print(f"  a kill costs {statistics.mean(extra):.1%} of the run (± {spread:.1%} from kill to kill)")
    twice = min(workers * job, trainings)
    print(f"  loading again is {start / whole:.1%}; at most {twice} trainings are done twice, {twice / trainings:.1%}")
    print(f"  the same estimates to the byte: {'yes' if same else 'NO'}")
    return same


def compare_stacks(steps: int) -> None:
    """What trainings cost in jobs of few instead of many, which is what cheap kills cost in speed."""
    campaign = Campaign(begin("stacks", 2 * CHUNK, steps))
    bench = campaign.set_up(campaign.look())
    chosen = cut(design(bench.labels, 2 * CHUNK, 0, 4), 0, CHUNK)
    best: dict[int, float] = {}
    for _ in range(3):
        for together in (CHUNK, 4, 2, 1):
            began = time.process_time()
            with one_thread():
                run(bench.learner, bench.labels, chosen, together=together, untrained=0)
            best[together] = min(best.get(together, float("inf")), time.process_time() - began)
    told = ", ".join(f"{together}: {used / best[CHUNK]:.2f}" for together, used in best.items())
    print(f"CPU of a training by the size of its job, beside jobs of {CHUNK}: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainings", type=int, default=60, help="of the estimate (60)")
    parser.add_argument("--steps", type=int, default=1000, help="of each training (1000)")
    parser.add_argument("--kills", type=int, default=4, help="each in a campaign of its own (4)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="N", help="(1 2)")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as spare, contextlib.chdir(spare):
        write_table(Path("table.csv"))
        start, _ = use([sys.executable, "-c", "import torch, allotment.campaign.campaign"])
        print(f"a process loads for {start:.1f} CPU s")
        compare_stacks(100)
        same = [measure(workers, given.trainings, given.steps, given.kills, start) for workers in given.workers]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
