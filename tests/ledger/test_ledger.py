"""The ledger against a simple model, in random histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import play


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_is_what_a_simple_model_says(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sum(play(seed, 15).values()) >= 15


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_long_histories_are_what_a_simple_model_says(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    play(seed, 40)
