"""The plans that a team would make anyway, under the same limits as the exact one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from allotment.problem import Problem, Task

CommonLevel = Callable[[Task, int], int]
"""how many labels of a task a common level gives it"""


def equal_images(problem: Problem) -> dict[str, int]:
    """The same number of new labels for every task."""
    return _raise_together(problem, problem.tasks, lambda task, level: level)


def equal_budget(problem: Problem) -> dict[str, int]:
    """The same money for every task."""
    return _raise_together(
        problem, problem.tasks, lambda task, level: _affordable(task, level * problem.unit)
    )


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


class _Cart:
    """Counts so far, with what they take, so that a change is priced without pricing everything
    again."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.counts = {task.name: task.floor for task in problem.tasks}
        self.money = problem.price(self.counts)
        self.used = [cap.used(self.counts) for cap in problem.caps]

    def fits(self, change: Mapping[Task, int]) -> bool:
        """Whether these tasks can have these counts beside the others."""
        if any(task.ceiling is not None and count > task.ceiling for task, count in change.items()):
            return False
        extra = sum(
            task.price(count) - task.price(self.counts[task.name]) for task, count in change.items()
        )
        if self.money + extra > self.problem.budget:
            return False
        for cap, used in zip(self.problem.caps, self.used, strict=True):
            more = sum(
                cap.use.get(task.name, 0) * (n - self.counts[task.name])
                for task, n in change.items()
            )
            if used + more > cap.limit:
                return False
        return True

    def take(self, change: Mapping[Task, int]) -> None:
        self.counts |= {task.name: count for task, count in change.items()}
        self.money = self.problem.price(self.counts)
        self.used = [cap.used(self.counts) for cap in self.problem.caps]


def _raise_together(
    problem: Problem, tasks: Iterable[Task], level_of: CommonLevel
) -> dict[str, int]:
    """Raise one level for all tasks until nothing more fits; a task that hits a limit stays where
    it is."""
    cart, rising, level = _Cart(problem), list(tasks), 0
    while rising:
        level = _highest(cart, rising, level_of, level)
        cart.take(_at_level(cart, rising, level_of, level))
        # Rounding leaves a little: a lot each in turn, and whoever can't take one is out.
        still = []
        for task in rising:
            more = {task: cart.counts[task.name] + task.lot}
            if cart.fits(more):
                cart.take(more)
                still.append(task)
        rising = still
    return cart.counts


def _at_level(
    cart: _Cart, rising: list[Task], level_of: CommonLevel, level: int
) -> dict[Task, int]:
    change = {}
    for task in rising:
        count = level_of(task, level) // task.lot * task.lot
        if task.ceiling is not None:
            count = min(count, task.ceiling)
        change[task] = max(count, cart.counts[task.name])
    return change


def _highest(cart: _Cart, rising: list[Task], level_of: CommonLevel, level: int) -> int:
    """The highest common level that fits."""
    low, high = level, level + 1
    while high < 2 * 10**15 and cart.fits(_at_level(cart, rising, level_of, high)):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high)
            if cart.fits(_at_level(cart, rising, level_of, middle))
            else (low, middle)
        )
    return low
