"""Faults at every call of a campaign: a disk that fails or is full, memory that is short, power
that goes.

`python tests/faults.py` is the driver. It loads everything once under tests/fixtures/shim.c and
forks a process for each fault, in which the shim is told what to fail; what became of the campaign
is judged once the same command was run again. `python tests/faults.py --report
docs/results/faults.md` goes through all of them and writes the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import hashlib
import json
import os
import platform
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from helpers import powerloss, survival
from helpers.survival import NAME, edit, fill, paint

SHIM = Path(__file__).parent / "fixtures" / "shim.c"
KINDS = (
    *(
        "open",
        "create",
        "read",
        "write",
        "sync",
        "truncate",
        "rename",
        "link",
        "unlink",
        "mkdir",
        "rmdir",
        "close",
    ),
    *("allocate", "mmap", "stat", "chmod", "lock", "list", "memory of SQLite", "memory", "arena"),
)
"""as in the shim; `create` opens what was not there, `memory` is malloc of all but SQLite, `arena`
is Python's mmap"""
MEMORY = ("memory of SQLite", "memory", "arena")
ONCE, ON, SHORT = 0, 1, 2
FAULTS: dict[str, tuple[int, ...]] = {
    "open": (errno.EIO, errno.ENOMEM), "create": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "read": (errno.EIO, errno.ENOMEM), "write": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "sync": (errno.EIO, errno.ENOSPC), "truncate": (errno.EIO, errno.ENOSPC), "rename": (errno.EIO,
    errno.ENOSPC),
    "link": (errno.EIO, errno.ENOSPC), "unlink": (errno.EIO,), "mkdir": (errno.EIO, errno.ENOSPC),
    "rmdir": (errno.EIO,), "close": (errno.EIO,), "allocate": (errno.ENOSPC, errno.EIO),
    "mmap": (errno.ENOMEM,),
    "stat": (errno.EIO,), "chmod": (errno.EIO,), "lock": (errno.EIO, errno.ENOLCK),
    "list": (errno.EIO,),
    "memory of SQLite": (errno.ENOMEM,), "memory": (errno.ENOMEM,), "arena": (errno.ENOMEM,),
}  # fmt: skip
FULL = ("create", "write", "mkdir", "link", "allocate")
"""what a full disk refuses"""
SMALLEST = 513
"""bytes from which Python asks malloc; below, it has arenas of its own"""
PATIENCE = 100
"""seconds after which a process hangs"""
VERDICTS = ("succeeded", "resumed", "abrupt", "ugly", "lost")
"""the command did all of its work in spite of the fault; it ended with a clear word, or with the
power, and did the rest when it was typed again; likewise, but a library gave way without a word
when memory was short; likewise, but what it said or left was not clear; something was lost, or
wrong data were taken"""


# The campaigns

INIT = [
    "init",
    NAME,
    "--root",
    "table.csv",
    "--targets",
    "size,look",
    "--cost",
    "size=1",
    "--cost",
    "look=5",
]
INIT += ["--budget", "60", "--steps", "2"]
TABLE = [
    INIT,
    ["edit", "trainings", "10"],
    ["estimate", NAME, "--workers", "0"],
    ["plan", NAME],
    ["order", NAME],
    ["fill", "order-1.csv"],
    ["spoil"],
    ["ingest", NAME, "back.csv"],
    ["status", NAME],
    ["edit", "budget", "90"],  # so that there is money left whatever the first order spends
    ["order", NAME, "--all", "-o", "second.jsonl"],
    ["order", NAME, "--cancel", "2"],
    ["report", NAME],
    ["verify", NAME],
    ["pack", NAME],
    ["unpack", f"{NAME}.zip", "copy"],
]
"""a table of which people label some more; `spoil` makes mistakes in what came back"""
PICTURES = [
    [
        "init",
        NAME,
        "--data",
        "scenes",
        "--targets",
        "segmentation,classes",
        "--method",
        "neutral",
        "--steps",
        "1",
    ],
    ["edit", "count", "24"],
    ["edit", "size", "16"],
    ["order", NAME],
    ["paint", "order-1.csv", "16"],
    ["ingest", NAME, "masks"],
    ["evaluate", NAME, "--repeats", "1", "--workers", "0"],
    ["pack", NAME],
    ["unpack", f"{NAME}.zip", "copy"],
]
PICTURES[0] += ["--have", "segmentation=4", "--have", "classes=4", "--budget", "60"]
SCENARIOS = {"table": TABLE, "pictures": PICTURES}
PEOPLE = ("edit", "fill", "paint", "spoil")
READING = ("status", "plan", "report", "verify", "pack")
"""commands that add nothing to a store; `plan` notes the plan"""


