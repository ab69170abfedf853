"""Speed of the page's planner under node: a slider step of 100 tasks and a budget of 10^9.

A step is one price or the budget changed, and all solved again; `make bench` wants it within 100
ms.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from planner import random_problem

import allotment as al
import allotment.reports
from allotment.advice.plain_problem import write_plain_problem
from allotment.reports.assets import PLANNER

STEPS = 50
WARM = 20
"""steps before those that are timed: a page has drawn a frontier when somebody moves a slider"""
LIMIT = 100.0
"""milliseconds of the slowest step"""
ASSETS = Path(allotment.reports.__file__).parent / "assets"


def geometric_problem(seed: int) -> tuple[al.Problem, dict[str, al.Curve]]:
    """Curves that saturate, some of them long before the money is spent."""
    rng = random.Random(seed)
    tasks = [al.Task(f"t{at}", rng.randint(1, 1000)) for at in range(100)]
    gains = {
        task.name: al.Geometric(rng.uniform(0.1, 3), 1 - 10 ** -rng.uniform(3, 6)) for task in tasks
    }
    return al.Problem(tasks, 10**9), gains


def limited_problem(seed: int) -> tuple[al.Problem, dict[str, al.Curve]]:
    """Every kind of limit that a single task can have."""
    rng = random.Random(seed)
    tasks = [
        al.Task(
            f"t{at}",
            rng.randint(1, 1000),
            have=rng.randint(10, 1000),
            pool=rng.choice([None, 10**4, 10**6]),
            least=rng.choice([0, 0, 100]),
            lot=rng.choice([1, 1, 10]),
            fee=rng.choice([0, 0, 5000]),
            weight=rng.choice([0.5, 1, 2]),
        )
        for at in range(100)
    ]
    gains = {task.name: al.Logarithmic(rng.uniform(0.1, 3), task.have) for task in tasks}
    return al.Problem(tasks, 10**9), gains


def time_steps(node: str, folder: Path, problem: al.Problem, gains: Any) -> dict[str, Any]:
    given = {"problem": write_plain_problem(problem, gains), "steps": STEPS, "warm": WARM}
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    for name in PLANNER:
        shutil.copy(ASSETS / name, folder / name)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    script = Path(__file__).parent / "page_steps.mjs"
    words = [node, str(script), str(folder / "planner.js"), str(folder / "given.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    node = shutil.which("node")
    if node is None:
        print("The page's planner is not timed: there is no node on this machine")
        return 0
    good = True
    print(f"A slider step under node: 100 tasks, budget 10^9, {STEPS} steps")
    for name, (problem, gains) in {
        "power laws": random_problem(100, 10**9),
        "geometric": geometric_problem(1),
        "pools, lots, fees": limited_problem(2),
    }.items():
        with tempfile.TemporaryDirectory() as folder:
            found = time_steps(node, Path(folder), problem, gains)
        passed = [step["passed"] for step in found["times"]]
        # a step that had to wait for other programs is held to the time of its own
        own = [min(step["passed"], step["own"]) for step in found["times"]]
        ok = max(own) <= LIMIT and found["exact"]
        good &= ok
        proved = "all proved" if found["exact"] else "NOT PROVED"
        print(
            f"{name:<20}median {statistics.median(passed):>6.1f} ms, worst {max(passed):>6.1f} ms;"
            f" without waiting for other programs {statistics.median(own):.1f} and"
            f" {max(own):.1f} ms; {proved} (wanted: {LIMIT:.0f} ms)  {'ok' if ok else 'MISSED'}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
