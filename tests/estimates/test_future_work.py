"""Options of the paper's future work: rates between tasks and transfer of three tasks, planted and
found again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.planted_letter import (
    CROSS_FIRST,
    CROSS_RATES,
    EXCESS,
    PLANTED_TASKS,
    RATES,
    THREE_TASKS,
    TRANSFER,
    TRANSFER_OF_THREE,
    PairedLearner,
    PlantedLearner,
    ThreefoldLearner,
    find_reach,
)

import allotment as al
from allotment.advice.price import price
from allotment.campaign.rounds import rebase
from allotment.data.labels import Labels, Split
from allotment.errors import InputError
from allotment.estimates.curves import Points
from allotment.estimates.estimates import Estimates, gather_cross
from allotment.estimates.estimating import prepare
from allotment.estimates.method import METHODS
from allotment.estimates.probes import probe_training
from allotment.estimates.taba import PairRates, combine, read_pairs
from allotment.estimates.transfer import Transfer
from allotment.estimates.triples import TripleLooks, find_excess, look_at_triples

NOWHERE = np.zeros(0, dtype=np.int64)
PARTS = Split(np.arange(1000), NOWHERE, np.arange(1000, 1040))
LABELS = Labels({"size": range(0, 100), "look": range(60, 160)})
THREE = Labels({"size": range(0, 90), "look": range(60, 160), "form": range(150, 260)})
PAIR_RATES = np.array(
    [[CROSS_RATES.get((i, j), RATES[i]) for j in PLANTED_TASKS] for i in PLANTED_TASKS]
)
PROBLEM = al.Problem(
    [al.Task("size", 1, have=100, weight=2), al.Task("look", 3, have=100)], budget=300
)


def ask(learner: PlantedLearner, labels: Labels = LABELS, **options: Any) -> Estimates:
    return al.estimate(learner, labels, method="taba", folds=1, **options)


def ask_pairs(**given: Any) -> Estimates:
    return ask(PairedLearner(split=PARTS, **given), rates="between")


# --- what stays as it was ---


def test_without_the_options_nothing_changes() -> None:
    """The pieces by name, which are the keys of jobs, and what they come to."""
    plain = prepare(PlantedLearner(split=PARTS), LABELS, method="taba", folds=1)
    curves = [["curve", part, task] for task in PLANTED_TASKS for part in range(3)]
    jobs = [{"piece": piece, "takes": 8} for piece in curves]
    jobs += [{"piece": ["probes", run, ""], "takes": 1} for run in range(10)]
    assert METHODS.load("taba").jobs(plain) == jobs
    first = ask(PairedLearner(split=PARTS))
    again = ask(PairedLearner(split=PARTS), rates="own", triples=False)
    assert first.to_dict() == again.to_dict()
    assert first.shapes.ndim == 2
    assert not {"between"} & first.about.keys()
    assert {*first.about["measured"]} == {"transfer", "points"}


@pytest.mark.parametrize("method", ["taba-b1", "taba-alone", "taba-tag", "taba-mended", "response"])
def test_other_methods_refuse_them(method: str) -> None:
    with pytest.raises(InputError) as caught:
        al.estimate(PlantedLearner(), LABELS, method=method, rates="between", triples=True)
    for key in ("rates", "triples"):
        assert f"{key}: is no option of method {method!r}" in str(caught.value)


def test_other_values_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        ask(PlantedLearner(split=PARTS), rates="betwen", triples=3)
    assert "rates: unknown 'betwen'; did you mean 'between'" in str(caught.value)
    assert "triples: 3 is not true or false" in str(caught.value)


# --- rates between tasks ---


def test_planted_rates_between_tasks_come_back() -> None:
    """Without noise: I to nine digits, the reach of every b_ij and the first gain to one in a
    hundred."""
    found = ask_pairs()
    told = found.about["between"]
    assert told["tasks"] == list(PLANTED_TASKS)
    for i, source in enumerate(PLANTED_TASKS):
        for j, target in enumerate(PLANTED_TASKS):
            reach = find_reach(told["rates"][i][j])
            assert reach == pytest.approx(find_reach(PAIR_RATES[i, j]), rel=0.01)
            if i != j:
                first = CROSS_FIRST[source, target]
                assert told["first"][i][j] == pytest.approx(first, rel=0.01)
                assert told["shown"][i][j]
    measured = Transfer.from_dict(found.about["measured"]["transfer"])
    assert measured.matrix == pytest.approx(TRANSFER, rel=1e-9)
    assert found.worths.mean(axis=0) == pytest.approx(TRANSFER.T, rel=1e-9)
    points = Points.from_dict(found.about["measured"]["between"]["points"][0][1])
    assert (points.task, points.source) == ("look", "hard pseudo-labels of size")


def test_with_noise_they_come_close() -> None:
    """Scores with a noise of a twentieth of a mini-batch's gain: reaches within 25 %."""
    told = ask_pairs(noise=0.0005).about["between"]
    for i, j in ((0, 1), (1, 0)):
        reach = find_reach(told["rates"][i][j])
        assert reach == pytest.approx(find_reach(PAIR_RATES[i, j]), rel=0.25)


