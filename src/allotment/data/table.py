"""Tables as data: which columns are asked for, what they hold as arrays, and what is worth knowing of them.

The same file gives the same arrays on every machine: sums are exact, hashes are blake2, orders are sorted.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from allotment.amounts import short
from allotment.data.columns import MOST_CELLS, NOTHING, SHOWN, Column, Source, open_source, plain, unknown
from allotment.data.dataset import ArrayData, Dataset, Target
from allotment.data.labels import split
from allotment.errors import InputError, Mistake, suggest

PREFIXES = ("target:", "label:")
"""names of columns that are targets without being named as such"""
TARGET_KINDS = ("classification", "multilabel", "regression")
FORMS = ("numeric", "categorical", "text", "image")
"""what a feature column can hold"""
CATEGORIES = 50
"""of a column that get a feature each; rarer ones share one"""
BUCKETS = 256
"""features of a text column"""
FEW_VALUES = 20
"""whole numbers of at most so many values are classes"""
MOST_CLASSES = 10_000
FEW_LABELS = 5
MOST_MISTAKES = 20
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
PICTURE_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
MOST_PIXELS = 50_000_000

Features = NDArray[np.float32]
Found = TypeVar("Found")
Given = ParamSpec("Given")


@dataclass(frozen=True)
class FeatureColumn:
    """What became of one feature column: its form, how many numbers it is, and in how many rows it is empty."""

    name: str
    form: str
    width: int
    missing: int
    constant: bool = False


@dataclass(frozen=True, eq=False)
class TableData(ArrayData):
    """A table in memory, with what was noticed while it was read."""

    columns: tuple[FeatureColumn, ...] = ()
    guessed: tuple[str, ...] = ()
    """tasks whose kind nobody said"""
    notes: tuple[str, ...] = field(default=(), repr=False)


def read_table(
    source: Any,
    targets: Sequence[str] | str | None = None,
    features: Sequence[str] | str | None = None,
    group: str | None = None,
    id: str | None = None,
    kinds: Mapping[str, str] | None = None,
    *,
    classes: Mapping[str, Sequence[str]] | None = None,
    drop: Sequence[str] | str = (),
    separator: str = "|",
    delimiter: str | None = None,
    folder: str | Path | None = None,
    image_size: int = 64,
    standardise: bool = True,
) -> TableData:
    """A data set from CSV, Parquet, npz or a frame of pandas or polars; an empty target cell is a missing label.

    `targets` are columns, or `tox:*` for all columns with that prefix as one multilabel task; left out, those that
    begin with `target:` or `label:`. `features` are all other columns if left out. `kinds` says what a target is
    (classification, multilabel, regression) or a feature (numeric, categorical, text, image) where the guess is wrong.
    A multilabel cell such as `cat|dog` is cut at the `separator`; the separator alone means none of the classes.
    Images are looked for in `folder`, by default the table's own, and never outside it.
    """
    opened = open_source(source, delimiter)
    roles = _assign(opened, targets, features, group, id, _listed(drop), dict(kinds or {}), dict(classes or {}))
    if image_size < 1 or not separator:
        raise InputError([Mistake("image_size, separator", f"{image_size} and {separator!r}: both must be something")])
    columns = opened.read(roles.wanted, roles.as_text)
    wrong = _Collected()
    held = wrong.attempt(_encode_inputs, opened, roles, columns, folder, image_size, standardise)
    labels = [wrong.attempt(_encode_task, task, columns, separator) for task in roles.tasks]
    groups = None if group is None else wrong.attempt(_groups, columns[group])
    wrong.raise_all()
    assert held is not None
    done = [each for each in labels if each is not None]
    return TableData(
        name=opened.name,
        targets=tuple(each.target for each in done),
        features=held.array,
        labels={each.target.name: each.values for each in done},
        missing={each.target.name: each.missing for each in done},
        groups=groups,
        ids=() if id is None else tuple(columns[id].texts),
        columns=held.columns,
        guessed=tuple(task.name for task in roles.tasks if task.kind is None and not task.prefix),
        notes=(*held.notes, *(note for each in done for note in each.notes)),
    )


class _Collected:
    """Mistakes of several steps, so that all are said at once."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    def attempt(self, step: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found | None:
        try:
            return step(*given, **named)
        except InputError as error:
            self.found += error.mistakes
            return None

    def add(self, where: str, what: str) -> None:
        self.found.append(Mistake(where, what))

    def raise_all(self) -> None:
        if len(self.found) > MOST_MISTAKES:
            more = Mistake("", f"and {len(self.found) - MOST_MISTAKES} more mistakes")
            raise InputError([*self.found[:MOST_MISTAKES], more])
        if self.found:
            raise InputError(self.found)


