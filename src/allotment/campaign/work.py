"""What a job of a campaign does, in whichever process: train on some of the labels at hand, and
score."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from allotment.advice.price import price, time_training
from allotment.data.dataset import Dataset
from allotment.data.embedded import EMBEDDED_FOLDER
from allotment.data.labels import Labels, Split, draw, shuffle
from allotment.data.source import SOURCES
from allotment.errors import InputError, Mistake
from allotment.estimates.method import METHODS, SHARED
from allotment.estimates.request import FOLDS, Request
from allotment.formatting import several
from allotment.job import JSON, installed
from allotment.learners.built_in import USUAL_NETWORK, make_built_in
from allotment.learners.choice import build_learner, fingerprint_learner, is_own
from allotment.learners.implying import add_implied, imply
from allotment.learners.learner import BUILT_IN, Learner, State, train_many
from allotment.learners.shown_answers import keep_examples
from allotment.learners.validation import Scoreboard, answer_parts
from allotment.ledger.disk import MASK_FOLDER
from allotment.models.card import Card
from allotment.models.model import describe_learner
from allotment.problem import Problem, Task
from allotment.runs.trees import Tree, take_all
from allotment.settings.settings import (
    ANY,
    DIFFERENT,
    Settings,
    find_data,
    find_path,
    find_root,
    parse_settings,
)
from allotment.stock.stock import LabelValues, Stock, open_stock

KEPT = 0.25
"""of the labelled instances, for scoring, where a learner of the user's own can't score on any that
it is told"""
PERFORM = "allotment.campaign.work:perform"
VALIDATION = "validation"
"""kind of the job that asks models about labels which they did not see"""
FIRST_SEED = 1000
"""of evaluations, so that no training of them repeats one of the estimates"""
SHOWN_OF_THE_TEST = 4
"""test pictures of which the first model of each plan is asked, for people to look at"""
PACE = "pace"
"""kind of the job that times a training"""
TIMED_IN = "timed_in"
"""of jobs that time something: the seconds that they did so; the rest of their time is what a
process that trains takes to begin and to read what it needs"""


@dataclass(frozen=True)
class Context:
    """What all jobs of a campaign share, wherever they are done: texts, labels, and where the files
    lie that they read."""

    settings: str
    """the text of campaign.toml"""
    learner: str
    folder: str
    """of the campaign, in which delivered masks lie"""
    data: str | None
    """the file or folder of the data, of a source that has one"""
    weights: str | None
    """the file of trained weights, where the settings name one"""
    options: Mapping[str, str] = field(compare=False, repr=False)
    """other files that the settings name below [data], by their keys"""
    given: LabelValues = field(compare=False, repr=False)
    """delivered labels; jobs name them by their fingerprint, which tells one set from another"""
    corrected: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)
    """instances of each task of which the data's own label counts no more; likewise"""


def make_context(settings: Settings, stock: Stock, learner: str) -> JSON:
    """The context of jobs about these labels at hand, as plain values."""
    folder = Path(os.path.realpath(stock.folder))
    root, weights = find_root(settings, folder), settings.training.get("weights")
    context = Context(
        settings=settings.text,
        learner=learner,
        folder=str(folder),
        data=None if root is None else os.path.abspath(root),
        weights=None if weights is None else os.path.abspath(find_path(folder, weights)),
        options=_find_options(settings, folder),
        given=stock.given,
        corrected={task: sorted(names) for task, names in stock.corrected.items()},
    )
    return vars(context)


def _find_options(settings: Settings, folder: Path) -> dict[str, str]:
    """Keys below [data] that name files, and where these lie."""
    names = [key.name for key in settings.source.keys if key.is_path and key.name in settings.data]
    return {name: os.path.abspath(find_path(folder, settings.data[name])) for name in names}


def list_trees(settings: Settings, stock: Stock, context: JSON) -> dict[str, Tree]:
    """The files that jobs read, by the keys of the context that name them: machines that do not see
    them get copies."""
    folder = context["folder"]
    found = {"folder": Tree(folder, folder, (MASK_FOLDER, EMBEDDED_FOLDER))}
    if context["data"] is not None:
        found["data"] = _take_data(settings, stock, Path(context["data"]))
    if context["weights"] is not None:
        found["weights"] = take_all(context["weights"])
    return found | {f"options.{key}": take_all(path) for key, path in context["options"].items()}


