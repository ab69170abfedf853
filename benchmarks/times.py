"""How long commands say that they will take, how long they take, and when the first word comes.

python benchmarks/times.py                       every case, about ten minutes on an idle machine
python benchmarks/times.py --tiny                few trainings of few steps, to see that it works
python benchmarks/times.py --only boosting       one of the cases; repeat it for others

Cases of `estimate`: the built-in perceptrons with four members on two and on four tasks, gradient
boosting, pictures through features of our own. After each of them `evaluate` and `train`, and at
the end `learners`, `init` and the quick demo. Each command is a process of its own whose output is
read as it comes. Told are the seconds until its first word, those that it predicts, those that
passed from there to its end, and the ratio of the two; a first word after more than 2 seconds, or
a ratio of more than 1.5 either way where 5 seconds or more were predicted or taken, makes the
benchmark fail. Run it while the machine does nothing else.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from codebase import ROOT
from pictures import write_pictures

MOST_FIRST_WORD = 2.0
MOST_RATIO = 1.5
WORTH_PREDICTING = 5.0
"""seconds; what is shorter is over before anybody asks"""
CASES = {
    "perceptrons, two tasks": ("a,b", ()),
    "perceptrons, four tasks": ("a,b,c,d", ()),
    "boosting": ("a,b", ("--learner", "sklearn:HistGradientBoosting")),
    "pictures": ("colour,side", ()),
}
"""what is measured: the tasks, and more options of `init`"""
UNITS = {"s": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_PREDICTED = r"about ([\d.]+) (s|seconds?|min|minutes?|h|hours?)\b"


@dataclass(frozen=True)
class Timing:
    """What one command said and took."""

    command: str
    first: float
    """seconds until its first word"""
    predicted: float | None
    """seconds; None where it predicted nothing"""
    taken: float
    """seconds from that word, or from the beginning, to the end"""

    @property
    def ratio(self) -> float | None:
        return None if not self.predicted else self.taken / self.predicted

    @property
    def faults(self) -> list[str]:
        found = []
        if self.first > MOST_FIRST_WORD:
            found.append(f"first word after {self.first:.1f} s")
        longest = max(self.taken, self.predicted or 0.0)
        if self.ratio is None or longest < WORTH_PREDICTING:
            return found
        if not 1 / MOST_RATIO <= self.ratio <= MOST_RATIO:
            found.append(f"took {self.ratio:.2f} times what it predicted")
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--only", action="append", choices=list(CASES), help="a case")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print("| | first word s | predicted s | took s | ratio |\n|---|---:|---:|---:|---:|")
    faults = []
    with tempfile.TemporaryDirectory() as name:
        for number, case in enumerate(given.only or CASES):
            folder = Path(name) / str(number)
            folder.mkdir()
            faults += measure_case(folder, case, given.tiny, given.workers)
        if not given.only and not given.tiny:
            demo = run(Path(name), "demo", "demo", "--quick", before="the demo takes ")
            faults += tell("demo", demo)
    if faults:
        sys.exit(f"beyond the limit: {'; '.join(faults)}")


def measure_case(folder: Path, case: str, tiny: bool, workers: int) -> list[str]:
    """Every command of one case in turn; what was wrong with them."""
    targets, more = CASES[case]
    write_data(folder, case, tiny)
    costs = [part for name in targets.split(",") for part in ("--cost", f"{name}=1")]
    options = ("--targets", targets, *costs, "--budget", "100", *more)
    if tiny and not more:
        options += ("--steps", "10")
    faults = tell(f"{case}: init", run(folder, "init", "campaign", "--root", "list.csv", *options))
    settings = folder / "campaign" / "campaign.toml"
    if tiny:
        settings.write_text(settings.read_text().replace("seed = 0", "seed = 0\ntrainings = 4", 1))
    count = ("--workers", str(workers))
    faults += tell(f"{case}: estimate", run(folder, "estimate", "campaign", *count))
    faults += tell(f"{case}: evaluate", run(folder, "evaluate", "campaign", *count))
    faults += tell(f"{case}: train", run(folder, "train", "campaign"))
    if case != "pictures":
        faults += tell(f"{case}: learners", run(folder, "learners", "campaign"))
    return faults


def tell(what: str, timing: Timing) -> list[str]:
    predicted = "" if timing.predicted is None else f"{timing.predicted:.0f}"
    ratio = "" if timing.ratio is None else f"{timing.ratio:.2f}"
    cells = [what, f"{timing.first:.2f}", predicted, f"{timing.taken:.1f}", ratio]
    print(f"| {' | '.join(cells)} |", flush=True)
    return [f"{what}: {fault}" for fault in timing.faults]


def run(folder: Path, *args: str, before: str = "") -> Timing:
    """A command with its output as it comes; `before` are the words of its prediction."""
    pattern = re.compile(before + _PREDICTED)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "allotment.cli", *args]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    first, predicted, since, said = None, None, began, b""
    while piece := os.read(process.stdout.fileno(), 4096):
        now, said = time.perf_counter(), said + piece
        first = now - began if first is None else first
        if predicted is None and (found := pattern.search(said.decode(errors="replace"))):
            predicted, since = float(found[1]) * UNITS[found[2].removesuffix("s") or "s"], now
    ended = time.perf_counter()
    if process.wait():
        sys.exit(f"allot {' '.join(args)} failed:\n{said.decode(errors='replace')}")
    return Timing(args[0], ended - began if first is None else first, predicted, ended - since)


def write_data(folder: Path, case: str, tiny: bool) -> None:
    """Pictures, or a table with four targets of which every second to fifth row has a label."""
    if case == "pictures":
        write_pictures(folder, 40 if tiny else 200, 32 if tiny else 64)
        return
    rng = np.random.default_rng(0)
    rows = 120 if tiny else 1500
    features = rng.normal(size=(rows, 12))
    weights = rng.normal(size=(12, 4)) / 3
    values = np.tanh(features @ weights) + rng.normal(scale=0.2, size=(rows, 4))
    lines = [",".join([*(f"x{number}" for number in range(12)), "a", "b", "c", "d"])]
    for number in range(rows):
        cells = [f"{each:.4f}" for each in features[number]]
        a, b, c, d = (f"{each:.4f}" for each in values[number])
        labels = [a, "high" if float(b) > 0 else "low", c, "yes" if float(d) > 0 else "no"]
        cells += [label if number % (k + 2) == 0 else "" for k, label in enumerate(labels)]
        lines.append(",".join(cells))
    (folder / "list.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
