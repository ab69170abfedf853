"""A real Slurm on this machine: two fake GPUs, on loopback, from Debian's packages unpacked into a
folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGES = Path(
    os.environ.get("ALLOT_SLURM")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "allotment" / "slurm-wlm"
)
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PATIENCE = 60.0


def find_lacking() -> str:
    """Why there can be no Slurm here; "" if there can."""
    if os.geteuid():
        return "Slurm's daemons are to be started by root"
    if not (PACKAGES / "usr/sbin/slurmctld-wlm").exists():
        return f"Debian's slurmctld, slurmd and slurm-client are not unpacked in {PACKAGES}"
    return "" if shutil.which("bash") else "there is no bash"


@contextmanager
def running(folder: Path, cores: int = 2) -> Iterator[dict[str, str]]:
    """The environment in which Slurm's commands reach it, while it runs."""
    environment = _configure(folder, cores)
    commands = [
        [f"{folder}/slurmctld", "-D", "-i"],
        [f"{folder}/slurmd", "-D", "-d", f"{folder}/slurmstepd"],
    ]
    daemons = []
    try:
        for command in commands:
            with (folder / f"{Path(command[0]).name}.out").open("w") as log:
                daemon = subprocess.Popen(
                    command, env=environment, stdout=log, stderr=subprocess.STDOUT
                )
            daemons.append(daemon)
        _wait_until_idle(environment, folder)
        yield environment
    finally:
        _empty(environment)
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(timeout=5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _empty(environment: dict[str, str]) -> None:
    """End its jobs, and wait until they are gone: their steps would outlive the daemons."""
    subprocess.run(["scancel", "--me"], env=environment, check=False)
    end, command = time.monotonic() + PATIENCE, ["squeue", "--noheader"]
    while time.monotonic() < end:
        if not subprocess.run(command, env=environment, capture_output=True).stdout.strip():
            return
        time.sleep(0.2)


def _configure(folder: Path, cores: int) -> dict[str, str]:
    host = socket.gethostname().partition(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    # under Debian's own names they don't know themselves, and read no GPUs from the configuration
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        (folder / name).symlink_to(PACKAGES / f"usr/sbin/{name}-wlm")
    (folder / "gres.conf").write_text(
        "AutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n"
    )
    ports = _find_ports(2)
    plugins = f"{PACKAGES}/{LIBRARIES}/slurm-wlm"
    (folder / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
PluginDir={plugins}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
GresTypes=gpu
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SchedulerParameters=sched_interval=1,bf_interval=2
KillWait=2
MinJobAge=10
NodeName={host} NodeAddr=127.0.0.1 Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 Gres=gpu:2
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
    libraries = f"{PACKAGES}/{LIBRARIES}:{plugins}"
    return {
        **os.environ,
        "SLURM_CONF": str(folder / "slurm.conf"),
        "LD_LIBRARY_PATH": libraries,
        "PATH": f"{PACKAGES}/usr/bin:{os.environ['PATH']}",
    }


def _find_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def _wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    command = ["sinfo", "--noheader", "--format=%T"]
    while time.monotonic() < end:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    logs = "\n".join(each.read_text()[-2000:] for each in folder.glob("*.out"))
    raise AssertionError(f"Slurm does not start: {done.stdout}{done.stderr}\n{logs}")
