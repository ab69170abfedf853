"""An experiment of the paper on Ray: the same figures as in this process."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_voc import TINY, write_voc
from helpers.tiny_work import make_same_backbone

from allotment.experiment import running
from allotment.experiment.case import Case, Prices
from allotment.experiment.casebook import Casebook
from allotment.experiment.exhibits.figure_2 import EXHIBIT as FIGURE_2
from allotment.experiment.record import Record
from allotment.experiment.work import MEASURING_JOB, TRAINING_JOB, make_site
from allotment.job import canonical
from allotment.learners.setups import BACKBONES, SETUPS
from allotment.machine import describe_cpu

KINDS = (TRAINING_JOB, MEASURING_JOB)
TESTS = str(Path(__file__).parents[1])
CASE = Case(
    "voc",
    "tiny",
    ("classes", "segmentation"),
    6,
    1,
    1,
    (Prices("1:20", {"classes": 1, "segmentation": 20}, 40),),
    validation=4,
    implies={"segmentation": ("classes",)},
)


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_a_figure_is_the_same_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETUPS, "tiny", TINY)
    monkeypatch.setitem(BACKBONES, "tiny", make_same_backbone)
    monkeypatch.setattr(running, "PERFORM_EXPERIMENT", "helpers.tiny_work:perform")
    path = filter(None, [TESTS, os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))  # of workers
    ray: Any = importlib.import_module("ray")
    ray.shutdown()  # one that an earlier test has started knows nothing of these
    site = make_site(CASE, write_voc(tmp_path / "voc", train=80, test=12), None)
    shown, done, places = {}, {}, {}
    for on in ("here", "ray"):
        record = Record(tmp_path / f"{on}.jsonl")
        book = running.run([FIGURE_2], site, record, on=on, workers=2)
        shown[on] = FIGURE_2.show(Casebook(CASE, book.record)).to_markdown()
        done[on] = [job for kind in KINDS for job in record.list_results(kind)]
        places[on] = [where for _, where in record.list_results("place")]
    ray.shutdown()
    assert shown["ray"] == shown["here"]
    assert drop_seconds(done["ray"]) == drop_seconds(done["here"])
    assert len(done["here"]) > 9
    # where each job was done is on record, and nothing else is different for it
    assert not places["here"]
    assert len(places["ray"]) == len(done["ray"])
    assert {where["cpu"] for where in places["ray"]} == {describe_cpu()}
    assert all(where["host"] and where["node"] for where in places["ray"])


def drop_seconds(done: list[tuple[Any, Any]]) -> list[str]:
    """Results but for how long they took, in an order of their own: results come as they are done,
    which differs between runs."""
    return sorted(
        canonical([needs, {key: result[key] for key in result if key != "seconds"}])
        for needs, result in done
    )
