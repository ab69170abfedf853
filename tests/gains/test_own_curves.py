"""Curves of one's own: as good as the families where they are sound, refused in words where not."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.instances import (
    FIXED,
    KINDS,
    FineRoot,
    Root,
    add_fixed,
    best_by_table,
    decided_plans,
    every_plan,
    kinds_in,
    large_problem,
    own_problem,
    try_every_plan,
)

import allotment as al
from allotment import frontiers, gains
from allotment.curve_conformance import CurveTests
from allotment.gains import FAMILIES, Scaled, climb, curve_from_dict, is_own
from allotment.plugins import Registry

SEED = 7
INSTANCES = 600
CHUNK = 60


# --- the contract, kept by curves of one's own and by the families ---


class TestRoot(CurveTests):
    def make(self) -> list[al.Curve]:
        return [Root(5.0), Root(1e-6), Root(1e9)]


class TestFineRoot(CurveTests):
    def make(self) -> list[al.Curve]:
        return [FineRoot(5.0), FineRoot(1e-6)]


@dataclass(frozen=True)
class Steeper(al.Geometric):
    """A family's class with another answer: the family's formulas say nothing about it."""

    @staticmethod
    def rise_of(values: Any, count: Any, more: Any) -> Any:
        return 2 * al.Geometric.rise_of(values, count, more)


class TestSubclassOfAFamily(CurveTests):
    def make(self) -> al.Curve:
        return Steeper(1.0, 0.99)


@dataclass(frozen=True)
class Several(al.Curve):
    """Parameters of several kinds."""

    steps: tuple[float, ...]
    first: int = 3
    label: str = "x"
    family = "several-steps"

    def total(self, count: Any) -> Any:
        return sum(np.minimum(count, self.first * step) for step in self.steps)


class TestSeveral(CurveTests):
    def make(self) -> list[al.Curve]:
        return [Several((1.0, 2.5, 30.0)), Several((4.0,), first=2, label="y")]


class TestGeometric(CurveTests):
    name = "geometric"

    def make(self) -> list[al.Curve]:
        return [al.Geometric(1.13, 0.999), al.Geometric(2, 0), al.Geometric(2, 1)]


class TestPower(CurveTests):
    name = "power"

    def make(self) -> list[al.Curve]:
        return [al.Power(90, 300, 0.4), al.Power(10, 0, 1.5, ceiling=3)]


class TestLogarithmic(CurveTests):
    name = "logarithmic"

    def make(self) -> al.Curve:
        return al.Logarithmic(2, 300)


class TestTabulated(CurveTests):
    name = "tabulated"

    def make(self) -> list[al.Curve]:
        return [al.Tabulated([0, 5, 8, 9]), al.Tabulated([0, 40, 90], counts=[0, 500, 2000])]


@dataclass(frozen=True)
class Bump(al.Curve):
    """Rises again after `at` labels."""

    at: float

    def total(self, count: Any) -> Any:
        return np.sqrt(count) + np.maximum(0, np.asarray(count) - self.at)


@dataclass(frozen=True)
class WrongReach(Root):
    def reach(self, slope: float, most: int) -> float:
        return most / 3


@dataclass(frozen=True)
class WrongRise(Root):
    def rise(self, count: Any, more: Any) -> Any:
        return 1.01 * super().rise(count, more)


@pytest.mark.parametrize(
    ("curve", "test"),
    [
        (Bump(100), "test_no_label_is_worth_more_than_one_before_it"),
        (Bump(100_000), "test_it_is_fit_to_plan_with"),
        (WrongReach(5), "test_its_reach_is_what_trying_every_count_finds"),
        (WrongRise(5), "test_what_labels_add_is_the_difference"),
    ],
)
def test_the_contract_catches_what_breaks_it(curve: al.Curve, test: str) -> None:
    class Tests(CurveTests):
        def make(self) -> al.Curve:
            return curve

    with pytest.raises(Exception, match=r"\w"):
        getattr(Tests(), test)()


# --- the optimum, with every kind of limit ---


def check(index: int) -> str | None:
    """What is wrong with the plan for one instance."""
    problem, gains, _ = own_problem(SEED, index)
    best, counts = try_every_plan(problem, gains)
    try:
        plan = al.allocate(problem, gains)
    except al.Infeasible as error:
        floors = {task.name: task.floor for task in problem.tasks}
        return None if counts == floors else f"{counts} can be bought, but: {error}"
    if broken := al.score(problem, gains, plan.counts).broken:
        return f"{plan.counts} breaks {broken}"
    if abs(plan.value - best) > 1e-9 * abs(best):
        return f"{plan.counts} is worth {plan.value!r}, {counts} is worth {best!r}"
    return f"a gap of {plan.gap}" if plan.gap else None


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=[] if start < 120 else [pytest.mark.long])
        for start in range(0, INSTANCES, CHUNK)
    ],
)
def test_equal_to_brute_force(start: int) -> None:
    found = {
        index: wrong for index in range(start, start + CHUNK) if (wrong := check(index)) is not None
    }
    assert not found


def test_every_kind_of_limit_is_there() -> None:
    kinds: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    for index in range(240):
        problem, gains, given = own_problem(SEED, index)
        kinds.update(kinds_in(problem, gains) | (given & {"most", "cents"}))
        for curve in gains.values():
            own = [is_own(term) for term in curve.terms]
            forms["mixed"] += any(own) and not all(own)
            forms["scaled"] += any(isinstance(term, Scaled) for term in curve.terms)
            coupled = [term.inner for term in curve.terms if isinstance(term, al.Coupled)]
            forms["coupled"] += any(is_own(term) for each in coupled for term in each.terms)
            forms["alone"] += own == [True]
    assert min(kinds[kind] for kind in KINDS) >= 20
    assert min(forms.values()) >= 20


@pytest.mark.parametrize("kind", FIXED)
def test_what_is_fixed_takes_no_digit_of_what_is_decided(kind: str) -> None:
    for index in range(8):
        problem, gains, _ = own_problem(5, index * len(FIXED) + FIXED.index(kind))
        problem, gains = add_fixed(problem, gains, kind, 1e12)
        try:
            plan = al.allocate(problem, gains)
        except al.Infeasible:
            continue
        grid, _, value = decided_plans(problem, gains)
        at = int(np.flatnonzero((grid == list(plan.counts.values())).all(axis=1))[0])
        assert plan.gap == 0, index
        assert value.max() - value[at] <= 1e-9 * value.max(), index


@pytest.mark.long
def test_all_budgets_and_the_least_money_agree_with_single_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frontiers, "SAMPLES", 5)
    tried = 0
    for index in range(20):
        problem, gains, _ = own_problem(11, index)
        try:
            curve = al.frontier(problem, gains)
        except al.Infeasible:
            continue
        _, money, value = every_plan(problem, gains)
        for place in np.linspace(0, len(curve.budgets) - 1, 3).astype(int):
            budget = Fraction(float(curve.budgets[place])).limit_denominator(10_000)
            affordable = value[money <= int(budget * 10_000)]
            counts = {name: int(column[place]) for name, column in curve.counts.items()}
            assert curve.values[place] == pytest.approx(affordable.max(), rel=1e-9, abs=1e-12)
            assert al.score(problem, gains, counts).value == pytest.approx(
                affordable.max(), rel=1e-9, abs=1e-12
            )
            assert curve.at(budget).value == pytest.approx(affordable.max(), rel=1e-9, abs=1e-12)
        best, least = value.max(), value[money == money[value > -np.inf].min()].max()
        if not best > least + 1e-6:
            continue
        target = float(least + 0.7 * (best - least))
        plan = al.cheapest(problem, gains, target=target)
        assert plan.value >= target
        assert Fraction(plan.spent) == Fraction(int(money[value >= target].min()), 10_000)
        tried += 1
    assert tried >= 8


def test_larger_problems_against_a_table() -> None:
    rng = random.Random(3)
    for _ in range(8):
        tasks = [
            al.Task(f"t{i}", rng.randint(1, 9), fee=rng.choice([0, 40]), lot=rng.choice([1, 5]))
            for i in range(4)
        ]
        gains = {
            "t0": Root(5),
            "t1": 2 * FineRoot(3) + al.Logarithmic(2, 10),
            "t2": al.Geometric(1, 0.99),
            "t3": Steeper(0.3, 0.995),
        }
        problem = al.Problem(tasks, 2000)
        table = best_by_table(problem, gains)
        plan = al.allocate(problem, gains)
        assert plan.gap == 0
        assert plan.value == pytest.approx(table[-1], rel=1e-9)
        curve = al.frontier(problem, gains)
        assert curve.every_budget
        assert np.allclose(curve.values, table, rtol=1e-9)
        place = len(table) // 3
        assert al.cheapest(problem, gains, target=table[place]).spent <= place * problem.unit


@dataclass(frozen=True)
class Mirror(al.Curve):
    """What another curve says, without its formulas."""

    inner: al.Curve

    def total(self, count: Any) -> Any:
        return self.inner(count)


def mirror(curve: al.Curve) -> al.Curve:
    """The same curve as one of one's own, but for tables that fall."""
    found = []
    for term in curve.terms:
        if isinstance(term, al.Coupled):
            found.append(al.Coupled(mirror(term.inner), term.weights))
        elif isinstance(term, al.Tabulated) and np.any(term.slopes < 0):
            found.append(term)
        else:
            found.append(Mirror(term))
    return sum(found[1:], found[0])


