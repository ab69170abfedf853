"""The built-in sources keep the contract of sources, and the tests of the contract see what
doesn't."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.folders import make_taskonomy, make_voc
from numpy.typing import NDArray

from allotment.data.dataset import BaseData, Dataset, Instances, Target
from allotment.data.labels import Split
from allotment.data.roles import TARGET_KINDS
from allotment.data.source import SOURCES, DataSettings, Key, KnownTask, Source
from allotment.errors import InputError
from allotment.stock.conformance import SourceTests

TABLE = """id,age,colour,species,weight
a,3,red,cat,4.2
b,7,blue,dog,
c,2,red,,3.9
d,5,blue,dog,21
e,4,red,cat,5
f,6,blue,dog,18
"""


class TestTable(SourceTests):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "pets.csv"
        self.path.write_text(TABLE)

    def make(self) -> tuple[Source, DataSettings]:
        tasks: dict[str, dict[str, Any]] = {"species": {}, "weight": {"kind": "regression"}}
        options = {"id": "id", "drop": ["colour"]}
        return SOURCES.load("table"), DataSettings(options, self.path, tasks)


class TestScenes(SourceTests):
    def make(self) -> tuple[Source, DataSettings]:
        return SOURCES.load("scenes"), DataSettings({"count": 8, "size": 16})


class TestVoc(SourceTests):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.root = make_voc(tmp_path / "VOC2012")

    def make(self) -> tuple[Source, DataSettings]:
        return SOURCES.load("voc"), DataSettings({"side": 24}, self.root)


class TestTaskonomy(SourceTests):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.root = make_taskonomy(tmp_path / "taskonomy")

    def make(self) -> tuple[Source, DataSettings]:
        return SOURCES.load("taskonomy"), DataSettings({"side": 12}, self.root)


# --- the tests themselves ---


@dataclass(frozen=True, eq=False)
class Stripes(BaseData):
    """Pictures of 12 x 8 pixels, learned from as 6 x 4: where they are light, and how light."""

    name: str = "stripes"
    targets: tuple[Target, ...] = (
        Target("light", "segmentation", ("dark", "light")),
        Target("grey", "regression"),
    )
    size: int = 10

    @property
    def fingerprint(self) -> str:
        return f"stripes {self.size} {self.targets}"

    def image(self, instance: int) -> NDArray[Any]:
        rows = (np.arange(12) * (instance + 1)) % 256
        return np.broadcast_to(rows[None, :, None], (3, 12, 8)).astype(np.uint8)

    def picture_size(self, instance: int) -> tuple[int, int]:
        return 12, 8

    def known(self, task: str) -> NDArray[np.bool_]:
        return np.ones(self.size, dtype=bool)

    def inputs(self, instances: Instances) -> NDArray[Any]:
        return np.stack([self.image(each)[:, ::2, ::2] for each in instances.tolist()])

    def label(self, task: str, instance: int) -> NDArray[Any]:
        image = self.image(instance)[0]
        return (image > 20).astype(np.uint8) if task == "light" else np.float32(image.mean())

    def fit(self, task: str, label: NDArray[Any]) -> NDArray[Any]:
        return label[::2, ::2] if task == "light" else label

    def values(self, task: str, instances: Instances) -> NDArray[Any]:
        return np.stack([self.fit(task, self.label(task, each)) for each in instances.tolist()])


class Good(Source):
    """Keeps the contract with a data set of its own."""

    name = "stripes"
    about = "Striped pictures."
    keys = (Key("count", int, "how many there are", 10),)
    complete = True
    tasks: Mapping[str, KnownTask] = {
        "light": KnownTask("segmentation", 5, 3),
        "grey": KnownTask("regression", 1, 3),
    }
    data: type[Stripes] = Stripes

    def open(self, given: DataSettings) -> Dataset:
        return self.data(size=given.options.get("count", 10))


def contract_of(source: Source) -> SourceTests:
    class Tests(SourceTests):
        def make(self) -> tuple[Source, DataSettings]:
            return source, DataSettings({"count": 9})

    return Tests()


class TestDataOfOnesOwn(SourceTests):
    def make(self) -> tuple[Source, DataSettings]:
        return Good(), DataSettings({"count": 9})


def random_values(self: Stripes, task: str, instances: Instances) -> NDArray[Any]:
    return np.random.default_rng().normal(size=len(instances)).astype(np.float32)


def no_values(self: Stripes, task: str, instances: Instances) -> NDArray[Any]:
    return 0 * Stripes.values(self, task, instances)


BROKEN: dict[str, tuple[type, str, object]] = {
    "opening_twice": (Stripes, "values", random_values),
    "the_wanted_tasks": (Good, "tasks", dict.fromkeys(Good.tasks, KnownTask("depth", 1, 1))),
    "known_labels": (Stripes, "values", lambda self, task, some: np.full(len(some), np.nan)),
    "instances_have_names": (Stripes, "ids", ("twice",) * 9),
    "parts_of_a_split": (Stripes, "split", lambda self, *a, **b: Split(*[np.arange(9)] * 3)),
    "pictures_have": (Stripes, "picture_size", lambda self, instance: (8, 12)),
    "a_label_in_its_own_size": (Stripes, "values", no_values),
    "tasks_can_be_chosen": (Stripes, "with_targets", lambda self, targets: self),
    "labels_can_be_held_back": (Stripes, "with_labels", lambda self, *given: self),
    "complete_data": (Stripes, "known", lambda self, task: np.zeros(9, dtype=bool)),
    "it_has_a_name": (Good, "about", "Striped"),
    "keys_have_names": (Good, "keys", (Key("count", int, "how many", 10.0),)),
    "what_the_template": (Good, "keys", (Key("cuont", int, "how many", 10),)),
    "tasks_that_are_known": (Good, "tasks", {"light": KnownTask("segmented", 5, 3)}),
    "a_root": (Good, "root", "the folder"),
}


@pytest.mark.parametrize("test", BROKEN)
def test_every_way_of_being_bad_fails(test: str) -> None:
    home, name, broken = BROKEN[test]
    (called,) = [each for each in dir(SourceTests) if each.startswith(f"test_{test}")]
    getattr(contract_of(Good()), called)()
    data = type("Broken", (Stripes,), {name: broken} if home is Stripes else {})
    source = type("Bad", (Good,), {"data": data} | ({name: broken} if home is Good else {}))
    with pytest.raises((AssertionError, InputError)):
        getattr(contract_of(source()), called)()


# --- what is declared once ---


def test_kinds_of_a_table_are_those_that_its_reader_takes() -> None:
    assert SOURCES.load("table").kinds == TARGET_KINDS


def test_texts_become_values_of_a_key() -> None:
    assert Key("a", int, "").read("12") == 12
    assert Key("a", float, "").read("0.5") == 0.5
    assert Key("a", bool, "").read("true") is True
    assert Key("a", list, "").read("x, y") == ["x", "y"]
    for kind, text in ((int, "many"), (float, "x"), (bool, "yes")):
        with pytest.raises(InputError, match=f"--set a: '{text}' is not"):
            Key("a", kind, "").read(text)
    for name in ("name", "root", "two words"):
        with pytest.raises(InputError, match="can't be the name of a key"):
            Key(name, int, "")
    with pytest.raises(InputError, match="is not a type of a key; allowed: str, int"):
        Key("a", dict, "")


def test_nothing_about_a_source_loads_numpy() -> None:
    code = (
        "import sys\n"
        "from allotment.data.source import SOURCES\n"
        "for name in SOURCES: SOURCES.load(name).keys\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# --- labels over data, in the size of the picture ---


def test_crops_are_of_pictures_in_their_own_size_after_a_delivery() -> None:
    data = Stripes()
    known = {"light": np.arange(10) < 2, "grey": np.zeros(10, dtype=bool)}
    given = np.ones((12, 8), dtype=np.uint8)
    laid = data.with_labels(known, {"light": {1: given}}, "print")
    assert laid.image(1).shape == (3, 12, 8)
    assert laid.label("light", 1).tolist() == given.tolist()
    assert laid.label("light", 0).tolist() == data.label("light", 0).tolist()
    assert laid.values("light", np.array([1])).tolist() == np.ones((1, 6, 4)).tolist()
    assert laid.fingerprint == "print"
