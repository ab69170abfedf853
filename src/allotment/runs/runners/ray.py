"""Jobs on a Ray cluster: one that runs elsewhere, or an instance of its own on this machine.

Ray places jobs and notices what is lost; what is done is kept by whoever runs them, so that nothing
hangs on Ray's own memory. The driver hands out texts, and files that a machine lacks.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import ipaddress
import logging
import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

from allotment.errors import InputError, Mistake, cut
from allotment.job import canonical, parse
from allotment.runs.deaths import LESS_MEMORY, SMALLER_JOBS
from allotment.runs.flights import Flights, Parcel
from allotment.runs.portion import Portion
from allotment.runs.remote import HUNG, do_jobs
from allotment.runs.runner import MOST_WORKERS, PROCESSES, RUNNERS, Backlog, Runner
from allotment.runs.trees import Listing, Tree, find_cache, relocate

NEEDS_RAY = "is not installed: pip install 'allotment[ray]'"
ADDRESS_VARIABLE = "RAY_ADDRESS"
"""by which Ray tells programs where their cluster is"""
LOOPBACK = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
}
"""for an instance of our own: by the first it listens on 127.0.0.1 alone, as it does on macOS and
Windows, where Ray else opens its ports to the network; by the last its workers do not wait for all
other programs, as those of Ray do"""
QUIET = {"RAY_SCHEDULER_EVENTS": "0"}
"""else Ray says on stdout what its cluster waits for, among the JSON of commands"""
OBJECT_STORE = 200 * 2**20
"""bytes of shared memory for an instance of our own, which has no files to hand around"""
LONGEST_SILENCE = 5.0
"""seconds that an address has to answer"""
PARCEL_SECONDS = 1.0
"""of tiny jobs that go together"""
LOOK = 5.0
"""seconds between two looks at what is under way, if nothing comes back"""
DYING = 10.0
"""seconds that jobs may take to end that nobody wants"""
GIGABYTE = 10**9
WHERE_LOGS_ARE = (
    "its log is among those of Ray on the machine that did it (/tmp/ray/session_latest/logs)"
)


@dataclass(frozen=True)
class OnRay:
    """`at` says where and what each job gets; without an address it is the cluster that RAY_ADDRESS
    names or, where it names none, an instance of its own."""

    address: str = ""
    portion: Portion = field(default_factory=Portion)

    def at(self, address: str, portion: Portion) -> Runner:
        if importlib.util.find_spec("ray") is None:
            raise InputError([Mistake("ray", NEEDS_RAY)])
        return OnRay(f"ray://{address}" if address else "", portion)

    @property
    def sees_files(self) -> bool:
        """Whether its machines see those of this one."""
        return self.portion.shared or _find_address(self.address) is None

    def count_workers(self) -> int:
        """As many as the cluster has room for now."""
        ray = connect(self.address)
        nodes = [each["Resources"] for each in ray.nodes() if each["Alive"]]
        rooms = [self._count_room(each) for each in nodes]
        if not any(rooms):
            most: Mapping[str, float] = max(nodes, key=lambda each: each.get("CPU", 0), default={})
            what = (
                f"no machine of the cluster has room for a job with {self.portion} (the largest has"
                f" {most.get('CPU', 0):g} CPU, {most.get('GPU', 0):g} GPU,"
                f" {most.get('memory', 0) / GIGABYTE:.3g} GB); ask for less below [cluster], or"
                " give --workers N to wait for machines that are still to come"
            )
            raise InputError([Mistake("ray", what)])
        return min(sum(rooms), MOST_WORKERS)

    def count_machines(self, ray: Any) -> int:
        """Machines that have room for a job."""
        nodes = [each["Resources"] for each in ray.nodes() if each["Alive"]]
        return sum(map(bool, map(self._count_room, nodes)))

    def _count_room(self, resources: Mapping[str, float]) -> int:
        """How many jobs a machine has room for."""
        wanted = {"CPU": self.portion.cpus, "GPU": self.portion.gpus}
        wanted["memory"] = (self.portion.memory or 0) * GIGABYTE
        return min(int(resources.get(key, 0) / each + 1e-9) for key, each in wanted.items() if each)

    @property
    def options(self) -> dict[str, Any]:
        """What Ray is asked for. It repeats nothing by itself: what is lost is counted here."""
        asked: dict[str, Any] = {"num_cpus": self.portion.cpus, "max_retries": 0}
        asked |= {"num_gpus": self.portion.gpus} if self.portion.gpus else {}
        memory = self.portion.memory
        return asked | ({} if memory is None else {"memory": int(memory * GIGABYTE)})

    def run(self, backlog: Backlog, workers: int) -> None:
        ray = connect(self.address)
        trees = {} if self.sees_files else backlog.trees
        crew = _RayCrew(ray, self, Flights(backlog, workers, PARCEL_SECONDS), trees)
        try:
            crew.work()
        except _list_troubles(ray) as error:
            what = (
                f"the cluster does not answer any more ({cut(_first_line(error), 200)}); see that"
                " it runs, then type the command again: what is done is kept"
            )
            raise InputError([Mistake("ray", what)]) from error
        finally:
            if crew.away:
                crew.recall()


RUNNER = OnRay()


class _RayCrew:
    """What is under way on the cluster."""

    def __init__(self, ray: Any, runner: OnRay, flights: Flights, trees: Mapping[str, Tree]):
        self.ray, self.flights, self.trees, self.portion = ray, flights, trees, runner.portion
        self.common = ray.put(flights.backlog.common.encode())
        self.do = ray.remote(**runner.options)(do_parcel)
        self.packs: dict[str, list[Any]] = {}
        """by the hash of a tree that some machine lacked, its packs in Ray's memory"""
        self.away: dict[Any, Parcel] = {}
        self.count_machines = partial(runner.count_machines, ray)
        self.starved: set[int] = set()
        """jobs that died where memory ran out, which may have been the doing of others beside them:
        Ray kills all that it takes"""
        self.held: list[Parcel] = []
        """such jobs, until nothing else is under way"""

    def work(self) -> None:
        while self.flights.backlog.has_more or self._is_awaited:
            self._fill()
            done, _ = self.ray.wait(list(self.away), timeout=LOOK)
            for each in done:
                self._receive(each, self.away.pop(each))

    @property
    def _is_awaited(self) -> bool:
        """Whether one that was taken from the backlog is still wanted."""
        return any(map(self.flights.wants, [*self.away.values(), *self.held]))

    def _fill(self) -> None:
        """Give workers something to do. Those that died of memory go when nothing else is under
        way, one to a machine, and nothing else goes until they are back."""
        if any(map(self._is_starved, self.away.values())):
            return
        flights = self.flights
        while flights.backlog.has_more and len(self.away) + len(self.held) < flights.workers:
            parcel = flights.next()
            if self._is_starved(parcel):
                self.held.append(parcel)
            elif self.held:
                flights.give_back(parcel)
                break
            else:
                self._send(parcel)
        if not self.away:
            for _ in range(min(len(self.held), max(self.count_machines(), 1))):
                self._send(self.held.pop(0))

    def _is_starved(self, parcel: Parcel) -> bool:
        return not self.starved.isdisjoint(parcel.numbers)

    def _send(self, parcel: Parcel) -> None:
        # one that was lost goes elsewhere, where there is another machine
        do = self.do.options(scheduling_strategy="SPREAD") if parcel.is_retried else self.do
        sent = do.remote(
            self.common, self.listings, list(parcel.jobs), dict(self.packs), self.portion.seconds
        )
        self.away[sent] = parcel

    @cached_property
    def listings(self) -> Any:
        """What is in the trees, by their keys, in Ray's memory: megabytes, where there are many
        files."""
        plain = {key: tree.listing.to_plain() for key, tree in self.trees.items()}
        return self.ray.put(canonical(plain).encode())

    def _receive(self, sent: Any, parcel: Parcel) -> None:
        errors = self.ray.exceptions
        try:
            said = parse(self.ray.get(sent))
        except (errors.NodeDiedError, errors.ObjectLostError, errors.LocalRayletDiedError) as error:
            self.flights.lose(parcel, f"with its machine: {_first_line(error)}", is_blameless=True)
        except errors.RayError as error:
            # one that was raised within a job is of both kinds
            is_of_a_job = isinstance(error, errors.RayTaskError)
            if isinstance(error, _list_troubles(self.ray)) and not is_of_a_job:
                raise
            if isinstance(error, errors.OutOfMemoryError):
                self.starved.update(parcel.numbers)
            self.flights.lose(parcel, self._explain(error))
        else:
            if "lacks" in said:
                self._pack(said["lacks"])
                self.flights.give_back(parcel)
            for number, done in zip(parcel.numbers, said.get("done", ()), strict=False):
                self.flights.take(number, done)

    def _pack(self, keys: list[str]) -> None:
        """Put trees into Ray's memory, from which machines fetch them; each once."""
        for key in keys:
            tree = self.trees[key]
            if tree.listing.digest not in self.packs:
                packs = [self.ray.put(tree.read(start)) for start in tree.listing.packs]
                self.packs[tree.listing.digest] = packs

    def _explain(self, error: Exception) -> str:
        if isinstance(error, self.ray.exceptions.OutOfMemoryError):
            return (
                f"for want of memory{_tell_memory(error)}: try {SMALLER_JOBS}, or machines with"
                " more memory"
            )
        if isinstance(error, self.ray.exceptions.RayTaskError):
            return f"of what it could not load or read: {_last_line(error)}"
        if self.portion.minutes is not None:
            return (
                "of a crash, of a kill from outside (mostly for want of memory), or"
                f" {HUNG}; {WHERE_LOGS_ARE}"
            )
        return (
            "of a crash in native code or killed from outside, mostly for want of memory:"
            f" {LESS_MEMORY}; {WHERE_LOGS_ARE}"
        )

    def recall(self) -> None:
        """End what is under way."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            if _joined is not None:
                # the cluster ends what belongs to a driver that leaves; Ray 2.56 crashes by itself
                # where an answer comes in while its job is cancelled
                self.ray.shutdown()
                return
            away = list(self.away)
            for each in away:
                self.ray.cancel(each, force=True)
            self.ray.wait(away, num_returns=len(away), timeout=DYING)


def do_parcel(
    common: bytes,
    listings: bytes,
    jobs: list[str],
    packs: dict[str, list[Any]],
    seconds: float | None,
) -> str:
    """On a machine of the cluster: what came of each job, or which trees it lacks."""
    ray: Any = importlib.import_module("ray")
    values, lacking, cache = {}, [], find_cache()
    for key, listing in read_listings(listings).items():
        value = listing.find(cache)
        if value is None and listing.digest not in packs:
            lacking.append(key)
        elif value is None:
            value = listing.put(cache, map(ray.get, packs[listing.digest]))
        values[key] = value
    if lacking:
        return canonical({"lacks": lacking})
    here = relocate(common.decode(), {key: str(value) for key, value in values.items()})
    node = ray.get_runtime_context().get_node_id()
    done = list(do_jobs(here, jobs, seconds, node=node))
    sys.stdout.flush()
    return canonical({"done": done})


@lru_cache(maxsize=1)  # a worker does many parcels of one run
def read_listings(text: bytes) -> dict[str, Listing]:
    """What is in each tree, by its key."""
    return {key: Listing.from_plain(plain) for key, plain in parse(text.decode()).items()}


# Connecting

_joined: str | None = None
"""the address to which this process is connected by `connect`, "" for an instance of its own"""


def connect(address: str = "") -> Any:
    """Ray, connected: to an address, or to an instance of our own. Somebody who has connected
    before stays connected; otherwise it lasts until this process ends."""
    global _joined
    found = _find_address(address)
    if found is not None and importlib.util.find_spec("grpc") is None:
        raise InputError([Mistake("ray", f"what asks for an address {NEEDS_RAY}")])
    if found is not None and found != _joined:
        _check_answer(found)
    os.environ.update(QUIET)
    if found is None:
        os.environ.update({key: os.environ.get(key, each) for key, each in LOOPBACK.items()})
    ray = importlib.import_module("ray")
    if ray.is_initialized():
        if _joined in (None, found or ""):
            return ray
        ray.shutdown()
    _joined = None
    if found is None:
        _start(ray)
    else:
        _join(ray, found)
    _joined = found or ""
    return ray


def _find_address(address: str) -> str | None:
    """Where the cluster is; None for an instance of our own."""
    given = address or os.environ.get(ADDRESS_VARIABLE, "")
    return None if given in ("", "local") else given  # the latter is Ray's own word for it


def _start(ray: Any) -> None:
    with contextlib.suppress(ImportError):  # a name of Ray's own: other versions may lack it
        constants: Any = importlib.import_module("ray._private.ray_constants")
        constants.ENABLE_RAY_CLUSTER = False  # where Ray was loaded before LOOPBACK told it so
    try:
        with _from_the_root():
            ray.init(
                address="local",
                num_cpus=RUNNERS.load(PROCESSES).count_workers(),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                logging_level=logging.ERROR,
            )
    except Exception as error:  # of its processes, of shared memory, of folders
        what = (
            f"does not start on this machine: {cut(_first_line(error), 300)}; leave --on out to"
            " train in processes, with the same results"
        )
        raise InputError([Mistake("ray", what)]) from error
    _check_closed(ray)


def _check_closed(ray: Any) -> None:
    """Raises InputError, with the instance ended, where others could reach it: whoever reaches
    Ray's ports can run programs."""
    addresses = {str(each["NodeManagerAddress"]) for each in ray.nodes()}
    if open_ones := sorted(each for each in addresses if not _is_loopback(each)):
        ray.shutdown()
        what = (
            f"listens at {', '.join(open_ones)}, where others reach it, and was ended again: this"
            " version of Ray does not keep to 127.0.0.1. Leave --on out, or start a cluster of your"
            " own and give its address: --on ray://HOST:PORT"
        )
        raise InputError([Mistake("ray", what)])


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:  # a name
        return address == "localhost"


