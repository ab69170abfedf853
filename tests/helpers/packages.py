"""Packages as others would install them, written where a test wants them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def offer(folder: Path, group: str, package: str, **points: str) -> None:
    """A package in a folder of the path that offers these."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (about / "entry_points.txt").write_text(f"[allotment.{group}]\n{''.join(lines)}")


def allot_with(plugin: Path | None, folder: Path, code: int, *typed: object) -> str:
    """What a command says on both streams where the package is installed, or where it is not, after
    a check of its exit code."""
    path = filter(None, [str(plugin or ""), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "allotment.cli", *map(str, typed)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout + done.stderr
