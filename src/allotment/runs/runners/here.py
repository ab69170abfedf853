"""Jobs in this process, one after the other: for a debugger, and for those that need no other."""

from __future__ import annotations

from allotment.runs.execution import execute
from allotment.runs.runner import Backlog


class Here:
    """The simplest runner there is."""

    def count_workers(self) -> int:
        return 1

    def run(self, backlog: Backlog, workers: int) -> None:
        while backlog.has_more:
            number, job = backlog.next()
            backlog.take(number, execute(backlog.common, job))


RUNNER = Here()
