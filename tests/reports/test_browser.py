"""The page in a real browser: it answers as the planner does, asks nothing of any network, and
nothing that it shows or is linked to with can take it over."""

from __future__ import annotations

import csv
import io
import os
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import NoBrowser, Tab, find_browser, launch, visit
from helpers.hostile import LINKS, TEXTS, poison
from helpers.instances import random_problem
from helpers.questioned import (
    Report,
    add_limits,
    describe_plan,
    make_problem,
    report_campaign,
    report_file,
    report_limited_campaign,
    report_problem,
    write_report,
)
from helpers.reports import look
from helpers.what_ifs import WhatIf, draw_what_if, judge

import allotment as al
from allotment.limits import explain_idle_budget
from allotment.plan import Plan, floors_of
from allotment.problem_file import Document, parse_problem
from allotment.reports import render
from allotment.reports.words import SCRIPT_WORDS

PROBLEMS = Path(__file__).parent / "problems"
PHONE = {"viewport": {"width": 390, "height": 844}}
READ_PANEL = """() => {
  const panel = document.querySelector("#what-if-panel");
  const bought = [...panel.querySelectorAll("tbody tr strong")];
  return {
    counts: bought.map((each) => Number(each.dataset.count)),
    shown: bought.map((each) => each.textContent),
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
TRY_FIELDS = f"""(asked) => {{
  // what one person does within a frame is answered once, and a link is only noted here: Chromium
  // takes ten milliseconds over each, and no more than 200 in ten seconds
  let frame = () => {{}};
  window.requestAnimationFrame = (answer) => ((frame = answer), 0);
  let link = "";
  history.replaceState = (state, title, to) => (link = to);
  const read = {READ_PANEL};
  const panel = document.querySelector("#what-if-panel");
  const budget = panel.querySelector("#wi-budget + input");
  const back = panel.querySelector(".buttons button");
  const rows = [...panel.querySelectorAll("tbody tr")].map((row) => row.querySelectorAll("input"));
  const enter = (input, text) => {{
    if (input.type === "checkbox") return input.click(); // which holds what is shown
    input.value = text;
    input.dispatchEvent(new Event("change"));
  }};
  return asked.map((each) => {{
    back.click();
    frame();
    if (each.budget !== null) enter(budget, each.budget);
    for (const [place, field, text] of each.fields) enter(rows[place][field], text);
    frame();
    return {{...read(), link}};
  }});
}}"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach((each) => (each.open = true))"
AFTER_FRAME = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        find_browser()
    except NoBrowser as missing:
        pytest.skip(str(missing))
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


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The same campaign with limits of every kind that campaigns have."""
    return report_limited_campaign(tmp_path_factory.mktemp("limited"))


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A problem file with every kind of limit."""
    return report_file(PROBLEMS / "limits.toml", tmp_path_factory.mktemp("limits"))


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory, limits: Report) -> Report:
    """The same without what ties tasks to each other: a cap, labels that come with others."""
    problem = al.Problem(limits.problem.tasks, limits.problem.budget)
    file = tmp_path_factory.mktemp("simple") / "page.html"
    return report_problem(problem, limits.plan.gains, file, whole=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A problem file with a curve that two tasks share."""
    return report_file(PROBLEMS / "shared.toml", tmp_path_factory.mktemp("shared"))


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


# ---- What if -------------------------------------------------------------------------------------


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
        for step in ("11", "64", "105"):
            slider.fill(step)
            shown = read(tab)  # and with it the field is filled
            assert shown_is_planned(report, WhatIf(field.input_value()), shown)
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
    notation = {"currency": 'E"U\\R', "decimal": "comma"}
    file = tmp_path / "page.html"
    file.write_text(render(homes.values | {"style": notation}), encoding="utf-8")
    with visit(browser, file, asked.link) as tab:
        shown = read(tab)
        document = save(tab, tmp_path)
    check_saved(document, homes, asked, shown["counts"])
    assert document.report == notation


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
    WhatIf(None, {0: {"least": "1.5"}}),
    WhatIf("99999999999999", {0: {"price": "0.000001"}}),  # more units than are exact
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
        for typed in ("1.2.3", "-5", "NaN", "<b>", "9" * 30, "1e3"):
            field_of(tab, "price", "cls").fill(typed)
            tab.page.keyboard.press("Enter")
            assert typed in read(tab)["wrong"]
            assert tab.ask("location.hash") == ""


def try_what_ifs(browser: Any, report: Report, seed: str, times: int) -> list[str]:
    """What the page answers to random changes that the planner does not.

    Changes are typed into the page's own fields, but for those that only a link can say.
    """
    rng = random.Random(seed)
    asked = [draw_what_if(rng, report.plan) for _ in range(times)]
    typed = [each for each in asked if each.can_be_typed(report.plan)]
    linked = [each for each in asked if not each.can_be_typed(report.plan)]
    with visit(browser, report.file) as tab:
        answers = tab.ask(TRY_LINKS, [each.link for each in linked])
        answers += tab.ask(TRY_FIELDS, [each.inputs for each in typed])
    return list(filter(None, map(partial(judge_both, report), [*linked, *typed], answers)))


def judge_both(report: Report, asked: WhatIf, shown: dict[str, Any]) -> str:
    """What is wrong with the plan that is shown, or with the link that the page made of what was
    typed."""
    link = shown.get("link", asked.link)
    wrong = "" if link == asked.link else f"{asked.link}: the page's link is {link}"
    return wrong or judge(asked, report.problem, report.source, shown)


TIMES = {"homes": 120, "limited": 130, "simple": 110, "limits": 70, "streets": 40, "shared": 30}
"""random what-ifs, 500 in all; more of those that are planned quickly"""


@pytest.mark.parametrize("name", TIMES)
def test_the_page_plans_like_the_planner(
    browser: Any, request: pytest.FixtureRequest, name: str
) -> None:
    assert try_what_ifs(browser, request.getfixturevalue(name), "few", TIMES[name]) == []


@pytest.mark.long
def test_many_what_ifs_are_planned_like_the_planner(browser: Any, report: Report) -> None:
    assert try_what_ifs(browser, report, "many", 100) == []


@pytest.mark.long
def test_what_ifs_on_problems(browser: Any, tmp_path: Path) -> None:
    """Small ones that together have every pair of limits, and every kind of curve."""
    found = []
    for index in range(0, 78, 3):
        problem, gains, kinds = random_problem(20, index)
        if explain_idle_budget(problem):
            continue  # of which there is no plan to begin with
        report = report_problem(problem, gains, tmp_path / f"{index}.html", whole=False)
        wrong = try_what_ifs(browser, report, f"{index}", 15)
        found += [f"{index} ({', '.join(sorted(kinds))}): {each}" for each in wrong]
    assert found == []


# ---- Safety --------------------------------------------------------------------------------------


def test_only_the_page_s_own_script_runs(browser: Any, report: Report) -> None:
    """Even if a text should get through as markup, nothing of it would run, and nothing is sent."""
    from playwright.sync_api import Error

    with visit(browser, report.file) as tab:
        with pytest.raises(Error):
            tab.page.add_script_tag(content="window.taken = 'by a script'")
        with pytest.raises(Error):
            tab.page.add_style_tag(content="body { display: none }")
        tab.ask(
            """() => {
              document.body.insertAdjacentHTML("beforeend",
                `<img src="x:" onerror="window.taken = 'by an image'">
                 <iframe srcdoc="<script>parent.taken = 'by a frame'</script>"></iframe>
                 <a id="bad" href="javascript:window.taken = 'by a link'">x</a>`);
              document.getElementById("bad").click();
            }"""
        )
        sent = "() => fetch('https://localhost:9/').then(() => 'sent', () => 'refused')"
        assert tab.ask(sent) == "refused"
        assert tab.ask(AFTER_FRAME) is None
        assert tab.ask("window.taken ?? null") is None
        assert tab.ask("getComputedStyle(document.body).display") == "block"
        refused = [each for each in tab.complaints if "Content Security Policy" in each]
        assert len(refused) >= 5
        tab.complaints.clear()  # all of this was ours
        tab.requests.clear()


LIST_ELEMENTS = """() => {
  const found = {};
  for (const each of document.querySelectorAll("*")) {
    const kind = each.namespaceURI.endsWith("svg") ? `svg ${each.tagName}` : each.tagName;
    found[kind] = (found[kind] ?? 0) + 1;
  }
  return found;
}"""
USE_ALL = """() => {
  for (const button of document.querySelectorAll("button.csv")) button.click();
  const boxes = document.querySelectorAll("#what-if-panel input[type=checkbox]");
  for (const field of boxes) field.click();
  for (const field of document.querySelectorAll("#own-panel input")) {
    field.value = "1";
    field.dispatchEvent(new Event("input"));
  }
  const slider = document.querySelector("#wi-budget");
  slider.value = String(Number(slider.max) / 2);
  slider.dispatchEvent(new Event("input"));
}"""


def check_poisoned(browser: Any, report: Report, start: int, file: Path) -> None:
    """With hostile texts everywhere the page has the elements of the harmless one, however it is
    used, and shows them as texts."""
    values = poison(report.values, report.problem.names, start)
    file.write_text(render(values), encoding="utf-8")
    with visit(browser, report.file) as tab:
        tab.ask(USE_ALL)
        read(tab)
        harmless = tab.ask(LIST_ELEMENTS)
    with visit(browser, file, accept_downloads=False) as tab:
        tab.ask(USE_ALL)
        shown = read(tab)
        elements = tab.ask(LIST_ELEMENTS)
        text = tab.ask("document.body.innerText")
        assert tab.ask("Object.keys(Object.prototype).length") == 0
    assert shown["wrong"] == ""
    # in charts a text with line breaks is several
    assert set(elements) - {"svg tspan"} <= set(harmless)
    for kind, count in harmless.items():
        # in charts texts are broken into lines by their letters
        assert elements.get(kind) == count or kind.startswith("svg "), kind
    for name in (task["name"] for task in values["plan"]["tasks"]):
        if name.isprintable() and name.isascii() and len(name) <= 40:
            assert name in text


def test_hostile_texts_stay_texts(browser: Any, homes: Report, tmp_path: Path) -> None:
    for start in (0, 13):
        check_poisoned(browser, homes, start, tmp_path / f"{start}.html")


@pytest.mark.long
def test_each_hostile_text_stays_a_text_everywhere(
    browser: Any, homes: Report, tmp_path: Path
) -> None:
    for start in range(len(TEXTS)):
        check_poisoned(browser, homes, start, tmp_path / f"{start}.html")


def test_hostile_links_do_nothing(browser: Any, homes: Report) -> None:
    plan = list(homes.plan.counts.values())
    with visit(browser, homes.file) as tab:
        for link, shown in zip(LINKS, tab.ask(TRY_LINKS, list(LINKS)), strict=True):
            assert (shown["counts"], shown["wrong"]) == (plan, ""), link[:60]
        assert tab.ask("Object.keys(Object.prototype).length") == 0
        for link in (LINKS[14], LINKS[17], LINKS[20]):
            tab.go(link)
            assert read(tab)["counts"] == plan


# ---- Charts and tables ---------------------------------------------------------------------------

LIST_CHARTS = """() => [...document.querySelectorAll("[data-chart]")].map((place) => {
  const picture = place.querySelector("svg");
  const around = place.closest("figure, .decision, section");
  return {
    kind: place.dataset.chart,
    marks: picture?.querySelectorAll("g[aria-label] :is(path, circle, rect, line)").length ?? 0,
    broken: /NaN|undefined|Infinity/.test(picture?.outerHTML ?? ""),
    wide: (picture?.getBoundingClientRect().width ?? 0) > 100,
    told: around.querySelectorAll("table tbody tr, .spoken").length,
  };
})"""
MOST_DOWNLOADS = 8
"""of one visit: Chromium gives no more than ten in a second"""
READ_TABLES = """() => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  const tell = (cell) => {
    const field = cell.querySelector("input");
    if (field) return field.type === "checkbox" ? String(field.checked) : field.value;
    return cell.innerText.replace(/\\s+/g, " ").trim();
  };
  return [...document.querySelectorAll(".wide")].map((place) =>
    [...place.querySelectorAll("tr")].map((row) => [...row.cells].map(tell)));
}"""


def test_every_chart_is_drawn_and_told(browser: Any, report: Report) -> None:
    with visit(browser, report.file) as tab:
        charts = tab.ask(LIST_CHARTS)
        tab.page.set_viewport_size({"width": 700, "height": 900})
        tab.ask(AFTER_FRAME)
        assert len(tab.ask(LIST_CHARTS)) == len(charts)
    assert charts
    for chart in charts:
        assert chart["marks"] >= 1, chart
        assert chart["wide"], chart
        assert not chart["broken"], chart
        assert chart["told"] >= 1, chart


def test_every_kind_of_chart_was_drawn(browser: Any, homes: Report) -> None:
    with visit(browser, homes.file) as tab:
        kinds = {chart["kind"] for chart in tab.ask(LIST_CHARTS)}
        known = set(tab.ask("Object.keys(Charts)"))
    assert kinds == known


def test_tables_are_given_away_as_they_are_shown(
    browser: Any, homes: Report, tmp_path: Path
) -> None:
    first, count = 0, 1
    while first < count:
        with visit(browser, homes.file, WhatIf("75").link) as tab:
            read(tab)
            tables = tab.ask(READ_TABLES)
            buttons = tab.page.locator("button.csv").all()
            count = len(buttons)
            assert count == len(tables) >= 6
            last = first + MOST_DOWNLOADS
            for button, table in list(zip(buttons, tables, strict=True))[first:last]:
                with tab.page.expect_download() as given:
                    button.click()
                given.value.save_as(tmp_path / "table.csv")
                check_table((tmp_path / "table.csv").read_bytes().decode("utf-8"), table)
        first = last


def check_table(text: str, table: list[list[str]]) -> None:
    """That a CSV file holds what a table shows."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [[cell.replace(" ", "") for cell in row] for row in rows] == [
        [cell.replace(" ", "") for cell in row] for row in table
    ]


