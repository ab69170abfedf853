"""The report page: sound HTML whatever it shows, charts that tell the truth, sentences that a
manager can sign."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import html
import itertools
import json
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from helpers.reports import EVIL, NAMES, ask, example, rename
from hypothesis import given, settings
from hypothesis import strategies as st

from allotment import Geometric, InputError, Problem, Task, allocate, baselines
from allotment.reports import render, words
from allotment.reports.assets import PLOT_HASH, SCRIPTS, hash_inline, read_asset
from allotment.reports.style import DARK, LIGHT, STYLE
from allotment.reports.values import PART_CHECKS
from allotment.reports.words import say_decision

VOID = {"meta", "img"}


class Page(HTMLParser):
    """A page read back by a parser that knows nothing of how it was written; it insists that every
    tag ends."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes something else"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1], data))

    @property
    def text(self) -> str:
        return re.sub(
            r"\s+",
            " ",
            " ".join(text for tag, text in self.texts if tag not in ("style", "script")),
        )

    @property
    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its tags and their attributes' names, without the tooltips of names that were cut."""
        return [
            (tag, tuple(key for key in attributes if key != "title"))
            for tag, attributes in self.tags
        ]


def untie(page: str) -> str:
    """With blanks between numbers and the signs that stay on their line."""
    return page.replace("\N{NO-BREAK SPACE}", " ")


def sentence_of(page: str) -> str:
    """The decision as it is read."""
    found = re.search(r'<p class="sentence">(.*?)</p>', untie(page))
    assert found
    return html.unescape(re.sub(r"<[^>]*>", "", found[1]))


def test_the_page_shows_what_it_was_given() -> None:
    text = Page(render(example())).text
    for shown in (
        "Street scenes", "2,920", "46.3 %", "53.7 %", "1,460 to 2,970", "973 to 2,990",
        "6,300 of 6,300 are planned",
        "+1.2 (0.3 to 2.1)", "97 %", "80.0 %", "breaks the budget by 12", "5.10 ± 0.31",
        "+1.1 (0.3 to 1.9)",
        "This plan beat equal budget by 1.1 % of score over 5 retrainings", "−0.40",
        "−0.60 to −0.20", "✕ not known",
        "scores fall", "40 labels", "without it, 21.0 % of the money would go elsewhere",
        "Curve of seg",
        "310 cls and 14 seg",
        "+0.6 (0.1 to 1.1) % of score", "allot ingest", "b1946ac9",
        "allotment 0.1.0, torch 2.13.0", "1, 2", "yes", "75.0 %", "3.5", "+0.44 % of score",
        "Chance of beating 97 %",
    ):  # fmt: skip
        assert shown in re.sub(r"\s+([,.])", r"\1", text), shown


def test_the_page_of_a_real_plan() -> None:
    problem = Problem([Task("cls", cost=1, have=300), Task("seg", cost=20, have=300)], budget=6300)
    plan = allocate(problem, {"cls": Geometric(1.13, 0.999), "seg": Geometric(2.03, 0.997)})
    tasks = [
        {"name": task.name, "cost": str(task.cost), "have": task.have,
        "count": plan.counts[task.name],
         "spend": str(task.price(plan.counts[task.name])), "plateau": plan.plateau[task.name]}
        for task in problem.tasks
    ]  # fmt: skip
    rows = plan.compare(baselines(problem)).to_dict()["rows"]
    values = {
        "plan": {"tasks": tasks, "budget": "6300", "spent": str(plan.spent)},
        "comparison": rows,
    }
    page = render(values)
    assert (
        sentence_of(page)
        == "Buy 2,920 cls and 169 seg for 6,300. How it compares with equal budget was not"
        " measured."
    )
    text = Page(page).text
    for row in rows:
        assert f"{100 * row['value'] / rows[0]['value']:.1f} %" in text
        assert row["name"] in text.replace("this plan", "plan")


