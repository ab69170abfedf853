"""The example that trains on several GPUs, on processes of this CPU in their place."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from helpers.learners import make_table

from allotment.data.dataset import ArrayData
from allotment.data.labels import Labels, split
from allotment.learners.conformance import LearnerTests
from allotment.learners.learner import Learner, train

pytest.importorskip("accelerate", reason="accelerate is not installed")
FILE = Path(__file__).parents[2] / "examples" / "several_gpus.py"
LABELS = Labels({"yes": range(0, 60), "number": range(40, 75)})
TOLERANCE = 1e-4
"""between one process and two, of scores and answers: sums are taken in another order"""


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_several_gpus", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make() -> Any:
    table = make_table()
    targets = tuple(each for each in table.targets if each.name in LABELS)
    labels = {each.name: table.values(each.name, np.arange(table.size)) for each in targets}
    data = ArrayData("table", targets, table.inputs(np.arange(table.size)), labels)
    return load().make(data, split(data, 0, 0.25, 0.1))


@pytest.mark.long
class TestOnOneProcess(LearnerTests):
    classes = {"yes": 2}  # noqa: RUF012

    def make(self) -> tuple[Learner, Labels]:
        return make(), LABELS


@pytest.mark.long
@pytest.mark.parametrize("labels", [LABELS, LABELS.only("number")], ids=["all", "one task"])
def test_two_processes_train_as_one_does(labels: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, states = make(), []
    for processes in ("1", "2"):
        monkeypatch.setenv("PROCESSES", processes)
        states.append(train(learner, labels, seed=3))
    assert [state["processes"] for state in states] == [1, 2]
    everyone = np.arange(learner.data.size)
    for task in learner.tasks:
        one, two = (learner.score(state, task) for state in states)
        assert two.metric == pytest.approx(one.metric, abs=TOLERANCE)
        assert two.loss == pytest.approx(one.loss, abs=TOLERANCE)
        answers = [learner.predict(state, task, everyone) for state in states]
        np.testing.assert_allclose(*answers, atol=TOLERANCE)
    assert (
        learner.score(states[0], "number").loss
        < 0.8 * learner.score(learner.start(labels, 3), "number").loss
    )


def test_a_process_that_dies_ends_the_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = load()
    monkeypatch.setenv("PROCESSES", "2")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "is-not-there.py"))
    with pytest.raises(RuntimeError, match="a process of this training died"):
        module.run_processes(str(tmp_path))


def test_how_a_process_ends_once_the_weights_are_kept_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, script = load(), tmp_path / "crashes.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "if os.environ['RANK'] == '1':\n"
        "    sys.stdin.read()\n"
        "pathlib.Path(sys.argv[1], 'done.npz').touch()\n"
        "os.abort()\n"
    )
    monkeypatch.setenv("PROCESSES", "2")
    monkeypatch.setattr(module, "__file__", str(script))
    module.run_processes(str(tmp_path))


def test_processes_that_leave_without_weights_are_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, script = load(), tmp_path / "leaves.py"
    script.write_text("")
    monkeypatch.setenv("PROCESSES", "2")
    monkeypatch.setattr(module, "__file__", str(script))
    with pytest.raises(RuntimeError, match="a process of this training died"):
        module.run_processes(str(tmp_path))
