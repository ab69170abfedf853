"""Table 2: Taskonomy, five tasks."""

from __future__ import annotations

from allotment.experiment.case import TASKONOMY_PRICES, Case
from allotment.experiment.comparison import Comparison, list_inquiries
from allotment.experiment.entrants import Entrant, list_baselines, list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.sheet import Sheet
from allotment.experiment.work import Inquiry
from allotment.job import Job


class Table2(Exhibit):
    about = "Taskonomy, five tasks, all ways to plan"
    data = "taskonomy"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_baselines(case), *list_taba(case), *list_ours()]

    def list_inquiries(self, case: Case) -> list[Inquiry]:
        return list_inquiries(case, self.list_entrants(case))

    def compare(self, sheet: Sheet) -> Comparison:
        entrants = self.list_entrants(sheet.case)
        return Comparison(sheet, sheet.case.find_prices(TASKONOMY_PRICES), entrants)

    def list_trainings(self, sheet: Sheet) -> list[Job]:
        return self.compare(sheet).list_trainings()

    def show(self, sheet: Sheet) -> Shown:
        found = self.compare(sheet)
        return Shown("Table 2: Taskonomy", (found.show(),), values=found.to_dict())


EXHIBIT = Table2()
