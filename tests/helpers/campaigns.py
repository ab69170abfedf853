"""Campaigns on a small table, through the command: how they begin, and what people do in
between."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from allotment.cli import main


def allot(*args: object) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fine(*args: object) -> str:
    result = allot(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(code: int, *args: object) -> str:
    result = allot(*args)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())
    return result.stderr


def rows(
    count: int = 90, every: tuple[int, int] = (2, 3), id_: bool = False
) -> list[dict[str, str]]:
    """A table with two features and two targets, of which every second and third row has a
    label."""
    rng = random.Random(5)
    made = []
    for number in range(count):
        width, age = rng.random(), rng.random()
        row = {"name": f"r{number:03d}"} if id_ else {}
        row |= {"width": f"{width:.3f}", "age": f"{age:.3f}"}
        row["size"] = (
            f"{3 + 2 * width - age + rng.gauss(0, 0.1):.3f}" if number % every[0] == 0 else ""
        )
        row["look"] = (
            ("old", "new")[age + rng.gauss(0, 0.1) < 0.5] if number % every[1] == 0 else ""
        )
        made.append(row)
    return made


def write(path: Path, table: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def begin(
    folder: str = "camp", *more: object, table: list[dict[str, str]] | None = None, budget: int = 90
) -> Path:
    write(Path("table.csv"), rows() if table is None else table)
    costs = ["--targets", "size,look", "--cost", "size=1", "--cost", "look=5"]
    fine("init", folder, "--root", "table.csv", *costs, "--budget", budget, "--steps", 3, *more)
    return Path(folder)


def shorten(folder: Path, **keys: object) -> None:
    """Change settings as a user would."""
    text = (folder / "campaign.toml").read_text()
    for key, value in keys.items():
        text = re.sub(rf"^{key} = .*\n", "", text, flags=re.MULTILINE)
        text = f"{key} = {value}\n{text}"
    (folder / "campaign.toml").write_text(text)


def fill(path: Path, to: Path, answers: Mapping[str, Any], most: int | None = None) -> Path:
    """The sheet of an order, filled in as far as wanted; an answer may be a function of the
    instance's number."""
    filled = sheet(path)
    for row in filled[:most]:
        answer = answers[row["task"]]
        row["label"] = str(answer(int(row["instance"])) if callable(answer) else answer)
    return write(to, filled)
