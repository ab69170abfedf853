"""The built-in scenes: each label checked against the geometry of the scene, by formulas other than
the renderer's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from allotment.data.dataset import VOID, ArrayData
from allotment.data.scenes import RING, SOLIDS, SURFACES, draw_scene, make_scenes, montage
from allotment.errors import InputError

COUNT, SIZE, SEED = 96, 64, 0
WALL, FLOOR, CEILING = range(3)


@pytest.fixture(scope="module")
def data() -> ArrayData:
    return make_scenes(COUNT, SIZE, SEED)


def camera_rays(scene, size=SIZE):
    """Unit vectors (3, h, w) in camera coordinates: x right, y up, z backwards."""
    middles = (np.arange(size) + 0.5) / size * 2 - 1
    x, y = np.meshgrid(middles * scene.spread, -middles * scene.spread)
    rays = np.stack([x, y, -np.ones_like(x)])
    return rays / np.linalg.norm(rays, axis=0)


def in_room(scene, depth):
    """The point of the room (3, h, w) that each pixel shows."""
    seen = np.einsum("ij,jhw->ihw", scene.view, camera_rays(scene, depth.shape[0]) * depth)
    return scene.eye[:, None, None] + seen


def outside(solid, points):
    """Below 0 inside the solid, 0 on its surface, above outside; points (3, ...)."""
    gap = points - solid.centre.reshape(3, *[1] * (points.ndim - 1))
    x, y, z = np.einsum("ji,j...->i...", solid.turn, gap) / solid.stretch.reshape(
        3, *[1] * (points.ndim - 1)
    )
    across, square = np.hypot(x, y), np.maximum(abs(x), abs(y))
    return {
        "box": np.maximum(square, abs(z)) - 1,
        "sphere": np.sqrt(x * x + y * y + z * z) - 1,
        "cylinder": np.maximum(across, abs(z)) - 1,
        "cone": np.maximum(across - (1 - z) / 2, -1 - z),
        "pyramid": np.maximum(square - (1 - z) / 2, -1 - z),
        "torus": np.hypot(across - 1, z) - RING,
    }[solid.kind]


def differs(values):
    """Pixels that differ from a neighbour beside, above or below; values (..., h, w)."""
    marks = np.zeros(values.shape[-2:], dtype=bool)
    across = (values[..., :, 1:] != values[..., :, :-1]).reshape(-1, SIZE, SIZE - 1).any(0)
    down = (values[..., 1:, :] != values[..., :-1, :]).reshape(-1, SIZE - 1, SIZE).any(0)
    marks[:, 1:] |= across
    marks[:, :-1] |= across
    marks[1:] |= down
    marks[:-1] |= down
    return marks


def grow(marks, times=1):
    for _ in range(times):
        wide = np.pad(marks, 1)
        marks = np.any(
            [wide[r : r + SIZE, c : c + SIZE] for r in range(3) for c in range(3)], axis=0
        )
    return marks


def test_shapes_types_and_ranges(data):
    forms = {
        "classes": ((COUNT, len(SOLIDS)), np.float32, 0, 1),
        "segmentation": ((COUNT, SIZE, SIZE), np.uint8, 0, VOID),
        "depth": ((COUNT, SIZE, SIZE), np.float32, 0.3, 12),
        "normals": ((COUNT, 3, SIZE, SIZE), np.float32, -1.00001, 1.00001),
        "edges": ((COUNT, SIZE, SIZE), np.float32, 0, 1),
        "keypoints": ((COUNT, SIZE, SIZE), np.float32, 0, 1),
    }
    assert data.name == "scenes"
    assert data.ids[17] == "scene-000017"
    assert len(data.ids) == data.size == COUNT
    assert data.features.shape == (COUNT, 3, SIZE, SIZE)
    assert data.features.dtype == np.uint8
    assert [target.name for target in data.targets] == list(forms)
    assert [target.kind for target in data.targets] == ["multilabel", *list(forms)[1:]]
    for name, (shape, dtype, low, high) in forms.items():
        labels = data.labels[name]
        assert labels.shape == shape
        assert labels.dtype == dtype
        assert low <= labels.min() < labels.max() <= high
    classes = np.unique(data.labels["segmentation"])
    assert set(classes) - {VOID} == set(range(len(SURFACES)))


def test_pictures_are_neither_flat_nor_burnt_out(data):
    spread = data.features.reshape(COUNT, -1).std(axis=1)
    level = data.features.reshape(COUNT, -1).mean(axis=1)
    assert spread.min() > 10
    assert 60 < level.min() < level.max() < 230
    assert (data.features == 255).mean() < 0.05


def test_normals_are_unit_vectors_that_face_the_camera(data):
    normals = data.labels["normals"]
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-5)
    for index in range(COUNT):
        facing = (normals[index] * camera_rays(draw_scene(SEED, index))).sum(0)
        assert facing.max() < 0.02


def test_depth_and_normals_put_the_room_where_it_is(data):
    for index in range(COUNT):
        scene = draw_scene(SEED, index)
        points, mask = (
            in_room(scene, data.labels["depth"][index]),
            data.labels["segmentation"][index],
        )
        normals = np.einsum("ij,jhw->ihw", scene.view, data.labels["normals"][index])
        np.testing.assert_allclose(points[2][mask == FLOOR], 0, atol=1e-4)
        np.testing.assert_allclose(points[2][mask == CEILING], scene.room[2], atol=1e-4)
        np.testing.assert_allclose(normals[2][mask == FLOOR], 1, atol=1e-4)
        np.testing.assert_allclose(normals[2][mask == CEILING], -1, atol=1e-4)
        from_walls = np.stack(
            [points[0], scene.room[0] - points[0], points[1], scene.room[1] - points[1]]
        )
        inward = np.stack([normals[0], -normals[0], normals[1], -normals[1]])
        wall = mask == WALL
        np.testing.assert_allclose(from_walls.min(0)[wall], 0, atol=1e-4)
        nearest = np.take_along_axis(inward, from_walls.argmin(0)[None], axis=0)[0]
        corner = np.sort(from_walls, axis=0)[1] < 1e-3
        np.testing.assert_allclose(nearest[wall & ~corner], 1, atol=1e-4)


def test_neighbours_on_one_plane_satisfy_its_equation(data):
    checked = 0
    for index in range(COUNT):
        points = np.moveaxis(
            camera_rays(draw_scene(SEED, index)) * data.labels["depth"][index], 0, -1
        )
        normals = np.moveaxis(data.labels["normals"][index], 0, -1)
        sharp, mask = data.labels["edges"][index] > 0, data.labels["segmentation"][index]
        same = (normals[:, 1:] == normals[:, :-1]).all(-1) & (mask[:, 1:] == mask[:, :-1])
        same &= ~sharp[:, 1:] & ~sharp[:, :-1]
        off = ((points[:, 1:] - points[:, :-1]) * normals[:, 1:]).sum(-1)[same]
        assert abs(off).max() < 2e-5
        checked += (same & (mask[:, 1:] > CEILING)).sum()
    assert checked > 1000


def test_solids_are_seen_where_their_surfaces_are(data):
    for index in range(COUNT):
        scene = draw_scene(SEED, index)
        points, mask = (
            in_room(scene, data.labels["depth"][index]),
            data.labels["segmentation"][index],
        )
        for kind, name in enumerate(SOLIDS, start=3):
            shown = points[:, mask == kind]
            if shown.size:
                gaps = [outside(solid, shown) for solid in scene.solids if solid.kind == name]
                assert np.abs(gaps).min(0).max() < 5e-3


def test_nothing_stands_before_what_is_seen(data):
    """No holes: along the way to each pixel's point, no place is inside a solid."""
    for index in range(0, COUNT, 4):
        scene = draw_scene(SEED, index)
        points = in_room(scene, data.labels["depth"][index])
        eye = scene.eye[:, None, None, None]
        ways = eye + (points[..., None] - eye) * np.linspace(0.1, 0.999, 60)
        for solid in scene.solids:
            near = ((ways - solid.centre[:, None, None, None]) ** 2).sum(0) < solid.radius**2
            assert outside(solid, ways[:, near]).min(initial=0) > -0.03


