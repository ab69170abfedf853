"""Small set-ups beside their first edition: `python experiments/setups.py run voc --data FOLDER`,
`... time voc --data FOLDER`, then `... tell`.

The first edition and the newest (or those that `--editions` names) train on the same draws of
labels and are scored on the same validation part, at full size. FOLDER holds VOC2012, taskonomy and
weights. Every training is a file in `--kept`: stopped, it goes on; several may run at once. For CPU
seconds the editions take turns in one process, some steps each, so that other work on the machine
meets both alike.

The protocol, settled before any of these draws was trained on: draws 0 to 4 (set-ups were settled
on draws 100 and up), the split of seed 0, COUNTS labels. A difference is paired by draw, in the
direction in which more is better. An edition is no worse at a task if the 95 % t interval of the
mean difference does not lie below zero; whether the interval also excludes a loss of MARGIN of the
first edition's mean score is told beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from allotment.data.labels import Labels, draw
from allotment.learners.editions import FIRST, newest_edition
from allotment.learners.learner import Measure, follow, measure, train
from allotment.learners.setups import find_setup, make_learner
from allotment.learners.torch_learner import TorchLearner

FOLDERS = {"voc": "VOC2012", "taskonomy": "taskonomy"}
WEIGHTS = "weights/mobilenetv1_1.0_imagenet_no_pw13_fp16.npz"
COUNTS = {
    "voc": {
        "few": {"classes": 80, "segmentation": 80},
        "many": {"classes": 1600, "segmentation": 160},
    },
    "taskonomy": {"few": 20, "some": 80, "many": 300},
}
"""labels of each task; a single number is for all of them"""
TIMED_STEPS = 20
"""of one edition before it is the other one's turn"""
MARGIN = 0.02
CRITICAL = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""of Student's t at 95 %, by the number of draws"""


class Bench:
    """The learners of editions, each made when it is first wanted."""

    def __init__(self, what: str, folder: Path):
        self._what, self._folder = what, folder
        self._learners: dict[int, TorchLearner] = {}
        self.seen: dict[int, tuple[int, float]] = {}
        """of each edition the pictures whose frozen features were computed, and CPU seconds"""

    def learner(self, edition: int) -> TorchLearner:
        if edition not in self._learners:
            setup = find_setup(f"{self._what}-small", edition)
            root = self._folder / FOLDERS[self._what]
            self._learners[edition] = make_learner(setup, root, self._folder / WEIGHTS)
        return self._learners[edition]

    def warm(self, edition: int, labels: Labels) -> None:
        """Compute once what a campaign computes once: frozen features, and labels from files."""
        learner = self.learner(edition)
        parts = [learner.split.validation, *(labels[task].instances for task in learner.tasks)]
        wanted = np.unique(np.concatenate(parts))
        begun = time.process_time()
        for start in range(0, len(wanted), 64):
            learner.look_at(wanted[start : start + 64])
        self.seen[edition] = (len(wanted), time.process_time() - begun)


def list_editions(given: argparse.Namespace, what: str) -> tuple[int, ...]:
    """The first and the newest, unless others are asked for."""
    return tuple(given.editions or (FIRST, newest_edition(f"{what}-small")))


def draw_labels(learner: TorchLearner, what: str, counts: str, seed: int) -> Labels:
    wanted = COUNTS[what][counts]
    if isinstance(wanted, int):
        wanted = dict.fromkeys(learner.tasks, wanted)
    return draw(learner.data, learner.split.train, wanted, seed)


def train_once(bench: Bench, what: str, counts: str, seed: int, edition: int) -> dict[str, object]:
    learner = bench.learner(edition)
    labels = draw_labels(learner, what, counts, seed)
    bench.warm(edition, labels)
    begun = time.process_time()
    state = train(learner, labels, seed)
    trained = time.process_time()
    found = measure(learner, state)
    ended = time.process_time()
    return {
        "scores": {task: _sign(each) * each.metric for task, each in found.items()},
        "train": trained - begun,
        "score": ended - trained,
        "warm": bench.seen[edition],
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }


def _sign(found: Measure) -> float:
    return 1.0 if found.higher_is_better else -1.0


def run(given: argparse.Namespace) -> None:
    given.kept.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.what, given.data)
    for counts in given.counts or COUNTS[given.what]:
        for seed in given.draws:
            # in turns, so that neither is always first
            for edition in sorted(list_editions(given, given.what), reverse=seed % 2 == 1):
                path = given.kept / f"{given.what}-{counts}-{seed}-{edition}.json"
                if path.exists():
                    continue
                found = train_once(bench, given.what, counts, seed, edition)
                path.write_text(json.dumps(found, indent=1))
                print(path.stem, f"{found['train']:.1f} s", flush=True)


