"""What can't be met is said by the names of the limits that clash and by what would resolve it."""

from __future__ import annotations

from typing import Any

import pytest

import allotment as al

CURVE = al.Geometric(1, 0.99)


def plan(*tasks: al.Task, budget: Any = 6300, caps: tuple[al.Cap, ...] = ()) -> al.Plan:
    return al.allocate(al.Problem(tasks, budget, caps), {task.name: CURVE for task in tasks})


SEG, CLS = {"name": "seg", "cost": 20}, {"name": "cls", "cost": 1}
CLASHES: list[tuple[str, list[dict[str, Any]], dict[str, Any], list[str]]] = [
    (
        "least above budget",
        [SEG | {"least": 400}],
        {},
        ["least of seg costs 8000, budget is 6300", "raise the budget to 8000"],
    ),
    (
        "two leasts together",
        [SEG | {"least": 300}, CLS | {"least": 500}],
        {},
        ["(6500 together)", "least of seg and least of cls"],
    ),
    ("frozen above budget", [SEG | {"frozen": 316}], {}, ["frozen of seg costs 6320"]),
    (
        "least above pool",
        [SEG | {"least": 9, "pool": 5}],
        {},
        ["least of seg is 9, pool is 5", "raise pool"],
    ),
    ("least above most", [SEG | {"least": 9, "most": 5}], {}, ["least of seg is 9, most is 5"]),
    (
        "least and lots above pool",
        [SEG | {"least": 101, "lot": 100, "pool": 150}],
        {},
        ["(200 in lots of 100)", "(100 in lots of 100)"],
    ),
    ("frozen above pool", [SEG | {"frozen": 9, "pool": 5}], {}, ["frozen of seg is 9, pool is 5"]),
    ("frozen above most", [SEG | {"frozen": 9, "most": 5}], {}, ["frozen of seg is 9, most is 5"]),
    (
        "frozen below least",
        [SEG | {"frozen": 3, "least": 5}],
        {},
        ["frozen of seg is 3, least is 5"],
    ),
    (
        "frozen between lots",
        [SEG | {"frozen": 150, "lot": 100}],
        {},
        ["lots of 100", "freeze 100 or 200"],
    ),
    ("least with its fee", [SEG | {"least": 315, "fee": 1}], {}, ["costs 6301"]),
    (
        "cap",
        [SEG | {"least": 10}],
        {"caps": (al.Cap("hours", 4, {"seg": "0.5"}),)},
        ["least of seg needs 5 of 'hours', its limit is 4"],
    ),
    (
        "budget below a label",
        [SEG, CLS | {"cost": 30}],
        {"budget": 19},
        ["budget 19 buys nothing", "(seg) costs 20", "at least 20"],
    ),
    ("budget below a lot", [SEG | {"lot": 100}], {"budget": 1999}, ["lot of 100 (seg) costs 2000"]),
    ("budget below the fee", [SEG | {"fee": 50}], {"budget": 69}, ["costs 70"]),
    ("no budget at all", [SEG], {"budget": 0}, ["budget 0 buys nothing"]),
    ("budget of cents", [SEG | {"cost": "0.035"}], {"budget": "0.034"}, ["costs 0.035"]),
]


@pytest.mark.parametrize(
    ("tasks", "given", "words"), [row[1:] for row in CLASHES], ids=[row[0] for row in CLASHES]
)
def test_clashes_are_named(
    tasks: list[dict[str, Any]], given: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(al.Infeasible) as caught:
        plan(*(al.Task(**task) for task in tasks), **given)
    for word in words:
        assert word in str(caught.value)


def test_all_clashes_at_once() -> None:
    with pytest.raises(al.Infeasible) as caught:
        plan(al.Task("seg", 20, least=9, pool=5), al.Task("cls", 1, frozen=7, lot=2))
    assert len(caught.value.clashes) == 2


def test_limits_that_just_fit() -> None:
    assert plan(al.Task("seg", 20, least=315)).counts == {"seg": 315}
    assert plan(al.Task("seg", 20, frozen=315, fee=0)).spent == 6300
    assert plan(al.Task("seg", 20), budget=20).counts == {"seg": 1}


BROKEN: list[tuple[str, dict[str, Any], int, str]] = [
    ("pool", {"pool": 5}, 6, "pool of seg: 6 is above 5"),
    ("most", {"most": 5}, 6, "most of seg: 6 is above 5"),
    ("least", {"least": 5}, 4, "least of seg: 4 is below 5"),
    ("frozen", {"frozen": 5}, 4, "frozen of seg: 4 is not 5"),
    ("lot", {"lot": 4}, 6, "lot of seg: 6 is not a multiple of 4"),
    ("budget", {}, 316, "budget: 6320 is above 6300"),
    ("cap", {}, 10, "hours: 10 is above 9"),
]


@pytest.mark.parametrize(
    ("limits", "count", "words"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_plan_of_ones_own_is_told_what_it_breaks(
    limits: dict[str, Any], count: int, words: str
) -> None:
    caps = (al.Cap("hours", 9, {"seg": 1}),) if "hours" in words else ()
    problem = al.Problem([al.Task("seg", 20, **limits)], 6300, caps)
    found = al.score(problem, {"seg": CURVE}, {"seg": count})
    assert found.broken == (words,)
    assert not found.feasible


REASONS: list[tuple[str, dict[str, Any], str]] = [
    ("price", {"cost": 4000}, "seg: a label costs 4000"),
    ("lot", {"lot": 100, "cost": 40}, "seg: a lot of 100 costs 4000"),
    ("pool", {"pool": 3}, "seg: pool of 3 reached"),
    ("most", {"most": 3}, "seg: most of 3 reached"),
    ("frozen", {"frozen": 3}, "seg: frozen at 3"),
]


@pytest.mark.parametrize(
    ("limits", "words"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS]
)
def test_unspent_money_has_its_reason(limits: dict[str, Any], words: str) -> None:
    assert plan(al.Task(**{"name": "seg", "cost": 20} | limits)).why_unspent == (words,)


def test_nothing_unspent_needs_no_reason() -> None:
    assert plan(al.Task("seg", 20)).why_unspent == ()


def test_labels_worth_nothing_are_left() -> None:
    problem = al.Problem([al.Task("seg", 20)], 6300)
    found = al.allocate(problem, {"seg": al.Tabulated([0, 1, 2])})
    assert found.counts == {"seg": 2}
    assert found.why_unspent == ("seg: more labels are worth nothing",)


def test_a_cap_that_binds_is_the_reason() -> None:
    found = plan(al.Task("seg", 20), caps=(al.Cap("hours", 10, {"seg": 3}),))
    assert found.counts == {"seg": 3}
    assert found.why_unspent == ("seg: a label takes 3 of 'hours', 1 is left",)
    assert found.money_worth == 0
