"""Commands that plan: `plan`, `frontier`, `score`, `cheapest`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.group import INFEASIBLE, say
from allotment.cli.inputs import Asked, Given, takes_problem
from allotment.cli.output import formats, print_csv, print_json

if TYPE_CHECKING:  # at run time each command loads what it needs, so that --help waits for nothing
    from allotment.campaign.goals import Goal
    from allotment.frontiers import Stop
    from allotment.plan import Plan
    from allotment.problem import Problem
    from allotment.terminal import Page
    from allotment.worth import Worth

FRONTIER_ROWS = 20
"""rows of a frontier on a terminal, unless another number is asked for"""


@click.command()
@takes_problem
@click.option(
    "--ranges/--no-ranges",
    default=None,
    help="How far counts and prices can move. [default: up to 12 tasks]",
)
@click.option(
    "--stop",
    is_flag=True,
    help="Leave unspent what would buy labels that cost more than they bring; point_worth in the"
    " file says what a point of gain is worth.",
)
@formats
def plan(given: Given, ranges: bool | None, form: str) -> None:
    """The best purchase for the budget, and why.

    It takes a problem file or the folder of a campaign, whose plan is for the money that is left.

    \b
    Example:  allot plan problem.toml --budget 9300
              allot plan my-campaign
              allot plan my-campaign --stop
    """
    from allotment.campaign.departure import find_departure
    from allotment.estimates.forecast import describe_forecasts
    from allotment.overview import describe_plan, list_tasks, shows_ranges
    from allotment.terminal.page import Page
    from allotment.terminal.plans import show_plan, show_ranges

    stop = given.find_stop()
    best = _find_best(given, stop)
    if form == "json":
        more: dict[str, Any] = {}
        if given.asked is not None:
            more["tranche"] = given.asked.proposal.tranche.to_dict()
            more["standing"] = best.standing
            more["stale"] = given.asked.state.stale
            more["scores"] = describe_forecasts(given.asked.proposal.forecasts)
            if (prospect := given.asked.proposal.prospect) is not None:
                more["prospect"] = prospect.to_dict()
            if (departure := find_departure(best)) is not None:
                more["departure"] = departure.to_dict()
        if stop is not None:
            more["stop"] = stop.to_dict()
        print_json(describe_plan(best, ranges) | more | _note(given))
    elif form == "csv":
        rows = list_tasks(best, ranges)
        _warn(given, best)
        if stop is not None:
            say(f"note: {stop.say(given.stops)}", err=True)
        print_csv(rows[0], (row.values() for row in rows))
    else:
        page, worth = Page(), given.worth
        _show_stale(page, given)
        forecasts = {} if given.asked is None else given.asked.proposal.forecasts
        show_plan(page, best, given.neutral, worth, forecasts)
        if shows_ranges(best, ranges):
            show_ranges(page, best)
        is_file = given.asked is None
        show_beside(page, best, given.neutral, is_file, "--json has them", worth)
        if is_file and stop is not None:
            page.text(f"{stop.say(given.stops)}.")
        if given.asked is not None:
            from allotment.settings.settings import quote
            from allotment.terminal.campaigns import show_proposal

            show_proposal(
                page, given.asked.proposal, quote(given.asked.folder), given.asked.what_if
            )
    if given.asked is not None and not given.asked.what_if:
        _record(given.asked)


def _find_best(given: Given, stop: Stop | None) -> Plan:
    """The plan for all of the money, or for as much of it as is to be spent."""
    import allotment as al

    if given.asked is not None:
        return given.asked.proposal.plan
    if not given.stops or stop is None:
        return al.allocate(given.problem, given.gains)
    stop.check()
    return stop.plan


def _show_stale(page: Page, given: Given) -> None:
    if given.asked is not None:
        from allotment.terminal.campaigns import show_stale

        show_stale(page, given.asked.state.stale)


def _record(asked: Asked) -> None:
    """Keep a campaign's plan, and say so where that is not possible."""
    if why := asked.campaign.try_to_record(asked.proposal):
        say(f"note: the plan is not put on record: {why}", err=True)


