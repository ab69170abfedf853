"""The limits of a purchase in words: which clash, which a plan breaks, which keep money from being
spent."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from allotment.amounts import show
from allotment.problem import Problem, Task


def find_clashes(problem: Problem) -> list[str]:
    """Every pair of limits that no plan can meet together, and what would resolve it."""
    clashes = [clash for task in problem.tasks for clash in _task_clashes(task)]
    if clashes:
        return clashes
    floors = {task.name: task.floor for task in problem.tasks}
    cost = problem.price(floors)
    if cost > problem.budget:
        clashes.append(_budget_clash(problem, cost))
    for cap in problem.caps:
        used = cap.used(floors)
        if used > cap.limit:
            who = _join(
                f"{_floor_name(task)} of {task.name}"
                for task in problem.tasks
                if cap.use.get(task.name)
            )
            clashes.append(
                f"{who} needs {show(used)} of {cap.name!r}, its limit is {show(cap.limit)}: "
                f"raise the limit to {show(used)} or lower {who}"
            )
    return clashes


def _task_clashes(task: Task) -> list[str]:
    name, clashes = task.name, []
    if task.frozen is not None:
        for key, limit in (("pool", task.pool), ("most", task.most)):
            if limit is not None and task.frozen > limit:
                clashes.append(
                    f"frozen of {name} is {task.frozen}, {key} is {limit}: lower frozen or raise"
                    f" {key}"
                )
        if task.frozen < task.least:
            clashes.append(
                f"frozen of {name} is {task.frozen}, least is {task.least}: raise frozen or lower"
                " least"
            )
        if task.frozen % task.lot:
            near = task.frozen // task.lot * task.lot
            clashes.append(
                f"frozen of {name} is {task.frozen}, but labels come in lots of {task.lot}: "
                f"freeze {near} or {near + task.lot}, or change lot"
            )
        return clashes
    for key, limit in (("pool", task.pool), ("most", task.most)):
        if limit is None or task.floor <= limit // task.lot * task.lot:
            continue
        least = f"least of {name} is {task.least}"
        lots = f" ({task.floor} in lots of {task.lot})" if task.lot > 1 else ""
        most = f"{key} is {limit}"
        whole = f" ({limit // task.lot * task.lot} in lots of {task.lot})" if task.lot > 1 else ""
        clashes.append(f"{least}{lots}, {most}{whole}: lower least or raise {key}")
    return clashes


def _budget_clash(problem: Problem, cost: Fraction) -> str:
    buyers = [task for task in problem.tasks if task.floor]
    parts = [
        f"{_floor_name(task)} of {task.name} costs {show(task.price(task.floor))}"
        for task in buyers
    ]
    names = _join(f"{_floor_name(task)} of {task.name}" for task in buyers)
    total = f" ({show(cost)} together)" if len(buyers) > 1 else ""
    return (
        f"{_join(parts)}{total}, budget is {show(problem.budget)}: raise the budget to {show(cost)}"
        f" or lower {names}"
    )


def explain_idle_budget(problem: Problem) -> str | None:
    """Why not even one label can be bought, if that is so although some task has room for one."""
    steps = [
        (task.price(task.floor + task.lot) - task.price(task.floor), task)
        for task in problem.tasks
        if task.ceiling is None or task.ceiling > task.floor
    ]
    left = problem.budget - problem.price({task.name: task.floor for task in problem.tasks})
    if any(task.floor for task in problem.tasks) or not steps:
        return None
    cost, task = min(steps, key=lambda step: step[0])
    if cost <= left:
        return None
    what = "label" if task.lot == 1 else f"lot of {task.lot}"
    return (
        f"budget {show(problem.budget)} buys nothing: the cheapest {what} ({task.name}) costs"
        f" {show(cost)}; raise the budget to at least {show(cost)}"
    )


def find_broken(problem: Problem, counts: Mapping[str, int]) -> list[str]:
    """Every limit that these counts break, by name."""
    broken = []
    for task in problem.tasks:
        count = counts.get(task.name, 0)
        if task.frozen is not None and count != task.frozen:
            broken.append(f"frozen of {task.name}: {count} is not {task.frozen}")
        if count < task.least:
            broken.append(f"least of {task.name}: {count} is below {task.least}")
        for key, limit in (("pool", task.pool), ("most", task.most)):
            if limit is not None and count > limit:
                broken.append(f"{key} of {task.name}: {count} is above {limit}")
        if count % task.lot:
            broken.append(f"lot of {task.name}: {count} is not a multiple of {task.lot}")
    spent = problem.price(counts)
    if spent > problem.budget:
        broken.append(f"budget: {show(spent)} is above {show(problem.budget)}")
    for cap in problem.caps:
        if cap.used(counts) > cap.limit:
            broken.append(f"{cap.name}: {show(cap.used(counts))} is above {show(cap.limit)}")
    return broken


def explain_rest(
    problem: Problem, counts: Mapping[str, int], worth_more: Mapping[str, bool]
) -> list[str]:
    """Why the money that a plan leaves is not spent: for every task, what keeps it from one more
    lot."""
    left = problem.budget - problem.price(counts)
    if not left:
        return []
    return [
        f"{task.name}: {_obstacle(problem, task, counts, left, worth_more[task.name])}"
        for task in problem.tasks
    ]


def _obstacle(
    problem: Problem, task: Task, counts: Mapping[str, int], left: Fraction, worth_more: bool
) -> str:
    count = counts[task.name]
    if task.frozen is not None:
        return f"frozen at {task.frozen}"
    for key, limit in (("pool", task.pool), ("most", task.most)):
        if limit is not None and count + task.lot > limit:
            return (
                f"{key} of {limit} reached"
                if task.lot == 1
                else f"{key} of {limit} leaves no whole lot"
            )
    label = "a label" if task.lot == 1 else f"a lot of {task.lot}"
    cost = task.price(count + task.lot) - task.price(count)
    if cost > left:
        fee = f", fee of {show(task.fee)} included" if not count and task.fee else ""
        return f"{label} costs {show(cost)}{fee}"
    if not worth_more:
        return "more labels are worth nothing"
    for cap in problem.caps:
        free = cap.limit - cap.used(counts)
        if cap.use.get(task.name, Fraction(0)) * task.lot > free:
            return (
                f"{label} takes {show(cap.use[task.name] * task.lot)} of {cap.name!r}, {show(free)}"
                " is left"
            )
    return f"{label} adds less than rounding to the plan's worth"


def _floor_name(task: Task) -> str:
    return "frozen" if task.frozen is not None else "least"


def _join(parts: object) -> str:
    *most, last = list(parts)  # type: ignore[call-overload]
    return f"{', '.join(most)} and {last}" if most else str(last)
