"""Tables as a source: every column is a task, a feature, the name of the row or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allotment.data.source import DataSettings, Key, Rows, Source
from allotment.errors import InputError, Mistake, cut, suggest
from allotment.mistakes import Collected, Place

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset
    from allotment.data.embedding import SeenPictures
    from allotment.data.roles import Roles
    from allotment.data.table_file import TableFile

IMAGE_SIZE = 64
"""pixels on each side that images are brought to unless said"""
TOLD_FORMS = ("numeric", "categorical", "text", "image", "date")
"""what a column may be said to hold; for the order of a date's parts, date:dmy or date:mdy"""


class Table(Source):
    """A table of the user's own: labels that are not in it come from outside."""

    name = "table"
    about = "A table: CSV, TSV, xlsx, Parquet or npz. An empty target cell is a missing label."
    root = "the table's file"
    keys = (
        Key("id", str, "the column that names the rows, for orders and deliveries"),
        Key("group", str, "rows with the same entry in this column stay together"),
        Key("delimiter", str, "between cells of a CSV file"),
        Key("encoding", str, "how the letters of a CSV file are written; UTF-8 unless said"),
        Key("decimal", str, "the decimal sign of a CSV file's numbers; a point unless said"),
        Key("sheet", str, "the sheet of a workbook; its first one unless said"),
        Key("columns", list, f"what columns hold: NAME={'|'.join(TOLD_FORMS)}"),
        Key("drop", list, "columns to leave out"),
        Key(
            "pictures",
            str,
            'what is seen of images: small "features" of our own, or what a trained "network"'
            ' answers (weights); with "pixels" one is trained on them alone, which takes long',
        ),
        Key("weights", str, "the file of the trained network's weights", is_path=True),
        Key("image_size", int, "pixels on each side that images are brought to"),
        Key("rows", str, "how the digest of a file begins whose rows stand where they stood"),
    )
    kinds = ("classification", "multilabel", "regression")

    def open(self, given: DataSettings) -> Dataset:
        from allotment.data.features import TableInputs
        from allotment.data.table import read_labels

        tell = partial(_name_file, root=given.path)
        try:
            opened, roles = given.once(_open_file), _assign(given)
            size = given.options.get("image_size", IMAGE_SIZE)
            seen = _find_seen(given)
        except InputError as error:
            raise InputError(map(tell, error.mistakes)) from None
        inputs = TableInputs(opened, roles, None, size, True, tell, seen)
        try:
            return read_labels(opened, roles, inputs)
        except InputError as error:
            wrong = Collected()
            wrong.attempt(lambda: inputs.survey)  # so that all mistakes are said at once
            raise InputError([*wrong.found, *map(tell, error.mistakes)]) from None

    def list_names(self, given: DataSettings) -> Sequence[str]:
        """Its columns; none of a file that can't be read, which is said elsewhere."""
        try:
            return given.once(_open_file).names
        except InputError:
            return ()

    def list_files(self, given: DataSettings) -> Sequence[Path]:
        """The table, and pictures that it names."""
        from allotment.data.features import TableInputs

        inputs = TableInputs(given.once(_open_file), _assign(given), None, IMAGE_SIZE, True)
        return [given.path, *(given.path.parent / each for each in inputs.list_pictures())]

    def check(self, given: DataSettings) -> Sequence[tuple[Place, Mistake]]:
        """That the table's head has the columns that are named, and that what is to be seen of
        pictures is clear."""
        if wrong := _check_pictures(given.options):
            return wrong
        try:
            given.once(_open_file)
        except InputError as error:
            usual = "delimiter" if "delimiter" in given.options else "root"
            return [_place_in_file(each, usual) for each in error.mistakes]
        try:
            _assign(given)
        except InputError as error:
            places = _find_places(given)
            return [(places.get(each.where, ("data",)), each) for each in error.mistakes]
        return ()

    def guess_kind(self, given: DataSettings, task: str) -> str | None:
        from allotment.data.targets import guess_kind

        table, classes = given.once(_open_file), given.said("classes")
        if task not in table.names:  # several columns are one task
            return None
        roles = _assign(given)
        column = table.read(roles.wanted, roles.as_text)[task]
        return guess_kind(column, classes=classes.get(task))

    def settle(self, given: DataSettings) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """How the file is written, the column that names the rows, dates, and columns with nothing
        to learn from."""
        from allotment.data.inspection import inspect_table

        try:
            found = inspect_table(given.path, given.options, given.tasks)
        except InputError:  # which is said when the data are read
            return {}, ()
        given.known[_open_file] = found.table
        return found.options, found.notes

    def rows(self, given: DataSettings) -> Rows:
        return Rows(
            given.path,
            partial(given.once, _open_file),
            given.options.get("id"),
            tuple(given.options.get("drop", ())),
            given.options.get("rows", ""),
            _find_seen(given),
        )


def _open_file(given: DataSettings) -> TableFile:
    from allotment.data.inspection import layout_of
    from allotment.data.table_file import open_table_file

    return open_table_file(given.path, layout_of(given.options))


