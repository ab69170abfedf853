"""Trainings on fewer labels, what is concluded from them, and what it is worth on simulated
learners."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import simulated
from helpers.planted_response import planted

from allotment.data.labels import Labels
from allotment.errors import InputError
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.design import LEVELS, Design, design
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit, read_signs
from allotment.estimates.response import Level, Response, adapt, find_level, find_skill, join, run
from allotment.learners.learner import Learner
from allotment.plan import Outlook, allocate, baselines, score
from allotment.problem import Problem, Task

LABELS = Labels({"a": range(80), "b": range(100, 140), "c": range(200)})


# --- which trainings ---


def test_a_design_says_beforehand_how_many_trainings() -> None:
    for trainings in (0, 1, 5, 30):
        chosen = design(LABELS, trainings, seed=1)
        assert len(chosen) == trainings == len(chosen.seeds) == len(set(chosen.seeds))
        assert (chosen.counts <= [80, 40, 200]).all()
        assert (chosen.counts >= 1).all()
    assert design(LABELS, 24, seed=1).work < 24


def test_every_task_keeps_every_share_equally_often() -> None:
    chosen = design(LABELS, 24, seed=2)
    shares = chosen.counts[3:] / [80, 40, 200]  # one in eight sees everything
    assert (chosen.counts[:3] == [80, 40, 200]).all()
    for column in shares.T:
        assert [int(np.sum(np.isclose(column, level))) for level in LEVELS] == [7, 7, 7]


def test_slopes_are_surer_than_from_one_task_at_a_time() -> None:
    def variance(counts: np.ndarray) -> float:
        columns = np.column_stack([np.ones(len(counts)), np.log(counts / counts.max(axis=0))])
        return float(np.diag(np.linalg.inv(columns.T @ columns))[1:].mean())

    have = np.array([80, 40, 200])
    alone = [
        have * np.where(np.arange(3) == task, level, 1.0)
        for task in range(3)
        for level in (0.5, 0.25)
    ]
    one_by_one = np.array([have, *alone] * 3)
    assert variance(design(LABELS, len(one_by_one), seed=0).counts) < 0.6 * variance(one_by_one)


def test_trainings_see_subsets_of_the_labels_at_hand() -> None:
    chosen = design(LABELS, 9, seed=3)
    runs = chosen.runs(LABELS)
    for (labels, seed), counts, wanted in zip(runs, chosen.counts, chosen.seeds, strict=True):
        assert seed == wanted
        assert list(labels.counts.values()) == list(counts)
        assert all(np.isin(labels[task].instances, LABELS[task].instances).all() for task in labels)
    fewer = [labels["c"].instances.tobytes() for labels, _ in runs if len(labels["c"]) == 100]
    assert len(set(fewer)) == len(fewer) > 1  # drawn anew for each training
    again = [labels.fingerprint for labels, _ in design(LABELS, 9, seed=3).runs(LABELS)]
    assert again == [labels.fingerprint for labels, _ in runs]


def test_a_task_without_labels_stays_without() -> None:
    chosen = design(LABELS.with_task("d", []), 6, seed=0)
    assert chosen.tasks == ("a", "b", "c", "d")
    assert (chosen.counts[:, 3] == 0).all()
    assert len(chosen.runs(LABELS)) == 6


def test_mistakes_of_a_design_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        design(Labels({}), -1, seed=0)
    assert [mistake.where for mistake in caught.value.mistakes] == ["trainings", "labels"]


# --- running them ---


def test_a_simulated_learner_scores_what_its_campaign_says() -> None:
    campaign = simulated.start_campaign("asymptotic", "15 %", 4)
    learner, chosen, seen = (
        simulated.SimulatedLearner(campaign),
        design(campaign.labels, 10, seed=7),
        [],
    )
    assert isinstance(learner, Learner)
    trained = run(
        learner, campaign.labels, chosen, lambda done, all_: seen.append((done, all_)), together=4
    )
    direct = campaign.respond(chosen)
    assert seen == [(4, 10), (8, 10), (10, 10)]
    assert learner.trained == 10 * 3
    np.testing.assert_allclose(trained.scores, direct.scores, rtol=1e-12)
    np.testing.assert_allclose(trained.untrained, direct.untrained, rtol=1e-12)
    assert trained.have == direct.have == campaign.truth.have


def test_a_response_survives_json() -> None:
    before = respond([[math.nan, 0.5, 0.7], [0.6, 0.5, 0.7]], counts=[[80, 40, 200], [40, 40, 200]])
    after = Response.from_dict(json.loads(json.dumps(before.to_dict())))
    np.testing.assert_array_equal(before.scores, after.scores)
    np.testing.assert_array_equal(before.counts, after.counts)
    assert (before.tasks, before.have, before.higher_is_better) == (
        after.tasks,
        after.have,
        after.higher_is_better,
    )


def test_mistakes_of_a_response_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Response(
            ("a", "b"), (1,), np.zeros((3, 2)), np.zeros((3, 4)), np.zeros((0, 2)), (True, True)
        )
    assert {mistake.where for mistake in caught.value.mistakes} == {"have", "scores"}
    with pytest.raises(InputError, match="higher_is_better: is missing"):
        Response.from_dict(
            {"tasks": ["a"], "have": [1], "counts": [], "scores": [], "untrained": [], "fold": []}
        )


def respond(
    scores: object, counts: object, higher: bool = True, untrained: float = 0.3
) -> Response:
    return Response(
        ("a", "b", "c"), (80, 40, 200), counts, scores, [[untrained] * 3] * 4, (higher,) * 3
    )  # type: ignore[arg-type]


# --- estimates ---

SOME = Estimates(
    ("a", "b"),
    (100, 400),
    worths=[[[40.0, 5.0], [0.0, 30.0]], [[60.0, 15.0], [0.0, 20.0]], [[20.0, 10.0], [0.0, 40.0]]],  # type: ignore[arg-type]
    shapes=[[0.5, 0.4]] * 3,  # type: ignore[arg-type]
)
PROBLEM = Problem([Task("a", cost=1, have=100), Task("b", cost=2, have=400)], budget=900)


def test_estimates_survive_json() -> None:
    after = Estimates.from_dict(json.loads(json.dumps(SOME.to_dict())))
    assert after.to_dict() == SOME.to_dict()
    np.testing.assert_array_equal(after.worths, SOME.worths)


def test_mistakes_of_estimates_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Estimates(("a", "a"), (1, -2), np.zeros((3, 2)), np.full((0, 2), 0.4))
    assert {mistake.where for mistake in caught.value.mistakes} == {
        "tasks",
        "have",
        "worths",
        "shapes",
    }
    with pytest.raises(InputError, match="worths: is not a table"):
        Estimates.from_dict(SOME.to_dict() | {"worths": [[1], [2, 3]]})
    with pytest.raises(InputError, match="schema: 2 is not 1"):
        Estimates.from_dict(SOME.to_dict() | {"schema": 2})
    with pytest.raises(InputError, match="did you mean 'power'"):
        Estimates.from_dict(SOME.to_dict() | {"law": "powr"})
    with pytest.raises(InputError, match="not between 0 and 1"):
        Estimates.from_dict(SOME.to_dict() | {"law": "geometric", "shapes": [[0.9, 1.1]] * 3})
    other = Problem([Task("a", cost=1), Task("x", cost=1)], budget=10)
    with pytest.raises(InputError) as caught:
        SOME.gain_over(other, {"a": 1}, {"a": 2})
    assert len(caught.value.mistakes) == 2


def test_the_curves_of_a_draw_are_its_formula() -> None:
    counts = {"a": 300, "b": 250}
    for draw in range(SOME.draws):
        gains = score(PROBLEM, SOME.gains(draw), counts).gains
        assert list(gains.values()) == pytest.approx(list(SOME.gains_of(counts)[draw]))
    by_hand = 40 * (100**-0.5 - 400**-0.5) + 5 * (400**-0.4 - 650**-0.4)
    assert SOME.gains_of(counts)[0, 0] == pytest.approx(by_hand)
    label = SOME.gains_of({"a": 1, "b": 0})[:, 0]
    assert SOME.first_gains()[:, 0] == pytest.approx(label, rel=0.01)


def test_mean_gains_are_the_mean_over_draws() -> None:
    counts = {"a": 300, "b": 250}
    mean = score(PROBLEM, SOME.mean_gains(), counts).gains
    assert list(mean.values()) == pytest.approx(list(SOME.gains_of(counts).mean(axis=0)), rel=1e-8)


def test_mean_gains_stay_close_to_the_mean_where_exponents_differ() -> None:
    campaign = simulated.start_campaign("asymptotic", "50 %", 3)
    estimates = fit(campaign.respond(design(campaign.labels, 30, seed=3)))
    problem = campaign.truth.problem
    for counts in baselines(problem).values():
        if all(counts.values()):  # spread out as plans are
            mean = score(problem, estimates.mean_gains(), counts).value
            assert mean == pytest.approx(estimates.gains_of(counts).sum(axis=1).mean(), rel=0.1)


def test_harm_is_taken_off_the_labels_that_do_it() -> None:
    worths = np.array([[[40.0, -10.0], [4.0, 30.0]]])
    estimates = Estimates(("a", "b"), (100, 400), worths, np.array([[0.5, 0.4]]))
    weights = {"a": 2.0, "b": 1.0}
    problem = Problem(
        [task.with_weight(weights[task.name]) for task in PROBLEM.tasks], PROBLEM.budget
    )
    for counts in ({"a": 300, "b": 0}, {"a": 0, "b": 250}, {"a": 10, "b": 99}):
        gains = estimates.gains_of(counts)[0]
        value = score(problem, estimates.mean_gains(weights), counts).value
        assert value == pytest.approx(2 * gains[0] + gains[1])
    assert allocate(problem, estimates.mean_gains(weights)).exact


def test_labels_that_do_more_harm_than_good_are_not_bought() -> None:
    worths = np.array([[[40.0, -70.0, 0.0], [0.0, 30.0, 0.0], [0.0, 5.0, 30.0]]])
    estimates = Estimates(("a", "b", "c"), (100, 100, 100), worths, np.full((1, 3), 0.4))
    problem = Problem([Task(name, cost=1, have=100) for name in "abc"], budget=300)
    assert allocate(problem, estimates.mean_gains()).counts["b"] == 0


def test_what_the_draws_say_about_a_plan() -> None:
    plan = allocate(PROBLEM, SOME.mean_gains())
    equal = baselines(PROBLEM)["equal budget"]
    outlook = SOME.outlook(PROBLEM, plan)
    by_hand = [
        np.mean(list(score(PROBLEM, SOME.gains(draw), plan.counts).gains.values()))
        - np.mean(list(score(PROBLEM, SOME.gains(draw), equal).gains.values()))
        for draw in range(3)
    ]
    assert outlook.mean == pytest.approx(np.mean(by_hand))
    assert outlook.low >= min(by_hand) - 1e-12
    assert outlook.high <= max(by_hand) + 1e-12
    assert outlook.chance == pytest.approx(np.mean(np.array(by_hand) > 0))
    own = [allocate(PROBLEM, SOME.gains(draw)).counts["a"] for draw in range(3)]
    assert min(own) <= outlook.counts["a"][0] <= outlook.counts["a"][1] <= max(own)
    assert all(low <= plan.counts[name] <= high for name, (low, high) in outlook.plateau.items())
    same = SOME.outlook(PROBLEM, plan, plan.counts)
    assert (same.low, same.high, same.chance) == (0.0, 0.0, 0.0)


def test_what_knowing_more_would_bring_is_that_of_all_plans() -> None:
    """Beside the best plan of each draw, found by trying all there are."""
    rng = np.random.default_rng(4)
    have, prices, weights, budget = (12, 5, 30), (2, 3, 1), np.array([1.0, 2.0, 0.5]), 24
    worths = rng.normal(20, 15, size=(9, 3, 3)) * (np.eye(3) + 0.3)
    shapes = rng.uniform(0.2, 0.9, size=(9, 3))
    estimates = Estimates(("a", "b", "c"), have, worths, shapes)
    tasks = [
        Task(name, cost=cost, have=at_hand, weight=weight, lot=lot)
        for name, cost, at_hand, weight, lot in zip(
            "abc", prices, have, weights, (1, 2, 1), strict=True
        )
    ]
    problem = Problem(tasks, budget)
    plan = allocate(problem, estimates)

    def gain(draw: int, counts: tuple[int, ...]) -> float:
        """D_T, by the formula of estimates."""
        total = 0.0
        for i, j in itertools.product(range(3), range(3)):
            exponent, at_hand = shapes[draw, j], have[j]
            rise = at_hand**-exponent - (at_hand + counts[j]) ** -exponent
            total += weights[i] * worths[draw, i, j] * rise
        return float(total / weights.sum())

    plans = [
        counts
        for counts in itertools.product(range(13), range(0, 9, 2), range(25))
        if np.dot(counts, prices) <= budget
    ]
    chosen = tuple(plan.counts.values())
    lost = [max(gain(draw, each) for each in plans) - gain(draw, chosen) for draw in range(9)]
    assert plan.outlook is not None
    assert plan.outlook.knowing_more == pytest.approx(np.mean(lost), rel=1e-9)
    assert np.mean(lost) > 0.1
    # draws that agree leave nothing to know
    alike = Estimates(("a", "b", "c"), have, worths[:1], shapes[:1])
    sure = allocate(problem, alike).outlook
    assert sure is not None
    assert sure.knowing_more == pytest.approx(0, abs=1e-9)


def test_files_of_before_do_not_say_what_knowing_more_brings() -> None:
    look = SOME.outlook(PROBLEM, allocate(PROBLEM, SOME))
    plain = json.loads(json.dumps(look.to_dict()))
    assert Outlook.from_dict(plain) == look
    del plain["knowing_more"]
    old = Outlook.from_dict(plain)
    assert old.knowing_more is None
    assert old.to_dict() == plain
    with pytest.raises(InputError, match="knowing_more: 'much' is not a finite number"):
        Outlook.from_dict(plain | {"knowing_more": "much"})


# --- simulated campaigns ---


def test_the_truths_are_what_the_settings_say() -> None:
    for family, setting in itertools.product(simulated.FAMILIES, simulated.SETTINGS):
        truth = simulated.draw_truth(family, setting, seed=12)
        have = np.array(truth.have)
        gains = truth.scores(have * 2) - truth.scores(have)
        if setting == "none":
            equal = list(baselines(truth.problem)["equal budget"].values())
            best, span = truth.best([equal])
            assert best - float(truth.gain(equal)) < 0.001 * span
        if truth.dead is not None:
            assert gains[truth.dead] == 0
        if truth.saturated is not None:
            assert gains[truth.saturated] < 0.4 * np.median(gains)


def test_simulated_noise_is_as_large_as_the_measured_one() -> None:
    """Slopes from 11 trainings, one task at a time, spread between campaigns about as much as they
    are large."""
    shares = np.ones((11, 4))
    shares[1:3] = [[0.5] * 4, [0.25] * 4]
    for row, (task, level) in enumerate(itertools.product(range(4), (0.5, 0.25)), 3):
        shares[row, task] = level
    columns = np.column_stack([np.ones(11), np.log(shares)])
    errors, slopes = [], []
    for family, seed in itertools.product(simulated.FAMILIES, range(1200, 1212)):
        campaign = simulated.start_campaign(family, "none", seed)
        counts = np.round(shares * 300)
        seen = np.array([campaign.scores(row, number) for number, row in enumerate(counts)])
        true = campaign.truth.scores(counts)
        found, wanted = (
            np.diag(np.linalg.lstsq(columns, each / true[0], rcond=None)[0][1:])
            for each in (seen, true)
        )
        errors.append(found - wanted)
        slopes.append(wanted)
    assert 0.4 < np.std(errors) / np.mean(slopes) < 1.2


GATHERING = "late"
"""the family whose curves gather speed, which nothing in slopes so far says"""


@pytest.mark.parametrize("setting", ["dead", "saturated"])
def test_a_task_that_is_not_worth_it_is_found(setting: str) -> None:
    rows = simulated.run_campaigns(range(1000, 1008), settings=(setting,))
    default, neutral, equal = (
        np.mean([getattr(row, key) for row in rows]) for key in simulated.PLANS
    )
    assert default < 0.75 * min(neutral, equal)
    assert np.mean([row.covered for row in rows if row.family != GATHERING]) > 0.85
    # there more is gained than was stated, never less
    assert all(row.covered or row.above for row in rows if row.family == GATHERING)


@pytest.mark.parametrize("setting", ["15 %", "50 %"])
def test_tasks_that_differ_a_little_are_planned_no_worse_than_alike(setting: str) -> None:
    rows = simulated.run_campaigns(range(1000, 1008), settings=(setting,))
    default, neutral, equal = (
        np.mean([getattr(row, key) for row in rows]) for key in simulated.PLANS
    )
    assert default < min(neutral + 0.5, equal)
    assert np.mean([row.covered for row in rows]) > 0.75


def test_equal_tasks_are_left_nearly_equal() -> None:
    rows = simulated.run_campaigns(range(1000, 1004), settings=("none",))
    assert np.mean([row.default for row in rows]) < 2.0
    assert np.mean([row.covered for row in rows]) > 0.85


def test_rounds_are_joined_with_the_levels_of_their_own_folds() -> None:
    first, second = planted(0.01, seed=2), planted(0.01, seed=3)
    whole = join([first, second])
    assert whole.have == second.have
    assert len(whole.scores) == len(first.scores) + len(second.scores)
    assert (np.unique(whole.fold) == [0]).all()  # one set of validation labels for both
    folded = [replace(each, fold=np.arange(len(each.scores)) % 4) for each in (first, second)]
    assert len(np.unique(join(folded).fold)) == 8
    assert np.array_equal(fit(join([second])).worths, fit(second).worths)
    # more trainings, more certainty
    errors = [read_signs(each, np.ones(4), 1.0, Beliefs()).slope_error for each in (second, whole)]
    assert (errors[1] < 0.85 * errors[0]).all()
    with pytest.raises(InputError, match="different tasks"):
        join([replace(first, tasks=tuple("wxyz")), second])


def test_skill_is_no_surer_for_labels_that_were_scored_in_rounds_before() -> None:
    """Folds of a later round hold them again."""
    one = planted(0.01, seed=2)
    folded = replace(
        one,
        fold=np.arange(len(one.scores)) % 4,
        skill=np.full(one.scores.shape, 0.3),
        skill_error=np.full(one.scores.shape, 0.2),
    )
    for rounds in ([folded], [folded] * 3):
        assert find_skill(join(rounds), one.tasks[0]) == pytest.approx((0.3, 0.1))


def test_simulated_rounds_spend_the_same_money_and_are_judged_on_the_same_truth() -> None:
    one, three, again = (
        simulated.run_rounds("asymptotic", "dead", 7, rounds) for rounds in (1, 3, 3)
    )
    assert three == again
    assert one == pytest.approx(simulated.run_campaign("asymptotic", "dead", 7).default, abs=1e-9)
    assert 0 <= three < 100


# Levels

FOLDS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3])
COUNTS = np.array([31, 31, 16, 28, 28, 7, 28, 7, 33, 33, 8, 14, 14, 16])
LOSSES = np.array([0.55, 0.61, 0.72, 0.56, 0.6, 0.8, 0.63, 0.85, 0.5, 0.56, 1.29, 0.76, 0.81, 0.58])
"""of edges in a campaign of 40 labels, of which folds leave 28 to 33: few labels do worse than
none"""


def level_of(losses: np.ndarray, constant: list[float], untrained: float = 0.676) -> Level:
    found = find_level(
        Response(
            ("edges",),
            (40,),
            COUNTS[:, None],
            losses[:, None],
            np.full((8, 1), untrained) + np.linspace(-0.01, 0.01, 8)[:, None],
            (False,),
            FOLDS,
            constant=np.array(constant)[:, None] if constant else np.zeros((0, 1)),
        ),
        "edges",
    )
    assert found is not None
    return found


@pytest.mark.parametrize("constant", [[], [0.64, 0.65, 0.63, 0.64]])
def test_a_task_that_learns_is_not_near_chance_because_folds_differ(constant: list[float]) -> None:
    level = level_of(LOSSES, constant)
    assert level.score == pytest.approx(np.mean([0.55, 0.61, 0.56, 0.6, 0.63, 0.5, 0.56]))
    assert level.is_constant == bool(constant)
    assert level.chance == pytest.approx(0.64 if constant else 0.676, abs=0.01)
    assert not level.near_chance


def test_what_is_far_from_an_untrained_network_may_still_be_near_chance() -> None:
    """A loss falls a lot until answers are as rare as the labels, which takes no look at a
    picture."""
    constant = [0.58, 0.59, 0.6, 0.56]
    assert level_of(LOSSES, constant, untrained=2.0).near_chance
    assert not level_of(LOSSES, [], untrained=2.0).near_chance


def test_the_skill_of_a_task_is_that_with_all_its_labels_each_fold_once() -> None:
    blank = Response(
        ("edges",), (40,), COUNTS[:, None], LOSSES[:, None], np.ones((8, 1)), (False,), FOLDS
    )  # fmt: skip
    assert np.isnan(find_skill(blank, "edges")).all()
    assert np.isnan(find_skill(blank, "depth")).all()
    assert np.isnan(find_skill(None, "edges")).all()
    full = COUNTS >= 28
    skill = np.where(full, 0.1 * (FOLDS + 1), 0.9)[:, None]
    error = np.where(full, 0.1, 0.9)[:, None]
    found = find_skill(replace(blank, skill=skill, skill_error=error), "edges")
    assert found == (pytest.approx(0.25), pytest.approx(0.05))
    partly = np.where(FOLDS == 3, np.nan, skill[:, 0])[:, None]
    found = find_skill(replace(blank, skill=partly, skill_error=error), "edges")
    assert found == (pytest.approx(0.2), pytest.approx(0.1 / np.sqrt(3)))


def test_levels_of_rounds_keep_to_their_folds() -> None:
    first = Response(
        ("edges",), (40,), COUNTS[:, None], LOSSES[:, None], np.ones((8, 1)), (False,), FOLDS,
        constant=np.array([[0.64], [0.65], [0.63], [0.64]]),
    )  # fmt: skip
    second = replace(
        first,
        counts=2 * first.counts,
        have=(80,),
        scores=first.scores - 0.1,
        constant=first.constant - 0.1,
    )
    both = join([first, second])
    assert both.constant.tolist() == [*first.constant.tolist(), *second.constant.tolist()]
    level = find_level(Response.from_dict(both.to_dict()), "edges")
    assert level is not None
    assert (level.chance, level.near_chance) == (pytest.approx(0.54, abs=0.01), False)


def test_small_data_fall_so_unevenly_that_a_fold_leaves_three_quarters_of_another_ones() -> None:
    """Two folds of four were left out, and of two numbers no noise is known."""
    counts = np.array([[35], [34], [26], [25]] * 2)
    scores = np.array([[1.0], [0.83], [1.0], [0.93]] * 2)
    constant = np.array([[0.8], [0.0], [0.5], [0.6]])
    response = Response(
        ("style",), (40,), counts, scores, np.full((8, 1), 0.6), (True,),
        np.array([0, 1, 2, 3] * 2), constant=constant,
    )  # fmt: skip
    level = find_level(response, "style")
    assert level is not None
    assert level.score == pytest.approx(0.94)
    assert not level.near_chance


def test_trainings_with_other_tasks_tell_of_those_that_are_left() -> None:
    shared = {"a": range(80), "b": range(100, 140)}
    tasks = ({"c": range(50)}, {"d": range(60)})
    old, new = (design(Labels(shared | more), 24, seed=1) for more in tasks)

    def respond(chosen: Design, have: tuple[int, ...]) -> Response:
        scores = 0.5 + 0.05 * np.log(np.maximum(chosen.counts, 1))
        start = np.full((2, 3), 0.4)
        return Response(chosen.tasks, have, chosen.counts, scores, start, (True,) * 3)

    before, now = respond(old, (80, 40, 50)), respond(new, (80, 40, 60))
    found = adapt(before, now)
    assert found.tasks == ("a", "b", "d")
    assert (found.counts[:, :2] == before.counts[:, :2]).all()
    assert (found.scores[:, :2] == before.scores[:, :2]).all()
    assert np.isnan(found.scores[:, 2]).all()
    assert (found.counts[:, 2] == 60).all()
    assert adapt(now, now) is now
    # slopes of the tasks that are left become surer, and nothing fails for the new one
    both = join([found, now])
    together = fit(both)
    assert together.tasks == now.tasks
    assert np.isfinite(together.worths).all()
    errors = [read_signs(each, np.ones(3), 1.0, Beliefs()).slope_error for each in (now, both)]
    assert (errors[1][:2] < 0.85 * errors[0][:2]).all()
    assert errors[1][2] == pytest.approx(errors[0][2])
