"""Tasks that are renamed in mid-campaign: what was bought, ordered and trained goes on under the
new name."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from helpers.campaigns import begin, fill, fine, refused, rows, sheet, shorten, write

import allotment as al
from allotment.campaign.campaign import Campaign
from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels
from allotment.data.renamed import Renamed, rename_targets
from allotment.estimates.estimates import Estimates
from allotment.settings.settings import parse_settings

ANSWERS = {"size": lambda number: f"{3 + number % 7 / 10}", "look": "new"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def rename(folder: Path, old: str = "size", new: str = "extent", was: str | None = "size") -> None:
    """Give a task another name, as a user would."""
    path = folder / "campaign.toml"
    said = f'name = "{new}"\n' + ("" if was is None else f'was = "{was}"\n')
    path.write_text(path.read_text().replace(f'name = "{old}"\n', said))


def rename_column(old: str = "size", new: str = "extent") -> None:
    path = Path("table.csv")
    head, _, rest = path.read_text().partition("\n")
    path.write_text(f"{head.replace(old, new)}\n{rest}")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign that has estimates and an order, of which half came back and one
    label was corrected."""
    place = tmp_path_factory.mktemp("begun")
    with contextlib.chdir(place):
        folder = begin("camp", table=rows(id_=True), budget=60)
        path = folder / "campaign.toml"
        path.write_text(path.read_text().replace("[data]\n", '[data]\nid = "name"\n', 1))
        shorten(folder, trainings=8)
        fine("estimate", folder, "--workers", 0)
        fine("order", folder)
        filled = sheet(folder / "order-1.csv")
        for number, row in enumerate(filled[: len(filled) // 2]):
            row["label"] = f"{3 + number % 7 / 10}" if row["task"] == "size" else "new"
        write(Path("half.csv"), filled)
        fine("ingest", folder, "half.csv")
        first = next(row for row in filled if row["task"] == "size" and row["label"])
        named = ("--task", "size", "--instance", first["instance"])
        fine("correct", folder, *named, "--value", "3.25")
        shorten(folder, budget=90)  # so that there is money left whatever the order took
    return place


@pytest.fixture
def ordered(begun: Path, tmp_path: Path) -> Path:
    """A copy of it, here."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    return Path("camp")


def describe(folder: Path) -> list[object]:
    """All that is known of a campaign, with the new name for the old one."""
    status = json.loads(fine("status", folder, "--json"))
    history = json.loads(fine("history", folder, "--all", "--json"))
    exported = Path(folder).parent / "all.csv"
    fine("export", folder, "-o", exported, "--force")
    texts = [exported.read_text(), Path("all.labels.csv").read_text()]
    found = [status["spent"], status["on_order"], status["tasks"], history, *texts]
    return json.loads(json.dumps(found).replace('"size"', '"extent"').replace("size", "extent"))


@pytest.mark.parametrize("with_column", [False, True])
def test_labels_orders_and_history_go_on_under_the_new_name(
    ordered: Path, with_column: bool
) -> None:
    folder = ordered
    before = describe(folder)
    rename(folder)
    if with_column:
        rename_column()
    assert describe(folder) == before
    assert "size" not in fine("status", folder)
    assert fine("history", folder, "--task", "size") == fine("history", folder, "--task", "extent")
    # the sheet that is out names the task as it was called then
    filled = fill(folder / "order-1.csv", Path("rest.csv"), {"size": 3.4, "look": "new"})
    told = fine("ingest", folder, filled)
    assert "new labels" in told
    assert "no order asked for" not in told
    assert "on order" in (status := fine("status", folder))
    assert "0 on order" in status
    # and what is known is known again
    assert "was taken in before" in fine("ingest", folder, "half.csv")
    fine("verify", folder)
    told = fine("estimate", folder, "--workers", 0)
    assert "8 trainings of earlier rounds count" in told or "corrected" in told


def test_a_report_of_what_was_bought_before_has_the_new_name() -> None:
    folder = begin("camp", budget=20)
    shorten(folder, method='"neutral"')
    fine("plan", folder)
    fine("order", folder, "--all")
    fine("ingest", folder, fill(folder / "order-1.csv", Path("all.csv"), ANSWERS))
    rename(folder)
    rename_column()
    fine("report", folder, "-o", "report.html")
    page = Path("report.html").read_text()
    assert "<bdi>extent</bdi>" in page
    assert "<bdi>size</bdi>" not in page


def test_trainings_are_those_of_the_old_name() -> None:
    folder = begin("camp", table=rows(60))
    shorten(folder, trainings=8)
    before = json.loads(fine("estimate", folder, "--workers", 0, "--json"))
    fine("evaluate", folder, "--workers", 0)
    scores = Campaign(folder).find_scores()
    plan = json.loads(fine("plan", folder, "--json"))["counts"]
    rename(folder)
    now = json.loads(fine("plan", folder, "--json"))["counts"]
    assert now == {"extent": plan["size"], "look": plan["look"]}
    told = fine("estimate", folder, "--workers", 0)
    assert "Everything was measured already" in told
    assert "size" not in told
    after = json.loads(fine("estimate", folder, "--json"))
    assert after["estimates"]["worths"] == before["estimates"]["worths"]
    assert after["estimates"]["tasks"] == ["extent", "look"]
    assert set(after["scores"]) <= {"extent", "look"}
    found = Campaign(folder).find_scores()
    assert found is not None
    assert scores is not None
    assert found["extent"].mean == scores["size"].mean
    page = Path("report.html")
    fine("report", folder, "-o", page)
    assert "extent" in page.read_text()
    fine("train", folder, "-o", "model")
    assert "extent" in al.load_model("model").targets[0].name


def test_later_rounds_count_the_trainings_of_earlier_ones(ordered: Path) -> None:
    folder = ordered
    rename(folder)
    told = fine("estimate", folder, "--workers", 0)
    assert "8 trainings of earlier rounds count, too." in told
    # an order of the new name costs what it should, and comes back
    fine("order", folder, "--cancel", 1)
    fine("plan", folder)
    fine("order", folder)
    path = folder / "order-2.csv"
    assert {row["task"] for row in sheet(path)} <= {"extent", "look"}
    answers = {"extent": 3.4, "look": "new"}
    assert "new labels" in fine("ingest", folder, fill(path, Path("second.csv"), answers))
    fine("verify", folder)
    fine("pack", folder, "-o", "camp.zip")
    fine("unpack", "camp.zip", "copy")
    # and again by a third name, whose first one is said
    rename(folder, old="extent", new="volume", was=None)
    assert "volume" in fine("status", folder)


def test_what_can_not_be_is_said_with_the_line(ordered: Path) -> None:
    folder = ordered
    path = folder / "campaign.toml"
    text = path.read_text()

    def said(new: str, was: str) -> str:
        path.write_text(text)
        rename(folder, new=new, was=was)
        return refused(2, "status", folder)

    assert "'sise' was never a task of this campaign; did you mean 'size'" in said("e", "sise")
    assert "'look' is a task of its own here" in said("extent", "look")
    assert "is the name that it has; leave it out" in said("size", "size")
    path.write_text(text.replace("cost = 5\n", 'cost = 5\nwas = "size"\n'))
    rename(folder)
    assert "is what 'extent' was, too" in refused(2, "status", folder)
    path.write_text(text.replace("cost = 5\n", "cost = 5\nwas = 3\n"))
    assert "campaign.toml:" in (told := refused(2, "status", folder))
    assert "3 is not the name that the task had before, in quotes" in told
    # a second name that it had in between
    path.write_text(text)
    rename(folder)
    fine("plan", folder)
    rename(folder, old="extent", new="volume", was=None)
    path.write_text(path.read_text().replace('was = "size"', 'was = "extent"'))
    told = refused(2, "status", folder)
    assert "'extent' is what 'size' was called for a while; write its first name: was =" in told
    # both columns, of which one would be learned from
    path.write_text(text)
    rename(folder)
    table = [row | {"extent": row["size"]} for row in sheet(Path("table.csv"))]
    write(Path("table.csv"), table)
    told = refused(2, "status", folder)
    assert "the data have both 'extent' and 'size'" in told
    assert 'drop = ["size"]' in told


def test_a_rename_that_is_not_said_is_asked_about(ordered: Path) -> None:
    folder = ordered
    path = folder / "campaign.toml"
    text = path.read_text()
    rename(folder, was=None)
    ask = """'size' is gone and 'extent' is new: if it was renamed, write was = "size\""""
    # the column is called as before: then nothing can be read
    assert ask in refused(2, "status", folder)
    rename_column()
    for command in ("status", "check"):
        assert ask in " ".join(fine(command, folder).split())
    assert ask in " ".join(fine("estimate", folder, "--dry-run", "--workers", 0).split())
    # also after the settings are on record, as long as labels are lost
    fine("estimate", folder, "--workers", 0)
    assert ask in " ".join(fine("status", folder).split())
    # and it can be said then
    path.write_text(text)
    rename(folder)
    told = fine("status", folder)
    assert "is gone" not in told
    assert "size" not in told
    # labels that came under the new name in between can't be told from the others
    path.write_text(text)
    rename(folder, was=None)
    write(Path("more.csv"), [{"id": "r001", "extent": "3.3"}])
    fine("ingest", folder, "more.csv")
    path.write_text(text)
    rename(folder)
    assert "choose another name" in refused(2, "status", folder)


def test_a_task_that_takes_the_place_of_another_is_no_rename() -> None:
    table = [row | {"worth": f"{index % 9}.5"} for index, row in enumerate(rows())]
    folder = begin("camp", "--drop", "worth", table=table)
    path = folder / "campaign.toml"
    before = path.read_text()
    text = before.replace('drop = ["worth"]\n', 'drop = ["look"]\n')
    at = text.index('[[task]]\nname = "look"')
    path.write_text(text[:at] + '[[task]]\nname = "worth"\ncost = 2\nkind = "regression"\n')
    assert "is gone" not in fine("status", folder)  # nothing was measured or bought yet


def test_every_part_of_the_settings_goes_by_the_name_on_record() -> None:
    text = """budget = 9
[data]
name = "scenes"
count = 60
size = 16
[[task]]
name = "shade"
was = "depth"
cost = 1
have = 5
metric = ["rmse", "mae"]
[[cap]]
name = "hours"
limit = 4
use = { shade = 0.5 }
"""
    settings = parse_settings(text)
    kept = settings.kept
    assert (settings.names, kept.names) == (("shade",), ("depth",))
    assert (kept.starts, dict(kept.caps[0].use)) == (
        {"depth": 5},
        {"depth": settings.caps[0].use["shade"]},
    )
    assert (
        kept.recipe
        == parse_settings(text.replace('was = "depth"\n', "").replace("shade", "depth")).recipe
    )
    assert kept.kept is kept


def test_data_go_by_other_names() -> None:
    import numpy as np

    targets = (Target("a", "regression"), Target("b", "classification", ("x", "y")))
    labels = {"a": np.arange(3.0), "b": np.array([0, 1, 0])}
    data = ArrayData("t", targets, np.zeros((3, 2), np.float32), labels)
    other = rename_targets(data, {"a": "c"})
    assert [target.name for target in other.targets] == ["c", "b"]
    assert other.fingerprint != data.fingerprint
    assert rename_targets(other, {"c": "a"}).fingerprint == data.fingerprint
    wrapped = Renamed(data, other.targets)
    assert wrapped.values("c", np.array([2])).tolist() == [2.0]
    assert wrapped.known("b").all()
    assert wrapped.fingerprint == data.fingerprint
    assert wrapped.with_targets(other.targets[:1]).targets[0].name == "c"
    hand = {"c": np.array([True, False, False]), "b": np.ones(3, bool)}
    assert wrapped.with_labels(hand, {}, "f").known("c").tolist() == [True, False, False]
    assert Labels({"c": [1]}).counts == {"c": 1}


def test_estimates_go_by_other_names() -> None:
    about = {
        "fallbacks": ["a"],
        "rates": {"a": 0.9},
        "measured": {"points": {"a": {}}, "transfer": {"tasks": ["a"]}},
    }
    some = Estimates(("a",), (9,), worths=[[[1.0]]], shapes=[[0.5]], about=about)
    other = some.rename({"a": "b"})
    assert (other.tasks, some.tasks) == (("b",), ("a",))
    assert other.about == {
        "fallbacks": ["b"],
        "rates": {"b": 0.9},
        "measured": {"points": {"b": {}}, "transfer": {"tasks": ["b"]}},
    }
