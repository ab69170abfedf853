"""Plans of the first edition, whose code is in the history."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.planted_surfaces import fill, make_setting

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from corpus.first_edition import LAST_COMMIT, plan_then, unpack_source
from corpus.settings import FOLDER

from allotment.corpus.kept import Kept
from allotment.corpus.plans import make_problem
from allotment.corpus.ways import load
from allotment.limits import find_broken

HISTORY = subprocess.run(
    ["git", "-C", str(FOLDER), "cat-file", "-e", LAST_COMMIT], capture_output=True, check=False
)


@pytest.mark.skipif(HISTORY.returncode != 0, reason="needs the history of the repository")
def test_the_first_edition_plans_from_trainings_of_today(tmp_path: Path) -> None:
    setting = make_setting()
    fill(tmp_path, setting, 0.003, 0)
    response = Kept(setting.name, tmp_path).get(0, "response")
    unpack_source(LAST_COMMIT, tmp_path)
    assert (tmp_path / "src/allotment/estimates/priors.py").exists()
    (plain,) = plan_then([[setting.to_dict(), 0, response]], tmp_path)
    choice = load(plain)
    assert choice is not None
    assert choice.span is not None
    counts = dict(zip(setting.tasks, choice.counts, strict=True))
    assert not find_broken(make_problem(setting), counts)
