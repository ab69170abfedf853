"""How many jobs travel together, and what becomes of those that are lost."""

from __future__ import annotations

import pytest

from allotment.job import JSON, Job
from allotment.runs.flights import MOST_MOVES, Flights
from allotment.runs.remote import do_jobs
from allotment.runs.runner import Backlog, WorkFailed

COUNT = "allotment.runs.conformance:count"


class Trip:
    """A backlog of jobs, flown by hand."""

    def __init__(self, count: int, workers: int = 2, seconds: float = 1.0):
        self.seen: list[JSON] = []
        self.notes: list[JSON] = []
        jobs = [Job("count", {"n": n}) for n in range(count)]
        self.backlog = Backlog(
            jobs,
            COUNT,
            None,
            lambda _, body: self.seen.append(body),
            note=lambda job, where: self.notes.append((job.needs["n"], where["host"])),
        )
        self.flights = Flights(self.backlog, workers, seconds)

    def do(self, seconds: float = 0.1) -> int:
        """Do the next parcel; how many jobs it was."""
        parcel = self.flights.next()
        done = f'{{"reply":"{{\\"body\\":%d}}","seconds":{seconds},"where":{{"host":"there"}}}}'
        for number in parcel.numbers:
            self.flights.take(number, done % number)
        return len(parcel.numbers)


def test_jobs_go_one_by_one_until_it_is_known_how_long_they_take() -> None:
    trip = Trip(1000)
    assert trip.do() == 1
    assert trip.do() == 10  # a second of them
    assert trip.seen == list(range(11))
    assert trip.notes == [(number, "there") for number in range(11)]


def test_long_jobs_always_go_one_by_one() -> None:
    trip = Trip(20)
    assert [trip.do(2.5) for _ in range(5)] == [1] * 5


def test_towards_the_end_parcels_are_small_so_that_all_workers_have_some() -> None:
    trip = Trip(41, workers=2)
    assert trip.do(0.0001) == 1
    sizes = []
    while trip.backlog.has_more:
        sizes.append(trip.do(0.0001))
    assert sizes[:2] == [5, 5]
    assert sizes[-1] == 1
    assert sum(sizes) == 40


def test_of_a_parcel_that_is_lost_each_job_is_tried_by_itself() -> None:
    trip = Trip(100)
    trip.do()
    parcel = trip.flights.next()
    assert len(parcel.numbers) > 1
    assert not parcel.is_retried
    trip.flights.lose(parcel, "of the cold")
    again = [trip.flights.next() for _ in parcel.numbers]
    assert [each.numbers for each in again] == [(number,) for number in parcel.numbers]
    assert all(each.is_retried for each in again)
    assert len(trip.flights.next().numbers) > 1  # the others go together as before


def test_a_single_job_is_to_blame_and_given_up_the_second_time() -> None:
    trip = Trip(1)
    for _ in range(2):
        trip.flights.lose(trip.flights.next(), "of the cold")
    assert not trip.backlog.has_more
    with pytest.raises(WorkFailed, match="its worker died twice, of the cold"):
        trip.backlog.conclude()


def test_a_job_whose_machine_is_gone_moves_but_not_for_ever() -> None:
    trip = Trip(1)
    for _ in range(MOST_MOVES + 1):
        trip.flights.lose(trip.flights.next(), "with its machine", is_blameless=True)
    assert trip.backlog.has_more
    trip.flights.lose(trip.flights.next(), "with its machine", is_blameless=True)
    assert not trip.backlog.has_more


def test_a_parcel_that_was_not_begun_comes_again_as_it_was() -> None:
    trip = Trip(100)
    trip.do()
    parcel = trip.flights.next()
    trip.flights.give_back(parcel)
    assert trip.flights.next().numbers == parcel.numbers


def test_a_job_that_is_through_in_time_is_not_ended() -> None:
    trip = Trip(2)
    jobs = [trip.backlog.next()[1] for _ in range(2)]
    done = list(do_jobs(trip.backlog.common, jobs, 60.0, node="n1"))
    for number, each in enumerate(done):
        trip.flights.take(number, each)
    assert trip.seen == [0, 1]
