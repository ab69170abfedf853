"""What a machine of a cluster does: several jobs after each other, with an eye on the clock.

Nothing but texts comes and goes. The function that does a job is imported here by its name, from
what is installed here.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache

from allotment.job import JSON, canonical
from allotment.machine import describe_cpu
from allotment.runs.execution import execute

HUNG = (
    "hung, it seems: it took longer than the minutes below [cluster] allow; its log ends with what"
    " it was doing"
)


def do_jobs(common: str, jobs: Sequence[str], seconds: float | None, **more: str) -> Iterator[str]:
    """What came of each job, as `read_done` takes it; `more` is what else is known of where."""
    where = describe_machine() | more
    for job in jobs:
        begun = time.perf_counter()
        with ending_after(seconds):
            reply = execute(common, job)
        took = time.perf_counter() - begun
        yield canonical({"reply": reply, "seconds": took, "where": where})


def read_done(text: str) -> tuple[str, float, JSON]:
    """The reply, the seconds that it took, and where."""
    plain = json.loads(text)
    return plain["reply"], float(plain["seconds"]), plain["where"]


@cache
def describe_machine() -> dict[str, str]:
    """This machine, as far as results depend on it, and its name."""
    return {"host": socket.gethostname(), "cpu": describe_cpu()}


@contextlib.contextmanager
def ending_after(seconds: float | None) -> Iterator[None]:
    """End this process unless it is through within so many seconds, also where it is stuck in
    native code; what it was doing then is the last thing in its log."""
    if seconds is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
