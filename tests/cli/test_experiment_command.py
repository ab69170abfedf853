"""The command `experiment`: what it lists, weighs, judges and refuses."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.planted_record import Planted

from allotment.cli import main
from allotment.experiment import repetition, running, work
from allotment.experiment.case import SMALL, find_case
from allotment.job import Job
from allotment.runs.runner import Done

ROOT = Path(__file__).parents[2]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["experiment", *words], catch_exceptions=False)


def test_every_exhibit_is_listed_with_its_data() -> None:
    lines = run("list").output.splitlines()
    names = {line.split()[0]: line.split()[1] for line in lines}
    assert names["figure-5"] == "voc"
    assert names["table-2"] == "taskonomy"


def test_what_it_takes_is_said_without_data(tmp_path: Path) -> None:
    small, full = (
        run("run", "figure-2", "--dry-run", "--config", size, "-o", str(tmp_path)).output
        for size in ("small", "full")
    )
    # 11 shares and the labels at hand together, 2 x 11 alone, in 5 x 3 purchases
    assert small.startswith("figure-2: 510 trainings of plans and 0 of methods: about ")
    assert "one core" in small
    assert "a GPU like the paper's A40" in full
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "figure-6", "--dry-run"), "did you mean"),
        (("run", "figure-5"), "--root"),
        (("run", "figure-5", "table-2", "--dry-run"), "one data set at a time"),
        (("run", "figure-5", "--dry-run", "--config", "smal"), "did you mean 'small'"),
        (("run", "figure-5", "--check", "3"), "--root"),
        (("show", "figure-5", "-o", "nowhere"), "nothing is on record there"),
        (("replay", "--corpus", "nowhere"), "give the folder of a corpus"),
        (("replay", "--corpus", "experiments/corpus", "--method", "defaul"), "did you mean"),
        (("replay", "--records", "docs"), "allot experiment run wrote to"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found = run(*words)
    assert found.exit_code == 2
    assert said in found.output


def test_a_plan_of_ones_own_is_judged_beside_neutral(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from allotment.plan import baselines\n\n\n"
        "def plan(known):\n    return baselines(known.problem)['neutral']\n"
    )
    tables = run("replay", "--method", f"{mine}:plan", "--method", "neutral").output
    rows = tables.split("\n\n")[0].splitlines()  # the table over data sets
    own, neutral = (row.split("|")[2:4] for row in rows if "+0.00 ± 0.00" in row)
    assert own == neutral


def test_records_are_judged_beside_the_corpus_and_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = find_case("voc", SMALL)
    planted = Planted(case, {"classes": 1.0, "segmentation": 4.0}, noise=0.3)
    planted.train_out(case.prices[1], [0, 3])
    planted.measure([0])
    planted.save(tmp_path / "paper", SMALL)
    words = ("replay", "--records", str(tmp_path / "paper"), "--method")
    monkeypatch.chdir(ROOT)
    beside = run(*words, "neutral").output
    assert "| 33 |" in beside.splitlines()[2]  # settings
    monkeypatch.chdir(tmp_path)
    alone = run(*words, "taba").output
    assert alone.startswith("\n**voc-small 1:20**: 2 of 5 seed sets, each with 3 purchases")
    (row,) = (line for line in alone.splitlines() if line.startswith("| taba |"))
    assert row.endswith("| 1 | 0, 1 |")
    assert "too little is on record of prices 1:3, 1:30, 1:20, larger budget" in alone


@pytest.mark.parametrize(("score", "said", "code"), [(0.5, "same", 0), (0.6, "different", 1)])
def test_trainings_on_record_are_repeated_and_compared(
    score: float, said: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = find_case("voc", SMALL)
    planted = Planted(case, {"classes": 0.0, "segmentation": 0.0})
    planted.train_out(case.prices[1], [0])
    before = planted.save(tmp_path, SMALL).read_bytes()
    metrics = dict.fromkeys(case.tasks, score)
    result = {"metrics": metrics, "losses": metrics, "seconds": 1.0}

    def train(jobs: Sequence[Job], *_: object, done: Done, **__: object) -> None:
        for job in jobs:
            done(job, result)

    monkeypatch.setattr(repetition, "run_jobs", train)
    monkeypatch.setattr(work, "open_ground", lambda site: None)
    words = ("run", "figure-2", "--root", "anywhere", "-o", str(tmp_path), "--check")
    found = run(*words, "2")
    assert found.exit_code == code
    lines = found.stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == [said] * 2
    assert lines[2].startswith(f"{2 * (not code)} of 2 trainings came out the same")
    assert (tmp_path / "voc-small.jsonl").read_bytes() == before
    (tmp_path / "voc-small.jsonl").unlink()
    assert "begin without --check" in run(*words, "2").output


def test_a_stopped_run_says_how_to_go_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that was typed: in another folder, or without the weights, it would begin anew."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", stop)
    words = ["run", "figure-5", "--root", "my VOC", "--weights", "w.npz", "-o", str(tmp_path)]
    words += ["--workers", "2", "--cluster", "gpus=0.5", "--no-pictures"]
    result = run(*words)
    assert result.exit_code == 130
    typed = shlex.split(result.output.rsplit("to go on from there: ", 1)[1])
    assert typed[:3] == ["allot", "experiment", "run"]
    swapped = ["--out" if word == "-o" else word for word in words[1:]]
    assert sorted(typed[3:]) == sorted(swapped)
