"""What the page says, part by part: the decision, and sections of tables, notes and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allotment.amounts import exact
from allotment.formatting import amounts, chance, find_places
from allotment.learners.metrics import title_metric
from allotment.reports import words
from allotment.reports.blocks import (
    Chart,
    Charts,
    HtmlColumn,
    Items,
    Note,
    PageBlock,
    PageTable,
    Pairs,
    Panel,
    Paragraph,
    Section,
    ShownVerdict,
    VerdictList,
)
from allotment.reports.gallery import show_gallery
from allotment.reports.markup import NARROW, Content, Html, escape, fill, join, name, small
from allotment.reports.matrix import show_matrix

MOST_TASK_COLUMNS = 12
"""tasks that get a column each"""
MOST_DECIDED = 8
"""tasks whose scores stand beside the decision; of more, they stand below"""
LITTLE_MONEY = 0.05
"""share of the money below which a verdict that moves no more is folded away"""

PageValues = Mapping[str, Any]


@dataclass(frozen=True)
class Decision:
    """What to do, as it stands at the top."""

    sentence: Content
    before: Sequence[Content] = ()
    lines: Sequence[Content] = ()
    tiles: Sequence[tuple[str, Content, Content]] = ()
    """figures that stand out: what it is, the figure, what more there is to it"""
    chart: Chart | None = None
    scores: Sequence[PageBlock] = ()
    """what tasks score now and with the plan"""
    note: Content = ""
    order: Content = ""
    advice: Sequence[Content] = ()
    """whether to measure more, and whether to stop"""
    copy: str = ""
    """the order as text, to be put elsewhere"""
    is_to_sign: bool = False


def decide(given: PageValues) -> Decision:
    plan, outlook = given.get("plan"), given.get("outlook")
    is_planned = "decision" not in given
    stale = f"{words.OUT_OF_DATE}: {words.mark_all(given['stale'])}" if "stale" in given else ""
    lines = [line for line in (_warn(given), _sum_up_bought(given)) if line]
    return Decision(
        sentence=_find_sentence(given),
        before=[stale] if stale and is_planned else [],
        # it matters less where nothing is left to decide
        lines=[*lines, stale] if stale and not is_planned else lines,
        tiles=_list_tiles(given) if is_planned else (),
        chart=_show_span(outlook) if outlook and is_planned else None,
        scores=_view_scores(_list_decided(given)),
        note=words.explain_unit(outlook) if outlook else "",
        order=f"{words.ORDER_NOW}: {words.mark_all(given['order'])}." if "order" in given else "",
        advice=list(map(words.mark_all, given.get("advice", ()))),
        copy=words.write_order(plan["tasks"]) if plan and is_planned else "",
        is_to_sign=bool(plan) or not is_planned,
    )


def _list_decided(given: PageValues) -> list[PageValues]:
    """Tasks whose scores stand beside the decision: all that are scored, or none if they are
    many."""
    tasks = (given.get("plan") or {}).get("tasks", ()) if "decision" not in given else ()
    scored = [task for task in tasks if task.get("score")]
    return scored if len(scored) <= MOST_DECIDED else []


def _show_span(outlook: PageValues) -> Chart:
    return Chart("interval", spoken=words.describe_interval(outlook))


def _find_sentence(given: PageValues) -> Html:
    plan = given.get("plan")
    if "decision" in given:
        return escape(words.mark_all(given["decision"]))
    if not plan or not plan["tasks"]:
        return escape(words.NOTHING_TO_DECIDE)
    others = given.get("comparison", ())[1:]
    equal = next((row for row in others if row["name"] == words.EQUAL), None)
    if (basis := given.get("basis")) is not None:
        values = None if equal is None else (given["comparison"][0]["value"], equal["value"])
        return words.say_given(plan, basis, values)
    return words.say_decision(plan, given.get("outlook"), equal and equal["counts"])


def _warn(given: PageValues) -> str:
    """Where the method itself is no good, its interval is not to be taken at its word."""
    bad = ("method", "unusable")
    if any((each.get("kind"), each["grade"]) == bad for each in given.get("verdicts", ())):
        return words.CAUTION.format(part=words.HEADINGS["verdicts"])
    return ""


def _sum_up_bought(given: PageValues) -> Html:
    """After the money is spent: what came of it, if that was measured."""
    if "decision" not in given or "evaluation" not in given:
        return Html()
    return words.sum_up_evaluation(given["evaluation"])


def _list_tiles(given: PageValues) -> list[tuple[str, Content, Content]]:
    """Chance, gain and what it would be worth to know more."""
    found: list[tuple[str, Content, Content]] = []
    if (outlook := given.get("outlook")) is not None:
        found.append((words.TILES["chance"], chance(outlook["chance"]), words.EQUAL))
    if (knowing := given.get("knowing")) is not None:
        places = find_places(knowing)
        unit = words.find_unit(given.get("outlook") or {})
        said = words.say_number(knowing, places, sign=True)
        found.append((words.TILES["knowing"], f"{said} {unit}", words.KNOWING))
    return found


def list_sections(given: PageValues) -> list[Section]:
    """The parts that are there, in the order of the page."""
    found = []
    for key, view in VIEWS.items():
        blocks = [block for block in view(given) if block] if key in given else []
        if blocks:
            is_bought = key == "plan" and "decision" in given
            heading = words.BOUGHT if is_bought else words.HEADINGS[key]
            found.append(Section(key.replace("_", "-"), heading, blocks))
    return found


def _note(text: Content) -> list[PageBlock]:
    return [Note(text)] if text else []


def _view_plan(given: PageValues) -> list[PageBlock]:
    plan, tasks = given["plan"], given["plan"]["tasks"]
    if not tasks:
        return [Note(words.NO_TASKS)]
    scored = [task for task in tasks if task.get("score")]
    spent = plan.get("spent")
    shares = _find_shares([task.get("spend") for task in tasks])
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
        HtmlColumn(
            words.HEADS["share"],
            [words.say_percent(each) for each in shares]
            if shares
            else [words.NOT_KNOWN] * len(tasks),
            bars=shares,
        ),
        HtmlColumn(
            words.HEADS["range"], [_say_ends(task.get("low"), task.get("high")) for task in tasks]
        ),
        HtmlColumn(
            words.HEADS["plateau"],
            [_say_ends(*(task.get("plateau") or (None, None))) for task in tasks],
        ),
        HtmlColumn(
            words.HEADS["break_even"], [words.say_figure(task.get("break_even")) for task in tasks]
        ),
    ]
    shown = _drop_unknown(columns)
    heads = {column.head for column in shown}
    explained = [key for key in ("range", "plateau", "break_even") if words.HEADS[key] in heads]
    money = words.sum_up_money(plan)
    return [
        PageTable(words.HEADINGS["plan"], shown),
        *([Paragraph(money)] if money else []),
        *_note(" ".join(words.NOTES[key] for key in explained)),
        *([] if _list_decided(given) else _view_scores(scored)),
        *_view_caps(plan.get("caps") or ()),
    ]


def _view_scores(tasks: Sequence[PageValues]) -> list[PageBlock]:
    """What tasks score now and with the plan, each in its own metric."""
    if not tasks:
        return []
    scores = [task["score"] for task in tasks]
    heads = [
        join([name(task["name"]), small(title_metric(task["score"]["metric"]))]) for task in tasks
    ]
    columns = [HtmlColumn(words.HEADS["task"], heads, "name")]
    for when in ("now", "after"):
        columns.append(HtmlColumn(words.HEADS[when], [_say_span(each, when) for each in scores]))
    return [PageTable(words.SCORE_TABLE, columns), Note(words.NOTES["scores"])]


def _say_span(score: PageValues, when: str) -> Html:
    """A score and, below it, its interval: side by side they would be too wide for a phone."""
    span, places = score[when], words.find_score_places(score)
    middle = words.say_number(span["middle"], places)
    return _stack(middle, words.say_range(span["low"], span["high"], places))


def _stack(figure: str, interval: str) -> Html:
    return join([figure, " ", small(f"({interval})")])


def _view_caps(caps: Sequence[PageValues]) -> list[PageBlock]:
    """How much of each joint limit the plan takes."""
    if not caps:
        return []
    shares = [
        float(exact(each["used"]) / exact(each["limit"])) if exact(each["limit"]) else 1.0
        for each in caps
    ]
    columns = [
        HtmlColumn(words.HEADS["cap"], [name(each["name"]) for each in caps], "name"),
        HtmlColumn(words.HEADS["used"], [words.say_money(each["used"]) for each in caps]),
        HtmlColumn(words.HEADS["limit"], [words.say_money(each["limit"]) for each in caps]),
        HtmlColumn(words.HEADS["share"], [words.say_percent(each) for each in shares], bars=shares),
    ]
    return [PageTable(words.CAP_TABLE, columns)]


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


def _find_shares(spends: Sequence[Any]) -> list[float]:
    """Each task's share of the money; nothing where that is not known of all."""
    known = [exact(spend) for spend in spends if spend is not None]
    total = sum(known)
    if total <= 0 or len(known) < len(spends) or min(known) < 0:
        return []
    return [float(spend / total) for spend in known]


