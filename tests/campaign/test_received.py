"""A folder that came from elsewhere: nothing that lies in it is run, and nothing in it steers the
terminal."""

from __future__ import annotations

import csv
import json
import os
import random
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import allotment
from allotment.cli import main
from allotment.ledger import lock
from allotment.ledger.store import Store

OTHERS = (
    "allotment", "numpy", "click", "rich", "torch", "PIL", "safetensors", "pyarrow", "pandas",
    "sitecustomize",
    "usercustomize",
)  # fmt: skip
TASKS = (
    "--targets size,look --cost size=1 --cost look=2 --budget 30 --have size=20 --have look=20"
    " --steps 2"
)
DRIVER = """
import sys
from allotment.runs.runners import processes
processes.START_METHOD = sys.argv.pop(1)
from allotment.cli import main
main()
"""
"""`allot` as it is installed: a file in a folder of its own"""


def write_table(path: Path) -> None:
    rng = random.Random(1)
    lines = ["id,width,age,size,look"]
    for number in range(80):
        width, age = rng.random(), rng.random()
        lines.append(
            f"r{number},{width:.3f},{age:.3f},{width - age:.3f},{'old' if age > 0.5 else 'new'}"
        )
    path.write_text("\n".join(lines) + "\n")


def set_traps(folder: Path, hits: Path) -> None:
    """A module for every name that Python or a package might ask for; it leaves its name where it
    is imported."""
    hits.mkdir(exist_ok=True)
    for name in {*sys.stdlib_module_names, *OTHERS}:
        (folder / f"{name}.py").write_text(f"open({str(hits / name)!r}, 'w')\n")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A place with a table, and `allot` in another folder."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "driver.py").write_text(DRIVER)
    write_table(tmp_path / "homes.csv")
    return tmp_path


def allot(home: Path, folder: Path, start: str, *args: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder; only absolute paths are in the environment, since others would be
    the user's own."""
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONSAFEPATH", "ALLOT_LEARNER")
    }
    env["PYTHONPATH"] = str(Path(allotment.__file__).parents[1])
    command = [sys.executable, str(home / "bin" / "driver.py"), start, *args]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=250)


def begin(home: Path) -> None:
    done = CliRunner().invoke(main, f"init {home}/camp --root {home}/homes.csv {TASKS}".split())
    assert done.exit_code == 0, done.output
    settings = home / "camp" / "campaign.toml"
    settings.write_text(settings.read_text().replace("seed = 0", "seed = 0\ntrainings = 8"))


@pytest.mark.parametrize("start", ["forkserver", pytest.param("spawn", marks=pytest.mark.long)])
def test_processes_that_train_run_nothing_from_the_folder_they_are_in(
    home: Path, start: str
) -> None:
    pytest.importorskip("torch")
    begin(home)
    set_traps(home / "camp", home / "hits")
    done = allot(home, home / "camp", start, "estimate", ".", "--workers", "2")
    assert (done.returncode, sorted(path.name for path in (home / "hits").iterdir())) == (
        0,
        [],
    ), done.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_no_command_runs_anything_from_the_folder_it_is_in(home: Path, start: str) -> None:
    pytest.importorskip("torch")
    begin(home)
    folder = home / "camp"
    set_traps(folder, home / "hits")
    steps = [
        f"init new --root ../homes.csv {TASKS}", "check .", "status .", "estimate . --workers 2",
        "estimate . --workers 1", "plan .", "order . -o order.csv", "ingest . --oracle",
        "estimate . --workers 0",
        "evaluate . --repeats 2 --workers 2", "report .", "status . --json",
        "pack . -o ../camp.zip",
        "unpack ../camp.zip copy", "data table ../homes.csv --target look", "example", "--help",
    ]  # fmt: skip
    for step in steps:
        done = allot(home, folder, start, *step.split())
        assert done.returncode == 0, (step, done.stderr)
        assert sorted(path.name for path in (home / "hits").iterdir()) == [], step


def test_traps_are_traps(home: Path) -> None:
    """Python started as others start it falls into them."""
    set_traps(home, home / "hits")
    subprocess.run([sys.executable, "-c", "import threading, torch"], cwd=home, capture_output=True)
    assert {"threading", "torch"} & {path.name for path in (home / "hits").iterdir()}


