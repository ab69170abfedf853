"""Jobs on the cores of this machine: the same bytes from one process as from many.

Between processes go keys and JSON only. A job is done on a settled machine and with random numbers
that begin at its key, so that nothing it gives depends on which process did it, or on what that
process did before. Native code can end a process: jobs have processes of their own, also where
there is one at a time.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import importlib
import json
import multiprocessing
import os
import queue
import random
import signal
import sys
import threading
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeAlias

from allotment.amounts import short
from allotment.errors import AllotmentError, InputError, Mistake, visible
from allotment.job import JSON, Job, canonical
from allotment.machine import settled

Work: TypeAlias = Callable[[JSON, str, JSON], JSON]
Done: TypeAlias = Callable[[Job, JSON], None]
Progress: TypeAlias = Callable[[int, int], None]
"""is told how many jobs are finished, and of how many"""

MOST_WORKERS = 512
HOPELESS = 3
"""jobs lost with none finished: the others would be lost too"""
START = "forkserver" if sys.platform == "linux" else "spawn"
"""how workers begin; macOS has a forkserver too, but its frameworks do not bear being forked"""
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")
LESS_MEMORY = "try fewer workers (--workers 1) or smaller batches (batch_size under [training])"
OTHER_CODE = (
    "try ONEDNN_MAX_CPU_ISA=SSE41 in the environment, by which torch does without what is new in"
    " this CPU"
)
QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True)
class Failure:
    """A job that gave no result, why, and where in the code."""

    job: Job
    what: str
    trace: str = ""

    def __str__(self) -> str:
        return visible(f"{self.job}: {self.what}", "\n")


class WorkFailed(AllotmentError):
    """Some jobs gave no result; `failures` names them. All others that were finished are done."""

    def __init__(self, failures: Iterable[Failure]):
        self.failures = tuple(failures)
        super().__init__("\n".join(map(str, self.failures)))


def run_jobs(
    jobs: Sequence[Job],
    work: str,
    context: JSON,
    *,
    workers: int | None = None,
    done: Done,
    progress: Progress | None = None,
    enough: Callable[[], bool] | None = None,
) -> None:
    """Execute `work(context, job.kind, job.needs)` ("module:function") for each job; hand results
    to `done` in order.

    `workers` is how many processes do them, one for each core if left out; with 0 this process
    does, for a debugger. After Ctrl-C or a failure, results that were waiting for an earlier one
    are handed on too, and the one that `done` was busy with is handed on again: `done` must take
    the same result twice. `enough` is asked after each result; once it says yes no other job is
    begun, and one that is under way is given up.
    """
    _check_name(work)
    count = default_workers() if workers is None else _check_workers(workers)
    context = json.loads(canonical(context))
    results = _Results(jobs, done, progress, enough)
    if jobs and count:
        _run_apart(jobs, work, context, results, min(count, len(jobs)))
    elif jobs:
        _run_here(jobs, work, context, results)


def default_workers() -> int:
    """As many as this process may use cores."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    try:  # a container has fewer than its machine
        share, period = map(int, QUOTA.read_text(encoding="ascii").split())
        cores = min(cores, max(1, round(share / period)))
    except (OSError, ValueError):
        pass
    return cores


def _check_workers(workers: object) -> int:
    if isinstance(workers, int) and not isinstance(workers, bool) and 0 <= workers <= MOST_WORKERS:
        return workers
    what = (
        f"{short(workers)} is not a number from 0 (this process) to {MOST_WORKERS}; leave it out"
        " for one per core"
    )
    raise InputError([Mistake("workers", what)])


def _check_name(work: str) -> None:
    module, _, function = work.partition(":")
    if not function.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise InputError(
            [Mistake("work", f"{short(work)} is not 'module:function'; write 'mine.jobs:perform'")]
        )