# --- which columns are what ---


@dataclass(frozen=True)
class _Task:
    name: str
    columns: tuple[str, ...]
    prefix: str = ""
    """of its columns, if it is a multilabel task of several"""
    kind: str | None = None
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Roles:
    tasks: tuple[_Task, ...]
    features: tuple[str, ...]
    group: str | None
    id: str | None
    forms: Mapping[str, str]

    @property
    def wanted(self) -> set[str]:
        named = {name for name in (self.group, self.id) if name is not None}
        return named.union(self.features, *(task.columns for task in self.tasks))

    @property
    def as_text(self) -> set[str]:
        """Columns to be kept as they are written: an id of 007 is not 7."""
        kept = {name for name in (self.group, self.id) if name is not None}
        kept |= {name for name, form in self.forms.items() if form != "numeric"}
        return kept.union(*(task.columns for task in self.tasks if task.classes is not None and not task.prefix))


def _listed(names: Sequence[str] | str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _assign(
    source: Source,
    targets: Sequence[str] | str | None,
    features: Sequence[str] | str | None,
    group: str | None,
    id: str | None,
    drop: tuple[str, ...],
    kinds: dict[str, str],
    classes: dict[str, Sequence[str]],
) -> _Roles:
    """What each column is there for; raises InputError with everything that does not fit."""
    wrong = _Collected()
    if targets is None:
        tasks = _default_tasks(source, drop, wrong)
    else:
        tasks = [task for each in _listed(targets) if (task := _named_task(source, each, wrong))]
    tasks = [_with_kind(task, kinds, classes, wrong) for task in tasks]
    given = [("target", name) for task in tasks for name in task.columns] + [("drop", name) for name in drop]
    given += [(role, name) for role, name in (("group", group), ("id", id)) if name is not None]
    taken = {name for _, name in given}
    if features is None:
        usual = source.names if source.features is None else source.features
        chosen = tuple(name for name in usual if name not in taken)
    else:
        chosen = _listed(features)
    _check_names(source, [*given, *(("feature", name) for name in chosen)], wrong)
    forms = _check_kinds(tasks, chosen, kinds, classes, wrong)
    if not wrong.found and not tasks:
        wrong.add("targets", "there is none; name at least one column")
    if not wrong.found and not chosen and source.images is None:
        wrong.add("features", "no column is left to learn from")
    wrong.raise_all()
    return _Roles(tuple(tasks), chosen, group, id, forms)


def _named_task(source: Source, name: str, wrong: _Collected) -> _Task | None:
    if name in source.names:
        return _Task(name, (name,))
    if not name.endswith("*") or name == "*":
        wrong.add(f"target {name!r}", unknown(name, source.names))
        return None
    prefix = name[:-1]
    columns = tuple(each for each in source.names if each.startswith(prefix) and each != prefix)
    if not columns:
        wrong.add(f"target {name!r}", f"no column begins with {prefix!r}; {suggest(prefix, source.names)}")
        return None
    return _Task(prefix.rstrip(":_.-/ ") or prefix, columns, prefix, "multilabel")


def _default_tasks(source: Source, drop: tuple[str, ...], wrong: _Collected) -> list[_Task]:
    if source.targets is not None:
        return [_Task(name, (name,)) for name in source.targets if name not in drop]
    pairs = [(name, prefix) for name in source.names for prefix in PREFIXES if name.startswith(prefix)]
    tasks = [_Task(name.removeprefix(prefix) or name, (name,)) for name, prefix in pairs if name not in drop]
    if not tasks:
        shown = ", ".join(map(repr, source.names[:20])) + (", ..." if len(source.names) > 20 else "")
        what = f"none is named; name columns (--target NAME, targets=[...]) or call them {PREFIXES[0]}NAME. "
        wrong.add("targets", f"{what}Columns: {shown}")
    return tasks


def _with_kind(task: _Task, kinds: dict[str, str], classes: dict[str, Sequence[str]], wrong: _Collected) -> _Task:
    kind = kinds.get(task.name, task.kind)
    listed = tuple(map(str, classes[task.name])) if task.name in classes else None
    if kind is not None and kind not in TARGET_KINDS:
        wrong.add(f"kind of {task.name!r}", f"a target of a table can't be {kind!r}; {suggest(kind, TARGET_KINDS)}")
        kind = None
    if task.prefix and (kind != "multilabel" or listed is not None):
        wrong.add(f"target {task.prefix + '*'!r}", "several columns are one multilabel task, with a class for each")
    if listed is not None and (not listed or len(set(listed)) < len(listed) or not all(map(str.strip, listed))):
        wrong.add(f"classes of {task.name!r}", "each class needs a name of its own")
    if listed is not None and kind == "regression":
        wrong.add(f"classes of {task.name!r}", "a regression has none")
    return _Task(task.name, task.columns, task.prefix, kind, listed)


def _check_names(source: Source, given: list[tuple[str, str]], wrong: _Collected) -> None:
    """That every column is there, has a name and is there for one thing."""
    known = set(source.names)
    roles: dict[str, list[str]] = {}
    for role, name in given:
        roles.setdefault(name, []).append(role)
        if name not in known and role != "target":
            wrong.add(f"{role} {name!r}", unknown(name, source.names))
    for name, several in roles.items():
        if len(set(several)) > 1:
            wrong.add(f"column {name!r}", f"is both {' and '.join(dict.fromkeys(several))}; it can be one of them")
        elif len(several) > 1 and name.strip():
            wrong.add(f"{several[0]} {name!r}", "is named twice")
    unnamed = [
        place + 1 for place, name in enumerate(source.names) if not name.strip() and "feature" in roles.get(name, ())
    ]
    for place in unnamed[:SHOWN]:
        hint = "give it a name, or leave it out (--drop '', drop=''): it may be the row numbers that pandas writes"
        wrong.add(f"column {place}", f"has no name; {hint}")


def _check_kinds(
    tasks: list[_Task], chosen: tuple[str, ...], kinds: dict[str, str], classes: Iterable[str], wrong: _Collected
) -> dict[str, str]:
    """The forms of features that were said, after a check that all names and forms are known."""
    names = [task.name for task in tasks]
    for name, count in Counter(names).items():
        if count > 1 and len({task.columns for task in tasks if task.name == name}) > 1:
            wrong.add(f"task {name!r}", "two targets would have this name; rename a column")
    for role, strange in (("kind", set(kinds).difference(names, chosen)), ("classes", set(classes).difference(names))):
        for name in sorted(strange):
            wrong.add(f"{role} of {name!r}", f"there is no such target; {suggest(name, names)}")
    forms = {name: form for name, form in kinds.items() if name in chosen and name not in names}
    for name, form in forms.items():
        if form not in FORMS:
            wrong.add(f"kind of {name!r}", f"unknown form {form!r} of a feature; {suggest(form, FORMS)}")
    return forms


# --- features ---


@dataclass(frozen=True)
class _Inputs:
    array: NDArray[Any]
    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...] = ()


