"""`allot demo`: the whole way on the built-in scenes, that it can be stopped, and that what it shows adds up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from allotment.campaign.campaign import Campaign
from allotment.campaign.evaluation import Evaluation
from allotment.campaign.store import Store
from allotment.cli import main
from allotment.cli.demo import BUDGET, FULL, TASKS

ROOT = Path(__file__).parent.parent


def demo(*args: str) -> Result:
    result = CliRunner().invoke(main, ["demo", "--workers", "1", *args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_the_whole_way_in_seconds_and_again_in_no_time() -> None:
    result = demo("--quick")
    assert result.exit_code == 0, result.output
    for title in ("1. Six tasks", "2. What is one more label", "3. The plan", "4. What it was worth", "5. Yours"):
        assert title in result.stdout
    folder = Path("allot-demo")
    state = Campaign(folder).look()
    spent, on_order, left = state.money
    assert on_order == 0
    assert not state.is_affordable
    bought = {name: len(state.stock.labels[name]) - len(state.stock.start[name]) for name in state.settings.names}
    assert spent == sum(TASKS[name]["cost"] * count for name, count in bought.items())
    assert left + spent == state.settings.budget
    with Store.open(folder, write=False) as store:
        (evaluation,) = store.values("evaluation")
        done = len(store.results("response")), len(store.results("evaluation"))
    found = Evaluation.from_dict(evaluation.body)
    assert found.trials[0].counts == bought
    assert [trial.name for trial in found.trials[1:5]] == ["equal images", "equal images*", "equal budget", "neutral"]
    assert len(re.findall(r"^all on \w+ .* ± ", result.stdout, re.MULTILINE)) == 6
    assert (folder / "report.html").read_text().count("<svg") >= 6
    again = demo("--quick")
    assert again.exit_code == 0
    assert "Measured and bought already." in again.stdout
    with Store.open(folder, write=False) as store:
        assert (len(store.results("response")), len(store.results("evaluation"))) == done


def test_stopped_anywhere_it_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from allotment.campaign import work

    calls, run = {"left": 2}, work.run

    def stop(*given: Any) -> Any:
        calls["left"] -= 1
        if calls["left"] == 0:
            raise KeyboardInterrupt
        return run(*given)

    monkeypatch.setattr(work, "run", stop)
    result = demo("--quick", "mine")
    assert result.exit_code == 130
    assert "to go on from there: allot demo mine" in result.stderr
    with Store.open(Path("mine"), write=False) as store:
        assert len(store.results("response")) == 1
    assert demo("--quick", "mine").exit_code == 0
    with Store.open(Path("mine"), write=False) as store:
        assert len(store.results("response")) == 2


def test_the_full_demo_is_what_the_issue_of_a_newcomer_asks_for() -> None:
    """Six tasks, unequal prices and labels at hand, more than one repeat; `make demo` types it."""
    assert list(TASKS) == ["classes", "segmentation", "depth", "normals", "edges", "keypoints"]
    assert len({task["cost"] for task in TASKS.values()}) >= 4
    assert len({task["have"] for task in TASKS.values()}) >= 4
    assert FULL["repeats"] >= 3
    assert int(BUDGET) >= sum(task["cost"] * task["have"] for task in TASKS.values())
    assert re.search(r"^demo: install\n\t@\$\(BIN\)/allot demo", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_full_demo_runs() -> None:
    """Within five minutes on two idle cores; here only that it ends well."""
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.output
    assert "This plan is" in result.stdout
