"""The command `experiment`: the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allotment.cli.campaign import on_option, stoppable, workers_option
from allotment.cli.group import say
from allotment.errors import InputError, Mistake, suggest
from allotment.formatting import several
from allotment.meter import Meter, spell

if TYPE_CHECKING:
    from allotment.experiment.case import Case
    from allotment.experiment.exhibit import Exhibit
    from allotment.experiment.sheet import Sheet
    from allotment.job import Job

FOLDER = "paper"
"""where what is computed and drawn lies, unless somebody says"""


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
    "-o", "--out", default=FOLDER, show_default=True, help="Folder for records, pages, pictures."
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
@workers_option
@on_option
@_pictures
def run(
    names: tuple[str, ...],
    root: str | None,
    weights: str | None,
    config: str,
    out: str,
    dry_run: bool,
    workers: int | None,
    on: str | None,
    no_pictures: bool,
) -> None:
    """Train what tables and figures need, and write them; what is on record is not done again.

    \b
    Example:  allot experiment run figure-2 figure-5 --root VOC2012 --weights mobilenet.npz
              allot experiment run figure-5 --config full --dry-run
    """
    from allotment.experiment.outlay import weigh
    from allotment.experiment.record import Record
    from allotment.experiment.running import guess_seconds
    from allotment.experiment.running import run as run_exhibits
    from allotment.experiment.work import make_place
    from allotment.settings.settings import quote

    exhibits, case = _find(names, config)
    record = Record(_name_record(out, case, config))
    if dry_run:
        say(f"{', '.join(names)}: {weigh(list(exhibits.values()), case, record)}.")
        return
    if root is None:
        what = f"is missing; give the folder of {case.data}, or --dry-run to see what it takes"
        raise InputError([Mistake("--root", what)])
    place = make_place(case, root, weights)

    def watch(jobs: Sequence[Job]) -> Meter:
        seconds = guess_seconds(jobs, record)
        tell = "" if seconds is None else f", {spell(seconds)} of CPU"
        say(f"{several(len(jobs), 'job')}{tell}.", err=True)
        return Meter("trainings")

    with stoppable(f"allot experiment run {' '.join(names)} --root {quote(root)}"):
        sheet = run_exhibits(
            list(exhibits.values()), place, record, workers=workers, on=on, watch=watch
        )
    _write(exhibits, sheet, out, not no_pictures)


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
    from allotment.experiment.record import Record
    from allotment.experiment.sheet import Sheet

    exhibits, case = _find(names, config)
    record = Record(_name_record(out, case, config))
    if not len(record):
        what = "nothing is on record there; begin with: allot experiment run ..."
        raise InputError([Mistake(str(record.path), what)])
    _write(exhibits, Sheet(case, record), out, not no_pictures)


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


def _name_record(out: str, case: Case, config: str) -> Path:
    return Path(out) / f"{case.data}-{config}.jsonl"


def _write(exhibits: Mapping[str, Exhibit], sheet: Sheet, out: str, pictures: bool) -> None:
    from allotment.experiment.running import write

    for name, each in exhibits.items():
        shown = each.show(sheet)
        say(shown.to_markdown())
        for path in write(name, shown, Path(out), pictures):
            say(str(path), err=True)
