"""The newcomer's way, as docs/campaign.md describes it, typed word for word in an empty folder.

Commands are the lines of `sh` blocks that begin with `allot`; `py` blocks are run; a `text` block
is what the commands before it print, but for numbers, and `...` for whatever lies between.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from socketserver import BaseServer
from typing import Any

import pytest
from click.testing import CliRunner, Result
from helpers.blocks import Block, blocks_of

from allotment.cli import main

GUIDE = Path(__file__).parents[2] / "docs" / "campaign.md"
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


def press_ctrl_c(*_: object, **__: object) -> None:
    """As somebody does who has seen enough of what `allot serve` shows."""
    raise KeyboardInterrupt


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
        found = [
            k
            for k in range(at, len(lines))
            if (lines[k].startswith(head) if cut else lines[k] == line)
        ]
        assert found, f"{place}: {line!r} is not in\n{printed}"
        assert anywhere or found[0] == at, f"{place}: before {line!r} comes {lines[at]!r}"
        at, anywhere = found[0] + 1, False


@pytest.mark.timeout(900)
@pytest.mark.long
def test_the_guide_leads_through_two_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(BaseServer, "serve_forever", press_ctrl_c)
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


# --- off the way ---


@pytest.fixture
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def write_table(
    path: str, head: str = "plot", name: Callable[[int], object] = lambda row: row, rows: int = 60
) -> None:
    """Homes: a third has a price, a quarter a style."""
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([head, "area", "age", "price", "style"])
        for row in range(rows):
            area, age = round(draw.uniform(40, 200), 1), round(draw.uniform(0, 80), 1)
            style = "old" if age > 40 else "new"
            table.writerow(
                [
                    name(row),
                    area,
                    age,
                    round(3 * area - age, 1) if row % 3 == 0 else "",
                    style if row % 4 == 0 else "",
                ]
            )


BEGIN = (
    "init camp --root homes.csv --targets price,style --cost price=3 --cost style=5 --budget 60"
    " --steps 3"
)


def run(command: str) -> Result:
    result = CliRunner().invoke(main, shlex.split(command))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.usefixtures("_empty")
@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("init camp", ["--root: is missing", "--targets: is missing", "--budget: is missing"]),
        (
            BEGIN.replace("homes.csv", "hmes.csv"),
            ["'hmes.csv': there is no such file; check the path"],
        ),
        (
            BEGIN.replace("style", "stile"),
            ["target 'stile': is not a column", "did you mean 'style'?"],
        ),
        (BEGIN.replace("--cost style=5", ""), ["task 'style': has no price; add --cost style=20"]),
        (BEGIN.replace("=5", ""), ["--cost 'style' is not NAME=VALUE, such as --cost style=3"]),
        (BEGIN.replace("60", "0"), ["--budget: 0 buys nothing; the cheapest is 'price', for 3"]),
        (BEGIN.replace("60", "2.99"), ["--budget: 2.99 buys nothing"]),
        (BEGIN.replace("60", "lots"), ["budget: 'lots' is not a number"]),
        (
            BEGIN.replace(" camp", " homes.csv"),
            ["homes.csv: is a file; a campaign is a folder of its own"],
        ),
        (BEGIN.replace(" camp", " homes.csv/in/it"), ["homes.csv: is a file"]),
        (f"{BEGIN} --have price=9", ["task 'style': has no --have", "--have style=50"]),
        (f"{BEGIN} --method respons", ["method: unknown 'respons'; did you mean 'response'?"]),
        (
            "init camp --data scenes --targets depht --budget 90",
            ["--targets depht: is not a task of scenes", "'depth'?"],
        ),
        ("status camp", ["'camp': is not a campaign", "allot init"]),
        ("demo homes.csv", ["homes.csv: is a file"]),
    ],
)
def test_a_wrong_beginning_is_explained_and_leaves_nothing(command: str, parts: list[str]) -> None:
    write_table("homes.csv")
    result = run(command)
    assert result.exit_code == 2, result.output
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())
    for part in parts:
        assert part in result.stderr
    assert os.listdir() == ["homes.csv"]


@pytest.mark.usefixtures("_empty")
def test_a_campaign_may_stand_where_folders_are_yet_to_be_made() -> None:
    write_table("homes.csv")
    assert run(BEGIN.replace(" camp", " a/b/camp")).exit_code == 0
    assert run("check a/b/camp").exit_code == 0


@pytest.mark.usefixtures("_empty")
def test_where_nothing_may_be_written_is_said_before_anything_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what the system says of the folder, since tests may run as somebody who may do
    everything."""
    write_table("homes.csv")
    os.mkdir("theirs")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "theirs")
    result = run(BEGIN.replace(" camp", " theirs/camp"))
    assert result.exit_code == 2
    assert "theirs: may not be written to; choose a folder that is yours" in result.stderr
    assert os.listdir("theirs") == []


