"""Notebooks: ours runs from its first cell to its last, and values show themselves in them."""

from __future__ import annotations

import ast
import html
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

import allotment as al
from allotment.reports.notebook import collect
from allotment.reports.page import render

NOTEBOOK = Path(__file__).parents[1] / "examples" / "from_frame_to_order.ipynb"


def run_cell(text: str, names: dict[str, Any]) -> Any:
    """What the last line of a cell comes to, as a notebook would show it."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


def test_the_notebook_goes_from_a_frame_to_an_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    shown = [
        run_cell("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"
    ]
    assert repr(shown[1]) == "Campaign('notebook-homes')"
    assert repr(shown[2]).startswith("Estimates(by response, 240 draws, labels at hand: price ")
    assert list(shown[3].index) == ["price", "style"]
    assert shown[3]["money"].sum() <= 200
    assert repr(shown[5]).startswith("Frontier(")
    assert shown[6]["task"].iloc[0] in ("price", "style")
    told = capsys.readouterr()
    assert "price mae now" in told.out
    assert "trainings: " in told.err  # no terminal here: a few lines in place of a bar


def test_frames_of_plans_and_frontiers() -> None:
    problem = al.Problem([al.Task("cls", 1, have=300), al.Task("seg", 20, have=300)], budget=6300)
    gains = {"cls": al.Geometric(1.13, 0.999), "seg": al.Geometric(2.03, 0.997)}
    plan = al.allocate(problem, gains)
    frame = plan.to_frame()
    assert dict(frame["buy"]) == plan.counts
    assert frame["money"].sum() == float(plan.spent)
    assert repr(plan) == "Plan(cls 2920, seg 169: 6300 of 6300)"
    curve = al.frontier(problem, gains)
    assert repr(curve) == "Frontier(6301 budgets from 0 to 6300)"
    rows = curve.to_frame()
    assert dict(rows.loc[3000, ["cls", "seg"]]) == curve.at(3000).counts


class Frames(HTMLParser):
    """The frames of a piece of HTML, with the pages in them and what is shown without frames."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read_frame(value: Any) -> str:
    """The page in the frame that a value shows itself in."""
    shown = Frames(value._repr_html_())
    assert shown.tags == ["iframe"]
    assert "".join(shown.texts) == repr(value)
    (frame,) = shown.attributes
    assert frame["sandbox"] == "allow-scripts"  # and nothing of the notebook's
    assert not {"src", "name", "allow"} & set(frame)
    page = frame["srcdoc"]
    assert page is not None
    assert page.startswith("<!DOCTYPE html>")
    return page


def say(page: str) -> str:
    """What a page says without its script."""
    body = page.partition("<main>")[2].partition("</main>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


EVIL = """</iframe><script>alert('1')</script>" onload="alert(2)"""


def test_plans_and_frontiers_show_themselves() -> None:
    problem = al.Problem([al.Task("cls", 1, have=300), al.Task("seg", 20, have=300)], budget=6300)
    gains = {"cls": al.Geometric(1.13, 0.999), "seg": al.Geometric(2.03, 0.997)}
    plan = al.allocate(problem, gains)
    page = read_frame(plan)
    assert page == render(collect(plan))
    for words in (
        "2,920",
        "169",
        "6,300 of 6,300 are planned",
        "What if",
        "equal budget",
        "46.3 %",
    ):
        assert words in say(page)
    assert "Equally good" not in say(page)  # which takes long to find out
    assert plan.plateau
    assert "Equally good" in say(read_frame(plan))
    shown = say(read_frame(al.frontier(problem, gains)))
    assert "All of 6300 buys cls 2920, seg 169" in shown
    assert "What other budgets bring" in shown


def test_estimates_show_themselves_and_the_plans_that_rest_on_them() -> None:
    worths = np.random.default_rng(0).normal(30, 5, (12, 2, 2))
    estimates = al.Estimates(("cls", EVIL), (300, 300), worths, np.full((12, 2), 0.4))
    shown = say(read_frame(estimates))
    for words in (
        "12 draws of what labels are worth to 2 tasks",
        "What more labels bring",
        "alert",
    ):
        assert words in shown
    problem = al.Problem([al.Task("cls", 1, have=300), al.Task(EVIL, 20, have=300)], budget=400)
    plan = al.allocate(problem, estimates)
    shown = say(read_frame(plan))
    for words in ("% of score", "Where the gains come from", "Chance", "Mean gain"):
        assert words in shown
    curve = al.frontier(problem, estimates)
    points = collect(curve)["frontier"]["points"]
    assert all(low <= mean <= high for _, mean, low, high in points)
    assert points[-1][1] == pytest.approx(
        (estimates.gains_of(plan.counts) @ np.full(2, 0.5)).mean()
    )
    assert "What other budgets bring" in say(read_frame(curve))


def test_hostile_names_stay_within_their_frame() -> None:
    problem = al.Problem([al.Task(EVIL, 1)], budget=3)
    plan = al.allocate(problem, {EVIL: al.Geometric(1, 0.9)})
    page = read_frame(plan)
    assert "alert(" in say(page)
    inside = Frames(page)
    assert inside.tags.count("script") == 2  # the page's values and its own
    assert not any("onload" in attributes for attributes in inside.attributes)
    read_frame(al.frontier(problem, {EVIL: al.Geometric(1, 0.9)}))


def test_many_tasks_are_shown_without_what_takes_long() -> None:
    names = [f"t{number}" for number in range(40)]
    problem = al.Problem([al.Task(name, 1 + place % 3) for place, name in enumerate(names)], 500)
    plan = al.allocate(problem, {name: al.Geometric(1, 0.9) for name in names})
    values = collect(plan)
    assert "frontier" not in values
    assert "plateau" not in vars(plan)
    assert "500 of 500 are planned" in say(read_frame(plan))


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    problem = al.Problem([al.Task("a", 1)], budget=3)
    with pytest.raises(al.InputError, match=r"pandas: is not installed.*: pip install pandas"):
        al.allocate(problem, {"a": al.Geometric(1, 0.9)}).to_frame()