def _encode_inputs(
    source: Source, roles: _Roles, columns: dict[str, Column], folder: str | Path | None, size: int, standardise: bool
) -> _Inputs:
    if source.images is not None:
        return _Inputs(source.images, (FeatureColumn("X", "image", 1, 0),))
    held = [columns[name] for name in roles.features]
    forms = {column.name: roles.forms.get(column.name) or guess_form(column) for column in held}
    pictures = [column for column in held if forms[column.name] == "image"]
    if pictures:
        _check_alone(pictures, held)
        root = Path(folder) if folder is not None else source.folder
        array = load_images(pictures[0], root, size)
        return _Inputs(array, (FeatureColumn(pictures[0].name, "image", 1, 0),))
    wrong = _Collected()
    tried = [wrong.attempt(_encode, column, forms[column.name], standardise) for column in held]
    wrong.raise_all()
    blocks = [each for each in tried if each is not None]
    listed = [
        FeatureColumn(column.name, forms[column.name], block.shape[1], int(column.missing.sum()), _is_constant(column))
        for column, block in zip(held, blocks, strict=True)
    ]
    notes = [note for column in held if (note := _id_like(column, forms[column.name]))]
    return _Inputs(np.concatenate(blocks, axis=1), tuple(listed), tuple(notes))


def guess_form(column: Column) -> str:
    """What a feature column holds: numeric, categorical, text or image."""
    if column.numbers is not None:
        return "numeric"
    known = [each for each in column.texts if each]
    distinct = list(dict.fromkeys(known))
    if known and all(each.lower().endswith(PICTURES) for each in distinct):
        return "image"
    words = sum(len(_words(each)) for each in distinct[:1000]) / max(1, len(distinct[:1000]))
    return "text" if words >= 3 and 2 * len(distinct) > len(known) else "categorical"


