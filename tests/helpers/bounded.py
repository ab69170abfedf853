"""The command in a process of its own, with what it took: seconds of CPU, and memory at its
peak."""

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
    command = [sys.executable, "-m", "allotment.cli", *map(str, words)]
    with open(stdin or os.devnull, "rb") as given, tempfile.NamedTemporaryFile() as noted:
        between = [sys.executable, __file__, str(seconds), noted.name, *command]
        told = subprocess.run(
            between, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
        ).stdout
        code, peak = noted.read().split()
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Ended(int(code), told.decode(), int(peak) / unit)


def _measure(seconds: int, path: str, command: list[str]) -> None:
    """Run a command and note its code and its peak. A process of its own, since the peak of a child
    counts what its parent held when it began: this one is small, the one of the tests is not.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    process = subprocess.Popen(command, preexec_fn=limit)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # which nobody can wait for any more
    Path(path).write_text(f"{process.returncode} {used.ru_maxrss}")


def check_refused(ended: Ended, *words: str) -> None:
    """That it ended with a short and clear word, in time and in little memory."""
    assert ended.code == 2, ended
    for word in words:
        assert word in ended.text
    assert len(ended.text) < 1000
    assert ended.megabytes < MEGABYTES


if __name__ == "__main__":
    _measure(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