def spoil() -> None:
    """Two labels that nobody can use, as people type them."""
    with Path("back.csv").open("a") as file:
        file.write("1,size,no such row,,,,2\n1,look,3,,,,neither\n")


def tidy() -> None:
    """What the next command that writes does first, in each campaign."""
    from allotment.ledger.store import Store

    for name in (NAME, "copy"):
        if Path(name, "campaign.sqlite").exists():
            Store.open(Path(name), write=True).close()


survival.HUMAN |= {"spoil": spoil, "tidy": tidy}
assert {"edit": edit, "fill": fill, "paint": paint}.items() <= survival.HUMAN.items()


# The shim


class Shim:
    """The library that this process runs under."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        given = [
            ctypes.c_char_p,
            ctypes.c_uint64,
            ctypes.c_long,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
        ]
        self.library.shim_arm.argtypes = [*given, ctypes.c_size_t]

    def arm(self, folder: Path, fault: Fault | None) -> None:
        mask, number, error, how = (0, 0, 0, 0) if fault is None else fault.numbers
        self.library.shim_arm(os.fsencode(folder), mask, number, error, how, 1, SMALLEST)

    def disarm(self) -> None:
        self.library.shim_disarm()

    def trace(self, handle: int) -> None:
        self.library.shim_trace(handle)

    def mark(self, text: str) -> None:
        self.library.shim_mark(text.encode())

    @property
    def counts(self) -> dict[str, int]:
        found = (ctypes.c_long * len(KINDS))()
        self.library.shim_counts(found)
        return dict(zip(KINDS, found, strict=True))

    @property
    def has_failed(self) -> bool:
        return bool(self.library.shim_failed())


def build_shim(folder: Path) -> Path | str:
    """The library, or why there is none."""
    if sys.platform != "linux" or sys.maxsize < 2**32 or platform.libc_ver()[0] != "glibc":
        return "faults are injected on 64-bit Linux with glibc only"
    compiler = shutil.which("cc")
    if compiler is None:
        return "there is no C compiler (cc) for the library that injects faults"
    path = folder / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, SHIM, "-ldl"], check=True)
    return path


@dataclass(frozen=True)
class Fault:
    """Which call fails and how: one, all from one on, or half of a write and then the next."""

    kind: str
    number: int
    error: int
    how: int = ONCE

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        kinds = FULL if self.how == ON else (self.kind,)
        return sum(1 << KINDS.index(kind) for kind in kinds), self.number, self.error, self.how

    @property
    def name(self) -> str:
        """Of its row in a table."""
        return (
            "full from then on"
            if self.how == ON
            else "half of a write"
            if self.how == SHORT
            else self.kind
        )

    def __str__(self) -> str:
        return f"{self.name} {self.number} {errno.errorcode[self.error]}"


def list_faults(counts: dict[str, int], memory: bool) -> list[Fault]:
    """All that can be failed in a command that makes so many calls."""
    found = []
    for kind, errors in FAULTS.items():
        if (kind in MEMORY) == memory:
            found += [
                Fault(kind, number, error)
                for number in range(1, counts[kind] + 1)
                for error in errors
            ]
    if not memory:
        found += [
            Fault("write", number, errno.ENOSPC, SHORT) for number in range(1, counts["write"] + 1)
        ]
        calls = sum(counts[kind] for kind in FULL)
        found += [Fault("write", number, errno.ENOSPC, ON) for number in range(1, calls + 1)]
    return found


# A process that meets one fault


@dataclass
class Life:
    """What a command came to."""

    code: int
    out: str = ""
    err: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    has_failed: bool = False


def live(
    shim: Shim,
    at: Path,
    command: Sequence[str],
    fault: Fault | None = None,
    trace: Path | None = None,
) -> Life:
    """The command in a process of its own; code None of it is the signal that it died of, as a
    negative number."""
    pipe, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.chdir(at)
            signal.alarm(PATIENCE)
            os.write(theirs, json.dumps(_meet(shim, at, command, fault, trace)).encode())
        finally:
            os._exit(9)
    os.close(theirs)
    said = b""
    while piece := os.read(pipe, 1 << 16):
        said += piece
    os.close(pipe)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return (
        Life(*json.loads(said))
        if said.endswith(b"]")
        else Life(min(status, -2), err=f"ended with {status}")
    )


def _meet(
    shim: Shim, at: Path, command: Sequence[str], fault: Fault | None, trace: Path | None
) -> list[Any]:
    if trace is not None:
        handle = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        mark_commits(shim)
    shim.arm(at, fault)
    if trace is not None:
        shim.trace(handle)
    code, out, err = survival.perform(command)
    counts, has_failed = shim.counts, shim.has_failed
    shim.disarm()
    return [code, out, err, counts, has_failed]


def mark_commits(shim: Shim) -> None:
    """Put into the trace how many rows each table has once an addition is acknowledged."""
    from allotment.ledger.schema import Ledger

    adding = Ledger._adding

    @contextlib.contextmanager
    def aloud(store: Any) -> Iterator[None]:
        with adding(store):
            yield
        shim.mark(
            json.dumps({"at": str(store.folder.resolve()), "rows": count_rows(store._connection)})
        )

    Ledger._adding = aloud  # type: ignore[method-assign, assignment]


def count_rows(connection: sqlite3.Connection) -> dict[str, int]:
    from allotment.ledger.schema import MIGRATIONS, TABLE_COLUMNS

    tables = TABLE_COLUMNS[len(MIGRATIONS)]
    return {
        name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in tables
    }


# What a folder holds

_PASSING = re.compile(r"campaign\.sqlite(-wal|-shm)?|campaign\.lock|.*/copies/.*|copies/.*")


def hold(at: Path) -> dict[str, Any]:
    """Tables of every campaign below a folder, and digests of all other files; what is half-written
    counts as well."""
    found: dict[str, Any] = {}
    for path in sorted(at.rglob("*")):
        name = str(path.relative_to(at))
        if path.name == "campaign.sqlite" and ".half-" not in name and "copies" not in name:
            tables = survival.read_tables(path.parent, check=True)
            found[name] = tables
        elif not path.is_dir() and not _PASSING.fullmatch(path.name) and "/copies/" not in name:
            found[re.sub(r"\.half-[^/]*", ".half-", name)] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
        elif path.is_dir() and ".half-" in name:
            found[re.sub(r"\.half-[^/]*", ".half-", name)] = "a folder"
    return found


def is_between(before: dict[str, Any], found: dict[str, Any], after: dict[str, Any]) -> str:
    """What is lost of what was there before, or is there and should never be; nothing is the empty
    text."""
    for name, held in before.items():
        if name not in found:
            return f"{name} is gone"
        if isinstance(held, dict):
            for table, rows in held.items():
                if found[name][table][: len(rows)] != rows:
                    return f"{name}: rows of {table} are lost"
        elif found[name] not in (held, after.get(name)):
            return f"{name} has changed"
    for name, held in found.items():
        if isinstance(held, dict) and isinstance(after.get(name), dict):
            for table, rows in held.items():
                if after[name][table][: len(rows)] != rows:
                    return f"{name}: {table} has rows that it should not have"
        elif isinstance(held, dict) or (
            name not in before and ".half-" not in name and held != after.get(name)
        ):
            return f"{name} is there and should not"
    return ""


# Verdicts


@dataclass(frozen=True)
class Step:
    """A command, the folder before it, and what it comes to when nothing happens."""

    scenario: str
    number: int
    command: tuple[str, ...]
    base: Path
    before: dict[str, Any]
    after: dict[str, Any]
    life: Life

    @property
    def name(self) -> str:
        return f"{self.scenario}: {' '.join(self.command)}"


def prepare(shim: Shim, folder: Path, scenarios: Sequence[str]) -> list[Step]:
    """Every command once, in this process to have all loaded, then apart to be counted."""
    steps = []
    for scenario in scenarios:
        at = folder / scenario / "live"
        at.mkdir(parents=True)
        survival.write_table(at / "table.csv")
        for number, command in enumerate(SCENARIOS[scenario]):
            base = folder / scenario / f"{number}"
            before = hold(at)
            shutil.copytree(at, base)
            with contextlib.chdir(at):
                code, _, err = survival.perform(command)
            assert code == 0, (command, err)
            if command[0] not in PEOPLE:
                spare = folder / "spare"
                shutil.copytree(base, spare)
                life = live(shim, spare, command)
                assert life.code == 0, (command, life.err)
                after = hold(spare)
                steps.append(Step(scenario, number, tuple(command), base, before, after, life))
                shutil.rmtree(spare)
    return steps


@dataclass(frozen=True)
class Verdict:
    step: Step
    fault: Any
    word: str
    what: str = ""
    said: str = ""

    def __str__(self) -> str:
        return f"{self.step.name}: {self.fault}: {self.word}: {self.what}"


def judge(shim: Shim, step: Step, fault: Fault, at: Path) -> Verdict | None:
    """One fault, and the same command again; None if the call never came."""
    shutil.copytree(step.base, at)
    life = live(shim, at, step.command, fault)
    try:
        if not life.has_failed and life.code == 0:
            return None
        word, what = _judge(shim, step, life, at)
        if word == "ugly" and fault.kind in ("memory", "arena") and _gave_way(life):
            word = "abrupt"
    except Exception as error:
        word, what = "lost", f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(at, ignore_errors=True)
    return Verdict(step, fault, word, what, life.err.strip())


def _judge(shim: Shim, step: Step, life: Life, at: Path) -> tuple[str, str]:
    if life.code == 0:
        live(shim, at, ["tidy"])
        found = hold(at)
        if found != step.after:  # what could not be removed is gone after the next time
            word, what = _find_leftovers(found, step.after)
            return (
                (run_again(shim, step, at) or ("succeeded", "")) if word == "ugly" else (word, what)
            )
        if _plain(life.out) != _plain(step.life.out):
            return "ugly", f"says something else: {life.out!r}"
        return "succeeded", ""
    copy = at.with_name("copy")
    shutil.copytree(at, copy)
    try:
        if lost := is_between(step.before, hold(copy), step.after):
            return "lost", lost
    finally:
        shutil.rmtree(copy)
    if wrong := run_again(shim, step, at):
        return wrong
    said = life.out if step.command[0] == "verify" and not life.err else life.err
    if life.code != 2 or not _is_clear(said):
        return "ugly", f"code {life.code}: {said.strip()[-300:]}"
    return "resumed", ""


def run_again(shim: Shim, step: Step, at: Path) -> tuple[str, str] | None:
    """What is wrong once the same command is run without a fault; nothing is None."""
    again = live(shim, at, step.command)
    done = again.code == 0 or (
        step.command[0] in ("init", "pack", "unpack") and "is there already" in again.err
    )
    done = done or survival.is_there_already(step.command, again.err)
    if not done:
        return "lost", f"again: code {again.code}: {again.err.strip()[-300:]}"
    live(shim, at, ["tidy"])
    found = hold(at)
    return None if found == step.after else _find_leftovers(found, step.after)


def _find_leftovers(found: dict[str, Any], after: dict[str, Any]) -> tuple[str, str]:
    left = sorted(name for name in found if name not in after)
    differ = sorted(name for name in after if found.get(name) != after[name])
    if not differ and all(".half-" in name for name in left):
        return "ugly", f"left behind: {', '.join(left)}"
    return "lost", f"differs: {', '.join(differ)}; too many: {', '.join(left)}"


def _gave_way(life: Life) -> bool:
    """Whether numpy, torch or Python ended without raising MemoryError, as they do where memory
    ends in native code."""
    return (
        life.code < -1
        or re.search(r"^(SystemError|ImportError|RuntimeError): ", life.err, re.MULTILINE)
        is not None
    )


def _is_clear(err: str) -> bool:
    """Whether it says what is wrong and what to do, not just what the system calls it."""
    errors = [line for line in err.replace("\r", "\n").split("\n") if line.startswith("error: ")]
    bare = [
        line for line in errors if line.removeprefix("error: ") in map(os.strerror, errno.errorcode)
    ]
    # nothing is, once the disk reads again
    alarm = "is damaged" in err and "run the same command again" not in err
    return "Traceback" not in err and bool(errors) and not bare and not alarm


def _plain(out: str) -> str:
    """But for how long something takes."""
    return re.sub(
        r"(about |for )?[\d.,]+ (ms|s|seconds?|minutes?|CPU|hours?)\b|\d+(\.\d+)?", "#", out
    )


# All of them


def inject(shim: Shim, step: Step, folder: Path, faults: Sequence[Fault]) -> list[Verdict]:
    """What became of a command at each of these faults."""
    tried = (judge(shim, step, fault, folder / "at") for fault in faults)
    return [verdict for verdict in tried if verdict is not None]


def sample(faults: Sequence[Fault], most: int, rng: random.Random) -> list[Fault]:
    """So many of them, of each kind in turn."""
    piles: dict[str, list[Fault]] = {}
    for fault in rng.sample(faults, len(faults)):
        piles.setdefault(fault.name, []).append(fault)
    found: list[Fault] = []
    while piles and len(found) < most:
        for name in list(piles):
            found.append(piles[name].pop())
            if not piles[name]:
                del piles[name]
    return found[:most]


# Power


@dataclass(frozen=True)
class Cut:
    """The power goes after so many events, and this is what stays of what was not synced."""

    event: int
    of: int
    manner: str

    @property
    def name(self) -> str:
        return self.manner

    def __str__(self) -> str:
        return f"power goes after {self.event} of {self.of} events, {self.manner}"


def cut_power(
    shim: Shim, step: Step, folder: Path, most: int | None, rng: random.Random
) -> list[Verdict]:
    """Every moment of a command and every manner, or `most` that are drawn; the end is always among
    them."""
    at, trace = folder / "at", folder / "trace"
    shutil.copytree(step.base, at)
    disk = powerloss.Disk(at)
    life = live(shim, at, step.command, trace=trace)
    assert life.code == 0, (step.name, life.err)
    shutil.rmtree(at)
    events = powerloss.read_trace(trace)
    cuts = [(event, manner) for event in range(len(events) + 1) for manner in powerloss.MANNERS]
    ends = [(len(events), manner) for manner in powerloss.MANNERS]
    wanted = set(cuts) if most is None else {*rng.sample(cuts, min(most, len(cuts))), *ends}
    known, found, seen = dict(step.before), [], set[bytes]()
    for number in range(len(events) + 1):
        if number:
            disk.apply(events[number - 1], at)
            known = _acknowledge(known, events[number - 1], step, at)
        if number == len(events):
            known = step.after
        for manner in powerloss.MANNERS:
            if (number, manner) in wanted:
                state = disk.crash(manner, rng)
                digest = hashlib.sha256(
                    repr((sorted(state.items()), sorted(known))).encode()
                ).digest()
                if digest not in seen:
                    seen.add(digest)
                    found.append(
                        _lose_power(shim, step, Cut(number, len(events), manner), state, known, at)
                    )
    return found


def _acknowledge(
    known: dict[str, Any], event: powerloss.Event, step: Step, at: Path
) -> dict[str, Any]:
    """What whoever typed the command may count on after this event."""
    if event.word != powerloss.MARKED:
        return known
    said = json.loads(event.first)
    name = str(Path(said["at"], "campaign.sqlite").relative_to(at))
    if name not in step.after:
        return known
    return known | {
        name: {table: rows[: said["rows"][table]] for table, rows in step.after[name].items()}
    }


def _lose_power(
    shim: Shim,
    step: Step,
    cut: Cut,
    state: dict[str, bytes | None],
    known: dict[str, Any],
    at: Path,
) -> Verdict:
    powerloss.write(state, at)
    try:
        word, what = _judge_cut(shim, step, known, at)
    except Exception as error:
        word, what = "lost", f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(at)
    return Verdict(step, cut, word, what)


def _judge_cut(shim: Shim, step: Step, known: dict[str, Any], at: Path) -> tuple[str, str]:
    copy = at.with_name("copy")
    shutil.copytree(at, copy)
    try:
        lost = is_between(known, hold(copy), step.after)
    except Exception as error:  # a store that nobody was told of may be anything
        lost = str(error) if any(isinstance(held, dict) for held in known.values()) else ""
    finally:
        shutil.rmtree(copy)
    again = run_again(shim, step, at)
    if lost and known is step.after:
        return "lost", f"was acknowledged: {lost}"
    if again or lost:
        return again or ("lost", lost)
    return "resumed", ""


# The driver


def drive(given: argparse.Namespace) -> dict[str, Any]:
    """All that was asked for, as rows of tables and a list of what went wrong."""
    import gc

    import torch

    torch.set_num_threads(1)
    shim, rng, verdicts = Shim(), random.Random(given.seed), []
    with tempfile.TemporaryDirectory(dir=given.at) as name:
        folder = Path(os.path.realpath(name))
        steps = prepare(shim, folder, given.scenarios.split(","))
        steps = [step for number, step in enumerate(steps) if number % given.of == given.part]
        if given.only:
            steps = [step for step in steps if step.command[0] in given.only.split(",")]
        gc.collect()
        gc.freeze()
        began = time.monotonic()
        for subject in given.subjects.split(","):
            for step in steps:
                here = _try(shim, step, folder, subject, given, rng)
                verdicts += here
                seconds = time.monotonic() - began
                print(
                    f"{seconds:6.0f} s {subject}: {step.name}: {count_words(here)}",
                    file=sys.stderr,
                    flush=True,
                )
                for verdict in here:
                    if verdict.word in ("ugly", "lost"):
                        print(f"  {verdict}", file=sys.stderr, flush=True)
                if given.json:  # whoever stops it has what was found so far
                    Path(given.json).write_text(json.dumps(collect(given, verdicts), indent=1))
    return collect(given, verdicts, done=True)


def collect(
    given: argparse.Namespace, verdicts: Sequence[Verdict], done: bool = False
) -> dict[str, Any]:
    return {
        "done": done,
        "seed": given.seed,
        "most": given.most,
        "rows": [[*row, dict(words)] for row, words in tabulate(verdicts).items()],
        "wrong": [str(verdict) for verdict in verdicts if verdict.word in ("ugly", "lost")],
        "said": Counter(
            f"{each.step.command[0]}: {each.fault.name}: {each.said}"
            for each in verdicts
            if each.said
        ),
    }


def _try(
    shim: Shim,
    step: Step,
    folder: Path,
    subject: str,
    given: argparse.Namespace,
    rng: random.Random,
) -> list[Verdict]:
    if subject == "power":
        return cut_power(shim, step, folder, given.most, rng)
    faults = list_faults(step.life.counts, subject == "memory")
    if given.kinds:
        faults = [fault for fault in faults if fault.kind in given.kinds.split(",")]
    return inject(
        shim, step, folder, faults if given.most is None else sample(faults, given.most, rng)
    )


def count_words(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return dict(Counter(verdict.word for verdict in verdicts))


def tabulate(verdicts: Sequence[Verdict]) -> dict[tuple[str, str, str], Counter[str]]:
    """Counts of each verdict by subject, command and kind of fault."""
    found: dict[tuple[str, str, str], Counter[str]] = {}
    for verdict in verdicts:
        subject = (
            "power"
            if isinstance(verdict.fault, Cut)
            else "memory"
            if verdict.fault.kind in MEMORY
            else "calls"
        )
        row = (subject, verdict.step.command[0], verdict.fault.name)
        found.setdefault(row, Counter())[verdict.word] += 1
    return found


HEADS = {
    "calls": ("Calls that fail", "call"),
    "memory": ("Memory that is short", "asked for by"),
    "power": ("Power that goes", "of what was not synced there is"),
}
STAYS = {
    "synced": "nothing", "all": "everything", "names": "names without bytes",
    "bytes": "bytes without names",
    "holes": "names, zeros for bytes", "journal": "names up to a moment, sectors at random",
    "folders": "names by folder, a torn write",
}  # fmt: skip
WHO = {
    "memory of SQLite": "SQLite",
    "memory": "anybody else, by malloc",
    "arena": "Python, by mmap",
}


def write_report(path: Path, found: Sequence[dict[str, Any]]) -> None:
    """The page with the tables, and what went wrong."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for each in found:
        for subject, command, kind, words in each["rows"]:
            rows.setdefault((subject, command, kind), Counter()).update(words)
    most, seed = found[0]["most"], found[0]["seed"]
    run = "python tests/faults.py" + ("" if most is None else f" --most {most}") + f" --seed {seed}"
    cores, system = os.cpu_count(), f"{platform.system()} {platform.machine()}"
    total = sum((words for words in rows.values()), Counter[str]())
    about = (
        f"`{run}`, parts: {len(found)}, {date.today()}; {cores} cores of a shared {system}"
        " machine, "
    )
    about += f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}. {ABOUT}"
    lines = [
        "# Faults at every call",
        "",
        *_wrap(about),
        "",
        *_wrap(_tell_extent(rows, most, found)),
        "",
    ]
    lines += [f"In all: {', '.join(f'{total[word]} {word}' for word in VERDICTS)}.", ""]
    for subject, (title, head) in HEADS.items():
        lines += [f"## {title}", ""]
        lines += _table(head, _add_up(rows, subject, 2))
        lines += _table("command", _add_up(rows, subject, 1))
    wrong = [line for each in found for line in each["wrong"]]
    lines += ["## What went wrong", "", *(f"- {line}" for line in wrong or ["nothing"])]
    path.write_text("\n".join(lines).rstrip() + "\n")


