"""The jobs of a campaign: what there is to train, in pieces that can be done anywhere, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from allotment.campaign.evaluation import Evaluation, Trial
from allotment.campaign.state import State
from allotment.campaign.store import Store, Value
from allotment.campaign.work import STEPS, print_of
from allotment.data.dataset import ArrayData
from allotment.estimates import worth
from allotment.estimates.methods import METHODS, fit_slopes
from allotment.estimates.priors import Prior
from allotment.estimates.response import Response, join
from allotment.job import JSON, Job

CHUNK = 8
"""trainings of one job on a table, which are stacked: many take hardly longer than one"""
LONG = 100_000
"""mini-batches of a run, a minute or so, from which on being stopped costs more than what stacks save"""
PARTS = 30
"""into which a long run is cut, so that one of them is far less than a twentieth of it"""
USUAL = 60
"""trainings that an evaluation is taken to be: the names of its jobs don't depend on how many plans are tried"""
RESPONSES = ("response", "slopes")
"""methods that train by a design, of which any part is a job"""
FIRST_SEED = 1000
"""of evaluations, so that no training of them repeats one of the estimates"""


def list_estimates(state: State, own: str | None, folds: int) -> list[Job]:
    """The jobs that estimates are made of: chunks of a design's trainings, or one for a method that has none."""
    needs = state.needs | {"labels": state.stock.fingerprint, "learner": print_of(own), "folds": folds}
    needs["data"] = state.stock.data.fingerprint
    if METHODS[state.settings.method].probes:  # which ends where the plan would not move any more
        needs["problem"] = state.settings.problem().to_dict()
    if state.settings.method not in RESPONSES:
        return [Job("estimate", needs)]
    total = int(needs["trainings"])
    size = _choose_size(state, own, total)
    return [Job("response", needs | {"chunk": [first, min(first + size, total)]}) for first in range(0, total, size)]


def list_evaluations(state: State, own: str | None, trials: Sequence[Trial], repeats: int) -> list[list[Job]]:
    """The jobs of each trial; repeat r of every plan has the same seed, so that their differences are paired."""
    stock = replace(state.stock, given={})
    shared = {"data": stock.data.fingerprint, "recipe": state.settings.recipe, "learner": print_of(own)}
    shared |= {"labels": stock.fingerprint}
    size = _choose_size(state, own, USUAL)
    seeds = [[FIRST_SEED + each for each in range(at, min(at + size, repeats))] for at in range(0, repeats, size)]
    return [
        [
            Job("evaluation", shared | {"counts": dict(trial.counts), "same": trial.same, "seeds": part})
            for part in seeds
        ]
        for trial in trials
    ]


def _choose_size(state: State, own: str | None, total: int) -> int:
    """How many of `total` trainings one job is. It depends on no clock and no machine: jobs keep their names."""
    data, settings = state.stock.data, state.settings
    if own is not None or not isinstance(data, ArrayData) or data.features.ndim > 2:
        return 1  # images, and most learners of users, train one after the other anyway
    mini_batches = total * int(settings.training.get("steps", STEPS)) * len(settings.tasks)
    return CHUNK if mini_batches <= LONG else min(CHUNK, max(1, total // PARTS))


def size_of(job: Job) -> int:
    """How many trainings a job is."""
    if job.kind == "evaluation":
        return len(job.needs["seeds"])
    first, last = job.needs.get("chunk", (0, job.needs["trainings"]))
    return int(last) - int(first)


def shared_needs(jobs: Sequence[Job]) -> dict[str, JSON]:
    """What all chunks of one design need."""
    return {key: value for key, value in jobs[0].needs.items() if key != "chunk"}


def find_earlier(store: Store, jobs: Sequence[Job]) -> list[Value]:
    """Estimates of earlier rounds, whose trainings still tell something: all is the same but for the labels."""
    needs = shared_needs(jobs)
    if needs["method"] != "response":
        return []
    found = []
    for value in store.values("estimates"):
        old = value.body["needs"]
        fits = old["labels"] != needs["labels"] and old | {"labels": needs["labels"]} == needs
        # its name is made of the versions, too: what another version measured is not mixed in
        if fits and value.key == _name(old, value.body.get("earlier", [])).key:
            found.append(value)
    return found


def name_estimates(jobs: Sequence[Job], earlier: Sequence[Value]) -> Job:
    """What estimates are made of."""
    return _name(shared_needs(jobs), [value.key for value in earlier])


def _name(needs: dict[str, JSON], earlier: list[JSON]) -> Job:
    return Job("estimates", needs | ({"earlier": earlier} if earlier else {}))


def combine_estimates(store: Store, jobs: Sequence[Job], earlier: Sequence[Value] = ()) -> dict[str, JSON]:
    """The estimates that finished jobs add up to, with those of earlier rounds, and what they rest on."""
    needs = shared_needs(jobs)
    bodies: list[JSON] = [store.result(job.key) for job in jobs]
    if jobs[0].kind == "estimate":
        return {"needs": needs, "estimates": bodies[0]}
    parts = [Response.from_dict(body) for body in bodies]
    rows = [field.name for field in fields(Response) if isinstance(getattr(parts[0], field.name), np.ndarray)]
    rows.remove("untrained")  # which the first chunk has for all
    joined: dict[str, Any] = {key: np.concatenate([getattr(part, key) for part in parts]) for key in rows}
    # a chunk whose folds have no label of a task can't say which way its metric points, and says higher
    higher = tuple(map(all, zip(*(part.higher_is_better for part in parts), strict=True)))
    response = replace(parts[0], **joined, higher_is_better=higher)
    about = {key: needs[key] for key in ("method", "trainings", "folds", "seed")}
    about |= {"unit": "%", "measured": {"response": response.to_dict()}}
    body: dict[str, JSON] = {"needs": needs}
    if needs["method"] == "response":
        rounds = [value.body["estimates"]["about"]["measured"]["response"] for value in earlier]
        prior = Prior().later if earlier else Prior()
        found = worth.fit(join([*map(Response.from_dict, rounds), response]), seed=int(needs["seed"]), prior=prior)
        body |= {"earlier": [value.key for value in earlier]} if earlier else {}
        about["rounds"] = 1 + len(earlier)
    else:
        found = fit_slopes(response, seed=int(needs["seed"]))
    return body | {"estimates": replace(found, about=dict(found.about) | about).to_dict()}


def combine_evaluations(
    store: Store, state: State, trials: Sequence[Trial], jobs: Sequence[Sequence[Job]]
) -> Evaluation:
    """The table that finished jobs add up to; the first trial is that of the labels at hand alone."""
    bodies: list[list[JSON]] = [[store.result(job.key) for job in row] for row in jobs]
    scores = np.array([[each for body in row for each in body["scores"]] for row in bodies], dtype=np.float64)
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


def count_left_over(store: Store, state: State, jobs: Sequence[Job], earlier: Sequence[Value] = ()) -> dict[str, int]:
    """Trainings on record that these estimates cannot use, by what has changed since."""
    wanted, used = {job.key for job in jobs}, [value.body["needs"] for value in earlier]
    found: dict[str, int] = {}
    for key, needs, _ in store.results(jobs[0].kind):
        if key not in wanted and {name: each for name, each in needs.items() if name != "chunk"} not in used:
            reason = " and ".join(state.changes(needs)) or "the labels at hand, the learner or a version are others"
            found[reason] = found.get(reason, 0) + size_of(Job(jobs[0].kind, needs))
    return found
