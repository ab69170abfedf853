"""Taskonomy: the encodings of its files, the ways it is laid out, and what is said when something
is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.folders import (
    OFFICIAL,
    SAMPLE,
    SIDE,
    VIEWS,
    by_building,
    by_component,
    files_of,
    in_archive,
    in_building,
    in_flat_archive,
    save,
)
from helpers.folders import make_taskonomy as make
from numpy.typing import NDArray
from PIL import Image

from allotment.data.dataset import VOID, Dataset
from allotment.data.folder import FolderData, montage
from allotment.data.labels import split
from allotment.data.taskonomy import TASKONOMY_CLASSES, read_taskonomy
from allotment.errors import InputError

DATA = os.environ.get("ALLOT_TEST_DATA")


def mistakes_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return list(map(str, caught.value.mistakes))


def everything(data: FolderData) -> NDArray[np.int64]:
    return np.arange(data.size, dtype=np.int64)


# --- layouts ---


def test_it_is_a_data_set(tmp_path: Path) -> None:
    data = read_taskonomy(make(tmp_path), side=SIDE)
    assert isinstance(data, Dataset)
    assert data.ids == ("point_0_view_0", "point_0_view_1", "point_2_view_0", "point_10_view_3")
    assert data.groups is not None
    assert data.groups.tolist() == ["point_0", "point_0", "point_2", "point_10"]
    assert [(target.kind, target.metric, target.loss) for target in data.targets] == [
        ("segmentation", "loss", ""),
        ("normals", "loss", "l1"),
        ("depth", "loss", "l1"),
        ("keypoints", "loss", "l1"),
        ("edges", "loss", "l1"),
    ]
    assert data.targets[0].classes == TASKONOMY_CLASSES
    assert len(TASKONOMY_CLASSES) == 17
    shapes = {
        target.name: data.values(target.name, everything(data)).shape for target in data.targets
    }
    assert shapes == dict.fromkeys(shapes, (4, SIDE, SIDE)) | {"normals": (4, 3, SIDE, SIDE)}
    assert data.notes == ()


@pytest.mark.parametrize("names", [SAMPLE, OFFICIAL])
@pytest.mark.parametrize(
    "place", [by_building, in_building, by_component, in_archive, in_flat_archive]
)
def test_all_layouts_hold_the_same(
    tmp_path: Path, place: Callable[[Path, str, str], Path], names: dict[str, str]
) -> None:
    data = read_taskonomy(make(tmp_path, place, names), SIDE, groups="point", thorough=True)
    assert data.groups is not None
    above = "taskonomy/" if place is by_component else ""
    assert data.ids == tuple(
        f"{above}{name}/point_{point}_view_{view}" for name, point, view in VIEWS
    )
    assert len(set(data.groups)) == 5  # point 0 of one building is not point 0 of the other
    for instance, view in enumerate(VIEWS):
        held = files_of(*view)
        np.testing.assert_array_equal(data.image(instance).transpose(1, 2, 0), held["rgb"])
        depth = np.asarray(held["depth"], dtype=np.float64) / 512
        np.testing.assert_allclose(data.label("depth", instance), depth, rtol=1e-6)


def test_semantic_files_with_the_samples_name_in_the_full_sets_folder(tmp_path: Path) -> None:
    """As they are in the full set."""
    make(tmp_path)
    (tmp_path / "segmentsemantic").rename(tmp_path / "segment_semantic")
    assert read_taskonomy(tmp_path, side=SIDE, thorough=True).known("segmentation").all()


def test_tasks_of_choice(tmp_path: Path) -> None:
    make(tmp_path)
    shutil.rmtree(tmp_path / "edge2d")
    data = read_taskonomy(tmp_path, side=SIDE, tasks=["depth", "segmentation"], thorough=True)
    assert [target.name for target in data.targets] == ["segmentation", "depth"]


def test_views_without_a_label_are_unknown_there(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "depth/point_2_view_0_domain_depth.png").unlink()
    (tmp_path / "normal/point_0_view_1_domain_normal.png").unlink()
    (tmp_path / "rgb/point_10_view_3_domain_rgb.png").unlink()
    data = read_taskonomy(tmp_path, side=SIDE, thorough=True)
    assert data.size == 3
    assert data.known("depth").tolist() == [True, True, False]
    assert data.known("normals").tolist() == [True, False, True]
    assert np.isnan(data.values("depth", np.array([2]))).all()
    assert np.isnan(data.label("normals", 1)).all()
    assert data.label("normals", 1).shape == (3, SIDE, SIDE)
    assert "1 views have no label of depth" in data.notes
    assert "1 labels of edges are left out: their images are not there" in data.notes


def test_other_files_are_none_of_ours(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "rgb/.DS_Store").write_bytes(b"x")
    (tmp_path / "rgb/README.txt").write_bytes(b"x")
    (tmp_path / "places365.npz").write_bytes(b"x")
    (tmp_path / "reshading").mkdir()
    assert read_taskonomy(tmp_path, side=SIDE, thorough=True).size == 4


# --- encodings ---


def rewrite(root: Path, domain: str, array: NDArray[np.generic]) -> FolderData:
    """The flat sample with another file for point 0, view 0."""
    make(root)
    save(root / SAMPLE[domain] / f"point_0_view_0_domain_{SAMPLE[domain]}.png", array)
    return read_taskonomy(root, side=SIDE)


def square(*first: object, dtype: type = np.uint8, rest: object = 0) -> NDArray[np.generic]:
    """An image whose first pixels are these."""
    held = np.empty((SIDE, SIDE, *np.shape(rest)), dtype=dtype)
    held[:] = rest
    held[0, : len(first)] = first
    return held


def test_segmentation(tmp_path: Path) -> None:
    data = rewrite(tmp_path, "segmentation", square(0, 1, 2, 3, 17, rest=1))
    assert data.values("segmentation", np.array([0]))[0, 0, :6].tolist() == [VOID, 0, 1, 2, 16, 0]
    assert [TASKONOMY_CLASSES[at] for at in (0, 2, 16)] == ["background", "chair", "vase"]


def test_normals(tmp_path: Path) -> None:
    """Of a wall ahead, a wall on the left, a floor and a slope; then of nothing, in three ways."""
    colours = [(128, 128, 0), (255, 128, 128), (127, 0, 127), (128, 37, 37)]
    nothing = [(127, 127, 127), (128, 128, 128), (127, 128, 128), (160, 128, 128), (255, 255, 255)]
    data = rewrite(tmp_path, "normals", square(*colours, *nothing, rest=(128, 128, 0)))
    found = data.label("normals", 0)[:, 0]
    half = 0.5**0.5
    np.testing.assert_allclose(
        found[:, :4].T, [(0, 0, 1), (1, 0, 0), (0, 1, 0), (0, half, half)], atol=0.01
    )
    np.testing.assert_allclose(np.linalg.norm(found[:, :4], axis=0), 1, atol=1e-6)
    assert np.isnan(found[:, 4:9]).all()
    kept = data.values("normals", np.array([0]))[0, :, 0]
    assert kept.dtype == np.float32
    np.testing.assert_allclose(kept, found, atol=5e-4)


def test_depth(tmp_path: Path) -> None:
    data = rewrite(tmp_path, "depth", square(512, 1024, 65535, 65534, dtype=np.uint16, rest=700))
    np.testing.assert_array_equal(data.label("depth", 0)[0, :3], [1, 2, np.nan])
    assert data.label("depth", 0)[0, 3] == pytest.approx(65534 / 512)
    kept = data.values("depth", np.array([0]))[0]
    assert np.isnan(kept[0, 2])
    np.testing.assert_allclose(kept[1:], 700 / 512, rtol=2**-11)


@pytest.mark.parametrize(("task", "full"), [("keypoints", 1000), ("edges", 10700)])
def test_strengths(tmp_path: Path, task: str, full: int) -> None:
    """A difference of ten of the spreads that Standley et al. divide by (100 and 1070) is 1."""
    data = rewrite(
        tmp_path,
        task,
        square(0, full // 10, full, full + 1, 65535, dtype=np.uint16, rest=full // 2),
    )
    np.testing.assert_allclose(data.label(task, 0)[0, :6], [0, 0.1, 1, 1, 1, 0.5], rtol=1e-6)


def test_smaller_squares_leave_out_what_is_unknown(tmp_path: Path) -> None:
    make(tmp_path)
    raw = np.full((SIDE, SIDE), 1024, dtype=np.uint16)
    raw[:2, :2] = 65535
    raw[0, 2] = 65535
    save(tmp_path / "depth/point_0_view_0_domain_depth.png", raw)
    small = read_taskonomy(tmp_path, side=SIDE // 2).values("depth", np.array([0]))[0]
    assert np.isnan(small[0, 0])
    assert np.isnan(small).sum() == 1
    np.testing.assert_allclose(small[~np.isnan(small)], 2)  # not drawn towards 128 m


# --- splits and fingerprints ---


def test_views_of_a_point_stay_together(tmp_path: Path) -> None:
    data = read_taskonomy(make(tmp_path, by_building), side=SIDE, groups="point")
    groups = np.asarray(data.groups)
    for seed in range(20):
        drawn = split(data, seed, validation=0.3, test=0.3)
        parts = [set(groups[part]) for part in (drawn.train, drawn.validation, drawn.test)]
        assert sum(map(len, parts)) == len(set(groups))


def test_several_buildings_are_trained_or_tested_on_as_a_whole(tmp_path: Path) -> None:
    data = read_taskonomy(make(tmp_path, by_building), side=SIDE)
    buildings = np.array([name.partition("/")[0] for name in data.ids])
    assert np.asarray(data.groups).tolist() == buildings.tolist()
    for seed in range(10):
        drawn = data.split(seed, validation=0.0, test=0.25)
        tested = set(buildings[drawn.test])
        assert len(tested) == 1
        assert tested | set(buildings[drawn.train]) == {"Allen", "Baker"}
        assert not tested & set(buildings[drawn.train])


def test_a_single_building_is_split_by_its_points(tmp_path: Path) -> None:
    data = read_taskonomy(make(tmp_path), side=SIDE)
    assert set(np.asarray(data.groups)) == {"point_0", "point_2", "point_10"}
    assert [part.tolist() for part in vars(data.split(0, 0.3, 0.3)).values()] == [
        part.tolist() for part in vars(split(data, 0, 0.3, 0.3)).values()
    ]
    with pytest.raises(InputError, match="'room' is none of building, point"):
        read_taskonomy(tmp_path, groups="room")


def test_a_fingerprint_is_of_what_is_there(tmp_path: Path) -> None:
    make(tmp_path / "one")
    first = read_taskonomy(tmp_path / "one").fingerprint
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert read_taskonomy(tmp_path / "two").fingerprint == first
    path = tmp_path / "two/edge2d/point_2_view_0_domain_edge2d.png"
    raw = np.array(Image.open(path))
    raw[3, 3] ^= 1
    save(path, raw)
    assert read_taskonomy(tmp_path / "two").fingerprint != first
    assert read_taskonomy(tmp_path / "one", tasks=["depth"]).fingerprint != first


# --- mistakes ---


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    assert "is not a folder" in mistakes_of(lambda: read_taskonomy(tmp_path / "nowhere"))[0]
    assert "has no folder rgb" in mistakes_of(lambda: read_taskonomy(tmp_path))[0]
    (tmp_path / "sample/rgb/deep").mkdir(parents=True)
    assert "rgb: holds no image" in "\n".join(mistakes_of(lambda: read_taskonomy(tmp_path)))
    make(tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole/depth")
    shutil.rmtree(tmp_path / "whole/edge2d")
    said = mistakes_of(lambda: read_taskonomy(tmp_path / "whole"))
    assert len(said) == 2
    assert (
        "there is no folder depth or depth_zbuffer; add it, or leave depth out (tasks=...)"
        in said[0]
    )


def test_names_that_are_none(tmp_path: Path) -> None:
    make(tmp_path)
    assert (
        "did you mean 'normals'?"
        in mistakes_of(lambda: read_taskonomy(tmp_path, tasks=["normal"]))[0]
    )
    assert "none is named" in mistakes_of(lambda: read_taskonomy(tmp_path, tasks=[]))[0]
    assert "side: " in mistakes_of(lambda: read_taskonomy(tmp_path, side=0))[0]


def test_files_in_wrong_places(tmp_path: Path) -> None:
    make(tmp_path)
    shutil.copy(
        tmp_path / "rgb/point_0_view_0_domain_rgb.png",
        tmp_path / "depth/point_5_view_0_domain_rgb.png",
    )
    shutil.copy(
        tmp_path / "edge2d/point_0_view_0_domain_edge2d.png",
        tmp_path / "edge2d/point_00_view_0_domain_edge2d.png",
    )
    said = mistakes_of(lambda: read_taskonomy(tmp_path))
    assert len(said) == 2
    assert any("calls itself rgb in a folder of depth" in each for each in said)
    assert any("is the same view as" in each for each in said)


def test_two_folders_for_one_thing(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "depth_zbuffer").mkdir()
    assert "has both depth and depth_zbuffer" in mistakes_of(lambda: read_taskonomy(tmp_path))[0]


def test_bad_files_are_met_when_needed_and_found_by_a_thorough_look(tmp_path: Path) -> None:
    make(tmp_path)
    name = "point_2_view_0_domain_{}.png"
    save(tmp_path / "depth" / name.format("depth"), np.zeros((SIDE, SIDE), dtype=np.uint8))
    save(tmp_path / "normal" / name.format("normal"), np.zeros((SIDE, SIDE, 4), dtype=np.uint8))
    save(tmp_path / "segmentsemantic" / name.format("segmentsemantic"), square(18))
    save(tmp_path / "edge2d" / name.format("edge2d"), np.zeros((SIDE, SIDE + 1), dtype=np.uint16))
    cut = tmp_path / "keypoint2d" / name.format("keypoint2d")
    cut.write_bytes(cut.read_bytes()[:200])
    data = read_taskonomy(tmp_path, side=SIDE)
    assert data.values("depth", np.array([0, 1, 3])).shape == (3, SIDE, SIDE)
    assert (
        "shades of grey with 8 bits"
        in mistakes_of(lambda: data.values("depth", everything(data)))[0]
    )
    said = mistakes_of(lambda: read_taskonomy(tmp_path, side=SIDE, thorough=True))
    assert len(said) == 5
    for part in (
        "save it as a grey PNG with 16 bits",
        "RGB colours with transparency",
        "has class 18; Taskonomy has 0 to 17",
        "has 17 x 16 pixels, and its image 16 x 16",
        "is cut short or damaged",
    ):
        assert any(part in each for each in said), part


def test_links_that_lead_out(tmp_path: Path) -> None:
    make(tmp_path / "data")
    path = tmp_path / "data/rgb/point_2_view_0_domain_rgb.png"
    shutil.move(path, tmp_path / "secret.png")
    path.symlink_to(tmp_path / "secret.png")
    assert (
        "is a link that leads out of" in mistakes_of(lambda: read_taskonomy(tmp_path / "data"))[0]
    )
    path.unlink()
    shutil.move(tmp_path / "data/depth", tmp_path / "depth")
    (tmp_path / "data/depth").symlink_to(tmp_path / "depth")
    assert (
        "depth: is a link that leads out of"
        in mistakes_of(lambda: read_taskonomy(tmp_path / "data"))[0]
    )


# --- for the eye ---


def test_a_montage_shows_what_is_there(tmp_path: Path) -> None:
    make(tmp_path)
    raw = np.full((SIDE, SIDE), 5120, dtype=np.uint16)
    raw[:8], raw[8, 8] = 512, 65535
    save(tmp_path / "depth/point_0_view_0_domain_depth.png", raw)
    wide = SIDE + 2
    shown = montage(read_taskonomy(tmp_path, side=SIDE), [0, 2])
    assert shown.shape == (2 * wide, 6 * wide, 3)
    normals, depth = (shown[1 : SIDE + 1, at * wide + 1 : (at + 1) * wide - 1] for at in (2, 3))
    # a wall ahead is blue
    assert np.abs(normals.reshape(-1, 3).astype(int) - (127, 127, 255)).max() <= 1
    assert depth[:8].min() > 250  # near is light
    assert depth[9:].max() < 5
    assert len(set(depth[8, 8].tolist())) > 1  # what is unknown has a colour


# --- the real thing ---


@pytest.fixture(scope="module")
def sample() -> FolderData:
    if not DATA:
        pytest.skip("ALLOT_TEST_DATA does not name a folder with taskonomy/")
    return read_taskonomy(Path(DATA) / "taskonomy")


def test_real_views(sample: FolderData) -> None:
    groups = np.asarray(sample.groups)
    assert (sample.size, len(set(groups))) == (542, 105)
    assert all(sample.known(target.name).all() for target in sample.targets)
    drawn = split(sample, 0)
    parts = [set(groups[part]) for part in (drawn.train, drawn.validation, drawn.test)]
    assert sum(map(len, parts)) == 105


def test_real_values(sample: FolderData) -> None:
    some = np.arange(0, sample.size, 20)
    masks = sample.values("segmentation", some)
    assert set(np.unique(masks)) <= {*range(17), VOID}
    assert (masks == 0).mean() > 0.7
    for task in ("keypoints", "edges"):
        values = sample.values(task, some)
        assert values.min() >= 0
        assert 0.3 < values.max() <= 1
    depth = sample.values("depth", some)
    assert 0.3 < np.nanmin(depth) < np.nanmax(depth) < 10
    normals = sample.values("normals", some)
    lengths = np.linalg.norm(normals, axis=1)
    np.testing.assert_allclose(lengths[~np.isnan(lengths)], 1, atol=2e-3)


def test_real_normals_point_where_depth_says(sample: FolderData) -> None:
    """Surfaces that come nearer to the right face left, those that come nearer downwards face up,
    and all face us."""
    for instance in range(0, sample.size, 60):
        depth, normals = (
            np.log(sample.label("depth", instance)),
            sample.label("normals", instance)[:, 1:-1, 1:-1],
        )
        right, down = depth[1:-1, 2:] - depth[1:-1, :-2], depth[2:, 1:-1] - depth[:-2, 1:-1]
        smooth = (np.abs(right) < 0.05) & (np.abs(down) < 0.05) & ~np.isnan(normals).any(axis=0)
        assert np.corrcoef(right[smooth], normals[0][smooth])[0, 1] > 0.7
        assert np.corrcoef(-down[smooth], normals[1][smooth])[0, 1] > 0.7
        assert np.median(normals[2][smooth]) > 0