def _take_data(settings: Settings, stock: Stock, root: Path) -> Tree:
    with SOURCES.calling(settings.data["name"]):
        files = settings.source.list_files(find_data(settings, stock.folder))
    if root.is_dir():
        return take_all(root)
    parts = [os.path.relpath(os.path.abspath(path), root.parent) for path in files]
    return Tree(str(root.parent), str(root), tuple(parts))


def perform(context: JSON, kind: str, needs: JSON) -> JSON:
    """One job: a pure function of what it needs. No campaign is opened for it: all else is in the
    context and in the files that this names."""
    known = needs["data"], needs["labels"], needs["learner"]
    bench = _set_up(Context(**context), known, kind == "evaluation")
    begun = time.perf_counter()
    if kind == "price":
        given = {key: needs[key] for key in ("method", "trainings", "seed")}
        given |= needs.get("options", {})
        found = price(bench.learner, bench.labels, folds=count_folds(bench), **given)
        return found.to_dict() | {TIMED_IN: time.perf_counter() - begun}
    if kind == "evaluation":
        return _evaluate(bench, needs)
    if kind == PACE:
        given = {"folds": count_folds(bench), "seed": needs["seed"]}
        seconds = time_training(bench.learner, bench.labels, **given)
        return {"seconds": seconds, TIMED_IN: time.perf_counter() - begun}
    if kind == VALIDATION:
        given = {key: needs[key] for key in ("parts", "chosen", "seed")}
        return answer_parts(bench.learner, bench.stock.open(), bench.labels, **given)
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
    given = {key: needs[key] for key in keys} | {"options": needs.get("options", {})}
    return Request(open_bench, **given, per_job=per_job, problem=problem)


@dataclass(frozen=True, eq=False)
class Bench:
    """A learner, ready to train, and the labels that it may use."""

    stock: Stock
    learner: Learner
    labels: Labels


@lru_cache(maxsize=1)
def _set_up(context: Context, known: tuple[str, str, str], test: bool) -> Bench:
    """Once for all jobs of a process that share it; refused if data, labels or learner are not
    those that the job names."""
    # whose labels and results go by the names that are on record
    settings = _settle_paths(parse_settings(context.settings).kept, context)
    given, corrected = ({}, {}) if test else (context.given, context.corrected)
    stock = open_stock(settings, Path(context.folder), given, corrected=corrected)
    data, labels, learner = known
    changed = [] if stock.fingerprint == labels else ["labels at hand"]
    if not stock.data.is_slow_to_hash and data not in (
        stock.data.fingerprint,
        stock.unscored_fingerprint,
    ):
        changed.append("data")
    if fingerprint_learner(context.learner) != learner:
        changed.append("files of the learner")
    if changed:
        what = "have changed since this began; type the command again"
        raise InputError(Mistake(each, what) for each in changed)
    return set_up(settings, stock, context.learner, test)


def _settle_paths(settings: Settings, context: Context) -> Settings:
    """The settings with their files where the context says that these lie."""
    data = dict(context.options) | ({"root": context.data} if context.data is not None else {})
    training = {"weights": context.weights} if context.weights is not None else {}
    return replace(
        settings, data={**settings.data, **data}, training={**settings.training, **training}
    )


