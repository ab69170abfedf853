"""The advice room: good and bad figures are told apart, prices are what is run, backtests find what
is planted."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.planted_curves import PLANTED, good, measured, powerful
from helpers.planted_scores import LABELS, PROBLEM, TASKS, Folding, Planted
from helpers.planted_transfer import known

import allotment as al
from allotment.advice.backtest import Backtest, backtest
from allotment.advice.doctor import Diagnosis, diagnose
from allotment.advice.price import STACKED_TRAININGS, TIMED, Price, price
from allotment.data.labels import Labels
from allotment.errors import InputError
from allotment.estimates.curves import Points, fit_paper
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import estimate
from allotment.estimates.response import Response
from allotment.estimates.taba import combine
from allotment.learners.learner import train

NAMES = ("cls", "seg", "kp")
EVEN = al.Problem([al.Task(name, cost=1, have=300) for name in NAMES], budget=900)


def draws_of(
    worths: list[float], spread: float = 0.1, count: int = 200, **about: object
) -> Estimates:
    """Power laws in which twice the labels bring so many %, each with its own spread."""
    rng = np.random.default_rng(0)
    per_worth = 300**-0.4 - 600**-0.4
    factors = rng.normal(1, spread, size=(count, len(worths)))
    diagonal = np.array(worths) / per_worth * factors
    full = diagonal[:, :, None] * np.eye(len(worths))
    told = {"method": "response", "trainings": 30} | about
    return Estimates(
        NAMES[: len(worths)], (300,) * len(worths), full, np.full(diagonal.shape, 0.4), about=told
    )


# --- the doctor: curves ---


def plain_geometric() -> Estimates:
    points = {
        name: measured(good(np.random.default_rng(at)), np.random.default_rng(at))
        for at, name in enumerate(NAMES)
    }
    return combine(known(np.eye(3).tolist()), points, dict.fromkeys(NAMES, 300), draws=20)


def grades(batch: list[Points]) -> list[str]:
    """The doctor's grade of each curve, three of them at a time."""
    planned = plain_geometric()
    found = []
    for first in range(0, len(batch), 3):
        three = dict(zip(NAMES, batch[first : first + 3], strict=False))
        diagnosis = diagnose(EVEN, planned, points=three)
        found += [each.grade for each in diagnosis.findings if each.kind == "curve"]
    return found


