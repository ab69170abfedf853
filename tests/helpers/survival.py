"""Campaigns whose processes die: one process loads everything once and forks those that are to be
killed.

`python tests/helpers/survival.py` is that process, the nursery: it answers requests, one JSON line
each, about campaigns in folders that it is told. `Nursery` is its voice in a test.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "camp"
TRAININGS = 20
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
INIT += ["--budget", "60", "--steps", "8"]
STATUS = ["status", NAME, "--json"]
ESTIMATE = ["estimate", NAME, "--workers", "0"]
COMMANDS: list[list[str]] = [
    INIT,
    ["edit", "trainings", str(TRAININGS)],
    ESTIMATE,
    ["plan", NAME],
    ["order", NAME],
    ["fill", "order-1.csv"],
    ["ingest", NAME, "back.csv"],
    ["edit", "budget", "90"],  # so that a second round has money whatever the first one spends
    ESTIMATE,
    ["plan", NAME],
    ["order", NAME],
]
"""a small but complete campaign of two rounds; `edit` and `fill` are what people do in between"""
LABELS: list[list[str]] = [
    [*INIT, "--method", "neutral"],
    ["order", NAME],
    ["fill", "order-1.csv"],
    ["ingest", NAME, "back.csv"],
    ["correct", NAME, "--task", "size", "--instance", "1", "--value", "3.25"],
    ["correct", NAME, "--task", "look", "--instance", "1", "--withdraw"],
    ["export", NAME, "-o", f"{NAME}/all.csv"],
]
"""one round, after which labels are corrected, withdrawn and taken away"""
EVENTS = {
    "open",
    "os.rename",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.truncate",
    "sqlite3.connect",
}
EVENTS |= {"fcntl.flock", "tempfile.mkstemp", "tempfile.mkdtemp", "shutil.rmtree", "os.chmod"}
"""at which a process can be stopped exactly, beside every statement that SQLite executes"""
CALLS = {
    "open",
    "write",
    "flush",
    "close",
    "__exit__",
    "fsync",
    "link",
    "replace",
    "rename",
    "unlink",
    "truncate",
}
CALLS |= {"ftruncate", "mkdir", "rmdir", "chmod", "flock", "execute", "executemany"}
"""the same for those who look closer: built-in functions and methods that change something on the
disk"""
_COMPARED = r"campaign\.toml|order-\d+\.csv|all\.(labels\.)?csv"
"""files of a campaign whose bytes are compared"""
CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


# What people do


def write_table(path: Path, count: int = 50) -> None:
    """Two features and two targets, of which every second and third row has a label."""
    rng = random.Random(5)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["width", "age", "size", "look"])
        for number in range(count):
            width, age = rng.random(), rng.random()
            size = f"{3 + 2 * width - age + rng.gauss(0, 0.1):.3f}" if number % 2 == 0 else ""
            look = ("old", "new")[age + rng.gauss(0, 0.1) < 0.5] if number % 3 == 0 else ""
            writer.writerow([f"{width:.3f}", f"{age:.3f}", size, look])


def edit(key: str, value: str) -> None:
    """Change a line of campaign.toml, or add it at the top, as an editor that saves well does."""
    path = Path(NAME, "campaign.toml")
    text = path.read_text()
    changed, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    Path("edited.toml").write_text(changed if count else f"{key} = {value}\n{text}")
    os.replace("edited.toml", path)


def fill(sheet: str) -> None:
    """Every label of an order, each by the number of its instance."""
    with Path(NAME, sheet).open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        place = int(row["instance"])
        row["label"] = (
            f"{3 + place % 7 / 10}" if row["task"] == "size" else ("old", "new")[place % 2]
        )
    with Path("back.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def paint(sheet: str, side: str) -> None:
    """A mask for every instance of an order that wants one."""
    from PIL import Image

    folder = Path("masks", "segmentation")
    folder.mkdir(parents=True, exist_ok=True)
    with Path(NAME, sheet).open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.DictReader(file)):
            if row["task"] == "segmentation":
                Image.new("L", (int(side), int(side)), number % 3).save(
                    folder / f"{row['instance']}.png"
                )


HUMAN = {"edit": edit, "fill": fill, "paint": paint}
OWN = 3
"""exit code of what people do, where it fails"""


def perform(command: Sequence[str]) -> tuple[int, str, str]:
    """One command in this process: exit code, stdout, stderr. Code -1 is an exception that nobody
    caught."""
    from allotment.cli import main

    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            if command[0] in HUMAN:
                HUMAN[command[0]](*command[1:])
            else:
                main(list(command))
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    except OSError as error:  # the commands catch their own: this is what an editor would say
        return (OWN if command[0] in HUMAN else -1), out.getvalue(), f"error: {error.strerror}\n"
    except BaseException:
        return -1, out.getvalue(), err.getvalue() + traceback.format_exc()
    return 0, out.getvalue(), err.getvalue()


# In a child


class Watch:
    """Tells the parent what its child is about to do; stops before the event at which it is to be
    killed."""

    def __init__(self, pipe: int, gate: int, last: int | None, gated: bool):
        self.pipe, self.gate, self.last, self.gated = pipe, gate, last, gated
        self.pid, self.count, self.is_telling = os.getpid(), 0, False
        self.wrote: set[str] = set()

    def say(self, *words: Any) -> None:
        text = (json.dumps(words) + "\n").encode()
        while text:
            text = text[os.write(self.pipe, text) :]

    def tick(self, *_: Any) -> None:
        # telling writes, too, which is no event of its own
        if self.is_telling or os.getpid() != self.pid:
            return
        self.is_telling = True
        self.count += 1
        self.say("tick")
        if self.count == self.last:
            os.read(self.gate, 1)  # until it is killed, or told to go on
        self.is_telling = False

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        if (
            event == "open"
            and isinstance(args[0], str | bytes)
            and isinstance(args[2], int)
            and args[2] & CHANGES
        ):
            self.wrote.add(os.path.abspath(os.fsdecode(args[0])))
        if event in EVENTS:
            self.tick()

    def hear_call(self, frame: Any, event: str, called: Any) -> None:
        if (
            event == "c_call"
            and called.__name__ in CALLS
            and not isinstance(called.__self__, io.StringIO)
        ):
            self.tick()

    def wait(self) -> None:
        """For the parent's word, where it wants to be asked."""
        if self.gated:
            os.read(self.gate, 1)

    def install(self, closely: bool = False) -> None:
        """On all that touches the disk, on every stack of trainings, and on every step of them."""
        from allotment.estimates import response
        from allotment.learners.torch_learner import TorchLearner

        connect, train_many, step = sqlite3.connect, response.train_many, TorchLearner.step

        def connect_aloud(*args: Any, **options: Any) -> Any:
            connection = connect(*args, **options)
            connection.set_trace_callback(self.tick)
            return connection

        def train_aloud(learner: Any, runs: Sequence[Any]) -> Any:
            self.say("trained", len(runs))
            self.tick()
            self.wait()
            return train_many(learner, runs)

        def step_aloud(learner: Any, *given: Any) -> Any:
            self.tick()
            return step(learner, *given)

        sqlite3.connect = connect_aloud  # type: ignore[assignment]
        response.train_many = train_aloud
        TorchLearner.step = step_aloud  # type: ignore[method-assign]
        sys.addaudithook(self.hear)
        if closely:
            sys.setprofile(self.hear_call)


