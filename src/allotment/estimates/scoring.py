"""Which labels score the paper's trainings: some that are set apart from those at hand, or others
that are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment.amounts import short
from allotment.arrays import Ints
from allotment.data.labels import Labels, shuffle
from allotment.errors import InputError, Mistake
from allotment.estimates.request import Request
from allotment.formatting import several
from allotment.learners.learner import Learner

VALIDATION_SHARE = 0.2
"""of a task's labels at hand, set apart to score"""
FEWEST_VALIDATION = 5
"""labels of a task that score, where half of its labels are as many"""
TEST_PART = "test"
"""the part of a learner's split that the paper scores on"""


@dataclass(frozen=True, eq=False)
class Scoring:
    """Who trains on what, and what scores: no label does both."""

    learner: Learner
    """scored so"""
    labels: Labels
    """that train, all of them: the paper's n"""
    on: str
    """validation (set apart from the labels at hand), own (the learner's validation labels), test
    or given"""
    instances: Ints
    """that score, as far as they are known: no pseudo-label is made of them"""
    counts: Mapping[str, int] | None = None
    """labels of each task that score, where they are counted"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `Estimates.about`."""
        plain: dict[str, Any] = {"on": self.on, "trained": self.labels.counts}
        plain |= {"instances": len(self.instances)} if len(self.instances) else {}
        return plain if self.counts is None else plain | {"labels": dict(self.counts)}


def find_scoring(request: Request) -> Scoring:
    """What scores: what `score_on` says, else labels at hand that are set apart once, by the seed,
    unless the learner has validation labels of its own."""
    given, validation = (request.options.get(key) for key in ("score_on", "validation"))
    if given is not None and validation is not None:
        what = "says what scores, and so does `score_on`; give one of them"
        raise InputError([Mistake("validation", what)])
    if given is not None:
        return _score_on(request, given)
    if validation is not None or request.folds > 1:
        return _set_apart(request, VALIDATION_SHARE if validation is None else validation)
    own = getattr(request.learner, "validation", None)
    instances = np.zeros(0, dtype=np.int64) if own is None else np.asarray(own, dtype=np.int64)
    return Scoring(request.learner, request.labels, "own", instances)


def _score_on(request: Request, given: Any) -> Scoring:
    learner: Any = request.learner
    on, counts = "given", None
    if isinstance(given, str):
        if given != TEST_PART:
            what = f"unknown {short(given)}; {TEST_PART!r}, or the instances that score"
            raise InputError([Mistake("score_on", what)])
        if getattr(learner, "split", None) is None:
            what = "the learner has no `split`, so that its test part is not known; give instances"
            raise InputError([Mistake("score_on", what)])
        on, given = TEST_PART, learner.split.test
    if isinstance(given, Labels):
        counts = {task: len(given[task]) for task in learner.tasks}
        instances = np.unique(np.concatenate([each.instances for each in given.values()]))
    else:
        given = instances = np.asarray(list(given), dtype=np.int64)
    _check_apart(request, given)
    return Scoring(_scored(learner, given, "score_on"), request.labels, on, instances, counts)


def _check_apart(request: Request, given: Labels | Ints) -> None:
    mistakes = []
    for task, mine in request.labels.items():
        scored = given[task].instances if isinstance(given, Labels) else given
        if both := int(np.isin(mine.instances, scored).sum()):
            what = f"{several(both, 'label')} would be trained on and score; leave them out of one"
            mistakes.append(Mistake(f"score_on, task {task!r}", what))
    if mistakes:
        raise InputError(mistakes)


def _set_apart(request: Request, validation: float) -> Scoring:
    """Each task's first labels in an order that is the same for all tasks, so that an instance
    lies on one side with all its labels."""
    if mistakes := list(_check_left(request.labels, validation)):
        raise InputError(mistakes)
    chosen = []
    for mine in request.labels.values():
        bought = mine.instances[mine.is_bought]
        order = shuffle(np.sort(bought), "set apart", request.seed)
        chosen.append(order[: _count(len(bought), validation)])
    apart = np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)
    kept, rest = {}, {}
    for task, mine in request.labels.items():
        inside = np.isin(mine.instances, apart)
        kept[task], rest[task] = mine.keep(inside), mine.keep(~inside)
    scores = Labels(kept)
    learner = _scored(request.learner, scores, "validation")
    return Scoring(learner, Labels(rest), "validation", apart, scores.counts)


def _check_left(labels: Labels, validation: float) -> Iterator[Mistake]:
    for task, have in labels.bought.counts.items():
        if have and validation >= have:
            what = f"{validation:g} of {have} labels at hand leave none to train on; take fewer"
            yield Mistake(f"validation, task {task!r}", what)


def _count(have: int, validation: float) -> int:
    """How many labels of a task score."""
    if validation >= 1:
        return min(int(validation), have)
    return min(max(round(validation * have), FEWEST_VALIDATION), have // 2)


def _scored(learner: Any, on: Labels | Ints, key: str) -> Learner:
    if not hasattr(learner, "with_validation"):
        what = "the learner can't be scored on what it is told; give it a `with_validation`"
        raise InputError([Mistake(key, what)])
    found: Learner = learner.with_validation(on)
    return found


def tell_scoring(about: Mapping[str, Any]) -> str:
    """What scored, in words, from what estimates say about themselves; nothing where they do not.

    >>> tell_scoring({"scored": {"on": "validation", "labels": {"a": 20, "b": 20}}})
    'scored on 20 validation labels of each task, which are paid for too'
    """
    said = about.get("scored")
    if not isinstance(said, Mapping):
        return ""
    where = f" ({several(said['instances'], 'instance')})" if said.get("instances") else ""
    counts = said.get("labels") or {}
    if said["on"] == "validation":
        if len(set(counts.values())) == 1:
            each = several(next(iter(counts.values())), "validation label")
            return f"scored on {each} of each task, which are paid for too"
        listed = ", ".join(f"{task} {count}" for task, count in counts.items())
        return f"scored on validation labels ({listed}), which are paid for too"
    if said["on"] == TEST_PART:
        return f"scored on the test part{where}, as the paper does; a campaign could not know that"
    if said["on"] == "own":
        return f"scored on the learner's own validation labels{where}, which are paid for too"
    return f"scored on instances that were given{where}"
