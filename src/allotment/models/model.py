"""A trained model as a folder, from which it can be asked anywhere; nothing in it is ever run."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.dataset import KINDS, Target
from allotment.data.labels import Split
from allotment.data.targets import MOST_CLASSES
from allotment.errors import InputError, Mistake
from allotment.files import check_free, clear_halves_of, fill, plainly, sign
from allotment.job import parse
from allotment.learners.built_in import make_built_in
from allotment.learners.choice import (
    build_learner,
    check_learner,
    find_learner,
    fingerprint_learner,
    is_code,
    is_stepless,
)
from allotment.learners.learner import BUILT_IN, LEARNERS, Learner, State
from allotment.learners.recipe import Recipe
from allotment.machine import settled, sync_folder
from allotment.models.card import CARD_FILE, Card, write_card
from allotment.models.inputs import (
    AskedInstances,
    ModelInputs,
    ModelTable,
    UnlabelledData,
    describe_inputs,
    read_inputs,
)
from allotment.models.predictions import ModelAnswers
from allotment.progress import Progress

MODEL_FILE = "model.json"
"""what a model is, for programs"""
LEARNER_FOLDER = "learner"
"""below the folder of a model: what the learner itself wrote"""
MODEL_FORMAT = 1
"""version of the form of a model's folder"""
NETWORK_FILE = "pictures.safetensors"
"""in the folder of a model: the weights of the trained network that it sees pictures through"""
_OF_BEGINNING = ("weights", "from_scratch")
"""keys of a training that say how it began, which a trained model has no use for"""
LARGEST_MODEL_FILE = 20_000_000
"""bytes of MODEL_FILE"""
MOST_TARGETS = 10_000
LONGEST_TARGET_NAME = 1000
"""letters of a task's or a class's name"""
PLAIN_SUFFIXES = (".safetensors", ".json", ".npy", ".txt")
"""of files that a learner may save to: none of them can hold code"""
MOST_LEARNER_FILES = 1000
OWN_CODE = "code of your own"
"""in the place of a learner's name: no file may name code"""
PREDICTING: Mapping[str, Any] = {"device": "cpu", "precision": "float32", "crop": 0}
"""how every model is asked, so that it answers the same everywhere"""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model that can be asked about other data."""

    targets: tuple[Target, ...]
    inputs: ModelInputs
    card: Card
    learner: str
    """its name; OWN_CODE where a command line has to name it"""
    training: Mapping[str, Any]
    """keys of a recipe that say which network it is"""
    folder: Path

    def predict(
        self,
        source: Any,
        *,
        delimiter: str | None = None,
        learner: str | None = None,
        progress: Progress | None = None,
    ) -> ModelAnswers:
        """What it says of the rows of a table (a file or a frame), or of the pictures in a folder.

        `learner` is FILE.py:FUNCTION, where the model was trained by code of the user's own.
        """
        inputs = self.inputs
        if isinstance(inputs, ModelTable):
            inputs = inputs.with_network(self.folder / NETWORK_FILE)
        asked = inputs.open(source, delimiter)
        parts: dict[str, list[AnyArray]] = {target.name: [] for target in self.targets}
        total = len(asked.names)
        with settled():
            for begin in range(0, total, asked.at_once):
                places = np.arange(begin, min(begin + asked.at_once, total), dtype=np.int64)
                for task, answers in self._answer(asked, places, learner).items():
                    parts[task].append(answers)
                if progress is not None:
                    progress(int(places[-1]) + 1, total)
        whole = {task: np.concatenate(found) for task, found in parts.items()}
        named = {target.name: target for target in self.targets}
        return ModelAnswers(asked.names, asked.head, named, whole, asked.notes)

    def _answer(
        self, asked: AskedInstances, places: np.ndarray[Any, Any], code: str | None
    ) -> dict[str, AnyArray]:
        data = UnlabelledData(self.targets, asked.open(places))
        learner = self._make_learner(data, code)
        state = _load_state(learner, self.folder / LEARNER_FOLDER)
        everyone = np.arange(len(places), dtype=np.int64)
        return {task: learner.predict(state, task, everyone) for task in learner.tasks}

    def check(self, learner: str | None = None) -> None:
        """Raises InputError unless what the learner saved can be loaded."""
        form = np.uint8 if len(self.inputs.shape) == 3 else np.float32
        blank = UnlabelledData(self.targets, np.zeros((1, *self.inputs.shape), dtype=form))
        _load_state(self._make_learner(blank, learner), self.folder / LEARNER_FOLDER)

    def _make_learner(self, data: UnlabelledData, code: str | None) -> Learner:
        everyone = np.arange(data.size, dtype=np.int64)
        split = Split(everyone, everyone[:0], everyone[:0])
        if self.learner == BUILT_IN:
            return make_built_in({**self.training, **PREDICTING}, data, split, is_blank=True)
        if self.learner != OWN_CODE:
            return build_learner(self.learner, data, split, self.training.get("members"))
        named = find_learner(code)
        if named is None:
            what = "was trained by code of your own, which no file may name; add --learner"
            raise InputError([Mistake(str(self.folder), f"{what} FILE.py:FUNCTION")])
        return build_learner(named, data, split)


def _load_state(learner: Learner, folder: Path) -> State:
    if not hasattr(learner, "load"):
        what = "has no `load`, so that no model of it can be asked; docs/learner.md shows how"
        raise InputError([Mistake("learner", what)])
    _check_files(folder)
    return learner.load(folder)


def check_savable(learner: Learner, name: str) -> None:
    """Raises InputError unless a model of this learner can be saved and loaded again."""
    lacking = [verb for verb in ("save", "load") if not hasattr(learner, verb)]
    if lacking:
        which = OWN_CODE if is_code(name) else name
        what = f"{which} has no {' and no '.join(f'`{verb}`' for verb in lacking)}"
        raise InputError(
            [Mistake("learner", f"{what}: its models can't be saved; docs/learner.md shows how")]
        )


def save_model(
    place: str | Path,
    learner: Learner,
    state: State,
    *,
    name: str,
    targets: tuple[Target, ...],
    inputs: ModelInputs,
    training: Mapping[str, Any],
    card: Card,
) -> TrainedModel:
    """Write a model into a new folder: whole, or not at all."""
    place = Path(place)
    check_savable(learner, name)
    check_free(place)
    plain = {
        "format": MODEL_FORMAT,
        "learner": OWN_CODE if is_code(name) else name,
        "training": {key: value for key, value in training.items() if key not in _OF_BEGINNING},
        "targets": [asdict(target) | {"classes": list(target.classes)} for target in targets],
        "inputs": inputs.to_dict(),
        "card": card.to_dict(),
    }
    with _begin_folder(place) as half:
        own = half / LEARNER_FOLDER
        own.mkdir()
        learner.save(state, own)  # type: ignore[attr-defined]
        _check_files(own)
        _save_network(inputs, half / NETWORK_FILE)
        fill(half / MODEL_FILE, _write_json(plain))
        fill(half / CARD_FILE, write_card(card, targets, describe_inputs(inputs)).encode())
        for each in (own, half):
            sync_folder(each)
    return load_model(place)


def _save_network(inputs: ModelInputs, path: Path) -> None:
    """The trained network that pictures are seen through, where there is one."""
    network = inputs.network if isinstance(inputs, ModelTable) else None
    if network is None:
        return
    from allotment.learners.frozen import FrozenNetwork  # torch takes a second to load

    assert isinstance(network, FrozenNetwork)
    network.save(path)


@contextlib.contextmanager
def _begin_folder(place: Path) -> Iterator[Path]:
    """A folder beside, which takes its place in the end; removed where that does not come."""
    half = place.with_name(f"{sign(place.name)}-{secrets.token_hex(4)}")
    with plainly(place):
        clear_halves_of(place)
        half.mkdir()
        try:
            yield half
            os.rename(half, place)
            sync_folder(place.parent)
        finally:
            shutil.rmtree(half, ignore_errors=True)


def _write_json(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _check_files(folder: Path) -> None:
    """Raises InputError for anything but a few plain files: nothing that could hold code."""
    mistakes = []
    try:
        found = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError as error:
        what = f"can't be opened ({error.strerror}); is this the folder of a model?"
        raise InputError([Mistake(str(folder), what)]) from None
    for each in found[:MOST_LEARNER_FILES]:
        is_plain = each.is_file(follow_symlinks=False)
        if not is_plain or not each.name.endswith(PLAIN_SUFFIXES):
            what = f"is not one of the plain files that a model has ({', '.join(PLAIN_SUFFIXES)})"
            mistakes.append(Mistake(each.name[:200], what))
    if not found or len(found) > MOST_LEARNER_FILES:
        mistakes.append(Mistake("", f"holds {len(found)} files; a model has a few"))
    if mistakes:
        raise InputError([mistake.under(str(folder)) for mistake in mistakes[:8]])


def load_model(place: str | Path) -> TrainedModel:
    """The model in a folder, none of which is trusted: every field is checked, nothing is run.

    Weights are read when it is first asked.
    """
    folder = Path(place)
    path = folder / MODEL_FILE
    try:
        return _read_model(folder, _read_plain(path))
    except InputError as error:
        raise InputError(_name_place(each, path) for each in error.mistakes) from None


def _name_place(mistake: Mistake, path: Path) -> Mistake:
    return mistake if mistake.where.startswith(str(path)) else mistake.under(str(path))


def _read_plain(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        what = "there is no such file; give the folder that `allot train` wrote"
        raise InputError([Mistake(str(path), what)])
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_MODEL_FILE + 1)
    except OSError as error:
        raise InputError([Mistake(str(path), f"can't be read ({error.strerror})")]) from None
    if len(text) > LARGEST_MODEL_FILE:
        what = f"is larger than {LARGEST_MODEL_FILE // 10**6} MB; is it the right file?"
        raise InputError([Mistake("", what)])
    try:
        plain = parse(text)
    except (ValueError, OverflowError) as error:
        what = f"is not JSON ({str(error)[:100]}); was it changed since it was written?"
        raise InputError([Mistake("", what)]) from None
    if not isinstance(plain, Mapping):
        raise InputError([Mistake("", "is not an object; was it changed since it was written?")])
    return plain


def _read_model(folder: Path, plain: Mapping[str, Any]) -> TrainedModel:
    if plain.get("format") != MODEL_FORMAT or type(plain.get("format")) is not int:
        what = f"is not {MODEL_FORMAT}, which this version of allotment reads; is allotment older?"
        raise InputError([Mistake("format", what)])
    keys = {"format", "learner", "training", "targets", "inputs", "card"}
    if plain.keys() != keys:
        strange = sorted(plain.keys() ^ keys)[0]
        raise InputError([Mistake(strange[:100], "is missing, or has no place in a model")])
    learner = plain["learner"]
    if not isinstance(learner, str) or (learner != OWN_CODE and is_code(learner)):
        raise InputError([Mistake("learner", "is not a name; no file may name code")])
    if learner not in (BUILT_IN, OWN_CODE) and (what := check_learner(learner)):
        raise InputError([Mistake("learner", what)])
    training = plain["training"]
    kinds = (str, int, float, bool)
    if not isinstance(training, Mapping) or not all(
        type(each) in kinds for each in training.values()
    ):
        raise InputError([Mistake("training", "is not an object of plain values")])
    return TrainedModel(
        targets=_read_targets(plain["targets"]),
        inputs=read_inputs(plain["inputs"]),
        card=Card.from_dict(plain["card"]),
        learner=learner,
        training=_read_training(plain["training"]),
        folder=folder,
    )


def _read_training(given: Any) -> Mapping[str, Any]:
    """Keys of a recipe, each of its type, and those that say which network it is."""
    kinds: dict[str, tuple[type, ...]] = {"network": (str,), "edition": (int,), "learner": (str,)}
    kinds["sharing"] = (str,)
    for each in fields(Recipe):
        kinds[each.name] = (
            (int, float) if isinstance(each.default, float) else (type(each.default),)
        )
    kinds["steps"] = (int,)
    if not isinstance(given, Mapping):
        raise InputError([Mistake("training", "is not an object")])
    for key, value in given.items():
        if type(value) not in kinds.get(key, ()):
            what = "is no key of a recipe, or its value is of another type"
            raise InputError([Mistake(f"training: {key[:100]}", what)])
    return given


def _read_targets(given: Any) -> tuple[Target, ...]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_TARGETS:
        raise InputError([Mistake("targets", "are not a list of tasks")])
    found: dict[str, Target] = {}
    for number, each in enumerate(given):
        where = f"targets: {number + 1}"
        try:
            target = _read_target(each)
        except InputError as error:
            raise InputError(mistake.under(where) for mistake in error.mistakes) from None
        if target.name in found:
            raise InputError([Mistake(where, "has the name of another")])
        found[target.name] = target
    return tuple(found.values())


def _read_target(given: Any) -> Target:
    kinds = {
        "name": str, "kind": str, "classes": list, "metric": str, "loss": str, "loss_weight": float,
    }  # fmt: skip
    if not isinstance(given, Mapping) or given.keys() != kinds.keys():
        raise InputError([Mistake("", f"has not exactly the keys {', '.join(kinds)}")])
    for key, kind in kinds.items():
        if type(given[key]) is not kind:
            raise InputError([Mistake(key, f"is not of type {kind.__name__}")])
    classes = given["classes"]
    texts = [given["name"], *classes]
    if not all(isinstance(each, str) and len(each) <= LONGEST_TARGET_NAME for each in texts):
        raise InputError([Mistake("classes", "are not names")])
    if len(classes) > MOST_CLASSES or len(set(classes)) < len(classes):
        raise InputError([Mistake("classes", "are too many, or one of them is named twice")])
    if given["kind"] not in KINDS:
        raise InputError([Mistake("kind", "is none that this version of allotment knows")])
    return Target(**{**given, "classes": tuple(classes)})


def describe_learner(name: str) -> str:
    """A learner in words, for a card: code with its fingerprint, since its file may change."""
    if name == BUILT_IN:
        return "the built-in learner"
    if is_code(name):
        return (
            f"{OWN_CODE} ({Path(name).name}, {fingerprint_learner(name).rpartition(' ')[2][:12]})"
        )
    if is_stepless(name):
        return (
            f"{fingerprint_learner(name)} (which has no weights to keep: {LEARNER_FOLDER} holds the"
            " rows and labels that it was fitted to, and it is fitted again each time it is asked)"
        )
    return LEARNERS.describe(name)