def _view_what_if(given: PageValues) -> list[PageBlock]:
    if not (given.get("plan") or {}).get("tasks"):
        return []
    return [Note(words.NOTES["what_if"]), Panel("what-if-panel")]


def _view_frontier(given: PageValues) -> list[PageBlock]:
    found = given["frontier"]
    points = found["points"]
    columns = [HtmlColumn(words.HEADS["spend"], [words.say_figure(each[0]) for each in points])]
    for place, key in enumerate(("worth", "low", "high"), 1):
        columns.append(
            HtmlColumn(words.HEADS[key], [words.say_figure(each[place]) for each in points])
        )
    figures = PageTable(words.HEADINGS["frontier"], _drop_unknown(columns))
    banded = any(each[2] is not None for each in points)
    band = words.NOTES["band"].format(level=words.say_level_of(found)) if banded else ""
    said = words.NOTES["frontier"].format(band=band)
    steps = words.say_steps(found, found.get("unit") or words.find_gain_unit(given))
    return [Note(said), *([Paragraph(steps)] if steps else []), Chart("frontier", table=figures)]


def _view_reach(given: PageValues) -> list[PageBlock]:
    return [Note(words.NOTES["reach"]), Panel("score-panel")] if "what_if" in given else []


def _view_comparison(given: PageValues) -> list[PageBlock]:
    rows = given["comparison"]
    tasks = list(rows[0]["counts"])
    outlooks = [row.get("outlook") for row in rows]
    # what matters first: on a narrow screen the counts are further to the right
    columns = [
        HtmlColumn(words.HEADS["plan"], [_name_plan(row["name"]) for row in rows], "name"),
        *_list_worth(rows),
        HtmlColumn(words.HEADS["ahead"], [_say_outlook(each) for each in outlooks]),
        HtmlColumn(words.HEADS["chance"], [_say_chance(each) for each in outlooks]),
        HtmlColumn(words.HEADS["spent"], _say_amounts([row.get("spent") for row in rows])),
    ]
    for task in tasks if len(tasks) <= MOST_TASK_COLUMNS else ():
        counts = [row["counts"].get(task) for row in rows]
        # a card of a phone leaves out what is not bought
        kinds = ["zero" if count == 0 else "" for count in counts]
        cells = [_say_optional(count) for count in counts]
        columns.append(HtmlColumn(name(task, NARROW), cells, classes=kinds))
    broken = [
        fill("{plan} breaks {limit}", plan=name(row["name"]), limit=limit)
        for row in rows
        for limit in row.get("broken") or ()
    ]
    return [
        PageTable(words.HEADINGS["comparison"], _drop_unknown(columns), strong={0}),
        *([Items(broken)] if broken else []),
        *_note(_explain_worth(rows)),
        *_note(next((words.explain_ahead(each) for each in outlooks if each), "")),
        *_note(words.NOTES["many"] if len(tasks) > MOST_TASK_COLUMNS else ""),
        *_ask_own(given),
    ]


