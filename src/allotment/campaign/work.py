"""What a job of a campaign does, in whichever process: train on some of the labels at hand, and
score."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from allotment.advice.price import price
from allotment.data.dataset import Dataset
from allotment.data.labels import Labels, Split, draw, shuffle
from allotment.errors import InputError, Mistake, suggest
from allotment.estimates.method import METHODS, SHARED
from allotment.estimates.request import FOLDS, Request
from allotment.job import JSON
from allotment.learners.learner import Learner, train_many
from allotment.problem import Problem
from allotment.settings.settings import NETWORK, Settings, find_path, parse_settings
from allotment.stock.stock import Stock, open_stock

VARIABLE = "ALLOT_LEARNER"
"""names a learner of the user's own, as the option --learner does"""
VERBS = ("tasks", "steps", "start", "step", "fork", "score", "predict")
KEPT = 0.25
"""of the labelled instances, for scoring, where a learner of the user's own can't score on any that
it is told"""
PERFORM = "allotment.campaign.work:perform"

Make = Callable[[Dataset, Split], Learner]


def perform(context: JSON, kind: str, needs: JSON) -> JSON:
    """One job: a pure function of what it needs. `context` says only where that is found."""
    known = (needs["data"], needs["labels"])
    bench = _set_up(
        context["folder"], context["settings"], context["learner"], known, kind == "evaluation"
    )
    if kind == "price":
        given = {key: needs[key] for key in ("method", "trainings", "seed")}
        return price(bench.learner, bench.labels, folds=count_folds(bench), **given).to_dict()
    if kind == "evaluation":
        return _evaluate(bench, needs)
    request = make_request(lambda: bench, needs)
    own = {key: value for key, value in needs.items() if key not in SHARED}
    return METHODS.load(needs["method"]).do(request, own)


def make_request(
    bench: Callable[[], Bench],
    needs: JSON,
    per_job: int | None = None,
    problem: Problem | None = None,
) -> Request:
    """What a method is asked for, from what its jobs need."""

    def open_bench() -> tuple[Learner, Labels]:
        opened = bench()
        return opened.learner, opened.labels

    keys = ("seed", "trainings", "folds")
    given = {key: needs[key] for key in keys}
    return Request(open_bench, **given, per_job=per_job, problem=problem)


@dataclass(frozen=True, eq=False)
class Bench:
    """A learner, ready to train, and the labels that it may use."""

    stock: Stock
    learner: Learner
    labels: Labels


@lru_cache(maxsize=1)
def _set_up(folder: str, text: str, own: str | None, known: tuple[str, str], test: bool) -> Bench:
    """Once for all jobs of a process that share it; refused if data or labels are not those that
    the job names."""
    from allotment.ledger.store import Store

    settings = parse_settings(text)
    with Store.open(Path(folder), write=False) as store:
        given = (
            {}
            if test
            else {name: store.delivered(name, settings.conflicts) for name in settings.names}
        )
    stock = open_stock(settings, Path(folder), given)
    changed = [] if stock.fingerprint == known[1] else ["labels at hand"]
    if not stock.data.is_slow_to_hash and stock.data.fingerprint != known[0]:
        changed.append("data")
    if changed:
        raise InputError(
            [
                Mistake(each, "have changed since this began; type the command again")
                for each in changed
            ]
        )
    return set_up(settings, stock, own, test)


def set_up(settings: Settings, stock: Stock, own: str | None = None, test: bool = False) -> Bench:
    """A learner on the labels at hand or, for `test`, on all that the data know, scored on the test
    part."""
    nobody = stock.parts.validation[:0]
    if test:
        split = Split(stock.parts.train, stock.parts.test, nobody)
        return Bench(stock, _make(settings, stock.whole(), split, stock.folder, own), stock.start)
    data, labels = stock.open(), stock.labels
    split = Split(stock.parts.train, nobody, nobody)
    if own is None:
        return Bench(stock, _make(settings, data, split, stock.folder, None), labels)
    everyone = np.unique(np.concatenate([labels[task].instances for task in labels]))
    kept = shuffle(everyone, "validation", settings.seed)[: round(KEPT * len(everyone))]
    split = Split(np.setdiff1d(stock.parts.train, kept), np.sort(kept), nobody)
    learner = _make(settings, data, split, stock.folder, own)
    if not hasattr(learner, "with_validation"):
        labels = Labels(
            {task: mine.keep(~np.isin(mine.instances, kept)) for task, mine in labels.items()}
        )
    return Bench(stock, learner, labels)


