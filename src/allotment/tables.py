"""Plans for people: tables and sentences on a terminal, or plain text where there is none."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from allotment.amounts import exact, show, to_decimal
from allotment.data.table import FeatureColumn, Summary
from allotment.gains import Curve
from allotment.plan import Comparison, Plan, Score
from allotment.problem import Problem, Task

FEW = 12
"""tasks; more are not given a column each"""
MOST_ROWS = 30
"""of a table; the rest is summed up in one more"""
GAP = 2
"""spaces between columns"""
MOST_LINES = 8
LONGEST = 1000
"""cells of a name that is not cut; names have at most 100 letters"""

NEUTRAL = (
    "The file gives no gains, so this is the neutral plan: every task is taken to be worth the same, and a "
    "label the less the more of its kind there are. To plan with what labels are worth to you, write a "
    "[task.gain] below each [[task]]; `allot example` shows how."
)


@dataclass(frozen=True)
class Column:
    """A column of finished text; those of tasks may be cut in their head, those of names in every cell, words never."""

    head: str
    cells: Sequence[str]
    kind: str = "number"

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.head, *self.cells)))

    def cut_to(self, width: int) -> Column:
        if self.kind == "name":
            return replace(self, cells=[shorten(cell, width) for cell in self.cells])
        return replace(self, head=shorten(self.head, max([width, *map(cell_len, self.cells)])))


class Page:
    """Where it is written: no wider than the terminal if it can be; as wide as needed where there is none."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self.width = shutil.get_terminal_size().columns if terminal else None
        plain = bool(os.environ.get("NO_COLOR")) or not terminal
        # Columns are fitted here, not by rich, which would cut numbers.
        self._console = Console(width=100_000, color_system=None if plain else "auto", highlight=False)
        # Without Unicode rich would draw bars between the columns.
        self._ruled = self._console.encoding.startswith("utf")

    def _write(self, thing: Table | Text) -> None:
        with self._console.capture() as captured:
            self._console.print(thing)
        click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)

    def title(self, text: str) -> None:
        self._write(Text(text, style="bold"))

    def text(self, text: str = "", indent: str = "") -> None:
        """A paragraph; an empty one is an empty line."""
        width = self.width or 10**9
        lines = textwrap.wrap(text, max(width, 20), subsequent_indent=indent, break_on_hyphens=False)
        self._write(Text("\n".join(lines)))

    def table(self, columns: Sequence[Column]) -> None:
        """The columns side by side; if they are too wide, without those of single tasks."""
        fitted = fit(columns, self.width)
        rule, gap = (box.SIMPLE_HEAD, GAP - 1) if self._ruled else (None, GAP)
        table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0))
        for column in fitted:
            side = "left" if column.kind in ("name", "word") else "right"
            table.add_column(Text(column.head), justify=side, no_wrap=True)  # type: ignore[arg-type]
        for row in zip(*(column.cells for column in fitted), strict=True):
            table.add_row(*map(Text, row))
        self._write(table)
        if len(fitted) < len(columns):
            self.text("(The counts of each task do not fit in here; --csv and --json have them.)")


def fit(columns: Sequence[Column], width: int | None) -> list[Column]:
    """The columns within a width: heads of tasks and names cut, or tasks left out; never a number cut."""
    sizes = [(head, LONGEST) for head in range(24, 7, -1)] + [(8, name) for name in range(60, 19, -4)] + [(6, 20)]
    for head, name in sizes:
        fitted = [column.cut_to({"task": head, "name": name}.get(column.kind, LONGEST)) for column in columns]
        if width is None or _width(fitted) <= width:
            return fitted
    rest = [column for column in columns if column.kind != "task"]
    over = max(0, _width(rest) - (width or 0))
    return [column.cut_to(max(column.width - over, 12)) if column.kind == "name" else column for column in rest]


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns) - GAP


