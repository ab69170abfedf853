"""Zooms, crops and mirror images: what a pixel shows and what its labels say stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from allotment.data.augment import FILL, Augment, fit_image, fit_label
from allotment.data.dataset import VOID
from allotment.errors import InputError

Array = NDArray[Any]


class Script:
    """Chance without chance: a zoom, whether to mirror, and the first row and column."""

    def __init__(self, zoom: float = 1.0, mirror: bool = False, starts: tuple[int, int] = (0, 0)):
        self.zoom, self.draw, self.starts = zoom, 0.0 if mirror else 1.0, list(starts)

    def uniform(self, low: float, high: float) -> float:
        assert low <= self.zoom <= high
        return self.zoom

    def random(self) -> float:
        return self.draw

    def integers(self, low: int, high: int) -> int:
        start = self.starts.pop(0)
        assert low <= start < high
        return start


def picture(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (3, height, width), dtype=np.uint8)


def some_labels(height: int, width: int) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    normals = rng.normal(size=(3, height, width))
    return {
        "segmentation": rng.integers(0, 21, (height, width)).astype(np.uint8),
        "depth": rng.uniform(1, 5, (height, width)).astype(np.float32),
        "normals": (normals / np.linalg.norm(normals, axis=0)).astype(np.float32),
        "edges": rng.uniform(size=(height, width)).astype(np.float32),
        "keypoints": rng.uniform(size=(height, width)).astype(np.float32),
        "multilabel": np.array([0, 1, 1], dtype=np.float32),
        "classification": np.int64(3),
        "regression": np.float32(2.5),
    }


def same(ours: dict[str, Array], theirs: dict[str, Array]) -> None:
    assert ours.keys() == theirs.keys()
    for kind, values in ours.items():
        assert values.dtype == theirs[kind].dtype, kind
        np.testing.assert_array_equal(values, theirs[kind], err_msg=kind)


# --- what changes nothing, and what is undone ---


def test_the_whole_picture_at_its_own_size_is_itself() -> None:
    image, labels = picture(24, 24), some_labels(24, 24)
    seen, made = Augment(24, scales=(1, 1), flip=False).apply(
        image, labels, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(seen, image)
    same(made, labels)


def test_mirrored_twice_is_itself_and_once_is_not() -> None:
    image, labels = picture(24, 24), some_labels(24, 24)
    augment = Augment(24, scales=(1, 1))
    once, made = augment.apply(image, labels, Script(mirror=True))  # type: ignore[arg-type]
    np.testing.assert_array_equal(once, image[:, :, ::-1])
    assert (made["segmentation"] != labels["segmentation"]).any()
    twice, again = augment.apply(once, made, Script(mirror=True))  # type: ignore[arg-type]
    np.testing.assert_array_equal(twice, image)
    same(again, labels)


def test_what_is_given_is_left_alone() -> None:
    image, labels = picture(30, 40), some_labels(30, 40)
    before = {kind: values.copy() for kind, values in labels.items()}
    for seed in range(10):
        Augment(16).apply(image, labels, np.random.default_rng(seed))
    same(labels, before)


def test_the_same_chance_gives_the_same_view() -> None:
    image, labels = picture(30, 40), some_labels(30, 40)
    one, two = (Augment(16).apply(image, labels, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    same(one[1], two[1])
    other = Augment(16).apply(image, labels, np.random.default_rng(8))
    assert (one[0] != other[0]).any()


# --- crops and borders ---


def test_a_crop_is_a_cut_of_the_picture() -> None:
    image, labels = picture(30, 40), some_labels(30, 40)
    seen, made = Augment(12, scales=(1, 1)).apply(image, labels, Script(starts=(5, 9)))  # type: ignore[arg-type]
    np.testing.assert_array_equal(seen, image[:, 5:17, 9:21])
    for kind in ("segmentation", "depth", "normals", "edges", "keypoints"):
        np.testing.assert_array_equal(made[kind], labels[kind][..., 5:17, 9:21])


def test_around_a_small_picture_nothing_counts() -> None:
    image, labels = picture(10, 6), some_labels(10, 6)
    seen, made = Augment(16, scales=(1, 1)).apply(image, labels, Script(starts=(-4, -7)))  # type: ignore[arg-type]
    inner = (slice(4, 14), slice(7, 13))
    outer = np.ones((16, 16), dtype=bool)
    outer[inner] = False
    np.testing.assert_array_equal(seen[:, *inner], image)
    assert (seen[:, outer].T == FILL).all()
    assert (made["segmentation"][outer] == VOID).all()
    assert (made["segmentation"][inner] == labels["segmentation"]).all()
    for kind in ("depth", "normals", "edges", "keypoints"):
        assert np.isnan(made[kind][..., outer]).all(), kind
        np.testing.assert_array_equal(made[kind][..., *inner], labels[kind], err_msg=kind)


def test_unknown_stays_unknown() -> None:
    image, labels = picture(20, 20), some_labels(20, 20)
    labels["segmentation"][:, :10] = VOID
    for kind in ("depth", "normals", "edges", "keypoints"):
        labels[kind][..., :10] = np.nan
    _, made = Augment(20, scales=(2, 2)).apply(image, labels, Script(2, True, (7, 10)))  # type: ignore[arg-type]
    unknown = made["segmentation"] == VOID
    assert unknown.sum() == 20 * 10
    assert unknown[:, 10:].all()
    for kind in ("depth", "normals", "edges", "keypoints"):
        assert (np.isnan(made[kind]) == unknown).all(), kind


def test_all_crops_and_both_sides_come_up() -> None:
    image = np.zeros((3, 6, 8), dtype=np.uint8)
    image[0], image[1] = np.arange(6)[:, None], np.arange(8)
    rng = np.random.default_rng(0)
    seen = {
        tuple(Augment(4, (1, 1)).apply(image, {}, rng)[0][:2, 0, 0].tolist()) for _ in range(600)
    }
    assert seen == {
        (row, column) for row in range(3) for column in range(8)
    }  # the first column, or the last if mirrored


# --- pictures and labels together ---


@settings(max_examples=60, deadline=None)
@given(
    st.integers(8, 50),
    st.integers(8, 50),
    st.integers(4, 60),
    st.floats(0.4, 3.0),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_paint_follows_the_mask(
    height: int, width: int, crop: int, zoom: float, flip: bool, seed: int
) -> None:
    """A picture that shows its own mask: wherever it is not blurred it must show the mask that
    comes out."""
    coarse = np.random.default_rng(seed).integers(0, 2, (height // 4 + 1, width // 4 + 1))
    mask = coarse.repeat(4, 0).repeat(4, 1)[:height, :width].astype(np.uint8)
    image = np.stack([mask * 255] * 3)
    augment = Augment(crop, (zoom, zoom), flip)
    seen, made = augment.apply(image, {"segmentation": mask}, np.random.default_rng(seed))
    known = made["segmentation"] != VOID
    assert (seen[:, ~known].T == FILL).all()
    clear = known & (np.abs(seen[0].astype(int) - 127.5) > 70)
    assert ((seen[0] > 127) == (made["segmentation"] == 1))[clear].all()
    assert clear.sum() >= 0.3 * known.sum()


@pytest.mark.parametrize("zoom", [0.6, 1.0, 1.37, 2.0])
def test_a_crop_is_cut_from_what_pillow_makes_of_the_whole(zoom: float) -> None:
    image, (height, width) = picture(40, 52), (round(40 * zoom), round(52 * zoom))
    whole = Image.fromarray(image.transpose(1, 2, 0)).resize(
        (width, height), Image.Resampling.BILINEAR
    )
    seen, _ = Augment(20, (zoom, zoom)).apply(image, {}, Script(zoom, False, (3, 8)))  # type: ignore[arg-type]
    np.testing.assert_allclose(seen, np.asarray(whole).transpose(2, 0, 1)[:, 3:23, 8:28], atol=1)


def plane(normal: Array, size: int, focal: float) -> tuple[Array, Array]:
    """Depth and normals of a plane two metres ahead, seen by a camera with x to the right and y
    up."""
    normal = np.asarray(normal) / np.linalg.norm(normal)
    steps = (np.arange(size) + 0.5 - size / 2) / focal
    rays = np.stack(
        [np.broadcast_to(steps, (size, size)), -np.broadcast_to(steps[:, None], (size, size))]
    )
    rays = np.concatenate([rays, -np.ones((1, size, size))])
    depth = 2 * normal[2] / -np.tensordot(normal, rays, 1)
    return depth, np.broadcast_to(normal[:, None, None], (3, size, size)).copy()


def normals_of(depth: Array, focal: float) -> Array:
    """From neighbouring points in space, without knowing the plane."""
    size = len(depth)
    steps = (np.arange(size) + 0.5 - size / 2) / focal
    points = np.stack([steps * depth, -steps[:, None] * depth, -depth])
    across, down = (
        points[:, :-1, 1:] - points[:, :-1, :-1],
        points[:, 1:, :-1] - points[:, :-1, :-1],
    )
    found = np.cross(down, across, axis=0)
    return np.asarray(found / np.linalg.norm(found, axis=0))


@pytest.mark.parametrize("normal", [(0.5, 0.2, 1), (-0.8, 0, 1), (0.1, -0.6, 1)])
def test_normals_of_a_mirrored_plane_are_those_of_its_depth(normal: tuple[float, ...]) -> None:
    depth, normals = plane(np.array(normal), 32, 40)
    assert np.abs(normals_of(depth, 40) - normals[:, :-1, :-1]).max() < 1e-9
    given = {"depth": depth, "normals": normals}
    augment = Augment(32, (1, 1))
    _, made = augment.apply(picture(32, 32), given, Script(mirror=True))  # type: ignore[arg-type]
    assert np.abs(normals_of(made["depth"], 40) - made["normals"][:, :-1, :-1]).max() < 1e-9


def test_zooming_in_on_a_wall_is_stepping_towards_it() -> None:
    """A wall at two metres, seen twice as large, is a wall at one metre; and what was 8 pixels wide
    is 16."""
    depth = np.full((32, 32), 2.0)
    mask = np.zeros((32, 32), dtype=np.uint8)
    mask[12:20, 12:20] = 1
    given = {"depth": depth, "segmentation": mask}
    _, made = Augment(64, (2, 2)).apply(picture(32, 32), given, Script(zoom=2))  # type: ignore[arg-type]
    assert (made["depth"] == 1).all()
    assert made["segmentation"].sum() == 16 * 16


def test_zoomed_normals_are_unit_vectors() -> None:
    labels = some_labels(21, 33)
    for seed in range(20):
        _, made = Augment(40).apply(picture(21, 33), labels, np.random.default_rng(seed))
        lengths = np.linalg.norm(made["normals"], axis=0)
        assert np.allclose(lengths[~np.isnan(lengths)], 1, atol=1e-6)


# --- fixed squares ---


@pytest.mark.parametrize(
    ("height", "width"), [(60, 100), (100, 60), (37, 80), (64, 64), (1, 90), (20, 10)]
)
def test_a_square_holds_all_of_a_picture(height: int, width: int) -> None:
    mask = np.ones((height, width), dtype=np.uint8)
    image = np.full((3, height, width), 255, dtype=np.uint8)
    square, label = fit_image(image, 64), fit_label("segmentation", mask, 64)
    inside = label != VOID
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    assert max(len(rows), len(columns)) == 64
    assert abs(len(rows) / len(columns) - height / width) <= 1 / len(columns)
    assert inside.sum() == len(rows) * len(columns)
    assert abs((63 - rows[-1]) - rows[0]) <= 1
    assert abs((63 - columns[-1]) - columns[0]) <= 1
    assert (square[:, inside] == 255).all()
    assert (square[:, ~inside].T == FILL).all()


def test_classes_of_a_square_are_those_that_pillow_finds_nearest() -> None:
    mask = np.random.default_rng(0).integers(0, 21, (90, 120)).astype(np.uint8)
    nearest = Image.fromarray(mask).resize((64, 48), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(fit_label("segmentation", mask, 64)[8:56], np.asarray(nearest))


def test_means_are_over_what_is_known() -> None:
    depth = np.array(
        [[1, 3, np.nan, 5], [1, 3, np.nan, np.nan], [2, 2, 4, 4], [2, 2, 4, 8]], dtype=np.float32
    )
    np.testing.assert_allclose(fit_label("depth", depth, 2), [[2, np.nan], [2, 5]])
    assert fit_label("edges", depth, 2).shape == (2, 2)


def test_means_of_directions_are_directions() -> None:
    normals = np.zeros((3, 2, 4), dtype=np.float32)
    normals[:, :, 0], normals[:, :, 1] = np.array([[1], [0], [0]]), np.array([[0], [0], [1]])
    normals[:, :, 2], normals[:, :, 3] = np.array([[0], [1], [0]]), np.array([[0], [-1], [0]])
    found = fit_label("normals", normals, 2)[:, 0]
    np.testing.assert_allclose(found[:, 0], [0.5**0.5, 0, 0.5**0.5], atol=1e-6)
    assert np.isnan(found[:, 1]).all()  # opposite directions have no mean


def test_labels_of_whole_pictures_have_no_size() -> None:
    label = np.array([0, 1], dtype=np.float32)
    assert fit_label("multilabel", label, 8) is label


# --- mistakes ---


@pytest.mark.parametrize(
    "given",
    [{"crop": 0}, {"crop": 10**6}, {"crop": 8, "scales": (0, 1)}, {"crop": 8, "scales": (2, 1)}],
)
def test_impossible_views(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"crop: |scales: "):
        Augment(**given)


def test_labels_that_do_not_fit_are_all_named() -> None:
    labels = {
        "depth": np.ones((8, 9), dtype=np.float32),
        "normals": np.ones((8, 8), dtype=np.float32),
        "edges": np.ones((8, 8), dtype=np.int64),
        "segmentatoin": np.zeros((8, 8), dtype=np.uint8),
    }
    with pytest.raises(InputError) as caught:
        Augment(4).apply(picture(8, 8), labels, np.random.default_rng(0))
    said = "\n".join(map(str, caught.value.mistakes))
    assert len(caught.value.mistakes) == 4
    for part in (
        "'depth'",
        "(3, 8, 8) fits the image",
        "other maps are floats",
        "did you mean 'segmentation'?",
    ):
        assert part in said
    with pytest.raises(InputError, match="image: "):
        Augment(4).apply(np.zeros((8, 8, 3), dtype=np.uint8), {}, np.random.default_rng(0))
