"""Splits and draws: by seed, by group, the same everywhere, on different instances unless asked
otherwise."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allotment.data.dataset import VOID, ArrayData, Dataset, Target
from allotment.data.labels import Labels, TaskLabels, draw, shuffle, split
from allotment.data.masks import classes_of_masks
from allotment.data.scenes import make_scenes
from allotment.errors import InputError

TASKS = ("a", "b", "c")


def make(
    count: int = 200, groups: np.ndarray | None = None, missing: dict | None = None
) -> ArrayData:
    values = np.arange(count, dtype=np.float32)
    targets = tuple(Target(name, "regression") for name in TASKS)
    return ArrayData(
        "t", targets, values[:, None], dict.fromkeys(TASKS, values), missing or {}, groups
    )


def test_array_data_is_a_dataset() -> None:
    assert isinstance(make(), Dataset)


def test_splits_cover_everything_once() -> None:
    parts = split(make(), seed=3, validation=0.2, test=0.1)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (140, 40, 20)
    assert sorted(np.concatenate([parts.train, parts.validation, parts.test]).tolist()) == list(
        range(200)
    )


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


def test_a_draw_of_too_many_says_where_the_others_are() -> None:
    """Whoever counts the rows must find each of them."""
    data, have = make(missing={"a": np.arange(200) % 10 == 0}), Labels({"a": [1, 2, 3, 150]})
    cases = (
        (data, np.arange(120), have,
        "105 instances left: 200 in the data, without 80 kept apart (for testing, say), "
         "12 with no label to give, 3 labelled already; ask for fewer"),
        (data, np.arange(200), None,
        "180 instances left: 200 in the data, without 20 with no label to give; ask"),
        (make(), np.arange(150), None,
        "150 instances left: 200 in the data, without 50 kept apart (for testing"),
        (make(), np.arange(200), None, "200 instances left: 200 in the data; ask for fewer"),
    )  # fmt: skip
    for held, instances, taken, said in cases:
        with pytest.raises(InputError, match=re.escape(f"task 'a': 999 labels wanted, {said}")):
            draw(held, instances, {"a": 999}, seed=0, taken=taken)


def test_a_larger_draw_contains_the_smaller_one() -> None:
    small, large = (
        draw(make(), np.arange(200), {"a": count}, seed=4)["a"].instances for count in (10, 40)
    )
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


# --- labels that follow from others ---

MASKS = {"seg": ("cls",)}
BOUGHT, PSEUDO, IMPLIED = "bought", "pseudo", "implied"


def kinds_of(labels: Labels) -> dict[tuple[str, int], str]:
    """Each label with what it is, once more without arrays."""
    found = {}
    for task, have in labels.items():
        for at, instance in enumerate(have.instances.tolist()):
            found[task, instance] = (
                IMPLIED if have.is_implied[at] else PSEUDO if have.is_pseudo[at] else BOUGHT
            )
    return found


def test_implied_labels_are_added_and_marked() -> None:
    labels = Labels({"cls": [0, 1, 2], "seg": [5, 2, 4]}).with_implied(MASKS)
    assert labels["cls"].instances.tolist() == [0, 1, 2, 4, 5]
    assert labels["cls"].is_implied.tolist() == [False] * 3 + [True] * 2
    assert not labels["seg"].is_implied.any()
    assert (labels.counts, labels.bought.counts) == ({"cls": 5, "seg": 3}, {"cls": 3, "seg": 3})
    assert labels["cls"].fill(lambda instances: instances * 10).tolist() == [0, 10, 20, 40, 50]
    assert Labels({"seg": [7]}).with_implied({"seg": "cls"})["cls"].instances.tolist() == [7]
    assert "cls" not in Labels({"seg": []}).with_implied(MASKS)


def test_implied_labels_can_be_switched_off() -> None:
    labels = Labels({"cls": [0, 1], "seg": [1, 5]})
    marked = labels.with_implied(MASKS)
    assert marked.fingerprint != labels.fingerprint
    assert marked.without_implied().fingerprint == marked.bought.fingerprint == labels.fingerprint
    assert marked.bought["cls"].implied is None
    assert marked.with_implied(MASKS).fingerprint == marked.fingerprint
    assert (
        labels.without_implied().fingerprint
        == labels.with_implied({}).fingerprint
        == labels.fingerprint
    )
    checked = labels.with_task(
        "cls", TaskLabels(np.array([0, 1]), np.zeros(2), np.zeros(2, dtype=bool))
    )
    assert (
        checked.bought.fingerprint == checked.without_implied().fingerprint == checked.fingerprint
    )


def test_fingerprints_see_marks_and_are_otherwise_what_they_were() -> None:
    # written down before there were any marks: plans under way are recognised by them
    labels = Labels({"a": [3, 1, 2], "b": [5]})
    assert labels.fingerprint == "b2fb042b2b0415ad28aeb731e4f7923cf1e66e43eada6d928bf5aeb5bef59b16"
    guessed = labels.with_pseudo("a", np.array([7, 8]), np.array([0.5, 0.25]))
    assert guessed.fingerprint == "92cad2e46e4528571e8a8fb44c2e51bc806db51cafd637f7024b0953f45494f3"
    unmarked = labels.with_task(
        "a", TaskLabels(np.array([1, 2, 3]), implied=np.zeros(3, dtype=bool))
    )
    assert unmarked.fingerprint == labels.fingerprint
    marks = [np.array(each) for each in product([False, True], repeat=3)]
    prints = {
        labels.with_task("a", TaskLabels(np.array([1, 2, 3]), implied=each)).fingerprint
        for each in marks
    }
    assert len(prints) == 8
    turned = TaskLabels(np.array([3, 1, 2]), implied=np.array([True, False, False]))
    straight = TaskLabels(np.array([1, 2, 3]), implied=np.array([False, False, True]))
    assert labels.with_task("a", turned).fingerprint == labels.with_task("a", straight).fingerprint


def test_marks_stay_with_their_labels() -> None:
    labels = Labels({"cls": [9, 0], "seg": [5, 4], "box": [1]}).with_implied(MASKS)
    more = labels.with_pseudo("cls", np.array([7, 3]), np.array([0.25, 0.75]))
    want = {("cls", 9): BOUGHT, ("cls", 0): BOUGHT, ("cls", 4): IMPLIED, ("cls", 5): IMPLIED}
    want |= {("cls", 7): PSEUDO, ("cls", 3): PSEUDO}
    assert kinds_of(more.only("cls")) == want
    assert more["cls"].fill(lambda instances: instances * 10.0).tolist() == [
        90,
        0,
        40,
        50,
        0.25,
        0.75,
    ]
    assert kinds_of(more.with_task("seg", [5]).with_task("box", [2])) == {
        **want, ("seg", 5): BOUGHT, ("box", 2): BOUGHT,
    }  # fmt: skip
    assert kinds_of(more.with_task("cls", [4]).only("cls")) == {("cls", 4): BOUGHT}
    assert more.bought.counts == {"cls": 2, "seg": 2, "box": 1}
    assert more.bought["cls"].values is None
    assert more.without_implied()["cls"].fill(lambda instances: instances * 10.0).tolist() == [
        90,
        0,
        0.25,
        0.75,
    ]


def test_a_real_label_takes_the_place_of_a_predicted_one() -> None:
    labels = Labels({"cls": [0], "seg": [7]}).with_pseudo(
        "cls", np.array([7, 8]), np.array([0.5, 0.6])
    )
    marked = labels.with_implied(MASKS)
    assert kinds_of(marked.only("cls")) == {
        ("cls", 0): BOUGHT,
        ("cls", 8): PSEUDO,
        ("cls", 7): IMPLIED,
    }
    assert marked["cls"].fill(lambda instances: instances * 10.0).tolist() == [0, 0.6, 70]


INSTANCES = st.dictionaries(st.integers(0, 11), st.sampled_from([BOUGHT, PSEUDO]), max_size=8)
TREES = st.dictionaries(
    st.sampled_from(TASKS), st.sets(st.sampled_from(TASKS)).map(tuple), max_size=3
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(TASKS), INSTANCES), TREES)
def test_what_is_implied_is_what_bought_labels_say(
    kinds: dict[str, dict[int, str]], implies: dict
) -> None:
    implies = {by: tuple(task for task in tasks if task != by) for by, tasks in implies.items()}
    labels = Labels(
        {task: [i for i, kind in mine.items() if kind == BOUGHT] for task, mine in kinds.items()}
    )
    for task, mine in kinds.items():
        guesses = np.array([i for i, kind in mine.items() if kind == PSEUDO], dtype=np.int64)
        labels = labels.with_pseudo(task, guesses, guesses / 100) if len(guesses) else labels
    want = {(task, i): kind for task, mine in kinds.items() for i, kind in mine.items()}
    for by, tasks in implies.items():
        for task, i in product(
            tasks, [i for i, kind in kinds.get(by, {}).items() if kind == BOUGHT]
        ):
            if kinds.get(task, {}).get(i) != BOUGHT:
                want[task, i] = IMPLIED
    marked = labels.with_implied(implies)
    assert kinds_of(marked) == want
    assert kinds_of(marked.bought) == {key: kind for key, kind in want.items() if kind == BOUGHT}
    assert kinds_of(marked.without_implied()) == {
        key: kind for key, kind in want.items() if kind != IMPLIED
    }
    assert kinds_of(marked.with_implied(implies)) == want
    for task, have in marked.items():
        own = have.fill(lambda instances: instances + 0.0).tolist()
        for i, value in zip(have.instances.tolist(), own, strict=True):
            assert value == (i / 100 if want[task, i] == PSEUDO else i)


def test_labels_that_follow_are_not_drawn_again_unless_switched_off() -> None:
    labels = Labels({"a": range(10), "b": range(10, 30)}).with_implied({"b": ("a",)})
    assert set(
        draw(make(40), np.arange(40), {"a": 10}, seed=0, taken=labels)["a"].instances
    ) == set(range(30, 40))
    with pytest.raises(InputError, match="11 labels wanted, 10 instances left"):
        draw(make(40), np.arange(40), {"a": 11}, seed=0, taken=labels)
    assert len(draw(make(40), np.arange(40), {"a": 30}, seed=0, taken=labels.bought)["a"]) == 30


def test_marks_that_make_no_sense() -> None:
    two = np.array([1, 2])
    with pytest.raises(InputError, match=r"pseudo: 1 for 2 instances\nimplied: 3 for 2 instances"):
        TaskLabels(two, two, np.ones(1, dtype=bool), np.ones(3, dtype=bool))
    with pytest.raises(InputError, match="implied and pseudo"):
        TaskLabels(two, np.zeros(2), implied=np.array([True, False]))
    with pytest.raises(InputError, match="'seg' implies itself"):
        Labels({"seg": [1]}).with_implied({"seg": ("cls", "seg")})


# --- classes of masks ---


def by_hand(masks: np.ndarray, wanted: list[int], ignore: tuple[int, ...]) -> list[list[float]]:
    rows = []
    for mask in masks.tolist():
        seen = {pixel for line in mask for pixel in line} - set(ignore)
        rows.append([float(each in seen) if seen else float("nan") for each in wanted])
    return rows


@pytest.mark.parametrize(
    ("ignore", "background"),
    [((VOID,), ()), ((VOID,), (0,)), ((VOID, 7), (0, 3)), ((), (5, 1)), ((-1, 300), (2,))],
)
def test_classes_of_masks_by_hand(ignore: tuple[int, ...], background: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(ignore) + 10 * len(background))
    # two values each, so that most are absent
    few = [rng.choice([*range(6), *ignore], size=2) for _ in range(60)]
    masks = np.stack([rng.choice(each, size=(3, 4)) for each in few])
    found = classes_of_masks(masks, 6, ignore, background)
    wanted = [each for each in range(6) if each not in background]
    np.testing.assert_array_equal(found, by_hand(masks, wanted, ignore))
    assert found.dtype == np.float32
    assert {0, 1} <= set(found[~np.isnan(found)].tolist())


def test_a_mask_of_nothing_but_void_says_nothing() -> None:
    masks = np.array([np.full((2, 2), VOID), [[0, 0], [0, VOID]]], dtype=np.uint8)
    np.testing.assert_array_equal(classes_of_masks(masks, 2, background=(0,)), [[np.nan], [0]])
    assert classes_of_masks(masks[:0], 2).shape == (0, 2)


@pytest.mark.parametrize("size", [16, 64])
def test_masks_of_the_scenes_say_their_classes(size: int) -> None:
    """A kind too small to be seen is VOID in the mask and 0 in the classes, so that the two agree
    exactly."""
    scenes = make_scenes(120, size, seed=5)
    masks = scenes.labels["segmentation"]
    (surfaces,) = (target.classes for target in scenes.targets if target.name == "segmentation")
    (solids,) = (target.classes for target in scenes.targets if target.name == "classes")
    room = [at for at, name in enumerate(surfaces) if name not in solids]
    np.testing.assert_array_equal(
        classes_of_masks(masks, len(surfaces), background=room), scenes.labels["classes"]
    )
    assert size == 16 or (masks == VOID).any()


def test_masks_that_will_not_do() -> None:
    masks = np.array([[[0, 1]], [[9, 0]], [[0, 0]], [[-1, 1]]])
    with pytest.raises(
        InputError, match=r"mask 1: a pixel of 9 is none of 2 classes.*\nmask 3: a pixel of -1 "
    ) as caught:
        classes_of_masks(masks, 2)
    assert len(caught.value.mistakes) == 2
    with pytest.raises(
        InputError, match=r"mask 0: a pixel of 3 is none of 3 classes[\s\S]*the same in 3 more"
    ):
        classes_of_masks(np.full((8, 2, 2), 3), 3)
    with pytest.raises(InputError) as caught:
        classes_of_masks(np.zeros((2, 2)), 3, ignore=(VOID, 1), background=(3,))
    assert [mistake.where for mistake in caught.value.mistakes] == ["masks", "ignore", "background"]
    with pytest.raises(InputError, match="classes_count"):
        classes_of_masks(masks, 0)


# --- trained on ---


def test_a_learner_trains_on_implied_labels_as_on_bought_ones() -> None:
    """Class labels of pictures with a mask are derived from it, and nothing but their mark tells
    them from others."""
    torch = pytest.importorskip("torch")
    from allotment.learners.learner import train
    from allotment.learners.recipe import Recipe
    from allotment.learners.torch_learner import TorchLearner

    torch.set_num_threads(1)
    whole = make_scenes(30, 16)
    labels = Labels({"classes": range(6), "segmentation": range(4, 12)})
    lacking = np.arange(30) >= 6
    derived = classes_of_masks(whole.labels["segmentation"], 9, background=(0, 1, 2))
    blank = np.where(lacking[:, None], np.float32(np.nan), whole.labels["classes"])
    data = replace(whole, labels={**whole.labels, "classes": blank}, missing={"classes": lacking})
    filled = replace(
        data,
        labels={**data.labels, "classes": np.where(lacking[:, None], derived, blank)},
        missing={"classes": np.arange(30) >= 12},
    )
    parts, recipe = split(whole, 0), Recipe(steps=3, batch_size=4)
    marked = labels.with_implied({"segmentation": ("classes",)})
    bought = labels.with_task("classes", range(12))

    def answers(data: ArrayData, labels: Labels) -> bytes:
        learner = TorchLearner(data, parts, recipe)
        return learner.predict(train(learner, labels, 0), "classes", np.arange(30)).tobytes()

    with pytest.raises(InputError, match="a label is used that the data does not have"):
        answers(data, marked)
    assert answers(filled, marked) == answers(whole, bought)
    assert answers(filled, marked) != answers(whole, labels)
    assert answers(filled, marked.bought) == answers(whole, labels)


def test_soft_masks_beside_real_ones_with_void_pixels() -> None:
    real = np.array([[[0, 1], [2, 255]]], dtype=np.uint8)
    soft = np.full((1, 3, 2, 2), 1 / 3)
    labels = Labels({"mask": [0]}).with_pseudo("mask", np.array([1]), soft)["mask"]
    filled = labels.fill(lambda instances: real[instances])
    assert filled[0, :, 0, 0].tolist() == [1, 0, 0]
    assert filled[0, :, 1, 0].tolist() == [0, 0, 1]
    assert filled[0, :, 1, 1].tolist() == [0, 0, 0]
    assert (filled[1] == 1 / 3).all()
