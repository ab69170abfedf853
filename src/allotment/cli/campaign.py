"""Commands of a campaign: `init`, `estimate`, `backtest`, `order`, `ingest`, `evaluate`, `status`,
`report`, `serve`, `verify`, `restore`, `pack`, `unpack`."""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allotment.cli.group import BAD_INPUT, INTERRUPTED, say
from allotment.cli.learners import wait_for_contest
from allotment.cli.output import READING, TIMING, print_json
from allotment.cli.sources import SourceName, read_settings, set_option
from allotment.meter import Meter, spell

if TYPE_CHECKING:  # at run time each command loads what it needs, so that --help waits for nothing
    from allotment.campaign.campaign import Campaign
    from allotment.campaign.starting import Started
    from allotment.errors import Undecided

folder_argument = click.argument("folder", metavar="CAMPAIGN")
json_option = click.option("--json", "as_json", is_flag=True, help="JSON, for machines.")
learner_option = click.option(
    "--learner",
    metavar="NAME|FILE.py:FUNCTION",
    help="What trains: sklearn:NAME, an installed one, or code of your own; also ALLOT_LEARNER.",
)
on_option = click.option(
    "--on",
    metavar="NAME",
    help="Where trainings run: ray, ray://HOST:PORT, slurm. [default: processes of this machine]",
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(0),
    metavar="N",
    help="Processes that train; 0: only this one. [default: cores]",
)


option_option = click.option(
    "--option",
    "estimates",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of the method, as below [estimates] in campaign.toml: --option ahead=5.",
)


