"""Figure 2: the share of the budget swept from one task of VOC to the other, trained together and
alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from allotment.experiment.case import CLASSES, SEGMENTATION
from allotment.experiment.casebook import Casebook
from allotment.experiment.drawings import draw_lines
from allotment.experiment.entrants import BUDGET_SHARES, find_best, spread_budget
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean, spell_mean
from allotment.experiment.outcomes import Mean, find_mean
from allotment.job import Job

PRICES = "1:20"
WITH_OTHERS, BY_ITSELF = "together", "alone"


class Figure2(Exhibit):
    about = "sweep of the budget's share on VOC at 1:20, tasks together and alone"
    data = "voc"

    def list_plans(self, book: Casebook) -> list[Mapping[str, int]]:
        """A plan for each share of the budget on class labels."""
        prices = book.case.find_prices(PRICES)
        return [counts for _, counts in spread_budget(book.case, prices)]

    def list_trainings(self, book: Casebook) -> list[Job]:
        outcomes = book.outcomes
        jobs = book.train_out(outcomes.nothing)
        for counts in self.list_plans(book):
            jobs += book.train_out(outcomes.repeat(counts))
        for counts in self.list_plans(book):
            for task in (SEGMENTATION, CLASSES):
                own = {each: count if each == task else 0 for each, count in counts.items()}
                jobs += book.train_out(outcomes.repeat(own), tasks=(task,))
        return list(dict.fromkeys(jobs))

    def find_lines(self, book: Casebook) -> dict[str, list[Mean]]:
        """Of all tasks and of each one: the gain at each share."""
        outcomes, tasks = book.outcomes, book.case.tasks
        found: dict[str, list[Mean]] = {"all tasks": []}
        for counts in self.list_plans(book):
            gains = outcomes.find_gains(outcomes.repeat(counts))
            found["all tasks"].append(find_mean(gains.mean(axis=2)))
            for place, task in enumerate(tasks):
                together = find_mean(gains[..., place])
                found.setdefault(f"{task}, {WITH_OTHERS}", []).append(together)
        for counts in self.list_plans(book):
            for task in tasks:
                own = {each: count if each == task else 0 for each, count in counts.items()}
                gains = outcomes.find_gains(outcomes.repeat(own), tasks=(task,))
                found.setdefault(f"{task}, {BY_ITSELF}", []).append(find_mean(gains[..., 0]))
        return found

    def show(self, book: Casebook) -> Shown:
        lines = self.find_lines(book)

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            draw_lines(axes, BUDGET_SHARES, lines, faint=2)
            axes.set_xlabel("share of the budget that buys class labels, %")
            axes.set_ylabel("gain over the labels at hand, %")

        rows = tuple(
            (f"{share} %", *(spell_mean(means[place]) for means in lines.values()))
            for place, share in enumerate(BUDGET_SHARES)
        )
        table = ResultTable("", ("on class labels", *lines), rows)
        values = {name: [dump_mean(each) for each in means] for name, means in lines.items()}
        notes = self._tell_range(book)
        title = "Figure 2: sweep of the budget's share on VOC at 1:20"
        return Shown(title, (table,), notes, {"shares": list(BUDGET_SHARES)} | values, draw)

    def _tell_range(self, book: Casebook) -> tuple[str, ...]:
        """How much hangs on the share: best and worst picked in other seed sets than they are
        scored in."""
        outcomes = book.outcomes
        totals = np.stack(
            [outcomes.find_totals(outcomes.repeat(each)) for each in self.list_plans(book)]
        )
        span = find_mean(find_best(totals) + find_best(-totals))
        if span.value != span.value:
            return ()
        return (f"Range of D_T from the worst share to the best, cross-fitted: {span} points.",)


EXHIBIT = Figure2()