def test_solids_do_not_overlap_and_stay_in_the_room():
    rng = np.random.default_rng(0)
    for index in range(60):
        scene = draw_scene(SEED, index)
        for number, solid in enumerate(scene.solids):
            places = solid.centre[:, None] + rng.uniform(-1, 1, (3, 3000)) * solid.radius
            inside = places[:, outside(solid, places) < 0]
            assert inside.size
            assert (inside > -1e-6).all()
            assert (inside < scene.room[:, None]).all()
            for other in scene.solids[:number]:
                assert outside(other, inside).min() >= -1e-6


def test_classes_are_what_the_mask_shows(data):
    masks, void = data.labels["segmentation"], 0
    for kind in range(len(SOLIDS)):
        pixels = (masks == kind + 3).sum(axis=(1, 2))
        np.testing.assert_array_equal(data.labels["classes"][:, kind], pixels > 0)
        assert pixels[pixels > 0].min() >= 8
    for index in range(COUNT):
        hidden = masks[index] == VOID
        void += hidden.any()
        points = in_room(draw_scene(SEED, index), data.labels["depth"][index])[:, hidden]
        kinds = {solid.kind for solid in draw_scene(SEED, index).solids}
        shown = {
            name for name, there in zip(SOLIDS, data.labels["classes"][index], strict=True) if there
        }
        assert hidden.sum() < 8 * len(kinds - shown) or not hidden.any()
        gaps = [
            abs(outside(solid, points))
            for solid in draw_scene(SEED, index).solids
            if solid.kind not in shown
        ]
        assert not hidden.any() or np.min(gaps, axis=0).max() < 5e-3
    assert 0 < void < COUNT / 4