@pytest.fixture
def _no_own_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grades of curves do not need the plans of single draws, which take most of the time."""
    monkeypatch.setattr("allotment.estimates.estimates.OWN_PLANS", 2)


@pytest.mark.usefixtures("_no_own_plans")
def test_bad_curves_are_flagged_and_good_ones_are_not() -> None:
    """8 repetitions of each curve: at least 90 % of the bad, at most 10 % of the good."""
    rng = np.random.default_rng(11)
    bad = [measured(truth(rng), rng, noise=noise) for truth, noise, _ in PLANTED for _ in range(6)]
    fine = [measured(truth(rng), rng) for truth in (good, powerful) for _ in range(18)]
    flagged = [grade != "sound" for grade in grades(bad)]
    wrong = [grade != "sound" for grade in grades(fine)]
    assert len(flagged) == len(wrong) == 36
    assert np.mean(flagged) >= 0.9
    assert np.mean(wrong) <= 0.1


def test_a_curve_says_what_hangs_on_it_and_what_would_mend_it() -> None:
    rng = np.random.default_rng(3)
    points = {
        "cls": measured(good(rng), rng),
        "seg": measured(good(rng), rng, noise=0.05),
        "kp": measured(good(rng), rng),
    }
    planned = combine(known(np.eye(3).tolist()), points, dict.fromkeys(NAMES, 300))
    found = {
        each.name: each
        for each in diagnose(EVEN, planned, points=points).findings
        if each.kind == "curve"
    }
    assert found["cls"].grade == "sound"
    assert found["seg"].grade != "sound"
    assert "repetitions" in found["seg"].remedy
    fits = {name: fit_paper(each, draws=40, steps=300) for name, each in points.items()}
    again = diagnose(EVEN, planned, points=points, fits=fits)
    assert {each.name: each.grade for each in again.findings if each.kind == "curve"}[
        "cls"
    ] == "sound"
    # planned by another law, the plan cannot hang on these curves
    other = diagnose(EVEN, draws_of([5, 5, 5]), points=points)
    assert {each.share for each in other.findings if each.kind == "curve"} == {0.0}


# --- the doctor: what is at stake ---


def test_equal_budget_is_fine_where_nothing_can_be_told() -> None:
    same = diagnose(EVEN, draws_of([5, 5, 5], spread=0.3))
    assert same.equal_is_fine
    assert str(same).startswith("Equal budget is fine. The plan promises ")
    unlike = diagnose(EVEN, draws_of([9, 5, 0.1], spread=0.1))
    assert not unlike.equal_is_fine
    assert unlike.outlook.low > 0
    assert str(unlike).startswith("The plan is worth following. ")
    vague = diagnose(EVEN, draws_of([6, 5, 4], spread=0.8))
    assert vague.equal_is_fine
    assert vague.outlook.chance < 0.8


def test_a_plan_of_an_unusable_method_is_not_praised() -> None:
    sure = draws_of([9, 5, 0.1], spread=0.1)
    blind = replace(sure, about=dict(sure.about) | {"fallbacks": list(NAMES)})
    assert str(diagnose(EVEN, blind)).startswith("The plan cannot be relied on: ")
    partly = replace(sure, about=dict(sure.about) | {"fallbacks": ["kp"]})
    assert str(diagnose(EVEN, partly)).startswith("The plan is worth following. ")


def test_what_is_said_first_is_what_the_draws_say() -> None:
    estimates = draws_of([9, 5, 1])
    found = diagnose(EVEN, estimates)
    plan = al.allocate(EVEN, estimates)
    equal = al.baselines(EVEN)["equal budget"]
    more = (estimates.gains_of(plan.counts) - estimates.gains_of(equal)).mean(axis=1)
    assert (found.counts, found.equal) == (plan.counts, equal)
    assert found.outlook.mean == pytest.approx(more.mean())
    assert found.outlook.low == pytest.approx(np.quantile(more, 0.05))
    assert f"{more.mean():.2g} % of the score more" in str(found)


def test_one_draw_is_not_taken_for_certainty() -> None:
    assert "nothing says how sure" in str(diagnose(EVEN, draws_of([9, 5, 1], count=1)))


# --- the doctor: tasks ---


def response_of(levels: dict[str, tuple[float, float]], spread: float = 0.01) -> Response:
    """Scores around a level with labels and one without."""
    rng = np.random.default_rng(4)
    counts = rng.integers(75, 300, size=(30, 3))
    ends, starts = (np.array([levels[name][place] for name in NAMES]) for place in (0, 1))
    scores = ends + spread * rng.standard_normal((30, 3))
    return Response(
        NAMES,
        (300,) * 3,
        counts,
        scores,
        starts + spread * rng.standard_normal((8, 3)),
        (True,) * 3,
    )


def task_of(found: Diagnosis, name: str):
    return next(each for each in found.findings if (each.kind, each.name) == ("task", name))


def test_tasks_that_learn_are_saturated_or_dead() -> None:
    levels = {"cls": (0.8, 0.5), "seg": (0.95, 0.5), "kp": (0.503, 0.5)}
    found = diagnose(EVEN, draws_of([8, 0.3, 0.3]), response=response_of(levels))
    assert (task_of(found, "cls").grade, task_of(found, "cls").why[:9]) == ("sound", "it learns")
    assert task_of(found, "seg").grade == "sound"
    assert task_of(found, "seg").why.startswith("more labels bring it little")
    dead = task_of(found, "kp")
    assert dead.grade == "unusable"
    assert dead.why.startswith("near chance: with 300 labels it scores 0.")
    assert re.fullmatch(
        r"the plan buys (none|\d+); before it is given up, have 30 labelled \(least = 30\) and"
        r" estimate again|estimate again when the \d+ labels of it that the plan buys are back",
        dead.remedy,
    )
    assert task_of(found, "seg").share > 0.05  # as lively as the others, it would get its part


def test_a_task_that_learns_from_all_labels_only_is_not_near_chance() -> None:
    seen = response_of({"cls": (0.8, 0.5), "seg": (0.8, 0.5), "kp": (0.5, 0.5)})
    counts, scores = np.minimum(seen.counts, 250), seen.scores.copy()
    counts[:3, 2], scores[:3, 2] = 300, [0.59, 0.6, 0.61]
    late = replace(seen, counts=counts, scores=scores)
    assert (
        "near chance" not in task_of(diagnose(EVEN, draws_of([8, 8, 8]), response=late), "kp").why
    )


@pytest.mark.parametrize("skill", [0.09, 0.0, -0.4])
def test_a_score_and_a_skill_like_chance_are_near_chance(skill: float) -> None:
    seen = response_of({"cls": (0.8, 0.5), "seg": (0.8, 0.5), "kp": (0.5, 0.5)})
    shape = seen.scores.shape
    seen = replace(seen, skill=np.full(shape, skill), skill_error=np.full(shape, 0.05))
    found = task_of(diagnose(EVEN, draws_of([8, 8, 8]), response=seen), "kp")
    assert found.grade == "unusable"
    assert found.why.startswith("near chance: with 300 labels it scores 0.")
    assert found.why.endswith(f"(skill {skill:.2f}, by chance 0 ± 0.05)")


def test_answers_that_go_with_the_labels_are_not_near_chance_whatever_they_score() -> None:
    """Few labels make networks that are sure of too much: they score worse than no answer at
    all."""
    seen = response_of({"cls": (0.8, 0.5), "seg": (0.8, 0.5), "kp": (0.42, 0.5)})
    shape = seen.scores.shape
    seen = replace(seen, skill=np.full(shape, 0.31), skill_error=np.full(shape, 0.05))
    found = task_of(diagnose(EVEN, draws_of([8, 8, 8]), response=seen), "kp")
    assert found.grade == "weak"
    assert found.why.startswith(
        "its answers go with the labels (skill 0.31, by chance 0 ± 0.05), but with 300 labels it"
        " scores 0.4"
    )
    assert found.remedy


def test_a_task_that_scores_well_without_skill_is_told() -> None:
    """Where things usually are in a picture can be learnt without a look at any."""
    seen = response_of({"cls": (0.8, 0.5), "seg": (0.8, 0.5), "kp": (0.6, 0.5)})
    error = np.full(seen.scores.shape, 0.03)
    skill = np.broadcast_to([0.5, np.nan, 0.02], seen.scores.shape)
    seen = replace(seen, skill=skill, skill_error=error)
    found = diagnose(EVEN, draws_of([8, 8, 0.3]), response=seen)
    words = (
        "; its answers go with the labels no better than chance (skill 0.02, by chance 0 ± 0.03)"
    )
    assert task_of(found, "kp").why.startswith("more labels bring it little")
    assert task_of(found, "kp").why.endswith(words)
    assert all("skill" not in task_of(found, name).why for name in ("cls", "seg"))


def test_a_task_that_may_be_dead_is_weak() -> None:
    rng = np.random.default_rng(5)
    estimates = draws_of([8, 8, 8])
    mixed = estimates.worths.copy()
    mixed[rng.random(200) < 0.4, 2, 2] = 0.0
    found = diagnose(
        EVEN, Estimates(NAMES, estimates.have, mixed, estimates.shapes, about=estimates.about)
    )
    assert task_of(found, "cls").grade == "sound"
    assert task_of(found, "kp").grade == "weak"
    share = np.mean(mixed[:, 2, 2] == 0)
    assert f"a chance of {share * 100:.1f} %" in task_of(found, "kp").why


def test_a_task_without_labels_or_without_any_training() -> None:
    estimates = draws_of([8, 8, 8])
    bare = Estimates(
        NAMES, (300, 300, 0), estimates.worths, estimates.shapes, about=estimates.about
    )
    problem = al.Problem(
        [al.Task("cls", 1, 300), al.Task("seg", 1, 300), al.Task("kp", 1)], budget=900
    )
    assert task_of(diagnose(problem, bare), "kp").grade == "unusable"
    nothing = diagnose(EVEN, draws_of([8, 8, 8], method="neutral", trainings=0))
    assert {each.grade for each in nothing.findings if each.kind == "task"} == {"unusable"}
    assert "nothing was measured" in next(
        each.why for each in nothing.findings if each.kind == "method"
    )


def test_nobody_is_told_to_buy_what_is_frozen() -> None:
    levels = {"cls": (0.8, 0.5), "seg": (0.95, 0.5), "kp": (0.503, 0.5)}
    tasks = [al.Task("cls", 1, 300), al.Task("seg", 1, 300), al.Task("kp", 1, 300, frozen=0)]
    problem = al.Problem(tasks, budget=900)
    found = diagnose(problem, draws_of([8, 0.3, 0.3]), response=response_of(levels))
    assert task_of(found, "kp").grade == "unusable"
    assert task_of(found, "kp").remedy == ""


# --- the doctor: cells ---


def test_cells_are_graded_by_what_is_known_of_them() -> None:
    sharp = known([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], "pooled", units=30, noise=0.2)
    sums = sharp.sums.copy()
    # kp's own mini-batches do nothing for it
    sums[:, :, 2] = np.random.default_rng(6).normal(size=(30, 3))
    transfer = type(sharp)(sharp.tasks, "pooled", "metric", "training", sums, sharp.counts)
    planned = combine(transfer, {}, dict.fromkeys(NAMES, 300))
    found = {
        each.name: each
        for each in diagnose(EVEN, planned, transfer=transfer).findings
        if each.kind == "cell"
    }
    assert len(found) == 6
    assert found["cls to seg"].grade == "sound"
    assert found["seg to kp"].grade == "unusable"
    assert "standard errors" in found["seg to kp"].why
    assert "probes in place of 30" in found["seg to kp"].remedy
    assert found["cls to seg"].share > found["seg to cls"].share  # without it less would go to cls
    blurred = known([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], "pooled", units=8, noise=0.8)
    weak = diagnose(EVEN, combine(blurred, {}, dict.fromkeys(NAMES, 300)), transfer=blurred)
    assert {each.grade for each in weak.findings if each.kind == "cell"} >= {"weak"}


def test_what_hangs_on_a_cell_is_what_moves_without_it() -> None:
    """Against a plan made by hand from the same matrix with a hole in it."""
    matrix = np.array([[1, 0.9, 0.4], [0, 1, 0], [0, 0.2, 1]])
    transfer = known(matrix.tolist())
    have, b = dict.fromkeys(NAMES, 300), 0.997
    holed = matrix.copy()
    holed[0, 1] = 0
    plans = [
        al.allocate(
            EVEN,
            {
                name: al.Geometric(total, b)
                for name, total in zip(NAMES, each.sum(axis=1), strict=True)
            },
        )
        for each in (matrix, holed)
    ]
    moved = sum(abs(plans[0].counts[name] - plans[1].counts[name]) for name in NAMES) / 2 / 900
    for letter in (True, False):
        planned = combine(transfer, {}, have, letter=letter, rate=b, draws=1)
        found = {each.name: each for each in diagnose(EVEN, planned, transfer=transfer).findings}
        assert found["cls to seg"].share == pytest.approx(moved, abs=0.003)
    assert moved > 0.05


# --- the doctor: form ---


@pytest.mark.parametrize("method", ["response", "taba", "taba-pooled", "neutral", "slopes"])
def test_a_diagnosis_of_every_method_goes_to_json_and_back(method: str) -> None:
    options = {"pool": range(1000)} if method == "taba" else {}
    estimates = estimate(Planted(noise=0.01), LABELS, method=method, trainings=14, **options)
    found = diagnose(PROBLEM, estimates)
    again = Diagnosis.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again == found
    assert str(again) == str(found)
    kinds = {each.kind for each in found.findings}
    assert kinds == (
        {"method", "task", "curve", "cell"} if "taba" in method else {"method", "task"}
    )
    for each in found.findings:
        assert each.grade in ("sound", "weak", "unusable")
        assert 0 <= each.share <= 1
        assert each.grade == "sound" or each.remedy
        assert "\n" not in str(each)


def test_mistakes_of_the_doctor_all_at_once() -> None:
    points = {"clss": measured(good(np.random.default_rng(0)), np.random.default_rng(0))}
    transfer = known([[1, 0], [0, 1]])
    with pytest.raises(InputError) as caught:
        diagnose(
            PROBLEM, estimate(Planted(), LABELS, method="neutral"), points=points, transfer=transfer
        )
    assert len(caught.value.mistakes) == 3
    with pytest.raises(InputError, match="outlook: is missing"):
        Diagnosis.from_dict({"counts": {}})


# --- price ---


class Ticking:
    """A clock and a learner in one: every mini-batch takes 2 seconds, every score 3."""

    def __init__(self) -> None:
        self.now = 0.0
        outer = self

        class Slow(Planted):
            def step(self, state, tasks):
                outer.now += 2 * len(tasks)
                return super().step(state, tasks)

            def score(self, state, task):
                outer.now += 3
                return super().score(state, task)

        self.learner = Slow(noise=0.01)

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("method", ["response", "slopes", "taba", "taba-pooled"])
def test_the_price_is_what_it_takes(method: str) -> None:
    options = {"pool": range(1000)} if method == "taba" else {}
    clock = Ticking()
    asked = price(
        clock.learner, LABELS, PROBLEM, method, 12, hourly=36, folds=1, clock=clock, **options
    )
    before, clock.learner.seen[:] = clock.now, []
    estimate(clock.learner, LABELS, method=method, trainings=12, folds=1, **options)
    assert asked.trainings == len(clock.learner.seen)
    assert asked.seconds == pytest.approx(clock.now - before)
    assert asked.money == pytest.approx(asked.seconds / 100)
    assert asked.share == pytest.approx(asked.money / 200)
    assert Price.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked


def test_asking_takes_a_few_steps_only() -> None:
    clock = Ticking()
    price(clock.learner, LABELS, trainings=1000, folds=1, clock=clock)
    assert clock.now <= 2 * 3 * (TIMED + 5) + 3 * 3


def test_a_stack_is_rehearsed_where_trainings_are_short() -> None:
    class Stacking(Planted):
        def stack(self, runs):
            clock.now += 1.0
            return [train(self, labels, seed) for labels, seed in runs]

    clock = Ticking()
    asked = price(Stacking(), LABELS, trainings=2 * STACKED_TRAININGS, folds=1, clock=clock)
    assert asked.seconds == pytest.approx(2.0)


def test_a_stack_is_timed_by_a_few_of_its_steps_however_long_trainings_are() -> None:
    class Together(Planted):
        def start_many(self, runs):
            assert len(runs) == STACKED_TRAININGS
            return "together"

        def step(self, state, tasks):
            clock.now += 4.0 if state == "together" else 1.0
            return state if state == "together" else super().step(state, tasks)

    clock, learner = Ticking(), Together()
    asked = price(learner, LABELS, trainings=2 * STACKED_TRAININGS, folds=1, clock=clock)
    # a step of a stack takes 4 s, which are half a second for each of its trainings
    assert asked.seconds == pytest.approx(asked.steps / 2, rel=0.1)


def test_a_price_reads_well() -> None:
    told = str(Price("response", 30, 1920, 200.0, hourly=2.0, budget=6300.0))
    assert (
        told == "Method response: 30 trainings, 1920 steps, about 3 minutes on this machine. "
        "At 2 an hour that is 0.11, 0.002 % of the 6300 for labels."
    )
    assert str(Price("response", 1, 1, 0.1)).endswith(
        "1 training, 1 step, about 1 second on this machine."
    )
    assert (
        str(price(Planted(), LABELS, method="neutral"))
        == "Method neutral trains nothing and costs nothing."
    )
    for wrong in (-1, "much"):
        with pytest.raises(InputError, match="hourly"):
            price(Planted(), LABELS, hourly=wrong)
    with pytest.raises(InputError, match="no task has any"):
        price(Planted(), Labels({}))


# --- backtest ---


DEAD = np.array([[8.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.0, 0.0, 0.0]])


def test_a_backtest_finds_the_better_plan() -> None:
    """Slopes without noise know that labels of c teach nothing; equal budget wastes a third on
    them."""
    found = backtest(Planted(slopes=DEAD), LABELS, PROBLEM, ("slopes",), trainings=12, repeats=3)
    assert found.names == ("equal budget", "neutral", "slopes")
    assert found.best == "slopes"
    assert found.lead("slopes")[0] > 0
    assert all(row[2]["c"] == 0 for row in found.counts)
    assert found.have == {"a": 20, "b": 20, "c": 10}
    # a quarter of the labels, so a quarter of the money; D_T by hand, from the level that a quarter
    # reaches
    assert found.budget == "50"
    for name, row in zip(found.names, found.counts[0], strict=True):
        level = 1 - 0.08 * math.log(4)
        gains = [0.08 * math.log1p(row[task] / 20) / level * 100 for task in ("a", "b")]
        assert found.gains[0][found.names.index(name)] == pytest.approx(sum(gains) / 3, rel=1e-6)


def test_a_backtest_spends_at_most_half_of_what_is_there() -> None:
    rich = al.Problem(
        [al.Task(task, cost=2, have=len(LABELS[task])) for task in TASKS], budget=10_000
    )
    found = backtest(Planted(), LABELS, rich, (), repeats=1)
    assert found.budget == "150"  # 150 labels are left to buy at 2 each
    for row in found.counts[0]:
        assert sum(row.values()) == 75


def test_paired_differences_have_standard_errors() -> None:
    rows = ((1.0, 2.0, 4.0), (2.0, 2.0, 4.0), (3.0, 5.0, 8.0))
    bought = tuple(({"a": 1}, {"a": 2}, {"a": 3}) for _ in rows)
    found = Backtest(("equal budget", "neutral", "response"), rows, bought, {"a": 3}, "9")
    assert found.gain("response") == (
        pytest.approx(16 / 3),
        pytest.approx(np.std([4, 4, 8], ddof=1) / math.sqrt(3)),
    )
    assert found.lead("response") == (
        pytest.approx(10 / 3),
        pytest.approx(np.std([3, 2, 5], ddof=1) / math.sqrt(3)),
    )
    assert found.lead("response", "neutral")[0] == pytest.approx(7 / 3)
    assert str(found).splitlines() == [
        "plan            gain in %  over equal budget  over neutral  better",
        "equal budget  2.00 ± 0.58                  -  -1.00 ± 0.58       -",
        "neutral       3.00 ± 1.00       +1.00 ± 0.58             -  2 of 3",
        "response      5.33 ± 1.33       +3.33 ± 0.88  +2.33 ± 0.33  3 of 3",
        "3 repeats; each plans from a 3 and spends 9.",
        "response is clearly better than equal budget.",
    ]
    assert Backtest.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    with pytest.raises(InputError, match="no plan 'taba'"):
        found.gain("taba")
    same = Backtest(found.names, rows, tuple(({"a": 1},) * 3 for _ in rows), {"a": 3}, "9")
    assert str(same).endswith("there are too few labels.")


def test_a_backtest_keeps_labels_out_where_nothing_else_scores() -> None:
    """Folding fails if a training sees what scores it."""
    found = backtest(
        Folding(mute=("a",), noise=0.01), LABELS, PROBLEM, ("response",), trainings=8, repeats=2
    )
    assert found.repeats == 2
    assert sum(found.have.values()) < 50


def test_mistakes_of_a_backtest_all_at_once() -> None:
    other = al.Problem([al.Task("x", cost=1)], budget=10)
    with pytest.raises(InputError) as caught:
        backtest(Planted(), Labels({"a": range(5)}), other, ("respons",), repeats=0)
    for part in (
        "repeats: 0",
        "problem: has the tasks x",
        "labels: no task has 8",
        "did you mean 'response'",
    ):
        assert part in str(caught.value)
