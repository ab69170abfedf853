"""The command `learners`: which learner suits a campaign's table."""

from __future__ import annotations

import click

from allotment.cli.output import READING, print_json
from allotment.meter import Meter, spell

LOADING, PER_TASK = 4.0, 1.5
"""seconds that it takes to compare learners on an idle machine: to load their libraries, and for
each task"""


def wait_for_contest(tasks: int) -> Meter:
    """What is shown while learners are compared, with how long that takes."""
    seconds = LOADING + PER_TASK * tasks
    click.echo(f"Training each learner once on the labels at hand, {spell(seconds)}.", err=True)
    return Meter("comparing learners", seconds)


@click.command()
@click.argument("folder", metavar="CAMPAIGN")
@click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
def learners(folder: str, as_json: bool) -> None:
    """Compare learners on the labels at hand: perceptrons, gradient boosting, straight lines.

    Each is trained once, which takes seconds, and nothing is changed.

    \b
    Example:  allot learners my-campaign
    """
    from allotment.campaign.campaign import Campaign
    from allotment.campaign.choosing import choose_learner
    from allotment.terminal.contests import show_contest

    with Meter(READING):
        state = Campaign(folder).look()
    with wait_for_contest(len(state.settings.tasks)) as meter:
        found = choose_learner(state.settings, state.stock, meter)
    if as_json:
        print_json(found.to_dict())
    else:
        show_contest(found, state.settings.learner)
