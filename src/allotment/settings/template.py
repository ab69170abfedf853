"""campaign.toml as `allot init` writes it: only what the user must decide, with a comment on every
key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from allotment.data.source import SOURCES
from allotment.estimates.method import METHODS, describe_choices

COMMENTS = {
    "root": "where the data lie; a path that does not begin with / begins at this file's folder",
    "network": "the built-in one, or one of your own on the command line: --learner mine.py:make",
    "edition": "of that network: the newest is the quickest; a campaign goes on with its own",
    "learner": (
        "what trains: built-in, or one of scikit-learn such as sklearn:HistGradientBoosting; allot"
        " learners compares them"
    ),
    "members": (
        "models of one training, each without some of the labels: these say how far answers are to"
        " be trusted"
    ),
    "weights": "trained weights for the backbone",
    "steps": (
        "of one training; it takes longer with more of them, and comes closer to your final"
        " training"
    ),
    "from_scratch": "it starts from nothing; trained weights for it: weights = ...",
    "sharing": "all: tasks share the whole trunk; adapters: with small layers of each task's own",
    "epochs": "of one training: how often it goes over the labels of the task that has most",
    "batch_size": "labels of each task in one step",
    "crop": "pixels on each side of the random parts of images that are trained on",
    "optimiser": "sgd, adam or adamw",
    "trunk_rate": "learning rate at the start: of what tasks share",
    "head_rate": "likewise: of each task's own layers",
    "final_rate": "where both end, along a cosine",
    "momentum": "how much of its last steps sgd keeps up",
    "weight_decay": "how much weights shrink in a step",
    "patience": (
        "after the last epoch it goes on, at the last rate, until the loss of labels that are held"
        " back (one in ten) has not fallen for so many epochs"
    ),
    "device": "what training runs on; settled when this campaign began",
    "precision": "likewise",
    "implies": (
        "a label of it tells those of these tasks too: they are trained on, but not counted (as in"
        " the paper), unless count_implied = true stands above [data]"
    ),
    "kind": "what it predicts, where the guess from its cells is wrong",
    "classes": "all its classes",
    "metric": "how it is scored; of several in a list the first is planned with",
}
OPTION_COMMENTS = {
    "validation": "labels of each task that score and are not trained on, as a share or a number",
    "ahead": "steps of each look ahead: the paper's m",
    "every": "steps between two looks",
    "runs": "trainings whose transfer is averaged",
    "sizes": "pseudo-labels added at each point of a curve: the paper's a_1 .. a_p",
    "repetitions": "trainings at each of these points",
    "ensemble": "networks that make the pseudo-labels",
    "rates": "reduction rates: each task's own, or those between tasks, too",
    "triples": "whether transfer is that of three tasks at a time",
}


def write_template(
    data: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    budget: str,
    method: str,
    training: Mapping[str, Any],
    trainings: int | None = None,
    seed: int = 0,
    estimates: Mapping[str, Any] | None = None,
    instances: str = "any",
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
        *_list_methods(),
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
        *([] if instances == "any" else _tell_instances(instances)),
        "",
        "[data]",
        f"# one of {', '.join(SOURCES)}",
        f"name = {_quoted(data['name'])}",
        *_data(data),
        "",
        "[training]",
        *_commented(training),
    ]
    if estimates:
        lines += ["", "# Options of the method.", "[estimates]"]
        lines += _commented(estimates, OPTION_COMMENTS)
    for number, (name, keys) in enumerate(tasks.items()):
        lines += ["", *_task(name, keys, first=number == 0)]
    return "\n".join(lines) + "\n"


def _list_methods() -> list[str]:
    """A line for each; those that are named together need a mark behind their names."""
    return [
        f"#   {name + ':' if ',' in name else name:<12} {about}"
        for name, about in describe_choices().items()
    ]


def _tell_instances(rule: str) -> list[str]:
    return [
        "",
        (
            "# On which instances tasks are labelled: different ones (the paper's way), the same"
            " ones for all, or any."
        ),
        f"instances = {_quoted(rule)}",
    ]


def _task(name: str, keys: Mapping[str, Any], first: bool) -> list[str]:
    lines = ["[[task]]"]
    if first:
        lines.append(
            "# what is predicted: a column of the table, or a task of the data set; below another"
            ' name write its first one: was = "..."'
        )
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


def _data(data: Mapping[str, Any]) -> list[str]:
    """The keys of the data's source."""
    comments = {key.name: key.comment for key in SOURCES.load(data["name"]).keys}
    keys = {key: value for key, value in data.items() if key != "name"}
    return _commented(keys, COMMENTS | comments)


def _commented(values: Mapping[str, Any], comments: Mapping[str, str] = COMMENTS) -> list[str]:
    lines = []
    for key, value in values.items():
        if key in comments:  # of one that there is not, reading it says so
            lines.append(f"# {comments[key]}")
        lines.append(f"{key} = {_toml(value)}")
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    """A basic string of TOML, which differs from JSON's in one letter only."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
