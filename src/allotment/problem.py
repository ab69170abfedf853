"""What there is to buy, at what price, within which limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from allotment.amounts import common_unit, exact, short, show, whole
from allotment.errors import InputError, Mistake, cut, make_hints, reading, suggest

MOST_TASKS = 5_000
"""that are planned together"""
MOST_TIERS = 1_000
"""of one task"""
MOST_CAPS = 1_000


class _Reader:
    """Reads values into exact types and keeps every mistake instead of stopping at the first."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def wrong(self, key: str, what: str) -> None:
        self.mistakes.append(Mistake(key, what))

    def amount(self, key: str, value: object, *, zero: bool) -> Fraction:
        try:
            number = exact(value)
        except ValueError as error:
            self.wrong(key, str(error))
            return Fraction(1)
        if number < 0 or (number == 0 and not zero):
            self.wrong(key, f"{show(number)} is not {'zero or more' if zero else 'above zero'}")
            return Fraction(1)
        return number

    def count(self, key: str, value: object, least: int = 0) -> int:
        try:
            number = whole(value)
        except ValueError as error:
            self.wrong(key, str(error))
            return least
        if number < least:
            self.wrong(key, f"{number} is below {least}")
            return least
        return number

    def optional_count(self, key: str, value: object) -> int | None:
        return None if value is None else self.count(key, value)

    def name(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, f"{short(value)} is not a name: give a text of at least one letter")
        elif not value.isprintable() or len(value) > 100 or value != value.strip():
            self.wrong(
                key,
                f"{value[:40]!r}: names are printable, at most 100 long, without spaces around"
                " them",
            )
        return value if isinstance(value, str) else short(value)

    def finish(self) -> None:
        if self.mistakes:
            raise InputError(self.mistakes)


