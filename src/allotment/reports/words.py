"""The words of the report: headings, notes, figures as people read them, and the sentences made of
them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from allotment.amounts import exact, show
from allotment.formatting import chance, find_places, percent
from allotment.reports.markup import Content, Html, escape, fill, join, name
from allotment.standing import PERCENT, Standing

TITLE = "Label plan"
CONTENTS = "On this page"
SIGNED = "Decided by: ________________________    Date: ______________"
CAUTION = "Careful: what this rests on was found unusable; see {part} before you decide."
NOTHING_TO_DECIDE = (
    "There is nothing to decide yet: estimate what labels are worth, plan, and write the report"
    " again."
)
HEADINGS = {
    "plan": "What to buy",
    "what_if": "What if",
    "frontier": "What other budgets bring",
    "reach": "What a score costs",
    "comparison": "Beside other plans",
    "evaluation": "What it brought",
    "pictures": "What labels look like",
    "curves": "What more labels bring",
    "worths": "Where the gains come from",
    "transfer": "What tasks do for each other",
    "verdicts": "How far this can be trusted",
    "rounds": "Rounds",
    "about": "How it was measured",
}
NOTES = {
    "range": (
        "Best plans: where the number lies if what was measured is varied within its uncertainty."
    ),
    "plateau": "Equally good: what it can be in plans worth at least 99 % of this one.",
    "break_even": "Bought up to: the price of one label above which none is bought.",
    "outcome": (
        "By how much this plan is ahead of each other one: the bar is what retraining showed, with"
        " its interval, the stroke what had been expected."
    ),
    "comparison": (
        "Mean gain: what the tasks gain, in % of each one's score, in the mean over tasks by their"
        " weights."
    ),
    "labels gained": (
        "Mean gain: what the tasks gain, in labels of each one's own, in the mean over tasks by"
        " their weights."
    ),
    "scores": (
        "Score: of a model trained on these labels, on instances like those at hand; nine of ten"
        " such models lie between the two in brackets."
    ),
    "ahead": (
        "Ahead: by how much this plan is expected to be better than the other, in {unit}, with the"
        " {level} interval; chance: that it is better at all. Both follow from what was measured;"
        " nothing was retrained for them."
    ),
    "evaluation": (
        "D_i: the gain of a task in % of its score before buying, mean and standard deviation over"
        " retrainings; D_T: the mean over tasks. Ahead: D_T of this plan less that of the other, on"
        " the same draws."
    ),
    "same": "equal images*: as many of each task, all on the same instances.",
    "labels": (
        "What one label of the row's task is worth to the column's task, in labels of the column's"
        " own; the diagonal is 1 by definition."
    ),
    "%": (
        "What as many labels again of the row's task bring to the column's task, in % of its score."
    ),
    "transfer": "What labels of the row's task bring to the column's task.",
    "called": (
        "Only cells that are told from 0 have a colour, and say whether the labels help or harm."
    ),
    "curves": "By the number of labels of the task itself.",
    "what_if": (
        "Change the money, a price, what counts how much, or what must and may be bought: the plan"
        " follows, exactly as the planner itself would. Nothing leaves this page; the link keeps"
        " what you changed."
    ),
    "frontier": (
        "The best plan of every budget. {band}The knee is where money begins to bring less than on"
        " the whole."
    ),
    "band": "The band is the {level} interval of what was measured. ",
    "reach": (
        "By labels of the task itself, everything else as it is; what other tasks' labels add is"
        " left out."
    ),
    "worths": "What the plan's labels bring each task: those of its own, and those of other tasks.",
    "yours": "A plan of your own, beside this one:",
    "d_t": (
        "% of score: the weighted mean over tasks of the gain in % of each task's score, which the"
        " paper calls D_T."
    ),
    "in labels": (
        "Labels: the weighted mean over tasks of what each gains, in labels of its own; this method"
        " does not say how much score that is."
    ),
    "many": "There are too many tasks to give each a column here.",
}
HEADS = {
    "task": "Task",
    "cost": "Price",
    "have": "At hand",
    "count": "Buy",
    "spend": "Money",
    "share": "Share",
    "range": "Best plans",
    "plateau": "Equally good",
    "break_even": "Bought up to",
    "cap": "Limit",
    "instance": "Instance",
    "used": "Taken",
    "limit": "Of",
    "beside": "Ahead of",
    "foretold": "Expected",
    "came": "Came",
    "plan": "Plan",
    "spent": "Spent",
    "worth": "Mean gain",
    "now": "Score now",
    "after": "With the plan",
    "of": "Of this plan",
    "ahead": "Ahead",
    "chance": "Chance",
    "total": "D_T",
    "from": "Label of",
    "number": "Round",
    "open": "Labels open",
    "bought": "Ordered",
    "scores": "Scored since",
    "expected": "Expected",
    "next": "Next",
    "labels": "Labels",
    "score": "Expected",
    "low": "Low",
    "high": "High",
}
GALLERY_TABLE = "Pictures and labels of {task}"
TILE_WORDS = {
    "picture": "Picture",
    "label": "Label",
    "now": "Model now",
    "before": "Model before",
    "after": "Model after",
}
GALLERY_NOTES = {
    "nobody": (
        "Some of the labels at hand. What a model says of such pictures stands here once it was"
        " asked (allot evaluate --now)."
    ),
    "parts": (
        "Model now: what a model says that never saw this label (allot evaluate --now). From left"
        " to right: the worst answer of those on record to the best."
    ),
    "test": (
        "Pictures kept for the test: what a model says with the labels of the start, and what one"
        " says with those of the plan as well. From left to right: the worst answer to the best."
    ),
}
"""by who was asked"""
KIND_WORDS = {
    "classification": "one class",
    "multilabel": "any of several classes",
    "regression": "a number",
    "segmentation": "a class for each pixel",
    "depth": "a distance for each pixel",
    "normals": "a direction for each pixel",
    "edges": "edges",
    "keypoints": "points that stand out",
}
RIGHT_SIGNS = {True: "✓", False: "✕"}
GRADE_SIGNS = {"sound": "✓ known", "weak": "! not sure", "unusable": "✕ not known"}
CALLS = {1: "helps", -1: "harms", 0: "unclear"}
FINDING_TITLES = {
    "method": "Method {name}",
    "task": "Task {name}",
    "curve": "Curve of {name}",
    "cell": "What labels of {source} bring to {name}",
}
FINDING_PARTS = {"why": "Why", "effect": "What it does to the plan", "mend": "What helps"}
SCRIPT_WORDS = {
    "csv": "CSV",
    "table": "Table: {label}",
    "copied": "copied",
    "whatIf": "What if",
    "task": "Task",
    "budget": "Budget",
    "price": "Price",
    "weight": "Weight",
    "least": "At least",
    "most": "At most",
    "hold": "Hold",
    "buy": "Buy",
    "change": "Change",
    "gain": "Gain",
    "back": "Back to the plan",
    "save": "Save as TOML",
    "link": "Copy the link",
    "others": "labels of {count} more tasks",
    "nothing": "nothing",
    "same": "That is the plan: {what} for {money}, a gain of {gain}.",
    "answer": "Buy {what} for {money}: a gain of {gain}, {change} beside the plan.",
    "notMoney": "{what}: {text} is not an amount of money such as 12.50",
    "notNumber": "{what}: {text} is not a number",
    "notWhole": "{what}: {text} is not a whole number",
    "budgetMoved": "The budget is {now} in place of {before}.",
    "priceMoved": "its price is {now} in place of {before}",
    "weightMoved": "it counts {now} times in place of {before}",
    "held": "held at {count}",
    "atLeast": "the least is {count}",
    "atMost": "the most is {count}",
    "more": "{count} more",
    "fewer": "{count} fewer",
    "asBefore": "as before",
    "nextMoney": ("The next unit of money brings {now} {unit}; with the plan it brings {before}."),
    "inexact": "More plans are possible than could be looked through: this one is nearly the best.",
    "tomlHead": "what a reader of the report asked for",
    "score": "Score",
    "scoreNow": "{task} scores {now} ({metric}) now. Which score do you want?",
    "outOfReach": "With a chance of {chance} not even {count} labels reach it.",
    "scoreCosts": "With a chance of {chance}: {count} more labels, {money}.",
    "own": "Your plan",
    "wholeOnly": "Give whole numbers of labels.",
    "ownWorth": "It costs {money} and gains {gain}: {change} beside the plan.",
    "tooDear": "That is {money} more than there is.",
    "copyOrder": "Copy the numbers",
}
"""words that the page's script uses; {parts} are filled in there"""
FRONTIER_MARKS = {"budget": "budget", "knee": "knee"}
OWN_PART, OTHERS_PART = "by its own labels", "by labels of others"
MONEY_AXIS = "money"
KEYS = {
    "seed": "Seed",
    "data": "Data",
    "fingerprint": "Fingerprint of the data",
    "command": "To repeat it",
}
CODE = {"fingerprint", "data fingerprint", "labels", "learner", "command"}
"""keys whose values are to be copied to the letter"""
TO = "to"
ORDER_NOW = "Order now"
OUT_OF_DATE = "Out of date"
BOUGHT = "The last plan"
SCORE_TABLE = "What tasks score"
CAP_TABLE = "Limits on several tasks"
OUTCOMES = "Expected, and what came"
FOLDED = "{count} more, which move hardly any money"
TILES = {"chance": "Chance of beating", "knowing": "To know everything"}
KNOWING = "is worth at most so much more"
TOGETHER = "Together"
NO_TASKS = "There are no tasks to buy labels for."
NOT_MEASURED = "Nothing was measured here."
OF_SCORE = "% of score"
"""the unit of gains over all tasks, as on every other page"""
EQUAL, ON_SAME = "equal budget", "equal images*"
BY_DEFINITION = "(by definition)"
NOT_KNOWN = "–"
AT_HAND, WITH_PLAN = "at hand: {count}", "with the plan: {count}"
AXIS = "labels"
LINE, BAND, DOTS = "expected", "{level} interval", "single trainings"
MARK_HAND, MARK_PLAN = "labels at hand", "with the plan"
FIGURES = "Figures"
OF_A_TABLE = SCRIPT_WORDS["table"]
"""what a table that can be scrolled is called: not as the part that it stands in"""
MARKS = {"point": ".,", "comma": ",."}
"""by the decimal mark: what stands for the point, and for the comma at thousands"""
_TOLD_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+)(?!\w|\.\d)")
"""a number in a sentence that was written elsewhere"""
_style: ContextVar[Mapping[str, str]] = ContextVar("style", default=MappingProxyType({}))
"""how the page that is being written writes money and numbers"""
MOST_TASKS_NAMED = 6
"""tasks in a sentence; the rest are counted"""


