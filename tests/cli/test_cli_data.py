"""`allot data`: what it says of a data set, for people and for machines, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from allotment.cli import main
from allotment.terminal import visible

ROWS = "".join(
    f"p{k},{'' if k % 4 == 0 else ('cat', 'dog')[k % 2]},{k / 8},{k % 5},{k % 10}\n"
    for k in range(60)
)
PETS = f"name,species,weight,age,home\n{ROWS}"


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    path = tmp_path / "pets.csv"
    path.write_text(PETS)
    return path


def allot(*args: object) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def fine(*args: object) -> str:
    result = allot(*args)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refused(*args: object) -> str:
    result = allot(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())
    return result.stderr


def test_for_people(pets: Path) -> None:
    text = fine(
        "data",
        "table",
        pets,
        "--target",
        "species",
        "--target",
        "weight",
        "--id",
        "name",
        "--group",
        "home",
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "pets: 60 instances, input: 1 number"
    assert "task kind labels missing known train validation test" in lines
    species = next(line for line in lines if line.startswith("species "))
    assert species.startswith("species classification? 45 15 75.0 %")
    assert "species cat: 15, dog: 30" in lines
    assert any(line.startswith("weight regression? 60 0 100.0 %") for line in lines)
    assert "Kinds marked with ? are guessed" in text
    assert "age numeric 1 0" in lines
    assert "Instances of each split (seed 0):" in text


def test_for_machines(pets: Path) -> None:
    options = (
        "--target",
        "species",
        "--kind",
        "species=classification",
        "--drop",
        "name",
        "--seed",
        7,
        "--json",
    )
    plain = json.loads(fine("data", "table", pets, *options))
    assert (plain["instances"], plain["seed"]) == (60, 7)
    assert plain["splits"] == {"train": 42, "validation": 9, "test": 9}
    (task,) = plain["tasks"]
    assert task["classes"] == {"cat": 15, "dog": 30}
    assert (task["kind"], task["guessed"], task["labelled"], task["missing"]) == (
        "classification",
        False,
        45,
        15,
    )
    assert sum(task["splits"].values()) == 45
    assert [column["name"] for column in plain["columns"]] == ["weight", "age", "home"]
    assert plain["notes"] == []
    assert len(plain["fingerprint"]) == 64


def test_what_is_odd_is_said(pets: Path) -> None:
    pets.write_text(PETS.replace("p3,", "p2,"))
    text = fine(
        "data",
        "table",
        pets,
        "--target",
        "age",
        "--target",
        "species",
        "--id",
        "name",
        "--classes",
        CLASSES,
    )
    assert "Worth knowing" in text
    assert "1 ids are there more than once: 'p2'" in text
    assert "task 'species' has fewer than 5 labels of 'owl' (0)" in text


CLASSES = "species=cat|dog|owl"


def test_many_columns_and_tasks_are_summed_up(tmp_path: Path) -> None:
    names = [f"target:t{k}" for k in range(40)] + [f"x{k}" for k in range(40)]
    rows = [[str((row * 7 + k) % 2) for k in range(80)] for row in range(30)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(",".join(row) for row in [names, *rows]))
    text = fine("data", "table", path)
    assert "(The first 30 of 40 tasks; --json has them all.)" in text
    assert "numeric       40     40        0" in text
    assert len(json.loads(fine("data", "table", path, "--json"))["tasks"]) == 40


def test_markup_formulas_and_escapes_are_shown_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    cells = ("[red]x[/red]", "=HYPERLINK(1)", "\x1b[31mred", '"two\nlines"')
    rows = "".join(f"{k},{cells[k % 4]}\n" for k in range(40))
    path.write_text(f"[bold]a[/bold],=1+1\n{rows}")
    text = fine("data", "table", path, "--target", "=1+1")
    for shown in (
        "[bold]a[/bold]",
        "=1+1",
        "[red]x[/red]: 10",
        "=HYPERLINK(1): 10",
        "\\x1b[31mred",
        "two\\nlines: 10",
    ):
        assert shown in text
    assert "\x1b" not in text
    assert json.loads(fine("data", "table", path, "--target", "=1+1", "--json"))["tasks"][0][
        "classes"
    ]["\x1b[31mred"]
    assert visible("é\u202e\n") == "é\\u202e\\n"


def test_refusals_name_the_file_and_the_line(pets: Path) -> None:
    assert (
        "pets.csv: target 'specie': is not a column of the table; did you mean 'species'?"
        in refused("data", "table", pets, "--target", "specie")
    )
    assert "none is named" in refused("data", "table", pets)
    assert "--kind 'weight' is not NAME=VALUE" in refused("data", "table", pets, "--kind", "weight")
    assert "given twice" in refused("data", "table", pets, "--kind", "a=b", "--kind", "a=c")
    assert "no such file" in refused("data", "table", "none.csv", "--target", "a")
    outside = refused("data", "table", pets, "--target", "species", "--classes", "species=cat")
    assert f"{pets}:3: row 2, column 'species': label 'dog' is none of its classes: cat" in outside
    pets.write_bytes(PETS.encode() + b"\x81\n")  # which is no letter of cp1252 either
    assert "is neither UTF-8 nor Western European text (cp1252); say how" in refused(
        "data", "table", pets, "--target", "species"
    )
    assert f"{pets}:62: byte 0x81 is not UTF-8" in refused(
        "data", "table", pets, "--target", "species", "--encoding", "utf-8"
    )


def test_another_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "semi.csv"
    path.write_text("x;y\n1;0\n2;1\n")
    assert "cells are separated by ';'" in fine("data", "table", path, "--target", "y")
    assert "';'" in refused("data", "table", path, "--target", "y", "--delimiter", ",")
    assert "semi: 2 instances" in fine("data", "table", path, "--target", "y", "--delimiter", ";")


def test_help_loads_nothing_heavy() -> None:
    assert "table" in fine("data")
    assert "--target" in fine("data", "table", "--help")
    code = (
        "import sys\nfrom allotment.cli import main\n"
        "try: main(['data', 'table', '--help'])\nexcept SystemExit: pass\n"
        "print({'numpy', 'rich', 'torch', 'pandas', 'PIL'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
