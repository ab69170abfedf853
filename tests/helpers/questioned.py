"""Values of reports whose pages can be questioned: of a problem with curves, and of a measured
campaign."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import allotment as al
from allotment.advice.questions import ask_what_if
from allotment.plan import Evidence, Plan
from allotment.problem import show_exact
from allotment.reports import render
from helpers.instances import Instance
from helpers.stores import FIXTURES


@dataclass(frozen=True)
class Report:
    """A page on disk, and what it was made of."""

    file: Path
    plan: Plan
    values: dict[str, Any]

    @property
    def problem(self) -> al.Problem:
        return self.plan.problem

    @property
    def source(self) -> dict[str, al.Curve] | Evidence:
        """What its problem is planned by."""
        return self.plan.gains if self.plan.evidence is None else self.plan.evidence


def make_problem() -> Instance:
    """Street scenes: fees, tiers, lots, least, most, decided counts; quickly solved."""
    tasks = [
        al.Task("cls", cost="1.5", have=30, pool=200, fee=12),
        al.Task("seg", cost=20, have=30, lot=5, tiers=[(10, 15)], implies=["cls"]),
        al.Task("depth", cost="0.50", have=10, weight=2, least=15, most=300),
        al.Task("pose", cost=4, have=40, frozen=6),
    ]
    gains = {
        "cls": al.Geometric(1.13, 0.99),
        "seg": al.Geometric(4.03, 0.97) + al.Logarithmic(3, 30),
        "depth": al.Power(90, 10, 0.4, 30),
        "pose": al.Tabulated([0, 40, 60], [0, 5, 20]),
    }
    return al.Problem(tasks, 630), gains


def add_limits(problem: al.Problem, gains: dict[str, al.Curve]) -> Instance:
    """The same with what takes longer: a cap, labels that come with others, a shared curve."""
    cap = al.Cap("hours", limit=9, use={"seg": "0.25", "cls": "0.01", "pose": "0.1"})
    shared = al.Coupled(al.Logarithmic(2, 20), {"depth": 1, "pose": "0.5"})
    mixed = gains | {"depth": gains["depth"] + shared}
    return al.Problem(problem.tasks, problem.budget, [cap], count_implied=True), mixed


def describe_plan(plan: Plan) -> dict[str, Any]:
    """The parts of a report by which a plan can be questioned."""
    tasks = [
        {"name": task.name, "cost": show_exact(task.cost), "have": task.have,
         "count": plan.counts[task.name], "spend": str(task.price(plan.counts[task.name]))}
        for task in plan.problem.tasks
    ]  # fmt: skip
    money = {"budget": show_exact(plan.problem.budget), "spent": str(plan.spent)}
    return {
        "title": "Street scenes",
        "plan": {"tasks": tasks} | money,
        "what_if": {"instance": ask_what_if(plan), "unit": "points"},
    }


def write_report(plan: Plan, values: dict[str, Any], file: Path) -> Report:
    file.write_text(render(values), encoding="utf-8")
    return Report(file, plan, values)


def report_problem(
    problem: al.Problem, gains: dict[str, al.Curve], file: Path, whole: bool = True
) -> Report:
    """Its page; without what takes long to find unless it is to be `whole`."""
    plan = al.allocate(problem, gains)
    values = describe_plan(plan)
    if whole:
        values["comparison"] = plan.compare(al.baselines(problem)).to_dict()["rows"]
        values["frontier"] = _trace_few(plan)
    return write_report(plan, values, file)


def report_file(problem_file: Path, folder: Path) -> Report:
    """The page of a problem file, without what takes long to find."""
    document = al.read_problem(problem_file)
    assert document.gains is not None
    return report_problem(document.problem, document.gains, folder / "page.html", whole=False)


def _trace_few(plan: Plan) -> dict[str, Any]:
    """As `trace_frontier`, at fewer budgets."""
    budgets = [plan.problem.budget * share / 2 for share in (1, 2, 3)]
    gains = [al.allocate(plan.problem.with_budget(each), plan.gains).value for each in budgets]
    points = [[float(at), gain, None, None] for at, gain in zip(budgets, gains, strict=True)]
    return {"points": points, "budget": show_exact(plan.problem.budget)}


def report_campaign(folder: Path) -> Report:
    """The page of a campaign that was measured, and bought once, with the first edition."""
    campaign = _unpack_campaign(folder)
    values = campaign.report()
    _, proposal = campaign.plan()
    return write_report(proposal.plan, values, folder / "homes.html")


def report_limited_campaign(folder: Path) -> Report:
    """The same campaign after limits were written into its settings, which takes no training."""
    settings = _unpack_campaign(folder).folder / "campaign.toml"
    before, price, style = settings.read_text(encoding="utf-8").split("[[task]]")
    after = [before.replace("budget = 60", "budget = 72.50"), price + PRICE_LIMITS, style]
    settings.write_text("[[task]]".join(after) + STYLE_LIMITS, encoding="utf-8")
    _, proposal = al.Campaign(settings.parent).plan()
    return write_report(proposal.plan, describe_plan(proposal.plan), folder / "homes.html")


PRICE_LIMITS = """
fee = 1.5
most = 25
tiers = [{ after = 6, cost = 1.25 }]
"""
STYLE_LIMITS = """
lot = 2
least = 2
weight = 2
tiers = [{ after = 9, cost = 3 }]
[[cap]]
name = "hours"
limit = 4
use = { price = 0.1, style = 0.2 }
"""


def _unpack_campaign(folder: Path) -> al.Campaign:
    shutil.copy(FIXTURES / "campaign-first-edition.csv", folder / "homes.csv")
    return al.Campaign.unpack(FIXTURES / "campaign-first-edition.zip", folder / "homes")
