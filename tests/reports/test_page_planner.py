"""The page's planner comes to the plans of Python's: on one file of cases, and against brute
force."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.instances import FineRoot, Root, kinds_in
from helpers.node import run_script

import allotment as al
from allotment.advice.plain_problem import write_plain_problem
from allotment.gains import curve_from_dict
from allotment.plan import _rise, floors_of
from allotment.solver.dual import respond, whole
from allotment.solver.model import build

HERE = Path(__file__).parent
CASES = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
OWN = (Root, FineRoot)
EQUAL = 2e-13
"""plans that differ by this share of what is decided are equal to the page"""
EVERY = 16
"""of the cases one in so many is solved in `make test`, from the second on: Python takes seconds
for some of the others"""


def read_case(case: dict[str, Any]) -> tuple[al.Problem, Any]:
    problem = al.Problem.from_dict(case["problem"])
    if "estimates" in case:
        return problem, al.Estimates.from_dict(case["estimates"])
    gains = case["gains"]
    return problem, {name: curve_from_dict(gains[name], own=OWN) for name in problem.names}


def find_difference(problem: al.Problem, plan: al.Plan, page: dict[str, Any]) -> str | None:
    """What is wrong with the page's counts beside Python's."""
    counts = dict(zip(problem.names, page["counts"], strict=True))
    if broken := al.score(problem, plan.gains, counts).broken:
        return f"{counts} breaks {broken}"
    if counts == plan.counts:
        return None
    # both are within 1e-9 of the best; if the page says that its plan is the first of equals, it is
    # worth more than Python's, or comes before it
    floors = floors_of(problem)
    decided = _rise(problem, plan.gains, floors, plan.counts)
    more = _rise(problem, plan.gains, plan.counts, counts)
    if more < -max(1e-9 * decided, page["gap"]):
        return f"{counts} is worth {-more} less than {plan.counts}"
    mine, python = (
        (problem.price(each), *(-count for count in each.values()))
        for each in (counts, plan.counts)
    )
    equal = abs(more) <= EQUAL * decided
    if page["settled"] and (mine > python if equal else more < 0):
        return f"{counts} comes after {plan.counts}, by {more}"
    return None


def bounds_as_well(plan: al.Plan, price: float) -> bool:
    """Whether a price of money gives a bound as good as Python's own: several may be best."""
    model = build(plan.problem, plan.gains)
    prices = (price, plan.money_worth)
    unit = float(plan.problem.unit)
    found = [respond(model, whole(model), np.array([each * unit])).bound for each in prices]
    return found[0] <= found[1] + 1e-9 * abs(found[1])


def compare(case: dict[str, Any], found: dict[str, Any]) -> str | None:
    """What differs between the two plans of a case."""
    problem, gains = read_case(case)
    page, unit = found["plan"], found["unit"]
    if page != found["again"]:
        return "the page does not answer the same twice"
    try:
        plan = al.allocate(problem, gains)
    except al.Infeasible:  # the budget buys nothing
        return None if page["counts"] == list(floors_of(problem).values()) else f"{page}"
    counts = dict(zip(problem.names, page["counts"], strict=True))
    mine = al.score(problem, plan.gains, counts)
    if wrong := find_difference(problem, plan, page):
        return wrong
    if page["spent"] * unit != problem.price(counts):
        return f"spends {page['spent']}, not {problem.price(counts)}"
    if page["gap"]:
        return f"has a gap of {page['gap']}"
    if page["value"] != pytest.approx(mine.value, rel=1e-12, abs=1e-300):
        return f"{page['value']} is not {mine.value}"
    if page["gains"] != pytest.approx(list(mine.gains.values()), rel=1e-9, abs=1e-12):
        return f"{page['gains']} is not {mine.gains}"
    worth = page["moneyWorth"] / float(unit)
    alone = build(problem, plan.gains).rows == 1
    idle = max(worth, plan.money_worth) * float(problem.budget) <= 1e-9 * abs(plan.value)
    scarce = (worth > 0, plan.money_worth > 0)
    if (not idle and scarce[0] != scarce[1]) or (alone and not bounds_as_well(plan, worth)):
        return f"money is worth {worth}, not {plan.money_worth}"
    return None


def solve_cases(folder: Path, cases: list[dict[str, Any]]) -> dict[str, str]:
    given = [{"problem": write_plain_problem(*read_case(case))} for case in cases]
    answers = run_script(folder, HERE / "solve_cases.mjs", given)
    wrong = {}
    for case, each, answer in zip(cases, given, answers, strict=True):
        found = compare(case, answer | {"unit": Fraction(each["problem"]["unit"])})
        if found is not None:
            wrong[case["name"]] = found
    return wrong


def test_some_cases_are_solved_alike(tmp_path: Path) -> None:
    assert not solve_cases(tmp_path, CASES[1::EVERY])


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_all_cases_are_solved_alike(part: int, tmp_path: Path) -> None:
    assert not solve_cases(tmp_path, CASES[part::4])