@pytest.mark.parametrize("seed", range(12))
def test_the_same_plans_as_by_the_formulas(seed: int) -> None:
    problem, gains = large_problem(seed, sizes=(2, 6), budgets=(100, 20_000))
    known = al.allocate(problem, gains)
    own = al.allocate(problem, {name: mirror(curve) for name, curve in gains.items()})
    value = al.score(problem, gains, own.counts).value
    assert abs(value - known.value) <= 1e-9 * abs(known.value) + known.gap + own.gap
    assert own.exact == known.exact


def test_how_firm_a_plan_is() -> None:
    """Own curves and a family that says the same give the same ranges and prices."""
    tasks = [al.Task("a", 1), al.Task("b", 3)]
    problem = al.Problem(tasks, 600)

    @dataclass(frozen=True)
    class Same(al.Curve):
        def total(self, count: Any) -> Any:
            return 2.0 * np.log1p(count / 50)

    other = al.Geometric(0.1, 0.99)
    own = al.allocate(problem, {"a": Same(), "b": other})
    known = al.allocate(problem, {"a": al.Logarithmic(2.0, 50), "b": other})
    assert own.counts == known.counts
    assert own.plateau == known.plateau
    assert own.break_even == known.break_even
    assert own.money_worth == pytest.approx(known.money_worth, rel=1e-9)
    assert own.why_unspent == known.why_unspent
    assert str(own.compare()) == str(known.compare())