class _MethodOption(click.Option):
    """Says what each method does, installed ones too; that takes a moment, so only in its help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from allotment.estimates.method import describe_choices

        record = super().get_help_record(ctx)
        if record is None:
            return None
        ways = "; ".join(f"{name} ({about})" for name, about in describe_choices().items())
        return record[0], f"{record[1]} One of: {ways}."


@click.command()
@folder_argument
@click.option(
    "--data",
    type=SourceName(),
    default="table",
    show_default=True,
    help="What it is about; allot data lists all there is.",
)
@click.option("--root", metavar="PATH", help="The table's file, or the folder of the images.")
@click.option(
    "--targets",
    metavar="A,B",
    help="What is to be predicted: columns of the table, or tasks of the data.",
)
@click.option("--target", "single", multiple=True, metavar="NAME", help="The same, one at a time.")
@click.option(
    "--cost", "costs", multiple=True, metavar="NAME=PRICE", help="The price of one label."
)
@click.option(
    "--have",
    multiple=True,
    metavar="NAME=N",
    help="Labels to begin with, of data that have them all.",
)
@click.option("--budget", metavar="MONEY", help="All there is to spend on labels.")
@click.option(
    "--method",
    cls=_MethodOption,
    default="response",
    show_default=True,
    help="How worth is measured.",
)
@option_option
@click.option(
    "--id",
    "id_",
    metavar="COLUMN",
    help="Names of the rows. [default: a column called id, or their numbers]",
)
@click.option("--group", metavar="COLUMN", help="Rows of one group stay together.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=WHAT",
    help="What a column of a table is: numeric, categorical, text, image, date, ignore, id, group.",
)
@click.option(
    "--encoding", metavar="NAME", help="Of a CSV file, such as cp1252. [default: by its bytes]"
)
@click.option(
    "--decimal", metavar="SIGN", help="Of a CSV file's numbers, . or ,  [default: by its cells]"
)
@click.option("--sheet", metavar="NAME", help="Of a workbook (xlsx). [default: the first]")
@click.option(
    "--delimiter", metavar="CHARACTER", help="Between cells of a CSV file. [default: by its name]"
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME=KIND",
    help="What a target is, if guessed wrong.",
)
@click.option("--classes", multiple=True, metavar="NAME=A|B", help="All classes of a target.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME=METRIC",
    help="How a target is scored; of several the first is planned with.",
)
@set_option
@click.option(
    "--network",
    default="usual",
    show_default=True,
    help="Or a set-up: voc-paper, voc-small, taskonomy-paper, taskonomy-small.",
)
@click.option("--weights", metavar="FILE", help="Trained weights for the network's backbone.")
@click.option(
    "--from-scratch", is_flag=True, help="Let such a network start without trained weights."
)
@click.option(
    "--sharing",
    default="all",
    show_default=True,
    help="What tasks share of a network for images: all, or adapters (with some of their own).",
)
@click.option("--steps", type=click.IntRange(1), metavar="N", help="Of one training.")
@click.option(
    "--learner",
    metavar="NAME",
    help="What trains: sklearn:HistGradientBoosting, ..., or auto: the best on the labels at hand.",
)
def init(folder: str, **given: Any) -> None:
    """Begin a campaign: a folder with commented settings.

    \b
    Example:  allot init my-campaign --root homes.csv --targets price,style \\
                --cost price=1 --cost style=20 --budget 500
              allot init my-campaign --data scenes
    """
    from allotment.campaign.intake import tell_guessed
    from allotment.campaign.starting import tell_metrics
    from allotment.errors import Undecided
    from allotment.terminal.campaigns import show_tasks
    from allotment.terminal.datasets import show_columns
    from allotment.terminal.page import Page

    for key, option in _PAIRED.items():
        given[key] = pair_options(f"--{option}", given[key])
    given["metrics"] = _read_lists("--metric", given["metrics"])
    given["options"] = read_settings(given["options"])
    given["estimates"] = _read_options(given["estimates"])
    named = [*(given.pop("targets") or "").split(","), *given.pop("single")]
    targets = [name.strip() for name in named if name.strip()]
    given |= {"targets": targets, "id": given.pop("id_")}
    try:
        started = _begin(folder, given)
    except Undecided as error:
        if not is_terminal():
            raise
        given["kinds"] |= _ask_kinds(error)
        started = _begin(folder, given)
    state, status = started.campaign.summarise(started.files)
    page = Page()
    page.text(
        f"{started.campaign.folder / 'campaign.toml'} is written; every key in it has a comment."
    )
    page.text()
    show_tasks(page, status)
    page.text()
    show_columns(page, state.stock.data, state.settings.data)
    page.text()
    for note in started.notes:
        page.text(f"Note: {note}.")
    for line in tell_guessed(state):
        page.text(line)
    page.text(tell_metrics(state))
    page.text(f"Next: {status.next}")


def _begin(folder: str, given: dict[str, Any]) -> Started:
    """A new campaign, with how long it takes where learners are compared for it."""
    from allotment.campaign.starting import begin
    from allotment.learners.choice import AUTO

    if given["learner"] != AUTO:
        with Meter("reading the data"):
            return begin(folder, **given)
    with wait_for_contest(len(given["targets"])):
        return begin(folder, **given)


def is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask_kinds(error: Undecided) -> dict[str, str]:
    """The kinds of tasks as somebody at a terminal says them."""
    kinds = {}
    for name, mistake in zip(error.tasks, error.mistakes, strict=True):
        say(f"{mistake}")
        choice = click.Choice(["regression", "classification"])
        kinds[name] = click.prompt(f"{name} is a", type=choice)
    return kinds


def _read_options(texts: Iterable[str]) -> dict[str, Any]:
    """Options of a method, `KEY=VALUE` each."""
    from allotment.estimates.options import read_option

    return {key: read_option(text) for key, text in pair_options("--option", texts).items()}


_PAIRED = {
    "costs": "cost",
    "have": "have",
    "kinds": "kind",
    "classes": "classes",
    "columns": "column",
}


@click.command()
@folder_argument
@learner_option
@on_option
@workers_option
@click.option(
    "--hourly",
    metavar="MONEY",
    help="What an hour of this machine costs, to set beside the budget.",
)
@click.option("--dry-run", is_flag=True, help="Only say what it will take.")
@option_option
@json_option
def estimate(
    folder: str,
    learner: str | None,
    on: str | None,
    workers: int | None,
    hourly: str | None,
    dry_run: bool,
    estimates: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure what labels are worth, by training on those at hand.

    It can be stopped at any time: what is done is kept, and the same command goes on from there.

    \b
    Example:  allot estimate my-campaign
              allot estimate my-campaign --option ahead=5 --option validation=0.3
    """
    from allotment.settings.settings import quote
    from allotment.terminal.campaigns import show_measured
    from allotment.terminal.page import Page

    given = _read_options(estimates)
    campaign = _enter(folder, "estimate", learner, on)
    note_machine(campaign)  # which is refused at once if somebody else is writing
    with stoppable():
        with Meter(READING):
            seconds, state = None, campaign.look().with_options(given)
        if state.unsaid:  # while it can be said before anything is trained anew
            say(f"Note: {state.unsaid}.", err=as_json)
        if dry_run or not campaign.is_begun(state):
            with Meter(TIMING):
                price = campaign.price(state, hourly, workers)
            seconds = price.seconds
            if dry_run and as_json:
                print_json(price.to_dict())
            else:
                say(f"{price}", err=as_json)
            if dry_run:
                return
        with Meter("trainings", seconds) as meter:
            measured = campaign.estimate(workers, meter, given)
    if as_json:
        print_json(measured.to_dict())
    else:
        show_measured(Page(), measured, quote(folder))


