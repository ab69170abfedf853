"""Jobs on Ray: what it is asked for and told, with a stand-in; the contract, with Ray itself."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_ray import ERRORS, FakeRay, NodeDiedError, RayError, RaySystemError

from allotment.errors import InputError
from allotment.job import JSON, Job
from allotment.runs.conformance import RunnerTests
from allotment.runs.portion import Portion
from allotment.runs.runner import Runner, WorkFailed, find_runner, run_jobs
from allotment.runs.runners import ray as on_ray
from allotment.runs.runners.ray import OnRay
from allotment.runs.trees import take_all

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed"
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr(on_ray, "connect", lambda address: fake)
    monkeypatch.setitem(sys.modules, "ray", fake)  # what workers load
    monkeypatch.setenv("ALLOT_CACHE", str(tmp_path / "cache"))
    return fake


def run(runner: Runner, count: int = 4, work: str = "count", **told: Any) -> list[JSON]:
    seen: list[JSON] = []
    jobs = [Job("count", {"n": n}) for n in range(count)]
    told = {"workers": 2, "context": None} | told
    run_jobs(
        jobs,
        f"allotment.runs.conformance:{work}",
        told.pop("context"),
        runner=runner,
        done=lambda _, body: seen.append(body),
        **told,
    )
    return seen


class TestStandIn(RunnerTests):
    apart = False

    @pytest.fixture(autouse=True)
    def _fake(self, fake: FakeRay) -> None: ...

    def make(self) -> Runner:
        return OnRay()


@needs_ray
@pytest.mark.long
class TestRay(RunnerTests):
    """On an instance of its own; workers load torch."""

    patience = 30.0

    def make(self) -> Runner:
        return find_runner("ray")


# What Ray is asked for


def test_a_job_asks_for_what_the_settings_say_and_ray_repeats_nothing(fake: FakeRay) -> None:
    run(OnRay("", Portion(cpus=2, gpus=0.5, memory=4)), 1)
    wanted = {"num_cpus": 2, "num_gpus": 0.5, "memory": 4 * 10**9, "max_retries": 0}
    assert fake.asked == [wanted]
    fake.asked.clear()
    run(OnRay(), 1)
    assert fake.asked == [{"num_cpus": 1, "max_retries": 0}]


def test_workers_are_as_many_as_there_is_room_for(fake: FakeRay) -> None:
    fake.resources = ({"CPU": 8, "GPU": 2, "memory": 10e9}, {"CPU": 3}, {"CPU": 1, "GPU": 8})
    assert OnRay("", Portion()).count_workers() == 12
    assert OnRay("", Portion(cpus=2)).count_workers() == 5
    assert OnRay("", Portion(gpus=0.5)).count_workers() == 4 + 1
    assert OnRay("", Portion(memory=4)).count_workers() == 2
    with pytest.raises(InputError, match=r"no machine .* room for a job with 1 CPU, 9 GPU \(the"):
        OnRay("", Portion(gpus=9)).count_workers()


def test_tiny_jobs_go_together(fake: FakeRay) -> None:
    assert run(OnRay(), 1000) == list(range(1000))
    assert len(fake.parcels) < 100
    assert max(fake.parcels) > 20


# What is lost


def test_jobs_whose_machine_is_gone_are_done_elsewhere(fake: FakeRay) -> None:
    fake.troubles = [NodeDiedError("node 7 is gone")] * 5
    assert run(OnRay()) == [0, 1, 2, 3]
    assert [each.get("scheduling_strategy") for each in fake.asked].count("SPREAD") >= 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("OutOfMemoryError", "for want of memory: try smaller batches"),
        ("RayTaskError", "of what it could not load or read: no module named nothing"),
    ],
)
def test_a_job_that_dies_twice_is_told_with_its_cause(fake: FakeRay, name: str, told: str) -> None:
    fake.troubles = [ERRORS[name]("why\nno module named nothing") for _ in range(2)]
    with pytest.raises(WorkFailed, match=f"its worker died twice, {told}"):
        run(OnRay(), 1)


@pytest.mark.parametrize("machines", [1, 2])
def test_jobs_that_died_of_memory_are_done_again_with_a_machine_to_themselves(
    fake: FakeRay, machines: int
) -> None:
    fake.resources = ({"CPU": 4},) * machines + ({"GPU": 1},)
    fake.troubles = [ERRORS["OutOfMemoryError"]("several were killed")] * 3
    beside: list[int] = []
    send = on_ray._RayCrew._send

    def note(crew: Any, parcel: Any) -> None:
        send(crew, parcel)
        if crew.starved:
            beside.append(len(crew.away))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_ray._RayCrew, "_send", note)
        assert run(OnRay(), 9, workers=3) == list(range(9))
    # three die, and are done again before others are; then there are three at a time again
    assert beside[:3] == ([1, 1, 1] if machines == 1 else [1, 2, 1])
    assert max(beside[3:]) == 3


def test_where_memory_ran_out_is_told_with_the_log_of_the_machine(fake: FakeRay) -> None:
    said = (
        "2 worker(s) were killed. Memory on the node (IP: 10.0.0.7) was 4.19GB used / 23.54GB limit"
        " (0.17)\nTo see more, use `ray logs raylet.out -ip 10.0.0.7`\nTop 10 memory users: ..."
    )
    fake.troubles = [ERRORS["OutOfMemoryError"](said)] * 2
    told = (
        r"memory \(4.19GB used / 23.54GB; its log: ray logs raylet.out -ip 10.0.0.7\): try smaller"
    )
    with pytest.raises(WorkFailed, match=told):
        run(OnRay(), 1)


def test_a_cluster_that_goes_away_is_told_with_how_to_go_on(fake: FakeRay) -> None:
    for trouble in (RaySystemError("head is gone"), ConnectionError("head is gone")):
        fake.troubles = [trouble]
        with pytest.raises(InputError, match=r"answer any more \(head is gone\).* is kept"):
            run(OnRay())


def test_trouble_of_ray_within_a_job_is_that_of_the_job(fake: FakeRay) -> None:
    kind = type("RayTaskError(RaySystemError)", (ERRORS["RayTaskError"], RaySystemError), {})
    fake.troubles = [kind("it could not be read")] * 2
    with pytest.raises(WorkFailed, match="died twice, of what it could not load or read: it could"):
        run(OnRay(), 1)


@pytest.mark.parametrize("minutes", [None, 2.0])
def test_a_worker_that_died_is_told_with_where_its_log_is(
    fake: FakeRay, minutes: float | None
) -> None:
    fake.troubles = [RayError("it died")] * 2
    with pytest.raises(WorkFailed, match=r"its log is among those of Ray .*/logs\)") as caught:
        run(OnRay("", Portion(minutes=minutes)), 1)
    assert ("hung, it seems" in str(caught.value)) == (minutes is not None)


# Files


def test_files_are_sent_once_and_only_to_machines_that_lack_them(
    fake: FakeRay, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    file.write_text("a\n1\n")
    context, trees = {"data": str(file)}, {"data": take_all(file)}
    far = OnRay("ray://head:10001")
    seen = run(far, 3, "echo", context=context, trees=trees)
    (there,) = {body["context"]["data"] for body in seen}
    assert there != str(file)
    assert Path(there).read_text() == "a\n1\n"
    assert fake.puts[2:] == [b"a\n1\n"]  # the first ones are what all jobs share
    fake.puts.clear()
    assert run(far, 3, "echo", context=context, trees=trees) == seen
    assert len(fake.puts) == 2
    shared = OnRay("ray://head:10001", Portion(shared=True))
    near = run(shared, 1, "echo", context=context, trees=trees)
    assert near[0]["context"]["data"] == str(file)


def test_what_is_in_a_tree_travels_once_and_is_read_once_by_a_worker(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table.csv"
    file.write_text("a\n1\n")
    on_ray.read_listings.cache_clear()
    told = {"context": {"data": str(file)}, "trees": {"data": take_all(file)}}
    run(OnRay("ray://head:10001"), 30, "echo", **told)
    assert len(fake.parcels) > 3
    assert sum(b"table.csv" in put for put in fake.puts) == 2  # the paths of all jobs, and these
    assert on_ray.read_listings.cache_info().misses == 1


# Addresses


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"ray: is not installed: pip install 'allotment\[ray\]'"):
        find_runner("ray")


def test_an_address_that_nobody_answers_at_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(InputError, match=f"nobody answers at 127.0.0.1:{port}"):
        find_runner(f"ray://127.0.0.1:{port}").count_workers()
    with pytest.raises(InputError, match=r"nobody answers at no.such.host.invalid:10001"):
        find_runner("ray://no.such.host.invalid:10001").count_workers()
    for wrong in ("ray://head", "ray://:10001", "ray://head:x"):
        with pytest.raises(InputError, match=r"is no address; write ray://HOST:PORT"):
            find_runner(wrong).count_workers()
    assert time.monotonic() - begun < 3 * on_ray.LONGEST_SILENCE


@needs_ray
@pytest.mark.parametrize("variable", [False, True])
def test_what_listens_and_is_not_ray_is_told_within_seconds(
    variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "LONGEST_SILENCE", 1.0)
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", place if variable else "")
        with pytest.raises(InputError, match=f"what listens at {place} does not answer as Ray"):
            find_runner("ray" if variable else f"ray://{place}").count_workers()
    assert time.monotonic() - begun < 10


def test_local_is_the_word_of_ray_for_an_instance_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert OnRay().sees_files
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    assert not OnRay().sees_files


class Instance:
    """As much of Ray as starts an instance of its own."""

    def __init__(self, address: str, trouble: str = ""):
        self.address, self.trouble, self.is_up = address, trouble, False
        self.asked: dict[str, Any] = {}

    def is_initialized(self) -> bool:
        return self.is_up

    def init(self, **given: Any) -> None:
        if self.trouble:
            raise RuntimeError(self.trouble)
        self.is_up, self.asked = True, given

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "NodeManagerAddress": self.address}]

    def shutdown(self) -> None:
        self.is_up = False


Start = Callable[..., Any]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(on_ray, "_joined", None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for name in (*on_ray.LOOPBACK, *on_ray.QUIET):
        monkeypatch.setenv(name, "")  # so that they are put back
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "ray._private.ray_constants", None)  # a Ray that has none

    def start(instance: Instance, address: str = "") -> Any:
        monkeypatch.setitem(sys.modules, "ray", instance)
        return on_ray.connect(address)

    return start


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_an_instance_of_its_own_stays_on_loopback(start: Start, address: str) -> None:
    instance = Instance(address)
    assert start(instance) is instance
    assert instance.is_up
    assert os.environ["RAY_SCHEDULER_EVENTS"] == "0"  # else its lines are among the JSON


@pytest.mark.parametrize("address", ["10.0.0.7", "0.0.0.0", "fe80::1", "head"])
def test_one_that_others_could_reach_is_ended(start: Start, address: str) -> None:
    instance = Instance(address)
    with pytest.raises(InputError, match=f"listens at {address}, where others reach it, and was"):
        start(instance)
    assert not instance.is_up
    assert on_ray._joined is None


def test_one_that_does_not_start_is_told_in_a_sentence(start: Start) -> None:
    with pytest.raises(InputError, match=r"does not start on this machine: no room; leave --on ou"):
        start(Instance("127.0.0.1", "no room\nmore"))


@pytest.mark.parametrize(
    ("address", "more"),
    [
        ("ray://head:10001", {"log_to_driver": False}),  # its lines would be among the JSON
        ("127.0.0.2:6379", {"_node_ip_address": "127.0.0.2"}),
        ("head:6379", {}),
    ],
)
def test_a_cluster_is_joined_as_its_address_asks_for(
    start: Start, monkeypatch: pytest.MonkeyPatch, address: str, more: dict[str, Any]
) -> None:
    instance = Instance("10.0.0.7")
    monkeypatch.setattr(on_ray, "_check_answer", lambda address: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert start(instance, address) is instance
    assert instance.asked.pop("address") == address
    assert instance.asked.pop("logging_level")
    assert instance.asked == more
    assert os.environ["RAY_SCHEDULER_EVENTS"] == "0"


def test_runners_of_this_machine_have_no_address() -> None:
    with pytest.raises(InputError, match=r"'processes://x': processes has no address"):
        find_runner("processes://x")


DRIVER = """
import os
from allotment.job import Job
from allotment.runs.runner import find_runner, run_jobs
jobs = [Job("count", {"n": n}) for n in range(2)]
work = "allotment.runs.conformance:tick"
def done(job, body):
    print(os.getpid(), flush=True)
