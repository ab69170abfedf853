"""Table 1: VOC at 1:20 with a larger budget."""

from __future__ import annotations

from allotment.experiment.case import LARGER
from allotment.experiment.comparison import PriceTables


class Table1(PriceTables):
    about = "VOC at 1:20 with a larger budget"
    data = "voc"
    title = "Table 1: VOC with a larger budget"
    prices = (LARGER,)


EXHIBIT = Table1()
