"""The jobs of a campaign: what there is to train, in pieces that can be done anywhere, and what
they add up to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from allotment.campaign.evaluation import Evaluation, Trial
from allotment.campaign.state import CampaignState
from allotment.campaign.work import FIRST_SEED, VALIDATION, Bench, count_folds, make_request
from allotment.data.source import STEPS
from allotment.errors import InputError, Mistake
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import label
from allotment.estimates.method import (
    CONCLUSION,
    METHODS,
    SHARED,
    Method,
    count_trainings,
    tell_stepless,
)
from allotment.estimates.request import FOLDS, Request
from allotment.job import JSON, Job, canonical
from allotment.learners.choice import fingerprint_learner, is_own, is_stepless
from allotment.learners.learner import BUILT_IN
from allotment.learners.validation import PARTS, Scoreboard, add_up
from allotment.ledger.store import Store, Value
from allotment.settings.settings import DIFFERENT

TRAININGS_PER_JOB = 8
"""trainings of one job on a table, which are stacked: many take hardly longer than one"""
LONG = 100_000
"""mini-batches of a run, a minute or so, from which on being stopped costs more than what stacks
save"""
JOBS_OF_LONG_RUNS = 30
"""jobs into which a long run is cut, so that one of them is far less than a twentieth of it"""
EVALUATION_TRAININGS = 60
"""trainings that an evaluation is taken to be: the names of its jobs don't depend on how many plans
are tried"""
VALIDATION_SEED = 3000
"""likewise of cross-validations"""


def list_needs(state: CampaignState, learner: str, folds: int) -> dict[str, JSON]:
    """What all trainings of estimates depend on."""
    needs = state.needs | {
        "labels": state.stock.fingerprint,
        "learner": fingerprint_learner(learner),
        "folds": folds,
    }
    return needs | {"data": state.stock.data.fingerprint}


@dataclass(frozen=True, eq=False)
class Inquiry:
    """What a method is asked about the labels at hand, and the jobs that answer it."""

    name: str
    method: Method
    request: Request
    needs: dict[str, JSON]
    """of all jobs"""
    jobs: list[Job]

    @property
    def basis(self) -> dict[str, JSON]:
        """What the estimates depend on. The jobs do not depend on the problem: a plan for other
        money may need more of them, but no others."""
        problem = self.request.problem
        return self.needs if problem is None else self.needs | {"problem": problem.to_dict()}


def inquire(state: CampaignState, learner: str, bench: Callable[[], Bench]) -> Inquiry:
    """The jobs for estimates of the labels at hand; `bench` is asked for only where these hang on
    the learner."""
    name, method = state.settings.method, state.method
    if is_stepless(learner) and (what := tell_stepless(name, method)):
        raise InputError([Mistake("method", what)])
    needs = list_needs(state, learner, FOLDS if is_own(learner) else count_folds(bench()))
    size = _choose_size(state, learner, int(needs["trainings"]))
    problem = state.settings.problem() if method.ends_early else None
    request = make_request(bench, needs, size, problem)
    with METHODS.calling(name):
        jobs = [Job(method.kind, needs | _check_job(job)) for job in method.jobs(request)]
    return Inquiry(name, method, request, needs, jobs)


def _check_job(job: dict[str, JSON]) -> dict[str, JSON]:
    """What a method calls a job, if nothing in it has another meaning here."""
    if taken := sorted({*job} & {*SHARED}):
        raise ValueError(f"its jobs must call {taken[0]!r} something else")
    count_trainings(job)
    return job


def list_evaluations(
    state: CampaignState, learner: str, trials: Sequence[Trial], repeats: int
) -> list[list[Job]]:
    """The jobs of each trial; repeat r of every plan has the same seed, so that their differences
    are paired."""
    stock = replace(state.stock, given={}, corrected={})
    shared = {
        "data": stock.data.fingerprint,
        "recipe": state.settings.recipe,
        "learner": fingerprint_learner(learner),
    }
    shared |= {"labels": stock.fingerprint}
    if state.settings.instances == DIFFERENT:  # else labels are drawn as ever
        shared["instances"] = DIFFERENT
    size = _choose_size(state, learner, EVALUATION_TRAININGS)
    seeds = [
        [FIRST_SEED + each for each in range(at, min(at + size, repeats))]
        for at in range(0, repeats, size)
    ]
    return [
        [
            Job(
                "evaluation",
                shared | {"counts": dict(trial.counts), "same": trial.same, "seeds": part},
            )
            for part in seeds
        ]
        for trial in trials
    ]


def list_validations(state: CampaignState, learner: str, parts: int = PARTS) -> list[Job]:
    """The jobs that ask a model of all other labels about each part of those at hand.

    They name no metric: another one is computed from the same answers.
    """
    size = _choose_size(state, learner, parts)
    seed = VALIDATION_SEED + state.settings.seed
    shared = {
        "data": state.stock.unscored_fingerprint,
        "recipe": state.settings.unscored_recipe,
        "learner": fingerprint_learner(learner),
        "labels": state.stock.fingerprint,
        "parts": parts,
        "seed": seed,
    }
    return [
        Job(VALIDATION, shared | {"chosen": list(range(at, min(at + size, parts)))})
        for at in range(0, parts, size)
    ]


def combine_validations(store: Store, state: CampaignState, jobs: Sequence[Job]) -> Scoreboard:
    """The scores that finished jobs add up to, in each task's metrics."""
    data = state.stock.open()
    metrics = {target.name: state.settings.list_metrics(target) for target in data.targets}
    bodies: list[JSON] = [store.result(job.key) for job in jobs]
    return add_up(data, metrics, [part for body in bodies for part in body])