def test_the_cases_hold_every_kind_of_limit_and_gain() -> None:
    assert len(CASES) >= 300
    kinds: Counter[str] = Counter()
    for case in CASES:
        problem, gains = read_case(case)
        if isinstance(gains, al.Estimates):
            kinds["estimates"] += 1
            gains = gains.gains_for(problem)
        kinds.update(kinds_in(problem, gains))
        families = {type(term).__name__ for each in gains.values() for term in each.terms}
        kinds.update(families)
    wanted = [
        "pool",
        "least",
        "frozen",
        "lot",
        "fee",
        "tiers_up",
        "tiers_down",
        "implied",
        "coupled",
        "weight",
        "cap",
    ]
    wanted += [
        "Geometric",
        "Power",
        "Logarithmic",
        "Tabulated",
        "Scaled",
        "Root",
        "FineRoot",
        "estimates",
    ]
    assert {kind: kinds[kind] for kind in wanted if kinds[kind] < 8} == {}
    assert kinds["estimates"] >= 60


def test_the_page_knows_what_every_budget_buys(tmp_path: Path) -> None:
    problem = al.Problem([al.Task("cls", "0.05"), al.Task("seg", 1, fee="2.5")], "315")
    gains = {"cls": al.Geometric(1.13, 0.999), "seg": al.Geometric(2.03, 0.997)}
    given = {"problem": write_plain_problem(problem, gains), "budgets": [0, 150, 1000, 6300]}
    (answer,) = run_script(tmp_path, HERE / "solve_cases.mjs", [given])
    curve = al.frontier(problem, gains)
    for found in answer["frontier"]:
        plan = curve.at(Fraction(found["budget"], 20))
        assert found["counts"] == list(plan.counts.values())
        assert found["value"] == pytest.approx(plan.value, rel=1e-12)


def test_limits_that_clash_are_said_in_words(tmp_path: Path) -> None:
    problem = al.Problem([al.Task("a", 10, least=20), al.Task("b", 1, lot=3)], 300)
    plain = write_plain_problem(problem, {name: al.Geometric(1, 0.9) for name in "ab"})
    tight = plain | {"budget": 100}
    odd = plain | {"tasks": [plain["tasks"][0], plain["tasks"][1] | {"frozen": 4}]}
    answers = run_script(
        tmp_path, HERE / "solve_cases.mjs", [{"problem": each} for each in (tight, odd)]
    )
    assert [answer["plan"]["feasible"] for answer in answers] == [False, False]
    assert "budget" in answers[0]["plan"]["clashes"][0]
    assert "b" in answers[1]["plan"]["clashes"][0]


def test_other_weights_fold_harm_as_estimates_do(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3)
    names = ("a", "b", "c")
    given, wanted = [], []
    for law in ("power", "geometric"):
        worths = numbers.normal(0, 1, (6, 3, 3)) + 1.5 * np.eye(3)
        some = al.Estimates(names, (10, 0, 300), worths, numbers.uniform(0.3, 0.9, (6, 3)), law)
        for weights in ([1, 1, 1], [2, 0.5, 0], [0, 1, 3]):
            tasks = [
                al.Task(name, 1, have=have) for name, have in zip(names, some.have, strict=True)
            ]
            plain = write_plain_problem(al.Problem(tasks, 50), some)
            given.append({"problem": plain, "weights": weights})
            weighed = [task.with_weight(each) for task, each in zip(tasks, weights, strict=True)]
            wanted.append(write_plain_problem(al.Problem(weighed, 50), some))
    answers = run_script(tmp_path, HERE / "solve_cases.mjs", given)
    for answer, want in zip(answers, wanted, strict=True):
        gains = answer["reweighed"]["gains"]
        for name in names:
            for mine, python in zip(gains[name], want["gains"][name], strict=True):
                assert mine.pop("size") == pytest.approx(python.pop("size"), rel=1e-12)
                assert mine == python


def test_what_the_page_cannot_hold_is_said() -> None:
    problem = al.Problem([al.Task("a", 1, pool=100_000), al.Task("b", 1, pool=50)], 10**6)
    plain = write_plain_problem(problem, {"a": Root(2.0), "b": 3 * Root(1.0)})
    (said,) = plain["inexact"]
    assert "gain of a" in said
    assert len(plain["gains"]["b"][0]["counts"]) == 51
    roots = {"a": Root(1), "b": Root(1)}
    with pytest.raises(al.InputError, match="finest"):
        write_plain_problem(problem.with_budget(10**15), roots, finest="0.01")
    fine = write_plain_problem(problem, roots, finest="0.01")
    assert (fine["unit"], fine["tasks"][0]["prices"]) == ("0.01", [[0, 100]])


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 5))]
)
def test_the_page_alone_is_equal_to_brute_force(part: int, tmp_path: Path) -> None:
    first = [0, 150, 600, 1100, 1600, 2100]
    given = {"first": first[part], "last": first[part + 1]}
    found = run_script(tmp_path, HERE / "brute_force.mjs", given)
    assert found["tried"] == given["last"] - given["first"]
    assert found["wrong"] == []
