"""Folders of trained models, from whoever made them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from allotment.data.dataset import ArrayData
from allotment.data.dataset import Target as Task
from allotment.data.encoders import CategoryEncoder, NumberEncoder, TextEncoder
from allotment.data.labels import Labels, Split
from allotment.job import installed
from allotment.learners.built_in import make_built_in
from allotment.learners.choice import build_learner
from allotment.learners.learner import BUILT_IN, train
from allotment.learners.validation import Scoreboard, TaskScore
from allotment.models.card import Card, write_card
from allotment.models.inputs import ModelInputs, ModelPictures, ModelTable, describe_inputs
from allotment.models.model import load_model, save_model
from fuzzing.mutators import read_zip, write_zip, zip_mutator
from fuzzing.target import Target

MODULES = (
    "models/model", "models/inputs", "models/card", "data/encoders", "learners/weights",
    "learners/plain_arrays", "learners/training_rows",
)  # fmt: skip
TASKS = (Task("price", "regression"), Task("style", "classification", ("loft", "villa")))
TABLE = ModelTable(
    {
        "area": NumberEncoder(8, 0.25, 0.5, True),
        "garden": CategoryEncoder(("no", "yes"), False, True),
        "about": TextEncoder(),
    },
    "name",
)
KINDS_OF_MODELS: tuple[tuple[ModelInputs, str, int], ...] = (
    (TABLE, BUILT_IN, 1),
    (ModelPictures(8, 8, "path"), BUILT_IN, 1),
    (TABLE, BUILT_IN, 2),
    (TABLE, "sklearn:Ridge", 2),
)
"""what is seen, what was trained, and how many members it has"""
ROWS = "name,area,garden,about\nx,120,yes,by the sea\ny,,,\n"
SCORES = Scoreboard((TaskScore("price", "mae", 2.0, 1.5, 2.5, 9.0, False, 40),), 5)


def _read(data: bytes, place: Path) -> None:
    """What is loaded can be asked, and answers with numbers; nothing is written."""
    try:
        members = read_zip(data)
    except Exception:  # what is no archive makes no folder
        return
    for info, content in members[:20]:
        parts = [part for part in info.filename.split("/") if part not in ("", ".", "..")]
        path = place.joinpath("model", *[part[:100] for part in parts[:4]])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (OSError, ValueError):
            continue
    (place / "rows.csv").write_text(ROWS)
    model = load_model(place / "model")
    write_card(model.card, model.targets, describe_inputs(model.inputs)).encode()
    model.check()
    if isinstance(model.inputs, ModelTable):
        found = model.predict(place / "rows.csv")
        assert len(found) == 2
        found.encode(probabilities=True)
        assert all(note.isprintable() for note in found.notes)


def _pack(folder: Path) -> bytes:
    members = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            info.external_attr, info.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            members.append((info, path.read_bytes()))
    return write_zip(members)


@cache
def _make() -> tuple[bytes, ...]:
    from tempfile import TemporaryDirectory

    made = []
    with TemporaryDirectory() as place:
        for number, (inputs, name, members) in enumerate(KINDS_OF_MODELS):
            _save(Path(place, str(number)), inputs, name, members)
            made.append(_pack(Path(place, str(number))))
    return tuple(made)


def _save(folder: Path, inputs: ModelInputs, name: str, members: int) -> None:
    """A model whose weights are all the same, so that it is a small file."""
    blank = np.zeros((2, *inputs.shape), np.uint8 if len(inputs.shape) == 3 else np.float32)
    values = {"price": np.arange(2, dtype=np.float32), "style": np.arange(2)}
    data = ArrayData("asked", TASKS, blank, values)
    everyone = np.arange(2)
    split = Split(everyone, everyone[:0], everyone[:0])
    training: dict[str, Any] = {"network": "usual", "steps": 1, "trunk_rate": 0.5}
    training |= {"members": members}
    state: Any
    if name == BUILT_IN:
        learner: Any = make_built_in(training, data, split)
        state = learner.start(Labels({}), 0)
        for part in getattr(state, "training", state).network.state_dict().values():
            part.fill_(1)
    else:
        learner = build_learner(name, data, split, members)
        state = train(learner, Labels({"price": [0, 1], "style": [0, 1]}), 0)
    card = Card(
        "homes", "table", {"price": {"of the data": 3}}, {"steps": 1}, 0, "the built-in learner",
        json.loads(json.dumps(installed())), "today", SCORES, {"labels": "0123"},
    )  # fmt: skip
    save_model(
        folder,
        learner,
        state,
        name=name,
        targets=TASKS,
        inputs=inputs,
        training=training,
        card=card,
    )


def _list_seeds() -> Iterable[bytes]:
    return _make()


TARGETS = (Target("model", _read, _list_seeds, MODULES, zip_mutator, (), 1 << 15),)
