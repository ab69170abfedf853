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
from allotment.experiment.work import make_site
from allotment.learners.setups import BACKBONES, SETUPS

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
    shown = {}
    for on in ("here", "ray"):
        record = Record(tmp_path / f"{on}.jsonl")
        book = running.run([FIGURE_2], site, record, on=on, workers=2)
        shown[on] = FIGURE_2.show(Casebook(CASE, book.record)).to_markdown()
        assert len(record) > 11
    ray.shutdown()
    assert shown["ray"] == shown["here"]
