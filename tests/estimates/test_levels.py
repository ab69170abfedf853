"""What is concluded from how far tasks have come."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers.planted_response import PLANTED, planted

from allotment.data.labels import Labels
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.design import Design, design
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import LEAST_ROOM, REACH, fit, read_signs, weigh_room
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
@pytest.mark.parametrize("higher", [(True,), (False,), (True, False)])
def test_without_evidence_the_plan_is_the_neutral_one(
    costs: tuple, have: tuple, weights: tuple, higher: tuple
) -> None:
    names = tuple("abcde"[: len(costs)])
    nothing = np.zeros((0, len(names)))
    ways = tuple(itertools.islice(itertools.cycle(higher), len(names)))
    response = Response(names, have, nothing, nothing, nothing, ways)
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
    sure = allocate(problem, fit(planted(0.005, seed=5)).mean_gains())
    assert sure.counts["live"] > 550


def test_what_noise_hides_is_stated_less_surely() -> None:
    """Slopes are less sure, and so is that a task is flat, to which only they can tell."""
    noises, sizes = (0.005, 0.05, 0.3), np.ones(4)
    loud = [planted(noise, seed=5, higher=False) for noise in noises]
    blind = [replace(each, skill=np.full((40, 4), np.nan)) for each in loud]
    errors = [read_signs(each, sizes, 1.0, Beliefs()).slope_error[2] for each in blind]
    flat = [float(np.mean(own_left(fit(each))[:, 2] == 0)) for each in blind]
    assert errors == sorted(errors)
    assert flat == sorted(flat, reverse=True)
    assert flat[0] > 0.8
    assert flat[-1] < 0.3


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


def test_room_is_weighed_among_scores_that_have_a_best() -> None:
    """20 % of an error and 20 % of an area under a curve are not the same room: beside errors, a
    task of the other kind is worth what they are."""
    have, full = (100, 100, 100), (0.6, 0.5, 0.5)
    counts = np.full((8, 3), 100)
    scores = np.tile(full, (8, 1))
    alone = Response(("a", "b", "c"), have, counts, scores, np.zeros((0, 3)), (True, False, False))
    sizes = np.ones(3)
    assert weigh_room(read_signs(alone, sizes, 1.0, Beliefs()), Beliefs()) == pytest.approx(
        [1, 1, 1]
    )
    two = replace(
        alone, scores=np.tile((0.9, 0.6, 0.5), (8, 1)), higher_is_better=(True, True, False)
    )
    found = weigh_room(read_signs(two, sizes, 1.0, Beliefs()), Beliefs())
    assert found == pytest.approx([0.25**0.25, 4**0.25, 1])


@pytest.mark.parametrize(
    ("score", "best", "room", "missing"),
    [
        (-1.0, 1.0, 400, 2.0),  # an R2 that is worse than the mean has most to gain
        (0.0, 1.0, 200, 1.0),
        (0.5, 1.0, 200, 0.5),
        (25.0, 1.0, np.inf, np.nan),  # such a metric does not end at 1
        (-0.5, 0.0, 200, np.nan),  # an error with its sign turned
        (0.5, None, np.inf, np.nan),
    ],
)
def test_room_is_what_is_missing_to_the_best_score(
    score: float, best: float | None, room: float, missing: float
) -> None:
    one = Response(("a",), (100,), [[100]] * 4, [[score]] * 4, np.zeros((0, 1)), (True,))
    signs = read_signs(one, np.ones(1), best, Beliefs())
    assert signs.room == pytest.approx([room])
    assert signs.missing == pytest.approx([missing], nan_ok=True)
    assert np.isfinite(fit(one, best=best).worths).all()


def test_a_task_cannot_gain_more_than_its_headroom() -> None:
    response = replace(planted(0.01, seed=2), skill_error=np.full((40, 4), 1e-6))
    full = [response.scores[response.counts[:, task] == 400, task].mean() for task in range(4)]
    room = np.maximum(1 - np.array(full), LEAST_ROOM) / full * 100
    assert (own_left(fit(response)) <= REACH * room + 1e-6).all()
    endless = own_left(fit(response, best=None))
    assert (endless > REACH * room).any(axis=0)[3]  # the one that is nearly solved


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


def test_labels_that_help_and_labels_that_harm_are_told_apart() -> None:
    labels = Labels(dict.fromkeys("abc", range(400)))
    chosen, rng = design(labels, 40, seed=3), np.random.default_rng(3)
    steps = 1 - (chosen.counts / 400) ** -0.4
    reach = np.array([[0.14, 0.05, 0.0], [0.0, 0.14, -0.05], [0.0, 0.0, 0.14]])
    scores = 0.7 + steps @ reach.T + 0.005 * rng.normal(size=steps.shape)
    response = Response(
        tuple("abc"), (400,) * 3, chosen.counts, scores, np.full((4, 3), 0.5), (True,) * 3
    )
    found = fit(response).worths.mean(axis=0)
    others = [found[i, j] for i, j in itertools.permutations(range(3), 2)]
    assert found[0, 1] == max(others)
    assert found[0, 1] > 0
    assert found[1, 2] == min(others)
    assert found[1, 2] < 0


def test_cells_of_transfer_are_as_sure_as_they_say() -> None:
    """One pair of tasks in three transfers something; 60 trainings, each as noisy as half of what
    an e-fold of labels brings."""
    rng, size, edges = np.random.default_rng(2), 4, (0.05, 0.95)
    names, off = tuple("abcd"), ~np.eye(size, dtype=bool)
    held, called, truths = [], [], []
    for campaign in range(40):
        chosen = design(Labels(dict.fromkeys(names, range(400))), 60, seed=campaign, folds=4)
        steps = (1 - (chosen.counts / 400) ** -0.4) / 0.4
        shares = rng.normal(0, 0.5, (size, size)) * (rng.random((size, size)) < 1 / 3)
        np.fill_diagonal(shares, 1.0)
        slopes = 6 * np.exp(rng.normal(0, 0.4, size))
        truth = shares * slopes[:, None]
        noise = rng.normal(0, 3, steps.shape) + rng.normal(0, 2, (4, size))[chosen.fold]
        scores = 0.7 * (1 + (steps @ truth.T + noise) / 100)
        response = Response(
            names, (400,) * size, chosen.counts, scores, np.full((4, size), 0.5), (True,) * size,
            chosen.fold,
        )  # fmt: skip
        cells = fit(response, seed=campaign).worths * 0.4 * 400**-0.4
        low, high = np.quantile(cells, edges, axis=0)
        held += ((low <= truth) & (truth <= high))[off].tolist()
        called += np.where(low > 0, 1, np.where(high < 0, -1, 0))[off].tolist()
        truths += shares[off].tolist()
    found, true = np.array(called), np.array(truths)
    assert 0.85 <= np.mean(held) <= 0.95
    assert np.mean(found[found != 0] != np.sign(true[found != 0])) <= 0.05
    assert np.mean(found[np.abs(true) >= 0.5] != 0) >= 0.5


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


@pytest.mark.parametrize("far", [1e-3, 1.0, 1e3, -1e3])
def test_slopes_that_nothing_explains_leave_a_plan(far: float) -> None:
    chosen = design(Labels(dict.fromkeys("ab", range(100))), 5, seed=0)
    scores = 1e4 + far * 1e4 * np.log(chosen.counts / 100)
    untrained, ways = np.full((2, 2), 0.5), (False, True)
    found = fit(Response(("a", "b"), (100, 100), chosen.counts, scores, untrained, ways))
    assert np.isfinite(found.worths).all()


def test_fifty_tasks_are_weighed_with_sixty_trainings() -> None:
    names, rng = tuple(map(str, range(50))), np.random.default_rng(0)
    chosen = design(Labels(dict.fromkeys(names, range(200))), 60, seed=0)
    scores = 0.7 + 0.1 * (1 - (chosen.counts / 200) ** -0.4) + 0.01 * rng.normal(size=(60, 50))
    response = Response(
        names, (200,) * 50, chosen.counts, scores, np.full((2, 50), 0.5), (True,) * 50
    )
    own = own_left(fit(response)).mean(axis=0)
    assert own.max() < 2 * own.min()


def test_other_beliefs_are_a_choice() -> None:
    response = planted(0.05, seed=7)
    trusting, doubting = (
        own_left(fit(response, beliefs=Beliefs(flat=flat)))[:, 2].mean() for flat in (0.001, 0.5)
    )
    assert doubting < 0.7 * trusting


@pytest.mark.parametrize("bend", [0.3, 1.0])
def test_tasks_go_on_together_as_they_rose(bend: float) -> None:
    """However little slopes so far say of one task, thirty of them tell what a typical one has; and
    what may come for all at once is as often more as less."""
    labels = Labels({str(number): range(400) for number in range(30)})
    chosen, rng = design(labels, 60, seed=1), np.random.default_rng(1)
    steps = (1 - (chosen.counts / 400) ** -0.4) / 0.4
    scores = 0.7 * (1 + 0.06 * np.exp(rng.normal(0, bend, 30)) * steps)
    response = Response(
        tuple(labels), (400,) * 30, chosen.counts, scores, np.full((2, 30), 0.5), (True,) * 30
    )
    typical = []
    for shared in (0.01, 0.8):
        beliefs = Beliefs(bend=bend, shared_bend=shared, flat=1e-9)
        slopes = own_left(fit(response, beliefs=beliefs, best=None)).mean(axis=1) * 0.4
        typical.append(slopes)
    assert np.mean(typical[0]) == pytest.approx(6.0, rel=0.15)
    assert np.median(typical[1]) == pytest.approx(np.mean(typical[0]), rel=0.05)
    assert np.mean(typical[1]) == pytest.approx(np.exp(0.8**2 / 2) * np.mean(typical[0]), rel=0.05)
