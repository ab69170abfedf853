"""The seam between labels at hand and estimates: a method is anything with these few verbs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from allotment.errors import InputError, cut
from allotment.estimates.estimates import Estimates
from allotment.estimates.request import Request, Work
from allotment.gains import Curve
from allotment.plugins import Registry, find_modules
from allotment.problem import Problem

Plain: TypeAlias = dict[str, Any]
"""what JSON has a form for: texts as keys, no number that is not finite"""

SHARED = (
    "recipe", "method", "trainings", "seed", "labels", "learner", "data", "folds", "package",
    "options", "edition",
)  # fmt: skip
"""what a campaign says of all jobs of one estimate alike; jobs must call nothing else so"""
UNSAID = ("package", "options", "edition")
"""of these, what is left out where there is nothing to say: keys stay what they were before"""
CONCLUSION = "conclusion"
"""by which estimates on record say how they were concluded; the first way leaves it out"""
PROBING = "probing"
"""the option of methods that probe trainings: how much of that they may do"""
AHEAD_OPTION = "ahead"
"""likewise: how many steps ahead they look"""
DEFAULT = "response"
"""the method unless somebody says: the one that held up best (docs/results/estimates.md)"""


class Method(ABC):
    """One way from labels at hand to estimates.

    The contract, which `allotment.estimates.conformance.MethodTests` checks:

    - `jobs` cuts the work into pieces that depend on nothing that another gave, each described by
      a few plain values, in the order in which they are to be done. The same request gives the same
      jobs, on every machine: their descriptions are their names, by which a campaign finds what is
      done already. A job says how many trainings it is: `takes` (1 if it says nothing), or
      `chunk`, the first one of a list and the one after its last. `request.per_job`, where it is
      given, says how many trainings one job should be; the estimates must not depend on it.
    - `do` does one of them, in whichever process, with a request of its own, and is pure: the same
      bytes whenever and after whatever else it is done. What it gives is plain. Whatever is drawn
      at random begins at `request.seed` and at what the job says. It may `request.tell` how far
      it is.
    - `conclude` makes estimates from what all jobs gave, in their order. They are of every task in
      `request.labels`, and the same whether results come from here or from a file. What was
      measured may be kept in `about["measured"]`.
    - `weigh` says what all jobs take before the first is begun, without training.
    - Scores come from `request.parts`: the learner scored on each fold, with the labels that may be
      trained on. No label is trained on that scores.

    Optional:

    - `least` is the smallest number of trainings that it can conclude anything from.
    - A method that `joins_rounds` gets what it concluded in earlier rounds, from fewer labels, as
      `earlier`, perhaps with tasks that are gone and without some that are new; others never get
      any.
    - A method that `ends_early` is asked after each job whether those done so far are enough. It
      alone gets `request.problem`, in campaigns, and `do` must not look at that.
    - A method that trains nothing says `trainings = 0`. It has no jobs, `conclude` gets no results,
      and a campaign plans with the curves that it `assume`s.
    - An option called `probing` is a limit of its own, checked before, and `request.probing`.
    """

    about: ClassVar[str]
    """in half a line, for settings, help and documentation"""
    trainings: ClassVar[int]
    """unless told otherwise; 0: it trains nothing, whatever it is told"""
    options: ClassVar[tuple[str, ...]] = ()
    """keywords of `estimate` that it takes, and keys of [estimates] in a campaign's settings"""
    edition: ClassVar[int] = 1
    """another one where the same name stands for something else than before: what an earlier one
    measured is not taken for its own"""
    conclusion: ClassVar[int] = 1
    """another one where the same results add up to something else than before: jobs on record
    serve, and estimates are concluded anew"""
    ablates: ClassVar[str] = ""
    """the method of which it lacks a part, for comparison; lists name such ones in one line"""
    joins_rounds: ClassVar[bool] = False
    ends_early: ClassVar[bool] = False
    kind: ClassVar[str] = "training"
    """that a campaign files its jobs under; methods with the same kind of results may share one"""

    def least(self, tasks: int, folds: int) -> int:
        """How few trainings it can use."""
        return min(self.trainings, 1)

    @abstractmethod
    def weigh(self, request: Request) -> Work:
        """What all of it takes."""

    @abstractmethod
    def jobs(self, request: Request) -> Sequence[Plain]:
        """All there is to do, in order."""

    @abstractmethod
    def do(self, request: Request, job: Plain) -> Plain:
        """What one job gives."""

    @abstractmethod
    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        """What the results of all jobs, or of enough of them, add up to."""

    def is_enough(self, request: Request, results: Sequence[Plain]) -> bool:
        """Whether no job is needed after the first ones, which gave these."""
        return False

    def assume(self, problem: Problem) -> Mapping[str, Curve]:
        """What to plan with where nothing is measured."""
        raise NotImplementedError("a method that trains nothing says what it assumes")


METHOD_VERBS = (
    "about",
    "trainings",
    "options",
    "edition",
    "conclusion",
    "ablates",
    "joins_rounds",
    "ends_early",
    "kind",
    "least",
    "weigh",
    "jobs",
    "do",
    "conclude",
    "is_enough",
    "assume",
)
"""what a method must have"""
_BUILT_IN_METHODS = find_modules("allotment.estimates.methods", "METHOD")
METHODS: Registry[Method] = Registry(
    "methods", "method", METHOD_VERBS, {DEFAULT: _BUILT_IN_METHODS[DEFAULT], **_BUILT_IN_METHODS}
)
"""by name, the default first"""


def list_methods() -> dict[str, Method]:
    """All methods that can be had here, by name; what is broken is told when it is asked for."""
    found = {}
    for name in METHODS:
        try:
            found[name] = METHODS.load(name)
        except InputError:
            continue
    return found


def describe_methods() -> dict[str, str]:
    """What each method does, in half a line."""
    return {name: cut(method.about, 120) for name, method in list_methods().items()}


def describe_choices() -> dict[str, str]:
    """The same for somebody who chooses: methods that lack a part of another are named together."""
    found, known = {}, list_methods()
    for name, about in describe_methods().items():
        if whole := known[name].ablates:
            others = [each for each, method in known.items() if method.ablates == whole]
            found[", ".join(others)] = f"{whole} with a part left out or replaced, for comparison"
        else:
            found[name] = about
    return found


def mark_conclusion(method: Method) -> dict[str, int]:
    """How a method concludes, for what is put down of its estimates."""
    first = method.conclusion == Method.conclusion
    return {} if first else {CONCLUSION: method.conclusion}


def count_trainings(job: Mapping[str, Any]) -> int:
    """How many trainings a job says that it is."""
    if "chunk" in job:
        first, last = job["chunk"]
        return int(last) - int(first)
    return int(job.get("takes", 1))


def looks_ahead(method: Method) -> bool:
    """Whether a method probes: it looks a few steps ahead of trainings that go on."""
    return PROBING in method.options or AHEAD_OPTION in method.options


def tell_stepless(name: str, method: Method) -> str:
    """Why a method is not for learners whose only step is a whole training; "" if it is."""
    if not looks_ahead(method):
        return ""
    return f"{name!r} looks a few steps ahead, and this learner has none; take {DEFAULT!r}"
