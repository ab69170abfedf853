"""A campaign survives kills, full disks and company: it ends with the same bytes as if nothing had
happened."""

from __future__ import annotations

import ast
import io
import json
import pickle
import pickletools
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.survival import (
    COMMANDS,
    ESTIMATE,
    HUMAN,
    INIT,
    LABELS,
    NAME,
    OWN,
    STATUS,
    Nursery,
    write_table,
)

import allotment
from allotment.campaign.jobs import JOBS_OF_LONG_RUNS, TRAININGS_PER_JOB
from allotment.ledger.store import Store

KILLED = -signal.SIGKILL
MEASURING = [number for number, command in enumerate(COMMANDS) if command[0] == "estimate"]
WORKING = {number for number, command in enumerate(COMMANDS) if command[0] not in HUMAN}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(scope="module")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same campaign when nothing happens: what it holds in the end, and how far each command
    was on the way."""
    return finish(nursery, prepare(tmp_path_factory.mktemp("undisturbed")))


def prepare(at: Path) -> Path:
    at.mkdir(exist_ok=True)
    write_table(at / "table.csv")
    return at


def finish(nursery: Nursery, at: Path, first: int = 0, **request: Any) -> dict[str, Any]:
    """All commands that are left, none of which fails, and what the campaign holds then."""
    life = nursery.ask("run", at, first=first, **request)
    assert life["end"] == 0
    assert count_done(life, first) == len(COMMANDS)
    return life | {"holds": nursery.ask("look", at)}


def count_done(life: dict[str, Any], first: int) -> int:
    """How many commands of the list are done; the last one may have been refused or killed."""
    for each in life["done"]:
        if each["code"] == 0:
            first = each["number"] + 1
        # a killed init had done its work
        elif each["number"] == 0 and "is a campaign already" in each["err"]:
            first = 1
        else:
            assert each is life["done"][-1]
    return first


def check_beginning(found: dict[str, Any], before: dict[str, Any], whole: dict[str, Any]) -> None:
    """All that was there is there still, and all that is there is what an undisturbed campaign
    comes to."""
    for name, rows in found["tables"].items():
        assert rows == whole["tables"][name][: len(rows)]
    for name, rows in before["tables"].items():
        assert len(found["tables"].get(name, [])) >= len(rows)
    for name, digest in found["files"].items():
        assert name == "campaign.toml" or digest == whole["files"][name]
    assert set(before["files"]) <= set(found["files"])


def choose_moment(rng: random.Random, whole: dict[str, Any], first: int) -> dict[str, Any]:
    """Any event of one of the next commands, most of all of an estimate: exactly before it, or some
    moment later."""
    ends = [0, *(each["ticks"] for each in whole["done"])]
    near = range(first, min(first + 3, len(COMMANDS)))
    (number,) = rng.choices(
        near, [2 if each in MEASURING else 1 if each in WORKING else 0.2 for each in near]
    )
    return {
        "ticks": rng.randint(ends[number] + 1, ends[number + 1]) - ends[first],
        "loosely": rng.random() < 0.5,
    }


def disturb(
    nursery: Nursery, at: Path, whole: dict[str, Any], kills: int, rng: random.Random
) -> dict[str, Any]:
    """A campaign that is killed again and again, at most three times in one command, and at last
    left alone."""
    first, trained = 0, 0
    where: Counter[int] = Counter()
    before: dict[str, Any] = {"tables": {}, "files": {}}
    while where.total() < kills and first < len(COMMANDS):
        given = (
            {"commands": COMMANDS[: first + 1]}
            if where[first] == 3
            else choose_moment(rng, whole, first)
        )
        life = nursery.ask("run", at, first=first, **given)
        assert life["end"] in (0, KILLED)
        first, trained = count_done(life, first), trained + life["trained"]
        if life["end"] == 0:
            assert first == life["done"][-1]["number"] + 1, life["done"][-1]
        elif first < len(COMMANDS):  # it may come too late to stop anything
            where[first] += 1
        found = nursery.ask("look", at)
        check_beginning(found, before, whole["holds"])
        before = found
    life = finish(nursery, at, first) if first < len(COMMANDS) else {"trained": 0}
    holds = nursery.ask("look", at)
    assert holds == whole["holds"]
    return {"where": where, "redone": trained + life["trained"] - whole["trained"]}


def kill_many(
    nursery: Nursery, at: Path, whole: dict[str, Any], kills: int, seed: int
) -> tuple[Counter[int], int]:
    """So many kills over several campaigns; how often each command was the one, and how many
    trainings came twice."""
    rng, where, redone, campaigns = random.Random(seed), Counter[int](), 0, 0
    while where.total() < kills:
        campaigns += 1
        found = disturb(nursery, prepare(at / f"{campaigns}"), whole, kills - where.total(), rng)
        where += found["where"]
        redone += found["redone"]
        shutil.rmtree(at / f"{campaigns}")
    print(f"{where.total()} kills in {campaigns} campaigns, {redone} trainings again")
    print(
        "kills by command:",
        [f"{COMMANDS[number][0]} ({number}): {where[number]}" for number in sorted(where)],
    )
    assert redone <= TRAININGS_PER_JOB * sum(where[number] for number in MEASURING)
    return where, redone


@pytest.mark.long
def test_killed_at_a_dozen_moments_it_ends_with_the_same_bytes(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    kill_many(nursery, tmp_path, undisturbed, 12, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_at_80_moments_it_ends_with_the_same_bytes(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    where, redone = kill_many(nursery, tmp_path, undisturbed, 80, seed=10)
    assert set(where) >= WORKING
    if not redone:  # whether one comes in the middle of trainings is chance: about every 40th does
        redone = kill_many(nursery, tmp_path, undisturbed, 120, seed=11)[1]
    assert redone


@pytest.mark.long
@pytest.mark.timeout(900)
def test_processes_that_load_everything_anew_come_to_the_same_bytes(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    at = prepare(tmp_path)
    for number, command in enumerate(COMMANDS):
        if command[0] in HUMAN:
            done = nursery.ask("run", at, first=number, commands=COMMANDS[: number + 1])
            assert count_done(done, number) == number + 1
        else:
            subprocess.run(
                [sys.executable, "-m", "allotment.cli", *command],
                cwd=at,
                check=True,
                capture_output=True,
            )
    assert nursery.ask("look", at) == undisturbed["holds"]


# Before every event


def sweep(
    nursery: Nursery,
    tmp_path: Path,
    number: int,
    stride: int,
    closely: bool,
    commands: list[list[str]] = COMMANDS,
) -> None:
    """One command, killed before each thing that it does to the disk, and then repeated."""
    base, whole, at = prepare(tmp_path / "base"), tmp_path / "whole", tmp_path / "killed"
    given = {"first": number, "commands": commands[: number + 1], "closely": closely}
    nursery.ask("run", base, commands=commands[:number])
    shutil.copytree(base, whole)
    events = nursery.ask("run", whole, **given)["ticks"]
    wanted = nursery.ask("look", whole)
    for event in range(1, events + 1, stride):
        shutil.copytree(base, at)
        assert nursery.ask("run", at, ticks=event, **given)["end"] == KILLED
        again = nursery.ask("run", at, **given)
        assert count_done(again, number) == number + 1, (event, again["done"])
        Store.open(at / NAME, write=True).close()  # the next who writes, whoever it is
        assert nursery.ask("look", at) == wanted, event
        shutil.rmtree(at)
    print(
        f"{' '.join(commands[number][:2])}: killed before {len(range(0, events, stride))} of"
        f" {events} events"
    )


@pytest.mark.long
def test_an_ingest_killed_before_some_of_its_events(nursery: Nursery, tmp_path: Path) -> None:
    sweep(nursery, tmp_path, 6, stride=9, closely=False)


@pytest.mark.parametrize("number", [4, 6])
def test_labels_corrected_and_taken_away_are_whole_or_as_before(
    nursery: Nursery, tmp_path: Path, number: int
) -> None:
    sweep(nursery, tmp_path, number, stride=15, closely=False, commands=LABELS)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [4, 5, 6])
def test_the_same_at_more_of_their_events(nursery: Nursery, tmp_path: Path, number: int) -> None:
    sweep(nursery, tmp_path, number, stride=3, closely=True, commands=LABELS)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("number", "stride", "closely"),
    [(0, 5, True), (2, 19, False), (3, 11, False), (4, 9, True), (6, 5, True)],
)
def test_a_command_killed_before_many_of_its_events(
    nursery: Nursery, tmp_path: Path, number: int, stride: int, closely: bool
) -> None:
    sweep(nursery, tmp_path, number, stride, closely)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("method", ["taba", "taba-pooled"])
def test_the_papers_estimate_goes_on_where_it_was_killed(
    nursery: Nursery, tmp_path: Path, method: str
) -> None:
    rng, kept = random.Random(method), []
    commands = [[*INIT, "--method", method, "--steps", "30"], ["edit", "trainings", "30"], ESTIMATE]
    whole = nursery.ask("run", prepare(tmp_path / "whole"), commands=commands)
    holds, begun = nursery.ask("look", tmp_path / "whole"), whole["done"][1]["ticks"]
    for number in range(6):
        at = prepare(tmp_path / f"{number}")
        assert (
            nursery.ask("run", at, commands=commands, ticks=rng.randint(begun + 1, whole["ticks"]))[
                "end"
            ]
            == KILLED
        )
        kept.append(len(nursery.ask("look", at)["tables"]["results"]))
        again = nursery.ask("run", at, commands=commands, first=2)
        assert [each["code"] for each in again["done"]] == [0]
        assert nursery.ask("look", at) == holds
    jobs = len(holds["tables"]["results"])
    print(f"{method}: {jobs} jobs, kept {kept}")
    assert jobs > 8
    assert len({*kept} - {0, jobs}) > 2


# What a kill costs


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_kill_costs_one_job_at_most_and_less_than_a_twentieth_of_a_long_estimate(
    nursery: Nursery, tmp_path: Path
) -> None:
    rng, trainings, redone = random.Random(4), 2 * JOBS_OF_LONG_RUNS, []
    commands = [INIT, ["edit", "trainings", str(trainings)], ESTIMATE]
    given = {"commands": commands, "long": 0}  # so that a run counts as long that is not
    whole = nursery.ask("run", prepare(tmp_path / "whole"), **given)
    holds, begun = nursery.ask("look", tmp_path / "whole"), whole["done"][1]["ticks"]
    assert whole["trained"] == trainings
    # with the prints of the rows, the fingerprint of the data and the kind of CPU
    assert len(holds["tables"]["results"]) == JOBS_OF_LONG_RUNS + 3
    for number in range(8):
        at = prepare(tmp_path / f"{number}")
        killed = nursery.ask("run", at, **given, ticks=rng.randint(begun + 1, whole["ticks"]))
        assert killed["end"] == KILLED
        first = count_done(killed, 0)
        resumed = nursery.ask("run", at, first=first, **given)
        assert count_done(resumed, first) == len(commands)
        assert nursery.ask("look", at) == holds
        redone.append(killed["trained"] + resumed["trained"] - trainings)
    print(
        f"trainings done twice, of {trainings}: {redone},"
        f" {sum(redone) / len(redone) / trainings:.1%} on average"
    )
    assert any(redone)
    assert max(redone) < 0.05 * trainings


# Full disks


def squeeze(
    nursery: Nursery, at: Path, whole: dict[str, Any], limits: Sequence[int], room: bool
) -> Counter[str]:
    """Each command with more and more space until it gets through; how often each was refused."""
    refused: Counter[str] = Counter()
    before: dict[str, Any] = {"tables": {}, "files": {}}
    for number, command in enumerate(COMMANDS):
        for limit in (*limits, None):
            if room:
                nursery.ask("leave", at, room=limit)
            given = {} if room or limit is None else {"limit": limit}
            life = nursery.ask("run", at, first=number, commands=COMMANDS[: number + 1], **given)
            assert life["end"] == 0
            found = nursery.ask("look", at)
            check_beginning(found, before, whole["holds"])
            before = found
            if count_done(life, number) > number:
                break
            (done,) = life["done"]
            assert done["code"] == (OWN if command[0] in HUMAN else 2), done
            check_told(done["err"])
            refused[command[0]] += 1
            if number > 1:
                (seen,) = nursery.ask("run", at, commands=[STATUS], **given)["done"]
                if seen["code"]:  # SQLite wants a little space even for reading
                    check_told(seen["err"])
        else:
            raise AssertionError(f"{command} fails with all the space there is: {done}")
    nursery.ask("leave", at)
    assert nursery.ask("look", at) == whole["holds"]
    return refused


def check_told(err: str) -> None:
    """In a line or two that say what is wrong and what to do."""
    said = [line for line in err.splitlines() if line.startswith("error: ")]
    assert said, err
    assert "Traceback" not in err
    first, *others = said
    assert any(word in first for word in ("full", "limit", "space", "too large")), said
    # room enough for an order, but not for its sheet
    assert all("is placed all the same; to write its sheet" in line for line in others), said


@pytest.mark.long
def test_files_that_may_not_grow_are_said_and_it_goes_on_when_they_may(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    refused = squeeze(nursery, prepare(tmp_path), undisturbed, (100, 60_000), room=False)
    print("refused:", dict(refused))
    assert {"init", "estimate", "plan", "order", "ingest"} <= set(refused)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "limits", [(1, 4096, 20_000, 70_000, 120_000, 160_000), (30_000, 50_000, 90_000, 140_000)]
)
def test_files_that_may_not_grow_at_any_size(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path, limits: tuple[int, ...]
) -> None:
    refused = squeeze(nursery, prepare(tmp_path), undisturbed, limits, room=False)
    print("refused:", dict(refused))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Nursery, Path]]:
    """A nursery with a disk of a few megabytes, which nobody else sees."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode
    ):
        pytest.skip("no mounts of one's own here")
    at = tmp_path / "disk"
    at.mkdir()
    script = f'mount -t tmpfs -o size=4m none {at} || exit 99; exec "$@"'
    made = Nursery(["unshare", "-rm", "sh", "-c", script, "sh"])
    yield made, at
    made.close()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "room", [(0, 4096, 16_384, 65_536, 131_072), (8192, 32_768, 49_152, 98_304, 200_000)]
)
def test_a_full_disk_is_said_and_it_goes_on_when_there_is_room(
    small_disk: tuple[Nursery, Path], undisturbed: dict[str, Any], room: tuple[int, ...]
) -> None:
    nursery, at = small_disk
    nursery.ask("table", at)
    refused = squeeze(nursery, at, undisturbed, room, room=True)
    print("refused:", dict(refused))
    assert {"init", "estimate", "order", "ingest"} <= set(refused)


