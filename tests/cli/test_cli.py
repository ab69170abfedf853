"""The command: every command in its formats, exit codes, errors, and what a terminal shows."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import allotment as al
from allotment.cli import main
from allotment.formatting import amounts, number, numbers, percent
from allotment.problem import TASK_KEYS
from allotment.problem_file import parse_problem
from allotment.terminal import TextColumn, fit, shorten
from allotment.toml import LARGEST_TOML

ALLOT = [sys.executable, "-m", "allotment.cli"]
TASKONOMY = {
    "segmentation": 361,
    "normals": 4496,
    "depth": 18123,
    "keypoints": 42319,
    "edges": 17965,
}
NO_GAINS = """
budget = "100.50"
[[task]]
name = "[red]x[/red]"
cost = "0.35"
have = 10
most = 20
[[task]]
name = "=HYPERLINK(1)"
cost = "12.50"
"""


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def allot(*args: object, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def fine(*args: object, stdin: str | bytes | None = None) -> str:
    """What a command prints when all goes well, which is nothing on stderr."""
    result = allot(*args, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refused(code: int, *args: object, stdin: str | bytes | None = None) -> list[str]:
    """The errors of a command, without their prefix; nothing else is printed."""
    result = allot(*args, stdin=stdin)
    assert (result.exit_code, result.stdout) == (code, "")
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("error: ") for line in lines)
    return [line.removeprefix("error: ") for line in lines]


def table(text: str, *heads: str) -> list[list[str]]:
    """The rows below the line of heads, cut at two spaces or more."""
    lines = text.splitlines()
    start = next(
        at for at, line in enumerate(lines) if re.split(r"\s{2,}", line.strip()) == list(heads)
    )
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[start + 2 :]]
    return rows[: next((at for at, row in enumerate(rows) if len(row) != len(heads)), len(rows))]


def sheet(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    path = tmp_path / "voc.toml"
    path.write_text(fine("example"), encoding="utf-8")
    return path


@pytest.fixture
def taskonomy(tmp_path: Path) -> Path:
    path = tmp_path / "taskonomy.toml"
    path.write_text(fine("example", "taskonomy"), encoding="utf-8")
    return path


@pytest.fixture
def no_gains(tmp_path: Path) -> Path:
    path = tmp_path / "no gains.toml"
    path.write_text(NO_GAINS, encoding="utf-8")
    return path


def many_tasks(count: int) -> str:
    task = (
        '[[task]]\nname = "t{0}"\ncost = {1}\ngain = {{ curve = "tabulated", values = [0, {1}] }}\n'
    )
    return f"budget = {count}\n" + "".join(task.format(index, index + 1) for index in range(count))


# --- plan ---


def test_plan_for_people(voc: Path) -> None:
    shown = fine("plan", voc)
    assert table(shown, "task", "price", "have", "buy", "money", "share", "gain") == [
        ["cls", "1", "300", "2920", "2920", "46.3 %", "1069.14"],
        ["seg", "20", "300", "169", "3380", "53.7 %", "269.42"],
    ]
    assert "Spent 6300 of 6300 for a value of 1338.56, the most that these limits allow." in shown
    assert "The next unit of money is worth 0.0610869." in shown
    assert "Unspent" not in shown
    assert table(
        shown.replace("to  ", "to "), "task", "buy", "1 % range", "price", "bought up to"
    ) == [
        ["cls", "2920", "2366 to 3580", "1", "28"],
        ["seg", "169", "136 to 197", "20", "683"],
    ]
    assert "What one might do instead with the same 6300" in shown
    assert table(shown, "plan", "cls", "seg", "value", "of best") == [
        ["this plan", "2920", "169", "1338.56", "100.0 %"],
        ["equal budget", "3160", "157", "1336.60", "99.9 %"],
        ["neutral", "3460", "142", "1329.55", "99.3 %"],
        ["all on cls", "6300", "0", "1127.93", "84.3 %"],
        ["equal images", "300", "300", "694.93", "51.9 %"],
        ["all on seg", "0", "315", "414.03", "30.9 %"],
    ]
    last = "This plan is worth 0.1 % more than equal budget and 92.6 % more than equal images."
    assert shown.endswith(f"\n{last}\n")


def test_plan_as_json_reads_back(voc: Path) -> None:
    plain = json.loads(fine("plan", voc, "--json"))
    document = al.read_problem(voc)
    assert document.gains is not None
    assert al.Plan.from_dict(plain) == al.allocate(document.problem, document.gains)
    assert plain["counts"] == {"cls": 2920, "seg": 169}
    assert (plain["spent"], plain["unspent"], plain["why_unspent"], plain["gap"]) == (
        "6300",
        "0",
        [],
        0,
    )
    assert plain["value"] == pytest.approx(1338.564845606)
    assert "note" not in plain
    seg = plain["tasks"][1]
    assert (seg["task"], seg["price"], seg["buy"], seg["money"]) == ("seg", "20", 169, "3380")
    assert (seg["range_low"], seg["range_high"]) == (136, 197)
    assert seg["bought_up_to"] == pytest.approx(683, rel=1e-4)
    shares = {row["name"]: row["of_best"] for row in plain["comparison"]}
    assert shares["plan"] == 1
    assert shares["equal budget"] == pytest.approx(0.998536, abs=1e-6)


def test_plan_as_csv(taskonomy: Path) -> None:
    rows = sheet(fine("plan", taskonomy, "--csv", "--no-ranges"))
    assert {row["task"]: int(row["buy"]) for row in rows} == TASKONOMY
    assert [row["money"] for row in rows] == ["3610", "13488", "54369", "84638", "53895"]
    assert "range_low" not in rows[0]
    assert math.fsum(float(row["gain"]) for row in rows) == pytest.approx(49170.526044)


def test_plan_with_ranges_as_csv(voc: Path) -> None:
    rows = sheet(fine("plan", voc, "--csv"))
    assert [(row["range_low"], row["range_high"]) for row in rows] == [
        ("2366", "3580"),
        ("136", "197"),
    ]


def test_plan_with_another_budget(voc: Path) -> None:
    assert json.loads(fine("plan", voc, "--budget", "9300", "--json"))["counts"] == {
        "cls": 3300,
        "seg": 300,
    }


def test_plan_counts_implied_labels_on_request(voc: Path) -> None:
    counts = json.loads(fine("plan", voc, "--count-implied", "--no-ranges", "--json"))["counts"]
    document = al.read_problem(voc)
    assert document.gains is not None
    problem = al.Problem(document.problem.tasks, 6300, count_implied=True)
    assert counts == al.allocate(problem, document.gains).counts != {"cls": 2920, "seg": 169}


def test_unspent_money_is_explained() -> None:
    gain = 'gain = { curve = "logarithmic", worth = 1, have = 5 }'
    text = f'budget = 100\n[[task]]\nname = "a"\ncost = 7\npool = 4\n{gain}'
    shown = fine("plan", "-", stdin=text)
    assert "Spent 28 of 100" in shown
    assert "Unspent: 72, because\n  a: pool of 4 reached\n" in shown
    assert json.loads(fine("plan", "-", "--json", stdin=text))["why_unspent"] == [
        "a: pool of 4 reached"
    ]


def test_a_plan_that_is_not_proved_best_says_so(voc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = al.allocate
    monkeypatch.setattr(al, "allocate", lambda *args: replace(allocate(*args), gap=13.385))
    shown = fine("plan", voc, "--no-ranges")
    assert "It is not proved best: another plan could be worth up to 13.385 (1.0 %) more." in shown
    assert "the most that these limits allow" not in shown
    assert "up to 13.385 more" in allot("plan", voc, "--csv", "--no-ranges").stderr
    assert json.loads(fine("plan", voc, "--json", "--no-ranges"))["gap"] == 13.385


def test_columns_for_weights_and_fees_only_where_there_are_any(voc: Path) -> None:
    text = (
        voc.read_text(encoding="utf-8")
        .replace("#weight = 2 ", "weight = 2 ")
        .replace("#fee = 50 ", "fee = 50 ")
    )
    heads = ("task", "weight", "price", "fee", "have", "buy", "money", "share", "gain")
    cls, seg = table(fine("plan", "-", "--no-ranges", stdin=text), *heads)
    assert (cls[:5], seg[:5]) == (["cls", "2", "1", "50", "300"], ["seg", "1", "20", "0", "300"])
    assert int(cls[6]) == int(cls[5]) + 50


# --- no gains ---


def test_without_gains_the_plan_is_neutral_and_says_so(no_gains: Path) -> None:
    shown = fine("plan", no_gains)
    assert shown.startswith(
        "Note: The file gives no gains, so this is the neutral plan: every task is taken"
    )
    assert "[task.gain]" in shown.splitlines()[0]
    rows = table(shown, "task", "price", "have", "buy", "money", "share", "gain")
    problem = al.read_problem(no_gains).problem
    counts = al.allocate(problem, al.neutral_gains(problem)).counts
    assert {row[0]: int(row[3]) for row in rows} == counts
    assert "\nneutral" not in shown  # it would stand beside itself
    assert shown.splitlines()[-1].startswith("If every task is worth the same, this plan is worth")


@pytest.mark.parametrize(
    "args",
    [("plan",), ("frontier",), ("score", "=HYPERLINK(1)=3"), ("cheapest", "--target", "0.1")],
    ids=lambda a: a[0],
)
def test_no_command_is_silent_about_missing_gains(args: tuple[str, ...], no_gains: Path) -> None:
    command, *rest = args
    assert fine(command, no_gains, *rest).startswith("Note: The file gives no gains")
    plain = json.loads(fine(command, no_gains, *rest, "--json"))
    assert plain["neutral"] is True
    assert plain["note"].startswith("The file gives no gains")
    result = allot(command, no_gains, *rest, "--csv")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: The file gives no gains")
    assert "note" not in result.stdout


@pytest.mark.parametrize("args", [("plan",), ("cheapest", "--target", "0.1")], ids=lambda a: a[0])
def test_a_neutral_plan_as_json_reads_back(args: tuple[str, ...], no_gains: Path) -> None:
    command, *rest = args
    plain = json.loads(fine(command, no_gains, *rest, "--json"))
    problem = al.read_problem(no_gains).problem
    gains = al.neutral_gains(problem)
    again = al.Plan.from_dict(plain)
    assert again == (
        al.allocate(problem, gains) if command == "plan" else al.cheapest(problem, gains, 0.1)
    )
    # the curves themselves, not only a plan that happens to be equal: 10 labels at hand, exponent
    # 0.4
    assert again.gains["[red]x[/red]"](7) == pytest.approx(10**-0.4 - 17**-0.4)


def test_gains_of_the_file_are_not_called_neutral(voc: Path) -> None:
    for args in (
        ("plan", voc),
        ("frontier", voc),
        ("score", voc, "seg=1"),
        ("cheapest", voc, "--target", 9),
    ):
        assert not {"neutral", "note"} & set(json.loads(fine(*args, "--json")))


# --- frontier ---


def test_frontier_for_people(voc: Path) -> None:
    rows = table(fine("frontier", voc), "budget", "value", "of last", "cls", "seg")
    assert len(rows) == 20
    assert [row[0] for row in rows] == [str(315 * step) for step in range(1, 21)]
    assert rows[0] == ["315", "305.47", "22.8 %", "315", "0"]
    assert rows[-1] == ["6300", "1338.56", "100.0 %", "2920", "169"]
    assert (
        len(
            table(
                fine("frontier", voc, "--points", "7"), "budget", "value", "of last", "cls", "seg"
            )
        )
        == 7
    )


def test_frontier_as_csv_has_every_budget(voc: Path) -> None:
    rows = sheet(fine("frontier", voc, "--csv"))
    assert len(rows) == 6301
    assert rows[3000]["budget"] == "3000"
    assert (rows[3000]["cls"], rows[3000]["seg"]) == ("2480", "26")
    assert len(sheet(fine("frontier", voc, "--csv", "--points", "3"))) == 3


def test_frontier_as_json(voc: Path) -> None:
    plain = json.loads(fine("frontier", voc, "--json"))
    assert len(plain["budgets"]) == len(plain["values"]) == len(plain["counts"]["seg"]) == 6301
    assert plain["every_budget"] is True
    few = json.loads(fine("frontier", voc, "--json", "--points", "2"))
    assert (few["budgets"], few["counts"]) == (
        [3150, 6300],
        {"cls": [2510, 2920], "seg": [32, 169]},
    )


def test_frontier_budgets_in_cents_are_exact() -> None:
    gain = 'gain = { curve = "tabulated", values = [0, 2, 3, 4] }'
    text = f'budget = "0.3"\n[[task]]\nname = "a"\ncost = "0.1"\n{gain}'
    assert (
        fine("frontier", "-", "--csv", stdin=text)
        == "budget,value,a\n0.0,0.0,0\n0.1,2.0,1\n0.2,3.0,2\n0.3,4.0,3\n"
    )
    assert [
        row[0]
        for row in table(fine("frontier", "-", stdin=text), "budget", "value", "of last", "a")
    ] == [
        "0.0",
        "0.1",
        "0.2",
        "0.3",
    ]


# --- score ---


def test_score_of_the_best_plan(voc: Path) -> None:
    shown = fine("score", voc, "cls=2920", "seg=169")
    assert table(shown, "plan", "cls", "seg", "spent", "value", "of best")[:2] == [
        ["best", "2920", "169", "6300", "1338.56", "100.0 %"],
        ["yours", "2920", "169", "6300", "1338.56", "100.0 %"],
    ]
    assert shown.endswith("\nYour plan is worth as much as the best one.\n")


def test_score_of_another_plan(voc: Path) -> None:
    shown = fine("score", voc, "seg=100")
    assert ["yours", "0", "100", "2000", "175.61", "13.1 %"] in table(
        shown, "plan", "cls", "seg", "spent", "value", "of best"
    )
    assert "Not named, so none of it is bought: cls." in shown
    assert "Your plan is worth 86.9 % less than the best one." in shown


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_score_of_a_plan_that_breaks_limits(voc: Path, form: str) -> None:
    result = allot("score", voc, "cls=11000", "seg=1", *([] if form == "table" else [f"--{form}"]))
    assert result.exit_code == 1
    broken = ["pool of cls: 11000 is above 10282", "budget: 11020 is above 6300"]
    if form == "json":
        plain = json.loads(result.stdout)
        assert plain["yours"]["broken"] == broken
        assert [row["broken"] for row in plain["comparison"] if row["name"] == "yours"] == [broken]
    elif form == "csv":
        rows = {row["plan"]: row for row in sheet(result.stdout)}
        assert rows["yours"]["broken"] == "; ".join(broken)
        assert (rows["best"]["broken"], rows["best"]["seg"], rows["yours"]["cls"]) == (
            "",
            "169",
            "11000",
        )
    else:
        assert all(f"yours breaks {limit}\n" in result.stdout for limit in broken)
        assert "Your plan breaks 2 limits, so it cannot be bought like this." in result.stdout


def test_score_names_every_mistake(voc: Path) -> None:
    assert refused(2, "score", voc, "cls=1", "cls=2", "sge=3", "seg", "seg=1.5") == [
        "count of 'cls': is given twice",
        "'seg' is not TASK=COUNT, such as cls=2920",
        "counts: no task 'sge'; did you mean 'seg'?",
        "count of 'seg': '1.5' is not a whole number",
    ]


# --- cheapest ---


def test_cheapest(voc: Path) -> None:
    shown = fine("cheapest", voc, "--target", "1000")
    assert table(shown, "task", "price", "have", "buy", "money", "share", "gain") == [
        ["cls", "1", "300", "2162", "2162", "100.0 %", "1000.08"],
        ["seg", "20", "300", "0", "0", "0.0 %", "0.00"],
    ]
    assert "It takes 2162 to reach a value of 1000.08.\nThe budget of 6300 leaves 4138.\n" in shown
    assert "The budget of 2000 is 162 short of it." in fine(
        "cheapest", voc, "--target", "1000", "--budget", "2000"
    )
    assert "That is all of the budget." in fine(
        "cheapest", voc, "--target", "1000", "--budget", "2162"
    )


def test_cheapest_for_one_task(voc: Path) -> None:
    shown = fine("cheapest", voc, "--target", "200", "--task", "seg")
    assert "It takes 2340 to reach a gain of 200.556 for seg." in shown
    assert json.loads(fine("cheapest", voc, "--target", "200", "--task", "seg", "--json"))[
        "counts"
    ] == {
        "cls": 0,
        "seg": 117,
    }
    assert [
        row["buy"]
        for row in sheet(fine("cheapest", voc, "--target", "200", "--task", "seg", "--csv"))
    ] == [
        "0",
        "117",
    ]


# --- check, example, demo ---


def test_check_says_what_it_read(voc: Path, no_gains: Path) -> None:
    assert (
        fine("check", voc) == f"{voc} is fine: 2 tasks (cls, seg), budget 6300, geometric gains\n"
    )
    assert "no gains, so it will be planned as if all tasks were worth the same" in fine(
        "check", no_gains
    )


def test_check_lists_every_mistake_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        'budget = -5\ntypo = 3\n[[task]]\nname = "a"\ncost = 0\n[[task]]\nname = "b"\ncst = 4\n'
    )
    result = allot("check", path)
    assert (result.exit_code, result.stderr) == (2, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{path}:1: budget: -5 is not zero or more"
    assert f"{path}:5: task 'a': cost: 0 is not above zero" in lines
    assert f"{path}:8: task 'b': cst: unknown key; did you mean 'cost'?" in lines
    assert [line.split(":")[1] for line in lines] == ["1", "2", "5", "6", "8"]
    assert refused(2, "plan", path) == lines


def test_check_finds_limits_that_clash(tmp_path: Path) -> None:
    path = tmp_path / "clash.toml"
    path.write_text('budget = 6300\n[[task]]\nname = "seg"\ncost = 20\nleast = 400\n')
    result = allot("check", path)
    clash = (
        "least of seg costs 8000, budget is 6300: raise the budget to 8000 or lower least of seg"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (1, f"{path}: {clash}\n", "")
    assert refused(1, "plan", path) == [clash]


def test_check_finds_curves_that_do_not_add_up() -> None:
    part = '{ curve = "geometric", informativeness = %s, reduction = %s }'
    gain = f'{{ curve = "sum", parts = [{part % (1, 0.9)}, {part % (-1, 0.5)}] }}'
    text = f'budget = 10\n[[task]]\nname = "a"\ncost = 1\ngain = {gain}\n'
    result = allot("check", "-", stdin=text)
    assert result.exit_code == 2
    assert "not concave" in result.stdout
    assert "not concave" in refused(2, "plan", "-", stdin=text)[0]


@pytest.mark.parametrize(
    ("name", "counts"), [("voc", {"cls": 2920, "seg": 169}), ("taskonomy", TASKONOMY)]
)
def test_examples_give_the_published_plans(name: str, counts: dict[str, int]) -> None:
    document = parse_problem(fine("example", name))
    assert document.gains is not None
    assert al.allocate(document.problem, document.gains).counts == counts


def test_everything_that_the_example_offers_works() -> None:
    text = fine("example")
    switched_on = re.sub(r"(?m)^#(?=[a-z\[])", "", text)
    problem = parse_problem(switched_on).problem
    assert problem.count_implied
    assert problem.caps[0].name == "annotator hours"
    keys = {key for task in problem.tasks for key in task.to_dict()}
    assert keys == set(TASK_KEYS)
    curves = re.findall(r"gain = \{.*?\}", text)
    assert len(curves) == 3
    for curve in curves:
        assert parse_problem(f'budget = 1\n[[task]]\nname = "a"\ncost = 1\n{curve}').gains


def test_demo_shows_both_instances_and_what_to_do_next() -> None:
    shown = fine("demo", "--paper")
    heads = ("task", "price", "have", "buy", "money", "share", "gain")
    assert [row[3] for row in table(shown, *heads)] == ["2920", "169"]
    second = shown[shown.index("Taskonomy") :]
    assert {row[0]: int(row[3]) for row in table(second, *heads)} == TASKONOMY
    assert (
        "This plan is worth 7.6 % more than equal budget and 31.8 % more than equal images."
        in second
    )
    assert re.search(r"allot example > problem.toml.*\n.*allot plan problem.toml.*\n\Z", shown)


# --- input and errors ---


def test_stdin_is_a_problem_too(voc: Path) -> None:
    text = voc.read_bytes()
    assert fine("plan", "-", stdin=text) == fine("plan", voc)
    assert fine("check", "-", stdin=b"\xef\xbb\xbf" + text).startswith("<stdin> is fine")


@pytest.mark.parametrize(
    ("code", "args", "words"),
    [
        (2, ["plan", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (2, ["plan", "."], ".: is a directory"),
        (2, ["plan"], "Missing argument 'PROBLEM.toml'. See allot plan --help"),
        (2, ["plna"], "No such command 'plna'"),
        (2, ["plan", "VOC", "--bugdet", "3"], "No such option"),
        (2, ["plan", "VOC", "--json", "--csv"], "--json and --csv exclude each other."),
        (2, ["plan", "VOC", "--budget", "abc"], "budget: 'abc' is not a number"),
        (2, ["plan", "VOC", "--budget", "-3"], "budget: -3 is not zero or more"),
        (1, ["plan", "VOC", "--budget", "0.5"], "the cheapest label (cls) costs 1"),
        (1, ["frontier", "VOC", "--budget", "0.5"], "buys nothing"),
        (2, ["frontier", "VOC", "--points", "0"], "'--points'"),
        (2, ["score", "VOC"], "TASK=COUNT"),
        (2, ["cheapest", "VOC"], "Missing option '--target'"),
        (2, ["cheapest", "VOC", "--target", "nan"], "target: nan is not a finite number"),
        (2, ["cheapest", "VOC", "--target", "many"], "'many' is not a valid float"),
        (
            2,
            ["cheapest", "VOC", "--target", "1", "--task", "sge"],
            "no task 'sge'; did you mean 'seg'?",
        ),
        (1, ["cheapest", "VOC", "--target", "1e6"], "no plan reaches a value of 1e+06"),
        (2, ["example", "imagenet"], "'imagenet' is not one of 'voc', 'taskonomy'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors(code: int, args: list[str], words: str, voc: Path) -> None:
    lines = refused(code, *[voc if arg == "VOC" else arg for arg in args])
    assert len(lines) == 1
    assert words in lines[0]


def test_stdin_that_is_no_problem() -> None:
    assert refused(2, "plan", "-", stdin=b"#" * (LARGEST_TOML + 1)) == [
        "<stdin>: has more than 5 MB; is it the right file?"
    ]
    assert refused(2, "plan", "-", stdin=b"budget = 3\n\xff") == [
        "<stdin>:2: is not UTF-8 text; save it as UTF-8"
    ]
    assert refused(2, "plan", "-", "--json", stdin="budget = ")[0].startswith(
        "<stdin>:1: not valid TOML"
    )


def test_help_and_version() -> None:
    assert fine("--version") == f"allot {al.__version__}\n"
    assert fine("-h") == fine("--help") == fine()
    listed = re.findall(r"^  ([\w-]+)  ", fine("--help").partition("Commands:")[2], re.MULTILINE)
    campaign = [
        "demo",
        "init",
        "check",
        "status",
        "estimate",
        "plan",
        "order",
        "ingest",
        "correct",
        "history",
        "export",
        "evaluate",
        "learners",
        "loss-weights",
        "train",
        "predict",
        "backtest",
        "report",
        "serve",
    ]
    kept = ["verify", "restore", "pack", "unpack"]
    problems = ["example", "frontier", "score", "cheapest", "data"]
    assert listed == [*campaign, *kept, *problems, "experiment"]
    for command in listed:
        assert "\n  Example:  allot " + command in fine(command, "-h")


# --- names that try to be something else ---


def test_markup_in_names_is_shown_as_it_is(no_gains: Path) -> None:
    for args in (("plan",), ("frontier",), ("score", "[red]x[/red]=2"), ("check",)):
        assert "[red]x[/red]" in fine(args[0], no_gains, *args[1:])


NAMED = ("+a", "-b", "@c", "d=e", "＝f", "g;=1+1;h", "-9")


def test_cells_are_no_formulas(no_gains: Path) -> None:
    assert sheet(allot("plan", no_gains, "--csv").stdout)[1]["task"] == "'=HYPERLINK(1)"
    assert "'=HYPERLINK(1)" in sheet(allot("frontier", no_gains, "--csv").stdout)[0]
    assert "'=HYPERLINK(1)" in sheet(allot("score", no_gains, "=HYPERLINK(1)=1", "--csv").stdout)[0]
    text = "budget = 9\n" + "".join(f'[[task]]\nname = "{name}"\ncost = 1\n' for name in NAMED)
    tasks = [row["task"] for row in sheet(allot("plan", "-", "--csv", stdin=text).stdout)]
    assert tasks == ["'+a", "'-b", "'@c", "d=e", "'＝f", "g;'=1+1;h", "-9"]


def test_numbers_below_zero_stay_numbers_in_a_sheet() -> None:
    gain = 'gain = { curve = "geometric", informativeness = -1, reduction = 0.5 }'
    text = f'budget = 9\n[[task]]\nname = "a"\ncost = 1\nfrozen = 2\n{gain}\n'
    assert sheet(fine("plan", "-", "--csv", stdin=text))[0]["gain"] == "-1.5"


WORTHLESS = """
budget = 9
[[task]]
name = "a"
cost = 1
gain = { curve = "geometric", informativeness = 0, reduction = 0.5 }
"""


def test_json_holds_no_infinity() -> None:
    def refuse(name: str) -> Any:
        raise AssertionError(name)

    plain = json.loads(
        fine("plan", "-", "--json", "--no-ranges", stdin=WORTHLESS), parse_constant=refuse
    )
    assert (plain["counts"], plain["why_unspent"]) == (
        {"a": 0},
        ["a: more labels are worth nothing"],
    )
    assert plain["tasks"][0]["share"] is None
    assert plain["comparison"][0]["of_best"] is None


def test_a_task_that_is_bought_at_no_price() -> None:
    assert (
        json.loads(fine("plan", "-", "--json", stdin=WORTHLESS))["tasks"][0]["bought_up_to"] is None
    )
    assert table(
        fine("plan", "-", stdin=WORTHLESS), "task", "buy", "1 % range", "price", "bought up to"
    ) == [["a", "0", "0 to 9", "1", "-"]]


# --- many tasks ---


def test_many_tasks_stay_readable() -> None:
    shown = fine("plan", "-", stdin=many_tasks(40))
    rows = table(shown, "task", "price", "have", "buy", "money", "share", "gain")
    assert len(rows) == 30
    assert "(10 more tasks)" in shown
    assert "(The 30 that get most of 40 tasks; --csv has them all.)" in shown
    assert "How firm this is" not in shown
    assert table(shown, "plan", "value", "of best")[0][0] == "this plan"
    assert "all on" not in shown
    assert max(map(len, shown.splitlines())) <= 130
    assert len(sheet(fine("plan", "-", "--csv", stdin=many_tasks(40)))) == 40
    assert "(--csv and --json have the counts of each task.)" in fine(
        "frontier", "-", stdin=many_tasks(40)
    )


@pytest.mark.long
def test_ranges_of_many_tasks_on_request() -> None:
    assert "1 % range" not in fine("plan", "-", stdin=many_tasks(13))
    assert "1 % range" in fine("plan", "-", "--ranges", stdin=many_tasks(13))
    assert (
        "range_low" not in json.loads(fine("plan", "-", "--json", stdin=many_tasks(13)))["tasks"][0]
    )


# --- a real process ---


def run(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*ALLOT, *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_process_gives_the_same_plan(voc: Path) -> None:
    done = run("plan", voc)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == fine("plan", voc)
    assert "\x1b" not in done.stdout
    done = run("plan", "-", "--budget", "0.5", input=voc.read_text(encoding="utf-8"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: budget 0.5 buys nothing")


def test_installed_script() -> None:
    script = Path(sys.executable).with_name("allot")
    if not script.exists():
        pytest.skip("the package is not installed beside this Python")
    done = subprocess.run(
        [script, "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == f"allot {al.__version__}\n"


LOADED = """
import sys
from allotment.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    print([name for name in ("numpy", "rich", "allotment.plan") if name in sys.modules])
"""


def test_help_loads_neither_numpy_nor_rich(voc: Path) -> None:
    def loaded(*args: str) -> str:
        command = [sys.executable, "-c", LOADED, *args]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True
        ).stdout.splitlines()[-1]

    assert (
        loaded("--help")
        == loaded("plan", "--help")
        == loaded("--version")
        == loaded("example")
        == "[]"
    )
    assert loaded("plan", str(voc), "--no-ranges") == "['numpy', 'rich', 'allotment.plan']"


def test_closed_pipe_is_no_error(voc: Path) -> None:
    with subprocess.Popen(
        [*ALLOT, "frontier", str(voc), "--csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"budget,value,cls,seg\n"
        process.stdout.close()  # long before its 200 kB are written, of which a pipe holds 64
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
from allotment.cli import main
main(sys.argv[1:])
"""


