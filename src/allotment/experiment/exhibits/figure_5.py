"""Figure 5: what each way to spend the budget comes to on VOC, at three ratios of prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from allotment.experiment.case import RATIOS
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceTables
from allotment.experiment.drawings import draw_bars
from allotment.experiment.entrants import list_ours, list_taba
from allotment.experiment.exhibit import Shown
from allotment.experiment.outcomes import find_mean


class Figure5(PriceTables):
    about = "bars of D_T on VOC at 1:3, 1:20 and 1:30, all ways to plan"
    data = "voc"
    title = "Figure 5: ways to spend the budget on VOC"
    prices = tuple(RATIOS)

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

        return replace(self.tabulate(found), draw=draw, size=(11.0, 4.6))


EXHIBIT = Figure5()
