"""Splits and draws: by seed, by group, the same everywhere, on different instances unless asked otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from allotment.data.dataset import ArrayData, Dataset, Target
from allotment.data.labels import Labels, TaskLabels, draw, shuffle, split
from allotment.errors import InputError

TASKS = ("a", "b", "c")


def make(count: int = 200, groups: np.ndarray | None = None, missing: dict | None = None) -> ArrayData:
    values = np.arange(count, dtype=np.float32)
    targets = tuple(Target(name, "regression") for name in TASKS)
    return ArrayData("t", targets, values[:, None], dict.fromkeys(TASKS, values), missing or {}, groups)


def test_array_data_is_a_dataset() -> None:
    assert isinstance(make(), Dataset)


def test_splits_cover_everything_once() -> None:
    parts = split(make(), seed=3, validation=0.2, test=0.1)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (140, 40, 20)
    assert sorted(np.concatenate([parts.train, parts.validation, parts.test]).tolist()) == list(range(200))


def test_splits_are_the_same_on_every_machine() -> None:
    # written down once: a change here changes every campaign that is under way
    assert shuffle(np.arange(8), "x", 1).tolist() == [5, 3, 4, 0, 2, 1, 6, 7]


def test_seeds_give_other_splits() -> None:
    assert split(make(), 0).test.tolist() != split(make(), 1).test.tolist()


def test_groups_stay_together() -> None:
    groups = np.repeat([f"g{i}" for i in range(25)], 8)
    parts = split(make(groups=groups), seed=0, validation=0.2, test=0.2)
    sets = [set(groups[part]) for part in (parts.train, parts.validation, parts.test)]
    assert [len(each) for each in sets] == [15, 5, 5]
    assert not sets[0] & sets[1] | sets[0] & sets[2] | sets[1] & sets[2]


def test_labels_of_different_tasks_fall_on_different_instances() -> None:
    labels = draw(make(), np.arange(200), {"a": 60, "b": 60, "c": 60}, seed=0)
    drawn = np.concatenate([each.instances for each in labels.values()])
    assert len(np.unique(drawn)) == 180


def test_they_are_shared_where_there_are_too_few() -> None:
    labels = draw(make(), np.arange(200), {"a": 150, "b": 150}, seed=0)
    assert len(np.intersect1d(labels["a"].instances, labels["b"].instances)) == 100


def test_labels_fall_on_the_same_instances_on_request() -> None:
    labels = draw(make(), np.arange(200), {"a": 30, "b": 50}, seed=0, same=True)
    assert set(labels["a"].instances) <= set(labels["b"].instances)


def test_only_unlabelled_instances_with_a_label_to_give_are_drawn() -> None:
    missing = {"a": np.arange(200) >= 50}
    have = Labels({"a": range(20)})
    labels = draw(make(missing=missing), np.arange(200), {"a": 30}, seed=0, taken=have)
    assert sorted(labels["a"].instances) == list(range(20, 50))
    with pytest.raises(InputError, match="31 labels wanted, 30 instances left"):
        draw(make(missing=missing), np.arange(200), {"a": 31}, seed=0, taken=have)


def test_a_larger_draw_contains_the_smaller_one() -> None:
    small, large = (draw(make(), np.arange(200), {"a": count}, seed=4)["a"].instances for count in (10, 40))
    assert set(small) <= set(large)


def test_fingerprints_see_labels_and_not_their_order() -> None:
    labels = Labels({"a": [3, 1, 2], "b": [5]})
    assert labels.fingerprint == Labels({"b": [5], "a": [1, 2, 3]}).fingerprint
    assert labels.fingerprint != Labels({"a": [3, 1], "b": [5]}).fingerprint
    given = labels.with_task("a", TaskLabels(np.array([1, 2, 3]), np.array([0.0, 1.0, 0.0])))
    assert labels.fingerprint != given.fingerprint


def test_data_fingerprints_see_every_array() -> None:
    assert make().fingerprint == make().fingerprint
    assert make().fingerprint != make(missing={"a": np.arange(200) > 5}).fingerprint
    assert make().fingerprint != make(groups=np.arange(200)).fingerprint


def test_pseudo_labels_are_marked() -> None:
    labels = Labels({"a": [0, 1]}).with_pseudo("a", np.array([7, 8]), np.array([0.5, 0.6]))
    assert labels["a"].is_pseudo.tolist() == [False, False, True, True]
    assert labels["a"].fill(lambda instances: instances * 10.0).tolist() == [0.0, 10.0, 0.5, 0.6]
    soft = Labels({"a": [0, 1]}).with_pseudo("a", np.array([7]), np.array([[0.2, 0.8]]))
    assert soft["a"].fill(lambda instances: instances).tolist() == [[1, 0], [0, 1], [0.2, 0.8]]
    assert "a" in labels
    assert "unknown" not in labels
    assert not Labels({"a": [0, 1]})["a"].is_pseudo.any()
    assert len(labels["unknown"]) == 0


def test_arrays_that_disagree_are_named() -> None:
    with pytest.raises(InputError, match="3 labels for 5 instances"):
        ArrayData("t", (Target("a", "regression"),), np.zeros((5, 1)), {"a": np.zeros(3)})
    with pytest.raises(InputError, match="task 'a': has no labels"):
        ArrayData("t", (Target("a", "regression"),), np.zeros((5, 1)), {})
