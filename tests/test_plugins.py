"""What others add: found by name, refused in words where it is broken, and used from the command
line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import allotment
from allotment import plugins
from allotment.errors import InputError
from allotment.plugins import Registry, find_modules

SOURCE = str(Path(allotment.__file__).parents[1])


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


TABLE = "x,size,look\n" + "".join(
    f"{number % 9},{number % 9 * 2 + number % 2 if number < 30 else ''},"
    f"{('old', 'new')[number % 2] if number < 30 else ''}\n"
    for number in range(60)
)


def allot(plugin: Path | None, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, where the package is installed or is not."""
    path = SOURCE if plugin is None else f"{plugin}{os.pathsep}{SOURCE}"
    around = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, "-P", "-m", "allotment.cli", *map(str, words)]
    return subprocess.run(command, env=around, cwd=folder, capture_output=True, text=True)


def begin(plugin: Path | None, folder: Path, *words: object) -> Path:
    """A campaign on a small table."""
    (folder / "table.csv").write_text(TABLE)
    prices = ["--cost", "size=1", "--cost", "look=2", "--budget", "20"]
    table = ["--root", "table.csv", "--targets", "size,look", "--steps", "2"]
    done = allot(plugin, folder, "init", "camp", *table, *prices, *words)
    assert done.returncode == 0, done.stderr
    return folder / "camp"


def add(camp: Path, task: str, line: str) -> None:
    """A line in the settings of a task."""
    path, head = camp / "campaign.toml", f'name = "{task}"\n'
    assert head in path.read_text()
    path.write_text(path.read_text().replace(head, f"{head}{line}\n"))


def test_a_metric_of_a_package_scores_a_campaign(plugin: Path, tmp_path: Path) -> None:
    camp = begin(plugin, tmp_path)
    add(camp, "size", 'metric = "median_error"')
    text = (camp / "campaign.toml").read_text()
    (camp / "campaign.toml").write_text(text.replace("seed = 0", "seed = 0\ntrainings = 8"))
    done = allot(plugin, tmp_path, "estimate", "camp", "--workers", "0")
    assert done.returncode == 0, done.stderr
    assert allot(plugin, tmp_path, "plan", "camp").returncode == 0
    alone = allot(None, tmp_path, "plan", "camp")
    assert alone.returncode == 2
    assert "'median_error' does not score a task of a table" in alone.stderr
    assert "or what an installed package offers" in alone.stderr


def test_a_metric_of_a_package_fits_its_kind(plugin: Path, tmp_path: Path) -> None:
    camp = begin(plugin, tmp_path)
    add(camp, "look", 'metric = "median_error"')
    done = allot(plugin, tmp_path, "check", "camp")
    assert done.returncode == 2
    assert "'median_error' does not score a task of kind classification" in done.stdout
