"""What one job gets of a cluster, as settings and command lines say it."""

from __future__ import annotations

from typing import Any

import pytest

from allotment.errors import InputError
from allotment.runs.portion import Portion, read_portion


def test_a_job_gets_one_core_unless_told() -> None:
    assert str(Portion()) == "1 CPU"
    assert str(Portion(cpus=2, gpus=0.5, memory=4)) == "2 CPU, 0.5 GPU, 4 GB"
    assert Portion(minutes=2).seconds == 120
    assert Portion().seconds is None


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"cpus": 0}, "cpus: is 0"),
        ({"gpus": -1}, "gpus: -1 is not a number from 0"),
        ({"gpus": 1.5}, "of more than one GPU a job gets whole ones"),
        ({"memory": float("inf")}, "memory: inf is not a number"),
        ({"minutes": True}, "minutes: True is not a number"),
        ({"shared": 1}, "shared: 1 is neither true nor false"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        Portion(**given)


def test_a_command_line_says_it_too_with_every_mistake_at_once() -> None:
    told = {"cpus": "2", "gpus": "0.25", "memory": "8", "shared": "true"}
    assert read_portion(told) == Portion(2, 0.25, 8, None, True)
    with pytest.raises(InputError) as caught:
        read_portion({"gpu": "1", "cpus": "two", "shared": "yes"})
    assert [each.where for each in caught.value.mistakes] == [
        "--cluster: gpu",
        "--cluster: cpus",
        "--cluster: shared",
    ]
