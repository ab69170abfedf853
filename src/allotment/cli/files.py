"""Commands around problem files: `check` one or a campaign, write an `example`."""

from __future__ import annotations

import click

from allotment.cli.group import BAD_INPUT, INFEASIBLE, say
from allotment.cli.inputs import is_campaign, locate, name_file, read_document

EXAMPLES = {
    "voc": "PASCAL VOC: class labels at 1, segmentation masks at 20",
    "taskonomy": "Taskonomy: five tasks on indoor scenes",
}


@click.command()
@click.argument("path", metavar="PROBLEM.toml")
@click.pass_context
def check(ctx: click.Context, path: str) -> None:
    """Every mistake in a problem file or a campaign at once, with its line.

    \b
    Example:  allot check problem.toml
              allot check my-campaign
    """
    if is_campaign(path):
        _check_campaign(ctx, path)
        return
    from allotment.errors import Infeasible, InputError
    from allotment.plan import check_limits
    from allotment.solver.model import split_gains
    from allotment.terminal.plans import describe

    try:
        document = read_document(path)
        if document.gains is not None:
            split_gains(document.problem, document.gains)  # curves that can't be added up
        check_limits(document.problem)
    except InputError as error:
        say("\n".join(locate(error, path)))
        ctx.exit(BAD_INPUT)
    except Infeasible as error:
        say("\n".join(f"{name_file(path)}: {clash}" for clash in error.clashes))
        ctx.exit(INFEASIBLE)
    say(f"{name_file(path)} is fine: {describe(document.problem, document.gains)}")


def _check_campaign(ctx: click.Context, path: str) -> None:
    """Settings, data, store and limits."""
    from allotment.campaign.campaign import Campaign
    from allotment.errors import Infeasible, InputError
    from allotment.plan import check_limits
    from allotment.terminal.campaigns import show_tasks
    from allotment.terminal.page import Page

    file = f"{path.rstrip('/')}/campaign.toml"
    try:
        state, status = Campaign(path).summarise()
        state.check_begun()
        if state.is_affordable:
            check_limits(state.rest())
    except InputError as error:
        say(str(error))
        ctx.exit(BAD_INPUT)
    except Infeasible as error:
        say("\n".join(f"{file}: {clash}" for clash in error.clashes))
        ctx.exit(INFEASIBLE)
    page = Page()
    show_tasks(page, status)
    page.text()
    for note in state.stock.data.notes:
        page.text(f"Note: {note}.")
    for note in status.notes:
        page.text(f"Note: {note}.")
    page.text(f"{file} is fine. Next: {status.next}")


@click.command()
@click.argument("name", type=click.Choice(list(EXAMPLES)), default="voc")
def example(name: str) -> None:
    """A commented problem file to start from.

    \b
    Example:  allot example > problem.toml
    """
    click.echo(read_example(name), nl=False)


def read_example(name: str) -> str:
    from importlib.resources import files

    return (files("allotment") / "examples" / f"{name}.toml").read_text(encoding="utf-8")