# Company


def gather(nursery: Nursery, tmp_path: Path, first: int, last: int, looks: int) -> None:
    """A process at work on some of the commands, a second that wants to estimate, eight that look
    on."""
    alone, at = prepare(tmp_path / "alone"), prepare(tmp_path / "crowd")
    whole = nursery.ask("run", alone, commands=COMMANDS[:last], statuses=True)
    statuses = [json.loads(each["status"]) for each in whole["done"]]
    tables = nursery.ask("look", alone)["tables"]
    nursery.ask("run", at, commands=COMMANDS[:first])
    found = nursery.ask("crowd", at, first=first, commands=COMMANDS[:last], readers=8, looks=looks)
    assert [each["code"] for each in found["worker"]["done"]] == [0] * (last - first)
    assert nursery.ask("look", at)["tables"] == tables
    (second,) = found["second"]["done"]
    assert second["code"] == 2
    assert re.search(
        rf"process {found['pid']} on \S+ \(allot estimate camp\), since 20\d\d-\S+ writes",
        second["err"],
    )
    assert found["second"]["trained"] == 0
    assert len(found["seen"]) == 8
    for seen in found["seen"]:
        assert [each["code"] for each in seen] == [0] * len(seen)
        told = [without_run(each["status"]) for each in seen]
        check_passing([statuses.index(each, first - 1) for each in told], first - 1, last - 1)
        for name, rows in tables.items():
            assert all(each["tables"][name] == rows[: len(each["tables"][name])] for each in seen)
            check_passing([len(each["tables"][name]) for each in seen], 0, len(rows))


