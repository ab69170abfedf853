"""Speed of the planner, as ratios within one run: `make bench`.

The peers are plain numpy dynamic programming, HiGHS and CP-SAT, each given the same instance. Every
time is the least of a few repeats, except where one takes longer than ten seconds.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import allotment as al

COSTS = (10, 3, 3, 2, 3)
INFORMATIVENESS = (0.73, 0.23, 2.24, 2.74, 2.17)
REDUCTION = (0.9964, 0.9997, 0.9998, 0.9999, 0.9998)
NAMES = ("segmentation", "normals", "depth", "keypoints", "edges")


def taskonomy(budget: int) -> tuple[al.Problem, dict[str, al.Curve]]:
    """The paper's five tasks, with its published numbers."""
    tasks = [al.Task(name, cost) for name, cost in zip(NAMES, COSTS, strict=True)]
    shapes = zip(NAMES, INFORMATIVENESS, REDUCTION, strict=True)
    return al.Problem(tasks, budget), {
        name: al.Geometric(size, keep) for name, size, keep in shapes
    }


def plain_dynamic_programme(budget: int) -> float:
    """What one would write first: for every task and every count of it, all budgets as one
    array."""
    best = np.zeros(budget + 1)
    for cost, size, keep in zip(COSTS, INFORMATIVENESS, REDUCTION, strict=True):
        after = best.copy()
        for count in range(1, budget // cost + 1):
            gain = size * (1 - keep**count) / (1 - keep)
            np.maximum(
                after[cost * count :],
                best[: budget + 1 - cost * count] + gain,
                out=after[cost * count :],
            )
        best = after
    return float(best[-1])


def solve_with_highs(budget: int, limit: float) -> float | None:
    """A 0/1 variable for every label; None if it has no proved optimum in time."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", limit)
    solver.setOptionValue("mip_rel_gap", 1e-9)
    solver.setOptionValue("threads", 1)
    labels = [
        (cost, size * keep**label)
        for cost, size, keep in zip(COSTS, INFORMATIVENESS, REDUCTION, strict=True)
        for label in range(budget // cost)
    ]
    count = len(labels)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = count, 1
    model.col_cost_ = [-gain for _, gain in labels]
    model.col_lower_, model.col_upper_ = [0.0] * count, [1.0] * count
    model.row_lower_, model.row_upper_ = [-highspy.kHighsInf], [float(budget)]
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = [0, count]
    model.a_matrix_.index_ = list(range(count))
    model.a_matrix_.value_ = [float(cost) for cost, _ in labels]
    model.integrality_ = [highspy.HighsVarType.kInteger] * count
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return -float(solver.getInfo().objective_function_value)


def solve_with_cp_sat(budget: int, limit: float) -> float | None:
    """A table of gains for every task, in whole millionths; None if it has no proved optimum in
    time."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    grain = 1e6
    counts, values = [], []
    for cost, size, keep in zip(COSTS, INFORMATIVENESS, REDUCTION, strict=True):
        table = [
            round(grain * size * (1 - keep**n) / (1 - keep)) for n in range(budget // cost + 1)
        ]
        count = model.new_int_var(0, len(table) - 1, "")
        value = model.new_int_var(0, table[-1], "")
        model.add_element(count, table, value)
        counts.append(cost * count)
        values.append(value)
    model.add(sum(counts) <= budget)
    model.maximize(sum(values))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    return solver.objective_value / grain if status == cp_model.OPTIMAL else None


def random_problem(
    tasks: int, budget: int, seed: int = 0
) -> tuple[al.Problem, dict[str, al.Curve]]:
    """Costs up to 1,000 units; power laws, which never saturate, so that every budget is spent."""
    rng = random.Random(seed)
    made = [
        al.Task(f"t{i}", rng.randint(1, 1000), have=rng.randint(10, 1000)) for i in range(tasks)
    ]
    gains = {
        task.name: al.Power(rng.uniform(0.1, 3), task.have, rng.uniform(0.2, 0.6)) for task in made
    }
    return al.Problem(made, budget), gains


def clock(
    call: Callable[..., Any], *given: Any, repeats: int = 7, **named: Any
) -> tuple[float, Any]:
    """The least time of a few calls, and the last result."""
    least = math.inf
    for _ in range(repeats):
        begun = time.perf_counter()
        result = call(*given, **named)
        least = min(least, time.perf_counter() - begun)
        if least > 10:
            break
    return least, result


def clock_apart(peer: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """The same once, in a process of its own: the libraries of HiGHS and CP-SAT do not load side by
    side."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(clock, (peer, *given), {"repeats": 1})


def row(what: str, seconds: float, note: str = "") -> None:
    print(f"{what:<52}{seconds * 1e3:>14,.2f} ms  {note}", flush=True)


def judge(name: str, ratio: float, wanted: float) -> bool:
    print(
        f"    {name}: {ratio:,.1f} (wanted: {wanted:,.0f}) "
        f" {'ok' if ratio >= wanted else 'MISSED'}\n",
        flush=True,
    )
    return ratio >= wanted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--limit",
        type=float,
        default=60,
        help="seconds that HiGHS and CP-SAT get for each instance",
    )
    limit = parser.parse_args().limit
    good = True

    problem, gains = taskonomy(210_000)
    ours, plan = clock(al.allocate, problem, gains)
    sweep, curve = clock(al.frontier, problem, gains, repeats=3)
    plain, value = clock(plain_dynamic_programme, 210_000, repeats=1)
    print("Taskonomy, five tasks, budget 210,000")
    row("allocate", ours, f"value {plan.value:.6f}")
    row("frontier, all 210,001 budgets", sweep, f"value {curve.values[-1]:.6f}")
    row("plain numpy dynamic programme", plain, f"value {value:.6f}")
    assert abs(plan.value - value) < 1e-9 * value
    assert abs(curve.values[-1] - value) < 1e-9 * value
    good &= judge("plain programme / allocate", plain / ours, 1000)
    good &= judge("plain programme / frontier", plain / sweep, 50)

    large = problem.with_budget(10**9)
    seconds, curve = clock(al.frontier, large, gains, repeats=3)
    row("frontier, budget 10^9, breakpoints", seconds, f"{len(curve.budgets)} points\n")

    print(f"Peers on the same five tasks (HiGHS and CP-SAT stop after {limit:g} s)")
    for budget in (2_100, 21_000):
        problem, gains = taskonomy(budget)
        ours, plan = clock(al.allocate, problem, gains)
        row(f"allocate, budget {budget:,}", ours, f"value {plan.value:.6f}")
        for name, peer in (("HiGHS", solve_with_highs), ("CP-SAT", solve_with_cp_sat)):
            seconds, found = clock_apart(peer, budget, limit)
            answer = "no proved optimum in time" if found is None else f"value {found:.6f}"
            row(
                f"{name}, budget {budget:,}",
                seconds,
                f"{answer}; {seconds / ours:,.0f} times as long",
            )
            assert found is None or found <= plan.value + 1e-4
        seconds, _ = clock(plain_dynamic_programme, budget, repeats=1)
        row(f"plain numpy, budget {budget:,}", seconds, f"{seconds / ours:,.0f} times as long")
    print()

    print("Growth: five tasks, costs up to 1,000 units")
    times = {}
    for exponent in (5, 6, 8, 10, 12):
        instances = [random_problem(5, 10**exponent, seed) for seed in range(5)]
        times[exponent] = sum(clock(al.allocate, *each, repeats=5)[0] for each in instances) / 5
        row(f"allocate, budget 10^{exponent}", times[exponent], "mean of five instances")
    good &= judge("10 x time at 10^5 / time at 10^12", 10 * times[5] / times[12], 1)
    for tasks in (10, 100, 1000):
        problem, gains = random_problem(tasks, 10**8)
        seconds, _ = clock(al.allocate, problem, gains, repeats=3)
        row(f"allocate, {tasks:,} tasks", seconds)
    good &= judge("1 s / time for 1,000 tasks", 1 / seconds, 1)

    print("Cold start, until the process has ended")
    for command, wanted in (("--help", 0.3), ("plan", 1.0)):
        words = [
            sys.executable,
            "-m",
            "allotment.cli",
            *(["plan", "-"] if command == "plan" else [command]),
        ]
        example = al.__path__[0] + "/examples/voc.toml"
        with open(example, "rb") as file:
            text = file.read()
        seconds, _ = clock(
            subprocess.run, words, input=text, capture_output=True, check=True, repeats=5
        )
        row(f"allot {command}", seconds)
        good &= judge(f"{wanted} s / time", wanted / seconds, 1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
