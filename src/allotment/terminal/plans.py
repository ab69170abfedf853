"""Plans for people: what to buy, how firm that is, and what else one might do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from allotment.amounts import exact, show
from allotment.formatting import amounts, number, numbers, percent, rounded, several
from allotment.gains import Curve
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


def show_plan(page: Page, plan: Plan, neutral: bool) -> None:
    """What to buy, what it costs and is worth, and what is left."""
    if neutral:
        show_neutral(page)
    page.table(_purchase(plan))
    if hidden := _shown(plan)[1]:
        page.text(
            f"(The {MOST_ROWS} that get most of {len(hidden) + MOST_ROWS} tasks; --csv has them"
            " all.)"
        )
    page.text()
    spent = plan.problem.price(plan.counts)
    most = ", the most that these limits allow" if plan.exact else ""
    page.text(
        f"Spent {show(spent)} of {show(plan.problem.budget)} for a value of"
        f" {number(plan.value)}{most}. The next unit of money is worth {number(plan.money_worth)}."
    )
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


def _purchase(plan: Plan) -> list[TextColumn]:
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
        TextColumn("gain", numbers(gains)),
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
    page: Page, comparison: Comparison, title: str = "", elsewhere: str = ""
) -> None:
    """Plans side by side, and the limits that some of them break; `elsewhere` is where all counts
    are."""
    rows, best = comparison.rows, comparison.rows[0]
    columns = [
        TextColumn(
            "plan", ["this plan" if row.name == "plan" else row.name for row in rows], "name"
        ),
        *_count_columns({name: [row.counts[name] for row in rows] for name in best.counts}),
        TextColumn(
            "spent", amounts([Fraction(row.spent).limit_denominator(10**12) for row in rows])
        ),
        TextColumn("value", numbers([row.value for row in rows])),
        TextColumn(
            "of best", [percent(row.value / best.value) if best.value > 0 else "-" for row in rows]
        ),
    ]
    if title and all(row.spent == best.spent for row in rows):
        title += f" with the same {columns[-3].cells[0]}"
        del columns[-3]
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
    page: Page, comparison: Comparison, yours: Score, left_out: Sequence[str], neutral: bool
) -> None:
    """The user's own plan beside the best one and the baselines, and in one sentence."""
    if neutral:
        show_neutral(page)
    show_comparison(page, comparison, elsewhere=BOTH)
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
    page: Page, plan: Plan, task: str | None, budget: Fraction, neutral: bool
) -> None:
    """The least money for a target, against the money that there is."""
    if neutral:
        show_neutral(page)
    spent = plan.problem.price(plan.counts)
    page.table(_purchase(plan))
    page.text()
    what = (
        f"a gain of {number(plan.own_gains[task])} for {task}"
        if task
        else f"a value of {number(plan.value)}"
    )
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
) -> None:
    """What each budget buys, one row for each."""
    if neutral:
        show_neutral(page)
    page.table(
        [
            TextColumn("budget", amounts([exact(budget) for budget in budgets])),
            TextColumn("value", numbers(values)),
            TextColumn(
                "of last",
                [percent(value / values[-1]) if values[-1] > 0 else "-" for value in values],
            ),
            *_count_columns(counts),
        ],
        BOTH,
    )
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
