"""The comparison of editions of set-ups: what it calls worse, and that it goes on where it was."""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "experiments" / "setups.py"
spec = importlib.util.spec_from_file_location("setups_compared", PATH)
assert spec is not None
assert spec.loader is not None
compared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compared)


def test_an_interval_is_students() -> None:
    old, new = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.1, 2.3, 3.2, 4.1, 5.3])
    mean, half = compared.compare(old, new)
    assert mean == pytest.approx(0.2)
    assert half == pytest.approx(2.776 * 0.1 / 5**0.5)


@pytest.mark.parametrize(
    ("mean", "half", "wanted"),
    [
        (-0.2, 0.1, "worse"),
        (0.2, 0.1, "better"),
        (-0.1, 0.3, "no worse"),
        (0.0, 0.01, "no worse, within the margin"),
    ],
)
def test_worse_is_an_interval_below_zero(mean: float, half: float, wanted: str) -> None:
    assert compared.judge(mean, half, margin=0.02) == wanted


def test_only_draws_that_both_editions_have_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, edition in ((0, 1), (0, 2), (1, 1), (1, 2), (2, 1)):
        found = {"scores": {"classes": seed + 0.1 * edition}, "train": 9.0, "score": 1.0}
        (tmp_path / f"voc-few-{seed}-{edition}.json").write_text(json.dumps(found))
    compared.tell(argparse.Namespace(kept=tmp_path, draws=range(5), editions=[1, 2]))
    told = capsys.readouterr().out
    assert "voc, few ({'classes': 80, 'segmentation': 80}): 2 draws" in told
    assert "| classes | 0.6000 | 0.7000 | +0.1000 ± 0.0000 | better |" in told