PLAN = {
    "tasks": [{"name": "cls", "count": 2920}, {"name": "seg", "count": 169}],
    "spent": "6300",
}
EUROS = {"currency": "EUR"}
EQUAL = {"cls": 3150, "seg": 157}
NOISE = {"mean": 0.1, "low": -0.5, "high": 0.7, "level": 0.9, "chance": 0.6}


@pytest.mark.parametrize(
    ("outlook", "equal", "sentence"),
    [
        (
            {"mean": 1.2, "low": 0.3, "high": 2.1, "chance": 0.97},
            EQUAL,
            (
                "Buy 2,920 cls and 169 seg for 6,300 EUR; expected to beat equal budget by 1.2"
                " % of score (90 %: 0.3 to 2.1), chance 97 %."
            ),
        ),
        (
            NOISE,
            EQUAL,
            (
                "Equal budget (3,150 cls and 157 seg) is fine: the difference of 0.1 % of score"
                " (90 %: −0.5 to 0.7) is below the noise. This plan: 2,920 cls and 169 seg for"
                " 6,300 EUR."
            ),
        ),
        (
            NOISE | {"mean": 0.3, "chance": 0.85, "level": 0.95},
            None,
            (
                "Buy 2,920 cls and 169 seg for 6,300 EUR; probably better than equal budget, by 0.3"
                " % of score, but not beyond doubt (95 %: −0.5 to 0.7), chance 85 %."
            ),
        ),
        (
            {"mean": 0.05, "low": 0.01, "high": 0.09, "chance": 1.0},
            None,
            (
                "Equal budget is fine: 0.050 % of score more (90 %: 0.010 to 0.090) is too"
                " little to matter. This plan: 2,920 cls and 169 seg for 6,300 EUR."
            ),
        ),
        (
            {"mean": -2.0, "low": -3.0, "high": -1.0, "chance": 0.001},
            None,
            (
                "Take equal budget: it is expected to beat this plan by 2.0 % of score (90 %:"
                " −3.0 to −1.0). This plan: 2,920 cls and 169 seg for 6,300 EUR."
            ),
        ),
        (
            {"mean": 40.0, "low": 40.0, "high": 40.0, "chance": 1.0, "unit": "labels"},
            None,
            (
                "Buy 2,920 cls and 169 seg for 6,300 EUR; expected to beat equal budget by 40"
                " labels (one estimate, of which nothing says how sure it is), chance above 99 %."
            ),
        ),
        (
            NOISE,
            {"cls": 2920, "seg": 169},
            (
                "Buy 2,920 cls and 169 seg for 6,300 EUR, which is equal budget: nothing that was"
                " measured speaks for another plan."
            ),
        ),
    ],
)
def test_the_decision_is_a_sentence_to_sign(
    outlook: dict[str, Any], equal: dict[str, int], sentence: str
) -> None:
    comparison = [{"name": "plan", "counts": {}}] + (
        [{"name": "equal budget", "counts": equal}] if equal else []
    )
    assert (
        sentence_of(
            render({"plan": PLAN, "outlook": outlook, "comparison": comparison, "style": EUROS})
        )
        == sentence
    )


def test_other_decisions() -> None:
    nothing = {"tasks": [{"name": "cls", "count": 0}], "spent": 0}
    assert sentence_of(render({"plan": nothing})) == "Buy nothing: no label is worth its price."
    assert sentence_of(render({"decision": "Wait <for> March."})) == "Wait <for> March."
    assert sentence_of(render({})).startswith("There is nothing to decide yet")
    many = {"tasks": [{"name": f"t{at}", "count": at} for at in range(1, 11)]}
    assert "Buy 10 t10, 9 t9, 8 t8, 7 t7, 6 t6, 5 t5 and 10 of 4 more tasks." in html.unescape(
        re.sub(r"</?bdi>", "", say_decision(many, None, None))
    )


