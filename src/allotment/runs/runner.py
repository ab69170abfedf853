"""The seam of runners: where jobs run, and how what they give finds its way back in order."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from allotment.amounts import short
from allotment.errors import AllotmentError, InputError, Mistake, cut, visible
from allotment.job import JSON, Job
from allotment.plugins import Registry, find_modules
from allotment.progress import Progress
from allotment.runs.execution import write_common, write_job
from allotment.runs.portion import Portion
from allotment.runs.trees import Tree

Done: TypeAlias = Callable[[Job, JSON], None]

MOST_WORKERS = 512
HOPELESS = 3
"""jobs lost with none finished: the others would be lost too"""
PROCESSES, HERE = "processes", "here"
"""the runner unless somebody says, and the one that is this process"""


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


class Backlog:
    """The jobs of one run, as a runner sees them: texts to be executed, by number.

    `next` gives one while it `has_more`; `allotment.runs.execution.execute(backlog.common, job)`
    does it, in any process that can import the same packages and read the same files, and its
    reply goes to `take`. Where none came, since the process is gone, `lose` takes the cause: the
    job is among the next ones once more, and is then given up. Both may end the run sooner, by an
    error or by results that are enough: then it has no more, and `wants` says of one that is under
    way whether it is still worth waiting for. A reply that comes twice is taken once.

    `trees` are the files that jobs read, by the keys of the context that name them: a runner whose
    machines do not see these puts them there, and tells `execute` where (`relocate`).
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        work: str,
        context: JSON,
        done: Done,
        progress: Progress | None = None,
        enough: Callable[[], bool] | None = None,
        trees: Mapping[str, Tree] | None = None,
        note: Done | None = None,
    ):
        self.work = work
        self.trees = trees or {}
        self.common = write_common(work, context)
        self._jobs = jobs
        self._results = _Results(jobs, done, progress, enough, note)
        self._left = list(range(len(jobs)))  # a heap: a job that is tried again comes first
        self._end = len(jobs)
        self._trouble: AllotmentError | None = None
        self._deaths: Counter[int] = Counter()
        self._failures: dict[int, Failure] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def has_more(self) -> bool:
        """Whether there is a job to be begun."""
        return bool(self._left) and self.wants(self._left[0])

    def next(self) -> tuple[int, str]:
        """The number and the text of a job; the runner sees to it that it is done."""
        number = heapq.heappop(self._left)
        return number, write_job(self._jobs[number])

    def give_back(self, number: int) -> None:
        """A job that was begun, but of which nothing can be said, is among the next ones again."""
        if not self._results.has(number):
            heapq.heappush(self._left, number)

    def wants(self, number: int) -> bool:
        """Whether the result of a job is still needed."""
        return number < self._end

    def take(self, number: int, reply: str, where: JSON = None) -> None:
        """What `execute` replied to a job, and on what machine, if that is another one."""
        if self._results.has(number):
            return
        try:
            body = _read_reply(self._jobs[number], reply)
        # jobs before it are still finished: then it is the one of a single process
        except AllotmentError as error:
            if self.wants(number):
                self._end, self._trouble = number, error
            return
        self._results.take(number, body, where)
        # what went wrong beyond its end would not have been begun by a single process
        if self._results.closed:
            self._end, self._trouble = self._results.next, None
            self._failures = {at: each for at, each in self._failures.items() if self.wants(at)}

    def lose(self, number: int, cause: str) -> None:
        """Its worker died: it is tried once more, then given up, and the rest goes on."""
        if self._results.has(number):
            return
        self._deaths[number] += 1
        if self._deaths[number] == 1:
            heapq.heappush(self._left, number)
            return
        self._failures[number] = Failure(self._jobs[number], f"its worker died twice, {cause}")
        self._results.lose(number)
        if len(self._failures) >= HOPELESS and not self._results.finished:
            self._end = 0

    def salvage(self) -> None:
        """Hand on what waits for an earlier job, which will not come any more."""
        self._results.salvage()

    def conclude(self) -> None:
        """When the runner is back: raises what went wrong."""
        forgotten = [at for at in range(self._end) if not self._results.has(at)]
        self.salvage()
        if self._trouble:
            raise self._trouble
        for at in forgotten:
            self._failures[at] = Failure(self._jobs[at], "the runner came back without its result")
        if self._failures:
            raise WorkFailed(self._failures[at] for at in sorted(self._failures))


@runtime_checkable
class Runner(Protocol):
    """Where jobs run.

    `count_workers` says how many it does at a time unless somebody says. `run` does the jobs of a
    backlog, so many at a time, in any order, until it has no more and none is under way that it
    still wants; `Backlog` says how. Jobs are texts that hold all they need but the files that the
    context names: they may be done in other folders and on other machines.

    A runner judges no reply. It returns when all is done; whatever ends it before (Ctrl-C, or an
    error of `take`) ends its processes as well, and goes on to whoever called.
    """

    def count_workers(self) -> int: ...

    def run(self, backlog: Backlog, workers: int) -> None: ...


