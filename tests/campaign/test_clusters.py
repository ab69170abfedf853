"""The same campaign on clusters: on Ray with two machines, on Slurm, undisturbed and not."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import ray_cluster, slurm
from helpers.campaigns import rows, shorten, write

from allotment.campaign.campaign import PLACE, Campaign
from allotment.ledger.store import Store

pytestmark = pytest.mark.long
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed"
)
needs_slurm = pytest.mark.skipif(bool(slurm.find_lacking()), reason=slurm.find_lacking())
JOBS = 8
PATIENCE = 120.0


def begin(folder: Path) -> Path:
    """A campaign whose estimate is some jobs of a second or so."""
    write(folder / "table.csv", rows(120))
    prices = ("--cost", "size=1", "--cost", "look=5", "--budget", "90", "--steps", "50")
    type_in(folder, "init", "camp", "--root", "table.csv", "--targets", "size,look", *prices)
    shorten(folder / "camp", trainings=8 * JOBS)
    return folder / "camp"


def type_in(folder: Path, *words: str, **more: Any) -> str:
    done = start(folder, *words, **more)
    out, err = done.communicate()
    assert done.returncode == 0, err
    return out


def start(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "allotment.cli", *words],
        cwd=folder,
        env=dict(environment or os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_results(campaign: Path) -> tuple[Any, ...]:
    """All that was measured, by its key (Ctrl-C keeps what waits for an earlier job, too), and what
    was concluded from it."""
    with Store.open(campaign, write=False) as store:
        measured = sorted(store.results("response"), key=lambda row: row[0])
        return measured, [each.body for each in store.values("estimates")]


def count_done(campaign: Path) -> int:
    with Store.open(campaign, write=False) as store:
        return len(store.results("response"))


def wait_for(until: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := until()):
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("campaign"))


@pytest.fixture(scope="module")
def undisturbed(fresh: Path) -> tuple[Any, ...]:
    """What comes out in a process of this machine."""
    folder = fresh.parent / "undisturbed"
    shutil.copytree(fresh, folder)
    type_in(fresh.parent, "estimate", "undisturbed")
    return read_results(folder)


@pytest.fixture
def campaign(fresh: Path, tmp_path: Path) -> Path:
    shutil.copy(fresh.parent / "table.csv", tmp_path)
    shutil.copytree(fresh, tmp_path / "camp")
    return tmp_path / "camp"


# Ray


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ray_cluster.RayCluster]:
    with ray_cluster.running(tmp_path_factory.mktemp("ray")) as cluster:
        yield cluster


def estimate(campaign: Path, cluster: ray_cluster.RayCluster) -> subprocess.Popen[str]:
    """Begin, and wait until some of it is done."""
    on_ray = ("estimate", "camp", "--on", "ray", "--workers", "2")
    process = start(campaign.parent, *on_ray, environment=cluster.environment)
    wait_for(lambda: count_done(campaign) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def list_nodes(campaign: Path) -> set[str]:
    """The machines of which jobs say that they were done there."""
    with Store.open(campaign, write=False) as store:
        return {body["node"] for _, _, body in store.results(PLACE)}


def freeze_at_a_job(cluster: ray_cluster.RayCluster) -> int | None:
    """A worker that was stopped within a job; None if it was through before."""
    for worker in cluster.list_training():
        os.kill(worker, signal.SIGSTOP)
        if worker in cluster.list_training():
            return worker
        os.kill(worker, signal.SIGCONT)
    return None


def go_on(process: subprocess.Popen[str]) -> None:
    _, err = process.communicate()
    assert process.returncode == 0, err


@needs_ray
def test_a_machine_is_killed(
    campaign: Path, cluster: ray_cluster.RayCluster, undisturbed: tuple[Any, ...]
) -> None:
    cluster.tell("add")
    process = estimate(campaign, cluster)
    # at once: with a job that stands still it can't be through before anything is looked at
    worker = wait_for(lambda: freeze_at_a_job(cluster))
    told = json.loads(type_in(campaign.parent, "status", "camp", "--json"))["under_way"]
    assert re.search(rf"^allot estimate camp\b.*: \d+ of {8 * JOBS} trainings", told), told
    gone = cluster.tell(f"kill {cluster.find_machine(worker)}")
    os.kill(worker, signal.SIGKILL)  # its job was begun there, and can't have been finished
    assert count_done(campaign) < JOBS
    go_on(process)
    assert read_results(campaign) == undisturbed
    assert list_nodes(campaign) - {gone}
    assert Campaign(campaign).count_places()
    # files went to each machine once, under their hash
    for cache in cluster.caches:
        tables = list(cache.glob("placed/*/table.csv"))
        assert [each.read_bytes() for each in tables] == [
            (campaign.parent / "table.csv").read_bytes()
        ]


@needs_ray
def test_the_driver_is_killed(
    campaign: Path, cluster: ray_cluster.RayCluster, undisturbed: tuple[Any, ...]
) -> None:
    process = estimate(campaign, cluster)
    process.kill()
    process.communicate()
    done = count_done(campaign)
    assert 0 < done < JOBS
    told = type_in(campaign.parent, "status", "camp")
    assert "allot estimate camp" in told
    # and then from a machine that does not belong to the cluster
    words = ("estimate", "camp", "--on", cluster.client_address, "--json")
    said = type_in(campaign.parent, *words, environment=cluster.outside)
    assert json.loads(said)
    assert read_results(campaign) == undisturbed
    assert list_nodes(campaign)


@needs_ray
def test_a_worker_dies_as_for_want_of_memory_and_then_somebody_presses_ctrl_c(
    campaign: Path, cluster: ray_cluster.RayCluster, undisturbed: tuple[Any, ...]
) -> None:
    process = estimate(campaign, cluster)
    worker = wait_for(cluster.list_training)[0]
    os.kill(worker, signal.SIGKILL)  # as Linux does where memory runs out
    # another one has begun with it; it has torch to load, and what is done later waits for it
    wait_for(lambda: len({*cluster.list_training()} - {worker}) > 1 or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    again = "allot estimate camp --on ray --workers 2"
    assert f"What is done is kept; to go on from there: {again}\n" in err
    wait_for(lambda: not cluster.list_training())
    type_in(campaign.parent, "estimate", "camp")  # on processes: it need not be Ray
    assert read_results(campaign) == undisturbed


HANGING = """
import threading
from pathlib import Path