def test_every_part_may_be_missing() -> None:
    whole = example()
    heads = {"plan": "What to buy", "comparison": "Beside other plans",
    "curves": "What more labels bring", "frontier": "What other budgets", "worths": "Where the",
             "transfer": "What tasks do", "verdicts": "How far this", "rounds": "Rounds",
             "evaluation": "What it brought", "about": "How it was measured",
             "pictures": "What labels look like"}  # fmt: skip
    others = {"title", "decision", "order", "stale", "outlook", "knowing", "what_if", "reach"}
    others |= {"style", "basis", "advice"}
    assert set(heads) | others == set(PART_CHECKS)
    for size in (0, 1, 2, len(heads) - 1):
        for kept in itertools.combinations(heads, size):
            page = Page(render({key: whole[key] for key in kept}))
            shown = {text for tag, text in page.texts if tag == "h2"}
            assert len(shown) == size
            assert all(any(heads[key] in text for text in shown) for key in kept)
            assert (
                Page(
                    render({**dict.fromkeys(PART_CHECKS), **{key: whole[key] for key in kept}})
                ).text
                == page.text
            )


def test_numbers_have_the_decimal_mark_that_was_asked_for() -> None:
    values = example() | {"style": {"decimal": "comma", "currency": "EUR"}}
    values["order"] = "99 cls for 1,250.5 of v1.2"
    page = render(values)
    text = Page(page).text
    for shown in ("2.920", "46,3 %", "6.300 EUR", "+1,2 (0,3 to 2,1)", "for 1.250,5 of v1.2"):
        assert shown in text, shown
    assert "46.3 %" not in text
    assert read_data(page)["money"] == {"decimal": ",", "thousands": ".", "currency": "EUR"}
    assert "46.3 %" in Page(render(example())).text  # the next page is as it was


def test_questions_need_what_they_are_about() -> None:
    """A slider without a plan, or a price of scores without prices, would be of no use."""
    whole = example()
    pages = {
        kept: render({key: whole[key] for key in kept})
        for kept in [("what_if",), ("reach",), ("plan", "what_if"), ("plan", "what_if", "reach")]
    }
    shown = {
        kept: [name for name in ("what-if-panel", "score-panel") if f'id="{name}"' in page]
        for kept, page in pages.items()
    }
    assert list(shown.values()) == [
        [],
        [],
        ["what-if-panel"],
        ["what-if-panel", "score-panel"],
    ]


def test_verdicts_that_move_no_money_are_folded_away() -> None:
    verdicts = [
        {"kind": "task", "name": "cls", "grade": "weak", "share": 0.2},
        {"kind": "task", "name": "seg", "grade": "unusable", "share": 0.01},
    ]
    page = render({"verdicts": verdicts})
    assert "1 more, which move hardly any money" in page
    assert page.index("cls") < page.index("<details>") < page.index("seg")


def test_what_was_expected_stands_beside_what_came() -> None:
    page = render({key: example()[key] for key in ("comparison", "evaluation")})
    (chart,) = read_data(page)["charts"]["outcome"]
    assert chart["rows"] == [
        {"name": "equal budget", "foretold": 1.2, "mean": 1.1, "low": 0.3, "high": 1.9}
    ]


def read_data(page: str) -> dict[str, Any]:
    """What the script is given."""
    found = re.search(r'<script type="application/json" id="values">(.*?)</script>', page)
    assert found
    return dict(json.loads(found[1]))


def test_charts_get_the_very_values() -> None:
    given = example()
    charts = read_data(render(given))["charts"]
    for curve, chart in zip(given["curves"], charts["curve"], strict=True):
        assert chart["points"] == curve["points"]
        assert chart["seen"] == curve["seen"]
    marks = [(mark["at"], mark["text"]) for mark in charts["curve"][0]["marks"]]
    assert marks == [(300, "at hand: 300"), (3220, "with the plan: 3,220")]
    assert charts["frontier"][0]["points"] == given["frontier"]["points"]
    span = {key: charts["interval"][0][key] for key in ("mean", "low", "high")}
    assert span == {"mean": 1.2, "low": 0.3, "high": 2.1}
    assert [row["own"] for row in charts["worth"][0]["rows"]] == [1.5] * 3