@contextmanager
def writing(style: Mapping[str, str]) -> Iterator[None]:
    """Money and numbers in this style: its currency and its decimal mark."""
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


def mark(number: str) -> str:
    """A number of ours with the decimal mark of the page."""
    return number.translate(str.maketrans(".,", MARKS[_find_mark()]))


def _find_mark() -> str:
    wanted = _style.get().get("decimal") or "point"
    return wanted if wanted in MARKS else "point"


def mark_all(sentence: str) -> str:
    """A sentence that was written elsewhere, its numbers with the decimal mark of the page.

    >>> with writing({"decimal": "comma"}):
    ...     mark_all("99 cls for 1,250.5 of v1.2")
    '99 cls for 1.250,5 of v1.2'
    """
    return _TOLD_NUMBER.sub(lambda found: mark(found[0]), sentence)


def describe_style() -> dict[str, str]:
    """The same for the script."""
    marks = MARKS[_find_mark()]
    return {"decimal": marks[0], "thousands": marks[1], "currency": find_currency()}


def find_currency() -> str:
    return _style.get().get("currency") or ""


def say_count(count: float) -> str:
    """
    >>> say_count(2920), say_count(2.5)
    ('2,920', '2.5')
    """
    return mark(f"{count:,.0f}" if count == round(count) else f"{count:,.4g}")


