"""A campaign's table with every label merged in, and a list of where each came from, as files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from allotment.campaign.origins import ORIGIN_COLUMNS, Origin
from allotment.campaign.state import CampaignState
from allotment.cells import encode_table
from allotment.connect.delivery import INSTANCE, write_value
from allotment.connect.masks import encode_map
from allotment.data.columns import Column, plain
from allotment.data.dataset import PIXEL_KINDS, Target
from allotment.errors import InputError, Mistake, suggest
from allotment.files import place_file, replace_file
from allotment.job import JSON
from allotment.ledger.disk import MASK_FOLDER, judge_path
from allotment.machine import make_folder, sync_folder
from allotment.problem import show_exact
from allotment.stock.stock import OWN, Stock

FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".jsonl": "jsonl"}
"""that a table can be written in, by the ending of its name"""
ORIGIN_PLACES = ("file", "columns", "none")
"""where it is said what labels came from: in a second file, in columns of the table, or nowhere"""
ABOUT = ("source", "when", "price", "settled")
"""columns of each task that say where its labels came from, after its name and a dot"""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    table: Path
    labels: Path | None
    """the list of where each label came from"""
    masks: Path | None
    """the folder of those labels that are pictures"""
    counts: Mapping[str, int]
    """of each task, the labels in the table"""
    rows: int

    def to_dict(self) -> dict[str, JSON]:
        files = {"table": self.table, "labels": self.labels, "masks": self.masks}
        named = {key: None if path is None else str(path) for key, path in files.items()}
        return named | {"rows": self.rows, "counts": dict(self.counts)}


Cells = list[JSON]
"""of a column: texts, numbers, true and false, lists of classes, and None where nothing is"""


def export(
    state: CampaignState,
    origins: Sequence[Origin],
    path: Path,
    form: str | None = None,
    about: str = "file",
    force: bool = False,
) -> Exported:
    """Write the table, and what belongs to it beside it: `all.csv` comes with `all.labels.csv`, and
    with `all.masks` where labels are pictures. The table is written last, so that it is never
    without what it speaks of. The same campaign gives the same bytes."""
    form = choose_format(path, form)
    if about not in ORIGIN_PLACES:
        what = f"unknown {about!r}; {suggest(about, ORIGIN_PLACES)}"
        raise InputError([Mistake("--origins", what)])
    encode = _ENCODERS[form]
    masks = path.with_name(f"{path.stem}.masks")
    columns = _list_columns(state, masks.name, as_written=form in ("csv", "tsv"))
    if about == "columns":
        columns |= _list_about(state, origins)
    files = {path: encode(columns)}
    listed = path.with_name(f"{path.stem}.labels{path.suffix}") if about == "file" else None
    if listed is not None:
        files = {listed: encode(_list_origins(state, origins, masks.name)), **files}
    if not force:
        _check_others(files)
    has_masks = _write_masks(state, masks, force)
    for place, content in files.items():
        _write(place, content, force)
    stock = state.stock
    return Exported(path, listed, masks if has_masks else None, stock.have, len(stock.ids))


def choose_format(path: Path, form: str | None) -> str:
    """The format that is named, or that the ending of a file stands for."""
    if form is None:
        form = FORMATS.get(path.suffix.lower(), "")
    if form not in FORMATS.values():
        endings = ", ".join(FORMATS)
        what = f"has no ending that says what it is; call it {endings}, or add --format NAME"
        raise InputError([Mistake(str(path), what)])
    return form


# Columns


def _list_columns(state: CampaignState, masks: str, as_written: bool) -> dict[str, Cells]:
    """The table as it is, with the labels at hand in the columns of the tasks."""
    stock = state.stock
    if stock.rows is None:
        columns: dict[str, Cells] = {INSTANCE: list(stock.ids)}
        columns |= {"file": list(stock.data.files)} if stock.data.files else {}
    else:
        columns = _read_table(stock, as_written)
    for name, target in stock.targets.items():
        labels = _list_labels(stock, target, masks)
        written = columns.get(name) if as_written else None
        keep = _find_untouched(stock, name) if written is not None else set()
        columns[name] = [
            written[at] if written is not None and at in keep else label
            for at, label in enumerate(labels)
        ]
    return columns


def _read_table(stock: Stock, as_written: bool) -> dict[str, Cells]:
    """Every column that has a name, as it is written in a text or as it is meant."""
    assert stock.rows is not None
    opened = stock.rows.open()
    names = [name for name in opened.names if name.strip()]
    texts = opened.read(names, names)
    kept_as_text = {stock.rows.id}
    meant = opened.read([name for name in names if name not in kept_as_text], ())
    found: dict[str, Cells] = {}
    tasks = {column: task for task, column in stock.called.items()}
    for name in names:
        column, shown = meant.get(name, texts[name]), tasks.get(name, name)
        if not as_written:
            found[shown] = _list_values(column)
        elif _is_same(column, texts[name]):
            found[shown] = [each or None for each in texts[name].texts]
        else:  # with decimal commas, say
            found[shown] = [each or None for each in column.texts]
    return found


def _is_same(column: Column, written: Column) -> bool:
    """Whether numbers are written such that any program reads them."""
    if column.numbers is None or column.boolean:
        return True
    try:
        for text in written.texts:
            float(text or 0)
    except ValueError:
        return False
    return True


def _list_values(column: Column) -> Cells:
    if column.numbers is None:
        return [each or None for each in column.texts]
    if column.boolean:
        return [None if each != each else bool(each) for each in column.numbers.tolist()]
    return [_simplify(each) for each in column.numbers.tolist()]


def _simplify(number: float) -> JSON:
    """A whole number without its point, None for none."""
    if number != number:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _list_labels(stock: Stock, target: Target, masks: str) -> Cells:
    """Of each instance its label, as a cell has it; None where none is at hand."""
    labels: Cells = [None] * len(stock.ids)
    given = stock.given.get(target.name, {})
    places = stock.labels[target.name].instances
    for place, own in zip(places.tolist(), stock.read_own(target.name, places), strict=True):
        name = stock.ids[place]
        value = given.get(name, own)
        value = own if value == OWN else value
        if target.kind in PIXEL_KINDS and not _has_points(value):
            labels[place] = f"{masks}/{_name_mask(target.name, name)}"
        else:
            labels[place] = _simplify(value) if isinstance(value, float) else value
    return labels


def _find_untouched(stock: Stock, task: str) -> set[int]:
    """Rows whose label is the one that the table has."""
    given = {
        stock.place[name]
        for name, value in stock.given.get(task, {}).items()
        if value != OWN and name in stock.place
    }
    return set(stock.labels[task].instances.tolist()) - given


def _has_points(value: JSON) -> bool:
    return isinstance(value, dict) and "points" in value


def _list_about(state: CampaignState, origins: Sequence[Origin]) -> dict[str, Cells]:
    """Columns that say of each label where it came from."""
    stock = state.stock
    empty = {f"{task}.{each}" for task in stock.targets for each in ABOUT}
    columns: dict[str, Cells] = {name: [None] * len(stock.ids) for name in sorted(empty)}
    for each in origins:
        place = stock.place.get(each.instance)
        if place is None:
            continue
        if each.counts:
            columns[f"{each.task}.source"][place] = each.source
            columns[f"{each.task}.when"][place] = each.when or None
            columns[f"{each.task}.settled"][place] = each.settled or None
        if each.price is not None:
            columns[f"{each.task}.price"][place] = _show_price(each)
    order = [f"{task}.{each}" for task in stock.targets for each in ABOUT]
    return {name: columns[name] for name in order}


def _list_origins(state: CampaignState, origins: Sequence[Origin], masks: str) -> dict[str, Cells]:
    """The list of all that was said of labels, column by column."""
    columns: dict[str, Cells] = {name: [] for name in ORIGIN_COLUMNS}
    for each in origins:
        cells = (
            each.task,
            each.instance,
            _tell_label(state, each, masks),
            "yes" if each.counts else "no",
            each.source,
            each.delivery or None,
            each.when or None,
            _show_price(each),
            each.settled or None,
        )
        for name, cell in zip(ORIGIN_COLUMNS, cells, strict=True):
            columns[name].append(cell)
    return columns


def _tell_label(state: CampaignState, origin: Origin, masks: str) -> JSON:
    """A label as a text; one that is a picture by its file, of those that count."""
    is_map = state.stock.targets[origin.task].kind in PIXEL_KINDS
    if origin.value is None:
        return None
    if is_map and not _has_points(origin.value):
        if origin.counts:
            return f"{masks}/{_name_mask(origin.task, origin.instance)}"
        return None if origin.value == OWN else write_value(origin.value, MASK_FOLDER)
    return write_value(origin.value)


def _show_price(origin: Origin) -> JSON:
    return None if origin.price is None else show_exact(origin.price)


# Formats


def _encode_text(columns: Mapping[str, Cells], delimiter: str = ",") -> bytes:
    rows = zip(*columns.values(), strict=True)
    cells = ([_write_cell(cell) for cell in row] for row in rows)
    return encode_table([list(columns), *cells], delimiter)


def _write_cell(cell: JSON) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return str(cell).lower()
    return plain(cell) if isinstance(cell, float) else write_value(cell)


def _encode_jsonl(columns: Mapping[str, Cells]) -> bytes:
    lines = io.StringIO()
    for row in zip(*columns.values(), strict=True):
        about = dict(zip(columns, row, strict=True))
        lines.write(json.dumps(about, ensure_ascii=False, allow_nan=False) + "\n")
    return lines.getvalue().encode(errors="replace")


def _encode_parquet(columns: Mapping[str, Cells]) -> bytes:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        what = "writing Parquet needs pyarrow: pip install 'allotment[data]'"
        raise InputError([Mistake("--format parquet", what)]) from None
    arrays = {name: pa.array(*_choose_type(pa, cells)) for name, cells in columns.items()}
    made = io.BytesIO()
    pq.write_table(pa.table(arrays), made)
    return made.getvalue()


def _choose_type(pa: Any, cells: Cells) -> tuple[Cells, Any]:
    """The cells, and the type that all of them have; what has several is text."""
    types = {type(cell) for cell in cells} - {type(None)}
    if types <= {bool} and types:
        return cells, pa.bool_()
    if types <= {int} and types:
        return cells, pa.int64()
    if types <= {int, float} and types:
        return cells, pa.float64()
    return [None if cell is None else _write_cell(cell) for cell in cells], pa.string()


_ENCODERS: dict[str, Callable[[Mapping[str, Cells]], bytes]] = {
    "csv": _encode_text,
    "tsv": lambda columns: _encode_text(columns, "\t"),
    "jsonl": _encode_jsonl,
    "parquet": _encode_parquet,
}


# Files


def _check_others(files: Mapping[Path, bytes]) -> None:
    """Raises InputError where something else would be overwritten."""
    wrong = []
    for path, content in files.items():
        try:
            other = path.exists() and not (path.is_file() and path.read_bytes() == content)
        except OSError:
            other = True
        if other:
            what = "is there already and holds something else; --force writes over it"
            wrong.append(Mistake(str(path), what))
    if wrong:
        raise InputError(wrong)


def _write(path: Path, content: bytes, force: bool, settle: bool = True) -> None:
    if force and path.is_file() and path.read_bytes() != content:
        replace_file(path, content)
    else:
        place_file(path, content, settle=settle)


def _name_mask(task: str, instance: str) -> str:
    """Where the mask of an instance lies in the folder of masks; raises InputError if its name
    would lead elsewhere."""
    name = f"{task}/{instance}.png"
    if what := judge_path(name):
        raise InputError([Mistake(name, what)])
    return name


def _write_masks(state: CampaignState, folder: Path, force: bool) -> bool:
    """The labels that are pictures, each as TASK/INSTANCE.png; whether there are any."""
    stock, written = state.stock, set[Path]()
    for name, target in stock.targets.items():
        if target.kind not in PIXEL_KINDS:
            continue
        given, data = stock.given.get(name, {}), stock.open()
        for place in stock.labels[name].instances:
            instance = stock.ids[int(place)]
            value = given.get(instance, OWN)
            if _has_points(value):
                continue
            if value == OWN:
                content = encode_map(target.kind, np.asarray(data.values(name, place[None]))[0])
            else:  # as it was delivered, to the last byte
                content = (stock.folder / MASK_FOLDER / f"{value['png']}.png").read_bytes()
            path = folder / _name_mask(name, instance)
            if path.parent not in written:
                make_folder(path.parent)
                written.add(path.parent)
            if not force:
                _check_others({path: content})
            _write(path, content, force, settle=False)
    for each in sorted(written):
        sync_folder(each)
    return bool(written)
