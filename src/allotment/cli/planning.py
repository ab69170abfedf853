"""Commands that plan: `plan`, `frontier`, `score`, `cheapest`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.group import INFEASIBLE, say
from allotment.cli.inputs import Asked, Given, takes_problem
from allotment.cli.output import formats, print_csv, print_json

if TYPE_CHECKING:  # at run time each command loads what it needs, so that --help waits for nothing
    from allotment.frontiers import Frontier
    from allotment.plan import Comparison, Plan, Score
    from allotment.problem import Problem
    from allotment.terminal import Page

POINTS = 20


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
    from allotment.terminal.page import FEW, Page
    from allotment.terminal.plans import show_plan, show_ranges

    best = (
        al.allocate(given.problem, given.gains)
        if given.asked is None
        else given.asked.proposal.plan
    )
    ranges = len(best.counts) <= FEW if ranges is None else ranges
    if form == "json":
        beside = [_score_row(row, best.value) for row in _compare(best).rows]
        more: dict[str, Any] = {"why_unspent": best.why_unspent, "tasks": _task_rows(best, ranges)}
        more["comparison"] = beside
        if given.asked is not None:
            more["tranche"] = given.asked.proposal.tranche.to_dict()
            more["standing"] = best.standing
        print_json(best.to_dict() | more | _note(given))
    elif form == "csv":
        rows = _task_rows(best, ranges)
        _warn(given, best)
        print_csv(rows[0], (row.values() for row in rows))
    else:
        page = Page()
        show_plan(page, best, given.neutral)
        if ranges:
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
    """Keep a campaign's plan. Somebody else may be writing, or this user only looking: neither is a
    failure."""
    from allotment.campaign.campaign import Campaign
    from allotment.errors import InputError
    from allotment.ledger.lock import Held

    try:
        Campaign(asked.folder).record(asked.proposal)
    except InputError as error:
        if not isinstance(error, Held) and os.access(asked.folder, os.W_OK):  # a full disk, say
            raise
        say(f"note: the plan is not put on record: {error}", err=True)


def show_beside(
    page: Page, best: Plan, neutral: bool, verdict: bool = True, elsewhere: str = ""
) -> None:
    """The best plan beside the baselines, as a table and, unless something surer will be said, in a
    sentence."""
    from allotment.terminal.plans import show_comparison, show_verdict

    comparison = _compare(best)
    show_comparison(page, comparison, "What one might do instead", elsewhere)
    if verdict:
        show_verdict(page, comparison, neutral)


def _task_rows(best: Plan, ranges: bool) -> list[dict[str, Any]]:
    """Everything about each task, under the same names in JSON and CSV."""
    rows = []
    own, total = best.own_gains, best.problem.price(best.counts)
    for task in best.problem.tasks:
        money = task.price(best.counts[task.name])
        row = {
            "task": task.name,
            "price": task.cost,
            "have": task.have,
            "buy": best.counts[task.name],
        }
        row |= {
            "money": money,
            "share": float(money / total) if total else None,
            "gain": own[task.name],
        }
        if ranges:
            row["range_low"], row["range_high"] = best.plateau[task.name]
            row["bought_up_to"] = best.break_even[task.name]
        rows.append(row)
    return rows


def _score_row(row: Score, best: float) -> dict[str, Any]:
    return row.to_dict() | {"of_best": row.value / best if best > 0 else None}


@click.command()
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
        plain = {
            "budgets": budgets,
            "values": values,
            "counts": counts,
            "every_budget": curve.every_budget,
        }
        print_json(plain | _note(given), indent=None)
    elif form == "csv":
        _warn(given)
        print_csv(["budget", "value", *counts], zip(budgets, values, *counts.values(), strict=True))
    else:
        from allotment.terminal.page import Page
        from allotment.terminal.plans import show_frontier

        show_frontier(Page(), budgets, values, counts, given.neutral)


def _spread(curve: Frontier, points: int) -> Any:
    """Where so many budgets are, as evenly spread as there are any."""
    import numpy as np

    low, high = curve.budgets[0], curve.budgets[-1]
    wanted = low + (high - low) * np.arange(1, points + 1) / points
    return np.unique(np.searchsorted(curve.budgets, wanted * (1 + 1e-12), side="right") - 1)


def _budgets(curve: Frontier) -> Any:
    """The budgets without the rounding of floats: whole numbers, or as many decimals as prices
    have."""
    whole = curve.problem.unit.denominator == 1
    return curve.budgets.round().astype("int64") if whole else curve.budgets.round(12)


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

    named = _parse_counts(given.problem, counts)
    yours = al.score(given.problem, given.gains, named)
    best = replace(al.allocate(given.problem, given.gains), name="best")
    comparison = _compare(best, yours.counts)
    if form == "json":
        beside = [_score_row(row, best.value) for row in comparison.rows]
        print_json({"yours": _score_row(yours, best.value), "comparison": beside} | _note(given))
    elif form == "csv":
        _warn(given, best)
        print_csv(
            ["plan", "spent", "value", "of_best", "broken", *yours.counts],
            (
                (
                    row.name,
                    row.spent,
                    row.value,
                    of_best,
                    "; ".join(row.broken),
                    *row.counts.values(),
                )
                for row in comparison.rows
                for of_best in [_score_row(row, best.value)["of_best"]]
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

    least = al.cheapest(given.problem, given.gains, target, task)
    if form == "json":
        print_json(least.to_dict() | {"tasks": _task_rows(least, ranges=False)} | _note(given))
    elif form == "csv":
        rows = _task_rows(least, ranges=False)
        _warn(given, least)
        print_csv(rows[0], (row.values() for row in rows))
    else:
        from allotment.terminal.page import Page
        from allotment.terminal.plans import show_cheapest

        show_cheapest(Page(), least, task, given.problem.budget, given.neutral)


def _compare(plan: Plan, yours: Mapping[str, int] | None = None) -> Comparison:
    """The plan beside the baselines, of which there is one for each task only while these are
    few."""
    import allotment as al
    from allotment.solver.baselines import equal_budget, equal_images
    from allotment.terminal.page import FEW

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
