"""What a model is asked about: rows of a table, or pictures, in the form that it was trained on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from allotment.data.augment import fit_image
from allotment.data.columns import Column, has_commas
from allotment.data.csv_file import Layout
from allotment.data.dataset import BaseData, Dataset, Instances, Target
from allotment.data.embedding import Embedding
from allotment.data.encoders import (
    Encoder,
    PictureEncoder,
    fit_encoder,
    fit_pictures,
    read_encoder,
    write_encoder,
)
from allotment.data.folder import FolderData
from allotment.data.pictures import PICTURE_SUFFIXES, load_images
from allotment.data.pixels import read_rgb
from allotment.data.renamed import find_base
from allotment.data.source import Rows
from allotment.data.table_file import TableFile, find_layout_of, open_table_file
from allotment.errors import InputError, Mistake, make_hints
from allotment.formatting import several
from allotment.mistakes import Collected

MOST_FEATURES = 1_000_000
"""numbers that a model may see of one row"""
LARGEST_SIDE = 10_000
"""pixels of a picture's side, as a model sees it"""
MOST_PICTURES = 1_000_000
"""pictures of one folder"""
NUMBERS_AT_ONCE = 1 << 24
"""numbers of the instances that a model is asked about at a time"""


@dataclass(frozen=True, eq=False)
class AskedInstances:
    """Instances that a model can be asked about."""

    names: tuple[str, ...] = field(repr=False)
    head: str
    """what the names are: a column of the table, `row` or `picture`"""
    open: Callable[[Instances], NDArray[Any]] = field(repr=False)
    """what the model sees of some of them"""
    at_once: int
    """how many to ask about at a time"""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class UnlabelledData(BaseData):
    """Instances of which nothing is known but what they look like."""

    targets: tuple[Target, ...]
    features: NDArray[Any] = field(repr=False)
    name: str = "asked"
    fingerprint: str = ""

    @property
    def size(self) -> int:
        return len(self.features)

    def known(self, task: str) -> NDArray[np.bool_]:
        return np.zeros(self.size, dtype=bool)

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.features[instances])

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        raise InputError([Mistake(f"task {task!r}", "nothing is known of what a model is asked")])


