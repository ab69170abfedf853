"""Which learner trains in a campaign, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.campaigns import allot, begin, fine, refused, rows, write

from allotment.campaign.campaign import Campaign
from allotment.learners.perceptrons import PerceptronsLearner
from allotment.learners.sklearn_learner import SklearnLearner
from allotment.learners.torch_learner import TorchLearner
from allotment.settings.settings import parse_settings

TASKS = ["--targets", "size,look", "--cost", "size=1", "--cost", "look=5", "--budget", 90]


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "campaign.toml").read_text()
    assert old in text
    (folder / "campaign.toml").write_text(text.replace(old, new))


def test_a_new_table_has_members_and_says_what_trains() -> None:
    write(Path("table.csv"), rows())
    said = fine("init", "camp", "--root", "table.csv", *TASKS)
    assert "the built-in perceptrons train; to compare them" in said
    assert "allot learners camp" in said
    # where nothing trains, nothing is said of what does
    untrained = fine("init", "plain", "--root", "table.csv", *TASKS, "--method", "neutral")
    assert "perceptrons" not in untrained
    settings = parse_settings(Path("camp/campaign.toml").read_text())
    assert (settings.training["members"], settings.training["steps"]) == (4, 150)
    campaign = Campaign("camp")
    assert isinstance(campaign.set_up(campaign.look()).learner, PerceptronsLearner)


def test_a_campaign_without_members_trains_as_it_did() -> None:
    folder = begin()
    change(folder, "members = 4\n", "")
    campaign = Campaign(folder)
    state = campaign.look()
    assert type(campaign.set_up(state).learner) is TorchLearner
    recipe = campaign.list_jobs(state)[0].needs["recipe"]["training"]
    assert set(recipe) == {"network", "steps", "device", "precision"}


def test_members_are_part_of_the_names_of_jobs() -> None:
    folder, keys = begin(), set()
    for now, then in (("members = 4", "members = 3"), ("members = 3", "members = 1")):
        campaign = Campaign(folder)
        keys.add(campaign.list_jobs(campaign.look())[0].key)
        change(folder, now, then)
    campaign = Campaign(folder)
    keys.add(campaign.list_jobs(campaign.look())[0].key)
    assert len(keys) == 3


def test_estimates_with_an_estimator_of_scikit_learn() -> None:
    folder = begin("camp", "--learner", "sklearn:Ridge")
    change(folder, "seed = 0", "trainings = 6\nseed = 0")
    assert "steps" not in parse_settings((folder / "campaign.toml").read_text()).training
    campaign = Campaign(folder)
    assert isinstance(campaign.set_up(campaign.look()).learner, SklearnLearner)
    needs = campaign.list_jobs(campaign.look())[0].needs
    assert needs["learner"].startswith("sklearn:Ridge of scikit-learn 1.")
    assert needs["folds"] == 4
    found = json.loads(fine("estimate", folder, "--workers", 0, "--json"))
    about = found["estimates"]["about"]["measured"]["response"]
    assert all(len(row) == 2 for row in about["scores"])
    fine("plan", folder)


def test_the_option_goes_before_the_settings() -> None:
    folder = begin()
    change(folder, "seed = 0", "trainings = 4\nseed = 0")
    campaign = Campaign(folder, learner="sklearn:DecisionTree")
    job = campaign.list_jobs(campaign.look())[0]
    assert job.needs["learner"].startswith("sklearn:DecisionTree of")


def test_auto_compares_and_writes_the_best() -> None:
    write(Path("table.csv"), rows())
    said = fine("init", "camp", "--root", "table.csv", *TASKS, "--learner", "auto", "--steps", 3)
    text = Path("camp/campaign.toml").read_text()
    learner = parse_settings(text).learner
    assert learner.startswith("sklearn:")  # three steps teach a perceptron little
    assert "of the best constant answer's error on" in said
    assert "the built-in perceptrons: " in said


def test_auto_with_too_few_labels_says_so() -> None:
    write(Path("table.csv"), rows(every=(20, 20)))
    said = fine("init", "camp", "--root", "table.csv", *TASKS, "--learner", "auto", "--steps", 3)
    assert "no task has 8 labels to compare learners on, so the built-in perceptrons train" in said
    assert parse_settings(Path("camp/campaign.toml").read_text()).learner == "built-in"


def test_learners_are_compared_in_a_table_and_in_json() -> None:
    folder = begin()
    said = fine("learners", folder)
    assert "sklearn:HistGradientBoosting" in said
    assert 'write learner = "sklearn:' in said
    found = json.loads(fine("learners", folder, "--json"))
    assert set(found) == {"best", "skills", "seconds", "labels"}
    change(folder, 'network = "usual"', f'learner = "{found["best"]}"\nnetwork = "usual"')
    assert f"This campaign trains with {found['best']}, and should." in fine("learners", folder)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--learner", "sklearn:HistGradientBosting"], "did you mean 'HistGradientBoosting'"),
        (["--learner", "sklearn:../mine"], "there is no '../mine'; known: HistGradientBoosting"),
        (["--learner", "mine.py:make"], "is code, which no file may name"),
        (["--learner", "sklearn:Ridge", "--method", "taba"], "'taba' looks a few steps ahead"),
        (["--learner", "no-such"], "unknown 'no-such'"),
    ],
)
def test_what_can_not_train_is_refused_before_anything_is_written(
    options: list[str], words: str
) -> None:
    write(Path("table.csv"), rows())
    assert words in refused(2, "init", "camp", "--root", "table.csv", *TASKS, *options)
    assert not Path("camp").exists()


def test_wrong_names_are_told_with_their_line() -> None:
    folder = begin()
    change(folder, "members = 4", 'members = 99\nlearner = "sklearn:os"')
    said = allot("check", folder).output
    assert "training: members: 99 is above 50" in said
    assert "training: learner: there is no 'os'" in said
    change(folder, 'members = 99\nlearner = "sklearn:os"', "members = 4")
    assert "auto is settled once" in refused(2, "estimate", folder, "--learner", "auto")


def test_members_of_pictures_are_refused() -> None:
    tasks = ["--targets", "depth", "--have", "depth=12", "--budget", 300, "--steps", 4]
    fine("init", "scenes", "--data", "scenes", *tasks, "--set", "count=40")
    text = Path("scenes/campaign.toml").read_text()
    assert "members" not in text
    change(Path("scenes"), "steps = 4", "steps = 4\nmembers = 4")
    campaign = Campaign("scenes")
    with pytest.raises(Exception, match="members: task 'depth' has a label for each pixel"):
        campaign.set_up(campaign.look())
