"""Does a learner keep the contract? Inherit, say how yours is made, and let pytest run it:

class TestMine(LearnerTests):
    classes = {"a": 3}

    def make(self):
        return MyLearner(...), Labels({"a": range(40), "b": range(20, 60)})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import Target
from allotment.data.labels import Labels, TaskLabels
from allotment.learners.learner import Learner, Measure, State, follow, labelled, probe, train


class LearnerTests:
    """Every test that a learner must pass. `make` gives a learner and labels of at least two tasks,
    small and quick, but more of each task than a mini-batch holds: what is always in the mini-batch
    tells nothing about it."""

    steps = 6
    """how many steps each test takes"""
    seeded = True
    """False for a learner that draws nothing at random, so that the seed makes no difference"""
    classes: Mapping[str, int] | None = None
    """how many classes there are, for each task that answers one of several; None asks `targets` of
    the learner"""
    swaps = 10
    """how many pairs of labels are watched to see which mini-batches they are in"""

    def make(self) -> tuple[Learner, Labels]:
        raise NotImplementedError("say how your learner is made")

    # --- helpers ---

    def _run(
        self, learner: Learner, labels: Labels, seed: int = 0, tasks: Sequence[str] | None = None
    ) -> State:
        state = learner.start(labels, seed)
        for _ in range(self.steps):
            state = learner.step(state, labelled(learner, labels) if tasks is None else tasks)
        return state

    def _answers(self, learner: Learner, state: State, labels: Labels) -> dict[str, NDArray[Any]]:
        """What is said of a few instances, for each task."""
        some = np.unique(np.concatenate([labels[task].instances[:16] for task in labels]))
        return {task: np.asarray(learner.predict(state, task, some)) for task in learner.tasks}

    def _look(self, learner: Learner, state: State, labels: Labels) -> list[bytes]:
        """All that can be seen of a state from outside."""
        return [answers.tobytes() for answers in self._answers(learner, state, labels).values()]

    def _apart(self, learner: Learner, one: State, other: State, labels: Labels) -> float:
        """How far the answers of two states differ at most."""
        first, second = (self._answers(learner, state, labels) for state in (one, other))
        return max(float(np.abs(first[task] - second[task]).max()) for task in first)

    def _trains_whole(self, learner: Learner) -> bool:
        """Whether there are no mini-batches to look for."""
        return bool(getattr(learner, "trains_whole", False))

    def _classes(self, learner: Learner) -> dict[str, int]:
        if self.classes is not None:
            return dict(self.classes)
        targets = getattr(learner, "targets", None)
        found = (
            [each for each in targets.values() if isinstance(each, Target)]
            if isinstance(targets, Mapping)
            else []
        )
        return {
            each.name: len(each.classes)
            for each in found
            if each.kind in ("classification", "segmentation")
        }

    def _given(self, learner: Learner, labels: Labels, task: str) -> TaskLabels:
        """The labels of a task as a model sees them, from one extreme to the other."""
        instances = np.sort(labels[task].instances)
        values = np.asarray(learner.predict(self._run(learner, labels), task, instances))
        flat = values.reshape(len(values), -1) - values.reshape(len(values), -1).mean(axis=0)
        order = np.argsort(flat @ flat[np.square(flat).sum(axis=1).argmax()])
        return TaskLabels(instances[order], values[order])

    def _swapped(self, given: TaskLabels) -> list[TaskLabels]:
        """The same labels with the values of two instances exchanged, for some pairs with unlike
        values.

        An exchange can be noticed once one of the two was in a mini-batch, and, since all values
        together are as they were, not before: so it tells from outside what is in a mini-batch.
        """
        assert given.values is not None
        half = len(given) // 2
        found = []
        for place in np.unique(np.linspace(0, half - 1, min(self.swaps, half)).astype(int)):
            order = np.arange(len(given))
            order[[place, place + half]] = order[[place + half, place]]
            found.append(TaskLabels(given.instances, given.values[order]))
        return found

    def _noticed(
        self,
        learner: Learner,
        labels: Labels,
        task: str,
        given: TaskLabels,
        tasks: Sequence[str],
        steps: int,
        seed: int,
    ) -> list[int]:
        """At which step of a training on `tasks` each exchange among the labels of `task` is
        noticed."""
        some = given.instances[:16]
        ways = []
        for mine in (given, *self._swapped(given)):
            state, seen = learner.start(labels.with_task(task, mine), seed), []
            for _ in range(steps):
                state = learner.step(state, tasks)
                seen.append(np.asarray(learner.predict(state, task, some)).tobytes())
            ways.append(seen)
        plain = ways[0]
        return [
            next((step for step in range(steps) if way[step] != plain[step]), steps)
            for way in ways[1:]
        ]

    # --- the contract: what decides a training ---

    def test_it_states_its_tasks_and_steps(self) -> None:
        learner, labels = self.make()
        assert isinstance(learner, Learner), "a verb of the protocol is missing"
        assert len(set(learner.tasks)) == len(learner.tasks), "two tasks have one name"
        assert set(labels) <= set(learner.tasks), (
            "make() gives labels of a task that is not the learner's"
        )
        assert len(labelled(learner, labels)) >= 2, "make() gives labels of at least two tasks"
        assert all(each.values is None for each in labels.values()), (
            "make() gives labels of the data's own"
        )
        assert set(self._classes(learner)) <= set(learner.tasks), (
            "`classes` names a task that is not the learner's"
        )
        assert learner.steps(labels) >= 1, "a training takes at least one step"

    def test_the_same_seed_gives_the_same_bytes(self) -> None:
        learner, labels = self.make()
        first, second = (
            self._look(learner, self._run(learner, labels, seed=3), labels) for _ in range(2)
        )
        assert first == second, "the same labels and seed gave two different trainings"

    def test_another_learner_of_the_same_make_gives_the_same_bytes(self) -> None:
        (learner, labels), (other, _) = self.make(), self.make()
        first, second = (
            self._look(each, self._run(each, labels), labels) for each in (learner, other)
        )
        assert first == second, "something besides labels and seed differs between two learners"

    def test_another_seed_gives_another_training(self) -> None:
        learner, labels = self.make()
        first, second = (
            self._look(learner, self._run(learner, labels, seed=seed), labels) for seed in (0, 1)
        )
        if self.seeded:
            assert first != second, (
                "the seed makes no difference; if nothing is drawn at random, say seeded = False"
            )
        else:
            assert first == second, "the seed makes a difference, but seeded = False"

    def test_other_labels_give_another_training(self) -> None:
        learner, labels = self.make()
        for task in labelled(learner, labels):
            mine = np.sort(labels[task].instances)
            halves = [labels.with_task(task, part) for part in np.array_split(mine, 2)]
            first, second = (
                self._look(learner, self._run(learner, half), labels) for half in halves
            )
            assert first != second, (
                f"it makes no difference which instances are labelled for {task!r}"
            )

    def test_the_order_in_which_labels_are_listed_does_not_matter(self) -> None:
        learner, labels = self.make()
        turned = Labels({task: each.instances[::-1].copy() for task, each in labels.items()})
        first, second = (
            self._look(learner, self._run(learner, each), labels) for each in (labels, turned)
        )
        assert first == second, "labels listed the other way round gave another training"

    def test_trainings_side_by_side_do_not_disturb_each_other(self) -> None:
        learner, labels = self.make()
        fewer = Labels(
            {task: each.instances[: (len(each) + 1) // 2] for task, each in labels.items()}
        )
        for runs in (((labels, 0), (fewer, 0)), ((labels, 0), (labels, 1))):
            alone = [self._look(learner, self._run(learner, *run), labels) for run in runs]
            states = [learner.start(*run) for run in runs]
            for _ in range(self.steps):
                states = [learner.step(state, labelled(learner, labels)) for state in states]
            beside = [self._look(learner, state, labels) for state in states]
            assert beside == alone, "trainings share something"

    # --- the contract: steps ---

    def test_training_changes_the_answers(self) -> None:
        learner, labels = self.make()
        before = self._look(learner, learner.start(labels, 0), labels)
        assert before != self._look(learner, self._run(learner, labels), labels), (
            "steps change nothing"
        )

    def test_a_step_learns_from_the_tasks_named_and_no_other(self) -> None:
        learner, labels = self.make()
        one, other = labelled(learner, labels)[:2]
        given = self._given(learner, labels, other)
        assert given.values is not None
        turned = TaskLabels(given.instances, given.values[::-1].copy())
        far = []
        for tasks in ([one], [one, other]):
            first, second = (
                self._run(learner, labels.with_task(other, each), tasks=tasks)
                for each in (given, turned)
            )
            far.append(self._apart(learner, first, second, labels))
        assert far[0] <= 0.01 * far[1], (
            f"a training on {one!r} alone learns from labels of {other!r}"
        )

    def test_a_task_named_twice_gives_two_mini_batches(self) -> None:
        learner, labels = self.make()
        if self._trains_whole(learner):
            return
        task = labelled(learner, labels)[0]
        once = self._look(learner, self._run(learner, labels, tasks=[task]), labels)
        twice = self._look(learner, self._run(learner, labels, tasks=[task, task]), labels)
        assert once != twice, "a task named twice counts once"
        given = self._given(learner, labels, task)
        pairs: list[tuple[int, int]] = []
        for seed in range(3):
            first, second = (
                self._noticed(learner, labels, task, given, tasks, self.steps, seed)
                for tasks in ([task], [task, task])
            )
            pairs += [
                (a, b) for a, b in zip(first, second, strict=True) if a > 0 and b < self.steps
            ]
            if any(a != b for a, b in pairs):
                return
        # a second mini-batch of its own brings every other label earlier: eight are not all late by
        # chance
        assert len(pairs) < 8, "the second mini-batch of a task in a step is its first again"

    def test_mini_batches_do_not_depend_on_other_tasks(self) -> None:
        learner, labels = self.make()
        if self._trains_whole(learner):
            return
        *rest, task = labelled(learner, labels)
        given = self._given(learner, labels, task)
        mixed = [*rest, task, rest[0]]
        alone = self._noticed(learner, labels.only(task), task, given, [task], self.steps, seed=0)
        beside = self._noticed(learner, labels, task, given, mixed, self.steps, seed=0)
        assert alone == beside, (
            f"a step on {mixed} takes other labels of {task!r} than a step on it alone"
        )

    def test_a_second_step_of_a_whole_training_changes_nothing(self) -> None:
        learner, labels = self.make()
        if not self._trains_whole(learner):
            return
        assert learner.steps(labels) == 1, "a whole training is one step"
        tasks = labelled(learner, labels)
        once = learner.step(learner.start(labels, 0), tasks)
        before = self._look(learner, once, labels)
        assert self._look(learner, learner.step(once, tasks), labels) == before, (
            "a second step changes the answers, though `trains_whole`"
        )

    def test_a_whole_training_learns_something(self) -> None:
        learner, labels = self.make()
        before, after = learner.start(labels, 0), train(learner, labels, 0)
        better = [
            learner.score(after, task).loss < learner.score(before, task).loss for task in labels
        ]
        assert any(better), "no task's validation loss fell in a whole training"

    # --- the contract: forks ---

    def test_training_a_fork_leaves_the_original_alone(self) -> None:
        learner, labels = self.make()
        tasks = labelled(learner, labels)
        is_new = self._trains_whole(learner)  # which learns nothing after its first step
        state = learner.start(labels, 0) if is_new else self._run(learner, labels)
        before = self._look(learner, state, labels)
        fork = learner.fork(state)
        assert self._look(learner, fork, labels) == before, (
            "a fork answers otherwise than its original"
        )
        for _ in range(self.steps):
            fork = learner.step(fork, tasks)
        assert self._look(learner, state, labels) == before, "training a fork changed the original"
        assert self._look(learner, fork, labels) != before, "a fork does not learn"

    def test_a_fork_goes_on_as_the_original_would(self) -> None:
        learner, labels = self.make()
        tasks = labelled(learner, labels)
        state = self._run(learner, labels)
        fork = learner.fork(state)
        for _ in range(self.steps):
            state = learner.step(state, tasks)
        for _ in range(self.steps):
            fork = learner.step(fork, tasks)
        same = self._look(learner, state, labels) == self._look(learner, fork, labels)
        assert same, (
            "a fork lacks something that its original has, or shares it: momentum, statistics, a"
            " random stream"
        )

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
        assert self._look(learner, state, labels) == plain, (
            "a training went another way because it was looked at"
        )

    # --- the contract: scores and answers ---

    def test_scores_are_numbers_with_a_direction(self) -> None:
        learner, labels = self.make()
        start, end = learner.start(labels, 0), self._run(learner, labels)
        for task in learner.tasks:
            measure = learner.score(end, task)
            assert isinstance(measure, Measure)
            assert np.isfinite([measure.loss, measure.metric]).all(), (
                f"{task!r} is scored {measure}"
            )
            assert measure == learner.score(end, task), f"{task!r} scored twice gives two scores"
            assert measure.higher_is_better == learner.score(start, task).higher_is_better, (
                "a metric turned round"
            )

    def test_it_answers_for_any_instances(self) -> None:
        learner, labels = self.make()
        state = self._run(learner, labels)
        instances = np.unique(np.concatenate([each.instances for each in labels.values()]))[:9]
        for task in learner.tasks:
            answers = np.asarray(learner.predict(state, task, instances))
            self._check_form(learner, task, answers, len(instances))
            close = 1e-5 + 0.02 * float(np.ptp(answers))
            for part in (np.arange(len(instances))[::-1], np.arange(2)):
                again = np.asarray(learner.predict(state, task, instances[part]))
                self._check_form(learner, task, again, len(part))
                assert again.shape[1:] == answers.shape[1:], (
                    f"the shape of an answer of {task!r} depends on how many"
                )
                assert np.abs(again - answers[part]).max() <= close, (
                    f"an answer of {task!r} depends on its neighbours"
                )

    def _check_form(self, learner: Learner, task: str, answers: NDArray[Any], count: int) -> None:
        assert answers.shape[:1] == (count,), (
            f"{task!r}: answers of shape {answers.shape} for {count} instances"
        )
        assert answers.dtype.kind == "f", (
            f"{task!r} answers in {answers.dtype}; classes are answered as probabilities"
        )
        assert np.isfinite(answers).all(), f"{task!r}: an answer is not a number"
        classes = self._classes(learner).get(task)
        if classes is None:
            return
        wide = answers.shape[1:2] == (classes,)
        assert wide, (
            f"{task!r}: answers of shape {answers.shape} are not probabilities of {classes} classes"
        )
        adds_up = np.allclose(answers.sum(axis=1), 1, atol=1e-3) and answers.min() >= 0
        assert adds_up, f"{task!r}: probabilities of classes are not below 0 and sum to 1"

    def test_a_task_without_labels_is_allowed(self) -> None:
        learner, labels = self.make()
        bare, *rest = labelled(learner, labels)
        state = self._run(learner, labels.only(*rest))
        assert np.isfinite(learner.score(state, bare).loss), f"{bare!r} has no score without labels"

    def test_no_labels_at_all_are_allowed(self) -> None:
        learner, labels = self.make()
        state = learner.fork(learner.start(Labels({}), 0))
        for task in learner.tasks:
            instances = labels[labelled(learner, labels)[0]].instances[:5]
            self._check_form(
                learner, task, np.asarray(learner.predict(state, task, instances)), len(instances)
            )
            assert np.isfinite(learner.score(state, task).loss), (
                f"{task!r} has no score before there is any label"
            )

    # --- the contract: what is optional ---

    def test_a_probe_leads_where_forks_and_steps_do(self) -> None:
        learner, labels = self.make()
        if not hasattr(learner, "probe"):
            return
        one, other = labelled(learner, labels)[:2]
        arms = {"alone": [one], "twice": [one, one], "both": [one, other], "other": [other]}
        state = self._run(learner, labels)
        before = self._look(learner, state, labels)
        for steps in (1, 2):
            ends = dict(probe(learner, state, arms, steps))
            assert self._look(learner, state, labels) == before, "probing changed the state"
            assert list(ends) == list(arms), f"a probe of {list(arms)} answers {list(ends)}"
            plain = {
                name: follow(learner, learner.fork(state), tasks, steps)
                for name, tasks in arms.items()
            }
            close = 1e-5 + 0.1 * self._apart(learner, plain["alone"], plain["twice"], labels)
            for name, end in ends.items():
                same = self._apart(learner, end, plain[name], labels) <= close
                assert same, (
                    f"a probe of {steps} step(s) on {arms[name]} leads elsewhere than a fork that"
                    " takes them"
                )
                later, wanted = (
                    follow(learner, each, arms[name], 1) for each in (end, plain[name])
                )
                goes_on = self._apart(learner, later, wanted, labels) <= 2 * close
                assert goes_on, "the end of a probe does not go on as that of a fork"

    def test_a_learner_can_be_scored_on_other_instances(self) -> None:
        learner, labels = self.make()
        if not hasattr(learner, "with_validation"):
            return
        everything: NDArray[np.int64] = learner.validation  # type: ignore[attr-defined]
        whole, *halves = (
            learner.with_validation(part)
            for part in (everything, *np.array_split(np.sort(everything), 2))
        )
        state = self._run(learner, labels)
        measures = {task: learner.score(state, task) for task in learner.tasks}
        for task, found in measures.items():
            assert whole.score(state, task) == found, (
                f"{task!r} is scored otherwise on the same instances"
            )
            assert learner.score(state, task) == found, (
                f"{task!r} is scored otherwise after `with_validation`"
            )
        losses = [[half.score(state, task).loss for task in learner.tasks] for half in halves]
        assert losses[0] != losses[1], "it makes no difference which instances it is scored on"
        seen = [self._look(each, self._run(each, labels), labels) for each in (learner, halves[0])]
        assert seen[0] == seen[1], "a training depends on what it is scored on"

    # --- the contract: given values ---

    def test_given_values_stand_for_the_labels(self) -> None:
        learner, labels = self.make()
        plain = self._look(learner, self._run(learner, labels), labels)
        for task in labelled(learner, labels):
            given = self._given(learner, labels, task)
            assert given.values is not None
            wrong = labels.with_task(task, TaskLabels(given.instances, given.values[::-1].copy()))
            assert self._look(learner, self._run(learner, wrong), labels) != plain, (
                f"values of {task!r} are ignored"
            )

    def test_only_values_marked_as_pseudo_count(self) -> None:
        learner, labels = self.make()
        plain = self._run(learner, labels)
        for task in labelled(learner, labels):
            given = self._given(learner, labels, task)
            assert given.values is not None
            order = np.argsort(given.instances)
            instances, values = given.instances[order], given.values[::-1][order]
            wrong, right = (
                self._run(
                    learner,
                    labels.with_task(
                        task, TaskLabels(instances, values, np.full(len(values), marked))
                    ),
                )
                for marked in (True, False)
            )
            close = 1e-5 + 0.1 * self._apart(learner, wrong, plain, labels)
            same = self._apart(learner, right, plain, labels) <= close
            assert same, f"values of {task!r} count that are not marked as pseudo"

    def test_given_classes_are_certain_probabilities(self) -> None:
        learner, labels = self.make()
        plain = self._run(learner, labels)
        for task in set(self._classes(learner)) & set(labelled(learner, labels)):
            given = self._given(learner, labels, task)
            assert given.values is not None
            classes = given.values.shape[1]
            hard = (given.values.argmax(axis=1) + 1) % classes
            soft = np.moveaxis(np.eye(classes, dtype=given.values.dtype)[hard], -1, 1)
            first, second = (
                self._run(learner, labels.with_task(task, TaskLabels(given.instances, values)))
                for values in (hard, soft)
            )
            close = 1e-5 + 0.1 * self._apart(learner, first, plain, labels)
            same = self._apart(learner, first, second, labels) <= close
            assert same, (
                f"classes given for {task!r} teach something else than probabilities of 1 for the"
                " same classes"
            )
