"""Sums that no order of adding shows in, against those of the standard library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allotment.data import sums
from allotment.data.sums import add_exactly

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(
    values=st.lists(st.one_of(NUMBERS, st.floats(-1, 1)), max_size=40),
    twins=st.integers(0, 40),
    at_once=st.sampled_from([1, 2, 7, 2**14]),
)
def test_sums_are_those_of_fsum(values: list[float], twins: int, at_once: int) -> None:
    values += [-each for each in values[:twins]]  # which leaves what was lost on the way
    try:
        expected = math.fsum(values)
    except OverflowError:
        with pytest.raises(OverflowError):
            add_exactly(np.array(values))
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "ADDED_AT_ONCE", at_once)
        assert add_exactly(np.array(values)) == expected


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e250])
def test_long_sums_are_those_of_fsum(scale: float) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=50_001) * 10.0 ** rng.integers(-12, 12, 50_001) * scale
    assert add_exactly(values) == math.fsum(values.tolist())
    assert add_exactly(values[::3]) == math.fsum(values[::3].tolist())


def test_what_is_no_number_is_added_as_by_fsum() -> None:
    assert math.isnan(add_exactly(np.array([1.0, math.nan])))
    assert add_exactly(np.array([1.0, math.inf])) == math.inf