# --- what it says on a terminal ---

EVIL = "\x1b[31mred\r\x07\u202eleft\nerror: none\x9b2J\u2028"


def say(*args: object) -> str:
    """All that a command prints, which must be plain text whatever it read; it may refuse, but not
    break."""
    done = CliRunner().invoke(main, [str(arg) for arg in args])
    assert done.exception is None or isinstance(done.exception, SystemExit), (args, done.exc_info)
    assert done.output.replace("\n", "").isprintable(), (args, done.output)
    return done.output


def write_evil(path: Path) -> list[str]:
    """A table with codes in whatever is text: its head, its ids, its classes and its words."""
    rng = random.Random(1)
    ids = [f"{EVIL}{number}" for number in range(60)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", f"wid{EVIL}th", "word", "size", "look"])
        for number, each in enumerate(ids):
            look = "" if number % 3 else (f"old{EVIL}", "new")[number % 2]
            size = "" if number % 2 else f"{rng.random():.3f}"
            writer.writerow(
                [each, f"{rng.random():.3f}", f"a{EVIL}" if number % 5 else "b", size, look]
            )
    return ids


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a campaign on such a table."""
    monkeypatch.chdir(tmp_path)
    write_evil(tmp_path / "table.csv")
    prices = ("--cost", "size=1", "--cost", "look=2", "--budget", "30", "--method", "neutral")
    told = say("init", "camp", "--root", "table.csv", "--targets", "size,look", *prices)
    assert "campaign.toml is written" in told
    return tmp_path / "camp"


def test_codes_in_a_table_do_not_reach_the_terminal(evil: Path) -> None:
    for command in ("status", "check", "plan", "order", "report", "pack"):
        assert "error" not in say(command, evil).replace(r"\nerror: none", "")
    say("unpack", "camp.zip", "copy")
    say("status", "copy")
    say("data", "table", "table.csv", "--target", "look")
    for broken in ("id", f"wid{EVIL}th", "gone"):
        text = Path("table.csv").read_bytes().decode()
        Path("table.csv").write_bytes(text.replace("id,", f"{broken}{EVIL},", 1).encode())
        say("status", evil)
        say("data", "table", "table.csv", "--target", f"look{EVIL}", "--group", EVIL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("budget = 30", f"budget = {json.dumps(EVIL)}"),
        ("budget = 30", f"budget = 30\n{json.dumps(EVIL)} = 1"),
        ('method = "neutral"', f"method = {json.dumps(EVIL)}"),
        ('name = "table"', f"name = {json.dumps(EVIL)}"),
        ('name = "table"', f'name = "table"\n{json.dumps(EVIL)} = 1'),
        ('root = "../table.csv"', f"root = {json.dumps('../' + EVIL)}"),
        (
            'root = "../table.csv"',
            f'root = "../table.csv"\ndelimiter = {json.dumps(EVIL)}\ngroup = {json.dumps(EVIL)}',
        ),
        ('root = "../table.csv"', f'root = "../table.csv"\ndrop = [{json.dumps(EVIL)}]'),
        ('id = "id"', f"id = {json.dumps(EVIL)}"),
        ('name = "size"', f"name = {json.dumps('size' + EVIL)}"),
        ('name = "size"', f'name = "size"\nkind = {json.dumps(EVIL)}'),
        ('name = "size"', f'name = "size"\nmetric = {json.dumps(EVIL)}'),
        ('name = "look"', f'name = "look"\nclasses = ["new", {json.dumps(EVIL)}]'),
        ("cost = 1", f"cost = {json.dumps(EVIL)}"),
        ("seed = 0", f"seed = 0\nconflicts = {json.dumps(EVIL)}"),
        ("seed = 0", "seed = 0\n\x1b[31m"),
        ("[training]", f"[training]\nweights = {json.dumps(EVIL)}"),
        ('network = "usual"', f"network = {json.dumps(EVIL)}"),
    ],
)
def test_codes_in_settings_do_not_reach_the_terminal(evil: Path, old: str, new: str) -> None:
    settings = evil / "campaign.toml"
    text = settings.read_text()
    if old not in text:
        pytest.fail(f"{old} is not in the settings:\n{text}")
    settings.write_text(text.replace(old, new, 1))
    for command in ("status", "check", "plan", "order", "report"):
        say(command, evil)


def test_codes_in_a_delivery_do_not_reach_the_terminal(evil: Path) -> None:
    say("order", evil, "-o", "order.csv")
    with open("order.csv", newline="", encoding="utf-8-sig") as file:
        head, *items = csv.reader(file)
    labels = [f"old{EVIL}", "new", EVIL, "0.5", f"0{EVIL}", "", f"{EVIL}old"]
    filled = [[*item[:-1], labels[number % len(labels)]] for number, item in enumerate(items)]
    odd = [
        ["1", EVIL, EVIL, "", "", "x"],
        ["1", "look", EVIL, "", "", "new"],
        ["1", "size", f"{EVIL}0", "", "", "7"],
    ]
    again = [[*item[:-1], "new" if item[1] == "look" else "0.7"] for item in items]
    for number, table in enumerate(
        ([head, *filled, *odd], [head, *again], [[EVIL, "x"], *items], [head, [EVIL]])
    ):
        path = Path(f"back{EVIL.replace('/', '')}{number}.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(table)
        say("ingest", evil, path)
        say("ingest", evil, path, "--task", EVIL, "--id", EVIL)
        for command in ("status", "check", "plan", "report"):
            say(command, evil)
    masks = Path("masks")
    masks.mkdir()
    (masks / f"{EVIL}.png").write_bytes(b"\x89PNG")
    (masks / EVIL).mkdir()
    say("ingest", evil, masks, "--task", "look")
    with zipfile.ZipFile("masks.zip", "w") as archive:
        for name in (f"{EVIL}.png", f"../{EVIL}", f"{EVIL}/a.png"):
            archive.writestr(name, b"x")
    say("ingest", evil, "masks.zip")
    say("ingest", evil, f"missing{EVIL}.csv")
    Path("lines.jsonl").write_text(
        json.dumps({"task": EVIL, "instance": EVIL, "label": EVIL, EVIL: [EVIL]}) + EVIL
    )
    say("ingest", evil, "lines.jsonl")


def test_codes_in_a_lock_do_not_reach_the_terminal(evil: Path) -> None:
    with Store.open(evil, write=True):
        for host in (EVIL, "x" * 3000, socket.gethostname()):
            said = {"pid": os.getpid(), "host": host, "command": EVIL * 20, "since": EVIL}
            (evil / "campaign.lock").write_text(json.dumps(said))
            for command in ("order", "plan", "status"):
                told = say(command, evil)
                assert len(told) < 4000
                assert command == "status" or f"process {os.getpid()}" in told
        for pid in (-1, 0, 10**30):  # `kill -1` ends everything
            (evil / "campaign.lock").write_text(json.dumps(said | {"pid": pid}))
            assert "kill" not in say("order", evil)
    (evil / "campaign.lock").unlink()
    os.mkfifo(evil / "campaign.lock")
    # and does not wait for somebody to write into it
    assert lock.read_holder(evil / lock.LOCK_FILE) is None


def test_codes_in_an_archive_do_not_reach_the_terminal(evil: Path) -> None:
    say("pack", evil, "-o", "camp.zip")
    with zipfile.ZipFile("camp.zip") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    changes: list[dict[str, bytes]] = [
        {EVIL: b"x"},
        {f"labels/{EVIL}.png": b"x"},
        {f"../{EVIL}": b"x"},
    ]
    changes += [{name: EVIL.encode()} for name in parts]
    changes += [{name: data[:-9] + json.dumps(EVIL).encode()} for name, data in parts.items()]
    for number, change in enumerate(changes):
        with zipfile.ZipFile("evil.zip", "w") as archive:
            for name, data in (parts | change).items():
                archive.writestr(name, data)
        say("unpack", "evil.zip", f"copy{number}")
    say("unpack", f"{EVIL}.zip", f"copy{EVIL}")
    say("pack", evil, "-o", f"here{EVIL}.zip")
    say("unpack", f"here{EVIL}.zip", f"copy{EVIL}")
    say("status", f"copy{EVIL}")
