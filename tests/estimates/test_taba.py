"""The paper's Algorithm 1 as estimates: its published plans, which way transfer points, and what a
flat curve does."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from helpers.planted_transfer import TASKS, Planted, Skills, known, plant

import allotment as al
from allotment.advice.price import price
from allotment.data.labels import Labels
from allotment.errors import InputError
from allotment.estimates import stopping
from allotment.estimates.curves import Fit, Points, fit_exact, fit_paper
from allotment.estimates.estimates import Estimates
from allotment.estimates.outline import (
    MOST_REPETITIONS,
    Outline,
    Part,
    join_curves,
    measure_curve,
    measure_probes,
    settle,
    tell_probing,
    weigh,
)
from allotment.estimates.probes import Timing, join, make_arms
from allotment.estimates.reduction import Unscored
from allotment.estimates.taba import combine, find_known
from allotment.estimates.transfer import Transfer
from allotment.estimates.verdict import Verdict, judge
from allotment.learners.learner import Measure

SIZES = (0, 100, 200, 400, 800, 1600, 2400)


def curve(b: float, first: float = 1e-4, have: int = 300, source: str = "") -> Points:
    more = np.array(SIZES, dtype=float)
    rows = [0.6 + first * (1 - b**more) / (1 - b)] * 3
    return Points(SIZES, tuple(map(tuple, rows)), True, have=have, source=source)


def flat(have: int = 300) -> Points:
    rng = np.random.default_rng(1)
    return Points(SIZES, rng.normal(0.6, 0.002, size=(8, len(SIZES))), True, have=have)


PUBLISHED = [
    ((1, 3), 1_200, (855, 115)),
    ((1, 20), 6_300, (2920, 169)),
    ((1, 30), 9_300, (3390, 197)),
]


@pytest.mark.parametrize(("costs", "budget", "plan"), PUBLISHED)
def test_published_figures_give_published_plans(
    costs: tuple[int, int], budget: int, plan: tuple[int, int]
) -> None:
    """I = 1.13 and 2.03 as row sums; b = 0.999 and 0.997 as points on their curves."""
    transfer = known([[1.0, 0.13], [1.03, 1.0]], noise=0.05)
    transfer = Transfer(
        transfer.tasks,
        "paper",
        "metric",
        "training",
        transfer.sums - transfer.sums.mean(axis=0) + [[1, 0.13], [1.03, 1]],
        transfer.counts,
    )
    points = {"cls": curve(0.999), "seg": curve(0.997)}
    found = combine(transfer, points, {"cls": 300, "seg": 300}, letter=True, fit=fit_exact)
    problem = al.Problem(
        [al.Task(name, cost=cost, have=300) for name, cost in zip(points, costs, strict=True)],
        budget,
    )
    best = al.allocate(problem, found)
    assert tuple(best.counts.values()) == pytest.approx(plan, rel=0.01)
    gains = found.mean_gains()
    assert gains["cls"].informativeness == pytest.approx(1.13, rel=1e-9)
    assert gains["seg"].informativeness == pytest.approx(2.03, rel=1e-9)
    assert best.outlook is not None
    assert best.outlook.low < best.outlook.mean < best.outlook.high


def test_the_row_of_transfer_is_whose_label_it_is() -> None:
    """A label of cls is worth 0.8 labels to seg, one of seg nothing to cls: so it is cls that gains
    in worth."""
    found = combine(known([[1, 0.8], [0, 1]]), {}, {"cls": 100, "seg": 100}, draws=4)
    assert found.worths[0] == pytest.approx(np.array([[1, 0], [0.8, 1]]))
    only_cls = found.gains_of({"cls": 50, "seg": 0})[0]
    assert only_cls[1] == pytest.approx(0.8 * only_cls[0])
    assert found.gains_of({"cls": 0, "seg": 50})[0, 0] == 0


def test_letter_puts_the_same_total_on_the_diagonal() -> None:
    transfer = known([[1, 0.8, -0.1], [0, 1, 0.3], [0.2, 0.2, 1]], noise=0.02)
    have = dict.fromkeys(("cls", "seg", "kp"), 200)
    letter, usual = (
        combine(transfer, {}, have, letter=flag, rate=0.99, draws=101) for flag in (True, False)
    )
    some = {"cls": 40, "seg": 0, "kp": 300}
    assert letter.gains_of(some).sum(axis=1).mean() == pytest.approx(
        usual.gains_of(some).sum(axis=1).mean(), rel=0.02
    )
    assert np.count_nonzero(letter.worths.sum(axis=0)) == 3
    for task, total in transfer.informativeness.items():
        assert letter.mean_gains()[task].informativeness == pytest.approx(total, rel=1e-9)


def test_every_estimator_becomes_estimates() -> None:
    for estimator in ("paper", "pooled", "tag"):
        found = combine(
            known([[1, 0.5], [0.2, 1]], estimator, noise=0.05), {}, {"cls": 100, "seg": 100}
        )
        assert found.about["estimator"] == estimator
        assert found.worths.mean(axis=0)[1, 0] == pytest.approx(0.5, abs=0.1)
        again = Estimates.from_dict(json.loads(json.dumps(found.to_dict())))
        assert (again.law, again.about) == ("geometric", found.about)


def test_a_curve_without_signal_borrows_the_mean_reach_and_says_so() -> None:
    points = {"cls": curve(0.999), "seg": flat(), "kp": curve(0.99)}
    transfer, have = known(np.eye(3).tolist()), dict.fromkeys(points, 300)
    found = combine(transfer, points, have)
    assert found.about["fallbacks"] == ["seg"]
    assert found.about["verdicts"] == {"cls": "sound", "seg": "unusable", "kp": "sound"}
    reach = math.sqrt(-1 / math.log(0.999) * -1 / math.log(0.99))
    assert found.about["rates"]["seg"] == pytest.approx(math.exp(-1 / reach), rel=1e-4)
    stubborn = combine(transfer, points, have, fallback=False)
    assert stubborn.about["fallbacks"] == []
    assert stubborn.about["rates"]["seg"] != pytest.approx(found.about["rates"]["seg"], rel=1e-4)


def test_no_curve_at_all() -> None:
    found = combine(known([[1, 0], [0, 1]]), {}, {"cls": 300, "seg": 3000}, draws=2)
    assert found.about["fallbacks"] == ["cls", "seg"]
    rates = found.about["rates"]
    assert math.log(rates["cls"]) / math.log(rates["seg"]) == pytest.approx(
        10
    )  # ten times the labels, ten times the reach


def test_own_first_gain_tells_a_steep_task_from_a_saturated_one() -> None:
    """The next label's gain in % of the score, against a difference of the planted curve itself."""
    sizes = (75, 150, 300)

    def score(b: float, first: float, count: float) -> float:
        return 0.5 + first * (1 - b**count) / (1 - b)

    planted = {"cls": (0.99, 0.004), "seg": (0.995, 0.0004)}
    points = {
        task: Points(sizes, [[score(*law, size) for size in sizes]] * 4, True, source="subsets")
        for task, law in planted.items()
    }
    found = combine(known([[1, 0.5], [0, 1]]), points, {"cls": 300, "seg": 300}, own_gain=True)
    for at, (task, law) in enumerate(planted.items()):
        next_label = (score(*law, 301) - score(*law, 300)) / score(*law, 300) * 100
        assert found.worths[:, at, at].mean() == pytest.approx(next_label, rel=0.02), task
    assert found.worths.mean(axis=0)[1, 0] == pytest.approx(
        0.5 * found.worths.mean(axis=0)[1, 1], rel=1e-6
    )
    assert found.about["unit"] == "%"
    losses = {task: Points(sizes, -np.array(each.scores), False) for task, each in points.items()}
    same = combine(known([[1, 0.5], [0, 1]]), losses, {"cls": 300, "seg": 300}, own_gain=True)
    assert same.worths.mean(axis=0) == pytest.approx(found.worths.mean(axis=0), rel=1e-6)


