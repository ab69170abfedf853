"""What a model says of instances: as arrays, as columns of a table, as files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from allotment.arrays import AnyArray
from allotment.cells import encode_table
from allotment.data.dataset import PIXEL_KINDS, Target
from allotment.errors import InputError, Mistake
from allotment.files import check_free, place_file

TABLE_NAME = "predictions.csv"
"""in a folder of predictions"""


@dataclass(frozen=True, eq=False)
class ModelAnswers:
    """Answers for every task, in the order of the instances.

    `predictions["price"]` are numbers, or the probabilities of classes; `to_columns` has the
    answers as people read them.
    """

    names: tuple[str, ...] = field(repr=False)
    head: str
    """what the names are"""
    targets: Mapping[str, Target]
    answers: Mapping[str, AnyArray] = field(repr=False)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, task: str) -> AnyArray:
        return self.answers[task]

    @property
    def pixel_tasks(self) -> list[str]:
        """Tasks with an answer for each pixel, which fill no cell."""
        return [name for name, target in self.targets.items() if target.kind in PIXEL_KINDS]

    def to_columns(self, probabilities: bool = False) -> dict[str, list[Any]]:
        """By name: numbers, classes, and several classes with | between; with `probabilities` also
        a column for each class."""
        columns: dict[str, list[Any]] = {self.head: list(self.names)}
        for name, target in self.targets.items():
            if target.kind in PIXEL_KINDS:
                continue
            answers = self.answers[name]
            title = name if name not in columns else f"{name} (predicted)"
            columns[title] = _say(target, answers)
            if probabilities and target.classes:
                for place, each in enumerate(target.classes):
                    columns[f"{name}={each}"] = answers[:, place].astype(float).tolist()
        return columns

    def to_frame(self, probabilities: bool = False) -> Any:
        """A frame of pandas, which must be installed."""
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            what = "a frame needs pandas: pip install pandas; to_columns does without"
            raise InputError([Mistake("pandas", what)]) from None
        return pd.DataFrame(self.to_columns(probabilities))

    def encode(self, probabilities: bool = False) -> bytes:
        """A table as CSV."""
        columns = self.to_columns(probabilities)
        rows = zip(*columns.values(), strict=True)
        return encode_table([list(columns), *rows])

    def write(self, path: str | Path, probabilities: bool = False) -> Path:
        """Into a new .csv or .jsonl file; where answers are pictures, into a new folder."""
        path = Path(path)
        check_output(path, self.targets.values())
        if self.pixel_tasks:
            return self._write_folder(path, probabilities)
        if path.suffix == ".csv":
            return place_file(path, self.encode(probabilities))
        columns = self.to_columns(probabilities)
        cells = zip(*columns.values(), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in cells]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return place_file(path, text.encode(errors="replace"))

    def _write_folder(self, folder: Path, probabilities: bool) -> Path:
        """A table of what fits into cells, and a file for each answer in pixels."""
        folder.mkdir()
        place_file(folder / TABLE_NAME, self.encode(probabilities))
        plain = [Path(name).with_suffix("") for name in self.names]
        if len(set(plain)) < len(plain):  # a.png and a.jpg
            plain = [Path(name) for name in self.names]
        for task in self.pixel_tasks:
            for number, name in enumerate(plain):
                place = folder.joinpath(_safe(task), *map(_safe, name.parts))
                place.parent.mkdir(parents=True, exist_ok=True)
                _write_pixels(place, self.targets[task], self.answers[task][number])
        return folder


def check_output(path: Path, targets: Iterable[Target]) -> None:
    """Raises InputError unless answers for these tasks can be written there."""
    check_free(path)
    what = ""
    if any(target.kind in PIXEL_KINDS for target in targets):
        if path.suffix:
            what = "must be a new folder, since some answers are pictures; leave out the ending"
    elif path.suffix not in (".csv", ".jsonl"):
        what = "is of an unknown kind; write to a .csv or .jsonl file"
    if what:
        raise InputError([Mistake(repr(str(path)), what)])


def _say(target: Target, answers: AnyArray) -> list[Any]:
    if target.kind == "regression":
        return [float(f"{each:.7g}") for each in answers.tolist()]
    if target.kind == "classification":
        return [target.classes[place] for place in answers.argmax(axis=1).tolist()]
    chosen = answers > 0.5
    return [
        "|".join(each for each, there in zip(target.classes, row, strict=True) if there) or "|"
        for row in chosen.tolist()
    ]


def _safe(part: str) -> str:
    """A part of a path that is a name on any system."""
    kept = "".join(each if each.isalnum() or each in " ._-" else "_" for each in part)
    return kept.strip(". ") or "_"


def _write_pixels(place: Path, target: Target, answer: AnyArray) -> None:
    """Classes as numbers in a PNG, all else as an array."""
    if target.kind == "segmentation":
        from PIL import Image

        classes = answer.argmax(axis=0).astype(np.uint8)
        with open(f"{place}.png", "xb") as file:
            Image.fromarray(classes).save(file, format="PNG")
        return
    with open(f"{place}.npy", "xb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(answer), allow_pickle=False)
