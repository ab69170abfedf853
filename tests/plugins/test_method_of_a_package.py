"""A method of an installed package, from the command line."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import rows, write

from allotment.estimates.conformance import MethodTests
from allotment.estimates.method import Method
from allotment.ledger.store import Store


def run_python(plugin: Path | None, *words: object) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, where the package is installed or where it is not."""
    path = [str(plugin or ""), os.environ.get("PYTHONPATH", "")]
    env = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)


def allot(plugin: Path | None, *words: object) -> str:
    """What the command says, on both streams."""
    ended = run_python(plugin, "-m", "allotment.cli", *words)
    return ended.stdout + ended.stderr


# --- methods ---


@cache
def open_module(name: str) -> Any:
    """A module of the package as it lies here."""
    path = Path(__file__).parents[1] / "plugin" / "allotment_plugin" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"allotment_plugin_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestHalves(MethodTests):
    def make(self) -> Method:
        method: Method = open_module("method").METHOD
        return method


def begin(plugin: Path, folder: str) -> None:
    write(Path("table.csv"), rows())
    prices = ("--cost", "size=1", "--cost", "look=5", "--budget", 90)
    options = ("--targets", "size,look", *prices, "--steps", 3, "--method", "halves")
    assert "is written" in allot(plugin, "init", folder, "--root", "table.csv", *options)


def find_estimates(folder: str) -> Any:
    with Store.open(Path(folder), write=False) as store:
        value = store.latest("estimates")
        return None if value is None else value.body


STOPPED = """
import os, signal
from allotment.campaign.campaign import Campaign

def tell(done, total):
    if done >= 6:
        os.kill(os.getpid(), signal.SIGKILL)

Campaign("camp").estimate(0, tell)
"""


@pytest.mark.long
def test_a_method_of_a_package_measures_a_campaign(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "halves (what half of the labels would cost" in " ".join(
        allot(plugin, "init", "--help").split()
    )
    begin(plugin, "camp")
    text = Path("camp/campaign.toml").read_text()
    assert "#   halves       what half of the labels would cost each task, as a power law" in text
    assert 'to be installed: allotment-plugin 1.0\nmethod = "halves"' in text
    shutil.copytree("camp", "undisturbed")
    dry = run_python(plugin, "-m", "allotment.cli", "estimate", "camp", "--dry-run", "--json")
    price = json.loads(dry.stdout)
    assert (price["method"], price["trainings"]) == ("halves", 12)

    ended = run_python(plugin, "-c", STOPPED)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with Store.open(Path("camp"), write=False) as store:
        done = store.results("training")
    assert [needs["pair"] for _, needs, _ in done] == [0, 1, 2]
    assert {needs["package"] for _, needs, _ in done} == {"allotment-plugin 1.0"}

    told = allot(plugin, "estimate", "camp", "--workers", 2)
    assert "6 trainings were there already, 6 were done now." in told
    allot(plugin, "estimate", "undisturbed", "--workers", 0)
    assert find_estimates("camp") == find_estimates("undisturbed")
    found = find_estimates("camp")["estimates"]
    assert found["about"]["method"] == "halves"
    assert {exponent for row in found["shapes"] for exponent in row} == {0.4}
    assert "What to order now" in allot(plugin, "plan", "camp")


@pytest.mark.long
def test_a_method_of_a_package_that_is_not_installed_is_told_with_its_name(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begin(plugin, "camp")
    for command in ("check", "estimate"):
        told = allot(None, command, "camp")
        assert "campaign.toml:" in told
        assert "method: unknown 'halves'; " in told
        assert "must be installed first" in told
    allot(plugin, "estimate", "camp", "--workers", 0)
    allot(plugin, "pack", "camp")
    for command in ("status camp", "estimate camp", "unpack camp.zip copy"):
        told = allot(None, *command.split())
        assert "method 'halves': comes with allotment-plugin 1.0; install that first" in told
        assert "Traceback" not in told
    assert not Path("copy").exists()
    assert "Next: allot plan copy" in allot(plugin, "unpack", "camp.zip", "copy") + allot(
        plugin, "status", "copy"
    )
