"""A metric of an installed package, from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import allotment

SOURCE = str(Path(allotment.__file__).parents[1])


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
    table += ["--kind", "size=regression"]
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
    assert "'median_error' does not score a task of kind regression" in alone.stderr
    assert "or what an installed package offers" in alone.stderr


def test_a_metric_of_a_package_fits_its_kind(plugin: Path, tmp_path: Path) -> None:
    camp = begin(plugin, tmp_path)
    add(camp, "look", 'metric = "median_error"')
    done = allot(plugin, tmp_path, "check", "camp")
    assert done.returncode == 2
    assert "'median_error' does not score a task of kind classification" in done.stdout
