"""Transfer between tasks: what is planted in a simulated learner is found again, and how sure that
is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from helpers.learners import table_learner
from helpers.mistakes import mistakes_of
from helpers.planted_transfer import LABELS, TASKS, Planted, Skills, measure_all, plant, probes_of

from allotment.data.labels import Labels, draw
from allotment.estimates.probes import Probes, join, probe_once, probe_training, time_probe
from allotment.estimates.transfer import Transfer, affinity
from allotment.learners.learner import Measure, Patience, State, probe, train

EVIDENCE_DRAWS, EVIDENCE_PROBES = 16, 20
"""trainings and probes of each in the project's measurements (evidence 1)"""


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


# --- the planted truth is found ---


@pytest.mark.parametrize("estimator", ["paper", "pooled", "tag"])
def test_without_noise_every_estimator_finds_the_truth_row_by_source(estimator: str) -> None:
    truth = np.array([[1, 0.5, -0.3], [0, 1, 0.8], [1.2, -0.6, 1]])
    found = affinity(measure_all(Planted(truth, up={"b": False}), 6), estimator)
    assert found.plain == pytest.approx(truth, abs=1e-9)
    assert found.matrix == pytest.approx(truth, abs=1e-5)
    # Eq. 3: sums of rows
    assert found.informativeness == pytest.approx({"a": 1.2, "b": 1.8, "c": 1.6}, abs=1e-5)
    assert found.called().tolist() == [[0, 1, -1], [0, 0, 1], [1, -1, 0]]


def test_a_metric_that_is_better_when_lower_gives_the_same_transfer() -> None:
    truth = plant(np.random.default_rng(3))
    up, down = (Planted(truth, noise=0.03, up=dict.fromkeys(TASKS, way)) for way in (True, False))
    first, second = (measure_all(learner, 6) for learner in (up, down))
    assert first.metric.alone.mean() < 2.5 < second.metric.alone.mean() + first.metric.alone.mean()
    assert first.gains() == pytest.approx(second.gains(), abs=1e-9)
    assert affinity(first).matrix == pytest.approx(affinity(second).matrix, abs=1e-6)
    assert (affinity(second).called() == affinity(first).called()).all()
    assert affinity(first).called().any()


@dataclass(frozen=True)
class Found:
    """Cells of many campaigns, one behind the other."""

    truth: np.ndarray
    matrix: np.ndarray
    low: np.ndarray
    high: np.ndarray
    called: np.ndarray

    @property
    def error(self) -> float:
        return float(np.sqrt(np.mean((self.matrix - self.truth) ** 2)))

    @property
    def wrong(self) -> float:
        """The share of called cells whose sign is not the true one; a 0 has none, so it is always
        wrong."""
        return float(
            np.mean(np.sign(self.truth[self.called != 0]) != self.called[self.called != 0])
        )


@pytest.fixture(scope="module")
def campaigns() -> dict[str, Found]:
    """25 campaigns of 12 cells, with the noise and as many trainings and probes as in the project's
    measurements."""
    rng = np.random.default_rng(11)
    cells: dict[str, list[tuple[np.ndarray, ...]]] = {"pooled": [], "paper": []}
    negative = []
    for campaign in range(25):
        truth = plant(rng)
        learner = Planted(truth, size=0.005, noise=0.028, wander=0.2)
        probes = measure_all(learner, EVIDENCE_DRAWS, 1000 * campaign)
        assert len(probes) == EVIDENCE_DRAWS * EVIDENCE_PROBES
        negative.append(np.mean(np.diagonal(probes.gains(), axis1=1, axis2=2) < 0))
        for estimator, rows in cells.items():
            found = affinity(probes, estimator)
            assert found.unit == "training"
            parts = (truth, found.matrix, *found.interval(0.9), found.called(0.95))
            rows.append(tuple(off_diagonal(part) for part in parts))
    assert 0.35 < np.mean(negative) < 0.39  # as evidence 1 reports for m = 5
    return {
        key: Found(*map(np.concatenate, zip(*rows, strict=True))) for key, rows in cells.items()
    }


def test_intervals_hold_the_truth_about_as_often_as_they_say(campaigns: dict[str, Found]) -> None:
    found = campaigns["pooled"]
    assert len(found.truth) == 300
    assert 0.85 <= np.mean((found.low <= found.truth) & (found.truth <= found.high)) <= 0.97