def live(watch: Watch, request: dict[str, Any]) -> None:
    """Go through the commands from the first that is not done, up to one that fails."""
    if request.get("poison"):
        forbid_pickle()
    if "long" in request:
        from allotment.campaign import jobs

        jobs.LONG = request["long"]
    if limit := request.get("limit"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    watch.install(request.get("closely", False))
    commands: list[list[str]] = request.get("commands", COMMANDS)
    for number in range(request.get("first", 0), len(commands)):
        code, out, err = perform(commands[number])
        about = {"number": number, "code": code, "out": out, "err": err}
        if request.get("statuses"):
            about["status"] = perform(STATUS)[1]
        watch.say("done", about)
        watch.wait()
        if code and not is_there_already(commands[number], err):
            break
    watch.say("wrote", sorted(watch.wrote))


def is_there_already(command: Sequence[str], err: str) -> bool:
    """What a user hears who repeats an `init` that was killed after it had done all of its work."""
    return command[0] == "init" and "is a campaign already" in err


def read_on(watch: Watch, request: dict[str, Any]) -> None:
    """Look at the campaign a few times whenever the parent says so, until killed."""
    while True:
        watch.wait()
        for _ in range(request["looks"]):
            code, out, err = perform(STATUS)
            watch.say(
                "saw", {"code": code, "status": out, "err": err, "tables": read_tables(Path(NAME))}
            )


def forbid_pickle() -> None:
    import pickle

    import jinja2  # noqa: F401  pickles two numbers, as a mark of its cache, while it is imported

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("pickle is used")

    for name in (
        "dump",
        "dumps",
        "load",
        "loads",
        "Pickler",
        "Unpickler",
        "_Pickler",
        "_Unpickler",
    ):
        setattr(pickle, name, refuse)


# In the nursery


class Child:
    """A forked process and what it says."""

    def __init__(
        self,
        act: Callable[[Watch, dict[str, Any]], None],
        request: dict[str, Any],
        gated: bool = False,
    ):
        self.pipe, theirs = os.pipe()
        gate, self.gate = os.pipe()
        self.heard = b""
        self.pid = os.fork()
        if not self.pid:
            try:
                os.chdir(request["at"])
                act(
                    Watch(
                        theirs,
                        gate,
                        None if request.get("loosely") else request.get("ticks"),
                        gated,
                    ),
                    request,
                )
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(theirs)
        os.close(gate)

    def listen(self) -> Iterator[list[Any]]:
        """What it says until it ends."""
        while True:
            while b"\n" in self.heard:
                line, _, self.heard = self.heard.partition(b"\n")
                yield json.loads(line)
            piece = os.read(self.pipe, 1 << 16)
            if not piece:
                return
            self.heard += piece

    def go_on(self) -> None:
        os.write(self.gate, b".")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def bury(self) -> int:
        """Its exit code; negative is the signal that it died of."""
        for handle in (self.pipe, self.gate):
            os.close(handle)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@dataclass
class Life:
    """What one process came to."""

    ticks: int = 0
    trained: int = 0
    done: list[dict[str, Any]] = field(default_factory=list)
    wrote: list[str] = field(default_factory=list)
    end: int = 0

    def hear(self, word: str, what: Any = None) -> None:
        if word == "tick":
            self.ticks += 1
        elif word == "trained":
            self.trained += what
        elif word == "done":
            self.done.append(what | {"ticks": self.ticks})
        elif word == "wrote":
            self.wrote = what


def run(request: dict[str, Any]) -> dict[str, Any]:
    """A process that is killed at its event number `ticks`, or not at all.

    It waits there for the kill. `loosely` it does not: it is killed wherever it has come to when
    the word is out.
    """
    child, life = Child(live, request), Life()
    for message in child.listen():
        life.hear(*message)
        if life.ticks == request.get("ticks"):
            break
    child.kill()
    for message in child.listen():
        life.hear(*message)
    life.end = child.bury()
    return vars(life)


def look(request: dict[str, Any]) -> dict[str, Any]:
    """All that a campaign holds, in digests; of a copy, so that what the kill left is met by nobody
    but the next."""
    folder = Path(request["at"], NAME)
    with tempfile.TemporaryDirectory() as spare:
        if not (folder / "campaign.sqlite").exists():
            return {"tables": {}, "files": {}, "rest": []}
        copy = Path(spare, NAME)
        shutil.copytree(folder, copy)
        tables = read_tables(copy, check=True)
    names = sorted(os.listdir(folder))
    kept = [name for name in names if re.fullmatch(_COMPARED, name)]
    files = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in kept}
    own = (
        "campaign.sqlite",
        "campaign.sqlite-shm",
        "campaign.sqlite-wal",
        "campaign.lock",
        "copies",
    )
    return {
        "tables": tables,
        "files": files,
        "rest": [name for name in names if name not in (*kept, *own)],
    }