def shorten(text: str, width: int) -> str:
    """The text in so many cells of a terminal, cut in its middle, since names often differ at their end.

    >>> shorten("segmentation of roads", 12)
    'segmen…roads'
    """
    if cell_len(text) <= width:
        return text
    head, tail = "", ""
    while text:
        rest = text[1:] if len(head) <= len(tail) else text[:-1]
        one = text[0] if len(head) <= len(tail) else text[-1]
        if cell_len(head + one + tail) > width - 1:
            break
        head, tail = (head + one, tail) if len(head) <= len(tail) else (head, one + tail)
        text = rest
    return f"{head}…{tail}"


# --- numbers ---


def number(value: float) -> str:
    """A value with six digits that count."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def numbers(values: Sequence[float]) -> list[str]:
    """Values of one column: six digits of the largest, and the same number of decimals in all."""
    top = max(map(abs, values), default=0.0)
    if not 1e-4 <= top < 1e15:
        return [f"{value:.6g}" for value in values]
    most = max(0, 5 - math.floor(math.log10(top)))
    places = next(n for n in range(most + 1) if all(round(v, n) == round(v, most) for v in values))
    return [f"{v:.{places}f}" if round(v, places) or not v else f"{v:.1g}" for v in values]


def amounts(values: Sequence[Fraction]) -> list[str]:
    """Money of one column: exact, and with the same number of decimals where that is possible."""
    texts = [show(value) for value in values]
    places = max((len(text.partition(".")[2]) for text in texts), default=0)
    if places > 6 or any(text.startswith("~") for text in texts):
        return texts
    return [f"{to_decimal(value):.{places}f}" for value in values]


def percent(share: float) -> str:
    """A share as a manager reads it.

    >>> percent(0.463), percent(0.00042)
    ('46.3 %', '0.04 %')
    """
    return f"{share:.1%}".replace("%", " %") if abs(share) >= 0.001 or not share else f"{share * 100:.1g} %"


def rounded(price: float | None) -> str:
    """A break-even price, which is known to four digits."""
    return "-" if price is None else number(float(f"{price:.4g}"))


# --- what is shown ---


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
        page.text(f"(The {MOST_ROWS} that get most of {len(hidden) + MOST_ROWS} tasks; --csv has them all.)")
    page.text()
    spent = plan.problem.price(plan.counts)
    most = ", the most that these limits allow" if plan.exact else ""
    page.text(
        f"Spent {show(spent)} of {show(plan.problem.budget)} for a value of {number(plan.value)}{most}. "
        f"The next unit of money is worth {number(plan.money_worth)}."
    )
    if not plan.exact:
        share = f" ({percent(plan.gap / plan.value)})" if plan.value > 0 else ""
        page.text(f"It is not proved best: another plan could be worth up to {number(plan.gap)}{share} more.")
    if plan.unspent:
        page.text(f"Unspent: {show(plan.problem.budget - spent)}, because")
        for reason in plan.why_unspent[:MOST_LINES]:
            page.text(f"  {reason}", indent="    ")
        if len(plan.why_unspent) > MOST_LINES:
            page.text(f"  and {len(plan.why_unspent) - MOST_LINES} more tasks, which --json lists")


def _purchase(plan: Plan) -> list[Column]:
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
    columns = [Column("task", names, "name"), Column("price", prices), Column("have", have)]
    if any(task.fee for task in plan.problem.tasks):
        columns.insert(2, Column("fee", fees))
    if any(task.weight != 1 for task in plan.problem.tasks):
        columns.insert(1, Column("weight", weights))
    return [
        *columns,
        Column("buy", list(map(str, bought))),
        Column("money", amounts(money)),
        Column("share", [percent(float(each / total)) if total else "-" for each in money]),
        Column("gain", numbers(gains)),
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
    return f"{show(task.cost)} {'then' if len(task.tiers) == 1 else '...'} {show(task.tiers[-1][1])}"


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
            Column("task", [task.name for task in tasks], "name"),
            Column("buy", [str(plan.counts[task.name]) for task in tasks]),
            Column("1 % range", [f"{a} to {b:>{wide}}" for a, b in zip(low, high, strict=True)]),
            Column("price", [_price(task) for task in tasks]),
            Column("bought up to", [rounded(plan.break_even[task.name]) for task in tasks]),
        ]
    )
    if others:
        page.text(f"({len(others)} more tasks; --csv and --json have them.)")
    page.text()
    page.text(
        "1 % range: what each count can be in plans worth at least 99 % of this one. "
        "Bought up to: the price of one label above which none is bought."
    )


def show_comparison(page: Page, comparison: Comparison, title: str = "") -> None:
    """Plans side by side, and the limits that some of them break."""
    rows, best = comparison.rows, comparison.rows[0]
    columns = [
        Column("plan", ["this plan" if row.name == "plan" else row.name for row in rows], "name"),
        *_count_columns({name: [row.counts[name] for row in rows] for name in best.counts}),
        Column("spent", amounts([Fraction(row.spent).limit_denominator(10**12) for row in rows])),
        Column("value", numbers([row.value for row in rows])),
        Column("of best", [percent(row.value / best.value) if best.value > 0 else "-" for row in rows]),
    ]
    if title and all(row.spent == best.spent for row in rows):
        title += f" with the same {columns[-3].cells[0]}"
        del columns[-3]
    if title:
        page.text()
        page.title(title)
    page.table(columns)
    if any(row.name == "neutral" for row in rows):
        page.text("(neutral: the best plan if every task were worth the same)")
    broken = [f"{row.name} breaks {limit}" for row in rows for limit in row.broken]
    if broken:
        page.text()
    for line in broken:
        page.text(line, indent="  ")


def _count_columns(counts: Mapping[str, Sequence[int]]) -> list[Column]:
    if len(counts) > FEW:
        return []
    return [Column(name, list(map(str, each)), "task") for name, each in counts.items()]


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


def show_score(page: Page, comparison: Comparison, yours: Score, left_out: Sequence[str], neutral: bool) -> None:
    """The user's own plan beside the best one and the baselines, and in one sentence."""
    if neutral:
        show_neutral(page)
    show_comparison(page, comparison)
    page.text()
    if left_out:
        few = [*left_out[:MOST_LINES], "..."] if len(left_out) > MOST_LINES else left_out
        page.text(f"Not named, so none of it is bought: {', '.join(few)}.")
    if yours.broken:
        limits = "a limit" if len(yours.broken) == 1 else f"{len(yours.broken)} limits"
        page.text(f"Your plan breaks {limits}, so it cannot be bought like this.")
    else:
        page.text(f"Your plan is worth {_more(yours.value, comparison.rows[0].value)} the best one.")


