"""Any pair of `fit` and `predict` in the manner of scikit-learn, behind the verbs of a learner.

A training has members, each without some of the labels (`allotment.learners.tempering`). Tasks help
each other: what the first models say of the other tasks, out of fold, are further features of
second ones, which are taken where they are better on labels that they did not see.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from allotment.arrays import AnyArray, Array
from allotment.data.dataset import Dataset, Instances, Target
from allotment.data.labels import Labels, Split, TaskLabels
from allotment.errors import InputError, Mistake, cut
from allotment.learners.answers import list_errors
from allotment.learners.batches import hash_of
from allotment.learners.estimators import BOOSTING, check_estimator, make_estimator
from allotment.learners.tempering import (
    FEWEST_TRUSTED,
    MEMBERS,
    Deal,
    TemperedLearner,
    TemperedState,
    deal,
)
from allotment.learners.training_rows import TrainingRows, read_training_rows

MOST_HELPERS = 7
"""other tasks that help one; with more of them it would take too long"""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model for one task, or a constant where labels show one thing only."""

    target: Target
    models: tuple[Any, ...]
    """one; of several independent classes, one for each; None for a constant"""
    constants: tuple[float, ...]
    """what stands for each model that is None"""
    mean: float = 0.0
    spread: float = 1.0

    def answer(self, inputs: AnyArray) -> Array:
        """Values (n,), or probabilities (n, classes)."""
        if self.target.kind == "regression":
            said = _say(self.models[0], self.constants[0], inputs)
            return said * self.spread + self.mean
        if self.target.kind == "multilabel":
            each = [
                _say_chances(model, 2, constant, inputs)[:, 1]
                for model, constant in zip(self.models, self.constants, strict=True)
            ]
            return np.stack(each, axis=1)
        return _say_chances(self.models[0], len(self.target.classes), self.constants[0], inputs)


def _say(model: Any, constant: float, inputs: AnyArray) -> Array:
    if model is None:
        return np.full(len(inputs), constant)
    return np.asarray(model.predict(inputs), dtype=np.float64).reshape(len(inputs))


