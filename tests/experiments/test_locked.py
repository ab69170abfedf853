"""The report on locked data sets: it finds what was planted, and says what does not pass."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from helpers.planted_surfaces import fill, make_setting

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from corpus import locked
from corpus.locked import (
    BEGIN,
    FEWEST_OF_BIN,
    LOCKED_WAYS,
    ONE_ORDER,
    PROPOSED,
    Tried,
    compare_ways,
    cut_bins,
    find_regret,
    find_share,
    find_upper_bounds,
    list_stated,
    open_tried,
    show_questions,
    write_locked,
)
from corpus.settings import CAMPAIGNS

from allotment.corpus.plans import EQUAL_BUDGET, NEUTRAL_PLAN, list_baselines, list_surface
from allotment.corpus.setting import Setting
from allotment.corpus.ways import WAYS_BY_TRAININGS, WAYS_IN_TRANCHES, Choice
from allotment.errors import InputError

TABLES = ("tox21", "chembl", "enron", "emotions", "enb", "delicious")


class Planned(Tried):
    """A setting in which ways plan what is given."""

    plans: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    chance, reach = 0.5, 5.0

    @cached_property
    def choices(self) -> dict[str, dict[int, Choice]]:  # type: ignore[override]
        bases = list_baselines(self.setting)
        found = {}
        for name in (*LOCKED_WAYS, *bases):
            counts = bases.get(name) or self.plans.get(name) or bases[NEUTRAL_PLAN]
            span = (-self.reach, 0.0, self.reach)
            choice = Choice(tuple(counts), 0.0, self.chance, span)
            found[name] = dict.fromkeys(self.campaigns, choice)
        return found


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Setting], Path]:
    folder, found = tmp_path_factory.mktemp("locked"), []
    for place, table in enumerate(TABLES):
        for number, odd in enumerate(("", "", "useless")):
            setting = replace(make_setting(table, number), odd=odd, is_locked=True)
            fill(folder, setting, 0.003, 10 * place + number)
            found.append(setting)
    return found, folder


def make_tried(settings: tuple[list[Setting], Path], way: str, pick: str) -> list[Tried]:
    """Settings in which a way plans the best or the worst of all that was trained out."""
    found: list[Tried] = []
    for each in open_tried(*settings):
        surface = each.whole
        order = np.argsort(surface.means)
        counts = surface.plans[order[-1 if pick == "best" else 0]]
        mine = Planned(each.setting, each.kept, each.campaigns)
        object.__setattr__(mine, "plans", {way: counts})
        found.append(mine)
    return found


def test_what_plans_as_neutral_does_is_level_with_it(
    settings: tuple[list[Setting], Path],
) -> None:
    tried = [Planned(each.setting, each.kept, each.campaigns) for each in open_tried(*settings)]
    assert len(tried) == len(TABLES) * 3
    assert compare_ways(tried, ONE_ORDER, NEUTRAL_PLAN).mean == 0
    found = compare_ways(tried, ONE_ORDER, EQUAL_BUDGET)
    assert list(found.by_cluster) == sorted(TABLES)
    share, count = find_share(tried, ONE_ORDER)
    assert share == 0 or count == 0
    assert len(list_stated(tried)) == len(tried) * CAMPAIGNS


def test_the_best_passes_and_the_worst_does_not(settings: tuple[list[Setting], Path]) -> None:
    best, worst = (make_tried(settings, ONE_ORDER, pick) for pick in ("best", "worst"))
    assert compare_ways(best, ONE_ORDER, NEUTRAL_PLAN).verdict == "better"
    lead = compare_ways(worst, ONE_ORDER, NEUTRAL_PLAN)
    in_range = compare_ways(worst, ONE_ORDER, NEUTRAL_PLAN, in_range=True)
    assert lead.verdict == "worse"
    assert -110 < in_range.mean < -10
    assert find_regret(worst, ONE_ORDER).mean > 50 > 10 > abs(find_regret(best, ONE_ORDER).mean)
    assert max(find_upper_bounds(worst, ONE_ORDER, NEUTRAL_PLAN).values()) < np.inf
    rows = [show_questions(each).splitlines()[2] for each in (best, worst)]
    assert rows[0].endswith("| passes |")
    assert rows[1].endswith("| **does not pass** |")


def test_rounds_that_lose_clearly_are_found(settings: tuple[list[Setting], Path]) -> None:
    text = show_questions(make_tried(settings, PROPOSED, "worst"))
    (row,) = [line for line in text.splitlines() if f"rounds: {PROPOSED}" in line]
    assert "clearly behind: ordinary, with an odd task, useless" in row
    assert row.endswith("| **does not pass** |")


def test_the_share_of_what_the_best_wins_is_a_ratio_of_sums(
    settings: tuple[list[Setting], Path],
) -> None:
    tried = make_tried(settings, PROPOSED, "best")
    share, count = find_share(tried, PROPOSED)
    if count:
        assert share == pytest.approx(1.0, abs=0.35)


def test_bins_that_are_too_small_go_to_a_neighbour() -> None:
    rng = np.random.default_rng(2)
    chances = np.concatenate([rng.uniform(0.62, 0.88, 300), rng.uniform(0.0, 0.4, 10), [1.0] * 5])
    bins = cut_bins(chances)
    assert all(each.sum() >= FEWEST_OF_BIN for each in bins)
    assert sum(bins).tolist() == [1] * len(chances)
    assert [each.sum() for each in cut_bins(np.full(7, 0.55))] == [7]


def test_nothing_is_written_before_all_plans_are_trained_out(
    settings: tuple[list[Setting], Path], tmp_path: Path
) -> None:
    path = tmp_path / "locked.md"
    path.write_text(f"# By hand\n\n{BEGIN}\n\nold figures\n", encoding="utf-8")
    with pytest.raises(InputError, match="8 of 14 campaigns are there"):
        write_locked(make_tried(settings, ONE_ORDER, "best"), path)
    assert "old figures" in path.read_text(encoding="utf-8")


def test_a_setting_that_is_not_trained_out_hides_no_data_set(
    settings: tuple[list[Setting], Path],
) -> None:
    tried = make_tried(settings, ONE_ORDER, "worst")
    object.__setattr__(tried[0], "plans", {ONE_ORDER: (1, 2, 3)})
    assert not np.isfinite(tried[0].lead(ONE_ORDER, NEUTRAL_PLAN))
    found = find_upper_bounds(tried, ONE_ORDER, NEUTRAL_PLAN)
    assert np.isfinite(list(found.values())).all()
    assert set(found) == set(TABLES)


def test_the_document_keeps_what_is_written_by_hand(
    settings: tuple[list[Setting], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked, "check_complete", lambda _: None)
    path = tmp_path / "locked.md"
    path.write_text(f"# By hand\n\n{BEGIN}\n\nold figures\n", encoding="utf-8")
    write_locked(make_tried(settings, ONE_ORDER, "best"), path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# By hand\n")
    assert "old figures" not in text
    assert "## The questions" in text
    assert "tox21-0" in text
    assert path.with_suffix(".svg").exists()


def test_what_is_locked_is_asked_what_its_protocol_says() -> None:
    several = {*WAYS_IN_TRANCHES, *WAYS_BY_TRAININGS}
    assert set(LOCKED_WAYS) == {"default", "default, first edition", *several}
    setting = make_setting()
    assert list_baselines(setting)[EQUAL_BUDGET] in list_surface(setting)