def show_cheapest(page: Page, plan: Plan, task: str | None, budget: Fraction, neutral: bool) -> None:
    """The least money for a target, against the money that there is."""
    if neutral:
        show_neutral(page)
    spent = plan.problem.price(plan.counts)
    page.table(_purchase(plan))
    page.text()
    what = f"a gain of {number(plan.own_gains[task])} for {task}" if task else f"a value of {number(plan.value)}"
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
            Column("budget", amounts([exact(budget) for budget in budgets])),
            Column("value", numbers(values)),
            Column("of last", [percent(value / values[-1]) if values[-1] > 0 else "-" for value in values]),
            *_count_columns(counts),
        ]
    )
    if len(counts) > FEW:
        page.text("(--csv and --json have the counts of each task.)")


def show_data(page: Page, summary: Summary) -> None:
    """What is in a data set: its input, labels per task and split, and what is odd."""
    page.text(f"{visible(summary.name)}: {_several(summary.instances, 'instance')}, input: {summary.input}")
    page.text()
    page.table(_label_columns(summary))
    if len(summary.tasks) > MOST_ROWS:
        page.text(f"(The first {MOST_ROWS} of {len(summary.tasks)} tasks; --json has them all.)")
    page.text()
    sizes = ", ".join(f"{part} {size}" for part, size in summary.splits.items())
    page.text(f"Instances of each split (seed {summary.seed}): {sizes}.")
    if any(task.guessed for task in summary.tasks):
        page.text("Kinds marked with ? are guessed; --kind NAME=KIND sets one.")
    if listed := [task for task in summary.tasks[:MOST_ROWS] if task.classes]:
        page.text()
        page.title("Classes")
        page.table(
            [
                Column("task", [visible(task.name) for task in listed], "name"),
                Column("labels of each", [_class_list(task.classes) for task in listed], "name"),
            ]
        )
    if summary.columns:
        page.text()
        page.title("Features")
        page.table(_feature_columns(summary.columns))
    if summary.notes:
        page.text()
        page.title("Worth knowing")
    for note in summary.notes[:MOST_ROWS]:
        page.text(f"- {visible(note)}", indent="  ")
    if len(summary.notes) > MOST_ROWS:
        page.text(f"({len(summary.notes) - MOST_ROWS} more; --json has them all.)")