@runtime_checkable
class ClusterRunner(Runner, Protocol):
    """Where jobs run on other machines.

    `at` gives the runner for an address, which may be empty, and for what each job is to get;
    raises InputError where it can't work. Nothing is begun and nobody asked before the others are
    called.
    """

    def at(self, address: str, portion: Portion) -> Runner: ...


_OWN = find_modules("allotment.runs.runners", "RUNNER")
RUNNERS: Registry[Runner] = Registry(
    "runners", "runner", ("count_workers", "run"), {PROCESSES: _OWN[PROCESSES], **_OWN}
)
"""by name, the default first"""


def find_runner(on: str | None = None, portion: Portion | None = None) -> Runner:
    """The runner of a name, or of `name://address`; local processes if None."""
    name, mark, address = (PROCESSES if on is None else on).partition("://")
    runner = RUNNERS.load(name)
    if isinstance(runner, ClusterRunner):
        return runner.at(address, portion or Portion())
    if mark:
        what = f"{cut(repr(on), 60)}: {name} has no address; write --on {name}"
        raise InputError([Mistake("runner", what)])
    return runner


def name_runner(on: str | None) -> str:
    """Of a runner with an address, the name alone."""
    return PROCESSES if on is None else on.partition("://")[0]


def run_jobs(
    jobs: Sequence[Job],
    work: str,
    context: JSON,
    *,
    runner: Runner | None = None,
    workers: int | None = None,
    done: Done,
    progress: Progress | None = None,
    enough: Callable[[], bool] | None = None,
    trees: Mapping[str, Tree] | None = None,
    note: Done | None = None,
) -> None:
    """Execute `work(context, job.kind, job.needs)` ("module:function") for each job; hand results
    to `done` in order.

    `runner` does them, local processes if left out, and `workers` of them at a time, as many as it
    says itself if left out; with 0 this process does, for a debugger. After Ctrl-C or a failure,
    results that were waiting for an earlier one are handed on too, and the one that `done` was busy
    with is handed on again: `done` must take the same result twice. `enough` is asked after each
    result; once it says yes no other job is begun, and one that is under way is given up. `trees`
    are files that jobs read, by the keys of the context that name them; `note` is told of each job
    on which other machine it was done, once `done` has its result.
    """
    if runner is None:
        runner = RUNNERS.load(PROCESSES)
    count = runner.count_workers() if workers is None else _check_workers(workers)
    if not count:
        runner = RUNNERS.load(HERE)
    backlog = Backlog(jobs, work, context, done, progress, enough, trees, note)
    if not jobs:
        return
    try:
        runner.run(backlog, min(max(count, 1), len(jobs)))
    except KeyboardInterrupt:
        backlog.salvage()
        raise
    backlog.conclude()


def _check_workers(workers: object) -> int:
    if isinstance(workers, int) and not isinstance(workers, bool) and 0 <= workers <= MOST_WORKERS:
        return workers
    what = (
        f"{short(workers)} is not a number from 0 (this process) to {MOST_WORKERS}; leave it out"
        " for one per core"
    )
    raise InputError([Mistake("workers", what)])


def _read_reply(job: Job, reply: str) -> JSON:
    """The result in a reply; raises what went wrong instead."""
    said = json.loads(reply)
    if "mistakes" in said:
        raise InputError(Mistake(*mistake) for mistake in said["mistakes"])
    if "failure" in said:
        raise WorkFailed([Failure(job, said["failure"], said["trace"])])
    return said["body"]


class _Results:
    """Results as they come, handed on in the order of the jobs."""

    def __init__(
        self,
        jobs: Sequence[Job],
        done: Done,
        progress: Progress | None,
        enough: Callable[[], bool] | None,
        note: Done | None = None,
    ):
        self.jobs, self.done, self.progress, self.enough = jobs, done, progress, enough
        self.note = note
        self.places: dict[int, JSON] = {}
        self.waiting: dict[int, JSON] = {}
        self.answered: set[int] = set()
        """those that came, and those that never will"""
        self.next = 0
        self.finished = 0
        self.refused = self.closed = False

    def has(self, index: int) -> bool:
        return index in self.answered

    def take(self, index: int, body: JSON, where: JSON = None) -> None:
        self.waiting[index] = body
        if where is not None and self.note is not None:
            self.places[index] = where
        self.answered.add(index)
        self.finished += 1
        self.hand_on()
        if self.progress is not None:
            self.progress(self.finished, len(self.jobs))

    def lose(self, index: int) -> None:
        self.answered.add(index)
        self.hand_on()

    def hand_on(self) -> None:
        while not self.closed and self.has(self.next):
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
            if self.note is not None and index in self.places:
                self.note(self.jobs[index], self.places.pop(index))
        except Exception:
            self.refused = True  # a full disk, say: it would refuse the others too
            raise
        del self.waiting[index]
