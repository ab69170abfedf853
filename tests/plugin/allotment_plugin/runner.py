"""A runner: each job has a Python of its own, which is told by files in an empty folder."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from allotment.runs.deaths import explain_death
from allotment.runs.execution import execute
from allotment.runs.runner import Backlog

PAUSE = 0.02
"""seconds between two looks at what is under way"""


class FreshPython:
    """As a cluster would, with nothing but files between it and whoever waits."""

    def count_workers(self) -> int:
        return 1

    def run(self, backlog: Backlog, workers: int) -> None:
        running: dict[int, subprocess.Popen[bytes]] = {}
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "common.json").write_text(backlog.common)
            try:
                while backlog.has_more or any(map(backlog.wants, running)):
                    while backlog.has_more and len(running) < workers:
                        number, job = backlog.next()
                        running[number] = begin(folder, number, job)
                    time.sleep(PAUSE)
                    collect(backlog, folder, running)
            finally:
                for process in running.values():
                    process.kill()
                    process.wait()


def begin(folder: Path, number: int, job: str) -> subprocess.Popen[bytes]:
    (folder / f"{number}.json").write_text(job)
    files = ["common.json", f"{number}.json", f"{number}.reply"]
    return subprocess.Popen([sys.executable, "-P", "-m", __name__, *files], cwd=folder)


def collect(backlog: Backlog, folder: Path, running: dict[int, subprocess.Popen[bytes]]) -> None:
    for number, process in list(running.items()):
        code = process.poll()
        if code is None:
            continue
        del running[number]
        if code == 0:
            backlog.take(number, (folder / f"{number}.reply").read_text())
        else:
            backlog.lose(number, explain_death(code))


RUNNER = FreshPython()

if __name__ == "__main__":
    common, job, reply = map(Path, sys.argv[1:])
    reply.write_text(execute(common.read_text(), job.read_text()))