def test_kinds_are_unequally_frequent():
    share = dict(zip(SOLIDS, make_scenes(500, 32, seed=3).labels["classes"].mean(0), strict=True))
    assert 0.47 < share["box"] < 0.63
    assert 0.09 < share["torus"] < 0.21
    assert share["torus"] < share["pyramid"] < share["sphere"]


def test_edges_are_where_surfaces_change(data):
    explained = total = 0
    for index in range(COUNT):
        edges, mask = data.labels["edges"][index], data.labels["segmentation"][index]
        assert edges[differs(mask)].min() > 0.99
        normals, depth = data.labels["normals"][index], data.labels["depth"][index]
        bend = differs(np.round(normals * 4)) | differs(np.round(np.log(depth) * 10))
        strong = edges > 0.9
        explained += (strong & grow(differs(mask) | bend)).sum()
        total += strong.sum()
        floor = ~grow(mask != FLOOR, times=2)
        assert edges[floor].max(initial=0) == 0
        assert ((edges > 0) <= grow(strong)).all()
    assert explained > 0.98 * total
    assert 0.05 < total / data.labels["edges"].size < 0.3


def test_creases_of_a_box_are_edges(data):
    found = 0
    for index in range(COUNT):
        normals, mask = data.labels["normals"][index], data.labels["segmentation"][index]
        box = mask == SURFACES.index("box")
        turned = abs((normals[:, :, 1:] * normals[:, :, :-1]).sum(0)) < 0.5
        crease = turned & box[:, 1:] & box[:, :-1]
        assert data.labels["edges"][index][:, 1:][crease].min(initial=1) > 0.99
        found += crease.sum()
    assert found > 100


