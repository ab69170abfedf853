"""Equal to trying every plan, on 2,000 small problems (600 of them in `make test`) that mix three
kinds of limit."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from helpers.instances import (
    FIXED,
    KINDS,
    Instance,
    add_fixed,
    decided_plans,
    kinds_in,
    random_problem,
    try_every_plan,
)

import allotment as al
from allotment import frontiers as budgets

SEED = 2
INSTANCES = 2000
CHUNK = 100


def has_ties(index: int) -> bool:
    """Every second instance has worths in whole numbers, so that many plans are exactly equal."""
    return index % 2 == 1


def check(index: int) -> str | None:
    """What is wrong with the plan for one instance."""
    whole = has_ties(index)
    problem, gains, _ = random_problem(SEED, index, whole)
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
    if plan.gap:
        return f"a gap of {plan.gap}"
    if whole and plan.counts != counts:
        return f"{plan.counts}, but of equal plans {counts} comes first"
    return None


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=[] if start < 100 else [pytest.mark.long])
        for start in range(0, INSTANCES, CHUNK)
    ],
)
def test_equal_to_brute_force(start: int) -> None:
    found = {
        index: wrong for index in range(start, start + CHUNK) if (wrong := check(index)) is not None
    }
    assert not found


def test_every_pair_of_kinds_is_there() -> None:
    pairs: Counter[tuple[str, ...]] = Counter()
    for index in range(INSTANCES):
        problem, gains, kinds = random_problem(SEED, index, has_ties(index))
        # measured on the problem itself, but for `most`, which brute force needs on every task
        measured = kinds_in(problem, gains) | (kinds & {"most"})
        assert len(measured) >= 3
        cents = {"cents"} if "cents" in kinds else set()
        pairs.update(itertools.combinations(sorted(measured | cents), 2))
    assert all(pairs[pair] >= 20 for pair in itertools.combinations(sorted(KINDS), 2))


def beside_fixed(kind: str, size: float, index: int) -> Instance:
    """A small problem that also holds something of this size which is not to be decided."""
    problem, gains, _ = random_problem(
        5, index * len(FIXED) + FIXED.index(kind), whole=index % 3 == 2
    )
    return add_fixed(problem, gains, kind, size)


def sizes_of(*quick: float, long: tuple[float, ...]) -> list[object]:
    return [*quick, *(pytest.param(size, marks=pytest.mark.long) for size in long)]


def check_decided(problem: al.Problem, gains: dict[str, al.Curve], whole: bool) -> str | None:
    """What is wrong with a plan, by the part of its value that was to be decided."""
    try:
        plan = al.allocate(problem, gains)
    except al.Infeasible:  # the budget buys nothing
        return None
    grid, money, value = decided_plans(problem, gains)
    best, at = value.max(), int(np.flatnonzero((grid == list(plan.counts.values())).all(axis=1))[0])
    if plan.gap:
        return f"a gap of {plan.gap}"
    if not best - value[at] <= 1e-9 * best:
        return (
            f"{plan.counts} adds {value[at]!r}, but {best!r} can be had, and the gap is said to"
            " be 0"
        )
    ties = np.flatnonzero(value >= best - 1e-12 * best)
    first = min(ties, key=lambda place: (money[place], *(-grid[place])))
    return (
        f"{plan.counts}, but of equal plans {grid[first]} comes first"
        if whole and at != first
        else None
    )


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("size", sizes_of(1e12, long=(0.0, 1e6, 1e15)))
def test_what_is_fixed_takes_no_digit_of_what_is_decided(kind: str, size: float) -> None:
    found = {}
    for index in range(12 if size == 1e12 else 60):
        if (
            wrong := check_decided(*beside_fixed(kind, size, index), whole=index % 3 == 2)
        ) is not None:
            found[index] = wrong
    assert not found


def staircase(problem: al.Problem, gains: dict[str, al.Curve]) -> tuple[np.ndarray, np.ndarray]:
    """The money (in ten-thousandths) from which on more can be had, and how much that adds to the
    floors' worth."""
    _, money, value = decided_plans(problem, gains)
    order = np.lexsort((-value, money))
    order = order[value[order] > -np.inf]
    top = np.maximum.accumulate(value[order])
    higher = np.append(True, top[1:] > top[:-1] + 1e-9 * top[-1])
    return money[order][higher], top[higher]


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("size", sizes_of(1e12, long=(0.0, 1e6, 1e15)))
def test_all_budgets_and_the_least_money_beside_what_is_fixed(
    kind: str, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "SAMPLES", 5)
    for index in range(2 if size == 1e12 else 30):
        problem, gains = beside_fixed(kind, size, index)
        floors = {task.name: task.floor for task in problem.tasks}
        try:
            curve = al.frontier(problem, gains)
        except al.Infeasible:
            continue
        steps, tops = staircase(problem, gains)
        grid, _, value = decided_plans(problem, gains)
        worth = {tuple(counts): added for counts, added in zip(grid.tolist(), value, strict=True)}
        for place in np.linspace(0, len(curve.budgets) - 1, 12).astype(int):
            counts = tuple(int(column[place]) for column in curve.counts.values())
            best = tops[
                np.searchsorted(steps, round(curve.budgets[place] * 10_000), side="right") - 1
            ]
            assert worth[counts] == pytest.approx(best, rel=1e-8, abs=1e-8 * tops[-1])
        fixed = al.score(problem, gains, floors).value
        # between two steps, where they are further apart than the target's digits
        for place in range(1, len(tops)):
            if tops[place] - tops[place - 1] > 16 * np.spacing(fixed):
                target = fixed + (tops[place] + tops[place - 1]) / 2
                plan = al.cheapest(problem, gains, target=target)
                assert Fraction(plan.spent) == Fraction(int(steps[place]), 10_000)
                assert plan.value >= target
                break
