"""The exact optimum: the paper's published instances, hand-made ties, very large problems, honest
gaps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np
import pytest
from helpers.instances import best_by_table, random_problem, try_every_plan

import allotment as al
from allotment.solver import search

VOC_GAINS = ("1.13", "2.03"), ("0.999", "0.997")
TASKONOMY_COSTS = (10, 3, 3, 2, 3)
TASKONOMY_GAINS = (
    ("0.73", "0.23", "2.24", "2.74", "2.17"),
    (
        "0.9964",
        "0.9997",
        "0.9998",
        "0.9999",
        "0.9998",
    ),
)

OPTIMA = {
    "VOC 1:3": ((1, 3), VOC_GAINS, 1_200, (855, 115)),
    "VOC 1:20": ((1, 20), VOC_GAINS, 6_300, (2920, 169)),
    "VOC 1:30": ((1, 30), VOC_GAINS, 9_300, (3390, 197)),
    "VOC 1:20, more money": ((1, 20), VOC_GAINS, 9_300, (3300, 300)),
    "Taskonomy": (TASKONOMY_COSTS, TASKONOMY_GAINS, 210_000, (361, 4496, 18123, 42319, 17965)),
    "Taskonomy, a tenth": (TASKONOMY_COSTS, TASKONOMY_GAINS, 21_000, (0, 0, 934, 7935, 776)),
}
PUBLISHED_VALUES = {"Taskonomy": (49170.526, 3), "Taskonomy, a tenth": (18477.03528, 5)}


def plan_for(
    costs: Sequence[object], gains: Sequence[al.Curve], budget: object, **limits: object
) -> al.Plan:
    names = [f"t{index}" for index in range(len(costs))]
    tasks = [al.Task(name, cost) for name, cost in zip(names, costs, strict=True)]
    return al.allocate(al.Problem(tasks, budget, **limits), dict(zip(names, gains, strict=True)))


def counts_of(plan: al.Plan) -> tuple[int, ...]:
    return tuple(plan.counts.values())


def geometrics(parameters: tuple[Sequence[str], Sequence[str]]) -> list[al.Curve]:
    return [al.Geometric(float(size), float(keep)) for size, keep in zip(*parameters, strict=True)]


@pytest.mark.parametrize("name", OPTIMA)
def test_published_optimum(name: str) -> None:
    costs, parameters, budget, counts = OPTIMA[name]
    plan = plan_for(costs, geometrics(parameters), budget)
    assert counts_of(plan) == counts
    assert plan.gap == 0
    assert plan.spent <= budget
    with localcontext(prec=50):  # Eq. 4 in decimals, as it is printed
        value = sum(
            Decimal(size) * (1 - Decimal(keep) ** count) / (1 - Decimal(keep))
            for size, keep, count in zip(*parameters, counts, strict=True)
        )
    assert plan.value == pytest.approx(float(value), rel=1e-12)
    if name in PUBLISHED_VALUES:
        published, digits = PUBLISHED_VALUES[name]
        assert round(plan.value, digits) == published


def test_linear_gains_put_everything_on_the_best_per_cost() -> None:
    assert counts_of(plan_for((1, 20), [al.Geometric(1.13, 1), al.Geometric(2.03, 1)], 6300)) == (
        6300,
        0,
    )
    assert counts_of(plan_for((1, 20), [al.Geometric(1.13, 1), al.Geometric(30, 1)], 6300)) == (
        0,
        315,
    )


def test_a_reduction_rate_of_zero_buys_one_label_each() -> None:
    plan = plan_for((1, 20), [al.Geometric(1.13, 0), al.Geometric(2.03, 0)], 6300)
    assert counts_of(plan) == (1, 1)
    assert plan.value == pytest.approx(1.13 + 2.03, rel=1e-12)
    assert counts_of(plan_for((1, 20), [al.Geometric(1.13, 0), al.Geometric(2.03, 0)], 20)) == (
        0,
        1,
    )


@pytest.mark.parametrize("size", [0.0, -1e-9, -2.03])
@pytest.mark.parametrize("keep", [0.0, 0.997, 1.0])
def test_what_is_worth_nothing_is_not_bought(size: float, keep: float) -> None:
    worthless = al.Geometric(size, keep)
    assert counts_of(plan_for((1, 20), [worthless, worthless], 6300)) == (0, 0)
    assert counts_of(plan_for((1, 20), [al.Geometric(1.13, 1), worthless], 6300)) == (6300, 0)
    assert counts_of(plan_for((1, 20), [worthless, al.Power(1, 300, 0.5)], 6300)) == (0, 315)


@pytest.mark.parametrize("pool", [None, 2000])
def test_counted_implied_labels_change_the_plan(pool: int | None) -> None:
    tasks = [al.Task("cls", 1, pool=pool), al.Task("seg", 20, implies="cls")]
    gains = dict(zip(("cls", "seg"), geometrics(VOC_GAINS), strict=True))
    plan = al.allocate(al.Problem(tasks, 6300, count_implied=True), gains)
    best = (-1.0, 0, ())
    for seg in range(6300 // 20 + 1):
        cls = np.arange(min(6300 - 20 * seg, pool or 6300) + 1)
        labels = cls + seg if pool is None else np.minimum(cls + seg, pool)
        value = 1.13 * (1 - 0.999**labels) / 0.001 + 2.03 * (1 - 0.997**seg) / 0.003
        at = int(np.argmax(value))
        best = max(best, (float(value[at]), -at - 20 * seg, (at, seg)))
    assert counts_of(plan) == best[2]
    assert counts_of(plan) != (2920, 169)
    assert plan.value == pytest.approx(best[0], rel=1e-12)
    assert plan.gap == 0
    paper = al.allocate(al.Problem(tasks, 6300), gains)
    assert paper.counts["seg"] == (169 if pool is None else 215)


ONE, TWO, LINE = al.Tabulated([0, 1]), al.Tabulated([0, 2]), al.Geometric(1, 1)


@pytest.mark.parametrize(
    ("costs", "gains", "budget", "counts"),
    [
        pytest.param((3, 2), (ONE, ONE), 3, (0, 1), id="least money before task order"),
        pytest.param((2, 2), (ONE, ONE), 3, (1, 0), id="then task order"),
        pytest.param((2, 2, 2), (ONE, ONE, ONE), 4, (1, 1, 0), id="task order among three"),
        pytest.param(
            (4, 2),
            (TWO, al.Tabulated([0, 1, 2])),
            4,
            (1, 0),
            id="one dear or two cheap, dear first",
        ),
        pytest.param(
            (2, 4),
            (al.Tabulated([0, 1, 2]), TWO),
            4,
            (2, 0),
            id="one dear or two cheap, cheap first",
        ),
        pytest.param(
            (1, 1), (al.Tabulated([0, 5, 5]), ONE), 9, (1, 1), id="what adds nothing is left"
        ),
        pytest.param(
            (1, 1, 1), (LINE, LINE, LINE), 1000, (1000, 0, 0), id="equal slopes, all on the first"
        ),
        pytest.param(
            (2, 1), (2 * LINE, LINE), 1000, (500, 0), id="equal density, all on the first"
        ),
        pytest.param((2, 1), (2 * LINE, LINE), 999, (499, 1), id="equal density, an odd unit"),
        pytest.param(("0.1", "0.2"), (ONE, TWO), "0.29", (0, 1), id="decimals"),
        pytest.param(
            (3, 5), (3 * LINE, 5 * LINE), 7, (2, 0), id="knapsack of equal density, one unit left"
        ),
        pytest.param(
            (5, 3),
            (5 * LINE, 3 * LINE),
            11,
            (1, 2),
            id="knapsack of equal density, spent to the end",
        ),
    ],
)
def test_ties(
    costs: Sequence[object], gains: Sequence[al.Curve], budget: object, counts: Sequence[int]
) -> None:
    assert counts_of(plan_for(costs, gains, budget)) == counts


def test_ties_under_a_cap_and_a_fee() -> None:
    cap = al.Cap("hours", 3, {"a": 1, "b": 1})
    tasks = [al.Task("a", 2), al.Task("b", 2), al.Task("c", 2)]
    lines = dict.fromkeys("abc", LINE)
    assert counts_of(al.allocate(al.Problem(tasks, 20, [cap]), lines)) == (3, 0, 7)
    assert counts_of(al.allocate(al.Problem(tasks[::-1], 6, [cap]), lines)) == (3, 0, 0)
    fees = [al.Task("a", 1, fee=2), al.Task("b", 3)]
    assert counts_of(al.allocate(al.Problem(fees, 3), {"a": ONE, "b": ONE})) == (1, 0)
    assert counts_of(al.allocate(al.Problem(fees[::-1], 3), {"a": ONE, "b": ONE})) == (1, 0)
    dear = [al.Task("a", 2, fee=2), al.Task("b", 3)]
    assert counts_of(al.allocate(al.Problem(dear, 4), {"a": ONE, "b": ONE})) == (0, 1)


FLAT = al.Tabulated([0, 5, 8, 8])


@pytest.mark.parametrize(
    ("problem", "gains", "counts"),
    [
        pytest.param(
            al.Problem([al.Task("a", 1), al.Task("b", 1, implies="a")], 1000, count_implied=True),
            (FLAT, ONE),
            (1, 1),
            id="implied labels",
        ),
        pytest.param(
            al.Problem([al.Task("a", 10, fee=100)], 24_000, [al.Cap("hours", 900, {"a": "0.75"})]),
            (FLAT + al.Coupled(al.Tabulated([0, 5, 8], counts=[0, 10, 100]), {"a": 1}),),
            (100,),
            id="a cap and a coupled curve",
        ),
        pytest.param(
            al.Problem(
                [al.Task("a", 1), al.Task("b", 1, weight=0)],
                1000,
                [al.Cap("hours", 900, {"a": 1, "b": 1})],
            ),
            (FLAT, LINE),
            (2, 0),
            id="a task without weight",
        ),
        pytest.param(
            al.Problem(
                [
                    al.Task("a", 2, fee=3, implies=("b", "c")),
                    al.Task("b", 1, fee=1),
                    al.Task("c", 26),
                ],
                1000,
                count_implied=True,
            ),
            (al.Tabulated([0, 4, 4]), al.Tabulated([0, 1, 2, 3, 3]), al.Tabulated([0, 4, 4])),
            (1, 2, 0),
            id="two ways to the most that can be had",
        ),
    ],
)
def test_money_that_adds_nothing_is_kept_under_several_limits(
    problem: al.Problem, gains: Sequence[al.Curve], counts: Sequence[int]
) -> None:
    plan = al.allocate(problem, dict(zip(problem.names, gains, strict=True)))
    assert counts_of(plan) == counts


def test_labels_below_rounding_are_not_bought_under_a_cap() -> None:
    problem = al.Problem([al.Task("a", 1)], 1000, [al.Cap("hours", 900, {"a": 1})])
    plan = al.allocate(problem, {"a": al.Geometric(2, 0.5)})
    assert plan.value == pytest.approx(4, rel=1e-12)
    assert plan.counts["a"] < 60


@pytest.mark.parametrize("inner", ["geometric", pytest.param("sum", marks=pytest.mark.long)])
def test_labels_that_count_in_small_part_for_another_task(inner: str) -> None:
    rng = random.Random(inner)
    for _ in range(40):
        tasks = [
            al.Task(name, rng.randint(1, 9), most=60, fee=rng.choice([0, 0, 40])) for name in "ab"
        ]
        gains = {name: al.Geometric(rng.uniform(0.01, 1), rng.uniform(0.9, 0.999)) for name in "ab"}
        curve: al.Curve = al.Geometric(
            rng.uniform(1, 300), rng.choice([0.001, 0.01, 0.1, 0.3, 0.5])
        )
        if inner == "sum":
            curve = curve + al.Logarithmic(rng.uniform(1, 30), 3)
        shares = {name: rng.choice(["0.001", "0.01", "0.1", "0.25", "0.333"]) for name in "ab"}
        gains["a"] = gains["a"] + al.Coupled(curve, shares)
        problem = al.Problem(tasks, rng.randint(50, 500))
        plan = al.allocate(problem, gains)
        assert plan.gap == 0
        assert plan.value == pytest.approx(try_every_plan(problem, gains)[0], rel=1e-9)


@pytest.mark.parametrize("worth", [1.0, 1e6, 1e12, 1e20])
def test_what_nobody_can_pay_does_not_disturb_the_rest(worth: float) -> None:
    gains = [al.Geometric(worth, 0.5), al.Geometric(1, 0.6), al.Geometric(1.3, 0.7)]
    assert counts_of(plan_for((10, 1, 2), gains, 9)) == (0, 3, 3)


def lagrangian_bound(
    costs: Sequence[int], sizes: Sequence[float], keeps: Sequence[float], budget: int, price: float
) -> float:
    """y B + sum of max_N g(N) - y c N for geometric gains, from the N at which the next label is
    worth y c."""
    total = price * budget
    for cost, size, keep in zip(costs, sizes, keeps, strict=True):
        at = max(0, int(np.log(price * cost / size) / np.log(keep)))
        near = np.maximum(np.arange(at - 3, at + 4), 0)
        total += float(
            np.max(size * -np.expm1(near * np.log(keep)) / (1 - keep) - price * cost * near)
        )
    return total


@pytest.mark.parametrize(
    "costs", [(1000, 999, 997, 7, 1), (10, 3, 3, 2, 3), (1000, 500, 250, 5, 1)]
)
def test_a_budget_of_a_million_million(costs: Sequence[int]) -> None:
    budget = 10**12
    sizes = [3.0, 2.5, 7.0, 0.02, 0.004]
    keeps = [1 - 2e-9, 1 - 1e-9, 1 - 3e-9, 1 - 2e-10, 1 - 1e-10]
    plan = plan_for(costs, [al.Geometric(*pair) for pair in zip(sizes, keeps, strict=True)], budget)
    assert plan.gap == 0
    assert plan.spent <= budget
    assert float(plan.unspent) * plan.money_worth <= 1e-12 * plan.value
    assert all(count > 0 for count in counts_of(plan))
    bounds = [
        lagrangian_bound(costs, sizes, keeps, budget, plan.money_worth * factor)
        for factor in (0.99, 1, 1.01)
    ]
    assert plan.value <= min(bounds) * (1 + 1e-12)
    assert plan.value >= bounds[1] * (1 - 1e-9)


def test_a_thousand_tasks() -> None:
    rng = random.Random(1)
    tasks, gains = [], {}
    for index in range(1000):
        tasks.append(al.Task(f"t{index}", rng.randint(1, 60)))
        gains[f"t{index}"] = al.Geometric(rng.uniform(0.1, 3), rng.uniform(0.3, 0.999))
    problem = al.Problem(tasks, 2000)
    plan = al.allocate(problem, gains)
    assert plan.gap == 0
    assert not plan.score().broken
    assert plan.value == pytest.approx(best_by_table(problem, gains)[-1], rel=1e-9)


@pytest.mark.long
def test_a_search_cut_short_says_by_how_much_it_can_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, little in {
        "MOST_REGIONS": 1,
        "LONGEST_LIST": 2,
        "SHORT_LIST": 2,
        "MOST_TIES": 1,
    }.items():
        monkeypatch.setattr(search, name, little)
    worse = open_ended = 0
    for index in range(150):
        problem, gains, _ = random_problem(3, index)
        try:
            plan = al.allocate(problem, gains)
        except al.Infeasible:
            continue
        best, _ = try_every_plan(problem, gains)
        assert not plan.score().broken
        assert plan.gap >= 0
        assert plan.value + plan.gap >= best - 1e-9 * abs(best)
        assert plan.exact == (plan.gap == 0)
        worse += plan.value < best - 1e-9 * abs(best)
        open_ended += plan.gap > 0
    assert worse >= 3
    assert open_ended >= 20


def test_labels_that_only_harm_beside_a_cap_are_left() -> None:
    """Nothing here is worth more than nothing, so there is no scale to measure worth by."""
    tasks = [al.Task("a", 1, pool=200, lot=7), al.Task("b", 1, pool=0, fee=40, implies="a")]
    problem = al.Problem(tasks, 10, [al.Cap("hours", 78, {"a": 2})], count_implied=True)
    plan = al.allocate(problem, {"a": al.Tabulated([0, 0, -1]), "b": al.Tabulated([0, 4, 2])})
    assert plan.counts == {"a": 0, "b": 0}


@pytest.mark.parametrize("frozen", [10**3, 10**12])
@pytest.mark.parametrize("cap", [False, True])
def test_money_that_is_spent_already_takes_no_part(frozen: int, cap: bool) -> None:
    """Its worth and its price are far above all that is to be decided."""
    tasks = [
        al.Task("done", 100, frozen=frozen),
        al.Task("a", 3),
        al.Task("b", 5, least=2),
        al.Task("c", 7, fee=4),
    ]
    gains = {"a": al.Geometric(1, 0.9), "b": al.Power(30, 3, 0.5), "c": al.Logarithmic(4, 2)}
    caps = [al.Cap("hours", frozen + 30, {"done": 1, "a": 1, "b": 2})] if cap else []
    left = [al.Cap("hours", 30, {"a": 1, "b": 2})] if cap else []
    plan = al.allocate(
        al.Problem(tasks, 100 * frozen + 97, caps), gains | {"done": al.Geometric(1e12, 1)}
    )
    alone = al.allocate(al.Problem(tasks[1:], 97, left), gains)
    assert plan.counts == {"done": frozen} | alone.counts
    assert plan.exact
    assert plan.money_worth == pytest.approx(alone.money_worth, rel=1e-9)
    if frozen < 10**6 and not cap:  # beyond it prices are no longer told apart to four digits
        assert plan.break_even == {"done": None} | alone.break_even


def test_plans_beside_what_is_fixed_are_told_apart() -> None:
    """Worths that differ by less than a digit of their sum still come in their order, and have
    their reasons."""
    tasks = [al.Task("done", 1, frozen=1), al.Task("a", 1, most=9), al.Task("b", 1)]
    gains = {"done": al.Geometric(1e20, 1), "a": al.Geometric(1, 1), "b": al.Tabulated([0, 3, 3])}
    plan = al.allocate(al.Problem(tasks, 21), gains)
    assert plan.counts == {"done": 1, "a": 9, "b": 1}
    others = {
        "worst": {"done": 1},
        "best": {"done": 1, "a": 8, "b": 1},
        "middle": {"done": 1, "a": 5},
    }
    assert [row.name for row in plan.compare(others).rows[1:]] == ["best", "middle", "worst"]
    assert plan.why_unspent == (
        "done: frozen at 1",
        "a: most of 9 reached",
        "b: more labels are worth nothing",
    )
    assert al.allocate(al.Problem(tasks, 6), gains).counts == {"done": 1, "a": 4, "b": 1}
    assert al.frontier(al.Problem(tasks, 6), gains).counts["a"].tolist() == [0, 0, 1, 2, 3, 4]
