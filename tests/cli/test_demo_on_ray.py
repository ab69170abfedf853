"""`allot demo` as people type it, on processes and on Ray: every figure is the same."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from allotment.campaign.campaign import PLACE
from allotment.ledger.store import Store

TIMED = re.compile(r"about .* on this machine|the demo takes about")
"""lines that tell how long it takes"""


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--quick",), marks=pytest.mark.long, id="quick"),
        pytest.param((), marks=[pytest.mark.slow, pytest.mark.timeout(2400)], id="whole"),
    ],
)
def test_the_demo_shows_the_same_on_ray(flags: Sequence[str], tmp_path: Path) -> None:
    """Each within five minutes on two idle cores; here only that both end well, and alike."""
    told = run_demo(tmp_path / "processes", flags)
    assert re.search(r"This plan is (better|worse) than|the difference is within the noise", told)
    if importlib.util.find_spec("ray") is None:
        pytest.skip("it ends well on processes; on Ray it is not tried, which is not installed")
    assert run_demo(tmp_path / "ray", (*flags, "--on", "ray")) == told
    here, there = (read_demo(tmp_path / each / "demo") for each in ("processes", "ray"))
    assert len(there.pop(PLACE)) == len(here["response"]) + len(here["evaluation"])
    assert there == here


def run_demo(folder: Path, flags: Sequence[str]) -> str:
    """What it tells, but for how long it takes."""
    folder.mkdir()
    told = type_in(folder, "demo", "demo", *flags)
    return "\n".join(line for line in told.splitlines() if not TIMED.search(line))


def type_in(folder: Path, *words: str) -> str:
    command = [sys.executable, "-P", "-m", "allotment.cli", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_demo(campaign: Path) -> dict[str, Any]:
    """All that was measured, planned, ordered and reported, to the last byte."""
    with Store.open(campaign, write=False) as store:
        found: dict[str, Any] = {kind: store.results(kind) for kind in store.list_kinds()}
        for kind in ("estimates", "evaluation"):
            found[f"concluded: {kind}"] = [each.body for each in store.values(kind)]
        found["orders"] = [(each.body, each.key) for each in store.orders()]
        found["labels"] = store.answers()
    for name in ("order-1.csv", "report.html"):
        found[name] = (campaign / name).read_bytes()
    for words in (("report",), ("plan", "--budget", "1000")):
        found[" ".join(words)] = type_in(campaign.parent, *words, campaign.name, "--json")
    return found