def set_up(settings: Settings, stock: Stock, learner: str = BUILT_IN, test: bool = False) -> Bench:
    """A learner on the labels at hand or, for `test`, on all that the data know, scored on the test
    part."""
    nobody = stock.parts.validation[:0]
    if test:
        split = Split(stock.parts.train, stock.parts.test, nobody)
        return Bench(
            stock, _make(settings, stock.whole(), split, stock.folder, learner), stock.start
        )
    data, labels = stock.open(), stock.labels
    if settings.count_implied:  # they are labels like others
        labels, settings = stock.trained, replace(settings, count_implied=False)
        settings = replace(settings, tasks=tuple(map(_without_implied, settings.tasks)))
    split = Split(stock.parts.train, nobody, nobody)
    if is_own(learner):
        return Bench(stock, _make(settings, data, split, stock.folder, learner), labels)
    everyone = np.unique(np.concatenate([labels[task].instances for task in labels]))
    kept = shuffle(everyone, "validation", settings.seed)[: round(KEPT * len(everyone))]
    split = Split(np.setdiff1d(stock.parts.train, kept), np.sort(kept), nobody)
    made = _make(settings, data, split, stock.folder, learner)
    if not hasattr(made, "with_validation"):
        labels = Labels(
            {task: mine.keep(~np.isin(mine.instances, kept)) for task, mine in labels.items()}
        )
    return Bench(stock, made, labels)


def _without_implied(task: Task) -> Task:
    return Task.from_dict(task.to_dict() | {"implies": []})


def count_folds(bench: Bench) -> int:
    """In how many parts the labels at hand score in turn; 1 for a learner that scores on labels of
    its own."""
    return FOLDS if hasattr(bench.learner, "with_validation") else 1


def _make(settings: Settings, data: Dataset, split: Split, folder: Path, learner: str) -> Learner:
    made: Learner
    if learner != BUILT_IN:
        made = build_learner(learner, data, split, settings.training.get("members"))
    else:
        weights = settings.training.get("weights")
        file = None if weights is None else find_path(folder, weights)
        made = make_built_in(list_training(settings), data, split, file)
    return add_implied(made, settings.implies)


def list_training(settings: Settings) -> dict[str, JSON]:
    """How the built-in learner is trained: what the settings say, over what suits their data."""
    said = dict(settings.training)
    if said.get("network", USUAL_NETWORK) != USUAL_NETWORK:
        return said  # which has a recipe of its own
    return {**settings.source.recipe, **said}


def make_card(
    settings: Settings, stock: Stock, learner: str, labels: Labels, scores: Scoreboard | None
) -> Card:
    """What is to be said of a model of these labels."""
    counts = {}
    for task, mine in labels.items():
        first = int(np.isin(mine.instances, stock.start[task].instances).sum())
        counts[task] = {"of the data": first, "delivered": len(mine) - first}
    root = "" if "root" not in settings.data else f" ({Path(settings.data['root']).name})"
    recipe = {key: value for key, value in list_training(settings).items() if key != "weights"}
    return Card(
        campaign=stock.folder.resolve().name,
        data=f"{settings.data['name']}{root}, {several(stock.data.size, 'instance')}",
        labels=counts,
        recipe=recipe if learner == BUILT_IN else {},
        seed=settings.seed,
        learner=describe_learner(learner),
        versions=installed(),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        scores=scores,
        fingerprints={"labels at hand": stock.fingerprint[:16]},
    )


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
            taken=imply(bench.labels, bench.stock.implies),
            apart=needs.get("instances", ANY) == DIFFERENT,
        )
        both = {task: bench.labels[task].join(new[task]) for task in bench.labels}
        runs.append((Labels(both), seed))
    tasks = bench.learner.tasks
    states = train_many(bench.learner, runs)
    scores = [[bench.learner.score(state, task) for task in tasks] for state in states]
    found = {
        "tasks": list(tasks),
        "scores": [
            [each.metric if np.isfinite(each.metric) else None for each in row] for row in scores
        ],
        "higher": [each.higher_is_better for each in scores[0]],
    }
    if needs["seeds"][0] != FIRST_SEED:
        return found
    return found | {"shown": _show_answers(bench, states[0])}


def _show_answers(bench: Bench, state: State) -> JSON:
    """What a model says of a few pictures of the test part; nothing where there are none."""
    data, test = bench.stock.whole(), bench.stock.parts.test
    if not len(test) or data.picture(int(test[0])) is None:
        return {}
    shown = {}
    for target in data.targets:
        known = test[data.known(target.name)[test]]
        if target.name in bench.learner.tasks and len(known):
            given = (bench.learner, state, data, target, known, SHOWN_OF_THE_TEST)
            shown[target.name] = keep_examples(*given)
    return shown
