"""How many labels of each task to buy: exact plans for a labelling budget in multi-task learning.

A `Problem` says what labels there are to buy, at what price, and how much money there is; gains say
what they are worth; `allocate` turns both into a `Plan`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allotment.advice.doctor import diagnose as diagnose
    from allotment.campaign.campaign import Campaign as Campaign
    from allotment.campaign.tranche import Tranche as Tranche
    from allotment.campaign.tranche import propose_tranche as propose_tranche
    from allotment.errors import AllotmentError as AllotmentError
    from allotment.errors import Infeasible as Infeasible
    from allotment.errors import InputError as InputError
    from allotment.estimates.estimates import Estimates as Estimates
    from allotment.estimates.estimating import estimate as estimate
    from allotment.frontiers import Frontier as Frontier
    from allotment.frontiers import Stop as Stop
    from allotment.frontiers import find_stop as find_stop
    from allotment.frontiers import frontier as frontier
    from allotment.gains import Coupled as Coupled
    from allotment.gains import Curve as Curve
    from allotment.gains import Geometric as Geometric
    from allotment.gains import Logarithmic as Logarithmic
    from allotment.gains import Power as Power
    from allotment.gains import Tabulated as Tabulated
    from allotment.learners.sklearn_learner import SklearnLearner as SklearnLearner
    from allotment.models.model import load_model as load_model
    from allotment.plan import Comparison as Comparison
    from allotment.plan import Evidence as Evidence
    from allotment.plan import Outlook as Outlook
    from allotment.plan import Plan as Plan
    from allotment.plan import Score as Score
    from allotment.plan import allocate as allocate
    from allotment.plan import baselines as baselines
    from allotment.plan import cheapest as cheapest
    from allotment.plan import neutral_gains as neutral_gains
    from allotment.plan import score as score
    from allotment.problem import Cap as Cap
    from allotment.problem import Problem as Problem
    from allotment.problem import Task as Task
    from allotment.problem_file import read_problem as read_problem
    from allotment.standing import Standing as Standing

__version__ = "0.1.0"

_HOMES = {
    "problem_file": ("read_problem",),
    "errors": ("AllotmentError", "Infeasible", "InputError"),
    "frontiers": ("Frontier", "Stop", "find_stop", "frontier"),
    "gains": ("Coupled", "Curve", "Geometric", "Logarithmic", "Power", "Tabulated"),
    "estimates.estimates": ("Estimates",),
    "estimates.estimating": ("estimate",),
    "advice.doctor": ("diagnose",),
    "campaign.campaign": ("Campaign",),
    "campaign.tranche": ("Tranche", "propose_tranche"),
    "learners.sklearn_learner": ("SklearnLearner",),
    "models.model": ("load_model",),
    "plan": (
        "Comparison", "Evidence", "Outlook", "Plan", "Score",
        "allocate", "baselines", "cheapest", "neutral_gains", "score",
    ),
    "problem": ("Cap", "Problem", "Task"),
    "standing": ("Standing",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    """Load a name's module when it is first used, so that `allot --help` waits for none of them."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'allotment' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"allotment.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
