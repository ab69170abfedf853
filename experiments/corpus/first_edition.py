"""What the first edition of the default plans from the trainings that are kept: the bar that the
second one is held to with half as many.

Its code is in the history of this repository alone, so it is taken from there and run in a process
of its own, which is given trainings and gives plans.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from allotment.corpus.kept import Kept
from allotment.corpus.setting import Setting, load_settings
from allotment.corpus.ways import FIRST_EDITION
from corpus.settings import FOLDER

LAST_COMMIT = "32c3e1981b8450c2d979b8d12976f361ba6f961e"
"""before the default concluded otherwise"""
PLAN_THEN = """
import json, sys
from allotment.corpus.plans import make_problem
from allotment.corpus.setting import Setting
from allotment.corpus.ways import WAYS, Knowledge, dump
from allotment.estimates.response import Response

found = []
for plain, number, response in json.load(sys.stdin):
    setting = Setting.from_dict(plain)
    known = Knowledge(setting, number, make_problem(setting), Response.from_dict(response))
    found.append(dump(WAYS["default"](known)))
json.dump(found, sys.stdout)
"""


def keep_first_edition(campaigns: int, locked: bool) -> None:
    """Keep the plans of the first edition that are missing, in all settings of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        unpack_source(LAST_COMMIT, Path(folder))
        for setting in load_settings(FOLDER):
            if setting.is_locked == locked:
                _keep(setting, campaigns, Path(folder))


def unpack_source(commit: str, folder: Path) -> None:
    """The package as it was."""
    command = ["git", "-C", str(FOLDER.parents[1]), "archive", commit, "src"]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        files.extractall(folder, filter="data")


def _keep(setting: Setting, campaigns: int, folder: Path) -> None:
    kept = Kept(setting.name, FOLDER)
    numbers = [
        number
        for number in range(campaigns)
        if kept.get(number, FIRST_EDITION) is None and kept.get(number, "response") is not None
    ]
    if numbers:
        asked = [[setting.to_dict(), number, kept.get(number, "response")] for number in numbers]
        for number, choice in zip(numbers, plan_then(asked, folder), strict=True):
            kept.put(number, FIRST_EDITION, choice)


def plan_then(asked: Sequence[Any], folder: Path) -> list[dict[str, Any]]:
    """Plans of the code in a folder: of settings, campaigns and trainings."""
    process = subprocess.run(
        [sys.executable, "-c", PLAN_THEN],
        input=json.dumps(asked),
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        check=True,
        capture_output=True,
        text=True,
    )
    return list(json.loads(process.stdout))
