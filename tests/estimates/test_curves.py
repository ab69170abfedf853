"""Learning curves: planted laws are found again, and curves that say nothing are called so."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from helpers.planted_curves import (
    COUNTS,
    NOISE,
    PLANTED,
    RATES,
    SIZES,
    TOTAL,
    flat,
    geometric,
    good,
    measured,
    powerful,
)
from scipy import optimize, stats

from allotment.errors import InputError
from allotment.estimates.curves import Fit, Points, fit_exact, fit_paper
from allotment.estimates.verdict import judge
from allotment.gains import Geometric, Power
from allotment.quantiles import student


def test_points_go_to_json_and_back() -> None:
    points = measured(geometric(0.9973), np.random.default_rng(0))
    again = Points.from_dict(json.loads(json.dumps(points.to_dict())))
    assert again == points
    assert fit_exact(again) == fit_exact(points)


def test_gains_count_from_the_first_size_in_the_direction_of_better() -> None:
    points = Points(
        (50, 100, 200), [[4.0, 3.0, 2.5], [2.0, 2.0, 1.5]], higher_is_better=False, have=10
    )
    assert points.gains.tolist() == [0.5, 1.0]
    assert points.more.tolist() == [50, 150]
    assert points.start == 60


BAD = [
    ({"sizes": (0, 100)}, "sizes: 2 show no bend; give at least 3"),
    ({"sizes": (0, 200, 100)}, "sizes: .* rising order"),
    ({"sizes": (0.5, 1, 2)}, "sizes: .* whole numbers"),
    ({"sizes": (-1, 1, 2)}, "sizes: .* 0 or more"),
    ({"scores": ()}, "scores: must be numbers: a row for each repetition"),
    ({"scores": ((1.0, 2.0),)}, "scores: 2 in a repetition for 3 sizes"),
    ({"scores": ((1.0, 2.0, 3.0), (1.0, 2.0))}, "scores: must be numbers"),
    ({"scores": ((1.0, math.nan, 3.0),)}, "scores: .* validation"),
    ({"scores": (("a", "b", "c"),)}, "scores: must be numbers"),
    ({"have": -1}, "have: -1 is not"),
]


@pytest.mark.parametrize(("wrong", "said"), BAD)
def test_bad_points(wrong: dict[str, object], said: str) -> None:
    good = {"sizes": (0, 1, 2), "scores": ((1.0, 2.0, 3.0),), "higher_is_better": True}
    with pytest.raises(InputError, match=said):
        Points(**good | wrong)


def test_all_mistakes_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Points((2, 1, 3), ((math.inf, 1.0, 2.0),), True, have=-3)
    assert len(caught.value.mistakes) == 3
    with pytest.raises(InputError, match="did you mean 'scores'") as caught:
        Points.from_dict({"sizes": [1, 2, 3], "score": [], "higher_is_better": True})
    assert "scores: is missing" in str(caught.value)
    for wrong in ({"draws": 0}, {"level": 1.0}, {"law": "geometrical"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            fit_exact(measured(geometric(0.997), np.random.default_rng(0)), **wrong)


def test_laws_without_noise_are_found_exactly() -> None:
    for b in (0.97, 0.99, 0.9973, 0.9999):
        truth = 0.001 * (1 - b**COUNTS) / (1 - b)
        for fit in (fit_exact, fit_paper):
            found = fit(Points(SIZES, [0.6 + truth], True), draws=1)
            assert (1 - found.shape) / (1 - b) == pytest.approx(1, abs=1e-2)
            assert found.size == pytest.approx(0.001, rel=1e-2)
    for exponent in (0.2, 0.5, 1.0):
        truth = 2 * (300.0**-exponent - (300 + COUNTS) ** -exponent)
        found = fit_exact(Points(SIZES, [-truth], False, have=300), law="power", draws=1)
        assert (found.shape, found.size) == (
            pytest.approx(exponent, rel=1e-3),
            pytest.approx(2, rel=1e-2),
        )


def test_the_curve_of_a_fit_goes_on_where_the_labels_at_hand_end() -> None:
    b, steep = 0.995, 0.002
    points = Points(
        (75, 150, 300), [0.6 + steep * (1 - b ** np.array([0, 75, 225])) / (1 - b)], True
    )
    curve = fit_exact(points).curve(have=300)
    assert isinstance(curve, Geometric)
    later = steep * (b**225 - b**425) / (1 - b)  # what labels 300 to 500 add
    assert curve(200) == pytest.approx(later, rel=1e-3)
    worths = [0.9 - 3 * size**-0.5 for size in (75, 150, 300)]
    power = fit_exact(Points((75, 150, 300), [worths], True), law="power").curve(have=300)
    assert isinstance(power, Power)
    assert power(900) == pytest.approx(3 * (300**-0.5 - 1200**-0.5), rel=1e-3)


def independent_best(points: Points) -> float:
    """Eq. 7's objective by brute force: every line through one point at each of many b, then a
    simplex search."""

    def loss(b: float, first: float) -> float:
        return float(np.abs(first * (1 - b**points.more) / (1 - b) - points.gains).mean())

    starts = []
    for b in 1 - np.geomspace(1e-5, 0.3, 150):
        for gain, count in zip(points.gains, points.more, strict=True):
            first = gain * (1 - b) / (1 - b**count)
            starts.append((loss(b, first), b, first))
    best = min(starts)

    def moved(z: np.ndarray) -> float:
        return loss(1 - (1 - best[1]) * math.exp(z[0]), best[2] * math.exp(z[1]))

    found = optimize.minimize(
        moved, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    return min(best[0], float(found.fun))


def test_descent_and_exact_fit_reach_the_best_of_the_objective() -> None:
    rng = np.random.default_rng(2)
    for number in range(16):
        points = measured(
            geometric(RATES[number % 4]),
            rng,
            repetitions=1 + number % 8,
            noise=(0.01, 0.03)[number % 2],
        )
        best = independent_best(points)
        assert fit_exact(points, draws=1).loss <= best * (1 + 1e-6)
        assert fit_paper(points, draws=1).loss <= best * 1.01


@pytest.mark.parametrize("repetitions", [3, 8])
@pytest.mark.parametrize("memory", [False, True])
def test_intervals_cover_planted_rates(repetitions: int, memory: bool) -> None:
    """90 % intervals; of 200 the number covered is 180 with a standard deviation of 4."""
    rng = np.random.default_rng(3)
    covered = 0
    for number in range(200):
        b = RATES[number % 4]
        found = fit_exact(measured(geometric(b), rng, repetitions, memory=memory), draws=100)
        assert 0 <= found.low <= found.high <= 1
        covered += found.low <= b <= found.high
    assert 168 <= covered <= 196


def test_the_descent_has_intervals_like_those_of_the_exact_fit() -> None:
    points = measured(geometric(0.9973), np.random.default_rng(4))
    ours, paper = fit_exact(points), fit_paper(points, steps=600)
    for key in ("low", "high"):
        assert math.log(getattr(paper, key)) / math.log(getattr(ours, key)) == pytest.approx(
            1, abs=0.1
        )
    assert len(paper.draws) == 200


def test_one_repetition_is_judged_by_its_distance_from_the_law() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for number in range(100):
        found = fit_exact(measured(geometric(RATES[number % 4]), rng, repetitions=1))
        covered += found.low <= RATES[number % 4] <= found.high
    assert covered >= 75
    few = fit_exact(Points((0, 100, 200), [[0.6, 0.7, 0.75]], True))
    assert (few.low, few.high) == (0, 1)  # two gains and two numbers: nothing tells noise from law
    assert math.isnan(few.residual)


def test_residuals_are_of_the_size_of_the_noise() -> None:
    rng = np.random.default_rng(6)
    found = [fit_exact(measured(geometric(0.9973), rng), draws=1).residual for _ in range(100)]
    assert np.median(found) == pytest.approx(NOISE / math.sqrt(8), rel=0.35)


def test_student() -> None:
    for tail in (0.05, 0.001):
        for free in (1, 2, 7.5, 40):
            assert student(tail, free) == pytest.approx(stats.t.isf(tail, free), rel=1e-3)


def test_published_points_give_the_published_rate() -> None:
    """NR-AhR with real labels, mean of 8 draws: b was 0.9973."""
    points = Points(SIZES, [[0, 0.019, 0.037, 0.056, 0.070, 0.084, 0.090]], True, have=300)
    assert fit_exact(points).shape == pytest.approx(0.9973, abs=5e-5)
    assert fit_paper(points).shape == pytest.approx(0.9973, abs=5e-5)
    assert judge(points).nearer == "power"


# --- verdicts ---


@pytest.mark.parametrize(
    ("truth", "noise", "named"), PLANTED, ids=lambda part: getattr(part, "__name__", "")
)
def test_bad_curves_are_flagged(truth, noise, named) -> None:
    rng = np.random.default_rng(7)
    verdicts = [judge(measured(truth(rng), rng, noise=noise)) for _ in range(100)]
    assert sum(each.grade != "sound" for each in verdicts) >= 90
    assert sum(bool(named & set(each.flags)) for each in verdicts) >= 80
    for each in verdicts:
        assert (each.fit is None) == (each.grade == "unusable")
        assert len(each.why) == len(each.remedy) == len(each.flags)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("truth", [good, powerful])
def test_good_curves_are_not_flagged(truth, memory: bool) -> None:
    rng = np.random.default_rng(8)
    grades = [judge(measured(truth(rng), rng, memory=memory)).grade for _ in range(100)]
    assert grades.count("sound") >= 90


def test_a_flat_curve_has_no_rate() -> None:
    rng = np.random.default_rng(9)
    fits = [judge(measured(flat(rng), rng)).fit for _ in range(100)]
    assert fits.count(None) >= 90


def test_a_straight_curve_says_that_no_end_is_in_sight() -> None:
    verdict = judge(measured(TOTAL * COUNTS / 2400, np.random.default_rng(10)))
    assert (verdict.grade, verdict.flags) == ("weak", ("straight",))
    assert verdict.fit is not None
    assert verdict.fit.low > 0.999
    assert "9600" in verdict.remedy[0]


def test_edges_of_verdicts() -> None:
    exact = Points(SIZES, [0.75 + geometric(0.9973)] * 5, True)
    assert judge(exact).grade == "sound"
    still = judge(Points(SIZES, [[0.75] * 7] * 5, True))
    assert (still.grade, still.flags) == ("unusable", ("flat",))
    alone = judge(Points(SIZES, [0.75 + geometric(0.9973)], True))
    assert (alone.grade, alone.flags) == ("weak", ("few",))
    hopeless = judge(Points((0, 10, 20), [[0.0, 0.1, 0.2]], True))
    assert (hopeless.grade, hopeless.fit) == ("unusable", None)
    assert set(hopeless.flags) == {"no signal", "few"}
    with pytest.raises(InputError, match="geometric"):
        judge(exact, fit_exact(exact, law="power"))
    mine: Fit = fit_paper(exact, draws=50)
    assert judge(exact, mine).fit is mine
    losses = Points(SIZES, [0.75 - row for row in np.asarray(exact.scores) - 0.75], False)
    assert judge(losses).grade == "sound"  # a loss that falls is a curve that rises
