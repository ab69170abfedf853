"""Plans for people: what to buy, how firm that is, and what else one might do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from allotment.amounts import exact, show
from allotment.estimates.forecast import Forecast
from allotment.formatting import (
    amounts,
    number,
    numbers,
    percent,
    rounded,
    several,
)
from allotment.gains import Curve
from allotment.learners.metrics import title_metric
from allotment.plan import Comparison, Plan, Score
from allotment.problem import Problem, Task
from allotment.terminal.page import (
    MOST_LIST_LINES,
    MOST_ROWS,
    MOST_SIDE_BY_SIDE,
    Page,
    TextColumn,
    shorten,
)
from allotment.worth import GIVEN_WORTH, Worth

NEUTRAL = (
    "The file gives no gains, so this is the neutral plan: every task is taken to be worth the"
    " same, and a label the less the more of its kind there are. To plan with what labels are worth"
    " to you, write a [task.gain] below each [[task]]; `allot example` shows how."
)

BOTH = "--csv and --json have them"


def show_neutral(page: Page) -> None:
    """That the file has no gains, and what that means."""
    page.text(f"Note: {NEUTRAL}")
    page.text()


def show_plan(
    page: Page,
    plan: Plan,
    neutral: bool,
    worth: Worth = GIVEN_WORTH,
    forecasts: Mapping[str, Forecast] | None = None,
) -> None:
    """What to buy, what it costs and is worth, and what is left."""
    if neutral:
        show_neutral(page)
    page.table(_purchase(plan, worth, forecasts or {}))
    if forecasts:
        page.text(explain_forecasts())
    if hidden := _shown(plan)[1]:
        page.text(
            f"(The {MOST_ROWS} that get most of {len(hidden) + MOST_ROWS} tasks; --csv has them"
            " all.)"
        )
    page.text()
    spent = plan.problem.price(plan.counts)
    message = f"Spent {show(spent)} of {show(plan.problem.budget)}"
    if worth.head:
        most = ", the most that these limits allow" if plan.exact else ""
        message += f" for {worth.say(plan.value)}{most}"
    if worth == GIVEN_WORTH:
        message += f". The next unit of money is worth {number(plan.money_worth)}"
    page.text(f"{message}.")
    if not plan.exact:
        share = f" ({percent(plan.gap / plan.value)})" if plan.value > 0 else ""
        page.text(
            f"It is not proved best: another plan could be worth up to {number(plan.gap)}{share}"
            " more."
        )
    if plan.unspent:
        page.text(f"Unspent: {show(plan.problem.budget - spent)}, because")
        for reason in plan.why_unspent[:MOST_LIST_LINES]:
            page.text(f"  {reason}", indent="    ")
        if len(plan.why_unspent) > MOST_LIST_LINES:
            page.text(
                f"  and {len(plan.why_unspent) - MOST_LIST_LINES} more tasks, which --json lists"
            )


def explain_forecasts() -> str:
    """What the spans beside scores are."""
    return (
        "Scores: of a model trained on these labels, on instances like those at hand; nine of ten"
        " such models lie between the two in brackets."
    )


def _purchase(
    plan: Plan, worth: Worth = GIVEN_WORTH, forecasts: Mapping[str, Forecast] | None = None
) -> list[TextColumn]:
    tasks, others = _shown(plan)
    own, total = plan.own_gains, plan.problem.price(plan.counts)
    money = [task.price(plan.counts[task.name]) for task in tasks]
    bought = [plan.counts[task.name] for task in tasks]
    gains = [own[task.name] for task in tasks]
    names, weights = [task.name for task in tasks], [number(task.weight) for task in tasks]
    prices, fees, have = (
        [_price(task) for task in tasks],
        amounts([task.fee for task in tasks]),
        _texts(tasks, "have"),
    )
    if others:
        names.append(f"({len(others)} more tasks)")
        money.append(sum((task.price(plan.counts[task.name]) for task in others), Fraction(0)))
        bought.append(sum(plan.counts[task.name] for task in others))
        gains.append(math.fsum(own[task.name] for task in others))
        for cells in (weights, prices, fees, have):
            cells.append("")
    columns = [
        TextColumn("task", names, "name"),
        TextColumn("price", prices),
        TextColumn("have", have),
    ]
    if any(task.fee for task in plan.problem.tasks):
        columns.insert(2, TextColumn("fee", fees))
    if any(task.weight != 1 for task in plan.problem.tasks):
        columns.insert(1, TextColumn("weight", weights))
    return [
        *columns,
        TextColumn("buy", list(map(str, bought))),
        TextColumn("money", amounts(money)),
        TextColumn("share", [percent(float(each / total)) if total else "-" for each in money]),
        *_expected(names, gains, worth, forecasts or {}),
    ]


def _expected(
    names: Sequence[str],
    gains: Sequence[float],
    worth: Worth,
    forecasts: Mapping[str, Forecast],
) -> list[TextColumn]:
    """What each task scores now and then; its gain where nothing is known of scores."""
    if forecasts:
        return list_forecasts([forecasts.get(name) for name in names])
    if worth == GIVEN_WORTH:
        return [TextColumn("gain", numbers(gains))]
    if not worth.head:
        return []
    return [TextColumn("own gain", replace(worth, divisor=1.0).list_cells(gains))]


def list_forecasts(found: Sequence[Forecast | None]) -> list[TextColumn]:
    """Metric, score now and score with the plan, one row for each task."""
    metrics, now, after = [], [], []
    for each in found:
        metrics.append("" if each is None else title_metric(each.metric))
        now.append("-" if each is None else each.now.say(each.places))
        after.append("-" if each is None else each.after.say(each.places))
    return [
        TextColumn("metric", metrics, "word"),
        TextColumn("now", now, "word"),
        TextColumn("with the plan", after, "word"),
    ]


def _shown(plan: Plan) -> tuple[list[Task], list[Task]]:
    """The tasks that get a row, and the others, which cost less, if there are too many."""
    tasks = list(plan.problem.tasks)
    if len(tasks) <= MOST_ROWS + 5:
        return tasks, []
    tasks.sort(key=lambda task: -task.price(plan.counts[task.name]))
    return tasks[:MOST_ROWS], tasks[MOST_ROWS:]


def _price(task: Task) -> str:
    if not task.tiers:
        return show(task.cost)
    return (
        f"{show(task.cost)} {'then' if len(task.tiers) == 1 else '...'} {show(task.tiers[-1][1])}"
    )


def _texts(tasks: Iterable[Task], key: str) -> list[str]:
    return [str(getattr(task, key)) for task in tasks]


def show_ranges(page: Page, plan: Plan) -> None:
    """How far each count and each price can move."""
    tasks, others = _shown(plan)
    low, high = zip(*(plan.plateau[task.name] for task in tasks), strict=True)
    wide = max(len(str(each)) for each in high)
    page.text()
    page.title("How firm this is")
    page.table(
        [
            TextColumn("task", [task.name for task in tasks], "name"),
            TextColumn("buy", [str(plan.counts[task.name]) for task in tasks]),
            TextColumn(
                "1 % range", [f"{a} to {b:>{wide}}" for a, b in zip(low, high, strict=True)]
            ),
            TextColumn("price", [_price(task) for task in tasks]),
            TextColumn("bought up to", [rounded(plan.break_even[task.name]) for task in tasks]),
        ]
    )
    if others:
        page.text(f"({len(others)} more tasks; --csv and --json have them.)")
    page.text()
    page.text(
        "1 % range: what each count can be in plans worth at least 99 % of this one. "
        "Bought up to: the price of one label above which none is bought."
    )


def show_comparison(
    page: Page,
    comparison: Comparison,
    title: str = "",
    elsewhere: str = "",
    worth: Worth = GIVEN_WORTH,
) -> None:
    """Plans side by side, and the limits that some of them break; `elsewhere` is where all counts
    are."""
    rows, best = comparison.rows, comparison.rows[0]
    spent = amounts([Fraction(row.spent).limit_denominator(10**12) for row in rows])
    columns = [
        TextColumn(
            "plan", ["this plan" if row.name == "plan" else row.name for row in rows], "name"
        ),
        *_count_columns({name: [row.counts[name] for row in rows] for name in best.counts}),
    ]
    if title and all(row.spent == best.spent for row in rows):
        title += f" with the same {spent[0]}"
    else:
        columns.append(TextColumn("spent", spent))
    if worth.head:
        shares = [percent(row.value / best.value) if best.value > 0 else "-" for row in rows]
        columns += [
            TextColumn(worth.head, worth.list_cells([row.value for row in rows])),
            TextColumn("of best", shares),
        ]
    if title:
        page.text()
        page.title(title)
    page.table(columns, elsewhere)
    if any(row.name == "neutral" for row in rows):
        page.text("(neutral: the best plan if every task were worth the same)")
    broken = [f"{row.name} breaks {limit}" for row in rows for limit in row.broken]
    if broken:
        page.text()
    for line in broken:
        page.text(line, indent="  ")


def _count_columns(counts: Mapping[str, Sequence[int]]) -> list[TextColumn]:
    if len(counts) > MOST_SIDE_BY_SIDE:
        return []
    return [TextColumn(name, list(map(str, each)), "task") for name, each in counts.items()]


def show_verdict(page: Page, comparison: Comparison, neutral: bool) -> None:
    """The comparison in one sentence."""
    named = {row.name: row for row in comparison.rows[1:]}
    parts = [
        f"{_more(comparison.rows[0].value, named[name].value)} {name}"
        for name in ("equal budget", "equal images")
        if name in named and not named[name].broken
    ]
    if parts:
        subject = "If every task is worth the same, this plan" if neutral else "This plan"
        page.text()
        page.text(f"{subject} is worth {' and '.join(parts)}.")


def _more(value: float, other: float) -> str:
    if abs(value - other) <= 1e-9 * max(abs(value), abs(other)):
        return "as much as"
    word = "more" if value > other else "less"
    if other <= 0:
        return f"{number(abs(value - other))} {word} than"
    if value >= 10 * other:
        return f"{number(round(value / other))} times as much as"
    return f"{percent(abs(value / other - 1))} {word} than"


def show_score(
    page: Page,
    comparison: Comparison,
    yours: Score,
    left_out: Sequence[str],
    neutral: bool,
    worth: Worth = GIVEN_WORTH,
) -> None:
    """The user's own plan beside the best one and the baselines, and in one sentence."""
    if neutral:
        show_neutral(page)
    show_comparison(page, comparison, elsewhere=BOTH, worth=worth)
    page.text()
    if left_out:
        few = [*left_out[:MOST_LIST_LINES], "..."] if len(left_out) > MOST_LIST_LINES else left_out
        page.text(f"Not named, so none of it is bought: {', '.join(few)}.")
    if yours.broken:
        limits = "a limit" if len(yours.broken) == 1 else f"{len(yours.broken)} limits"
        page.text(f"Your plan breaks {limits}, so it cannot be bought like this.")
    else:
        page.text(
            f"Your plan is worth {_more(yours.value, comparison.rows[0].value)} the best one."
        )


