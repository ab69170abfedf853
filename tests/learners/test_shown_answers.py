"""Answers that are kept for people to look at come back as they were, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from allotment.data.dataset import ArrayData, Target
from allotment.errors import InputError
from allotment.learners.shown_answers import (
    KEPT_SIDE,
    keep_examples,
    pack_map,
    read_answers,
    resize,
    unpack_map,
)

SEG = Target("seg", "segmentation", ("road", "sky", "car"))
DEPTH = Target("depth", "depth")
NORMALS = Target("normals", "normals")
RNG = np.random.default_rng(5)


def test_maps_come_back() -> None:
    chances = RNG.random((3, 20, 30))
    assert (unpack_map(SEG, pack_map(SEG, chances)) == chances.argmax(axis=0)).all()
    for target, shape in ((DEPTH, (20, 30)), (NORMALS, (3, 20, 30))):
        given = RNG.normal(size=shape)
        found = unpack_map(target, pack_map(target, given))
        assert found.shape == shape
        assert np.abs(found - given).max() <= (given.max() - given.min()) / 255


def test_large_maps_are_kept_small_in_their_form() -> None:
    found = unpack_map(DEPTH, pack_map(DEPTH, np.tile(np.arange(300.0), (150, 1))))
    assert found.shape == (KEPT_SIDE // 2, KEPT_SIDE)
    assert (np.diff(found, axis=1) > 0).all()
    assert resize(found, (1, 1)).shape == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [4, 5]},
        {"shape": [10**6, 10**6]},
        {"shape": [3, 4, 6]},
        {"shape": None},
        {"bytes": "<script>"},
        {"bytes": 7},
        {"low": "nan"},
        {"high": None},
    ],
)
def test_what_is_no_answer_is_refused(change: dict[str, Any]) -> None:
    packed = pack_map(DEPTH, RNG.random((4, 6))) | change
    with pytest.raises(InputError):
        read_answers(DEPTH, [packed])


def test_classes_beyond_the_last_are_none() -> None:
    packed = pack_map(SEG, RNG.random((9, 4, 6)))  # of a model with more classes
    assert unpack_map(SEG, packed).max() <= 2


@pytest.mark.parametrize("said", [[["a", 1, 2]], [[0.5, 0.5]], [None], [[[1, 2, 3]]]])
def test_answers_to_whole_instances_have_their_form(said: list[Any]) -> None:
    target = Target("cls", "classification", ("a", "b", "c"))
    with pytest.raises(InputError):
        read_answers(target, said)
    assert read_answers(target, [[0.2, 0.3, 0.5]])[0].argmax() == 2


def test_some_of_all_that_are_asked_and_only_what_is_no_padding() -> None:
    class Padded(ArrayData):
        def frame(self, instance: int) -> tuple[slice, slice]:
            return slice(0, 4), slice(1, 7)

    class Fake:
        def predict(self, state: Any, task: str, instances: Any) -> Any:
            return np.broadcast_to(np.arange(8.0), (len(instances), 8, 8))

    blank = np.zeros((9, 8, 8), dtype=np.float32)
    data = Padded("d", (DEPTH,), np.zeros((9, 3, 8, 8), np.uint8), {"depth": blank})
    kept = keep_examples(Fake(), None, data, DEPTH, np.arange(9), 2)  # type: ignore[arg-type]
    assert kept["instances"] == [2, 6]
    first, _ = read_answers(DEPTH, kept["said"])
    assert first.shape == (4, 6)
    assert first[0] == pytest.approx([1, 2, 3, 4, 5, 6])