def test_interrupt_ends_without_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "plan", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: once it is written, the command is reading. One more byte wakes it
        # if it began to wait at the very moment of the signal.
        process.stdin.write(b"#" * 1_000_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"#")
            process.stdin.flush()
        assert process.wait(60) == 130
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == b""
        assert process.stderr.read().strip() == b""


def on_terminal(columns: int, *args: object, **environment: str) -> list[str]:
    """What a command shows on a terminal so wide."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, columns))
    env = os.environ | {"TERM": "xterm-256color"} | environment
    with subprocess.Popen([*ALLOT, *map(str, args)], stdout=slave, stdin=slave, env=env) as process:
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 65536):
                shown += data
        except OSError:  # how Linux says that the other side is closed
            pass
        assert process.wait(60) == 0
    os.close(master)
    return shown.decode().splitlines()


@pytest.mark.parametrize("columns", [80, 120])
def test_terminal_is_not_overrun(columns: int, taskonomy: Path) -> None:
    lines = on_terminal(columns, "plan", taskonomy, "--no-ranges", NO_COLOR="1")
    assert max(map(len, lines)) <= columns
    assert not any("\x1b" in line for line in lines)
    heads = (
        "plan",
        *(TASKONOMY if columns == 120 else ("segm…ion", "normals", "depth", "keyp…nts", "edges")),
    )
    assert table("\n".join(lines), *heads, "value", "of best")[0][1:6] == [
        str(n) for n in TASKONOMY.values()
    ]


def test_terminal_gets_bold_heads(voc: Path) -> None:
    assert any("\x1b[1m" in line for line in on_terminal(100, "plan", voc, "--no-ranges"))


def test_long_names_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    names = [
        "a name that is very long indeed and goes on for nearly a hundred letters until its"
        f" end, {n}"
        for n in (1, 2)
    ]
    tasks = "".join(
        f'[[task]]\nname = "{name}"\ncost = {cost}\n'
        for name, cost in zip(names, (1, 123), strict=True)
    )
    path.write_text(f"budget = 1234567\n{tasks}")
    lines = on_terminal(60, "plan", path, "--no-ranges", NO_COLOR="1")
    assert max(map(len, lines)) <= 60
    rows = table("\n".join(lines), "task", "price", "have", "buy", "money", "share", "gain")
    assert [row[0][-3:] for row in rows] == [", 1", ", 2"]
    assert sum(int(row[4]) for row in rows) <= 1234567
    assert names[0] in fine("plan", path, "--no-ranges")


# --- numbers and columns ---


def test_python_shows_the_same_comparison(voc: Path) -> None:
    document = al.read_problem(voc)
    assert document.gains is not None
    best = al.allocate(document.problem, document.gains)
    others = al.baselines(document.problem) | {"last year's": {"cls": 4000, "seg": 169}}
    lines = [re.split(r"\s{2,}", line) for line in str(best.compare(others)).splitlines()]
    heads = ("plan", "cls", "seg", "value", "of best")
    shown = table(fine("plan", voc), *heads)
    assert lines[0] == ["plan", "cls", "seg", "spent", "value", "of plan"]
    assert lines[-1] == ["last year's breaks budget: 7380 is above 6300"]
    ours = [row[:3] + row[4:] for row in lines[1:-1] if row[0] != "last year's"]
    assert ours == shown
    assert {row[3] for row in lines[1:-1]} == {"6300", "7380"}


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    assert numbers([1338.5648, 694.9, 0.0]) == ["1338.56", "694.90", "0.00"]
    assert numbers([9.0, 4.0, -1.0]) == ["9", "4", "-1"]
    assert numbers([0.129847123, 1e-9]) == ["0.129847", "1e-09"]
    assert numbers([2.5e20, 1.0]) == ["2.5e+20", "1"]
    assert numbers([]) == []


def test_numbers_in_sentences() -> None:
    assert [number(value) for value in (1338.5648, 12345678.9, 0.0, 2.5e-7)] == [
        "1338.56",
        "12345679",
        "0",
        "2.5e-07",
    ]
    assert [percent(share) for share in (0.4635, 0.0004, 0.0, -0.5)] == [
        "46.4 %",
        "0.04 %",
        "0.0 %",
        "-50.0 %",
    ]


def test_money_is_exact() -> None:
    thirds = [al.Task("a", cost).cost for cost in ("1/3", "1")]
    assert amounts(thirds) == ["~0.333333", "1"]
    assert amounts([al.Task("a", cost).cost for cost in ("12.5", "0.035", 7)]) == [
        "12.500",
        "0.035",
        "7.000",
    ]


def test_columns_are_fitted_without_cutting_a_number() -> None:
    columns = [
        TextColumn("plan", ["equal images"], "name"),
        TextColumn("segmentation", ["12345678"], "task"),
        TextColumn("v", ["1"]),
    ]
    assert [column.head for column in fit(columns, None)] == ["plan", "segmentation", "v"]
    assert [column.head for column in fit(columns, 27)] == ["plan", "segme…tion", "v"]
    assert [column.head for column in fit(columns, 20)] == ["plan", "v"]
    assert fit(columns, 5)[0].cells == ["equal images"]
    assert shorten("abcdefgh", 5) == "ab…gh"
    assert shorten("日本語のタスク", 7) == "日本…ク"


# --- the page of a problem file ---


def test_a_problem_file_has_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("streets.toml").write_text(fine("example"))
    assert fine("report", "streets.toml") == "streets.html is written; open it in a browser.\n"
    page = Path("streets.html").read_text()
    assert "Labels for streets" in page
    assert "worth 0.1\N{NO-BREAK SPACE}% more than equal budget" in page
    values = json.loads(fine("report", "streets.toml", "--json"))
    assert [task["count"] for task in values["plan"]["tasks"]] == [2920, 169]
    assert len(values["curves"]) == 2
    assert "Buy 2,920 cls and 169 seg" in fine("report", "streets.toml", "--markdown")
    Path("mine.html").write_text("mine")
    assert allot("report", "streets.toml", "-o", "mine.html").exit_code == 2
    assert Path("mine.html").read_text() == "mine"


def test_a_problem_file_says_how_its_page_writes_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("streets.toml").write_text(
        fine("example") + '\n[report]\ncurrency = "EUR"\ndecimal = "comma"\n'
    )
    assert "Buy 2.920 cls and 169 seg" in fine("report", "streets.toml", "--markdown")
    assert "6.300 EUR" in fine("report", "streets.toml", "--markdown")
    assert fine("plan", "streets.toml", "--json") == fine(
        "plan", "-", "--json", stdin=fine("example")
    )
    Path("streets.toml").write_text(fine("example") + '\n[report]\ndecimal = "period"\n')
    refused = allot("report", "streets.toml")
    assert refused.exit_code == 2
    assert "report: decimal: unknown 'period'; known: point, comma" in refused.output


def test_a_problem_without_gains_has_a_page_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fine("report", "-", stdin=NO_GAINS).startswith("report.html is written")
    page = Path("report.html").read_text()
    assert "every task is taken to be worth the same" in page
    assert "[red]x[/red]" in page
    missing = allot("report", "nowhere.toml")
    assert (missing.exit_code, "there is no such file" in missing.output) == (2, True)
    assert allot("report", "-", stdin="budget = 1").exit_code == 2
