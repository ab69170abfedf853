"""What the plan of `allot demo` is worth with other labels to begin with.

    python experiments/demos.py run FOLDER [--seeds 4-9] [--workers 2]
    python experiments/demos.py tell FOLDER [--seeds 4-9]

`run` goes on where it was stopped; `tell` prints the table of docs/results/demo.md. Every seed is a
campaign of its own below FOLDER: measured, planned, and trained out beside the neutral plan and
equal budget, with the same draws of new labels for all three.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from allotment.campaign.campaign import Campaign
from allotment.campaign.evaluation import Evaluation
from allotment.cli.demo import FULL_DEMO, write_settings
from allotment.formatting import chance

BESIDE = ("neutral", "equal budget")
REPEATS = 4
LEVEL = 0.95


def run(folder: Path, seeds: range, workers: int) -> None:
    for seed in seeds:
        campaign = _open(folder, seed)
        campaign.estimate(workers)
        campaign.try_plans(repeats=REPEATS, workers=workers, beside=BESIDE)
        print(seed, campaign.plan()[1].plan, flush=True)


def tell(folder: Path, seeds: range) -> str:
    """A row for each seed, and the mean over seeds."""
    rows = ["| seed | plan | D_T | over neutral | over equal budget | chance stated |"]
    rows.append("|---|---|---|---|---|---|")
    leads: dict[str, list[float]] = {name: [] for name in BESIDE}
    for seed in seeds:
        campaign = _open(folder, seed)
        found: Evaluation = campaign.try_plans(repeats=REPEATS, workers=0, beside=BESIDE)[1]
        table = {row["name"]: row for row in found.rows()}
        own = found.rows()[0]
        for name in BESIDE:
            leads[name].append(float(table[name]["ahead"][0]))
        outlook = campaign.plan()[1].plan.outlook
        assert outlook is not None
        counts = ", ".join(map(str, own["counts"].values()))
        spans = [f"{leads[name][-1]:+.2f}" for name in BESIDE]
        cells = [str(seed), counts, f"{own['total'][0]:.2f}", *spans, chance(outlook.chance)]
        rows.append(f"| {' | '.join(cells)} |")
    means = [_spell(leads[name]) for name in BESIDE]
    rows.append(f"| mean | | | {' | '.join(means)} | |")
    return "\n".join(rows)


def _spell(values: list[float]) -> str:
    error = stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)
    return f"{np.mean(values):+.2f} ± {error:.2f}"


def _open(folder: Path, seed: int) -> Campaign:
    place = folder / str(seed)
    if not place.exists():
        Campaign.create(place, write_settings(FULL_DEMO, False, seed))
    return Campaign(place)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["run", "tell"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", default="4-9")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    first, last = asked.seeds.split("-")
    seeds = range(int(first), int(last) + 1)
    if asked.verb == "run":
        run(asked.folder, seeds, asked.workers)
    else:
        print(tell(asked.folder, seeds))


if __name__ == "__main__":
    main()
