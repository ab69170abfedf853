"""Jobs on Slurm: what goes through the shared folder, with a stand-in for Slurm itself."""

from __future__ import annotations

import importlib.util
import json
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
        self.excluded: list[str | None] = []
        """the machine that is not to do what is handed in next"""
        self.stuck: list[str] = []
        """jobs that it says are running for a while"""
        self.silence = 0
        """questions that it does not answer"""
        self.pending: list[str] = []
        """reasons that it gives for a job that waits, one for each question"""

    def update_parameters(self, exclude: str | None) -> None:
        self.excluded.append(exclude)

    def map_array(self, do: Callable[..., None], *given: Any) -> list[Any]:
        jobs = []
        for each in zip(*given, strict=True):
            name = f"7_{self.handed_in}"
            if self.handed_in not in self.lost:
                self.waiting[name] = lambda each=each: do(*each)
            self.handed_in += 1
            jobs.append(SimpleNamespace(job_id=name))
        return jobs

    def call(self, *command: str) -> str | None:
        if command[0] == "scancel":
            self.cancelled |= self.waiting
            self.waiting.clear()
            return ""
        if self.silence:
            self.silence -= 1
            return None
        if self.pending:
            reason = self.pending.pop(0)
            return "\n".join(f"{name}|PENDING||{reason}" for name in self.waiting)
        if self.waiting:
            self.waiting.pop(next(iter(self.waiting)))()
        running = [*self.waiting, *self.stuck]
        self.stuck.clear()
        return "\n".join(f"{name}|RUNNING|node{name[-1]}|None" for name in running)


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


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_job_that_was_lost_is_done_on_another_machine_if_there_is_one(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_alone: bool
) -> None:
    fake.lost, fake.stuck, take = {1}, ["7_1"], fake.map_array

    def refuse(*given: Any) -> list[Any]:
        if is_alone and fake.excluded[-1]:
            raise RuntimeError("sbatch: error: Requested node configuration is not available")
        return take(*given)

    monkeypatch.setattr(fake, "map_array", refuse)
    assert run(tmp_path) == [0, 1, 2, 3, 4]
    assert [each for each in fake.excluded if each] == ["node1"]
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


def stop_with_one_done(fake: FakeSlurm, folder: Path) -> None:
    """Leave replies of two jobs, of which one was done while nobody waited any more."""

    def stop(job: Job, body: JSON) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, 2, done=stop)
    fake.cancelled.pop("7_1")()


def test_what_was_done_meanwhile_outlives_other_jobs_of_the_same_campaign(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    stop_with_one_done(fake, tmp_path)
    seen: list[JSON] = []
    run_jobs(
        [Job("count", {"n": 7})],  # as one that times a training
        "allotment.runs.conformance:count",
        None,
        runner=OnSlurm(str(tmp_path)),
        done=lambda _, body: seen.append(body),
    )
    assert seen == [7]
    assert fake.handed_in == 3
    assert run(tmp_path, 2) == [0, 1]
    assert fake.handed_in == 3
    assert list(tmp_path.iterdir()) == []


def test_what_failed_for_an_earlier_driver_is_tried_anew(fake: FakeSlurm, tmp_path: Path) -> None:
    stop_with_one_done(fake, tmp_path)
    failure = json.dumps({"failure": "no space left", "trace": ""})
    for reply in tmp_path.glob("*/replies/*"):
        reply.write_text(json.dumps({"reply": failure, "seconds": 1.0, "where": {}}))
    assert run(tmp_path, 2) == [0, 1]
    assert fake.handed_in == 4


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


@pytest.mark.parametrize("patience", [60.0, 0.0])
def test_one_that_takes_no_job_for_a_moment_is_asked_again(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    take, refusals = fake.map_array, [1, 2, 3]

    def refuse(*given: Any) -> list[Any]:
        if fake.handed_in and refusals:
            refusals.pop()
            raise RuntimeError("sbatch: error: Slurm temporarily unable to accept job")
        return take(*given)

    monkeypatch.setattr(fake, "map_array", refuse)
    monkeypatch.setattr(slurm, "LONGEST_TROUBLE", patience)
    if patience:
        assert run(tmp_path) == [0, 1, 2, 3, 4]
        assert not refusals
    else:
        with pytest.raises(InputError, match="takes no job with 1 CPU: sbatch: error: Slurm temp"):
            run(tmp_path)


def test_one_that_does_not_answer_is_waited_for_but_not_for_ever(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.silence = 5
    assert run(tmp_path) == [0, 1, 2, 3, 4]
    monkeypatch.setattr(slurm, "LONGEST_TROUBLE", 0.0)
    fake.silence = 5
    with pytest.raises(InputError, match=r"squeue has failed for 0 min.* what is done is kept"):
        run(tmp_path)


def test_why_jobs_wait_is_told_once(
    fake: FakeSlurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.pending = ["None", "AssocMaxJobsLimit", "AssocMaxJobsLimit", "Priority"]
    assert run(tmp_path) == [0, 1, 2, 3, 4]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"note: all jobs wait in Slurm: {reason}; see: squeue --me"
        for reason in ("AssocMaxJobsLimit", "Priority")
    ]


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
