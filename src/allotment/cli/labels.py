"""Commands for labels that are there: `export` them, `correct` one, see the `history`."""

from __future__ import annotations

import click

from allotment.cli.campaign import folder_argument, json_option
from allotment.cli.group import say
from allotment.cli.output import print_json


@click.command()
@folder_argument
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="A .csv, .tsv, .parquet or .jsonl file."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("csv", "tsv", "parquet", "jsonl")),
    help="Of FILE. [default: by its ending]",
)
@click.option(
    "--origins",
    type=click.Choice(("file", "columns", "none")),
    default="file",
    show_default=True,
    help="Where it is said what each label came from: in a second file, in columns, or nowhere.",
)
@click.option("--force", is_flag=True, help="Write over files of an earlier export.")
@json_option
def export(
    folder: str, output: str, form: str | None, origins: str, force: bool, as_json: bool
) -> None:
    """The campaign's table with every label merged in.

    A second file lists where each label came from (the start, an order, a correction), when, at
    what price, and which of several counts. Masks go into a folder beside them.

    \b
    Example:  allot export my-campaign -o all.csv
    """
    from allotment.campaign.campaign import Campaign
    from allotment.terminal.labels import show_export
    from allotment.terminal.page import Page

    done = Campaign(folder).export(output, form=form, origins=origins, force=force)
    if as_json:
        print_json(done.to_dict())
    else:
        show_export(Page(), done)


@click.command()
@folder_argument
@click.option("--task", metavar="NAME", help="Of the label.")
@click.option("--instance", metavar="ID", help="That the label is of: its id, or its row.")
@click.option("--value", metavar="VALUE", help="What the label is; a PNG file if it is a mask.")
@click.option(
    "--withdraw", is_flag=True, help="The label is wrong, and nobody knows the right one."
)
@click.option("--from", "path", metavar="FILE", help="Several at once: rows as in a delivery.")
@click.option("--why", metavar="TEXT", default="", help="The reason, for those who ask later.")
@json_option
def correct(
    folder: str,
    task: str | None,
    instance: str | None,
    value: str | None,
    withdraw: bool,
    path: str | None,
    why: str,
    as_json: bool,
) -> None:
    """Correct a label that is wrong, or withdraw it.

    What was said before is kept (allot history), and what was paid stays paid. Estimates that were
    made with the label count no more; a new one knows better.

    \b
    Example:  allot correct my-campaign --task price --instance 17 --value 310
              allot correct my-campaign --task price --instance 17 --withdraw
              allot correct my-campaign --from corrections.csv
    """
    from allotment.campaign.campaign import Campaign
    from allotment.settings.settings import quote
    from allotment.terminal.labels import show_corrected
    from allotment.terminal.page import Page

    campaign = Campaign(folder)
    if path is not None:
        if task or instance or value is not None:
            raise click.UsageError("--from says all of it; leave --task, --instance, --value out.")
        done = campaign.correct_from(path, withdraw=withdraw, why=why)
    elif task is None or instance is None:
        raise click.UsageError("Give --task and --instance, or --from FILE.")
    elif withdraw == (value is not None):
        raise click.UsageError("Give --value, or --withdraw.")
    elif withdraw:
        done = campaign.withdraw(task, instance, why)
    else:
        done = campaign.correct(task, instance, value, why)
    status = campaign.summarise()[1]
    if as_json:
        print_json(done.to_dict() | {"status": status.to_dict()})
    else:
        show_corrected(Page(), done, status, quote(folder))


@click.command()
@folder_argument
@click.option("--task", metavar="NAME", help="Only labels of this task.")
@click.option("--instance", metavar="ID", help="Only labels of this instance.")
@click.option("--all", "everything", is_flag=True, help="Also labels with one answer.")
@json_option
def history(
    folder: str, task: str | None, instance: str | None, everything: bool, as_json: bool
) -> None:
    """Where labels came from, and which of several answers count.

    Without options it shows those that were contradicted, corrected, withdrawn or held back.

    \b
    Example:  allot history my-campaign --task price --instance 17
    """
    from allotment.campaign.campaign import Campaign
    from allotment.campaign.origins import choose_eventful
    from allotment.terminal.labels import show_history
    from allotment.terminal.page import Page

    found = Campaign(folder).history(task, instance)
    if not everything and instance is None:
        found = choose_eventful(found)
    if as_json:
        print_json({"labels": [each.to_dict() for each in found]})
    elif found:
        show_history(Page(), found)
    else:
        say("Nothing was contradicted, corrected, withdrawn or held back; --all shows all labels.")
