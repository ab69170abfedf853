"""A kind of data of an installed package, from the command line."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import allotment
from allotment import plugins
from allotment.data.source import DataSettings, Source
from allotment.errors import InputError
from allotment.settings.settings import read_settings
from allotment.stock.conformance import SourceTests

SOURCE = str(Path(allotment.__file__).parents[1])


@pytest.fixture
def run(plugin: Path, tmp_path: Path) -> Callable[..., str]:
    """What the command says, after a check of its exit code."""

    def check(code: int, *words: object) -> str:
        around = os.environ | {"PYTHONPATH": f"{plugin}{os.pathsep}{SOURCE}"}
        command = [sys.executable, "-P", "-m", "allotment.cli", *map(str, words)]
        done = subprocess.run(command, env=around, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if "--json" in words else done.stdout + done.stderr

    return check


def test_data_of_a_package_are_listed_and_described(run: Callable[..., str]) -> None:
    assert "sines" in run(0, "data")
    assert "Noisy sine waves" in run(0, "data")
    told = run(0, "data", "sines", "--help")
    assert "noise  how far a sample is off" in told
    assert "[0.1]" in told
    found = json.loads(run(0, "data", "sines", "--set", "count=50", "--json"))
    assert (found["instances"], found["input"]) == (50, "12 numbers")
    assert [(task["name"], task["kind"]) for task in found["tasks"]] == [
        ("frequency", "regression"),
        ("start", "classification"),
    ]
    assert "--set cout: is not a key of sines; did you mean 'count'?" in run(
        2, "data", "sines", "--set", "cout=50"
    )


@pytest.mark.long
def test_a_campaign_about_data_of_a_package(run: Callable[..., str], tmp_path: Path) -> None:
    said = run(0, "init", "waves", "--data", "sines", "--set", "count=120", "--steps", "20")
    assert "frequency  regression          3       40" in said
    text = (tmp_path / "waves" / "campaign.toml").read_text()
    for line in ("# how many waves there are\ncount = 120\n", "noise = 0.1\n", "have = 40\n"):
        assert line in text
    assert "seed = 0\n\n[data]" in text  # the campaign's; a key without a first value is left out
    run(0, "check", "waves")
    (tmp_path / "waves" / "campaign.toml").write_text(
        text.replace("seed = 0\n", "seed = 0\ntrainings = 6\n")
    )
    assert "6 trainings" in run(0, "estimate", "waves", "--workers", "0")
    run(0, "plan", "waves")
    run(0, "order", "waves", "--all")
    sheet = (tmp_path / "waves" / "order-1.csv").read_text()
    assert "wave-" in sheet
    assert "rising" in sheet
    bought = json.loads(run(0, "ingest", "waves", "--oracle", "--json"))
    assert bought["new"] > 0
    assert bought["rejected"] == []
    run(0, "verify", "waves")


def test_a_campaign_that_trains_nothing(run: Callable[..., str]) -> None:
    run(0, "init", "waves", "--data", "sines", "--method", "neutral", "--targets", "start")
    assert "What to order now" in run(0, "plan", "waves")


def test_mistakes_in_the_keys_of_a_package_have_their_lines(
    run: Callable[..., str], tmp_path: Path
) -> None:
    run(0, "init", "waves", "--data", "sines")
    few = run(2, "init", "few", "--data", "sines", "--set", "count=3")
    assert "data: count: 3 are too few" in few
    assert not (tmp_path / "few").exists()
    settings = tmp_path / "waves" / "campaign.toml"
    text = settings.read_text()
    for old, new, what in (
        ("count = 200", 'count = "many"', "data: count: 'many' is not a whole number"),
        ("count = 200", "cuont = 200", "data: cuont: unknown key; did you mean 'count'?"),
        ("count = 200", "count = 3", "data: count: 3 are too few; write 20 or more"),
        ("have = 40", 'have = 40\nkind = "regression"', "kind: is settled by sines; leave it out"),
    ):
        settings.write_text(text.replace(old, new, 1))
        line = settings.read_text().split("\n").index(new.split("\n")[-1]) + 1
        assert f"campaign.toml:{line}: " in (said := run(2, "check", "waves"))
        assert what in said


def test_where_the_package_is_not_installed_the_settings_say_so(
    run: Callable[..., str], tmp_path: Path
) -> None:
    run(0, "init", "waves", "--data", "sines")
    with pytest.raises(InputError) as caught:
        read_settings(tmp_path / "waves")
    line = (tmp_path / "waves" / "campaign.toml").read_text().split("\n").index('name = "sines"')
    (mistake,) = caught.value.mistakes
    assert mistake.where.endswith(f"campaign.toml:{line + 1}: data: name")
    assert mistake.what.startswith("unknown 'sines'")
    assert mistake.what.endswith("One that a package offers must be installed first")


class TestSines(SourceTests):
    @pytest.fixture(autouse=True)
    def _load(self, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(plugin)
        monkeypatch.setattr(plugins, "entry_points", lambda group: ())  # which others would keep
        self.source: Source = importlib.import_module("allotment_plugin.source").SOURCE

    def make(self) -> tuple[Source, DataSettings]:
        return self.source, DataSettings({"count": 30, "noise": 0.2})
