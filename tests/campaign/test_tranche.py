"""How much of a plan is ordered before looking again: planted cases, every limit, and two rounds
through the command."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import begin, fill, fine, rows, shorten

import allotment as al
from allotment.campaign import tranche as tranches
from allotment.campaign.summary import tell_outlook
from allotment.campaign.tranche import (
    DOUBTED_SHARE,
    LAST_ROUND_SHARE,
    SMALLEST_ROUND,
    propose_tranche,
)
from allotment.estimates.levels import fit
from allotment.estimates.response import Response
from allotment.limits import find_broken
from allotment.plan import Outlook
from allotment.standing import LEAST

HAVE = 100


def estimate(worths: Any, **about: Any) -> al.Estimates:
    """Estimates whose draws give tasks these worths, which are [draw, task]."""
    rows = np.array(worths, dtype=float)
    names = tuple("abcdefgh"[: rows.shape[1]])
    cells = np.eye(len(names)) * rows[:, None, :]
    shapes = np.full(rows.shape, 0.4)
    return al.Estimates(names, (HAVE,) * len(names), cells, shapes, about=about)


def plan_for(estimates: al.Estimates, budget: int = 600, **tasks: Mapping[str, Any]) -> al.Plan:
    """The best plan; tasks cost 1 unless something is said of them."""
    made = [
        al.Task(name, **({"cost": 1, "have": HAVE} | dict(tasks.get(name, {}))))
        for name in estimates.tasks
    ]
    return al.allocate(al.Problem(made, budget), estimates)


def find_share(plan: al.Plan, counts: Mapping[str, int]) -> dict[str, float]:
    """What tasks would get of the money of these counts if all were spent by the neutral plan."""
    problem = plan.problem
    neutral = al.allocate(problem, al.neutral_gains(problem)).counts
    share = float(problem.price(counts) / problem.price(neutral))
    return {name: share * count for name, count in neutral.items()}


def foresee(plan: al.Plan, knowing_more: float | None, **ranges: tuple[int, int]) -> al.Plan:
    """The plan with an outlook that is made up."""
    vars(plan)["outlook"] = Outlook(1.0, 0.0, 2.0, 0.9, 0.8, ranges, ranges, knowing_more)
    return plan


# --- planted cases ---


def test_all_is_ordered_at_once_where_all_draws_agree() -> None:
    plan = plan_for(estimate([[100, 300, 50]] * 5))
    found = propose_tranche(plan)
    assert found.is_all
    assert found.counts == plan.counts
    assert found.why == "the estimates agree on nearly all of it"


def test_what_draws_do_not_agree_on_is_kept_and_the_rest_is_ordered() -> None:
    """Two tasks are known, of a third it is open whether its labels bring anything."""
    plan = plan_for(estimate([[200, 200, worth] for worth in (0, 0, 0, 800, 800, 800)]))
    found = propose_tranche(plan)
    assert not found.is_all
    assert found.knowing_more == plan.outlook.knowing_more > 1  # type: ignore[union-attr]
    sure = [plan.outlook.counts[name][0] for name in "ab"]  # type: ignore[union-attr]
    assert min(sure) > 0.25 * 600 / 2
    # of c no more than tells: half of what neutral would buy
    half = float(DOUBTED_SHARE) * find_share(plan, found.counts)["c"]
    assert found.counts["c"] == pytest.approx(half, abs=2)
    assert found.counts["c"] < plan.counts["c"] / 5
    for name in "ab":
        assert found.counts[name] > plan.counts[name] / 2
    assert f"worth up to {found.knowing_more:.2g} % of score" in found.why


def test_a_suspicion_alone_takes_no_task_off_the_first_order() -> None:
    """Of ten draws seven say that labels of c bring nothing, and the plan buys none."""
    worths = [[900, 900, 0]] * 7 + [[900, 900, 200]] * 3
    plan = plan_for(estimate(worths), c={"cost": 3})
    assert plan.counts["c"] == 0
    foresee(plan, 1.0, a=(80, 300), b=(80, 300), c=(0, 60))
    found = propose_tranche(plan)
    assert found.counts["c"] >= int(find_share(plan, found.counts)["c"] / 2) > 0
    assert "more of c than in the plan" in found.why
    # once something came back, that decides
    later = propose_tranche(plan, is_first=False)
    assert later.counts["c"] == 0
    assert "than in the plan" not in later.why
    # where nearly all draws say so it is no suspicion
    foresee(plan, 1.0, a=(80, 300), b=(80, 300), c=(0, 0))
    assert propose_tranche(plan).counts["c"] == 0


def test_the_less_knowing_more_is_worth_the_more_is_ordered_now() -> None:
    plan, shares = plan_for(estimate([[100, 100, 100]])), []
    for worth in (5.0, 0.5, 0.25, 0.15, LEAST, 0.0):
        foresee(plan, worth, a=(60, 300), b=(60, 300), c=(60, 300))
        shares.append(propose_tranche(plan).share)
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.3 + 0.7 * LEAST / 5, abs=0.01)
    assert shares[1] == pytest.approx(0.3 + 0.7 * LEAST / 0.5, abs=0.01)
    assert shares[2] == pytest.approx(0.3 + 0.7 * LEAST / 0.25, abs=0.01)
    assert shares[3] == pytest.approx(0.3 + 0.7 * LEAST / 0.15, abs=0.01)
    assert shares[4:] == [1, 1]
    assert propose_tranche(plan).why == "to know more first would bring 0 % of score at most"


def test_what_is_counted_in_labels_or_not_known_has_no_such_limit() -> None:
    """Nobody knows how much score a label is."""
    ranges = {"a": (60, 300), "b": (60, 300), "c": (60, 300)}
    unknown = foresee(plan_for(estimate([[100, 100, 100]])), None, **ranges)
    labels = foresee(plan_for(estimate([[100, 100, 100]], unit="labels")), 0.01, **ranges)
    for plan in (unknown, labels):
        assert propose_tranche(plan).share == pytest.approx(0.3, abs=0.01)
    assert "worth up to 0.01 labels" in propose_tranche(labels).why
    assert propose_tranche(unknown).why.endswith("; what comes back may move the rest")


def test_an_order_is_a_quarter_of_the_budget_at_the_least_and_all_if_little_is_left() -> None:
    plan = plan_for(estimate([[100, 100]]), budget=400)
    foresee(plan, 9.0, a=(0, 400), b=(0, 400))
    first = propose_tranche(plan)
    assert plan.problem.price(first.counts) == SMALLEST_ROUND * 400
    assert "a quarter of the budget at the least" in first.why
    assert propose_tranche(plan, Fraction(1200)).share == pytest.approx(0.75)
    last = propose_tranche(plan, Fraction(1600))
    assert (last.is_all, last.why) == (True, "what is left is a round's worth")
    assert propose_tranche(plan, learns=False).is_all


@pytest.mark.parametrize(("limit", "budget"), [({"fee": 250}, 900), ({"lot": 150}, 500)])
def test_an_order_that_pays_for_no_fee_and_no_lot_is_all_of_the_plan(
    limit: dict[str, int], budget: int
) -> None:
    plan = plan_for(estimate(np.diag([100.0] * 3)), budget, a=limit, b=limit, c=limit)
    found = propose_tranche(plan)
    assert any(plan.counts.values())
    assert (found.counts, found.is_all) == (plan.counts, True)
    assert found.why == "a smaller order would not pay for a fee or a lot"


def test_no_fee_is_paid_on_a_doubt_that_the_plan_does_not_share() -> None:
    plan = plan_for(estimate([[100, 0], [0, 400]]), 500, a={"fee": 250}, b={"fee": 250})
    assert plan.counts["a"] == 0
    assert propose_tranche(plan).counts["a"] == 0


def test_where_nothing_is_known_the_first_order_is_near_neutral() -> None:
    nothing = np.zeros((0, 3))
    response = Response(("a", "b", "c"), (HAVE,) * 3, nothing, nothing, nothing, (True,) * 3)
    plan = plan_for(fit(response), budget=900, c={"cost": 4})
    found = propose_tranche(plan)
    assert not found.is_all
    for name, fair in find_share(plan, found.counts).items():
        assert found.counts[name] == pytest.approx(fair, rel=0.2), name


def test_a_plan_that_rests_on_no_curve_is_not_ordered_whole_however_much_its_draws_agree() -> None:
    problem = al.Problem([al.Task("a", 1, have=100), al.Task("b", 1, have=100)], 100)
    rng = np.random.default_rng(0)
    worths = np.eye(2) * rng.normal([3.0, 1.0], 0.01, size=(100, 2))[:, None, :]
    shapes = np.full((100, 2), 0.97)

    def propose_from(*fallbacks: str) -> al.Tranche:
        about = {"unit": "labels", "fallbacks": list(fallbacks)}
        found = al.Estimates(("a", "b"), (100, 100), worths, shapes, law="geometric", about=about)
        plan = al.allocate(problem, found)
        assert ("not to be relied on" in tell_outlook(plan)) == (len(fallbacks) == 2)
        return propose_tranche(plan)

    assert propose_from().is_all
    assert propose_from("b").is_all
    first = propose_from("a", "b")
    assert first.share == pytest.approx(0.25, abs=0.02)
    assert abs(first.counts["a"] - first.counts["b"]) <= 1
    assert "found nothing to go by" in first.why


def test_it_has_a_plain_form() -> None:
    plain = json.loads(json.dumps(propose_tranche(plan_for(estimate([[1, 2]]))).to_dict()))
    assert set(plain) == {"counts", "share", "why", "knowing_more"}


# --- properties ---


@pytest.mark.parametrize("seed", range(12))
def test_what_is_ordered_takes_hardly_anything_off_what_knowing_more_is_worth(seed: int) -> None:
    """Beside the best that each draw could still come to, found by trying all there is."""
    rng = np.random.default_rng(seed)
    prices = rng.integers(1, 4, size=3)
    estimates = estimate(rng.lognormal(4.5, rng.uniform(0.2, 1.5), size=(6, 3)))
    plan = plan_for(
        estimates, 60, **{name: {"cost": int(prices[at])} for at, name in enumerate("abc")}
    )
    outlook = plan.outlook
    assert outlook is not None
    assert outlook.knowing_more is not None
    _, own = estimates.list_own_plans(plan.problem)
    ends = {name: [each[name] for each in own] for name in "abc"}
    sure = {name: (min(each), max(each)) for name, each in ends.items()}
    vars(plan)["outlook"] = replace(outlook, counts=sure)
    found = propose_tranche(plan, is_first=False)

    plans = np.array([
        each
        for each in itertools.product(*(range(60 // price + 1) for price in prices))
        if np.dot(each, prices) <= 60
    ])  # fmt: skip
    rises = HAVE**-0.4 - (HAVE + plans) ** -0.4
    gains = rises @ np.diagonal(estimates.worths, axis1=1, axis2=2).T / 3
    open_ = (plans >= list(found.counts.values())).all(axis=1)
    lost = gains.max(axis=0) - gains[open_].max(axis=0)
    agreed = {name: min(sure[name][0], plan.counts[name]) for name in "abc"}
    firm, total = (plan.problem.price(each) for each in (agreed, plan.counts))
    forced = float((SMALLEST_ROUND * 60 - firm) / (total - firm)) if total > firm else 0.0
    allowed = max(LEAST, forced * outlook.knowing_more)
    if not found.is_all:
        assert lost.mean() <= allowed


LIMITS: tuple[dict[str, Any], ...] = (
    {"frozen": 20},
    {"least": 7},
    {"most": 40},
    {"fee": 30},
    {"tiers": [(20, Fraction(1, 2))]},
    {},
)


def plan_at_random(rng: np.random.Generator, is_limited: bool) -> al.Plan:
    """A plan for estimates that say little, of tasks with limits of all kinds or with none."""
    size = int(rng.integers(2, 5))
    tasks: dict[str, dict[str, Any]] = {}
    for name in "abcd"[:size]:
        tasks[name] = {"cost": int(rng.integers(1, 6)), "weight": int(rng.integers(1, 4))}
        if is_limited:
            tasks[name] |= {"lot": int(rng.choice([1, 1, 5])), **LIMITS[rng.integers(len(LIMITS))]}
    worths = rng.lognormal(4, rng.uniform(0.1, 1.5), size=(12, size))
    worths *= rng.random(worths.shape) < rng.choice([0.7, 1.0])
    plan = plan_for(estimate(worths), int(rng.integers(300, 900)), **tasks)
    if not is_limited:
        return plan
    cap = al.Cap("hours", int(rng.integers(90, 400)), dict.fromkeys(plan.problem.names, 1))
    problem = al.Problem(plan.problem.tasks, plan.problem.budget, [cap])
    return al.allocate(problem, estimate(worths))


@pytest.mark.parametrize("seed", range(40))
def test_a_tranche_keeps_every_limit(seed: int) -> None:
    plan = plan_at_random(np.random.default_rng(seed), is_limited=True)
    for is_first in (True, False):
        found = propose_tranche(plan, is_first=is_first)
        assert not find_broken(plan.problem, found.counts)
        if found.is_all:
            assert found.counts == plan.counts
            continue
        share = plan.problem.price(found.counts) / plan.problem.price(plan.counts)
        assert found.share == pytest.approx(float(share))
        assert found.share < LAST_ROUND_SHARE


@pytest.mark.parametrize("seed", range(20))
def test_a_first_order_cuts_no_task_below_half_of_neutral_but_by_agreement(seed: int) -> None:
    plan = plan_at_random(np.random.default_rng(seed), is_limited=False)
    first, later = (propose_tranche(plan, is_first=is_first) for is_first in (True, False))
    assert first.is_all == later.is_all
    assert all(later.counts[name] <= plan.counts[name] for name in later.counts)
    assert plan.outlook is not None
    if not first.is_all:
        for name, fair in find_share(plan, first.counts).items():
            assert first.counts[name] >= min(int(fair / 2), plan.outlook.counts[name][1])


# --- through the command ---


def test_a_campaign_of_two_rounds_orders_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # whether a task that says nothing of the features so far is worth its price is worth knowing
    table, look = rows(400, every=(10, 13)), itertools.cycle(("old", "new", "new", "old"))
    said = [row | {"look": next(look)} if row["look"] else row for row in table]
    monkeypatch.setattr(tranches, "LEAST", 0.01)
    folder = begin(budget=400, table=said)
    shorten(folder, trainings=12)
    settings = folder / "campaign.toml"
    settings.write_text(settings.read_text().replace("steps = 3", "steps = 40"))
    fine("estimate", folder, "--workers", 0)
    plan = json.loads(fine("plan", folder, "--json"))
    tranche = plan["tranche"]
    assert tranche["knowing_more"] == plan["outlook"]["knowing_more"]
    assert tranche["share"] < 1
    told = " ".join(fine("plan", folder).split())
    assert f"of what the plan spends: {tranche['why']}" in told
    assert f"worth up to {tranche['knowing_more']:.2g} % of score" in told
    assert tranche["why"] in " ".join(fine("status", folder).split())
    ordered = json.loads(fine("order", folder, "-o", "one.csv", "--json"))
    bought = {name: count for name, count in tranche["counts"].items() if count}
    assert ordered["counts"] == bought
    fine("ingest", folder, fill(Path("one.csv"), Path("back.csv"), {"size": 2.5, "look": "old"}))
    fine("estimate", folder, "--workers", 0)
    second = json.loads(fine("plan", folder, "--json"))
    # no doubted task is bought on top of the plan any more
    for name, count in second["tranche"]["counts"].items():
        assert count <= second["counts"][name]
    fine("order", folder, "--all")
    status = json.loads(fine("status", folder, "--json"))
    assert float(status["spent"]) + float(status["on_order"]) <= 400
