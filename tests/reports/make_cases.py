"""Writes cases.json: problems that Python and the page's planner both solve.

    python tests/reports/make_cases.py

A case is a line {"name", "problem", "gains"} or {"name", "problem", "estimates"}, as `to_dict`
writes them.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.instances import own_problem, random_problem

import allotment as al
from allotment.limits import find_clashes

CASES = Path(__file__).parent / "cases.json"
SMALL, OWN, AVERAGED, LARGER, HUGE = 160, 30, 80, 60, 3
TASKONOMY = {
    "segmentation": (10, 0.73, 0.9964),
    "normals": (3, 0.23, 0.9997),
    "depth": (3, 2.24, 0.9998),
    "keypoints": (2, 2.74, 0.9999),
    "edges": (3, 2.17, 0.9998),
}


def make_small() -> Iterator[tuple[str, al.Problem, Any]]:
    """Every kind of limit; every second one has worths in whole numbers, with many ties."""
    for index in range(SMALL):
        problem, gains, _ = random_problem(20, index, whole=index % 2 == 1)
        yield f"small {index}", problem, gains
    for index in range(OWN):
        problem, gains, _ = own_problem(20, index)
        yield f"own curves {index}", problem, gains


def draw_tasks(rng: random.Random, size: int, budget: int) -> list[al.Task]:
    """Tasks with any limit of a single task."""
    tasks = []
    for at in range(size):
        limits: dict[str, Any] = {}
        if rng.random() < 0.3:
            limits["pool"] = rng.randint(10, budget)
        if rng.random() < 0.2:
            limits["least"] = rng.randint(1, 10)
        if rng.random() < 0.1:
            limits["frozen"] = 10 * rng.randint(0, 1)
        if rng.random() < 0.2:
            limits["lot"] = rng.choice([2, 5, 10])
        if rng.random() < 0.2:
            limits["fee"] = rng.randint(1, 50)
        if rng.random() < 0.2:
            limits["tiers"] = [(rng.randint(5, 200), rng.randint(1, 40))]
        if rng.random() < 0.3:
            limits["weight"] = rng.choice([0, 0.5, 2, 3])
        have = rng.choice([0, 30, 100, 300, 1000])
        tasks.append(al.Task(f"t{at}", rng.randint(1, 40), have=have, **limits))
    return tasks


def draw_caps(rng: random.Random, tasks: list[al.Task], budget: int) -> list[al.Cap]:
    use = {task.name: rng.choice(["0.25", "1", "1.5"]) for task in tasks if rng.random() < 0.7}
    return [al.Cap("hours", budget // rng.choice([10, 20, 40]), use)] if use else []


def round_all(values: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda each: float(f"{each:.5g}"))(values)


def make_averaged() -> Iterator[tuple[str, al.Problem, Any]]:
    """Estimates: draws of worths and shapes, with help and harm between tasks."""
    for index in range(AVERAGED):
        rng, numbers = random.Random(f"averaged {index}"), np.random.default_rng(index)
        size, draws = rng.randint(2, 6), 8
        budget = rng.choice([300, 2000, 6300, 20_000, 1_000_000])
        while True:
            tasks = draw_tasks(rng, size, budget)
            caps = draw_caps(rng, tasks, budget) if index % 4 == 3 else []
            problem = al.Problem(tasks, budget, caps)
            if not find_clashes(problem):
                break
        law = rng.choice(("power", "geometric"))
        own = numbers.uniform(0.5, 40, size) * numbers.lognormal(0, 0.3, (draws, size))
        worths = (
            numbers.normal(0, 0.15 if index % 3 else 0.0, (draws, size, size)) * own[:, None, :]
        )
        worths += numbers.normal(0.05, 0.1, (size, size)) * own.mean()
        for at in range(size):
            worths[:, at, at] = own[:, at]
        shapes = numbers.uniform(0.1, 0.9, size) * numbers.lognormal(0, 0.2, (draws, size))
        if law == "geometric":
            shapes, worths = 1 - 10 ** -numbers.uniform(2, 4, (draws, size)), worths / 30
        yield (
            f"averaged {index}",
            problem,
            al.Estimates(
                problem.names,
                tuple(task.have for task in tasks),
                round_all(worths),
                round_all(shapes),
                law,
            ),
        )


def draw_curve(rng: random.Random, have: int) -> al.Curve:
    size = rng.uniform(0.1, 3)
    kind = rng.randrange(5)
    if kind == 0:
        return al.Geometric(size, 1 - 10 ** -rng.uniform(1, 4))
    if kind == 1:
        ceiling = rng.choice([float("inf"), rng.uniform(0.5, 3)])
        return al.Power(size * 20, have, rng.uniform(0.1, 1), ceiling)
    if kind == 2:
        return al.Logarithmic(size, have)
    if kind == 3:
        counts = [0, 10, 40, 100, 1000]
        slopes = sorted((rng.uniform(0, 2) for _ in counts[1:]), reverse=True)
        steps = [after - before for before, after in itertools.pairwise(counts)]
        worths = np.cumsum([0, *(a * b for a, b in zip(slopes, steps, strict=True))])
        return al.Tabulated(worths.tolist(), counts)
    return al.Geometric(size, 0.999) + al.Logarithmic(size / 2, have)


def make_larger() -> Iterator[tuple[str, al.Problem, Any]]:
    """Budgets as people have them, and curves of every family."""
    for index in range(LARGER):
        rng = random.Random(f"larger {index}")
        budget = rng.choice([500, 6300, 50_000, 10**6])
        while True:
            tasks = draw_tasks(rng, rng.randint(2, 8), budget)
            caps = draw_caps(rng, tasks, budget) if index % 5 == 4 else []
            if not find_clashes(al.Problem(tasks, budget, caps)):
                break
        gains = {task.name: draw_curve(rng, task.have) for task in tasks}
        if index % 6 == 5:
            gains["t0"] += al.Coupled(al.Geometric(1.0, 0.99), {"t0": 1, "t1": "0.5"})
        yield f"larger {index}", al.Problem(tasks, budget, caps), gains
    tasks = [al.Task(name, cost) for name, (cost, _, _) in TASKONOMY.items()]
    gains = {name: al.Geometric(size, keep) for name, (_, size, keep) in TASKONOMY.items()}
    for budget in (2_100, 21_000, 210_000, 1_000_000):
        yield f"Taskonomy {budget}", al.Problem(tasks, budget), gains
    tasks = [al.Task("cls", "0.05"), al.Task("seg", "1.00")]
    gains = {"cls": al.Geometric(1.13, 0.999), "seg": al.Geometric(2.03, 0.997)}
    for budget in ("15.50", 315, 1_000):
        yield f"VOC {budget}", al.Problem(tasks, budget), gains


def make_huge() -> Iterator[tuple[str, al.Problem, Any]]:
    for index in range(HUGE):
        rng = random.Random(f"huge {index}")
        tasks = [
            al.Task(f"t{at}", rng.randint(1, 1000), have=rng.randint(10, 1000)) for at in range(100)
        ]
        gains = {
            task.name: al.Power(rng.uniform(0.1, 3), task.have, rng.uniform(0.2, 0.6))
            for task in tasks
        }
        yield f"huge {index}", al.Problem(tasks, 10**9), gains


def write(name: str, problem: al.Problem, gains: Any) -> str:
    plain: dict[str, Any] = {"name": name, "problem": problem.to_dict()}
    if isinstance(gains, al.Estimates):
        plain["estimates"] = gains.to_dict()
    else:
        plain["gains"] = {task: curve.to_dict() for task, curve in gains.items()}
    return json.dumps(plain, separators=(",", ":"))


def main() -> None:
    lines = [
        write(*case)
        for make in (make_small, make_averaged, make_larger, make_huge)
        for case in make()
    ]
    CASES.write_text("[" + ",\n".join(lines) + "]\n", encoding="utf-8")
    print(f"{len(lines)} cases in {CASES}")


if __name__ == "__main__":
    main()