def test_empty_parts_say_so() -> None:
    empty = {"plan": {"tasks": []}, "curves": [{"task": "cls"}], "evaluation": {"rows": []}}
    page = Page(render({**empty, "transfer": {"tasks": [], "cells": []}}))
    assert page.text.count("Nothing was measured here.") == 3
    assert "There is nothing to decide yet" in page.text
    assert "There are no tasks to buy labels for." in page.text
    assert not [attributes for _, attributes in page.tags if "data-chart" in attributes]


def test_every_key_that_may_be_missing_may() -> None:
    """Each optional value by itself is taken out, and each is set to None; the page stays whole."""
    needed = {"name", "count", "counts", "task", "tasks", "cells", "grade", "number", "rows",
    "mean", "low", "high",
              "chance"}  # fmt: skip
    for path in paths_of(example()):
        if isinstance(path[-1], str) and len(path) > 1 and path[-1] not in needed | set(NAMES):
            values = example()
            # what a question or a picture is about must be whole
            may_miss = path[0] not in {*ask(NAMES), "pictures"} and "caps" not in path
            with contextlib.nullcontext() if may_miss else contextlib.suppress(InputError):
                reach(values, path[:-1])[path[-1]] = None
                Page(render(values))
                del reach(values, path[:-1])[path[-1]]
                Page(render(values))


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*path, key)
        yield from paths_of(inner, (*path, key))


