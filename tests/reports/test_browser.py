"""The page in a real browser: it answers as the planner does, asks nothing of any network, and
nothing that it shows or is linked to with can take it over."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import allotment as al
from allotment.plan import Plan, floors_of
from allotment.problem_file import Document, parse_problem
from allotment.reports import render
from allotment.reports.words import SCRIPT_WORDS
from helpers.browser import Tab, launch, visit
from helpers.instances import random_problem
from helpers.reports import (
    Report,
    add_limits,
    describe_plan,
    make_problem,
    report_campaign,
    report_problem,
    write_report,
)
from helpers.what_ifs import FIELDS, WhatIf, draw_what_if, judge

PHONE = {"viewport": {"width": 390, "height": 844}}
READ_PANEL = """() => {
  const panel = document.querySelector("#what-if-panel");
  const bought = [...panel.querySelectorAll("tbody tr strong")];
  return {
    counts: bought.map((each) => Number(each.dataset.count)),
    shown: bought.map((each) => each.innerText),
    wrong: panel.querySelector(".wrong").textContent,
    said: panel.querySelector(".sentence").textContent,
  };
}"""
TRY_LINKS = f"""(links) => {{
  // the page waits for the next frame before it answers; here there are too many to wait for
  window.requestAnimationFrame = (answer) => (answer(), 0);
  const read = {READ_PANEL};
  return links.map((link) => {{
    history.replaceState(null, "", link);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    return read();
  }});
}}"""
AFTER_FRAME = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch() as found:
        yield found


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A problem with curves and every kind of limit."""
    problem, gains = make_problem()
    return report_problem(problem, gains, tmp_path_factory.mktemp("streets") / "page.html")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A campaign that was measured; labels of one task harm the other."""
    return report_campaign(tmp_path_factory.mktemp("homes"))


@pytest.fixture(scope="module", params=["streets", "homes"])
def report(request: pytest.FixtureRequest) -> Report:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Report)
    return found


def read(tab: Tab) -> dict[str, Any]:
    """What the panel shows now."""
    tab.ask(AFTER_FRAME)
    return dict(tab.ask(READ_PANEL))


def counts_of(report: Report, asked: WhatIf) -> list[int]:
    plan = al.allocate(asked.apply(report.problem), report.source)
    return list(plan.counts.values())


def field_of(tab: Tab, field: str, task: str) -> Any:
    return tab.page.get_by_label(f"{SCRIPT_WORDS[field]}: {task}", exact=True)


def press(tab: Tab, word: str) -> None:
    tab.page.get_by_role("button", name=SCRIPT_WORDS[word], exact=True).click()


# ---- What if ---------------------------------------------------------------------------------------


def test_the_page_begins_with_the_plan(browser: Any, report: Report) -> None:
    with visit(browser, report.file) as tab:
        shown = read(tab)
        assert shown["counts"] == list(report.plan.counts.values())
        assert shown["wrong"] == ""
        assert "That is the plan" in shown["said"]


def test_the_budget_is_moved_by_keys_and_by_hand(browser: Any, report: Report) -> None:
    with visit(browser, report.file) as tab:
        slider, field = tab.page.locator("#wi-budget"), tab.page.locator("#wi-budget + input")
        slider.focus()
        asked = [str(float(report.problem.budget))]
        for key, times in (("ArrowRight", 20), ("PageUp", 1), ("Home", 1), ("End", 1)):
            for _ in range(times):
                tab.page.keyboard.press(key)
            shown = read(tab)
            asked.append(field.input_value())
            assert float(asked[-1]) != float(asked[-2])
            assert shown_is_planned(report, WhatIf(asked[-1]), shown)
        assert float(asked[1]) > float(asked[0])
        assert float(asked[3]) == 0
        assert float(asked[4]) == 3 * report.problem.budget
        slider.fill("11")
        assert shown_is_planned(report, WhatIf(field.input_value()), read(tab))
        press(tab, "back")
        assert read(tab)["counts"] == list(report.plan.counts.values())
        assert tab.ask("location.hash") == ""


def shown_is_planned(report: Report, asked: WhatIf, shown: dict[str, Any]) -> bool:
    return judge(asked, report.problem, report.source, shown) == ""


def test_every_field_moves_the_plan(browser: Any, streets: Report) -> None:
    """Price, weight, least and most are typed, hold is ticked; the plan is the planner's."""
    held = streets.plan.counts["seg"]
    with visit(browser, streets.file) as tab:
        changes: dict[int, dict[str, str]] = {}
        for place, name, field, text in (
            (0, "cls", "price", "2.25"),
            (2, "depth", "weight", "0.5"),
            (0, "cls", "least", "150"),
            (2, "depth", "most", "70"),
        ):
            field_of(tab, field, name).fill(text)
            tab.page.keyboard.press("Tab")
            changes.setdefault(place, {})[field] = text
            assert read(tab)["counts"] == counts_of(streets, WhatIf(None, changes)), field
        press(tab, "back")
        read(tab)
        field_of(tab, "hold", "seg").check()
        tab.page.get_by_label(SCRIPT_WORDS["budget"], exact=True).last.fill("900")
        tab.page.keyboard.press("Tab")
        asked = WhatIf("900", {1: {"hold": str(held)}})
        assert read(tab)["counts"] == counts_of(streets, asked)
        assert read(tab)["counts"] != counts_of(streets, WhatIf("900"))
        field_of(tab, "hold", "seg").uncheck()
        assert read(tab)["counts"] == counts_of(streets, WhatIf("900"))


