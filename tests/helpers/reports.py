"""Values of reports whose pages can be questioned: of a problem with curves, and of a measured
campaign."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import allotment as al
from allotment.advice.questions import ask_what_if, trace_frontier
from allotment.plan import Evidence, Plan
from allotment.reports import render
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


def make_problem() -> tuple[al.Problem, dict[str, al.Curve]]:
    """Street scenes with every kind of limit."""
    tasks = [
        al.Task("cls", cost="1.5", have=300, pool=4000, fee=40),
        al.Task("seg", cost=20, have=300, lot=5, tiers=[(100, 15)], implies=["cls"]),
        al.Task("depth", cost="0.50", have=100, weight=2, least=50, most=3000),
        al.Task("pose", cost=4, have=40, frozen=60),
    ]
    caps = [al.Cap("hours", limit=90, use={"seg": "0.25", "cls": "0.01", "pose": "0.1"})]
    gains = {
        "cls": al.Geometric(1.13, 0.999),
        "seg": al.Geometric(2.03, 0.997) + al.Logarithmic(3, 300),
        "depth": al.Power(900, 100, 0.4, 80),
        "pose": al.Tabulated([0, 40, 60], [0, 50, 200]),
    }
    return al.Problem(tasks, 6300, caps, count_implied=True), gains


def describe_problem(plan: Plan) -> dict[str, Any]:
    """The values of a report of a plan whose curves are given."""
    tasks = [
        {"name": task.name, "cost": str(task.cost), "have": task.have,
         "count": plan.counts[task.name], "spend": str(task.price(plan.counts[task.name]))}
        for task in plan.problem.tasks
    ]  # fmt: skip
    values: dict[str, Any] = {
        "title": "Street scenes",
        "plan": {"tasks": tasks, "budget": str(plan.problem.budget), "spent": str(plan.spent)},
        "comparison": plan.compare(al.baselines(plan.problem)).to_dict()["rows"],
        "what_if": {"instance": ask_what_if(plan), "unit": "points"},
        "frontier": trace_frontier(plan),
    }
    return {key: value for key, value in values.items() if value is not None}


def report_problem(
    problem: al.Problem, gains: dict[str, al.Curve], file: Path, whole: bool = True
) -> Report:
    """Its page; without all that takes long to find unless it is to be `whole`."""
    plan = al.allocate(problem, gains)
    values = describe_problem(plan)
    if not whole:
        values = {key: values[key] for key in ("plan", "what_if")}
    file.write_text(render(values), encoding="utf-8")
    return Report(file, plan, values)


def report_campaign(folder: Path) -> Report:
    """The page of a campaign that was measured, and bought once, with the first edition."""
    shutil.copy(FIXTURES / "campaign-first-edition.csv", folder / "homes.csv")
    campaign = al.Campaign.unpack(FIXTURES / "campaign-first-edition.zip", folder / "homes")
    values = campaign.report()
    _, proposal = campaign.plan()
    file = folder / "homes.html"
    file.write_text(render(values), encoding="utf-8")
    return Report(file, proposal.plan, values)
