"""Of the paper's future work, on Taskonomy: reduction rates between tasks and transfer of three."""

from __future__ import annotations

from allotment.experiment.case import TASKONOMY_PRICES
from allotment.experiment.exhibits.future_work_voc import FutureWork


class FutureWorkTaskonomy(FutureWork):
    about = "TABA on Taskonomy with rates between tasks, and with transfer of three tasks"
    data = "taskonomy"
    prices = (TASKONOMY_PRICES,)
    title = "Future work of the paper on Taskonomy"


EXHIBIT = FutureWorkTaskonomy()