@click.command()
@folder_argument
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Quarters of the labels to plan from.",
)
@learner_option
@json_option
def backtest(folder: str, repeats: int, learner: str | None, as_json: bool) -> None:
    """What the method would have brought already, on the labels at hand.

    It plans from a quarter of them and buys from the rest, beside equal budget and neutral. Nothing
    of it is kept.

    \b
    Example:  allot backtest my-campaign --repeats 2
    """
    with Meter("repeats") as meter:
        found = _open(folder, learner).backtest(repeats, meter)
    if as_json:
        print_json(found.to_dict())
    else:
        say(str(found))


@click.command()
@folder_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A .csv or .jsonl file. [default: order-N.csv in the campaign]",
)
@click.option(
    "--to", "connector", metavar="NAME", help="What writes the order. [default: by FILE's name]"
)
@click.option("--all", "everything", is_flag=True, help="All of the plan, not only its first part.")
@click.option(
    "--together", is_flag=True, help="The same instances for all tasks. [default: different ones]"
)
@click.option(
    "--strategy",
    metavar="NAME",
    help="How instances are chosen. [default: as campaign.toml says, or random]",
)
@click.option(
    "--stop",
    is_flag=True,
    help="Only what brings more than it costs, by point_worth in campaign.toml.",
)
@click.option("--more", is_flag=True, help="Even if an earlier order is not back yet.")
@click.option(
    "--cancel", type=int, metavar="NUMBER", help="Give up what did not come back of an order."
)
@json_option
def order(
    folder: str,
    output: str | None,
    connector: str | None,
    everything: bool,
    together: bool,
    strategy: str | None,
    stop: bool,
    more: bool,
    cancel: int | None,
    as_json: bool,
) -> None:
    """Order labels: a sheet of instances, to be filled in.

    \b
    Example:  allot order my-campaign -o order.csv
    """
    from allotment.settings.settings import quote
    from allotment.terminal.campaigns import show_order
    from allotment.terminal.page import Page

    campaign = _enter(folder, "order")
    if cancel is not None:
        given_up = campaign.cancel(cancel)
        state, found = campaign.summarise()
        done = f"What was open of order {cancel} is given up."
        if not given_up:
            done = f"Nothing of order {cancel} is open, so nothing is given up."
        if as_json:
            about = {"cancelled": cancel, "labels": given_up, "next": found.next}
            print_json(about | {"notes": list(state.clashes)})
        elif state.clashes:
            say(done)
            _tell_clashes(state.clashes)
            say(f"Next: {found.next}")
        else:
            say(f"{done} Next: {found.next}")
        return
    ordered = campaign.order(
        output,
        everything=everything,
        together=together,
        more=more,
        strategy=strategy,
        connector=connector,
        stop=stop,
    )
    if as_json:
        print_json(ordered.to_dict())
    else:
        show_order(Page(), ordered, campaign.look(), quote(folder))


@click.command()
@folder_argument
@click.argument("path", metavar="FILE", required=False)
@click.option(
    "--from", "connector", metavar="NAME", help="What reads the labels. [default: by FILE's name]"
)
@click.option("--task", metavar="NAME", help="Of the labels, where the file does not say.")
@click.option(
    "--id", "id_", metavar="COLUMN", help="That names the instance. [default: instance or id]"
)
@click.option(
    "--oracle",
    is_flag=True,
    help="Take the labels on order from the data set itself, if it has them.",
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Take what looks odd, too: of FILE, or all that was held back.",
)
@json_option
@click.pass_context
def ingest(
    ctx: click.Context,
    folder: str,
    path: str | None,
    connector: str | None,
    task: str | None,
    id_: str | None,
    oracle: bool,
    confirm: bool,
    as_json: bool,
) -> None:
    """Take labels back: CSV, JSONL, or PNG masks in a folder or zip.

    Everything that can be used goes in; everything else is listed in a file, with the reason. Where
    nothing can be used at all, it ends with exit code 2. Labels that look odd beside those at hand
    wait until they are confirmed.

    \b
    Example:  allot ingest my-campaign order.csv
              allot ingest my-campaign --confirm
    """
    from allotment.settings.settings import quote
    from allotment.terminal.campaigns import show_intake
    from allotment.terminal.page import Page

    if (oracle and (path is not None or confirm)) or not (oracle or path or confirm):
        raise click.UsageError("Give the FILE with the labels, or --oracle, or --confirm.")
    campaign = _enter(folder, "ingest")
    if path is not None:
        intake = campaign.ingest(
            path, task=task, id_column=id_, connector=connector, confirm=confirm
        )
    else:
        intake = campaign.buy() if oracle else campaign.confirm()
    state, status = campaign.summarise()
    if as_json:
        print_json(intake.to_dict() | {"status": status.to_dict()})
    else:
        _tell_clashes(state.clashes)
        show_intake(Page(), intake, status, quote(folder))
    if intake.is_useless:
        ctx.exit(BAD_INPUT)


