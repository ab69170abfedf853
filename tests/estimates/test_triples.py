"""What two tasks together do for a third: nothing beyond the pairs where there is nothing, and a
planted excess that comes back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from helpers.planted_transfer import TASKS, Planted, Skills

from allotment.data.labels import Labels
from allotment.errors import InputError
from allotment.estimates.triples import probe_triples

TRUTH = np.array([[1.0, 0.3, -0.2], [0.1, 1.0, 0.4], [0.0, 0.5, 1.0]])
LABELS = Labels({task: range(10) for task in TASKS[:3]})


class Together(Planted):
    """The first two tasks help the third by half a mini-batch more than each does alone."""

    def step(self, state: Skills, tasks: Sequence[str]) -> Skills:
        done = state.done
        state = super().step(state, tasks)
        if set(tasks) == {*TASKS[:3]}:
            state.skill[2] += 0.5 * self.size * (1.7 - 1.4 * done / self.length)
        return state


@pytest.mark.parametrize("up", [True, False])
def test_a_planted_excess_comes_back(up: bool) -> None:
    directions = {"c": up}
    none = probe_triples(Planted(TRUTH, up=directions), LABELS, 0).matrix
    off = np.isfinite(none)
    assert off.sum() == 6  # every order of three
    assert none[off] == pytest.approx(np.zeros(6), abs=1e-9)
    found = probe_triples(Together(TRUTH, up=directions), LABELS, 0)
    assert found.excess.shape == (20, 3, 3, 3)
    wanted = np.zeros((3, 3, 3))
    wanted[0, 1, 2] = wanted[1, 0, 2] = 0.5
    assert found.matrix[off] == pytest.approx(wanted[off], abs=1e-9)


def test_noise_shows_in_the_error() -> None:
    found = probe_triples(Together(TRUTH, noise=0.002), LABELS, 0)
    assert 0.02 < found.error[0, 1, 2] < 0.5
    assert abs(found.matrix[0, 1, 2] - 0.5) < 4 * found.error[0, 1, 2]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match="tasks: 2 have labels; three are needed"):
        probe_triples(Planted(TRUTH), LABELS.only("a", "b"), 0)
    with pytest.raises(InputError, match="every: 300 leaves no look within 202 steps"):
        probe_triples(Planted(TRUTH), LABELS, 0, every=300)
