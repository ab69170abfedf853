"""Trainings on record that are done once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_voc import TINY, make_tiny_backbone, write_voc

from allotment.experiment import repetition, running, work
from allotment.experiment.case import Case, Prices
from allotment.experiment.casebook import Casebook
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.record import Record
from allotment.experiment.repetition import (
    Repetition,
    draw_trainings,
    find_tolerance,
    judge_all,
    repeat,
)
from allotment.experiment.running import run
from allotment.experiment.work import Site, make_site, name_place
from allotment.job import Job
from allotment.learners.setups import BACKBONES, SETUPS
from allotment.runs.runner import Done

CASE = Case(
    "voc",
    "tiny",
    ("classes", "segmentation"),
    6,
    1,
    2,
    (Prices("1:20", {"classes": 1, "segmentation": 20}, 40),),
    validation=4,
)


class LabelsAtHand(Exhibit):
    about, data = "the labels at hand, and a few more", "voc"

    def list_trainings(self, book: Casebook) -> list[Job]:
        few = book.outcomes.repeat({"classes": 4, "segmentation": 2})
        return book.train_out(book.outcomes.nothing) + book.train_out(few)

    def show(self, book: Casebook) -> Shown:
        return Shown("", ())


EXHIBITS = [LabelsAtHand()]


@pytest.fixture(scope="module")
def _tiny() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETUPS, "tiny", TINY)
        patch.setitem(BACKBONES, "tiny", make_tiny_backbone)
        yield


@pytest.fixture(scope="module")
def site(_tiny: None, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return make_site(CASE, write_voc(tmp_path_factory.mktemp("voc"), train=40, test=8), None)


@pytest.fixture(scope="module")
def record(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Record:
    found = Record(tmp_path_factory.mktemp("record") / "voc.jsonl")
    run(EXHIBITS, site, found, workers=0)
    return found


@pytest.fixture(scope="module")
def again(record: Record, site: Site) -> list[Repetition]:
    jobs = draw_trainings(EXHIBITS, Casebook(CASE, record), 2)
    return repeat(jobs, site, record, workers=0)


def change(given: Repetition, by: float, **others: Any) -> Repetition:
    """With another score on record."""
    metrics = dict(given.before["metrics"])
    metrics["segmentation"] += by
    return replace(given, before={**given.before, "metrics": metrics}, **others)


def test_a_training_on_record_gives_the_same_figures_again(
    again: list[Repetition], record: Record
) -> None:
    assert len({each.job for each in again}) == 2
    assert [each.verdict for each in again] == ["same"] * 2
    assert all(each.is_promised and each.is_right for each in again)
    assert judge_all(again) == "2 of 2 trainings came out the same, to the last digit on record."
    # one line for each training, the pool and the machine
    assert len(record.path.read_text().splitlines()) == 4 + 2


def test_what_differs_on_this_kind_of_cpu_is_wrong_however_little_it_is(
    again: list[Repetition],
) -> None:
    little = change(again[0], 1e-6, tolerance={"segmentation": 0.1})
    assert little.verdict == "close"
    assert not little.is_right
    assert "no digit should differ" in judge_all([little, again[1]])
    assert ", on record " in str(little)


def test_elsewhere_figures_may_differ_as_with_another_seed(again: list[Repetition]) -> None:
    near, far = (
        change(again[0], by, tolerance={"segmentation": 0.1}, is_promised=False)
        for by in (0.09, 0.11)
    )
    assert (near.verdict, near.is_right) == ("close", True)
    assert (far.verdict, far.is_right) == ("different", False)
    told = judge_all([near, far, again[1]])
    assert told.startswith("1 of 3 trainings came out the same, 1 no further off than with another")
    assert "another kind of CPU" in told
    assert change(again[0], 0.01, tolerance={}).verdict == "different"


def test_nothing_is_promised_of_other_machines_and_versions(
    record: Record, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = draw_trainings(EXHIBITS, Casebook(CASE, record), 1)
    result = record.get(job.kind, job.needs)
    monkeypatch.setattr(repetition, "run_jobs", lambda jobs, *_, done, **__: done(job, result))
    assert repeat([job], site, record)[0].is_promised
    assert not repeat([job], site, record, on="here")[0].is_promised
    later = Job(job.kind, job.needs, {"allotment": "9", "torch": "9"})
    monkeypatch.setattr(repetition, "run_jobs", lambda jobs, *_, done, **__: done(later, result))
    assert not repeat([later], site, record)[0].is_promised
    monkeypatch.setattr(work, "describe_cpu", lambda: "another kind")
    monkeypatch.setattr(repetition, "run_jobs", lambda jobs, *_, done, **__: done(job, result))
    assert not repeat([job], site, record)[0].is_promised


def test_a_record_that_began_without_its_machine_promises_nothing(
    record: Record, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = record.path.read_text().splitlines(keepends=True)
    some = [line for line in lines if '"kind":"machine"' not in line][:-1]
    later = Record(tmp_path / "later.jsonl")
    later.path.write_text("".join(some))
    later = Record(later.path)
    result = later.list_results("training")[0][1]

    def train(jobs: Sequence[Job], *_: object, done: Done, **__: object) -> None:
        for job in jobs:
            done(job, result)

    monkeypatch.setattr(running, "run_jobs", train)
    run(EXHIBITS, site, later)
    assert len(later) == len(some) + 1
    assert not later.list_results("machine")


def test_on_a_cluster_a_line_for_each_job_says_where_it_was_done(
    record: Record, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"host": "node-7", "cpu": "some kind", "node": "abc"}

    def train(jobs: Sequence[Job], *_: object, done: Done, note: Done, **__: object) -> None:
        for job in jobs:
            done(job, record.get(job.kind, job.needs))
            note(job, where)
            note(job, {"host": "another"})  # done again, after Ctrl-C

    monkeypatch.setattr(running, "run_jobs", train)
    found = Record(tmp_path / "found.jsonl")
    run(EXHIBITS, site, found, on="here")
    found = Record(found.path)  # as it is on the disk
    assert found.list_results("training") == record.list_results("training")
    jobs = [Job("training", needs) for needs, _ in found.list_results("training")]
    assert [found.get(place.kind, place.needs) for place in map(name_place, jobs)] == [where] * 4
    assert len(found.list_results("place")) == 4


def test_tolerance_is_what_another_seed_makes(record: Record) -> None:
    outcomes = Casebook(CASE, record).outcomes
    scores, found = outcomes.find_scores(outcomes.nothing), find_tolerance(outcomes)
    for place, task in enumerate(CASE.tasks):
        # two trainings: their deviation is their difference over the root of 2
        apart = abs(float(scores[0, 0, place] - scores[0, 1, place]))
        assert found[task] == pytest.approx(3 * apart)
