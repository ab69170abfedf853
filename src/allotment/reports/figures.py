"""What the page's charts show, as plain values for its script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allotment.amounts import exact
from allotment.reports import words
from allotment.reports.markup import clean, shorten

LONGEST_BESIDE = 40
"""letters of a name beside a chart"""


def list_charts(given: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By kind of chart, in the order of the page."""
    tasks = {task["name"]: task for task in (given.get("plan") or {}).get("tasks", ())}
    found: dict[str, list[dict[str, Any]]] = {
        "curve": [
            _describe_curve(curve, tasks.get(curve["task"])) for curve in given.get("curves", ())
        ]
    }
    if (outlook := given.get("outlook")) is not None:
        span = {key: outlook[key] for key in ("mean", "low", "high")}
        found["interval"] = [
            span | {"unit": words.find_unit(outlook), "name": words.describe_interval(outlook)}
        ]
    if (frontier := given.get("frontier")) is not None:
        found["frontier"] = [_describe_frontier(frontier, given)]
    if rows := given.get("worths"):
        shown = [each | {"task": _name(each["task"])} for each in rows]
        found["worth"] = [
            {
                "rows": shown,
                "own": words.OWN_PART,
                "others": words.OTHERS_PART,
                "unit": words.find_gain_unit(given),
                "name": words.HEADINGS["worths"],
            }
        ]
    outcomes = words.match_outcomes(given)
    if any(row["foretold"] is not None for row in outcomes):
        found["outcome"] = [_describe_outcomes(outcomes, given)]
    return found


def _describe_outcomes(
    outcomes: Sequence[Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[str, Any]:
    rows = [
        {
            "name": _name(row["name"]),
            "foretold": row["foretold"],
            **dict(zip(("mean", "low", "high"), row["came"], strict=True)),
        }
        for row in outcomes
    ]
    return {"rows": rows, "unit": words.find_gain_unit(given), "name": words.OUTCOMES}


def _name(text: str) -> str:
    return shorten(clean(text), LONGEST_BESIDE)


def _describe_curve(curve: Mapping[str, Any], task: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "name": _name(curve["task"]),
        "axis": words.AXIS,
        "unit": None if curve.get("unit") is None else _name(curve["unit"]),
        "points": curve.get("points") or [],
        "seen": curve.get("seen") or [],
        "marks": _find_marks(task),
    }


def _find_marks(task: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Upright lines: the labels at hand, and with those of the plan."""
    if task is None or task.get("have") is None:
        return []
    have, with_plan = task["have"], task["have"] + task["count"]
    marks = [(have, words.AT_HAND, "muted")]
    marks += [(with_plan, words.WITH_PLAN, "mark")] if with_plan > have else []
    return [
        {"at": at, "text": text.format(count=words.say_count(at)), "colour": colour}
        for at, text, colour in marks
    ]


def _describe_frontier(frontier: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    marks = [
        {
            "at": float(exact(frontier["budget"])),
            "text": words.FRONTIER_MARKS["budget"],
            "colour": "mark",
        }
    ]
    if frontier.get("knee") is not None:
        marks.append(
            {"at": frontier["knee"], "text": words.FRONTIER_MARKS["knee"], "colour": "muted"}
        )
    return {
        "points": frontier["points"],
        "marks": marks,
        "unit": frontier.get("unit") or words.find_gain_unit(given),
        "money": words.MONEY_AXIS,
        "name": words.HEADINGS["frontier"],
    }