def _check_alone(pictures: list[Column], held: list[Column]) -> None:
    others = [column.name for column in held if column is not pictures[0]]
    if others:
        shown = ", ".join(map(repr, others[:SHOWN])) + (", ..." if len(others) > SHOWN else "")
        what = f"holds images, which are learned from alone; leave the other features out (drop): {shown}"
        raise InputError([Mistake(f"column {pictures[0].name!r}", what)])


def _encode(column: Column, form: str, standardise: bool) -> Features:
    if form == "numeric":
        return encode_numbers(column, standardise)
    return encode_text(column) if form == "text" else encode_categories(column)


def _numbers(column: Column, role: str) -> NDArray[np.float64]:
    """The cells as finite numbers or NaN; raises InputError with the rows where they are not."""
    values = column.numbers
    if values is None:
        parsed = [_number(each) for each in column.texts]
        if bad := [row for row, each in enumerate(parsed) if each is None]:
            raise InputError(column.mistakes(bad, lambda row: f"{column.texts[row][:40]!r} is not a number"))
        values = np.array(parsed, dtype=np.float64)
    if infinite := np.flatnonzero(np.isinf(values)).tolist():
        what = f"is not a finite number; leave the cell of a {role} empty where it is unknown"
        raise InputError(column.mistakes(infinite, lambda row: f"{values[row]} {what}"))
    return values


def _number(text: str) -> float | None:
    if text.strip().lower() in NOTHING:
        return math.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def encode_numbers(column: Column, standardise: bool = True) -> Features:
    """Mean 0 and spread 1 over all rows; a missing value is the mean, and marked in a second feature."""
    values = _numbers(column, "feature")
    missing = np.isnan(values)
    known = values[~missing]
    if standardise:
        known = _standardised(known)
    elif len(known) and np.abs(known).max() > np.finfo(np.float32).max:
        rows = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max).tolist()
        raise InputError(column.mistakes(rows, lambda row: f"{values[row]} is too large unless it is standardised"))
    filled = np.zeros((len(values), 2 if missing.any() else 1), dtype=np.float32)
    filled[~missing, 0] = known
    if missing.any():
        filled[:, 1] = missing
    return filled


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact sums (fsum), so that no machine's order of adding shows; scaled first, so that none overflows."""
    peak = float(np.abs(values).max()) if len(values) else 0.0
    if not peak or values.min() == values.max():
        return np.zeros_like(values)
    values = np.ldexp(values, -math.frexp(peak)[1])
    centred = values - math.fsum(values.tolist()) / len(values)
    return np.asarray(centred / math.sqrt(math.fsum((centred * centred).tolist()) / len(values)))


