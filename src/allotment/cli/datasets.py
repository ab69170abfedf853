"""Commands that look at data sets and have options of their own: `data table`, `data scenes`,
`data voc`, `data taskonomy`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from allotment.cli.group import BAD_INPUT, fail
from allotment.cli.inputs import locate
from allotment.cli.sources import DataGroup, show_summary

if TYPE_CHECKING:
    from allotment.data.folder import FolderData


@click.group(cls=DataGroup, invoke_without_command=True)
@click.pass_context
def data(ctx: click.Context) -> None:
    """What is in a data set: instances, labels, kinds, oddities.

    \b
    Example:  allot data table pets.csv --target species
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@data.command()
@click.argument("path", metavar="TABLE")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="COLUMN",
    help="A column to predict; tox:* for a prefix.",
)
@click.option(
    "--kind", "kinds", multiple=True, metavar="NAME=KIND", help="What a target or a feature is."
)
@click.option("--classes", multiple=True, metavar="NAME=A|B", help="All classes of a target.")
@click.option("--group", metavar="COLUMN", help="Rows of one group stay in one split.")
@click.option(
    "--id", "id_", metavar="COLUMN", help="Names of the rows. [default: a column called id]"
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out.")
@click.option(
    "--delimiter", metavar="CHARACTER", help="Between cells of a CSV file. [default: by its name]"
)
@click.option("--encoding", metavar="NAME", help="Of a CSV file. [default: by its bytes]")
@click.option("--decimal", metavar="SIGN", help="Of its numbers, . or ,  [default: by its cells]")
@click.option("--sheet", metavar="NAME", help="Of a workbook (xlsx). [default: the first]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the splits.")
@click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
def table(
    path: str,
    targets: tuple[str, ...],
    kinds: tuple[str, ...],
    classes: tuple[str, ...],
    group: str | None,
    id_: str | None,
    drop: tuple[str, ...],
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    sheet: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """A table: CSV, TSV, xlsx, Parquet or npz. An empty target cell is a missing label.

    \b
    Kinds of targets:   classification, multilabel, regression
    Kinds of features:  numeric, categorical, text, image, date
    Example:  allot data table pets.csv --target species --target weight --drop notes
    """
    from allotment.data.inspection import inspect_table, split_forms
    from allotment.data.summary import describe
    from allotment.data.table import read_table
    from allotment.errors import InputError

    said = {"id": id_, "group": group, "drop": list(drop), "delimiter": delimiter}
    said |= {"encoding": encoding, "decimal": decimal, "sheet": sheet}
    forms = _pairs("--kind", kinds)
    try:
        given = {key: value for key, value in said.items() if value}
        columns = [f"{name}={form}" for name, form in forms.items()]
        found = inspect_table(path, given | {"columns": columns}, targets)
        options = {**given, **found.options}
        forms |= dict(split_forms(options.pop("columns", ())))
        read = read_table(
            path,
            targets or None,
            kinds=forms,
            classes={
                name: listed.split("|") for name, listed in _pairs("--classes", classes).items()
            },
            **options,
        )
    except InputError as error:
        fail(locate(error, path), BAD_INPUT)
    notes = (*found.notes, *read.label_notes)
    show_summary(describe(replace(read, label_notes=notes), seed), as_json)


@data.command()
@click.option("--count", type=int, default=200, show_default=True, help="How many pictures.")
@click.option("--size", type=int, default=64, show_default=True, help="Pixels on each side.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the pictures and of the splits."
)
@click.option(
    "--by-colour", is_flag=True, help="Each kind of solid in a colour of its own, as in the demo."
)
@click.option(
    "--montage", metavar="FILE.png", help="Also draw the first pictures with all their labels."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
def scenes(
    count: int, size: int, seed: int, by_colour: bool, montage: str | None, as_json: bool
) -> None:
    """The built-in scenes: solids in a room, six tasks, all labels exact.

    \b
    Example:  allot data scenes --montage scenes.png
    """
    from allotment.data.scenes import make_scenes
    from allotment.data.scenes import montage as draw_montage
    from allotment.data.summary import describe

    made = make_scenes(count, size, seed, by_colour)
    summary = describe(made, seed)
    if montage is not None:
        from PIL import Image

        Image.fromarray(draw_montage(made, range(min(8, made.size)))).save(montage, "PNG")
    show_summary(summary, as_json)


def folder(command: Callable[..., None]) -> Callable[..., None]:
    """What the commands for folders of images have in common."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="JSON, for machines."),
        click.option(
            "--montage", metavar="FILE.png", help="Also draw some images with all their labels."
        ),
        click.option(
            "--thorough", is_flag=True, help="Decode every file and say all that is broken."
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="Of the splits."),
        click.option(
            "--side",
            type=int,
            default=128,
            show_default=True,
            help="Pixels of the squares to train on.",
        ),
        click.argument("root", metavar="FOLDER"),
    ):
        command = option(command)
    return command


@data.command()
@folder
def voc(
    root: str, side: int, seed: int, thorough: bool, montage: str | None, as_json: bool
) -> None:
    """PASCAL VOC with its masks: the folder that holds JPEGImages.

    \b
    Example:  allot data voc VOCdevkit/VOC2012 --thorough
    """
    from allotment.data.voc import read_voc

    _show_folder(read_voc(root, side, thorough=thorough), seed, montage, as_json)


@data.command()
@folder
def taskonomy(
    root: str, side: int, seed: int, thorough: bool, montage: str | None, as_json: bool
) -> None:
    """Taskonomy: the folder that holds rgb and the other domains.

    \b
    Example:  allot data taskonomy taskonomy-tiny --montage look.png
    """
    from allotment.data.taskonomy import read_taskonomy

    _show_folder(read_taskonomy(root, side, thorough=thorough), seed, montage, as_json)


def _show_folder(read: FolderData, seed: int, montage: str | None, as_json: bool) -> None:
    from allotment.data.folder import montage as draw_montage
    from allotment.data.summary import describe

    summary = describe(read, seed)
    if montage is not None:
        from PIL import Image

        spread = range(0, read.size, -(-read.size // 6))
        Image.fromarray(draw_montage(read, spread)).save(montage, "PNG")
    show_summary(summary, as_json)


def _pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` in parts; a name may hold an equals sign itself."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} {text!r} is not NAME=VALUE.")
        if name in pairs:
            raise click.UsageError(f"{option} is given twice for {name!r}.")
        pairs[name] = value
    return pairs