def without_run(status: str) -> dict[str, Any]:
    """A status as it would be if nobody were at work just then."""
    found: dict[str, Any] = json.loads(status)
    found.pop("under_way", None)
    return found


def check_overtaken(nursery: Nursery, tmp_path: Path, number: int, stride: int) -> None:
    """Whoever looks while a command is done from start to end sees what was before it or what is
    after it."""
    base, whole, at = prepare(tmp_path / "base"), tmp_path / "whole", tmp_path / "overtaken"
    given = {"first": number, "commands": COMMANDS[: number + 1]}
    nursery.ask("run", base, commands=COMMANDS[:number])
    shutil.copytree(base, whole)
    (before,) = (life := nursery.ask("run", whole, commands=[STATUS]))["done"]
    nursery.ask("run", whole, **given)
    (after,) = nursery.ask("run", whole, commands=[STATUS])["done"]
    assert before["out"] != after["out"]
    told = []
    for event in range(1, life["ticks"] + 1, stride):
        shutil.copytree(base, at)
        found = nursery.ask("overtake", at, ticks=event, **given)
        assert [each["code"] for each in (*found["done"]["done"], *found["seen"]["done"])] == [
            0,
            0,
        ], found
        told.append([before["out"], after["out"]].index(found["seen"]["done"][0]["out"]))
        shutil.rmtree(at)
    print(f"overtaken before {len(told)} of {life['ticks']} events: {told}")
    assert told == sorted(told, reverse=True)  # from some event on the reader has made up its mind
    assert told[0] == 1
    assert told[-1] == 0


