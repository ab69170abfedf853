"""A campaign from its first settings to its last label: what each verb does, and that stopping it
changes nothing."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.bounded import MEGABYTES, check_refused, run_bounded
from helpers.campaigns import allot, begin, fill, fine, refused, rows, sheet, shorten, write
from helpers.folders import make_voc
from safetensors.torch import save_file

import allotment as al
from allotment.advice.backtest import ALWAYS, Backtest
from allotment.campaign import starting
from allotment.campaign.campaign import Campaign, Measured
from allotment.campaign.evaluation import Evaluation, Trial
from allotment.campaign.jobs import size_of
from allotment.campaign.rounds import Account, price_of, rebase, take_rest
from allotment.data.source import find_networks
from allotment.estimates.levels import fit
from allotment.estimates.methods.response import ByResponse
from allotment.estimates.paper import Paper, PieceResult
from allotment.estimates.response import Response, join
from allotment.job import canonical
from allotment.learners.mobilenet import MobileNet
from allotment.learners.setups import find_setup
from allotment.ledger.store import Store
from allotment.quantiles import student
from allotment.settings.settings import parse_settings
from allotment.settings.template import write_template
from allotment.stock.stock import open_stock

ALLOT = [sys.executable, "-m", "allotment.cli"]
OWN = '''
import copy, os, signal
from pathlib import Path
import numpy as np
from allotment.data.labels import Labels
from allotment.learners.learner import Measure

class Means:
    """Answers with the mean of the labels it saw; the fewer, the more its seed moves it."""
    def __init__(self, data, seen):
        self.data, self.seen = data, seen
        self.tasks = tuple(target.name for target in data.targets)
    fork = staticmethod(copy.deepcopy)
    def steps(self, labels):
        return 1
    def start(self, labels, seed):
        return {"labels": labels, "seed": seed, "answers": dict.fromkeys(self.tasks, 3.0)}
    def step(self, state, tasks):
        if gate := os.environ.pop("GATE", ""):
            Path(os.environ["READY"]).write_text("here")
            Path(gate).read_text()  # a named pipe: waits until somebody writes
        stop = Path(os.environ.get("STOP_FILE", "nowhere"))
        if stop.exists():
            how, left = stop.read_text().split()
            stop.write_text(f"{how} {int(left) - 1}")
            if int(left) == 0:
                stop.unlink()
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise KeyboardInterrupt
        for task in tasks:
            mine = state["labels"][task]
            values = mine.fill(lambda chosen: self.data.values(task, chosen)).astype(float)
            rng = np.random.default_rng([state["seed"], len(mine)])
            state["answers"][task] = values.mean() + rng.normal() / len(mine) ** 0.5
        return state
    def predict(self, state, task, instances):
        return np.full(len(instances), state["answers"][task])
    def score(self, state, task):
        seen = self.seen[task].instances if isinstance(self.seen, Labels) else self.seen
        known = seen[self.data.known(task)[seen]]
        error = np.abs(self.data.values(task, known) - state["answers"][task])
        error = error.mean() if len(known) else float("nan")
        return Measure(float(error), float(error), False)
    def with_validation(self, instances):
        return Means(self.data, instances)

def make(data, split):
    return Means(data, split.validation)
'''


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER", "STOP_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)


# --- settings ---


def test_what_init_writes_is_read_back_and_every_key_has_a_comment() -> None:
    data = {"name": "table", "root": 'it\'s "here"\x7f.csv', "id": "näme", "drop": ["a", "b"]}
    tasks = {
        "a": {"cost": "0.035", "kind": "regression"},
        'b "c"': {"cost": 20, "classes": ["x|y", "z"]},
    }
    training = {"network": "usual", "steps": 7, "device": "cpu", "precision": "float32"}
    text = write_template(data, tasks, '"100.50"', "response", training, trainings=12)
    settings = parse_settings(text)
    assert settings.data == data
    assert settings.training == training
    assert settings.names == ("a", 'b "c"')
    assert [task.cost for task in settings.tasks] == [Fraction(35, 1000), 20]
    assert (settings.budget, settings.trainings) == (Fraction(201, 2), 12)
    assert settings.targets == {"a": {"kind": "regression"}, 'b "c"': {"classes": ["x|y", "z"]}}
    lines = text.splitlines()
    seen: set[str] = set()
    for before, line in itertools.pairwise(lines):
        key = line.partition(" = ")[0]
        if " = " in line and not line.startswith("#") and key not in seen:
            assert before.startswith("#"), line
            seen.add(key)
    assert seen >= {"budget", "method", "seed", "name", "root", "cost", "steps", "device"}


def test_all_mistakes_at_once_each_with_its_line() -> None:
    text = """budget = "much"
