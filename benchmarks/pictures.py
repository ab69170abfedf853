"""What a campaign about pictures that a table names takes, each command as a process of its own.

python benchmarks/pictures.py                      200 pictures of 64 px, two targets, 60 trainings
python benchmarks/pictures.py --weights FILE       the same, seen through a trained network
python benchmarks/pictures.py --count 2000 --size 128 --trainings 0    seeing them alone

Pictures show a square among noise; its colour and the length of its side are the targets, of which
some are labelled. Wall seconds of `init`, `estimate` and, after it, `plan` are told, and what it
takes to see all pictures. `estimate` in more than 180 seconds makes the benchmark fail.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from codebase import ROOT
from PIL import Image

MOST_ESTIMATE_SECONDS = 180.0
COLOURS = ("red", "green", "blue")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="pictures")
    parser.add_argument("--size", type=int, default=64, help="pixels of their sides")
    parser.add_argument("--trainings", type=int, default=60, help="0: none")
    parser.add_argument("--steps", type=int, default=300, help="of one training")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--weights", type=Path, help="of a trained network")
    given = parser.parse_args()
    weights = () if given.weights is None else ("--weights", str(given.weights.absolute()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pictures(folder, given.count, given.size)
        print(f"{given.count} pictures of {given.size} px; {given.trainings} trainings")
        more = ("--targets", "colour,side", "--cost", "colour=1", "--cost", "side=3")
        more += ("--budget", "100", "--steps", str(given.steps), *weights)
        tell("init", run(folder, "init", "campaign", "--root", "list.csv", *more))
        settings = folder / "campaign" / "campaign.toml"
        count = f"seed = 0\ntrainings = {given.trainings or 1}"
        settings.write_text(settings.read_text().replace("seed = 0", count, 1))
        tell("seeing all pictures", see(folder))
        tell("seeing them again", see(folder))
        if not given.trainings:
            return
        taken = run(folder, "estimate", "campaign", "--workers", str(given.workers))
        tell("estimate", taken)
        tell("plan", run(folder, "plan", "campaign"))
    if taken > MOST_ESTIMATE_SECONDS:
        sys.exit(f"estimate took more than {MOST_ESTIMATE_SECONDS:.0f} seconds")


def tell(what: str, seconds: float) -> None:
    print(f"{what}: {seconds:.2f} s", flush=True)


def run(folder: Path, *args: str) -> float:
    """Wall seconds of a command."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "allotment.cli", *args]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def see(folder: Path) -> float:
    """Wall seconds that it takes to have the numbers of all pictures."""
    from allotment.settings.settings import read_settings
    from allotment.stock.stock import open_stock

    settings, said = read_settings(folder / "campaign")
    began = time.perf_counter()
    print(f"  {open_stock(settings, folder / 'campaign', said=said).data.fingerprint[:16]}")
    return time.perf_counter() - began


def write_pictures(folder: Path, count: int, size: int) -> None:
    rng, rows = np.random.default_rng(0), ["path,brightness,colour,side"]
    (folder / "img").mkdir()
    for number in range(count):
        colour, side = int(rng.integers(3)), int(rng.integers(size // 6, size // 2))
        y, x = rng.integers(0, size - side, 2)
        pixels = rng.integers(0, 120, (size, size, 3)).astype(np.uint8)
        pixels[y : y + side, x : x + side, colour] += 100
        Image.fromarray(pixels).save(folder / "img" / f"{number}.png")
        name = COLOURS[colour] if number % 2 else ""
        length = "" if number % 3 else f"{side + 0.5}"
        rows.append(f"img/{number}.png,{pixels.mean():.2f},{name},{length}")
    (folder / "list.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
