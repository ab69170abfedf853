"""Where labels begin to cost more than they bring: equal to trying every plan, and what files,
commands and pages say of it."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.campaigns import allot, fine, refused
from helpers.instances import every_plan, random_problem

import allotment as al
from allotment.frontiers import find_stop
from allotment.problem_file import parse_problem

SEED = 31
UNIT = Fraction(1, 10_000)
"""of money in `every_plan`"""


def choose_worth(seed: int, value: float, money: float) -> Fraction:
    """Near what the labels of a plan cost by what they bring, so that some of them pay."""
    worth = random.Random(f"worth {seed}").uniform(0.2, 4) * max(money, 1) / max(value, 0.1)
    return Fraction(f"{worth:.4g}")


def check(index: int) -> tuple[str, bool]:
    """What is wrong with the stop of one instance, and whether it is neither at the start nor at
    the end."""
    problem, gains, _ = random_problem(SEED, index, whole=index % 2 == 1)
    grid, money, values = every_plan(problem, gains)
    top = int(np.argmax(values))
    worth = choose_worth(index, float(values[top]), float(money[top] * UNIT))
    nets = values * float(worth) - money * float(UNIT)
    try:
        stop = find_stop(problem, gains, worth)
    except al.Infeasible:  # as `allocate` says of a budget that buys nothing
        return "", False
    counts = np.array(list(stop.plan.counts.values()))
    at = int(np.flatnonzero((grid == counts).all(axis=1))[0])
    close = 1e-9 * max(1.0, abs(float(nets.max())), float(problem.budget))
    wrong = ""
    if nets[at] < nets.max() - close:
        wrong = f"{counts} nets {nets[at]!r}, {grid[int(np.argmax(nets))]} nets {nets.max()!r}"
    least = money[nets >= nets.max() - close].min()
    if index % 2 == 1 and abs(worth * 10**6 % 1) < 1e-9 and money[at] > least + 0.5:
        wrong = wrong or f"{counts} costs {money[at]}, as good is {least}"
    if stop.plan.problem.budget != problem.price(stop.plan.counts):
        wrong = wrong or "its budget is not what it costs"
    return wrong, not stop.is_start and not stop.is_end


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.long) for start in range(20, 200, 20))]
)
def test_no_plan_brings_more_for_its_money(start: int) -> None:
    found = [check(index) for index in range(start, start + 20)]
    assert {start + place: wrong for place, (wrong, _) in enumerate(found) if wrong} == {}
    assert sum(between for _, between in found) >= 4


def test_a_point_of_measured_gains_is_one_in_the_mean_over_tasks() -> None:
    """Where the mean gain per money falls below what money is worth, by small steps of the
    budget."""
    worths = np.array([[[60.0, 0.0], [0.0, 90.0]]])
    estimates = al.Estimates(("a", "b"), (50, 20), worths, np.array([[0.4, 0.6]]))
    tasks = [al.Task("a", cost=1, have=50, weight=3), al.Task("b", cost=4, have=20, weight=1)]
    problem = al.Problem(tasks, budget=400)
    stop = find_stop(problem, estimates, 40)
    nothing = {"a": 0, "b": 0}

    def net(budget: int) -> float:
        plan = al.allocate(problem.with_budget(budget), estimates)
        gain = estimates.gain_over(problem, plan, nothing).mean()
        return float(40 * gain) - float(plan.spent)

    nets = {budget: net(budget) for budget in range(1, 401)}
    assert float(stop.plan.spent) == max(nets, key=lambda budget: nets[budget])
    assert 20 < stop.plan.spent < 380
    assert stop.unspent == 400 - problem.price(stop.plan.counts)


def test_a_task_may_have_any_name() -> None:
    problem = al.Problem([al.Task("kept", cost=1), al.Task("kept'", cost=2)], budget=20)
    gains = {"kept": al.Tabulated([0, 3, 5, 6, 6.5]), "kept'": al.Tabulated([0, 9, 10])}
    assert find_stop(problem, gains, 1).plan.counts == {"kept": 2, "kept'": 1}


@pytest.mark.parametrize("worth", [0, -1, "much", "nan", None])
def test_what_is_no_worth_is_refused(worth: object) -> None:
    problem = al.Problem([al.Task("a", cost=1)], budget=9)
    with pytest.raises(al.InputError, match="point_worth"):
        find_stop(problem, {"a": al.Geometric(1, 0.5)}, worth)


def test_large_amounts_in_small_coins() -> None:
    problem = al.Problem([al.Task("a", cost="0.0001"), al.Task("b", cost="12.5")], budget=10**9)
    gains = {"a": al.Geometric(0.0002, 0.999), "b": al.Geometric(25, 0.9)}
    stop = find_stop(problem, gains, 1)
    # the last labels that are worth their price: 2 x 0.999^692 > 1 > 2 x 0.999^693, and with 0.9
    assert stop.plan.counts == {"a": 693, "b": 7}
    assert stop.plan.exact


# --- files, commands, pages ---

TASKS = """
[[task]]
name = "cls"
cost = 1
gain = { curve = "geometric", informativeness = 1.13, reduction = 0.999 }