def encode_categories(column: Column) -> Features:
    """One feature for each of the most frequent categories, one for all others, one for none."""
    counts = Counter(each for each in column.texts if each)
    frequent = sorted(counts, key=lambda each: (-counts[each], each))[:CATEGORIES]
    place = {each: at for at, each in enumerate(sorted(frequent))}
    width = len(place)
    if len(counts) > len(place):
        place |= dict.fromkeys(counts.keys() - place.keys(), width)
        width += 1
    if column.missing.any():
        place[""] = width
        width += 1
    encoded = np.zeros((len(column.texts), width), dtype=np.float32)
    encoded[np.arange(len(encoded)), [place[each] for each in column.texts]] = 1
    return encoded


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def encode_text(column: Column) -> Features:
    """A hashed bag of words of length 1: each word falls into one of a few features, with a sign of its own."""
    encoded = np.zeros((len(column.texts), BUCKETS), dtype=np.float32)
    places: dict[str, tuple[int, int]] = {}
    for row, text in enumerate(column.texts):
        held: dict[int, float] = {}
        for word, count in Counter(_words(text)).items():
            if word not in places:
                digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                places[word] = int.from_bytes(digest[:4], "little") % BUCKETS, 1 - 2 * (digest[4] & 1)
            bucket, sign = places[word]
            # Logarithms differ between machines in their last digit.
            held[bucket] = held.get(bucket, 0.0) + sign * round(1 + math.log(count), 6)
        length = math.sqrt(math.fsum(each * each for each in held.values()))
        if length:
            encoded[row, list(held)] = [each / length for each in held.values()]
    return encoded


def _is_constant(column: Column) -> bool:
    if column.numbers is None:
        return len(set(column.texts)) == 1
    values = column.numbers[~column.missing]
    return not len(values) or (len(values) == len(column.numbers) and bool(values.min() == values.max()))


def _id_like(column: Column, form: str) -> str:
    distinct = set(column.texts) if form == "categorical" else set()
    if len(distinct) <= CATEGORIES or 2 * len(distinct) <= len(column.texts):
        return ""
    hint = "if it names the instances, say so (id) or leave it out (drop)"
    return f"feature {column.name!r} has {len(distinct)} different values in {len(column.texts)} rows: {hint}"


# --- images ---


