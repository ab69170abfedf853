"""Tables for people: that nothing is lost on a narrow terminal, and that words fit what is
shown."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from allotment.advice.doctor import Diagnosis
from allotment.campaign.campaign import Measured
from allotment.campaign.evaluation import Evaluation, Trial
from allotment.cli import main
from allotment.cli.files import read_example
from allotment.plan import Outlook
from allotment.terminal import page as pages
from allotment.terminal.campaigns import judge, show_evaluation, show_measured
from allotment.terminal.page import MOST_SIDE_BY_SIDE, Page, TextColumn, split

TASKS = ("classes", "segmentation", "depth", "normals", "edges", "keypoints")


class Narrow(Page):
    """As on a terminal so wide."""

    columns = 40

    def __init__(self, columns: int | None = None) -> None:
        super().__init__()
        self.width = columns or self.columns


def evaluated(tasks: Sequence[str], repeats: int = 8) -> Evaluation:
    rng = np.random.default_rng(len(tasks))
    plans = ["this plan", "equal images", "equal budget", *(f"all on {task}" for task in tasks)]
    scores = rng.uniform(1, 2, (len(plans), repeats, len(tasks)))
    trials = tuple(Trial(name, {}) for name in plans)
    base = rng.uniform(1, 2, (repeats, len(tasks)))
    return Evaluation(tuple(tasks), (1.0,) * len(tasks), (True,) * len(tasks), trials, base, scores)


def read_tables(printed: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The heads and rows of each table, as far as columns are two spaces apart."""
    for block in printed.split("\n\n"):
        lines = block.splitlines()
        if len(lines) > 2 and set(lines[1]) == {"─"}:
            rows = [re.split(r"  +", line) for line in (lines[0], *lines[2:])]
            yield rows[0], rows[1:]


@pytest.mark.parametrize(
    "tasks", [TASKS[:2], TASKS, tuple(f"task {n}" for n in range(MOST_SIDE_BY_SIDE))]
)
@pytest.mark.parametrize("width", [40, 50, 64, 80, 100, 140, 200])
def test_an_evaluation_keeps_its_tasks_on_any_terminal(
    tasks: tuple[str, ...], width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = evaluated(tasks)
    show_evaluation(Narrow(width), found)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= max(width, 64)  # intervals are not cut
    assert printed.count("±") == len(found.trials) * (len(tasks) + 1) + 1
    if width < 64:  # where names are cut
        return
    base, seen = found.base.mean(axis=0), {}
    for heads, rows in read_tables(printed):
        for row in rows:
            seen |= {(row[0], head): cell for head, cell in zip(heads[1:], row[1:], strict=False)}
    for number, trial in enumerate(found.trials):
        for place, task in enumerate(tasks):
            mean = 100 * (found.scores[number, :, place].mean() / base[place] - 1)
            assert float(seen[trial.name, task].split()[0]) == pytest.approx(mean, abs=0.051)
        assert re.fullmatch(r"[-+][\d.]+ ± [\d.]+", seen[trial.name, "D_T"])
        assert ((trial.name, "this plan ahead by") in seen) == (number > 0)


def test_an_evaluation_is_one_table_where_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    for width, count in ((200, 1), (100, 3)):
        show_evaluation(Narrow(width), evaluated(TASKS))
        assert len(list(read_tables(capsys.readouterr().out))) == count
    page = Page()  # no terminal: as wide as it needs to be
    show_evaluation(page, evaluated([f"task {n}" for n in range(MOST_SIDE_BY_SIDE + 5)]))
    assert len(list(read_tables(capsys.readouterr().out))) == 1


def test_an_evaluation_of_many_tasks_says_where_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_evaluation(Narrow(80), evaluated([f"task {n}" for n in range(MOST_SIDE_BY_SIDE + 1)]))
    printed = capsys.readouterr().out
    assert "do not fit in here; --json has them.)" in printed
    assert {"--json"} <= options("evaluate")
    assert "--csv" not in printed


def test_parts_are_few_and_even_and_lose_nothing() -> None:
    columns = [TextColumn(f"{n}" * 10, ["x"]) for n in range(6)]
    assert [len(part) for part in split(columns, None)] == [6]
    assert [len(part) for part in split(columns, 72)] == [6]
    assert [len(part) for part in split(columns, 71)] == [3, 3]
    assert [len(part) for part in split(columns, 24)] == [2, 2, 2]
    assert [len(part) for part in split(columns, 5)] == [1] * 6
    uneven = [TextColumn("x" * size, [""]) for size in (1, 1, 1, 30, 30)]
    for width in (36, 50, 71):
        parts = split(uneven, width)
        assert [column for part in parts for column in part] == uneven
        assert all(sum(column.width + 2 for column in part) <= width for part in parts)


# --- what is left out is where it is said to be ---


def options(command: str) -> set[str]:
    return {option for parameter in main.commands[command].params for option in parameter.opts}


@pytest.mark.parametrize(
    ("command", "more", "named"),
    [
        ("plan", [], {"--json"}),
        ("score", ["depth=5"], {"--csv", "--json"}),
        ("frontier", [], {"--csv", "--json"}),
    ],
)
def test_counts_that_do_not_fit_are_where_it_says(
    command: str, more: list[str], named: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "Page", Narrow)
    path = tmp_path / "problem.toml"
    path.write_text(read_example("taskonomy"))
    given = [command, str(path), *more]
    shown = CliRunner().invoke(main, given)
    assert shown.exit_code == 0, shown.output
    told = re.search(
        r"\(The columns of single tasks do not fit in here; ([^.]*)\.\)",
        " ".join(shown.stdout.split()),
    )
    assert told
    assert set(re.findall(r"--\w+", told[1])) == named <= options(command)
    counts = "counts" if command == "frontier" else "comparison"
    whole = json.loads(CliRunner().invoke(main, [*given, "--json"]).stdout)[counts]
    lines = CliRunner().invoke(main, [*given, "--csv"]).stdout.splitlines()
    wanted = whole["depth"] if command == "frontier" else [row["counts"]["depth"] for row in whole]
    assert len(set(wanted)) > 2
    column = lines[0].split(",").index("depth") if "depth" in lines[0].split(",") else None
    in_sheet = column is not None and [int(line.split(",")[column]) for line in lines[1:]] == wanted
    assert in_sheet == ("--csv" in named)


def test_a_command_without_other_forms_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "Page", Narrow)
    shown = CliRunner().invoke(main, ["demo", "--paper"])
    assert "(The columns of single tasks do not fit in here.)" in " ".join(shown.stdout.split())
    assert not {"--csv", "--json"} & options("demo")
    assert "--csv" not in shown.stdout


