"""`allot demo`: the whole way on the built-in scenes, that it can be stopped, and that what it
shows adds up."""

from __future__ import annotations

import re
import shlex
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from allotment.advice.price import Price
from allotment.campaign.campaign import Campaign
from allotment.campaign.evaluation import Evaluation, Trial
from allotment.cli import main
from allotment.cli.demo import (
    BUDGET,
    DEMO_BASELINES,
    DEMO_TASKS,
    FULL_DEMO,
    QUICK_DEMO,
    _show_gains,
    write_settings,
)
from allotment.ledger.store import Store
from allotment.terminal.page import Page

ROOT = Path(__file__).parents[2]


def demo(*args: str) -> Result:
    result = CliRunner().invoke(main, ["demo", "--workers", "0", *args])
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
    for title in (
        "1. Six tasks",
        "2. What is one more label",
        "3. The plan",
        "4. What it was worth",
        "5. Yours",
    ):
        assert title in result.stdout
    folder = Path("allot-demo")
    state = Campaign(folder).look()
    spent, on_order, left = state.money
    assert on_order == 0
    assert not state.is_affordable
    bought = {
        name: len(state.stock.labels[name]) - len(state.stock.start[name])
        for name in state.settings.names
    }
    assert spent == sum(DEMO_TASKS[name]["cost"] * count for name, count in bought.items())
    assert left + spent == state.settings.budget
    with Store.open(folder, write=False) as store:
        (evaluation,) = store.values("evaluation")
        done = len(store.results("response")), len(store.results("evaluation"))
    found = Evaluation.from_dict(evaluation.body)
    assert found.trials[0].counts == bought
    assert [trial.name for trial in found.trials[1:5]] == [
        "equal images",
        "equal images*",
        "equal budget",
        "neutral",
    ]
    assert len(found.trials) == 5
    check_gains(result.stdout, found)
    assert "look at the way, not at the figures" in result.stdout
    assert (folder / "report.html").read_text().count("<svg") >= 6
    again = demo("--quick")
    assert again.exit_code == 0
    assert "Measured and bought already." in again.stdout
    with Store.open(folder, write=False) as store:
        assert (len(store.results("response")), len(store.results("evaluation"))) == done