def test_a_task_without_labels_borrows_everything() -> None:
    points = {"cls": curve(0.99, source="subsets")}
    found = combine(known([[1.0]]), points, {"cls": 300, "seg": 0}, own_gain=True, draws=5)
    assert found.worths[:, 1, 1].tolist() == pytest.approx(found.worths[:, 0, 0].tolist())
    assert found.worths[:, 0, 1].tolist() == [0] * 5


def test_all_mistakes_at_once() -> None:
    points = {"clss": curve(0.99, source="hard pseudo-labels")}
    with pytest.raises(InputError) as caught:
        combine(known([[1, 0], [0, 1]]), points, {"cls": 300}, own_gain=True, draws=0)
    said = str(caught.value)
    for part in (
        "draws: 0",
        "transfer: task 'seg'",
        "did you mean 'cls'",
        "pseudo-labels do not show",
    ):
        assert part in said
    with pytest.raises(InputError, match="no task has a curve"):
        combine(known([[1.0]]), {}, {"cls": 300}, own_gain=True)


# --- fits and verdicts as JSON ---


def through_json(value: object) -> object:
    return json.loads(json.dumps(value, allow_nan=False))


def test_fits_and_verdicts_go_to_json_and_back() -> None:
    for points in (curve(0.99), flat(), Points((0, 10, 20), [[0.0, 0.1, 0.2]], True)):
        for law in ("geometric", "power"):
            fit = fit_exact(points, law=law, draws=20)
            again = Fit.from_dict(through_json(fit.to_dict()))
            assert repr(again) == repr(fit)  # a residual may be no number, which equals nothing
            assert again.curve(500) == fit.curve(500)
        verdict = judge(points)
        assert repr(Verdict.from_dict(through_json(verdict.to_dict()))) == repr(verdict)
    endless = judge(Points((0, 10, 20), [[0.0, 0.1, 0.2]], True))
    # so these have been through JSON, too
    assert (endless.rise_low, endless.rise_high) == (-math.inf, math.inf)