from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

HERE = Path(__file__).parent


class Hanging(TorchLearner):
    def step(self, state, tasks):
        if state.seeds == (3,) and any((HERE / each).exists() for each in ("once", "ever")):
            (HERE / "once").unlink(missing_ok=True)
            threading.Event().wait()
        return super().step(state, tasks)


def make(data, split):
    return Hanging(data, split, Recipe(steps=20, batch_size=16))
"""


@needs_ray
@pytest.mark.timeout(600)
def test_a_job_that_hangs_is_ended_and_done_again_but_once(campaign: Path) -> None:
    folder = campaign.parent
    (folder / "mine.py").write_text(HANGING)
    shorten(campaign, trainings=6)
    change_settings(campaign, "minutes = 0.4")
    calm, stuck = folder / "calm", folder / "stuck"
    for each in (calm, stuck):
        shutil.copytree(campaign, each)
    type_in(folder, *measure(calm))
    (folder / "once").touch()
    type_in(folder, *measure(campaign, "--on", "ray"))
    assert not (folder / "once").exists()
    assert read_results(campaign) == read_results(calm)
    (folder / "ever").touch()
    process = start(folder, *measure(stuck, "--on", "ray"))
    _, err = process.communicate()
    assert process.returncode == 2, err
    assert err.count("its worker died twice") == 1, err
    assert "hung, it seems: it took longer than the minutes below [cluster] allow" in err
    assert "its log is among those of Ray" in err
    assert count_done(stuck) == 5


# Memory: with nothing beside it, since Ray watches all that is used

GIGABYTE = 10**9
ALLOWANCE = 8 * GIGABYTE
"""bytes that Ray lets its cluster and jobs have beyond what is in use before; the cluster itself
and what trainings load is about one gigabyte"""
MEAL, FEAST = 45 * GIGABYTE // 10, 11 * GIGABYTE
"""bytes that a job takes: two of the first are too much at a time, and one of the second is; other
tests may take or give back two gigabytes meanwhile"""
HUNGRY = f"""
import time
from pathlib import Path

from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

HERE = Path(__file__).parent


class Hungry(TorchLearner):
    def step(self, state, tasks):
        if not state.done and (HERE / "all-eat").exists():
            note("begun")
            eat({MEAL}, 3)
            note("ended")
        if state.seeds == (3,) and (HERE / "one-feasts").exists():
            note("feast")
            eat({FEAST}, 60)
        return super().step(state, tasks)


def note(what):
    with (HERE / "noted").open("a") as noted:
        print(what, file=noted)


