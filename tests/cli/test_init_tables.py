"""`allot init` on tables as people have them: what it says of every column, and what it asks."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from allotment.campaign.campaign import Campaign
from allotment.cli import main

GIVEN = ["--targets", "price,rating", "--cost", "price=3", "--cost", "rating=1", "--budget", "90"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dice = random.Random(1)
    lines = ["when;area;town;unit;price;rating"]
    for number in range(60):
        known = number % 2 == 0
        area, price = dice.uniform(40, 200), f"{dice.uniform(1, 9):.2f}" if known else ""
        rating = dice.randint(1, 5) if known else ""
        day = f"{number % 28 + 1}.{number % 12 + 1}.2024"
        town = dice.choice(["Köln", "Bern"])
        size = f"{area:.1f}".replace(".", ",")
        lines.append(f"{day};{size};{town};kg;{price.replace('.', ',')};{rating}")
    Path("homes.csv").write_text("\n".join(lines) + "\n", encoding="cp1252")


def allot(*given: str) -> Result:
    return CliRunner().invoke(main, list(given))


def test_every_column_is_accounted_for() -> None:
    told = allot("init", "camp", "--root", "homes.csv", *GIVEN, "--kind", "rating=regression")
    assert told.exit_code == 0
    for line in (
        "target        price (regression; guessed), rating (regression; said)",
        "number        area",
        "category      town (2 numbers)",
        "date or time  when (day first, 5 numbers)",
        "left out      unit",
        "Note: the file is not UTF-8; it is read as cp1252 (--encoding), as in 'Köln'",
        "Note: cells are separated by ';' (--delimiter).",
        "Note: numbers have decimal commas",
        "Note: left out: 'unit' (always 'kg')",
    ):
        assert line in told.output, line
    settings = Campaign("camp").look().settings.data
    assert settings["columns"] == ["when=date:dmy"]
    assert (settings["encoding"], settings["decimal"], settings["delimiter"]) == (
        "cp1252",
        ",",
        ";",
    )
    assert allot("check", "camp").exit_code == 0


def test_corrections_are_written_into_the_settings() -> None:
    more = ["--kind", "rating=classification", "--column", "when=text", "--column", "town=ignore"]
    told = allot(
        "init", "camp", "--root", "homes.csv", *GIVEN, *more, "--column", "unit=categorical"
    )
    assert told.exit_code == 0
    settings = Campaign("camp").look().settings.data
    assert settings["columns"] == ["when=text", "unit=categorical"]
    assert settings["drop"] == ["town"]
    assert "rating (classification, 5 classes; said)" in told.output
    wrong = allot("init", "other", "--root", "homes.csv", *GIVEN, "--column", "when=dat")
    assert "--column when: can't be 'dat'; did you mean 'date'?" in wrong.output
    lost = allot("init", "other", "--root", "homes.csv", *GIVEN, "--column", "whem=date")
    assert "column 'whem': is not a column of the table; did you mean 'when'?" in lost.output


def test_whole_numbers_of_few_values_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    told = allot("init", "camp", "--root", "homes.csv", *GIVEN)
    assert told.exit_code == 2
    assert "has 5 different whole numbers (1, 2, 3, 4, 5)" in told.output
    assert "--kind rating=regression or --kind rating=classification" in told.output
    assert not Path("camp").exists()
    monkeypatch.setattr("allotment.cli.campaign.is_terminal", lambda: True)
    monkeypatch.setattr(click, "prompt", lambda *_, **__: "regression")
    assert allot("init", "camp", "--root", "homes.csv", *GIVEN).exit_code == 0
    assert Campaign("camp").look().settings.targets == {"rating": {"kind": "regression"}}


def test_a_misspelt_target_is_compared_with_the_columns() -> None:
    given = ["--targets", "prise", "--cost", "price=3", "--budget", "90"]
    told = allot("init", "camp", "--root", "homes.csv", *given)
    assert told.exit_code == 2
    assert told.output.count("\n") == 1
    assert "target 'prise': is not a column of the table; did you mean 'price'?" in told.output


def test_an_old_campaign_keeps_its_features() -> None:
    """Without the new keys, dates stay words and constants stay in."""
    text = Path("homes.csv").read_text(encoding="cp1252").replace(",", ".").replace(";", ",")
    Path("homes.csv").write_text(text, encoding="utf-8")
    more = ["--column", "when=text", "--column", "unit=categorical"]
    kinds = ["--kind", "rating=regression"]
    assert allot("init", "camp", "--root", "homes.csv", *GIVEN, *kinds, *more).exit_code == 0
    said = Campaign("camp").look().stock.data.fingerprint
    settings = Path("camp/campaign.toml")
    lines = [line for line in settings.read_text().splitlines() if not line.startswith("columns =")]
    settings.write_text("\n".join(lines) + "\n")
    assert Campaign("camp").look().stock.data.fingerprint == said
