"""Does a method keep the contract? Inherit, say which one it is, and let pytest run it:

class TestMine(MethodTests):
    def make(self):
        return METHOD
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.labels import Labels
from allotment.estimates.estimates import Estimates
from allotment.estimates.method import SHARED, Method, Plain, count_trainings
from allotment.estimates.request import Request, Work
from allotment.learners.learner import Learner, Measure
from allotment.plan import allocate
from allotment.problem import Problem, Task

EXAMPLE_TASKS = ("a", "b", "c")
LENGTH = 40
"""steps of a training"""
TRANSFER_SHARE = 0.15
"""of what a task learns from a label of its own, that it learns from one of another task"""


@dataclass(eq=False)
class WorkDone:
    """What learners did that share it."""

    trained: set[int] = field(default_factory=set)
    started: int = 0
    steps: int = 0
    mini_batches: int = 0

    @property
    def work(self) -> tuple[int, int, int]:
        return len(self.trained), self.steps, self.mini_batches


@dataclass(frozen=True)
class Trained:
    """Where a training is."""

    number: int
    """of the training, among all that were started"""
    labels: Labels
    seed: int
    steps: int = 0


@dataclass
class Pupil:
    """A learner that learns by a formula and counts what it does: error falls as a power of the
    labels seen, and with the steps taken."""

    noise: float = 0.004
    validation: Mapping[str, frozenset[int]] | None = None
    """instances that score; None is labels that nobody trains on"""
    tally: WorkDone = field(default_factory=WorkDone)

    tasks = EXAMPLE_TASKS

    def steps(self, labels: Labels) -> int:
        return LENGTH

    def start(self, labels: Labels, seed: int) -> Trained:
        for task, kept in (self.validation or {}).items():
            assert not kept & {*labels[task].instances.tolist()}, (
                f"a label of {task!r} is trained on that scores; take the labels of request.parts"
            )
        self.tally.started += 1
        return Trained(self.tally.started, labels, seed)

    def step(self, state: Trained, tasks: Sequence[str]) -> Trained:
        self.tally.trained.add(state.number)
        self.tally.steps += 1
        self.tally.mini_batches += len(tasks)
        return replace(state, steps=state.steps + 1)

    def fork(self, state: Trained) -> Trained:
        return state

    def score(self, state: Trained, task: str) -> Measure:
        kept = None if self.validation is None else self.validation.get(task, frozenset())
        if kept is not None and not kept:
            return Measure(math.nan, math.nan, True)
        counts = {each: len(state.labels[each]) for each in EXAMPLE_TASKS}
        seen = sum(
            count if each == task else TRANSFER_SHARE * count for each, count in counts.items()
        )
        error = 0.6 * (1 + seen) ** -0.4 + 0.3 * math.exp(-state.steps / 10)
        key = [state.seed % 2**32, state.steps, EXAMPLE_TASKS.index(task), len(kept or ())]
        error += self.noise * float(np.random.default_rng([*key, *counts.values()]).normal())
        return Measure(1 - error, error, higher_is_better=True)

    def predict(
        self, state: Trained, task: str, instances: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return np.tile([0.7, 0.3], (len(instances), 1))

    def with_validation(self, instances: NDArray[np.int64] | Labels) -> Pupil:
        if isinstance(instances, Labels):
            kept = {task: frozenset(instances[task].instances.tolist()) for task in EXAMPLE_TASKS}
        else:
            kept = dict.fromkeys(EXAMPLE_TASKS, frozenset(np.asarray(instances).tolist()))
        return replace(self, validation=kept)


class MethodTests:
    """Every test that a method must pass. `make` gives the method; the learner is one that learns
    by a formula, unless `make_learner` gives another."""

    options: Mapping[str, Any] = {}
    """that the method is to be given"""
    trainings = 16
    """that it may run, as many as it needs to conclude something"""
    labels = Labels({"a": range(0, 80), "b": range(40, 120), "c": range(100, 140)})
    folds = 4
    """parts of these that score in turn, in some of the tests"""

    def make(self) -> Method:
        raise NotImplementedError("say which method it is")

    def make_learner(self) -> Learner:
        return Pupil()

    # --- helpers ---

    def _ask(self, labels: Labels | None = None, folds: int = 1, **given: Any) -> Request:
        """A request of its own, as every process has one."""
        learner, mine = self.make_learner(), self.labels if labels is None else labels
        count = self.trainings if self.make().trainings else 0
        return Request(lambda: (learner, mine), 3, count, folds, self.options, **given)

    def _do_all(self, **given: Any) -> list[Plain]:
        method, request = self.make(), self._ask(**given)
        return [method.do(request, job) for job in method.jobs(request)]

    def _conclude(self, **given: Any) -> Estimates:
        return self.make().conclude(self._ask(**given), self._do_all(**given))

    def _problem(self) -> Problem:
        counts = self.labels.counts
        return Problem([Task(task, 1, have=count) for task, count in counts.items()], budget=120)

    # --- the contract: what it says of itself ---

    def test_it_says_what_it_does(self) -> None:
        method = self.make()
        assert isinstance(method, Method), "it does not inherit Method"
        assert method.about.isprintable(), "`about` is more than one line"
        assert 0 < len(method.about) <= 120, "`about` is half a line, for lists of methods"
        assert method.trainings >= 0, "`trainings` is how many it runs unless told otherwise"
        least = method.least(len(self.labels), self.folds)
        assert least <= method.trainings, "by default it runs fewer trainings than it needs"
        assert least <= self.trainings, "the tests run fewer trainings than it needs"
        assert set(self.options) <= set(method.options), "`options` lacks one that the tests give"

    # --- the contract: jobs ---

    def test_jobs_are_plain_and_their_names_tell_them_apart(self) -> None:
        for folds in (1, self.folds):
            jobs = self.make().jobs(self._ask(folds=folds))
            assert [_through_json(job) for job in jobs] == list(jobs), "a job is not plain"
            names = {json.dumps(job, sort_keys=True) for job in jobs}
            assert len(names) == len(jobs), "two jobs are described alike"
            for job in jobs:
                assert not {*job} & {*SHARED}, "a campaign says something else by this key"
                assert count_trainings(job) >= 0, "a job takes less than no training"

    def test_the_same_request_gives_the_same_jobs(self) -> None:
        for given in ({}, {"per_job": 3}, {"problem": self._problem()}):
            first, second = (self.make().jobs(self._ask(**given)) for _ in range(2))
            assert list(first) == list(second), "the same request gave two lists of jobs"

    def test_smaller_jobs_are_as_many_trainings(self) -> None:
        few, many = (self.make().jobs(self._ask(per_job=size)) for size in (None, 1))
        assert sum(map(count_trainings, few)) == sum(map(count_trainings, many))

    def test_who_trains_nothing_has_no_jobs(self) -> None:
        method = self.make()
        if method.trainings:
            assert method.jobs(self._ask()), "there is nothing to do, but `trainings` is not 0"
        else:
            assert not method.jobs(self._ask()), "there are jobs, but `trainings` is 0"
            assert allocate(self._problem(), method.assume(self._problem())).counts

    # --- the contract: doing them ---

    def test_results_are_plain(self) -> None:
        for folds in (1, self.folds):
            for result in self._do_all(folds=folds):
                assert _through_json(result) == result, "what a job gave is not plain"

    def test_a_job_gives_the_same_bytes_whenever_it_is_done(self) -> None:
        method, request = self.make(), self._ask(folds=self.folds)
        jobs = list(method.jobs(request))
        first = [json.dumps(method.do(request, job)) for job in jobs]
        turned = [json.dumps(method.do(request, job)) for job in reversed(jobs)]
        assert first == turned[::-1], "what a job gave depends on the jobs before it"
        fresh = [json.dumps(method.do(self._ask(folds=self.folds), job)) for job in jobs]
        assert first == fresh, "what a job gave depends on who does it"

    def test_a_job_does_not_look_at_the_problem(self) -> None:
        assert self._do_all() == self._do_all(problem=self._problem())

    def test_it_takes_what_it_says(self) -> None:
        method, request = self.make(), self._ask()
        work = method.weigh(request)
        assert isinstance(work, Work)
        assert work.trainings == sum(map(count_trainings, method.jobs(request))), (
            "`weigh` and `jobs` disagree about the number of trainings"
        )
        learner = request.learner
        if isinstance(learner, Pupil):
            for job in method.jobs(request):
                before = len(learner.tally.trained)
                method.do(request, job)
                done = len(learner.tally.trained) - before
                assert done == count_trainings(job), "a job ran other trainings than it says"
            assert learner.tally.work == (work.trainings, work.steps, work.mini_batches), (
                "`weigh` says other trainings, steps and mini-batches than were done"
            )

    def test_progress_of_a_job_never_turns_back(self) -> None:
        reports: list[tuple[int, int, str]] = []
        method, request = self.make(), self._ask(progress=lambda *one: reports.append(one))
        for job in method.jobs(request):
            reports.clear()
            method.do(request, job)
            done = [each for each, _, _ in reports]
            assert done == sorted(done), "fewer trainings are done than before"
            assert all(0 <= each <= total for each, total, _ in reports)

    # --- the contract: what they add up to ---

    def test_estimates_are_of_every_task_and_plan(self) -> None:
        for folds in (1, self.folds):
            found = self._conclude(folds=folds)
            assert isinstance(found, Estimates)
            assert dict(zip(found.tasks, found.have, strict=True)) == self.labels.counts, (
                "tasks, or their labels at hand, are others than those of the request"
            )
            again = Estimates.from_dict(_through_json(found.to_dict()))
            counts = allocate(self._problem(), again).counts
            assert set(counts) == set(self.labels)

    def test_results_from_a_file_say_the_same(self) -> None:
        results = self._do_all()
        here = self.make().conclude(self._ask(), results)
        there = self.make().conclude(self._ask(), [_through_json(each) for each in results])
        assert here.to_dict() == there.to_dict(), "results lose something on their way to a file"

    def test_estimates_do_not_depend_on_the_size_of_jobs(self) -> None:
        whole, parts = (self._conclude(folds=self.folds, per_job=size) for size in (None, 3))
        assert whole.to_dict() == parts.to_dict(), "smaller jobs add up to other estimates"

    def test_a_task_without_labels_is_estimated_too(self) -> None:
        fewer = self.labels.with_task(next(iter(self.labels)), [])
        found = self._conclude(labels=fewer)
        assert set(found.tasks) == set(self.labels), "a task without labels is left out"

    def test_earlier_rounds_are_joined_by_who_says_so(self) -> None:
        method = self.make()
        if not method.joins_rounds:
            return
        half = {task: mine.instances[::2] for task, mine in self.labels.items()}
        past = Estimates.from_dict(_through_json(self._conclude(labels=Labels(half)).to_dict()))
        results = self._do_all()
        alone, joined = (method.conclude(self._ask(), results, earlier) for earlier in ([], [past]))
        assert joined.have == alone.have, "labels at hand are those of the last round"
        assert joined.to_dict() != alone.to_dict(), "the earlier round makes no difference"

    def test_the_end_is_the_same_whoever_asks_for_it(self) -> None:
        method = self.make()
        if not method.ends_early:
            return
        given: dict[str, Any] = {"problem": self._problem()}
        results = self._do_all(**given)
        for count in range(1, len(results) + 1):
            first, second = (
                bool(method.is_enough(self._ask(**given), results[:count])) for _ in range(2)
            )
            assert first == second, "the same results were enough, and not enough"
            if first:
                assert method.conclude(self._ask(**given), results[:count]).tasks
                break


def _through_json(value: Any) -> Any:
    """As a file would give it back; raises ValueError or TypeError for what has no form there."""
    return json.loads(json.dumps(value, allow_nan=False))
