"""Loss weights: one lambda for probing and for training, a sweep that finds the planted one, and
what the command writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import planted_letter
from helpers.campaigns import begin, fine, refused
from helpers.learners import make_table
from helpers.planted_letter import WeighedLearner

from allotment.advice.loss_weights import Weights, sweep_loss_weights
from allotment.campaign.campaign import Campaign
from allotment.data.labels import Labels, draw, split
from allotment.errors import InputError
from allotment.estimates.probes import probe_training
from allotment.learners.learner import train
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner
from allotment.settings.settings import parse_settings, set_task_keys

WEIGHED = f"{planted_letter.__file__}:make_weighed"
LABELS = Labels({"size": range(80), "look": range(40, 120)})


def make(weights: Weights) -> WeighedLearner:
    return WeighedLearner(weights=dict(weights))


# --- one lambda ---


def test_probes_and_trainings_weigh_losses_alike() -> None:
    """A task whose loss counts nothing moves nothing, neither in a look nor in a training."""
    data = make_table(120)
    targets = tuple(
        replace(each, loss_weight=0.0) if each.name == "many" else each for each in data.targets[:2]
    )
    data = data.with_targets(targets)
    parts = split(data, 0, 0.25, 0.1)
    learner = TorchLearner(data, parts, Recipe(steps=12, batch_size=8, weight_decay=0.0))
    labels = draw(data, parts.train, {"yes": 30, "many": 30}, 0)
    probes, _ = probe_training(learner, labels, 0, every=5, steps=2)
    numerators = probes.gains("loss")[:, 1, 0]  # what a mini-batch of many does for yes
    assert numerators == pytest.approx(np.zeros(2), abs=1e-6)
    assert np.abs(probes.gains("loss")[:, 0, 0]).max() > 1e-4
    both, alone = (
        learner.score(train(learner, some, 0), "yes").loss for some in (labels, labels.only("yes"))
    )
    assert both == pytest.approx(alone, abs=1e-6)


# --- the sweep ---


def test_a_sweep_finds_the_planted_weight() -> None:
    found = sweep_loss_weights(make, LABELS, {"size": 1.0, "look": 1.0}, seed=2)
    assert [dict(each) for each in found.trials] == [
        {"size": 1.0, "look": 1.0},
        {"size": 0.3, "look": 1.0},
        {"size": 3.0, "look": 1.0},
        {"size": 1.0, "look": 0.3},
        {"size": 1.0, "look": 3.0},
    ]
    assert found.gains.shape == (5, 4, 2)
    assert found.means[0] == 0
    assert found.changed == {"size": 3.0}
    # importance is that of the tasks in D_T: where the class counts nothing, nothing changes
    other = sweep_loss_weights(
        make, LABELS, {"size": 1.0, "look": 1.0}, importance={"size": 1.0, "look": 0.0}
    )
    assert other.changed == {}
    told = json.loads(json.dumps(found.to_dict()))
    assert told["advised"] == {"size": 3.0, "look": 1.0}


def test_a_lead_within_the_noise_changes_nothing() -> None:
    found = sweep_loss_weights(make, LABELS, {"size": 3.0, "look": 1.0})
    assert found.best == 0
    noisy = replace(found, gains=np.random.default_rng(0).normal(size=found.gains.shape))
    assert noisy.means.max() > 0
    assert noisy.changed == {}


def test_what_cannot_be_swept_is_named() -> None:
    with pytest.raises(InputError, match="1 task need none"):
        sweep_loss_weights(make, LABELS, {"size": 1.0})
    with pytest.raises(InputError, match="1 is not a number of 0 or more other than 1"):
        sweep_loss_weights(make, LABELS, {"size": 1.0, "look": 1.0}, factors=(1, 2))


# --- the command ---


@pytest.fixture
def _empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_empty")
def test_the_command_says_the_table_and_writes_only_when_asked() -> None:
    folder = begin("camp")
    before = (folder / "campaign.toml").read_text()
    said = fine("loss-weights", "camp", "--learner", WEIGHED)
    assert "size 3" in said
    assert "Better: size: loss_weight = 3." in said
    assert (folder / "campaign.toml").read_text() == before
    said = fine("loss-weights", "camp", "--learner", WEIGHED, "--write")
    assert "Written into campaign.toml (size: loss_weight = 3)" in said
    after = (folder / "campaign.toml").read_text()
    assert after == before.replace('name = "size"\n', 'name = "size"\nloss_weight = 3\n')
    assert Campaign(folder).look().settings.targets["size"]["loss_weight"] == 3.0
    again = json.loads(fine("loss-weights", "camp", "--learner", WEIGHED, "--write", "--json"))
    assert again["best"] == 0
    assert not again["written"]
    assert (folder / "campaign.toml").read_text() == after


@pytest.mark.usefixtures("_empty")
def test_the_built_in_learner_is_swept_too() -> None:
    begin("camp")
    found = json.loads(fine("loss-weights", "camp", "--times", "10", "--json"))
    assert [each["loss_weights"] for each in found["trials"]] == [
        {"size": 1.0, "look": 1.0},
        {"size": 10.0, "look": 1.0},
        {"size": 1.0, "look": 10.0},
    ]
    gains = [each["gains"] for each in found["trials"]]
    assert gains[0] == {"size": 0.0, "look": 0.0}
    assert gains[1] != gains[0]  # the losses are weighed, so that other weights train otherwise
    said = refused(2, "loss-weights", "camp", "--learner", "sklearn:Ridge")
    assert "sklearn:Ridge adds no losses up" in said


@pytest.mark.usefixtures("_empty")
def test_keys_of_tasks_are_changed_where_they_stand() -> None:
    text = (begin("camp") / "campaign.toml").read_text()
    once = set_task_keys(text, "loss_weight", {"look": 2.0, "size": 0.5})
    twice = set_task_keys(once, "loss_weight", {"size": 4.0})
    targets = parse_settings(twice).targets
    assert (targets["size"]["loss_weight"], targets["look"]["loss_weight"]) == (4.0, 2.0)
    assert twice == once.replace("loss_weight = 0.5", "loss_weight = 4")