def test_a_million_million() -> None:
    """Where a label is worth less than the last digit of the whole."""
    for curve in (Root(5), FineRoot(5)):
        tasks = [al.Task("a", 1), al.Task("b", 7), al.Task("c", 3)]
        problem = al.Problem(tasks, 10**12)
        plan = al.allocate(problem, {"a": curve, "b": 3 * curve, "c": al.Logarithmic(1e6, 1e9)})
        assert plan.gap == 0
        # the counts at which the next label of each pays the price of money, and their bound
        price = plan.money_worth
        wanted = [(2.5 / price) ** 2, (7.5 / 7 / price) ** 2, 1e6 / 3 / price - 1e9]
        best = (
            5 * math.sqrt(wanted[0]) + 15 * math.sqrt(wanted[1]) + 1e6 * math.log1p(wanted[2] / 1e9)
        )
        best += price * (1e12 - wanted[0] - 7 * wanted[1] - 3 * wanted[2])
        assert plan.value == pytest.approx(best, rel=1e-9)


# --- digits ---


def test_where_digits_are_lost_the_bound_is_stated() -> None:
    """Beside a million million labels that must be bought, those to be decided are worth less than
    the digits of the whole; a `rise` that keeps them is exact."""
    tasks = [al.Task("a", 1, least=10**14), al.Task("b", 1)]
    other = al.Geometric(1e-7, 0.9)
    rough = al.allocate(al.Problem(tasks, 10**14 + 60), {"a": Root(5), "b": other})
    fine = al.allocate(al.Problem(tasks, 10**14 + 60), {"a": FineRoot(5), "b": other})
    assert fine.gap == 0
    assert not rough.exact
    added = al.score(fine.problem, fine.gains, rough.counts).value
    assert 0 <= fine.value - added <= rough.gap
    assert "a better plan is worth at most" in str(rough)


