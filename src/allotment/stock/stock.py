"""The labels of a campaign: the data's own that are at hand, with those laid over them that were
delivered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.connect.guard import show_value
from allotment.connect.masks import to_array
from allotment.data.dataset import PIXEL_KINDS, VOID, Dataset, Instances, Size, Target
from allotment.data.labels import Labels, Split, TaskLabels, draw
from allotment.data.renamed import rename_targets
from allotment.data.roles import TARGET_KINDS
from allotment.data.source import SOURCES, DataSettings, Rows
from allotment.errors import InputError, Mistake, suggest
from allotment.job import JSON, canonical
from allotment.learners.implying import imply
from allotment.ledger.disk import MASK_FOLDER
from allotment.renames import rename_keys
from allotment.settings.settings import SAME, Settings, find_data

OWN = {"own": True}
"""the value of a label that was bought from the data set itself: it is the one that the data
have"""
TEST = 0.25
"""of complete data, for evaluation alone"""
MOST_LOST, MOST_NAMED = 3, 50
"""classes that are told where they are missed, and where all are listed"""

LabelValues = Mapping[str, Mapping[str, JSON]]
"""delivered values, by task and by the name of the instance"""


@dataclass(frozen=True, eq=False)
class Stock:
    """All that a campaign can learn from: the data, which labels it began with, and which were
    delivered since."""

    data: Dataset
    """with every label that the data set has, whether it is at hand or not"""
    ids: tuple[str, ...] = field(repr=False)
    parts: Split
    start: Labels
    """labels at hand when the campaign began"""
    given: LabelValues = field(default_factory=dict, repr=False)
    corrected: Mapping[str, Collection[str]] = field(default_factory=dict, repr=False)
    """instances of each task whose label was corrected or withdrawn: what the data say of them
    counts no more"""
    oracle: bool = False
    """whether the data hold the labels that are to be bought, so that a plan can be judged"""
    folder: Path = Path()
    """of the campaign, for delivered masks"""
    rows: Rows | None = field(default=None, repr=False)
    """the table that the data are read from, if they are"""
    called: Mapping[str, str] = field(default_factory=dict, repr=False)
    """of tasks that the data call otherwise, their name there"""
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """of tasks, the others of which a label comes along with one of theirs"""

    @cached_property
    def place(self) -> dict[str, int]:
        """Of each instance, by its name."""
        return dict(zip(self.ids, range(len(self.ids)), strict=True))

    @cached_property
    def targets(self) -> dict[str, Target]:
        return {target.name: target for target in self.data.targets}

    @cached_property
    def labels(self) -> Labels:
        """All labels at hand now."""
        found = {}
        for task in self.targets:
            is_there = self._mark(self._find_places(self.given.get(task, {})))
            is_there &= self._mark(self.parts.train)
            is_there[self.own(task)] = True
            found[task] = TaskLabels(np.flatnonzero(is_there))
        return Labels(found)

    @cached_property
    def trained(self) -> Labels:
        """All that trainings have: the labels at hand, and those that follow from them."""
        return imply(self.labels, self.implies)

    def _find_places(self, names: Iterable[str]) -> Instances:
        """Of those of the names that are still there."""
        places = [self.place[name] for name in names if name in self.place]
        return np.array(places, dtype=np.int64)

    def _mark(self, places: Instances) -> NDArray[np.bool_]:
        """Of each instance, whether it is one of these: sets of places take far longer."""
        marks = np.zeros(self.data.size, dtype=bool)
        marks[places] = True
        return marks

    def own(self, task: str) -> Instances:
        """Instances with a label that was at hand from the start and was not corrected since."""
        start, corrected = self.start[task].instances, self.corrected.get(task, ())
        return np.setdiff1d(start, self._find_places(corrected)) if corrected else start

    @cached_property
    def have(self) -> dict[str, int]:
        return self.labels.counts

    def has(self, task: str, name: str) -> bool:
        """Whether the label is at hand; a task or an instance that is not there any more has
        none."""
        return task in self.targets and name in self.place and self.place[name] in self._held[task]

    def was_there(self, task: str, name: str) -> bool:
        """Whether the label was at hand when the campaign began."""
        known = task in self.targets and name in self.place
        return known and bool(np.isin(self.place[name], self.start[task].instances))

    @cached_property
    def _held(self) -> dict[str, set[int]]:
        return {task: set(self.labels[task].instances.tolist()) for task in self.targets}

    def candidates(self, task: str, ordered: Collection[str] = ()) -> list[str]:
        """Instances that could be labelled for the task: neither labelled nor on order."""
        ids = self.ids
        return [ids[place] for place in np.flatnonzero(self._mark_free(task, ordered)).tolist()]

    def count_candidates(self, task: str, ordered: Collection[str] = ()) -> int:
        """How many these are."""
        return int(self._mark_free(task, ordered).sum())

    def _mark_free(self, task: str, ordered: Collection[str]) -> NDArray[np.bool_]:
        is_free = self._mark(self.parts.train)
        is_free[self.trained[task].instances] = False
        if self.oracle:  # nobody could deliver the others
            is_free &= self.data.known(task)
        if ordered:
            is_free[self._find_places(ordered)] = False
        return is_free

    def inputs(self, names: Sequence[str]) -> NDArray[Any]:
        """What a model would see of these instances."""
        places = np.array([self.place[name] for name in names], dtype=np.int64)
        return np.asarray(self.whole().inputs(places))

    def labelled(self, task: str) -> tuple[list[str], NDArray[Any]]:
        """The instances with a label of the task, and these labels."""
        places = self.labels[task].instances
        names = [self.ids[place] for place in places.tolist()]
        return names, np.asarray(self.open().values(task, places))

    @cached_property
    def fingerprint(self) -> str:
        """Of the labels at hand and of what was delivered, whatever the data themselves are."""
        came = {task: dict(values) for task, values in self.given.items() if values}
        return hashlib.sha256(f"{self.labels.fingerprint}{canonical(came)}".encode()).hexdigest()

    @cached_property
    def unscored_fingerprint(self) -> str:
        """Of the data, whatever their tasks are scored by."""
        if not any(target.metric for target in self.data.targets):
            return self.data.fingerprint
        plain = tuple(replace(target, metric="") for target in self.data.targets)
        return self.data.with_targets(plain).fingerprint

    def rename(self, names: Mapping[str, str]) -> Stock:
        """The same with other names for some tasks."""
        if not names:
            return self
        columns = {name: self.called.get(name, name) for name in self.targets}
        called = rename_keys(columns, names)
        return replace(
            self,
            data=rename_targets(self.data, names),
            start=Labels(rename_keys(self.start, names)),
            given=rename_keys(self.given, names),
            corrected=rename_keys(self.corrected, names),
            called={name: column for name, column in called.items() if name != column},
            implies={
                names.get(by, by): tuple(names.get(task, task) for task in tasks)
                for by, tasks in self.implies.items()
            },
        )

    def open(self) -> Dataset:
        """The data to train on: labels that are not at hand are not known."""
        hand = {}
        for task in self.targets:
            hand[task] = np.zeros(self.data.size, dtype=bool)
            hand[task][self.trained[task].instances] = True
        given = {task: self._decode(task) for task in self.targets}
        for by, tasks in self.implies.items():
            for task in tasks:
                given[task] |= self._derive(by, task, given[by])
        return self.whole().with_labels(hand, given, self.fingerprint)

    def _derive(
        self, by: str, task: str, masks: Mapping[int, NDArray[Any]]
    ) -> dict[int, NDArray[Any]]:
        """Labels of a task that follow from masks: from those that were delivered, and from the
        data's own where these know no more."""
        mine = self.trained[task]
        new = np.intersect1d(mine.instances[mine.is_implied], self.labels[by].instances)
        is_known, found = self.data.known(task), {}
        for place in new.tolist():
            if place in masks or not is_known[place]:
                mask = masks[place] if place in masks else self.data.label(by, place)
                found[place] = list_seen(mask, self.targets[by], self.targets[task])
        return found

    def whole(self) -> Dataset:
        """The data with all that they know, in memory where they are small."""
        return self.data.loaded()

    def _decode(self, task: str) -> dict[int, NDArray[Any]]:
        """Delivered values in the form of their kind; those of the data's own stay there."""
        target, found = self.targets[task], {}
        for name, value in self.given.get(task, {}).items():
            if value != OWN and name in self.place:
                size = self.size_of(name) if target.kind in PIXEL_KINDS else None
                label = to_array(target, value, folder=self.folder / MASK_FOLDER, size=size)
                found[self.place[name]] = label
        return found

    def read_label(self, task: str, place: int) -> NDArray[Any]:
        """A label at hand in the form of its kind, as large as its picture."""
        target, value = self.targets[task], self.given.get(task, {}).get(self.ids[place], OWN)
        if value == OWN:
            return np.asarray(self.data.label(task, place))
        size = self.data.picture_size(place) if target.kind in PIXEL_KINDS else None
        return to_array(target, value, folder=self.folder / MASK_FOLDER, size=size)

    def read_own(self, task: str, places: Instances) -> list[JSON]:
        """What the data themselves say of these instances, in the form in which labels are kept; a
        map of pixels stays where it is."""
        target = self.targets[task]
        if target.kind not in TARGET_KINDS:
            return [OWN] * len(places)
        values = np.asarray(self.whole().values(task, places))
        if target.kind == "regression":
            return [float(str(each)) for each in values.astype(np.float32)]
        if target.kind == "classification":
            return [target.classes[each] for each in values.astype(np.int64).tolist()]
        return [_name_classes(target.classes, marks) for marks in values]

    def size_of(self, name: str) -> Size | None:
        """Of the picture that a label is laid over; none for a row of a table."""
        return self.data.picture_size(self.place[name])


