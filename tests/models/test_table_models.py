"""Models of learners for tables: saved by a campaign, asked without it."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.campaigns import allot, begin, fine, refused

import allotment as al
from allotment.errors import InputError
from allotment.learners.learner import train
from allotment.learners.plain_arrays import read_arrays, save_arrays


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALLOT_LEARNER", raising=False)


@pytest.mark.parametrize(
    ("more", "files", "words"),
    [
        ((), ["trusts.safetensors", "weights.safetensors"], "by the built-in learner,"),
        (
            ("--learner", "sklearn:Ridge"),
            ["rows.safetensors"],
            "the rows and labels that it was fitted to, and it is fitted again each time",
        ),
    ],
)
def test_new_tables_are_trained_and_asked_without_their_campaign(
    more: tuple[str, ...], files: list[str], words: str
) -> None:
    folder = begin("camp", *more)
    state = al.Campaign(folder).look()
    bench = al.Campaign(folder).set_up(state)
    expected = train(bench.learner, bench.labels, state.settings.seed)
    said = fine("train", folder, "-o", "model")
    assert ("rows and labels that it was fitted to: pass it on as you would" in said) == bool(more)
    assert sorted(path.name for path in Path("model/learner").iterdir()) == files
    assert words in Path("model/README.md").read_text()
    shutil.rmtree("camp")
    found = al.load_model("model").predict("table.csv")
    for task in ("size", "look"):
        wanted = bench.learner.predict(expected, task, np.arange(90))
        assert found[task].tobytes() == wanted.tobytes()
    fine("predict", "model", "--root", "table.csv", "-o", "p.csv")
    with open("p.csv", newline="") as file:
        assert {row["look"] for row in csv.DictReader(file)} <= {"new", "old"}


def test_a_model_names_no_learner_but_a_known_one() -> None:
    folder = begin("camp", "--learner", "sklearn:Ridge")
    fine("train", folder, "-o", "model")
    path = Path("model/model.json")
    plain = json.loads(path.read_text())
    for name, told in (
        ("sklearn:os.system", "there is no 'os.system'; known: HistGradientBoosting"),
        ("sklearn:" + "x" * 5000, "there is no 'xxx"),
        ("auto", "auto is settled once"),
        ("mine.py:make", "no file may name code"),
        ("nobody", "nobody"),
    ):
        path.write_text(json.dumps(plain | {"learner": name}))
        said = refused(2, "predict", "model", "--root", "table.csv")
        assert told in said
        assert len(said) < 1000
    # another one reads its own file, and finds that it is not there
    path.write_text(json.dumps(plain | {"learner": "built-in"}))
    assert "weights.safetensors: there is no such file" in refused(
        2, "predict", "model", "--root", "table.csv"
    )


def test_rows_of_another_version_are_not_fitted() -> None:
    folder = begin("camp", "--learner", "sklearn:Ridge")
    fine("train", folder, "-o", "model")
    rows = Path("model/learner/rows.safetensors")
    arrays, about = read_arrays(rows)
    save_arrays(rows, arrays, about | {"version": "1.4.0"})
    told = refused(2, "predict", "model", "--root", "table.csv")
    assert "was fitted by scikit-learn 1.4.0" in told
    assert "pip install scikit-learn==1.4.0" in told
    with pytest.raises(InputError, match="may fit it otherwise"):
        al.load_model("model").check()


def test_what_is_trained_by_another_learner_than_the_settings_name_is_saved_too() -> None:
    folder = begin("camp")
    result = allot("train", folder, "-o", "model", "--learner", "sklearn:DecisionTree")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("model/model.json").read_text())["learner"] == "sklearn:DecisionTree"
    fine("predict", "model", "--root", "table.csv", "-o", "p.csv")