run_jobs(jobs, work, os.environ["TICKS"], runner=find_runner("ray"), workers=2, done=done)
"""


def list_session(session: int) -> dict[int, str]:
    """The processes of a session and of those begun by them, with their commands."""
    said = subprocess.run(
        ["ps", "-ww", "-eo", "pid,ppid,sess,stat,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 4) for line in said.stdout.splitlines()[1:]]
    known, found = {session}, dict[int, str]()
    for pid, ppid, sess, stat, args in rows:  # parents come before their children
        if (int(sess) == session or int(ppid) in known) and not stat.startswith("Z"):
            known.add(int(pid))
            found[int(pid)] = args
    return found


@needs_ray
@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_port_is_open_to_others_and_no_process_left_behind(
    how: signal.Signals, tmp_path: Path
) -> None:
    ticks = tmp_path / "ticks"
    driver = subprocess.Popen(
        [sys.executable, "-P", "-c", DRIVER],
        env=os.environ | {"TICKS": str(ticks)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline().strip() == str(driver.pid)  # the first job is done
    assert wait_for(ticks.exists)
    there = list_session(driver.pid)
    assert any("raylet" in args for args in there.values())
    for pid in there:
        assert not list_open_ports(pid), there[pid]
    if how == signal.SIGINT:
        os.killpg(driver.pid, how)  # as a terminal does: to all of them
    else:
        driver.kill()
        # two that only look after Ray itself take a minute to notice
        there = {pid: args for pid, args in there.items() if "Agent" not in args}
    driver.communicate()
    assert wait_for(lambda: not [pid for pid in there if is_alive(pid)])


def wait_for(until: Any, patience: float = 60.0) -> bool:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if until():
            return True
        time.sleep(0.05)
    return False


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def list_open_ports(pid: int) -> list[str]:
    """Addresses beyond loopback on which a process listens."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
        except OSError:  # closed meanwhile
            continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            is_listening, address = fields[3] == "0A", fields[1].partition(":")[0]
            is_loopback = address.endswith("7F") or address == "0" * 24 + "01000000"
            if is_listening and fields[9] in inodes and not is_loopback:
                found.append(fields[1])
    return found
