"""Labels over pictures: colours that mean what the legend says, and none where nothing is known."""

from __future__ import annotations

import numpy as np

from allotment.data.dataset import VOID, Target
from allotment.data.overlays import Overlay, class_colours, find_overlay

PICTURE = np.full((3, 2, 3), 100, dtype=np.uint8)
GREY = [100, 100, 100]


def test_classes_have_colours_of_their_own_and_void_has_none() -> None:
    target = Target("seg", "segmentation", tuple("abc"))
    mask = np.array([[0, 1, 2], [VOID, 1, 1]], dtype=np.uint8)
    laid = find_overlay(target, [mask]).lay(mask, PICTURE)
    assert laid[1, 0].tolist() == GREY
    assert len({tuple(each) for each in laid[0].tolist()}) == 3
    assert (laid[0, 1] == laid[1, 2]).all()
    names = [name for name, _ in find_overlay(target, [mask]).list_colours([mask])]
    assert names == ["b", "a", "c"]  # what there is most of comes first
    assert len({tuple(each) for each in class_colours(255).tolist()}) > 250


def test_depths_share_one_scale() -> None:
    target = Target("depth", "depth")
    near, far = np.full((2, 3), 1.0), np.full((2, 3), 9.0)
    far[0, 0] = np.nan
    overlay = find_overlay(target, [near, far])
    assert (overlay.low, overlay.high) == (1.0, 9.0)
    light, dark = overlay.lay(near, PICTURE), overlay.lay(far, PICTURE)
    assert light[1, 1].sum() > dark[1, 1].sum()
    assert dark[0, 0].tolist() == GREY
    assert [name for name, _ in overlay.list_colours([near])] == ["near (1)", "far (9)"]


def test_weak_edges_are_seen_and_nothing_known_is_no_mistake() -> None:
    target = Target("edges", "edges")
    weak = np.array([[0.0, 0.01, 0.02], [0.0, 0.0, 0.02]])
    laid = find_overlay(target, [weak]).lay(weak, PICTURE)
    assert laid[0, 2, 0] > 200 > laid[0, 0, 0]
    unknown = np.full((2, 3), np.nan)
    assert find_overlay(target, [unknown]) == Overlay(target)
    normals = Target("normals", "normals")
    assert (Overlay(normals).lay(np.full((3, 2, 3), np.nan), PICTURE) == 100).all()
