"""What all tests share: the systems that they are for, and no device that they were not asked to
use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allotment import meter

if os.name != "posix":
    pytest.exit("the tests need Linux or macOS; on Windows run them in WSL", returncode=1)
if not os.environ.get("ALLOT_TEST_GPU"):
    # tolerances are those of a CPU; a GPU is tested where it is asked for
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# so that an assertion that fails there shows its values too
pytest.register_assert_rewrite("helpers")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands within a test say nothing merely because the machine is busy; those with a process
    of their own do."""
    monkeypatch.setattr(meter, "FIRST_WORD", 3600.0)


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package in tests/plugin is installed in."""
    folder = tmp_path_factory.mktemp("installed")
    source = Path(__file__).parent / "plugin"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, source]
    alone = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*install, *alone], check=True, capture_output=True)
    return folder
