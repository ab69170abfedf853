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

from allotment.data.labels import Labels
from allotment.learners.conformance import LearnerTests
from allotment.learners.learner import Learner, train

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = ("own_torch_loop", "scikit_learn", "text_model")
OWN_BATCHES = ("own_torch_loop", "scikit_learn")
"""those that open the instances of a mini-batch themselves"""
MOST_STATEMENTS = 40

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
    classes = {"species": 3, "age": 3}  # noqa: RUF012

    def make(self) -> tuple[Learner, Labels]:
        return make("own_torch_loop")


class TestScikitLearn(LearnerTests):
    classes = {"species": 3}  # noqa: RUF012

    def make(self) -> tuple[Learner, Labels]:
        return make("scikit_learn")


class TestTextModel(LearnerTests):
    def make(self) -> tuple[Learner, Labels]:
        return make("text_model")


def test_every_example_is_tested() -> None:
    elsewhere = {"several_gpus"}  # test_several_gpus.py
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES) | elsewhere


@each_example
def test_an_example_is_short(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    assert len(statements) - 1 <= MOST_STATEMENTS  # but for the docstring


@each_example
def test_training_improves_every_task(name: str) -> None:
    learner, labels = make(name)
    start, end = learner.start(labels, 0), train(learner, labels, 0)
    for task in learner.tasks:
        before, after = learner.score(start, task), learner.score(end, task)
        assert after.loss < 0.5 * before.loss, task
        assert (after.metric > before.metric) == after.higher_is_better, task


class Recorded:
    """Inputs that remember which of them were opened."""

    def __init__(self, inputs: Any):
        self.inputs, self.opened = inputs, []

    def __getitem__(self, instances: np.ndarray) -> Any:
        self.opened.append(instances.tolist())
        return self.inputs[instances]


@pytest.mark.parametrize("name", OWN_BATCHES)
def test_a_mini_batch_does_not_depend_on_the_other_tasks(name: str) -> None:
    """What the tests of learners make out from outside, looked at from inside."""
    seen = []
    for order in ("01", "0", "101", "00"):
        module = load(name)
        learner, labels = module.make()
        tasks = [learner.tasks[int(place)] for place in order]
        state = learner.start(labels, 5)
        module.INPUTS = recorded = Recorded(module.INPUTS)
        for _ in range(4):
            state = learner.step(state, tasks)
        assert len(recorded.opened) == 4 * len(tasks)
        seen.append(recorded.opened[order.index("0") :: len(tasks)])
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert len(np.unique(seen[0], axis=0)) == 4