def _name_classes(classes: Sequence[str], marks: NDArray[Any]) -> JSON:
    """The classes that are there; {name: 0 or 1} of the known ones where some are not."""
    known = {name: int(mark) for name, mark in zip(classes, marks, strict=True) if mark == mark}
    if len(known) < len(classes):
        return known
    return [name for name, mark in known.items() if mark]


def open_stock(
    settings: Settings,
    folder: Path,
    given: LabelValues | None = None,
    said: DataSettings | None = None,
    corrected: Mapping[str, Collection[str]] | None = None,
) -> Stock:
    """The data of a campaign with the labels at hand; raises InputError with all that does not fit
    the settings.

    `said` is what the settings say of the data, if something was read of these a moment ago.
    """
    said = find_data(settings, folder) if said is None else said
    stock = _open_kept(settings.kept, folder, said).rename(settings.renames.now)
    stock = replace(stock, corrected=corrected or {}, implies=settings.implies)
    stock = replace(stock, given=_without_own(stock, given or {}, settings.conflicts))
    _check_given(stock, settings)
    _check_implied(stock, settings)
    return stock


def list_seen(mask: NDArray[Any], source: Target, target: Target) -> NDArray[np.float32]:
    """Which classes any pixel of a mask has, as a label of another task."""
    places = np.unique(mask[mask != VOID]).tolist()
    seen = {source.classes[place] for place in places}
    return np.array([name in seen for name in target.classes], dtype=np.float32)


