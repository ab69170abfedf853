"""What the built-in learner reaches: `python experiments/learner.py molecules|scenes [--data
FOLDER]`.

molecules: do cheap labels help dear ones on QM8, and do more labels help on Tox21? Needs the small
copies of both sets (`--data`, or ALLOT_TEST_DATA). scenes: does each of six tasks get better from
50 to 200 to 800 labels?
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, draw, split
from allotment.learners.learner import measure, train, train_many
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner


def load(path: Path, tasks: list[str], kind: str, metric: str) -> ArrayData:
    """Some columns of a file of fingerprints."""
    with np.load(path, allow_pickle=False) as file:
        names = [str(name) for name in file["tasks"]]
        values = file["Y"][:, [names.index(task) for task in tasks]]
        inputs = np.minimum(file["X"], 3).astype(np.float32)
    classes = ("no", "yes") if kind == "classification" else ()
    targets = tuple(Target(task, kind, classes, metric=metric) for task in tasks)
    missing = {task: np.isnan(values[:, i]) for i, task in enumerate(tasks)}
    form = np.int64 if kind == "classification" else np.float32
    labels = {task: np.nan_to_num(values[:, i]).astype(form) for i, task in enumerate(tasks)}
    return ArrayData(path.stem, targets, inputs, labels, missing)


def on_test(data: ArrayData, parts: Split, recipe: Recipe) -> TorchLearner:
    """A learner whose scores come from the test part: for reporting only."""
    return TorchLearner(data, Split(parts.train, parts.test, parts.validation), recipe)


def transfer(folder: Path, draws: int) -> None:
    """Dear targets with few labels, alone and beside cheap ones with many."""
    tasks = ["E1-CC2", "E1-PBE0", "f1-CC2", "f1-PBE0"]
    data = load(folder / "molecules" / "qm8_morgan1024.npz", tasks, "regression", "mae")
    learner = on_test(data, split(data, 0, 0.1, 0.2), Recipe(steps=600, batch_size=64))
    print(
        f"QM8, mean absolute error on test, {draws} draws: dear targets with 300 labels, cheap ones"
        " with 6,000\n"
    )
    print(
        f"| target | alone | beside the cheap ones | difference | standard error |\n|{'---|' * 5}"
    )
    runs = []
    for seed in range(draws):
        counts = {task: 300 if "CC2" in task else 6000 for task in tasks}
        runs.append((draw(data, learner.split.train, counts, seed), seed))
    together = train_many(learner, runs)
    for task in ("E1-CC2", "f1-CC2"):
        alone = train_many(learner, [(labels.only(task), seed) for labels, seed in runs])
        one = np.array([learner.score(state, task).metric for state in alone])
        many = np.array([learner.score(state, task).metric for state in together])
        gap = many - one
        error = gap.std(ddof=1) / np.sqrt(draws)
        print(
            f"| {task} | {one.mean():.5f} | {many.mean():.5f} | {gap.mean():+.5f} | {error:.5f} |",
            flush=True,
        )


def more_labels(folder: Path, draws: int) -> None:
    """Tox21 with more and more labels."""
    tasks = ["NR-AhR", "SR-MMP", "SR-ARE", "NR-ER"]
    data = load(folder / "molecules" / "tox21_morgan1024.npz", tasks, "classification", "roc_auc")
    learner = on_test(data, split(data, 0, 0.1, 0.2), Recipe(epochs=20))
    print(
        f"\nTox21, ROC AUC on test, mean of {draws} draws\n\n| labels each | {' | '.join(tasks)}"
        f" |\n|{'---|' * 5}"
    )
    for count in (75, 300, 1000):
        runs = [
            (draw(data, learner.split.train, dict.fromkeys(tasks, count), seed), seed)
            for seed in range(draws)
        ]
        states = train_many(learner, runs)
        means = [np.mean([learner.score(state, task).metric for state in states]) for task in tasks]
        print(f"| {count} | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)


def scenes(draws: int, steps: int, kept: Path) -> None:
    """Six tasks on the built-in scenes, all with the same number of labels; finished trainings are
    kept in a file."""
    from allotment.data.scenes import make_scenes

    done: dict[str, list[float]] = json.loads(kept.read_text()) if kept.exists() else {}
    data = make_scenes(6000, seed=1)
    parts = split(data, 0, 0.05, 0.1)
    # settled on scenes of another seed
    recipe = Recipe(steps=steps, batch_size=8, optimiser="adam", trunk_rate=0.01, head_rate=0.01)
    learner = on_test(data, parts, recipe)
    tasks = learner.tasks
    print(
        f"Scenes, score on {len(parts.test)} test images, mean (standard deviation) of {draws}"
        f" draws, {steps} steps\n"
    )
    heads = [
        f"{t.name} ({learner.metrics[t.name].name if learner.metrics[t.name] else 'loss'})"
        for t in data.targets
    ]
    print(f"| labels each | {' | '.join(heads)} |\n|{'---|' * (1 + len(heads))}", flush=True)
    for count in (50, 200, 800):
        found: list[list[float]] = []
        for seed in range(draws):
            key = f"{steps} steps, {count} labels, seed {seed}"
            if key not in done:
                labels: Labels = draw(data, parts.train, dict.fromkeys(tasks, count), seed)
                state = train(learner, labels, seed)
                done[key] = [each.metric for each in measure(learner, state).values()]
                kept.write_text(json.dumps(done, indent=1))
            found.append(done[key])
        table = np.array(found)
        cells = [
            f"{m:.3f} ({s:.3f})"
            for m, s in zip(table.mean(axis=0), table.std(axis=0, ddof=1), strict=True)
        ]
        print(f"| {count} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["molecules", "scenes"])
    parser.add_argument("--data", type=Path, default=os.environ.get("ALLOT_TEST_DATA"))
    parser.add_argument("--draws", type=int, default=None)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument(
        "--kept", type=Path, default=Path("scenes.json"), help="finished trainings, to go on from"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.perf_counter()
    if given.what == "molecules":
        if given.data is None:
            parser.error("--data: where are the copies of QM8 and Tox21?")
        transfer(Path(given.data), given.draws or 8)
        more_labels(Path(given.data), given.draws or 8)
    else:
        scenes(given.draws or 5, given.steps, given.kept)
    print(f"\n{time.perf_counter() - begun:.0f} s on one core")


if __name__ == "__main__":
    main()
