"""What probing costs beside a training: five tasks of the built-in scenes, the paper's way to the
letter, and ours.

To the letter: every 10 steps, for each of the 20 ordered pairs (i, j), three arms of their own (j,
i with j, j twice), each a copy of the model that takes its steps alone, and j scored on all
validation images. A few of these probes are timed and the rest reckoned from them; all else is run
whole. There is one thread, so its CPU seconds are those of the clock on a machine that does nothing
else; they are what is judged, and the clock's stand beside them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from allotment.data.labels import Labels, draw, split
from allotment.data.scenes import make_scenes
from allotment.estimates.probes import make_arms, probe_once, probe_training, score_on_some
from allotment.learners.learner import count_gradients, follow, train
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner, Training

LEFT_OUT = "classes"
IMAGES, LABELLED, STEPS, BATCH = 1000, 150, 100, 16
EVERY = 10
"""the paper's"""
FEW = 48
"""validation images, of 200, that a cheap probe is scored on"""
SLICE = 2
"""probes to the letter that are timed"""


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, seconds of the thread, and gradients of a mini-batch."""

    wall: float
    cpu: float
    gradients: float

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu, self.gradients + other.gradients)

    def __mul__(self, factor: float) -> Spent:
        return Spent(self.wall * factor, self.cpu * factor, self.gradients * factor)

    def over(self, other: Spent) -> tuple[float, float, float]:
        return self.wall / other.wall, self.cpu / other.cpu, self.gradients / other.gradients


def clock(work: Callable[[], Any], gradients: float = 0.0) -> tuple[Spent, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu, gradients), found


def make_learner() -> tuple[TorchLearner, Labels]:
    data = make_scenes(IMAGES, 64, seed=0)
    data = replace(
        data, targets=tuple(target for target in data.targets if target.name != LEFT_OUT)
    )
    learner = TorchLearner(
        data, split(data, 0, validation=0.2), Recipe(steps=STEPS, batch_size=BATCH)
    )
    return learner, draw(data, learner.split.train, dict.fromkeys(learner.tasks, LABELLED), 0)


def probe_literally(learner: TorchLearner, state: Training, steps: int) -> int:
    """Eq. 5 as it reads; the number of gradients."""
    gradients = 0
    for j in learner.tasks:
        for i in learner.tasks:
            for arm in ((j,), (i, j), (j, j)) if i != j else ():
                learner.score(follow(learner, learner.fork(state), arm, steps), j)
                gradients += steps * len(arm)
    return gradients


def compare_probes(
    learner: TorchLearner, labels: Labels, steps: int, times: int
) -> tuple[Spent, Spent, Spent]:
    """Mean cost of one probe: to the letter, ours on all validation images, ours on a few; taking
    turns."""
    few, size = score_on_some(learner, FEW, 0), len(learner.tasks)
    state = follow(learner, learner.start(labels, 0), learner.tasks, 10)
    literal, ours = (
        5 * size * (size - 1) * steps,
        count_gradients(learner, make_arms(learner.tasks), steps),
    )
    total = [Spent(0, 0, 0)] * 3
    for _ in range(times):
        state = follow(learner, state, learner.tasks, 1)
        parts = (
            clock(lambda state=state: probe_once(learner, state, learner.tasks, steps=steps), ours)[
                0
            ],
            clock(lambda state=state: probe_once(few, state, learner.tasks, steps=steps), ours)[0],
        )
        spent, counted = clock(lambda state=state: probe_literally(learner, state, steps), literal)
        assert counted == literal
        total = [whole + part for whole, part in zip(total, (spent, *parts), strict=True)]
    return tuple(part * (1 / times) for part in total)  # type: ignore[return-value]


def show(name: str, spent: Spent, than: Spent) -> tuple[float, float, float]:
    ratios = spent.over(than)
    print(
        f"  {name:<46} {spent.wall:8.1f} s {spent.cpu:8.1f} s CPU {spent.gradients:8.0f} gradients;"
        f"  x {ratios[0]:.2f} {ratios[1]:.2f} {ratios[2]:.2f}"
    )
    return ratios


def main() -> int:
    torch.set_num_threads(1)
    learner, labels = make_learner()
    follow(learner, learner.start(labels, 1), learner.tasks, 2)
    print(
        f"scenes, {', '.join(learner.tasks)}: {LABELLED} labels each, {STEPS} steps; "
        f"{len(learner.validation)} validation images"
    )
    plain, state = clock(lambda: train(learner, labels, 0), STEPS * len(learner.tasks))
    whole, (probes, ended) = clock(lambda: probe_training(learner, labels, 0))
    same = all(
        torch.equal(a, b)
        for a, b in zip(state.network.parameters(), ended.network.parameters(), strict=True)
    )
    assert same, "probing changed the training"
    added = replace(whole + plain * -1, gradients=probes.cost.probing)
    literal, ours, few = compare_probes(learner, labels, probes.ahead, SLICE)
    looks = (STEPS - probes.ahead) // EVERY

    print(
        f"a training, and what {looks} probes to the letter and {len(probes)} of ours (by default)"
        " add to it"
    )
    show("plain training", plain, plain)
    show(f"to the letter, every {EVERY} steps ({SLICE} of {looks} timed)", literal * looks, plain)
    mine = show(f"ours by default, every {probes.at[0]} steps", added, plain)
    cheaper = (literal * looks).over(added)
    print(f"one probe, {probes.ahead} step(s) ahead, of one to the letter")
    show("to the letter", literal, literal)
    show("ours, scored on all", ours, literal)
    show(f"ours, scored on {FEW}", few, literal)
    per_probe = literal.over(few)
    return report(mine, cheaper, per_probe, literal.over(ours))


def report(
    mine: tuple[float, ...],
    cheaper: tuple[float, ...],
    per_probe: tuple[float, ...],
    all_: tuple[float, ...],
) -> int:
    checks = {
        f"ours adds {mine[1]:.2f} times the plain training (wanted: at most 1.5)": mine[1] <= 1.5,
        f"by default it is {cheaper[1]:.1f} times cheaper (wanted: 5)": cheaper[1] >= 5,
        f"by default it takes {cheaper[2]:.1f} times fewer gradients (wanted: 5)": cheaper[2] >= 5,
        f"a probe scored on {FEW} is {per_probe[1]:.1f} times cheaper (wanted: 5; on all"
        f" {all_[1]:.1f})": (per_probe[1] >= 5),
        f"a probe takes {per_probe[2]:.1f} times fewer gradients (wanted: 5)": per_probe[2] >= 5,
    }
    for text, good in checks.items():
        print(f"    {text}  {'ok' if good else 'MISSED'}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