def read_tables(folder: Path, check: bool = False) -> dict[str, list[str]]:
    """Every row of the store but for its time."""
    from allotment.ledger.schema import MIGRATIONS, TABLE_COLUMNS
    from allotment.ledger.store import Store

    found = {}
    with Store.open(folder, write=False) as store:
        if check:
            store.check()
        for name in set(TABLE_COLUMNS[len(MIGRATIONS)]) - {"journal"}:  # whose hashes know the time
            rows = [
                {key: cell for key, cell in row.items() if key != "at"} for row in store.table(name)
            ]
            found[name] = [
                hashlib.sha256(json.dumps(row).encode()).hexdigest()[:20] for row in rows
            ]
    return found


def leave(request: dict[str, Any]) -> dict[str, Any]:
    """Fill the disk up but for so many bytes; without any, make room again."""
    ballast = Path(request["at"], "ballast")
    ballast.unlink(missing_ok=True)
    disk = os.statvfs(request["at"])
    if (room := request.get("room")) is not None:
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - room)
    disk = os.statvfs(request["at"])
    return {"free": disk.f_bavail * disk.f_frsize}


def table(request: dict[str, Any]) -> dict[str, Any]:
    """The campaign's data, on a disk that only the nursery sees."""
    write_table(Path(request["at"], "table.csv"))
    return {}