class _Results:
    """Results as they come, handed on in the order of the jobs."""

    def __init__(
        self,
        jobs: Sequence[Job],
        done: Done,
        progress: Progress | None,
        enough: Callable[[], bool] | None = None,
    ):
        self.jobs, self.done, self.progress, self.enough = jobs, done, progress, enough
        self.waiting: dict[int, JSON] = {}
        self.lost: set[int] = set()
        self.next = 0
        self.finished = 0
        self.refused = self.closed = False

    def take(self, index: int, body: JSON) -> None:
        self.waiting[index] = body
        self.finished += 1
        self.hand_on()
        if self.progress is not None:
            self.progress(self.finished, len(self.jobs))

    def lose(self, index: int) -> None:
        self.lost.add(index)
        self.hand_on()

    def hand_on(self) -> None:
        while not self.closed and (self.next in self.waiting or self.next in self.lost):
            if self.next in self.waiting:
                self._give(self.next)
                self.closed = self.enough is not None and self.enough()
            self.next += 1

    def salvage(self) -> None:
        """Hand on those that wait for an earlier one, which will not come any more."""
        if not self.refused:
            for index in sorted(self.waiting):
                self._give(index)

    def _give(self, index: int) -> None:
        try:
            self.done(self.jobs[index], self.waiting[index])
        except Exception:
            self.refused = True  # a full disk, say: it would refuse the others too
            raise
        del self.waiting[index]


def _run_here(jobs: Sequence[Job], work: str, context: JSON, results: _Results) -> None:
    with settled(), _own_randomness():
        try:
            for index, job in enumerate(jobs):
                results.take(
                    index, _result(job, _perform(work, context, job.kind, job.needs, job.key))
                )
                if results.closed:
                    break
        except KeyboardInterrupt:
            results.salvage()
            raise


def _run_apart(
    jobs: Sequence[Job], work: str, context: JSON, results: _Results, count: int
) -> None:
    crew = _Crew(work, context, count)
    run = _Run(jobs, results)
    try:
        while crew.busy(run.end) or run.more:
            while run.more and (worker := crew.idle()):
                worker.begin(heapq.heappop(run.left), jobs)
            for worker in crew.wait():
                index, reply = worker.finish()
                if reply is None:
                    run.bury(index, crew.bury(worker))
                else:
                    run.take(index, reply)
    except KeyboardInterrupt:
        crew.stop()
        results.salvage()
        raise
    finally:
        crew.stop()
    results.salvage()
    if run.trouble:
        raise run.trouble
    if run.failures:
        raise WorkFailed(run.failures[index] for index in sorted(run.failures))


class _Run:
    """What is left to do, and what went wrong."""

    def __init__(self, jobs: Sequence[Job], results: _Results):
        self.jobs, self.results = jobs, results
        self.left = list(range(len(jobs)))  # a heap: a job that is tried again comes first
        self.end = len(jobs)
        self.trouble: AllotmentError | None = None
        self.deaths: Counter[int] = Counter()
        self.failures: dict[int, Failure] = {}

    @property
    def more(self) -> bool:
        return bool(self.left) and self.left[0] < self.end

    def take(self, index: int, reply: str) -> None:
        try:
            body = _result(self.jobs[index], reply)
        # jobs before it are still finished: then it is the one of a single process
        except AllotmentError as error:
            if index < self.end:
                self.end, self.trouble = index, error
        else:
            self.results.take(index, body)
            # what went wrong beyond its end would not have been begun by a single process
            if self.results.closed:
                self.end, self.trouble = self.results.next, None
                self.failures = {
                    place: each for place, each in self.failures.items() if place < self.end
                }

    def bury(self, index: int, cause: str) -> None:
        """Its worker died: it is tried once more, then given up, and the rest goes on."""
        self.deaths[index] += 1
        if self.deaths[index] == 1:
            heapq.heappush(self.left, index)
            return
        self.failures[index] = Failure(self.jobs[index], f"its worker died twice, {cause}")
        self.results.lose(index)
        if len(self.failures) >= HOPELESS and not self.results.finished:
            self.end = 0


