"""The command in a process of its own, with what it took: seconds of CPU, and memory at its peak."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SECONDS = 4
"""that a refusal may take on a busy machine; it should take one or two"""
MEGABYTES = 500


class Ended(NamedTuple):
    code: int
    text: str
    """of both streams"""
    megabytes: float


def run_bounded(*words: object, stdin: Path | None = None, seconds: int = SECONDS) -> Ended:
    """`allot` with these words; it is killed when its time is up, which shows in the code."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    command = [sys.executable, "-m", "allotment.cli", *map(str, words)]
    with open(stdin or os.devnull, "rb") as given, tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdin=given, stdout=told, stderr=subprocess.STDOUT, preexec_fn=limit)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # which nobody can wait for any more
        told.seek(0)
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return Ended(process.returncode, told.read().decode(), used.ru_maxrss / unit)


def check_refused(ended: Ended, *words: str) -> None:
    """That it ended with a short and clear word, in time and in little memory."""
    assert ended.code == 2, ended
    for word in words:
        assert word in ended.text
    assert len(ended.text) < 1000
    assert ended.megabytes < MEGABYTES
