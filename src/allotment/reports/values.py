"""The form of a report's values: what each part must hold, and everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from allotment.amounts import exact, short
from allotment.errors import InputError, Mistake, suggest

ValueCheck = Callable[[Any, str], Iterator[Mistake]]
"""takes a value and where it stands, and yields what is wrong with it"""

_IMAGE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/]+={0,2}")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
LARGEST_VALUE = 1e15
"""numbers beyond this are mistakes, and would not fit anywhere"""


def text(value: Any, where: str) -> Iterator[Mistake]:
    if not isinstance(value, str):
        yield Mistake(where, f"{short(value)} is not text")


def number(value: Any, where: str) -> Iterator[Mistake]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield Mistake(where, f"{short(value)} is not a number")
    elif not abs(value) <= LARGEST_VALUE:  # neither is nan
        yield Mistake(
            where,
            f"{short(value)} is not a finite number up to 10^15; leave it out where it is not"
            " known",
        )


def count(value: Any, where: str) -> Iterator[Mistake]:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_VALUE:
        yield Mistake(where, f"{short(value)} is not a whole number from 0 to 10^15")


def truth(value: Any, where: str) -> Iterator[Mistake]:
    if not isinstance(value, bool):
        yield Mistake(where, f"{short(value)} is neither true nor false")


def labels(value: Any, where: str) -> Iterator[Mistake]:
    wrong = list(number(value, where))
    yield from wrong
    if not wrong and value < 0:
        yield Mistake(where, f"{short(value)} labels are fewer than 0")


def money(value: Any, where: str) -> Iterator[Mistake]:
    try:
        exact(value)
    except ValueError as error:
        yield Mistake(where, str(error))


def share(value: Any, where: str) -> Iterator[Mistake]:
    wrong = list(number(value, where))
    yield from wrong
    if not wrong and not 0 <= value <= 1:
        yield Mistake(where, f"{short(value)} is not between 0 and 1")


def image(value: Any, where: str) -> Iterator[Mistake]:
    """A picture within the page: nothing else is ever loaded."""
    if not isinstance(value, str) or not _IMAGE.fullmatch(value):
        yield Mistake(where, f"{short(value)} is not data:image/png;base64,... or the same of jpeg")


def colour(value: Any, where: str) -> Iterator[Mistake]:
    if not isinstance(value, str) or not _COLOUR.fullmatch(value):
        yield Mistake(where, f"{short(value)} is not a colour such as #4e79a7")


def one_of(*allowed: str) -> ValueCheck:
    def check(value: Any, where: str) -> Iterator[Mistake]:
        if value not in allowed:
            yield Mistake(where, f"{short(value)} is not one of {', '.join(allowed)}")

    return check


def anything(value: Any, where: str) -> Iterator[Mistake]:
    yield from ()


def maybe(form: ValueCheck) -> ValueCheck:
    """None, or that form."""

    def check(value: Any, where: str) -> Iterator[Mistake]:
        if value is not None:
            yield from form(value, where)

    return check


def either(what: str, *forms: ValueCheck) -> ValueCheck:
    """One of several forms, which `what` names."""

    def check(value: Any, where: str) -> Iterator[Mistake]:
        if all(any(form(value, where)) for form in forms):
            yield Mistake(where, f"{short(value)} is not {what}")

    return check


def each(form: ValueCheck) -> ValueCheck:
    """A list of that form."""

    def check(value: Any, where: str) -> Iterator[Mistake]:
        if not isinstance(value, list | tuple):
            yield Mistake(where, f"{short(value)} is not a list")
            return
        for place, one in enumerate(value):
            yield from form(one, f"{where}[{place}]")

    return check


def row(*forms: ValueCheck) -> ValueCheck:
    """A list of so many entries, each of its own form."""

    def check(value: Any, where: str) -> Iterator[Mistake]:
        if not isinstance(value, list | tuple) or len(value) != len(forms):
            yield Mistake(where, f"{short(value)} is not a list of {len(forms)}")
            return
        for place, (one, form) in enumerate(zip(value, forms, strict=True)):
            yield from form(one, f"{where}[{place}]")

    return check


def by_name(form: ValueCheck) -> ValueCheck:
    """A dict from names to that form."""

    def check(value: Any, where: str) -> Iterator[Mistake]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            yield Mistake(where, f"{short(value)} is not a dict from names")
            return
        for name, one in value.items():
            yield from form(one, f"{where}.{name}")

    return check


def record(
    needed: Mapping[str, ValueCheck], more: Mapping[str, ValueCheck] | None = None
) -> ValueCheck:
    """A dict with these keys; what else is in it is left alone, so that values may carry more than
    is shown."""
    forms = {**needed, **{key: maybe(form) for key, form in (more or {}).items()}}

    def check(value: Any, where: str) -> Iterator[Mistake]:
        if not isinstance(value, Mapping):
            yield Mistake(where, f"{short(value)} is not a dict with {', '.join(needed)}")
            return
        yield from (Mistake(f"{where}.{key}", "is missing") for key in needed if key not in value)
        for key, form in forms.items():
            if key in value:
                yield from form(value[key], f"{where}.{key}")

    return check


def square(value: Any, where: str) -> Iterator[Mistake]:
    """A transfer matrix: every table in it has a row and a column for each task."""
    forms = {"cells": number, "low": number, "high": number, "called": number}
    tables = {key: each(each(maybe(form))) for key, form in forms.items()}
    more = {key: form for key, form in tables.items() if key != "cells"} | {"unit": text}
    wrong = list(record({"tasks": each(text), "cells": tables["cells"]}, more)(value, where))
    yield from wrong
    for key in forms if not wrong else ():
        table, size = value.get(key), len(value["tasks"])
        if table is not None and [len(line) for line in table] != [size] * size:
            yield Mistake(
                f"{where}.{key}", f"must have {size} rows of {size}, one for each of its tasks"
            )


def pictures(value: Any, where: str) -> Iterator[Mistake]:
    """Pictures of each task, all of them with the same tiles."""
    task = record(
        {"task": text, "kind": text, "examples": each(EXAMPLE)},
        {"asked": count, "legend": each(record({"name": text, "colour": colour}, {}))},
    )
    form = record({"who": one_of("nobody", "parts", "test"), "tasks": each(task)}, {})
    wrong = list(form(value, where))
    yield from wrong
    for place, shown in enumerate(value["tasks"] if not wrong else ()):
        tiles = {tuple(tile["what"] for tile in one["tiles"]) for one in shown["examples"]}
        if len(tiles) > 1:
            yield Mistake(f"{where}.tasks[{place}].examples", "must all have the same tiles")


INTERVAL = row(number, number, number)
QUESTIONED = record(
    {"schema": count, "unit": text, "budget": count, "tasks": each(record({"name": text}, {})),
     "gains": by_name(anything)}
)  # fmt: skip
"""as `advice.plain_problem` writes it, which the script reads"""
TEXTS = either("text or a list of it", text, each(text))
OUTLOOK = record(
    {"mean": number, "low": number, "high": number, "chance": share}, {"level": share, "unit": text}
)
SPAN = record({"middle": number, "low": number, "high": number}, {})
SCORE = record({"metric": text, "now": SPAN, "after": SPAN}, {})
TASK = record(
    {"name": text, "count": count},
    {
        "cost": money,
        "have": count,
        "spend": money,
        "low": count,
        "high": count,
        "plateau": row(count, count),
        "break_even": number,
        "score": SCORE,
    },
)
CAP = record({"name": text, "used": money, "limit": money}, {})
TILE = record(
    {"what": one_of("picture", "label", "now", "before", "after")},
    {"image": image, "text": text, "is_right": truth},
)
EXAMPLE = record({"name": text, "tiles": each(TILE)}, {})
MEASURED = row(maybe(number), maybe(number))
PART_CHECKS: dict[str, ValueCheck] = {
    "title": text,
    "decision": text,
    "basis": one_of("given", "neutral"),
    "plan": record(
        {"tasks": each(TASK)},
        {"budget": money, "spent": money, "caps": each(CAP)},
    ),
    "knowing": number,
    "style": record({}, {"currency": text, "decimal": text}),
    "order": text,
    "advice": each(text),
    "stale": text,
    "outlook": OUTLOOK,
    "comparison": each(
        record(
            {"name": text, "counts": by_name(count)},
            {
                "spent": money,
                "value": number,
                "worth": text,
                "broken": each(text),
                "outlook": OUTLOOK,
            },
        )
    ),
    "what_if": record(
        {"instance": QUESTIONED, "unit": text},
        {"is_mean": truth},
    ),
    "frontier": record(
        {"points": each(row(labels, number, maybe(number), maybe(number))), "budget": money},
        {
            "unit": text,
            "level": share,
            "knee": number,
            "step": money,
            "less": number,
            "more": number,
        },
    ),
    "reach": each(
        record(
            {
                "task": text,
                "metric": text,
                "rises": truth,
                "have": count,
                "now": number,
                "levels": each(record({"chance": share, "points": each(row(labels, number))}, {})),
            },
            {},
        )
    ),
    "worths": each(record({"task": text, "own": number, "others": number}, {})),
    "curves": each(
        record(
            {"task": text},
            {
                "unit": text,
                "level": share,
                "points": each(row(labels, number, maybe(number), maybe(number))),
                "seen": each(row(labels, number)),
            },
        )
    ),
    "transfer": square,
    "verdicts": each(
        record(
            {"name": text, "grade": text},
            {"kind": text, "why": TEXTS, "effect": TEXTS, "mend": TEXTS, "share": share},
        )
    ),
    "rounds": each(
        record(
            {"number": count},
            {
                "spent": money,
                "open": either("a whole number, or a dict from task to one", count, by_name(count)),
                "expected": either("a number, text, or [mean, low, high]", number, text, INTERVAL),
                "next": text,
                "bought": by_name(count),
                "scores": by_name(row(maybe(number), number)),
            },
        )
    ),
    "evaluation": record(
        {
            "rows": each(
                record(
                    {"name": text},
                    {"gains": by_name(MEASURED), "total": MEASURED, "ahead": INTERVAL},
                )
            )
        },
        {"tasks": each(text), "repeats": count, "level": share},
    ),
    "pictures": pictures,
    "about": by_name(anything),
}


def check(values: Any) -> dict[str, Any]:
    """The parts that are there, or everything that is wrong with them."""
    if not isinstance(values, Mapping):
        raise InputError(
            [Mistake("values", f"{short(values)} is not a dict with {', '.join(PART_CHECKS)}")]
        )
    mistakes = [
        Mistake(f"values.{short(key)}", f"a report has no such part; {suggest(key, PART_CHECKS)}")
        for key in values
        if key not in PART_CHECKS
    ]
    for key, form in PART_CHECKS.items():
        mistakes += maybe(form)(values.get(key), key)
    if mistakes:
        raise InputError(mistakes)
    return {
        key: values[key] for key in PART_CHECKS if values.get(key) not in (None, "", [], {}, ())
    }
