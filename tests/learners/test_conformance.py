"""The tests of learners, tested: a good learner passes all of them, and every way of being bad
fails at its own."""

from __future__ import annotations

import copy
import functools
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from allotment.data.dataset import Target
from allotment.data.labels import Labels, TaskLabels
from allotment.learners.batches import batch_places, mini_batches
from allotment.learners.conformance import LearnerTests
from allotment.learners.learner import Measure, follow

INPUTS = np.random.default_rng(2).normal(size=(300, 6))
TRUTH: dict[str, np.ndarray] = {
    "kind": INPUTS[:, :3].argmax(axis=1),
    "size": INPUTS[:, 1:4].sum(axis=1),
    "both": (INPUTS[:, 2:4] > 0).astype(float),
}
VALIDATION = np.arange(200, 300)
LABELS = Labels({"kind": range(0, 60), "size": range(40, 90), "both": range(70, 130)})
CLASSES = {"kind": 3}
WIDTH = 5


@dataclass
class Net:
    """A linear trunk for all tasks and a linear head for each, with momentum."""

    weights: dict[str, np.ndarray]
    momentum: dict[str, np.ndarray]
    labels: Labels
    seed: int
    done: int = 0
    stream: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))


class Good:
    """Keeps the contract. Its parts are methods so that each can be broken by itself."""

    tasks = ("kind", "size", "both")
    rate = 0.05
    validation = VALIDATION

    def steps(self, labels: Labels) -> int:
        return 30

    def start(self, labels: Labels, seed: int) -> Net:
        rng = np.random.default_rng(seed)
        sizes = {"trunk": (6, WIDTH), "kind": (WIDTH, 3), "size": (WIDTH, 1), "both": (WIDTH, 2)}
        weights = {name: rng.normal(scale=0.4, size=size) for name, size in sizes.items()}
        still = {name: np.zeros(size) for name, size in sizes.items()}
        return Net(weights, still, labels, seed, stream=np.random.default_rng(seed))

    def batches(self, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
        return mini_batches(state.labels, tasks, 8, state.done, state.seed)

    def step(self, state: Net, tasks: Sequence[str]) -> Net:
        slopes = {name: np.zeros_like(weight) for name, weight in state.weights.items()}
        for task, batch in self.batches(state, tasks):
            inputs = INPUTS[batch.instances]
            error = (self.answer(state, task, inputs) - self.wanted(task, batch)) / len(inputs)
            slopes[task] += (inputs @ state.weights["trunk"]).T @ error
            slopes["trunk"] += inputs.T @ (error @ state.weights[task].T)
        for name, slope in slopes.items():
            state.momentum[name] = 0.8 * state.momentum[name] + slope
            state.weights[name] = state.weights[name] - self.rate * state.momentum[name]
        state.done += 1
        return state

    def wanted(self, task: str, batch: TaskLabels) -> np.ndarray:
        values = batch.fill(TRUTH[task].__getitem__)
        if task == "kind" and values.ndim == 1:
            values = np.eye(3)[values]
        return values[:, None] if values.ndim == 1 else values

    def answer(self, state: Net, task: str, inputs: np.ndarray) -> np.ndarray:
        out = inputs @ state.weights["trunk"] @ state.weights[task]
        if task == "size":
            return out
        if task == "both":
            return 1 / (1 + np.exp(-out))
        odds = np.exp(out - out.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def fork(self, state: Net) -> Net:
        return copy.deepcopy(state)

    def predict(self, state: Net, task: str, instances: np.ndarray) -> np.ndarray:
        found = self.answer(state, task, INPUTS[instances])
        return found[:, 0] if task == "size" else found

    def score(self, state: Net, task: str) -> Measure:
        wanted = self.wanted(task, TaskLabels(self.validation))
        loss = float(np.square(self.answer(state, task, INPUTS[self.validation]) - wanted).mean())
        return Measure(metric=1 - loss, loss=loss, higher_is_better=True)


class TestGood(LearnerTests):
    classes = CLASSES

    def make(self) -> tuple[Good, Labels]:
        return Good(), LABELS


class WholeBatches(Good):
    """Draws nothing at random: first weights are fixed, and every step is on all labels."""

    def start(self, labels: Labels, seed: int) -> Net:
        return super().start(labels, 0)

    def batches(self, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
        return [(task, pick(state, task, np.arange(len(state.labels[task])))) for task in tasks]


class TestWholeBatches(LearnerTests):
    classes = CLASSES
    seeded = False

    def make(self) -> tuple[Good, Labels]:
        return WholeBatches(), LABELS


class Able(Good):
    """Has the optional verbs as well."""

    def probe(self, state: Net, arms: Mapping[str, Sequence[str]], steps: int) -> dict[str, Net]:
        return {name: follow(self, self.fork(state), tasks, steps) for name, tasks in arms.items()}

    def with_validation(self, instances: np.ndarray) -> Able:
        twin = copy.copy(self)
        twin.validation = instances
        return twin


class TestAble(LearnerTests):
    classes = CLASSES

    def make(self) -> tuple[Good, Labels]:
        return Able(), LABELS


def pick(state: Net, task: str, ranks: np.ndarray) -> TaskLabels:
    """Labels of a task by their rank among its instances."""
    return at(state.labels[task], np.argsort(state.labels[task].instances)[ranks])


def at(mine: TaskLabels, places: np.ndarray) -> TaskLabels:
    return TaskLabels(
        *(
            None if part is None else part[places]
            for part in (mine.instances, mine.values, mine.pseudo)
        )
    )


# --- ways of being bad ---


def broken(verb: str, change: Callable[..., Any], of: type[Good] = Good) -> type[Good]:
    """The good learner but for one method: `change` is given the good one and what that would be
    given."""
    good = getattr(of, verb)
    return type(
        "Broken", (of,), {verb: lambda self, *given: change(functools.partial(good, self), *given)}
    )


def answering(task: str, change: Callable[[np.ndarray], np.ndarray]) -> type[Good]:
    """The good learner, with its answers for one task changed."""
    return broken(
        "predict",
        lambda good, state, of, who: (
            change(good(state, of, who)) if of == task else good(state, of, who)
        ),
    )


class CountsLearners(Good):
    made = 0

    def __init__(self) -> None:
        CountsLearners.made += 1
        self.number = CountsLearners.made

    def start(self, labels: Labels, seed: int) -> Net:
        return super().start(labels, seed + self.number)


class KeepsLabels(Good):
    labels: Labels

    def start(self, labels: Labels, seed: int) -> Net:
        self.labels = labels
        return super().start(labels, seed)

    def step(self, state: Net, tasks: Sequence[str]) -> Net:
        return super().step(replace(state, labels=self.labels), tasks)


class GlobalStream(Good):
    """Seeded at the start, but there is only one."""

    def start(self, labels: Labels, seed: int) -> Net:
        np.random.seed(seed)
        return super().start(labels, seed)

    def batches(self, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
        return [
            (task, pick(state, task, np.random.choice(len(state.labels[task]), 8)))
            for task in tasks
        ]


class MissesForks(Good):
    fork = None  # type: ignore[assignment]


def one_stream(_: Any, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
    """From a stream that belongs to the state and is forked with it, but serves all tasks."""
    return [
        (task, pick(state, task, state.stream.choice(len(state.labels[task]), 8))) for task in tasks
    ]


def numbered_together(_: Any, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
    found = []
    for at, task in enumerate(tasks):
        found += mini_batches(state.labels, [task], 8, state.done * len(tasks) + at, state.seed)
    return found


def as_listed(good: Any, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
    """The places that labels have in the order of their instances, taken in the order of the
    list."""
    found = []
    for task, batch in good(state, tasks):
        mine = state.labels[task]
        found.append((task, at(mine, np.searchsorted(np.sort(mine.instances), batch.instances))))
    return found


def any_instances(_: Any, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
    """As many as are labelled, but not those."""
    others = Labels({task: range(len(state.labels[task])) for task in tasks})
    return mini_batches(others, tasks, 8, state.done, state.seed)


def seeded_by_all(_: Any, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
    return mini_batches(
        state.labels, tasks, 8, state.done, state.seed + sum(state.labels.counts.values())
    )


def same_again(good: Any, state: Net, tasks: Sequence[str]) -> list[tuple[str, TaskLabels]]:
    return [found for task in tasks for found in good(state, [task])]


def spent(good: Any, state: Net, task: str) -> Measure:
    state.done += 1
    return good(state, task)


def traced(good: Any, state: Net, task: str, instances: np.ndarray) -> np.ndarray:
    state.momentum["trunk"] = state.momentum["trunk"] + 0.01
    return good(state, task, instances)


def once_each(
    good: Any, state: Net, arms: Mapping[str, Sequence[str]], steps: int
) -> dict[str, Net]:
    return good(state, {name: list(dict.fromkeys(tasks)) for name, tasks in arms.items()}, steps)


def first_again(
    good: Any, state: Net, arms: Mapping[str, Sequence[str]], steps: int
) -> dict[str, Net]:
    """A second mini-batch of a task is its first."""
    twice = type(
        "Twice",
        (Able,),
        {"batches": lambda self, *given: same_again(super(Able, self).batches, *given)},
    )()
    return twice.probe(state, arms, steps)


def still(good: Any, state: Net, arms: Mapping[str, Sequence[str]], steps: int) -> dict[str, Net]:
    """Looks ahead without the momentum that there is, and gives ends that have none."""
    return good(
        replace(state, momentum={name: 0 * part for name, part in state.momentum.items()}),
        arms,
        steps,
    )


def forgets_at_the_end(
    good: Any, state: Net, arms: Mapping[str, Sequence[str]], steps: int
) -> dict[str, Net]:
    return {name: replace(end, done=0) for name, end in good(state, arms, steps).items()}


def uses_up(good: Any, state: Net, arms: Mapping[str, Sequence[str]], steps: int) -> dict[str, Net]:
    found = good(state, arms, steps)
    Able().step(state, ["kind"])
    return found


def scored_here(good: Any, instances: np.ndarray) -> Able:
    """Changes the learner itself."""
    good.args[0].validation = instances
    return good(instances)


def trained_otherwise(good: Any, instances: np.ndarray) -> Able:
    twin = good(instances)
    twin.rate = 0.05 + len(instances) / 10_000
    return twin


def zero_classes(good: Any, task: str, batch: TaskLabels) -> np.ndarray:
    classes = batch.values is not None and batch.values.dtype.kind == "i"
    return good(task, replace(batch, values=0 * batch.values) if classes else batch)


NAN = float("nan")
ANYHOW = np.random.default_rng(1)
ALONE = True
"""no other test fails"""

BAD: dict[str, list[tuple[type[Good], str] | tuple[type[Good], str, bool]]] = {
    "it_states_its_tasks_and_steps": [
        (MissesForks, "a verb of the protocol is missing"),
        (broken("steps", lambda _, labels: 0), "at least one step"),
    ],
    "the_same_seed_gives_the_same_bytes": [
        (
            broken("start", lambda good, labels, seed: good(labels, ANYHOW.integers(1000))),
            "two different trainings",
        ),
    ],
    "another_learner_of_the_same_make_gives_the_same_bytes": [
        (CountsLearners, "between two learners", ALONE)
    ],
    "another_seed_gives_another_training": [
        (broken("start", lambda good, labels, seed: good(labels, 0)), "seeded = False", ALONE),
    ],
    "other_labels_give_another_training": [
        (broken("batches", any_instances), "labelled for 'kind'")
    ],
    "the_order_in_which_labels_are_listed_does_not_matter": [
        (broken("batches", as_listed), "the other way round", ALONE),
    ],
    "trainings_side_by_side_do_not_disturb_each_other": [
        (KeepsLabels, "share something", ALONE),
        (GlobalStream, "share something"),
    ],
    "training_changes_the_answers": [
        (type("Idle", (Good,), {"rate": 0.0}), "steps change nothing")
    ],
    "a_whole_training_learns_something": [
        (type("Backwards", (Good,), {"rate": -0.001}), "no task's validation loss fell", ALONE),
    ],
    "a_second_step_of_a_whole_training_changes_nothing": [
        (type("Long", (Good,), {"trains_whole": True}), "a whole training is one step"),
        (
            type("Eager", (Good,), {"trains_whole": True, "steps": lambda self, labels: 1}),
            "a second step changes the answers",
        ),
    ],
    "a_step_learns_from_the_tasks_named_and_no_other": [
        (
            broken("step", lambda good, state, _: good(state, list(state.labels))),
            "alone learns from labels of 'size'",
        ),
    ],
    "a_task_named_twice_gives_two_mini_batches": [
        (
            broken("step", lambda good, state, tasks: good(state, list(dict.fromkeys(tasks)))),
            "counts once",
            ALONE,
        ),
        (broken("batches", same_again), "its first again", ALONE),
    ],
    "mini_batches_do_not_depend_on_other_tasks": [
        (GlobalStream, "takes other labels"),
        (broken("batches", one_stream), "takes other labels", ALONE),
        (broken("batches", numbered_together), "takes other labels", ALONE),
        (broken("batches", seeded_by_all), "takes other labels", ALONE),
    ],
    "training_a_fork_leaves_the_original_alone": [
        (
            broken("fork", lambda good, state: replace(good(state), weights=state.weights)),
            "changed the original",
        ),
        (
            broken("fork", lambda good, state: good(replace(state, weights=dict(state.momentum)))),
            "answers otherwise",
        ),
    ],
    "a_fork_goes_on_as_the_original_would": [
        (
            broken("fork", lambda good, state: good(replace(state, done=0))),
            "lacks something",
            ALONE,
        ),
        (
            broken(
                "fork",
                lambda good, state: replace(
                    good(state), momentum={n: 0 * m for n, m in state.momentum.items()}
                ),
            ),
            "momentum",
            ALONE,
        ),
    ],
    "forks_scores_and_answers_do_not_disturb_training": [
        (
            broken("fork", lambda good, state: replace(good(state), momentum=state.momentum)),
            "it was looked at",
        ),
        (broken("score", spent), "it was looked at", ALONE),
        (broken("predict", traced), "it was looked at", ALONE),
    ],
    "scores_are_numbers_with_a_direction": [
        (
            broken("score", lambda good, *given: replace(good(*given), metric=ANYHOW.random())),
            "scored twice",
            ALONE,
        ),
        (
            broken("score", lambda good, *given: replace(good(*given), metric=NAN)),
            "metric=nan",
            ALONE,
        ),
        (
            broken(
                "score",
                lambda good, state, task: replace(
                    good(state, task), higher_is_better=state.done > 0
                ),
            ),
            "turned round",
            ALONE,
        ),
    ],
    "it_answers_for_any_instances": [
        (answering("kind", lambda found: found.T), r"shape \(3, 9\) for 9 instances"),
        (
            answering("kind", lambda found: found.argmax(axis=1)),
            "classes are answered as probabilities",
        ),
        (answering("kind", lambda found: found.max(axis=1)), "not probabilities of 3 classes"),
        (answering("kind", lambda found: found / found[:, :1]), "sum to 1"),
        (answering("size", lambda found: np.where(found > 0, found, NAN)), "not a number"),
        (answering("size", lambda found: found - found.mean()), "depends on its neighbours", ALONE),
        (answering("both", lambda found: found[:, : len(found) - 1]), "depends on how many"),
    ],
    "a_task_without_labels_is_allowed": [
        (
            broken(
                "score",
                lambda good, state, task: replace(
                    good(state, task), loss=len(state.labels[task]) or NAN
                ),
            ),
            "no score without labels",
        ),
    ],
    "no_labels_at_all_are_allowed": [
        (
            broken(
                "start",
                lambda good, labels, seed: (
                    good(labels, seed) if max(labels.counts.values()) else None
                ),
            ),
            "empty",
            ALONE,
        ),
        (
            broken(
                "predict",
                lambda good, state, *given: good(state, *given) * (1 if len(state.labels) else NAN),
            ),
            "not a number",
            ALONE,
        ),
    ],
    "a_probe_leads_where_forks_and_steps_do": [
        (broken("probe", once_each, Able), "leads elsewhere", ALONE),
        (broken("probe", first_again, Able), "leads elsewhere", ALONE),
        (broken("probe", still, Able), "leads elsewhere", ALONE),
        (
            broken("probe", lambda good, state, arms, steps: good(state, arms, 1), Able),
            "2 step",
            ALONE,
        ),
        (broken("probe", forgets_at_the_end, Able), "does not go on", ALONE),
        (broken("probe", uses_up, Able), "probing changed the state", ALONE),
        (
            broken(
                "probe",
                lambda good, state, arms, steps: good(state, {"both": ["kind"]}, steps),
                Able,
            ),
            "answers",
        ),
    ],
    "a_learner_can_be_scored_on_other_instances": [
        (
            broken("with_validation", lambda good, instances: good(VALIDATION), Able),
            "makes no difference",
            ALONE,
        ),
        (
            broken("with_validation", lambda good, instances: good(instances[:9]), Able),
            "on the same",
            ALONE,
        ),
        (broken("with_validation", scored_here, Able), "scored otherwise", ALONE),
        (broken("with_validation", trained_otherwise, Able), "a training depends", ALONE),
    ],
    "given_values_stand_for_the_labels": [
        (
            broken("wanted", lambda good, task, batch: good(task, TaskLabels(batch.instances))),
            "values of 'kind' are ignored",
            ALONE,
        ),
    ],
    "only_values_marked_as_pseudo_count": [
        (
            broken("wanted", lambda good, task, batch: good(task, replace(batch, pseudo=None))),
            "values of 'kind' count that are not marked",
            ALONE,
        ),
    ],
    "given_classes_are_certain_probabilities": [
        (broken("wanted", zero_classes), "teach something else", ALONE)
    ],
}
ROWS = [(check, *row[:2]) for check, rows in BAD.items() for row in rows]
LONE = [(check, row[0]) for check, rows in BAD.items() for row in rows if len(row) == 3]
CHECKS = tuple(name.removeprefix("test_") for name in dir(LearnerTests) if name.startswith("test_"))


def checks_of(learner: type[Good], **settings: Any) -> LearnerTests:
    """The tests of a learner, outside pytest's sight."""
    body = {"classes": CLASSES, "make": lambda self: (learner(), LABELS), **settings}
    return type("Tests", (LearnerTests,), body)()


def test_every_check_has_a_learner_that_fails_it() -> None:
    assert set(BAD) == set(CHECKS)


@pytest.mark.parametrize(("check", "learner", "words"), ROWS)
def test_a_bad_learner_fails_where_it_is_bad(check: str, learner: type[Good], words: str) -> None:
    with pytest.raises((AssertionError, ValueError), match=words):
        getattr(checks_of(learner), f"test_{check}")()


@pytest.mark.parametrize(("check", "learner"), LONE)
def test_what_only_one_check_sees(check: str, learner: type[Good]) -> None:
    """That check could not be left out, and the learner is not blamed for what it does well."""
    failed = []
    for each in CHECKS:
        try:
            getattr(checks_of(learner), f"test_{each}")()
        except (AssertionError, ValueError):
            failed.append(each)
    assert failed == [check]


def test_a_learner_that_draws_at_random_may_not_deny_it() -> None:
    with pytest.raises(AssertionError, match="the seed makes a difference"):
        checks_of(Good, seeded=False).test_another_seed_gives_another_training()


def test_classes_are_asked_of_the_targets_of_a_learner() -> None:
    targets = {
        "kind": Target("kind", "classification", ("a", "b", "c")),
        "size": Target("size", "regression"),
    }
    odds = answering("kind", lambda found: found / found[:, :1])
    # nobody knows that these are classes
    checks_of(odds, classes=None).test_it_answers_for_any_instances()
    told = type("WithTargets", (odds,), {"targets": targets})
    with pytest.raises(AssertionError, match="sum to 1"):
        checks_of(told, classes=None).test_it_answers_for_any_instances()


def test_classes_of_no_task_are_named() -> None:
    with pytest.raises(AssertionError, match="`classes` names a task"):
        checks_of(Good, classes={"king": 3}).test_it_states_its_tasks_and_steps()


def test_exchanged_labels_are_noticed_when_they_come_up() -> None:
    """What the tests make out from outside, against the mini-batches themselves."""
    learner, tests = Good(), checks_of(Good)
    for task in learner.tasks:
        given = tests._given(learner, LABELS, task)
        found = tests._noticed(learner, LABELS, task, given, learner.tasks, 4, seed=5)
        ranks = np.argsort(np.argsort(given.instances))
        pairs = [
            np.flatnonzero((each.values != given.values).reshape(len(given), -1).any(axis=1))
            for each in tests._swapped(given)
        ]
        batches = [
            set(batch_places(len(given), 8, number, 5, task).tolist()) for number in range(4)
        ]
        true = [
            next((at for at, batch in enumerate(batches) if batch & set(ranks[pair].tolist())), 4)
            for pair in pairs
        ]
        assert found == true
        assert len(set(found)) > 2


def test_the_tests_need_no_torch() -> None:
    script = (
        "import sys, allotment.learners.conformance, allotment.learners.batches; print('torch' in"
        " sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"
