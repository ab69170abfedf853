"""The command `allot`: each command is one call of the library, shown as a table, as JSON or as CSV."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

import click

from allotment import __version__

if TYPE_CHECKING:  # at run time each command loads what it needs, so that --help waits for nothing
    from allotment.budgets import Frontier
    from allotment.document import Document
    from allotment.errors import InputError
    from allotment.gains import Curve
    from allotment.plan import Comparison, Plan, Score
    from allotment.problem import Problem

INFEASIBLE, BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141
POINTS = 20
EXAMPLES = {
    "voc": "PASCAL VOC: class labels at 1, segmentation masks at 20",
    "taskonomy": "Taskonomy: five tasks on indoor scenes",
}

Function = TypeVar("Function", bound=Callable[..., Any])


class Allot(click.Group):
    """Lists commands in their written order; says errors in lines on stderr, never in a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough, as in `allot frontier x --csv | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        from allotment.errors import AllotmentError, Infeasible

        sys.stdout = sys.stdout or io.StringIO()  # it is None where the shell closed it with >&-
        for stream in (sys.stdout, sys.stderr):
            # a name that the terminal can't show is no reason to fail
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(*args, **kwargs | {"prog_name": "allot", "standalone_mode": False})
            sys.exit(code if isinstance(code, int) else 0)
        except click.exceptions.Abort:
            sys.exit(INTERRUPTED)
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "allot"
            _fail([f"{error.format_message()} See {where} --help"], BAD_INPUT)
        except Infeasible as error:
            _fail(error.clashes, INFEASIBLE)
        except AllotmentError as error:
            _fail(str(error).split("\n"), BAD_INPUT)
        except OSError as error:
            _fail([f"{error.strerror or error}"], BAD_INPUT)


def _fail(lines: Iterable[str], code: int) -> NoReturn:
    for line in lines:
        click.echo(f"error: {line}", err=True)
    sys.exit(code)


@click.group(cls=Allot, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="allot", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """How many labels of each task to buy with a labelling budget.

    \b
    Start with:  allot example > problem.toml
                 allot plan problem.toml
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


# --- what commands share ---


class Given(NamedTuple):
    """A problem as the command line gives it; `neutral` if it came without gains."""

    problem: Problem
    gains: dict[str, Curve]
    neutral: bool


def formats(command: Function) -> Function:
    """Adds --json and --csv; the command gets `form`: json, csv or table."""

    @click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
    @click.option("--csv", "as_csv", is_flag=True, help="CSV, for spreadsheets.")
    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, as_csv: bool, **kwargs: Any) -> Any:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv exclude each other.")
        return command(*args, form="json" if as_json else "csv" if as_csv else "table", **kwargs)

    return wrapped  # type: ignore[return-value]


def takes_problem(command: Function) -> Function:
    """Adds PROBLEM, --budget and --count-implied; the command gets `given`."""

    @click.argument("path", metavar="PROBLEM.toml")
    @click.option("--budget", metavar="MONEY", help="Instead of the file's budget.")
    @click.option("--count-implied", is_flag=True, help="Count implied labels in the curve of their task.")
    @functools.wraps(command)
    def wrapped(*args: Any, path: str, budget: str | None, count_implied: bool, **kwargs: Any) -> Any:
        return command(*args, given=_given(path, budget, count_implied), **kwargs)

    return wrapped  # type: ignore[return-value]


def _given(path: str, budget: str | None = None, count_implied: bool = False) -> Given:
    import allotment as al

    try:
        document = _read(path)
    except al.InputError as error:
        _fail(_located(error, path), BAD_INPUT)
    problem = document.problem
    if budget is not None:
        problem = problem.with_budget(budget)
    if count_implied:
        problem = al.Problem(problem.tasks, problem.budget, problem.caps, count_implied=True)
    gains = document.gains
    return Given(problem, al.neutral_gains(problem) if gains is None else gains, gains is None)


def _read(path: str) -> Document:
    from allotment.document import LARGEST_FILE, parse_problem, read_problem
    from allotment.errors import InputError, Mistake

    if path != "-":
        return read_problem(path)
    data, source = b"", cast(io.BufferedReader, sys.stdin.buffer) if sys.stdin else io.BytesIO()
    while len(data) <= LARGEST_FILE and (piece := source.read1(2**20)):  # Ctrl-C is seen between two pieces
        data += piece
    if len(data) > LARGEST_FILE:
        raise InputError([Mistake("", f"has more than {LARGEST_FILE // 10**6} MB; is it the right file?")])
    try:
        return parse_problem(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError([Mistake("", "is not UTF-8 text; save it as UTF-8", line)]) from None


def _located(error: InputError, path: str) -> list[str]:
    """Its mistakes as `file:line: key: what`, which editors can jump to."""
    lines = []
    for mistake in error.mistakes:
        line = "" if mistake.line is None else f":{mistake.line}"
        where = "" if mistake.where in ("", repr(path)) else f"{mistake.where}: "
        lines.append(f"{_file(path)}{line}: {where}{mistake.what}")
    return lines


def _file(path: str) -> str:
    return "<stdin>" if path == "-" else path


def _compare(plan: Plan, yours: Mapping[str, int] | None = None) -> Comparison:
    """The plan beside the baselines, of which there is one for each task only while these are few."""
    import allotment as al
    from allotment.solver.baselines import equal_budget, equal_images
    from allotment.tables import FEW

    problem = plan.problem
    others: dict[str, Mapping[str, int]] = {} if yours is None else {"yours": yours}
    if len(problem.tasks) <= FEW:
        others |= al.baselines(problem)
    else:
        others |= {"equal images": equal_images(problem), "equal budget": equal_budget(problem)}
        others["neutral"] = al.allocate(problem, al.neutral_gains(problem)).counts
    if plan.gains == al.neutral_gains(problem):
        del others["neutral"]
    return plan.compare(others)


def _warn(given: Given, plan: Plan | None = None) -> None:
    """What a spreadsheet has no place for."""
    from allotment.tables import NEUTRAL, number

    if given.neutral:
        click.echo(f"note: {NEUTRAL}", err=True)
    if plan is not None and not plan.exact:
        click.echo(f"note: not proved best: another could be worth up to {number(plan.gap)} more", err=True)


def _note(given: Given) -> dict[str, str]:
    """What JSON says where there are no gains."""
    from allotment.tables import NEUTRAL

    return {"gains": "neutral", "note": NEUTRAL} if given.neutral else {}


def _print_json(plain: Mapping[str, Any], indent: int | None = 2) -> None:
    click.echo(json.dumps(_clean(plain), indent=indent, allow_nan=False))


def _clean(value: Any) -> Any:
    """Only what JSON has: exact money as text, null for a number that is not finite."""
    from allotment.problem import show_exact

    if isinstance(value, Mapping):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if all(type(each) is int for each in value):  # a frontier has a million of them
            return value
        return [_clean(each) for each in value]
    if isinstance(value, Fraction | Decimal):
        return show_exact(Fraction(value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_csv(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(_cell, heads))
    writer.writerows(map(_cell, row) for row in rows)


def _cell(value: Any) -> Any:
    """What no spreadsheet takes for a formula: text that begins like one gets an apostrophe in front."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
    if isinstance(value, Fraction):
        value = Decimal(value.numerator) / value.denominator
    return f"{value:f}" if isinstance(value, Decimal) else value


# --- the commands ---


@main.command()
@takes_problem
@click.option(
    "--ranges/--no-ranges", default=None, help="How far counts and prices can move. [default: up to 12 tasks]"
)
@formats
def plan(given: Given, ranges: bool | None, form: str) -> None:
    """The best purchase for the budget, and why.

    \b
    Example:  allot plan problem.toml --budget 9300
    """
    import allotment as al
    from allotment import tables

    best = al.allocate(given.problem, given.gains)
    ranges = len(best.counts) <= tables.FEW if ranges is None else ranges
    if form == "json":
        beside = [_score_row(row, best.value) for row in _compare(best).rows]
        more = {"why_unspent": best.why_unspent, "tasks": _task_rows(best, ranges), "comparison": beside}
        _print_json(best.to_dict() | more | _note(given))
    elif form == "csv":
        rows = _task_rows(best, ranges)
        _warn(given, best)
        _print_csv(rows[0], (row.values() for row in rows))
    else:
        page = tables.Page()
        tables.show_plan(page, best, given.neutral)
        if ranges:
            tables.show_ranges(page, best)
        _show_beside(page, best, given.neutral)


def _show_beside(page: Any, best: Plan, neutral: bool) -> None:
    from allotment import tables

    comparison = _compare(best)
    tables.show_comparison(page, comparison, "What one might do instead")
    tables.show_verdict(page, comparison, neutral)


def _task_rows(best: Plan, ranges: bool) -> list[dict[str, Any]]:
    """Everything about each task, under the same names in JSON and CSV."""
    rows = []
    own, total = best.own_gains, best.problem.price(best.counts)
    for task in best.problem.tasks:
        money = task.price(best.counts[task.name])
        row = {"task": task.name, "price": task.cost, "have": task.have, "buy": best.counts[task.name]}
        row |= {"money": money, "share": float(money / total) if total else None, "gain": own[task.name]}
        if ranges:
            row["range_low"], row["range_high"] = best.plateau[task.name]
            row["bought_up_to"] = best.break_even[task.name]
        rows.append(row)
    return rows


def _score_row(row: Score, best: float) -> dict[str, Any]:
    return row.to_dict() | {"of_best": row.value / best if best > 0 else None}


@main.command()
@takes_problem
@click.option(
    "--points",
    type=click.IntRange(1),
    help=f"Rows, evenly spread. [default: {POINTS}; all with --json, --csv]",
)
@formats
def frontier(given: Given, points: int | None, form: str) -> None:
    """What every budget up to the file's own would buy.

    \b
    Example:  allot frontier problem.toml --points 10
              allot frontier problem.toml --csv > frontier.csv
    """
    import allotment as al

    curve = al.frontier(given.problem, given.gains)
    everything = form != "table" and points is None
    at = slice(None) if everything else _spread(curve, points or POINTS)
    budgets, values = _budgets(curve)[at].tolist(), curve.values[at].tolist()
    counts = {name: each[at].tolist() for name, each in curve.counts.items()}
    if form == "json":
        plain = {"budgets": budgets, "values": values, "counts": counts, "every_budget": curve.every_budget}
        _print_json(plain | _note(given), indent=None)
    elif form == "csv":
        _warn(given)
        _print_csv(["budget", "value", *counts], zip(budgets, values, *counts.values(), strict=True))
    else:
        from allotment import tables

        tables.show_frontier(tables.Page(), budgets, values, counts, given.neutral)


def _spread(curve: Frontier, points: int) -> Any:
    """Where so many budgets are, as evenly spread as there are any."""
    import numpy as np

    low, high = curve.budgets[0], curve.budgets[-1]
    wanted = low + (high - low) * np.arange(1, points + 1) / points
    return np.unique(np.searchsorted(curve.budgets, wanted * (1 + 1e-12), side="right") - 1)


def _budgets(curve: Frontier) -> Any:
    """The budgets without the rounding of floats: whole numbers, or as many decimals as prices have."""
    whole = curve.problem.unit.denominator == 1
    return curve.budgets.round().astype("int64") if whole else curve.budgets.round(12)


@main.command()
@takes_problem
@click.argument("counts", nargs=-1, required=True, metavar="TASK=COUNT...")
@formats
@click.pass_context
def score(ctx: click.Context, given: Given, counts: tuple[str, ...], form: str) -> None:
    """Your own plan beside the best one, with the limits it breaks.

    \b
    Example:  allot score problem.toml cls=3000 seg=165
    """
    import allotment as al

    named = _parse_counts(given.problem, counts)
    yours = al.score(given.problem, given.gains, named)
    best = replace(al.allocate(given.problem, given.gains), name="best")
    comparison = _compare(best, yours.counts)
    if form == "json":
        beside = [_score_row(row, best.value) for row in comparison.rows]
        _print_json({"yours": _score_row(yours, best.value), "comparison": beside} | _note(given))
    elif form == "csv":
        _warn(given, best)
        _print_csv(
            ["plan", "spent", "value", "of_best", "broken", *yours.counts],
            (
                (row.name, row.spent, row.value, of_best, "; ".join(row.broken), *row.counts.values())
                for row in comparison.rows
                for of_best in [_score_row(row, best.value)["of_best"]]
            ),
        )
    else:
        from allotment import tables

        left_out = [name for name in yours.counts if name not in named]
        tables.show_score(tables.Page(), comparison, yours, left_out, given.neutral)
    ctx.exit(INFEASIBLE if yours.broken else 0)


def _parse_counts(problem: Problem, texts: Iterable[str]) -> dict[str, str]:
    """`cls=2920` in parts; a name may hold an equals sign itself, a count can't."""
    from allotment.errors import InputError, Mistake
    from allotment.plan import check_counts

    counts: dict[str, str] = {}
    mistakes = []
    for text in texts:
        name, equals, count = text.rpartition("=")
        if not equals:
            mistakes.append(Mistake("", f"{text!r} is not TASK=COUNT, such as cls=2920"))
        elif name in counts:
            mistakes.append(Mistake(f"count of {name!r}", "is given twice"))
        else:
            counts[name] = count
    try:
        check_counts(problem, counts)
    except InputError as error:
        mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)
    return counts


@main.command()
@takes_problem
@click.option("--target", type=float, required=True, metavar="VALUE", help="The value to reach.")
@click.option("--task", metavar="NAME", help="Reach it with this task's own gain instead.")
@formats
def cheapest(given: Given, target: float, task: str | None, form: str) -> None:
    """The least money that reaches a target, and what it buys.

    \b
    Example:  allot cheapest problem.toml --target 1000
              allot cheapest problem.toml --target 200 --task seg
    """
    import allotment as al

    least = al.cheapest(given.problem, given.gains, target, task)
    if form == "json":
        _print_json(least.to_dict() | {"tasks": _task_rows(least, ranges=False)} | _note(given))
    elif form == "csv":
        rows = _task_rows(least, ranges=False)
        _warn(given, least)
        _print_csv(rows[0], (row.values() for row in rows))
    else:
        from allotment import tables

        tables.show_cheapest(tables.Page(), least, task, given.problem.budget, given.neutral)


@main.command()
@click.argument("path", metavar="PROBLEM.toml")
@click.pass_context
def check(ctx: click.Context, path: str) -> None:
    """Every mistake in a problem file at once, with its line and key.

    \b
    Example:  allot check problem.toml
    """
    from allotment.errors import Infeasible, InputError
    from allotment.plan import check_limits
    from allotment.solver.model import build
    from allotment.tables import describe

    try:
        document = _read(path)
        if document.gains is not None:
            build(document.problem, document.gains)  # curves that can't be added up
        check_limits(document.problem)
    except InputError as error:
        click.echo("\n".join(_located(error, path)))
        ctx.exit(BAD_INPUT)
    except Infeasible as error:
        click.echo("\n".join(f"{_file(path)}: {clash}" for clash in error.clashes))
        ctx.exit(INFEASIBLE)
    click.echo(f"{_file(path)} is fine: {describe(document.problem, document.gains)}")


@main.command()
@click.argument("name", type=click.Choice(list(EXAMPLES)), default="voc")
def example(name: str) -> None:
    """A commented problem file to start from.

    \b
    Example:  allot example > problem.toml
    """
    click.echo(_example(name), nl=False)


def _example(name: str) -> str:
    from importlib.resources import files

    return (files("allotment") / "examples" / f"{name}.toml").read_text(encoding="utf-8")


@main.command()
def demo() -> None:
    """The paper's two published instances, planned and compared.

    \b
    Example:  allot demo
    """
    import allotment as al
    from allotment.document import parse_problem
    from allotment.tables import Page, show_plan

    page = Page()
    for name, title in EXAMPLES.items():
        document = parse_problem(_example(name))
        best = al.allocate(document.problem, document.gains or {})
        page.title(title)
        page.text()
        show_plan(page, best, neutral=False)
        _show_beside(page, best, neutral=False)
        page.text()
    page.title("Your own")
    page.text("  allot example > problem.toml     a commented file: put in your tasks and prices")
    page.text("  allot plan problem.toml          what to buy")


@main.group(cls=Allot, invoke_without_command=True)
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
@click.option("--target", "targets", multiple=True, metavar="COLUMN", help="A column to predict; tox:* for a prefix.")
@click.option("--kind", "kinds", multiple=True, metavar="NAME=KIND", help="What a target or a feature is.")
@click.option("--classes", multiple=True, metavar="NAME=A|B", help="All classes of a target.")
@click.option("--group", metavar="COLUMN", help="Rows of one group stay in one split.")
@click.option("--id", "id_", metavar="COLUMN", help="Names of the instances.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out.")
@click.option("--delimiter", metavar="CHARACTER", help="Between cells of a CSV file. [default: by its name]")
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
    seed: int,
    as_json: bool,
) -> None:
    """A table: CSV, TSV, Parquet or npz. An empty target cell is a missing label.

    \b
    Kinds of targets:   classification, multilabel, regression
    Kinds of features:  numeric, categorical, text, image
    Example:  allot data table pets.csv --target species --target weight --drop notes
    """
    from allotment.data.table import describe, read_table
    from allotment.errors import InputError

    try:
        read = read_table(
            path,
            targets or None,
            group=group,
            id=id_,
            kinds=_pairs("--kind", kinds),
            classes={name: listed.split("|") for name, listed in _pairs("--classes", classes).items()},
            drop=drop,
            delimiter=delimiter,
        )
    except InputError as error:
        _fail(_located(error, path), BAD_INPUT)
    summary = describe(read, seed)
    if as_json:
        _print_json(summary.to_dict())
    else:
        from allotment import tables

        tables.show_data(tables.Page(), summary)


@data.command()
@click.option("--count", type=int, default=200, show_default=True, help="How many pictures.")
@click.option("--size", type=int, default=64, show_default=True, help="Pixels on each side.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the pictures and of the splits.")
@click.option("--montage", metavar="FILE.png", help="Also draw the first pictures with all their labels.")
@click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
def scenes(count: int, size: int, seed: int, montage: str | None, as_json: bool) -> None:
    """The built-in scenes: solids in a room, six tasks, all labels exact.

    \b
    Example:  allot data scenes --montage scenes.png
    """
    from allotment.data.scenes import make_scenes
    from allotment.data.scenes import montage as draw_montage
    from allotment.data.table import describe

    made = make_scenes(count, size, seed)
    summary = describe(made, seed)
    if montage is not None:
        from PIL import Image

        Image.fromarray(draw_montage(made, range(min(8, made.size)))).save(montage, "PNG")
    if as_json:
        _print_json(summary.to_dict())
    else:
        from allotment import tables

        tables.show_data(tables.Page(), summary)


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


if __name__ == "__main__":
    main()
