"""Strategies: the built-in ones keep the contract; what breaks it is named and orders nothing."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import allot, fine
from helpers.packages import offer

from allotment.errors import InputError
from allotment.ledger.store import Store
from allotment.orders.conformance import StrategyTests
from allotment.orders.order import choose
from allotment.orders.strategy import STRATEGIES, Demand, Strategy

NAMES = [f"i{number:02d}" for number in range(20)]


class TestRandom(StrategyTests):
    def make(self) -> Strategy:
        return STRATEGIES.load("random")


class TestTogether(StrategyTests):
    def make(self) -> Strategy:
        return STRATEGIES.load("together")


class TestOfAnotherPackage(StrategyTests):
    def make(self) -> Strategy:
        place = str(Path(__file__).parents[1] / "plugin")
        if place not in sys.path:
            sys.path.append(place)
        from allotment_plugin.strategy import STRATEGY

        return STRATEGY


class Doubtful:
    """The instances whose nearest labelled neighbours disagree: what an author would write who
    knows nothing but the contract."""

    def select(self, demand: Demand) -> dict[str, list[str]]:
        return {task: self._rank(demand, task)[:count] for task, count in demand.counts.items()}

    def _rank(self, demand: Demand, task: str) -> list[str]:
        names = sorted(demand.candidates[task])
        known, labels = demand.labelled(task)
        if len(known) < 2:
            return names
        apart = np.abs(demand.inputs(names)[:, None] - demand.inputs(known)[None]).sum(axis=2)
        near = np.argsort(apart, axis=1, kind="stable")[:, :2]
        doubt = np.ptp(np.asarray(labels, dtype=float)[near], axis=1)
        return [names[at] for at in np.argsort(-doubt, kind="stable")]


class TestDoubtful(StrategyTests):
    def make(self) -> Strategy:
        return Doubtful()


def test_there_are_two_and_the_paper_s_is_first() -> None:
    assert list(STRATEGIES)[:2] == ["random", "together"]


# --- what breaks the contract ---


def make(answer: Callable[[Demand], Any]) -> Any:
    class Broken:
        def select(self, demand: Demand) -> Any:
            return answer(demand)

    return Broken()


def fill(demand: Demand, names: Callable[[Sequence[str], int], Any]) -> dict[str, Any]:
    return {task: names(demand.candidates[task], count) for task, count in demand.counts.items()}


BROKEN: Mapping[str, tuple[Any, str]] = {
    "few": (
        make(lambda demand: fill(demand, lambda names, count: names[: count - 1])),
        "chooses 1 for 'a' where 2 are wanted",
    ),
    "none": (make(lambda demand: {}), "chooses 0 for 'a' where 2 are wanted"),
    "twice": (
        make(lambda demand: fill(demand, lambda names, count: [names[0]] * count)),
        "chooses 'i00' for 'a' more than once",
    ),
    "strange": (
        make(lambda demand: fill(demand, lambda names, count: ["x", "y"][:count])),
        "chooses 'x' for 'a', which is no candidate",
    ),
    "numbers": (
        make(lambda demand: fill(demand, lambda names, count: list(range(count)))),
        "gives 0 for 'a', and no name",
    ),
    "text": (make(lambda demand: {"a": "i00"}), "gives 'i00' for 'a', and no list of names"),
    "list": (make(lambda demand: ["i00", "i01"]), "and no table from task to names"),
    "task": (
        make(lambda demand: {**fill(demand, lambda names, count: names[:count]), "zz": []}),
        "chooses for 'zz', of which nothing is wanted",
    ),
    "dies": (make(lambda demand: 1 // 0), "failed (ZeroDivisionError"),
}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package that offers each of them."""
    offer(tmp_path / "others", "strategies", "others", **{n: f"broken:{n}" for n in BROKEN})
    module = type(sys)("broken")
    module.__dict__.update({name: strategy for name, (strategy, _) in BROKEN.items()})
    monkeypatch.setitem(sys.modules, "broken", module)
    monkeypatch.syspath_prepend(tmp_path / "others")
    monkeypatch.delitem(STRATEGIES.__dict__, "_offered", raising=False)
    yield
    STRATEGIES.__dict__.pop("_offered", None)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.usefixtures("broken")
def test_a_wrong_answer_is_named_with_its_package(name: str) -> None:
    with pytest.raises(InputError) as caught:
        choose({"a": NAMES}, {"a": 2}, 0, strategy=name)
    assert str(caught.value).startswith(f"strategy '{name}' of others 1.0: ")
    assert BROKEN[name][1] in str(caught.value)
    assert name == "dies" or "Nothing is ordered" in str(caught.value)


def forget() -> Strategy:
    dice = random.Random()
    return make(lambda demand: fill(demand, lambda names, count: dice.sample([*names], count)))


def shrink(demand: Demand) -> dict[str, Any]:
    chosen = {}
    for task, count in demand.counts.items():
        names = demand.candidates[task]
        chosen[task] = [*names[:count]]
        if isinstance(names, list):
            names.reverse()
    return chosen


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (BROKEN["few"][0], "where 1 are wanted"),
        (BROKEN["twice"][0], "more than once"),
        (forget(), "draws by something else"),
        (make(shrink), "changes the candidates"),
        (object(), "select is missing"),
    ],
)
def test_the_public_tests_find_what_is_broken(strategy: Any, said: str) -> None:
    class Mine(StrategyTests):
        def make(self) -> Strategy:
            return strategy

    mine = Mine()
    found = []
    for test in [each for each in dir(mine) if each.startswith("test_")]:
        try:
            getattr(mine, test)()
        except AssertionError as error:
            found.append(str(error))
        except AttributeError:
            continue
    assert any(said in each for each in found), found


