"""Figure 5: what each way to spend the budget comes to on VOC, at three ratios of prices."""

from __future__ import annotations

from typing import Any

from allotment.experiment.case import RATIOS, Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceComparison, list_questions
from allotment.experiment.drawings import draw_bars
from allotment.experiment.entrants import Entrant, list_baselines, list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.outcomes import find_mean
from allotment.experiment.work import Question
from allotment.job import Job


class Figure5(Exhibit):
    about = "bars of D_T on VOC at 1:3, 1:20 and 1:30, all ways to plan"
    data = "voc"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_baselines(case), *list_taba(case), *list_ours()]

    def list_questions(self, case: Case) -> list[Question]:
        return list_questions(case, self.list_entrants(case))

    def compare(self, book: Casebook) -> dict[str, PriceComparison]:
        entrants = self.list_entrants(book.case)
        return {
            name: PriceComparison(book, book.case.find_prices(name), entrants) for name in RATIOS
        }

    def list_trainings(self, book: Casebook) -> list[Job]:
        return [job for each in self.compare(book).values() for job in each.list_trainings()]

    def show(self, book: Casebook) -> Shown:
        found = self.compare(book)

        def draw(figure: Any) -> None:
            axes = figure.subplots(1, len(found), sharey=True)
            for each, (name, comparison) in zip(axes, found.items(), strict=True):
                bars = {one.name: find_mean(one.totals) for one in comparison.entries.values()}
                marked = {one.name: 0 for one in list_taba(book.case)}
                marked |= {one.name: 1 for one in list_ours()}
                draw_bars(each, bars, marked)
                each.set_title(f"classes : masks = {name}", fontsize=10)
                each.set_xlabel("D_T, %")

        return Shown(
            "Figure 5: ways to spend the budget on VOC",
            tuple(each.show(f"Prices {name}") for name, each in found.items()),
            values={name: each.to_dict() for name, each in found.items()},
            draw=draw,
            size=(11.0, 4.6),
        )


EXHIBIT = Figure5()