def say_money(amount: Any) -> str:
    """
    >>> say_money("6300"), say_money(0.035), say_money("1/3")
    ('6,300', '0.035', '~0.333333')
    """
    return group_digits(show(exact(amount)))


def group_digits(amount: str) -> str:
    """An amount as it is written, with commas at the thousands."""
    return mark(amount if amount.startswith("~") else f"{Decimal(amount):,f}")


def say_number(value: float, places: int, sign: bool = False) -> str:
    """
    >>> say_number(-0.5, 1), say_number(1.25, 1, sign=True), say_number(-0.01, 1)
    ('−0.5', '+1.2', '0.0')
    """
    rounded = round(value, places) + 0.0
    return mark(f"{rounded:{'+' if sign and rounded else ''},.{places}f}").replace("-", "−")


def say_range(low: float, high: float, places: int) -> str:
    return f"{say_number(low, places)} to {say_number(high, places)}"


def say_percent(share: float) -> str:
    """A share with one decimal."""
    return mark(percent(share))


def say_level(level: float) -> str:
    return mark(f"{100 * level:.4g} %")


def say_interval(mean: float, low: float, high: float) -> str:
    """
    >>> say_interval(1.2, 0.3, 2.1)
    '+1.2 (0.3 to 2.1)'
    """
    places = find_places(high - low)
    return f"{say_number(mean, places, sign=True)} ({say_range(low, high, places)})"


