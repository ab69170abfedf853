"""A plan as plain values, and that commands show what the library gives, no more and no less."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import begin, fine

import allotment as al
from allotment.cli.files import read_example
from allotment.cli.output import print_json
from allotment.errors import InputError
from allotment.ledger.lock import take
from allotment.overview import FEW_TASKS, compare_few, describe_plan, few_baselines, list_tasks
from allotment.problem_file import Document, parse_problem
from allotment.reports.page import write_page


def read_voc() -> Document:
    return parse_problem(read_example("voc"))


def printed(plain: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints of plain values."""
    capsys.readouterr()
    print_json(plain)
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def voc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "problem.toml"
    path.write_text(read_example("voc"), encoding="utf-8")
    return path


def test_plans_are_told_by_the_library(voc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = read_voc()
    plan = al.allocate(document.problem, document.gains or {})
    told = describe_plan(plan)
    assert json.loads(fine("plan", voc, "--json")) == printed(told, capsys)
    assert al.Plan.from_dict(told).counts == plan.counts
    assert {"range_low", "range_high", "bought_up_to"} <= told["tasks"][0].keys()
    assert "range_low" not in list_tasks(plan, ranges=False)[0]
    rows = list(csv.DictReader(io.StringIO(fine("plan", voc, "--csv"))))
    assert [row["buy"] for row in rows] == [str(row["buy"]) for row in list_tasks(plan)]
    least = al.cheapest(document.problem, document.gains or {}, 1000)
    found = json.loads(fine("cheapest", voc, "--target", 1000, "--json"))
    assert found == printed(least.to_dict() | {"tasks": list_tasks(least, False)}, capsys)


def test_frontiers_are_told_by_the_library(voc: Path) -> None:
    document = read_voc()
    curve = al.frontier(document.problem, document.gains or {})
    assert json.loads(fine("frontier", voc, "--json")) == curve.to_dict()
    assert json.loads(fine("frontier", voc, "--json", "--points", 4)) == curve.to_dict(4)
    few = curve.to_dict(4)
    assert len(few["budgets"]) == len(few["values"]) == 4
    assert few["budgets"][-1] == document.problem.budget
    for budget, value in zip(few["budgets"], few["values"], strict=True):
        assert curve.at(budget).value == pytest.approx(value)


def test_of_many_tasks_none_gets_all_the_money() -> None:
    names = [f"t{number}" for number in range(FEW_TASKS + 1)]
    many = al.Problem([al.Task(name, 1) for name in names], budget=100)
    assert set(few_baselines(many)) == {"equal images", "equal budget", "neutral"}
    assert "range_low" not in list_tasks(al.allocate(many, al.neutral_gains(many)))[0]
    few = al.Problem(many.tasks[:-1], budget=100)
    assert few_baselines(few) == al.baselines(few)


def test_a_neutral_plan_is_not_beside_itself() -> None:
    problem = al.Problem([al.Task("a", 1), al.Task("b", 5)], budget=100)
    plan = al.allocate(problem, al.neutral_gains(problem))
    rows = compare_few(plan, {"a": 3, "b": 1}).rows
    assert {"yours", "equal budget"} <= {row.name for row in rows}
    assert "neutral" not in {row.name for row in rows}


def test_campaigns_are_told_by_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = begin("camp", "--method", "neutral")
    campaign = al.Campaign(folder)
    _, proposal = campaign.plan()
    told = json.loads(fine("plan", folder, "--json"))
    about = {"tranche": proposal.tranche.to_dict(), "standing": proposal.plan.standing}
    about |= {"scores": {}, "stale": ""}
    assert told == printed(describe_plan(proposal.plan) | about, capsys)
    assert told["standing"] == "unknown"
    ordered = json.loads(fine("order", folder, "--json"))
    again = printed(campaign.order().to_dict(), capsys)
    assert (ordered.pop("new"), again.pop("new")) == (True, False)
    assert ordered == again
    values = campaign.report()
    assert json.loads(fine("report", folder, "--json")) == printed(values, capsys)
    fine("report", folder)
    page = write_page(values, tmp_path / "page.html")
    assert page.read_bytes() == (folder / "report.html").read_bytes()
    with pytest.raises(InputError, match="is no report"):
        write_page(values, folder / "campaign.toml")
    assert campaign.pack() == Path("camp.zip")


def test_a_plan_that_cannot_be_kept_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = al.Campaign(begin("camp", "--method", "neutral"))
    _, proposal = campaign.plan()
    lock = take(campaign.folder, "allot order camp")
    assert "allot order camp" in campaign.try_to_record(proposal)
    lock.release()
    assert campaign.try_to_record(proposal) == ""