def test_mistakes_in_json_are_named() -> None:
    plain = fit_exact(curve(0.99), draws=2).to_dict()
    with pytest.raises(InputError, match="did you mean 'shape'") as caught:
        Fit.from_dict({**{key: plain[key] for key in plain if key != "shape"}, "shap": 0.9})
    assert "shape: is missing" in str(caught.value)
    with pytest.raises(InputError, match="a verdict: not a table"):
        Verdict.from_dict([1, 2])
    with pytest.raises(InputError, match=r"draws: .* pairs"):
        Fit.from_dict(plain | {"draws": [1.0, 2.0]})


# --- what is run is what was priced ---


class Counting:
    """A learner that counts mini-batches and whose scores rise with labels and steps."""

    tasks = ("a", "b", "c")

    def __init__(self, steps: int | None = None):
        self.mini_batches = self.started = 0
        self.fixed = steps

    def steps(self, labels: Labels) -> int:
        return self.fixed or max(len(labels[task]) for task in self.tasks)

    def start(self, labels: Labels, seed: int) -> list[object]:
        self.started += 1
        return [labels, seed, 0]

    def step(self, state: list[object], tasks: Sequence[str]) -> list[object]:
        self.mini_batches += len(tasks)
        return [state[0], state[1], int(state[2]) + 1]  # type: ignore[call-overload]

    def fork(self, state: list[object]) -> list[object]:
        return list(state)

    def score(self, state: list[object], task: str) -> Measure:
        labels, seed, done = state
        rng = np.random.default_rng([abs(hash((seed, done))) % 2**32, self.tasks.index(task)])
        value = 0.5 + 0.05 * math.log1p(len(labels[task])) + 0.001 * rng.normal()  # type: ignore[index]
        return Measure(value, 1 - value, True)

    def predict(self, state: object, task: str, instances: np.ndarray) -> np.ndarray:
        return np.tile([0.6, 0.4], (len(instances), 1))


LABELS = Labels({"a": range(64), "b": range(64), "c": range(32)})


