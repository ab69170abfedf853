"""The command `demo`: a whole campaign on the built-in scenes, or the paper's published instances
planned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.campaign import note_machine, on_option, stoppable
from allotment.cli.files import EXAMPLES, read_example
from allotment.cli.output import TIMING
from allotment.cli.planning import show_beside
from allotment.meter import Meter, spell

if TYPE_CHECKING:
    from allotment.campaign.campaign import Campaign
    from allotment.campaign.evaluation import Evaluation
    from allotment.settings.settings import Settings
    from allotment.terminal.page import Page

DEMO_TASKS: dict[str, dict[str, Any]] = {
    "classes": {"cost": 1, "have": 60, "metric": "roc_auc"},
    "segmentation": {"cost": 20, "have": 16},
    "depth": {"cost": 6, "have": 24},
    "normals": {"cost": 6, "have": 40},
    "edges": {"cost": 6, "have": 40},
    "keypoints": {"cost": 4, "have": 240},
}
"""costs as in the paper: class labels to masks as 1 to 20, and the five of Taskonomy as 10 to 3 to
3 to 2 to 3. One task is nearly solved, and one learns slowly, as it goes"""
BUDGET = "900"
FULL_DEMO = {"count": 1000, "size": 24, "steps": 120, "trainings": 24, "repeats": 8}
QUICK_DEMO = {"count": 80, "size": 16, "steps": 2, "trainings": 4, "repeats": 2}
QUICK_HAVE, QUICK_BUDGET = 8, "120"
DEMO_BASELINES = ("equal images", "equal budget", "neutral")
"""baselines to retrain on; everything on one task is left to `allot evaluate`, so that these get
more repeats"""
TRIALS = len(DEMO_BASELINES) + 3
"""with the plan, the labels at hand alone, and equal images on the same instances"""
BESIDE_TRAININGS = 4.0
"""seconds for doubts about the estimates, the plan and the report; most of a quick demo"""
DEMO_WORKERS = 2
"""unless asked for: a demo leaves the rest of the machine alone"""


@click.command()
@click.argument("folder", metavar="[FOLDER]", default="allot-demo")
@click.option(
    "--quick",
    is_flag=True,
    help="Hardly train at all: the way in seconds, with figures that mean nothing.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Draws other labels to begin with.",
)
@on_option
@click.option(
    "--workers",
    type=click.IntRange(0),
    metavar="N",
    help="Processes that train. [default: 2, if cores]",
)
@click.option(
    "--paper",
    is_flag=True,
    help="Instead, plan the paper's two published instances; trains nothing.",
)
def demo(
    folder: str, quick: bool, seed: int, on: str | None, workers: int | None, paper: bool
) -> None:
    """A whole campaign on the built-in scenes, in a few minutes.

    Six tasks with a few labels each: it measures what more would be worth, plans, orders, buys,
    retrains on the plan and on what a team would do anyway, and writes a report. Stopped, it goes
    on where it was.

    \b
    Example:  allot demo
              allot demo --paper
    """
    if paper:
        _plan_published()
        return
    with stoppable():
        _run(folder, quick, seed, on, _choose_workers(on) if workers is None else workers)


def _choose_workers(on: str | None) -> int:
    from allotment.runs.runner import find_runner

    return min(find_runner(on).count_workers(), DEMO_WORKERS)


def _run(folder: str, quick: bool, seed: int, on: str | None, workers: int) -> None:
    from allotment.terminal.page import Page

    form, page = QUICK_DEMO if quick else FULL_DEMO, Page()
    page.title("1. Six tasks, and a few labels of each")
    campaign = _open(folder, write_settings(form, quick, seed), on)
    note_machine(campaign)
    _introduce(page, campaign, quick)
    each = _measure(page, campaign, form["repeats"], workers)
    _buy(page, campaign)
    _judge(page, campaign, form["repeats"], workers, each)
    page.title("5. Yours")
    page.text(f"The report of all this is {_report(campaign)}; open it in a browser.")
    page.text("A campaign with data of your own begins with:")
    page.text(
        "  allot init my-campaign --root table.csv --targets a,b --cost a=1 --cost b=20"
        " --budget 500"
    )


def write_settings(form: dict[str, int], quick: bool, seed: int) -> str:
    from allotment.campaign.starting import settle_machine
    from allotment.settings.template import write_template

    data: dict[str, Any] = {
        "name": "scenes",
        "count": form["count"],
        "size": form["size"],
        "seed": 0,
        "by_colour": True,
    }
    tasks = {
        name: keys | ({"have": QUICK_HAVE} if quick else {}) for name, keys in DEMO_TASKS.items()
    }
    training = {"network": "usual", "steps": form["steps"], **settle_machine()}
    budget = QUICK_BUDGET if quick else BUDGET
    return write_template(data, tasks, budget, "response", training, form["trainings"], seed)


def _open(folder: str, text: str, on: str | None) -> Campaign:
    """The demo in this folder, begun if it is not; nobody's own campaign is ordered for."""
    from allotment.campaign.campaign import Campaign
    from allotment.errors import InputError, Mistake
    from allotment.settings.settings import SETTINGS_FILE, parse_settings, read_settings

    campaign = Campaign(folder, on=on)
    if not (Path(folder) / SETTINGS_FILE).exists():
        Campaign.create(folder, text)
    elif _outline(read_settings(Path(folder))[0]) != _outline(parse_settings(text)):
        what = (
            "is another campaign, or a demo with another --quick or --seed; name a new folder:"
            " allot demo FOLDER"
        )
        raise InputError([Mistake(folder, what)])
    return campaign