# --- words ---


def test_what_the_doctor_lists_goes_on_below_its_beginning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = {f"{task} of rooms": 1000 + place for place, task in enumerate(TASKS)}
    look = Outlook(1.0, 0.5, 1.5, 0.9, 0.99, {}, {})
    diagnosis = Diagnosis(counts, dict.fromkeys(counts, 7), look, "%", ())
    show_measured(Narrow(60), Measured(None, None, diagnosis, 3, 0, 0, {}), "camp")  # type: ignore[arg-type]
    lines = capsys.readouterr().out.splitlines()
    begins = [
        next(n for n, line in enumerate(lines) if line.startswith(f"  {name} "))
        for name in ("plan", "equal")
    ]
    ends = [begins[1], lines.index("", begins[1])]
    for begin, end, bought in zip(begins, ends, (counts, diagnosis.equal), strict=True):
        assert end > begin + 1
        assert [line[:16].strip() for line in lines[begin + 1 : end]] == [""] * (end - begin - 1)
        assert not any(line[16:].startswith(" ") for line in lines[begin:end])
        said = " ".join(line[16:] for line in lines[begin:end])
        assert said == ", ".join(f"{name} {count}" for name, count in bought.items())


NOISE = "the difference is within the noise: 8 repeats cannot tell which is better"
SPANS = {
    "better": [2.0, 1.0, 3.0],
    "worse": [-2.0, -3.0, -1.0],
    "same": [0.5, -1.0, 2.0],
    "unknown": None,
}


def ranked(*outcomes: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"name": "this plan", "ahead": None}]
    return rows + [
        {"name": f"p{place}", "ahead": SPANS[each]} for place, each in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (["better"], "This plan is better than p1."),
        (["worse", "worse", "worse"], "This plan is worse than p1, p2 and p3."),
        (["worse", "better", "better"], "This plan is better than p2 and p3 and worse than p1."),
        (["same"], f"Between this plan and p1 {NOISE}."),
        (["same", "same"], f"Between this plan and each of p1 and p2 {NOISE}."),
        (["better", "same"], f"This plan is better than p1; between it and p2 {NOISE}."),
        (
            ["same", "worse", "same", "better"],
            (
                "This plan is better than p4 and worse than p2; between it and each of p1 and p3"
                f" {NOISE}."
            ),
        ),
        (["unknown"], "Nothing can be told about p1, for want of a D_T in every repeat."),
        ([], "There is no other plan to compare this one with."),
    ],
)
def test_the_intervals_in_one_sentence(outcomes: list[str], said: str) -> None:
    assert judge(ranked(*outcomes), 8) == said


def test_every_plan_is_judged_once_whatever_the_outcomes() -> None:
    for outcomes in itertools.product(SPANS, repeat=3):
        said = judge(ranked(*outcomes), 8)
        assert all(len(re.findall(rf"\bp{place}\b", said)) == 1 for place in (1, 2, 3))
        assert said.count("noise") == ("same" in outcomes)
        assert said.count("better than") == ("better" in outcomes)
        assert said.count("worse than") == ("worse" in outcomes)
        assert said.count(".") == 1
    assert judge(ranked("unknown", "unknown"), 1) == "One repeat says nothing about the noise."