def keypoints_of(scene):
    """Row, column and distance of each keypoint before the camera, hidden or not."""
    ends = [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    apex, base = [0, 0, 1], [end for end in ends if end[2] < 0]
    unit = {"box": ends, "pyramid": [apex, *base], "cone": [apex], "cylinder": [apex, [0, 0, -1]]}
    points = [np.array(end) * scene.room for end in np.clip(ends, 0, 1)]
    for solid in scene.solids:
        points += [
            solid.centre + solid.turn @ (solid.stretch * point)
            for point in unit.get(solid.kind, [])
        ]
        if solid.kind == "sphere":
            toward = scene.eye - solid.centre
            points.append(solid.centre + toward / np.linalg.norm(toward) * solid.stretch[0])
    x, y, z = scene.view.T @ (np.array(points) - scene.eye).T
    front = z < -0.01
    away = np.sqrt(x * x + y * y + z * z)[front]
    x, y = x[front] / -z[front] / scene.spread, y[front] / -z[front] / scene.spread
    return (1 - y) * SIZE / 2 - 0.5, (1 + x) * SIZE / 2 - 0.5, away


def test_keypoints_are_the_visible_corners_and_no_others(data):
    peaks = hidden = 0
    for index in range(COUNT):
        rows, columns, away = keypoints_of(draw_scene(SEED, index))
        heat, depth = data.labels["keypoints"][index], data.labels["depth"][index]
        wide = np.pad(heat, 1)
        around = np.max(
            [wide[r : r + SIZE, c : c + SIZE] for r in range(3) for c in range(3)], axis=0
        )
        for row, column in np.argwhere((heat == around) & (heat > 0.75)):
            assert np.hypot(rows - row, columns - column).min() < 1
            peaks += 1
        inside = (abs(rows - 31.5) < 31) & (abs(columns - 31.5) < 31)
        rows, columns, away = rows[inside], columns[inside], away[inside]
        at = np.round(rows).astype(int), np.round(columns).astype(int)
        apart = (
            np.hypot(rows - rows[:, None], columns - columns[:, None]) + 99 * np.eye(len(rows)) > 6
        )
        nearby = np.pad(depth, 1, mode="edge")
        around = [nearby[at[0] + r, at[1] + c] for r in range(3) for c in range(3)]
        covered = (np.max(around, axis=0) < away - 0.3) & apart.all(axis=0)
        assert heat[at][covered].max(initial=0) < 0.1
        assert heat[at][np.min(around, axis=0) > away - 0.01].min(initial=1) > 0.7
        hidden += covered.sum()
    assert peaks > 4 * COUNT
    assert hidden > COUNT / 4


def test_a_picture_depends_on_seed_index_and_size_only():
    few, many = make_scenes(3, 32, seed=5), make_scenes(70, 32, seed=5)
    for name in few.labels:
        np.testing.assert_array_equal(few.labels[name], many.labels[name][:3])
    np.testing.assert_array_equal(few.features, many.features[:3])


def test_same_seed_same_bytes_in_another_process():
    code = (
        "from allotment.data.scenes import make_scenes; print(make_scenes(20, 32,"
        " seed=9).fingerprint)"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == make_scenes(20, 32, seed=9).fingerprint


def test_seeds_and_indices_differ():
    depths = np.concatenate([make_scenes(150, 16, seed).labels["depth"] for seed in (0, 1)])
    assert len(np.unique(depths.reshape(300, -1), axis=0)) == 300


@pytest.mark.parametrize("size", [16, 33])
def test_other_sizes_show_the_same_scene(size):
    small, large = make_scenes(6, size, seed=2), make_scenes(6, 3 * size, seed=2)
    assert small.features.shape == (6, 3, size, size)
    for name in ("depth", "normals"):
        np.testing.assert_array_equal(
            np.abs(small.labels[name] - large.labels[name][..., 1::3, 1::3]).reshape(6, -1) > 1e-3,
            False,
        )
    assert np.abs(small.features.mean((1, 2, 3)) - large.features.mean((1, 2, 3))).max() < 8


def test_bad_arguments_are_named_all_at_once():
    with pytest.raises(InputError) as caught:
        make_scenes(count=0, size=4, seed=-1)
    assert str(caught.value).splitlines() == [
        "count: 0 is not a whole number of 1 or more",
        "size: 4 is not a whole number of 16 or more",
        "seed: -1 is not a whole number of 0 or more",
    ]


@pytest.mark.parametrize("wrong", [{"count": 2.5}, {"size": "64"}, {"seed": None}, {"count": True}])
def test_other_types_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        make_scenes(**{"count": 1, "size": 16, **wrong})


def test_montage_shows_a_row_for_each_instance(data):
    shown = montage(data, [4, 0, 9], zoom=2)
    tile = 2 * SIZE + 4
    assert shown.dtype == np.uint8
    assert shown.shape == (3 * tile, 6 * tile, 3)
    np.testing.assert_array_equal(
        shown[tile + 2 : 2 * tile - 2 : 2, 2 : tile - 2 : 2], data.features[0].transpose(1, 2, 0)
    )
    assert (shown[:2] == 255).all()
    for column in range(1, 6):
        assert shown[2 : tile - 2, column * tile + 2 : (column + 1) * tile - 2].std() > 5
