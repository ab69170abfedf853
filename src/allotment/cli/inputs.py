"""What commands are given: a problem file, standard input where its name is `-`, or the folder of a
campaign."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from allotment.cli.group import BAD_INPUT, fail

if TYPE_CHECKING:  # at run time each command loads what it needs, so that --help waits for nothing
    from allotment.campaign.campaign import Campaign
    from allotment.campaign.state import CampaignState, Proposal
    from allotment.errors import InputError
    from allotment.frontiers import Stop
    from allotment.gains import Curve
    from allotment.plan import Evidence
    from allotment.problem import Problem
    from allotment.problem_file import Document
    from allotment.worth import Worth

Command = TypeVar("Command", bound=Callable[..., Any])


class Asked(NamedTuple):
    """A campaign that is to be planned: where it stands, what it proposes, and whether that is for
    another budget."""

    folder: str
    campaign: Campaign
    state: CampaignState
    proposal: Proposal
    what_if: bool


class Given(NamedTuple):
    """A problem as the command line gives it; `neutral` if it came without gains."""

    problem: Problem
    gains: dict[str, Curve] | Evidence
    neutral: bool
    asked: Asked | None = None
    """the campaign, if it is one"""
    report: Mapping[str, str] = MappingProxyType({})
    """how the file wants its report to write money"""
    point_worth: Fraction | None = None
    """money that a value of 1 is worth, if the file says so"""
    stops: bool = False
    """whether the plan is to end where labels cost more than they bring"""

    @property
    def worth(self) -> Worth:
        """In what the value of plans is told."""
        from allotment.worth import GIVEN_WORTH, UNKNOWN_WORTH, find_worth

        if self.asked is None:
            return GIVEN_WORTH
        evidence = self.asked.proposal.plan.evidence
        return UNKNOWN_WORTH if evidence is None else find_worth(self.problem, evidence)

    def find_stop(self) -> Stop | None:
        """Up to where labels bring what they cost, where that can be said."""
        import allotment as al

        if self.asked is not None:
            return self.asked.proposal.stop
        if self.point_worth is None:
            return None
        return al.find_stop(self.problem, self.gains, self.point_worth)


def takes_problem(command: Command) -> Command:
    """Adds PROBLEM, --budget and --count-implied; the command gets `given`, also with its --stop if
    it has that."""

    @click.argument("path", metavar="PROBLEM.toml")
    @click.option("--budget", metavar="MONEY", help="Instead of the file's budget.")
    @click.option(
        "--count-implied", is_flag=True, help="Count implied labels in the curve of their task."
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any, path: str, budget: str | None, count_implied: bool, **kwargs: Any
    ) -> Any:
        given = read_given(path, budget, count_implied, kwargs.pop("stop", False))
        return command(*args, given=given, **kwargs)

    return wrapped  # type: ignore[return-value]


def is_campaign(path: str) -> bool:
    """Whether the path is the folder of a campaign rather than a problem file."""
    folder = Path(path)
    # settings may be gone
    return any((folder / name).is_file() for name in ("campaign.toml", "campaign.sqlite"))


def _read_campaign(path: str, budget: str | None, count_implied: bool, stops: bool) -> Given:
    from allotment.campaign.campaign import Campaign

    if count_implied:
        raise click.UsageError("--count-implied is for problem files.")
    campaign = Campaign(path)
    click.get_current_context().with_resource(campaign.once())
    state, proposal = campaign.plan(budget, stops)
    plan = proposal.plan
    return Given(
        plan.problem,
        plan.evidence or plan.gains,
        False,
        Asked(path, campaign, state, proposal, budget is not None),
        stops=stops,
    )


def read_given(
    path: str, budget: str | None = None, count_implied: bool = False, stops: bool = False
) -> Given:
    """The problem in a file, on standard input or of a campaign; ends the command where it is
    wrong."""
    import allotment as al

    if is_campaign(path):
        return _read_campaign(path, budget, count_implied, stops)
    try:
        document = read_document(path)
    except al.InputError as error:
        fail(locate(error, path), BAD_INPUT)
    problem = document.problem
    if budget is not None:
        problem = problem.with_budget(budget)
    if count_implied:
        problem = al.Problem(problem.tasks, problem.budget, problem.caps, count_implied=True)
    gains, worth = document.gains, document.point_worth
    if stops and gains is None:
        what = (
            f"write a [task.gain] below each [[task]] of {name_file(path)}, and point_worth = 250"
        )
        fail([f"--stop: nothing says what labels bring; {what} above the first"], BAD_INPUT)
    if stops and worth is None:
        what = "nothing says what a value of 1 is worth in money; write point_worth = 250 above the"
        fail([f"--stop: {what} first [[task]] of {name_file(path)}"], BAD_INPUT)
    return Given(
        problem,
        al.neutral_gains(problem) if gains is None else gains,
        gains is None,
        report=document.report,
        point_worth=worth,
        stops=stops,
    )


def read_document(path: str) -> Document:
    """The problem in a file or on standard input."""
    from allotment.errors import InputError, Mistake
    from allotment.problem_file import parse_problem, read_problem
    from allotment.toml import LARGEST_TOML

    if path != "-":
        return read_problem(path)
    data, source = b"", cast(io.BufferedReader, sys.stdin.buffer) if sys.stdin else io.BytesIO()
    # Ctrl-C is seen between two pieces
    while len(data) <= LARGEST_TOML and (piece := source.read1(2**20)):
        data += piece
    if len(data) > LARGEST_TOML:
        raise InputError(
            [Mistake("", f"has more than {LARGEST_TOML // 10**6} MB; is it the right file?")]
        )
    try:
        return parse_problem(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError([Mistake("", "is not UTF-8 text; save it as UTF-8", line)]) from None


def locate(error: InputError, path: str) -> list[str]:
    """Its mistakes as `file:line: key: what`, which editors can jump to."""
    lines = []
    for mistake in error.mistakes:
        line = "" if mistake.line is None else f":{mistake.line}"
        where = "" if mistake.where in ("", repr(path)) else f"{mistake.where}: "
        lines.append(f"{name_file(path)}{line}: {where}{mistake.what}")
    return lines


def name_file(path: str) -> str:
    """The file as messages call it."""
    return "<stdin>" if path == "-" else path
