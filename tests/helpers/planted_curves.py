"""Learning curves with a known truth: good ones, and every way of being bad."""

from __future__ import annotations

import numpy as np

from allotment.estimates.curves import Points

SIZES = (0, 100, 200, 400, 800, 1600, 2400)
COUNTS = np.array(SIZES, dtype=float)
RATES = (0.9963, 0.9973, 0.9975, 0.9978)  # measured on Tox21 with real labels
TOTAL = 0.09  # of ROC AUC, likewise
NOISE = 0.01
"""of one training: differences of D_T in % over four tasks and 16 draws had standard errors of
0.25, which is 2 % of an AUC of 0.75 for one difference of one task"""


def geometric(b: float, total: float = TOTAL) -> np.ndarray:
    return total * (1 - b**COUNTS) / (1 - b ** COUNTS[-1])


def measured(
    truth: np.ndarray,
    rng: np.random.Generator,
    repetitions: int = 8,
    noise: float = NOISE,
    memory: bool = False,
) -> Points:
    """Scores: each repetition is off as a whole, each training by itself; with memory, neighbours
    are alike."""
    each = rng.normal(size=(repetitions, len(truth))) * noise
    if memory:
        each = np.cumsum(each, axis=1) / 2
    whole = rng.normal(size=(repetitions, 1)) * NOISE
    return Points(SIZES, 0.75 + truth + whole + each, True, have=300)


def flat(rng: np.random.Generator) -> np.ndarray:
    return np.zeros(len(SIZES))


def harmful(rng: np.random.Generator) -> np.ndarray:
    """Hard pseudo-labels, as measured."""
    return np.array([0, -0.008, -0.016, -0.018, -0.027, -0.038, -0.031])


def useless(rng: np.random.Generator) -> np.ndarray:
    """Soft pseudo-labels, as measured."""
    return np.array([0, 0, -0.001, 0.001, -0.002, -0.010, -0.010])


def late(rng: np.random.Generator) -> np.ndarray:
    """Nothing at first, then a straight rise or a steep one that ends."""
    from_here = rng.choice([300, 600, 1000])
    if rng.random() < 0.5:
        return TOTAL * np.clip((COUNTS - from_here) / (2400 - from_here), 0, 1)
    return TOTAL / (1 + np.exp(-3 * (np.log1p(COUNTS) - np.log(from_here))))


def turning(rng: np.random.Generator) -> np.ndarray:
    """Rises, then loses a third to all of it."""
    truth, peak = geometric(rng.choice(RATES)), rng.integers(3, 5)
    truth[peak:] = truth[peak] * np.linspace(1, 1 - rng.uniform(1 / 3, 1), len(SIZES) - peak)
    return truth


def good(rng: np.random.Generator) -> np.ndarray:
    return geometric(rng.choice(RATES))


def powerful(rng: np.random.Generator) -> np.ndarray:
    """Good too, though the law is another."""
    power = rng.uniform(0.3, 0.8)
    truth = 300**-power - (300 + COUNTS) ** -power
    return TOTAL * truth / truth[-1]


PLANTED = [
    (flat, NOISE, {"flat"}),
    (harmful, NOISE, {"falls"}),
    (useless, NOISE, {"flat", "falls"}),
    (late, NOISE, {"late", "straight", "misfit"}),
    (turning, NOISE, {"turns", "flat", "misfit"}),
    (good, 5 * NOISE, {"noisy", "no signal"}),
]
