"""The built-in scenes as a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from allotment.data.source import PICTURE_RECIPE, DataSettings, Key, KnownTask, Source

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset


class Scenes(Source):
    """Pictures that are rendered here, so that nothing has to be downloaded."""

    name = "scenes"
    about = "The built-in scenes: solids in a room, six tasks, all labels exact."
    keys = (
        Key("count", int, "how many pictures there are", 2000),
        Key("size", int, "pixels on each side", 48),
        Key("seed", int, "draws the pictures", 0),
        Key(
            "by_colour",
            bool,
            "whether every kind of solid has a colour of its own, which is easy to learn",
        ),
    )
    complete = True
    tasks: Mapping[str, KnownTask] = {
        "classes": KnownTask("multilabel", 1, 60),
        "segmentation": KnownTask("segmentation", 20, 30),
        "depth": KnownTask("depth", 6, 30),
        "normals": KnownTask("normals", 6, 30),
        "edges": KnownTask("edges", 6, 30),
        "keypoints": KnownTask("keypoints", 4, 60),
    }
    budget = 2580
    """as much as the labels to begin with would cost, as in the paper"""
    recipe = PICTURE_RECIPE

    def open(self, given: DataSettings) -> Dataset:
        from allotment.data.scenes.unrendered import UnrenderedScenes

        options = dict(given.options)
        if "size" in options:
            options["side"] = options.pop("size")
        return UnrenderedScenes(**options)


SOURCE = Scenes()
