"""Faults at every call, memory that is short, power that goes: a campaign goes on from there, with
the same bytes."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import faults
import pytest
from helpers.powerloss import Disk, read_trace

DRIVER = faults.__file__


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = faults.build_shim(tmp_path_factory.mktemp("shim"))
    if isinstance(built, str):
        pytest.skip(built)
    return built


def run_under(shim: Path, *command: str, at: Path) -> subprocess.CompletedProcess[str]:
    around = os.environ | {"LD_PRELOAD": str(shim), "CUDA_VISIBLE_DEVICES": ""}
    path = os.pathsep.join([str(Path(DRIVER).parent), *sys.path])
    return subprocess.run(
        [sys.executable, *command],
        env=around | {"PYTHONPATH": path},
        cwd=at,
        capture_output=True,
        text=True,
    )


def find(shim: Path, at: Path, *options: str) -> dict[str, Any]:
    """What the driver found."""
    done = run_under(
        shim, DRIVER, "--at", str(at), "--json", str(at / "found.json"), *options, at=at
    )
    assert (at / "found.json").exists(), done.stderr
    found: dict[str, Any] = json.loads((at / "found.json").read_text())
    return found


SCRIPT = """
import os, sys
from pathlib import Path
from faults import Fault, Shim
shim, at = Shim(), Path.cwd()
shim.arm(at, Fault({kind!r}, {number}, {error}, {how}))
try:
    for name in "ab":
        with open(name + ".half", "wb", buffering=0) as file:
            data = b"x" * 1000
            while data:
                data = data[file.write(data):]
            os.fsync(file.fileno())
        os.rename(name + ".half", name)
except OSError as error:
    print(error.errno, os.path.getsize(name + ".half"))
print(shim.counts[{kind!r}], shim.has_failed)
"""


@pytest.mark.parametrize(
    ("kind", "number", "how", "told"),
    [
        ("write", 2, faults.ONCE, f"{errno.ENOSPC} 0\n2 True"),
        ("write", 2, faults.SHORT, f"{errno.ENOSPC} 500\n3 True"),
        ("sync", 1, faults.ONCE, f"{errno.ENOSPC} 1000\n1 True"),
        ("rename", 2, faults.ONCE, f"{errno.ENOSPC} 1000\n2 True"),
        # which counts all that a full disk refuses
        ("create", 2, faults.ON, f"{errno.ENOSPC} 0\n1 True"),
        ("create", 3, faults.ONCE, "2 False"),
    ],
)
def test_the_call_that_was_meant_fails(
    shim: Path, tmp_path: Path, kind: str, number: int, how: int, told: str
) -> None:
    script = SCRIPT.format(kind=kind, number=number, error=errno.ENOSPC, how=how)
    done = run_under(shim, "-c", script, at=tmp_path)
    assert done.stdout.strip() == told, done.stderr


TRACED = """
import os
from pathlib import Path
from faults import Shim
shim, at = Shim(), Path.cwd() / "disk"
handle = os.open("trace", os.O_WRONLY | os.O_CREAT)
os.chdir(at)
shim.arm(at, None)
shim.trace(handle)
for name, is_safe in (("safe", True), ("loose", False)):
    with open("half", "wb") as file:
        file.write(b"x" * 2000)
        if is_safe:
            file.flush()
            os.fsync(file.fileno())
    os.replace("half", name)
    if is_safe:
        folder = os.open(".", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
os.mkdir("folder")
with open("old", "r+b") as file:
    file.write(b"new")
"""


def test_a_power_cut_leaves_what_was_synced_and_any_part_of_the_rest(
    shim: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "old").write_bytes(b"before")
    disk = Disk(tmp_path / "disk")
    done = run_under(shim, "-c", TRACED, at=tmp_path)
    assert done.returncode == 0, done.stderr
    for event in read_trace(tmp_path / "trace"):
        disk.apply(event, tmp_path / "disk")
    rng, safe = random.Random(1), {"old": b"before", "safe": b"x" * 2000}
    assert disk.crash("synced", rng) == safe
    assert disk.crash("all", rng) == safe | {"old": b"newore", "loose": b"x" * 2000, "folder": None}
    assert disk.crash("names", rng) == safe | {"loose": b"", "folder": None}
    assert disk.crash("bytes", rng) == safe | {"old": b"newore"}
    assert disk.crash("holes", rng) == safe | {"loose": bytes(2000), "folder": None}
    states = [disk.crash(manner, rng) for manner in ("journal", "folders") for _ in range(50)]
    assert all(state["safe"] == safe["safe"] for state in states)
    assert {len(state["loose"] or b"") for state in states if "loose" in state} >= {0, 512, 2000}
    assert {frozenset(state) for state in states} >= {
        frozenset({"old", "safe"}),
        frozenset(disk.crash("all", rng)),
    }


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("subject", "most"), [("calls", 4), ("memory", 1), ("power", 1)])
def test_a_campaign_goes_on_after_a_fault(
    shim: Path, tmp_path: Path, subject: str, most: int
) -> None:
    pytest.importorskip("torch")
    found = find(shim, tmp_path, "--subjects", subject, "--most", str(most))
    tried = {command for _, command, _, _ in found["rows"]}
    wanted = {
        "init",
        "estimate",
        "plan",
        "order",
        "ingest",
        "status",
        "evaluate",
        "report",
        "pack",
        "unpack",
    }
    assert wanted <= tried, found["rows"]
    assert found["wrong"] == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_mask_that_the_disk_does_not_give_is_not_rejected(shim: Path, tmp_path: Path) -> None:
    """It would stay out for good: the same delivery again is known already."""
    pytest.importorskip("torch")
    options = [
        "--subjects",
        "calls",
        "--scenarios",
        "pictures",
        "--only",
        "ingest",
        "--kinds",
        "open,list",
    ]
    found = find(shim, tmp_path, *options)
    assert sum(sum(words.values()) for _, _, _, words in found["rows"]) > 30
    assert [line for line in found["wrong"] if ": lost: " in line] == []
