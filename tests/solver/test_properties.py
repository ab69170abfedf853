"""What holds for every plan, on random problems too large to try every plan of."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.instances import (
    KINDS,
    SINGLE,
    best_by_table,
    buy_by_density,
    choices_of,
    dual_bound,
    every_plan,
    keeps_limits,
    large_problem,
    random_problem,
    value_by_hand,
)

import allotment as al
from allotment import frontiers as budgets

Instance = tuple[al.Problem, dict[str, al.Curve]]
CONCAVE = ("pool", "least", "most", "frozen", "lot", "tiers_up", "weight", "cents")
TIGHT = 1e-9


def some(count: int) -> list[Any]:
    """Numbers from 0: the first fifth in `make test`, the others in `make test-long`."""
    return [
        pytest.param(number, marks=[] if 5 * number < count else [pytest.mark.long])
        for number in range(count)
    ]


def instance(label: str, seed: int) -> Instance:
    """Two large ones limited by money alone, then a smaller one with limits on several tasks at
    once."""
    if seed % 3:
        return large_problem(f"{label} {seed}", SINGLE)
    return large_problem(f"{label} {seed}", KINDS, sizes=(2, 6), budgets=(100, 20_000))


def at_least(value: float, other: float) -> bool:
    return value >= other - TIGHT * max(abs(value), abs(other))


def close(value: float, other: float) -> bool:
    return at_least(value, other) and at_least(other, value)


@pytest.mark.parametrize("seed", some(60))
def test_no_worse_than_any_baseline_and_the_greedy_plan(seed: int) -> None:
    problem, gains = instance("plan", seed)
    plan = al.allocate(problem, gains)
    assert keeps_limits(problem, plan.counts)
    assert not plan.score().broken
    assert close(plan.value, value_by_hand(problem, gains, plan.counts))
    others = al.baselines(problem) | {"greedy": buy_by_density(problem, gains)}
    for name, counts in others.items():
        assert keeps_limits(problem, counts), name
        assert at_least(plan.value, value_by_hand(problem, gains, counts)), name
    for task in problem.tasks:  # and no label is bought for nothing
        if plan.counts[task.name] > task.floor:
            less = plan.counts | {task.name: plan.counts[task.name] - task.lot}
            assert value_by_hand(problem, gains, less) < plan.value * (1 - 1e-15), task.name


@pytest.mark.parametrize("seed", some(60))
def test_within_the_bound_of_the_dual(seed: int) -> None:
    problem, gains = large_problem(f"dual {seed}", (*SINGLE, "cap"))
    plan = al.allocate(problem, gains)
    price = plan.money_worth * float(problem.unit)
    for factor in (0, 0.5, 0.9, 1, 1.1, 2, 10):
        assert at_least(dual_bound(problem, gains, price * factor), plan.value)


@pytest.mark.parametrize("seed", some(40))
def test_concave_problems_come_within_one_lot_of_the_dual(seed: int) -> None:
    problem, gains = large_problem(f"concave {seed}", CONCAVE)
    plan = al.allocate(problem, gains)
    price = plan.money_worth * float(problem.unit)
    lot = max(
        float(cost * task.lot / problem.unit) for task in problem.tasks for *_, cost in task.prices
    )
    assert plan.gap == 0
    assert at_least(plan.value, dual_bound(problem, gains, price) - price * lot)


@pytest.mark.parametrize("seed", some(30))
def test_the_order_of_tasks_changes_nothing(seed: int) -> None:
    problem, gains = instance("order", seed)
    plan = al.allocate(problem, gains)
    tasks = list(problem.tasks)
    random.Random(seed).shuffle(tasks)
    for order in (tasks, tasks[::-1]):
        other = al.allocate(
            al.Problem(order, problem.budget, problem.caps, problem.count_implied), gains
        )
        assert at_least(other.value + other.gap, plan.value)
        assert at_least(plan.value + plan.gap, other.value)
        if not plan.gap and not other.gap:
            assert other.spent == plan.spent


def in_other_money(problem: al.Problem, factor: Fraction) -> al.Problem:
    tasks = []
    for task in problem.tasks:
        plain = task.to_dict() | {"cost": task.cost * factor, "fee": task.fee * factor}
        plain["tiers"] = [{"after": after, "cost": cost * factor} for after, cost in task.tiers]
        tasks.append(al.Task.from_dict(plain))
    return al.Problem(tasks, problem.budget * factor, problem.caps, problem.count_implied)


@pytest.mark.parametrize("seed", some(30))
@pytest.mark.parametrize("factor", [Fraction(7), Fraction(1, 8), Fraction("0.01")], ids=str)
def test_the_unit_of_money_changes_nothing(seed: int, factor: Fraction) -> None:
    problem, gains = instance("money", seed)
    plan = al.allocate(problem, gains)
    other = al.allocate(in_other_money(problem, factor), gains)
    assert other.counts == plan.counts
    assert other.money_worth * float(factor) == pytest.approx(plan.money_worth, rel=1e-6)


@pytest.mark.parametrize("seed", some(30))
@pytest.mark.parametrize("factor", [0.125, 3.7, 1e-30, 1e30])
def test_the_unit_of_worth_changes_nothing(seed: int, factor: float) -> None:
    problem, gains = instance("worth", seed)
    plan = al.allocate(problem, gains)
    other = al.allocate(problem, {name: factor * curve for name, curve in gains.items()})
    assert other.counts == plan.counts
    assert close(other.value, factor * plan.value)


@pytest.mark.parametrize("seed", some(20))
def test_more_money_is_never_worse(seed: int) -> None:
    problem, gains = instance("more", seed)
    floor = problem.price({task.name: task.floor for task in problem.tasks})
    room = problem.budget - floor
    last = -np.inf
    for step in (40, 41, 60, 80, 99, 100, 130):
        plan = al.allocate(problem.with_budget(floor + room * step / 40), gains)
        assert at_least(plan.value + plan.gap, last)
        last = plan.value


def small_budget(seed: str, kinds: tuple[str, ...] = SINGLE) -> Instance:
    return large_problem(seed, kinds, sizes=(2, 6), budgets=(100, 3000))


@pytest.mark.parametrize("seed", some(60))
def test_equal_to_plain_dynamic_programming(seed: int) -> None:
    problem, gains = small_budget(f"table {seed}")
    table = best_by_table(problem, gains)
    curve = al.frontier(problem, gains)
    assert curve.every_budget
    reached = np.flatnonzero(table > -np.inf)
    np.testing.assert_allclose(curve.budgets, reached * float(problem.unit), rtol=1e-12)
    np.testing.assert_allclose(curve.values, table[reached], rtol=TIGHT, atol=1e-300)
    for place in {0, len(reached) - 1, *random.Random(seed).sample(range(len(reached)), 4)}:
        budget = int(reached[place]) * problem.unit
        counts = {name: int(column[place]) for name, column in curve.counts.items()}
        assert keeps_limits(problem.with_budget(budget), counts)
        assert close(value_by_hand(problem, gains, counts), table[reached[place]])
        at = curve.at(budget)
        assert close(at.value, table[reached[place]])
        assert at.gap == 0
        assert keeps_limits(problem.with_budget(budget), at.counts)
    plan = al.allocate(problem, gains)
    assert close(plan.value, table[-1])
    assert curve.at(problem.budget).counts == plan.counts
    # of equal plans the one of least money
    spent = int(problem.price(plan.counts) / problem.unit)
    assert spent <= np.flatnonzero(table >= table[-1] - 1e-14 * abs(table[-1]))[0]


@pytest.mark.parametrize("seed", some(6))
def test_a_frontier_at_breakpoints_is_exact_there(seed: int) -> None:
    kinds = (*SINGLE, "cap", "coupled", "implied") if seed % 2 else SINGLE
    problem, gains = large_problem(f"frontier {seed}", kinds, sizes=(2, 5))
    if not seed % 2:
        problem = in_other_money(problem, Fraction(1, 100)).with_budget(problem.budget)
        problem = al.Problem(
            [*problem.tasks, al.Task("fine", "0.000001", most=0)], problem.budget, problem.caps
        )
        gains |= {"fine": al.Geometric(1, 0.5)}
    curve = al.frontier(problem, gains)
    assert np.all(np.diff(curve.budgets) > 0)
    assert np.all(np.diff(curve.values) >= -TIGHT * np.abs(curve.values[1:]))
    for place in {
        0,
        len(curve.budgets) - 1,
        *random.Random(seed).sample(range(len(curve.budgets)), 5),
    }:
        budget = Fraction(round(curve.budgets[place] / float(problem.unit))) * problem.unit
        counts = {name: int(column[place]) for name, column in curve.counts.items()}
        assert keeps_limits(problem.with_budget(budget), counts)
        assert close(curve.values[place], value_by_hand(problem, gains, counts))
        assert close(curve.values[place], curve.at(budget).value)


@pytest.mark.parametrize("seed", some(24))
def test_cheapest_is_the_least_money(seed: int) -> None:
    rng = random.Random(seed)
    problem, gains = instance("cheap", seed)
    floors = {task.name: task.floor for task in problem.tasks}
    top = al.allocate(problem, gains)
    task = None if seed % 2 else rng.choice(problem.names)

    def reached(plan: al.Plan) -> float:
        return plan.value if task is None else plan.own_gains[task]

    judged = problem
    if task is not None:
        tasks = [each.with_weight(float(each.name == task)) for each in problem.tasks]
        judged = al.Problem(tasks, problem.budget, problem.caps, problem.count_implied)
        top = al.allocate(judged, gains)
    start = value_by_hand(judged, gains, floors)
    target = start + rng.uniform(0.05, 0.95) * (top.value - start)
    plan = al.cheapest(problem, gains, target=target, task=task)
    assert at_least(reached(plan), target)
    assert keeps_limits(problem.with_budget(max(problem.budget, Fraction(plan.spent))), plan.counts)
    assert plan.spent <= top.spent
    assert plan.unspent == 0
    less = Fraction(plan.spent) - problem.unit
    if less >= problem.price(floors) and problem.price(floors) + cheapest_step(problem) <= less:
        assert al.allocate(judged.with_budget(less), gains).value < target


def cheapest_step(problem: al.Problem) -> Fraction:
    return min(task.price(task.floor + task.lot) - task.price(task.floor) for task in problem.tasks)


def test_cheapest_of_a_target_that_no_plan_reaches() -> None:
    problem = al.Problem([al.Task("a", 1, pool=5), al.Task("b", 2, most=3)], 4)
    gains = {"a": al.Geometric(1, 1), "b": al.Geometric(2, 1)}
    assert al.cheapest(problem, gains, target=11).counts == {"a": 5, "b": 3}
    with pytest.raises(al.Infeasible, match="11"):
        al.cheapest(problem, gains, target=11.001)
    with pytest.raises(al.Infeasible, match="gain of b"):
        al.cheapest(problem, gains, target=6.5, task="b")


@pytest.mark.parametrize("chunk", some(8))
def test_the_plateau_is_the_range_over_all_good_plans(chunk: int) -> None:
    share = (0.01, 0.05, 0.2)[chunk % 3]
    wrong = {}
    for index in range(chunk * 6, chunk * 6 + 6):
        problem, gains, _ = random_problem(7, index)
        try:
            plan = al.allocate(problem, gains)
        except al.Infeasible:
            continue
        grid, _, value = every_plan(problem, gains)
        good = grid[value >= plan.value - share * abs(plan.value) - 1e-12]
        expected = {
            name: (int(column.min()), int(column.max()))
            for name, column in zip(problem.names, good.T, strict=True)
        }
        found = plan.plateau if share == 0.01 else plan.plateau_within(share)
        if found != expected:
            wrong[index] = (found, expected)
    assert not wrong


@pytest.mark.parametrize("seed", some(8))
def test_the_ends_of_the_plateau(seed: int) -> None:
    problem, gains = large_problem(f"plateau {seed}", CONCAVE, sizes=(2, 6))
    plan = al.allocate(problem, gains)
    enough = plan.value - 0.01 * abs(plan.value)

    def best_with(task: al.Task, count: int) -> float:
        changed = al.Task.from_dict(task.to_dict() | {"frozen": count})
        try:
            return al.allocate(problem.with_task(changed), gains).value
        except al.Infeasible:
            return -np.inf

    for task in problem.tasks:
        low, high = plan.plateau[task.name]
        assert low <= plan.counts[task.name] <= high
        assert best_with(task, low) >= enough - TIGHT * abs(enough)
        assert best_with(task, high) >= enough - TIGHT * abs(enough)
        if low > task.floor:
            assert best_with(task, low - task.lot) < enough
        if task.frozen is None:
            assert best_with(task, high + task.lot) < enough


@pytest.mark.parametrize("seed", some(10))
def test_break_even_prices(seed: int) -> None:
    kinds = (
        "pool",
        "most",
        "frozen",
        "fee",
        "weight",
        "cents",
    )  # a `least` can make room for a stray label at any price
    problem, gains = large_problem(f"price {seed}", kinds, sizes=(2, 5), budgets=(500, 100_000))
    plan = al.allocate(problem, gains)
    for task in problem.tasks:
        price = plan.break_even[task.name]
        if price is None:
            assert plan.counts[task.name] == task.floor
            continue
        for factor in ("0.98", "1.02"):
            cost = Fraction(f"{price:.4g}") * Fraction(factor)
            try:
                other = al.allocate(problem.with_task(task.with_cost(cost)), gains)
                bought = other.counts[task.name] > task.floor
            except al.Infeasible:
                bought = False
            assert bought == (factor == "0.98"), (task.name, price, factor)


def test_break_even_prices_by_hand() -> None:
    line = al.Geometric(1, 1)
    tasks = [
        al.Task("a", 4),
        al.Task("b", "0.1"),
        al.Task("c", 3, frozen=1),
        al.Task("d", 4, tiers={2: 8}),
    ]
    gains = {"a": 8 * line, "b": 0.1 * line, "c": 9 * line, "d": 12 * line}
    found = al.allocate(al.Problem(tasks, 403), gains).break_even
    assert found["c"] is None  # it is decided already
    assert found["a"] == pytest.approx(8 / 1.5, rel=0.02)  # d gives 12 for 8 after its first two
    assert found["b"] == pytest.approx(0.1 / 2, rel=0.02)  # a gives 8 for 4
    assert found["d"] == pytest.approx(12 / 2, rel=0.02)


@pytest.mark.parametrize("seed", some(40))
def test_everything_survives_json(seed: int) -> None:
    problem, gains = instance("json", seed)
    assert al.Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
    plan = al.allocate(problem, gains)
    again = al.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert list(again.counts.items()) == list(plan.counts.items())
    assert again.spent == plan.spent
    assert again.gains == plan.gains
    assert al.allocate(again.problem, again.gains) == plan


def reasons(plan: al.Plan) -> Iterator[tuple[al.Task, str]]:
    for task, line in zip(plan.problem.tasks, plan.why_unspent, strict=True):
        name, _, reason = line.partition(": ")
        assert name == task.name
        yield task, reason


@pytest.mark.parametrize("chunk", some(4))
def test_unspent_money_is_explained(chunk: int) -> None:
    seen: set[str] = set()
    for index in range(chunk * 50, chunk * 50 + 50):
        problem, gains, _ = random_problem(11, index)
        try:
            plan = al.allocate(problem, gains)
        except al.Infeasible:
            continue
        if not plan.unspent:
            assert plan.why_unspent == ()
            continue
        for task, reason in reasons(plan):
            more = plan.counts | {task.name: plan.counts[task.name] + task.lot}
            worth = value_by_hand(problem, gains, more) - plan.value
            if reason.startswith("frozen at"):
                assert task.frozen is not None
            elif reason == "more labels are worth nothing":
                assert worth <= 1e-9 * max(1.0, abs(plan.value))
            elif reason.startswith(("pool of", "most of")):
                limit = task.pool if reason.startswith("pool") else task.most
                assert reason.startswith(f"{reason[:4]} of {limit} ")
                assert limit is not None
                assert more[task.name] > limit
            elif " costs " in reason:
                assert problem.price(more) > problem.budget
                assert ("fee of" in reason) == (task.fee > 0 and plan.counts[task.name] == 0)
            elif " takes " in reason:
                assert problem.price(more) <= problem.budget
                cap = next(cap for cap in problem.caps if repr(cap.name) in reason)
                assert cap.used(more) > cap.limit
            else:
                assert "less than rounding" in reason
                assert worth <= 1e-9 * abs(plan.value)
            seen.add(" ".join(reason.split()[:1]))
    assert {"frozen", "more", "most", "a"} <= seen


def test_choices_of_a_task_are_priced_as_the_task_says() -> None:
    for seed in range(20):
        problem, _ = small_budget(f"choices {seed}")
        for task in problem.tasks:
            for count, money in zip(*choices_of(task, problem), strict=True):
                assert task.price(int(count)) == int(money) * problem.unit


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[] if seed in range(2, 6) else [pytest.mark.long])
        for seed in range(60)
    ],
)
def test_frontier_and_cheapest_agree_with_allocate(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "SAMPLES", 5)
    problem, gains, _ = random_problem(13, seed)
    try:
        curve = al.frontier(problem, gains)
    except al.Infeasible:
        return
    rng = random.Random(seed)
    floor = problem.price({task.name: task.floor for task in problem.tasks})
    for place in {len(curve.budgets) - 1, *(rng.randrange(len(curve.budgets)) for _ in range(3))}:
        budget = Fraction(round(curve.budgets[place] / float(problem.unit))) * problem.unit
        value = best_at(problem, gains, budget)
        assert value is None or close(curve.values[place], value)
        assert close(curve.values[place], curve.at(budget).value)
    target = curve.values[0] + rng.uniform(0.05, 1) * (curve.values[-1] - curve.values[0])
    plan = al.cheapest(problem, gains, target=target)
    needed = Fraction(plan.spent)
    assert needed <= problem.budget
    value = best_at(problem, gains, needed)
    assert value is None or at_least(value, target)
    if needed > floor:
        value = best_at(problem, gains, needed - problem.unit)
        assert value is None or value < target


def best_at(problem: al.Problem, gains: dict[str, al.Curve], budget: Fraction) -> float | None:
    """What `allocate` gets for a budget; None where it buys nothing."""
    try:
        return al.allocate(problem.with_budget(budget), gains).value
    except al.Infeasible:
        return None