def _label_columns(summary: Summary) -> list[Column]:
    tasks = summary.tasks[:MOST_ROWS]
    return [
        Column("task", [visible(task.name) for task in tasks], "name"),
        Column("kind", [task.kind + "?" * task.guessed for task in tasks], "word"),
        Column("labels", [str(task.labelled) for task in tasks]),
        Column("missing", [str(task.missing) for task in tasks]),
        Column("known", [percent(task.share) for task in tasks]),
        *(Column(part, [str(task.splits[part]) for task in tasks]) for part in summary.splits),
    ]


def _class_list(classes: Mapping[str, int]) -> str:
    shown = [f"{shorten(visible(name), 24)}: {count}" for name, count in list(classes.items())[:MOST_LINES]]
    more = [f"and {len(classes) - MOST_LINES} more classes"] if len(classes) > MOST_LINES else []
    return ", ".join(shown + more)


def _feature_columns(columns: Sequence[FeatureColumn]) -> list[Column]:
    """A row for each column while they are few, and for each form otherwise."""
    if len(columns) <= FEW:
        return [
            Column("column", [visible(each.name) for each in columns], "name"),
            Column("form", [each.form for each in columns], "word"),
            Column("width", [str(each.width) for each in columns]),
            Column("missing", [str(each.missing) for each in columns]),
        ]
    forms = {form: [each for each in columns if each.form == form] for form in sorted({each.form for each in columns})}
    return [
        Column("form", list(forms), "word"),
        Column("columns", [str(len(each)) for each in forms.values()]),
        Column("width", [str(sum(one.width for one in each)) for each in forms.values()]),
        Column("missing", [str(sum(one.missing for one in each)) for each in forms.values()]),
    ]


def visible(text: str) -> str:
    """The text with escapes for what a terminal would act on rather than show.

    >>> visible("a\\x1b[31m\\n")
    'a\\\\x1b[31m\\\\n'
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def describe(problem: Problem, gains: Mapping[str, Curve] | None) -> str:
    """What was read, in one line."""
    names = [shorten(name, 24) for name in problem.names[:MOST_LINES]]
    more = ", ..." if len(problem.names) > MOST_LINES else ""
    tasks = f"{_several(len(problem.names), 'task')} ({', '.join(names)}{more})"
    caps = f", {_several(len(problem.caps), 'cap')}" if problem.caps else ""
    families = sorted({term.family for curve in (gains or {}).values() for term in curve.terms})
    given = (
        f"{' and '.join(families)} gains"
        if families
        else "no gains, so it will be planned as if all tasks were worth the same"
    )
    return f"{tasks}, budget {show(problem.budget)}{caps}, {given}"


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
