"""What one real step of the paper's set-ups takes: DeepLab with a whole ResNet-50, forward and
back.

python benchmarks/paper_step.py                           voc-paper, 513-px crops, 1 of each task
python benchmarks/paper_step.py --crop 321 --batch-size 8 as the set-up itself has it
python benchmarks/paper_step.py --setup taskonomy-paper   whole views of 256 px, five tasks

Pictures are noise, since what they show takes no time; each task has a mini-batch of its own in a
step. Wall and CPU seconds of a step after the first one are told, the most memory that the process
had, and the steps of a training on as many labels as the paper begins with.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import replace

import numpy as np

from allotment.data.dataset import PIXEL_KINDS, ArrayData, Target
from allotment.data.labels import Labels, split
from allotment.data.taskonomy import TASKONOMY_TARGETS
from allotment.data.voc import VOC_TARGETS
from allotment.learners.setups import SETUPS, make_learner

TARGETS = {"voc-paper": VOC_TARGETS, "taskonomy-paper": TASKONOMY_TARGETS}
HAVE = {"voc-paper": 300, "taskonomy-paper": 10_000}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--setup", choices=tuple(TARGETS), default="voc-paper")
    parser.add_argument("--crop", type=int, help="pixels; 513 for voc-paper unless said")
    parser.add_argument("--batch-size", type=int, default=1, help="images of each task")
    parser.add_argument("--steps", type=int, default=1, help="that are timed")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    setup = SETUPS[given.setup]
    crop = given.crop if given.crop is not None else 513 if setup.recipe.crop else 0
    recipe = replace(
        setup.recipe, crop=crop, batch_size=given.batch_size, device=given.device, workers=0
    )
    data = make_noise(TARGETS[given.setup], 2 * given.batch_size, setup.side)
    learner = make_learner(replace(setup, recipe=recipe), data=data, parts=split(data, 0, 0, 0))
    labels = Labels({task: range(data.size) for task in learner.tasks})
    state = learner.step(learner.start(labels, 0), learner.tasks)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(given.steps):
        state = learner.step(state, learner.tasks)
    float(next(state.network.parameters()).detach().sum())  # a GPU is waited for
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    seen = f"crops of {crop} px" if crop else f"views of {setup.side} px"
    print(f"{given.setup}: {seen}, {given.batch_size} of each of {len(learner.tasks)} tasks")
    print(f"a step: {wall / given.steps:.2f} s, {cpu / given.steps:.2f} s of CPU time")
    scale = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
    print(f"memory at most: {memory / 2**30:.1f} GB")
    steps = setup.recipe.epochs * -(-HAVE[given.setup] // setup.recipe.batch_size)
    print(
        f"a training on {HAVE[given.setup]} labels of each task: {steps} steps of the set-up's own"
    )


def make_noise(targets: tuple[Target, ...], count: int, side: int) -> ArrayData:
    """Pictures with labels of every kind that a set-up has."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, 3, side, side)).astype(np.uint8)
    labels = {}
    for target in targets:
        if target.kind == "multilabel":
            found = rng.integers(0, 2, (count, len(target.classes))).astype(np.float32)
        elif target.kind == "segmentation":
            found = rng.integers(0, len(target.classes), (count, side, side)).astype(np.uint8)
        else:
            assert target.kind in PIXEL_KINDS
            form = (count, 3, side, side) if target.kind == "normals" else (count, side, side)
            found = rng.random(form).astype(np.float32)
        labels[target.name] = found
    return ArrayData("noise", targets, images, labels)


if __name__ == "__main__":
    main()