def test_a_worth_that_begins_high_up_counts_from_there() -> None:
    @dataclass(frozen=True)
    class High(al.Curve):
        start: float

        def total(self, count: Any) -> Any:
            return self.start + np.sqrt(count)

    problem = al.Problem([al.Task("a", 1), al.Task("b", 1)], 40)
    other = Root(1)
    low, high, far = (
        al.allocate(problem, {"a": High(start), "b": other}) for start in (0.0, 1e3, 1e9)
    )
    assert low.counts == high.counts == {"a": 20, "b": 20}
    assert low.value == pytest.approx(high.value, rel=1e-9)
    assert low.exact
    assert high.exact
    assert far.gap >= low.value - al.score(problem, low.gains, far.counts).value
    assert not far.exact


def test_labels_that_are_worth_nothing_are_not_bought() -> None:
    @dataclass(frozen=True)
    class Flat(al.Curve):
        def total(self, count: Any) -> Any:
            return 3.0 + 0 * np.asarray(count)

    problem = al.Problem([al.Task("a", 1), al.Task("b", 1)], 100)
    plan = al.allocate(problem, {"a": Flat(), "b": Flat()})
    assert plan.counts == {"a": 0, "b": 0}
    assert plan.exact
    assert al.allocate(problem, {"a": Flat(), "b": Several((4.0,))}).counts == {"a": 0, "b": 12}


@pytest.mark.parametrize("hint", [None, 0, 10, 3e5, 999_999, 10**6, -5, 1e30, math.nan])
def test_the_best_count_is_found_from_any_hint(hint: float | None) -> None:
    rng = random.Random(1)
    for most in (0, 1, 5, 128, 129, 1000, 10**6):
        counts = np.arange(most + 1.0)
        worths = 5 * np.sqrt(counts)
        for slope in (0.0, 1e-9, rng.uniform(0, 3), 0.0025, 10.0):
            found = climb(lambda steps: 5 * np.sqrt(steps), most, slope, hint)
            assert found == int(np.argmax(worths - slope * counts))


def test_a_wrong_reach_costs_time_and_nothing_else() -> None:
    problem = al.Problem([al.Task("a", 1), al.Task("b", 3)], 10**6)
    other = al.Logarithmic(100, 10)
    right = al.allocate(problem, {"a": Root(5), "b": other})
    wrong = al.allocate(problem, {"a": WrongReach(5), "b": other})
    assert wrong.counts == right.counts
    assert wrong.exact


# --- curves that no plan can be made with ---


def curve_of(total: Callable[[Any], Any], name: str = "Bad") -> al.Curve:
    made = type(name, (al.Curve,), {"total": lambda self, count: total(count)})
    return dataclass(frozen=True)(made)()


def only_numbers(count: Any) -> Any:
    return math.sqrt(count)


def only_arrays(count: Any) -> Any:
    return np.array([each**0.5 for each in count])


def fail(count: Any) -> Any:
    raise RuntimeError("no such table")