@pytest.mark.long
def test_a_reader_that_is_overtaken_sees_one_moment(nursery: Nursery, tmp_path: Path) -> None:
    check_overtaken(nursery, tmp_path, 6, stride=3)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [4, 6])
def test_a_reader_that_is_overtaken_at_any_event_sees_one_moment(
    nursery: Nursery, tmp_path: Path, number: int
) -> None:
    check_overtaken(nursery, tmp_path, number, stride=1)


def check_passing(places: list[int], first: int, last: int) -> None:
    """What comes later is never behind what came before, and the end is seen."""
    assert places == sorted(places)
    assert first <= places[0]
    assert places[-1] == last


def test_one_estimates_the_other_hears_who_and_eight_look_on(
    nursery: Nursery, tmp_path: Path
) -> None:
    gather(nursery, tmp_path, 2, 3, looks=1)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_eight_look_on_at_a_whole_campaign(nursery: Nursery, tmp_path: Path) -> None:
    gather(nursery, tmp_path, 2, len(COMMANDS), looks=3)


# Workers


def with_workers(count: int) -> list[list[str]]:
    return [
        [*command[:-1], str(count)] if command[0] == "estimate" else command for command in COMMANDS
    ]


def test_two_workers_give_the_same_bytes_as_one(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    at = prepare(tmp_path)
    life = nursery.ask("run", at, commands=with_workers(2)[:3])
    assert count_done(life, 0) == 3
    assert life["trained"] == 0  # others did it
    tables = finish(nursery, at, 3)["holds"]["tables"]
    assert tables == undisturbed["holds"]["tables"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_with_two_workers_it_ends_with_the_same_bytes(
    nursery: Nursery, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    rng, at, commands = random.Random(6), prepare(tmp_path), with_workers(2)
    first = count_done(nursery.ask("run", at, commands=commands[:2]), 0)
    before = nursery.ask("look", at)
    for _ in range(4):
        life = nursery.ask(
            "run", at, first=first, commands=commands, ticks=rng.randint(40, 140), loosely=True
        )
        assert life["end"] == KILLED
        first, found = count_done(life, first), nursery.ask("look", at)
        check_beginning(found, before, undisturbed["holds"])
        before = found
    finish(nursery, at, first, commands=commands)
    assert nursery.ask("look", at) == undisturbed["holds"]


# No pickle

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
]
PICTURES[0] += ["--have", "segmentation=4", "--have", "classes=4", "--budget", "60"]
LAST = [["report", NAME], ["pack", NAME]]
PLAIN = {
    ".toml",
    ".csv",
    ".sqlite",
    ".sqlite-shm",
    ".sqlite-wal",
    ".lock",
    ".html",
    ".zip",
    ".png",
    ".json",
}
PLAIN |= {".jsonl"}
"""endings of all that a campaign writes; of each it is known what is in it"""
UNSAFE = {
    "pickle",
    "_pickle",
    "cPickle",
    "dill",
    "shelve",
    "cloudpickle",
    "joblib",
    "marshal",
    "jsonpickle",
}
UNSAFE_CALLS = {
    "torch.save",
    "torch.jit.load",
    "torch.hub.load",
    "pd.read_pickle",
    "pandas.read_pickle",
    "pl.read_ipc",
}
NEEDED = {"torch.load": ("weights_only", True)} | {
    f"{module}.{verb}": ("allow_pickle", False)
    for module in ("np", "numpy")
    for verb in ("load", "save", "savez", "savez_compressed")
}
"""what must be said at these calls"""


def find_pickles(name: str, data: bytes) -> list[str]:
    """Where in a file there is a pickle: at any place in it, in an archive, in an array, in a cell
    of a store."""
    found = [
        f"{name} at {match.start()}"
        for match in re.finditer(rb"\x80[\x02-\x05]", data)
        if is_pickle(data, match.start())
    ]
    if is_pickle(data, 0) and not found:  # older forms have no mark
        found.append(f"{name} as a whole")
    if re.match(rb"\x93NUMPY.{2,4}\{'descr': [^,]*O", data, re.DOTALL):
        found.append(f"{name}, an array of objects")
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                found += find_pickles(f"{name}: {member}", archive.read(member))
    return found


def is_pickle(data: bytes, start: int) -> bool:
    """Whether it can be read as one from there to its end."""
    try:
        return sum(1 for _ in pickletools.genops(data[start:])) > 2
    except Exception:  # it raises whatever it likes
        return False


def find_in_store(path: Path) -> list[str]:
    """Cells that hold bytes at all, or text that is a pickle."""
    found = []
    with sqlite3.connect(path) as store:
        for (table,) in store.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            for row in store.execute(f"SELECT * FROM {table}"):
                found += [f"bytes in {table}" for cell in row if isinstance(cell, bytes)]
                texts = [cell.encode() for cell in row if isinstance(cell, str)]
                found += [
                    where for text in texts for where in find_pickles(f"{path.name}: {table}", text)
                ]
    store.close()
    return found


def find_in_folder(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found += find_pickles(path.name, path.read_bytes())
            found += find_in_store(path) if path.suffix == ".sqlite" else []
    return found


@pytest.mark.parametrize("commands", [COMMANDS, PICTURES], ids=["table", "pictures"])
def test_no_file_of_a_campaign_holds_a_pickle(
    nursery: Nursery, tmp_path: Path, commands: list[list[str]]
) -> None:
    at = prepare(tmp_path)
    first = nursery.ask("run", at, commands=commands, poison=True)
    assert count_done(first, 0) == len(commands)
    last = nursery.ask("run", at, commands=LAST, poison=True)
    assert count_done(last, 0) == len(LAST)
    assert all(Path(path).is_relative_to(at) for path in (*first["wrote"], *last["wrote"]))
    written = [path for path in at.rglob("*") if path.is_file()]
    assert {path.suffix for path in written} <= PLAIN
    with zipfile.ZipFile(at / f"{NAME}.zip") as archive:
        names = archive.namelist()
    assert {Path(name).suffix for name in names} <= PLAIN
    assert any(name.startswith("labels/") for name in names) == (commands is PICTURES)
    assert find_in_folder(at) == []


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_would_be_found(tmp_path: Path, protocol: int) -> None:
    evil = pickle.dumps({"weights": [1.5, 2.5], "kind": Path}, protocol)
    folder = tmp_path / "camp"
    folder.mkdir()
    (folder / "plain.json").write_text('{"a": [1, 2.5, null, "x"]}')
    (folder / "order.csv").write_text("instance,label\n1,0.5\n")
    np.save(folder / "plain.npy", np.arange(5))
    with sqlite3.connect(folder / "a.sqlite") as store:
        store.execute("CREATE TABLE results (body)")
        store.execute("INSERT INTO results VALUES ('{}')")
    assert find_in_folder(folder) == []
    with store:
        store.execute("INSERT INTO results VALUES (?)", (evil,))
    store.close()
    assert "bytes in results" in find_in_folder(folder)
    (folder / "a.sqlite").unlink()
    np.save(folder / "objects.npy", np.array([{}, Path()], dtype=object), allow_pickle=True)
    assert find_in_folder(folder)
    (folder / "objects.npy").unlink()
    with zipfile.ZipFile(folder / "state.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", evil)
    assert find_in_folder(folder) == [
        f"state.zip: archive/data.pkl {'as a whole' if protocol < 2 else 'at 0'}"
    ]
    (folder / "state.zip").unlink()
    (folder / "curve.npy").write_bytes(evil if protocol < 2 else b"some header" + evil)
    assert find_in_folder(folder)


def judge_source(text: str) -> list[str]:
    """Imports and calls by which a module could read or write a pickle."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import | ast.ImportFrom)
            else []
        )
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += (
            [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
        )
        found += [
            f"line {node.lineno}: {name}" for name in names if name.partition(".")[0] in UNSAFE
        ]
        if isinstance(node, ast.Call):
            called, said = (
                ast.unparse(node.func),
                {each.arg: ast.unparse(each.value) for each in node.keywords},
            )
            key, value = NEEDED.get(called, ("", None))
            if (
                called in UNSAFE_CALLS
                or called.endswith(".to_pickle")
                or (key and said.get(key) != str(value))
            ):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
            if (
                said.get("allow_pickle", "False") != "False"
                or said.get("weights_only", "True") != "True"
            ):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_no_module_reads_or_writes_pickles() -> None:
    modules = sorted(Path(allotment.__file__).parent.rglob("*.py"))
    assert len(modules) > 50
    found = {str(path): judge_source(path.read_text(encoding="utf-8")) for path in modules}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads as parse",
        "import a, shelve",
        "import dill.source",
        "importlib.import_module('pickle')",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, weights_only=safe)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "numpy.save(path, x)",
        "frame.to_pickle(path)",
        "torch.save(x, path)",
        "read(path, allow_pickle=choice)",
    ],
)
def test_a_module_that_did_would_be_found(text: str) -> None:
    assert judge_source(f"def f(path, x):\n    {text}")
    assert not judge_source(
        "torch.load(path, map_location='cpu', weights_only=True); np.load(p, allow_pickle=False)"
    )
