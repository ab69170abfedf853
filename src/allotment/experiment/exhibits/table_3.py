"""Table 3: parts of the paper's method taken out or replaced, on VOC."""

from __future__ import annotations

from allotment.experiment.case import RATIOS, Case
from allotment.experiment.comparison import PriceTables
from allotment.experiment.entrants import Entrant, list_ablations, list_baselines, list_ours


class Table3(PriceTables):
    about = "TABA on VOC without transfer, with TAG's, and with set reduction rates"
    data = "voc"
    title = "Table 3: parts of TABA taken out or replaced, on VOC"
    prices = tuple(RATIOS)

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_ablations(case), *list_baselines(case), *list_ours()]


EXHIBIT = Table3()
