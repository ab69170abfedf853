"""Figure 5: what each way to spend the budget comes to on VOC, at three ratios of prices."""

from __future__ import annotations

from allotment.experiment.case import RATIOS
from allotment.experiment.comparison import PriceTables


class Figure5(PriceTables):
    about = "bars of D_T on VOC at 1:3, 1:20 and 1:30, all ways to plan"
    data = "voc"
    title = "Figure 5: ways to spend the budget on VOC"
    prices = tuple(RATIOS)


EXHIBIT = Figure5()
