"""Data sets for people: what is labelled, what the features are, and what is odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from allotment.data.dataset import Dataset, Target
from allotment.data.features import FeatureColumn
from allotment.data.summary import Summary
from allotment.errors import visible
from allotment.formatting import percent, several
from allotment.terminal.page import (
    MOST_LIST_LINES,
    MOST_ROWS,
    MOST_SIDE_BY_SIDE,
    Page,
    TextColumn,
    shorten,
)

ROLES = {"id": "name of the row", "group": "group"}
"""keys of a table that name a column, and what it is there for"""
FORM_WORDS = {
    "numeric": "number",
    "categorical": "category",
    "date": "date or time",
    "text": "text",
    "image": "image",
}
"""forms of features, as people call them"""
DATE_ORDERS = {"date:dmy": "day first, ", "date:mdy": "month first, "}


def show_data(page: Page, summary: Summary) -> None:
    """What is in a data set: its input, labels per task and split, and what is odd."""
    page.text(f"{summary.name}: {several(summary.instances, 'instance')}, input: {summary.input}")
    page.text()
    page.table(_label_columns(summary))
    if len(summary.tasks) > MOST_ROWS:
        page.text(f"(The first {MOST_ROWS} of {len(summary.tasks)} tasks; --json has them all.)")
    page.text()
    sizes = ", ".join(f"{part} {size}" for part, size in summary.splits.items())
    page.text(f"Instances of each split (seed {summary.seed}): {sizes}.")
    if any(task.guessed for task in summary.tasks):
        page.text("Kinds marked with ? are guessed; --kind NAME=KIND sets one.")
    if listed := [task for task in summary.tasks[:MOST_ROWS] if task.classes]:
        page.text()
        page.title("Classes")
        page.table(
            [
                TextColumn("task", [task.name for task in listed], "name"),
                TextColumn(
                    "labels of each", [_class_list(task.classes) for task in listed], "name"
                ),
            ]
        )
    if summary.columns:
        page.text()
        page.title("Features")
        page.table(_feature_columns(summary.columns))
    if summary.notes:
        page.text()
        page.title("Worth knowing")
    for note in summary.notes[:MOST_ROWS]:
        page.text(f"- {note}", indent="  ")
    if len(summary.notes) > MOST_ROWS:
        page.text(f"({len(summary.notes) - MOST_ROWS} more; --json has them all.)")


def show_columns(page: Page, data: Dataset, options: Mapping[str, Any]) -> None:
    """What became of each column of a table, those of one kind in one line."""
    if not data.columns:
        return
    guessed = set(data.guessed)
    rows = [("target", [_tell_target(each, each.name in guessed) for each in data.targets])]
    rows += [(role, [visible(options[key])]) for key, role in ROLES.items() if key in options]
    for form, word in FORM_WORDS.items():
        own = [each for each in data.columns if each.form.partition(":")[0] == form]
        if own:
            rows.append((word, [_tell_feature(each) for each in own]))
    if options.get("drop"):
        rows.append(("left out", [visible(each) for each in options["drop"]]))
    page.table(
        [
            TextColumn("taken as", [word for word, _ in rows], "word"),
            TextColumn("columns", [_list_some(names) for _, names in rows], "name"),
        ]
    )
    page.text("To change that: columns, drop and kind in campaign.toml, or in a new init --column")
    page.text("NAME=numeric (or categorical, text, date, ignore) and --kind TARGET=regression.")


def _tell_target(target: Target, is_guessed: bool) -> str:
    count = len(target.classes)
    classes = f", {count} class{'es' if count > 1 else ''}" if count else ""
    said = "guessed" if is_guessed else "said"
    return f"{visible(target.name)} ({target.kind}{classes}; {said})"


def _tell_feature(column: FeatureColumn) -> str:
    if column.form == "numeric" or (column.form == "image" and column.width == 1):
        return visible(column.name)
    order = DATE_ORDERS.get(column.form, "")
    return f"{visible(column.name)} ({order}{several(column.width, 'number')})"


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LIST_LINES} more" if len(names) > MOST_LIST_LINES + 1 else ""
    return ", ".join(names[:MOST_LIST_LINES] if more else names) + more


def _label_columns(summary: Summary) -> list[TextColumn]:
    tasks = summary.tasks[:MOST_ROWS]
    return [
        TextColumn("task", [task.name for task in tasks], "name"),
        TextColumn("kind", [task.kind + "?" * task.guessed for task in tasks], "word"),
        TextColumn("labels", [str(task.labelled) for task in tasks]),
        TextColumn("missing", [str(task.missing) for task in tasks]),
        TextColumn("known", [percent(task.share) for task in tasks]),
        *(TextColumn(part, [str(task.splits[part]) for task in tasks]) for part in summary.splits),
    ]


def _class_list(classes: Mapping[str, int]) -> str:
    shown = [
        f"{shorten(visible(name), 24)}: {count}"
        for name, count in list(classes.items())[:MOST_LIST_LINES]
    ]
    more = (
        [f"and {len(classes) - MOST_LIST_LINES} more classes"]
        if len(classes) > MOST_LIST_LINES
        else []
    )
    return ", ".join(shown + more)


def _feature_columns(columns: Sequence[FeatureColumn]) -> list[TextColumn]:
    """A row for each column while they are few, and for each form otherwise."""
    if len(columns) <= MOST_SIDE_BY_SIDE:
        return [
            TextColumn("column", [each.name for each in columns], "name"),
            TextColumn("form", [each.form for each in columns], "word"),
            TextColumn("width", [str(each.width) for each in columns]),
            TextColumn("missing", [str(each.missing) for each in columns]),
        ]
    count: Counter[str] = Counter()
    width: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for each in columns:
        count[each.form] += 1
        width[each.form] += each.width
        missing[each.form] += each.missing
    forms = sorted(count)
    return [
        TextColumn("form", forms, "word"),
        TextColumn("columns", [str(count[form]) for form in forms]),
        TextColumn("width", [str(width[form]) for form in forms]),
        TextColumn("missing", [str(missing[form]) for form in forms]),
    ]
