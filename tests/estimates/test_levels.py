"""What is concluded from how far tasks have come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.planted_response import PLANTED, planted

from allotment.data.labels import Labels
from allotment.estimates.design import Design, design
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import LEAST_ROOM, REACH, fit
from allotment.estimates.response import Response
from allotment.gains import Power
from allotment.plan import allocate, neutral_gains
from allotment.problem import Problem, Task


def own_left(estimates: Estimates) -> np.ndarray:
    """[draw, task]: what a task's own labels can still bring, in %."""
    have = np.array(estimates.have, dtype=float)
    return np.diagonal(estimates.worths, axis1=1, axis2=2) * have**-estimates.shapes


@pytest.mark.parametrize(
    ("costs", "have", "weights"),
    [
        ((1, 1, 1, 1), (300, 300, 300, 300), (1, 1, 1, 1)),
        ((6, 1, 3, 1), (300, 300, 300, 300), (1, 1, 1, 1)),
        ((1, 1, 1), (2000, 100, 0), (1, 1, 1)),
        ((20, 1), (37, 411), (1, 3)),
        ((2, 3, 5, 7, 11), (10, 20, 30, 40, 50), (1, 2, 1, 0.5, 1)),
    ],
)
def test_without_evidence_the_plan_is_the_neutral_one(
    costs: tuple, have: tuple, weights: tuple
) -> None:
    names = tuple("abcde"[: len(costs)])
    nothing = np.zeros((0, len(names)))
    response = Response(names, have, nothing, nothing, nothing, (True,) * len(names))
    rows = zip(names, costs, have, weights, strict=True)
    problem = Problem([Task(name, cost=c, have=n, weight=w) for name, c, n, w in rows], budget=7919)
    for seed in range(3):
        plan = allocate(problem, fit(response, seed=seed).mean_gains())
        assert plan.counts == allocate(problem, neutral_gains(problem)).counts


@pytest.mark.parametrize("higher", [True, False])
def test_planted_tasks_are_recognised(higher: bool) -> None:
    own = own_left(fit(planted(0.004, seed=1, higher=higher)))
    live, too, dead, saturated = own.mean(axis=0)
    assert live == pytest.approx(too, rel=0.25)
    assert dead < 0.25 * live
    assert saturated < 0.4 * live
    assert np.mean(own[:, 2] == 0) > 0.7


def test_noise_leaves_the_plan_near_neutral() -> None:
    problem = Problem([Task(name, cost=1, have=400) for name in PLANTED], budget=1600)
    blind = replace(planted(0.3, seed=5, higher=False), skill=np.full((40, 4), np.nan))
    plan = allocate(problem, fit(blind).mean_gains())
    assert all(abs(count - 400) < 120 for count in plan.counts.values())


@pytest.mark.parametrize("have", [60, 600])
def test_what_looks_flat_may_be_late_where_labels_are_few(have: int) -> None:
    few = replace(planted(0.02, seed=3), have=(have,) * 4)
    share = own_left(fit(few)).mean(axis=0)[2] / own_left(fit(few)).mean(axis=0)[0]
    assert (share > 0.3) == (have == 60)


def test_a_level_that_is_hardly_known_leaves_room() -> None:
    response = planted(0.05, seed=1)
    sure, unsure = (
        own_left(fit(replace(response, skill_error=np.full(response.scores.shape, error))))
        for error in (0.02, 0.6)
    )
    assert unsure.mean(axis=0)[3] > 1.1 * sure.mean(axis=0)[3]  # the one that is nearly solved


def test_a_task_cannot_gain_more_than_its_headroom() -> None:
    response = replace(planted(0.01, seed=2), skill_error=np.full((40, 4), 1e-6))
    full = [response.scores[response.counts[:, task] == 400, task].mean() for task in range(4)]
    room = np.maximum(1 - np.array(full), LEAST_ROOM) / full * 100
    assert (own_left(fit(response)) <= REACH * room + 1e-6).all()
    endless = own_left(fit(response, best=None))
    assert endless[:, 3].mean() > own_left(fit(response))[:, 3].mean()


@pytest.mark.parametrize(
    ("planted_share", "least", "most"), [(1.0, 0.8, 1.2), (0.5, 0.4, 0.6), (0.0, -0.1, 0.1)]
)
def test_planted_transfer_comes_out(planted_share: float, least: float, most: float) -> None:
    """Without noise: what labels of b do for a, as a share of what labels of a's own do."""
    labels = Labels(dict.fromkeys("abc", range(400)))
    chosen = design(labels, 60, seed=3)
    steps = 1 - (chosen.counts / 400) ** -0.4
    reach = 0.14 * np.array([[1.0, planted_share, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    scores = 0.7 + steps @ reach.T
    response = Response(
        tuple("abc"), (400,) * 3, chosen.counts, scores, np.full((4, 3), 0.5), (True,) * 3
    )
    found = fit(response).worths.mean(axis=0)
    assert least < found[0, 1] / found[0, 0] < most


def test_the_same_seed_gives_the_same_draws() -> None:
    response = planted(0.03, seed=4)
    first, again, other = fit(response, seed=1), fit(response, seed=1), fit(response, seed=2)
    assert first.to_dict() == again.to_dict()
    assert first.to_dict() != other.to_dict()
    means = [own_left(each).mean(axis=0) for each in (first, other)]
    np.testing.assert_allclose(means[0], means[1], rtol=0.1, atol=0.05 * means[0].max())


def test_scores_that_are_missing_are_left_out() -> None:
    response = planted(0.01, seed=6)
    holes = response.scores.copy()
    holes[::3, 0] = np.nan
    holes[:, 3] = np.nan
    own = own_left(fit(replace(response, scores=holes))).mean(axis=0)
    assert own[2] < 0.3 * own[0]
    assert np.isfinite(own).all()


def test_one_task_and_one_training_are_enough_to_go_on() -> None:
    chosen = Design(("a",), np.array([[30]]), np.zeros(1, dtype=np.int64), seed=0)
    response = Response(("a",), (30,), chosen.counts, np.array([[0.7]]), np.array([[0.5]]), (True,))
    gains = fit(response).mean_gains()["a"]
    assert isinstance(gains, Power)
    assert gains(100) > 0


def test_fifty_tasks_are_weighed_with_sixty_trainings() -> None:
    names, rng = tuple(map(str, range(50))), np.random.default_rng(0)
    chosen = design(Labels(dict.fromkeys(names, range(200))), 60, seed=0)
    scores = 0.7 + 0.1 * (1 - (chosen.counts / 200) ** -0.4) + 0.01 * rng.normal(size=(60, 50))
    response = Response(
        names, (200,) * 50, chosen.counts, scores, np.full((2, 50), 0.5), (True,) * 50
    )
    own = own_left(fit(response)).mean(axis=0)
    assert own.max() < 2 * own.min()