@pytest.mark.parametrize("steps", [None, 80])
@pytest.mark.parametrize("pool", [None, np.arange(400)])
@pytest.mark.parametrize("trainings", [3, 12, 40])
def test_what_is_run_is_what_was_priced(
    steps: int | None, pool: np.ndarray | None, trainings: int
) -> None:
    learner = Counting(steps)
    outline = settle(learner, LABELS, trainings, pool=pool)
    price = weigh(learner, LABELS, outline, pool)
    parts, told, curves, probes = [(learner, LABELS)], [], [], []
    for piece in outline.pieces:
        before = learner.started
        if piece.kind == "curve":
            curves.append(
                measure_curve(
                    piece, parts, outline, 0, lambda done, total: told.append((done, total)), pool
                )
            )
            assert told[-1] == (piece.trainings, piece.trainings)
        else:
            probes.append(measure_probes(piece, parts, outline, 0))
        assert learner.started - before == piece.trainings
    assert (learner.started, learner.mini_batches) == (price.trainings, price.steps)
    assert sum(piece.trainings for piece in outline.pieces) == price.trainings
    assert {each.task for each in curves} == set(LABELS)
    assert probes[0].tasks == learner.tasks
    assert len(join(probes)) == tell_probing(join(probes), parts, outline)["probes_allowed"]
    assert {each.repetitions for each in curves} == {outline.repetitions}


@pytest.mark.parametrize("pool", [None, np.arange(400)])
def test_so_many_trainings_are_what_they_would_take(pool: np.ndarray | None) -> None:
    learner = Counting()
    for trainings in (20, 40, 100):
        outline = settle(learner, LABELS, trainings, pool=pool)
        one = learner.steps(LABELS) * len(learner.tasks)
        worth = weigh(learner, LABELS, outline, pool).steps / one
        # less than one is not possible
        assert worth <= trainings * 1.05 or outline.repetitions == 1
        assert worth >= trainings * 0.6 or outline.repetitions == MOST_REPETITIONS


def test_given_numbers_stay_as_they_are() -> None:
    outline = settle(
        Counting(),
        LABELS,
        5,
        every=7,
        ahead=2,
        runs=4,
        sizes=(5, 10, 20),
        repetitions=3,
        pool=np.arange(300),
        ensemble=2,
    )
    assert (outline.every, outline.ahead, outline.runs, outline.repetitions, outline.ensemble) == (
        7,
        2,
        4,
        3,
        2,
    )
    assert outline.sizes == dict.fromkeys(LABELS, (5, 10, 20))


def test_a_task_with_hardly_a_label_has_no_curve() -> None:
    outline = settle(Counting(), Labels({"a": range(64), "b": range(2), "c": range(32)}), 10)
    assert set(outline.sizes) == {"a", "c"}


def curves_of(parts: list[Part], outline: Outline) -> dict[str, Points]:
    def found() -> Iterator[tuple[str, Points | Unscored]]:
        for piece in outline.pieces:
            if piece.kind == "curve":
                try:
                    yield piece.task, measure_curve(piece, parts, outline, 0)
                except Unscored as error:
                    yield piece.task, error

    return join_curves(found())


def test_parts_take_turns() -> None:
    learners = [Counting(), Counting()]
    parts = [(learner, LABELS) for learner in learners]
    outline = settle(learners[0], LABELS, 10, runs=3, repetitions=3, sizes=(8, 16, 32), parts=2)
    for piece in outline.pieces:
        if piece.kind == "probes":
            measure_probes(piece, parts, outline, 0)
    assert [learner.started for learner in learners] == [2, 1]
    assert curves_of(parts, outline)["a"].repetitions == 3
    assert [learner.started for learner in learners] == [2 + 18, 1 + 9]


class Blind(Counting):
    """Its validation labels cannot score some tasks."""

    def __init__(self, *blind: str):
        super().__init__()
        self.blind = blind

    def score(self, state: list[object], task: str) -> Measure:
        found = super().score(state, task)
        return replace(found, metric=math.nan) if task in self.blind else found


def test_a_fold_that_cannot_score_a_task_is_left_out_of_its_curve() -> None:
    outline = settle(Counting(), LABELS, 10, runs=2, repetitions=4, sizes=(8, 16, 32), parts=2)

    def measure(first: Blind, second: Blind) -> dict[str, int]:
        parts = [(first, LABELS), (second, LABELS)]
        return {task: points.repetitions for task, points in curves_of(parts, outline).items()}

    assert measure(Blind(), Blind("b")) == {"a": 4, "b": 2, "c": 4}
    assert measure(Blind("b"), Blind("b")) == {"a": 4, "c": 4}
    with pytest.raises(InputError, match="validation labels of every class"):
        measure(Blind(*"abc"), Blind(*"abc"))


