"""The command `allot`: each command is one call of the library, shown as a table, as JSON or as CSV."""

from allotment.cli.datasets import data
from allotment.cli.files import check, demo, example
from allotment.cli.group import main
from allotment.cli.planning import cheapest, frontier, plan, score

__all__ = ["main"]

for _command in (plan, frontier, score, cheapest, check, example, demo, data):  # as --help lists them
    main.add_command(_command)