ABOUT = """\
A campaign on a table and one on pictures are gone through command by command. In each command calls
that concern its files are failed one at a time, through a library for LD_PRELOAD
(`tests/fixtures/shim.c`); a trace of all that it writes, syncs and renames gives the disks that a
power cut may leave. Then the same command is typed again. *Succeeded*: it did all of its work in
spite of the fault. *Resumed*: it ended with a clear word and exit code 2, nothing that was there
before or was acknowledged since is lost, and the same command then ends with the same rows and
bytes as one that was left alone. *Abrupt*: the same, but a library ended the process without a word
when memory was short. *Ugly*: the same, but what it said or left behind is not clear. *Lost*:
anything else."""


def _tell_extent(
    rows: dict[tuple[str, str, str], Counter[str]],
    most: int | None,
    found: Sequence[dict[str, Any]],
) -> str:
    """How much of all there is was tried, so that nobody takes a part for the whole."""
    told = "All faults were tried."
    if most is not None:
        told = (
            f"This is a sample: {most} of the faults of each table for each command, and for power"
            " the end of it."
        )
    if not all(each.get("done") for each in found):
        told += (
            " The run was stopped before its end, so that later commands of a campaign were not all"
            " reached."
        )
    for subject, (title, _) in HEADS.items():
        reached = {command for each, command, _ in rows if each == subject}
        if missing := sorted({command for _, command, _ in rows} - reached):
            told += f" {title}: not tried for {', '.join(missing)}."
    return told


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False
    )