def load_images(column: Column, root: Path | None, size: int) -> NDArray[np.uint8]:
    """The images that a column names, as (n, 3, size, size); raises InputError with every file that won't do."""
    if root is None:
        raise InputError([Mistake(f"column {column.name!r}", "holds images; say in which folder they are (folder)")])
    try:
        from PIL import Image
    except ImportError:
        what = "holds images, and reading them needs Pillow: pip install 'allotment[train]'"
        raise InputError([Mistake(f"column {column.name!r}", what)]) from None
    if len(column.texts) * 3 * size * size > 8 * MOST_CELLS:
        raise InputError([Mistake(f"column {column.name!r}", f"its images would fill {8 * MOST_CELLS >> 30} GB")])
    images = np.zeros((len(column.texts), 3, size, size), dtype=np.uint8)
    wrong: dict[int, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd palettes and the like
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for row, text in enumerate(column.texts):
            try:
                images[row] = _load_image(_inside(root, text), size)
            except InputError as error:
                wrong[row] = f"{text[:200]!r} {error.mistakes[0].what}" if text else "names no image"
    if wrong:
        raise InputError(column.mistakes(wrong, wrong.__getitem__))
    return images


def _inside(root: Path, text: str) -> Path:
    """The file of that name below the root; raises InputError if it leads out of it or is not there."""
    given = PureWindowsPath(text)  # which knows both slashes and drive letters
    if given.is_absolute() or given.drive or given.root or ".." in given.parts or "\0" in text:
        raise InputError([Mistake("", "is not a path below the table's folder")])
    try:
        path = (root / text).resolve()
        if not path.is_relative_to(root.resolve()):
            raise InputError([Mistake("", "is a link that leads out of the table's folder")])
        if path.is_file():
            return path
    except (OSError, RuntimeError):  # a name that is too long, links in a circle
        pass
    raise InputError([Mistake("", "is not there")])


def _load_image(path: Path, size: int) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path, formats=PICTURE_FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Image.DecompressionBombError
            image.draft("RGB", (2 * size, 2 * size))  # decodes a large JPEG at a fraction of its size
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith("I;16"):
                upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
            small = upright.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
            return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise InputError(
            [Mistake("", f"has more than {MOST_PIXELS // 10**6} million pixels; make it smaller")]
        ) from None
    except Exception as error:  # decoders of damaged files raise almost anything
        reason = "" if isinstance(error, UnidentifiedImageError) else f" ({type(error).__name__})"
        raise InputError([Mistake("", f"is not an image that can be read{reason}")]) from None


# --- targets ---


@dataclass(frozen=True)
class _Labels:
    target: Target
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    notes: tuple[str, ...] = ()


def _encode_task(task: _Task, columns: dict[str, Column], separator: str) -> _Labels:
    if task.prefix:
        return _several_columns(task, [columns[name] for name in task.columns])
    column = columns[task.columns[0]]
    kind = task.kind or guess_kind(column, separator, task.classes)
    if kind == "regression":
        return _regression(task, column)
    if kind == "multilabel":
        return _multilabel(task, column, separator)
    return _classification(task, column)


def guess_kind(column: Column, separator: str = "|", classes: Sequence[str] | None = None) -> str:
    """What a target column asks for: text, true or false and whole numbers of few values are classes.

    >>> guess_kind(Column("price", numbers=np.array([0.5, 2.0])))
    'regression'
    >>> guess_kind(Column("pets", words=["cat|dog", "", "dog"]))
    'multilabel'
    """
    if classes is not None and set(column.texts) <= {"", *classes}:
        return "classification"
    if column.numbers is None and any(separator in each for each in set(column.texts)):
        return "multilabel"
    if classes is not None or column.boolean:
        return "classification"
    if column.numbers is None:
        return "classification" if any(column.texts) else "regression"
    known = column.numbers[~column.missing]
    if not len(known) or not np.isfinite(known).all() or (known != np.floor(known)).any():
        return "regression"
    distinct = len(np.unique(known))
    few = distinct <= 2 or (distinct <= FEW_VALUES and 2 * distinct <= len(known))
    return "classification" if few else "regression"


def _regression(task: _Task, column: Column) -> _Labels:
    values = _numbers(column, "target")
    if large := np.flatnonzero(np.abs(values) > np.finfo(np.float32).max).tolist():
        raise InputError(column.mistakes(large, lambda row: f"{values[row]} is too large (the limit is 3.4e38)"))
    unlabelled = f"task {task.name!r}: its kind can't be guessed without a label; taken for a regression"
    notes = (unlabelled,) if task.kind is None and np.isnan(values).all() else ()
    return _Labels(Target(task.name, "regression"), values.astype(np.float32), np.isnan(values), notes)


def _classification(task: _Task, column: Column) -> _Labels:
    classes = task.classes or _classes(column)
    _check_classes(task, classes)
    place = {each: at for at, each in enumerate(classes)} | {"": -1}
    _check_outside(column, classes, [row for row, each in enumerate(column.texts) if each not in place], column.texts)
    values = np.array([place[each] for each in column.texts], dtype=np.int64)
    return _Labels(Target(task.name, "classification", classes), values, values < 0, tuple(_odd_classes(task, classes)))


def _classes(column: Column) -> tuple[str, ...]:
    if column.boolean:
        return ("false", "true")
    if column.numbers is not None:
        return tuple(plain(each) for each in np.unique(column.numbers[~column.missing]).tolist())
    return tuple(sorted({each for each in column.texts if each}))


def _check_classes(task: _Task, classes: Sequence[str]) -> None:
    if not classes:
        what = f"has no label, so its classes must be given (--classes {task.name}=A|B, classes={{...}})"
        raise InputError([Mistake(f"task {task.name!r}", what)])
    if len(classes) > MOST_CLASSES:
        what = f"has {len(classes)} classes (the limit is {MOST_CLASSES}); is it a regression, or the wrong column?"
        raise InputError([Mistake(f"task {task.name!r}", what)])


def _check_outside(column: Column, classes: Sequence[str], rows: list[int], labels: Sequence[str]) -> None:
    if rows:
        shown = ", ".join(classes[:8]) + (", ..." if len(classes) > 8 else "")
        raise InputError(
            column.mistakes(rows, lambda row: f"label {labels[row][:40]!r} is none of its classes: {shown}")
        )


def _odd_classes(task: _Task, classes: Sequence[str]) -> list[str]:
    notes = []
    if empty := [each for each in classes if each.strip().lower() in NOTHING]:
        what = "counts as a class; leave the cell empty where there is no label"
        notes.append(f"task {task.name!r}: {empty[0]!r} {what}")
    alike = Counter(each.strip().casefold() for each in classes)
    if twins := [each for each in classes if alike[each.strip().casefold()] > 1]:
        shown = " and ".join(map(repr, twins[:2]))
        notes.append(f"task {task.name!r}: classes {shown} differ only in spaces or capitals")
    return notes


def _multilabel(task: _Task, column: Column, separator: str) -> _Labels:
    cut = [{part.strip() for part in each.split(separator)} - {""} for each in column.texts]
    classes = task.classes or tuple(sorted(set().union(*cut)))
    _check_classes(task, classes)
    if len(cut) * len(classes) > MOST_CELLS:
        raise InputError([Mistake(f"task {task.name!r}", f"{len(classes)} classes are too many for {len(cut)} rows")])
    place = {each: at for at, each in enumerate(classes)}
    strange = {row: min(parts - place.keys()) for row, parts in enumerate(cut) if not parts <= place.keys()}
    _check_outside(column, classes, list(strange), strange)  # type: ignore[arg-type]
    values = np.zeros((len(cut), len(classes)), dtype=np.float32)
    for row, parts in enumerate(cut):
        values[row, [place[each] for each in parts]] = 1
    values[column.missing] = np.nan
    return _Labels(Target(task.name, "multilabel", classes), values, column.missing, tuple(_odd_classes(task, classes)))


def _several_columns(task: _Task, columns: list[Column]) -> _Labels:
    classes = tuple(column.name.removeprefix(task.prefix) for column in columns)
    _check_classes(task, classes)
    wrong = _Collected()
    held = [wrong.attempt(_zero_or_one, column) for column in columns]
    wrong.raise_all()
    values = np.stack([each for each in held if each is not None], axis=1).astype(np.float32)
    return _Labels(Target(task.name, "multilabel", classes), values, np.asarray(np.isnan(values).all(axis=1)))


def _zero_or_one(column: Column) -> NDArray[np.float64]:
    values = _numbers(column, "target")
    if bad := np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1)).tolist():
        raise InputError(column.mistakes(bad, lambda row: f"{column.texts[row]} is neither 0, 1 nor empty"))
    return values


