"""What a machine of a cluster does with jobs: each has its time, and what became of it is told."""

from __future__ import annotations

import subprocess
import sys

from allotment.job import Job
from allotment.runs.execution import write_common, write_job
from allotment.runs.remote import do_jobs, read_done

COUNT = "allotment.runs.conformance:count"
HANGING = """
import threading
from allotment.runs.remote import ending_after

def wait_for_nobody():
    threading.Event().wait()

with ending_after(60):
    pass
print("in time", flush=True)
with ending_after(0.2):
    wait_for_nobody()
print("never")
"""


def test_a_job_that_hangs_ends_with_its_process_and_its_log_says_where() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, check=False
    )
    assert ended.stdout == "in time\n"
    assert ended.returncode != 0
    assert "Timeout" in ended.stderr
    assert "wait_for_nobody" in ended.stderr


def test_what_is_done_comes_with_its_seconds_and_its_place() -> None:
    common, job = write_common(COUNT, None), write_job(Job("count", {"n": 3}))
    (done,) = do_jobs(common, [job], 60.0, node="n1")
    _, seconds, where = read_done(done)
    assert seconds >= 0
    assert where["node"] == "n1"
    assert set(where) == {"host", "cpu", "node"}
