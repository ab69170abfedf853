"""Random problems for the tests, and a solver that tries every plan."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

import allotment as al
from allotment.gains import Scaled

Instance = tuple[al.Problem, dict[str, al.Curve]]
KINDS = (
    "pool", "least", "most", "frozen", "lot", "fee", "tiers_up", "tiers_down", "cap", "implied",
    "coupled", "weight",
    "cents",
)  # fmt: skip
PAIRS = tuple(itertools.combinations(KINDS, 2))


def kinds_of(index: int, rng: random.Random) -> set[str]:
    """At least three kinds of limit: every pair in turn, and some more."""
    chosen = set(PAIRS[index % len(PAIRS)])
    while len(chosen - {"cents"}) < 3 or rng.random() < 0.4:
        chosen.add(rng.choice(KINDS))
    return chosen


def kinds_in(problem: al.Problem, gains: dict[str, al.Curve]) -> set[str]:
    """The kinds of limit that a problem really has, except `most` (every task here has one) and
    `cents`."""
    found = {"cap"} if problem.caps else set()
    for task in problem.tasks:
        steps = [after - before for (*_, before), (*_, after) in itertools.pairwise(task.prices)]
        has = {
            "pool": task.pool is not None,
            "least": task.least > 0,
            "frozen": task.frozen is not None,
            "lot": task.lot > 1,
            "fee": task.fee > 0,
            "tiers_up": any(step > 0 for step in steps),
            "tiers_down": any(step < 0 for step in steps),
            "implied": problem.count_implied and bool(task.implies),
            "coupled": any(isinstance(term, al.Coupled) for term in gains[task.name].terms),
            "weight": task.weight != 1,
        }
        found |= {kind for kind, there in has.items() if there}
    return found


def random_curve(rng: random.Random, have: int, whole: bool = False) -> al.Curve:
    """Any concave curve, sometimes worthless; with whole numbers only, so that ties are ties, if
    asked."""
    family = (
        "tabulated"
        if whole
        else rng.choice(["geometric", "geometric", "power", "logarithmic", "tabulated", "sum"])
    )
    size = rng.choice([-1.0, 0.0]) if rng.random() < 0.06 else rng.uniform(0.2, 3)
    if family == "geometric":
        return al.Geometric(
            size, rng.choice([0.0, 1.0, 0.5, rng.uniform(0.2, 0.99), rng.uniform(0.9, 0.999)])
        )
    if family == "power":
        return al.Power(
            size * 5, have, rng.uniform(0.1, 2), rng.choice([np.inf, np.inf, rng.uniform(0.5, 3)])
        )
    if family == "logarithmic":
        return al.Logarithmic(size, have)
    if family == "sum":
        return al.Geometric(abs(size), rng.uniform(0.5, 1)) + al.Logarithmic(
            rng.uniform(0.1, 1), have
        )
    slopes = sorted((rng.randint(-1, 6) for _ in range(rng.randint(1, 9))), reverse=True)
    counts = list(
        itertools.accumulate((1 if whole else rng.randint(1, 2) for _ in slopes), initial=0)
    )
    steps = [b - a for a, b in itertools.pairwise(counts)]
    values = list(
        itertools.accumulate(
            (slope * step for slope, step in zip(slopes, steps, strict=True)), initial=0
        )
    )
    return al.Tabulated(values, counts)


def random_problem(
    seed: int, index: int, whole: bool = False
) -> tuple[al.Problem, dict[str, al.Curve], set[str]]:
    """A small problem with at least three kinds of limit whose limits do not clash."""
    rng = random.Random(f"{seed} {index}")
    kinds = kinds_of(index, rng)
    while True:  # a `least` may be drawn as 0, a price may have no room to fall
        problem, gains = _draw_problem(rng, kinds, whole)
        if kinds - {"most", "cents"} <= kinds_in(problem, gains):
            return problem, gains, kinds


def _draw_tiers(
    rng: random.Random, kinds: set[str], cost: Fraction, cents: Fraction
) -> list[tuple[int, Fraction]]:
    tiers: list[tuple[int, Fraction]] = []
    if not kinds & {"tiers_up", "tiers_down"}:
        return tiers
    after, price = 0, cost
    for _ in range(rng.randint(1, 2)):
        after += rng.randint(1, 5)
        if "tiers_up" in kinds and ("tiers_down" not in kinds or rng.random() < 0.5):
            price = price + rng.randint(1, 20) * cents
        else:
            price = max(price - rng.randint(1, 9) * cents, cents)
        tiers.append((after, price))
    return tiers


def _draw_problem(
    rng: random.Random, kinds: set[str], whole: bool
) -> tuple[al.Problem, dict[str, al.Curve]]:
    size = rng.choice([2, 3, 3, 4])
    names = ["a", "b", "c", "d"][:size]
    cents = Fraction(1, 100) if "cents" in kinds else Fraction(1)
    most_count = {2: 25, 3: 12, 4: 7}[size]
    tasks: list[al.Task] = []
    holder = {kind: rng.randrange(size) for kind in KINDS}
    for at, name in enumerate(names):
        mine = {
            kind for kind in KINDS if kind in kinds and (holder[kind] == at or rng.random() < 0.35)
        }
        lot = rng.choice([2, 3, 5]) if "lot" in mine else 1
        limits: dict[str, object] = {
            "most": rng.randint(1, most_count) if "most" in mine else most_count
        }
        if "pool" in mine:
            limits["pool"] = rng.randint(1, most_count)
        top = min(int(str(limit)) for limit in limits.values()) // lot * lot
        if "least" in mine:
            limits["least"] = rng.randint(0, top)
        if "frozen" in mine:
            least = int(str(limits.get("least", 0)))
            frozen = rng.randrange(-(-least // lot) * lot, top + 1, lot)
            limits["frozen"] = frozen
        cost = rng.randint(1, 30) * cents
        tiers = _draw_tiers(rng, mine, cost, cents)
        tasks.append(
            al.Task(
                name,
                cost,
                have=rng.choice([0, 1, 10, 300]),
                lot=lot,
                fee=rng.randint(1, 40) * cents if "fee" in mine else 0,
                tiers=tiers,
                weight=rng.choice([0, 0.5, 2, 3]) if "weight" in mine else 1,
                implies=(
                    rng.choice([other for other in names if other != name])
                    if "implied" in mine
                    else ()
                ),
                **limits,
            )
        )
    floors = {task.name: task.floor for task in tasks}
    floor_cost = sum(task.price(task.floor) for task in tasks)
    spread = sum((task.price(task.ceiling or 0) for task in tasks), Fraction(0)) - floor_cost
    budget = floor_cost + Fraction(rng.randint(0, 100), 100) * spread
    caps = []
    if "cap" in kinds:
        for number in range(rng.choice([1, 1, 2])):
            use = {
                name: Fraction(rng.randint(1, 9), rng.choice([1, 4]))
                for name in rng.sample(names, rng.randint(1, size))
            }
            least = sum(use.get(task.name, 0) * floors[task.name] for task in tasks)
            free = sum(use.get(task.name, 0) * ((task.ceiling or 0) - task.floor) for task in tasks)
            caps.append(
                al.Cap(f"hours {number}", least + free * Fraction(rng.randint(5, 100), 100), use)
            )
    problem = al.Problem(tasks, Fraction(int(budget * 100), 100), caps, "implied" in kinds)
    implied = {other for task in tasks for other in task.implies}
    gains: dict[str, al.Curve] = {}
    for task in tasks:
        curve = random_curve(rng, task.have, whole)
        while problem.count_implied and (implied or task.implies) and curve.sign < 0:
            curve = random_curve(rng, task.have, whole)
        gains[task.name] = curve
    if "coupled" in kinds:
        name = names[holder["coupled"]]
        for each in names:
            while gains[each].sign < 0:
                gains[each] = random_curve(rng, 10, whole)
        inner = (
            al.Tabulated([0, 3, 5, 6])
            if whole
            else al.Geometric(rng.uniform(0.2, 2), rng.uniform(0.3, 0.99))
        )
        weights = {
            each: 1 if whole else rng.choice([1, "0.5", "0.25", 2]) for each in rng.sample(names, 2)
        }
        gains[name] = gains[name] + al.Coupled(inner, weights)
    return problem, gains


@dataclass(frozen=True)
class Root(al.Curve):
    """A curve of one's own, as short as can be."""

    size: float

    def total(self, count: Any) -> Any:
        return self.size * np.sqrt(count)

    def by_hand(self, count: Decimal) -> Decimal:
        return Decimal(self.size) * count.sqrt()


