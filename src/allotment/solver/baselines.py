"""The plans that a team would make anyway, under the same limits as the exact one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from allotment.problem import Problem, Task

Level = Callable[[Task, int], int]
"""the most labels of a task (up to a count) that a common level allows"""


def equal_images(problem: Problem) -> dict[str, int]:
    """The same number of new labels for every task."""
    return _raise_together(problem, problem.tasks, lambda task, level: level)


def equal_budget(problem: Problem) -> dict[str, int]:
    """The same money for every task."""
    return _raise_together(problem, problem.tasks, lambda task, level: _affordable(task, level * problem.unit))


def one_task(problem: Problem, name: str) -> dict[str, int]:
    """Everything for one task, beyond what the others must get."""
    return _raise_together(problem, [problem[name]], lambda task, level: level)


def _affordable(task: Task, money: Fraction) -> int:
    """How many labels of a task some money buys."""
    if money < task.fee:
        return 0
    count, left = 0, money - task.fee
    for after, end, price in task.prices:
        here = int(left // price)
        if end is None or here < end - after:
            return count + here
        count, left = end, left - (end - after) * price
    return count


def _raise_together(problem: Problem, tasks: Iterable[Task], level_of: Level) -> dict[str, int]:
    """Raise one level for all tasks until nothing more fits; a task that hits a limit stays where it is."""
    counts = {task.name: task.floor for task in problem.tasks}
    rising = list(tasks)
    level = 0
    while rising:
        level = _highest(problem, counts, rising, level_of, level)
        counts |= {task.name: _count_at(task, level_of, level, counts) for task in rising}
        # Rounding leaves a little: one lot each in turn, then whoever can't take one is out.
        still = []
        for task in rising:
            more = counts | {task.name: counts[task.name] + task.lot}
            if _fits(problem, more, task):
                counts = more
                still.append(task)
        rising = still
    return counts


def _count_at(task: Task, level_of: Level, level: int, counts: dict[str, int]) -> int:
    count = level_of(task, level) // task.lot * task.lot
    if task.ceiling is not None:
        count = min(count, task.ceiling)
    return max(count, counts[task.name])


def _highest(problem: Problem, counts: dict[str, int], rising: list[Task], level_of: Level, level: int) -> int:
    """The highest common level that fits."""

    def fits(at: int) -> bool:
        trial = counts | {task.name: _count_at(task, level_of, at, counts) for task in rising}
        return problem.price(trial) <= problem.budget and all(cap.used(trial) <= cap.limit for cap in problem.caps)

    high = level + 1
    while fits(high) and high < 2 * 10**15:
        high *= 2
    low = level
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _fits(problem: Problem, counts: dict[str, int], task: Task) -> bool:
    if task.ceiling is not None and counts[task.name] > task.ceiling:
        return False
    return problem.price(counts) <= problem.budget and all(cap.used(counts) <= cap.limit for cap in problem.caps)
