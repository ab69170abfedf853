"""When probing stops: soon where transfer is known, not where it is noise, at once where the plan
is no question."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers.mistakes import mistakes_of
from helpers.planted_transfer import LABELS, TASKS, Planted, measure_all, plant, probes_of

from allotment.estimates.probes import probe_training
from allotment.estimates.stopping import KnownReductions, enough_for, plateau_reached, plateau_share
from allotment.estimates.transfer import affinity
from allotment.problem import Problem, Task

PROBLEM = Problem([Task(name, cost) for name, cost in zip(TASKS, (1, 3, 3, 2), strict=True)], 2000)
RATES = KnownReductions(dict(zip(TASKS, (0.997, 0.998, 0.996, 0.999), strict=True)))


def stop_of(learner: Planted, seed: int, problem: Problem = PROBLEM, **settings: Any) -> int:
    """After how many of 100 probes it stops."""
    enough = enough_for(problem, RATES, **settings)
    return len(probe_training(learner, LABELS, seed, probes=100, enough=enough)[0])


def test_it_stops_early_where_cells_are_well_known() -> None:
    for seed in range(3):
        learner = Planted(plant(np.random.default_rng(seed)), noise=0.0004, length=402)
        assert stop_of(learner, seed) <= 40


@pytest.mark.long
def test_it_goes_on_where_cells_are_noise() -> None:
    stops = [
        stop_of(
            Planted(plant(np.random.default_rng(seed)), size=0.001, noise=0.03, length=402),
            seed,
            between=25,
        )
        for seed in range(4)
    ]
    assert stops == [100] * 4


def test_noise_is_no_matter_where_every_plan_is_the_same() -> None:
    """A pool of 50 labels each, and money for all of them."""
    tasks = [Task(name, cost, pool=50) for name, cost in zip(TASKS, (1, 3, 3, 2), strict=True)]
    learner = Planted(np.full((4, 4), 0.3) + 0.7 * np.eye(4), size=0.01, noise=0.03, length=402)
    assert stop_of(learner, 0, Problem(tasks, 2000), nearly=0.5) == 12
    assert stop_of(learner, 0, nearly=0.5, between=50) == 100


def test_earlier_trainings_count() -> None:
    learner = Planted(plant(np.random.default_rng(1)), noise=0.0004)
    before = measure_all(learner, 8)
    enough = enough_for(PROBLEM, RATES, before=before)
    probes, _ = probe_training(learner, LABELS, 99, every=10, steps=2, enough=enough)
    assert len(probes) == 4
    assert len(before) == 160


def test_the_share_is_that_of_plans_found_by_trying_all() -> None:
    rng = np.random.default_rng(3)
    gains = rng.normal([[1, 0.4], [0.1, 1]], 1.5, (120, 2, 2))
    transfer = affinity(probes_of(gains, 12))
    tasks, rates = [Task("a", 2, weight=1.0), Task("b", 3, weight=2.5)], {"a": 0.96, "b": 0.98}
    counts = np.array(
        [(a, b) for a, b in itertools.product(range(61), range(41)) if 2 * a + 3 * b <= 120]
    )
    gathered = np.stack(
        [(1 - rates[name] ** counts[:, i]) / (1 - rates[name]) for i, name in enumerate("ab")],
        axis=1,
    )
    mean = gathered @ (transfer.matrix @ [1.0, 2.5])
    shares = []
    for within in (0.002, 0.01, 0.05):
        inside = [
            mean[np.argmax(gathered @ (matrix @ [1.0, 2.5]))] >= (1 - within) * mean.max()
            for matrix in transfer.draws(60, 0)
        ]
        shares.append(
            plateau_share(transfer, KnownReductions(rates), Problem(tasks, 120), within=within)
        )
        assert shares[-1] == np.mean(inside)
    assert 0 < shares[0] < shares[1] < shares[2]
    assert plateau_reached(transfer, KnownReductions(rates), Problem(tasks, 120), within=0.9)
    assert not plateau_reached(transfer, KnownReductions(rates), Problem(tasks, 120), within=1e-9)


@pytest.mark.parametrize(
    "known",
    [
        KnownReductions({"a": 0.96, "b": 0.98, "c": 0.97}, first={"a": 3.0, "b": 0.5, "c": 1.0}),
        KnownReductions({"a": 0.96, "b": 0.98, "c": 0.97}, letter=True),
    ],
)
def test_the_share_counts_what_the_method_counts(known: KnownReductions) -> None:
    """Own first gains, the paper's row sums, and a task that nobody could probe: all plans are
    tried by hand."""
    gains = np.random.default_rng(3).normal([[1, 0.4], [0.1, 1]], 1.5, (120, 2, 2))
    transfer = affinity(probes_of(gains, 12))
    problem = Problem(
        [Task("a", 2, weight=1.0), Task("b", 3, weight=2.5), Task("c", 4, weight=0.7)], 60
    )
    counts = np.array(
        [
            n
            for n in itertools.product(range(31), range(21), range(16))
            if n @ np.array([2, 3, 4]) <= 60
        ]
    )
    rates = np.array(list(known.reductions.values()))
    gathered, weights = (1 - rates**counts) / (1 - rates), np.array([1.0, 2.5, 0.7])

    def worth_of(matrix: np.ndarray) -> np.ndarray:
        whole = np.eye(3)
        whole[:2, :2] = matrix
        if known.letter:
            return weights * whole.sum(axis=1)
        assert known.first is not None
        return whole @ (weights * list(known.first.values()))

    mean = gathered @ worth_of(transfer.matrix)
    for within in (0.0005, 0.002):
        inside = [
            mean[np.argmax(gathered @ worth_of(matrix))] >= (1 - within) * mean.max()
            for matrix in transfer.draws(60, 4)
        ]
        assert plateau_share(transfer, known, problem, within=within, seed=4) == np.mean(inside)
        assert 0 < np.mean(inside) < 1


def test_where_nothing_is_known_of_a_cell_the_paper_s_estimator_does_not_stop() -> None:
    gains = np.random.default_rng(0).normal([[1, 0.4], [0.1, 1]], 0.001, (40, 2, 2))
    problem, known = (
        Problem([Task("a", 2), Task("b", 3)], 120),
        KnownReductions({"a": 0.96, "b": 0.98}),
    )
    assert plateau_reached(affinity(probes_of(gains, 8), "paper"), known, problem)
    gains[:, :, 1] = 0.0  # no probe has anything to divide by
    assert plateau_share(affinity(probes_of(gains, 8), "paper"), known, problem) == 0


def test_mistakes_are_named_together() -> None:
    transfer = affinity(probes_of(np.random.default_rng(0).normal(size=(9, 2, 2))))
    text = mistakes_of(
        plateau_share,
        transfer,
        KnownReductions({"a": 0.9}, {"b": 1.0}),
        Problem([Task("a", 1), Task("c", 1)], 9),
        within=1.5,
    )
    assert "task 'c': is in the problem, but not in the transfer" in text
    assert "task 'b': is in the transfer, but not in the problem" in text
    assert "reductions: there is none for task 'b'" in text
    assert "first: there is none for task 'a'" in text
    assert "within: 1.5 is not between 0 and 1" in text
    with pytest.raises(ValueError, match="unknown 'poled'"):
        probe_training(
            Planted(np.eye(4)), LABELS, 0, enough=enough_for(PROBLEM, RATES, estimator="poled")
        )