def test_a_plan_with_them_is_that_of_the_known_curves() -> None:
    found = ask_pairs()
    gains = gather_cross(PLANTED_TASKS, TRANSFER, PAIR_RATES)
    plan, wanted = al.allocate(PROBLEM, found).counts, al.allocate(PROBLEM, gains).counts
    assert all(abs(plan[task] - wanted[task]) <= 2 for task in plan)
    plain = al.allocate(PROBLEM, ask(PairedLearner(split=PARTS))).counts
    assert abs(plan["size"] - plain["size"]) > 10  # it is another one


def test_equal_rates_make_the_papers_plan() -> None:
    """Also where tasks have weights: what labels of a task do for others counts as theirs."""
    plain = ask(PairedLearner(split=PARTS))
    own = np.array([plain.about["rates"][task] for task in PLANTED_TASKS])
    pairs = ask_pairs()
    same = replace(pairs, shapes=np.broadcast_to(own, pairs.worths.shape))
    for count in (0, 50, 170):
        counts = {"size": count, "look": 40}
        assert same.gains_of(counts) == pytest.approx(plain.gains_of(counts))
        for task in PLANTED_TASKS:
            wanted = plain.mean_gains()[task](count)
            assert same.mean_gains()[task](count) == pytest.approx(wanted)
    one, other = al.allocate(PROBLEM, same), al.allocate(PROBLEM, plain)
    assert one.counts == other.counts
    assert one.value == pytest.approx(other.value)
    assert one.outlook is not None
    assert other.outlook is not None
    assert one.outlook.counts == other.outlook.counts
    assert one.outlook.mean == pytest.approx(other.outlook.mean)
    assert same.first_gains() == pytest.approx(plain.first_gains())


def test_draws_and_their_mean_go_by_the_curves() -> None:
    found = ask_pairs(noise=0.0002)
    counts = {"size": 120, "look": 60}
    for task, curve in found.mean_gains().items():
        at = found.tasks.index(task)
        assert curve(counts[task]) == pytest.approx(found.gains_of(counts)[:, at].mean(), rel=1e-6)
    one = found.gains(3)
    for task, curve in one.items():
        at = found.tasks.index(task)
        assert curve(counts[task]) == pytest.approx(found.gains_of(counts)[3, at], rel=1e-6)


def test_they_go_on_from_more_labels_at_hand() -> None:
    found = ask_pairs()
    later = rebase(found, {"size": 130, "look": 100})
    both, before = ({"size": count, "look": 0} for count in (80, 30))
    more = found.gains_of(both) - found.gains_of(before)
    assert later.gains_of({"size": 50, "look": 0})[:, 0] == pytest.approx(more[:, 0])


