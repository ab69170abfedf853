"""How a plan stands beside equal budget: decided once, and said alike in every room."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import allotment as al
from allotment.advice.doctor import Diagnosis
from allotment.campaign.summary import tell_outlook
from allotment.plan import Outlook
from allotment.reports.words import say_decision

MEANS = (-2.0, -0.05, 0.0, 0.05, 0.0999, 0.1, 0.3, 40.0)
WIDTHS = ((0.0, 0.0), (0.01, 0.01), (0.5, 0.5), (3.0, 0.2))
CHANCES = (0.0, 0.5, 0.79, 0.8, 0.85, 1.0)
UNITS = ("%", "labels")

PROBLEM = al.Problem([al.Task("cls", 1), al.Task("seg", 20)], budget=6300)
EQUAL = {"cls": 3150, "seg": 157}
GAINS = {"cls": al.Geometric(1.13, 0.999), "seg": al.Geometric(2.03, 0.997)}

BUY, TAKE_EQUAL = "buy the plan", "equal budget"
SAID = {
    r"The plan is worth following|; expected to beat|; this plan is better": BUY,
    r"The plan is probably better|; probably better|; this plan is probably better": BUY,
    r"Equal budget.* is fine|equal budget is fine|[Tt]ake equal budget": TAKE_EQUAL,
}
"""what sentences begin or end with, and what somebody does who reads them"""


@dataclass(frozen=True)
class Told:
    """Evidence that gives known curves and any outlook."""

    look: Outlook
    about: dict[str, Any] = field(default_factory=dict)

    def gains_for(self, problem: al.Problem) -> dict[str, al.Curve]:
        return dict(GAINS)

    def outlook(self, problem: al.Problem, plan: al.Plan) -> Outlook:
        return self.look


def list_outlooks() -> Iterator[tuple[Outlook, str]]:
    ranges = dict.fromkeys(PROBLEM.names, (0, 10000))
    for mean, (below, above), chance, unit in itertools.product(MEANS, WIDTHS, CHANCES, UNITS):
        yield Outlook(mean, mean - below, mean + above, 0.9, chance, ranges, ranges), unit


def read(sentence: str) -> str:
    """What somebody does who reads it."""
    found = [what for pattern, what in SAID.items() if re.search(pattern, sentence)]
    assert len(found) == 1, sentence
    return found[0]


def say_everywhere(look: Outlook, unit: str) -> dict[str, str]:
    """The sentences of the doctor, the report, and the summary that the terminal shows."""
    plan = al.allocate(PROBLEM, Told(look, {"unit": unit}))
    numbers = {key: getattr(look, key) for key in ("mean", "low", "high", "level", "chance")}
    tasks = [{"name": name, "count": count} for name, count in plan.counts.items()]
    sentence = say_decision({"tasks": tasks, "spent": "6300"}, numbers | {"unit": unit}, EQUAL)
    return {
        "doctor": str(Diagnosis(plan.counts, EQUAL, look, unit, ())).splitlines()[0],
        "report": html.unescape(re.sub("<[^>]*>", "", sentence)),
        "summary": tell_outlook(plan),
    }


def test_every_room_says_the_same_of_every_outlook() -> None:
    disagreeing = []
    for look, unit in list_outlooks():
        said = say_everywhere(look, unit)
        if len({read(sentence) for sentence in said.values()}) > 1:
            disagreeing.append((look.mean, look.low, look.high, look.chance, unit, said))
    assert not disagreeing, disagreeing[:3]


def test_a_likely_lead_that_nobody_would_notice_is_too_little_in_every_room() -> None:
    ranges = dict.fromkeys(PROBLEM.names, (0, 10000))
    look = Outlook(0.05, -0.02, 0.12, 0.9, 0.85, ranges, ranges)
    said = say_everywhere(look, "%")
    assert said["doctor"].startswith("Equal budget is fine. ")
    assert said["doctor"].endswith("That is too little to win.")
    assert said["report"].startswith("Equal budget (3,150 cls and 157 seg) is fine: ")
    assert said["summary"].endswith("that is too little to win, and equal budget is fine")
    assert {read(sentence) for sentence in say_everywhere(look, "labels").values()} == {BUY}


@pytest.mark.parametrize(
    ("numbers", "unit", "standing"),
    [
        ((0.5, 0.1, 0.9, 0.99), "%", "better"),
        ((0.5, -0.1, 0.9, 0.8), "%", "likely better"),
        ((0.5, -0.1, 0.9, 0.79), "%", "equal"),
        ((-0.1, -0.5, 0.5, 0.9), "%", "equal"),
        ((0.0, 0.0, 0.0, 0.0), "%", "equal"),
        ((0.09, 0.01, 0.2, 0.99), "%", "too little to win"),
        ((0.09, 0.01, 0.2, 0.99), "labels", "better"),
        ((0.09, -0.01, 0.2, 0.85), "%", "too little to win"),
        ((0.09, -0.01, 0.2, 0.85), "labels", "likely better"),
        ((-0.5, -0.9, -0.1, 0.01), "%", "worse"),
        ((-0.5, -0.9, -0.1, 0.01), "labels", "worse"),
    ],
)
def test_where_the_lines_are_drawn(
    numbers: tuple[float, float, float, float], unit: str, standing: str
) -> None:
    mean, low, high, chance = numbers
    look = Outlook(mean, low, high, 0.9, chance, {}, {})
    assert look.standing(unit) == al.Standing.of_outlook(*numbers, unit=unit) == standing
    assert Diagnosis({}, {}, look, unit, ()).standing == standing
    assert Diagnosis({}, {}, look, unit, ()).equal_is_fine == ("better" not in standing)
    assert al.allocate(PROBLEM, Told(look, {"unit": unit})).standing == standing


def test_a_plan_of_known_curves_has_no_standing() -> None:
    assert al.allocate(PROBLEM, GAINS).standing is al.Standing.UNKNOWN


def test_a_plan_that_is_equal_budget_is_equal() -> None:
    problem = al.Problem([al.Task(name, 1, have=100) for name in "ab"], budget=100)
    worths, shapes = np.eye(2) * np.full((20, 2), 5.0)[:, None, :], np.full((20, 2), 0.4)
    found = al.Estimates(("a", "b"), (100, 100), worths, shapes, law="power")
    plan = al.allocate(problem, found)
    assert plan.counts == al.baselines(problem)["equal budget"]
    assert plan.standing is al.Standing.EQUAL
    assert tell_outlook(plan) == "as much as equal budget, which is the same plan"
