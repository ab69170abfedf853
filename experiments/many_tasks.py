"""Estimates of 5, 10, 20 and 50 tasks: is the plan ahead of neutral, and what does it take?

    python experiments/many_tasks.py [--campaigns 40]

No data set of the corpus has as many tasks, so that these are simulated: curves with exponents of
their own (0.2 to 0.8), slopes that differ by half, one task in eight that learns nothing or has
nothing left to learn, and one pair of tasks in ten that helps or harms. Exponents and how odd
tasks look are not those that `estimates.levels` believes in; how slopes fall with labels at hand,
and how far a task that learns has come, are. Scores of 60 trainings on parts of the labels have
the noise of small networks on tables. Plans are judged by the true curves.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass

import numpy as np

from allotment.data.labels import Labels
from allotment.estimates.design import design
from allotment.estimates.levels import fit
from allotment.estimates.response import Response
from allotment.plan import allocate, neutral_gains
from allotment.problem import Problem, Task

SIZES = (5, 10, 20, 50)
TRAININGS, FOLDS = 60, 4
NOISE = 3.0
"""%, of one training"""
ODD = 1 / 8
HELPING = 1 / 10
"""of the pairs of tasks"""


@dataclass(frozen=True)
class Truth:
    """Curves of tasks, in % of the score with the labels at hand."""

    have: np.ndarray
    exponents: np.ndarray
    slopes: np.ndarray
    """[gaining task, labelled task]: what an e-fold of labels brings now"""
    skill: np.ndarray

    def gain(self, labels: np.ndarray) -> np.ndarray:
        """[..., task]: what tasks gain, or lose, with so many labels of each."""
        shares = np.maximum(labels, 1) / self.have
        rise = (1 - shares**-self.exponents) / self.exponents
        return np.asarray(rise @ self.slopes.T)


def draw_truth(tasks: int, rng: np.random.Generator) -> Truth:
    have = np.exp(rng.uniform(np.log(80), np.log(1000), tasks)).round()
    own = 6 * (have / 300) ** -0.4 * np.exp(0.5 * rng.normal(size=tasks))
    skill = have / (have + 150) + 0.15 * rng.normal(size=tasks)
    odd = rng.random(tasks) < ODD
    is_dead = odd & (rng.random(tasks) < 0.5)
    own[odd] = 0.0
    skill[is_dead], skill[odd & ~is_dead] = 0.0, 0.95
    helps = rng.random((tasks, tasks)) < HELPING
    slopes = np.where(helps, 0.4 * rng.normal(size=(tasks, tasks)) * own[:, None], 0.0)
    np.fill_diagonal(slopes, own)
    return Truth(have, rng.uniform(0.2, 0.8, tasks), slopes, np.clip(skill, 0.0, 0.98))


def measure(truth: Truth, seed: int, rng: np.random.Generator) -> Response:
    """Areas under a curve: 0.5 is chance."""
    names = tuple(f"task {place}" for place in range(len(truth.have)))
    counts = truth.have.astype(int).tolist()
    labels = Labels({name: range(count) for name, count in zip(names, counts, strict=True)})
    chosen = design(labels, TRAININGS, seed, folds=FOLDS)
    level = 0.5 + truth.skill / 2
    scores = level * (1 + (truth.gain(chosen.counts) + NOISE * rng.normal(size=(TRAININGS, 1)) / 2
                           + NOISE * rng.normal(size=chosen.counts.shape)) / 100)  # fmt: skip
    error = np.broadcast_to(1.2 / np.sqrt(truth.have / FOLDS), scores.shape)
    noisy = scores + error / 4 * rng.normal(size=scores.shape)
    return Response(
        names, tuple(counts), chosen.counts, scores, np.full((8, len(names)), 0.5),
        (True,) * len(names), chosen.fold, skill=2 * noisy - 1, skill_error=error,
    )  # fmt: skip


def run(tasks: int, seed: int) -> tuple[float, float, float]:
    """Points over neutral and over equal budget by the true curves, and CPU seconds."""
    rng = np.random.default_rng([tasks, seed])
    truth = draw_truth(tasks, rng)
    response = measure(truth, seed, rng)
    costs = np.round(np.exp(rng.uniform(0, np.log(20), tasks))).tolist()
    rows = zip(response.tasks, costs, response.have, strict=True)
    kinds = [Task(name, cost=cost, have=have, pool=4 * have) for name, cost, have in rows]
    problem = Problem(kinds, budget=int(np.dot(costs, truth.have)))
    begin = time.process_time()
    found = fit(response, seed=seed)
    plan = allocate(problem, found)
    found.outlook(problem, plan)
    seconds = time.process_time() - begin
    neutral = allocate(problem, neutral_gains(problem))

    def value(counts: dict[str, int]) -> float:
        more = np.array([counts[name] for name in response.tasks])
        return float(truth.gain(truth.have + more).mean())

    equal = problem.budget / tasks
    money = {task.name: min(int(equal / task.cost), task.pool or 0) for task in kinds}
    return value(plan.counts) - value(neutral.counts), value(plan.counts) - value(money), seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=40)
    asked = parser.parse_args()
    print("| tasks | over neutral | over equal budget | behind neutral in | CPU s | MB so far |")
    print("|---|---|---|---|---|---|")
    for tasks in SIZES:
        found = np.array([run(tasks, seed) for seed in range(asked.campaigns)])
        error = 2 * found.std(axis=0, ddof=1) / np.sqrt(len(found))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"| {tasks} | {found[:, 0].mean():+.2f} ± {error[0]:.2f} |"
            f" {found[:, 1].mean():+.2f} ± {error[1]:.2f} |"
            f" {np.mean(found[:, 0] < 0):.0%} | {found[:, 2].mean():.2f} | {most:.0f} |"
        )


if __name__ == "__main__":
    main()
