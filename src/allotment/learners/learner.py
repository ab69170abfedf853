"""The seam between planning and training: a learner is anything with these few verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import Dataset
from allotment.data.labels import Labels, Split, shuffle
from allotment.machine import settled
from allotment.plugins import Registry

State = Any
"""whatever a learner keeps between steps; nothing but the learner looks into it"""


@dataclass(frozen=True)
class Measure:
    """How good a task is: its metric and its loss on the validation labels."""

    metric: float
    loss: float
    higher_is_better: bool
    """of the metric; a loss is better when lower"""
    skill: float = float("nan")
    """how well answers go with what sets instances apart, whatever the metric: 0 is the best answer
    that is the same for all, 1 the labels themselves; not a number where nobody can tell"""
    skill_error: float = float("nan")
    """standard deviation of the skill of answers by chance, on labels like these"""

    def gain_over(self, before: Measure) -> float:
        """Relative gain in % (the paper's D_i): positive is better, whichever way the metric
        points."""
        sign = 1.0 if self.higher_is_better else -1.0
        return (
            sign * (self.metric - before.metric) / abs(before.metric) * 100.0
            if before.metric
            else float("nan")
        )


@runtime_checkable
class Learner(Protocol):
    """Trains the user's kind of model on some labels.

    The contract, which `allotment.learners.conformance.LearnerTests` checks:

    - `start` depends on labels and seed only. So does everything after it: the same calls give the
      same bytes, whatever else is trained beside.
    - `step` does one step of training on one mini-batch of each task named, with their gradients
      added; a task named twice gives two mini-batches. Mini-batch t of task j depends on (seed, j,
      t) only, whatever the other tasks are, so that two arms of a comparison see the same data:
      `allotment.learners.batches.mini_batches` draws them so. It may use up its state: go on with
      what it returns.
    - `fork` copies everything that training changes: weights, momentum, batch-norm statistics,
      random streams. Training the copy leaves the original as it is, and the other way round.
    - `score` and `predict` change nothing that training can notice. `score` reads validation labels
      only.
    - A task without a single label may be left out of every step; it can be scored all the same.
      That goes for all tasks at once: `start(Labels({}), seed)` gives a state that can be scored
      and asked for answers.
    - Labels are (instance, task) pairs. Where `TaskLabels.values` is given, these stand for the
      labels of the instances marked as pseudo; all others are the data's own, which the learner
      opens itself. One class of several is given either as probabilities, as `predict` answers them
      (floating point), or as the class itself (whole numbers, with no axis of classes); every other
      kind of label is given as `predict` answers it.

    Optional, used where present:

    - `probe(state, arms, steps)`: a mapping from each arm to where it leads, the same but for
      rounding as by forks and steps, and `probe_gradients(arms, steps)`: of how many mini-batches
      it computes gradients for that.
    - `with_validation(instances)`: the same learner, sharing its data, scored on the labels of
      these instances only (of an array: all that are known; of `Labels`: those of each task), and
      `validation`: the instances that it is scored on. A state of one is a state of the other, and
      training does not notice the difference.
    - `score_constant(state, task)`: the score of the best answer that is the same for every
      instance and pixel, by the labels of a state. What is no better has learnt nothing; left out,
      states before the first step stand for it.
    - `score_gradients(task)`: how much work it is to score a task, in gradients of one mini-batch.
    - `stack(runs)`: the states at the end of many whole trainings `(labels, seed)`, in their order:
      the same but for rounding as one after the other. They are scored and asked for answers, and
      not trained on.
    - `start_many(runs)`: a state that steps on all of these trainings at once, as `stack` does
      inside, or None where they do not go together; a stack is timed by a few steps of it.
    - `trains_whole`: True where the only step is a whole training: it goes over all labels of the
      tasks named, once more changes nothing, and nothing can look a few steps ahead.
    - `find_patience(labels)`: the `Patience` of a training on these labels, or None for one that
      ends with its last step; only with `with_validation`.
    - `imply(labels)`: the labels that a training on these really has, where some follow from
      others.
    - `split`: its `allotment.data.labels.Split`; where no `pool` is given, `taba` lets its ensemble
      answer for `train`.
    """

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of its tasks."""

    def steps(self, labels: Labels) -> int:
        """How many steps a training on these labels takes."""

    def start(self, labels: Labels, seed: int) -> State:
        """A state from which nothing has been learnt yet."""

    def step(self, state: State, tasks: Sequence[str]) -> State:
        """One step on a mini-batch of each of these tasks."""

    def fork(self, state: State) -> State:
        """A copy that goes its own way."""

    def score(self, state: State, task: str) -> Measure:
        """How good the task is on the validation labels."""

    def predict(self, state: State, task: str, instances: NDArray[np.int64]) -> NDArray[Any]:
        """Answers for any instances, in floating point; none of them depends on what else is asked.

        One class of several: probabilities (n, classes, ...), which sum to 1 over the classes and
        are never the class itself. Any of several classes: a probability for each (n, classes). All
        else: values in the form of the labels.
        """


LEARNER_VERBS = ("tasks", "steps", "start", "step", "fork", "score", "predict")
"""what every learner has"""
BUILT_IN = "built-in"
"""the learner unless somebody says"""
MakeLearner = Callable[[Dataset, Split], Learner]
"""what a package offers: it makes a learner of these data, which trains on `split.train` and is
scored on `split.validation`"""


def _load_built_in() -> MakeLearner:
    from allotment.learners.torch_learner import TorchLearner

    return TorchLearner


LEARNERS: Registry[MakeLearner] = Registry(
    "learners", "learner", ("__call__",), {BUILT_IN: _load_built_in}
)

Watch = Callable[[int, State], None]


def labelled(learner: Learner, labels: Labels) -> tuple[str, ...]:
    """The tasks that a training on these labels steps on."""
    if hasattr(learner, "imply"):
        labels = learner.imply(labels)
    return tuple(task for task in learner.tasks if len(labels[task]))


@dataclass(frozen=True)
class Patience:
    """Stop when the mean validation loss has not fallen by `least` (a share of it) for `looks`
    looks in a row."""

    every: int = 20
    looks: int = 5
    least: float = 0.002
    after: int = 0
    """steps before the first look"""
    longer: int = 0
    """steps that may follow those of a whole training"""


HELD_BACK = 10
"""one in so many labels of a training that goes on until it has converged are kept to tell when
that is: those that score it must not"""


def hold_back(labels: Labels, seed: int) -> tuple[Labels, Labels]:
    """The labels to train on, and those by which it is told when to stop: some of every task that
    has enough, none of them predicted."""
    kept, held = {}, {}
    for task, mine in labels.items():
        real = mine.instances[~mine.is_pseudo]
        chosen = shuffle(np.sort(real), "patience", seed, task)[: len(real) // HELD_BACK]
        is_held = np.isin(mine.instances, chosen)
        kept[task], held[task] = mine.keep(~is_held), mine.keep(is_held)
    return Labels(kept), Labels(held)


def _is_patient(learner: Learner, labels: Labels) -> bool:
    """Whether a training goes on until it has converged, and there are labels to tell by."""
    is_enough = any(len(mine) >= HELD_BACK for mine in labels.values())
    return (
        is_enough
        and hasattr(learner, "find_patience")
        and learner.find_patience(labels) is not None
    )


@settled(load=False)
def train(
    learner: Learner,
    labels: Labels,
    seed: int,
    *,
    patience: Patience | None = None,
    watch: Watch | None = None,
) -> State:
    """A whole training: every step on every task that has labels. It ends by the `patience` that is
    given, which looks at the validation labels, or else by the learner's own, for which some of the
    labels are held back."""
    tasks = labelled(learner, labels)
    if patience is None and _is_patient(learner, labels):
        labels, held = hold_back(labels, seed)
        patience = learner.find_patience(labels)  # type: ignore[attr-defined]
        learner = learner.with_validation(held)  # type: ignore[attr-defined]
    state = learner.start(labels, seed)
    best, since = float("inf"), 0
    steps = learner.steps(labels) + (0 if patience is None else patience.longer)
    for step in range(steps if tasks else 0):
        state = learner.step(state, tasks)
        if watch is not None:
            watch(step + 1, state)
        if patience is None or step < patience.after or (step + 1) % patience.every:
            continue
        loss = float(np.nanmean([learner.score(state, task).loss for task in tasks]))
        if loss < best * (1 - patience.least):
            best, since = loss, 0
        elif (since := since + 1) >= patience.looks:
            break
    return state


@settled(load=False)
def measure(learner: Learner, state: State) -> dict[str, Measure]:
    """The score of every task."""
    return {task: learner.score(state, task) for task in learner.tasks}


Arms = Mapping[str, Sequence[str]]
"""by name, the tasks of each step of an arm"""


@settled(load=False)
def probe(learner: Learner, state: State, arms: Arms, steps: int) -> Mapping[str, State]:
    """The state after `steps` steps of each arm, all from the same state and on the same
    mini-batches.

    A learner may make each end only when it is asked for, since each is a model: go through
    `items()` once.
    """
    if hasattr(learner, "probe"):
        found: Mapping[str, State] = learner.probe(state, arms, steps)
        return found
    return {
        name: follow(learner, learner.fork(state), tasks, steps) for name, tasks in arms.items()
    }


@settled(load=False)
def follow(learner: Learner, state: State, tasks: Sequence[str], steps: int) -> State:
    """The state after so many steps on these tasks; it uses up the one given."""
    for _ in range(steps):
        state = learner.step(state, tasks)
    return state


def count_gradients(learner: Learner, arms: Arms, steps: int) -> int:
    """Of how many mini-batches a probe computes gradients."""
    if hasattr(learner, "probe_gradients"):
        return int(learner.probe_gradients(arms, steps))
    return steps * sum(map(len, arms.values()))


def count_scoring(learner: Learner, arms: Arms) -> float:
    """The work of scoring every arm for each of its tasks, in gradients of one mini-batch; 0 if
    nobody knows."""
    if not hasattr(learner, "score_gradients"):
        return 0.0
    return float(
        sum(learner.score_gradients(task) for tasks in arms.values() for task in set(tasks))
    )


@settled(load=False)
def train_many(learner: Learner, runs: Sequence[tuple[Labels, int]]) -> list[State]:
    """Many whole trainings (labels, seed), stacked into one where the learner can."""
    if hasattr(learner, "stack"):
        return list(learner.stack(runs))
    return [train(learner, labels, seed) for labels, seed in runs]