def say_deviation(mean: float | None, deviation: float | None, places: int) -> str:
    """
    >>> say_deviation(1.25, 0.31, 2)
    '1.25 ± 0.31'
    """
    if mean is None:
        return NOT_KNOWN
    return say_number(mean, places) + (
        "" if deviation is None else f" ± {say_number(deviation, places)}"
    )


def say_expected(expected: Any) -> str:
    """What a round is expected to bring: a text, % of score, or that with an interval."""
    if expected is None or isinstance(expected, str):
        return mark_all(expected or NOT_KNOWN)
    if isinstance(expected, list | tuple):
        return f"{say_interval(*expected)} {OF_SCORE}"
    return f"{say_number(expected, find_places(expected), sign=True)} {OF_SCORE}"


def say_value(value: Any) -> str:
    """Anything that a JSON file holds, in a line."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: NOT_KNOWN}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return value
    flat = not any(isinstance(each, list | tuple | Mapping) for each in _members(value))
    if flat and isinstance(value, Mapping):
        return ", ".join(f"{key} {say_value(each)}" for key, each in value.items())
    if flat and isinstance(value, list | tuple):
        return ", ".join(map(say_value, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _members(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def say_key(key: str) -> str:
    """What a key of `about` is called on the page."""
    return KEYS.get(key) or key[:1].upper() + key[1:].replace("_", " ")


def list_counts(counts: Mapping[str, int]) -> Html:
    """The labels of each task in a sentence, largest numbers first if there are many: 2,920 cls and
    169 seg."""
    bought = [(task, count) for task, count in counts.items() if count]
    if len(bought) > MOST_TASKS_NAMED:
        bought.sort(key=lambda pair: -pair[1])
    parts: list[Content] = [
        fill("{count} {task}", count=say_count(count), task=name(task, 40))
        for task, count in bought[:MOST_TASKS_NAMED]
    ]
    if rest := bought[MOST_TASKS_NAMED:]:
        labels, tasks = (
            say_count(sum(count for _, count in rest)),
            ("1 more task" if len(rest) == 1 else "more tasks"),
        )
        parts.append(f"{labels} of {tasks if len(rest) == 1 else f'{len(rest)} {tasks}'}")
    if len(parts) < 2:
        return join(parts)
    return join([join(parts[:-1], ", "), " and ", parts[-1]])


def say_decision(
    plan: Mapping[str, Any], outlook: Mapping[str, Any] | None, equal: Mapping[str, int] | None
) -> Html:
    """What to do, in a sentence to sign; `equal` are the counts of equal budget, where they are
    known."""
    counts = {task["name"]: task["count"] for task in plan["tasks"]}
    if not any(counts.values()):
        return fill("Buy nothing: no label is worth its price.")
    money = "" if plan.get("spent") is None else f" for {_say_sum(plan['spent'])}"
    buy = fill("Buy {what}{money}", what=list_counts(counts), money=money)
    if outlook is None:
        return fill("{buy}. How it compares with equal budget was not measured.", buy=buy)
    parts: dict[str, Content] = {
        "buy": buy,
        "plan": fill("{what}{money}", what=list_counts(counts), money=money),
        "equal": fill(" ({what})", what=list_counts(equal)) if equal else "",
        "by": f"{say_number(abs(outlook['mean']), _places_of(outlook))} {find_unit(outlook)}",
        "range": _say_sureness(outlook),
        "chance": f"chance {chance(outlook['chance'])}",
    }
    return fill(_SAME if counts == equal else _SENTENCES[find_standing(outlook)], **parts)


def say_given(plan: Mapping[str, Any], basis: str, values: tuple[float, float] | None) -> Html:
    """What to do where nothing was measured, so that nothing says how sure it is; `values` are
    those of the plan and of equal budget."""
    counts = {task["name"]: task["count"] for task in plan["tasks"]}
    if not any(counts.values()):
        return fill("Buy nothing: no label is worth its price.")
    money = "" if plan.get("spent") is None else f" for {_say_sum(plan['spent'])}"
    buy = fill("Buy {what}{money}", what=list_counts(counts), money=money)
    if basis == "neutral":
        return fill(_GIVEN["neutral"], buy=buy)
    if values is None or values[1] <= 0:
        return fill(_GIVEN["alone"], buy=buy)
    more = values[0] / values[1] - 1
    key = "same" if more < LITTLE_MORE else "more"
    return fill(_GIVEN[key], buy=buy, more=say_percent(more))


def say_scores(scores: Mapping[str, Sequence[float | None]] | None) -> Html:
    """What tasks scored before a round and after it, in a line."""
    parts = [
        fill(
            "{task} {before}{after}",
            task=name(task, 40),
            before="" if before is None else f"{say_figure(before)} → ",
            after=say_figure(after),
        )
        for task, (before, after) in (scores or {}).items()
    ]
    return join(parts, "; ") if parts else escape(NOT_KNOWN)


def write_order(tasks: Sequence[Mapping[str, Any]]) -> str:
    """What to buy as lines of text, to be put into a mail or a sheet."""
    return "\n".join(f"{task['name']}\t{task['count']}" for task in tasks if task["count"])


def match_outcomes(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of each other plan that was retrained: by how much this one was expected to be ahead, None
    where nobody said, and by how much it was."""
    said = {
        row["name"]: row["outlook"]["mean"]
        for row in given.get("comparison", ())
        if row.get("outlook")
    }
    return [
        {"name": row["name"], "foretold": said.get(row["name"]), "came": list(row["ahead"])}
        for row in (given.get("evaluation") or {}).get("rows", ())
        if row.get("ahead")
    ]