def _check_implied(stock: Stock, settings: Settings) -> None:
    """Raises InputError where a label is said to imply what can't be told from it."""
    mistakes = []
    for by, tasks in stock.implies.items():
        where, source = settings.locate(stock.folder, by, "implies"), stock.targets[by]
        for task in tasks:
            target = stock.targets[task]
            what = ""
            if (source.kind, target.kind) != ("segmentation", "multilabel"):
                what = (
                    f"a label of {by} ({source.kind}) does not tell one of {task} ({target.kind});"
                    " only masks tell which of several classes are there"
                )
            elif strange := [each for each in target.classes if each not in source.classes]:
                what = f"masks of {by} have no class {strange[0]!r}, which {task} has"
            if what:
                mistakes.append(Mistake(where, f"{what}; leave it out"))
    if mistakes:
        raise InputError(mistakes)


def _open_kept(settings: Settings, folder: Path, said: DataSettings) -> Stock:
    """The data with what was at hand from the start. Tasks are called as they are on record: which
    labels are drawn to begin with depends on their names."""
    with SOURCES.calling(settings.data["name"]):
        opened, rows = said.once(settings.source.open), settings.source.rows(said)
    aliases = {name: said.call(name) for name in settings.names}
    names = {called: name for name, called in aliases.items() if name != called}
    data = _choose_targets(rename_targets(opened, names), settings)
    ids = _name_instances(data)
    oracle = bool(settings.starts)
    if not oracle:
        parts = Split(np.arange(data.size, dtype=np.int64), _nobody(), _nobody())
        start = Labels({name: np.flatnonzero(data.known(name)).tolist() for name in settings.names})
    else:
        # labels at hand score themselves, so none are for validation
        parts = data.split(settings.seed, validation=0.0, test=TEST)
        start = _draw_start(data, parts.train, settings, folder)
    called = {name: each for each, name in names.items()}
    return Stock(data, ids, parts, start, {}, {}, oracle, folder, rows, called)


def _draw_start(data: Dataset, train: Instances, settings: Settings, folder: Path) -> Labels:
    """The labels to begin with; where there are not so many, the line that asks for them is
    named."""
    try:
        is_same = settings.instances == SAME
        return draw(data, train, dict(settings.starts), settings.seed, same=is_same)
    except InputError as error:
        places = {
            f"task {name!r}": settings.locate(folder, name, "have") for name in settings.names
        }
        raise InputError(
            replace(each, where=places.get(each.where, each.where)) for each in error.mistakes
        ) from None


