"""Commands that plan: `plan`, `frontier`, `score`, `cheapest`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.group import INFEASIBLE, say
from allotment.cli.inputs import Asked, Given, takes_problem
from allotment.cli.output import formats, print_csv, print_json

if TYPE_CHECKING:  # at run time each command loads what it needs, so that --help waits for nothing
    from allotment.plan import Plan
    from allotment.problem import Problem
    from allotment.terminal import Page

FRONTIER_ROWS = 20
"""rows of a frontier on a terminal, unless another number is asked for"""


@click.command()
@takes_problem
@click.option(
    "--ranges/--no-ranges",
    default=None,
    help="How far counts and prices can move. [default: up to 12 tasks]",
)
@formats
def plan(given: Given, ranges: bool | None, form: str) -> None:
    """The best purchase for the budget, and why.

    It takes a problem file or the folder of a campaign, whose plan is for the money that is left.

    \b
    Example:  allot plan problem.toml --budget 9300
              allot plan my-campaign
    """
    import allotment as al
    from allotment.overview import describe_plan, list_tasks, shows_ranges
    from allotment.terminal.page import Page
    from allotment.terminal.plans import show_plan, show_ranges

    best = (
        al.allocate(given.problem, given.gains)
        if given.asked is None
        else given.asked.proposal.plan
    )
    if form == "json":
        more: dict[str, Any] = {}
        if given.asked is not None:
            more["tranche"] = given.asked.proposal.tranche.to_dict()
            more["standing"] = best.standing
        print_json(describe_plan(best, ranges) | more | _note(given))
    elif form == "csv":
        rows = list_tasks(best, ranges)
        _warn(given, best)
        print_csv(rows[0], (row.values() for row in rows))
    else:
        page = Page()
        show_plan(page, best, given.neutral)
        if shows_ranges(best, ranges):
            show_ranges(page, best)
        show_beside(page, best, given.neutral, given.asked is None, "--json has them")
        if given.asked is not None:
            from allotment.settings.settings import quote
            from allotment.terminal.campaigns import show_proposal

            show_proposal(
                page, given.asked.proposal, quote(given.asked.folder), given.asked.what_if
            )
    if given.asked is not None and not given.asked.what_if:
        _record(given.asked)


def _record(asked: Asked) -> None:
    """Keep a campaign's plan, and say so where that is not possible."""
    if why := asked.campaign.try_to_record(asked.proposal):
        say(f"note: the plan is not put on record: {why}", err=True)


def show_beside(
    page: Page, best: Plan, neutral: bool, verdict: bool = True, elsewhere: str = ""
) -> None:
    """The best plan beside the baselines, as a table and, unless something surer will be said, in a
    sentence."""
    from allotment.overview import compare_few
    from allotment.terminal.plans import show_comparison, show_verdict

    comparison = compare_few(best)
    show_comparison(page, comparison, "What one might do instead", elsewhere)
    if verdict:
        show_verdict(page, comparison, neutral)


@click.command()
@takes_problem
@click.option(
    "--points",
    type=click.IntRange(1),
    help=f"Rows, evenly spread. [default: {FRONTIER_ROWS}; all with --json, --csv]",
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
    plain = curve.to_dict(None if everything else points or FRONTIER_ROWS)
    budgets, values, counts = plain["budgets"], plain["values"], plain["counts"]
    if form == "json":
        print_json(plain | _note(given), indent=None)
    elif form == "csv":
        _warn(given)
        print_csv(["budget", "value", *counts], zip(budgets, values, *counts.values(), strict=True))
    else:
        from allotment.terminal.page import Page
        from allotment.terminal.plans import show_frontier

        show_frontier(Page(), budgets, values, counts, given.neutral)


@click.command()
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
    from allotment.overview import compare_few, describe_score

    named = _parse_counts(given.problem, counts)
    yours = al.score(given.problem, given.gains, named)
    best = replace(al.allocate(given.problem, given.gains), name="best")
    comparison = compare_few(best, yours.counts)
    rows = [describe_score(row, best.value) for row in comparison.rows]
    if form == "json":
        about = {"yours": describe_score(yours, best.value), "comparison": rows}
        print_json(about | _note(given))
    elif form == "csv":
        _warn(given, best)
        print_csv(
            ["plan", "spent", "value", "of_best", "broken", *yours.counts],
            (
                (
                    row["name"],
                    row["spent"],
                    row["value"],
                    row["of_best"],
                    "; ".join(row["broken"]),
                    *row["counts"].values(),
                )
                for row in rows
            ),
        )
    else:
        from allotment.terminal.page import Page
        from allotment.terminal.plans import show_score

        left_out = [name for name in yours.counts if name not in named]
        show_score(Page(), comparison, yours, left_out, given.neutral)
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


@click.command()
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
    from allotment.overview import list_tasks

    least = al.cheapest(given.problem, given.gains, target, task)
    if form == "json":
        print_json(least.to_dict() | {"tasks": list_tasks(least, ranges=False)} | _note(given))
    elif form == "csv":
        rows = list_tasks(least, ranges=False)
        _warn(given, least)
        print_csv(rows[0], (row.values() for row in rows))
    else:
        from allotment.terminal.page import Page
        from allotment.terminal.plans import show_cheapest

        show_cheapest(Page(), least, task, given.problem.budget, given.neutral)


def _warn(given: Given, plan: Plan | None = None) -> None:
    """What a spreadsheet has no place for."""
    from allotment.formatting import number
    from allotment.terminal.plans import NEUTRAL

    if given.neutral:
        say(f"note: {NEUTRAL}", err=True)
    if plan is not None and not plan.exact:
        say(
            f"note: not proved best: another could be worth up to {number(plan.gap)} more", err=True
        )


def _note(given: Given) -> dict[str, Any]:
    """What JSON says where the gains are the neutral ones."""
    from allotment.terminal.plans import NEUTRAL

    return {"neutral": True, "note": NEUTRAL} if given.neutral else {}
