"""Does a curve keep the contract? Inherit, say how yours is made, and let pytest run it:

class TestMine(CurveTests):
    def make(self):
        return [SquareRoot(5.0), SquareRoot(0.1)]
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from allotment.arrays import Array
from allotment.errors import InputError
from allotment.gains import CURVES, LAST_DIGITS, Coupled, Curve, Geometric, find_lacking
from allotment.plan import Plan, allocate, value_of
from allotment.problem import Problem, Task
from allotment.solver.soundness import Stretch, check_stretch


class CurveTests:
    """Every test that a curve must pass. `make` gives one curve or several, with parameters like
    those that it is meant for."""

    most = 2000
    """labels up to which every count is tried; further on it is a grid"""
    furthest = 10**6
    """labels up to which the curve has a worth"""
    name: str | None = None
    """under which an installed package offers it; None: no package does"""

    def make(self) -> Curve | Sequence[Curve]:
        raise NotImplementedError("say how your curve is made")

    # --- helpers ---

    def _curves(self) -> list[Curve]:
        made = self.make()
        return [made] if isinstance(made, Curve) else list(made)

    def _counts(self) -> Array:
        return np.arange(self.most + 1.0)

    def _digits(self, curve: Curve, counts: Array) -> float:
        """What worths may differ by for want of digits."""
        size = float(np.max(np.abs(curve(counts)), initial=0.0))
        own = float(np.max(curve.rounding(counts[:-1], counts[1:])))
        return own + LAST_DIGITS * float(np.spacing(size)) + 1e-13 * size

    # --- the contract: what a curve says ---

    def test_it_is_a_complete_class(self) -> None:
        for curve in self._curves():
            assert find_lacking(type(curve)) is None, find_lacking(type(curve))

    def test_files_find_it_under_its_name(self) -> None:
        if self.name is None:
            return
        for curve in self._curves():
            assert curve.family == self.name, "its family is not the name of its entry point"
            assert CURVES.load(self.name) is type(curve), "another class has its name"

    def test_it_takes_numbers_and_arrays(self) -> None:
        for curve in self._curves():
            counts, digits = self._counts(), self._digits(curve, self._counts())
            worths = np.asarray(curve(counts))
            assert worths.shape == counts.shape, "an array of counts needs as many worths"
            square = counts[: len(counts) // 2 * 2].reshape(-1, 2)
            assert np.shape(curve(square)) == square.shape, "a table of counts needs one of worths"
            for at in np.unique(np.geomspace(1, self.most, 20).astype(int)):
                alone = curve(int(at))
                assert isinstance(alone, float), "a number of labels needs one worth"
                assert abs(alone - worths[at]) <= digits, "a number has another worth in an array"

    def test_it_answers_the_same_every_time(self) -> None:
        for curve in self._curves():
            first = np.asarray(curve(self._counts())).tobytes()
            curve(3)
            assert np.asarray(curve(self._counts())).tobytes() == first, "asking changes it"
            assert np.asarray(copy.deepcopy(curve)(self._counts())).tobytes() == first

    def test_every_worth_is_finite(self) -> None:
        for curve in self._curves():
            grid = Stretch(curve, 0.0, float(self.furthest)).counts
            assert np.all(np.isfinite(curve(grid))), "a count has no finite worth"

    def test_labels_do_no_harm(self) -> None:
        for curve in self._curves():
            digits = self._digits(curve, self._counts())
            assert np.all(np.diff(curve(self._counts())) >= -2 * digits), "it falls"

    def test_no_label_is_worth_more_than_one_before_it(self) -> None:
        for curve in self._curves():
            digits = self._digits(curve, self._counts())
            steps = np.diff(curve(self._counts()))
            assert np.all(np.diff(steps) <= 4 * digits), "it is not concave"
            halves = curve(self._counts()[:-1] + 0.5) - curve(self._counts()[:-1])
            assert np.all(halves >= steps / 2 - 2 * digits), (
                "it is not concave between whole numbers"
            )

    def test_it_is_fit_to_plan_with(self) -> None:
        for curve in self._curves():
            for low, high in ((0, 1), (0, self.most), (7, self.most), (0, self.furthest)):
                check_stretch(Stretch(curve, float(low), float(high)))
            check_stretch(Stretch(curve, 0.0, self.most / 4, 0.25))

    # --- what follows from it, or was given ---

    def test_what_labels_add_is_the_difference(self) -> None:
        rng = np.random.default_rng(0)
        for curve in self._curves():
            digits = self._digits(curve, self._counts())
            low = np.floor(rng.uniform(0, self.most / 2, 200))
            more = np.floor(rng.uniform(0, self.most / 2, 200))
            difference = np.asarray(curve(low + more)) - np.asarray(curve(low))
            assert np.allclose(curve.rise(low, more), difference, rtol=0, atol=4 * digits)
            if type(curve).total is not Curve.total:
                total = np.asarray(curve.total(low + more)) - np.asarray(curve.total(low))
                lost = LAST_DIGITS * np.spacing(np.max(np.abs(curve.total(low + more))))
                assert np.allclose(curve.rise(low, more), total, rtol=0, atol=4 * digits + lost), (
                    "rise and total disagree"
                )

    def test_its_reach_is_what_trying_every_count_finds(self) -> None:
        for curve in self._curves():
            counts, worths = self._counts(), np.asarray(curve(self._counts()))
            digits = self._digits(curve, counts)
            steps = np.diff(worths)
            for slope in np.unique(np.quantile(steps[steps > 4 * digits], np.linspace(0, 1, 15))):
                best = float(np.max(worths - slope * counts))
                reach = min(float(curve.reach(float(slope), self.most)), float(self.most))
                near = np.clip(math.floor(reach) + np.arange(-1, 3), 0, self.most).astype(int)
                found = float(np.max(worths[near] - slope * counts[near]))
                assert found >= best - 4 * digits, (
                    f"{reach} labels are not those that are worth more than {slope} each"
                )

    def test_its_sign_says_whether_labels_are_worth_anything(self) -> None:
        for curve in self._curves():
            assert curve.sign == int(curve(1) > 0)

    def test_curves_add_and_scale(self) -> None:
        for curve in self._curves():
            counts, worths = self._counts(), np.asarray(curve(self._counts()))
            for other in (2 * curve, curve * 2, curve + curve, 0.5 * (3 * curve) + 0.5 * curve):
                assert np.allclose(other(counts), 2 * worths, rtol=1e-12)
            other = Geometric(1, 0.9)
            assert np.allclose((curve + other)(counts), worths + other(counts), rtol=1e-12)

    # --- what is written and read ---

    def test_it_is_a_value(self) -> None:
        for curve in self._curves():
            assert hash(copy.deepcopy(curve)) == hash(curve), "a parameter is not a frozen value"
            assert copy.deepcopy(curve) == curve

    def test_it_comes_back_from_its_plain_form(self) -> None:
        for curve in self._curves():
            for each in (curve, 3 * curve, curve + Geometric(1, 0.9), Coupled(curve, {"a": "0.5"})):
                text = json.dumps(each.to_dict(), allow_nan=False)
                for plain in (json.loads(text), json.loads(text, parse_float=Decimal)):
                    assert type(curve).from_dict(plain) == each

    def test_what_it_does_not_know_is_refused(self) -> None:
        for curve in self._curves():
            plain = curve.to_dict() | {"no such parameter": 1}
            message = ""
            try:
                type(curve).from_dict(plain)
            except InputError as error:
                message = str(error)
            assert "no such parameter" in message, "a parameter that there is not is taken"

    # --- plans ---

    def test_a_plan_is_the_best_there_is(self) -> None:
        for curve in self._curves():
            tasks = [
                Task("mine", 2, most=40, fee=3, lot=2, tiers={20: 1}),
                Task("other", 3, most=30, weight=0.5),
            ]
            first = float(curve(1))
            gains = {"mine": curve, "other": first * Geometric(1, 0.9) + 0.5 * curve}
            for budget in (7, 50, 90):
                problem = Problem(tasks, budget)
                plan = allocate(problem, gains)
                plans = [{"mine": a, "other": b} for a in range(0, 41, 2) for b in range(31)]
                best = max(
                    value_of(problem, gains, counts)
                    for counts in plans
                    if problem.price(counts) <= problem.budget
                )
                assert abs(plan.value - best) <= 1e-9 * abs(best)
                assert plan.exact
                again = Plan.from_dict(plan.to_dict(), curves=[type(curve)])
                assert dataclasses.replace(again, evidence=None) == plan
