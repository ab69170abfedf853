"""The jobs of a campaign: what there is to train, in pieces that can be done anywhere, and what
they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from allotment.campaign.evaluation import Evaluation, Trial
from allotment.campaign.state import State
from allotment.campaign.work import STEPS, name_piece, print_of
from allotment.data.dataset import ArrayData
from allotment.estimates import worth
from allotment.estimates.methods import fit_slopes, label
from allotment.estimates.paper import Found, Paper, from_plain
from allotment.estimates.priors import Prior
from allotment.estimates.response import Response, join
from allotment.job import JSON, Job
from allotment.ledger.store import Store, Value

CHUNK = 8
"""trainings of one job on a table, which are stacked: many take hardly longer than one"""
LONG = 100_000
"""mini-batches of a run, a minute or so, from which on being stopped costs more than what stacks
save"""
PARTS = 30
"""into which a long run is cut, so that one of them is far less than a twentieth of it"""
USUAL = 60
"""trainings that an evaluation is taken to be: the names of its jobs don't depend on how many plans
are tried"""
FIRST_SEED = 1000
"""of evaluations, so that no training of them repeats one of the estimates"""


def list_needs(state: State, own: str | None, folds: int) -> dict[str, JSON]:
    """What all trainings of estimates depend on."""
    needs = state.needs | {
        "labels": state.stock.fingerprint,
        "learner": print_of(own),
        "folds": folds,
    }
    return needs | {"data": state.stock.data.fingerprint}


def list_chunks(state: State, own: str | None, folds: int) -> list[Job]:
    """The jobs of a method that trains by a design: chunks of its trainings."""
    needs, total = list_needs(state, own, folds), int(state.needs["trainings"])
    size = _choose_size(state, own, total)
    return [
        Job("response", needs | {"chunk": [first, min(first + size, total)]})
        for first in range(0, total, size)
    ]


def list_pieces(paper: Paper, needs: dict[str, JSON]) -> list[Job]:
    """The jobs of the paper's way. Not the problem: a plan for other money may need more of them,
    but no others."""
    return [
        Job("piece", needs | {"piece": name_piece(piece), "takes": piece.trainings})
        for piece in paper.pieces
    ]


def list_evaluations(
    state: State, own: str | None, trials: Sequence[Trial], repeats: int
) -> list[list[Job]]:
    """The jobs of each trial; repeat r of every plan has the same seed, so that their differences
    are paired."""
    stock = replace(state.stock, given={})
    shared = {
        "data": stock.data.fingerprint,
        "recipe": state.settings.recipe,
        "learner": print_of(own),
    }
    shared |= {"labels": stock.fingerprint}
    size = _choose_size(state, own, USUAL)
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


def _choose_size(state: State, own: str | None, total: int) -> int:
    """How many of `total` trainings one job is. It depends on no clock and no machine: jobs keep
    their names."""
    data, settings = state.stock.data, state.settings
    if own is not None or not isinstance(data, ArrayData) or data.features.ndim > 2:
        return 1  # images, and most learners of users, train one after the other anyway
    mini_batches = total * int(settings.training.get("steps", STEPS)) * len(settings.tasks)
    return CHUNK if mini_batches <= LONG else min(CHUNK, max(1, total // PARTS))


def size_of(job: Job) -> int:
    """How many trainings a job is."""
    if job.kind == "evaluation":
        return len(job.needs["seeds"])
    if job.kind == "piece":
        return int(job.needs["takes"])
    first, last = job.needs["chunk"]
    return int(last) - int(first)


def shared_needs(jobs: Sequence[Job]) -> dict[str, JSON]:
    """What all jobs of one estimate need."""
    return _without_own(jobs[0].needs)


def _without_own(needs: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in needs.items() if key not in ("chunk", "piece", "takes")}


class Pieces:
    """The paper's way as jobs, of which those are needed that come before its rule says that they
    are enough.

    The rule is asked after each of them in their order, whenever and wherever they were done.
    """

    def __init__(self, store: Store, paper: Paper, jobs: Sequence[Job]):
        self._store, self._paper, self._jobs = store, paper, jobs
        self._found: list[Found] = []
        self._end = len(jobs)
        self.are_enough()

    def are_enough(self) -> bool:
        """Whether those on record are."""
        while len(self._found) < self._end:
            at = len(self._found)
            body = self._store.result(self._jobs[at].key)
            if body is None:
                return False
            self._found.append(from_plain(self._paper.pieces[at], body))
            if self._paper.is_enough(self._found):
                self._end = at + 1
        return True

    @property
    def jobs(self) -> Sequence[Job]:
        """The needed ones, as far as that is known."""
        return self._jobs[: self._end]

    def combine(self, method: str) -> JSON:
        """The estimates that they add up to."""
        return label(self._paper.conclude(self._found), method, self._paper.request).to_dict()


def find_earlier(store: Store, needs: dict[str, JSON]) -> list[Value]:
    """Estimates of earlier rounds, whose trainings still tell something: all is the same but for
    the labels."""
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


def name_estimates(needs: dict[str, JSON], earlier: Sequence[Value]) -> Job:
    """What estimates are made of."""
    return _name(needs, [value.key for value in earlier])


def _name(needs: dict[str, JSON], earlier: list[JSON]) -> Job:
    return Job("estimates", needs | ({"earlier": earlier} if earlier else {}))


def combine_chunks(store: Store, jobs: Sequence[Job], earlier: Sequence[Value] = ()) -> JSON:
    """The estimates that finished chunks add up to, with those of earlier rounds."""
    needs = shared_needs(jobs)
    bodies: list[JSON] = [store.result(job.key) for job in jobs]
    parts = [Response.from_dict(body) for body in bodies]
    rows = [
        field.name
        for field in fields(Response)
        if isinstance(getattr(parts[0], field.name), np.ndarray)
    ]
    # which the first chunk has for all
    rows = [row for row in rows if row not in ("untrained", "constant")]
    joined: dict[str, Any] = {
        key: np.concatenate([getattr(part, key) for part in parts]) for key in rows
    }
    # a chunk whose folds have no label of a task can't say which way its metric points, and says
    # higher
    higher = tuple(map(all, zip(*(part.higher_is_better for part in parts), strict=True)))
    response = replace(parts[0], **joined, higher_is_better=higher)
    about = {key: needs[key] for key in ("method", "trainings", "folds", "seed")}
    about |= {"unit": "%", "measured": {"response": response.to_dict()}}
    if needs["method"] == "response":
        rounds = [value.body["estimates"]["about"]["measured"]["response"] for value in earlier]
        prior = Prior().later if earlier else Prior()
        found = worth.fit(
            join([*map(Response.from_dict, rounds), response]), seed=int(needs["seed"]), prior=prior
        )
        about["rounds"] = 1 + len(earlier)
    else:
        found = fit_slopes(response, seed=int(needs["seed"]))
    return replace(found, about=dict(found.about) | about).to_dict()


def combine_evaluations(
    store: Store, state: State, trials: Sequence[Trial], jobs: Sequence[Sequence[Job]]
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


def count_left_over(
    store: Store, state: State, jobs: Sequence[Job], earlier: Sequence[Value] = ()
) -> dict[str, int]:
    """Trainings on record that these estimates cannot use, by what has changed since."""
    wanted, used = {job.key for job in jobs}, [value.body["needs"] for value in earlier]
    found: dict[str, int] = {}
    for key, needs, _ in store.results(jobs[0].kind):
        if key not in wanted and _without_own(needs) not in used:
            reason = (
                " and ".join(state.changes(needs))
                or "the labels at hand, the learner or a version are others"
            )
            found[reason] = found.get(reason, 0) + size_of(Job(jobs[0].kind, needs))
    return found