metod = "response"
[data]
name = "tabel"
[training]
network = 3
learner = "mine.py:make"
steps = "many"
[[task]]
name = "a"
cost = -1
pool = 30
[[task]]
cost = 2
metric = 7
"""
    with pytest.raises(al.InputError) as caught:
        parse_settings(text)
    found = {(each.line, each.where): each.what for each in caught.value.mistakes}
    assert "did you mean 'method'?" in found[2, "metod"]
    assert "did you mean 'table'?" in found[4, "data: name"]
    assert (6, "training: network") in found
    assert "--learner" in found[7, "training: learner"]
    assert "whole number" in found[8, "training: steps"]
    assert (11, "task 'a': cost") in found
    assert "counted from the data" in found[12, "task 'a': pool"]
    assert (13, "task 2: name") in found
    assert (15, "task 2: metric") in found


def test_complete_data_need_labels_to_begin_with() -> None:
    text = 'budget = 9\n[data]\nname = "scenes"\n[[task]]\nname = "depth"\ncost = 1\n'
    with pytest.raises(al.InputError, match="have = 50"):
        parse_settings(text)
    assert parse_settings(text + "have = 4\n").starts == {"depth": 4}


def test_names_in_settings_are_those_that_exist() -> None:
    from allotment.learners.setups import SETUPS

    assert find_networks() == {name: s.data for name, s in SETUPS.items()}


SMALL = """budget = 9
[data]
name = "voc"
root = "."
[training]
network = "voc-small"
{edition}[[task]]
name = "classes"
cost = 1
have = 4
"""


def test_the_edition_of_a_network_is_a_part_of_every_key() -> None:
    """A campaign that says nothing began before there was another edition: its keys stay."""
    first = parse_settings(SMALL.format(edition=""))
    assert first.recipe["training"] == {"network": "voc-small"}
    second = parse_settings(SMALL.format(edition="edition = 2\n"))
    assert second.recipe["training"] == {"network": "voc-small", "edition": 2}
    assert second.unscored_recipe["training"] == second.recipe["training"]
    for wrong in (0, 4):
        with pytest.raises(al.InputError, match="the newest is 3") as caught:
            parse_settings(SMALL.format(edition=f"edition = {wrong}\n"))
        assert [each.line for each in caught.value.mistakes] == [7]


# --- beginning ---


def test_init_settles_the_edition_of_a_network_with_its_steps() -> None:
    root = make_voc(Path("VOC2012").absolute())
    save_file(MobileNet().state_dict(), "mobilenet.safetensors")
    given = ["--root", root, "--method", "neutral", "--budget", 9, "--have", "classes=1"]
    small = ["--network", "voc-small", "--weights", "mobilenet.safetensors"]
    fine("init", "camp", "--data", "voc", *given, *small, "--have", "segmentation=1")
    training = Campaign("camp").look().settings.training
    assert training["edition"] == 3
    assert training["batch_size"] == find_setup("voc-small", 3).recipe.batch_size


def test_init_takes_a_table_that_a_spreadsheet_wrote() -> None:
    plain = json.loads(fine("status", begin("plain"), "--json"))["tasks"]
    Path("table.csv").write_text(Path("table.csv").read_text().replace(",", ";"))
    given = ["--targets", "size,look", "--cost", "size=1", "--cost", "look=5", "--budget", 90]
    assert "separated by ';'" in fine("init", "sheet", "--root", "table.csv", *given)
    fine("init", "said", "--root", "table.csv", *given, "--delimiter", ";")
    for folder in ("sheet", "said"):
        assert json.loads(fine("status", folder, "--json"))["tasks"] == plain


def test_init_asks_for_the_weights_that_a_network_begins_with() -> None:
    told = refused(2, "init", "camp", "--data", "voc", "--root", ".", "--network", "voc-small")
    assert "--weights: is missing: voc-small keeps the first layers of a mobilenet" in told
    assert "such as --weights mobilenet.safetensors" in told
    assert not Path("camp").exists()


def test_init_counts_filled_cells_as_labels_and_empty_ones_as_the_pool() -> None:
    folder, table = begin(), rows()
    labelled = {name: sum(bool(row[name]) for row in table) for name in ("size", "look")}
    found = {row["name"]: row for row in json.loads(fine("status", folder, "--json"))["tasks"]}
    assert {name: row["have"] for name, row in found.items()} == labelled
    assert {name: row["pool"] for name, row in found.items()} == {
        n: len(table) - k for n, k in labelled.items()
    }
    assert {name: row["kind"] for name, row in found.items()} == {
        "size": "regression",
        "look": "classification",
    }


def test_init_names_everything_that_is_missing_and_makes_nothing() -> None:
    write(Path("table.csv"), rows())
    told = refused(
        2, "init", "camp", "--targets", "size,look", "--cost", "size=1", "--cost", "lok=2"
    )
    for words in (
        "--root: is missing",
        "task 'look': has no price",
        "--budget: is missing",
        "did you mean 'look'?",
    ):
        assert words in told
    given = [
        "--root",
        "table.csv",
        "--targets",
        "size,lok",
        "--cost",
        "size=1",
        "--cost",
        "lok=2",
        "--budget",
        "9",
    ]
    assert "did you mean 'look'?" in refused(2, "init", "camp", *given)
    right = ["look" if each == "lok" else each for each in given[:3]]
    right += ["size,look", *(each.replace("lok", "look") for each in given[4:8])]
    assert "'many' is not a number" in refused(2, "init", "camp", *right, "--budget", "many")
    assert not Path("camp").exists()


def test_a_second_init_leaves_the_first_alone() -> None:
    folder = begin()
    before = (folder / "campaign.toml").read_bytes()
    given = ["--root", "table.csv", "--targets", "size", "--cost", "size=1", "--budget", "9"]
    assert "is a campaign already" in refused(2, "init", folder, *given)
    assert (folder / "campaign.toml").read_bytes() == before


def test_an_init_that_was_stopped_before_its_settings_were_written_can_be_repeated() -> None:
    folder = begin()
    (folder / "campaign.toml").unlink()
    begin()
    assert "Next: allot estimate camp" in fine("status", folder)


def test_check_takes_a_campaign_and_lists_its_mistakes() -> None:
    folder = begin()
    assert "camp/campaign.toml is fine. Next: allot estimate camp" in fine("check", folder)
    shorten(folder, budget='"x"', seed=-3)
    result = allot("check", folder)
    assert result.exit_code == 2
    assert "camp/campaign.toml:1: seed: -3" in result.stdout
    assert "camp/campaign.toml:2: budget: 'x' is not a number" in result.stdout
    assert refused(2, "status", folder).count("\n") == 2


def test_data_that_are_gone_or_changed_say_so() -> None:
    folder = begin()
    Path("table.csv").rename("elsewhere.csv")
    assert "there is no such file" in refused(2, "plan", folder)
    write(Path("table.csv"), [{"width": "1", "size": "2"}])
    assert "'look'" in refused(2, "status", folder)
    assert "is not a campaign" in refused(2, "status", ".")


# --- labels at hand ---


def test_only_labels_at_hand_are_known_and_delivered_ones_are_laid_over() -> None:
    table = rows(30, every=(1, 1))
    begin("camp", "--have", "size=6", "--have", "look=5", table=table)
    settings = Campaign("camp").look().settings
    stock = open_stock(settings, Path("camp"))
    assert stock.have == {"size": 6, "look": 5}
    free = stock.candidates("size")
    assert not {stock.place[name] for name in free} & set(stock.parts.test.tolist())
    given = {
        "size": {free[0]: 7.5, free[1]: {"own": True}},
        "look": {stock.candidates("look")[0]: "old"},
    }
    later = open_stock(settings, Path("camp"), given)
    assert later.have == {"size": 8, "look": 6}
    data = later.open()
    assert data.known("size").sum() == 8
    place = [later.place[name] for name in free[:2]]
    np.testing.assert_allclose(
        data.values("size", np.array(place)), [7.5, float(table[place[1]]["size"])]
    )
    at = later.place[stock.candidates("look")[0]]
    assert data.targets[1].classes[int(data.values("look", np.array([at]))[0])] == "old"
    assert later.fingerprint != stock.fingerprint
    assert later.data.fingerprint == stock.data.fingerprint


def test_a_label_that_the_data_have_stays_unless_the_last_is_to_count() -> None:
    folder = begin()
    table = rows()
    # row 1 has a label, row 2 has none
    Path("back.csv").write_text("instance,size\n1,5.5\n2,4.5\n")
    fine("ingest", folder, "back.csv")
    for rule, wanted in (("first", float(table[0]["size"])), ("last", 5.5)):
        shorten(folder, conflicts=f'"{rule}"')
        data = Campaign(folder).look().stock.open()
        np.testing.assert_allclose(data.values("size", np.array([0, 1])), [wanted, 4.5], rtol=1e-6)


def test_delivered_masks_reach_the_training_data() -> None:
    from PIL import Image

    fine("init", "pics", "--data", "scenes", "--targets", "segmentation,classes", "--steps", 1,
    "--have",
         "segmentation=4", "--have", "classes=4")  # fmt: skip
    folder = Path("pics")
    shorten_data(folder, count=20, size=16)
    state = Campaign(folder).look()
    name = state.stock.candidates("segmentation")[0]
    mask = np.zeros((16, 16), dtype=np.uint8)
    mask[:8] = 4
    Path("masks/segmentation").mkdir(parents=True)
    Image.fromarray(mask).save(f"masks/segmentation/{name}.png")
    Image.fromarray(mask[:8]).save(
        f"masks/segmentation/{state.stock.candidates('segmentation')[1]}.png"
    )
    told = fine("ingest", folder, "masks")
    assert "1 new label" in told
    assert "16 x 8 pixels" in told
    stock = Campaign(folder).look().stock
    data = stock.open()
    np.testing.assert_array_equal(
        data.values("segmentation", np.array([stock.place[name]]))[0], mask
    )


def shorten_data(folder: Path, **keys: object) -> None:
    text = (folder / "campaign.toml").read_text()
    for key, value in keys.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    (folder / "campaign.toml").write_text(text)


def test_ids_must_be_unique_and_name_the_instances_of_orders() -> None:
    table = rows(id_=True)
    begin("camp", "--id", "name", "--method", "neutral", table=table)
    fine("order", "camp")
    ordered = sheet(Path("camp/order-1.csv"))
    by_name = {row["name"]: row for row in table}
    assert all(not by_name[row["instance"]][row["task"]] for row in ordered)
    assert all(row["width"] == f"{float(by_name[row['instance']]['width']):g}" for row in ordered)
    table[4]["name"] = table[2]["name"]
    write(Path("table.csv"), table)
    assert "row 5: has the id 'r002' of row 3" in refused(2, "status", "camp")


# --- money and rounds ---


def test_prices_of_later_rounds_go_on_where_the_first_stopped() -> None:
    rng = random.Random(3)
    for _ in range(50):
        tiers = {rng.randint(1, 20): rng.randint(1, 9), rng.randint(21, 40): rng.randint(1, 9)}
        tasks = [
            al.Task("a", cost=rng.randint(1, 9), fee=rng.randint(0, 30), tiers=tiers, most=80),
            al.Task("b", cost="0.35", least=3),
        ]
        problem = al.Problem(tasks, budget=5000, caps=[al.Cap("hours", 100, {"a": "0.5"})])
        came, waiting = (
            {"a": rng.randint(0, 30), "b": rng.randint(0, 9)},
            {
                "a": rng.randint(0, 20),
                "b": 0,
            },
        )
        account = Account(came, waiting)
        rest = take_rest(problem, account, {"a": 5, "b": 6}, {"a": 60, "b": 70})
        new = {"a": rng.randint(1, 25), "b": rng.randint(0, 9)}
        total = {name: came[name] + waiting[name] + new[name] for name in new}
        assert sum(price_of(problem, account)) + rest.price(new) == problem.price(total)
        assert rest.budget == 5000 - sum(price_of(problem, account))
        assert rest["a"].have == 5 + waiting["a"]
        assert rest["a"].most == 80 - came["a"] - waiting["a"]
        assert rest["b"].least == max(0, 3 - came["b"])
        assert rest.caps[0].limit == 100 - Fraction(1, 2) * account.bought("a")


@pytest.mark.parametrize("law", ["power", "geometric"])
def test_estimates_seen_from_more_labels_promise_what_is_left_of_their_gain(law: str) -> None:
    rng = np.random.default_rng(0)
    shapes = (
        rng.uniform(0.3, 0.9, size=(5, 2))
        if law == "power"
        else rng.uniform(0.9, 0.99, size=(5, 2))
    )
    before = al.Estimates(("a", "b"), (10, 40), rng.normal(size=(5, 2, 2)), shapes, law=law)
    later = rebase(before, {"a": 17, "b": 40})
    whole = before.gains_of({"a": 7 + 9, "b": 4}) - before.gains_of({"a": 7, "b": 0})
    np.testing.assert_allclose(later.gains_of({"a": 9, "b": 4}), whole, rtol=1e-9)


def test_a_neutral_campaign_in_two_rounds_spends_every_coin_once() -> None:
    folder = begin("camp", "--method", "neutral")
    plan = json.loads(fine("plan", folder, "--json"))
    assert plan["tranche"]["share"] == 1.0
    assert "Next: allot order camp" in fine("status", folder)
    told = fine("order", folder, "-o", "one.csv")
    ordered = sheet(Path("one.csv"))
    assert told.startswith("Order 1: ")
    table = rows()
    assert all(table[int(row["instance"]) - 1][row["task"]] == "" for row in ordered)
    assert {name: sum(row["task"] == name for row in ordered) for name in ("size", "look")} == plan[
        "counts"
    ]
    back = fill(Path("one.csv"), Path("back.csv"), {"size": 2.5, "look": "old"}, most=20)
    told = fine("ingest", folder, back)
    assert "20 new labels" in told
    status = json.loads(fine("status", folder, "--json"))
    spent = sum({"size": 1, "look": 5}[row["task"]] for row in ordered[:20])
    total = sum({"size": 1, "look": 5}[row["task"]] for row in ordered)
    assert (status["spent"], status["on_order"], status["left"]) == (
        str(spent),
        str(total - spent),
        str(90 - total),
    )
    assert "camp was" not in fine("ingest", folder, back)
    assert "nothing was changed" in fine("ingest", folder, back)
    assert json.loads(fine("status", folder, "--json")) == status
    rest = fill(Path("one.csv"), Path("rest.csv"), {"size": 2.5, "look": "old"})
    assert f"{len(ordered) - 20} new labels" in fine("ingest", folder, rest)
    assert "buys nothing more" in refused(1, "order", folder)
    shorten(folder, budget=120)
    fine("order", folder, "-o", "two.csv")
    second = sheet(Path("two.csv"))
    pairs = [(row["task"], row["instance"]) for row in [*ordered, *second]]
    assert len(set(pairs)) == len(pairs)
    shorten(folder, budget=50)
    assert "more than the budget of 50" in refused(1, "plan", folder)


def test_labels_filled_into_the_table_itself_have_come_back_too() -> None:
    folder = begin("camp", "--method", "neutral", budget=40)
    fine("order", folder)
    table, ordered = rows(), sheet(folder / "order-1.csv")
    for row in ordered[:10]:
        table[int(row["instance"]) - 1][row["task"]] = {"size": "2.5", "look": "old"}[row["task"]]
    write(Path("table.csv"), table)
    status = json.loads(fine("status", folder, "--json"))
    assert sum(row["came"] for row in status["tasks"]) == 10
    assert sum(row["open"] for row in status["tasks"]) == len(ordered) - 10
    assert status["spent"] == str(sum({"size": 1, "look": 5}[row["task"]] for row in ordered[:10]))


def test_an_open_order_is_written_again_and_not_ordered_again() -> None:
    folder = begin("camp", "--method", "neutral", budget=60)
    fine("order", folder)
    before = (folder / "order-1.csv").read_bytes()
    (folder / "order-1.csv").unlink()
    assert "still open" in fine("order", folder)
    assert (folder / "order-1.csv").read_bytes() == before
    assert "buys nothing more" in refused(1, "order", folder, "--more")
    assert "order 7" in refused(2, "order", folder, "--cancel", 7)
    fine("order", folder, "--cancel", 1)
    assert json.loads(fine("status", folder, "--json"))["left"] == "60"
    assert fine("order", folder, "--together", "-o", "same.jsonl").startswith("Order 2: ")
    found = [json.loads(line) for line in Path("same.jsonl").read_text().splitlines()]
    few = min(("size", "look"), key=[row["task"] for row in found].count)
    mine = {row["instance"] for row in found if row["task"] == few}
    both = {row["instance"] for row in found if row["task"] != few}
    free = {
        str(number) for number, row in enumerate(rows(), 1) if not row["size"] and not row["look"]
    }
    assert mine & free <= both


def test_everything_acceptable_goes_in_and_the_rest_is_listed() -> None:
    folder = begin()
    Path("back.csv").write_text(
        "instance,task,label\n2,size,1.5\n2,size,1.5\n4,size,2.5\n4,size,3.5\n6,size,many\n2,look,oldd\n"
        "999,size,1\n8,sze,1\n10,size,\n5,look,old\n"
    )
    result = json.loads(fine("ingest", folder, "back.csv", "--json"))
    assert (result["new"], result["conflicts"]) == (3, 1)
    listed = sheet(Path(result["listed_in"]))
    assert [row["where"].rpartition(" ")[2] for row in listed] == ["6", "7", "8", "9"]
    assert "did you mean 'old'?" in listed[1]["reason"]
    assert "did you mean 'size'?" in listed[3]["reason"]
    state = Campaign(folder).look()
    assert {task: len(values) for task, values in state.stock.given.items()} == {
        "size": 2,
        "look": 1,
    }
    assert "1 label with contradicting answers" in fine("status", folder)
    values = {}
    for rule in ("first", "last"):
        shorten(folder, conflicts=f'"{rule}"')
        values[rule] = Campaign(folder).look().stock.given["size"]["4"]
    assert values == {"first": 2.5, "last": 3.5}


# --- estimates ---


def measured(folder: Path) -> list[tuple[str, Any]]:
    """All that was found and decided, without the times."""
    with Store.open(folder, write=False) as store:
        kinds = ("estimates", "diagnosis", "plan", "order")
        return [
            (kind, value.number, value.key, value.body)
            for kind in kinds
            for value in store.values(kind)
        ]


def test_estimate_plan_order_and_a_second_round_that_knows_more() -> None:
    folder = begin("camp", budget=60)
    shorten(folder, trainings=9)
    told = allot("estimate", folder, "--workers", 0)
    assert told.exit_code == 0, told.output
    assert "Method response: 9 trainings, 27 steps, about" in told.stdout
    assert "9 of 9" in told.stderr
    assert told.stdout.endswith("Next: allot plan camp\n")
    found = Campaign(folder).look().found
    assert found is not None
    assert found.fresh
    assert found.estimates.have == tuple(
        sum(bool(row[name]) for row in rows()) for name in ("size", "look")
    )
    about = found.estimates.about
    assert (about["method"], about["trainings"], about["folds"]) == ("response", 9, 4)
    assert "Everything was measured already" in fine("estimate", folder)
    plan = json.loads(fine("plan", folder, "--json"))
    assert plan["outlook"]["counts"].keys() == {"size", "look"}
    standings = [
        plan["standing"],
        json.loads(fine("estimate", folder, "--json"))["standing"],
        json.loads(fine("status", folder, "--json"))["standing"],
        json.loads(fine("report", folder, "--json"))["outlook"]["standing"],
    ]
    assert standings[0] in set(al.Standing) - {al.Standing.UNKNOWN}
    assert standings == [standings[0]] * 4
    assert Fraction(str(plan["spent"])) <= 60
    what_if = fine("plan", folder, "--budget", 200)
    assert "write the budget into campaign.toml" in what_if
    fine("order", folder)
    answers = {"size": 4.0, "look": "new"}
    fine("ingest", folder, fill(folder / "order-1.csv", Path("back.csv"), answers))
    shorten(folder, budget=120)  # more money for a second round
    state = Campaign(folder).look()
    assert state.found is not None
    assert not state.found.fresh
    assert state.is_affordable
    assert "Next: allot estimate camp" in fine("status", folder)
    again = fine("estimate", folder, "--workers", 0)
    assert "9 trainings of earlier rounds count, too" in again
    assert "kept but not used" not in again
    first, _ = json.loads(fine("report", folder, "--json"))["rounds"]
    assert sum(first["bought"].values()) == len(sheet(Path("camp/order-1.csv")))
    assert first["scores"].keys() == {"size", "look"}  # before the round, and since
    assert all(type(each) is float for pair in first["scores"].values() for each in pair)
    later = Campaign(folder).look().found
    assert later is not None
    rounds = [each.estimates.about["measured"]["response"] for each in (found, later)]
    both = fit(join([Response.from_dict(each) for each in rounds]), seed=0)
    assert np.array_equal(later.estimates.worths, both.worths)
    assert later.value.body["earlier"] == [found.value.key]
    # the same name again, although it is on record now
    assert "nothing was trained" in fine("estimate", folder)
    assert sum(later.estimates.have) == sum(found.estimates.have) + len(
        sheet(folder / "order-1.csv")
    )


def test_what_an_earlier_edition_concluded_is_concluded_anew_without_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = begin("camp")
    shorten(folder, trainings=9)
    campaign = Campaign(folder)
    with monkeypatch.context() as patch:
        patch.setattr(ByResponse, "conclusion", 1)
        before = [job.key for job in campaign.list_jobs(campaign.look())]
        old = campaign.estimate(0)
        assert "conclusion" not in old.value.body
        assert not campaign.look().stale
    state = campaign.look()
    assert [job.key for job in campaign.list_jobs(state)] == before
    assert state.found is not None
    assert state.found.value.key == old.value.key
    told = "response concludes otherwise since; to conclude anew from the same trainings"
    assert told in fine("status", folder)
    new = campaign.estimate(0)
    assert (new.trained, new.kept, new.left_over) == (0, 9, {})
    assert new.value.key != old.value.key
    assert not campaign.look().stale
    # what was concluded twice was measured once, as the next round knows
    fine("order", folder)
    answers = {"size": 4.0, "look": "new"}
    fine("ingest", folder, fill(folder / "order-1.csv", Path("back.csv"), answers))
    shorten(folder, budget=120)
    later = campaign.estimate(0)
    assert later.earlier == 9
    assert later.value.body["earlier"] == [new.value.key]


def test_a_campaign_is_backtested_on_its_own_labels() -> None:
    folder = begin("camp")
    shorten(folder, trainings=8)
    before = (folder / "campaign.sqlite").read_bytes()
    told = fine("backtest", folder, "--repeats", 1)
    assert re.match(r"plan +gain in % +over equal budget", told)
    assert [line.split("  ")[0] for line in told.splitlines()[1:4]] == [*ALWAYS, "response"]
    found = json.loads(fine("backtest", folder, "--repeats", 1, "--json"))
    assert f"each plans from {', '.join(f'{k} {v}' for k, v in found['have'].items())}" in told
    assert Backtest.from_dict(found) == Campaign(folder).backtest(1)
    assert (folder / "campaign.sqlite").read_bytes() == before
    shorten(folder, method='"neutral"')
    assert "neutral measures nothing" in refused(2, "backtest", folder)


def test_changed_settings_and_data_are_noticed_and_never_mixed() -> None:
    folder = begin("camp")
    shorten(folder, trainings=8)
    fine("estimate", folder, "--workers", 0)
    first = measured(folder)
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(text.replace("steps = 3", "steps = 4"))
    told = refused(2, "plan", folder)
    assert (
        "[training] or a task's metric has changed since (1 set of estimates kept, but not used)"
        in told
    )
    told = fine("estimate", folder, "--workers", 0)
    assert (
        "8 earlier trainings kept but not used: [training] or a task's metric has changed" in told
    )
    assert measured(folder)[0] == first[0]
    (folder / "campaign.toml").write_text(text)
    assert "nothing was trained" in fine("estimate", folder)
    assert Campaign(folder).look().found.value.number == 1  # type: ignore[union-attr]
    table = rows()
    table[1]["width"] = "9"
    write(Path("table.csv"), table)
    assert "the data have changed since" in refused(2, "plan", folder)
    write(Path("table.csv"), rows())
    shorten(folder, budget=70)  # which no training depends on
    assert json.loads(fine("plan", folder, "--json"))["problem"]["budget"] == "70"


def test_a_job_refuses_data_and_labels_that_it_was_not_made_for() -> None:
    from allotment.campaign.work import make_context, perform

    campaign = Campaign(begin("camp"), "own.py:make")
    state = campaign.look()
    needs = campaign.list_jobs(state)[0].needs
    context = make_context(state.settings, state.stock, campaign.learner)
    assert perform(context, "response", needs)["have"] == list(state.stock.have.values())
    for key, words in (
        ("data", "data: have changed"),
        ("labels", "labels at hand: have changed"),
        ("learner", "files of the learner: have changed"),
    ):
        with pytest.raises(al.InputError, match=words):
            perform(context, "response", {**needs, key: "0" * 64})


ELSEWHERE = """
import sys
from allotment.ledger.store import Store

