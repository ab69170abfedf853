"""Equal to trying every plan, on 2,000 small problems (600 of them in `make test`) that mix three kinds of limit."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from instances import KINDS, kinds_in, random_problem, try_every_plan

import allotment as al

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
    [pytest.param(start, marks=[] if start < 600 else [pytest.mark.long]) for start in range(0, INSTANCES, CHUNK)],
)
def test_equal_to_brute_force(start: int) -> None:
    found = {index: wrong for index in range(start, start + CHUNK) if (wrong := check(index)) is not None}
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