def test_called_cells_have_the_right_sign_and_large_ones_are_called(
    campaigns: dict[str, Found],
) -> None:
    found = campaigns["pooled"]
    assert found.wrong <= 0.05
    assert np.mean(found.called[np.abs(found.truth) > 0.3] != 0) >= 0.5


def test_the_papers_estimator_is_far_noisier_on_the_same_probes(
    campaigns: dict[str, Found],
) -> None:
    ours, paper = campaigns["pooled"], campaigns["paper"]
    assert ours.error < 0.25
    assert paper.error > 10 * ours.error
    large = np.abs(ours.truth) > 0.3
    missed = [
        np.mean(np.sign(each.matrix[large]) != np.sign(each.truth[large])) for each in (ours, paper)
    ]
    assert missed[0] < 0.05
    assert missed[1] > 0.2
    # its intervals are honest, and so wide that hardly a cell is told
    assert np.mean(paper.called[large] != 0) < 0.25


def test_ratio_of_sums_against_mean_of_ratios_as_measured_before() -> None:
    """Evidence 1: truth 0.5, 300 probes, a denominator as large as its noise; 5 and 95 % of the
    estimates."""
    rng = np.random.default_rng(4)
    found: dict[str, list[float]] = {"pooled": [], "paper": []}
    for _ in range(400):
        gains = rng.normal([[1, 0.5], [0.5, 1]], 1.0, (300, 2, 2))
        for estimator, values in found.items():
            values.append(affinity(probes_of(gains), estimator).plain[0, 1])
    assert np.quantile(found["pooled"], [0.05, 0.95]) == pytest.approx([0.39, 0.62], abs=0.03)
    assert min(found["pooled"]) > 0
    low, high = np.quantile(found["paper"], [0.05, 0.95])
    assert low < -2
    assert high > 3
    assert 0.2 < np.mean(np.array(found["paper"]) < 0) < 0.4


# --- little or odd evidence ---


def test_denominators_that_are_all_noise_call_nothing_and_leave_the_prior() -> None:
    truth = plant(np.random.default_rng(8))
    probes = measure_all(Planted(truth, size=0.0, noise=0.03), 12)
    found = affinity(probes)
    assert not found.called().any()
    assert np.abs(off_diagonal(found.matrix)).max() < 0.6
    low, high = found.interval(0.9)
    assert off_diagonal(high - low).min() > 1
    # what division alone would have made of it
    assert np.abs(off_diagonal(found.plain)).max() > 1.5


def test_cells_with_more_noise_are_shrunk_more() -> None:
    rng = np.random.default_rng(0)
    gains = rng.normal([[1, 0.9, 0.9], [0, 1, 0.0], [0, 0, 1]], [0.1, 0.1, 4.0], (80, 3, 3))
    found = affinity(probes_of(gains, 8))
    low, high = found.interval(0.9)
    assert found.error[0, 2] > 10 * found.error[0, 1]
    assert (high - low)[0, 2] > 5 * (high - low)[0, 1]
    assert np.ptp(found.matrix[[0, 2], 1]) > 0.97 * np.ptp(found.plain[[0, 2], 1])
    assert np.ptp(found.matrix[[0, 1], 2]) < 0.8 * np.ptp(found.plain[[0, 1], 2])


def test_noise_that_numerator_and_denominator_share_does_no_harm() -> None:
    """All arms are compared with the same one alone: its noise is in both, and here nearly all the
    noise there is."""
    rng = np.random.default_rng(12)
    inside, width = [], []
    for _ in range(40):
        shared = rng.normal(0, 3, (120, 1, 1))
        gains = np.array([[1, 1.0], [1, 1]]) + shared + rng.normal(0, 0.2, (120, 2, 2))
        low, high = affinity(probes_of(gains, 12)).interval(0.9)
        inside.append(low[0, 1] <= 1 <= high[0, 1])
        width.append((high - low)[0, 1])
    assert np.mean(inside) >= 0.8
    assert np.median(width) < 0.15  # noise of the same size but not shared would make it 1.0


def test_one_probe_tells_nothing_of_its_noise() -> None:
    found = affinity(probes_of(np.array([[[1, 5.0], [-3, 1]]])))
    assert np.isinf(off_diagonal(found.error)).all()
    assert not found.called().any()
    assert found.plain.tolist() == [[1, 5], [-3, 1]]
    assert off_diagonal(found.matrix) == pytest.approx([0, 0], abs=1e-6)


