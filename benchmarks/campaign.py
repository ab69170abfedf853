"""What commands take on a campaign with a large table, each as a process of its own.

python benchmarks/campaign.py                    what is here
python benchmarks/campaign.py --at 14fad92       and what it took at a commit, in the same run

The table has 16 numbers, two texts and two targets in each row, most of them not labelled yet. The
method is `neutral`, so that nothing trains. Each command is run on a fresh copy of a campaign,
commits in turn, and the medians of CPU seconds and of peak memory are told. Linux or macOS.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from codebase import ROOT, check_out

ROWS = 100_000
COMMANDS = (
    ("status", "campaign"),
    ("plan", "campaign"),
    ("plan again", "planned"),
    ("order", "planned"),
    ("status after it", "ordered"),
    ("report after it", "ordered"),
)
"""each with the state of the campaign that it begins with"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at", help="a commit to compare with")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=5, help="of each command")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {"here": ROOT / "src"}
        if given.at:
            (folder / "then").mkdir()
            sources = {given.at: check_out(given.at, folder / "then") / "src"} | sources
        write_table(folder / "table.csv", given.rows)
        for source in sources.values():
            make_states(folder, source)  # also so that every module is compiled
        print(f"{given.rows:,} rows, {(folder / 'table.csv').stat().st_size / 10**6:.0f} MB of CSV")
        print(f"| | {' | '.join(f'{each}: CPU s, MB' for each in sources)} | ratio |")
        print(f"|---|{'---:|' * (len(sources) + 1)}")
        for command in COMMANDS:
            print(compare(folder, sources, *command, given.runs), flush=True)


def compare(folder: Path, sources: dict[str, Path], name: str, state: str, runs: int) -> str:
    """A line of the table."""
    taken: dict[str, list[tuple[float, float]]] = {each: [] for each in sources}
    for _ in range(runs):
        for each, source in sources.items():
            shutil.rmtree(folder / "copy", ignore_errors=True)
            shutil.copytree(folder / state, folder / "copy")
            taken[each].append(run(folder, source, name.split()[0], "copy"))
    medians = [[statistics.median(each) for each in zip(*taken[s], strict=True)] for s in sources]
    cells = [f"{seconds:.2f}, {memory:.0f}" for seconds, memory in medians]
    return f"| `{name}` | {' | '.join(cells)} | {medians[0][0] / medians[-1][0]:.1f} |"


def make_states(folder: Path, source: Path) -> None:
    """A campaign as it is after `init`, after `plan` and after `order`."""
    for state in ("campaign", "planned", "ordered"):
        shutil.rmtree(folder / state, ignore_errors=True)
    costs = ["--targets", "price,style", "--cost", "price=1", "--cost", "style=20"]
    more = ["--root", "table.csv", "--budget", "5000", "--method", "neutral"]
    run(folder, source, "init", "campaign", *costs, *more)
    for before, verb, after in (("campaign", "plan", "planned"), ("planned", "order", "ordered")):
        shutil.copytree(folder / before, folder / after)
        run(folder, source, verb, after)


def run(folder: Path, source: Path, *args: str) -> tuple[float, float]:
    """CPU seconds and peak MB of a command."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "allotment.cli", *args]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, args
    unit = 1 if sys.platform == "darwin" else 1024
    return used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 10**6


def write_table(path: Path, rows: int) -> None:
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{place}" for place in range(16)), "town", "note", "price", "style"])
        for row in range(rows):
            numbers = [f"{rng.gauss(0, 1):.4f}" for _ in range(16)]
            texts = [rng.choice("abcdefgh"), f"lot {rng.randrange(9999)}"]
            price = f"{rng.gauss(0, 1):.3f}" if row % 50 == 0 else ""
            style = rng.choice(("old", "new")) if row % 40 == 0 else ""
            writer.writerow([*numbers, *texts, price, style])


if __name__ == "__main__":
    main()
