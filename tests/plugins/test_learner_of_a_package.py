"""A learner of an installed package, from the command line and from a campaign's file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import rows, shorten, write
from helpers.packages import allot_with, offer

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split
from allotment.learners.conformance import LearnerTests
from allotment.learners.learner import Learner
from allotment.ledger.store import Store


class TestLinear(LearnerTests):
    @pytest.fixture(autouse=True)
    def _load(self, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(plugin)
        self.module = importlib.import_module("allotment_plugin.learner")

    def make(self) -> tuple[Learner, Labels]:
        rng = np.random.default_rng(3)
        inputs = rng.normal(size=(90, 4)).astype(np.float32)
        targets = Target("size", "regression"), Target("look", "classification", ("a", "b"))
        values = {"size": inputs[:, 0] * 2, "look": (inputs[:, 1] > 0).astype(np.int64)}
        data = ArrayData("table", targets, inputs, values)
        parts = np.split(np.arange(90), [60, 90])
        learner: Learner = self.module.make(data, Split(*parts))
        return learner, Labels({"size": range(40), "look": range(20, 60)})


def begin(folder: Path, plugin: Path) -> Path:
    write(folder / "table.csv", rows())
    prices = ("--cost", "size=1", "--cost", "look=5", "--budget", 90)
    about = ("--root", "table.csv", "--targets", "size,look", *prices)
    allot_with(plugin, folder, 0, "init", "camp", *about)
    shorten(folder / "camp", trainings=8)
    return folder / "camp"


def name_in_file(camp: Path, name: str) -> None:
    file = camp / "campaign.toml"
    file.write_text(file.read_text().replace("[training]\n", f'[training]\nlearner = "{name}"\n'))


def learners_of(camp: Path) -> list[str]:
    with Store.open(camp, write=False) as store:
        return [needs["learner"] for _, needs, _ in store.results("response")]


def bodies(camp: Path) -> list[Any]:
    with Store.open(camp, write=False) as store:
        return [body for _, _, body in store.results("response")]


@pytest.mark.long
def test_a_learner_of_a_package_measures_a_campaign(plugin: Path, tmp_path: Path) -> None:
    camp = begin(tmp_path, plugin)
    allot_with(plugin, tmp_path, 0, "estimate", "camp", "--learner", "linear", "--workers", 2)
    assert learners_of(camp) == ["linear of allotment-plugin 1.0"] * 8
    first = bodies(camp)
    name_in_file(camp, "linear")
    allot_with(plugin, tmp_path, 0, "check", "camp")
    allot_with(plugin, tmp_path, 0, "estimate", "camp", "--workers", 0)
    assert bodies(camp) == first * 2  # what the file names does the same
    assert "What to order now" in allot_with(plugin, tmp_path, 0, "plan", "camp")
    told = allot_with(plugin, tmp_path, 0, "estimate", "camp", "--learner", "built-in")
    assert "8 trainings" in told
    assert learners_of(camp)[-1] == "built-in"  # the command line goes before the file


def test_where_the_package_is_not_installed_the_settings_say_so(
    plugin: Path, tmp_path: Path
) -> None:
    camp = begin(tmp_path, plugin)
    told = allot_with(None, tmp_path, 2, "estimate", "camp", "--learner", "linear")
    assert "'linear' is not FILE.py:FUNCTION" in told
    assert "unknown 'linear'; known: built-in. One that a package offers must be install" in told
    name_in_file(camp, "linear")
    told = allot_with(None, tmp_path, 2, "status", "camp")
    line = (camp / "campaign.toml").read_text().split("\n").index('learner = "linear"') + 1
    assert f"campaign.toml:{line}: training: learner: unknown 'linear'" in told


def test_a_file_never_names_code(plugin: Path, tmp_path: Path) -> None:
    camp = begin(tmp_path, plugin)
    (tmp_path / "mine.py").write_text("raise SystemExit('it was run')")
    for name in ("mine.py:make", "../mine.py:make", "mine.py"):
        text = (camp / "campaign.toml").read_text()
        name_in_file(camp, name)
        told = allot_with(plugin, tmp_path, 2, "estimate", "camp")
        assert "training: learner: is code, which no file may name" in told
        assert "--learner" in told
        (camp / "campaign.toml").write_text(text)


def test_a_learner_of_a_package_that_fails_is_told_with_its_name(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    offer(installed, "learners", "broken", poor="broken_learner:poor", none="broken_learner:none")
    (installed / "broken_learner.py").write_text(
        "poor = lambda data, split: 1 / 0\nnone = lambda data, split: object()\n"
    )
    begin(tmp_path, installed)
    told = allot_with(installed, tmp_path, 2, "estimate", "camp", "--learner", "poor")
    assert "learner 'poor' of broken 1.0: failed (ZeroDivisionError: division by zero)" in told
    told = allot_with(installed, tmp_path, 2, "estimate", "camp", "--learner", "none")
    assert "learner 'none' of broken 1.0 made a object without tasks, steps, start" in told
