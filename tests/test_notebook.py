"""The notebook runs from its first cell to its last, as it stands."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import allotment as al

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


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    problem = al.Problem([al.Task("a", 1)], budget=3)
    with pytest.raises(al.InputError, match=r"pandas: is not installed.*: pip install pandas"):
        al.allocate(problem, {"a": al.Geometric(1, 0.9)}).to_frame()
