"""Jobs on a Slurm cluster, through a folder that all of its machines see.

Slurm jobs read what to do from files and write replies into others, each under the key of its job:
whoever begins again finds what was done while nobody waited.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allotment.errors import InputError, Mistake, cut, visible
from allotment.files import replace_file
from allotment.job import canonical, parse
from allotment.runs.flights import Flights, Parcel
from allotment.runs.portion import Portion
from allotment.runs.remote import do_jobs, read_done
from allotment.runs.runner import Backlog, Runner
from allotment.runs.trees import find_cache, place_here, relocate

SLURM_WORKERS = 16
"""Slurm jobs at a time unless somebody says: how many a cluster has room for depends on who else
waits"""
SLURM_PARCEL = 60.0
"""seconds of work for one Slurm job, which takes some to begin"""
USUAL_MINUTES = 24 * 60
"""that Slurm is asked for where the settings do not say"""
MARGIN = 15
"""minutes more than a job may take, for its beginning"""
POLL = 1.0
"""seconds between two looks at the folder"""
ASK = 15.0
"""seconds between two questions to Slurm. A job that it does not know at two in a row and that left
no reply is lost: files may arrive late on a network disk"""
LONGEST_TROUBLE = 600.0
"""seconds in which Slurm may answer nothing, or take no job, before it is given up: it starts again
at times, and people have limits on jobs that wait"""
PENDING = "PENDING"
USUAL_REASONS = ("None", "")
"""that Slurm gives for a moment, until it has looked at a job"""


@dataclass(frozen=True)
class OnSlurm:
    """The address is the folder: `slurm:///scratch/me/allot`; the cache of the home folder, which
    most clusters share, if it is empty."""

    folder: str = ""
    portion: Portion = field(default_factory=Portion)

    def at(self, address: str, portion: Portion) -> Runner:
        wrong = []
        if importlib.util.find_spec("submitit") is None:
            wrong.append("submitit is not installed: pip install 'allotment[slurm]'")
        if shutil.which("sbatch") is None:
            wrong.append("there is no sbatch here; type this where Slurm jobs are handed in")
        if portion.gpus != int(portion.gpus):
            wrong.append(f"it gives whole GPUs, and {portion.gpus:g} are wanted; write gpus = 1")
        if address and not os.path.isabs(address):
            wrong.append(f"{cut(repr(address), 80)} is no folder; write slurm:///scratch/me/allot")
        if wrong:
            raise InputError(Mistake("slurm", each) for each in wrong)
        return OnSlurm(address or str(find_cache() / "slurm"), portion)

    @property
    def sees_files(self) -> bool:
        return self.portion.shared

    def count_workers(self) -> int:
        return SLURM_WORKERS

    def run(self, backlog: Backlog, workers: int) -> None:
        crew = _SlurmCrew(self, Flights(backlog, workers, SLURM_PARCEL))
        try:
            crew.work()
        finally:
            crew.cancel()
        crew.tidy()


RUNNER = OnSlurm()


class _SlurmCrew:
    """What is under way, and the folder of this run; the same jobs have the same folder, and the
    Slurm jobs that do them have its name."""

    def __init__(self, runner: OnSlurm, flights: Flights):
        self.flights, self.portion = flights, runner.portion
        common = flights.backlog.common
        self.name = f"allot-{_hash(common)}"
        self.folder = Path(runner.folder) / self.name
        self.replies = self.folder / "replies"
        self.replies.mkdir(parents=True, exist_ok=True)
        self.cancel()  # of a driver that was killed; what these had done is there
        trees = {} if runner.sees_files else flights.backlog.trees
        common = relocate(common, place_here(trees, Path(runner.folder)))
        replace_file(self.folder / "common.json", common.encode())
        self.executor = _make_executor(self.name, self.folder / "log", self.portion)
        self.away: dict[str, Parcel] = {}
        """by the number of the Slurm job"""
        self.machines: dict[str, str] = {}
        """where each ran when Slurm was asked, by the same"""
        self.avoided: dict[int, str] = {}
        """the machine on which a job was lost, by its number"""
        self.unknown: set[str] = set()
        """those that Slurm did not know when it was asked last"""
        self.taken: dict[int, str] = {}
        """the keys of jobs whose replies were handed on, by their numbers"""
        self.asked = self.refused = 0.0
        self.failing: dict[str, float] = {}
        """since when, by the command that does not work"""
        self.told: set[str] = set()
        """reasons for which jobs wait"""
        self.has_lost = self.has_begun = False

    def work(self) -> None:
        backlog = self.flights.backlog
        while backlog.has_more or any(map(self.flights.wants, self.away.values())):
            self._send()
            os.listdir(self.replies)  # a network disk looks for new files then
            came = [name for name, parcel in self.away.items() if self._take(parcel)]
            for name in came:
                del self.away[name]
            if not came:
                time.sleep(POLL)
            self._find_lost()

    def _send(self) -> None:
        """Hand Slurm a file for each worker that has nothing to do."""
        if "sbatch" in self.failing and time.monotonic() - self.refused < ASK:
            return
        parcels: list[Parcel] = []
        room = self.flights.workers - len(self.away)
        while self.flights.backlog.has_more and len(parcels) < room:
            parcel = self.flights.next()
            self._discard_failures(parcel)
            if not self._take(parcel):  # nobody has done it before
                parcels.append(parcel)
        for machine in sorted({self._find_avoided(each) for each in parcels}):
            together = [each for each in parcels if self._find_avoided(each) == machine]
            self._hand_in(together, machine)

    def _find_avoided(self, parcel: Parcel) -> str:
        """The machine on which it was lost; "" if none is known. Such jobs go by themselves."""
        return self.avoided.get(parcel.numbers[0], "")

    def _hand_in(self, parcels: list[Parcel], avoided: str = "") -> None:
        try:
            jobs = self._submit([self._write(parcel) for parcel in parcels], avoided)
        except InputError as error:
            if avoided:  # there may be no other machine
                self._hand_in(parcels)
                return
            if not self.has_begun:  # it never took any: nothing is gained by waiting
                raise
            for parcel in parcels:
                self.flights.give_back(parcel)
            self.refused = time.monotonic()
            self._bear("sbatch", error)
            return
        self.failing.pop("sbatch", None)
        self.has_begun = True
        self.away |= {job.job_id: parcel for job, parcel in zip(jobs, parcels, strict=True)}

    def _bear(self, command: str, error: InputError) -> None:
        """Raises what went wrong once it does so for long."""
        since = self.failing.setdefault(command, time.monotonic())
        if time.monotonic() - since > LONGEST_TROUBLE:
            raise error

    def _discard_failures(self, parcel: Parcel) -> None:
        """What went wrong for an earlier driver may go well now: a full disk, say."""
        for job in parcel.jobs:
            reply = self.replies / json.loads(job)["key"]
            with contextlib.suppress(FileNotFoundError):
                if "body" not in json.loads(read_done(reply.read_text())[0]):
                    reply.unlink()

    def _write(self, parcel: Parcel) -> str:
        text = canonical(list(parcel.jobs))
        name = f"{_hash(text)}.json"
        replace_file(self.folder / name, text.encode())
        return name

    def _submit(self, names: list[str], avoided: str) -> list[Any]:
        folders, seconds = [str(self.folder)] * len(names), [self.portion.seconds] * len(names)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of accounting, which is not asked
                self.executor.update_parameters(exclude=avoided or None)
                return list(self.executor.map_array(do_file, folders, names, seconds))
        except Exception as error:  # of sbatch, by way of submitit
            said = cut((str(error).strip().splitlines() or [type(error).__name__])[0], 300)
            what = (
                f"it takes no job with {self.portion}: {said}; change [cluster], or set what sbatch"
                " reads in the environment, such as SBATCH_PARTITION"
            )
            raise InputError([Mistake("slurm", what)]) from error

    def _take(self, parcel: Parcel) -> bool:
        """Hand on replies that are there; whether that is all of them."""
        missing = False
        for number, job in zip(parcel.numbers, parcel.jobs, strict=True):
            if number in self.taken:
                continue
            key = json.loads(job)["key"]
            try:
                done = (self.replies / key).read_text()
            except FileNotFoundError:
                missing = True
            else:
                self.flights.take(number, done)
                self.taken[number] = key
        return not missing

    def _find_lost(self) -> None:
        if time.monotonic() - self.asked < ASK:
            return
        self.asked = time.monotonic()
        which = ("--me", "--name", self.name, "--array", "--noheader", "--format=%i|%T|%N|%r")
        said = _call("squeue", *which)
        if said is None:
            what = (
                f"squeue has failed for {LONGEST_TROUBLE / 60:g} minutes; see that Slurm runs, then"
                " type the command again: what is done is kept"
            )
            self._bear("squeue", InputError([Mistake("slurm", what)]))
            return
        self.failing.pop("squeue", None)
        rows = [line.split("|", 3) for line in said.splitlines() if line.count("|") >= 3]
        known = {name: rest for name, *rest in rows}
        self.machines |= {name: machine for name, (_, machine, _) in known.items() if machine}
        self._tell_waiting([known[name] for name in self.away if name in known])
        gone = self.away.keys() - known.keys()
        for name in gone & self.unknown:
            if not self._take(parcel := self.away.pop(name)):
                self.has_lost = True
                if name in self.machines:
                    self.avoided |= dict.fromkeys(parcel.numbers, self.machines[name])
                self.flights.lose(parcel, self._explain(name))
        self.unknown = gone

    def _tell_waiting(self, states: list[list[str]]) -> None:
        """Where none of its jobs runs, say why, each reason once: it may be one that never ends."""
        reasons = {reason for state, _, reason in states if state == PENDING} - {*USUAL_REASONS}
        if all(state == PENDING for state, *_ in states):
            for reason in sorted(reasons - self.told):
                said = f"note: all jobs wait in Slurm: {visible(reason)}; see: squeue --me"
                print(said, file=sys.stderr, flush=True)
            self.told |= reasons

    def _explain(self, name: str) -> str:
        log = self.folder / "log" / f"{name}_0_log.err"
        with contextlib.suppress(OSError):
            if lines := log.read_text(errors="replace").strip().splitlines():
                return f"or was cancelled; its log ends: {cut(lines[-1], 200)} ({log})"
        return f"or was cancelled before it began; see: sacct -j {name}"

    def tidy(self) -> None:
        """Remove what nobody needs any more; other jobs of the same campaign, done for a driver
        that was killed, may be wanted by the next one."""
        for key in self.taken.values():
            (self.replies / key).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty
            self.replies.rmdir()
            if not self.has_lost:  # what is told of a loss names a log
                shutil.rmtree(self.folder, ignore_errors=True)

    def cancel(self) -> None:
        """End what is under way."""
        _call("scancel", "--me", "--name", self.name)


def do_file(folder: str, name: str, seconds: float | None) -> None:
    """In a Slurm job: do the jobs of a file, and leave a reply for each as soon as it is done."""
    place = Path(folder)
    common, jobs = (place / "common.json").read_text(), parse((place / name).read_text())
    where = {"slurm_job": os.environ.get("SLURM_JOB_ID", "")}
    for job, done in zip(jobs, do_jobs(common, jobs, seconds, **where), strict=True):
        replace_file(place / "replies" / json.loads(job)["key"], done.encode())


def _make_executor(name: str, log: Path, portion: Portion) -> Any:
    submitit: Any = importlib.import_module("submitit")
    # without -P, Python would load what lies in the current folder in the place of its own modules
    executor = submitit.SlurmExecutor(log, python=f"{shlex.quote(sys.executable)} -P")
    minutes = USUAL_MINUTES if portion.minutes is None else math.ceil(portion.minutes) + MARGIN
    asked: dict[str, Any] = {"job_name": name, "time": minutes, "array_parallelism": 1000}
    asked |= {"cpus_per_task": math.ceil(portion.cpus)}
    asked |= {"gpus_per_node": int(portion.gpus)} if portion.gpus else {}
    asked |= {} if portion.memory is None else {"mem": f"{math.ceil(portion.memory * 1000)}M"}
    executor.update_parameters(**asked)
    return executor


def _call(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
