"""Speed of training and its data: sixteen runs of the table network, stacked against one by one;
scenes drawn."""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import draw, split
from allotment.data.scenes import make_scenes
from allotment.learners.learner import train
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

RUNS = 16
TASKS = tuple(f"t{i}" for i in range(4))


def make_table(features: int, rows: int = 4000) -> ArrayData:
    """Four related regressions."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(rows, features)).astype(np.float32)
    directions = rng.normal(size=(features, len(TASKS))) / features**0.5
    values = np.tanh(2 * inputs @ directions) + 0.1 * rng.normal(size=(rows, len(TASKS)))
    labels = {task: values[:, i].astype(np.float32) for i, task in enumerate(TASKS)}
    return ArrayData("table", tuple(Target(task, "regression") for task in TASKS), inputs, labels)


def compare(features: int) -> float:
    """Time of a stack over the time of its runs one by one, taking turns so that both see the same
    machine."""
    data = make_table(features)
    learner = TorchLearner(data, split(data, 0), Recipe(epochs=10))
    runs = [
        (draw(data, learner.split.train, dict.fromkeys(TASKS, 300), seed), seed)
        for seed in range(RUNS)
    ]
    learner.stack(runs[:2])
    single = stacked = 0.0
    for _ in range(3):
        begun = time.perf_counter()
        alone = [train(learner, *run) for run in runs]
        middle = time.perf_counter()
        together = learner.stack(runs)
        single, stacked = single + middle - begun, stacked + time.perf_counter() - middle
    apart = max(
        float(
            np.abs(
                learner.predict(a, task, learner.split.test)
                - learner.predict(b, task, learner.split.test)
            ).max()
        )
        for a, b in zip(alone, together, strict=True)
        for task in TASKS
    )
    print(
        f"{features:>5} features: {RUNS} runs one by one {single / 3:6.2f} s, stacked"
        f" {stacked / 3:6.2f} s, ratio {stacked / single:.3f}; answers differ by at most"
        f" {apart:.1e}"
    )
    assert apart < 1e-5
    return stacked / single


def draw_scenes(count: int = 2000) -> float:
    """Seconds for scenes of 64 px with all their labels."""
    begun = time.perf_counter()
    make_scenes(count, 64, seed=0)
    seconds = time.perf_counter() - begun
    print(
        f"{count:,} scenes of 64 px: {seconds:.1f} s (wanted: at most 10) "
        f" {'ok' if seconds <= 10 else 'MISSED'}"
    )
    return seconds


def main() -> int:
    torch.set_num_threads(1)
    seconds = draw_scenes()
    ratios = {features: compare(features) for features in (32, 128, 1024)}
    good = ratios[128] <= 1 / 3
    print(
        f"    ratio at 128 features: {ratios[128]:.3f} (wanted: at most 0.333) "
        f" {'ok' if good else 'MISSED'}"
    )
    return 0 if good and seconds <= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