def _groups(column: Column) -> NDArray[Any]:
    if bad := np.flatnonzero(column.missing).tolist():
        raise InputError(column.mistakes(bad, lambda row: "is empty; each row needs its group"))
    return np.array(list(column.texts))


# --- what is there ---


@dataclass(frozen=True)
class TaskSummary:
    """Labels of one task: how many, of which classes, in which split."""

    name: str
    kind: str
    guessed: bool
    labelled: int
    missing: int
    share: float
    classes: Mapping[str, int]
    """labels of each; for multilabel, instances that have it"""
    splits: Mapping[str, int]


@dataclass(frozen=True)
class Summary:
    """What is in a data set, and what is worth knowing before learning from it."""

    name: str
    instances: int
    input: str
    seed: int
    splits: Mapping[str, int]
    tasks: tuple[TaskSummary, ...]
    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...]
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def describe(data: Dataset, seed: int = 0) -> Summary:
    """What is in a data set, with the splits that the seed draws."""
    drawn = split(data, seed)
    parts = {"train": drawn.train, "validation": drawn.validation, "test": drawn.test}
    tasks, notes = [], list(getattr(data, "notes", ()))
    for target in data.targets:
        known = data.known(target.name)
        labelled = int(known.sum())
        tasks.append(
            TaskSummary(
                name=target.name,
                kind=target.kind,
                guessed=target.name in getattr(data, "guessed", ()),
                labelled=labelled,
                missing=data.size - labelled,
                share=labelled / data.size,
                classes=_class_counts(data, target, np.flatnonzero(known)),
                splits={part: int(known[rows].sum()) for part, rows in parts.items()},
            )
        )
        notes += _task_notes(tasks[-1])
        if labelled and len(drawn.validation):
            notes += _validation_notes(tasks[-1], data, drawn.validation[known[drawn.validation]])
    columns = tuple(getattr(data, "columns", ()))
    notes += [*_column_notes(columns), *_id_notes(getattr(data, "ids", ()))]
    sizes = {part: len(rows) for part, rows in parts.items()}
    notes += [f"the {part} split is empty" for part, size in sizes.items() if not size]
    shape = data.inputs(np.zeros(1, dtype=np.int64)).shape[1:]
    numbers = "1 number" if shape == (1,) else f"{shape[0]} numbers"
    form = numbers if len(shape) == 1 else f"images of {' x '.join(map(str, shape))}"
    return Summary(data.name, data.size, form, seed, sizes, tuple(tasks), columns, tuple(notes), data.fingerprint)