BAD = {
    "convex": (lambda n: np.square(n), "Bad is not concave: a label after 1 adds 3, more than one"),
    "convex far out": (
        lambda n: np.sqrt(n) + np.maximum(0, np.asarray(n) - 80_000),
        "Bad is not concave",
    ),
    "convex at the start": (
        lambda n: np.where(np.asarray(n) < 2, 0.5 * np.asarray(n), np.sqrt(n)),
        "Bad is not concave: a label after 1",
    ),
    "a step": (lambda n: np.where(np.asarray(n) < 700, 0.0, 1.0), "Bad is not concave"),
    "wavy": (lambda n: np.sqrt(n) + 0.01 * np.sin(n), "Bad (is not concave|falls)"),
    "falling": (lambda n: -np.sqrt(n), "Bad falls: 1 labels are worth 1 less than 0"),
    "falling in the end": (
        lambda n: np.asarray(n) * (1 - np.asarray(n) / 1000.0),
        "Bad falls: 501 labels",
    ),
    "nan": (
        lambda n: np.where(np.asarray(n) > 90, np.nan, np.sqrt(n)),
        "Bad is worth nan from 0 to",
    ),
    "infinite": (lambda n: np.where(np.asarray(n) > 90, np.inf, np.sqrt(n)), "Bad is worth inf"),
    "nan at nothing": (lambda n: np.where(np.asarray(n) > 0, np.sqrt(n), np.nan), "worth nan"),
    "raises": (fail, r"Bad fails when it is asked for \d+ counts at once \(RuntimeError: no such"),
    "not vectorised": (only_numbers, "it must take arrays as well as numbers: np.sqrt in place of"),
    "no numbers": (only_arrays, r"Bad fails when it is asked for \d+ labels \(TypeError"),
    "one answer": (lambda n: 5.0, r"Bad answers 1 numbers where it is asked for \d+ counts"),
    "text": (lambda n: "much", "Bad fails when it is asked"),
    "another answer alone": (
        lambda n: np.sqrt(n) * (1 if np.ndim(n) else 2),
        "Bad says that .* labels are worth .* alone, and",
    ),
    "random": (
        lambda n: np.sqrt(n) + np.random.default_rng().uniform(0, 1, np.shape(n)),
        "Bad ",
    ),
}
PLANNERS: dict[str, Callable[[al.Problem, Any], object]] = {
    "allocate": al.allocate,
    "frontier": al.frontier,
    "cheapest": lambda problem, gains: al.cheapest(problem, gains, target=500),
    "score": lambda problem, gains: al.score(problem, gains, {"a": 1, "b": 95_000}),
    "plan from its plain form": lambda problem, gains: al.Plan.from_dict(
        al.Plan(problem, gains, {"a": 0, "b": 95_000}, 1.0).to_dict(),
        curves=[type(term) for term in gains["b"].terms if is_own(term)],
    ),
}


@pytest.mark.parametrize("given", BAD)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("weight", [1, 0])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_sound_is_refused(given: str, planner: str, weight: int) -> None:
    total, what = BAD[given]
    problem = al.Problem([al.Task("a", 1), al.Task("b", 1, weight=weight)], 100_000)
    if planner == "cheapest" and given in ("convex far out", "nan", "infinite"):
        problem = al.Problem([al.Task("a", 1), al.Task("b", 1, weight=weight, least=95_000)], 1)
    gains = {"a": al.Geometric(0.01, 0.9999), "b": curve_of(total) + al.Geometric(1, 0.9)}
    with pytest.raises(al.InputError, match=what) as caught:
        PLANNERS[planner](problem, gains)
    (mistake,) = caught.value.mistakes
    assert mistake.where == "gain of 'b'"


def test_all_that_is_not_sound_is_said_at_once() -> None:
    problem = al.Problem([al.Task("a", 1), al.Task("b", 1), al.Task("c", 1)], 100)
    bad = {
        "a": curve_of(np.square),
        "b": Root(1),
        "c": al.Coupled(curve_of(np.negative, "Worse"), {"a": 1}),
    }
    with pytest.raises(al.InputError) as caught:
        al.allocate(problem, bad)
    assert [each.where for each in caught.value.mistakes] == ["gain of 'a'", "gain of 'c'"]
    assert caught.value.mistakes[1].what.startswith("Worse falls")


def test_only_what_can_be_bought_is_looked_at() -> None:
    short = curve_of(lambda n: np.where(np.asarray(n) <= 50, np.sqrt(n), np.nan))
    problem = al.Problem([al.Task("a", 1, pool=50), al.Task("b", 1)], 1000)
    assert al.allocate(problem, {"a": short, "b": Root(0.1)}).counts["a"] == 50
    with pytest.raises(al.InputError, match="nan"):
        al.allocate(al.Problem([al.Task("a", 1, pool=51)], 1000), {"a": short})


