"""Does a runner keep the contract? Inherit, say how yours is made, and let pytest run it:

class TestMine(RunnerTests):
    def make(self):
        return MyRunner()
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from allotment.errors import InputError, Mistake
from allotment.job import JSON, Job, canonical
from allotment.runs.runner import HERE, RUNNERS, Runner, WorkFailed, run_jobs

E = TypeVar("E", bound=Exception)
MODULE = __name__
LONGEST = 120.0
"""seconds after which a job that waits for its end gives up, so that no broken runner leaves one
for ever"""


# What the jobs do; workers find it by its name.


def echo(context: JSON, kind: str, needs: JSON) -> JSON:
    return {"context": context, "kind": kind, "needs": needs}


def count(context: JSON, kind: str, needs: JSON) -> JSON:
    return needs["n"]


def draw(context: JSON, kind: str, needs: JSON) -> JSON:
    """From global random numbers, which code of a user's may forget to seed."""
    return [random.random(), float(np.random.rand()), needs["n"]]


def stumble(context: JSON, kind: str, needs: JSON) -> JSON:
    if needs["n"] != context["bad"]:
        return needs["n"]
    if context["how"] == "input":
        raise InputError([Mistake("task 'seg'", "has no labels", 4)])
    raise ZeroDivisionError("so it goes")


def die(context: JSON, kind: str, needs: JSON) -> JSON:
    if needs["n"] == context["bad"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return needs["n"]


def tick(context: JSON, kind: str, needs: JSON) -> JSON:
    """The first is done at once; the others write to a file as long as they live."""
    end = time.monotonic() + LONGEST
    while needs["n"] and time.monotonic() < end:
        with Path(context).open("a") as ticks:
            ticks.write(".")
        time.sleep(0.01)
    return needs["n"]


class RunnerTests:
    """Every test that a runner must pass; `make` gives one."""

    apart = True
    """False for a runner whose jobs are done in the process that runs it"""
    patience = 10.0
    """seconds that it may take to end what is under way"""

    def make(self) -> Runner:
        raise NotImplementedError("say how your runner is made")

    # --- helpers ---

    def jobs(self, count: int, **more: JSON) -> list[Job]:
        return [Job("count", {"n": n, **more}) for n in range(count)]

    def run(
        self, work: str, context: JSON = None, count: int = 5, workers: int = 2, **told: Any
    ) -> list[JSON]:
        """What came of so many jobs, in the order in which it came."""
        seen: list[JSON] = []
        told = {"done": lambda _, body: seen.append(body)} | told
        jobs, place = self.jobs(count), f"{MODULE}:{work}"
        run_jobs(jobs, place, context, runner=self.make(), workers=workers, **told)
        return seen

    # --- the contract ---

    def test_it_has_its_verbs(self) -> None:
        runner = self.make()
        assert isinstance(runner, Runner), "count_workers or run is missing"
        assert runner.count_workers() >= 1, "it would do nothing at a time"

    def test_every_result_arrives_once_and_in_order(self) -> None:
        for workers in (1, 2, 7):
            assert self.run("count", workers=workers) == list(range(5)), f"{workers} workers"

    def test_progress_counts_what_is_finished(self) -> None:
        told: list[tuple[int, int]] = []
        self.run("count", count=3, progress=lambda *each: told.append(each))
        assert told == [(1, 3), (2, 3), (3, 3)]

    def test_one_job_is_enough(self) -> None:
        assert self.run("count", count=1) == [0]

    def test_context_and_jobs_arrive_as_they_were(self) -> None:
        context = {"Käse": ["=1", None, {"": 2.5e-300}], "long": "x\n" * 200_000}
        for body in self.run("echo", context, count=3):
            assert body["context"] == context, "the context is another one there"
            assert body["kind"] == "count"
        wanted = [job.needs for job in self.jobs(3)]
        assert [body["needs"] for body in self.run("echo", count=3)] == wanted

    def test_the_bytes_are_those_of_this_process(self) -> None:
        seen: list[JSON] = []
        here = RUNNERS.load(HERE)
        run_jobs(
            self.jobs(5),
            f"{MODULE}:draw",
            None,
            runner=here,
            done=lambda _, body: seen.append(body),
        )
        drawn = self.run("draw")
        assert canonical(drawn) == canonical(seen), "it does jobs otherwise than by `execute`"
        assert len({canonical(each[:2]) for each in drawn}) == len(drawn)

    def test_a_job_that_fails_is_named_and_those_before_it_are_done(self) -> None:
        seen, error = self._fail(WorkFailed, "stumble", {"bad": 3, "how": "bug"})
        (failure,) = error.failures
        assert failure.job == self.jobs(5)[3]
        assert failure.what.startswith("ZeroDivisionError: so it goes (conformance.py, line ")
        assert seen[:3] == [0, 1, 2], "jobs before the one that failed are lost"

    def test_wrong_input_comes_through_as_it_is(self) -> None:
        _, error = self._fail(InputError, "stumble", {"bad": 3, "how": "input"})
        assert error.mistakes == (Mistake("task 'seg'", "has no labels", 4),)

    def test_a_worker_that_dies_is_told_and_the_other_jobs_are_done(self) -> None:
        if not self.apart:
            return
        seen, error = self._fail(WorkFailed, "die", {"bad": 1})
        assert [failure.job for failure in error.failures] == [self.jobs(5)[1]]
        assert "its worker died twice, " in error.failures[0].what
        assert seen == [0, 2, 3, 4], "the other jobs are not done"

    def _fail(self, kind: type[E], work: str, context: JSON) -> tuple[list[JSON], E]:
        """The results that came all the same, and what was raised."""
        seen: list[JSON] = []
        try:
            self.run(work, context, done=lambda _, body: seen.append(body))
        except kind as error:
            return seen, error
        raise AssertionError("what went wrong is not told")

    def test_no_job_is_begun_once_there_are_enough(self) -> None:
        seen: list[JSON] = []
        # of two workers, one may do all others before the other has done the first
        self.run(
            "count",
            count=40,
            workers=1,
            done=lambda _, body: seen.append(body),
            enough=lambda: len(seen) >= 3,
        )
        assert seen[:3] == [0, 1, 2]
        assert len(seen) < 40, "it does what nobody wants any more"

    def test_an_interrupt_ends_it_and_what_it_began(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ticks = Path(folder) / "ticks"

            def interrupt(job: Job, body: JSON) -> None:
                if self.apart:  # then another may be under way
                    _wait(ticks.exists, self.patience)
                raise KeyboardInterrupt

            with contextlib.suppress(KeyboardInterrupt):
                self.run("tick", str(ticks), count=2, done=interrupt)
                raise AssertionError("it goes on after Ctrl-C")
            ended = _wait(lambda: _is_silent(ticks), self.patience)
            assert ended, "a job lives on after Ctrl-C"

    def test_an_error_of_whoever_takes_results_ends_it(self) -> None:
        asked: list[JSON] = []

        def refuse(job: Job, body: JSON) -> None:
            asked.append(body)
            raise InputError([Mistake("disk", "is full")])

        with contextlib.suppress(InputError):
            self.run("count", done=refuse)
            raise AssertionError("a full disk is not told")
        assert asked == [0]


def _wait(until: Callable[[], bool], patience: float) -> bool:
    """Whether it came to that within so many seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if until():
            return True
        time.sleep(0.02)
    return False


def _is_silent(file: Path) -> bool:
    """Whether nobody writes to it, or ever did."""
    if not file.exists():
        return True
    before = file.stat().st_size
    time.sleep(0.3)
    return file.stat().st_size == before