@click.command()
@folder_argument
@click.option("--now", is_flag=True, help="The model of the labels at hand, whatever the data.")
@click.option(
    "--plan", "plans", multiple=True, metavar="A=N,B=N", help="Also try a plan of your own."
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    metavar="N",
    help="Draws and trainings of each plan that is tried out. [default: 10]",
)
@learner_option
@on_option
@workers_option
@json_option
def evaluate(
    folder: str,
    now: bool,
    plans: tuple[str, ...],
    repeats: int | None,
    learner: str | None,
    on: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """How good the model is now, cross-validated on the labels at hand.

    Where the data hold the labels that would be bought, the plan and every baseline are tried out
    instead: buy, retrain, score on test.

    \b
    Example:  allot evaluate my-campaign
              allot evaluate my-scenes --repeats 5
    """
    from allotment.campaign.campaign import REPEATS
    from allotment.formatting import several
    from allotment.settings.settings import quote
    from allotment.terminal.campaigns import show_evaluation
    from allotment.terminal.page import Page

    asks = bool(plans) or repeats is not None
    if now and asks:
        raise click.UsageError("--now tries out no plan; leave out --plan and --repeats.")
    campaign = _enter(folder, "evaluate", learner, on)
    with Meter(READING):
        has_labels = campaign.look().stock.oracle
    if now or not (asks or has_labels):
        _evaluate_now(campaign, workers, as_json)
        return
    yours = [pair_options("--plan", plan.split(",")) for plan in plans]
    for warning in campaign.judge_prices(yours):
        say(f"note: {warning}", err=True)
    note_machine(campaign)
    with stoppable():
        with Meter(TIMING):
            trainings, seconds = campaign.time_plans(yours, repeats or REPEATS, workers)
        if trainings:
            say(f"Trying out plans: {several(trainings, 'training')}, {spell(seconds)}.", err=True)
        with Meter("trainings", seconds or None) as meter:
            value, found = campaign.try_plans(yours, repeats or REPEATS, workers, meter)
    if as_json:
        print_json({"number": value.number, "rows": found.rows()} | found.to_dict())
    else:
        page = Page()
        show_evaluation(page, found)
        page.text()
        page.text(f"Next: allot report {quote(folder)}")


def _evaluate_now(campaign: Campaign, workers: int | None, as_json: bool) -> None:
    """Cross-validate the model of the labels at hand, and show its scores."""
    from allotment.learners.validation import PARTS
    from allotment.terminal.campaigns import show_scores
    from allotment.terminal.page import Page

    note_machine(campaign)
    with stoppable():
        with Meter(TIMING):
            seconds = campaign.time_evaluation(workers)
        if seconds:
            say(f"Cross-validation: {PARTS} trainings, {spell(seconds)}.", err=True)
        with Meter("trainings", seconds or None) as meter:
            found = campaign.evaluate(workers, meter)
    if as_json:
        print_json(found.to_dict())
    else:
        page = Page()
        show_scores(page, found)
        page.text()
        page.text(f"Next: {campaign.summarise()[1].next}")


@click.command()
@folder_argument
@json_option
def status(folder: str, as_json: bool) -> None:
    """Where a campaign stands, how far a run is that is under way, and the next command to type.

    \b
    Example:  allot status my-campaign
    """
    from allotment.ledger.lock import find_writer, tell_run
    from allotment.terminal.campaigns import show_status
    from allotment.terminal.page import Page

    found, page = _open(folder).summarise()[1], Page()
    run = find_writer(Path(folder))
    if as_json:
        print_json(found.to_dict() | ({} if run is None else {"under_way": tell_run(run)}))
        return
    if run is not None:
        page.text(f"Under way: {tell_run(run)}.")
    show_status(page, found)


@click.command()
@click.argument("path", metavar="CAMPAIGN|PROBLEM.toml")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="[default: report.html in the campaign, PROBLEM.html beside the file; Markdown goes to the"
    " terminal]",
)
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="As Markdown, for an issue or a wiki."
)
@json_option
def report(path: str, output: str | None, as_markdown: bool, as_json: bool) -> None:
    """One page: the decision, what if, tables, pictures, curves, verdicts.

    It takes the folder of a campaign or a problem file.

    \b
    Example:  allot report my-campaign -o report.html
              allot report my-campaign --markdown -o report.md
              allot report problem.toml
    """
    from allotment.reports.page import write_page

    if as_markdown and as_json:
        raise click.UsageError("Give --markdown or --json, not both.")
    clashes: Iterable[str]
    if path == "-" or path.endswith(".toml") or Path(path).is_file():
        values, usual, clashes = _collect_problem(path), _name_page(path), ()
    else:
        campaign = _enter(path)
        values, usual = campaign.report(), Path(path) / "report.html"
        clashes = campaign.look().clashes
    if as_json:
        print_json(values)
    elif as_markdown:
        _write_markdown(values, output)
    else:
        written = write_page(values, usual if output is None else Path(output))
        say(f"{written} is written; open it in a browser.")
        _tell_clashes(clashes)