def test_the_papers_mean_leaves_out_probes_with_a_denominator_of_zero() -> None:
    gains = np.array(
        [[[1, 2.0], [3, 4]], [[0, 1.0], [7, 2]], [[-2, 1.0], [1, 5]], [[0.5, 0], [4, 0]]]
    )
    assert np.signbit(gains[2, 0, 0])
    found = affinity(probes_of(gains), "paper")
    assert found.plain[1, 0] == pytest.approx((3 / 1 + 1 / -2 + 4 / 0.5) / 3)
    assert found.plain[0, 1] == pytest.approx((2 / 4 + 1 / 2 + 1 / 5) / 3)
    assert found.counts.sum(axis=0).tolist() == [3, 3]
    pooled = affinity(probes_of(gains)).plain
    assert pooled[1, 0] == pytest.approx((3 + 7 + 1 + 4) / (1 + 0 - 2 + 0.5))
    assert pooled[0, 1] == pytest.approx((2 + 1 + 1 + 0) / (4 + 2 + 5 + 0))


def test_what_rounding_leaves_of_a_score_divides_nothing() -> None:
    gains = np.array([[[0.25, 0.5], [0.125, 0.25]]] * 4)
    probes = probes_of(gains)
    joint = probes.metric.joint.copy()
    joint[1, 0, 0] = np.nextafter(probes.metric.alone[1, 0], 2.0)
    assert joint[1, 0, 0] != probes.metric.alone[1, 0]
    found = affinity(replace(probes, metric=replace(probes.metric, joint=joint)), "paper")
    assert found.plain[1, 0] == pytest.approx(0.5)
    assert found.counts.sum(axis=0).tolist() == [3, 4]


def test_the_paper_says_nothing_where_every_denominator_is_zero() -> None:
    gains = np.random.default_rng(1).normal(size=(12, 2, 2))
    gains[:, 1, 1] = 0
    found = affinity(probes_of(gains), "paper")
    low, high = found.interval()
    assert found.plain[0, 1] == 0
    assert (low[0, 1], high[0, 1]) == (-np.inf, np.inf)
    assert found.called()[0, 1] == 0
    assert np.isfinite(found.draws(5, 0)).all()
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_scores_that_are_not_numbers_do_not_count() -> None:
    gains = np.random.default_rng(2).normal([[1, 0.5], [0.2, 1]], 0.1, (40, 2, 2))
    whole = affinity(probes_of(gains[:30]))
    gains[30:, 0, 1] = np.nan
    part = affinity(probes_of(gains))
    assert part.plain[0, 1] == pytest.approx(whole.plain[0, 1])
    assert part.counts.sum(axis=0).tolist() == [40, 30]
    assert np.isfinite(part.matrix).all()


def test_probes_of_one_training_count_as_blocks_and_not_one_by_one() -> None:
    """A training whose noise stays for ten probes: single probes would be four times as sure as
    they may be."""
    rng = np.random.default_rng(9)
    inside = 0
    for _ in range(40):
        noise = np.repeat(rng.normal(size=(10, 2, 2)), 10, axis=0)
        found = affinity(probes_of(np.array([[1, 0.4], [0, 1]]) + 0.5 * noise))
        assert found.unit == "block"
        assert len(found.sums) == 10
        low, high = found.interval(0.9)
        inside += int(low[0, 1] <= 0.4 <= high[0, 1]) + int(low[1, 0] <= 0 <= high[1, 0])
    assert 0.8 <= inside / 80 <= 1


# --- what is done with it ---


def test_draws_are_the_posterior() -> None:
    rng = np.random.default_rng(6)
    found = affinity(measure_all(Planted(plant(rng), noise=0.03), 8))
    drawn = found.draws(20_000, 1)
    assert drawn.shape == (20_000, 4, 4)
    assert (np.diagonal(drawn, axis1=1, axis2=2) == 1).all()
    assert drawn.mean(axis=0) == pytest.approx(found.matrix, abs=0.02)
    low, high = found.interval(0.8)
    assert np.quantile(drawn, 0.1, axis=0) == pytest.approx(low, abs=0.06)
    assert np.quantile(drawn, 0.9, axis=0) == pytest.approx(high, abs=0.06)
    assert (found.draws(7, 3) == found.draws(7, 3)).all()
    assert (found.draws(7, 3) != found.draws(7, 4)).any()


