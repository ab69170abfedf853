"""An order as a sheet to be filled in, whatever the place that it is written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from allotment.data.dataset import Target
from allotment.errors import InputError, Mistake
from allotment.orders.order import Order

SHEET_COLUMNS = ("order", "task", "instance")
"""the first columns of a sheet, before those that show the instance"""
ANSWER, LABEL = "answer", "label"
"""after it: what may be filled in, and where"""
SHEET_SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
"""of sheets that are text"""
LONGEST_ANSWER = 300
"""letters"""

ANSWERS = {
    "classification": "one of: {classes}",
    "multilabel": "any of, with | between: {classes}; | alone for none",
    "regression": "a number, with a decimal point",
    "segmentation": "a PNG of class numbers, 255 where it does not count: {numbers}",
    "depth": "a 16-bit grey PNG in millimetres, 0 where there is none",
    "normals": (
        "an RGB PNG: 255 is +1 and 0 is -1; red to the right, green up, blue to the viewer; black"
        " for none"
    ),
    "edges": "a grey PNG, 0 for no edge up to white for a strong one",
    "keypoints": "[[x, y], ...] in pixels from the upper left; [] for none",
}
"""what a label is, in words for those who make it"""

Show = Mapping[str, Mapping[str, object]]
"""columns that help to find and know an instance, such as its file: by name, and then by
instance"""


@dataclass(frozen=True)
class Sheet:
    """An order, and what those who make its labels are to see of it: a row for each label, to be
    filled in.
    """

    order: Order
    number: int | str = 1
    """what its rows call the order"""
    show: Show = field(default_factory=dict)
    targets: Mapping[str, Target] | None = None
    """with these, a column says what may be filled in"""

    def __post_init__(self) -> None:
        taken = (*SHEET_COLUMNS, ANSWER, LABEL)
        for name in self.show:
            if not str(name).strip():
                raise InputError([Mistake(f"show {name!r}", "needs a name")])
            if name in taken:
                what = "is a name of the sheet's own; call it something else"
                raise InputError([Mistake(f"show {name!r}", what)])

    @property
    def columns(self) -> list[str]:
        """Their names; the last is the one to be filled in."""
        return [*SHEET_COLUMNS, *self.show, *([] if self.targets is None else [ANSWER]), LABEL]

    def rows(self) -> Iterator[list[object]]:
        """The cells of each row, as the columns stand; the last is empty."""
        targets = self.targets or {}
        answers = {task: explain_answer(target) for task, target in targets.items()}
        for task, instance in self.order.items:
            shown = [cells.get(instance, "") for cells in self.show.values()]
            if self.targets is not None:
                shown.append(answers.get(task, ""))
            yield [self.number, task, instance, *shown, ""]


def explain_answer(target: Target) -> str:
    """What a label of the task is, in one line for those who make it."""
    classes = ", ".join(target.classes)
    numbers = ", ".join(f"{number} {name}" for number, name in enumerate(target.classes))
    text = ANSWERS[target.kind].format(classes=classes, numbers=numbers)
    return text if len(text) <= LONGEST_ANSWER else f"{text[: LONGEST_ANSWER - 3]}..."
