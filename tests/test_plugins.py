"""What others add: found by name, refused in words where it is broken, and used from the command
line.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from allotment import plugins
from allotment.errors import InputError
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


# --- curves ---

CURVED = """
budget = 900
[[task]]
name = "a"
cost = 1
have = 100
gain = { curve = "sqrt", worth = 5 }
[[task]]
name = "b"
cost = 4
weight = 2
[task.gain]
curve = "sum"
parts = [{ curve = "sqrt", worth = 3, have = 0 }, { curve = "logarithmic", worth = 2, have = 10 }]
"""


def value_by_hand(a: int, b: int) -> float:
    first = 5 * (math.sqrt(100 + a) - math.sqrt(100))
    return first + 2 * (3 * math.sqrt(b) + 2 * math.log1p(b / 10))


@pytest.fixture
def curved(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(CURVED)
    return path


def test_a_problem_names_a_curve_of_an_installed_package(plugin: Path, curved: Path) -> None:
    plan = json.loads(allot(plugin, "plan", curved, "--json"))
    best, masks = max((value_by_hand(900 - 4 * b, b), b) for b in range(226))
    assert plan["counts"] == {"a": 900 - 4 * masks, "b": masks}
    assert plan["value"] == pytest.approx(best, rel=1e-12)
    assert plan["gap"] == 0
    assert plan["gains"]["a"] == {"curve": "sqrt", "worth": 5.0, "have": 100.0}
    assert "logarithmic and sqrt gains" in allot(plugin, "check", curved)
    budgets = json.loads(allot(plugin, "frontier", curved, "--json"))
    assert budgets["values"][-1] == pytest.approx(best, rel=1e-12)
    least = json.loads(allot(plugin, "cheapest", curved, "--target", 0.999 * best, "--json"))
    assert float(least["spent"]) < 900
    assert least["value"] >= 0.999 * best


def test_a_curve_that_is_not_installed_is_named(curved: Path) -> None:
    ended = run_python(None, "-m", "allotment.cli", "plan", curved)
    assert ended.returncode == 2
    assert "task 'a': gain: curve: unknown curve 'sqrt'; known: geometric, power" in ended.stderr
    assert "part 1: curve: unknown curve 'sqrt'" in ended.stderr
    assert "one that a package offers must be installed first" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_mistakes_in_a_curve_of_a_package_have_their_line(plugin: Path, curved: Path) -> None:
    curved.write_text(CURVED.replace("worth = 5", "worth = -5").replace("worth = 3,", "wrth = 3,"))
    told = allot(plugin, "check", curved)
    assert "problem.toml:7: task 'a': gain: worth: -5 is not between 0 and 1e+09" in told
    assert "gain: part 1: wrth: unknown key; did you mean 'worth'?" in told


KEPT = """
from allotment.curve_conformance import CurveTests
from allotment_plugin.curve import SquareRoot


class TestSquareRoot(CurveTests):
    name = "sqrt"

    def make(self):
        return [SquareRoot(5.0), SquareRoot(0.1, have=300)]
"""


def test_the_curve_of_the_package_keeps_the_contract(plugin: Path, tmp_path: Path) -> None:
    path = tmp_path / "test_mine.py"
    path.write_text(KEPT)
    ended = run_python(plugin, "-m", "pytest", "-q", "-p", "no:cacheprovider", path)
    assert ended.returncode == 0, ended.stdout
