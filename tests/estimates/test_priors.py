"""A prior learnt from curves of other data sets: what is planted in many of them is found, and what
does not count."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest

from allotment.estimates.priors import FEWEST_CURVES, FEWEST_SETS, GIVEN, Prior, learn_prior

COUNTS = (300, 600, 1200, 2400)
LEARNT = ("exponent", "exponent_spread", "own_exponent_spread", "slope", "slope_spread", "spread")
Curves = tuple[tuple[int, ...], np.ndarray]


def rise(exponents: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """[number, task]: gains of curves S (1 - (n / n_0)^-a) / a."""
    ratio = np.array(COUNTS, dtype=float)[:, None] / COUNTS[0]
    return slopes * (1 - ratio**-exponents) / exponents


def plant(
    seed: int, sets: int = 60, curves: int = 12, noise: float = 0.0
) -> tuple[list[Curves], np.ndarray]:
    """Data sets whose exponents lie around 0.8 and slopes around 12, and these two of each set."""
    rng = np.random.default_rng(seed)
    found, truth = [], []
    for _ in range(sets):
        exponent, slope = 0.8 * math.exp(0.5 * rng.normal()), 12 * math.exp(1.0 * rng.normal())
        own, steep = (
            centre * np.exp(0.25 * rng.normal(size=curves)) for centre in (exponent, slope)
        )
        gains = rise(own, steep)
        gains[1:] += noise * rng.normal(size=gains[1:].shape)
        found.append((COUNTS, gains))
        truth.append((exponent, slope))
    return found, np.array(truth)


def learnt(prior: Prior) -> dict[str, float]:
    return {key: getattr(prior, key) for key in LEARNT}


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("seed", range(3))
def test_planted_exponents_slopes_and_spreads_are_found_again(seed: int, noise: float) -> None:
    """Within 5 %, spreads within 0.05, where scores have hardly any noise; the usual prior is one
    more set."""
    sets, truth = plant(seed, noise=noise)
    usual = Prior()
    found = learn_prior(sets)
    logs = np.log(np.vstack([truth, [usual.exponent, usual.slope]]))
    exponent, slope = np.exp(logs.mean(axis=0))
    assert found.exponent == pytest.approx(exponent, rel=0.05)
    assert found.slope == pytest.approx(slope, rel=0.05)
    exponent_spread, slope_spread = logs.std(axis=0, ddof=1)
    assert found.exponent_spread == pytest.approx(exponent_spread, abs=0.05)
    assert found.slope_spread == pytest.approx(slope_spread, abs=0.05)
    assert found.own_exponent_spread == pytest.approx(0.25, abs=0.05)
    assert found.spread == pytest.approx(0.25, abs=0.05)


def test_noise_of_scores_makes_the_spread_within_a_set_wider_not_narrower() -> None:
    """Nothing tells it from curves that differ: the prior is then less sure than it could be."""
    quiet, loud = (learn_prior(plant(0, noise=noise)[0]) for noise in (0.0, 0.5))
    assert loud.own_exponent_spread > quiet.own_exponent_spread
    assert loud.spread > quiet.spread
    assert loud.exponent == pytest.approx(quiet.exponent, rel=0.15)


def test_only_what_curves_show_is_learnt() -> None:
    given = Prior(dead=0.3, noise=7.0, exponent=0.5)
    found = learn_prior(plant(0)[0], given)
    assert {key for key, value in asdict(found).items() if value != asdict(given)[key]} <= set(
        LEARNT
    )
    assert found.exponent != given.exponent


@pytest.mark.parametrize("sets", [1, 3, 9])
def test_the_given_prior_counts_as_some_sets(sets: int) -> None:
    given = Prior(exponent=0.3, slope=5.0, spread=0.4, own_exponent_spread=0.5)
    alike = (COUNTS, rise(np.full(6, 1.2), np.full(6, 20.0)))
    found = learn_prior([alike] * sets, given)
    assert found.exponent == pytest.approx(
        (1.2**sets * 0.3**GIVEN) ** (1 / (sets + GIVEN)), rel=0.03
    )
    assert found.slope == pytest.approx((20.0**sets * 5.0**GIVEN) ** (1 / (sets + GIVEN)), rel=0.03)
    # curves of one set do not differ at all here: squares of what the given prior says are shared
    # out
    assert found.spread == pytest.approx(0.4 * math.sqrt(GIVEN / (sets + GIVEN)), rel=1e-6)
    assert found.own_exponent_spread == pytest.approx(
        0.5 * math.sqrt(GIVEN / (sets + GIVEN)), rel=1e-6
    )


def test_few_sets_do_not_make_the_prior_surer() -> None:
    given = Prior()
    sets, _ = plant(1)
    for count in (1, FEWEST_SETS - 1, 6):
        found = learn_prior(sets[:count])
        assert found.exponent_spread >= given.exponent_spread
        assert found.slope_spread >= given.slope_spread
    few = learn_prior(sets[: FEWEST_SETS - 1])
    assert (few.exponent_spread, few.slope_spread) == (given.exponent_spread, given.slope_spread)


def test_sets_with_too_few_curves_are_left_out() -> None:
    sets, _ = plant(2, sets=5)
    narrow = (COUNTS, sets[0][1][:, : FEWEST_CURVES - 1] * 9)
    short = (COUNTS[:2], sets[0][1][:2] * 9)
    assert learn_prior([*sets, narrow, short]) == learn_prior(sets)
    enough = (COUNTS, sets[0][1][:, :FEWEST_CURVES] * 9)
    assert learn_prior([*sets, enough]) != learn_prior(sets)
    for nothing in ([], [narrow], [narrow, short]):
        assert learn_prior(nothing) == Prior()
    given = Prior(exponent=0.7)
    assert learn_prior([narrow], given) is given


def test_curves_that_do_not_rise_are_left_out_of_their_set() -> None:
    counts, gains = plant(3, sets=1)[0][0]
    falling = np.concatenate([gains, -gains[:, :5], np.zeros((4, 2))], axis=1)
    assert learn_prior([(counts, falling)]) == learn_prior([(counts, gains)])
    mostly = np.concatenate([gains[:, : FEWEST_CURVES - 1], -gains], axis=1)
    assert learn_prior([(counts, mostly)]) == Prior()


def test_a_curve_without_its_last_score_is_left_out() -> None:
    counts, gains = plant(3, sets=1)[0][0]
    holes = np.concatenate([gains, gains[:, :2]], axis=1)
    holes[-1, -2:] = np.nan
    assert learn_prior([(counts, holes)]) == learn_prior([(counts, gains)])


@pytest.mark.parametrize(("place", "wrong"), [(1, math.nan), (1, math.inf), (-1, math.inf)])
def test_a_curve_with_a_score_that_is_no_number_is_left_out(place: int, wrong: float) -> None:
    counts, gains = plant(3, sets=1)[0][0]
    holes = np.concatenate([gains, gains[:, :2]], axis=1)
    holes[place, -1] = wrong
    assert learn_prior([(counts, holes)]) == learn_prior([(counts, holes[:, :-1])])


def test_neither_the_order_of_sets_nor_of_curves_matters() -> None:
    sets, _ = plant(4, sets=20)
    rng = np.random.default_rng(0)
    mixed = [(counts, gains[:, rng.permutation(gains.shape[1])]) for counts, gains in sets]
    mixed = [mixed[place] for place in rng.permutation(len(mixed))]
    assert learnt(learn_prior(mixed)) == pytest.approx(learnt(learn_prior(sets)), rel=1e-9)
    assert learnt(learn_prior(sets[:10])) != pytest.approx(learnt(learn_prior(sets)), rel=1e-3)


def test_lists_do_as_well_as_arrays() -> None:
    sets, _ = plant(5, sets=6)
    plain = [(list(counts), gains.tolist()) for counts, gains in sets]
    assert learn_prior(plain) == learn_prior(sets)  # type: ignore[arg-type]
