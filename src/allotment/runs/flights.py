"""Jobs on their way to other machines and back: how many travel together, and what becomes of those
that are lost."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

from allotment.runs.remote import read_done
from allotment.runs.runner import Backlog

MOST_TOGETHER = 1000
"""jobs of one parcel"""
FEWEST_PARCELS = 4
"""parcels at least into which what is left is cut for each worker, so that none waits for long at
the end"""
MOST_MOVES = 5
"""times that a job may lose its machine, for which it is not to blame"""
REMEMBERED = 50
"""jobs whose times say how long the next ones take"""


@dataclass(frozen=True)
class Parcel:
    """Jobs that are done after each other in one place."""

    numbers: tuple[int, ...]
    jobs: tuple[str, ...]
    is_retried: bool = False


class Flights:
    """Takes jobs from a backlog in parcels of about so many seconds, and gives back what came."""

    def __init__(self, backlog: Backlog, workers: int, seconds: float):
        self.backlog, self.workers, self.seconds = backlog, workers, seconds
        self._times: deque[float] = deque(maxlen=REMEMBERED)
        self._alone: set[int] = set()
        """jobs that go by themselves, since a worker died of a parcel with them"""
        self._moves: Counter[int] = Counter()
        self._begun = 0

    def next(self) -> Parcel:
        """The next jobs to be begun; there must be one."""
        numbers: list[int] = []
        jobs: list[str] = []
        most = self._count()
        while self.backlog.has_more and len(numbers) < most:
            number, job = self.backlog.next()
            if number in self._alone and numbers:
                self.backlog.give_back(number)
                break
            numbers.append(number)
            jobs.append(job)
            if number in self._alone:
                break
        self._begun += len(numbers)
        return Parcel(tuple(numbers), tuple(jobs), bool(self._alone.intersection(numbers)))

    def _count(self) -> int:
        """How many jobs go together: one until it is known how long they take, and then as many as
        are worth a journey."""
        if not self._times:
            return 1
        usual = max(sum(self._times) / len(self._times), 1e-6)
        left = max(len(self.backlog) - self._begun, 1)
        fair = -(-left // (FEWEST_PARCELS * self.workers))
        return max(1, min(int(self.seconds / usual), fair, MOST_TOGETHER))

    def wants(self, parcel: Parcel) -> bool:
        return any(map(self.backlog.wants, parcel.numbers))

    def take(self, number: int, done: str) -> None:
        """What `do_jobs` gave for a job."""
        reply, seconds, where = read_done(done)
        self._times.append(seconds)
        self.backlog.take(number, reply, where)

    def give_back(self, parcel: Parcel) -> None:
        """It was not begun."""
        self._begun -= len(parcel.numbers)
        for number in parcel.numbers:
            self.backlog.give_back(number)

    def lose(self, parcel: Parcel, cause: str, is_blameless: bool = False) -> None:
        """No reply will come: of several jobs each is tried by itself, since one of them may be to
        blame; a single one is, unless its machine is gone."""
        self._begun -= len(parcel.numbers)
        for number in parcel.numbers:
            self._alone.add(number)
            self._moves[number] += is_blameless
            if len(parcel.numbers) > 1 or (is_blameless and self._moves[number] <= MOST_MOVES):
                self.backlog.give_back(number)
            else:
                self.backlog.lose(number, cause)
