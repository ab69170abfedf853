"""The page in a real browser: it answers as the planner does, asks nothing of any network, and
nothing that it shows or is linked to with can take it over."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import allotment as al
from allotment.problem_file import parse_problem
from allotment.reports import render
from allotment.reports.words import SCRIPT_WORDS
from helpers.browser import Tab, launch, visit
from helpers.instances import random_problem
from helpers.reports import Report, make_problem, report_campaign, report_problem
from helpers.what_ifs import FIELDS, WhatIf, draw_what_if, judge

PHONE = {"viewport": {"width": 390, "height": 844}}
READ_PANEL = """() => {
  const panel = document.querySelector("#what-if-panel");
  const bought = [...panel.querySelectorAll("tbody tr td.strong")];
  return {
    counts: bought.map((cell) => Number(cell.dataset.value)),
    shown: bought.map((cell) => cell.innerText),
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
    budget = report.problem.budget
    with visit(browser, report.file) as tab:
        slider = tab.page.locator("#wi-budget")
        slider.focus()
        for _ in range(20):
            tab.page.keyboard.press("ArrowRight")
        more = WhatIf(str(float(budget * 120 / 100)))
        assert read(tab)["counts"] == counts_of(report, more)
        tab.page.keyboard.press("Home")
        tab.page.keyboard.press("PageUp")
        assert read(tab)["counts"] != counts_of(report, more)
        slider.fill("250")
        much = WhatIf(str(float(budget * 250 / 100)))
        assert read(tab)["counts"] == counts_of(report, much)
        press(tab, "back")
        assert read(tab)["counts"] == list(report.plan.counts.values())
        assert tab.page.evaluate("location.hash") == ""


def test_every_field_moves_the_plan(browser: Any, streets: Report) -> None:
    """Price, weight, least and most are typed, hold is ticked; the plan is the planner's."""
    held = streets.plan.counts["seg"]
    with visit(browser, streets.file) as tab:
        changes: dict[int, dict[str, str]] = {}
        for place, name, field, text in (
            (0, "cls", "price", "2.25"),
            (2, "depth", "weight", "0.5"),
            (0, "cls", "least", "900"),
            (2, "depth", "most", "700"),
        ):
            field_of(tab, field, name).fill(text)
            tab.page.keyboard.press("Tab")
            changes.setdefault(place, {})[field] = text
            assert read(tab)["counts"] == counts_of(streets, WhatIf(None, changes)), field
        press(tab, "back")
        read(tab)
        field_of(tab, "hold", "seg").check()
        tab.page.get_by_label(SCRIPT_WORDS["budget"], exact=True).last.fill("9000")
        tab.page.keyboard.press("Tab")
        asked = WhatIf("9000", {1: {"hold": str(held)}})
        assert read(tab)["counts"] == counts_of(streets, asked)
        assert read(tab)["counts"] != counts_of(streets, WhatIf("9000"))
        field_of(tab, "hold", "seg").uncheck()
        assert read(tab)["counts"] == counts_of(streets, WhatIf("9000"))


def test_the_link_keeps_what_was_asked(browser: Any, streets: Report) -> None:
    asked = WhatIf("8000", {0: {"price": "2.5", "least": "100"}, 1: {"hold": "120"}})
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


def test_what_was_asked_is_saved_as_a_problem(
    browser: Any, streets: Report, tmp_path: Path
) -> None:
    """The file holds the numbers on the screen, and all limits and curves of before."""
    asked = WhatIf(
        "8000.75", {0: {"price": "2.5"}, 1: {"price": "7"}, 2: {"weight": "3", "most": "900"}}
    )
    with visit(browser, streets.file, asked.link) as tab:
        shown = read(tab)
        with tab.page.expect_download() as saved:
            press(tab, "save")
        saved.value.save_as(tmp_path / "what-if.toml")
    document = parse_problem((tmp_path / "what-if.toml").read_text(encoding="utf-8"))
    assert document.problem == asked.apply(streets.problem)
    assert document.gains is not None
    plan = al.allocate(document.problem, document.gains)
    assert list(plan.counts.values()) == shown["counts"]


def test_what_was_asked_of_a_campaign_is_saved(
    browser: Any, homes: Report, tmp_path: Path
) -> None:
    asked = WhatIf("75", {1: {"price": "3.5", "least": "2"}})
    with visit(browser, homes.file, asked.link) as tab:
        shown = read(tab)
        with tab.page.expect_download() as saved:
            press(tab, "save")
        saved.value.save_as(tmp_path / "what-if.toml")
    document = parse_problem((tmp_path / "what-if.toml").read_text(encoding="utf-8"))
    assert document.problem == asked.apply(homes.problem)
    if document.gains is not None:
        plan = al.allocate(document.problem, document.gains)
        assert list(plan.counts.values()) == shown["counts"]


@pytest.mark.parametrize(
    "asked",
    [
        WhatIf("10"),  # less than what must be bought
        WhatIf(None, {0: {"least": "5000"}}),  # more than there are
        WhatIf(None, {1: {"hold": "7"}}),  # no whole lots
        WhatIf(None, {0: {"least": "30", "most": "20"}}),
        WhatIf(None, {0: {"price": "0"}}),
        WhatIf(None, {0: {"price": "1.2.3"}}),
        WhatIf(None, {0: {"least": "1.5"}}),
    ],
)
def test_what_cannot_be_is_said_and_no_plan_is_shown(
    browser: Any, streets: Report, asked: WhatIf
) -> None:
    with visit(browser, streets.file, asked.link) as tab:
        shown = read(tab)
        assert shown["wrong"] != ""
        assert shown["said"] == ""
        assert not any(re.search(r"\d", text) for text in shown["shown"])
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


def test_the_page_plans_like_the_planner_on_problems(browser: Any, tmp_path: Path) -> None:
    """300 what ifs on small problems with all kinds of limits and curves."""
    found = []
    for index in range(0, 75, 5):
        problem, gains, kinds = random_problem(20, index)
        report = report_problem(problem, gains, tmp_path / f"{index}.html", whole=False)
        wrong = try_what_ifs(browser, report, f"{index}", 20)
        found += [f"{index} ({', '.join(sorted(kinds))}): {each}" for each in wrong]
    assert found == []


def test_the_page_plans_like_the_planner(browser: Any, report: Report) -> None:
    """100 what ifs each, on a problem file and on a measured campaign."""
    assert try_what_ifs(browser, report, "page", 100) == []
