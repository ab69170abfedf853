"""Commands around problem files: `check` one, write an `example`, plan the published ones (`demo`)."""

from __future__ import annotations

import click

from allotment.cli.group import BAD_INPUT, INFEASIBLE
from allotment.cli.inputs import locate, name_file, read_document
from allotment.cli.planning import show_beside

EXAMPLES = {
    "voc": "PASCAL VOC: class labels at 1, segmentation masks at 20",
    "taskonomy": "Taskonomy: five tasks on indoor scenes",
}


@click.command()
@click.argument("path", metavar="PROBLEM.toml")
@click.pass_context
def check(ctx: click.Context, path: str) -> None:
    """Every mistake in a problem file at once, with its line and key.

    \b
    Example:  allot check problem.toml
    """
    from allotment.errors import Infeasible, InputError
    from allotment.plan import check_limits
    from allotment.solver.model import build
    from allotment.tables.plans import describe

    try:
        document = read_document(path)
        if document.gains is not None:
            build(document.problem, document.gains)  # curves that can't be added up
        check_limits(document.problem)
    except InputError as error:
        click.echo("\n".join(locate(error, path)))
        ctx.exit(BAD_INPUT)
    except Infeasible as error:
        click.echo("\n".join(f"{name_file(path)}: {clash}" for clash in error.clashes))
        ctx.exit(INFEASIBLE)
    click.echo(f"{name_file(path)} is fine: {describe(document.problem, document.gains)}")


@click.command()
@click.argument("name", type=click.Choice(list(EXAMPLES)), default="voc")
def example(name: str) -> None:
    """A commented problem file to start from.

    \b
    Example:  allot example > problem.toml
    """
    click.echo(_read_example(name), nl=False)


def _read_example(name: str) -> str:
    from importlib.resources import files

    return (files("allotment") / "examples" / f"{name}.toml").read_text(encoding="utf-8")


@click.command()
def demo() -> None:
    """The paper's two published instances, planned and compared.

    \b
    Example:  allot demo
    """
    import allotment as al
    from allotment.document import parse_problem
    from allotment.tables.page import Page
    from allotment.tables.plans import show_plan

    page = Page()
    for name, title in EXAMPLES.items():
        document = parse_problem(_read_example(name))
        best = al.allocate(document.problem, document.gains or {})
        page.title(title)
        page.text()
        show_plan(page, best, neutral=False)
        show_beside(page, best, neutral=False)
        page.text()
    page.title("Your own")
    page.text("  allot example > problem.toml     a commented file: put in your tasks and prices")
    page.text("  allot plan problem.toml          what to buy")
