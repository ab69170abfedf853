"""Every target by its name, and the module that it is in: loading all would take seconds, and
torch."""

from __future__ import annotations

import importlib

from fuzzing.target import Target

ROOMS = {
    "plans": ("problem", "settings", "forms", "job", "amount", "cell", "lock"),
    "deliveries": ("delivery-csv", "delivery-jsonl", "delivery-zip", "delivery-folder"),
    "campaigns": ("archive", "store", "campaign"),
    "tables": (
        "table-csv",
        "table-tsv-gz",
        "table-parquet",
        "table-found",
        "table-xlsx",
        "table-npz",
        "voc-list",
        "taskonomy-names",
    ),
    "pictures": ("pixels", "sbd", "picture", "mask"),
    "weights": ("weights-pth", "weights-npz", "weights-safetensors"),
    "models": ("model",),
}
NAMES = tuple(name for names in ROOMS.values() for name in names)


def load(name: str) -> Target:
    """The target of that name."""
    room = next(room for room, names in ROOMS.items() if name in names)
    targets = {target.name: target for target in importlib.import_module(f"fuzzing.{room}").TARGETS}
    assert tuple(targets) == ROOMS[room]
    return targets[name]
