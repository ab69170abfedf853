"""Jobs on Slurm: what goes through the shared folder, with a stand-in for Slurm itself."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allotment.errors import InputError
from allotment.job import JSON, Job
from allotment.runs.conformance import RunnerTests
from allotment.runs.portion import Portion
from allotment.runs.runner import Runner, WorkFailed, find_runner, run_jobs
from allotment.runs.runners import slurm
from allotment.runs.runners.slurm import OnSlurm
from allotment.runs.trees import take_all


class FakeSlurm:
    """Jobs are done when somebody asks what is known of them; those in `lost` never are."""

    def __init__(self) -> None:
        self.waiting: dict[str, Callable[[], None]] = {}
        self.lost: set[int] = set()
        self.handed_in = 0
        self.cancelled: dict[str, Callable[[], None]] = {}

    def map_array(self, do: Callable[..., None], *given: Any) -> list[Any]:
        jobs = []
        for each in zip(*given, strict=True):
            name = f"7_{self.handed_in}"
            if self.handed_in not in self.lost:
                self.waiting[name] = lambda each=each: do(*each)
            self.handed_in += 1
            jobs.append(SimpleNamespace(job_id=name))
        return jobs

    def call(self, *command: str) -> str:
        if command[0] == "scancel":
            self.cancelled |= self.waiting
            self.waiting.clear()
        elif self.waiting:
            self.waiting.pop(next(iter(self.waiting)))()
        return "\n".join(self.waiting)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm()
    monkeypatch.setattr(slurm, "_make_executor", lambda name, log, portion: fake)
    monkeypatch.setattr(slurm, "_call", fake.call)
    for name in ("POLL", "ASK"):
        monkeypatch.setattr(slurm, name, 0.0)
    return fake


def run(folder: Path, count: int = 5, work: str = "count", **told: Any) -> list[JSON]:
    seen: list[JSON] = []
    jobs = [Job("count", {"n": n}) for n in range(count)]
    told = {"context": None, "done": lambda _, body: seen.append(body)} | told
    runner = told.pop("runner", OnSlurm(str(folder)))
    place = f"allotment.runs.conformance:{work}"
    run_jobs(jobs, place, told.pop("context"), runner=runner, workers=2, **told)
    return seen


class TestStandIn(RunnerTests):
    apart = False

    @pytest.fixture(autouse=True)
    def _fake(self, fake: FakeSlurm, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self) -> Runner:
        return OnSlurm(str(self.folder))


def test_nothing_is_left_of_what_went_well(fake: FakeSlurm, tmp_path: Path) -> None:
    assert run(tmp_path) == [0, 1, 2, 3, 4]
    assert list(tmp_path.iterdir()) == []
    assert not fake.cancelled


def test_a_job_that_was_cancelled_is_handed_in_again(fake: FakeSlurm, tmp_path: Path) -> None:
    fake.lost = {1}
    assert run(tmp_path) == [0, 1, 2, 3, 4]
    assert fake.handed_in == 6


def test_one_that_is_lost_twice_is_told_with_the_end_of_its_log(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    fake.lost = {0, 1}

    def write(job: Job, body: JSON) -> None:
        raise AssertionError("nothing is done")

    (folder,) = (tmp_path / "x",)
    with pytest.raises(WorkFailed, match="its worker died twice, or was cancelled before it began"):
        run(folder, 1, done=write)
    (log,) = folder.iterdir()
    (log / "log").mkdir(exist_ok=True)
    for number in (2, 3):
        fake.lost.add(number)
        (log / "log" / f"7_{number}_0_log.err").write_text("slurmstepd: error: oom-kill\n")
    with pytest.raises(WorkFailed, match=r"its log ends: slurmstepd: error: oom-kill \("):
        run(folder, 1, done=write)


def test_whoever_begins_again_finds_what_was_done_meanwhile(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    def stop(job: Job, body: JSON) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, 2, done=stop)
    fake.cancelled.pop("7_1")()  # it was done all the same
    assert run(tmp_path, 2) == [0, 1]
    assert fake.handed_in == 2


def test_jobs_of_a_driver_that_was_killed_are_ended(fake: FakeSlurm, tmp_path: Path) -> None:
    fake.waiting = {"3_0": lambda: None, "3_1": lambda: None}
    assert run(tmp_path) == [0, 1, 2, 3, 4]
    assert list(fake.cancelled) == ["3_0", "3_1"]


def test_files_lie_in_the_shared_folder(fake: FakeSlurm, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a\n1\n")
    trees = {"data": take_all(tmp_path / "table.csv")}
    context = {"data": str(tmp_path / "table.csv")}
    shared = tmp_path / "shared"
    (body,) = run(shared, 1, "echo", context=context, trees=trees)
    assert Path(body["context"]["data"]).is_relative_to(shared)
    runner = OnSlurm(str(shared), Portion(shared=True))
    (body,) = run(shared, 1, "echo", context=context, trees=trees, runner=runner)
    assert body["context"] == context


def test_what_slurm_does_not_take_is_told(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> list[Any]:
        raise RuntimeError("sbatch: error: invalid partition\nmore")

    monkeypatch.setattr(fake, "map_array", refuse)
    with pytest.raises(InputError, match=r"takes no job with 1 CPU: sbatch: error: invalid part"):
        run(tmp_path)


def test_what_is_missing_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError) as caught:
        find_runner("slurm://relative", Portion(gpus=0.5))
    said = "\n".join(map(str, caught.value.mistakes))
    assert "slurm: submitit is not installed: pip install 'allotment[slurm]'" in said
    assert "slurm: there is no sbatch here" in said
    assert "slurm: it gives whole GPUs, and 0.5 are wanted; write gpus = 1" in said
    assert "slurm: 'relative' is no folder; write slurm:///scratch/me/allot" in said


@pytest.mark.skipif(
    importlib.util.find_spec("submitit") is None, reason="submitit is not installed"
)
def test_slurm_is_asked_for_what_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    portion = Portion(cpus=1.5, gpus=2, memory=3.5, minutes=30)
    made = slurm._make_executor("allot-7", tmp_path, portion)
    text = made._make_submission_file_text("command", "x")
    for line in ("cpus-per-task=2", "gpus-per-node=2", "mem=3500M", "time=45", "job-name=allot-7"):
        assert f"#SBATCH --{line}\n" in text
    assert " -P -u -m submitit" in made._submitit_command_str