def test_the_descent_of_the_paper_and_the_exact_fit_agree() -> None:
    have = {"cls": 300, "seg": 300}
    points = {"cls": curve(0.999), "seg": curve(0.997)}
    one, other = (
        combine(known([[1, 0], [0, 1]]), points, have, letter=True, fit=fit)
        for fit in (fit_paper, fit_exact)
    )
    for task in have:
        ratio = math.log(one.about["rates"][task]) / math.log(other.about["rates"][task])
        assert ratio == pytest.approx(1, abs=0.02)


# --- when probing stops ---


@dataclass
class Learned(Skills):
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class Taught(Planted):
    """A learner with planted transfer whose scores also rise with its labels; it counts its
    steps."""

    rise: Sequence[float] = (0.3, 0.3, 0.3, 0.3)
    """of each task, what an e-fold of labels adds to its score"""
    stepped: list[int] = field(default_factory=list)

    def start(self, labels: Labels, seed: int) -> Learned:
        return Learned(**vars(super().start(labels, seed)), counts=labels.counts)

    def step(self, state: Skills, tasks: Sequence[str]) -> Skills:
        self.stepped.append(len(tasks))
        return super().step(state, tasks)

    def score(self, state: Learned, task: str) -> Measure:  # type: ignore[override]
        found = super().score(state, task)
        more = self.rise[TASKS.index(task)] * math.log(max(state.counts.get(task, 0), 1))
        return replace(found, metric=found.metric + more)

    def with_validation(self, instances: np.ndarray | Labels) -> Taught:
        return replace(self)


FOUR = Labels({task: range(64) for task in TASKS})
TRUTH = plant(np.random.default_rng(0))
SMALL: dict[str, Any] = {"trainings": 10, "runs": 8, "repetitions": 2, "sizes": (8, 24, 64)}


def problem_at(*costs: int, **more: Any) -> al.Problem:
    return al.Problem(
        [al.Task(task, cost, have=64) for task, cost in zip(TASKS, costs, strict=True)], 400, **more
    )


def overwhelming(noise: float = 0.005) -> Taught:
    """Labels of a rise ten times as steeply as those of the others, which cost twenty times as
    much."""
    return Taught(TRUTH, noise=noise, rise=(3, 0.3, 0.3, 0.3))


OVERWHELMING = problem_at(1, 20, 20, 20)


@pytest.mark.parametrize("method", ["taba-mended", "taba-pooled"])
def test_probing_stops_early_where_one_task_overwhelms(method: str) -> None:
    options = dict(SMALL)
    if method == "taba-mended":
        options |= {"pool": range(64, 200), "sizes": (8, 24, 96)}
    told: list[tuple[int, int, str]] = []
    learner = overwhelming(0.002)
    found = al.estimate(
        learner,
        FOUR,
        method=method,
        problem=OVERWHELMING,
        progress=lambda *one: told.append(one),
        **options,
    )
    whole = al.estimate(overwhelming(0.002), FOUR, method=method, **options)
    probing, all_of_it = found.about["probing"], whole.about["probing"]
    assert 12 <= probing["probes"] < probing["probes_allowed"] == all_of_it["probes"]
    assert probing["trainings"] < probing["trainings_allowed"] == 8
    assert "plateau" in probing["stopped"]
    # progress never turns back, and its end is the end
    done, totals = [one[0] for one in told], [one[1] for one in told]
    assert done == list(range(1, found.about["trainings"] + 1))
    assert totals[:-1] == [whole.about["trainings"]] * (len(told) - 1)
    assert done[-1] == totals[-1] == whole.about["trainings"] - 8 + probing["trainings"]
    # the plan that probing to the end leads to is hardly better, by what is known then
    gains = whole.gains_for(OVERWHELMING)
    best, early = al.allocate(OVERWHELMING, whole).value, al.allocate(OVERWHELMING, found).counts
    assert al.score(OVERWHELMING, gains, early).value >= 0.98 * best


