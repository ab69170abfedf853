"""Jobs on local processes: the same bytes whatever the workers; deaths, Ctrl-C and failures in the
middle."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment.errors import InputError, Mistake
from allotment.job import JSON, Job, canonical
from allotment.ledger import store
from allotment.ledger.archive import pack
from allotment.ledger.store import Store
from allotment.runs.runner import WorkFailed, run_jobs
from allotment.runs.runners import processes

HERE = Path(__file__).parent
ME = __name__


# What the workers do; they find it by its name.


def square(context: JSON, kind: str, needs: JSON) -> JSON:
    return {"kind": kind, "square": needs["n"] ** 2, "context": context, "pair": (1, 2)}


def draw(context: JSON, kind: str, needs: JSON) -> JSON:
    """From global random numbers, which code of a user's may forget to seed."""
    import torch

    return [
        random.random(),
        float(np.random.rand()),
        float(torch.rand(())),
        torch.get_num_threads(),
        os.getpid(),
    ]


def train(context: JSON, kind: str, needs: JSON) -> JSON:
    import torch

    generator = torch.Generator().manual_seed(needs["seed"])
    x = torch.randn(300, 64, generator=generator)
    y = (x[:, :3].sum(1) > 0).float()
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
    for _ in range(20):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
        steps = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for parameter, step in zip(net.parameters(), steps, strict=True):
                parameter -= 0.1 * step
    return {"loss": float(loss.detach()), "weights": net[0].weight.detach().flatten().tolist()}


def die(context: JSON, kind: str, needs: JSON) -> JSON:
    """Killed from outside: once, always or never."""
    if needs["die"] == "always" or (needs["die"] == "once" and not Path(context).exists()):
        Path(context).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return needs["n"]


def leave(context: JSON, kind: str, needs: JSON) -> JSON:
    sys.exit(7)


def fail(context: JSON, kind: str, needs: JSON) -> JSON:
    if needs["n"] >= context["bad"]:
        if context["how"] == "input":
            raise InputError(
                [Mistake("task 'seg'", "has no labels", 4), Mistake("task 'cls'", "neither")]
            )
        if context["how"] == "result":
            return {"x": [np.zeros(2)]}
        raise ZeroDivisionError("so it goes")
    return needs["n"]


def hang(context: JSON, kind: str, needs: JSON) -> JSON:
    """Say so, and then wait for ever; whoever reads the fifo sees its end when all who hang are
    gone."""
    if not needs["hang"]:
        return needs["n"]
    fifo = os.open(context, os.O_WRONLY)
    os.write(fifo, b".")
    threading.Event().wait()
    return None


def look(context: JSON, kind: str, needs: JSON) -> JSON:
    """How Ctrl-C would find this process."""
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return [blocked, signal.getsignal(signal.SIGINT) == signal.SIG_IGN]


def numbered(count: int, **more: JSON) -> list[Job]:
    return [Job("count", {"n": n, **more}) for n in range(count)]


def collect(
    jobs: list[Job], work: str, context: JSON, workers: int | None
) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    run_jobs(
        jobs,
        f"{ME}:{work}",
        context,
        workers=workers,
        done=lambda job, body: seen.append((job.key, canonical(body))),
    )
    return seen


# Results


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_each_job_is_done_once_in_order(workers: int) -> None:
    jobs = numbered(20)
    seen: list[Any] = []
    told: list[tuple[int, int]] = []
    run_jobs(
        jobs,
        f"{ME}:square",
        {"a": (1, None)},
        workers=workers,
        done=lambda job, body: seen.append((job, body)),
        progress=lambda finished, of: told.append((finished, of)),
    )
    assert [job for job, _ in seen] == jobs
    for n, (_, body) in enumerate(seen):
        assert body == {
            "kind": "count",
            "square": n * n,
            "context": {"a": [1, None]},
            "pair": [1, 2],
        }
        assert list(body) == sorted(body)
    assert told == [(n, 20) for n in range(1, 21)]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_no_job_is_begun_once_there_are_enough(workers: int) -> None:
    seen: list[int] = []
    # the last would fail, which a single process would never find out
    jobs = [*numbered(9), Job("count", {"n": None})]
    run_jobs(
        jobs,
        f"{ME}:square",
        None,
        workers=workers,
        done=lambda job, body: seen.append(job.needs["n"]),
        enough=lambda: len(seen) == 4,
    )
    assert seen[:4] == [0, 1, 2, 3]
    assert workers > 1 or len(seen) == 4  # what came in ahead of its turn is not thrown away