def _collect_problem(path: str) -> dict[str, Any]:
    import allotment as al
    from allotment.cli.inputs import read_given
    from allotment.reports.plans import collect_problem

    given = read_given(path)
    title = "Labels" if path == "-" else f"Labels for {Path(path).stem}"
    values = collect_problem(al.allocate(given.problem, given.gains), title, given.neutral)
    stop = given.find_stop()
    advice = [] if stop is None else [f"{stop.say(is_taken=False)}."]
    return values | {"style": dict(given.report), "advice": advice}


def _name_page(path: str) -> Path:
    return Path("report.html") if path == "-" else Path(path).with_suffix(".html")


def _write_markdown(values: dict[str, Any], output: str | None) -> None:
    from allotment.reports.markdown import save_markdown, write_markdown

    if output is None:
        click.echo(write_markdown(values), nl=False)
    else:
        say(f"{save_markdown(values, Path(output))} is written.")


def _tell_clashes(clashes: Iterable[str]) -> None:
    """Why nothing can be planned, for commands that do without a plan."""
    for clash in clashes:
        say(f"Note: {clash}.")


@click.command()
@folder_argument
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="[default: a free one]"
)
def serve(folder: str, port: int) -> None:
    """The page live, with progress and time left while a campaign runs.

    It reads and never writes, and answers this machine alone. Ctrl-C ends it.

    \b
    Example:  allot serve my-campaign
              allot serve my-campaign --port 8000
    """
    from allotment.reports.live import LiveCampaign
    from allotment.reports.server import open_server

    live = LiveCampaign(folder)
    with open_server(live, port) as server, contextlib.suppress(KeyboardInterrupt):
        with Meter("making the page"):
            live.make_page()  # so that what is wrong is said here
        say(f"{server.link} shows {folder}; Ctrl-C ends it.")
        server.serve_forever()


@click.command()
@folder_argument
@click.option("-o", "--output", metavar="FILE.zip", help="[default: CAMPAIGN.zip]")
def pack(folder: str, output: str | None) -> None:
    """A whole campaign in one archive of plain JSON, npy and png.

    \b
    Example:  allot pack my-campaign -o my-campaign.zip
    """
    from allotment.settings.settings import quote

    if output is not None and Path(output).suffix.lower() != ".zip":
        raise click.UsageError(
            f"-o {output}: the archive is a zip; give it a name that ends in .zip."
        )
    path = _open(folder).pack(output)
    then = f"Unpack it with: allot unpack {quote(path)} FOLDER"
    say(f"{path} is written; the data themselves are not in it. {then}")


@click.command()
@click.argument("path", metavar="FILE.zip")
@click.argument("folder", metavar="CAMPAIGN")
def unpack(path: str, folder: str) -> None:
    """A campaign from an archive, into a new folder. Nothing in the archive is trusted.

    \b
    Example:  allot unpack my-campaign.zip my-copy
    """
    from allotment.campaign.campaign import Campaign
    from allotment.settings.settings import find_lost, quote

    Campaign.unpack(path, folder)
    say(f"{folder} is there. Next: allot status {quote(folder)}")
    if where := find_lost(Path(folder)):
        say(f"Its data are not at {where}; write where they lie into campaign.toml, under root.")


