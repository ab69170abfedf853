"""The judge of ways to plan: it finds what is there and nothing else, and reads what is kept."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.planted_surfaces import fill, fill_all, find_truth, make_setting

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from corpus.settings import CAMPAIGNS, FOLDER, list_settings
from corpus.tables import OPEN, TABLES

from allotment.corpus.judge import compare, compare_settings
from allotment.corpus.kept import Kept
from allotment.corpus.plans import (
    AGAIN,
    BEFORE,
    NEUTRAL_PLAN,
    PURCHASE,
    list_baselines,
    list_surface,
    make_problem,
    name_run,
    spend,
)
from allotment.corpus.replay import judge, judge_itself
from allotment.corpus.report import show_planted, show_room, show_ways
from allotment.corpus.setting import load_settings
from allotment.corpus.surface import open_surface, open_surfaces

REPORTED = Path(__file__).parents[2] / "docs" / "results" / "locked.md"


def test_half_a_point_less_is_called_worse_and_the_same_is_not_called_better(
    tmp_path: Path,
) -> None:
    surfaces = fill_all(tmp_path, noise=0.01)
    same, less = judge_itself(surfaces), judge_itself(surfaces, 0.5)
    found = [
        compare_settings(each.values, each.beside[NEUTRAL_PLAN], surfaces) for each in (same, less)
    ]
    assert [each.verdict for each in found] == ["open", "worse"]
    assert found[1].mean == pytest.approx(found[0].mean - 0.5)
    assert "called worse" in show_planted(surfaces)


def test_what_is_the_same_is_called_otherwise_as_rarely_as_said() -> None:
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(400):
        # settings of a data set lean to one side together
        lean = rng.normal(size=7)
        differences = {
            f"{place} {number}": (str(place), float(lean[place] + rng.normal()))
            for place in range(7)
            for number in range(4)
        }
        wrong += compare(differences).verdict != "open"
    assert 0.02 < wrong / 400 < 0.08


def test_a_data_set_counts_once_however_many_settings_it_has() -> None:
    many = {f"a {number}": ("a", 1.0) for number in range(50)}
    found = compare(many | {"b": ("b", -1.0), "c": ("c", 0.0)})
    assert found.mean == 0
    assert found.by_cluster == {"a": 1.0, "b": -1.0, "c": 0.0}
    assert compare(many).verdict == "open"  # one data set says nothing of others


def test_plans_between_trained_ones_are_read_as_far_off_as_is_said(tmp_path: Path) -> None:
    setting = make_setting()
    kept = fill(tmp_path, setting, 1e-4, 3)
    surface = open_surface(setting, CAMPAIGNS, kept)
    assert surface is not None
    worths = np.random.default_rng(3).uniform(0.3, 1.5, 3)
    before = np.array(find_truth((0, 0, 0), worths))
    rng = np.random.default_rng(1)
    off = []
    for _ in range(40):
        plan = spend(setting, rng.dirichlet(np.ones(3)))
        true = float(np.mean((np.array(find_truth(plan, worths)) / before - 1) * 100))
        off.append(surface.read(plan) - true)
    assert np.sqrt(np.mean(np.square(off))) < 1.5 * surface.error + 0.02
    assert surface.error < 0.05 * surface.range


def test_the_best_is_not_picked_by_what_scores_it(tmp_path: Path) -> None:
    setting = make_setting()
    kept = fill(tmp_path, setting, 0.05, 4)
    surface = open_surface(setting, CAMPAIGNS, kept)
    assert surface is not None
    picked = surface.values.mean(axis=0).max()
    assert surface.best[0] < picked  # the highest of many noisy means flatters itself


def test_the_best_is_near_the_truly_best_where_trainings_are_noisy(tmp_path: Path) -> None:
    noisy, luck = [], []
    for place in range(12):
        setting = make_setting("tox21", place)
        exact = open_surface(setting, CAMPAIGNS, fill(tmp_path / "exact", setting, 0.0, place))
        given = open_surface(setting, CAMPAIGNS, fill(tmp_path / "noisy", setting, 0.02, place))
        assert exact is not None
        assert given is not None
        truth = exact.means - exact.means.max()
        picked = given._read_from(given.means, given.plans, range(len(given.plans)))
        noisy.append(truth[picked.argmax()])
        luck.append(truth[given.means.argmax()])
    assert np.mean(noisy) > np.mean(luck)


def test_any_way_is_judged_by_what_is_kept(tmp_path: Path) -> None:
    surfaces = fill_all(tmp_path / "kept", noise=0.003)[:4]
    mine = tmp_path / "mine.py"
    mine.write_text("def plan(known):\n    return {task: 10 for task in known.setting.tasks}\n")
    found = [judge(name, surfaces) for name in ("neutral", "default", f"{mine}:plan")]
    neutral, default, poor = (
        compare_settings(each.values, each.beside[NEUTRAL_PLAN], surfaces) for each in found
    )
    assert neutral.mean == 0
    assert abs(default.mean) < 1.0
    assert poor.mean < -2  # hardly anything is bought
    assert found[0].trained == 4 * CAMPAIGNS
    assert found[2].read == 4 * CAMPAIGNS
    assert "| default |" in show_ways(found, surfaces)
    assert "| all | 4 |" in show_room(surfaces)


def test_what_was_cut_off_is_left_out_and_goes_on(tmp_path: Path) -> None:
    kept = Kept("some", tmp_path)
    kept.put(0, "plans", {"a": [1.0]})
    kept.put(0, "plans", {"b": [2.0]})
    kept.put(1, "plans", {"a": [3.0]})
    data = kept.path.read_bytes()
    kept.path.write_bytes(data[:-20])
    again = Kept("some", tmp_path)
    assert again.get(0, "plans") == {"a": [1.0], "b": [2.0]}
    assert again.get(1, "plans") is None
    again.put(2, "plans", {"a": [4.0]})
    assert Kept("some", tmp_path).get(2, "plans") == {"a": [4.0]}
    with gzip.open(kept.path, "rt") as file:
        assert sum(1 for _ in file) == 3


def test_surfaces_spend_the_money_and_hold_what_people_would_do_anyway() -> None:
    for setting in load_settings(FOLDER):
        plans = list_surface(setting)
        assert 2 * len(setting.tasks) < len(plans) <= 36
        assert len(set(plans)) == len(plans)
        problem = make_problem(setting)
        assert set(list_baselines(setting).values()) <= set(plans)
        for plan in plans:
            named = dict(zip(setting.tasks, plan, strict=True))
            assert problem.price(named) <= setting.budget
            assert all(count <= problem[task].pool for task, count in named.items())


def test_settings_are_as_the_protocol_says() -> None:
    settings = load_settings(FOLDER)
    assert len(settings) == 62
    assert sum(bool(each.odd) for each in settings) == 31
    assert {each.table for each in settings} == set(TABLES)
    for each in settings:
        assert 2 <= len(each.tasks) <= 8
        assert min(each.have) >= 60
        assert max(each.costs) <= 30 * min(each.costs)
        spent = sum(cost * have for cost, have in zip(each.costs, each.have, strict=True))
        assert 0.45 <= each.budget / spent <= 4


def test_nothing_of_a_locked_table_is_judged() -> None:
    assert {each.setting.table for each in open_surfaces(FOLDER)} == set(OPEN)
    assert len(OPEN) == len(TABLES) - 6


def test_nothing_is_concluded_from_a_locked_table_before_the_report() -> None:
    """Trainings may be kept, plans of a method may not: whoever plans with them has looked."""
    if "## The questions" in REPORTED.read_text(encoding="utf-8"):
        return
    for setting in load_settings(FOLDER):
        if setting.is_locked:
            kept = Kept(setting.name, FOLDER)
            names = {name for _, name in kept.found}
            assert names <= {"response", "plans", "seconds of response", "seconds of surfaces"}
            nothing = (0,) * len(setting.tasks)
            known = [name_run(nothing, each) for each in range(BEFORE)]
            known += [name_run(plan, PURCHASE) for plan in list_surface(setting)]
            known.append(name_run(list_baselines(setting)["neutral"], AGAIN))
            for (_, name), value in kept.found.items():
                assert name != "plans" or set(value) <= set(known)


@pytest.mark.long
@pytest.mark.skipif("ALLOT_TEST_DATA" not in os.environ, reason="needs the data sets")
def test_settings_are_drawn_again_as_they_are() -> None:
    assert list_settings() == load_settings(FOLDER)