def test_cells_that_share_a_denominator_are_drawn_together() -> None:
    """Two sources with the same true worth: only the denominator is noisy, so both are too high or
    both too low."""
    rng = np.random.default_rng(7)
    gains = np.broadcast_to([[1, 0, 1.0], [0, 1, 1.0], [0, 0, 1]], (60, 3, 3)) + rng.normal(
        0, 0.01, (60, 3, 3)
    )
    gains[:, 2, 2] += rng.normal(0, 2, 60)
    drawn = affinity(probes_of(gains, 12)).draws(4000, 0)
    assert np.corrcoef(drawn[:, 0, 2], drawn[:, 1, 2])[0, 1] > 0.8
    assert abs(np.corrcoef(drawn[:, 0, 2], drawn[:, 0, 1])[0, 1]) < 0.2


@pytest.mark.parametrize("estimator", ["paper", "pooled", "tag"])
def test_transfer_goes_through_json(estimator: str) -> None:
    found = affinity(
        measure_all(Planted(plant(np.random.default_rng(1)), noise=0.02), 3), estimator
    )
    again = Transfer.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again.to_dict() == found.to_dict()
    assert (again.draws(3, 0) == found.draws(3, 0)).all()


def test_probes_go_through_json_with_what_is_not_a_number() -> None:
    probes = measure_all(Planted(plant(np.random.default_rng(1)), up={"c": False}), 2)
    probes.metric.joint[0, 1, 2] = np.nan
    again = Probes.from_dict(json.loads(json.dumps(probes.to_dict(), allow_nan=False)))
    assert again.to_dict() == probes.to_dict()
    assert np.array_equal(again.gains(), probes.gains(), equal_nan=True)
    assert again.higher_is_better == (True, True, False, True)
    assert again.cost == probes.cost


# --- probing ---


@dataclass
class Counting(Planted):
    """Counts gradients and scores."""

    gradients: int = 0
    scores: int = 0

    def step(self, state: Skills, tasks: Sequence[str]) -> Skills:
        self.gradients += len(tasks)
        return super().step(state, tasks)

    def score(self, state: Skills, task: str) -> Measure:
        self.scores += 1
        return super().score(state, task)


def test_the_cost_is_what_was_computed() -> None:
    plain, probed = Counting(np.eye(4)), Counting(np.eye(4))
    train(plain, LABELS, 0)
    probes, _ = probe_training(probed, LABELS, 0, every=20, steps=3)
    cost = probes.cost
    assert probes.at.tolist() == list(range(20, 200, 20))
    assert cost.training == plain.gradients == 4 * 202
    assert cost.probing == probed.gradients - plain.gradients == 9 * 3 * (4 + 8 + 12)
    assert cost.scores == probed.scores == 9 * 20
    assert cost.ratio == pytest.approx(cost.probing / cost.training)


@dataclass
class Pricey(Counting):
    """Says that to score a task is half as much work as a gradient, and shares gradients of a first
    step."""

    def probe_gradients(self, arms: Mapping[str, Sequence[str]], steps: int) -> int:
        return 2 * len(self.tasks) + (steps - 1) * sum(map(len, arms.values()))

    def score_gradients(self, task: str) -> float:
        return 0.5