def test_a_pair_that_shows_no_rate_goes_by_that_of_its_source() -> None:
    """Its curve is flat, or falls, or its labels do harm."""
    flat = ask_pairs(noise=0.0003, cross={("size", "look"): 0.003, ("look", "size"): 0.0})
    told = flat.about["between"]
    assert told["grades"][1][0] == "unusable"
    assert told["shown"] == [[False, True], [False, False]]
    assert told["rates"][1][0] == flat.about["rates"]["look"]
    findings = al.diagnose(PROBLEM, flat).findings
    (judged,) = [each for each in findings if (each.kind, each.name) == ("curve", "look to size")]
    assert (judged.grade, judged.share) == ("unusable", 0.0)
    assert judged.why.endswith("; the rate of look stands in for it")
    rising = Points((0, 10, 40), ((0.5, 0.6, 0.62),) * 3, True, have=20)
    curves, harm = dict.fromkeys(PLANTED_TASKS, rising), np.array([[1.0, -0.3], [0.2, 1.0]])
    transfer = Transfer(PLANTED_TASKS, "paper", "metric", "training", harm[None], np.ones((1, 2)))
    given = {(i, j): rising for i in PLANTED_TASKS for j in PLANTED_TASKS if i != j}
    have = dict.fromkeys(PLANTED_TASKS, 20)
    found = combine(transfer, curves, have, letter=True, between=given, draws=1)
    assert found.about["between"]["shown"] == [[False, False], [True, False]]
    # so that harm at the same rate is taken off exactly
    size, rate = found.mean_gains()["size"], found.about["rates"]["size"]
    assert size(30) == pytest.approx(al.Geometric(0.7, rate)(30))
    assert found.gains_of({"size": 30, "look": 0})[0, 0] == pytest.approx(size(30))


def test_what_they_take_is_known_before() -> None:
    learner = PairedLearner(split=PARTS)
    found = ask(learner, rates="between")
    known = price(learner, LABELS, method="taba", folds=1, rates="between")
    assert found.about["trainings"] == known.trainings == 10 + 2 * 2 * 3 * (3 + 5)
    plain = price(learner, LABELS, method="taba", folds=1)
    # a step on two tasks counts once
    assert known.steps - plain.steps == 2 * 3 * (3 + 5) * 62


def test_estimates_of_pairs_are_kept_renamed_and_judged() -> None:
    found = ask_pairs()
    again = Estimates.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    rates = PairRates.from_dict(json.loads(json.dumps(found.about["between"])))
    assert rates.to_dict() == found.about["between"]
    assert {*read_pairs(found.about["measured"])} == {*CROSS_RATES}
    for wrong in ({"rates": [[1.0]]}, {"grades": 3}, {"tasks": None}):
        with pytest.raises(InputError, match="the rates between tasks"):
            PairRates.from_dict(found.about["between"] | wrong)
    with pytest.raises(InputError, match="the curves between tasks"):
        read_pairs({"between": {"tasks": ["size"], "points": [[None, {}]]}})
    told = json.dumps(found.rename({"size": "heat"}).about)
    assert '"heat"' in told
    assert '"size"' not in told.replace('"task": "size"', "")
    judged = al.diagnose(PROBLEM, found).findings
    curves = {each.name: each for each in judged if each.kind == "curve"}
    assert {*curves} == {"size", "look", "size to look", "look to size"}
    assert {each.grade for each in curves.values()} == {"sound"}
    assert curves["look to size"].share > 0.02
    assert max(each.share for each in judged if each.kind == "cell") > 0.02
    with pytest.raises(InputError, match="pairs have rates of the geometric law alone"):
        replace(found, law="power")
    with pytest.raises(InputError, match=r"shapes: has the shape \(1, 2, 3\)"):
        replace(found, shapes=np.ones((1, 2, 3)))


# --- transfer of three tasks ---