def test_a_spreadsheet_runs_nothing_of_a_table(browser: Any, tmp_path: Path) -> None:
    names = ["=1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "+1 (A1)", 'a "b", c']
    tasks = [{"name": name, "count": 3} for name in names]
    file = tmp_path / "page.html"
    file.write_text(render({"plan": {"tasks": tasks}}), encoding="utf-8")
    with visit(browser, file) as tab:
        with tab.page.expect_download() as given:
            tab.page.locator("button.csv").first.click()
        given.value.save_as(tmp_path / "table.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "table.csv").read_text("utf-8"), newline="")))
    assert [row[0] for row in rows[1:6]] == [*(f"'{name}" for name in names[:4]), names[4]]


# ---- For everyone --------------------------------------------------------------------------------

FOCUSED = """() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  const box = at.getBoundingClientRect();
  const all = [...document.querySelectorAll(
    "a[href], button, input, select, summary, textarea, [tabindex='0']")];
  return {
    place: all.indexOf(at),
    name: `${at.tagName} ${at.getAttribute("aria-label") ?? at.textContent.slice(0, 30)}`,
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
    inside: box.top < innerHeight && box.bottom > 0,
    size: all.filter((each) => each.checkVisibility()).length,
  };
}"""


def test_the_keyboard_reaches_everything_in_order(browser: Any, homes: Report) -> None:
    with visit(browser, homes.file) as tab:
        seen: list[dict[str, Any]] = []
        for _ in range(300):
            tab.page.keyboard.press("Tab")
            found = tab.ask(FOCUSED)
            if found["place"] < 0:
                break
            seen.append(found)
        places = [each["place"] for each in seen]
        assert places == sorted(set(places))
        assert len(seen) == seen[0]["size"]
        assert [each["name"] for each in seen if not each["outlined"]] == []
        assert [each["name"] for each in seen if not each["inside"]] == []


FIND_CUT = """(parts) => [...document.querySelectorAll(parts)]
  .flatMap((part) => [...part.querySelectorAll(".wide")])
  .filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.textContent)"""


@pytest.mark.parametrize("width", [390, 768])
def test_nothing_is_wider_than_the_screen(browser: Any, homes: Report, width: int) -> None:
    with visit(browser, homes.file, viewport={"width": width, "height": 844}) as tab:
        tab.ask(
            "() => { for (const each of document.querySelectorAll('details')) each.open = true; }"
        )
        assert tab.ask("document.documentElement.scrollWidth") <= width
        assert tab.ask(FIND_CUT, ".decision, #what-if") == []
        field = field_of(tab, "price", "style")
        field.fill("3")
        tab.page.keyboard.press("Enter")
        assert read(tab)["counts"] == counts_of(homes, WhatIf(None, {1: {"price": "3"}}))
        assert tab.ask("document.documentElement.scrollWidth") <= width


def test_hostile_texts_are_no_wider_than_a_phone(
    browser: Any, homes: Report, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(render(poison(homes.values, homes.problem.names, 20)), encoding="utf-8")
    with visit(browser, file, **PHONE) as tab:
        assert tab.ask("document.documentElement.scrollWidth") <= 390


def test_without_scripts_there_are_words_and_tables(browser: Any, homes: Report) -> None:
    with visit(browser, homes.file, java_script_enabled=False) as tab:
        text = tab.page.locator("main").inner_text()
        assert tab.page.locator("main table").count() >= 5
    for name, count in homes.plan.counts.items():
        assert f"{count} {name}" in text


def test_paper_shows_the_decision_and_no_controls(browser: Any, homes: Report) -> None:
    with visit(browser, homes.file, color_scheme="dark") as tab:
        tab.page.emulate_media(media="print")
        controls = "main :is(button, input, select, nav)"
        shown = tab.page.locator(controls).evaluate_all(
            "(all) => all.filter((each) => each.checkVisibility()).map((each) => each.outerHTML)"
        )
        assert shown == []
        assert tab.page.locator(".sign").is_visible()
        assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.page.pdf().startswith(b"%PDF")


SHEET = 673
"""pixels between the margins of A4"""


def test_paper_shows_every_column(browser: Any, tmp_path: Path) -> None:
    names = ["classes", "segmentation", "depth", "normals", "edges", "keypoints"]
    counts = dict.fromkeys(names, 1234)
    plans = ["plan", "equal budget", "all on segmentation"]
    rows = [{"name": name, "counts": counts, "value": 2.7, "spent": 900} for name in plans]
    for row in rows[1:]:
        row["outlook"] = {"mean": 0.28, "low": -0.03, "high": 0.97, "chance": 0.999}
    tasks = [{"name": name, "count": 1234} for name in names]
    file = tmp_path / "page.html"
    file.write_text(render({"plan": {"tasks": tasks}, "comparison": rows}), encoding="utf-8")
    with visit(browser, file, viewport={"width": SHEET, "height": 1000}) as tab:
        tab.page.emulate_media(media="print")
        assert tab.page.get_by_text("above 99").first.is_visible()
        assert tab.ask("document.documentElement.scrollWidth") <= SHEET


def test_pictures_are_shown_within_the_policy(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(render({"pictures": look()}), encoding="utf-8")
    with visit(browser, file, **PHONE) as tab:
        shown = tab.ask("""() => [...document.images].map((each) => (
            {width: each.naturalWidth, alt: each.alt, right: each.getBoundingClientRect().right}
        ))""")
        assert len(shown) == 7
        assert all(each["width"] and each["alt"] and each["right"] <= 390 for each in shown)
        assert tab.ask("document.documentElement.scrollWidth") <= 390
    assert find_grave(browser, file, "dark") == []


def find_grave(browser: Any, file: Path, scheme: str) -> list[tuple[str, list[str]]]:
    """What axe-core judges to be more than minor: contrast, names, roles and the like."""
    axe = Path(os.environ.get("ALLOT_AXE", ""), "axe.min.js")
    if not axe.is_file():
        pytest.skip("needs axe-core: npm pack axe-core, unpack it, name its folder by ALLOT_AXE")
    with visit(browser, file, WhatIf("75").link, color_scheme=scheme) as tab:
        tab.ask(OPEN_ALL)
        tab.ask(axe.read_text(encoding="utf-8"))
        found = tab.ask("() => axe.run()")["violations"]
    grave = [each for each in found if each["impact"] != "minor"]
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in grave]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, homes: Report, scheme: str) -> None:
    assert find_grave(browser, homes.file, scheme) == []


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_where_nothing_was_measured(
    browser: Any, streets: Report, scheme: str
) -> None:
    assert find_grave(browser, streets.file, scheme) == []
