"""A runner of an installed package, from the command line."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import fill, rows, shorten, write
from helpers.packages import allot_with

from allotment.ledger.store import Store
from allotment.runs.conformance import RunnerTests
from allotment.runs.runner import Runner


@pytest.mark.long
class TestFreshPython(RunnerTests):
    @pytest.fixture(autouse=True)
    def _load(self, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(plugin)
        path = filter(None, [str(plugin), os.environ.get("PYTHONPATH")])
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
        self.runner: Runner = importlib.import_module("allotment_plugin.runner").RUNNER

    def make(self) -> Runner:
        return self.runner


def begin(folder: Path, plugin: Path, *more: object) -> Path:
    prices = ("--cost", "size=1", "--cost", "look=5", "--budget", 90, "--steps", 3)
    about = ("--root", "table.csv", "--targets", "size,look", *prices, *more)
    allot_with(plugin, folder, 0, "init", "camp", *about)
    shorten(folder / "camp", trainings=16)
    return folder / "camp"


def results(folder: Path, kind: str) -> list[Any]:
    with Store.open(folder, write=False) as store:
        return store.results(kind)


@pytest.mark.long
def test_jobs_of_a_campaign_run_elsewhere_to_the_same_bytes(plugin: Path, tmp_path: Path) -> None:
    write(tmp_path / "table.csv", rows())
    camp = begin(tmp_path, plugin)
    shorten(camp, method='"neutral"')
    shorten(camp, trainings=1)
    allot_with(plugin, tmp_path, 0, "order", "camp")
    filled = fill(
        camp / "order-1.csv", tmp_path / "filled.csv", {"size": lambda n: n / 7, "look": "old"}
    )
    allot_with(plugin, tmp_path, 0, "ingest", "camp", filled)
    shorten(camp, method='"response"', trainings=16)
    shutil.copytree(camp, tmp_path / "local")
    told = allot_with(
        plugin, tmp_path, 0, "estimate", "camp", "--on", "fresh-python", "--workers", 2
    )
    assert "16 trainings" in told
    allot_with(plugin, tmp_path, 0, "estimate", "local", "--workers", 0)
    assert len(results(camp, "response")) == 2
    assert results(camp, "response") == results(tmp_path / "local", "response")


@pytest.mark.long
def test_evaluations_run_elsewhere_to_the_same_bytes(plugin: Path, tmp_path: Path) -> None:
    write(tmp_path / "table.csv", rows(60, every=(1, 1)))
    camp = begin(tmp_path, plugin, "--have", "size=9", "--have", "look=9", "--method", "neutral")
    shutil.copytree(camp, tmp_path / "local")
    for name, on in (("camp", "fresh-python"), ("local", "here")):
        allot_with(plugin, tmp_path, 0, "evaluate", name, "--repeats", 1, "--on", on)
    assert results(camp, "evaluation") == results(tmp_path / "local", "evaluation")


def test_a_runner_that_is_not_installed_is_told_before_anything_is_done(
    plugin: Path, tmp_path: Path
) -> None:
    for words in (("estimate", "camp"), ("evaluate", "camp"), ("demo", "new", "--quick")):
        told = allot_with(None, tmp_path, 2, *words, "--on", "fresh-python")
        assert "runner: unknown 'fresh-python'; known: processes, here, ray, slurm." in told
        assert "One that a package offers must be installed first" in told
    assert not (tmp_path / "new").exists()