def _check_pictures(options: Mapping[str, Any]) -> list[tuple[Place, Mistake]]:
    """What is wrong with the keys `pictures` and `weights`."""
    from allotment.data.embedding import BY_NETWORK, BY_PIXELS, PICTURE_WAYS

    way, weights = options.get("pictures", BY_PIXELS), options.get("weights")
    key, what = "pictures", ""
    if way not in PICTURE_WAYS:
        what = f"unknown {cut(repr(way), 60)}; {suggest(way, PICTURE_WAYS)}"
    elif way == BY_NETWORK and weights is None:
        what = (
            "a trained network is in a file: name it (weights = ...), or take features of our own"
            ' (pictures = "features")'
        )
    elif way != BY_NETWORK and weights is not None:
        key, what = "weights", 'is for pictures = "network" alone; write that, or leave it out'
    elif weights is not None and not Path(weights).is_file():
        key, what = "weights", f"{_show(weights)}: there is no such file; write where it lies now"
    else:
        key, what = "image_size", _check_size(options.get("image_size", IMAGE_SIZE), way)
    return [(("data", key), Mistake(f"data: {key}", what))] if what else []


def _show(path: Any) -> str:
    return cut(repr(str(path)), 200)


def _check_size(size: int, way: str) -> str:
    """Why pictures can't be brought to this size to be seen in this way; "" if they can."""
    from allotment.data.embedding import BY_PIXELS, LARGEST_EMBEDDED_SIDE, SMALLEST_SEEN

    least = SMALLEST_SEEN[way]
    if size < least:
        return f"{size} is not {least} or more pixels"
    if way != BY_PIXELS and size > LARGEST_EMBEDDED_SIDE:
        return f"{size} is more than the {LARGEST_EMBEDDED_SIDE} pixels that are looked at"
    return ""


def _find_seen(given: DataSettings) -> SeenPictures | None:
    """How pictures are seen; None where that is as they are."""
    from allotment.data.embedding import BY_FEATURES, BY_PIXELS, OwnFeatures, SeenPictures

    if wrong := _check_pictures(given.options):
        raise InputError(mistake for _, mistake in wrong)
    way = given.options.get("pictures", BY_PIXELS)
    if way == BY_PIXELS:
        return None
    side = given.options.get("image_size", IMAGE_SIZE)
    if way == BY_FEATURES:
        return SeenPictures(OwnFeatures, side, given.keep)
    if given.open_network is None:
        what = "networks are opened by campaigns alone; here pictures are seen by features"
        raise InputError([Mistake("data: pictures", what)])
    open_network = partial(given.open_network, Path(given.options["weights"]))
    return SeenPictures(open_network, side, given.keep)


def _assign(given: DataSettings) -> Roles:
    """What the settings say that each column is there for."""
    from allotment.data.inspection import split_forms
    from allotment.data.roles import assign_roles

    group, id_, drop = (given.options.get(key) for key in ("group", "id", "drop"))
    forms = dict(split_forms(given.options.get("columns", ())))
    return assign_roles(
        given.once(_open_file),
        list(given.tasks),
        None,
        group,
        id_,
        tuple(drop or ()),
        given.said("kind"),
        given.said("classes"),
        forms,
    )


def _name_file(mistake: Mistake, root: Path) -> Mistake:
    """The same with the file that it is in: a line alone would be taken for one of the settings."""
    where = "" if mistake.where == repr(str(root)) else mistake.where
    if mistake.line is not None:
        place = f"{root}:{mistake.line}"
        return Mistake(f"{place}: {where}" if where else place, mistake.what)
    return mistake.under(str(root)) if where.startswith(("row ", "column ")) else mistake


def _place_in_file(mistake: Mistake, usual: str) -> tuple[Place, Mistake]:
    """A mistake of the file as one of the key of the settings that leads to it."""
    keys = ("delimiter", "encoding", "decimal")
    key = mistake.where if mistake.where in keys else usual
    line = "" if mistake.line is None else f", line {mistake.line}"
    where = "" if mistake.where == key else f"{mistake.where}{line}: "
    return ("data", key), Mistake(f"data: {key}", f"{where}{mistake.what}")


def _find_places(given: DataSettings) -> dict[str, Place]:
    """Of whatever the roles of columns can be wrong about, where the settings say it."""
    found: dict[str, Place] = {}
    for name in given.options.get("drop", ()):
        found[f"drop {name!r}"] = ("data", "drop")
    for text in given.options.get("columns", ()):
        found[f"column {text.rpartition('=')[0]!r}"] = ("data", "columns")
    for key in ("group", "id"):
        found[f"{key} {given.options.get(key)!r}"] = ("data", key)
    for number, name in enumerate(given.tasks):
        found[f"target {name!r}"] = ("task", number, "name")
        for key in ("kind", "classes"):
            found[f"{key} of {name!r}"] = ("task", number, key)
    return found


SOURCE = Table()