def test_training_gives_the_same_bytes_whatever_the_workers() -> None:
    jobs = [Job("train", {"seed": seed}) for seed in range(7)]
    bytes_of = {workers: canonical(collect(jobs, "train", None, workers)) for workers in (0, 1, 3)}
    assert bytes_of[0] == bytes_of[1] == bytes_of[3]
    assert collect(jobs[3:], "train", None, 0) == collect(jobs, "train", None, 0)[3:]


def test_processes_that_are_not_forked_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows."""
    jobs = [Job("train", {"seed": seed}) for seed in range(3)]
    wanted = collect(jobs, "train", None, 1)
    monkeypatch.setattr(processes, "START_METHOD", "spawn")
    assert collect(jobs, "train", None, 2) == wanted


def test_a_store_is_the_same_to_the_byte_whatever_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_now", lambda: "2026-07-01T12:00:00+00:00")
    jobs = [Job("train", {"seed": seed}) for seed in range(6)]
    for workers in (1, 3):
        with Store.create(tmp_path / str(workers)) as held:
            run_jobs(jobs, f"{ME}:train", None, workers=workers, done=held.put_result)
        pack(tmp_path / str(workers), tmp_path / f"{workers}.zip")
    for name in ("{}.zip", "{}/campaign.sqlite"):
        one, three = ((tmp_path / name.format(workers)).read_bytes() for workers in (1, 3))
        assert one == three


def test_global_random_numbers_begin_at_the_key_and_are_given_back() -> None:
    torch = pytest.importorskip("torch")
    jobs = numbered(6)
    threads = torch.get_num_threads()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = random.random(), np.random.rand(), torch.rand(())
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    here = [json.loads(body) for _, body in collect(jobs, "draw", None, 0)]
    assert (random.random(), np.random.rand(), torch.rand(())) == expected
    assert torch.get_num_threads() == threads
    apart = [json.loads(body) for _, body in collect(jobs, "draw", None, 3)]
    assert [drawn[:4] for drawn in here] == [drawn[:4] for drawn in apart]
    assert len({tuple(drawn[:3]) for drawn in here}) == 6
    assert {drawn[3] for drawn in apart} == {1}
    assert {drawn[4] for drawn in here} == {os.getpid()}
    assert os.getpid() not in {drawn[4] for drawn in apart}


def test_no_jobs_is_no_work() -> None:
    assert collect([], "square", None, 3) == []


def test_the_default_is_one_worker_for_each_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    monkeypatch.setattr(processes, "QUOTA", tmp_path / "cpu.max")
    count_workers = processes.RUNNER.count_workers
    assert count_workers() == cores
    for text, workers in (
        ("max 100000", cores),
        ("100000 100000", 1),
        ("10000 100000", 1),
        ("9900000 100000", cores),
    ):
        (tmp_path / "cpu.max").write_text(text)
        assert count_workers() == workers


# Deaths and failures


def test_a_job_whose_worker_was_killed_is_done_again(tmp_path: Path) -> None:
    jobs = [Job("die", {"n": n, "die": "once" if n == 2 else "never"}) for n in range(8)]
    seen = collect(jobs, "die", str(tmp_path / "died"), 3)
    assert (tmp_path / "died").exists()
    assert [body for _, body in seen] == [str(n) for n in range(8)]


def test_a_job_that_kills_its_worker_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    jobs = [Job("die", {"n": n, "die": "always" if n in (0, 5) else "never"}) for n in range(8)]
    seen: list[int] = []
    with pytest.raises(WorkFailed, match=r"SIGKILL.*memory") as caught:
        run_jobs(
            jobs, f"{ME}:die", str(tmp_path / "died"), workers=3, done=lambda job,
            body: seen.append(body)
        )  # fmt: skip
    assert [failure.job for failure in caught.value.failures] == [jobs[0], jobs[5]]
    assert '"n":5' in str(caught.value)
    assert seen == [1, 2, 3, 4, 6, 7]


def test_when_every_worker_dies_it_stops_soon() -> None:
    with pytest.raises(WorkFailed, match="exit code 7") as caught:
        collect(numbered(1000), "leave", None, 3)
    assert 3 <= len(caught.value.failures) <= 5


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_first_failure_is_told_with_its_job_and_line(workers: int) -> None:
    seen: list[int] = []
    with pytest.raises(WorkFailed) as caught:
        run_jobs(
            numbered(9), f"{ME}:fail", {"bad": 3, "how": "bug"}, workers=workers,
            done=lambda job, body: seen.append(body),
        )  # fmt: skip
    (failure,) = caught.value.failures
    assert failure.job == numbered(9)[3]
    assert failure.what.startswith("ZeroDivisionError: so it goes (test_runs.py, line ")
    assert "in fail" in failure.trace
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_wrong_input_comes_through_as_it_is(workers: int) -> None:
    with pytest.raises(InputError) as caught:
        collect(numbered(5), "fail", {"bad": 1, "how": "input"}, workers)
    assert caught.value.mistakes == (
        Mistake("task 'seg'", "has no labels", 4),
        Mistake("task 'cls'", "neither"),
    )
    with pytest.raises(InputError, match=r"result of job 'count': x\[0\]: .* of type ndarray"):
        collect(numbered(5), "fail", {"bad": 1, "how": "result"}, workers)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_nothing_more_is_handed_on_to_a_done_that_fails(workers: int) -> None:
    asked: list[int] = []

    def refuse(job: Job, body: JSON) -> None:
        asked.append(body["square"])
        if len(asked) == 3:
            raise InputError([Mistake("disk", "is full")])

    with pytest.raises(InputError, match="is full"):
        run_jobs(numbered(12), f"{ME}:square", None, workers=workers, done=refuse)
    assert asked == [0, 1, 4]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("no_such_module:f", "cannot be loaded"),
        (f"{ME}:no_such", "check the name"),
        ("nonsense", "not 'module:func"),
    ],
)
def test_work_that_is_not_there(work: str, said: str, workers: int) -> None:
    with pytest.raises(InputError, match=said):
        run_jobs(numbered(3), work, None, workers=workers, done=lambda job, body: None)


@pytest.mark.parametrize("workers", [-1, True, 2.0, "2", 10**6])
def test_workers_are_a_number(workers: Any) -> None:
    with pytest.raises(InputError, match="workers"):
        collect(numbered(3), "square", None, workers)


# Ctrl-C, and the parent's own death


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
from allotment.job import Job
from allotment.runs.runner import run_jobs
# no guard against being run again in the workers: they must not need one
sys.path.insert(0, {here!r})
hanging = {hanging}
jobs = [Job("hang", {{"n": n, "hang": n in hanging}}) for n in range(5)]
def tell(finished, of):
    print("finished", finished, flush=True)
def done(job, body):
    print("done", body, flush=True)
try:
    run_jobs(jobs, "test_runs:hang", {fifo!r}, workers={workers}, done=done, progress=tell)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[tuple[str, Any]]:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    yield path, reader
    os.close(reader)


@pytest.fixture
def new_server() -> None:
    """End the server of earlier tests, so that the next workers start one."""
    server = forkserver._forkserver  # type: ignore[attr-defined]
    if server._forkserver_pid is not None:
        server._stop()


def start(
    path: str, hanging: set[int], workers: int, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    code = PARENT.format(here=str(HERE), hanging=hanging, fifo=path, workers=workers)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
    )


def hear(reader: int, count: int) -> None:
    """Wait until so many jobs hang."""
    for _ in range(count):
        select.select([reader], [], [])  # a fifo that nobody has opened yet would give its end
        assert os.read(reader, 1) == b"."


def read_until(process: subprocess.Popen[str], line: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for said in process.stdout:
        lines.append(said.strip())
        if lines[-1] == line:
            return lines
    assert process.stderr is not None
    raise AssertionError(f"{line!r} was never said: {lines}, {process.stderr.read()}")


def test_ctrl_c_stops_the_workers_and_keeps_what_is_finished(fifo: tuple[str, int]) -> None:
    path, reader = fifo
    process = start(path, {0, 3}, 3)
    lines = read_until(process, "finished 3")  # jobs 1, 2 and 4 wait for job 0
    hear(reader, 2)
    assert "done 1" not in lines
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = process.communicate()
    assert out.split("\n") == ["done 1", "done 2", "done 4", "interrupted", ""]
    assert "Traceback" not in err
    assert process.returncode == 0
    assert os.read(reader, 1) == b""  # its end: nobody has it open, so both who hung are gone


LOADED = """
import os
with open(os.environ["HELD"]) as held:
    with open(os.environ["SAID"], "w") as said:
        said.write("loading")
    held.read()  # ends when the test lets go