def _choose_size(state: CampaignState, learner: str, total: int) -> int:
    """How many of `total` trainings one job is. It depends on no clock and no machine: jobs keep
    their names."""
    data, settings = state.stock.data, state.settings
    if learner != BUILT_IN or not data.is_in_memory or data.picture_size(0) is not None:
        return 1  # images, and most learners of users, train one after the other anyway
    usual = settings.source.recipe.get("steps", STEPS)
    mini_batches = total * int(settings.training.get("steps", usual)) * len(settings.tasks)
    mini_batches *= int(settings.training.get("members", 1))
    if mini_batches <= LONG:
        return TRAININGS_PER_JOB
    return min(TRAININGS_PER_JOB, max(1, total // JOBS_OF_LONG_RUNS))


def size_of(job: Job) -> int:
    """How many trainings a job is."""
    if job.kind == VALIDATION:
        return len(job.needs["chosen"])
    return len(job.needs["seeds"]) if job.kind == "evaluation" else count_trainings(job.needs)


def sort_longest_first(jobs: Sequence[Job]) -> list[Job]:
    """The same jobs with those first that take long, as far as their names tell: begun at the end,
    one of them would keep all workers but its own waiting."""
    return sorted(jobs, key=_weigh, reverse=True)


def _weigh(job: Job) -> float:
    bought = sum(job.needs["counts"].values()) if job.kind == "evaluation" else 0
    return float(size_of(job) * (1 + bought))


class Answers:
    """What the jobs of an inquiry gave, of which those are needed that come before its method says
    that they are enough.

    It is asked after each of them in their order, whenever and wherever they were done.
    """

    def __init__(self, store: Store, inquiry: Inquiry):
        self._store, self._inquiry = store, inquiry
        self._results: list[JSON] = []
        self._end = len(inquiry.jobs)
        self.are_enough()

    def are_enough(self) -> bool:
        """Whether those on record are."""
        while len(self._results) < self._end:
            body = self._store.result(self._inquiry.jobs[len(self._results)].key)
            if body is None:
                return False
            self._results.append(body)
            if self._says_enough():
                self._end = len(self._results)
        return True

    def _says_enough(self) -> bool:
        method, request = self._inquiry.method, self._inquiry.request
        with METHODS.calling(self._inquiry.name):
            return method.ends_early and method.is_enough(request, self._results)

    @property
    def jobs(self) -> list[Job]:
        """The needed ones, as far as that is known."""
        return self._inquiry.jobs[: self._end]

    def conclude(self, earlier: Sequence[Value], tasks: Sequence[str]) -> JSON:
        """The estimates that they add up to, with those of earlier rounds."""
        name, method, request = self._inquiry.name, self._inquiry.method, self._inquiry.request
        rounds = [Estimates.from_dict(value.body["estimates"]) for value in earlier]
        self.are_enough()  # reads what it was not asked about
        with METHODS.calling(name):
            found = label(method.conclude(request, self._results, rounds), name, request, tasks)
        plain = found.to_dict()
        if method.joins_rounds:
            plain["about"]["rounds"] = 1 + len(earlier)
        return plain


def find_earlier(
    store: Store,
    inquiry: Inquiry,
    parts: Mapping[str, str],
    outdated: Collection[str] = (),
) -> list[Value]:
    """Estimates whose trainings still tell something: all is the same but for the labels, and none
    of those that they had was corrected since. Tasks may have been added and dropped: of those that
    are left, `parts` says whether they are what they were."""
    if not inquiry.method.joins_rounds:
        return []
    found, needs = dict[str, Value](), inquiry.basis
    for value in store.values("estimates"):
        old = value.body["needs"]
        if value.key in outdated:
            continue
        fits = old["labels"] != needs["labels"] and old | {"labels": needs["labels"]} == needs
        fits = fits or _has_other_tasks(value.body, needs, parts)
        # its name is made of the versions, too: what another version measured is not mixed in
        if fits and value.key == name_estimates(value.body).key:
            # what was concluded twice, in two ways, was measured once
            found[canonical(old)] = value
    return [*found.values()]


def list_parts(state: CampaignState) -> dict[str, str]:
    """Of each task a fingerprint of the inputs, its labels in the data and how it is scored;
    nothing of data that take minutes to read through."""
    data = state.stock.data
    if data.is_slow_to_hash:
        return {}
    return {target.name: data.with_targets((target,)).fingerprint for target in data.targets}


def _has_other_tasks(body: JSON, needs: Mapping[str, JSON], parts: Mapping[str, str]) -> bool:
    """Whether the same was measured with other tasks beside some that are as they were."""
    before, old = body.get("parts", {}), body["needs"]
    shared = before.keys() & parts.keys()
    if not shared or before.keys() == parts.keys():
        return False
    if any(before[task] != parts[task] for task in shared):
        return False

    def rest(given: Mapping[str, JSON]) -> dict[str, JSON]:
        left = {key: given[key] for key in given if key not in ("data", "labels")}
        recipe = dict(left["recipe"])
        said = recipe.pop("targets")
        return left | {"recipe": recipe, "targets": {task: said.get(task) for task in shared}}

    return rest(old) == rest(needs)


def name_estimates(body: JSON) -> Job:
    """What estimates are made of, by what is put down of them."""
    marks = {key: body[key] for key in ("earlier", CONCLUSION) if key in body}
    return Job("estimates", body["needs"] | marks)


def combine_evaluations(
    store: Store, state: CampaignState, trials: Sequence[Trial], jobs: Sequence[Sequence[Job]]
) -> Evaluation:
    """The table that finished jobs add up to; the first trial is that of the labels at hand
    alone."""
    bodies: list[list[JSON]] = [[store.result(job.key) for job in row] for row in jobs]
    scores = np.array(
        [[each for body in row for each in body["scores"]] for row in bodies], dtype=np.float64
    )
    first = bodies[0][0]
    order = [first["tasks"].index(name) for name in state.settings.names]
    return Evaluation(
        tasks=state.settings.names,
        weights=tuple(task.weight for task in state.settings.tasks),
        higher_is_better=tuple(bool(first["higher"][place]) for place in order),
        trials=tuple(trials[1:]),
        base=scores[0][:, order],
        scores=scores[1:][:, :, order],
    )


def combine_examples(
    store: Store, state: CampaignState, jobs: Sequence[Sequence[Job]]
) -> dict[str, JSON]:
    """What the models of the labels at the start and of the plan said of a few test pictures, by
    the names of these; nothing where it was not kept."""
    found = {}
    for key, row in zip(("before", "after"), jobs, strict=False):
        body: JSON = store.result(row[0].key)
        found[key] = {
            task: each | {"instances": [state.stock.ids[place] for place in each["instances"]]}
            for task, each in body.get("shown", {}).items()
        }
    return {"shown": found} if all(found.values()) else {}


def count_left_over(
    store: Store, state: CampaignState, inquiry: Inquiry, earlier: Sequence[Value] = ()
) -> dict[str, int]:
    """Trainings on record that these estimates cannot use, by what has changed since."""
    wanted = {job.key for job in inquiry.jobs}
    used = [value.body["needs"] for value in earlier]
    found: dict[str, int] = {}
    for key, needs, _ in store.results(inquiry.method.kind):
        shared = {each: needs[each] for each in SHARED if each in needs}
        if key not in wanted and shared not in used:
            reason = (
                " and ".join(state.changes(needs))
                or "the labels at hand, the learner or a version are others"
            )
            found[reason] = found.get(reason, 0) + count_trainings(needs)
    return found
