"""The page's JavaScript, run by node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import allotment.reports
from allotment.reports.assets import PLANNER

ASSETS = Path(allotment.reports.__file__).parent / "assets"


def run_script(folder: Path, script: Path, given: Any) -> Any:
    """What a script prints as JSON; it finds the planner beside itself, and what is given in a
    file."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine, which runs the page's planner in tests")
    for name in PLANNER:
        shutil.copy(ASSETS / name, folder / name)
    # by which every version of node knows that these are modules
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    shutil.copy(script, folder / script.name)
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    words = [node, str(folder / script.name), str(folder / "given.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
