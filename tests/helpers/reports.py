"""Values of a report with every part, and the worst of names to put in."""

from __future__ import annotations

import json
import re
from typing import Any

from allotment import Geometric, Problem, Task
from allotment.advice.plain_problem import write_plain_problem

NAMES = ["cls", "seg", "depth"]


def example() -> dict[str, Any]:
    """Values with every part and every key; a fresh copy that may be changed."""
    counts = [2920, 169, 0]
    outlook = {"mean": 1.2, "low": 0.3, "high": 2.1, "level": 0.9, "chance": 0.97}
    tasks = [
        {
            "name": name,
            "cost": cost,
            "have": 300,
            "count": count,
            "spend": str(float(cost) * count),
            "low": count // 2,
        }
        | {"high": count + 50, "plateau": [count // 3, count + 70]}
        for name, cost, count in zip(NAMES, ["1", "20", "0.5"], counts, strict=True)
    ]
    rows = [
        {
            "name": name,
            "counts": dict(zip(NAMES, counts, strict=True)),
            "spent": "6300",
            "value": value,
            "broken": [],
        }
        for name, value in (("plan", 12.5), ("equal budget", 10.0), ("equal images", 9.75))
    ]
    rows[1] |= {"counts": {"cls": 2100, "seg": 105, "depth": 4200}, "outlook": outlook}
    rows[2] |= {"broken": ["the budget by 12"]}
    points = [[at, 60 + at / 200, 55 + at / 250, 62 + at / 150] for at in range(100, 4001, 300)]
    curves = [{"task": name, "unit": f"score of {name}", "points": points, "seen": [[150, 61.5],
    [300, 62.25]]}
              for name in NAMES]  # fmt: skip
    measured = [
        {
            "name": name,
            "gains": {task: [total, 0.4] for task in NAMES},
            "total": [total, 0.31],
            "ahead": ahead,
        }
        for name, total, ahead in (("plan", 5.1, None), ("equal budget", 4.0, [1.1, 0.3, 1.9]))
    ]
    values: dict[str, Any] = {
        "title": "Street scenes",
        "plan": {"tasks": tasks, "budget": "6300", "spent": "6300"},
        "outlook": outlook,
        "comparison": rows,
        "curves": curves,
        "transfer": {
            "tasks": NAMES,
            "cells": [[1.0, 0.7, 0.1], [-0.4, 1.0, None], [0.3, 0.05, 1.0]],
            "low": [[1.0, 0.5, -0.1], [-0.6, 1.0, None], [0.1, -0.2, 1.0]],
            "high": [[1.0, 0.9, 0.3], [-0.2, 1.0, None], [0.5, 0.3, 1.0]],
            "called": [[0, 1, 0], [-1, 0, None], [1, 0, 0]],
        },
        "verdicts": [
            {"kind": "task", "name": "cls", "grade": "sound", "why": "the rise is known to 12 %",
            "share": 0.21},
            {"kind": "curve", "name": "seg", "grade": "unusable", "why": ["scores fall", "few"],
            "mend": "40 labels",
             "effect": "none of it is bought"},
        ],
        "rounds": [
            {"number": 1, "bought": {"cls": 500, "seg": 20}, "scores": {"cls": [0.61, 0.65],
            "seg": [None, 0.4]}, "spent": "1575", "open": 0, "expected": [0.6, 0.1, 1.1],
            "next": "done"},
            {"number": 2, "spent": "2102.5", "open": {"cls": 310, "seg": 14}, "expected": 1.25,
            "next": "allot ingest"},
        ],
        "evaluation": {"tasks": NAMES, "repeats": 5, "level": 0.9, "rows": measured},
        "about": {"method": "response", "trainings": 240, "seed": 0, "fingerprint": "b1946ac9",
                  "versions": {"allotment": "0.1.0", "torch": "2.13.0"}, "seeds": [1, 2],
                  "paired": True},
    }  # fmt: skip
    values["plan"]["caps"] = [{"name": "hours", "used": "90", "limit": "120"}]
    values["plan"]["tasks"][0]["break_even"] = 3.5
    values |= ask(NAMES) | {"pictures": look()}
    return dict(json.loads(json.dumps(values)))


def ask(names: list[str]) -> dict[str, Any]:
    """What a reader may ask of a plan: parts of the values."""
    tasks = [Task(name, cost=cost, have=300) for name, cost in zip(names, [1, 20, 2], strict=True)]
    problem = Problem(tasks, budget=6300)
    instance = write_plain_problem(problem, {name: Geometric(1.5, 0.999) for name in names})
    points = [[count, 0.5 + count / 10**5] for count in (300, 900, 3000)]
    reached = {"task": "cls", "metric": "AUC", "rises": True, "have": 300, "now": 0.7}
    return {
        "knowing": 0.44,
        "advice": ["Knowing more would bring little, and stopping here is reasonable."],
        "what_if": {"instance": instance, "unit": "% of score"},
        "frontier": {
            "points": [[0.0, 0.0, 0.0, 0.0], [6300.0, 2.5, 1.25, 4.0], [12600.0, 3.0, 1.5, 5.0]],
            "budget": "6300",
            "unit": "% of score",
            "knee": 6300.0,
            "step": "630",
            "more": 0.25,
            "less": -0.5,
        },
        "reach": [reached | {"levels": [{"chance": 0.9, "points": points}]}],
        "worths": [{"task": name, "own": 1.5, "others": 0.25} for name in names],
    }


DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEANl9ng"
    "AAAAABJRU5ErkJggg=="
)
"""a picture of one white pixel"""


def look() -> dict[str, Any]:
    """Pictures of two tasks, with what a model says of them."""
    said = [{"what": "picture", "image": DOT}, {"what": "label", "text": "a cat"}]
    said.append({"what": "now", "text": "a dog (62 % sure)", "is_right": False})
    cls = {"task": "cls", "kind": "classification", "asked": 9}
    drawn = [{"what": "picture", "image": DOT}]
    drawn.append({"what": "label", "image": DOT, "text": "road 55 %, sky 45 %"})
    drawn.append({"what": "now", "image": DOT, "text": "81 % of pixels right"})
    seg = {"task": "seg", "kind": "segmentation", "asked": 2}
    seg["legend"] = [{"name": "a road", "colour": "#4e79a7"}]
    cls["examples"] = [{"name": "street-1", "tiles": said}]
    seg["examples"] = [{"name": f"street-{at}", "tiles": drawn} for at in (2, 3)]
    return {"who": "parts", "tasks": [cls, seg]}


def rename(value: Any, change: Any) -> Any:
    """The values with every text in them changed, and every name that is a key, wherever it
    stands."""
    if isinstance(value, dict):
        return {
            change(key) if key in NAMES else key: rename(inner, change)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [rename(inner, change) for inner in value]
    fixed = {"plan", "equal budget", "sound", "unusable", "task", "curve", "geometric"}
    fixed |= {"parts", "picture", "label", "now", "classification", "segmentation"}
    if not isinstance(value, str) or value in fixed or re.fullmatch(r"[\d.]+|#\w{6}", value):
        return value
    return value if value == DOT else change(value)


EVIL = [
    "<script>alert(1)</script>", "</style></svg></title></td><b>", "\"' onload='alert(1)' x=\"",
    "<!-- ", "]]>",
    "&lt;&amp;#60;", "{task} {0} {0.__class__} %s", "\u202e\u2066abc 12\u200f", "שלום עולם",
    "\x00\x07\x1b[31m",
    "\ud800", "\ufffe\U0001ffff", "a\nb\tc\u2028d", "x" * 500, "很" * 500, "e" + "\u0301" * 400,
    "\\u202e",
]  # fmt: skip
