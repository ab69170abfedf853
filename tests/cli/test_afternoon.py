"""A new user's afternoon: a table with four targets, two rounds, everything asked on the way."""

from __future__ import annotations

import csv
import json
import random
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import allot, fine, refused, sheet, write

import allotment as al

ROWS = 140
FLAGS = ("draughty", "damp", "bright")
TARGETS = "heating,cooling,grade,flags"
COSTS = ("--cost", "heating=3", "--cost", "cooling=2", "--cost", "grade=1", "--cost", "flags=2")


def make_buildings() -> tuple[list[dict[str, str]], dict[str, dict[int, str]]]:
    """Rows as people have them, most of them not labelled, and all answers."""
    rng = random.Random(7)
    table, truth = [], dict[str, dict[int, str]]()
    for number in range(1, ROWS + 1):
        area, age = rng.uniform(40, 200), rng.randrange(100)
        built = date(2024, 1, 1) + timedelta(days=rng.randrange(700))
        wall = rng.choice(["brick", "wood", "concrete"])
        heat = 5 + area / 20 + age / 10 + rng.gauss(0, 1)
        answers = {
            "heating": f"{heat:.1f}",
            "cooling": f"{3 + area / 30 + built.month / 6 + rng.gauss(0, 0.8):.1f}",
            "grade": "ABC"[(heat > 12) + (heat > 17)],
            "flags": "|".join(flag for flag in FLAGS if rng.random() < (0.7 if age > 50 else 0.2))
            or "|",
            "smell": "yes" if age > 60 else "no",
        }
        for task, answer in answers.items():
            truth.setdefault(task, {})[number] = answer
        row = {
            "surveyed": built.strftime("%d.%m.%Y"),
            "wall": wall,
            "area": f"{area:.1f}".replace(".", ",") if rng.random() > 0.05 else "",
            "age": str(age),
            "country": "DE",
        }
        shares = {"heating": 0.35, "cooling": 0.4, "grade": 0.3, "flags": 0.3, "smell": 0.2}
        for task, share in shares.items():
            known = rng.random() < share
            row[task] = answers[task].replace(".", ",") if known else ""
        table.append(row)
    return table, truth


