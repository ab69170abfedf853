"""Verbs that share one reading of a campaign, and verbs that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.campaigns import begin

from allotment.campaign.campaign import Campaign
from allotment.errors import InputError
from allotment.ledger.lock import Busy
from allotment.ledger.store import Store


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return begin("camp", "--method", "neutral")


def raise_budget(folder: Path) -> None:
    path = folder / "campaign.toml"
    path.write_text(path.read_text().replace("budget = 90", "budget = 190"))


def test_verbs_read_anew_but_for_those_that_share_a_session(folder: Path) -> None:
    campaign = Campaign(folder)
    with campaign.once():
        first = campaign.look()
        raise_budget(folder)
        assert campaign.look() is first
        assert campaign.plan()[0] is first
    assert campaign.look().settings.budget == 190


def test_what_is_written_in_a_session_is_seen_in_it(folder: Path) -> None:
    campaign = Campaign(folder)
    with campaign.once("order"):
        before = campaign.look()
        ordered = campaign.order()
        after = campaign.look()
        assert (len(before.open), len(after.open)) == (0, len(ordered.order))
        assert after.said is before.said


def test_a_session_that_begins_with_reading_can_write(folder: Path) -> None:
    campaign = Campaign(folder)
    with campaign.once():
        state, proposal = campaign.plan()
        campaign.record(proposal)
        assert campaign.order().is_new
        assert campaign.look().open
    with Store.open(folder, write=True) as store:  # nobody holds it any more
        assert len(store.values("plan")) == 1
    assert not state.open


def test_nobody_else_writes_until_a_session_for_writing_ends(folder: Path) -> None:
    campaign = Campaign(folder)
    with campaign.once("order"):
        campaign.look()
        with pytest.raises(Busy, match="allot order camp"):
            Store.open(folder, write=True)
        with Store.open(folder, write=False) as store:
            assert not store.orders()
    Store.open(folder, write=True).close()


def test_a_verb_that_fails_leaves_nothing_open(folder: Path) -> None:
    campaign = Campaign(folder)
    (folder / "campaign.toml").write_text("budget = nothing")
    with pytest.raises(InputError):
        campaign.order()
    Store.open(folder, write=True).close()
    with campaign.once("order"), pytest.raises(InputError):
        campaign.order()
    Store.open(folder, write=True).close()


def test_the_order_is_in_a_copy_before_its_sheet_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Path] = []

    def look_for_copies(*args: object) -> None:
        copies.extend(sorted((folder / "copies").iterdir()))

    monkeypatch.setattr("allotment.campaign.campaign.write_sheet", look_for_copies)
    ordered = Campaign(folder).order()
    (folder / "campaign.sqlite").unlink()
    copies[-1].rename(folder / "campaign.sqlite")
    for later in (folder / "copies").iterdir():
        later.unlink()
    with Store.open(folder, write=False) as store:
        assert [value.key for value in store.orders()] == [ordered.value.key]
