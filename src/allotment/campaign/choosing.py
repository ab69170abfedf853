"""Which of the built-in learners suits a campaign's table, by the labels at hand."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from allotment.campaign.work import set_up
from allotment.errors import InputError, Mistake
from allotment.learners.built_in import USUAL_NETWORK
from allotment.learners.choice import SKLEARN
from allotment.learners.contest import CANDIDATES, Contest, compare_learners
from allotment.learners.tempering import MEMBERS, TemperedLearner, tell_pictures
from allotment.progress import Progress
from allotment.settings.settings import Settings
from allotment.stock.stock import Stock


def choose_learner(settings: Settings, stock: Stock, progress: Progress | None = None) -> Contest:
    """Every candidate trained once on the labels at hand; raises InputError where the data are no
    table of numbers."""
    if what := tell_pictures(stock.data):
        raise InputError([Mistake("learner", f"{what}: nothing to choose from")])
    training = dict(settings.training)
    training["members"] = max(int(training.get("members", MEMBERS)), 2)
    training["network"] = USUAL_NETWORK
    fair = replace(settings, training=training)
    makers: dict[str, Callable[[], TemperedLearner]] = {
        name: partial(_make, fair, stock, name) for name in CANDIDATES if _is_there(name)
    }
    if not makers:
        what = "nothing that trains is installed: pip install 'allotment[train,sklearn]'"
        raise InputError([Mistake("learner", what)])
    return compare_learners(makers, stock.labels, settings.seed, progress)


def _is_there(name: str) -> bool:
    library = "sklearn" if name.startswith(SKLEARN) else "torch"
    return importlib.util.find_spec(library) is not None


def _make(settings: Settings, stock: Stock, name: str) -> TemperedLearner:
    made = set_up(settings, stock, name).learner
    assert isinstance(made, TemperedLearner)
    return made
