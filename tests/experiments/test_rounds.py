"""Rounds of the corpus: orders as campaigns propose them, and nothing done twice."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.planted_response import PLANTED, planted

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from corpus import rounds
from corpus.campaigns import Campaign

from allotment.campaign import tranche
from allotment.campaign.tranche import propose_tranche
from allotment.corpus.kept import Kept
from allotment.corpus.plans import Counts, make_problem, order_counts
from allotment.corpus.setting import Setting
from allotment.corpus.ways import FIRST_ROUNDS, WAYS_IN_TRANCHES
from allotment.data.labels import Labels
from allotment.estimates.response import Response
from allotment.plan import allocate

SETTING = Setting(
    "planted", "planted", PLANTED, (1, 3, 2, 1), (400,) * 4, (5000,) * 4, 6000, cluster="planted"
)


class Trained(Campaign):
    """A campaign whose trainings score as planted."""

    def buy(self, counts: Counts, purchase: int) -> Labels:
        rows = zip(PLANTED, SETTING.have, counts, strict=True)
        return Labels({task: range(have + count) for task, have, count in rows})

    def respond(self, labels: Labels, seed: int) -> Response:
        found, have = planted(0.02, seed), np.array([len(labels[task]) for task in PLANTED])
        counts = np.round(found.counts * have / 400).astype(int)
        return replace(found, have=tuple(have.tolist()), counts=counts)


def test_orders_are_those_that_campaigns_propose_and_nothing_is_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # planted tasks leave little to know
    monkeypatch.setattr(tranche, "LEAST", 0.001)
    campaign, kept = Trained(SETTING, 1), Kept(SETTING.name, tmp_path)
    kept.put(1, "response", campaign.respond(campaign.buy((0,) * 4, 0), 1).to_dict())
    kept.put(1, FIRST_ROUNDS[0], {"counts": [1, 2, 3, 4]})
    rounds.measure_long(kept, campaign)

    problem = make_problem(SETTING)
    response = Response.from_dict(kept.get(1, "response"))
    first = rounds._conclude(campaign, (0,) * 4, response, [])
    now = propose_tranche(allocate(problem, first))
    assert not now.is_all
    bought = order_counts(SETTING, now.counts)
    response = Response.from_dict(kept.get(1, f"response after {' '.join(map(str, bought))}"))
    second = rounds._conclude(campaign, bought, response, [first])
    rest = allocate(rounds._take_off(problem, now.counts), second)
    in_all = np.add(bought, order_counts(SETTING, rest.counts))
    assert kept.get(1, "two tranches")["counts"] == in_all.tolist()
    for name in WAYS_IN_TRANCHES:
        counts = dict(zip(PLANTED, kept.get(1, name)["counts"], strict=True))
        assert 5900 < problem.price(counts) <= 6000

    assert kept.get(1, FIRST_ROUNDS[0]) == {"counts": [1, 2, 3, 4]}
    size = kept.path.stat().st_size
    rounds.measure_long(Kept(SETTING.name, tmp_path), campaign)
    assert kept.path.stat().st_size == size