def _say_chances(model: Any, classes: int, constant: float, inputs: AnyArray) -> Array:
    """Probabilities of all classes, also of those that a model never saw."""
    found = np.zeros((len(inputs), classes))
    if model is None:
        found[:, int(constant)] = 1.0
    elif hasattr(model, "predict_proba"):
        found[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(inputs)
    else:
        found[np.arange(len(inputs)), np.asarray(model.predict(inputs), dtype=np.int64)] = 1.0
    return found


@dataclass(eq=False)
class SklearnState(TemperedState):
    """Models of each task, one for each member."""

    first: dict[str, list[FittedModel]] = field(default_factory=dict)
    """that see the features alone"""
    second: dict[str, list[FittedModel]] = field(default_factory=dict)
    """that see the answers of the first ones to other tasks, too, where that is better"""
    helpers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """of each task, those other tasks"""


class SklearnLearner(TemperedLearner):
    """Multi-task training with models of scikit-learn, behind the `Learner` protocol.

    `estimator` is a name (`HistGradientBoosting`, `RandomForest`, `Ridge`, ...), a model of your
    own with `fit` and `predict`, or a mapping with either for each task.
    """

    trains_whole = True

    def __init__(
        self,
        data: Dataset,
        split: Split,
        estimator: Any = BOOSTING,
        members: int = MEMBERS,
    ):
        super().__init__(data, split, members)
        self._estimators = _assign(estimator, tuple(data.targets))

    def steps(self, labels: Labels) -> int:
        """A step is a whole training."""
        return 1

    def start(self, labels: Labels, seed: int) -> SklearnState:
        self.check_labels(labels)
        return SklearnState(labels, seed, deal(self.data, labels, self.members, seed), frozenset())

    def step(self, state: SklearnState, tasks: Sequence[str]) -> SklearnState:
        """Fit the tasks that are named on all their labels; once more would give the same."""
        named = [task for task in self.tasks if task in tasks]
        if bare := [task for task in named if not len(state.labels[task])]:
            raise InputError(Mistake(f"task {task!r}", "has no labels to step on") for task in bare)
        if set(named) <= state.trained:
            return state
        state = replace(self.fork(state), trained=state.trained | frozenset(named), trusts={})
        with one_thread():
            for task in named:
                state.first[task] = self._fit(state, task, ())
            for task in named:
                self._fit_with_help(state, task)
        return state

    def fork(self, state: SklearnState) -> SklearnState:
        return replace(
            state,
            first=dict(state.first),
            second=dict(state.second),
            helpers=dict(state.helpers),
            trusts=dict(state.trusts),
        )

    def answer_each(self, state: SklearnState, task: str, instances: Instances) -> AnyArray:
        helpers = state.helpers.get(task, ())
        models = state.second[task] if helpers else state.first[task]
        with one_thread():
            inputs = self._open(state, helpers, instances, is_labelled=False)
            return np.stack([model.answer(inputs) for model in models])

    def answer_unseen(self, state: SklearnState, task: str, instances: Instances) -> AnyArray:
        with one_thread():
            helpers = state.helpers.get(task, ())
            models = state.second[task] if helpers else state.first[task]
            return self._answer_unseen(state, models, helpers, instances)

    def _answer_unseen(
        self,
        state: SklearnState,
        models: Sequence[FittedModel],
        helpers: Sequence[str],
        instances: Instances,
    ) -> AnyArray:
        inputs = self._open(state, helpers, instances, is_labelled=True)
        out = state.deal.find_member(instances)
        said = np.stack([model.answer(inputs) for model in models])
        return np.asarray(said[out, np.arange(len(instances))])

    def _open(
        self, state: SklearnState, helpers: Sequence[str], instances: Instances, is_labelled: bool
    ) -> AnyArray:
        """The features, and beside them what is said of other tasks: of labelled instances by the
        members that did not see them."""
        inputs = np.asarray(self.data.inputs(instances), dtype=np.float64)
        if not helpers or not len(instances):
            return inputs
        columns = [inputs]
        for task in helpers:
            models = state.first[task]
            if is_labelled:
                said = self._answer_unseen(state, models, (), instances)
            else:
                said = np.mean([model.answer(inputs) for model in models], axis=0)
            wide = said.reshape(len(instances), -1)
            mean, spread = models[0].mean, models[0].spread
            columns.append((wide - mean) / spread)
        return np.concatenate(columns, axis=1)

    def _fit(self, state: SklearnState, task: str, helpers: Sequence[str]) -> list[FittedModel]:
        """The models of a task, one for each member."""
        mine, target = state.labels[task], self.targets[task]
        order = np.argsort(mine.instances)
        instances, values = mine.instances[order], self.open_values(mine, task)[order]
        inputs = self._open(state, helpers, instances, is_labelled=bool(helpers))
        out = state.deal.find_member(instances)
        found = []
        for member in range(self.members):
            seen = out != member if len(mine) >= FEWEST_TRUSTED else np.ones(len(out), dtype=bool)
            seed = hash_of("estimator", state.seed, task, member, len(helpers)) % 2**32
            make = functools.partial(_prepare, self._estimators[task], target.kind, seed)
            found.append(_fit_model(target, make, inputs[seen], values[seen]))
        return found

    def _fit_with_help(self, state: SklearnState, task: str) -> None:
        """Second models of a task, kept if they are better than the first on labels that they did
        not see."""
        state.helpers.pop(task, None)
        helpers = tuple(other for other in self.tasks if other in state.first and other != task)
        mine, target = state.labels[task], self.targets[task]
        if not 0 < len(helpers) <= MOST_HELPERS or len(mine) < FEWEST_TRUSTED:
            return
        instances = np.sort(mine.instances)
        values = self.open_values(mine, task)[np.argsort(mine.instances)]
        models = self._fit(state, task, helpers)
        alone = self._answer_unseen(state, state.first[task], (), instances)
        helped = self._answer_unseen(state, models, helpers, instances)
        errors = [list_errors(target, said, values).mean() for said in (alone, helped)]
        if errors[1] < errors[0]:
            state.second[task], state.helpers[task] = models, helpers

    def save(self, state: SklearnState, folder: Path) -> None:
        """The rows that it was fitted to: the models themselves could be saved as code alone."""
        everyone, labels = state.deal.instances, {}
        for task in self.tasks:
            mine = state.labels[task]
            order = np.argsort(mine.instances)
            rows = np.searchsorted(everyone, mine.instances[order]).astype(np.int64)
            labels[task] = TaskLabels(rows, self.open_values(mine, task)[order])
        inputs = np.asarray(self.data.inputs(everyone))
        version = importlib.import_module("sklearn").__version__
        TrainingRows(inputs, state.deal.left_out, labels, state.seed, version).save(folder)

    def load(self, folder: Path) -> SklearnState:
        """A state like the one that was saved, ready to predict: it is fitted again to the same
        rows, which takes as long as its training. Raises InputError unless everything fits."""
        width = self.data.inputs(np.zeros(min(1, self.data.size), dtype=np.int64)).shape[1]
        found = read_training_rows(folder, self.data.targets, width, self.members)
        here = importlib.import_module("sklearn").__version__
        if found.version != here:
            what = (
                f"was fitted by scikit-learn {found.version}; {here}, which is here, may fit it"
                f" otherwise: pip install scikit-learn=={found.version}"
            )
            raise InputError([Mistake(str(folder), what)])
        data = found.open(self.data.targets)
        everyone = np.arange(data.size, dtype=np.int64)
        twin = SklearnLearner(
            data, Split(everyone, everyone[:0], everyone[:0]), self._estimators, self.members
        )
        dealt = Deal(everyone, found.left_out, self.members)
        state = SklearnState(Labels(found.labels), found.seed, dealt, frozenset())
        tasks = [task for task in self.tasks if len(found.labels[task])]
        state = twin.step(state, tasks)
        for task in self.tasks:  # while its labels are there
            twin.find_trust(state, task)
            twin.find_constant(state, task)
        return state


def _assign(estimator: Any, targets: Sequence[Target]) -> dict[str, Any]:
    """Of each task its estimator; raises InputError with every task that it does not fit."""
    given = estimator if isinstance(estimator, Mapping) else {}
    wrong, found = [], {}
    for target in targets:
        mine = given.get(target.name) if isinstance(estimator, Mapping) else estimator
        where = f"estimator of {target.name!r}"
        if mine is None:
            wrong.append(Mistake(where, "is missing; give one for each task"))
        elif isinstance(mine, str):
            wrong += [Mistake(where, what)] if (what := check_estimator(mine)) else []
        else:
            wrong += [Mistake(where, what)] if (what := _check_model(mine, target)) else []
        found[target.name] = mine
    if wrong:
        raise InputError(wrong)
    return found


def _check_model(model: Any, target: Target) -> str:
    """Why a model of the user's own can't be one for such a task; "" if it can."""
    lacking = [verb for verb in ("fit", "predict", "get_params") if not hasattr(model, verb)]
    name = type(model).__name__
    if lacking or isinstance(model, type):
        what = "is a class; give an object of it" if isinstance(model, type) else ""
        return what or f"{name} has no {', '.join(lacking)}; give a model as scikit-learn has them"
    base = importlib.import_module("sklearn.base")
    if target.kind == "regression" and base.is_classifier(model):
        return f"{name} tells classes, and the task is a number; give a regressor"
    if target.kind != "regression" and base.is_regressor(model):
        return f"{name} tells numbers, and the task has classes; give a classifier"
    return ""


def _prepare(estimator: Any, kind: str, seed: int, count: int, classes: int) -> Any:
    """A model that is still to be fitted, whose random numbers begin at this seed."""
    if isinstance(estimator, str):
        model = make_estimator(estimator, kind, count, classes)
    else:
        model = importlib.import_module("sklearn.base").clone(estimator)
    seeds = [key for key in model.get_params() if key.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(seeds, seed)) if seeds else model


def _fit_model(target: Target, make: Any, inputs: AnyArray, values: AnyArray) -> FittedModel:
    if target.kind == "regression":
        known = ~np.isnan(values)
        wanted = values[known].astype(np.float64)
        mean = float(wanted.mean()) if len(wanted) else 0.0
        spread = max(float(wanted.std()), 1e-6) if len(wanted) else 1.0
        fits = _fit_one(make, inputs[known], (wanted - mean) / spread, 1)
        return FittedModel(target, (fits[0],), (fits[1],), mean, spread)
    if target.kind == "multilabel":
        columns = []
        for column in values.T:
            known = ~np.isnan(column)
            columns.append(_fit_one(make, inputs[known], (column[known] > 0.5).astype(np.int64), 2))
        models, constants = zip(*columns, strict=True)
        return FittedModel(target, models, constants)
    # a probable class is taken for the class: most models know no probabilities to learn from
    wanted = values.argmax(axis=1) if values.ndim == 2 else values.astype(np.int64)
    fits = _fit_one(make, inputs, wanted, len(np.unique(wanted)))
    return FittedModel(target, (fits[0],), (fits[1],))


def _fit_one(make: Any, inputs: AnyArray, wanted: AnyArray, classes: int) -> tuple[Any, float]:
    """A fitted model, or none and the constant that there is to learn."""
    if len(np.unique(wanted)) < 2:
        return None, float(wanted[0]) if len(wanted) else 0.0
    model = make(len(wanted), classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end before they converge, which will do
        try:
            return model.fit(inputs, wanted), 0.0
        except (ValueError, TypeError, ArithmeticError) as error:
            message = cut(" ".join(str(error).split()), 200)
            what = f"{type(model).__name__} can't be fitted to {len(wanted)} labels: {message}"
            raise InputError([Mistake("learner", what)]) from error


@contextmanager
def one_thread() -> Iterator[None]:
    """In here libraries use one thread: sums of several would round differently."""
    with _find_threads().limit(limits=1):
        yield


@functools.cache
def _find_threads() -> Any:
    importlib.import_module("sklearn.ensemble")  # so that its own threads are there to be found
    return importlib.import_module("threadpoolctl").ThreadpoolController()
