"""The report as one page: `render(values)` gives one HTML file that needs no network.

Its words and tables are there without any script; the script, which its policy knows by hash,
draws the charts and answers "what if".

The values are plain JSON. Every part may be missing or None; lists may be tuples; money may be text
("0.035"). Names and texts may hold anything: all of it is escaped.

    {"title": text,
     "decision": text,  in place of the sentence that is made of plan and outlook
     "basis": "given" | "neutral",  what the plan rests on, where nothing was measured
     "plan": {"tasks": [{"name": text, "count": int,
                         "cost": money, "have": int, "spend": money,
                         "low": int, "high": int,  range of the count over the draws' own best plans
                         "plateau": [int, int],         and over plans within 1 % of this one
                         "break_even": x,               the price up to which any is bought
                         "score": {"metric": text, "now": span, "after": span}}],
                                  a span is {"middle": x, "low": x, "high": x}
              "caps": [{"name": text, "used": money, "limit": money}],
              "budget": money, "spent": money},
     "style": {"currency": text, "decimal": "point" | "comma"},
     "knowing": x,   what it would be worth at most to know everything, as the outlook counts
     "order": text,  what of it to order now
     "advice": [text],  sentences on whether to measure more, and whether to stop
     "stale": text,  that labels came in since it was measured
     "outlook": {"mean": x, "low": x, "high": x, "level": 0.9, "chance": share,
                                            D_T(plan) - D_T(equal budget)
                 "unit": text,              "%" unless the method measures in something else
                 "standing": text},         of the plan, for whoever reads the values; not shown
     "comparison": [{"name": text, "counts": {task: int},  the plan first; as `Score.to_dict`
                     "spent": money, "value": x, "worth": text, "broken": [text],
                     "outlook": ...}],                  of the plan over this row, as above
     "what_if": {"instance": {...},  as `advice.plain_problem.write_plain_problem` writes it
                 "unit": text,       of gains
                 "is_mean": bool},   whether these are told in the mean over tasks
     "frontier": {"points": [[money, mean, low, high]], "budget": money, "unit": text,
                  "level": 0.9, "knee": x,
                  "step": money, "less": x, "more": x},  what a step of the budget would change
     "reach": [{"task": text, "metric": text, "rises": bool, "have": int, "now": x,
                "levels": [{"chance": share, "points": [[labels, score]]}]}],
     "worths": [{"task": text, "own": x, "others": x}],
     "curves": [{"task": text, "unit": text, "level": 0.9,
                 "points": [[labels, mean, low, high]],              low and high may be None
                 "seen": [[labels, score]]}],                        single trainings
     "transfer": {"tasks": [text], "cells": [[x]], "low": [[x]], "high": [[x]],
                  "called": [[-1 | 0 | 1]], "unit": "labels" | "%"},
                                  row: whose labels; column: which task is scored; a cell may be
                                  None; in labels the diagonal is 1, in % it is measured like others
     "verdicts": [{"name": text, "grade": "sound" | "weak" | "unusable",
                   "why": text | [text], "effect": text | [text], "mend": text | [text],
                   "kind": "method" | "task" | "curve" | "cell",        as the doctor's findings
                   "share": share}],        of the money that would go elsewhere without it
     "rounds": [{"number": int, "spent": money, "open": int | {task: int},
                 "expected": x | text | [mean, low, high], "next": text,
                 "bought": {task: int}, "scores": {task: [before, after]}}],
     "evaluation": {"tasks": [text], "repeats": int, "level": 0.9,
                    "rows": [{"name": text, "gains": {task: [mean, deviation]},
                              "total": [mean, deviation],
                              "ahead": [mean, low, high] | None}]},  D_T(plan) - D_T(row), paired
     "pictures": {"who": "nobody" | "parts" | "test",           whom the answers are from
                  "tasks": [{"task": text, "kind": text, "asked": int,
                             "legend": [{"name": text, "colour": "#rrggbb"}],
                             "examples": [{"name": text,        all with the same tiles
                                           "tiles": [{"what": "picture" | "label" | "now" |
                                                              "before" | "after",
                                                      "image": "data:image/png;base64,...",
                                                      "text": text, "is_right": bool}]}]}]},
     "about": {key: anything}}  method, trainings, seed, fingerprint, versions, command, ...

Only `name`, `count`, `counts`, `task`, `tasks`, `cells`, `grade`, `number`, `rows` and an outlook's
numbers must be there; keys that are not in this list are an error at the top and left alone further
down.
"""

from __future__ import annotations

import json
from pathlib import Path

from allotment.reports import words
from allotment.reports.assets import SCRIPT, hash_inline
from allotment.reports.figures import list_charts
from allotment.reports.markup import Html, load_templates
from allotment.reports.saving import save_report
from allotment.reports.style import STYLE
from allotment.reports.values import check
from allotment.reports.view import PageValues, decide, list_sections

POLICY = (
    f"default-src 'none'; script-src '{hash_inline(SCRIPT)}'; style-src '{hash_inline(STYLE)}';"
    " img-src data:; base-uri 'none'; form-action 'none'"
)
"""nothing is loaded, and nothing is run but our own script, even if a text should get through as
markup"""
GENERATOR = Html('<meta name="generator" content="allotment">')
"""by which a report is known, whatever version wrote it"""


def render(values: PageValues) -> str:
    """The report of these values, in the form above, as one HTML file; raises InputError with all
    that is wrong."""
    given = check(values)
    template = load_templates().get_template("page.html")
    with words.writing(given.get("style") or {}):
        return template.render(
            title=given.get("title") or words.TITLE,
            decision=decide(given),
            sections=list_sections(given),
            data=_write_data(given),
            words=words,
            policy=Html(POLICY),
            generator=GENERATOR,
            style=Html(STYLE),
            script=Html(SCRIPT),
        )


def _write_data(given: PageValues) -> Html:
    """What the script needs, as JSON that can't end its element."""
    what_if = given.get("what_if") or {}
    data = {
        "words": words.SCRIPT_WORDS,
        "unit": what_if.get("unit") or "",
        "isMean": bool(what_if.get("is_mean")),
        "money": words.describe_style(),
        "instance": what_if.get("instance"),
        "reach": given.get("reach") or [],
        "charts": list_charts(given),
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def write_page(values: PageValues, path: Path) -> Path:
    """The report of these values as a file, in the place of an earlier one, but of nothing else."""
    return save_report(render(values), path, GENERATOR)
