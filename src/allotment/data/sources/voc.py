"""PASCAL VOC as a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from allotment.data.source import PICTURE_RECIPE, DataSettings, Key, KnownTask, Source

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset


class Voc(Source):
    """PASCAL VOC 2012 in its own folders. Costs and budget are the paper's."""

    name = "voc"
    about = "PASCAL VOC with its masks: the folder that holds JPEGImages."
    root = "the folder of the images"
    keys = (Key("side", int, "pixels on each side that images are brought to", 64),)
    complete = True
    tasks: Mapping[str, KnownTask] = {
        "classes": KnownTask("multilabel", 1, 300),
        "segmentation": KnownTask("segmentation", 20, 300, implies=("classes",)),
    }
    budget = 6300
    instances = "different"
    recipe = PICTURE_RECIPE
    networks = ("voc-small", "voc-paper")

    def open(self, given: DataSettings) -> Dataset:
        from allotment.data.voc import read_voc

        return read_voc(given.path, **given.options)


SOURCE = Voc()