def test_data_that_nobody_gave_are_asked_for_in_words() -> None:
    with pytest.raises(InputError, match="asks for the data, which nobody gave"):
        Doubtful().select(Demand({"a": NAMES}, {"a": 2}, 0))


# --- in a campaign ---


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign on forty rows with ids, the size of ten of them known."""
    monkeypatch.chdir(tmp_path)
    rows = [f"r{n:02d},{n},{n % 5},{n if n < 10 else ''},\n" for n in range(40)]
    Path("table.csv").write_text("id,x,y,size,look\n" + "".join(rows))
    fine(
        *("init", "camp", "--root", "table.csv", "--targets", "size,look", "--budget", 12),
        *("--cost", "size=1", "--cost", "look=1", "--method", "neutral"),
        *("--classes", "look=old|new", "--kind", "size=regression"),
    )
    return Path("camp")


def name_strategy(folder: Path, text: str) -> None:
    path = folder / "campaign.toml"
    path.write_text(f"strategy = {text}\n{path.read_text()}")


def forms(folder: Path) -> list[Any]:
    with Store.open(folder, write=False) as store:
        return [(value.key, value.body["form"]) for value in store.orders()]


def test_a_file_without_the_key_means_random_and_orders_the_same(folder: Path) -> None:
    plain = fine("order", folder, "-o", "plain.csv")
    (before,) = forms(folder)
    fine("order", folder, "--cancel", 1)
    fine("init", "again", *INIT)
    name_strategy(Path("again"), '"random"')
    assert fine("order", "again", "-o", "named.csv") == plain.replace("plain", "named").replace(
        "camp", "again"
    )
    assert forms(Path("again")) == [before]
    assert before[1] == {"everything": False, "together": False}
    assert "a part of it is a random part" in plain


INIT = (
    *("--root", "table.csv", "--targets", "size,look", "--budget", "12", "--cost", "size=1"),
    *("--cost", "look=1", "--method", "neutral", "--classes", "look=old|new"),
    *("--kind", "size=regression"),
)


def test_together_is_a_strategy_and_an_option(folder: Path) -> None:
    fine("order", folder, "--together", "-o", "option.csv")
    fine("init", "named", *INIT)
    name_strategy(Path("named"), '"together"')
    fine("order", "named", "-o", "key.csv")
    fine("init", "asked", *INIT)
    fine("order", "asked", "--strategy", "together", "-o", "asked.csv")
    first = forms(folder)
    assert first[0][1] == {"everything": False, "together": True}
    assert first == forms(Path("named")) == forms(Path("asked"))


def test_the_option_goes_before_the_file(folder: Path) -> None:
    name_strategy(folder, '"together"')
    fine("order", folder, "--strategy", "random")
    assert forms(folder)[0][1] == {"everything": False, "together": False}
    said = allot("order", folder, "--strategy", "random", "--together").output
    assert "--together: is short for --strategy together, and another one is named" in said


@pytest.mark.parametrize("text", ['"rnadom"', "3", '["random"]'])
def test_a_mistake_is_named_with_its_line(folder: Path, text: str) -> None:
    name_strategy(folder, text)
    done = allot("check", folder)
    assert done.exit_code == 2
    assert "camp/campaign.toml:1: strategy: unknown" in done.output
    assert "One that a package offers must be installed first" in done.output


def test_an_unknown_one_on_the_command_line_orders_nothing(folder: Path) -> None:
    done = allot("order", folder, "--strategy", "best")
    assert done.exit_code == 2
    assert "strategy: unknown 'best'" in done.output
    assert forms(folder) == []


@pytest.mark.usefixtures("broken")
def test_a_broken_one_orders_nothing(folder: Path) -> None:
    done = allot("order", folder, "--strategy", "twice")
    assert done.exit_code == 2
    assert "strategy 'twice' of others 1.0: chooses" in done.output
    assert forms(folder) == []
    assert not list(folder.glob("order-*"))
    assert "0 on order" in fine("status", folder)


def test_a_strategy_sees_rows_and_labels_if_it_asks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    class Curious:
        def select(self, demand: Demand) -> dict[str, list[str]]:
            seen["inputs"] = demand.inputs(["r11", "r10"])
            seen["size"], seen["look"] = map(demand.labelled, ("size", "look"))
            return {task: sorted(demand.candidates[task])[-n:] for task, n in demand.counts.items()}

    monkeypatch.setitem(STRATEGIES.own, "curious", Curious)  # type: ignore[index]
    assert "random part" not in fine("order", folder, "--strategy", "curious")
    assert np.argsort(seen["inputs"][:, 0]).tolist() == [1, 0]
    names, sizes = seen["size"]
    assert names == [f"r{n:02d}" for n in range(10)]
    np.testing.assert_allclose(sizes, range(10))
    assert seen["look"][0] == []
    assert forms(folder)[0][1]["strategy"] == "curious"
    assert "allot order camp --strategy curious --more" in fine(
        "order", folder, "--strategy", "curious"
    )
