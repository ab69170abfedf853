"""Commands about the model of the labels at hand: `train`, `predict`."""

from __future__ import annotations

import click

from allotment.cli.campaign import folder_argument, json_option, learner_option
from allotment.cli.group import INTERRUPTED, say
from allotment.cli.output import TIMING, print_json
from allotment.meter import Meter, spell


@click.command()
@folder_argument
@click.option(
    "-o", "--output", metavar="FOLDER", help="A new folder. [default: model in the campaign]"
)
@learner_option
@json_option
def train(folder: str, output: str | None, learner: str | None, as_json: bool) -> None:
    """Train the model of all labels at hand, and save it with a card.

    The folder has all that it takes to predict elsewhere. Nothing in it can be run.

    \b
    Example:  allot train my-campaign -o model
    """
    from pathlib import Path

    from allotment.campaign.campaign import Campaign
    from allotment.campaign.summary import MODEL_FOLDER
    from allotment.files import check_free
    from allotment.formatting import several
    from allotment.learners.choice import is_stepless
    from allotment.models.inputs import tell_source
    from allotment.settings.settings import quote

    campaign = Campaign(folder, learner)
    click.get_current_context().with_resource(campaign.once())
    place = Path(output) if output is not None else Path(folder) / MODEL_FOLDER
    counts = campaign.look().stock.have
    check_free(place)
    have = ", ".join(f"{task} {count}" for task, count in counts.items())
    say(f"Training on {several(sum(counts.values()), 'label')} ({have}).", err=True)
    try:
        with Meter(TIMING):
            seconds = campaign.time_model()
        if seconds:
            say(f"That takes {spell(seconds)}.", err=True)
        with Meter("steps", seconds or None) as meter:
            model = campaign.train(place, meter)
    except KeyboardInterrupt:
        say("\nStopped; nothing is written.", err=True)
        raise SystemExit(INTERRUPTED) from None
    if as_json:
        print_json({"model": str(place), "card": model.card.to_dict()})
        return
    say(f"{place} is written; {place / 'README.md'} says what it was trained on.")
    if is_stepless(model.learner):
        say("It holds the rows and labels that it was fitted to: pass it on as you would these.")
    if model.card.scores is None:
        now = " --now" if campaign.look().stock.oracle else ""
        how = f"allot evaluate {quote(folder)}{now}"
        say(f"How good models of these labels are was not measured yet: {how}")
    else:
        for score in model.card.scores.scores:
            say(f"Cross-validated: {score}.")
    say(f"Next: allot predict {quote(place)} --root {tell_source(model.inputs)}")


@click.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--root", required=True, metavar="PATH", help="A table, or a folder of pictures, to predict."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A new .csv or .jsonl file; a new folder, where answers are pictures. [default: CSV here]",
)
@click.option("--probabilities", is_flag=True, help="Also a column for each class.")
@click.option(
    "--delimiter", metavar="CHARACTER", help="Between cells of a CSV file. [default: by its name]"
)
@click.option(
    "--learner", metavar="FILE.py:FUNCTION", help="Where code of your own trained the model."
)
def predict(
    model: str,
    root: str,
    output: str | None,
    probabilities: bool,
    delimiter: str | None,
    learner: str | None,
) -> None:
    """What a trained model says of a table or of pictures.

    \b
    Example:  allot predict model --root new-homes.csv -o predictions.csv
    """
    from pathlib import Path

    from allotment.data.dataset import PIXEL_KINDS
    from allotment.errors import InputError, Mistake
    from allotment.formatting import several
    from allotment.models.model import load_model
    from allotment.models.predictions import check_output

    opened = load_model(model)
    if output is not None:
        check_output(Path(output), opened.targets)
    elif any(target.kind in PIXEL_KINDS for target in opened.targets):
        what = "is missing; some answers are pictures: name a new folder for them"
        raise InputError([Mistake("-o", what)])
    with Meter("predicted") as meter:
        found = opened.predict(root, delimiter=delimiter, learner=learner, progress=meter)
    for note in found.notes:
        say(f"note: {note}.", err=True)
    if output is None:
        click.echo(found.encode(probabilities).decode("utf-8-sig").replace("\r\n", "\n"), nl=False)
        return
    path = found.write(output, probabilities)
    tasks = ", ".join(found.targets)
    say(f"{path} is written: {tasks} of {several(len(found), found.head)}.")
