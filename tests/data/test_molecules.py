"""Real tables: Tox21 and QM8, where ALLOT_TEST_DATA says that there are copies of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from allotment.data.labels import draw, split
from allotment.data.table import read_table
from allotment.learners.learner import train_many
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

FOLDER = Path(os.environ.get("ALLOT_TEST_DATA", "nowhere")) / "molecules"
DRAWS = 4

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="ALLOT_TEST_DATA holds no molecules")


def learner_for(file: str, tasks: list[str], steps: int, metric: str) -> TorchLearner:
    data = read_table(FOLDER / file, targets=tasks, drop=["smiles"])
    data = replace(data, targets=tuple(replace(target, metric=metric) for target in data.targets))
    return TorchLearner(
        data, split(data, 0, validation=0.2, test=0.1), Recipe(steps=steps, batch_size=64)
    )


@pytest.mark.long
def test_cheap_labels_of_qm8_help_the_dear_ones() -> None:
    """The error on a dear target with few labels falls by more than noise when the cheap level of
    theory has many."""
    learner = learner_for("qm8_morgan1024.npz", ["E1-CC2", "E1-PBE0"], steps=300, metric="mae")
    wanted = {"E1-CC2": 300, "E1-PBE0": 6000}
    runs = [(draw(learner.data, learner.split.train, wanted, seed), seed) for seed in range(DRAWS)]
    together = [learner.score(state, "E1-CC2").metric for state in train_many(learner, runs)]
    alone = train_many(learner, [(labels.only("E1-CC2"), seed) for labels, seed in runs])
    saved = np.array([learner.score(state, "E1-CC2").metric for state in alone]) - np.array(
        together
    )
    assert saved.mean() > 3 * saved.std(ddof=1) / np.sqrt(DRAWS)
    assert saved.min() > 0


@pytest.mark.long
def test_more_labels_of_tox21_give_better_answers() -> None:
    learner = learner_for("tox21_morgan1024.npz", ["NR-AhR", "SR-MMP"], steps=200, metric="roc_auc")
    means = []
    for count in (75, 1000):
        wanted = dict.fromkeys(learner.tasks, count)
        runs = [
            (draw(learner.data, learner.split.train, wanted, seed), seed) for seed in range(DRAWS)
        ]
        states = train_many(learner, runs)
        means.append(
            [
                np.mean([learner.score(state, task).metric for state in states])
                for task in learner.tasks
            ]
        )
    assert (np.array(means[1]) > np.array(means[0]) + 0.03).all(), means
    assert min(means[1]) > 0.75
