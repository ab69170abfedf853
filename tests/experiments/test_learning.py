"""Numbers that are learnt: only what data sets agree on moves them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from corpus.learning import (
    NUMBERS,
    climb,
    find_leads,
    list_leads,
    move,
    pick_likeliest,
    weigh,
)

from allotment.estimates.beliefs import Beliefs


def test_a_number_moves_where_data_sets_agree_and_else_stays() -> None:
    shipped = {"a": -2.0, "b": -1.0, "c": -3.0}
    agreed = {"a": -1.9, "b": -0.9, "c": -2.95}
    by_one = {"a": -1.0, "b": -1.1, "c": -3.1}
    assert pick_likeliest([shipped, by_one, agreed]) == 2
    assert pick_likeliest([shipped, by_one]) == 0
    assert pick_likeliest([agreed, shipped]) == 0


def test_chances_are_moved_by_their_odds() -> None:
    beliefs = Beliefs(flat=0.5, no_transfer=0.8, bend=1.0)
    assert move(beliefs, "flat", 2.0).flat == pytest.approx(2 / 3)
    assert move(beliefs, "no_transfer", 0.5).no_transfer == pytest.approx(2 / 3)
    assert move(beliefs, "bend", 2.0).bend == 2.0
    assert "exponent" not in NUMBERS
    assert len(NUMBERS) + 1 <= 12


def test_what_is_left_out_has_no_say() -> None:
    """Data set a alone makes the others agree: more of `noise` is likelier in the mean, and without
    it no likelier than chance."""
    slopes = {"a": 1.0, "b": 0.5, "c": -0.3, "d": 0.4, "e": -0.2, "f": 0.3, "g": -0.2}

    def weigh_all(tried: Sequence[Beliefs]) -> list[dict[str, float]]:
        doublings = [math.log2(each.noise / Beliefs().noise) for each in tried]
        return [{name: slope * each for name, slope in slopes.items()} for each in doublings]

    start = Beliefs()
    assert climb(start, weigh_all).noise > start.noise
    assert climb(start, weigh_all, without="a") == start
    assert climb(start, weigh_all, without="g").noise > start.noise


@pytest.mark.long
def test_shipped_numbers_are_likelier_than_absurd_ones_and_lead_neutral() -> None:
    """By the kept campaigns of open data sets, none of which is locked."""
    assert len({each.cluster for each in list_leads()}) == 7
    shipped, absurd = weigh(Beliefs()), weigh(Beliefs(shared_bend=5.0, noise=0.05))
    assert all(shipped[name] > absurd[name] for name in shipped)
    leads = [lead for _, lead in find_leads(Beliefs()).values()]
    assert sum(leads) > 0