def check_gains(printed: str, found: Evaluation) -> None:
    """That the printed table is that of the scores on record, worked out here once more."""
    shown = printed.partition("4. What it was worth")[2].partition("5. Yours")[0].splitlines()
    base = found.base.mean(axis=0)
    sign = [100 if higher else -100 for higher in found.higher_is_better]
    for place, task in enumerate(found.tasks):
        (line,) = [line for line in shown if line.startswith(task)]
        pairs = re.findall(r"([-+][\d.]+) ±([\d.]+)", line)
        assert len(pairs) == len(found.trials)
        for (mean, error), scores in zip(pairs, found.scores[:, :, place], strict=True):
            gains = [sign[place] * (score - base[place]) / abs(base[place]) for score in scores]
            assert float(mean) == pytest.approx(statistics.fmean(gains), abs=0.051)
            assert float(error) == pytest.approx(
                statistics.stdev(gains) / len(gains) ** 0.5, abs=0.051
            )
    for row in found.rows()[1:]:
        (line,) = [line for line in shown if re.match(rf"{re.escape(row['name'])}  +[-+]", line)]
        assert [float(each) for each in re.findall(r"[-+][\d.]+", line)] == pytest.approx(
            row["ahead"], abs=0.0051
        )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_the_table_of_gains_fits_any_terminal(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = [
        Trial(name, {})
        for name in ("this plan", "equal images", "equal images*", "equal budget", "neutral")
    ]
    rng = np.random.default_rng(0)
    base, scores = rng.uniform(1, 2, (8, 6)), rng.uniform(1, 2, (5, 8, 6))
    page = Page()
    page.width = width
    _show_gains(
        page, Evaluation(tuple(DEMO_TASKS), (1.0,) * 6, (True,) * 6, tuple(trials), base, scores)
    )
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= max(width, 48)
    assert printed.count("±") == 5 * 7 + 1
    assert ("neutral" in printed.splitlines()[0]) == (width >= 80)
    assert printed.count("noise") == 1  # said once, not in one sentence and then in another


def test_stopped_anywhere_it_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from allotment.estimates import chunks

    calls, run = {"left": 2}, chunks.run

    def stop(*given: Any, **more: Any) -> Any:
        calls["left"] -= 1
        if calls["left"] == 0:
            raise KeyboardInterrupt
        return run(*given, **more)

    monkeypatch.setattr(chunks, "run", stop)
    result = demo("--quick", "--seed", "3", "my demo")
    assert result.exit_code == 130
    again = re.search(r"to go on from there: allot (.*)", result.stderr)
    assert again
    with Store.open(Path("my demo"), write=False) as store:
        done = {key for key, _, _ in store.results("response")}
    assert len(done) == 1
    assert demo(*shlex.split(again[1])[1:]).exit_code == 0
    assert (
        calls["left"] == 2 - 1 - QUICK_DEMO["trainings"]
    )  # one was cut short, none was done twice
    with Store.open(Path("my demo"), write=False) as store:
        assert done < {key for key, _, _ in store.results("response")}


@pytest.mark.parametrize("wrong", [["--quick", "--seed", "1"], []])
def test_what_another_form_of_it_found_is_not_passed_off_as_its_own(wrong: list[str]) -> None:
    """Figures of --quick mean nothing, and those of one seed are not those of another."""
    Campaign.create("mine", write_settings(QUICK_DEMO, True, 0))
    before = Path("mine/campaign.sqlite").read_bytes()
    result = demo(*wrong, "mine")
    assert result.exit_code == 2
    assert (
        "error: mine: is another campaign, or a demo with another --quick or --seed; name a new"
        in result.stderr
    )
    assert Path("mine/campaign.sqlite").read_bytes() == before


def test_nothing_is_ordered_in_a_campaign_of_somebody() -> None:
    Path("t.csv").write_text(
        "x,y\n" + "".join(f"{n},{n % 7 if n < 20 else ''}\n" for n in range(60))
    )
    made = [
        "init",
        "own",
        "--root",
        "t.csv",
        "--target",
        "y",
        "--cost",
        "y=1",
        "--kind",
        "y=regression",
        "--budget",
        "9",
        "--method",
        "neutral",
    ]
    assert CliRunner().invoke(main, made).exit_code == 0
    assert demo("--quick", "own").exit_code == 2
    assert not Campaign("own").look().open


def test_no_more_than_two_processes_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from allotment.runs.runners.processes import Processes

    asked: list[int] = []

    def note(jobs: Any, work: Any, context: Any, *, workers: int, **more: Any) -> None:
        if jobs[0].kind == "price":  # which is timed one at a time
            done = more["done"]
            done(jobs[0], Price("response", 4, 8, 1.0).to_dict())
            return
        asked.append(workers)
        raise KeyboardInterrupt

    monkeypatch.setattr("allotment.campaign.campaign.run_jobs", note)
    for cores, more in ((8, []), (1, []), (8, ["--workers", "5"])):
        monkeypatch.setattr(Processes, "count_workers", lambda self, cores=cores: cores)
        assert CliRunner().invoke(main, ["demo", "--quick", *more]).exit_code == 130
    assert asked == [2, 1, 5]


def test_the_full_demo_is_what_the_issue_of_a_newcomer_asks_for() -> None:
    """Six tasks, unequal prices and labels at hand, more than one repeat; `make demo` types it."""
    assert list(DEMO_TASKS) == ["classes", "segmentation", "depth", "normals", "edges", "keypoints"]
    assert len({task["cost"] for task in DEMO_TASKS.values()}) >= 4
    assert len({task["have"] for task in DEMO_TASKS.values()}) >= 4
    assert FULL_DEMO["repeats"] >= 3
    assert set(DEMO_BASELINES) >= {"equal budget", "equal images", "neutral"}
    assert int(BUDGET) >= 2 * sum(task["cost"] for task in DEMO_TASKS.values())
    assert re.search(
        r"^demo: install\n\t@\$\(BIN\)/allot demo", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