def test_a_planted_excess_of_three_tasks_comes_back() -> None:
    """Without noise to nine digits; each of two sources gets half of it."""
    found = ask(ThreefoldLearner(split=PARTS), THREE, triples=True)
    told = found.about["measured"]["triples"]
    assert told["tasks"] == list(THREE_TASKS)
    wanted = TRANSFER_OF_THREE.copy()
    for j, target in enumerate(THREE_TASKS):
        i, k = (at for at in range(3) if at != j)
        assert told["excess"][i][k][j] == pytest.approx(EXCESS[target], abs=1e-9)
        assert told["excess"][k][i][j] == told["excess"][i][k][j]
        wanted[[i, k], j] += EXCESS[target] / 2
    assert np.array(told["pairs"]) == pytest.approx(TRANSFER_OF_THREE, abs=1e-9)
    measured = Transfer.from_dict(found.about["measured"]["transfer"])
    assert measured.matrix == pytest.approx(wanted, abs=1e-9)
    for at, task in enumerate(THREE_TASKS):
        curve = found.mean_gains()[task]
        assert curve.informativeness == pytest.approx(wanted[at].sum(), rel=1e-9)
    # what all sources do for a task is the sum over them
    j = THREE_TASKS.index("form")
    together = TRANSFER_OF_THREE[[0, 1], j].sum() + EXCESS["form"]
    assert measured.matrix[[0, 1], j].sum() == pytest.approx(together)


def test_with_noise_the_excess_lies_within_its_error() -> None:
    """Of 3 cells over two seeds all lie within four standard errors."""
    for seed in range(2):
        learner = ThreefoldLearner(split=PARTS, noise=0.001)
        options = {"sizes": (10, 20, 40), "repetitions": 1, "triples": True}
        found = al.estimate(learner, THREE, seed, method="taba", folds=1, **options)
        told = found.about["measured"]["triples"]
        for i, k, j in ((1, 2, 0), (0, 2, 1), (0, 1, 2)):
            error = told["error"][i][k][j]
            assert 0.005 < error < 0.1
            assert abs(told["excess"][i][k][j] - EXCESS[THREE_TASKS[j]]) < 4 * error


def test_both_options_go_together() -> None:
    options = {"rates": "between", "triples": True, "runs": 2, "repetitions": 1}
    learner = ThreefoldLearner(split=PARTS)
    found = ask(learner, THREE, **options)
    assert found.about["trainings"] == 2 * 2 + (3 + 6) * (3 + 5)
    known = price(learner, THREE, method="taba", folds=1, **options)
    assert known.trainings == found.about["trainings"]
    plain = price(learner, THREE, method="taba", folds=1, rates="between", runs=2, repetitions=1)
    # both trainings again, and one step of one arm of three at each of six looks
    assert known.steps - plain.steps == 2 * (62 + 6)
    assert found.worths.mean(axis=0)[2, 0] == pytest.approx(0.4 + EXCESS["form"] / 2)


def test_three_tasks_need_three_with_labels() -> None:
    with pytest.raises(InputError) as caught:
        ask(PlantedLearner(split=PARTS), triples=True)
    said = "triples: 2 tasks have labels, and what two do for a third takes three; leave the"
    assert said in str(caught.value)
    two = Labels({"size": range(50), "look": range(50, 100), "form": []})
    with pytest.raises(InputError, match="triples: 2 tasks have labels"):
        ask(ThreefoldLearner(split=PARTS), two, triples=True)


def test_looks_come_back_from_plain_values_and_go_with_their_probes() -> None:
    learner = ThreefoldLearner(split=PARTS)
    looks = look_at_triples(learner, THREE, 3, every=20, run="run 0")
    again = TripleLooks.from_dict(json.loads(json.dumps(looks.to_dict())))
    assert np.array_equal(again.metric, looks.metric, equal_nan=True)
    probes, _ = probe_training(learner, THREE, 3, every=20, run="run 0")
    assert find_excess(probes, again).matrix[0, 1, 2] == pytest.approx(EXCESS["form"])
    other, _ = probe_training(learner, THREE, 3, every=30, run="run 0")
    with pytest.raises(InputError, match="looks: are not of the same tasks and steps"):
        find_excess(other, again)
    with pytest.raises(InputError, match="metric: is missing"):
        TripleLooks.from_dict({"tasks": [], "ahead": 1, "runs": [], "at": []})