def _ask_own(given: PageValues) -> list[PageBlock]:
    """Where a plan of the reader's own is typed, if these are few enough fields."""
    instance = (given.get("what_if") or {}).get("instance")
    if instance is None or len(instance["tasks"]) > MOST_TASK_COLUMNS:
        return []
    return [Panel("own-panel", words.NOTES["yours"])]


def _name_plan(plan: str) -> Html:
    return name("this plan" if plan == "plan" else plan)


def _explain_worth(rows: Sequence[PageValues]) -> str:
    if not rows[0].get("worth"):
        return ""
    return words.NOTES["labels gained" if "label" in rows[0]["worth"] else "comparison"]


def _list_worth(rows: Sequence[PageValues]) -> list[HtmlColumn]:
    """What plans are worth, and their share of the first one's."""
    if any(row.get("value") is None for row in rows):
        return []
    first = rows[0]["value"]
    shares = [
        words.say_percent(row["value"] / first) if first > 0 else words.NOT_KNOWN for row in rows
    ]
    worths = [words.mark_all(row.get("worth", words.NOT_KNOWN)) for row in rows]
    return [HtmlColumn(words.HEADS["worth"], worths), HtmlColumn(words.HEADS["of"], shares)]


def _say_outlook(outlook: PageValues | None) -> Content:
    """With its interval below it, or ten columns would not fit beside each other."""
    if not outlook:
        return words.NOT_KNOWN
    places = find_places(outlook["high"] - outlook["low"])
    mean = words.say_number(outlook["mean"], places, sign=True)
    return _stack(mean, words.say_range(outlook["low"], outlook["high"], places))