@pytest.mark.parametrize("seed", [0, 3])
def test_probing_goes_on_to_its_end_where_cells_are_noise(seed: int) -> None:
    learner = Taught(TRUTH, size=0.001, noise=0.03)
    probing = al.estimate(
        learner,
        FOUR,
        seed,
        method="taba-pooled",
        problem=problem_at(1, 3, 3, 2),
        **SMALL | {"runs": 5},
    ).about["probing"]
    assert probing == {
        "trainings": 5, "trainings_allowed": 5, "probes": 25, "probes_allowed": 25, "every": 34,
        "stopped": "all that was allowed is done",
    }  # fmt: skip


def test_without_a_problem_nothing_stops_early() -> None:
    probing = al.estimate(overwhelming(), FOUR, method="taba-pooled", **SMALL).about["probing"]
    assert probing["trainings"] == probing["trainings_allowed"] == 8


def test_a_rule_that_depends_on_measured_numbers_gives_the_same_bytes_again() -> None:
    one, other = (
        json.dumps(
            al.estimate(
                overwhelming(), FOUR, 5, method="taba-pooled", problem=OVERWHELMING, **SMALL
            ).to_dict()
        )
        for _ in range(2)
    )
    assert one == other
    assert json.loads(one)["about"]["probing"]["trainings"] < 8


def test_what_stops_early_is_the_beginning_of_what_does_not() -> None:
    stopped = al.estimate(overwhelming(), FOUR, method="taba-pooled", problem=OVERWHELMING, **SMALL)
    count = stopped.about["probing"]["trainings"]
    by_hand = al.estimate(overwhelming(), FOUR, method="taba-pooled", **SMALL | {"runs": count})
    assert (stopped.worths.tolist(), stopped.shapes.tolist()) == (
        by_hand.worths.tolist(),
        by_hand.shapes.tolist(),
    )


def test_what_the_rule_knows_is_the_middle_of_what_combine_draws() -> None:
    points = {"cls": curve(0.999, source="subsets"), "seg": curve(0.99, 4e-4), "kp": flat()}
    transfer, have = known(np.eye(3).tolist()), dict.fromkeys(points, 300)
    for options in ({"own_gain": True}, {"letter": True}, {"fallback": False}):
        middle, found = (
            find_known(points, have, **options),
            combine(transfer, points, have, **options),
        )
        assert middle.reductions == pytest.approx(found.about["rates"])
        assert middle.letter == found.about["letter"]
        first = middle.first or dict.fromkeys(points, 1.0)
        own = np.diagonal(found.worths.mean(axis=0))
        assert [first["cls"], first["seg"]] == pytest.approx(own[:2], rel=0.05)


# --- a budget for probing ---


@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("steps", [250, 1000, 2000, 5000])
def test_probing_takes_at_most_the_steps_that_are_allowed(steps: int, folds: int) -> None:
    learner = Taught(TRUTH, noise=0.01)
    options = {"trainings": 100, "repetitions": 3, "sizes": (4, 16, 32), "folds": folds}
    found = al.estimate(learner, FOUR, method="taba-pooled", probing={"steps": steps}, **options)
    probing, curves = found.about["probing"], 4 * 3 * 3
    taken = len(learner.stepped) - curves * learner.length
    look = len(make_arms(TASKS))
    assert taken == probing["trainings"] * learner.length + probing["probes"] * look <= steps
    assert probing["limit"] == {"steps": steps}
    more = (
        learner.length + probing["probes"] // probing["trainings"] * look
        if probing["every"] == 10
        else look
    )
    # no room is left for another training or, where they are further apart, another probe
    assert taken + more > steps
    assert (
        price(learner, FOUR, method="taba-pooled", probing={"steps": steps}, **options).trainings
        == (found.about["trainings"])
    )


