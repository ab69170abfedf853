"""Experiments from the first job to the written page: resumable, since what is on record is not
done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.drawings import save_picture
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.record import Record
from allotment.experiment.work import (
    MACHINE_KIND,
    MEASURING_JOB,
    PERFORM_EXPERIMENT,
    TRAINING_JOB,
    Question,
    Site,
    list_trees,
    name_machine,
    name_place,
    open_ground,
)
from allotment.job import JSON, Job, canonical
from allotment.progress import Progress
from allotment.runs.portion import Portion
from allotment.runs.runner import find_runner, run_jobs


def list_questions(exhibits: Iterable[Exhibit], case: Case) -> list[Question]:
    """What methods are asked for all of these, each once."""
    found = {
        canonical(vars(asked)): asked for each in exhibits for asked in each.list_questions(case)
    }
    return list(found.values())


def list_missing(exhibits: Sequence[Exhibit], book: Casebook) -> list[Job]:
    """Jobs that are not on record, in the order in which they are best begun."""
    jobs: list[Job] = []
    for asked in list_questions(exhibits, book.case):
        jobs += book.list_measurings(asked)
    for each in exhibits:
        jobs += each.list_trainings(book)
    missing = [job for job in dict.fromkeys(jobs) if not book.record.has(job)]
    return sorted(missing, key=_weigh, reverse=True)


def _weigh(job: Job) -> tuple[bool, int]:
    """What comes first: measurements, since plans wait for them, and then trainings on many labels,
    since all other workers would wait for one of these at the end."""
    return job.kind == MEASURING_JOB, sum(job.needs.get("counts", {}).values())


def guess_seconds(jobs: Sequence[Job], record: Record) -> float | None:
    """CPU seconds that jobs take, by those on record of the same kind and method; None where there
    are none of some."""
    spent: dict[tuple[str, str], list[float]] = {}
    for kind in (TRAINING_JOB, MEASURING_JOB):
        for needs, result in record.list_results(kind):
            spent.setdefault((kind, needs.get("method", "")), []).append(float(result["seconds"]))
    total = 0.0
    for job in jobs:
        known = spent.get((job.kind, job.needs.get("method", "")))
        if known is None:
            return None
        total += sum(known) / len(known)
    return total


def run(
    exhibits: Sequence[Exhibit],
    site: Site,
    record: Record,
    *,
    workers: int | None = None,
    on: str | None = None,
    portion: Portion | None = None,
    watch: Callable[[Sequence[Job]], AbstractContextManager[Progress | None]] | None = None,
) -> Casebook:
    """Do what is missing, stage after stage: plans that are measured are trained out once they are
    known, and those that take long are begun first. `portion` is what a job gets on a cluster.
    `watch` is told what each stage has to do, and gives what its progress is told to."""
    book = Casebook(site.case, record, open_ground(site))
    _ = book.pool  # on record from now on, so that others can plan without the data
    _conclude(exhibits, book)  # of what was measured before, perhaps by a run that was cut off
    while missing := list_missing(exhibits, book):
        _note_machine(record, name_machine(site.case, on))
        with nullcontext() if watch is None else watch(missing) as progress:
            run_jobs(
                missing,
                PERFORM_EXPERIMENT,
                site.to_dict(),
                runner=find_runner(on, portion),
                workers=workers,
                done=record.put,
                progress=progress,
                trees=list_trees(site),
                note=partial(_note_place, record),
            )
        _conclude(exhibits, book)
    return book


def _conclude(exhibits: Sequence[Exhibit], book: Casebook) -> None:
    """Put on record what finished measurements add up to."""
    for asked in list_questions(exhibits, book.case):
        book.conclude(asked)


def _note_machine(record: Record, machine: Job) -> None:
    """On record from the first training on, or never: else nobody would know of all of them."""
    begins = not record.list_results(TRAINING_JOB) and not record.list_results(MEASURING_JOB)
    if not record.has(machine) and (begins or record.list_results(MACHINE_KIND)):
        record.put(machine, {})


def _note_place(record: Record, job: Job, where: JSON) -> None:
    """On what machine of a cluster a job was done."""
    place = name_place(job)
    if not record.has(place):
        record.put(place, where)


def write(name: str, shown: Shown, folder: Path, pictures: bool = True) -> list[Path]:
    """An exhibit as JSON, Markdown and picture; the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [folder / f"{name}.json", folder / f"{name}.md"]
    plain = {"title": shown.title, "values": dict(shown.values)}
    found[0].write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    picture = ""
    if pictures and shown.draw is not None:
        path = folder / f"{name}.svg"
        save_picture(shown, path)
        found.append(path)
        picture = path.name
    found[1].write_text(shown.to_markdown(picture), encoding="utf-8")
    return found
