"""A curve of an installed package, from the command line."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_python(plugin: Path | None, *words: object) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, where the package is installed or where it is not."""
    path = [str(plugin or ""), os.environ.get("PYTHONPATH", "")]
    env = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)


def say(plugin: Path | None, *words: object) -> str:
    """What the command prints for a program to read."""
    return run_python(plugin, "-m", "allotment.cli", *words).stdout


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
    plan = json.loads(say(plugin, "plan", curved, "--json"))
    best, masks = max((value_by_hand(900 - 4 * b, b), b) for b in range(226))
    assert plan["counts"] == {"a": 900 - 4 * masks, "b": masks}
    assert plan["value"] == pytest.approx(best, rel=1e-12)
    assert plan["gap"] == 0
    assert plan["gains"]["a"] == {"curve": "sqrt", "worth": 5.0, "have": 100.0}
    assert "logarithmic and sqrt gains" in allot(plugin, "check", curved)
    budgets = json.loads(say(plugin, "frontier", curved, "--json"))
    assert budgets["values"][-1] == pytest.approx(best, rel=1e-12)
    least = json.loads(say(plugin, "cheapest", curved, "--target", 0.999 * best, "--json"))
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
