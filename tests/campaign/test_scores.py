"""How good the model of a campaign is now, from the labels at hand alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.campaigns import allot, begin, fine, refused, rows, write

import allotment as al
from allotment.campaign.jobs import list_validations
from allotment.ledger.store import Store


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def done(folder: Path) -> int:
    with Store.open(folder, write=False) as store:
        return len(store.results("validation"))


def say_metric(folder: Path, task: str, text: str) -> None:
    """Write what a task is scored by, in the place of what was said before."""
    head = rf'(name = "{task}"\n(?:#.*\n)?cost = .*\n)(?:(?:#.*\n)?metric = .*\n)?'
    file = folder / "campaign.toml"
    file.write_text(re.sub(head, rf"\1metric = {text}\n", file.read_text()))


def test_a_partly_labelled_campaign_says_how_good_its_model_is() -> None:
    folder = begin("camp", "--metric", "size=R2", "--metric", "size=mae")
    assert al.Campaign(folder).find_scores() is None
    result = allot("evaluate", folder, "--workers", 0)
    assert result.exit_code == 0, result.output
    assert re.search(r"^size +R2 +-?\d\S* +-?\d\S* to -?\d\S* +0 +higher +45$", result.stdout, re.M)
    assert re.search(r"^size +MAE .* lower +45$", result.stdout, re.M)
    assert re.search(r"^look +accuracy .* higher +30$", result.stdout, re.M)
    assert "asked of a model that was trained on the others" in result.stdout
    assert re.search(r"^Cross-validation: 5 trainings, about \d+ s\.$", result.stderr, re.M)
    assert done(folder) == 1
    again = allot("evaluate", folder, "--workers", 0)
    assert (again.stdout, done(folder)) == (result.stdout, 1)  # looked up
    assert "Cross-validation" not in again.stderr
    found = json.loads(fine("evaluate", folder, "--json", "--workers", 0))
    assert [(row["task"], row["metric"]) for row in found["scores"]] == [
        ("size", "r2"),
        ("size", "mae"),
        ("look", "accuracy"),
    ]
    board = al.Campaign(folder).find_scores()
    assert board is not None
    assert board.to_dict() == found
    assert board["size"].metric == "r2"


def test_another_metric_is_computed_from_the_same_answers() -> None:
    folder = begin("camp")
    board = al.Campaign(folder).evaluate(workers=0)
    assert (board["size"].metric, done(folder)) == ("mae", 1)
    for text, names in (
        ('["mae", "rmse"]', ["mae", "rmse"]),
        ('["R2", "loss"]', ["r2", "loss"]),
        ('"rmse"', ["rmse"]),
    ):
        say_metric(folder, "size", text)
        found = al.Campaign(folder).find_scores()
        assert found is not None
        assert [each.metric for each in found.scores if each.task == "size"] == names
    say_metric(folder, "size", '"mae"')
    same = al.Campaign(folder).find_scores()
    assert same is not None
    assert same["size"] == board["size"]
    # a new label is another matter
    table = rows()
    table[1]["size"] = "4.1"
    write(Path("table.csv"), table)
    assert al.Campaign(folder).find_scores() is None
    al.Campaign(folder).evaluate(workers=0)
    assert done(folder) == 2


def test_looking_at_another_metric_invalidates_no_training() -> None:
    folder = begin("camp")
    before = al.Campaign(folder)
    keys = [job.key for job in before.list_jobs(before.look())]
    say_metric(folder, "look", '["accuracy", "f1"]')  # planned with as before, but said
    said = [job.key for job in before.list_jobs(before.look())]
    say_metric(folder, "look", '["accuracy", "balanced accuracy", "AUC"]')
    assert [job.key for job in before.list_jobs(before.look())] == said
    say_metric(folder, "look", '"accuracy"')
    assert [job.key for job in before.list_jobs(before.look())] == said
    assert keys != said  # as it was before there were several
    assert al.Campaign(folder).look().settings.recipe["targets"] == {"look": {"metric": "accuracy"}}


def test_metrics_that_do_not_fit_are_refused_with_those_that_do() -> None:
    write(Path("table.csv"), rows())
    costs = ("--cost", "size=1", "--cost", "look=5", "--budget", 90)
    given = ("--root", "table.csv", "--targets", "size,look", *costs)
    told = refused(2, "init", "camp", *given, "--metric", "size=auc", "--metric", "look=nonsense")
    assert "--metric size=roc_auc: 'roc_auc' does not score a task of kind regression" in told
    assert "known: mae, rmse, r2, loss" in told
    assert "--metric look=nonsense: 'nonsense' does not score a task of kind classification" in told
    assert "balanced_accuracy" in told
    assert "--metric shape: no such target" in refused(
        2, "init", "camp", *given, "--metric", "shape=mae"
    )
    shown = fine("init", "camp", *given, "--metric", "look=AUC", "--metric", "look=f1")
    assert "Scored: size by MAE; look by AUC and F1 (for another, such as R2" in shown
    assert 'metric = ["AUC", "f1"]' in Path("camp/campaign.toml").read_text()
    say_metric(Path("camp"), "size", '["mae", 3]')
    assert "['mae', 3] is not a text in quotes, or several in a list" in refused(
        2, "status", "camp"
    )


def test_complete_data_are_tried_out_unless_the_model_of_now_is_asked_for() -> None:
    folder = begin(
        "camp", "--have", "size=9", "--have", "look=8", table=rows(60, every=(1, 1)), budget=40
    )
    shown = fine("evaluate", folder, "--now", "--workers", 0)
    assert re.search(r"^size +MAE .* 9$", shown, re.M)
    told = allot("evaluate", folder, "--now", "--repeats", 2)
    assert "--now tries out no plan" in told.stderr


def test_too_few_labels_are_said_before_anything_is_trained() -> None:
    table = rows()
    for number, row in enumerate(table):
        row |= {
            "size": row["size"] if number < 8 else "",
            "look": row["look"] if number < 6 else "",
        }
    folder = begin("camp", table=table)
    told = refused(2, "evaluate", folder)
    assert "labels at hand: size 4, look 2: too few to tell how good a model is" in told


def test_jobs_are_alike_whatever_is_done_with_them() -> None:
    folder = begin("camp")
    state = al.Campaign(folder).look()
    first = [job.key for job in list_validations(state, "built-in")]
    assert first == [job.key for job in list_validations(al.Campaign(folder).look(), "built-in")]
    alone = al.Campaign(folder).evaluate(workers=0)
    other = begin("other")
    assert al.Campaign(other).evaluate(workers=1) == alone  # in a process of its own