@click.command()
@folder_argument
@json_option
@click.pass_context
def verify(ctx: click.Context, folder: str, as_json: bool) -> None:
    """Whether all that is on record is as it was written, and agrees.

    It reads every row, order, label, mask and copy and changes nothing. Where something is harmed
    it ends with exit code 2, and says what to do.

    \b
    Example:  allot verify my-campaign
    """
    from allotment.settings.settings import quote
    from allotment.terminal.campaigns import show_audit
    from allotment.terminal.page import Page

    found = _open(folder).verify()
    if as_json:
        print_json(found.to_dict())
    else:
        show_audit(Page(), found, quote(folder))
    if found.faults:
        ctx.exit(BAD_INPUT)


@click.command()
@folder_argument
def restore(folder: str) -> None:
    """Put back the last sound copy of a campaign's store.

    For a store that is harmed, gone, or was replaced by an older one. It is kept beside, under
    another name.

    \b
    Example:  allot restore my-campaign
    """
    from allotment.formatting import several
    from allotment.settings.settings import quote

    done = _open(folder).restore()
    say(f"{done.copy} is in place.")
    if done.aside is not None:
        say(f"What was there is kept as {done.aside}.")
    if done.lost != 0:
        what = (
            "What was done last"
            if done.lost is None
            else several(done.lost, "entry").replace("entrys", "entries")
        )
        say(f"{what} may not be in the copy. If an order was sent since, take its sheet in:")
        say(f"allot ingest {quote(folder)} SHEET")
    say(f"Next: allot verify {quote(folder)}")


def _open(folder: str, learner: str | None = None, on: str | None = None) -> Campaign:
    from allotment.campaign.campaign import Campaign

    return Campaign(folder, learner, on)


def _enter(
    folder: str, why: str = "", learner: str | None = None, on: str | None = None
) -> Campaign:
    """A campaign that is read and opened once, until the command ends; for writing, if said why."""
    campaign = _open(folder, learner, on)
    click.get_current_context().with_resource(campaign.once(why))
    return campaign


def note_machine(campaign: Campaign) -> None:
    """Say so, once, if the campaign came here from another kind of CPU."""
    if note := campaign.tell_machine():
        say(f"note: {note}.", err=True)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C ends the work at once, a training that fails ends it after the others; what is done is
    on disk."""
    from allotment.runs.runner import WorkFailed

    kept = f"What is done is kept; to go on from there: {_retype(click.get_current_context())}"
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nStopped. {kept}", err=True)
        raise SystemExit(INTERRUPTED) from None
    except WorkFailed as error:
        for line in str(error).split("\n"):
            say(f"error: {line}", err=True)
        say(kept, err=True)
        raise SystemExit(BAD_INPUT) from None


def _retype(ctx: click.Context) -> str:
    """The command as it was typed: with another folder, learner or network it would begin anew."""
    words, within = list[str](), ctx
    while within.parent is not None:  # the last one is called as the shell calls it
        words, within = [str(within.info_name), *words], within.parent
    words = ["allot", *words]
    for param in ctx.command.params:
        name, value = str(param.name), ctx.params.get(str(param.name))
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        given = value if isinstance(value, tuple) else (value,)
        for each in given:
            words += [] if isinstance(param, click.Argument) else [param.opts[-1]]
            words += [] if each is True else [str(each)]
    return shlex.join(words)


_EXAMPLES = {"--kind": "regression", "--classes": "A|B", "--metric": "mae"}


def _read_lists(option: str, texts: Iterable[str]) -> dict[str, list[str]]:
    """`NAME=VALUE` in parts, where a name may be given several times."""
    found: dict[str, list[str]] = {}
    for text in texts:
        for name, value in pair_options(option, [text]).items():
            found.setdefault(name, []).append(value)
    return found


def pair_options(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` in parts; a name may hold an equals sign itself."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.strip().rpartition("=")
        if not equals or not name:
            known, value = re.split("[:=]", text)[0].strip() or "price", _EXAMPLES.get(option, "3")
            raise click.UsageError(
                f"{option} {text!r} is not NAME=VALUE, such as {option} {known}={value}."
            )
        if name in pairs:
            raise click.UsageError(f"{option} is given twice for {name!r}.")
        pairs[name] = value
    return pairs