def _outline(settings: Settings) -> tuple[Any, ...]:
    """What tells the demo from other campaigns; a budget or a price that somebody has changed does
    not."""
    return (
        settings.data,
        settings.names,
        settings.trainings,
        settings.seed,
        settings.training.get("steps"),
    )


def _introduce(page: Page, campaign: Campaign, quick: bool) -> None:
    from allotment.terminal.campaigns import show_tasks

    status = campaign.summarise()[1]
    show_tasks(page, status)
    page.text()
    page.text(
        f"There is {status.budget} to spend. A quarter of the pictures is kept for the test at the"
        " end."
    )
    if quick:
        page.text("With --quick hardly anything is trained: look at the way, not at the figures.")
    page.text()


def _measure(page: Page, campaign: Campaign, repeats: int, workers: int) -> float | None:
    """Estimates, unless everything is bought already; the seconds for a training, if they were
    timed."""
    from allotment.terminal.campaigns import show_diagnosis

    page.title("2. What is one more label of each worth?")
    state = campaign.look()
    if not state.is_affordable:
        page.text("Measured and bought already.")
        page.text()
        return None
    seconds = each = None
    if not campaign.is_begun(state):
        with Meter(TIMING):
            price = campaign.price(state, workers=workers)
        seconds = price.seconds
        each = seconds / price.trainings
        page.text(str(price))
        whole = seconds + each * repeats * TRIALS + BESIDE_TRAININGS
        page.text(
            f"Processes that train: {workers or 'this one'}. With the test at the end the demo"
            f" takes {spell(whole)}."
        )
    with Meter("trainings", seconds) as meter:
        measured = campaign.estimate(workers, meter)
    if measured.diagnosis is not None:
        show_diagnosis(page, measured.diagnosis)
    page.text()
    return each


def _buy(page: Page, campaign: Campaign) -> None:
    """Plan, order all of it, and take the labels from the scenes themselves."""
    from allotment.campaign.summary import tell_outlook
    from allotment.terminal.plans import show_plan

    page.title("3. The plan, ordered and bought")
    if campaign.look().is_affordable:
        _, proposal = campaign.plan()
        show_plan(page, proposal.plan, neutral=False)
        page.text(f"Expected: {tell_outlook(proposal.plan)}.")
        page.text()
        ordered = campaign.order(everything=True)
        page.text(
            f"Order {ordered.value.number}: {len(ordered.order)} labels, listed in {ordered.place}."
        )
    if campaign.look().open:
        intake = campaign.buy()
        page.text(
            f"{intake.delivery.new} labels came back from the scenes themselves, which know them"
            " all."
        )
    page.text(f"Budget {campaign.look().tell_money()}.")
    page.text()


def _judge(page: Page, campaign: Campaign, repeats: int, workers: int, each: float | None) -> None:
    """Retrain on what was bought and on what one might have bought instead."""
    page.title("4. What it was worth")
    page.text(
        f"Retrained on this plan and on what one might do instead, {repeats} times each, with other"
        " draws."
    )
    with Meter("trainings", None if each is None else each * repeats * TRIALS) as meter:
        _, found = campaign.try_plans(
            repeats=repeats, workers=workers, progress=meter, beside=DEMO_BASELINES
        )
    page.text()
    _show_gains(page, found)


def _show_gains(page: Page, found: Evaluation) -> None:
    """The table of gains with tasks below each other, so that it fits on any terminal; then what
    can be told."""
    from allotment.campaign.evaluation import LEVEL, SAME_IMAGES
    from allotment.terminal.campaigns import judge
    from allotment.terminal.page import TextColumn

    rows = found.rows()
    heads = TextColumn("gain in %", [*found.tasks, "D_T"], "word")
    plans = [
        TextColumn(
            row["name"],
            [_say(pair, found.repeats) for pair in (*row["gains"].values(), row["total"])],
        )
        for row in rows
    ]
    page.tables(heads, plans)
    page.text(
        "Gains over the labels at hand, on pictures kept for the test: mean ± standard error over"
        f" {found.repeats} repeats. D_T is the mean over tasks."
        + (
            f" ({SAME_IMAGES}: all tasks on the same instances)"
            if any(row["name"] == SAME_IMAGES for row in rows)
            else ""
        )
    )
    page.text()
    spans = [(row["name"], row["ahead"]) for row in rows if row["ahead"] is not None]
    page.table(
        [
            TextColumn("this plan is ahead of", [name for name, _ in spans], "word"),
            TextColumn("by D_T", [f"{span[0]:+.2f}" for _, span in spans]),
            TextColumn(
                f"{LEVEL * 100:.0f} % sure",
                [f"{span[1]:+.2f} to {span[2]:+.2f}" for _, span in spans],
            ),
        ]
    )
    page.text()
    page.text(judge(rows, found.repeats))
    page.text()


def _say(pair: Sequence[float | None], repeats: int) -> str:
    """A mean with its standard error."""
    mean, deviation = pair
    if mean is None:
        return "-"
    return (
        f"{mean:+.1f}"
        if deviation is None
        else f"{mean:+.1f} ±{deviation / math.sqrt(repeats):.1f}"
    )


def _report(campaign: Campaign) -> Path:
    from allotment.reports.page import write_page

    return write_page(campaign.report(), campaign.folder / "report.html")


def _plan_published() -> None:
    import allotment as al
    from allotment.problem_file import parse_problem
    from allotment.terminal.page import Page
    from allotment.terminal.plans import show_plan

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