def _check_given(stock: Stock, settings: Settings) -> None:
    """Raises InputError where labels were delivered that a task, as the settings have it now, can't
    have."""
    mistakes = []
    for name, target in stock.targets.items():
        values = [
            each
            for at, each in stock.given.get(name, {}).items()
            if each != OWN and at in stock.place
        ]
        if target.kind not in TARGET_KINDS or not values:
            continue
        if other := [each for each in values if not _has_form(each, target.kind)]:
            was = next(
                (kind for kind in TARGET_KINDS if _has_form(other[0], kind)), "something else"
            )
            what = (
                f"it is {target.kind} now, but {show_value(other[0])} was delivered as {was}; put"
                " kind ="
                f' "{was}" back'
            )
            mistakes.append(Mistake(settings.locate(stock.folder, name, "kind"), what))
        elif target.kind != "regression" and (lost := _list_lost(values, target.classes)):
            more = ", ..." if len(lost) > MOST_LOST else ""
            what = (
                "labels were delivered that are none of them now:"
                f" {', '.join(map(show_value, lost[:MOST_LOST]))}{more}"
            )
            listed = ", ".join(
                json.dumps(each, ensure_ascii=False)
                for each in (*target.classes, *lost)[:MOST_NAMED]
            )
            what += f"; put them back, as in classes = [{listed}]"
            mistakes.append(Mistake(settings.locate(stock.folder, name, "classes"), what))
    if mistakes:
        raise InputError(mistakes)


def _has_form(value: JSON, kind: str) -> bool:
    """Whether a kept value is one of the kind, whatever the classes are."""
    forms: dict[str, tuple[type, ...]] = {"classification": (str,), "multilabel": (list, dict)}
    return isinstance(value, forms.get(kind, (int, float)))


def _list_lost(values: Collection[JSON], classes: Collection[str]) -> list[str]:
    """The classes of delivered labels that the task does not have."""
    named = chain.from_iterable([each] if isinstance(each, str) else each for each in values)
    return [each for each in dict.fromkeys(named) if each not in set(classes)]


def _without_own(stock: Stock, given: LabelValues, rule: str) -> LabelValues:
    """The delivered labels but for those of instances that the data have one of, which came
    first."""
    if rule == "last":
        return given
    found = {}
    for task, values in given.items():
        had = {stock.ids[place] for place in stock.own(task).tolist()}
        found[task] = {name: value for name, value in values.items() if name not in had}
    return found


def _nobody() -> Instances:
    return np.zeros(0, dtype=np.int64)


def _choose_targets(data: Dataset, settings: Settings) -> Dataset:
    """The data with the tasks of the settings alone, in their order, scored as these say."""
    known = {target.name: target for target in data.targets}
    mistakes, chosen = [], []
    for name in settings.names:
        if name not in known:
            what = f"is not a task of {settings.data['name']}; {suggest(name, known)}"
            mistakes.append(Mistake(f"task {name!r}", what))
            continue
        keys = settings.targets.get(name, {})
        chosen.append(
            replace(
                known[name], **{key: keys[key] for key in ("metric", "loss_weight") if key in keys}
            )
        )
        if keys.get("kind", known[name].kind) != known[name].kind:
            what = f"kind: {keys['kind']} is wanted, and it is {known[name].kind}"
            mistakes.append(Mistake(f"task {name!r}", f"{what} in the data; leave it out"))
    if mistakes:
        raise InputError(mistakes)
    return data.with_targets(tuple(chosen))


def _name_instances(data: Dataset) -> tuple[str, ...]:
    """Names for orders and deliveries: the data's own, or the number of the row, the first being
    1."""
    if not data.ids:
        return tuple(map(str, range(1, data.size + 1)))
    seen: dict[str, int] = {}
    mistakes = []
    for number, name in enumerate(data.ids, 1):
        if not name.strip():
            mistakes.append(
                Mistake(
                    f"row {number}", "has no id; every row needs one, or leave the id column out"
                )
            )
        elif name in seen:
            mistakes.append(
                Mistake(
                    f"row {number}", f"has the id {name[:40]!r} of row {seen[name]}; ids are unique"
                )
            )
        seen.setdefault(name, number)
    if mistakes:
        more = [Mistake("id", f"and {len(mistakes) - 8} more rows")] if len(mistakes) > 8 else []
        raise InputError([*mistakes[:8], *more])
    return tuple(data.ids)