@pytest.mark.parametrize(
    ("minutes", "runs", "every"), [(2.5, 1, 83), (6, 1, 16), (9, 1, 10), (30, 3, 10)]
)
def test_minutes_become_a_number_of_probes_before_the_start(
    minutes: float, runs: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of half a second, a probe of 20: a training of 202 steps takes 101 and, with all its
    20 probes, 501."""
    asked: list[int] = []

    def time_probe(learner: object, labels: Labels, seed: int, ahead: int) -> Timing:
        asked.append(ahead)
        return Timing(step=0.5, probe=20.0)

    monkeypatch.setattr(stopping, "time_probe", time_probe)
    options = {key: value for key, value in SMALL.items() if key != "runs"}
    found = al.estimate(
        overwhelming(), FOUR, method="taba-pooled", probing={"minutes": minutes}, **options
    )
    probing = found.about["probing"]
    assert (probing["trainings"], probing["every"], len(asked)) == (runs, every, 1)
    assert probing["trainings"] * 101 + probing["probes"] * 20 <= minutes * 60
    monkeypatch.undo()
    by_hand = al.estimate(
        overwhelming(), FOUR, method="taba-pooled", every=every, **options | {"runs": runs}
    )
    assert by_hand.worths.tolist() == found.worths.tolist()


def test_a_real_clock_allows_something_too() -> None:
    probing = al.estimate(
        overwhelming(),
        FOUR,
        method="taba-pooled",
        probing={"minutes": 5},
        runs=2,
        trainings=4,
        repetitions=1,
    ).about["probing"]
    assert probing["trainings"] == 2
    assert probing["limit"] == {"minutes": 5}


def mistakes_of(**options: Any) -> str:
    with pytest.raises(InputError) as caught:
        al.estimate(overwhelming(), FOUR, **{"method": "taba-pooled"} | options)
    return str(caught.value)


def test_mistakes_about_probing_are_named_before_anything_is_trained() -> None:
    learner = overwhelming()
    other = al.Problem([al.Task(task, 1) for task in ("a", "b", "c", "e")], 9)
    with pytest.raises(InputError) as caught:
        al.estimate(learner, FOUR, method="taba-pooled", probing={"step": 3}, problem=other)
    said = str(caught.value)
    for part in (
        "no limit 'step'; did you mean 'steps'",
        "task 'd': the problem does not",
        "task 'e': the learner",
    ):
        assert part in said
    assert "is not one limit" in mistakes_of(probing={"steps": 100, "minutes": 3})
    assert "is not one limit" in mistakes_of(probing=100)
    for wrong in (0, -1, math.nan, math.inf, True, "many"):
        assert "is not a number above 0" in mistakes_of(probing={"steps": wrong})
    assert "'response' probes nothing; these do: taba-mended, taba-pooled" in mistakes_of(
        method="response", probing={"steps": 100}
    )
    assert "is not a Problem" in mistakes_of(problem=400)
    assert "probing: steps: 1 training with 1 probe each would take 216 of 100" in mistakes_of(
        probing={"steps": 100}
    )
    assert "2 trainings with 20 probes each would take 964 of 900" in mistakes_of(
        probing={"steps": 900}, runs=2, every=10
    )
    assert "every: a training takes 202 steps, its first probe ends at 301" in mistakes_of(
        every=300
    )
    for key in ("every", "ahead", "runs"):
        assert f"{key}: 0 is not a whole number of 1 or more" in mistakes_of(
            **{"every": 0, "ahead": 0, "runs": 0}
        )
    assert "estimator: unknown 'poled'; did you mean 'pooled'" in mistakes_of(estimator="poled")
    assert "only 'a' has labels" in mistakes_of_labels(Labels({"a": range(9)}))
    assert not learner.stepped


def mistakes_of_labels(labels: Labels) -> str:
    learner = overwhelming()
    with pytest.raises(InputError) as caught:
        al.estimate(learner, labels, method="taba-pooled", folds=1)
    assert not learner.stepped
    return str(caught.value)


def test_a_problem_is_no_matter_to_methods_that_do_not_probe() -> None:
    one, other = (
        al.estimate(overwhelming(), FOUR, trainings=4, problem=problem).worths
        for problem in (None, OVERWHELMING)
    )
    assert one.tolist() == other.tolist()
