"""Labels that are corrected or withdrawn: what counts, what is kept, and what is not believed any
more."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import allot, begin, fill, fine, refused, rows, shorten, write

from allotment.campaign.campaign import Campaign
from allotment.campaign.jobs import find_earlier, list_parts
from allotment.ledger import journal, schema
from allotment.ledger.store import Store


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder() -> Path:
    """A campaign with an order that came back: row 2 has a label of size 3.5 that was bought."""
    made = begin("camp", "--method", "neutral", budget=60)
    fine("order", made, "--all")
    fine("ingest", made, fill(made / "order-1.csv", Path("back.csv"), {"size": 3.5, "look": "old"}))
    return made


def bought(folder: Path, task: str = "size") -> str:
    with Store.open(folder, write=False) as store:
        return next(each.instance for each in store.answers() if each.task == task)


def read(folder: Path, instance: str, task: str = "size") -> Any:
    stock = Campaign(folder).look().stock
    if not stock.has(task, instance):
        return None
    value = stock.open().values(task, np.array([stock.place[instance]]))[0]
    return stock.targets[task].classes[int(value)] if task == "look" else pytest.approx(value)


def money(folder: Path) -> tuple[str, str, str]:
    status = json.loads(fine("status", folder, "--json"))
    return status["spent"], status["on_order"], status["left"]


def change(folder: Path, instance: str, *how: object, task: str = "size") -> str:
    return " ".join(fine("correct", folder, "--task", task, "--instance", instance, *how).split())


def test_a_bought_label_is_corrected_and_its_history_kept(folder: Path) -> None:
    name, spent = bought(folder), money(folder)
    told = change(folder, name, "--value", "4.25", "--why", "a typo")
    assert f"size of {name} is 4.25 now (was 3.5)." in told
    assert read(folder, name) == 4.25
    assert money(folder) == spent
    told = " ".join(fine("history", folder, "--instance", name, "--task", "size").split())
    assert "3.5 order 1" in told
    assert "4.25 yes correction" in told
    assert "corrected: a typo" in told
    change(folder, name, "--value", "4.5")
    assert read(folder, name) == 4.5
    assert "1 label as known already" in change(folder, name, "--value", "4.5")
    assert [each.value for each in Campaign(folder).history("size", name)] == [3.5, 4.25, 4.5]
    fine("verify", folder)


def test_a_label_of_the_data_is_corrected_whatever_the_rule(folder: Path) -> None:
    for rule in ("first", "last", "majority"):
        shorten(folder, conflicts=f'"{rule}"')
        change(folder, "1", "--value", "new", task="look")
        assert read(folder, "1", "look") == "new"
        change(folder, "1", "--value", "old", task="look")
        assert read(folder, "1", "look") == "old"
    Path("more.csv").write_text("instance,look\n1,new\n")
    fine("ingest", folder, "more.csv")
    assert read(folder, "1", "look") == "old"  # until somebody says otherwise


def test_a_withdrawn_label_is_paid_and_counts_for_nothing(folder: Path) -> None:
    name, spent = bought(folder), money(folder)
    have = Campaign(folder).look().stock.have["size"]
    assert f"size of {name} is withdrawn (was 3.5)." in change(folder, name, "--withdraw")
    state = Campaign(folder).look()
    assert state.stock.have["size"] == have - 1
    assert read(folder, name) is None
    assert money(folder) == spent
    assert state.open == ()
    change(folder, "1", "--withdraw")
    assert "1" in Campaign(folder).look().stock.candidates("size")  # it can be bought
    assert "nothing was changed there" in change(folder, "1", "--withdraw")
    fine("verify", folder)


def test_the_same_answer_once_more_does_not_bring_it_back(folder: Path) -> None:
    name = bought(folder)
    change(folder, name, "--withdraw")
    Path("same.csv").write_text(f"instance,size\n{name},3.5\n")
    fine("ingest", folder, "same.csv")
    assert read(folder, name) is None
    Path("other.csv").write_text(f"instance,size\n{name},3.75\n")
    fine("ingest", folder, "other.csv")
    assert read(folder, name) == 3.75
    counts = {each.value: each.counts for each in Campaign(folder).history("size", name)}
    assert counts == {3.5: False, None: False, 3.75: True}
    assert "contradicting" not in fine("status", folder)


def test_many_are_corrected_at_once_or_none(folder: Path) -> None:
    before = Campaign(folder).look().stock.fingerprint
    Path("bad.csv").write_text("task,instance,label\nsize,1,4\nsize,3,abc\nlook,1,odd\nsize,2,\n")
    said = refused(2, "correct", folder, "--from", "bad.csv")
    for word in ("line 3", "'abc' is not a number", "line 4", "--withdraw", "nothing was changed"):
        assert word in said
    assert Campaign(folder).look().stock.fingerprint == before
    Path("good.csv").write_text("task,instance,label\nsize,1,4\nsize,3,4.5\nlook,1,new\n")
    assert fine("correct", folder, "--from", "good.csv").count(" now (was ") == 3
    assert (read(folder, "1"), read(folder, "3"), read(folder, "1", "look")) == (4, 4.5, "new")
    told = fine("correct", folder, "--from", "good.csv", "--withdraw", "--json")
    assert [each["value"] for each in json.loads(told)["corrected"]] == [None] * 3
    Path("two.csv").write_text("task,instance,label\nsize,5,4\nsize,5,5\n")
    assert "decide on one" in refused(2, "correct", folder, "--from", "two.csv")


def test_what_is_not_there_is_refused_in_words(folder: Path) -> None:
    state = Campaign(folder).look()
    free = state.stock.candidates("look", state.ordered["look"])[0]
    for how, words in {
        ("--task", "look", "--instance", free, "--value", "old"): "no label at hand",
        ("--task", "sise", "--instance", "1", "--value", "3"): "did you mean 'size'?",
        ("--task", "size", "--instance", "999", "--withdraw"): "rows are numbered 1 to 90",
        ("--task", "look", "--instance", "1", "--value", "ald"): "did you mean 'old'?",
        ("--task", "size", "--instance", "1"): "Give --value, or --withdraw",
        ("--task", "size", "--value", "1"): "Give --task and --instance",
        ("--from", "x.csv", "--task", "size"): "--from says all of it",
    }.items():
        assert words in refused(2, "correct", folder, *how)
    assert Campaign(folder).history("look", free) == []


def test_a_label_that_was_held_back_is_corrected_or_dropped() -> None:
    folder = begin("camp", "--method", "neutral", budget=60)
    fine("order", folder, "--all")
    fine("ingest", folder, fill(folder / "order-1.csv", Path("b.csv"), {"size": 98, "look": "old"}))
    first, second = [each.instance for each in Store.open(folder, write=False).held()][:2]
    before = money(folder)
    assert "is 4 now (was held back)" in change(folder, first, "--value", "4")
    assert money(folder) == (str(int(before[0]) + 1), str(int(before[1]) - 1), before[2])
    held = Campaign(folder).look().held
    change(folder, second, "--withdraw")
    assert Campaign(folder).look().held == held - 1
    assert read(folder, second) is None
    assert money(folder)[1] == str(int(before[1]) - 1)  # which is still to come
    fine("verify", folder)


def test_estimates_made_with_the_label_count_no_more() -> None:
    folder = begin(budget=200)
    shorten(folder, trainings=4)
    Campaign(folder).estimate(workers=0)
    Path("b.csv").write_text("instance,look\n2,old\n3,new\n")
    fine("ingest", folder, "b.csv")
    campaign = Campaign(folder)
    (first,) = campaign.look().estimates
    second = pretend_to_estimate(folder, "b" * 64)
    name = bought(folder, "look")
    change(folder, name, "--value", "new", task="look")
    state = campaign.look()
    assert state.outdated == {second}  # the first did not know the label
    assert state.found is not None
    assert (state.found.value.key, state.found.fresh) == (first.key, False)
    assert "Next: allot estimate camp" in fine("status", folder)
    with Store.open(folder, write=False) as store:
        earlier = find_earlier(store, campaign._inquire(state), list_parts(state), state.outdated)
    assert [value.key for value in earlier] == [first.key]

    change(folder, name, "--value", "old", task="look")
    back = campaign.look().found
    assert back is not None
    assert (back.value.key, back.fresh) == (second, True)  # which knew the labels as they are

    change(folder, "1", "--value", "4")
    assert "labels that were trained on were corrected since" in refused(2, "plan", folder)
    pretend_to_estimate(folder, "c" * 64)
    now = campaign.look()
    assert now.found is not None
    assert now.found.fresh
    with Store.open(folder, write=False) as store:
        assert find_earlier(store, campaign._inquire(now), list_parts(now), now.outdated) == []


def pretend_to_estimate(folder: Path, key: str) -> str:
    """Put estimates of the labels at hand on record, as if they had been trained for."""
    state = Campaign(folder).look()
    body = state.estimates[0].body
    needs = body["needs"] | {"labels": state.stock.fingerprint}
    with Store.open(folder, write=True) as store:
        return store.add_value("estimates", body | {"needs": needs}, key).key


def test_a_correction_is_under_the_hash_and_comes_back_from_a_copy(folder: Path) -> None:
    name = bought(folder)
    change(folder, name, "--value", "4.25")
    connection = sqlite3.connect(folder / schema.STORE_FILE)
    connection.execute("DROP TRIGGER corrections_update")
    connection.execute("UPDATE corrections SET value = '9.75'")
    trigger = schema._forbid("corrections").splitlines()[0]
    connection.execute(trigger.rstrip(";"))
    connection.commit()
    connection.close()
    said = allot("status", folder)
    assert said.exit_code == 2
    assert "1 correction is not as it was written" in said.stderr
    fine("restore", folder)
    assert read(folder, name) == 4.25
    fine("pack", folder, "-o", "camp.zip")
    fine("unpack", "camp.zip", "other")
    assert read(Path("other"), name) == 4.25
    assert Campaign("other").history() == Campaign(folder).history()


def test_a_store_from_before_the_correction_is_known_for_it(folder: Path) -> None:
    older = (folder / schema.STORE_FILE).read_bytes()
    change(folder, bought(folder), "--value", "4.25")
    (folder / schema.STORE_FILE).write_bytes(older)
    assert "is older than its own copy" in refused(2, "plan", folder)
    fine("restore", folder)
    assert read(folder, bought(folder)) == 4.25


def test_a_correction_that_is_stopped_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("good.csv").write_text("task,instance,label\nsize,1,4\nsize,3,4.5\n")
    before = Campaign(folder).look()

    def stop(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal, "enter", stop)
        with pytest.raises(KeyboardInterrupt):
            Campaign(folder).correct_from("good.csv")
    after = Campaign(folder).look()
    assert (after.position, after.stock.fingerprint) == (before.position, before.stock.fingerprint)
    assert len(Campaign(folder).correct_from("good.csv").said) == 2


def test_a_mask_is_corrected_by_its_file() -> None:
    data = ("--data", "scenes", "--set", "count=20", "--set", "size=16")
    fine("init", "camp", *data, "--targets", "segmentation", "--have", "segmentation=5",
         "--cost", "segmentation=1", "--budget", "4", "--method", "neutral")  # fmt: skip
    from allotment.connect.masks import encode_map

    campaign = Campaign("camp")
    stock = campaign.look().stock
    place = stock.labels["segmentation"].instances[:1]
    mask = np.array(stock.whole().values("segmentation", place)[0])
    mask[0, 0] = (mask[0, 0] + 1) % 2
    Path("new.png").write_bytes(encode_map("segmentation", mask))
    campaign.correct("segmentation", stock.ids[int(place[0])], "new.png")
    now = campaign.look().stock.open().values("segmentation", place)[0]
    np.testing.assert_array_equal(now, mask)
    assert "no PNG" not in fine("verify", "camp")
    refused(2, "correct", "camp", "--task", "segmentation", "--instance",
            stock.ids[int(place[0])], "--value", "gone.png")  # fmt: skip


def test_rows_with_names_of_their_own() -> None:
    made = begin("camp", "--method", "neutral", "--id", "name", table=rows(id_=True))
    change(made, "r000", "--value", "4")
    assert read(made, "r000") == 4
    write(Path("w.csv"), [{"name": "r002", "size": "4.5", "look": ""}])
    fine("correct", made, "--from", "w.csv")
    assert read(made, "r002") == 4.5