@dataclass(frozen=True)
class FineRoot(Root):
    """The same with all that can be given besides."""

    def rise(self, count: Any, more: Any) -> Any:
        after = np.sqrt(np.add(count, more)) + np.sqrt(count)
        return self.size * np.divide(more, np.where(after > 0, after, 1.0))

    def reach(self, slope: float, most: int) -> float:
        return (self.size / (2 * slope)) ** 2 if slope > 0 else most


def own_curve(rng: random.Random) -> al.Curve:
    """A curve of one's own, alone, scaled, or in a sum with others."""
    root = rng.choice([Root, FineRoot])(rng.choice([5.0, rng.uniform(0.2, 5)]))
    form = rng.choice(["alone", "alone", "scaled", "sum", "own sum", "table"])
    if form == "scaled":
        return rng.uniform(0.1, 3) * root
    if form == "sum":
        return root + al.Geometric(rng.uniform(0.2, 3), rng.uniform(0.2, 0.999))
    if form == "own sum":
        return 0.5 * root + Root(rng.uniform(0.1, 2)) + al.Logarithmic(rng.uniform(0.1, 1), 3)
    if form == "table":  # which falls in the end
        return root + al.Tabulated([0, 4, 6, 6, 3])
    return root


def own_problem(seed: int, index: int) -> tuple[al.Problem, dict[str, al.Curve], set[str]]:
    """As `random_problem`, with a curve of one's own for one task at least, and in what is
    coupled."""
    problem, gains, kinds = random_problem(seed, index)
    rng = random.Random(f"own {seed} {index}")
    holder = rng.choice(problem.names)
    for name, curve in gains.items():
        coupled = [term for term in curve.terms if isinstance(term, al.Coupled)]
        if name == holder or rng.random() < 0.5:
            gains[name] = sum(coupled, own_curve(rng))
        if coupled and rng.random() < 0.5:
            inner = own_curve(rng)
            while any(isinstance(term, al.Tabulated) for term in inner.terms):
                inner = own_curve(rng)
            rest = [term for term in gains[name].terms if not isinstance(term, al.Coupled)]
            shared = [al.Coupled(inner, each.weights) for each in coupled]
            gains[name] = sum([*rest, *shared][1:], rest[0])
    return problem, gains, kinds


