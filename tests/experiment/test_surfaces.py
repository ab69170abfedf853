"""What is on record of experiments, judged as a part of the corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.planted_record import Planted

from allotment.corpus.plans import NEUTRAL_PLAN, list_baselines
from allotment.corpus.replay import judge
from allotment.corpus.report import show_setting, show_ways
from allotment.errors import InputError
from allotment.experiment.case import LARGER, SMALL, Case, find_case
from allotment.experiment.outcomes import find_mean
from allotment.experiment.surfaces import RecordedSurface, find_totals, open_case

CASE = find_case("voc", SMALL)
WORTHS = {"classes": 0.0, "segmentation": 4.0}
"""masks alone count, at any price"""


def open_planted(planted: Planted, folder: Path) -> dict[str, RecordedSurface]:
    found = open_case(planted.case, SMALL, planted.save(folder, SMALL))
    return {each.setting.name: each for each in found.surfaces}


def find_truth(case: Case, plan: tuple[int, ...]) -> float:
    shares = 1 + np.array(plan) / case.have
    return float(np.mean(np.log2(shares) * list(WORTHS.values())))


def write_plan(folder: Path, task: str) -> str:
    """A researcher's own way: all of the money on one task."""
    path = folder / f"{task}.py"
    path.write_text(
        "def plan(known):\n"
        f"    task = known.problem[{task!r}]\n"
        "    return {task.name: min(task.pool, int(known.problem.budget // task.cost))}\n"
    )
    return f"{path}:plan"


def test_any_way_is_judged_at_every_set_of_prices(tmp_path: Path) -> None:
    planted = Planted(CASE, WORTHS, noise=0.3)
    for prices in CASE.prices:
        planted.train_out(prices)
    planted.measure(range(CASE.seed_sets))
    surfaces = open_planted(planted, tmp_path)
    assert list(surfaces) == [f"voc-small {each}" for each in ("1:3", "1:20", "1:30", LARGER)]
    masks, classes = (write_plan(tmp_path, task) for task in ("segmentation", "classes"))
    good, poor = (judge(name, list(surfaces.values())) for name in (masks, classes))
    for name, surface in surfaces.items():
        assert good.regrets[name] < 15 < 70 < poor.regrets[name]
        rows = show_setting([good, poor], surface).splitlines()
        if name == "voc-small 1:3":  # at other prices neutral buys almost as many masks
            assert rows[2].count("**+") == 2  # over neutral and equal budget
        assert rows[3].count("**-") == 2
        for base in (NEUTRAL_PLAN, "equal budget"):
            rows = good.rows[name]
            true = find_truth(CASE, rows[0].counts) - find_truth(
                CASE, list_baselines(surface.setting)[base]
            )
            leads = np.array([[row.value - row.beside[base]] for row in rows])
            assert find_mean(leads).value == pytest.approx(true, abs=0.4)
    # prices of one data set count as one
    assert show_ways([good], list(surfaces.values())).count("± inf") == 4


def test_intervals_are_those_of_tables(tmp_path: Path) -> None:
    planted = Planted(CASE, WORTHS, noise=0.5)
    planted.train_out(CASE.prices[1])
    (surface,) = open_planted(planted, tmp_path).values()
    bases = list_baselines(surface.setting)
    apart = find_totals(surface.book, bases["equal budget"]) - find_totals(
        surface.book, bases["neutral"]
    )
    found = find_mean(apart)
    table = show_setting([judge("equal budget", [surface])], surface)
    assert f"{found.value:+.2f} ± {found.reach:.2f}" in table


def test_what_is_read_is_not_called_better_or_worse_within_its_error(tmp_path: Path) -> None:
    planted = Planted(CASE, WORTHS, noise=0.5)
    planted.train_out(CASE.prices[1])
    planted.measure(range(CASE.seed_sets))
    (surface,) = open_planted(planted, tmp_path).values()
    mine = tmp_path / "mine.py"
    neutral = list_baselines(surface.setting)["neutral"]
    mine.write_text(f"def plan(known):\n    return {{'classes': {neutral[0] - 1}}}\n")
    (found,) = show_setting([judge(f"{mine}:plan", [surface])], surface).splitlines()[2:]
    reach = float(found.split("±")[1].split("|")[0].strip("* "))
    assert reach > 1.96 * surface.error - 0.01


