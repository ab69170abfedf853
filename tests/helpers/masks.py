"""Masks in a campaign's folder, as deliveries leave them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from allotment.connect.masks import is_sound, take_mask
from allotment.data.dataset import Target
from allotment.ledger.disk import MASK_FOLDER
from allotment.ledger.store import Store
from allotment.machine import sync_folder
from helpers.pictures import png

DEPTH = Target("depth", "depth")


def deliver_mask(store: Store, number: int) -> None:
    """The mask of an instance: its file first, then the row that speaks of it."""
    keep = store.folder / MASK_FOLDER
    with tempfile.TemporaryDirectory() as pictures:
        Path(pictures, "x.png").write_bytes(png(_paint(number), np.uint16))
        value, _ = take_mask(Path(pictures), "x.png", DEPTH, None, keep)
    sync_folder(keep)
    store.add_delivery("masks", f"masks {number}", [("depth", str(number), value)])


def check_masks(store: Store) -> list[int]:
    """The instances that have a mask; each is the one that was delivered."""
    keep, found = store.folder / MASK_FOLDER, []
    for instance, value in store.delivered("depth").items():
        assert is_sound(keep, value["png"]), instance
        with Image.open(keep / f"{value['png']}.png") as image:
            assert np.array_equal(np.asarray(image), _paint(int(instance))), instance
        found.append(int(instance))
    return found


def _paint(number: int) -> NDArray[Any]:
    """Noise, which no compression makes smaller."""
    return np.random.default_rng(number).integers(1, 60_000, (40, 50), np.uint16)