@dataclass(frozen=True)
class ModelTable:
    """Columns of a table, and what each was encoded with."""

    columns: Mapping[str, Encoder]
    id: str | None = None
    """the column that names the rows, if one does"""

    def __post_init__(self) -> None:
        if not self.columns or self.width > MOST_FEATURES:
            what = f"have {self.width} features; 1 to {MOST_FEATURES} are possible"
            raise InputError([Mistake("columns", what)])

    @property
    def width(self) -> int:
        return sum(encoder.width for encoder in self.columns.values())

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def is_pictures(self) -> bool:
        """Whether it is nothing but pictures, so that a folder of them will do."""
        return [each.form for each in self.columns.values()] == ["image"]

    @property
    def network(self) -> Embedding | None:
        """The trained network that its pictures are seen through, if there is one."""
        for encoder in self.columns.values():
            if isinstance(encoder, PictureEncoder) and encoder.network:
                return encoder.embedding
        return None

    def with_network(self, weights: Path) -> ModelTable:
        """The same with the network of a file, where there is to be one."""
        if self.network is None:
            return self
        from allotment.learners.frozen import FrozenNetwork  # torch takes a second to load

        network = FrozenNetwork.open(weights)
        columns = dict(self.columns)
        for name, encoder in self.columns.items():
            if not isinstance(encoder, PictureEncoder) or not encoder.network:
                continue
            if encoder.network != network.kind or encoder.width != network.width:
                what = (
                    f"holds a {network.kind}, and the model sees pictures through another network"
                )
                raise InputError([Mistake(str(weights), what)])
            columns[name] = replace(encoder, embedding=network)
        return replace(self, columns=columns)

    def open(self, source: Any, delimiter: str | None = None) -> AskedInstances:
        """The rows of a table; raises InputError with all that is wrong with it."""
        if isinstance(source, str | os.PathLike) and Path(source).is_dir():
            return self._open_folder(Path(source))
        numeric = [name for name, encoder in self.columns.items() if encoder.form == "numeric"]
        table, written = _open_table(source, delimiter, numeric)
        hint, wrong = make_hints(table.names), Collected()
        for name in self.columns:
            if name not in table.names:
                wrong.add(f"column {name!r}", f"is missing, and the model needs it; {hint(name)}")
        wrong.raise_all()
        named = [self.id] if self.id is not None and self.id in table.names else []
        if not named and self.is_pictures:
            named = list(self.columns)  # whose cells are names as well
        words = [name for name, encoder in self.columns.items() if encoder.form != "numeric"]
        held = table.read({*self.columns, *named}, {*words, *named})
        count = len(held[next(iter(self.columns))].missing)
        if not count:
            raise InputError([Mistake(table.name, "has no rows; there is nothing to predict")])
        names = held[named[0]].texts if named else [str(row + 1) for row in range(count)]
        try:
            notes = self._list_notes(held, count)
            pictures = self._see_pictures(held, table.folder)
        except InputError as error:
            file = str(source) if isinstance(source, str | os.PathLike) else table.name
            raise InputError(_name_line(each, file) for each in error.mistakes) from None

        def see(instances: Instances) -> NDArray[Any]:
            rows = instances.tolist()
            parts = []
            for name, encoder in self.columns.items():
                if name in pictures:
                    parts.append(pictures[name][rows])
                else:
                    parts.append(encoder.encode(held[name].pick(rows)))
            return np.concatenate(parts, axis=1)

        at_once = max(1, NUMBERS_AT_ONCE // self.width)
        return AskedInstances(
            tuple(names), named[0] if named else "row", see, at_once, (*written, *notes)
        )

    def _open_folder(self, root: Path) -> AskedInstances:
        """The pictures in a folder, for a model of nothing but pictures."""
        encoder = next(iter(self.columns.values()))
        if not self.is_pictures or not isinstance(encoder, PictureEncoder):
            what = "is a folder, and the model was trained on a table; give a table"
            raise InputError([Mistake(repr(str(root)), what)])
        names = _list_pictures(root)
        bound = replace(encoder, root=root)

        def see(instances: Instances) -> NDArray[Any]:
            words = [names[place] for place in instances.tolist()]
            return bound.encode(Column("picture", words=words))

        return AskedInstances(names, "picture", see, max(1, NUMBERS_AT_ONCE // self.width))

    def _see_pictures(
        self, held: Mapping[str, Column], folder: Path | None
    ) -> dict[str, NDArray[np.float32]]:
        """What the model sees of the pictures that a table names: of all at once, since that takes
        long and shows which won't do."""
        found: dict[str, NDArray[np.float32]] = {}
        wrong = Collected()
        for name, encoder in self.columns.items():
            if isinstance(encoder, PictureEncoder):
                seen = wrong.attempt(replace(encoder, root=folder).encode, held[name])
                found |= {} if seen is None else {name: seen}
        wrong.raise_all()
        return found

    def _list_notes(self, held: Mapping[str, Column], count: int) -> list[str]:
        """What the model never saw; raises InputError for cells that are nothing at all."""
        notes, wrong = [], Collected()
        for name, encoder in self.columns.items():
            is_picture = isinstance(encoder, PictureEncoder)
            if is_picture or wrong.attempt(encoder.encode, held[name]) is None:
                continue
            if new := encoder.count_new(held[name]):
                kind = "are empty" if encoder.form == "numeric" else "are empty or new"
                what = f"of {count} cells {kind}, of which the model knows nothing"
                notes.append(f"column {name!r}: {new} {what}")
        wrong.raise_all()
        return notes

    def to_dict(self) -> dict[str, Any]:
        listed = [
            {"name": name, "encoder": write_encoder(encoder)}
            for name, encoder in self.columns.items()
        ]
        return {"form": "table", "columns": listed, "id": self.id}


def _open_table(
    source: Any, delimiter: str | None, numeric: Sequence[str] = ()
) -> tuple[TableFile, list[str]]:
    """A table however it is written, and a word on what of that is not as usual."""
    layout, notes = find_layout_of(source, Layout(delimiter))
    table = open_table_file(source, layout)
    numbers = table.read([name for name in numeric if name in table.names], ())
    if any(map(has_commas, numbers.values())):
        return open_table_file(source, replace(layout, decimal=",")), notes
    return table, notes


def _name_line(mistake: Mistake, file: str) -> Mistake:
    """The same with the file that its line is of."""
    where = file if mistake.line is None else f"{file}:{mistake.line}"
    return Mistake(f"{where}: {mistake.where}", mistake.what)


@dataclass(frozen=True)
class ModelPictures:
    """Pictures, brought to one size."""

    height: int
    width: int
    column: str | None = None
    """of a table that names their files, if they came from one"""
    is_padded: bool = False
    """whole, in the middle of a square; otherwise stretched"""

    def __post_init__(self) -> None:
        if not 1 <= min(self.height, self.width) <= max(self.height, self.width) <= LARGEST_SIDE:
            what = f"of {self.height} x {self.width} pixels are none"
            raise InputError([Mistake("pictures", what)])
        if self.height != self.width:
            raise InputError([Mistake("pictures", "are not square")])

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.height, self.width)

    def open(self, source: Any, delimiter: str | None = None) -> AskedInstances:
        """The pictures in a folder, or those that a table names."""
        if isinstance(source, str | os.PathLike) and Path(source).is_dir():
            root = Path(source)
            return self._ask(_list_pictures(root), "picture", root)
        if self.column is None:
            what = "is no folder; the model was trained on pictures: give a folder of them"
            raise InputError([Mistake(repr(str(source)[:200]), what)])
        table, _ = _open_table(source, delimiter)
        if self.column not in table.names:
            hint = make_hints(table.names)(self.column)
            what = (
                f"is missing, which names the pictures; {hint}. A folder of pictures will do, too"
            )
            raise InputError([Mistake(f"column {self.column!r}", what)])
        texts = table.read({self.column}, {self.column})[self.column].texts
        if table.folder is None:
            what = "names pictures, but not in which folder they are; give a file or a folder"
            raise InputError([Mistake(f"column {self.column!r}", what)])
        return self._ask(tuple(texts), self.column, table.folder)

    def _ask(self, names: tuple[str, ...], head: str, root: Path) -> AskedInstances:
        def see(instances: Instances) -> NDArray[Any]:
            chosen = [names[place] for place in instances.tolist()]
            if self.is_padded:
                return np.stack([fit_image(read_rgb(root, name), self.height) for name in chosen])
            return load_images(Column(head, words=chosen), root, self.height)

        at_once = max(1, NUMBERS_AT_ONCE // (3 * self.height * self.width))
        return AskedInstances(names, head, see, at_once)

    def to_dict(self) -> dict[str, Any]:
        return {"form": "pictures"} | vars(self)


ModelInputs: TypeAlias = ModelTable | ModelPictures


def _list_pictures(root: Path) -> tuple[str, ...]:
    """Below the folder, in the order of their names."""
    found = []
    for place, folders, files in os.walk(root):
        folders.sort()
        inside = os.path.relpath(place, root)
        for name in sorted(files):
            if name.lower().endswith(PICTURE_SUFFIXES):
                found.append(Path(inside, name).as_posix())
        if len(found) > MOST_PICTURES:
            raise InputError([Mistake(str(root), f"holds more than {MOST_PICTURES} pictures")])
    if not found:
        what = f"holds no picture ({', '.join(PICTURE_SUFFIXES)}); check the path"
        raise InputError([Mistake(repr(str(root)), what)])
    return tuple(found)


def find_inputs(data: Dataset, rows: Rows | None) -> ModelInputs:
    """How the data of a campaign were brought into their form, so that others can be; raises
    InputError where that can't be said."""
    shape = data.inputs(np.zeros(1, dtype=np.int64)).shape[1:]
    if len(shape) == 3:
        forms = [column for column in data.columns if column.form == "image"]
        column = forms[0].name if forms and rows is not None else None
        return ModelPictures(shape[1], shape[2], column, isinstance(find_base(data), FolderData))
    if rows is None or not data.columns:
        what = "are features of their own making, which no model can make of other data"
        raise InputError([Mistake("data", what)])
    return _fit_table(data, rows)


def _fit_table(data: Dataset, rows: Rows) -> ModelTable:
    words = {column.name for column in data.columns if column.form != "numeric"}
    table = rows.open()
    held = table.read({column.name for column in data.columns}, words)
    wrong = Collected()
    columns: dict[str, Encoder] = {}
    for column in data.columns:
        encoder: Encoder | None
        if column.form == "image" and rows.seen is not None:
            encoder = fit_pictures(held[column.name], table.folder, rows.seen)
        else:
            encoder = wrong.attempt(fit_encoder, held[column.name], column.form)
        if encoder is not None:
            columns[column.name] = encoder
    wrong.raise_all()
    found = ModelTable(columns, rows.id)
    trained = data.inputs(np.arange(data.size, dtype=np.int64))
    same = [np.array_equal(part, trained[:, at]) for at, part in _list_blocks(found, held)]
    for name, is_same in zip(columns, same, strict=True):
        if not is_same:
            what = "can't be encoded again as it was for training; leave it out (drop)"
            wrong.add(f"column {name!r}", what)
    wrong.raise_all()
    return found


def _list_blocks(
    table: ModelTable, held: Mapping[str, Column]
) -> list[tuple[slice, NDArray[np.float32]]]:
    """Of each column its place among the features, and these."""
    blocks, at = [], 0
    for name, encoder in table.columns.items():
        blocks.append((slice(at, at + encoder.width), encoder.encode(held[name])))
        at += encoder.width
    return blocks


def read_inputs(plain: Any) -> ModelInputs:
    """What `to_dict` wrote; raises InputError for anything else."""
    if not isinstance(plain, Mapping):
        raise InputError([Mistake("inputs", "is not an object")])
    if plain.get("form") == "table":
        return _read_table(plain)
    keys = {"form", "height", "width", "column", "is_padded"}
    if plain.get("form") != "pictures" or plain.keys() != keys:
        raise InputError([Mistake("inputs", "are neither those of a table nor of pictures")])
    sizes = (plain["height"], plain["width"])
    fits = all(type(each) is int for each in sizes) and type(plain["is_padded"]) is bool
    if not fits or not isinstance(plain["column"], str | None):
        raise InputError([Mistake("inputs", "has a value of another type")])
    return ModelPictures(*sizes, plain["column"], plain["is_padded"])


def _read_table(plain: Mapping[str, Any]) -> ModelTable:
    listed, id_ = plain.get("columns"), plain.get("id")
    if not isinstance(listed, list) or not isinstance(id_, str | None):
        raise InputError([Mistake("inputs", "has no list of columns")])
    columns: dict[str, Encoder] = {}
    for number, each in enumerate(listed):
        name = each.get("name") if isinstance(each, Mapping) else None
        if not isinstance(name, str) or name in columns:
            what = "has no name of its own"
            raise InputError([Mistake(f"inputs: column {number + 1}", what)])
        try:
            columns[name] = read_encoder(each.get("encoder"))
        except InputError as error:
            where = f"inputs: column {number + 1}"
            raise InputError(mistake.under(where) for mistake in error.mistakes) from None
    return ModelTable(columns, id_)


def describe_inputs(inputs: ModelInputs) -> str:
    """In words, for people."""
    if isinstance(inputs, ModelPictures):
        how = "whole, in the middle of a square" if inputs.is_padded else "stretched"
        return f"pictures of {inputs.width} x {inputs.height} pixels ({how})"
    pictures = [each for each in inputs.columns.values() if isinstance(each, PictureEncoder)]
    if not pictures:
        return f"{several(len(inputs.columns), 'column')} of a table"
    how = f"the network {pictures[0].network}" if pictures[0].network else "features of our own"
    side = pictures[0].side
    beside = len(inputs.columns) - len(pictures)
    more = f" beside {several(beside, 'other column')} of a table" if beside else ""
    return f"pictures of {side} x {side} pixels (stretched), seen through {how}{more}"


def tell_source(inputs: ModelInputs) -> str:
    """What is to be typed after --root, as a placeholder."""
    return "TABLE" if isinstance(inputs, ModelTable) and not inputs.is_pictures else "FOLDER"
