"""Records of experiments that nobody trained, from gains that are known."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.estimates.response import Response
from allotment.experiment.case import Case, Prices
from allotment.experiment.entrants import list_ours, list_taba, make_problem, spread_budget
from allotment.experiment.record import name_record
from allotment.experiment.work import Purchase, name_estimates, name_pool, name_training
from allotment.job import Job
from allotment.plan import allocate, baselines

POOL = 2000


class Planted:
    """A file of records: a doubling of a task's labels brings `worths` % of its score."""

    def __init__(self, case: Case, worths: Mapping[str, float], noise: float = 0.0, seed: int = 0):
        self.case, self.worths, self.noise = case, worths, noise
        self.rng = np.random.default_rng(seed)
        self.rows: dict[str, dict[str, Any]] = {}
        self.put(name_pool(case), {"instances": POOL})

    def put(self, job: Job, result: Mapping[str, Any]) -> None:
        row = {"kind": job.kind, "needs": job.needs, "result": result, "versions": job.versions}
        self.rows.setdefault(job.key, row)

    def train(self, counts: Mapping[str, int], seed_sets: Collection[int]) -> None:
        """Purchases of a plan."""
        for seed_set in seed_sets:
            for purchase in range(self.case.purchases):
                job = name_training(self.case, Purchase(seed_set, purchase, counts))
                scores = {task: self._score(task, counts.get(task, 0)) for task in self.case.tasks}
                result = {"metrics": scores, "losses": scores, "seconds": 1.0}
                self.put(job, result | {"higher": dict.fromkeys(scores, True)})

    def _score(self, task: str, more: float) -> float:
        gain = self.worths[task] / 100 * math.log2(1 + more / self.case.have)
        return 0.5 * (1 + gain + self.noise / 100 * self.rng.normal())

    def list_plans(self, prices: Prices) -> list[dict[str, int]]:
        """What tables train out: the grid and baselines."""
        problem = make_problem(self.case, prices, POOL)
        return [
            *(counts for _, counts in spread_budget(self.case, prices)),
            *baselines(problem).values(),
        ]

    def train_out(self, prices: Prices, seed_sets: Collection[int] | None = None) -> None:
        """All of a surface, in some seed sets."""
        numbers = range(self.case.seed_sets) if seed_sets is None else seed_sets
        for counts in ({}, *self.list_plans(prices)):
            self.train(counts, numbers)

    def measure(self, seed_sets: Sequence[int]) -> dict[int, Estimates]:
        """What the default method concludes; that of the paper is put down as worth 1.1 and 2 in
        all seed sets."""
        found = {}
        for seed_set in seed_sets:
            (default,) = list_ours()
            response = self._respond()
            estimates = fit(response, seed=seed_set)
            plain = estimates.to_dict()
            plain["about"] = {**plain["about"], "measured": {"response": response.to_dict()}}
            found[seed_set] = estimates
            for each, result in (
                (default, plain),
                *((one, self.conclude().to_dict()) for one in list_taba(self.case)),
            ):
                asked = each.list_questions(self.case)[seed_set]
                job = name_estimates(self.case, asked)
                self.put(job, {"estimates": result, "seconds": 60.0})
        return found

    def conclude(self) -> Estimates:
        size = len(self.case.tasks)
        worths = np.diag(np.linspace(1.1, 2.0, size))[None]
        have = (self.case.have,) * size
        return Estimates(self.case.tasks, have, worths, np.full((1, size), 0.98), law="geometric")

    def _respond(self) -> Response:
        size, have = len(self.case.tasks), self.case.have
        shares = self.rng.choice([0.25, 0.5, 0.8], (16, size))
        counts = np.maximum(1, (shares * have).astype(int))
        scores = [
            [
                self._score(task, int(count) - have)
                for task, count in zip(self.case.tasks, row, strict=True)
            ]
            for row in counts
        ]
        return Response(
            self.case.tasks,
            (have,) * size,
            counts,
            np.array(scores),
            np.full((2, size), 0.1),
            (True,) * size,
            np.arange(16) % 4,
        )

    def plan_by(self, prices: Prices, estimates: Estimates) -> tuple[int, ...]:
        counts = allocate(make_problem(self.case, prices, POOL), estimates).counts
        return tuple(counts[task] for task in self.case.tasks)

    def save(self, folder: Path, size: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = name_record(folder, self.case.data, size)
        lines = [json.dumps(row, sort_keys=True) for row in self.rows.values()]
        path.write_text("".join(f"{line}\n" for line in lines))
        return path