def find_score_places(score: Mapping[str, Any]) -> int:
    """Decimals by which both spans of a score keep two digits."""
    return find_places(min(score[each]["high"] - score[each]["low"] for each in ("now", "after")))


_BUDGET_STEPS = {
    "more": "{money} more would bring {change} {unit}",
    "less": "{money} less would bring {change} {unit}",
}
LITTLE_MORE = 0.0005
"""share of a plan's value that is told as none"""
_GIVEN = {
    "neutral": (
        "{buy}. Nothing says what labels are worth, so that every task is taken to be worth the"
        " same."
    ),
    "alone": "{buy}, by the gains that were written down.",
    "same": "{buy}: by the gains that were written down, as much as equal budget.",
    "more": "{buy}: by the gains that were written down, worth {more} more than equal budget.",
}
_SENTENCES = {
    Standing.BETTER: "{buy}; expected to beat equal budget by {by} ({range}), {chance}.",
    Standing.LIKELY_BETTER: (
        "{buy}; probably better than equal budget, by {by}, but not beyond doubt ({range}),"
        " {chance}."
    ),
    Standing.EQUAL: (
        "Equal budget{equal} is fine: the difference of {by} ({range}) is below the noise. This"
        " plan: {plan}."
    ),
    Standing.TOO_LITTLE: (
        "Equal budget{equal} is fine: {by} more ({range}) is too little to matter. This plan:"
        " {plan}."
    ),
    Standing.WORSE: (
        "Take equal budget{equal}: it is expected to beat this plan by {by} ({range}). This plan:"
        " {plan}."
    ),
}
_SAME = "{buy}, which is equal budget: nothing that was measured speaks for another plan."


