"""Documentation that lies fails the build.

What a block of README.md or docs/*.md means:

- `python` runs, in order, in one namespace for each document; what it prints is the `text` block
  that comes next, or nothing.
- `console` holds commands after `$ allot`, each followed by what it prints on a terminal of 100
  columns.
- `toml` is a problem or a part of one. A first line such as `# problem.toml` saves it under that
  name, where the commands and the Python below find it; a name that begins with `wrong` is for a
  file that must be refused.
- `py` is Python for data that only the reader has: what it imports must be there, the rest is only
  compiled.
- `sh` is for what a reader types elsewhere: it is not run.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import pty
import re
import subprocess
import sys
import termios
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.blocks import Block, blocks_of

import allotment as al
from allotment.cli import main
from allotment.data.source import SOURCES
from allotment.gains import FAMILIES
from allotment.problem import TASK_KEYS
from allotment.problem_file import TOP_KEYS, parse_problem

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*GUIDES, *sorted(path for path in ROOT.glob("*.md") if path not in GUIDES)]
LANGUAGES = {"python", "py", "text", "console", "toml", "sh", "bibtex"}
COLUMNS = 100

each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def prose_of(page: Path) -> str:
    return re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def stripped(text: str) -> str:
    """The text without spaces at ends of lines, empty lines at its end, digits that differ between
    processors."""
    text = re.sub(r"\d+\.\d{10,}", lambda number: f"{float(number[0]):.10g}", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()


# --- what the guides show is what happens ---


@each_guide
def test_what_is_shown_is_what_happens(
    guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(guide)
    namespace: dict[str, Any] = {"__name__": guide.stem}
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        place = f"{guide.name}:{block.line}"
        if block.language == "toml":
            check_toml(block, tmp_path, place)
        elif block.language == "python":
            shown = after.text if after and after.language == "text" else ""
            assert stripped(run_python(block, guide, namespace)) == stripped(shown), place
        elif block.language == "console":
            for command, shown in commands_of(block):
                assert stripped(run_on_terminal(command, tmp_path)) == stripped(shown), (
                    f"{place}: {command}"
                )


def check_toml(block: Block, folder: Path, place: str) -> None:
    """A problem, or a part of one that is a problem once a budget and a task are added."""
    named = re.match(r"# (\S+\.toml)\n", block.text)
    if named:
        (folder / named[1]).write_text(block.text, encoding="utf-8")
    if named and named[1].startswith("wrong"):
        with pytest.raises(al.InputError):
            parse_problem(block.text)
        return
    text, given = block.text, tomllib.loads(block.text)
    if "task" not in given:
        lacking = [
            line for key, line in (("name", 'name = "x"'), ("cost", "cost = 1")) if key not in given
        ]
        text = "\n".join(["[[task]]", *lacking, text])
    if "budget" not in given:
        text = f"budget = 1000\n{text}"
    try:
        parse_problem(text)
    except al.InputError as error:
        pytest.fail(f"{place}: {error}")


def run_python(block: Block, guide: Path, namespace: dict[str, Any]) -> str:
    text = "\n" * (block.line - 1) + block.text
    code = compile(text, str(guide), "exec", dont_inherit=True)  # as the reader runs it
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)  # the project's own documents
    return printed.getvalue()


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a block with what is shown below it."""
    assert block.text.startswith("$ "), block.text
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        assert command.startswith("allot "), command
        yield command, shown


def run_on_terminal(command: str, folder: Path) -> str:
    """What a command prints on a terminal, errors included."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    keep = {
        key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")
    }
    script = f'allot() {{ "{sys.executable}" -m allotment.cli "$@"; }}; {command}'
    process = subprocess.Popen(
        ["sh", "-c", script],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=keep | {"NO_COLOR": "1", "PYTHONUTF8": "1"},
    )
    os.close(theirs)
    pieces = []
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    os.close(ours)
    process.wait(timeout=60)
    return b"".join(pieces).decode().replace("\r\n", "\n")


@each_guide
def test_every_block_says_what_it_is(guide: Path) -> None:
    blocks = blocks_of(guide)
    assert (
        len(blocks) == len(re.findall("^```", guide.read_text(encoding="utf-8"), re.MULTILINE)) / 2
    )
    assert {block.language for block in blocks} <= LANGUAGES


@each_guide
def test_python_for_the_readers_own_data_is_python(guide: Path) -> None:
    for block in blocks_of(guide):
        if block.language == "py":
            compile(block.text, guide.name, "exec")
            exec(
                "\n".join(
                    line for line in block.text.splitlines() if line.startswith("from allotment")
                ),
                {},
            )


# --- links ---


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = page.parent / name if name else page
        assert other.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors_of(other), f"{page.name}: {target}"


def anchors_of(page: Path) -> set[str]:
    """The headings as a link names them."""
    heads = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


# --- nothing is left out ---


def test_every_name_is_explained() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in GUIDES)
    assert [name for name in al.__all__ if not re.search(rf"\bal\.{name}\b", text)] == []


def test_every_command_and_option_is_explained() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in GUIDES)
    assert [name for name in main.commands if f"allot {name}" not in text] == []
    options = {
        option
        for command in main.commands.values()
        for each in command.params
        for option in each.opts
    }
    missing = [
        option for option in sorted(options) if option.startswith("--") and option not in text
    ]
    assert missing == []


def test_every_key_of_a_file_is_explained() -> None:
    text = (ROOT / "docs" / "problem-file.md").read_text(encoding="utf-8")
    keys = {*TOP_KEYS, *TASK_KEYS, "gain", "name", "limit", "use", "after"}
    for name, cls in FAMILIES.items():
        keys |= {name, "curve", *cls.keys()}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


def test_every_key_of_data_is_explained() -> None:
    text = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    for name in SOURCES.own:
        missing = [key.name for key in SOURCES.load(name).keys if f"`{key.name}`" not in text]
        assert f"`{name}`" in text
        assert missing == []


# --- examples in the code itself ---


MODULES = [
    "allotment",
    *(module.name for module in pkgutil.walk_packages(al.__path__, "allotment.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