def overtake(request: dict[str, Any]) -> dict[str, Any]:
    """A reader that stops before its event number `ticks` while another process does a command from
    start to end."""
    reader, seen = Child(live, request | {"commands": [STATUS], "first": 0}), Life()
    for message in reader.listen():
        seen.hear(*message)
        if seen.ticks == request["ticks"]:
            break
    command = {key: value for key, value in request.items() if key != "ticks"}
    done = run(command)
    reader.go_on()
    for message in reader.listen():
        seen.hear(*message)
    seen.end = reader.bury()
    return {"seen": vars(seen), "done": done}


def crowd(request: dict[str, Any]) -> dict[str, Any]:
    """One process works, a second wants to, and others look on while it works and once more when it
    is done."""
    worker, life = Child(live, request, gated=True), Life()
    second: dict[str, Any] = {}
    audience: Audience | None = None
    for message in worker.listen():
        life.hear(*message)
        if message[0] not in ("trained", "done"):
            continue  # at those two it waits for a word
        if audience is None:
            second = run(request | {"commands": [ESTIMATE], "first": 0})
            audience = Audience(request)
        else:
            audience.collect()
        audience.send()
        worker.go_on()
    assert audience is not None
    audience.collect()
    audience.send()
    audience.collect()
    audience.leave()
    life.end = worker.bury()
    return {"pid": worker.pid, "worker": vars(life), "second": second, "seen": audience.seen}


class Audience:
    """Processes that read."""

    def __init__(self, request: dict[str, Any]):
        self.looks = request["looks"]
        self.readers = [Child(read_on, request, gated=True) for _ in range(request["readers"])]
        self.seen: list[list[dict[str, Any]]] = [[] for _ in self.readers]

    def send(self) -> None:
        for reader in self.readers:
            reader.go_on()

    def collect(self) -> None:
        for reader, mine in zip(self.readers, self.seen, strict=True):
            wanted = len(mine) + self.looks
            for word, *what in reader.listen():
                mine += what if word == "saw" else []
                if len(mine) == wanted:
                    break

    def leave(self) -> None:
        for reader in self.readers:
            reader.kill()
            reader.bury()


def serve() -> None:
    """Load and use everything once, then answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as spare, contextlib.chdir(spare):
        write_table(Path("table.csv"))
        for command in COMMANDS:
            code, _, err = perform(command)
            assert code == 0, (command, err)
    verbs = {
        "run": run,
        "look": look,
        "leave": leave,
        "crowd": crowd,
        "overtake": overtake,
        "table": table,
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = verbs[request.pop("verb")](request)
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)  # there is nothing to tidy up, and torch would take its time


# In a test


class Nursery:
    """The process that forks the others; `wrap` is a command that starts it in surroundings of its
    own."""

    def __init__(self, wrap: Sequence[str] = ()):
        command = [*wrap, sys.executable, __file__]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, verb: str, at: Path, **given: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"verb": verb, "at": str(at), **given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the nursery ended with {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer

    def close(self) -> None:
        self.process.communicate()


if __name__ == "__main__":
    serve()