def refuse(*given, **more):
    raise SystemExit("a job opened the store")

Store.open = refuse
from allotment.runs.execution import execute
print(execute(*sys.stdin.read().splitlines()))
"""


def test_a_job_is_done_elsewhere_from_its_texts_and_the_files_that_they_name() -> None:
    from allotment.campaign.work import PERFORM, make_context, perform
    from allotment.runs.execution import write_common, write_job

    folder = begin("camp")
    shorten(folder, trainings=8)
    fine("estimate", folder, "--workers", 0, "--learner", "own.py:make")
    fine("order", folder)
    answers = {"size": lambda number: number / 7, "look": "old"}
    fine("ingest", folder, fill(folder / "order-1.csv", Path("filled.csv"), answers))
    campaign = Campaign(folder, "own.py:make")
    state = campaign.look()
    context = make_context(state.settings, state.stock, campaign.learner)
    assert sum(map(len, context["given"].values())) > 0
    job = campaign.list_jobs(state)[0]
    wanted = canonical(perform(json.loads(canonical(context)), job.kind, job.needs))
    shutil.rmtree(folder)  # with the store, and with the settings
    Path("elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-c", ELSEWHERE],
        input=f"{write_common(PERFORM, context)}\n{write_job(job)}",
        cwd="elsewhere",
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f'{{"body":{wanted}}}', done.stderr


def test_the_same_bytes_from_one_process_and_from_two() -> None:
    for name, workers in (("one", 0), ("two", 2)):
        folder = begin(name)
        shorten(folder, trainings=20)
        fine("estimate", folder, "--workers", workers, "--learner", "own.py:make")
        fine("order", folder)
    assert measured(Path("one")) == measured(Path("two"))
    assert Path("one/order-1.csv").read_bytes() == Path("two/order-1.csv").read_bytes()


@pytest.mark.long
def test_killed_at_any_training_it_goes_on_to_the_same_bytes() -> None:
    undisturbed = begin("whole")
    shorten(undisturbed, trainings=20)
    fine("estimate", undisturbed, "--workers", 0, "--learner", "own.py:make")
    folder = begin("camp")
    shorten(folder, trainings=20)
    command = [*ALLOT, "estimate", "camp", "--workers", "0", "--learner", "own.py:make"]
    env = dict(os.environ) | {"STOP_FILE": str(Path("stop").absolute())}
    kept = []
    for number in (12, 4, 7):  # of the first run 7 are those of the price tag
        Path("stop").write_text(f"kill {number}")
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        with Store.open(folder, write=False) as store:
            kept.append(len(store.results("response")))
            assert store.latest("estimates") is None
    assert kept == [5, 9, 16]  # all but the training that each was in
    fine("estimate", folder, "--workers", 0, "--learner", "own.py:make")
    assert measured(folder) == measured(undisturbed)


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begin("camp")
    shorten(folder, trainings=20)
    monkeypatch.setenv("STOP_FILE", str(Path("stop").absolute()))
    monkeypatch.setenv("ALLOT_LEARNER", "own.py:make")
    Path("stop").write_text("interrupt 20")
    result = allot("estimate", folder, "--workers", 0)
    assert result.exit_code == 130
    again = "allot estimate camp --workers 0"
    assert f"Stopped. What is done is kept; to go on from there: {again}\n" in result.stderr
    with Store.open(folder, write=False) as store:
        assert len(store.results("response")) == 13
    told = allot("estimate", folder, "--workers", 0)
    assert told.exit_code == 0
    assert "13 trainings were there already, 7 were done now." in told.stdout
    assert "on this machine" not in told.stdout  # the price tag is for the start


def test_a_learner_of_ones_own_comes_from_the_command_line_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = begin("camp")
    shorten(folder, trainings=8)
    Path("bad.py").write_text("1 / 0")
    Path("bad2.py").write_text("def make(data, split):\n    return object()\n")
    for name, words in (
        ("own.py", "is not FILE.py:FUNCTION"),
        ("nowhere.py:make", "is not a Python file that is there"),
        ("own.py:mak", "did you mean 'make'?"),
        ("own.py:Path", "own.py: TypeError"),
        ("own.py:dict", "has no function"),
        ("bad.py:make", "bad.py:1: ZeroDivisionError"),
        ("bad2.py:make", "without tasks, steps"),
    ):
        assert words in allot("estimate", folder, "--learner", name).stderr
    monkeypatch.setenv("ALLOT_LEARNER", "own.py:make")
    fine("estimate", folder, "--workers", 0)
    with Store.open(folder, write=False) as store:
        (_, needs, _), *_ = store.results("response")
    assert needs["learner"].startswith("make ")
    Path("own.py").write_text(OWN + "\n# changed\n")
    assert "8 earlier trainings kept but not used" in fine("estimate", folder, "--workers", 0)


@pytest.mark.parametrize("method", ["response", "slopes"])
def test_estimates_in_parts_are_those_of_one_piece(method: str) -> None:
    from allotment.estimates.estimating import estimate

    folder = begin("camp", "--method", method)
    shorten(folder, trainings=12)
    fine("estimate", folder, "--workers", 0)
    campaign = Campaign(folder)
    state = campaign.look()
    assert state.found is not None
    jobs = campaign.list_jobs(state)
    assert [job.needs["chunk"] for job in jobs] == [[0, 8], [8, 12]]
    bench = campaign.set_up(state)
    whole = estimate(
        bench.learner, bench.labels, method=method, trainings=12, folds=jobs[0].needs["folds"]
    )
    found, wanted = state.found.estimates.to_dict(), json.loads(json.dumps(whole.to_dict()))
    found["about"].pop("rounds", None)  # of which only a campaign has several
    assert found == wanted
    assert "D_T" not in fine("plan", folder)


def test_every_way_to_ask_for_json_gives_json() -> None:
    folder = begin("camp")
    shorten(folder, trainings=8)
    price = json.loads(fine("estimate", folder, "--dry-run", "--json"))
    assert (price["method"], price["trainings"]) == ("response", 8)
    assert json.loads(fine("estimate", folder, "--workers", 0, "--json"))["number"] == 1
    assert json.loads(fine("order", folder, "--json"))["new"]
    assert json.loads(fine("order", folder, "--cancel", 1, "--json"))["cancelled"] == 1


def measure(folder: Path, workers: int = 0, stop_after: int | None = None) -> Measured:
    """Estimate, or be interrupted when so many trainings are done."""

    def tell(done: int, total: int) -> None:
        if stop_after is not None and done >= stop_after:
            raise KeyboardInterrupt

    return Campaign(folder).estimate(workers, tell)


@pytest.mark.parametrize("method", [pytest.param("taba", marks=pytest.mark.long), "taba-pooled"])
def test_the_papers_pieces_add_up_to_one_estimate_however_they_are_done(method: str) -> None:
    from allotment.estimates.estimating import estimate

    folders = [begin(f"camp-{number}", "--method", method) for number in range(3)]
    for folder in folders:
        shorten(folder, trainings=16)
    alone = measure(folders[0])
    beside = measure(folders[1], workers=2)
    with pytest.raises(KeyboardInterrupt):
        measure(folders[2], stop_after=alone.trained // 2)
    again = measure(folders[2])
    assert 0 < again.kept < alone.trained == again.trained + again.kept == beside.trained
    assert measure(folders[0]).trained == 0
    campaign = Campaign(folders[0])
    state = campaign.look()
    bench, folds = campaign.set_up(state), campaign.list_jobs(state)[0].needs["folds"]
    problem = state.settings.problem()
    whole = estimate(
        bench.learner, bench.labels, method=method, trainings=16, folds=folds, problem=problem
    )
    wanted = json.loads(json.dumps(whole.to_dict()))
    assert [each.value.body["estimates"] for each in (alone, beside, again)] == [wanted] * 3
    assert f"{alone.trained} trainings" in str(campaign.price(state))


def test_probing_that_is_enough_ends_and_stays_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begin("camp", "--method", "taba-pooled")
    shorten(folder, trainings=16)
    campaign = Campaign(folder)
    jobs = campaign.list_jobs(campaign.look())
    curves = [job for job in jobs if job.needs["piece"][0] == "curve"]
    assert len(jobs) - len(curves) > 2

    def is_enough(paper: Paper, found: list[PieceResult]) -> bool:
        return len(found) == len(curves) + 2

    told: list[tuple[int, int]] = []
    with monkeypatch.context() as patch:
        patch.setattr(Paper, "is_enough", is_enough)
        ended = campaign.estimate(2, lambda done, total: told.append((done, total)))
        assert measure(folder).trained == 0
    assert told[-1][0] == told[-1][1] >= ended.trained  # the other worker may have been ahead
    assert ended.estimates.about["probing"]["trainings"] == 2
    assert (
        ended.trained
        == sum(map(size_of, jobs[: len(curves) + 2]))
        == ended.estimates.about["trainings"]
    )
    # with other money its rule may want more: what is there is kept
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(re.sub(r"budget = [\d_.]+", "budget = 77", text))
    more = measure(folder)
    assert more.kept >= ended.trained
    assert more.left_over == {}


def test_jobs_are_a_small_part_of_a_long_run_whatever_is_trained() -> None:
    def list_sizes(folder: Path, own: str | None = None) -> list[int]:
        campaign = Campaign(folder, own)
        return [
            last - first
            for first, last in (job.needs["chunk"] for job in campaign.list_jobs(campaign.look()))
        ]

    table = begin("table")  # 60 trainings of 3 steps for 2 tasks are over in no time
    assert list_sizes(table) == [8] * 7 + [4]
    assert list_sizes(table, "own.py:make") == [1] * 60
    (table / "campaign.toml").write_text(
        (table / "campaign.toml").read_text().replace("steps = 3", "steps = 900")
    )
    assert list_sizes(table) == [2] * 30
    shorten(table, trainings=400)
    assert list_sizes(table) == [8] * 50
    fine(
        "init",
        "pics",
        "--data",
        "scenes",
        "--targets",
        "depth",
        "--steps",
        1,
        "--have",
        "depth=4",
        "--budget",
        9,
    )
    assert list_sizes(Path("pics")) == [1] * 60


def test_neutral_measures_nothing() -> None:
    assert "neutral measures nothing" in refused(
        2, "estimate", begin("other", "--method", "neutral")
    )


def test_a_second_writer_hears_who_holds_the_campaign_and_readers_do_not_wait() -> None:
    folder = begin("camp", "--method", "neutral")
    with Store.open(folder, write=True, why="allot estimate camp"):
        told = refused(2, "order", folder)
        assert str(os.getpid()) in told
        assert "allot estimate camp" in told
        assert "Next: allot plan camp" in fine("status", folder)
        result = allot("plan", folder)
        assert result.exit_code == 0
        assert "the plan is not put on record" in result.stderr
    fine("order", folder)


@pytest.mark.long
def test_of_two_estimates_one_works_and_eight_readers_see_consistent_states() -> None:
    folder = begin("camp")
    shorten(folder, trainings=16)
    for name in ("gate", "ready"):
        os.mkfifo(name)
    env = dict(os.environ) | {
        "GATE": str(Path("gate").absolute()),
        "READY": str(Path("ready").absolute()),
    }
    # priced already, so that the first step is that of the first training, with the lock held
    command = [*ALLOT, "estimate", "camp", "--workers", "0", "--learner", "own.py:make"]
    with subprocess.Popen([sys.executable, "-c", ESTIMATE], env=env) as working:
        assert Path("ready").read_text() == "here"
        refusal = subprocess.run(command, capture_output=True, text=True)
        assert refusal.returncode == 2
        assert str(working.pid) in refusal.stderr
        readers = [
            subprocess.Popen(
                [*ALLOT, "status", "camp", "--json"], stdout=subprocess.PIPE, text=True
            )
            for _ in range(8)
        ]
        seen = [json.loads(reader.communicate()[0]) for reader in readers]
        assert all(each == seen[0] for each in seen)
        assert seen[0]["next"] == "allot estimate camp"
        Path("gate").write_text("go")
        assert working.wait() == 0
    assert json.loads(fine("status", folder, "--json"))["next"] == "allot plan camp"


ESTIMATE = (
    "from allotment.campaign.campaign import Campaign; Campaign('camp',"
    " 'own.py:make').estimate(workers=0)"
)


def test_a_full_disk_is_said_and_costs_nothing_that_is_done() -> None:
    whole, folder = begin("whole"), begin("camp")
    for each in (whole, folder):
        shorten(each, trainings=24)
    fine("estimate", whole, "--workers", 0, "--learner", "own.py:make")
    # for each file: the log of changes soon comes to it
    limit = (folder / "campaign.sqlite").stat().st_size
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        f" {ESTIMATE}"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode != 0
    assert "InputError" in done.stderr.splitlines()[-1]
    assert "disk" in done.stderr.splitlines()[-1]
    fine("estimate", folder, "--workers", 0, "--learner", "own.py:make")
    assert measured(folder) == measured(whole)


# --- progress ---


def test_progress_tells_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from allotment import meter as progress

    now = {"s": 100.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: now["s"])
    with progress.Meter("trainings", seconds=60) as meter:
        meter(10, 30)  # of an earlier run
        assert meter.tell() == "10 of 30, about 60 s left"
        now["s"] += 20
        assert meter.tell() == "10 of 30, about 40 s left"
        meter(15, 30)  # 5 in 20 s
        assert meter.tell() == "15 of 30, about 60 s left"
        now["s"] += 10
        assert meter.tell() == "15 of 30, about 50 s left"
        meter(30, 30)
        assert meter.tell() == "30 of 30"
    assert capsys.readouterr().err.splitlines() == [
        "trainings: 15 of 30, about 60 s left",
        "trainings: 30 of 30",
    ]


# --- evaluation ---


def test_gains_of_an_evaluation_are_relative_signed_and_paired() -> None:
    rng = np.random.default_rng(1)
    base, scores = rng.uniform(1, 2, size=(4, 2)), rng.uniform(1, 2, size=(2, 4, 2))
    found = Evaluation(
        ("a", "b"),
        (3.0, 1.0),
        (True, False),
        (Trial("this plan", {}), Trial("other", {})),
        base,
        scores,
    )
    first, second = found.rows()
    a = [(value / base[:, 0].mean() - 1) * 100 for value in scores[0, :, 0]]
    b = [(1 - value / base[:, 1].mean()) * 100 for value in scores[0, :, 1]]
    assert first["gains"]["a"] == pytest.approx([np.mean(a), np.std(a, ddof=1)])
    assert first["gains"]["b"] == pytest.approx([np.mean(b), np.std(b, ddof=1)])
    totals = (3 * np.array(a) + np.array(b)) / 4
    assert first["total"] == pytest.approx([totals.mean(), totals.std(ddof=1)])
    apart = totals - found.totals[1]
    reach = 2.353363 * apart.std(ddof=1) / 2  # Student's t with 3 degrees of freedom
    assert second["ahead"] == pytest.approx(
        [apart.mean(), apart.mean() - reach, apart.mean() + reach], rel=1e-3
    )
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))).rows() == found.rows()
    assert [student(0.05, n) for n in (2, 12, 30)] == pytest.approx(
        [2.919986, 1.782288, 1.697261], rel=1e-3
    )


def test_evaluate_tries_the_plan_yours_and_every_baseline_on_the_test_part() -> None:
    table = rows(60, every=(1, 1))
    folder = begin(
        "camp",
        "--have",
        "size=6",
        "--have",
        "look=6",
        "--method",
        "neutral",
        table=table,
        budget=40,
    )
    told = allot(
        "evaluate", folder, "--repeats", 3, "--workers", 0, "--json", "--plan", "size=10,look=1"
    )
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == ["this plan", "yours"]
    assert {"equal images", "equal images*", "equal budget", "all on size", "all on look"} <= set(
        names
    )
    assert np.array(found["scores"]).shape == (len(names), 3, 2)
    counts = {row["name"]: row["counts"] for row in found["rows"]}
    assert counts["yours"] == {"size": 10, "look": 1}
    assert all(each["size"] + 5 * each["look"] <= 40 for each in counts.values())
    shown = fine("evaluate", folder, "--repeats", 3, "--workers", 0)
    assert re.search(r"^this plan .* ± .*$", shown, re.MULTILINE)
    assert "Next: allot report camp" in shown
    # what it says of nothing bought is what a training on the labels at hand scores
    from allotment.campaign.work import set_up
    from allotment.learners.learner import train

    state = Campaign(folder).look()
    bench = set_up(state.settings, state.stock, test=True)
    expected = bench.learner.score(train(bench.learner, bench.labels, 1001), "size").metric
    assert found["base"][1][0] == pytest.approx(expected, rel=1e-6)


def test_evaluate_says_clearly_when_there_is_nothing_to_evaluate_with() -> None:
    told = refused(2, "evaluate", begin("camp", "--method", "neutral"), "--repeats", 1)
    assert "no plan can be tried out" in told
    assert "have = N" in told
    assert "no plan can be tried out" in refused(2, "ingest", "camp", "--oracle")


def test_labels_on_order_can_be_taken_from_complete_data() -> None:
    table = rows(60, every=(1, 1))
    folder = begin(
        "camp",
        "--have",
        "size=6",
        "--have",
        "look=6",
        "--method",
        "neutral",
        table=table,
        budget=40,
    )
    assert "nothing is on order" in refused(2, "ingest", folder, "--oracle")
    fine("order", folder)
    count = len(sheet(folder / "order-1.csv"))
    assert f"{count} new labels from the data set itself." in fine("ingest", folder, "--oracle")
    stock = Campaign(folder).look().stock
    assert sum(stock.have.values()) == 12 + count
    data = stock.open()
    chosen = stock.labels["size"].instances
    np.testing.assert_allclose(
        data.values("size", chosen),
        [float(table[place]["size"]) for place in chosen.tolist()],
        rtol=1e-6,
    )


DATA = os.environ.get("ALLOT_TEST_DATA")


@pytest.mark.skipif(DATA is None, reason="needs ALLOT_TEST_DATA")
@pytest.mark.parametrize(("data", "place"), [("voc", "VOC2012"), ("taskonomy", "taskonomy")])
def test_folders_of_images_are_ordered_by_their_files(data: str, place: str) -> None:
    have = ["--have", "classes=20", "--have", "segmentation=20"] if data == "voc" else []
    fine(
        "init",
        "camp",
        "--data",
        data,
        "--root",
        Path(str(DATA)) / place,
        "--method",
        "neutral",
        "--budget",
        90,
        *have,
    )
    fine("plan", "camp", "--no-ranges")
    fine("order", "camp")
    ordered = sheet(Path("camp/order-1.csv"))
    assert ordered
    assert all((Path(str(DATA)) / place / row["file"]).is_file() for row in ordered)
    fine("ingest", "camp", "--oracle")
    state = Campaign("camp").look()
    assert sum(state.account.came.values()) == len(ordered)
    task, chosen = ordered[0]["task"], state.stock.place[ordered[0]["instance"]]
    assert state.stock.open().known(task)[chosen]
    assert chosen not in state.stock.parts.test


# --- report, archive ---


def test_report_and_archive_hold_what_is_known() -> None:
    folder = begin("camp", budget=60)
    shorten(folder, trainings=8)
    fine("report", folder, "-o", "early.html")
    fine("estimate", folder, "--workers", 0)
    fine("order", folder)
    told = fine("report", folder)
    page = Path("camp/report.html").read_text()
    assert told == "camp/report.html is written; open it in a browser.\n"
    for words in ("Labels for camp", "size", "look", "equal budget", "response"):
        assert words in page
    values = json.loads(fine("report", folder, "--json"))
    assert {curve["task"] for curve in values["curves"]} == {"size", "look"}
    for curve in values["curves"]:
        assert all(low <= mean <= high for _, mean, low, high in curve["points"])
        assert len(curve["seen"]) == 8
    assert len(values["transfer"]["cells"]) == 2
    assert values["rounds"][0]["number"] == 1
    fine("pack", folder, "-o", "camp.zip")
    fine("unpack", "camp.zip", "copy")
    assert measured(Path("copy")) == measured(folder)
    assert Path("copy/campaign.toml").read_text() == (folder / "campaign.toml").read_text()


def test_looking_planning_and_ordering_do_without_torch() -> None:
    begin("camp", "--method", "neutral")
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom allotment.cli import main\n"
        "for command in ('status', 'plan', 'order', 'report'):\n"
        "    assert CliRunner().invoke(main, [command, 'camp']).exit_code == 0, command\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_help_of_every_command_has_an_example() -> None:
    for command in (
        "init",
        "status",
        "estimate",
        "order",
        "ingest",
        "evaluate",
        "report",
        "pack",
        "unpack",
        "demo",
    ):
        assert f"Example:  allot {command}" in fine(command, "--help")


# --- killed at random moments ---

LOOP = """
import os, signal, sys, traceback
sys.path[:0] = sys.argv[1:]
import torch
from pathlib import Path
from test_campaign import follow
torch.set_num_threads(1)
WATCHED = {"open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.replace"}
WATCHED |= {"sqlite3.connect", "fcntl.flock"}
def watch(event, args):
    global left
    if event in WATCHED:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
