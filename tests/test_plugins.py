"""What others add: found by name, refused in words where it is broken, and used from the command
line.
"""

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

from allotment import plugins
from allotment.errors import InputError
from allotment.estimates.conformance import MethodTests
from allotment.estimates.method import Method
from allotment.ledger.store import Store
from allotment.plugins import Registry, find_modules


def offer(folder: Path, group: str, package: str, **points: str) -> None:
    """A package in a folder of the path that offers these."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (about / "entry_points.txt").write_text(f"[allotment.{group}]\n{''.join(lines)}")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Registry[Any]:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "others.py").write_text("class Good:\n    run = 1\n\n\nclass Bare:\n    pass\n")
    offer(tmp_path, "things", "first", good="others:Good", bare="others:Bare", twice="others:Good")
    offer(tmp_path, "things", "second", twice="others:Good", gone="nowhere:Good", own="others:Good")
    return Registry("things", "thing", ("run",), {"own": lambda: "built in"})


def test_what_is_built_in_comes_first_and_cannot_be_taken_over(registry: Registry[Any]) -> None:
    first, *others = registry
    assert first == "own"
    assert sorted(others) == ["bare", "gone", "good", "twice"]
    assert registry.load("own") == "built in"
    assert registry.version_of("own") is None


def test_what_a_package_offers_is_found_by_name(registry: Registry[Any]) -> None:
    assert "good" in registry
    assert registry.load("good").run == 1
    assert registry.version_of("good") == "first 1.0"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("god", "thing: unknown 'god'; did you mean 'good'?"),
        (["x"], "thing: unknown"),
        ("bare", "thing 'bare': first 1.0 offers one without run; docs/extending.md"),
        ("twice", "thing: 'twice' is offered by first 1.0 and second 1.0; uninstall all but one"),
        ("gone", "thing 'gone': cannot be loaded from second 1.0 (ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_had_is_told_with_its_package(
    registry: Registry[Any], name: Any, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        registry.load(name)
    assert str(caught.value).startswith(said)


def test_a_new_module_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "several"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "two_words.py").write_text("THING = 2\n")
    (package / "_shared.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_modules("several", "THING")
    assert {name: load() for name, load in found.items()} == {"two-words": 2}


def test_asking_for_a_built_in_one_looks_at_no_package(
    registry: Registry[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**given: object) -> None:
        raise AssertionError

    monkeypatch.setattr(plugins, "entry_points", fail)
    assert registry.load("own") == "built in"


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package of the tests is installed in."""
    folder = tmp_path_factory.mktemp("installed")
    source = Path(__file__).parent / "plugin"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*install, "--target", folder, source], check=True, capture_output=True)
    return folder


def test_the_package_of_the_tests_installs(plugin: Path) -> None:
    assert (plugin / "allotment_plugin" / "__init__.py").is_file()


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
    path = Path(__file__).parent / "plugin" / "allotment_plugin" / f"{name}.py"
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
    price = json.loads(allot(plugin, "estimate", "camp", "--dry-run", "--json"))
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


def test_a_method_of_a_package_that_is_not_installed_is_told_with_its_name(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begin(plugin, "camp")
    for command in ("check", "estimate"):
        told = allot(None, command, "camp")
        assert "campaign.toml:" in told
        assert "method: unknown 'halves'; known: response, neutral" in told
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
