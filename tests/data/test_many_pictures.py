"""Data sets of more pictures than fit into memory: opened by their names, decoded as they are
wanted."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from helpers.folders import SIDE, make_taskonomy, make_voc

from allotment.data import folder, pixels
from allotment.data.augment import fit_image
from allotment.data.folder import FolderData, KeptSquares
from allotment.data.labels import draw, split
from allotment.data.taskonomy import read_taskonomy
from allotment.data.voc import read_voc
from allotment.errors import InputError
from allotment.learners import feed
from allotment.learners.learner import measure, train
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

DATA = Path(os.environ.get("ALLOT_TEST_DATA", "nowhere"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="ALLOT_TEST_DATA is not set")
COPIES = 1500


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each picture was opened."""
    found: Counter[str] = Counter()
    open_inside = pixels.open_inside

    @contextmanager
    def count(root: Path, path: str, most: int = pixels.MOST_BYTES) -> Iterator[object]:
        found[path] += 1
        with open_inside(root, path, most) as file:
            yield file

    monkeypatch.setattr(pixels, "open_inside", count)
    return found


def multiply(root: Path) -> Path:
    """A Taskonomy of one point with very many views, all of them the same files."""
    make_taskonomy(root)
    for domain in sorted(root.iterdir()):
        first = next(path for path in domain.iterdir() if "point_0_view_0_" in path.name)
        for number in range(COPIES):
            (domain / first.name.replace("point_0_view_0", f"point_{number}_view_9")).hardlink_to(
                first
            )
    return root


def test_many_pictures_are_opened_when_they_are_wanted(
    tmp_path: Path, opened: Counter[str]
) -> None:
    data = read_taskonomy(multiply(tmp_path / "data"), side=SIDE)
    parts = data.split(0, 0.15, 0.2)
    assert data.size > COPIES
    assert data.known("depth").all()
    labels = draw(data, parts.train, {"depth": 5, "normals": 4}, 0)
    assert not opened
    data.inputs(parts.train[:3])
    data.values("depth", parts.train[:2])
    assert sum(opened.values()) == 3 + 2 * 2  # of a label, the size of its picture is looked at
    opened.clear()
    learner = TorchLearner(data, parts, Recipe(steps=2, batch_size=4))
    state = train(learner, labels, 0)
    learner.with_validation(parts.validation[:6]).score(state, "depth")
    wanted = {*labels["depth"].instances, *labels["normals"].instances, *parts.validation[:6]}
    names = {Path(path).name.partition("_domain")[0] for path in opened}
    assert len(names) <= len(wanted) + 1  # and one whose size is asked
    assert data._kept._left > folder.KEPT_BYTES - 300 * 3 * SIDE**2


def test_no_more_is_kept_than_there_is_room_for() -> None:
    kept = KeptSquares(room=100)
    for instance in range(3):
        kept.add("", instance, np.full(40, instance, dtype=np.uint8))
    assert [kept.get("", instance) is not None for instance in range(3)] == [True, True, False]
    assert kept.get("depth", 0) is None
    kept.add("depth", 0, np.zeros(20, dtype=np.uint8))
    assert kept.get("depth", 0) is not None


def load_whole(data: FolderData) -> dict[str, np.ndarray]:
    """All images and labels in arrays, as they were kept before: maps of numbers as halves."""
    found = {"": np.zeros((data.size, 3, data.side, data.side), dtype=np.uint8)}
    for target in data.targets:
        one = data.fit(target.name, data.label(target.name, 0))
        is_map = one.ndim > 1 and one.dtype == np.float32
        form = np.float16 if is_map else one.dtype
        found[target.name] = np.zeros((data.size, *one.shape), dtype=form)
    for instance in range(data.size):
        found[""][instance] = fit_image(data.image(instance), data.side)
        for target in data.targets:
            label = data.fit(target.name, data.label(target.name, instance))
            found[target.name][instance] = label
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in found.items()
    }


def assert_same_as_whole(data: FolderData) -> None:
    whole = load_whole(data)
    rng = np.random.default_rng(0)
    for _ in range(2):  # the second time some are kept
        some = rng.integers(0, data.size, size=(2, min(data.size, 40)))
        for name, array in whole.items():
            taken = data.values(name, some) if name else data.inputs(some)
            assert taken.dtype == array.dtype
            assert taken.tobytes() == array[some].tobytes()
            nobody = some[0, :0]
            empty = data.values(name, nobody) if name else data.inputs(nobody)
            assert empty.shape == (0, *array.shape[1:])


each_room = pytest.mark.parametrize("room", [0, 2000, 1 << 31])


@each_room
def test_what_is_read_as_it_is_wanted_is_what_loading_whole_gave(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "KEPT_BYTES", room)
    assert_same_as_whole(read_taskonomy(make_taskonomy(tmp_path / "views"), side=20))
    assert_same_as_whole(read_voc(make_voc(tmp_path / "voc"), side=33))


def cut_short(data: FolderData, count: int) -> FolderData:
    """The first instances alone."""
    from dataclasses import replace

    labels = {name: files[:count] for name, files in data.label_files.items()}
    groups = None if data.groups is None else data.groups[:count]
    return replace(
        data,
        image_files=data.image_files[:count],
        label_files=labels,
        ids=data.ids[:count],
        groups=groups,
    )


@real
@pytest.mark.parametrize("room", [0, 3_000_000])
def test_real_pictures_are_the_same_as_loaded_whole(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "KEPT_BYTES", room)
    assert_same_as_whole(cut_short(read_taskonomy(DATA / "taskonomy", side=128), 40))
    assert_same_as_whole(cut_short(read_voc(DATA / "VOC2012", side=128), 40))


def train_on(data: FolderData) -> tuple[list[bytes], list[float]]:
    """What a short training answers, and how it scores."""
    learner = TorchLearner(data, split(data, 0, 0.3, 0.1), Recipe(steps=4, batch_size=4))
    state = train(learner, draw(data, learner.split.train, dict.fromkeys(learner.tasks, 5), 0), 0)
    everyone = np.arange(data.size, dtype=np.int64)
    answers = [learner.predict(state, task, everyone).tobytes() for task in learner.tasks]
    return answers, [each.loss for each in measure(learner, state).values()]


def assert_room_does_not_matter(root: Path, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_on(cut_short(read_taskonomy(root, side=side), 60))
    monkeypatch.setattr(folder, "KEPT_BYTES", 20 * side**2)
    monkeypatch.setattr(feed, "HELD_BYTES", 60 * side**2)
    assert train_on(cut_short(read_taskonomy(root, side=side), 60)) == whole


def test_a_training_is_the_same_however_little_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_room_does_not_matter(multiply(tmp_path / "data"), SIDE, monkeypatch)


@real
@pytest.mark.long
def test_a_real_training_is_the_same_however_little_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert_room_does_not_matter(DATA / "taskonomy", 64, monkeypatch)


def test_a_damaged_picture_is_named_also_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "KEPT_BYTES", 0)
    data = read_voc(make_voc(tmp_path / "voc"), side=20)
    (data.root / data.image_files[1]).write_bytes(b"\xff\xd8nothing")
    everyone = np.array([0, 1, 1, 2])
    with pytest.raises(InputError) as caught:
        data.inputs(everyone)
    assert len(caught.value.mistakes) == 1
    assert data.image_files[1] in str(caught.value)
