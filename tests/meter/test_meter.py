"""Those who wait are told: at once, and what to expect."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from helpers.campaigns import allot, begin, fine, rows, shorten

from allotment import meter
from allotment.advice.price import TIMED, WARM, time_alone
from allotment.campaign.campaign import Campaign
from allotment.data.labels import Labels
from allotment.meter import Meter


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_first_word_comes_soon_where_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(meter, "FIRST_WORD", 0.01)
    with Meter("reading"):
        time.sleep(0.1)
    assert capsys.readouterr().err == "reading ...\n"
    with Meter("trainings", seconds=30) as shown:
        shown(0, 60)
        time.sleep(0.1)
    assert capsys.readouterr().err == "trainings: 0 of 60, about 30 s left\n"
    # what is over soon, or speaks for itself, needs none
    with Meter("trainings") as shown:
        shown(0, 2)
        shown(1, 2)
        time.sleep(0.1)
    assert capsys.readouterr().err.splitlines()[0].startswith("trainings: 1 of 2")
    monkeypatch.setattr(meter, "FIRST_WORD", 60.0)
    with Meter("reading"):
        pass
    assert capsys.readouterr().err == ""


class Slow:
    """A learner whose steps take the time that a clock says."""

    tasks = ("a", "b")

    def __init__(self, steps: int):
        self.count, self.now = steps, 0.0

    def steps(self, labels: Labels) -> int:
        return self.count

    def start(self, labels: Labels, seed: int) -> int:
        return 0

    def step(self, state: int, tasks: tuple[str, ...]) -> int:
        self.now += 0.5
        return state + 1


def test_a_training_is_foretold_by_a_few_of_its_steps() -> None:
    learner, labels = Slow(300), Labels({"a": [0, 1], "b": [2]})
    taken = time_alone(learner, labels, 0, clock=lambda: learner.now)  # type: ignore[arg-type]
    assert taken == pytest.approx(150.0)
    assert learner.now == 0.5 * (WARM + TIMED)
    # where there are hardly more steps, training is as quick as telling how long it takes
    few = Slow(5)
    assert time_alone(few, labels, 0, clock=lambda: few.now) == 0.0  # type: ignore[arg-type]
    few.trains_whole = True  # type: ignore[attr-defined]
    few.count = 300
    assert time_alone(few, labels, 0) == 0.0  # type: ignore[arg-type]


def test_train_and_evaluate_say_beforehand_how_long_they_take() -> None:
    folder = begin("camp", table=rows(40))
    path = folder / "campaign.toml"
    path.write_text(re.sub("steps = .*", "steps = 20", path.read_text()))
    told = allot("train", folder).stderr
    assert re.search(r"Training on 34 labels .*\nThat takes about \d+ s\.\n", told)
    shorten(folder, method='"neutral"', trainings=8)
    oracle = rows(60, every=(1, 1))
    other = begin("full", "--have", "size=12", "--have", "look=12", table=oracle, budget=20)
    shorten(other, method='"neutral"')
    told = allot("evaluate", other, "--repeats", 2, "--workers", 0).stderr
    assert re.search(r"Trying out plans: \d+ trainings, about \d+ s\.", told)
    # what is done needs no time
    campaign = Campaign(other)
    assert campaign.time_plans((), 2, workers=0) == (0, 0.0)
    assert "Trying out plans" not in allot("evaluate", other, "--repeats", 2).stderr


def test_learners_are_counted_while_they_are_compared() -> None:
    folder = begin("camp", table=rows(60))
    told = allot("learners", folder).stderr
    assert "comparing learners: 3 of 3" in told
    assert fine("status", folder)
