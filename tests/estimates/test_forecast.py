"""Scores now and with a plan: against scores that are known, and where nothing can be said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from allotment.data.labels import Labels
from allotment.estimates.design import design
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import (
    SPAN_LEVEL,
    Forecast,
    ScoreLevel,
    describe_forecasts,
    find_noise,
    find_score_level,
    forecast,
)
from allotment.estimates.response import Response, find_scale

HAVE = {"a": 120, "b": 80}
TASKS = tuple(HAVE)
LABELS = Labels({"a": range(120), "b": range(200, 280)})
EXPONENT = 0.4


def true_score(task: str, counts: dict[str, int], higher: bool) -> float:
    """1 less, or 1 more, than it can still gain; labels of b help a."""
    left = counts[task] ** -EXPONENT
    if task == "a":
        left += 0.3 * counts["b"] ** -EXPONENT
    return 1 - left if higher else left


def measure(
    seed: int, folds: int, noise: float, higher: bool = True, trainings: int = 40
) -> Estimates:
    """What trainings would show of these curves, and estimates that know them but for a factor."""
    rng = np.random.default_rng(seed)
    chosen = design(LABELS, trainings, seed, folds)
    scores = [
        [true_score(task, dict(zip(TASKS, row, strict=True)), higher) for task in TASKS]
        for row in chosen.counts.tolist()
    ]
    level = noise * 2 * rng.normal(size=(folds, len(TASKS)))
    seen = np.array(scores) + level[chosen.fold] + noise * rng.normal(size=(len(scores), 2))
    response = Response(
        tasks=TASKS,
        have=tuple(HAVE.values()),
        counts=chosen.counts,
        scores=seen,
        untrained=np.zeros((0, 2)),
        higher_is_better=(higher, higher),
        fold=chosen.fold,
    )
    scales = [find_scale(seen[:, at], chosen.counts[:, at]) for at in range(2)]
    factor = np.exp(0.2 * rng.normal(size=200))
    worths = np.zeros((200, 2, 2))
    worths[:, 0, 0] = worths[:, 1, 1] = 100 * factor
    worths[:, 0, 1] = 30 * factor
    worths /= np.array(scales)[:, None]
    about = {"unit": "%", "measured": {"response": response.to_dict()}}
    shapes = np.full((200, 2), EXPONENT)
    return Estimates(TASKS, tuple(HAVE.values()), worths, shapes, about=about)


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("folds", [1, 4])
def test_without_noise_the_middle_is_the_score(folds: int, higher: bool) -> None:
    """Folds leave labels out; what these would have brought is added."""
    estimates = measure(1, folds, noise=0.0, higher=higher)
    after = {"a": 500, "b": 300}
    found = forecast(estimates, HAVE, after, {"a": "f1", "b": "mae"})
    for task, each in found.items():
        assert each.now.middle == pytest.approx(true_score(task, HAVE, higher), abs=0.012)
        assert each.after.middle == pytest.approx(true_score(task, after, higher), abs=0.012)
        assert each.higher_is_better == higher
    assert [each.metric for each in found.values()] == ["f1", "mae"]


def test_spans_hold_as_often_as_they_say() -> None:
    """Of a model trained afterwards, whose luck is as large as that of those before it."""
    after, noise, held = {"a": 300, "b": 200}, 0.02, list[bool]()
    rng = np.random.default_rng(5)
    for seed in range(60):
        for task, each in forecast(measure(seed, 4, noise), HAVE, after).items():
            score = true_score(task, after, True) + noise * rng.normal()
            held.append(each.after.low <= score <= each.after.high)
    assert 0.82 <= np.mean(held) <= 0.97, np.mean(held)
    assert SPAN_LEVEL == 0.9


def test_more_labels_on_the_way_count_and_none_of_them_twice() -> None:
    """Estimates that were made with fewer labels say what those of today score."""
    estimates = measure(2, 4, noise=0.0)
    newer = replace(estimates, have=(200, 150))
    now = {"a": 200, "b": 150}
    for found in (forecast(estimates, now, now), forecast(newer, now, now)):
        assert found["a"].now == found["a"].after
        assert found["a"].now.middle == pytest.approx(true_score("a", now, True), abs=0.012)


def test_a_score_is_never_beyond_the_best() -> None:
    found = forecast(measure(3, 4, noise=0.2), HAVE, {"a": 10**6, "b": 10**6})
    assert all(each.after.high <= 1 for each in found.values())
    lower = forecast(measure(3, 4, noise=0.2, higher=False), HAVE, {"a": 10**6, "b": 10**6})
    assert all(each.after.low >= 0 for each in lower.values())


def test_nothing_is_said_where_nothing_is_known() -> None:
    estimates = measure(4, 4, noise=0.0)
    assert forecast(replace(estimates, about={}), HAVE, HAVE) == {}
    assert (
        forecast(replace(estimates, about={**estimates.about, "unit": "labels"}), HAVE, HAVE) == {}
    )
    response = Response.from_dict(estimates.about["measured"]["response"])
    mute = replace(response, scores=np.where([True, False], response.scores, np.nan))
    about = {"unit": "%", "measured": {"response": mute.to_dict()}}
    assert list(forecast(replace(estimates, about=about), HAVE, HAVE)) == ["a"]


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_the_noise_is_what_two_trainings_on_the_same_labels_differ_by(shared: float) -> None:
    """In the weighted mean over tasks, whose luck may be `shared`: beside pairs of trainings that
    are drawn. Labels of b help a, and are no noise."""
    noise, weights, shares = 0.03, {"a": 3.0, "b": 1.0}, np.array([0.75, 0.25])
    rng = np.random.default_rng(8)
    luck = noise**2 * np.array([[1, shared], [shared, 1]])
    stated, true = [], []
    for seed in range(60):
        estimates = measure(seed, 4, noise=0.0, trainings=60)
        response = Response.from_dict(estimates.about["measured"]["response"])
        lucky = rng.multivariate_normal([0, 0], luck, size=len(response.fold))
        response = replace(response, scores=response.scores + lucky)
        about = {"unit": "%", "measured": {"response": response.to_dict()}}
        estimates = replace(estimates, about=about)
        found, levels = find_noise(estimates, weights), list_levels(estimates)
        assert found is not None
        stated.append(found)
        pairs = rng.multivariate_normal([0, 0], luck, size=(2, 2000))
        totals = (100 * pairs / np.array([level.scale for level in levels])) @ shares
        true.append(np.std(totals[0] - totals[1]))
    assert np.sqrt(np.mean(np.square(stated))) == pytest.approx(np.mean(true), rel=0.1)


def list_levels(estimates: Estimates) -> list[ScoreLevel]:
    found = [find_score_level(estimates, task) for task in TASKS]
    return [level for level in found if level is not None]


def test_the_noise_is_not_known_where_too_little_was_scored() -> None:
    both = {"a": 1.0, "b": 1.0}
    estimates = measure(4, 4, noise=0.01, trainings=60)
    assert find_noise(estimates, both) is not None
    response = Response.from_dict(estimates.about["measured"]["response"])
    mute = replace(response, scores=np.where([True, False], response.scores, np.nan))
    half = replace(estimates, about={"unit": "%", "measured": {"response": mute.to_dict()}})
    assert find_noise(half, both) is None
    assert find_noise(half, {"a": 1.0, "b": 0.0}) is not None
    assert find_noise(replace(estimates, about={}), both) is None
    # of these each fold has one that saw all its labels
    assert find_noise(measure(4, 4, noise=0.01, trainings=24), both) is None


def test_figures_have_as_many_digits_as_are_known() -> None:
    found = forecast(measure(1, 4, noise=0.01), HAVE, {"a": 300, "b": 80}, {"a": "f1"})["a"]
    assert isinstance(found, Forecast)
    assert len(found.now.say(found.places)) == len("0.800 (0.758 to 0.842)")
    plain = describe_forecasts({"a": found})["a"]
    assert plain["metric"] == "f1"
    assert plain["level"] == SPAN_LEVEL
    assert plain["now"]["low"] < plain["now"]["middle"] < plain["after"]["middle"]
