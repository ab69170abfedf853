"""Bad input: a clear error each, never a traceback, a hang or a silent correction.

A row is an id, what is tried in an empty folder, and words that the message must hold.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.bounded import check_refused, run_bounded

import allotment as al
from allotment import errors
from allotment.errors import InputError
from allotment.gains import Coupled, Geometric, Logarithmic, Power, Tabulated, curve_from_dict
from allotment.problem import Cap, Problem, Task
from allotment.problem_file import parse_problem, read_problem

Try = Callable[[Path], object]
HUGE = 10**5000
CLS = Task("cls", cost=1)
TWO = [CLS, Task("seg", cost=20)]
GEOMETRIC = {"curve": "geometric", "informativeness": 1, "reduction": 0.9}


def document(text: str) -> Try:
    return lambda folder: parse_problem(text)


def task(*lines: str) -> Try:
    """A document with one task, which has these lines below its name (line 3)."""
    return document("\n".join(("budget = 6300", "[[task]]", 'name = "cls"', *lines)))


def gain(text: str) -> Try:
    return task("cost = 1", f"gain = {text}")


def cap(*lines: str) -> Try:
    return task("cost = 1", "[[cap]]", *lines)


def file(content: bytes) -> Try:
    def read(folder: Path) -> object:
        path = folder / "problem.toml"
        path.write_bytes(content)
        return read_problem(path)

    return read


def sparse_file(folder: Path) -> object:
    path = folder / "huge.toml"
    path.touch()
    os.truncate(path, 100 * 10**6)
    return read_problem(path)


def pipe(folder: Path) -> object:
    os.mkfifo(folder / "pipe.toml")
    return read_problem(folder / "pipe.toml")


def loop(folder: Path) -> object:
    (folder / "loop.toml").symlink_to("loop.toml")
    return read_problem(folder / "loop.toml")


def row(name: str, attempt: Try, *words: str) -> Any:
    return pytest.param(attempt, words, id=name)


def cost(value: Any) -> Try:
    return lambda _: Task("cls", cost=value)


def of(make: Callable[..., object], *values: Any, **keys: Any) -> Try:
    return lambda _: make(*values, **keys)


ROWS = [
    # costs, in Python and in a file
    row("cost negative", cost(-1), "cost: -1 is not above zero"),
    row("cost zero", cost(0), "cost: 0 is not above zero"),
    row("cost zero as text", cost("0.00"), "cost: 0 is not above zero"),
    row("cost nan", cost(math.nan), "cost: nan is not a finite number"),
    row("cost inf", cost(math.inf), "cost: inf is not a finite number"),
    row("cost nan of Decimal", cost(Decimal("NaN")), "cost: NaN is not a finite number"),
    row("cost text", cost("cheap"), "cost: 'cheap' is not a number"),
    row("cost empty text", cost(""), "cost: '' is not a number"),
    row("cost boolean", cost(True), "cost: True is not a number"),
    row("cost None", cost(None), "cost: None is not a number"),
    row("cost list", cost([1]), "cost: [1] is not a number"),
    row("cost array", cost(np.array([1.0, 2.0])), "cost: [1. 2.] is not a number"),
    row("cost divided by zero", cost("1/0"), "cost: '1/0' is not a number"),
    row(
        "cost 10^400 int", cost(10**400), "cost: a number of about 400 digits is too large", "10^15"
    ),
    row("cost 10^400 text", cost("1e400"), "cost: '1e400' is too large", "10^15"),
    row("cost 10^400 float", cost(float("1e400")), "cost: inf is not a finite number"),
    row("cost 10^400 Decimal", cost(Decimal("1e400")), "cost: 1E+400 is too large"),
    row("cost -10^400", cost("-1e400"), "cost: '-1e400' is too large"),
    row("cost 10^5000", cost(HUGE), "cost: a number of about 5000 digits is too large"),
    row(
        "cost 10^5000 fraction",
        cost(Fraction(HUGE, 3)),
        "cost: a Fraction of thousands of digits is too large",
    ),
    row("cost just above the limit", cost(10**15 + 1), "cost: 1000000000000001 is too large"),
    row(
        "cost too fine",
        cost("0.1234567890123"),
        "cost: '0.1234567890123' has too many digits",
        "12 decimal",
    ),
    row("cost too small", cost("1e-400"), "cost: '1e-400' is too small to count", "10^-12"),
    row("cost of a million digits", cost("0." + "1" * 10**6), "has too many digits"),
    row(
        "toml cost negative",
        task("cost = -0.5"),
        "line 4: task 'cls': cost: -0.5 is not above zero",
    ),
    row(
        "toml cost nan", task("cost = nan"), "line 4: task 'cls': cost: NaN is not a finite number"
    ),
    row(
        "toml cost inf",
        task("cost = inf"),
        "line 4: task 'cls': cost: Infinity is not a finite number",
    ),
    row("toml cost boolean", task("cost = true"), "line 4: task 'cls': cost: True is not a number"),
    row(
        "toml cost date",
        task("cost = 2024-01-31"),
        "line 4: task 'cls': cost: 2024-01-31 is not a number",
    ),
    row(
        "toml cost table",
        task("cost = { eur = 1 }"),
        "line 4: task 'cls': cost: {'eur': 1} is not a number",
    ),
    row("toml cost 10^400", task("cost = 1e400"), "line 4: task 'cls': cost: 1E+400 is too large"),
    row(
        "toml cost 400 digits",
        task("cost = 1" + "0" * 400),
        "line 4: task 'cls': cost: a number of about 400",
    ),
    row(
        "toml cost 5000 digits",
        task("cost = 1" + "0" * 5000),
        "line 4: a number has far too many digits",
        "10^15",
    ),
    row(
        "toml cost exponent",
        task("cost = 1e" + "9" * 30),
        "line 4: a number has far too many digits",
    ),
    row(
        "toml cost million digits",
        task("cost = 0." + "1" * 10**6),
        "line 4: task 'cls': cost",
        "too many digits",
    ),
    # counts
    row("have negative", of(Task, "cls", 1, have=-3), "have: -3 is below 0"),
    row("have fractional", of(Task, "cls", 1, have=2.5), "have: 2.5 is not a whole number"),
    row("have text", of(Task, "cls", 1, have="some"), "have: 'some' is not a number"),
    row("pool negative", of(Task, "cls", 1, pool=-1), "pool: -1 is below 0"),
    row("least nan", of(Task, "cls", 1, least=math.nan), "least: nan is not a finite number"),
    row("most negative", of(Task, "cls", 1, most=-1), "most: -1 is below 0"),
    row("frozen boolean", of(Task, "cls", 1, frozen=True), "frozen: True is not a number"),
    row("lot zero", of(Task, "cls", 1, lot=0), "lot: 0 is below 1"),
    row(
        "toml have fractional",
        task("cost = 1", "have = 0.5"),
        "line 5: task 'cls': have: 0.5 is not a whole",
    ),
    row(
        "toml pool list",
        task("cost = 1", "pool = [1]"),
        "line 5: task 'cls': pool: [1] is not a number",
    ),
    # fee, weight, tiers, implies
    row("fee negative", of(Task, "cls", 1, fee="-0.01"), "fee: -0.01 is not zero or more"),
    row(
        "weight negative", of(Task, "cls", 1, weight=-1), "weight: -1 is below zero", "has weight 0"
    ),
    row("weight nan", of(Task, "cls", 1, weight=math.nan), "weight: nan is not a finite number"),
    row(
        "tiers not rising",
        of(Task, "cls", 9, tiers=[(20, 8), (10, 7)]),
        "10 does not come after 20",
        "rising order",
    ),
    row(
        "tiers twice the same",
        of(Task, "cls", 9, tiers=[(20, 8), (20, 7)]),
        "tiers.after: 20 does not come after 20",
    ),
    row("tier price zero", of(Task, "cls", 9, tiers={10: 0}), "tiers.cost: 0 is not above zero"),
    row("tier after zero", of(Task, "cls", 9, tiers={0: 5}), "tiers.after: 0 is below 1"),
    row(
        "tiers a number",
        of(Task, "cls", 9, tiers=5),
        "tiers: give pairs (after, cost), such as {1000: 15}",
    ),
    row("tiers a text", of(Task, "cls", 9, tiers=""), "tiers: give pairs (after, cost)"),
    row("tiers triples", of(Task, "cls", 9, tiers=[(1, 2, 3)]), "tiers: give pairs (after, cost)"),
    row(
        "toml tier without cost",
        task("cost = 1", "tiers = [{ after = 10 }]"),
        "line 5: task 'cls': tiers: each tier is a table with the keys after and cost",
    ),
    row(
        "toml tier price in its own table",
        task("cost = 1", "[[task.tiers]]", "after = 10", "cost = -1"),
        "line 7: task 'cls': tiers.cost: -1 is not above zero",
    ),
    row("implies itself", of(Task, "cls", 1, implies="cls"), "implies: 'cls' implies itself"),
    row("implies twice", of(Task, "cls", 1, implies=["a", "a"]), "implies: names a task twice"),
    row(
        "implies a number", of(Task, "cls", 1, implies=7), "implies: 7 is not a list of task names"
    ),
    row(
        "implies a table",
        of(Task, "cls", 1, implies={"a": 1}),
        "implies: {'a': 1} is not a list of task names",
    ),
    row(
        "implies a huge number",
        of(Task, "cls", 1, implies=[HUGE]),
        "implies: a number of about 5000 digits",
    ),
    row(
        "implies unknown",
        lambda _: Problem([CLS, Task("seg", 20, implies="clss")], 9),
        "task 'seg': implies: no task 'clss'; did you mean 'cls'?",
    ),
    row(
        "toml implies unknown",
        task("cost = 1", 'implies = ["depth"]'),
        "line 5: task 'cls': implies: no task 'depth'; known: cls",
    ),
    # names
    row("name empty", of(Task, "", 1), "name: '' is not a name", "at least one letter"),
    row("name number", of(Task, 5, 1), "name: 5 is not a name"),
    row("name huge number", of(Task, HUGE, 1), "name: a number of about 5000 digits is not a name"),
    row("name with newline", of(Task, "a\nb", 1), r"name: 'a\nb': names are printable"),
    row(
        "name with spaces around",
        of(Task, " a", 1),
        "name: ' a': names are printable",
        "without spaces around",
    ),
    row("name of 10,000 letters", of(Task, "x" * 10_000, 1), "at most 100 long"),
    row("name of 10,000 spaces", of(Task, " " * 10_000, 1), "... is not a name"),
    row(
        "toml name of 10,000 letters",
        document(f'budget = 1\n[[task]]\nname = "{"x" * 10_000}"\ncost = 1'),
        "line 3: task 1: name: 'xxxx",
        "at most 100 long",
    ),
    row(
        "toml name exponent",
        document(f"budget = 1\n[[task]]\nname = 1e{'9' * 30}"),
        "line 3: a number has far",
    ),
    row(
        "toml name huge",
        document(f"budget = 1\n[[task]]\nname = 0x{'f' * 5000}\ncost = 1"),
        "line 3: task 1: name: a number of about",
    ),
    row(
        "toml name boolean",
        document("budget = 1\n[[task]]\nname = true\ncost = 1"),
        "line 3: task 1: name: True is",
    ),
    # the problem as a whole
    row("no tasks", lambda _: Problem([], 1), "tasks: there is no task; give at least one"),
    row("tasks a number", of(Problem, 5, 1), "tasks: 5 is not a list of tasks"),
    row(
        "tasks a single task",
        of(Problem, CLS, 1),
        "tasks: Task(name='cls'",
        "is not a list of tasks",
    ),
    row("tasks of text", of(Problem, ["cls"], 1), "tasks: 'cls' is not a Task"),
    row("tasks a dict", of(Problem, {"cls": 1}, 1), "tasks: 'cls' is not a Task"),
    row("caps a number", of(Problem, TWO, 1, 5), "caps: 5 is not a list of caps"),
    row("caps of tasks", of(Problem, TWO, 1, [CLS]), "caps: Task(name='cls'", "is not a Cap"),
    row(
        "duplicate names",
        lambda _: Problem([CLS, CLS], 1),
        "task 'cls': is there twice",
        "its own name",
    ),
    row("budget negative", of(Problem, TWO, -1), "budget: -1 is not zero or more"),
    row("budget nan", of(Problem, TWO, math.nan), "budget: nan is not a finite number"),
    row(
        "budget 10^400",
        of(Problem, TWO, 10**400),
        "budget: a number of about 400 digits is too large",
    ),
    row("budget text", of(Problem, TWO, "lots"), "budget: 'lots' is not a number"),
    row(
        "count_implied text",
        of(Problem, TWO, 1, (), "yes"),
        "count_implied: 'yes' is neither true nor false",
    ),
    row(
        "prices too fine for the budget",
        of(Problem, [CLS, Task("a", "1.000000000001")], 10**9),
        "budget: prices that differ by 0.000000000001 are too fine for a budget of 1000000000;"
        " round them",
    ),
    row("from_dict of a list", of(Task.from_dict, [1]), "[1] is not a table of keys and values"),
    row("from_dict without tasks", of(Problem.from_dict, {"budget": 1}), "tasks: is missing"),
    row(
        "from_dict tasks a number",
        of(Problem.from_dict, {"budget": 1, "tasks": 5}),
        "tasks: 5 is not a list",
    ),
    # caps
    row("cap without use", of(Cap, "hours", 1, {}), "use: name at least one task"),
    row("cap use a list", of(Cap, "hours", 1, ["cls"]), "use: name at least one task"),
    row("cap use negative", of(Cap, "hours", 1, {"cls": -1}), "use.cls: -1 is not zero or more"),
    row("cap limit negative", of(Cap, "hours", -1, {"cls": 1}), "limit: -1 is not zero or more"),
    row(
        "cap of unknown task",
        lambda _: Problem(TWO, 1, [Cap("hours", 1, {"sge": 1})]),
        "cap 'hours': use: no task 'sge'; did you mean 'seg'?",
    ),
    row(
        "caps of one name",
        lambda _: Problem(TWO, 1, [Cap("hours", 1, {"seg": 1})] * 2),
        "cap 'hours': is there twice; every cap needs its own name",
    ),
    row(
        "toml cap without use",
        cap('name = "hours"', "limit = 1"),
        "line 5: cap 'hours': use: is missing; write use = {",
    ),
    row(
        "toml cap use in its own table",
        cap('name = "hours"', "limit = 1", "[cap.use]", "# per label", "cls = -2"),
        "line 10: cap 'hours': use.cls: -2 is not zero or more",
    ),
    row(
        "toml cap of unknown task",
        cap('name = "hours"', "limit = 1", "use = { clss = 1 }"),
        "line 8: cap 'hours': use: no task 'clss'; did you mean 'cls'?",
    ),
    row(
        "toml single cap",
        task("cost = 1", "[cap]", "limit = 1"),
        "line 5: cap: one table is not a list of tables; write [[cap]], in double brackets",
    ),
    # curves
    row("reduction above 1", of(Geometric, 1, 1.5), "reduction: 1.5 is not between 0 and 1"),
    row("reduction negative", of(Geometric, 1, -0.1), "reduction: -0.1 is not between 0 and 1"),
    row("reduction nan", of(Geometric, 1, math.nan), "reduction: nan is not a finite number"),
    row(
        "informativeness text",
        of(Geometric, "much", 0.9),
        "informativeness: 'much' is not a number",
    ),
    row(
        "informativeness boolean", of(Geometric, True, 0.9), "informativeness: True is not a number"
    ),
    row(
        "informativeness 10^5000",
        of(Geometric, HUGE, 0.9),
        "informativeness: a number of about 5000 digits",
        "10^100",
    ),
    row("exponent zero", of(Power, 1, 100, 0), "exponent: 0 is not between 1e-06 and 100"),
    row("power have negative", of(Power, 1, -1, 0.5), "have: -1 is not between 0 and 1e+15"),
    row("ceiling zero", of(Power, 1, 1, 0.5, 0), "ceiling: 0 is not between 1e-100"),
    row("ceiling text", of(Power, 1, 1, 0.5, "high"), "ceiling: 'high' is not a number"),
    row("ceiling nan", of(Power, 1, 1, 0.5, math.nan), "ceiling: nan is not a finite number"),
    row("logarithmic worth inf", of(Logarithmic, math.inf, 1), "worth: inf is not a finite number"),
    row("table empty", of(Tabulated, []), "values: the table is empty"),
    row("table a number", of(Tabulated, 5), "values: must be a list of numbers"),
    row("table of text", of(Tabulated, ["a"]), "values: 'a' is not a number"),
    row(
        "table not concave",
        of(Tabulated, [0, 1, 3]),
        "values: not concave",
        "a label after 1 adds 2",
        "upper hull",
    ),
    row(
        "table counts not rising",
        of(Tabulated, [0, 1, 2], [0, 20, 10]),
        "counts: must be whole",
        "rising order",
    ),
    row(
        "table counts fractional", of(Tabulated, [0, 1], [0, 0.5]), "counts: must be whole numbers"
    ),
    row(
        "table counts from one",
        of(Tabulated, [1, 2], [1, 2]),
        "counts: begin at 1",
        "what 0 labels are worth",
    ),
    row("table counts too few", of(Tabulated, [0, 1, 2], [0, 1]), "counts: 2 counts for 3 values"),
    row(
        "table scaled below zero",
        lambda _: Tabulated([0, 1]) * -1,
        "factor: a table times a negative number",
    ),
    row("curve times text", lambda _: Geometric(1, 0.5) * "x", "factor: 'x' is not a number"),
    row(
        "coupled without weights",
        of(Coupled, Geometric(1, 0.9), {}),
        "weights: name at least one task",
    ),
    row(
        "coupled weight zero",
        of(Coupled, Geometric(1, 0.9), {"cls": 0}),
        "weights.cls: 0 is not above zero",
    ),
    row("coupled of a number", of(Coupled, 5, {"cls": 1}), "curve: must be a curve of one count"),
    row(
        "coupled falling",
        of(Coupled, Geometric(-1, 0.9), {"cls": 1}),
        "only a rising curve can be coupled",
    ),
    row(
        "curve a number", of(curve_from_dict, 5), "a curve is a table such as { curve = 'geometric'"
    ),
    row(
        "curve unknown",
        of(curve_from_dict, {"curve": "geometrical"}),
        "unknown curve",
        "did you mean 'geometric'?",
    ),
    row(
        "curve sum of nothing",
        of(curve_from_dict, {"curve": "sum", "parts": []}),
        "parts: must be a list of curves",
    ),
    row(
        "curve sum of two wrong parts",
        of(
            curve_from_dict,
            {"curve": "sum", "parts": [GEOMETRIC | {"reduction": 2}, {"curve": "log"}]},
        ),
        "part 1: reduction: 2 is not between 0 and 1",
        "part 2: curve: unknown curve 'log'",
    ),
    row(
        "toml gain reduction",
        gain('{ curve = "geometric", informativeness = 1, reduction = nan }'),
        "line 5: task 'cls': gain: reduction: nan is not a finite number",
    ),
    row(
        "toml gain in its own table",
        task("cost = 1", "[task.gain]", 'curve = "power"', "worth = 1", "have = 1", "exponent = 0"),
        "line 9: task 'cls': gain: exponent: 0 is not between",
    ),
    row(
        "toml gain key misspelt",
        gain('{ curve = "geometric", informativenes = 1, reduction = 1 }'),
        "gain: informativenes: unknown key; did you mean 'informativeness'?",
        "gain: informativeness: is missing",
    ),
    row("toml gain a number", gain("5"), "line 5: task 'cls': gain: a curve is a table such as"),
    row(
        "toml gain coupled to an unknown task",
        gain(
            '{ curve = "coupled", weights = { clss = 1 }, inner = { curve = "logarithmic", worth ='
            " 1, have = 1 } }"
        ),
        "line 5: task 'cls': gain: weights: no task 'clss'; did you mean 'cls'?",
    ),
    row(
        "toml gain of some tasks only",
        document(
            'budget = 1\n[[task]]\nname = "a"\ncost = 1\n'
            'gain = { curve = "logarithmic", worth = 1, have = 1 }\n'
            '[[task]]\nname = "b"\ncost = 1'
        ),
        "line 6: task 'b': gain: is missing, but other tasks have one; give every task a gain, or"
        " none",
    ),
    # keys of documents
    row(
        "toml empty",
        document(""),
        "budget: is missing; write budget = ",
        "task: there is no task; write [[task]]",
    ),
    row(
        "toml report no table",
        document('budget = 1\nreport = "EUR"\n[[task]]\nname = "a"\ncost = 1'),
        "line 2: report: is not a table; write [report]",
    ),
    row(
        "toml report currency",
        document('budget = 1\n[[task]]\nname = "a"\ncost = 1\n[report]\ncurrency = 978'),
        "line 6: report: currency: 978 is not a text of up to 12 letters, such as EUR",
    ),
    row(
        "toml report decimal",
        document('budget = 1\n[[task]]\nname = "a"\ncost = 1\n[report]\ndecimal = ","'),
        "line 6: report: decimal: unknown ','; known: point, comma",
    ),
    row(
        "toml report unknown key",
        document('budget = 1\n[[task]]\nname = "a"\ncost = 1\n[report]\ncurency = "EUR"'),
        "line 6: report: curency: unknown key; did you mean 'currency'?",
    ),
    row(
        "toml currency outside",
        document('budget = 1\ncurrency = "EUR"\n[[task]]\nname = "a"\ncost = 1'),
        'currency: belongs to the report; write [report] and below it currency = "EUR"',
    ),
    row("toml no task", document("budget = 1"), "task: there is no task; write [[task]]"),
    row(
        "toml empty task list",
        document("budget = 1\ntask = []"),
        "line 2: task: there is no task; write [[task]]",
    ),
    row(
        "toml budget missing",
        document('[[task]]\nname = "a"\ncost = 1'),
        "line 1: budget: is missing",
        "above the",
    ),
    row(
        "toml budget a table",
        document('[[task]]\nname = "a"\ncost = 1\n[budget]\neur = 1'),
        "line 4: budget: must be one number; write budget = 6300",
    ),
    row(
        "toml budget negative",
        document('budget = -5\n[[task]]\nname = "a"\ncost = 1'),
        "line 1: budget: -5 is not zero",
    ),
    row(
        "toml budget in a task",
        document('[[task]]\nname = "a"\ncost = 1\nbudget = 5'),
        "line 4: task 'a': budget: belongs to the whole problem, not to one task; move it above",
        "line 1: budget: is missing",
    ),
    row(
        "toml count_implied text",
        document('budget = 1\ncount_implied = "no"\n[[task]]\nname = "a"\ncost = 1'),
        "line 2: count_implied: 'no' is neither true nor false",
    ),
    row(
        "toml name missing",
        document("budget = 1\n[[task]]\ncost = 1"),
        "line 2: task 1: name: is missing; write name",
    ),
    row(
        "toml cost missing",
        task("have = 1"),
        "line 2: task 'cls': cost: is missing; write cost = 20",
    ),
    row(
        "toml unknown key",
        task("cost = 1", "poool = 9"),
        "line 5: task 'cls': poool: unknown key; did you mean 'pool'?",
    ),
    row(
        "toml unknown top key",
        document('budgets = 1\n[[task]]\nname = "a"\ncost = 1'),
        "line 1: budgets: unknown key; did you mean 'budget'?",
        "budget: is missing",
    ),
    row(
        "toml unknown key of a cap",
        cap('name = "h"', "limt = 1", "limit = 1", "use = { cls = 1 }"),
        "line 7: cap 'h': limt: unknown key; did you mean 'limit'?",
    ),
    row(
        "toml unknown key, unprintable",
        task("cost = 1", r'"a\u001b[2J" = 1'),
        r"task 'cls': 'a\x1b[2J': unknown key",
    ),
    row(
        "toml tasks",
        document('budget = 1\n[[tasks]]\nname = "a"\ncost = 1'),
        "line 2: tasks: unknown key; write [[task]]",
    ),
    row(
        "toml gain at the top",
        document('budget = 1\n[gain]\n[[task]]\nname = "a"\ncost = 1'),
        "line 2: gain: belongs to a task; write [task.gain]",
    ),
    row(
        "toml [task]",
        document('budget = 1\n[task]\nname = "a"\ncost = 1'),
        "line 2: task: one table is not a list of tables; write [[task]], in double brackets",
    ),
    row(
        "toml [task] twice",
        document('budget = 1\n[task]\nname = "a"\n[task]\nname = "b"'),
        "line 4: not valid TOML",
        "write [[task]], in double brackets",
    ),
    row(
        "toml task a number",
        document("task = 5\nbudget = 1"),
        "line 1: task: 5 is not a list of tables; write [[task]]",
    ),
    row(
        "toml task of numbers",
        document("budget = 1\ntask = [5]"),
        "line 2: task 1: 5 is not a table; write [[task]]",
    ),
    row(
        "toml tiers a number",
        task("cost = 1", "tiers = 5"),
        "line 5: task 'cls': tiers: give pairs (after, cost)",
    ),
    # files
    row(
        "toml syntax",
        file(b"budget = 1\n[[task]]\nname = cls\n"),
        "line 3: not valid TOML",
        "text goes in quotes",
    ),
    row(
        "toml decimal comma",
        document("budget = 1,5"),
        "line 1: not valid TOML",
        "numbers have a decimal point",
    ),
    row("toml unfinished", document("budget = 1\ntask = [\n"), "line 2: not valid TOML"),
    row(
        "toml key twice",
        task("cost = 1", "cost = 2", "have = 1"),
        "line 5: not valid TOML",
        "each key stands once",
    ),
    row(
        "toml nested arrays",
        document("budget = 1\na = " + "[" * 100_000),
        "line 2: nested too deeply",
    ),
    row(
        "toml nested keys",
        document("budget = 1\ntask" + ".a" * 1000 + " = 1"),
        "line 2: a key has more than 30 parts between dots",
    ),
    row(
        "toml nested keys in a header",
        document("budget = 1\n[task" + ".a" * 1000 + "]"),
        "line 2: a key has more than 30 parts between dots",
    ),
    row(
        "toml nested keys in quotes",
        document("budget = 1\n" + " . ".join(['"a,\\"=."'] * 1000) + " = 1"),
        "line 2: a key has more than 30 parts between dots",
    ),
    row(
        "toml nested keys of an inline table",
        document("budget = 1\nx = { b = 1, " + "'a'." * 1000 + "a = 1 }"),
        "line 2: a key has more than 30 parts between dots",
    ),
    row(
        "toml parts of a curve",
        gain('{ curve = "sum", parts = [' + "{}," * 20_000 + "] }"),
        "line 5: task 'cls': gain: parts: there are 20,000, the limit is 1,000; leave some out",
    ),
    row(
        "tiers, too many",
        of(Task, "cls", 9, tiers={k + 1: 1 for k in range(1001)}),
        "tiers: there are 1,001, the",
    ),
    row(
        "tasks, too many",
        of(Problem, [CLS] * 5001, 1),
        "tasks: there are 5,001, the limit is 5,000; leave some",
    ),
    row(
        "caps, too many",
        of(Problem, TWO, 1, [Cap("h", 1, {"cls": 1})] * 1001),
        "caps: there are 1,001, the limit is",
    ),
    row(
        "file not UTF-8",
        file(b'budget = 1\n[[task]]\nname = "caf\xe9"\n'),
        "line 3: ",
        "byte 0xe9 is not UTF-8",
        "save",
    ),
    row(
        "file UTF-16",
        file("budget = 1".encode("utf-16")),
        "line 1: ",
        "is not UTF-8; save the file as UTF-8",
    ),
    row("file binary", file(b"\x00" * 100), "line 1: not valid TOML"),
    row("file of 100 MB", sparse_file, "huge.toml': has 100.0 MB, the limit is 5 MB"),
    row(
        "file missing",
        lambda folder: read_problem(folder / "no.toml"),
        "no.toml': there is no such file; check",
    ),
    row(
        "file is a directory",
        lambda folder: read_problem(folder),
        "is a directory; give the problem file in it",
    ),
    row(
        "file is a pipe",
        pipe,
        "pipe.toml': is a pipe or a device; save the problem to a file first",
    ),
    row(
        "file is a device",
        lambda _: read_problem("/dev/zero"),
        "'/dev/zero': is a pipe or a device",
    ),
    row(
        "file unreadable",
        loop,
        "loop.toml': cannot be read (",
        "check the path and its permissions",
    ),
    row(
        "file name with NUL", lambda _: read_problem("a\0b"), r"'a\x00b': cannot be read (", "null"
    ),
]


@pytest.mark.parametrize(("attempt", "words"), ROWS)
def test_bad_input(attempt: Try, words: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        attempt(tmp_path)
    message = str(caught.value)
    for word in words:
        assert word in message
    for mistake in caught.value.mistakes:
        assert any(word in str(mistake) for word in words), f"not expected: {mistake}"
        assert str(mistake).isprintable()
        assert len(str(mistake)) < 300 + len(str(tmp_path))


HEAD = 'budget = 1\n[[task]]\nname = "cls"\ncost = 1\n'
HOSTILE = {
    "a key of 20,000 parts": (
        ".".join("a" * 20_000) + " = 1\n" + HEAD,
        ":1: a key has more than 30 parts",
    ),
    "unknown keys": (
        "".join(f"k{k:06d}=1\n" for k in range(450_000)) + HEAD,
        "900,00",
        "the limit is 150,000",
    ),
    "unknown keys of a task": (
        HEAD + "".join(f"k{k:06d}=1\n" for k in range(450_000)),
        "the limit is 150,000",
    ),
    "tiers": (
        HEAD
        + "tiers = ["
        + ",".join(f"{{ after = {k + 1}, cost = 1 }}" for k in range(20_000))
        + "]",
        (
            ":5: task 'cls': tiers: there are 20,000, the limit is 1,000; put neighbouring ones"
            " together"
        ),
    ),
    "tasks": (
        "budget = 1\n" + "".join(f'[[task]]\nname = "t{k}"\ncost = 1\n' for k in range(99_000)),
        "task: there are 99,000, the limit is 5,000; leave some out",
    ),
    "caps": (
        HEAD + "[[cap]]\n" * 99_000,
        "cap: there are 99,000, the limit is 1,000; leave some out",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_small_file_does_not_take_long(name: str, tmp_path: Path) -> None:
    text, *words = HOSTILE[name]
    path = tmp_path / "problem.toml"
    path.write_text(text)
    check_refused(run_bounded("check", path), *words)


def test_a_small_standard_input_does_not_take_long(tmp_path: Path) -> None:
    text, *words = HOSTILE["a key of 20,000 parts"]
    path = tmp_path / "problem.toml"
    path.write_text(text)
    check_refused(run_bounded("plan", "-", stdin=path), *words)


def test_of_very_many_mistakes_the_first_are_said_and_the_others_counted() -> None:
    with pytest.raises(InputError) as caught:
        parse_problem("".join(f"k{k}=1\n" for k in range(1000)) + HEAD)
    mistakes = caught.value.mistakes
    assert [mistake.line for mistake in mistakes[:200]] == list(range(1, 201))
    assert str(mistakes[200]) == "and 800 more mistakes"


def test_near_misses_are_looked_for_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(
        errors.difflib, "get_close_matches", lambda name, known, n: looked.append(name) or []
    )
    use = ", ".join(f"t{k} = 1" for k in range(1000))
    with pytest.raises(InputError, match="known: cls"):
        parse_problem(HEAD + f'[[cap]]\nname = "hours"\nlimit = 1\nuse = {{ {use} }}')
    assert len(looked) == errors.MOST_HINTS


@pytest.mark.parametrize(
    "text", [" " * 300_000, "x = [" + ("1" * 3999 + ",") * 300 + "1" * 5000 + "]"]
)
def test_lines_are_found_in_one_go(text: str) -> None:
    """A line of blanks, and numbers that are nearly too long: both took as many steps as the square
    of their size."""
    script = (
        f"from allotment.problem_file import parse_problem\nparse_problem({HEAD!r} + 'y = 1\\n' +"
        f" {text!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script.replace(repr(text), "open(0).read()")],
        input=text.encode(),
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (4, 4)),
    )
    assert b"InputError" in done.stderr


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 55
    assert len({row.id for row in ROWS}) == len(ROWS)


def lines(text: str) -> list[tuple[int | None, str]]:
    with pytest.raises(InputError) as caught:
        parse_problem(text)
    return [(mistake.line, mistake.where) for mistake in caught.value.mistakes]


def test_all_mistakes_at_once_with_their_lines() -> None:
    text = """\
