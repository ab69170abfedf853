"""Kinds of data on the command line: their names, their keys, and a command to look at each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.group import Allot
from allotment.cli.output import print_json
from allotment.data.source import SOURCES, DataSettings, Source, read_options
from allotment.errors import InputError, Mistake

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset
    from allotment.data.summary import Summary

set_option = click.option(
    "--set",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of the data, as in campaign.toml: --set count=500.",
)


class SourceName(click.ParamType):  # type: ignore[type-arg]
    """The name of a kind of data, built in or installed; looked for when it is given."""

    name = "source"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(SOURCES)}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        if value not in SOURCES:
            is_place = Path(str(value)).exists()
            hint = f" Where the data lie is said by --root {value}." if is_place else ""
            self.fail(f"{SOURCES.tell_unknown(value)}.{hint}", param, ctx)
        return str(value)


class DataGroup(Allot):
    """A command for each kind of data: those that are written for it, and one for each other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys([*self.commands, *SOURCES]))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self.commands or name not in SOURCES:
            return super().get_command(ctx, name)
        return _make_command(name)


def _make_command(name: str) -> click.Command:
    """A command that looks at such data; where their package is broken, one that says so."""
    try:
        source = SOURCES.load(name)
    except InputError as error:
        broken = error

        def refuse() -> None:
            raise broken

        return click.Command(name, callback=refuse, help=error.mistakes[0].what)

    def look(
        options: tuple[str, ...],
        seed: int,
        as_json: bool,
        root: str | None = None,
        targets: tuple[str, ...] = (),
    ) -> None:
        from allotment.data.summary import describe

        given = DataSettings(
            read_options(source, read_settings(options)),
            None if root is None else Path(root),
            {name: {} for name in targets},
        )
        show_summary(describe(_open(source, given), seed), as_json)

    options = [
        set_option,
        click.option("--seed", type=int, default=0, show_default=True, help="Of the splits."),
        click.option("--json", "as_json", is_flag=True, help="JSON, for machines."),
    ]
    if not source.tasks:
        options.insert(
            0, click.option("--target", "targets", multiple=True, metavar="NAME", help="A task.")
        )
    if source.root:
        options.insert(0, click.argument("root", metavar="PATH"))
    for option in reversed(options):
        look = option(look)
    return click.command(name, help=_describe(source))(look)


def _describe(source: Source) -> str:
    """One sentence, what PATH is, and the keys."""
    lines = [source.about, ""]
    if source.root:
        lines += [f"PATH is {source.root}.", ""]
    if source.keys:
        lines += ["\b", "Keys:"]
        width = max(len(key.name) for key in source.keys)
        for key in source.keys:
            usual = "" if key.initial is None else f" [{key.initial}]"
            lines.append(f"  {key.name:<{width}}  {key.comment}{usual}")
    return "\n".join(lines)


def _open(source: Source, given: DataSettings) -> Dataset:
    if given.root is not None and not given.root.exists():
        what = "there is no such file or folder; check the path"
        raise InputError([Mistake(repr(str(given.root)), what)])
    with SOURCES.calling(source.name):
        if found := source.check(given):
            raise InputError(mistake for _, mistake in found)
        return source.open(given)


def read_settings(texts: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` in parts; a value may hold an equals sign itself."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set {text!r} is not KEY=VALUE, such as --set count=500.")
        if key.strip() in found:
            raise click.UsageError(f"--set is given twice for {key.strip()!r}.")
        found[key.strip()] = value
    return found


def show_summary(summary: Summary, as_json: bool) -> None:
    """What is in a data set, as a table or for machines."""
    if as_json:
        print_json(summary.to_dict())
        return
    from allotment.terminal.datasets import show_data
    from allotment.terminal.page import Page

    show_data(Page(), summary)
