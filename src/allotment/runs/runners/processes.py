"""Jobs on the cores of this machine: the same bytes from one process as from many.

Between processes go texts only. Native code can end a process: jobs have processes of their own,
also where there is one at a time.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import queue
import signal
import sys
import threading
import types
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from allotment.machine import settled
from allotment.runs.deaths import explain_death
from allotment.runs.execution import execute
from allotment.runs.runner import Backlog

START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""how workers begin; macOS has a forkserver too, but its frameworks do not bear being forked"""
QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Processes:
    """One worker for each core unless told; one that dies is replaced."""

    def count_workers(self) -> int:
        """As many as this process may use cores."""
        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        try:  # a container has fewer than its machine
            share, period = map(int, QUOTA.read_text(encoding="ascii").split())
            cores = min(cores, max(1, round(share / period)))
        except (OSError, ValueError):
            pass
        return cores

    def run(self, backlog: Backlog, workers: int) -> None:
        crew = _Crew(backlog, workers)
        try:
            while crew.is_busy() or backlog.has_more:
                while backlog.has_more and (worker := crew.idle()):
                    worker.begin(*backlog.next())
                for worker in crew.wait():
                    number, reply = worker.finish()
                    if reply is None:
                        backlog.lose(number, crew.bury(worker))
                    else:
                        backlog.take(number, reply)
        finally:
            crew.stop()


RUNNER = Processes()


class _Worker:
    """A process that does one job at a time."""

    def __init__(self, start: Any, common: str):
        self.pipe, theirs = start.Pipe()
        self.process = start.Process(target=_serve, args=(theirs,), name="allotment worker")
        with _without_main(), _without_folder():
            if start.get_start_method() == "forkserver":
                _start_server()
                self.process.start()
            else:
                with _without_interrupt():  # what loads torch is the process itself
                    self.process.start()
        theirs.close()
        self.job: int | None = None
        self._tell(common)

    def begin(self, number: int, job: str) -> None:
        self.job = number
        self._tell(job)

    def finish(self) -> tuple[int, str | None]:
        """Which job, and the reply to it; none if the worker died of it."""
        assert self.job is not None
        number, self.job = self.job, None
        try:
            return number, self.pipe.recv_bytes().decode()
        except (EOFError, OSError):
            return number, None

    def _tell(self, message: str) -> None:
        with contextlib.suppress(OSError):  # it died: reading its answer says so
            self.pipe.send_bytes(message.encode())

    def stop(self) -> None:
        self.process.kill()
        self.pipe.close()


class _Crew:
    """The workers at hand; new ones take the place of the dead."""

    def __init__(self, backlog: Backlog, count: int):
        self.start: Any = multiprocessing.get_context(START_METHOD)
        module = backlog.work.partition(":")[0]
        # loaded once, for all workers; what this process could not load might end the server
        self.start.set_forkserver_preload(["torch", module] if module in sys.modules else ["torch"])
        self.backlog, self.count = backlog, count
        self.workers: list[_Worker] = []

    def is_busy(self) -> bool:
        """Whether a job is under way whose result is wanted."""
        numbers = [worker.job for worker in self.workers if worker.job is not None]
        return any(self.backlog.wants(number) for number in numbers)

    def idle(self) -> _Worker | None:
        for worker in self.workers:
            if worker.job is None:
                return worker
        if len(self.workers) == self.count:
            return None
        self.workers.append(_Worker(self.start, self.backlog.common))
        return self.workers[-1]

    def wait(self) -> list[_Worker]:
        """Those that have something to say, at least one."""
        busy = [worker for worker in self.workers if worker.job is not None]
        ready = wait([worker.pipe for worker in busy])
        return [worker for worker in busy if worker.pipe in ready]

    def bury(self, worker: _Worker) -> str:
        """Remove a dead worker; what it died of."""
        self.workers.remove(worker)
        worker.stop()
        worker.process.join()
        return explain_death(worker.process.exitcode)

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.process.join()
        self.workers.clear()


def _start_server() -> None:
    """Start what workers are forked from, unless it runs; whatever is forked from it begins with
    Ctrl-C blocked."""
    from multiprocessing import forkserver, resource_tracker

    resource_tracker.ensure_running()  # first, since it ends by unblocking Ctrl-C
    with _without_interrupt():
        forkserver.ensure_running()


@contextlib.contextmanager
def _without_interrupt() -> Iterator[None]:
    """While a process starts, since Ctrl-C would end it while it loads torch; one that comes is
    raised at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """While a process starts: else the user's script would be run again in it, to offer names that
    no job asks for."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _without_folder() -> Iterator[None]:
    """While a process starts: `python -c`, as which it does, would load what lies in the current
    folder in the place of Python's own modules, and a campaign's folder may be anybody's. Where to
    look for the others it is told by this one.

    An option, since a variable in the environment would reach programs that the user's own code
    starts.
    """
    util: Any = importlib.import_module("multiprocessing.util")
    # asked for every process that multiprocessing starts
    options = util._args_from_interpreter_flags
    util._args_from_interpreter_flags = lambda: [*options(), "-P"]
    try:
        yield
    finally:
        util._args_from_interpreter_flags = options


def _serve(pipe: Connection) -> None:
    """A worker's life: told once what to work with, it answers job after job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to deal with
    if hasattr(signal, "pthread_sigmask"):  # blocked until now, as in the server
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, inbox), daemon=True).start()
    common = inbox.get().decode()
    with settled():
        while True:
            reply = execute(common, inbox.get().decode())
            sys.stdout.flush()
            pipe.send_bytes(reply.encode())


def _listen(pipe: Connection, inbox: queue.SimpleQueue[bytes]) -> None:
    """Take messages in, also during a job: the pipe ends when the parent does, whatever it died
    of."""
    while True:
        try:
            inbox.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)