@pytest.mark.usefixtures("_empty")
def test_steps_in_the_wrong_order_name_the_right_one() -> None:
    write_table("homes.csv")
    assert run(BEGIN).exit_code == 0
    for command in ("order camp", "plan camp"):
        assert "nothing is measured yet; type: allot estimate camp" in run(command).stderr
    for command, part in (
        ("ingest camp", "Give the FILE with the labels, or --oracle"),
        ("ingest camp order-1.csv", "order-1.csv: there is no such file; check the path"),
        ("ingest camp --oracle", "the data hold no labels but those at hand"),
        ("evaluate camp --repeats 3", "the data hold no labels but those at hand"),
        ("order camp --cancel 1", "order 1: there is no such order"),
        (BEGIN, "camp: is a campaign already; look at it with: allot status camp"),
        (
            "report camp -o no/where.html",
            "'no/where.html': there is no such folder; check the path",
        ),
    ):
        result = run(command)
        assert result.exit_code == 2, command
        assert part in result.stderr, command


@pytest.mark.usefixtures("_empty")
def test_money_that_is_gone_is_said_with_what_to_do() -> None:
    write_table("homes.csv")
    assert run(f"{BEGIN} --method neutral".replace("60", "3")).exit_code == 0
    assert run("order camp --all").exit_code == 0
    for command in ("plan camp", "order camp --more"):
        result = run(command)
        assert result.exit_code == 1
        assert (
            "0 left; that buys nothing more: raise the budget in camp/campaign.toml, or look back"
            in result.stderr
        )


# --- names of rows ---


@pytest.mark.usefixtures("_empty")
@pytest.mark.parametrize("head", ["id", "ID", " Id "])
def test_a_column_called_id_names_the_rows(head: str) -> None:
    """Unasked, and said; then orders and deliveries go by it, and so does the table itself when it
    comes back."""
    write_table("homes.csv", head, lambda row: f"h-{row:03d}")
    result = run(f"{BEGIN} --method neutral")
    assert (
        f"Note: column {head!r} names the rows, in orders and deliveries; it is not learned from."
        in result.stdout
    )
    assert run("order camp --all").exit_code == 0
    with open("camp/order-1.csv", newline="") as file:
        sheet = list(csv.DictReader(file))
    assert sheet
    assert all(re.fullmatch(r"h-\d{3}", row["instance"]) for row in sheet)
    assert head not in sheet[0]
    with open("homes.csv", newline="") as file:
        table = list(csv.DictReader(file))
    wanted = {(row["task"], row["instance"]) for row in sheet}
    for row in table:
        for task, value in (("price", "7.5"), ("style", "old")):
            if (task, row[head]) in wanted:
                row[task] = value
    with open("filled.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    status = json.loads(run("ingest camp filled.csv --json").stdout)["status"]
    assert {task["name"]: task["came"] for task in status["tasks"]} == dict(
        Counter(task for task, _ in wanted)
    )
    assert all(task["open"] == 0 for task in status["tasks"])


@pytest.mark.usefixtures("_empty")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        (lambda row: row // 2, "rows 1 and 2 are both '0'"),
        (lambda row: row or "", "row 1 has none"),
    ],
)
def test_a_column_called_id_that_names_no_rows_is_left_with_a_note(
    name: Callable[[int], object], why: str
) -> None:
    write_table("homes.csv", "Id", name)
    result = run(f"{BEGIN} --method neutral")
    assert result.exit_code == 0
    assert (
        f"Note: column 'Id' does not name the rows, since {why}; their numbers do. Perhaps"
        " --drop Id" in result.stdout
    )
    assert run("order camp --all").exit_code == 0
    with open("camp/order-1.csv", newline="") as file:
        assert {row["instance"] for row in csv.DictReader(file)} <= {
            str(number) for number in range(1, 61)
        }
    dropped = run(f"{BEGIN} --method neutral --drop Id".replace(" camp", " other"))
    assert "Note" not in dropped.stdout


@pytest.mark.usefixtures("_empty")
def test_what_is_said_about_names_counts() -> None:
    write_table("homes.csv", "id", lambda row: f"h{row}")
    assert "Note" not in run(f"{BEGIN} --id area").stdout
    assert (
        run(
            "init b --root homes.csv --targets price,id --cost price=1 --cost id=1 --budget 9"
        ).exit_code
        == 0
    )
    assert "\nid = " not in Path("b/campaign.toml").read_text()