def show_beside(
    page: Page,
    best: Plan,
    neutral: bool,
    verdict: bool = True,
    elsewhere: str = "",
    worth: Worth | None = None,
) -> None:
    """The best plan beside the baselines, as a table and, unless something surer will be said, in a
    sentence."""
    from allotment.overview import compare_few
    from allotment.terminal.plans import show_comparison, show_verdict
    from allotment.worth import GIVEN_WORTH

    comparison = compare_few(best)
    show_comparison(page, comparison, "What one might do instead", elsewhere, worth or GIVEN_WORTH)
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

        page = Page()
        _show_stale(page, given)
        show_frontier(page, budgets, values, counts, given.neutral, given.worth)


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
        page = Page()
        _show_stale(page, given)
        show_score(page, comparison, yours, left_out, given.neutral, given.worth)
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
@click.option(
    "--reach",
    multiple=True,
    metavar="TASK[:METRIC]=SCORE",
    help="Of a campaign: the score that a task is to have, in its own metric. Repeatable.",
)
@click.option(
    "--chance",
    metavar="SHARE",
    help="With which each --reach is reached, 0.5 to 0.99, such as 0.9 or 90%. [default: what is"
    " expected in the middle]",
)
@click.option(
    "--gain",
    type=float,
    metavar="PERCENT",
    help="Of a campaign: the gain in % of the score, in the mean over tasks or of --task.",
)
@click.option("--target", type=float, metavar="VALUE", help="Of a file: the value to reach.")
@click.option("--task", metavar="NAME", help="Reach --gain or --target with this task alone.")
@formats
def cheapest(
    given: Given,
    reach: tuple[str, ...],
    chance: str | None,
    gain: float | None,
    target: float | None,
    task: str | None,
    form: str,
) -> None:
    """The least money that reaches a target, and what it buys.

    \b
    Example:  allot cheapest my-campaign --reach heating:r2=0.8 --reach seg=0.6
              allot cheapest my-campaign --reach seg=0.6 --chance 0.9
              allot cheapest my-campaign --gain 5
              allot cheapest problem.toml --target 1000
              allot cheapest problem.toml --target 200 --task seg
    """
    from allotment.overview import list_tasks

    _check_wanted(given, reach, chance, gain, target)
    goals = _read_goals(given, reach, chance)
    least, what = _find_least(given, goals, gain, target, task)
    forecasts, reached = {}, []
    if given.asked is not None:
        state = given.asked.state
        forecasts = state.forecast(least.counts)
        reached = [goal.describe(state, least.counts) for goal in goals]
    if form == "json":
        from allotment.estimates.forecast import describe_forecasts

        about = least.to_dict() | {"tasks": list_tasks(least, ranges=False)}
        scores = {"scores": describe_forecasts(forecasts)} if forecasts else {}
        print_json(about | scores | ({"goals": reached} if reached else {}) | _note(given))
    elif form == "csv":
        rows = list_tasks(least, ranges=False)
        if chance is not None:
            rows = _add_reached(rows, reached)
        _warn(given, least)
        print_csv(rows[0], (row.values() for row in rows))
    else:
        from allotment.terminal.page import Page
        from allotment.terminal.plans import show_cheapest

        page, budget = Page(), given.problem.budget
        _show_stale(page, given)
        show_cheapest(page, least, what, budget, given.neutral, given.worth, forecasts)


def _check_wanted(
    given: Given,
    reach: tuple[str, ...],
    chance: str | None,
    gain: float | None,
    target: float | None,
) -> None:
    """That what is wanted can be wanted of a file, or of a campaign."""
    what = ""
    if given.asked is None:
        if target is None:
            what = "Missing option '--target', the value to reach."
        elif reach or gain is not None:
            what = "--reach and --gain are for campaigns, which have scores."
        elif chance is not None:
            what = "--chance is for campaigns: it goes with --reach, and a file has no scores."
    elif target is not None:
        what = (
            "Of a campaign, targets are scores: --reach TASK=SCORE; a relative gain in % is --gain."
        )
    elif bool(reach) == (gain is not None):
        what = "Give --reach TASK=SCORE, or else --gain PERCENT."
    elif chance is not None and gain is not None:
        what = "--chance goes with --reach TASK=SCORE; a gain is asked for in the mean."
    if what:
        raise click.UsageError(what)


def _read_goals(given: Given, reach: tuple[str, ...], chance: str | None) -> list[Goal]:
    """The scores that are to be reached, of a campaign."""
    if given.asked is None:
        return []
    from allotment.campaign.goals import parse_chance, parse_goals

    share = None if chance is None else parse_chance(chance)
    return parse_goals(given.asked.state, reach, share)


def _add_reached(
    rows: list[dict[str, Any]], reached: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Beside each task its goal, the chance, and the score that is reached with it; nothing where
    it has none."""
    found = {goal["task"]: goal for goal in reached}
    columns = {"goal": "score", "chance": "chance", "reached": "reached"}
    return [
        row | {head: found.get(row["task"], {}).get(key) for head, key in columns.items()}
        for row in rows
    ]


def _find_least(
    given: Given,
    goals: Sequence[Goal],
    gain: float | None,
    target: float | None,
    task: str | None,
) -> tuple[Plan, str]:
    """The plan for what is wanted, and that in words."""
    import allotment as al
    from allotment.formatting import number

    if given.asked is None:
        assert target is not None
        least = al.cheapest(given.problem, given.gains, target, task)
        if task is None:
            return least, f"a value of {number(least.value)}"
        return least, f"a gain of {number(least.own_gains[task])} for {task}"
    if goals:
        from allotment.campaign.goals import reach, tell_goals

        plan = reach(given.asked.state, given.asked.proposal, goals)
        return plan, tell_goals(given.asked.state, goals)
    assert gain is not None
    if not given.worth.unit:
        raise click.UsageError("Nothing is measured yet, so that no gain can be asked for.")
    wanted = gain if task is not None else gain * given.worth.divisor
    least = al.cheapest(given.problem, given.gains, wanted, task)
    of = given.worth.say(least.value) if task is None else f"a gain of {gain:g} % for {task}"
    return least, of


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