def _join(ray: Any, address: str) -> None:
    try:
        with _from_the_root():
            ray.init(address=address, logging_level=logging.ERROR, **_adapt(address))
    except Exception as error:  # of gRPC, of Ray, of versions that differ
        what = (
            f"{address} can't be joined: {cut(_first_line(error), 300)}; has it the same versions"
            " of Ray and Python? One that asks for a token wants RAY_AUTH_MODE=token and the token"
            " in RAY_AUTH_TOKEN"
        )
        raise InputError([Mistake("ray", what)]) from error


def _adapt(address: str) -> dict[str, Any]:
    """What an address asks for. A cluster within this machine is joined at its own one, which Ray
    would take to be that of the network. From elsewhere a process of the head connects, which does
    not see what is QUIET here."""
    host = address.rpartition(":")[0]
    if address.startswith("ray://"):
        return {"log_to_driver": False}
    return {"_node_ip_address": host} if host.startswith("127.") else {}


def _check_answer(address: str) -> None:
    """Raises InputError where nobody listens, or something else than Ray: Ray itself would try for
    minutes."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not host or not port.isdigit():
        if address == "auto":
            return
        what = (
            f"{cut(repr(address), 80)} is no address; write ray://HOST:PORT, as in ray://head:10001"
        )
        raise InputError([Mistake("ray", what)])
    end = time.monotonic() + LONGEST_SILENCE
    try:
        socket.create_connection((host.strip("[]"), int(port)), LONGEST_SILENCE).close()
    except (OSError, OverflowError) as error:
        what = (
            f"nobody answers at {cut(host, 80)}:{port} ({error}); is the cluster up, and may this"
            " machine reach it? Its head node lets others in at port 10001 unless told otherwise"
        )
        raise InputError([Mistake("ray", what)]) from None
    if not _speaks_grpc(f"{host}:{port}", end - time.monotonic()):
        what = (
            f"what listens at {cut(host, 80)}:{port} does not answer as Ray does; is that the port"
            " of Ray on its head node? Unless told otherwise it is 10001 for ray://HOST:PORT, and"
            " 6379 for RAY_ADDRESS"
        )
        raise InputError([Mistake("ray", what)])


def _speaks_grpc(place: str, seconds: float) -> bool:
    """Whether what listens there answers as servers of Ray do, within so many seconds."""
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return True  # Ray knows the certificates that it takes to ask
    grpc: Any = importlib.import_module("grpc")
    with grpc.insecure_channel(place, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=max(seconds, 1.0))
        except grpc.FutureTimeoutError:
            return False
    return True


@contextlib.contextmanager
def _from_the_root() -> Iterator[None]:
    """While Ray connects: its workers look for modules in the folder from which that is done, and a
    campaign's folder may be anybody's; nobody but the machine's owner writes to the root."""
    try:
        before = os.getcwd()
    except OSError:  # it was removed
        before = "/"
    os.chdir("/")
    try:
        yield
    finally:
        os.chdir(before)


def _list_troubles(ray: Any) -> tuple[type[Exception], ...]:
    """Errors by which Ray says that the cluster itself does not work; not all versions have all."""
    names = ("RaySystemError", "RpcError", "AuthenticationError")
    found = [getattr(ray.exceptions, name, None) for name in names]
    return (ConnectionError, *(each for each in found if each is not None))


def _tell_memory(error: BaseException) -> str:
    """What Ray says of the machine and of its log."""
    used = re.search(r"[\d.]+GB used / [\d.]+GB", str(error))
    log = re.search(r"`(ray logs [^`]+)`", str(error))
    told = [each for each in (used and used[0], log and f"its log: {log[1]}") if each]
    return f" ({'; '.join(told)})" if told else ""


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _last_line(error: BaseException) -> str:
    return cut((str(error).strip().splitlines() or [type(error).__name__])[-1], 300)