for line in sys.stdin:
    folder, moment = line.split()
    pid = os.fork()
    if not pid:
        try:
            os.chdir(folder)
            left = int(moment)
            sys.addaudithook(watch)
            follow(Path("camp"))
            Path("left").write_text(str(left))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""does a campaign to its end in one process after the other, each forked from one that has loaded
everything"""


def follow(folder: Path) -> None:
    """Do what `status` says until all money is spent, as a user would who was interrupted."""
    os.environ["ALLOT_LEARNER"] = "own.py:make"
    if not (folder / "campaign.toml").exists():
        given = [
            "--root",
            "table.csv",
            "--targets",
            "size,look",
            "--cost",
            "size=1",
            "--cost",
            "look=5",
        ]
        fine("init", folder, *given, "--budget", 60, "--steps", 3)
    for _ in range(30):
        step = json.loads(fine("status", folder, "--json"))["next"].split()
        if step[1] in ("evaluate", "train", "report"):  # all money is spent
            fine("report", folder)
            return
        if step[1] == "ingest":
            number = max(number for number, _, _ in Campaign(folder).look().open)
            # it was on record, but its sheet not yet written
            if not (folder / f"order-{number}.csv").exists():
                fine("order", folder)
            answers = {
                "size": lambda place: f"{3 + place % 7 / 10}",
                "look": lambda place: ("old", "new")[place % 2],
            }
            Path("back.csv").unlink(missing_ok=True)
            step[-1] = str(fill(folder / f"order-{number}.csv", Path("back.csv"), answers))
        fine(*step[1:], *(["--workers", "0"] if step[1] == "estimate" else []))
    raise AssertionError("it never ends")


@contextlib.contextmanager
def looping() -> Iterator[Callable[[Path, int], int]]:
    """A function that goes on with the campaign in a folder, up to its event of that number; its
    exit code."""
    command = [sys.executable, "-c", LOOP, *map(str, Path(__file__).parents[:2])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None

        def go(folder: Path, moment: int) -> int:
            print(folder, moment, file=nursery.stdin, flush=True)
            return int(nursery.stdout.readline())  # type: ignore[union-attr]

        yield go
        nursery.stdin.close()


def lay_out(folder: Path) -> Path:
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    write(folder / "table.csv", rows())
    return folder


def compare_killed(tmp_path: Path, campaigns: int, kills: int) -> None:
    rng, whole, died = random.Random(8), lay_out(tmp_path / "whole"), 0
    with looping() as go:
        assert go(whole, 10**9) == 0
        total = 10**9 - int((whole / "left").read_text())
        for number in range(campaigns):
            folder = lay_out(tmp_path / f"killed{number}")
            codes = [go(folder, rng.randint(1, total // 2)) for _ in range(kills)]
            assert set(codes) <= {0, -signal.SIGKILL}
            died += sum(code != 0 for code in codes)
            assert go(folder, 10**9) == 0
            check_same(folder / "camp", whole / "camp")
    print(f"{died} kills in {campaigns} campaigns of {total} events")
    assert died > campaigns * kills / 2


def check_same(folder: Path, whole: Path) -> None:
    assert measured(folder) == measured(whole)
    for path in whole.glob("order-*.csv"):
        assert (folder / path.name).read_bytes() == path.read_bytes()
    with Store.open(folder, write=False) as store:
        pairs = [tuple(item) for value in store.orders() for item in value.body["order"]["items"]]
        assert len(set(pairs)) == len(pairs)


@pytest.mark.long
def test_a_whole_campaign_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path) -> None:
    compare_killed(tmp_path, campaigns=1, kills=4)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_whole_campaigns_killed_at_random_moments(tmp_path: Path) -> None:
    compare_killed(tmp_path, campaigns=4, kills=8)


# --- small files that would take long, and many tasks ---

KEYS = "".join(f"k{k:06d}=1\n" for k in range(400_000))
HOSTILE = {
    "a key of 20,000 parts": lambda text: (
        ".".join("a" * 20_000) + " = 1\n" + text,
        ":1: a key has more than 30 parts",
    ),
    "unknown keys": lambda text: (KEYS + text, "equals signs", "the limit is 150,000"),
    "unknown keys of the data": lambda text: (
        text.replace("[data]\n", f"[data]\n{KEYS}"),
        "the limit is 150,000",
    ),
    "unknown keys of a task": lambda text: (text + KEYS, "the limit is 150,000"),
    "tiers": lambda text: (
        text
        + "tiers = ["
        + ",".join(f"{{ after = {k + 1}, cost = 1 }}" for k in range(20_000))
        + "]\n",
        "task 'y': tiers: there are 20,000, the limit is 1,000",
    ),
    "tasks": lambda text: (
        text + '[[task]]\nname = "z"\ncost = 1\n' * 99_000,
        "there are 99,001, the limit is 5,000",
    ),
    "caps": lambda text: (text + "[[cap]]\n" * 99_000, "cap: there are 99,000, the limit is 1,000"),
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A campaign of one task on a small table."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k},{k / 3}\n" for k in range(20)))
    starting.begin(
        tmp_path / "c",
        root=str(tmp_path / "t.csv"),
        targets=["y"],
        costs={"y": "1"},
        budget="9",
        method="neutral",
    )
    return tmp_path / "c"


@pytest.mark.parametrize("name", HOSTILE)
def test_small_settings_do_not_take_long(name: str, small: Path) -> None:
    file = small / "campaign.toml"
    text, *words = HOSTILE[name](file.read_text())
    file.write_text(text)
    check_refused(run_bounded("check", small), str(file), *words)


def test_settings_that_are_nested_too_deeply(small: Path) -> None:
    nested = ".".join("a" * 25) + " = "
    text = (
        (small / "campaign.toml")
        .read_text()
        .replace('name = "table"', "name = " + ("{" + nested) * 80 + "1" + "}" * 80)
    )
    with pytest.raises(al.InputError, match="nested too deeply"):
        parse_settings(text)


def test_of_many_mistakes_in_settings_the_first_are_said(small: Path) -> None:
    file = small / "campaign.toml"
    file.write_text("".join(f"k{k}=1\n" for k in range(1000)) + file.read_text())
    with pytest.raises(al.InputError) as caught:
        Campaign(small).look()
    assert len(caught.value.mistakes) == 201
    assert str(caught.value.mistakes[-1]) == f"{file}: and 800 more mistakes"


def test_a_table_and_a_delivery_of_a_million_columns(small: Path) -> None:
    wide = small.parent / "wide.csv"
    wide.write_text(",".join(f"c{k}" for k in range(10**6)) + "\n" + ",".join("1" * 10**6) + "\n")
    check_refused(run_bounded("ingest", small, wide), "has more than 1 MB in one line")
    ended = run_bounded(
        "init",
        small.parent / "d",
        "--root",
        wide,
        "--target",
        "c1",
        "--cost",
        "c1=1",
        "--budget",
        9,
    )
    check_refused(ended, "has 1,000,000 columns, the limit is 50,000")
    wide.replace(small.parent / "t.csv")
    check_refused(run_bounded("status", small), "has 1,000,000 columns, the limit is 50,000")


def test_two_thousand_tasks(tmp_path: Path) -> None:
    """It took half a minute."""
    names = [f"t{k}" for k in range(2000)]
    with (tmp_path / "t.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["x", *names])
        writer.writerows(
            [row, *("abcdefg"[(row * k) % 7] if row < 30 else "" for k in range(2000))]
            for row in range(50)
        )
    costs = itertools.chain.from_iterable(("--cost", f"{name}=1") for name in names)
    words = ("--root", tmp_path / "t.csv", "--targets", ",".join(names), *costs, "--budget", "500")
    ended = run_bounded("init", tmp_path / "c", *words, "--method", "neutral", seconds=6)
    assert ended.code == 0, ended.text[-300:]
    assert f"Next: allot plan {tmp_path / 'c'}" in ended.text
    assert ended.megabytes < MEGABYTES
    assert run_bounded("status", tmp_path / "c", seconds=6).code == 0


def test_a_neutral_campaign_whose_tasks_count_for_nothing_buys_nothing(small: Path) -> None:
    file = small / "campaign.toml"
    file.write_text(file.read_text() + "weight = 0\n")
    (small.parent / "t.csv").write_text(
        "x,y\n" + "".join(f"{k},{k / 3 if k < 9 else ''}\n" for k in range(20))
    )
    assert Campaign(small).summarise()[1].next.startswith("allot evaluate")
    file.write_text(file.read_text().replace("weight = 0\n", ""))
    assert Campaign(small).summarise()[1].next.startswith("allot plan")


def test_a_task_that_is_added_or_dropped_keeps_the_trainings_of_the_others() -> None:
    table = [row | {"worth": f"{index % 9}.5"} for index, row in enumerate(rows())]
    folder = begin("camp", "--drop", "worth", table=table)
    shorten(folder, trainings=8)
    fine("estimate", folder, "--workers", 0)
    path = folder / "campaign.toml"
    before = path.read_text()
    more = '\n[[task]]\nname = "worth"\ncost = 2\nkind = "regression"\n'
    path.write_text(before.replace('drop = ["worth"]\n', "") + more)
    told = fine("estimate", folder, "--workers", 0)
    assert "8 trainings of earlier rounds count, too." in told
    found = json.loads(fine("estimate", folder, "--json"))["estimates"]
    assert set(found["tasks"]) == {"size", "look", "worth"}
    # dropped again: the first estimates are those of these tasks, and nothing is trained
    path.write_text(before)
    assert "Everything was measured already" in fine("estimate", folder, "--workers", 0)
    # and the other way round, with the new one in the place of another
    text = before.replace('drop = ["worth"]\n', 'drop = ["look"]\n') + more
    at = text.index('[[task]]\nname = "look"')
    path.write_text(text[:at] + text[text.index("[[task]]", at + 1) :])
    told = fine("estimate", folder, "--workers", 0)
    assert re.search(r"\d+ trainings of earlier rounds count, too\.", told)
    assert "worth" in fine("plan", folder)
