"""The report as one page: `render(values)` gives one HTML file that needs no network.

Its words and tables are there without any script; the script, which its policy knows by hash,
draws the charts and answers "what if".

The values are plain JSON. Every part may be missing or None; lists may be tuples; money may be text
("0.035"). Names and texts may hold anything: all of it is escaped.

    {"title": text,
     "decision": text,  in place of the sentence that is made of plan and outlook
     "plan": {"tasks": [{"name": text, "count": int,
                         "cost": money, "have": int, "spend": money,
                         "low": int, "high": int,  range of the count over the draws' own best plans
                         "plateau": [int, int],         and over plans within 1 % of this one
                         "score": {"metric": text, "now": span, "after": span}}],
                                  a span is {"middle": x, "low": x, "high": x}
              "budget": money, "spent": money, "currency": text},
     "order": text,  what of it to order now
     "stale": text,  that labels came in since it was measured
     "outlook": {"mean": x, "low": x, "high": x, "level": 0.9, "chance": share,
                                            D_T(plan) - D_T(equal budget)
                 "unit": text,              "%" unless the method measures in something else
                 "standing": text},         of the plan, for whoever reads the values; not shown
     "comparison": [{"name": text, "counts": {task: int},  the plan first; as `Score.to_dict`
                     "spent": money, "value": x, "worth": text, "broken": [text],
                     "outlook": ...}],                  of the plan over this row, as above
     "what_if": {"instance": {...},  as `advice.instance.write_instance` writes it
                 "unit": text,       of gains
                 "decimal": text, "thousands": text, "currency": text},
     "frontier": {"points": [[money, mean, low, high]], "budget": money, "unit": text,
                  "level": 0.9, "knee": x},
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
                 "expected": x | text | [mean, low, high], "next": text}],
     "evaluation": {"tasks": [text], "repeats": int, "level": 0.9,
                    "rows": [{"name": text, "gains": {task: [mean, deviation]},
                              "total": [mean, deviation],
                              "ahead": [mean, low, high] | None}]},  D_T(plan) - D_T(row), paired
     "about": {key: anything}}  method, trainings, seed, fingerprint, versions, command, ...

Only `name`, `count`, `counts`, `task`, `tasks`, `cells`, `grade`, `number`, `rows` and an outlook's
numbers must be there; keys that are not in this list are an error at the top and left alone further
down.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allotment.amounts import exact
from allotment.errors import InputError, Mistake
from allotment.files import plainly, replace_file
from allotment.formatting import amounts, find_places, percent
from allotment.learners.metrics import title_metric
from allotment.reports import words
from allotment.reports.assets import SCRIPT, hash_inline
from allotment.reports.markup import (
    NARROW,
    Content,
    Html,
    HtmlColumn,
    escape,
    fill,
    join,
    name,
    note,
    table,
    tag,
)
from allotment.reports.figures import list_charts, place_chart
from allotment.reports.matrix import show_matrix
from allotment.reports.style import STYLE
from allotment.reports.values import check

MOST_TASK_COLUMNS = 12
"""tasks that get a column each"""
POLICY = (
    f"default-src 'none'; script-src '{hash_inline(SCRIPT)}'; style-src '{hash_inline(STYLE)}';"
    " img-src data:; base-uri 'none'; form-action 'none'"
)
"""nothing is loaded, and nothing is run but our own script, even if a text should get through as
markup"""
GENERATOR = tag("meta", name="generator", content="allotment")
"""by which a report is known, whatever version wrote it"""
BEGINNING = 2000
"""bytes of a file in which that stands"""

Values = Mapping[str, Any]


def render(values: Values) -> str:
    """The report of these values, in the form above, as one HTML file; raises InputError with all
    that is wrong."""
    given = check(values)
    title = given.get("title") or words.TITLE
    parts = {key: make(given) for key, make in PAGE_PARTS.items() if key in given}
    parts = {key: part for key, part in parts.items() if part}
    sections = [
        tag(
            "section",
            tag("h2", words.HEADINGS[key], id=f"{key}-head"),
            part,
            id=key,
            aria_labelledby=f"{key}-head",
        )
        for key, part in parts.items()
    ]
    body = tag(
        "main", tag("h1", title), _show_decision(given), _list_contents(list(parts)), *sections
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        GENERATOR,
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    data = tag("script", _write_data(given), type="application/json", id="values")
    script = tag("script", Html(SCRIPT))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body, data, script), lang='en')}\n"


def _write_data(given: Values) -> Html:
    """What the script needs, as JSON that can't end its element."""
    what_if = given.get("what_if") or {}
    currency = (given.get("plan") or {}).get("currency")
    data = {
        "words": words.SCRIPT_WORDS,
        "unit": what_if.get("unit") or "",
        "money": {
            "decimal": what_if.get("decimal") or ".",
            "thousands": what_if.get("thousands") or ",",
            "currency": what_if.get("currency") or currency or "",
        },
        "instance": what_if.get("instance"),
        "reach": given.get("reach") or [],
        "charts": list_charts(given),
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def is_report(path: Path) -> bool:
    """Whether a file is a report, which a newer one may replace."""
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(BEGINNING)


def write_page(values: Values, path: Path) -> Path:
    """The report of these values as a file, in the place of an earlier one, but of nothing else."""
    text = render(values)
    with plainly(path):
        if path.is_symlink():
            what = "is a link, which is not followed; name another file with -o, or remove the link"
        elif path.exists() and not path.is_file():
            what = "is a folder, a pipe or a device; name another file with -o"
        elif path.is_file() and not is_report(path):
            what = "is there already and is no report; name another file with -o, or move it away"
        else:
            what = ""
    if what:
        raise InputError([Mistake(str(path), what)])
    replace_file(path, text.encode())
    return path


def _show_decision(given: Values) -> Html:
    plan, outlook = given.get("plan"), given.get("outlook")
    if "decision" in given:
        sentence = escape(given["decision"])
    elif plan and plan["tasks"]:
        equal = next(
            (
                row["counts"]
                for row in given.get("comparison", ())[1:]
                if row["name"] == words.EQUAL
            ),
            None,
        )
        sentence = words.decide(plan, outlook, equal)
    else:
        sentence = escape(words.NOTHING_TO_DECIDE)
    scores = words.say_scores(plan["tasks"]) if plan and "decision" not in given else Html()
    parts = [tag("p", sentence, class_="sentence"), _warn(given)]
    parts += [tag("p", scores)] if scores else []
    if "stale" in given:
        parts.insert(0, tag("p", f"{words.OUT_OF_DATE}: {given['stale']}"))
    if outlook:
        parts += [
            tag("p", words.describe_interval(outlook), class_="spoken"),
            place_chart("interval"),
            note(words.explain_unit(outlook)),
        ]
    if "order" in given:
        parts.append(tag("p", f"{words.ORDER_NOW}: {given['order']}."))
    if plan or "decision" in given:
        parts.append(tag("p", words.SIGNED, class_="sign"))
    return tag("div", *parts, class_="decision")


def _warn(given: Values) -> Html:
    """Where the method itself is no good, its interval is not to be taken at its word."""
    if any(
        (each.get("kind"), each["grade"]) == ("method", "unusable")
        for each in given.get("verdicts", ())
    ):
        return tag("p", words.CAUTION.format(part=words.HEADINGS["verdicts"]))
    return Html()


def _list_contents(parts: Sequence[str]) -> Html:
    if len(parts) < 3:
        return Html()
    links = [tag("li", tag("a", words.HEADINGS[key], href=f"#{key}")) for key in parts]
    return tag("nav", tag("ul", *links), aria_label=words.CONTENTS)


def _show_plan(given: Values) -> Html:
    plan, tasks = given["plan"], given["plan"]["tasks"]
    if not tasks:
        return note(words.NO_TASKS)
    spent = plan.get("spent")
    columns = [
        HtmlColumn(
            words.HEADS["task"], [name(task["name"]) for task in tasks], "name", words.TOGETHER
        ),
        HtmlColumn(words.HEADS["cost"], _say_amounts([task.get("cost") for task in tasks])),
        HtmlColumn(words.HEADS["have"], [_say_optional(task.get("have")) for task in tasks]),
        HtmlColumn(words.HEADS["count"], [words.say_count(task["count"]) for task in tasks]),
        HtmlColumn(
            words.HEADS["spend"],
            _say_amounts([task.get("spend") for task in tasks]),
            foot="" if spent is None else words.say_money(spent),
        ),
        HtmlColumn(words.HEADS["share"], _show_shares([task.get("spend") for task in tasks])),
        HtmlColumn(
            words.HEADS["range"], [_say_ends(task.get("low"), task.get("high")) for task in tasks]
        ),
        HtmlColumn(
            words.HEADS["plateau"],
            [_say_ends(*(task.get("plateau") or (None, None))) for task in tasks],
        ),
    ]
    shown = _drop_unknown(columns)
    explained = {words.HEADS["range"], words.HEADS["plateau"]} & {column.head for column in shown}
    return join(
        [
            table(words.HEADINGS["plan"], shown),
            tag("p", words.sum_up_money(plan)),
            note(words.NOTES["plan"] if explained else ""),
            _show_scores([task for task in tasks if task.get("score")]),
        ]
    )


def _show_scores(tasks: Sequence[Values]) -> Html:
    """What tasks score now and with the plan, each in its own metric."""
    if not tasks:
        return Html()
    scores = [task["score"] for task in tasks]
    metrics = [title_metric(each["metric"]) for each in scores]
    columns = [
        HtmlColumn(words.HEADS["task"], [name(task["name"]) for task in tasks], "name"),
        HtmlColumn(words.HEADS["metric"], metrics, "name"),
    ]
    for when in ("now", "after"):
        columns.append(HtmlColumn(words.HEADS[when], [_say_span(each, when) for each in scores]))
    return join([table(words.SCORE_TABLE, columns), note(words.NOTES["scores"])])


def _say_span(score: Values, when: str) -> str:
    span, places = score[when], words.find_score_places(score)
    middle = words.say_number(span["middle"], places)
    return f"{middle} ({words.say_range(span['low'], span['high'], places)})"


def _drop_unknown(columns: Sequence[HtmlColumn]) -> list[HtmlColumn]:
    """Without columns of which nothing is known."""
    return [column for column in columns if any(cell != words.NOT_KNOWN for cell in column.cells)]


def _say_amounts(values: Sequence[Any]) -> list[str]:
    """Money of one column, with the same decimals wherever that is possible."""
    known = iter(amounts([exact(value) for value in values if value is not None]))
    return [
        words.NOT_KNOWN if value is None else words.group_digits(next(known)) for value in values
    ]


def _say_optional(count: int | None) -> str:
    return words.NOT_KNOWN if count is None else words.say_count(count)


def _say_ends(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return words.NOT_KNOWN
    return f"{words.say_count(low)} to {words.say_count(high)}"


def _show_shares(spends: Sequence[Any]) -> list[Content]:
    """Each task's share of the money, as text and as a bar."""
    known = [exact(spend) for spend in spends if spend is not None]
    total = sum(known)
    if total <= 0 or len(known) < len(spends) or min(known) < 0:
        return [words.NOT_KNOWN] * len(spends)
    shares = [float(spend / total) for spend in known]
    bars = [
        tag(
            "svg",
            tag("rect", width=f"{100 * share:.1f}", height="4"),
            class_="bar",
            viewBox="0 0 100 4",
            preserveAspectRatio="none",
            aria_hidden="true",
        )
        for share in shares
    ]
    return [join([percent(share), bar]) for share, bar in zip(shares, bars, strict=True)]


def _show_comparison(given: Values) -> Html:
    rows = given["comparison"]
    tasks = list(rows[0]["counts"])
    outlooks = [row.get("outlook") for row in rows]
    columns = [HtmlColumn(words.HEADS["plan"], [_name_plan(row["name"]) for row in rows], "name")]
    for task in tasks if len(tasks) <= MOST_TASK_COLUMNS else ():
        columns.append(
            HtmlColumn(name(task, NARROW), [_say_optional(row["counts"].get(task)) for row in rows])
        )
    columns += [
        HtmlColumn(words.HEADS["spent"], _say_amounts([row.get("spent") for row in rows])),
        *_show_worth(rows),
        HtmlColumn(words.HEADS["ahead"], [_say_outlook(each) for each in outlooks]),
        HtmlColumn(words.HEADS["chance"], [_say_chance(each) for each in outlooks]),
    ]
    broken = [
        tag("li", fill("{plan} breaks {limit}", plan=name(row["name"]), limit=limit))
        for row in rows
        for limit in row.get("broken") or ()
    ]
    return join(
        [
            table(words.HEADINGS["comparison"], _drop_unknown(columns), strong={0}),
            tag("ul", *broken) if broken else "",
            note(_explain_worth(rows)),
            note(next((words.explain_ahead(each) for each in outlooks if each), "")),
            note(words.NOTES["many"] if len(tasks) > MOST_TASK_COLUMNS else ""),
            *_ask_own(given),
        ]
    )


def _ask_own(given: Values) -> list[Html]:
    """Where a plan of the reader's own is typed, if these are few enough fields."""
    instance = (given.get("what_if") or {}).get("instance")
    if instance is None or len(instance["tasks"]) > MOST_TASK_COLUMNS:
        return []
    return [note(words.NOTES["yours"]), tag("div", id="own-panel")]


def _name_plan(plan: str) -> Html:
    return name("this plan" if plan == "plan" else plan)


def _explain_worth(rows: Sequence[Values]) -> str:
    if not rows[0].get("worth"):
        return ""
    return words.NOTES["labels gained" if "label" in rows[0]["worth"] else "comparison"]


def _show_worth(rows: Sequence[Values]) -> list[HtmlColumn]:
    """What plans are worth, and their share of the first one's."""
    if any(row.get("value") is None for row in rows):
        return []
    first = rows[0]["value"]
    shares = [percent(row["value"] / first) if first > 0 else words.NOT_KNOWN for row in rows]
    worths = [row.get("worth", words.NOT_KNOWN) for row in rows]
    return [HtmlColumn(words.HEADS["worth"], worths), HtmlColumn(words.HEADS["of"], shares)]


def _say_outlook(outlook: Values | None) -> str:
    return (
        words.say_interval(outlook["mean"], outlook["low"], outlook["high"])
        if outlook
        else words.NOT_KNOWN
    )


def _say_chance(outlook: Values | None) -> str:
    return words.say_share(outlook["chance"]) if outlook else words.NOT_KNOWN


def _show_evaluation(given: Values) -> Html:
    evaluation = given["evaluation"]
    rows = evaluation["rows"]
    if not rows:
        return note(words.NOT_MEASURED)
    tasks = evaluation.get("tasks") or list(
        dict.fromkeys(task for row in rows for task in row.get("gains") or ())
    )
    ahead = [
        words.say_interval(*row["ahead"]) if row.get("ahead") else words.NOT_KNOWN for row in rows
    ]
    columns = [
        HtmlColumn(words.HEADS["plan"], [_name_plan(row["name"]) for row in rows], "name"),
        HtmlColumn(words.HEADS["total"], _say_measured([row.get("total") for row in rows])),
        HtmlColumn(words.HEADS["ahead"], ahead),
    ]
    for task in tasks if len(tasks) <= MOST_TASK_COLUMNS else ():
        columns.append(
            HtmlColumn(
                name(task, NARROW),
                _say_measured([(row.get("gains") or {}).get(task) for row in rows]),
            )
        )
    return join(
        [
            tag("p", words.sum_up_evaluation(evaluation)),
            table(words.HEADINGS["evaluation"], _drop_unknown(columns), strong={0}),
            note(words.NOTES["evaluation"]),
            note(words.NOTES["many"] if len(tasks) > MOST_TASK_COLUMNS else ""),
        ]
    )


def _say_measured(pairs: Sequence[Sequence[Any] | None]) -> list[str]:
    """Means and deviations of one column with the same decimals."""
    spreads = sorted(pair[1] for pair in pairs if pair and pair[1])
    places = find_places(spreads[len(spreads) // 2]) if spreads else 2
    return [
        words.say_deviation(pair[0], pair[1], places) if pair else words.NOT_KNOWN for pair in pairs
    ]


def _show_curves(given: Values) -> Html:
    tasks = {task["name"]: task for task in (given.get("plan") or {}).get("tasks", ())}
    curves = given["curves"]
    charts = [_show_curve(curve, at) for at, curve in enumerate(curves)]
    level = next((curve["level"] for curve in curves if curve.get("level") is not None), 0.9)
    keys = _show_keys(words.say_level(level))
    return join([note(words.NOTES["curves"]), keys, tag("div", *charts, class_="charts")])


def _show_keys(level: str) -> Html:
    """What lines, bands and points mean."""
    keys = {
        "line": words.LINE, "band": words.BAND.format(level=level), "dots": words.DOTS,
        "hand": words.MARK_HAND, "buy": words.MARK_PLAN,
    }  # fmt: skip
    items = [tag("li", tag("span", class_=f"key {kind}"), said) for kind, said in keys.items()]
    return tag("ul", *items, class_="legend")


def _show_curve(curve: Values, at: int) -> Html:
    title = tag("h3", name(curve["task"], 60))
    if not curve.get("points") and not curve.get("seen"):
        return tag("figure", title, note(words.NOT_MEASURED))
    said = tag("p", words.describe_curve(curve), class_="spoken")
    return tag("figure", title, said, place_chart("curve", at), _list_points(curve))


def _show_what_if(given: Values) -> Html:
    if "plan" not in given or not given["plan"]["tasks"]:
        return Html()
    return join([note(words.NOTES["what_if"]), tag("div", id="what-if-panel")])


def _show_frontier(given: Values) -> Html:
    found = given["frontier"]
    columns = [
        HtmlColumn(words.HEADS["spend"], [words.say_figure(each[0]) for each in found["points"]])
    ]
    for place, key in enumerate(("worth", "low", "high"), 1):
        cells = [words.say_figure(each[place]) for each in found["points"]]
        columns.append(HtmlColumn(words.HEADS[key], cells))
    figures = table(words.HEADINGS["frontier"], _drop_unknown(columns))
    return join(
        [
            note(words.NOTES["frontier"].format(level=words.say_level_of(found))),
            tag("figure", place_chart("frontier")),
            tag("details", tag("summary", words.FIGURES), figures),
        ]
    )


def _show_reach(given: Values) -> Html:
    if "what_if" not in given:
        return Html()
    return join([note(words.NOTES["reach"]), tag("div", id="score-panel")])


def _show_worths(given: Values) -> Html:
    rows = given["worths"]
    columns = [
        HtmlColumn(words.HEADS["task"], [name(each["task"]) for each in rows], "name"),
        HtmlColumn(words.OWN_PART, [words.say_figure(each["own"]) for each in rows]),
        HtmlColumn(words.OTHERS_PART, [words.say_figure(each["others"]) for each in rows]),
    ]
    figures = table(words.HEADINGS["worths"], columns)
    return join(
        [
            note(words.NOTES["worths"]),
            tag("figure", place_chart("worth")),
            tag("details", tag("summary", words.FIGURES), figures),
        ]
    )


def _list_points(curve: Values) -> Html:
    points = curve.get("points")
    if not points:
        return Html()
    columns = [HtmlColumn(words.HEADS["labels"], [words.say_count(point[0]) for point in points])]
    for place, key in enumerate(("score", "low", "high"), 1):
        columns.append(
            HtmlColumn(words.HEADS[key], [words.say_figure(point[place]) for point in points])
        )
    figures = table(words.HEADINGS["curves"], columns)
    return tag("details", tag("summary", words.FIGURES), figures)


def _show_verdicts(given: Values) -> Html:
    order = list(words.GRADE_SIGNS)
    ranked = sorted(
        given["verdicts"],
        key=lambda each: -order.index(each["grade"]) if each["grade"] in order else 1,
    )
    return tag("ul", *map(_show_verdict, ranked), class_="verdicts")


def _show_verdict(verdict: Values) -> Html:
    grade = verdict["grade"]
    badge = tag(
        "span", words.GRADE_SIGNS.get(grade) or name(grade, NARROW), class_=_badge_class(grade)
    )
    lines = [
        join([tag("dt", title), *(tag("dd", line) for line in said)])
        for title, said in words.list_reasons(verdict)
    ]
    return tag(
        "li", tag("h3", badge, words.name_verdict(verdict)), tag("dl", *lines) if lines else ""
    )


def _badge_class(grade: str) -> str:
    return f"badge {grade}" if grade in words.GRADE_SIGNS else "badge"


def _show_rounds(given: Values) -> Html:
    rounds = given["rounds"]
    columns = [
        HtmlColumn(
            words.HEADS["number"], [words.say_count(each["number"]) for each in rounds], "name"
        ),
        HtmlColumn(words.HEADS["spent"], _say_amounts([each.get("spent") for each in rounds])),
        HtmlColumn(words.HEADS["open"], [_say_open(each.get("open")) for each in rounds], "text"),
        HtmlColumn(
            words.HEADS["expected"],
            [words.say_expected(each.get("expected")) for each in rounds],
            "text",
        ),
        HtmlColumn(
            words.HEADS["next"], [each.get("next") or words.NOT_KNOWN for each in rounds], "text"
        ),
    ]
    return table(words.HEADINGS["rounds"], _drop_unknown(columns))


def _say_open(open_labels: int | Mapping[str, int] | None) -> Content:
    if isinstance(open_labels, Mapping):
        return words.list_counts(open_labels) or "0"
    return _say_optional(open_labels)


def _show_about(given: Values) -> Html:
    lines = []
    for key, value in given["about"].items():
        said: Content = words.say_value(value)
        lines.append(
            join(
                [
                    tag("dt", words.say_key(key)),
                    tag("dd", tag("code", said) if key in words.CODE else said),
                ]
            )
        )
    return tag("dl", *lines)


PAGE_PARTS = {
    "plan": _show_plan,
    "what_if": _show_what_if,
    "frontier": _show_frontier,
    "comparison": _show_comparison,
    "evaluation": _show_evaluation,
    "reach": _show_reach,
    "curves": _show_curves,
    "worths": _show_worths,
    "transfer": lambda given: show_matrix(given["transfer"]),
    "verdicts": _show_verdicts,
    "rounds": _show_rounds,
    "about": _show_about,
}
"""in the order of the page"""
