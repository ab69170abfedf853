"""Packages as others would install them, written where a test wants them."""

from __future__ import annotations

from pathlib import Path


def offer(folder: Path, group: str, package: str, **points: str) -> None:
    """A package in a folder of the path that offers these."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (about / "entry_points.txt").write_text(f"[allotment.{group}]\n{''.join(lines)}")
