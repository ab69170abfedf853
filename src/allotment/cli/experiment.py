"""The command `experiment`: the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.campaign import on_option, pair_options, stoppable, workers_option
from allotment.cli.group import say
from allotment.errors import InputError, Mistake, suggest
from allotment.formatting import several
from allotment.meter import Meter, spell

if TYPE_CHECKING:
    from allotment.corpus.surface import KeptSurface
    from allotment.experiment.case import Case
    from allotment.experiment.casebook import Casebook
    from allotment.experiment.exhibit import Exhibit
    from allotment.experiment.record import Record
    from allotment.experiment.surfaces import RecordedCase
    from allotment.experiment.work import Site
    from allotment.job import Job

PAPER_FOLDER = "paper"
"""where what is computed and drawn lies, unless somebody says"""
CORPUS, RECORDS = "experiments/corpus", "docs/results/paper"
"""in the repository"""
REPEATED_OTHERWISE = 1
"""exit code"""


@click.group()
def experiment() -> None:
    """Make the tables and figures of the paper, on its data or on small copies of them.

    \b
    Example:  allot experiment list
              allot experiment run figure-5 --root VOC2012 --weights mobilenet.npz
    """


@experiment.command("list")
def list_() -> None:
    """Every table and figure that can be made, and what it shows."""
    from allotment.experiment.exhibit import list_exhibits

    found = list_exhibits()
    width = max(map(len, found))
    for name, each in found.items():
        say(f"{name:<{width}}  {each.data:<9}  {each.about}")


_names = click.argument("names", metavar="NAME...", nargs=-1, required=True)
_out = click.option(
    "-o",
    "--out",
    default=PAPER_FOLDER,
    show_default=True,
    help="Folder for records, pages, pictures.",
)
_config = click.option(
    "--config", default="small", show_default=True,
    help="small: fits two cores; full: the paper's size, for a GPU.",
)  # fmt: skip
_pictures = click.option("--no-pictures", is_flag=True, help="Tables alone, without matplotlib.")


@experiment.command()
@_names
@click.option("--root", help="Folder of the data: VOC2012, or that of Taskonomy.")
@click.option("--weights", help="File of the backbone's trained weights.")
@_config
@_out
@click.option("--dry-run", is_flag=True, help="Say what it would take, and train nothing.")
@click.option(
    "--check",
    type=click.IntRange(1),
    metavar="N",
    help="Repeat N trainings on record, drawn by chance, and compare; nothing else is done.",
)
@workers_option
@on_option
@click.option(
    "--cluster", multiple=True, metavar="KEY=VALUE",
    help="What a job gets there: cpus, gpus, memory (GB), minutes, shared; --cluster gpus=0.5.",
)  # fmt: skip
@_pictures
@click.pass_context
def run(
    ctx: click.Context,
    names: tuple[str, ...],
    root: str | None,
    weights: str | None,
    config: str,
    out: str,
    dry_run: bool,
    check: int | None,
    workers: int | None,
    on: str | None,
    cluster: tuple[str, ...],
    no_pictures: bool,
) -> None:
    """Train what tables and figures need, and write them; what is on record is not done again.

    With --check some of it is, to see that the same figures come out: on the kind of CPU that is on
    record to the last digit, elsewhere no further off than with another seed. If they do not, it
    ends with exit code 1.

    \b
    Example:  allot experiment run figure-2 figure-5 --root VOC2012 --weights mobilenet.npz
              allot experiment run figure-5 --config full --dry-run
              allot experiment run figure-5 --root VOC2012 --weights mobilenet.npz --check 3
    """
    from allotment.experiment.outlay import weigh
    from allotment.experiment.record import Record, name_record
    from allotment.experiment.running import guess_seconds
    from allotment.experiment.running import run as run_exhibits
    from allotment.experiment.work import make_site
    from allotment.runs.portion import read_portion

    portion = read_portion(pair_options("--cluster", cluster))
    exhibits, case = _find(names, config)
    record = Record(name_record(out, case.data, config))
    if dry_run:
        say(f"{', '.join(names)}: {weigh(list(exhibits.values()), case, record)}.")
        return
    if root is None:
        what = f"is missing; give the folder of {case.data}, or --dry-run to see what it takes"
        raise InputError([Mistake("--root", what)])
    site = make_site(case, root, weights)
    if check is not None:
        where = {"workers": workers, "on": on, "portion": portion}
        is_right = _repeat(list(exhibits.values()), site, record, check, where)
        ctx.exit(0 if is_right else REPEATED_OTHERWISE)

    def watch(jobs: Sequence[Job]) -> Meter:
        seconds = guess_seconds(jobs, record)
        tell = "" if seconds is None else f", {spell(seconds)} of CPU"
        say(f"{several(len(jobs), 'job')}{tell}.", err=True)
        return Meter("trainings")

    with stoppable():
        book = run_exhibits(
            list(exhibits.values()),
            site,
            record,
            workers=workers,
            on=on,
            portion=portion,
            watch=watch,
        )
    _write(exhibits, book, out, not no_pictures)


def _repeat(
    exhibits: Sequence[Exhibit],
    site: Site,
    record: Record,
    count: int,
    where: Mapping[str, Any],
) -> bool:
    """Say of trainings on record what comes out the second time; whether that is as promised."""
    from allotment.experiment.casebook import Casebook
    from allotment.experiment.repetition import draw_trainings, judge_all, repeat
    from allotment.experiment.work import open_ground

    jobs = draw_trainings(exhibits, Casebook(site.case, record, open_ground(site)), count)
    if not jobs:
        what = "has no training of these yet; begin without --check"
        raise InputError([Mistake(str(record.path), what)])
    with Meter("trainings") as meter:
        found = repeat(jobs, site, record, progress=meter, **where)
    for each in found:
        say(str(each))
    say(judge_all(found))
    return all(each.is_right for each in found)


@experiment.command()
@_names
@_config
@_out
@_pictures
def show(names: tuple[str, ...], config: str, out: str, no_pictures: bool) -> None:
    """Write tables and figures of what is on record, without the data.

    \b
    Example:  allot experiment show figure-5
    """
    from allotment.experiment.casebook import Casebook
    from allotment.experiment.record import Record, name_record

    exhibits, case = _find(names, config)
    record = Record(name_record(out, case.data, config))
    if not len(record):
        what = "nothing is on record there; begin with: allot experiment run ..."
        raise InputError([Mistake(str(record.path), what)])
    _write(exhibits, Casebook(case, record), out, not no_pictures)


@experiment.command()
@click.option(
    "--method", "methods", multiple=True, metavar="NAME|FILE.py:FUNCTION",
    help="A way to plan, or code of your own; may be given several times. [default: all]",
)  # fmt: skip
@click.option(
    "--corpus",
    help=f"Folder of what was trained out on tables. [default: {CORPUS}, if it is there]",
)
@click.option(
    "--records",
    help=f"Folder that `experiment run` wrote to. [default: {RECORDS}, if it is there]",
)
def replay(methods: tuple[str, ...], corpus: str | None, records: str | None) -> None:
    """Judge ways to plan by purchases that were trained out: on the data sets of the corpus, and at
    every set of prices that is on record of `experiment run`.

    Nothing is trained, so that it takes seconds. FUNCTION gets what a campaign knows (setting,
    problem, trainings) and gives the labels to buy of each task.

    \b
    Example:  allot experiment replay
              allot experiment replay --method default --method mine.py:plan
              allot experiment replay --records paper --method mine.py:plan
    """
    from allotment.corpus.replay import judge
    from allotment.corpus.report import order_ways, show_setting, show_ways
    from allotment.corpus.surface import Surface

    with Meter("replaying") as meter:
        tables, cases = _open_surfaces(corpus, records)
        recorded = [surface for case in cases for surface in case.surfaces]
        surfaces: list[Surface] = [*tables, *recorded]
        kept = [name for surface in recorded for name in surface.kept_ways]
        names, found = methods or tuple(dict.fromkeys([*order_ways(), *kept])), []
        for done, name in enumerate(names, 1):
            found.append(judge(name, surfaces))
            meter(done, len(names))
    if len({each.setting.cluster for each in surfaces}) > 1 or not recorded:
        say(show_ways(found, surfaces))
    for surface in recorded:
        say(f"\n**{surface.setting.name}**: {surface}.\n\n{show_setting(found, surface)}")
    for case in cases:
        if case.missing:
            lacking = f"{case.path}: too little is on record of prices {', '.join(case.missing)}"
            say(f"\n{lacking}; allot experiment run goes on.")


def _open_surfaces(
    corpus: str | None, records: str | None
) -> tuple[list[KeptSurface], list[RecordedCase]]:
    """What folders that are given hold, or else those of the repository, as far as it is here."""
    from allotment.corpus.surface import open_surfaces
    from allotment.experiment.surfaces import check_records, open_records

    cases = open_records(Path(records or RECORDS))
    if records is not None:
        check_records(Path(records), cases)
    has_corpus = corpus is not None or not cases or Path(CORPUS).is_dir()
    return open_surfaces(Path(corpus or CORPUS)) if has_corpus else [], cases


def _find(names: Sequence[str], config: str) -> tuple[dict[str, Exhibit], Case]:
    """Exhibits by name, all of one data set, and their case."""
    from allotment.experiment.case import find_case
    from allotment.experiment.exhibit import list_exhibits

    known = list_exhibits()
    if wrong := [each for each in names if each not in known]:
        raise InputError([Mistake(each, f"unknown; {suggest(each, known)}") for each in wrong])
    found = {name: known[name] for name in names}
    sets = sorted({each.data for each in found.values()})
    if len(sets) > 1:
        raise InputError([Mistake(" and ".join(sets), "take one data set at a time")])
    return found, find_case(sets[0], config)


def _write(exhibits: Mapping[str, Exhibit], book: Casebook, out: str, pictures: bool) -> None:
    from allotment.experiment.running import write

    for name, each in exhibits.items():
        shown = each.show(book)
        say(shown.to_markdown())
        for path in write(name, shown, Path(out), pictures):
            say(str(path), err=True)
