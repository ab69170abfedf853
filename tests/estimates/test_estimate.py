"""The one verb: every method by its name, what it is told and tells, and a planted truth that it
finds again."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from helpers.planted_scores import LABELS, PROBLEM, SLOPES, TASKS, Folding, Planted
from simulated import FAMILIES, SimulatedLearner, start_campaign

import allotment as al
from allotment.errors import InputError
from allotment.estimates import levels
from allotment.estimates.design import design, folds_of
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import estimate, prepare
from allotment.estimates.method import METHODS, list_methods


def give_pool(method: str, pool: range = range(1000)) -> dict[str, Any]:
    """What the ensembles of some methods label."""
    return {"pool": pool} if "pool" in METHODS.load(method).options else {}


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_gives_estimates_that_plan_and_go_to_json(method: str) -> None:
    options = give_pool(method)
    told: list[tuple[int, int, str]] = []
    learner = Planted(noise=0.002)
    job = prepare(learner, LABELS, method=method, trainings=14, **options)
    work = METHODS.load(method).weigh(job)
    found = estimate(
        learner,
        LABELS,
        3,
        method=method,
        trainings=14,
        progress=lambda *one: told.append(one),
        **options,
    )
    assert (found.about["method"], found.about["seed"], found.about["folds"]) == (method, 3, 1)
    assert found.about["trainings"] == work.trainings == len(learner.seen)
    if work.trainings:
        done = [one[0] for one in told]
        assert done == sorted(done)
        assert told[-1][:2] == (work.trainings, work.trainings)
        assert {one[1] for one in told} == {work.trainings}
    again = Estimates.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    plan = al.allocate(PROBLEM, again)
    assert plan.counts == al.allocate(PROBLEM, found).counts
    assert sum(plan.counts.values()) == 200
    assert plan.outlook is not None
    assert plan.outlook.low <= plan.outlook.mean + 1e-9 <= plan.outlook.high + 2e-9


@pytest.mark.parametrize("method", list(METHODS))
def test_the_same_seed_gives_the_same_estimates(method: str) -> None:
    options = give_pool(method)
    one, other = (
        estimate(Planted(noise=0.01), LABELS, 5, method=method, trainings=10, **options).to_dict()
        for _ in range(2)
    )
    assert one == other


def test_slopes_find_a_planted_logarithm() -> None:
    found = estimate(Planted(), LABELS, method="slopes", trainings=12)
    doubled = {task: len(LABELS[task]) for task in TASKS}
    assert found.gains_of(doubled).mean(axis=0) == pytest.approx(
        SLOPES.sum(axis=1) * math.log(2), rel=5e-3
    )
    only = found.gains_of({"a": 80, "b": 0, "c": 0}).mean(axis=0)
    assert only == pytest.approx(SLOPES[:, 0] * math.log(2), abs=3e-2)
    lower = estimate(Planted(higher=False), LABELS, method="slopes", trainings=12)
    assert lower.gains_of(doubled).mean(axis=0) == pytest.approx(
        SLOPES.sum(axis=1) * math.log(2), rel=5e-3
    )


def test_slopes_are_as_noisy_as_their_draws_say() -> None:
    """Over 60 seeds, 90 % intervals of what labels of a bring to a: 54 with a standard deviation of
    2.3."""
    covered = 0
    for seed in range(60):
        found = estimate(
            Planted(noise=0.02), LABELS, seed * 100, method="slopes", trainings=14, draws=400
        )
        gains = found.gains_of({"a": 80, "b": 0, "c": 0})[:, 0]
        low, high = np.quantile(gains, [0.05, 0.95])
        covered += low <= SLOPES[0, 0] * math.log(2) <= high
    assert 47 <= covered <= 60


def test_slopes_need_more_trainings_than_numbers() -> None:
    with pytest.raises(InputError, match="trainings: 4 cannot tell 4 numbers apart; slopes need 5"):
        estimate(Planted(), LABELS, method="slopes", trainings=4)
    estimate(Planted(noise=0.01), LABELS, method="slopes", trainings=5)


@pytest.mark.parametrize("family", FAMILIES)
def test_response_is_the_fit_of_what_the_learner_scored(family: str) -> None:
    """The simulated campaign answers the same design by itself, without any training."""
    campaign = start_campaign(family, "dead", 7)
    learner = SimulatedLearner(campaign)
    found = estimate(learner, campaign.labels, 7, trainings=9)
    direct = levels.fit(campaign.respond(design(campaign.labels, 9, 7)), seed=7)
    assert found.worths == pytest.approx(direct.worths)
    assert found.shapes == pytest.approx(direct.shapes)
    assert found.about["measured"]["response"]["tasks"] == list(campaign.truth.names)


def test_neutral_trains_nothing_and_plans_like_the_neutral_baseline() -> None:
    class Untouchable:
        tasks = TASKS

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was used")

    found = estimate(Untouchable(), LABELS, method="neutral")  # type: ignore[arg-type]
    plan, fixed = al.allocate(PROBLEM, found).counts, al.baselines(PROBLEM)["neutral"]
    for task in TASKS:
        assert abs(plan[task] - fixed[task]) <= 2
    assert found.about["trainings"] == 0
    assert estimate(Planted(), LABELS, method="neutral", trainings=50).about["trainings"] == 0


def test_paper_and_pooled_differ_in_what_they_promise() -> None:
    paper = estimate(Planted(noise=0.002), LABELS, method="taba", trainings=10, pool=range(1000))
    pooled = estimate(Planted(noise=0.002), LABELS, method="taba-pooled", trainings=10)
    assert (paper.about["estimator"], pooled.about["estimator"]) == ("paper", "pooled")
    assert (paper.about["unit"], pooled.about["unit"]) == ("labels", "%")
    assert set(paper.about["measured"]) == {"transfer", "points"}
    assert paper.about["measured"]["points"]["a"]["source"] == "hard pseudo-labels"
    assert pooled.about["measured"]["points"]["a"]["source"] == "subsets"


# --- where scores come from ---


def test_labels_score_in_turn_where_no_validation_label_does() -> None:
    assert estimate(Planted(), LABELS, trainings=4).about["folds"] == 1
    assert estimate(Folding(), LABELS, trainings=4).about["folds"] == 1
    with pytest.raises(InputError, match="task 'b': no validation label scores it") as caught:
        estimate(Planted(mute=("b", "c")), LABELS, trainings=4)
    assert len(caught.value.mistakes) == 2
    learner = Folding(mute=("b",))
    found = estimate(learner, LABELS, 2, trainings=8)
    assert found.about["folds"] == 4
    assert len(learner.seen) == 8
    fold = {task: folds_of(LABELS[task].instances, 4, 2) for task in TASKS}
    for number, seen in enumerate(learner.seen):
        for task in TASKS:  # what it was trained on lies outside its fold; Folding checks the rest
            outside = LABELS[task].instances[fold[task] != number % 4]
            assert set(seen[task].instances) <= set(outside), (number, task)


@pytest.mark.parametrize("method", ["taba-mended", "taba-pooled", "slopes"])
def test_other_methods_keep_what_scores_apart_too(method: str) -> None:
    options = give_pool(method, range(60, 1000))
    found = estimate(Folding(noise=0.01), LABELS, method=method, trainings=16, folds=3, **options)
    assert found.about["folds"] == 3


# --- mistakes ---


def test_all_mistakes_at_once() -> None:
    with pytest.raises(InputError) as caught:
        estimate(Planted(), LABELS.with_task("d", [1]), method="respons", trainings=-1, folds=0)
    said = str(caught.value)
    for part in (
        "method: unknown 'respons'; did you mean 'response'",
        "task 'd'",
        "trainings: -1",
        "folds: 0",
    ):
        assert part in said
    with pytest.raises(InputError, match="rounds: is no option of method 'taba'"):
        estimate(Planted(), LABELS, method="taba", rounds=3)
    with pytest.raises(InputError, match="folds: 3: the learner cannot be scored on a part"):
        estimate(Planted(), LABELS, folds=3)
    with pytest.raises(InputError, match="pool: an ensemble labels it"):
        estimate(Planted(), LABELS, method="taba", trainings=5)


def test_every_option_that_a_method_names_is_taken() -> None:
    given: dict[str, Any] = {
        "draws": 30, "best": 1.0, "beliefs": None, "together": 2, "every": 9,
        "ahead": 2, "runs": 2, "sizes": (5, 10, 20),
        "repetitions": 2, "ensemble": 2, "mode": "soft", "pool": range(500), "fallback": False,
        "estimator": "tag",
        "own_gain": False, "probing": {"steps": 2000}, "validation": 0.3, "score_on": None,
        "rates": "between", "triples": True,
    }  # fmt: skip
    for name, method in list_methods().items():
        options = {key: given[key] for key in method.options}
        assert (
            estimate(Folding(noise=0.01), LABELS, method=name, trainings=12, **options).draws == 30
        )


# --- the front door ---


def test_estimate_and_diagnose_are_at_the_front_door_and_load_no_torch() -> None:
    assert al.estimate is estimate
    code = (
        "import sys, allotment\nallotment.estimate, allotment.diagnose\nprint('torch' in"
        " sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
