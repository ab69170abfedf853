"""The group of all commands: it says errors in lines on stderr and ends with their exit codes."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import click

from allotment import __version__
from allotment.machine import is_trouble

INFEASIBLE, BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141


class Allot(click.Group):
    """Lists commands in their written order; says errors in lines on stderr, never in a
    traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough, as in `allot frontier x --csv | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        from allotment.errors import AllotmentError, Infeasible

        sys.stdout = sys.stdout or io.StringIO()  # it is None where the shell closed it with >&-
        for stream in (sys.stdout, sys.stderr):
            # a name that the terminal can't show is no reason to fail
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(*args, **kwargs | {"prog_name": "allot", "standalone_mode": False})
            sys.exit(code if isinstance(code, int) else 0)
        except click.exceptions.Abort:
            sys.exit(INTERRUPTED)
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "allot"
            fail([f"{error.format_message()} See {where} --help"], BAD_INPUT)
        except Infeasible as error:
            fail(error.clashes, INFEASIBLE)
        except AllotmentError as error:
            fail(str(error).split("\n"), BAD_INPUT)
        except OSError as error:
            fail([_tell(error)], BAD_INPUT)
        except MemoryError:
            what = (
                "there is not memory enough; close other programs, then run the same command again"
            )
            fail([f"{what}: what was finished is kept"], BAD_INPUT)


def _tell(error: OSError) -> str:
    """What the system says, of which file, and what to do."""
    where = f"{os.fsdecode(error.filename)!r}: " if isinstance(error.filename, str | bytes) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{where}the disk is full; make room, then run the same command again: what was"
            " finished is kept"
        )
    what = f"{where}{error.strerror or error}"
    if is_trouble(error):
        return (
            f"{what}; check the disk and free memory, then run the same command again: what was"
            " finished is kept"
        )
    return f"{what}; check the path and its permissions, then run the same command again"


def fail(lines: Iterable[str], code: int) -> NoReturn:
    """End with the errors on stderr."""
    for line in lines:
        say(f"error: {line}", err=True)
    sys.exit(code)


def say(text: str, *, err: bool = False) -> None:
    """Print what may hold words of a file, which must not steer the terminal."""
    from allotment.errors import visible

    click.echo(visible(text, "\n"), err=err)


@click.group(
    cls=Allot, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "--version", prog_name="allot", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """How many labels of each task to buy with a labelling budget.

    \b
    Start with:  allot demo                       a whole campaign on built-in data
                 allot init my-campaign ...       one of your own
                 allot example > problem.toml     or only plan, with gains that you know
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
