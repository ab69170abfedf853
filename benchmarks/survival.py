"""What a kill costs, as a ratio within one run: `allot estimate` killed somewhere and resumed,
beside one left alone.

Every process is started from nothing, as a user would, and the CPU seconds of all of them are
counted, workers too: loading everything again is part of the price. It takes the same few seconds
however long a run is, so it is told apart from work that is done twice, and a run of half a minute,
cut as a long one is, says what longer ones cost. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import json
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
from allotment.campaign.jobs import TRAININGS_PER_JOB
from allotment.estimates.chunks import cut
from allotment.estimates.design import design
from allotment.estimates.response import run
from allotment.job import JSON
from allotment.ledger.store import Store
from allotment.machine import settled

ALLOT = [sys.executable, "-m", "allotment.cli"]
CUT = (
    "from allotment.campaign import jobs; jobs.LONG = {long}; from allotment.cli import main;"
    " main()"
)
"""the same where runs of more mini-batches are long"""
ROWS = 300
HERE = Path(__file__).absolute()
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
            style = (
                ("old", "new", "odd")[int(3 * min(0.99, age * rng.uniform(0.8, 1.2)))]
                if number % 3
                else ""
            )
            writer.writerow([f"{width:.3f}", f"{age:.3f}", floors, price, style])


def begin(name: str, trainings: int, steps: int) -> Path:
    costs = [
        "--targets",
        "price,style",
        "--cost",
        "price=1",
        "--cost",
        "style=5",
        "--budget",
        "200",
    ]
    command = [*ALLOT, "init", name, "--root", "table.csv", *costs, "--steps", str(steps)]
    subprocess.run(command, check=True, capture_output=True)
    path = Path(name, "campaign.toml")
    path.write_text(f"trainings = {trainings}\n{path.read_text()}")
    return Path(name)


def live(folder: str, workers: int, target: int, share: float, long: int) -> None:
    """Estimate to the end, killed once when so many trainings are on record and a share of the next
    job is done.

    Prints the CPU seconds that all of its processes took, and how many trainings were on record at
    the kill.
    """
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    allot, kept = [sys.executable, "-c", CUT.format(long=long)], 0
    command = [*allot, "estimate", folder, "--workers", str(workers)]
    if target:
        began = time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and look(Path(folder))[0] < target:
                time.sleep(0.1)
            time.sleep(share * (time.perf_counter() - began) / len(jobs_of(Path(folder))))
            process.kill()
        reap()
        kept = look(Path(folder))[0]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    reap()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([used.ru_utime + used.ru_stime, kept]))


def reap() -> None:
    """Wait for workers that outlived their parent by a moment."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def look(folder: Path) -> tuple[int, JSON]:
    """How many trainings are on record, and the estimates, if there are any."""
    with Store.open(folder, write=False) as store:
        latest = store.latest("estimates")
        return sum(jobs_of(folder)), None if latest is None else latest.body


def jobs_of(folder: Path) -> list[int]:
    """The trainings of each job on record."""
    with Store.open(folder, write=False) as store:
        return [
            last - first
            for _, needs, _ in store.results("response")
            for first, last in [needs["chunk"]]
        ]


def measure(workers: int, given: argparse.Namespace, start: float) -> bool:
    """Campaigns that are killed once, each beside one that is left alone at the same time, on the
    same machine."""
    rng, trainings, same = random.Random(workers), given.trainings, True
    extra: list[float] = []
    for number in range(given.kills):
        pair = [
            begin(f"{name}-{workers}-{number}", trainings, given.steps)
            for name in ("alone", "killed")
        ]
        target = rng.randint(trainings // 5, trainings * 4 // 5)
        wishes = [("0", "0", str(given.long)), (str(target), str(rng.random()), str(given.long))]
        sides = [
            subprocess.Popen(
                [sys.executable, str(HERE), "--live", str(folder), str(workers), *wish],
                stdout=subprocess.PIPE,
            )
            for folder, wish in zip(pair, wishes, strict=True)
        ]
        (alone, _), (killed, kept) = (json.loads(side.communicate()[0]) for side in sides)
        extra.append(killed / alone - 1)
        same = same and look(pair[0]) == look(pair[1])
        if not number:
            job = max(jobs_of(pair[0]))
            print(
                f"\n{workers} worker(s), {trainings} trainings in jobs of {job}, {alone:.0f} CPU s"
                " undisturbed"
            )
        print(
            f"  killed with {kept:3} trainings on record: {killed - alone:+5.1f} CPU s,"
            f" {extra[-1]:+.1%}",
            flush=True,
        )
    twice = min(workers * job, trainings)
    mean, again = statistics.mean(extra), start / alone
    print(
        f"  a kill costs {mean:.1%} of the run: loading again {again:.1%}, the rest"
        f" {mean - again:.1%}"
    )
    print(f"  at most {twice} trainings are done twice: {twice / trainings:.1%}")
    print(f"  the same estimates to the byte: {'yes' if same else 'NO'}")
    return same


def compare_stacks(steps: int) -> None:
    """What trainings cost in jobs of few instead of many, which is what cheap kills cost in
    speed."""
    campaign = Campaign(begin("stacks", 2 * TRAININGS_PER_JOB, steps))
    bench = campaign.set_up(campaign.look())
    chosen = cut(design(bench.labels, 2 * TRAININGS_PER_JOB, 0, 4), 0, TRAININGS_PER_JOB)
    best: dict[int, float] = {}
    for _ in range(3):
        for together in (TRAININGS_PER_JOB, 4, 2, 1):
            began = time.process_time()
            with settled():
                run(bench.learner, bench.labels, chosen, together=together, untrained=0)
            best[together] = min(best.get(together, float("inf")), time.process_time() - began)
    told = ", ".join(
        f"{together}: {used / best[TRAININGS_PER_JOB]:.2f}" for together, used in best.items()
    )
    print(f"CPU of a training by the size of its job, beside jobs of {TRAININGS_PER_JOB}: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trainings", type=int, default=60, help="of the estimate (60)")
    parser.add_argument("--steps", type=int, default=300, help="of each training (300)")
    parser.add_argument("--kills", type=int, default=4, help="each in a campaign of its own (4)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="N", help="(1 2)")
    parser.add_argument(
        "--long",
        type=int,
        default=0,
        metavar="N",
        help="mini-batches from which on a run is long (0)",
    )
    parser.add_argument("--live", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.live:
        folder, workers, target, share, long = given.live
        live(folder, int(workers), int(target), float(share), int(long))
        return
    with tempfile.TemporaryDirectory() as spare, contextlib.chdir(spare):
        write_table(Path("table.csv"))
        start = measure_start()
        print(f"a process loads for {start:.1f} CPU s")
        compare_stacks(100)
        same = [measure(workers, given, start) for workers in given.workers]
    sys.exit(0 if all(same) else 1)


def measure_start() -> float:
    """CPU seconds until a process has loaded what training needs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import torch, allotment.campaign.campaign"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
