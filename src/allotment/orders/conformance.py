"""Does a strategy keep the contract? Inherit, say how yours is made, and let pytest run it:

class TestMine(StrategyTests):
    def make(self):
        return MyStrategy()
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.orders.strategy import Demand, Strategy, find_faults


class StrategyTests:
    """Every test that a strategy must pass; `make` gives one."""

    names = tuple(f"i{number:02d}" for number in range(24))
    odd_names = ("=1+1", "a,b", "it's", 'say "x"', " blank ", "Käse", "2", "10", "x" * 200)

    def make(self) -> Strategy:
        raise NotImplementedError("say how your strategy is made")

    # --- helpers ---

    def demands(self) -> dict[str, Demand]:
        """What is asked for in turn; add to it what yours may stumble over."""
        names, odd = self.names, self.odd_names
        apart = {"a": names[:8], "b": names[8:]}
        nested = {"a": names, "b": names[:6], "c": names[:3]}
        return {
            "one label": self._demand({"a": names}, {"a": 1}),
            "all there are": self._demand({"a": names}, {"a": len(names)}),
            "the same candidates": self._demand({"a": names, "b": names}, {"a": 7, "b": 5}),
            "other candidates": self._demand(apart, {"a": 3, "b": 9}),
            "more than can be apart": self._demand(nested, {"a": 20, "b": 5, "c": 3}),
            "odd names": self._demand({"a b": odd}, {"a b": len(odd) - 1}),
            "another seed": self._demand({"a": names, "b": names}, {"a": 7, "b": 5}, seed=1),
        }

    def _demand(
        self, candidates: Mapping[str, Sequence[str]], counts: Mapping[str, int], seed: int = 0
    ) -> Demand:
        return Demand(candidates, counts, seed, self.inputs, self.labelled)

    def inputs(self, names: Sequence[str]) -> NDArray[Any]:
        """Two numbers of each instance."""
        return np.array([[len(name), sum(name.encode()) % 7] for name in names], dtype=np.float32)

    def labelled(self, task: str) -> tuple[Sequence[str], NDArray[Any]]:
        """Two instances, none of which is a candidate, and the class of each."""
        return ("known", "known too"), np.array([0, 1])

    # --- the contract ---

    def test_it_has_its_verb(self) -> None:
        assert isinstance(self.make(), Strategy), "select is missing"

    def test_it_chooses_what_is_wanted(self) -> None:
        for what, demand in self.demands().items():
            faults = list(find_faults(demand, self.make().select(demand)))
            assert not faults, f"{what}: it {'; '.join(faults)}"

    def test_the_same_demand_has_the_same_answer(self) -> None:
        for what, demand in self.demands().items():
            first, second = (self._answer(demand) for _ in range(2))
            assert first == second, f"{what}: it draws by something else than the demand's seed"

    def test_an_answer_does_not_depend_on_earlier_ones(self) -> None:
        strategy, demands = self.make(), self.demands()
        fresh = {what: self._answer(demand) for what, demand in demands.items()}
        for what in reversed(demands):
            answer = strategy.select(demands[what])
            again = {task: list(answer[task]) for task in demands[what].counts}
            assert again == fresh[what], f"{what}: it remembers what it was asked before"

    def test_it_changes_nothing_that_it_is_given(self) -> None:
        for what, demand in self.demands().items():
            given = {task: list(names) for task, names in demand.candidates.items()}
            kept = copy.deepcopy(given)
            self.make().select(self._demand(given, dict(demand.counts), demand.seed))
            assert given == kept, f"{what}: it changes the candidates"

    def _answer(self, demand: Demand) -> dict[str, list[str]]:
        answer = self.make().select(demand)
        return {task: list(answer[task]) for task in demand.counts}
