"""The newcomer's way, as docs/campaign.md describes it, typed word for word in an empty folder.

Commands are the lines of `sh` blocks that begin with `allot`; `py` blocks are run; a `text` block is what the commands
before it print, but for numbers, and `...` for whatever lies between.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_documents import Block, blocks_of

from allotment.cli import main

GUIDE = Path(__file__).parent.parent / "docs" / "campaign.md"
MINE = """
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

def make(data, split):
    return TorchLearner(data, split, Recipe(steps=2))
"""


def type_in(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints, errors included."""
    words = shlex.split(command)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    assert words.pop(0) == "allot"
    result = CliRunner().invoke(main, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout + result.stderr


def plain(line: str) -> str:
    """A line without its numbers and the space that these take."""
    line = re.sub(r"[+-]?\d[\d.]*", "#", line)
    line = re.sub(r"# (second|minute|hour)s?", "# seconds", line)
    return re.sub(r"[-─ ]+", " ", line).strip()


def check_shown(shown: str, printed: str, place: str) -> None:
    """That what is shown is printed, in this order; nothing is left out but where it says so."""
    lines = [plain(line) for line in printed.splitlines() if plain(line)]
    at, anywhere = 0, True
    for line in filter(None, map(plain, shown.splitlines())):
        if line == "...":
            anywhere = True
            continue
        head, cut, _ = line.partition("...")
        found = [k for k in range(at, len(lines)) if (lines[k].startswith(head) if cut else lines[k] == line)]
        assert found, f"{place}: {line!r} is not in\n{printed}"
        assert anywhere or found[0] == at, f"{place}: before {line!r} comes {lines[at]!r}"
        at, anywhere = found[0] + 1, False


@pytest.mark.timeout(900)
def test_the_guide_leads_through_two_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    printed = ""
    typed: list[str] = []
    blocks = [block for block in blocks_of(GUIDE) if block.language in ("sh", "py", "text")]
    for number, block in enumerate(blocks):
        place = f"{GUIDE.name}:{block.line}"
        if block.language == "text":
            check_shown(block.text, printed, place)
        elif block.language == "py":
            exec(compile(block.text, place, "exec"), {})  # the project's own document
        else:
            commands = commands_of(block)
            printed = "".join(type_in(command, monkeypatch) for command in commands)
            typed += commands
            expected = blocks[number + 1].text if number + 1 < len(blocks) else ""
            assert ("error:" in printed) == ("error:" in expected), f"{place}: {printed}"
    words = {command.partition("allot ")[2].split()[0] for command in typed}
    assert words >= {"init", "check", "estimate", "plan", "order", "ingest", "status", "report"}
    assert (tmp_path / "second.csv").exists()
    assert (tmp_path / "report.html").read_text().startswith("<!")


def commands_of(block: Block) -> list[str]:
    """What a reader types, but for what fetches and installs the program."""
    joined = block.text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if re.match(r"(\w+=\S+ )?allot ", line)]


def test_next_always_names_a_command_that_is_there() -> None:
    shown = "".join(block.text for block in blocks_of(GUIDE) if block.language == "text")
    named = set(re.findall(r"Next: allot (\w+)", shown))
    assert named
    assert named <= set(main.commands)
