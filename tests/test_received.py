"""A folder that came from elsewhere: nothing that lies in it is run, whatever it is called."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import allotment
from allotment.cli import main

OTHERS = (
    "allotment", "numpy", "click", "rich", "torch", "PIL", "safetensors", "pyarrow", "pandas", "sitecustomize",
    "usercustomize",
)  # fmt: skip
TASKS = "--targets size,look --cost size=1 --cost look=2 --budget 30 --have size=20 --have look=20 --steps 2"
DRIVER = """
import sys
from allotment.runs import local
local.START = sys.argv.pop(1)
from allotment.cli import main
main()
"""
"""`allot` as it is installed: a file in a folder of its own"""


def write_table(path: Path) -> None:
    rng = random.Random(1)
    lines = ["id,width,age,size,look"]
    for number in range(80):
        width, age = rng.random(), rng.random()
        lines.append(f"r{number},{width:.3f},{age:.3f},{width - age:.3f},{'old' if age > 0.5 else 'new'}")
    path.write_text("\n".join(lines) + "\n")


def set_traps(folder: Path, hits: Path) -> None:
    """A module for every name that Python or a package might ask for; it leaves its name where it is imported."""
    hits.mkdir(exist_ok=True)
    for name in {*sys.stdlib_module_names, *OTHERS}:
        (folder / f"{name}.py").write_text(f"open({str(hits / name)!r}, 'w')\n")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A place with a table, and `allot` in another folder."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "driver.py").write_text(DRIVER)
    write_table(tmp_path / "homes.csv")
    return tmp_path


def allot(home: Path, folder: Path, start: str, *args: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder; only absolute paths are in the environment, since others would be the user's own."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONSAFEPATH", "ALLOT_LEARNER")}
    env["PYTHONPATH"] = str(Path(allotment.__file__).parents[1])
    command = [sys.executable, str(home / "bin" / "driver.py"), start, *args]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=250)


def begin(home: Path) -> None:
    done = CliRunner().invoke(main, f"init {home}/camp --root {home}/homes.csv {TASKS}".split())
    assert done.exit_code == 0, done.output
    settings = home / "camp" / "campaign.toml"
    settings.write_text(settings.read_text().replace("seed = 0", "seed = 0\ntrainings = 8"))


@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_processes_that_train_run_nothing_from_the_folder_they_are_in(home: Path, start: str) -> None:
    pytest.importorskip("torch")
    begin(home)
    set_traps(home / "camp", home / "hits")
    done = allot(home, home / "camp", start, "estimate", ".", "--workers", "2")
    assert (done.returncode, sorted(path.name for path in (home / "hits").iterdir())) == (0, []), done.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_no_command_runs_anything_from_the_folder_it_is_in(home: Path, start: str) -> None:
    pytest.importorskip("torch")
    begin(home)
    folder = home / "camp"
    set_traps(folder, home / "hits")
    steps = [
        f"init new --root ../homes.csv {TASKS}", "check .", "status .", "estimate . --workers 2",
        "estimate . --workers 1", "plan .", "order . -o order.csv", "ingest . --oracle", "estimate . --workers 0",
        "evaluate . --repeats 2 --workers 2", "report .", "status . --json", "pack . -o ../camp.zip",
        "unpack ../camp.zip copy", "data table ../homes.csv --target look", "example", "--help",
    ]  # fmt: skip
    for step in steps:
        done = allot(home, folder, start, *step.split())
        assert done.returncode == 0, (step, done.stderr)
        assert sorted(path.name for path in (home / "hits").iterdir()) == [], step


def test_traps_are_traps(home: Path) -> None:
    """Python started as others start it falls into them."""
    set_traps(home, home / "hits")
    subprocess.run([sys.executable, "-c", "import threading, torch"], cwd=home, capture_output=True)
    assert {"threading", "torch"} & {path.name for path in (home / "hits").iterdir()}