def reach(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_that_is_shown_changes_the_page(evil: str) -> None:
    """With the worst of names everywhere the page has the very tags of the harmless one, and the
    text is all there."""
    page = render(rename(example(), lambda text: f"{text}{evil}"))
    page.encode()  # lone surrogates would fail here
    read, harmless = Page(page), Page(render(example()))
    assert read.skeleton == harmless.skeleton
    assert not re.search("[\x00-\x09\x0b-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe]", page)
    if len(evil) < 40 and evil.isprintable():
        assert f"cls{evil}" in read.text
        assert f"Street scenes{evil}" in read.text


def test_names_keep_their_direction_and_long_ones_their_whole_text() -> None:
    values = rename(example(), lambda text: "שלום" + text + "x" * 200)
    page = Page(render(values))
    names = [attributes for tag, attributes in page.tags if tag == "bdi"]
    assert len(names) >= 20
    whole = "שלום" + "cls" + "x" * 200
    assert sum(attributes.get("title") == whole for attributes in names) >= 5
    longest = max((text for tag, text in page.texts if tag == "bdi"), key=len)
    assert len(longest) <= 100
    assert longest.startswith("שלום")


def test_the_page_needs_nothing_from_outside_and_runs_nothing() -> None:
    page = render(example())
    tags = Page(page).tags
    assert [attributes for tag, attributes in tags if tag == "script"] == [
        {"type": "application/json", "id": "values"},
        {},
    ]
    assert not {tag for tag, _ in tags} & {
        "link",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "use",
    }
    for tag, attributes in tags:
        assert not any(key.startswith("on") for key in attributes)
        assert not {"srcset", "action", "xlink:href"} & set(attributes)
        assert "src" not in attributes or str(attributes["src"]).startswith("data:image/png;")
        assert tag != "a" or str(attributes["href"]).startswith("#")
    *_, script = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert not re.search(r"url\(|@import|@font-face|https?:|//", page.replace(script, ""))
    # names of XML, which nobody asks for, are all that looks like an address
    places = set(re.findall(r"https?://[\w.]+", script))
    assert places <= {"http://www.w3.org"}
    assert not re.search(
        r"\bfetch\(|XMLHttpRequest|WebSocket|\beval\(|new Function|importScripts", ours()
    )
    policy = next(attributes["content"] for _, attributes in tags if attributes.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert hash_inline(script) in policy
    assert hash_inline(STYLE) in policy


def ours() -> str:
    return "".join(read_asset(name) for name in SCRIPTS if name != "plot.js")


def test_the_library_that_draws_is_the_one_that_was_vendored() -> None:
    assert hashlib.sha256(read_asset("plot.js").encode()).hexdigest() == PLOT_HASH
    assert len(render(example())) < 10**6


def test_readers_of_all_kinds_find_their_way() -> None:
    page = Page(render(example()))
    ids = [str(attributes["id"]) for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        for target in (attributes.get("aria-labelledby") or "").split():
            assert target in ids
        if tag == "a":
            assert str(attributes["href"])[1:] in ids
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        if tag == "svg" or "data-chart" in attributes:
            assert attributes["aria-hidden"] == "true"  # words and tables say the same
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    tables = [tag for tag, _ in page.tags if tag in ("table", "caption")]
    assert tables == ["table", "caption"] * (len(tables) // 2)
    assert page.tags[0] == ("html", {"lang": "en"})
    assert "The curve goes from 60.5 at 100 labels (55.4 to 62.67) to 80 at 4,000" in page.text


def shine(colour: str) -> float:
    """Relative luminance, by the definition of the WCAG."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dim, bright = sorted((shine(one), shine(other)))
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_read(colours: dict[str, str]) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    text_on = [("text", "ground"), ("text", "panel"), ("muted", "ground"), ("muted", "panel"),
    ("accent", "ground"),
               ("mark", "ground")]  # fmt: skip
    text_on += [("text", f"{what}-{step}") for what in ("help", "harm") for step in (1, 2, 3)]
    text_on += [(grade, f"{grade}-back") for grade in ("sound", "weak", "unusable")]
    for text, ground in text_on:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert set(re.findall(r"var\(--([\w-]+)\)", STYLE)) == set(colours)


def test_cells_of_the_matrix_have_colour_and_word_together() -> None:
    page = render({"transfer": example()["transfer"]})
    found = re.findall(r'<td class="number( [\w-]+)?"[^>]*>(.*?)</td>', page)
    cells = [(kind.strip(), re.sub("<[^>]*>", " ", text).split()) for kind, text in found]
    assert [kind for kind, _ in cells] == [
        "set",
        "help-3",
        "",
        "harm-2",
        "set",
        "",
        "help-2",
        "",
        "set",
    ]
    assert [text[-1] for _, text in cells if text[-1] in ("helps", "harms", "unclear")] == [
        "helps", "unclear", "harms", "helps", "unclear",
    ]  # fmt: skip
    assert cells[5][1] == ["–"]


def test_a_matrix_in_percent_has_a_measured_diagonal() -> None:
    tasks, cells = ["a", "b"], [[8.0, -1.0], [4.0, 2.4]]
    low, high = ([[each + more for each in line] for line in cells] for more in (-0.5, 0.5))
    page = render(
        {"transfer": {"tasks": tasks, "cells": cells, "low": low, "high": high, "unit": "%"}}
    )
    assert re.findall(r'<td class="number ?([\w-]*)"[^>]*>', page) == [
        "help-3",
        "harm-1",
        "help-2",
        "help-2",
    ]
    assert "in % of its score" in Page(page).text
    assert "by definition" not in page
    assert "by definition" in render({"transfer": example()["transfer"]})


def test_the_decision_says_scores_in_the_tasks_own_metrics() -> None:
    values = example()
    spans = {"now": {"middle": 2.31, "low": 2.0, "high": 2.6}}
    spans["after"] = {"middle": 1.9, "low": 1.7, "high": 2.2}
    values["plan"]["tasks"][0]["score"] = {"metric": "mae"} | spans
    box = Page(render(values)).text.partition("Decided by")[0]
    scores = "cls MAE 2.31 (2.00 to 2.60) 1.90 (1.70 to 2.20)"
    assert scores in re.sub(r"\s+", " ", box)
    assert words.SCORE_TABLE not in Page(render(example())).text
    many = {"tasks": [{"name": f"t{n}", "count": 1, "score": {"metric": "r2"} | spans}
                      for n in range(9)]}  # fmt: skip
    above, _, below = Page(render({"plan": many})).text.partition("Decided by")
    assert words.SCORE_TABLE not in above
    assert words.SCORE_TABLE in below


def test_a_little_more_money_is_told_in_the_unit_of_the_gains() -> None:
    values = {"frontier": example()["frontier"]}
    said = "630 more would bring +0.25 % of score; 630 less would bring −0.50 % of score."
    assert said in Page(render(values)).text
    values["frontier"]["unit"] = "points"
    values["frontier"]["less"] = None  # what must be bought costs more
    assert "630 more would bring +0.25 points." in Page(render(values)).text


def test_a_plan_by_gains_that_were_written_down_says_so() -> None:
    """Nothing says how sure it is, and nothing was measured."""
    values = {key: example()[key] for key in ("plan", "comparison")} | {"basis": "given"}
    said = sentence_of(render(values))
    assert said.endswith(
        "by the gains that were written down, worth 25.0 % more than equal budget."
    )
    values["basis"] = "neutral"
    assert "every task is taken to be worth the same" in sentence_of(render(values))


def test_other_units_than_points_are_explained() -> None:
    """A method that counts in labels must not be read as if it promised a score."""
    values = example()
    values["outlook"]["unit"] = values["comparison"][1]["outlook"]["unit"] = "labels"
    values["frontier"]["unit"] = "labels"
    values["evaluation"] = values["rounds"] = None
    text = Page(render(values)).text
    assert "beat equal budget by 1.2 labels" in text
    assert "in labels of its own; this method does not say how much score that is" in text
    assert "by how much this plan is expected to be better than the other, in labels," in text
    assert "% of score" not in text
    plain = Page(render(example())).text
    assert "by how much this plan is expected to be better than the other, in % of score," in plain
    assert "% of score: the weighted mean over tasks" in plain


def test_every_other_plan_has_its_own_outlook() -> None:
    values = example()
    values["comparison"][2]["outlook"] = {
        "mean": -0.5,
        "low": -2.0,
        "high": 1.0,
        "level": 0.9,
        "chance": 0.31,
    }
    rows = re.findall(
        r"<tr[^>]*>(.*?)</tr>",
        untie(render(values)).partition('id="comparison"')[2].partition("</table>")[0],
    )
    cells = [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.split(r"</t[dh]>", row)[:-1]]
        for row in rows
    ]
    assert [row[2:4] for row in cells] == [
        ["Ahead", "Chance"], ["–", "–"], ["+1.2 (0.3 to 2.1)", "97 %"], ["−0.5 (−2.0 to 1.0)",
        "31 %"],
    ]  # fmt: skip


def test_the_evaluation_is_summed_up_against_every_plan() -> None:
    rows = [{"name": "plan", "ahead": None}, {"name": "neutral", "ahead": [0.2, -0.4, 0.8]}]
    rows += [
        {"name": "equal budget", "ahead": [1.1, 0.3, 1.9]},
        {"name": "all on <cls>", "ahead": [-2, -3, -1]},
    ]
    rows += [{"name": "equal images", "ahead": [0.1, -0.2, 0.4]}]
    page = untie(render({"evaluation": {"rows": rows, "repeats": 4}}))
    said = html.unescape(
        re.sub("<[^>]*>", "", page.partition("What it brought</h2>")[2].partition("</p>")[0])
    )
    assert (
        said.strip()
        == "This plan beat equal budget by 1.1 % of score over 4 retrainings (90 %: 0.3 to"
        " 1.9). "
        "It could not be told from neutral, equal images. It fell behind all on <cls>."
    )


def test_a_decision_on_an_unusable_method_says_so() -> None:
    values = example()
    assert "Careful" not in render(values)  # there a curve is unusable, not the method
    values["verdicts"].append({"kind": "method", "name": "taba", "grade": "unusable"})
    decision = render(values).partition('class="decision"')[2].partition("<nav")[0]
    assert "found unusable; see How far this can be trusted" in decision


def test_what_could_not_be_measured_is_left_open() -> None:
    rows = [
        {"name": "plan", "gains": {"cls": [None, None]}, "total": [None, None], "ahead": None},
        {
            "name": "equal budget",
            "gains": {"cls": [2.0, None]},
            "total": [1.5, 0.25],
            "ahead": [-1, -1.5, -0.5],
        },
    ]
    page = Page(render({"evaluation": {"rows": rows}}))  # fmt: skip
    assert [text for tag, text in page.texts if tag == "td"] == [
        "–",
        "–",
        "–",
        "1.50 ± 0.25",
        "−1.0 (−1.5 to −0.5)",
        "2.00",
    ]
    assert "fell behind equal budget by 1.0 % of score" in page.text


def test_the_same_values_give_the_same_bytes() -> None:
    values = example()
    kept = copy.deepcopy(values)
    page = render(values)
    assert values == kept
    assert page == render(json.loads(json.dumps(values)))
    assert page == render({key: values[key] for key in reversed(values)})


def test_every_mistake_is_named_at_once() -> None:
    wrong = example()
    wrong["plan"]["tasks"][1]["count"] = -3
    wrong["plan"]["tasks"][0]["cost"] = "cheap"
    wrong["plan"]["spent"] = True
    wrong["outlook"] = {"mean": math.nan, "low": 0, "high": 10**400, "chance": 97}
    wrong["curves"][0]["points"][2] = [1, 2]
    wrong["curves"][1]["seen"][0] = [-5, 1]
    wrong["transfer"]["low"] = [[1.0]]
    wrong["verdicts"][0].pop("grade")
    wrong["rounds"][0]["open"] = "some"
    wrong["evaluation"]["rows"][0]["gains"]["cls"] = ["much", None]
    wrong["about"] = ["response"]
    wrong["evaluatoin"] = wrong["evaluation"]
    with pytest.raises(InputError) as raised:
        render(wrong)
    assert [mistake.where for mistake in raised.value.mistakes] == [
        "values.'evaluatoin'", "plan.tasks[0].cost", "plan.tasks[1].count", "plan.spent",
        "outlook.mean",
        "outlook.high", "outlook.chance", "curves[0].points[2]", "curves[1].seen[0][0]",
        "transfer.low",
        "verdicts[0].grade", "rounds[0].open", "evaluation.rows[0].gains.cls[0]", "about",
    ]  # fmt: skip
    assert "did you mean 'evaluation'?" in str(raised.value)
    with pytest.raises(InputError, match="is not a dict with title"):
        render([])  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_one_wrong_value_gives_a_page_or_a_mistake(data: st.DataObject) -> None:
    values = example()
    path = data.draw(st.sampled_from(list(paths_of(values))))
    junk = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]),
        st.just({}),
        st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(),
        max_size=2),
    )  # fmt: skip
    reach(values, path[:-1])[path[-1]] = data.draw(junk)
    with contextlib.suppress(InputError):
        Page(render(values))


def test_thousands_of_tasks_make_a_page() -> None:
    tasks = [{"name": f"task {at}", "count": at, "cost": 1, "spend": at} for at in range(2000)]
    counts = {task["name"]: task["count"] for task in tasks}
    comparison = [
        {"name": "plan", "counts": counts, "value": 3.0},
        {"name": "equal budget", "counts": counts, "value": 2},
    ]
    page = Page(render({"plan": {"tasks": tasks}, "comparison": comparison}))
    assert sum(tag == "tr" for tag, _ in page.tags) == 2000 + 2 + 2 + 1
    assert "too many tasks" in page.text
