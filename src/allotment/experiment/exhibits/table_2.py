"""Table 2: Taskonomy, five tasks."""

from __future__ import annotations

from allotment.experiment.case import TASKONOMY_PRICES
from allotment.experiment.comparison import PriceTables


class Table2(PriceTables):
    about = "Taskonomy, five tasks, all ways to plan"
    data = "taskonomy"
    title = "Table 2: Taskonomy"
    prices = (TASKONOMY_PRICES,)


EXHIBIT = Table2()