@dataclass(frozen=True, init=False)
class Task:
    """One kind of label: its price, what is there already, and every limit on buying more.

    >>> Task("seg", cost="0.84", have=300, pool=10_282).cost
    Fraction(21, 25)
    """

    name: str
    cost: Fraction
    """price of one new label; any exact number: 20, "0.035", Decimal("0.035")"""
    have: int = 0
    """labels at hand"""
    pool: int | None = None
    """instances that could still be labelled; None is no limit"""
    least: int = 0
    """buy at least so many"""
    most: int | None = None
    """buy at most so many"""
    weight: float = 1.0
    """importance of this task's gain in the plan's value"""
    frozen: int | None = None
    """buy exactly so many: this is decided already"""
    lot: int = 1
    """labels are sold in multiples of this many"""
    fee: Fraction = Fraction(0)
    """paid once if any label is bought"""
    tiers: tuple[tuple[int, Fraction], ...] = ()
    """(after, cost): from label after + 1 of this order on, each costs `cost`; cheaper or dearer"""
    implies: tuple[str, ...] = ()
    """tasks that get a label for free with each label of this one (a mask is also a class label)"""

    def __init__(
        self,
        name: str,
        cost: Any,
        have: Any = 0,
        pool: Any = None,
        least: Any = 0,
        most: Any = None,
        weight: Any = 1,
        *,
        frozen: Any = None,
        lot: Any = 1,
        fee: Any = 0,
        tiers: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        implies: str | Iterable[str] = (),
    ):
        read = _Reader()
        values = {
            "name": read.name("name", name),
            "cost": read.amount("cost", cost, zero=False),
            "have": read.count("have", have),
            "pool": read.optional_count("pool", pool),
            "least": read.count("least", least),
            "most": read.optional_count("most", most),
            "weight": _read_weight(read, weight),
            "frozen": read.optional_count("frozen", frozen),
            "lot": read.count("lot", lot, least=1),
            "fee": read.amount("fee", fee, zero=True),
            "tiers": _read_tiers(read, tiers),
            "implies": _read_implies(read, implies, name),
        }
        read.finish()
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def floor(self) -> int:
        """The fewest that may be bought, in whole lots."""
        if self.frozen is not None:
            return self.frozen
        return -(-self.least // self.lot) * self.lot

    @property
    def ceiling(self) -> int | None:
        """The most that may be bought, in whole lots, whatever they cost; None is no limit."""
        if self.frozen is not None:
            return self.frozen
        limits = [limit for limit in (self.pool, self.most) if limit is not None]
        return min(limits) // self.lot * self.lot if limits else None

    @property
    def prices(self) -> tuple[tuple[int, int | None, Fraction], ...]:
        """(after, up to, price of one) for every tier, the first one included."""
        starts = [(0, self.cost), *self.tiers]
        ends = [after for after, _ in starts[1:]]
        return tuple(
            (after, end, price) for (after, price), end in zip(starts, [*ends, None], strict=True)
        )

    def with_weight(self, weight: float) -> Task:
        """The same task with another importance."""
        return Task.from_dict(self.to_dict() | {"weight": weight})

    def with_cost(self, cost: Any) -> Task:
        """The same task at another price, tiers in proportion."""
        try:
            factor = exact(cost) / self.cost
        except ValueError as error:
            raise InputError([Mistake("cost", str(error))]) from None
        plain = self.to_dict() | {"cost": cost}
        plain["tiers"] = [
            {"after": after, "cost": _round(price * factor)} for after, price in self.tiers
        ]
        return Task.from_dict(plain)

    def price(self, count: int) -> Fraction:
        """What `count` new labels cost, fee and tiers included."""
        if count <= 0:
            return Fraction(0)
        if not self.tiers:
            return count * self.cost + self.fee if self.fee else count * self.cost
        total = self.fee
        for after, end, price in self.prices:
            total += max(0, (count if end is None else min(count, end)) - after) * price
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON or TOML; keys at their default are left out."""
        plain: dict[str, Any] = {"name": self.name, "cost": show_exact(self.cost)}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name not in plain and value != item.default:
                plain[item.name] = value
        if self.fee:
            plain["fee"] = show_exact(self.fee)
        if self.tiers:
            plain["tiers"] = [
                {"after": after, "cost": show_exact(cost)} for after, cost in self.tiers
            ]
        if self.implies:
            plain["implies"] = list(self.implies)
        return plain

    @classmethod
    @reading("the task")
    def from_dict(cls, plain: Mapping[str, Any]) -> Task:
        """The task that `to_dict` wrote, or that a file holds."""
        mistakes = _unknown_keys(plain, TASK_KEYS)
        given = {key: value for key, value in plain.items() if key in TASK_KEYS}
        mistakes += [Mistake(key, "is missing") for key in ("name", "cost") if key not in given]
        values: dict[str, Any] = {"name": "?", "cost": 1} | given
        if isinstance(tiers := values.get("tiers"), list):
            rows = [
                row if isinstance(row, Mapping) and set(row) == {"after", "cost"} else None
                for row in tiers
            ]
            if None in rows:
                mistakes.append(
                    Mistake("tiers", "each tier is a table with the keys after and cost")
                )
            values["tiers"] = [(row["after"], row["cost"]) for row in rows if row is not None]
        try:
            task = cls(**values)
        except InputError as error:
            mistakes += error.mistakes
        if mistakes:
            raise InputError(mistakes)
        return task


def _round(price: Fraction) -> Fraction:
    return price.limit_denominator(10**6) or price


TASK_KEYS = tuple(item.name for item in fields(Task))


def _read_weight(read: _Reader, value: Any) -> float:
    try:
        weight = float(exact(value))
    except ValueError as error:
        read.wrong("weight", str(error))
        return 1.0
    if weight < 0:
        read.wrong("weight", f"{weight:g} is below zero; a task that must not count has weight 0")
    return weight


def _read_tiers(read: _Reader, tiers: Any) -> tuple[tuple[int, Fraction], ...]:
    if isinstance(tiers, Mapping):
        tiers = tiers.items()
    rows: list[tuple[int, Fraction]] = []
    try:
        if isinstance(tiers, str):
            raise TypeError
        pairs = [(after, cost) for after, cost in tiers]
    except (TypeError, ValueError):
        read.wrong("tiers", "give pairs (after, cost), such as {1000: 15}")
        return ()
    if len(pairs) > MOST_TIERS:
        read.wrong(
            "tiers",
            f"there are {len(pairs):,}, the limit is {MOST_TIERS:,}; put neighbouring ones"
            " together",
        )
        return ()
    for after, cost in pairs:
        row = (
            read.count("tiers.after", after, least=1),
            read.amount("tiers.cost", cost, zero=False),
        )
        if rows and row[0] <= rows[-1][0]:
            read.wrong(
                "tiers.after",
                f"{row[0]} does not come after {rows[-1][0]}: list tiers in rising order",
            )
        rows.append(row)
    return tuple(rows)


def _read_implies(read: _Reader, implies: Any, name: Any) -> tuple[str, ...]:
    if isinstance(implies, str):
        implies = (implies,)
    if not isinstance(implies, Iterable) or isinstance(implies, Mapping):
        read.wrong("implies", f"{short(implies)} is not a list of task names")
        return ()
    names = tuple(read.name("implies", other) for other in implies)
    if name in names:
        read.wrong("implies", f"{name!r} implies itself")
    if len(set(names)) < len(names):
        read.wrong("implies", "names a task twice")
    return names


def _unknown_keys(plain: Mapping[str, Any], known: Iterable[str]) -> list[Mistake]:
    if not isinstance(plain, Mapping):
        raise InputError([Mistake("", f"{short(plain)} is not a table of keys and values")])
    hint = make_hints(known)
    return [Mistake(cut(key), f"unknown key; {hint(key)}") for key in plain if key not in known]


def show_exact(amount: Fraction) -> str:
    """An amount as text that reads back to the same amount."""
    text = show(amount)
    return f"{amount.numerator}/{amount.denominator}" if text.startswith("~") else text


@dataclass(frozen=True, init=False)
class Cap:
    """A limit on several tasks together, such as annotator hours: sum of use x count <= limit.

    >>> Cap("annotator hours", limit=120, use={"seg": "0.25", "cls": "0.01"}).limit
    Fraction(120, 1)
    """

    name: str
    limit: Fraction
    use: Mapping[str, Fraction]
    """how much one label of each task takes"""

    def __init__(self, name: str, limit: Any, use: Mapping[str, Any]):
        read = _Reader()
        name = read.name("name", name)
        limit = read.amount("limit", limit, zero=True)
        if not isinstance(use, Mapping) or not use:
            read.wrong("use", "name at least one task and how much one of its labels takes")
            use = {}
        amounts = {
            (key := read.name("use", task)): read.amount(f"use.{key}", each, zero=True)
            for task, each in use.items()
        }
        read.finish()
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "use", amounts)

    def used(self, counts: Mapping[str, int]) -> Fraction:
        """How much of the cap the counts take."""
        return sum((each * counts.get(task, 0) for task, each in self.use.items()), Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON or TOML."""
        use = {task: show_exact(each) for task, each in self.use.items()}
        return {"name": self.name, "limit": show_exact(self.limit), "use": use}

    @classmethod
    @reading("the cap")
    def from_dict(cls, plain: Mapping[str, Any]) -> Cap:
        """The cap that `to_dict` wrote, or that a file holds."""
        keys = ("name", "limit", "use")
        mistakes = _unknown_keys(plain, keys)
        mistakes += [Mistake(key, "is missing") for key in keys if key not in plain]
        values: dict[str, Any] = {"name": "?", "limit": 0, "use": {"?": 0}} | {
            key: plain[key] for key in keys if key in plain
        }
        try:
            cap = cls(**values)
        except InputError as error:
            mistakes += error.mistakes
        if mistakes:
            raise InputError(mistakes)
        return cap


@dataclass(frozen=True, init=False)
class Problem:
    """Tasks, a budget, and what limits several tasks at once.

    >>> Problem([Task("cls", cost=1), Task("seg", cost=20)], budget=6300).names
    ('cls', 'seg')
    """

    tasks: tuple[Task, ...]
    budget: Fraction
    caps: tuple[Cap, ...] = ()
    count_implied: bool = False
    """count implied labels in the curve of the task they are implied for (the paper does not)"""
    unit: Fraction = field(init=False, repr=False, compare=False)
    """the largest amount of which every price is a whole multiple"""

    def __init__(
        self,
        tasks: Iterable[Task],
        budget: Any,
        caps: Iterable[Cap] = (),
        count_implied: bool = False,
    ):
        read = _Reader()
        for key, given in (("tasks", tasks), ("caps", caps)):
            if not isinstance(given, Iterable):
                raise InputError([Mistake(key, f"{short(given)} is not a list of {key}")])
        tasks, caps = tuple(tasks), tuple(caps)
        budget = read.amount("budget", budget, zero=True)
        mistakes = read.mistakes + _check_tasks(tasks) + _check_caps(caps, tasks)
        if not isinstance(count_implied, bool):
            mistakes.append(
                Mistake("count_implied", f"{short(count_implied)} is neither true nor false")
            )
        unit = Fraction(1)
        if not mistakes:
            unit = common_unit(
                amount for task in tasks for amount in (task.fee, *(p for _, _, p in task.prices))
            )
            mistakes += _check_resolution(budget, unit, caps)
        if mistakes:
            raise InputError(mistakes)
        for key, value in (
            ("tasks", tasks),
            ("budget", budget),
            ("caps", caps),
            ("count_implied", count_implied),
        ):
            object.__setattr__(self, key, value)
        object.__setattr__(self, "unit", unit)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tasks' names in their order."""
        return tuple(task.name for task in self.tasks)

    def __getitem__(self, name: str) -> Task:
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(f"no task {name!r}; {suggest(name, self.names)}")

    def price(self, counts: Mapping[str, int]) -> Fraction:
        """What the counts cost, fees and tiers included."""
        # whole numbers add up ten times as fast as fractions
        scale, total = self.unit.denominator, 0
        for task in self.tasks:
            if count := counts.get(task.name, 0):
                money = task.price(count)
                total += money.numerator * (scale // money.denominator)
        return Fraction(total, scale)

    def count_labels(self, task: Task, counts: Mapping[str, int]) -> int:
        """How many labels a task gets from a plan, implied ones included where they count."""
        count = counts[task.name]
        if self.count_implied:
            count += sum(counts[other.name] for other in self.tasks if task.name in other.implies)
            if task.pool is not None and count > counts[task.name]:
                count = min(count, max(task.pool, counts[task.name]))
        return count

    def with_task(self, task: Task) -> Problem:
        """The same problem with the task of that name replaced."""
        tasks = [task if each.name == task.name else each for each in self.tasks]
        return Problem(tasks, self.budget, self.caps, self.count_implied)

    def with_budget(self, budget: Any) -> Problem:
        """The same problem with another budget."""
        return Problem(self.tasks, budget, self.caps, self.count_implied)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON or TOML."""
        plain: dict[str, Any] = {
            "budget": show_exact(self.budget),
            "tasks": [task.to_dict() for task in self.tasks],
        }
        if self.caps:
            plain["caps"] = [cap.to_dict() for cap in self.caps]
        if self.count_implied:
            plain["count_implied"] = True
        return plain

    @classmethod
    @reading("the problem")
    def from_dict(cls, plain: Mapping[str, Any]) -> Problem:
        """The problem that `to_dict` wrote."""
        mistakes = _unknown_keys(plain, ("budget", "tasks", "caps", "count_implied"))
        mistakes += [Mistake(key, "is missing") for key in ("budget", "tasks") if key not in plain]
        for key in ("tasks", "caps"):
            if not isinstance(plain.get(key, []), list):
                mistakes.append(Mistake(key, f"{short(plain[key])} is not a list of {key}"))
        if mistakes:
            raise InputError(mistakes)
        return cls(
            [Task.from_dict(task) for task in plain["tasks"]],
            plain["budget"],
            [Cap.from_dict(cap) for cap in plain.get("caps", ())],
            plain.get("count_implied", False),
        )


def read_point_worth(given: Any) -> Fraction:
    """The money that one point of gain is worth to whoever pays; raises InputError for what is
    none."""
    read = _Reader()
    amount = read.amount("point_worth", given, zero=False)
    read.finish()
    return amount


def _check_tasks(tasks: tuple[Task, ...]) -> list[Mistake]:
    if not tasks:
        return [Mistake("tasks", "there is no task; give at least one")]
    if len(tasks) > MOST_TASKS:
        return [
            Mistake(
                "tasks", f"there are {len(tasks):,}, the limit is {MOST_TASKS:,}; leave some out"
            )
        ]
    if strangers := [task for task in tasks if not isinstance(task, Task)]:
        return [Mistake("tasks", f"{short(strangers[0])} is not a Task")]
    names: dict[str, None] = {}  # in their order, for the suggestions
    mistakes = []
    for task in tasks:
        if task.name in names:
            mistakes.append(
                Mistake(f"task {task.name!r}", "is there twice; every task needs its own name")
            )
        names[task.name] = None
    hint = make_hints(names)
    for task in tasks:
        for other in task.implies:
            if other not in names:
                mistakes.append(
                    Mistake(f"task {task.name!r}: implies", f"no task {other!r}; {hint(other)}")
                )
    return mistakes


def _check_caps(caps: tuple[Cap, ...], tasks: tuple[Task, ...]) -> list[Mistake]:
    if len(caps) > MOST_CAPS:
        return [
            Mistake("caps", f"there are {len(caps):,}, the limit is {MOST_CAPS:,}; leave some out")
        ]
    names = dict.fromkeys(getattr(task, "name", "?") for task in tasks)
    hint = make_hints(names)
    mistakes = []
    seen: set[str] = set()
    for cap in caps:
        if not isinstance(cap, Cap):
            mistakes.append(Mistake("caps", f"{short(cap)} is not a Cap"))
            continue
        if cap.name in seen:
            mistakes.append(
                Mistake(f"cap {cap.name!r}", "is there twice; every cap needs its own name")
            )
        seen.add(cap.name)
        for task in cap.use:
            if task not in names:
                mistakes.append(
                    Mistake(f"cap {cap.name!r}: use", f"no task {task!r}; {hint(task)}")
                )
    return mistakes


def _check_resolution(budget: Fraction, unit: Fraction, caps: tuple[Cap, ...]) -> list[Mistake]:
    """Amounts stay below 10^15 units, where they are exact in every type that they pass through."""
    mistakes = []
    if budget / unit > 10**15:
        what = (
            f"prices that differ by {show(unit)} are too fine for a budget of {show(budget)}; round"
            " them"
        )
        mistakes.append(Mistake("budget", what))
    for cap in caps:
        if cap.limit / common_unit(cap.use.values()) > 10**15:
            mistakes.append(
                Mistake(
                    f"cap {cap.name!r}: use", "differs too finely for its limit; round the numbers"
                )
            )
    return mistakes
