"""The jobs of a campaign: what there is to train, in pieces that can be done anywhere, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from allotment.campaign.evaluation import Evaluation, Trial
from allotment.campaign.state import State
from allotment.campaign.store import Store
from allotment.campaign.work import print_of
from allotment.estimates import worth
from allotment.estimates.response import Response
from allotment.job import JSON, Job

CHUNK = 8
"""trainings of one job, which are stacked where the network can be"""
FEW = 2
"""the same for images, whose trainings are not stacked"""
FIRST_SEED = 1000
"""of evaluations, so that no training of them repeats one of the estimates"""


def list_estimates(state: State, own: str | None, folds: int) -> list[Job]:
    """The jobs that estimates are made of: chunks of the response's trainings, or one for another method."""
    needs = state.needs | {"labels": state.stock.fingerprint, "learner": print_of(own), "folds": folds}
    needs["data"] = state.stock.data.fingerprint
    if state.settings.method != "response":
        return [Job("estimate", needs)]
    size, total = CHUNK if is_table(state) else FEW, int(needs["trainings"])
    return [Job("response", needs | {"chunk": [first, min(first + size, total)]}) for first in range(0, total, size)]


def list_evaluations(state: State, own: str | None, trials: Sequence[Trial], repeats: int) -> list[list[Job]]:
    """The jobs of each trial; repeat r of every plan has the same seed, so that their differences are paired."""
    stock = replace(state.stock, given={})
    shared = {"data": stock.data.fingerprint, "recipe": state.settings.recipe, "learner": print_of(own)}
    shared |= {"labels": stock.fingerprint}
    size = CHUNK if is_table(state) else 1
    seeds = [[FIRST_SEED + each for each in range(at, min(at + size, repeats))] for at in range(0, repeats, size)]
    return [
        [
            Job("evaluation", shared | {"counts": dict(trial.counts), "same": trial.same, "seeds": part})
            for part in seeds
        ]
        for trial in trials
    ]


def is_table(state: State) -> bool:
    return bool(state.settings.data["name"] == "table")


def size_of(job: Job) -> int:
    """How many trainings a job is."""
    if job.kind == "evaluation":
        return len(job.needs["seeds"])
    first, last = job.needs.get("chunk", (0, job.needs["trainings"]))
    return int(last) - int(first)


def shared_needs(jobs: Sequence[Job]) -> dict[str, JSON]:
    """What all chunks of one design need."""
    return {key: value for key, value in jobs[0].needs.items() if key != "chunk"}


def combine_estimates(store: Store, jobs: Sequence[Job]) -> dict[str, JSON]:
    """The estimates that finished jobs add up to, with what they rest on."""
    needs = shared_needs(jobs)
    bodies: list[JSON] = [store.result(job.key) for job in jobs]
    if jobs[0].kind == "estimate":
        return {"needs": needs, "estimates": bodies[0]}
    parts = [Response.from_dict(body) for body in bodies]
    rows = [field.name for field in fields(Response) if isinstance(getattr(parts[0], field.name), np.ndarray)]
    rows.remove("untrained")  # which every chunk has the same of
    joined: dict[str, Any] = {key: np.concatenate([getattr(part, key) for part in parts]) for key in rows}
    response = replace(parts[0], **joined)
    about = {key: needs[key] for key in ("method", "trainings", "folds", "seed")}
    about |= {"unit": "%", "measured": {"response": response.to_dict()}}
    found = worth.fit(response, seed=int(needs["seed"]))
    return {"needs": needs, "estimates": replace(found, about=dict(found.about) | about).to_dict()}


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


def count_left_over(store: Store, state: State, jobs: Sequence[Job]) -> dict[str, int]:
    """Trainings on record that these estimates cannot use, by what has changed since."""
    wanted = {job.key for job in jobs}
    found: dict[str, int] = {}
    for key, needs, _ in store.results(jobs[0].kind):
        if key not in wanted:
            reason = " and ".join(state.changes(needs)) or "the labels at hand, the learner or a version are others"
            found[reason] = found.get(reason, 0) + size_of(Job(jobs[0].kind, needs))
    return found