def up_to_fifty(count: Any) -> Any:
    if np.max(count) > 50:
        raise LookupError("past the end")
    return np.sqrt(count)


@pytest.mark.parametrize("limits", ["pool", "lots", "implied", "cap"])
def test_nothing_is_asked_past_what_can_be_bought(limits: str) -> None:
    own = curve_of(up_to_fifty)
    tasks = {
        "pool": [al.Task("a", 1, pool=50), al.Task("b", 2, fee=20)],
        "lots": [al.Task("a", 1, pool=52, lot=10, tiers={20: 2}), al.Task("b", 2)],
        "implied": [al.Task("a", 1, pool=50), al.Task("b", 2, implies="a")],
        "cap": [al.Task("a", 1, most=50), al.Task("b", 2, least=3)],
    }[limits]
    caps = [al.Cap("hours", 60, {"a": 1, "b": 1})] if limits == "cap" else []
    problem = al.Problem(tasks, 300, caps, limits == "implied")
    gains = {"a": own, "b": al.Geometric(0.5, 0.97)}
    plan = al.allocate(problem, gains)
    assert plan.exact
    assert plan.why_unspent == () or plan.unspent
    assert set(plan.plateau) == set(plan.break_even) == {"a", "b"}
    assert plan.compare().rows
    assert al.frontier(problem, gains).at(100).exact
    assert al.cheapest(problem, gains, target=0.9 * plan.value).value >= 0.9 * plan.value


def test_rounding_is_no_mistake() -> None:
    for total in (
        lambda n: 1 - np.exp(-np.asarray(n) / 50),
        lambda n: 1e6 - 1e6 / (1 + np.asarray(n) / 1e4),
        lambda n: 10 * (300**-0.5 - (300 + np.asarray(n)) ** -0.5),
        lambda n: 0.1 * np.asarray(n),
        lambda n: np.minimum(n, 0.1 * 3),
        lambda n: np.log(1 + np.asarray(n) / 1e4),
        lambda n: np.asarray(n) ** 0.999999,
        lambda n: 1e-9 * np.tanh(np.asarray(n) / 7),
    ):
        for budget in (10, 1000, 10**6, 10**10):
            problem = al.Problem([al.Task("a", 1), al.Task("b", 2)], budget)
            assert al.allocate(problem, {"a": curve_of(total), "b": curve_of(total)}).exact


INCOMPLETE = {
    "nothing": (type("Empty", (al.Curve,), {}), "is not a frozen dataclass"),
    "not frozen": (
        dataclass(type("Loose", (al.Curve,), {"total": lambda self, n: n})),
        "is not a frozen dataclass; write @dataclass(frozen=True) above it",
    ),
    "no worth": (
        dataclass(frozen=True)(type("Mute", (al.Curve,), {})),
        "Mute does not say what labels are worth; give it a method total(self, count)",
    ),
    "a name that is taken": (
        dataclass(frozen=True)(
            type("Mine", (al.Curve,), {"family": "power", "total": lambda self, n: n})
        ),
        "Mine has the family 'power'; give it a name that is no built-in curve's (geometric,",
    ),
}


@pytest.mark.parametrize("given", INCOMPLETE)
@pytest.mark.parametrize("planner", ["allocate", "frontier", "cheapest", "score"])
def test_what_is_not_complete_is_refused(given: str, planner: str) -> None:
    cls, what = INCOMPLETE[given]
    problem = al.Problem([al.Task("a", 1), al.Task("b", 1)], 100)
    for curve in (cls(), 2 * cls(), cls() + Root(1)):
        with pytest.raises(al.InputError) as caught:
            PLANNERS[planner](problem, {"a": Root(1), "b": curve})
        (mistake,) = caught.value.mistakes
        assert mistake.where == "gain of 'b'"
        assert what in mistake.what
    with pytest.raises(al.InputError) as caught:
        al.Coupled(cls(), {"a": 1})
    assert what in str(caught.value)