def take_time(given: argparse.Namespace) -> None:
    """CPU seconds of a step and of scoring all tasks, in turns."""
    bench, counts = Bench(given.what, given.data), next(iter(COUNTS[given.what]))
    states, editions = {}, list_editions(given, given.what)
    for edition in editions:
        learner = bench.learner(edition)
        labels = draw_labels(learner, given.what, counts, 0)
        bench.warm(edition, labels)
        states[edition] = follow(learner, learner.start(labels, 0), learner.tasks, 2)
    spent = np.zeros((given.rounds, len(editions), 2))
    for number in range(given.rounds):
        for at, edition in sorted(enumerate(editions), reverse=number % 2 == 1):
            learner, begun = bench.learner(edition), time.process_time()
            states[edition] = follow(learner, states[edition], learner.tasks, TIMED_STEPS)
            stepped = time.process_time()
            measure(learner, states[edition])
            spent[number, at] = (stepped - begun) / TIMED_STEPS, time.process_time() - stepped
    for at, edition in enumerate(editions):
        steps = int(bench.learner(edition).recipe.steps or 0)
        whole = steps * spent[:, at, 0] + spent[:, at, 1]
        pictures, seconds = bench.seen[edition]
        print(
            f"{given.what}, edition {edition}: {spent[:, at, 0].mean() * 1000:.0f} ms a step,"
            f" {spent[:, at, 1].mean():.1f} s to score; a training of {steps} steps"
            f" {whole.mean():.1f} s ({whole.min():.1f} to {whole.max():.1f}); once"
            f" {seconds / pictures * 1000:.0f} ms a picture"
        )


def compare(old: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """The mean paired difference, and half of its 95 % t interval."""
    gaps = new - old
    return float(gaps.mean()), float(CRITICAL[len(gaps)] * gaps.std(ddof=1) / len(gaps) ** 0.5)


def judge(mean: float, half: float, margin: float) -> str:
    if mean + half < 0:
        return "worse"
    if mean - half > 0:
        return "better"
    return "no worse, within the margin" if mean - half > -margin else "no worse"


def tell(given: argparse.Namespace) -> None:
    """The tables of all trainings that are there in both editions."""
    for what, sizes in COUNTS.items():
        editions = list_editions(given, what)
        for counts in sizes:
            names = [f"{what}-{counts}-{seed}" for seed in given.draws]
            pairs = [_read_pair(given.kept, name, editions) for name in names]
            _tell_setting(what, counts, editions, [pair for pair in pairs if pair is not None])


def _read_pair(kept: Path, name: str, editions: Sequence[int]) -> list[Mapping[str, object]] | None:
    paths = [kept / f"{name}-{edition}.json" for edition in editions]
    if not all(path.exists() for path in paths):
        return None
    return [json.loads(path.read_text()) for path in paths]


def _tell_setting(
    what: str, counts: str, editions: Sequence[int], pairs: list[list[Mapping[str, object]]]
) -> None:
    print(f"\n{what}, {counts} ({COUNTS[what][counts]}): {len(pairs)} draws")
    if len(pairs) < 2:
        return
    heads = " | ".join(f"edition {each}" for each in editions)
    print(f"\n| task | {heads} | difference | |\n|---|---|---|---|---|")
    for task in pairs[0][0]["scores"]:
        old, new = (np.array([pair[at]["scores"][task] for pair in pairs]) for at in (0, 1))
        mean, half = compare(old, new)
        verdict = judge(mean, half, MARGIN * abs(float(old.mean())))
        cells = f"{abs(old.mean()):.4f} | {abs(new.mean()):.4f} | {mean:+.4f} ± {half:.4f}"
        print(f"| {task} | {cells} | {verdict} |")
    for at, edition in enumerate(editions):
        spent = np.array([[pair[at]["train"], pair[at]["score"]] for pair in pairs])
        (least, _), (most, _) = spent.min(axis=0), spent.max(axis=0)
        mean = spent.mean(axis=0)
        print(
            f"\nedition {edition}: {mean[0]:.1f} s of CPU a training ({least:.1f} to {most:.1f}),"
            f" {mean[1]:.1f} s to score it"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    running, timing, telling = (verbs.add_parser(verb) for verb in ("run", "time", "tell"))
    for each, does in ((running, run), (timing, take_time), (telling, tell)):
        each.set_defaults(does=does)
    for each in (running, telling):
        each.add_argument("--kept", type=Path, default=Path("setups"), help="finished trainings")
        each.add_argument("--draws", type=int, nargs="+", default=range(5))
    for each in (running, timing, telling):
        each.add_argument("--editions", type=int, nargs="+", help="an earlier one and a later one")
    for each in (running, timing):
        each.add_argument("what", choices=list(FOLDERS))
        each.add_argument("--data", type=Path, default=os.environ.get("ALLOT_TEST_DATA"))
    timing.add_argument("--rounds", type=int, default=4)
    running.add_argument("--counts", nargs="+", help="few, some or many; all if left out")
    given = parser.parse_args()
    if given.does is not tell and given.data is None:
        parser.error("--data: where are VOC2012, taskonomy and weights?")
    torch.set_num_threads(1)
    given.does(given)


if __name__ == "__main__":
    main()