def _class_counts(data: Dataset, target: Target, known: NDArray[np.int64]) -> dict[str, int]:
    if target.kind not in ("classification", "multilabel"):
        return {}
    values = data.values(target.name, known)
    if target.kind == "multilabel":
        counts = (values == 1).sum(axis=0)
    else:
        counts = np.bincount(values, minlength=len(target.classes))
    return dict(zip(target.classes, counts.tolist(), strict=True))


def _task_notes(task: TaskSummary) -> list[str]:
    name = f"task {task.name!r}"
    if not task.labelled:
        return [f"{name} has no label yet, which is allowed: it can't be scored until it has some"]
    notes = []
    if len(task.classes) == 1 and task.kind == "classification":
        notes.append(f"{name} has one class only, {next(iter(task.classes))!r}: there is nothing to learn")
    if rare := [f"{each!r} ({count})" for each, count in task.classes.items() if count < FEW_LABELS]:
        notes.append(f"{name} has fewer than {FEW_LABELS} labels of {_few(rare)}")
    return notes


def _validation_notes(task: TaskSummary, data: Dataset, validation: NDArray[np.int64]) -> list[str]:
    name = f"task {task.name!r}"
    if not len(validation):
        return [f"{name} has no label in the validation split, so it can't be scored"]
    values = data.values(task.name, validation)
    if task.kind == "multilabel":
        same = [len(np.unique(column[~np.isnan(column)])) < 2 for column in values.T]
        alike = [repr(each) for each, flag in zip(task.classes, same, strict=True) if flag]
        return [f"{name}: in the validation split all or none have {_few(alike)}"] if alike else []
    if task.kind not in ("classification", "regression") or len(np.unique(values)) > 1:
        return []
    if task.kind == "regression":
        return [f"{name} has one value only in the validation split ({values[0]:g})"]
    only = list(task.classes)[int(values[0])]
    return [f"{name} has one class only in the validation split ({only!r}): some metrics need two"]


def _column_notes(columns: Iterable[FeatureColumn]) -> list[str]:
    constant = [repr(column.name) for column in columns if column.constant]
    if not constant:
        return []
    return [f"{len(constant)} of the features {'is' if len(constant) == 1 else 'are'} constant: {_few(constant)}"]


def _id_notes(ids: Sequence[str]) -> list[str]:
    counts = Counter(ids)
    blank = counts.pop("", 0)
    notes = [f"{blank} instances have no id"] if blank else []
    if twice := [short(each) for each, count in counts.items() if count > 1]:
        notes.append(f"{len(twice)} ids are there more than once: {_few(twice)}")
    return notes


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN + 1 else ""
    return ", ".join(listed[:SHOWN] if more else listed) + more
