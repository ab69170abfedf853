"""Every built-in runner keeps the contract; how a backlog treats a runner that does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from allotment.errors import InputError
from allotment.job import JSON, Job
from allotment.runs.conformance import RunnerTests
from allotment.runs.execution import execute, write_common, write_job
from allotment.runs.runner import HERE, PROCESSES, RUNNERS, Backlog, Runner, WorkFailed, run_jobs

COUNT = "allotment.runs.conformance:count"


class TestProcesses(RunnerTests):
    def make(self) -> Runner:
        return RUNNERS.load(PROCESSES)


class TestHere(RunnerTests):
    apart = False

    def make(self) -> Runner:
        return RUNNERS.load(HERE)


def test_the_built_in_runners_are_found_by_their_files() -> None:
    assert list(RUNNERS) == [PROCESSES, HERE, "ray", "slurm"]
    with pytest.raises(InputError, match=r"unknown 'proceses'; did you mean 'processes'\?"):
        RUNNERS.load("proceses")


class Odd:
    """A runner that does as it is told in a test."""

    def __init__(self, run: Callable[[Backlog], None]):
        self._run = run

    def count_workers(self) -> int:
        return 1

    def run(self, backlog: Backlog, workers: int) -> None:
        self._run(backlog)


def run(odd: Callable[[Backlog], None], seen: list[JSON]) -> None:
    jobs = [Job("count", {"n": n}) for n in range(4)]
    run_jobs(jobs, COUNT, None, runner=Odd(odd), done=lambda _, body: seen.append(body))


def test_replies_may_come_in_any_order_and_more_than_once() -> None:
    def backwards(backlog: Backlog) -> None:
        jobs = [backlog.next() for _ in range(len(backlog))]
        assert not backlog.has_more
        for number, job in reversed(jobs):
            reply = execute(backlog.common, job)
            backlog.take(number, reply)
            backlog.take(number, reply)
            backlog.lose(number, "after its reply")

    seen: list[JSON] = []
    run(backwards, seen)
    assert seen == [0, 1, 2, 3]


def test_jobs_that_a_runner_forgets_are_named() -> None:
    def lazy(backlog: Backlog) -> None:
        backlog.next()
        number, job = backlog.next()
        backlog.take(number, execute(backlog.common, job))

    seen: list[JSON] = []
    with pytest.raises(WorkFailed, match="the runner came back without its result") as caught:
        run(lazy, seen)
    assert [failure.job.needs["n"] for failure in caught.value.failures] == [0, 2, 3]
    assert seen == [1]


def test_a_job_that_is_lost_comes_again_first() -> None:
    def unlucky(backlog: Backlog) -> None:
        number, _ = backlog.next()
        backlog.lose(number, "for once")
        assert backlog.next()[0] == number
        backlog.lose(number, "of the cold")
        while backlog.has_more:
            at, job = backlog.next()
            backlog.take(at, execute(backlog.common, job))

    seen: list[JSON] = []
    with pytest.raises(WorkFailed, match="its worker died twice, of the cold"):
        run(unlucky, seen)
    assert seen == [1, 2, 3]


def test_a_machine_with_other_versions_does_no_job() -> None:
    job = Job("count", {"n": 1})
    common = write_common(COUNT, None)
    assert json.loads(execute(common, write_job(job))) == {"body": 1}
    other: dict[str, Any] = {"allotment": "0.0", "torch": None}
    said = json.loads(execute(common, write_job(Job("count", {"n": 1}, other))))
    (where, what, _), *_ = said["mistakes"]
    assert where == "versions"
    assert '"allotment":"0.0"' in what