def count_folds(bench: Bench) -> int:
    """In how many parts the labels at hand score in turn; 1 for a learner that scores on labels of
    its own."""
    return FOLDS if hasattr(bench.learner, "with_validation") else 1


def _make(
    settings: Settings, data: Dataset, split: Split, folder: Path, own: str | None
) -> Learner:
    if own is not None:
        return _make_own(own, data, split)
    try:
        from allotment.learners.recipe import Recipe
        from allotment.learners.torch_learner import TorchLearner
    except ImportError:
        what = "training needs torch: pip install 'allotment[train]', or set method = \"neutral\""
        raise InputError([Mistake("training", what)]) from None
    keys = {field.name for field in fields(Recipe)}
    given = {key: value for key, value in settings.training.items() if key in keys}
    network = settings.training.get("network", NETWORK)
    if network == NETWORK:
        return TorchLearner(data, split, Recipe(**{**settings.source.recipe, **given}))
    from allotment.learners.setups import find_setup, make_learner

    setup = find_setup(network)
    side = data.inputs(np.zeros(1, dtype=np.int64)).shape[-1]
    setup = replace(setup, side=side, recipe=replace(setup.recipe, **given))
    weights = settings.training.get("weights")
    file = None if weights is None else find_path(folder, weights)
    return make_learner(setup, weights=file, parts=split, data=data)


def find_own(given: str | None) -> str | None:
    """The user's own learner from the command line or the environment, with its whole path."""
    named = given or os.environ.get(VARIABLE) or None
    if named is None:
        return None
    path, colon, function = named.rpartition(":")
    if not colon or not function.isidentifier():
        raise InputError(
            [Mistake("learner", f"{named!r} is not FILE.py:FUNCTION, such as mine.py:make")]
        )
    return f"{os.path.realpath(Path(path).expanduser())}:{function}"


def print_of(own: str | None) -> str:
    """What tells one learner from another: the bytes of the user's file, or "built-in"."""
    if own is None:
        return "built-in"
    path, _, function = own.rpartition(":")
    try:
        return f"{function} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    except OSError as error:
        raise InputError(
            [Mistake("learner", f"{path} cannot be read ({error.strerror})")]
        ) from None


def _make_own(own: str, data: Dataset, split: Split) -> Learner:
    path, _, function = own.rpartition(":")
    spec = importlib.util.spec_from_file_location("allotment_own_learner", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InputError([Mistake("learner", f"{path} is not a Python file that is there")])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    with _explained(path):
        spec.loader.exec_module(module)
    if not callable(make := getattr(module, function, None)):
        known = [
            name
            for name in vars(module)
            if callable(getattr(module, name)) and not name.startswith("_")
        ]
        raise InputError(
            [Mistake("learner", f"{path} has no function {function!r}; {suggest(function, known)}")]
        )
    with _explained(path):
        learner: Learner = make(data, split)
    lacking = [verb for verb in VERBS if not hasattr(learner, verb)]
    if lacking:
        what = (
            f"{function} made a {type(learner).__name__} without {', '.join(lacking)};"
            " docs/learner.md shows how"
        )
        raise InputError([Mistake("learner", what)])
    if missing := [target.name for target in data.targets if target.name not in learner.tasks]:
        raise InputError(
            [Mistake("learner", f"{function} made one that does not know {', '.join(missing)}")]
        )
    return learner


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """What goes wrong in the user's own code is said with its line there."""
    try:
        yield
    except Exception as error:
        lines = [
            each.lineno
            for each in traceback.extract_tb(error.__traceback__)
            if each.filename == path
        ]
        at = f"{path}:{lines[-1]}" if lines else path
        what = " ".join(str(error).split())  # torch's have several lines
        raise InputError([Mistake("learner", f"{at}: {type(error).__name__}: {what}")]) from error


def _evaluate(bench: Bench, needs: JSON) -> JSON:
    """Scores on the test part after buying so many labels, once for each seed."""
    runs = []
    for seed in needs["seeds"]:
        new = draw(
            bench.stock.data,
            bench.stock.parts.train,
            needs["counts"],
            seed,
            same=needs["same"],
            taken=bench.labels,
        )
        both = {task: bench.labels[task].join(new[task]) for task in bench.labels}
        runs.append((Labels(both), seed))
    tasks = bench.learner.tasks
    scores = [
        [bench.learner.score(state, task) for task in tasks]
        for state in train_many(bench.learner, runs)
    ]
    return {
        "tasks": list(tasks),
        "scores": [
            [each.metric if np.isfinite(each.metric) else None for each in row] for row in scores
        ],
        "higher": [each.higher_is_better for each in scores[0]],
    }
