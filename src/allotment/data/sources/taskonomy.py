"""Taskonomy as a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from allotment.data.source import PICTURE_RECIPE, DataSettings, Key, KnownTask, Source

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset


class Taskonomy(Source):
    """Views of buildings in Taskonomy's own folders. Costs and budget are the paper's."""

    name = "taskonomy"
    about = "Taskonomy: the folder that holds rgb and the other domains."
    root = "the folder of the images"
    keys = (Key("side", int, "pixels on each side that images are brought to", 64),)
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
        from allotment.data.taskonomy import read_taskonomy

        return read_taskonomy(given.path, **given.options)


SOURCE = Taskonomy()