def test_a_falling_family_beside_a_curve_of_ones_own_is_refused() -> None:
    problem = al.Problem([al.Task("a", 1)], 100)
    with pytest.raises(al.InputError, match="a falling curve is added to a rising one"):
        al.allocate(problem, {"a": Root(1) + al.Geometric(-1, 0.5)})


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Root("x"), "size: 'x' is not a number"),
        (lambda: Root(math.inf), "size: inf is not a finite number"),
        (lambda: Root(1) * -1, "factor: a curve times a negative number is no longer concave"),
        (lambda: Root(1) * "x", "factor: 'x' is not a number"),
        (lambda: Scaled(Root(1) + Root(1), 2), "inner: must be one curve of one count"),
        (lambda: Scaled(5, 2), "inner: must be one curve of one count"),
    ],
)
def test_parameters_are_checked(make: Callable[[], object], what: str) -> None:
    with pytest.raises(al.InputError, match=what):
        make()


# --- plain forms and names ---


def test_families_are_what_their_classes_say() -> None:
    assert {name: (cls.family, *cls.keys()) for name, cls in FAMILIES.items()} == {
        "geometric": ("geometric", "informativeness", "reduction"),
        "power": ("power", "worth", "have", "exponent", "ceiling"),
        "logarithmic": ("logarithmic", "worth", "have"),
        "tabulated": ("tabulated", "values", "counts"),
        "scaled": ("scaled", "inner", "factor"),
        "sum": ("sum", "parts"),
        "coupled": ("coupled", "inner", "weights"),
    }
    assert [key for key, must in al.Power.keys().items() if not must] == ["ceiling"]


def test_a_scaled_family_is_that_family() -> None:
    plain = {"curve": "scaled", "inner": al.Geometric(2, 0.5).to_dict(), "factor": Decimal("1.5")}
    assert curve_from_dict(plain) == al.Geometric(3, 0.5)
    assert 2 * (3 * Root(1)) == Scaled(Root(1), 6.0)


def test_a_plan_comes_back_from_its_plain_form() -> None:
    problem = al.Problem([al.Task("a", 1, weight=2), al.Task("b", 3)], 500)
    gains = {"a": 2 * Root(5) + al.Geometric(1, 0.9), "b": al.Coupled(Root(1), {"a": 1, "b": 2})}
    plan = al.allocate(problem, gains)
    plain = json.loads(json.dumps(plan.to_dict()))
    assert al.Plan.from_dict(plain, curves=[Root]) == plan
    with pytest.raises(al.InputError, match=r"unknown curve 'root'; known: geometric, .*installed"):
        al.Plan.from_dict(plain)


def test_no_class_takes_the_place_of_a_family() -> None:
    mine = dataclass(frozen=True)(
        type("Mine", (al.Curve,), {"family": "geometric", "total": lambda self, n: n})
    )
    with pytest.raises(al.InputError, match="Mine has the family 'geometric'"):
        curve_from_dict({"curve": "geometric"}, own=[mine])


@pytest.mark.parametrize(
    ("offered", "what"),
    [
        (Root, "Root is offered as 'other', but its family is 'root'; give it one name"),
        (int, "<class 'int'> is not a class that builds on al.Curve"),
        (Root(5), "is not a class that builds on al.Curve"),
    ],
)
def test_what_a_package_offers_must_be_a_curve(
    offered: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry("curves", "curve", (), {"other": lambda: offered})
    monkeypatch.setattr(gains, "CURVES", registry)
    with pytest.raises(al.InputError) as caught:
        curve_from_dict({"curve": "other", "size": 3})
    assert what in str(caught.value)


def test_what_a_class_says_of_bad_values_is_told() -> None:
    @dataclass(frozen=True)
    class Picky(al.Curve):
        size: float

        def __post_init__(self) -> None:
            raise LookupError("there is no such size")

        def total(self, count: Any) -> Any:
            return count

    with pytest.raises(al.InputError, match=r"Picky cannot be made .*LookupError: there is no"):
        Picky.from_dict({"curve": "picky", "size": 3})
    with pytest.raises(al.InputError, match="sise: unknown key; did you mean 'size'"):
        Picky.from_dict({"curve": "picky", "sise": 3})
