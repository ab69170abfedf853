"""Does a source keep the contract? Inherit, say where a small set of its data lies, and let pytest
run it:

class TestMine(SourceTests):
    def make(self):
        return MySource(), DataSettings({"side": 16}, Path("tests/small"))
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import KINDS, PIXEL_KINDS, VOID, Dataset, Instances, Target
from allotment.data.labels import Split
from allotment.data.source import SOURCES, DataSettings, Source
from allotment.settings.settings import Settings, parse_settings
from allotment.settings.template import write_template
from allotment.stock.stock import open_stock

SHARES = ("multilabel", "edges", "keypoints")
"""kinds whose values are from 0 to 1"""
MOST_INSTANCES = 8
"""instances whose inputs and labels are looked at"""
FIRST_LABELS = 1
"""labels of each task that a campaign of the tests begins with"""


class SourceTests:
    """Every test that a source must pass. `make` gives a source and what campaign.toml would say
    of a small set of its data: at least four instances, and in `tasks` those that are wanted of a
    source that finds them in the data."""

    def make(self) -> tuple[Source, DataSettings]:
        raise NotImplementedError("say which source it is, and where a small set of its data lies")

    # --- helpers ---

    def _open(self) -> Dataset:
        source, given = self.make()
        return source.open(given)

    def _some(self, data: Dataset) -> Instances:
        return np.unique(np.linspace(0, data.size - 1, MOST_INSTANCES).astype(np.int64))

    def _labelled(self, data: Dataset, task: str) -> Instances:
        """Some instances with a label."""
        return np.flatnonzero(data.known(task))[:MOST_INSTANCES]

    def _write(
        self, source: Source, given: DataSettings, options: Mapping[str, Any] | None = None
    ) -> str:
        """campaign.toml for these data, as `allot init` would write it, perhaps with other
        options."""
        keys: dict[str, Any] = {"name": source.name}
        if given.root is not None:
            keys["root"] = str(given.root.absolute())
        tasks = {}
        for name in [target.name for target in source.open(given).targets]:
            tasks[name] = {"cost": 2} | ({"have": FIRST_LABELS} if source.complete else {})
            tasks[name] |= given.tasks.get(name, {})
        training = {"network": "usual", "steps": 5}
        keys |= given.options if options is None else options
        with _offered(source):
            return write_template(keys, tasks, "100", "neutral", training)

    def _settings(self) -> Settings:
        source, given = self.make()
        with _offered(source):
            return parse_settings(self._write(source, given))

    # --- what it says of itself ---

    def test_it_has_a_name_and_a_sentence(self) -> None:
        source, _ = self.make()
        assert source.name.strip() == source.name != ""
        assert source.about.strip().endswith("."), "`about` is a sentence"
        assert "\n" not in source.about

    def test_keys_have_names_of_their_own_and_first_values_of_their_type(self) -> None:
        source, given = self.make()
        names = [key.name for key in source.keys]
        assert len(set(names)) == len(names)
        assert set(given.options) <= set(names), "`make` gives options that are no keys"
        for key in source.keys:
            assert key.comment.strip()
            assert "\n" not in key.comment
            assert key.initial is None or type(key.initial) is key.kind, key.name

    def test_tasks_that_are_known_beforehand_have_kinds_and_prices(self) -> None:
        source, _ = self.make()
        assert set(source.kinds) <= set(KINDS)
        for name, task in source.tasks.items():
            assert task.kind in KINDS, name
            assert task.cost > 0, name
            assert task.have > 0 or not source.complete, f"{name} begins with no label"

    def test_a_root_is_asked_for_if_there_is_one(self) -> None:
        source, given = self.make()
        assert bool(source.root) == (given.root is not None)

    # --- campaign.toml ---

    def test_what_the_template_writes_is_what_the_parser_reads(self) -> None:
        source, given = self.make()
        settings = self._settings()
        assert settings.data_settings(given.root).options == dict(given.options)
        assert settings.data["name"] == source.name
        assert dict(settings.starts) == (
            dict.fromkeys(settings.names, FIRST_LABELS) if source.complete else {}
        )

    def test_what_init_writes_of_itself_is_read_back(self) -> None:
        source, given = self.make()
        options = {key.name: key.initial for key in source.keys if key.initial is not None}
        text = self._write(source, given, options)
        with _offered(source):
            read = parse_settings(text).data
        assert {key: read[key] for key in options} == options

    def test_a_glance_finds_nothing_wrong_with_good_data(self) -> None:
        source, given = self.make()
        assert list(source.check(given)) == []

    def test_a_campaign_can_begin_with_it(self) -> None:
        source, _ = self.make()
        settings = self._settings()
        with _offered(source), tempfile.TemporaryDirectory() as folder:
            stock = open_stock(settings, Path(folder))
            assert stock.oracle == source.complete
            for task in stock.targets:
                free = stock.candidates(task)
                assert stock.count_candidates(task) == len(free)
                assert len(set(free)) == len(free)
                assert not any(stock.has(task, name) for name in free)
                if source.complete:
                    assert stock.have[task] == FIRST_LABELS
            trained = stock.open()
            for task in stock.targets:
                assert int(trained.known(task).sum()) == stock.have[task]

    # --- the data ---

    def test_opening_twice_gives_the_same(self) -> None:
        one, other = self._open(), self._open()
        assert one.fingerprint == other.fingerprint
        assert (one.name, one.size, one.ids) == (other.name, other.size, other.ids)
        assert one.targets == other.targets
        some = self._some(one)
        assert one.inputs(some).tobytes() == other.inputs(some).tobytes()
        for target in one.targets:
            mine, same = (data.known(target.name) for data in (one, other))
            assert mine.tobytes() == same.tobytes(), target.name
            labelled = self._labelled(one, target.name)
            mine, same = (data.values(target.name, labelled) for data in (one, other))
            assert mine.tobytes() == same.tobytes(), target.name

    def test_the_wanted_tasks_are_there_with_their_kinds(self) -> None:
        source, given = self.make()
        targets = {target.name: target for target in source.open(given).targets}
        assert set(given.tasks) <= set(targets)
        assert bool(targets)
        for name, target in targets.items():
            if source.tasks:
                assert target.kind == source.tasks[name].kind, name
            elif source.kinds:
                assert target.kind in source.kinds, name
            assert target.kind == given.tasks.get(name, {}).get("kind", target.kind), name

    def test_inputs_are_numbers_or_pictures(self) -> None:
        data = self._open()
        some = self._some(data)
        inputs = data.inputs(some)
        assert len(inputs) == len(some)
        if inputs.ndim == 4:
            assert inputs.dtype == np.uint8
            assert inputs.shape[1] == 3
        else:
            assert inputs.ndim == 2
            assert inputs.dtype == np.float32
            assert np.isfinite(inputs).all()

    def test_known_labels_have_the_form_of_their_kind(self) -> None:
        data = self._open()
        for target in data.targets:
            known = data.known(target.name)
            assert known.shape == (data.size,), target.name
            assert known.dtype == bool, target.name
            labelled = self._labelled(data, target.name)
            values = data.values(target.name, labelled)
            assert len(values) == len(labelled), target.name
            if len(labelled):
                check_form(target, values)

    def test_complete_data_have_labels_of_every_task(self) -> None:
        source, given = self.make()
        data = source.open(given)
        for target in data.targets:
            assert not source.complete or data.known(target.name).any(), target.name

    def test_instances_have_names_of_their_own_or_none(self) -> None:
        data = self._open()
        assert len(data.ids) in (0, data.size)
        assert len(set(data.ids)) == len(data.ids)
        assert all(name.strip() for name in data.ids)
        assert len(data.files) in (0, data.size)
        assert data.groups is None or len(data.groups) == data.size

    def test_parts_of_a_split_are_disjoint(self) -> None:
        data = self._open()
        for seed in (0, 1):
            parts = _list_parts(data.split(seed, validation=0.2, test=0.2))
            everyone = np.concatenate(parts)
            assert len(np.unique(everyone)) == len(everyone)
            assert everyone.min() >= 0
            assert everyone.max() < data.size
            assert len(parts[0]), "nothing is left to train on"
            again = _list_parts(data.split(seed, validation=0.2, test=0.2))
            assert all(map(np.array_equal, parts, again))
            assert not len(data.split(seed, validation=0.0).validation)

    def test_groups_stay_together(self) -> None:
        data = self._open()
        if data.groups is None:
            return
        parts = _list_parts(data.split(0, validation=0.2, test=0.2))
        groups = [set(data.groups[part].tolist()) for part in parts]
        assert not groups[0] & groups[1]
        assert not groups[0] & groups[2]
        assert not groups[1] & groups[2]

    # --- pictures ---

    def test_pictures_have_the_size_that_is_said(self) -> None:
        data = self._open()
        for instance in self._some(data).tolist():
            size = data.picture_size(instance)
            image = data.image(instance)
            if size is None:
                assert image.ndim == 1
                continue
            assert image.shape == (3, *size)
            for target in data.targets:
                if target.kind in PIXEL_KINDS and data.known(target.name)[instance]:
                    assert data.label(target.name, instance).shape[-2:] == size, target.name

    def test_a_label_in_its_own_size_fits_the_values(self) -> None:
        data = self._open()
        for target in data.targets:
            for instance in self._labelled(data, target.name).tolist():
                fitted = data.fit(target.name, data.label(target.name, instance))
                value = data.values(target.name, np.array([instance]))[0]
                close = np.allclose(fitted, value, rtol=1e-3, atol=1e-3, equal_nan=True)
                assert close, f"{target.name} of {instance}"

    # --- the same data with less ---

    def test_tasks_can_be_chosen(self) -> None:
        data = self._open()
        last = data.targets[-1]
        chosen = data.with_targets((last,))
        assert chosen.targets == (last,)
        assert chosen.size == data.size
        assert data.with_targets(data.targets).fingerprint == data.fingerprint
        some = self._labelled(data, last.name)
        np.testing.assert_array_equal(chosen.values(last.name, some), data.values(last.name, some))

    def test_labels_can_be_held_back_and_given(self) -> None:
        data = self._open()
        for target in data.targets:
            first = int(self._labelled(data, target.name)[0])
            known = {each.name: np.zeros(data.size, dtype=bool) for each in data.targets}
            known[target.name][first] = True
            given = change_label(target, data.label(target.name, first))
            labelled = data.loaded().with_labels(
                known, {target.name: {first: given}}, "a fingerprint"
            )
            assert np.flatnonzero(labelled.known(target.name)).tolist() == [first]
            value = labelled.values(target.name, np.array([first]))[0]
            fitted = data.fit(target.name, given)
            assert np.allclose(value, fitted, rtol=1e-3, atol=1e-3, equal_nan=True), target.name
            np.testing.assert_array_equal(labelled.label(target.name, first), given)
            np.testing.assert_array_equal(labelled.image(first), data.image(first))
            assert labelled.picture_size(first) == data.picture_size(first)


def change_label(target: Target, label: NDArray[Any]) -> NDArray[Any]:
    """Another label in the same form."""
    if target.kind == "classification":
        return np.asarray((label + 1) % len(target.classes))
    if target.kind == "segmentation":
        return np.full_like(label, VOID)
    if target.kind == "normals":
        return -label
    return np.asarray(1 - label if target.kind in SHARES else label + 1)


def check_form(target: Target, values: NDArray[Any]) -> None:
    """That labels are what `KINDS` says of their kind."""
    shapes = {"normals": 4, "multilabel": 2, "classification": 1, "regression": 1}
    assert values.ndim == shapes.get(target.kind, 3), target.name
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if target.kind == "classification":
        assert values.dtype.kind in "iu", target.name
        assert ((values >= 0) & (values < len(target.classes))).all(), target.name
    elif target.kind == "multilabel":
        assert values.shape[1] == len(target.classes), target.name
        assert np.isin(known, (0, 1)).all(), target.name
    elif target.kind == "segmentation":
        assert ((values < len(target.classes)) | (values == VOID)).all(), target.name
    elif target.kind == "regression":
        assert np.isfinite(values).all(), target.name
    elif target.kind == "normals":
        lengths = np.sqrt((values.astype(np.float64) ** 2).sum(axis=1))
        assert np.nanmax(np.abs(lengths - 1), initial=0) < 0.05, target.name
    elif target.kind in ("edges", "keypoints"):
        assert ((known >= 0) & (known <= 1)).all(), target.name


def _list_parts(split: Split) -> tuple[Instances, Instances, Instances]:
    return split.train, split.validation, split.test


@contextmanager
def _offered(source: Source) -> Iterator[None]:
    """The source under its name, also before the package that offers it is installed."""
    own = SOURCES.own
    if source.name in own:
        yield
        return
    assert isinstance(own, dict)
    own[source.name] = lambda: source
    try:
        yield
    finally:
        del own[source.name]
