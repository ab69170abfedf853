"""Each command reads settings and table once, and opens the store once to read or once to write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.campaigns import rows, write

from allotment.campaign.starting import begin
from allotment.data.features import TableInputs

READ = {"settings": 1, "table": 1, "to read": 1}
WRITE = READ | {"to write": 1}
"""it is looked at before it is locked, so that no lock is left in a folder that is no campaign"""
PLAN = WRITE | {"to read": 2}
"""a plan is shown while somebody else writes, or to those who may only look: it is read first"""
INIT = {"table": 1, "to write": 2, "to read": 1}
"""the store is made beside its place, opened there, and looked at as by any other command"""
VERIFY = {"settings": 1, "to read": 1}
"""no data: these may be elsewhere"""
PACK = {"settings": 2, "to read": 2}
"""as `verify`, and then what goes into the archive"""

COSTS = "--targets size,look --cost size=1 --cost look=5 --budget 90 --steps 3"
COMMANDS: list[tuple[str, dict[str, int]]] = [
    (f"init camp --root table.csv {COSTS} --method neutral", INIT),
    ("check camp", READ),
    ("status camp", READ),
    ("plan camp", PLAN),
    ("plan camp", PLAN),  # prints of rows are on record by now, and are compared
    ("plan camp --budget 200", READ),
    ("frontier camp --budget 200", READ),
    ("score camp size=9", READ),
    ("order camp -o order.csv", WRITE),
    ("order camp -o again.csv", WRITE),
    ("order camp --cancel 1", WRITE),
    ("order camp -o order.jsonl", WRITE),
    ("ingest camp filled.csv", WRITE),
    ("status camp", READ),
    ("report camp", READ),
    ("verify camp", VERIFY),
    ("pack camp -o camp.zip", PACK),
    (f"init known --root table.csv {COSTS} --have size=20 --have look=15", INIT),
    ("estimate known --workers 1 --dry-run", WRITE),  # what a worker opens is its own
    ("estimate known --workers 1", WRITE),
    ("estimate known --workers 1", WRITE),
    ("backtest known --repeats 1", READ),
    ("plan known", PLAN),
    ("cheapest known --gain 0.001", READ),
    ("order known", WRITE),
    ("ingest known --oracle", WRITE),
    ("evaluate known --repeats 1 --workers 1", WRITE),
    ("report known", READ),
]


def count_opens(commands: list[str]) -> list[dict[str, int]]:
    Path("commands.json").write_text(json.dumps([command.split() for command in commands]))
    run = [sys.executable, "-m", "helpers.opens", "commands.json"]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=250)
    assert ended.returncode == 0, ended.stderr
    counts: list[dict[str, int]] = json.loads(ended.stdout)
    return counts


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    helpers = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", helpers, prepend=":")
    write(Path("table.csv"), rows())
    answers = [{"task": "look", "instance": "2", "label": "old"}]
    write(Path("filled.csv"), answers)


@pytest.mark.long
def test_a_command_opens_settings_table_and_store_once() -> None:
    commands = [command for command, _ in COMMANDS]
    counts = count_opens(commands)
    found = list(zip(commands, counts, strict=True))
    assert found == COMMANDS


def test_parquet_is_opened_once_as_well() -> None:
    csv, parquet = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(csv.read_csv("table.csv"), "table.parquet")
    begin = f"init camp --root table.parquet {COSTS} --method neutral"
    commands = [begin, "status camp", "plan camp", "order camp", "report camp"]
    assert count_opens(commands) == [INIT, READ, PLAN, WRITE, READ]


def test_the_kind_of_a_scored_task_is_found_in_the_same_reading() -> None:
    begin = f"init camp --root table.csv {COSTS} --method neutral"
    count_opens([begin])
    text = Path("camp/campaign.toml").read_text()
    Path("camp/campaign.toml").write_text(
        text.replace('name = "look"', 'name = "look"\nmetric = "accuracy"')
    )
    assert count_opens(["status camp", "order camp"]) == [READ, WRITE]


def test_init_encodes_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableInputs, "_encode", lambda *_: pytest.fail("features are encoded"))
    prices, money = {"size": "1", "look": "5"}, "90"
    begin("camp", root="table.csv", targets=["size", "look"], costs=prices, budget=money)
    assert "members" in Path("camp/campaign.toml").read_text()