def test_the_link_keeps_what_was_asked(browser: Any, streets: Report) -> None:
    asked = WhatIf("800", {0: {"price": "2.5", "least": "100"}, 1: {"hold": "20"}})
    with visit(browser, streets.file, asked.link) as tab:
        first = read(tab)
        assert first["counts"] == counts_of(streets, asked)
        assert tab.ask("location.hash") == asked.link
        field_of(tab, "weight", "depth").fill("3")
        tab.page.keyboard.press("Tab")
        changed = read(tab)
        tab.page.reload()
        assert read(tab) == changed
        assert field_of(tab, "weight", "depth").input_value() == "3"
        assert field_of(tab, "hold", "seg").is_checked()
        tab.ask("(link) => { location.hash = link; }", asked.link)
        tab.page.wait_for_function("document.querySelector('#wi-budget').value === '127'")
        assert read(tab) == first


def save(tab: Tab, folder: Path) -> Document:
    with tab.page.expect_download() as saved:
        press(tab, "save")
    saved.value.save_as(folder / "what-if.toml")
    return parse_problem((folder / "what-if.toml").read_text(encoding="utf-8"))


def check_saved(document: Document, report: Report, asked: WhatIf, counts: list[int]) -> None:
    """It is the problem as it was asked, and what is shown is worth there what it is here."""
    changed = asked.apply(report.problem)
    assert document.problem == changed
    assert document.gains is not None
    shown = dict(zip(changed.names, counts, strict=True))
    theirs = al.score(document.problem, document.gains, shown)
    mine = al.score(changed, report.source, shown)
    assert theirs.feasible
    assert theirs.gains == pytest.approx(mine.gains, rel=1e-9)


def test_what_was_asked_is_saved_as_a_problem(browser: Any, tmp_path: Path) -> None:
    """The file holds the numbers on the screen, and all limits and curves of before."""
    problem, gains = add_limits(*make_problem())
    plan = Plan(problem, gains, floors_of(problem), 0.0)
    report = write_report(plan, describe_plan(plan), tmp_path / "page.html")
    changes = {0: {"price": "2.5"}, 1: {"price": "7"}, 2: {"weight": "3", "most": "90"}}
    asked = WhatIf("800.75", changes)
    with visit(browser, report.file, asked.link) as tab:
        shown = read(tab)
        document = save(tab, tmp_path)
    check_saved(document, report, asked, shown["counts"])


def test_what_was_asked_of_a_campaign_is_saved(browser: Any, homes: Report, tmp_path: Path) -> None:
    asked = WhatIf("75", {0: {"weight": "2"}, 1: {"price": "3.5", "least": "2"}})
    with visit(browser, homes.file, asked.link) as tab:
        shown = read(tab)
        document = save(tab, tmp_path)
    check_saved(document, homes, asked, shown["counts"])


