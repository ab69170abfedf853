"""Taskonomy as a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from allotment.data.source import PICTURE_RECIPE, DataSettings, Key, KnownTask, Source
from allotment.errors import InputError

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset


class Taskonomy(Source):
    """Views of buildings in Taskonomy's own folders. Costs and budget are the paper's."""

    name = "taskonomy"
    about = "Taskonomy: the folder that holds rgb and the other domains."
    root = "the folder of the images"
    keys = (
        Key("side", int, "pixels on each side that images are brought to", 64),
        Key("groups", str, "views that stay together, tested on or not: of a building or a point"),
    )
    complete = True
    tasks: Mapping[str, KnownTask] = {
        "segmentation": KnownTask("segmentation", 10, 60),
        "normals": KnownTask("normals", 3, 60),
        "depth": KnownTask("depth", 3, 60),
        "keypoints": KnownTask("keypoints", 2, 60),
        "edges": KnownTask("edges", 3, 60),
    }
    budget = 1260
    instances = "different"
    recipe = PICTURE_RECIPE
    networks = ("taskonomy-small", "taskonomy-paper")

    def open(self, given: DataSettings) -> Dataset:
        from allotment.data.taskonomy import BY_POINT, read_taskonomy

        # as it was before there was a choice
        return read_taskonomy(given.path, **{"groups": BY_POINT, **given.options})

    def settle(self, given: DataSettings) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Of several buildings some are for testing as a whole."""
        from allotment.data.taskonomy import BY_BUILDING, list_buildings

        if "groups" in given.options or given.root is None or not given.root.is_dir():
            return {}, ()
        try:
            buildings = list_buildings(given.path)
        except InputError:  # which is said when the data are read
            return {}, ()
        if len(buildings) < 2:
            return {}, ()
        what = f"{len(buildings)} buildings; none is both trained and tested on"
        return {"groups": BY_BUILDING}, (what,)


SOURCE = Taskonomy()