def eat(size, seconds):
    held = []
    for _ in range(size // 10**8):
        held.append(bytes([1]) * 10**8)
        time.sleep(0.02)
    time.sleep(seconds)


def make(data, split):
    return Hungry(data, split, Recipe(steps=20, batch_size=16))
"""


@pytest.fixture(scope="module")
def narrow_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ray_cluster.RayCluster]:
    """A machine with two cores, whose memory Ray watches closely."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    memory = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    if memory["MemAvailable"] < FEAST:
        pytest.skip(f"{FEAST / GIGABYTE:g} GB of memory are to be free")
    most = memory["MemTotal"] - memory["MemAvailable"] + ALLOWANCE
    watch = {
        "RAY_memory_usage_threshold": str(most / memory["MemTotal"]),
        "RAY_memory_monitor_refresh_ms": "100",
    }
    with ray_cluster.running(tmp_path_factory.mktemp("narrow"), (2,), watch) as cluster:
        yield cluster


@pytest.fixture
def hungry(campaign: Path) -> Path:
    """A campaign of six trainings that take memory if they are told so."""
    (campaign.parent / "mine.py").write_text(HUNGRY)
    shorten(campaign, trainings=6)
    change_settings(campaign, "shared = true")
    return campaign


def change_settings(campaign: Path, cluster: str) -> None:
    text = (campaign / "campaign.toml").read_text()
    text = text.replace("[training]", f"[cluster]\n{cluster}\n\n[training]")
    (campaign / "campaign.toml").write_text(text)


def measure(campaign: Path, *words: str) -> list[str]:
    learner = ("--learner", f"{campaign.parent / 'mine.py'}:make", "--workers", "2")
    return ["estimate", campaign.name, *learner, *words]


def count_killed(folder: Path) -> int:
    noted = (folder / "noted").read_text().split()
    assert noted.count("begun") >= 6
    return noted.count("begun") - noted.count("ended")


@needs_ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_jobs_that_take_too_much_memory_together(
    hungry: Path, narrow_cluster: ray_cluster.RayCluster
) -> None:
    folder = hungry.parent
    calm, careful = folder / "calm", folder / "careful"
    for each in (calm, careful):
        shutil.copytree(hungry, each)
    type_in(folder, *measure(calm))
    undisturbed = read_results(calm)
    environment = narrow_cluster.environment
    (folder / "all-eat").touch()
    type_in(folder, *measure(hungry, "--on", "ray"), environment=environment)
    assert count_killed(folder)
    assert read_results(hungry) == undisturbed
    # who says what a job takes has no more of them on a machine than it has memory for
    text = (careful / "campaign.toml").read_text()
    (careful / "campaign.toml").write_text(
        text.replace("shared = true", "shared = true\nmemory = 3")
    )
    (folder / "noted").unlink()
    type_in(folder, *measure(careful, "--on", "ray"), environment=environment)
    assert not count_killed(folder)
    assert read_results(careful) == undisturbed


@needs_ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_job_that_takes_too_much_memory_by_itself(
    hungry: Path, narrow_cluster: ray_cluster.RayCluster
) -> None:
    """Ray kills those beside it, too; they are done all the same."""
    (hungry.parent / "one-feasts").touch()
    words, environment = measure(hungry, "--on", "ray"), narrow_cluster.environment
    process = start(hungry.parent, *words, environment=environment)
    _, err = process.communicate()
    assert process.returncode == 2, err
    assert err.count("its worker died twice, for want of memory (") == 1, err
    assert "; its log: ray logs raylet.out" in err
    assert "try smaller batches" in err
    assert "What is done is kept; to go on from there: allot estimate camp" in err
    assert (hungry.parent / "noted").read_text().split() == ["feast"] * 2, err
    assert count_done(hungry) == 5, err


# Slurm


def cancel_a_job(environment: Mapping[str, str]) -> bool:
    """Whether a job was running that could be cancelled: between two batches none is."""
    ask = ["squeue", "--noheader", "--array", "--states=running", "--format=%i %b"]
    said = subprocess.run(ask, env=environment, capture_output=True, text=True).stdout
    running = [line.split() for line in said.splitlines()]
    assert all("gpu" in gpus for _, gpus in running)
    if not running:
        return False
    cancel = ["scancel", running[-1][0]]
    return subprocess.run(cancel, env=environment).returncode == 0


@needs_slurm
def test_a_job_of_slurm_is_cancelled_from_outside(
    campaign: Path, undisturbed: tuple[Any, ...], tmp_path: Path
) -> None:
    change_settings(campaign, "gpus = 1")
    with slurm.running(tmp_path / "slurm") as environment:
        on_slurm = ("estimate", "camp", "--on", f"slurm://{tmp_path}/shared", "--workers", "2")
        process = start(tmp_path, *on_slurm, environment=environment)
        wait_for(lambda: count_done(campaign) or process.poll() is not None)
        wait_for(lambda: cancel_a_job(environment) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        go_on(process)
    assert read_results(campaign) == undisturbed
    with Store.open(campaign, write=False) as store:
        assert all(body["slurm_job"] for _, _, body in store.results(PLACE))