def find_standing(outlook: Mapping[str, Any]) -> Standing:
    """What the outlook says about the plan beside equal budget."""
    numbers = {key: outlook[key] for key in ("mean", "low", "high", "chance")}
    return Standing.of_outlook(**numbers, unit=outlook.get("unit") or PERCENT)


def _say_sureness(outlook: Mapping[str, Any]) -> str:
    if outlook["low"] == outlook["high"]:
        return "one estimate, of which nothing says how sure it is"
    return (
        f"{say_level_of(outlook)}:"
        f" {say_range(outlook['low'], outlook['high'], _places_of(outlook))}"
    )


def _places_of(outlook: Mapping[str, Any]) -> int:
    return find_places(outlook["high"] - outlook["low"] or outlook["mean"])


def find_gain_unit(given: Mapping[str, Any]) -> str:
    """What gains of plans are counted in."""
    return (given.get("what_if") or {}).get("unit") or OF_SCORE


def say_steps(frontier: Mapping[str, Any], unit: str) -> str:
    """What a little more money would bring, and a little less would cost."""
    changes = {key: frontier.get(key) for key in ("more", "less")}
    known = {key: change for key, change in changes.items() if change is not None}
    if not known or frontier.get("step") is None:
        return ""
    places = find_places(min((abs(each) for each in known.values() if each), default=1.0))
    parts = {"money": _say_sum(frontier["step"]), "unit": unit}
    said = [
        _BUDGET_STEPS[key].format(change=say_number(change, places, sign=True), **parts)
        for key, change in known.items()
    ]
    return f"{'; '.join(said)}."


def find_unit(outlook: Mapping[str, Any]) -> str:
    """What gains are counted in."""
    return OF_SCORE if outlook.get("unit") in (None, PERCENT) else str(outlook["unit"])


def explain_unit(outlook: Mapping[str, Any]) -> str:
    """What the differences are counted in."""
    return {OF_SCORE: NOTES["d_t"], "labels": NOTES["in labels"]}.get(find_unit(outlook), "")


def explain_ahead(outlook: Mapping[str, Any]) -> str:
    """What the columns beside other plans mean."""
    return NOTES["ahead"].format(unit=find_unit(outlook), level=say_level_of(outlook))


def _say_sum(amount: Any) -> str:
    currency = find_currency()
    return f"{say_money(amount)} {currency}" if currency else say_money(amount)


def say_level_of(value: Mapping[str, Any]) -> str:
    """The level of an interval, which is 90 % unless given."""
    return say_level(0.9 if value.get("level") is None else value["level"])


def sum_up_money(plan: Mapping[str, Any]) -> str:
    """Spent, of what, and what is left."""
    if plan.get("spent") is None or plan.get("budget") is None:
        return ""
    spent, budget = plan["spent"], plan["budget"]
    left = exact(budget) - exact(spent)
    rest = f"; {_say_sum(left)} stay unspent" if left > 0 else ""
    over = f"; that is {_say_sum(-left)} too much" if left < 0 else ""
    return f"{_say_sum(spent)} of {_say_sum(budget)} are planned{rest}{over}."


