"""The command `demo`: a whole campaign on the built-in scenes, or the paper's published instances planned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.campaign import stoppable
from allotment.cli.files import EXAMPLES, read_example
from allotment.cli.planning import show_beside
from allotment.cli.progress import Meter

if TYPE_CHECKING:
    from allotment.campaign.campaign import Campaign
    from allotment.tables.page import Page

TASKS = {
    "classes": {"cost": 1, "have": 40},
    "segmentation": {"cost": 20, "have": 10},
    "depth": {"cost": 6, "have": 20},
    "normals": {"cost": 6, "have": 12},
    "edges": {"cost": 6, "have": 16},
    "keypoints": {"cost": 4, "have": 30},
}
"""costs as in the paper: class labels to masks as 1 to 20, and the five of Taskonomy as 10 to 3 to 3 to 2 to 3"""
BUDGET = "900"
FULL = {"count": 800, "size": 24, "steps": 150, "trainings": 24, "repeats": 4}
QUICK = {"count": 80, "size": 16, "steps": 2, "trainings": 4, "repeats": 2}
QUICK_HAVE, QUICK_BUDGET = 8, "120"


@click.command()
@click.argument("folder", metavar="[FOLDER]", default="allot-demo")
@click.option("--quick", is_flag=True, help="Hardly train at all: the way in seconds, with figures that mean nothing.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes that train. [default: one a core]")
@click.option("--paper", is_flag=True, help="Instead, plan the paper's two published instances; trains nothing.")
def demo(folder: str, quick: bool, workers: int | None, paper: bool) -> None:
    """A whole campaign on the built-in scenes, in a few minutes.

    Six tasks with a few labels each: it measures what more would be worth, plans, orders, buys, retrains on the plan
    and on what a team would do anyway, and writes a report. Stopped, it goes on where it was.

    \b
    Example:  allot demo
              allot demo --paper
    """
    if paper:
        _plan_published()
        return
    with stoppable(f"allot demo {folder}"):
        _run(folder, QUICK if quick else FULL, quick, workers)


def _run(folder: str, form: dict[str, int], quick: bool, workers: int | None) -> None:
    from allotment.campaign.campaign import Campaign
    from allotment.reports.page import render
    from allotment.tables.campaigns import show_evaluation, show_tasks
    from allotment.tables.page import Page

    page = Page()
    page.title("1. Six tasks, and a few labels of each")
    campaign = Campaign(folder) if (Path(folder) / "campaign.toml").exists() else _begin(folder, form, quick)
    show_tasks(page, campaign.summarise()[1])
    page.text()
    _measure(page, campaign, workers)
    _buy(page, campaign)
    page.title("4. What it was worth: retrained on this plan and on what one might do instead")
    with Meter("trainings") as meter:
        _, found = campaign.evaluate(repeats=form["repeats"], workers=workers, progress=meter)
    show_evaluation(page, found)
    page.text()
    path = Path(folder) / "report.html"
    path.write_text(render(campaign.report()), encoding="utf-8")
    page.title("5. Yours")
    page.text(f"The report of all this is {path}; open it in a browser.")
    page.text("A campaign with data of your own begins with:")
    page.text("  allot init my-campaign --root table.csv --targets a,b --cost a=1 --cost b=20 --budget 500")


def _begin(folder: str, form: dict[str, int], quick: bool) -> Campaign:
    from allotment.campaign.campaign import Campaign
    from allotment.campaign.starting import settle_machine
    from allotment.campaign.template import write_template

    data: dict[str, Any] = {"name": "scenes", "count": form["count"], "size": form["size"], "seed": 0}
    tasks = {name: keys | ({"have": QUICK_HAVE} if quick else {}) for name, keys in TASKS.items()}
    training = {"network": "usual", "steps": form["steps"], **settle_machine()}
    budget = QUICK_BUDGET if quick else BUDGET
    text = write_template(data, tasks, budget, "response", training, form["trainings"])
    return Campaign.create(folder, text)


def _measure(page: Page, campaign: Campaign, workers: int | None) -> None:
    """Estimates, unless everything is bought already."""
    from allotment.runs.local import default_workers

    page.title("2. What is one more label of each worth?")
    state = campaign.look()
    if not state.is_affordable:
        page.text("Measured and bought already.")
        page.text()
        return
    seconds = None
    if not campaign.is_begun(state):
        price = campaign.price(state)
        page.text(str(price))
        seconds = price.seconds / (workers or default_workers())
    with Meter("trainings", seconds) as meter:
        measured = campaign.estimate(workers, meter)
    if measured.diagnosis is not None:
        for line in str(measured.diagnosis).splitlines():
            page.text(line, indent="  " if line.startswith("-") else "")
    page.text()


def _buy(page: Page, campaign: Campaign) -> None:
    """Plan, order all of it, and take the labels from the scenes themselves."""
    from allotment.tables.plans import show_plan

    page.title("3. The plan, ordered and bought")
    if campaign.look().is_affordable:
        _, proposal = campaign.plan()
        show_plan(page, proposal.plan, neutral=False)
        page.text()
        ordered = campaign.order(everything=True)
        page.text(f"Order {ordered.value.number}: {len(ordered.order)} labels, listed in {ordered.path}.")
    if campaign.look().open:
        intake = campaign.buy()
        page.text(f"{intake.delivery.new} labels came back from the scenes themselves, which know them all.")
    page.text(f"Budget {campaign.look().tell_money()}.")
    page.text()


def _plan_published() -> None:
    import allotment as al
    from allotment.document import parse_problem
    from allotment.tables.page import Page
    from allotment.tables.plans import show_plan

    page = Page()
    for name, title in EXAMPLES.items():
        document = parse_problem(read_example(name))
        best = al.allocate(document.problem, document.gains or {})
        page.title(title)
        page.text()
        show_plan(page, best, neutral=False)
        show_beside(page, best, neutral=False)
        page.text()
    page.title("Your own")
    page.text("  allot example > problem.toml     a commented file: put in your tasks and prices")
    page.text("  allot plan problem.toml          what to buy")