def test_ways_that_measure_plan_by_what_is_on_record(tmp_path: Path) -> None:
    planted, prices = Planted(CASE, WORTHS, noise=0.3), CASE.prices[1]
    planted.train_out(prices)
    concluded = planted.measure([0, 2])
    (surface,) = open_planted(planted, tmp_path).values()
    assert list(surface.kept_ways) == ["taba, m = 1", "taba", "taba, m = 10"]
    taba, default = judge("taba", [surface]), judge("default", [surface])
    for judged in (taba, default):
        assert [row.number for row in judged.rows[surface.setting.name]] == [0, 2]
    for row in default.rows[surface.setting.name]:
        assert row.counts == planted.plan_by(prices, concluded[row.number])
    (counts,) = {row.counts for row in taba.rows[surface.setting.name]}
    assert counts == planted.plan_by(prices, planted.conclude())
    assert taba.read == 2  # between plans of the grid
    planted.train(dict(zip(CASE.tasks, counts, strict=True)), [2])
    (surface,) = open_planted(planted, tmp_path).values()
    assert judge("taba", [surface]).trained == 1
    assert len(judge("neutral", [surface]).rows[surface.setting.name]) == 5


def test_parts_of_a_record_are_judged_and_say_how_much_is_there(tmp_path: Path) -> None:
    planted = Planted(CASE, WORTHS, noise=0.3)
    planted.train_out(CASE.prices[0], [0, 1, 4])
    planted.train({}, [2, 3])
    planted.train(planted.list_plans(CASE.prices[0])[0], [2])
    planted.train(planted.list_plans(CASE.prices[1])[3], [0, 1])
    found = open_case(CASE, SMALL, planted.save(tmp_path, SMALL))
    (surface,) = found.surfaces
    assert surface.campaigns == (0, 1, 4)
    assert str(surface).startswith("3 of 5 seed sets, each with 3 purchases of a plan; 14 of 14")
    assert found.missing == ("1:20", "1:30", LARGER)


def test_with_one_seed_set_purchases_tell_how_far_off_it_is(tmp_path: Path) -> None:
    planted = Planted(CASE, WORTHS, noise=0.3)
    planted.train_out(CASE.prices[1], [3])
    (surface,) = open_planted(planted, tmp_path).values()
    assert surface.seed_sets == (3,)
    assert surface.campaigns == (0, 1, 2)
    assert surface.range > 0
    assert "± inf" not in show_setting([judge("equal budget", [surface])], surface)


def test_a_record_without_its_pool_is_too_little(tmp_path: Path) -> None:
    planted = Planted(CASE, WORTHS)
    planted.rows.clear()
    planted.train_out(CASE.prices[1])
    found = open_case(CASE, SMALL, planted.save(tmp_path, SMALL))
    assert not found.surfaces
    assert len(found.missing) == 4


def test_losses_gain_by_falling(tmp_path: Path) -> None:
    case = find_case("taskonomy", SMALL)
    planted = Planted(case, dict.fromkeys(case.tasks, -2.0))
    planted.train_out(case.prices[0])
    for row in planted.rows.values():
        if "higher" in row["result"]:
            row["result"]["higher"] = dict.fromkeys(case.tasks, False)
    (surface,) = open_planted(planted, tmp_path).values()
    assert not surface.setting.higher_is_better
    assert surface.means.min() > 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return {'classes': 10_000}", "budget: 10000 is above 1680"),
        ("return {'clases': 1}", "did you mean 'classes'"),
        ("return {'classes': -1}", "below 0"),
        ("return 3", "must be a dict"),
    ],
)
def test_plans_that_nobody_could_buy_are_refused(tmp_path: Path, body: str, said: str) -> None:
    planted = Planted(CASE, WORTHS)
    planted.train_out(CASE.prices[1])
    planted.measure([0])
    mine = tmp_path / "mine.py"
    mine.write_text(f"def plan(known):\n    {body}\n")
    surfaces = list(open_planted(planted, tmp_path).values())
    with pytest.raises(InputError, match=said):
        judge(f"{mine}:plan", surfaces)
    with pytest.raises(InputError, match="no function of this name"):
        judge(f"{mine}:plann", surfaces)
