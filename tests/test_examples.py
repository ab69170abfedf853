"""The examples of learners of one's own: short, true to the contract, and able to learn."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from allotment.data.labels import Labels, TaskLabels
from allotment.learners.conformance import LearnerTests
from allotment.learners.learner import Learner, labelled, train

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = ("own_torch_loop", "scikit_learn", "text_model")
OWN_BATCHES = ("own_torch_loop", "scikit_learn")
"""those that draw their mini-batches themselves: the second thing in their state is a random stream for each task"""
MOST_LINES = 40

each_example = pytest.mark.parametrize("name", EXAMPLES)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def load(name: str) -> ModuleType:
    """The example, run anew: its data must come out the same each time."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(name: str) -> tuple[Learner, Labels]:
    return load(name).make()


class TestOwnTorchLoop(LearnerTests):
    def make(self) -> tuple[Learner, Labels]:
        return make("own_torch_loop")


class TestScikitLearn(LearnerTests):
    def make(self) -> tuple[Learner, Labels]:
        return make("scikit_learn")


class TestTextModel(LearnerTests):
    def make(self) -> tuple[Learner, Labels]:
        return make("text_model")


def test_every_example_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES)


@each_example
def test_an_example_is_short(name: str) -> None:
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    docstring = ast.parse(source).body[0]
    assert ast.get_docstring(ast.parse(source))
    lines = [line for line in source.splitlines()[docstring.end_lineno :] if line.strip()]
    assert len(lines) <= MOST_LINES


@each_example
def test_training_improves_every_task(name: str) -> None:
    learner, labels = make(name)
    start, end = learner.start(labels, 0), train(learner, labels, 0)
    for task in learner.tasks:
        before, after = learner.score(start, task), learner.score(end, task)
        assert after.loss < 0.5 * before.loss, task
        assert (after.metric > before.metric) == after.higher_is_better, task


def answers_after(learner: Learner, labels: Labels, steps: int = 8) -> dict[str, np.ndarray]:
    state = learner.start(labels, 0)
    for _ in range(steps):
        state = learner.step(state, labelled(learner, labels))
    return {task: learner.predict(state, task, labels[task].instances) for task in learner.tasks}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[task], other[task]) for task in one)


def wrong_for(answers: np.ndarray) -> np.ndarray:
    """Hard pseudo-labels that are mostly wrong: the class after the right one, or the number turned round."""
    return (answers.argmax(axis=1) + 1) % answers.shape[1] if answers.ndim == 2 else -answers


@each_example
def test_classes_and_certain_probabilities_are_the_same_pseudo_labels(name: str) -> None:
    learner, labels = make(name)
    task = learner.tasks[0]
    plain = answers_after(learner, labels)
    hard = wrong_for(plain[task])
    soft = np.eye(plain[task].shape[1], dtype=np.float32)[hard]
    found = [answers_after(learner, with_values(labels, task, values)) for values in (hard, soft)]
    for each in learner.tasks:
        assert np.allclose(found[0][each], found[1][each], atol=1e-5)
    assert not same(found[0], plain)


def with_values(labels: Labels, task: str, values: np.ndarray, pseudo: Any = None) -> Labels:
    """The labels in the order of their instances, with values for one task."""
    order = np.argsort(labels[task].instances)
    return labels.with_task(task, TaskLabels(labels[task].instances[order], values[order], pseudo))


@pytest.mark.parametrize("name", OWN_BATCHES)
def test_only_what_is_marked_as_pseudo_stands_for_the_truth(name: str) -> None:
    learner, labels = make(name)
    plain = answers_after(learner, labels)
    for task in learner.tasks:
        wrong = wrong_for(plain[task])
        nowhere, everywhere = np.zeros(len(wrong), dtype=bool), np.ones(len(wrong), dtype=bool)
        assert same(answers_after(learner, with_values(labels, task, wrong, nowhere)), plain)
        assert not same(answers_after(learner, with_values(labels, task, wrong, everywhere)), plain)


class Recorded:
    """A random stream that remembers the mini-batches drawn from it."""

    def __init__(self, stream: np.random.Generator):
        self.stream, self.drawn = stream, []

    def choice(self, *given: Any) -> np.ndarray:
        self.drawn.append(self.stream.choice(*given))
        return self.drawn[-1]


@pytest.mark.parametrize("name", OWN_BATCHES)
def test_a_mini_batch_does_not_depend_on_the_other_tasks(name: str) -> None:
    learner, labels = make(name)
    first, second = learner.tasks
    seen = []
    for tasks in ([first, second], [first], [second, first, second]):
        state = learner.start(labels, 5)
        state[1][first] = recorded = Recorded(state[1][first])
        for _ in range(4):
            state = learner.step(state, tasks)
        seen.append(np.stack(recorded.drawn).tolist())
    assert seen[0] == seen[1] == seen[2]
    assert len(np.unique(seen[0], axis=0)) == 4