def _say_chance(outlook: PageValues | None) -> str:
    return chance(outlook["chance"]) if outlook else words.NOT_KNOWN


def _view_evaluation(given: PageValues) -> list[PageBlock]:
    evaluation = given["evaluation"]
    rows = evaluation["rows"]
    if not rows:
        return [Note(words.NOT_MEASURED)]
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
    summed = words.sum_up_evaluation(evaluation)
    return [
        *([Paragraph(summed)] if summed else []),
        PageTable(words.HEADINGS["evaluation"], _drop_unknown(columns), strong={0}),
        Note(words.NOTES["evaluation"]),
        *_note(words.NOTES["same"] if any(row["name"] == words.ON_SAME for row in rows) else ""),
        *_note(words.NOTES["many"] if len(tasks) > MOST_TASK_COLUMNS else ""),
        *_view_outcome(given),
    ]


def _view_outcome(given: PageValues) -> list[PageBlock]:
    """What was foretold, beside what came, where both are known."""
    rows = words.match_outcomes(given)
    if not any(row["foretold"] is not None for row in rows):
        return []
    columns = [
        HtmlColumn(words.HEADS["beside"], [name(row["name"]) for row in rows], "name"),
        HtmlColumn(words.HEADS["foretold"], [words.say_figure(row["foretold"]) for row in rows]),
        HtmlColumn(words.HEADS["came"], [words.say_interval(*row["came"]) for row in rows]),
    ]
    return [
        Note(words.NOTES["outcome"]),
        Chart("outcome", table=PageTable(words.OUTCOMES, columns)),
    ]