@pytest.mark.usefixtures("_empty")
def test_the_wrong_delivery_is_recognised() -> None:
    write_table("homes.csv", "id", lambda row: f"h{row}")
    write_table("other.csv", "id", lambda row: f"x{row}")
    write_table("nameless.csv", "plot")
    assert run(f"{BEGIN} --method neutral").exit_code == 0
    assert run("order camp --all").exit_code == 0
    result = run("ingest camp other.csv")
    assert result.exit_code == 2
    assert (
        "None of its instances is known here, where they are called 'h0', 'h1', 'h10' and so on."
        in result.stdout
    )
    result = run("ingest camp nameless.csv")
    assert result.exit_code == 2
    assert "nothing is called 'instance' or 'id', to name the instance" in result.stderr
    assert "Give its --id" in result.stderr
    # h0 has a style; nobody knows whether h1 is on order
    Path("more.csv").write_text("id,style\nh1,old\nh0,new\n")
    with open("camp/order-1.csv", newline="") as file:
        asked = {(row["task"], row["instance"]) for row in csv.DictReader(file)}
    result = run("ingest camp more.csv")
    assert result.exit_code == 0
    assert ("Labels that no order asked for: 1." in result.stdout) == (("style", "h1") not in asked)
    assert "Where the data have a label already: 1." in result.stdout


# --- what a plan is expected to bring ---


def gains_by_hand(estimates: dict[str, Any], counts: dict[str, int]) -> list[float]:
    """D_T of each draw, from the formula in the documents, a number at a time."""
    found = []
    for worths, shapes in zip(estimates["worths"], estimates["shapes"], strict=True):
        total = 0.0
        for row in worths:
            for worth, shape, have, task in zip(
                row, shapes, estimates["have"], estimates["tasks"], strict=True
            ):
                total += worth * (have**-shape - (have + counts[task]) ** -shape)
        found.append(total / len(worths))
    return found


@pytest.mark.usefixtures("_empty")
def test_the_report_sets_the_plan_beside_every_baseline() -> None:
    write_table("homes.csv")
    assert run(BEGIN).exit_code == 0
    settings = Path("camp/campaign.toml")
    settings.write_text(settings.read_text().replace("seed = 0", "seed = 0\ntrainings = 8"))
    estimates = json.loads(run("estimate camp --workers 0 --json").stdout)["estimates"]
    # from the estimates at hand, and from what is on record when the money is gone
    for spent in (False, True):
        values = json.loads(run("report camp --json").stdout)
        assert values["transfer"]["unit"] == values["outlook"]["unit"] == "%"
        own, *others = values["comparison"]
        assert {row["name"] for row in others} >= {"equal budget", "equal images", "neutral"}
        assert sum("outlook" in row for row in others) >= 3
        for row in others:
            if row["counts"] == own["counts"]:  # there is nothing to expect
                assert "outlook" not in row
                continue
            pairs = zip(
                *(gains_by_hand(estimates, each["counts"]) for each in (own, row)), strict=True
            )
            more = sorted(a - b for a, b in pairs)
            look = row["outlook"]
            assert look["mean"] == pytest.approx(statistics.fmean(more))
            assert look["chance"] == pytest.approx(sum(each > 0 for each in more) / len(more))
            ends = [more[round((len(more) - 1) * share)] for share in (0.05, 0.95)]
            assert [look["low"], look["high"]] == pytest.approx(
                ends, abs=0.02 * (more[-1] - more[0])
            )
            if row["name"] == "equal budget":
                assert look["mean"] == pytest.approx(values["outlook"]["mean"])
        if not spent:
            assert run("order camp --all").exit_code == 0
    expected = json.loads(run("status camp --json").stdout)["expected"]
    assert expected == ""


@pytest.mark.usefixtures("_empty")
def test_a_method_that_counts_in_labels_says_so() -> None:
    write_table("homes.csv")
    assert run(f"{BEGIN} --method taba").exit_code == 0
    assert run("estimate camp --workers 0").exit_code == 0
    shown = run("status camp").stdout
    assert re.search(r"[-+][\d.e+-]+ labels over equal budget", shown)
    assert "in labels of each task's own; this method does not say how much score that is" in shown
    assert "% of score" not in shown
    values = json.loads(run("report camp --json").stdout)
    assert values["outlook"]["unit"] == "labels"
    assert {row["outlook"]["unit"] for row in values["comparison"] if "outlook" in row} == {
        "labels"
    }
    assert {curve["unit"] for curve in values["curves"]} == {"gain in labels of its own"}
    cells = values["transfer"]["cells"]
    assert values["transfer"]["unit"] == "labels"
    assert [cells[at][at] for at in range(2)] == [1, 1]