def _add_up(
    rows: dict[tuple[str, str, str], Counter[str]], subject: str, by: int
) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for row, words in rows.items():
        if row[0] == subject:
            name = (
                {"power": STAYS, "memory": WHO}.get(subject, {}).get(row[by], row[by])
                if by == 2
                else row[by]
            )
            found.setdefault(name, Counter()).update(words)
    return found


def _table(head: str, rows: dict[str, Counter[str]]) -> list[str]:
    lines = [f"| {head} | times | {' | '.join(VERDICTS)} |", "|---" * (len(VERDICTS) + 2) + "|"]
    for name, words in rows.items():
        lines.append(
            f"| {name} | {sum(words.values())} |"
            f" {' | '.join(str(words[word]) for word in VERDICTS)} |"
        )
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="faults of each command; all of them if left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--subjects", default="calls,memory,power")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--only", help="commands, such as init,order")
    parser.add_argument("--kinds", help="of calls, such as open,read")
    parser.add_argument("--part", type=int, default=0, help="which of several processes this is")
    parser.add_argument("--of", type=int, default=1, help="how many share the commands")
    parser.add_argument("--at", help="where to work; best a disk in memory")
    parser.add_argument("--json", help="write what was found here")
    parser.add_argument(
        "--report", help="write it as a page here, with what else was found, if that is given"
    )
    parser.add_argument("found", nargs="*", help="files of --json, instead of a run")
    given = parser.parse_args()
    if given.found:
        write_report(
            Path(given.report), [json.loads(Path(each).read_text()) for each in given.found]
        )
        return
    if "shim" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as name:
            library = build_shim(Path(name))
            if isinstance(library, str):
                sys.exit(library)
            wanted = {"LD_PRELOAD": str(library), "CUDA_VISIBLE_DEVICES": ""}
            sys.exit(
                subprocess.run([sys.executable, *sys.argv], env=os.environ | wanted).returncode
            )
    found = drive(given)
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1))
    if given.report:
        write_report(Path(given.report), [found])
    sys.exit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