[[task]]
name = "seg"
cost = 20
gain = { curve = "geometric", informativeness = 2.03, reduction = 0.997 }
"""
SAID = "If a point is worth 12, labels beyond 3926 of 6300 cost more than they bring: 2374"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(f"budget = 6300\npoint_worth = 12\n{TASKS}")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_file_says_what_a_point_is_worth() -> None:
    plain = fine("plan", "p.toml", "--no-ranges")
    assert f"{SAID} could stay unspent." in plain
    assert "Spent 6300 of 6300" in plain
    stopped = fine("plan", "p.toml", "--no-ranges", "--stop")
    assert f"{SAID} stays unspent." in stopped
    assert "Spent 3926 of 3926" in stopped
    found = json.loads(fine("plan", "p.toml", "--json"))
    ended = json.loads(fine("plan", "p.toml", "--stop", "--json"))
    assert found["stop"] == ended["stop"]
    assert ended["counts"] == found["stop"]["counts"] == {"cls": 2606, "seg": 66}
    assert (found["stop"]["spent"], found["stop"]["unspent"]) == ("3926", "2374")
    assert found["stop"]["point_worth"] == "12"
    sheet = allot("plan", "p.toml", "--no-ranges", "--csv")
    assert f"note: {SAID} could stay unspent" in sheet.stderr
    assert "note" not in allot("frontier", "p.toml", "--points", "2", "--csv").stderr
    assert f"{SAID} could stay unspent." in fine("report", "p.toml", "--markdown")


@pytest.mark.usefixtures("here")
def test_where_every_label_pays_or_none() -> None:
    Path("p.toml").write_text(f"budget = 6300\npoint_worth = 100\n{TASKS}")
    said = "If a point is worth 100, every label of the plan brings what it costs."
    assert said in fine("plan", "p.toml", "--no-ranges")
    assert "Spent 6300 of 6300" in fine("plan", "p.toml", "--no-ranges", "--stop")
    Path("p.toml").write_text(f'budget = 6300\npoint_worth = "0.5"\n{TASKS}')
    said = "If a point is worth 0.5, no label brings what it costs: 6300 could stay unspent."
    assert said in fine("plan", "p.toml", "--no-ranges")
    assert "leave out --stop" in refused(1, "plan", "p.toml", "--stop")
    tasks = TASKS.replace("cost = 20", "cost = 20\nleast = 5")
    Path("p.toml").write_text(f'budget = 6300\npoint_worth = "0.5"\n{tasks}')
    assert "no label beyond those that must be bought" in fine("plan", "p.toml", "--no-ranges")
    ended = json.loads(fine("plan", "p.toml", "--stop", "--json"))
    assert ended["counts"] == {"cls": 0, "seg": 5}


def test_labels_that_must_be_bought_are_not_said_to_bring_what_they_cost() -> None:
    forced = al.Problem([al.Task("cls", 1, least=100), al.Task("seg", 2, pool=0)], 100)
    gains = {"cls": al.Geometric(0.001, 0.9), "seg": al.Geometric(1, 0.9)}
    said = "If a point is worth 1, no label beyond those that must be bought brings what it costs"
    assert str(al.find_stop(forced, gains, 1)) == said
    partly = al.Problem([al.Task("cls", 1, least=90), al.Task("seg", 1)], 100)
    gains["seg"] = al.Geometric(50, 0.99)
    said = "If a point is worth 1, every label of the plan beyond those that must be bought brings"
    assert str(al.find_stop(partly, gains, 1)).startswith(said)
    nothing = al.Problem([al.Task("cls", 1, weight=0), al.Task("seg", 2, weight=0)], 120)
    assert str(al.find_stop(nothing, gains, 1)).endswith("no label brings what it costs")


@pytest.mark.usefixtures("here")
def test_without_a_worth_there_is_nowhere_to_stop() -> None:
    Path("p.toml").write_text(f"budget = 6300\n{TASKS}")
    assert "write point_worth = 250" in refused(2, "plan", "p.toml", "--stop")
    assert "stop" not in json.loads(fine("plan", "p.toml", "--json"))
    Path("p.toml").write_text('budget = 9\n[[task]]\nname = "a"\ncost = 1\n')
    assert "nothing says what labels bring" in refused(2, "plan", "p.toml", "--stop")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget = 9\npoint_worth = 0\n" + TASKS, "point_worth: 0 is not above zero"),
        ('budget = 9\npoint_worth = "x"\n' + TASKS, "point_worth: 'x' is not a number"),
        ("budget = 9\n" + TASKS.replace("cost = 1\n", "cost = 1\npoint_worth = 3\n"),
         "task 'cls': point_worth: belongs to the whole problem"),
        ('budget = 9\npoint_worth = 3\n[[task]]\nname = "a"\ncost = 1\n',
         "point_worth: says nothing without gains"),
    ],
)  # fmt: skip
def test_mistakes_in_a_file_have_their_line(text: str, said: str) -> None:
    with pytest.raises(al.InputError, match=re.escape(said)) as caught:
        parse_problem(text)
    lines = text.splitlines()
    assert ["point_worth" in lines[(each.line or 1) - 1] for each in caught.value.mistakes] == [
        True
    ]
