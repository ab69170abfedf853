"""campaign.toml as `allot init` writes it: only what the user must decide, with a comment on every
key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from allotment.estimates.method import METHODS, describe_methods
from allotment.settings.settings import DATA

PRESETS: dict[str, dict[str, tuple[int, int]]] = {
    "scenes": {
        "classes": (1, 60),
        "segmentation": (20, 30),
        "depth": (6, 30),
        "normals": (6, 30),
        "edges": (6, 30),
        "keypoints": (4, 60),
    },
    "voc": {"classes": (1, 300), "segmentation": (20, 300)},
    "taskonomy": {
        "segmentation": (10, 60),
        "normals": (3, 60),
        "depth": (3, 60),
        "keypoints": (2, 60),
        "edges": (3, 60),
    },
}
"""of data that come with their labels: (cost, labels to begin with) of each task; costs are the
paper's, where class labels are to masks as 1 to 20 and Taskonomy's five as 10 to 3 to 3 to 2 to
3"""
BUDGETS = {"scenes": 2580, "voc": 6300, "taskonomy": 1260}
"""as much as the labels to begin with would cost, as in the paper"""
OPTIONS: dict[str, dict[str, Any]] = {
    "table": {},
    "scenes": {"count": 2000, "size": 48, "seed": 0},
    "voc": {"side": 64},
    "taskonomy": {"side": 64},
}
STEPS = {"table": 300, "scenes": 300, "voc": 300, "taskonomy": 300}
COMMENTS = {
    "root": "where the data lie; a path that does not begin with / begins at this file's folder",
    "id": "the column that names the rows, for orders and deliveries",
    "group": "rows with the same entry in this column stay together",
    "drop": "columns to leave out",
    "delimiter": "between cells of a CSV file",
    "image_size": "pixels on each side that images are brought to",
    "count": "how many pictures there are",
    "size": "pixels on each side",
    "side": "pixels on each side that images are brought to",
    "seed": "draws the pictures",
    "by_colour": "whether every kind of solid has a colour of its own, which is easy to learn",
    "network": "the built-in one, or one of your own on the command line: --learner mine.py:make",
    "weights": "trained weights for the backbone",
    "steps": (
        "of one training; it takes longer with more of them, and comes closer to your final"
        " training"
    ),
    "batch_size": "labels of each task in one step",
    "device": "what training runs on; settled when this campaign began",
    "precision": "likewise",
    "kind": "what it predicts, where the guess from its cells is wrong",
    "classes": "all its classes",
    "metric": "how it is scored",
}


def write_template(
    data: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    budget: str,
    method: str,
    training: Mapping[str, Any],
    trainings: int | None = None,
    seed: int = 0,
) -> str:
    """The text of a campaign.toml; every value is written so that TOML reads it back."""
    home = METHODS.version_of(method)
    lines = [
        "# The settings of a campaign. Change what you like; `allot check` names every mistake.",
        "",
        "# All there is to spend on labels, over all rounds, in the unit of the costs below.",
        f"budget = {budget}",
        "",
        "# How the worth of a label is measured:",
        *(f"#   {name:<12} {about}" for name, about in describe_methods().items()),
        *([] if home is None else [f"# it comes with a package that is to be installed: {home}"]),
        f"method = {_quoted(method)}",
        *(
            []
            if trainings is None
            else ["# how many trainings it may take", f"trainings = {trainings}"]
        ),
        "",
        (
            "# Draws whatever is random: which labels are left out of a training, which instances"
            " are ordered."
        ),
        f"seed = {seed}",
        "",
        "[data]",
        f"# one of {', '.join(DATA)}",
        f"name = {_quoted(data['name'])}",
        *_commented({key: value for key, value in data.items() if key != "name"}),
        "",
        "[training]",
        *_commented(training),
    ]
    for number, (name, keys) in enumerate(tasks.items()):
        lines += ["", *_task(name, keys, first=number == 0)]
    return "\n".join(lines) + "\n"


def _task(name: str, keys: Mapping[str, Any], first: bool) -> list[str]:
    lines = ["[[task]]"]
    if first:
        lines.append("# what is predicted: a column of the table, or a task of the data set")
    lines.append(f"name = {_quoted(name)}")
    if first:
        lines.append(
            "# the price of one label; weight, least, most, lot, fee and tiers may follow, as in a"
            " problem file"
        )
    lines.append(f"cost = {keys['cost']}")
    if "have" in keys:
        if first:
            lines.append(
                "# labels to begin with, drawn from the data's own; all others must be bought"
            )
        lines.append(f"have = {keys['have']}")
    rest = {key: value for key, value in keys.items() if key not in ("cost", "have")}
    return [*lines, *_commented(rest)]


def _commented(values: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in values.items():
        lines += [f"# {COMMENTS[key]}", f"{key} = {_toml(value)}"]
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    """A basic string of TOML, which differs from JSON's in one letter only."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
