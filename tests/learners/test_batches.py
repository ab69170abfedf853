"""Mini-batches for any training code: decided by seed, task and number alone."""

from __future__ import annotations

import numpy as np
import pytest

from allotment.data.labels import Labels, TaskLabels
from allotment.errors import InputError
from allotment.learners.batches import batch_places, mini_batches

LABELS = Labels({"kind": range(0, 60), "size": range(40, 90), "both": range(70, 130)})
SIZES = np.linspace(-1, 1, 300)


def listed(batches: list[tuple[str, TaskLabels]]) -> dict[str, list[int]]:
    return {task: batch.instances.tolist() for task, batch in batches}


def test_a_mini_batch_depends_on_seed_task_and_number_only() -> None:
    alone = listed(mini_batches(LABELS.only("size"), ["size"], 8, 3, 1))
    assert listed(mini_batches(LABELS, ["kind", "both", "size"], 8, 3, 1))["size"] == alone["size"]
    turned = Labels({task: mine.instances[::-1] for task, mine in LABELS.items()})
    assert listed(mini_batches(turned, ["size"], 8, 3, 1)) == alone
    same = Labels({"size": LABELS["size"], "kind": LABELS["size"]})
    other = [listed(mini_batches(same, [task], 8, number, seed))[task] for task, number, seed in
             (("kind", 3, 1), ("size", 4, 1), ("size", 3, 2))]  # fmt: skip
    assert all(each != alone["size"] for each in other)


def test_an_epoch_has_every_label_once() -> None:
    seen = [listed(mini_batches(LABELS, ["kind"], 12, number, 0))["kind"] for number in range(10)]
    for epoch in (seen[:5], seen[5:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(60))
    assert seen[:5] != seen[5:]
    few = listed(mini_batches(Labels({"kind": [7, 9, 4]}), ["kind"], 8, 0, 0))["kind"]
    assert len(few) == 8
    assert sorted(few[:3]) == sorted(few[3:6]) == [4, 7, 9]


def test_a_task_named_twice_has_two_mini_batches() -> None:
    (_, first), (_, other), (_, second) = mini_batches(LABELS, ["kind", "size", "kind"], 8, 0, 0)
    assert first.instances.tolist() == listed(mini_batches(LABELS, ["kind"], 8, 0, 0))["kind"]
    assert first.instances.tolist() != second.instances.tolist()
    assert set(other.instances.tolist()) <= set(range(40, 90))


def test_values_go_with_their_instances() -> None:
    pool = np.arange(150, 180)[::-1]
    labels = LABELS.with_pseudo("size", pool, 1000.0 + pool)
    seen = set()
    for number in range(8):
        ((_, batch),) = mini_batches(labels, ["size"], 10, number, 0)
        wanted = np.where(batch.instances >= 150, 1000.0 + batch.instances, SIZES[batch.instances])
        assert np.array_equal(batch.fill(SIZES.__getitem__), wanted)
        seen |= set(batch.instances.tolist())
    assert seen == {*range(40, 90), *range(150, 180)}


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(InputError) as caught:
        mini_batches(LABELS.only("size"), ["kind", "size", "both"], 8, 0, 0)
    assert "task 'kind': has no labels" in str(caught.value)
    assert "task 'both': has no labels" in str(caught.value)
    with pytest.raises(InputError) as caught:
        batch_places(0, 0, -1, 0, "a")
    assert [mistake.where for mistake in caught.value.mistakes] == ["count", "size", "number"]