def show_cheapest(
    page: Page,
    plan: Plan,
    what: str,
    budget: Fraction,
    neutral: bool,
    worth: Worth = GIVEN_WORTH,
    forecasts: Mapping[str, Forecast] | None = None,
) -> None:
    """The least money for a target, which `what` names, against the money that there is."""
    if neutral:
        show_neutral(page)
    spent = plan.problem.price(plan.counts)
    page.table(_purchase(plan, worth, forecasts))
    page.text()
    page.text(f"It takes {show(spent)} to reach {what}.")
    if spent == budget:
        page.text("That is all of the budget.")
    elif spent < budget:
        page.text(f"The budget of {show(budget)} leaves {show(budget - spent)}.")
    else:
        page.text(f"The budget of {show(budget)} is {show(spent - budget)} short of it.")
    if not plan.exact:
        page.text("It is not proved to be the least: a little less might do.")


def show_frontier(
    page: Page,
    budgets: Sequence[float],
    values: Sequence[float],
    counts: Mapping[str, Sequence[int]],
    neutral: bool,
    worth: Worth = GIVEN_WORTH,
) -> None:
    """What each budget buys, one row for each."""
    if neutral:
        show_neutral(page)
    columns = [TextColumn("budget", amounts([exact(budget) for budget in budgets]))]
    if worth.head:
        shares = [percent(value / values[-1]) if values[-1] > 0 else "-" for value in values]
        columns += [
            TextColumn(worth.head, worth.list_cells(values)),
            TextColumn("of last", shares),
        ]
    page.table([*columns, *_count_columns(counts)], BOTH)
    if len(counts) > MOST_SIDE_BY_SIDE:
        page.text("(--csv and --json have the counts of each task.)")


def describe(problem: Problem, gains: Mapping[str, Curve] | None) -> str:
    """What was read, in one line."""
    names = [shorten(name, 24) for name in problem.names[:MOST_LIST_LINES]]
    more = ", ..." if len(problem.names) > MOST_LIST_LINES else ""
    tasks = f"{several(len(problem.names), 'task')} ({', '.join(names)}{more})"
    caps = f", {several(len(problem.caps), 'cap')}" if problem.caps else ""
    families = sorted({term.family for curve in (gains or {}).values() for term in curve.terms})
    given = (
        f"{' and '.join(families)} gains"
        if families
        else "no gains, so it will be planned as if all tasks were worth the same"
    )
    return f"{tasks}, budget {show(problem.budget)}{caps}, {given}"
