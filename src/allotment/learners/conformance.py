"""Does a learner keep the contract? Inherit, say how yours is made, and let pytest run it:

class TestMine(LearnerTests):
    def make(self):
        return MyLearner(...), Labels({"a": range(40), "b": range(20, 60)})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.labels import Labels, TaskLabels
from allotment.learners.learner import Learner, Measure, State, labelled, train


class LearnerTests:
    """Every test that a learner must pass. `make` gives a learner and labels of at least two tasks, small and quick."""

    steps = 6
    """how many steps each test takes"""

    def make(self) -> tuple[Learner, Labels]:
        raise NotImplementedError("say how your learner is made")

    # --- helpers ---

    def _run(self, learner: Learner, labels: Labels, seed: int = 0, tasks: Sequence[str] | None = None) -> State:
        state = learner.start(labels, seed)
        for _ in range(self.steps):
            state = learner.step(state, labelled(learner, labels) if tasks is None else tasks)
        return state

    def _look(self, learner: Learner, state: State, labels: Labels) -> list[bytes]:
        """All that can be seen of a state from outside."""
        some = {task: labels[task].instances[:16] for task in learner.tasks}
        filler = next(some[task] for task in learner.tasks if len(some[task]))
        seen = []
        for task in learner.tasks:
            answers = learner.predict(state, task, some[task] if len(some[task]) else filler)
            seen.append(np.ascontiguousarray(answers).tobytes())
        return seen

    # --- the contract ---

    def test_it_states_its_tasks_and_steps(self) -> None:
        learner, labels = self.make()
        assert isinstance(learner, Learner), "a verb of the protocol is missing"
        assert len(learner.tasks) >= 2
        assert len(set(learner.tasks)) == len(learner.tasks)
        assert set(labels) <= set(learner.tasks)
        assert learner.steps(labels) >= 1

    def test_the_same_seed_gives_the_same_bytes(self) -> None:
        learner, labels = self.make()
        first, second = (self._look(learner, self._run(learner, labels, seed=3), labels) for _ in range(2))
        assert first == second

    def test_another_learner_of_the_same_make_gives_the_same_bytes(self) -> None:
        (learner, labels), (other, _) = self.make(), self.make()
        assert self._look(learner, self._run(learner, labels), labels) == self._look(
            other, self._run(other, labels), labels
        )

    def test_another_seed_gives_another_training(self) -> None:
        learner, labels = self.make()
        first, second = (self._look(learner, self._run(learner, labels, seed=seed), labels) for seed in (0, 1))
        assert first != second

    def test_training_changes_the_answers(self) -> None:
        learner, labels = self.make()
        before = self._look(learner, learner.start(labels, 0), labels)
        assert before != self._look(learner, self._run(learner, labels), labels)

    def test_a_task_named_twice_gives_two_mini_batches(self) -> None:
        learner, labels = self.make()
        task = labelled(learner, labels)[0]
        once = self._look(learner, self._run(learner, labels, tasks=[task]), labels)
        twice = self._look(learner, self._run(learner, labels, tasks=[task, task]), labels)
        assert once != twice

    def test_training_a_fork_leaves_the_original_alone(self) -> None:
        learner, labels = self.make()
        tasks = labelled(learner, labels)
        state = self._run(learner, labels)
        before = self._look(learner, state, labels)
        fork = learner.fork(state)
        assert self._look(learner, fork, labels) == before
        for _ in range(self.steps):
            fork = learner.step(fork, tasks)
        assert self._look(learner, state, labels) == before
        assert self._look(learner, fork, labels) != before

    def test_a_fork_goes_on_as_the_original_would(self) -> None:
        learner, labels = self.make()
        tasks = labelled(learner, labels)
        state = self._run(learner, labels)
        fork = learner.fork(state)
        for _ in range(self.steps):
            state = learner.step(state, tasks)
        for _ in range(self.steps):
            fork = learner.step(fork, tasks)
        assert self._look(learner, state, labels) == self._look(learner, fork, labels)

    def test_forks_scores_and_answers_do_not_disturb_training(self) -> None:
        learner, labels = self.make()
        tasks = labelled(learner, labels)
        plain = self._look(learner, self._run(learner, labels), labels)
        state = learner.start(labels, 0)
        for _ in range(self.steps):
            fork = learner.step(learner.fork(state), tasks)
            for task in tasks:
                learner.score(fork, task)
                learner.score(state, task)
                learner.predict(state, task, labels[task].instances[:4])
            state = learner.step(state, tasks)
        assert self._look(learner, state, labels) == plain

    def test_scores_are_numbers_with_a_direction(self) -> None:
        learner, labels = self.make()
        state = self._run(learner, labels)
        for task in learner.tasks:
            measure = learner.score(state, task)
            assert isinstance(measure, Measure)
            assert np.isfinite(measure.loss)
            assert np.isfinite(measure.metric)
            assert measure == learner.score(state, task)

    def test_it_answers_for_any_instances(self) -> None:
        learner, labels = self.make()
        state = self._run(learner, labels)
        for task in learner.tasks:
            instances = np.unique(np.concatenate([each.instances for each in labels.values()]))[:9]
            answers = learner.predict(state, task, instances)
            assert len(answers) == len(instances)
            turned = learner.predict(state, task, instances[::-1].copy())
            assert np.allclose(answers, turned[::-1], rtol=1e-4, atol=1e-5), "an answer depends on its neighbours"

    def test_the_order_in_which_labels_are_listed_does_not_matter(self) -> None:
        learner, labels = self.make()
        assert all(each.values is None for each in labels.values()), "make() gives labels of the data's own"
        turned = Labels({task: each.instances[::-1].copy() for task, each in labels.items()})
        assert self._look(learner, self._run(learner, labels), labels) == self._look(
            learner, self._run(learner, turned), labels
        )

    def test_a_task_without_labels_is_allowed(self) -> None:
        learner, labels = self.make()
        rest = labels.only(*list(labels)[1:])
        state = self._run(learner, rest)
        assert np.isfinite(learner.score(state, next(iter(labels))).loss)

    def test_given_values_stand_for_the_labels(self) -> None:
        learner, labels = self.make()
        plain = self._look(learner, self._run(learner, labels), labels)
        for task in labelled(learner, labels):
            instances = labels[task].instances
            wrong = self._wrong_values(learner, task, instances)
            given = labels.with_task(task, TaskLabels(instances, wrong))
            assert self._look(learner, self._run(learner, given), labels) != plain, f"values of {task!r} are ignored"

    def _wrong_values(self, learner: Learner, task: str, instances: NDArray[np.int64]) -> NDArray[Any]:
        """Answers of an untrained model, which can't all be right, in the form that `predict` gives."""
        start = learner.start(Labels({}), 1)
        answers = learner.predict(start, task, instances)
        return np.ascontiguousarray(answers[::-1])

    def test_a_whole_training_learns_something(self) -> None:
        learner, labels = self.make()
        before, after = learner.start(labels, 0), train(learner, labels, 0)
        better = [learner.score(after, task).loss < learner.score(before, task).loss for task in labels]
        assert any(better), "no task's validation loss fell in a whole training"
