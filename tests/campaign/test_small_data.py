"""Few labels, single classes, settings that make no sense: each is said in words, with its line,
and none crashes."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import allotment as al
from allotment.advice.doctor import Diagnosis, Finding, diagnose
from allotment.advice.price import Price
from allotment.campaign.campaign import Campaign
from allotment.cli import main
from allotment.data.dataset import Target
from allotment.data.labels import Labels
from allotment.data.source import SOURCES
from allotment.estimates.estimates import Estimates
from allotment.estimates.response import Response, find_level
from allotment.learners.metrics import METRICS, SKILLS, check_metric, metric_of
from allotment.learners.recipe import DEVICES, OPTIMISERS, PRECISIONS, Recipe
from allotment.plan import Outlook
from allotment.problem import Problem, Task
from allotment.settings.settings import parse_settings, quote, read_settings
from allotment.terminal.campaigns import show_tasks
from allotment.terminal.page import Page


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def allot(*args: object) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fine(*args: object) -> str:
    result = allot(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*args: object) -> str:
    result = allot(*args)
    assert result.exit_code == 2, result.output
    return result.output


def write(cells: Mapping[str, Mapping[int, str]], count: int = 24, path: str = "table.csv") -> None:
    """Two features and these cells of targets, by row; all others are empty."""
    rng = random.Random(3)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["x", "y", *cells])
        for row in range(count):
            labels = (mine.get(row, "") for mine in cells.values())
            table.writerow([f"{rng.random():.3f}", f"{rng.random():.3f}", *labels])


NUMBERS = {row: f"{0.5 + row % 7:.2f}" for row in range(0, 24, 2)}
WORDS = {row: ("u", "v")[row % 2] for row in range(0, 24, 3)}
BEGIN = (
    "--root",
    "table.csv",
    "--targets",
    "a,b",
    "--cost",
    "a=1",
    "--cost",
    "b=2",
    "--budget",
    30,
    "--steps",
    2,
)


def begin(cells: Mapping[str, Mapping[int, str]], *more: object, count: int = 24) -> str:
    write(cells, count)
    told = fine("init", "camp", *BEGIN, *more)
    change(r"\A", "trainings = 8\n")
    return told


def change(pattern: str, new: str) -> int:
    """Edit the settings as a user would; the line of what is new."""
    path = Path("camp/campaign.toml")
    text, count = re.subn(pattern, lambda _: new, path.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1, pattern
    path.write_text(text)
    return text[: text.rindex(new) + len(new.rstrip("\n"))].count("\n") + 1


# --- one class, one label, too few ---


@pytest.mark.parametrize("name", ["accuracy", "f1", "miou", "roc_auc", "average_precision"])
def test_a_single_class_is_no_question_and_has_no_score(name: str) -> None:
    certain, labels = np.ones((5, 1)), np.zeros(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(METRICS[name](certain, labels))
        assert np.isnan(SKILLS["classification"](certain, labels))


def test_two_classes_score_as_ever() -> None:
    said = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    labels = np.array([0, 1, 1, 1])
    assert METRICS["accuracy"](said, labels) == 3 / 4
    assert METRICS["roc_auc"](said, labels) == 1.0


def test_targets_with_one_class_are_noted_and_estimates_go_on() -> None:
    told = begin({"a": NUMBERS, "b": dict.fromkeys(WORDS, "u")})
    for said in (told, fine("check", "camp")):
        assert "task 'b': has one class so far, 'u'" in said
        assert "--classes 'b=u|OTHER'" in said
    told = fine("estimate", "camp", "--workers", 1)
    assert not re.search(r"\bnan\b", told)
    diagnosis = Campaign("camp").estimate(0).diagnosis
    assert diagnosis is not None
    (finding,) = [each for each in diagnosis.findings if (each.kind, each.name) == ("task", "b")]
    assert "no training on its labels could be scored" in finding.why
    assert finding.grade == "unusable"


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_a_single_label_is_said_to_tell_nothing_without_a_warning(one: str, other: str) -> None:
    cells: dict[str, Mapping[int, str]] = {"a": NUMBERS, "b": WORDS}
    cells[one] = dict(list(cells[one].items())[:1])
    begin(cells, "--kind", "a=regression", "--classes", "b=u|v")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        told = fine("estimate", "camp", "--workers", 1)
    assert not re.search(r"\bnan\b", told)
    # listed, or counted where no money hangs on it
    assert "not known" in told
    found = json.loads(fine("estimate", "camp", "--workers", 1, "--json"))["diagnosis"]
    why = {each["name"]: each["why"] for each in found["findings"] if each["kind"] == "task"}
    assert why[one].startswith("one label can't be both trained on and scored on")
    assert "one label" not in why[other]


def test_scores_of_trainings_without_a_label_of_the_task_tell_nothing() -> None:
    """One label scores the trainings that did not see it: they are as good as untrained."""
    counts = np.array([[0, 5], [1, 5], [0, 4], [1, 4]])
    scores = np.array([[3.0, 0.5], [np.nan, 0.6], [3.0, 0.4], [np.nan, 0.5]])
    response = Response(("a", "b"), (1, 5), counts, scores, np.full((2, 2), 1.0), (False, True))
    assert find_level(response, "a") is None
    level = find_level(response, "b")
    assert level is not None
    assert level.score == pytest.approx(0.55)


def test_too_few_labels_are_counted_and_the_way_out_is_named() -> None:
    few = {"a": {0: "0.5", 1: "1.5"}, "b": {2: "u", 3: "v"}}
    told = begin(few, count=4)
    assert 'until some task has 4, plan with method = "neutral"' in told
    told = refused("estimate", "camp")
    assert (
        "a 2, b 2: too few to train on some and to score on others; label 4 or more of each task"
        in told
    )
    change(r"^method = .*", 'method = "neutral"')
    fine("plan", "camp")


def test_a_fold_without_any_label_is_no_mistake() -> None:
    """Of four labels in four folds some fold is empty, whatever the seed."""
    begin({"a": dict(list(NUMBERS.items())[:4]), "b": {}}, "--classes", "b=u|v")
    change(r"^trainings = .*", "trainings = 4")
    for seed in range(3):
        change(r"^seed = .*", f"seed = {seed}")
        fine("estimate", "camp", "--workers", 1)


# --- no label at all ---


def test_a_target_without_a_label_must_be_given_its_kind() -> None:
    write({"a": NUMBERS, "b": {}})
    told = refused("init", "camp", *BEGIN)
    assert "task 'b': has no label that shows its kind" in told
    assert "task 'a'" not in told
    assert not Path("camp").exists()
    advised = re.search(r"or (--kind .*)$", told, re.MULTILINE)
    assert advised is not None
    fine("init", "camp", *BEGIN, *shlex.split(advised[1]))
    found = {
        task["name"]: task["kind"] for task in json.loads(fine("status", "camp", "--json"))["tasks"]
    }
    assert found == {"a": "regression", "b": "classification"}
    fine("init", "other", *BEGIN, "--kind", "b=regression")


# --- settings ---


BAD = [
    (r"^device = .*", 'device = "gpu"', "training: device: unknown 'gpu'"),
    (r"^precision = .*", 'precision = "float16"', "training: precision: unknown 'float16'"),
    (r"^steps = .*", "steps = 0", "training: steps: 0 would train nothing"),
    (r"(?<=^steps = 2\n)", "epochs = 3\n", "training: epochs: does not count beside steps"),
    (
        r"(?<=^steps = 2\n)",
        'optimiser = "adamm"\n',
        "training: optimiser: unknown 'adamm'; did you mean 'adam'?",
    ),
    (r"(?<=^steps = 2\n)", "batch_size = 0\n", "training: batch_size: 0 is below 1"),
    (
        r"(?<=^cost = 2\n)",
        'metric = "rmse"\n',
        "task 'b': metric: 'rmse' does not score a task of kind classification",
    ),
    (
        r"(?<=^cost = 2\n)",
        'metric = "bogus"\n',
        "task 'b': metric: 'bogus' does not score a task of kind classification",
    ),
    (
        r"(?<=^cost = 1\n)",
        'kind = "regression"\nmetric = "f1"\n',
        "task 'a': metric: 'f1' does not score a task of kind",
    ),
    (
        r"(?<=^cost = 2\n)",
        "loss_weight = -1\n",
        "task 'b': loss_weight: -1.0 is not a finite number",
    ),
    (r"(?<=^cost = 2\n)", 'kind = "clas"\n', "task 'b': kind: a target of a table can't be 'clas'"),
    (r'^name = "b"$', 'name = "bb"', "target 'bb': is not a column of the table"),
    (r'^name = "b"$', 'name = "a"', "task 'a': is there twice"),
    (r'(?<=^root = "../table.csv"\n)', 'drop = ["z"]\n', "drop 'z': is not a column of the table"),
    (r'(?<=^root = "../table.csv"\n)', 'group = "z"\n', "group 'z': is not a column of the table"),
    (r"^root = .*", 'root = "../gone.csv"', "data: root: '../gone.csv': there is no such file"),
    (
        r"^trainings = .*",
        "trainings = 0",
        'trainings: 0 is not a whole number of 1 or more; method = "neutral"',
    ),
    (r"^\[training\]", "[trainings]", "trainings: is a table; did you mean [training]?"),
]


@pytest.mark.parametrize(("pattern", "new", "words"), BAD, ids=[each[1].strip() for each in BAD])
def test_every_command_finds_what_makes_no_sense_with_its_line(
    pattern: str, new: str, words: str
) -> None:
    begin({"a": NUMBERS, "b": WORDS})
    if new == "[trainings]":
        change(r"^trainings = .*\n", "")
    line = change(pattern, new)
    for command in ("check", "status", "estimate"):
        assert f"camp/campaign.toml:{line}: {words}" in refused(command, "camp")


def test_slopes_need_a_training_more_than_they_have_numbers() -> None:
    begin({"a": NUMBERS, "b": WORDS}, "--method", "slopes")
    change(r"^trainings = .*", "trainings = 6")
    assert "campaign.toml:1: trainings: 6 is not a whole number of 7 or more" in refused(
        "check", "camp"
    )
    change(r"^trainings = .*", "trainings = 7")
    fine("estimate", "camp", "--workers", 1)


def test_neutral_takes_no_training() -> None:
    begin({"a": NUMBERS, "b": WORDS}, "--method", "neutral")
    change(r"^trainings = .*", "trainings = 0")
    fine("check", "camp")


def test_settings_are_checked_without_torch() -> None:
    begin({"a": NUMBERS, "b": WORDS})
    change(r"(?<=^cost = 2\n)", 'metric = "f1"\n')
    code = (
        "import sys; from allotment.campaign.campaign import Campaign; Campaign('camp').summarise()"
    )
    code += "; assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def test_devices_and_names_in_settings_are_those_that_exist() -> None:
    import torch

    for device in DEVICES:
        if device != "auto":
            assert torch.device(device).type == device
            assert torch.device(f"{device}:1").index == 1
    with pytest.raises(RuntimeError):
        torch.device("gpu")
    for optimiser in OPTIMISERS:
        for precision in PRECISIONS:
            Recipe(optimiser=optimiser, precision=precision)


def test_tasks_of_complete_data_have_the_kinds_that_settings_take_them_for() -> None:
    from allotment.data.taskonomy import TASKONOMY_TARGETS
    from allotment.data.voc import VOC_TARGETS

    for name, targets in (("voc", VOC_TARGETS), ("taskonomy", TASKONOMY_TARGETS)):
        for target in targets:
            assert SOURCES.load(name).tasks[target.name].kind == target.kind
            assert not target.metric or not check_metric(target.metric, target.kind)
    text = (
        'budget = 9\n[data]\nname = "scenes"\n[[task]]\nname = "depth"\ncost = 1\nhave = 4\nmetric'
        ' = "f1"\n'
    )
    with pytest.raises(al.InputError) as caught:
        parse_settings(text)
    assert [(each.line, each.where) for each in caught.value.mistakes] == [
        (8, "task 'depth': metric")
    ]


def test_what_settings_accept_of_metrics_is_what_the_learner_accepts() -> None:
    for kind in ("classification", "multilabel", "regression"):
        classes = () if kind == "regression" else ("x", "y")
        for name in (*METRICS, "loss", "bogus"):
            target, wrong = Target("t", kind, classes, metric=name), check_metric(name, kind)
            assert bool(wrong) == (
                name != "loss" and (name == "bogus" or kind not in METRICS[name].kinds)
            )
            with pytest.raises(al.InputError) if wrong else contextlib.nullcontext():
                metric_of(target)


def test_a_campaign_without_its_settings_is_still_one() -> None:
    begin({"a": NUMBERS, "b": WORDS})
    Path("camp/campaign.toml").unlink()
    for command in ("check", "status", "plan"):
        assert "campaign.toml: is gone" in refused(command, "camp")
    fine("init", "camp", *BEGIN)
    fine("status", "camp")


# --- moving, typing ---


def test_data_that_stayed_behind_are_missed_by_the_key_that_names_them() -> None:
    begin({"a": NUMBERS, "b": WORDS})
    fine("pack", "camp", "-o", "camp.zip")
    Path("far").mkdir()
    told = fine("unpack", "camp.zip", "far/copy")
    assert (
        f"not at {Path.cwd() / 'far/table.csv'}; write where they lie into campaign.toml, under"
        " root" in told
    )
    text = Path("far/copy/campaign.toml").read_text().split("\n")
    line = text.index('root = "../table.csv"') + 1
    assert f"far/copy/campaign.toml:{line}: data: root" in refused("status", "far/copy")
    assert "under root" not in fine("unpack", "camp.zip", "near")
    assert read_settings(Path("near"))[0].names == ("a", "b")


def test_names_with_spaces_are_quoted_in_what_is_to_be_typed() -> None:
    assert quote("plain") == "plain"
    assert shlex.split(quote("k ü'🐱")) == ["k ü'🐱"]
    write({"a": NUMBERS, "b": WORDS})
    fine("init", "my camp", *BEGIN, "--method", "neutral")
    told = fine("plan", "my camp")
    typed = re.search(r"^Next: allot (order .*?)(   .*)?$", told, re.MULTILINE)
    assert typed is not None
    told = fine(*shlex.split(typed[1]))
    typed = re.search(r"^Next: allot (ingest .*)$", told, re.MULTILINE)
    assert typed is not None
    assert shlex.split(typed[1]) == ["ingest", "my camp", "my camp/order-1.csv"]


def test_data_table_and_init_agree_on_what_names_the_rows() -> None:
    with open("table.csv", "w") as file:
        file.write(
            "ID,x,a,b\n"
            + "".join(f"r{row},{row},{row / 7:.2f},{'uv'[row % 2]}\n" for row in range(12))
        )
    note = "column 'ID' names the rows"
    assert note in fine("init", "camp", *BEGIN)
    found = json.loads(
        fine("data", "table", "table.csv", "--target", "a", "--target", "b", "--json")
    )
    assert any(note in each for each in found["notes"])
    assert "ID" not in json.dumps({key: value for key, value in found.items() if key != "notes"})


# --- words ---


@pytest.mark.parametrize(("width", "tables"), [(60, 2), (80, 1), (None, 1)])
def test_the_table_of_tasks_is_no_wider_than_the_terminal(
    width: int | None, tables: int, capsys: pytest.CaptureFixture[str]
) -> None:
    begin({"a": NUMBERS, "b": WORDS}, "--method", "neutral")
    fine("order", "camp")
    page = Page()
    page.width = width
    show_tasks(page, Campaign("camp").summarise()[1])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= (width or 1000)
    assert sum(line.startswith("task ") for line in lines) == tables
    for head in ("kind", "price", "at hand", "bought", "on order", "could be labelled"):
        assert any(head in line for line in lines)


def test_titles_and_small_numbers_read_well() -> None:
    cell = Finding("cell", "style to price", "weak", "why", 0.0)
    assert str(cell).startswith("What labels of style bring to price: not sure.")
    told = str(Price("response", 60, 100, 0.08, hourly=2.0, budget=400.0))
    assert told.endswith(
        "At 2 an hour that is less than 0.01, less than 0.001 % of the 400 for labels."
    )
    counts = {"a": 1, "b": 2}
    plateau = dict.fromkeys(counts, (0, 3))
    for mean, words in (
        (-0.0013, "promises as much as equal budget"),
        (-0.5, "promises 0.5 % of the score less than"),
    ):
        look = Outlook(mean, mean - 1, mean + 1300, 0.9, 0.5, plateau, plateau)
        small = Finding("task", "a", "weak", "why", 0.001)
        said = str(Diagnosis(counts, {"a": 2, "b": 1}, look, "%", (small,)))
        assert words in said
        assert "1300" in said
        assert "1 figure not known well; it moves at most 1.0 % of the money." in said


def test_a_task_that_borrowed_its_rate_is_not_sound_where_gains_are_labels() -> None:
    problem = Problem([Task("a", 1, have=20), Task("b", 2, have=20)], 30)
    about = {"unit": "labels", "trainings": 8, "fallbacks": ["a", "b"]}
    worths = np.broadcast_to(np.eye(2), (8, 2, 2)).copy()
    given = Estimates(("a", "b"), (20, 20), worths, np.full((8, 2), 0.95), "geometric", about)
    grades = {
        each.name: each.grade for each in diagnose(problem, given).findings if each.kind == "task"
    }
    assert grades == {"a": "unusable", "b": "unusable"}
    one = Estimates(
        ("a", "b"),
        (20, 20),
        worths,
        np.full((8, 2), 0.95),
        "geometric",
        about | {"fallbacks": ["b"]},
    )
    found = diagnose(problem, one)
    assert {each.name: each.grade for each in found.findings if each.kind == "task"} == {
        "a": "sound",
        "b": "unusable",
    }
    assert "below" not in str(found)


def test_a_learner_scored_on_nothing_scores_nothing() -> None:
    from allotment.data.labels import split
    from allotment.data.table import read_table
    from allotment.learners.torch_learner import TorchLearner

    write({"a": NUMBERS, "b": WORDS})
    data = read_table("table.csv", ["a", "b"])
    learner = TorchLearner(data, split(data, 0), Recipe(steps=1)).with_validation(
        Labels({"a": [], "b": []})
    )
    state = learner.start(Labels({"a": list(NUMBERS), "b": list(WORDS)}), 0)
    assert np.isnan(learner.score(state, "a").metric)


# --- errors that are in the way ---


def homes(*more: object) -> None:
    """60 homes with 15 prices and 24 styles, and a campaign that buys 20 prices for all of its
    60."""
    rng = random.Random(1)
    lines = ["area,age,garden,price,style"]
    for row in range(60):
        area, age, garden = (
            rng.randint(400, 2000) / 10,
            rng.randint(0, 800) / 10,
            rng.choice(("yes", "no")),
        )
        price = f"{3 * area - age:.1f}" if row % 4 == 0 else ""
        style = ("old", "modern")[age < 20] if row % 5 < 2 else ""
        lines.append(f"{area},{age},{garden},{price},{style}")
    Path("homes.csv").write_text("\n".join(lines) + "\n")
    costs = (
        "--cost",
        "price=3",
        "--cost",
        "style=5",
        "--budget",
        60,
        "--method",
        "neutral",
        "--steps",
        20,
    )
    fine("init", "camp", "--root", "homes.csv", "--targets", "price,style", *costs, *more)


def under(task: str, line: str) -> int:
    """Write a line below the name of a task; its number."""
    return change(rf'^name = "{task}"$', f'name = "{task}"\n{line}')


def fill_in(path: str, first: int = 0, last: int | None = None) -> str:
    with Path("camp/order-1.csv").open(newline="") as file:
        head, *rows = list(csv.reader(file))
    for row in rows[first:last]:
        row[-1] = "123.5" if row[1] == "price" else "old"
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def infeasible(*args: object) -> str:
    result = allot(*args)
    assert result.exit_code == 1, result.output
    return result.output


def test_a_least_out_of_reach_stops_plans_and_nothing_else() -> None:
    homes()
    fine("order", "camp")
    under("style", "least = 10")
    assert "5 new labels" in fine("ingest", "camp", fill_in("some.csv", 0, 5))
    clash = (
        "least of style takes 50, but 45 of the budget of 60 is left: raise the budget to 65 or"
        " lower least of style"
    )
    told = fine("order", "camp", "--cancel", 1)
    assert "What was open of order 1 is given up." in told
    assert f"Note: {clash}." in told
    assert "Next: edit camp/campaign.toml" in told
    for command in ("status", "report"):
        assert f"Note: {clash}." in fine(command, "camp")
    values = json.loads(fine("report", "camp", "--json"))
    assert clash in values["decision"]
    assert values["rounds"][-1]["next"].startswith("edit camp/campaign.toml")
    for command in ("check", "plan", "order"):
        assert clash in infeasible(command, "camp")
    change("^budget = 60", "budget = 65")
    assert "10 style" in fine("order", "camp")


def test_labels_that_came_are_said_where_no_plan_is_possible() -> None:
    homes()
    fine("order", "camp")
    under("style", "least = 10")
    told = fine("ingest", "camp", fill_in("some.csv", 0, 2))
    assert "2 new labels" in told
    assert (
        "Note: least of style takes 50, but 0 of the budget of 60 is left: raise the budget to 110"
        in told
    )


def test_a_frozen_count_below_what_is_bought_buys_no_more() -> None:
    homes()
    under("price", "frozen = 3")
    fine("order", "camp")
    change("^frozen = 3", "frozen = 1")
    assert "13 new labels" in fine("ingest", "camp", fill_in("all.csv"))
    counts = json.loads(fine("plan", "camp", "--budget", 90, "--json"))["counts"]
    assert counts["price"] == 0
    assert counts["style"] > 0


def test_advice_on_a_budget_counts_what_is_spent() -> None:
    homes()
    fine("order", "camp")
    fine("ingest", "camp", fill_in("all.csv"))
    assert "raise the budget to at least 63" in infeasible("plan", "camp", "--budget", 60)
    assert json.loads(fine("plan", "camp", "--budget", 63, "--json"))["counts"] == {
        "price": 1,
        "style": 0,
    }


def test_advice_on_a_cap_counts_what_is_bought() -> None:
    homes()
    fine("order", "camp")
    fine("order", "camp", "--cancel", 1)
    under("style", "least = 4")
    change(r"\Z", '\n[[cap]]\nname = "hours"\nlimit = 3\nuse = { style = 1 }\n')
    told = infeasible("plan", "camp")
    assert (
        "least of style takes 4 of 'hours' with what is bought, its limit is 3: raise the limit"
        " to 4" in told
    )


@pytest.mark.parametrize("key", ["least", "frozen"])
def test_nobody_is_told_to_raise_a_pool(key: str) -> None:
    homes()
    under("style", f"{key} = 1000")
    told = infeasible("check", "camp")
    assert f"{key} of style is 1000, what can be labelled is 36: lower {key}" in told
    assert "pool" not in told


KINDS_OF_VALUES = (
    '"x"',
    '""',
    "7",
    "-1",
    "2.5",
    "nan",
    "true",
    "[]",
    '["x"]',
    "[{}]",
    "[[1]]",
    "{}",
    "{ a = 1 }",
)
DATES = ("2026-01-02", "2026-01-02T03:04:05", "03:04:05")
WRITTEN = """budget = 60
method = "neutral"
trainings = 0
seed = 0
conflicts = "first"
[data]
name = "table"
root = "homes.csv"
id = "a"
group = "b"
drop = ["c"]
delimiter = ","
image_size = 8
rows = "x"
[training]
network = "usual"
weights = "w"
steps = 1
epochs = 1
batch_size = 1
optimiser = "adam"
trunk_rate = 1.0
head_rate = 1.0
weight_decay = 1.0
device = "cpu"
precision = "auto"
[[task]]
name = "price"
cost = 3
have = 1
least = 0
most = 9
weight = 1
frozen = 3
lot = 1
fee = 1
tiers = [{ after = 5, cost = 2 }]
pool = 3
implies = []
gain = 1
kind = "classification"
classes = ["x", "y"]
metric = "accuracy"
loss_weight = 1.0
[[cap]]
name = "hours"
limit = 5
use = { price = 1 }
"""


@pytest.mark.parametrize(
    "number", [at for at, line in enumerate(WRITTEN.splitlines()) if "=" in line]
)
def test_any_value_for_any_key_is_fine_or_said(number: int) -> None:
    lines = WRITTEN.splitlines()
    key = lines[number].partition(" = ")[0]
    for value in (*KINDS_OF_VALUES, *DATES):
        for budget in ("60", "[]"):
            text = "\n".join([*lines[:number], f"{key} = {value}", *lines[number + 1 :]])
            with contextlib.suppress(al.InputError):
                parse_settings(text.replace("budget = 60", f"budget = {budget}", 1))


@pytest.mark.parametrize("table", ["data", "training", "task", "cap", "unknown"])
def test_any_value_for_a_table_is_fine_or_said(table: str) -> None:
    parts = re.split(r"^(?=\[)", WRITTEN, flags=re.MULTILINE)
    rest = "".join(part for part in parts if not part.lstrip("[").startswith(f"{table}]"))
    for value in (*KINDS_OF_VALUES, *DATES):
        for budget in ("60", "[]"):
            with contextlib.suppress(al.InputError):
                parse_settings(
                    f"{table} = {value}\n" + rest.replace("budget = 60", f"budget = {budget}", 1)
                )


def test_a_method_that_is_a_list_is_said_with_its_line() -> None:
    homes()
    line = change("^method = .*$", 'method = ["x"]')
    assert refused("status", "camp").startswith(
        f"error: camp/campaign.toml:{line}: method: unknown"
    )


def test_labels_that_a_changed_kind_can_not_have_are_said() -> None:
    homes()
    fine("order", "camp")
    fine("ingest", "camp", fill_in("some.csv", 0, 5))
    line = under("price", 'kind = "classification"')
    for command in ("check", "status", "plan"):
        told = allot(command, "camp")
        assert told.exit_code == 2
        assert (
            f"camp/campaign.toml:{line}: task 'price': kind: it is classification now"
            in told.output
        )
        assert 'put kind = "regression" back' in told.output
    change('^kind = "classification"', 'kind = "regression"')
    fine("check", "camp")


def test_labels_of_a_class_that_was_taken_back_are_said() -> None:
    homes()
    under("style", 'classes = ["modern", "old", "x"]')
    Path("x.csv").write_text("instance,style\n4,x\n5,x\n")
    fine("ingest", "camp", "x.csv")
    line = change(r'^classes = \["modern", "old", "x"\]', 'classes = ["modern", "old"]')
    told = allot("check", "camp")
    assert told.exit_code == 2
    assert f"camp/campaign.toml:{line}: task 'style': classes: " in told.output
    advice = re.search(r"classes = \[.*\]", told.output)
    assert advice is not None
    change(r'^classes = \["modern", "old"\]', advice[0])
    fine("check", "camp")


@pytest.mark.parametrize(("size", "is_fine"), [(1_000_000, True), (1_000_001, False)])
def test_a_batch_of_millions_is_a_mistake(size: int, is_fine: bool) -> None:
    homes()
    line = change(r"^\[training\]$", f"[training]\nbatch_size = {size}")
    told = allot("check", "camp")
    assert told.exit_code == (0 if is_fine else 2)
    assert (
        is_fine
        or f"camp/campaign.toml:{line}: training: batch_size: {size} is above 1000000"
        in told.output
    )


def test_decimal_commas_are_no_words() -> None:
    homes()
    table = Path("homes.csv").read_text().replace(",", ";").replace(".", ",")
    Path("homes.csv").write_text(table)
    change(r"^\[data\]$", '[data]\ndelimiter = ";"')
    told = allot("check", "camp")
    assert told.exit_code == 2
    for name in ("area", "age", "price"):
        assert f"homes.csv: column '{name}': its numbers have decimal commas (" in told.output
    assert "write decimal points" in told.output
    assert "garden" not in told.output
    under("price", 'kind = "regression"')
    assert "is not a number; write a decimal point" in allot("check", "camp").output
    Path("homes.csv").write_text(table.replace(",", "."))
    fine("check", "camp")


@pytest.mark.parametrize("cells", [("1,2", "b"), ("a,5", "b,5"), ("1,2,3", "4,5,6"), ("x", "")])
def test_words_with_commas_are_words(cells: tuple[str, str]) -> None:
    from allotment.data.columns import Column, check_commas

    check_commas(Column("a", words=cells))
    with pytest.raises(al.InputError, match="decimal commas"):
        check_commas(Column("a", words=("1,5", "", "2", "-1.234,5")))


@pytest.mark.parametrize(
    ("pattern", "new", "what"),
    [
        (
            r"^\[data\]$",
            '[data]\ndelimiter = "ab"',
            "data: delimiter: 'ab' is not a single character",
        ),
        (r"^\[data\]$", '[data]\ndelimiter = "x"', "data: delimiter: "),
        (r"^root = .*$", 'root = ""', "data: root: is empty; write where the data lie"),
        (r'^name = "style"$', 'name = "style"\ntiers = {}', "task 'style': tiers: is empty"),
    ],
)
def test_settings_that_do_not_fit_the_table_are_said_with_their_line(
    pattern: str, new: str, what: str
) -> None:
    homes()
    line = change(pattern, new)
    told = allot("check", "camp")
    assert told.exit_code == 2
    assert told.output.startswith(f"camp/campaign.toml:{line}: {what}")


def test_more_labels_to_begin_with_than_there_are_is_said_with_its_line() -> None:
    homes()
    under("price", "have = 3")
    line = under("style", "have = 50")
    told = allot("check", "camp")
    assert told.exit_code == 2
    assert told.output.startswith(
        f"camp/campaign.toml:{line}: task 'style': have: 50 labels wanted"
    )


@pytest.mark.parametrize("line", ['kind = "regression"', 'classes = ["x"]'])
def test_a_line_of_the_table_is_not_taken_for_one_of_the_settings(line: str) -> None:
    homes()
    under("style", line)
    told = allot("check", "camp")
    assert told.exit_code == 2
    assert told.output.startswith("homes.csv:2: row 1, column 'style': ")


def test_an_order_whose_sheet_can_not_be_written_is_said_to_be_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    homes()
    with monkeypatch.context() as patch:
        patch.setattr(
            "allotment.files.fill",
            lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")),
        )
        told = refused("order", "camp", "-o", "there.csv")
    assert "there.csv: can't be written" in told
    assert "order 1: is placed all the same; to write its sheet: allot order camp -o FILE" in told
    assert "60 on order" in fine("status", "camp")
    fine("order", "camp", "-o", "again.csv")
    assert Path("again.csv").read_text().count("price") == 20


@pytest.mark.parametrize("name", ["sheet.xlsx", "-", "sheet", "sheet.csv.gz"])
def test_a_sheet_has_a_name_that_says_what_it_is(name: str) -> None:
    homes()
    assert "ends in .csv, .tsv, .txt, .jsonl or .ndjson" in refused("order", "camp", "-o", name)
    assert not Path(name).exists()
    assert "0 on order" in fine("status", "camp")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "jsonl", "ndjson"])
def test_a_sheet_of_any_name_comes_back(suffix: str) -> None:
    homes()
    path = Path(f"sheet.{suffix}")
    fine("order", "camp", "-o", path)
    text = path.read_text()
    empty, filled = (
        (r'"label": null', '"label": 1.5') if "json" in suffix else (r"(?<=[,\t])$", "1.5")
    )
    path.write_text(re.sub(empty, filled, text, flags=re.MULTILINE))
    assert "20 new labels" in fine("ingest", "camp", path)


def test_a_folder_that_looks_like_an_option_is_quoted() -> None:
    assert quote("-dash") == "./-dash"
    assert shlex.split(quote("-a b")) == ["./-a b"]
    assert quote("a-b") == "a-b"


def test_a_hint_on_classes_that_are_numbers_names_the_numbers() -> None:
    begin({"a": NUMBERS, "b": {row: str(1 + row % 2) for row in range(20)}}, "--method", "neutral")
    Path("back.csv").write_text('instance,b\n22,3\n23,"1,0"\n')
    told = allot("ingest", "camp", "back.csv")
    advice = re.search(r"classes = \[.*?\]", told.output)
    assert advice is not None
    assert advice[0] == 'classes = ["1", "2", "3"]'
    under("b", advice[0])
    assert "1 new label" in allot("ingest", "camp", "back.csv").output
