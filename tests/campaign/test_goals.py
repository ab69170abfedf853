"""Scores in the tasks' own metrics on every page of a campaign, and the money to reach one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import allot, begin, fine, refused, shorten

from allotment.campaign.campaign import Campaign
from allotment.campaign.goals import Goal, reach


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of two tasks with estimates."""
    folder = tmp_path_factory.mktemp("goals")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        begin(budget=60)
        shorten(Path("camp"), trainings=12)
        text = (Path("camp") / "campaign.toml").read_text()
        (Path("camp") / "campaign.toml").write_text(text.replace("steps = 3", "steps = 40"))
        fine("estimate", "camp", "--workers", 0)
    return folder


@pytest.fixture(autouse=True)
def camp(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def read(*args: object) -> Any:
    return json.loads(fine(*args, "--json"))


def test_every_page_states_the_same_scores() -> None:
    scores = read("plan", "camp")["scores"]
    assert {task: each["metric"] for task, each in scores.items()} == {
        "size": "mae",
        "look": "accuracy",
    }
    for task, each in scores.items():
        assert each["now"]["low"] <= each["now"]["middle"] <= each["now"]["high"], task
        assert each["level"] == 0.9
    assert scores["size"]["after"]["middle"] < scores["size"]["now"]["middle"]
    assert read("status", "camp")["scores"] == scores
    assert read("estimate", "camp")["scores"] == scores
    for page in (fine("plan", "camp"), fine("status", "camp"), fine("estimate", "camp")):
        figures = re.findall(r"\d\.\d+ \(-?\d\.\d+ to \d\.\d+\)", page)
        assert len(figures) >= 4, page
        assert "MAE" in page
        assert "accuracy" in page
    fine("report", "camp", "-o", "report.html")
    # there an interval stands below its figure
    words = " ".join(re.sub(r"<[^>]*>", " ", Path("report.html").read_text()).split())
    assert [each for each in figures if each not in words] == []


def test_the_report_says_what_would_help() -> None:
    fine("report", "camp", "-o", "report.html")
    assert "What helps" in Path("report.html").read_text()


def test_no_value_or_gain_is_without_its_unit() -> None:
    plan = fine("plan", "camp")
    assert "a value of" not in plan
    assert " gain  " not in plan.replace("mean gain", "")
    assert re.search(r"for a gain of \d\S* % of the score, in the mean over tasks", plan)
    assert "mean gain" in fine("frontier", "camp")


def test_the_least_money_reaches_a_score() -> None:
    stated = read("plan", "camp")["scores"]["size"]
    wanted = (stated["now"]["middle"] + stated["after"]["middle"]) / 2
    found = read("cheapest", "camp", "--reach", f"size:mae={wanted}")
    assert found["scores"]["size"]["after"]["middle"] <= wanted
    # one label of either less does not
    campaign = Campaign("camp")
    state = campaign.look()
    for task, count in found["counts"].items():
        if count:
            fewer = found["counts"] | {task: count - 2}
            assert state.forecast(fewer)["size"].after.middle > wanted
    assert "It takes" in fine("cheapest", "camp", "--reach", f"size={wanted}")


def test_several_goals_are_all_reached() -> None:
    stated = read("plan", "camp")["scores"]
    wanted = {
        task: each["now"]["middle"] + 0.4 * (each["after"]["middle"] - each["now"]["middle"])
        for task, each in stated.items()
    }
    campaign = Campaign("camp")
    state, proposal = campaign.plan()
    goals = [Goal(task, score) for task, score in wanted.items()]
    found = state.forecast(reach(state, proposal, goals).counts)
    assert all(goal.is_met(found[goal.task]) for goal in goals)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("size=0.0001", r"MAE 0.0001 is out of reach: it is .* now and, with all .* bought, "),
        ("siz=1", r"no task 'siz'; did you mean 'size'\?"),
        ("siz:mae=1", r"no task 'siz'; did you mean 'size'\?"),
        ("size", r"is not TASK=SCORE, such as size="),
        ("size=good", r"'good' is not a score"),
        ("size=nan", r"'nan' is not a score"),
        ("size:r2=0.8", r"size is planned by its mae, so that only mae can be asked for"),
    ],
)
def test_a_goal_that_cannot_be_is_refused(goal: str, words: str) -> None:
    code = 1 if "0001" in goal else 2
    assert re.search(words, refused(code, "cheapest", "camp", "--reach", goal))


def test_a_gain_is_asked_for_by_its_name() -> None:
    """0.8 was once read as a gain of 0.8 %."""
    result = allot("cheapest", "camp", "--target", "0.8", "--task", "size")
    assert result.exit_code == 2
    assert "targets are scores: --reach TASK=SCORE" in result.output
    assert "a gain of" in fine("cheapest", "camp", "--gain", "0.5")
    assert "for size" in fine("cheapest", "camp", "--gain", "0.5", "--task", "size")
    assert allot("cheapest", "camp").exit_code == 2