def _say_measured(pairs: Sequence[Sequence[Any] | None]) -> list[str]:
    """Means and deviations of one column with the same decimals."""
    spreads = sorted(pair[1] for pair in pairs if pair and pair[1])
    places = find_places(spreads[len(spreads) // 2]) if spreads else 2
    return [
        words.say_deviation(pair[0], pair[1], places) if pair else words.NOT_KNOWN for pair in pairs
    ]


def _view_curves(given: PageValues) -> list[PageBlock]:
    curves = given["curves"]
    level = next((curve["level"] for curve in curves if curve.get("level") is not None), 0.9)
    points = [point for curve in curves for point in curve.get("points") or ()]
    banded = any(point[2] is not None for point in points)
    keys = [
        ("line", words.LINE),
        *([("band", words.BAND.format(level=words.say_level(level)))] if banded else []),
        *([("dots", words.DOTS)] if any(curve.get("seen") for curve in curves) else []),
        ("hand", words.MARK_HAND),
        ("buy", words.MARK_PLAN),
    ]
    charts = [_view_curve(curve, at) for at, curve in enumerate(curves)]
    return [Note(words.NOTES["curves"]), Charts(charts, keys)]


def _view_curve(curve: PageValues, at: int) -> Chart | Note:
    title = name(curve["task"], 60)
    if not curve.get("points") and not curve.get("seen"):
        return Note(fill("{task}: {said}", task=title, said=words.NOT_MEASURED))
    return Chart("curve", at, title, words.describe_curve(curve), _list_points(curve))


def _list_points(curve: PageValues) -> PageTable | None:
    points = curve.get("points")
    if not points:
        return None
    columns = [HtmlColumn(words.HEADS["labels"], [words.say_count(point[0]) for point in points])]
    for place, key in enumerate(("score", "low", "high"), 1):
        columns.append(
            HtmlColumn(words.HEADS[key], [words.say_figure(point[place]) for point in points])
        )
    return PageTable(f"{words.HEADINGS['curves']}: {curve['task']}", columns)


def _view_worths(given: PageValues) -> list[PageBlock]:
    rows = given["worths"]
    columns = [
        HtmlColumn(words.HEADS["task"], [name(each["task"]) for each in rows], "name"),
        HtmlColumn(words.OWN_PART, [words.say_figure(each["own"]) for each in rows]),
        HtmlColumn(words.OTHERS_PART, [words.say_figure(each["others"]) for each in rows]),
    ]
    figures = PageTable(words.HEADINGS["worths"], columns)
    keys = [("own", words.OWN_PART), ("others", words.OTHERS_PART)]
    return [Note(words.NOTES["worths"]), Chart("worth", table=figures, keys=keys)]


def _view_verdicts(given: PageValues) -> list[PageBlock]:
    """The worst first; what moves hardly any money is folded away."""
    order = list(words.GRADE_SIGNS)
    ranked = sorted(
        given["verdicts"],
        key=lambda each: -order.index(each["grade"]) if each["grade"] in order else 1,
    )
    matters = [each for each in ranked if _matters(each)]
    if not matters:
        return [VerdictList([_view_verdict(each) for each in ranked])]
    folded = [_view_verdict(each) for each in ranked if not _matters(each)]
    return [VerdictList([_view_verdict(each) for each in matters], folded)]


def _matters(verdict: PageValues) -> bool:
    return verdict.get("share") is None or verdict["share"] >= LITTLE_MONEY


def _view_verdict(verdict: PageValues) -> ShownVerdict:
    grade = verdict["grade"]
    is_known = grade in words.GRADE_SIGNS
    badge = words.GRADE_SIGNS[grade] if is_known else name(grade, NARROW)
    reasons = Pairs(words.list_reasons(verdict))
    return ShownVerdict(words.name_verdict(verdict), grade if is_known else "", badge, reasons)


def _view_rounds(given: PageValues) -> list[PageBlock]:
    rounds = given["rounds"]
    columns = [
        HtmlColumn(
            words.HEADS["number"], [words.say_count(each["number"]) for each in rounds], "name"
        ),
        HtmlColumn(
            words.HEADS["bought"], [_say_open(each.get("bought")) for each in rounds], "text"
        ),
        HtmlColumn(words.HEADS["spent"], _say_amounts([each.get("spent") for each in rounds])),
        HtmlColumn(
            words.HEADS["scores"], [words.say_scores(each.get("scores")) for each in rounds], "text"
        ),
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
    return [PageTable(words.HEADINGS["rounds"], _drop_unknown(columns))]


def _say_open(open_labels: int | Mapping[str, int] | None) -> Content:
    if isinstance(open_labels, Mapping):
        return words.list_counts(open_labels) or "0"
    return _say_optional(open_labels)


def _view_about(given: PageValues) -> list[PageBlock]:
    about = given["about"]
    pairs = [(words.say_key(key), [words.say_value(value)]) for key, value in about.items()]
    code = {place for place, key in enumerate(about) if key in words.CODE}
    return [Pairs(pairs, code)]


VIEWS = {
    "plan": _view_plan,
    "what_if": _view_what_if,
    "frontier": _view_frontier,
    "comparison": _view_comparison,
    "evaluation": _view_evaluation,
    "reach": _view_reach,
    "pictures": lambda given: show_gallery(given["pictures"]),
    "curves": _view_curves,
    "worths": _view_worths,
    "transfer": lambda given: show_matrix(given["transfer"]),
    "verdicts": _view_verdicts,
    "rounds": _view_rounds,
    "about": _view_about,
}
"""in the order of the page"""
