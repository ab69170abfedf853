"""Table 3: parts of the paper's method taken out or replaced, on VOC."""

from __future__ import annotations

from allotment.corpus.plans import EQUAL_BUDGET, NEUTRAL_PLAN
from allotment.experiment.case import RATIOS, Case
from allotment.experiment.comparison import PriceTables
from allotment.experiment.entrants import Entrant, FixedPlan, list_ablations


class Table3(PriceTables):
    about = "TABA on VOC without transfer, with TAG's, and with set reduction rates"
    data = "voc"
    title = "Table 3: parts of TABA taken out or replaced, on VOC"
    prices = tuple(RATIOS)
    has_grid = False

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_ablations(case), FixedPlan(EQUAL_BUDGET), FixedPlan(NEUTRAL_PLAN)]


EXHIBIT = Table3()
