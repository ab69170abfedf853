"""A strategy and a connector of an installed package, from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allotment.ledger.store import Store


def type_in(folder: Path, plugin: Path, *typed: object) -> str:
    """What a command prints where the package is installed."""
    path = os.pathsep.join(filter(None, [str(plugin), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "allotment.cli", *map(str, typed)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_strategy_and_a_connector_of_a_package_carry_a_campaign(
    plugin: Path, tmp_path: Path
) -> None:
    rows = [f"r{number:02d},{number},{number if number > 30 else ''}\n" for number in range(40)]
    (tmp_path / "table.csv").write_text("id,x,size\n" + "".join(rows))

    def allot(*typed: object) -> str:
        return type_in(tmp_path, plugin, *typed)

    about = ["--root", "table.csv", "--targets", "size", "--cost", "size=1", "--budget", 5]
    allot("init", "camp", *about, "--method", "neutral")
    ordered = allot("order", "camp", "--strategy", "alphabetical", "--to", "markdown")
    assert "Next: allot ingest camp camp/order-1.md --from markdown" in ordered
    assert "a random part" not in ordered
    sheet = tmp_path / "camp" / "order-1.md"
    lines = sheet.read_text().splitlines()
    assert [line.split(" | ")[2] for line in lines[2:]] == ["r00", "r01", "r02", "r03", "r04"]
    filled = [line.removesuffix("  |") + f" {number}.5 |" for number, line in enumerate(lines[2:])]
    sheet.write_text("\n".join([*lines[:2], *filled, "| broken |\n"]))
    taken = allot("ingest", "camp", "camp/order-1.md")
    assert "5 new labels from order-1.md." in taken
    assert "order-1.md: line 8: has 1 cells, not" in taken
    assert "Budget 5: 5 spent, 0 on order, 0 left." in taken


def test_a_campaign_file_may_name_a_strategy_of_a_package(plugin: Path, tmp_path: Path) -> None:
    rows = [f"r{number:02d},{number},{number if number > 30 else ''}\n" for number in range(40)]
    (tmp_path / "table.csv").write_text("id,x,size\n" + "".join(rows))
    about = ["--root", "table.csv", "--targets", "size", "--cost", "size=1", "--budget", 5]
    type_in(tmp_path, plugin, "init", "camp", *about, "--method", "neutral")
    file = tmp_path / "camp" / "campaign.toml"
    file.write_text(f'strategy = "alphabetical"\n{file.read_text()}')
    type_in(tmp_path, plugin, "order", "camp", "-o", "order.csv")
    with Store.open(tmp_path / "camp", write=False) as store:
        (order,) = store.orders()
    assert order.body["form"]["strategy"] == "alphabetical"
    assert order.body["package"] == "allotment-plugin 1.0"
    assert "r04" in (tmp_path / "order.csv").read_text()
    with pytest.raises(AssertionError, match=r"campaign\.toml:1: strategy: unknown 'alphabetical'"):
        type_in(tmp_path, tmp_path / "nothing", "status", "camp")