def sum_up_evaluation(evaluation: Mapping[str, Any]) -> Html:
    """What was measured against equal budget, or against the first plan that there is, and how the
    others did."""
    held = [line for line in evaluation["rows"] if line.get("ahead") is not None]
    if not held:
        return Html()
    line = next((each for each in held if each["name"] == EQUAL), held[0])
    mean, low, high = line["ahead"]
    places, repeats = find_places(high - low), evaluation.get("repeats")
    outcome = Standing.of_span(line["ahead"])
    first = fill(
        "This plan {outcome} {other}{by}{over} ({level}: {range}).",
        outcome=_OUTCOMES[outcome],
        other=name(line["name"], 40),
        by="" if outcome is Standing.EQUAL else f" by {say_number(abs(mean), places)} {OF_SCORE}",
        over=f" over {say_count(repeats)} retrainings" if repeats else "",
        level=say_level_of(evaluation),
        range=say_range(low, high, places),
    )
    return join([first, *_sum_up_others([each for each in held if each is not line])])


_OUTCOMES = {
    Standing.BETTER: "beat",
    Standing.WORSE: "fell behind",
    Standing.EQUAL: "could not be told from",
}


def _sum_up_others(lines: Sequence[Mapping[str, Any]]) -> list[Html]:
    """A sentence for each outcome, with all plans that it was reached on."""
    found: dict[Standing, list[Html]] = {}
    for line in lines:
        found.setdefault(Standing.of_span(line["ahead"]), []).append(name(line["name"], 40))
    return [
        fill(" It {outcome} {plans}.", outcome=_OUTCOMES[outcome], plans=join(plans, ", "))
        for outcome, plans in found.items()
    ]


def explain_transfer(transfer: Mapping[str, Any], settled: bool) -> str:
    """What the cells mean; `settled` is whether the diagonal is 1 by definition."""
    unit = transfer.get("unit") or ("labels" if settled else "transfer")
    return f"{NOTES.get(unit, NOTES['transfer'])} {NOTES['called']}"


def describe_curve(curve: Mapping[str, Any]) -> str:
    """A chart in words, for those who do not see it."""
    points = curve.get("points") or []
    if not points:
        return f"{len(curve.get('seen') or [])} trainings, and no curve through them."
    ends = [
        f"{say_figure(mean)} at {say_count(labels)} labels"
        + ("" if low is None or high is None else f" ({say_figure(low)} to {say_figure(high)})")
        for labels, mean, low, high in (points[0], points[-1])
    ]
    return f"The curve goes from {ends[0]} to {ends[1]}."


def name_verdict(verdict: Mapping[str, Any]) -> Html:
    """What a verdict is about."""
    kind = verdict.get("kind") or ""
    source, _, target = (
        verdict["name"].partition(" to ") if kind == "cell" else ("", "", verdict["name"])
    )
    return fill(FINDING_TITLES.get(kind, "{name}"), name=name(target), source=name(source))


def list_reasons(verdict: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Why a verdict is so, what it matters and what helps, each with its title."""
    found = []
    for key, title in FINDING_PARTS.items():
        said = verdict.get(key) or ()
        lines = [line for line in ([said] if isinstance(said, str) else said) if line]
        if key == "effect" and verdict.get("share"):
            lines.append(f"without it, {percent(verdict['share'])} of the money would go elsewhere")
        if lines:
            found.append((title, list(map(mark_all, lines))))
    return found


def say_figure(value: float | None) -> str:
    """A score with four digits that count."""
    return NOT_KNOWN if value is None else mark(f"{value:,.4g}").replace("-", "−")


def describe_interval(outlook: Mapping[str, Any]) -> str:
    """The bar below the decision in words."""
    mean = say_number(outlook["mean"], _places_of(outlook))
    return f"Difference to equal budget in {find_unit(outlook)}: {mean} ({_say_sureness(outlook)})."