class _Worker:
    """A process that does one job at a time."""

    def __init__(self, start: Any, hello: bytes):
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
        self._tell(hello)

    def begin(self, index: int, jobs: Sequence[Job]) -> None:
        self.job = index
        self._tell(json.dumps([jobs[index].kind, jobs[index].needs, jobs[index].key]).encode())

    def finish(self) -> tuple[int, str | None]:
        """Which job, and the reply to it; none if the worker died of it."""
        assert self.job is not None
        index, self.job = self.job, None
        try:
            return index, self.pipe.recv_bytes().decode()
        except (EOFError, OSError):
            return index, None

    def _tell(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it died: reading its answer says so
            self.pipe.send_bytes(message)

    def stop(self) -> None:
        self.process.kill()
        self.pipe.close()


class _Crew:
    """The workers at hand; new ones take the place of the dead."""

    def __init__(self, work: str, context: JSON, count: int):
        self.start: Any = multiprocessing.get_context(START)
        module = work.partition(":")[0]
        # loaded once, for all workers; what this process could not load might end the server
        self.start.set_forkserver_preload(["torch", module] if module in sys.modules else ["torch"])
        self.hello, self.count = json.dumps([work, context]).encode(), count
        self.workers: list[_Worker] = []

    def busy(self, end: int) -> bool:
        """Whether a job before this one is under way."""
        return any(worker.job is not None and worker.job < end for worker in self.workers)

    def idle(self) -> _Worker | None:
        for worker in self.workers:
            if worker.job is None:
                return worker
        if len(self.workers) == self.count:
            return None
        self.workers.append(_Worker(self.start, self.hello))
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


def explain_death(code: int | None) -> str:
    """What an exit code of a worker says of its end, and what to try.

    >>> explain_death(3)
    'with exit code 3: something in it left Python; try --workers 0 to see it in one process'
    """
    if code is None or code >= 0:
        return (
            f"with exit code {code}: something in it left Python; try --workers 0 to see it in one"
            " process"
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return f"killed from outside ({name}), mostly for want of memory: {LESS_MEMORY}"
    if name in CRASHES:
        return (
            f"of a crash in native code ({name}): {OTHER_CODE}; where memory is short,"
            f" {LESS_MEMORY}"
        )
    return f"ended from outside ({name}): type the command again"


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
    work, context = json.loads(inbox.get())
    with settled():
        while True:
            kind, needs, key = json.loads(inbox.get())
            reply = _perform(work, context, kind, needs, key)
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


def _perform(work: str, context: JSON, kind: str, needs: JSON, key: str) -> str:
    """Do a job; the reply as JSON: its body, or what is wrong."""
    try:
        function = _load(work)
        _seed(int(key[:8], 16))
        body = function(context, kind, json.loads(json.dumps(needs)))
        try:
            return f'{{"body":{canonical(body)}}}'
        except InputError as error:
            raise InputError(
                mistake.under(f"result of job {kind!r}") for mistake in error.mistakes
            ) from None
    except InputError as error:
        return json.dumps(
            {
                "mistakes": [
                    [mistake.where, mistake.what, mistake.line] for mistake in error.mistakes
                ]
            }
        )
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        message = str(error).strip()
        if (
            isinstance(error, MemoryError)
            or "allocate memory" in message
            or "out of memory" in message.lower()
        ):
            first = message.partition("\n")[0]
            message = f"{first}; there is not memory enough: {LESS_MEMORY}".lstrip("; ")
        what = (
            f"{type(error).__name__}{': ' if message else ''}{message} ({Path(at.filename).name},"
            f" line {at.lineno})"
        )
        return json.dumps({"failure": what, "trace": traceback.format_exc()})


def _result(job: Job, reply: str) -> JSON:
    """The body in a reply; raises what went wrong instead."""
    said = json.loads(reply)
    if "mistakes" in said:
        raise InputError(Mistake(*mistake) for mistake in said["mistakes"])
    if "failure" in said:
        raise WorkFailed([Failure(job, said["failure"], said["trace"])])
    return said["body"]


@functools.cache
def _load(work: str) -> Work:
    module, _, name = work.partition(":")
    try:
        loaded: Work = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise InputError(
            [Mistake("work", f"{module} cannot be loaded: {error}; is it installed?")]
        ) from error
    except AttributeError as error:
        raise InputError([Mistake("work", f"{error}; check the name after the colon")]) from error
    return loaded


def _seed(seed: int) -> None:
    """Global random numbers too begin at the job's key: a user's own code may draw from them."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@contextlib.contextmanager
def _own_randomness() -> Iterator[None]:
    """Give the caller's random numbers back as they were."""
    import numpy as np

    torch: Any = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), torch.get_rng_state() if torch else None
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch:
            torch.set_rng_state(before[2])
