"""The command `loss-weights`: how much each task's loss should count."""

from __future__ import annotations

import click

from allotment.cli.campaign import folder_argument, json_option, learner_option
from allotment.cli.output import READING, print_json
from allotment.meter import Meter


@click.command("loss-weights")
@folder_argument
@click.option(
    "--times",
    "factors",
    type=float,
    multiple=True,
    metavar="X",
    help="Times a task's loss weight, one task at a time. [default: 0.3 and 3]",
)
@click.option("--write", is_flag=True, help="Write what is advised into campaign.toml.")
@learner_option
@json_option
def loss_weights(
    folder: str, factors: tuple[float, ...], write: bool, learner: str | None, as_json: bool
) -> None:
    """Try other loss weights on the labels at hand, before estimating.

    Each task's weight is changed in turn; every part of the labels scores a training on the others.
    Nothing is changed unless you say --write.

    \b
    Example:  allot loss-weights my-campaign --times 0.1 --times 10
    """
    from allotment.advice.loss_weights import LOSS_FACTORS
    from allotment.campaign.campaign import Campaign
    from allotment.settings.settings import quote
    from allotment.terminal.loss_weights import show_sweep
    from allotment.terminal.page import Page

    campaign = Campaign(folder, learner)
    with Meter(READING):
        campaign.look()
    with Meter("trainings") as meter:
        found = campaign.sweep_loss_weights(factors or LOSS_FACTORS, meter, write)
    if as_json:
        print_json(found.to_dict() | {"written": bool(write and found.changed)})
    else:
        show_sweep(Page(), found, quote(folder), write)