def save(table: list[dict[str, str]]) -> Path:
    path = Path("buildings.csv")
    with path.open("w", newline="", encoding="cp1252") as file:
        writer = csv.DictWriter(file, list(table[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(table)
    return path


def answer(order: Path, truth: dict[str, dict[int, str]], slip: bool) -> Path:
    """The sheet of an order, filled in; with a number that lost its point, if wanted."""
    rows = sheet(order)
    for row in rows:
        row["label"] = truth[row["task"]][int(row["instance"])]
    if slip:
        wrong = next(row for row in rows if row["task"] == "heating")
        wrong["label"] = str(float(wrong["label"]) * 1000)
    return write(Path("filled.csv"), rows)


def edit(old: str, new: str) -> None:
    path = Path("energy/campaign.toml")
    text = path.read_text()
    assert re.search(old, text, flags=re.MULTILINE), (old, text)
    path.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE))


def read(*args: object) -> Any:
    return json.loads(fine(*args, "--json"))


@pytest.mark.timeout(600)
def test_an_afternoon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table, truth = make_buildings()
    root = save(table)

    # it begins with mistakes, each told with what to type
    begin = ("init", "energy", "--root", root, "--budget", 120, "--steps", 20, "--drop", "smell")
    told = refused(2, *begin, "--targets", TARGETS.replace("heating", "heatng"), *COSTS)
    assert "target 'heatng': is not a column of the table; did you mean 'heating'?" in told
    told = refused(2, *begin, "--targets", TARGETS, *COSTS, "--metric", "grade=mae")
    assert "'mae' does not score a task of kind classification; known: " in told
    looks = ("--metric", "heating=r2", "--metric", "heating=MAE", "--metric", "grade=f1")
    told = fine(*begin, "--targets", TARGETS, *COSTS, *looks)
    assert "cells are separated by ';'" in told
    assert "numbers have decimal commas" in told
    columns = told.partition("taken as")[2]
    assert re.search(r"target +heating \(regression; guessed\), cooling", columns)
    assert re.search(r"date or time +surveyed \(day first", columns)
    assert re.search(r"category +wall \(3 numbers\)", columns)
    assert "country" in columns  # left out, since it is always the same
    assert "Scored: heating by R2 and MAE; cooling by MAE; grade by F1; flags by Jaccard" in told
    assert told.endswith("Next: allot estimate energy\n")
    edit(r"^budget = 120$", "budget = 120\ntrainings = 12")

    # limits that clash are found at once, not after the trainings
    edit(r'^name = "flags"$', 'name = "flags"\nleast = 100')
    assert "least of flags takes 200" in refused(1, "estimate", "energy")
    edit(r"^least = 100\n", "")
    edit(r'^name = "heating"$', 'name = "heating"\nleast = 8')
    told = fine("estimate", "energy", "--workers", 0)
    assert told.count("Order now: ") == 1
    first = re.search(r"Order now: .*", told)
    assert first is not None

    # one proposal, and scores in the tasks' own metrics, on every page
    plan = fine("plan", "energy")
    assert first[0] in plan
    assert first[0] in fine("status", "energy")
    fine("report", "energy")
    page = Path("energy/report.html").read_text()
    assert first[0] in page.replace("\u00a0", " ")  # which keeps % on the line of its number
    assert re.search(r"heating .* R2 +-?\d\.\d+ \(-?\d\.\d+ to \d\.\d+\)", plan)
    assert "a value of" not in plan
    scores = read("plan", "energy")["scores"]
    assert scores["heating"]["metric"] == "r2"
    now, then = (scores["cooling"][when]["middle"] for when in ("now", "after"))
    if then < now:
        fine("cheapest", "energy", "--reach", f"cooling:mae={(now + then) / 2}")
    told = refused(1, "cheapest", "energy", "--reach", "cooling=0.0001")
    assert "cooling: MAE 0.0001 is out of reach: it is" in told
    told = allot("cheapest", "energy", "--task", "heating", "--target", "0.8").output
    assert "targets are scores: --reach TASK=SCORE" in told

    # a round, with a slip of the pen in it
    fine("order", "energy", "-o", "order.csv")
    told = fine("ingest", "energy", answer(Path("order.csv"), truth, slip=True))
    assert "is far outside what is known" in told
    held = re.search(r"'heating' of '(\d+)'", told)
    assert held is not None
    right = truth["heating"][int(held[1])]
    told = fine("correct", "energy", "--task", "heating", "--instance", held[1], "--value", right)
    assert f"heating of {held[1]} is {float(right):g} now" in told
    assert "held" in fine("history", "energy")
    for command in ("status", "plan"):
        assert fine(command, "energy").startswith("Out of date: "), command
    fine("report", "energy")
    assert "Out of date: " in Path("energy/report.html").read_text()

    # things change: a price, a task that is not bought any more, hours, and a new task
    edit(r"^cost = 3$", "cost = 4")
    edit(r'^name = "grade"$', 'name = "grade"\nfrozen = 0')
    edit('"smell", ', "")
    path = Path("energy/campaign.toml")
    more = '\n[[task]]\nname = "smell"\ncost = 1\n\n[[cap]]\nname = "hours"\nlimit = 20\n'
    path.write_text(path.read_text() + more + "use = { heating = 0.5, cooling = 0.25 }\n")
    fine("check", "energy")
    told = fine("estimate", "energy", "--workers", 0)
    assert "buy 0 of grade" not in told
    counts = read("plan", "energy")["counts"]
    assert counts["grade"] == 0
    assert 0.5 * counts["heating"] + 0.25 * counts["cooling"] <= 20
    fine("order", "energy", "-o", "second.csv", "--all")
    assert {row["task"] for row in sheet(Path("second.csv"))} <= {*TARGETS.split(","), "smell"}
    fine("ingest", "energy", answer(Path("second.csv"), truth, slip=False))

    # how good is it now, and everything to take away
    told = fine("evaluate", "energy", "--workers", 0)
    assert re.search(r"heating +R2 .*\n.*heating? *MAE|heating +R2", told)
    assert "best constant" in told
    fine("export", "energy", "-o", "all.csv")
    prices = [float(row["price"] or 0) for row in sheet(Path("all.labels.csv"))]
    assert sum(prices) == pytest.approx(float(read("status", "energy")["spent"]))
    fine("train", "energy", "-o", "model")
    fine("predict", "model", "--root", root, "-o", "predictions.csv")
    found = sheet(Path("predictions.csv"))
    assert len(found) == ROWS
    assert {*TARGETS.split(","), "smell"} <= set(found[0])
    assert repr(al.Campaign("energy")) == "Campaign('energy')"
