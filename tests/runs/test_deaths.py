"""Workers that die of a signal or for want of memory: what a user reads, that the rest is done,
that it goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from allotment.cli import main
from allotment.ledger.store import Store

OWN = """
import ctypes, os, signal
from pathlib import Path
import torch
from allotment.learners.learner import train
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

FATE = Path({fate!r})

class Mortal(TorchLearner):
    def start(self, labels, seed):
        how, _, when = FATE.read_text().partition(" ") if FATE.exists() else ("", "", "")
        if how and str(seed) == when:
            if how == "SIGSEGV":
                ctypes.string_at(0)
            elif how == "SIGKILL":
                os.kill(os.getpid(), signal.SIGKILL)
            torch.empty(1 << 50)
        return super().start(labels, seed)

    def stack(self, runs):
        return [train(self, labels, seed) for labels, seed in runs]

def make(data, split):
    return Mortal(data, split, Recipe(steps=2, batch_size=4))
"""
"""a learner whose training with a certain seed dies as a file says"""
WORDS = {
    "SIGSEGV": (
        r"its worker died twice, of a crash in native code \(SIGSEGV\): try"
        r" ONEDNN_MAX_CPU_ISA=SSE41 in the "
        r"environment, .* try fewer workers \(--workers 1\)"
    ),
    "SIGKILL": (
        r"its worker died twice, killed from outside \(SIGKILL\), mostly for want of memory: try"
        r" fewer workers "
        r"\(--workers 1\) or smaller batches \(batch_size under \[training\]\)"
    ),
    "memory": (
        r"can't allocate memory.*; there is not memory enough: try fewer workers \(--workers 1\)"
    ),
}
COMMANDS = ("estimate", "evaluate", "demo")
TABLE = "x,z,a,b\n" + "".join(f"{n},{n * 7 % 11},{n % 5},{n * 3 % 7}\n" for n in range(80))
LAST = {"estimate": 9, "evaluate": 1001, "demo": 1001}
"""the seed of a training before which others are done; those below 8 are also looked at untrained,
by the first job"""


def allot(*args: str) -> Result:
    result = CliRunner().invoke(main, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def _mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN.format(fate=str(tmp_path / "fate")))
    Path("table.csv").write_text(TABLE)
    monkeypatch.setenv("ALLOT_LEARNER", "own.py:make")


def begin(command: str) -> list[str]:
    """A campaign for the command, and how it is typed."""
    if command == "demo":
        return ["demo", "--quick"]
    prices = [
        "--cost",
        "a=1",
        "--cost",
        "b=2",
        "--have",
        "a=30",
        "--have",
        "b=30",
        "--budget",
        "20",
    ]
    kinds = ["--kind", "a=classification", "--kind", "b=classification"]
    table = ["--root", "table.csv", "--targets", "a,b"]
    assert allot("init", "camp", *table, *prices, *kinds).exit_code == 0
    settings = Path("camp/campaign.toml")
    settings.write_text("trainings = 10\n" + settings.read_text())
    if command == "evaluate":
        settings.write_text(
            settings.read_text().replace('"response"', '"neutral"').replace("trainings = 10\n", "")
        )
        return ["evaluate", "camp", "--repeats", "2"]
    return ["estimate", "camp"]


def count_done(folder: str) -> int:
    with Store.open(Path(folder), write=False) as store:
        return sum(len(store.results(kind)) for kind in ("response", "evaluation"))


def check(command: str, workers: int, how: str) -> None:
    typed = [*begin(command), "--workers", str(workers)]
    Path("fate").write_text(f"{how} {LAST[command]}")
    died = allot(*typed)
    assert died.exit_code == 2
    said = died.stderr.splitlines()
    named = [line for line in said if re.match(r"error: job '(response|evaluation)' \{", line)]
    assert named
    assert all(re.search(WORDS[how], line) for line in named), died.stderr
    assert not re.search(r"[0-9a-f]{64}", died.stderr)
    assert said[-1].startswith("What is done is kept; to go on from there: allot " + command)
    assert "Traceback" not in died.output
    folder = "allot-demo" if command == "demo" else "camp"
    kept = count_done(folder)
    assert kept > 0
    Path("fate").unlink()
    again = allot(*typed)
    assert again.exit_code == 0, again.output
    assert count_done(folder) > kept


@pytest.mark.usefixtures("_mortal")
def test_a_worker_that_dies_is_named_and_the_next_start_goes_on() -> None:
    check("estimate", 2, "SIGKILL")


@pytest.mark.long
@pytest.mark.usefixtures("_mortal")
@pytest.mark.parametrize("how", WORDS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_survives_every_death(command: str, workers: int, how: str) -> None:
    check(command, workers, how)


@pytest.mark.usefixtures("_mortal")
def test_timing_that_dies_is_told_like_any_training() -> None:
    typed = [*begin("estimate"), "--workers", "1"]
    Path("fate").write_text("SIGSEGV 0")
    died = allot(*typed)
    assert died.exit_code == 2
    assert re.search(r"error: job 'price' .*crash in native code \(SIGSEGV\)", died.stderr)
    Path("fate").unlink()
    assert allot(*typed).exit_code == 0


@pytest.mark.usefixtures("_mortal")
def test_a_campaign_carried_to_another_cpu_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from allotment.campaign import campaign

    typed = [*begin("estimate"), "--workers", "0"]
    for cpu, trainings, notes in (("old", 10, 0), ("new", 11, 1), ("new", 12, 0), ("old", 13, 0)):
        monkeypatch.setattr(campaign, "describe_cpu", lambda cpu=cpu: cpu)
        settings = Path("camp/campaign.toml")
        settings.write_text(
            re.sub(r"trainings = \d+", f"trainings = {trainings}", settings.read_text())
        )
        done = allot(*typed)
        assert done.exit_code == 0
        assert done.stderr.count("another kind of CPU") == notes
    assert json.loads(allot("status", "camp", "--json").stdout)["next"].startswith("allot plan")