def every_plan(
    problem: al.Problem, gains: dict[str, al.Curve]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The counts of every plan, its money, and its value (-inf if it breaks a limit)."""
    ranges = []
    for task in problem.tasks:
        top = min(limit for limit in (task.pool, task.most) if limit is not None)
        low = task.least
        counts = [n for n in range(low, top + 1) if n % task.lot == 0]
        ranges.append([task.frozen] if task.frozen is not None else counts)
    grid = np.array(list(itertools.product(*ranges)), dtype=np.int64)
    column = {task.name: grid[:, i] for i, task in enumerate(problem.tasks)}
    unit = Fraction(1, 10_000)
    money = np.zeros(len(grid), dtype=np.int64)
    for task in problem.tasks:
        prices = np.array(
            [_price_by_hand(task, n) / unit for n in range(int(grid.max()) + 1)], dtype=np.int64
        )
        money += prices[column[task.name]]
    good = money <= int(problem.budget / unit)
    for cap in problem.caps:
        used = sum(int(each * 400) * column[name] for name, each in cap.use.items())
        good &= used <= cap.limit * 400
    value = np.zeros(len(grid))
    for task in problem.tasks:
        own = column[task.name]
        if problem.count_implied:
            implied = sum(
                (column[other.name] for other in problem.tasks if task.name in other.implies),
                0 * own,
            )
            most = own + implied if task.pool is None else np.maximum(task.pool, own)
            own = np.minimum(own + implied, most)
        for term in gains[task.name].terms:
            if isinstance(term, al.Coupled):
                total = sum(float(weight) * column[name] for name, weight in term.weights.items())
                value += task.weight * term.inner(total)
            else:
                value += task.weight * term(own)
    return grid, money, np.where(good, value, -np.inf)


def try_every_plan(problem: al.Problem, gains: dict[str, al.Curve]) -> tuple[float, dict[str, int]]:
    """The best value, and the plan that has it with least money and then in task order, by looking
    at all of them."""
    grid, money, value = every_plan(problem, gains)
    best = value.max()
    ties = np.flatnonzero(value >= best - 1e-13 * max(1.0, abs(best)))
    first = min(ties, key=lambda at: (money[at], *(-grid[at])))
    return float(best), dict(zip(problem.names, map(int, grid[first]), strict=True))


def _price_by_hand(task: al.Task, count: int) -> Fraction:
    """Label by label, so that a mistake in `Task.price` shows."""
    total = task.fee if count else Fraction(0)
    for label in range(1, count + 1):
        price = task.cost
        for after, cost in task.tiers:
            if label > after:
                price = cost
        total += price
    return total


def value_by_hand(problem: al.Problem, gains: dict[str, al.Curve], counts: dict[str, int]) -> float:
    """The value of a plan from the definition alone."""
    total = 0.0
    for task in problem.tasks:
        labels = counts[task.name]
        if problem.count_implied:
            labels += sum(
                counts[other.name] for other in problem.tasks if task.name in other.implies
            )
            if task.pool is not None:
                labels = max(min(labels, task.pool), counts[task.name])
        for term in gains[task.name].terms:
            if isinstance(term, al.Coupled):
                mixed = sum(weight * counts[name] for name, weight in term.weights.items())
                total += task.weight * term.inner(float(mixed))
            else:
                total += task.weight * term(labels)
    return total


def keeps_limits(problem: al.Problem, counts: dict[str, int]) -> bool:
    """Whether a plan breaks nothing, from the definition alone."""
    for task in problem.tasks:
        count = counts[task.name]
        limits = [limit for limit in (task.pool, task.most) if limit is not None]
        if count % task.lot or count < task.least or any(count > limit for limit in limits):
            return False
        if task.frozen not in (None, count):
            return False
    used = [
        sum(each * counts[name] for name, each in cap.use.items()) <= cap.limit
        for cap in problem.caps
    ]
    return (
        all(used)
        and sum(_price_fast(task, counts[task.name]) for task in problem.tasks) <= problem.budget
    )


def _price_fast(task: al.Task, count: int) -> Fraction:
    """Tier by tier from the dearest end: what lies above each threshold, at the difference of the
    two prices."""
    total, before = (task.fee if count else Fraction(0)) + count * task.cost, task.cost
    for after, cost in task.tiers:
        total += max(0, count - after) * (cost - before)
        before = cost
    return total


def buy_by_density(problem: al.Problem, gains: dict[str, al.Curve]) -> dict[str, int]:
    """The greedy plan: whatever adds most per money next, in steps that become finer, while
    anything fits."""
    counts = {task.name: task.floor for task in problem.tasks}
    steps = {
        task.name: task.lot * max(1, int(problem.budget / (task.cost * task.lot * 40)))
        for task in problem.tasks
    }
    value = value_by_hand(problem, gains, counts)
    while True:
        choices = []
        for task in problem.tasks:
            more = counts | {task.name: counts[task.name] + steps[task.name]}
            gain = value_by_hand(problem, gains, more) - value
            if gain > 0 and keeps_limits(problem, more):
                money = _price_fast(task, more[task.name]) - _price_fast(task, counts[task.name])
                choices.append((gain / float(money), task.name))
        if choices:
            name = max(choices)[1]
            counts[name] += steps[name]
            value = value_by_hand(problem, gains, counts)
        elif all(steps[task.name] == task.lot for task in problem.tasks):
            return counts
        else:
            steps = {
                task.name: max(1, steps[task.name] // task.lot // 4) * task.lot
                for task in problem.tasks
            }


def choices_of(task: al.Task, problem: al.Problem) -> tuple[np.ndarray, np.ndarray]:
    """Every count of a task that the budget allows, and its money in units of the problem."""
    limits = [
        limit
        for limit in (task.pool, task.most, int(problem.budget / min(p for *_, p in task.prices)))
        if limit is not None
    ]
    counts = np.arange(
        -(-task.least // task.lot) * task.lot, max(min(limits), task.least) + 1, task.lot
    )
    if task.frozen is not None:
        counts = np.array([task.frozen])
    scale = problem.unit
    money = int(task.fee / scale) * (counts > 0) + counts * int(task.cost / scale)
    before = task.cost
    for after, cost in task.tiers:
        money = money + np.maximum(counts - after, 0) * int((cost - before) / scale)
        before = cost
    fits = money <= int(problem.budget // scale)
    return counts[fits], money[fits].astype(np.int64)


def best_by_table(problem: al.Problem, gains: dict[str, al.Curve]) -> np.ndarray:
    """Plain dynamic programming: the best value of every whole budget; one limit only, tasks on
    their own."""
    assert not problem.caps
    assert not problem.count_implied
    size = int(problem.budget // problem.unit) + 1
    best = np.zeros(size)
    for task in problem.tasks:
        after = np.full(size, -np.inf)
        for count, money in zip(*choices_of(task, problem), strict=True):
            worth = task.weight * sum(term(int(count)) for term in gains[task.name].terms)
            after[money:] = np.maximum(after[money:], best[: size - money] + worth)
        best = after
    return best


def dual_bound(problem: al.Problem, gains: dict[str, al.Curve], price: float) -> float:
    """No plan is worth more, whatever the price of one unit of money; caps are left out, tasks
    stand on their own."""
    total = price * int(problem.budget // problem.unit)
    for task in problem.tasks:
        counts, money = choices_of(task, problem)
        worth = sum(
            (task.weight * term(counts) for term in gains[task.name].terms), np.zeros(len(counts))
        )
        total += float(np.max(worth - price * money))
    return total


def large_curve(rng: random.Random, have: int, reach: float, falls: bool) -> al.Curve:
    """A curve that bends somewhere around `reach` labels; a table may fall in the end."""
    size = rng.uniform(0.2, 5)
    family = rng.choice(["geometric", "power", "logarithmic", "tabulated", "sum", "ceiling"])
    if family == "geometric":
        return al.Geometric(size, 1 - 1 / max(2.0, reach * rng.uniform(0.1, 3)))
    if family == "power":
        return al.Power(size * reach, have, rng.uniform(0.1, 1.5))
    if family == "ceiling":
        return al.Power(size * 10, have, rng.uniform(0.1, 1), size * rng.uniform(1, 8))
    if family == "logarithmic":
        return al.Logarithmic(size * reach / 10, have)
    if family == "sum":
        return al.Geometric(size, 1 - 1 / max(2.0, reach)) + al.Logarithmic(
            size * rng.uniform(0.1, 2), have
        )
    counts = [0, *sorted(rng.sample(range(1, int(3 * reach) + 12), rng.randint(1, 8)))]
    slopes = sorted((rng.uniform(-0.2 if falls else 0, 3) for _ in counts[1:]), reverse=True)
    steps = [
        slope * (b - a) for slope, (a, b) in zip(slopes, itertools.pairwise(counts), strict=True)
    ]
    return al.Tabulated(list(itertools.accumulate(steps, initial=0.0)), counts)


SINGLE = (
    "pool",
    "least",
    "most",
    "frozen",
    "lot",
    "fee",
    "tiers_up",
    "tiers_down",
    "weight",
    "cents",
)


def large_problem(
    seed: object,
    kinds: tuple[str, ...] = KINDS,
    sizes: tuple[int, int] = (2, 12),
    budgets: tuple[int, int] = (100, 10**6),
) -> tuple[al.Problem, dict[str, al.Curve]]:
    """A larger problem, beyond trying every plan, with about half of the given kinds of limit."""
    rng = random.Random(f"large {seed}")
    chosen = {kind for kind in kinds if rng.random() < 0.5}
    size = rng.randint(*sizes)
    cents = Fraction(1, 100) if "cents" in chosen else Fraction(1)
    money = round(np.exp(rng.uniform(np.log(budgets[0]), np.log(budgets[1]))))
    names = [f"t{index}" for index in range(size)]
    tasks, gains = [], {}
    masks = rng.sample(names, min(size, 2)) if "implied" in chosen else []
    for name in names:
        mine = {kind for kind in sorted(chosen) if rng.random() < 0.4}
        cost = rng.choice(
            [1, 2, 3, rng.randint(1, 30), rng.randint(1, max(2, min(1000, money // 20)))]
        )
        reach = max(1.0, money / cost / size)
        lot = rng.choice([2, 5, 10, 100]) if "lot" in mine and reach > 100 else 1
        tiers = []
        if mine & {"tiers_up", "tiers_down"}:
            after, price = 0, cost
            for _ in range(rng.randint(1, 3)):
                after += rng.randint(1, int(reach) + 1)
                price = (
                    price + rng.randint(1, 20)
                    if "tiers_up" in mine
                    else max(1, price - rng.randint(1, 9))
                )
                tiers.append((after, price * cents))
        limits: dict[str, object] = {}
        if "pool" in mine:
            limits["pool"] = rng.randint(0, int(2 * reach) + lot)
        if "most" in mine:
            limits["most"] = rng.randint(0, int(2 * reach) + lot)
        top = (
            min([int(str(limit)) for limit in limits.values()], default=int(reach / 5)) // lot * lot
        )
        if "least" in mine:
            limits["least"] = rng.randint(0, min(top, int(reach / 5)))
            limits["least"] = limits["least"] // lot * lot
        elif "frozen" in mine:
            limits["frozen"] = rng.randint(0, min(top, int(reach / 5))) // lot * lot
        tasks.append(
            al.Task(
                name,
                cost * cents,
                have=rng.choice([0, 1, 10, 300, 10_000]),
                lot=lot,
                fee=rng.randint(1, money // 10 + 1) * cents if "fee" in mine else 0,
                tiers=tiers,
                weight=rng.choice([0, "0.333", 0.5, 2, 3]) if "weight" in mine else 1,
                implies=(
                    rng.choice([other for other in names if other != name]) if name in masks else ()
                ),
                **limits,
            )
        )
        gains[name] = large_curve(rng, tasks[-1].have, reach, not chosen & {"implied", "coupled"})
    floors = {task.name: task.floor for task in tasks}
    floor_cost = sum(task.price(task.floor) for task in tasks)
    steps = [task.price(task.floor + task.lot) - task.price(task.floor) for task in tasks]
    budget = max(money * cents, floor_cost + min(steps))
    caps = []
    if "cap" in chosen:
        use = {
            name: Fraction(rng.randint(1, 9), rng.choice([1, 4]))
            for name in rng.sample(names, rng.randint(1, size))
        }
        least = sum(
            (use.get(name, Fraction(0)) * floor for name, floor in floors.items()), Fraction(0)
        )
        caps.append(al.Cap("hours", least + round(float(budget) * rng.uniform(0.05, 1)), use))
    if "coupled" in chosen:
        name = rng.choice(names)
        weights = {each: rng.choice([1, "0.5", "0.333", 2]) for each in rng.sample(names, 2)}
        gains[name] = gains[name] + al.Coupled(
            al.Geometric(rng.uniform(0.2, 2), 1 - 1 / (money / 20)), weights
        )
    return al.Problem(tasks, budget, caps, "implied" in chosen), gains


FIXED = ("frozen", "least", "table", "ceiling", "coupled", "implied", "out of reach")
"""ways in which a problem can hold value that no decision changes"""


def add_fixed(problem: al.Problem, gains: dict[str, al.Curve], kind: str, size: float) -> Instance:
    """The same decisions beside something worth about `size` that is not to be decided; `least`
    moves what is."""
    tasks, budget, gains = list(problem.tasks), problem.budget, dict(gains)
    implied = problem.count_implied
    if kind == "frozen":
        tasks.insert(1, al.Task("fixed", 1, frozen=5, most=5))
        gains["fixed"] = al.Power(size, 10, 0.5) + al.Geometric(size, 0.5)
        budget += 5
    elif kind == "ceiling":
        tasks.insert(0, al.Task("fixed", 1, most=0, weight=size))
        gains["fixed"] = al.Geometric(3, 0.9)
    elif kind == "out of reach":
        tasks.insert(0, al.Task("fixed", int(budget) + 1, most=2))
        gains["fixed"] = al.Geometric(size, 0.9)
    elif kind == "implied":
        implied = True
        tasks += [
            al.Task("fixed", 1, most=0, pool=3),
            al.Task("mask", 1, frozen=3, most=3, implies="fixed"),
        ]
        gains |= {"fixed": al.Logarithmic(size, 3), "mask": al.Geometric(1, 0.5)}
        budget += 3
    else:  # a `least` whose first label is worth it, in the curve of a task that can have more
        at = next(i for i, task in enumerate(tasks) if task.ceiling and gains[task.name].sign >= 0)
        plain = tasks[at].to_dict()
        if "frozen" not in plain:
            plain["least"] = max(1, plain.get("least", 0))
        before, tasks[at] = tasks[at], al.Task.from_dict(plain)
        budget += tasks[at].price(tasks[at].floor) - before.price(before.floor)
        name = before.name
        if kind == "coupled":
            gains[name] = gains[name] + al.Coupled(al.Geometric(size, 0), {name: 1})
        elif kind == "table":
            gains[name] = gains[name] + al.Tabulated(
                [0, size + 2, size + 5, size + 7, size + 7.75], [0, 1, 3, 6, 9]
            )
        else:
            gains[name] = gains[name] + al.Geometric(size, 0)
    caps = []
    for cap in problem.caps:  # room for what a `least` takes of them
        used = sum(
            (
                each * next(t for t in tasks if t.name == name).floor
                for name, each in cap.use.items()
            ),
            Fraction(0),
        )
        caps.append(al.Cap(cap.name, max(cap.limit, used), cap.use))
    return al.Problem(tasks, budget, caps, implied), {task.name: gains[task.name] for task in tasks}


def decided_plans(
    problem: al.Problem, gains: dict[str, al.Curve]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `every_plan`, but the value is what is added to the floors', each curve's difference taken
    in 60 digits."""
    zero = {name: al.Geometric(0, 1) for name in gains}
    grid, money, limits = every_plan(problem, zero)
    column = {task.name: grid[:, i] for i, task in enumerate(problem.tasks)}
    floor = {task.name: task.floor for task in problem.tasks}
    value = np.zeros(len(grid))
    for task in problem.tasks:
        for term in gains[task.name].terms:
            if isinstance(term, al.Coupled):
                shares, inner, most = dict(term.weights), term.inner, None
            else:
                givers = [
                    each.name
                    for each in problem.tasks
                    if problem.count_implied and task.name in each.implies
                ]
                shares, inner = {name: Fraction(1) for name in (task.name, *givers)}, term
                most = task.pool if givers else None
            step = Fraction(1, math.lcm(*(share.denominator for share in shares.values())))
            steps = sum(int(share / step) * column[name] for name, share in shares.items())
            start = sum(int(share / step) * floor[name] for name, share in shares.items())
            if most is not None:
                steps, start = np.minimum(steps, int(most / step)), min(start, int(most / step))
            places, which = np.unique(steps, return_inverse=True)
            with localcontext(prec=60):
                base = _worth_by_hand(inner, start * step)
                rises = [float(_worth_by_hand(inner, int(place) * step) - base) for place in places]
            value += task.weight * np.array(rises)[which.ravel()]
    return grid, money, np.where(limits > -np.inf, value, -np.inf)


def _worth_by_hand(curve: al.Curve, count: Fraction) -> Decimal:
    """A curve's formula as it is printed, in decimals."""
    n = Decimal(count.numerator) / count.denominator
    if isinstance(curve, Scaled):
        return Decimal(curve.factor) * _worth_by_hand(curve.inner, count)
    if isinstance(curve, Root):
        return curve.by_hand(n)
    if isinstance(curve, al.Geometric):
        size, keep = Decimal(curve.informativeness), Decimal(curve.reduction)
        return size * n if keep == 1 else size * (1 - (keep**n if n else Decimal(1))) / (1 - keep)
    if isinstance(curve, al.Power):
        have, power = max(Decimal(curve.have), Decimal(1)), -Decimal(curve.exponent)
        return min(
            Decimal(curve.worth) * (have**power - (have + n) ** power), Decimal(curve.ceiling)
        )
    if isinstance(curve, al.Logarithmic):
        return Decimal(curve.worth) * (1 + n / max(Decimal(curve.have), Decimal(1))).ln()
    if isinstance(curve, al.Tabulated):
        points = [
            (Decimal(place), Decimal(worth))
            for place, worth in zip(curve.counts, curve.worths, strict=True)
        ]
        if n >= points[-1][0]:
            return points[-1][1] + Decimal(curve.last_slope) * (n - points[-1][0])
        (a, low), (b, high) = next(
            pair for pair in itertools.pairwise(points) if pair[0][0] <= n < pair[1][0]
        )
        return low + (high - low) * (n - a) / (b - a)
    return sum((_worth_by_hand(part, count) for part in curve.terms), Decimal(0))