budget = -1                          # 1

[[task]]
name = "cls"
cost = "free"                        # 5
gain = { curve = "geometric", informativeness = 1, reduction = 0.9 }

[[task]]                             # 8, and no gain
name = "seg"
cost = 20
implies = ["clss"]                   # 11

[[cap]]
name = "hours"
limit = 10
use = { seg = 1, depth = 2 }         # 16
"""
    assert lines(text) == [
        (1, "budget"),
        (5, "task 'cls': cost"),
        (8, "task 'seg': gain"),
        (11, "task 'seg': implies"),
        (16, "cap 'hours': use"),
    ]


def test_lines_in_a_text_made_to_mislead() -> None:
    text = (
        '''\
note = """
[[task]]
cost = "1" ""
""\\"""""
'budget' = 5       # [[task]]
other = [          # [
  "]", '[[task]]',
  [1],
]
count_implied = 1  # 10
[[ task ]]
"name" = "# [[task]] \\" ["
"cost" = 0         # 13
[task . gain]
curve = 'geometric'
informativeness = 1
reduction = 2      # 17
[[task]]
name = '''
        + "'''"
        + """a=[
b"""
        + "'''"
        + """
cost = 1
have = -1          # 22
gain.curve = "geometric"
gain.informativeness = 1
gain.reduction = 3 # 25
"""
    )
    first = """task '# [[task]] " ['"""
    assert lines(text) == [
        (1, "note"),
        (6, "other"),
        (10, "count_implied"),
        (13, f"{first}: cost"),
        (17, f"{first}: gain: reduction"),
        (19, "task 2: name"),
        (22, "task 2: have"),
        (25, "task 2: gain: reduction"),
    ]


def test_a_repeated_name_is_reported_at_each_repetition() -> None:
    one = '[[task]]\nname = "a"\ncost = 1\n'
    assert lines("budget = 1\n" + 3 * one) == [(6, "task 'a'"), (9, "task 'a'")]


def test_a_wrong_task_is_still_known_to_others() -> None:
    text = """\
budget = 1
[[task]]
name = "a"
cost = 0
[[task]]
name = "b"
cost = 1
implies = ["a"]
[[cap]]
name = "hours"
limit = 1
use = { a = -1, c = 1 }
"""
    assert lines(text) == [
        (4, "task 'a': cost"),
        (12, "cap 'hours': use.a"),
        (12, "cap 'hours': use"),
    ]


def test_windows_line_ends_count_once() -> None:
    text = 'budget = 1\r\n\r\n[[task]]\r\nname = "a"\r\ncost = 0\r\n'
    assert lines(text) == [(5, "task 'a': cost")]


GOOD = """\
budget = "6300.5"
count_implied = true
[[task]]
name = "cls"
cost = 0.035
have = 300
pool = 10282
tiers = [{ after = 1000, cost = 0.03 }]
gain = { curve = "power", worth = 2.5, have = 300, exponent = 0.5, ceiling = 0.1 }
[[task]]
name = "seg"
cost = 20
implies = ["cls"]
[task.gain]
curve = "coupled"
inner = { curve = "geometric", informativeness = 1.13, reduction = 0.999 }
weights = { seg = 1, cls = 0.5 }
[[cap]]
name = "annotator hours"
limit = 120
use = { seg = 0.25, cls = 0.01 }
"""


def test_a_good_file_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(GOOD, encoding="utf-8-sig")  # with the mark that some editors put first
    found = read_problem(path)
    assert found.path == path
    assert found.problem == Problem(
        [
            Task("cls", "0.035", have=300, pool=10282, tiers={1000: "0.03"}),
            Task("seg", 20, implies=["cls"]),
        ],
        "6300.5",
        [Cap("annotator hours", 120, {"seg": "0.25", "cls": "0.01"})],
        count_implied=True,
    )
    assert found.gains == {
        "cls": Power(2.5, 300, 0.5, 0.1),
        "seg": Coupled(Geometric(1.13, 0.999), {"seg": 1, "cls": "0.5"}),
    }
    assert found.gains["cls"](100) == pytest.approx(2.5 * (300**-0.5 - 400**-0.5))


def test_a_file_without_gains_has_none() -> None:
    assert parse_problem('budget = 0\n[[task]]\nname = "a"\ncost = 1').gains is None


class Root(al.Curve):
    """A curve of someone's own that is not a frozen dataclass, so that it has no plain form."""

    def total(self, count: Any) -> Any:
        return 5 * np.sqrt(count)


class Measured:
    """Evidence that plans with someone's own curve."""

    def gains_for(self, problem: al.Problem) -> dict[str, al.Curve]:
        return {"a": al.Geometric(0.001, 0.9), "b": Root()}

    def outlook(self, problem: al.Problem, plan: al.Plan) -> al.Outlook:
        raise NotImplementedError


OWN = {
    "own": Root(),
    "scaled": 2 * Root(),
    "in a sum": al.Geometric(1, 0.5) + Root(),
    "scaled in a sum": 2 * (Root() + al.Logarithmic(1, 3)),
}
PLANNERS: dict[str, Callable[[al.Problem, Any], object]] = {
    "allocate": al.allocate,
    "frontier": al.frontier,
    "cheapest": lambda problem, gains: al.cheapest(problem, gains, target=1),
    "score": lambda problem, gains: al.score(problem, gains, {"a": 1}),
    "Plan": lambda problem, gains: al.Plan(problem, gains, {"a": 1, "b": 0}, 1.0),
}


@pytest.mark.parametrize("given", OWN)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("weight", [1, 3, 0])
def test_curves_of_incomplete_classes_are_refused(given: str, planner: str, weight: int) -> None:
    problem = al.Problem([al.Task("a", 1), al.Task("b", 1, weight=weight)], 100)
    with pytest.raises(al.InputError) as caught:
        PLANNERS[planner](problem, {"a": al.Geometric(0.001, 0.9), "b": OWN[given]})
    (mistake,) = caught.value.mistakes
    assert mistake.where == "gain of 'b'"
    assert mistake.what.startswith("Root is not a frozen dataclass")
    assert "write @dataclass(frozen=True) above it" in mistake.what


@pytest.mark.parametrize("planner", sorted(set(PLANNERS) - {"Plan"}))
def test_evidence_with_a_curve_of_an_incomplete_class_is_refused(planner: str) -> None:
    with pytest.raises(al.InputError, match="gain of 'b': Root is not a frozen dataclass"):
        PLANNERS[planner](al.Problem([al.Task("a", 1), al.Task("b", 1)], 100), Measured())


def test_a_coupled_curve_of_an_incomplete_class_is_refused() -> None:
    for curve in OWN.values():
        with pytest.raises(al.InputError, match="Root is not a frozen dataclass"):
            al.Coupled(curve, {"a": 1})


def test_a_table_of_a_curve_of_ones_own_works() -> None:
    curve, counts = Root(), [*range(20), 50, 100]
    problem = al.Problem([al.Task("a", 1), al.Task("b", 1)], 100)
    plan = al.allocate(
        problem,
        {"a": al.Geometric(0.001, 0.9), "b": al.Tabulated([curve(n) for n in counts], counts)},
    )
    assert plan.counts == {"a": 0, "b": 100}
    assert plan.value == pytest.approx(50)


def test_a_table_is_held_to_what_it_says_past_a_large_first_row() -> None:
    with pytest.raises(al.InputError, match="not concave: a label after 3 adds 1"):
        al.Tabulated([0, 1e12, 1e12 + 1, 1e12 + 1, 1e12 + 2])
    al.Tabulated([1e15 * (1 - 0.9**n) for n in range(400)])  # rounding is no mistake
    al.Tabulated([1e12 + 5 * n**0.5 if n else 0 for n in range(2000)])
    al.Tabulated([0.1 * n for n in range(2000)])
