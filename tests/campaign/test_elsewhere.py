"""Campaigns whose trainings run elsewhere, as far as this process sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import begin
from helpers.fake_ray import FakeRay

from allotment.campaign.campaign import Campaign
from allotment.errors import InputError
from allotment.job import Job
from allotment.runs.portion import Portion
from allotment.runs.runners import ray as on_ray
from allotment.runs.runners.ray import OnRay


@pytest.fixture(autouse=True)
def ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(on_ray, "connect", lambda address: fake)
    monkeypatch.setattr(OnRay, "at", lambda self, address, portion: OnRay(address, portion))
    return fake


def test_a_job_may_ask_for_a_fraction(ray: FakeRay) -> None:
    folder = begin("camp")
    settings = folder / "campaign.toml"
    portion = "[cluster]\ncpus = 1\ngpus = 0.25\nmemory = 1.5\nminutes = 0.5\n[training]"
    settings.write_text(settings.read_text().replace("[training]", portion))
    assert Campaign(folder).look().settings.cluster == Portion(1, 0.25, 1.5, 0.5)


def test_a_cluster_without_room_is_told_before_anything_is_timed(ray: FakeRay) -> None:
    folder = begin("camp")
    settings = folder / "campaign.toml"
    settings.write_text(
        settings.read_text().replace("[training]", "[cluster]\ngpus = 1\n[training]")
    )
    campaign = Campaign(folder, on="ray")
    with pytest.raises(
        InputError, match="no machine of the cluster has room for a job with 1 CPU, 1 GPU"
    ):
        campaign.price(campaign.look())
    assert not ray.parcels


def test_another_kind_of_cpu_is_no_news_where_a_cluster_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = begin("camp")
    Campaign(folder).estimate(workers=0)
    monkeypatch.setattr("allotment.campaign.campaign.describe_cpu", lambda: "another")
    assert "another kind of CPU" in Campaign(folder).tell_machine()
    assert not Campaign(folder, on="ray").tell_machine()


class Handed(Exception):
    """Jobs, in the order in which they are to be done."""


@pytest.mark.parametrize(
    ("method", "is_sorted"), [("response", True), ("taba", True), ("taba-mended", False)]
)
def test_the_longest_go_first_unless_the_first_ones_may_be_enough(
    method: str, is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(begin("camp", "--method", method))
    jobs = campaign.list_jobs(campaign.look())
    weights = {job.key: at for at, job in enumerate(jobs)}

    def hand_in(jobs: list[Job], *given: Any, **told: Any) -> None:
        raise Handed([weights[job.key] for job in jobs])

    monkeypatch.setattr("allotment.campaign.jobs._weigh", lambda job: weights[job.key])
    monkeypatch.setattr("allotment.campaign.campaign.run_jobs", hand_in)
    with pytest.raises(Handed) as caught:
        campaign.estimate()
    order = caught.value.args[0]
    assert len(order) > 1
    assert order == sorted(order, reverse=is_sorted)