@pytest.mark.parametrize("learner", [Counting(np.eye(4)), Pricey(np.eye(4))])
@pytest.mark.parametrize("budget", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("steps", [1, 3])
def test_probing_stays_within_its_budget_and_makes_use_of_it(
    learner: Counting, budget: float, steps: int
) -> None:
    probes, _ = probe_training(learner, LABELS, 0, budget=budget, steps=steps)
    cost = probes.cost
    one = cost.probing / len(probes) + cost.scoring / len(probes)
    assert cost.scoring == (20 * 0.5 * len(probes) if isinstance(learner, Pricey) else 0)
    assert cost.training == 4 * 202
    assert cost.ratio <= budget
    # one probe more could not be fitted in at even distances
    assert (202 - steps) // (len(probes) + 1) < one / (budget * 4)
    again, _ = probe_training(
        learner, LABELS, 0, probes=probes.planned[probes.runs[0]], steps=steps
    )
    assert again.at.tolist() == probes.at.tolist()


def test_a_number_of_probes_is_kept_to() -> None:
    for count in (1, 7, 50, 150):
        probes, _ = probe_training(Planted(np.eye(4)), LABELS, 0, probes=count)
        assert len(probes) == count == probes.planned[probes.runs[0]]
        assert np.ptp(np.diff(probes.at)) == 0 if count > 1 else True
    assert len(probe_training(Planted(np.eye(4), length=20), LABELS, 0, probes=500)[0]) == 19


@dataclass
class Slow(Planted):
    """Every step takes two seconds and every score half a second, by a clock of its own."""

    now: float = 0.0

    def step(self, state: Skills, tasks: Sequence[str]) -> Skills:
        self.now += 2
        return super().step(state, tasks)

    def score(self, state: Skills, task: str) -> Measure:
        self.now += 0.5
        return super().score(state, task)


def test_minutes_become_a_number_of_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Slow(np.eye(4))
    monkeypatch.setattr("allotment.estimates.probes.time.perf_counter", lambda: learner.now)
    timing = time_probe(learner, LABELS, steps=3)
    assert (timing.step, timing.probe) == (2, 14 * 3 * 2 + 20 * 0.5)
    probes, _ = probe_training(learner, LABELS, 0, steps=3, minutes=20)
    assert len(probes) == 20 * 60 // 94 == probes.planned[probes.runs[0]]
    assert "minutes: 1 is too short for one probe, which takes 1.6" in mistakes_of(
        probe_training, learner, LABELS, 0, steps=3, minutes=1
    )
    by_number, _ = probe_training(Planted(np.eye(4)), LABELS, 0, steps=3, probes=12)
    assert by_number.to_dict() == probes.to_dict()


def test_a_caller_who_has_seen_enough_stops_the_probing_but_not_the_training() -> None:
    learner = Counting(np.eye(4))
    seen: list[int] = []

    def enough(probes: Probes) -> bool:
        seen.append(len(probes))
        return float(affinity(probes).error.max()) < np.inf and len(probes) == 4

    probes, state = probe_training(learner, LABELS, 0, every=10, enough=enough)
    assert seen == [1, 2, 3, 4]
    assert probes.at.tolist() == [10, 20, 30, 40]
    assert state.skill.tolist() == train(learner, LABELS, 0).skill.tolist()
    assert probes.cost.training == 4 * 202
    assert probes.planned == {probes.runs[0]: 20}


class Quick(Planted):
    """Has a faster way of its own to follow all arms of a probe."""

    asked: int = 0

    def probe(
        self, state: Skills, arms: Mapping[str, Sequence[str]], steps: int
    ) -> dict[str, Skills]:
        self.asked += 1
        return probe(Planted(self.truth), state, arms, steps)


def test_a_learners_own_probe_is_used_for_all_arms_at_once() -> None:
    truth = plant(np.random.default_rng(5))
    learner = Quick(truth, noise=0.01)
    found, _ = probe_training(learner, LABELS, 0, every=10, steps=5)
    plain, _ = probe_training(Planted(truth, noise=0.01), LABELS, 0, every=10, steps=5)
    assert learner.asked == len(found) == 19
    assert found.to_dict() == plain.to_dict()


def weights_of(state: State) -> list[bytes]:
    network = [part.numpy().tobytes() for part in state.network.state_dict().values()]
    momentum = state.optimiser.state_dict()["state"]
    return network + [each["momentum_buffer"].numpy().tobytes() for each in momentum.values()]


def test_probing_leaves_a_real_training_as_it_would_be_to_the_byte() -> None:
    learner = table_learner(epochs=6)
    labels = draw(learner.data, learner.split.train, {"yes": 60, "many": 50, "number": 70}, 0)
    probes, state = probe_training(learner, labels, 3, every=10, steps=2)
    assert len(probes) == 2
    assert weights_of(state) == weights_of(train(learner, labels, 3))
    assert np.isfinite(affinity(probes).matrix).all()


def test_every_score_of_a_probe_is_that_of_its_arm_trained_by_hand() -> None:
    learner = table_learner(epochs=6)
    labels = draw(learner.data, learner.split.train, {"yes": 60, "many": 50, "number": 70}, 0)
    state = learner.start(labels, 0)
    for _ in range(5):
        state = learner.step(state, learner.tasks)
    found = probe_once(learner, state, learner.tasks, steps=3)

    def by_hand(target: str, *tasks: str) -> Measure:
        fork = learner.fork(state)
        for _ in range(3):
            fork = learner.step(fork, tasks)
        return learner.score(fork, target)

    for j, target in enumerate(learner.tasks):
        alone, double = by_hand(target, target), by_hand(target, target, target)
        # arms that share their first gradients are rounded otherwise
        assert found.metric.alone[0, j] == pytest.approx(alone.metric, abs=1e-3)
        assert found.loss.alone[0, j] == pytest.approx(alone.loss, rel=1e-4)
        assert found.metric.double[0, j] == pytest.approx(double.metric, abs=1e-3)
        assert found.loss.double[0, j] == pytest.approx(double.loss, rel=1e-4)
        for i, source in enumerate(learner.tasks):
            if i != j:
                beside = by_hand(target, target, source)
                assert found.metric.joint[0, i, j] == pytest.approx(beside.metric, abs=1e-3)
                assert found.loss.joint[0, i, j] == pytest.approx(beside.loss, rel=1e-4)


def test_tasks_without_labels_are_left_out() -> None:
    probes, _ = probe_training(Planted(np.eye(4)), Labels({"a": [1], "c": [2], "d": []}), 0)
    assert probes.tasks == ("a", "c")
    assert affinity(probes).matrix.shape == (2, 2)


# --- mistakes ---


def test_mistakes_in_what_to_probe_are_named_together() -> None:
    learner = Planted(np.eye(4))
    text = mistakes_of(probe_training, learner, Labels({"a": [1], "e": [2]}), 0, every=0, steps=0)
    assert "every: 0 is below 1" in text
    assert "steps: 0 is below 1" in text
    assert "task 'e': is not one of the learner's" in text
    assert "only 'a' has labels" in text
    assert "no task has labels" in mistakes_of(probe_training, learner, Labels({}), 0)
    short = Planted(np.eye(4), length=12)
    text = mistakes_of(probe_training, short, LABELS, 0, every=10, steps=5)
    assert "every: the training takes 12 steps, the first probe ends at 15; lower `every`" in text
    assert "budget: the training takes 12 steps, the first probe ends at 25" in mistakes_of(
        probe_training, short, LABELS, 0, budget=0.25
    )
    assert "steps: the training takes 12 steps" in mistakes_of(
        probe_training, short, LABELS, 0, steps=12
    )
    early = Patience(every=1, looks=1, least=0.9)
    assert "ended after 2 steps" in mistakes_of(probe_training, learner, LABELS, 0, patience=early)


def test_mistakes_in_how_many_probes_are_named_together() -> None:
    learner = Planted(np.eye(4))
    text = mistakes_of(
        probe_training, learner, LABELS, 0, probes=0, minutes=-1.0, budget=0.0, scored=0
    )
    assert "probes: 0 is below 1" in text
    assert "minutes: -1.0 is not a number above 0" in text
    assert "budget: 0.0 is not a number above 0" in text
    assert "scored: 0 is below 1" in text
    assert "probes, minutes: each says how many probes there are" in text
    assert "has no `with_validation`" in mistakes_of(probe_training, learner, LABELS, 0, scored=3)


def test_only_like_probes_are_joined_and_none_twice() -> None:
    learner = Planted(np.eye(4))
    first, _ = probe_training(learner, LABELS, 0, every=10, steps=5)
    other, _ = probe_training(learner, LABELS.only("a", "b"), 1, steps=2)
    text = mistakes_of(join, [first, other])
    assert "tasks: ('a', 'b', 'c', 'd') and ('a', 'b') differ" in text
    assert "ahead: 5 and 2 differ" in text
    assert "step 10 of training" in mistakes_of(join, [first, first])
    assert "there twice" in mistakes_of(join, [first, first])
    assert "none are given" in mistakes_of(join, [])
    same_seed, _ = probe_training(learner, LABELS.with_task("a", range(5)), 0, steps=5)
    assert len(set(join([first, same_seed]).runs)) == 2  # other labels are another training


def test_mistakes_in_what_to_estimate_are_named() -> None:
    probes, _ = probe_training(Planted(np.eye(4)), LABELS, 0, probes=19)
    assert "did you mean 'pooled'" in mistakes_of(affinity, probes, "poled")
    assert "unknown 'losses'; did you mean 'loss'" in mistakes_of(affinity, probes, score="losses")
    found = affinity(probes)
    assert "level: 95 is not between 0 and 1" in mistakes_of(found.interval, 95)
    assert "count: 0 is below 1" in mistakes_of(found.draws, 0, 1)
    plain = probes.to_dict()
    assert "loss: is missing" in mistakes_of(
        Probes.from_dict, {key: plain[key] for key in plain if key != "loss"}
    )
    assert "sums: is missing" in mistakes_of(Transfer.from_dict, {"tasks": ["a"]})
    wrong = replace(probes.metric, alone=probes.metric.alone[:, :2])
    assert "metric.alone: has the shape (19, 2)" in mistakes_of(replace, probes, metric=wrong)
    ragged = plain | {"metric": {"alone": [[1], [2, 3]], "joint": []}}
    assert "equal length" in mistakes_of(Probes.from_dict, ragged)
