"""A Ray cluster of several machines within this one, on loopback: all have 127.0.0.2 as their
address, since Ray takes 127.0.0.1 to be that of the network. As a program it says where it is, and
does what it is told, a line each: `kill 1`, `add`, `quit`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LOOPBACK = "127.0.0.2"
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
"""by the last, workers do not wait for all other tests"""
MEMORY = 4 * 10**9
"""bytes that each machine says it has for jobs that ask for some"""


class RayCluster:
    """Nodes beside a head without cores; every node has a cache of its own."""

    def __init__(self, process: subprocess.Popen[str], said: str, folder: Path):
        self._process, self.folder = process, folder
        self.address, self.client_address = said.split()
        """for machines of the cluster, and for others: `ray://HOST:PORT`"""

    @property
    def environment(self) -> dict[str, str]:
        return self.outside | {"RAY_ADDRESS": self.address}

    @property
    def outside(self) -> dict[str, str]:
        """The environment of who has to be told where it is."""
        return {key: each for key, each in os.environ.items() if key != "RAY_ADDRESS"} | VARIABLES

    def list_training(self) -> list[int]:
        """Its workers that are at a job."""
        command = ["ps", "-eo", "pid,sess,stat,args"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 3) for line in said.splitlines()[1:]]
        return [
            int(pid)
            for pid, session, stat, args in rows
            if args == "ray::do_parcel" and int(session) == self._process.pid and stat[0] != "Z"
        ]

    def find_machine(self, worker: int) -> str:
        """The number of the machine that a worker belongs to."""
        environment = Path(f"/proc/{worker}/environ").read_bytes().decode().split("\0")
        return next(each for each in environment if each.startswith("ALLOT_CACHE=")).split("-")[-1]

    @property
    def caches(self) -> list[Path]:
        return sorted(self.folder.glob("cache-*"))

    def tell(self, what: str) -> str:
        """Do as told; what it answers when that is done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def running(
    folder: Path, cores: Sequence[int] = (1, 1), variables: Mapping[str, str] | None = None
) -> Iterator[RayCluster]:
    """A cluster of machines with so many cores each."""
    with (folder / "ray.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(folder), *map(str, cores)],
            env=os.environ | VARIABLES | dict(variables or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        assert said, (folder / "ray.log").read_text()[-3000:]
        yield RayCluster(process, said, folder)
    finally:
        process.communicate("quit\n", timeout=60)


def main(folder: str, *cores: str) -> None:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "node_ip_address": LOOPBACK, "include_dashboard": False}
    head["ray_client_server_port"] = port = _find_port()
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = {}

    def add(count: int = 1) -> str:
        number = len(nodes) + 1
        cache = {"ALLOT_CACHE": f"{folder}/cache-{number}"}
        room = {"num_cpus": count, "memory": MEMORY}
        nodes[number] = cluster.add_node(**room, node_ip_address=LOOPBACK, env_vars=cache)
        return str(nodes[number].node_id)

    for count in cores:
        add(int(count))
    print(cluster.address, f"ray://{LOOPBACK}:{port}", flush=True)
    for line in sys.stdin:
        what, _, number = line.strip().partition(" ")
        if what == "quit":
            break
        if what == "add":
            print(add(), flush=True)
        if what == "kill":
            cluster.remove_node(nodes[int(number)], allow_graceful=False)
            print(nodes[int(number)].node_id, flush=True)
    cluster.shutdown()


def _find_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
