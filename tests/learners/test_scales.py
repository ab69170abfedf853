"""Mean and spread of labels, whole or part by part."""

from __future__ import annotations

import numpy as np
import pytest

from allotment.data.labels import TaskLabels
from allotment.learners import scales
from allotment.learners.scales import find_scale, read_some

RNG = np.random.default_rng(5)
DEPTH = (1000 + RNG.gamma(2.0, size=(200, 6, 8))).astype(np.float32)
DEPTH[:, 0, :3] = np.nan
DEPTH[7] = np.nan


def read(instances: np.ndarray) -> np.ndarray:
    return DEPTH[instances]


def test_parts_have_the_mean_and_spread_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = TaskLabels(RNG.permutation(200)[:150])
    whole = find_scale(labels, read)
    good = DEPTH[labels.instances].astype(np.float64)
    assert whole == pytest.approx((np.nanmean(good), np.nanstd(good)), rel=1e-12)
    monkeypatch.setattr(scales, "VALUES_TOGETHER", 1000)
    parts = find_scale(labels, read)
    assert parts == pytest.approx(whole, rel=1e-9)
    again = TaskLabels(labels.instances[::-1].copy())
    assert find_scale(again, read) == parts
    assert np.float32(parts[0]) == np.float32(whole[0])


def test_predicted_labels_count_part_by_part_too(monkeypatch: pytest.MonkeyPatch) -> None:
    values = RNG.normal(5, 2, size=(150, 6, 8)).astype(np.float32)
    labels = TaskLabels(np.arange(150), values, np.arange(150) % 3 == 0)
    whole = find_scale(labels, read)
    monkeypatch.setattr(scales, "VALUES_TOGETHER", 1000)
    assert find_scale(labels, read) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("most", [10, 1 << 27])
def test_nothing_known_has_no_scale(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scales, "VALUES_TOGETHER", most)
    assert find_scale(TaskLabels(np.array([7])), read) == (0.0, 1.0)
    assert find_scale(TaskLabels(np.zeros(0, dtype=np.int64)), read) == (0.0, 1.0)


def test_too_many_maps_are_looked_at_on_a_coarser_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = TaskLabels(np.arange(130))
    assert read_some(labels, read).shape == (130, 6, 8)
    monkeypatch.setattr(scales, "VALUES_TOGETHER", 130 * 12)
    found = read_some(labels, read)
    assert found.shape == (130, 3, 4)
    assert np.array_equal(found, DEPTH[:130, 1::2, 1::2], equal_nan=True)
