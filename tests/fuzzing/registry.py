"""Every target by its name, and the module that it is in: loading all would take seconds, and torch."""

from __future__ import annotations

import importlib

from fuzzing.target import Target

ROOMS = {
    "plans": ("problem", "settings", "forms", "job", "amount", "cell", "lock"),
    "deliveries": ("delivery-csv", "delivery-jsonl", "delivery-zip", "delivery-folder"),
    "campaigns": ("archive", "store", "campaign", "artifact"),
    "tables": ("table-csv", "table-tsv-gz", "table-parquet", "table-npz", "voc-list", "taskonomy-names"),
    "pictures": ("pixels", "picture", "mask"),
    "weights": ("weights-pth", "weights-npz", "weights-safetensors"),
}
NAMES = tuple(name for names in ROOMS.values() for name in names)
WAITING: dict[str, tuple[str, ...]] = {
    "forms": ("TypeError in plan.<listcomp>", "AttributeError in plan.<genexpr>", "TypeError in plan.<dictcomp>",
              "ValueError in plan.<dictcomp>", "AttributeError in plan.from_dict", "OverflowError in plan.<dictcomp>",
              "unprintable mistake told by gains.curve_from_dict", "too long a mistake told by gains.curve_from_dict"),
    "store": ("AttributeError in job.parse", "unprintable mistake told by store.check",
              "unprintable mistake told by schema.translate"),
    "table-npz": ("AttributeError in sources._names", "AttributeError in sources._open_npz",
                  "SystemError in columns._column", "SystemError in sources._names", "TokenError in sources.<dictcomp>",
                  "too long a mistake told by sources._load_npz", "unprintable mistake told by sources._load_npz"),
    "table-tsv-gz": ("unprintable mistake told by sources._records",),
    "weights-npz": ("unprintable mistake told by weights.load_weights",
                    "unprintable mistake told by weights.read_weights"),
    "weights-pth": ("IndexError in weights.read_weights", "unprintable mistake told by weights.load_weights",
                    "unprintable mistake told by weights.read_weights"),
    "weights-safetensors": ("unprintable mistake told by weights.load_weights",
                            "unprintable mistake told by weights.read_weights"),
}  # fmt: skip
"""faults that are known and not mended yet, by target: they are told apart from new ones"""


def load(name: str) -> Target:
    """The target of that name."""
    room = next(room for room, names in ROOMS.items() if name in names)
    targets = {target.name: target for target in importlib.import_module(f"fuzzing.{room}").TARGETS}
    assert tuple(targets) == ROOMS[room]
    return targets[name]
