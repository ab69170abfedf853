"""What a reader of the page may change about a problem, as the page's link says it and as the
planner is asked; random ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import allotment as al
from allotment.errors import Infeasible
from allotment.plan import Evidence, Plan
from allotment.problem import show_exact

Source = Mapping[str, al.Curve] | Evidence
FIELDS = ("price", "weight", "least", "most", "hold")
EQUAL = 1e-9
"""share of its worth by which a plan may differ from one that is as good"""


@dataclass(frozen=True)
class WhatIf:
    """Changes as they are typed: the budget, and for the number of a task its fields."""

    budget: str | None = None
    tasks: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def link(self) -> str:
        parts = [] if self.budget is None else [f"budget={self.budget}"]
        for place, fields in sorted(self.tasks.items()):
            parts += [f"{place}.{key}={fields[key]}" for key in FIELDS if key in fields]
        return f"#what-if:{'&'.join(parts)}"

    @property
    def inputs(self) -> dict[str, Any]:
        """What is entered where: the budget, and the numbers of a task and of its field with a
        text."""
        fields = [
            (place, FIELDS.index(key), text)
            for place, texts in self.tasks.items()
            for key, text in texts.items()
        ]
        return {"budget": self.budget, "fields": fields}

    def can_be_typed(self, plan: Plan) -> bool:
        """A person can hold only what a plan buys; a link says any number."""
        tasks = plan.problem.tasks
        held = [(tasks[place], texts.get("hold")) for place, texts in self.tasks.items()]
        return all(
            hold is None or (task.frozen is None and hold == str(plan.counts[task.name]))
            for task, hold in held
        )

    def apply(self, problem: al.Problem) -> al.Problem:
        """The same problem with the changes."""
        tasks = [
            _change(task, self.tasks.get(place, {})) for place, task in enumerate(problem.tasks)
        ]
        budget = problem.budget if self.budget is None else self.budget
        return al.Problem(tasks, budget, problem.caps, problem.count_implied)


def _change(task: al.Task, fields: Mapping[str, str]) -> al.Task:
    if "price" in fields:
        task = task.with_cost(fields["price"])
    keys = {"weight": "weight", "least": "least", "most": "most", "hold": "frozen"}
    return al.Task.from_dict(
        task.to_dict() | {keys[key]: text for key, text in fields.items() if key in keys}
    )


def draw_what_if(rng: random.Random, plan: Plan) -> WhatIf:
    """One to four changes, of the size of what is there; some of them cannot be met."""
    problem = plan.problem
    budget = None
    tasks: dict[int, dict[str, str]] = {}
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(("budget", "budget", *FIELDS))
        place = rng.randrange(len(problem.tasks))
        task = problem.tasks[place]
        count = plan.counts[task.name]
        mine = tasks.setdefault(place, {})
        if kind == "budget":
            budget = _tell(problem.budget * rng.randint(0, 300) / 100)
        elif kind == "price":
            mine["price"] = _tell(max(task.cost * rng.randint(5, 300) / 100, Fraction(1, 100)))
        elif kind == "weight":
            mine["weight"] = rng.choice(("0", "0.5", "2", "3.25", "10"))
        elif kind == "least":
            mine["least"] = str(rng.randint(0, count + 2))
        elif kind == "most":
            mine["most"] = str(rng.randint(0, 2 * count + 3))
        else:
            mine["hold"] = str(max(0, count + task.lot * rng.randint(-2, 2)))
    return WhatIf(budget, {place: fields for place, fields in tasks.items() if fields})


def _tell(amount: Fraction) -> str:
    """As it is typed, to the cent."""
    return show_exact(Fraction(round(amount * 100), 100))


def judge(asked: WhatIf, problem: al.Problem, source: Source, shown: Mapping[str, Any]) -> str:
    """What is wrong with the page's answer to a what if: nothing, if it is the planner's own, or as
    good in every respect."""
    changed = asked.apply(problem)
    try:
        best = al.allocate(changed, source)
    except Infeasible as error:
        is_idle = "buys nothing" in str(error)
        is_same = not any(shown["counts"]) if is_idle else bool(shown["wrong"])
        return "" if is_same else f"{asked.link}: {error}; the page says {shown}"
    if shown["wrong"]:
        return f"{asked.link}: the page says {shown['wrong']}; the plan is {best.counts}"
    counts = dict(zip(changed.names, shown["counts"], strict=True))
    if counts == best.counts:
        return ""
    mine = al.score(changed, source, counts)
    slack = EQUAL * max(abs(best.value), 1e-9)
    if mine.feasible and abs(mine.value - best.value) <= slack:
        return ""
    return f"{asked.link}: {counts} of {mine.value!r}, not {best.counts} of {best.value!r}"