def test_numbers_are_read_as_the_page_writes_them(browser: Any, streets: Report) -> None:
    """6,300 is no 6.3; a decimal comma is taken for what it is, and the link keeps it."""
    with visit(browser, streets.file) as tab:
        field = tab.page.locator("#wi-budget + input")
        for typed, meant in (("1,030", "1030"), ("612,5", "612.5"), ("1,030.25", "1030.25")):
            field.fill(typed)
            tab.page.keyboard.press("Enter")
            assert shown_is_planned(streets, WhatIf(meant), read(tab))
            assert tab.ask("location.hash") == WhatIf(meant).link


def test_going_to_a_part_of_the_page_keeps_what_was_asked(browser: Any, homes: Report) -> None:
    asked = WhatIf("75")
    with visit(browser, homes.file, asked.link) as tab:
        first = read(tab)
        tab.page.locator("nav a").last.click()
        assert tab.ask("location.hash").startswith("#")
        assert read(tab) == first
        tab.page.go_back()
        assert tab.ask("location.hash") == asked.link
        assert read(tab) == first


IMPOSSIBLE = (
    WhatIf("10"),  # less than what must be bought
    WhatIf(None, {0: {"least": "500"}}),  # more than there are
    WhatIf(None, {1: {"hold": "7"}}),  # no whole lots
    WhatIf(None, {0: {"least": "30", "most": "20"}}),
    WhatIf(None, {0: {"price": "0"}}),
    WhatIf(None, {0: {"price": "1.2.3"}}),
    WhatIf(None, {0: {"least": "1.5"}}),
    WhatIf("9999999999999999"),
)


def test_what_cannot_be_is_said_and_no_plan_is_shown(browser: Any, streets: Report) -> None:
    links = [asked.link for asked in IMPOSSIBLE]
    with visit(browser, streets.file) as tab:
        for link, shown in zip(links, tab.ask(TRY_LINKS, links), strict=True):
            assert shown["wrong"] != "", link
            assert shown["said"] == ""
            assert not any(re.search(r"\d", text) for text in shown["shown"])
        field_of(tab, "hold", "seg").check()
        assert field_of(tab, "hold", "seg").is_checked()
        press(tab, "back")
        assert read(tab)["counts"] == list(streets.plan.counts.values())


def try_what_ifs(browser: Any, report: Report, seed: str, times: int) -> list[str]:
    """What the page answers to random changes that the planner does not."""
    rng = random.Random(seed)
    asked = [draw_what_if(rng, report.plan) for _ in range(times)]
    with visit(browser, report.file) as tab:
        shown = tab.ask(TRY_LINKS, [each.link for each in asked])
    pairs = zip(asked, shown, strict=True)
    wrong = [judge(each, report.problem, report.source, seen) for each, seen in pairs]
    return [each for each in wrong if each]


def try_problems(browser: Any, folder: Path, indices: Sequence[int], times: int) -> list[str]:
    """The same on small problems that together have every kind of limit and curve."""
    found = []
    for index in indices:
        problem, gains, kinds = random_problem(20, index)
        report = report_problem(problem, gains, folder / f"{index}.html", whole=False)
        wrong = try_what_ifs(browser, report, f"{index}", times)
        found += [f"{index} ({', '.join(sorted(kinds))}): {each}" for each in wrong]
    return found


QUICK = (0, 15, 35, 50)
"""without shared curves, of which the planner takes half a second"""


def test_the_page_plans_like_the_planner(browser: Any, report: Report) -> None:
    assert try_what_ifs(browser, report, "few", 20) == []


def test_the_page_plans_like_the_planner_on_problems(browser: Any, tmp_path: Path) -> None:
    assert try_problems(browser, tmp_path, QUICK, 6) == []


@pytest.mark.long
def test_many_what_ifs_are_planned_like_the_planner(browser: Any, report: Report) -> None:
    assert try_what_ifs(browser, report, "many", 100) == []


@pytest.mark.long
def test_many_what_ifs_on_problems(browser: Any, tmp_path: Path) -> None:
    """With those above, more than 500."""
    assert try_problems(browser, tmp_path, range(1, 76, 5), 20) == []
