"""What commands take on a campaign with a wide table, each as a process of its own.

python benchmarks/wide_table.py                  100,000 rows, 200 columns
python benchmarks/wide_table.py --no-estimate    without the trainings, whose memory is measured
python benchmarks/wide_table.py --at 3813305     as it was at that commit

The table is a CSV file of 140 MB: numbers, whole numbers, categories, some of them with commas and
so in quotes, a date with its time, and three targets, most of them not labelled yet. It is in the
memory of the machine when it is read. Wall and CPU seconds of each command are told, the least of
some runs, and the peak memory of `estimate` with all of its processes. A figure above its limit
makes the benchmark fail: 3 seconds for each command, 2 GB for `estimate`. Wall seconds are held to
it, since these are what somebody waits, so it takes an idle machine; the load is told. Linux.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from codebase import ROOT, check_out

ROWS, NUMBERS, WHOLE, CATEGORIES = 100_000, 180, 10, 6
MOST_SECONDS = 3.0
MOST_MEMORY = 2000.0
"""MB"""
TARGETS = {"price": "1", "style": "2", "grade": "3"}
"""with their prices"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3, help="of each command")
    parser.add_argument("--no-estimate", action="store_true")
    parser.add_argument("--at", help="a commit whose code is measured")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = check_out(given.at, folder / "code") if given.at else ROOT
        os.environ["PYTHONPATH"] = str(root / "src")
        write_table(folder / "table.csv", given.rows)
        size = (folder / "table.csv").stat().st_size / 10**6
        print(f"{given.rows:,} rows, {NUMBERS + WHOLE + CATEGORIES + 4} columns, {size:.0f} MB")
        print(f"{describe_machine()}, load {load:.1f} before\n")
        print("| | wall s | CPU s |\n|---|---:|---:|")
        slow = [each for each in list_commands(given.runs, folder) if each]
        memory = 0.0 if given.no_estimate else estimate(folder)
    if slow or memory > MOST_MEMORY:
        busy = "; the machine was busy, so run it again" if load > 0.5 else ""
        sys.exit(f"above the limit: {', '.join(slow) or 'memory'}{busy}")


def describe_machine() -> str:
    """Date, processor and Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    machine = f"{os.cpu_count()} cores ({named[0] if named else platform.machine()})"
    return f"{datetime.now():%Y-%m-%d}, {machine}, Python {platform.python_version()}"


def list_commands(runs: int, folder: Path) -> list[str]:
    """Every command of a round in turn; the names of those that take too long."""
    costs = [part for name, cost in TARGETS.items() for part in ("--cost", f"{name}={cost}")]
    more = ["--targets", ",".join(TARGETS), "--budget", "300", "--method", "neutral", *costs]
    fill = folder / "filled.csv"
    steps = [
        ("init", "", ("init", "copy", "--root", "table.csv", *more)),
        ("status", "init", ("status", "copy")),
        ("plan", "init", ("plan", "copy")),
        ("order", "plan", ("order", "copy", "-o", str(fill))),
        ("ingest", "order", ("ingest", "copy", str(fill))),
        ("status after it", "ingest", ("status", "copy")),
    ]
    slow = []
    for name, before, command in steps:
        taken = []
        for _ in range(runs):
            shutil.rmtree(folder / "copy", ignore_errors=True)
            if before:
                shutil.copytree(folder / before, folder / "copy")
            if name == "order":
                fill.unlink(missing_ok=True)
            taken.append(run(folder, *command))
        shutil.copytree(folder / "copy", folder / name)
        if name == "order":
            fill_in(fill)
        wall, cpu = (min(each) for each in zip(*taken, strict=True))
        print(f"| `{name}` | {wall:.2f} | {cpu:.2f} |", flush=True)
        slow.append(name if wall > MOST_SECONDS else "")
    return slow


def run(folder: Path, *args: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    process, began = begin(folder, *args), time.perf_counter()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, args
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def begin(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "allotment.cli", *args]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def estimate(folder: Path) -> float:
    """Peak MB of a short estimate with two workers, all of its processes together; and what
    commands take that come after it."""
    shutil.rmtree(folder / "copy", ignore_errors=True)
    shutil.copytree(folder / "ingest", folder / "copy")
    settings = folder / "copy" / "campaign.toml"
    text = settings.read_text().replace('method = "neutral"', 'method = "response"\ntrainings = 8')
    text = text.replace("steps = 300", "steps = 20").replace("budget = 300", "budget = 3000")
    settings.write_text(text)
    process, began, peak = begin(folder, "estimate", "copy", "--workers", "2"), time.time(), 0.0
    while process.poll() is None:
        peak = max(peak, count_memory(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0
    print(f"| `estimate`, 8 short trainings | {time.time() - began:.1f} | peak {peak:.0f} MB |")
    for name in ("status", "plan"):
        wall, cpu = run(folder, name, "copy")
        print(f"| `{name}` after it | {wall:.2f} | {cpu:.2f} |", flush=True)
    return peak


def count_memory(root: int) -> float:
    """MB that a process and all that it began hold; what they share counts once."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    family, total = {root}, 0
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    for pid in family:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 / 10**6


def fill_in(path: Path) -> None:
    """A label in every row of a sheet."""
    head, *rows = path.read_text().splitlines()
    task = head.split(",").index("task")
    labels = {"price": "1.5", "style": "old", "grade": "0.5"}
    filled = [f"{row.rstrip(',')},{labels[row.split(',')[task]]}" for row in rows]
    path.write_text("\n".join([head, *filled]) + "\n")


def write_table(path: Path, rows: int) -> None:
    rng, first = np.random.default_rng(1), datetime(2020, 1, 1)
    names = [f"x{place}" for place in range(NUMBERS)] + [f"k{place}" for place in range(WHOLE)]
    names += [f"c{place}" for place in range(CATEGORIES)]
    with path.open("w") as file:
        file.write(",".join([*names, "seen", *TARGETS]) + "\n")
        for row in range(rows):
            x = rng.normal(size=NUMBERS)
            cells = [f"{each:.4f}" for each in x]
            cells += map(str, rng.integers(0, 1000, WHOLE))
            letters = ["abcdefgh"[each] for each in rng.integers(0, 8, CATEGORIES)]
            cells += [*letters[:-1], f'"{letters[-1]}, Mr"' if row % 3 else letters[-1]]
            cells.append(f"{first + timedelta(hours=row):%Y-%m-%d %H:%M}")
            cells.append(f"{2 * x[0] + x[1]:.3f}" if row % 200 == 0 else "")
            style = "old" if x[2] + x[3] > 0 else "new"
            cells.append(style if row % 150 == 0 else "")
            cells.append(f"{x[3] - x[4]:.2f}" if row % 100 == 0 else "")
            file.write(",".join(cells) + "\n")


if __name__ == "__main__":
    main()
