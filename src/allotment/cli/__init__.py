"""The command `allot`: each command is one call of the library, shown as a table, as JSON or as
CSV."""

from allotment.cli.campaign import (
    backtest,
    estimate,
    evaluate,
    ingest,
    init,
    order,
    pack,
    report,
    restore,
    serve,
    status,
    unpack,
    verify,
)
from allotment.cli.datasets import data
from allotment.cli.demo import demo
from allotment.cli.experiment import experiment
from allotment.cli.files import check, example
from allotment.cli.group import main
from allotment.cli.labels import correct, export, history
from allotment.cli.learners import learners
from allotment.cli.loss_weights import loss_weights
from allotment.cli.model import predict, train
from allotment.cli.planning import cheapest, frontier, plan, score

__all__ = ["main"]

_CAMPAIGN = (
    demo, init, check, status, estimate, plan, order, ingest, correct, history, export, evaluate,
    learners, loss_weights, train, predict, backtest, report, serve, verify, restore, pack, unpack,
)  # fmt: skip
_PROBLEM = (example, frontier, score, cheapest, data)
_PAPER = (experiment,)
for _command in (*_CAMPAIGN, *_PROBLEM, *_PAPER):  # as --help lists them
    main.add_command(_command)