"""


def test_ctrl_c_while_the_server_loads_is_the_parent_s_alone(
    fifo: tuple[str, int], tmp_path: Path
) -> None:
    path, reader = fifo
    os.mkfifo(tmp_path / "held")
    hold = os.open(tmp_path / "held", os.O_RDWR)  # to read and write, since that waits for nobody
    # loaded by the server only, in the place of the real one
    (tmp_path / "torch.py").write_text(LOADED)
    path_before = filter(None, [os.environ.get("PYTHONPATH")])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *path_before]),
        "SAID": path,
        "HELD": str(tmp_path / "held"),
    }
    process = start(path, {0}, 2, environment)
    select.select([reader], [], [])
    assert os.read(reader, 99) == b"loading"
    os.killpg(process.pid, signal.SIGINT)
    read_until(process, "interrupted")  # while the server goes on loading
    os.close(hold)
    _, err = process.communicate()  # when the last of them has closed its end
    assert err == ""
    assert process.returncode == 0


@pytest.mark.parametrize("apart", [False, True])
def test_neither_parent_nor_workers_lose_ctrl_c(apart: bool, new_server: None) -> None:
    """Whichever thread starts them."""
    seen: list[Any] = []

    def run() -> None:
        seen.extend(json.loads(body) for _, body in collect(numbered(2), "look", None, 2))
        seen.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    if apart:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
    assert seen == [[False, True], [False, True], False]


def test_ctrl_c_while_the_server_starts_comes_right_after(
    new_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, calls = forkserver._forkserver, []  # type: ignore[attr-defined]
    begin = server.ensure_running

    def interrupted() -> None:
        calls.append("begun")
        signal.raise_signal(signal.SIGINT)
        begin()
        calls.append("ended")

    monkeypatch.setattr(forkserver, "ensure_running", interrupted)
    # in the background of a shell it is ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            collect(numbered(2), "square", None, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == ["begun", "ended"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    monkeypatch.undo()
    assert len(collect(numbered(2), "square", None, 2)) == 2


def test_ctrl_c_in_one_process(fifo: tuple[str, int]) -> None:
    path, reader = fifo
    process = start(path, {2}, 1)
    read_until(process, "finished 2")
    hear(reader, 1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert out.strip() == "interrupted"


def test_workers_do_not_outlive_a_parent_that_is_killed(fifo: tuple[str, int]) -> None:
    path, reader = fifo
    process = start(path, {0, 3}, 3)
    read_until(process, "finished 3")
    hear(reader, 2)
    process.kill()
    process.communicate()
    assert os.read(reader, 1) == b""


def test_an_interrupted_done_is_asked_again() -> None:
    calls: list[int] = []

    def interrupted(job: Job, body: JSON) -> None:
        calls.append(body["square"])
        if calls == [0, 1]:
            raise KeyboardInterrupt

    for workers in (1, 2):
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            run_jobs(numbered(2), f"{ME}:square", None, workers=workers, done=interrupted)
        assert calls == [0, 1, 1]
