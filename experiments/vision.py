"""What the small set-ups reach on real images: `python experiments/vision.py voc|taskonomy --data
FOLDER`.

voc: Jaccard of classes and mIoU of segmentation with 300 and 1,000 labels of each, on VOC's own
test list, beside the best answer that does not look at the image. taskonomy: five losses with more
and more labels. FOLDER holds VOC2012, taskonomy and weights.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from allotment.data.labels import Split, draw
from allotment.learners.editions import newest_edition
from allotment.learners.learner import measure, train
from allotment.learners.metrics import METRICS
from allotment.learners.setups import draw_parts, find_setup, make_learner, read_data
from allotment.learners.torch_learner import TorchLearner

FOLDERS = {"voc": "VOC2012", "taskonomy": "taskonomy"}
COUNTS = {"voc": (300, 1000), "taskonomy": (20, 80, 330)}
WEIGHTS = "weights/mobilenetv1_1.0_imagenet_no_pw13_fp16.npz"
DRAWS = 3


def make(what: str, folder: Path, edition: int) -> TorchLearner:
    """A learner whose scores come from the test part: for reporting only."""
    setup = find_setup(f"{what}-small", edition)
    root = folder / FOLDERS[what]
    parts = draw_parts(setup, read_data(setup, root), seed=0)
    swapped = Split(parts.train, parts.test, parts.validation)
    return make_learner(setup, root, folder / WEIGHTS, parts=swapped)


def constant_answers(learner: TorchLearner) -> dict[str, float]:
    """The best score of any answer that is the same for all images."""
    test, data = learner.split.validation, learner.data
    classes = data.values("classes", test)
    everywhere = np.eye(classes.shape[1])
    jaccard = max(METRICS["jaccard"](np.tile(one, (len(test), 1)), classes) for one in everywhere)
    masks = data.values("segmentation", test)
    ground = np.zeros((len(test), 21, 1, 1))
    ground[:, 0] = 1
    miou = METRICS["miou"](np.broadcast_to(ground, (len(test), 21, *masks.shape[1:])), masks)
    return {"classes": jaccard, "segmentation": miou}


def run(what: str, folder: Path, kept: Path, edition: int) -> None:
    done: dict[str, dict[str, float]] = json.loads(kept.read_text()) if kept.exists() else {}
    learner = make(what, folder, edition)
    tasks = learner.tasks
    heads = [
        f"{name} ({learner.metrics[name].name if learner.metrics[name] else 'loss'})"
        for name in tasks
    ]
    print(
        f"{what}-small on {len(learner.split.validation)} test images, mean (standard deviation) of"
        f" {DRAWS} draws\n"
    )
    print(f"| labels each | {' | '.join(heads)} | s |\n|{'---|' * (len(heads) + 2)}", flush=True)
    if what == "voc":
        constant = constant_answers(learner)
        print(
            f"| best constant answer | {' | '.join(f'{constant[name]:.3f}' for name in tasks)} | |",
            flush=True,
        )
    for count in COUNTS[what]:
        rows = []
        for seed in range(DRAWS):
            key = f"{what}, {count} labels, seed {seed}, edition {edition}"
            if key not in done:
                labels = draw(learner.data, learner.split.train, dict.fromkeys(tasks, count), seed)
                begun = time.perf_counter()
                state = train(learner, labels, seed)
                seconds = time.perf_counter() - begun
                scores = {name: found.metric for name, found in measure(learner, state).items()}
                done[key] = {**scores, "s": seconds}
                kept.write_text(json.dumps(done, indent=1))
            rows.append([done[key][name] for name in (*tasks, "s")])
        table = np.array(rows)
        cells = [
            f"{m:.4f} ({s:.4f})"
            for m, s in zip(table.mean(axis=0), table.std(axis=0, ddof=1), strict=True)
        ]
        print(f"| {count} | {' | '.join(cells[:-1])} | {table[:, -1].mean():.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(FOLDERS))
    parser.add_argument("--data", type=Path, default=os.environ.get("ALLOT_TEST_DATA"))
    parser.add_argument(
        "--kept", type=Path, default=Path("vision.json"), help="finished trainings, to go on from"
    )
    parser.add_argument("--edition", type=int, help="of the set-up; the newest if left out")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data: where are VOC2012, taskonomy and weights?")
    torch.set_num_threads(given.threads)
    edition = given.edition or newest_edition(f"{given.what}-small")
    run(given.what, Path(given.data), given.kept, edition)


if __name__ == "__main__":
    main()
